"""The right derivative of a program at given numbers, found twice: by exact tangents and by finite differences.

What is differentiated is φ = Re⟨k, f⟩, k being 1 or the cotangents. Its gradient ∂φ/∂a + i ∂φ/∂b is known by its
products with directions, which are evaluated together: unit vectors of entries, and a few random ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from . import tangents as T
from .data import scope_of
from .kinds import Items, Number, Tensor, Type, over_complex
from .meaning import Held, evaluate
from .syntax import Program, Var

MOST_ENTRIES = 24
DENSE = 3
PAIRED = 5
STEPS = (1e-4, 2.5e-5)

CENTRAL = {-2: 1, -1: -8, 1: 8, 2: -1}
"""Twelve times the weight of each multiple of a step in a difference."""
FORWARD = {0: -22, 1: 36, 2: -18, 3: 4}
BACKWARD = {-m: -w for m, w in FORWARD.items()}


@dataclass(frozen=True)
class Directions:
    """Directions of the unknowns, all along one first axis; `entries` are the unit vectors among them."""

    arrays: Mapping[Var, Any]
    entries: tuple[tuple[int, int, bool], ...]
    """Of the first directions: number of the unknown, flat position, whether it is along the imaginary axis."""

    @property
    def count(self) -> int:
        return len(next(iter(self.arrays.values())))


def sizes_of(kind: Type) -> tuple[int, ...]:
    return tuple(r.count for r in kind.slots) if isinstance(kind, Tensor) else ()


def directions(program: Program, data: Mapping[Var, Any], rng: np.random.Generator) -> Directions:
    """Unit vectors of all entries, or of some where there are many, then random directions on the data's scale."""
    entries = [
        (n, at, imaginary)
        for n, u in enumerate(program.unknowns)
        for at in range(int(np.prod(sizes_of(u.kind))))
        for imaginary in ((False, True) if over_complex(u.kind) else (False,))
    ]
    if len(entries) > MOST_ENTRIES:
        chosen = sorted(rng.choice(len(entries), MOST_ENTRIES, replace=False).tolist())
        entries = [entries[n] for n in chosen]
    arrays = {}
    for n, u in enumerate(program.unknowns):
        shape = sizes_of(u.kind)
        c = over_complex(u.kind)
        array = np.zeros((len(entries) + DENSE, int(np.prod(shape))), complex if c else float)
        for row, (m, at, imaginary) in enumerate(entries):
            if m == n:
                array[row, at] = 1j if imaginary else 1
        scale = np.abs(data[u]).max(initial=0.0) or 1.0
        drawn = rng.standard_normal((DENSE, array.shape[1]))
        array[len(entries) :] = scale * (drawn + 1j * rng.standard_normal(drawn.shape) if c else drawn)
        arrays[u] = array.reshape(-1, *shape)
    return Directions(arrays, tuple(entries))


def value(
    program: Program,
    data: Mapping[Var, Any],
    dtype: type = np.longdouble,
    noise: np.random.Generator | None = None,
) -> list[Any]:
    """The values of the program, as arrays of one copy each."""
    scope = replace(scope_of(data, dtype), noise=noise)
    with np.errstate(all="ignore"):
        return [_array(v, k)[0] for v, k in _parts(evaluate(program.body, scope), program.body.kind)]


def largest(program: Program, data: Mapping[Var, Any]) -> tuple[float, float]:
    """The largest number that stands anywhere in the program's evaluation, and how much has cancelled in a sum."""
    found: list[float] = [0.0, 0.0]
    scope = replace(scope_of(data), seen=found)
    with np.errstate(all="ignore"):
        evaluate(program.body, scope)
    return found[0], found[1]


def slopes(
    program: Program,
    data: Mapping[Var, Any],
    along: Directions,
    cotangents: Sequence[Any] = (),
    second: Mapping[Var, Any] | None = None,
    dtype: type = np.longdouble,
    steep: list[float] | None = None,
    noise: np.random.Generator | None = None,
) -> Any:
    """The derivative of φ along each direction, by tangents; with `second` the derivative of that along `second`.

    The largest derivative that is met on the way is written to `steep`. With `noise` each number on the way is off.
    """
    scope = replace(scope_of(data, dtype), steep=steep, noise=noise)
    moved = {}
    outer, inner = T.fresh_tag(), T.fresh_tag()
    for u in program.unknowns:
        held = scope.values[u]
        p = held.value
        if second is not None:
            p = T.Dual(outer, p, _typed(second[u], dtype)[None])
        moved[u] = Held(T.Dual(inner, p, _typed(along.arrays[u], dtype)), 0, held.slots)
    scope = scope.with_(tuple(moved), tuple(moved.values()))
    with np.errstate(all="ignore"):
        result = T.tangent_of(paired(program, evaluate(program.body, scope), cotangents, dtype), inner)
        if second is not None:
            result = T.tangent_of(result, outer)
    return np.broadcast_to(np.real(result), (along.count,))


