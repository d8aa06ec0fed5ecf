"""Leaves states that nothing reads out of loops.

    (x, J)(t + 1) = (A x, J + x Q x), and only x is read          x(t + 1) = A x

A cost that adds up along a trajectory is a state of the objective. Its cotangent is one number, so that the gradient
needs the trajectory alone. A state is read by the result, by other definitions, by other loops, or by the step of a
state that is read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from combdiff.calculus.loops.recurrences import LoopBody
from combdiff.terms.schema import reshaped
from combdiff.terms.terms import (
    Lam,
    Let,
    Loop,
    Term,
    Tuple,
    Var,
    bound_by,
    children,
    holds,
    items_of,
    let,
    rebuild,
    same_recurrence,
)

Binding = tuple[Var, Term]


def with_read_states(term: Term) -> Term:
    """`term` with loops of the states that are read, also in the steps of loops.

    >>> from combdiff.language.inference.infer import infer
    >>> from combdiff.language.parsing.parser import parse
    >>> loop = "(s, c) = iterate(((s, c), t) -> (s * x(t), c + s), (1, 0), n)"
    >>> program = infer(parse(f"(x::RV{{n}}) -> begin {loop}; s end"))
    >>> ((_, loop),) = with_read_states(program).body.bindings
    >>> [state.name for state in loop.states]
    ['s']
    """
    if not holds(term, Loop):
        return term
    if isinstance(term, Let):
        found = _with_read_states(term)
        if not isinstance(found, Let):
            return with_read_states(found)
        parts = [with_read_states(c) for c in children(found)]
        return found if all(map(_is, parts, children(found))) else reshaped(found, parts, bound_by(found))
    parts = [with_read_states(c) for c in children(term)]
    if all(map(_is, parts, children(term))):
        return term
    return reshaped(term, parts, bound_by(term)) if bound_by(term) else rebuild(term, parts)


def _is(a: Term, b: Term) -> bool:
    return a is b


def _with_read_states(t: Let) -> Term:
    """Definitions of which each recurrence goes through the states that are read."""
    bindings, body = t.bindings, t.body
    while True:
        known = dict(bindings)
        for loops in recurrences(bindings):
            first = known[loops[0]]
            assert isinstance(first, Loop), "a definition of a loop"
            items = needed(first, {_item(known[v]) for v in loops})
            if len(items) < len(first.states):
                smaller = restricted(first, items)
                known |= {v: _of(smaller, known[v], items) for v in loops}
        # what only a state that is gone has read is not read any more
        found = let([(v, known[v]) for v, _ in bindings], body)
        assert isinstance(found, Let) or not holds(found, Loop), "definitions of loops stay"
        if not isinstance(found, Let) or found.bindings == bindings:
            return found
        bindings, body = found.bindings, found.body


def recurrences(bindings: Sequence[Binding]) -> list[list[Var]]:
    """The definitions that are loops, those of one recurrence together."""
    found: list[tuple[Loop, list[Var]]] = []
    for var, value in bindings:
        if isinstance(value, Loop):
            own = next((own for loop, own in found if same_recurrence(loop, value)), None)
            if own is None:
                found.append((value, [var]))
            else:
                own.append(var)
    return [own for _, own in found]


def needed(loop: Loop, items: Collection[int]) -> list[int]:
    """The numbers of the states of a loop that the states `items` are made of, and of these, in order."""
    step = LoopBody.of(loop)
    read = _reads(step)
    found = {*items}
    while more := {m for n in found for m, s in enumerate(step.states) if s in read[n]} - found:
        found |= more
    return sorted(found)


def _reads(step: LoopBody) -> list[set[Var]]:
    """What each next state is made of, definitions written out."""
    found = [set(e.free) for e in step.items]
    for var, value in reversed(step.bindings):
        for own in found:
            if var in own:
                own |= value.free
    return found


def restricted(loop: Loop, items: Sequence[int]) -> Loop:
    """The loop over some of its states, which read no others, with the first of them as its value."""
    step = LoopBody.of(loop)
    body = let(step.bindings, Tuple(tuple(step.items[n] for n in items)))
    kept = Lam((*(step.states[n] for n in items), step.time), body)
    start = Tuple(tuple(items_of(loop.start)[n] for n in items))
    return Loop(loop.kind, 0, loop.backward, kept, start)


def _item(loop: Term) -> int:
    assert isinstance(loop, Loop), "a definition of a loop"
    return loop.item


def _of(smaller: Loop, loop: Term, items: Sequence[int]) -> Loop:
    """What `loop` is of the loop over the states `items` of it."""
    assert isinstance(loop, Loop), "a definition of a loop"
    return Loop(loop.kind, items.index(loop.item), loop.backward, smaller.step, smaller.start)


def unread(before: Lam, after: Lam) -> Iterator[str]:
    """The names of the states that loops of `before` have and those of `after` have not."""
    left = list(_names(after.body))
    for name in _names(before.body):
        if name in left:
            left.remove(name)
        else:
            yield name


def _names(term: Term) -> Iterator[str]:
    bindings = term.bindings if isinstance(term, Let) else ()
    known = dict(bindings)
    for own in recurrences(bindings):
        loop = known[own[0]]
        assert isinstance(loop, Loop), "a definition of a loop"
        yield from (s.name for s in loop.states)
        yield from _names(loop.step.body if isinstance(loop.step, Lam) else loop.step)
