"""Stage c for a whole result: its values are recognised, collected, and named where they are written twice.

    4 Σ_q h(p,q) C(q,i) + Σ_qrsj (8 V(p,q,r,s) − 4 V(p,r,q,s)) C(q,i) C(r,j) C(s,j)   becomes
    P(r,s) = Σ_j C(r,j) C(s,j);  4 Σ_q C(q,i) (h(p,q) + Σ_rs P(r,s) (2 V(p,q,r,s) − V(p,r,q,s)))

A name is worth it where it saves names (`cost.py`); a contraction in front of a collected sum has one in any case.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Sequence
from contextlib import suppress

from combdiff.budget import Budget, OutOfTime
from combdiff.calculus.naming import LINEAR
from combdiff.canon.canonical import Symmetries, merge_like_terms
from combdiff.canon.repeats import form
from combdiff.canon.skeleton import NOTHING
from combdiff.language.printing.names import names_in
from combdiff.simplify.choose import Binding, is_cheap, place
from combdiff.simplify.contraction.egraph import Family
from combdiff.simplify.forms.cost import words
from combdiff.simplify.forms.intermediates import Intermediates
from combdiff.simplify.forms.nest import collected
from combdiff.simplify.forms.recognise import recognised
from combdiff.simplify.products import Look, look
from combdiff.terms.terms import (
    ONE,
    Add,
    Call,
    Const,
    Lam,
    Let,
    Sum,
    Term,
    Traverser,
    Tuple,
    Var,
    children,
    renamed,
    split_coefficient,
    subterms,
)
from combdiff.terms.types import Index, Number

SHORTEST = 6
"""Names that a term is written with before it can be worth one of its own."""

WORTH = 2
"""Names that a new value has to save."""

WORTH_TWICE = 10
"""The same for one that is written twice and holds no contraction: a short part is rather read again."""


def nested(
    bindings: Sequence[Binding],
    results: Sequence[Term],
    kept: Collection[Var],
    symmetries: Symmetries,
    unused: Collection[Var],
    budget: Budget,
) -> tuple[list[Binding], list[Term], dict[str, Family]]:
    """The values of a result, common factors in front and repeated parts named; those in `kept` stay as they are."""
    whole = [*(value for _, value in bindings), *results]
    captured = set().union(*(t.free for t in whole)) - {var for var, _ in bindings}
    taken = names_in(*whole) | {var.name for var, _ in bindings}
    named = Intermediates(captured, taken, symmetries, unused, budget)
    families: dict[str, Family] = {}
    values: list[Term] = []
    for n, value in enumerate(whole):
        if n >= len(bindings) or bindings[n][0] not in kept:
            with suppress(OutOfTime):
                value = _nested(value, named, families)
        values.append(value)
        if n < len(bindings):
            named.define(bindings[n][0], value)
    open_ = {n for n in range(len(whole)) if n >= len(bindings) or bindings[n][0] not in kept}
    values = _shared(values, open_, named)
    found = [(var, value) for (var, _), value in zip(bindings, values, strict=False)]
    ordered = _in_order(named.named, found)
    if named.named:
        # what only a new value mentions still is part of it
        ordered, values = place(ordered, values[len(bindings) :], {*kept, *(var for var, _ in named.named)})
        return ordered, values, families
    return ordered, values[len(bindings) :], families


def _nested(value: Term, named: Intermediates, families: dict[str, Family]) -> Term:
    """One value: what is known is recognised, then each sum of terms collected, inner ones first."""
    plain = recognised(value, named)
    if plain is not value:
        plain = merge_like_terms(plain, named.symmetries, named.unused, named.budget)

    def visit(t: Term) -> Term:
        if not isinstance(t, Add) or isinstance(t.type, Index) or named.budget.over():
            return t
        spelled, variables = form(t)
        key = spelled, tuple(map(named.properties, variables))
        if key in named.collected:
            own, known = named.collected[key]
            return renamed(known, dict(zip(own, variables, strict=True))) if known is not None else t
        found, account = collected(t, named)
        if found.free <= t.free:
            named.collected[key] = variables, found if found is not t else None
        for name, family in account.items():
            total = families.setdefault(name, Family())
            total.matches += family.matches
            total.seconds += family.seconds
        return found

    return Traverser(visit, prune=lambda t: isinstance(t.type, Index))(plain)


def _shared(values: list[Term], open_: Collection[int], named: Intermediates) -> list[Term]:
    """`values`, those in `open_` and the new ones of `named` with repeated parts named."""
    while not named.budget.over():
        rewritten = [values[n] for n in open_] + [value for _, value in named.named]
        try:
            part = _repeated(rewritten, named)
        except OutOfTime:
            break
        if part is None:
            break
        before = list(named.named)
        named.name(part)
        if len(named.named) == len(before):
            break
        new = named.alone(named.named[-1][0])
        try:
            rewritten = [recognised(v, new) if n in open_ else v for n, v in enumerate(values)]
            named.named[:-1] = [(var, recognised(value, new)) for var, value in before]
        except OutOfTime:
            named.named[:] = before
            break
        values = rewritten
    return values


def _repeated(values: Sequence[Term], named: Intermediates) -> Term | None:
    """The part that is most worth a name, if any is."""
    alike: dict[tuple[Look, float], list[Term]] = defaultdict(list)
    counted: dict[Term, float] = {}
    for value in values:
        for t in _parts(value, counted):
            named.budget.check()
            alike[look(t), words(t, counted)].append(t)
    best: tuple[float, Term] | None = None
    for (_, size), parts in alike.items():
        if len(parts) > 1 and all(map(named.is_nameable, parts)):
            saved, part = _saved(parts, size, named)
            if saved > 0 and (best is None or saved > best[0]):
                best = saved, part
    return best[1] if best is not None else None


def _saved(parts: Sequence[Term], size: float, named: Intermediates) -> tuple[float, Term]:
    """How many names a value for the most frequent of `parts` saves beyond what makes it worth it, and one of these."""
    forms: dict[Hashable, list[Term]] = defaultdict(list)
    for t in parts:
        closed = named.form(t)
        if closed.coefficient != NOTHING:
            forms[closed.key].append(t)
    most = max(forms.values(), key=len, default=[])
    if len(most) < 2:
        return 0.0, parts[0]
    entry = 1 + len(named.open_indices(most[0]))
    saved = len(most) * (size - entry) - (size + 2 * entry - 1)
    if entry > 1 and _is_function_of_a_value(most[0], named):
        return size, most[0]
    contracted = any(isinstance(u, Sum) for u in subterms(most[0]))
    return saved - (WORTH if contracted or len(most) > 2 else WORTH_TWICE), most[0]


def _is_function_of_a_value(t: Term, named: Intermediates) -> bool:
    """Whether it is exp(u(n, k)) or the like, for a named u or for a contraction, which nobody computes twice."""
    if not isinstance(t, Call) or t.primitive in LINEAR:
        return False
    return any(not is_cheap(a) or not a.free.isdisjoint(named.computed) for a in t.args)


def _parts(value: Term, counted: dict[Term, float]) -> Iterator[Term]:
    """The terms below `value`, each as often as it is written, that a name could stand for."""
    entry = value.body if isinstance(value, Lam) else value
    todo = list(children(entry))
    while todo:
        t = todo.pop()
        if isinstance(t.type, Index) or isinstance(t, Var | Const):
            continue
        todo += children(t)
        if split_coefficient(t)[0] != ONE:
            continue  # what the number stands in front of is among the others
        written = isinstance(t.type, Number) and not isinstance(t, Let | Tuple)
        if written and (isinstance(t, Call) or words(t, counted) >= SHORTEST) and not is_cheap(t):
            yield t


def _in_order(named: Sequence[Binding], found: Sequence[Binding]) -> list[Binding]:
    """All bindings, the named ones in front of what first uses them."""
    waiting = dict(named)
    ordered: list[Binding] = []

    def put(var: Var, value: Term) -> None:
        for v in [v for v in waiting if v in value.free]:
            if v in waiting:
                put(v, waiting.pop(v))
        ordered.append((var, value))

    for var, value in found:
        put(var, value)
    while waiting:
        var = next(iter(waiting))
        put(var, waiting.pop(var))
    return ordered
