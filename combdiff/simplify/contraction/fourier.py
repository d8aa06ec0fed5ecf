"""A Fourier transform undoes an inverse one (Eq. 3 to 5): two integrals over the line that meet in a phase.

    ∫∫ exp(i s r (w − u)) g(w) dr dw = 2π/|s| g(u)

The integral over r is 2π/|s| δ(w, u), which meets the integral over w. As in the paper, the integrals are exchanged,
and g is a function that has a Fourier transform.
"""

from __future__ import annotations

from itertools import permutations

from combdiff.calculus.affine import affine, inverse, times
from combdiff.terms.network import network
from combdiff.terms.terms import (
    IMAGINARY,
    ONE,
    PI,
    TWO,
    ZERO,
    Add,
    Call,
    Const,
    Pow,
    Sum,
    Term,
    Traverser,
    Var,
    add,
    call,
    factors_of,
    mul,
    neg,
    number,
    split_coefficient,
    substitute,
    subterms,
    total,
)
from combdiff.terms.types import interval_of, is_real

FOURIER = "fourier"
"""What the account of a contraction calls this law."""


def without_phases(t: Term) -> Term:
    """`t` without the pairs of integrals that meet in a phase.

    >>> from combdiff.language.inference.infer import infer
    >>> from combdiff.language.parsing.parser import parse
    >>> from combdiff.language.printing.printer import expression_text
    >>> f = infer(parse("(g::CF) -> (u::R) -> sum((r::R, w::R), exp(im * r * (w - u)) * g(w))"))
    >>> expression_text(without_phases(f))
    '(g::CF) -> (u::R) -> 2 * pi * g(u)'
    """
    return Traverser(lambda u: _met(u) if isinstance(u, Sum) else u)(t)


def _met(t: Sum) -> Term:
    """A sum with all of its pairs met; if a factor is a sum of terms, each of them may have a pair."""
    for r, w in permutations(_lines(t), 2):
        found = _of_pair(t, r, w)
        if found is not None:
            return without_phases(found)
    factors = factors_of(t.body)
    for f in factors if _lines(t) else ():
        if isinstance(f, Add) and any(isinstance(u, Sum) and _lines(u) for u in subterms(f)):
            others = [g for g in factors if g is not f]
            terms = [network(total(t.indices, mul(*others, u))).term() for u in f.terms]
            settled = [*map(without_phases, terms)]
            if settled != terms:
                return add(*settled)
    return t


def _lines(t: Sum) -> list[Var]:
    """The variables of a sum that run over the whole line."""
    return [v for v in t.indices if is_real(v.kind) and interval_of(v.kind) is None]


def _of_pair(t: Sum, r: Var, w: Var) -> Term | None:
    """The sum after r and w have met; None if r stands elsewhere than in phases, or w not beside it."""
    factors = factors_of(t.body)
    exponents = [_exponent(f) if r in f.free else None for f in factors]
    others = [f for f, e in zip(factors, exponents, strict=True) if e is None]
    if any(r in f.free for f in others):
        return None
    frequency = affine(add(*(e for e in exponents if e is not None)), r)
    along = frequency and affine(frequency[0], w)
    if not frequency or not along:
        return None
    scale, shift = (times(neg(IMAGINARY), u) for u in along)
    size = _size(scale)
    if size is None or not is_real(shift.type):
        return None
    at = times(neg(inverse(scale)), shift)
    measure = mul(TWO, PI, inverse(size))
    rest = substitute(mul(*others, call("exp", frequency[1])), {w: at})
    return mul(measure, total([v for v in t.indices if v not in (r, w)], rest))


def _exponent(f: Term) -> Term | None:
    """e of exp(e), n e of its power."""
    match f:
        case Call("exp", (e,)):
            return e
        case Pow(Call("exp", (e,)), Const() as n):
            return mul(n, e)
        case _:
            return None


def _size(t: Term) -> Term | None:
    """|t| of a real number in front of powers of π, which is not 0; None for all else."""
    front, rest = split_coefficient(t)
    bases = {f.base if isinstance(f, Pow) else f for f in factors_of(rest)}
    return mul(number(abs(front.real)), rest) if front != ZERO and not front.imag and bases <= {PI, ONE} else None
