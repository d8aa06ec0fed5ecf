"""Terms of a sum that are equal once they are contracted with what stands around them.

    sum((i, j), S(i, j) * (a(i) * b(j) + a(j) * b(i)))   is   2 * sum((i, j), S(i, j) * a(i) * b(j))

for a symmetric S. The terms keep their sum if they have different signs: a(i) - a(j) is small where both are alike,
and has digits that the difference of two contractions has not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from fractions import Fraction

from combdiff.canon.skeleton import NOTHING, Coefficient
from combdiff.terms.terms import (
    Add,
    Sum,
    Term,
    Var,
    add,
    factors_of,
    mul,
    number,
    split_coefficient,
    subterms,
    total,
)
from combdiff.terms.types import Index

Signed = Callable[[Term], tuple[Hashable, Coefficient]]
"""term ↦ (key, c): terms of equal keys are equal up to their numbers c. The number of a term that is zero is 0."""


def alike_once_contracted(t: Sum, form: Signed) -> tuple[Term, list[list[Term]]]:
    """`t` with fewer terms in a sum that is a factor, and the contractions that were found to be equal.

    >>> from combdiff.canon.canonical import normal_form
    >>> from combdiff.terms.terms import App, fresh
    >>> from combdiff.terms.types import REAL, Domain, Map
    >>> n = Index(Domain("n"))
    >>> a, b = (fresh(name, Map((n,), REAL)) for name in "ab")
    >>> i, j = fresh("i", n), fresh("j", n)
    >>> both = add(mul(App(a, (i,)), App(b, (j,))), mul(App(a, (j,)), App(b, (i,))))
    >>> def form(u):
    ...     found = normal_form(u)
    ...     return found.key, (found.coefficient[0] * found.sign, found.coefficient[1])
    >>> found, _ = alike_once_contracted(total((i, j), mul(both, App(a, (i,)), App(a, (j,)))), form)
    >>> found == mul(number(2), total((i, j), mul(App(a, (i,)), App(b, (j,)), App(a, (i,)), App(a, (j,)))))
    True
    """
    if max(Counter(v.kind for v in t.indices).values()) < 2:
        return t, []
    factors = factors_of(t.body)
    for n, whole in enumerate(factors):
        if not isinstance(whole, Add) or not _may_be_alike(whole, t.indices):
            continue
        around = [*factors[:n], *factors[n + 1 :]]
        groups = _groups(whole, {u: total(t.indices, mul(u, *around)) for u in whole.terms}, form)
        if len(groups) < len(whole.terms):
            left = add(*(_together(group) for group in groups))
            return total(t.indices, mul(left, *around)), [[u for _, _, u in group] for group in groups]
    return t, []


def _groups(whole: Add, contracted: Mapping[Term, Term], form: Signed) -> list[list[tuple[Coefficient, Term, Term]]]:
    """The terms, (number, term, contraction) each, with those of one sign together whose contractions are equal."""
    groups: dict[Hashable, list[tuple[Coefficient, Term, Term]]] = {}
    for u in whole.terms:
        key, coefficient = form(contracted[u])
        if coefficient != NOTHING:
            negative = split_coefficient(u)[0].real < 0
            groups.setdefault((key, negative), []).append((coefficient, u, contracted[u]))
    return list(groups.values())


def _together(group: Sequence[tuple[Coefficient, Term, Term]]) -> Term:
    """The first term as often as all of them together have it."""
    (x, y), spelling, _ = group[0]
    a = sum((c[0] for c, _, _ in group), Fraction(0))
    b = sum((c[1] for c, _, _ in group), Fraction(0))
    norm = x * x + y * y
    return mul(number(((a * x + b * y) / norm, (b * x - a * y) / norm)), spelling)


def _may_be_alike(whole: Add, indices: Sequence[Var]) -> bool:
    """Whether two terms hold the same tensors and functions, at indices that are summed over."""
    held = [tuple(sorted(_names(u))) for u in whole.terms if not u.free.isdisjoint(indices)]
    return len(set(held)) < len(held)


def _names(t: Term) -> Iterator[int]:
    for v in subterms(t, Var):
        if not isinstance(v.kind, Index):
            yield v.uid
