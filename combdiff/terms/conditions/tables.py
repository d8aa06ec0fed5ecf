"""Truth tables of conditions: a number lies below, at or above what it is compared with.

    x < 0, 0 <= x < 1     tell apart the cases  x < 0, x = 0, 0 < x < 1, x = 1, 1 < x

Conditions on the same quantity up to a factor and a number, x < 1 and 2 <= 2 x, are about one unknown of the table.
Different quantities count as independent, so that a table may hold cases that never happen: what it says of
conditions is true, but it does not know all that is true.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from operator import and_, or_

from combdiff.records import dataclass
from combdiff.terms.conditions.comparing import Part, Relation
from combdiff.terms.conditions.diagrams import Cases, Diagrams
from combdiff.terms.conditions.guards import is_whole
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    Const,
    Term,
    add,
    domains_compared,
    mul,
    split_coefficient,
    terms_of,
)

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


@dataclass(frozen=True, slots=True)
class Bound:
    """unknown < value, and the like; `upward` tells whether the relation is written with the unknown as it is."""

    unknown: Hashable
    sign: str
    value: Fraction
    upward: bool = True

    def holds(self, value: Fraction) -> bool:
        """Whether it holds where the unknown has a value."""
        match self.sign:
            case "<":
                return value < self.value
            case "<=":
                return value <= self.value
            case ">":
                return value > self.value
            case ">=":
                return value >= self.value
            case "==":
                return value == self.value
            case _:
                return value != self.value


class Table:
    """The cases that some conditions tell apart.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> below, above = (Relation(x, "<", ONE),), (Relation(ONE, "<=", x),)
    >>> table = Table([below, above])
    >>> table.holds(below) & table.holds(above) == table.none, table.holds(below) | table.holds(above) == table.all
    (True, True)

    What it says of conditions can raise TooManyNodes, for conditions that are unlike any that a person writes.
    """

    def __init__(self, guards: Iterable[Sequence[Part]]) -> None:
        values: dict[Hashable, set[Fraction]] = {}
        upward: dict[Hashable, bool] = {}
        self._bounds: dict[Relation, Bound] = {}
        for relation in (r for guard in guards for part in guard for r in relations_of(part)):
            bound = self._bounds[relation] = bound_of(relation)
            values.setdefault(bound.unknown, set()).add(bound.value)
            upward.setdefault(bound.unknown, bound.upward)
        self.unknowns = {
            unknown: sorted(_told_apart(unknown, found), reverse=not upward[unknown])
            for unknown, found in reversed(values.items())
        }
        self._places = {unknown: place for place, unknown in enumerate(self.unknowns)}
        self._diagrams = Diagrams([len(found) for found in self.unknowns.values()])
        self.all, self.none = self._diagrams.all, self._diagrams.none

    def holds(self, parts: Sequence[Part]) -> Cases:
        """The cases in which all parts hold."""
        return reduce(and_, map(self._part, parts), self.all)

    def _part(self, part: Part) -> Cases:
        if isinstance(part, Relation):
            bound = self._bounds[part] if part in self._bounds else bound_of(part)
            good = [bound.holds(value) for value in self.unknowns[bound.unknown]]
            return self._diagrams.where(self._places[bound.unknown], good)
        found = reduce(or_, map(self.holds, part.alternatives), self.none)
        return ~found if part.negated else found

    def needed(self, parts: Sequence[Part], settled: Cases) -> tuple[Part, ...]:
        """The parts that are still to be asked where the cases in `settled` do not matter."""
        kept = [*parts]
        other = ~(self.holds(parts) | settled)
        for part in parts:
            others = [p for p in kept if p is not part]
            if not self.holds(others) & other:
                kept = others
        return tuple(kept)


def relations_of(part: Part) -> list[Relation]:
    """The comparisons that a part of a condition is made of.

    >>> from combdiff.terms.conditions.comparing import Either
    >>> from combdiff.terms.terms import ZERO
    >>> less = Relation(ZERO, "<", ONE)
    >>> relations_of(Either(((less,), (less, less)))) == [less, less, less]
    True
    """
    if isinstance(part, Relation):
        return [part]
    return [r for alternative in part.alternatives for p in alternative for r in relations_of(p)]


def unknowns_of(parts: Iterable[Part]) -> set[Hashable]:
    """What the comparisons are about that parts of a condition are made of."""
    return {bound_of(relation).unknown for part in parts for relation in relations_of(part)}


def bound_of(r: Relation) -> Bound:
    """A comparison as a bound of one unknown: 2 x <= 3 y - 1 is one of x - 3/2 y.

    >>> from combdiff.terms.terms import fresh, number
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> a, b = bound_of(Relation(x, "<", ONE)), bound_of(Relation(number(4), "<=", mul(number(2), x)))
    >>> a.unknown == b.unknown, (a.sign, a.value), (b.sign, b.value)
    (True, ('<', Fraction(1, 1)), ('>=', Fraction(2, 1)))

    What cannot be taken apart is an unknown that is 1 where the comparison holds, else 0.
    """
    difference = add(r.left, *(mul(MINUS_ONE, u) for u in terms_of(r.right)))
    parts = [split_coefficient(u) for u in terms_of(difference)]
    constant = sum((c.real for c, u in parts if u == ONE), Fraction(0))
    rest = [(c, u) for c, u in parts if u != ONE]
    if not rest or any(c.imag for c, _ in parts) or not _is_ordered(r):
        return _whole_comparison(r)
    # the same for all orders in which the terms stand
    lead = min(rest, key=lambda part: hash(part[1]))[0].real
    whole = is_whole(r.left) and is_whole(r.right)
    scale = abs(lead) if not whole else Fraction(1)
    scale = scale if lead > 0 else -scale
    unknown = whole, add(*(mul(Const(c.real / scale), u) for c, u in rest))
    value, sign = -constant / scale, r.sign if scale > 0 else _MIRRORED[r.sign]
    if whole and sign in ("<", ">"):
        value, sign = value + (-1 if sign == "<" else 1), sign + "="
    return Bound(unknown, sign, value, (scale > 0) != isinstance(r.left, Const))


def _is_ordered(r: Relation) -> bool:
    """Whether the sides are numbers in one order: not points of a lattice, nor numbers modulo a size."""
    domains = domains_compared(r.left, r.right)
    around = r.sign in ("==", "!=") and any(d.periodic for d in domains)
    return not around and not any(d.directions > 1 or d.listed for d in domains)


def _whole_comparison(r: Relation) -> Bound:
    match r.sign:
        case "==" | "!=":
            unknown: Hashable = frozenset((r.left, r.right))
            return Bound(unknown, r.sign, Fraction(1))
        case "<=" | ">=":
            left, right = (r.left, r.right) if r.sign == "<=" else (r.right, r.left)
            return Bound((left, right), "==", Fraction(1))
        case _:
            # a < b where b <= a does not hold
            left, right = (r.right, r.left) if r.sign == "<" else (r.left, r.right)
            return Bound((left, right), "!=", Fraction(1))


def _told_apart(unknown: Hashable, bounds: Iterable[Fraction]) -> set[Fraction]:
    """A value of the unknown for each case: the bounds, and one between each two."""
    values = sorted(bounds)
    match unknown:
        case (True, Term()):
            return {value + step for value in values for step in (-1, 0, 1)}
        case (False, Term()):
            between = [(a + b) / 2 for a, b in pairwise(values)]
            return {values[0] - 1, *values, *between, values[-1] + 1}
        case _:
            return {Fraction(0), Fraction(1)}
