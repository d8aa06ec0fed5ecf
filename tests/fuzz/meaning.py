"""What a program means, computed on whole arrays: an interpreter that shares nothing with the package.

Every index that is bound has an axis of its own, in the order of binding behind one first axis for copies of the
arguments, so that many points and many directions are evaluated at once. A value of depth d has 1 + d axes; where a
deeper value is wanted, axes of size one are appended. A derivative inside of a program is taken by tangents: its slots
are further axes, one direction for each value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from . import tangents as T
from .kinds import Function, Index, Items, Number, Range, Tensor, Type, over_complex
from .syntax import (
    Add,
    Affine,
    App,
    Block,
    Call,
    Conj,
    Constant,
    Delta,
    Derived,
    Div,
    Expr,
    Indicator,
    Integral,
    Lam,
    Literal,
    Looked,
    Loop,
    Mul,
    Neg,
    Norm,
    Power,
    Reduced,
    Ref,
    Several,
    Size,
    Sum,
    Tuple,
    Var,
    Where,
    is_zero,
)

NEWTON_STEPS = 12


@dataclass(frozen=True)
class Held:
    """A number or a tensor of depth `depth`: axes for copies, for outer indices, then for the `slots`."""

    value: T.Value
    depth: int
    slots: tuple[Range, ...] = ()


@dataclass(frozen=True)
class Points:
    """The values of an index, direction by direction, and the axis along which they lie."""

    range: Range
    columns: tuple[Any, ...]
    depth: int


JUMPS = frozenset({"abs", "sign", "relu", "floor", "ceil", "round"})
CUTS = frozenset({"log", "sqrt", "log1p", "log2", "log10", "angle", "asin", "acos", "acosh", "atanh", "asinh", "atan"})
"""Functions that jump somewhere in the complex plane."""
NOISE = 1e-12

Callable_ = Callable[["Scope", Sequence[Any]], Any]
"""A function: from the scope of the call and its arguments to a value of the scope's depth."""


@dataclass(frozen=True)
class Scope:
    """Values of variables, the number of indices that are bound, and the precision."""

    values: Mapping[Var, Any]
    depth: int = 0
    dtype: type = np.longdouble
    seen: list[float] | None = None
    """The largest number that is met, or that is one over a denominator; and how much has cancelled in a sum."""
    steep: list[float] | None = None
    """Where the largest derivative that is met is written to."""
    noise: np.random.Generator | None = None
    """What each number is off by, relative to `NOISE`: in the place of rounding, to learn what it does."""

    def with_(self, variables: Sequence[Var], values: Sequence[Any]) -> Scope:
        return replace(self, values={**self.values, **dict(zip(variables, values, strict=True))})

    def within(self, indices: Sequence[Var]) -> Scope:
        """A scope inside of `indices`, each with a new axis."""
        scope = self
        for i in indices:
            assert isinstance(i.kind, Index), "only indices are bound here"
            scope = replace(scope, depth=scope.depth + 1)
            scope = scope.with_((i,), (points_of(i.kind.range, scope.depth),))
        return scope


def points_of(range_: Range, depth: int) -> Points:
    """All values of a range along the axis `depth`."""
    rows = values_of(range_)
    columns = tuple(rows[:, n].reshape((1,) * depth + (-1,)) for n in range(rows.shape[1]))
    return Points(range_, columns, depth)


