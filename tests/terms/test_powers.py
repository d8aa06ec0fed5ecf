"""Products of powers, roots, absolute values and signs: what merges has the value that it had, where it was finite."""

from __future__ import annotations

import cmath
from fractions import Fraction
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from combdiff.language.printing.printer import expression_text
from combdiff.meaning.evaluate import evaluate
from combdiff.terms.terms import Call, Conj, Const, Mul, Pow, Term, call, conj, fresh, mul, number, power, size, sub
from combdiff.terms.types import COMPLEX, REAL, Domain, Index

x, y, p = (fresh(name, REAL) for name in "xyp")
z = fresh("z", COMPLEX)
HALVES = st.integers(-6, 6).map(lambda n: Fraction(n, 2))
THIRDS = st.integers(-6, 6).map(lambda n: Fraction(n, 3))


def rational(value: Fraction | int) -> Const:
    return number(Fraction(value))


def real_factor(kind: str, exponent: Fraction) -> tuple[Term, Fraction]:
    """A factor, and the exponent that it really has: of roots and signs, integers alone are asked for."""
    whole = Fraction(exponent.numerator)
    base = {"power": x, "root": Call("sqrt", (x,)), "size": Call("abs", (x,)), "sign": Call("sign", (x,))}[kind]
    used = exponent if kind == "power" else abs(whole) if kind == "sign" else whole
    return (Pow(base, rational(used)) if used not in (0, 1) else base if used else number(1)), used


def real_value(kind: str, exponent: Fraction, at: float) -> float:
    with np.errstate(all="ignore"):
        base = {"power": at, "root": np.sqrt(at), "size": abs(at), "sign": np.sign(at)}[kind]
        return float(np.power(np.float64(base), float(exponent)))


KINDS = st.sampled_from(["power", "root", "size", "sign"])


@pytest.mark.slow
@given(st.lists(st.tuples(KINDS, HALVES | THIRDS), min_size=1, max_size=5))
def test_real_products_keep_their_value(parts: list[tuple[str, Fraction]]) -> None:
    factors = [real_factor(*part) for part in parts]
    product = mul(*(f for f, _ in factors))
    for at in (0.0, 0.7, 2.3, -0.7, -2.3):
        values = [real_value(kind, used, at) for (kind, _), (_, used) in zip(parts, factors, strict=True)]
        expected = prod(values)
        if np.isfinite(values).all() and np.isfinite(expected):
            assert evaluate(product, {x: at}) == pytest.approx(expected, rel=1e-12), expression_text(product)


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.sampled_from(["power", "root", "size", "square", "sign"]), THIRDS, st.booleans()), max_size=5)
)
def test_complex_products_keep_their_value(parts: list[tuple[str, Fraction, bool]]) -> None:
    factors = [number(1)]
    for kind, exponent, conjugated in parts:
        base = {"power": z, "root": "sqrt", "size": "abs", "square": "abs2", "sign": "sign"}[kind]
        base = Call(base, (z,)) if isinstance(base, str) else base
        factor = Pow(base, rational(exponent if kind == "power" else exponent.numerator))
        factors.append(Conj(factor) if conjugated else factor)
    product = mul(*factors)
    for at in (0.6 - 1.1j, -1.3 + 0.4j, -0.8 - 0.9j, -1.7 - 0.0j):
        expected = np.prod([evaluate(f, {z: at}) for f in factors])
        assert cmath.isclose(complex(evaluate(product, {z: at})), expected, rel_tol=1e-9), expression_text(product)


def test_powers_of_one_base_are_one_power() -> None:
    assert mul(power(x, rational(Fraction(5, 3))), power(x, rational(Fraction(-16, 3)))) == Pow(
        x, rational(Fraction(-11, 3))
    )
    assert mul(x, power(x, rational(Fraction(1, 2)))) == Pow(x, rational(Fraction(3, 2)))
    assert mul(power(x, rational(Fraction(1, 3))), power(x, rational(Fraction(2, 3)))) == x
    assert mul(x, call("sqrt", x)) == Pow(Call("sqrt", (x,)), rational(3))
    assert mul(call("sqrt", mul(x, y)), call("sqrt", mul(x, y)), x) == mul(power(x, rational(2)), y)
    assert mul(power(x, p), power(x, sub(number(2), p))) == power(x, number(2))
    half = power(number(2), rational(Fraction(1, 2)))
    assert mul(half, half) == number(2)


