"""How hard a form is to read: the names that are written, and the parentheses (design, section 6 c).

sum(q, C(q, i) * h(p, q))   costs 7: the index of the sum, and two entries of a name and two indices each
"""

from __future__ import annotations

from combdiff.terms.terms import Add, Call, Conj, Const, Mul, Pow, Sum, Term, Var, children
from combdiff.terms.types import Index

PARENTHESES = 3.5
"""A sum in parentheses is worth it where more than three names are saved: A x + A† x stays, h C + G C does not."""


def words(t: Term, known: dict[Term, float] | None = None) -> float:
    """The names that `t` is written with, and its parentheses.

    >>> from combdiff.terms.terms import App, add, fresh, mul
    >>> from combdiff.terms.types import REAL, Map
    >>> n = Index()
    >>> x, y, i = fresh("x", Map((n,), REAL)), fresh("y", REAL), fresh("i", n)
    >>> words(mul(y, App(x, (i,)))), words(mul(y, add(y, App(x, (i,)))))
    (3.0, 7.5)

    `known` keeps what was counted, for terms that have parts in common.
    """
    counted: dict[Term, float] = {} if known is None else known

    def count(u: Term) -> float:
        if u not in counted:
            counted[u] = own(u) + sum(count(c) for c in children(u))
        return counted[u]

    def own(u: Term) -> float:
        match u:
            case Var():
                return 1.0
            case Call():
                return 1.0
            case Sum(indices, body):
                return len(indices) + (PARENTHESES if isinstance(body, Add) else 0.0)
            case Mul(factors):
                return sum(PARENTHESES for f in factors if isinstance(f, Add) and not isinstance(f.type, Index))
            case _:
                return 0.0

    return count(t)


def rank(t: Term) -> int:
    """The most indices that an entry of `t` has."""
    match t:
        case Conj(u) | Pow(u, _):
            return rank(u)
        case Var() | Const():
            return 0
        case _:
            own = sum(isinstance(c.type, Index) for c in children(t))
            return max([own, *(rank(c) for c in children(t))])
