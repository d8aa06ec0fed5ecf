"""Stable forms of sums of a few exponentials, and of quotients by them: exp(u) + exp(v), not Σ_i exp(x(i)).

log(exp(u) + exp(v)) is u + softplus(v − u), and log(exp(u) − exp(v)) is u + log(1 − exp(v − u)), for u is the larger
one wherever the logarithm is finite. A numerator is taken apart where its exponentials meet those of the denominator,
so that (exp(t) − exp(−t))/(exp(t) + exp(−t)) is σ(2t) − σ(−2t), which is tanh(t). All holds for real numbers only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from combdiff.records import dataclass
from combdiff.terms.arithmetic import opposite
from combdiff.terms.branches import above_zero, at_least_zero, is_scale
from combdiff.terms.laws.exponentials import are_opposite, exponent, exponential, softplus
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    ZERO,
    Add,
    Call,
    Const,
    Mul,
    Pow,
    Reduce,
    Term,
    add,
    call,
    factors_of,
    mul,
    neg,
    number,
    split_coefficient,
    sub,
    terms_of,
)
from combdiff.terms.types import is_complex

Logarithm = Callable[[Term], Term | None]
"""log(t) of what is above 0, and may over- or underflow."""
_HALF = number(Fraction(1, 2))


@dataclass(frozen=True, slots=True)
class _Part:
    """A term of a sum: ± exp(logarithm), where `grows` says whether the exponent is a variable one."""

    sign: int
    logarithm: Term
    grows: bool

    @property
    def may_vanish(self) -> bool:
        """Whether the logarithm is that of a sum under a condition: where none takes part, it is −∞."""
        parts = (u for u in terms_of(self.logarithm) if isinstance(u, Reduce))
        return any(u.kind == "logsumexp" and u.mark != ONE for u in parts)


def logarithm_of_sum(t: Add, logarithm: Logarithm, positive: bool = False) -> Term | None:
    """log(t) of a sum in which exponentials stand; None where there are none, or their signs are not known.

    A difference is above 0 wherever its own logarithm is finite. It is None if t is to be at least 0 wherever the
    logarithm of something else is: of Σ_i w(i) (exp(u(i)) − exp(v(i))), terms may be below 0.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> x, y = fresh("x", REAL), fresh("y", REAL)
    >>> found = logarithm_of_sum(Add((Call("exp", (x,)), Call("exp", (y,)))), lambda t: None)
    >>> found == add(x, softplus(sub(y, x)))
    True
    """
    terms = flat(t)
    if (found := _one_beside_tanh(terms) or (None if positive else _between_sigmoids(terms))) is not None:
        return found
    parts = [_part(u, logarithm) for u in terms]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or not any(part.grows for part in known):
        return None
    match [part.sign for part in known]:
        case [1, -1] | [-1, 1]:
            above, below = sorted(known, key=lambda part: -part.sign)
            if positive or not above.grows:
                return None
            return add(
                above.logarithm, call("log", sub(ONE, call("exp", _spread(sub(below.logarithm, above.logarithm)))))
            )
        case signs if -1 in signs or _is_bounded(known):
            return None
    if all(part.may_vanish for part in known):
        return None
    # what is subtracted from all others is finite
    first, *others = sorted(known, key=lambda part: (part.may_vanish, part.grows))
    whole = first.logarithm
    for part in others:
        whole = add(whole, softplus(_spread(sub(part.logarithm, whole))))
    return whole


def flat(t: Term) -> list[Term]:
    """The terms of a sum with a number in front of an inner sum multiplied out: 1 − (1 − p) is p.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> p = fresh("p", REAL)
    >>> flat(Add((ONE, Mul((MINUS_ONE, Add((ONE, Mul((MINUS_ONE, p))))))))) == [p]
    True
    """
    parts: list[Term] = []
    for u in terms_of(t):
        c, rest = split_coefficient(u)
        parts += [mul(c, v) for v in (flat(rest) if isinstance(rest, Add) else (rest,))]
    return list(terms_of(add(*parts)))


def _spread(t: Term) -> Term:
    spread = add(*flat(t))
    return without_softplus(spread) or spread


def without_softplus(t: Term) -> Term | None:
    """A sum with c softplus(u) − c softplus(−u) as c u; None if there is no such pair.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> without_softplus(sub(softplus(neg(x)), softplus(x))) == neg(x)
    True
    """
    found = _of_pair(t, "softplus", mul)
    return None if found is None else without_softplus(found) or found


def _of_pair(t: Term, primitive: str, whole: Callable[[Const, Term], Term]) -> Term | None:
    """A sum with `whole(c, u)` for c f(u) − c f(−u), where c > 0; None if there is no such pair."""
    terms = [(split_coefficient(u), u) for u in terms_of(t)]
    for (c, one), first in terms:
        for (d, other), second in terms:
            match one, other:
                case Call(f, (u,)), Call(g, (v,)) if f == g == primitive and c.real > 0 and add(c, d) == ZERO:
                    if are_opposite(u, v):
                        return add(whole(c, u), *(w for _, w in terms if w not in (first, second)))
    return None


def _one_beside_tanh(terms: Sequence[Term]) -> Term | None:
    """log(c ± c tanh(u)) is log(2 c) − softplus(∓2u), and log(c − c tanh(u)²) is log c − 2 log cosh u."""
    match terms:
        case [Const() as c, other] | [other, Const() as c] if above_zero(c):
            d, rest = split_coefficient(other)
        case _:
            return None
    match rest:
        case Call("tanh", (u,)) if not is_complex(u.type) and d in (c, mul(MINUS_ONE, c)):
            twice = mul(number(-2 if d == c else 2), u)
            return add(_log(mul(number(2), c)), neg(softplus(twice)))
        case Pow(Call("tanh", (u,)), Const(real=n)) if n == 2 and not is_complex(u.type) and d == neg(c):
            return add(_log(c), mul(number(-2), call("log", call("cosh", u))))
        case _:
            return None


def _between_sigmoids(terms: Sequence[Term]) -> Term | None:
    """log(σ(u) − σ(v)) is log σ(u) + log σ(−v) + log(1 − exp(v − u)): the chance of an interval.

    tanh(u) is 2 σ(2u) − 1.
    """
    if len(terms) != 2:
        return None
    match sorted(map(split_coefficient, terms), key=lambda pair: -pair[0].real):
        case [(c, Call("sigmoid" | "tanh" as name, (u,))), (d, Call(other, (v,)))] if (
            name == other and c.real > 0 and add(c, d) == ZERO and not is_complex(add(u, v).type)
        ):
            front: Term = c
            if name == "tanh":
                front, u, v = (mul(number(2), of) for of in (c, u, v))
            inside = call("log", sub(ONE, call("exp", sub(v, u))))
            return add(_log(front), neg(softplus(opposite(u))), neg(softplus(v)), inside)
        case _:
            return None


def _part(t: Term, logarithm: Logarithm) -> _Part | None:
    c, rest = split_coefficient(t)
    if is_complex(t.type) or not c.real:
        return None
    logarithms: list[Term] = [_log(number(abs(c.real)))]
    grows = False
    for f in () if rest == ONE else factors_of(rest):
        if (u := exponent(f)) is not None:
            logarithms.append(u)
            grows = grows or not isinstance(u, Const)
        elif is_scale(f):
            logarithms.append(call("log", f))
        elif (found := logarithm(f)) is not None:
            logarithms.append(found)
            grows = True
        else:
            return None
    return _Part(1 if c.real > 0 else -1, add(*logarithms), grows)


def _log(c: Term) -> Term:
    return ZERO if c == ONE else call("log", c)


def _is_bounded(parts: Sequence[_Part]) -> bool:
    """Whether nothing can over- or underflow: a number stands beside exponentials of what is below 0."""
    return any(not part.grows for part in parts) and all(
        at_least_zero(neg(part.logarithm)) for part in parts if part.grows
    )


# --- quotients ------------------------------------------------------------------------------------------------------


def quotient(t: Mul | Pow, logarithm: Logarithm) -> Term | None:
    """A product with the inverse of a sum of exponentials, in a stable form; None if there is none.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> below = Call("sigmoid", (mul(MINUS_ONE, x),))
    >>> quotient(Mul((Add((Call("exp", (x,)), MINUS_ONE)), below)), lambda t: None) == call("tanh", mul(_HALF, x))
    True
    """
    if is_complex(t.type):
        return None
    made = _taken_apart(factors_of(t), logarithm)
    return _one_exponential(factors_of(t), logarithm) if made is None else made


def _taken_apart(factors: Sequence[Term], logarithm: Logarithm) -> Term | None:
    """(a exp(u) + b)/(p exp(u) + q) as a sum, of which each term keeps one exponential at most."""
    if not any(map(_divides, factors)):
        return None
    for n, f in enumerate(factors):
        others = [*factors[:n], *factors[n + 1 :]]
        if not isinstance(f, Add) or all(exponential(u)[0] == ZERO for u in f.terms):
            continue
        terms = [mul(u, *others) for u in f.terms]
        if any(map(_has_softplus, (exponential(u)[0] for u in others))):
            return add(*(_one_exponential(factors_of(u), logarithm) or u for u in terms))
        if any(exponential(u)[0] != ZERO == exponential(v)[0] for u, v in zip(f.terms, terms, strict=True)):
            made = add(*terms)
            return with_tanh(made) or made
    return None


def _divides(f: Term) -> bool:
    match f:
        case Call("sigmoid", _) | Pow(Call("sigmoid", _), Const()):
            return True
        case Call("exp", (u,)):
            return _has_softplus(u)
        case _:
            found = _below(f)
            return found is not None and any(exponential(u)[0] != ZERO for u in found[0].terms)


def _below(f: Term) -> tuple[Add, Const] | None:
    """(u, n) of u^n for a sum u and n < 0, where 1/√u has n = −1/2."""
    match f:
        case Pow(Add() as u, Const() as n) if n.real < 0 and not n.imag:
            return u, n
        case Pow(Call("sqrt", (Add() as u,)), Const() as n) if n.real < 0 and not n.imag:
            return u, number(n.real / 2)
        case _:
            return None


def _one_exponential(factors: Sequence[Term], logarithm: Logarithm) -> Term | None:
    """exp(w)/(exp(u) + exp(v) + …) as exp(w − log(exp(u) + exp(v) + …)), of three exponentials or more.

    Of two, the laws of products leave one (`exponentials.py`), but of those under a root.
    """
    w, rest = exponential(mul(*factors))
    w = _spread(w)
    if _has_softplus(w) and sum(exponent(f) is not None for f in factors) > 1:
        return mul(rest, call("exp", w))
    for n, f in enumerate(factors):
        if (found := _below(f)) is None:
            continue
        below, times = found
        if len({exponential(u)[0] for u in below.terms}) < (3 if times.is_integer else 2):
            continue
        whole = logarithm_of_sum(below, logarithm)
        if whole is not None:
            others = [*factors[:n], *factors[n + 1 :]]
            w, rest = exponential(mul(*others))
            return mul(rest, call("exp", _spread(add(w, mul(times, whole)))))
    return None


def _has_softplus(u: Term) -> bool:
    """Whether it is an exponent that a logarithm of a sum has been put into."""
    rest = (split_coefficient(v)[1] for v in terms_of(u))
    return any(isinstance(v, Call) and v.primitive == "softplus" for v in rest)


def with_tanh(t: Term) -> Term | None:
    """A sum with c σ(u) − c σ(−u) as c tanh(u/2); None if there is no such pair."""
    return _of_pair(t, "sigmoid", lambda c, u: mul(c, call("tanh", mul(_HALF, u))))
