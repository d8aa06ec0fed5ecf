"""Checks that matrices are Hermitian where their eigenvalues or triangular factors are taken.

cholesky(K), eigvals(B * B' + I)        K::Sym or K::Her by declaration, B * B' by what it is made of
prod(i, eigvals(K)(i))                  det((K + K') / 2), whose derivatives are finite where eigenvalues meet
"""

from __future__ import annotations

from collections.abc import Mapping

from combdiff.canon.canonical import laws_of_matrix
from combdiff.errors import LanguageError, Span
from combdiff.terms.laws.matrices import Matrix, applied, matrix_of, written_name
from combdiff.terms.nodes import SYMMETRISING
from combdiff.terms.terms import ONE, App, Lam, Let, Reduce, Term, Traverser, Var, apply, call, inlined, subterms
from combdiff.terms.types import HERMITIAN, SYMMETRIC, Map, is_complex


def check_hermitian(term: Term, places: Mapping[Var, Span]) -> None:
    """Refuse the eigenvalues and the factor of a matrix that is not seen to be Hermitian, and its declaration."""
    wholes = [t for t in subterms(term, Reduce) if t.kind in SYMMETRISING]
    bindings = [b for t in subterms(term, Let) for b in t.bindings if isinstance(b[1], Lam)]
    values: dict[Term, Lam] = {v: e for v, e in bindings if isinstance(e, Lam)}
    for v, e in values.items():
        if isinstance(v.type, Map) and v.type.definite and not _is_hermitian(e, values):
            raise LanguageError(
                "a definite matrix is symmetric or Hermitian by what it is made of",
                span=places.get(v) if isinstance(v, Var) else None,
                remedy="declare the matrices in it, D::Sym, or write (A + A') / 2",
            )
    for whole in wholes:
        if _is_hermitian(matrix_of(whole), values):
            continue
        word, kind = ("Hermitian", "Her") if is_complex(whole.body.type) else ("symmetric", "Sym")
        others = "; the singular values of any matrix are svdvals(A)" if whole.kind.startswith("eigvals") else ""
        raise LanguageError(
            f"{written_name(whole)} takes a matrix that is {word}, by its type or by what it is made of",
            span=places.get(whole.indices[0]),
            remedy=f"declare it, A::{kind}, or write (A + A') / 2{others}",
        )


def without_products(term: Term) -> Term:
    """The term with determinants of Hermitian parts for products of all eigenvalues.

    >>> from combdiff.language.inference.infer import infer
    >>> from combdiff.language.parsing.parser import parse
    >>> from combdiff.language.printing.printer import expression_text
    >>> print(expression_text(infer(parse("(K::Sym) -> prod(i, eigvals(K)(i))"))))
    (K::Sym) -> det((i, j) -> 1/2 * (K(i, j) + K(j, i)))
    """

    values = {v: e for t in subterms(term) if isinstance(t, Let) for v, e in t.bindings}

    def visit(t: Term) -> Term:
        match t:
            case Reduce("prod") if t.mark == ONE and len(t.indices) == 1:
                body = t.body
                while isinstance(body, App) and isinstance(body.function, Var) and body.function in values:
                    body = apply(values[body.function], *body.args)
                return _determinant(body, t.indices[0], t)
        return t

    return Traverser(visit)(term)


def _determinant(body: Term, i: Var, product: Term) -> Term:
    match body:
        case App(Reduce("eigvals") as whole, (Var() as at,)) if at is i and i not in whole.free:
            found = applied("det", Matrix.of(matrix_of(whole)).hermitian.term)
            return call("real", found) if is_complex(found.type) else found
        case _:
            return product


def _is_hermitian(matrix: Lam, values: Mapping[Term, Lam]) -> bool:
    body = _written_out(matrix.body, values)
    law = HERMITIAN if is_complex(body.type) else SYMMETRIC
    plain = applied("expm", Lam(matrix.params, body))
    return isinstance(plain, Reduce) and law in laws_of_matrix(plain, {}, ())


def _written_out(t: Term, values: Mapping[Term, Lam]) -> Term:
    """`t` with definitions in the place of their names."""
    if t.free.isdisjoint(values):
        return t

    return _written_out(inlined(t, values), values)
