"""Rewrites formulas for stable code: log(x²) as 2 log|x|, log(cosh(x)) as |x| + softplus(−2|x|) − log 2.

The derivatives of these terms are finite where their values are, so a program and its gradient print as they are
written; only the way to the number is another one. All holds for real numbers only.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from combdiff.terms.laws.exponentials import exponent, holds_exponentials, softplus
from combdiff.terms.laws.normal import square
from combdiff.terms.laws.opening import opened
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    TWO,
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
    neg,
    number,
    power,
    split_coefficient,
    subterms,
    terms_of,
)
from combdiff.terms.types import is_complex

HALF = number(Fraction(1, 2))
_LOG_2 = Call("log", (TWO,))


def computed_as(t: Term) -> Term | None:
    """An equal term that neither overflows nor loses its digits, where `t` would; None if `t` is computed as it is.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> computed_as(Call("log", (power(x, TWO),))) == mul(TWO, Call("log", (Call("abs", (x,)),)))
    True
    """
    match t:
        case Call("log", (u,)) if not is_complex(u.type):
            return _logarithm(u)
        case Call("exp", (Add() as u,)) if holds(u, Call):
            return _over_tail(u)
        case Pow(Add() as base, Const() as n) if n.is_integer and n.real < 0 and (found := _less_one(base)) is not None:
            return power(found, n)
        case _:
            return None


def with_exponentials_together(t: Term) -> Term:
    """`t` with products of exponentials as one, where an exponential is in the exponent: one overflows, another is 0.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> e = call("exp", x)
    >>> with_exponentials_together(mul(e, call("exp", neg(e)))) == call("exp", add(x, neg(e)))
    True
    """
    bindings = [b for let in subterms(t, Let) for b in let.bindings if not holds(b[1], Sum, Reduce, Diff, Loop)]
    values: dict[Var, Term] = {}
    for v, e in bindings:
        if _is_exponential(e) or not e.free.isdisjoint(values):
            values[v] = e
    inside = [u.args[0] for u in subterms(t, Call) if u.primitive == "exp"]
    if not any(holds(u, Call) or not u.free.isdisjoint(values) for u in inside):
        return t

    def visit(u: Term) -> Term:
        if not isinstance(u, Mul) or is_complex(u.type):
            return u
        return _within_decay(factors_of(opened(u, values))) or u

    return Traverser(visit, Mul)(t)


def _within_decay(factors: Sequence[Term]) -> Term | None:
    """exp(u) exp(−exp(v)) as exp(u − exp(v)), also where exp(u) is a term of a sum beside exp(−exp(v))."""
    factors = [g for f in factors for g in _taken_apart(f)]
    exponents = {f: u for f in factors if (u := exponent(f)) is not None}
    if not any(map(_decays, exponents.values())):
        return None
    decay = Call("exp", (add(*exponents.values()),))
    others = [f for f in factors if f not in exponents]
    growing = next((f for f in others if isinstance(f, Add) and holds_exponentials(f)), None)
    if growing is not None:
        others.remove(growing)
        within = [_within_decay([*factors_of(u), decay]) or mul(u, decay) for u in growing.terms]
        return mul(*others, add(*within))
    return mul(*others, decay) if len(exponents) > 1 else None


def _decays(u: Term, sign: int = 1) -> bool:
    """Whether an exponent is less some exponential: exp(u) is 0 where that is large."""
    for v in terms_of(u):
        c, rest = split_coefficient(v)
        if isinstance(rest, Add):
            if _decays(rest, sign if c.real > 0 else -sign):
                return True
        elif c.real * sign < 0 and any(exponent(f) is not None for f in factors_of(rest)):
            return True
    return False


def _taken_apart(f: Term) -> Sequence[Term]:
    """(3 exp(u))^2 as 9 and exp(u)^2, and 1/(exp(u) − 1) as exp(−u) and 1/(1 − exp(−u)) for u = exp(v)."""
    match f:
        case Pow(Mul(factors), Const() as n) if n.is_integer:
            return [power(g, n) for g in factors]
        case Pow(Add() as base, Const() as n) if n.is_integer and n.real < 0:
            c, less = split_coefficient(_less_one(base) or ZERO)
            if isinstance(less, Call) and exponent(less.args[0]) is not None:
                (u,) = less.args
                return [power(c, n), call("exp", mul(n, u)), power(neg(Call("expm1", (neg(u),))), n)]
            return (f,)
        case _:
            return (f,)


def _is_exponential(t: Term) -> bool:
    return any(u.primitive == "exp" and not is_complex(u.type) for u in subterms(t, Call))


def _over_tail(t: Add) -> Term | None:
    """exp(−n x²/2 − n log Φ(x)) as (2/erfcx(−x/√2))^n: far from 0, the two terms have no digits in common."""
    for u in t.terms:
        n, of = split_coefficient(u)
        match of:
            case Call("lognormcdf", (x,)) if n.is_integer and n.real < 0:
                if t == add(mul(n, HALF, square(x)), u):
                    tail = Call("erfcx", (neg(mul(x, power(call("sqrt", TWO), MINUS_ONE))),))
                    return mul(power(TWO, neg(n)), power(tail, n))
    return None


def _logarithm(t: Term) -> Term | None:
    match t:
        case Pow(base, Const() as n) if n.is_integer:
            size = base if n.real % 2 else call("abs", base)
            return mul(n, _logarithm(size) or Call("log", (size,)))
        case Call("abs2", (z,)):
            return mul(TWO, Call("log", (Call("abs", (z,)),)))
        case Call("cosh", (u,)):
            size = call("abs", u)
            return add(size, softplus(mul(number(-2), size)), neg(_LOG_2))
        case Call("sinh", (u,)):
            return add(u, Call("log", (neg(Call("expm1", (mul(number(-2), u),))),)), neg(_LOG_2))
        case Call("abs", (Call("sinh", (u,)),)):
            return _known(Call("sinh", (call("abs", u),)))
        case Mul(factors):
            return _of_product(factors)
        case Add() if (v := _complement_of_square(t)) is not None:
            # 1 − tanh² is 1/cosh²
            return mul(number(-2), _known(Call("cosh", (v,))))
        case Add() if (less := _less_one(t)) is not None:
            return Call("log", (less,))
        case _:
            return None


def _known(t: Term) -> Term:
    found = _logarithm(t)
    assert found is not None, "a term with a logarithm of its own"
    return found


def _of_product(factors: Sequence[Term]) -> Term | None:
    """Σ log of the factors that cannot be below 0, and the logarithm of all others."""
    apart = {f: _known(f) for f in factors if _is_size(f)}
    grown = {f: f.args[0] for f in factors if isinstance(f, Call) and f.primitive == "sinh"}
    rest = mul(*(_without_growth(f) for f in factors if f not in apart))
    if rest == mul(*factors):
        return None
    sizes = [*apart.values(), *(call("abs", u) for u in grown.values())]
    if not sizes:
        return Call("log", (rest,))
    return add(*sizes) if rest == ONE else add(*sizes, call("log", rest))


def _without_growth(f: Term) -> Term:
    """A factor of a logarithm's argument without what is added to the logarithm: sinh(u) is exp(|u|) times the rest."""
    match f:
        case Call("sinh", (u,)):
            decay = Call("expm1", (mul(number(-2), call("abs", u)),))
            return mul(number(Fraction(-1, 2)), call("sign", u), decay)
        case Add():
            return _less_one(f) or f
        case _:
            return f


def _is_size(t: Term) -> bool:
    """Whether it is an even power, |z|², or cosh: never below 0, and too large or too small before its logarithm is."""
    match t:
        case Pow(base, Const() as n):
            return n.is_integer and (not n.real % 2 or _is_size(base))
        case Call("abs2" | "cosh", _):
            return True
        case _:
            return False


def _complement_of_square(t: Add) -> Term | None:
    """The u of 1 − tanh(u)²."""
    match t.terms:
        case [one, Mul((Const() as c, Pow(Call("tanh", (u,)), Const() as n)))] | [
            Mul((Const() as c, Pow(Call("tanh", (u,)), Const() as n))),
            one,
        ] if one == ONE and c == MINUS_ONE and n == TWO and not is_complex(u.type):
            return u
        case _:
            return None


def _less_one(t: Add) -> Term | None:
    """c (exp(u) − 1) as c expm1(u)."""
    match t.terms:
        case [Const() as d, term] | [term, Const() as d]:
            c, rest = split_coefficient(term)
            u = exponent(rest)
            return None if u is None or c != mul(MINUS_ONE, d) else mul(c, Call("expm1", (u,)))
        case _:
            return None
