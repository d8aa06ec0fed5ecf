"""Where conditions hold, and what stands under them.

A condition has two arrays: where it holds, and where this is known, which it is not where a number that is compared is
none. What is compared under other conditions is guarded by them: `0 < x and log(x) < 1` is false at x = −1.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, ne, or_
from typing import Any

from . import tangents as T
from .kinds import Index, Range
from .meaning import Scope, compared, evaluate, meet
from .syntax import Add, Affine, Compared, Expr, Joined, Literal, Neg, Not, Size

SIGNS = {"<": lt, "<=": le, ">": gt, ">=": ge, "==": eq, "!=": ne}
CONTRARY = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
Truth = tuple[Any, Any]
"""Where a condition holds, and where that is known."""


def truth(c: Expr, scope: Scope, negated: bool = False) -> Truth:
    """Where a condition, or its contrary, holds."""
    match c:
        case Not(of):
            return truth(of, scope, not negated)
        case Joined(word, items):
            every = (word == "and") != negated
            return _together([truth(item, scope, negated) for item in items], every)
        case Compared(sides, signs):
            links = zip(sides, signs, sides[1:], strict=False)
            found = [_link(a, CONTRARY[s] if negated else s, b, scope) for a, s, b in links]
            return _together(found, not negated)
    raise AssertionError(f"{type(c).__name__} is no condition")


def _together(items: Sequence[Truth], every: bool) -> Truth:
    """All of some conditions, each guarded by those before it, or one of them."""
    holds = reduce(and_ if every else or_, [h for h, _ in items])
    if not every:
        return holds, reduce(and_, [k for _, k in items])
    known, before = items[0][1], items[0][1] & items[0][0]
    for h, k in items[1:]:
        known, before = known & (k | ~before), before & k & h
    return holds, known


def _link(left: Expr, sign: str, right: Expr, scope: Scope) -> Truth:
    if isinstance(left, Affine) and isinstance(right, Affine) and (_is_point(left) or _is_point(right)):
        same = meet(left, right, scope)
        return (same if sign == "==" else ~same), same | True
    a, b = (compared(x, scope) for x in (left, right))
    ring = _ring(left, right)
    if ring is not None and sign in ("==", "!="):
        return SIGNS[sign]((a - b) % ring.sizes[0], 0), (a == a) | True
    xp = T.xp_of_all(a, b)
    return SIGNS[sign](a, b), ~(xp.isnan(a) | xp.isnan(b))


def _ring(*sides: Expr) -> Range | None:
    """The ring of an index on one side, modulo whose size the sides are the same if all of them are integers."""
    if not all(map(_is_whole, sides)):
        return None
    ranges = [i.kind.range for e in sides if isinstance(e, Affine) for _, i in e.terms if isinstance(i.kind, Index)]
    return next((r for r in ranges if r.sort == "ring"), None)


def _is_whole(e: Expr) -> bool:
    """Whether it is made of indices, sizes and whole numbers."""
    match e:
        case Affine() | Size():
            return True
        case Literal(value):
            return value.denominator == 1
        case Add(items):
            return all(map(_is_whole, items))
        case Neg(of):
            return _is_whole(of)
        case _:
            return False


def _is_point(e: Affine) -> bool:
    """Whether it is a point of a lattice or of a list, which has no place among numbers."""
    ranges = [i.kind.range for _, i in e.terms if isinstance(i.kind, Index)]
    return any(r.directions > 1 or r.sort == "list" for r in ranges)


def chosen(condition: Expr, body: Expr, otherwise: Expr | None, scope: Scope) -> T.Value:
    """`body` where the condition holds, else `otherwise`: neither counts where it is not chosen."""
    holds, known = truth(condition, scope)
    result = T.where(holds, evaluate(body, scope))
    if otherwise is not None:
        result = T.add(result, T.where(~holds, evaluate(otherwise, scope)))
    return T.where(known, result, float("nan"))
