"""Compares a derivative with finite differences of the objective.

For random unknowns z, directions dz and cotangents k the pullback must satisfy Re⟨𝒫(f)(z, k), dz⟩ = Re⟨k, f'(z) dz⟩
(Eq. 44), where f is evaluated by `meaning/evaluate.py`, so that no rule of the calculus takes part in the right side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from combdiff.checking.forward import direction_of, moved, off_matrices, off_tangent
from combdiff.checking.functions import Smooth, Surface, evaluated, is_on_interval, paired, placed, with_slopes
from combdiff.checking.rounding import distance
from combdiff.errors import UnsupportedError
from combdiff.meaning.differences import TOLERANCE, is_lost, items_of, off_slope
from combdiff.meaning.samples import random_value
from combdiff.meaning.sizes import Sizes
from combdiff.meaning.values import Value
from combdiff.terms.terms import Lam, Term, Var
from combdiff.terms.types import Type, is_complex

if TYPE_CHECKING:
    from combdiff.derivation import Derivation


DIRECTIONS = 2  # at each set of sizes
SPARED = 8  # times: where slopes are balanced, the rounding of a large value is larger than what it changes by


def off_differences(
    d: Derivation,
    body: Term,
    result: Value,
    values: dict[Term, Value],
    sizes: Sizes,
    rng: np.random.Generator,
) -> float | None:
    """The largest relative difference over a few random directions; None if the differences of none of them settle."""
    f = d.objective
    cotangents = cotangents_of(d.term, f)
    if d.mode == "simplified":
        expected = evaluated(body, values, sizes)
        return max((distance(a, b) for a, b in zip(items_of(result), items_of(expected), strict=True)), default=0.0)
    if d.mode == "jvp":
        tangents = [values[k] for k in cotangents]
        return off_tangent(f, body, tangents, items_of(result), values, sizes, rng)
    if d.mode in ("jacobian", "hessian"):
        return off_matrices(f, body, items_of(result), values, sizes, rng)
    return _off_cotangents(d, body, result, values, sizes, rng)


def _off_cotangents(
    d: Derivation, body: Term, result: Value, values: dict[Term, Value], sizes: Sizes, rng: np.random.Generator
) -> float | None:
    """How far cotangents are off, Re⟨𝒫(f)(z, k), dz⟩ beside the slope of Re⟨k, f⟩ along dz.

    In the last direction, entries by which the slope is large move less, so that they do not hide the others.
    """
    f, cotangents = d.objective, cotangents_of(d.term, d.objective)
    given = tuple(values[c] for c in cotangents)
    k: Value = 1.0 if not given else given[0] if len(given) == 1 else given
    of_functions = any(is_on_interval(x.kind) for x in f.params)

    def value(at: dict[Term, Value]) -> Value:
        found = evaluated(body, at, sizes)
        if not (of_functions and cotangents):
            return found
        # of a gradient, along the direction that its Hessian product was taken along
        parts = zip(f.params, by_unknown(found, f), cotangents, strict=True)
        return sum(paired(placed(x.kind, at), g, values[k]) for x, g, k in parts)

    if of_functions:
        k = 1.0
    cotangent_of = by_unknown(result, f)
    if any(_is_beyond(x.kind, g) for x, g in zip(f.params, cotangent_of, strict=True)):
        return float("inf")
    offs: list[float] = []
    for last in (*(False,) * DIRECTIONS, *(() if d.symmetric else (True,))):
        directions = _directions(d, cotangent_of, values, sizes, rng, balanced=last)
        if not any(map(_moves, directions)):
            continue

        def along(h: float, directions: Sequence[Value] = directions) -> Value:
            there: dict[Term, Value] = {x: moved(values[x], dx, h) for x, dx in zip(f.params, directions, strict=True)}
            return value({**values, **with_slopes(there, values)})

        triples = zip(f.params, cotangent_of, directions, strict=True)
        found = sum(paired(placed(x.kind, values), g, dx) for x, g, dx in triples)
        off = off_slope(found, k, along, SPARED if last else 1)
        offs += [] if off is None else [off]
    return max(offs, default=None)


def _directions(
    d: Derivation,
    slopes: Sequence[Value],
    values: dict[Term, Value],
    sizes: Sizes,
    rng: np.random.Generator,
    *,
    balanced: bool,
) -> list[Value]:
    """A direction for each unknown; a projected gradient is compared along what keeps the symmetry."""
    unknowns = d.objective.params
    within = [d.symmetric and not is_on_interval(x.kind) for x in unknowns]
    found = [
        (random_value if keeps else direction_of)(placed(x.kind, values), sizes, rng)
        for x, keeps in zip(unknowns, within, strict=True)
    ]
    if not balanced:
        return found
    return [_balanced(dx, g, values[x]) for dx, g, x in zip(found, slopes, unknowns, strict=True)]


def _moves(direction: Value) -> bool:
    return isinstance(direction, Smooth | Surface) or any(x.any() for x in items_of(direction))


def by_unknown(found: Value, f: Lam) -> tuple[Value, ...]:
    """The derivatives by all unknowns; that by a function is a tuple where it has parts at ends."""
    return found if isinstance(found, tuple) and len(f.params) > 1 else (found,)


def _is_beyond(kind: Type, cotangent: Value) -> bool:
    """Whether the derivative by a real variable has an imaginary part, which no difference would show."""
    return not is_complex(kind) and any(np.abs(x.imag).max(initial=0.0) > TOLERANCE for x in items_of(cotangent))


def cotangents_of(t: Term, f: Lam) -> tuple[Var, ...]:
    while isinstance(t, Lam):
        if t.params[: len(f.params)] == f.params:
            return t.params[len(f.params) :]
        t = t.body
    return ()


def innermost(t: Term, f: Lam) -> Term:
    """The body of the derivative, below the parameters that it shares with f and below its cotangents."""
    while isinstance(t, Lam):
        if t.params[: len(f.params)] == f.params:
            return t.body
        t = t.body
    raise UnsupportedError(
        "this result is not a map of the unknowns, so it cannot be checked on numbers",
        remedy="write the derivative outermost below the leading maps",
    )


def _balanced(direction: Value, slope: Value, at: Value) -> Value:
    """The direction with steps along which a value changes by no more than about one, none where these are lost."""
    if isinstance(direction, Smooth | Surface):
        return direction
    assert not isinstance(direction, tuple) and not callable(direction), "a number or an array"
    balanced = np.asarray(direction) / np.maximum(1.0, np.abs(items_of(slope)[0]))
    return np.where(is_lost(items_of(balanced)[0], items_of(at)[0]), 0.0, balanced)
