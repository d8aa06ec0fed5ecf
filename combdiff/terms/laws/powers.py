"""Merges powers of one base: x^a x^b is x^(a + b), (x^a)^n is x^(a n), |x|² is x², and |u| sign(u) is u.

A real base under an exponent that is no integer is ≥ 0 wherever a program is finite, so that real roots may be taken
apart too: (x^(2/3))^(3/2) is x, and (x²)^(-3/2) is |x|^(-3). Of complex numbers only what holds on all branches is
used. The derivative of 1/x^(8/3) is then no quotient by a square, which would overflow where the derivative does not.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from combdiff.records import dataclass
from combdiff.terms.branches import at_least_zero
from combdiff.terms.nodes import ONE, TWO, Call, Conj, Const, Mul, Pow, Term
from combdiff.terms.types import Index, is_complex

HALF = Const(Fraction(1, 2))
_SIGNED = frozenset({"abs", "sign", "abs2"})
_MEETING = _SIGNED | {"sqrt"}
_PARTS = frozenset({"real", "imag"})


def may_meet(base: Term) -> bool:
    """Whether a factor may become one with others: a root, a power that is no integer, |u|, sign(u)."""
    inner = base.term if isinstance(base, Conj) else base
    return isinstance(inner, Pow) or (isinstance(inner, Call) and inner.primitive in _MEETING) or _is_part(inner)


def whole_square(base: Term) -> tuple[Term, Const] | None:
    """(v, m) with |u|² or √u² = v^m; None for other terms."""
    match base:
        case Call("abs", (u,)):
            return (Call("abs2", (u,)), ONE) if is_complex(u.type) else (u, TWO)
        case Call("sqrt", (u,)):
            return u, ONE
        case _:
            return None


def real_root(base: Term) -> tuple[Term, Const]:
    """(u, m) with base^q = u^(m q) for every q that is no integer; (base, 1) if there is no other u."""
    match base:
        case Pow(u, Const(m, imag)) if not imag and is_real_number(u):
            even = m.denominator == 1 and not m % 2
            return (Call("abs", (u,)) if even else u), Const(m)
        case Call("sqrt", (u,)) if is_real_number(u):
            return u, HALF
        case _:
            return base, ONE


def is_real_number(t: Term) -> bool:
    """Whether `t` is real, and no index."""
    return not is_complex(t.type) and not isinstance(t.type, Index)


# --- powers of one base ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """factor^times, where the factor is base^exponent, or its conjugate."""

    factor: Term
    times: int
    exponent: Term


@dataclass(frozen=True, slots=True)
class Group:
    """All powers of one base in a product, or of its conjugate."""

    base: Term
    conjugated: bool
    parts: list[Part]

    @property
    def meets(self) -> bool:
        """Whether they are not one power yet."""
        (first, *others) = self.parts
        return bool(others) or _is_folded(first)

    def raised(self, exponent: Term, power: Callable[[Term, Term], Term]) -> Term:
        """base^exponent: as an integer power of the root where nothing but roots and integer powers have met."""
        roots = all(_is_root(part.factor) or part.exponent == ONE for part in self.parts)
        if isinstance(exponent, Const) and (exponent.is_integer or (roots and not exponent.imag)):
            root = self.base if exponent.is_integer else Call("sqrt", (self.base,))
            n = exponent if exponent.is_integer else Const(2 * exponent.real)
            return power(_conj(root) if self.conjugated else root, n)
        raised = power(self.base, exponent)
        return _conj(raised) if self.conjugated else raised


def none_meet(powers: dict[Term, int]) -> bool:
    """Whether each factor is a power of a base of its own, and none is an absolute value or a sign.

    Most products are such, and this is much quicker than to gather them.

    >>> from combdiff.terms.nodes import fresh
    >>> from combdiff.terms.types import REAL
    >>> x, y = fresh("x", REAL), fresh("y", REAL)
    >>> none_meet({Pow(x, y): 1, y: 2}), none_meet({Pow(x, y): 1, x: 1})
    (True, False)
    """
    bases: set[tuple[Term, bool]] = set()
    if any(_taken_out(factor, powers) for factor in powers if _is_part(factor)):
        return False
    for factor, times in powers.items():
        base, exponent, conjugated = power_of(factor)
        if not times:
            continue
        if (isinstance(base, Call) and base.primitive in _SIGNED) or _is_folded(Part(factor, times, exponent)):
            return False
        if (base, conjugated) in bases:
            return False
        bases.add((base, conjugated))
    return True


def bases_of(powers: dict[Term, int]) -> list[Group]:
    """The factors of a product by what they are powers of."""
    groups: dict[tuple[Term, bool], Group] = {}
    for factor, times in powers.items():
        if times:
            base, exponent, conjugated = power_of(factor)
            group = groups.setdefault((base, conjugated), Group(base, conjugated, []))
            group.parts.append(Part(factor, times, exponent))
    return list(groups.values())


def power_of(factor: Term) -> tuple[Term, Term, bool]:
    """(base, exponent, whether it is conjugated) of a factor.

    >>> from combdiff.terms.nodes import fresh
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> power_of(Call("sqrt", (x,))) == (x, HALF, False)
    True
    """
    conjugated = isinstance(factor, Conj)
    match factor.term if isinstance(factor, Conj) else factor:
        case Pow(base, exponent) if not isinstance(exponent.type, Index):
            return base, exponent, conjugated
        case Call("sqrt", (base,)):
            return base, HALF, conjugated
        case inner:
            return inner, ONE, conjugated


def _is_root(factor: Term) -> bool:
    inner = factor.term if isinstance(factor, Conj) else factor
    return isinstance(inner, Call)


def _is_folded(part: Part) -> bool:
    """Whether a lone power can be written with fewer signs: (u^q)^n, and √u^n for an even n."""
    if part.exponent == ONE:
        return False
    return not part.times % 2 if _is_root(part.factor) else part.times != 1


def _conj(t: Term) -> Term:
    if isinstance(t, Conj):
        return t.term
    return Conj(t) if is_complex(t.type) else t


# --- absolute values and signs --------------------------------------------------------------------------------------


def without_signs(powers: dict[Term, int]) -> dict[Term, int]:
    """The powers of a product after |u|² = u², |u| sign(u) = u and their like: as few signs and roots as may be.

    All holds at u = 0, too: sign(u)² is 1 only beside what is 0 there, or infinite.
    """
    powers = dict(powers)
    while any(_without_sign(factor, powers) for factor in [*powers]):
        pass
    return powers


def _without_sign(factor: Term, powers: dict[Term, int]) -> bool:
    """Use one of the laws on `factor`; whether one could be used."""
    n = powers.get(factor, 0)
    match factor:
        case Call("abs", (u,)) if n and is_complex(u.type):
            return _size_of_complex(factor, u, n, powers)
        case Call("abs", (u,)) if n and not n % 2:
            return _shift(powers, {factor: -n, u: n})
        case Call("abs2", (u,)) if n < 0 and is_complex(u.type):
            return _over_square(factor, u, powers)
        case Call("sign", (u,)) | Conj(Call("sign", (u,))) if n > 0 and is_complex(u.type):
            return _sign_of_complex(factor, u, powers)
        case Call("sign", (u,)) if n > 0:
            return _sign_of_real(factor, u, powers)
        case Call("real" | "imag", (Mul(inner),)) if n > 0:
            return _without_real_powers(factor, inner, powers)
        case _:
            return False


def _size_of_complex(size: Term, z: Term, n: int, powers: dict[Term, int]) -> bool:
    """|z|² is abs2(z), and |z| abs2(z) is |z|³."""
    square = Call("abs2", (z,))
    if not n % 2:
        return _shift(powers, {size: -n, square: n // 2})
    squares = powers.get(square, 0)
    return squares != 0 and _shift(powers, {square: -squares, size: 2 * squares})


def _sign_of_complex(sign: Term, z: Term, powers: dict[Term, int]) -> bool:
    """|z| sign(z) is z, and sign(z) / |z| is 1/z', and so for the conjugates."""
    size, square = Call("abs", (z,)), Call("abs2", (z,))
    turned, other = (_conj(z), z) if isinstance(sign, Conj) else (z, _conj(z))
    if n := powers.get(size, 0):
        return _shift(powers, {size: -1, sign: -1, turned: 1} if n > 0 else {size: 1, sign: -1, other: -1})
    return powers.get(square, 0) > 0 and _shift(powers, {square: -1, size: 1, sign: -1, turned: 1})


