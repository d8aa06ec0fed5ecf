"""Derivatives, adjoints, inverses and roots inside of programs, by tangents and elimination."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from . import tangents as T
from .meaning import NEWTON_STEPS, Held, Scope, evaluate, lifted, place, points_of
from .syntax import Derived, Function, Items, Number, Range, Tensor, Type, over_complex


def derived(e: Derived, scope: Scope) -> Any:
    """The function, number or tensor that `e` stands for."""
    f, kind = evaluate(e.of, scope), e.of.kind
    assert isinstance(kind, Function), "only functions are derived"
    match e.how:
        case "grad" | "pullback":
            return lambda call, args: pulled_back(f, kind, e.how == "pullback", e.which, call, args)
        case "adjoint":
            return f.adjoint
        case "inverse":
            return lambda call, args: solved(f, kind, call, args[0])
        case "root":
            return newton(f, kind, scope)
    raise AssertionError(e.how)


def pulled_back(f: Any, kind: Function, cotangent: bool, which: int, scope: Scope, args: Sequence[Any]) -> Any:
    """∇f at the arguments, or 𝒫(f) with the last of them for a cotangent."""
    points, k = (args[:-1], args[-1]) if cotangent else (args, None)
    wanted = [which - 1] if which else range(len(points))
    found = [_by_one(f, kind, n, scope, points, k) for n in wanted]
    return found[0] if len(found) == 1 else tuple(found)


def _by_one(f: Any, kind: Function, n: int, scope: Scope, points: Sequence[Any], k: Any) -> Any:
    """The derivative by the n-th argument: an axis for each slot of it, along which the direction moves."""
    by = kind.params[n]
    slots = by.slots if isinstance(by, Tensor) else ()
    inner = scope
    for _ in slots:
        inner = replace(inner, depth=inner.depth + 1)
    result: Any = None
    for unit in (1, 1j) if over_complex(by) else (1,):
        tag = T.fresh_tag()
        moved = _moved(points[n], slots, scope.depth, inner, tag, unit)
        at = [moved if m == n else p for m, p in enumerate(points)]
        slope = T.real(_paired(f(inner, at), kind.result, k, inner, tag))
        part = slope if unit == 1 else T.mul(slope, inner.dtype(1) * np.clongdouble(1j))
        result = part if result is None else T.add(result, part)
    if not slots:
        return result
    counts = tuple(r.count for r in slots)

    def full(x: Any) -> Any:
        x = x.reshape((1,) * (1 + inner.depth)) if not x.ndim else x
        return T.xp_of(x).broadcast_to(x, x.shape[: 1 + scope.depth] + counts)

    return Held(T.each(result, full), scope.depth, slots)


def _moved(point: Any, slots: tuple[Range, ...], depth: int, inner: Scope, tag: int, unit: complex) -> Held:
    """The argument with a tangent: the unit vector of the slots' values in the new axes."""
    one = inner.dtype(1) if unit == 1 else inner.dtype(1) * np.clongdouble(1j)
    if not slots:
        value = lifted(point, inner.depth)
        return Held(T.Dual(tag, value, one), inner.depth)
    # axes: copies, outer indices, directions, then the slots themselves
    own = point.depth
    shape = (1,) * (1 + depth) + tuple(r.count for r in slots)
    direction: Any = one
    for n, r in enumerate(slots):
        eye = np.eye(r.count)
        axes = [1] * (1 + inner.depth + len(slots))
        axes[1 + depth + n], axes[1 + inner.depth + n] = r.count, r.count
        direction = direction * eye.reshape(axes)
    del shape
    lift = (1,) * (inner.depth - own)

    def spread(x: Any) -> Any:
        return x.reshape(x.shape[: 1 + own] + lift + x.shape[1 + own :])

    return Held(T.Dual(tag, T.each(point.value, spread), direction), inner.depth, slots)


def _paired(value: Any, kind: Type, k: Any, scope: Scope, tag: int) -> T.Value:
    """Re⟨k, derivative⟩, k being 1 where there is none."""
    match kind:
        case Items(of):
            pairs = [
                _paired(v, t, None if k is None else k[n], scope, tag)
                for n, (v, t) in enumerate(zip(value, of, strict=True))
            ]
            result = pairs[0]
            for more in pairs[1:]:
                result = T.add(result, more)
            return result
        case Number():
            slope = T.tangent_of(value, tag)
            return slope if k is None else T.mul(T.conj(lifted(k, scope.depth)), slope)
        case Tensor(slots):
            return _contracted(k, T.tangent_of(value.value, tag), value, slots, scope)
    raise AssertionError("a derivative of a map to maps")


