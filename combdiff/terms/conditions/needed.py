"""The least sizes of ranges for the entries that are read: x(4 - i) under i ≤ 4 needs five entries of x.

The language takes such entries without knowing the sizes; before a call works on arrays, their sizes are compared with
what this module finds.
"""

from __future__ import annotations

from collections.abc import Iterator

from combdiff.terms.conditions.guards import Condition, condition_of
from combdiff.terms.conditions.ordering import least_size
from combdiff.terms.terms import (
    Add,
    App,
    Call,
    Conj,
    Const,
    Delta,
    Diff,
    Indicator,
    Lam,
    Let,
    Mul,
    Pow,
    Proj,
    Term,
    Tuple,
    Var,
    children,
    index_atoms,
)
from combdiff.terms.types import Domain, Index, Map, slot_types


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


def sizes_read(t: Term) -> dict[Domain, int]:
    """The least sizes of plain ranges without which a program has no value, for it reads entries at constants there.

    >>> from combdiff.terms.terms import ONE, TWO, add, fresh, indicator
    >>> from combdiff.terms.types import REAL
    >>> n, m = Domain("n"), Domain("m")
    >>> x, y = fresh("x", Map((Index(n),), REAL)), fresh("y", Map((Index(m),), REAL))
    >>> sizes_read(add(App(x, (TWO,)), indicator(App(x, (ONE,)), ONE, App(y, (ONE,))))) == {n: 3}
    True

    What stands under a condition, or is computed for each value of an index, need not be read.
    """
    found: dict[Domain, int] = {}
    values: dict[Term, Term] = {}
    seen: set[Term] = set()
    waiting = [t]
    while waiting:
        u = waiting.pop()
        if u in seen:
            continue
        seen.add(u)
        match u:
            case App(f, args):
                waiting += [f, *args]
                for domain, size in _with_constants(u):
                    found[domain] = max(size, found.get(domain, 0))
            case Let(bindings, body):
                values.update(bindings)
                waiting.append(body)
            case Var() if u in values:
                waiting.append(values[u])
            case Indicator(left, right) | Delta(left, right):
                waiting += [left, right]
            case Lam(params, body) if not any(isinstance(p.kind, Index) for p in params):
                waiting.append(body)
            case Add() | Mul() | Pow() | Conj() | Call() | Tuple() | Proj() | Diff():
                waiting += children(u)
    return found


def _with_constants(t: App) -> Iterator[tuple[Domain, int]]:
    """The plain ranges of which an entry is read at a constant, each with the size that it must have for that."""
    kinds = slot_types(t.function.type)
    for index, slot in zip(t.args, kinds, strict=True):
        domain = slot.domain if isinstance(slot, Index) else None
        if isinstance(index, Const) and domain is not None and domain.plain:
            yield domain, int(index.real) + 1


def _is_arithmetic(index: Term) -> bool:
    return isinstance(index, Add | Mul) and bool(index_atoms(index))
