"""Programs with integrals on numbers, for tests: ∫ by quadrature, Dirac's δ as a narrow Gaussian.

Nothing here knows how integrals are differentiated. An integral over the line is split where a condition in it
changes, and every piece is done by Gauss's rule. A δ has the width `WIDTH`; what that leaves of an error, of second
order, `limit` takes away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import sympy

from combdiff.terms.terms import (
    Add,
    App,
    Call,
    Conj,
    Const,
    Delta,
    Diff,
    Indicator,
    Lam,
    Let,
    Mul,
    Pow,
    Proj,
    Sum,
    Term,
    Tuple,
    Var,
)
from combdiff.terms.types import REAL, Index, Number

END = 7.0
PANELS = 14
WIDTH = 0.04
NODES, WEIGHTS = np.polynomial.legendre.leggauss(14)


class Smooth:
    """A function of real numbers with all its derivatives; `expression` is in x (and y), as SymPy reads it."""

    def __init__(self, expression: str | sympy.Expr, arguments: int = 1) -> None:
        self.symbols = sympy.symbols("x y", real=True)[:arguments]
        self.expression = sympy.sympify(expression, {s.name: s for s in self.symbols})

    def __call__(self, *args: object) -> object:
        return _lambdified(self.symbols, self.expression)(*args)

    def gradient(self) -> object:
        slopes = [Smooth(sympy.diff(self.expression, s), len(self.symbols)) for s in self.symbols]
        return slopes[0] if len(slopes) == 1 else lambda *args: tuple(slope(*args) for slope in slopes)

    def pullback(self) -> Pulled:
        return Pulled(Smooth(sympy.diff(self.expression, self.symbols[0])))

    def plus(self, h: float, other: Smooth) -> Smooth:
        return Smooth(self.expression + h * other.expression, len(self.symbols))


@dataclass
class Pulled:
    """(x, k) ↦ Re f′(x)' k for a complex function of a real number."""

    slope: Smooth

    def __call__(self, x: object, k: object) -> object:
        return np.real(np.conj(self.slope(x)) * k)

    def gradient(self) -> Callable[..., object]:
        again = Pulled(Smooth(sympy.diff(self.slope.expression, self.slope.symbols[0])))
        return lambda x, k: (again(x, k), self.slope(x))


@cache
def _lambdified(symbols: tuple[sympy.Symbol, ...], expression: sympy.Expr) -> Callable[..., object]:
    return sympy.lambdify(symbols, expression, "numpy")


