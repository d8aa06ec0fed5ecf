"""Writes the signs of a number and of its negative in a sum by one of them.

y (1 + sign(u - v)) - z (1 + sign(v - u))        is   y (1 + sign(u - v)) - z (1 - sign(u - v))
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from combdiff.terms.terms import Add, Call, Term, Traverser, add, neg, subterms, terms_of


def with_one_sign(t: Add, key: Callable[[Term], Hashable]) -> Term:
    """A sum with -sign(u) for sign(-u) where it holds sign(u) earlier; a key is the same for equal terms.

    >>> from combdiff.terms.terms import fresh, mul
    >>> from combdiff.terms.types import REAL
    >>> x, y = fresh("x", REAL), fresh("y", REAL)
    >>> one, other = (Call("sign", (add(a, neg(b)),)) for a, b in ((x, y), (y, x)))
    >>> with_one_sign(add(one, mul(x, other)), lambda u: frozenset(u.terms)) == add(one, neg(mul(x, one)))
    True
    """
    signs = [
        u for u in subterms(t, Call) if isinstance(u, Call) and u.primitive == "sign" and isinstance(u.args[0], Add)
    ]
    if len(signs) < 2:
        return t
    first: dict[Hashable, Term] = {}
    turned: dict[Term, Term] = {}
    for sign in dict.fromkeys(signs):
        (u,) = sign.args
        if (opposite := first.get(key(_negative(u)))) is not None:
            turned[sign] = neg(opposite)
        else:
            first.setdefault(key(u), sign)
    return Traverser(lambda u: turned.get(u, u), Call)(t) if turned else t


def _negative(u: Term) -> Term:
    """-u, term by term."""
    return add(*map(neg, terms_of(u)))
