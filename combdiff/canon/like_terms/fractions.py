"""Cancels a sum with its inverse where each of its terms stands over it, in terms of a sum.

r^2 / (r + m)^2 + r m / (r + m)^2        is   r / (r + m)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import islice

from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    Add,
    Const,
    Pow,
    Term,
    add,
    factors_of,
    mul,
    number,
    power,
    split_coefficient,
)
from combdiff.terms.types import Index

Key = tuple[Hashable, Hashable]
"""What a term has in common with equal ones: its form, and the number in front."""

TRIED = 64
"""Terms that are tried as the first of those over a divisor."""


def cancelled(terms: Mapping[Hashable, Term], key: Callable[[Term], Key]) -> Term | None:
    """The sum of `terms`, by the first parts of their keys, after the first such law; None if there is none.

    >>> from combdiff.terms.terms import TWO, fresh
    >>> from combdiff.terms.types import REAL
    >>> r, m = fresh("r", REAL), fresh("m", REAL)
    >>> divisor = power(add(r, m), number(-2))
    >>> terms = {t: t for t in (mul(power(r, TWO), divisor), mul(r, m, divisor))}
    >>> cancelled(terms, lambda t: (t, 1)) == mul(r, power(add(r, m), MINUS_ONE))
    True
    """
    for divisor, t in islice(_over_sums(terms.values()), TRIED):
        first, *others = divisor.terms
        share = _divided(t, first)
        if share is None:
            continue
        wanted = [key(mul(share, u)) for u in others]
        names = {name for name, _ in wanted}
        found = [terms[name] for name in names if name in terms]
        if len(found) == len(others) and all(key(terms[name]) == (name, c) for name, c in wanted):
            left = [u for u in terms.values() if u is not t and not any(u is v for v in found)]
            return add(*left, mul(share, divisor))
    return None


def _over_sums(terms: Iterable[Term]) -> Iterator[tuple[Add, Term]]:
    """The terms that are divided by a sum, each with the sum."""
    for t in terms:
        for f in factors_of(t):
            match f:
                case Pow(Add() as base, Const(n, imag)) if n < 0 and not imag and not isinstance(base.type, Index):
                    yield base, t


def _divided(t: Term, by: Term) -> Term | None:
    """`t` divided by a term whose factors it has, or by a number."""
    c, rest = split_coefficient(by)
    if rest != ONE:
        powers = {base: n for base, n in map(_power, factors_of(t)) if n > 0}
        if any(powers.get(base, 0) < n for base, n in map(_power, factors_of(rest))):
            return None
    return None if c.imag else mul(number(1 / c.real), t, power(rest, MINUS_ONE))


def _power(f: Term) -> tuple[Term, float]:
    match f:
        case Pow(base, Const(n, imag)) if not imag:
            return base, float(n)
        case _:
            return f, 1.0
