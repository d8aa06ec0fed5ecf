"""Functions on intervals in the check on numbers: smooth random ones, their values at nodes, variations, pairings.

The variation of ∫ L along v is Σ_k w_k b(x_k) v(x_k), and what stands at the ends, for the derivative b by a function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import product
from math import factorial, prod
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.polynomial import Polynomial

from combdiff.errors import UnsupportedError
from combdiff.meaning.differences import inner, items_of
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.quadrature import at_values, standard
from combdiff.meaning.values import Value
from combdiff.records import dataclass
from combdiff.terms.terms import Diff, Term
from combdiff.terms.types import (
    Domain,
    Interval,
    Map,
    Number,
    Product,
    Symmetry,
    Type,
    interval_of,
    is_complex,
)

_DEGREE = 4
_TERMS = 3  # of a function of several numbers
_ROUNDING = 1e-9  # of a place that is an end


def is_on_interval(kind: Type) -> bool:
    """Whether it is a function of points of intervals, of which the check knows what to integrate it by."""
    of_points = isinstance(kind, Map) and isinstance(kind.result, Number) and bool(kind.params)
    return of_points and isinstance(kind, Map) and all(interval_of(p) is not None for p in kind.params)


def has_functions(kind: Type) -> bool:
    """Whether a value is a function on an interval, or a tuple with one."""
    return any(map(has_functions, kind.items)) if isinstance(kind, Product) else is_on_interval(kind)


@dataclass(frozen=True, slots=True)
class Smooth:
    """A polynomial, times exp(-x²/2) where it is to vanish far away; so are its derivatives.

    A `strict` one has values on its interval only: a program is to read no others, while code may leave out what it has
    computed in vain, and forms of a result may be compared at any place.
    """

    polynomial: Polynomial
    interval: Interval
    strict: bool = False

    @property
    def decays(self) -> bool:
        """Whether it vanishes far away."""
        return not self.interval.bounded

    def __call__(self, x: Value) -> Value:
        at = np.asarray(x)
        if self.strict:
            self._check_inside(at)
        found = self.polynomial(at) * (np.exp(-(at**2) / 2) if self.decays else 1.0)
        return found if np.ndim(found) else found.item()

    def _check_inside(self, at: npt.NDArray[Any]) -> None:
        least, most = (
            far if end is None else float(end) + np.copysign(_ROUNDING, far) * (1 + abs(float(end)))
            for end, far in ((self.interval.lower, -np.inf), (self.interval.upper, np.inf))
        )
        outside = at[(at.real < least) | (at.real > most)]
        if outside.size:
            place = float(outside.flat[0].real)
            raise UnsupportedError(
                f"a function on {self.interval.name} is read at {place:.6g}, outside of its domain",
                remedy="give it a larger domain, or read it where the domain lies: where(x <= 1, f(x))",
            )

    def within(self) -> Smooth:
        """The function with values on its interval."""
        return replace(self, strict=True)

    def derivative(self) -> Smooth:
        """d/dx of it."""
        slope = self.polynomial.deriv()
        return replace(self, polynomial=slope - Polynomial([0, 1]) * self.polynomial if self.decays else slope)

    def positive(self) -> Smooth:
        """A function above 0, as densities are."""
        return replace(self, polynomial=self.polynomial**2 + 0.5)

    def times(self, c: float) -> Smooth:
        """A multiple of it."""
        return replace(self, polynomial=c * self.polynomial)

    def conjugate(self) -> Smooth:
        """Its complex conjugate."""
        return replace(self, polynomial=Polynomial(self.polynomial.coef.conj()))

    def moved(self, direction: Smooth, h: float) -> Smooth:
        """The function and `h` times another one."""
        return replace(self, polynomial=self.polynomial + h * direction.polynomial)


@dataclass(frozen=True, slots=True)
class Wave:
    """A function of any real number, a wave and a parabola: derivatives of all orders are exact, as differences of
    differences are not.

    >>> Wave(1.0, 2.0, 0.0, Polynomial([0.0, 1.0])).derivative()(0.0)
    3.0
    """

    height: complex
    rate: float
    phase: float
    polynomial: Polynomial

    def __call__(self, x: Value) -> Value:
        at = np.asarray(x)
        found = self.height * np.sin(self.rate * at + self.phase) + self.polynomial(at)
        return found if np.ndim(found) else found.item()

    def derivative(self) -> Wave:
        """d/dx of it."""
        return Wave(self.height * self.rate, self.rate, self.phase + np.pi / 2, self.polynomial.deriv())


def random_wave(kind: Type, rng: np.random.Generator) -> Wave:
    """A function in the place of an unknown one of a real number; one that increases is a wave on a steeper line."""
    scales = np.array([1.0, 0.5, 0.1])
    height, coefficients = complex(rng.normal()), rng.normal(size=3) * scales
    if not is_complex(kind):
        rate, phase = rng.uniform(0.5, 1.5), rng.normal()
        if isinstance(kind, Map) and kind.increasing:
            coefficients = np.array([coefficients[0], 0.5 + 1.5 * abs(height.real * rate)])
        return Wave(height.real, rate, phase, Polynomial(coefficients))
    turned = coefficients + 1j * rng.normal(size=3) * scales
    return Wave(height + 1j * rng.normal(), rng.uniform(0.5, 1.5), rng.normal(), Polynomial(turned))


@dataclass(frozen=True, slots=True)
class Surface:
    """A function of several numbers: a sum of products of smooth functions, one of each number."""

    terms: tuple[tuple[Smooth, ...], ...]

    def within(self) -> Surface:
        """The function with values on its intervals."""
        return Surface(tuple(tuple(s.within() for s in term) for term in self.terms))

    def __call__(self, *places: Value) -> Value:
        found = sum(prod([np.asarray(s(x)) for s, x in zip(term, places, strict=True)]) for term in self.terms)
        return found if np.ndim(found) else np.asarray(found).item()

    def positive(self) -> Surface:
        """A function above 0."""
        return Surface(tuple(tuple(s.positive() for s in term) for term in self.terms))

    def moved(self, direction: Surface, h: float) -> Surface:
        """The function and `h` times another one."""
        scaled = ((first.times(h), *others) for first, *others in direction.terms)
        return Surface((*self.terms, *scaled))


def placed(kind: Type, values: Mapping[Term, Value]) -> Type:
    """A type of functions on an interval, of which the ends are numbers, at the values of these."""
    if isinstance(kind, Product):
        return Product(tuple(placed(item, values) for item in kind.items))
    if not isinstance(kind, Map) or not is_on_interval(kind):
        return kind
    own = (at_values(interval, values) for interval in _intervals(kind))
    return replace(kind, params=tuple(Number(complex=False, interval=interval) for interval in own))


def random_function(kind: Type, rng: np.random.Generator) -> Smooth | Surface:
    """A smooth function on intervals."""
    first, *others = _intervals(kind)
    if not others:
        return _random(first, is_complex(kind), rng)
    each = [(_random(first, is_complex(kind), rng), *(_random(i, False, rng) for i in others)) for _ in range(_TERMS)]
    assert isinstance(kind, Map), "a function"
    return _symmetric(Surface(tuple(each)), kind.symmetries)


def _symmetric(f: Surface, symmetries: Sequence[Symmetry]) -> Surface:
    """The average over the images of a function that its declared symmetries, which exchange numbers, make."""
    group = {Symmetry.identity(len(f.terms[0]))}
    while more := {s.after(g) for s in symmetries for g in group} - group:
        group |= more
    terms = [(_image(term, s), s.sign / len(group)) for term in f.terms for s in group] if symmetries else []
    return f if not terms else Surface(tuple((t[0].times(c), *t[1:]) for t, c in terms))


def _image(term: Sequence[Smooth], s: Symmetry) -> tuple[Smooth, ...]:
    """A product of functions of b as one of functions of a, b_s = a_row(s)."""
    factors = dict(zip((row[0][0] for row in s.rows), term, strict=True))
    return tuple(factors[n].conjugate() if s.conj else factors[n] for n in range(len(term)))


def _random(interval: Interval, over_complex: bool, rng: np.random.Generator) -> Smooth:
    # derivatives are no larger than values, so that a rule sees how the integrand changes
    scale = np.array([1 / factorial(n) for n in range(_DEGREE + 1)])
    coefficients = rng.normal(size=_DEGREE + 1) * scale
    if over_complex:
        coefficients = coefficients + 1j * rng.normal(size=_DEGREE + 1) * scale
    return Smooth(Polynomial(coefficients), interval)


def random_variation(kind: Type, rng: np.random.Generator) -> Smooth | Surface:
    """A smooth function that is 0, with its derivatives, at ends where these are fixed."""
    found = random_function(kind, rng)
    assert isinstance(kind, Map), "a function"
    times = min(max(kind.fixed, default=-1) + 1, _DEGREE)
    bumps = []
    for interval in _intervals(kind):
        bump = Polynomial([1.0])
        for end in _ends(interval):
            bump = bump * Polynomial([-end, 1.0]) ** times
        bumps.append(bump)
    if isinstance(found, Smooth):
        return replace(found, polynomial=found.polynomial * bumps[0])
    kept = [[replace(s, polynomial=s.polynomial * b) for s, b in zip(term, bumps, strict=True)] for term in found.terms]
    return Surface(tuple(map(tuple, kept)))


def at_nodes(value: Value, kind: Type) -> Value:
    """A value with the values at the nodes of the standard rule in the place of functions on intervals."""
    if isinstance(kind, Product):
        assert isinstance(value, tuple), "of a product"
        return tuple(at_nodes(v, k) for v, k in zip(value, kind.items, strict=True))
    if not is_on_interval(kind) or not callable(value):
        return value
    axes = [standard(interval)[0] for interval in _intervals(kind)]
    found = [value(*map(float, point)) for point in product(*axes)]
    return np.asarray(found).reshape([len(axis) for axis in axes])


def evaluated(t: Term, values: Mapping[Term, Value], sizes: Mapping[Domain, int]) -> Value:
    """The value of a term, functions on intervals at the nodes of the standard rule."""
    return at_nodes(evaluate(t, values, sizes), placed(t.type, values))


def with_slopes(values: dict[Term, Value], known: Mapping[Term, Value]) -> dict[Term, Value]:
    """The values, with the derivatives of smooth functions that are `known` at others."""
    for u in sorted((u for u in known if isinstance(u, Diff)), key=_order):
        if isinstance(of := values.get(u.of), Smooth | Wave):
            values[u] = of.derivative()
    return values


def _order(t: Term) -> int:
    return 1 + _order(t.of) if isinstance(t, Diff) else 0


def paired(kind: Type, cotangent: Value, direction: Value) -> float:
    """Re⟨g, v⟩ for the derivative g by an unknown and a direction of it."""
    if not isinstance(direction, Smooth | Surface):
        return inner(cotangent, items_of(direction))
    bulk, *ends = cotangent if isinstance(cotangent, tuple) else (cotangent,)
    rules = [standard(interval) for interval in _intervals(kind)]
    weights = reduce(np.multiply.outer, (w for _, w in rules))
    points = np.meshgrid(*(x for x, _ in rules), indexing="ij")
    total = inner(np.asarray(bulk) * weights, items_of(direction(*points)))
    if isinstance(direction, Surface):
        return total
    places = _ends(_intervals(kind)[0]) if ends else []
    return total + sum(_at_end(kind, k, direction, end) for k, end in zip(ends, places, strict=True))


def _at_end(kind: Type, cotangent: Value, direction: Smooth, end: float) -> float:
    """What the coefficients of v, v′, … at an end make of a direction, without those that are fixed."""
    assert isinstance(kind, Map), "a function"
    found = cotangent if isinstance(cotangent, tuple) else (cotangent,)
    slopes = _slopes(direction, kind.fixed)
    return sum(inner(k, items_of(next(slopes)(end))) for k in found)


def _slopes(v: Smooth, fixed: Sequence[int]) -> Iterator[Smooth]:
    order = 0
    while True:
        if order not in fixed:
            yield v
        v, order = v.derivative(), order + 1


def _intervals(kind: Type) -> list[Interval]:
    assert isinstance(kind, Map), "a function"
    return [interval for p in kind.params if (interval := interval_of(p)) is not None]


def _ends(interval: Interval) -> list[float]:
    return [float(end) for end in (interval.lower, interval.upper) if end is not None]
