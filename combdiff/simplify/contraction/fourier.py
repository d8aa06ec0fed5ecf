"""A Fourier transform undoes an inverse one (Eq. 3 to 5): integrals over a line, or sums, meet in a phase.

    ∫∫ exp(i s r (w − u)) g(w) dr dw = 2π/|s| g(u)
    Σ_k exp(2πi k (n − m) / N) = N δ(n, m)          for indices from 0 to N − 1

The integral over r is 2π/|s| δ(w, u), which meets the integral over w. As in the paper, the integrals are exchanged,
and g is a function that has a Fourier transform.
"""

from __future__ import annotations

from itertools import permutations

from combdiff.calculus.affine import affine, expanded, inverse, times
from combdiff.records import dataclass
from combdiff.terms.network import network
from combdiff.terms.terms import (
    IMAGINARY,
    MINUS_ONE,
    ONE,
    PI,
    TWO,
    ZERO,
    Add,
    Call,
    Const,
    Mul,
    Pow,
    Sum,
    Term,
    Traverser,
    Var,
    add,
    call,
    conj,
    delta,
    factors_of,
    mul,
    neg,
    number,
    size,
    split_coefficient,
    substitute,
    subterms,
    terms_of,
    total,
)
from combdiff.terms.types import COMPLEX, Domain, Index, interval_of, is_real

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
    return Traverser(lambda u: _met(u) if isinstance(u, Sum) else u, Sum)(t)


def _met(t: Sum) -> Term:
    """A sum with all of its pairs met; if a factor is a sum of terms, each of them may have a pair."""
    for r, w in permutations(_lines(t), 2):
        found = _of_pair(t, r, w)
        if found is not None:
            return without_phases(found)
    for k in t.indices:
        found = _over_range(t, k) if isinstance(k.kind, Index) else None
        if found is not None:
            return without_phases(found)
    factors = factors_of(t.body)
    for f in factors:
        if isinstance(f, Add) and any(map(_has_phase, factors)) and any(_has_phase(u.body) for u in subterms(f, Sum)):
            others = [g for g in factors if g is not f]
            terms = [network(total(t.indices, mul(*others, u))).term() for u in f.terms]
            settled = [*map(without_phases, terms)]
            if settled != terms:
                return add(*settled)
        if isinstance(f, Call) and f.primitive in ("abs2", "real", "imag") and any(map(_is_phase, subterms(f))):
            found = _below(t, f)
            if found is not None:
                return found
    return t


def _below(t: Sum, f: Call) -> Term | None:
    """A sum whose phases meet below |·|², or below a real or imaginary part; None if none meet.

    Plancherel: Σ_k |Σ_n exp(−2πi k n / N) f(n)|² is N Σ_n |f(n)|².
    """
    others = [g for g in factors_of(t.body) if g is not f]
    (u,) = f.args
    square = f.primitive == "abs2"
    inside = [u, _conjugate(u)] if square else [u]
    whole = network(total(t.indices, mul(*others, *inside))).term()
    met = without_phases(whole)
    if met is whole or not all(is_real(g.type) for g in others):
        return None
    if not square:
        return call(f.primitive, met)
    met = Traverser(lambda v: _squares(v) if isinstance(v, Mul) else v, Mul)(met)
    return met if is_real(met.type) else None


def _conjugate(t: Term) -> Term:
    """t', with the conjugate at the factors."""
    match t:
        case Sum(indices, body):
            return total(indices, _conjugate(body))
        case Mul(factors):
            return mul(*map(_conjugate, factors))
        case Add(terms):
            return add(*map(_conjugate, terms))
        case Call("exp", (e,)):
            return call("exp", _conjugate(e))
        case _:
            return conj(t)


def _squares(t: Mul) -> Term:
    """A product with |f|² for f f'."""
    left = list(t.factors)
    for f in t.factors:
        if f in left and f.type == COMPLEX and conj(f) in left:
            left.remove(f)
            left.remove(conj(f))
            left.append(call("abs2", f))
    return mul(*left)


