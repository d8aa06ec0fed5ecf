"""Arrays and functions for a program's parameters: ordinary numbers, and numbers that are traps.

Weathers: `normal`; `grid`, small integers with zeros and repeated entries; `sparse`, normal with zeros and repeats;
`extreme`, one magnitude between 1e-140 and 1e140 for each parameter; `small`, none above 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np

from . import tangents as T
from .kinds import Count, Function, Index, Integers, Law, Number, Range, Tensor, Type, over_complex
from .meaning import Held, Scope, evaluate, lifted, place, values_of
from .syntax import Affine, App, Lam, Mul, Program, Ref, Sum, Var

WEATHERS = ("normal", "grid", "sparse", "extreme", "small")
EXTREMES = ("extreme", "small")
Array = Any


@dataclass(frozen=True)
class Wave:
    """A function of numbers, scale · sin(Σ slopesₙ xₙ + shift), whose derivatives all exist."""

    slopes: tuple[complex, ...]
    shift: complex
    scale: complex
    complex: bool
    argument_complex: bool = False

    def on(self, args: Sequence[T.Value]) -> T.Value:
        """Its value on arrays, with tangents or without."""
        inner: Any = self._number(self.shift)
        for slope, x in zip(self.slopes, args, strict=True):
            inner = T.add(inner, T.mul(self._number(slope), x))
        return T.mul(self._number(self.scale), T.call("sin", inner, self.complex))

    def __call__(self, scope: Scope, args: Sequence[Held]) -> T.Value:
        return self.on([lifted(a, scope.depth) for a in args])

    def _number(self, z: complex) -> Any:
        return np.clongdouble(z) if self.complex else np.longdouble(z.real)


@dataclass(frozen=True)
class Energy:
    """A function of a real tensor to a number: scale · Σ sin(slope xᵢ + i) + (Σ xᵢ)²/10, i being the entry's place."""

    slope: float
    scale: float
    slots: int

    def _phases(self, x: Array) -> Array:
        shape = x.shape[x.ndim - self.slots :]
        return np.arange(int(np.prod(shape))).reshape(shape)

    def __call__(self, scope: Scope, args: Sequence[Held]) -> T.Value:
        (x,) = args
        depth = x.depth
        axes = tuple(range(-self.slots, 0))
        phases = self._phases(T.primal(x.value))
        inner = T.each(x.value, lambda a: a * np.longdouble(self.slope))
        waves = T.call("sin", T.add(inner, phases * np.longdouble(1)), False)
        first = T.each(waves, lambda a: a.sum(axis=axes) * np.longdouble(self.scale))
        total = T.each(x.value, lambda a: a.sum(axis=axes))
        second = T.scaled(T.mul(total, total), Fraction(1, 10))
        return lifted(Held(T.add(first, second), depth), scope.depth)

    def on(self, x: Array) -> Array:
        """Its value on one array."""
        return self.scale * np.sin(self.slope * x + self._phases(x)).sum() + x.sum() ** 2 / 10

    def gradient(self, x: Array) -> Array:
        return self.scale * self.slope * np.cos(self.slope * x + self._phases(x)) + x.sum() / 5

    def product(self, x: Array, k: Array) -> Array:
        """The Hessian times k."""
        return -self.scale * self.slope**2 * np.sin(self.slope * x + self._phases(x)) * k + k.sum() / 5

    def third(self, x: Array, k: Array, c: Array) -> Array:
        """The gradient of Σ c · (Hessian · k) by x."""
        return -self.scale * self.slope**3 * np.cos(self.slope * x + self._phases(x)) * k * c


