"""Shifts of periodic indices are settled before names: k → k + q so that slots of one kind hold k bare (design, 6 b).

A bound index that occurs only in slots of its own periodic domain may be shifted by whatever is in scope where it is
bound. The result is a short list of candidates, one of which every equal term reaches too; `canonical` takes the least.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from combdiff.language.types import Domain
from combdiff.simplify.skeleton import (
    Expression,
    Factor,
    Head,
    Node,
    Operation,
    Total,
    Variant,
    below,
    combined,
    factors,
    mapped,
)

_MOST = 64
# the search for names costs about n² for n indices, so that a large term gets fewer candidates
_EFFORT = 4096
_FEWEST = 2

Kind = tuple[Head, bool, tuple[int, int]]


def rigid(root: Node, domains: Sequence[Domain | None]) -> set[int]:
    """Periodic bound indices that are read as numbers somewhere, or stand in a slot of another range."""
    found = set()
    for f in factors(root):
        for _, expressions, _ in f.variants:
            for modulus, (_, symbols) in zip(f.moduli, expressions, strict=True):
                for s, _ in symbols:
                    domain = domains[s] if s >= 0 else None
                    if domain is not None and domain.periodic and domain != modulus:
                        found.add(s)
    return found


def settled(root: Node, movable: frozenset[int]) -> list[Node]:
    """`root` with the indices in `movable` shifted, in all ways that the choice of bare slots leaves."""
    if not any(_compound(f, movable) for f in factors(root)):
        return [root]
    scope: dict[int, frozenset[int]] = {}
    _scopes(root, frozenset(), scope)
    most = max(_FEWEST, min(_MOST, _EFFORT // max(1, len(scope)) ** 2))
    results: list[Node] = []
    seen: set[object] = set()
    stack = [(root, movable)]
    while stack and len(results) < most:
        tree, todo = stack.pop()
        choices = _choices(tree, todo, scope)
        if not choices:
            results.append(tree)
        for pivot, e in choices:
            moved = _shifted(tree, pivot, e)
            mark = (pivot, tuple(f.variants for f in factors(moved)), todo)
            if mark not in seen:
                seen.add(mark)
                stack.append((moved, todo - {pivot}))
    return results


def _compound(f: Factor, movable: frozenset[int]) -> bool:
    for _, expressions, _ in f.variants:
        for constant, symbols in expressions:
            if (constant or len(symbols) > 1) and any(s in movable for s, _ in symbols):
                return True
    return False


def _scopes(node: Node, scope: frozenset[int], found: dict[int, frozenset[int]]) -> None:
    """For each bound index, the bound indices and λ-parameters that its shift may mention."""
    match node:
        case Total(indices, _):
            scope |= frozenset(indices)
            found.update(dict.fromkeys(indices, scope))
        case Operation(binds=binds):
            scope |= frozenset(binds)
    for part in below(node):
        _scopes(part, scope, found)


def _choices(tree: Node, todo: frozenset[int], scope: dict[int, frozenset[int]]) -> list[tuple[int, Expression]]:
    """The expressions of the kind of slot that has fewest, each with the index that becomes it."""
    kinds: dict[Kind, dict[Expression, int]] = defaultdict(dict)
    for f in factors(tree):
        home = {slot: n for n, block in enumerate(f.blocks) for slot in block}
        for conj, expressions, _ in f.variants:
            for slot, e in enumerate(expressions):
                found = _pivot(e, todo, scope)
                if found is not None:
                    where = (1, home[slot]) if slot in home else (0, slot)
                    kinds[f.head, conj, where][found[1]] = found[0]
    if not kinds:
        return []
    least = min(kinds, key=lambda k: (len(kinds[k]), k))
    chosen: dict[Expression, int] = {}
    for e, pivot in kinds[least].items():
        # e and −e give one result, up to a reversal that the labelling tries anyway
        if combined([(-1, e)]) not in chosen:
            chosen[e] = pivot
    return [(pivot, e) for e, pivot in chosen.items()]


def _pivot(e: Expression, todo: frozenset[int], scope: dict[int, frozenset[int]]) -> tuple[int, Expression] | None:
    """The innermost index with coefficient ±1, and what of the expression is in its scope."""
    candidates = [s for s, k in e[1] if s in todo and abs(k) == 1]
    if not candidates:
        return None
    pivot = max(candidates, key=lambda s: len(scope[s]))
    return pivot, (e[0], tuple(item for item in e[1] if item[0] in scope[pivot] or _is_free(item[0])))


def _is_free(symbol: int) -> bool:
    return -(1 << 40) < symbol < 0


def _shifted(tree: Node, pivot: int, e: Expression) -> Node:
    """`tree` with the index renamed so that `e` is ± the index itself."""
    constant, symbols = e
    sign = dict(symbols)[pivot]
    rest = tuple((s, -sign * k) for s, k in symbols if s != pivot)
    value: Expression = (-sign * constant, tuple(sorted(((pivot, sign), *rest))))

    def moved(x: Expression) -> Expression:
        k = dict(x[1]).get(pivot)
        if not k:
            return x
        others = (x[0], tuple(item for item in x[1] if item[0] != pivot))
        return combined([(1, others), (k, value)])

    def change(f: Factor) -> Factor:
        variants: tuple[Variant, ...] = tuple((c, tuple(map(moved, es)), s) for c, es, s in f.variants)
        return f if variants == f.variants else replace(f, variants=variants)

    return mapped(tree, change)
