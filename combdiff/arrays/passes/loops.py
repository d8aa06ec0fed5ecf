"""Plans to plans with loops over an index, so that what is large is read once and what is made on the way stays small.

Steps that carry an index are computed together for one value of it at a time, or for a block of values: a step that is
cut along the index is written slice by slice, one that contracts it adds up, and what only the loop needs never exists
as a whole. Three uses of the one mechanism:

    one pass    J(p, q) = Σ V(p, q, r, s) P(r, s) and K(p, q) = Σ V(p, r, s, q) P(r, s) each read all of V from memory;
                in a loop over p both are computed while V[p] is in the cache, and no more than V[p] is ever transposed
    fusion      a gather, a product with it and the sum over that, for one neighbour b after the other: the temporaries
                are as many times smaller as there are neighbours, and stay in the cache
    memory      the same where a limit asks for it (`memory.py`)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from combdiff.arrays import ops
from combdiff.arrays.layouts import BY_SLABS, placement
from combdiff.arrays.passes.cuts import Cut, cuts, part
from combdiff.arrays.plan import Builder, Loop, Member, Plan, Step
from combdiff.terms.types import Domain


@dataclass(frozen=True, slots=True)
class Costs:
    """What decides whether a loop pays, in bytes.

    `large`: from where an array is read from memory, and no longer from a cache; `small`: up to where it may be stored
    between a loop and what comes after it. `turn`: what could be read in the time that Python takes for a statement of
    one. A turn takes so many values that the largest slice has about `thin` bytes, or `slab` where single values would
    make vectors of matrices; `cache`: what the slices of one turn may be together. What is contracted with a large
    array must be smaller by the factor `light`.
    """

    large: int = 16 << 20
    small: int = 1 << 20
    turn: int = 16 << 10
    thin: int = 128 << 10
    slab: int = 1 << 20
    cache: int = 16 << 20
    light: int = 4


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


# --- what a loop holds ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Group:
    """Steps that can be computed in one loop, with the index that each is cut along.

    `elsewhere` are the steps of other loops: of these, what is kept is there, and what it is made of need not be.
    """

    domain: Domain
    cuts: Mapping[Step, Cut]
    kept: frozenset[Step]
    elsewhere: frozenset[Step] = frozenset()


def grown(plan: Plan, seeds: Mapping[Step, Cut], least: int, small: int, apart: Collection[Step] = ()) -> Group | None:
    """The loop that holds `seeds`, what needs them slice by slice, and the arrays of `least` bytes that these are of.

    What needs a result of the loop as a whole comes after it. None if the seeds cannot be computed in one loop.
    """
    domain = ranged(*next(iter(seeds.items())))
    wanted, refused = dict(seeds), set[Step]()
    late = next(iter(seeds)) in apart
    members = _carried(plan, wanted, apart, late)
    while not members.keys().isdisjoint(seeds):
        more = {o: c for o, c in _operands(plan, members, least, domain) if o not in refused and (o in apart) == late}
        if not more:
            return _pruned(plan, domain, members, least, small)
        tried = _carried(plan, wanted | more, apart, late)
        if members.keys() <= tried.keys():
            members, wanted = tried, wanted | more
        refused |= more.keys()
    return None


def ranged(step: Step, cut: Cut) -> Domain:
    """The domain of the index that a step is cut along."""
    if cut.axis is not None:
        return step.domains[cut.axis]
    return next(o.domains[axis] for o, axis in zip(step.operands, cut.slices, strict=True) if axis is not None)


def _carried(plan: Plan, wanted: Mapping[Step, Cut], apart: Collection[Step], late: bool) -> dict[Step, Cut]:
    """The wanted steps, and all that carry the index on from them, as far as nothing waits for the loop to end."""
    members: dict[Step, Cut] = {}
    waiting: set[Step] = set()
    home = {step: loop for loop in plan.loops for step in loop.steps}
    for step in plan.steps:
        loop = home.get(step)
        group, needed = ((step,), step.operands) if loop is None else (loop.steps, loop.reads)
        if not waiting.isdisjoint(needed) or (loop is not None and not members.keys().isdisjoint(needed)):
            waiting.update(group)
            continue
        cut = _along(step, members, wanted.get(step))
        if cut is not None and step not in home and (step in apart) == late:
            members[step] = cut
            if cut.axis is None:
                waiting.add(step)
        elif not members.keys().isdisjoint(step.operands):
            waiting.add(step)
    return members


def _along(step: Step, members: Mapping[Step, Cut], wanted: Cut | None) -> Cut | None:
    """The cut of a step that fits those of its operands."""
    if wanted is None and members.keys().isdisjoint(step.operands):
        return None
    for cut in (wanted,) if wanted is not None else cuts(step):
        pairs = zip(step.operands, cut.slices, strict=True)
        if all(members[o].axis == axis for o, axis in pairs if o in members):
            return cut
    return None


def _operands(plan: Plan, members: Mapping[Step, Cut], least: int, domain: Domain) -> Iterable[tuple[Step, Cut]]:
    """Large arrays that members need slice by slice, and that could be made so."""
    for step, cut in members.items():
        for operand, axis in zip(step.operands, cut.slices, strict=True):
            if axis is None or operand in members or not operand.operands or plan.entries(operand) * 8 < least:
                continue
            found = next((c for c in cuts(operand) if c.axis == axis), None)
            if found is not None:
                yield operand, found


def _pruned(plan: Plan, domain: Domain, members: dict[Step, Cut], least: int, small: int) -> Group:
    """Without the last steps that could as well come after the loop, for they work on small arrays.

    Of what is left at each stage, that with the fewest results: 2 x − y is made in the loop, rather than x and y kept.
    """
    elsewhere = frozenset(step for loop in plan.loops for step in loop.steps)
    users: dict[Step, list[Step]] = {}
    single = ((step, step.operands) for step in plan.steps if step not in elsewhere)
    for user, operands in (*single, *((loop.steps[0], loop.reads) for loop in plan.loops)):
        for o in operands:
            users.setdefault(o, []).append(user)

    def kept(step: Step) -> bool:
        return step in plan.outputs or any(u not in members for u in users.get(step, ())) or members[step].axis is None

    def group() -> Group:
        return Group(domain, dict(members), frozenset(m for m in members if kept(m)), elsewhere)

    stages = [group()]
    for step in reversed(list(members)):
        if any(u in members for u in users.get(step, ())):
            continue
        sliced = [o for o, axis in zip(step.operands, members[step].slices, strict=True) if axis is not None]
        reads = any(o not in members and _bytes(plan, o) >= least for o in sliced)
        stored = sum(_bytes(plan, o) for o in {*sliced} if o in members and not kept(o))
        if not reads and stored < small and len(members) > 1:
            del members[step]
            stages.append(group())
    return min(stages, key=lambda g: (len(g.kept), len(g.cuts)))


def _bytes(plan: Plan, step: Step) -> int:
    """The size of an array, also of an argument or of a view."""
    return plan.entries(step) * (16 if step.complex else 8)


# --- the loop itself ------------------------------------------------------------------------------------------------


def with_loop(plan: Plan, group: Group, width: int) -> Plan:
    """The plan with one more loop, which takes `width` values of the index at a time."""
    block = Domain(f"{group.domain.name} block {sum(1 for _ in all_loops(plan.loops))}")
    loop = looped(group, width, block)
    return replace(plan, loops=(*plan.loops, loop), sizes={**plan.sizes, block: width})


def all_loops(loops: Iterable[Loop]) -> Iterable[Loop]:
    """Loops, and the loops in them."""
    for loop in loops:
        yield loop
        yield from all_loops(loop.inner)


def looped(group: Group, width: int, block: Domain) -> Loop:
    """The loop over blocks of `width` values."""
    make = Builder()
    parts: dict[Step, Step] = {}
    own = block if width > 1 else None
    for step, cut in group.cuts.items():
        operands = tuple(
            o if axis is None else parts[o] if o in parts else _slice(make, o, axis, block, own, group.elsewhere)
            for o, axis in zip(step.operands, cut.slices, strict=True)
        )
        parts[step] = part(make, step, cut, operands, own)
    members = tuple(Member(s, cut.axis, cut.slices, parts[s], s in group.kept) for s, cut in group.cuts.items())
    return Loop(group.domain, width, block, members)


def _slice(
    make: Builder, array: Step, axis: int, block: Domain, own: Domain | None, elsewhere: Collection[Step]
) -> Step:
    """A slice of an array from outside; of a view or a conjugate, which is perhaps never made, that of a slice."""
    if isinstance(array.op, ops.View | ops.Conj) and not isinstance(array.op, ops.Item) and array not in elsewhere:
        found = next((c for c in cuts(array) if c.axis == axis), None)
        if found is not None and found.slices[0] is not None:
            inside = _slice(make, array.operands[0], found.slices[0], block, own, elsewhere)
            return part(make, array, found, (inside,), own)
    kept = (own,) if own is not None else ()
    domains = (*array.domains[:axis], *kept, *array.domains[axis + 1 :])
    return make.step(ops.Slice(axis, block), (array,), domains, array.complex)


# --- which loops pay ------------------------------------------------------------------------------------------------


def _seeds(plan: Plan, costs: Costs) -> Iterable[Mapping[Step, Cut]]:
    """Where a loop may start: contractions of a large array along its first axis, and large temporaries along any."""
    taken = {step for loop in plan.loops for step in loop.steps}
    steps = [s for s in plan.steps if s not in taken]
    for array in (s for s in plan.steps if s.rank >= 3 and _bytes(plan, s) >= costs.large):
        found = {s: c for s in steps if (c := _light(plan, s, array, costs)) is not None}
        if found:
            yield found
    for step in steps:
        if not isinstance(step.op, ops.SHOWING) and _bytes(plan, step) >= costs.large:
            for cut in cuts(step):
                if cut.axis is not None and plan.sizes.get(step.domains[cut.axis], 0) > 1:
                    yield {step: cut}


def _light(plan: Plan, step: Step, array: Step, costs: Costs) -> Cut | None:
    """The cut of a contraction along the first axis of a large array, whose partner and result are small beside it."""
    if not isinstance(step.op, ops.Tensordot) or step.operands.count(array) != 1:
        return None
    side = step.operands.index(array)
    rest = (step, step.operands[1 - side])
    if any(costs.light * _bytes(plan, s) > _bytes(plan, array) for s in rest):
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
    saved = sum(2.0 * _bytes(plan, s) for s in unmade)
    readers: dict[Step, list[int]] = {}
    for step, cut in group.cuts.items():
        for operand, axis in zip(step.operands, cut.slices, strict=True):
            if axis is not None and _is_large(plan, operand, costs):
                readers.setdefault(operand, []).append(axis)
                saved += 2 * _bytes(plan, operand) * _copies(step, operand)
    for operand, axes in readers.items():
        saved += (len(axes) - 1) * _bytes(plan, operand)
        saved -= _bytes(plan, operand) * any(axes) / 4  # slices that do not lie together
    sums = sum(_bytes(plan, s) for s, cut in group.cuts.items() if cut.axis is None)
    return saved - turns * (costs.turn * len(group.cuts) + sums / 4)


def _is_large(plan: Plan, step: Step, costs: Costs) -> bool:
    return _bytes(plan, step) >= costs.large


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
    largest = max((_bytes(plan, s) // extent for s in {*sliced, *(s for s, _ in pairs)}), default=0)
    enough = costs.slab if any(_becomes_vector(s, cut) for s, cut in pairs) else costs.thin
    return min(max(enough // max(largest, 1), 1), extent)


def _becomes_vector(step: Step, cut: Cut) -> bool:
    """Whether a product of matrices is cut into products of one of them with vectors."""
    if not isinstance(step.op, ops.Tensordot):
        return False
    free = [o.rank - len(over) for o, over in zip(step.operands, step.op.axes, strict=True)]
    return min(free) > 0 and any(n == 1 and s is not None for n, s in zip(free, cut.slices, strict=True))


def _copies(step: Step, array: Step) -> bool:
    """Whether the contracted axes lie so that the array would be copied for the product."""
    if not isinstance(step.op, ops.Tensordot) or array.rank < 3:
        return False
    side, axes = step.operands.index(array), step.op.axes
    return placement(axes[side], array.rank, len(axes[1 - side]) == step.operands[1 - side].rank) >= BY_SLABS
