"""Shortens products and sums of matrices: common factors in front of a bracket, inverses beside what they undo.

A x + Aᵀ x is (A + Aᵀ) x, and Aᵀ (A X B)⁻ᵀ Bᵀ is X⁻ᵀ if A, X and B are square. A number and its powers are one power.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from combdiff.notation.matrix.expr import (
    Adjoint,
    Conjugate,
    Function,
    MatrixExpr,
    Number,
    Power,
    Product,
    Reciprocal,
    Scale,
    Transpose,
    inverse,
    product,
    raised,
    scaled,
    summed,
)
from combdiff.notation.matrix.meaning import NoMeaningError, entries
from combdiff.terms.terms import MINUS_ONE, ONE, Const
from combdiff.terms.types import same_ranges

Items = tuple[MatrixExpr, ...]


def collected(items: Items) -> MatrixExpr:
    """The sum of matrices with the first or the last factor that terms share in front of or behind a bracket.

    >>> from combdiff.notation.matrix.expr import Leaf, Sum
    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL, Domain, Index, Map
    >>> n = Index(Domain("n"))
    >>> A, x = Leaf(fresh("A", Map((n, n), REAL))), Leaf(fresh("x", Map((n,), REAL)))
    >>> collected((Product((A, x)), Product((Transpose(A), x)))) == Product((Sum((A, Transpose(A))), x))
    True

    It ends: each step leaves fewer terms.
    """
    while shared := _most_shared(items):
        factor, last, members = shared
        numbers = {_numbers(items[n]) for n in members}
        front, own = (numbers.pop(), False) if len(numbers) == 1 else ((ONE, ()), True)
        inner = collected(tuple(_without(items[n], last, own) for n in members))
        made = scaled(*front, product((inner, factor) if last else (factor, inner)))
        items = tuple(made if n == members[0] else x for n, x in enumerate(items) if n not in members[1:])
    return summed(items)


def _most_shared(items: Items) -> tuple[MatrixExpr, bool, list[int]] | None:
    """A factor at an end of several terms, whether that is the last, and which terms: as many as possible."""
    groups: dict[tuple[MatrixExpr, bool], list[int]] = {}
    for n, item in enumerate(items):
        match _bare(item):
            case Product((first, *_, last)):
                groups.setdefault((last, True), []).append(n)
                groups.setdefault((first, False), []).append(n)
            case _:
                pass
    best = max(groups, key=lambda key: len(groups[key]), default=None)
    return None if best is None or len(groups[best]) < 2 else (*best, groups[best])


def _bare(item: MatrixExpr) -> MatrixExpr:
    return item.of if isinstance(item, Scale) else item


def _numbers(item: MatrixExpr) -> tuple[Const, Items]:
    return (item.coefficient, item.scalars) if isinstance(item, Scale) else (ONE, ())


def _without(item: MatrixExpr, last: bool, numbers: bool) -> MatrixExpr:
    """The term without its last, or first, factor, and with the `numbers` in front of it or without them."""
    bare = _bare(item)
    assert isinstance(bare, Product), "it has factors"
    rest = product(bare.items[:-1] if last else bare.items[1:])
    return scaled(*_numbers(item), rest) if numbers else rest


def cancelled(items: Items) -> Items:
    """The product without matrices beside their inverses; the inverse of a product is taken apart if that cancels.

    >>> from combdiff.notation.matrix.expr import Leaf
    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL, Domain, Index, Map
    >>> n = Index(Domain("n"))
    >>> A, X = (Leaf(fresh(name, Map((n, n), REAL))) for name in "AX")
    >>> cancelled((A, inverse(Product((X, A))))) == (inverse(X),)
    True
    """
    for n, item in enumerate(items):
        parts = _of_inverses(item)
        if len(parts) > 1:
            apart = _without_inverses((*items[:n], *parts, *items[n + 1 :]))
            if len(apart) < len(items):
                return cancelled(apart)
    return _without_inverses(items)


def _without_inverses(items: Items) -> Items:
    """Neighbours that undo one another are gone, but for the last that are left."""
    for n, (a, b) in enumerate(pairwise(items)):
        if len(items) > 2 and (undone(a) == b or a == undone(b)):
            return _without_inverses(items[:n] + items[n + 2 :])
    return items


def _of_inverses(item: MatrixExpr) -> Items:
    """(A B)⁻¹ as B⁻¹ A⁻¹, and so of its transpose and its adjoint, if the factors are square."""
    match item:
        case Power(Product(factors), Number(exponent), False) if exponent == MINUS_ONE and _are_square(factors):
            return tuple(undone(f) for f in reversed(factors))
        case Transpose(of):
            return tuple(_flipped(Transpose, f) for f in reversed(_of_inverses(of)))
        case Adjoint(of):
            return tuple(_flipped(Adjoint, f) for f in reversed(_of_inverses(of)))
        case _:
            return (item,)


def undone(item: MatrixExpr) -> MatrixExpr:
    """The inverse of a factor, its transpose or adjoint outside, as `readable` writes it."""
    match item:
        case Power(of, Number(exponent), False) if exponent == MINUS_ONE:
            return of
        case Transpose(of):
            return _flipped(Transpose, undone(of))
        case Adjoint(of):
            return _flipped(Adjoint, undone(of))
        case _:
            return inverse(item)


def _flipped(kind: type[Transpose] | type[Adjoint], of: MatrixExpr) -> MatrixExpr:
    return of.of if isinstance(of, kind) else kind(of)


def _are_square(factors: Items) -> bool:
    try:
        found = [entries(f) for f in factors]
    except NoMeaningError:
        return False
    return all(len(f.rows) == len(f.columns) == 1 and same_ranges(f.rows, f.columns) for f in found)


def gathered(scalars: Sequence[MatrixExpr]) -> Items:
    """Numbers with each base once: d d^(-2) is d^(-1), and z times its conjugate |z|².

    >>> from combdiff.notation.matrix.expr import Leaf
    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import COMPLEX
    >>> z = Leaf(fresh("z", COMPLEX))
    >>> gathered((z, Conjugate(z))) == (Function("abs2", z),)
    True
    """
    exponents: dict[MatrixExpr, int] = {}
    for s in scalars:
        base, n = _power_of(s)
        exponents[base] = exponents.get(base, 0) + n
    for base in list(exponents):
        plain = exponents.get(base.of, 0) if isinstance(base, Reciprocal) else 0
        if isinstance(base, Reciprocal) and (plain < 0 or plain > exponents[base]):
            # where the number is 0, so is c⁺ c², and c⁺/c has no value
            exponents[base.of] -= exponents.pop(base)
    for base in list(exponents):
        both = min(exponents[base], exponents.get(Conjugate(base), 0))
        if both > 0:
            exponents[base] -= both
            exponents[Conjugate(base)] -= both
            exponents[Function("abs2", base)] = both
    return tuple(raised(base, n) for base, n in exponents.items() if n)


def _power_of(s: MatrixExpr) -> tuple[MatrixExpr, int]:
    match s:
        case Power(base, Number(exponent), False) if exponent.is_integer:
            return base, int(exponent.real)
        case _:
            return s, 1
