"""The operations of array programs: their parameters, and which index each axis of their operands and result carries.

    W(p, i) = Σ_q A(p, q) B(q, i)      Tensordot((1,), (0,)) of A and B: rows (0, 1), (1, 2) and (0, 2)
    y(i, j) = x(j) + A(j, i)           Add((1, 1), ((1,), (1, 0))) of x and A: rows (1,), (1, 0) and (0, 1)

`rows` is the one fact from which the rest follows: along which indices an operation can be cut into parts
(`cuts.py`), whether shapes fit (`verify.py`), how a contraction is written as an einsum. An axis that is `WHOLE`
carries no index: an entry needs, or is one of, several values along it that only exist together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, ClassVar, Self, TypeAlias

from combdiff.records import dataclass
from combdiff.terms.nodes import OBLONG, SYMMETRISING
from combdiff.terms.terms import Const
from combdiff.terms.types import Domain

if TYPE_CHECKING:
    from combdiff.arrays.packing.layout import Layout

WHOLE = -1

Row: TypeAlias = tuple[int, ...]
Rows: TypeAlias = tuple[Row, ...]
"""A label for each axis: the rows of the operands, then that of the result."""

Start: TypeAlias = tuple[int, tuple[tuple[Domain, int], ...]]
"""A number, and sizes of domains with their coefficients, which are added to it."""

Starts: TypeAlias = tuple[Start, ...]


@dataclass(frozen=True, slots=True)
class Op:
    """What a step does with its operands; `name` is what its text form calls it."""

    name: ClassVar[str] = ""

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        """The labels of the axes of operands of these `ranks`, and of a result of this `rank`."""
        return (*((WHOLE,) * r for r in ranks), (WHOLE,) * rank)


# --- what a program starts from -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Number(Op):
    """A number of Python's, which is no array."""


@dataclass(frozen=True, slots=True)
class Constant(Number):
    """An exact number."""

    name: ClassVar[str] = "const"
    value: Const


@dataclass(frozen=True, slots=True)
class Named(Number):
    """A number that has a name: `pi`."""

    name: ClassVar[str] = "named"
    of: str


@dataclass(frozen=True, slots=True)
class Size(Number):
    """How many values a domain has."""

    name: ClassVar[str] = "size"
    domain: Domain


@dataclass(frozen=True, slots=True)
class Input(Op):
    """An argument."""

    name: ClassVar[str] = "input"
    argument: str


@dataclass(frozen=True, slots=True)
class Counting(Op):
    """Integers that stand for the values of an index."""

    domain: Domain


@dataclass(frozen=True, slots=True)
class Range(Counting):
    """The values of an index."""

    name: ClassVar[str] = "range"


@dataclass(frozen=True, slots=True)
class Numbers(Counting):
    """The values of an index in floating point."""

    name: ClassVar[str] = "numbers"


@dataclass(frozen=True, slots=True)
class Place(Counting):
    """Where the values of an index lie in arrays, from 0."""

    name: ClassVar[str] = "place"


@dataclass(frozen=True, slots=True)
class Opposite(Op):
    """Where the negative of each offset of a list lies."""

    name: ClassVar[str] = "opposite"


# --- views ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class View(Op):
    """Shows its operand, or a part of it, without a copy."""


@dataclass(frozen=True, slots=True)
class Permute(View):
    """Axis n is the operand's axis order[n]."""

    name: ClassVar[str] = "permute"
    order: Row

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        return tuple(self.order.index(axis) for axis in range(rank)), tuple(range(rank))


@dataclass(frozen=True, slots=True)
class Pick(View):
    """Some axes at a constant: `fixed` has the axis, the index and the domain of each.

    In a plain range an index below 0 counts from the end.
    """

    name: ClassVar[str] = "pick"
    fixed: tuple[tuple[int, int, Domain], ...]

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        gone = {axis for axis, _, _ in self.fixed}
        labels = iter(range(ranks[0]))
        return tuple(WHOLE if axis in gone else next(labels) for axis in range(ranks[0])), tuple(range(rank))


@dataclass(frozen=True, slots=True)
class Flip(View):
    """An axis read backwards."""

    name: ClassVar[str] = "flip"
    axis: int

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        return _but(self.axis, rank), _but(self.axis, rank)


