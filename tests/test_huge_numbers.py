"""Numbers that floating point or a page does not hold are worked out, left as powers, or refused in words."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import combdiff as cd
from combdiff.arrays.numbers import digits_of
from combdiff.emit.backends import BACKENDS
from combdiff.errors import ArrayError, CombDiffError, LanguageError, UnsupportedError
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.meaning.evaluate import evaluate
from combdiff.terms.numerals import MOST_DIGITS, is_modest, order
from combdiff.terms.terms import ONE, TWO, ZERO, Const, Lam, Mul, Pow, Term, fresh, mul, number, power
from combdiff.terms.types import REAL
from combdiff.wannier90 import read_mmn

LARGE = {
    "a power of a product": "(x::R) -> (3 * x)^10000000",
    "a sum in it": "(x::RV) -> (2 * sum(i, x(i)))^1000000",
    "powers of powers": "(x::R) -> ((2 * x)^1000)^1000",
    "a negative power": "(x::R) -> (x / 7)^(-100000)",
    "two powers": "(x::R) -> (2 * x)^1000 * (3 * x)^2000",
    "many factors": "(x::R) -> " + "1e300 * " * 3 + "x",
    "a tower": "(x::R) -> x * (1e300)^(1e300)",
    "a long tower": "(x::R) -> x^2 * 2^(10^400)",
    "a long tower with a power": "(x::R) -> (3 * x)^(10^400)",
    "a tower of small numbers": "(x::R) -> 2^(2^(2^(2^(2^2)))) * x",
    "a long power": "(x::R) -> x * 3^(10^9)",
    "a small one": "(x::R) -> x * 3^(-10^9)",
    "a power of a fraction": "(x::R) -> x * (1/3)^(10^7)",
    "a complex power": "(x::C) -> real(x * (1 + im)^(10^7))",
    "a root of it": "(x::R) -> (2^(1/2))^(10^9) * x",
    "a high exponent": "(x::R) -> x^(10^400)",
    "a large slope": "(x::R) -> exp(10^400 * x)",
    "a condition": "(x::R) -> indicator(x, 10^400, x)",
    "functions of it": "(x::R) -> sin(10^400) * x + log(10^400) * x",
    "the base": "(x::R) -> (10^400)^x",
    "a literal": "(x::R) -> x * 1e400",
    "a small literal": "(x::R) -> x * 1e-400",
    "a constant": "(x::R) -> (6.6e-34 * x)^10",
}


def shown(d: cd.Derivation) -> None:
    """Everything that prints a derivation."""
    for text in (str(d), repr(d), str(d.steps), d.latex(), d.latex(form="matrix"), d.matrix_text()):
        assert text
    assert str(infer(parse(str(d)))) and pickle.loads(pickle.dumps(d)).term is not None


@pytest.mark.slow
@pytest.mark.parametrize("expand", [False, True])
@pytest.mark.parametrize("name", LARGE)
def test_a_program_with_huge_numbers_is_shown_or_refused_in_words(name: str, expand: bool) -> None:
    """No traceback, no accusation, and no work without end, wherever its result goes."""
    d = cd.grad(LARGE[name], expand=expand)
    shown(d)
    uses = [d.check, d.plan, d.sympy, lambda: d.source(value=True), lambda: d.source(hvp=True)]
    uses += [lambda backend=backend: d.source(backend) for backend in BACKENDS]
    for use in uses:
        try:
            assert str(use())
        except CombDiffError as refusal:
            assert refusal.remedy and "bug" not in refusal.message


@pytest.mark.parametrize("name", ["a power of a product", "a sum in it", "powers of powers", "a negative power"])
def test_powers_of_products_keep_their_numbers_inside(name: str) -> None:
    """The number alone is beyond floating point, and the product is not."""
    d = cd.grad(LARGE[name])
    unknown = d.objective.params[0]
    at: dict[str, object] = {"x": np.array([0.25, 0.25 + 1e-7]) if unknown.kind != REAL else 1 / 3 + 1e-8}
    at = {"x": 7.0 * (1 + 1e-6)} if name == "a negative power" else at
    at = {"x": 0.5 + 1e-7} if name == "powers of powers" else at
    found = np.asarray(d.compile()(**at))
    (x,) = d.objective.params
    term = d.term
    while isinstance(term, Lam) and x not in term.free:
        term = term.body
    wanted = np.asarray(evaluate(term, {x: at["x"]}))
    assert np.isfinite(found).all() and (found != 0).all()
    np.testing.assert_allclose(found, wanted, rtol=1e-8)


def test_planck_s_constant_is_not_lost() -> None:
    """ħ¹⁰ is beyond floating point, and (ħ ω)¹⁰ is not: no result may be zero in its place."""
    d = cd.grad("(w::RV) -> sum(i, (6.6e-34 * w(i))^10)")
    w = np.array([1e34, 2e34])
    np.testing.assert_allclose(d.compile()(w), 10 * 6.6e-34 * (6.6e-34 * w) ** 9, rtol=1e-12)


@pytest.mark.parametrize(
    "body", ["x * 1e-400", "x * 1e-310", "x^2 * 10^400", "x / 3^1000", "x * 2^(2^20)", "x^(10^400)"]
)
@pytest.mark.parametrize("backend", BACKENDS)
def test_code_refuses_numbers_that_it_could_not_hold(body: str, backend: str) -> None:
    with pytest.raises(UnsupportedError, match="beyond those of floating point"):
        cd.grad(f"(x::R) -> {body}").source(backend)


def test_a_number_that_no_page_holds_is_refused_where_it_stands() -> None:
    with pytest.raises(UnsupportedError, match=f"more than {MOST_DIGITS} digits") as refusal:
        cd.grad("(x::R) -> x + " + "1e300 * " * 200 + "x^2")
    assert refusal.value.span is not None and refusal.value.span.column > 10
    assert "^" in str(refusal.value)
    with pytest.raises(LanguageError, match="out of bounds"):
        cd.grad("(x::R) -> x * " + "9" * 5000)


def test_sympy_is_not_asked_to_work_out_what_has_no_end() -> None:
    with pytest.raises(UnsupportedError, match="SymPy works out powers of numbers"):
        cd.grad("(x::R) -> x * 3^(10^9)").sympy()
    assert str(cd.grad("(x::R) -> x * 3^100").sympy().expression) == str(3**100)


# --- exact numbers --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.fractions(max_denominator=10**6), st.integers(-200, 200))
def test_powers_of_numbers_are_exact_where_they_are_worked_out(base: Fraction, n: int) -> None:
    if not base and n <= 0:
        return
    found = power(number(base), number(n))
    if isinstance(found, Const):
        assert found.real == base**n
    else:
        assert found == Pow(number(base), number(n)) and abs(n) > 1
        assert not is_modest(base, Fraction(0), n)


@pytest.mark.parametrize("unit", [ONE, number(-1), number(1j), number(-1j)])
def test_units_are_raised_to_any_power(unit: Const) -> None:
    for n in (10**9, 10**9 + 1, 10**9 + 2, 10**9 + 3, -(10**9) - 1):
        found = power(unit, number(n))
        assert isinstance(found, Const)
        assert complex(found.real, found.imag) == pytest.approx(complex(unit.real, unit.imag) ** (n % 4))
    assert power(ZERO, number(10**9)) == ZERO


def exact(t: Term, at: Fraction) -> Fraction:
    """The value of a product of powers at x."""
    match t:
        case Const(real):
            return real
        case Mul(factors):
            result = Fraction(1)
            for f in factors:
                result *= exact(f, at)
            return result
        case Pow(base, Const(n)):
            return exact(base, at) ** int(n)
        case _:
            return at


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.fractions(min_value=-(10**60), max_value=10**60).filter(bool), st.integers(-40, 40)), max_size=3
    ),
    st.integers(-60, 60),
    st.booleans(),
)
def test_products_with_large_powers_keep_their_value(
    numbers: list[tuple[Fraction, int]], n: int, negative: bool
) -> None:
    """However numbers are spread over the powers of a product."""
    x = fresh("x", REAL)
    numbers = [(c.limit_denominator(10**30), m) for c, m in numbers if c.limit_denominator(10**30)]
    product = mul(*(Pow(number(c), number(m)) for c, m in numbers if abs(m) > 1), power(x, number(n)))
    at = Fraction(-3 if negative else 3, 7)
    wanted = at**n
    for c, m in numbers:
        wanted *= c**m if abs(m) > 1 else 1
    assert exact(product, at) == wanted


def test_a_number_far_away_is_joined_with_what_brings_it_back() -> None:
    x = fresh("x", REAL)
    far = Pow(number(10), number(400))
    assert mul(far, Pow(x, number(400))) == Pow(mul(number(10), x), number(400))
    assert mul(far, Pow(x, number(399))) == mul(number(10), Pow(mul(number(10), x), number(399)))
    assert mul(far, Pow(x, number(-400))) == Mul((far, Pow(x, number(-400))))
    assert mul(far, Pow(number(10), number(-399))) == number(10)
    assert mul(Pow(TWO, number(100)), Pow(x, number(100))) == Mul((Pow(TWO, number(100)), Pow(x, number(100))))


def test_orders_and_digits_are_those_of_the_numbers() -> None:
    assert order(Fraction(10) ** 1000) == pytest.approx(1000 * np.log2(10))
    assert order(Fraction(3, 5), Fraction(4, 5)) == pytest.approx(0)
    x = fresh("x", REAL)
    assert digits_of(power(mul(number(3), x), number(10**7))) == pytest.approx(6e6, rel=0.3)
    assert digits_of(Pow(TWO, Pow(TWO, number(65536)))) > 1e100 and digits_of(power(x, number(10**9))) == 0


# --- sizes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["2^sum(i::N{n}, 1)", "2^(-sum(i::N{n}, 1))", "sum(i::N{n}, 1)^sum(i::N{n}, 1)"])
def test_powers_of_sizes_are_numbers_of_floating_point(text: str) -> None:
    """Not NumPy's integers, which wrap round, and have no negative powers."""
    f = cd.grad(f"(x::RV{{n}}) -> {text} * sum(i, x(i))").compile()
    for n in (1, 3, 70, 130):
        size = float(n)
        wanted = {"2^s": 2.0**size, "2^(": 2.0**-size, "sum": size**size}[text[:3]]
        np.testing.assert_allclose(f(np.ones(n)), np.full(n, wanted), rtol=1e-12)


