"""Which entries of a symmetric tensor a contraction keeps, and how the whole result is restored from them.

R(f) = Σ_s T(f, s) x(s), with free indices f and contracted ones s. A symmetry T(f, s) = ± T(σf, τs)' that keeps
free and contracted slots apart says R(f) = ± (Σ_s T(σf, s) x(τ⁻¹s)')': one row for each orbit of f is enough, and one
product is where x is equal to its image, as the density C' Cᵀ is. Where x is unchanged by a permutation of s, T is
summed over the orbits of s beforehand, and a column is left for each: of 2V − V×, the supermatrix of Hartree–Fock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import permutations
from math import prod
from typing import Any

from combdiff.canon.moves import Move, MoveGroup
from combdiff.records import dataclass
from combdiff.terms.terms import Const, add, mul, number
from combdiff.terms.types import Domain

Order = tuple[int, ...]

_FEW_SLOTS = 4


@dataclass(frozen=True, slots=True)
class Element:
    """L(a) = sign · conj? L(b), where b has in place i what a has in place `labels[i]`."""

    labels: Order
    sign: int
    conj: bool


@dataclass(frozen=True, slots=True)
class Addend:
    """coefficient · T, with label number `places[slot]` in each slot."""

    coefficient: Const
    places: Order


@dataclass(frozen=True, slots=True)
class Layout:
    """Rows and columns of one packed copy of the tensor `name`, or of a sum of its images, the `addends`.

    Labels are the `free` indices, then the `contracted` ones. Row f is kept if f is the least of its images. These are
    transpositions of the table of all f, in `blocks`: a block holds those at which the result follows from that of the
    row in one way. Rows equal to an image in `vanishing` give zero. `columns` are the transpositions of s with their
    signs, over which columns are summed; there are none if all columns are kept.
    """

    name: str
    complex: bool
    addends: tuple[Addend, ...]
    free: tuple[Domain, ...]
    contracted: tuple[Domain, ...]
    blocks: tuple[tuple[Order, ...], ...]
    vanishing: tuple[Order, ...]
    columns: tuple[tuple[Order, int], ...]
    number: int = 1

    @property
    def images(self) -> tuple[Order, ...]:
        """All images of a row."""
        return tuple(order for block in self.blocks for order in block)

    @property
    def share(self) -> int:
        """How many entries of the tensor there are for one that is kept, about."""
        return len(self.images) * max(len(self.columns), 1)

    @property
    def selects_rows(self) -> bool:
        return len(self.images) > 1

    @property
    def row_axes(self) -> tuple[Domain, ...]:
        """The axes of a product with the rows: one of its own where not all rows are kept."""
        return (Domain(f"{self.name} rows {self.number}"),) if self.selects_rows else self.free

    @property
    def column_axes(self) -> tuple[Domain, ...]:
        return (Domain(f"{self.name} columns {self.number}"),) if self.columns else self.contracted

    def sizes(self, sizes: Mapping[Domain, int]) -> dict[Domain, int]:
        """How many rows and columns are kept."""
        known = [sizes.get(d, 1) for d in (*self.free, *self.contracted)]
        rows = orbits(self.images, known[: len(self.free)])
        columns = orbits([order for order, _ in self.columns], known[len(self.free) :])
        found = {self.row_axes[0]: rows} if self.selects_rows else {}
        return found | ({self.column_axes[0]: columns} if self.columns else {})


@dataclass(frozen=True, slots=True)
class Packing:
    """How an argument is packed: layouts of rows, and where something needs all of it a copy with its axes in order."""

    name: str
    domains: tuple[Domain, ...]
    complex: bool
    layouts: tuple[Layout, ...]
    whole: Order | None


def orbits(group: Sequence[Order], shape: Sequence[int]) -> int:
    """How many multi-indices of a shape are left of each orbit: the mean number that an element keeps (Burnside).

    >>> orbits(((0, 1), (1, 0)), (4, 4))
    10
    """
    fixed = 0
    for order in group:
        seen: set[int] = set()
        count = 1
        for start in range(len(order)):
            if start not in seen:
                count *= shape[start]
            while start not in seen:
                seen.add(start)
                start = order[start]
        fixed += count
    return fixed // len(group) if group else prod(shape)


# --- groups ---------------------------------------------------------------------------------------------------------


def signed_group(rank: int, generators: Mapping[Order, int]) -> dict[Order, int]:
    """All products of signed permutations, or none if one would have both signs.

    >>> signed_group(2, {(1, 0): -1})
    {(0, 1): 1, (1, 0): -1}
    """
    group = MoveGroup.generated(rank, [Move(tuple(n + 1 for n in order), sign) for order, sign in generators.items()])
    return {} if group.zero else {image.labels: image.sign for image in group.images(range(rank))}


def inverse(order: Order) -> Order:
    """The permutation that undoes another."""
    return tuple(order.index(n) for n in range(len(order)))


def elements(group: MoveGroup, places: Order, free: int) -> set[Element]:
    """What the group says of the labels of one addend, where free ones (the first `free`) stay free.

    >>> elements(MoveGroup.generated(2, [Move((2, 1))]), (0, 1), 1) == {Element((0, 1), 1, False)}
    True
    """
    found = set()
    for image in group.images(places):
        moved = dict(zip(places, image.labels, strict=True))
        if all((label < free) == (new < free) for label, new in moved.items()):
            found.add(Element(tuple(moved[label] for label in range(len(places))), image.sign, image.conj))
    return found


def least_image(group: MoveGroup, places: Order, key: Callable[[Order], Any]) -> tuple[int, Order]:
    """The sign and the labels of the image, without conj, whose key is the least."""
    image = min((i for i in group.images(places) if not i.conj), key=lambda i: (key(i.labels), i))
    return image.sign, image.labels


def merged(group: MoveGroup, addends: Iterable[Addend]) -> tuple[Addend, ...]:
    """Addends in the least of their images, like ones together."""
    found: dict[Order, Const] = {}
    for addend in addends:
        sign, places = least_image(group, addend.places, lambda image: image)
        scaled = mul(number(sign), addend.coefficient)
        total = add(found.get(places, number(0)), scaled)
        assert isinstance(total, Const), "a sum of numbers"
        found[places] = total
    return tuple(Addend(c, places) for places, c in sorted(found.items()) if c.real or c.imag)


def folded(group: MoveGroup, addends: Sequence[Addend], free: int, columns: Mapping[Order, int]) -> tuple[Addend, ...]:
    """The mean of the addends over the group of columns, which permutes the contracted labels."""
    found = []
    for order, sign in columns.items():
        for addend in addends:
            places = tuple(p if p < free else free + order[p - free] for p in addend.places)
            found.append(Addend(_scaled(addend.coefficient, Fraction(sign, len(columns))), places))
    return merged(group, found)


def _scaled(c: Const, factor: Fraction) -> Const:
    return Const(c.real * factor, c.imag * factor)


def candidates(domains: Sequence[Domain]) -> list[Order]:
    """Permutations of axes that may be symmetries: all of a few, exchanges of two of many; domains must agree."""
    count = len(domains)
    one = tuple(range(count))
    if count <= _FEW_SLOTS:
        orders = list(permutations(one))[1:]
    else:
        orders = [_exchanged(one, a, b) for a in one for b in one if a < b]
    return [order for order in orders if [domains[n] for n in order] == list(domains)]


def _exchanged(one: Order, a: int, b: int) -> Order:
    return tuple(b if n == a else a if n == b else n for n in one)
