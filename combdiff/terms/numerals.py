"""How large exact numbers may grow: what is worked out, what stays a power, and what floating point holds."""

from __future__ import annotations

from fractions import Fraction
from math import inf, log2

from combdiff.errors import UnsupportedError

MOST_DIGITS = 4000  # Python writes no integer of more than 4,300
_MOST_BITS = MOST_DIGITS * 3322 // 1000
_HIGHEST = 64  # higher powers of numbers are not worked out
_ROOM = 332  # powers of two that leave floating point room for factors: 1e100


def check_digits(*integers: int) -> None:
    """Refuse numerators and denominators that no one could read, and that would take ever longer to work out.

    Raises:
        UnsupportedError: one of them has more than `MOST_DIGITS` digits.
    """
    for n in integers:
        if n.bit_length() > _MOST_BITS:
            raise UnsupportedError(
                f"an exact number has more than {MOST_DIGITS} digits",
                remedy="scale the program, or give such numbers as arguments, in floating point",
            )


def order(real: Fraction, imag: Fraction = Fraction(0)) -> float:
    """The logarithm to the base 2 of |a + ib|, of numbers of any size; −∞ of zero.

    >>> order(Fraction(2) ** 5000), order(Fraction(1, 8), Fraction(1, 8))
    (5000.0, -2.5)
    """
    norm = real * real + imag * imag
    if not norm:
        return -inf
    return (log2(norm.numerator) - log2(norm.denominator)) / 2


def is_modest(real: Fraction, imag: Fraction, n: int) -> bool:
    """Whether (a + ib)^n is worked out: a low power that is readable and leaves room for factors, or one of a unit.

    >>> is_modest(Fraction(3), Fraction(0), 4), is_modest(Fraction(10) ** 40, Fraction(0), 10)
    (True, False)
    """
    if not real and not imag:
        return n > 0
    if not real * imag and abs(real + imag) == 1:
        return True
    parts = (real.numerator, real.denominator, imag.numerator, imag.denominator)
    digits = sum(p.bit_length() for p in parts) * abs(n)
    return abs(n) <= _HIGHEST and digits <= _MOST_BITS and is_held(real, imag, n)


def is_held(real: Fraction, imag: Fraction, n: int) -> bool:
    """Whether floating point holds (a + ib)^n and leaves room for other factors: at most 1e100, at least 1e-100."""
    return not n or abs(order(real, imag)) <= _ROOM / abs(n)
