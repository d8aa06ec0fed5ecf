"""The floating-point values of scalar functions, powers and exact numbers.

Branches are NumPy's. On a cut of the real axis the value is that from above: a negative zero is a zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from combdiff.meaning.values import Scalar
from combdiff.terms.functions import SCALAR_FUNCTIONS

_EXACT = 2**53


def exact(value: Fraction) -> int | float:
    """A rational number as an integer, or the nearest float.

    >>> exact(Fraction(4, 2)), exact(Fraction(1, 2)), exact(Fraction(10**400))
    (2, 0.5, inf)
    """
    if value.denominator == 1 and abs(value) < _EXACT:
        return int(value)
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _quiet() -> np.errstate:
    """No warnings; an overflow is an error where the caller asks NumPy for one."""
    return np.errstate(all="ignore", over="raise" if np.geterr()["over"] == "raise" else "ignore")


def raised(base: Scalar, exponent: Scalar, over_complex: bool) -> Scalar:
    """base ^ exponent.

    >>> raised(-8, 1 / 3, over_complex=False), raised(4, 0.5, over_complex=False)
    (nan, 2.0)
    """
    pair = (np.complex128(base) + 0, np.complex128(exponent)) if over_complex else (base.real, exponent.real)
    with _quiet():
        result: Scalar = np.power(*map(np.asarray, pair), dtype=np.complex128 if over_complex else np.float64).item()
    return result


def scalar_value(name: str, args: Sequence[Scalar], over_complex: bool) -> Scalar:
    """A function of the language at numbers.

    >>> scalar_value("abs2", [3 + 4j], over_complex=True)
    25.0
    >>> scalar_value("sqrt", [complex(-4, -0.0)], over_complex=True)
    2j
    """
    if name == "pi":
        return float(np.pi)
    numbers = [np.complex128(z) if over_complex else np.float64(z.real) for z in args]
    row = SCALAR_FUNCTIONS[name]
    if row.is_angle or (over_complex and row.has_cut):
        numbers = [z + 0 for z in numbers]
    with _quiet():
        match name, numbers:
            case "abs2", (z,):
                return float(z.real * z.real + z.imag * z.imag)
            case "complex", (z,):
                return complex(z)
            case "sign", (z,):
                return (z / abs(z)).item() if z else 0
            case _:
                result: Scalar = SCALAR_FUNCTIONS[name].at(*numbers).item()
                return result
