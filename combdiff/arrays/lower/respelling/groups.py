"""Reductions over those entries that an array of integers puts into one group, as arrays over the groups.

    logsumexp(j, c(j) == c(i), u(j))      becomes   L(c(i)), with L = g -> logsumexp(j, c(j) == g, u(j))
    softmax(j, c(j) == g, u(j))(i)        becomes   p(i) where c(i) == g, with the shares p of all in their own groups

An array over groups is made in one pass over the entries; a table over entries and groups, or over pairs of entries,
takes the square of the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial

from combdiff.arrays.lower.signature import result_of
from combdiff.records import dataclass
from combdiff.terms.alpha import alpha_equal
from combdiff.terms.conditions.comparing import compared
from combdiff.terms.conditions.guards import Condition, Guard, held, under
from combdiff.terms.terms import (
    MINUS_ONE,
    App,
    Lam,
    Reduce,
    Term,
    Traverser,
    Tuple,
    Var,
    exchanged,
    fresh,
    let,
    mul,
    power,
    reduction,
    substitute,
    subterms,
    total,
)
from combdiff.terms.types import REAL, Index, Map

GROUPED = frozenset({"logsumexp", "maximum", "minimum"})
"""The reductions that are made for all groups at once."""


@dataclass(frozen=True, slots=True)
class Groups:
    """A reduction over the entries for which each of `entries` is the group that stands beside it in `groups`.

    What is reduced does not depend on the groups.
    """

    kind: str
    indices: tuple[Var, ...]
    entries: tuple[Term, ...]
    groups: tuple[Term, ...]
    conditions: Guard
    weight: Term
    body: Term

    @classmethod
    def of(cls, t: Reduce) -> Groups | None:
        """The reduction by groups that `t` is; None if it is none."""
        guard, weight = held(t.mark)
        pairs = {c: pair for c in guard if (pair := _pair(c, t.indices)) is not None}
        if not pairs:
            return None
        entries, groups = zip(*pairs.values(), strict=True)
        inside, body = held(t.body)
        body = under([c for c in inside if c not in guard], body)
        # what depends on a group depends on the entry that is it
        at = dict(zip(groups, entries, strict=True))
        left = [c for c in guard if c not in pairs]
        conditions = tuple(Condition(exchanged(c.left, at), exchanged(c.right, at), c.equal) for c in left)
        found = cls(t.kind, t.indices, entries, groups, conditions, exchanged(weight, at), exchanged(body, at))
        around = {v for v in found.outer if isinstance(v.kind, Index)}
        # a condition with an index around it takes a table of that and of the entries in any case
        apart = all(g.free.isdisjoint(around) for g in groups) and all(around.isdisjoint(c.free) for c in conditions)
        return found if apart else None

    @property
    def outer(self) -> frozenset[Var]:
        """What the numbers, and the groups that they are in, depend on beside the indices."""
        free = self.weight.free.union(self.body.free, *(e.free for e in self.entries))
        return free.union(*(c.free for c in self.conditions)).difference(self.indices)

    @property
    def is_for_all(self) -> bool:
        """Whether it is made for all groups: the indices of these are different ones."""
        return len({*self.bare}) == len(self.groups)

    @property
    def bare(self) -> tuple[Var, ...]:
        """The groups, if all of them are indices."""
        return tuple(g for g in self.groups if isinstance(g, Var))

    def is_own(self, place: Sequence[Term]) -> bool:
        """Whether the groups are those of the entry at a place."""
        at = dict(zip(self.indices, place, strict=True))
        return all(substitute(e, at) == g for e, g in zip(self.entries, self.groups, strict=True))

    @property
    def alone(self) -> Reduce:
        """The reduction of the same numbers, whatever their groups are."""
        return Reduce(self.kind, Lam(self.indices, Tuple((under(self.conditions, self.weight), self.body))))

    def over(self, kind: str, groups: Sequence[Term]) -> Reduce:
        """A reduction of the same numbers, for other groups."""
        made = reduction(kind, self.indices, self.where(groups, self.weight), self.body)
        assert isinstance(made, Reduce), "nobody knows which entries are in a group"
        return made

    def where(self, groups: Sequence[Term], t: Term) -> Term:
        """`t` where an entry is in the groups, and takes part."""
        here = (Condition(e, g, equal=True) for e, g in zip(self.entries, groups, strict=True))
        return under((*here, *self.conditions), t)


def _pair(c: Condition, indices: Collection[Var]) -> tuple[App, Term] | None:
    """The entry of an array of integers, and the group that it is to be."""
    for entry, group in ((c.left, c.right), (c.right, c.left)) if c.equal else ():
        match entry:
            case App(Var(kind=Map() as kind)) if kind.is_integers and not entry.free.isdisjoint(indices):
                # a group of another range need not be one of those that there are, and one alone needs no array
                if group.free and group.free.isdisjoint(indices) and group.type == entry.type:
                    return entry, group
    return None


def with_groups_apart(term: Term) -> Term:
    """`term` with a definition for each reduction by groups, which other terms read.

    >>> from combdiff.language.inference.infer import infer
    >>> from combdiff.language.parsing.parser import parse
    >>> from combdiff.language.printing.printer import expression_text
    >>> program = "(c::(N{n}) -> N{m}) -> (u::RV{n}) -> i -> logsumexp(j, c(j) == c(i), u(j))"
    >>> print(expression_text(with_groups_apart(infer(parse(program)))))
    (c::(N{n}) -> N{m}, u::RV{n}) -> begin
      t = g -> logsumexp(j, c(j) == g, u(j))
      i -> t(c(i))
    end
    """
    if not any(Groups.of(t) is not None for t in subterms(term, Reduce)):
        return term
    result = result_of(term)
    apart = _Apart({*result.params, *(var for var, _ in result.bindings)})
    for var, value in result.bindings:
        apart.bindings.append((var, apart(value)))
    outputs = tuple(map(apart, result.outputs))
    return Lam(result.params, let(apart.bindings, Tuple(outputs) if result.tupled else outputs[0]))


class _Apart:
    """Takes reductions by groups out of terms; `bindings` are the definitions so far, of which `known` are read."""

    def __init__(self, known: Collection[Var]) -> None:
        self.known = set(known)
        self.bindings: list[tuple[Var, Term]] = []
        self.walk = Traverser(self._replaced)

    def __call__(self, t: Term) -> Term:
        match t:
            case Lam(_, Reduce(kind) as body) if kind in GROUPED and (found := Groups.of(body)) is not None:
                # a definition of it may stay
                return t if found.is_for_all else self.walk(t)
            case _:
                return self.walk(t)

    def _replaced(self, t: Term) -> Term:
        match t:
            case Reduce(kind) if kind in GROUPED and (found := Groups.of(t)) is not None and self._is_apart(found):
                return self._reduced(found, kind, found.groups)
            case App(Reduce("softmax" | "ties") as shares, args) if (found := Groups.of(shares)) is not None:
                return self._share(found, args) if self._is_apart(found) else t
            case _:
                return t

    def _is_apart(self, found: Groups) -> bool:
        """Whether the numbers depend on nothing that changes around them, but on indices."""
        return all(isinstance(v.kind, Index) or v in self.known for v in found.outer)

    def _share(self, found: Groups, args: Sequence[Term]) -> Term:
        """The share of the entry at a place in its own group, and nothing where it is in another one."""
        at = dict(zip(found.indices, args, strict=True))
        here = replace(
            found,
            entries=tuple(substitute(e, at) for e in found.entries),
            conditions=tuple(c.at(at) for c in found.conditions),
        )
        if found.kind == "softmax":
            return here.where(found.groups, self._array(found, found.indices, partial(_own_share, found), args))
        # what is made of the entry's own group depends on the entry alone
        weight, body = substitute(found.weight, at), substitute(found.body, at)
        share = compared(body, "==", self._reduced(found, "maximum", here.entries), weight)
        largest = compared(found.body, "==", self._reduced(found, "maximum", found.entries), found.weight)
        count = self._of_groups(found, lambda g: total(found.indices, found.where(g, largest)), here.entries)
        return here.where(found.groups, mul(share, power(count, MINUS_ONE)))

    def _reduced(self, found: Groups, kind: str, groups: Sequence[Term]) -> Term:
        """The reduction for some groups, as an entry of the array for all of them."""
        return self._of_groups(found, lambda own: found.over(kind, own), groups)

    def _of_groups(self, found: Groups, of: Callable[[Sequence[Term]], Term], groups: Sequence[Term]) -> Term:
        return self._array(found, [fresh("g", e.type) for e in found.entries], of, groups)

    def _array(
        self, found: Groups, own: Sequence[Var], of: Callable[[Sequence[Term]], Term], at: Sequence[Term]
    ) -> Term:
        """An entry of the array of what is made `of` each of its own indices, for all indices around the reduction."""
        outer = sorted((v for v in found.outer if v not in self.known), key=lambda v: v.uid)
        every = [fresh(v.name, v.kind) for v in own]
        inside = [fresh(v.name, v.kind) for v in outer]
        value = Lam((*every, *inside), substitute(of(every), dict(zip(outer, inside, strict=True))))
        var = next((v for v, known in self.bindings if alpha_equal(known, value)), None)
        if var is None:
            var = fresh("t", Map(tuple(p.kind for p in value.params), REAL))
            self.known.add(var)
            self.bindings.append((var, value))
        return App(var, (*at, *outer))


def _own_share(found: Groups, place: Sequence[Term]) -> Term:
    """The share of the entry at a place in its own group."""
    at = dict(zip(found.indices, place, strict=True))
    return App(found.over("softmax", [substitute(e, at) for e in found.entries]), tuple(place))
