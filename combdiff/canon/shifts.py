"""Fixes the shifts of periodic indices before their names: k → k + q, so that slots of one kind hold k bare.

A bound index that occurs only in slots of its own periodic domain may be shifted by whatever is in scope where it is
bound, and several of one sum may be mixed by an integer matrix of determinant ±1 (`lattice`). Expressions of one class
become bare together if they can, else one after the other in every order; an expression 2k + … becomes 2p + what is
left of it modulo 2. The result is a short list of candidates, one of which every equal term reaches too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from combdiff.canon.hermite import basis
from combdiff.canon.skeleton import (
    LAMBDA,
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
from combdiff.records import dataclass
from combdiff.terms.types import Domain

_MOST = 64
# the search for names costs about n² for n indices, so that a large term gets fewer candidates
_EFFORT = 4096
_FEWEST = 2

Kind = tuple[Head, bool, tuple[int, int]]
# where an expression stands: kinds of slots, on which side −e, how often
Signature = tuple[tuple[tuple[Kind, bool], int], ...]
Scopes = dict[int, frozenset[int]]


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
    if not movable or not any(_compound(f, movable) for f in factors(root)):
        return [root]
    scope: Scopes = {}
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
        for choice in choices:
            for pivots, values in _changes(choice):
                moved = _shifted(tree, values)
                mark = (tuple(f.variants for f in factors(moved)), todo - pivots)
                if mark not in seen:
                    seen.add(mark)
                    stack.append((moved, todo - pivots))
    return results


def _compound(f: Factor, movable: frozenset[int]) -> bool:
    for _, expressions, _ in f.variants:
        for constant, symbols in expressions:
            if (constant or len(symbols) > 1 or (symbols and abs(symbols[0][1]) > 1)) and any(
                s in movable for s, _ in symbols
            ):
                return True
    return False


def _scopes(node: Node, scope: frozenset[int], found: Scopes) -> None:
    """For each bound index, the bound indices and λ-parameters that its shift may mention."""
    match node:
        case Total(indices, _):
            scope |= frozenset(indices)
            found.update(dict.fromkeys(indices, scope))
        case Operation(binds=binds):
            scope |= frozenset(binds)
    for part in below(node):
        _scopes(part, scope, found)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Expressions whose innermost movable indices, `names`, belong to one sum."""

    expressions: tuple[Expression, ...]
    names: tuple[int, ...]

    def matrix(self) -> list[list[int]]:
        return [[dict(symbols).get(s, 0) for s in self.names] for _, symbols in self.expressions]

    def rests(self) -> list[Expression]:
        return [(c, tuple(item for item in symbols if item[0] not in self.names)) for c, symbols in self.expressions]


def _choices(tree: Node, todo: frozenset[int], scope: Scopes) -> list[list[_Rows]]:
    """What may become bare next: a class of expressions at once, or each expression of the least class by itself."""
    classes = _classes(tree, todo, scope)
    for members in classes:
        together = _by_sum(members, todo, scope)
        if all((found := basis(rows.matrix())) and found.unimodular for rows in together):
            return [together]
    return [_by_sum([e], todo, scope) for e in classes[0]] if classes else []


def _classes(tree: Node, todo: frozenset[int], scope: Scopes) -> list[list[Expression]]:
    """The expressions of the outermost sums, e and −e taken as one, by where they stand; the least class first.

    What tells classes apart is the same for every choice of the indices.
    """
    places: dict[Expression, Counter[tuple[Kind, bool]]] = defaultdict(Counter)
    depths: dict[Expression, int] = {}
    for f in factors(tree):
        home = {slot: n for n, block in enumerate(f.blocks) for slot in block}
        for conj, expressions, _ in f.variants:
            for slot, whole in enumerate(expressions):
                movable = [s for s, _ in whole[1] if s in todo]
                if not movable:
                    continue
                inner = max((scope[s] for s in movable), key=len)
                e = (whole[0], tuple(item for item in whole[1] if item[0] in inner or _is_free(item[0])))
                turned = combined([(-1, e)])
                where = (1, home[slot]) if slot in home else (0, slot)
                places[min(e, turned)][(f.head, conj, where), e > turned] += 1
                depths[min(e, turned)] = len(inner)
    outermost = min(depths.values(), default=0)
    classes: dict[tuple[int, Signature], list[Expression]] = defaultdict(list)
    for e, seen in places.items():
        if depths[e] == outermost:
            sides = (sorted(seen.items()), sorted(((kind, not side), n) for (kind, side), n in seen.items()))
            classes[_divisor(e, todo, scope), tuple(min(sides))].append(e)
    return [classes[key] for key in sorted(classes, key=lambda key: (key[0], len(classes[key]), key[1]))]