@dataclass(frozen=True)
class Matrix:
    """A linear map of tensors, by its array: axes of the result first."""

    array: Array
    source: Type
    target: Type

    @property
    def adjoint(self) -> Matrix:
        rows = len(_slots(self.target))
        order = (*range(rows, self.array.ndim), *range(rows))
        return Matrix(self.array.conj().transpose(order), self.target, self.source)

    def __call__(self, scope: Scope, args: Sequence[Held]) -> Any:
        rows, columns = (tuple(Var(Index(r)) for r in _slots(k)) for k in (self.target, self.source))
        m, x = Var(Tensor(_slots(self.target) + _slots(self.source), self.array.dtype.kind == "c")), Var(self.source)
        weight = App(Ref(m), _bare((*rows, *columns)))
        body = Sum(columns, Mul((weight, App(Ref(x), _bare(columns)))))
        array = Held(_wide(self.array)[None], 0, m.kind.slots)  # type: ignore[union-attr]
        return evaluate(Lam(rows, body), scope.with_((m, x), (array, args[0])))

    def on(self, x: Array) -> Array:
        """Its value on one array, which has an axis for each direction of a lattice; ours have one a slot."""
        width = len(_slots(self.source))
        flat = np.reshape(x, self.array.shape[self.array.ndim - width :])
        return np.tensordot(self.array, flat, axes=width).reshape(shape_of(self.target))


def _slots(kind: Type) -> tuple[Range, ...]:
    assert isinstance(kind, Tensor), "linear maps take tensors"
    return kind.slots


def _bare(indices: Sequence[Var]) -> tuple[Affine, ...]:
    return tuple(Affine(((1, i),)) for i in indices)


SUPPLIED = (Wave, Energy, Matrix)

# --- drawing --------------------------------------------------------------------------------------------------------


def draw(program: Program, weather: str, seed: int) -> dict[Var, Any]:
    """Values in double precision for all parameters, in the subspaces that they declare."""
    rng = np.random.default_rng([seed, program.seed])
    return {p: _value(p, weather, rng) for p in program.params if not isinstance(p.kind, Count)}


