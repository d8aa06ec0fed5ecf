"""Checks matrix forms on random numbers against the terms that they are to be printed for, as the gate checks stages.

A form is read back as a term (`matrix_meaning.py`) and both are evaluated. A form that differs is a bug of combdiff and
never printed; one that cannot be compared is not printed either, and index form takes its place.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from textwrap import shorten

from combdiff.canon.repeats import form as spelled
from combdiff.errors import CheckError, UnsupportedError
from combdiff.gate.gate import Comparison, Gate
from combdiff.language.inference.resolution import resolved
from combdiff.notation.matrix.expr import MatrixExpr
from combdiff.notation.matrix.meaning import NoMeaningError, meaning
from combdiff.notation.matrix.printer import algebra_text
from combdiff.terms.terms import Term, Tuple
from combdiff.terms.types import Domain

_SHOWN = 80


def confirmed(forms: Mapping[Term, MatrixExpr]) -> dict[Term, MatrixExpr]:
    """Those of the forms that have the values of their terms on random numbers.

    >>> from combdiff.notation.matrix.expr import Adjoint, Leaf
    >>> from combdiff.terms.terms import App, Lam, conj, fresh
    >>> from combdiff.terms.types import COMPLEX, Domain, Index, Map
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
    kind = spelled(Tuple((term, read)))[0]
    if kind not in known:
        with np.errstate(all="ignore"):
            found = _evaluated(gate, term, read)
            if found is None:
                found = _evaluated(Gate(), *(resolved(t, _WithoutBounds()) for t in (term, read)))
        known[kind] = found or Comparison(finite=False)
    return known[kind]


def _evaluated(gate: Gate, term: Term, read: Term) -> Comparison | None:
    try:
        return gate.compared(term, read)
    except (UnsupportedError, OverflowError):
        return None


class _WithoutBounds:
    """Lets the check choose a size for domains with bounds: a million values are as good as a few.

    No law of matrices depends on bounds; domains with the same bounds become one.
    """

    def is_real(self, domain: Domain) -> bool:
        return False

    def resolve(self, domain: Domain) -> Domain:
        name = f"{domain.lower}…{domain.upper}"
        return domain if domain.count is None else replace(domain, name=name, lower=None, upper=None)
