"""Laws of max and min of two numbers, and of signs beside them.

    max(a, b) + min(a, b)          is   a + b
    max(a, b) - min(a, b)          is   |a - b|
    max(a, b) min(a, b)            is   a b
    (1 + sign(u)) max(0, u)        is   2 max(0, u)        for both are 0 where u is not positive

The last is what the derivative of a squared hinge loss holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from combdiff.terms.alpha import alpha_equal
from combdiff.terms.nodes import ONE, ZERO, Add, Call, Const, Mul, Term

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
