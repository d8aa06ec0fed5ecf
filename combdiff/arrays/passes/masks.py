"""Masks are taken once, and one that leaves out the diagonal of a matrix writes into it rather than choose each entry.

u = np.where(c, a, 0) * np.where(c, b, 0)              u = np.where(c, a * b, 0)
t = np.where(i[:, None] != i, r, 1)                    np.fill_diagonal(r, 1)         where nothing else needs r
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace

from combdiff.arrays import ops
from combdiff.arrays.numbers import is_whole, may_be_integer
from combdiff.arrays.plan import Plan, Recurrence, Scan, Step, interned
from combdiff.records import dataclass
from combdiff.terms.terms import MINUS_ONE, ONE, ZERO, Const


def with_masks_once(plan: Plan) -> Plan:
    """The plan with masks taken once, also in the steps of loops.

    >>> import combdiff as cd
    >>> d = cd.simplified("(x::RV) -> sum((i, j), i != j, 1 / (x(i) - x(j))^2)")
    >>> plan = with_masks_once(d.plan(backend="jax", x=(9,)))
    >>> [type(step.op).__name__ for step in plan.steps if isinstance(step.op, ops.Where | ops.Filled)]
    ['Filled', 'Filled']
    """
    if plan.loops:
        return plan
    uses = Counter([o for step in plan.steps for o in step.operands] + [*plan.outputs, *plan.names])
    new: dict[Step, Step] = {}
    for step in plan.steps:
        operands = tuple(new[o] for o in step.operands)
        # what is made of a step that is used once is used once
        uses.update({made: uses[o] for o, made in zip(step.operands, operands, strict=True) if made not in uses})
        made = step if operands == step.operands else replace(step, operands=operands)
        match step.op:
            case ops.Mul() | ops.Add():
                made = _masked(made, uses)
            case Scan(body):
                inner = with_masks_once(body.plan)
                op = replace(step.op, body=Recurrence(body.name, inner, body.states, body.sequences))
                made = made if inner is body.plan else replace(made, op=op)
        new[step] = made
    outputs, names = interned([new[o] for o in plan.outputs], {new.get(s, s): name for s, name in plan.names.items()})
    return _filled(replace(plan, outputs=outputs, names=names))


# --- one mask for several -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Mask:
    """A condition, with the labels of its two sides, and what is 0 where it does not hold, with its labels."""

    key: Hashable
    where: Step
    sides: tuple[ops.Row, ops.Row]
    body: tuple[Step, ops.Row]


def _mask(step: Step, labels: ops.Row, uses: Counter[Step]) -> _Mask | None:
    """What is chosen by a condition, and by nothing else; its axes have these labels."""
    if not isinstance(step.op, ops.Where) or step.op.otherwise != ZERO or uses[step] > 1:
        return None
    left, right, body = (tuple(labels[axis] for axis in at) for at in step.op.places)
    key = step.op.placed(()), step.operands[:2], left, right
    return _Mask(key, step, (left, right), (step.operands[2], body))


def _masked(step: Step, uses: Counter[Step]) -> Step:
    """A product of what is masked alike, or a sum of it, under one mask."""
    assert isinstance(step.op, ops.Add | ops.Mul), "a sum or a product"
    masks = [_mask(o, at, uses) for o, at in zip(step.operands, step.op.places, strict=True)]
    if isinstance(step.op, ops.Add):
        masks = [m or _of_factor(o, at, uses) for m, o, at in zip(masks, step.operands, step.op.places, strict=True)]
    keys = Counter(m.key for m in masks if m is not None)
    key, count = max(keys.items(), key=lambda pair: pair[1], default=(None, 0))
    if count < 2 or (isinstance(step.op, ops.Add) and count < len(masks)):
        return step
    pairs = [
        m.body if m is not None and m.key == key else (o, at)
        for m, o, at in zip(masks, step.operands, step.op.places, strict=True)
    ]
    if {label for _, at in pairs for label in at} != {*range(step.rank)}:
        return step
    operands, places = tuple(o for o, _ in pairs), tuple(at for _, at in pairs)
    inner = Step(step.op.placed(places), operands, step.domains, step.complex)
    mask = next(m for m in masks if m is not None and m.key == key)
    return _under(mask, inner)


def _of_factor(step: Step, labels: ops.Row, uses: Counter[Step]) -> _Mask | None:
    """A product with one masked factor, as what is masked."""
    if not isinstance(step.op, ops.Mul) or uses[step] > 1:
        return None
    for n, (o, at) in enumerate(zip(step.operands, step.op.places, strict=True)):
        mask = _mask(o, tuple(labels[axis] for axis in at), uses)
        if mask is None:
            continue
        body, own = mask.body
        # the labels of the product's own axes
        back = tuple(labels.index(label) for label in own)
        places = (*step.op.places[:n], back, *step.op.places[n + 1 :])
        if {label for row in places for label in row} == {*range(step.rank)}:
            operands = (*step.operands[:n], body, *step.operands[n + 1 :])
            return replace(mask, body=(Step(step.op.placed(places), operands, step.domains, step.complex), labels))
    return None


def _under(mask: _Mask, body: Step) -> Step:
    """A step under a mask, over all of its axes."""
    assert isinstance(mask.where.op, ops.Where), "a mask"
    op = mask.where.op.placed((*mask.sides, tuple(range(body.rank))))
    return Step(op, (*mask.where.operands[:2], body), body.domains, body.complex)


# --- diagonals ------------------------------------------------------------------------------------------------------


def _filled(plan: Plan) -> Plan:
    """The plan with numbers written into the diagonals of matrices, where masks leave these out."""
    new: dict[Step, Step] = {}
    for step in plan.steps:
        operands = tuple(new[o] for o in step.operands)
        made = step if operands == step.operands else replace(step, operands=operands)
        if (count := _count(made)) is not None:
            made = count
        elif (body := _off_diagonal(made)) is not None:
            assert isinstance(made.op, ops.Where) and made.op.otherwise is not None, "a mask with a number"
            made = Step(ops.Filled(made.op.otherwise), (body,), step.domains, step.complex)
        new[step] = made
    outputs, names = interned([new[o] for o in plan.outputs], {new.get(s, s): name for s, name in plan.names.items()})
    return replace(plan, outputs=outputs, names=names)


def _count(step: Step) -> Step | None:
    """How many pairs of different values there are, n (n − 1), times a number, if a step counts them."""
    if not isinstance(step.op, ops.Sum) or len(step.op.axes) < 2 or not _leaves_out_the_diagonal(step.operands[0]):
        return None
    (mask,) = step.operands
    body = mask.operands[2].op
    if not isinstance(body, ops.Constant) or not isinstance(mask.op, ops.Where) or mask.op.otherwise != ZERO:
        return None
    number, one = (Step(op, (), (), False) for op in (ops.Size(mask.domains[0]), ops.Constant(ONE)))
    less = Step(ops.Add((ONE, MINUS_ONE), places=((), ())), (number, one), (), False)
    return Step(ops.Mul(body.value, places=((), ())), (number, less), (), step.complex)


def _off_diagonal(step: Step) -> Step | None:
    """What a step is where its two indices, of one range, differ, if it is a number where they are equal."""
    if not _leaves_out_the_diagonal(step):
        return None
    body = step.operands[2]
    if is_whole(body) or (not body.rank and may_be_integer(body)):
        return None
    assert isinstance(step.op, ops.Where), "a mask"
    at = step.op.places[2]
    if at == (0, 1):
        return body
    if at == (1, 0):
        return Step(ops.Permute(at), (body,), step.domains, body.complex)
    return Step(ops.Broadcast(()), (body,), step.domains, body.complex) if not at else None


def _leaves_out_the_diagonal(step: Step) -> bool:
    """Whether a step is something where two indices of one range differ, else a real number."""
    match step.op:
        case ops.Where("!=", _, Const(imag=0)) if step.rank == 2:
            left, right, _ = step.operands
            counts = isinstance(left.op, ops.Range | ops.Place) and left is right
            return counts and step.domains == (*left.domains,) * 2 and _rows(step.op.places) == ((0,), (1,))
        case _:
            return False


def _rows(places: Sequence[ops.Row]) -> tuple[ops.Row, ...]:
    """The axes that the sides of a comparison have, in order."""
    return tuple(sorted(places[:2]))
