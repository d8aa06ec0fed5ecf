"""The numerical check of a derivation: what it compares, what it notices, what it refuses."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import pytest

import combdiff as cd
from combdiff.language.sizes import evaluation_steps, two_sizes
from combdiff.language.terms import ONE, Lam, Term, fresh, mul, number, total

PROGRAMS = {
    "a real unknown inside complex values": "(y::RV, z::C) -> begin f = z*(1 - z); sum(i, f*y(i)^2) end",
    "an unknown function of two entries": "(g::RO) -> (x::RV) -> sum((i, j), g(x(i), x(j)))",
    "constant indices": "(x::RV) -> x(0) * x(2)^2",
    "a derivative inside of the objective": "(x::R) -> grad((y::R) -> grad((z::R) -> z^3*y)(y))",
    "parameters called self and out": "(out::RV, self::RV) -> sum(i, out(i) * self(i))",
    "a range that no array shows": "@domain BZ begin base = I; periodic = true end\n(x::R) -> sum(k::BZ, x^2)",
    "constant indices of matrices": "(R::Sym, y::RV, M::Sym) -> M[2, 2] + R(1, 1) + y(0)",
    "large numbers": "(x::R) -> 10^12 * (x + 1)^2",
}


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_a_right_derivative_passes(text: str) -> None:
    assert cd.grad(text).check()
    assert cd.grad(text).check(seed=3)


def test_a_steep_function_passes_on_whatever_is_drawn() -> None:
    d = cd.grad("(a::R) -> sin((3 + abs2(a))^(7/3))")
    assert all(d.check(seed) for seed in range(30))


def test_loops_over_a_lattice_are_short() -> None:
    zone = "@domain G begin base = (I, I, I); periodic = true end\n"
    d = cd.grad(zone + "(u::(G) -> R, a::R) -> (w::(G) -> R) -> (a + sum(m, w(m) * sum(m1::G, u(-m1))))^2")
    assert max(evaluation_steps(d.term, sizes) for sizes in two_sizes(d.term)) > 5 * 10**5
    assert max(evaluation_steps(d.term, sizes) for sizes in two_sizes(d.term, few=True)) < 5 * 10**4
    assert d.check()


@pytest.mark.parametrize("text", [PROGRAMS["a real unknown inside complex values"], PROGRAMS["constant indices"]])
def test_a_right_hessian_product_passes(text: str) -> None:
    assert cd.hvp(text).check()


def changed(d: object, factor: Term) -> object:
    """The derivation with every entry of its result multiplied by `factor`."""

    def scaled(t: Term) -> Term:
        return Lam(t.params, scaled(t.body)) if isinstance(t, Lam) else mul(factor, t)

    return dataclasses.replace(d, term=scaled(d.term))  # type: ignore[type-var,attr-defined]  # a Derivation


@pytest.mark.parametrize("factor", [number(2), number(-1), number(1j)])
def test_a_wrong_factor_is_noticed(factor: Term) -> None:
    d = cd.grad("(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))")
    assert d.check()
    assert not changed(d, factor).check()  # type: ignore[attr-defined]


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_a_factor_that_is_one_at_a_single_size_is_noticed(size: int) -> None:
    d = cd.grad("(x::RV{n}) -> sum(i, x(i)^2)")
    i = fresh("i", d.objective.params[0].type.params[0])
    assert not changed(d, mul(number(Fraction(1, size)), total((i,), ONE))).check()  # type: ignore[attr-defined]


def test_an_imaginary_part_in_the_derivative_by_a_real_variable_is_noticed() -> None:
    d = cd.grad("(x::RV) -> sum(i, x(i)^2)")
    assert not changed(d, number(1 + 1j)).check()  # type: ignore[attr-defined]


def test_a_report_says_what_was_compared() -> None:
    report = str(cd.grad("(x::RV) -> sum(i, x(i)^2)").check())
    assert "finite differences" in report
    assert "emitted NumPy code" in report


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(f::RF) -> (a::R) -> f(a)^2", None),
        ("(a::R) -> (f::RF) -> f(a)^2", "real line"),
        ("(D::(RV) -> RV) -> (x::RV) -> sum(i, D(x)(i)^2)", "no random value"),
    ],
)
def test_what_has_no_entries_is_refused_in_words(text: str, words: str | None) -> None:
    d = cd.grad(text)
    if words is None:
        assert d.check()
    else:
        with pytest.raises(cd.CombDiffError, match=words):
            d.check()


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(cd.CombDiffError, match="negative"):
        cd.grad("(x::R) -> x^2").check(seed=-1)


@pytest.mark.parametrize(("name", "shape"), [("q", (2,)), ("x", 3), ("x", (-1,)), ("x", (2, 2)), ("x", (1.5,))])
def test_a_plan_for_a_wrong_shape_is_refused(name: str, shape: object) -> None:
    with pytest.raises(cd.CombDiffError):
        cd.grad("(x::RV) -> sum(i, x(i)^2)").plan(**{name: shape})  # type: ignore[arg-type]  # wrong on purpose


def test_a_plan_counts_for_the_shapes_given() -> None:
    d = cd.grad("(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))")
    assert str(d.plan(x=(10,))) != str(d.plan(x=(1000,)))
