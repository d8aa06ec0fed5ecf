"""Reads terms of a sum under exclusive conditions as one choice: where(c, a, where(d, b, e)).

    x * where(i < j, a) + where(j <= i, b)                       is   where(i < j, x * a, b)
    where(x < 0, a) + where(0 <= x < 1, b) + where(1 <= x, c)    is   where(x < 0, a, where(x < 1, b, c))
    where(0 <= x < 1, a) + where(1 <= x < 2, b)                  is   where(0 <= x < 2, where(x < 1, a, b))

`where(c, a, b)` becomes guards of its branches when a program is read, and the branches are differentiated, simplified
and collected one by one. A person reads them together; so do text, LaTeX and SymPy, which take sums apart here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import reduce
from operator import or_
from typing import TypeGuard

from combdiff.records import dataclass
from combdiff.terms.conditions.comparing import Either, Part, Relation, conditions_and_body
from combdiff.terms.conditions.diagrams import Cases, TooManyNodes
from combdiff.terms.conditions.guards import Condition, Guard, condition_of, is_finite
from combdiff.terms.conditions.ordering import implies
from combdiff.terms.conditions.tables import Table, relations_of, unknowns_of
from combdiff.terms.network import guards_apart
from combdiff.terms.terms import (
    ZERO,
    Add,
    Delta,
    Indicator,
    Term,
    add,
    compares_indices,
    factors_of,
    mul,
    split_coefficient,
    terms_of,
)
from combdiff.terms.types import Index


@dataclass(frozen=True, slots=True)
class Row:
    """A value, and the parts that have to hold for it to be taken if no row above it is; `guard` is all that holds."""

    value: Term
    parts: tuple[Part, ...] = ()
    guard: Guard = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Choice:
    """The value of the first row whose parts all hold, where all parts in `around` hold, else 0.

    The last row is what is taken if no other one is.
    """

    rows: tuple[Row, ...]
    around: tuple[Part, ...] = ()

    @property
    def weight(self) -> int:
        """How many comparisons it takes to write it."""
        return _weight(self.around) + sum(_weight(row.parts) for row in self.rows)


@dataclass(frozen=True, slots=True)
class _Guarded:
    """A term of a sum that is `body` where all parts hold, else 0; `meeting` where one of them is a δ."""

    parts: tuple[Part, ...]
    body: Term
    guard: Guard
    meeting: bool = False


def with_choices(terms: Sequence[Term], flat: bool = False) -> list[Term | Choice]:
    """The terms of a sum in their order, those that are one choice where the first of them stands.

    >>> from combdiff.terms.conditions.comparing import compared
    >>> from combdiff.terms.terms import ONE, fresh
    >>> from combdiff.terms.types import REAL
    >>> x, y = fresh("x", REAL), fresh("y", REAL)
    >>> (choice,) = with_choices([compared(x, "<", y, x), mul(y, compared(x, ">=", y, ONE))])
    >>> choice == Choice((Row(x, (Relation(x, "<", y),)), Row(y)))
    True

    Under a condition come only factors that are finite everywhere; what may be infinite stays where it is. A `flat`
    choice has no choice for a value, and no conditions around it, whatever their number is.
    """
    whole = [_guarded(t) for t in terms]
    opened = [_opened(guard) for guard in whole]
    if all(len(parts) == 1 for parts in opened):
        return _with_choices(terms, whole, [[n] for n in range(len(terms))], flat)
    owners = [n for n, parts in enumerate(opened) for _ in parts]
    places = [[m for m, owner in enumerate(owners) if owner == n] for n in range(len(terms))]
    deep = _with_choices(terms, [guard for parts in opened for guard in parts], places, flat)
    as_it_is = _with_choices(terms, whole, [[n] for n in range(len(terms))], flat)
    return deep if flat or _cost(deep) <= _cost(as_it_is) else as_it_is


def choice_of(t: Term, flat: bool = False) -> Choice | None:
    """The choice that a whole term is."""
    if not isinstance(t, Add | Indicator) or isinstance(t.type, Index):
        return None
    match with_choices(terms_of(t), flat):
        case [Choice() as choice]:
            return choice
        case _:
            return None


def choices_whole(t: Term) -> tuple[Term, ...]:
    """The factors of a product for those who print it: a choice is one factor, marks of conditions are apart.

    >>> from combdiff.terms.conditions.comparing import compared
    >>> from combdiff.terms.terms import ONE, fresh
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> inner = add(compared(x, "<", ONE, x), compared(x, ">=", ONE, ONE))
    >>> len(choices_whole(compared(x, ">=", ZERO, inner))), len(choices_whole(compared(x, ">=", ZERO, x)))
    (1, 2)
    """
    return (t,) if choice_of(t, flat=True) else guards_apart(t)


def _with_choices(
    terms: Sequence[Term], guards: Sequence[_Guarded | None], places: Sequence[Sequence[int]], flat: bool
) -> list[Term | Choice]:
    """The terms, of which each is the guards at its places, and choices made of all guards of several of them."""
    found: dict[int, Choice | None] = {}
    asked = {n: unknowns_of(guard.parts) for n, guard in enumerate(guards) if guard is not None}
    free = {*asked}
    for n, own in enumerate(places):
        if n in found or not free.issuperset(own):
            continue
        start = own[0]
        near = [m for m in sorted(free) if m >= start and not asked[start].isdisjoint(asked[m])]
        members, choice = _started({m: g for m in near if (g := guards[m]) is not None}, start, flat)
        owners = [m for m, at in enumerate(places) if not members.isdisjoint(at)]
        if choice is None or not all(members.issuperset(places[m]) for m in owners):
            continue
        free -= members
        found |= dict.fromkeys(owners) | {n: choice}
    listed = [found.get(n, t) for n, t in enumerate(terms)]
    return [t for t in listed if t is not None]


def _cost(terms: Sequence[Term | Choice]) -> int:
    """How many comparisons terms are written with, those of choices among the values included."""
    cost = 0
    for t in terms:
        if isinstance(t, Choice):
            cost += t.weight + sum(_cost(with_choices(terms_of(value))) for value in (row.value for row in t.rows))
        elif (guard := _guarded(t)) is not None:
            cost += _weight(guard.parts) + _cost(with_choices(terms_of(split_coefficient(guard.body)[1])))
    return cost


def _weight(parts: Sequence[Part]) -> int:
    return sum(len(relations_of(part)) + (isinstance(part, Either) and part.negated) for part in parts)


# --- terms under conditions -----------------------------------------------------------------------------------------


def _guarded(t: Term) -> _Guarded | None:
    factors = factors_of(t)
    guards = [f for f in factors if is_guard(f)]
    if not guards or not all(f in guards or is_finite(f) for f in factors):
        return None
    parts: tuple[Part, ...] = ()
    body: list[Term] = []
    guard: list[Condition] = []
    for f in factors:
        while is_guard(f):
            told, core = _told(f)
            parts = (*parts, *told)
            while f is not core and isinstance(f, Indicator | Delta):
                guard.append(condition_of(f))
                f = f.body
        body.append(f)
    return _Guarded(parts, mul(*body), tuple(guard), any(c.equal for c in guard))


def is_guard(t: Term) -> TypeGuard[Indicator | Delta]:
    """Whether it is a condition on indices, rather than Dirac's δ of numbers or maps."""
    return isinstance(t, Indicator) or (isinstance(t, Delta) and compares_indices(t.left, t.right))


