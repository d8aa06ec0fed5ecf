"""The field of p elements, p ≡ 3 mod 4, and its extension by i, whose automorphism is conjugation.

Residues are floating-point integers between −p/2 and p/2, complex ones in both parts, so that NumPy's own real and
complex arithmetic is exact on them as long as no number reaches `EXACT`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    import numpy.typing as npt

    Array = npt.NDArray[Any]

PRIME = 4_194_287
"""The largest prime below 2²² that is 3 modulo 4: −1 is no square, so that z z' = 0 only for z = 0."""

HALF = float(PRIME // 2)
EXACT = 2.0**50
"""Integers up to here divide by the prime to the nearest integer without a doubt."""

_INVERSE = 1 / PRIME
_FEW = 100


def centred(a: Array) -> Array:
    """The residues between −p/2 and p/2 of floating-point integers.

    >>> import numpy as np
    >>> print(centred(np.array([PRIME + 1.0, -2.0 + 3j * PRIME])))
    [ 1.+0.j -2.+0.j]
    """
    import numpy as np

    result: Array = a - PRIME * np.rint(a * _INVERSE)
    return result


def residue(q: Fraction) -> float:
    """A rational number as a residue.

    >>> 2 * residue(Fraction(1, 2)) + PRIME
    1.0

    Raises:
        ZeroDivisionError: the prime divides the denominator.
    """
    if q.denominator % PRIME == 0:
        raise ZeroDivisionError("a denominator is zero modulo the prime")
    value = q.numerator * pow(q.denominator, -1, PRIME) % PRIME
    return float(value if value <= HALF else value - PRIME)


def times(a: Array, b: Array) -> Array:
    """The product of two arrays of residues."""
    return centred(a * b)


def raised(a: Array, n: int) -> Array:
    """A power with exponent n ≥ 1.

    >>> import numpy as np
    >>> bool((raised(np.array([2.0, 3j]), 3) == np.array([8, -27j])).all())
    True
    """
    result: Array | None = None
    while n:
        if n & 1:
            result = a if result is None else times(result, a)
        n >>= 1
        if n:
            a = times(a, a)
    assert result is not None, "a power with exponent 1 or more"
    return result


def inverted(a: Array) -> Array:
    """The reciprocals, z⁻¹ = z'/(z z'); that of zero is nan, which a condition may still exclude.

    >>> import numpy as np
    >>> z = np.array([2.0, 1 + 3j])
    >>> print(times(z, inverted(z)), inverted(np.array([0.0])))
    [1.+0.j 1.+0.j] [nan]
    """
    import numpy as np

    norm = centred(a.real * a.real + a.imag * a.imag) if np.iscomplexobj(a) else a
    # what is nan already stays nan
    norm = np.where(norm == 0, np.nan, norm)
    if norm.size > _FEW:
        inverse = raised(norm, PRIME - 2)
    else:
        flat = [float(pow(int(x), -1, PRIME)) if x == x else x for x in np.ravel(norm)]
        inverse = centred(np.reshape(flat, np.shape(norm)))
    return times(np.conj(a), inverse) if np.iscomplexobj(a) else inverse
