"""Evaluates loops for the gate: a few first steps, which a wrong rewrite would change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from combdiff.records import dataclass
from combdiff.terms.terms import Lam, Loop, Term, Var
from combdiff.terms.types import Domain, Index

if TYPE_CHECKING:
    from combdiff.gate.labelled import Array

STEPS = 4
"""Steps that are taken: what is stored for others is the state after these."""

Items = Callable[[Mapping[Var, object], Term], "list[Array]"]
"""What computes the items of a tuple, with values for more variables."""


@dataclass(frozen=True, slots=True)
class Recurrence:
    """The states of a loop before the steps at some places, and the last ones; all loops that keep some share it."""

    before: Mapping[int, Sequence[Array]]
    last: Sequence[Array]

    def kept(self, t: Loop, sizes: Mapping[Domain, int]) -> Array:
        """The last state of a loop, or those before each step."""
        import numpy as np

        last = self.last[t.item]
        if t.kind == "last":
            return last
        count, _ = _steps(t, sizes)
        rows = [self.before[place][t.item] if place in self.before else last for place in range(count)]
        return np.array(rows).reshape(count, *np.shape(last))


def recurrence_of(t: Loop, sizes: Mapping[Domain, int], items: Items) -> Recurrence:
    """The states that a loop goes through."""
    assert isinstance(t.step, Lam), "a step is a map"
    count, first = _steps(t, sizes)
    state = items({}, t.start)
    before: dict[int, Sequence[Array]] = {}
    for place in list(range(count))[:: -1 if t.backward else 1][:STEPS]:
        before[place] = state
        state = items({**dict(zip(t.states, state, strict=True)), t.time: first + place}, t.step.body)
    return Recurrence(before, state)


def _steps(t: Loop, sizes: Mapping[Domain, int]) -> tuple[int, int]:
    """How many steps a loop has, and the number of the first one."""
    assert isinstance(t.time.kind, Index) and t.time.kind.domain is not None, "a loop runs over a domain"
    count = t.time.kind.domain.extent(sizes)
    return count, t.time.kind.domain.first(count)