@dataclass(frozen=True, slots=True)
class Diagonal(View):
    """The entries of a matrix whose two indices are equal."""

    name: ClassVar[str] = "diagonal"

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        return (0, 0), (0,)


@dataclass(frozen=True, slots=True)
class Item(View):
    """An item of what a function of the user returns, from 0."""

    name: ClassVar[str] = "item"
    number: int


@dataclass(frozen=True, slots=True)
class Lower(View):
    """The lower triangular matrix that Cholesky's factors consist of."""

    name: ClassVar[str] = "lower"


@dataclass(frozen=True, slots=True)
class Slice(View):
    """The part along an axis that a turn of the loop over `block` works on; of one value, without the axis."""

    name: ClassVar[str] = "slice"
    axis: int
    block: Domain

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        row = _but(self.axis, ranks[0])
        return row, row if rank == ranks[0] else tuple(label for label in row if label != WHOLE)


@dataclass(frozen=True, slots=True)
class Checkpoint(View):
    """The entry of an array of states that was stored at the beginning of the block of a turn."""

    name: ClassVar[str] = "checkpoint"
    block: Domain
    per: int

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        return (WHOLE, *range(rank)), tuple(range(rank))


@dataclass(frozen=True, slots=True)
class Carried(View):
    """The state of a loop at the beginning of a turn of the one around it: its operand in the first turn.

    In the others it is what the loop that takes it has made in the turn before; a `number` tells two of them apart.
    """

    name: ClassVar[str] = "carried"
    block: Domain
    number: int


@dataclass(frozen=True, slots=True)
class Window(View):
    """The entries of an axis from `start` on, as many as the index of the result has values."""

    name: ClassVar[str] = "window"
    axis: int
    start: int

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        return _but(self.axis, rank), _but(self.axis, rank)


def _but(axis: int, rank: int) -> Row:
    return tuple(WHOLE if n == axis else n for n in range(rank))


# --- copies ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Roll(Op):
    """Entry k + by is the operand's entry k along a periodic axis."""

    name: ClassVar[str] = "roll"
    axis: int
    by: int

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        return _but(self.axis, rank), _but(self.axis, rank)


@dataclass(frozen=True, slots=True)
class Broadcast(Op):
    """The operand repeated along new axes; its axes lie at `places`."""

    name: ClassVar[str] = "broadcast"
    places: Row

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        return self.places, tuple(range(rank))


@dataclass(frozen=True, slots=True)
class LaidOut(Op):
    """A copy whose axis n is the operand's axis order[n], and which lies in memory so."""

    name: ClassVar[str] = "laid"
    order: Row

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        return tuple(self.order.index(axis) for axis in range(rank)), tuple(range(rank))


@dataclass(frozen=True, slots=True)
class Stack(Op):
    """Arrays of one shape along a new first axis."""

    name: ClassVar[str] = "stack"

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        row = tuple(range(rank - 1))
        return (*(row for _ in ranks), (WHOLE, *row))


@dataclass(frozen=True, slots=True)
class Filled(Op):
    """A square matrix with a number on its diagonal."""

    name: ClassVar[str] = "filled"
    number: Const


@dataclass(frozen=True, slots=True)
class AsArray(Op):
    """A number of Python's as one of the library's."""

    name: ClassVar[str] = "array"


@dataclass(frozen=True, slots=True)
class AsFloat(Op):
    """Entries of an array of integers, given or computed, that are read as numbers."""

    name: ClassVar[str] = "float"

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        return tuple(range(rank)), tuple(range(rank))


@dataclass(frozen=True, slots=True)
class Gather(Op):
    """T(form₁, …): an index array for each slot that is not None, whose axes lie at these places of the first `rank`.

    The gathered axes stand where those slots stand if they are neighbours, and else first.
    """

    name: ClassVar[str] = "gather"
    slots: tuple[Row | None, ...]
    rank: int

    @property
    def gathered(self) -> Row:
        """The slots that index arrays stand in."""
        return tuple(axis for axis, slot in enumerate(self.slots) if slot is not None)

    @property
    def neighbours(self) -> bool:
        """Whether these slots stand side by side."""
        return self.gathered[-1] - self.gathered[0] + 1 == len(self.gathered)

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        first = self.gathered[0] if self.neighbours else 0
        rest = iter([*range(first), *range(first + self.rank, first + self.rank + len(self.slots))])
        array = tuple(next(rest) if slot is None else WHOLE for slot in self.slots)
        places = (tuple(first + axis for axis in slot) for slot in self.slots if slot is not None)
        return array, *places, tuple(range(rank))