def _lines(t: Sum) -> list[Var]:
    """The variables of a sum that run over the whole line."""
    return [v for v in t.indices if is_real(v.kind) and interval_of(v.kind) is None]


def _of_pair(t: Sum, r: Var, w: Var) -> Term | None:
    """The sum after r and w have met; None if r stands elsewhere than in phases, or w not beside it."""
    phase = _phase(t, r)
    along = phase and affine(phase.slope, w)
    if not phase or not along:
        return None
    scale, shift = (times(neg(IMAGINARY), u) for u in along)
    size = _size(scale)
    if size is None or not is_real(shift.type):
        return None
    at = times(neg(inverse(scale)), shift)
    measure = mul(TWO, PI, inverse(size))
    return mul(measure, total([v for v in t.indices if v not in (r, w)], substitute(phase.rest, {w: at})))


def _over_range(t: Sum, k: Var) -> Term | None:
    """N δ(n, m) for a sum over k, from 0 to N − 1, of nothing but the phase exp(2πi k (n − m) / N).

    Where the range is periodic, n and m may be sums of indices.
    """
    phase = _phase(t, k)
    domain = k.kind.domain if isinstance(k.kind, Index) else None
    if phase is None or domain is None or not _is_plain(domain):
        return None
    turns = [_turns(u, k) for u in terms_of(expanded(phase.slope))]
    ahead, back = ([n for found in turns if found for sign, n in (found,) if sign == s] for s in (1, -1))
    if None in turns or not turns or not (domain.periodic or len(ahead) == len(back) == 1):
        return None
    rest = [v for v in t.indices if v is not k]
    match ahead, back:
        case ([n], [m]) | ([m], [n]) if m in rest and m is not n:
            return mul(size(domain), total([v for v in rest if v is not m], substitute(phase.rest, {m: n})))
        case _:
            return mul(size(domain), total(rest, delta(add(*ahead), add(*back), phase.rest)))


def _is_plain(d: Domain) -> bool:
    """Whether indices run over 0, 1, …, N − 1, for any N."""
    bounded = d.lower is not None or d.upper is not None or d.of is not None or d.nodes is not None
    return d.directions == 1 and not (d.symmetric or d.listed or d.common or bounded)


def _turns(t: Term, k: Var) -> tuple[int, Var] | None:
    """±1 and n of ±2πi n / N, where n is an index of the range of k."""
    front, rest = split_coefficient(t)
    factors = list(factors_of(rest))
    own = [f for f in factors if isinstance(f, Var) and f.kind == k.kind]
    sizes = [f for f in factors if _is_inverse_size(f, k)]
    if front.real or abs(front.imag) != 2 or len(factors) != 3 or len(own) != 1 or len(sizes) != 1 or PI not in factors:
        return None
    return (1 if front.imag > 0 else -1), own[0]


def _is_inverse_size(t: Term, k: Var) -> bool:
    """Whether it is 1/N, for the N values of k."""
    match t:
        case Pow(Sum((i,), body), Const() as n):
            return i.kind == k.kind and body == ONE and n == MINUS_ONE
        case _:
            return False


def _is_phase(t: Term) -> bool:
    return isinstance(t, Call) and t.primitive == "exp" and t.type == COMPLEX


def _has_phase(t: Term) -> bool:
    """Whether an exponential is a factor."""
    return any(_exponent(f) is not None for f in factors_of(t))


@dataclass(frozen=True, slots=True)
class _Phase:
    """exp(slope r) times a rest in which r does not stand."""

    slope: Term
    rest: Term


def _phase(t: Sum, r: Var) -> _Phase | None:
    """The summand as a phase of r; None if r stands elsewhere, too."""
    factors = factors_of(t.body)
    exponents = [_exponent(f) if r in f.free else None for f in factors]
    others = [f for f, e in zip(factors, exponents, strict=True) if e is None]
    if any(r in f.free for f in others):
        return None
    found = affine(add(*(e for e in exponents if e is not None)), r)
    return found and _Phase(found[0], mul(*others, call("exp", found[1])))


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
