"""Derivatives of programs with integrals against differences of their numbers (`quadrature`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from combdiff.arrays.lower.signature import result_of
from combdiff.calculus.definitions.floating import unfold
from combdiff.derivation import Derivation
from combdiff.meaning.sizes import default_sizes
from combdiff.terms.terms import App, Conj, Delta, Lam, Sum, Term, Tuple, Var, apply, call, fresh, mul, subterms
from combdiff.terms.types import Index, Map, Number, Type, is_complex

from .quadrature import Numbers, Smooth, limit

FUNCTIONS = (
    "exp(-x**2/2)*(1 + x/3)",
    "exp(-(x - 1)**2/3)*cos(x)",
    "(x**3/5 - x + 1)*exp(-x**2)",
    "exp(-x**2)*sin(2*x)",
)
COMPLEX = ("exp(-x**2/2)*(1 + I*x)", "exp(-(x - 1)**2/3 + I*x)", "(x**2 - I)*exp(-x**2)")
OF_TWO = ("exp(-x**2 - y**2)*(1 + x*y + y/2)", "exp(-(x - y)**2 - x**2/4)*cos(y)")
STEP = 2e-3
Values = dict[Term, object]


class Drawn:
    """Random values of the arguments of a derivation: numbers, arrays, and smooth functions that decay."""

    def __init__(self, d: Derivation, seed: int, given: Mapping[str, object]) -> None:
        self.rng = np.random.default_rng(seed)
        self.sizes = default_sizes(d.term)
        self.functions = seed
        params = result_of(d.term).params
        self.values: Values = {p: given[p.name] if p.name in given else self.value(p.kind) for p in params}

    def value(self, kind: Type) -> object:
        match kind:
            case Number():
                x = self.rng.uniform(-1.2, 1.2, 2)
                return complex(*x) if kind.complex else float(x[0])
            case Map(params, Number()) if all(isinstance(p, Index) for p in params):
                shape = [self.sizes[p.domain] for p in params]
                x = self.rng.uniform(-1.5, 1.5, (2, *shape))
                return x[0] + 1j * x[1] if is_complex(kind) else x[0]
            case Map(params, _):
                self.functions += 1
                table = OF_TWO if len(params) == 2 else COMPLEX if is_complex(kind) else FUNCTIONS
                return Smooth(table[self.functions % len(table)], len(params))
        raise AssertionError(kind)

    def on(self, t: Term, values: Values) -> np.ndarray:
        """The number or tensor that t is."""

        def at(width: float) -> np.ndarray:
            found = Numbers(values, self.sizes, width)(t)
            if not callable(found):
                return np.asarray(found)
            assert isinstance(t.type, Map)
            shape = [self.sizes[p.domain] for p in t.type.params]
            return np.array([found(*point) for point in np.ndindex(*shape)]).reshape(shape)

        return limit(at) if has_peaks(t) else at(1.0)

    def moved(self, directions: Mapping[Var, object], h: float) -> Values:
        return {**self.values, **{x: moved(self.values[x], v, h) for x, v in directions.items()}}

    def along(self, t: Term, directions: Mapping[Var, object]) -> np.ndarray:
        """The derivative of t along a direction."""
        return slope(lambda h: self.on(t, self.moved(directions, h)))

    def along_pairing(self, cotangent: Term, direction: object, k: Mapping[Var, object]) -> float:
        """The derivative of Re⟨cotangent, direction⟩ along k."""
        return float(slope(lambda h: np.asarray(self.pairing(cotangent, direction, self.moved(k, h)))))

    def pairing(self, cotangent: Term, direction: object, values: Values | None = None) -> float:
        """Re⟨cotangent, direction⟩, an integral where they are functions."""
        values = self.values if values is None else values
        if not isinstance(direction, Smooth):
            return float(np.sum(np.real(np.conj(self.on(cotangent, values)) * direction)))
        assert isinstance(cotangent.type, Map)
        v = fresh("v", cotangent.type)
        own = tuple(fresh(name, kind) for name, kind in zip("ts", cotangent.type.params, strict=False))
        integral = Sum(own, call("real", mul(Conj(apply(cotangent, *own)), App(v, own))))
        return float(self.on(integral, {**values, v: direction}))


def slope(at: Callable[[float], np.ndarray]) -> np.ndarray:
    """The derivative at 0, by differences of fourth order."""
    return (8 * (at(STEP) - at(-STEP)) - at(2 * STEP) + at(-2 * STEP)) / (12 * STEP)


def moved(at: object, direction: object, h: float) -> object:
    return at.plus(h, direction) if isinstance(at, Smooth) else at + h * direction


def has_peaks(t: Term) -> bool:
    peaks = (u for u in subterms(t) if isinstance(u, Delta))
    return any(isinstance(s.type, Number) for u in peaks for s in (u.left, u.right))


def below(t: Term, params: tuple[Var, ...]) -> Term:
    """The body of the map of these parameters, maybe of more."""
    while isinstance(t, Lam):
        if t.params[: len(params)] == params:
            return t.body
        t = t.body
    raise AssertionError("no map of these parameters")


def items(t: Term) -> tuple[Term, ...]:
    return t.items if isinstance(t, Tuple) else (t,)


def error(d: Derivation, seed: int = 0, **given: object) -> float:
    """How far a gradient or a Hessian product is from differences, relative to them, or to 1 if they are small."""
    drawn = Drawn(d, seed, given)
    f = unfolded(d.differentiated)
    assert isinstance(f, Lam)
    found = items(unfold(below(d.term, f.params)))
    worst = 0.0
    for _ in range(2):
        directions = {x: drawn.value(x.kind) for x in f.params}
        got = sum(drawn.pairing(g, v) for g, v in zip(found, directions.values(), strict=True))
        if d.mode == "grad":
            expected = float(np.real(drawn.along(f.body, directions)))
        else:
            slopes = items(unfold(below(d.gradient.term, f.params)))
            k = {x: drawn.values[v] for x, v in zip(f.params, cotangents(d.term, f.params), strict=True)}
            expected = sum(drawn.along_pairing(g, v, k) for g, v in zip(slopes, directions.values(), strict=True))
        error = abs(got - expected) / max(1.0, abs(expected))
        worst = max(worst, error if np.isfinite(error) else np.inf)
    return worst


def unfolded(f: Term) -> Term:
    """`f` without definitions, so that conditions in them are seen."""
    return Lam(f.params, unfold(f.body)) if isinstance(f, Lam) else f


def cotangents(t: Term, params: tuple[Var, ...]) -> tuple[Var, ...]:
    while isinstance(t, Lam):
        if t.params[: len(params)] == params:
            return t.params[len(params) :]
        t = t.body
    return ()
