"""Sums over some indices of a product that are made first, so that what is read at computed places is small.

    Σ_{k, f, i} δ(k + s(f), x, a(k, i) b(f, i))   becomes   Σ_f t(x − s(f), f), with t(k, f) = Σ_i a(k, i) b(f, i)
    Σ_{f, i} a(x − s(f), i) b(f, i)               becomes   the same

So t is a product of matrices, or a fast transform of each row of b, where a(x − s(f), i) would be a table over three
indices that no product is faster with.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from math import prod
from typing import TypeAlias

from combdiff.arrays.lower.arrays import domain_of
from combdiff.arrays.plan import Step
from combdiff.terms.conditions.guards import Finite, FiniteValues, condition_of
from combdiff.terms.terms import (
    Add,
    App,
    Call,
    Conj,
    Delta,
    Indicator,
    Lam,
    Mul,
    Term,
    Var,
    call,
    conj,
    exchanged,
    factors_of,
    fresh,
    holds_entries,
    mul,
    substitute,
    subterms,
    total,
)
from combdiff.terms.types import Domain, Index, Map

Apart: TypeAlias = Callable[[Sequence[Var], Term, bool], Term | None]


class SumsFirst(ABC):
    """The part of a lowering that makes such sums."""

    known: dict[Term, Step]
    sizes: dict[Domain, int]
    partial: set[Var]
    finite: Finite

    def __init__(self, program: Term) -> None:
        self.reads_places = any(holds_entries(a) for u in subterms(program, App) for a in u.args)

    @abstractmethod
    def array(self, t: Term) -> Step:
        """A tensor whose axes are its slots."""

    def before_solving(self, by: Mapping[Var, Term], inner: Sequence[Var], rest: Term) -> tuple[Term, set[Var]]:
        """What is under a δ that says what an index is `by` others, with sums over `inner` indices; and these."""
        if len(by) > 1:
            return rest, set()
        ((v, at),) = by.items()
        is_table = holds_entries(at) and not isinstance(at, App)

        def apart(own: Sequence[Var], product: Term, nested: bool) -> Term | None:
            after = _indices(substitute(product, by)).difference(own)
            return self._apart(own, product, after, is_table and (nested or v in product.free))

        return summed_first(inner, rest, apart)

    def before_reading(self, summed: Sequence[Var], body: Term) -> Term | None:
        """A sum of a product with entries at computed places as one of sums of products; None where there is none."""
        if not self.reads_places or not summed:
            return None
        places = _computed(body)
        if not places:
            return None

        def apart(own: Sequence[Var], product: Term, nested: bool) -> Term | None:
            read = _computed(product)
            if len(read) != 1:
                return None
            ((at, slot),) = read.items()
            v = fresh("k", slot)
            found = self._apart(own, exchanged(product, {at: v}), _indices(product).difference(own), True)
            return found and substitute(found, {v: at})

        inner = [v for v in summed if not any(v in at.free for at in places)]
        found, done = summed_first(inner, body, apart)
        return total([v for v in summed if v not in done], found) if done else None

    def _apart(self, own: Sequence[Var], product: Term, grown: Collection[Var], is_table: bool) -> Term | None:
        """A sum as an entry of an array of its own, if it has fewer entries than one over the indices in `grown`.

        Of as many it is one if they are read from a table. A sum over k of entries at i + k is none else: with those of
        other directions it is a contraction with windows.
        """
        if not is_table and _adds(own, product):
            return None
        around = sorted(_indices(product).difference(own), key=lambda u: u.uid)
        before, after = (prod(domain_of(u).extent(self.sizes) for u in us) for us in (around, grown))
        if before > after or (before == after and not is_table) or not _FiniteValues()(product):
            return None
        array = fresh("t", Map(tuple(u.kind for u in around), product.type))
        self.known[array] = self.array(Lam(tuple(around), total(own, product)))
        if not self.finite(product):
            self.partial.add(array)
        return App(array, tuple(around))


class _FiniteValues(FiniteValues):
    """Whether a value is finite: that of |z| and of z/|z| is, though their slopes need not be."""

    def is_total(self, t: Term) -> bool:
        """Whether the outermost operation of t is finite wherever its operands are."""
        return super().is_total(t) or (isinstance(t, Call) and t.primitive in ("abs", "sign"))


def _computed(t: Term) -> dict[Term, Index]:
    """The places, with their slots, at which entries are read, if entries of arrays of integers are added up there."""
    found: dict[Term, Index] = {}
    for u in subterms(t, App):
        kind = u.function.type
        for at, slot in zip(u.args, kind.params, strict=True) if isinstance(kind, Map) and kind.is_array else ():
            if isinstance(slot, Index) and not isinstance(at, App) and holds_entries(at) and at.free <= t.free:
                found[at] = slot
    return found


def _adds(own: Sequence[Var], t: Term) -> bool:
    """Whether entries are read at sums with one of some indices."""
    places = (a for u in subterms(t, App) for a in u.args if isinstance(a, Add))
    return any(not a.free.isdisjoint(own) for a in places)


def _indices(t: Term) -> set[Var]:
    return {v for v in t.free if isinstance(v.kind, Index)}


def summed_first(
    inner: Sequence[Var], t: Term, apart: Callable[[Sequence[Var], Term, bool], Term | None], nested: bool = False
) -> tuple[Term, set[Var]]:
    """A term with sums over `inner` indices for products in it, and over which of these it is then summed.

    The products are of factors that share such indices, also within conditions and real parts, where they are
    `nested`. `apart` says what stands for the sum of such a product, if anything does.
    """
    inner = [v for v in inner if v in t.free]
    if not inner:
        return t, set()
    match t:
        case Mul() if len(parts := _sharing(inner, factors_of(t))) > 1:
            made = [summed_first(inner, part, apart, nested) for part in parts]
            return mul(*(u for u, _ in made)), set().union(*(done for _, done in made))
        case Indicator(left, right, body) | Delta(left, right, body) if not _mention(inner, left, right):
            body, done = summed_first(inner, body, apart, True)
            return condition_of(t).over(body), done
        case Conj(u):
            u, done = summed_first(inner, u, apart, True)
            return conj(u), done
        case Call("real" | "imag" as part, (u,)):
            u, done = summed_first(inner, u, apart, True)
            return call(part, u), done
        case _:
            of_all = apart(inner, t, nested)
            return (t, set()) if of_all is None else (of_all, set(inner))


def _mention(inner: Collection[Var], *sides: Term) -> bool:
    return any(not side.free.isdisjoint(inner) for side in sides)


def _sharing(inner: Collection[Var], factors: Sequence[Term]) -> list[Term]:
    """The products of factors that share an inner index, and the product of those that have none."""
    groups: list[tuple[set[Var], list[Term]]] = [(set(), [])]
    for f in factors:
        own = f.free.intersection(inner)
        met = [g for g in groups[1:] if own & g[0]] if own else [groups[0]]
        groups = [g for g in groups if g not in met] if own else groups[1:]
        joined = set(own).union(*(g[0] for g in met)), [*(u for g in met for u in g[1]), f]
        groups = [*groups, joined] if own else [joined, *groups]
    return [mul(*own) for _, own in groups if own]
