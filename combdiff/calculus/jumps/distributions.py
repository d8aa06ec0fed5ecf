"""The derivative of a map that jumps, under an integral: a Dirac δ for each jump.

    ∫ f(x) grad((y::R) -> indicator(a, y, 1))(x) dx   is   f(a)

for the derivative is δ(y, a, 1) there. Outside of integrals it is 0, because a condition is constant.
"""

from __future__ import annotations

from collections.abc import Iterator

from combdiff.calculus.definitions.floating import unfold
from combdiff.calculus.jumps.moving import jumps
from combdiff.calculus.reverse import gradient_of
from combdiff.errors import UnsupportedError
from combdiff.terms.terms import (
    ONE,
    Lam,
    Let,
    Term,
    Var,
    add,
    apply,
    call,
    conj,
    delta,
    items_of,
    let,
    mul,
    total,
    tuple_of,
)
from combdiff.terms.types import Number


def with_peaks(taken: Lam, f: Lam) -> Lam:
    """The derivative `taken` of f, a gradient or a pullback, with a δ where f jumps.

    >>> from combdiff.terms.terms import fresh, indicator
    >>> from combdiff.terms.types import REAL
    >>> y, a = fresh("y", REAL), fresh("a", REAL)
    >>> f = Lam((y,), indicator(a, y, ONE))
    >>> with_peaks(gradient_of(f), f).body == delta(y, a, ONE)
    True

    Raises:
        UnsupportedError: f jumps at a place that is not known, is not finite there, or has a δ itself.
    """
    body = unfold(f.body)
    values = items_of(body)
    cotangents = taken.params[len(f.params) :] or (ONE,)
    peaks = [
        add(*(peak for value, k in zip(values, cotangents, strict=True) for peak in _peaks(x, f.params, value, k)))
        for x in f.params
    ]
    bindings, core = (taken.body.bindings, taken.body.body) if isinstance(taken.body, Let) else ((), taken.body)
    items = items_of(core)
    found = [add(t, p) if isinstance(t.type, Number) else t for t, p in zip(items, peaks, strict=True)]
    return Lam(taken.params, let(bindings, tuple_of(found)))


def _peaks(x: Var, params: tuple[Var, ...], value: Term, k: Term) -> Iterator[Term]:
    """The δ's in the derivative of a value by x, with its cotangent k."""
    over: tuple[Var, ...] = ()
    while isinstance(value, Lam):
        over, k, value = over + value.params, apply(k, *value.params), value.body
    for jump in jumps(x, params, value):
        if not isinstance(x.kind, Number):
            raise UnsupportedError(
                f"a map that jumps is differentiated by {x.name}, which is not a number, under an integral",
                remedy="differentiate by a number, or write the condition outside of the integral",
            )
        slope = gradient_of(Lam((x,), jump.w)).body
        peak = mul(jump.zero.measure, slope, call("real", mul(conj(jump.height), k)))
        yield total((*over, *jump.over), delta(jump.zero.variable, jump.zero.at, peak))
