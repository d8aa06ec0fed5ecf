"""Eigenvalues, singular values, triangular factors: against NumPy, differences, mpmath, in all modes and libraries."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.errors import ArrayError, CombDiffError
from combdiff.meaning.evaluate import evaluate
from tests.emit.array_libraries import Numbers, library
from tests.promises import assert_holds, gradient_by
from tests.thinned import thinned

__all__ = ["library"]

SIZES = (1, 2, 3, 5)


def half(A: Any) -> Any:
    return (A + A.conj().T) / 2


def eigvals(A: Any) -> Any:
    return np.linalg.eigvalsh(half(A))


def factor(A: Any) -> Any:
    return np.linalg.cholesky(half(A))


def svdvals(A: Any) -> Any:
    return np.linalg.svd(A)[1]


def weights(A: Any) -> Any:
    i, j = np.indices(A.shape)
    return np.cos(i) + 2 * np.sin(j)


Objective = Callable[..., float]
ALL: dict[str, tuple[str, Objective]] = {
    "eigvals, power": ("(A::Sym) -> sum(i, eigvals(A)(i)^3)", lambda A: (eigvals(A) ** 3).sum()),
    "eigvals, complex": (
        "(A::Her) -> sum(i, log(1 + exp(eigvals(A)(i))))",
        lambda A: np.log1p(np.exp(eigvals(A))).sum(),
    ),
    "eigvals, weighted": (
        "(A::Her{n}) -> sum(i, sin(i) * eigvals(A)(i)^2)",
        lambda A: (np.sin(np.arange(len(A))) * eigvals(A) ** 2).sum(),
    ),
    "eigvals, square of a sum": (
        "(A::Sym) -> sum(i, exp(eigvals(A)(i)))^2",
        lambda A: np.exp(eigvals(A)).sum() ** 2,
    ),
    "eigvals, of a product": (
        "(B::RM{n, m}) -> sum(i, sqrt(eigvals(B * B' + I)(i)))",
        lambda B: np.sqrt(eigvals(B @ B.T + np.eye(len(B)))).sum(),
    ),
    "eigvals, named": (
        "(A::Sym{n}) -> begin lam = eigvals(A); sum(i, lam(i)^2) * sum(i, lam(i)) end",
        lambda A: (eigvals(A) ** 2).sum() * eigvals(A).sum(),
    ),
    "eigvals, all pairs": (
        "(A::Sym{n}) -> sum((i, j), exp(-(eigvals(A)(i) - eigvals(A)(j))^2))",
        lambda A: np.exp(-((eigvals(A)[:, None] - eigvals(A)) ** 2)).sum(),
    ),
    "svdvals, power": ("(A::RM{m, n}) -> sum(i, svdvals(A)(i)^3)", lambda A: (svdvals(A) ** 3).sum()),
    "svdvals, nuclear norm": ("(A::CM{m, n}) -> sum(i, svdvals(A)(i))", lambda A: svdvals(A).sum()),
    "svdvals, weighted": (
        "(A::CM{n, n}) -> sum(i, cos(i) * svdvals(A)(i)^2)",
        lambda A: (np.cos(np.arange(len(A))) * svdvals(A) ** 2).sum(),
    ),
    "cholesky, squares": (
        "(A::Sym{n}) -> sum((i, j), (cos(i) + 2 * sin(j)) * cholesky(A)(i, j)^2)",
        lambda A: (weights(A) * factor(A) ** 2).sum(),
    ),
    "cholesky, complex": (
        "(A::Her{n}) -> sum((i, j), (cos(i) + 2 * sin(j)) * abs2(cholesky(A)(i, j) + im))",
        lambda A: (weights(A) * abs(factor(A) + 1j) ** 2).sum(),
    ),
    "cholesky, diagonal": (
        "(B::CM{n, m}) -> sum(i, log(real(cholesky(B * B' + I)(i, i))))",
        lambda B: np.log(np.diag(factor(B @ B.conj().T + np.eye(len(B)))).real).sum(),
    ),
    "cholesky, solved": (
        "(b::RV{n}) -> (A::Sym{n}) -> norm(cholesky(A) \\ b)^4",
        lambda b, A: np.linalg.norm(np.linalg.solve(factor(A), b)) ** 4,
    ),
}


def given(text: str, n: int, seed: int = 0) -> list[Any]:
    """Random arrays in order; those that are declared symmetric are, and positive definite where factors are taken."""
    rng = np.random.default_rng((seed, n))
    found: list[Any] = []
    for argument in cd.grad(text).compile().arguments:
        name = argument.name
        shape = (n,) if f"{name}::RV" in text else (n, n) if f"{name}::CM{{n, n}}" in text else (n + 1, n)
        if name == "B":
            shape = (n, n + 1)
        over_complex = any(f"{name}::{word}" in text for word in ("CM", "Her"))
        declared = f"{name}::Sym" in text or f"{name}::Her" in text
        shape = (n, n) if declared else shape
        a = rng.normal(size=shape) + (1j * rng.normal(size=shape) if over_complex else 0)
        a = half(a) if declared else a
        found.append(a + (2 * n + 1) * np.eye(n) if declared and "cholesky" in text else a)
    return found


def slope(f: Callable[[Any], Any], A: Any, k: Any, h: float = 1e-4) -> Any:
    return (8 * (f(A + h * k) - f(A - h * k)) - (f(A + 2 * h * k) - f(A - 2 * h * k))) / (12 * h)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_values_gradients_and_hessian_products(name: str) -> None:
    text, objective = ALL[name]
    d = cd.grad(text)
    alone, both, product = d.compile(), d.compile(value=True), d.compile(hvp=True)
    pushed = cd.jvp(text).compile()
    for n in SIZES:
        *others, A = given(text, n)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            value, gradient = both(*others, A)
        np.testing.assert_allclose(value, objective(*others, A), rtol=1e-12, atol=1e-13)
        scale = 1 + np.abs(gradient).max()
        np.testing.assert_allclose(gradient, gradient_by(-1, objective, [*others, A]), rtol=1e-7, atol=1e-8 * scale)
        k = given(text, n, seed=1)[-1][::-1, ::-1]
        k = half(k) if "Sym" in text or "Her" in text else k
        found = product(*others, A)[-1](k)
        wanted = slope(lambda B, given=others: alone(*given, B), A, k)
        np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-7 * (1 + np.abs(wanted).max()))
        np.testing.assert_allclose(pushed(*others, A, k), (gradient.conj() * k).sum().real, rtol=1e-10, atol=1e-12)


@pytest.mark.sampled
@pytest.mark.parametrize("name", ALL)
def test_the_meaning_is_that_of_the_code(name: str) -> None:
    """Rotations of Jacobi's, and factors row by row, share nothing with LAPACK; also where A is not symmetric."""
    text, _ = ALL[name]
    *others, A = given(text, 3)
    meant = evaluate(cd.grad(text).term, {})
    for x in others:
        meant = meant(x)
    np.testing.assert_allclose(meant(A), cd.grad(text).compile()(*others, A), rtol=1e-9, atol=1e-10)


