"""Numbers that no array gives: π, sizes, sums of ones, and results that are constants, in every library."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import ModuleType

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.lower.signature import result_of
from combdiff.emit.backends import BACKENDS
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.samples import random_value
from combdiff.meaning.sizes import default_sizes
from combdiff.run.compiled import Compiled
from combdiff.terms.terms import Lam
from combdiff.terms.types import Domain, Index, is_complex
from tests.emit.array_libraries import Numbers, library

__all__ = ["library"]

PERIODIC = "@domain Z begin base = I; periodic = true end\n@space F begin type = (Z,) -> C end\n"
TEXTS = {
    "a factor": "(x::RV) -> pi * sum(i, x(i)^2)",
    "a power of it": "(x::RV) -> sum(i, pi * (1 + x(i)^2)^pi) / pi^2",
    "a function of 0 + 0j": "(a::C) -> (x::RV) -> real(acos(where(1 <= 0, a)) * log(complex(-2)) * a) * sum(i, x(i))",
    "a function of it": "(x::RV) -> exp(pi) * sqrt(pi) * sum(i, sin(pi * x(i)) / pi) + atan(pi)",
    "a root of it": "(x::R) -> (2 * pi)^(-1/2) * exp(-x^2 / 2)",
    "the exponent": "(x::R) -> 2^pi * (1 + x^2)^pi",
    "exchange": "(v::RV) -> (r::RV) -> -3/4 * (3 / pi)^(1/3) * sum(i, (1 + r(i)^2)^(4/3)) + sum(i, v(i) * r(i))",
    "complex": "(x::CV) -> abs2(pi * im + sum(i, x(i))) + real(exp(2 * pi * im * sum(i, x(i))))",
    "Fourier": PERIODIC + "(u::F) -> sum(k::Z, k * abs2(sum(j::Z, u(j) * exp(-2 * pi * im * k * j / sum(l::Z, 1)))))",
    "a sum of it": "(x::RV{n}) -> exp(-sum(i::N{n}, pi)) * sum(i, x(i)^2)",
    "a mean": "(x::RV{n}) -> sqrt(sum(i::N{n}, 1)) * sum(i, x(i)^2) / sum(i::N{n}, 1)",
    "its dimension": "(x::RV{n}) -> sum(i, x(i)^2) * log(2 * pi) * sum(i::N{n}, 1) / 2",
    "compared": "(x::RV) -> sum(i, indicator(x(i), pi, x(i)^2)) + indicator(3, pi, x(0)) + indicator(pi, x(0), pi)",
    "a given name": "(w::RV) -> (x::RV) -> begin; c = sum(i, pi * w(i)); c * sum(i, x(i)^2) * pi; end",
    "a number with a name": "(w::RV) -> (x::RV) -> begin; c = pi^2; s = sum(i, w(i) * x(i)); c * s + s^2 + c; end",
    "a diagonal": "(x::RM) -> sum((i, j), pi * x(i, j) * x(j, i)) + sum(i, pi * x(i, i))",
    "an unknown function of it": "(g::RF) -> (x::RV) -> g(pi) * sum(i, g(pi * x(i)))",
    "the slope of an equation": "(a::R) -> (x::R) -> begin; y = root((y::R) -> pi * y - x - a); y^2; end",
    "an equation": "(a::RV) -> (x::RV) -> pi * root((y::R) -> y^3 + pi * y - sum(i, a(i) * x(i)))",
    "the result": "(x::RV) -> pi * sum(i, x(i))",
    "a number as the result": "(x::R) -> sin(pi / 3) * x",
    "nothing": "(x::RV) -> pi",
}


@cache
def derived(name: str, mode: str) -> cd.Derivation:
    return getattr(cd, mode)(TEXTS[name].replace("; ", "\n"))


def arguments(d: cd.Derivation, f: Compiled, size: int) -> dict[str, object]:
    rng = np.random.default_rng(size)
    sizes = dict.fromkeys(default_sizes(d.term), size)
    return {
        a.name: sizes[a.kind.domain] if isinstance(a.kind, Index) else np.asarray(random_value(a.kind, sizes, rng))
        for a in f.arguments
        if not a.callable and not a.optional
    }


def functions(f: Compiled, module: ModuleType) -> dict[str, object]:
    """What takes arrays of the library only, in the place of unknown functions and their derivatives."""
    return {
        a.name: (lambda x, k: module.tanh(x) * k) if a.name.startswith("pullback") else module.tanh
        for a in f.arguments
        if a.callable and not a.optional
    }


def with_product(found: object, direction: object) -> tuple[object, ...]:
    """Value, gradient, and the product of the Hessian with a direction."""
    *first, product = several(found)
    assert callable(product)
    return (*first, *several(product(direction)))


def several(found: object) -> tuple[object, ...]:
    return found if isinstance(found, tuple) else (found,)


def meaning(d: cd.Derivation, values: Mapping[str, object], size: int) -> tuple[np.ndarray, ...]:
    """What the oracle says of the result."""
    term = d.term
    while isinstance(term, Lam) and not all(isinstance(p.kind, Index) for p in term.params):
        term = term.body
    given = {v: values[v.name] for v in result_of(d.term).params if v.name in values}
    sizes: dict[Domain, int] = dict.fromkeys(default_sizes(d.term), size)
    return tuple(map(np.asarray, several(evaluate(term, given, sizes))))


@pytest.mark.sampled
@pytest.mark.parametrize("mode", ["grad", "hvp"])
@pytest.mark.parametrize("name", [name for name, text in TEXTS.items() if "g::RF" not in text and "root" not in text])
def test_code_gives_what_the_formula_says(name: str, mode: str) -> None:
    d = derived(name, mode)
    f = d.compile()
    for size in (1, 2, 3, 5):
        values = arguments(d, f, size)
        for found, wanted in zip(several(f(**values)), meaning(d, values, size), strict=True):
            assert np.shape(found) == wanted.shape
            np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["grad", "hvp"])
@pytest.mark.parametrize("name", TEXTS)
def test_every_derivative_passes_its_own_check(name: str, mode: str) -> None:
    assert derived(name, mode).check()


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
def test_a_library_agrees_with_numpy(library: Numbers, name: str) -> None:
    if library.name == "dask" and "root" in TEXTS[name]:
        pytest.skip("Dask solves no equations here")
    d = derived(name, "grad")
    f, reference = d.compile(library.name, value=True, hvp=True), d.compile(value=True, hvp=True)
    values = arguments(d, reference, 3)
    given = {k: v if isinstance(v, int) else library.to(v) for k, v in values.items()}
    unknown = d.objective.params[0].name
    found = with_product(f(**given, **functions(f, library.module)), given[unknown])
    wanted = with_product(reference(**values, **functions(reference, np)), values[unknown])
    for one, other in zip(found, wanted, strict=True):
        assert np.shape(library.back(one)) == np.shape(other)
        np.testing.assert_allclose(library.back(one), other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("memory", [None, "1 MB"])
@pytest.mark.parametrize("name", ["a factor", "a power of it", "a given name", "exchange", "complex"])
def test_large_arrays_are_written_over_where_numbers_take_part(name: str, memory: str | None) -> None:
    """From some size on, steps are written over their operands, and loops are looked for."""
    d = derived(name, "grad")
    f = d.compile(memory=memory)
    rng = np.random.default_rng(0)
    size = 40_000
    rows = [rng.standard_normal(7) + (1j * rng.standard_normal(7) if is_complex(a.kind) else 0) for a in f.arguments]
    # zeros behind them leave the first entries as they are
    padded = [np.concatenate([x, np.zeros(size - 7)]) for x in rows]
    np.testing.assert_allclose(several(f(*padded))[0][:7], several(f(*rows))[0], rtol=1e-10)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_number_is_written_where_it_is_used_and_takes_no_memory(backend: str) -> None:
    d = derived("a given name", "grad")
    plan = d.plan(backend, value=True)
    assert sum(isinstance(step.op, ops.Named) for step in plan.steps) == 1
    assert all("named" not in cell for row in plan.rows() for cell in row)
    assert sum(line.count(".pi") for line in d.source(backend, value=True).splitlines()) == 3


@pytest.mark.sampled
@pytest.mark.parametrize("backend", ["numpy", "torch", "jax"])
def test_a_power_of_a_complex_zero_is_code(backend: str) -> None:
    d = cd.grad("(v::CV) -> (y::CV) -> imag((0 * sum(i, v(i)))^4 * v(0) + sum(l, abs(y(l)) * v(l)))")
    compile(d.source(backend, value=True), "source", "exec")
    program = """(v::(N{K}) -> C) -> (Y::Her{K}) -> imag(begin
      y = sum(β, pullback((y::(N{K}) -> C) -> sum(m, v(m)))(v, Y(0, 2))(β))
      y * (y * y * y)
    end + sum(l, abs(Y(l, l)) * v(l)))"""
    compile(cd.grad(program).source(backend, value=True), "source", "exec")


@pytest.mark.parametrize("backend", ["numpy", "torch", "jax"])
def test_a_complex_number_does_not_make_a_product_of_real_matrices_complex(backend: str) -> None:
    pytest.importorskip(backend)
    d = cd.grad("(A::RM{n, n}, z::C) -> (X::CM{n, n}) -> real(z * sum((i, j, k), A(i, j) * A(k, j) * X(i, k)))")
    assert "* (A @ A.T)" in d.source(backend)
    A, z = np.random.default_rng(1).normal(size=(3, 3)), np.complex128(1 + 2j)
    if backend == "torch":
        import torch

        found = d.compile(backend)(torch.asarray(A), torch.asarray(z), torch.zeros((3, 3), dtype=torch.complex128))
    else:
        found = d.compile()(A, z, np.zeros((3, 3), complex))
    assert np.allclose(np.asarray(found), z.conj() * (A @ A.T))
