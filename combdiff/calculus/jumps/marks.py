"""Writes conditions that are made of other conditions with the conditions on numbers in them.

    x < a, that is not a ≤ x,      of e:   e − [a ≤ x] e
    c or d                         of e:   e − (not c and not d) of e

so that each jump of an integrand stands where a number is compared. Only the height of a jump is read from this form:
what a condition guards is not guarded by it here.
"""

from __future__ import annotations

from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    PI,
    ZERO,
    Add,
    Call,
    Const,
    Delta,
    Indicator,
    Term,
    add,
    children,
    delta,
    indicator,
    mul,
    rebuild,
    terms_of,
)
from combdiff.terms.types import REAL


def with_plain_conditions(t: Term) -> Term:
    """`t` with every condition as conditions on what is compared, and the angle of a real number as a condition.

    >>> from combdiff.terms.terms import fresh, sub
    >>> from combdiff.terms.types import REAL
    >>> x, a = fresh("x", REAL), fresh("a", REAL)
    >>> with_plain_conditions(Indicator(Indicator(a, x, ONE), ZERO, x)) == sub(x, Indicator(a, x, x))
    True
    """
    known: dict[Term, Term] = {}

    def written(u: Term) -> Term:
        if u not in known:
            known[u] = _written(u)
        return known[u]

    def _written(u: Term) -> Term:
        match u:
            case Indicator(left, right, body) if _joins(left, right):
                return _where(Indicator(left, right, ONE), written(body))
            case Call("angle", (of,)) if of.type == REAL:
                return mul(PI, _without(Indicator(ZERO, written(of), ONE), ONE))
            case Call("atan2", (over, of)) if over == ZERO:
                return mul(PI, _without(Indicator(ZERO, written(of), ONE), ONE))
            case _:
                parts = children(u)
                return rebuild(u, [written(part) for part in parts]) if parts else u

    return written(t)


def _joins(left: Term, right: Term) -> bool:
    """Whether left ≤ right says that a condition does not hold, or that one of several does."""
    if right == ZERO:
        return _is_mark(left)
    return left == ONE and isinstance(right, Add) and all(map(_is_mark, terms_of(right)))


def _is_mark(t: Term) -> bool:
    """Whether it is 1 where a condition holds, else 0."""
    match t:
        case Indicator(_, _, body) | Delta(_, _, body):
            return body == ONE or _is_mark(body)
        case _:
            return False


def _where(mark: Term, e: Term) -> Term:
    """`e` where the mark is 1."""
    match mark:
        case Indicator(left, right, body) if _joins(left, right):
            inner = _where(body, e)
            if right == ZERO:
                return _without(left, inner)
            rest = inner
            for one in terms_of(right):
                rest = _without(one, rest)
            return add(inner, mul(MINUS_ONE, rest))
        case Indicator(left, right, body):
            return indicator(with_plain_conditions(left), with_plain_conditions(right), _where(body, e))
        case Delta(left, right, body):
            return delta(left, right, _where(body, e))
        case Const() if mark == ONE:
            return e
    raise AssertionError(f"{type(mark).__name__} is no mark")


def _without(mark: Term, e: Term) -> Term:
    """`e` where the mark is 0."""
    return add(e, mul(MINUS_ONE, _where(mark, e)))
