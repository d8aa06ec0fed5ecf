"""Moves conditions around a loop into it, before the loop is moved out of their scope.

A loop runs for all values of the indices around it, and as a definition in front of the expression that uses it. Only
conditions in its step, and on its first states, keep its states from values that no condition lets through.
"""

from __future__ import annotations

from collections.abc import Iterator

from combdiff.terms.conditions.guards import Guard, both, condition_of, is_finite, under, unguarded
from combdiff.terms.schema import reshaped
from combdiff.terms.terms import (
    Delta,
    Indicator,
    Lam,
    Let,
    Loop,
    Term,
    Tuple,
    body_of,
    bound_by,
    children,
    holds,
    items_of,
    rebuild,
)


def with_guards_inside(term: Term) -> Term:
    """`term` with the conditions around a loop in its step, too: each state is 0 where they do not hold."""
    if not holds(term, Loop):
        return term
    return _guarded(term, ())


def _guarded(t: Term, guard: Guard) -> Term:
    match t:
        case Indicator(left, right, body) | Delta(left, right, body):
            within = both(guard, (condition_of(t),))
            return rebuild(t, [_guarded(left, guard), _guarded(right, guard), _guarded(body, within)])
        case Loop(step=Lam(params, body)):
            items = [*items_of(t.start), *(e for _, e in _definitions(body)), *_last(body).items]
            finite = all(is_finite(body_of(e)) for e in items)
            new = tuple(c for c in guard if not all(c in unguarded(body_of(e))[0] for e in items_of(t.start)))
            body, start = _guarded(body, guard), _guarded(t.start, guard)
            if new and not finite:
                start, body = under(new, start), _under(new, body)
            return Loop(t.kind, t.item, t.backward, Lam(params, body), start)
        case _:
            parts = [_guarded(u, guard) for u in children(t)]
            return reshaped(t, parts, bound_by(t)) if bound_by(t) else rebuild(t, parts)


def _definitions(body: Term) -> Iterator[tuple[Term, Term]]:
    while isinstance(body, Let):
        yield from body.bindings
        body = body.body


def _last(body: Term) -> Tuple:
    while isinstance(body, Let):
        body = body.body
    assert isinstance(body, Tuple), "a step makes a tuple"
    return body


def _under(guard: Guard, body: Term) -> Term:
    if isinstance(body, Let):
        return Let(body.bindings, _under(guard, body.body))
    return under(guard, body)
