"""Turns what has three or four free indices into matrices of pairs: A ⊗ B, vec(A) vec(B)ᵀ, A (B ⊙ C)ᵀ.

A tensor of four slots is the matrix whose rows are the pairs of the first two slots and whose columns are those of the
others; one of three slots is unfolded, one slot against the pairs of the two others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from combdiff.notation.matrix.expr import (
    Conjugate,
    KhatriRao,
    Kronecker,
    MatrixExpr,
    Product,
    Transpose,
    Unfolding,
    Vec,
    scaled,
    summed,
)
from combdiff.notation.matrix.network import Draft, NoMatrixFormError, in_own_slots, matrix_network
from combdiff.notation.matrix.tensors import plainest
from combdiff.terms.network import Network
from combdiff.terms.terms import ONE, Add, App, Conj, Const, Term, Var, mul, split_coefficient, total
from combdiff.terms.types import Index

Legs = tuple[Var, ...]
Expression = Callable[[Term, Legs], Draft]
"""Drafts a term under at most two free indices."""


def of_more_slots(term: Term, legs: Legs, expression: Expression) -> Draft:
    """A tensor, or a product of two matrices each of which has two of four slots, with numbers in front.

    Raises NoMatrixFormError for what is neither.
    """
    found = matrix_network(term)
    summed_over, factors = _with_numbers(found)
    numbers = [f for f in factors if not any(isinstance(v.kind, Index) for v in f.free)]
    match [f for f in factors if f not in numbers]:
        case [App(Var() as head, args) as entry] if _stands_at(entry, legs) and not summed_over:
            tensor, conjugated = plainest(head, tuple(legs.index(a) + 1 for a in args if isinstance(a, Var)))
            front = expression(mul(*numbers), ())
            of: MatrixExpr = Conjugate(tensor) if conjugated else tensor
            return lambda found: scaled(ONE, [front(found)], of)
        case [Add() as sum_] if not summed_over:
            front, inner = expression(mul(*numbers), ()), expression(sum_, legs)
            return lambda found: scaled(ONE, [front(found)], inner(found))
        case _ if len(legs) == 4:
            return _two_matrices(summed_over, factors, legs, expression)
        case _:
            raise NoMatrixFormError


def _with_numbers(product_: Network) -> tuple[list[Var], list[Term]]:
    """The indices that are summed over and the factors, among them the number and the sizes of ranges."""
    counted = [v for v in product_.indices if not any(v in f.free for f in product_.factors)]
    numbers = [*([product_.coefficient] if product_.coefficient != ONE else []), *(total((v,), ONE) for v in counted)]
    return [v for v in product_.indices if v not in counted], [*numbers, *product_.factors]


def _two_matrices(summed_over: Sequence[Var], factors: Sequence[Term], legs: Legs, expression: Expression) -> Draft:
    i, j, k, l = legs  # noqa: E741
    groups = _connected(summed_over, factors)
    for first, second, kronecker in (((i, k), (j, l), True), ((i, j), (k, l), False)):
        ours = [g for g in groups if _legs_of(g, legs) <= set(first)]
        theirs = [g for g in groups if _legs_of(g, legs) <= set(second) and g not in ours]
        if len(ours) + len(theirs) == len(groups):
            a = expression(_joined(ours, summed_over), first)
            b = expression(_joined(theirs, summed_over), second)
            if kronecker:
                return lambda found: Kronecker(a(found), b(found))
            return lambda found: Product((Vec(a(found)), Transpose(Vec(b(found)))))
    raise NoMatrixFormError


def unfolded(sum_: Add, legs: Legs, expression: Expression) -> list[tuple[Legs, Draft]]:
    """A sum of three indices as the matrices of one index, the first, against the pairs of the two others.

    Raises NoMatrixFormError if a term is neither a tensor of three slots nor Σ_n A(p, n) B(r, n) C(s, n).
    """
    drafts = []
    for p in legs:
        others = tuple(v for v in legs if v != p)
        terms = [_unfolded_term(term, p, others, expression) for term in sum_.terms]
        drafts.append(((p, *others), _sum_of(terms)))
    return drafts


def _sum_of(drafts: Sequence[Draft]) -> Draft:
    return lambda found: summed(draft(found) for draft in drafts)


def _unfolded_term(term: Term, p: Var, others: Legs, expression: Expression) -> Draft:
    summed_over, factors = _with_numbers(matrix_network(term))
    numbers = [f for f in factors if not any(isinstance(v.kind, Index) for v in f.free)]
    match [f for f in factors if f not in numbers]:
        case [App(Var() as head, args) as entry] if (
            not summed_over and _stands_at(entry, (p, *others)) and tuple(a for a in args if a != p) == others
        ):
            front, unfolding = expression(mul(*numbers), ()), Unfolding(head, args.index(p) + 1)
            return lambda found: scaled(ONE, [front(found)], unfolding)
        case _:
            return _polyadic(summed_over, factors, (p, *others), expression)


def _polyadic(summed_over: Sequence[Var], factors: Sequence[Term], legs: Legs, expression: Expression) -> Draft:
    """Σ_n A(p, n) B(r, n) C(s, n) is A (B ⊙ C)ᵀ."""
    p, r, s = legs
    for n in summed_over:
        others = [v for v in summed_over if v != n]
        groups = _connected(others, factors)
        touched = [_legs_of(g, legs) for g in groups]
        if all(len(of) <= 1 for of in touched):
            a, b, c = (
                expression(_joined([g for g, of in zip(groups, touched, strict=True) if of in at], others), (v, n))
                for v, at in ((p, ({p}, set())), (r, ({r},)), (s, ({s},)))
            )
            return lambda found: Product((a(found), Transpose(KhatriRao(b(found), c(found)))))
    raise NoMatrixFormError


def tensor_terms(sum_: Add, legs: Legs) -> list[tuple[Const, Var, Legs, bool]] | None:
    """The terms as (coefficient, tensor, its indices, whether conjugated), if all are tensors at just these indices."""
    found = []
    for term in sum_.terms:
        coefficient, entry = split_coefficient(term)
        conjugated = isinstance(entry, Conj)
        match entry.term if isinstance(entry, Conj) else entry:
            case App(Var() as head, args) as bare if _stands_at(bare, legs):
                found.append((coefficient, head, tuple(a for a in args if isinstance(a, Var)), conjugated))
            case _:
                return None
    return found


def _stands_at(entry: App, legs: Legs) -> bool:
    """Whether an entry is that at these indices, in any order."""
    return set(entry.args) == set(legs) and len(entry.args) == len(legs) and in_own_slots(entry)


def _connected(summed_over: Sequence[Var], factors: Sequence[Term]) -> list[list[Term]]:
    """The factors in groups that no summed index joins."""
    groups: list[list[Term]] = []
    for factor in factors:
        bound = factor.free.intersection(summed_over)
        touching = [g for g in groups if any(bound & f.free for f in g)]
        groups = [g for g in groups if g not in touching]
        groups.append([*(f for g in touching for f in g), factor])
    return groups


def _legs_of(group: list[Term], legs: Legs) -> set[Var]:
    return {v for v in legs if any(v in f.free for f in group)}


def _joined(groups: list[list[Term]], summed_over: Sequence[Var]) -> Term:
    body = mul(*(f for g in groups for f in g))
    return total([v for v in summed_over if v in body.free], body)
