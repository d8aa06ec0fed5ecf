"""Brings terms of a sum over one denominator where they cancel there, as the quotient rule leaves them.

    v / (k + s) - v s / (k + s)^2   is   v k / (k + s)^2
    1 / sqrt(1 + x^2) - x^2 / sqrt(1 + x^2)^3   is   1 / sqrt(1 + x^2)^3

The first form loses digits where s is much larger than k. Ends: each step raises the power of a denominator,
which is never lowered again, up to the deepest one that there is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from itertools import permutations

from combdiff.records import dataclass
from combdiff.terms.arithmetic import opposite
from combdiff.terms.constructors import reduction
from combdiff.terms.network import factors_before_sums
from combdiff.terms.terms import (
    ONE,
    ZERO,
    Add,
    App,
    Call,
    Conj,
    Const,
    Indicator,
    Lam,
    Pow,
    Reduce,
    Sum,
    Term,
    Traverser,
    Tuple,
    Var,
    add,
    alpha_equal,
    conj,
    factors_of,
    holds,
    indicator,
    items_of,
    mul,
    power,
    refreshed,
    split_coefficient,
    substitute,
    terms_of,
    total,
)
from combdiff.terms.types import Index

Powers = dict[Term, Fraction]
NONE = Fraction(0)

MOST_TERMS = 8
"""Terms of a denominator, and of a numerator that is multiplied out."""

MOST_IN_A_SUM = 24
"""Terms of a sum in which pairs are looked for."""


def over_one_denominator(t: Term, values: Mapping[Var, Term] | None = None) -> Term:
    """`t` with terms of sums put together that differ by one power of a denominator, if fewer terms are left.

    A denominator may be one of the `values`, or its square root.

    >>> from combdiff.terms.terms import fresh, neg, number
    >>> from combdiff.terms.types import REAL
    >>> k, s = fresh("k", REAL), fresh("s", REAL)
    >>> q = add(k, s)
    >>> before = add(power(q, number(-1)), neg(mul(s, power(q, number(-2)))))
    >>> over_one_denominator(before) == mul(k, power(q, number(-2)))
    True
    """
    if not (holds(t, Pow) and holds(t, Add)):
        return t
    return Traverser(_Denominators(values or {}), Add)(_spelled_alike(t))


def _spelled_alike(t: Term) -> Term:
    """`t` with one spelling for maxima, norms and their like that differ in the names of bound indices alone.

    A vector and its negative have one norm.
    """
    known: dict[frozenset[Var], list[tuple[Term, Term]]] = {}

    def visit(u: Term) -> Term:
        if not isinstance(u, Reduce):
            return u
        alike = known.setdefault(u.free, [])
        ways = [u, reduction("norm", u.indices, u.mark, opposite(u.body))] if u.kind == "norm" else [u]
        found = next((spelled for v, spelled in alike for way in ways if alpha_equal(way, v)), None)
        if found is None:
            # with names of its own, as it may stand where the names of the first one are taken
            found = refreshed(u)
            alike.append((u, found))
        return found

    return Traverser(visit, Reduce)(t) if holds(t, Reduce) else t


@dataclass(frozen=True, slots=True)
class _Denominators:
    """Puts terms together; `values` are the definitions.

    Known are the factors of terms, what they are sums of, and the terms of denominators.
    """

    values: Mapping[Var, Term]
    read: dict[Term, tuple[list[Term], Powers]] = field(default_factory=dict)
    under: dict[Term, tuple[Term, tuple[Var, ...]]] = field(default_factory=dict)
    sums: dict[Term, tuple[Term, ...]] = field(default_factory=dict)
    unguarded: dict[Term, tuple[list[Term], Term]] = field(default_factory=dict)

    def __call__(self, t: Term) -> Term:
        if not isinstance(t, Add) or isinstance(t.type, Index) or len(t.terms) > MOST_IN_A_SUM:
            return t
        terms = list(t.terms)
        while (found := self._step(terms)) is not None:
            terms = [*terms_of(add(*found))]
        return add(*terms)

    def _step(self, terms: Sequence[Term]) -> list[Term] | None:
        """The terms with two of them put together."""
        for n, m in permutations(range(len(terms)), 2):
            together = self._together(terms[n], terms[m]) if holds(terms[m], Pow) else None
            if together is not None:
                return [*(u for k, u in enumerate(terms) if k not in (n, m)), together]
        return None

    def _together(self, shallow: Term, deep: Term) -> Term | None:
        """a / q + b / q² as (a q + b) / q², with what a and b have in common in front; under one sum as well.

        So are two under the same conditions.
        """
        (conditions, one), (same, other) = self._unguarded(shallow), self._unguarded(deep)
        if conditions and {*conditions} == {*same}:
            found = self._together(one, other)
            return None if found is None else _under(conditions, found, beside=factors_of(shallow))
        (above, shallower), (below, powers) = self._read(shallow), self._read(deep)
        for q, depth in powers.items():
            if shallower.get(q, NONE) == depth + 1 <= 0:
                found = _over(q, self.sums[q], above, below) if self._is_sum(q) else None
                if found is not None:
                    return found
        (one, over), (other, under) = self._under_sums(shallow), self._under_sums(deep)
        if not over or [i.kind for i in over] != [i.kind for i in under]:
            return None
        shallower, powers = (self._read(self._unguarded(t)[1])[1] for t in (one, other))
        depths = {depth for depth in powers.values() if depth < -1}
        if depths.isdisjoint(depth - 1 for depth in shallower.values()):
            return None
        pair = _spelled_alike(Tuple((one, substitute(other, dict(zip(under, over, strict=True))))))
        found = self._together(*items_of(pair))
        return None if found is None else total(over, found)

    def _unguarded(self, t: Term) -> tuple[list[Term], Term]:
        """The conditions on the factors of a term, each on 1, and the term without them."""
        if t not in self.unguarded:
            conditions, found, left = list[Term](), list[Term](), [*factors_of(t)]
            while left:
                match left.pop():
                    case Indicator(left=one, right=other, body=body):
                        conditions.append(Indicator(one, other, ONE))
                        left += () if body == ONE else factors_of(body)
                    case f:
                        found.append(f)
            self.unguarded[t] = conditions, mul(*found)
        return self.unguarded[t]

    def _under_sums(self, t: Term) -> tuple[Term, tuple[Var, ...]]:
        """What a term is the sum of, and over what."""
        if t not in self.under:
            factors, _ = self._read(t)
            sums = [f for f in factors if isinstance(f, Sum)]
            whole = mul(*(f for f in factors if f is not sums[0]), sums[0].body) if len(sums) == 1 else t
            self.under[t] = whole, sums[0].indices if len(sums) == 1 else ()
        return self.under[t]

    def _read(self, t: Term) -> tuple[list[Term], Powers]:
        """The factors of a term, and the powers of what they are powers of, square roots as halves."""
        if t not in self.read:
            factors = [*factors_of(mul(*map(_plain, factors_before_sums(t))))]
            powers: Powers = {}
            for q in dict.fromkeys(base for f in factors for base in _bases(f)):
                powers[q] = sum((_exponent(q, f) for f in factors), NONE)
            self.read[t] = factors, powers
        return self.read[t]

    def _is_sum(self, q: Term) -> bool:
        if q not in self.sums:
            self.sums[q] = _terms_of_sum(q, self.values)
        return bool(self.sums[q])


def _under(conditions: Sequence[Term], t: Term, beside: Collection[Term]) -> Term:
    """`t` under conditions, but for the factors that stand `beside` them, and numbers."""
    outside = [f for f in factors_of(t) if f in beside or isinstance(f, Const)]
    inside = mul(*(f for f in factors_of(t) if f not in outside))
    for c in reversed(conditions):
        assert isinstance(c, Indicator), "a condition"
        inside = indicator(c.left, c.right, inside)
    return mul(*outside, inside)


def _plain(f: Term) -> Term:
    """(1/(a + b))* as 1/(a* + b*)."""
    match f:
        case Conj(Pow(Add(terms), Const() as n)) if n.is_integer:
            return power(add(*map(_conjugated, terms)), n)
        case _:
            return f


def _conjugated(t: Term) -> Term:
    """(u v)* as u* v*, so that terms which are alike look alike."""
    return mul(*map(conj, factors_of(t)))


def _bases(f: Term) -> list[Term]:
    """What a factor is a power of, and what this is the square root of, if it is one."""
    base = f.base if isinstance(f, Pow) else f
    inner = _radicand(base)
    return [base] if inner is None else [inner, base]


def _radicand(t: Term) -> Term | None:
    return t.args[0] if isinstance(t, Call) and t.primitive == "sqrt" else None


def _terms_of_sum(q: Term, values: Mapping[Var, Term]) -> tuple[Term, ...]:
    """The terms of a sum with few terms, which may have a name; none if it is no such sum."""
    match q:
        case Var() if isinstance(values.get(q), Add):
            q = values[q]
        case App(Var() as f, args) if isinstance(value := values.get(f), Lam) and isinstance(value.body, Add):
            q = substitute(value.body, dict(zip(value.params, args, strict=True)))
    return q.terms if isinstance(q, Add) and len(q.terms) <= MOST_TERMS else ()


def _exponent(q: Term, f: Term) -> Fraction:
    """The power of q that a factor is, or of its square root."""
    base, n = (f.base, f.exponent) if isinstance(f, Pow) else (f, ONE)
    if not isinstance(n, Const):
        return NONE
    return n.real if base == q else n.real / 2 if _radicand(base) == q else NONE


def _over(q: Term, terms: Sequence[Term], above: Sequence[Term], below: Sequence[Term]) -> Term | None:
    is_whole = not any(_exponent(q, f) for f in above)
    depth = mul(*(f for f in below if _exponent(q, f)))
    above, below = ([f for f in fs if not _exponent(q, f)] for fs in (above, below))
    common, above, below = _shared(above, below)
    left, right = _multiplied_out(above), _multiplied_out(below)
    if left is None or right is None:
        return None
    raised = [mul(a, u) for a in left for u in terms]
    if not any(_are_alike(u, v) for u in raised for v in right):
        return None
    added = _added([*raised, *right])
    met = [t for t in added if t != ZERO]
    # a sum that is written out is written once less; 1 + x / (1 + x) stays, as nothing cancels
    is_shorter = isinstance(q, Add) and len(left) == 1 and len(met) < len(added)
    if not is_shorter and len(met) + is_whole > len(left) + len(right):
        return None
    return mul(*common, add(*met), depth)


def _shared(one: Sequence[Term], other: Sequence[Term]) -> tuple[list[Term], list[Term], list[Term]]:
    """What two products have in common, and what is left of each: of u v and u³, u, and v and u²."""
    common: list[Term] = []
    left, right = list(one), list(other)
    for f in one:
        base, n = _repeated(f)
        for g in right:
            same, m = _repeated(g)
            if base == same and not isinstance(base, Const):
                k = min(n, m)
                common.append(power(base, Const(k)))
                for whole, part, times in ((left, f, n), (right, g, m)):
                    whole.remove(part)
                    whole += [power(base, Const(times - k))] if times > k else []
                break
    return common, left, right


def _repeated(f: Term) -> tuple[Term, Fraction]:
    """(u, n) with f = uⁿ for a count n."""
    match f:
        case Pow(base, Const() as n) if n.is_integer and n.real > 0:
            return base, n.real
        case _:
            return f, Fraction(1)


def _multiplied_out(factors: Sequence[Term]) -> list[Term] | None:
    """The terms of a product of sums; None if they are many."""
    terms: list[Term] = [ONE]
    for f in factors:
        parts = [*map(_conjugated, terms_of(f.term))] if isinstance(f, Conj) else terms_of(f)
        if len(terms) * len(parts) > MOST_TERMS:
            return None
        terms = [mul(t, p) for t in terms for p in parts]
    return terms


def _added(terms: Sequence[Term]) -> list[Term]:
    """The terms of a sum, those added that are alike, and 0 for those that cancel."""
    found: list[Term] = []
    for t in terms:
        n = next((n for n, u in enumerate(found) if _are_alike(t, u)), None)
        if n is None:
            found.append(t)
        else:
            c, core = split_coefficient(found[n])
            found[n] = mul(add(c, split_coefficient(t)[0]), core)
    return found


def _are_alike(one: Term, other: Term) -> bool:
    """Whether two terms differ in their number only, and in the names of bound indices."""
    a, b = split_coefficient(one)[1], split_coefficient(other)[1]
    if a == b:
        return True
    return holds(a, Sum) and holds(b, Sum) and a.free == b.free and alpha_equal(a, b)
