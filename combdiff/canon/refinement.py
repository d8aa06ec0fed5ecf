"""One round of colour refinement over a tree, for the search in `labelling.py`.

Colours of literals become keys of factors and of the tree, and these become finer colours: where a literal occurs.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from combdiff.canon.skeleton import (
    Combination,
    Either,
    Expression,
    Factor,
    Node,
    Operation,
    Product,
    Total,
    Variant,
)

if TYPE_CHECKING:
    from combdiff.canon.labelling import Labelling

Key = Any


class Sweep:
    """One round of refinement: keys from the leaves up, contexts from the root down."""

    def __init__(self, labelling: Labelling, colours: list[int]) -> None:
        self.labelling = labelling
        self.colours = colours
        self.coloured: dict[Expression, Key] = {}
        self.keys: dict[int, tuple[Key, list[tuple[Variant, list[Key]]]]] = {}
        self._key(labelling.root)

    def _key(self, node: Node) -> Key:
        known = self.keys.get(id(node))
        if known is not None:
            return known[0]
        arguments: list[tuple[Variant, list[Key]]] = []
        match node:
            case Factor():
                key, arguments = self._entry(node)
            case Product(parts):
                key = (2, tuple(sorted(map(self._key, parts))))
            case Total(indices, body):
                used = self.labelling.masks[id(node)]
                # which literal of a pair is called positive is a matter of names
                bound = sorted(tuple(sorted(self.colours[2 * n : 2 * n + 2])) for n in indices if used >> n & 1)
                idle = sum(1 for n in indices if not used >> n & 1)
                key = (4, tuple(bound), idle, self._key(body)) if self.labelling.binders else self._key(body)
            case Combination(entries):
                key = (3, tuple(sorted((_size(c), self._key(part)) for c, part in entries)))
            case Either(ways):
                key = min(self._key(part) for _, part in ways)
            case Operation(name, parts):
                key = (5, name, tuple(map(self._key, parts)))
        self.keys[id(node)] = (key, arguments)
        return key

    def _entry(self, f: Factor) -> tuple[Key, list[tuple[Variant, list[Key]]]]:
        best: Key = None
        least: list[tuple[Variant, list[Key]]] = []
        for variant in f.variants:
            raw = [self._coloured(e) for e in variant[1]]
            keys = raw
            if f.blocks:
                keys = raw.copy()
                for block in f.blocks:
                    for slot, k in zip(block, sorted(raw[s] for s in block), strict=True):
                        keys[slot] = k
            key = (variant[0], keys)
            if best is None or key < best:
                best, least = key, [(variant, raw)]
            elif key == best:
                least.append((variant, raw))
        return (1, f.head, best[0], tuple(best[1])), least

    def _coloured(self, e: Expression) -> Key:
        """Invariant under names: constants, fixed symbols, and the colours of the others with their coefficients."""
        known = self.coloured.get(e)
        if known is None:
            constant, symbols = e
            moving = []
            for s, k in symbols:
                if s < 0:
                    continue
                if self.labelling.reversible[s]:
                    moving.append((abs(k), self.colours[2 * s + (k < 0)]))
                else:
                    moving.append((k, self.colours[2 * s]))
            known = (constant, tuple(sorted(moving)), tuple(x for x in symbols if x[0] < 0))
            self.coloured[e] = known
        return known

    def signatures(self) -> dict[int, list[Key]]:
        """For each literal, where it occurs: the factor's context, the slot, the expression, the coefficient."""
        seen: dict[int, list[Key]] = defaultdict(list)
        ranks = {k: r for r, k in enumerate(sorted(set(self.coloured.values())))}
        level: list[tuple[Key, Node]] = [((), self.labelling.root)]
        depth = 0
        while level:
            order = {c: r for r, c in enumerate(sorted({c for c, _ in level}))}
            following: list[tuple[Key, Node]] = []
            for context, node in level:
                place = (depth, order[context])
                if isinstance(node, Factor):
                    self._occurrences(node, place, ranks, seen)
                else:
                    following += self._descend(node, place, seen)
            level = following
            depth += 1
        return seen

    def _descend(self, node: Node, place: tuple[int, int], seen: dict[int, list[Key]]) -> list[tuple[Key, Node]]:
        rank = place[1]
        match node:
            case Product(parts):
                return [((rank, (), self._key(part)), part) for part in parts]
            case Combination(entries):
                return [((rank, _size(c), self._key(part)), part) for c, part in entries]
            case Operation(_, parts):
                return [((rank, (n,), self._key(part)), part) for n, part in enumerate(parts)]
            case Either(ways):
                least = self._key(node)
                return [((rank, (), least), part) for _, part in ways if self._key(part) == least]
            case Total(indices, body):
                for n in indices if self.labelling.binders else ():
                    for lit in (2 * n, 2 * n + 1):
                        seen[lit].append((*place, 2, 0, 0, 0, 0))
                return [((rank, (), self._key(body)), body)]
        raise AssertionError("factors have no parts")

    def _occurrences(
        self, f: Factor, place: tuple[int, int], ranks: dict[Key, int], seen: dict[int, list[Key]]
    ) -> None:
        home = {slot: n for n, block in enumerate(f.blocks) for slot in block}
        for variant, raw in self.keys[id(f)][1]:
            for slot, e in enumerate(variant[1]):
                where = (1, home[slot]) if slot in home else (0, slot)
                rank = ranks[raw[slot]]
                for s, k in e[1]:
                    if s < 0:
                        continue
                    if self.labelling.reversible[s]:
                        turned = int(k < 0)
                        seen[2 * s].append((*place, *where, rank, abs(k), turned))
                        seen[2 * s + 1].append((*place, *where, rank, abs(k), 1 - turned))
                    else:
                        seen[2 * s].append((*place, *where, rank, k, 0))


def _size(c: tuple[Any, Any]) -> Key:
    """A coefficient up to sign, which names of indices may change."""
    return max(c, (-c[0], -c[1]))
