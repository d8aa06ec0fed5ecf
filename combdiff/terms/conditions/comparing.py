"""Expresses comparisons of numbers and of indices by conditions of order and of equality.

    i < j, i != j       of indices      [i + 1 ≤ j], [1 ≤ |i − j|]
    a < b, a == b       of reals        [[b ≤ a] ≤ 0], [a ≤ b] and [b ≤ a]
    c or d, not c                       [1 ≤ [c] + [d]], [[c] ≤ 0]

So every condition is a guard of the kind that the calculus, the laws and code generation know, and what stands under
it stands there once. Points of a periodic domain are compared as the numbers 0 … n − 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from combdiff.records import dataclass
from combdiff.terms.conditions.guards import Condition, held, is_whole, under
from combdiff.terms.conditions.ordering import form_of
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    ZERO,
    Add,
    App,
    Call,
    Const,
    Delta,
    Indicator,
    Mul,
    Pow,
    Reduce,
    Term,
    Var,
    add,
    at_point,
    call,
    delta,
    domains_compared,
    factors_of,
    fresh,
    indicator,
    is_integer_valued,
    mul,
    neg,
    split_coefficient,
    substitute,
    total,
)
from combdiff.terms.types import Index

NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
"""What holds where a relation does not."""


def compared(left: Term, relation: str, right: Term, body: Term) -> Term:
    """`body` where the relation holds, else 0.

    >>> from combdiff.terms.types import Domain
    >>> i, j = fresh("i", Index(Domain("n"))), fresh("j", Index(Domain("n")))
    >>> compared(i, "<", j, ONE) == indicator(add(i, ONE), j, ONE)
    True
    """
    match relation:
        case ">" | ">=":
            return compared(right, {">": "<", ">=": "<="}[relation], left, body)
        case "==" | "!=" if is_integer_valued(left) and is_integer_valued(right):
            return _equal(left, right, body) if relation == "==" else _unequal(left, right, body)
    return _represented(left, lambda a: _represented(right, lambda b: _as_numbers(a, relation, b, body)))


def _as_numbers(left: Term, relation: str, right: Term, body: Term) -> Term:
    match relation:
        case "==":
            return indicator(left, right, indicator(right, left, body))
        case "!=":
            return opposite(indicator(left, right, indicator(right, left, ONE)), body)
        case _:
            return _ordered(left, relation, right, body)


def different(one: Sequence[Term], other: Sequence[Term]) -> Callable[[Term], Term]:
    """What puts a number under the condition that two points, of several indices perhaps, are not the same.

    >>> from combdiff.terms.types import Domain
    >>> i, j = fresh("i", Index(Domain("n"))), fresh("j", Index(Domain("n")))
    >>> different([i], [j])(ONE) == compared(i, "!=", j, ONE)
    True
    """
    pairs = list(zip(one, other, strict=True))
    if len(pairs) == 1:
        ((a, b),) = pairs
        return lambda body: compared(a, "!=", b, body)
    same: Term = ONE
    for a, b in pairs:
        same = compared(a, "==", b, same)
    return lambda body: opposite(same, body)


def opposite(mark: Term, body: Term) -> Term:
    """`body` where a mark, which is 1 or 0, is 0."""
    return indicator(mark, ZERO, body)


def some(marks: Sequence[Term], body: Term) -> Term:
    """`body` where at least one of several marks is 1."""
    return indicator(ONE, add(*marks), body)


def _ordered(left: Term, relation: str, right: Term, body: Term) -> Term:
    if relation == "<=" or any(d.directions > 1 for d in domains_compared(left, right)):
        return indicator(left, right, body)
    if is_whole(left) and is_whole(right):
        return indicator(add(left, ONE), right, body)
    return opposite(indicator(right, left, ONE), body)


def _equal(left: Term, right: Term, body: Term) -> Term:
    if isinstance(left, Const) and isinstance(right, Const):
        return body if left == right else ZERO
    return delta(left, right, body)


def _unequal(left: Term, right: Term, body: Term) -> Term:
    if are_equal_around(left, right) or any(d.directions > 1 or d.listed for d in domains_compared(left, right)):
        return opposite(_equal(left, right, ONE), body)
    for less, more in ((left, right), (right, left)):
        form = form_of(Condition(less, more))
        if form is not None and form.always:
            return indicator(add(less, ONE), more, body)
    return indicator(ONE, call("abs", add(left, neg(right))), body)


def _represented(side: Term, use: Callable[[Term], Term]) -> Term:
    """What is made of a side: an expression of a periodic index is the one of 0 … n − 1 that it is congruent to."""
    if not _wraps(side):
        return use(side)
    point = fresh("i", Index(next(d for d in domains_compared(side) if d.periodic)))
    return at_point(point, side, use(point))


def _wraps(side: Term) -> bool:
    """Whether index arithmetic counts modulo a size; an index, or an entry of an array of integers, is a value."""
    return (
        isinstance(side, Add | Mul) and isinstance(side.type, Index) and any(d.periodic for d in domains_compared(side))
    )


def are_equal_around(left: Term, right: Term) -> bool:
    """Whether two sides may be equal modulo the size of a ring and differ as numbers: i + 1 and 0, for i = n - 1.

    >>> from combdiff.terms.types import Domain
    >>> i = fresh("i", Index(Domain("Z", declared=True, periodic=True)))
    >>> are_equal_around(add(i, ONE), ZERO), are_equal_around(i, ZERO)
    (True, False)
    """
    return any(d.periodic for d in domains_compared(left, right)) and not _are_values(left, right)


def _are_values(left: Term, right: Term) -> bool:
    """Whether two sides are values of one range, equal modulo its size if they are equal; 0 is a value of each."""
    sides = [side for side in (left, right) if side != ZERO]
    return all(isinstance(side, Var | App) and side.type == sides[0].type for side in sides)


# --- reading them ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Relation:
    """left < right, and the like."""

    left: Term
    sign: str
    right: Term


@dataclass(frozen=True, slots=True)
class Either:
    """That all parts of at least one alternative hold; with `negated`, of none."""

    alternatives: tuple[tuple[Part, ...], ...]
    negated: bool = False


Part = Relation | Either


def conditions_and_body(t: Indicator) -> tuple[tuple[Part, ...], Term]:
    """The conditions, as a person writes them, that stand around a body, and the body.

    >>> from combdiff.terms.types import Domain
    >>> i, j, k = (fresh(name, Index(Domain("n"))) for name in "ijk")
    >>> told, body = conditions_and_body(compared(i, "<", j, compared(j, "!=", k, k)))
    >>> told == (Relation(i, "<", j), Relation(j, "!=", k)), body == k
    (True, True)
    """
    return _told(t, marks=False)


def conditions_of_reduction(t: Reduce) -> tuple[tuple[Part, ...], Term]:
    """The conditions of a product, a maximum, a minimum, and what is reduced, without them.

    >>> from combdiff.terms.types import Domain
    >>> from combdiff.terms.terms import reduction
    >>> i, j = fresh("i", Index(Domain("n"))), fresh("j", Index(Domain("n")))
    >>> mark = compared(i, "<", j, ONE)
    >>> conditions_of_reduction(reduction("maximum", [i], mark, mark)) == ((Relation(i, "<", j),), ONE)
    True
    """
    if t.mark == ONE:
        return (), t.body
    marks = factors_of(t.mark)
    if not all(map(is_mark, marks)):
        return (Relation(ONE, "<=", t.mark),), t.body
    return tuple(part for mark in marks for part in _told(mark, marks=True)[0]), body_of_reduction(t)


def body_of_reduction(t: Reduce) -> Term:
    """What is reduced, without the conditions that its mark, or its weight, stands under."""
    guard, core = held(t.body)
    marks = held(t.mark)[0]
    return under([c for c in guard if c not in marks], core)


def is_weighted(t: Reduce) -> bool:
    """Whether the exponentials of a logsumexp or a softmax have weights, other than 1 where a condition holds.

    >>> from combdiff.terms.terms import reduction
    >>> from combdiff.terms.types import Domain
    >>> i, j = fresh("i", Index(Domain("n"))), fresh("j", Index(Domain("n")))
    >>> is_weighted(reduction("logsumexp", [i], i, i)), is_weighted(reduction("logsumexp", [i], delta(i, j, ONE), i))
    (True, False)
    """
    weighable = t.kind in ("logsumexp", "softmax") and t.mark != ONE
    return weighable and not all(map(is_mark, factors_of(t.mark)))


def weighted_sum(t: Reduce) -> Term:
    """log Σ w exp(e), as it is written without a name for it."""
    return Call("log", (_weighted(t),))


def weighted_share(t: Reduce, at: Sequence[Term]) -> Term:
    """w exp(e) / Σ w exp(e) at a place, as it is written without a name for it."""
    own = substitute(mul(t.mark, Call("exp", (body_of_reduction(t),))), dict(zip(t.indices, at, strict=True)))
    return mul(own, Pow(_weighted(t), MINUS_ONE))


def _weighted(t: Reduce) -> Term:
    return total(t.indices, mul(t.mark, Call("exp", (body_of_reduction(t),))))


def comparison_of(c: Condition) -> Relation:
    """The plainest comparison that a condition of order writes.

    >>> from combdiff.terms.types import Domain
    >>> i, j = fresh("i", Index(Domain("n"))), fresh("j", Index(Domain("n")))
    >>> comparison_of(Condition(add(i, ONE), j)) == Relation(i, "<", j)
    True
    """
    node = indicator(c.left, c.right, ONE)
    parts = conditions_and_body(node)[0] if isinstance(node, Indicator) else ()
    match parts:
        case (Relation() as relation,):
            return relation
        case _:
            return Relation(c.left, "<=", c.right)


def _told(t: Term, marks: bool) -> tuple[tuple[Part, ...], Term]:
    """The relations of a chain of conditions; of equality too where `marks` is true."""
    found: list[Part] = []
    while isinstance(t, Indicator) or (marks and isinstance(t, Delta)):
        part = Relation(t.left, "==", t.right) if isinstance(t, Delta) else _part(t)
        if isinstance(part, Relation) and found and found[-1] == Relation(part.right, "<=", part.left) == _turned(part):
            part = Relation(part.right, "==", part.left)
            found.pop()
        found.append(part)
        t = t.body
    return tuple(found), t


def _turned(part: Relation) -> Relation:
    return Relation(part.right, part.sign, part.left)


def _part(t: Indicator) -> Part:
    match t.left, t.right:
        case (Indicator() | Delta()) as mark, Const() as zero if zero == ZERO and is_mark(mark):
            return _opposite(_told(mark, marks=True)[0])
        case Const() as one, Add(marks) if one == ONE and all(map(is_mark, marks)):
            return Either(tuple(_told(mark, marks=True)[0] for mark in marks))
        case Const() as one, Call("abs", (Add() as difference,)) if one == ONE:
            return _difference(difference) or Relation(t.left, "<=", t.right)
        case Add(terms), right if ONE in terms and is_whole(t.left) and is_whole(right):
            left = add(*(u for u in terms if u != ONE))
            return Relation(t.left, "<=", right) if _is_negative(left) else Relation(left, "<", right)
        case _:
            return Relation(t.left, "<=", t.right)


def _opposite(parts: tuple[Part, ...]) -> Part:
    match parts:
        case (Relation(left, "<=", right),) if not (is_whole(left) and is_whole(right)):
            return Relation(right, "<", left)
        case (Relation(left, "==", right),):
            return Relation(left, "!=", right)
        case _:
            return Either((parts,), negated=True)


def _difference(t: Add) -> Relation | None:
    """i != j, of |i − j|."""
    less = [mul(MINUS_ONE, u) for u in t.terms if _is_negative(u)]
    more = [u for u in t.terms if not _is_negative(u)]
    if not isinstance(t.type, Index) or not less or not more:
        return None
    return Relation(add(*more), "!=", add(*less))


def _is_negative(t: Term) -> bool:
    return split_coefficient(t)[0].real < 0


def is_mark(t: Term) -> bool:
    """Whether t is 1 where conditions hold, else 0.

    >>> from combdiff.terms.types import Domain
    >>> i, j = fresh("i", Index(Domain("n"))), fresh("j", Index(Domain("n")))
    >>> is_mark(delta(i, j, ONE)), is_mark(i)
    (True, False)
    """
    while isinstance(t, Indicator | Delta):
        if isinstance(t, Delta) and not (is_integer_valued(t.left) and is_integer_valued(t.right)):
            return False
        t = t.body
        if t == ONE:
            return True
    return False