def _contracted(k: Held, slope: T.Value, value: Held, slots: tuple[Range, ...], scope: Scope) -> T.Value:
    if not isinstance(slope, T.Dual) and not np.ndim(T.primal(slope)):
        return slope
    weight = T.each(
        k.value, lambda x: x.reshape(x.shape[: 1 + k.depth] + (1,) * (scope.depth - k.depth) + x.shape[1 + k.depth :])
    )
    lift = (1,) * (scope.depth - value.depth)
    slope = T.each(slope, lambda x: x.reshape(x.shape[: 1 + value.depth] + lift + x.shape[1 + value.depth :]))
    product = T.mul(T.conj(weight), slope)
    axes = tuple(range(-len(slots), 0))
    counts = tuple(r.count for r in slots)

    def total(x: Any) -> Any:
        return np.broadcast_to(x, x.shape[: -len(slots)] + counts).sum(axis=axes)

    return T.each(product, total)


# --- equations ------------------------------------------------------------------------------------------------------


def newton(f: Any, kind: Function, scope: Scope) -> Any:
    """The root that Newton's method finds from 0; every step is differentiated with the rest."""
    by = kind.params[0]
    entries = _entries(by)
    zero = scope.dtype(0) * (np.clongdouble(1) if over_complex(by) else 1)
    x = [np.full((1,) * (1 + scope.depth), zero) for _ in entries]
    for _ in range(NEWTON_STEPS):
        columns = []
        tag = 0
        for n in range(len(entries)):
            tag = T.fresh_tag()
            moved = [T.Dual(tag, v, scope.dtype(1)) if m == n else v for m, v in enumerate(x)]
            value = _listed(f(scope, [_packed(moved, by, scope)]), by, scope)
            columns.append([T.tangent_of(v, tag) for v in value])
            rest = [T.parts(v, tag)[0] for v in value]
        rows = [[columns[n][m] for n in range(len(x))] for m in range(len(x))]
        step = eliminated(rows, rest)
        x = [T.add(v, T.neg(s)) for v, s in zip(x, step, strict=True)]
    return _unheld(_packed(x, by, scope))


def solved(f: Any, kind: Function, scope: Scope, right: Any) -> Any:
    """The y with f(y) = right, for a map that is linear over the complex numbers."""
    by = kind.params[0]
    entries = _entries(by)
    columns = []
    for n in range(len(entries)):
        unit = [np.full((1,) * (1 + scope.depth), scope.dtype(m == n)) for m in range(len(entries))]
        columns.append(_listed(f(scope, [_packed(unit, by, scope)]), by, scope))
    rows = [[columns[n][m] for n in range(len(entries))] for m in range(len(entries))]
    known = _listed(right, by, scope)
    return _unheld(_packed(eliminated(rows, known), by, scope))


def eliminated(rows: list[list[T.Value]], right: list[T.Value]) -> list[T.Value]:
    """Gauss's elimination without exchanges: the generator writes equations with heavy diagonals."""
    rows, right = [list(row) for row in rows], list(right)
    size = len(right)
    for n in range(size):
        for m in range(n + 1, size):
            factor = T.div(rows[m][n], rows[n][n])
            rows[m] = [T.add(a, T.neg(T.mul(factor, b))) for a, b in zip(rows[m], rows[n], strict=True)]
            right[m] = T.add(right[m], T.neg(T.mul(factor, right[n])))
    found: list[T.Value] = [None] * size
    for n in reversed(range(size)):
        rest = right[n]
        for m in range(n + 1, size):
            rest = T.add(rest, T.neg(T.mul(rows[n][m], found[m])))
        found[n] = T.div(rest, rows[n][n])
    return found


def _entries(kind: Type) -> list[tuple[int, ...]]:
    return list(np.ndindex(*(r.count for r in kind.slots))) if isinstance(kind, Tensor) else [()]


def _packed(entries: list[T.Value], kind: Type, scope: Scope) -> Held:
    """Entries as a tensor: each times its own unit vector."""
    if not isinstance(kind, Tensor):
        return Held(entries[0], scope.depth)
    counts = tuple(r.count for r in kind.slots)
    result: Any = None
    for at, v in zip(np.ndindex(*counts), entries, strict=True):
        mask = np.zeros(counts, bool)
        mask[at] = True
        more = (1,) * len(counts)
        part = T.each(v, lambda x: np.where(mask, np.reshape(x, np.shape(x) + more) if np.ndim(x) else x, 0))  # noqa: B023
        result = part if result is None else T.add(result, part)
    full = T.each(result, lambda x: np.broadcast_to(x, x.shape[: -len(counts)] + counts) if x.ndim > len(counts) else x)
    full = T.each(full, lambda x: x.reshape((1,) * (1 + scope.depth) + counts) if x.ndim == len(counts) else x)
    return Held(full, scope.depth, kind.slots)


def _listed(value: Any, kind: Type, scope: Scope) -> list[T.Value]:
    """The entries of a number or a tensor, in the order of `_entries`."""
    if not isinstance(kind, Tensor):
        return [lifted(value, scope.depth) if isinstance(value, Held) else value]
    lift = (1,) * (scope.depth - value.depth)
    return [
        T.each(value.value, lambda x: x[(..., *at)].reshape(x.shape[: 1 + value.depth] + lift))  # noqa: B023
        for at in _entries(kind)
    ]


def _unheld(value: Held) -> Any:
    return value if value.slots else value.value


__all__ = ["derived", "place", "points_of"]
