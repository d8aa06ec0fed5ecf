"""Determinants, their logarithms, inverses: against NumPy, differences, other libraries, formulas of the books."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import combdiff as cd
from combdiff.errors import ArrayError, CombDiffError
from combdiff.meaning.evaluate import evaluate
from tests.emit.array_libraries import Numbers, library

__all__ = ["library"]

SIZES = (1, 2, 3, 5, 7)

Objective = Callable[..., float]
REAL: dict[str, tuple[str, Objective]] = {
    "det": ("(A::RM) -> det(A)", np.linalg.det),
    "det squared": ("(A::RM) -> det(A)^2 / 3", lambda A: np.linalg.det(A) ** 2 / 3),
    "logdet": ("(A::RM) -> logdet((i, j) -> sum(k, A(i, k) * A(j, k)) + delta(i, j, 1))", lambda A: _ld(A @ A.T)),
    "log of det": (
        "(A::RM) -> log(det((i, j) -> sum(k, A(i, k) * A(j, k)) + delta(i, j, 1)))",
        lambda A: _ld(A @ A.T),
    ),
    "log of the modulus": ("(A::RM) -> log(abs(det(A)))", lambda A: np.linalg.slogdet(A)[1]),
    "trace of an inverse": ("(A::RM) -> sum(i, inv(A)(i, i))", lambda A: np.trace(np.linalg.inv(A))),
    "bilinear": (
        "(A::RM) -> sum((i, j), sin(i) * inv(A)(i, j) * cos(j))",
        lambda A: np.sin(np.arange(len(A))) @ np.linalg.solve(A, np.cos(np.arange(len(A)))),
    ),
    "adjugate": ("(A::RM) -> sum((i, j), adjugate(A)(i, j) * (i + 2 * j + 1))", lambda A: _weighed(_adj(A))),
    "function of a map": (
        "(A::RM) -> det((i, j) -> exp(A(i, j)) + delta(i, j, 2))",
        lambda A: np.linalg.det(np.exp(A) + 2 * np.eye(len(A))),
    ),
    "inverse of an inverse": ("(A::RM) -> sum((i, j), inv(inv(A))(i, j)^2)", lambda A: (A**2).sum()),
    "under a condition": ("(A::RM) -> where(A(0, 0) < 9, det(A), 1 / A(0, 0))", np.linalg.det),
}
COMPLEX: dict[str, tuple[str, Objective]] = {
    "modulus of det": ("(A::CM) -> abs2(det(A))", lambda A: abs(np.linalg.det(A)) ** 2),
    "real part": ("(A::CM) -> real((1 + 2 * im) * det(A))", lambda A: ((1 + 2j) * np.linalg.det(A)).real),
    "logdet": ("(A::CM) -> real(logdet(A))", lambda A: np.log(abs(np.linalg.det(A)))),
    "log of the modulus": ("(A::CM) -> log(abs(det(A)))", lambda A: np.linalg.slogdet(A)[1]),
    "norm of a solution": (
        "(A::CM) -> sum(i, abs2(sum(j, inv(A)(i, j) * (j + 1))))",
        lambda A: (abs(np.linalg.solve(A, np.arange(1, len(A) + 1))) ** 2).sum(),
    ),
    "adjugate": ("(A::CM) -> sum((i, j), real(adjugate(A)(i, j)) * (i + 2 * j + 1))", lambda A: _weighed(_adj(A).real)),
}


def _ld(A: np.ndarray) -> float:
    return float(np.linalg.slogdet(A + np.eye(len(A)))[1])


def _adj(A: np.ndarray) -> np.ndarray:
    return np.linalg.det(A) * np.linalg.inv(A)


def _weighed(A: np.ndarray) -> float:
    i = np.arange(len(A))
    return float((A * (i[:, None] + 2 * i + 1)).sum())


def matrix(n: int, over_complex: bool, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng((seed, n))
    A = rng.normal(size=(n, n)) + (1j * rng.normal(size=(n, n)) if over_complex else 0)
    return A + 2 * np.eye(n)


CASES = [(text, f, c) for table, c in ((REAL, False), (COMPLEX, True)) for text, f in table.values()]
NAMES = [*REAL, *(f"complex {name}" for name in COMPLEX)]


@pytest.mark.sampled
@pytest.mark.parametrize(("text", "objective", "over_complex"), CASES, ids=NAMES)
def test_values_gradients_and_hessian_products(text: str, objective: Objective, over_complex: bool) -> None:
    d = cd.grad(text)
    both, alone = d.compile(value=True), d.compile()
    products = d.compile(hvp=True) if "adjugate" not in text else None
    for n in SIZES:
        A, k = matrix(n, over_complex), matrix(n, over_complex, seed=1)
        value, gradient = both(A)
        np.testing.assert_allclose(value, objective(A), rtol=1e-11)
        np.testing.assert_allclose((gradient.conj() * k).sum().real, slope(objective, A, k), rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(evaluate(d.term, {})(A), gradient, rtol=1e-8, atol=1e-10 * abs(gradient).max())
        if products is not None:
            product = products(A)[-1](k)
            largest = max(1.0, abs(product).max())
            np.testing.assert_allclose(product, slope(alone, A, k), rtol=1e-6, atol=1e-7 * largest)


def slope(f: Callable[[np.ndarray], np.ndarray], A: np.ndarray, k: np.ndarray, h: float = 1e-5) -> np.ndarray:
    """The derivative of `f` at A along k, by differences."""
    return (8 * (f(A + h * k) - f(A - h * k)) - (f(A + 2 * h * k) - f(A - 2 * h * k))) / (12 * h)


@pytest.mark.sampled
@pytest.mark.parametrize(("text", "objective", "over_complex"), CASES, ids=NAMES)
def test_pushforwards_agree_with_gradients(text: str, objective: Objective, over_complex: bool) -> None:
    A, k = matrix(3, over_complex), matrix(3, over_complex, seed=1)
    pushed = cd.jvp(text).compile()(A, k)
    np.testing.assert_allclose(pushed, (cd.grad(text).compile()(A).conj() * k).sum().real, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(("text", "objective", "over_complex"), CASES, ids=NAMES)
def test_every_derivative_passes_its_own_check(text: str, objective: Objective, over_complex: bool) -> None:
    assert cd.grad(text).check()


@pytest.mark.slow
@pytest.mark.parametrize(("text", "objective", "over_complex"), CASES, ids=NAMES)
def test_a_library_agrees_with_numpy(library: Numbers, text: str, objective: Objective, over_complex: bool) -> None:
    if library.name == "dask":
        pytest.skip("Dask has no determinants")
    A, k = matrix(3, over_complex), matrix(3, over_complex, seed=1)
    d = cd.grad(text)
    for found, wanted in zip(d.compile(library.name, value=True)(library.to(A)), d.compile(value=True)(A), strict=True):
        np.testing.assert_allclose(library.back(found), wanted, rtol=1e-9, atol=1e-10)
    if "adjugate" not in text:
        product = d.compile(library.name, hvp=True)(library.to(A))[-1](library.to(k))
        np.testing.assert_allclose(library.back(product), d.compile(hvp=True)(A)[-1](k), rtol=1e-9, atol=1e-10)


@pytest.mark.sampled
@pytest.mark.parametrize("rank", [0, 1, 2])
@pytest.mark.parametrize("over_complex", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_a_determinant_has_its_derivatives_where_it_is_zero(n: int, rank: int, over_complex: bool) -> None:
    """The gradient of a matrix of rank n − 1 is its cofactors; of less it is 0, and the Hessian product may not be."""
    rng = np.random.default_rng((n, rank))
    shape = (2, n, min(rank, n - 1))
    left, right = rng.normal(size=shape) + (1j * rng.normal(size=shape) if over_complex else 0)
    A, k = left @ right.T, matrix(n, over_complex)
    d = cd.grad("(A::CM) -> real(det(A))" if over_complex else "(A::RM) -> det(A)")
    gradient, product = d.compile(hvp=True)(A)

    def cofactors(B: np.ndarray) -> np.ndarray:
        found = np.empty_like(B)
        for i in range(n):
            for j in range(n):
                minor = np.delete(np.delete(B, i, axis=0), j, axis=1)
                found[i, j] = (-1) ** (i + j) * np.linalg.det(minor)
        return found.conj()

    np.testing.assert_allclose(gradient, cofactors(A), atol=1e-10)
    slope = (cofactors(A + 1e-4 * k) - cofactors(A - 1e-4 * k)) / 2e-4
    np.testing.assert_allclose(product(k), slope, atol=1e-6)


def test_a_matrix_that_is_always_singular_passes_its_check() -> None:
    """Its matrix form, det(A) A⁻ᵀ, has no value."""
    assert cd.grad("(x::RV) -> det((i, j::N) -> x(i))").check()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_stacks_of_matrices_are_one_step(n: int) -> None:
    rng = np.random.default_rng(n)
    T = rng.normal(size=(4, n, n)) + 2 * np.eye(n)
    d = cd.grad("(T::(N, N, N) -> R) -> sum(c, det((i, j) -> T(c, i, j)))")
    np.testing.assert_allclose(d.compile()(T), [np.linalg.det(A) * np.linalg.inv(A).T for A in T], rtol=1e-10)
    assert d.source(value=True).count("np.linalg.det(T)") == 1


def test_the_logarithm_of_a_determinant_that_is_not_positive() -> None:
    value = cd.simplified("(A::RM) -> logdet(A)").compile()
    with np.errstate(invalid="ignore", divide="ignore"):
        assert np.isnan(value(-np.eye(3)))
        assert value(np.zeros((2, 2))) == -np.inf
    assert cd.simplified("(A::CM) -> logdet(A)").compile()(-np.eye(3) + 0j) == pytest.approx(np.pi * 1j)
    assert value(np.zeros((0, 0))) == 0


FORMULAS = {
    "(a::RV, b::RV) -> (X::RM) -> sum((i, j), a(i) * inv(X)(i, j) * b(j))": "-X⁻ᵀ a bᵀ X⁻ᵀ",
    "(X::RM) -> det(X)": "det(X) X⁻ᵀ",
    "(X::RM) -> logdet(X)": "X⁻ᵀ",
    "(X::Sym) -> logdet(X)": "X⁻¹",
    "(X::CM) -> real(logdet(X))": "X⁻†",
    "(X::RM) -> sum(i, inv(X)(i, i))": "-(X⁻ᵀ)^2",
    "(X::RM) -> det(X)^2": "2 det(X)^2 X⁻ᵀ",
    "(K::Sym) -> (y::RV) -> y' * (K \\ y)": "2 K⁻¹ y",
    "(K::Her) -> (y::CV) -> y' * (K \\ y)": "2 K⁻¹ y",
    "(X::RM) -> logdet(X' * X + I)": "2 X (Xᵀ X + 𝐈)⁻¹",
    "(X::RM) -> tr(inv(X' * X + I))": "Z = Xᵀ X + 𝐈\n-2 X (Z⁻¹)^2",
    "(S::Sym, H::Sym) -> (C::RM) -> tr((C' * S * C) \\ (C' * H * C))": "Z = Cᵀ S C\n2 (H - S C Z⁻¹ Cᵀ H) C Z⁻¹",
}


@pytest.mark.sampled
@pytest.mark.parametrize("text", FORMULAS)
def test_matrix_form_is_that_of_the_books(text: str) -> None:
    """Petersen, Pedersen, The Matrix Cookbook (2012), Eq. 49, 57, 61, 63; its gradients are ours transposed."""
    assert cd.grad(text).matrix_text() == FORMULAS[text]


@pytest.mark.parametrize("text", [f"(A::RM) -> {e}" for e in ("(i, j) -> inv(A)(j, i)", "adjugate(A, A)", "det(A)")])
def test_results_read_back(text: str) -> None:
    printed = str(cd.simplified(text))
    assert str(cd.simplified(printed)) == printed


WRONG = {
    "(x::RV) -> det(x)": "det takes a matrix, found a real tensor with 1 index",
    "(x::R) -> det(x)": "det takes a matrix, found a real number",
    "(A::RM, B::RM) -> det(A, B)": "det takes a matrix",
    "(T::(N, N, N) -> R) -> det(T)": "det takes a matrix, found a real tensor with 3 indices",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_matrix_is_refused(text: str) -> None:
    with pytest.raises(CombDiffError, match=WRONG[text]):
        cd.grad(text)


def test_a_singular_matrix_is_refused_when_it_is_met() -> None:
    f = cd.grad("(A::RM) -> sum((i, j), inv(A)(i, j))").compile()
    with pytest.raises(ArrayError, match=r"inverse is that of a singular matrix.*\(Singular matrix\)"):
        f(np.ones((2, 2)))


def test_third_derivatives_of_a_determinant_are_refused() -> None:
    with pytest.raises(CombDiffError, match="second derivative of adjugate"):
        cd.hvp("(A::RM) -> sum((i, j), adjugate(A)(i, j)^2)")


SYSTEMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "a vector": ("(A::RM, b::RV) -> sum(i, sum(j, inv(A)(i, j) * b(j))^4)", ("A", "b")),
    "columns": ("(A::RM, B::RM) -> sum((i, k), sum(j, inv(A)(i, j) * B(j, k))^2)", ("A", "B")),
    "rows": ("(A::RM, B::RM) -> sum((k, i), sum(j, B(k, j) * inv(A)(j, i))^2)", ("A", "B")),
    "three slots": ("(A::RM, T::(N, N, N) -> R) -> sum((k, i, l), sum(j, T(k, j, l) * inv(A)(j, i))^2)", ("A", "T")),
    "complex": ("(A::CM, b::CV) -> sum(i, abs2(sum(j, inv(A)(i, j) * b(j))))", ("A", "b")),
    "complex columns": ("(A::RM, B::CM) -> sum((i, k), abs2(sum(j, inv(A)(j, i) * B(j, k)')))", ("A", "B")),
    "two sides": ("(A::RM, b::RV) -> sum((i, j), b(i) * inv(A)(i, j) * b(j))", ("A", "b")),
}


def given(text: str, names: tuple[str, ...], n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    shapes = {"A": (n, n), "b": (n,), "B": (n, n + 1), "T": (n + 1, n, 2)}
    if "B(k, j)" in text:
        shapes["B"] = (n + 1, n)
    found = []
    for name in names:
        complex_ = f"{name}::C" in text
        x = rng.normal(size=shapes[name]) + (1j * rng.normal(size=shapes[name]) if complex_ else 0)
        found.append(x + 2 * np.eye(n) if name == "A" else x)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_products_with_an_inverse_are_solutions(name: str) -> None:
    text, names = SYSTEMS[name]
    d = cd.grad(text)
    assert "linalg.inv" not in d.source(value=True, hvp=True)
    compiled, alone, meant = d.compile(value=True, hvp=True), cd.hvp(text).compile(), cd.simplified(text).term
    for n in (1, 2, 3, 5):
        arrays, directions = given(text, names, n), [x[..., ::-1] for x in given(text, names, n)]
        value, *gradients, product = compiled(*arrays)
        np.testing.assert_allclose(value, evaluate(meant, {})(*arrays), rtol=1e-9)
        for found, expected in zip(gradients, evaluate(d.term, {})(*arrays), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9 * abs(expected).max())
        for found, expected in zip(product(*directions), alone(*arrays, *directions), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9 * abs(expected).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_systems_are_those_of_numpy_in_every_library(library: Numbers, name: str) -> None:
    if library.name == "dask":
        pytest.skip("Dask solves no equations here")
    text, names = SYSTEMS[name]
    arrays = given(text, names, 3)
    d = cd.grad(text)
    found, wanted = d.compile(library.name, value=True)(*map(library.to, arrays)), d.compile(value=True)(*arrays)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(library.back(one), other, rtol=1e-9, atol=1e-10)


@pytest.mark.slow
def test_logarithms_of_determinants_are_not_those_of_large_numbers() -> None:
    """det(1e30 · 1) of 20 rows overflows, and its logarithm does not."""
    for text in ("log(det(A))", "log(abs(det(A)))", "logdet(A)"):
        value, gradient = cd.grad(f"(A::RM) -> {text}").compile(value=True)(1e30 * np.eye(20))
        assert value == pytest.approx(600 * np.log(10))
        np.testing.assert_allclose(gradient, 1e-30 * np.eye(20))


@pytest.mark.slow
def test_an_inverse_that_is_needed_itself_serves_products_too() -> None:
    text = cd.grad("(K::RM, y::RV) -> sum((i, j), y(i) * inv(K)(i, j) * y(j)) + logdet(K)").source(value=True)
    body = text[text.index("def value_and_gradient") :]
    assert body.count("lu_factors(") == body.count("lu_inv(") == 1 and "lu_solution" not in text


@pytest.mark.sampled
@pytest.mark.parametrize("text", ["det(A)", "logdet(A)", "sum((i, j), inv(A)(i, j))", "sum(i, (A \\ diag(A))(i)^2)"])
def test_matrices_without_rows_have_values_too(text: str, capfd: pytest.CaptureFixture[str]) -> None:
    value, gradient = cd.grad(f"(A::RM) -> {text}").compile(value=True)(np.zeros((0, 0)))
    assert value == (text == "det(A)") and gradient.shape == (0, 0)
    assert not capfd.readouterr().err


def test_numbers_that_are_not_finite_are_told_of_where_no_factors_are_found() -> None:
    with pytest.raises(ArrayError, match="a number is not finite"):
        cd.grad("(A::RM) -> det(A)").compile()(np.array([[np.nan, 1], [2, 3]]))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Diagonal number")  # CuPy's own warning
def test_a_library_tells_of_singular_matrices_and_not_of_infinite_logarithms(library: Numbers) -> None:
    if library.name == "dask":
        pytest.skip("Dask solves no equations here")
    ones = library.to(np.ones((2, 2)))
    with np.errstate(divide="ignore"):
        assert library.back(cd.simplified("(A::RM) -> logdet(A)").compile(library.name)(ones)) == -np.inf
    with pytest.raises(ArrayError, match="no unique solution"):
        cd.grad("(A::RM, b::RV) -> sum(i, (A \\ b)(i)^2)").compile(library.name)(ones, library.to(np.ones(2)))


def test_a_matrix_over_points_of_a_lattice_is_refused() -> None:
    with pytest.raises(CombDiffError, match="a point of a lattice has 2"):
        cd.grad("@domain Z begin base = (I, I) end\n(c::(Z, Z) -> R) -> det(c)")
