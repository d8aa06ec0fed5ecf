"""The least key of a tree over all shifts of periodic indices and all names.

A product falls into pieces that share no index to be named; each is named by itself, and so is what stands in a
function or a sum without an index from outside. `shifts` lists the trees that differ by shifts, `labelling` searches
each for names; one of them is chosen.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any

from combdiff.budget import Budget
from combdiff.canon.labelling import Labelling, Vanishes, least_entry
from combdiff.canon.shifts import rigid, settled
from combdiff.canon.skeleton import (
    MINUS,
    NOTHING,
    UNIT,
    Coefficient,
    Combination,
    Either,
    Factor,
    Node,
    Operation,
    Product,
    Total,
    content,
    mask_of,
    opposite,
    plus,
    times,
    totals,
)
from combdiff.records import dataclass
from combdiff.terms.types import Domain, Index, Type

# keys are nested tuples that begin with a number for their shape, and compare with one another
Key = Any
Spelling = tuple[str, bool, bool, bool, bool]
# slot → (slot, ±1) for the slots that move
Move = tuple[dict[int, tuple[int, int]], int]


@dataclass(frozen=True, slots=True)
class Piece:
    """scale · what the key stands for, at the slots in their order, reversed where the turn is −1.

    `moves` are the renamings of slots that leave it as it is up to a sign, the identity left out.
    """

    scale: Coefficient
    key: Key
    slots: tuple[tuple[int, int], ...] = ()
    moves: tuple[Move, ...] = ()


def least_form(root: Node, bound: list[Type], budget: Budget) -> tuple[Hashable, Coefficient]:
    """The least key over all shifts and names, and the number in front of it.

    Raises:
        Vanishes: if the term is its own negative.
        OutOfTime: if the budget ends first.
    """
    scale, key = Naming.of(root, bound, budget).value(root)
    if scale == NOTHING:
        raise Vanishes
    return key, scale


@dataclass(slots=True)
class Naming:
    """One tree to be named: the domains of its indices, which of them may be shifted and reversed.

    The first `rank` indices are slots of a tensor, which may be renamed and reversed, but not shifted.
    """

    spelled: list[Spelling]
    movable: frozenset[int]
    reversible: list[bool]
    budget: Budget
    rank: int = 0
    masks: dict[int, int] = field(default_factory=dict)
    # masks are kept by identity, so that what they belong to has to live as long
    kept: list[Node] = field(default_factory=list)

    @classmethod
    def of(cls, root: Node, bound: list[Type], budget: Budget, rank: int = 0) -> Naming:
        domains = [kind.domain if isinstance(kind, Index) else None for kind in bound]
        periodic = frozenset(n for n, d in enumerate(domains) if d is not None and d.periodic)
        turning = periodic - rigid(root, domains) if periodic else periodic
        reversible = [n in turning or (d is not None and d.symmetric) for n, d in enumerate(domains)]
        spelled = [_spelled(kind, d) for kind, d in zip(bound, domains, strict=True)]
        return cls(spelled, turning - frozenset(range(rank)), reversible, budget, rank)

    # --- what stands alone ---

    def value(self, node: Node) -> tuple[Coefficient, Key]:
        """The number in front and the key of a node in which no index from outside of it stands."""
        scale, key = self._value(node)
        return (scale, key) if scale != NOTHING else _ZERO

    def _value(self, node: Node) -> tuple[Coefficient, Key]:
        self.budget.check()
        match node:
            case Factor():
                key, sign = least_entry(node, [])
                return _signed(sign), key
            case Product() | Total():
                return self._joined(node)
            case Combination(entries):
                return self._sum(entries)
            case Operation():
                return self._operation(node)
            case Either(ways):
                found = [(times(_signed(s), c), k) for s, part in ways for c, k in (self.value(part),)]
                least = min(k for _, k in found)
                scales = {c for c, k in found if k == least}
                return (scales.pop() if len(scales) == 1 else NOTHING), least

    def _joined(self, node: Node) -> tuple[Coefficient, Key]:
        try:
            pieces, idle = self.pieces(node)
        except Vanishes:
            return _ZERO
        scale = UNIT
        for piece in pieces:
            scale = times(scale, piece.scale)
        if len(pieces) == 1 and not idle:
            return scale, pieces[0].key
        return scale, (6, idle, tuple(sorted(piece.key for piece in pieces)))

    def _sum(self, entries: Sequence[tuple[Coefficient, Node]]) -> tuple[Coefficient, Key]:
        total: dict[Key, Coefficient] = {}
        for c, part in entries:
            scale, key = self.value(part)
            total[key] = plus(total.get(key, NOTHING), times(c, scale))
        left = [(c, k) for k, c in total.items() if c != NOTHING]
        if len(left) < 2:
            return left[0] if left else _ZERO
        whole = content([c for c, _ in left])
        positive = sorted(((a / whole, b / whole), k) for (a, b), k in left)
        negative = sorted(((-a, -b), k) for (a, b), k in positive)
        if positive < negative:
            return (whole, Fraction(0)), (3, tuple(positive))
        return (-whole, Fraction(0)), (3, tuple(negative))

    def _operation(self, node: Operation) -> tuple[Coefficient, Key]:
        inner = [self.value(part) for part in node.parts]
        sign = 1
        if node.parity:
            scale, key = inner[0]
            if scale == NOTHING and node.keeps_zero:
                return _ZERO
            turned = opposite(scale)
            if scale < turned:
                inner, sign = [(turned, key)], node.parity
        return _signed(sign), (5, node.name, tuple(inner))

    # --- pieces of a product ---

    def pieces(self, node: Node) -> tuple[list[Piece], tuple[Spelling, ...]]:
        """The pieces of a product, and the domains of its indices that stand nowhere.

        Raises:
            Vanishes: if one of them is its own negative.
            OutOfTime: if the budget ends first.
        """
        indices, body = (node.indices, node.body) if isinstance(node, Total) else ((), node)
        parts = body.parts if isinstance(body, Product) else (body,)
        own = sum(1 << n for n in indices)
        masks = [self._mask(part) & own for part in parts]
        used = 0
        for mask in masks:
            used |= mask
        idle = sorted(self.spelled[n] for n in indices if not used >> n & 1 and n >= self.rank)
        found: list[Piece] = []
        for mask, group in _grouped(masks, parts):
            if not mask:
                found += [Piece(*self.value(part)) for part in group]
                continue
            whole = len(group) == len(parts) and not idle and mask == own
            inner = node if whole else _total([n for n in indices if mask >> n & 1], group)
            more, unused = self._connected(inner)
            found += more
            idle += unused
        if any(piece.scale == NOTHING for piece in found):
            raise Vanishes
        return found, tuple(sorted(idle))

    def idle_slot(self, slot: int) -> Piece:
        """A factor 1, for a slot on which nothing depends."""
        _, _, periodic, symmetric, _ = self.spelled[slot]
        moves: tuple[Move, ...] = (({slot: (slot, -1)}, 1),) if periodic or symmetric else ()
        return Piece(UNIT, (9, self.spelled[slot]), ((slot, 1),), moves)

    def _connected(self, node: Node) -> tuple[list[Piece], Sequence[Spelling]]:
        """The pieces of a product whose parts share indices: one, or more if a change of indices takes them apart."""
        trees = settled(node, self.movable)
        if trees[0] is not node and self._falls_apart(trees[0]):
            return self.pieces(trees[0])
        return [self._labelled(trees)], ()

    def _falls_apart(self, node: Node) -> bool:
        assert isinstance(node, Total), "indices are bound where they are mixed"
        parts = node.body.parts if isinstance(node.body, Product) else (node.body,)
        own = sum(1 << n for n in node.indices)
        masks = [self._mask(part) & own for part in parts]
        used = 0
        for mask in masks:
            used |= mask
        groups = _grouped(masks, parts)
        return len(groups) > 1 or not groups[0][0] or used != own

    def _labelled(self, trees: list[Node]) -> Piece:
        """The piece of least key among trees that differ by shifts."""
        searches = [self._search(tree) for tree in trees]
        found = [_piece(search) for search in _foremost(searches)]
        key = min(piece.key for piece in found)
        first, *others = (piece for piece in found if piece.key == key)
        moves = list(first.moves)
        for other in others:
            sign = 1 if first.scale == other.scale else -1
            if first.slots == other.slots and sign < 0:
                raise Vanishes
            pairs = zip(first.slots, other.slots, strict=True)
            moves += [({slot: (origin, turn * t) for (slot, turn), (origin, t) in pairs}, sign), *other.moves]
        return Piece(first.scale, key, first.slots, tuple(moves))

    def _search(self, tree: Node) -> Labelling:
        mask = self._mask(tree)
        # an index of an inner sum may stand nowhere: then it counts the values of its domain
        used = sorted({n for inner in totals(tree) for n in inner.indices})
        order = sorted({(n >= self.rank, self.spelled[n]) for n in used})
        kinds = [-1] * len(self.spelled)
        for n in used:
            kinds[n] = order.index((n >= self.rank, self.spelled[n]))
        slots = [n for n in used if n < self.rank and mask >> n & 1]
        return Labelling(tree, kinds, self.reversible, self.masks, slots, tuple(order), self.budget)

    def _mask(self, node: Node) -> int:
        """The indices to be named that stand in `node`, as bits."""
        if id(node) not in self.masks:
            self.kept.append(node)
        return mask_of(node, self.masks)


_ZERO: tuple[Coefficient, Key] = (NOTHING, (3, ()))


def _piece(search: Labelling) -> Piece:
    """What a search has found, and what it says of the slots."""
    key, sign, names = search.run()
    slots = sorted((*names[slot], slot) for slot in search.slots)
    moves = []
    for found, turned in search.moves:
        images = {s: found[2 * s] for s in search.slots}
        moves.append(({s: (image >> 1, -1 if image & 1 else 1) for s, image in images.items()}, turned))
    return Piece(_signed(sign), (7, search.order, key), tuple((slot, turn) for _, turn, slot in slots), tuple(moves))


def _foremost(searches: list[Labelling]) -> list[Labelling]:
    """The searches of least trace: one of them is chosen whatever the names, and the others need not be run."""
    if len(searches) == 1:
        return searches
    traces = [(search.order, search.trace()) for search in searches]
    least = min(traces)
    return [search for search, trace in zip(searches, traces, strict=True) if trace == least]


def _grouped(masks: list[int], parts: Sequence[Node]) -> list[tuple[int, list[Node]]]:
    """The parts that share indices, with all their indices; those without any are one group."""
    groups: list[tuple[int, list[int]]] = []
    for n, mask in enumerate(masks):
        joined = [group for group in groups if group[0] & mask or group[0] == mask]
        rest = [group for group in groups if group not in joined]
        for other, _ in joined:
            mask |= other
        groups = [*rest, (mask, sorted([n, *(m for _, members in joined for m in members)]))]
    return [(mask, [parts[n] for n in members]) for mask, members in groups]


def _total(indices: Sequence[int], parts: Sequence[Node]) -> Total:
    return Total(tuple(indices), parts[0] if len(parts) == 1 else Product(tuple(parts)))


def _signed(sign: int) -> Coefficient:
    return UNIT if sign > 0 else MINUS if sign < 0 else NOTHING


def _spelled(kind: Type, d: Domain | None) -> Spelling:
    if d is None:
        return repr(kind), False, False, False, False
    return d.name, d.declared, d.periodic, d.symmetric, d.contractable
