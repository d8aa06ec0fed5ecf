"""Limits of exact numbers: which powers are evaluated, which stay powers, and which a float can hold."""

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


def read_number(text: str) -> Fraction | None:
    """The number that is written so; None where it would fill the memory.

    >>> read_number("-2.5e-1"), read_number("1e999999999")
    (Fraction(-1, 4), None)

    Raises:
        ValueError: the text is no number.
    """
    mantissa, _, exponent = text.lower().partition("e")
    if len(mantissa) > MOST_DIGITS or len(exponent) > 5 or abs(int(exponent or 0)) >= MOST_DIGITS:
        return None
    return Fraction(text)


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


_PLAIN = 1000
"""Denominators below it stay, as in 1/2 and 3/128; of numbers above 1 with a 5 in them only if they are as short."""
_ZEROS = 6
"""Zeros at the end of an integer that are counted rather than written."""
_SMALL = 4
"""Zeros behind the point that are counted, too."""


def decimal(value: Fraction) -> tuple[str, int] | None:
    """Digits and the power of ten behind them, of a positive number that is shorter so: 1e-9 rather than 1/1000000000.

    >>> decimal(Fraction(1, 10**9)), decimal(Fraction(310907, 10**7)), decimal(Fraction(10**12))
    (('1', -9), ('0.0310907', 0), ('1', 12))
    >>> decimal(Fraction("9.81")), decimal(Fraction("1.5")), decimal(Fraction("0.1"))
    (('9.81', 0), None, None)
    >>> decimal(Fraction(1, 2)), decimal(Fraction(1, 1024)), decimal(Fraction(1, 3000))
    (None, None, None)
    """
    if value.denominator == 1:
        digits = str(value.numerator).rstrip("0")
        zeros = len(str(value.numerator)) - len(digits)
        return _scientific(digits, zeros) if value and zeros >= _ZEROS else None
    places = _places(value.denominator)
    if places is None or (value.denominator < _PLAIN and (value < 1 or value.denominator % 5)):
        return None
    digits = str(value.numerator * 10**places // value.denominator)
    found = _scientific(digits, -places) if places - len(digits) >= _SMALL else (_with_point(digits, places), 0)
    written = f"{found[0]}e{found[1]}" if found[1] else found[0]
    return found if len(written) < len(str(value)) + (value.denominator >= _PLAIN) else None


def _places(denominator: int) -> int | None:
    """How many digits stand behind the point; None if they never end."""
    twos = (denominator & -denominator).bit_length() - 1
    rest, fives = denominator >> twos, 0
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    return max(twos, fives) if rest == 1 else None


def _with_point(digits: str, places: int) -> str:
    padded = digits.rjust(places + 1, "0")
    return f"{padded[:-places]}.{padded[-places:]}"


def _scientific(digits: str, power: int) -> tuple[str, int]:
    """d.ddd and the power of ten behind it."""
    behind = digits[1:]
    return f"{digits[0]}.{behind}" if behind else digits, power + len(behind)
