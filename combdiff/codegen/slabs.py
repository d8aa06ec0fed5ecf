"""Contractions of one large array to one pass over it: slab by slab over its first axis.

J(p, q) = Σ V(p, q, r, s) P(r, s) and K(p, q) = Σ V(p, r, s, q) P(r, s) each read all of V from memory. In a loop over
p both are computed while V[p] is in the cache. A contraction for which NumPy would copy the array in another order
becomes such a loop too: then no more than a slab is copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from combdiff.codegen.layouts import BY_SLABS, placement
from combdiff.codegen.plan import Slabs, Step, ordered
from combdiff.language.types import Domain

LARGE = 4 << 20  # bytes from which an array is read from memory, and no longer from a cache
THIN = 16 << 10  # a smaller slab does not pay for a turn of the loop
LIGHT = 4  # the rest of a member is smaller than the array by this factor


def slab_loops(outputs: Sequence[Step], sizes: Mapping[Domain, int]) -> tuple[Slabs, ...]:
    """The loops that pay: two or more contractions of a large array, or one that would copy it."""
    groups: dict[tuple[Step, int], list[Step]] = {}
    levels: dict[tuple[Step, Step], int] = {}
    steps = ordered(outputs)
    large = [s for s in steps if s.rank >= 3 and _bytes(s, sizes) >= LARGE and _bytes(s, sizes, 1) >= THIN]
    for array in large:
        for step in steps:
            before = max((levels.get((array, o), 0) for o in step.operands), default=0)
            fits = array in step.operands and slab_axis(step, array) is not None and _is_light(step, array, sizes)
            levels[array, step] = before + fits
            if fits:
                groups.setdefault((array, before), []).append(step)
    loops: tuple[Slabs, ...] = ()
    taken: set[Step] = set()
    for (array, _), members in groups.items():
        loop = Slabs(array, tuple(m for m in members if m not in taken))
        if (len(loop.members) > 1 or any(_copies(m, array) for m in loop.members)) and _is_ordered(
            outputs, (*loops, loop)
        ):
            loops = (*loops, loop)
            taken |= set(loop.members)
    return loops


def slab_axis(step: Step, array: Step) -> int | None:
    """The axis of the result that the first axis of `array` becomes; None if the step is no loop over it."""
    if step.op != "tensordot" or step.operands.count(array) != 1:
        return None
    spec: Any = step.spec
    side = step.operands.index(array)
    if 0 in spec[side]:
        return None
    other = step.operands[0]
    return other.rank - len(spec[0]) if side else 0


def inner(step: Step, array: Step) -> Step:
    """What the step does with one slab: the same contraction, an axis less."""
    axis = slab_axis(step, array)
    assert axis is not None, "members of a loop have the axis"
    spec: Any = step.spec
    side = step.operands.index(array)
    slab = Step("slab", (array,), None, array.domains[1:], array.complex)
    operands = tuple(slab if o is array else o for o in step.operands)
    axes = tuple(tuple(a - (n == side) for a in row) for n, row in enumerate(spec))
    return Step(step.op, operands, axes, step.domains[:axis] + step.domains[axis + 1 :], step.complex)


def _bytes(step: Step, sizes: Mapping[Domain, int], start: int = 0) -> int:
    return prod(sizes.get(d, 1) for d in step.domains[start:]) * (16 if step.complex else 8)


def _is_light(step: Step, array: Step, sizes: Mapping[Domain, int]) -> bool:
    """Whether the array is what takes the time: the partner and the result are small beside it."""
    rest = [step, *(o for o in step.operands if o is not array)]
    return all(LIGHT * _bytes(s, sizes) <= _bytes(array, sizes) for s in rest)


def _copies(step: Step, array: Step) -> bool:
    """Whether the contracted axes lie so that the array would be copied for the product."""
    spec: Any = step.spec
    side = step.operands.index(array)
    return placement(spec[side], array.rank, len(spec[1 - side]) == step.operands[1 - side].rank) >= BY_SLABS


def _is_ordered(outputs: Sequence[Step], loops: Sequence[Slabs]) -> bool:
    """Whether the steps have an order in which each loop is one statement."""
    home = {m: loop for loop in loops for m in loop.members}

    def needed(node: Step | Slabs) -> Iterator[Step | Slabs]:
        members = node.members if isinstance(node, Slabs) else (node,)
        return (home.get(o, o) for m in members for o in m.operands)

    done: set[Step | Slabs] = set()
    path: dict[Step | Slabs, Iterator[Step | Slabs]] = {}
    for root in (home.get(o, o) for o in outputs):
        if root not in done:
            path[root] = needed(root)
        while path:
            node = next(reversed(path))
            following = next((n for n in path[node] if n not in done), None)
            if following is None:
                done.add(node)
                del path[node]
            elif following in path:
                return False
            else:
                path[following] = needed(following)
    return True