@dataclass(frozen=True, slots=True)
class Windows(Op):
    """x(start + Σ coefficient · index, …), and zeros beyond its ends: windows of x, which overlap in memory.

    Axis n of the result counts along axis along[n] of the operand, in steps of by[n]; `starts` has a number for each
    axis of the operand, and sizes of domains with coefficients. What the axis `shared` and the next one of the result
    say is a view of a copy that has the windows along other axes; the whole is a view where there is no such axis.
    """

    name: ClassVar[str] = "windows"
    along: Row
    by: Row
    starts: Starts
    shared: int | None = None

    def is_plain(self, axis: int) -> bool:
        """Whether an axis of the operand is an axis of the result as it is."""
        steps = [by for by, along in zip(self.by, self.along, strict=True) if along == axis]
        return steps == [1] and self.starts[axis] == (0, ())

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        plain = [self.is_plain(axis) for axis in range(ranks[0])]
        own = tuple(axis if plain[axis] else WHOLE for axis in range(ranks[0]))
        return own, tuple(axis if plain[axis] else WHOLE for axis in self.along)


@dataclass(frozen=True, slots=True)
class Correlated(Op):
    """Σ_q x(start + by · p + step · q) y(q) for each p, zeros beyond the ends of x: a correlation, or a convolution."""

    name: ClassVar[str] = "correlated"
    by: int
    step: int
    start: Start


@dataclass(frozen=True, slots=True)
class Placing(Op):
    """What is made of the operand's entries at the places that index arrays say.

    The index arrays range over `rank` indices, at `places`; the operand over these and those that stay, at `at`.
    """

    at: Row
    places: Rows
    rank: int

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        rest = tuple(self.rank + n for n in range(rank - len(self.places)))
        return self.at, *self.places, (*((WHOLE,) * len(self.places)), *rest)


@dataclass(frozen=True, slots=True)
class Occurring(Op):
    """The values of an index that are among the operand's integers, and one of these in the place of each other."""

    name: ClassVar[str] = "occurring"


@dataclass(frozen=True, slots=True)
class Scatter(Placing):
    """Zeros with the entries at their places; `adds` where some may coincide."""

    name: ClassVar[str] = "scatter"
    adds: bool


@dataclass(frozen=True, slots=True)
class Counted(Op):
    """How often index arrays say each place: a scatter that adds 1. Their axes lie at `places` of `rank` indices."""

    name: ClassVar[str] = "counted"
    places: Rows
    rank: int

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        return *self.places, (WHOLE,) * rank


@dataclass(frozen=True, slots=True)
class Grouped(Placing):
    """The maximum or the minimum, as `kind` says, of the entries at each place: infinite where none is."""

    name: ClassVar[str] = "grouped"
    kind: str


@dataclass(frozen=True, slots=True)
class Sparse(Op):
    """Rows of the first operand added up at the places that the second says: a sparse matrix times the operand.

    They are its rows in order, or those at the places in a third operand if it takes them `from_places`. Each is
    multiplied by its number in the last operand if they are `weighted`. Where places have several axes, rows have all
    of these, or the first one only, and are then added at each of the places in a row of these. With several `targets`
    so many operands in the place of the second say the places, each along an axis of the result.
    """

    name: ClassVar[str] = "sparse"
    from_places: bool
    weighted: bool
    targets: int = 1

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        rest = tuple(range(rank - self.targets))
        out = (*(WHOLE,) * self.targets, *rest)
        return (*((WHOLE,) * (ranks[0] - len(rest))), *rest), *((WHOLE,) * r for r in ranks[1:]), out


