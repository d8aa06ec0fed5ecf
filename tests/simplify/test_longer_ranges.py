"""Slots of n + 1 entries and indices of n values: a δ between them becomes a condition, and code becomes slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.meaning.evaluate import evaluate
from combdiff.simplify.contraction.ranges import solved_within_ranges
from combdiff.terms.conditions.guards import reads_beyond
from combdiff.terms.terms import MINUS_ONE, ONE, ZERO, App, Delta, Indicator, Sum, add, fresh, indicator, number, size
from combdiff.terms.types import REAL, Domain, Index, Map, range_of
from tests.reading_back import assert_reads_back, reread, values_of

n = Domain("n", sized=True)
i, r = fresh("i", Index(n)), fresh("r", Index(n.shortened(-1)))
x = fresh("x", Map((Index(n),), REAL))

DEEP = "(w::RV{n}) -> (y::RV{n + 1}) -> sum(i::N{n}, w(i) * (y(i + 1) - y(i))^2)"
PROGRAMS: dict[str, tuple[str, Sequence[tuple[int, ...]]]] = {
    "(x::RV{n + 1}) -> sum(i::N{n}, (x(i + 1) - x(i))^2)": (
        "i -> 2 * where(1 <= i, x(i) - x(i - 1)) - 2 * where(i < n, x(i + 1) - x(i))",
        [(1,)],
    ),
    "(x::RV{n + 2}) -> sum(i::N{n}, (x(i + 2) - 2 * x(i + 1) + x(i))^2)": (
        "begin r = (i::N{n}) -> x(i + 2) + x(i) - 2 * x(i + 1) "
        "(i::N{n + 2}) -> 2 * where(2 <= i, r(i - 2)) + 2 * where(i < n, r(i)) - 4 * where(1 <= i <= n, r(i - 1)) end",
        [(2,)],
    ),
    DEEP: (
        "begin v = (i::N{n}) -> w(i) * (y(i + 1) - y(i)) "
        "(i::N{n + 1}) -> 2 * where(1 <= i, v(i - 1)) - 2 * where(i < n, v(i)) end",
        [(0,), (1,)],
    ),
    "(w::RM{n, m}) -> (y::RM{n + 1, m}) -> sum((i::N{n}, j), w(i, j) * (y(i + 1, j) - y(i, j))^2)": (
        "(i::N{n + 1}, j) -> 2 * where(1 <= i, w(i - 1, j) * (y(i, j) - y(i - 1, j)))"
        " - 2 * where(i < n, w(i, j) * (y(i + 1, j) - y(i, j)))",
        [(0, 2), (1, 2)],
    ),
    "(y::RV{n}) -> (w::RV{n + 1}) -> sum(i::N{n}, y(i) * exp(w(i)) / w(i + 1))": (
        "(i::N{n + 1}) -> where(i < n, y(i) / w(i + 1) * exp(w(i))) - where(1 <= i, y(i - 1) / w(i)^2 * exp(w(i - 1)))",
        [(0,), (1,)],
    ),
    "(w::RV{n}) -> (x::RV{n - 1}) -> sum(i::N{n}, where(1 <= i, w(i) * x(i - 1)^3))": (
        "d -> 3 * w(d + 1) * x(d)^2",
        [(0,), (-1,)],
    ),
}


def test_a_delta_between_a_range_and_a_longer_one_is_a_condition() -> None:
    body = App(x, (i,))
    last = Indicator(add(r, ONE), size(n), App(x, (r,)))
    assert solved_within_ranges(Sum((i,), Delta(i, r, body))) == last
    first = indicator(ONE, r, App(x, (add(r, MINUS_ONE),)))
    assert solved_within_ranges(Sum((i,), Delta(add(i, ONE), r, body))) == first


@pytest.mark.parametrize("other", [Domain("m", sized=True), Domain("Z", True, periodic=True)])
def test_a_delta_between_ranges_that_have_no_size_in_common_is_left(other: Domain) -> None:
    before = Sum((i,), Delta(i, fresh("r", Index(other)), App(x, (i,))))
    assert solved_within_ranges(before) == before


def test_an_index_of_more_values_than_its_slot_is_kept_by_a_condition() -> None:
    longer = fresh("y", Map((r.kind,), REAL))
    assert reads_beyond(App(x, (r,))) and not reads_beyond(App(longer, (i,)))
    assert not reads_beyond(Indicator(add(r, ONE), size(n), App(x, (r,))))


def test_a_delta_between_ranges_with_bounds_is_a_condition() -> None:
    d = cd.grad(
        "@domain K begin base = I; lower = 0; upper = 2 end\n@domain L begin base = I; lower = 0; upper = 4 end\n"
        "@space A begin type = (K) -> R end\n@space B begin type = (L) -> R end\n"
        "(a::A) -> (x::B) -> sum((i, j), a(i) * a(j)^2 * x(i + j))"
    )
    assert str(d).endswith("(d::L) -> sum(j::K, where(j <= d <= j + 2, a(d - j) * a(j)^2))")
    assert bool(d.check())


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_gradient_has_conditions_and_the_code_has_slices(program: str) -> None:
    d = cd.grad(program)
    text, more = PROGRAMS[program]
    assert " ".join(str(d).split()).endswith(text)
    assert_reads_back(d.term)
    assert bool(d.check())
    source = d.source()
    assert "np.where" not in source and "%" not in source and "np.roll" not in source
    objective, gradient = cd.simplified(program).compile(), d.compile()
    rng = np.random.default_rng(1)
    for m in (0, 1, 2, 3, 5):
        if min(shape[0] for shape in more) + m >= 0:
            arrays = [rng.uniform(0.5, 1.5, (m + shape[0], *shape[1:])) for shape in more]
            expected = _differences(objective, arrays)
            assert np.allclose(gradient(*arrays), expected, atol=1e-7), m
            assert np.allclose(np.asarray(_meant(d)(*arrays)), expected, atol=1e-7), m


def _meant(d: cd.Derivation) -> Any:
    """The formula, computed entry by entry."""
    f = evaluate(d.term, {})

    def all_at_once(*arrays: np.ndarray[Any, Any]) -> object:
        *given, unknown = arrays
        return f(*given)(unknown) if given else f(unknown)

    return all_at_once


def _differences(f: Any, arrays: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """Central differences by the last array."""
    *given, unknown = arrays
    found = np.zeros_like(unknown)
    for place in np.ndindex(*unknown.shape):
        step = np.zeros_like(unknown)
        step[place] = 1e-5
        found[place] = (f(*given, unknown + step) - f(*given, unknown - step)) / 2e-5
    return found


THREE = Index(range_of(3))


def test_a_number_that_is_a_value_of_a_range_with_a_number_meets_its_sum() -> None:
    j, y = fresh("j", THREE), fresh("y", Map((THREE,), REAL))
    entry = App(y, (number(2),))
    assert solved_within_ranges(Sum((j,), Delta(j, ONE, entry))) == entry
    assert solved_within_ranges(Sum((j,), Delta(j, number(2), App(y, (j,))))) == entry
    beyond = Sum((j,), Delta(j, number(3), entry))
    assert solved_within_ranges(beyond) == beyond


def test_conditions_that_a_number_decides_are_decided() -> None:
    j, y = fresh("j", THREE), fresh("y", Map((THREE,), REAL))
    entry = App(y, (ONE,))
    assert solved_within_ranges(Sum((j,), Delta(j, ZERO, Delta(j, ONE, entry)))) == ZERO
    assert solved_within_ranges(Sum((j,), Delta(j, ONE, Delta(j, ONE, entry)))) == entry


def test_a_condition_that_one_value_meets_is_a_delta() -> None:
    j, y = fresh("j", THREE), fresh("y", Map((THREE,), REAL))
    entry = App(y, (j,))
    assert solved_within_ranges(Sum((j,), Indicator(number(2), j, entry))) == App(y, (number(2),))
    assert solved_within_ranges(Sum((j,), Indicator(j, ZERO, entry))) == App(y, (ZERO,))
    several = Sum((j,), Indicator(ONE, j, entry))
    assert solved_within_ranges(several) == several


def test_a_loop_that_is_read_twice_reads_back() -> None:
    """The first states are written once, and say how long a state is of which a step reads an entry."""
    step = "(x, b), i) -> (j -> x(j) * x(i) + B(j, i), b * B(i, i))"
    text = f"(B::Sym{{n}}) -> begin (f, g) = scan(({step}, ((j::N{{n}}) -> 1, 1), n - 1); sum(f)^2 + sum(g)^2 end"
    d = cd.grad(text)
    for before, after in zip(*values_of(d.term, reread(d.term)), strict=True):
        assert np.allclose(before, after)
    assert d.check()
