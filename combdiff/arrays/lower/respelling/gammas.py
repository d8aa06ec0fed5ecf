"""Quotients of gamma functions, and powers beside them, by logarithms: Γ is beyond all numbers from 171 on.

    gamma(x + 1) / gamma(x)             becomes   exp(lgamma(x + 1) - lgamma(x)), where x is not negative
    exp(-l) * l^k / gamma(k + 1)        becomes   exp(-l + k * log(l) - lgamma(k + 1))

A factor that may be below 0 has its sign in front. What stands before a sum or a product is written into it, where the
terms are small only with it: b^a Σ_i x(i)^(a - 1) / gamma(a). All holds for real numbers only.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from combdiff.records import dataclass
from combdiff.terms.conditions.guards import Finite, held, under
from combdiff.terms.laws.exponentials import exponent
from combdiff.terms.laws.opening import opened
from combdiff.terms.laws.sums import flat
from combdiff.terms.terms import (
    ONE,
    ZERO,
    Add,
    Call,
    Const,
    Diff,
    Let,
    Loop,
    Mul,
    Pow,
    Reduce,
    Sum,
    Term,
    Traverser,
    Var,
    add,
    call,
    factors_of,
    holds,
    mul,
    number,
    power,
    reduction,
    refreshed,
    sub,
    subterms,
    total,
)
from combdiff.terms.types import Index, is_complex

_TINY = number(Fraction(1, 2**1022))  # a power 0 of it is 1, and all others of it are multiplied by 0


def with_gammas_together(t: Term) -> Term:
    """`t` with products that hold gamma functions by logarithms, if a factor may overflow where they are finite.

    >>> from combdiff.terms.terms import MINUS_ONE, fresh, neg
    >>> from combdiff.terms.types import REAL, Domain
    >>> n = fresh("n", Index(Domain("x.1")))
    >>> ratio = mul(call("gamma", add(n, ONE)), power(call("gamma", add(n, number(2))), MINUS_ONE))
    >>> made = call("exp", add(Call("lgamma", (add(n, ONE),)), neg(Call("lgamma", (add(n, number(2)),)))))
    >>> with_gammas_together(ratio) == made
    True
    """
    if not any(u.primitive == "gamma" for u in subterms(t, Call)):
        return t
    values: dict[Var, Term] = {}
    bindings = [b for let in subterms(t, Let) for b in let.bindings if not holds(b[1], Sum, Reduce, Diff, Loop)]
    for var, value in bindings:
        if _may_overflow(value) or not value.free.isdisjoint(values):
            values[var] = value

    def visit(u: Term) -> Term:
        match u:
            case Mul() if not is_complex(u.type):
                parts = _Parts.of(factors_of(opened(u, values)))
                return parts.joined() if parts.is_quotient else u
            case Reduce("logsumexp" | "softmax"):
                return _with_weights_apart(u, opened(u.mark, values))
            case _:
                return u

    return Traverser(visit, Mul, Reduce)(t)


def _with_weights_apart(t: Reduce, mark: Term) -> Term:
    """A sum of weighted exponentials with logarithms of the weights that may overflow as exponents."""
    conditions, weight = held(mark)
    parts = _Parts.of(factors_of(weight))
    if not parts.logarithms:
        return t
    left = under(conditions, mul(*parts.others, *parts.signs))
    return reduction(t.kind, t.indices, left, add(t.body, under(conditions, add(*parts.logarithms))))


@dataclass(frozen=True, slots=True)
class _Parts:
    """A product: exp of a sum of logarithms, signs, and other factors; `gammas` are the powers of gamma functions."""

    logarithms: tuple[Term, ...]
    signs: tuple[Term, ...]
    others: tuple[Term, ...]
    gammas: tuple[Const, ...]
    is_like_a_power: bool

    @classmethod
    def of(cls, factors: Sequence[Term]) -> _Parts:
        factors = [g for f in factors for g in _taken_apart(f)]
        gammas = [found for f in factors if (found := _gamma(f)) is not None]
        logarithms = [mul(n, Call("lgamma", (u,))) for u, n in gammas]
        signs = [_sign_of_gamma(u) for u, n in gammas if n.real % 2]
        others: list[Term] = []
        is_like_a_power = _is_like_a_power(gammas)
        for f in factors:
            if (u := exponent(f)) is not None:
                logarithms.append(u)
            elif isinstance(f, Pow) and _is_variable(f) and not is_like_a_power:
                logarithms.append(mul(f.exponent, call("log", _size(f.base))))
                signs.append(ONE if _is_positive(f.base) else power(call("sign", f.base), f.exponent))
            elif _gamma(f) is None:
                others.append(f)
        return cls(tuple(logarithms), tuple(signs), tuple(others), tuple(n for _, n in gammas), is_like_a_power)

    @property
    def is_quotient(self) -> bool:
        """Whether one factor may overflow where another is 0, and a gamma function is among them."""
        if not self.gammas:
            return bool(self.logarithms) and any(map(_has_logarithm_of_gamma, self.carriers))
        above = all(n.real > 0 for n in self.gammas) and len(self.gammas) == len(self.logarithms)
        return bool(self.carriers) or (len(self.logarithms) > 1 and not above)

    @property
    def carriers(self) -> tuple[Term, ...]:
        """The sums among the other factors whose terms may overflow, and take up all that stands before them."""
        if self.is_like_a_power:
            return ()
        free = {v for u in (*self.logarithms, *self.signs) for v in u.free if isinstance(v.kind, Index)}
        return tuple(f for f in self.others if isinstance(f, Add | Sum) and _may_overflow(f) and free <= f.free)

    def joined(self) -> Term:
        """The product, as one exponential."""
        front = [*self.signs, call("exp", add(*self.logarithms))]
        if not self.carriers:
            return mul(*self.others, *front)
        first = self.carriers[0]
        left = list(self.others)
        left.remove(first)
        return mul(*left, _within(first, front))


def _within(t: Term, front: Sequence[Term]) -> Term:
    """`t` times the factors before it, each of which stands before each of its terms."""
    match t:
        case Add(terms):
            return add(*(_within(u, front) for u in terms))
        case Sum():
            inner = refreshed(t)
            assert isinstance(inner, Sum), "renaming keeps the node"
            return total(inner.indices, _within(inner.body, front))
        case _:
            conditions, core = held(t)
            return under(conditions, _Parts.of([*factors_of(core), *front]).joined())


def _taken_apart(f: Term) -> Sequence[Term]:
    """The factors of a whole power of a product, each with its power."""
    match f:
        case Pow(Mul(factors), Const() as n) if n.is_integer:
            return [power(g, n) for g in factors]
        case _:
            return (f,)


def _gamma(f: Term) -> tuple[Term, Const] | None:
    """(u, n) of a whole power Γ(u)^n."""
    match f:
        case Call("gamma", (u,)):
            return u, ONE
        case Pow(Call("gamma", (u,)), Const() as n) if n.is_integer:
            return u, n
        case _:
            return None


def _is_like_a_power(gammas: Sequence[tuple[Term, Const]]) -> bool:
    """Whether it is as Γ(x + 1)/Γ(x + 1/2), which is about √x: nothing beside it overflows because of it."""
    whole = sum(n.real for _, n in gammas)
    apart = (add(*flat(sub(u, gammas[0][0]))) for u, _ in gammas)
    return bool(gammas) and not whole and all(isinstance(u, Const) for u in apart)


def _sign_of_gamma(u: Term) -> Term:
    """The sign of Γ(u), which is −1 where the largest whole number below u is odd and below 0."""
    if Finite().least(u) >= 0:
        return ONE
    whole = call("floor", call("min", u, ZERO))
    half = call("floor", mul(number(Fraction(1, 2)), whole))
    return add(ONE, mul(number(-2), whole), mul(number(4), half))


def _is_positive(t: Term) -> bool:
    return Finite().least(t) > 0


def _size(base: Term) -> Term:
    return base if _is_positive(base) else call("max", call("abs", base), _TINY)


def _is_variable(t: Pow) -> bool:
    """Whether it is a power of a real number, which is no sign, with an exponent that is no number."""
    if isinstance(t.base, Call) and t.base.primitive == "sign":
        return False
    return not isinstance(t.exponent, Const) and not is_complex(t.type) and not is_complex(t.base.type)


def _may_overflow(t: Term) -> bool:
    """Whether a gamma function, an exponential or a power with a variable exponent is in it."""
    powers = (u for u in subterms(t, Pow) if _is_variable(u))
    calls = (u for u in subterms(t, Call) if u.primitive in ("gamma", "lgamma", "exp") and not is_complex(u.type))
    return next(powers, None) is not None or next(calls, None) is not None


def _has_logarithm_of_gamma(t: Term) -> bool:
    return any(u.primitive == "lgamma" for u in subterms(t, Call))
