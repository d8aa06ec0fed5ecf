"""A number in the place of a periodic index: what else is asked of the index stays modulo the size of its range."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import combdiff as cd
from combdiff.meaning.evaluate import evaluate
from combdiff.terms.terms import MINUS_ONE, ONE, TWO, ZERO, delta, fresh, mul, number, substitute
from combdiff.terms.types import Domain, Index
from tests.reading_back import assert_reads_back

RING = "@domain Z begin base = I; periodic = true end\n(x::(Z) -> R) -> "

Objective = Callable[[np.ndarray, int], float]

PROGRAMS: dict[str, Objective] = {
    "sum(i::Z, where(0 == i and 2 == i, x(i)^2))": lambda x, n: x[0] ** 2 * (2 % n == 0),
    "sum((i::Z, j::Z), delta(i, 0, delta(j, 2, delta(i, j, x(i)^2))))": lambda x, n: x[0] ** 2 * (2 % n == 0),
    "sum((i::Z, j::Z), delta(i, j + 1, delta(i, 1, delta(j, 3, x(i)^2))))": lambda x, n: x[1 % n] ** 2 * (3 % n == 0),
    "sum(i::Z, delta(i, 0, where(i == 3, x(1), x(i)^2)))": lambda x, n: x[0] ** 2 if 3 % n else x[1 % n],
    "sum(i::Z, where(i == 0, x(i) * cos(where(i == 2, x(i)))))": lambda x, n: x[0] * np.cos(x[0] * (2 % n == 0)),
    "sum(i::Z, where(i == 0, x(i) * cos(where(i != 2, x(i)))))": lambda x, n: x[0] * np.cos(x[0] * (2 % n != 0)),
    "((i::Z) -> where(i == 2, x(i)))(0)^2": lambda x, n: x[0] ** 2 * (2 % n == 0),
    "((i) -> where(i != 2, x(i)))(0)^2": lambda x, n: x[0] ** 2 * (2 % n != 0),
    "((i::Z, j::Z) -> where(i == j + 1, x(i)))(0, 2)^2": lambda x, n: x[0] ** 2 * (3 % n == 0),
    "((i::Z, j::Z) -> where(i == j, x(i)))(0, 0)^2": lambda x, n: x[0] ** 2,
    "((i::Z) -> i * delta(i, 2, 1 + x(i)))(4)^2": lambda x, n: (4 % n * (1 + x[4 % n])) ** 2 * (2 % n == 0),
    "(0 ▷ (i::Z) -> where(i == 2, x(i)))^2": lambda x, n: x[0] ** 2 * (2 % n == 0),
    # two conditions, each in a term of its own, are two entries
    "sum(i::Z, where(i == 0, x(i)^2) + where(i == 3, x(i)))": lambda x, n: x[0] ** 2 + x[3 % n],
}


def differences(f: Objective, x: np.ndarray, h: float = 1e-6) -> np.ndarray:
    steps = h * np.eye(x.size)
    return np.array([(f(x + s, x.size) - f(x - s, x.size)) / (2 * h) for s in steps])


@pytest.mark.parametrize("body", PROGRAMS)
def test_conditions_on_one_index_stay_modulo_the_size(body: str) -> None:
    d = cd.grad(RING + body)
    assert_reads_back(d.term)
    compiled = d.compile(value=True)
    for n in (1, 2, 3, 4, 5, 7):
        x = np.arange(1.0, n + 1) / 7
        value, gradient = compiled(x)
        assert value == pytest.approx(PROGRAMS[body](x, n), abs=1e-12), n
        np.testing.assert_allclose(gradient, differences(PROGRAMS[body], x), atol=1e-8, err_msg=str(n))


def test_conditions_on_several_indices_are_still_solved() -> None:
    kept = RING + "sum((i::Z, j::Z), delta(i, 0, delta(i, j + 1, x(j)^2)))"
    assert str(cd.simplified(kept)).splitlines()[-1] == "(x::(Z) -> R) -> x(-1)^2"
    apart = RING + "sum(i::Z, delta(i, 0, x(i)^2) + delta(i, 3, x(i)))"
    assert str(cd.simplified(apart)).splitlines()[-1] == "(x::(Z) -> R) -> x(0)^2 + x(3)"


def test_numbers_in_the_place_of_an_index_are_compared_modulo_the_size() -> None:
    ring = Index(Domain("Z", declared=True, periodic=True))
    i, j = fresh("i", ring), fresh("j", ring)
    meeting = substitute(delta(i, TWO, ONE), {i: ZERO})
    assert [evaluate(meeting, {}, sizes={ring.domain: n}) for n in (1, 2, 3)] == [1, 1, 0]
    assert substitute(delta(i, TWO, ONE), {i: TWO}) == ONE
    assert substitute(delta(i, j, ONE), {i: number(3)}) == delta(number(3), j, ONE)
    plain = fresh("k", Index(Domain("n")))
    assert substitute(delta(plain, TWO, ONE), {plain: ZERO}) == ZERO


def test_a_condition_at_zero_is_written_without_a_sign() -> None:
    """−i is 0 on a ring where i is: forms in which the graph turns the ring round read alike."""
    body = (
        "begin n = sum(i, x(i)^2); E = sum(i::Z, x(i) * x(i + 1)) + sum(i::Z, where(i == 0, x(i)^2) "
        "- where(i == 3, x(i)^2)); E / n end"
    )
    d = cd.grad(RING + body)
    assert "delta(0, i, " in str(d) and "delta(0, -i" not in str(d)
    assert d.check()
    i = fresh("i", Index(Domain("Z", declared=True, periodic=True)))
    assert delta(ZERO, mul(MINUS_ONE, i), ONE) == delta(ZERO, i, ONE)
