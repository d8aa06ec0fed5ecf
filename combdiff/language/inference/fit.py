"""Whether a value of one type fits where another is expected; ranges of indices are joined on the way."""

from __future__ import annotations

from combdiff.errors import LanguageError, Span
from combdiff.language.inference.domains import Ranges
from combdiff.language.vocabulary import in_words
from combdiff.terms.types import COMPLEX, Index, Map, Number, Product, Type


def fit(actual: Type, wanted: Type, ranges: Ranges, span: Span) -> None:
    """An `actual` value stands where `wanted` is asked for: join their ranges, or say why it does not fit.

    A real value fits a complex place, an index is its integer value, a map of complex numbers fits where one of real
    numbers is asked for.

    >>> from combdiff.terms.types import REAL
    >>> fit(REAL, COMPLEX, Ranges(), Span(1, 1))
    >>> fit(COMPLEX, REAL, Ranges(), Span(1, 1))
    Traceback (most recent call last):
    combdiff.errors.LanguageError: a real value is needed here, but this one is complex
    remedy: take real(…) of it, or declare the place complex
    """
    match actual, wanted:
        case Index(a), Index(b) if a is not None and b is not None:
            ranges.unite(a, b, span)
        case ((Number() | Index()), Number()):
            if actual == COMPLEX and not wanted.complex:
                raise LanguageError(
                    "a real value is needed here, but this one is complex",
                    span=span,
                    remedy="take real(…) of it, or declare the place complex",
                )
        case Map(), Map() if index_slots(actual) == index_slots(wanted):
            for given, asked in zip(actual.params, wanted.params, strict=True):
                fit(asked, given, ranges, span)
            fit(actual.result, wanted.result, ranges, span)
        case Product(), Product() if len(actual.items) == len(wanted.items):
            for given, asked in zip(actual.items, wanted.items, strict=True):
                fit(given, asked, ranges, span)
        case _:
            raise LanguageError(
                f"{in_words(wanted)} is expected here, found {in_words(actual)}",
                span=span,
                remedy="a parameter without a type is an index here: declare it where it is bound, as v::RV"
                if isinstance(actual, Index)
                else "check the argument against the declared type",
            )


def index_slots(kind: Map) -> list[bool]:
    """Which parameters of a map are indices."""
    return [isinstance(p, Index) for p in kind.params]
