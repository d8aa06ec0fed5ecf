"""Checks forward mode: tangents, and Jacobians times directions, against finite differences.

The derivative of f along dz is compared in random directions w of its values: Re⟨w, ℱ(f)(z, dz)⟩ is the slope of
Re⟨w, f(z + h dz)⟩, and ℱ(f)(z, dz) is (∂f/∂z) dz + (∂f/∂z*) dz*.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from combdiff.checking.functions import Smooth, Surface, evaluated, is_on_interval, random_variation, with_slopes
from combdiff.meaning.differences import Numbers, inner, items_of, off_slope
from combdiff.meaning.samples import random_value
from combdiff.meaning.sizes import Sizes
from combdiff.meaning.values import Value
from combdiff.terms.terms import Lam, Term
from combdiff.terms.types import Map, Type, is_complex

_DIRECTIONS = 2  # at each set of sizes


def off_tangent(
    f: Lam,
    body: Term,
    directions: Sequence[Value],
    found: Sequence[Numbers],
    values: dict[Term, Value],
    sizes: Sizes,
    rng: np.random.Generator,
) -> float | None:
    """How far the tangents `found` of the values of f are off the differences along `directions`, as `off_slope`."""

    def along(h: float) -> Value:
        there: dict[Term, Value] = {x: moved(values[x], dx, h) for x, dx in zip(f.params, directions, strict=True)}
        return evaluated(body, {**values, **with_slopes(there, values)}, sizes)

    offs: list[float] = []
    for _ in range(_DIRECTIONS):
        w = tuple(_weights(np.shape(x), rng) for x in found)
        off = off_slope(inner(w, found), w, along)
        offs += [] if off is None else [off]
    return max(offs, default=None)


def off_matrices(
    f: Lam, body: Term, found: Sequence[Numbers], values: dict[Term, Value], sizes: Sizes, rng: np.random.Generator
) -> float | None:
    """How far Jacobians are off, by what they make of random directions."""
    shapes = [np.shape(x) for x in items_of(evaluated(body, values, sizes))]
    offs: list[float] = []
    for _ in range(_DIRECTIONS):
        directions = [direction_of(x.kind, sizes, rng) for x in f.params]
        off = off_tangent(f, body, directions, _tangents(f, shapes, found, directions), values, sizes, rng)
        offs += [] if off is None else [off]
    return max(offs, default=None)


def _tangents(
    f: Lam, shapes: Sequence[tuple[int, ...]], found: Sequence[Numbers], directions: Sequence[Value]
) -> list[Numbers]:
    """The tangents that Jacobians make of directions; those by conjugates are all there, or none of them is."""
    paired = len(found) > len(shapes) * len(f.params)
    rest = iter(found)
    tangents: list[Numbers] = [np.zeros(shape, complex) for shape in shapes]
    for n, shape in enumerate(shapes):
        for x, direction in zip(f.params, directions, strict=True):
            dx = items_of(direction)[0]
            for step in (dx, dx.conj()) if paired and is_complex(x.kind) else (dx,):
                tangents[n] = tangents[n] + _times(next(rest), step, shape)
    assert next(rest, None) is None, "an array for each result and unknown, and for its conjugate"
    return tangents


def _times(matrix: Numbers, step: Numbers, shape: tuple[int, ...]) -> Numbers:
    if matrix.shape != (*shape, *step.shape):
        return np.full(shape, np.inf, complex)
    return np.asarray(np.tensordot(matrix, step, step.ndim), complex)


def _weights(shape: tuple[int, ...], rng: np.random.Generator) -> Numbers:
    return np.asarray(rng.standard_normal(shape) + 1j * rng.standard_normal(shape))


def direction_of(kind: Type, sizes: Sizes, rng: np.random.Generator) -> Value:
    """A direction in the full space: declared symmetries are not kept."""
    if is_on_interval(kind):
        return random_variation(kind, rng)
    free = Map(kind.params, kind.result) if isinstance(kind, Map) else kind
    return random_value(free, sizes, rng)


def moved(at: Value, direction: Value, h: float) -> Value:
    """at + h·direction, of functions value by value."""
    if isinstance(at, Smooth) and isinstance(direction, Smooth):
        return at.moved(direction, h)
    if isinstance(at, Surface) and isinstance(direction, Surface):
        return at.moved(direction, h)
    if callable(at) and callable(direction):
        return lambda *args: _sum(at(*args), direction(*args), h)
    return _sum(at, direction, h)


def _sum(at: Value, direction: Value, h: float) -> Value:
    """at + h·direction for numbers and arrays."""
    assert not isinstance(at, tuple) and not callable(at), "a number or an array"
    assert not isinstance(direction, tuple) and not callable(direction), "a number or an array"
    found: Value = np.asarray(at) + h * np.asarray(direction)
    return found
