"""Systems with one matrix: it is factorised once, for value and gradient, and in every library."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.text import read
from combdiff.arrays.verify import PlanError, verify
from combdiff.emit.emit import emit, spelling_of
from combdiff.errors import ArrayError, UnsupportedError
from combdiff.run.executing import compile_source
from tests.emit.array_libraries import Numbers, library

__all__ = ["library"]

PLAIN = """(A::RM, b::RV) -> begin
  x = inverse((v::RV) -> i -> sum(j, A(i, j) * v(j)))(b)
  sum(i, x(i)^2)
end"""
COMPLEX = PLAIN.replace("::R", "::C").replace("x(i)^2", "abs2(x(i))")
RIDGE = """(X::RM, b::RV, y::RV) -> (c::R) -> begin
  w = inverse((v::RV) -> d -> sum((n, e), X(n, d) * X(n, e) * v(e)) + exp(c) * v(d))(b)
  sum(n, (y(n) - sum(d, X(n, d) * w(d)))^2)
end"""
CUBIC = """(A::RM, b::RV) -> begin
  u = root((u::RV) -> i -> sum(j, A(i, j) * u(j)) + u(i)^3 - b(i))
  sum(i, u(i)^2)
end"""
TENSOR = """(T::(N{n}, N{m}, N{n}, N{m}) -> R, b::RM{n, m}) -> begin
  x = inverse((v::RM) -> (i, a) -> sum((j, b), T(i, a, j, b) * v(j, b)))(b)
  sum((i, a), x(i, a)^4)
