"""Stage c in its simplest form: which values of a result keep a name of their own, and what its indices are called.

The user's definitions stay (Eq. 58 keeps ρ̂). A cotangent that differentiation introduced stays only where it is used
more than once and is more than a product of numbers and entries; otherwise it is put where it is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from combdiff.language.terms import (
    Add,
    Call,
    Lam,
    Let,
    Sum,
    Term,
    Tuple,
    Var,
    bound_by,
    children,
    fresh,
    rebuild,
    substitute,
    subterms,
)
from combdiff.language.types import Index, Type

Binding = tuple[Var, Term]


def uses(var: Var, terms: Sequence[Term]) -> int:
    """How often `var` is written in `terms`."""

    def count(t: Term) -> int:
        if var not in t.free:
            return 0
        return 1 if t == var else sum(count(c) for c in children(t))

    return sum(count(t) for t in terms)


def is_cheap(value: Term) -> bool:
    """Whether `value` is a plain product, which costs nothing to write twice."""
    body = value.body if isinstance(value, Lam) else value
    return not any(isinstance(t, Sum | Call | Add) and not isinstance(t.type, Index) for t in subterms(body))


def place(
    bindings: Sequence[Binding], results: Sequence[Term], kept: Collection[Var]
) -> tuple[list[Binding], list[Term]]:
    """Values that are not in `kept` go to where they are used, if that is one place or if they are cheap."""
    remaining = list(bindings)
    terms = list(results)
    for var, value in reversed(bindings):
        if var in kept:
            continue
        later = [e for v, e in remaining if var in e.free]
        if is_cheap(value) or uses(var, [*later, *terms]) == 1:
            remaining = [(v, substitute(e, {var: value})) for v, e in remaining if v != var]
            terms = [substitute(t, {var: value}) for t in terms]
    return remaining, terms


# --- names ----------------------------------------------------------------------------------------------------------


def rename_indices(result: Term, names: dict[Type, list[str]]) -> Term:
    """Bound indices get names of `names` (the user's, by type) that nothing around them carries."""

    def go(t: Term, taken: frozenset[str]) -> Term:
        bound = [v for v in bound_by(t) if not isinstance(t, Let)]
        renaming: dict[Var, Term] = {}
        for v in bound:
            name = _free_name(v, taken, names)
            taken = taken | {name}
            if name != v.name:
                renaming[v] = fresh(name, v.kind)
        parts = [go(substitute(c, renaming) if renaming else c, taken) for c in children(t)]
        if not bound:
            return rebuild(t, parts) if not isinstance(t, Tuple | Let) else _regrouped(t, parts)
        chosen = tuple(renaming.get(v, v) for v in bound)
        variables = tuple(v for v in chosen if isinstance(v, Var))
        return Sum(variables, parts[0]) if isinstance(t, Sum) else Lam(variables, parts[0])

    outer = frozenset(v.name for v in result.free)
    return go(result, outer)


def _regrouped(t: Term, parts: list[Term]) -> Term:
    if isinstance(t, Let):
        return Let(tuple((var, value) for (var, _), value in zip(t.bindings, parts, strict=False)), parts[-1])
    return Tuple(tuple(parts))


def _free_name(v: Var, taken: frozenset[str], names: dict[Type, list[str]]) -> str:
    if v.name not in taken:
        return v.name
    for name in names.get(v.kind, []):
        if name not in taken:
            return name
    return next(f"{v.name}{n}" for n in range(1, len(taken) + 2) if f"{v.name}{n}" not in taken)


def index_names(program: Term) -> dict[Type, list[str]]:
    """The names that the user gave to indices, by the type of the index, in reading order."""
    found: dict[Type, Counter[str]] = {}
    for t in subterms(program):
        for v in bound_by(t):
            if isinstance(v.kind, Index):
                found.setdefault(v.kind, Counter())[v.name] += 1
    return {kind: list(names) for kind, names in found.items()}
