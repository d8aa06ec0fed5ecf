"""Loops in the check of a simplification: the first steps of one, which no change of the meaning leaves as they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from combdiff.terms.terms import Lam, Loop, Term, Var
from combdiff.terms.types import Domain, Index

if TYPE_CHECKING:
    from combdiff.gate.labelled import Array

STEPS = 4
"""Steps that are taken: what is stored for others is the state after these."""

Items = Callable[[Mapping[Var, object], Term], "list[Array]"]
"""What computes the items of a tuple, with values for more variables."""


def states_of(t: Loop, sizes: Mapping[Domain, int], items: Items) -> Array:
    """The last state of a loop, or those before each step."""
    import numpy as np

    assert isinstance(t.time.kind, Index) and t.time.kind.domain is not None, "a loop runs over a domain"
    assert isinstance(t.step, Lam), "a step is a map"
    count = t.time.kind.domain.extent(sizes)
    first = t.time.kind.domain.first(count)
    state = items({}, t.start)
    before: dict[int, Array] = {}
    for place in list(range(count))[:: -1 if t.backward else 1][:STEPS]:
        before[place] = state[t.item]
        state = items({**dict(zip(t.states, state, strict=True)), t.time: first + place}, t.step.body)
    if t.kind == "last":
        return state[t.item]
    rest = state[t.item]
    return np.array([before.get(place, rest) for place in range(count)]).reshape(count, *np.shape(rest))
