"""Places on a line without brackets: 2 (d + ½) / 2 − ½, at which a function is read, or where a δ is, is d.

Such places come up where the δ of an affine place is solved, and its solution is put into the place itself.
"""

from __future__ import annotations

from combdiff.calculus.affine import flat
from combdiff.terms.terms import Add, App, Delta, Mul, Term, Traverser, delta, rebuild, split_coefficient, terms_of
from combdiff.terms.types import REAL


def with_flat_places(t: Term) -> Term:
    """`t` with the places of functions and of δs on the line as sums without sums in them.

    >>> from combdiff.terms.terms import ONE, add, fresh, mul, neg, number, power
    >>> from combdiff.terms.types import Map
    >>> f, d = fresh("f", Map((REAL,), REAL)), fresh("d", REAL)
    >>> half = power(number(2), neg(ONE))
    >>> place = add(mul(half, add(ONE, mul(number(2), d))), neg(half))
    >>> with_flat_places(App(f, (place,))) == App(f, (d,))
    True

    Of a function, a place stays as it is if it has no fewer terms so.
    """
    return Traverser(_visit, App, Delta)(t)


def _visit(t: Term) -> Term:
    match t:
        case Delta(left, right, body) if _is_nested(left) or _is_nested(right):
            left, right = (flat(side) if _is_nested(side) else side for side in (left, right))
            return delta(left, right, body)
        case App(f, args) if any(_is_nested(a) for a in args):
            return rebuild(t, [f, *map(_shorter, args)])
        case _:
            return t


def _shorter(place: Term) -> Term:
    if not _is_nested(place):
        return place
    found = flat(place)
    pieces = sum(len(terms_of(split_coefficient(u)[1])) for u in terms_of(place))
    return found if len(terms_of(found)) < pieces else place


def _is_nested(place: Term) -> bool:
    """Whether it is a real number with a sum in it that a number stands in front of."""
    inner = (split_coefficient(u) for u in terms_of(place)) if isinstance(place, Add | Mul) else ()
    return place.type == REAL and any(isinstance(of, Add) for _, of in inner)
