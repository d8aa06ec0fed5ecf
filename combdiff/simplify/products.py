"""What equal terms have in common."""

from __future__ import annotations

from collections.abc import Collection

from combdiff.terms.terms import (
    Call,
    Conj,
    Pow,
    Term,
    Var,
    split_coefficient,
)
from combdiff.terms.types import Index

Look = tuple[str, tuple[int, ...]]


def look(t: Term, bound: Collection[Var] | None = None) -> Look:
    """What terms have in common that are equal but for the names of the indices in `bound`, conj and numbers.

    Without `bound` all indices are left out.

    >>> from combdiff.terms.terms import App, conj, fresh
    >>> from combdiff.terms.types import COMPLEX, Index, Map
    >>> n = Index()
    >>> x, i, j = fresh("x", Map((n,), COMPLEX)), fresh("i", n), fresh("j", n)
    >>> look(App(x, (i,)), (i, j)) == look(conj(App(x, (j,))), (i, j))
    True
    """
    _, t = split_coefficient(t)
    while isinstance(t, Conj | Pow):
        t = t.term if isinstance(t, Conj) else t.base
    node = t.primitive if isinstance(t, Call) else type(t).__name__
    if bound is None:
        return node, tuple(sorted(v.uid for v in t.free if not isinstance(v.kind, Index)))
    return node, tuple(sorted(v.uid for v in t.free if v not in bound))
