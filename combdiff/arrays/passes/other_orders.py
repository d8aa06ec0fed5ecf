"""What is computed entry by entry a second time, with its axes in another order, is a view of the first.

    T = I * D                                                   Σ I T
    S = I.transpose(2, 3, 0, 1) * D.transpose(2, 3, 0, 1)       S B: S is T.transpose(2, 3, 0, 1)

So it is where D is the same if two of its axes change places, as 1 / (e(i) + e(j)) is.
Orders are chosen where a product wants them; a product that finds another one copies what a second pass would write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field, replace
from itertools import combinations
from math import prod

from combdiff.arrays import ops
from combdiff.arrays.plan import Step, ordered
from combdiff.records import dataclass
from combdiff.terms.types import Domain

_LARGE = 1 << 12  # entries


def in_one_order(
    outputs: Sequence[Step], names: Mapping[Step, str], sizes: Mapping[Domain, int], large: int = _LARGE
) -> tuple[tuple[Step, ...], dict[Step, str]]:
    """The outputs and the names of steps with one array for what differs by the order of axes only."""
    new: dict[Step, Step] = {}
    orders = _Orders()
    for step in ordered(outputs):
        operands = tuple(new[o] for o in step.operands)
        made = step if operands == step.operands else replace(step, operands=operands)
        if isinstance(made.op, ops.ENTRYWISE) and made.rank > 1 and _entries(made, sizes) >= large:
            made = orders.as_view(made, made.op)
        new[step] = made
    return tuple(new[o] for o in outputs), {new.get(step, step): name for step, name in names.items()}


@dataclass(eq=False)
class _Orders:
    """The `first` step of each key, with its axes in the order of the key; `swaps` are axes that may change places."""

    first: dict[Hashable, tuple[Step, ops.Row]] = field(default_factory=dict)
    swaps: dict[Step, list[tuple[int, int]]] = field(default_factory=dict)
    made: dict[Step, int] = field(default_factory=dict)

    def as_view(self, step: Step, op: ops.Aligned) -> Step:
        """A step, or a view of the first that has its entries."""
        operands, places, numbers = self.in_order(step, op)
        order = tuple(dict.fromkeys(axis for at in places for axis in at))
        if len(order) < step.rank:
            return step
        moved = (tuple(order.index(axis) for axis in at) for at in places)
        at_key = tuple(self.settled(o, at) for o, at in zip(operands, moved, strict=True))
        key = type(op), numbers, operands, at_key, tuple(step.domains[axis] for axis in order)
        known, own = self.first.setdefault(key, (step, order))
        if known is step:
            return step
        # an axis of the step is the one of the first that has the same place in the key
        turn = tuple(own[order.index(axis)] for axis in range(step.rank))
        if turn == tuple(range(step.rank)):
            return known
        return Step(ops.Permute(turn), (known,), step.domains, step.complex)

    def in_order(self, step: Step, op: ops.Aligned) -> tuple[tuple[Step, ...], ops.Rows, Hashable]:
        """The operands that are no views, with the places of their axes, and what else the operation is told.

        Terms and factors are in the order in which they were made first, whatever the order of the sum or product.
        """
        operands, places = _without_views(step, op)
        for operand in operands:
            self.made.setdefault(operand, len(self.made))
        if not isinstance(op, ops.Add | ops.Mul):
            return operands, places, op.placed(())
        turn = sorted(range(len(operands)), key=lambda n: self.made[operands[n]])
        numbers = tuple(op.coefficients[n] for n in turn) if isinstance(op, ops.Add) else op.coefficient
        return tuple(operands[n] for n in turn), tuple(places[n] for n in turn), numbers

    def settled(self, step: Step, at: ops.Row) -> ops.Row:
        """The places of the axes of a step, of those that may change places in order."""
        found = list(at)
        for p, q in self.swaps_of(step):
            found[p], found[q] = sorted((found[p], found[q]))
        return tuple(found)

    def swaps_of(self, step: Step) -> list[tuple[int, int]]:
        """The pairs of axes that a step is the same in, if they change places."""
        if step not in self.swaps:
            pairs = [(p, q) for p, q in combinations(range(step.rank), 2) if step.domains[p] == step.domains[q]]
            self.swaps[step] = [
                pair for pair in pairs if isinstance(step.op, ops.ENTRYWISE) and self._is_same(step, *pair)
            ]
        return self.swaps[step]

    def _is_same(self, step: Step, p: int, q: int) -> bool:
        """Whether the operands are the same ones at the same places if two axes change places."""
        assert isinstance(step.op, ops.ENTRYWISE), "what works entry by entry"
        turned = tuple(tuple({p: q, q: p}.get(axis, axis) for axis in at) for at in step.op.places)
        before, after = (
            [(o, self.settled(o, at)) for o, at in zip(step.operands, of, strict=True)]
            for of in (step.op.places, turned)
        )
        if isinstance(step.op, ops.Mul):
            return Counter(before) == Counter(after)
        if isinstance(step.op, ops.Add):
            terms = (Counter(zip(step.op.coefficients, pairs, strict=True)) for pairs in (before, after))
            return next(terms) == next(terms)
        return before == after


def _without_views(step: Step, op: ops.Aligned) -> tuple[tuple[Step, ...], ops.Rows]:
    """The operands that are no views in another order, with the places of their axes."""
    operands, places = [], []
    for operand, at in zip(step.operands, op.places, strict=True):
        while isinstance(operand.op, ops.Permute):
            order = operand.op.order
            at = tuple(at[order.index(axis)] for axis in range(len(order)))
            operand = operand.operands[0]
        operands.append(operand)
        places.append(at)
    return tuple(operands), tuple(places)


def _entries(step: Step, sizes: Mapping[Domain, int]) -> int:
    return prod(sizes.get(d, d.count or 1) for d in step.domains)
