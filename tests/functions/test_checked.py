"""`check()` holds derivatives by functions against differences along random variations, code and the printed text."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import pytest

import combdiff as cd
from combdiff.terms.terms import App, Lam, Term, Traverser, Tuple, Var, mul, number

SPACES = """@domain Line begin base = R; lower = 0; upper = 1 end
@domain Far begin base = R; lower = -inf; upper = inf end
@space F begin type = (Line) -> R end
@space G begin type = (Far) -> R end
@space P begin type = (Line) -> R; fixed = (0,) end
@space Q begin type = (Line) -> R; fixed = true end
@space Z begin type = (Line) -> C end
"""

PROGRAMS = [
    "(f::F) -> sum(x::Line, exp(f(x))^2)",
    "(f::F) -> sum(x::Line, sqrt(1 + grad(f)(x)^2))^2",
    "(f::F, g::F) -> sum(x::Line, exp(f(x) * g(x)))",
    "(a::R, f::F) -> sum(x::Line, exp(a * f(x))) + f(1)^2",
    "(f::F) -> sum(x::Line, x * grad(grad(f))(x)^2) + grad(f)(0)",
    "(f::P) -> sum(x::Line, x * grad(grad(f))(x)^2) + grad(f)(0)^2",
    "(f::Q) -> sum(x::Line, x * grad(grad(f))(x)^2)",
    "(f::G) -> sum(x::Far, grad(f)(x)^2 + f(x)^4)",
    "(f::Z) -> sum(x::Line, abs2(f(x))^2)",
    "(f::Q, g::F) -> -sum(x::Line, grad(f)(x) * g(x))",
    "(g::F) -> (f::F) -> sum(x::Line, f(x) * g(x))",
    "(f::F) -> begin g = (x::Line) -> sin(f(x)); h = (x::Line) -> g(x)^2 + g(x); sum(x::Line, h(x) * h(x)) end",
    "(A::RV) -> (f::F) -> sum((i, x::Line), exp(A(i) * f(x)))",
    "(k::RF) -> (f::F) -> sum((x::Line, y::Line), f(x) * k(x - y) * f(y))",
]


@pytest.mark.sampled
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_gradient_of_a_functional_is_checked(program: str) -> None:
    report = cd.grad(SPACES + program).check()
    assert report
    assert {"finite differences", "emitted NumPy code", "printed text"} <= {f.what for f in report.findings}


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("mode", ["jvp", "hvp"])
def test_second_variations_and_tangents_of_a_functional_are_checked(program: str, mode: str) -> None:
    report = getattr(cd, mode)(SPACES + program).check()
    assert report
    assert "finite differences" in {f.what for f in report.findings}


OF_SEVERAL_POINTS = [
    "(f::RF) -> (k::K) -> sum(x::Line, exp(sum(y::Line, k(x, y) * f(y))))",
    "(k::W) -> sum((x::Line, y::Far), abs2(k(x, y)) * x)",
    "(k::K, g::F) -> sum((x::Line, y::Line), k(x, y) * g(x) * g(y))",
    "(k::S) -> sum((x::Line, y::Line), k(x, y) * k(y, x) * exp(x + y))",
    "(h::(Line, Line, Line) -> R) -> sum((x::Line, y::Line, z::Line), h(x, y, z) * h(y, z, x))",
]
KERNELS = """@space K begin type = (Line, Line) -> R end
@space S begin type = (Line, Line) -> R; symmetries = (((2, 1), :id),) end
@space W begin type = (Line, Far) -> C end
"""


@pytest.mark.long
@pytest.mark.parametrize("program", OF_SEVERAL_POINTS)
def test_functions_of_several_points_are_checked(program: str) -> None:
    report = cd.grad(SPACES + KERNELS + program).check()
    assert report
    assert {"finite differences", "emitted NumPy code", "printed text"} <= {f.what for f in report.findings}


@pytest.mark.long
def test_a_wrong_derivative_by_a_kernel_is_noticed() -> None:
    d = cd.grad(SPACES + KERNELS + "(k::K) -> sum((x::Line, y::Line), k(x, y)^3 * x)")

    def doubled(t: Term) -> Term:
        return mul(number(2), t) if isinstance(t, App) else t

    assert d.check()
    assert not dataclasses.replace(d, term=Traverser(doubled)(d.term)).check()


@pytest.mark.slow
def test_a_rule_that_does_not_see_the_integrand_is_refined() -> None:
    d = cd.grad(
        "@domain T begin base = R; lower = 1; upper = 4 end\n(z::(T) -> R) -> sum(x::T, cos(8 * grad(grad(z))(x)))"
    )
    assert d.check()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_functions_that_a_logarithm_takes_are_positive(seed: int) -> None:
    d = cd.grad(
        SPACES
        + "(f::F, g::F, h::F, p::F) -> sum(x::Line, f(x) * log(f(x)) + g(x)^(5/3) + log(h(x) / g(x)) + sqrt(p(x)))"
    )
    assert "finite differences" in {f.what for f in d.check(seed).findings}
    assert d.check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"expand": True}, {"symmetric": True}, {"wrt": ["g"]}], ids=str)
def test_every_way_to_derive_a_functional_is_checked(options: dict[str, Any]) -> None:
    program = "(f::F, g::F) -> begin h = (x::Line) -> (f(x) + g(x))^2; sum(x::Line, h(x)^2 + exp(h(x))) end"
    assert cd.grad(SPACES + program, **options).check()


@pytest.mark.slow
def test_a_wrong_derivative_by_a_function_is_noticed() -> None:
    d = cd.grad(SPACES + "(f::F) -> sum(x::Line, x * grad(f)(x)^2)")

    def doubled_at_the_upper_end(t: Term) -> Term:
        return Tuple((*t.items[:-1], mul(number(2), t.items[-1]))) if isinstance(t, Tuple) else t

    assert not dataclasses.replace(d, term=Traverser(doubled_at_the_upper_end)(d.term)).check()

    def without_the_place(t: Term) -> Term:
        return number(1) if isinstance(t, App) and isinstance(t.function, Var) and t.function.name == "f" else t

    d = cd.grad(SPACES + "(f::F) -> sum(x::Line, f(x)^2)")
    assert isinstance(d.term, Lam)
    assert not dataclasses.replace(d, term=Traverser(without_the_place)(d.term)).check()


ENDS = "@domain To begin base = R; lower = 0; upper = b end\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [
        "(f::RF) -> (b::R) -> sum(x::To, f(x) / sqrt(x))",
        "(f::RF) -> (b::R) -> sum(x::To, f(x) * sqrt(b - x))",
        "(f::RF) -> (b::R) -> sum(x::To, f(x) * log(x))",
        "(b::R, f::RF) -> (a::R) -> sum(x::To, f(a * x) / sqrt(b - x))",
    ],
)
def test_what_is_infinite_at_an_end_is_integrated(program: str) -> None:
    report = cd.grad(ENDS + program).check()
    assert report and "finite differences" in {f.what for f in report.findings}


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [
        ENDS + "(f::RF) -> (b::R) -> sum(x::To, f(x) * (b - x)^(1/3))",
        SPACES + "@domain Wide begin base = R; lower = 0; upper = 3 end\n"
        "(h::RF) -> (f::(Wide) -> R) -> sum(x::Line, h(x) * f(2 * x)^2)",
    ],
)
def test_what_no_rule_integrates_is_told_in_words(program: str) -> None:
    """A derivative that is too steep at an end, and one that jumps inside."""
    report = cd.grad(program).check()
    assert report and "finite differences" not in {f.what for f in report.findings}
    assert "an integrand is infinite or jumps where no rule sees it" in report.notes[0]


@pytest.mark.slow
def test_a_rule_that_there_is_no_time_for_is_told() -> None:
    d = cd.grad(ENDS + "(f::RF) -> (b::R) -> sum(x::To, f(x) * x^(1/2) * log(x))")
    report = dataclasses.replace(d, seconds=0.0).check()
    assert report and report.notes[0].endswith("there was no time for a finer rule")
    assert "finite differences" in {f.what for f in d.check().findings}


@pytest.mark.slow
@pytest.mark.parametrize(
    "program, factor",
    [
        (ENDS + "(f::RF) -> (b::R) -> sum(x::To, f(x) / sqrt(x))", 2),
        (SPACES + "(f::F) -> sum(x::Line, f(x)^2 * log(x) + abs(x - 1/3) * f(x)^3)", Fraction(1001, 1000)),
        (SPACES + "(f::F) -> sum(x::Line, f(x)^2 / abs(x - 1/3)^(1/2))", Fraction(100_002, 100_000)),
    ],
)
def test_a_wrong_derivative_is_noticed_where_integrands_are_infinite(program: str, factor: Fraction | int) -> None:
    d = cd.grad(program)
    assert isinstance(d.term, Lam) and isinstance(d.term.body, Lam)
    inner = d.term.body
    wrong = Lam(d.term.params, Lam(inner.params, mul(number(factor), inner.body)))
    assert not dataclasses.replace(d, term=wrong).check()


def test_a_function_that_is_read_outside_of_its_domain_is_refused() -> None:
    program = "(h::RF) -> (f::F) -> sum(x::Line, h(x) * f(2 * x)^2)"
    with pytest.raises(cd.UnsupportedError, match=r"a function on Line is read at .* outside of its domain"):
        cd.grad(SPACES + program).check()


@pytest.mark.slow
def test_code_may_compute_in_vain_outside_of_a_domain() -> None:
    program = "(g::(Far) -> R, s::RV) -> (c::RV) -> sum(i, where(2 <= s(i) and s(i) <= 3, g(s(i)) * c(i)^2, c(i)))"
    assert cd.grad("@domain Far begin base = R; lower = 2; upper = 3 end\n" + program).check()


def test_functions_of_the_real_line_are_refused_in_words() -> None:
    with pytest.raises(cd.UnsupportedError, match="functions on intervals"):
        cd.grad("(f::RF) -> sum(x::R, f(x)^2)").check()