@dataclass(frozen=True, slots=True)
class Put(Op):
    """Zeros, or the first operand if there is a `base`, to which each of the other operands is added in a part.

    `fixed` has the axis and the place of each constant, from the end if it is below 0, `places` where the axes of the
    operand lie in the result, `starts` the axes of the result along which the operand is shorter, each with the place
    of its first entry. What lies beyond the end of an axis is left out. Operands that are `negative` are subtracted.
    """

    name: ClassVar[str] = "put"
    fixed: tuple[tuple[tuple[int, int], ...], ...]
    places: Rows
    base: bool
    starts: tuple[tuple[tuple[int, int], ...], ...] = ()
    negative: tuple[bool, ...] = ()

    def starts_of(self, part: int) -> dict[int, int]:
        """Where an operand starts, along the axes on which it is shorter."""
        return dict(self.starts[part]) if self.starts else {}

    def is_negative(self, part: int) -> bool:
        """Whether an operand is subtracted."""
        return bool(self.negative) and self.negative[part]

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        gone = {axis for at in (*self.fixed, *self.starts) for axis, _ in at}
        own = tuple(WHOLE if axis in gone else axis for axis in range(rank))
        parts = tuple(tuple(own[place] for place in at) for at in self.places)
        return (*((own,) if self.base else ()), *parts, own)


# --- entry by entry -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Conj(Op):
    """The complex conjugate."""

    name: ClassVar[str] = "conj"

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        return tuple(range(rank)), tuple(range(rank))


@dataclass(frozen=True, slots=True, kw_only=True)
class Aligned(Op):
    """Works entry by entry; the axes of each operand lie at its `places` among those of the result."""

    places: Rows = ()

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        return *self.places, tuple(range(rank))

    def placed(self, places: Rows) -> Self:
        """The same with the operands at other places."""
        return replace(self, places=places)


@dataclass(frozen=True, slots=True)
class Add(Aligned):
    """Σ coefficient · operand."""

    name: ClassVar[str] = "add"
    coefficients: tuple[Const, ...]


@dataclass(frozen=True, slots=True)
class Mul(Aligned):
    """coefficient · Π operand."""

    name: ClassVar[str] = "mul"
    coefficient: Const


@dataclass(frozen=True, slots=True)
class Power(Aligned):
    """The first operand to the power of the second."""

    name: ClassVar[str] = "power"


@dataclass(frozen=True, slots=True)
class Call(Aligned):
    """A scalar function of the language."""

    name: ClassVar[str] = "call"
    function: str


@dataclass(frozen=True, slots=True)
class Where(Aligned):
    """The third operand where the first two are in the `relation`, modulo the size of a domain.

    Else a number, or the fourth operand if there is no such number.
    """

    name: ClassVar[str] = "where"
    relation: str
    modulo: Domain | None
    otherwise: Const | None


@dataclass(frozen=True, slots=True)
class Position(Aligned):
    """Σ coefficient · index + constant, modulo a domain's size, from where the middle of the domain `shift` lies."""

    name: ClassVar[str] = "position"
    coefficients: tuple[int, ...]
    constant: int
    modulo: Domain | None
    shift: Domain | None


ENTRYWISE = (Add, Mul, Power, Call, Where)
"""What computes an entry from those of its operands, by a rule that knows no place."""

ALIGNED = (*ENTRYWISE, Position)
"""What can be computed for some of its entries alone."""


@dataclass(frozen=True, slots=True)
class Unknown(Aligned):
    """A function of the user: of numbers, entry by entry; or of `arrays` as they are."""

    name: ClassVar[str] = "unknown"
    function: str
    arrays: bool = False

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        return Op.rows(self, ranks, rank) if self.arrays else Aligned.rows(self, ranks, rank)


@dataclass(frozen=True, slots=True)
class Fused(Aligned):
    """Several operations that work entry by entry, in one pass over memory: the kernel `function`.

    `parameters` and `result` are what it takes and what it makes (`float64 x, complex128 z`), `statements` are C++.
    """

    name: ClassVar[str] = "kernel"
    function: str
    parameters: str
    result: str
    statements: tuple[str, ...]


# --- sums and products ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sum(Op):
    """Σ over some axes."""

    name: ClassVar[str] = "sum"
    axes: Row

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        row = tuple(range(ranks[0]))
        return row, tuple(label for label in row if label not in self.axes)


@dataclass(frozen=True, slots=True)
class Cumulative(Op):
    """What is made of all entries up to each one along an axis, itself included; `reverse` of all from each one on."""

    axis: int
    reverse: bool = False

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        return (_but(self.axis, rank),) * (len(ranks) + 1)


@dataclass(frozen=True, slots=True)
class CumulativeSum(Cumulative):
    """Their sum."""

    name: ClassVar[str] = "cumsum"


@dataclass(frozen=True, slots=True)
class CumulativeProduct(Cumulative):
    """Their product."""

    name: ClassVar[str] = "cumprod"


