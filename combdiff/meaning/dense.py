"""Integrals over numbers that δs make finite: Σ_t body becomes a sum of products in which every t is solved for.

Raw pullbacks (Eq. 27) hold Σ_t δ(v, t, e) over real or complex t. Σ is linear, so it passes to the terms of a sum; a δ
passes out of products, conj, real and imag; and Σ_t δ(a t + c, y, e) = e[t := (y − c)/a] / |a|.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from combdiff.errors import UnsupportedError
from combdiff.records import dataclass
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    ZERO,
    Add,
    Call,
    Conj,
    Delta,
    Indicator,
    Let,
    Mul,
    Sum,
    Term,
    Var,
    add,
    call,
    conj,
    indicator,
    mul,
    neg,
    power,
    refreshed,
    sub,
    substitute,
)
from combdiff.terms.types import Number, is_complex

Condition = tuple[Term, Term]


@dataclass(frozen=True, slots=True)
class Alternative:
    """Σ_indices Π δ(conditions) · factor / Π |coefficients|; a coefficient comes with: is it of a complex variable."""

    factor: Term
    conditions: tuple[Condition, ...] = ()
    indices: tuple[Var, ...] = ()
    coefficients: tuple[tuple[Term, bool], ...] = ()


def alternatives(dense: Sequence[Var], body: Term) -> list[Alternative]:
    """The terms of Σ_dense body, without the variables `dense`.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> t, v = fresh("t", REAL), fresh("v", REAL)
    >>> [found.factor == mul(v, v) for found in alternatives((t,), Delta(v, t, mul(t, t)))]
    [True]
    """
    return [_solved(found, dense) for found in _terms(body, frozenset(dense))]


def _terms(t: Term, dense: frozenset[Var]) -> list[Alternative]:
    """`t` as a sum of alternatives; δs whose sides or bodies depend on `dense` stand apart from their factors."""
    if t.free.isdisjoint(dense):
        return [Alternative(t)]
    match t:
        case Add(terms):
            return [a for u in terms for a in _terms(u, dense)]
        case Mul(factors):
            return [_product(choice) for choice in product(*(_terms(u, dense) for u in factors))]
        case Delta(left, right, body):
            return [replace(a, conditions=((left, right), *a.conditions)) for a in _terms(body, dense)]
        case Indicator(left, right, body):
            return [replace(a, factor=indicator(left, right, a.factor)) for a in _terms(body, dense)]
        case Conj(of):
            return [replace(a, factor=conj(a.factor)) for a in _terms(of, dense)]
        case Call("real" | "imag" as part, (of,)):
            return [replace(a, factor=call(part, a.factor)) for a in _terms(of, dense)]
        case Sum():
            return _inner_sum(t, dense)
        case Let(bindings, body):
            for var, value in reversed(bindings):
                body = substitute(body, {var: value})
            return _terms(body, dense)
        case _:
            return [Alternative(t)]


def _product(choice: Sequence[Alternative]) -> Alternative:
    return Alternative(
        mul(*(a.factor for a in choice)),
        tuple(c for a in choice for c in a.conditions),
        tuple(i for a in choice for i in a.indices),
        tuple(c for a in choice for c in a.coefficients),
    )


def _inner_sum(t: Sum, dense: frozenset[Var]) -> list[Alternative]:
    inner = refreshed(t)
    assert isinstance(inner, Sum)
    numbers = tuple(v for v in inner.indices if isinstance(v.kind, Number))
    indices = tuple(v for v in inner.indices if v not in numbers)
    found = _terms(inner.body, dense | frozenset(numbers))
    return [replace(_solved(a, numbers), indices=(*indices, *a.indices)) for a in found]


def _solved(found: Alternative, dense: Sequence[Var]) -> Alternative:
    for var in dense:
        found = _without(found, var)
    return found


def _without(found: Alternative, var: Var) -> Alternative:
    """`found` with the first δ that fixes `var` used up."""
    for position, (left, right) in enumerate(found.conditions):
        affine = _affine(sub(left, right), var)
        if affine is None or affine[0] == ZERO:
            continue
        slope, offset = affine
        value = neg(mul(offset, power(slope, MINUS_ONE)))
        rest = found.conditions[:position] + found.conditions[position + 1 :]
        return Alternative(
            substitute(found.factor, {var: value}),
            tuple((substitute(a, {var: value}), substitute(b, {var: value})) for a, b in rest),
            found.indices,
            (*((substitute(c, {var: value}), z) for c, z in found.coefficients), (slope, is_complex(var.kind))),
        )
    raise UnsupportedError(
        f"an integral over the real line has no finite value here: nothing fixes {var.name}",
        remedy="simplify first, or read the variable as an index of a periodic domain",
    )


def _affine(t: Term, var: Var) -> tuple[Term, Term] | None:
    """(a, c) with t = a·var + c, if there are such."""
    if var not in t.free:
        return ZERO, t
    match t:
        case Var():
            return ONE, ZERO
        case Add(terms):
            parts = [_affine(u, var) for u in terms]
            known = [p for p in parts if p is not None]
            return (add(*(a for a, _ in known)), add(*(c for _, c in known))) if len(known) == len(parts) else None
        case Mul(factors):
            within = [f for f in factors if var in f.free]
            inner = _affine(within[0], var) if len(within) == 1 else None
            if inner is None:
                return None
            rest = mul(*(f for f in factors if var not in f.free))
            return mul(rest, inner[0]), mul(rest, inner[1])
        case _:
            return None
