"""Domains whose ends are numbers of the program: Leibniz's rule, the ends of functions, code, refusals."""

import numpy as np
import pytest

import combdiff as cd
from combdiff.errors import ArrayError, LanguageError, UnsupportedError
from tests.reading_back import assert_reads_back

LINE = "@domain Line begin base = R; lower = a; upper = b end\n"
PIECES = (
    "@domain Left begin base = R; lower = 0; upper = b end\n"
    "@domain Right begin base = R; lower = b; upper = 2 end\n"
    "@domain Tail begin base = R; lower = b end\n"
)
PROGRAMS = {
    "both ends": LINE + "(a::R, b::R) -> sum(x::Line, exp(a * x))^2 + exp(b)",
    "one of them is given": LINE + "(a::R) -> (c::R, b::R) -> sum(x::Line, cos(c * x * b))",
    "two integrals over one domain": LINE + "(a::R, b::R) -> sum((x::Line, y::Line), exp(x * y))",
    "pieces": PIECES + "(b::R) -> sum(x::Left, exp(x)) * sum(x::Tail, exp(-x)) * sum(x::Right, sin(x))",
    "an end that is read elsewhere": PIECES + "(b::R) -> b^2 * sum((x::Left, y::Right), exp(-x * y * b))",
    "a definition": LINE + "(a::R, b::R) -> begin Z = sum(x::Line, exp(a * x)); Z^2 + b / Z end",
    "entries": LINE + "(a::R) -> (c::RV, b::R) -> sum(x::Line, sum(k, c(k) * x^k)^2)",
    "a function, given ends": LINE + "(a::R, b::R) -> (y::(Line) -> R) -> sum(x::Line, grad(y)(x)^2 / 2 + y(x)^4)",
    "a chain of functions": LINE
    + "(a::R, b::R) -> (f::(Line) -> R) -> begin g = (x::Line) -> exp(-f(x)); sum(x::Line, g(x)^2 + g(x)) end",
    "a value at an end": LINE + "(a::R, b::R) -> (y::(Line) -> R) -> sum(x::Line, y(x)^4) + y(b)^2",
}
OF_BOTH = {
    "a function and ends": LINE + "(y::(Line) -> R, a::R, b::R) -> sum(x::Line, y(x)^4)",
    "a function under d/dx and ends": LINE + "(y::(Line) -> R, a::R, b::R) -> sum(x::Line, grad(y)(x)^2 / 2 + y(x)^4)",
    "a fixed function": LINE
    + "@space Fixed begin type = (Line) -> R; fixed = true end\n(y::Fixed, a::R, b::R) -> sum(x::Line, grad(y)(x)^2)",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PROGRAMS, *OF_BOTH])
