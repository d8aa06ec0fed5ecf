"""Python numbers in code: which steps are such, which exact numbers a float holds, how many digits others have."""

from __future__ import annotations

from fractions import Fraction
from math import log10
from sys import float_info

from combdiff.arrays import ops
from combdiff.arrays.plan import Step
from combdiff.errors import UnsupportedError
from combdiff.terms.numerals import order
from combdiff.terms.terms import ONE, ZERO, Add, Const, Mul, Pow, Term

HIGHEST_OF_INTEGERS = 2
"""Higher powers of integers are computed in floating point: 2^100 is no integer of JAX or PyTorch."""


def is_plain(step: Step) -> bool:
    """Whether a step is a number of Python's, made of such by its operators alone.

    >>> from combdiff.arrays.plan import Builder
    >>> make = Builder().step
    >>> pi = make(ops.Named("pi"), (), ())
    >>> is_plain(pi), is_plain(make(ops.Call("exp", places=((),)), (pi,), ()))
    (True, False)
    """
    if isinstance(step.op, ops.Number):
        return True
    by_operators = isinstance(step.op, ops.Add | ops.Mul | ops.Position | ops.Where)
    made = by_operators or is_whole_power(step) or _is_written_out(step)
    return made and not step.rank and all(map(is_plain, step.operands))


def _is_written_out(step: Step) -> bool:
    """Whether a step is |x|² of a real number, which is written x**2, or such a number as a complex one, x + 0j."""
    return isinstance(step.op, ops.Call) and step.op.function in ("abs2", "complex") and not step.operands[0].complex


def is_integer(step: Step) -> bool:
    """Whether code computes a step with Python's integers, which may become larger than those of a library.

    >>> from combdiff.arrays.plan import Builder
    >>> from combdiff.terms.terms import number
    >>> make = Builder().step
    >>> is_integer(make(ops.Constant(number(3)), (), ())), is_integer(make(ops.Named("pi"), (), ()))
    (True, False)
    """
    match step.op:
        case ops.Size():
            return True
        case ops.Constant(value):
            return value.is_integer
        case ops.Add(coefficients) if not step.rank:
            return all(c.is_integer for c in coefficients) and all(map(is_integer, step.operands))
        case ops.Mul(coefficient) if not step.rank:
            return coefficient.is_integer and all(map(is_integer, step.operands))
        case ops.Power() if not step.rank:
            return exponent_of(step.operands[1]) == HIGHEST_OF_INTEGERS and is_integer(step.operands[0])
        case _:
            return False


def may_be_integer(step: Step) -> bool:
    """Whether a number may turn out to be an integer of Python's: `inf if a == 0 else 0` is one where a is not 0.

    >>> from combdiff.arrays.plan import Builder
    >>> from combdiff.terms.terms import number
    >>> make = Builder().step
    >>> a, b = make(ops.Named("inf"), (), ()), make(ops.Input("a"), (), ())
    >>> chosen = make(ops.Where("==", None, number(0)), (b, b, a), ())
    >>> is_integer(chosen), may_be_integer(chosen)
    (False, True)
    """
    match step.op:
        case ops.Where(otherwise=otherwise) if not step.rank:
            else_whole = otherwise is not None and otherwise.is_integer
            return else_whole or any(map(may_be_integer, step.operands[2:]))
        case ops.Add(coefficients) if not step.rank:
            return all(c.is_integer for c in coefficients) and all(map(may_be_integer, step.operands))
        case ops.Mul(coefficient) if not step.rank:
            return coefficient.is_integer and all(map(may_be_integer, step.operands))
        case _:
            return is_integer(step)


_KEEPING_INTEGERS = frozenset({"min", "max", "clip", "abs", "abs2", "sign", "relu", "floor", "ceil"})
"""Functions of libraries whose value at an integer is one, by its type, too, in one of the libraries."""