def _by_sum(expressions: Sequence[Expression], todo: frozenset[int], scope: Scopes) -> list[_Rows]:
    groups: dict[frozenset[int], list[Expression]] = defaultdict(list)
    for e in expressions:
        groups[max((scope[s] for s, _ in e[1] if s in todo), key=len)].append(e)
    return [
        _Rows(tuple(group), tuple(sorted({s for e in group for s, _ in e[1] if s in todo and scope[s] == inner})))
        for inner, group in groups.items()
    ]


def _divisor(e: Expression, todo: frozenset[int], scope: Scopes) -> int:
    found = basis(_by_sum([e], todo, scope)[0].matrix())
    assert found is not None, "an expression of a movable index"
    return found.sizes[0]


def _changes(choice: list[_Rows]) -> Iterator[tuple[frozenset[int], dict[int, Expression]]]:
    """The indices that become bare, and the values of all in terms of the new ones.

    Where half of a coefficient is left over, either sign of it is as good, and both are tried.
    """
    for ways in product(*(_change(rows) for rows in choice)):
        yield (
            frozenset(s for pivots, _ in ways for s in pivots),
            {s: e for _, values in ways for s, e in values.items()},
        )


def _change(rows: _Rows) -> Iterator[tuple[list[int], dict[int, Expression]]]:
    found = basis(rows.matrix())
    assert found is not None, "a choice of independent rows"
    pivots = [rows.names[p] for p in found.pivots]
    rests = [_quotients(rest, size) for rest, size in zip(rows.rests(), found.sizes, strict=True)]
    for shifts in product(*rests):
        values: dict[int, Expression] = {}
        for s, change in zip(rows.names, found.change, strict=True):
            new: Expression = (0, tuple(zip(rows.names, change, strict=True)))
            moved = [(-change[p], shift) for p, shift in zip(found.pivots, shifts, strict=True)]
            values[s] = combined([(1, new), *moved])
        yield pivots, values


def _quotients(rest: Expression, size: int) -> list[Expression]:
    """What of `rest` is a multiple of `size`, divided by it; the residues are the least."""
    if size == 1:
        return [rest]
    ways = [[(k - r) // size for r in _residues(k, size)] for k in (rest[0], *(k for _, k in rest[1]))]
    names = [s for s, _ in rest[1]]
    return [
        (first, tuple((s, k) for s, k in zip(names, others, strict=True) if k)) for first, *others in product(*ways)
    ]


def _residues(k: int, size: int) -> list[int]:
    """The least numbers that differ from k by multiples of `size`: −1 and 1 of 3 by 2, as e and −e are one choice."""
    residue = (k + (size - 1) // 2) % size - (size - 1) // 2
    return [-residue, residue] if 2 * residue == size else [residue]


def _is_free(symbol: int) -> bool:
    return -LAMBDA < symbol < 0


def _shifted(tree: Node, values: Mapping[int, Expression]) -> Node:
    """`tree` with the indices replaced by their values."""

    def moved(e: Expression) -> Expression:
        if not any(s in values for s, _ in e[1]):
            return e
        return combined([(1, (e[0], ())), *((k, values.get(s) or (0, ((s, 1),))) for s, k in e[1])])

    def change(f: Factor) -> Factor:
        variants: tuple[Variant, ...] = tuple((c, tuple(map(moved, es)), s) for c, es, s in f.variants)
        return f if variants == f.variants else replace(f, variants=variants)

    return mapped(tree, change)