def values_of(range_: Range) -> Any:
    """The values of a range, a row for each with an entry a direction.

    >>> values_of(Range("S", "symmetric", (3,))).tolist()
    [[-1], [0], [1]]
    """
    if range_.sort == "list":
        return np.array(range_.offsets)
    firsts = [-(n // 2) if range_.sort == "symmetric" else range_.lower for n in range_.sizes]
    grid = np.indices(range_.sizes).reshape(len(range_.sizes), -1).T
    return grid + np.array(firsts)


# --- evaluation -----------------------------------------------------------------------------------------------------


def evaluate(e: Expr, scope: Scope) -> Any:
    """The value of `e`: a number as an array of the scope's depth, a tensor as `Held`, a function, or a tuple."""
    result = _value(e, scope)
    if isinstance(e.kind, Number):
        noted(result, scope)
        if scope.noise is not None:
            off = scope.noise.standard_normal(np.shape(T.primal(result)))
            result = T.mul(result, (1 + NOISE * off).astype(scope.dtype))
    return result


def noted(value: Any, scope: Scope) -> None:
    """Remember how large a number is, and its derivatives, where that is asked for."""
    if scope.seen is not None:
        scope.seen[0] = max(scope.seen[0], _size(T.primal(value)))
    if scope.steep is not None:
        scope.steep[0] = max(scope.steep[0], *map(_size, T.tangents(value)), 0.0)


def _size(x: Any) -> float:
    sizes = np.abs(np.asarray(x))
    return float(sizes[np.isfinite(sizes)].max(initial=0))


def _value(e: Expr, scope: Scope) -> Any:
    match e:
        case Literal(value):
            return T.exact(value) if scope.dtype is np.longdouble else np.float64(float(value))
        case Constant("pi"):
            return scope.dtype(4) * np.arctan(scope.dtype(1))
        case Constant():
            return np.clongdouble(1j) if scope.dtype is np.longdouble else np.complex128(1j)
        case Ref(var):
            return looked_up(scope.values[var], scope)
        case Affine():
            return affine(e, scope)[0].astype(scope.dtype)
        case Neg(of):
            return T.neg(evaluate(of, scope))
        case Conj(of):
            return T.conj(evaluate(of, scope))
        case Add(terms):
            return _added(terms, scope)
        case Mul(factors):
            return reduce(T.mul, [evaluate(factor, scope) for factor in factors])
        case Div(top, below):
            return T.div(evaluate(top, scope), _inverted(below, scope))
        case Power():
            return _power(e, scope)
        case Call(name, of):
            return T.call(name, _argument(name, of, scope), over_complex(of.kind))
        case Sum(indices, body):
            return summation(indices, body, scope)
        case Delta(left, right, body):
            return T.where(meet(left, right, scope), evaluate(body, scope))
        case Indicator(left, right, body):
            return ordered(left, right, evaluate(body, scope), scope)
        case Several(name, args):
            return _several(name, [evaluate(a, scope) for a in args], scope)
        case Size(of):
            assert isinstance(of.kind, Index), "an index"
            return scope.dtype(of.kind.range.count)
        case _:
            return _map(e, scope)


def _several(name: str, values: Sequence[Any], scope: Scope) -> Any:
    if name == "atan2" and scope.seen is not None:
        # its derivatives are divided by this
        noted(1 / sum(T.primal(v) ** 2 for v in values), scope)
    if name == "atan2" and scope.noise is not None:
        y, x = map(T.primal, values)
        # a zero of either sign may come of arithmetic
        values = [T.where((x > 0) | (abs(y) > 1e3 * NOISE * abs(x)), values[0], float("nan")), values[1]]
    return T.several(name, values)


def _power(e: Power, scope: Scope) -> Any:
    match e:
        case Power(_, exponent) if is_zero(exponent):
            return evaluate(Literal(Fraction(1)), scope)
        case Power(Call("abs", of), exponent) if is_even(constant(exponent)):
            # smooth where |x| is not
            square = T.call("abs2", evaluate(of, scope), over_complex(of.kind))
            by = constant(exponent)
            return T.power(square, by / 2, False) if by is not None else square
    by = constant(e.exponent)
    value = evaluate(e.exponent, scope) if by is None else by
    base = evaluate(e.base, scope)
    if by is None or by.denominator > 1:
        base = _off_cuts("power", e.base, base, scope)
    return T.power(base, value, over_complex(e.kind))


def _map(e: Expr, scope: Scope) -> Any:
    match e:
        case Integral(var, slope, at, body):
            point = T.scaled(evaluate(at, scope), 1 / slope)
            inner = scope.with_((var,), (Held(point, scope.depth),))
            return T.scaled(evaluate(body, inner), 1 / abs(slope))
        case Lam(params, body) if isinstance(e.kind, Tensor):
            return tensor(params, body, scope)
        case Lam(params, body):
            return lambda call_scope, args: evaluate(body, _bound(scope, call_scope).with_(params, args))
        case App(function, args):
            return applied(function, args, scope)
        case Tuple(items):
            return tuple(evaluate(item, scope) for item in items)
        case Block(definitions, body):
            for d in definitions:
                value = held(evaluate(d.value, scope), d.value.kind, scope.depth)
                scope = scope.with_(d.names, value if len(d.names) > 1 else (value,))
            return evaluate(body, scope)
        case Derived():
            from .derived import derived

            return derived(e, scope)
        case Where(condition, body, otherwise):
            from .truth import chosen

            return chosen(condition, body, otherwise, scope)
        case Reduced() | Norm():
            from .reducing import reduced

            return reduced(e, scope)
        case Loop():
            from .looping import looped

            return looped(e, scope)
    raise AssertionError(f"no meaning for {type(e).__name__}")


def _bound(here: Scope, call: Scope) -> Scope:
    """The scope of a function's body: the variables of where it is written, at the depth of where it is called."""
    return replace(here, depth=call.depth)


def _added(terms: Sequence[Expr], scope: Scope) -> Any:
    values = [evaluate(term, scope) for term in terms]
    result = reduce(T.add, values)
    if scope.seen is not None:
        scope.seen[1] = max(scope.seen[1], _cancelled([T.primal(v) for v in values], T.primal(result)))
    return result


def _argument(name: str, of: Expr, scope: Scope) -> Any:
    """What a function is called at; no number where rounding decides on which side of a jump that is."""
    # the derivative of these is one over the argument
    inverted = name in ("log", "log2", "log10", "sqrt", "abs", "sign")
    value = _inverted(of, scope) if inverted else evaluate(of, scope)
    if scope.noise is not None and name in ("abs", "sign", "relu"):
        return T.where(_sure(T.primal(value)), value, float("nan"))
    return _off_cuts(name, of, value, scope)


def _off_cuts(name: str, of: Expr, value: Any, scope: Scope) -> Any:
    """A complex number at which a function is called; none where rounding decides on which side of a cut it lies.

    Arithmetic gives a zero of either sign for its imaginary part, which decides in derivatives; `complex(x)` has +0.
    """
    if scope.noise is None or not over_complex(of.kind) or (isinstance(of, Call) and of.name == "complex"):
        return value
    z = T.primal(value)
    along, off = (z.imag, z.real) if name in ("asinh", "atan") else (z.real, z.imag)
    match name:
        case "log" | "sqrt" | "log2" | "log10" | "angle" | "power":
            beyond = along <= 0
        case "log1p":
            beyond = along <= -1
        case "acosh":
            beyond = along <= 1
        case "asin" | "acos" | "atanh" | "asinh" | "atan":
            beyond = abs(along) >= 1
        case _:
            return value
    return T.where(~(beyond & (abs(off) <= 1e3 * NOISE * abs(z))), value, float("nan"))


def _inverted(e: Expr, scope: Scope) -> Any:
    """The value of `e`, by which something is divided: one over it may be formed before it is multiplied."""
    result = evaluate(e, scope)
    if scope.seen is not None:
        noted(1 / T.primal(result), scope)
    return result


def _sure(x: Any) -> Any:
    """Where rounding does not decide on which side of a jump a number lies: it is 0 exactly, or far enough from 0."""
    size = np.abs(x)
    return (size == 0) | (size > 1e3 * NOISE)


def _cancelled(terms: Sequence[Any], total: Any) -> float:
    """How many times smaller than its largest term a sum is, in one of its entries at least."""
    largest = reduce(np.maximum, [np.abs(np.asarray(t)) for t in terms])
    with np.errstate(all="ignore"):
        ratio = np.where(largest > 0, largest / np.abs(total), 0.0)
    return float(np.nan_to_num(ratio, nan=0.0, posinf=np.inf).max(initial=0.0))


def is_even(value: Fraction | None) -> bool:
    """Whether a number is an even integer above 0."""
    return value is not None and value > 0 and value % 2 == 0


def constant(e: Expr) -> Fraction | None:
    """The rational number that an expression writes out."""
    match e:
        case Literal(value):
            return value
        case Neg(of):
            value = constant(of)
            return None if value is None else -value
        case _:
            return None


def held(value: Any, kind: Type, depth: int) -> Any:
    """A value that is given a name: a number keeps its depth."""
    match kind:
        case Number():
            return Held(value, depth)
        case Items(of):
            return tuple(held(v, k, depth) for v, k in zip(value, of, strict=True))
        case _:
            return value


def looked_up(value: Any, scope: Scope) -> Any:
    """What a name stands for; a number gets the axes of the indices bound since."""
    match value:
        case Held(_, _, ()):
            return lifted(value, scope.depth)
        case tuple():
            return tuple(looked_up(v, scope) for v in value)
        case _:
            return value


def lifted(value: Held, depth: int) -> T.Value:
    more = (1,) * (depth - value.depth)
    return T.each(value.value, lambda x: x.reshape(x.shape + more) if x.ndim else x) if more else value.value


# --- indices --------------------------------------------------------------------------------------------------------


def affine(e: Affine, scope: Scope) -> list[Any]:
    """The value of an index expression, direction by direction."""
    columns: list[Any] = []
    for c, i in e.terms:
        found = looked(i, scope) if isinstance(i, Looked) else scope.values[i]
        more = (1,) * (scope.depth - found.depth)
        here = [c * x.reshape(x.shape + more) for x in found.columns]
        columns = [a + b for a, b in zip(columns, here, strict=True)] if columns else here
    if e.first is not None:
        here = [np.rint(np.asarray(T.primal(evaluate(e.first, scope)), float)).astype(int)]
        columns = [a + b for a, b in zip(columns, here, strict=True)] if columns else here
    if not columns:
        return [np.full((1,) * (1 + scope.depth), e.constant)]
    return [x + e.constant for x in columns] if e.constant else columns


def looked(i: Looked, scope: Scope) -> Points:
    """The values of an entry of an array of integers."""
    assert isinstance(i.kind, Index) and i.array is not None, "an index"
    values = entry(scope.values[i.array], [affine(a, scope) for a in i.args], scope)
    return Points(i.kind.range, (np.rint(np.asarray(T.primal(values), float)).astype(int),), scope.depth)


def ordered(left: Expr, right: Expr, body: Any, scope: Scope) -> Any:
    """`body` where left ≤ right; nothing where one of the two is no number."""
    a, b = (compared(x, scope) for x in (left, right))
    known = T.xp_of(a).isfinite(a) & T.xp_of(b).isfinite(b)
    known = known & _sure(a - b) if scope.noise is not None else known
    return T.where(known, T.where(a <= b, body), float("nan"))


def ranges_of(e: Affine) -> list[Range]:
    """The ranges of what an index expression adds up."""
    first = e.first.indices if isinstance(e.first, Reduced) else ()
    return [i.kind.range for i in (*(i for _, i in e.terms), *first) if isinstance(i.kind, Index)]


def compared(e: Expr, scope: Scope) -> Any:
    """A side of a comparison; arithmetic with an index of a ring is the number 0 … n − 1 that it is congruent to."""
    value = T.primal(evaluate(e, scope)).real
    ring = next((r for r in ranges_of(e) if r.sort == "ring"), None) if isinstance(e, Affine) else None
    return value if ring is None else value % ring.sizes[0]


def meet(left: Affine, right: Affine, scope: Scope) -> Any:
    """Where two index expressions are one point; modulo the sizes of a ring."""
    a, b = affine(left, scope), affine(right, scope)
    ring = next((r for r in (*ranges_of(left), *ranges_of(right)) if r.sort == "ring"), None)
    width = max(len(a), len(b))
    # a number among points of a lattice is 0, the origin
    a, b = (x * (width // len(x)) for x in (a, b))
    result: Any = True
    for n, (x, y) in enumerate(zip(a, b, strict=True)):
        result = result & (((x - y) % ring.sizes[n] == 0) if ring else (x == y))
    return result


def summation(indices: Sequence[Var], body: Expr, scope: Scope) -> Any:
    inner = scope.within(indices)
    result = evaluate(body, inner)
    for i in reversed(indices):
        assert isinstance(i.kind, Index), "sums run over indices"
        # a number without axes is alike for all values
        result = T.summed(result, i.kind.range.count, inner.depth + 1)
        inner = replace(inner, depth=inner.depth - 1)
    return result


def tensor(params: Sequence[Var], body: Expr, scope: Scope) -> Held:
    """A map of indices, as an array of all its entries."""
    inner = scope.within(params)
    slots = tuple(p.kind.range for p in params if isinstance(p.kind, Index))
    counts = tuple(r.count for r in slots)

    def full(x: Any) -> Any:
        x = x.reshape((1,) * (1 + inner.depth)) if not x.ndim else x
        return T.xp_of(x).broadcast_to(x, x.shape[: 1 + scope.depth] + counts)

    return Held(T.each(evaluate(body, inner), full), scope.depth, slots)


# --- maps -----------------------------------------------------------------------------------------------------------


def applied(function: Expr, args: Sequence[Expr], scope: Scope) -> Any:
    f = evaluate(function, scope)
    if isinstance(f, Held):
        return entry(f, [affine(a, scope) if isinstance(a, Affine) else None for a in args], scope)
    kind = function.kind
    assert isinstance(kind, Function), "only maps are applied"
    values = [held(evaluate(a, scope), k, scope.depth) for a, k in zip(args, kind.params, strict=True)]
    return f(scope, values)


def entry(f: Held, indices: Sequence[Any], scope: Scope) -> T.Value:
    """The entries of a tensor at index values that depend on the indices in scope."""
    places = [place(columns, slot) for columns, slot in zip(indices, f.slots, strict=True)]
    beyond = [leaves(columns, slot) for columns, slot in zip(indices, f.slots, strict=True)]

    def taken(x: Any) -> Any:
        outer = []
        for axis in range(1 + f.depth):
            along = np.arange(x.shape[axis]).reshape((1,) * axis + (-1,) + (1,) * (scope.depth - axis))
            outer.append(along)
        return x[(*outer, *places)]

    found = T.each(f.value, taken)
    # a condition leaves out what is beyond the range, or there is no value
    return T.where(~reduce(np.logical_or, beyond), found, float("nan")) if any(map(np.any, beyond)) else found


def leaves(columns: Sequence[Any], slot: Range) -> Any:
    """Where an index value is none of the slot's."""
    if slot.sort in ("list", "ring"):
        return np.zeros((), bool)
    first = -(slot.sizes[0] // 2) if slot.sort == "symmetric" else slot.lower
    return (columns[0] < first) | (columns[0] >= first + slot.sizes[0])


def place(columns: Sequence[Any], slot: Range) -> Any:
    """Where in a slot an index value lies; a number stands for the origin of a lattice."""
    columns = list(columns) * (slot.directions // len(columns))
    if slot.sort == "list":
        found: Any = -1
        for row, offset in enumerate(slot.offsets):
            same: Any = True
            for x, y in zip(columns, offset, strict=True):
                same = same & (x == y)
            found = np.where(same, row, found)
        return found
    result: Any = 0
    for x, size in zip(columns, slot.sizes, strict=True):
        at = x % size if slot.sort == "ring" else x + size // 2 if slot.sort == "symmetric" else x - slot.lower
        result = result * size + np.clip(at, 0, size - 1)
    return result
