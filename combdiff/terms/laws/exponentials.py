"""Stable forms of expressions with exponentials: σ(t) for 1/(1 + exp(−t)), softplus(t) for log(1 + exp(t)).

As they are written they overflow, or lose all digits, where their values do not: log(1 + exp(1000)), log(1 − σ(40)).
All holds for real numbers only, but for exp(u) exp(−u) = 1. A law is a case of a `match`; σ(t) of the right sides is
`sigmoid`. `arithmetic.py` applies the laws of products and of powers that are added to its tables at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from combdiff.records import dataclass
from combdiff.terms.arithmetic import (
    LAWS_OF_POWERS,
    LAWS_OF_PRODUCTS,
    add,
    mul,
    number,
    opposite,
    power,
    split_coefficient,
    sub,
    times,
)
from combdiff.terms.nodes import MINUS_ONE, ONE, ZERO, Add, Call, Const, Mul, Pow, Sum, Term, factors_of
from combdiff.terms.types import is_complex


def may_meet_exponentials(factor: Term) -> bool:
    """Whether a factor may become another one beside exponentials: σ(t), its roots, exp(t), and cosh(t).

    >>> from combdiff.terms.nodes import fresh
    >>> from combdiff.terms.types import REAL
    >>> may_meet_exponentials(Call("sigmoid", (fresh("x", REAL),)))
    True
    """
    match factor:
        case Pow(Call("sigmoid", _), Const()):
            return True
        case Call(name, _):
            return name in ("sigmoid", "exp", "cosh")
        case _:
            return False


def logarithm(t: Term) -> Term | None:
    """log(t) in a stable form; None if there is none.

    >>> from combdiff.terms.nodes import fresh
    >>> from combdiff.terms.terms import call
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> logarithm(Add((ONE, Call("exp", (x,))))) == call("softplus", x)
    True
    """
    match t:
        case Add() if (u := exponent_beside_one(t)) is not None:
            return softplus(u)
        case Call("sigmoid", (u,)):
            return opposite(softplus(opposite(u)))
        case Add() if (u := complement(t)) is not None:
            return opposite(softplus(u))
        case Mul((Const() as c, Add(terms))) if c == MINUS_ONE:
            return logarithm(Add(tuple(map(opposite, terms))))
        case _:
            return None


def inverse(t: Term) -> Term | None:
    """1/t in a stable form; None if there is none: 1/(1 + exp(u)) is σ(−u), 1/(−1 − exp(u)) is −σ(−u)."""
    match t:
        case Add() if (u := exponent_beside_one(t)) is not None:
            return sigmoid(opposite(u))
        case Add(terms) if (
            MINUS_ONE in terms and (u := exponent_beside_one(Add(tuple(map(opposite, terms))))) is not None
        ):
            return opposite(sigmoid(opposite(u)))
        case _:
            return None


def met(powers: Mapping[Term, int]) -> dict[Term, int] | None:
    """The powers of a product after the laws of σ and tanh; None if there is nothing to do.

    >>> from combdiff.terms.nodes import fresh
    >>> from combdiff.terms.terms import neg
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> met({Call("exp", (x,)): 1, sigmoid(neg(x)): 2}) == {sigmoid(neg(x)): 1, sigmoid(x): 1}
    True
    """
    found = dict(powers)
    while any(_meets(factor, found) for factor in [*found] if found[factor]):
        pass
    return None if found == powers else {factor: n for factor, n in found.items() if n}


def _meets(factor: Term, powers: dict[Term, int]) -> bool:
    """Use one of the laws on `factor`; whether one could be used."""
    match factor:
        case Call("sigmoid", (t,)):
            laws: Iterator[Law] = (law for other in [*powers] for law in _beside_sigmoid(factor, other, t))
        case Pow(Call("sigmoid", (t,)), Const() as r):
            laws = (law for other in [*powers] for law in _beside_root(factor, other, mul(r, t)))
        case Call("exp", (u,)):
            laws = (law for other in [*powers] for law in _beside_exponential(factor, other, u))
        case Call("cosh", (t,)):
            sinh, tanh = Call("sinh", (t,)), Call("tanh", (t,))
            laws = iter((Law({factor: -1, sinh: 1}, {tanh: 1}), Law({factor: 1, sinh: -1}, {tanh: -1})))
        case _:
            return False
    return any(_shift(powers, law) for law in laws)


def _beside_sigmoid(own: Term, other: Term, t: Term) -> Iterator[Law]:
    """exp(−k t)^n σ(t) is σ(−t) where k n is 1, exp(−k t) σ(t)^k is σ(−t)^k, and (1 + exp(−t)) σ(t) is 1."""
    match other:
        case Call("exp", (u,)) if not is_complex(u.type) and (n := _ratio(opposite(t), u)):
            yield Law({own: 1, other: n}, {sigmoid(opposite(t)): 1})
        case Call("exp", (u,)) if not is_complex(u.type) and (n := _ratio(u, opposite(t))) > 1:
            yield Law({own: n, other: 1}, {sigmoid(opposite(t)): n})
        case Add() if (v := exponent_beside_one(other)) is not None and are_opposite(v, t):
            yield Law({own: 1, other: 1}, {})


def _beside_root(own: Pow, other: Term, u: Term) -> Iterator[Law]:
    """σ(t)^r exp(−r t) is σ(−t)^r, where u is r t."""
    match own.base, other:
        case Call(_, (t,)), Call("exp", (v,)) if are_opposite(u, v):
            yield Law({own: 1, other: 1}, {Pow(sigmoid(opposite(t)), own.exponent): 1})


def _beside_exponential(own: Term, other: Term, u: Term) -> Iterator[Law]:
    """exp(u) exp(−u) is 1, of complex numbers as well.

    And exp(u)/(p + q exp(u)) is 1/(q + p exp(−u)): of two exponentials in a denominator one is left.
    """
    if isinstance(other, Call) and other.primitive == "exp" and are_opposite(u, other.args[0]):
        yield Law({own: 1, other: 1}, {})
        yield Law({own: -1, other: -1}, {})
    elif not is_complex(u.type):
        yield from _below_exponential(own, other, u)


def _below_exponential(own: Term, other: Term, u: Term) -> Iterator[Law]:
    """exp(u)^n/(p + q exp(n u)), exp(n v)/(p + q exp(v))^n, and their like with a root below."""
    match other:
        case Add():
            inner, root = other, 1
        case Call("sqrt", (Add() as inner,)):
            root = 2
        case _:
            return
    found = None if is_complex(inner.type) else _two_exponentials(inner)
    if found is None:
        return
    for (v, above), rest in (found, found[::-1]):
        whole = mul(number(root), u)
        divided = _divided(v, above, *rest)
        made = divided if root == 1 else Call("sqrt", (divided,))
        if (n := _ratio(v, whole)) > 0:
            yield Law({own: n, other: -1}, {made: -1})
        elif (n := _ratio(whole, v)) > 1:
            yield Law({own: 1, other: -n}, {made: -n})


@dataclass(frozen=True, slots=True)
class Law:
    """A product of powers, and what it is."""

    of: Mapping[Term, int]
    made: Mapping[Term, int]


def _shift(powers: dict[Term, int], law: Law) -> bool:
    """Use a law as often as it can be used."""
    n = min(powers.get(factor, 0) // m if m > 0 else -powers.get(factor, 0) // -m for factor, m in law.of.items())
    if n <= 0:
        return False
    for by, counts in ((-n, law.of), (n, law.made)):
        for factor, m in counts.items():
            powers[factor] = powers.get(factor, 0) + by * m
    return True


# --- patterns -------------------------------------------------------------------------------------------------------


def sigmoid(t: Term) -> Term:
    """σ(t)."""
    return Call("sigmoid", (t,))


def softplus(t: Term) -> Term:
    """log(1 + exp(t))."""
    return Call("softplus", (t,))


def exponent_beside_one(t: Term) -> Term | None:
    """The u of 1 + exp(u), which is real; None for other terms."""
    match t:
        case Add((a, b)):
            exponential = b if a == ONE else a if b == ONE else None
        case _:
            return None
    return None if exponential is None else exponent(exponential)


def exponent(t: Term) -> Term | None:
    """The real u with t = exp(u), of a product of exponentials, their powers and roots; None for other terms.

    >>> from combdiff.terms.nodes import TWO, fresh
    >>> from combdiff.terms.terms import mul
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> exponent(Pow(Call("exp", (x,)), TWO)) == mul(TWO, x)
    True
    """
    match t:
        case Call("exp", (u,)):
            return None if is_complex(u.type) else u
        case Call("sqrt", (base,)):
            below = exponent(base)
            return None if below is None else mul(Const(Fraction(1, 2)), below)
        case Pow(base, Const() as n) if not n.imag:
            below = exponent(base)
            return None if below is None else mul(n, below)
        case Mul(factors):
            parts = [exponent(f) for f in factors]
            return None if None in parts else add(*(u for u in parts if u is not None))
        case _:
            return None


Exponential = tuple[Term, Term]
"""(u, c) of c exp(u)."""


def _two_exponentials(t: Add) -> tuple[Exponential, Exponential] | None:
    """The two exponentials, one of which may be 1, of p exp(u) + q exp(v); None for other sums."""
    found: dict[Term, list[Term]] = {}
    for term in _multiplied_out(t):
        u, c = exponential(term)
        if len(found) == 2 and u not in found:
            return None
        found.setdefault(u, []).append(c)
    if len(found) != 2 or any(is_complex(c.type) or holds_exponentials(c) for cs in found.values() for c in cs):
        return None
    (u, p), (v, q) = found.items()
    return (u, add(*p)), (v, add(*q))


def _multiplied_out(t: Add) -> Iterator[Term]:
    """The terms of a sum, with those of an inner sum of exponentials: K + n (exp(u) − 1) has K, n exp(u) and −n."""
    for term in t.terms:
        inner = [f for f in factors_of(term) if holds_exponentials(f)]
        if len(inner) == 1 and isinstance(inner[0], Add):
            others = [f for f in factors_of(term) if f is not inner[0]]
            yield from (mul(u, *others) for u in inner[0].terms)
        else:
            yield term


def exponential(t: Term) -> Exponential:
    """(u, c) with t = c exp(u), u being 0 where no factor is an exponential."""
    parts = [(exponent(f), f) for f in factors_of(t)]
    u = add(*(u for u, _ in parts if u is not None))
    return u, mul(*(f for u, f in parts if u is None))


def holds_exponentials(t: Term) -> bool:
    """Whether a factor of `t` is a sum with an exponential in it."""
    return any(isinstance(f, Add) and any(exponential(u)[0] != ZERO for u in f.terms) for f in factors_of(t))


def _divided(u: Term, p: Term, v: Term, q: Term) -> Term:
    """p + q exp(v − u), which is p exp(u) + q exp(v) divided by exp(u)."""
    w = opposite(u) if v == ZERO else sub(v, u)
    return add(p, mul(q, Call("exp", (w,))))


def _ratio(a: Term, b: Term) -> int:
    """The integer n with a = n b, term by term; 0 if there is none."""
    over, under = _by_term(a), _by_term(b)
    if over.keys() != under.keys() or not over:
        return 0
    (ratio, *others) = {over[t][0] / c if c and not (imag or over[t][1]) else 0 for t, (c, imag) in under.items()}
    return int(ratio) if not others and Fraction(ratio).denominator == 1 else 0


def complement(t: Term) -> Term | None:
    """The u of 1 − σ(u); None for other terms."""
    match t:
        case Add((a, b)):
            subtracted = b if a == ONE else a if b == ONE else None
        case _:
            return None
    match subtracted:
        case Mul((Const() as c, Call("sigmoid", (u,)))) if c == MINUS_ONE:
            return u
        case _:
            return None


def are_opposite(a: Term, b: Term) -> bool:
    """Whether a = −b, term by term.

    >>> from combdiff.terms.nodes import fresh
    >>> from combdiff.terms.terms import neg, sub
    >>> from combdiff.terms.types import REAL
    >>> x, y = fresh("x", REAL), fresh("y", REAL)
    >>> are_opposite(sub(x, y), sub(y, x)), are_opposite(sub(x, y), neg(sub(x, y))), are_opposite(x, y)
    (True, True, False)
    """
    left, right = _by_term(a), _by_term(b)
    return left == {t: (-real, -imag) for t, (real, imag) in right.items()}


def _by_term(t: Term) -> dict[Term, tuple[Fraction, Fraction]]:
    """The terms of a sum with their numbers, in front of all of it multiplied out."""
    c, rest = split_coefficient(t)
    parts = [split_coefficient(u) for u in rest.terms] if isinstance(rest, Add) else [(ONE, rest)]
    return {u: ((p := times(c, d)).real, p.imag) for d, u in parts}


# --- for the tables of arithmetic -----------------------------------------------------------------------------------


def _product(powers: Mapping[Term, int]) -> list[Term] | None:
    """The factors where exponentials and what is made of them have met; None if none have."""
    found = met(powers)
    return None if found is None else [power(base, number(n)) for base, n in found.items()]


def _power(base: Add, n: Term) -> Term | None:
    """1/(1 + e^t) and its like by σ, except for a root of a negative number: it is on the other side of the cut."""
    if not isinstance(n, Const) or n.real >= 0 or n.imag or (inverted := inverse(base)) is None:
        return None
    return power(inverted, number(-n.real)) if n.is_integer or MINUS_ONE not in base.terms else Pow(base, n)


def _power_of_sum(base: Sum, n: Term) -> Term | None:
    """1 / Σ_i e^t w(i), where t does not depend on i, as 1/e^t / Σ w: e^t may cancel, where it overflows."""
    if not isinstance(n, Const) or n.real >= 0 or not n.is_integer:
        return None
    factors = factors_of(base.body)
    outside = [f for f in factors if isinstance(f, Call) and f.primitive == "exp" and f.free.isdisjoint(base.indices)]
    if not outside:
        return None
    inside = Sum(base.indices, mul(*(f for f in factors if f not in outside)))
    return mul(*(power(f, n) for f in outside), power(inside, n))


LAWS_OF_PRODUCTS.append((may_meet_exponentials, _product))
LAWS_OF_POWERS[Add] = _power
LAWS_OF_POWERS[Sum] = _power_of_sum
