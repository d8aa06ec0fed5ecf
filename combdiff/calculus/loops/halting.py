"""Finds the state with which a loop that may stop early says that it has stopped."""

from __future__ import annotations

from collections.abc import Mapping

from combdiff.terms.terms import ZERO, Lam, Let, Term, Tuple, Var, apply, is_zero, substitute
from combdiff.terms.types import REAL


def halting(step: Lam) -> int | None:
    """The number of the state that stays 0 once it is 0, and with which all states stay as they are.

    A loop that may stop early has such a mark: where it is 0, the conditions on it keep the old states.
    """
    states = step.params[:-1]
    return next((n for n, s in enumerate(states) if s.kind == REAL and _rests(step, {s: ZERO})), None)


def _rests(step: Lam, zero: Mapping[Var, Term]) -> bool:
    """Whether a step leaves all states as they are where some of its variables are 0, and these with them."""
    known = dict(zero)
    body = step.body
    while isinstance(body, Let):
        for var, value in body.bindings:
            if not known.keys().isdisjoint(value.free) and is_zero(found := substitute(value, known)):
                known[var] = found
        body = body.body
    assert isinstance(body, Tuple), "a step makes a tuple"
    kept = (known.get(s, s) for s in step.params[:-1])
    return all(_is_same(substitute(e, known), s) for e, s in zip(body.items, kept, strict=True))


def _is_same(t: Term, state: Term) -> bool:
    """Whether the next state is the old one, entry by entry."""
    return t.body == apply(state, *t.params) if isinstance(t, Lam) else t == state
