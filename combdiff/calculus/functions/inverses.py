"""Equations that an inverse function solves: h(x) = y, where h holds the unknown alone.

    x³ + x − d = 0     is     h(x) = y,     h = x ↦ x³ + x,     y = d

Of an array of unknowns each entry has such an equation, with the same h.
"""

from __future__ import annotations

from collections.abc import Collection

from combdiff.calculus.affine import flat, times
from combdiff.records import dataclass
from combdiff.terms.terms import (
    MINUS_ONE,
    App,
    Lam,
    Term,
    Traverser,
    Var,
    add,
    apply,
    fresh,
    neg,
    split_coefficient,
    terms_of,
)
from combdiff.terms.types import REAL, Map


@dataclass(frozen=True, slots=True)
class OfInverse:
    """`left` = `right`, where `left` holds nothing but the number `unknown`; `right` is a map of its indices."""

    unknown: Var
    left: Term
    right: Term

    @property
    def function(self) -> str:
        """The function that is undone, if it has a name."""
        match self.left:
            case App(Var(name), (u,)) if u == self.unknown:
                return name
            case _:
                return ""


def of_inverse(g: Lam, functions: Collection[Var] = ()) -> OfInverse | None:
    """The equation g(x) = 0 as one that an inverse solves; None where h would hold more than x and `functions`.

    >>> from combdiff.terms.terms import number, power, sub
    >>> x, d = fresh("x", REAL), fresh("d", REAL)
    >>> found = of_inverse(Lam((x,), sub(d, power(x, number(3)))))
    >>> found.left == power(found.unknown, number(3)), found.right == d
    (True, True)
    """
    (x,) = g.params
    body, rows = g.body, tuple[Var, ...]()
    if isinstance(x.kind, Map):
        rows = tuple(fresh("r", kind) for kind in x.kind.params)
        body = apply(body, *rows)
    entry: Term = App(x, rows) if rows else x
    if entry.type != REAL:
        return None
    unknown = fresh(x.name, REAL)
    terms = terms_of(flat(Traverser(lambda u: unknown if u == entry else u)(body)))
    left = add(*(t for t in terms if unknown in t.free))
    right = neg(add(*(t for t in terms if unknown not in t.free)))
    if not left.free <= {unknown, *functions} or x in right.free or right.free.isdisjoint(body.free - set(rows)):
        return None
    if split_coefficient(next(iter(terms_of(left))))[0].real < 0:
        left, right = (times(MINUS_ONE, e) for e in (left, right))
    return OfInverse(unknown, left, Lam(rows, right) if rows else right)