@pytest.mark.slow
def test_gradients_of_a_hermitian_matrix_are_hermitian() -> None:
    for name, (text, _) in ALL.items():
        if "Her" in text or "Sym" in text:
            gradient = cd.grad(text).compile()(*given(text, 3))
            np.testing.assert_allclose(gradient, gradient.conj().T, atol=1e-12, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("mode", [cd.grad, cd.hvp, cd.jvp, cd.pullback, cd.simplified])
@pytest.mark.parametrize("name", thinned(ALL))
def test_derivatives_hold_in_every_mode(name: str, mode: Callable[[str], Any]) -> None:
    assert_holds(mode(ALL[name][0]))


@pytest.mark.sampled
@pytest.mark.parametrize("mode", [cd.grad, cd.hvp, cd.jvp])
@pytest.mark.parametrize("name", ["eigvals, complex", "svdvals, power", "cholesky, squares"])
def test_derivatives_hold(name: str, mode: Callable[[str], Any]) -> None:
    assert_holds(mode(ALL[name][0]))


@pytest.mark.slow
@pytest.mark.parametrize("name", thinned(ALL))
def test_libraries_agree_with_numpy(library: Numbers, name: str) -> None:
    text, _ = ALL[name]
    d = cd.grad(text)
    if library.name == "dask":
        with pytest.raises(CombDiffError, match="does not support for dask"):
            d.source("dask")
        return
    for n in (1, 3):
        arrays = given(text, n)
        theirs = d.compile(library.name, value=True)(*map(library.to, arrays))
        for found, wanted in zip(theirs, d.compile(value=True)(*arrays), strict=True):
            np.testing.assert_allclose(library.back(found), wanted, rtol=1e-9, atol=1e-10)
        k = half(arrays[-1][::-1, ::-1]) if arrays[-1].shape == (n, n) else arrays[-1][::-1]
        product = d.compile(library.name, hvp=True)(*map(library.to, arrays))[-1](library.to(k))
        np.testing.assert_allclose(library.back(product), d.compile(hvp=True)(*arrays)[-1](k), rtol=1e-8, atol=1e-9)


# --- where eigenvalues meet -------------------------------------------------------------------------------------------

Q = np.linalg.qr(np.random.default_rng(8).normal(size=(4, 4)))[0]


def with_values(values: Any) -> Any:
    return half(Q @ np.diag(values) @ Q.T)


@pytest.mark.sampled
@pytest.mark.parametrize("values", [(1, 1, 1, 1), (1, 1, 2, 3), (0.5, 2, 2, 2), (1, 1 + 1e-9, 2, 2 + 1e-13)])
@pytest.mark.parametrize(
    ("program", "f"),
    [
        ("eigvals(A)(i)^3", lambda x: x**3),
        ("log(eigvals(A)(i))", np.log),
        ("exp(eigvals(A)(i)) * eigvals(A)(i)", lambda x: np.exp(x) * x),
    ],
)
def test_sums_over_eigenvalues_have_derivatives_where_they_meet(program: str, f: Any, values: Any) -> None:
    """Against those of f at 60 digits: Σ f(λ) has the gradient f'(A), and the Hessian product is its derivative."""
    mpmath = pytest.importorskip("mpmath")
    A, k = with_values(values), half(np.random.default_rng(1).normal(size=(4, 4)))
    gradient, product = cd.grad(f"(A::Sym) -> sum(i, {program})").compile(hvp=True)(A)
    with mpmath.workdps(60):
        x = mpmath.mpf
        slopes = {"eigvals(A)(i)^3": lambda t: 3 * t**2, "log(eigvals(A)(i))": lambda t: 1 / t}
        rule = slopes.get(program, lambda t: mpmath.exp(t) * (1 + t))

        def of(M: Any) -> Any:
            found, vectors = mpmath.eigsy(M)
            return vectors * mpmath.diag([rule(v) for v in found]) * vectors.T

        exact, h = mpmath.matrix(A.tolist()), x(10) ** -20
        step = mpmath.matrix(k.tolist()) * h
        moved = (of(exact + step) - of(exact - step)) / (2 * h)
        wanted = [np.array(m.tolist(), dtype=float).reshape(4, 4) for m in (of(exact), moved)]
    np.testing.assert_allclose(gradient, wanted[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(product(k), wanted[1], rtol=1e-9, atol=1e-9)


def test_a_single_eigenvalue_that_is_one_of_several_has_no_derivative_and_the_message_names_it() -> None:
    d = cd.grad("(A::Sym) -> eigvals(A)(0)")
    A = with_values((1, 1, 2, 3))
    with pytest.warns(RuntimeWarning, match=r"the eigenvalues \[0, 1\] are equal"):
        assert np.isnan(d.compile()(A)).all()
    last = cd.grad("(A::Sym) -> eigvals(A)(3)").compile()(A)
    np.testing.assert_allclose(last, np.outer(Q[:, 3], Q[:, 3]), atol=1e-12)


def test_no_tangent_of_a_single_eigenvalue_depends_on_the_choice_of_eigenvectors() -> None:
    A, k = with_values((1, 1, 2, 3)), half(np.random.default_rng(1).normal(size=(4, 4)))
    with pytest.warns(RuntimeWarning, match=r"the eigenvalues \[0, 1\] are equal"):
        assert np.isnan(cd.jvp("(A::Sym) -> eigvals(A)(0)").compile()(A, k))
    with pytest.warns(RuntimeWarning, match=r"the eigenvalues \[0, 1\] are equal"):
        assert np.isnan(cd.jvp("(A::Sym{n}) -> sum(i, sin(i) * eigvals(A)(i))").compile()(A, k))
    all_of_them = cd.jvp("(A::Sym) -> i -> eigvals(A)(i)").compile()
    with pytest.warns(RuntimeWarning, match=r"the eigenvalues \[0, 1\] are equal"):
        found = all_of_them(A, k)
    alone = np.diag(Q.T @ k @ Q)
    np.testing.assert_allclose(found, [np.nan, np.nan, alone[2], alone[3]], atol=1e-12)
    np.testing.assert_allclose(cd.jvp("(A::Sym) -> eigvals(A)(3)").compile()(A, k), alone[3], atol=1e-12)
    # where all move alike, it is the same for all eigenvectors
    np.testing.assert_allclose(all_of_them(A, np.eye(4)), 1, atol=1e-12)


def test_no_tangent_of_a_single_singular_value_depends_on_the_choice_of_vectors() -> None:
    A, k = Q[:, :3] @ np.diag([2.0, 2.0, 1.0]), np.random.default_rng(1).normal(size=(4, 3))
    for text in ("svdvals(A)(0)", "sum(i, sin(i) * svdvals(A)(i))"):
        with pytest.warns(RuntimeWarning, match=r"the singular values \[0, 1\] are equal"):
            assert np.isnan(cd.jvp(f"(A::RM{{m, n}}) -> {text}").compile()(A, k)), text
    with pytest.warns(RuntimeWarning, match=r"the singular values \[0, 1\] are equal"):
        found = cd.jvp("(A::RM{m, n}) -> i -> svdvals(A)(i)").compile()(A, k)
    np.testing.assert_allclose(found, [np.nan, np.nan, Q[:, 2] @ k[:, 2]], atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("values", [(1, 1, 1, 1), (1, 1, 2, 3), (0.5, 2, 2, 2)])
@pytest.mark.parametrize(
    "text",
    [
        "(A::Sym) -> sum(i, exp(eigvals(A)(i)))^2",
        "(A::Sym{n}) -> begin lam = eigvals(A); sum(i, lam(i)^2) * sum(i, lam(i)) end",
        "(A::Her) -> sum(i, log(1 + exp(eigvals(A)(i))))",
        "(A::Sym) -> logsumexp(i, eigvals(A)(i))",
        "(A::Sym) -> sum(i, (eigvals(A)(i) - 1)^2 * (eigvals(A)(i) - 2)^2)",
        "(A::Sym) -> sum((i, j), exp(-(eigvals(A)(i) - eigvals(A)(j))^2))",
        "(A::RM{m, n}) -> sum(i, svdvals(A)(i)^2)",
    ],
)
def test_tangents_of_symmetric_functions_are_finite_where_eigenvalues_meet(text: str, values: Any) -> None:
    A, k = with_values(values), half(np.random.default_rng(1).normal(size=(4, 4)))
    if "Her" in text:
        k = k + 1j * np.triu(k, 1) - 1j * np.triu(k, 1).T
    gradient, product = cd.grad(text).compile(hvp=True)(A)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(cd.jvp(text).compile()(A, k), (gradient.conj() * k).sum().real, rtol=1e-11)
        assert np.isfinite(product(k)).all()
    wanted = slope(cd.grad(text).compile(), A, k, 1e-3)
    np.testing.assert_allclose(product(k), wanted, rtol=1e-6, atol=1e-7 * abs(wanted).max())


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("(K::Her, y::CV) -> (x::CV) -> real((cholesky(K) * x)' * y)", "cholesky(K)† y"),
        ("(K::Sym, y::RV) -> (x::RV) -> (cholesky(K) * x)' * y", "cholesky(K)ᵀ y"),
        ("(K::Sym, y::RV) -> (x::RV) -> (cholesky(K)' * x)' * y", "cholesky(K) y"),
        ("(K::Sym, y::RV) -> (x::RV) -> (expm(K) * x)' * y", "expm(K) y"),
    ],
)
def test_the_transpose_of_a_factor_is_no_factor_in_matrix_form(text: str, form: str) -> None:
    assert cd.grad(text).matrix_text() == form


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["prod(i, i != 0, eigvals(A)(i))", "sum((i, j), i < j, eigvals(A)(i) * eigvals(A)(j))"]
)
def test_a_slope_that_depends_on_which_eigenvalues_meet_is_nan_where_they_do_and_only_there(text: str) -> None:
    d, k = cd.grad(f"(A::Sym) -> {text}"), half(np.random.default_rng(1).normal(size=(4, 4)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isnan(d.compile(hvp=True)(with_values((1, 1, 2, 3)))[-1](k)).any()
    A = with_values((1, 1.5, 2, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = d.compile(hvp=True)(A)[-1](k)
    np.testing.assert_allclose(found, slope(d.compile(), A, k, 1e-5), rtol=1e-6, atol=1e-7)


@pytest.mark.sampled
@pytest.mark.parametrize("values", [(1, 1, 1), (0, 0, 2), (0, 0, 0), (1, 2, 2), (1, 2, 3)])
@pytest.mark.parametrize(
    "text", ["(A::Sym) -> prod(i, eigvals(A)(i))", "(A::Sym) -> begin l = eigvals(A); prod(i, l(i)) end"]
)
def test_the_product_of_all_eigenvalues_has_its_hessian_product_wherever_they_meet(
    text: str, values: tuple[float, ...]
) -> None:
    """The determinant of a matrix with three rows is a cubic, whose second derivative is that of its cofactors."""
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0]
    A, k = half(turn @ np.diag(values) @ turn.T), half(np.random.default_rng(1).normal(size=(3, 3)))
    *_, gradient, product = cd.grad(text).compile(value=True, hvp=True)(A)
    cofactors = np.array([[np.linalg.det(np.delete(np.delete(A, i, 0), j, 1)) for j in range(3)] for i in range(3)])
    signs = np.array([[1, -1, 1], [-1, 1, -1], [1, -1, 1]])
    np.testing.assert_allclose(gradient, signs * cofactors, atol=1e-13)
    wanted = A @ k + k @ A - np.trace(A) * k - np.trace(k) * A
    wanted += (np.trace(A) * np.trace(k) - np.trace(A @ k)) * np.eye(3)
    np.testing.assert_allclose(product(k), wanted, atol=1e-12)
    # eigenvalues are those of the Hermitian part, which a skew direction does not change
    skew = np.array([[0.0, 1.0, -2.0], [-1.0, 0.0, 3.0], [2.0, -3.0, 0.0]])
    unchecked = cd.grad(text).compile(value=True, hvp=True, check=False)(A)[-1]
    np.testing.assert_allclose(unchecked(k + skew), wanted, atol=1e-12)


def test_products_of_some_eigenvalues_stay_products_of_eigenvalues() -> None:
    assert "eigvals" in str(cd.simplified("(A::Sym) -> prod(i, i != 0, eigvals(A)(i))"))
    with pytest.raises(CombDiffError, match="symmetric"):
        cd.grad("(A::RM) -> prod(i, eigvals(A)(i))")


@pytest.mark.parametrize("text", ["sum(i, log(eigvals(A)(i)))", "sum(i, cholesky(A)(i, i)^3)"])
def test_the_hermitian_part_counts_where_a_matrix_is_not_checked(text: str) -> None:
    off = with_values((1, 2, 3, 4)) + 1e-2 * np.random.default_rng(3).normal(size=(4, 4))
    d = cd.grad(f"(A::Sym) -> {text}")
    for found, wanted in zip(d.compile(value=True, check=False)(off), d.compile(value=True)(half(off)), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_the_hessian_product_of_a_single_eigenvalue_that_meets_no_other() -> None:
    d = cd.grad("(A::Sym) -> eigvals(A)(3)")
    A, k = with_values((1, 1, 2, 3)), half(np.random.default_rng(1).normal(size=(4, 4)))
    wanted = slope(d.compile(), A, k, 1e-5)
    np.testing.assert_allclose(d.compile(hvp=True)(A)[-1](k), wanted, rtol=1e-6, atol=1e-8)


@pytest.mark.slow
def test_singular_values_that_meet_or_vanish() -> None:
    A = Q[:, :3] @ np.diag([2.0, 2.0, 0.0]) @ np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0]
    k = np.random.default_rng(1).normal(size=(4, 3))
    gradient, product = cd.grad("(A::RM{m, n}) -> sum(i, svdvals(A)(i)^2)").compile(hvp=True)(A)
    np.testing.assert_allclose(gradient, 2 * A, atol=1e-13)
    np.testing.assert_allclose(product(k), 2 * k, atol=1e-13)
    fourth, product = cd.grad("(A::RM{m, n}) -> sum(i, svdvals(A)(i)^4)").compile(hvp=True)(A)
    np.testing.assert_allclose(fourth, 4 * A @ A.T @ A, atol=1e-12)
    np.testing.assert_allclose(product(k), 4 * (k @ A.T @ A + A @ k.T @ A + A @ A.T @ k), atol=1e-12)


def test_the_nuclear_norm_of_a_singular_matrix_has_the_least_subgradient() -> None:
    gradient = cd.grad("(A::RM{m, n}) -> sum(i, svdvals(A)(i))").compile()
    np.testing.assert_allclose(gradient(np.diag([3.0, 0.0])), np.diag([1.0, 0.0]), atol=1e-15)
    assert not gradient(np.zeros((2, 2))).any()


@pytest.mark.parametrize("low", [1e-6, 1e-12])
def test_factors_and_eigenvalues_of_nearly_singular_and_badly_scaled_matrices(low: float) -> None:
    """The gradient of log det A is A⁻¹, whose relative error is that of the condition number."""
    mpmath = pytest.importorskip("mpmath")
    A = with_values(np.array([low, 1e-3, 1.0, 1e3]))
    with mpmath.workdps(60):
        exact = np.array((mpmath.matrix(A.tolist()) ** -1).tolist(), dtype=float).reshape(4, 4)
    for text in ("sum(i, log(eigvals(A)(i)))", "2 * sum(i, log(cholesky(A)(i, i)))"):
        found = cd.grad(f"(A::Sym) -> {text}").compile()(A)
        assert abs(found - exact).max() <= 1e-14 * 1e3 / low * abs(exact).max()


# --- what is asked of a matrix ----------------------------------------------------------------------------------------

HERMITIAN = [
    "(B::RM{n, m}) -> sum(i, eigvals(B * B')(i)^2)",
    "(B::CM{n, m}, C::Her{n}) -> sum(i, eigvals(B * B' + 2 * C + I)(i)^2)",
    "(A::RM{n, n}) -> sum(i, eigvals((A + A') / 2)(i)^2)",
    "(x::RV{n}, s::R) -> tr(cholesky((i, j) -> exp(-(x(i) - x(j))^2) + delta(i, j, s^2)))",
    "(A::Sym{n}, x::RM{n, m}) -> begin P = x' * A * x; sum(i, eigvals(P)(i)^3) end",
    "(A::Sym{n}) -> sum(i, eigvals(expm(A))(i)^2)",
    "(A::Sym{n}) -> sum(i, eigvals(inv(A))(i)^2)",
]


@pytest.mark.parametrize("text", HERMITIAN)
def test_matrices_are_hermitian_by_what_they_are_made_of(text: str) -> None:
    assert cd.simplified(text)


WRONG = {
    "(A::RM) -> sum(i, eigvals(A)(i))": r"symmetric, by its type(.|\n)*declare it, A::Sym, or write \(A \+ A'\) / 2",
    "(A::CM) -> tr(cholesky(A))": r"Hermitian, by its type(.|\n)*A::Her",
    "(A::RM, B::RM) -> sum(i, eigvals(A * B)(i))": "symmetric, by its type",
    "(A::Sym) -> eigvecs(A)": r"no eigenvectors(.|\n)*eigvals\(A\)",
    "(A::Sym) -> eigh(A)": "no eigenvectors",
    "(A::RM) -> svd(A)": r"no singular vectors(.|\n)*svdvals\(A\)",
    "(A::Sym) -> chol(A)": r"write cholesky\(A\)",
    "(A::Sym) -> cholesky(A, A, A)": r"write cholesky\(A\)",
    "(x::RV) -> eigvals(x)": "eigvals takes a matrix",
    "(A::Sym) -> spectral(A)": "spectral takes a matrix and numbers",
    "(A::RM{m, n}) -> sum(i, eigvals(A' * A + A)(i))": r"slot 1 of A ranges over N\{m\}",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_told_with_a_remedy(text: str) -> None:
    with pytest.raises(CombDiffError, match=WRONG[text]):
        cd.grad(text)


def test_a_matrix_that_is_not_positive_definite_is_named() -> None:
    f = cd.simplified("(K::Sym, b::RV) -> norm(cholesky(K) \\ b)").compile()
    with pytest.raises(ArrayError, match="K is not positive definite"):
        f(np.diag([1.0, -1.0]), np.ones(2))
    of_two = cd.simplified("(B::RM{n, m}, s::R) -> tr(cholesky(B * B' - s * I))").compile()
    with pytest.raises(ArrayError, match="a matrix that is made of B is not positive definite"):
        of_two(np.ones((2, 2)), 3.0)


def test_singular_values_of_a_matrix_with_fewer_rows_than_columns_are_refused() -> None:
    f = cd.grad("(A::RM{m, n}) -> sum(i, svdvals(A)(i))").compile()
    with pytest.raises(ArrayError, match=r"fewer rows than columns(.|\n)*svdvals\(A'\)"):
        f(np.ones((2, 3)))


def test_third_derivatives_of_eigenvalues_are_refused() -> None:
    with pytest.raises(CombDiffError, match="differentiated twice at most"):
        cd.hvp("(A::Sym, K::Sym) -> sum(i, eigvals(A, K)(i)^2)")


@pytest.mark.slow
def test_one_factorisation_serves_value_gradient_and_hessian_product() -> None:
    for name, call in (("eigvals, power", "eigh("), ("svdvals, power", "= svd("), ("cholesky, squares", "= cholesky(")):
        assert cd.grad(ALL[name][0]).source(value=True, hvp=True).count(call) == 1, name


@pytest.mark.parametrize("text", ["(A::Sym, K::RM) -> spectral(A, K)", "(A::RM, K::RM) -> singular(A, K)"])
def test_results_read_back(text: str) -> None:
    printed = str(cd.simplified(text))
    assert str(cd.simplified(printed)) == printed


@pytest.mark.parametrize("n", [1, 3])
def test_stacks_of_matrices(n: int) -> None:
    T = np.array([half(np.random.default_rng(m).normal(size=(n, n))) + 2 * n * np.eye(n) for m in range(4)])
    space = "@space T begin\n  type = (N{m}, N{n}, N{n}) -> R\n  symmetries = (((1, 3, 2), :id),)\nend\n"
    for inner, f in (
        ("sum(i, eigvals((i, j) -> A(c, i, j))(i)^3)", lambda B: 3 * B @ B),
        ("sum(i, log(cholesky((i, j) -> A(c, i, j))(i, i)))", lambda B: np.linalg.inv(B) / 2),
    ):
        d = cd.grad(f"{space}(A::T) -> sum(c, {inner})")
        np.testing.assert_allclose(d.compile()(T), [f(B) for B in T], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("text", ["(X::RM{n, m}) -> sum(svdvals(X))", "(X::RM{n, n}) -> sum(sqrtm(X)) + sum(expm(X))"])
def test_a_direction_of_ones_is_printed_and_read_back(text: str) -> None:
    d = cd.grad(text)
    assert "-> 1)" in str(d) and str(cd.simplified(str(d))) == str(d)
