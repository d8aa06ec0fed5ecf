"""Recognises cumulative sums: a guard compares the summed index with an index that the summand does not have.

    Σ_j [j ≤ i] a(j) b(i)        b(i) times the cumulative sum of a
    Σ_j [i + 1 ≤ j] a(j)         the same backwards, without the entry itself
    Σ_ij [j ≤ i] a(j) b(i)       the inner product of b and of that

A mask over i and j takes the square of the work and of the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from combdiff.arrays.lower.arrays import domain_of
from combdiff.records import dataclass
from combdiff.simplify.graph.running import BLAS
from combdiff.terms.conditions.guards import Condition, Finite, Guard, condition_of, under
from combdiff.terms.conditions.ordering import existing, form_of
from combdiff.terms.terms import ONE, Conj, Indicator, Mul, Term, Var, conj, mul, total
from combdiff.terms.types import Domain, Index

_PASSES = 4  # over memory


@dataclass(frozen=True, slots=True)
class Cumulative:
    """Σ_rest factor(bound) · Σ_along [condition] summand(along).

    `along` goes up to the place of `bound` less `lag`; `reverse` from the place of `bound` and `lag` on.
    """

    condition: Condition
    along: Var
    bound: Var
    lag: int
    reverse: bool
    summand: Term
    factor: Term
    rest: tuple[Var, ...]

    @property
    def met(self) -> Guard:
        """For which values of `bound` there is the value of `along` that its sum ends with."""
        return existing((replace(self.condition, equal=True),), {self.along})

    def time(self, sizes: Mapping[Domain, int]) -> float:
        """About how long it takes: the summand is made, moved, added up and used."""
        return _PASSES * prod(sizes[domain_of(v)] for v in _indices(self.summand))

    def time_of_mask(self, sizes: Mapping[Domain, int], finite: bool) -> float:
        """About how long products of matrices with a mask over both indices take.

        A summand that may not be `finite` is chosen, for all indices at once, and not multiplied by 0.
        """
        others = [v for v in _indices(self.summand) if v != self.along]
        shared, free = (prod(sizes[domain_of(v)] for v in others if (v in self.rest) == s) for s in (True, False))
        each = _PASSES + BLAS * (shared + free) if finite else _PASSES * shared * free
        return sizes[domain_of(self.along)] * sizes[domain_of(self.bound)] * each


def cumulative(
    summed: Sequence[Var], body: Term, sizes: Mapping[Domain, int], finite: Callable[[Term], bool] | None = None
) -> Cumulative | None:
    """How Σ_summed body is made of a cumulative sum, if it is, and if that is less work than a product with a mask.

    What is not `finite` stays under the conditions that it stands under.

    >>> from combdiff.terms.terms import App, fresh, indicator
    >>> from combdiff.terms.types import REAL, Index, Map
    >>> n = Index(Domain("n"))
    >>> i, j, x = fresh("i", n), fresh("j", n), fresh("x", Map((n,), REAL))
    >>> found = cumulative([j], indicator(j, i, App(x, (j,))), {n.domain: 9})
    >>> found.along == j, found.bound == i, found.lag, found.reverse
    (True, True, 0, False)
    """
    factors, finite = tuple(_guarded_factors(body)), finite or Finite()
    conditions = dict.fromkeys(c for guard, _ in factors for c in guard)
    found = [c for condition in conditions for c in _cumulative(summed, condition, factors, finite)]
    best = min(found, key=lambda c: c.time(sizes), default=None)
    if best is None or best.time(sizes) > best.time_of_mask(sizes, finite(best.summand)):
        return None
    return best


def _guarded_factors(t: Term, around: Guard = ()) -> Iterator[tuple[Guard, Term]]:
    """What a term is a product of, with the conditions that each factor stands under."""
    match t:
        case Mul(factors):
            for f in factors:
                yield from _guarded_factors(f, around)
        case Indicator():
            yield from _guarded_factors(t.body, (*around, condition_of(t)))
        case Conj(u):
            yield from ((guard, conj(f)) for guard, f in _guarded_factors(u, around))
        case _:
            yield around, t


def _cumulative(
    summed: Sequence[Var],
    condition: Condition,
    factors: Sequence[tuple[Guard, Term]],
    finite: Callable[[Term], bool],
) -> Iterator[Cumulative]:
    """Each way to sum over one of the two indices that a condition compares."""
    further = [c for c in dict.fromkeys(c for guard, _ in factors for c in guard) if c != condition]
    for along, bound, lag, reverse in _compared(condition):
        bounds = [c for c in further if along in c.free]
        kept = [along in f.free or (not finite(f) and any(c in bounds for c in guard)) for guard, f in factors]
        own = [f for (_, f), inside in zip(factors, kept, strict=True) if inside]
        summand = under(bounds, mul(*own))
        if along not in summed or along not in summand.free or bound in summand.free:
            continue
        others = [pair for pair, inside in zip(factors, kept, strict=True) if not inside]
        beside = mul(*(f for guard, f in others if condition not in guard))
        inside = mul(*(f for guard, f in others if condition in guard))
        if inside != ONE:
            # where nothing is added, what stands beside it under the guard may be no number
            inside = under(existing((condition,), {along}), inside)
        factor = under([c for c in further if c not in bounds], mul(beside, inside))
        rest = tuple(v for v in summed if v != along)
        within = tuple(v for v in rest if v != bound and v not in factor.free)
        rest = tuple(v for v in rest if v not in within)
        yield Cumulative(condition, along, bound, lag, reverse, total(within, summand), factor, rest)


def _compared(condition: Condition) -> Iterator[tuple[Var, Var, int, bool]]:
    """The indices of j + c ≤ i, either as the one that is summed over, and how far apart their places are."""
    form = form_of(condition)
    if form is None or sorted(form.coefficients.values()) != [-1, 1]:
        return
    less, more = sorted(form.coefficients, key=form.of)
    if isinstance(less, Var) and isinstance(more, Var):
        lag = int(-form.constant) + _first(less) - _first(more)
        if lag >= 0:
            yield less, more, lag, False
            yield more, less, lag, True


def _first(v: Var) -> int:
    """The least value of an index."""
    return domain_of(v).lower or 0


def _indices(t: Term) -> Iterator[Var]:
    return (v for v in t.free if isinstance(v.kind, Index))
