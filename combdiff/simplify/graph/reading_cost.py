"""The reading cost of a term: the names that are written, and the parentheses.

sum(q, C(q, i) * h(p, q))   costs 7: the index of the sum, and two entries of a name and two indices each
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from combdiff.terms.terms import Add, Call, Const, Mul, Pow, Sum, Term, Var, children, has_no_index
from combdiff.terms.types import Index

PARENTHESES = 3.5
"""A sum in parentheses is worth it where more than three names are saved: A x + A† x stays, h C + G C does not."""

KNOWN = 0.02
"""What an entry of a value with a name costs less than its names: of equally long forms it says the most."""


INVERSE = 0.015
"""What a value costs less than another one that it is one over: of w and Q in w = 1/Q, w is read."""


MOST_REPEATED = 4
"""Powers of an inverse that are read as that many factors."""


def words(t: Term, known: dict[Term, float], values: Mapping[Term, float] = MappingProxyType({})) -> float:
    """The names that `t` is written with, and its parentheses; `known` keeps what was counted.

    Entries of values cost so much less as `values` has of them.
    """
    if t not in known:
        own = own_words(t) - values.get(t, 0.0)
        known[t] = own + times_written(t) * sum(words(c, known, values) for c in children(t))
    return known[t]


def times_written(t: Term) -> int:
    """How often the base of a power counts: the graph has 1/s^2 of a number s as 1/s · 1/s, to share 1/s.

    >>> from combdiff.terms.terms import fresh, number, power
    >>> from combdiff.terms.types import REAL
    >>> s = fresh("s", REAL)
    >>> times_written(power(s, number(-2))), times_written(power(s, number(2)))
    (2, 1)
    """
    match t:
        case Pow(_, Const() as n) if n.is_integer and -MOST_REPEATED <= n.real < -1 and has_no_index(t):
            return int(-n.real)
        case _:
            return 1


def own_words(t: Term) -> float:
    """The names that a node is written with itself."""
    match t:
        case Var() | Call():
            return 1.0
        case Sum(indices, body):
            return len(indices) + (PARENTHESES if isinstance(body, Add) else 0.0)
        case Mul(factors):
            return sum(PARENTHESES for f in factors if isinstance(f, Add) and not isinstance(f.type, Index))
        case _:
            return 0.0