def test_what_sizes_make_too_large_is_an_error_in_words() -> None:
    f = cd.grad("(x::RV{n}) -> sum(i::N{n}, 1)^200 * sum(i, x(i))").compile()
    assert f(np.ones(3)).dtype == np.float64 and f(np.ones(3))[0] == pytest.approx(3.0**200)
    with pytest.raises(ArrayError, match="too large for the code"):
        f(np.ones(1000))


HELD = {
    "a power of two": ("(x::RV) -> 2^100 * sum(i, x(i)^2)", lambda x: 2.0**101 * x),
    "below one": ("(x::RV) -> sum(i, x(i)^2) * 3^(-100)", lambda x: 2 * x / 3.0**100),
    "under a function": ("(x::RV) -> sin(2^70) * sum(i, x(i))", lambda x: np.sin(2.0**70) + 0 * x),
    "in a sum": ("(x::RV) -> (7^90 + 1) * sum(i, x(i))", lambda x: 7.0**90 + 0 * x),
    "in a condition": ("(x::RV) -> sum(i, indicator(x(i), 2^100, x(i)^2))", lambda x: 2 * x),
    "a size": ("(x::RV{n}) -> sum(i::N{n}, 1)^40 * sum(i, x(i))", lambda x: float(len(x)) ** 40 + 0 * x),
    "below a size": ("(x::RV{n}) -> sum(i::N{n}, 1)^(-40) * sum(i, x(i))", lambda x: float(len(x)) ** -40 + 0 * x),
    "a root of a size": ("(x::RV{n}) -> exp(sum(i::N{n}, 1)^(-40)) * sum(i, x(i))", lambda x: 1 + 0 * x),
    "an argument": ("(x::RV) -> sum(i, x(i)^1000)", lambda x: 1000 * x**999),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HELD)
