"""The peak memory of a plan: which arrays are alive at each step, and the temporaries that a step allocates.

Arguments are not counted, and are taken to lie in memory in the order of their axes, in the type that is declared.
Where a plan has a limit, arrays are released after their last use; else one that has a name lives until the end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from combdiff.arrays import ops
from combdiff.arrays.layouts import placement
from combdiff.arrays.plan import Loop, Plan, Root, Scan, Step
from combdiff.arrays.uses import is_abs2, is_inner_product, uses_in, uses_of
from combdiff.records import dataclass

SHARE = 256  # arrays of less than this part of a limit are not released one by one
BUFFER = 16 * 8192  # what NumPy takes for an operand whose entries it must bring together
OVERHEAD = 32 << 10  # what Python takes for the objects of a call


@dataclass(frozen=True, slots=True)
class Peak:
    """The most that is held at once, at which step, and the arrays that are held then; `loop` if it is within one."""

    bytes: int
    step: Step | None
    held: tuple[Step, ...]
    loop: Loop | None = None


def peak(plan: Plan) -> Peak:
    """The most memory that the plan's arrays take at once, results among them.

    There is no step if none makes an array: where all results are numbers, or parts of arguments.
    """
    found = _peak(plan, plan.steps, plan.loops, plan.outputs)
    return Peak(found.bytes + _copies(plan) + OVERHEAD, found.step, found.held, found.loop)


def results_of(plan: Plan) -> int:
    """The bytes that the results of a call take."""
    made = {base for s in plan.outputs if (base := storage(s)) is not None}
    return sum(held_by(plan, s) for s in made) + _copies(plan)


def _copies(plan: Plan) -> int:
    """The bytes of results that are copied: parts of arguments, what is repeated, what another result shows, too."""
    copies, shown = 0, set[Step]()
    for step in plan.outputs:
        base = storage(step)
        if base is None or base in shown or isinstance(step.op, ops.Broadcast):
            copies += _size(plan, step)
        if base is not None:
            shown.add(base)
    return copies


def _peak(
    plan: Plan, steps: Sequence[Step], loops: Iterable[Loop], results: Collection[Step], passing: Collection[Step] = ()
) -> Peak:
    """The peak of some steps. Their `results` stay; what is `passing` is put into larger arrays when it is made."""
    groups = _groups(steps, loops)
    inside = set(steps)
    last: dict[Step, int] = {}
    count: dict[Step, int] = {}
    for n, (members, loop) in enumerate(groups):
        for operand in uses_of(members[0]) if loop is None else uses_in(loop):
            base = storage(operand)
            if base is not None and base in inside:
                last[base] = n
                count[base] = count.get(base, 0) + 1
    lasting = {base for s in results if (base := storage(s)) is not None}
    if plan.memory is None:
        lasting |= {s for s, n in count.items() if n > 1}
    used = {*last, *lasting, *passing}
    # names in the body of a loop still hold what the turn before has made
    alive = {s: held_by(plan, s) for s in lasting & inside if passing and plan.memory is None}
    top = Peak(0, None, ())
    for n, (members, loop) in enumerate(groups):
        held = sum(alive.values())
        if loop is None:
            (step,) = members
            made = {step: held_by(plan, step)} if step in used and storage(step) is step else {}
            here = Peak(held + sum(made.values()) + _workspace(plan, step) * bool(made), step, (*alive, step))
        else:
            made = {m.step: held_by(plan, m.step) for m in loop.kept}
            turn = _turn(plan, loop)
            here = Peak(
                held + sum(made.values()) + turn.bytes, turn.step, (*alive, *made, *turn.held), turn.loop or loop
            )
        top = max(top, here, key=lambda p: p.bytes)
        alive |= made
        alive = {s: size for s, size in alive.items() if s in lasting or last.get(s, -1) > n}
    return top


def _groups(steps: Sequence[Step], loops: Iterable[Loop]) -> list[tuple[tuple[Step, ...], Loop | None]]:
    """The statements: steps, and loops as a whole."""
    home = {step: loop for loop in loops for step in loop.steps}
    groups: dict[Step, tuple[tuple[Step, ...], Loop | None]] = {}
    for step in steps:
        loop = home.get(step)
        groups.setdefault(step if loop is None else loop.steps[0], ((step,) if loop is None else loop.steps, loop))
    return list(groups.values())


def _turn(plan: Plan, loop: Loop) -> Peak:
    """One turn of a loop; where nothing is released, all that the turn before has made is still there."""
    parts = tuple(m.part for m in loop.kept)
    return _peak(plan, loop.body, loop.inner, () if plan.memory is not None else parts, parts)


def storage(step: Step) -> Step | None:
    """The step whose array is shown; None for parts of arguments, and for numbers."""
    while isinstance(step.op, (*ops.SHOWING, ops.Broadcast)) and step.operands:
        step = step.operands[0]
    return None if isinstance(step.op, ops.SHOWING) else step


def _size(plan: Plan, step: Step) -> int:
    return plan.size(step)


def held_by(plan: Plan, step: Step) -> int:
    """The bytes that stay after a step: |z|² is the real part of a complex array."""
    if isinstance(step.op, ops.SHOWING):
        return 0
    return _size(plan, step) * (2 if is_abs2(step) else 1)


def _workspace(plan: Plan, step: Step) -> int:
    """What is made on the way to a step and gone after it: intermediate results of an expression, copies, buffers."""
    size = _size(plan, step)
    match step.op:
        case ops.Einsum():
            return _buffers(plan, step)
        case ops.Tensordot(left, right):
            return _copied(plan, step, ((), ()), (left, right))
        case ops.Batched(batch, axes):
            return _copied(plan, step, batch, axes)
        case ops.Add(coefficients):
            scaled = sum(abs(c.real) != 1 or bool(c.imag) for c in coefficients)
            return size * min(int(scaled) + (len(coefficients) > 2), 2) + _buffers(plan, step)
        case ops.Mul(c):
            factors = len(step.operands) + (c.real.numerator != 1) + (c.real.denominator != 1)
            return size * (factors > 2 or bool(c.imag)) + _buffers(plan, step)
        case ops.Call() if is_abs2(step):
            return 4 * size
        case ops.Factors() | ops.CumulativeTies() as op:
            return size * (12 if isinstance(op, ops.CumulativeTies) else 1)
        case ops.OfMatrices() | ops.Norm():
            # what is factorised is a copy; so are the lengths of entries, and what they are divided by
            return 2 * sum(_size(plan, o) for o in step.operands)
        case ops.Solve() as op if op.triangular or isinstance(step.operands[0].op, ops.Factors):
            return 2 * sum(_size(plan, s) for s in (step, step.operands[1]))
        case ops.Where() | ops.Position() | ops.Solve():
            return 2 * sum(_size(plan, s) for s in (step, *step.operands))
        case ops.Power():
            return size + _buffers(plan, step)
        case ops.Placing():
            return sum(_size(plan, o) for o in step.operands)
        case ops.Windows() | ops.Correlated() as op:
            return _of_windows(plan, step, op)
        case ops.Sparse():
            # the places, a number for each, and rows that do not lie in order
            return 4 * _size(plan, step.operands[1]) + _size(plan, step.operands[0])
        case Root() | Scan() as op:
            return _within(op)
        case _:
            return 0


def _of_windows(plan: Plan, step: Step, op: ops.Windows | ops.Correlated) -> int:
    """The copy of an array whose windows are read, and what `np.correlate` gets of the other one."""
    if isinstance(op, ops.Windows):
        return _with_zeros(plan, step, op.along, op.by, op.starts)
    x, y = step.operands
    read = Step(ops.Windows((0, 0), (op.by, op.step), (op.start,)), (x,), (*step.domains, *y.domains), step.complex)
    return _workspace(plan, read) + abs(op.step) * _size(plan, y)


def _with_zeros(plan: Plan, step: Step, along: ops.Row, by: ops.Row, starts: ops.Starts) -> int:
    """The copy of an array with zeros around it, where windows reach beyond its ends."""
    (x,) = step.operands
    count = {d: d.extent(plan.sizes) for d in (*x.domains, *step.domains)}
    whole, reaches = 1, False
    for axis, domain in enumerate(x.domains):
        moves = [c * (count[d] - 1) for c, a, d in zip(by, along, step.domains, strict=True) if a == axis]
        first = starts[axis][0] + sum(c * d.extent(plan.sizes) for d, c in starts[axis][1])
        before = max(0, -first - sum(min(m, 0) for m in moves))
        behind = max(0, first + sum(max(m, 0) for m in moves) + 1 - count[domain])
        whole *= before + count[domain] + behind
        reaches = reaches or before + behind > 0
    return whole * (16 if step.complex else 8) if reaches or step.complex > x.complex else 0


def _within(op: Root | Scan) -> int:
    """What an equation, or a step of a loop, needs at once."""
    if isinstance(op, Root):
        inner = op.equation.plan
        return sum(held_by(inner, s) + _workspace(inner, s) for s in inner.steps)
    # a step's results are there beside those of the step before
    inner = op.body.plan
    return _peak(inner, inner.steps, inner.loops, inner.outputs).bytes + results_of(inner)


def _buffers(plan: Plan, step: Step) -> int:
    """What NumPy takes where operands are repeated along axes, or are real beside complex ones."""
    return sum(min(_size(plan, s), BUFFER) for s in (step, *step.operands))


def _copied(plan: Plan, step: Step, batch: tuple[ops.Row, ops.Row], over: tuple[ops.Row, ops.Row]) -> int:
    """The operands of a product that are copied for it: to have their axes in another order, or as complex numbers."""
    copies = 0
    for side, operand in enumerate(step.operands):
        if operand.rank and step.complex and not operand.complex:
            copies += 2 * _size(plan, operand)
        if not _reads(step, side, batch[side], over):
            copies += _size(plan, operand)
    return copies


def _reads(step: Step, side: int, batch: ops.Row, over: tuple[ops.Row, ops.Row]) -> bool:
    """Whether the product reads an operand as it lies."""
    operand = step.operands[side]
    if operand.rank < 2 or (isinstance(operand.op, ops.Windows) and operand.op.shared is not None):
        return True
    if isinstance(step.op, ops.Batched):
        return _is_stack(operand, batch, over[side], first=side == 0)
    if is_inner_product(step):
        return is_ordered(operand.operands[0] if isinstance(operand.op, ops.Conj) else operand)
    if all(o.rank <= 2 for o in step.operands):
        return not isinstance(operand.op, ops.Slice) or is_ordered(operand)
    whole = len(over[1 - side]) == step.operands[1 - side].rank
    return placement(over[side], operand.rank, whole) <= 2 and is_ordered(operand)


def _is_stack(operand: Step, batch: tuple[int, ...], over: tuple[int, ...], first: bool) -> bool:
    """Whether an array is a stack of matrices as it lies, or has no axes to be joined for that."""
    free = tuple(axis for axis in range(operand.rank) if axis not in (*batch, *over))
    order = (*batch, *free, *over) if first else (*batch, *over, *free)
    return len(free) == len(over) == 1 or (order == tuple(range(operand.rank)) and is_ordered(operand))


_IN_ORDER = (
    ops.Input,
    ops.Contraction,
    ops.Stack,
    ops.Placing,
    ops.Sparse,
    ops.Put,
    ops.Roll,
    ops.Solve,
    ops.OfMatrices,
    ops.Unknown,
)


def is_ordered(step: Step) -> bool:
    """Whether an array surely lies in the order of its axes, without gaps."""
    match step.op:
        case op if isinstance(op, _IN_ORDER):
            return True
        case ops.Windows(shared=None):
            return True
        case ops.Slice(0):
            return is_ordered(step.operands[0])
        case ops.Conj():
            return is_ordered(step.operands[0])
        case ops.Add() | ops.Mul() | ops.Power() | ops.Call() | ops.Where():
            pairs = zip(step.operands, step.rows, strict=False)
            return all(at == tuple(range(step.rank)) and is_ordered(o) for o, at in pairs if o.rank == step.rank)
        case _:
            return step.rank < 2 and not isinstance(step.op, ops.SHOWING)
