"""Spells a term so that its arrays are few and small, before it is lowered.

x(i) - alpha * (-r(i) - beta * p(i))    becomes   x(i) + alpha * (r(i) + beta * p(i)), so that sums are computed once
where(0 <= x, q * x, (q - 1) * x)       becomes   x * where(0 <= x, q, q - 1), which is summed over as a product
where(d < n, delta(i, d, x(d)))         becomes   delta(i, d, where(d < n, x(d))), a vector that is cut, on a diagonal
"""

from __future__ import annotations

from collections import Counter
from functools import reduce
from operator import and_

from combdiff.terms.alpha import alpha_equal, alpha_hash
from combdiff.terms.conditions.choices import choice_of
from combdiff.terms.conditions.guards import reads_beyond, under, unguarded
from combdiff.terms.terms import (
    MINUS_ONE,
    Add,
    App,
    Const,
    Delta,
    Indicator,
    Mul,
    Pow,
    Sum,
    Term,
    Traverser,
    Var,
    add,
    compares_indices,
    factors_of,
    indicator,
    mul,
    power,
    split_coefficient,
)
from combdiff.terms.types import Index


def respelled(t: Term) -> Term:
    """`t` with signs and factors in front, and with conditions under δ."""
    return conditions_in_deltas(factors_before_choices(signs_in_front(t)))


def signs_in_front(t: Term) -> Term:
    """`t` with the signs of sums whose terms are all negative before the products that these stand in.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> a, b, c = (fresh(name, REAL) for name in "abc")
    >>> minus = add(mul(MINUS_ONE, a), mul(MINUS_ONE, b))
    >>> signs_in_front(mul(MINUS_ONE, minus, c)) == mul(add(a, b), c)
    True
    """
    return Traverser(_turned)(t)


def factors_before_choices(t: Term) -> Term:
    """`t` with what is a factor of each case of a choice as a factor of the choice.

    >>> from combdiff.terms.conditions.comparing import compared
    >>> from combdiff.terms.terms import ZERO, fresh
    >>> from combdiff.terms.types import REAL
    >>> a, b, x = (fresh(name, REAL) for name in "abx")
    >>> chosen = compared(x, "<=", ZERO, mul(a, x))
    >>> found = factors_before_choices(add(chosen, compared(x, ">", ZERO, mul(b, x))))
    >>> x in factors_of(found), factors_before_choices(chosen) == chosen
    (True, True)
    """
    return Traverser(_before_cases, Add)(t)


def conditions_in_deltas(t: Term) -> Term:
    """`t` with a condition under the δ that it stands around, if this is one of two indices, or of entries in range.

    A δ of other sides may stand under the condition because they are in range only there. A condition of numbers stays
    around a δ of two indices: what it chooses is written into an array along them.

    >>> from combdiff.terms.conditions.comparing import compared
    >>> from combdiff.terms.terms import ONE, fresh
    >>> from combdiff.terms.types import REAL
    >>> n = Index()
    >>> i, j, x = fresh("i", n), fresh("j", n), fresh("x", REAL)
    >>> conditions_in_deltas(compared(i, ">=", ONE, Delta(i, j, x))) == Delta(i, j, compared(i, ">=", ONE, x))
    True
    """
    return Traverser(_under_delta, Delta)(t)


def _under_delta(t: Term) -> Term:
    match t:
        case Indicator(left, right, Delta(Var() as i, Var() as j, body)) if compares_indices(left, right):
            return Delta(i, j, _under_delta(indicator(left, right, body)))
        case Indicator(left, right, Delta(App() as i, App() as j, body)) if not reads_beyond(i) and not reads_beyond(j):
            return Delta(i, j, _under_delta(indicator(left, right, body)))
        case Indicator(left, right, Delta(App() as i, Var() as j, body) | Delta(Var() as j, App() as i, body)) if (
            i.type == j.type and not reads_beyond(i) and not (left.free | right.free).isdisjoint(_indices(i))
        ):
            # what is chosen depends on the entry, not on its group alone
            return Delta(i, j, _under_delta(indicator(left, right, body)))
        case _:
            return t


def _indices(t: Term) -> set[Var]:
    return {v for v in t.free if isinstance(v.kind, Index)}


def _before_cases(t: Term) -> Term:
    guards = [unguarded(u)[0] for u in t.terms] if isinstance(t, Add) and not isinstance(t.type, Index) else [()]
    # conditions of indices are masks in products of matrices
    if not all(guards) or any(compares_indices(c.left, c.right) for guard in guards for c in guard):
        return t
    t = _with_sums_once(t)
    choice = choice_of(t)
    if choice is None or choice.around or len(choice.rows) < 2:
        return t
    parts = [Counter(f for f in factors_of(row.value) if not isinstance(f, Const)) for row in choice.rows]
    common = reduce(and_, parts)
    if not common:
        return t
    # in some case each of them is needed, so that they are needed everywhere
    rest = [mul(*_left(row.value, common)) for row in choice.rows]
    chosen = add(*(under(row.guard, value) for row, value in zip(choice.rows, rest, strict=True)))
    return mul(*common.elements(), chosen)


def _with_sums_once(t: Term) -> Term:
    """`t` with sums that are equal up to the names of their indices as one, as conditions on them are compared."""
    known: dict[int, list[Term]] = {}

    def first(u: Term) -> Term:
        alike = known.setdefault(alpha_hash(u), [])
        found = next((other for other in alike if alpha_equal(other, u)), None)
        if found is None:
            alike.append(u)
        return found or u

    return Traverser(first, Sum)(t)


def _left(value: Term, common: Counter[Term]) -> list[Term]:
    """The factors of a value but for some."""
    taken = Counter(common)
    found = []
    for f in factors_of(value):
        if taken[f]:
            taken[f] -= 1
        else:
            found.append(f)
    return found


def _turned(t: Term) -> Term:
    match t:
        case Mul(factors):
            turned = [_opposite(f) for f in factors]
            if not any(turned):
                return t
            signs = [MINUS_ONE for o in turned if o is not None]
            return mul(*signs, *(f if o is None else o for f, o in zip(factors, turned, strict=True)))
        case Sum(indices, body) if (found := _opposite(body)) is not None:
            return mul(MINUS_ONE, Sum(indices, found))
        case Pow(base, Const() as n) if n.is_integer and (found := _opposite(base)) is not None:
            return power(found, n) if not n.real % 2 else mul(MINUS_ONE, power(found, n))
        case _:
            return t


def _opposite(t: Term) -> Term | None:
    """-t for a sum of negative terms, and None for any other."""
    if not isinstance(t, Add) or isinstance(t.type, Index):
        return None
    if not all(_is_negative(u) for u in t.terms):
        return None
    return add(*(mul(MINUS_ONE, u) for u in t.terms))


def _is_negative(t: Term) -> bool:
    size, _ = split_coefficient(t)
    return size.real < 0 and not size.imag
