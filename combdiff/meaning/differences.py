"""Derivatives from differences: of a function along a line, and of an unknown map entry by entry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from combdiff.meaning.values import Value, flattened, regrouped

Numbers: TypeAlias = npt.NDArray[np.complex128]

TOLERANCE = 1e-6
_STEP = 1e-3
_SHORT = 5e-5  # where the first step is too long, as near a singular matrix
_STEPS = (_STEP, _SHORT, 2.5e-6, 1.25e-7)
_SETTLED = 100 * TOLERANCE  # of two steps: less would be chance where neither is short enough
_BENT = 1000  # times: kinks of several terms may all but cancel, and each of them counts


def difference_quotient(g: Callable[..., Value], kind: str) -> Callable[..., Value]:
    """𝒫(g)(x, k), or ∇g(x), entry by entry from differences along the real and the imaginary axis."""

    def entries(*args: Value) -> Value:
        points, k = (args[:-1], args[-1]) if kind == "pullback" else (args, 1.0)
        flat = flattened(points)
        parts = [_partials(lambda *at: g(*regrouped(points, iter(at))), flat, n, k) for n in range(len(flat))]
        found = regrouped(points, iter(parts))
        return found[0] if len(found) == 1 else found

    return entries


def _partials(g: Callable[..., Value], points: Sequence[Value], n: int, k: Value) -> Value:
    at = np.asarray(points[n])
    over_complex = at.dtype.kind == "c"
    result = np.zeros(at.shape, complex)
    for place in np.ndindex(at.shape):
        for unit in (1.0, 1j) if over_complex else (1.0,):
            direction = np.zeros(at.shape, complex if over_complex else float)
            direction[place] = unit

            def along(h: float, direction: Numbers | npt.NDArray[np.float64] = direction) -> Value:
                moved = np.asarray(at + h * direction)
                return g(*points[:n], moved if moved.ndim else moved.item(), *points[n + 1 :])

            result[place] += unit * inner(k, slope(along))
    entries = result if over_complex else result.real
    return entries if entries.ndim else entries.item()


def slope(along: Callable[[float], Value], h: float = _STEP) -> list[Numbers]:
    """The derivative at 0 of each item, to fourth order in the step."""
    at = {s: items_of(along(s * h)) for s in (-2, -1, 1, 2)}
    quadruples = zip(at[-2], at[-1], at[1], at[2], strict=True)
    return [(8 * (near - back) - (far - behind)) / (12 * h) for behind, back, near, far in quadruples]


def is_lost(step: Numbers, at: Numbers) -> npt.NDArray[np.bool_]:
    """Which entries a step leaves where they are, but for rounding."""
    least: float = 1e4 * float(np.finfo(float).eps) / _SHORT
    return np.asarray(np.abs(step) < least * np.abs(at))


def inner(a: Value, b: Sequence[Numbers]) -> float:
    """Re⟨a, b⟩, summed over the items of tuples."""
    return sum(float(np.real(np.sum(np.conj(x) * y))) for x, y in zip(items_of(a), b, strict=True))


def off_slope(found: float, k: Value, along: Callable[[float], Value], spared: int = 1) -> float | None:
    """How far a slope is off the differences: those of a short step, if those of a long one do not agree.

    Rounding is allowed for, as many times as it is to be `spared`. None if no two steps agree much better with each
    other than with what was found: the function is too steep here, or has a kink, and its differences say nothing.
    """
    along = cache(along)  # the slopes of several steps, and on either side, have points in common
    if not np.isfinite(found):
        # nor is the function to be finite nearby, as a^x of a negative number a
        return float("inf") if any(np.isfinite(inner(k, slope(along, h))) for h in _STEPS) else None
    size = spared * float(np.finfo(float).eps) * sum(float(np.sum(np.abs(x))) for x in items_of(along(0.0)))
    before = float("nan")
    for h in _STEPS:
        expected = inner(k, slope(along, h))
        noise = size / h / TOLERANCE
        scale = max(1.0, abs(expected), noise)
        if h < _SHORT and noise == scale:
            break  # nothing is seen beside rounding
        off, unsure = abs(found - expected) / scale, abs(expected - before) / scale
        settled = unsure <= _SETTLED and 10 * unsure <= off
        if off <= TOLERANCE or (settled and not _is_kink(k, along, h, off * scale, size / h)):
            return off
        before = expected
    return None


def _is_kink(k: Value, along: Callable[[float], Value], h: float, off: float, rounding: float) -> bool:
    """Whether there is no derivative at 0, as on a branch cut: what is `off` may be due to a bend of the function.

    The slopes on the two sides of a smooth function differ less and less where steps are shorter.
    """
    bend = _bend(k, along, h)
    return bend > max(off / _BENT, _BENT * rounding) and 2 * bend > _bend(k, along, 4 * h)


def _bend(k: Value, along: Callable[[float], Value], h: float) -> float:
    """How far the slopes on the two sides of 0 differ."""
    behind, back, here, near, far = (items_of(along(s * h)) for s in (-2, -1, 0, 1, 2))
    right = [(4 * b - 3 * a - c) / (2 * h) for a, b, c in zip(here, near, far, strict=True)]
    left = [(3 * a - 4 * b + c) / (2 * h) for a, b, c in zip(here, back, behind, strict=True)]
    return abs(inner(k, right) - inner(k, left))


def items_of(value: object) -> list[Numbers]:
    """The items of a tuple, or the one value, as complex arrays."""
    return [np.asarray(v, dtype=complex) for v in flattened((value,))]
