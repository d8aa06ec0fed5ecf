"""Functions of stacks of matrices, of which some have no value."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.gate.matrices import matrix_values

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


@pytest.mark.slow
def test_a_determinant_that_is_undefined_for_some_numbers_is_derived() -> None:
    """Stages are held against numbers of which some are below -1, where the root is undefined."""
    d = cd.grad("(x::RV) -> det((i::N, j) -> x(j) * (1 + x(j))^(1/3))")
    x = np.array([0.5])
    assert d.check()
    np.testing.assert_allclose(d.compile()(x), 1.5 ** (1 / 3) + 0.5 / 3 * 1.5 ** (-2 / 3), rtol=1e-14)
    assert cd.grad("(x::RV) -> det((i::N, j) -> abs2(x(j)) * (1 + abs2(x(j)))^(1/3))").source()
