"""A loop over an index in a plan: the steps that it holds, and what it computes at each turn.

Steps that carry an index are computed together for one value of it at a time, or for a block of values: a step that is
cut along the index is written slice by slice, one that contracts it adds up, and what only the loop needs never exists
as a whole. `read_once.py` makes the loops that pay, `memory.py` those that a limit of memory asks for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from combdiff.arrays import ops
from combdiff.arrays.cuts import Cut, cuts, part
from combdiff.arrays.plan import Builder, Loop, Member, Plan, Step
from combdiff.records import dataclass
from combdiff.terms.types import Domain

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
        reads = any(o not in members and array_bytes(plan, o) >= least for o in sliced)
        stored = sum(array_bytes(plan, o) for o in {*sliced} if o in members and not kept(o))
        if not reads and stored < small and len(members) > 1:
            del members[step]
            stages.append(group())
    return min(stages, key=lambda g: (len(g.kept), len(g.cuts)))


def array_bytes(plan: Plan, step: Step) -> int:
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
            o if axis is None else parts[o] if o in parts else sliced(make, o, axis, block, own, group.elsewhere)
            for o, axis in zip(step.operands, cut.slices, strict=True)
        )
        parts[step] = part(make, step, cut, operands, own)
    members = tuple(Member(s, cut.axis, cut.slices, parts[s], s in group.kept) for s, cut in group.cuts.items())
    return Loop(group.domain, width, block, members)


def sliced(
    make: Builder, array: Step, axis: int, block: Domain, own: Domain | None, elsewhere: Collection[Step]
) -> Step:
    """A slice of an array from outside; of a view or a conjugate, which is perhaps never made, that of a slice."""
    if isinstance(array.op, ops.View | ops.Conj) and not isinstance(array.op, ops.Item) and array not in elsewhere:
        found = next((c for c in cuts(array) if c.axis == axis), None)
        if found is not None and found.slices[0] is not None:
            inside = sliced(make, array.operands[0], found.slices[0], block, own, elsewhere)
            return part(make, array, found, (inside,), own)
    kept = (own,) if own is not None else ()
    domains = (*array.domains[:axis], *kept, *array.domains[axis + 1 :])
    return make.step(ops.Slice(axis, block), (array,), domains, array.complex)
