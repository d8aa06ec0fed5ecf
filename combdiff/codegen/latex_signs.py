"""Finds what a formula writes for other things than names, so that no name is written alike: π, δ, tr, the entry x₁.

A variable δ beside Kronecker's δ_{i,j}, or a number x1 beside the entry x(1), gets another subscript; where the formula
has no such sign, names stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from combdiff.codegen.latex_names import latex_name
from combdiff.codegen.matrix_expr import Diag, Diagonal, MatrixExpr, Trace, Vec
from combdiff.codegen.matrix_notation import LATEX, Notation
from combdiff.codegen.matrix_parts import nodes
from combdiff.language.terms import App, Call, Const, Delta, Term, Var, subterms
from combdiff.language.types import Index, Map


def signs_in(term: Term, forms: Iterable[MatrixExpr], notation: Notation) -> frozenset[str]:
    """What is written in `term`, or in its matrix forms, as a name might be.

    >>> from combdiff.language.terms import PI
    >>> signs_in(PI, [], LATEX)
    frozenset({'\\\\pi'})
    """
    of_forms = {sign for form in forms for sign in _of_matrices(form, notation)}
    return frozenset({sign for t in subterms(term) for sign in _of_term(t, notation)} | of_forms)


def _of_term(t: Term, notation: Notation) -> Iterator[str]:
    match t:
        case Call("pi", ()):
            yield notation.pi
        case Delta() if notation is LATEX:
            yield r"\delta"
        case App(Var(name, Map(kinds)), args) if notation is LATEX and all(isinstance(kind, Index) for kind in kinds):
            indices = [_subscript(index) for index in args]
            if all(indices):
                yield f"{latex_name(name)}_{{{','.join(indices)}}}"


def _subscript(index: Term) -> str:
    """An index or a whole number; what is longer is part of no name."""
    match index:
        case Var(name):
            return latex_name(name)
        case Const() if index.is_integer:
            return str(index.real)
        case _:
            return ""


def _of_matrices(form: MatrixExpr, notation: Notation) -> Iterator[str]:
    patterns = {Trace: notation.trace, Diag: notation.diag, Diagonal: notation.diagonal, Vec: notation.vec}
    for node in nodes(form):
        if pattern := patterns.get(type(node)):
            yield pattern.format("").removesuffix("()")
