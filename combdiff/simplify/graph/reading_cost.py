"""The reading cost of a term: the names that are written, and the parentheses.

sum(q, C(q, i) * h(p, q))   costs 7: the index of the sum, and two entries of a name and two indices each
"""

from __future__ import annotations

from collections.abc import Container

from combdiff.terms.terms import Add, Call, Mul, Sum, Term, Var, children
from combdiff.terms.types import Index

PARENTHESES = 3.5
"""A sum in parentheses is worth it where more than three names are saved: A x + A† x stays, h C + G C does not."""

KNOWN = 0.02
"""What an entry of a value with a name costs less than its names: of equally long forms it says the most."""


def words(t: Term, known: dict[Term, float], values: Container[Term] = ()) -> float:
    """The names that `t` is written with, and its parentheses; `known` keeps what was counted.

    Entries of the `values` cost a little less.
    """
    if t not in known:
        own = own_words(t) - KNOWN * (t in values)
        known[t] = own + sum(words(c, known, values) for c in children(t))
    return known[t]


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
