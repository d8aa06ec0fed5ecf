"""Linear maps on numbers and arrays: a random one with its exact adjoint, adjoints and inverses by probing.

Everything here is linear over the real numbers and takes ⟨a, b⟩ to be Re Σ a' b, so that a map of complex tensors may
conjugate, as pullbacks of functions that are not holomorphic do. A complex number counts as two real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from combdiff.errors import UnsupportedError
from combdiff.meaning.values import Value
from combdiff.records import dataclass
from combdiff.terms.types import Map, Number, Type, is_complex

Coordinates: TypeAlias = npt.NDArray[np.float64]
Function: TypeAlias = Callable[[Value], Value]


@dataclass(frozen=True, slots=True)
class Space:
    """Numbers (of shape ()) or arrays, real or complex."""

    shape: tuple[int, ...]
    over_complex: bool

    def held(self, x: Value) -> Value:
        """What stands for an element: an array, or a number; the real part in a real space."""
        array = np.asarray(x).reshape(self.shape)
        array = array.astype(complex) if self.over_complex else np.asarray(array.real, dtype=float)
        return array if self.shape else array.item()

    def basis(self) -> Iterator[Value]:
        """The elements of the standard basis over the real numbers, those with i after those without."""
        for unit in (1.0, 1j) if self.over_complex else (1.0,):
            for place in np.ndindex(self.shape):
                element = np.zeros(self.shape, complex if self.over_complex else float)
                element[place] = unit
                yield element if self.shape else element.item()

    def coordinates(self, x: Value) -> Coordinates:
        """The real coordinates in that basis."""
        flat = np.ravel(np.asarray(x, dtype=complex))
        return np.concatenate([flat.real, flat.imag]) if self.over_complex else np.array(flat.real)

    def element(self, coordinates: Coordinates) -> Value:
        """The element with these coordinates."""
        half = len(coordinates) // 2
        flat = coordinates[:half] + 1j * coordinates[half:] if self.over_complex else coordinates
        return self.held(flat)


def space_of(kind: Type, shape: Callable[[Map], tuple[int, ...]]) -> Space:
    """The space of values of `kind`, a number or a tensor, whose shape `shape` tells.

    >>> space_of(Number(complex=True), lambda _: ())
    Space(shape=(), over_complex=True)
    """
    match kind:
        case Map() if kind.is_tensor:
            return Space(shape(kind), is_complex(kind))
        case Number():
            return Space((), kind.complex)
        case _:
            raise UnsupportedError(
                "a linear map of functions has no numbers to be computed with",
                remedy="let it map tensors: give the functions a periodic domain in the place of R",
            )


_SINGULAR = 1e13
"""A condition number beyond which no digit of a solution means anything."""


@dataclass(frozen=True, slots=True)
class LinearMap:
    """x ↦ M x, where the matrix acts on real coordinates."""

    source: Space
    target: Space
    matrix: Coordinates

    def __call__(self, x: Value) -> Value:
        return self.target.element(self.matrix @ self.source.coordinates(x))

    @property
    def adjoint(self) -> LinearMap:
        return LinearMap(self.target, self.source, self.matrix.T)

    @property
    def inverse(self) -> LinearMap:
        """The inverse; its values are nan where there is none, or none that rounding leaves.

        >>> plane = Space((2,), over_complex=False)
        >>> LinearMap(plane, plane, np.array([[0.1, 0.3], [0.2, 0.6]])).inverse(np.ones(2))
        array([nan, nan])
        """
        try:
            matrix = np.asarray(np.linalg.inv(self.matrix), dtype=np.float64)
        except np.linalg.LinAlgError:
            matrix = np.full(self.matrix.T.shape, np.nan)
        if np.linalg.norm(self.matrix) * np.linalg.norm(matrix) > _SINGULAR:
            matrix = np.full(matrix.shape, np.nan)
        return LinearMap(self.target, self.source, matrix)


def probed(function: Function, source: Space, target: Space) -> LinearMap:
    """The linear map that a Python function computes, found from its values on a basis.

    >>> line = Space((), over_complex=False)
    >>> probed(lambda x: 3 * x, line, line).inverse(6.0)
    2.0
    """
    columns = [target.coordinates(function(e)) for e in source.basis()]
    rows = len(target.coordinates(target.held(np.zeros(target.shape))))
    return LinearMap(source, target, np.array(columns, dtype=np.float64).reshape(len(columns), rows).T)


def random_linear(source: Space, target: Space, rng: np.random.Generator) -> LinearMap:
    """A random map, linear over the complex numbers where both spaces are complex.

    >>> plane = Space((2,), over_complex=True)
    >>> D = random_linear(plane, plane, np.random.default_rng(0))
    >>> x, k = np.array([1j, 2]), np.array([3, 1 - 1j])
    >>> bool(np.isclose(np.vdot(D.adjoint(k), x), np.vdot(k, D(x))))
    True
    """
    shape = (int(np.prod(target.shape)), int(np.prod(source.shape)))
    matrix = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return probed(lambda x: target.held(matrix @ np.ravel(np.asarray(x))), source, target)


def as_adjoint(f: LinearMap, adjoint: str) -> LinearMap:
    """The part of a map whose adjoint is the map, "self", or its negative, "neg"; all of it for no word.

    >>> line = Space((2,), over_complex=False)
    >>> as_adjoint(LinearMap(line, line, np.array([[1.0, 2.0], [4.0, 1.0]])), "neg").matrix
    array([[ 0., -1.],
           [ 1.,  0.]])
    """
    if not adjoint:
        return f
    sign = 1 if adjoint == "self" else -1
    return LinearMap(f.source, f.target, (f.matrix + sign * f.matrix.T) / 2)


_STEPS, _CLOSE, _DIFFERENCE = 60, 1e-13, 1e-3


def newton(function: Function, space: Space, start: Value = 0.0) -> Value:
    """An x with function(x) = 0: Newton's method from `start`, its slopes from differences; nan where it is not found.

    >>> root = newton(lambda x: x**3 + x - 2, Space((), over_complex=False))
    >>> abs(root - 1) < 1e-9
    True
    """
    x = space.coordinates(np.broadcast_to(np.asarray(start), space.shape))
    value = space.coordinates(function(space.element(x)))
    for _ in range(_STEPS):
        size = float(np.abs(value).max(initial=0.0))
        if size <= _CLOSE * max(1.0, float(np.abs(x).max(initial=0.0))):
            return space.element(x)
        if not np.isfinite(value).all():
            break
        try:
            step = np.asarray(np.linalg.solve(_slopes(function, space, x), value), dtype=np.float64)
        except np.linalg.LinAlgError:
            break
        x, value, better = _moved(function, space, x, step, value)
        if not better:
            break
    # differences of nearly equal numbers end a little before the last digit
    near = float(np.abs(value).max(initial=0.0)) <= 1e-10 * max(1.0, float(np.abs(x).max(initial=0.0)))
    return space.element(x if near else np.full_like(x, np.nan))


def _moved(
    function: Function, space: Space, x: Coordinates, step: Coordinates, value: Coordinates
) -> tuple[Coordinates, Coordinates, bool]:
    """A step, shortened until the residual is smaller; and whether it is."""
    for halvings in range(30):
        moved = x - step / 2**halvings
        found = space.coordinates(function(space.element(moved)))
        if np.linalg.norm(found) < np.linalg.norm(value):
            return moved, found, True
    return x, space.coordinates(function(space.element(x))), False


def _slopes(function: Function, space: Space, x: Coordinates) -> Coordinates:
    """The Jacobian in real coordinates, from differences to fourth order."""
    columns = []
    for n in range(len(x)):
        h = _DIFFERENCE * max(1.0, abs(x[n]))
        at = [_value(function, space, x, n, s * h) for s in (-2, -1, 1, 2)]
        columns.append((8 * (at[2] - at[1]) - (at[3] - at[0])) / (12 * h))
    return np.array(columns).T


def _value(function: Function, space: Space, x: Coordinates, n: int, h: float) -> Coordinates:
    moved = x.copy()
    moved[n] += h
    return space.coordinates(function(space.element(moved)))