def test_gradients_agree_with_differences(name: str) -> None:
    d = cd.grad(PROGRAMS.get(name) or OF_BOTH[name])
    assert d.check(), d.check()
    assert_reads_back(d.term, values=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_second_derivatives_agree_with_differences(name: str) -> None:
    assert cd.hvp(PROGRAMS[name]).check()


def test_leibniz_rule() -> None:
    d = cd.grad(LINE + "(f::RF) -> (a::R, b::R) -> sum(x::Line, f(x))")
    assert str(d) == "(f::RF) -> (a::R, b::R) -> (-f(a), f(b))"
    d = cd.grad(LINE + "(f::RO, a::R) -> (b::R) -> sum(x::Line, f(x, b))")
    assert str(d).splitlines()[1:] == ["(f::RO, a::R) -> (b::R) -> sum(x::Line, grad(f, 2)(x, b)) + f(b, b)"]


@pytest.mark.parametrize("mode", ["jvp", "jacobian", "hessian", "simplified"])
def test_other_modes(mode: str) -> None:
    assert getattr(cd, mode)(LINE + "(a::R) -> (b::R, c::R) -> sum(x::Line, exp(c * x))").check()


def test_a_length_is_the_difference_of_the_ends() -> None:
    assert str(cd.grad(LINE + "(a::R, b::R) -> sum(x::Line, 1)^2")) == "(a::R, b::R) -> (-2 * (b - a), 2 * (b - a))"


def test_the_ends_of_a_function_are_those_of_the_program() -> None:
    d = cd.grad(LINE + "(a::R, b::R) -> (y::(Line) -> R) -> sum(x::Line, grad(y)(x)^2 / 2)")
    assert str(d).endswith("((x::Line) -> -grad(grad(y))(x), -grad(y)(a), grad(y)(b))")
    paper = d.latex(style="paper")
    assert r"\int_{a}^{b}" in paper
    assert "y(b)" in paper


def test_sympy_and_latex_have_the_ends() -> None:
    d = cd.grad(
        "@domain Line begin base = R; lower = 0; upper = beta end\n(beta::R) -> (c::R) -> sum(x::Line, exp(c * x))"
    )
    assert str(d.sympy()) == "gradient = Integral(x*exp(c*x), (x, 0, beta))"
    assert r"\int_{0}^{\beta}" in d.latex()
    numbers = cd.grad("@domain Line begin base = R; lower = -1 end\n(c::R) -> sum(x::Line, exp(c * x))")
    assert str(numbers.sympy()) == "gradient = Integral(x*exp(c*x), (x, -1, oo))"


def test_a_rule_of_a_class_moves_with_the_ends() -> None:
    f = cd.grad(LINE + "(a::R, b::R) -> sum(x::Line, exp(a * x))").compile(value=True)
    for a, b in ((1.0, 2.0), (0.5, 3.0)):
        value, by_a, by_b = f(a=a, b=b, Line=cd.quadrature.gauss(20))
        antiderivative = lambda x, a=a: np.exp(a * x) / a  # noqa: E731
        assert value == pytest.approx(antiderivative(b) - antiderivative(a), rel=1e-13)
        assert by_b == pytest.approx(np.exp(a * b), rel=1e-13)
        slope = (np.exp(a * b) * (a * b - 1) - np.exp(a * a) * (a * a - 1)) / a**2 - np.exp(a * a)
        assert by_a == pytest.approx(slope, rel=1e-12)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"a": 1.0, "b": 2.0, "Line": ([1.5], [1.0])}, "with which nodes move"),
        ({"a": 2.0, "b": 1.0, "Line": cd.quadrature.gauss(3)}, "runs from 2 to 1"),
        ({"a": 0.0, "b": np.inf, "Line": cd.quadrature.gauss(3)}, "runs from 0 to inf"),
        ({"a": np.zeros(2), "b": 1.0, "Line": cd.quadrature.gauss(3)}, "known before the code runs"),
        ({"b": 1.0, "Line": cd.quadrature.gauss(3)}, "not given a"),
    ],
)
def test_a_call_that_does_not_tell_the_ends_is_refused(given: dict[str, object], message: str) -> None:
    f = cd.grad(LINE + "(a::R, b::R) -> sum(x::Line, exp(a * x))").compile()
    with pytest.raises(ArrayError, match=message):
        f(**given)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@domain Line begin base = R; lower = c end\n(a::R) -> sum(x::Line, x * a)", "no real parameter"),
        ("@domain Line begin base = R; lower = a end\n(a::C) -> real(a)", "no real parameter"),
        ("@domain Line begin base = R; lower = a; upper = a end\n(a::R) -> sum(x::Line, x)", "runs from a to a"),
        ("@domain Line begin base = I; lower = 0; upper = a end\n(a::R) -> a", "has the bound upper = a"),
    ],
)
def test_what_is_no_end_is_refused(text: str, message: str) -> None:
    with pytest.raises(LanguageError, match=message):
        cd.grad(text)


@pytest.mark.parametrize("name", OF_BOTH)
def test_second_derivatives_by_functions_and_by_their_ends_are_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match="second derivative by a, where Line ends"):
        cd.hvp(OF_BOTH[name])


def test_a_derivation_that_was_sent_elsewhere_knows_its_ends() -> None:
    import pickle

    d = pickle.loads(pickle.dumps(cd.grad(PROGRAMS["both ends"])))
    assert d.check()
