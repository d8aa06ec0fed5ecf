"""Steps up to shifts: f(x(i + 1)) and f(x(i)) have one form, by 1 and by 0.

A shift is read off one kind of operation: `Roll` around a ring (`passes/translations.py`), or `Window` along a
range (`ranges/shifts.py`). What works entry by entry is shifted where all of its operands are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import field
from typing import TypeAlias

from combdiff.arrays import ops
from combdiff.arrays.plan import Step
from combdiff.records import dataclass

Shifts: TypeAlias = tuple[int, ...]
"""How far a step is shifted along each axis."""


@dataclass
class Forms:
    """The form of each step, a number, and how far the step is shifted from it.

    >>> from combdiff.arrays.plan import Builder, ordered
    >>> from combdiff.terms.types import Domain
    >>> n, make = Domain("n", periodic=True), Builder().step
    >>> x = make(ops.Input("x"), (), (n,), False)
    >>> e, f = (make(ops.Call("exp", places=((0,),)), (o,), (n,)) for o in (x, make(ops.Roll(0, 1), (x,), (n,))))
    >>> forms = Forms(ordered((e, f)), ops.Roll)
    >>> forms[e], forms[f]
    ((1, (0,)), (1, (1,)))
    >>> [(step == f, alike == [e, f]) for step, alike in forms.alike()]
    [(True, True), (False, True)]
    """

    steps: Sequence[Step]
    by: type[ops.Roll | ops.Window]
    _found: dict[Step, tuple[int, Shifts]] = field(default_factory=dict)
    _numbers: dict[Hashable, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for step in self.steps:
            self._found[step] = self._form(step)

    def __getitem__(self, step: Step) -> tuple[int, Shifts]:
        return self._found[step]

    def alike(self) -> Iterator[tuple[Step, list[Step]]]:
        """Each step that works entry by entry, large ones first, with all of its form, in the order of the plan."""
        groups: dict[int, list[Step]] = {}
        computed = [step for step in self.steps if isinstance(step.op, ops.ENTRYWISE) and step.rank]
        for step in computed:
            groups.setdefault(self[step][0], []).append(step)
        for step in reversed(computed):
            yield step, groups[self[step][0]]

    def _form(self, step: Step) -> tuple[int, Shifts]:
        match step.op:
            case ops.Roll(axis, by) | ops.Window(axis, by) if isinstance(step.op, self.by):
                number, shifts = self[step.operands[0]]
                return number, (*shifts[:axis], shifts[axis] + by, *shifts[axis + 1 :])
            case ops.Conj():
                number, shifts = self[step.operands[0]]
                return self._number((ops.Conj, number)), shifts
            case ops.Permute(order):
                number, shifts = self[step.operands[0]]
                return self._number((ops.Permute, order, number)), tuple(shifts[axis] for axis in order)
            case ops.Aligned() as op if isinstance(op, ops.ENTRYWISE):
                return self._entrywise(step, op)
            case _:
                return self._number(step), (0,) * step.rank

    def _entrywise(self, step: Step, op: ops.Aligned) -> tuple[int, Shifts]:
        least: dict[int, int] = {}
        for operand, at in zip(step.operands, op.places, strict=True):
            for axis, shift in zip(at, self[operand][1], strict=True):
                least[axis] = min(least.get(axis, shift), shift)
        parts: list[Hashable] = []
        for n, (operand, at) in enumerate(zip(step.operands, op.places, strict=True)):
            number, shifts = self[operand]
            own = op.coefficients[n] if isinstance(op, ops.Add) else None
            parts.append((number, tuple(s - least[axis] for s, axis in zip(shifts, at, strict=True)), at, own))
        # sums and products are equal in any order
        operands = frozenset(Counter(parts).items()) if isinstance(op, ops.Add | ops.Mul) else tuple(parts)
        rest = ops.Add if isinstance(op, ops.Add) else op.placed(())
        # windows of one range differ in length, and a ring is rolled whole
        ranges = step.domains if self.by is ops.Roll else tuple(d.of or d for d in step.domains)
        shifts = tuple(least.get(axis, 0) for axis in range(step.rank))
        return self._number((rest, operands, ranges, step.complex)), shifts

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))
