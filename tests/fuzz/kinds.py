"""The types of programs: ranges of indices, numbers, tensors with their spaces, functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Range:
    """How far an index goes. `sort` is plain, ring, symmetric, bounded or list; `sizes` has an entry a direction.

    A list holds its `offsets`, one row a value. `named` ranges of the sort plain show their size, as in `N{n}`.
    """

    name: str
    sort: str
    sizes: tuple[int, ...]
    lower: int = 0
    offsets: tuple[tuple[int, ...], ...] = ()
    reflected: bool = False
    contractable: bool = True
    named: bool = False

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
class Truth:
    """The type of a condition."""


Type = Number | Index | Tensor | Function | Items | Integers | Truth
REAL, COMPLEX = Number(), Number(True)


def over_complex(kind: Type) -> bool:
    return isinstance(kind, Number | Tensor) and kind.complex


def ranges_of(kind: Type) -> Iterator[Range]:
    """The ranges that stand in a type."""
    match kind:
        case Index(r):
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
