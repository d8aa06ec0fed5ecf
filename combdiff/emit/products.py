"""Sums and products of arrays as text: `@` wherever it will do, tensordot and reshaped views, einsum for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from combdiff.arrays import ops
from combdiff.arrays.plan import Step
from combdiff.arrays.uses import is_inner_product
from combdiff.emit.solvers.chosen import solver_of
from combdiff.emit.texts import Text, Writer, filled
from combdiff.language.printing.document import ATOM, PRODUCT, SIGN
from combdiff.terms.terms import PLACES


def reduction(w: Writer, step: Step, op: ops.Sum) -> Text:
    operand, axes = step.operands[0], op.axes
    if isinstance(operand.op, ops.Diagonal) and not w.refer(operand).code.isidentifier():
        return filled(w.spelling.trace, w.refer(operand.operands[0]))
    array = w.atom(step.operands[0])
    if not step.rank:
        return Text(f"{array}.sum()", ATOM)
    return Text(f"{array}.sum(axis={axes[0] if len(axes) == 1 else axes})", ATOM)


def reduced(w: Writer, step: Step, op: ops.Reduced) -> Text:
    array = w.atom(step.operands[0])
    if op.kind == "prod":
        if not step.rank:
            return Text(f"{array}.prod()", ATOM)
        # some libraries take one axis at a time
        return Text(array + "".join(f".prod(axis={axis})" for axis in sorted(op.axes, reverse=True)), ATOM)
    axes = "" if not step.rank else f"axis={op.axes[0] if len(op.axes) == 1 else op.axes}"
    if op.kind in PLACES:
        place = w.spelling.concrete.format(f"{array}.{op.kind}({axes})")
        # one place among slices is an integer where brackets take no arrays
        return Text(f"{place}[()]" if w.spelling.points and not step.rank else place, ATOM)
    template = w.spelling.largest if op.kind == "maximum" else w.spelling.least
    return Text(template.format(array, axes, ", " if axes else ""), ATOM)


def cumulative(w: Writer, step: Step, op: ops.Cumulative) -> Text:
    operands = [w.refer(o) for o in step.operands]
    operands = [w.backwards(o, op.axis) for o in operands] if op.reverse else operands
    solver = solver_of(step, w.spelling)
    if solver:
        forwards = Text(f"{solver}({', '.join(o.code for o in operands)}, {op.axis})", ATOM)
    elif isinstance(op, ops.CumulativeExtremum):
        forwards = Text(w.spelling.accumulate.format(op.kind, operands[0].code, op.axis), ATOM)
    else:
        forwards = Text(f"{operands[0].at(ATOM)}.{op.name}(axis={op.axis})", ATOM)
    return w.backwards(forwards, op.axis) if op.reverse else forwards


def fourier(w: Writer, step: Step, op: ops.Fourier) -> Text:
    """A fast transform: the libraries' inverse one has the sign +, and divides by n unless it is said otherwise."""
    name, divides = ("fft", False) if op.sign < 0 else ("ifft", True)
    options = w.spelling.fourier_axis.format(op.axis) * (op.axis < step.rank - 1)
    options += ', norm="forward"' * (op.scaled != divides)
    return Text(w.spelling.fourier.format(name, w.refer(step.operands[0]).code, options), ATOM)


def cross(w: Writer, step: Step, op: ops.Cross) -> Text:
    template = w.spelling.cross or f"{solver_of(step, w.spelling)}({{0}}, {{1}})"
    return Text(template.format(*(w.refer(o).code for o in step.operands)), ATOM)


def half_fourier(w: Writer, step: Step, op: ops.HalfFourier) -> Text:
    options = w.spelling.fourier_axis.format(op.axis) * (op.axis < step.rank - 1)
    return Text(w.spelling.fourier.format("rfft", w.refer(step.operands[0]).code, options), ATOM)


def from_half_fourier(w: Writer, step: Step, op: ops.FromHalfFourier) -> Text:
    options = f", {w.alone(step.domains[op.axis])}"
    options += w.spelling.fourier_axis.format(op.axis) * (op.axis < step.rank - 1)
    return Text(w.spelling.fourier.format("irfft", w.refer(step.operands[0]).code, options), ATOM)


