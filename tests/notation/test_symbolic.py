"""Results in SymPy: what SymPy computes from them, entry by entry, is what `evaluate` gives."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import sympy
from sympy.printing.numpy import NumPyPrinter

import combdiff as cd
from combdiff.arrays.lower.signature import result_of
from combdiff.derivation import Derivation
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.samples import random_value
from combdiff.meaning.sizes import default_sizes
from combdiff.notation.symbolic import Equation, SymbolicResult, symbolic
from combdiff.terms.functions import SCALAR_FUNCTIONS, ScalarFunction
from combdiff.terms.terms import MINUS_ONE, Lam, Term, add, call, fresh, let, tuple_of
from combdiff.terms.types import COMPLEX, REAL, Number, is_complex
from tests.function_points import applied, points_of

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
    "product": "(x::RM) -> sum(i, prod(j, i != j, x(i, j))) + prod((i, j), i < j, x(i, j))",
    "open boundary": "(x::RV) -> sum(i, where(1 <= i, (x(i) - x(i - 1))^2, 3 * x(i)))",
    "conditions within": "(x::RV) -> sum(i, sin(sum(j, i < j, x(j) * x(i)))) + sum(i, x(i) * exp(sum(j, i != j, "
    "sin(sum(k, k < j and k != i, x(k))) * x(j))))",
    "different points": "@domain K begin base = (I, I); periodic = true end\n"
    "(v::(K) -> R) -> sum((k::K, q::K), k != q, v(k) * v(q)^2 * v(k - q))",
    "taken names": "(n::RV, m::R) -> (Sum::RV) -> sum((i, j), n(i) * Sum(j)^2) * m",
}

LONGER = {"product", "conditions within", "different points"}


def values_of(term: Term, sizes: Mapping[object, int]) -> dict[Term, object]:
    rng = np.random.default_rng(1)
    return {p: random_value(p.kind, sizes, rng) for p in result_of(term).params}


class EntryPrinter(NumPyPrinter):
    """NumPy for a single entry: a case is computed where its condition holds, as it may have no entry elsewhere."""

    def __init__(self, settings: Mapping[str, object] | None = None) -> None:
        super().__init__(
            {"fully_qualified_modules": False, "inline": True, "allow_unknown_functions": True} | dict(settings or {})
        )

    def _print_Piecewise(self, expr: sympy.Piecewise) -> str:
        cases = "".join(f"({self._print(value)}) if ({self._print(holds)}) else " for value, holds in expr.args)
        return f"({cases}nan)"

    def _print_Product(self, expr: sympy.Product) -> str:
        loops = " ".join(
            f"for {self._print(i)} in range({self._print(first)}, {self._print(last)} + 1)"
            for i, first, last in reversed(expr.limits)
        )
        return f"prod([{self._print(expr.function)} {loops}])"


def computed(equation: Equation, given: Mapping[sympy.Basic, object]) -> object:
    """The number, or the array, that SymPy makes of an equation."""
    function = sympy.lambdify([*given, *equation.indices], equation.expression, "numpy", printer=EntryPrinter)
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
    for p, value in values.items():
        for extent, n in zip(s.shapes.get(p.name, ()), np.shape(value), strict=False):
            for unknown in extent.free_symbols:
                given[unknown] = int(sympy.solve(extent - n, unknown)[0])
    lists = {domain.name: size for domain, size in sizes.items() if hasattr(size, "rows")}
    for name, size in lists.items():
        base = s.arguments[name]
        given[base] = size.rows
        given |= {unknown: len(size.rows) for unknown in s.shapes[name][0].free_symbols}
    return given


def agrees(d: Derivation, inline: bool) -> None:
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


@pytest.mark.slow
@pytest.mark.parametrize("path", FINITE, ids=lambda path: path.stem)
def test_a_file_has_the_value_in_sympy_that_evaluate_gives(path: Path) -> None:
    agrees(cd.grad(path.read_text(encoding="utf-8")), inline=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["restricted_hartree_fock", "wannier", "wannier_neighbours", "quadratic"])
def test_values_can_stand_where_they_are_used(name: str) -> None:
    agrees(cd.grad((ROOT / "examples" / f"{name}.cd").read_text(encoding="utf-8")), inline=True)


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LONGER)) for n in PROGRAMS])
def test_a_program_has_the_value_in_sympy_that_evaluate_gives(name: str) -> None:
    agrees(cd.grad(PROGRAMS[name]), inline=False)
    if "abs(" not in PROGRAMS[name]:
        agrees(cd.hvp(PROGRAMS[name]), inline=False)


def test_sums_of_small_arrays_are_done_by_sympy_itself() -> None:
    s = cd.grad("(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))").sympy()
    A, x = s.arguments["A"], s.arguments["x"]
    (i,), (n,) = s.indices, s.shapes["x"]
    entry = s.expression.subs({n: 2, i: 1}).doit()
    assert sympy.simplify(entry - 2 * (A[1, 0] * x[0] + A[1, 1] * x[1])) == 0


def test_an_unknown_function_has_its_derivative() -> None:
    s = cd.grad("(f::RF) -> (x::RV) -> sum(i, f(x(i)^2))").sympy()
    f, x = s.arguments["f"], s.arguments["x"]
    (i,) = s.indices
    assert sympy.simplify(s.expression.replace(f, sympy.sin).doit() - 2 * x[i] * sympy.cos(x[i] ** 2)) == 0


def test_the_derivative_by_one_of_two_arguments() -> None:
    s = cd.grad("(L::RO) -> (a::R, b::R) -> L(a * b, b)").sympy()
    L, a, b = (s.arguments[name] for name in ("L", "a", "b"))
    by_a, by_b = (r.expression.replace(L, lambda u, v: u**2 * v).doit() for r in s.results)
    assert sympy.simplify(by_a - 2 * a * b**3) == 0 and sympy.simplify(by_b - 3 * a**2 * b**2) == 0


def test_an_integral_stays_one() -> None:
    s = cd.pullback("(w::RF) -> (g::RF) -> (d::R) -> sum(s::R, w(s) * g(s + d))").sympy()
    assert s.expression.has(sympy.Integral)


@pytest.mark.sampled
@pytest.mark.parametrize("name", sorted(WITHOUT))
def test_what_sympy_has_no_object_for_is_an_error(name: str) -> None:
    (path,) = {path.stem: path for path in FILES if path.stem == name}.values()
    with pytest.raises(cd.CombDiffError, match="SymPy has no expression for this") as caught:
        cd.grad(path.read_text(encoding="utf-8")).sympy()
    assert caught.value.remedy


def test_a_comparison_with_an_infinite_number_is_an_error() -> None:
    derivation = cd.grad("(g::RV) -> sum(m, where(log(0 * g(m)) < 1, g(m)))")
    with pytest.raises(cd.CombDiffError, match="SymPy has no expression for this: a comparison with an infinite"):
        derivation.sympy()


POINTS = (0.3 + 0.4j, -0.6 + 0.9j, 0.7 - 0.2j)


@pytest.mark.parametrize("kind", [REAL, COMPLEX], ids=["real", "complex"])
@pytest.mark.parametrize("name", [name for name in SCALAR_FUNCTIONS if name != "round"])
def test_sympy_has_every_function_of_the_language(name: str, kind: Number) -> None:
    t, variables = applied(name, kind) if points_of(name, kind == COMPLEX) else applied(name, REAL)
    written = symbolic(Lam(variables, t))
    for numbers in points_of(name, is_complex(variables[0].type)):
        at = {written.arguments[v.name]: x for v, x in zip(variables, numbers, strict=True)}
        value = complex(written.expression.subs(at).evalf())
        expected = complex(evaluate(t, dict(zip(variables, numbers, strict=True))))
        # the logarithm of |Γ|
        assert (value.real if name == "lgamma" else value) == pytest.approx(expected)


def test_sympy_has_no_rounding_to_even() -> None:
    with pytest.raises(cd.CombDiffError, match="the function round"):
        symbolic(Lam((x := fresh("x", REAL),), call("round", x)))


def row_of_expm1(**more: object) -> ScalarFunction:
    return ScalarFunction("expm2", "expm1", r"\operatorname{expm1}", lambda z: call("exp", z), commutes=True, **more)


def test_a_row_says_how_sympy_writes_what_it_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    row = row_of_expm1(made_of=lambda z: add(call("exp", z), MINUS_ONE))
    monkeypatch.setitem(SCALAR_FUNCTIONS, "expm2", row)
    x = fresh("x", REAL)
    assert str(symbolic(Lam((x,), call("expm2", x))).expression) == "exp(x) - 1"


def test_a_function_that_sympy_does_not_know_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCALAR_FUNCTIONS, "expm2", row_of_expm1())
    x = fresh("x", REAL)
    with pytest.raises(cd.CombDiffError, match="SymPy has no expression for this: the function expm2") as caught:
        symbolic(Lam((x,), call("expm2", x)))
    assert caught.value.remedy


def test_several_results_have_no_one_expression() -> None:
    s = cd.grad("(x::R, y::R) -> x * y").sympy()
    assert [str(r.expression) for r in s.results] == ["y", "x"]
    with pytest.raises(cd.CombDiffError, match="2 results"):
        _ = s.expression


@pytest.mark.parametrize("kind", ["minimum", "maximum"])
def test_a_reduction_that_is_left_is_named(kind: str) -> None:
    with pytest.raises(cd.UnsupportedError, match=f"{kind} over indices is left in the result"):
        cd.simplified(f"(x::RV) -> {kind}(i, x(i))").sympy()
