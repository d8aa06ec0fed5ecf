"""Sums, products and powers in normal form.

They stay flat, numbers are folded, zeros and ones dropped, equal terms and factors merged; affine forms of indices have
one shape. Powers of one base are one power, and |u|² is u² (`laws/powers.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import gcd

from combdiff.terms.branches import above_zero
from combdiff.terms.laws.extrema import is_extremum, opposites, with_signs_known
from combdiff.terms.laws.powers import HALF, bases_of, may_meet, none_meet, real_root, whole_square, without_signs
from combdiff.terms.laws.roots import is_root_of_number, with_one_root
from combdiff.terms.nodes import (
    MINUS_ONE,
    ONE,
    TWO,
    ZERO,
    Add,
    Call,
    Const,
    Lam,
    Mul,
    Pow,
    Reduce,
    Sum,
    Term,
    Tuple,
    can_fill_slot,
    factors_of,
    terms_of,
)
from combdiff.terms.numerals import is_held, is_modest
from combdiff.terms.types import Index, is_complex


def number(value: int | Fraction | complex | tuple[Fraction, Fraction]) -> Const:
    """An exact number; a float or complex is taken at its exact binary value."""
    match value:
        case complex():
            return Const(Fraction(value.real), Fraction(value.imag))
        case (real, imag):
            return Const(real, imag)
        case _:
            return Const(Fraction(value))


def times(a: Const, b: Const) -> Const:
    """a·b."""
    if a is ONE or b is ONE:
        return b if a is ONE else a
    if not a.imag and not b.imag:
        return Const(a.real * b.real)
    return Const(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)


def _plus(a: Const, b: Const) -> Const:
    return Const(a.real + b.real, a.imag + b.imag)


def reciprocal(c: Const) -> Const:
    """1/c for c ≠ 0."""
    norm = c.real * c.real + c.imag * c.imag
    return Const(c.real / norm, -c.imag / norm)


def _raised(c: Const, n: int) -> Const:
    square, n = (c, n) if n > 0 else (reciprocal(c), -n)
    result = ONE
    while n:
        result = times(result, square) if n % 2 else result
        n //= 2
        square = times(square, square) if n else square
    return result


def split_coefficient(t: Term) -> tuple[Const, Term]:
    """(c, u) with t = c·u, where u carries no number in front.

    >>> from combdiff.terms.nodes import fresh
    >>> from combdiff.terms.types import REAL
    >>> c, u = split_coefficient(mul(number(3), fresh("x", REAL)))
    >>> str(c.real)
    '3'
    """
    match t:
        case Const():
            return t, ONE
        case Mul((Const() as c, *rest)):
            return c, rest[0] if len(rest) == 1 else Mul(tuple(rest))
        case _:
            return ONE, t


def add(*terms: Term) -> Term:
    """The sum: flat, equal terms merged, zeros dropped; affine forms of indices are sorted."""
    merged: dict[Term, tuple[Const, Term]] = {}
    flat: list[Term] = []
    for t in terms:
        flat += terms_of(t)
    for t in flat:
        c, u = split_coefficient(t)
        if u in merged:
            c = _plus(merged[u][0], c)
            t = mul(c, u)
        merged[u] = c, t
    if any(map(is_extremum, merged)) and (apart := _without_extrema(merged)) is not None:
        return add(*apart)
    kept = [t for c, t in merged.values() if c.real or c.imag]
    if not kept:
        return ZERO
    if len(kept) == 1:
        return kept[0]
    if all(map(can_fill_slot, kept)):
        kept.sort(key=_order_with_sizes if reads_from_the_end(kept) else _affine_order)
    return Add(tuple(kept))


def _without_extrema(merged: Mapping[Term, tuple[Const, Term]]) -> list[Term] | None:
    """The terms of a sum with c (a + b) for c max(a, b) + c min(a, b), and c |a - b| for c max(a, b) - c min(a, b).

    None if there is no such pair.
    """
    pair = opposites(u for u, (c, _) in merged.items() if c.real or c.imag)
    if pair is None:
        return None
    (largest, _), (c, d) = pair, (merged[u][0] for u in pair)
    assert isinstance(largest, Call), "a maximum"
    a, b = largest.args
    if c == d:
        found = [mul(c, a), mul(c, b)]
    elif c == times(MINUS_ONE, d):
        found = [mul(c, Call("abs", (add(a, mul(MINUS_ONE, b)),)))]
    else:
        return None
    return [*(t for u, (_, t) in merged.items() if u not in pair), *found]


def reads_from_the_end(terms: Sequence[Term]) -> bool:
    """Whether an index expression reads as n - 1 - i or 4 - i do: it holds a size, or takes indices from a number."""
    if any(map(_is_size, terms)):
        return True
    numbers = [t.real > 0 for t in terms if isinstance(t, Const)]
    return any(numbers) and all(isinstance(t, Const) or split_coefficient(t)[0].real < 0 for t in terms)


def _is_size(t: Term) -> bool:
    return isinstance(split_coefficient(t)[1], Sum)


def _order_with_sizes(t: Term) -> tuple[int, bool, list[int]]:
    """n - 1 - i: what is added, then the number, then what is subtracted; indices before sizes."""
    place = 1 if isinstance(t, Const) else 0 if split_coefficient(t)[0].real > 0 else 2
    return place, _is_size(t), sorted(v.uid for v in t.free)


def _affine_order(t: Term) -> tuple[bool, bool, bool, list[int]]:
    """k + b for a step b from a point k of a periodic domain; what is subtracted, then constants, at the end."""
    coefficient, rest = split_coefficient(t)
    domains = [v.kind.domain for v in rest.free if isinstance(v.kind, Index)]
    steps = not any(d.periodic for d in domains if d)
    return isinstance(t, Const), coefficient.real < 0, steps, sorted(v.uid for v in t.free)


def mul(*factors: Term) -> Term:
    """The product: flat, numbers folded in front, powers of one base gathered."""
    coefficient = ONE
    powers: dict[Term, int] = {}
    for factor in factors:
        for f in factors_of(factor):
            if isinstance(f, Const):
                coefficient = f if coefficient is ONE else times(coefficient, f)
            else:
                base, n = integer_power(f)
                powers[base] = powers.get(base, 0) + n
    if not coefficient.real and not coefficient.imag:
        return ZERO
    for concerns, law in LAWS_OF_PRODUCTS:
        if any(map(concerns, powers)) and (found := law(powers)) is not None:
            return mul(coefficient, *found)
    if any(isinstance(base, Const) for base in powers):
        coefficient, powers = _worked_out(coefficient, powers)
    kept = [b if n == 1 else Pow(b, number(n)) for b, n in powers.items() if n]
    if not kept:
        return coefficient
    if coefficient is not ONE and coefficient != ONE:
        if len(kept) == 1 and isinstance(kept[0].type, Index) and isinstance(kept[0], Add):
            return add(*(mul(coefficient, t) for t in kept[0].terms))
        kept.insert(0, coefficient)
    return kept[0] if len(kept) == 1 else Mul(tuple(kept))


def _taken_apart(powers: Mapping[Term, int]) -> list[Term] | None:
    """The factors with powers of products taken apart in which a factor cancels with another one: a²/(a b)² is 1/b²."""
    parts = {base: {b: m * n for b, m in map(integer_power, factors_of(base))} for base, n in powers.items()}
    above, below = ({b for part in parts.values() for b, n in part.items() if sign * n > 0} for sign in (1, -1))
    cancel = above & below
    opened = {base for base, part in parts.items() if isinstance(base, Mul) and not cancel.isdisjoint(part)}
    if not opened:
        return None
    each = [parts[base] if base in opened else {base: n} for base, n in powers.items()]
    return [power(b, number(n)) for part in each for b, n in part.items()]


def _with_extrema_met(powers: Mapping[Term, int]) -> list[Term] | None:
    """The factors with a b for max(a, b) min(a, b), and with the signs that max(0, u) tells; None if there are none."""
    pair = opposites(f for f, n in powers.items() if n > 0)
    if pair is not None:
        (largest, _), n = pair, min(powers[f] for f in pair)
        assert isinstance(largest, Call), "a maximum"
        left = [power(f, number(m - n if f in pair else m)) for f, m in powers.items()]
        return [*left, *(power(a, number(n)) for a in largest.args)]
    told = with_signs_known(powers)
    return None if told is None else [power(f, number(n)) for f, n in told]


def integer_power(f: Term) -> tuple[Term, int]:
    """b and n of b^n for a whole number n; a factor and 1 for all else."""
    match f:
        case Pow(base, Const() as n) if n.is_integer:
            return base, int(n.real)
        case _:
            return f, 1


def _met(powers: dict[Term, int]) -> list[Term] | None:
    """The factors where powers of one base, |u| and sign(u), or max(a, b) and min(a, b) have met; None if none have."""
    if any(map(is_extremum, powers)) and (told := _with_extrema_met(powers)) is not None:
        return told
    if none_meet(powers):
        return None
    unsigned = without_signs(powers)
    groups = bases_of(unsigned)
    if unsigned == powers and not any(group.meets for group in groups):
        return None
    factors: list[Term] = []
    for group in groups:
        if not group.meets:
            factors += [power(part.factor, number(part.times)) for part in group.parts]
            continue
        total = add(*(mul(number(part.times), part.exponent) for part in group.parts))
        factors.append(group.raised(total, power))
    return factors


LAWS_OF_PRODUCTS: list[tuple[Callable[[Term], bool], Callable[[dict[Term, int]], list[Term] | None]]] = [
    (lambda base: isinstance(base, Mul), _taken_apart),
    (lambda base: may_meet(base) or is_extremum(base), _met),
    (is_root_of_number, with_one_root),
]
"""Laws of a product of powers of different bases, each with the bases that it concerns: most products have none.

