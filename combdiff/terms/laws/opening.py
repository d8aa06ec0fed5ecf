"""Writes definitions out where a law needs their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from combdiff.terms.terms import App, Term, Traverser, Var, apply

_DEEPEST = 4  # a definition of exponentials is made of a few others


def opened(t: Term, values: Mapping[Var, Term], then: Callable[[Term], Term] = lambda u: u) -> Term:
    """`t` with the definitions in `values` written out, and `then` used on what is in them.

    >>> from combdiff.terms.terms import TWO, fresh, power
    >>> from combdiff.terms.types import REAL
    >>> x, y = fresh("x", REAL), fresh("y", REAL)
    >>> opened(power(y, TWO), {y: x}) == power(x, TWO)
    True
    """
    return _opened(t, values, then, 0)


def _opened(t: Term, values: Mapping[Var, Term], then: Callable[[Term], Term], depth: int) -> Term:
    def visit(u: Term) -> Term:
        match u:
            case Var() if u in values and depth <= _DEEPEST:
                return _opened(values[u], values, then, depth + 1)
            case App(Var() as v, args) if v in values and depth <= _DEEPEST:
                return _opened(apply(values[v], *args), values, then, depth + 1)
            case _:
                return then(u) if depth else u

    return t if not depth and t.free.isdisjoint(values) else Traverser(visit)(t)
