"""Problems for scipy.optimize: packed unknowns, derivatives against differences, minima that are known beforehand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize

import combdiff as cd
from combdiff.errors import ArrayError, UnsupportedError
from combdiff.minimizing.problem import Problem

RNG = np.random.default_rng(0)
ROSENBROCK = (
    "(x::RV, y::RV) -> sum(i, (1 - x(i))^2 + 100 * (y(i) - x(i)^2)^2)",
    {"x": np.array([-1.2, 0.5]), "y": np.array([1.0, -0.3])},
)
LEAST_SQUARES = ("(A::RM, b::RV) -> (x::RV) -> sum(i, (sum(j, A(i, j) * x(j)) - b(i))^2)", (5, 3))
PHASES = "(a::CV) -> (z::CV) -> sum(i, abs2(z(i)^2 - a(i)))"
MIXED = "(a::CM, c::R) -> (Z::CM, t::R) -> sum((i, j), abs2(Z(i, j) - t * a(i, j))) + (t - c)^4 + (t - c)^2"


def real() -> Problem:
    text, shape = LEAST_SQUARES
    return cd.grad(text).problem(A=RNG.normal(size=shape), b=RNG.normal(size=shape[0]), x=np.zeros(shape[1]))


def complex_() -> Problem:
    return cd.grad(PHASES).problem(a=np.array([2j, -1.0, 3 + 4j]), z=np.array([1 + 0.5j, 0.3 + 1j, 2.5 + 0.5j]))


def mixed() -> Problem:
    a = RNG.normal(size=(2, 3)) + 1j * RNG.normal(size=(2, 3))
    return cd.grad(MIXED).problem(a=a, c=1.5, Z=np.zeros((2, 3)), t=0)


def several() -> Problem:
    return cd.grad(ROSENBROCK[0]).problem(**ROSENBROCK[1])


PROBLEMS = {"real": real, "complex": complex_, "several": several, "complex and real": mixed}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_gradient_and_hessian_in_the_packed_unknowns_against_differences(name: str) -> None:
    p = PROBLEMS[name]()
    x = p.x0 + 0.1 * RNG.normal(size=p.x0.shape)
    np.testing.assert_allclose(p.jac(x), approx_fprime(x, p.fun), rtol=1e-4, atol=1e-4)
    hessian = np.array([p.hessp(x, unit) for unit in np.eye(len(x))])
    differences = approx_fprime(x, p.jac)
    np.testing.assert_allclose(hessian, differences, rtol=1e-4, atol=1e-4 * np.abs(differences).max())
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "Newton-CG", "trust-ncg"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_minima(name: str, method: str) -> None:
    p = PROBLEMS[name]()
    second = {"hessp": p.hessp} if method in ("Newton-CG", "trust-ncg") else {}
    tight = {"ftol": 1e-14, "gtol": 1e-9} if method == "L-BFGS-B" else {}
    found = minimize(p.fun, p.x0, jac=p.jac, method=method, options={"maxiter": 500, **tight}, **second)
    unknowns = p.unpack(found.x)
    match name:
        case "real":
            assert np.abs(p.jac(found.x)).max() < 1e-4
        case "complex":
            np.testing.assert_allclose(unknowns, [1 + 1j, 1j, 2 + 1j], atol=1e-4)
        case "several":
            np.testing.assert_allclose(unknowns, np.ones((2, 2)), atol=1e-3)
        case _:
            assert isinstance(unknowns, tuple)
            assert unknowns[0].shape == (2, 3) and abs(unknowns[1] - 1.5) < 1e-4 and p.fun(found.x) < 1e-7


@pytest.mark.slow
def test_least_squares_are_those_of_numpy() -> None:
    A, b = RNG.normal(size=(6, 3)), RNG.normal(size=6)
    p = cd.grad(LEAST_SQUARES[0]).problem(A=A, b=b, x=np.ones(3))
    found = minimize(p.fun, p.x0, jac=p.jac, hessp=p.hessp, method="trust-ncg", options={"gtol": 1e-10})
    np.testing.assert_allclose(p.unpack(found.x), np.linalg.lstsq(A, b)[0], rtol=1e-7)


def test_packing_is_a_real_view_and_comes_back() -> None:
    p = mixed()
    Z, t = RNG.normal(size=(2, 3)) + 1j * RNG.normal(size=(2, 3)), 0.5
    x = p.pack(Z, t)
    np.testing.assert_array_equal(x[:4], [Z[0, 0].real, Z[0, 0].imag, Z[0, 1].real, Z[0, 1].imag])
    back = p.unpack(x)
    np.testing.assert_array_equal(back[0], Z)
    assert back[1] == t and len(x) == 13
    np.testing.assert_array_equal(p.pack(np.asfortranarray(Z), t), x)


def test_a_point_that_is_changed_in_place_is_a_new_point() -> None:
    p = several()
    x = p.x0.copy()
    first = p.fun(x), p.jac(x)
    x += 0.5
    assert p.fun(x) != first[0] and not np.array_equal(p.jac(x), first[1])
    np.testing.assert_array_equal(p.jac(p.x0), first[1])


def test_value_and_gradient_at_one_point_are_one_call() -> None:
    calls = []

    def g(x: np.ndarray) -> np.ndarray:
        calls.append(x)
        return np.cosh(x)

    p = cd.grad("(g::RF) -> (x::RV) -> sum(i, g(x(i)))").problem(g=g, grad_g=np.sinh, grad_grad_g=np.cosh, x=np.ones(3))
    before = len(calls)
    for _ in range(3):
        assert abs(p.fun(p.x0 / 2) - 3 * np.cosh(0.5)) < 1e-12
        np.testing.assert_allclose(p.jac(p.x0 / 2), np.sinh(np.ones(3) / 2))
    assert len(calls) == before + 1
    np.testing.assert_allclose(p.hessp(p.x0, np.ones(3)), np.cosh(np.ones(3)))


@pytest.mark.parametrize(
    ("text", "given", "error", "message"),
    [
        (PHASES, {"a": np.ones(2)}, ArrayError, "is not given z, where to start"),
        (PHASES, {"z": np.ones(2)}, ArrayError, "is not given a"),
        (PHASES, {"a": np.ones(2), "z": np.ones(3)}, ArrayError, "sizes disagree"),
        (PHASES, {"a": np.ones(2), "z": np.ones(2), "b": 1}, ArrayError, "no argument called b"),
        (LEAST_SQUARES[0], {"A": np.eye(2), "b": np.ones(2), "x": 1j * np.ones(2)}, ArrayError, "x is real"),
        ("(H::Her) -> sum((i, j), abs2(H(i, j)))", {"H": np.eye(2)}, UnsupportedError, "declared symmetry"),
    ],
)
def test_a_wrong_problem_is_an_error(text: str, given: dict[str, object], error: type, message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        cd.grad(text).problem(**given)
    assert caught.value.remedy


@pytest.mark.slow
def test_a_wrong_point_or_derivation_is_an_error() -> None:
    p = several()
    for wrong in (np.ones(3), np.ones((2, 2)), 1j * np.ones(4)):
        for use in (p.fun, p.jac, p.unpack, lambda v: p.hessp(p.x0, v)):
            with pytest.raises(ArrayError, match="a vector of 4 real numbers"):
                use(wrong)
    with pytest.raises(ArrayError, match="there are 2 unknowns"):
        p.pack(np.ones(2))
    with pytest.raises(ArrayError, match="has the shape"):
        p.pack(np.ones(2), np.ones(3))
    with pytest.raises(UnsupportedError, match="takes a gradient"):
        cd.hvp(PHASES).problem(a=np.ones(2), z=np.ones(2))


# --- orthonormal columns ----------------------------------------------------------------------------------------------

RAYLEIGH = "(A::{}) -> (X::{}) -> real(sum((i, j, k), X(i, k)' * A(i, j) * X(j, k)))"


def _hermitian(n: int, over_complex: bool, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(n, n)) + (1j * rng.normal(size=(n, n)) if over_complex else 0)
    return a + np.conj(a.T)


@pytest.mark.sampled
@pytest.mark.parametrize("over_complex", (False, True))
@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 1), (5, 2), (5, 5), (7, 3)])
def test_orthonormal_columns_that_minimise_are_the_lowest_eigenvectors(n, m, over_complex) -> None:
    optimize = pytest.importorskip("scipy.optimize")
    A = _hermitian(n, over_complex)
    start = np.linalg.qr(_hermitian(n, over_complex, seed=1))[0][:, :m]
    d = cd.grad(RAYLEIGH.format(*(("Her", "CM") if over_complex else ("Sym", "RM"))))
    problem = d.problem(A=A, X=start, manifold="stiefel")
    found = optimize.minimize(problem.fun, problem.x0, jac=problem.jac, hessp=problem.hessp, method="trust-ncg")
    X = problem.unpack(found.x)
    np.testing.assert_allclose(np.conj(X.T) @ X, np.eye(m), atol=1e-12)
    assert np.isclose(found.fun, np.linalg.eigvalsh(A)[:m].sum(), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("over_complex", (False, True))
def test_derivatives_over_orthonormal_columns_are_differences(over_complex) -> None:
    rng = np.random.default_rng(2)
    text = """
        (A::{H}, B::{M}) -> (X::{M}, b::RV) ->
          real(sum((i, j, k), X(i, k)' * A(i, j) * X(j, k) * b(k))) + sum((i, k), abs2(X(i, k) - B(i, k))^2) +
            sum(k, b(k)^4)
    """.replace("{H}", "Her" if over_complex else "Sym").replace("{M}", "CM" if over_complex else "RM")
    B = rng.normal(size=(4, 2)) + (1j * rng.normal(size=(4, 2)) if over_complex else 0)
    problem = cd.grad(text).problem(
        A=_hermitian(4, over_complex), B=B, X=B + 1, b=rng.normal(size=2), manifold={"X": "stiefel"}
    )
    x, h = problem.x0 * 1.3, 1e-5
    directions = rng.normal(size=(6, len(x)))
    for k in directions:
        slope = (problem.fun(x + h * k) - problem.fun(x - h * k)) / (2 * h)
        assert np.isclose(problem.jac(x) @ k, slope, rtol=1e-6, atol=1e-7)
        turned = (problem.jac(x + h * k) - problem.jac(x - h * k)) / (2 * h)
        np.testing.assert_allclose(problem.hessp(x, k), turned, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("manifold", "start", "message"),
    [
        ("sphere", np.ones((3, 2)), "manifold is 'sphere'"),
        ({"Y": "stiefel"}, np.ones((3, 2)), "manifold is"),
        ("stiefel", np.ones((2, 3)), "cannot have orthonormal columns"),
        ("stiefel", np.ones((3, 2)), "linearly dependent"),
    ],
)
def test_what_has_no_orthonormal_columns_is_refused(manifold, start, message) -> None:
    with pytest.raises(cd.CombDiffError, match=message):
        cd.grad(RAYLEIGH.format("Sym", "RM")).problem(A=np.eye(len(start)), X=start, manifold=manifold)
