"""A limit of memory is kept: what a call takes is measured, and what cannot be kept is refused before any work."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import combdiff as cd
from combdiff.arrays.liveness import peak
from combdiff.arrays.passes.loops.memory import bytes_of
from combdiff.command.cli import main
from combdiff.errors import BudgetError, UnsupportedError
from combdiff.terms.types import Map

Array = npt.NDArray[np.generic]

KERNEL = """(A::CM, B::CM) -> (x::CV, y::CV) -> begin
  K = (i, j) -> A(i, j) * x(i)' * y(j) + B(i, j)
  sum((i, j), abs2(K(i, j))^2)
end"""
PRODUCTS = """@space T begin type = (N, N, N) -> C end
(T::T) -> (X::CM, Y::RM, Z::CM) -> sum((i, j, k), abs2(sum(e, X(i, e) * Y(j, e) * Z(k, e)) - T(i, j, k)))"""
SPREAD = """@domain BZ begin base = I; periodic = true end
@domain X begin base = I; list = true; symmetric = true; contractable = false end
@space M begin type = (N, N, BZ, X) -> C end
@space W begin type = (X,) -> R end
@space Gauge begin type = (N, N, BZ) -> C end
(M::M, w::W) -> (U::Gauge) -> begin
  rho = (n, b::X) -> sum((k::BZ, p, q), U(p, n, k)' * M(p, q, k, b) * U(q, n, k + b))
  sum((n, b::X), w(b) * abs2(rho(n, b)))
end"""
DISTANCES = "(x::RM, w::RM) -> (y::RM) -> sum((a, b), w(a, b) * exp(-sum(c, (x(a, c) - y(b, c))^2)))"


def cplx(rng: np.random.Generator, *shape: int) -> Array:
    return np.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape))


def enough(refusal: BudgetError) -> int:
    """The limit that a refusal says would do."""
    return int(refusal.remedy.partition("memory=")[2].partition(" ")[0])


def kernel(rng: np.random.Generator, n: int, m: int) -> list[Array]:
    return [cplx(rng, n, m), cplx(rng, n, m), cplx(rng, n), cplx(rng, m)]


def products(rng: np.random.Generator, n: int, m: int) -> list[Array]:
    return [cplx(rng, n, m, n + 1), cplx(rng, n, 7), rng.normal(size=(m, 7)), cplx(rng, n + 1, 7)]


def spread(rng: np.random.Generator, n: int, m: int) -> list[Array]:
    offsets = np.array([-2, -1, 1, 2])
    return [cplx(rng, 6, 6, n * m, 4), rng.normal(size=4), cplx(rng, 6, 5, n * m), offsets]


def distances(rng: np.random.Generator, n: int, m: int) -> list[Array]:
    return [rng.normal(size=(n, 3)), rng.normal(size=(n, m)), rng.normal(size=(m, 3))]


PROGRAMS = {KERNEL: kernel, PRODUCTS: products, SPREAD: spread, DISTANCES: distances}


def measured(f: Callable[..., object], arrays: Sequence[Array]) -> tuple[int, list[Array]]:
    """The bytes that a call takes at its peak, and its results; the plan is made before."""
    f(*arrays)
    tracemalloc.start()
    results = f(*arrays)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return taken, [np.asarray(r) for r in (results if isinstance(results, tuple) else (results,))]


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=["kernel", "products", "spread", "distances"])
@pytest.mark.parametrize("share", [2, 3, 5])
def test_a_limit_is_kept(program: str, share: int) -> None:
    sizes = {KERNEL: (301, 257), PRODUCTS: (61, 67), SPREAD: (31, 41), DISTANCES: (253, 301)}[program]
    arrays = PROGRAMS[program](np.random.default_rng(0), *sizes)
    d = cd.grad(program)
    free, wanted = measured(d.compile(value=True), arrays)
    limit = free // min(share, 3) if program == SPREAD else free // share  # all of U and its likes are needed at once
    taken, found = measured(d.compile(value=True, memory=limit), arrays)
    assert taken <= limit
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * np.abs(other).max())


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(st.sampled_from(list(PROGRAMS)), st.integers(0, 9), st.integers(0, 9), st.integers(2, 40), st.booleans())
def test_code_within_a_limit_computes_the_same(program: str, n: int, m: int, share: int, value: bool) -> None:
    """Sizes of 0 and 1 too, and such that blocks do not divide them; or the limit is refused."""
    arrays = PROGRAMS[program](np.random.default_rng(n), max(n, 2 if program == SPREAD else 0), max(m, 1))
    d = cd.grad(program)
    wanted = d.compile(value=value)(*arrays)
    limit = 33_000 + 20_000 // share
    try:
        found = d.compile(value=value, memory=limit)(*arrays)
    except BudgetError as error:
        d.compile(value=value, memory=enough(error))(*arrays)
        return
    pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * (1 + np.abs(other).max(initial=0)))


@pytest.mark.slow
def test_a_plan_within_a_limit_says_its_peak() -> None:
    plan = cd.grad(KERNEL).plan(memory="3 MB", A=(300, 301), x=(300,), y=(301,))
    assert plan.loops and peak(plan).bytes <= 3_000_000
    assert "at a time" in str(plan) and "at once" in str(plan)


@pytest.mark.slow
def test_what_the_least_is_works() -> None:
    """The remedy's number is enough."""
    arrays = kernel(np.random.default_rng(0), 300, 301)
    with pytest.raises(BudgetError) as refusal:
        cd.grad(KERNEL).compile(memory="40 kB")(*arrays)
    assert "in one turn of a loop, at the step" in refusal.value.message
    least = enough(refusal.value)
    taken, _ = measured(cd.grad(KERNEL).compile(memory=least), arrays)
    assert taken <= least


WITHOUT_STEPS = {
    "ones": "(x::RV) -> sum(i, x(i))",
    "a number": "(x::RV) -> pi",
    "zeros": "(a::RV) -> (x::RV) -> sum(i, a(i))",
    "an argument": "(a::RV) -> (x::RV) -> sum(i, a(i) * x(i))",
    "a transposed argument": "(A::RM) -> (x::RM) -> sum((i, j), A(i, j) * x(j, i))",
    "a real number": "(x::R) -> x",
    "two of one": "(a::RV) -> (x::RV, y::RV) -> sum(i, exp(a(i)) * (x(i) + y(i)))",
    "a quadratic form": "(A::RM) -> (x::RV) -> sum((i, j), A(i, j) * x(j) * x(i))",
}


@pytest.mark.sampled
@pytest.mark.parametrize("how", [{}, {"value": True}, {"hvp": True}, {"value": True, "hvp": True}], ids=str)
@pytest.mark.parametrize("name", WITHOUT_STEPS)
def test_a_limit_that_no_call_keeps_is_refused_whatever_is_returned(name: str, how: dict[str, bool]) -> None:
    """Also where no step makes an array; and the limit of the remedy is kept."""
    d = cd.grad(WITHOUT_STEPS[name])
    f = d.compile(memory=1, **how)
    arrays = [np.ones((4,) * (len(a.kind.params) if isinstance(a.kind, Map) else 0)) for a in f.arguments]
    with pytest.raises(BudgetError, match="memory is limited to 1") as refusal:
        f(*arrays)
    d.compile(memory=enough(refusal.value), **how)(*arrays)
    with pytest.raises(BudgetError):
        d.source(memory=1, **how)


@pytest.mark.parametrize("name", ["ones", "an argument", "a transposed argument", "two of one"])
def test_results_that_are_copies_count(name: str) -> None:
    d = cd.grad(WITHOUT_STEPS[name])
    f = d.compile()
    arrays = [np.ones((300,) * len(a.kind.params)) for a in f.arguments if isinstance(a.kind, Map)]
    taken, found = measured(f, arrays)
    results = sum(r.nbytes for r in found)
    assert results <= taken
    with pytest.raises(BudgetError, match=f"the results alone take {results} bytes"):
        d.compile(memory=results - 1)(*arrays)


def test_results_that_are_too_large_are_refused_before_any_work() -> None:
    calls = []

    def g(x: Array) -> Array:
        calls.append(x)
        return x

    f = cd.grad("(g::RF) -> (A::RM) -> sum((i, j), A(i, j)^2 * g(1))").compile(memory="1 MB")
    with pytest.raises(BudgetError, match="the results alone take 8000000 bytes"):
        f(np.ones((1000, 1000)), g=g)
    assert not calls


@pytest.mark.slow
def test_a_hessian_product_within_a_limit() -> None:
    rng = np.random.default_rng(0)
    x, w, y, k = (
        rng.normal(size=(200, 3)),
        rng.normal(size=(200, 251)),
        rng.normal(size=(251, 3)),
        rng.normal(size=(251, 3)),
    )
    d = cd.grad(DISTANCES)
    value, gradient, hvp = d.compile(value=True, hvp=True)(x, w, y)  # type: ignore[misc]
    f = d.compile(value=True, hvp=True, memory="3.1 MB")
    f(x, w, y)[-1](k)  # type: ignore[index]
    tracemalloc.start()
    results = f(x, w, y)
    product = results[-1](k)  # type: ignore[index]
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken <= 3_100_000
    for one, other in zip((*results[:-1], product), (value, gradient, hvp(k)), strict=True):  # type: ignore[index]
        np.testing.assert_allclose(one, other, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["jax", "dask"])
def test_libraries_without_loops_refuse_a_limit(backend: str) -> None:
    pytest.importorskip(backend)
    with pytest.raises(UnsupportedError, match="has none"):
        cd.grad(KERNEL).compile(backend, memory="1 GB")
    with pytest.raises(UnsupportedError, match="has none"):
        cd.grad(KERNEL).plan(backend, memory="1 GB")


@pytest.mark.slow
def test_torch_within_a_limit() -> None:
    torch = pytest.importorskip("torch")
    arrays = distances(np.random.default_rng(0), 101, 103)
    d = cd.grad(DISTANCES)
    f = d.compile("torch", value=True, memory="200 kB")
    found = f(*map(torch.as_tensor, arrays))
    assert "for p in range" in list(f._known)[-1]
    for one, other in zip(found, d.compile(value=True)(*arrays), strict=True):  # type: ignore[call-overload]
        np.testing.assert_allclose(np.asarray(one), other, atol=1e-10)


@pytest.mark.parametrize("memory", ["", "two", "-1", "0", 0, -5, 1.5, True, "1 XB", "1e400"])
def test_what_is_no_amount_is_refused(memory: object) -> None:
    with pytest.raises(BudgetError, match="which is no amount"):
        bytes_of(memory)  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_command_line_takes_a_limit(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path) + "/kernel.cd"  # a path of pytest's
    with open(file, "w", encoding="utf-8") as stream:
        stream.write(DISTANCES)
    shapes = ["--shape", "x=1000,3", "--shape", "y=1001,3"]
    assert main(["plan", file, "--memory", "2 MB", *shapes]) == 0
    assert "at a time" in capsys.readouterr().out
    assert main(["grad", file, "--format", "python", "--memory", "2 MB", *shapes]) == 0
    assert "block = slice(" in capsys.readouterr().out
    assert main(["plan", file, "--memory", "1 kB", *shapes]) == 2
    assert "remedy: give memory=" in capsys.readouterr().err


@pytest.mark.slow
def test_loops_that_would_wait_for_one_another_are_not_tried() -> None:
    """Without the first loop, the second one needs an array that is made of what it makes."""
    d = cd.pullback("""(P::Her) -> (z::CV) -> (m -> imag(z(m)), (f::N, i::N) -> begin
        h = (n::N, j) -> begin
            g = (Y::CM) -> z(n) * z(i)
            g((w, n::N) -> indicator(f, i, z(w)) * P(w, n)) + imag(P(n, j))
        end'
        h(f, i) * tanh(abs(z(f)))
    end)""")
    rng = np.random.default_rng(0)
    n = 3
    P, B = (rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n)) for _ in range(2))
    z, a = rng.standard_normal(n) + 1j * rng.standard_normal(n), rng.standard_normal(n)
    with pytest.raises(BudgetError, match="at once"):
        d.compile(memory=1000)(P + P.conj().T, z, a, B)
