"""How much rounding decides: by how much a value changes where its numbers are off by a little."""

from __future__ import annotations

import numpy as np

from combdiff.checking.functions import evaluated
from combdiff.checking.printed import SMALLEST
from combdiff.meaning.comparing import difference
from combdiff.meaning.differences import TOLERANCE, Numbers, items_of
from combdiff.meaning.sizes import Sizes
from combdiff.meaning.values import Value
from combdiff.terms.terms import Term

_NUDGES = 4
_NUDGE = 1e-15  # a little more than rounding
_SIDES = 16  # draws, of which on a cut all are on one side in one case of many thousand
_FAR = 1000  # times as far
SLOPELESS = 1e-9  # what changes so much by rounding has no slope


def rounding_of(t: Term, values: dict[Term, Value], sizes: Sizes) -> float:
    """How much the value of a term changes where its numbers are a little off.

    It may be as much as it can be: where a sum that is always 0 is compared with 0, or a logarithm lies on its cut.
    """
    return _change(t, values, sizes, _NUDGE, _NUDGES)


def decides_a_jump(t: Term, values: dict[Term, Value], sizes: Sizes) -> bool:
    """Whether rounding decides on which side of a jump the value of a term lies, such as the cut of a root.

    A jump is as large however little the numbers are off; what is only steep changes the less, the less they are.
    """
    near = _change(t, values, sizes, _NUDGE, _SIDES, SMALLEST)
    return near > TOLERANCE and _change(t, values, sizes, _FAR * _NUDGE, _SIDES, SMALLEST) < _FAR / 10 * near


def _change(t: Term, values: dict[Term, Value], sizes: Sizes, nudge: float, draws: int, floor: float = 1.0) -> float:
    """How much the value of a term changes at most where its numbers are off by about `nudge`, relatively."""
    drawn = [values]
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        drawn.append({v: _nudged(x, rng, nudge) for v, x in values.items()})
    exact, *nudged = ([np.asarray(x) for x in items_of(evaluated(t, sample, sizes))] for sample in drawn)
    pairs = [pair for moved in nudged for pair in zip(moved, exact, strict=True)]
    return max((distance(a, b, floor) for a, b in pairs), default=0.0)


def _nudged(value: Value, rng: np.random.Generator, nudge: float) -> Value:
    """Numbers that are off by a little; functions stay as they are."""
    if isinstance(value, float | complex):
        return value * (1 + nudge * float(rng.standard_normal()))
    if isinstance(value, np.ndarray) and value.dtype.kind in "fc":
        return np.asarray(value * (1 + nudge * rng.standard_normal(value.shape)))
    return value


def overflows(body: Term, values: dict[Term, Value], sizes: Sizes) -> bool:
    """Whether a number on the way to the value is too large, as in atan(sinh(1000)): its derivative may be, too."""
    try:
        with np.errstate(over="raise"):
            evaluated(body, values, sizes)
    except (FloatingPointError, OverflowError):
        return True
    return False


def distance(a: Numbers, b: Numbers, floor: float = 1.0) -> float:
    """How far two arrays differ, relative to each entry if it is large; what is not finite must be so in both."""
    alike = np.array_equal(np.isnan(a), np.isnan(b)) and np.array_equal(a[np.isinf(b)], b[np.isinf(b)])
    return difference(a, b, floor=floor) if alike and np.array_equal(np.isinf(a), np.isinf(b)) else float("inf")
