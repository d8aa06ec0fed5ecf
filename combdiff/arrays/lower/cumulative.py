"""Recognises cumulative sums: a guard compares the summed index with an index that the summand does not have.

    Σ_j [j ≤ i] a(j) b(i)        b(i) times the cumulative sum of a
    Σ_j [i + 1 ≤ j] a(j)         the same backwards, without the entry itself
    Σ_ij [j ≤ i] a(j) b(i)       the inner product of b and of that
    log Σ_j [j ≤ i] exp(x(j))    a cumulative logsumexp, L(i)
    Σ_i [j ≤ i] exp(x(j) − L(i)) exp(x(j) + the cumulative logsumexp of −L backwards): nothing overflows

A mask over i and j takes the square of the work and of the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from combdiff.arrays.lower.arrays import domain_of
from combdiff.records import dataclass
from combdiff.simplify.graph.running import BLAS, CALL
from combdiff.terms.branches import at_least_zero
from combdiff.terms.conditions.guards import Condition, Finite, Guard, condition_of, under, unguarded
from combdiff.terms.conditions.ordering import existing, form_of
from combdiff.terms.terms import (
    ONE,
    ZERO,
    Add,
    App,
    Call,
    Conj,
    Indicator,
    Lam,
    Mul,
    Reduce,
    Term,
    Var,
    add,
    conj,
    mul,
    neg,
    reduction,
    sub,
    substitute,
    subterms,
    terms_of,
    total,
)
from combdiff.terms.types import Domain, Index, is_complex

_PASSES = 4  # over memory


@dataclass(frozen=True, slots=True)
class Cumulative:
    """Σ_rest factor(bound) · Σ_along [condition] summand(along) exp(exponent(along) + level(bound)).

    `along` goes up to the place of `bound` less `lag`; `reverse` from the place of `bound` and `lag` on. Without an
    exponent there are no exponentials.
    """

    condition: Condition
    along: Var
    bound: Var
    lag: int
    reverse: bool
    summand: Term
    factor: Term
    rest: tuple[Var, ...]
    exponent: Term | None = None
    level: Term = ZERO

    @property
    def met(self) -> Guard:
        """For which values of `bound` there is the value of `along` that its sum ends with."""
        return existing((replace(self.condition, equal=True),), {self.along})

    def time(self, sizes: Mapping[Domain, int]) -> float:
        """About how long it takes: the summand is made, moved, added up and used."""
        return self._passes * prod(sizes[domain_of(v)] for v in self._indices)

    def time_of_mask(self, sizes: Mapping[Domain, int], finite: bool) -> float:
        """About how long products of matrices with a mask over both indices take.

        A summand that may not be `finite` is chosen, for all indices at once, and not multiplied by 0; exponentials are
        made for all of them.
        """
        others = [v for v in self._indices if v != self.along]
        shared, free = (prod(sizes[domain_of(v)] for v in others if (v in self.rest) == s) for s in (True, False))
        at_once = not finite or self.exponent is not None
        each = self._passes * shared * free if at_once else self._passes + BLAS * (shared + free)
        return sizes[domain_of(self.along)] * sizes[domain_of(self.bound)] * each

    @property
    def _passes(self) -> int:
        return _PASSES if self.exponent is None else _PASSES * CALL

    @property
    def _indices(self) -> list[Var]:
        free = self.summand.free | (self.exponent.free if self.exponent is not None else frozenset())
        return [v for v in free if isinstance(v.kind, Index)]


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
    factors, finite = tuple(guarded_factors(body)), finite or Finite()
    conditions = dict.fromkeys(c for guard, _ in factors for c in guard)
    found = [c for condition in conditions for c in _cumulative(summed, condition, factors, finite)]
    best = min(found, key=lambda c: c.time(sizes), default=None)
    if best is None or best.time(sizes) > best.time_of_mask(sizes, finite(best.summand)):
        return None
    return best


def shares_apart(
    summed: Sequence[Var], body: Term, sizes: Mapping[Domain, int], finite: Callable[[Term], bool]
) -> Term | None:
    """Σ_j p(i, j) (a(i) − b(j)) as two sums, where p are shares in sums up to an index and each is a cumulative one."""
    factors = list(guarded_factors(body))
    if not any(_is_share(f) for _, f in factors):
        return None
    for n, (_, f) in enumerate(factors):
        if isinstance(f, Add):
            others = [under(guard, g) for m, (guard, g) in enumerate(factors) if m != n]
            parts = [mul(*others, u) for u in terms_of(f)]
            if all(_is_made_up(summed, part, sizes, finite) for part in parts):
                return add(*(total(summed, part) for part in parts))
    return None


def _is_made_up(summed: Sequence[Var], body: Term, sizes: Mapping[Domain, int], finite: Callable[[Term], bool]) -> bool:
    """Whether a sum is a cumulative one, or is made of such ones."""
    return any(made(summed, body, sizes, finite) is not None for made in (cumulative, shares_apart))


def cumulative_logarithm(t: Reduce) -> Cumulative | None:
    """How log Σ_j [j ≤ i] w(j) exp(x(j)) is a cumulative one, if it is."""
    conditions, weight = unguarded(t.mark)
    guard, exponent = unguarded(t.body)
    for condition in conditions if len(t.indices) == 1 and at_least_zero(weight) else ():
        rest = [c for c in conditions if c != condition]
        exponent_there = under([c for c in guard if c not in conditions], exponent)
        for along, bound, lag, reverse in _compared(condition):
            summand = under(rest, weight)
            if (along,) == t.indices and bound not in summand.free | exponent_there.free:
                return Cumulative(condition, along, bound, lag, reverse, summand, ONE, (), exponent_there)
    return None


def is_running_share(value: Term) -> bool:
    """Whether a value is the share, of each entry, in a sum of exponentials up to an index, or from one on."""
    match value:
        case Lam((_, _, *_), App(Reduce("softmax") as shares, _)):
            return cumulative_logarithm(shares) is not None
        case Lam((_, _, *_), body):
            return _is_share(body)
        case _:
            return False


def guarded_factors(t: Term, around: Guard = ()) -> Iterator[tuple[Guard, Term]]:
    """What a term is a product of, with the conditions that each factor stands under."""
    match t:
        case Mul(factors):
            for f in factors:
                yield from guarded_factors(f, around)
        case Indicator():
            yield from guarded_factors(t.body, (*around, condition_of(t)))
        case Conj(u):
            yield from ((guard, conj(f)) for guard, f in guarded_factors(u, around))
        case App(Reduce("softmax") as shares, (index,)) if at := {shares.indices[0]: index}:
            guard, weight = unguarded(substitute(shares.mark, at))
            if not guard:
                yield around, t
                return
            yield from guarded_factors(weight, (*around, *guard))
            logarithm = reduction("logsumexp", shares.indices, shares.mark, shares.body)
            yield (*around, *guard), Call("exp", (sub(substitute(unguarded(shares.body)[1], at), logarithm),))
        case _:
            yield around, t


def may_be_of_nothing(exponent: Term) -> bool:
    """Whether there may be no exponential in a sum whose logarithm is subtracted, which is then −∞."""
    found = (cumulative_logarithm(u) for u in subterms(exponent, Reduce) if u.kind == "logsumexp")
    return any(c is None or c.lag or c.met or Finite().least(c.summand) < 1 for c in found)


def _is_share(t: Term) -> bool:
    """Whether it is exp(e − log Σ exp(e)), where the sum goes up to an index, or from one on."""
    match t:
        case Call("exp", (Add(terms),)):
            return any(isinstance(u := neg(v), Reduce) and u.kind == "logsumexp" and u.mark != ONE for v in terms)
        case _:
            return False


def _cumulative(
    summed: Sequence[Var],
    condition: Condition,
    factors: Sequence[tuple[Guard, Term]],
    finite: Callable[[Term], bool],
) -> Iterator[Cumulative]:
    """Each way to sum over one of the two indices that a condition compares."""
    further = [c for c in dict.fromkeys(c for guard, _ in factors for c in guard) if c != condition]
    for along, bound, lag, reverse in _compared(condition):
        if along not in summed:
            continue
        shares = [f for _, f in factors if {along, bound} <= f.free and _is_share(f)]
        apart = _apart(shares, along, bound)
        if apart is None:
            continue
        exponent, level = apart
        bounds = [c for c in further if along in c.free]
        left = [pair for pair in factors if pair[1] not in shares]
        inner = _summed_inside(summed, [f for _, f in left], along, bound)
        kept = [
            along in f.free or not inner.isdisjoint(f.free) or (not finite(f) and any(c in bounds for c in guard))
            for guard, f in left
        ]
        own = [f for (_, f), inside in zip(left, kept, strict=True) if inside]
        summand = under(bounds, mul(*own))
        mine = summand.free if exponent is None else summand.free | exponent.free
        if along not in mine or bound in summand.free or (exponent is not None and is_complex(summand.type)):
            continue
        others = [pair for pair, inside in zip(left, kept, strict=True) if not inside]
        beside = mul(*(f for guard, f in others if condition not in guard))
        inside = mul(*(f for guard, f in others if condition in guard))
        if inside != ONE:
            # where nothing is added, what stands beside it under the guard may be no number
            inside = under(existing((condition,), {along}), inside)
        factor = under([c for c in further if c not in bounds], mul(beside, inside))
        rest = tuple(v for v in summed if v != along)
        outer = factor.free if exponent is None else factor.free | exponent.free | level.free
        within = tuple(v for v in rest if v != bound and v not in outer)
        rest = tuple(v for v in rest if v not in within)
        yield Cumulative(condition, along, bound, lag, reverse, total(within, summand), factor, rest, exponent, level)


def _summed_inside(summed: Sequence[Var], factors: Sequence[Term], along: Var, bound: Var) -> set[Var]:
    """The indices that are summed over beside what depends on `along`, for each of its values."""
    found = {v for f in factors if along in f.free for v in summed if v in f.free and v != along}
    return {v for v in found if all(bound not in f.free for f in factors if v in f.free)}


def _apart(shares: Iterable[Term], along: Var, bound: Var) -> tuple[Term | None, Term] | None:
    """The exponents of shares that depend on one index, and those that depend on the other; None if some has both."""
    terms = [u for share in shares if isinstance(share, Call) for u in terms_of(share.args[0])]
    if any(along in u.free and bound in u.free for u in terms):
        return None
    mine, others = ([u for u in terms if (along in u.free) == s] for s in (True, False))
    return (add(*mine), add(*others)) if terms else (None, ZERO)


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
