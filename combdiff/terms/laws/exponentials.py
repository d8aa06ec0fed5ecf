"""Stable forms of what is written with exponentials: σ(t) for 1/(1 + exp(−t)), softplus(t) for log(1 + exp(t)).

As they are written they overflow, or lose all digits, where their values do not: log(1 + exp(1000)), log(1 − σ(40)).
All holds for real numbers only. A law is a case of a `match`; σ(t) of the right sides is `sigmoid`. Nothing here makes
a product that is not folded, so that the constructors may call it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from combdiff.terms.nodes import MINUS_ONE, ONE, Add, Call, Const, Mul, Term
from combdiff.terms.types import is_complex

Opposite = Callable[[Term], Term]
"""t ↦ −t."""


def may_meet_exponentials(factor: Term) -> bool:
    """Whether a factor may become another one beside exponentials: σ(t), and 1/cosh(t).

    >>> from combdiff.terms.nodes import fresh
    >>> from combdiff.terms.types import REAL
    >>> may_meet_exponentials(Call("sigmoid", (fresh("x", REAL),)))
    True
    """
    return isinstance(factor, Call) and factor.primitive in ("sigmoid", "cosh")


def logarithm(t: Term, minus: Opposite) -> Term | None:
    """log(t) in a stable form; None if there is none.

    >>> from combdiff.terms.nodes import fresh
    >>> from combdiff.terms.terms import call, neg
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> logarithm(Add((ONE, Call("exp", (x,)))), neg) == call("softplus", x)
    True
    """
    match t:
        case Add() if (u := exponent_beside_one(t)) is not None:
            return softplus(u)
        case Call("sigmoid", (u,)):
            return minus(softplus(minus(u)))
        case Add() if (u := complement(t)) is not None:
            return minus(softplus(u))
        case Mul((Const() as c, Add(terms))) if c == MINUS_ONE:
            return logarithm(Add(tuple(map(minus, terms))), minus)
        case _:
            return None


def inverse(t: Term, minus: Opposite) -> Term | None:
    """1/t in a stable form; None if there is none: 1/(1 + exp(u)) is σ(−u), 1/(−1 − exp(u)) is −σ(−u)."""
    match t:
        case Add() if (u := exponent_beside_one(t)) is not None:
            return sigmoid(minus(u))
        case Add(terms) if MINUS_ONE in terms and (u := exponent_beside_one(Add(tuple(map(minus, terms))))) is not None:
            return minus(sigmoid(minus(u)))
        case _:
            return None


def met(powers: Mapping[Term, int], minus: Opposite) -> dict[Term, int] | None:
    """The powers of a product after the laws of σ and tanh; None if there is nothing to do.

    >>> from combdiff.terms.nodes import fresh
    >>> from combdiff.terms.terms import neg
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> met({Call("exp", (x,)): 1, sigmoid(neg(x)): 2}, neg) == {sigmoid(neg(x)): 1, sigmoid(x): 1}
    True
    """
    found = dict(powers)
    while any(_meets(factor, found, minus) for factor in [*found] if found[factor]):
        pass
    return None if found == powers else {factor: n for factor, n in found.items() if n}


def _meets(factor: Term, powers: dict[Term, int], minus: Opposite) -> bool:
    """Use one of the laws on `factor`; whether one could be used."""
    match factor:
        case Call("sigmoid", (t,)):
            into = sigmoid(minus(t))
            return any(
                _shift(powers, Law(factor, other, sign, made))
                for other in [*powers]
                for sign, made in _beside_sigmoid(other, t, into)
            )
        case Call("cosh", (t,)):
            return _shift(powers, Law(Call("sinh", (t,)), factor, -1, Call("tanh", (t,))))
        case _:
            return False


def _beside_sigmoid(other: Term, t: Term, into: Term) -> tuple[tuple[int, Term | None], ...]:
    """What stands beside σ(t), to the power of ±1, with what the two of them make."""
    match other:
        case Call("exp", (u,)) if are_opposite(u, t):
            return ((1, into),)
        case Call("exp", (u,)) if u == t:
            return ((-1, into),)
        case Add() if (v := exponent_beside_one(other)) is not None and are_opposite(v, t):
            return ((1, None),)
        case _:
            return ()


@dataclass(frozen=True, slots=True)
class Law:
    """`factor` times `other` to the power of `sign`, which is ±1, is `made`, or 1."""

    factor: Term
    other: Term
    sign: int
    made: Term | None


def _shift(powers: dict[Term, int], law: Law) -> bool:
    """Use a law as often as it can be used."""
    n = min(powers.get(law.factor, 0), law.sign * powers.get(law.other, 0))
    if n <= 0:
        return False
    powers[law.factor] -= n
    powers[law.other] -= law.sign * n
    if law.made is not None:
        powers[law.made] = powers.get(law.made, 0) + n
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
    match exponential:
        case Call("exp", (u,)) if not is_complex(u.type):
            return u
        case _:
            return None


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
    from combdiff.terms.arithmetic import split_coefficient, times

    c, rest = split_coefficient(t)
    parts = [split_coefficient(u) for u in rest.terms] if isinstance(rest, Add) else [(ONE, rest)]
    return {u: ((p := times(c, d)).real, p.imag) for d, u in parts}