def tensordot(w: Writer, step: Step, op: ops.Tensordot) -> Text:
    a, b = step.operands
    over_a, over_b = op.axes
    if is_inner_product(step):
        conjugated, spelling = isinstance(a.op, ops.Conj), w.spelling
        left = w.refer(a.operands[0] if conjugated else a)
        several = (spelling.inner if conjugated else spelling.real_inner or spelling.inner) if b.rank > 1 else ""
        return filled(several or spelling.vdot, left, w.refer(b))
    if isinstance(a.op, ops.Windows) and a.op.shared is not None:
        return _of_overlapping(w, step, a.op.shared, ((), ()), op.axes)
    if a.rank <= 2 and b.rank <= 2 and len(over_a) == 1:
        return _matmul(w, a, b, over_a[0], over_b[0])
    if not w.spelling.joins_axes:
        return _axes(w, a, b, op)
    if len(over_a) == a.rank == b.rank:
        return Text(f"{_flat(w, a, over_a)} @ {_flat(w, b, over_b)}", PRODUCT)
    for (large, axes), (small, over) in permutations(zip(step.operands, op.axes, strict=True)):
        first = axes[0]
        if len(over) != small.rank or tuple(axes) != tuple(range(first, first + len(axes))):
            continue
        if first + len(axes) == large.rank or not first:
            return _flattened(w, step, large, small, over, trailing=first > 0)
        return _in_the_middle(w, step, large, axes, _vector(w, small, over))
    return _axes(w, a, b, op)


def _axes(w: Writer, a: Step, b: Step, op: ops.Tensordot) -> Text:
    over_a, over_b = op.axes
    count = len(over_a)
    neighbours = tuple(over_a) == tuple(range(a.rank - count, a.rank)) and tuple(over_b) == tuple(range(count))
    axes = str(count) if neighbours else f"({list(over_a)}, {list(over_b)})"
    return Text(w.spelling.tensordot.format(w.refer(a).code, w.refer(b).code, axes), ATOM)


def _matmul(w: Writer, a: Step, b: Step, over_a: int, over_b: int) -> Text:
    left, right = w.refer(a), w.refer(b)
    first, second = (left, over_a, a.rank), (right, over_b, b.rank)
    if a.rank == 1 and b.rank == 2 and over_b == 1:
        first, second = second, first  # x @ B.T is B @ x
    elif a.rank == 2 and b.rank == 1 and over_a == 0:
        first, second = second, first  # A.T @ x is x @ A
    (left, over_a, rank_a), (right, over_b, rank_b) = first, second
    if rank_a == 2 and over_a == 0:
        left = Text(f"{left.at(ATOM)}.T", ATOM)
    if rank_b == 2 and over_b == 1:
        right = Text(f"{right.at(ATOM)}.T", ATOM)
    return Text(f"{left.at(PRODUCT)} @ {right.at(SIGN)}", PRODUCT)


def _flat(w: Writer, step: Step, order: Sequence[int]) -> str:
    return f"{w.transposed(w.refer(step), order).at(ATOM)}.ravel()"


def _flattened(w: Writer, step: Step, a: Step, b: Step, over: Sequence[int], trailing: bool) -> Text:
    """An array that is contracted with all of another: one matrix-vector product on reshaped views."""
    vector = _vector(w, b, over)
    joined = " * ".join(w.extent(b.domains[axis]) for axis in over)
    free = " * ".join(map(w.extent, step.domains))
    matrix = f"{w.atom(a)}.reshape({f'{free}, {joined}' if trailing else f'{joined}, {free}'})"
    product = f"{matrix} @ {vector}" if trailing else f"{vector} @ {matrix}"
    if step.rank == 1:
        return Text(product, PRODUCT)
    return Text(f"({product}).reshape({', '.join(map(w.extent, step.domains))})", ATOM)


def _in_the_middle(w: Writer, step: Step, a: Step, over: Sequence[int], vector: str) -> Text:
    """An array contracted over neighbouring axes inside it: a stack of matrix-vector products on a view."""
    groups = (a.domains[: over[0]], a.domains[over[0] : over[-1] + 1], a.domains[over[-1] + 1 :])
    shape = ", ".join(" * ".join(map(w.extent, group)) for group in groups)
    product = f"{vector} @ {w.atom(a)}.reshape({shape})"
    if step.rank == 2:
        return Text(product, PRODUCT)
    return Text(f"({product}).reshape({', '.join(map(w.extent, step.domains))})", ATOM)


