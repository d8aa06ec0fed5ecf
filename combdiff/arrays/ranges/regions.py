"""Computes where the arrays of a plan are not zero, and which part of each is needed.

    y = where(1 <= i, f)        y is zero at 0 (`supports`), so that f is not needed there (`Needs`)
    y + z                       needed everywhere, if it is a result; of y, only the part where it is not zero

An array is computed in the region that is both: where it is needed, and not known to be zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_, or_

from combdiff.arrays import ops
from combdiff.arrays.liveness import storage
from combdiff.arrays.numbers import exponent_of
from combdiff.arrays.plan import Step
from combdiff.arrays.ranges.intervals import WHOLE, Interval, Region, chosen, everywhere, move
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.terms import ZERO

_BY_LABEL = (
    *ops.ALIGNED,
    ops.Conj,
    ops.Permute,
    ops.Broadcast,
    ops.Roll,
    ops.Contraction,
    ops.Sum,
    ops.Cumulative,
    ops.Reduced,
    ops.Norm,
    ops.Cross,
    ops.Fourier,
    ops.Gather,
)
"""What does with a part of its operands, along an axis that carries an index, what it does with all of them."""

_FINITE = (
    ops.Number,
    ops.Input,
    ops.Counting,
    ops.Position,
    ops.View,
    ops.Roll,
    ops.Broadcast,
    ops.LaidOut,
    ops.AsFloat,
    ops.Gather,
    ops.Scatter,
    ops.Put,
    ops.Conj,
    ops.Add,
    ops.Mul,
    ops.Where,
    ops.Sum,
    ops.CumulativeSum,
    ops.CumulativeProduct,
    ops.Contraction,
)
"""What is finite where its operands are."""

_KEEP_ZERO = frozenset({"real", "imag", "conj", "abs", "abs2"})


def supports(steps: Sequence[Step]) -> dict[Step, Region]:
    """For each step, the region outside of which it is known to be zero.

    >>> from combdiff.arrays.plan import Builder
    >>> from combdiff.terms.types import Domain
    >>> make, n = Builder().step, Domain("n")
    >>> one = make(ops.Position((), 1, None, None), (), ())
    >>> i, x = make(ops.Range(n), (), (n,)), make(ops.Input("x"), (), (n,))
    >>> y = make(ops.Where("<=", None, ZERO, places=((), (0,), (0,))), (one, i, x), (n,))
    >>> supports((one, i, x, y))[y]
    (Interval(before=1, behind=0),)
    """
    found: dict[Step, Region] = {}
    finite: dict[Step, bool] = {}
    for step in steps:
        finite[step] = is_finite(step, finite)
        found[step] = _support(step, found, finite)
    return found


def _support(step: Step, known: Mapping[Step, Region], finite: Mapping[Step, bool]) -> Region:
    match step.op:
        case ops.Where(otherwise=otherwise) if otherwise == ZERO:
            return _chosen_support(step, known)
        case ops.Mul() | ops.Conj() | ops.Permute() | ops.Broadcast() | ops.Contraction() | ops.Sum():
            of_labels = label_supports(step, known, finite)
            return tuple(of_labels.get(label, WHOLE) for label in step.rows[-1])
        case ops.Call(function) if function in _KEEP_ZERO:
            return known[step.operands[0]]
        case ops.Power(places=places) if (exponent_of(step.operands[1]) or 0) > 0 and len(places[0]) == step.rank:
            return _moved(known[step.operands[0]], places[0])
        case ops.Add(places=places):
            rows = [dict(zip(at, known[o], strict=True)) for o, at in zip(step.operands, places, strict=True)]
            return tuple(reduce(or_, (row.get(axis, WHOLE) for row in rows)) for axis in range(step.rank))
        case ops.Roll(axis, by):
            region = known[step.operands[0]]
            return (*region[:axis], region[axis].shifted(by) or WHOLE, *region[axis + 1 :])
        case _:
            return everywhere(step)


def _chosen_support(step: Step, known: Mapping[Step, Region]) -> Region:
    """A choice is zero where what is chosen is, and where the condition does not hold."""
    body, at = step.operands[2], step.rows[2]
    own = dict(zip(at, known[body], strict=True))
    found = chosen(step)
    # a number that is repeated under a condition is no shorter array
    if found is not None and found[0] in own:
        own[found[0]] &= found[1]
    return tuple(own.get(axis, WHOLE) for axis in range(step.rank))


def _moved(region: Region, places: Sequence[int]) -> Region:
    return tuple(region[places.index(axis)] for axis in range(len(places)))


def label_supports(step: Step, known: Mapping[Step, Region], finite: Mapping[Step, bool]) -> dict[int, Interval]:
    """Where products of the operands are not zero, for each index that they may be cut along.

    Zero times what is not finite is no number: no factor is left out that may be infinite where another one is zero.
    """
    rows = [dict(zip(row, known[o], strict=True)) for o, row in zip(step.operands, step.rows, strict=False)]
    found: dict[int, Interval] = {}
    for label in cut_labels(step):
        interval = reduce(and_, (row[label] for row in rows if label in row), WHOLE)
        sure = (finite[o] or row.get(label) == interval for o, row in zip(step.operands, rows, strict=True))
        found[label] = interval if all(sure) else WHOLE
    return found


def is_finite(step: Step, known: Mapping[Step, bool]) -> bool:
    """Whether an array has finite entries where those of arguments are finite."""
    of_operands = all(known[o] for o in step.operands)
    match step.op:
        case ops.Power():
            exponent = exponent_of(step.operands[1])
            return of_operands and exponent is not None and exponent.denominator == 1 and exponent >= 0
        case ops.Call(function):
            finite = SCALAR_FUNCTIONS[function].finite
            real = not any(o.complex for o in step.operands)
            return of_operands and (finite == "numbers" or (finite == "reals" and real))
        case op:
            return of_operands and isinstance(op, _FINITE)


def cut_labels(step: Step) -> frozenset[int]:
    """The indices along which a step is computed in parts.

    A contraction takes large arguments as they are: parts of them would be copied.
    """
    if not isinstance(step.op, _BY_LABEL):
        return frozenset()
    *rows, out = step.rows
    labels = {label for row in (*rows, out) for label in row if label != ops.WHOLE}
    if isinstance(step.op, ops.Contraction):
        for operand, row in zip(step.operands, rows, strict=True):
            labels -= {*row} if operand.rank > 1 and storage(operand) is None else set()
    return frozenset(labels)


class Regions:
    """The region in which each step is computed, and what it needs of its operands there.

    `of` has the regions; a step that only works on whole arrays has the whole of them.
    """

    def __init__(self, steps: Sequence[Step], outputs: Sequence[Step]) -> None:
        self.supports = supports(steps)
        self.finite: dict[Step, bool] = {}
        for step in steps:
            self.finite[step] = is_finite(step, self.finite)
        self.of: dict[Step, Region] = {}
        needed: dict[Step, Region] = {o: everywhere(o) for o in outputs}
        for step in reversed(steps):
            if step not in needed:
                continue  # only conditions that surely hold mention it
            self.of[step] = self._computed(step, needed[step])
            for operand, region in zip(step.operands, self.needs(step), strict=True):
                if region is not None:
                    needed[operand] = tuple(map(or_, needed.get(operand, region), region))

    def _computed(self, step: Step, needed: Region) -> Region:
        region = tuple(map(and_, needed, self.supports[step]))
        if isinstance(step.op, ops.Roll):
            axis, by = step.op.axis, step.op.by
            inner = region[axis].shifted(-by)
            return region if inner is not None else (*region[:axis], WHOLE, *region[axis + 1 :])
        moved = move(step)
        if moved is not None:
            return everywhere(step) if moved.read(region) is None else region
        labels = cut_labels(step)
        return tuple(
            interval if label in labels and _fits(step, axis, interval) else WHOLE
            for axis, (label, interval) in enumerate(zip(step.rows[-1], region, strict=True))
        )

    def label_regions(self, step: Step) -> dict[int, Interval]:
        """The interval of each index that a step is computed for: those of the result, and those summed over."""
        labels = cut_labels(step)
        summed = (
            label_supports(step, self.supports, self.finite) if isinstance(step.op, ops.Contraction | ops.Sum) else {}
        )
        found = {label: interval for label, interval in summed.items() if label in labels}
        found |= dict(zip(step.rows[-1], self.of[step], strict=True))
        return {label: interval for label, interval in found.items() if label != ops.WHOLE}

    def needs(self, step: Step) -> tuple[Region | None, ...]:
        """The region of each operand that a step needs for its own; None for sides of a condition that surely holds."""
        if isinstance(step.op, ops.Roll):
            axis, by = step.op.axis, step.op.by
            region = self.of[step]
            inner = region[axis].shifted(-by) or WHOLE
            return ((*region[:axis], inner, *region[axis + 1 :]),)
        if (moved := move(step)) is not None and (read := moved.read(self.of[step])) is not None:
            return read, None
        if not isinstance(step.op, _BY_LABEL):
            return tuple(map(everywhere, step.operands))
        regions = self.label_regions(step)
        found: list[Region | None] = [tuple(regions.get(label, WHOLE) for label in row) for row in step.rows[:-1]]
        if isinstance(step.op, ops.Where) and self.holds(step):
            found[:2] = None, None
        return tuple(found)

    def holds(self, step: Step) -> bool:
        """Whether the condition of a choice holds in all of the region in which it is computed."""
        found = chosen(step)
        return found is not None and self.of[step][found[0]] <= found[1]


def _fits(step: Step, axis: int, interval: Interval) -> bool:
    """Whether something is left of an axis that has bounds."""
    count = step.domains[axis].count
    return count is None or interval.less < count
