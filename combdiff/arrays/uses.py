"""What a step mentions when it is written: which operands, how often, and whose memory they show."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from combdiff.arrays.plan import VIEWS, Loop, Step


def is_inner_product(step: Step) -> bool:
    """Σ a' b on whole arrays, which does not need a' (and Σ a b over several axes, where a is real)."""
    if step.op != "tensordot" or step.rank:
        return False
    a, _ = step.operands
    spec: Any = step.spec
    return bool(spec[0] == spec[1] and (a.op == "conj" or (a.rank > 1 and not a.complex)))


def is_matmul(step: Step) -> bool:
    """Whether a contraction is written with `@` between two matrices or vectors."""
    return step.op == "tensordot" and all(o.rank <= 2 for o in step.operands)


def uses_of(step: Step) -> Iterable[Step]:
    """The operands that the text of a step mentions, as often as it does."""
    if step.op == "call" and isinstance(step.spec, tuple) and step.spec[0] == "abs2" and step.operands[0].complex:
        return (*step.operands, *step.operands)
    if is_inner_product(step) and step.operands[0].op == "conj":
        return (step.operands[0].operands[0], step.operands[1])
    return step.operands


def uses_in(loop: Loop) -> Sequence[Step]:
    """What the text of a loop mentions from outside, as often as it does."""
    inside = set(loop.body)
    mentioned = (*(o for step in loop.single for o in uses_of(step)), *(o for p in loop.inner for o in uses_in(p)))
    return tuple(o for o in mentioned if o not in inside)


def origin(step: Step, through: Collection[str] = ()) -> Step:
    """The array that `step` shows, or shows a part of; what the operations in `through` are made of."""
    while (step.op in VIEWS | {"broadcast"} or step.op in through) and step.operands:
        step = step.operands[0]
    return step
