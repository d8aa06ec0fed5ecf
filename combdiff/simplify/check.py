"""The interface to the gate: a stage's result is compared with its input, value by value where one changed.

The simplifier gets the comparison as an argument, `gate`. A value which has a name before and after the stage is
compared for itself, with random numbers in the place of the other values that have a name on both sides. If all of
these agree, so do the results: the values before solve the equations after, and these have one solution.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Protocol

from combdiff.budget import Budget
from combdiff.records import dataclass
from combdiff.terms.conditions.divided import Divisor
from combdiff.terms.terms import (
    App,
    Const,
    Lam,
    Let,
    Loop,
    Reduce,
    Term,
    Var,
    fresh,
    items_of,
    let,
    neg,
    substitute,
    subterms,
)
from combdiff.terms.traversal import is_tensor
from combdiff.terms.types import Interval, Map, Number

Pair = tuple[Term, Term]
"""A value before and after."""

DEEPEST = 3
"""So many definitions of the values that a value is made of are looked through."""


class Check(Protocol):
    """Compares terms within a budget of its own."""

    budget: Budget
    intervals: Sequence[Interval]
    divided: Sequence[Divisor]

    def deal(self, program: Term) -> None:
        """Choose sizes for all domains of a program."""

    def same(self, before: Term, after: Term, stage: str, accused: Callable[[], str]) -> bool:
        """Raise CheckError, naming `stage` and what is `accused`, if the values differ; whether there was something
        to compare.
        """

    def agree(self, before: Term, after: Term) -> bool:
        """Whether two terms have the same value."""


@dataclass(frozen=True, slots=True)
class ResultParts:
    """A result taken apart: its values by name, its items, and the parameters of maps around them."""

    values: Mapping[Var, Term]
    items: tuple[Term, ...]
    params: tuple[Var, ...]


def parts_of(t: Term) -> ResultParts:
    """The values and items of a result.

    >>> from combdiff.terms.terms import fresh, mul
    >>> from combdiff.terms.types import REAL
    >>> x, y = fresh("x", REAL), fresh("y", REAL)
    >>> parts_of(Let(((y, mul(x, x)),), y)).items == (y,)
    True
    """
    values: dict[Var, Term] = {}
    params: list[Var] = []
    while isinstance(t, Let | Lam) and not is_tensor(t):
        if isinstance(t, Let):
            values.update(t.bindings)
        else:
            params.extend(t.params)
        t = t.body
    return ResultParts(values, items_of(t), tuple(params))


@dataclass(frozen=True, slots=True)
class Piece:
    """A value or an item before and after, in several ways, one of which has to agree.

    `negative`: the name of the value, where it may also be what it was with another sign.
    """

    ways: Iterator[Pair]
    negative: Var | None = None


def pieces(before: Term, after: Term, negated: Collection[Var] = ()) -> Iterator[Piece]:
    """The values and items that differ; the whole results where they cannot be taken apart.

    Each is given in several ways: below random values, then below the definitions of these values, for those that have
    a property (a value is real), and so on, the definitions of loops last.

    Args:
        negated: the values that have been found to be what they were with another sign, of which all that follows is
            made; who reads the pieces adds to it.
    """
    b, a = parts_of(before), parts_of(after)
    # a name that is used before its value, or without one, is free after and not before
    if b.params or a.params or len(b.items) != len(a.items) or not after.free <= before.free:
        yield Piece(iter([(before, after)]))
        return
    shared = {v: value for v, value in b.values.items() if v in a.values and not _is_function(value)}
    names = [*shared, *(None for _ in b.items)]
    pairs = [*((value, a.values[v]) for v, value in shared.items()), *zip(b.items, a.items, strict=True)]
    only_before = _Definitions({v: e for v, e in b.values.items() if v not in a.values})
    only_after = _Definitions({v: e for v, e in a.values.items() if v not in b.values})
    definitions = _Definitions(shared)
    numbers = _Definitions({v: e for v, e in shared.items() if isinstance(e, Const) and a.values[v] == e})
    read: set[Var] = set()
    for v, pair in zip(names, pairs, strict=True):
        x, y = only_before.above(pair[0]), only_after.above(pair[1])
        y = substitute(y, {w: negative(w) for w in negated})
        read |= y.free
        if x != y:
            # a number is what it is: that it is real, or 0, may have been used
            x, y = numbers.above(x), numbers.above(y)
            # what has been compared already took it as it was
            yield Piece(_ways(x, y, definitions), v if v not in read and _has_a_sign(v) else None)


def negative(t: Term) -> Term:
    """−t, entry by entry.

    >>> from combdiff.terms.terms import App, fresh
    >>> from combdiff.terms.types import REAL, Index
    >>> x = fresh("x", Map((Index(),), REAL))
    >>> minus = negative(x)
    >>> minus.body == neg(App(x, minus.params)), negative(minus).body == App(x, minus.params)
    (True, True)
    """
    match t:
        case Let(bindings, body):
            return let(bindings, negative(body))
        case Lam(params, body):
            return Lam(params, negative(body))
        case _ if isinstance(t.type, Map):
            params = tuple(fresh("i", kind) for kind in t.type.params)
            return Lam(params, neg(App(t, params)))
        case _:
            return neg(t)


def _has_a_sign(v: Var | None) -> bool:
    """Whether it is a number or a tensor of numbers."""
    return v is not None and isinstance(v.kind.result if isinstance(v.kind, Map) else v.kind, Number)


def _ways(x: Term, y: Term, definitions: _Definitions) -> Iterator[Pair]:
    """`x` and `y` as they are, then with definitions: of the values that exact numbers have, beside loops, and all.

    A step may hold what has no exact value, such as a norm; a reading of the states says the same of any states. So
    does a sum over a symmetric matrix of a share, which has none.
    """
    yield x, y
    kept = definitions.values
    beside_loops = {v: e for v, e in kept.items() if not isinstance(e, Loop)}
    exact = {v: e for v, e in beside_loops.items() if not any(isinstance(u, Reduce | Loop) for u in subterms(e))}
    tiers = {len(found): _Definitions(found) for found in (kept, beside_loops, exact)}
    for known in reversed(tiers.values()):
        for depth in range(1, DEEPEST + 1):
            found = known.needed((x, y), depth)
            if not found:
                break
            yield let(found, x), let(found, y)


def _is_function(value: Term) -> bool:
    """Whether it is a definition that was kept unknown, which is not evaluated."""
    return isinstance(value, Lam) and not is_tensor(value)


class _Definitions:
    """Values by name, in their order."""

    def __init__(self, values: Mapping[Var, Term]) -> None:
        self.values = values
        self.place = {v: n for n, v in enumerate(values)}

    def needed(self, terms: Collection[Term], depth: int) -> list[tuple[Var, Term]]:
        """Those that `terms` are made of, directly or through at most `depth` definitions."""
        found: set[Var] = set()
        latest = {v for t in terms for v in t.free if v in self.values}
        while latest and depth:
            found |= latest
            latest = {w for v in latest for w in self.values[v].free if w in self.values and w not in found}
            depth -= 1
        return [(v, self.values[v]) for v in sorted(found, key=self.place.__getitem__)]

    def above(self, value: Term) -> Term:
        """`value` below all of them that it is made of."""
        return let(self.needed([value], len(self.values)), value) if self.values else value
