"""Stable forms of what is written with exponentials: each law exactly, and the naive text against mpmath."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.gate.exact import Exact
from combdiff.gate.gate import Sample
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.sizes import default_sizes
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    Add,
    Call,
    Mul,
    Pow,
    Term,
    Traverser,
    call,
    fresh,
    mul,
    neg,
    number,
    power,
    sub,
)
from combdiff.terms.types import COMPLEX, REAL
from tests.emit.array_libraries import Numbers, library

__all__ = ["library"]

mpmath = pytest.importorskip("mpmath")
x, y, z = fresh("x", REAL), fresh("y", REAL), fresh("z", COMPLEX)
X_Y = sub(x, y)


def exp(t: Term) -> Term:
    return Call("exp", (t,))


def over(a: Term, b: Term) -> Term:
    return Mul((a, Pow(b, MINUS_ONE)))


def sigma(t: Term) -> Term:
    return call("sigmoid", t)


def softplus(t: Term) -> Term:
    return call("softplus", t)


# a term that no law has been used on, and what the constructors make of it
LAWS = {
    "1/(1 + e^-x)": (Pow(Add((ONE, exp(neg(x)))), MINUS_ONE), sigma(x)),
    "1/(e^x + 1)^2": (Pow(Add((exp(x), ONE)), number(-2)), power(sigma(neg(x)), number(2))),
    "1/(-1 - e^x)": (Pow(Add((MINUS_ONE, neg(exp(x)))), MINUS_ONE), neg(sigma(neg(x)))),
    "log(-(-1 - e^x))": (Call("log", (Mul((MINUS_ONE, Add((MINUS_ONE, neg(exp(x)))))),)), softplus(x)),
    "e^x/(1 + e^x)": (over(exp(x), Add((ONE, exp(x)))), sigma(x)),
    "e^(x-y)/(1 + e^(x-y))": (over(exp(X_Y), Add((ONE, exp(X_Y)))), sigma(X_Y)),
    "e^-x/(1 + e^-x)^2": (Mul((exp(neg(x)), Pow(Add((ONE, exp(neg(x)))), number(-2)))), mul(sigma(x), sigma(neg(x)))),
    "(1 + e^x)/(1 + e^x)": (Mul((Add((ONE, exp(x))), sigma(neg(x)))), ONE),
    "σ(x)/e^x": (over(sigma(x), exp(x)), sigma(neg(x))),
    "log(1 + e^x)": (Call("log", (Add((ONE, exp(x))),)), softplus(x)),
    "log1p(e^x)": (Call("log1p", (exp(x),)), softplus(x)),
    "log σ(x)": (Call("log", (sigma(x),)), neg(softplus(neg(x)))),
    "log(1 - σ(x))": (Call("log", (Add((ONE, Mul((MINUS_ONE, sigma(x))))),)), neg(softplus(x))),
    "sinh(x)/cosh(x)": (over(Call("sinh", (x,)), Call("cosh", (x,))), call("tanh", x)),
    "sinh(z)/cosh(z)": (over(Call("sinh", (z,)), Call("cosh", (z,))), call("tanh", z)),
    "sinh(x)^2/cosh(x)^3": (
        Mul((Pow(Call("sinh", (x,)), number(2)), Pow(Call("cosh", (x,)), number(-3)))),
        mul(power(call("tanh", x), number(2)), power(call("cosh", x), MINUS_ONE)),
    ),
}


def rebuilt(t: Term) -> Term:
    """`t`, made again by the constructors."""

    def made(u: Term) -> Term:
        match u:
            case Mul(factors):
                return mul(*factors)
            case Pow(base, exponent):
                return power(base, exponent)
            case Call(name, args):
                return call(name, *args)
            case _:
                return u

    return Traverser(made)(t)


def exactly(t: Term, at: dict[str, int]) -> complex:
    sample = Sample(default_sizes(t), Exact())
    sample.values.update({v: at[v.name] for v in t.free})
    return complex(sample.outputs(t)[0])


@pytest.mark.parametrize("name", LAWS)
def test_a_law_makes_a_stable_form(name: str) -> None:
    raw, stable = LAWS[name]
    assert rebuilt(raw) == stable


@pytest.mark.parametrize("name", LAWS)
def test_a_law_is_exact(name: str) -> None:
    raw, stable = LAWS[name]
    for at in ({"x": 3, "y": 7, "z": 6}, {"x": -11, "y": 5, "z": -4}):
        assert exactly(raw, at) == exactly(stable, at)
        assert exactly(stable, at) != exactly(add_one(stable), at)
    for point in (-2.3, 0.4):
        values = {v: point * w for v, w in ((x, 1), (y, 2), (z, 0.7 + 0.6j)) if v in raw.free}
        assert evaluate(raw, values) == pytest.approx(evaluate(stable, values), rel=1e-13)


def add_one(t: Term) -> Term:
    return Add((t, ONE))


@pytest.mark.parametrize(
    "t",
    [
        over(exp(z), Add((ONE, exp(z)))),
        Call("log", (Add((ONE, exp(z))),)),
        Pow(Add((number(2), exp(x))), MINUS_ONE),
        Call("log", (Add((ONE, exp(x), exp(y))),)),
        over(exp(y), Add((ONE, exp(neg(x))))),
        Call("log", (Add((ONE, Mul((number(-2), sigma(x))))),)),
    ],
    ids=str,
)
def test_what_is_complex_or_of_another_form_stays(t: Term) -> None:
    made = rebuilt(t)
    called = {u.primitive for u in [made, *getattr(made, "factors", ())] if isinstance(u, Call)}
    assert called.isdisjoint({"softplus", "tanh"})
    assert made == t or "sigmoid" in called


# --- the naive text, run --------------------------------------------------------------------------------------------

mpmath.mp.dps = 60
POINTS = (-1000.0, -40.0, -1.3, 0.0, 0.7, 40.0, 1000.0)
NAIVE = {
    "log(1 + exp(t))": lambda t: mpmath.log(1 + mpmath.exp(t)),
    "1 / (1 + exp(-t))": lambda t: 1 / (1 + mpmath.exp(-t)),
    "exp(t) / (1 + exp(t))": lambda t: mpmath.exp(t) / (1 + mpmath.exp(t)),
    "log(1 - 1 / (1 + exp(-t)))": lambda t: mpmath.log(1 - 1 / (1 + mpmath.exp(-t))),
    "-log(1 / (1 + exp(-t)))": lambda t: -mpmath.log(1 / (1 + mpmath.exp(-t))),
    "sinh(t) / cosh(t)": lambda t: mpmath.tanh(t),
    "begin e = exp(-t); s = 1 / (1 + e); log(s) - 2 * log(1 - s) end": lambda t: (
        -mpmath.log(1 + mpmath.exp(-t)) + 2 * mpmath.log(1 + mpmath.exp(t))
    ),
    "begin s = 1 / (1 + exp(-t)); s + 2 * (1 - s) end": lambda t: 1 + 1 / (1 + mpmath.exp(t)),
}


def derivative(f, t: float, order: int):
    """By differences in as many digits as cancel."""
    with mpmath.workdps(2000):
        h = mpmath.mpf(10) ** -150
        at = mpmath.mpf(t)
        if order == 1:
            return (f(at + h) - f(at - h)) / (2 * h)
        return (f(at + h) - 2 * f(at) + f(at - h)) / h**2


@pytest.mark.slow
@pytest.mark.parametrize("text", NAIVE)
def test_the_naive_text_keeps_its_digits(library: Numbers, text: str) -> None:
    f = NAIVE[text]
    program = f"(t::RV) -> sum(i, {text.replace('(t', '(t(i)').replace('-t', '-t(i)')})"
    program = program.replace("(t(i)::", "(t::")
    d, h = cd.grad(program), cd.hvp(program)
    for t in POINTS:
        if text.startswith("sinh") and abs(t) > 10:
            continue  # 1 - tanh^2 is not among the stable forms
        at = library.to(np.array([t]))
        value, slope = d.compile(library.name, value=True)(at)
        second = h.compile(library.name)(at, library.to(np.array([1.0])))
        with mpmath.workdps(2000):
            expected = [f(mpmath.mpf(t)), derivative(f, t, 1), derivative(f, t, 2)]
        found = [np.asarray(library.back(v)).item() for v in (value, slope, second)]
        for a, b in zip(found, map(float, expected), strict=True):
            assert a == pytest.approx(b, rel=1e-12, abs=1e-290), (text, t)


MARGINS = np.array([-1000.0, -40.0, -0.3, 0.0, 0.5, 40.0, 1000.0])


@pytest.mark.slow
@pytest.mark.parametrize("margin", MARGINS)
def test_logistic_loss_from_the_naive_text(library: Numbers, margin: float) -> None:
    text = "(X::RM, y::RV) -> (w::RV) -> sum(i, log(1 + exp(-y(i) * sum(j, X(i, j) * w(j)))))"
    data = [library.to(np.array(v)) for v in ([[1.0, 2.0]], [-1.0], [-margin, 0.0])]
    value, slope = cd.grad(text).compile(library.name, value=True)(*data)
    second = cd.hvp(text).compile(library.name)(*data, library.to(np.array([1.0, 0.0])))
    with mpmath.workdps(2000):
        e = mpmath.exp(-mpmath.mpf(margin))
        expected = [mpmath.log(1 + e), e / (1 + e), 2 * e / (1 + e), e / (1 + e) ** 2, 2 * e / (1 + e) ** 2]
    found = np.concatenate([np.atleast_1d(library.back(v)) for v in (value, slope, second)])
    np.testing.assert_allclose(found, [float(v) for v in expected], rtol=1e-12, atol=1e-290)


def test_the_derivative_of_a_defined_sigmoid_reads_by_its_name() -> None:
    d = cd.grad("(t::R) -> begin s = 1 / (1 + exp(-t)); s^2 + s end")
    assert "s = sigmoid(t)" in str(d) and "s * (1 - s)" in str(d)
    assert "special.expit(-t)" in d.source()
    assert str(cd.grad("(t::R) -> 1 / (1 + exp(-t))")) == "(t::R) -> sigmoid(t) * (1 - sigmoid(t))"


def test_latex_shows_what_softplus_is() -> None:
    assert r"\log\left(1 + e^{t}\right)" in cd.pullback("(t::R) -> t * log(1 + exp(t))").latex()


@pytest.mark.parametrize("c", ["3/4", "a", "2 * a"])
def test_a_logarithm_of_a_multiple_of_one_minus_an_exponential_keeps_its_digits(c: str) -> None:
    f = cd.simplified(f"(a::R) -> (t::RV) -> sum(i, log({c} * (1 - exp(-t(i)))))").compile()
    factor = eval(c, {"a": 0.3})
    np.testing.assert_allclose(f(0.3, np.array([1e-12])), np.log(factor * -np.expm1(-1e-12)), rtol=1e-14)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("x(2) * exp(40 * sum(k, x(k))) / sum(c, w(c) * exp(40 * sum(s, x(s))))", [0, 0, 1 / 6]),
        ("exp(sum(k, x(k)^2)) * x(1) / sum(c, w(c) * exp(sum(s, x(s)^2)) * x(0))", [-1 / 180, 1 / 180, 0]),
    ],
)
def test_an_exponential_in_front_of_a_sum_cancels_in_a_quotient(program: str, expected: list[float]) -> None:
    d = cd.grad(f"(w::RV) -> (x::RV{{n}}) -> {program}")
    assert "exp" not in str(d.result)
    np.testing.assert_allclose(d.compile()(np.array([1.0, 2.0, 3.0]), np.full(3, 30.0)), expected, rtol=1e-12)
    assert d.check()
