"""Functions on intervals in the check on numbers: smooth random ones, their values at nodes, variations, pairings.

The variation of ∫ L along v is Σ_k w_k b(x_k) v(x_k), and what stands at the ends, for the derivative b by a function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.polynomial import Polynomial

from combdiff.meaning.differences import inner, items_of
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.quadrature import at_values, standard
from combdiff.meaning.values import Value
from combdiff.terms.terms import Diff, Term
from combdiff.terms.types import Domain, Interval, Map, Number, Product, Type, interval_of, is_complex, is_real

_DEGREE = 4


def is_function(kind: Type) -> bool:
    """Whether it is a function of one number, of an interval or any, with numbers for values."""
    of_one = isinstance(kind, Map) and isinstance(kind.result, Number) and len(kind.params) == 1
    return of_one and isinstance(kind, Map) and is_real(kind.params[0])


def is_on_interval(kind: Type) -> bool:
    """Whether it is a function of a point of an interval, of which the check knows what to integrate it by."""
    return is_function(kind) and isinstance(kind, Map) and interval_of(kind.params[0]) is not None


def has_functions(kind: Type) -> bool:
    """Whether a value is a function on an interval, or a tuple with one."""
    return any(map(has_functions, kind.items)) if isinstance(kind, Product) else is_on_interval(kind)


@dataclass(frozen=True, slots=True)
class Smooth:
    """A polynomial, times exp(-x²/2) where it is to vanish far away; so are its derivatives."""

    polynomial: Polynomial
    decays: bool

    def __call__(self, x: Value) -> Value:
        at = np.asarray(x)
        found = self.polynomial(at) * (np.exp(-(at**2) / 2) if self.decays else 1.0)
        return found if np.ndim(found) else found.item()

    def derivative(self) -> Smooth:
        """d/dx of it."""
        slope = self.polynomial.deriv()
        return Smooth(slope - Polynomial([0, 1]) * self.polynomial if self.decays else slope, self.decays)

    def positive(self) -> Smooth:
        """A function above 0, as densities are."""
        return Smooth(self.polynomial**2 + 0.5, self.decays)

    def moved(self, direction: Smooth, h: float) -> Smooth:
        """The function and `h` times another one."""
        return Smooth(self.polynomial + h * direction.polynomial, self.decays)


def placed(kind: Type, values: Mapping[Term, Value]) -> Type:
    """A type of functions on an interval, of which the ends are numbers, at the values of these."""
    interval = interval_of(kind.params[0]) if isinstance(kind, Map) and is_on_interval(kind) else None
    if isinstance(kind, Product):
        return Product(tuple(placed(item, values) for item in kind.items))
    if not isinstance(kind, Map) or interval is None or not interval.names:
        return kind
    return replace(kind, params=(Number(complex=False, interval=at_values(interval, values)),))


def random_function(kind: Type, rng: np.random.Generator) -> Smooth:
    """A smooth function on an interval."""
    interval = _interval(kind)
    coefficients = rng.normal(size=_DEGREE + 1) / (1 + np.arange(_DEGREE + 1))
    if is_complex(kind):
        coefficients = coefficients + 1j * rng.normal(size=_DEGREE + 1) / (1 + np.arange(_DEGREE + 1))
    return Smooth(Polynomial(coefficients), not interval.bounded)


def random_variation(kind: Type, rng: np.random.Generator) -> Smooth:
    """A smooth function that is 0, with its derivatives, at ends where these are fixed."""
    found = random_function(kind, rng)
    assert isinstance(kind, Map), "a function"
    times = min(max(kind.fixed, default=-1) + 1, _DEGREE)
    bump = Polynomial([1.0])
    for end in _ends(_interval(kind)):
        bump = bump * Polynomial([-end, 1.0]) ** times
    return Smooth(found.polynomial * bump, found.decays)


def at_nodes(value: Value, kind: Type) -> Value:
    """A value with the values at the nodes of the standard rule in the place of functions on intervals."""
    if isinstance(kind, Product):
        assert isinstance(value, tuple), "of a product"
        return tuple(at_nodes(v, k) for v, k in zip(value, kind.items, strict=True))
    if not is_on_interval(kind) or not callable(value):
        return value
    found = [value(float(x)) for x in standard(_interval(kind))[0]]
    return np.asarray(found)


def evaluated(t: Term, values: Mapping[Term, Value], sizes: Mapping[Domain, int]) -> Value:
    """The value of a term, functions on intervals at the nodes of the standard rule."""
    return at_nodes(evaluate(t, values, sizes), placed(t.type, values))


def with_slopes(values: dict[Term, Value], known: Mapping[Term, Value]) -> dict[Term, Value]:
    """The values, with the derivatives of smooth functions that are `known` at others."""
    for u in sorted((u for u in known if isinstance(u, Diff)), key=_order):
        if isinstance(of := values.get(u.of), Smooth):
            values[u] = of.derivative()
    return values


def _order(t: Term) -> int:
    return 1 + _order(t.of) if isinstance(t, Diff) else 0


def paired(kind: Type, cotangent: Value, direction: Value) -> float:
    """Re⟨g, v⟩ for the derivative g by an unknown and a direction of it."""
    if not isinstance(direction, Smooth):
        return inner(cotangent, items_of(direction))
    bulk, *ends = cotangent if isinstance(cotangent, tuple) else (cotangent,)
    nodes, weights = standard(_interval(kind))
    total = inner(np.asarray(bulk) * weights, items_of(direction(nodes)))
    places = _ends(_interval(kind)) if ends else []
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


def _interval(kind: Type) -> Interval:
    assert isinstance(kind, Map), "a function"
    found = interval_of(kind.params[0])
    assert found is not None, "of an interval"
    return found


def _ends(interval: Interval) -> list[float]:
    return [float(end) for end in (interval.lower, interval.upper) if end is not None]
