"""What the text of a step mentions: which operands, how often, and whose memory they show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from combdiff.arrays import ops
from combdiff.arrays.plan import Loop, Step
from combdiff.terms.types import Domain


def is_inner_product(step: Step) -> bool:
    """Σ a' b on whole arrays, which does not need a' (and Σ a b over several axes, where a is real)."""
    if not isinstance(step.op, ops.Tensordot) or step.rank:
        return False
    a, _ = step.operands
    return step.op.left == step.op.right and (isinstance(a.op, ops.Conj) or (a.rank > 1 and not a.complex))


def is_matmul(step: Step) -> bool:
    """Whether a contraction is written with `@` between two matrices or vectors."""
    return isinstance(step.op, ops.Tensordot) and all(o.rank <= 2 for o in step.operands)


def is_abs2(step: Step) -> bool:
    """|z|² of complex numbers, which is written with z twice."""
    return isinstance(step.op, ops.Call) and step.op.function == "abs2" and step.operands[0].complex


def uses_of(step: Step) -> Iterable[Step]:
    """The operands that the text of a step mentions, as often as it does."""
    if is_abs2(step):
        return (*step.operands, *step.operands)
    if is_inner_product(step) and isinstance(step.operands[0].op, ops.Conj):
        return (step.operands[0].operands[0], step.operands[1])
    return step.operands


def uses_in(loop: Loop) -> Sequence[Step]:
    """What the text of a loop mentions from outside, as often as it does."""
    inside = set(loop.body)
    mentioned = (*(o for step in loop.single for o in uses_of(step)), *(o for p in loop.inner for o in uses_in(p)))
    return tuple(o for o in mentioned if o not in inside)


def origin(step: Step, *through: type[ops.Op]) -> Step:
    """The array that `step` shows, or shows a part of; what the operations in `through` are made of."""
    while isinstance(step.op, (*ops.SHOWING, ops.Broadcast, *through)) and step.operands:
        step = step.operands[0]
    return step


def may_miss(places: Step) -> bool:
    """Whether there are places modulo a number of values that may be 0: conditions keep what is read in range."""
    match places.op:
        case ops.Position(modulo=Domain(count=None) as domain):
            return domain not in places.domains
        case ops.View() | ops.Broadcast():
            return may_miss(places.operands[0])
        case _:
            return False
