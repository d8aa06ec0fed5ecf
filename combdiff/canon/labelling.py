"""Searches canonical names of bound indices: colour refinement, then individualisation.

Only indices are labelled. An index that may be reversed (k → −k) is a pair of literals, so that signs are ordinary
branches. Under a colouring each factor takes its least image, a tree's key is made from the leaves up, and contexts
from the root down give every occurrence of an index its colour. At a leaf of the search all names are fixed; the least
key wins, and two leaves of one key and opposite signs say that the term is zero.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from combdiff.budget import Budget
from combdiff.canon.moves import orbit
from combdiff.canon.refinement import Sweep
from combdiff.canon.skeleton import (
    Combination,
    Either,
    Expression,
    Factor,
    Node,
    Operation,
    Product,
    Total,
    totals,
)
from combdiff.canon.slotgroup import parity

# keys are nested tuples of numbers and strings that compare with one another
Key = Any
Renaming = list[tuple[int, int]]

_NODE_LIMIT = 3000


class Vanishes(Exception):
    """The term equals its own negative."""


class Labelling:
    """One tree whose shifts are settled. `kinds[n]` ranks the domain of index n, `reversible[n]` allows n → −n.

    The indices in `slots` are slots of a tensor: they are named too, and renaming them may change the sign of the term
    without making it zero. Their renamings that leave the term alone are gathered in `moves`, all of them. `masks` says
    which indices stand in a node; `order` spells the domains that `kinds` ranks.
    """

    def __init__(
        self,
        root: Node,
        kinds: Sequence[int],
        reversible: Sequence[bool],
        masks: Mapping[int, int],
        slots: Sequence[int],
        order: Key,
        budget: Budget,
    ) -> None:
        self.root = root
        self.slots = slots
        self.order = order
        self.moves: list[tuple[dict[int, int], int]] = []
        self.firsts: list[Key] = []
        self.budget = budget
        self.kinds = kinds
        self.reversible = reversible
        self.masks = masks
        used = masks[id(root)]
        self.indices = [n for n in range(len(kinds)) if used >> n & 1]
        self.literals = [lit for n in self.indices for lit in ((2 * n, 2 * n + 1) if reversible[n] else (2 * n,))]
        self.binders = sum(1 for _ in totals(root)) > 1
        self.identity: Renaming = [(n, 1) for n in range(len(kinds))]
        self.own: dict[int, tuple[Key, int]] = {}
        self.automorphisms: list[dict[int, int]] = []
        self.best: tuple[Key, int, Renaming] | None = None
        self.first: tuple[Key, int, Renaming] | None = None
        self.traces: list[Key] = []
        self.visited = 0

    def run(self) -> tuple[Key, int, Renaming]:
        """The least key, its sign, and the names that give it.

        Raises:
            Vanishes: if the term is its own negative.
            OutOfTime: if the budget ends first.
        """
        self._search(self._start(), [])
        assert self.best is not None, "a search has a first leaf"
        return self.best

    def trace(self) -> Key:
        """What colours alone tell of the tree: equal for trees that differ by names."""
        return self._refine(self._start())[1] if self.literals else ()

    def _start(self) -> list[int]:
        colours = [-1] * (2 * len(self.kinds))
        for lit in self.literals:
            colours[lit] = self.kinds[lit >> 1]
        return colours

    # --- refinement ---

    def _refine(self, colours: list[int]) -> tuple[list[int], Key]:
        cells = len({colours[lit] for lit in self.literals})
        while True:
            self.budget.check()
            sweep = Sweep(self, colours)
            seen = sweep.signatures()
            new = {
                lit: (colours[lit], tuple(sorted(seen[lit])), colours[lit ^ 1] if self.reversible[lit >> 1] else -1)
                for lit in self.literals
            }
            ranks = {k: r for r, k in enumerate(sorted(set(new.values())))}
            colours = colours.copy()
            for lit in self.literals:
                colours[lit] = ranks[new[lit]]
            if len(ranks) == cells or len(ranks) == len(self.literals):
                return colours, (len(ranks), sweep.keys[id(self.root)][0])
            cells = len(ranks)

    # --- search ---

    def _search(self, colours: list[int], path: list[int], ahead: bool = True, alike: bool = True) -> None:
        """`ahead`: no path seen so far has lesser traces; `alike`: the first path has the same."""
        self.visited += 1
        depth = len(path)
        if self.literals:
            colours, trace = self._refine(colours)
            alike = alike and bool(self.slots) and self._like_first(trace, depth)
            ahead = ahead and self._worthwhile(trace, depth)
            if not ahead and not alike:
                return
        cell = self._cell(colours)
        if cell is None:
            self._leaf(colours, ahead)
            return
        tried: list[int] = []
        for lit in cell:
            if tried and (self.visited > _NODE_LIMIT or self._covered(lit, tried, path) or self._twin(lit, tried)):
                continue
            tried.append(lit)
            inner = [2 * c for c in colours]
            inner[lit] -= 1
            self._search(inner, [*path, lit], ahead, alike)

    def _like_first(self, trace: Key, depth: int) -> bool:
        """Whether the first path has this trace: all renamings that leave the term alone are found beside it."""
        if self.first is None:
            self.firsts.append(trace)
        return depth < len(self.firsts) and trace == self.firsts[depth]

    def _worthwhile(self, trace: Key, depth: int) -> bool:
        if self.best is not None and depth < len(self.traces):
            if trace > self.traces[depth]:
                return False
            if trace < self.traces[depth]:
                self.best = None
        if self.best is None:
            self.traces[depth:] = [trace]
        elif depth >= len(self.traces):
            self.traces.append(trace)
        return True

    def _cell(self, colours: list[int]) -> list[int] | None:
        """The first of the smallest sets of literals that the colours do not tell apart."""
        cells: dict[int, list[int]] = defaultdict(list)
        for lit in self.literals:
            cells[colours[lit]].append(lit)
        several = [c for c in cells if len(cells[c]) > 1]
        return cells[min(several, key=lambda c: (len(cells[c]), c))] if several else None

    def _leaf(self, colours: list[int], ahead: bool) -> None:
        order = sorted(self.indices, key=lambda n: min(colours[2 * n : 2 * n + 1 + self.reversible[n]]))
        names = self.identity.copy()
        for label, n in enumerate(order):
            forward = not self.reversible[n] or colours[2 * n] < colours[2 * n + 1]
            names[n] = (label, 1 if forward else -1)
        key, sign = self.image(self.root, names)
        if not sign:
            raise Vanishes
        key = (tuple(self.kinds[n] for n in order), key)
        for known in (self.first, self.best):
            if known is not None and key == known[0] and names != known[2]:
                self._automorphism(names, known[2], sign * known[1])
        if self.first is None:
            self.first = (key, sign, names)
        if ahead and (self.best is None or key < self.best[0]):
            self.best = (key, sign, names)

    def _automorphism(self, one: Renaming, other: Renaming, sign: int) -> None:
        back = {label: (n, s) for n, (label, s) in ((n, other[n]) for n in self.indices)}
        found: dict[int, int] = {}
        for n in self.indices:
            label, s = one[n]
            m, t = back[label]
            flip = s != t
            found[2 * n] = 2 * m + flip
            found[2 * n + 1] = 2 * m + (not flip)
        self._moved(found, sign)
        self.automorphisms.append(found)

    def _moved(self, found: dict[int, int], sign: int) -> None:
        """A renaming that leaves the term alone up to its sign.

        Raises:
            Vanishes: if the sign changes though all slots stay where they are.
        """
        if any(found[2 * n] != 2 * n for n in self.slots):
            self.moves.append((found, sign))
        elif sign < 0:
            raise Vanishes

    def _covered(self, lit: int, tried: list[int], path: list[int]) -> bool:
        """Whether an automorphism that fixes the path carries `lit` to a literal already tried."""
        fixing = [a for a in self.automorphisms if all(a[p] == p for p in path)]
        return any(y in tried for y in orbit(lit, fixing, lambda x, a: a[x]))

    def _twin(self, lit: int, tried: list[int]) -> bool:
        """Whether exchanging `lit` with a literal already tried leaves the term as it is."""
        n, s = lit >> 1, lit & 1
        for other in tried:
            m, t = other >> 1, other & 1
            names = self.identity.copy()
            turn = -1 if s != t else 1
            if n == m:
                names[n] = (n, -1)
            else:
                names[n], names[m] = (m, turn), (n, turn)
            key, sign = self.image(self.root, names, 1 << n | 1 << m)
            mine, own = self.image(self.root, self.identity, 0)
            if key == mine:
                if not sign or not own:
                    raise Vanishes
                self._moved(self._exchanged(n, m, s != t), sign * own)
                return True
        return False

    def _exchanged(self, n: int, m: int, turned: bool) -> dict[int, int]:
        found = {2 * i + s: 2 * i + s for i in self.slots for s in (0, 1)}
        for s in (0, 1):
            found[2 * n + s], found[2 * m + s] = 2 * m + (s ^ turned), 2 * n + (s ^ turned)
        return found

    # --- the key of a tree whose indices have names ---

    def image(self, node: Node, names: Renaming, touched: int = -1) -> tuple[Key, int]:
        """Key and sign; with `touched`, `names` moves only those indices, and the rest is remembered."""
        self.budget.check()
        if touched >= 0 and not self.masks[id(node)] & touched:
            known = self.own.get(id(node))
            if known is None:
                known = self.own[id(node)] = self._image(node, self.identity, touched)
            return known
        return self._image(node, names, touched)

    def _image(self, node: Node, names: Renaming, touched: int) -> tuple[Key, int]:
        match node:
            case Factor():
                return least_entry(node, names)
            case Product(parts):
                sign = 1
                keys = []
                for part in parts:
                    k, s = self.image(part, names, touched)
                    keys.append(k)
                    sign *= s
                return (2, tuple(sorted(keys))), sign
            case Total(indices, body):
                k, sign = self.image(body, names, touched)
                used = self.masks[id(node)]
                labels = tuple(sorted(names[n][0] for n in indices if used >> n & 1))
                idle = tuple(sorted(self.kinds[n] for n in indices if not used >> n & 1))
                return (4, labels, idle, k), sign
            case Combination(entries):
                images = [(c, *self.image(part, names, touched)) for c, part in entries]
                positive = sorted(((a * s, b * s), k) for (a, b), k, s in images if s)
                negative = sorted(((-a, -b), k) for (a, b), k in positive)
                if positive == negative:
                    return (3, ()), 0
                return ((3, tuple(positive)), 1) if positive < negative else ((3, tuple(negative)), -1)
            case Either(ways):
                found = [(k, s * sign) for s, part in ways for k, sign in (self.image(part, names, touched),)]
                least = min(k for k, _ in found)
                signs = {s for k, s in found if k == least}
                return least, signs.pop() if len(signs) == 1 else 0
            case Operation(name, parts, parity_):
                inner = [self.image(part, names, touched) for part in parts]
                if parity_:
                    k, s = inner[0]
                    outside = (0 if node.keeps_zero else 1) if not s else s if parity_ < 0 else 1
                    return (5, name, ((abs(s), k),)), outside
                return (5, name, tuple((s, k) for k, s in inner)), 1


def least_entry(f: Factor, names: Renaming) -> tuple[Key, int]:
    best: Key = None
    result = 0
    for conj, expressions, sign in f.variants:
        keys = [_renamed(e, names) for e in expressions]
        for block, flip in zip(f.blocks, f.signs, strict=True):
            order = sorted(range(len(block)), key=lambda n, keys=keys, block=block: keys[block[n]])  # type: ignore[misc]
            chosen = [keys[block[n]] for n in order]
            if flip < 0:
                repeated = any(a == b for a, b in pairwise(chosen))
                sign = 0 if repeated else sign * parity(order)
            for slot, k in zip(block, chosen, strict=True):
                keys[slot] = k
        key = (conj, keys)
        if best is None or key < best:
            best, result = key, sign
        elif key == best and sign != result:
            result = 0
    return (1, f.head, best[0], tuple(best[1])), result


def _renamed(e: Expression, names: Renaming) -> Key:
    constant, symbols = e
    if len(symbols) == 1:
        s, k = symbols[0]
        if s < 0:
            return e
        label, sign = names[s]
        return constant, ((label, k * sign),)
    renamed = []
    for s, k in symbols:
        if s >= 0:
            s, sign = names[s]
            k *= sign
        renamed.append((s, k))
    return constant, tuple(sorted(renamed))
