"""Reads a number as an affine function of one variable, a·v + c, and finds its zero."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction

from combdiff.records import dataclass
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    ZERO,
    Add,
    Call,
    Conj,
    Const,
    Mul,
    Pow,
    Sum,
    Term,
    Var,
    add,
    call,
    conj,
    mul,
    neg,
    number,
    power,
    reciprocal,
    split_coefficient,
    terms_of,
    total,
)
from combdiff.terms.types import Domain, Index, Number, is_real


def affine(t: Term, v: Var) -> tuple[Term, Term] | None:
    """(a, c) with t = a·v + c, products with sums multiplied out; None if t is no such function of v.

    >>> from combdiff.terms.terms import fresh, sub
    >>> from combdiff.terms.types import REAL
    >>> x, b = fresh("x", REAL), fresh("b", REAL)
    >>> affine(sub(mul(b, x), mul(b, sub(x, b))), x) == (ZERO, power(b, number(2)))
    True
    """
    if v not in t.free:
        return ZERO, t
    match t:
        case Var():
            return ONE, ZERO
        case Add(terms):
            parts = [affine(u, v) for u in terms]
            known = [p for p in parts if p is not None]
            if len(known) < len(parts):
                return None
            return add(*(a for a, _ in known)), add(*(c for _, c in known))
        case Mul(factors):
            return _of_product(factors, v)
        case Sum(indices, body):
            inner = affine(body, v)
            return inner and (_total(indices, inner[0]), _total(indices, inner[1]))
        case Conj(u) if is_real(v.kind):
            inner = affine(u, v)
            return inner and (conj(inner[0]), conj(inner[1]))
        case Call("real" | "imag" as part, (u,)) if is_real(v.kind):
            inner = affine(u, v)
            return inner and (call(part, inner[0]), call(part, inner[1]))
        case _:
            return None


def _of_product(factors: Sequence[Term], v: Var) -> tuple[Term, Term] | None:
    varying = [f for f in factors if v in f.free]
    inner = affine(varying[0], v) if len(varying) == 1 else None
    if inner is None:
        return None
    rest = mul(*(f for f in factors if v not in f.free))
    return times(rest, inner[0]), times(rest, inner[1])


def _total(indices: Sequence[Var], t: Term) -> Term:
    return add(*(total(indices, u) for u in terms_of(t)))


def flat(t: Term) -> Term:
    """A sum without sums in it that only a number stands in front of.

    >>> from combdiff.terms.terms import fresh, sub
    >>> from combdiff.terms.types import REAL
    >>> x, a = fresh("x", REAL), fresh("a", REAL)
    >>> flat(sub(x, sub(x, a))) == a
    True
    """
    return add(*(times(*split_coefficient(u)) for u in terms_of(t)))


def times(factor: Term, t: Term) -> Term:
    """factor · t, term by term where t is a sum, so that what cancels is seen to."""
    return add(*(mul(factor, u) for u in terms_of(t)))


def expanded(t: Term) -> Term:
    """t with products of sums multiplied out, which says of two polynomials whether they are one.

    >>> from combdiff.terms.terms import fresh, sub
    >>> from combdiff.terms.types import REAL
    >>> a, b = fresh("a", REAL), fresh("b", REAL)
    >>> sub(mul(a, add(a, b)), power(a, number(2))) == mul(a, b)
    False
    >>> expanded(sub(mul(a, add(a, b)), power(a, number(2)))) == mul(a, b)
    True
    """
    match t:
        case Add(terms):
            return add(*map(expanded, terms))
        case Mul(factors):
            result: Term = ONE
            for factor in map(expanded, factors):
                result = add(*(times(u, factor) for u in terms_of(result)))
            return result
        case Pow(Add() as base, Const() as n) if n.is_integer and 2 <= n.real <= HIGHEST:
            return expanded(Mul((base,) * int(n.real)))
        case _:
            return t


HIGHEST = 4
"""The highest power of a sum that is multiplied out."""


def inverse(t: Term) -> Term:
    """1/t, factor by factor."""
    match t:
        case Const() if t != ZERO:
            return reciprocal(t)
        case Mul(factors):
            return mul(*map(inverse, factors))
        case _:
            return power(t, MINUS_ONE)


@dataclass(frozen=True, slots=True)
class Zero:
    """Where a·v + c is zero: at v = `at` = −c/a; `slope` is a, which does not depend on v.

    What is `rising`, and not affine, has a slope above 0, which may depend on v.
    """

    variable: Var
    at: Term
    slope: Term
    rising: bool = False

    @property
    def measure(self) -> Term:
        """1/|a|, or 1/|a|² on the complex plane: what Dirac's δ of a·v + c leaves when it is integrated over v."""
        dimensions = 2 if isinstance(self.variable.kind, Number) and self.variable.kind.complex else 1
        if self.rising:
            return inverse(self.slope)
        match self.slope:
            case Const(real, imag) if dimensions == 2:
                return number(1 / (real * real + imag * imag))
            case Const(real, imag) if not imag:
                return number(1 / abs(real))
            case slope:
                return power(call("abs", slope), number(-dimensions))


def zero_of(t: Term, variables: Collection[Var]) -> Zero | None:
    """Where t is zero, by one of `variables`; None if it is an affine function of none of them.

    A variable with a number in front is taken before one with what depends on parameters, and that before one with what
    depends on other variables; of equal ones the last.
    """
    found: list[tuple[int, Zero]] = []
    for v in variables:
        parts = affine(t, v) if v in t.free else None
        if parts is None or _may_vanish(parts[0]):
            continue
        slope, offset = parts
        rank = 0 if isinstance(slope, Const) else 1 if slope.free.isdisjoint(variables) else 2
        found.append((rank, Zero(v, times(neg(inverse(slope)), offset), slope)))
    return min(reversed(found), key=lambda pair: pair[0])[1] if found else None


def _may_vanish(slope: Term) -> bool:
    """Whether a slope is 0 for some index, as i is; what depends on numbers that are given is taken not to be 0."""
    match slope:
        case Const():
            return slope == ZERO
        case Mul(factors):
            return any(map(_may_vanish, factors))
        case Pow(base, _):
            return _may_vanish(base)
        case _ if all(isinstance(u, Const) or isinstance(u.type, Index) for u in terms_of(slope)):
            return not (_is_positive(slope) or _is_positive(times(MINUS_ONE, slope)))
        case _:
            return False


def _is_positive(t: Term) -> bool:
    """Whether a sum of multiples of indices, and a number, is positive for all of them."""
    least = [_least(u) for u in terms_of(t)]
    return None not in least and sum(x for x in least if x is not None) > 0


def _least(t: Term) -> Fraction | None:
    """The least value of a multiple of an index, if it is known not to be negative."""
    c, rest = split_coefficient(t)
    if rest == ONE:
        return c.real
    match rest:
        case Var(kind=Index(Domain(symmetric=False) as domain)) if c.real > 0 and domain.directions == 1:
            lower = domain.lower or 0
            return c.real * lower if lower >= 0 and not domain.listed else None
        case _:
            return None


def depends(t: Term, variables: Collection[Var]) -> bool:
    """Whether t depends on one of `variables` once what cancels is gone.

    >>> from combdiff.terms.terms import fresh, sub
    >>> from combdiff.terms.types import REAL
    >>> x, a = fresh("x", REAL), fresh("a", REAL)
    >>> depends(sub(mul(a, x), mul(x, a)), [x]), depends(mul(a, x), [x])
    (False, True)
    """
    return any(v in t.free and ((parts := affine(t, v)) is None or parts[0] != ZERO) for v in variables)
