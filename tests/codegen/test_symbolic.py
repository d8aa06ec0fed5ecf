"""Results in SymPy: what SymPy computes from them, entry by entry, is what `evaluate` gives."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import sympy

import combdiff as cd
from combdiff.codegen.signature import result_of
from combdiff.codegen.symbolic import Equation, SymbolicResult
from combdiff.language.evaluate import evaluate
from combdiff.language.samples import default_sizes, random_value
from combdiff.language.terms import Term, let, tuple_of

ROOT = Path(__file__).parents[2]
FILES = sorted([*(ROOT / "examples").glob("*.cd"), *(ROOT / "tests" / "golden").glob("*.cd")])
WITHOUT = {"implicit", "least_action", "adjoint", "linear_system"}
"""Programs with linear maps and roots, for which SymPy has no object."""
OF_MAPS = {"convolution", "trace", "cotangents", "perceptron"}
"""Programs of functions, and of maps without a gradient."""
FINITE = [path for path in FILES if path.stem not in WITHOUT | OF_MAPS]

BZ = "@domain BZ begin base = I; periodic = true end\n"
X = "@domain X begin symmetric = true; contractable = false end\n"
PROGRAMS = {
    "functions": "(x::RV) -> sum(i, exp(x(i)) * sin(x(i))^2 + tanh(x(i)) / cosh(x(i)) + atan(x(i)) + abs(x(i)))",
    "complex functions": "(z::CV) -> sum(i, abs2(exp(im * z(i))) + abs(z(i)) + real(z(i))^3 + imag(z(i)) * pi)",
    "relu": "(A::RM) -> (x::RV) -> sum(i, indicator(0, sum(j, A(i, j) * x(j)), sum(j, A(i, j) * x(j)))^2)",
    "delta": "(x::CM) -> sum((i, j), delta(i, j, x(i, j)' * x(i, j)^2))",
    "bounds": "@domain K begin base = I; lower = 2; upper = 4 end\n(x::(K) -> R) -> sum(i::K, i * x(i)^2)",
    "reflected": X + "(w::(X) -> R) -> (u::(X) -> C) -> sum(b::X, w(b) * u(b) * u(-b))",
    "periodic": BZ + "(v::(BZ) -> C) -> sum((k::BZ, q::BZ), v(k + 2 * q)' * v(k - q) * v(q))",
    "periodic delta": BZ + "(v::(BZ) -> C) -> sum((k::BZ, q::BZ), delta(2 * k, q, v(k)' * v(q)))",
    "taken names": "(n::RV, m::R) -> (Sum::RV) -> sum((i, j), n(i) * Sum(j)^2) * m",
}


def values_of(term: Term, sizes: Mapping[object, int]) -> dict[Term, object]:
    rng = np.random.default_rng(1)
    return {p: random_value(p.kind, sizes, rng) for p in result_of(term).params}


def computed(equation: Equation, given: Mapping[sympy.Basic, object]) -> object:
    """The number, or the array, that SymPy makes of an equation."""
    function = sympy.lambdify([*given, *equation.indices], equation.expression, "numpy")
    sizes = {symbol: n for symbol, n in given.items() if isinstance(n, int)}
    bounds = [[int(x.subs(sizes)) for x in limit[1:]] for limit in equation.limits]
    ranges = [range(first, last + 1) for first, last in bounds]
    if not ranges:
        return function(*given.values())
    entries = [function(*given.values(), *point) for point in product(*ranges)]
    return np.array(entries).reshape([len(r) for r in ranges])


def symbols_for(s: SymbolicResult, values: Mapping[Term, object], sizes: Mapping[object, int]) -> dict[object, object]:
    """Every argument and every size, by its symbol."""
    given: dict[object, object] = {s.arguments[p.name]: value for p, value in values.items()}
    for base, value in list(given.items()):
        if isinstance(base, sympy.IndexedBase) and base.shape:
            for extent, n in zip(base.shape, np.shape(value), strict=True):
                for unknown in extent.free_symbols:
                    given[unknown] = int(sympy.solve(extent - n, unknown)[0])
    lists = {domain.name: size for domain, size in sizes.items() if hasattr(size, "rows")}
    for name, size in lists.items():
        base = s.arguments[name]
        given[base] = size.rows
        given |= {unknown: len(size.rows) for unknown in base.shape[0].free_symbols}
    return given


def agrees(d: object, inline: bool) -> None:
    sizes = default_sizes(d.term)
    values = values_of(d.term, sizes)
    parts = result_of(d.term)
    expected = evaluate(let(parts.bindings, tuple_of(parts.outputs)), values, sizes)
    s = d.sympy(inline=inline)
    assert not (inline and s.definitions)
    given = symbols_for(s, values, sizes)
    for definition in s.definitions:
        entry = definition.entry
        given[entry.base if isinstance(entry, sympy.Indexed) else entry] = computed(definition, given)
    wanted = expected if isinstance(expected, tuple) else (expected,)
    assert len(wanted) == len(s.results)
    for equation, value in zip(s.results, wanted, strict=True):
        np.testing.assert_allclose(computed(equation, given), value, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("inline", [False, True], ids=["definitions", "inline"])
@pytest.mark.parametrize("path", FINITE, ids=lambda path: path.stem)
def test_a_file_has_the_value_in_sympy_that_evaluate_gives(path: Path, inline: bool) -> None:
    if inline and path.stem in {"wannier_lattice", "canonical_polyadic", "cp_loss"}:
        pytest.skip("sums within sums are slow in Python")
    agrees(cd.grad(path.read_text(encoding="utf-8")), inline)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_has_the_value_in_sympy_that_evaluate_gives(name: str) -> None:
    agrees(cd.grad(PROGRAMS[name]), inline=False)
    if "abs(" not in PROGRAMS[name]:
        agrees(cd.hvp(PROGRAMS[name]), inline=False)
