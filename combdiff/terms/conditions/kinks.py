"""Guards cotangents beside a kink by the condition that the slope is not 0, as 0 · ∞ is no number.

    sqrt(relu(x))      has the gradient   1/2 * where(0 < x, 1 / sqrt(relu(x)))
    sqrt(max(x, 0))    has the gradient   1/4 * (1 + sign(x)) * where(0 <= x, 1 / sqrt(max(x, 0)))

The calculus puts every cotangent under this condition, and what turns out to be finite leaves it again: the slope is 0
there anyway, and a factor is shorter than a condition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from combdiff.records import dataclass
from combdiff.terms.conditions.guards import Condition, FiniteButForOverflow, condition_of, inside, negated
from combdiff.terms.network import factors_before_sums
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    TWO,
    ZERO,
    Add,
    App,
    Call,
    Const,
    Diff,
    Indicator,
    Lam,
    Let,
    Mul,
    Pow,
    Reduce,
    Sum,
    Term,
    Traverser,
    Var,
    add,
    alpha_equal,
    apply,
    call,
    factors_of,
    mul,
    neg,
    number,
    power,
    split_coefficient,
    sub,
    substitute,
    subterms,
    terms_of,
)
from combdiff.terms.types import Map


def counting(mark: Term, k: Term) -> Term:
    """`k` where the conditions of a mark hold, else 0.

    >>> from combdiff.terms.terms import fresh, indicator
    >>> from combdiff.terms.types import REAL
    >>> x, k = fresh("x", REAL), fresh("k", REAL)
    >>> counting(indicator(ZERO, x, ONE), k) == indicator(ZERO, x, k)
    True
    """
    match mark:
        case Indicator(_, _, body):
            return inside(condition_of(mark), counting(body, k))
        case _:
            return mul(mark, k)


def without_needless_conditions(t: Term, infinite: Collection[Var] = ()) -> Term:
    """The same without conditions around finite numbers beside a factor that is 0 where they do not hold.

    `infinite` are values that may be infinite, besides those of definitions in `t`.

    >>> from combdiff.terms.terms import add, call, fresh, indicator, power
    >>> from combdiff.terms.types import REAL
    >>> x, y = fresh("x", REAL), fresh("y", REAL)
    >>> slope, inverse = add(ONE, call("sign", x)), power(x, MINUS_ONE)
    >>> without_needless_conditions(mul(slope, indicator(ZERO, x, y))) == mul(slope, y)
    True
    >>> needed = mul(slope, indicator(ZERO, x, inverse))
    >>> without_needless_conditions(needed) == needed
    True
    """
    if not any(_needless(u.factors) for u in subterms(t, Mul)):
        return t
    finite = _Finite({*infinite, *_infinite_values(t)})

    def visit(u: Term) -> Term:
        while isinstance(u, Mul):
            beside = _needless(u.factors)
            found = next(((f, g.body) for f, g in beside if finite(g.body)), None)
            if found is None:
                return _without_needless_signs(u, [g for _, g in beside])
            u = mul(*(found[1] if f is found[0] else f for f in u.factors))
        return u

    return Traverser(visit, Mul)(t)


def _without_needless_signs(t: Mul, conditions: Collection[Indicator]) -> Term:
    """sign(relu(x)) is 1 beside a condition 0 < x."""
    sides = [_side(condition_of(c)) for c in conditions]
    signs = [call("sign", call("relu", u)) for u, may_be_zero in sides if not may_be_zero]
    return mul(*(f for f in t.factors if f not in signs)) if any(f in signs for f in t.factors) else t


def with_whole_norms(t: Term, values: Mapping[Var, Term] | None = None) -> Term:
    """The same with r for r² where(0 < r, 1 / r): what a norm r is divided by under its condition goes beside it.

    What is divided by r in any case does not ask whether r is 0: 1/r² where(0 < r, 1 / r) is 1/r³, also if the first
    factor stands under another condition. A definition may have the norm as its value, of all the `values`.

    >>> from combdiff.terms.conditions.comparing import compared
    >>> from combdiff.terms.terms import fresh, number, power, reduction
    >>> from combdiff.terms.types import REAL, Domain, Index
    >>> i, x = fresh("i", Index(Domain("N"))), fresh("x", Map((Index(Domain("N")),), REAL))
    >>> r = reduction("norm", (i,), ONE, App(x, (i,)))
    >>> with_whole_norms(mul(power(r, number(2)), compared(ZERO, "<", r, power(r, MINUS_ONE)))) == r
    True
    """
    known = values or {}
    if not any(_norm_above(condition_of(u), known) for u in subterms(t, Indicator)):
        return t

    def visit(u: Term) -> Term:
        while isinstance(u, Mul | Sum) and (met := _with_whole_norm(factors_before_sums(u), known)) is not None:
            u = met
        return u

    return Traverser(visit, Mul, Sum)(t)


def _with_whole_norm(factors: Sequence[Term], values: Mapping[Var, Term]) -> Term | None:
    for g in factors:
        for condition in _chain(g):
            above = _norm_above(condition_of(condition), values)
            if above is None:
                continue
            (*_, last) = _chain(g)
            others = [f for f in factors if f is not g]
            norm = _Norm(above, _side(condition_of(condition))[0], values)
            inside_, under = norm.apart_from(factors_of(last.body))
            if (met := norm.divides_anyway(others, inside_)) is not None:
                return mul(*met, _over([condition_of(c) for c in _chain(g) if c is not condition], mul(*under)))
            outside, beside = norm.apart_from(others)
            if outside > 0 > inside_:
                left = outside + inside_
                body = mul(*under, ONE if left > 0 else power(norm.written, number(left)))
                # r is 0 where its condition does not hold
                needless = condition if left > 0 and body == ONE else None
                whole = _over([condition_of(c) for c in _chain(g) if c is not needless], body)
                return mul(*beside, whole, power(norm.named(mul(*others)), number(max(left, Fraction(0)))))
    return None


def _norm_above(condition: Condition, values: Mapping[Var, Term]) -> Reduce | None:
    """The norm that a condition asks to be above 0."""
    side, may_be_zero = _side(condition)
    side = _written_out(side, values)
    return side if isinstance(side, Reduce) and side.kind == "norm" and not may_be_zero else None


def _written_out(t: Term, values: Mapping[Var, Term]) -> Term:
    """The value of a definition, or an entry of it, as the definition writes it."""
    match t:
        case App(Var() as f, args) if isinstance(value := values.get(f), Lam):
            return apply(value, *args)
        case Var():
            return values.get(t, t)
        case _:
            return t


def _are_one_norm(a: Reduce, b: Reduce) -> bool:
    """Whether two norms are equal; a vector and its negative have one."""
    if [v.kind for v in a.indices] != [v.kind for v in b.indices]:
        return False
    mark, body = (substitute(t, dict(zip(a.indices, b.indices, strict=True))) for t in (a.mark, a.body))
    ours, theirs = Counter(terms_of(body)), Counter(terms_of(b.body))
    return mark == b.mark and theirs in (ours, Counter(neg(t) for t in terms_of(body)))


@dataclass(slots=True)
class _Norm:
    """A norm as a condition has `written` it, and in full; it may be one of the `values` of definitions."""

    of: Reduce
    written: Term
    values: Mapping[Var, Term]

    def is_in(self, base: Term) -> int:
        """The power of the norm that a number is: 2 for a sum of squares."""
        base = _written_out(base, self.values)
        if isinstance(base, Reduce):
            return int(base.kind == "norm" and _are_one_norm(base, self.of))
        return 2 * int(alpha_equal(base, power(self.of, TWO)))

    def apart_from(self, factors: Iterable[Term]) -> tuple[Fraction, list[Term]]:
        """The power of the norm that a product holds, as one of a sum of squares, too, and the other factors."""
        total, others = Fraction(0), list[Term]()
        for f in factors:
            base, n = (f.base, f.exponent) if isinstance(f, Pow) else (f, ONE)
            if isinstance(n, Const) and n.is_integer and (times := self.is_in(base)):
                total += times * n.real
            else:
                others.append(f)
        return total, others

    def divides_anyway(self, factors: Sequence[Term], further: Fraction) -> list[Term] | None:
        """The factors, of which one is divided by the norm, with a further power of it beside this divisor."""
        for f in factors:
            chain = [*_chain(f)]
            if (met := self._divided(chain[-1].body if chain else f, further)) is not None:
                whole = _over([condition_of(c) for c in chain], met)
                return [whole if g is f else g for g in factors]
        return None

    def _divided(self, t: Term, further: Fraction) -> Term | None:
        """`t` times a power of the norm, if it, or a term of a sum among its factors, is divided by the norm anyway."""
        there, rest = self.apart_from(factors_of(t))
        if there < 0 and there + further < 0:
            return mul(*rest, power(self.named(t), number(there + further)))
        for f in factors_of(t):
            terms = [(u, *self.apart_from(factors_of(u))) for u in f.terms] if isinstance(f, Add) else []
            if any(there < 0 and there + further < 0 for _, there, _ in terms):
                name = self.named(f)
                body = add(*(mul(*others, power(name, number(there + further))) for _, there, others in terms))
                return mul(body, *(g for g in factors_of(t) if g is not f))
        return None

    def named(self, factor: Term) -> Term:
        """The norm as a factor writes it."""
        return next((u for u in subterms(factor, App, Var) if self.is_in(u) == 1), self.written)


def _over(conditions: Sequence[Condition], body: Term) -> Term:
    for c in reversed(conditions):
        body = c.over(body)
    return body


class _Finite(FiniteButForOverflow):
    """Unknown functions count as finite, too."""

    def is_total(self, t: Term) -> bool:
        """Whether the outermost operation of t is finite, with its derivatives, wherever its operands are."""
        match t:
            case App(Var(kind=Map() as kind) | Diff(of=Var(kind=Map() as kind)), _) if not kind.is_array:
                return all(map(self, t.args))
            case _:
                return super().is_total(t)


def _infinite_values(t: Term) -> Collection[Var]:
    """The values by name that may be infinite, or have infinite derivatives."""
    found: set[Var] = set()
    for u in subterms(t):
        for var, value in u.bindings if isinstance(u, Let) else ():
            if not _Finite(found)(value):
                found.add(var)
    return found


def _needless(factors: Collection[Term]) -> list[tuple[Term, Indicator]]:
    """Factors with a condition beside another factor that is 0 where it does not hold, with this condition first."""
    marked = [f for f in factors if isinstance(f, Indicator)]
    if not marked:
        return []
    known = [_unscaled(side) for f in factors for side in _positive_sides(f)]
    return [(f, _outermost(g, f)) for f in marked for g in _chain(f) if _is_known(_side(condition_of(g)), known)]


def _is_known(side: Side, known: Collection[Side]) -> bool:
    """Whether a side is one of those known, in which a sum may call its indices otherwise."""
    positive, may_be_zero = _unscaled(side)
    return any(alpha_equal(positive, other) for other, at_zero in known if at_zero == may_be_zero)


def _chain(t: Term) -> Iterator[Indicator]:
    """The conditions that stand directly under one another."""
    while isinstance(t, Indicator):
        yield t
        t = t.body


def _outermost(inner: Indicator, chain: Indicator) -> Indicator:
    """A chain of conditions with one of them first: in any order they say the same."""
    if inner is chain:
        return chain
    *_, last = _chain(chain)
    body = _over([condition_of(g) for g in _chain(chain) if g is not inner], last.body)
    return Indicator(inner.left, inner.right, body)


def _unscaled(side: Side) -> Side:
    """x for 2 x, which are positive together."""
    (c, rest), may_be_zero = split_coefficient(side[0]), side[1]
    return (rest if c.real > 0 else negated(rest), may_be_zero) if not c.imag else side


def is_at_a_point(condition: Condition) -> bool:
    """Whether a condition fails where a norm is 0 only: no neighbourhood, in which what it meets would be constant.

    >>> from combdiff.terms.conditions.comparing import compared
    >>> from combdiff.terms.terms import fresh, reduction
    >>> from combdiff.terms.types import REAL, Domain, Index
    >>> i, x = fresh("i", Index(Domain("N"))), fresh("x", Map((Index(Domain("N")),), REAL))
    >>> length = reduction("norm", (i,), ONE, App(x, (i,)))
    >>> is_at_a_point(condition_of(compared(ZERO, "<", length, ONE)))
    True
    """
    side, may_be_zero = _side(condition)
    return isinstance(side, Reduce) and side.kind == "norm" and not may_be_zero


Side = tuple[Term, bool]
"""A number that is positive where something is not 0, and whether it may be 0 there."""


def _side(condition: Condition) -> Side:
    """d with: the condition is 0 < d, or 0 ≤ d."""
    match condition.left:
        case Indicator(left, right, body) if body == ONE and condition.right == ZERO:
            return sub(left, right), False
        case _:
            return sub(condition.right, condition.left), True


def _positive_sides(factor: Term) -> Iterator[Side]:
    """Where a factor is not 0: relu(d), sign(relu(d)) where 0 < d, and 1 + sign(d) where 0 ≤ d."""
    match factor:
        case Pow(base, Const(n, imag)) if n > 0 and not imag:
            yield from _positive_sides(base)
        case Call("sign" | "sqrt" | "abs", (u,)):
            yield from _positive_sides(u)
        case Call("relu", (u,)):
            yield u, False
        case Add((one, other)) if ONE in (one, other):
            c, rest = split_coefficient(other if one == ONE else one)
            match rest:
                case Call("sign", (u,)) if c in (ONE, MINUS_ONE):
                    yield u if c == ONE else negated(u), True
