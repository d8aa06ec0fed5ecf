"""Writes the program's own values with the functions that have got a name.

    w = i -> sum(l, A(i, l)^2);  U = (i, k) -> A(i, k) / sqrt(w(i));  v = i -> sqrt(w(i))

becomes v = i -> sqrt(sum(l, A(i, l)^2));  U = (i, k) -> A(i, k) / v(i)   once w is written where it is used alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from combdiff.simplify.choose import Binding
from combdiff.simplify.graph.laws.part_of_product import places
from combdiff.terms.terms import (
    App,
    Call,
    Reduce,
    Term,
    Traverser,
    Var,
    alpha_equal,
    body_of,
    params_of,
    substitute,
)


def with_named_functions(bindings: Sequence[Binding], new: Collection[Var], kept: Collection[Var]) -> list[Binding]:
    """`bindings` with the functions among the `new` ones where those in `kept` hold them, and in front of these."""
    ordered = [*bindings]
    for var, value in bindings:
        if var not in new or _function(body_of(value)) is None:
            continue
        place = next(n for n, (v, _) in enumerate(ordered) if v == var)
        first = max((n for n, (v, _) in enumerate(ordered) if v in value.free), default=-1) + 1
        written = [
            (v, _with_name(u, var, value)) if v in kept and first <= n < place else (v, u)
            for n, (v, u) in enumerate(ordered)
        ]
        user = next((n for n in range(first, place) if written[n][1] != ordered[n][1]), None)
        if user is not None:
            ordered = [*written[:user], written[place], *written[user:place], *written[place + 1 :]]
    return ordered


def _with_name(t: Term, var: Var, value: Term) -> Term:
    """`t` with `var` where it holds `value` at some indices; `t` itself where it does not."""
    slots, body = params_of(value), body_of(value)

    def named(u: Term) -> Term:
        if _function(u) == _function(body):
            for args in _arguments(body, slots, u):
                held = substitute(body, dict(zip(slots, args, strict=True))) if slots else body
                if held == u or alpha_equal(held, u):
                    return App(var, args) if slots else var
        return u

    return Traverser(named, Call, App)(t)


def _arguments(body: Term, slots: Sequence[Var], u: Term) -> Iterator[tuple[Term, ...]]:
    """What the slots of a value may be where it is `u`: its own indices tell, or entries that it holds."""
    if isinstance(body, App) and isinstance(u, App) and body.args == (*slots,):
        yield u.args
    else:
        yield from places(body, slots, u)


def _function(t: Term) -> str | None:
    """The function that a number is a value of, sqrt(w(i)), or the reduction that it is an entry of, A⁻¹(i, j)."""
    match t:
        case Call(name) | App(Reduce(name)):
            return name
        case _:
            return None