end"""
ALL = {"plain": PLAIN, "complex": COMPLEX, "ridge": RIDGE, "cubic": CUBIC, "tensor": TENSOR}


def factorisations(d: cd.derivation.Derivation, **options: object) -> list[str]:
    steps = d.plan(**options).steps
    whole = [s for s in steps if isinstance(s.op, ops.Solve) and not isinstance(s.operands[0].op, ops.Factors)]
    return ["factors"] * sum(isinstance(s.op, ops.Factors) for s in steps) + ["solve"] * len(whole)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plain", "complex", "ridge", "tensor"])
def test_value_and_gradient_of_a_system_factorise_once(name: str) -> None:
    assert factorisations(cd.grad(ALL[name]), value=True) == ["factors"]
    assert factorisations(cd.hvp(ALL[name])) == ["factors"]


@pytest.mark.slow
def test_one_system_is_solved_as_it_is() -> None:
    d = cd.grad("(A::Sym) -> (b::RV) -> sum(i, inverse((v::RV) -> i -> sum(j, A(i, j) * v(j)))(b)(i) * b(i))")
    assert factorisations(d, value=True) == ["solve"] and d.check()


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_results_are_right(name: str) -> None:
    assert cd.grad(ALL[name]).check()
    assert cd.hvp(ALL[name]).check()


@pytest.mark.sampled
@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_value_and_gradient_are_those_of_two_solutions(n: int) -> None:
    rng = np.random.default_rng(n)
    A, b = rng.normal(size=(n, n)) + 1j * rng.normal(size=(n, n)), rng.normal(size=n) + 1j * rng.normal(size=n)
    x = np.linalg.solve(A, b)
    y = 2 * np.linalg.solve(A.conj().T, x)
    value, by_A, by_b = cd.grad(COMPLEX).compile(value=True)(A, b)
    np.testing.assert_allclose(value, np.vdot(x, x).real, rtol=1e-10)
    np.testing.assert_allclose(by_A, -np.outer(y, x.conj()), rtol=1e-8)
    np.testing.assert_allclose(by_b, y, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_a_singular_matrix_is_told() -> None:
    with pytest.raises(ArrayError, match=r"no unique solution.*Singular"):
        cd.grad(PLAIN).compile(value=True)(np.ones((3, 3)), np.ones(3))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plain", "complex", "tensor"])
def test_the_libraries_agree(name: str, library: Numbers) -> None:
    rng = np.random.default_rng(2)
    shapes = [(2, 3, 2, 3), (2, 3)] if name == "tensor" else [(4, 4), (4,)]
    given = [rng.normal(size=s) + (1j * rng.normal(size=s) if name == "complex" else 0) for s in shapes]
    d = cd.grad(ALL[name])
    if library.name == "dask":
        with pytest.raises(UnsupportedError, match="solves equations"):
            d.source("dask")
        return
    found = d.compile(library.name, value=True)(*map(library.to, given))
    for f, expected in zip(found, d.compile(value=True)(*given), strict=True):
        np.testing.assert_allclose(library.back(f), expected, rtol=1e-9)


POSITIVE = """
n = Domain(name='n')
A: {kind}[n, n] = input(Number(complex={complex}))
b: {kind}[n] = input(Number(complex={complex}))
F: {kind}[n, n] = factors(A, positive=True)
x: {kind}[n] = solve(F, b)
y: {kind}[n] = solve(F, x, adjoint=True)
return (x, y)
"""


@pytest.mark.sampled
@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("backend", ["numpy", "jax", "torch"])
def test_a_positive_matrix_has_one_factor(backend: str, kind: str) -> None:
    library = pytest.importorskip(backend)
    if backend == "jax":
        library.config.update("jax_enable_x64", True)
    plan = read(POSITIVE.format(kind=kind, complex=kind == "complex"))
    verify(plan)
    f = compile_source(emit(plan, spelling_of(backend)))
    rng = np.random.default_rng(0)
    B, b = (rng.normal(size=s) + (1j * rng.normal(size=s) if kind == "complex" else 0) for s in ((5, 5), (5,)))
    A = B @ B.conj().T + np.eye(5)
    x, y = f(*(library.tensor(a) for a in (A, b))) if backend == "torch" else f(A, b)
    np.testing.assert_allclose(np.asarray(x), np.linalg.solve(A, b), rtol=1e-9)
    np.testing.assert_allclose(np.asarray(y), np.linalg.solve(A, np.linalg.solve(A, b)), rtol=1e-8)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("x: real[n] = solve(A, b, adjoint=True)", "adjoint of what is no product"),
        ("x: real[m] = solve(A, b)", "not from the solution's axes"),
        ("x: real[n] = factors(b)", "square matrix"),
        ("x: real[n, n] = factors(C)", "square matrix|ranges over"),
    ],
)
def test_the_verifier_sees_systems_that_do_not_fit(line: str, said: str) -> None:
    plan = read(
        "n = Domain(name='n')\nm = Domain(name='m')\nA: real[n, n] = input(Number(complex=False))\n"
        "C: real[n, m] = input(Number(complex=False))\n"
        f"b: real[n] = input(Number(complex=False))\n{line}\nreturn x"
    )
    with pytest.raises(PlanError, match=said):
        verify(plan)


@pytest.mark.slow
def test_a_list_of_offsets_that_a_matrix_reads_is_an_argument() -> None:
    text = """
        @domain Ring begin base = I; list = true; symmetric = true end
        (a::(Ring) -> R) -> (b::(Ring) -> R) -> sum(i, b(i) *
          inverse((z::(Ring) -> R) -> i -> sum(w, a(-i) * z(w)) + 6 * z(i))(b)(i))
    """
    rng = np.random.default_rng(0)
    a, b, k = rng.normal(size=(3, 3))
    ring = np.array([-1, 0, 1])
    _, gradient, hvp = cd.grad(text).compile(value=True, hvp=True)(a, b, ring)
    A = a[::-1, None] * np.ones(3) + 6 * np.eye(3)
    np.testing.assert_allclose(gradient, np.linalg.solve(A, b) + np.linalg.solve(A.T, b))
    np.testing.assert_allclose(hvp(k), np.linalg.solve(A, k) + np.linalg.solve(A.T, k))
