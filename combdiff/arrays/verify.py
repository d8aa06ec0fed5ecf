"""Verifies a plan, whichever pass made it: shapes fit index labels, and every operand is defined before its use.

Passes need not ask; tests run this after each of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from combdiff.arrays import ops
from combdiff.arrays.numbers import is_whole
from combdiff.arrays.plan import Loop, Plan, Root, Scan, Step
from combdiff.errors import CombDiffError
from combdiff.terms.functions import SCALAR_FUNCTIONS, ScalarFunction
from combdiff.terms.nodes import MATRICES, OBLONG, SPECTRAL, VECTORS
from combdiff.terms.types import Domain, Index, Map


class PlanError(CombDiffError):
    """A plan does not say what arrays it makes."""


def verify(plan: Plan) -> None:
    """Raise PlanError, with all that is wrong, unless the plan is sound.

    >>> import combdiff as cd
    >>> verify(cd.grad("(A::RM) -> (x::RV) -> sum((i, j), A(i, j) * x(i) * x(j))").plan(x=(3,)))
    """
    found = [*_of_plan(plan)]
    if found:
        raise PlanError("; ".join(found))


def _of_plan(plan: Plan) -> Iterator[str]:
    blocks = _blocks(plan.loops)
    arguments = (*plan.arguments, *plan.directions)
    arrays = {a.name for a in arguments if a.step is not None}
    functions = {a.name for a in arguments if a.callable}
    integers = {a.name for a in arguments if isinstance(a.kind, Map) and isinstance(a.kind.result, Index)}
    for step in _all_steps(plan):
        wrong = [*_of_step(step, blocks), *_of_integers(step, integers)]
        match step.op:
            case ops.Input(name) if name not in arrays:
                wrong.append(f"{name} is no argument")
            case ops.Unknown(name) if name not in functions:
                wrong.append(f"{name} is no function that is given")
            case ops.Slice(block=block) | ops.Checkpoint(block=block) | ops.Carried(block=block) if block not in blocks:
                wrong.append("no loop is over its block")
            case Root(equation):
                wrong += [f"in {equation.name}: {problem}" for problem in _of_plan(equation.plan)]
            case Scan(body):
                wrong += [f"in {body.name}: {problem}" for problem in _of_plan(body.plan)]
        yield from (f"{step.op.name} {step.op}: {problem}" for problem in wrong)
    for loop in plan.loops:
        yield from _of_loop(loop)


def _blocks(loops: tuple[Loop, ...]) -> dict[Domain, Domain]:
    """The blocks of all loops, with the domain that each is a part of."""
    found = {loop.block: loop.domain for loop in loops}
    for loop in loops:
        found |= _blocks(loop.inner)
    return found


def _all_steps(plan: Plan) -> Iterator[Step]:
    seen = dict.fromkeys(plan.steps)
    yield from seen
    loops = [*plan.loops]
    while loops:
        loop = loops.pop()
        loops += loop.inner
        for step in loop.body:
            if step not in seen:
                seen[step] = None
                yield step


def _of_step(step: Step, blocks: dict[Domain, Domain]) -> Iterator[str]:
    ranks = [o.rank for o in step.operands]
    try:
        rows = step.rows
    except (IndexError, ValueError, StopIteration):
        yield f"its operands are of ranks {ranks}, which it has no labels for"
        return
    found = [len(row) for row in rows]
    if found != [*ranks, step.rank]:
        yield f"its labels are for ranks {found}, and these are {[*ranks, step.rank]}"
        return
    domains: dict[int, Domain] = {}
    for row, of in zip(rows, (*step.operands, step), strict=True):
        for label, domain in zip(row, of.domains, strict=True):
            # what a loop computes on a block of an index ranges over that index
            whole = blocks.get(domain, domain)
            if label != ops.WHOLE and blocks.get(domains.setdefault(label, domain), domains[label]) != whole:
                yield f"label {label} ranges over {domains[label].name} and {domain.name}"
    yield from _of_numbers(step)
    yield from _of_fields(step)


_AS_GIVEN = (
    ops.Contraction,
    ops.Sum,
    ops.Reduced,
    ops.Cumulative,
    ops.Cross,
    ops.Conj,
    ops.View,
    ops.Roll,
    ops.Broadcast,
    ops.LaidOut,
    ops.Stack,
)
"""Complex where what they are made of is."""


def _of_numbers(step: Step) -> Iterator[str]:
    """Where a result is complex, or is not."""
    given = any(o.complex for o in step.operands)
    match step.op:
        case ops.Call(name):
            yield from _of_function(step, SCALAR_FUNCTIONS[name])
        case ops.Add(coefficients):
            if step.complex != (given or any(c.imag for c in coefficients)):
                yield "it is complex where its terms are"
        case ops.Mul(coefficient):
            if step.complex != (given or bool(coefficient.imag)):
                yield "it is complex where its factors are"
        case op if isinstance(op, _AS_GIVEN):
            if step.complex != given and not isinstance(step.op, ops.Item):
                yield "it is complex where what it is made of is"
        case ops.Factors():
            if step.complex != given:
                yield "it is complex where its matrix is"
        case ops.OfMatrices(kind):
            if step.complex != (given and kind not in VECTORS | {"logabsdet"}):
                yield "it is complex where its matrices are"
        case ops.Solve() if isinstance(step.operands[0].op, ops.Factors):
            if step.complex != step.operands[0].complex:
                yield "it is complex where its factors are"
        case ops.Gather() | ops.Placing() | ops.Sparse():
            if step.complex != step.operands[0].complex:
                yield "it is complex where what it is made of is"
        case ops.Counting() | ops.Position() | ops.Opposite() | ops.Occurring() | ops.Size() | ops.Norm():
            if step.complex:
                yield "places, sizes and norms are real"


def _of_integers(step: Step, arguments: Collection[str]) -> Iterator[str]:
    """What says where entries lie is made of integers, which arguments of these names hold."""
    match step.op:
        case ops.Gather() | ops.Placing() if not all(_holds_integers(o, arguments) for o in step.operands[1:]):
            yield "a place is no integer"
        case ops.Counted() if step.complex or not all(_holds_integers(o, arguments) for o in step.operands):
            yield "it counts integers"
        case ops.Occurring() if step.rank != 1 or not _holds_integers(step.operands[0], arguments):
            yield "it has one axis, and is made of integers"
        case ops.AsFloat() if step.complex or not (
            _holds_integers(step.operands[0], arguments) or is_whole(step.operands[0])
        ):
            yield "it reads no integers"


def _holds_integers(step: Step, arguments: Collection[str]) -> bool:
    match step.op:
        case ops.Range() | ops.Place() | ops.Position() | ops.Opposite() | ops.Constant() | ops.Size():
            return True
        case ops.Occurring():
            return True
        case ops.Reduced("argmax" | "argmin"):
            return True
        case ops.Input(name):
            return name in arguments
        case ops.View() | ops.Gather() | ops.Roll() | ops.LaidOut() | ops.Broadcast():
            return _holds_integers(step.operands[0], arguments)
        case _:
            return False


def _of_function(step: Step, row: ScalarFunction) -> Iterator[str]:
    if step.complex and row.real_valued:
        yield f"{row.name} is real"
    if row.arity != len(step.operands):
        yield f"{row.name} takes {row.arity} numbers, and {len(step.operands)} are given"


def _of_fields(step: Step) -> Iterator[str]:
    """The parameters of an operation fit the number of its operands and axes."""
    ranks = [o.rank for o in step.operands]
    match step.op:
        case ops.Add(coefficients) if len(coefficients) != len(ranks):
            yield f"{len(coefficients)} coefficients are for {len(ranks)} terms"
        case ops.Position(coefficients) if len(coefficients) != len(ranks):
            yield f"{len(coefficients)} coefficients are for {len(ranks)} indices"
        case ops.Permute(order) | ops.LaidOut(order) if sorted(order) != list(range(step.rank)):
            yield f"{order} is no order of {step.rank} axes"
        case ops.Pick(fixed) if not all(0 <= axis < ranks[0] for axis, _, _ in fixed):
            yield "an axis that is fixed is not there"
        case ops.Pick(fixed) if any(step.operands[0].domains[axis] != domain for axis, _, domain in fixed):
            yield "an index that is fixed is of another domain"
        case ops.Sum(axes) if not axes or not all(0 <= axis < ranks[0] for axis in axes):
            yield f"axes {axes} are not summed over"
        case ops.Flip(axis) | ops.Roll(axis) | ops.Cumulative(axis) | ops.Fourier(axis) if not 0 <= axis < step.rank:
            yield f"axis {axis} is not there"
        case ops.Fourier() | ops.HalfFourier() | ops.FromHalfFourier():
            yield from _of_transform(step)
        case ops.Windows() as op:
            yield from _of_windows(step, op)
        case ops.Put() as op:
            yield from _of_put(step, op)
        case ops.Cross() if any(o.domains != step.domains or o.domains[-1].count != 3 for o in step.operands):
            yield "it is made of vectors of three entries, and has their axes"
        case ops.Factors() | ops.OfMatrices() | ops.Solve():
            yield from _of_linear_algebra(step)
        case Scan():
            yield from _of_scan(step, step.op)
        case ops.Item(number) if isinstance(step.operands[0].op, Scan):
            items = step.operands[0].op.items
            if number >= len(items):
                yield f"the loop has {len(items)} results"
            elif items[number] != (step.domains, step.complex):
                yield "it has other axes, or other numbers, than this result of the loop"
        case ops.Gather(slots, rank) if any(slot and max(slot) >= rank for slot in slots):
            yield f"the index arrays have more than {rank} axes"


def _of_transform(step: Step) -> Iterator[str]:
    given = step.operands[0]
    match step.op:
        case ops.Fourier(_, sign) if sign not in (-1, 1) or not step.complex:
            yield "a transform is complex, and its sign is 1 or -1"
        case ops.HalfFourier(axis) if not step.complex or step.domains[axis] != given.domains[axis].half:
            yield "half of a transform is complex, and has half the axis"
        case ops.FromHalfFourier(axis) if step.complex or step.domains[axis].half != given.domains[axis]:
            yield "what half of a transform gives is real, and has the whole axis"


def _of_windows(step: Step, op: ops.Windows) -> Iterator[str]:
    """Each axis counts along one of the operand, and two neighbours along one if what they say is a view of a copy."""
    (x,) = step.operands
    if not len(op.along) == len(op.by) == step.rank or not {*op.along} <= {*range(x.rank)} or len(op.starts) != x.rank:
        yield "its axes are not along those of the operand"
    elif op.shared is not None and not (
        0 <= op.shared < step.rank - 1
        and op.along.count(op.along[op.shared]) == 2
        and op.along[op.shared] == op.along[op.shared + 1]
    ):
        yield "the windows that it shows are not along one axis"


def _of_linear_algebra(step: Step) -> Iterator[str]:
    match step.op:
        case ops.Factors(singular=True) if step.rank == 2 and step.operands[0].domains == step.domains:
            pass
        case ops.Factors() if _halves(step.operands[0]) is None or step.operands[0].domains != step.domains:
            yield "it is made of a square matrix, and has its axes"
        case ops.OfMatrices(kind):
            yield from _of_matrices(step, kind)
        case ops.Solve(adjoint):
            yield from _of_solve(step, adjoint)


def _of_matrices(step: Step, kind: str) -> Iterator[str]:
    """Matrices in the last two axes, all of one shape, and numbers for their vectors; for each of them a value."""
    given = step.operands[0].domains
    count = sum(len(o.domains) == len(given) for o in step.operands)
    shapes = {o.domains for o in step.operands[:count]}
    square = len(given) >= 2 and (kind in OBLONG or given[-1] == given[-2])
    if len(shapes) > 1 or not square:
        yield "its matrices are not square, or not alike"
    elif len(step.operands) - count > 2 * (kind in SPECTRAL) or any(
        o.domains != (*given[:-2], given[-1]) for o in step.operands[count:]
    ):
        yield "its vectors have other numbers than its matrices have columns"
    elif step.domains != (given if kind in MATRICES else (*given[:-2], given[-1]) if kind in VECTORS else given[:-2]):
        yield "it has other axes than the values for its matrices"


def _has_axis(step: Step, axis: int, place: int) -> bool:
    """Whether something can be written at a place of an axis; only ranges that begin at 0 are counted from the end."""
    return 0 <= axis < step.rank and (place >= 0 or step.domains[axis].from_zero)


def _of_put(step: Step, op: ops.Put) -> Iterator[str]:
    """Each operand lies in a part of the result."""
    count = len(step.operands) - op.base
    if not len(op.fixed) == len(op.places) == count:
        yield f"{len(op.fixed)} places are for {count} operands"
    elif any(not _has_axis(step, axis, place) for at in op.fixed for axis, place in at):
        yield "a place where it writes is not there"
    elif any({a for a, _ in at} & {*row} for at, row in zip(op.fixed, op.places, strict=True)):
        yield "an operand has an axis that is fixed"
    elif not all(_has_axes_of_part(step, op, n) for n in range(count)):
        yield "an operand has other axes than the part in which it lies"
    elif not all(_lies_in_part(step, op, n) for n in range(count)):
        yield "a part of which it is made lies beyond its ends"


def _has_axes_of_part(step: Step, op: ops.Put, n: int) -> bool:
    """Whether the axes of an operand of a `Put` are those at which they are put, but for those where it is shorter."""
    part, at, starts = step.operands[op.base + n], op.places[n], op.starts_of(n)
    return all(d == step.domains[axis] for axis, d in zip(at, part.domains, strict=True) if axis not in starts)


def _lies_in_part(step: Step, op: ops.Put, n: int) -> bool:
    """Whether an operand of a `Put` is as long as the part in which it lies, on the axes where it is shorter."""
    part, at = step.operands[op.base + n], op.places[n]
    for axis, start in op.starts_of(n).items():
        if axis not in at:
            return False
        own, whole = part.domains[at.index(axis)], step.domains[axis]
        if own.count is not None and whole.count is not None:
            behind = whole.count - own.count - start
        else:
            behind = own.less - whole.less - start
        if min(start, behind) < 0:
            return False
    return True


def _of_solve(step: Step, adjoint: bool) -> Iterator[str]:
    """Matrices from the space of the solution to that of the right-hand side."""
    *matrices, k = step.operands
    factorised = [isinstance(o.op, ops.Factors) for o in matrices]
    if len(matrices) not in (1, 2) or (len(matrices) > 1 and any(factorised)):
        yield "it has one matrix, the factors of one, or two matrices"
    if adjoint and not all(factorised) and step.op != ops.Solve(adjoint, triangular=True):
        yield "the adjoint of what is no product of factors"
    for matrix in matrices:
        found = _halves(matrix)
        several = k.domains[matrix.rank // 2 :]
        if found is None or [k.domains, step.domains] != [d + several for d in (found[::-1] if adjoint else found)]:
            yield "its matrix is not from the solution's axes to those of the right-hand side"


def _of_scan(step: Step, op: Scan) -> Iterator[str]:
    """A loop is given what a step takes, and a step makes states of the kind that it takes."""
    arrays, outputs = op.body.arrays, op.body.plan.outputs
    if len(arrays) != len(step.operands) or len(arrays) < op.body.states + op.body.sequences:
        yield f"a step takes {len(arrays)} arrays, and the loop is given {len(step.operands)}"
        return
    if len(outputs) < op.body.states or not op.body.plan.tupled:
        yield f"a step returns a tuple, with {op.body.states} states first"
        return
    for n, (array, given) in enumerate(zip(arrays, step.operands, strict=True)):
        is_sequence = op.body.states <= n < op.body.states + op.body.sequences
        if given.domains != ((op.domain,) if is_sequence else ()) + array.domains:
            yield f"argument {n + 1} of a step has other axes than the loop is given"
        if given.complex and not array.complex:
            yield f"argument {n + 1} of a step is real, and the loop is given complex numbers"
    if op.halts is not None and (op.halts >= op.body.states or arrays[op.halts].domains):
        yield "the loop halts at what is no number among its states"
    for n, (state, following) in enumerate(zip(arrays, outputs[: op.body.states], strict=False)):
        if (state.domains, state.complex) != (following.domains, following.complex):
            yield f"state {n + 1} is of another kind after a step"


def _halves(matrix: Step) -> tuple[tuple[Domain, ...], tuple[Domain, ...]] | None:
    """The domains of the rows and of the columns of a matrix; None where there are not as many of both."""
    middle, odd = divmod(matrix.rank, 2)
    return None if odd or not middle else (matrix.domains[:middle], matrix.domains[middle:])


def _of_loop(loop: Loop) -> Iterator[str]:
    """The parts of a loop put together are the steps that it computes."""
    body = set(loop.body)
    for m in loop.members:
        kept = loop.width > 1
        expected = tuple(
            loop.block if kept and n == m.axis else d for n, d in enumerate(m.step.domains) if kept or n != m.axis
        )
        if m.part.domains != expected:
            yield f"loop over {loop.domain.name}: a part of {m.step.op} has other axes"
        if m.axis is not None and m.step.domains[m.axis] != loop.domain:
            yield f"loop over {loop.domain.name}: axis {m.axis} of {m.step.op} ranges over another index"
        if m.kept and m.part not in body:
            yield f"loop over {loop.domain.name}: what is kept of {m.step.op} does not depend on the turn"
    for inner in loop.inner:
        yield from _of_loop(inner)
