"""Plans within a limit of memory: loops over the indices that cost least, their blocks as wide as fit.

While the arrays that are alive at once take more than the limit, one of those at the peak is cut along one of its
indices, in a loop with all that carries it on; where one value of one index is still too much, a loop is put into it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from combdiff.arrays.cuts import Cut, cuts
from combdiff.arrays.liveness import Peak, peak, results_of
from combdiff.arrays.passes.loops.blocks import Group, all_loops, grown, looped, ranged
from combdiff.arrays.plan import Loop, Plan, Step, has_order
from combdiff.errors import BudgetError
from combdiff.terms.types import Domain

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_SHARE = 64  # what takes less than this part of the limit need not be cut
_MOST = 12  # loops
_TRIES = 4  # to find how much would do


def bytes_of(memory: int | str | None) -> int | None:
    """A limit as bytes.

    >>> bytes_of("2 GB"), bytes_of("1.5 MiB"), bytes_of(4096), bytes_of(None)
    (2000000000, 1572864, 4096, None)
    """
    if memory is None or (isinstance(memory, int) and not isinstance(memory, bool) and memory > 0):
        return memory
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]i?)?b?(?:ytes)?\s*", str(memory), re.IGNORECASE)
    if isinstance(memory, str) and found and (size := int(float(found[1]) * _UNITS[(found[2] or "").lower()])) > 0:
        return size
    raise BudgetError(
        f"memory is {memory!r}, which is no amount", remedy='give bytes, as in 4096, or text such as "2 GB"'
    )


def within(plan: Plan, limit: int, apart: Collection[Step] = ()) -> Plan:
    """The plan with the loops that keep its arrays below `limit` bytes. Raises BudgetError where none do."""
    found, least = _searched(plan, limit, apart)
    if least.bytes > limit:
        raise _refusal(found, least, limit, _enough(plan, least.bytes, apart))
    return found


def _searched(plan: Plan, limit: int, apart: Collection[Step]) -> tuple[Plan, Peak]:
    """The plan with loops that fits the limit, or the best of those that were looked at; and what it holds at once."""
    plan = replace(plan, memory=limit)
    top = peak(plan)
    for _ in range(_MOST):
        if top.bytes <= limit:
            return _widened(plan, limit), top
        tried = [(peak(p), p) for p in _looped(plan, top, limit, apart) if has_order(p)]
        fitting = [
            (_turns(wide), n, wide)
            for n, (t, p) in enumerate(tried)
            if t.bytes <= limit
            for wide in (_widened(p, limit),)
        ]
        if fitting:
            wide = min(fitting, key=lambda f: f[:2])[2]
            return wide, peak(wide)
        best, candidate = min(tried, key=lambda pair: pair[0].bytes, default=(top, plan))
        if best.bytes >= top.bytes:
            break
        top, plan = best, candidate
    return plan, top


def _enough(plan: Plan, bytes: int, apart: Collection[Step]) -> int:
    """A limit that is kept, from so many bytes on: other arrays are cut where there is more room."""
    for _ in range(_TRIES):
        least = _searched(plan, bytes, apart)[1].bytes
        if least <= bytes:
            return bytes
        bytes = least
    return peak(replace(plan, memory=bytes)).bytes


def _turns(plan: Plan) -> int:
    """How many turns all loops make, those in loops as often as these turn."""

    def of(loops: Iterable[Loop]) -> int:
        return sum(-(-plan.sizes.get(p.domain, 1) // p.width) * (1 + of(p.inner)) for p in loops)

    return of(plan.loops)


# --- where loops may be ---------------------------------------------------------------------------------------------


def _looped(plan: Plan, top: Peak, limit: int, apart: Collection[Step]) -> Iterator[Plan]:
    """Plans with one more loop, single values of an index at a time, over something that is alive at the peak."""
    for group in _groups(plan, top, limit, apart):
        yield _with(plan, (), _single(plan, group))
    place = _path(plan.loops, top.loop) if top.loop is not None else ()
    if place:
        body = replace(plan, outputs=tuple(m.part for m in place[-1].kept), loops=place[-1].inner)
        for group in _groups(body, top, limit, frozenset(place[-1].body), late=True):
            yield _with(plan, place, _single(plan, group))
        # the loop itself may be the wrong one
        without = replace(plan, loops=tuple(p for p in plan.loops if p is not place[0]))
        for group in _groups(without, peak(without), limit, apart) if has_order(without) else ():
            yield _with(without, (), _single(plan, group))


def _single(plan: Plan, group: Group) -> Loop:
    """The loop over single values."""
    return looped(group, 1, Domain(f"{group.domain.name} block {sum(1 for _ in all_loops(plan.loops))}"))


def _groups(plan: Plan, top: Peak, limit: int, apart: Collection[Step], late: bool = False) -> Iterator[Group]:
    """What can be computed in a loop and is alive at the peak, or is part of what is made there.

    `late`: only steps of `apart`.
    """
    free = {*plan.steps}.difference(*(loop.steps for loop in plan.loops))
    free = free.intersection(apart) if late else free
    least = max(limit // _SHARE, 1)
    seen: set[frozenset[tuple[Step, Cut]]] = set()
    seeds = dict.fromkeys((*top.held, *(o for s in top.held if s is top.step for o in s.operands)))
    for step in seeds:
        for cut in cuts(step) if step in free else ():
            if plan.sizes.get(ranged(step, cut), 1) < 2:
                continue
            group = grown(plan, {step: cut}, least, least, apart)
            if group is not None and (key := frozenset(group.cuts.items())) not in seen:
                seen.add(key)
                yield group


def _path(loops: Iterable[Loop], wanted: Loop) -> tuple[Loop, ...]:
    """The loops round a loop, and it; outermost first."""
    for loop in loops:
        if loop is wanted:
            return (loop,)
        if inner := _path(loop.inner, wanted):
            return (loop, *inner)
    return ()


def _with(plan: Plan, place: tuple[Loop, ...], new: Loop) -> Plan:
    """The plan with a loop more, in the innermost of the loops `place`."""
    sizes = {**plan.sizes, new.block: new.width}
    if not place:
        return replace(plan, loops=(*plan.loops, new), sizes=sizes)
    return replace(
        plan, loops=_replaced(plan.loops, place[-1], replace(place[-1], inner=(*place[-1].inner, new))), sizes=sizes
    )


def _replaced(loops: tuple[Loop, ...], old: Loop, new: Loop) -> tuple[Loop, ...]:
    return tuple(new if p is old else replace(p, inner=_replaced(p.inner, old, new)) if p.inner else p for p in loops)


# --- how wide -------------------------------------------------------------------------------------------------------


def _widened(plan: Plan, limit: int) -> Plan:
    """Blocks as wide as fit, in the loops that hold no other."""
    for loop in [p for p in all_loops(plan.loops) if not p.inner and p.width == 1]:
        fits, fails = 1, plan.sizes.get(loop.domain, 1) + 1
        while fails - fits > 1:
            width = (fits + fails) // 2
            if peak(_of_width(plan, loop, width)).bytes <= limit:
                fits = width
            else:
                fails = width
        plan = _of_width(plan, loop, fits) if fits > 1 else plan
    return plan


def _of_width(plan: Plan, loop: Loop, width: int) -> Plan:
    """The plan with `width` values of the index at a time; the loop is not in `plan` any more."""
    found = {m.step: Cut(m.axis, m.slices) for m in loop.members}
    group = Group(loop.domain, found, frozenset(m.step for m in loop.kept))
    new = looped(group, width, loop.block)
    return replace(plan, loops=_replaced(plan.loops, loop, new), sizes={**plan.sizes, loop.block: width})


# --- what does not fit ----------------------------------------------------------------------------------------------


def _refusal(plan: Plan, least: Peak, limit: int, enough: int) -> BudgetError:
    at, taken = least.step, results_of(plan)
    if taken > limit:
        found = f"the results alone take {taken} bytes"
    elif at is None:
        found = f"the results and the objects of a call take {least.bytes} bytes"
    else:
        shape = "×".join(str(plan.sizes.get(d, "?")) for d in at.domains) or "1"
        inside = "in one turn of a loop, " if least.loop is not None else ""
        step = f"{inside}at the step {plan.names.get(at, plan.kind(at))} of shape {shape}"
        found = f"{step}, at least {least.bytes} bytes are held at once"
    remedy = f"give memory={enough} or more, or smaller arrays"
    return BudgetError(f"{found}, and memory is limited to {limit}", remedy=remedy)