def is_whole(step: Step) -> bool:
    """Whether code computes a step with integers, of Python or of a library: of constants and places alone.

    >>> from combdiff.arrays.plan import Builder
    >>> from combdiff.terms.terms import number
    >>> make = Builder().step
    >>> one, half = (make(ops.Constant(number(x)), (), ()) for x in (1, Fraction(1, 2)))
    >>> where = ops.Where("<=", None, number(0))
    >>> is_whole(make(where, (half, half, one), ())), is_whole(make(where, (one, one, half), ()))
    (True, False)
    """
    match step.op:
        case ops.Size() | ops.Range() | ops.Place() | ops.Position() | ops.Opposite() | ops.Occurring():
            return True
        case ops.Reduced("argmax" | "argmin"):
            return True
        case ops.Constant(value):
            return value.is_integer
        case ops.Where(otherwise=otherwise):
            return (otherwise is None or otherwise.is_integer) and all(map(is_whole, step.operands[2:]))
        case ops.Add(coefficients):
            return all(c.is_integer for c in coefficients) and all(map(is_whole, step.operands))
        case ops.Mul(coefficient):
            return coefficient.is_integer and all(map(is_whole, step.operands))
        case ops.Call(name) if name in _KEEPING_INTEGERS:
            return all(map(is_whole, step.operands))
        case ops.Power():
            exponent = exponent_of(step.operands[1])
            return exponent is not None and exponent >= 0 and exponent.denominator == 1 and is_whole(step.operands[0])
        case ops.Reduced("prod"):
            return all(map(is_whole, step.operands))
        case ops.Broadcast() if not step.operands[0].rank:
            return False  # written 1.0
        case ops.View() | ops.Gather() | ops.Roll() | ops.Window() | ops.Broadcast() | ops.Sum() | ops.CumulativeSum():
            return is_whole(step.operands[0])
        case _:
            return False


def has_positive_zeros(step: Step) -> bool:
    """Whether numbers, or parts of complex ones, that are 0 have the sign +, as those of arguments are taken to have.

    >>> from combdiff.arrays.plan import Builder
    >>> make = Builder().step
    >>> z = make(ops.Input("z"), (), (), True)
    >>> has_positive_zeros(z), has_positive_zeros(make(ops.Conj(), (z,), (), True))
    (True, False)
    """
    match step.op:
        case ops.Input() | ops.Constant():
            return True
        case ops.View() | ops.Gather() | ops.Roll() | ops.Broadcast() | ops.Call("exp"):
            return has_positive_zeros(step.operands[0])
        case ops.Call("complex"):
            return not step.operands[0].complex
        case ops.Where():
            return all(has_positive_zeros(o) for o in step.operands[2:] if o.complex or not step.complex)
        case ops.Add(coefficients) if all(c.real > 0 and not c.imag for c in coefficients):
            return all(has_positive_zeros(o) for o in step.operands if o.complex or not step.complex)
        case _:
            return False


def is_whole_power(step: Step) -> bool:
    """Whether a step is a power that is written with `**`, and not with a function of the library."""
    exponent = exponent_of(step.operands[1]) if isinstance(step.op, ops.Power) else None
    return exponent is not None and exponent.denominator == 1


def as_float(value: Fraction) -> float:
    """The nearest number of floating point.

    Raises:
        UnsupportedError: there is none, or it would be zero.
    """
    try:
        found = float(value)
    except OverflowError:
        found = 0.0
    if value and abs(found) < float_info.min:
        raise beyond()
    return found


def check_power(base: Const, exponent: Const) -> None:
    """Refuse a power of a number that has no value in floating point."""
    if base not in (ZERO, ONE) and exponent.real and abs(order(base.real, base.imag)) > 1022 / abs(exponent.real):
        raise beyond()


def beyond() -> UnsupportedError:
    """What is said of a number that is too large, or too near to zero, for code."""
    return UnsupportedError(
        "a number of the result is beyond those of floating point, too large or too near to zero",
        remedy="scale the program",
    )


def exponent_of(step: Step) -> Fraction | None:
    """The number that an exponent is, if it is one."""
    match step.op:
        case ops.Constant(Const(real, imag)) if not imag:
            return real
        case _:
            return None


def digits_of(t: Term) -> float:
    """About how many digits the numbers in a product of powers have, once they are worked out.

    >>> from combdiff.terms.terms import fresh, mul, number, power
    >>> from combdiff.terms.types import REAL
    >>> digits_of(power(mul(number(10), fresh("x", REAL)), number(1000))) > 1000
    True
    """
    match t:
        case Const(real, imag):
            parts = (real.numerator, real.denominator, imag.numerator, imag.denominator)
            return sum(abs(p).bit_length() for p in parts if abs(p) > 1) * log10(2)
        case Mul(factors):
            return max(map(digits_of, factors))
        case Pow(base, exponent):
            digits = digits_of(base)
            return digits * float(10.0 ** min(log_of(exponent), 300.0)) if digits else 0.0
        case _:
            return 0.0


def log_of(t: Term) -> float:
    """About the logarithm to the base 10 of a number that is made of powers; 0 of what is not known."""
    match t:
        case Const(real, imag):
            return order(real, imag) * log10(2)
        case Pow(base, exponent):
            return log_of(base) * float(10.0 ** min(log_of(exponent), 300.0))
        case Mul(factors):
            return sum(map(log_of, factors))
        case Add(terms):
            return max(map(log_of, terms))
        case _:
            return 0.0
