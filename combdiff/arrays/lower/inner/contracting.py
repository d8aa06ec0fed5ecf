"""Lowers sums of matrices in the contractions of a loop's step to one product each, without forming the sum.

    Σ_i f(i) (A(i, j) u(i) + B(i, j) v(i))      becomes     Σ_i f(i) u(i) A(i, j) + Σ_i f(i) v(i) B(i, j)

The sum in parentheses has an entry for each of (i, j), which a step would compute anew, and read once; the products
with vectors take A and B as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Sequence

from combdiff.arrays.lower.conditions import closed_form
from combdiff.terms.terms import Add, App, Conj, Mul, Sum, Term, Var, add, factors_of, mul, subterms, terms_of, total
from combdiff.terms.types import Index


def read_twice(step: Term) -> set[Hashable]:
    """The sums that several contractions of a step have as a factor: such a one is made once, and stays whole."""
    sums = (u for t in subterms(step, Sum) for u in factors_of(t.body) if isinstance(u, Add))
    return {key for key, count in Counter(map(closed_form, sums)).items() if count > 1}


def distributed(summed: Sequence[Var], body: Term, time: Var, whole: Collection[Hashable] = ()) -> Term | None:
    """Σ over `summed` of a product with a sum of matrices as a sum of products; None for all others.

    The number of the step, `time`, is no index of a matrix. Sums whose forms are in `whole` stay as they are.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL, Domain, Map
    >>> n = Index(Domain("n"))
    >>> i, j, t = (fresh(c, n) for c in "ijt")
    >>> u, v = (fresh(c, Map((n,), REAL)) for c in "uv")
    >>> A, B = (fresh(c, Map((n, n), REAL)) for c in "AB")
    >>> of_both = add(mul(App(A, (i, j)), App(u, (i,))), mul(App(B, (i, j)), App(v, (i,))))
    >>> found = distributed([i], mul(App(u, (i,)), of_both), t)
    >>> len(terms_of(found)), distributed([i], of_both, t) is None
    (2, True)
    """
    if not isinstance(body, Mul):
        return None
    for n, factor in enumerate(body.factors):
        others = [f for m, f in enumerate(body.factors) if m != n]
        found = isinstance(factor, Add) and _is_of_matrices(factor, others, summed, time)
        if found and closed_form(factor) not in whole:
            return add(*(total(summed, mul(*others, u)) for u in terms_of(factor)))
    return None


def _is_of_matrices(t: Add, others: Sequence[Term], summed: Sequence[Var], time: Var) -> bool:
    """Whether each term is an entry of an array, times what has fewer indices, as all beside the sum has."""
    own = _indices(t) - {time}
    if not own.intersection(summed) or own.issubset(summed):
        return False
    if not all(_is_vector(f, own, summed) for f in others):
        return False
    found = [[f for f in factors_of(u) if not _is_vector(f, own, summed)] for u in terms_of(t)]
    return all(len(matrices) == 1 and _is_entry(matrices[0]) for matrices in found) and any(
        len(factors_of(u)) > 1 for u in terms_of(t)
    )


def _is_vector(t: Term, own: Collection[Var], summed: Sequence[Var]) -> bool:
    """Whether what a term depends on is summed over, or is not, but not both."""
    found = _indices(t).intersection(own)
    return found.issubset(summed) or found.isdisjoint(summed)


def _is_entry(t: Term) -> bool:
    entry = t.term if isinstance(t, Conj) else t
    return isinstance(entry, App) and isinstance(entry.function, Var)


def _indices(t: Term) -> set[Var]:
    return {v for v in t.free if isinstance(v.kind, Index)}
