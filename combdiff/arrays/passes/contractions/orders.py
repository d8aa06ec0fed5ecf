"""The order of a contraction: Σ over a product of many arrays as products of two, cheapest for these sizes.

Sets of factors are the bits of an integer. The cheapest way to make a set is found from those of its parts; outer
products are not looked at, so that T x x is (T x) x and not T (x x). What is known already costs nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from combdiff.arrays.layouts import MOVED, TRAILING, best_placement
from combdiff.arrays.lower.arrays import Value, base, domain_of
from combdiff.arrays.passes.contractions.large_networks import path_of_large
from combdiff.arrays.passes.convolutions import LARGE, circulant
from combdiff.arrays.passes.fourier import is_matrix_of_transform
from combdiff.arrays.plan import Step
from combdiff.canon.moves import MoveGroup
from combdiff.terms.terms import Var
from combdiff.terms.types import Domain

_EXACT = 10  # of more factors the order is opt_einsum's guess
_BUTTERFLY = 8  # multiplications in the time of a part of a fast Fourier transform, for each of its entries
_COPIED = 32  # multiplications in the time of copying an entry into another order
_ABOVE = 1 << 12  # times all entries: more than products of ten factors and their copies cost


@dataclass(frozen=True, slots=True, order=True)
class Cost:
    """Multiplications, and copies as so many of them; entries that are written; how badly arrays lie (see `placement`).

    A product of complex numbers is four of real ones.
    """

    products: int = 0
    entries: int = 0
    placement: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.products + other.products, self.entries + other.entries, self.placement + other.placement)


@dataclass(frozen=True, slots=True)
class Pairing:
    """How a set of factors is made: from two parts, or not at all (a factor, or something known)."""

    cost: Cost = Cost()
    left: int = 0
    right: int = 0


Pairings = Mapping[int, Pairing]


@dataclass(eq=False)
class Factors:
    """The factors of Σ over all indices but `kept`, with what a product over some of them costs."""

    values: Sequence[Value]
    kept: Collection[Var]
    sizes: Mapping[Domain, int]
    symmetries: Mapping[Step, MoveGroup] = field(default_factory=dict)
    _labels: dict[int, int] = field(default_factory=dict)
    _entries: dict[int, int] = field(default_factory=dict)
    _costs: dict[tuple[int, int], Cost] = field(default_factory=dict)
    _ways: dict[tuple[frozenset[int], int], Pairings] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.looked = 0  # ways to take a set apart that were looked at
        self.variables = list(dict.fromkeys(x for v in self.values for x in v.labels))
        bits = {x: 1 << n for n, x in enumerate(self.variables)}
        self._rows = [sum(bits[x] for x in v.labels) for v in self.values]
        self._kept = sum(bits[x] for x in self.kept if x in bits)
        self._extents = [max(self.sizes[domain_of(x)], 1) for x in self.variables]
        self._complex = sum(1 << n for n, v in enumerate(self.values) if v.step.complex)
        self._pairs = {1 << n: self._pairs_of(v, self._rows[n]) for n, v in enumerate(self.values)}
        self._has_transforms = any(self._pairs.values())
        self.all = (1 << len(self.values)) - 1
        if self.exact:
            self._labels.update(enumerate(self._all_labels()))

    def _all_labels(self) -> list[int]:
        """The `labels` of all sets."""
        inside = [0]
        for row in self._rows:
            inside += [row | others for others in inside]
        return [here & (there | self._kept) for here, there in zip(inside, reversed(inside), strict=True)]

    @property
    def exact(self) -> bool:
        """Whether all orders are looked at."""
        return len(self.values) <= _EXACT

    def members(self, group: int) -> list[Value]:
        """The factors of a set."""
        return [v for n, v in enumerate(self.values) if group >> n & 1]

    def labels(self, group: int) -> int:
        """The indices of the product over a set: those that are kept, or stand outside it too."""
        found = self._labels.get(group)
        if found is None:
            inside, outside = 0, self._kept
            for n, row in enumerate(self._rows):
                if group >> n & 1:
                    inside |= row
                else:
                    outside |= row
            found = self._labels[group] = inside & outside
        return found

    def free(self, group: int) -> set[Var]:
        """The indices of `labels` themselves."""
        labels = self.labels(group)
        return {x for n, x in enumerate(self.variables) if labels >> n & 1}

    def entries(self, labels: int) -> int:
        """How many values the indices take together."""
        found = self._entries.get(labels)
        if found is None:
            found = prod(size for n, size in enumerate(self._extents) if labels >> n & 1)
            self._entries[labels] = found
        return found

    def product(self, left: int, right: int) -> Cost:
        """What it costs to multiply what two sets have made."""
        if (left, right) not in self._costs:
            self._costs[left, right] = self._product(left, right)
        return self._costs[left, right]

    def _product(self, left: int, right: int) -> Cost:
        weight = (2 if left & self._complex else 1) * (2 if right & self._complex else 1)
        joint = weight * self.entries(self.labels(left) | self.labels(right))
        fast = self._transformed(left, right) or self._transformed(right, left)
        if fast and fast < joint:
            return Cost(fast, self.entries(self.labels(left | right)), 2 * TRAILING)
        places = {left: self._placement(left, right), right: self._placement(right, left)}
        moved = sum(self.entries(self.labels(group)) for group, place in places.items() if place == MOVED)
        return Cost(joint + _COPIED * moved, self.entries(self.labels(left | right)), sum(places.values()))

    def _transformed(self, matrix: int, other: int) -> int:
        """The multiplications of a fast transform, where one set is its matrix and meets the other as it should.

        So a table of a convolution is, for which there are transforms of both factors, and one back.
        """
        pairs = self._pairs.get(matrix)
        here, there = self.labels(matrix), self.labels(other)
        over = here & there & ~self.labels(matrix | other)
        if not pairs or over != here & there or over.bit_count() != len(pairs):
            return 0
        if not all((over & pair).bit_count() == 1 for pair in pairs):
            return 0
        return _BUTTERFLY * self.entries(there) * self.entries(over).bit_length()

    def _pairs_of(self, v: Value, row: int) -> list[int]:
        """The pairs of indices of the matrix of a transform, or of a table that is large enough for transforms."""
        if is_matrix_of_transform(v.step):
            return [row]
        table = circulant(v.step) if self.entries(row) >= LARGE else None
        bits = {x: 1 << n for n, x in enumerate(self.variables)}
        return [] if table is None else [bits[v.labels[a]] | bits[v.labels[b]] for a, b in table.axes]

    def _placement(self, group: int, partner: int) -> int:
        """How a factor of three axes or more lies for a matrix product with what another set has made."""
        if group & (group - 1):
            return TRAILING
        here, there = self.labels(group), self.labels(partner)
        over = here & there & ~self.labels(group | partner)
        if not over or over != here & there or here.bit_count() < 3:
            return TRAILING
        v = self.values[group.bit_length() - 1]
        summed = {x for n, x in enumerate(self.variables) if over >> n & 1}
        return best_placement(v.labels, self.symmetries.get(base(v.step)), summed, there == over)

    def cheapest(self, known: Collection[int] = (), whole: int = 0) -> Pairings:
        """The cheapest way to make each set that hangs together, and the `whole`; sets in `known` are there.

        The whole is the product of all factors, or the set that is given, whose parts need not share an index.
        """
        there, whole = frozenset(known), whole or self.all
        if (there, whole) not in self._ways:
            if (there, 0) not in self._ways:
                self._ways[there, 0] = self._cheapest(there)
            ways = self._ways[there, 0]
            self._ways[there, whole] = ways if whole in ways else self._joined(ways, whole)
        return self._ways[there, whole]

    def _cheapest(self, known: frozenset[int]) -> Pairings:
        """The ways of the sets that hang together."""
        ways: dict[int, Pairing] = {}
        # of a set that is not made, more than any way costs
        products = [_ABOVE * prod(self._extents)] * (self.all + 1)
        for group in range(1, self.all + 1):
            alone = group in known or not group & (group - 1)
            way = Pairing() if alone else self._way(group, ways, products, known)
            if way is not None:
                ways[group] = way
                products[group] = way.cost.products
        return ways

    def _way(self, group: int, ways: Pairings, products: Sequence[int], known: Collection[int]) -> Pairing | None:
        """The cheapest pair of parts that share an index, of sets with `ways`; `products` are those of the ways."""
        plain = self._entry_by_entry(group) if not any(k & group == k for k in known) else None
        self.looked += 1 if plain else 1 << group.bit_count() - 1
        best, most = None, products[group] - 1
        for left, right in [plain] if plain else _halves(group):
            parts = products[left] + products[right]
            if parts > most or not self._labels[left] & self._labels[right]:
                continue
            if parts + self._least(left, right) <= most:
                cost = ways[left].cost + ways[right].cost + self.product(left, right)
                if best is None or cost < best.cost:
                    best, most = Pairing(cost, left, right), cost.products
        return best

    def _least(self, left: int, right: int) -> int:
        """What the product of two sets takes at least: what is quickly told of most that are not the cheapest."""
        return 0 if self._has_transforms else self.entries(self._labels[left] | self._labels[right])

    def _entry_by_entry(self, group: int) -> tuple[int, int] | None:
        """Two parts of factors with the same indices, none of which is summed: no others cost less."""
        members = [n for n in range(len(self.values)) if group >> n & 1]
        row = self._rows[members[0]]
        if any(self._rows[n] != row for n in members) or self.labels(group) != row:
            return None
        real = group & ~self._complex
        # real numbers are multiplied first, which takes half of what a real and a complex one take
        first = real if real & group & -group and real != group else group & -group
        return first, group ^ first

    def _joined(self, found: Pairings, whole: int) -> Pairings:
        """The ways found, and one to make `whole`: parts that share no index are multiplied last, small ones first."""
        ways = dict(found)
        parts: list[int] = []
        left = whole
        for group in sorted(ways, key=int.bit_count, reverse=True):
            if group & left == group:
                parts.append(group)
                left ^= group
        while len(parts) > 1:
            one, other, *parts = sorted(parts, key=lambda g: self.entries(self.labels(g)))
            one, other = sorted((one, other), key=lambda g: g & -g)
            ways[one | other] = Pairing(ways[one].cost + ways[other].cost + self.product(one, other), one, other)
            parts.append(one | other)
        return ways


def _halves(group: int) -> Iterator[tuple[int, int]]:
    """The ways to take a set apart in two; the first part has the first factor."""
    first = group & -group
    rest = group ^ first
    part = 0
    while True:
        if part != rest:
            yield first | part, rest ^ part
        if part == rest:
            return
        part = (part - rest) & rest


def in_order(ways: Pairings, group: int) -> Iterator[tuple[int, int]]:
    """The pairs of sets to multiply until `group` is made, parts before wholes."""
    way = ways[group]
    if way.left:
        yield from in_order(ways, way.left)
        yield from in_order(ways, way.right)
        yield way.left, way.right


def leaves(ways: Pairings, group: int) -> Iterator[int]:
    """The sets that `group` is made of: factors, and what is known."""
    way = ways[group]
    if not way.left:
        yield group
        return
    yield from leaves(ways, way.left)
    yield from leaves(ways, way.right)


def guessed(factors: Factors) -> Pairings:
    """An order for many factors, by the heuristics of opt_einsum, or of cotengra where it is installed."""
    # opt_einsum breaks ties by the labels, so they are numbered as they come and not by identity
    names = {x: chr(0x100 + n) for n, x in enumerate(factors.variables)}
    inputs = [frozenset(names[x] for x in v.labels) for v in factors.values]
    output = frozenset(names[x] for x in factors.kept if x in names)
    extents = {names[x]: max(factors.sizes[domain_of(x)], 1) for x in factors.variables}
    todo = [1 << n for n in range(len(inputs))]
    ways = {group: Pairing() for group in todo}
    for positions in path_of_large(inputs, output, extents):
        groups = [todo[n] for n in sorted(positions)]
        todo = [group for n, group in enumerate(todo) if n not in positions]
        made = groups[0]
        for group in groups[1:]:
            ways[made | group] = Pairing(left=made, right=group)
            made |= group
        todo.append(made)
    return ways
