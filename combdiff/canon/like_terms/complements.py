"""Merges a value where a condition holds with the same value where it does not, and shares that are a whole.

where(c < d, a) + where(d <= c, a)          is a
a σ(t) + a σ(-t)                            is a
a softplus(t) - a softplus(-t)              is a t
sum(i, where(i != f, a(i))) - a(f)          is sum(i, a(i)) - 2 a(f)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from combdiff.terms.arithmetic import opposite
from combdiff.terms.conditions.comparing import NEGATED, compared, comparison_of
from combdiff.terms.conditions.guards import condition_of, under
from combdiff.terms.conditions.ordering import excluded
from combdiff.terms.network import conditions_apart, network
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    TWO,
    Call,
    Const,
    Delta,
    Indicator,
    Pow,
    Term,
    Var,
    delta,
    holds,
    indicator,
    is_integer_valued,
    mul,
    number,
    power,
    substitute,
    subterms,
    total,
)

WHOLE = {"sigmoid": ONE, "erfc": TWO}
"""f(t) + f(−t) of functions for which it is a number, for every real t."""
_WITH_OPPOSITES = {*WHOLE, "softplus"}


class OneSide(NamedTuple):
    """A term, the `other` one that it complements, and what `both` are together.

    A term is 0 where a condition does not hold: the other one is 0 where it does, and both have no condition.
    """

    other: Term
    both: Term


def has_sides(t: Term) -> bool:
    """Whether `t` holds a condition, or a share of a whole.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> has_sides(Call("sigmoid", (fresh("x", REAL),))), has_sides(ONE)
    (True, False)
    """
    return holds(t, Indicator) or any(isinstance(u, Call) and u.primitive in _WITH_OPPOSITES for u in subterms(t))


def sides_of(t: Term) -> Iterator[OneSide]:
    """For each condition on the factors of `t`, or of the sum that it is, and for each σ(u) and its like.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> x, y = fresh("x", REAL), fresh("y", REAL)
    >>> (found,) = sides_of(compared(x, "<", y, x))
    >>> found.other == compared(y, "<=", x, x), found.both == x
    (True, True)
    >>> next(sides_of(Call("sigmoid", (x,)))).both == ONE
    True
    """
    whole = network(t, conditions_apart)
    marks = [f for f in whole.factors if isinstance(f, Indicator | Delta) and f.body == ONE]
    beside = [f for f in whole.factors if f not in marks]
    found: list[tuple[Term | None, Term]] = []
    for mark in marks:
        if isinstance(mark, Indicator):
            both = _under([m for m in marks if m is not mark], mul(*beside))
            found.append((opposite_of(mark, both), both))
    for factor in beside:
        for pair in _beside_share(factor):
            rest = [f for f in beside if f is not factor]
            found.append((_under(marks, mul(*rest, pair.other)), _under(marks, mul(*rest, pair.both))))
    for other_one, both in found:
        if other_one is not None:
            yield OneSide(*(mul(whole.coefficient, total(whole.indices, u)) for u in (other_one, both)))


def _beside_share(factor: Term) -> Iterator[OneSide]:
    """What stands beside f(t) or f(t)^n in two terms that are one: f(−t), and σ(t) σ(t) in σ(t) − σ(t)²."""
    share = factor
    rest: Term = ONE
    if isinstance(factor, Pow) and isinstance(n := factor.exponent, Const) and n.is_integer and n.real > 1:
        share, rest = factor.base, power(factor.base, number(n.real - 1))
    match share:
        case Call("softplus" as name, (u,)):
            yield OneSide(mul(MINUS_ONE, rest, Call(name, (opposite(u),))), mul(rest, u))
        case Call(name, (u,)) if name in WHOLE:
            opposed = Call(name, (opposite(u),))
            yield OneSide(mul(rest, opposed), mul(rest, WHOLE[name]))
            if WHOLE[name] == ONE:
                # σ(t) − σ(t)² has no digits left where σ(t) is nearly 1
                yield OneSide(mul(MINUS_ONE, factor, share), mul(factor, opposed))


def left_out_of(t: Term) -> Iterator[OneSide]:
    """For each condition i != f on a sum over i or f: the summand at i = f, which is left out, and the sum with it.

    >>> from combdiff.terms.terms import App, fresh
    >>> from combdiff.terms.types import REAL, Domain, Index, Map
    >>> n = Index(Domain("n"))
    >>> x, i, f = fresh("x", Map((n,), REAL)), fresh("i", n), fresh("f", n)
    >>> (found,) = left_out_of(total((i,), compared(i, "!=", f, App(x, (i,)))))
    >>> found.other == App(x, (f,)), found.both == total((i,), App(x, (i,)))
    (True, True)
    """
    whole = network(t, conditions_apart)
    marks = [f for f in whole.factors if isinstance(f, Indicator | Delta) and f.body == ONE]
    beside = mul(*(f for f in whole.factors if f not in marks))
    for mark in marks:
        told = comparison_of(condition_of(mark)) if isinstance(mark, Indicator) else None
        if told is None or told.sign != "!=":
            continue
        every = _under([m for m in marks if m is not mark], beside)
        for i, f in ((told.left, told.right), (told.right, told.left)):
            if isinstance(i, Var) and i in whole.indices and i.type == f.type:
                at = total([v for v in whole.indices if v != i], substitute(every, {i: f}))
                yield OneSide(mul(whole.coefficient, at), mul(whole.coefficient, total(whole.indices, every)))


def _under(marks: Iterable[Indicator | Delta], body: Term) -> Term:
    for m in marks:
        body = (delta if isinstance(m, Delta) else indicator)(m.left, m.right, body)
    return body


def opposite_of(mark: Indicator, body: Term) -> Term | None:
    """`body` where the condition of a mark does not hold; None if that is no plainer."""
    condition = condition_of(mark)
    if denied := excluded(condition):
        return under(denied, body)
    told = comparison_of(condition)
    if told.sign not in ("<", "!=") or not (is_integer_valued(told.left) and is_integer_valued(told.right)):
        return None
    return compared(told.left, NEGATED[told.sign], told.right, body)
