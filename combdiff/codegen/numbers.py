"""Which steps are numbers that the text knows: what Python's own operators compute, and exponents."""

from __future__ import annotations

from fractions import Fraction

from combdiff.codegen.plan import NUMBERS, Step
from combdiff.language.terms import Const


def is_plain(step: Step) -> bool:
    """Whether a step is a number of Python's, made of such by its operators alone.

    >>> from combdiff.codegen.plan import Builder
    >>> make = Builder().step
    >>> pi = make("named", (), "pi", ())
    >>> is_plain(pi), is_plain(make("call", (pi,), ("exp", ((),)), ()))
    (True, False)
    """
    if step.op in NUMBERS:
        return True
    made = step.op in ("add", "mul", "position") or is_whole_power(step)
    return made and not step.rank and all(map(is_plain, step.operands))


def is_whole_power(step: Step) -> bool:
    """Whether a step is a power that is written with `**`, and not with a function of the library."""
    exponent = exponent_of(step.operands[1]) if step.op == "power" else None
    return exponent is not None and exponent.denominator == 1


def exponent_of(step: Step) -> Fraction | None:
    """The number that an exponent is, if it is one."""
    match step.op, step.spec:
        case "const", Const(real, imag) if not imag:
            return real
        case _:
            return None
