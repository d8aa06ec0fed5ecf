"""The vector product u × v, as it is written."""

from __future__ import annotations

from combdiff.terms.terms import App, Lam, Reduce, Term, Var, children, lam, subterms


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


def row_of(t: Term) -> tuple[Var, Term] | None:
    """The index and the entry of a row, k ↦ A(i, k): of a map whose index stands in slots of arrays alone."""
    match t:
        case Lam((index,), entry) if entry != index:
            holders = [u for u in subterms(entry) if index in children(u)]
            alone = all(isinstance(u, App) and isinstance(u.function, Var) for u in holders)
            return (index, entry) if holders and alone else None
        case _:
            return None


def without_index(t: Term) -> Term:
    """u × v for i ↦ (u × v)(i), and other terms as they are."""
    match t:
        case Lam(params, App(Reduce("cross") as whole, args)) if args == params and whole.free.isdisjoint(params):
            return whole
        case _:
            return t
