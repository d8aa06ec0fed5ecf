"""Laws of max and min of two numbers, and of signs beside them.

    max(a, b) + min(a, b)          is   a + b
    max(a, b) - min(a, b)          is   |a - b|
    max(a, b) min(a, b)            is   a b
    (1 + sign(u)) max(0, u)        is   2 max(0, u)        for both are 0 where u is not positive
    (1 + sign(u)) (1 + sign(v))    is   2 (sign(u) + sign(v))      where u + v is a number above 0

The last two are what the derivatives of a squared hinge loss and of clip hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations

from combdiff.terms.alpha import alpha_equal
from combdiff.terms.nodes import ONE, ZERO, Add, Call, Const, Mul, Term, terms_of

_SIDES = {"max": 1, "min": -1}
"""The sign of u wherever max(0, u), or min(0, u), is not 0."""


def is_extremum(t: Term) -> bool:
    """Whether it is the greater or the smaller of two numbers."""
    return isinstance(t, Call) and t.primitive in _SIDES


def opposites(terms: Iterable[Term]) -> tuple[Term, Term] | None:
    """A maximum and the minimum of the same two numbers among some terms.

    >>> from combdiff.terms.nodes import fresh
    >>> from combdiff.terms.types import REAL
    >>> x, y = fresh("x", REAL), fresh("y", REAL)
    >>> largest, smallest = Call("max", (x, y)), Call("min", (y, x))
    >>> opposites([smallest, x, largest]) == (largest, smallest), opposites([largest, Call("min", (x, ZERO))])
    (True, None)
    """
    found: dict[frozenset[Term], dict[str, Term]] = {}
    for t in terms:
        if isinstance(t, Call) and t.primitive in _SIDES:
            pair = found.setdefault(frozenset(t.args), {})
            pair[t.primitive] = t
            if len(pair) == 2:
                return pair["max"], pair["min"]
    return None


def with_signs_known(powers: Mapping[Term, int]) -> list[tuple[Term, int]] | None:
    """A product's factors and their powers with the signs that max(0, u) or min(0, u) beside them tell; None if none.

    >>> from combdiff.terms.nodes import ONE, fresh
    >>> from combdiff.terms.types import REAL
    >>> u = fresh("u", REAL)
    >>> hinge, sign = Call("max", (ZERO, u)), Call("sign", (u,))
    >>> with_signs_known({hinge: 2, Add((ONE, sign)): 1}) == [(hinge, 2), (Const(Fraction(2)), 1)]
    True
    """
    known = [told for f, n in powers.items() if n > 0 for told in _told(f)]
    if not known:
        return None
    told = [(_with_signs(f, known) if n > 0 else f, n) for f, n in powers.items()]
    return None if all(f is g for (f, _), g in zip(told, powers, strict=True)) else told


def with_signs_met(t: Mul) -> tuple[list[Term], Add] | None:
    """The other factors, and 2 (sign(u) + sign(v)), of a product with (1 + sign(u)) (1 + sign(v)); None if it has none.

    u or v is above 0, so that (1 - sign(u)) (1 - sign(v)) is 0.
    """
    ups = [(f, u) for f in t.factors if (u := _up(f)) is not None]
    for (one, u), (other, v) in combinations(ups, 2):
        if _is_number_above_zero(u, v):
            signs = Add((Call("sign", (u,)), Call("sign", (v,))))
            return [Const(Fraction(2)), *(f for f in t.factors if f is not one and f is not other)], signs
    return None


def _up(f: Term) -> Term | None:
    """u of 1 + sign(u)."""
    match f:
        case Add((Const() as one, Call("sign", (u,)))) | Add((Call("sign", (u,)), Const() as one)) if one == ONE:
            return u
        case _:
            return None


def _is_number_above_zero(u: Term, v: Term) -> bool:
    """Whether u + v is one."""
    left: dict[Term, Fraction] = {}
    for t in (*terms_of(u), *terms_of(v)):
        c, rest = (t, ONE) if isinstance(t, Const) else _split(t)
        left[rest] = left.get(rest, Fraction(0)) + c.real
        if c.imag:
            return False
    return left.pop(ONE, Fraction(0)) > 0 and not any(left.values())


def _told(t: Term) -> Iterable[tuple[Term, int]]:
    """sign(u), and what it is wherever `t` is not 0."""
    match t:
        case Call("max" | "min" as name, (a, b)) if ZERO in (a, b):
            u = b if a == ZERO else a
            c, rest = _split(u)
            yield Call("sign", (rest,)), _SIDES[name] if c.real > 0 else -_SIDES[name]


def _with_signs(f: Term, known: Sequence[tuple[Term, int]]) -> Term:
    """A factor that is a sign, or a sum with a multiple of one, with what the sign is."""
    if (side := _known(f, known)) is not None:
        return Const(Fraction(side))
    if not isinstance(f, Add):
        return f
    signs = {t: side for t in f.terms if (side := _known(_split(t)[1], known)) is not None}
    if not signs:
        return f
    numbers = [t for t in f.terms if isinstance(t, Const)]
    numbers += [Const(c.real * side, c.imag * side) for t, side in signs.items() for c in (_split(t)[0],)]
    total = Const(sum((c.real for c in numbers), Fraction(0)), sum((c.imag for c in numbers), Fraction(0)))
    others = [t for t in f.terms if t not in signs and not isinstance(t, Const)]
    kept = [*([total] if total != ZERO or not others else []), *others]
    return kept[0] if len(kept) == 1 else Add(tuple(kept))


def _split(t: Term) -> tuple[Const, Term]:
    """The number in front of a sign, and the sign; 1 and the term where it is no multiple of one other factor."""
    match t:
        case Mul((Const() as c, u)):
            return c, u
        case _:
            return ONE, t


def _known(t: Term, known: Sequence[tuple[Term, int]]) -> int | None:
    """What a sign is said to be, whatever the bound variables in it are called."""
    is_sign = isinstance(t, Call) and t.primitive == "sign"
    return next((side for s, side in known if is_sign and alpha_equal(s, t)), None)
