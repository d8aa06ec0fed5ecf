"""Recognises extrema up to an index, and sums over the shares that entries have in them.

    maximum(s, s <= t, x(s))                          np.maximum.accumulate(x), for each t
    Σ_t c(t) ties(s1, s1 <= t, x(s1))(s)              for each s in one pass over c and x
    Σ_s v(s) ties(s1, s1 <= t, x(s1))(s)              for each t in one pass over v and x

A mask over s and t takes the square of the work and of the memory.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from combdiff.arrays.lower.arrays import domain_of
from combdiff.arrays.lower.cumulative import Cumulative, cumulative_logarithm, guarded_factors
from combdiff.records import dataclass
from combdiff.terms.conditions.guards import Condition, Guard, under
from combdiff.terms.conditions.ordering import existing
from combdiff.terms.terms import ONE, App, Reduce, Term, Var, mul, total
from combdiff.terms.types import Domain

_SHORT = 64
"""Below so many entries, a table of all pairs takes less time than the pass."""


@dataclass(frozen=True, slots=True)
class Tied:
    """Σ_rest factor · Σ weight · share of the entry `at` in the maximum up to an index, as `up` says.

    The inner sum is over that index, and for each entry, if it is `back`; else it is over the entries, for each index.
    """

    up: Cumulative
    at: Var
    weight: Term
    factor: Term
    rest: tuple[Var, ...]
    back: bool


def running_extremum(t: Reduce) -> Cumulative | None:
    """How a maximum or a minimum is one up to an index, or from one on, if it is; its `exponent` are the numbers."""
    return cumulative_logarithm(t) if t.kind in ("maximum", "minimum") else None


def tied(summed: Sequence[Var], body: Term, sizes: Mapping[Domain, int]) -> Tied | None:
    """How Σ_summed body is a sum over shares in running maxima, if it is.

    >>> from combdiff.terms.terms import fresh, indicator, reduction
    >>> from combdiff.terms.types import REAL, Index, Map
    >>> n = Index(Domain("n"))
    >>> t, s, s1 = (fresh(name, n) for name in ("t", "s", "s1"))
    >>> c, x = (fresh(name, Map((n,), REAL)) for name in "cx")
    >>> share = App(reduction("ties", (s1,), indicator(s1, t, ONE), App(x, (s1,))), (s,))
    >>> found = tied([t], mul(App(c, (t,)), share), {n.domain: 1000})
    >>> found.at == s, found.back, found.weight == App(c, (t,)), found.factor == ONE
    (True, True, True, True)
    """
    factors = [*guarded_factors(body)]
    for n, (guard, share) in enumerate(factors):
        match share:
            case App(Reduce("ties") as t, (Var() as at,)):
                found = _tied(summed, t, at, guard, [*factors[:n], *factors[n + 1 :]], sizes)
                if found is not None:
                    return found
    return None


def _tied(
    summed: Sequence[Var],
    t: Reduce,
    at: Var,
    guard: Guard,
    others: Sequence[tuple[Guard, Term]],
    sizes: Mapping[Domain, int],
) -> Tied | None:
    up = cumulative_logarithm(t)
    if up is None or up.summand != ONE or at in t.free or sizes.get(domain_of(up.along), 0) < _SHORT:
        return None
    domain = domain_of(up.along)
    if domain != domain_of(up.bound) or domain != domain_of(at) or not domain.plain:
        return None
    back = up.bound in summed
    over, other = (up.bound, at) if back else (at, up.bound)
    # an entry that takes no part has no share
    own = up.condition.at({up.along: at})
    if over not in summed or any(c != own for c in guard):
        return None
    beside = {other, *t.free.intersection(summed)} - {over}
    within = _summed_before(summed, [f for _, f in others], over, beside)
    inner = [pair for pair in others if not pair[1].free.isdisjoint({over, *within})]
    weight = _product(inner, own, other)
    factor = _product([pair for pair in others if pair not in inner], own, over)
    if other in weight.free or over in factor.free:
        return None
    rest = tuple(v for v in summed if v != over and v not in within)
    return Tied(up, at, total(within, weight), factor, rest, back)


def _summed_before(summed: Sequence[Var], factors: Sequence[Term], over: Var, beside: Collection[Var]) -> list[Var]:
    """The indices that the weights are summed over before: those that nothing has which stands beside the weights."""
    mine = [v for v in summed if v != over and v not in beside and any({over, v} <= f.free for f in factors)]
    return [v for v in mine if all(f.free.isdisjoint(beside) for f in factors if v in f.free)]


def _product(factors: Sequence[tuple[Guard, Term]], own: Condition, other: Var) -> Term:
    """A product, of which what stands under the condition of the shares is made where one of them meets it."""
    beside = mul(*(under(guard, f) for guard, f in factors if own not in guard))
    inside = mul(*(under([c for c in guard if c != own], f) for guard, f in factors if own in guard))
    return mul(beside, under(existing((own,), {other}), inside)) if inside != ONE else beside
