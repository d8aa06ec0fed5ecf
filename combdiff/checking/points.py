"""Random points at which a derivation is compared: values of its parameters, and of derivatives that nobody knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from combdiff.calculus.functions.intervals import intervals_in
from combdiff.checking.differences import cotangents_of
from combdiff.checking.functions import (
    Smooth,
    Surface,
    Wave,
    evaluated,
    is_on_interval,
    placed,
    random_function,
    random_variation,
    random_wave,
)
from combdiff.errors import UnsupportedError
from combdiff.language.vocabulary import DERIVATIVES, LINEAR
from combdiff.meaning.differences import difference_quotient, items_of
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.linear_maps import LinearMap
from combdiff.meaning.samples import (
    definite,
    distances,
    random_ends,
    random_value,
    takes_roots,
    takes_spectra,
    with_distinct_entries,
)
from combdiff.meaning.sizes import Sizes
from combdiff.meaning.values import Value
from combdiff.terms.terms import Diff, Lam, Let, Term, Var, along, derivative_order, is_curve, is_end, let, subterms
from combdiff.terms.types import Map, Product, Type, is_complex, is_discrete

if TYPE_CHECKING:
    from combdiff.derivation import Derivation


DRAWS = 6
SCALED = 8
"""Further draws, in which each parameter has a scale of its own: a volume is larger than what is excluded from it."""

_AWAY = 0.5  # from zero: much farther than a difference steps


def sample(
    d: Derivation, body: Term, sizes: Sizes, rng: np.random.Generator, *, apart: bool = False
) -> dict[Term, Value] | None:
    """Random values where `body`, which was differentiated, is finite: a real log or root wants positive ones.

    If they are `apart`, arrays of integers have no entries in common.
    Later draws lie between 0 and 1, as probabilities and fractions do; the last ones have other orders of magnitude.
    """
    for draw in range(DRAWS + SCALED):
        ends = random_ends(intervals_in(d.program), rng)
        values = random_values(d.term, sizes, rng, ends)
        directions = [k for k in cotangents_of(d.term, d.objective) if is_on_interval(k.kind)]
        values |= {k: random_variation(placed(k.kind, values), rng) for k in directions}
        if apart:
            values = with_distinct_entries(values, sizes, rng)
        if draw >= DRAWS // 3:
            ends = random_ends(intervals_in(d.program), rng, positive=True)
            at_most = 1.0 if 2 * DRAWS // 3 <= draw < DRAWS else np.inf
            values = {v: _positive(v.type, value, at_most) for v, value in values.items()}
        if draw >= DRAWS:
            values = {v: _scaled(v.type, value, 10.0 ** rng.integers(-2, 3)) for v, value in values.items()}
        if draw >= DRAWS // 3:
            values |= {v: ends[v.name] for v in values if isinstance(v, Var) and is_end(v)}
        if takes_roots(body) or (draw % 2 and takes_spectra(body)):
            form = distances if draw % 4 > 1 else definite
            values = {v: form(v.type, value) for v, value in values.items()}  # type: ignore[misc]
        for t in (d.term, d.objective, body):
            add_derivatives(values, t, sizes)
        within = {v: value.within() if isinstance(value, Smooth | Surface) else value for v, value in values.items()}
        if all(np.isfinite(x).all() for x in items_of(evaluated(body, within, sizes))):
            return values
    return None


def _positive(kind: Type, value: Value, at_most: float) -> Value:
    """Positive numbers instead of real ones; an array with declared symmetries keeps what it has."""
    if isinstance(value, Smooth | Surface) and not is_complex(kind):
        return value.positive()
    if is_complex(kind) or is_discrete(kind) or (isinstance(kind, Map) and kind.symmetries):
        return value
    if not isinstance(value, np.ndarray | int | float):
        return value
    size = np.abs(np.asarray(value, float)) + _AWAY
    found = size if np.isinf(at_most) else at_most * size / (size + _AWAY)
    return found if found.ndim else float(found)


def _scaled(kind: Type, value: Value, factor: float) -> Value:
    """Numbers of another order of magnitude."""
    if is_discrete(kind) or not isinstance(value, np.ndarray | int | float | complex):
        return value
    found = np.asarray(value) * factor
    return found if found.ndim else found.item()


def random_values(
    t: Term, sizes: Sizes, rng: np.random.Generator, ends: Mapping[str, float] | None = None
) -> dict[Term, Value]:
    """Random values for all parameters; for an unknown map of tensors a smooth function of their entries."""
    values: dict[Term, Value] = {}
    while isinstance(t, Lam):
        for p in t.params:
            if ends and p.name in ends and is_end(p):
                values[p] = ends[p.name]
                continue
            if is_on_interval(p.kind):
                values[p] = random_function(p.kind, rng)
                continue
            if is_curve(p.kind) and isinstance(p.kind, Map) and not p.kind.linear:
                values[p] = random_wave(p.kind, rng)
                continue
            try:
                values[p] = random_value(p.kind, sizes, rng)
            except UnsupportedError:
                values[p] = _smooth_map(p.kind, rng)
        t = t.body
        if not has_unknowns(t):
            break
    return values


def has_unknowns(t: Term) -> bool:
    """Whether `t` is a further map of arguments, rather than a result indexed by its slots, or a function of points."""
    is_result = isinstance(t.type, Map) and (t.type.is_array or is_on_interval(t.type))
    return isinstance(t, Lam) and not is_result


def _smooth_map(kind: Type, rng: np.random.Generator) -> Callable[..., Value]:
    """A smooth real function of the entries of tensors, in the place of an unknown one."""
    assert isinstance(kind, Map), "only maps are unknown"
    if isinstance(kind.result, Map | Product) or any(isinstance(p, Map) and not p.is_array for p in kind.params):
        raise UnsupportedError(
            "an unknown map of functions, or of tensors to tensors, has no random value to be checked with",
            remedy="define the map in the program, or compare with numbers of your own",
        )
    weights = rng.normal(size=256)

    def function(*args: Value) -> Value:
        entries = [np.ravel(x.real) for a in args for x in items_of(a)]
        total = 0.3 + sum(float(np.resize(weights[n:], x.size) @ x) for n, x in enumerate(entries))
        return float(np.sin(total) + 0.1 * total * total)

    return function


def add_derivatives(values: dict[Term, Value], t: Term, sizes: Sizes) -> None:
    """Differences in the place of the derivatives of maps that are unknown, or defined in `t` and kept unknown."""
    bindings = [binding for u in subterms(t, Let) for binding in u.bindings]
    kept = [var for var, e in bindings if isinstance(e, Lam) and isinstance(e.type, Map) and not e.type.is_tensor]
    derivatives = sorted((u for u in subterms(t, Diff)), key=derivative_order)
    for source in (None, *kept):
        if source is not None:
            values[source] = evaluate(let(bindings, source), values, sizes)
        for u in derivatives:
            given = values.get(u.of)
            if u in values or not callable(given):
                continue
            if u.kind == "root":
                values[u] = evaluate(u, values, sizes)
            if isinstance(given, LinearMap) and u.kind in LINEAR:
                values[u] = given.adjoint if u.kind == "adjoint" else given.inverse
            elif isinstance(given, Smooth | Wave) and u.kind == "grad":
                values[u] = given.derivative()
            elif u.kind in DERIVATIVES:
                values[u] = _along(given) if along(u)[1] and is_complex(u.type) else difference_quotient(given, u.kind)


def _along(f: Callable[..., Value]) -> Callable[..., Value]:
    """The derivative of a complex function along its real argument."""
    slopes = difference_quotient(f, "pullback")

    def function(x: Value) -> Value:
        real, imaginary = slopes(x, 1.0), slopes(x, 1j)
        assert isinstance(real, float) and isinstance(imaginary, float), "the argument is a real number"
        return complex(real, imaginary)

    return function
