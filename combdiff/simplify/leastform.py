"""The least key of a tree over all shifts of periodic indices and all names (design, section 6 b).

`shifts` lists the trees that differ by shifts, `labelling` searches each for names; here one of them is chosen.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from combdiff.language.types import Domain, Index, Type
from combdiff.simplify.budget import Budget
from combdiff.simplify.labelling import Labelling, Vanishes
from combdiff.simplify.shifts import rigid, settled
from combdiff.simplify.skeleton import Factor, Node, Variant, factors, product, totals

Spelling = tuple[bool, tuple[str, bool, bool, bool, bool]]


def least_form(root: Node, bound: list[Type], budget: Budget) -> tuple[Hashable, int]:
    """The least key over all shifts and names, and its sign.

    Raises:
        Vanishes: if the term is its own negative.
        OutOfTime: if the budget ends first.
    """
    order, searches = candidates(root, bound, budget)
    forms = [search.run() for search in foremost(searches)]
    key, sign = min(forms)
    if any(k == key and s != sign for k, s in forms):
        raise Vanishes
    return (order, key), sign


def candidates(
    root: Node, bound: list[Type], budget: Budget, open_: int = 0
) -> tuple[tuple[Spelling, ...], list[Labelling]]:
    """One search for names a choice of shifts, and the domains that its names range over.

    The first `open_` of the indices are slots of a tensor, which may be renamed and reversed, but not shifted.
    """
    domains = [kind.domain if isinstance(kind, Index) else None for kind in bound]
    spelled = [(n >= open_, _spelled(kind)) for n, kind in enumerate(bound)]
    # indices of parts that turned out to be zero are read, but stand nowhere
    order = sorted({spelled[n] for total_ in totals(root) for n in total_.indices})
    kinds = [order.index(s) if s in order else -1 for s in spelled]
    periodic = frozenset(n for n, d in enumerate(domains) if d is not None and d.periodic)
    free_to_turn = periodic - rigid(root, domains) if periodic else periodic
    reversible = [n in free_to_turn or (d is not None and d.symmetric) for n, d in enumerate(domains)]
    trees = settled(root, free_to_turn - frozenset(range(open_)))
    if open_:
        trees = [_with_idle(tree, domains[:open_]) for tree in trees]
    return tuple(order), [Labelling(tree, kinds, reversible, budget, open_) for tree in trees]


def foremost(searches: list[Labelling]) -> list[Labelling]:
    """The searches of least trace: one of them is chosen whatever the names, and the others need not be run."""
    if len(searches) == 1:
        return searches
    traces = [search.trace() for search in searches]
    least = min(traces)
    return [search for search, trace in zip(searches, traces, strict=True) if trace == least]


def _with_idle(root: Node, slots: Sequence[Domain | None]) -> Node:
    """The tree with a factor 1 for every slot that stands nowhere, so that it has a name as well."""
    used = {s for f in factors(root) for _, places, _ in f.variants for _, symbols in places for s, _ in symbols}
    idle: list[Node] = []
    for n, d in enumerate(slots):
        if n not in used:
            turns = (1, -1) if d is not None and (d.periodic or d.symmetric) else (1,)
            variants: tuple[Variant, ...] = tuple((False, ((0, ((n, c),)),), 1) for c in turns)
            idle.append(Factor((9, 0, 0, ""), variants, moduli=(d if d is not None and d.periodic else None,)))
    return product([root, *idle]) if idle else root


def _spelled(kind: Type) -> tuple[str, bool, bool, bool, bool]:
    d = kind.domain if isinstance(kind, Index) else None
    if d is None:
        return repr(kind), False, False, False, False
    return d.name, d.declared, d.periodic, d.symmetric, d.contractable
