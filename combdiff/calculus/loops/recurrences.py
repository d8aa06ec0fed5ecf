"""Takes the steps of loops apart, and joins the loops for all values of an index to one loop.

i ↦ the last of s ↦ a(i) s      is that of      S ↦ (i ↦ a(i) S(i))
"""

from __future__ import annotations

from collections.abc import Sequence

from combdiff.records import dataclass
from combdiff.terms.terms import (
    App,
    Lam,
    Let,
    Loop,
    Term,
    Tuple,
    Var,
    apply,
    fresh,
    fresh_slots,
    items_of,
    let,
    refreshed,
    substitute,
)
from combdiff.terms.types import Map, Type, slot_types

Binding = tuple[Var, Term]


@dataclass(frozen=True, slots=True)
class LoopBody:
    """A step taken apart: its states, its number, its definitions and the next states."""

    states: tuple[Var, ...]
    time: Var
    bindings: tuple[Binding, ...]
    items: tuple[Term, ...]

    @classmethod
    def of(cls, loop: Loop) -> LoopBody:
        """The step of a loop, in variables of its own."""
        step = refreshed(loop.step)
        assert isinstance(step, Lam), "a step is a map"
        bindings: list[Binding] = []
        body = step.body
        while isinstance(body, Let):
            bindings += body.bindings
            body = body.body
        assert isinstance(body, Tuple), "a step makes a tuple"
        return cls(step.params[:-1], step.params[-1], tuple(bindings), body.items)

    def made(self) -> Lam:
        """The map that it is."""
        return Lam((*self.states, self.time), let(self.bindings, Tuple(self.items)))


def as_step(f: Lam) -> Lam:
    """The step that returns what f does, the only state as a tuple of one."""
    bindings: list[Binding] = []
    body = f.body
    while isinstance(body, Let):
        bindings += body.bindings
        body = body.body
    return Lam(f.params, let(bindings, body if isinstance(body, Tuple) else Tuple((body,))))


def entry_of(state: Term) -> tuple[tuple[Var, ...], Term]:
    """The indices and the entry of a state; one that is not written by its entries gets indices."""
    if isinstance(state, Lam):
        return state.params, state.body
    own = fresh_slots(state.type)
    return own, apply(state, *own) if own else state


def by_entries(state: Term) -> Term:
    """A tensor as a map of its indices, as `x` is i ↦ x(i)."""
    own, entry = entry_of(state)
    return Lam(own, entry) if own else state


def entry_at(states: Term, time: Term, kind: Type) -> Term:
    """The state at a time, of the type `kind`, of the map of times to states."""
    own = fresh_slots(kind)
    entry = apply(states, time, *own)
    return Lam(own, entry) if own else entry


def widened_loop(var: Var, loop: Loop, around: Sequence[Var]) -> tuple[Binding, Term]:
    """A definition of the loops for each value of indices, all as one, and what now stands for the old variable.

    The number of the step stays its first slot.
    """
    wide = gathered(loop, around)
    new = fresh(var.name, wide.type)
    own = fresh_slots(var.kind)
    time = 0 if loop.kind == "last" else 1
    entry = App(new, (*own[:time], *around, *own[time:]))
    return (new, wide), Lam(own, entry) if own else entry


def gathered(loop: Loop, around: Sequence[Var]) -> Loop:
    """The loops for each value of the indices `around`, as one loop over all of them.

    i ↦ the last of s ↦ a(i) s is that of S ↦ (i ↦ a(i) S(i)). Definitions of the step are written out, but for loops.
    """
    step = LoopBody.of(loop)
    outer = tuple(fresh(v.name, v.kind) for v in around)
    wide = [fresh(s.name, _widened(s.kind, outer)) for s in step.states]
    points: dict[Var, Term] = dict(zip(around, outer, strict=True))
    points |= {s: _row(S, outer, s.kind) for s, S in zip(step.states, wide, strict=True)}
    bindings: list[Binding] = []
    for var, value in step.bindings:
        points[var] = value = substitute(value, points)
        if isinstance(value, Loop):
            needed = tuple(i for i in outer if i in value.free)
            found, points[var] = widened_loop(var, value, needed) if needed else ((var, value), var)
            bindings.append(found)

    def over(t: Term) -> Term:
        """A state as a map of the indices, too."""
        own, entry = entry_of(t)
        return refreshed(Lam((*outer, *own), substitute(entry, points)))

    body = let(bindings, Tuple(tuple(map(over, step.items))))
    start = Tuple(tuple(map(over, items_of(loop.start))))
    return Loop(loop.kind, loop.item, loop.backward, Lam((*wide, step.time), body), start)


def _widened(kind: Type, outer: Sequence[Var]) -> Map:
    own = slot_types(kind)
    number = kind.result if isinstance(kind, Map) else kind
    return Map((*(v.kind for v in outer), *own), number)


def _row(states: Var, outer: Sequence[Var], kind: Type) -> Term:
    own = fresh_slots(kind)
    row = App(states, (*outer, *own))
    return Lam(own, row) if own else row
