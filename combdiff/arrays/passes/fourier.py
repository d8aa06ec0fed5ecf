"""Products with the matrix of a discrete Fourier transform become fast transforms: n log n operations instead of n².

    P = np.exp(-2j * np.pi * k[:, None] * k / n);   y = P @ x            y = np.fft.fft(x)
    C = np.cos(2 * np.pi * k[:, None] * k / n);     y = C @ x            y = np.fft.fft(x).real       of real x
    z = (y.conj() @ P).conj() / n                                        z = np.fft.ifft(y)

The matrix is known by what it is made of, in whatever order, also where the steps of a loop are given it. It is made
only where something else needs it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from combdiff.arrays import ops
from combdiff.arrays.plan import Plan, Recurrence, Scan, Step, interned, ordered
from combdiff.records import dataclass
from combdiff.terms.terms import MINUS_ONE, ONE, Const, times
from combdiff.terms.types import Domain


@dataclass(frozen=True, slots=True)
class _Matrix:
    """What the matrix of a transform has at (j, k): `function` of sign · 2π j k/n, times i for exp."""

    function: str
    sign: int

    @property
    def conjugate(self) -> _Matrix:
        return replace(self, sign=-self.sign) if self.function == "exp" else self


def with_fourier_transforms(plan: Plan) -> Plan:
    """The plan with fast transforms for products with matrices, in the steps of loops, too."""
    return plan if plan.loops else _transformed(plan, {})


def _transformed(plan: Plan, given: Mapping[Step, _Matrix]) -> Plan:
    """The plan with transforms; its arguments `given` are matrices of one."""
    # what is empty has no transform
    steps = [step for step in plan.steps if step.rank == 2 and plan.entries(step)]
    matrices = {step: matrix for step in steps if (matrix := _matrix(step, given)) is not None}
    loops = any(isinstance(step.op, Scan) for step in plan.steps)
    if not matrices and not loops:
        return plan
    new: dict[Step, Step] = {}
    for step in plan.steps:
        operands = tuple(new[o] for o in step.operands)
        made = step if operands == step.operands else replace(step, operands=operands)
        if isinstance(step.op, ops.Conj) and isinstance(operands[0].op, ops.Conj):
            made = operands[0].operands[0]
        elif isinstance(step.op, Scan):
            made = _of_steps(step, made, step.op, matrices)
        elif (found := _product(step, matrices)) is not None:
            matrix, side = found
            made = _transform(matrix, new[step.operands[1 - side]], step, side)
        new[step] = made
    names = {new.get(step, step): name for step, name in plan.names.items()}
    outputs, names = _scaled(*interned([new[o] for o in plan.outputs], names))
    return replace(plan, outputs=outputs, names=names)


# --- which steps are matrices of a transform ------------------------------------------------------------------------


def is_matrix_of_transform(step: Step) -> bool:
    """Whether a product with a step, which has two axes, may be a fast transform."""
    return _matrix(step, {}) is not None


def _matrix(step: Step, given: Mapping[Step, _Matrix]) -> _Matrix | None:
    """What a step is as such a matrix, be it turned over, which makes no difference, or conjugated."""
    match step.op:
        case ops.Input():
            return given.get(step)
        case ops.Call("exp" | "cos" | "sin") if step.rank == 2:
            return _as_matrix(step)
        case ops.Permute((1, 0)):
            return _matrix(step.operands[0], given)
        case ops.Conj():
            matrix = _matrix(step.operands[0], given)
            return matrix and matrix.conjugate
        case _:
            return None


def _as_matrix(step: Step) -> _Matrix | None:
    """A function of c · π · j · k / n, where c is 2 or −2, or 2i or −2i for exp."""
    assert isinstance(step.op, ops.Call), "a function"
    (argument,), (domain, other) = step.operands, step.domains
    if domain != other or not _counts_from_zero(domain) or argument.rank != 2:
        return None
    coefficient, factors = _factors(argument, ONE, (0, 1))
    axes = [at for f, at in factors if isinstance(f.op, ops.Numbers) and f.op.domain == domain]
    rest = [f for f, _ in factors if not isinstance(f.op, ops.Numbers)]
    size = Fraction(1) if any(_is_inverse_size(f, domain) for f in rest) else Fraction(domain.count or 0)
    turns = coefficient.imag if step.op.function == "exp" else coefficient.real
    is_whole = coefficient in (Const(turns, Fraction(0)), Const(Fraction(0), turns)) and abs(turns) * size == 2
    others = [f for f in rest if not _is_inverse_size(f, domain)]
    fits = sorted(axes) == [(0,), (1,)] and [f.op for f in others] == [ops.Named("pi")] and len(rest) <= 2
    return _Matrix(step.op.function, 1 if turns > 0 else -1) if is_whole and fits else None


def _counts_from_zero(domain: Domain) -> bool:
    """Whether the values of an index are 0, 1, …"""
    if domain.of is not None:
        return domain.from_zero
    return not (domain.symmetric or domain.listed or domain.common or domain.directions > 1 or domain.lower)


def _is_inverse_size(step: Step, domain: Domain) -> bool:
    """Whether it is 1/n for the number n of values of an index."""
    match step.op:
        case ops.Power():
            size, exponent = step.operands
            return exponent.op == ops.Constant(MINUS_ONE) and _is_size(size, domain)
        case _:
            return False


def _is_size(step: Step, domain: Domain) -> bool:
    """Whether it is how many values an index has, also written n + 1."""
    if step.op == ops.Size(domain) or domain.of is None or not isinstance(step.op, ops.Add):
        return step.op == ops.Size(domain)
    left = Fraction(-domain.less)
    sizes = 0
    for operand, c in zip(step.operands, step.op.coefficients, strict=True):
        match operand.op:
            case ops.Constant(value) if not (value.imag or c.imag):
                left -= c.real * value.real
            case ops.Size(of) if of == domain.of and c == ONE:
                sizes += 1
            case _:
                return False
    return sizes == 1 and not left


def _factors(step: Step, coefficient: Const, labels: ops.Row) -> tuple[Const, list[tuple[Step, ops.Row]]]:
    """A product as a number and factors that are none, each with the labels of its axes."""
    if not isinstance(step.op, ops.Mul):
        return coefficient, [(step, labels)]
    coefficient = times(coefficient, step.op.coefficient)
    found: list[tuple[Step, ops.Row]] = []
    for operand, at in zip(step.operands, step.op.places, strict=True):
        coefficient, inner = _factors(operand, coefficient, tuple(labels[axis] for axis in at))
        found += inner
    return coefficient, found


# --- transforms -----------------------------------------------------------------------------------------------------


def _product(step: Step, matrices: Mapping[Step, _Matrix]) -> tuple[_Matrix, int] | None:
    """The matrix of a product along one axis, and which operand it is; that of a cosine is of real numbers."""
    if not isinstance(step.op, ops.Tensordot) or len(step.op.left) != 1:
        return None
    for side in (0, 1):
        matrix, other = matrices.get(step.operands[side]), step.operands[1 - side]
        if matrix is not None and other not in matrices and (matrix.function == "exp" or not other.complex):
            return matrix, side
    return None


def _transform(matrix: _Matrix, x: Step, product: Step, side: int) -> Step:
    """The transform of `x`, with its axis where the product with the matrix on a side has it."""
    assert isinstance(product.op, ops.Tensordot), "a product"
    (axis,) = product.op.axes[1 - side]
    if isinstance(x.op, ops.Conj):
        whole = along(x.operands[0], axis, -matrix.sign, side)
        return entrywise(ops.Conj(), whole)
    if matrix.function == "exp":
        return along(x, axis, matrix.sign, side)
    whole = along(x, axis, -1, side)
    if matrix.function == "cos":
        return entrywise(ops.Call("real"), whole, complex=False)
    part = entrywise(ops.Call("imag"), whole, complex=False)
    return part if matrix.sign < 0 else entrywise(ops.Mul(MINUS_ONE), part)


def along(x: Step, axis: int, sign: int, side: int) -> Step:
    """The transform along an axis, which is then the first where the matrix was the first factor, else the last."""
    step = Step(ops.Fourier(axis, sign), (x,), x.domains, True)
    rest = tuple(a for a in range(x.rank) if a != axis)
    order = (axis, *rest) if side == 0 else (*rest, axis)
    if order == tuple(range(x.rank)):
        return step
    return Step(ops.Permute(order), (step,), tuple(x.domains[a] for a in order), True)


def entrywise(op: ops.Op, step: Step, complex: bool | None = None) -> Step:
    """An operation on each entry of a step."""
    if isinstance(op, ops.Aligned):
        op = op.placed((tuple(range(step.rank)),))
    return Step(op, (step,), step.domains, step.complex if complex is None else complex)


# --- scales ---------------------------------------------------------------------------------------------------------


def _scaled(outputs: Sequence[Step], names: Mapping[Step, str]) -> tuple[tuple[Step, ...], dict[Step, str]]:
    """The outputs and the names of steps with 1/n as part of the transforms of n entries that nothing else needs."""
    steps = ordered(outputs)
    # a name is a use: its value is not another one
    uses = Counter([o for step in steps for o in step.operands] + [*outputs, *names])
    divided: set[Step] = set()
    spared: dict[Step, set[int]] = defaultdict(set)
    for step in steps:
        for n, scale in enumerate(step.operands if isinstance(step.op, ops.Mul) else ()):
            found = next(filter(None, (_divisible(o, scale, uses, divided) for o in step.operands)), None)
            if found is not None:
                divided.add(found)
                spared[step].add(n)
    new: dict[Step, Step] = {}
    for step in steps:
        operands = tuple(new[o] for o in step.operands)
        made = step if operands == step.operands else replace(step, operands=operands)
        if isinstance(step.op, ops.Fourier) and step in divided:
            made = replace(made, op=replace(step.op, scaled=True))
        elif isinstance(step.op, ops.Mul) and step in spared:
            made = _without(made, step.op, spared[step])
        new[step] = made
    return tuple(new[o] for o in outputs), {new.get(step, step): name for step, name in names.items()}


def _divisible(step: Step, scale: Step, uses: Counter[Step], divided: Collection[Step]) -> Step | None:
    """The transform that a factor is made of, and nothing else is, if `scale` is one by the number of its entries."""
    while uses[step] == 1:
        match step.op:
            case ops.Fourier(axis, scaled=False) if step not in divided and _is_inverse_size(scale, step.domains[axis]):
                return step
            case ops.Fourier() | ops.Conj() | ops.Permute() | ops.Call("real" | "imag"):
                (step,) = step.operands
            case _:
                return None
    return None


def _without(step: Step, op: ops.Mul, spared: set[int]) -> Step:
    """A product without some of its factors, which are numbers."""
    kept = [n for n in range(len(step.operands)) if n not in spared]
    operands, places = tuple(step.operands[n] for n in kept), tuple(op.places[n] for n in kept)
    if op.coefficient == ONE and len(kept) == 1 and places == (tuple(range(step.rank)),):
        return operands[0]
    return replace(step, op=replace(op, places=places), operands=operands)


# --- loops ----------------------------------------------------------------------------------------------------------


def _of_steps(scan: Step, made: Step, op: Scan, matrices: Mapping[Step, _Matrix]) -> Step:
    """A loop with transforms in its steps, which are given no matrix that they do not need any more."""
    body, arrays = op.body, op.body.arrays
    given = {array: matrices[o] for array, o in zip(arrays, scan.operands, strict=True) if o in matrices}
    plan = _transformed(body.plan, given)
    if plan is body.plan:
        return made
    needed = set(plan.steps)
    idle = {n for n, array in enumerate(arrays) if array in given and array not in needed}
    dropped = {arrays[n] for n in idle}
    plan = replace(plan, arguments=tuple(a for a in plan.arguments if a.step not in dropped))
    operands = tuple(o for n, o in enumerate(made.operands) if n not in idle)
    return replace(
        made, op=replace(op, body=Recurrence(body.name, plan, body.states, body.sequences)), operands=operands
    )
