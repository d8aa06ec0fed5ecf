"""Which steps are written over an operand that nothing else needs: `np.subtract(T, u, out=u)` for `T - u`.

A fresh array of many megabytes costs more than the arithmetic that fills it, as its pages must first be had from the
system. So a large step that works entry by entry takes the memory of an operand, where that is an array of its own
shape, fresh, used here and nowhere else, and of a dtype that holds the result.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TypeAlias

from combdiff.arrays import ops
from combdiff.arrays.numbers import is_plain, is_whole_power
from combdiff.arrays.plan import Plan, Step, ordered
from combdiff.records import dataclass
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.terms import ONE, Const

LARGE = 256 << 10  # bytes; smaller arrays are had again from memory that was freed

Kinds: TypeAlias = frozenset[Hashable]

_FRESH = (
    ops.Contraction,
    ops.Sum,
    ops.Cumulative,
    ops.Cross,
    ops.Roll,
    ops.Placing,
    ops.Sparse,
    ops.Put,
    ops.Filled,
    ops.OfMatrices,
    ops.Solve,
    ops.Stack,
)
_ENTRYWISE = (ops.Add, ops.Mul, ops.Power, ops.Call, ops.Conj)
_COUNTED = (ops.Range, ops.Place, ops.Position, ops.Opposite, ops.Occurring)
_VIEWING = (ops.Permute, ops.Pick, ops.Flip, ops.Diagonal, ops.Lower, ops.Gather, ops.Roll, ops.Window, ops.Filled)
_SUMS = (
    ops.Add,
    ops.Mul,
    ops.Power,
    ops.Call,
    ops.Conj,
    ops.Sum,
    ops.CumulativeSum,
    ops.CumulativeLogSumExp,
    ops.Contraction,
    ops.Factors,
    ops.OfMatrices,
    ops.Solve,
    ops.Stack,
)
_REAL, _COMPLEX, _DOUBLE, _WHOLE = "real", "complex", "double", "whole"


@dataclass(frozen=True, slots=True)
class Overwriting:
    """When steps are written over an operand: from so many bytes on, and where dtypes let them.

    `alike`: all arrays that will be given are of one precision, and complex where they are declared so. Otherwise the
    dtype of an array is only known to hold what it is made of.
    """

    alike: bool = False
    large: int = LARGE

    def of(self, plan: Plan, writes: Callable[[Step], bool], uses: Mapping[Step, int]) -> dict[Step, Step]:
        """The steps that are written over an operand, each with that operand.

        Args:
            writes: whether the library writes what a step computes to an array that it is given.
            uses: how often each step is mentioned.
        """
        single = set(plan.steps).difference(*(loop.steps for loop in plan.loops))
        kinds: dict[Step, Kinds] = {}
        found: dict[Step, Step] = {}
        for step in ordered(plan.outputs):
            kinds[step] = _kinds(step, kinds, self.alike)
            entrywise = isinstance(step.op, _ENTRYWISE) and step in single and writes(step)
            pays = plan.bytes(step) >= self.large if entrywise else _is_put(step) or isinstance(step.op, ops.Filled)
            buffer = _buffer(step, uses, kinds) if pays else None
            if buffer is not None:
                found[step] = buffer
        return found


CAUTIOUS = Overwriting()


def _is_put(step: Step) -> bool:
    """Whether a step adds to parts of an array, but the value of a function, which PyTorch keeps for its derivative."""
    return isinstance(step.op, ops.Put) and step.op.base and not isinstance(step.operands[0].op, ops.Call | ops.Power)


def _buffer(step: Step, uses: Mapping[Step, int], kinds: Mapping[Step, Kinds]) -> Step | None:
    """The operand to write over; one that is added is better than one that is subtracted."""
    rest = set().union(*(kinds[o] for o in step.operands), _of_coefficients(step))
    *rows, whole = step.rows
    operands = step.operands[:1] if isinstance(step.op, ops.Put) else step.operands
    fit = [
        (_coefficient(step, n) != ONE, n)
        for n, (o, places) in enumerate(zip(operands, rows, strict=False))
        if places == whole and uses[o] == 1 and o.complex == step.complex and _is_fresh(o) and _holds(kinds[o], rest)
    ]
    return step.operands[min(fit)[1]] if fit else None


def _coefficient(step: Step, operand: int) -> Const:
    return step.op.coefficients[operand] if isinstance(step.op, ops.Add) else ONE


def _is_fresh(step: Step) -> bool:
    """Whether the text of a step makes a new array whatever its operands are."""
    if not step.rank:
        return False
    match step.op:
        case ops.Add(coefficients):
            return len(step.operands) > 1 or coefficients[0] != ONE
        case ops.Mul(coefficient):
            factors = [o for o in step.operands if o.op != ops.Constant(ONE)]
            return len(factors) > 1 or coefficient != ONE
        case ops.Power():
            exponent = step.operands[1].op
            return isinstance(exponent, ops.Constant) and exponent.value != ONE
        case ops.Call(function):
            return function not in ("real", "imag", "conj")
        case ops.Where():
            return True
        case op:
            return isinstance(op, _FRESH)


def _holds(buffer: Kinds, values: set[Hashable]) -> bool:
    """Whether an array of these kinds is of a dtype that holds those values."""
    known = buffer | {_part(kind) for kind in buffer}
    given = any(isinstance(kind, Step) and isinstance(kind.op, ops.Input) for kind in known)
    return (given or not known.isdisjoint({_REAL, _DOUBLE})) and values <= known


def _part(kind: Hashable) -> Hashable:
    """The kind of the real part."""
    return kind if kind in (_REAL, _DOUBLE, _WHOLE) or isinstance(kind, tuple) else (_REAL, kind)


def _of_coefficients(step: Step) -> Kinds:
    """What the numbers of a sum or a product bring: nothing, unless they are complex."""
    numbers: tuple[Const, ...] = ()
    match step.op:
        case ops.Add(coefficients):
            numbers = coefficients
        case ops.Mul(coefficient):
            numbers = (coefficient,)
    return frozenset({_COMPLEX} if any(c.imag for c in numbers) else ())


def _of_values(step: Step, known: Mapping[Step, Kinds]) -> Kinds:
    """What the dtype of a choice between two arrays is the least common one of."""
    return known[step.operands[2]] | known[step.operands[3]]


def _kinds(step: Step, known: Mapping[Step, Kinds], alike: bool) -> Kinds:
    """What the dtype of an array is the least common one of: arguments by name, or what they are declared.

    A step whose dtype says nothing of its operands' stands for itself.
    """
    of_operands = frozenset().union(*(known[o] for o in step.operands), _of_coefficients(step))
    of_python = of_operands <= {_COMPLEX}
    match step.op:
        case ops.Number():
            return frozenset({_COMPLEX} if step.complex else ())
        case ops.Input() if alike:
            return frozenset({_REAL, _COMPLEX} if step.complex else {_REAL})
        case ops.Numbers():
            return frozenset({_DOUBLE})
        case op if isinstance(op, _COUNTED):
            return of_operands if is_plain(step) else frozenset({_WHOLE})
        case op if isinstance(op, _VIEWING):
            return known[step.operands[0]]
        case ops.Scatter() | ops.Sparse() | ops.Put():
            return of_operands | ({_DOUBLE, _COMPLEX} if step.complex else {_DOUBLE})
        case ops.Where(otherwise=Const()) if step.rank and not known[step.operands[2]] <= {_COMPLEX}:
            return known[step.operands[2]]
        case ops.Where(otherwise=None) if step.rank and not (either := _of_values(step, known)) <= {_COMPLEX}:
            return either
        case ops.Reduced("maximum" | "minimum") | ops.Grouped():
            return known[step.operands[0]]
        case ops.Call() | ops.Conj() | ops.Power() if of_python and not is_whole_power(step):
            # NumPy's functions make numbers of Python its own, which have a dtype
            return of_operands | {_DOUBLE}
        case ops.Call() if not step.complex and step.operands[0].complex:
            return frozenset(_part(kind) for kind in of_operands if kind != _COMPLEX)
        case ops.Call(function) if step.complex and SCALAR_FUNCTIONS[function].cut:
            return of_operands | {_DOUBLE, _COMPLEX}
        case ops.Power() if step.complex and not is_whole_power(step):
            return of_operands | {_DOUBLE, _COMPLEX}
        case op if isinstance(op, _SUMS):
            return of_operands
        case _:
            return frozenset({step})
