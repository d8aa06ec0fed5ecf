"""Two terms of a sum under contrary conditions, read as one choice: where(c, a, b).

    x * where(i < j, a) + where(j <= i, b)     is     where(i < j, x * a, b)

`where(c, a, b)` becomes guards of its branches when a program is read, and the branches are differentiated, simplified
and collected one by one. A person reads them together; so do text, LaTeX and SymPy, which take sums apart here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from combdiff.terms.conditions.comparing import Either, Part, Relation, conditions_told
from combdiff.terms.conditions.guards import is_finite, is_whole
from combdiff.terms.terms import (
    MINUS_ONE,
    Delta,
    Indicator,
    Term,
    add,
    factors_of,
    mul,
    neg,
    terms_of,
)
from combdiff.terms.types import Index

Formula = frozenset[object]
"""Conditions that all hold: relations in normal form, and ("or", formulas)."""


@dataclass(frozen=True, slots=True)
class Choice:
    """`taken` where all parts hold, else `other`."""

    parts: tuple[Part, ...]
    taken: Term
    other: Term


@dataclass(frozen=True, slots=True)
class _Guarded:
    """A term of a sum that is `body` where all parts hold, else 0."""

    parts: tuple[Part, ...]
    body: Term

    @property
    def formula(self) -> Formula:
        return _formula(self.parts)


def with_choices(terms: Sequence[Term]) -> list[Term | Choice]:
    """The terms of a sum in their order, those under contrary conditions as one choice where the first of them stands.

    >>> from combdiff.terms.conditions.comparing import compared
    >>> from combdiff.terms.terms import ONE, fresh
    >>> from combdiff.terms.types import REAL
    >>> x, y = fresh("x", REAL), fresh("y", REAL)
    >>> (choice,) = with_choices([compared(x, "<", y, x), mul(y, compared(x, ">=", y, ONE))])
    >>> choice == Choice((Relation(x, "<", y),), x, y)
    True

    Under a condition come only factors that are finite everywhere; what may be infinite stays where it is.
    """
    guards = {n: guard for n, t in enumerate(terms) if (guard := _guarded(t)) is not None}
    formulas = {n: guard.formula for n, guard in guards.items()}
    found: list[Term | Choice] = []
    used: set[int] = set()
    for n, t in enumerate(terms):
        if n in used:
            continue
        later = [m for m in guards if m >= n and n in guards and m not in used]
        contrary = [m for m in later if formulas[m] == _negated(formulas[n])]
        if not contrary:
            found.append(t)
            continue
        alike = [m for m in later if formulas[m] == formulas[n]]
        used.update(contrary, alike)
        sides = [(guards[side[0]].parts, add(*(guards[m].body for m in side))) for side in (alike, contrary)]
        if _is_negation(sides[0][0]):
            sides.reverse()
        (parts, taken), (_, other) = sides
        found.append(Choice(parts, taken, other))
    return found


def choice_of(t: Term) -> Choice | None:
    """The choice that a whole sum is."""
    match with_choices(terms_of(t)):
        case [Choice() as choice]:
            return choice
        case _:
            return None


def branches_of(choice: Choice) -> list[tuple[Term, tuple[Part, ...]]]:
    """Each value with its condition, and at last what there is where none of them holds."""
    inner = choice_of(choice.other)
    others = branches_of(inner) if inner else [(choice.other, ())]
    return [(choice.taken, choice.parts), *others]


def _guarded(t: Term) -> _Guarded | None:
    factors = factors_of(t)
    guards = [f for f in factors if _is_guard(f)]
    if not guards or not all(f in guards or is_finite(f) for f in factors):
        return None
    parts: tuple[Part, ...] = ()
    body: list[Term] = []
    for f in factors:
        while _is_guard(f):
            told, f = _told(f)
            parts = (*parts, *told)
        body.append(f)
    return _Guarded(parts, mul(*body))


def _is_guard(t: Term) -> bool:
    return isinstance(t, Indicator) or (isinstance(t, Delta) and _is_discrete(t))


def _is_discrete(t: Delta) -> bool:
    return isinstance(t.left.type, Index) or isinstance(t.right.type, Index)


def _told(t: Term) -> tuple[tuple[Part, ...], Term]:
    if isinstance(t, Indicator):
        return conditions_told(t)
    assert isinstance(t, Delta), "a guard"
    return (Relation(t.left, "==", t.right),), t.body


def _is_negation(parts: Sequence[Part]) -> bool:
    """Whether it reads `not (…)`."""
    return any(isinstance(part, Either) and part.negated for part in parts)


# --- contrary conditions --------------------------------------------------------------------------------------------


def _formula(parts: Sequence[Part]) -> Formula:
    return frozenset(literal for part in parts for literal in _literals(part))


def _literals(part: Part) -> Iterator[object]:
    match part:
        case Relation(left, "==" | "!=" as sign, right):
            yield sign, frozenset((left, right))
        case Relation(left, sign, right) if is_whole(left) and is_whole(right):
            # 0 ≤ what is greater less what is smaller, in which i < j is i + 1 ≤ j
            yield "whole", add(right, _minus(left), *([MINUS_ONE] if sign == "<" else []))
        case Relation(left, sign, right):
            yield sign, left, right
        case Either(alternatives, negated):
            either = _either(map(_formula, alternatives))
            yield from _negated(either) if negated else either


def _either(alternatives: Iterator[Formula]) -> Formula:
    """At least one of several; (a or b) or c is a or b or c, so that two negations are none."""
    found = frozenset(chain.from_iterable(map(_alternatives, alternatives)))
    return next(iter(found)) if len(found) == 1 else frozenset({("or", found)})


def _alternatives(formula: Formula) -> Iterable[Formula]:
    match [*formula]:
        case [("or", frozenset() as alternatives)]:
            return alternatives
        case _:
            return (formula,)


def _negated(formula: Formula) -> Formula:
    """What holds where not all of the formula does (De Morgan)."""
    return _either(_opposite(literal) for literal in formula)


def _opposite(literal: object) -> Formula:
    match literal:
        case ("or", frozenset() as alternatives):
            return frozenset().union(*map(_negated, alternatives))
        case ("==" | "!=" as sign, sides):
            return frozenset({("!=" if sign == "==" else "==", sides)})
        case ("whole", Term() as difference):
            return frozenset({("whole", add(_minus(difference), MINUS_ONE))})
        case ("<" | "<=" as sign, left, right):
            return frozenset({("<=" if sign == "<" else "<", right, left)})
    raise AssertionError("a literal")


def _minus(t: Term) -> Term:
    return add(*map(neg, terms_of(t)))