@dataclass(frozen=True, slots=True)
class CumulativeLogSumExp(Cumulative):
    """The logarithm of the sum of their exponentials, none of which overflows."""

    name: ClassVar[str] = "cumlogsumexp"


@dataclass(frozen=True, slots=True)
class CumulativeExponentials(Cumulative):
    """The sum of all w exp(e), times exp(l) of the entry itself, where w, e and l are the operands."""

    name: ClassVar[str] = "cumexp"


@dataclass(frozen=True, slots=True)
class CumulativeExtremum(Cumulative):
    """The largest of them, or the least, as `kind` says."""

    name: ClassVar[str] = "cumextremum"
    kind: str = "maximum"


@dataclass(frozen=True, slots=True)
class CumulativeTies(Cumulative):
    """The mean of the first operand over the entries up to each one that are the largest of the second operand so far.

    With `back` the transpose of that: the sum, over each entry and all behind it, of the first operand times the share
    of the entry in the largest up to there.
    """

    name: ClassVar[str] = "cumties"
    back: bool = False


@dataclass(frozen=True, slots=True)
class Reduced(Op):
    """The product, the maximum or the minimum over some axes; where along one the extremum is first reached."""

    name: ClassVar[str] = "reduced"
    kind: str
    axes: Row

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        labels = iter(range(rank))
        return tuple(WHOLE if axis in self.axes else next(labels) for axis in range(ranks[0])), tuple(range(rank))


@dataclass(frozen=True, slots=True)
class Norm(Op):
    """√Σ|x|² along the last axis; that over several axes is the norm of norms."""

    name: ClassVar[str] = "norm"

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        kept = tuple(range(rank))
        return (*kept, WHOLE), kept


@dataclass(frozen=True, slots=True)
class Cross(Op):
    """The vector product of two stacks of vectors, which have three entries in their last axis."""

    name: ClassVar[str] = "cross"

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        return (_but(rank - 1, rank),) * (len(ranks) + 1)


@dataclass(frozen=True, slots=True)
class Recursive(Op):
    """The last of the states s(t + 1) = b s(t) + x(t), and all before, of a number b, the first state and x.

    It is a tuple, of which `item` takes one. In `reverse` x is taken from its last value on.
    """

    name: ClassVar[str] = "recursive"
    reverse: bool


@dataclass(frozen=True, slots=True)
class Fourier(Op):
    """Σ_j x(j) exp(sign · 2πi j k/n) for each k from 0 to n − 1, along an axis of n entries; 1/n of it if `scaled`."""

    name: ClassVar[str] = "fourier"
    axis: int
    sign: int
    scaled: bool = False

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        return _but(self.axis, rank), _but(self.axis, rank)


@dataclass(frozen=True, slots=True)
class HalfFourier(Op):
    """The first half, up to n // 2, of the transform with the sign − of real numbers; the rest are conjugates of it."""

    name: ClassVar[str] = "half_fourier"
    axis: int

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        return _but(self.axis, rank), _but(self.axis, rank)


@dataclass(frozen=True, slots=True)
class FromHalfFourier(Op):
    """The real numbers whose transform an operand is the first half of."""

    name: ClassVar[str] = "from_half_fourier"
    axis: int

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        return _but(self.axis, rank), _but(self.axis, rank)


@dataclass(frozen=True, slots=True)
class Contraction(Op):
    """Σ over the indices of two operands that the result does not have."""


@dataclass(frozen=True, slots=True)
class Tensordot(Contraction):
    """Axes of the left operand contracted with axes of the right one; what is left of both, in order."""

    name: ClassVar[str] = "tensordot"
    left: Row
    right: Row

    @property
    def axes(self) -> tuple[Row, Row]:
        """The contracted axes of both."""
        return self.left, self.right

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        return _paired(ranks, ((), ()), self.axes)


@dataclass(frozen=True, slots=True)
class Batched(Contraction):
    """A product of matrices for each value of the `batch`, axes of both operands that stay in step and come first."""

    name: ClassVar[str] = "batched"
    batch: tuple[Row, Row]
    axes: tuple[Row, Row]

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        return _paired(ranks, self.batch, self.axes)


@dataclass(frozen=True, slots=True)
class Einsum(Contraction):
    """A contraction by its labels."""

    name: ClassVar[str] = "einsum"
    left: Row
    right: Row
    result: Row

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        return self.left, self.right, self.result


