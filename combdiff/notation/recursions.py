"""Loops as a paper writes them: s_0 = 0, s_{t+1} = tanh(W s_t + x_t), and the adjoint from the last state down.

All loops of one recurrence are one name for each state, with one value more than there are steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from combdiff.calculus.definitions.floating import unfold
from combdiff.calculus.loops.recurrences import by_entries
from combdiff.language.printing.loops import forwards
from combdiff.language.printing.states import count_of, joined
from combdiff.records import dataclass
from combdiff.terms.terms import (
    ONE,
    ZERO,
    App,
    Lam,
    Let,
    Loop,
    Term,
    Tuple,
    Var,
    add,
    apply,
    body_of,
    fresh,
    params_of,
    refreshed,
    same_recurrence,
    substitute,
)
from combdiff.terms.types import Domain, Index, Map, slot_types

Equation = tuple[Term, Term]
"""The left and the right side, of the indices that are free in both."""


@dataclass(slots=True)
class Recursions:
    """The equations of each recurrence, and what it binds, at the first of the variables that stand for its states."""

    equations: dict[Var, Sequence[Equation]] = field(default_factory=dict)
    states: dict[Var, tuple[Var, ...]] = field(default_factory=dict)

    def bound(self, var: Var) -> tuple[Var, ...]:
        """What a definition of `var` binds."""
        return self.states.get(var, (var,))

    def of(self, term: Term) -> Term:
        """`term` with one definition for each state of a recurrence."""
        match term:
            case Lam(params, body):
                return Lam(params, self.of(body))
            case Let(bindings, body) if any(isinstance(e, Loop) for _, e in bindings):
                return self._definitions(bindings, body)
            case _:
                return term

    def _definitions(self, bindings: Sequence[tuple[Var, Term]], body: Term) -> Term:
        found: list[tuple[Var, Term]] = []
        uses: dict[Var, Term] = {}
        known: list[tuple[Loop, list[Var]]] = []
        for var, value in bindings:
            value = substitute(value, uses)
            if not isinstance(value, Loop):
                found.append((var, value))
                continue
            states = next((s for e, s in known if same_recurrence(e, value)), None)
            if states is None:
                states = [fresh(_name(var, value, n), _at_all_times(value, n)) for n in range(len(value.states))]
                known.append((value, states))
                found += [(s, Loop("states", n, *_parts(value))) for n, s in enumerate(states)]
                self.equations |= dict.fromkeys(states, ())
                self.states |= dict.fromkeys(states, ())
                self.equations[states[0]], self.states[states[0]] = _equations(value, states), tuple(states)
            uses[var] = _read(states[value.item], value)
        # a state that nothing reads keeps its equations, which those of the other states read
        counts = {s: count_of(_domain(loop)) for loop, states in known for s in states if not loop.backward}
        for var in counts:
            self.equations[var] = [(left, joined(right, counts)) for left, right in self.equations[var]]
        bindings = tuple((var, joined(value, counts)) for var, value in found)
        return Let(bindings, joined(substitute(body, uses), counts))


def _parts(loop: Loop) -> tuple[bool, Term, Term]:
    return loop.backward, loop.step, loop.start


def _name(var: Var, loop: Loop, item: int) -> str:
    """What a state is called: as the definition that is read, others as in the step."""
    return var.name if item == loop.item else loop.states[item].name


def _at_all_times(loop: Loop, item: int) -> Map:
    state = loop.states[item].kind
    time = loop.time.kind
    assert isinstance(time, Index) and time.domain is not None, "a loop runs over a domain"
    own = slot_types(state)
    return Map((Index(time.domain.shortened(-1)), *own), state.result if isinstance(state, Map) else state)


def _count(loop: Loop) -> Term:
    """How many steps it has."""
    return count_of(_domain(loop))


def _domain(loop: Loop) -> Domain:
    """What its time ranges over."""
    time = loop.time.kind
    assert isinstance(time, Index) and time.domain is not None, "a loop runs over a domain"
    return time.domain


def _read(state: Var, loop: Loop) -> Term:
    """What the value of a loop is: the last state, or the map from times to those before each step."""
    assert isinstance(state.kind, Map), "states are a map of time"
    _, *own = (fresh(name, kind) for name, kind in zip("tijklmnop", state.kind.params, strict=False))
    if loop.kind == "last":
        last = App(state, (ZERO if loop.backward else _count(loop), *own))
        return Lam(tuple(own), last) if own else last
    step = fresh("t", loop.time.kind)
    return Lam((step, *own), App(state, (add(step, ONE) if loop.backward else step, *own)))


def _equations(loop: Loop, states: Sequence[Var]) -> list[Equation]:
    """s(0, i) = …, s(t + 1, i) = …; backwards s(n, i) = …, s(t, i) = …."""
    step = refreshed(unfold(forwards(loop.step)))
    assert isinstance(step, Lam) and isinstance(step.body, Tuple) and isinstance(loop.start, Tuple), "a step"
    *old, time = step.params
    later = add(time, ONE)
    first: Term = _count(loop) if loop.backward else ZERO
    before, after = (later, time) if loop.backward else (time, later)
    points: dict[Var, Term] = {}
    for s, state in zip(old, states, strict=True):
        own = tuple(fresh("d", kind) for kind in s.kind.params) if isinstance(s.kind, Map) else ()
        entry = App(state, (before, *own))
        points[s] = Lam(own, entry) if own else entry
    found: list[Equation] = []
    for state, start, item in zip(states, loop.start.items, step.body.items, strict=True):
        item = by_entries(item)
        own = params_of(item)
        body = substitute(body_of(item), points)
        given = apply(start, *own) if own else start
        found += [(App(state, (first, *own)), given), (App(state, (after, *own)), body)]
    return found