def differences(
    program: Program,
    data: Mapping[Var, Any],
    along: Directions,
    rows: Sequence[int],
    cotangents: Sequence[Any] = (),
    weights: Mapping[int, int] = CENTRAL,
) -> list[Any]:
    """The derivative of φ along some directions by finite differences, once for each step size."""
    scope = scope_of(data)
    moved = {}
    for u in program.unknowns:
        held, d = scope.values[u], _typed(along.arrays[u][list(rows)], np.longdouble)
        points = [held.value + np.longdouble(h * m) * d for h in STEPS for m in weights]
        moved[u] = Held(np.concatenate(points), 0, held.slots)
    scope = scope.with_(tuple(moved), tuple(moved.values()))
    with np.errstate(all="ignore"):
        found = np.real(paired(program, evaluate(program.body, scope), cotangents, np.longdouble))
        found = np.broadcast_to(found, (len(STEPS) * len(weights) * len(rows),)).reshape(
            len(STEPS), len(weights), len(rows)
        )
        return [
            sum(w * found[n, m] for m, w in enumerate(weights.values())) / (12 * np.longdouble(h))
            for n, h in enumerate(STEPS)
        ]


def is_linear(program: Program, data: Mapping[Var, Any], cotangents: Sequence[Any], rng: np.random.Generator) -> bool:
    """Whether finite differences along two directions add up to those along their sum; at a corner they do not."""
    arrays = {}
    for u in program.unknowns:
        drawn = rng.standard_normal((2, PAIRED, *sizes_of(u.kind))) * (np.abs(data[u]).max(initial=0.0) or 1.0)
        singles = drawn[0] + 1j * drawn[1] if over_complex(u.kind) else drawn[0]
        arrays[u] = np.concatenate([singles, [a + b for a, b in combinations(singles, 2)]])
    along = Directions(arrays, ())
    found, _ = differences(program, data, along, range(along.count), cotangents)
    sums = np.array([a + b for a, b in combinations(found[:PAIRED], 2)])
    return bool((np.abs(sums - found[PAIRED:]) <= 1e-6 * (np.abs(found).max() + 1e-12)).all())


def _typed(x: Any, dtype: type) -> Any:
    x = np.asarray(x)
    if dtype is not np.longdouble:
        return x
    return x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble)


def _parts(result: Any, kind: Type) -> list[tuple[Any, Type]]:
    if isinstance(kind, Items):
        return [pair for r, k in zip(result, kind.of, strict=True) for pair in _parts(r, k)]
    return [(result, kind)]


def result_kinds(program: Program) -> list[Type]:
    """The types of the program's results."""
    kind = program.body.kind
    return list(kind.of) if isinstance(kind, Items) else [kind]


def _array(result: Any, kind: Type) -> Any:
    """A result as an array whose first axis are copies."""
    if isinstance(kind, Number):
        return np.reshape(result, (-1,)) if np.ndim(result) else np.reshape(result, (1,))
    return result.value


def paired(program: Program, result: Any, cotangents: Sequence[Any], dtype: type) -> T.Value:
    """Re⟨k, f⟩ for each copy."""
    total: T.Value = None
    for n, (r, kind) in enumerate(_parts(result, program.body.kind)):
        if isinstance(kind, Number):
            v = r
            if cotangents:
                v = T.mul(_typed(np.conj(cotangents[n]), dtype)[()], v)
            v = T.real(v)
        else:
            k = _typed(np.conj(cotangents[n]), dtype)
            axes = tuple(range(1, 1 + len(sizes_of(kind))))
            v = T.real(T.each(T.mul(k[None], r.value), lambda x, axes=axes: x.sum(axis=axes)))
        total = v if total is None else T.add(total, v)
    return total
