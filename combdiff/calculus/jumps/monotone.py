"""The zero of a strictly increasing function of one number is a root, which Newton's method finds.

    ∫ δ(x³ + x, y, f(x)) dx   is   f(r) / (3 r² + 1),   r the root of x ↦ x³ + x − y

A function counts as increasing if that can be read off: sums of odd powers, exp, sinh, tanh … with positive numbers in
front, and functions that are declared to be `increasing`. It has a root for all y if one of the terms is unbounded in
both directions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from combdiff.calculus.affine import Zero
from combdiff.records import dataclass
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    ZERO,
    Add,
    App,
    Call,
    Const,
    Lam,
    Pow,
    Term,
    Var,
    add,
    diff,
    fresh,
    mul,
    number,
    power,
    split_coefficient,
    substitute,
    terms_of,
    times,
)
from combdiff.terms.types import REAL, Map

_UNBOUNDED = frozenset(("sinh", "asinh"))
_INCREASING = _UNBOUNDED | {"exp", "tanh", "atan", "erf", "sigmoid", "softplus"}


@dataclass(frozen=True, slots=True)
class _Rising:
    """A strictly increasing function: its slope, and whether it takes all values."""

    slope: Term
    onto: bool


def root_of(t: Term, variables: Collection[Var]) -> Zero | None:
    """Where t is zero, by one of `variables` of which it is known to be strictly monotone.

    >>> from combdiff.terms.terms import power, sub
    >>> x, y = fresh("x", REAL), fresh("y", REAL)
    >>> zero = root_of(sub(power(x, number(3)), y), [x])
    >>> zero.variable is x, zero.slope == mul(number(3), power(x, number(2)))
    (True, True)
    """
    for v in variables:
        for sign in (ONE, MINUS_ONE):
            w = add(*_terms(sign, t))
            rising = _sum(w, v)
            if rising is not None and rising.onto:
                x = fresh(v.name, REAL)
                return Zero(v, diff("root", Lam((x,), substitute(w, {v: x}))), rising.slope, rising=True)
    return None


def _terms(c: Const, t: Term) -> Iterator[Term]:
    """The terms of a multiple of a sum, those of sums in it, too."""
    for term in terms_of(t):
        own, of = split_coefficient(term)
        if isinstance(of, Add):
            yield from _terms(times(c, own), of)
        else:
            yield mul(c, own, of)


def _sum(t: Term, v: Var) -> _Rising | None:
    """A sum of increasing functions of v and what does not hold it."""
    slopes, onto = [], False
    for term in terms_of(t):
        if v not in term.free:
            continue
        c, of = split_coefficient(term)
        rising = _term(of, v)
        if rising is None or c.imag or c.real <= 0:
            return None
        slopes.append(mul(c, rising.slope))
        onto |= rising.onto
    return _Rising(add(*slopes), onto) if slopes else None


def _term(t: Term, v: Var) -> _Rising | None:
    match t:
        case Var() if t == v:
            return _Rising(ONE, True)
        case Pow(base, Const() as n) if n.is_integer and n.real > 0 and n.real % 2 == 1:
            inner = _sum(base, v)
            slope = ZERO if inner is None else mul(n, power(base, number(int(n.real) - 1)), inner.slope)
            return None if inner is None else _Rising(slope, inner.onto)
        case App(Var(kind=Map(increasing=True)) as g, (u,)) if (inner := _sum(u, v)) is not None:
            return _Rising(mul(App(diff("grad", g), (u,)), inner.slope), inner.onto)
        case Call(name, (u,)) if name in _INCREASING and (inner := _sum(u, v)) is not None:
            derivative = SCALAR_FUNCTIONS[name].derivative
            rate = None if derivative is None else derivative(u)
            assert isinstance(rate, Term), "a function of one number"
            return _Rising(mul(rate, inner.slope), inner.onto and name in _UNBOUNDED)
    return None
