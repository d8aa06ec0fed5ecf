"""Sums of deviations from a mean are zero: Σ_i w(i) (x(i) − m) = 0 for m = Σ_i w(i) x(i) / Σ_i w(i).

The mean may be a value of its own in a result, so that no law of sums sees that its terms cancel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from combdiff.canon.canonical import merge_like_terms
from combdiff.terms.network import factors_before_sums
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    ZERO,
    App,
    Delta,
    Indicator,
    Pow,
    Sum,
    Term,
    Traverser,
    Var,
    add,
    alpha_equal,
    apply,
    factors_of,
    mul,
    power,
    subterms,
    terms_of,
    total,
)

_MOST_PARTS = 64  # a tower of products of values would have 2, 4, 8, …


def without_deviations(t: Term, values: Mapping[Var, Term], seen: Callable[[Sum], None] = lambda _: None) -> Term:
    """`t` with 0 for the sums of deviations from a mean, each given to `seen`; `values` is what variables of `t` are.

    >>> from combdiff.terms.terms import ONE, fresh, neg, power
    >>> from combdiff.terms.types import REAL, Domain, Index, Map
    >>> n = Index(Domain("n"))
    >>> x, m, i, j = fresh("x", Map((n,), REAL)), fresh("m", REAL), fresh("i", n), fresh("j", n)
    >>> mean = mul(Sum((j,), App(x, (j,))), power(Sum((j,), ONE), MINUS_ONE))
    >>> without_deviations(Sum((i,), add(App(x, (i,)), neg(m))), {m: mean}) == ZERO
    True
    """
    if t.free.isdisjoint(values) and not any(map(_is_share, subterms(t))):
        return t

    # what is compared decides by its rounding where it is always zero, in each spelling in another way
    conditions = [*subterms(t, Indicator, Delta)]
    compared = {v for c in conditions for e in (c.left, c.right) for v in subterms(e)}

    def settled(u: Term) -> Term:
        found = _settled(u, values) if isinstance(u, Sum) and u not in compared else u
        if found == ZERO and isinstance(u, Sum):
            seen(u)
        return found

    return Traverser(settled, Sum)(t)


def _settled(t: Sum, values: Mapping[Var, Term]) -> Term:
    """0 for a sum of deviations; Σ_i t / n is t where i stands nowhere else, and n is how many i there are."""
    factors = list(factors_of(t.body))
    indices = list(t.indices)
    for i in t.indices:
        share = next((f for f in factors if _is_share(f, i)), None)
        if share is not None and not any(i in f.free for f in factors):
            factors.remove(share)
            indices.remove(i)
    if len(indices) < len(t.indices):
        return total(indices, mul(*factors))
    return ZERO if _is_of_deviations(t, values) else t


def _is_share(t: Term, of: Var | None = None) -> bool:
    """Whether it is 1/n, for the number n of values of an index."""
    match t:
        case Pow(Sum((j,), body), exponent) if exponent == MINUS_ONE and body == ONE:
            return of is None or j.kind == of.kind
        case _:
            return False


def _is_of_deviations(t: Sum, values: Mapping[Var, Term]) -> bool:
    factors = factors_of(t.body)
    for i in t.indices:
        held = [f for f in factors if i in f.free]
        for n, f in enumerate(held):
            terms = terms_of(_written_out(f, values))
            if len(terms) > 1 and any(_may_be_a_mean(u, i, values) for u in terms):
                others = [*held[:n], *held[n + 1 :]]
                if merge_like_terms(add(*(_summed(i, [*others, u], values) for u in terms))) == ZERO:
                    return True
    return False


def _may_be_a_mean(t: Term, i: Var, values: Mapping[Var, Term]) -> bool:
    """Whether factors of `t` that are the same for all i are made of a sum over what i runs over."""
    front = [f for f in factors_of(t) if i not in f.free]
    return any(v.kind == i.kind for f in _all_parts(front, values) for s in subterms(f, Sum) for v in s.indices)


def _written_out(f: Term, values: Mapping[Var, Term]) -> Term:
    """A value, or what is divided by one, as what it is."""
    match f:
        case Var() if f in values:
            return values[f]
        case App(Var() as v, args) if v in values:
            return apply(values[v], *args)
        case Pow(base, exponent) if exponent == MINUS_ONE:
            whole = _written_out(base, values)
            return f if whole is base else power(whole, exponent)
        case _:
            return f


def _summed(i: Var, factors: Sequence[Term], values: Mapping[Var, Term]) -> Term:
    """Σ_i of a product, with the values in front of the sum written out, and S / S as 1."""
    inner = factors_of(mul(*factors))
    front = [f for f in inner if i not in f.free]
    behind = total((i,), mul(*(f for f in inner if i in f.free)))
    return mul(*_cancelled([*_all_parts(front, values), *factors_before_sums(behind)]))


def _all_parts(factors: Sequence[Term], values: Mapping[Var, Term]) -> list[Term]:
    """The factors of a product of values, down to what is no value; those that are given, if these are many."""
    found: list[Term] = []
    left = [*reversed(factors)]
    while left:
        f = left.pop()
        whole = _written_out(f, values)
        if whole is f:
            found += factors_before_sums(f)
        else:
            left += reversed(factors_before_sums(whole))
        if len(found) + len(left) > _MOST_PARTS:
            return [g for f in factors for g in factors_before_sums(f)]
    return found


def _cancelled(factors: Sequence[Term]) -> list[Term]:
    left: list[Term] = []
    for f in factors:
        met = next((n for n, g in enumerate(left) if _are_inverse(f, g)), None)
        if met is None:
            left.append(f)
        else:
            del left[met]
    return left


def _are_inverse(f: Term, g: Term) -> bool:
    one, other = (f, g) if isinstance(f, Pow) else (g, f)
    return isinstance(one, Pow) and one.exponent == MINUS_ONE and alpha_equal(one.base, other)