@dataclass(frozen=True)
class Numbers:
    """Values of variables: numbers (or arrays of them, for one variable of an integral), arrays, functions."""

    values: Mapping[Term, object]
    sizes: Mapping[object, int]
    width: float = WIDTH
    known: dict[object, object] = field(default_factory=dict)

    def with_(self, variables: Sequence[Var], values: Sequence[object]) -> Numbers:
        return replace(self, values={**self.values, **dict(zip(variables, values, strict=True))})

    def __call__(self, t: Term) -> object:
        match t:
            case Var():
                return self.values[t]
            case Const(real, imag):
                return complex(real, imag) if imag else float(real)
            case Add(terms):
                return sum((self(u) for u in terms[1:]), self(terms[0]))
            case Mul(factors):
                # a factor 0, as a condition is that does not hold, hides what has no value there
                values = [self(u) for u in factors]
                result = values[0]
                for value in values[1:]:
                    result = np.where((np.asarray(result) == 0) | (np.asarray(value) == 0), 0, result * value)
                return result
            case Pow(base, exponent):
                return np.asarray(self(base), complex if t.type != REAL else float) ** self(exponent)
            case Conj(u):
                return np.conj(self(u))
            case Call(name, args):
                return self.called(name, [self(a) for a in args])
            case Sum():
                return self.once(t)
            case Indicator(left, right, body):
                return np.where(self(left) <= self(right), self(body), 0)
            case Delta(left, right, body):
                return self.peak(left, right) * self(body)
            case _:
                return self.valued(t)

    def valued(self, t: Term) -> object:
        match t:
            case Lam(params, body):
                return lambda *args: self.with_(params, args)(body)
            case App(f, args):
                return self.applied(f, [self(a) for a in args])
            case Tuple(items):
                return tuple(self(u) for u in items)
            case Proj(item, of):
                return self(of)[item]
            case Let(bindings, body):
                scope = self
                for var, value in bindings:
                    scope = scope.with_([var], [scope(value)])
                return scope(body)
            case Diff("grad", of):
                return self(of).gradient()
            case Diff("pullback", of):
                return self(of).pullback()
        raise AssertionError(f"unknown node {type(t).__name__}")

    def called(self, name: str, args: Sequence[object]) -> object:
        match name, args:
            case "pi", _:
                return np.pi
            case "abs2", (z,):
                return np.abs(z) ** 2
            case "atan", (z,):
                return np.arctan(z)
            case _, (z,):
                return getattr(np, name)(z)
        raise AssertionError(name)

    def applied(self, f: Term, args: Sequence[object]) -> object:
        value = self(f)
        # an index of a periodic domain wraps round
        if callable(value):
            return value(*args)
        return value[tuple(int(a) % n for a, n in zip(args, value.shape, strict=True))]

    def peak(self, left: Term, right: Term) -> object:
        """Kronecker's δ, or Dirac's as a Gaussian."""
        if all(isinstance(u.type, Index) or (isinstance(u, Const) and u.is_integer) for u in (left, right)):
            ring = next((v.kind.domain for v in left.free | right.free if v.kind.domain.periodic), None)
            difference = self(left) - self(right)
            return float(not (difference % self.sizes[ring] if ring else difference))
        w = (self(left) - self(right)) / self.width
        return np.exp(-w * w / 2) / (self.width * np.sqrt(2 * np.pi))

    def once(self, t: Sum) -> object:
        """The sum, looked up where it was computed for these values already."""
        values = [self.values[v] for v in sorted(t.free, key=lambda v: v.uid)]
        key = (t, *(v if isinstance(v, int | float) else id(v) for v in values))
        if key not in self.known:
            # the values are kept with it, so that no other object has the identity of one
            self.known[key] = self.summed(t.indices, t.body), values
        return self.known[key][0]

    def summed(self, indices: Sequence[Var], body: Term) -> object:
        if not indices:
            return self(body)
        first, *rest = sorted(indices, key=lambda v: not isinstance(v.kind, Index))
        inner = Sum(tuple(rest), body) if rest else body
        if isinstance(first.kind, Index):
            return sum(self.with_([first], [n])(inner) for n in range(self.sizes[first.kind.domain]))
        vectors = [v for v in inner.free if v is not first and v.kind == REAL and np.ndim(self.values[v])]
        if vectors:
            # one integral for each number of the variable of an integral outside
            (v,) = vectors
            return np.array([self.with_([v], [x]).summed(indices, body) for x in self.values[v]])
        return self.integral(first, inner)

    def integral(self, x: Var, body: Term) -> object:
        grid = np.linspace(-END, END, PANELS + 1)
        edges = np.unique(np.concatenate([grid, *self.changes(x, body)]))
        half = np.diff(edges) / 2
        nodes = ((edges[:-1] + edges[1:]) / 2)[:, None] + half[:, None] * NODES
        values = np.broadcast_to(self.with_([x], [nodes.ravel()])(body), nodes.size).reshape(nodes.shape)
        return (values * WEIGHTS * half[:, None]).sum()

    def changes(self, x: Var, body: Term) -> Iterator[list[float]]:
        """Where conditions on x in `body` change, and around the places of δs."""
        for scope, t in self.conditions(body):
            left, right = (t.left, t.right) if isinstance(t, Delta | Indicator) else (t.args[0], Const(0))
            if x not in left.free | right.free or not (left.free | right.free) <= {x, *scope.values}:
                continue

            def w(at: object, scope: Numbers = scope, left: Term = left, right: Term = right) -> np.ndarray:
                inner = scope.with_([x], [at])
                return np.real(np.broadcast_to(inner(left) - inner(right), np.shape(at)))

            for place in _zeros(w):
                if isinstance(t, Delta):
                    slope = float((w(np.array([place + 1e-5])) - w(np.array([place - 1e-5])))[0]) / 2e-5
                    yield [place + s * m * self.width / abs(slope) for s in (-1, 1) for m in (0, 1, 2, 4, 6, 9)]
                else:
                    yield [place]

    def conditions(self, t: Term) -> Iterator[tuple[Numbers, Term]]:
        """The conditions in t, for each value of the indices of sums in it."""
        match t:
            case Sum(indices, body):
                finite = [v for v in indices if isinstance(v.kind, Index)]
                for point in np.ndindex(*(self.sizes[v.kind.domain] for v in finite)):
                    yield from self.with_(finite, point).conditions(body)
                return
            case Delta(left, right, body) | Indicator(left, right, body):
                if any(isinstance(u.type, Number) for u in (left, right)):
                    yield self, t
                below = (left, right, body)
            case Call(name, args):
                if name in ("abs", "sign"):
                    yield self, t
                below = args
            case Add(below) | Mul(below) | Tuple(below):
                pass
            case App(f, args):
                below = (f, *args)
            case Conj(u) | Proj(_, u) | Lam(_, u):
                below = (u,)
            case Pow(a, b):
                below = (a, b)
            case _:
                below = ()
        for u in below:
            yield from self.conditions(u)


def _zeros(w: Callable[[np.ndarray], np.ndarray]) -> list[float]:
    """The places where w changes its sign, by bisection."""
    grid = np.linspace(-END, END, 281) + 1e-4 * np.sqrt(2)
    values = w(grid)
    found = []
    for n in np.flatnonzero(np.sign(values[:-1]) * np.sign(values[1:]) < 0):
        low, high = grid[n], grid[n + 1]
        for _ in range(60):
            middle = (low + high) / 2
            same = (w(np.array([middle]))[0] > 0) == (w(np.array([low]))[0] > 0)
            low, high = (middle, high) if same else (low, middle)
        found.append((low + high) / 2)
    return found


def limit(value: Callable[[float], np.ndarray]) -> np.ndarray:
    """What `value` of the width of δ tends to for width 0, by Richardson's extrapolation in its square."""
    wide, middle, narrow = (np.asarray(value(WIDTH * s)) for s in (1.0, 0.5, 0.25))
    first, second = (4 * middle - wide) / 3, (4 * narrow - middle) / 3
    return (16 * second - first) / 15
