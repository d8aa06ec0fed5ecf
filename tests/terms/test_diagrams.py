"""Decision diagrams against sets of tuples."""

from __future__ import annotations

from itertools import product
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combdiff.terms.conditions.diagrams import Cases, Diagrams, TooManyNodes

VALUES = (2, 3, 1, 4)

Held: TypeAlias = frozenset[tuple[int, ...]]

EVERY: Held = frozenset(product(*map(range, VALUES)))


class Sets:
    """Diagrams beside the sets that they stand for."""

    def __init__(self) -> None:
        self.diagrams = Diagrams(VALUES)

    def where(self, unknown: int, good: int) -> tuple[Cases, Held]:
        """The cases in which the bits of `good` tell that the value of an unknown is good."""
        values = [bool(good >> value & 1) for value in range(VALUES[unknown])]
        return self.diagrams.where(unknown, values), frozenset(c for c in EVERY if values[c[unknown]])


FORMULAS = st.recursive(
    st.tuples(st.just("where"), st.integers(0, len(VALUES) - 1), st.integers(0, 15)),
    lambda inner: st.tuples(st.sampled_from("&|~"), inner, inner),
    max_leaves=12,
)


def both(sets: Sets, formula) -> tuple[Cases, Held]:
    sign, one, other = formula
    if sign == "where":
        return sets.where(one, other)
    (a, held_a), (b, held_b) = both(sets, one), both(sets, other)
    match sign:
        case "&":
            return a & b, held_a & held_b
        case "|":
            return a | b, held_a | held_b
    return ~a, EVERY - held_a


@pytest.mark.slow
@given(FORMULAS, FORMULAS)
def test_diagrams_are_sets(one, other) -> None:
    sets = Sets()
    (a, held_a), (b, held_b) = both(sets, one), both(sets, other)
    assert (a == b) == (held_a == held_b)
    assert bool(a) == bool(held_a)
    assert (a == sets.diagrams.all) == (held_a == EVERY)
    assert not held_a or a.first == min(held_a)


def test_many_conditions_have_a_small_diagram() -> None:
    diagrams = Diagrams((3,) * 100, limit=1000)
    below = [diagrams.where(n, (True, False, False)) for n in range(100)]
    held = diagrams.all
    for one in reversed(below):
        held = held & one
    assert held.first == (0,) * 100 and not any(held & ~one for one in below)


def test_what_has_no_small_diagram_is_refused() -> None:
    """Pairs whose parts are far apart in the order need a node for each set of first parts that hold."""
    diagrams = Diagrams((2,) * 40, limit=1000)
    held = diagrams.none
    with pytest.raises(TooManyNodes):
        for n in range(20):
            held = held | diagrams.where(n, (False, True)) & diagrams.where(n + 20, (False, True))