@pytest.mark.parametrize("backend", ["numpy", "jax", "torch", "dask"])
def test_what_floating_point_holds_is_computed_in_every_library(name: str, backend: str) -> None:
    """Python's integers are larger than those of JAX and PyTorch, and NumPy takes no sine of them."""
    text, wanted = HELD[name]
    x = np.linspace(0.9, 1.0, 70)
    if backend == "jax":
        jax = pytest.importorskip("jax")
        jax.config.update("jax_enable_x64", True)
        given = jax.numpy.asarray(x)
    elif backend == "torch":
        given = pytest.importorskip("torch").as_tensor(x)
    else:
        given = pytest.importorskip("dask.array").from_array(x) if backend == "dask" else x
    found = np.asarray(cd.grad(text).compile(backend)(given))
    assert found.dtype == float
    np.testing.assert_allclose(found, wanted(x), rtol=1e-12)


# --- files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["10000000000000000000000", "-99999999999999999999999", "3000000000", "9" * 5000])
def test_a_file_with_a_number_that_no_array_holds_is_refused(tmp_path, word: str) -> None:  # type: ignore[no-untyped-def]
    lines = ["overlaps", "1 1 1", f"1 1 {word} 0 0", "1.0 0.0"]
    path = tmp_path / "huge.mmn"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(CombDiffError, match="stands where k1 k2 G1 G2 G3 should"):
        read_mmn(path)


def test_a_number_of_any_size_stands_in_front_of_a_form() -> None:
    d = cd.grad("(a::R) -> (a / abs(1/1000)^(7/2))^3 * a")
    assert d.compile()(2.0) == pytest.approx(4 * 8.0 * 1000.0**10.5)
