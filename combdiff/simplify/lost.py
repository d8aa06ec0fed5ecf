"""Gives a value of a result the name of the user's definition that it equals, if the result has lost the definition.

A program defines p = exp(-D(i, j)) / sum(k, exp(-D(i, k))), and reads it where a stable form takes its place,
softmax(k, -D(i, k))(j). If the result has a name for this softmax, that is p, with the slots of p. So it is for
r = sqrt(x^2 + y^2), whose derivative x / sqrt(x^2 + y^2) is written without r.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import permutations

from combdiff.canon.canonical import canonical
from combdiff.terms.laws.seen_through import with_stable_forms
from combdiff.terms.terms import App, Lam, Let, Loop, Term, Var, fresh, lam, substitute, subterms
from combdiff.terms.types import Index, Map, Type, slot_types

Binding = tuple[Var, Term]
MOST_SLOTS = 3
"""Slots of a value whose orders are tried."""


def definitions_read(read: Term) -> dict[str, Term]:
    """The definitions of a program, with stable forms, by their names; loops and names that are used twice left out.

    >>> from combdiff.language.inference.infer import infer
    >>> from combdiff.language.parsing.parser import parse
    >>> [*definitions_read(infer(parse("(x::RV) -> begin; p = i -> 1 / (1 + exp(x(i))); sum(i, log(p(i))); end")))]
    ['p']
    """
    found = [binding for t in subterms(read, Let) for binding in t.bindings]
    names = [var.name for var, _ in found]
    return {
        var.name: with_stable_forms(value)
        for var, value in found
        if names.count(var.name) == 1 and not isinstance(value, Loop)
    }


def called_as_defined(
    bindings: Sequence[Binding], results: Sequence[Term], defined: Mapping[str, Term], own: Collection[str]
) -> tuple[list[Binding], list[Term], set[str]]:
    """The values and results with the name of a lost definition for a value that equals it, and these names.

    Values whose names are in `own` keep them.
    """
    known = {(var.name, var.kind): var for var, _ in bindings}
    renamed: dict[Var, Term] = {}
    bound = {var.name for var, _ in bindings if var.name in own}
    left = {name: value for name, value in defined.items() if name not in bound}
    again: set[str] = set()
    found: list[Binding] = []
    for var, value in bindings:
        value = substitute(value, renamed) if renamed else value
        names = [] if var.name in own or isinstance(value, Loop) else [*left]
        met = next(((name, order) for name in names if (order := _order(value, left[name], known)) is not None), None)
        if met is None:
            found.append((var, value))
            continue
        name, order = met
        left.pop(name)
        again.add(name)
        binding, renamed[var] = _called(name, var, value, order)
        found.append(binding)
    return found, [substitute(t, renamed) if renamed else t for t in results], again


def _called(name: str, var: Var, value: Term, order: tuple[int, ...]) -> tuple[Binding, Term]:
    """A value by another name, with its slots in this order, and what the old name means now."""
    if not (isinstance(value, Lam) and isinstance(var.kind, Map)):
        new = fresh(name, var.kind)
        return (new, value), new
    ours = tuple(value.params[n] for n in order)
    new = fresh(name, Map(tuple(p.kind for p in ours), var.kind.result))
    slots = tuple(fresh(p.name, p.kind) for p in value.params)
    return (new, Lam(ours, value.body)), lam(slots, App(new, tuple(slots[n] for n in order)))


def _order(value: Term, defined: Term, known: Mapping[tuple[str, Type], Var]) -> tuple[int, ...] | None:
    """The slots of a value in the order in which a definition that equals it has them; None if it does not equal it."""
    theirs = defined.params if isinstance(defined, Lam) else ()
    ours = value.params if isinstance(value, Lam) else ()
    if len(ours) != len(theirs) or len(ours) > MOST_SLOTS or not all(isinstance(p.kind, Index) for p in ours):
        return None
    bodies = [t.body if isinstance(t, Lam) else t for t in (value, defined)]
    if slot_types(bodies[0].type) or bodies[0].type != bodies[1].type:
        return None
    alike = {v: u for v in bodies[1].free if (u := known.get((v.name, v.kind))) is not None}
    form = canonical(bodies[0])
    for order in permutations(range(len(ours))):
        if all(ours[n].kind == p.kind for n, p in zip(order, theirs, strict=True)):
            there = {p: ours[n] for n, p in zip(order, theirs, strict=True)}
            if canonical(substitute(bodies[1], {**alike, **there})) == form:
                return order
    return None
