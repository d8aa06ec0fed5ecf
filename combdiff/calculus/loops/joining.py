"""Joins loops that go through a common state: the state is computed once.

    x(t + 1) = f(x)        and        x(t + 1) = f(x), y(t + 1) = f'(x) y          are one loop over x and y

Two states are the same if they start alike and their steps are alike, each state read as what it is the same as: states
are told apart round by round, as those of automata. Loops join if neither reads the other.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial

from combdiff.calculus.loops.halting import halting
from combdiff.calculus.loops.loop_keys import LoopKeys
from combdiff.calculus.loops.read_states import Binding, recurrences
from combdiff.calculus.loops.recurrences import LoopBody
from combdiff.records import dataclass
from combdiff.terms.terms import Lam, Let, Loop, Term, Tuple, Var, items_of, let, substitute


@dataclass(slots=True)
class _Joint:
    """One loop for those of several recurrences, the definitions that are its states, and what each state is."""

    loop: Loop
    own: list[Var]
    colours: list[int]
    items: dict[Var, int]
    joined: list[str] = field(default_factory=list)


def with_joined_loops(bindings: Sequence[Binding], told: list[list[str]] | None = None) -> Sequence[Binding]:
    """The same definitions, of loops with a common state one loop; `told` gets the names of what was joined."""
    groups = recurrences(bindings)
    known = dict(bindings)
    if len({_run(known[own[0]]) for own in groups}) == len(groups):
        return bindings  # no two that run over the same steps
    loops = [_loop(known[own[0]]) for own in groups]
    colours = Colours(LoopKeys()).of(loops)
    made: list[_Joint] = []
    for own, loop, colour in zip(groups, loops, colours, strict=True):
        items = {v: _loop(known[v]).item for v in own}
        new = _Joint(loop, own, colour, items)
        others = (m for m in made if not {*m.colours}.isdisjoint(colour) and _run(m.loop) == _run(loop))
        found = next((j for m in others if _are_apart(m.own, own, known) and (j := _together(m, new))), None)
        if found is None:
            made.append(new)
    for joint in made:
        if joint.joined:
            known |= {v: _item_of(joint.loop, _loop(known[v]), n) for v, n in joint.items.items()}
            if told is not None:
                told.append(joint.joined)
    return in_order(list(known.items())) if any(m.joined for m in made) else bindings


def joined_loops(term: Term, told: list[list[str]] | None = None) -> Term:
    """`term` with the loops of its definitions joined."""
    if not isinstance(term, Let):
        return term
    bindings = with_joined_loops(term.bindings, told)
    return term if bindings is term.bindings else let(bindings, term.body)


def _run(loop: Term) -> Hashable:
    """Over which steps a loop runs."""
    loop = _loop(loop)
    return loop.backward, loop.time.kind


def _loop(value: Term) -> Loop:
    assert isinstance(value, Loop), "a definition of a loop"
    return value


def _item_of(joint: Loop, loop: Loop, item: int) -> Loop:
    return Loop(loop.kind, item, loop.backward, joint.step, joint.start)


def _are_apart(some: Collection[Var], others: Collection[Var], known: Mapping[Var, Term]) -> bool:
    """Whether no definition of the one is made of one of the other."""
    return _made_of(some, known).isdisjoint(others) and _made_of(others, known).isdisjoint(some)


def _made_of(variables: Collection[Var], known: Mapping[Var, Term]) -> set[Var]:
    """The definitions that some are made of."""
    found: set[Var] = set()
    left = list(variables)
    while left:
        for v in known[left.pop()].free:
            if v in known and v not in found:
                found.add(v)
                left.append(v)
    return found


def _together(first: _Joint, other: _Joint) -> _Joint | None:
    """The first with the states of the other, if the loop still stops where one of them does."""
    step, more = LoopBody.of(first.loop), LoopBody.of(other.loop)
    colours = [*first.colours]
    states, own = [*step.states], []
    values: dict[Var, Term] = {more.time: step.time}
    for n, (s, colour) in enumerate(zip(more.states, other.colours, strict=True)):
        if colour in colours:
            values[s] = states[colours.index(colour)]
        else:
            colours.append(colour)
            states.append(s)
            own.append(n)
    bindings = [*step.bindings, *((v, substitute(e, values)) for v, e in more.bindings)]
    items = [*step.items, *(substitute(more.items[n], values) for n in own)]
    once, same = definitions_once(bindings)
    body = let(once, Tuple(tuple(substitute(e, same) for e in items)))
    start = Tuple((*items_of(first.loop.start), *(items_of(other.loop.start)[n] for n in own)))
    loop = Loop(first.loop.kind, first.loop.item, first.loop.backward, Lam((*states, step.time), body), start)
    if halting(_step(loop)) is None and not (halting(_step(first.loop)) is None is halting(_step(other.loop))):
        return None
    first.joined = [*(first.joined or [s.name for s in first.loop.states]), *(more.states[n].name for n in own)]
    first.items |= {v: colours.index(other.colours[n]) for v, n in other.items.items()}
    first.loop, first.own, first.colours = loop, [*first.own, *other.own], colours
    return first


def _step(loop: Loop) -> Lam:
    assert isinstance(loop.step, Lam), "a step is a map"
    return loop.step


@dataclass(slots=True)
class Colours:
    """Tells states of loops apart: those of one colour go through the same values."""

    keys: LoopKeys = field(default_factory=LoopKeys)

    def of(self, loops: Sequence[Loop]) -> list[list[int]]:
        """The colours of the states of each loop."""
        keys: list[list[Hashable]] = [
            [*map(partial(self._first, loop), loop.states, items_of(loop.start))] for loop in loops
        ]
        count = 0
        while True:
            numbers: dict[Hashable, int] = {}
            colours = [[numbers.setdefault(key, len(numbers)) for key in own] for own in keys]
            if len(numbers) == count:
                return colours
            count = len(numbers)
            keys = [
                [(n, key) for n, key in zip(own, self.keys.of_step(_step(loop), own), strict=True)]
                for loop, own in zip(loops, colours, strict=True)
            ]

    def _first(self, loop: Loop, state: Var, start: Term) -> Hashable:
        """What tells states apart before the first step."""
        return _run(loop), state.kind, self.keys.of_value(start)


def definitions_once(bindings: Sequence[Binding]) -> tuple[list[Binding], dict[Var, Term]]:
    """Definitions without those that are equal to an earlier one, and what stands for these."""
    spelled = LoopKeys()
    first: dict[Hashable, Var] = {}
    same: dict[Var, Term] = {}
    alike: dict[Hashable, list[Binding]] = {}
    found: list[Binding] = []
    for var, value in bindings:
        value = substitute(value, same)
        # an equal definition has the same variables; most have no partner, and need no key
        partners = alike.setdefault((var.kind, value.free, isinstance(value, Loop)), [])
        if partners:
            for other, given in partners:
                first.setdefault(spelled.of_value(given), other)
            known = first.get(spelled.of_value(value))
            if known is not None:
                same[var] = known
                continue
        partners.append((var, value))
        found.append((var, value))
    return found, same


def in_order(bindings: Sequence[Binding]) -> list[Binding]:
    """Definitions, each after those that it is made of, else as they are."""
    known = dict(bindings)
    done: dict[Var, Term] = {}

    def place(var: Var) -> Iterator[Iterator[object]]:
        for v in sorted(known[var].free & known.keys(), key=list(known).index):
            if v not in done:
                yield place(v)
        done.setdefault(var, known[var])

    for var in known:
        stack: list[Iterator[object]] = [place(var)]
        while stack:
            below = next(stack[-1], None)
            if below is None:
                stack.pop()
            else:
                assert isinstance(below, Iterator), "what comes first"
                stack.append(below)
    return list(done.items())
