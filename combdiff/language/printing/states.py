"""All states of a loop under one name, where a program reads those before the steps and the last one apart.

    [e < n] Σ_u δ(e, u) h(u) + [n ≤ e] h(n) = h(e)          for an index e ≤ n

`scan` gives n + 1 states. The terms hold the n states before the steps and the last one, each under its condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations

from combdiff.records import dataclass
from combdiff.terms.conditions.ordering import never_exceeds
from combdiff.terms.network import conditions_apart, network
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    Add,
    App,
    Const,
    Delta,
    Indicator,
    Term,
    Traverser,
    Var,
    add,
    alpha_equal,
    delta,
    holds,
    indicator,
    mul,
    neg,
    number,
    size,
    substitute,
    total,
)
from combdiff.terms.types import Domain


def count_of(domain: Domain) -> Term:
    """How many values an index has."""
    if domain.count is not None:
        return number(domain.count)
    return size(domain) if domain.of is None else add(size(domain.of), number(-domain.less))


def joined(term: Term, counts: Mapping[Var, Term]) -> Term:
    """`term` with one read of all states where it reads them in two pieces; `counts` has the steps of each loop.

    >>> from combdiff.terms.terms import fresh, indicator
    >>> from combdiff.terms.types import REAL, Index, Map
    >>> time = Index(Domain("n"))
    >>> n, t, h = size(time.domain), fresh("t", time), fresh("h", Map((Index(None),), REAL))
    >>> early = indicator(add(t, number(2)), n, App(h, (add(t, ONE),)))
    >>> late = indicator(n, add(t, ONE), App(h, (n,)))
    >>> joined(add(early, late), {h: n}) == App(h, (add(t, ONE),))
    True
    """
    if not counts:
        return term
    return Traverser(lambda t: _joined_sum(t, counts) if isinstance(t, Add) else t, Add)(term)


def _joined_sum(t: Add, counts: Mapping[Var, Term]) -> Term:
    products = {u: GuardedProduct.of(u) for u in t.terms}
    terms = list(t.terms)
    for late in t.terms:
        ends = list(products[late].at_the_end(counts)) if holds(late, Indicator) and late in terms else []
        others = (u for u in terms if u is not late and products[u].number == products[late].number) if ends else ()
        pairs = ((u, whole) for u in others if (whole := _whole(products[u], ends)) is not None)
        if (found := next(pairs, None)) is not None:
            early, whole = found
            terms = [whole if u is early else u for u in terms if u is not late]
            products[whole] = GuardedProduct.of(whole)
    return t if len(terms) == len(t.terms) else add(*terms)


def _whole(before: GuardedProduct, ends: Iterable[tuple[Term, Term, GuardedProduct]]) -> Term | None:
    """The one term that two are, if one reads the states before the steps, and the other, by its `ends`, the last."""
    for entry, count, read in ends:
        condition = add(count, neg(entry), MINUS_ONE)
        for candidate in (before, *before.shifted(count)):
            for named in candidate.named_as(read):
                found = named.without(condition)
                if found is not None and found.read_at(entry).equals(read):
                    return read.with_factors_outside()
    return None


@dataclass(frozen=True, slots=True)
class GuardedProduct:
    """number · Σ over `indices` · `factors` under conditions, a condition as an indicator or a δ of 1."""

    number: Const
    indices: tuple[Var, ...]
    conditions: tuple[Indicator | Delta, ...]
    factors: tuple[Term, ...]

    @classmethod
    def of(cls, t: Term) -> GuardedProduct:
        whole = network(t, conditions_apart)
        marks = tuple(f for f in whole.factors if isinstance(f, Indicator | Delta) and f.body == ONE)
        return cls(whole.coefficient, whole.indices, marks, tuple(f for f in whole.factors if f not in marks))

    def equals(self, other: GuardedProduct) -> bool:
        """Whether both have the same indices, conditions and factors, in any order."""
        return (
            {*self.indices} == {*other.indices}
            and _match(self.conditions, other.conditions)
            and _match(self.factors, other.factors)
        )

    def with_factors_outside(self) -> Term:
        """The product with Σ a f as a Σ f."""
        outer = [f for f in self.factors if f.free.isdisjoint(self.indices) and self.indices]
        inner = mul(*(f for f in self.factors if f not in outer))
        return mul(self.number, *outer, total(self.indices, self._under(inner)))

    def _under(self, body: Term) -> Term:
        for mark in reversed(self.conditions):
            make = delta if isinstance(mark, Delta) else indicator
            body = make(mark.left, mark.right, body)
        return body

    def at_the_end(self, counts: Mapping[Var, Term]) -> Iterator[tuple[Term, Term, GuardedProduct]]:
        """An index e, the number n of steps, and the product with state e for state n and without n ≤ e, for each."""
        for mark in self.conditions:
            for count in dict.fromkeys(counts.values()) if isinstance(mark, Indicator) else ():
                entry = add(count, _slack(mark))
                if not never_exceeds(entry, count):
                    continue
                factors = tuple(_at_entry(f, entry, count, counts) for f in self.factors)
                if factors != self.factors:
                    left = tuple(m for m in self.conditions if m is not mark)
                    yield entry, count, replace(self, conditions=left, factors=factors)

    def without(self, slack: Term) -> GuardedProduct | None:
        """The product without the condition that `slack` is not negative, if it has it."""
        left = tuple(m for m in self.conditions if isinstance(m, Delta) or _slack(m) != slack)
        return None if len(left) == len(self.conditions) else replace(self, conditions=left)

    def read_at(self, entry: Term) -> GuardedProduct:
        """The product with f(entry) for Σ_u δ(entry, u) f(u)."""
        for mark in self.conditions:
            for u, other in ((mark.left, mark.right), (mark.right, mark.left)) if isinstance(mark, Delta) else ():
                if isinstance(u, Var) and u in self.indices and other == entry:
                    left = replace(self, conditions=tuple(m for m in self.conditions if m is not mark))
                    kept = tuple(i for i in self.indices if i is not u)
                    return replace(left._at({u: entry}), indices=kept).read_at(entry)
        return self

    def shifted(self, count: Term) -> Iterator[GuardedProduct]:
        """Σ_t [1 ≤ t] f(t), for t < n, as Σ_t [t + 1 < n] f(t + 1)."""
        for t in self.indices:
            left = self.without(add(t, MINUS_ONE))
            if left is not None:
                mark = indicator(add(t, ONE, ONE), count, ONE)
                assert isinstance(mark, Indicator), "a condition on an index"
                later = left._at({t: add(t, ONE)})
                yield replace(later, conditions=(*later.conditions, mark))

    def named_as(self, other: GuardedProduct) -> Iterator[GuardedProduct]:
        """The product with the indices of another one, if both are over the same ranges."""
        if len(self.indices) != len(other.indices) or len(self.indices) > 3:
            yield self
            return
        for order in permutations(other.indices):
            if all(i.kind == j.kind for i, j in zip(self.indices, order, strict=True)):
                yield replace(self._at(dict(zip(self.indices, order, strict=True))), indices=other.indices)

    def _at(self, values: Mapping[Var, Term]) -> GuardedProduct:
        marks = tuple(type(m)(substitute(m.left, values), substitute(m.right, values), ONE) for m in self.conditions)
        return replace(self, conditions=marks, factors=tuple(substitute(f, values) for f in self.factors))


def _match(some: Sequence[Term], others: Sequence[Term]) -> bool:
    left = list(others)
    for t in some:
        place = next((n for n, u in enumerate(left) if alpha_equal(t, u)), None)
        if place is None:
            return False
        del left[place]
    return not left


def _slack(mark: Indicator | Delta) -> Term:
    """Right minus left: an indicator says that this is not negative."""
    return add(mark.right, neg(mark.left))


def _at_entry(t: Term, entry: Term, count: Term, counts: Mapping[Var, Term]) -> Term:
    """`t` with the states at `entry` for those at `count`."""

    def visit(u: Term) -> Term:
        if isinstance(u, App) and isinstance(u.function, Var) and counts.get(u.function) == u.args[0] == count:
            return App(u.function, (entry, *u.args[1:]))
        return u

    return Traverser(visit)(t)
