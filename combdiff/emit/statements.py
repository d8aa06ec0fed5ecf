"""Steps that are written over one of their operands, as statements: `u -= T`, `np.subtract(T, u, out=u)`."""

from __future__ import annotations

from dataclasses import dataclass

from combdiff.arrays import ops
from combdiff.arrays.numbers import exponent_of
from combdiff.arrays.plan import Step
from combdiff.emit.backends.spelling import Spelling
from combdiff.emit.entrywise import times
from combdiff.emit.texts import ATOM, PRODUCT, Text, Writer, filled, number_text
from combdiff.terms.terms import MINUS_ONE, ONE, Const

_OPERATORS = {"add": "+", "subtract": "-", "multiply": "*", "power": "**"}


@dataclass(frozen=True, slots=True)
class _Update:
    """buffer ← function(operands), where one operand is the buffer: None stands for it."""

    function: str
    operands: tuple[Text | None, ...]


def elides(w: Writer, step: Step, buffer: Step, text: Text | None = None) -> bool:
    """Whether `step` as an expression is written over `buffer`, whose text stands in it and is no view.

    NumPy does so where an operand of an operator is held by nothing else and owns its memory: one on the left, of
    the shape of the result; for others, and for functions, there is a fresh array.
    """
    view = isinstance(buffer.op, ops.Contraction) and (text or w.refer(buffer)).level != PRODUCT
    if not w.spelling.elides or view or not isinstance(step.op, ops.Add | ops.Mul | ops.Power):
        return False
    rest = [o for o in step.operands if o is not buffer]
    if isinstance(step.op, ops.Mul):
        return not any(o.rank for o in rest)
    return step.operands[0] is buffer and all(o.domains in ((), step.domains) for o in rest)


def overwriting(w: Writer, step: Step, buffer: Step, name: str = "") -> list[str]:
    """The statements that put `step` in the place of `buffer`, and call it `name` if that is a name of its own."""
    array = w.refer(buffer)
    updates = _updates(w, step, buffer)
    lines = [_spelled(w, update, array) for update in updates]
    if name:
        lines[-1] = f"{name} = {_as_call(w, updates[-1], array)}"
    return lines


def _updates(w: Writer, step: Step, buffer: Step) -> list[_Update]:
    match step.op:
        case ops.Add():
            return _add_over(w, step, step.op, buffer)
        case ops.Mul():
            return _mul_over(w, step, step.op, buffer)
        case ops.Power():
            return [_Update("power", (None, Text("2", ATOM)))] * (_whole_exponent(step).bit_length() - 1)
        case ops.Conj():
            return [_Update("conjugate", (None,))]
        case ops.Call(function):
            return [_Update(w.spelling.functions[function], (None,))]
    raise AssertionError("only these are written over an operand")


def _spelled(w: Writer, update: _Update, array: Text) -> str:
    """As `u -= T` where the buffer stands first and there is an operator."""
    operator = _OPERATORS.get(update.function)
    match update.operands:
        case (None, Text() as other) if operator:
            return f"{array.code} {operator}= {other.code}"
    return _as_call(w, update, array)


def _as_call(w: Writer, update: _Update, array: Text) -> str:
    operands = ", ".join((o or array).code for o in update.operands)
    if "." in update.function:
        return filled(update.function[:-1] + ", out={1})", array, array).code
    return w.spelling.overwrite.format(update.function, operands, array.code)


def _add_over(w: Writer, step: Step, op: ops.Add, buffer: Step) -> list[_Update]:
    terms = list(zip(op.coefficients, step.operands, op.places, strict=True))
    own = next(c for c, o, _ in terms if o is buffer)
    others = [(c, o, at) for c, o, at in terms if o is not buffer]
    others.sort(key=lambda term: _is_negative(term[0]))
    updates: list[_Update] = []
    if own == MINUS_ONE and not _is_negative(others[0][0]):
        c, o, at = others.pop(0)
        updates.append(_Update("subtract", (times(w, c, [(o, at)], step.rank), None)))
    elif own != ONE:
        updates.append(_Update("multiply", (None, number_text(own))))
    for c, o, at in others:
        size = Const(-c.real) if _is_negative(c) else c
        text = times(w, size, [(o, at)], step.rank)
        updates.append(_Update("subtract" if _is_negative(c) else "add", (None, text)))
    return updates


def _mul_over(w: Writer, step: Step, op: ops.Mul, buffer: Step) -> list[_Update]:
    """What is small is multiplied first, with the number; each large factor has a statement of its own."""
    others = [(o, at) for o, at in zip(step.operands, op.places, strict=True) if o is not buffer]
    large = [pair for pair in others if w.plan.entries(pair[0]) == w.plan.entries(step)]
    small = [pair for pair in others if pair not in large]
    updates = []
    if small or op.coefficient != ONE:
        updates.append(_Update("multiply", (None, times(w, op.coefficient, small, step.rank))))
    updates += [_Update("multiply", (None, times(w, ONE, [pair], step.rank))) for pair in large]
    return updates


def _whole_exponent(step: Step) -> int:
    """The exponent of a power, or 0 if it is no whole number."""
    exponent = exponent_of(step.operands[1])
    return exponent.numerator if exponent is not None and exponent.denominator == 1 else 0


def _is_negative(c: Const) -> bool:
    return not c.imag and c.real < 0


def writes(spelling: Spelling, step: Step) -> bool:
    """Whether the operation has a form that takes `out=`."""
    if not spelling.overwrite:
        return False
    match step.op:
        case ops.Call(function):
            template = spelling.functions.get(function, "")
            special = spelling.branched if step.operands[0].complex else spelling.of_real
            return template.endswith("({0})") and "." in template and function not in special
        case ops.Power():
            return _whole_exponent(step) in (2, 4, 8)
        case _:
            return True