def _vector(w: Writer, step: Step, order: Sequence[int]) -> str:
    return w.atom(step) if step.rank == 1 else _flat(w, step, order)


def batched(w: Writer, step: Step, op: ops.Batched) -> Text:
    """A product for each value of the indices that stay in step: these axes first, the rest as matrices."""
    a, b = step.operands
    if not w.spelling.joins_axes:
        return _by_labels(w, step)
    (batch_a, batch_b), (over_a, over_b) = op.batch, op.axes
    if isinstance(a.op, ops.Windows) and a.op.shared is not None and a.rank - 1 not in over_a:
        return _of_overlapping(w, step, a.op.shared, op.batch, op.axes)
    free_a = [n for n in range(a.rank) if n not in batch_a and n not in over_a]
    free_b = [n for n in range(b.rank) if n not in batch_b and n not in over_b]
    lead = [w.extent(a.domains[n]) for n in batch_a]
    left = _stacked(w, a, batch_a, free_a, over_a, lead)
    right = _stacked(w, b, batch_b, over_b, free_b, lead)
    product = f"{left} @ {right}"
    if len(free_a) != 1 or len(free_b) != 1:
        return Text(f"({product}).reshape({', '.join(map(w.extent, step.domains))})", ATOM)
    return Text(product, PRODUCT, (left, f"@ {right}"))


def _stacked(
    w: Writer, step: Step, batch: Sequence[int], rows: Sequence[int], columns: Sequence[int], lead: list[str]
) -> str:
    text = w.transposed(w.refer(step), (*batch, *rows, *columns))
    if len(rows) == len(columns) == 1:
        return text.at(SIGN)
    groups = [_joined(w, step, group) for group in (rows, columns)]
    return f"{text.at(ATOM)}.reshape({', '.join([*lead, *groups])})"


def _joined(w: Writer, step: Step, axes: Sequence[int]) -> str:
    """The size of several axes as one; without any it is 1."""
    return " * ".join(w.extent(step.domains[n]) for n in axes) or "1"


def _of_overlapping(
    w: Writer, step: Step, shared: int, batch: tuple[ops.Row, ops.Row], axes: tuple[ops.Row, ops.Row]
) -> Text:
    """A product over the rows of matrices that overlap, one for each value of the indices before.

    The other operand comes first. It is one vector or one matrix for all of them, or for each value of the batch.
    """
    a, b = step.operands
    outer, (own, over) = range(shared + 1), (batch[1], axes[1])
    columns = range(shared + 1 + len(axes[0]), a.rank)
    rest = [n for n in range(b.rank) if n not in (*own, *over)]
    lead = [w.extent(a.domains[n]) for n in outer]
    table = w.atom(a)
    if len(over) > 1 or len(columns) > 1:
        table = f"{table}.reshape({', '.join([*lead, _joined(w, b, over), _joined(w, a, columns)])})"
    text = w.transposed(w.refer(b), (*own, *rest, *over))
    if own:
        ones = ["1"] * (len(lead) - len(own))
        matrix = [*(w.extent(b.domains[n]) for n in own), *ones, _joined(w, b, rest), _joined(w, b, over)]
        text = Text(f"{text.at(ATOM)}.reshape({', '.join(matrix)})", ATOM)
    elif len(rest) > 1 or (rest and len(over) > 1):
        text = Text(f"{text.at(ATOM)}.reshape({_joined(w, b, rest)}, {_joined(w, b, over)})", ATOM)
    elif len(over) > 1:
        text = Text(f"{text.at(ATOM)}.ravel()", ATOM)
    product = Text(f"{text.at(SIGN)} @ {table}", PRODUCT)
    if rest:
        product = Text(f"{product.at(ATOM)}.swapaxes(-1, -2)", ATOM)
    if len(rest) > 1 or len(columns) > 1 or (own and not rest):
        return Text(f"{product.at(ATOM)}.reshape({', '.join(map(w.extent, step.domains))})", ATOM)
    return product


def einsum(w: Writer, step: Step, op: ops.Einsum) -> Text:
    return _by_labels(w, step)


def _by_labels(w: Writer, step: Step) -> Text:
    rows = ["".join("ijklmnopqrstuvwxyz"[label] for label in row) for row in step.rows]
    pattern = f"{rows[0]},{rows[1]}->{rows[2]}"
    a, b = (w.refer(o).code for o in step.operands)
    return Text(w.spelling.einsum.format(pattern, a, b), ATOM)
