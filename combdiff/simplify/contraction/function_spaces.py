"""A sum over a space of functions or of tensors meets the δ of its variable: Σ_f δ(f, g, e(f)) is e(g).

The C rule sums over whatever its map takes (Eq. 23), and the B rule leaves a δ of whatever a map is applied to
(Eq. 27). If both are functions, or tensors, they meet as numbers and indices do in `rules/contract.egg`.
"""

from __future__ import annotations

from combdiff.terms.terms import (
    Conj,
    Delta,
    Mul,
    Sum,
    Term,
    Traverser,
    Var,
    add,
    conj,
    delta,
    mul,
    substitute,
    terms_of,
    total,
)
from combdiff.terms.types import Map


def without_function_sums(t: Term) -> Term:
    """`t` without the sums over functions and tensors that a δ fixes.

    >>> from combdiff.language.inference.infer import infer
    >>> from combdiff.language.parsing.parser import parse
    >>> from combdiff.language.printing.printer import expression_text
    >>> f = infer(parse("(k::(RV) -> R, y::RV) -> sum(x::RV, delta(y, x, 2 * k(x)))"))
    >>> expression_text(without_function_sums(f))
    '(k::(RV) -> R, y::RV) -> 2 * k(y)'
    """
    return Traverser(lambda u: _met(u) if isinstance(u, Sum) else u, Sum)(t)


def _met(t: Sum) -> Term:
    """A sum over functions, term by term: each has a δ of its own."""
    for v in t.indices:
        if isinstance(v.kind, Map):
            summands = terms_of(t.body)
            met = [_fixed(v, u) for u in summands]
            if any(u is not None for u in met):
                rest = [w for w in t.indices if w is not v]
                left = [total(t.indices, u) for u, found in zip(summands, met, strict=True) if found is None]
                return without_function_sums(add(*left, *(total(rest, u) for u in met if u is not None)))
    return t


def _fixed(v: Var, t: Term) -> Term | None:
    """`t` at the v that its δ fixes, without the δ; None if it has none."""
    found = _condition(v, t)
    return substitute(found[1], {v: found[0]}) if found else None


def _condition(v: Var, t: Term) -> tuple[Term, Term] | None:
    """What a δ says that v is, and what is under it; δ, products and sums are linear in what is in them."""
    match t:
        case Delta(left, right, body) if v in (left, right) and left != right:
            value = right if left == v else left
            return (value, body) if v not in value.free else None
        case Delta(left, right, body):
            inner = _condition(v, body)
            return inner and (inner[0], delta(left, right, inner[1]))
        case Conj(body):
            inner = _condition(v, body)
            return inner and (inner[0], conj(inner[1]))
        case Sum(indices, body):
            inner = _condition(v, body)
            known = inner is not None and inner[0].free.isdisjoint(indices)
            return (inner[0], total(indices, inner[1])) if inner and known else None
        case Mul(factors):
            for n, f in enumerate(factors):
                inner = _condition(v, f)
                if inner is not None:
                    return inner[0], mul(*factors[:n], inner[1], *factors[n + 1 :])
    return None
