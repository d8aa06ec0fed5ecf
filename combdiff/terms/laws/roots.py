"""Square roots of numbers as one: √2 √π is √(2 π), and √2 / √(2 π) is 1/√π.

The density of the normal distribution has 1/√(2 π), and the derivative of its distribution function, by erf, 1/(√2 √π):
without this law the two do not cancel.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from combdiff.terms.nodes import ONE, Call, Const, Mul, Pow, Term, factors_of

_PI = Call("pi", ())
_PRIMES = (2, 3, 5, 7, 11, 13)
_LARGEST = 10**9
"""A numerator or a denominator above it stays as the program has it."""


def is_root_of_number(factor: Term) -> bool:
    """Whether a factor is √r or √(r π^k) for a rational number r.

    >>> is_root_of_number(Call("sqrt", (Const(Fraction(2)),))), is_root_of_number(_PI)
    (True, False)
    """
    return isinstance(factor, Call) and factor.primitive == "sqrt" and _number(factor.args[0]) is not None


def with_one_root(powers: Mapping[Term, int]) -> list[Term] | None:
    """The factors of a product with one square root of a number; None if no two have met.

    >>> two, root_of_pi = Call("sqrt", (Const(Fraction(2)),)), Call("sqrt", (_PI,))
    >>> _, found = with_one_root({two: -1, root_of_pi: -1})
    >>> found == Pow(Call("sqrt", (Mul((Const(Fraction(2)), _PI)),)), Const(Fraction(-1)))
    True
    """
    roots = [f for f, n in powers.items() if n and is_root_of_number(f)]
    if len(roots) < 2:
        return None
    r, k = Fraction(1), 0
    for f in roots:
        assert isinstance(f, Call), "a root"
        found = _number(f.args[0])
        assert found is not None, "a root of a number"
        r, k = r * found[0] ** powers[f], k + found[1] * powers[f]
    if max(r.numerator, r.denominator) > _LARGEST:
        return None
    (a, above), (b, below) = map(_without_squares, (r.numerator, r.denominator))
    m, odd = (k // 2, 1) if k % 2 and k > 0 else (-(-k // 2), -1) if k % 2 else (k // 2, 0)
    inside = _of(above, odd > 0), _of(below, odd < 0)
    rest = [_raised(f, n) for f, n in powers.items() if n and f not in roots]
    return [Const(Fraction(a, b)), *([_raised(_PI, m)] if m else ()), *_root(*inside), *rest]


def _number(t: Term) -> tuple[Fraction, int] | None:
    """(r, k) of r π^k for r > 0."""
    r, k = Fraction(1), 0
    for f in factors_of(t):
        match f:
            case Const(real, imag) if real > 0 and not imag:
                r *= real
            case Call("pi", ()):
                k += 1
            case Pow(Call("pi", ()), Const(n, imag)) if n.denominator == 1 and not imag:
                k += int(n)
            case _:
                return None
    return r, k


def _without_squares(n: int) -> tuple[int, int]:
    """(a, m) with n = a² m, for the squares of small primes."""
    a = 1
    for p in _PRIMES:
        while not n % p**2:
            a, n = a * p, n // p**2
    return a, n


def _of(n: int, has_pi: bool) -> Term:
    if not has_pi:
        return Const(Fraction(n))
    return _PI if n == 1 else Mul((Const(Fraction(n)), _PI))


def _root(above: Term, below: Term) -> list[Term]:
    """√(above/below) with as few signs as may be."""
    if below == ONE:
        return [] if above == ONE else [Call("sqrt", (above,))]
    if above == ONE:
        return [_raised(Call("sqrt", (below,)), -1)]
    if isinstance(above, Const) and isinstance(below, Const):
        return [Call("sqrt", (Const(above.real / below.real),))]
    return [Call("sqrt", (Mul(_quotient(above, below)),))]


def _quotient(above: Term, below: Term) -> tuple[Term, ...]:
    """The number in front, then π or 1/π, as products have them."""
    r, pi = Fraction(1), 0
    for of, sign in ((above, 1), (below, -1)):
        found = _number(of)
        assert found is not None, "a number"
        r, pi = r * found[0] ** sign, pi + sign * found[1]
    return (Const(r), _raised(_PI, pi)) if r != 1 else (_raised(_PI, pi),)


def _raised(f: Term, n: int) -> Term:
    return f if n == 1 else Pow(f, Const(Fraction(n)))
