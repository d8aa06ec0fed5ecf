"""Refuses points of a lattice as numbers, in an order, or beside points of other directions.

A slot says how many directions stand in it, and `slots.py` holds index arithmetic against that. This walk over the term
sees the other places: sides of a δ, what is read as a number, rows of a matrix that is inverted.
"""

from __future__ import annotations

from collections.abc import Mapping

from combdiff.errors import LanguageError, Span
from combdiff.language.inference.slots import affine_text, constant_of
from combdiff.language.vocabulary import counted
from combdiff.terms.laws.matrices import written_name
from combdiff.terms.nodes import OF_MATRICES
from combdiff.terms.terms import Add, App, Delta, Indicator, Mul, Reduce, Term, Var, children, index_atoms, subterms
from combdiff.terms.types import Index, Map


def check_points(term: Term, places: Mapping[Var, Span]) -> None:
    """Refuse points of a lattice in the place of numbers, and sides of a δ that no point could make equal.

    >>> from combdiff.terms.terms import Lam, fresh
    >>> from combdiff.terms.types import Domain
    >>> k = fresh("k", Index(Domain("BZ", declared=True, directions=2)))
    >>> check_points(Lam((k,), k), {})
    Traceback (most recent call last):
    combdiff.errors.LanguageError: k is a point of a lattice of 2 directions, and is read as a number here
    remedy: use it in slots of tensors, in delta(…) and with ==; a number that depends on it is a tensor, such as e(k)
    """
    for u in subterms(term):
        for side in _numbers(u):
            var = _point(side)
            if var is not None:
                raise LanguageError(
                    f"{affine_text(side)} is a point of a lattice of {directions(var)} directions, "
                    "and is read as a number here",
                    span=_span(var, places),
                    remedy="use it in slots of tensors, in delta(…) and with ==; a number that depends on it "
                    "is a tensor, such as e(k)",
                )
        if isinstance(u, Delta):
            _check_sides(u, places)
        if isinstance(u, Reduce) and u.kind in OF_MATRICES and any(directions(v) > 1 for v in u.indices):
            raise LanguageError(
                f"{written_name(u)} takes a matrix whose rows and columns have one index each, "
                f"and a point of a lattice has {directions(u.indices[0])}",
                span=places.get(u.indices[0]),
                remedy="number the points: declare a domain with one direction",
            )


def directions(t: Term) -> int:
    """How many integers an index is; 1 for what is no index, and for an entry of an array of integers."""
    domain = t.type.domain if isinstance(t.type, Index) else None
    return 1 if domain is None else domain.directions


def _numbers(u: Term) -> list[Term]:
    """The index expressions directly below `u` that it takes for numbers."""
    match u:
        case Add() | Mul() if isinstance(u.type, Index):
            return []
        case App(f, args) if isinstance(f.type, Map):
            below = [a for a, kind in zip(args, f.type.params, strict=True) if not isinstance(kind, Index)]
        case Delta(_, _, body):
            below = [body]
        case Indicator():
            below = [u.left, u.right, u.body]
        case _:
            below = [*children(u)]
    return [t for t in below if isinstance(t.type, Index)]


def _point(t: Term) -> Term | None:
    return next((u for u in index_atoms(t) if directions(u) > 1), None)


def _span(index: Term, places: Mapping[Var, Span]) -> Span | None:
    """Where an index stands, or one that decides it."""
    known = sorted([v for v in index.free if v in places], key=_uid)
    return places[known[0]] if known else None


def _check_sides(d: Delta, places: Mapping[Var, Span]) -> None:
    found = [u for side in (d.left, d.right) if isinstance(side.type, Index) for u in index_atoms(side)]
    widest = max(found, key=directions, default=None)
    if widest is None or directions(widest) == 1:
        return
    other = next((u for u in found if directions(u) != directions(widest)), None)
    if other is not None:
        raise LanguageError(
            f"{affine_text(widest)} has {counted(directions(widest), 'direction')} and {affine_text(other)} has "
            f"{directions(other)}, but {affine_text(d.left)} is compared with {affine_text(d.right)}",
            span=_span(other, places),
            remedy="compare indices of domains with one `base`, such as `base = (I, I, I)` for all",
        )
    constant = constant_of(d.right) - constant_of(d.left)
    if constant:
        raise LanguageError(
            f"the number {abs(constant)} is not a point of a lattice of {directions(widest)} directions",
            span=_span(widest, places),
            remedy="compare with an index of a domain with the same `base`; only 0, the origin, is a number there",
        )


def _uid(v: Var) -> int:
    return v.uid