def _told(t: Term) -> tuple[tuple[Part, ...], Term]:
    if isinstance(t, Indicator):
        return conditions_and_body(t)
    assert isinstance(t, Delta), "a guard"
    return (Relation(t.left, "==", t.right),), t.body


def _opened(guard: _Guarded | None) -> list[_Guarded | None]:
    """What is guarded again under a condition, where(c, where(d, a, b)), as terms under both conditions each."""
    if guard is None:
        return [None]
    number, body = split_coefficient(guard.body)
    inner = [_guarded(t) for t in terms_of(body)] if isinstance(body, Add) and not isinstance(body.type, Index) else []
    if all(g is None for g in inner):
        return [guard]
    rest = [mul(number, t) for t, g in zip(terms_of(body), inner, strict=True) if g is None]
    found: list[_Guarded | None] = [replace(guard, body=add(*rest))] if rest else []
    for g in (g for g in inner if g is not None):
        parts = (*guard.parts, *g.parts)
        held = (*(c for c in guard.guard if not any(implies(d, c) for d in g.guard)), *g.guard)
        found += _opened(_Guarded(parts, mul(number, g.body), held, guard.meeting or g.meeting))
    return found


# --- what is one choice ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Side:
    """What the guards at some places come to in the cases that these have in common."""

    cases: Cases
    parts: tuple[Part, ...]
    body: Term
    guard: Guard = ()


