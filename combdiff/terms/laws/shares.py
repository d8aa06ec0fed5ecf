"""Shares of a whole: they are 1 together, Σ_i softmax(x)_i = 1, and 0 where they do not take part.

Those of a range are 1 together if it has an index that takes part. Of none they are 0 together.

    sum(s, softmax(u, u <= t, A(t, u))(s))                 is   1, as t takes part
    where(s <= t, v(s) * softmax(u, u <= t, A(t, u))(s))   is   v(s) * softmax(u, u <= t, A(t, u))(s)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice, product

from combdiff.terms.conditions.choices import is_guard
from combdiff.terms.conditions.guards import Condition, Finite, Guard, both, condition_of, held, reads_beyond, under
from combdiff.terms.conditions.ordering import implies
from combdiff.terms.network import conditions_apart
from combdiff.terms.nodes import SHARES
from combdiff.terms.terms import (
    ONE,
    App,
    Const,
    Delta,
    Indicator,
    Lam,
    Mul,
    Pow,
    Reduce,
    Sum,
    Term,
    Traverser,
    Var,
    factors_of,
    mul,
    substitute,
    subterms,
    total,
)
from combdiff.terms.types import Domain, Index

_PLACES = 64  # so many choices of indices are tried


def with_whole_shares(t: Term, known: Collection[Domain] = ()) -> Term:
    """`t` with 1 for sums of all shares over ranges that have an index: those of `known`, and of free variables.

    >>> from combdiff.terms.terms import fresh, reduction
    >>> from combdiff.terms.types import REAL, Map
    >>> n = Index(Domain("n"))
    >>> i, j, x = fresh("i", n), fresh("j", n), fresh("x", Map((n,), REAL))
    >>> share = reduction("softmax", [i], ONE, App(x, (i,)))
    >>> whole = Sum((j,), App(share, (j,)))
    >>> with_whole_shares(whole, [n.domain]) == ONE, with_whole_shares(whole) == whole
    (True, True)
    """
    filled = {*known, *(d for v in t.free if isinstance(v.kind, Index) and (d := v.kind.domain) is not None)}
    return Traverser(lambda u: _whole(u, filled) if isinstance(u, Sum) else u, Reduce)(t) if filled else t


def _whole(t: Sum, filled: Collection[Domain]) -> Term:
    """A sum without the shares in it of which all are added up."""
    factors = [g for f in factors_of(t.body) for u in conditions_apart(f) for g in factors_of(u)]
    for f in factors:
        match f:
            case App(Reduce(kind) as shares, args) if kind in SHARES and _is_of_some(shares):
                others = [g for g in factors if g is not f]
                own = {v for v in args if isinstance(v, Var) and v in t.indices}
                alone = own.isdisjoint(v for u in (shares, *others) for v in u.free)
                filled_all = all(_is_filled(v, i, filled) for v, i in zip(args, shares.indices, strict=True))
                if alone and filled_all and len(own) == len(args):
                    return total([v for v in t.indices if v not in own], mul(*others))
    return t


def _is_of_some(shares: Reduce) -> bool:
    """Whether something takes part wherever there is an index: all, or what an index of the condition stands for."""
    if shares.mark == ONE:
        return True
    free = [v for v in shares.mark.free if isinstance(v.kind, Index)]
    known = [[v for v in free if v.type == i.kind] for i in shares.indices]
    places = islice(product(*known), _PLACES)
    return any(substitute(shares.mark, dict(zip(shares.indices, at, strict=True))) == ONE for at in places)


def _is_filled(index: Term, of: Var, filled: Collection[Domain]) -> bool:
    """Whether an index runs over the whole range of another one, which has an index."""
    return index.type == of.kind and isinstance(of.kind, Index) and of.kind.domain in filled


# --- the conditions of shares ---------------------------------------------------------------------------------------


def asked_once(
    terms: Iterable[Term], partial: Collection[Var] = (), bindings: Iterable[tuple[Var, Term]] = ()
) -> list[Term]:
    """The terms without conditions that the sum of a share in them has, if what they guard besides is finite.

    `partial` are definitions that may be infinite; `bindings` are definitions, some of shares perhaps.

    >>> from combdiff.terms.terms import fresh, indicator, reduction
    >>> from combdiff.terms.types import REAL, Map
    >>> n = Index(Domain("n"))
    >>> i, j, k, x = fresh("i", n), fresh("j", n), fresh("k", n), fresh("x", Map((n,), REAL))
    >>> share = App(reduction("softmax", [j], indicator(j, i, ONE), indicator(j, i, App(x, (j,)))), (k,))
    >>> asked_once([indicator(k, i, share)]) == [share]
    True
    """
    terms = list(terms)
    if not any(map(is_guard, (u for t in terms for u in subterms(t, Indicator, Delta)))):
        return terms
    named: dict[Var, tuple[tuple[Var, ...], Guard]] = {}
    conditions = _Conditions(named, Finite(partial))
    for var, value in bindings:
        if isinstance(value, Lam) and (found := conditions.of(value.body)):
            named[var] = value.params, found
    once = Traverser(conditions.once, Indicator, Delta)
    return [once(t) if named or any(u.kind in SHARES for u in subterms(t, Reduce)) else t for t in terms]


class _Conditions:
    """The conditions without which shares, and products with them, are 0."""

    def __init__(self, named: Mapping[Var, tuple[tuple[Var, ...], Guard]], finite: Finite) -> None:
        self.named = named
        self.finite = finite

    def once(self, t: Term) -> Term:
        """A node without a condition that a share in it has."""
        match t:
            case Mul(factors) if not isinstance(t.type, Index):
                for n, f in enumerate(factors):
                    others = [*factors[:n], *factors[n + 1 :]]
                    if (made := self.without([c for g in others for c in self.of_share(g)], f)) is not f:
                        return self.once(mul(*others, made))
                return t
            case Indicator() | Delta():
                return self.without(self.of(_opened(t)[1]), t)
            case _:
                return t

    def of(self, t: Term) -> Guard:
        """The conditions without which a number is 0: those of shares beside which all is finite."""
        match t:
            case Sum(indices, body):
                return tuple(c for c in self.of(body) if c.free.isdisjoint(indices))
            case _:
                found = both((), (c for f in factors_of(t) for c in self.of_share(f)))
                return found if found and self.is_finite(t) else ()

    def of_share(self, t: Term) -> Guard:
        """The conditions without which a share, or a power of one, is 0."""
        match t:
            case Pow(base, Const(n, imag)) if n > 0 and not imag:
                return self.of_share(base)
            case App(Reduce(kind) as shares, args) if kind in SHARES and _fill(args, shares.indices):
                return _at(shares.indices, args, held(shares.mark)[0])
            case App(Var() as v, args) if v in self.named and _fill(args, self.named[v][0]):
                return _at(self.named[v][0], args, self.named[v][1])
            case _:
                return ()

    def is_finite(self, t: Term) -> bool:
        """Whether all factors are finite but shares: where one of them is no number, none of its sum is."""
        return all(self.finite(f) or self.of_share(f) for f in factors_of(t))

    def without(self, held: Sequence[Condition], t: Term) -> Term:
        """What stands under conditions, without those without which something beside it, or in it, is 0."""
        conditions, core = _opened(t)
        kept = [c for c in conditions if not any(implies(h, c) for h in held)]
        if len(kept) == len(conditions) or not self.is_finite(core):
            return t
        made = under(kept, core)
        return t if reads_beyond(made) else made


def _opened(t: Term) -> tuple[Sequence[Condition], Term]:
    """The conditions that stand directly under one another, and what they guard."""
    conditions: list[Condition] = []
    while is_guard(t):
        conditions.append(condition_of(t))
        t = t.body
    return conditions, t


def _fill(args: Sequence[Term], slots: Sequence[Var]) -> bool:
    """Whether indices are surely in the ranges of slots."""
    return all(isinstance(a, Var) and a.type == v.kind for a, v in zip(args, slots, strict=True))


def _at(slots: Sequence[Var], args: Sequence[Term], conditions: Guard) -> Guard:
    at = dict(zip(slots, args, strict=True))
    return tuple(c.at(at) for c in conditions)
