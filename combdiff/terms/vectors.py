"""The vector product u × v of two vectors of three entries, as it is written."""

from __future__ import annotations

from functools import lru_cache

from combdiff.terms.terms import App, Lam, Reduce, Term, Var, apply, fresh, lam, mul, substitute, total
from combdiff.terms.types import REAL, Index, Map, Symmetry


def vectors_of(whole: Reduce) -> tuple[Term, Term]:
    """u and v of u × v: by their names where they have some, else as maps of an index.

    >>> from combdiff.terms.terms import apply, fresh, reduction
    >>> from combdiff.terms.types import REAL, Index, Map, range_of
    >>> three = Index(range_of(3))
    >>> u, v, i = fresh("u", Map((three,), REAL)), fresh("v", Map((three,), REAL)), fresh("i", three)
    >>> vectors_of(reduction("cross", (i,), apply(u, i), apply(v, i))) == (u, v)
    True
    """
    first, second = (lam(whole.indices, entry) for entry in (whole.mark, whole.body))
    return without_index(first), without_index(second)


def without_index(t: Term) -> Term:
    """u × v for i ↦ (u × v)(i), and other terms as they are."""
    match t:
        case Lam(params, App(Reduce("cross") as whole, args)) if args == params and whole.free.isdisjoint(params):
            return whole
        case _:
            return t


def by_signs(whole: Reduce, place: Term) -> Term:
    """An entry of u × v as Σ_jk ε(i, j, k) u(j) v(k), with a tensor ε that is known to be antisymmetric, no more."""
    (index,) = whole.indices
    j, k = fresh(index.name, index.kind), fresh(index.name, index.kind)
    vectors = (substitute(entry, {index: at}) for entry, at in ((whole.mark, j), (whole.body, k)))
    assert isinstance(index.kind, Index), "a vector has an index"
    return total((j, k), mul(apply(_signs(index.kind), place, j, k), *vectors))


@lru_cache(maxsize=64)
def _signs(slot: Index) -> Var:
    laws = (Symmetry.permutation((2, 1, 3), "neg"), Symmetry.permutation((2, 3, 1), "id"))
    return fresh("ε", Map((slot, slot, slot), REAL, laws))
