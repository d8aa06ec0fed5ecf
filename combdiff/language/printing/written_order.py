"""Terms of sums stand in the order in which the user wrote them, and everywhere in the same one.

    Km + S(i), in a program          S(i) + Km, in its gradient, becomes Km + S(i)

What is subtracted stays behind what is added. The order of terms means nothing to the laws: e-graphs and constructors
keep none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import field

from combdiff.records import dataclass
from combdiff.terms.schema import label
from combdiff.terms.terms import (
    Add,
    App,
    Const,
    Mul,
    Sum,
    Term,
    Traverser,
    Var,
    add,
    children,
    split_coefficient,
    subterms,
)
from combdiff.terms.types import Index


@dataclass(slots=True)
class WrittenOrder:
    """The orders of the terms of sums, those of a program first, then as they are met.

    >>> from combdiff.terms.terms import ONE, fresh
    >>> from combdiff.terms.types import REAL
    >>> x, y = fresh("x", REAL), fresh("y", REAL)
    >>> order = WrittenOrder.of(add(x, y, ONE))
    >>> order(add(ONE, y, x)) == add(x, y, ONE), order(add(y, x)) == add(x, y)
    (True, True)
    """

    orders: list[dict[int, int]] = field(default_factory=list)
    shapes: dict[Term, int] = field(default_factory=dict)
    numbers: dict[Hashable, int] = field(default_factory=dict)

    @classmethod
    def of(cls, *programs: Term) -> WrittenOrder:
        """The order of the sums of programs."""
        found = cls()
        for program in programs:
            for t in subterms(program, Add):
                assert isinstance(t, Add), "a sum"
                found.note(t.terms)
        return found

    def __call__(self, t: Term) -> Term:
        """`t` with the terms of its sums in their order."""
        return Traverser(lambda u: self._ordered(u) if isinstance(u, Add) else u, Add)(t)

    def note(self, terms: Sequence[Term]) -> None:
        """Keep an order of terms."""
        order: dict[int, int] = {}
        for u in terms:
            order.setdefault(self.shape(split_coefficient(u)[1]), len(order))
        self.orders.append(order)

    def _ordered(self, t: Add) -> Term:
        if isinstance(t.type, Index):
            return t
        shapes = {u: self.shape(split_coefficient(u)[1]) for u in t.terms}
        order = next((known for known in self.orders if known.keys() >= {*shapes.values()}), None)
        if order is None:
            self.note(t.terms)
            return t
        return add(*sorted(t.terms, key=lambda u: (_is_subtracted(u), order[shapes[u]])))

    def shape(self, t: Term) -> int:
        """The same for terms that differ by the places where entries are read and the order of what commutes."""
        if t not in self.shapes:
            self.shapes[t] = self.numbers.setdefault(self._shape(t), len(self.numbers))
        return self.shapes[t]

    def _shape(self, t: Term) -> Hashable:
        match t:
            case Var(name, kind):
                return ("index", kind) if isinstance(kind, Index) else name
            case Const(real, imag):
                return real, imag
            case Mul() | Sum():
                factors, summed = _factors_within(t)
                return Mul, summed, frozenset(Counter(map(self.shape, factors)).items())
            case Add(terms):
                return Add, frozenset(Counter(map(self.shape, terms)).items())
            case App(f, args) if all(isinstance(a.type, Index) for a in args):
                return App, self.shape(f)
            case _:
                return type(t), label(t), tuple(map(self.shape, children(t)))


def _factors_within(t: Term) -> tuple[list[Term], int]:
    """The factors of a product of sums, and the number of indices of its sums: Σ_k (Σ_j a(j) x(j, k)) b(k) has 3."""
    match t:
        case Mul(factors):
            parts = [_factors_within(f) for f in factors]
            return [f for own, _ in parts for f in own], sum(summed for _, summed in parts)
        case Sum(indices, body) if not isinstance(body, Add):
            found, summed = _factors_within(body)
            return found, summed + len(indices)
        case Sum(indices, body):
            return [body], len(indices)
        case _:
            return [t], 0


def _is_subtracted(t: Term) -> bool:
    c, _ = split_coefficient(t)
    return c.real < 0 or (c.real == 0 and c.imag < 0)
