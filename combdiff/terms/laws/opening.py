"""Writes definitions out where a law needs their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from combdiff.terms.alpha import alpha_equal
from combdiff.terms.nodes import params_of
from combdiff.terms.schema import children
from combdiff.terms.terms import Add, App, Mul, Term, Traverser, Var, apply, body_of, substitute

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


def closed(t: Term, written: Mapping[Var, Term], equal: Callable[[Term, Term], bool] = alpha_equal) -> Term:
    """`t` with the names of definitions where it holds their values, each `written` as it stands when it is opened.

    >>> from combdiff.terms.terms import TWO, call, fresh, power
    >>> from combdiff.terms.types import REAL
    >>> x, y = fresh("x", REAL), fresh("y", REAL)
    >>> closed(power(call("sin", x), TWO), {y: call("sin", x)}) == power(y, TWO)
    True
    """

    def visit(u: Term) -> Term:
        for var, value in written.items():
            slots, body = params_of(value), body_of(value)
            if type(u) is not type(body):
                continue
            found: dict[Var, Term] = {}
            _note_arguments(body, u, slots, found)
            if len(found) == len(slots) and equal(substitute(body, found), u):
                return App(var, tuple(found[slot] for slot in slots)) if slots else var
        return u

    return Traverser(visit)(t) if written else t


def _note_arguments(body: Term, u: Term, slots: Sequence[Var], found: dict[Var, Term]) -> None:
    """What the slots of a value are if it is `u` at some indices: whether it is, remains to be seen."""
    if isinstance(body, Var):
        if body in slots:
            found.setdefault(body, u)
    elif not body.free.isdisjoint(slots):
        for part, other in _pairs(body, u):
            _note_arguments(part, other, slots, found)


def _pairs(body: Term, u: Term) -> Iterator[tuple[Term, Term]]:
    """The parts of two terms that may be equal; terms and factors stand in any order."""
    if not isinstance(body, Add | Mul):
        yield from zip(children(body), children(u), strict=False)
        return
    left = [*children(u)]
    for part in children(body):
        n = next((n for n, other in enumerate(left) if _head(other) == _head(part)), None)
        if n is not None:
            yield part, left.pop(n)


def _head(t: Term) -> tuple[type, object]:
    """What a term is outermost."""
    return type(t), t.function if isinstance(t, App) and isinstance(t.function, Var) else None
