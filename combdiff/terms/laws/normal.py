"""Stable forms of the normal distribution: log Φ for the logarithm of its tail, and for quotients by the tail.

Φ(x) is erfc(−x/√2)/2, which is 0 below −38, where log Φ and φ/Φ are finite. All holds for real
numbers only.
"""

from __future__ import annotations

from collections.abc import Sequence

from combdiff.terms.laws.exponentials import exponent
from combdiff.terms.terms import (
    TWO,
    Add,
    Call,
    Const,
    Mul,
    Pow,
    Term,
    add,
    call,
    factors_of,
    mul,
    neg,
    number,
    power,
    split_coefficient,
    sub,
    terms_of,
)
from combdiff.terms.types import is_complex

LOG_2 = Call("log", (TWO,))


def logarithm_of_tail(u: Term) -> Term:
    """log(erfc(u)), which is log 2 + log Φ(−√2 u).

    >>> from combdiff.terms.terms import MINUS_ONE, fresh
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> logarithm_of_tail(mul(x, power(call("sqrt", TWO), MINUS_ONE))) == add(LOG_2, Call("lognormcdf", (neg(x),)))
    True
    """
    return add(LOG_2, Call("lognormcdf", (neg(mul(call("sqrt", TWO), u)),)))


def without_log_2(outside: Term, logarithms: Sequence[Term]) -> tuple[Term, list[Term]]:
    """c · 2 and the other terms, for log(c) + log 2 + …: the ½ in Φ and the 2 in erfc are 1 together."""
    kept: list[Term] = []
    for u in logarithms:
        terms = terms_of(u)
        outside = mul(outside, *(TWO for v in terms if v == LOG_2))
        kept.append(add(*(v for v in terms if v != LOG_2)))
    return outside, kept


def other_tail(t: Add) -> Term | None:
    """c − c erf(u), c + c erf(u) and 2c − c erfc(u) as a tail, which keeps all digits where it is small.

    >>> from combdiff.terms.terms import ONE, fresh
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> other_tail(Add((ONE, Call("erf", (x,))))) == Call("erfc", (neg(x),))
    True
    """
    match t.terms:
        case [Const() as c, term] | [term, Const() as c]:
            d, rest = split_coefficient(term)
        case _:
            return None
    match rest:
        case Call("erf", (u,)) if not is_complex(u.type) and c in (d, neg(d)):
            return mul(c, call("erfc", u if c == neg(d) else neg(u)))
        case Call("erfc", (u,)) if not is_complex(u.type) and c == mul(number(-2), d):
            return mul(neg(d), call("erfc", neg(u)))
        case _:
            return None


def over_tail(factors: Sequence[Term]) -> Term | None:
    """exp(w)/erfc(u) as ½ exp(w − log Φ(−√2 u)); None if there is no such quotient.

    >>> from combdiff.terms.terms import MINUS_ONE, fresh
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> made = over_tail([Call("exp", (x,)), power(Call("erfc", (x,)), MINUS_ONE)])
    >>> made == mul(power(TWO, MINUS_ONE), call("exp", sub(x, sub(logarithm_of_tail(x), LOG_2))))
    True
    """
    factors = [g for f in factors for g in _apart(f)]
    exponents = [u for u in map(exponent, factors) if u is not None]
    tails = [(f, found) for f in factors if (found := _divided_by(f)) is not None]
    if not exponents or not tails:
        return None
    rest = [f for f in factors if exponent(f) is None and f not in dict(tails)]
    twos = [power(TWO, n) for _, (_, n) in tails]
    logarithms = [mul(n, sub(logarithm_of_tail(u), LOG_2)) for _, (u, n) in tails]
    return mul(*rest, *twos, call("exp", add(*exponents, *logarithms)))


def scaled_tail(factors: Sequence[Term]) -> Term | None:
    """exp(u²) erfc(u) as erfcx(u): the one overflows where the other is 0. None if there is no such product.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> scaled_tail([x, Call("erfc", (x,)), Call("exp", (power(x, TWO),))]) == mul(x, Call("erfcx", (x,)))
    True
    """
    tails = [f for f in factors if isinstance(f, Call) and f.primitive == "erfc" and not is_complex(f.type)]
    for f in tails:
        (u,) = f.args
        grown = next((g for g in factors if exponent(g) == square(u)), None)
        if grown is not None:
            return mul(call("erfcx", u), *(g for g in factors if g not in (f, grown)))
    return None


def square(x: Term) -> Term:
    """x², where the number in front is multiplied out, and the square of a root of a number is that number.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> square(mul(number(3), call("sqrt", TWO), x)) == mul(number(18), power(x, TWO))
    True
    """
    c, rest = split_coefficient(x)
    roots = [f for f in factors_of(rest) if isinstance(f, Call) and f.primitive == "sqrt" and not f.free]
    others = [f for f in factors_of(rest) if f not in roots]
    return mul(c, c, *(f.args[0] for f in roots), power(mul(*others), TWO))


def _apart(f: Term) -> Sequence[Term]:
    """The factors of 1/(½ erfc(u)), each with its power."""
    match f:
        case Pow(Mul(factors), Const() as n) if n.is_integer:
            return [power(g, n) for g in factors]
        case _:
            return (f,)


def _divided_by(f: Term) -> tuple[Term, Const] | None:
    """(u, n) of erfc(u)^n for n < 0 and a real u."""
    match f:
        case Pow(Call("erfc", (u,)), Const() as n) if n.real < 0 and not n.imag and not is_complex(u.type):
            return u, n
        case _:
            return None
