"""Functions of stacks of matrices, of which some have no value."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm, expm_frechet

import combdiff as cd
from combdiff.gate.gate import gate_for
from combdiff.gate.matrices import matrix_values
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.meaning.determinants import value_of

NAN = [[1.0, np.nan], [0.0, 1.0]]
SINGULAR = [[1.0, 2.0], [2.0, 4.0]]


@pytest.mark.parametrize("name", ["det", "logdet", "logabsdet", "adjugate", "adjugate_along", "inv"])
@pytest.mark.parametrize("bad", [NAN, [[np.inf, 1.0], [0.0, 1.0]], SINGULAR])
def test_a_matrix_without_a_value_leaves_the_others_theirs(name: str, bad: list[list[float]]) -> None:
    good = np.random.default_rng(1).normal(size=(2, 2))
    along = np.ones((2, 2))
    alone = matrix_values(name, good, along)
    stack = np.array([[good, bad], [bad, good]])
    found = matrix_values(name, stack, along)
    for own in (found[0, 0], found[1, 1]):
        np.testing.assert_allclose(own, alone, rtol=1e-14)
    np.testing.assert_array_equal(found[0, 1], matrix_values(name, np.array(bad), along))
    assert bad is not NAN or np.isnan(found[0, 1]).any()


@pytest.mark.parametrize("name", ["expm_along", "sqrtm_along", "cholesky_along", "eigvals_along"])
def test_a_direction_without_numbers_has_no_derivative(name: str) -> None:
    found = matrix_values(name, np.diag([1.0, 2.0]), np.array(NAN))
    assert np.isnan(found).all()


STEEP = """(A::RM{n, n}, K::SPD{n}) -> begin
  Q = A * K * A' + I
  S = sqrtm(K)
  (i, j) -> exp(Q(i, i)^2) * inv(Q)(PLACE) + S(i, j)
end"""


def test_where_exponentials_overflow_small_numbers_decide() -> None:
    """A root wants matrices far from singular, whose squares no exponential can take."""
    first, turned, other = (infer(parse(STEEP.replace("PLACE", place))) for place in ("i, j", "j, i", "i, i"))
    assert gate_for(first, turned).same(first, turned, "a turn")
    with pytest.raises(cd.CombDiffError, match="changed the value"):
        gate_for(first, other).same(first, other, "a fault")


@pytest.mark.slow
def test_a_determinant_that_is_undefined_for_some_numbers_is_derived() -> None:
    """Stages are held against numbers of which some are below -1, where the root is undefined."""
    d = cd.grad("(x::RV) -> det((i::N, j) -> x(j) * (1 + x(j))^(1/3))")
    x = np.array([0.5])
    assert d.check()
    np.testing.assert_allclose(d.compile()(x), 1.5 ** (1 / 3) + 0.5 / 3 * 1.5 ** (-2 / 3), rtol=1e-14)
    assert cd.grad("(x::RV) -> det((i::N, j) -> abs2(x(j)) * (1 + abs2(x(j)))^(1/3))").source()


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("complex_", [False, True])
def test_exponentials_of_a_stack_are_those_of_scipy(n: int, complex_: bool) -> None:
    rng = np.random.default_rng(n)
    A, K = rng.normal(size=(2, 3, 2, n, n)) + 1j * complex_ * rng.normal(size=(2, 3, 2, n, n))
    np.testing.assert_allclose(matrix_values("expm", A), expm(A), rtol=1e-11, atol=1e-12)
    found = matrix_values("expm_along", A, 100 * K)
    for place in np.ndindex(3, 2):
        along = expm_frechet(A[place], 100 * K[place], compute_expm=False)
        np.testing.assert_allclose(found[place], along, rtol=1e-10, atol=1e-9)


def test_a_second_derivative_of_an_exponential_is_that_of_its_series() -> None:
    A, K, L = np.random.default_rng(3).normal(size=(3, 4, 3, 3))
    wanted = [value_of("expm_along", *matrices) for matrices in zip(A, K, L, strict=True)]
    np.testing.assert_allclose(matrix_values("expm_along", A, K, L), wanted, rtol=1e-11, atol=1e-12)
    assert matrix_values("expm_along", *np.zeros((2, 4, 0, 0))).shape == (4, 0, 0)


def test_an_exponential_without_a_value_leaves_the_others_theirs() -> None:
    found = matrix_values("expm", np.array([NAN, [[0.0, 0.0], [0.0, 0.0]]]))
    assert np.isnan(found[0]).all()
    np.testing.assert_array_equal(found[1], np.eye(2))
