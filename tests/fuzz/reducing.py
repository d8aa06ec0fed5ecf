"""Products, means, extrema, softmax, running sums and norms over indices, each with a condition if there is one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from . import tangents as T
from .kinds import Index, Tensor
from .meaning import Held, Scope, evaluate, noted
from .syntax import OF_MATRICES, Expr, Norm, Reduced, Var
from .truth import truth


def reduced(e: Expr, scope: Scope) -> Any:
    """A number, or a tensor of the indices."""
    if isinstance(e, Norm):
        return _norm(evaluate(e.of, scope), scope)
    assert isinstance(e, Reduced), "a reduction"
    if e.name in OF_MATRICES:
        return _of_matrix(e, scope)
    if e.name == "cross":
        return _cross(e, scope)
    v, mask = _flat(e.indices, e.body, None if e.weighted else e.condition, scope)
    if e.weighted:
        assert e.condition is not None, "a weight"
        w, _ = _flat(e.indices, e.condition, None, scope)
        return _weighted(e, v, w, scope)
    match e.name:
        case "sum":
            return _total(v, mask)
        case "prod":
            return _product(v, mask)
        case "mean":
            count = mask.sum(axis=-1)
            return T.each(_total(v, mask), lambda x: x / count)
        case "maximum" | "minimum":
            return _extreme(v, mask, e.name == "maximum")
        case "argmax" | "argmin":
            return _first(e, v, mask)
        case "logsumexp":
            return _logsumexp(v, mask)
    return _of_entries(e, v, mask, scope)


def _of_entries(e: Reduced, v: T.Value, mask: Any, scope: Scope) -> Held:
    match e.name:
        case "cumsum":
            found = T.each(T.where(mask, v), lambda x: T.xp_of(x).cumsum(x, axis=-1))
        case "softmax":
            found = _softmax(v, mask)
        case "ties":
            found = _shares(v, mask, _best(v, mask, True))
        case _:
            raise AssertionError(f"no meaning for {e.name}")
    return _held(e, found, scope)


def _held(e: Reduced, found: T.Value, scope: Scope) -> Held:
    """A tensor of the numbers along the last axis."""
    assert isinstance(e.kind, Tensor), "a tensor"
    slots = e.kind.slots
    counts = tuple(r.count for r in slots)
    return Held(T.each(found, lambda x: x.reshape(x.shape[:-1] + counts)), scope.depth, slots)


def _flat(indices: Sequence[Var], body: Expr, condition: Expr | None, scope: Scope) -> tuple[T.Value, Any]:
    """The numbers that are reduced, all along one last axis, and which of them count."""
    inner = scope.within(indices)
    value = evaluate(body, inner)
    counts = tuple(i.kind.range.count for i in indices if isinstance(i.kind, Index))
    holds: Any = np.ones((1,) * (1 + inner.depth), bool)
    if condition is not None:
        holds, known = truth(condition, inner)
        value = T.where(known, value, float("nan"))
        holds = holds | ~known

    def flat(x: Any) -> Any:
        x = x.reshape((1,) * (1 + inner.depth)) if not x.ndim else x
        wide = T.xp_of(x).broadcast_to(x, x.shape[: 1 + scope.depth] + counts)
        return wide.reshape((*x.shape[: 1 + scope.depth], -1))

    return T.each(value, flat), flat(holds)


def _cross(e: Reduced, scope: Scope) -> Held:
    """The vector product, component by component."""
    assert e.condition is not None, "the first vector"
    first, second = (_flat(e.indices, vector, None, scope)[0] for vector in (e.condition, e.body))
    found: T.Value = 0.0
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        entry = T.add(_product_of(first, j, second, k), T.neg(_product_of(first, k, second, j)))
        found = T.add(found, T.mul(T.each(entry, lambda x: x[..., None]), np.arange(3) == i))
    return _held(e, found, scope)


def _product_of(first: T.Value, j: int, second: T.Value, k: int) -> T.Value:
    return T.mul(T.each(first, lambda x: x[..., j]), T.each(second, lambda x: x[..., k]))


# --- functions of matrices ------------------------------------------------------------------------------------------


def _of_matrix(e: Reduced, scope: Scope) -> Any:
    """By expansion along rows, which divides by nothing: right where a matrix is singular or badly scaled, too."""
    v, _ = _flat(e.indices, e.body, None, scope)
    (n, _) = (i.kind.range.count for i in e.indices if isinstance(i.kind, Index))
    rows = [[T.each(v, lambda x: x[..., i * n + j]) for j in range(n)] for i in range(n)]  # noqa: B023
    one = T.xp_of(T.primal(v)).ones(T.primal(v).shape[:-1])
    above, below = _expanded(rows, one, 1), _expanded(rows[::-1], one, -1)[::-1]
    (determinant,) = above[-1].values()
    noted(determinant, scope)
    noted(1 / T.primal(determinant), scope)
    match e.name:
        case "det":
            return determinant
        case "logdet":
            return T.call("log", determinant, False)
        case "logabsdet":
            return T.call("log", T.call("abs", determinant, False), False)
    found: T.Value = None
    for i in range(n):
        for j in range(n):
            entry = T.mul(_minor(above[i], below[i + 1], 2**n - 1 - 2**j, one), (-1.0) ** (i + j))
            placed = T.mul(T.each(entry, lambda x: x[..., None]), np.arange(n * n) == j * n + i)
            found = placed if found is None else T.add(found, placed)
    if e.name == "inv":
        found = T.div(found, T.each(determinant, lambda x: x[..., None]))
    return _held(e, found, scope)


def _expanded(rows: list[list[T.Value]], one: T.Value, side: int) -> list[dict[int, T.Value]]:
    """Determinants of the first 0, 1, … rows, for each set of columns; with side −1 a new row is above the others."""
    found = [{0: one}]
    for row in rows:
        new: dict[int, T.Value] = {}
        for columns, value in found[-1].items():
            for c, entry in enumerate(row):
                if not columns >> c & 1:
                    passed = (columns >> c if side > 0 else columns & (2**c - 1)).bit_count()
                    term = T.mul(T.mul(value, entry), (-1.0) ** passed)
                    whole = columns | 1 << c
                    new[whole] = T.add(new[whole], term) if whole in new else term
        found.append(new)
    return found


def _minor(above: dict[int, T.Value], below: dict[int, T.Value], columns: int, one: T.Value) -> T.Value:
    """The determinant of all rows but one between these, for some columns."""
    total: T.Value = T.mul(one, 0.0)
    for first, value in above.items():
        if first & columns == first:
            crossed = sum(
                (columns & ~first & (2**c - 1)).bit_count() for c in range(first.bit_length()) if first >> c & 1
            )
            total = T.add(total, T.mul(T.mul(value, below[columns & ~first]), (-1.0) ** crossed))
    return total


def _total(v: T.Value, mask: Any) -> T.Value:
    return T.each(T.where(mask, v), lambda x: x.sum(axis=-1))


def _product(v: T.Value, mask: Any) -> T.Value:
    """Factor by factor, so that the product rule holds where factors are 0."""
    factors = T.add(T.where(mask, v), T.xp_of(mask).where(mask, 0, 1))
    count = T.primal(factors).shape[-1]
    return reduce(T.mul, [T.each(factors, lambda x: x[..., n]) for n in range(count)])  # noqa: B023


def _best(v: T.Value, mask: Any, largest: bool) -> Any:
    """The largest or the least number; of nothing −∞ or ∞."""
    p = T.primal(v)
    held = T.xp_of_all(p, mask).where(mask, p, -np.inf if largest else np.inf)
    return (held.max if largest else held.min)(axis=-1, keepdims=True)


def _first(e: Reduced, v: T.Value, mask: Any) -> Any:
    """The value of the index at which the extremum is reached first; of nothing the first of the range."""
    (index,) = e.indices
    assert isinstance(index.kind, Index), "an index"
    r = index.kind.range
    best = _best(v, mask, e.name == "argmax")
    meets = (T.primal(v) == best) & mask
    return meets.argmax(axis=-1) + (-(r.count // 2) if r.sort == "symmetric" else r.lower)


def _shares(v: T.Value, mask: Any, best: Any) -> Any:
    """The share of each number in the extremum; equal ones have equal shares."""
    meets = (T.primal(v) == best) & mask
    xp = T.xp_of(best)
    count = meets.sum(axis=-1, keepdims=True)
    return xp.where(xp.isnan(best), best, meets / xp.where(count == 0, 1, count))


def _extreme(v: T.Value, mask: Any, largest: bool) -> T.Value:
    best = _best(v, mask, largest)
    weights = _shares(v, mask, best)
    moved = T.each(T.where(mask, v), lambda x: (x * weights).sum(axis=-1))
    return T.with_primal(moved, best[..., 0])


def _exponentials(v: T.Value, mask: Any) -> tuple[T.Value, Any]:
    """exp(v − m), and the largest m."""
    p = T.primal(v)
    xp = T.xp_of_all(p, mask)
    largest = xp.where(mask, p, -np.inf).max(axis=-1, keepdims=True)
    moved = xp.where(xp.isfinite(largest), largest, 0)
    return T.where(mask, T.call("exp", T.where(mask, T.add(v, -moved)), False)), moved


def _logsumexp(v: T.Value, mask: Any) -> T.Value:
    exponentials, moved = _exponentials(v, mask)
    some = mask.any(axis=-1)
    total = T.add(_total(exponentials, mask), T.xp_of(some).where(some, 0, 1))
    result = T.where(some, T.add(T.call("log", total, False), moved[..., 0]))
    return T.add(result, T.xp_of(some).where(some, 0, -np.inf))


def _softmax(v: T.Value, mask: Any) -> T.Value:
    exponentials, _ = _exponentials(v, mask)
    some = mask.any(axis=-1, keepdims=True)
    total = T.each(exponentials, lambda x: x.sum(axis=-1, keepdims=True))
    return T.where(mask, T.div(exponentials, T.add(total, T.xp_of(some).where(some, 0, 1))))


def _weighted(e: Reduced, v: T.Value, w: T.Value, scope: Scope) -> Any:
    """log Σ w exp(v), or the shares w exp(v) / Σ w exp(v), which are 0 where every weight is."""
    p = T.primal(v)
    # all of them count: an exponent that is no number makes the sum none, whatever its weight is
    exponentials, moved = _exponentials(v, T.xp_of(p).ones(p.shape, bool))
    parts = T.mul(w, exponentials)
    total = T.each(parts, lambda x: x.sum(axis=-1, keepdims=True))
    if e.name == "logsumexp":
        return T.each(T.add(T.call("log", total, False), moved), lambda x: x[..., 0])
    none = (T.primal(w) == 0).all(axis=-1, keepdims=True)
    return _held(e, T.where(~none, T.div(parts, T.add(total, none * 1))), scope)


def _norm(x: Held, scope: Scope) -> T.Value:
    """√Σ|x|², whose derivative at 0 is 0."""
    width = len(x.slots)

    def total(y: Any) -> Any:
        return y.reshape((*y.shape[: y.ndim - width], -1)).sum(axis=-1)

    squares = T.each(T.call("abs2", x.value, True), total)
    noted(squares, scope)
    noted(1 / T.primal(squares), scope)
    zero = T.primal(squares) == 0
    root = T.call("sqrt", T.add(T.where(~zero, squares), zero * 1), False)
    more = (1,) * (scope.depth - x.depth)
    return T.each(T.where(~zero, root), lambda y: y.reshape(y.shape + more))
