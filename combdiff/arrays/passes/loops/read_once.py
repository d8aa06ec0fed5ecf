"""What is large is read once, and what is made on the way stays small: the loops that pay (`blocks.py`) go into a plan.

one pass    J(p, q) = Σ V(p, q, r, s) P(r, s) and K(p, q) = Σ V(p, r, s, q) P(r, s) each read all of V from memory;
            in a loop over p both are computed while V[p] is in the cache, and no more than V[p] is ever transposed
fusion      a gather, a product with it and the sum over that, for one neighbour b after the other: the temporaries
            are as many times smaller as there are neighbours, and stay in the cache
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from combdiff.arrays import ops
from combdiff.arrays.cuts import Cut, cuts
from combdiff.arrays.layouts import BY_SLABS, placement
from combdiff.arrays.passes.loops.blocks import Group, array_bytes, grown, with_loop
from combdiff.arrays.plan import Plan, Step
from combdiff.records import dataclass


@dataclass(frozen=True, slots=True)
class Costs:
    """What decides whether a loop pays, in bytes.

    `large`: from where an array is read from memory, and no longer from a cache; `small`: up to where it may be stored
    between a loop and what comes after it. `turn`: what could be read in the time that Python takes for a statement of
    one. A turn takes so many values that the largest slice has about `thin` bytes, or `slab` where single values would
    make vectors of matrices; `cache`: what the slices of one turn may be together. What is contracted with a large
    array must be smaller by the factor `light`. Loops start at `seeds` temporaries, the largest ones.
    """

    large: int = 16 << 20
    small: int = 1 << 20
    turn: int = 16 << 10
    thin: int = 128 << 10
    slab: int = 1 << 20
    cache: int = 16 << 20
    light: int = 4
    seeds: int = 40


USUAL = Costs()


def with_loops(plan: Plan, costs: Costs = USUAL, apart: Collection[Step] = ()) -> Plan:
    """The plan with the loops that pay. Steps of `apart` are not computed in one loop with others."""
    while True:
        found = [
            loop
            for seeds in _seeds(plan, costs)
            if (loop := grown(plan, seeds, costs.large, costs.small, apart)) is not None
        ]
        scored = [(gain(plan, loop, costs), loop) for loop in found]
        best, loop = max(scored, key=lambda pair: pair[0], default=(0.0, None))
        if loop is None or best <= 0:
            return plan
        plan = with_loop(plan, loop, _width(plan, loop, costs))


def _seeds(plan: Plan, costs: Costs) -> Iterable[Mapping[Step, Cut]]:
    """Where a loop may start: contractions of a large array along its first axis, and large temporaries along any."""
    taken = {step for loop in plan.loops for step in loop.steps}
    steps = [s for s in plan.steps if s not in taken]
    for array in (s for s in plan.steps if s.rank >= 3 and array_bytes(plan, s) >= costs.large):
        found = {s: c for s in steps if (c := _light(plan, s, array, costs)) is not None}
        if found:
            yield found
    large = [s for s in steps if not isinstance(s.op, ops.SHOWING) and array_bytes(plan, s) >= costs.large]
    largest = sorted(large, key=lambda s: -array_bytes(plan, s))[: costs.seeds]
    for step in (s for s in large if s in largest):
        for cut in cuts(step):
            if cut.axis is not None and plan.sizes.get(step.domains[cut.axis], 0) > 1:
                yield {step: cut}


def _light(plan: Plan, step: Step, array: Step, costs: Costs) -> Cut | None:
    """The cut of a contraction along the first axis of a large array, whose partner and result are small beside it."""
    if not isinstance(step.op, ops.Tensordot) or step.operands.count(array) != 1:
        return None
    side = step.operands.index(array)
    rest = (step, step.operands[1 - side])
    if any(costs.light * array_bytes(plan, s) > array_bytes(plan, array) for s in rest):
        return None
    return next((c for c in cuts(step) if c.axis is not None and c.slices[side] == 0), None)


def gain(plan: Plan, group: Group, costs: Costs) -> float:
    """The bytes that need no longer be moved between memory and processor, less what the turns of the loop cost."""
    extent = plan.sizes.get(group.domain, 1)
    width = _width(plan, group, costs)
    turns = -(-extent // width)
    if turns <= 1 or width * _slices(plan, group) > costs.cache:
        return 0.0
    large = [s for s in group.cuts if s not in group.kept and _is_large(plan, s, costs)]
    unmade = [s for s in large if not isinstance(s.op, ops.SHOWING)]
    saved = sum(2.0 * array_bytes(plan, s) for s in unmade)
    readers: dict[Step, list[int]] = {}
    for step, cut in group.cuts.items():
        for operand, axis in zip(step.operands, cut.slices, strict=True):
            if axis is not None and _is_large(plan, operand, costs):
                readers.setdefault(operand, []).append(axis)
                saved += 2 * array_bytes(plan, operand) * _copies(step, operand)
    for operand, axes in readers.items():
        saved += (len(axes) - 1) * array_bytes(plan, operand)
        saved -= array_bytes(plan, operand) * any(axes) / 4  # slices that do not lie together
    sums = sum(array_bytes(plan, s) for s, cut in group.cuts.items() if cut.axis is None)
    return saved - turns * (costs.turn * len(group.cuts) + sums / 4)


def _is_large(plan: Plan, step: Step, costs: Costs) -> bool:
    return array_bytes(plan, step) >= costs.large


def _slices(plan: Plan, group: Group) -> int:
    """The bytes of what one value of the index makes."""
    extent = max(plan.sizes.get(group.domain, 1), 1)
    return sum(plan.bytes(s) // extent for s, cut in group.cuts.items() if cut.axis is not None and s not in group.kept)


def _width(plan: Plan, group: Group, costs: Costs) -> int:
    """How many values at a time: one, unless slices are thin, or matrix products would become ones with vectors."""
    extent = max(plan.sizes.get(group.domain, 1), 1)
    pairs = [(s, cut) for s, cut in group.cuts.items() if cut.axis is not None]
    sliced = {
        o for s, cut in group.cuts.items() for o, at in zip(s.operands, cut.slices, strict=True) if at is not None
    }
    largest = max((array_bytes(plan, s) // extent for s in {*sliced, *(s for s, _ in pairs)}), default=0)
    enough = costs.slab if any(_becomes_vector(s, cut) for s, cut in pairs) else costs.thin
    return min(max(enough // max(largest, 1), 1), extent)


def _becomes_vector(step: Step, cut: Cut) -> bool:
    """Whether a product of matrices is cut into products of one of them with vectors; each of a batch is one."""
    match step.op:
        case ops.Tensordot():
            kept: tuple[ops.Row, ...] = step.op.axes
        case ops.Batched(batch, axes):
            if any(at in own for own, at in zip(batch, cut.slices, strict=True)):
                return False
            kept = tuple((*own, *over) for own, over in zip(batch, axes, strict=True))
        case _:
            return False
    free = [o.rank - len(over) for o, over in zip(step.operands, kept, strict=True)]
    return min(free) > 0 and any(n == 1 and s is not None for n, s in zip(free, cut.slices, strict=True))


def _copies(step: Step, array: Step) -> bool:
    """Whether the contracted axes lie so that the array would be copied for the product."""
    if not isinstance(step.op, ops.Tensordot) or array.rank < 3:
        return False
    side, axes = step.operands.index(array), step.op.axes
    return placement(axes[side], array.rank, len(axes[1 - side]) == step.operands[1 - side].rank) >= BY_SLABS
