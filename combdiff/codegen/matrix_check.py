"""Holds matrix forms against the terms that they are to be printed for, on random numbers, as the gate does for stages.

A form is read back as a term (`matrix_meaning.py`) and both are evaluated. A form that differs is a bug of combdiff and
never printed; one that cannot be compared is not printed either, and index form takes its place.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from textwrap import shorten

from combdiff.codegen.matrix_expr import MatrixExpr
from combdiff.codegen.matrix_meaning import NoMeaningError, meaning
from combdiff.codegen.matrix_printer import algebra_text
from combdiff.errors import CheckError, UnsupportedError
from combdiff.language.resolution import resolved
from combdiff.language.terms import Term, Tuple
from combdiff.language.types import Domain
from combdiff.simplify.gate import Comparison, Gate
from combdiff.simplify.repeats import form as spelled

_SHOWN = 80


def confirmed(forms: Mapping[Term, MatrixExpr]) -> dict[Term, MatrixExpr]:
    """Those of the forms that have the values of their terms on random numbers.

    >>> from combdiff.codegen.matrix_expr import Adjoint, Leaf
    >>> from combdiff.language.terms import App, Lam, conj, fresh
    >>> from combdiff.language.types import COMPLEX, Domain, Index, Map
    >>> n = Index(Domain("C.1"))
    >>> i, j, C = fresh("i", n), fresh("j", n), fresh("C", Map((n, n), COMPLEX))
    >>> form = Adjoint(Leaf(C))
    >>> confirmed({Lam((i, j), conj(App(C, (j, i)))): form}).popitem()[1] == form
    True

    Raises:
        CheckError: a form differs from its term.
    """
    gate = Gate()
    known: dict[Hashable, Comparison] = {}
    kept = {}
    for term, form in forms.items():
        found = _compared(gate, term, form, known)
        if found.difference:
            raise CheckError(
                f"the matrix form {shorten(algebra_text(form), _SHOWN, placeholder='…')} "
                f"is not the result ({found.difference}); this is a bug of combdiff",
                remedy="print it in index form, and report the program",
            )
        if found.finite:
            kept[term] = form
    return kept


def _compared(gate: Gate, term: Term, form: MatrixExpr, known: dict[Hashable, Comparison]) -> Comparison:
    """A term beside its form; pairs of one kind, such as the layers of a network, are compared once."""
    import numpy as np

    try:
        read = meaning(form, term.type)
    except NoMeaningError:
        return Comparison("the shapes do not fit")
    # no law of matrices depends on bounds, and a range of a million values is as good as a short one
    pair = resolved(Tuple((term, read)), _WithoutBounds())
    assert isinstance(pair, Tuple), "the same with other types"
    before, after = pair.items
    kind = spelled(pair)[0]
    if kind not in known:
        try:
            with np.errstate(all="ignore"):
                known[kind] = gate.compared(before, after)
        except (UnsupportedError, OverflowError):
            known[kind] = Comparison(finite=False)
    return known[kind]


class _WithoutBounds:
    """Gives domains with bounds, whatever these are, a size that the check may choose."""

    def is_real(self, domain: Domain) -> bool:
        return False

    def resolve(self, domain: Domain) -> Domain:
        return domain if domain.count is None else replace(domain, lower=None, upper=None)
