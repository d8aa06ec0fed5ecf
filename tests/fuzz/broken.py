"""Arrays that break the symmetry that they declare, plainly or behind a nan, an infinity or one large entry."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from .data import group
from .syntax import Tensor, Var

MARGIN = 1e-3


def breakable(v: Var) -> bool:
    """Whether `v` has a declared symmetry that relates different entries."""
    if not (isinstance(v.kind, Tensor) and v.kind.space is not None and v.kind.space.laws):
        return False
    identity = np.arange(int(np.prod([r.count for r in v.kind.slots])))
    return any((at != identity).any() for at, _, _ in group(v.kind.slots, v.kind.space.laws))


def broken(v: Var, array: Any, rng: Random) -> tuple[Any, str]:
    """The array with one entry changed that a law relates to another, and how."""
    assert isinstance(v.kind, Tensor) and v.kind.space is not None, "a tensor with laws"
    identity = np.arange(array.size)
    pairs = [(a, int(at[a])) for at, _, _ in group(v.kind.slots, v.kind.space.laws) for a in identity[at != identity]]
    a, b = rng.choice(pairs)
    how = rng.choice(("one entry", "a nan", "an infinity", "one large entry", "all large"))
    flat = np.array(array.reshape(-1))
    size = float(np.abs(flat).max()) or 1.0
    flat[a] = flat[a] + size * rng.choice((0.5, 1.0, 30.0, MARGIN))
    others = [n for n in range(flat.size) if n not in (a, b)]
    match how:
        case "a nan":
            flat[rng.choice(others or [a])] = np.nan
        case "an infinity":
            flat[rng.choice(others or [a])] = np.inf
        case "one large entry":
            elements = group(v.kind.slots, v.kind.space.laws)
            fixed = [n for n in others if all(at[n] == n and s > 0 for at, s, _ in elements)]
            if fixed:
                flat[rng.choice(fixed)] = size * 1e14
        case "all large":
            flat = flat * 1e120
    return flat.reshape(array.shape), how


__all__ = ["breakable", "broken"]
