"""The types of programs: ranges of indices, numbers, tensors with their spaces, functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, eq=False)
class Range:
    """How far an index goes. `sort` is plain, ring, symmetric, bounded or list; `sizes` has an entry a direction.

    A list holds its `offsets`, one row a value. `named` ranges of the sort plain show their size, as in `N{n}`. A range
    that has so many values more than its `base`, or less, is made by `longer`.
    """

    name: str
    sort: str
    sizes: tuple[int, ...]
    lower: int = 0
    offsets: tuple[tuple[int, ...], ...] = ()
    reflected: bool = False
    contractable: bool = True
    named: bool = False
    base: Range | None = None

    @property
    def more(self) -> int:
        """How many values it has more than its base."""
        return 0 if self.base is None else self.count - self.base.count

    @property
    def directions(self) -> int:
        return len(self.offsets[0]) if self.sort == "list" else len(self.sizes)

    @property
    def count(self) -> int:
        result = 1
        for size in self.sizes:
            result *= size
        return result

    @property
    def declared(self) -> bool:
        return self.sort != "plain"

    @property
    def signed(self) -> bool:
        """Whether −b is a value with b."""
        return self.sort in ("ring", "symmetric") or self.reflected


def longer(r: Range, by: int) -> Range:
    """The range of so many values more, or less if `by` is below 0; the same object each time.

    >>> r = Range("n", "plain", (3,))
    >>> longer(longer(r, 2), -2) is r, longer(r, 1).count
    (True, 4)
    """
    base, more = r.base or r, r.more + by
    return _longer(base, more) if more else base


@cache
def _longer(base: Range, by: int) -> Range:
    return Range(f"{base.name}{by:+}", "plain", (base.count + by,), base=base)


@dataclass(frozen=True)
class Number:
    """The type of a real or complex number."""

    complex: bool = False


@dataclass(frozen=True)
class Index:
    """The type of an index."""

    range: Range


@dataclass(frozen=True)
class Law:
    """T(a₁ … aₙ) = ± T(rows(a)) or its conjugate; a row is the slots that stand in a slot, with their coefficients."""

    rows: tuple[tuple[tuple[int, int], ...], ...]
    sign: int = 1
    conj: bool = False
    as_map: bool = False


@dataclass(frozen=True, eq=False)
class Space:
    """A declared type: Sym, Her, or one that the program declares."""

    name: str
    laws: tuple[Law, ...] = ()
    builtin: bool = False
    positive: bool = False


@dataclass(frozen=True)
class Tensor:
    """The type of a map of indices to numbers."""

    slots: tuple[Range, ...]
    complex: bool = False
    space: Space | None = None

    @property
    def count(self) -> int:
        """How many entries there are."""
        result = 1
        for r in self.slots:
            result *= r.count
        return result


@dataclass(frozen=True)
class Function:
    """The type of a map of numbers or tensors; a linear one is declared so."""

    params: tuple[Type, ...]
    result: Type
    linear: bool = False
    space: Space | None = None


@dataclass(frozen=True)
class Items:
    """The type of a tuple."""

    of: tuple[Type, ...]


@dataclass(frozen=True)
class Integers:
    """The type of an array of integers, whose entries are indices."""

    slots: tuple[Range, ...]
    entry: Range

    @property
    def count(self) -> int:
        """How many entries there are."""
        result = 1
        for r in self.slots:
            result *= r.count
        return result


@dataclass(frozen=True)
class Count:
    """The type of a size that is given at the call, `T::Int`, which is how many values the range has."""

    range: Range


@dataclass(frozen=True)
class Truth:
    """The type of a condition."""


Type = Number | Index | Tensor | Function | Items | Integers | Count | Truth
REAL, COMPLEX = Number(), Number(True)


def over_complex(kind: Type) -> bool:
    return isinstance(kind, Number | Tensor) and kind.complex


def ranges_of(kind: Type) -> Iterator[Range]:
    """The ranges that stand in a type."""
    match kind:
        case Index(r) | Count(r):
            yield r
        case Tensor(slots):
            yield from slots
        case Integers(slots, entry):
            yield from (*slots, entry)
        case Function(params, result):
            for p in (*params, result):
                yield from ranges_of(p)
        case Items(of):
            for p in of:
                yield from ranges_of(p)