def _started(near: Mapping[int, _Guarded], start: int, flat: bool) -> tuple[set[int], Choice | None]:
    """The guards that make a choice with the first of them, and the choice; None if there is none.

    Those `near` ask for something that the first one asks for, too.
    """
    try:
        return _made(near, start, flat)
    except TooManyNodes:
        return {start}, None


def _made(near: Mapping[int, _Guarded], start: int, flat: bool) -> tuple[set[int], Choice | None]:
    table = Table(g.parts for g in near.values())
    cases = {n: table.holds(g.parts) for n, g in near.items()}
    chosen = [cases[start]]
    if ~cases[start] in cases.values():
        chosen.append(~cases[start])
    elif cases[start]:
        for other in dict.fromkeys(cases.values()):
            if other and not any(other & one for one in chosen):
                chosen.append(other)
    members = {n for n, held in cases.items() if held in chosen}
    sides = []
    for held in chosen:
        alike = [near[n] for n in members if cases[n] == held]
        sides.append(_Side(held, alike[0].parts, add(*(g.body for g in alike)), alike[0].guard))
    return members, _choice_of(sides, [near[n] for n in members], table, flat)


def _choice_of(sides: Sequence[_Side], guards: Sequence[_Guarded], table: Table, flat: bool) -> Choice | None:
    """The choice between sides, unless their sum is as easy to read.

    It is easier where one of them is taken in any case, where there are three or more, and where the conditions on one
    quantity are shorter in a row than each for itself.
    """
    held = reduce(or_, [side.cases for side in sides])
    if held == table.all:
        return _two(*sides) if len(sides) == 2 else Choice(_rows(sides, table, table.none))
    if len(sides) < 2 or any(g.meeting for g in guards):
        return None
    choices = [Choice(_rows([*sides, _Side(~held, (), ZERO)], table, table.none))]
    around = _around(guards, table, held)
    if around and not flat:
        choices.append(Choice(_rows(sides, table, ~held), around))
    best = min(choices, key=lambda choice: choice.weight)
    shorter = len(table.unknowns) == 1 and best.weight < sum(_weight(g.parts) for g in guards)
    return best if shorter or len(sides) > 2 else None


def _two(one: _Side, other: _Side) -> Choice:
    """One of two sides is asked for: the first one, but rather the one whose condition is no negation."""
    if any(isinstance(part, Either) and part.negated for part in one.parts):
        one, other = other, one
    return Choice((Row(one.body, one.parts, one.guard), Row(other.body, (), other.guard)))


def _around(guards: Sequence[_Guarded], table: Table, held: Cases) -> tuple[Part, ...]:
    """Conditions that hold in the cases that are `held` and in no other; none if there are no such conditions."""
    parts = dict.fromkeys(part for g in guards for part in g.parts)
    common = [part for part in parts if not held & ~table.holds([part])]
    return table.needed(common, table.none) if table.holds(common) == held else ()


def _rows(sides: Sequence[_Side], table: Table, settled: Cases) -> tuple[Row, ...]:
    """The sides in a row, the shortest condition first; a side without conditions is the last one."""
    left = [*sides]
    rows: list[Row] = []
    while len(left) > 1:
        asked = [(table.needed(s.parts, settled), s) for s in left if s.parts]
        parts, side = min(asked, key=lambda pair: (_weight(pair[0]), pair[1].cases.first))
        rows.append(Row(side.body, parts, side.guard))
        settled = settled | side.cases
        left.remove(side)
    return (*rows, Row(left[0].body, (), left[0].guard))