def _over_square(square: Term, z: Term, powers: dict[Term, int]) -> bool:
    """z / abs2(z) is 1/z', which neither overflows nor underflows where the square does, and so for the conjugates."""
    above = next((u for u in (z, _conj(z)) if powers.get(u, 0) > 0), None)
    return above is not None and _shift(powers, {square: 1, above: -1, _conj(above): -1})


def _sign_of_real(sign: Term, u: Term, powers: dict[Term, int]) -> bool:
    """|u|^n sign(u) is u^n for an odd n, u sign(u) is |u|, sign(u)³ is sign(u)."""
    size = Call("abs", (u,))
    n = powers.get(size, 0)
    if n % 2:
        return _shift(powers, {size: -n, sign: -1, u: n})
    if powers.get(u, 0) > 0:
        return _shift(powers, {sign: -1} if at_least_zero(u) else {u: -1, sign: -1, size: 1})
    beside = powers.get(u, 0) or any(isinstance(f, Pow) and f.base == size for f, times in powers.items() if times)
    return powers[sign] > (1 if beside else 2) and _shift(powers, {sign: -2})


def _is_part(factor: Term) -> bool:
    """Whether it is the real or the imaginary part of a product."""
    return isinstance(factor, Call) and factor.primitive in _PARTS and isinstance(factor.args[0], Mul)


def _taken_out(part: Term, powers: dict[Term, int]) -> list[Term]:
    """The real factors in the real part of a product whose powers stand beside it, too: a of a^(-7/3) Re(a z)."""
    assert isinstance(part, Call) and isinstance(part.args[0], Mul), "the part of a product"
    beside = {power_of(factor)[0] for factor, times in powers.items() if times and not _is_part(factor)}
    real = [f for f in part.args[0].factors if not isinstance(f, Const) and not is_complex(f.type)]
    return [f for f in real if power_of(f)[0] in beside]


def _without_real_powers(part: Term, inner: tuple[Term, ...], powers: dict[Term, int]) -> bool:
    """x^p Re(x^q z) is x^p x^q Re(z) for a real x, so that no x^q under- or overflows which x^(p + q) does not."""
    assert isinstance(part, Call), "a part"
    shared = _taken_out(part, powers)
    if not shared:
        return False
    rest = tuple(f for f in inner if f not in shared)
    left = Call(part.primitive, (rest[0] if len(rest) == 1 else Mul(rest),))
    _shift(powers, {part: -1, left: 1})
    for f in shared:
        whole = f.exponent if isinstance(f, Pow) else None
        if isinstance(f, Pow) and isinstance(whole, Const) and whole.is_integer:
            _shift(powers, {f.base: int(whole.real)})
        else:
            _shift(powers, {f: 1})
    return True


def _shift(powers: dict[Term, int], by: dict[Term, int]) -> bool:
    for factor, n in by.items():
        powers[factor] = powers.get(factor, 0) + n
    return True
