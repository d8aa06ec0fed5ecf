"""Computes steps that differ by a shift of their operands' parts once, on a range that holds both parts.

f(x[1:-1] - x[:-2]) and f(x[2:] - x[1:-1])      are t[:-1] and t[1:] of t = f(x[1:] - x[:-1])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from combdiff.arrays import ops
from combdiff.arrays.plan import Builder, Step, ordered
from combdiff.arrays.ranges.regions import is_finite
from combdiff.arrays.ranges.views import window
from combdiff.arrays.shifted import Forms, Shifts
from combdiff.records import dataclass
from combdiff.terms.types import Domain


def shared(outputs: Sequence[Step], names: Mapping[Step, str]) -> tuple[tuple[Step, ...], dict[Step, str]]:
    """The outputs and the names of steps after what differs by shifts of windows is a window of one array.

    >>> from combdiff.terms.types import Domain
    >>> make, n = Builder().step, Domain("n")
    >>> x = make(ops.Input("x"), (), (n,), False)
    >>> parts = [make(ops.Window(0, start), (x,), (n.shortened(1),)) for start in (0, 1)]
    >>> (a, b), _ = shared([make(ops.Call("exp", places=((0,),)), (part,), part.domains) for part in parts], {})
    >>> a.operands == b.operands, a.op, b.op
    (True, Window(axis=0, start=0), Window(axis=0, start=1))
    """
    outputs, names = tuple(outputs), dict(names)
    while members := _alike(forms := Forms(ordered(outputs), ops.Window)):
        whole, made = _joined(forms.steps, members)
        new: dict[Step, Step] = {}
        for step in ordered(outputs):
            operands = tuple(new[o] for o in step.operands)
            new[step] = made.get(step) or (step if operands == step.operands else replace(step, operands=operands))
        names = {whole if step in made else new.get(step, step): name for step, name in names.items()}
        outputs = tuple(new[o] for o in outputs)
    return outputs, names


def _alike(forms: Forms) -> list[tuple[Step, Shifts]]:
    """Steps that differ by shifts, with these, large ones first; none if there are none.

    What may be infinite is computed for no place that none of them has.
    """
    finite: dict[Step, bool] = {}
    for step in forms.steps:
        finite[step] = is_finite(step, finite)
    for step, found in forms.alike():
        members = [(s, forms[s][1]) for s in found]
        if len(found) > 1 and (finite[step] or _Box.fill([_Box.of(*member) for member in members])):
            return members
    return []


@dataclass(frozen=True, slots=True)
class _Box:
    """The places, counted from what has no shift, that a step has entries for: `starts` to n + `ends`."""

    starts: Shifts
    ends: Shifts

    @classmethod
    def of(cls, step: Step, starts: Shifts) -> _Box:
        return cls(starts, tuple(s - _less(d) for s, d in zip(starts, step.domains, strict=True)))

    @classmethod
    def around(cls, boxes: Sequence[_Box]) -> _Box:
        """The least box that holds all."""
        starts = tuple(map(min, zip(*(box.starts for box in boxes), strict=True)))
        return cls(starts, tuple(map(max, zip(*(box.ends for box in boxes), strict=True))))

    @staticmethod
    def fill(boxes: Sequence[_Box]) -> bool:
        """Whether boxes hold all that the least box around them holds, however short the ranges are."""
        lines = [list(zip(box.starts, box.ends, strict=True)) for box in boxes]
        varying = [{*along} for along in zip(*lines, strict=True) if len({*along}) > 1]
        if len(varying) != 1:
            return not varying
        (along,) = varying
        # where the first is not empty, and the second is not, the second begins where the first ends, or before
        return all(
            following - end - max(start - end, following - last) <= 1
            for (start, end), (following, last) in pairwise(sorted(along))
        )


class _Growing:
    """Makes steps for more places than they have entries for."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.builder = Builder()
        for step in steps:
            self.builder.first(step)

    def grown(self, step: Step, before: Shifts, behind: Shifts) -> Step:
        """A step with so many places more before and behind those that it has, along each axis."""
        if not any((*before, *behind)):
            return step
        domains = [_longer(d, a + b) for d, a, b in zip(step.domains, before, behind, strict=True)]
        match step.op:
            case ops.Window(axis, start):
                return self._window(step, axis, start, before, behind)
            case ops.Permute(order):
                back = [order.index(axis) for axis in range(step.rank)]
                inner = (tuple(more[axis] for axis in back) for more in (before, behind))
                return self.builder.step(step.op, (self.grown(step.operands[0], *inner),), domains)
            case ops.Conj():
                return self.builder.step(step.op, (self.grown(step.operands[0], before, behind),), domains)
            case ops.Aligned() as op if isinstance(op, ops.ENTRYWISE):
                operands = tuple(
                    self.grown(o, *(tuple(more[axis] for axis in at) for more in (before, behind)))
                    for o, at in zip(step.operands, op.places, strict=True)
                )
                return self.builder.step(op, operands, domains, step.complex)
        raise AssertionError("only what is made of windows differs by shifts")

    def _window(self, step: Step, axis: int, start: int, before: Shifts, behind: Shifts) -> Step:
        """A window with more places: of its array with more places, where this one has not so many."""
        (array,) = step.operands
        left = _less(step.domains[axis]) - _less(array.domains[axis]) - start
        more = max(0, before[axis] - start), max(0, behind[axis] - left)
        inner = ((*each[:axis], own, *each[axis + 1 :]) for each, own in zip((before, behind), more, strict=True))
        whole = self.grown(array, *inner)
        domain = _longer(step.domains[axis], before[axis] + behind[axis])
        return window(self.builder, whole, axis, start - before[axis] + more[0], domain)


def _less(domain: Domain) -> int:
    """How many values less a range has than the one that it is cut from; ranges whose sizes are numbers tell these."""
    return -domain.count if domain.sized and domain.count is not None else domain.less


def _longer(domain: Domain, more: int) -> Domain:
    """A range that is cut by so many values less, or is another one with so many more."""
    return domain.shortened(-more)


def _joined(steps: Sequence[Step], members: Sequence[tuple[Step, Shifts]]) -> tuple[Step, dict[Step, Step]]:
    """The array that holds all members, and each as a window of it."""
    growing = _Growing(steps)
    boxes = [_Box.of(step, starts) for step, starts in members]
    around = _Box.around(boxes)
    (base, _), box = min(zip(members, boxes, strict=True), key=lambda pair: sum(_less(d) for d in pair[0][0].domains))
    before = tuple(a - b for a, b in zip(box.starts, around.starts, strict=True))
    behind = tuple(a - b for a, b in zip(around.ends, box.ends, strict=True))
    whole = growing.grown(base, before, behind)
    made: dict[Step, Step] = {}
    for step, starts in members:
        part = whole
        for axis, domain in enumerate(step.domains):
            part = window(growing.builder, part, axis, starts[axis] - around.starts[axis], domain)
        made[step] = part
    return whole, made