def _paired(ranks: Sequence[int], batch: tuple[Row, Row], over: tuple[Row, Row]) -> Rows:
    """The labels where axes of both operands are paired: those of the left one count, and go on in the right one."""
    same = dict(zip((*batch[1], *over[1]), (*batch[0], *over[0]), strict=True))
    left = tuple(range(ranks[0]))
    new = iter(range(ranks[0], ranks[0] + ranks[1]))
    right = tuple(same[axis] if axis in same else next(new) for axis in range(ranks[1]))
    free = [label for label in left if label not in (*batch[0], *over[0])]
    return left, right, (*batch[0], *free, *(label for label in right if label >= ranks[0]))


@dataclass(frozen=True, slots=True)
class Packed(Op):
    """The rows that are kept of a symmetric tensor, times the operand."""

    name: ClassVar[str] = "packed"
    layout: Layout

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        free = tuple(range(ranks[0] - len(self.layout.contracted)))
        return (*((WHOLE,) * (ranks[0] - len(free))), *free), (*((WHOLE,) * (rank - len(free))), *free)


@dataclass(frozen=True, slots=True)
class Unpacked(Op):
    """The whole of a product from the rows that were computed, each with a sign and perhaps conjugated."""

    name: ClassVar[str] = "unpacked"
    layout: Layout
    parts: tuple[tuple[int, bool], ...]


# --- linear systems ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OfMatrices(Op):
    """A function of the matrices in the last two axes, `det`, `inv` …; of more operands its derivative along others.

    Its value is a number, a vector in the last axis, or a matrix in the last two, for each index of the axes before
    them. Roots of matrices that are `hermitian`, and functions of eigenvalues or singular values, come from these and
    their vectors, `Factors(eigen=True)` or `Factors(singular=True)` of one matrix, or those of a stack. Operands that
    are vectors are the numbers that these vectors are put together with, and their slopes. With `together` they
    are part of a sum whose other part says what happens where values are equal. `about` names the matrix in messages,
    and it is `positive` where Cholesky's factor serves. Those in `FACTORED` may be of such a factor, or of LU factors.
    """

    name: ClassVar[str] = "of_matrices"
    kind: str
    hermitian: bool = False
    about: str = field(default="", compare=False)
    together: bool = False
    positive: bool = False

    def rows(self, ranks: Sequence[int], rank: int) -> Rows:
        outer = tuple(range(ranks[0] - 2))
        return tuple((*outer, *(WHOLE,) * (r - len(outer))) for r in (*ranks, rank))


@dataclass(frozen=True, slots=True)
class Factors(Op):
    """The LU factors of a matrix, or Cholesky's of one that is Hermitian and `positive`, for several uses.

    Rows and columns of the matrix are the first and the second half of its axes. With `eigen`, the eigenvalues and
    eigenvectors of a Hermitian one, for functions of it; with `singular`, the singular values and vectors. `about` is
    what the matrix is called in messages.
    """

    name: ClassVar[str] = "factors"
    positive: bool = False
    eigen: bool = False
    singular: bool = False
    about: str = field(default="", compare=False)


FACTORED = frozenset({"inv", "det", "logdet", "logabsdet"})
"""Functions of a matrix that its factors give, which systems are solved with, too."""


def factors_for(kind: str, hermitian: bool = False) -> Factors | None:
    """What a function of matrices is computed from, if it is not the matrix itself.

    >>> factors_for("svdvals"), factors_for("det")
    (Factors(positive=False, eigen=False, singular=True, about=''), None)
    """
    if kind in OBLONG:
        return Factors(singular=True)
    if hermitian or kind in SYMMETRISING - {"cholesky", "cholesky_along", "cholback"}:
        return Factors(eigen=True)
    return None


@dataclass(frozen=True, slots=True)
class Solve(Op):
    """A linear system, with one matrix or its factors, or with two matrices where it conjugates.

    `adjoint` is where the system is that of the adjoint of what was factorised, or of a matrix that is `triangular`,
    the factor of another one. Further axes of the right-hand side are those of several systems. What is `positive`,
    and `about`, is as for functions of matrices.
    """

    name: ClassVar[str] = "solve"
    adjoint: bool = False
    triangular: bool = False
    positive: bool = False
    about: str = field(default="", compare=False)


SHOWING = (Number, Input, View)
"""What takes no memory of its own: numbers, arguments, and views."""
