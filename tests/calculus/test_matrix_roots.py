"""Roots and exponentials of matrices: against SciPy, differences and mpmath, in all modes and libraries."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import combdiff as cd
from combdiff.errors import ArrayError, CombDiffError
from combdiff.meaning.evaluate import evaluate
from tests.emit.array_libraries import Numbers, library
from tests.promises import assert_holds, gradient_by
from tests.thinned import thinned

__all__ = ["library"]

SIZES = (0, 1, 2, 3, 5, 7)


def root(A: Any) -> Any:
    return scipy.linalg.sqrtm(A) if A.size else A


def exponential(A: Any) -> Any:
    return scipy.linalg.expm(A)


Objective = Callable[..., float]
ROOTS: dict[str, tuple[str, Objective]] = {
    "trace": ("(A::RM{n, n}) -> tr(sqrtm(A))", lambda A: np.trace(root(A))),
    "weighted": (
        "(B::RM{n, n}) -> (A::RM{n, n}) -> sum((i, j), sqrtm(A)(i, j) * B(i, j)^2)",
        lambda B, A: (root(A) * B**2).sum(),
    ),
    "squared": ("(A::RM{n, n}) -> sum((i, j), sqrtm(A)(i, j)^2)", lambda A: (root(A) ** 2).sum()),
    "of a map": (
        "(x::RM{n, m}) -> tr(sqrtm(x * x' + I))",
        lambda x: np.trace(root(x @ x.T + np.eye(len(x)))),
    ),
    "inverse root": (
        "(H::RM{n, n}) -> (S::Sym{n}) -> tr(invsqrtm(S) * H * invsqrtm(S) * H)",
        lambda H, S: np.trace(np.linalg.solve(root(S), H) @ np.linalg.solve(root(S), H)),
    ),
    "complex": (
        "(B::CM{n, n}) -> (A::CM{n, n}) -> abs2(tr(sqrtm(A) * B))",
        lambda B, A: abs(np.trace(root(A) @ B)) ** 2,
    ),
    "Hermitian": (
        "(B::CM{n, n}) -> (A::Her{n}) -> abs2(tr(sqrtm(A) * B))",
        lambda B, A: abs(np.trace(root(A) @ B)) ** 2,
    ),
}
EXPONENTIALS: dict[str, tuple[str, Objective]] = {
    "weighted": (
        "(B::RM{n, n}) -> (A::RM{n, n}) -> sum((i, j), expm(A)(i, j) * B(i, j))",
        lambda B, A: (exponential(A) * B).sum(),
    ),
    "squared": ("(A::RM{n, n}) -> sum((i, j), expm(A)(i, j)^2)", lambda A: (exponential(A) ** 2).sum()),
    "complex": (
        "(H::Her{n}, x::CV{n}) -> (t::R) -> abs2(x' * expm(im * t * H) * x)",
        lambda H, x, t: abs(x.conj() @ exponential(1j * t * H) @ x) ** 2,
    ),
    "trace": ("(A::CM{n, n}) -> abs2(tr(expm(A)))", lambda A: abs(np.trace(exponential(A))) ** 2),
}
ALL = {**{f"root, {name}": row for name, row in ROOTS.items()}, **{f"exp, {n}": row for n, row in EXPONENTIALS.items()}}


def given(text: str, n: int) -> list[Any]:
    """Random arrays, in order: those called A, S and H are square, and A and S far from eigenvalues below 0."""
    rng = np.random.default_rng(n)
    found: list[Any] = []
    for argument in cd.grad(text).compile().arguments:
        if argument.name == "t":
            found.append(0.7)
            continue
        shape = {"x": (n, n + 1) if "RM{n, m}" in text else (n,)}.get(argument.name, (n, n))
        over_complex = any(f"{argument.name}::{word}" in text for word in ("CM", "CV", "Her"))
        a = rng.normal(size=shape) + (1j * rng.normal(size=shape) if over_complex else 0)
        if f"{argument.name}::Her" in text or f"{argument.name}::Sym" in text:
            a = (a + a.conj().T) / 2
        found.append(a + 2 * n * np.eye(n) if argument.name in "AS" and "sqrtm" in text else a)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_values_and_gradients_are_those_of_scipy(name: str) -> None:
    text, objective = ALL[name]
    d = cd.grad(text)
    f = d.compile(value=True)
    for n in SIZES:
        arrays = given(text, n)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            value, gradient = f(*arrays)
        np.testing.assert_allclose(value, objective(*arrays), rtol=1e-12, atol=1e-14)
        if n < 4:
            largest = np.abs(gradient).max(initial=0)
            slopes = gradient_by(-1, objective, arrays)
            np.testing.assert_allclose(gradient, slopes, rtol=1e-7, atol=1e-8 * (1 + largest))


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_hessian_products_are_slopes_of_gradients(name: str) -> None:
    text, _ = ALL[name]
    d = cd.grad(text)
    f, both = d.compile(), d.compile(hvp=True)
    for n in (1, 2, 3):
        *others, A = given(text, n)
        k = np.conj(given(text, n)[-1])[..., ::-1] if np.ndim(A) else 1.0
        if np.ndim(k) and ("Sym" in text or "Her" in text):
            k = (k + k.conj().T) / 2
        h = 1e-4
        low2, low, high, high2 = (f(*others, A + m * h * k) for m in (-2, -1, 1, 2))
        slope = (low2 - 8 * low + 8 * high - high2) / (12 * h)
        np.testing.assert_allclose(both(*others, A)[-1](k), slope, rtol=1e-7, atol=1e-8 * (1 + np.abs(slope).max()))


@pytest.mark.slow
def test_functions_of_functions_of_one_matrix_bind_its_indices_apart() -> None:
    d = cd.grad("(K::Sym) -> logabsdet(invsqrtm(K * K' + I))")
    f = d.compile(value=True)
    for n in (1, 2, 3):
        K = np.random.default_rng(n).standard_normal((n, n))
        K = K + K.T
        value, gradient = f(K)
        assert value == pytest.approx(-np.linalg.slogdet(K @ K + np.eye(n))[1] / 2)
        np.testing.assert_allclose(gradient, -np.linalg.solve(K @ K + np.eye(n), K), rtol=1e-9, atol=1e-12)


@pytest.mark.sampled
@pytest.mark.parametrize("mode", [cd.grad, cd.jvp, cd.pullback, cd.simplified])
@pytest.mark.parametrize("name", ["root, weighted", "root, Hermitian", "exp, weighted"])
def test_derivatives_hold(name: str, mode: Callable[[str], Any]) -> None:
    assert_holds(mode(ALL[name][0]))


@pytest.mark.sampled
@pytest.mark.parametrize("number", ["R", "C"])
def test_the_derivative_of_a_root_moves_with_the_matrix_and_with_its_direction(number: str) -> None:
    """Of sqrtm(A, K) by differences, forwards and backwards."""
    matrices = f"A::{number}M{{n, n}}, K::{number}M{{n, n}}"
    text = f"(B::{number}M{{n, n}}) -> ({matrices}) -> real(sum((i, j), sqrtm(A, K)(i, j) * B(i, j)))"
    rng = np.random.default_rng(5)
    over_complex = 1j if number == "C" else 0
    B, A, K, dA, dK = rng.normal(size=(5, 3, 3)) + over_complex * rng.normal(size=(5, 3, 3))
    A = A + 6 * np.eye(3)

    def objective(B: Any, A: Any, K: Any) -> float:
        return float((scipy.linalg.solve_sylvester(root(A), root(A), K) * B).sum().real)

    of_A, of_K = cd.grad(text).compile()(B, A, K)
    np.testing.assert_allclose(of_A, gradient_by(1, objective, [B, A, K]), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(of_K, gradient_by(2, objective, [B, A, K]), rtol=1e-7, atol=1e-9)
    pushed = cd.jvp(text).compile()(B, A, K, dA, dK)
    assert np.isclose(pushed, (of_A.conj() * dA + of_K.conj() * dK).sum().real, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("mode", [cd.grad, cd.hvp, cd.jvp, cd.pullback, cd.jacobian, cd.simplified])
@pytest.mark.parametrize("name", thinned(ALL))
def test_derivatives_hold_in_every_mode(name: str, mode: Callable[[str], Any]) -> None:
    assert_holds(mode(ALL[name][0]))


@pytest.mark.slow
@pytest.mark.parametrize("name", thinned(ALL))
def test_libraries_agree_with_numpy(library: Numbers, name: str) -> None:
    if library.name == "dask":
        pytest.skip("Dask has no functions of matrices")
    text, _ = ALL[name]
    d = cd.grad(text)
    for n in (0, 1, 3):
        arrays = given(text, n)
        theirs = d.compile(library.name, value=True)(*map(library.to, arrays))
        for found, wanted in zip(theirs, d.compile(value=True)(*arrays), strict=True):
            scale = 1 + np.abs(wanted).max(initial=0)
            np.testing.assert_allclose(library.back(found) / scale, wanted / scale, rtol=1e-8, atol=1e-9)


FORMULAS = {
    "(A::RM) -> tr(sqrtm(A))": "1/2 * inv(sqrtm(A))(j, i)",
    "(A::Sym) -> tr(sqrtm(A))": "1/2 * inv(sqrtm(A))(i, j)",
    "(A::RM) -> tr(expm(A))": "expm(A)(j, i)",
}


@pytest.mark.parametrize("text", FORMULAS)
def test_along_the_identity_the_derivative_is_a_function_of_the_matrix(text: str) -> None:
    assert str(cd.grad(text)).endswith(FORMULAS[text])


@pytest.mark.parametrize("text", ["(A::RM) -> sqrtm(A)", "(A::RM, K::RM) -> expm(A, K)", "(A::RM) -> sqrtm(A, A)"])
def test_results_read_back(text: str) -> None:
    printed = str(cd.simplified(text))
    assert str(cd.simplified(printed)) == printed


@pytest.mark.slow
def test_the_root_of_a_declared_matrix_comes_from_eigenvectors_that_are_found_once() -> None:
    source = cd.grad(ROOTS["inverse root"][0]).source(value=True, hvp=True)
    assert source.count("np.linalg.eigh(S)") == 1 and "hermitian_sqrtm_along(" in source
    assert "hermitian_sqrtm" in cd.grad(ROOTS["of a map"][0]).source()
    assert "hermitian" not in cd.grad(ROOTS["weighted"][0]).source()
    defined = "(S::SPD{n}) -> (C::RM{n, m}) -> begin Z = C' * S * C + I; W = Z + Z^2; sum(sqrtm(W)) + sum(W) end"
    assert "hermitian_sqrtm_along(" in cd.grad(defined).source() and cd.grad(defined).check()
    assert "kind='sqrtm', hermitian=True" in str(cd.grad(ROOTS["inverse root"][0]).plan(ir=True))


@pytest.mark.parametrize("declared", ["A::Sym{n}", "A::RM{n, n}"])
def test_a_real_matrix_with_an_eigenvalue_below_zero_has_no_root(declared: str) -> None:
    f = cd.simplified(f"({declared}) -> sqrtm(A)").compile()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isnan(f(np.diag([1.0, -1.0]))).any()
        np.testing.assert_allclose(f(np.diag([4.0, 0.0])), np.diag([2.0, 0.0]), atol=1e-15)
        np.testing.assert_allclose(f(np.ones((2, 2))), np.ones((2, 2)) / np.sqrt(2), rtol=1e-7)


@pytest.mark.parametrize("declared", ["A::Her{n}", "A::CM{n, n}"])
def test_a_complex_root_below_zero_is_that_from_above(declared: str) -> None:
    f = cd.simplified(f"({declared}) -> sqrtm(A)").compile()
    np.testing.assert_allclose(f(np.diag([1.0, -1.0]) + 0j), np.diag([1, 1j]), atol=1e-15)


def test_a_stack_of_matrices_is_one_call() -> None:
    d = cd.grad("(A::(N{m}, N{n}, N{n}) -> R) -> sum(k, tr(sqrtm((i, j) -> A(k, i, j)))^2)")
    assert d.source(value=True).count(" sqrtm(A)") == 1
    A = np.random.default_rng(3).normal(size=(4, 3, 3)) + 6 * np.eye(3)
    expected = [np.trace(root(a)) * np.linalg.inv(root(a)).T for a in A]
    np.testing.assert_allclose(d.compile()(A), expected, rtol=1e-10)


def test_roots_keep_their_digits() -> None:
    """Eigenvalues from 1 down to 1e-12, against 50 digits."""
    mpmath = pytest.importorskip("mpmath")
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    S, B = Q @ np.diag(np.logspace(0, -12, 4)) @ Q.T, np.random.default_rng(1).normal(size=(4, 4))
    S = (S + S.T) / 2
    with mpmath.workdps(50):
        values, vectors = mpmath.eigsy(mpmath.matrix(S.tolist()))
        exact = vectors * mpmath.diag([mpmath.sqrt(v) for v in values]) * vectors.T
        expected = float(sum(exact[i, j] * B[i, j] for i in range(4) for j in range(4)))
    for declared in ("S::Sym{n}", "S::RM{n, n}"):
        found = cd.simplified(f"(B::RM{{n, n}}, {declared}) -> sum((i, j), sqrtm(S)(i, j) * B(i, j))").compile()(B, S)
        assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.sampled
@pytest.mark.parametrize("scale", [1.0, 1e-8, 30.0])
def test_exponentials_keep_their_digits(scale: float) -> None:
    mpmath = pytest.importorskip("mpmath")
    A, B = scale * np.random.default_rng(0).normal(size=(3, 3)), np.random.default_rng(1).normal(size=(3, 3))
    with mpmath.workdps(60):
        exact = mpmath.expm(mpmath.matrix(A.tolist()))
        expected = float(sum(exact[i, j] * B[i, j] for i in range(3) for j in range(3)))
    text = "(B::RM{n, n}) -> (A::RM{n, n}) -> sum((i, j), expm(A)(i, j) * B(i, j))"
    value, gradient = cd.grad(text).compile(value=True)(B, A)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient, scipy.linalg.expm_frechet(A.T, B, compute_expm=False), rtol=1e-9)
    np.testing.assert_allclose(evaluate(cd.grad(text).term, {})(B)(A), gradient, rtol=1e-9)


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["sqrtm", "expm", "hermitian_sqrtm", "matrix"])
def test_arguments_may_have_the_names_of_functions(name: str) -> None:
    d = cd.grad(f"({name}::Sym{{n}}) -> sum((i, j), {name}(i, j)) + tr(invsqrtm((i, j) -> {name}(i, j)))")
    S = np.array([[2.0, 0.5], [0.5, 3.0]])
    expected = 1 - 0.5 * np.linalg.matrix_power(np.linalg.inv(root(S)), 3)
    np.testing.assert_allclose(d.compile()(S), expected, rtol=1e-12)


@pytest.mark.slow
def test_third_derivatives_of_an_exponential() -> None:
    """tr exp(A) along K twice, differentiated once more: by differences of what SciPy finds."""
    text = "(K::RM{n, n}) -> (A::RM{n, n}) -> sum((i, j), expm(A, K)(i, j) * expm(A, K)(j, i))"
    K, A, k = np.random.default_rng(4).normal(size=(3, 3, 3))

    def objective(K: Any, A: Any) -> float:
        moved = scipy.linalg.expm_frechet(A, K, compute_expm=False)
        return float(np.trace(moved @ moved))

    f = cd.grad(text).compile()
    np.testing.assert_allclose(f(K, A), gradient_by(1, objective, [K, A]), rtol=1e-7)
    h = 1e-4
    slope = (8 * (f(K, A + h * k) - f(K, A - h * k)) - (f(K, A + 2 * h * k) - f(K, A - 2 * h * k))) / (12 * h)
    np.testing.assert_allclose(cd.grad(text).compile(hvp=True)(K, A)[-1](k), slope, rtol=1e-7, atol=1e-7)


WRONG = {
    "(A::RM) -> tr(sqrt(A))": r"sqrtm\(A\)",
    "(A::RM) -> tr(exp(A))": r"expm\(A\)",
    "(A::RM) -> tr(A^(1/2))": r"sqrtm\(A\) for A\^\(1/2\)",
    "(A::RM) -> tr(invsqrtm(A, A))": r"write invsqrtm\(A\)",
    "(x::RV) -> sqrtm(x)": r"write sqrtm\(A\)",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_told_with_a_remedy(text: str) -> None:
    with pytest.raises(CombDiffError, match=WRONG[text]):
        cd.grad(text)


def test_an_inverse_root_of_a_singular_matrix_is_refused_when_it_is_met() -> None:
    f = cd.simplified("(S::Sym) -> invsqrtm(S)").compile()
    with pytest.raises(ArrayError, match="singular"):
        f(np.zeros((2, 2)))
