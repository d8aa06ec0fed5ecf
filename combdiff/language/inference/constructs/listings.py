"""Vectors and matrices that list their entries: [a, b, c] is i ↦ δ(i, 0, a) + δ(i, 1, b) + δ(i, 2, c).

A matrix is written by its rows, [a, b; c, d] or [[a, b], [c, d]]; rows of one entry each are a vector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from combdiff.errors import LanguageError
from combdiff.language.parsing.syntax import Expr, Listed, Size, TypeName
from combdiff.language.vocabulary import counted, in_words
from combdiff.terms import terms
from combdiff.terms.laws.inclusion import as_complex_as
from combdiff.terms.listings import entries_listed
from combdiff.terms.terms import Lam, Term
from combdiff.terms.types import Index, Number

if TYPE_CHECKING:
    from combdiff.language.inference.infer import Elaborator
    from combdiff.language.inference.scope import Scope


def array(el: Elaborator, e: Listed, scope: Scope) -> Term:
    """The tensor with these entries, whose sizes are numbers."""
    rows = _rows(e)
    entries = [[_entry(el, part, scope) for part in row] for row in rows]
    if not _is_nested(e) and all(len(row) == 1 for row in rows):
        entries = [[entry for row in entries for entry in row]]
    is_vector = len(entries) == 1 and not _is_nested(e)
    extents = (len(entries), len(entries[0]))[is_vector:]
    kinds = [TypeName("N", e.span, (Size(str(n), e.span),)) for n in extents]
    indices = [
        terms.fresh(name, el.kinds.index(kind, f"index {name}", e.span))
        for name, kind in zip("ij", kinds, strict=False)
    ]
    el.places.update(dict.fromkeys(indices, e.span))
    whole = as_complex_as([entry for row in entries for entry in row], entries_listed(indices, entries))
    return Lam(tuple(indices), whole)


def _is_nested(e: Listed) -> bool:
    return len(e.rows) == 1 and isinstance(e.rows[0][0], Listed)


def _rows(e: Listed) -> list[tuple[Expr, ...]]:
    """The rows of a matrix, or the one of a vector; all have as many entries as the first."""
    rows = [*e.rows]
    if _is_nested(e):
        inner = [part for part in e.rows[0] if isinstance(part, Listed) and len(part.rows) == 1]
        if len(inner) < len(e.rows[0]):
            raise LanguageError(
                "some rows of a matrix are lists, and others are not", span=e.span, remedy="write [a, b; c, d]"
            )
        rows = [part.rows[0] for part in inner]
    for n, row in enumerate(rows[1:], 2):
        if len(row) != len(rows[0]):
            raise LanguageError(
                f"row {n} of a matrix has {counted(len(row), 'number')}, and row 1 has {len(rows[0])}",
                span=row[0].span,
                remedy="give all rows as many numbers: [a, b; c, d]",
            )
    return rows


def _entry(el: Elaborator, e: Expr, scope: Scope) -> Term:
    term = el.expr(e, scope)
    if not isinstance(term.type, Number | Index):
        raise LanguageError(
            f"an entry of a vector is a number, found {in_words(term.type)}",
            span=e.span,
            remedy="list numbers, [x(0), x(1), 1]; of blocks write where(i < n, x(i), y(i - n))",
        )
    return term