`laws/exponentials.py` adds one.
"""


def _worked_out(coefficient: Const, powers: dict[Term, int]) -> tuple[Const, dict[Term, int]]:
    """The product after powers of numbers are worked out.

    One that leaves floating point little room goes into a power of another factor: ħ^10 ω^9 is ħ (ħ ω)^9.
    """
    powers = dict(powers)
    for c, n in [(base, n) for base, n in powers.items() if isinstance(base, Const)]:
        alike = (base for base, m in powers.items() if m * n > 0 and abs(m) > 1 and not isinstance(base, Const))
        within = None if is_held(c.real, c.imag, n) else next(alike, None)
        if within is not None:
            shared = min(n, powers[within], key=abs)
            for base, more in ((c, -shared), (within, -shared), (mul(c, within), shared)):
                powers[base] = powers.get(base, 0) + more
        result = power(c, number(powers[c]))
        if isinstance(result, Const):
            coefficient = times(coefficient, result)
            del powers[c]
    return coefficient, powers


def content(t: Term) -> tuple[Const, Term]:
    """(c, u) with t = c·u: the number that all terms of `t` have in front, if they are multiples of it by integers.

    8 a − 4 b is 4 (2 a − b), and a/2 + 3 b/2 is (a + 3 b)/2; a/2 + b stays, and −a/2 − b is −(a/2 + b).
    """
    if not isinstance(t, Add):
        return split_coefficient(t)
    coefficients = [split_coefficient(u)[0] for u in t.terms]
    denominators = {c.real.denominator for c in coefficients}
    if any(c.imag for c in coefficients):
        return ONE, t
    sign = -1 if all(c.real < 0 for c in coefficients) else 1
    if len(denominators) > 1:
        return (MINUS_ONE, add(*map(neg, t.terms))) if sign < 0 else (ONE, t)
    size = number(Fraction(sign * gcd(*(c.real.numerator for c in coefficients)), denominators.pop()))
    return size, add(*(mul(reciprocal(size), u) for u in t.terms))


def neg(t: Term) -> Term:
    """−t."""
    return mul(MINUS_ONE, t)


def opposite(t: Term) -> Term:
    """−t, term by term where fewer minus signs are left.

    >>> from combdiff.terms.nodes import fresh
    >>> from combdiff.terms.types import REAL
    >>> x, y = fresh("x", REAL), fresh("y", REAL)
    >>> opposite(sub(x, y)) == sub(y, x), opposite(add(x, y)) == neg(add(x, y))
    (True, True)
    """
    if not isinstance(t, Add):
        return neg(t)
    minus = sum(split_coefficient(u)[0].real < 0 for u in t.terms)
    return add(*map(neg, t.terms)) if 2 * minus >= len(t.terms) else neg(t)


def sub(a: Term, b: Term) -> Term:
    """a − b."""
    return add(a, neg(b))


def combination(pairs: Sequence[tuple[int, Term]]) -> Term:
    """Σ coefficient · index."""
    return add(*(mul(number(c), i) for c, i in pairs))


def _is_even(n: Const) -> bool:
    return n.is_integer and n.real > 0 and not n.real % 2


def power(base: Term, exponent: Term) -> Term:
    """base ^ exponent; integer powers of numbers, unless they are very large, and powers of powers are folded."""
    if exponent == ZERO:
        return ONE
    if exponent == ONE:
        return base
    law = LAWS_OF_POWERS.get(type(base))
    found = None if law is None else law(base, exponent)
    if found is not None:
        return found
    if isinstance(exponent, Const) and not exponent.is_integer and not exponent.imag:
        of, factor = real_root(base)
        return Pow(base, exponent) if of is base else power(of, times(exponent, factor))
    return Pow(base, exponent)


def _power_of_number(c: Const, n: Term) -> Term | None:
    modest = isinstance(n, Const) and n.is_integer and is_modest(c.real, c.imag, int(n.real))
    return _raised(c, int(n.real)) if isinstance(n, Const) and modest else None


def _power_of_power(base: Pow, n: Term) -> Term | None:
    """(u^m)^n is u^(m n) for a whole number n, and for real exponents where u is above 0."""
    u, m = base.base, base.exponent
    if isinstance(n, Const) and n.is_integer and not isinstance(m.type, Index):
        return power(u, mul(n, m))
    if above_zero(u) and not is_complex(m.type) and not is_complex(n.type):
        return power(u, mul(m, n))
    return None


def _power_of_product(base: Mul, n: Term) -> Term | None:
    """(a b)^n is a^n b^n for a real n where the factors are above 0, and (−a)^n is a^n for an even one."""
    if not isinstance(n, Const) or n.imag:
        return None
    if not n.is_integer:
        each = (Pow(f, n) if isinstance(f, Const) else power(f, n) for f in base.factors)
        return mul(*each) if all(map(above_zero, base.factors)) else None
    first, *rest = base.factors
    return power(mul(*rest), n) if first == MINUS_ONE and not n.real % 2 else None


def _power_of_call(base: Call, n: Term) -> Term | None:
    """An even power of |u|, sign(u), … by the square of that."""
    if not isinstance(n, Const) or not n.is_integer or n.real % 2:
        return None
    square = whole_square(base)
    return Pow(base, n) if square is None else power(square[0], mul(n, HALF, square[1]))


def _power_of_norm(base: Reduce, n: Term) -> Term | None:
    """‖u‖^2k by the sum of squares, which has its derivative where it is 0 without a condition."""
    match base, n:
        case Reduce("norm", Lam(indices, Tuple((mark, u)))), Const() if mark == ONE and _is_even(n):
            summed = Call("abs2", (u,)) if is_complex(u.type) else power(u, TWO)
            return power(Sum(indices, summed), times(n, HALF))
    return None


LAWS_OF_POWERS: dict[type[Term], Callable[..., Term | None]] = {
    Const: _power_of_number,
    Pow: _power_of_power,
    Mul: _power_of_product,
    Call: _power_of_call,
    Reduce: _power_of_norm,
}
"""What a power of a term of a class is, None if it is only that; `laws/exponentials.py` adds sums."""
