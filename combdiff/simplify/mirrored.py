"""Widens values that are 0 unless i < j to i != j, so that their uses in both orders become one.

With d_bar(i, j) = where(i < j, g(i, j)) of a symmetric g, d_bar(i, j) + d_bar(j, i) is where(i != j, g(i, j)).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from combdiff.canon.both_orders import orders_of
from combdiff.canon.canonical import NormalForm
from combdiff.terms.conditions.comparing import compared
from combdiff.terms.terms import (
    App,
    Lam,
    Term,
    Traverser,
    Var,
    add,
    apply,
    fresh,
    held_whole,
    substitute,
    subterms,
    terms_of,
)

Binding = tuple[Var, Term]


def in_both_orders(
    bindings: Sequence[Binding], results: Sequence[Term], kept: Collection[Var], form: Callable[[Term], NormalForm]
) -> tuple[list[Binding], list[Term]]:
    """Values, but those in `kept`, as where(i != j, g) for where(i < j, g) of a symmetric g; uses ask for i < j."""
    variables, terms = [var for var, _ in bindings], [*(e for _, e in bindings), *results]
    for n, var in enumerate(variables):
        value = terms[n]
        wider = _widened(value, form) if var not in kept and isinstance(value, Lam) else None
        if wider is not None and _is_read_at_indices(var, terms):
            terms[n], places = wider
            variables[n] = new = fresh(var.name, var.kind)
            terms = [_asking(e, var, new, places) for e in terms]
    return list(zip(variables, terms, strict=False)), terms[len(bindings) :]


def _widened(value: Lam, form: Callable[[Term], NormalForm]) -> tuple[Lam, tuple[int, int]] | None:
    """A value where two of its indices differ, and the places of the lesser and the greater one that it asked for."""
    ways = []
    for t in terms_of(value.body):
        of_params = (o for o in orders_of(t) if o.lesser in value.params and o.greater in value.params)
        ways.append({(o.lesser, o.greater): o.both for o in of_params})
    for i, j in ways[0]:
        if all((i, j) in way for way in ways):
            whole = add(*(way[i, j] for way in ways))
            if form(whole) == form(substitute(whole, {i: j, j: i})):
                return Lam(value.params, whole), (value.params.index(i), value.params.index(j))
    return None


def _is_read_at_indices(var: Var, terms: Sequence[Term]) -> bool:
    """Whether a value is used entry by entry only, at indices and not at arithmetic of them."""
    users = [t for t in terms if var in t.free]
    uses = [u for t in users for u in subterms(t, App) if u.function == var]
    at_indices = bool(uses) and all(isinstance(a, Var) for u in uses for a in u.args)
    return at_indices and not any(var in held_whole(t) for t in users)


def _asking(t: Term, var: Var, new: Var, places: tuple[int, int]) -> Term:
    """`t` with where(i < j, new(i, j)) for var(i, j)."""

    def visit(u: Term) -> Term:
        if not (isinstance(u, App) and u.function == var):
            return u
        lesser, greater = (u.args[place] for place in places)
        return compared(lesser, "<", greater, apply(new, *u.args))

    return Traverser(visit)(t) if var in t.free else t
