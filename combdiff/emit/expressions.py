"""One step of a plan as an expression of Python: each operation has a function that writes it.

A function is told how the operands are written and what sizes are called (`Writer`); it decides nothing but the text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from combdiff.arrays import ops
from combdiff.arrays.plan import Root, Scan, Step
from combdiff.emit import entrywise, indexing, packed_text, products
from combdiff.emit.solvers import matrices, repeated
from combdiff.emit.texts import Text, Writer, filled
from combdiff.language.printing.document import SUM

WRITTEN: Mapping[type[ops.Op], Callable[[Writer, Step, Any], Text]] = {
    ops.Constant: entrywise.constant,
    ops.Named: entrywise.named,
    ops.AsArray: entrywise.number_of_the_library,
    ops.AsFloat: indexing.as_float,
    ops.Size: indexing.size,
    ops.Range: indexing.index_values,
    ops.Numbers: indexing.float_values,
    ops.Place: indexing.index_places,
    ops.Position: indexing.position,
    ops.Opposite: indexing.opposite,
    ops.Occurring: indexing.occurring,
    ops.Counted: indexing.counted,
    ops.Pick: indexing.pick,
    ops.Flip: indexing.flip,
    ops.Window: indexing.window,
    ops.Roll: indexing.roll,
    ops.Diagonal: indexing.diagonal,
    ops.Gather: indexing.gather,
    ops.Grouped: indexing.of_groups,
    ops.Sparse: indexing.sparse_product,
    ops.Windows: indexing.windows,
    ops.Correlated: indexing.correlated,
    ops.Permute: indexing.permuted,
    ops.LaidOut: indexing.laid_out,
    ops.Broadcast: indexing.repeated,
    ops.Stack: indexing.stack,
    ops.Item: indexing.item,
    ops.Conj: entrywise.conjugate,
    ops.Add: entrywise.sum_of_terms,
    ops.Mul: entrywise.product_of_factors,
    ops.Power: entrywise.power,
    ops.Call: entrywise.function_call,
    ops.Where: entrywise.choice,
    ops.Fused: entrywise.kernel_call,
    ops.Unknown: entrywise.users_function,
    ops.Sum: products.reduction,
    ops.CumulativeSum: products.cumulative,
    ops.CumulativeProduct: products.cumulative,
    ops.CumulativeLogSumExp: products.cumulative,
    ops.CumulativeExtremum: products.cumulative,
    ops.CumulativeTies: products.cumulative,
    ops.CumulativeExponentials: products.cumulative,
    ops.Fourier: products.fourier,
    ops.HalfFourier: products.half_fourier,
    ops.FromHalfFourier: products.from_half_fourier,
    ops.Recursive: repeated.recursive,
    ops.Reduced: products.reduced,
    ops.Norm: matrices.norm,
    ops.Cross: products.cross,
    ops.Tensordot: products.tensordot,
    ops.Batched: products.batched,
    ops.Einsum: products.einsum,
    ops.Packed: packed_text.packed,
    ops.Unpacked: packed_text.unpacked,
    ops.OfMatrices: matrices.of_matrices,
    ops.Factors: matrices.factors,
    ops.Lower: matrices.lower,
    ops.Solve: matrices.solution,
    Root: repeated.root,
    Scan: repeated.scan,
}
"""What writes each operation that is an expression; a scatter is several statements."""

_INDEXING = (
    ops.Position,
    ops.Opposite,
    ops.Pick,
    ops.Window,
    ops.Permute,
    ops.Flip,
    ops.Roll,
    ops.Diagonal,
    ops.Gather,
)


_OF_ONE_KIND = (ops.Contraction, ops.Cross, ops.Solve, ops.OfMatrices, ops.Scatter, ops.Packed, ops.Stack)
"""What some libraries compute of numbers of one kind only."""


def expression(w: Writer, step: Step) -> Text:
    """The expression that computes `step` from its operands."""
    cast = _cast(w, step) if w.spelling.to_complex else ()
    read = tuple(o for o in step.operands if _is_integer(w, o)) if w.spelling.to_real else ()
    read = () if isinstance(step.op, (*_INDEXING, Root, Scan)) else read  # an equation is given lists of offsets
    if cast or read:
        w = Writer(w.plan, w.spelling, _casting(w, cast, read), w.extent, w.called)
    return WRITTEN[type(step.op)](w, step, step.op)


def _cast(w: Writer, step: Step) -> tuple[Step, ...]:
    """The real operands that a library which does not mix real with complex must be given as complex ones."""
    reals = tuple(o for o in step.operands if not o.complex)
    match step.op:
        case op if isinstance(op, _OF_ONE_KIND) and step.complex:
            return reals
        case ops.Power() | ops.Call() if step.complex and len(reals) == len(step.operands):
            return reals[:1]
        case _:
            return ()


def _is_integer(w: Writer, step: Step) -> bool:
    """Whether an array holds offsets, which are integers."""
    if isinstance(step.op, ops.Input):
        return any(a.offsets is not None and a.step is step for a in w.plan.arguments)
    return isinstance(step.op, _INDEXING) and bool(step.operands) and _is_integer(w, step.operands[0])


def _casting(w: Writer, cast: tuple[Step, ...], read: tuple[Step, ...]) -> Callable[[Step], Text]:
    def refer(step: Step) -> Text:
        text = w.refer(step)
        text = filled(w.spelling.to_real, text) if step in read else text
        return Text(w.spelling.to_complex.format(text.at(SUM)), SUM) if step in cast else text

    return refer
