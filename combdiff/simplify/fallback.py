"""Fallback without e-graph: contracts what must be contracted to compute a raw pullback, and bounds expanded sizes.

A raw pullback holds Σ_t … δ(a, t, k) … over all numbers t for each factor that its variable is captured in (Eq. 27).
Such a sum has a value, and no program can compute it term by term. Where a budget is spent before the laws of `rules/`
are done, t = a is all that is done here: the result is long, but it is correct, and it prints and compiles.
"""

from __future__ import annotations

from math import prod

from combdiff.simplify.contraction.translation import HIGHEST
from combdiff.terms.terms import (
    Add,
    Call,
    Conj,
    Const,
    Delta,
    Indicator,
    Lam,
    Mul,
    Pow,
    Sum,
    Term,
    Traverser,
    Var,
    add,
    children,
    rebuild,
    substitute,
    total,
)
from combdiff.terms.types import Index, Number

UNDONE = {
    "contract": "sums and δ may be left as differentiation made them",
    "steps of loops": "the steps of loops may be left as differentiation made them",
    "unread states": "loops may have states that nothing reads",
    "join loops": "several loops may go through the same states",
    "merge like terms": "like terms may be left unmerged",
    "commuting matrices": "derivatives of exponentials may be left that are products",
    "diagonals": "tensors may be kept whole that are 0 but on diagonals",
    "expand": "products and shared values are left as they were",
    "place cotangents": "values may keep their names, or stand where they are used as they were",
    "collect and name": "common factors may be left where they are",
    "order and names": "factors and indices are left as they came",
}
"""What a stage may leave undone."""


INDISPENSABLE = ("contract", "steps of loops")
"""Stages without which a result is no result: sums over numbers, which nobody computes, must go."""


def undone(stage: str, body: Term) -> Term:
    """What a stage leaves that had no time."""
    return without_number_sums(body) if stage in INDISPENSABLE else body


def without_number_sums(t: Term) -> Term:
    """`t` with every Σ over numbers gone whose δ has its variable alone on one side.

    >>> from combdiff.terms.terms import delta, fresh, mul
    >>> from combdiff.terms.types import COMPLEX
    >>> x, y, z = (fresh(name, COMPLEX) for name in "xyz")
    >>> without_number_sums(total([z], mul(z, delta(x, z, y)))) == mul(x, y)
    True
    """
    return Traverser(_reached, Sum)(t)


def _reached(t: Term) -> Term:
    if not isinstance(t, Sum):
        return t
    if isinstance(t.body, Add) and any(isinstance(v.kind, Number) for v in t.indices):
        return add(*(_reached(total(t.indices, u)) for u in t.body.terms))
    left, body = [], t.body
    for v in t.indices:
        found = _solved(v, body) if isinstance(v.kind, Number) else None
        if found is None:
            left.append(v)
        else:
            value, rest = found
            body = substitute(rest, {v: value})
    return total(left, body) if len(left) < len(t.indices) else t


def _solved(v: Var, t: Term) -> tuple[Term, Term] | None:
    """(a, e), where t is e under the condition v = a and else 0: the δ stands where t is linear in it."""
    match t:
        case Delta(a, b, e) if v in (a, b) and not (v in a.free and v in b.free):
            return (b if a == v else a), e
        case Mul(parts):
            places = range(len(parts))
        case Conj() | Sum():
            places = range(1)
        case Call("real", _):
            places = range(1)
        case Delta() | Indicator():
            places = range(2, 3)
        case _:
            return None
    below = children(t)
    for n in places:
        found = _solved(v, below[n])
        if found is not None and not (isinstance(t, Sum) and not found[0].free.isdisjoint(t.indices)):
            return found[0], rebuild(t, [*below[:n], found[1], *below[n + 1 :]])
    return None


def written_size(t: Term, expand: bool = False) -> int:
    """How many nodes `t` has where shared parts are written again, with `expand` after multiplying out.

    >>> from combdiff.terms.terms import fresh, mul
    >>> from combdiff.terms.types import REAL
    >>> a, b = fresh("a", REAL), fresh("b", REAL)
    >>> written_size(mul(add(a, b), add(a, mul(a, b)))), written_size(mul(add(a, b), add(a, mul(a, b))), expand=True)
    (9, 16)
    """
    known: dict[Term, tuple[int, int]] = {}

    def sizes(u: Term) -> tuple[int, int]:
        """How many terms of a sum it becomes, and their nodes in all."""
        if u not in known:
            parts = [sizes(c) for c in children(u)]
            known[u] = _expanded(u, parts) if expand else (1, 1 + sum(nodes for _, nodes in parts))
        return known[u]

    return sizes(t)[1]


def _expanded(t: Term, parts: list[tuple[int, int]]) -> tuple[int, int]:
    match t:
        case Add() if not isinstance(t.type, Index):
            return sum(n for n, _ in parts), sum(nodes for _, nodes in parts)
        case Mul() if not isinstance(t.type, Index):
            terms = prod(n for n, _ in parts)
            return terms, terms + sum(nodes * (terms // n) for n, nodes in parts)
        case Pow(Add(), Const() as power) if power.is_integer and 2 <= power.real <= HIGHEST:
            return _expanded(Mul((t.base, t.base)), parts[:1] * int(power.real))
        case Sum() | Conj() | Delta() | Indicator() | Lam():
            terms = parts[-1][0]
            return terms, terms + sum(nodes for _, nodes in parts)
        case _:
            return 1, 1 + sum(nodes for _, nodes in parts)
