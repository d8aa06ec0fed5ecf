"""Fractions in a sum go, or in a divisor, if what they are divided by stands beside it.

(v + 1) / v / s^2 Σ_i x_i / (1 + x_i^2 / v / s^2)        is   (v + 1) Σ_i x_i / (v s^2 + x_i^2)
m (1 - y / m)                                            is   m - y
exp(-im t) (a - b exp(im t))                             is   a exp(-im t) - b
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from combdiff.canon.like_terms.opening import factors_written
from combdiff.terms.network import network
from combdiff.terms.terms import Add, Const, Mul, Pow, Sum, Term, Traverser, add, factors_of, mul, number, power, total
from combdiff.terms.types import Index


def without_nested_fractions(t: Term) -> Term:
    """A product, with sums in it, without such fractions.

    >>> from combdiff.terms.terms import MINUS_ONE, ONE, fresh
    >>> from combdiff.terms.types import REAL
    >>> x, v = fresh("x", REAL), fresh("v", REAL)
    >>> inverse = power(v, MINUS_ONE)
    >>> nested = mul(inverse, power(add(ONE, mul(x, inverse)), MINUS_ONE))
    >>> without_nested_fractions(nested) == power(add(v, x), MINUS_ONE)
    True
    """
    whole = network(t)
    factors = list(whole.factors)
    found = next(filter(None, (rule(f, factors) for rule in (_cleared, _multiplied) for f in factors)), None)
    if found is None:
        return t
    outer = [f for f in found if f.free.isdisjoint(whole.indices)]
    inner = mul(*(f for f in found if f not in outer))
    return mul(whole.coefficient, *outer, total(whole.indices, inner))


def without_fractions_in_sums(t: Term) -> Term:
    """`t` with all of its products without such fractions.

    >>> from combdiff.terms.terms import MINUS_ONE, ONE, fresh, neg
    >>> from combdiff.terms.types import REAL
    >>> y, m = fresh("y", REAL), fresh("m", REAL)
    >>> without_fractions_in_sums(mul(m, add(ONE, neg(mul(y, power(m, MINUS_ONE)))))) == add(m, neg(y))
    True
    """
    return Traverser(lambda u: without_nested_fractions(u) if isinstance(u, Mul | Sum) else u, Add)(t)


def _cleared(f: Term, factors: Sequence[Term]) -> list[Term] | None:
    """The factors after the divisor `f` of them has met what its terms are divided by; None if it meets nothing."""
    match f:
        case Pow(Add(terms), Const(n, imag) as exponent) if n < 0 and not imag and n.denominator == 1:
            beside = _divisors([g for g in factors if g is not f])
            inside = [_divisors(factors_of(u)) for u in terms]
            for by, least in {b: max(own.get(b, 0) for own in inside) for own in inside for b in own}.items():
                with_it = sum(by in own for own in inside)
                if beside.get(by, 0) >= -n * least and 2 * with_it >= len(terms):
                    multiple = power(by, number(least))
                    rest = [power(by, number(-n * least)), *(g for g in factors if g is not f)]
                    opened = power(add(*(mul(multiple, u) for u in terms)), exponent)
                    return list(factors_of(mul(*rest, opened)))
    return None


def _multiplied(f: Term, factors: Sequence[Term]) -> list[Term] | None:
    """The factors after the sum `f` of them has met what its terms are divided by, if fewer are written."""
    if not isinstance(f, Add) or isinstance(f.type, Index):
        return None
    rest = [g for g in factors if g is not f]
    for g in rest:
        if isinstance(g, Add) or not any(_meet(g, u) for u in f.terms):
            continue
        opened = add(*(mul(g, u) for u in f.terms))
        if factors_written(opened) < 1 + factors_written(f):
            return [*factors_of(mul(opened, *(h for h in rest if h is not g)))]
    return None


def _meet(g: Term, u: Term) -> bool:
    """Whether a factor meets its inverse in a term."""
    return factors_written(mul(g, u)) < factors_written(u)


def _divisors(factors: Sequence[Term]) -> Mapping[Term, Fraction]:
    """What is divided by among factors, with its power."""
    found: dict[Term, Fraction] = {}
    for f in factors:
        match f:
            case Pow(base, Const(n, imag)) if n < 0 and not imag and n.denominator == 1 and not isinstance(base, Add):
                found[base] = -n
    return found