def _value(p: Var, weather: str, rng: np.random.Generator) -> Any:
    match p.kind:
        case Number(complex=c):
            return numbers((), c, p.positive, weather, rng)[()]
        case Tensor(slots, c, space):
            array = numbers(tuple(r.count for r in slots), c, p.positive, weather, rng)
            if space is not None and space.laws:
                array = projected(array, slots, space.laws, c)
            return array
        case Integers(slots, entry):
            values = values_of(entry)[:, 0]
            return rng.choice(values[: 1 + len(values) // 2] if weather == "grid" else values, [r.count for r in slots])
        case Function(params, result, True):
            shape = tuple(r.count for k in (result, params[0]) for r in _slots(k))
            return Matrix(numbers(shape, over_complex(result), False, "normal", rng), params[0], result)
        case Function((Tensor(slots),)):
            slope, scale = numbers((2,), False, False, "normal", rng)
            return Energy(float(slope), float(scale), len(slots))
        case Function(params, result):
            c = over_complex(result)
            weights = numbers((len(params),), c, False, "normal", rng)
            scale, shift = numbers((2,), c, False, "normal", rng)
            return Wave(tuple(complex(w) for w in weights), complex(shift), complex(scale), c, over_complex(params[0]))
    raise AssertionError(f"no values of {p.kind}")


def numbers(shape: tuple[int, ...], c: bool, positive: bool, weather: str, rng: np.random.Generator) -> Array:
    """Random numbers of one weather."""
    scale = 1.0
    if weather in EXTREMES and rng.random() < 0.7:
        # powers of large numbers soon leave floating point, and then nothing is asked of them
        most = int(rng.choice((90, 90, 140)))
        size = int(rng.integers(0, most + 1))
        scale = float(f"1e{-size if weather == 'small' or rng.random() < 0.7 else size}")
    found = _real(shape, positive, weather, rng)
    if c:
        found = found + 1j * _real(shape, False, weather, rng)
    return found * scale


def _real(shape: tuple[int, ...], positive: bool, weather: str, rng: np.random.Generator) -> Array:
    normal = rng.standard_normal(shape)
    match weather:
        case "grid":
            return rng.integers(1, 4, shape) * 1.0 if positive else rng.integers(-2, 3, shape) * 1.0
        case "sparse" if not positive:
            normal = np.asarray(np.round(normal, 0) if rng.random() < 0.3 else normal)
            return np.where(rng.random(shape) < 0.4, 0.0, normal)
    return np.abs(normal) + 0.5 if positive else normal


# --- declared symmetries --------------------------------------------------------------------------------------------

Element = tuple[Any, int, bool]
"""An element of a group: where entry a comes from, the sign, and whether it is conjugated."""


def group(slots: Sequence[Range], laws: Sequence[Law], most: float = inf) -> list[Element]:
    """All elements that the laws make, as maps of flat positions; a few more than `most`, if there are so many."""
    shape = tuple(r.count for r in slots)
    count = int(np.prod(shape))
    generators = [(images(slots, law), law.sign, law.conj) for law in laws]
    identity = np.arange(count)
    found: dict[tuple[bytes, int, bool], Element] = {(identity.tobytes(), 1, False): (identity, 1, False)}
    pending = list(found.values())
    while pending and len(found) <= most:
        place_, sign, conj = pending.pop()
        for g, s, c in generators:
            new = (place_[g], sign * s, conj != c)
            key = (new[0].tobytes(), new[1], new[2])
            if key not in found:
                found[key] = new
                pending.append(new)
    return list(found.values())


def images(slots: Sequence[Range], law: Law) -> Any:
    """For every entry a the flat position of rows(a)."""
    shape = tuple(r.count for r in slots)
    grid = np.indices(shape).reshape(len(shape), -1)
    points = [values_of(r)[at] for r, at in zip(slots, grid, strict=True)]
    places = []
    for row, slot in zip(law.rows, slots, strict=True):
        at = sum(c * points[s] for s, c in row)
        places.append(place([at[:, n] for n in range(at.shape[1])], slot))
    return np.ravel_multi_index(places, shape)


def projected(array: Array, slots: Sequence[Range], laws: Sequence[Law], c: bool) -> Array:
    """An array with the symmetries, exactly: each entry follows from the first one of its orbit.

    What leaves that first entry in its place says of it that it is zero, real or imaginary.
    """
    flat = array.reshape(-1)
    elements = group(slots, laws)
    identity = np.arange(flat.size)
    least = np.min([at for at, _, _ in elements], axis=0)
    for at, sign, conj in elements:
        stays = at == identity
        if conj and c:
            kept = flat.real if sign > 0 else 1j * flat.imag
            flat = np.where(stays, kept, flat)
        elif sign < 0:
            flat = np.where(stays, 0, flat)
    result = np.zeros_like(flat)
    for at, sign, conj in elements:
        # a zero that is turned around has a sign, and says on which side of a branch cut it lies
        image = sign * (flat[at].conj() if conj else flat[at]) + 0.0
        result = np.where(at == least, image, result)
    return result.reshape(array.shape)


# --- as the interpreter and as combdiff take them -------------------------------------------------------------------


def _wide(x: Any) -> Any:
    x = np.asarray(x)
    return x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble)


def scope_of(data: Mapping[Var, Any], dtype: type = np.longdouble) -> Scope:
    """The interpreter's scope for these values."""
    return Scope({v: _held(v.kind, x, dtype) for v, x in data.items()}, 0, dtype)


def _held(kind: Type, x: Any, dtype: type) -> Any:
    if isinstance(x, SUPPLIED):
        return x
    wide = _wide(x) if dtype is np.longdouble else np.asarray(x)
    slots = kind.slots if isinstance(kind, Tensor | Integers) else ()
    return Held(wide.reshape((1, *wide.shape)), 0, slots)


def arrays_of(data: Mapping[Var, Any]) -> dict[Var, Any]:
    """The values in the shapes that combdiff takes: an axis for each direction of a lattice."""
    found: dict[Var, Any] = {}
    for v, x in data.items():
        found[v] = (
            np.ascontiguousarray(np.asarray(x).reshape(shape_of(v.kind)))
            if isinstance(v.kind, Tensor | Integers)
            else x
        )
    return found


def shape_of(kind: Type) -> tuple[int, ...]:
    """The shape of a tensor's array."""
    assert isinstance(kind, Tensor | Integers), "tensors have shapes"
    return tuple(n for r in kind.slots for n in ((r.count,) if r.sort == "list" else r.sizes))
