"""Steps that are written into an array there is, as statements.

All of it, `u -= T` and `np.subtract(T, u, out=u)`, or what stands at constants, `t[0] += a`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from combdiff.arrays import ops
from combdiff.arrays.numbers import exponent_of
from combdiff.arrays.plan import Step
from combdiff.emit.backends.spelling import Spelling
from combdiff.emit.entrywise import times
from combdiff.emit.indexing import span, zeros, zeros_around
from combdiff.emit.looptext import wrapped
from combdiff.emit.texts import Text, Writer, chained, filled, number_text
from combdiff.language.printing.document import ATOM, PRODUCT, SIGN, SUM
from combdiff.records import dataclass
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.terms import MINUS_ONE, ONE, Const
from combdiff.terms.types import Domain

if TYPE_CHECKING:
    from combdiff.emit.emit import FunctionText

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
    view = view or (isinstance(buffer.op, ops.Cumulative) and buffer.op.reverse)
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
    if own == MINUS_ONE and others and not _is_negative(others[0][0]):
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
            row = SCALAR_FUNCTIONS[function]
            return template.endswith("({0})") and "." in template and function not in special and not row.real_valued
        case ops.Power():
            return _whole_exponent(step) in (2, 4, 8)
        case _:
            return True


# --- at constants -----------------------------------------------------------------------------------------------------


def add_put(f: FunctionText, step: Step, op: ops.Put) -> None:
    """Write what stands in parts into the array that it is added to, or into zeros, which are then added to it."""
    base = Text(f.texts[step.operands[0]].at(SUM), SUM) if op.base else None
    over = step in f.over and bool(f.spelling.put)
    name = base.code if base and over and step not in f.pinned else f.new_name(step)
    if not f.spelling.put:
        parts = [(False, base.code)] if base else []
        f.lines += wrapped(f"{name} = ", chained([*parts, *_masked(f, step, op)]))
    elif base and over:
        f.lines += [f"{name} = {base.code}"] if name != base.code else []
        f.lines += _written(f.writer, step, op, name, fresh=False)
    else:
        f.lines += [f"{name} = {zeros(f.writer, step)}", *_written(f.writer, step, op, name, fresh=True)]
        f.lines += [f"{name} = {base.code} + {name}"] if base else []
    f.note_large(step, name)
    f.texts[step] = Text(name, ATOM)


def add_filled(f: FunctionText, step: Step, op: ops.Filled) -> None:
    """Write a number into the diagonal of a matrix, or of a copy if something else needs it."""
    matrix = f.texts[step.operands[0]]
    over = step in f.over
    name = matrix.code if over and step not in f.pinned else f.new_name(step)
    number = step.operands[0].op == ops.Broadcast(())
    if number:
        text = Text(
            f.spelling.full.format(f.writer.shape(step.domains), f.texts[step.operands[0].operands[0]].code), ATOM
        )
        f.lines += wrapped(f"{name} = ", text)
    elif name != matrix.code:
        f.lines += wrapped(f"{name} = ", matrix if over else filled(f.spelling.copy, matrix))
    f.lines.append(f.spelling.fill_diagonal.format(name, number_text(op.number).code))
    f.note_large(step, name)
    f.texts[step] = Text(name, ATOM)


def _written(w: Writer, step: Step, op: ops.Put, name: str, fresh: bool) -> list[str]:
    """The statements that add what `op` adds in parts to the array `name`, which is zero if it is `fresh`."""
    lines: list[str] = []
    apart = _lie_apart(op.fixed)
    for n, (part, fixed, places) in enumerate(zip(step.operands[op.base :], op.fixed, op.places, strict=True)):
        sure = all(_has_place(w, step.domains[axis], place) for axis, place in fixed)
        axes = [axis for axis in range(step.rank) if not sure or axis not in dict(fixed)]
        marks = [":"] * step.rank
        for axis, place in fixed:
            marks[axis] = str(place) if sure else f"{place}:{place + 1 or ''}"
        for axis, start in op.starts_of(n).items():
            marks[axis] = span(start, part.domains[places.index(axis)], step.domains[axis])
        while len(marks) > 1 and marks[-1] == ":":
            marks.pop()
        values = w.floating(part, w.aligned(part, [axes.index(axis) for axis in places], len(axes)))
        first = fresh and (apart or not lines)
        template = w.spelling.put if first else w.spelling.decrease if op.is_negative(n) else w.spelling.increase
        code = f"-{values.at(SIGN)}" if first and op.is_negative(n) else values.code
        lines.append(template.format(name, "", code, ", ".join(marks)))
    return lines


def _lie_apart(fixed: tuple[tuple[tuple[int, int], ...], ...]) -> bool:
    """Whether no two parts have an entry in common: there is an axis where they have different places from one end."""
    places = [dict(at) for at in fixed]
    return all(
        any(b.get(axis, p) != p and (b[axis] < 0) == (p < 0) for axis, p in a.items())
        for n, a in enumerate(places)
        for b in places[:n]
    )


def _has_place(w: Writer, domain: Domain, place: int) -> bool:
    """Whether an axis surely has so many entries: as its bounds say, or because the code reads one there."""
    picks = (step.op.fixed for step in w.plan.steps if isinstance(step.op, ops.Pick))
    read = (_entries(constant) for fixed in picks for _, constant, of in fixed if of == domain)
    return _entries(place) <= (domain.count or 0) or any(_entries(place) <= there for there in read)


def _entries(place: int) -> int:
    """How many entries an axis has that has this place, from 0, or from the end if it is below 0."""
    return place + 1 if place >= 0 else -place


def _with_zeros(f: FunctionText, step: Step, part: Step, places: ops.Row, starts: Mapping[int, int]) -> Text:
    """An array with the zeros around it that a step has there."""
    text, domains = f.writer.refer(part), list(part.domains)
    for axis, start in starts.items():
        if text.code != f.writer.refer(part).code:
            name = f.fresh("t")
            f.lines += wrapped(f"{name} = ", text)
            text = Text(name, ATOM)
        own, whole = places.index(axis), step.domains[axis]
        text, domains[own] = zeros_around(f.writer, text, domains, own, start, whole), whole
    return text


def _masked(f: FunctionText, step: Step, op: ops.Put) -> list[tuple[bool, str]]:
    """What `op` adds where nothing is written in place: arrays that are zero but in parts, and which are subtracted."""
    parts, w = [], f.writer
    for n, (part, fixed, places) in enumerate(zip(step.operands[op.base :], op.fixed, op.places, strict=True)):
        if op.starts_of(n):
            text = _with_zeros(f, step, part, places, op.starts_of(n))
            parts.append((op.is_negative(n), w.placed(text, places, step.rank).at(PRODUCT)))
            continue
        masks = []
        for axis, place in fixed:
            across = ", ".join([":", *["None"] * (step.rank - axis - 1)])
            counted = w.spelling.arange.format(w.alone(step.domains[axis]))
            at = place if place >= 0 else f"{w.extent(step.domains[axis])} - {-place}"
            masks.append(f"({counted}{f'[{across}]' if ',' in across else ''} == {at})")
        values = w.as_array(part, w.aligned(part, places, step.rank))
        text = Text(w.spelling.where.format(" & ".join(masks), values.code, 0), ATOM) if masks else values
        parts.append((op.is_negative(n), text.at(PRODUCT)))
    return parts
