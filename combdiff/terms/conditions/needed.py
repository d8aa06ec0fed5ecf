"""How many values ranges must have for the entries that are read: x(4 - i) under i ≤ 4 wants five of x.

The language takes such entries without knowing the sizes; before a call works on arrays, their sizes are held against
what this module finds.
"""

from __future__ import annotations

from combdiff.terms.conditions.guards import Condition, condition_of
from combdiff.terms.conditions.ordering import least_size
from combdiff.terms.terms import Add, App, Delta, Indicator, Mul, Term, Var, children, index_atoms
from combdiff.terms.types import Domain, Index, Map


def least_sizes(t: Term) -> dict[Domain, int]:
    """The least sizes of the ranges in which entries of tensors lie at places that ranges alone do not keep there.

    >>> from combdiff.terms.terms import TWO, add, fresh, indicator, neg
    >>> from combdiff.terms.types import REAL
    >>> n = Domain("n")
    >>> i, x = fresh("i", Index(n)), fresh("x", Map((Index(n),), REAL))
    >>> least_sizes(indicator(i, TWO, App(x, (add(TWO, neg(i)),)))) == {n: 3}
    True

    An entry at a constant, x(2), is looked at where it is read: its derivative has a value without it.
    """
    found: dict[Domain, int] = {}
    seen: set[tuple[Term, tuple[Condition, ...]]] = set()

    def walk(u: Term, held: tuple[Condition, ...]) -> None:
        if (u, held) in seen:
            return
        seen.add((u, held))
        match u:
            case App(Var(kind=Map() as kind), args) if kind.is_array:
                for index, slot in zip(args, kind.params, strict=True):
                    walk(index, held)
                    if isinstance(slot, Index) and slot.domain is not None and _is_arithmetic(index):
                        least = least_size(index, slot.domain, held) or 0
                        found[slot.domain] = max(least, found.get(slot.domain, 0))
            case Indicator(left, right, body):
                walk(left, held)
                walk(right, held)
                walk(body, (*held, condition_of(u)))
            case Delta(left, right, body) if isinstance(left.type, Index) and isinstance(right.type, Index):
                walk(left, held)
                walk(right, held)
                walk(body, (*held, Condition(left, right), Condition(right, left)))
            case _:
                for part in children(u):
                    walk(part, held)

    walk(t, ())
    return {domain: least for domain, least in found.items() if least > 1}


def _is_arithmetic(index: Term) -> bool:
    return isinstance(index, Add | Mul) and bool(index_atoms(index))