def test_powers_of_powers_are_one_power() -> None:
    assert power(power(x, rational(Fraction(8, 3))), number(-1)) == Pow(x, rational(Fraction(-8, 3)))
    assert power(power(z, rational(Fraction(8, 3))), number(2)) == Pow(z, rational(Fraction(16, 3)))
    assert power(power(x, p), number(-1)) == Pow(x, mul(number(-1), p))
    assert power(power(x, number(2)), rational(Fraction(-3, 2))) == Pow(Call("abs", (x,)), number(-3))
    assert power(power(x, number(4)), rational(Fraction(1, 2))) == power(x, number(2))
    assert power(power(x, rational(Fraction(2, 3))), rational(Fraction(3, 2))) == x
    assert call("sqrt", power(x, number(2))) == Call("abs", (x,))
    assert call("log", power(x, rational(Fraction(8, 3)))) == mul(rational(Fraction(8, 3)), call("log", x))


def test_what_has_a_branch_cut_stays() -> None:
    half = rational(Fraction(1, 2))
    assert power(power(z, number(2)), half) == Pow(Pow(z, number(2)), half)
    assert call("sqrt", power(z, number(2))) == Call("sqrt", (Pow(z, number(2)),))
    assert call("log", power(z, half)) == Call("log", (Pow(z, half),))
    assert power(mul(x, y), half) == Pow(mul(x, y), half)
    assert call("log", power(x, number(2))) == Call("log", (Pow(x, number(2)),))


def test_indices_in_exponents_stay_where_they_are() -> None:
    k = fresh("k", Index(Domain("K", declared=True, periodic=True)))
    assert mul(power(x, k), x) == mul(Pow(x, k), x)
    assert power(power(x, k), number(2)) == Pow(Pow(x, k), number(2))


def test_real_powers_meet_those_in_the_real_part_of_a_product() -> None:
    """a^(-7/3) is infinite for a tiny a where a^(-4/3) is not."""
    a, z = fresh("a", REAL), fresh("z", COMPLEX)
    found = mul(power(a, number(Fraction(-7, 3))), call("real", mul(a, z)))
    assert expression_text(found) == "a^(-4/3) * real(z)"
    inverse = mul(power(a, number(-1)), call("imag", mul(power(a, number(Fraction(1, 3))), z, z)))
    assert expression_text(inverse) == "a^(-2/3) * imag(z^2)"
    b = fresh("b", REAL)
    assert expression_text(mul(b, call("real", mul(a, z)))) == "b * real(a * z)"


def test_sizes_and_signs() -> None:
    size, sign = call("abs", x), call("sign", x)
    assert power(size, number(2)) == mul(size, size) == power(x, number(2))
    assert mul(size, sign) == x
    assert mul(x, sign) == size
    assert mul(power(size, number(-1)), sign) == power(x, number(-1))
    assert mul(sign, sign) == Pow(Call("sign", (x,)), number(2)), "0 at 0"
    assert mul(sign, sign, x) == x
    assert power(call("abs", z), number(2)) == call("abs2", z)
    assert mul(call("abs", z), call("sign", z)) == z
    assert mul(call("abs", z), conj(call("sign", z))) == conj(z)
    assert mul(call("abs2", z), call("sign", z)) == mul(call("abs", z), z)
    assert mul(call("abs", z), call("abs2", z)) == Pow(Call("abs", (z,)), number(3))


def test_what_stands_over_its_size_is_an_inverse() -> None:
    size, square, sign = call("abs", z), call("abs2", z), call("sign", z)
    inverse, turned = power(z, number(-1)), power(conj(z), number(-1))
    assert mul(z, power(square, number(-1))) == turned
    assert mul(conj(z), power(square, number(-1))) == inverse
    assert mul(sign, power(size, number(-1))) == turned
    assert mul(conj(sign), power(size, number(-1))) == inverse
    assert mul(sign, power(size, number(-3))) == mul(turned, power(square, number(-1)))
    assert mul(z, z, power(square, number(-1))) == mul(z, turned)
    w = fresh("w", COMPLEX)
    assert mul(w, power(square, number(-1))) == Mul((w, Pow(square, number(-1))))


def test_a_factor_cancels_with_one_in_a_power_of_a_product() -> None:
    a, b, n = fresh("a", REAL), fresh("b", REAL), size(Domain("n"))
    assert mul(power(a, number(2)), power(mul(a, b), number(-2))) == power(b, number(-2))
    assert mul(n, power(mul(n, a, call("exp", b)), number(-1)), call("exp", b)) == power(a, number(-1))
    kept = mul(a, power(mul(a, b), number(2)))  # nothing cancels, and a product stays together
    assert any(isinstance(f, Pow) and isinstance(f.base, Mul) for f in kept.factors)
