"""Writes roots of equations and loops, which call functions of their own again and again."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain, count

from combdiff.arrays import ops
from combdiff.arrays.plan import Argument, Recurrence, Root, Scan, Step
from combdiff.emit.names import words
from combdiff.emit.solvers.chosen import solver_of
from combdiff.emit.solvers.matrices import refuse_equations
from combdiff.emit.texts import Text, Writer
from combdiff.errors import UnsupportedError
from combdiff.language.printing.document import ATOM, MAP
from combdiff.terms.types import Index


def recursive(w: Writer, step: Step, op: ops.Recursive) -> Text:
    """A filter, backwards where its steps run so."""
    operands = ", ".join(w.refer(o).code for o in step.operands)
    return Text(f"linear_recurrence({operands}{', backward=True' * op.reverse})", ATOM)


def root(w: Writer, step: Step, op: Root) -> Text:
    refuse_equations(w)
    solved = op.equation
    captured = dict(zip(solved.captured, (w.refer(o).code for o in step.operands), strict=False))
    others = [a for a in solved.plan.arguments if a.name != solved.unknown and not a.optional]
    given = [_given(w, a, captured) for a in others]
    equation = w.called.above[solved]
    x = _unused(("x", "y", "z", "u", "v", "w"), words(" ".join([equation, *given])))
    # the unknown is the first argument of the residual
    call = f"{equation}({', '.join([x, *given])})"
    zeros = w.spelling.zeros_complex if step.complex else w.spelling.zeros
    number = w.spelling.number_complex.format("0j") if step.complex else w.spelling.number.format("0.0")
    zero = zeros.format(w.shape(step.domains)) if step.rank else number
    start = w.called.arguments[solved.start]
    found = f"{solver_of(step, w.spelling)}(lambda {x}: {call}, {zero} if {start} is None else {start})"
    if not solved.inverse:
        return Text(found, ATOM)
    inverse, y = w.called.arguments[solved.inverse], w.refer(step.operands[-1]).code
    undone = f'inverted(lambda {x}: {call}, {inverse}, {y}, "{inverse}")'
    lines = (found, f"if {inverse} is None", f"else {undone}")
    return Text(" ".join(lines), MAP, lines)


def scan(w: Writer, step: Step, op: Scan) -> Text:
    """A loop: a step that is given what is the same for all, the first states, sequences, and shapes for the rest."""
    if not w.spelling.scan:
        raise UnsupportedError(
            f"the result is computed in a loop, which combdiff does not support for {w.spelling.name}",
            remedy='choose another backend, such as "numpy"',
        )
    body, moving = op.body, op.body.states + op.body.sequences
    texts = [w.refer(o).code for o in step.operands]
    names = [a.name for a in body.plan.arguments if a.step is not None]
    for n, (state, operand) in enumerate(zip(body.arrays[: body.states], step.operands, strict=False)):
        texts[n] = w.state(operand, w.refer(operand), state.complex).code
    captured = dict(zip(names[moving:], texts[moving:], strict=True))
    given = [_given(w, a, captured) for a in body.plan.arguments if a.name not in names[:moving]]
    call = w.called.above[body]
    if given:
        own = _unused(("now", "moving"), words(" ".join(given)))
        call = f"lambda *{own}: {call}(*{own}, {', '.join(given)})"
    stored = [
        f"({w.shape(at)}, {w.spelling.complex_type if c else w.spelling.float_type})"
        for at, c in op.items[body.states :]
    ]
    parts = (texts[: body.states], texts[body.states : moving], stored)
    lists = ", ".join(f"[{', '.join(part)}]" for part in parts)
    watched = f"watched_scan({names_of(body)}, " if w.spelling.watches else "scan("
    return Text(f"{watched}{call}, {lists}, {w.alone(op.domain)}{', reverse=True' if op.reverse else ''})", ATOM)


def names_of(body: Recurrence) -> str:
    """What the program calls the states of a loop, as a tuple of texts."""
    return str(tuple(a.name for a in body.plan.arguments if a.step is not None)[: body.states])


def _given(w: Writer, argument: Argument, captured: Mapping[str, str]) -> str:
    """What an equation is given for one of its arguments."""
    if argument.name in captured:
        return captured[argument.name]
    if isinstance(argument.kind, Index) and argument.kind.domain is not None:
        return w.extent(argument.kind.domain)
    return w.called.arguments[argument.name]


def _unused(names: Sequence[str], mentioned: Collection[str]) -> str:
    """The first of some names that is not mentioned, or the first name with a number."""
    return next(name for name in chain(names, (f"{names[0]}{n}" for n in count(2))) if name not in mentioned)
