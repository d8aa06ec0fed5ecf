"""Text of terms: it parses back to the same term, with few parentheses and no clash of names."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combdiff.api import grad, hvp
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.language.printing.printer import expression_text, program_text
from combdiff.language.printing.wrapping import wrapped
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.samples import random_arguments
from combdiff.meaning.sizes import default_sizes
from combdiff.terms.terms import (
    ONE,
    App,
    Conj,
    Delta,
    Diff,
    Lam,
    Let,
    Mul,
    Pow,
    Sum,
    add,
    alpha_equal,
    call,
    fresh,
    mul,
    neg,
    number,
    power,
)
from combdiff.terms.types import COMPLEX, REAL, SYMMETRIC, Domain, Index, Map, Symmetry
from tests.strategies import programs, standard

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.cd"))
X, Y, Z = fresh("x", REAL), fresh("y", REAL), fresh("z", COMPLEX)
ROWS = Domain("x.1")
VECTOR = Map((Index(ROWS),), REAL, (), "RV")


def reread(term, keep=()):
    return infer(parse(program_text(term)), keep=keep)


@pytest.mark.slow
@given(programs())
@settings(max_examples=150, deadline=None)
def test_a_program_parses_back_to_the_same_term(program):
    assert alpha_equal(standard(program, joined=True), standard(reread(program), joined=True))


@pytest.mark.slow
@given(programs(), st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_a_program_that_is_read_back_has_the_same_value_on_the_same_arrays(program, seed):
    sizes = default_sizes(program)
    arguments = random_arguments(program, sizes, np.random.default_rng(seed))
    again = reread(program)
    values = dict(zip(_leading(again), arguments.values(), strict=True))
    # a range that stands in no slot is declared in the text, under its name without signs
    known = {re.sub(r"\W", "", d.name): size for d, size in sizes.items()}
    seen = {d: known[d.name] for d in default_sizes(again) if d.declared}
    with np.errstate(all="ignore"):
        before = evaluate(_below(program, len(arguments)), arguments, sizes)
        after = evaluate(_below(again, len(arguments)), values, seen)
    assert np.allclose(before, after, equal_nan=True)


def _leading(term):
    return [p for part in _maps(term) for p in part.params]


def _maps(term):
    while isinstance(term, Lam):
        yield term
        term = term.body


def _below(term, count):
    """The body below the first `count` parameters."""
    for part in _maps(term):
        count -= len(part.params)
        if not count:
            return part.body
    raise AssertionError("too few parameters")


@pytest.mark.slow
@given(programs())
@settings(max_examples=50, deadline=None)
def test_text_is_stable(program):
    assert program_text(reread(program)) == program_text(reread(reread(program)))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_parses_back_to_the_very_same_term(path):
    term = infer(parse(path.read_text(encoding="utf-8")))
    assert alpha_equal(term, reread(term))


@pytest.mark.slow
@pytest.mark.parametrize("derivative", [grad, hvp])
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_result_parses_back_to_the_same_term(path, derivative):
    term = derivative(path.read_text(encoding="utf-8")).term
    assert alpha_equal(standard(term, joined=True), standard(reread(term), joined=True))


def test_slots_of_different_arguments_need_no_common_range_to_be_declared():
    text = str(hvp("(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))"))
    assert text.startswith("(A::Her) -> (x::CV, k::CV) -> ")
    trace = "(A::CM, B::CM) -> sum((i, j), A(i, j) * B(j, i) + B(i, j) * A(j, i))"
    assert str(grad(trace)) == "(A::CM, B::CM) -> ((i, j) -> 2 * B(j, i)', (j, i) -> 2 * A(i, j)')"


@pytest.mark.parametrize(
    "term, text",
    [
        (add(X, neg(Y)), "x - y"),
        (add(neg(X), mul(number(-2), Y)), "-x - 2 * y"),
        (mul(X, add(X, Y)), "x * (x + y)"),
        (mul(number(4), X, Y), "4 * x * y"),
        (mul(number(Fraction(1, 2)), X), "1/2 * x"),
        (mul(number(Fraction(-3, 2)), X), "-3/2 * x"),
        (mul(X, power(Y, number(-1))), "x / y"),
        (mul(X, power(mul(Y, Z), number(-1))), "x / (y * z)"),
        (power(Y, number(-2)), "1 / y^2"),
        (neg(power(Y, number(-1))), "-1 / y"),
        (power(add(X, Y), number(2)), "(x + y)^2"),
        (power(neg(X), number(3)), "(-x)^3"),
        (neg(power(X, number(2))), "-x^2"),
        (Pow(X, number(Fraction(1, 2))), "x^(1/2)"),
        (Pow(Pow(X, Y), Y), "(x^y)^y"),
        (Pow(X, Pow(X, Y)), "x^(x^y)"),
        (Conj(Z), "z'"),
        (Conj(mul(Z, X)), "(z * x)'"),
        (power(Conj(Z), number(2)), "z'^2"),
        (mul(number((Fraction(0), Fraction(1))), X), "im * x"),
        (mul(number((Fraction(0), Fraction(-1))), X), "-im * x"),
        (mul(number((Fraction(1), Fraction(-2))), X), "(1 - 2 * im) * x"),
        (add(X, number((Fraction(1), Fraction(1)))), "x + (1 + im)"),
        (add(X, neg(add(X, Y, ONE))), "x - (x + y + 1)"),
        (call("exp", mul(call("pi"), X)), "exp(pi * x)"),
    ],
)
def test_an_expression_has_only_the_parentheses_that_it_needs(term, text):
    assert expression_text(term) == text
    program = Lam((X, Y, Z), term)
    assert alpha_equal(reread(program), program)


def test_indices_of_declared_domains_are_annotated():
    zone = Domain("BZ", declared=True, periodic=True)
    k, b = fresh("k", Index(zone)), fresh("b", Index(zone))
    f = fresh("f", Map((Index(zone),), COMPLEX))
    assert expression_text(Sum((b, k), App(f, (add(b, k),)))) == "sum((b::BZ, k::BZ), f(b + k))"


def test_a_step_is_read_after_the_point_that_it_leaves():
    zone, steps = Domain("BZ", declared=True, periodic=True), Domain("X", declared=True, symmetric=True)
    b, k = fresh("b", Index(steps)), fresh("k", Index(zone))
    f = fresh("f", Map((Index(zone),), COMPLEX))
    assert expression_text(App(f, (add(b, k),))) == "f(k + b)"


def test_two_variables_in_sight_that_share_a_name_are_told_apart():
    outer, inner = fresh("i", Index(ROWS)), fresh("i", Index(ROWS))
    x = fresh("x", VECTOR)
    term = Lam((x,), Lam((outer,), Sum((inner,), mul(App(x, (outer,)), App(x, (inner,))))))
    assert program_text(term) == "(x::RV) -> i -> sum(i₁, x(i) * x(i₁))"
    assert alpha_equal(standard(reread(term)), standard(term))


def test_siblings_may_share_a_name():
    i, j = fresh("i", Index(ROWS)), fresh("i", Index(ROWS))
    x = fresh("x", VECTOR)
    term = mul(Sum((i,), App(x, (i,))), add(ONE, Sum((j,), App(x, (j,)))))
    assert expression_text(term) == "sum(i, x(i)) * (1 + sum(i, x(i)))"


@pytest.mark.parametrize("name", ["sum", "delta", "end", "pi", "grad"])
def test_a_word_of_the_language_is_no_name(name):
    x = fresh(name, REAL)
    term = Lam((x,), add(x, ONE))
    assert program_text(term) == f"({name}₁::R) -> {name}₁ + 1"
    assert alpha_equal(reread(term), term)


def test_a_range_that_stands_bare_in_no_slot_gets_a_named_size():
    x, i = fresh("x", VECTOR), fresh("i", Index(ROWS))
    term = Lam((x,), Sum((i,), ONE))
    assert program_text(term) == "(x::RV{n}) -> n"
    assert alpha_equal(standard(reread(term)), standard(term))


def test_a_range_that_no_parameter_has_is_declared():
    x, i = fresh("x", REAL), fresh("i", Index(ROWS))
    term = Lam((x,), mul(x, Sum((i,), ONE)))
    assert program_text(term) == "@domain x1 begin base = I end\n(x::R) -> x * size(x1)"
    assert alpha_equal(standard(reread(term)), standard(term))


def test_slots_that_come_out_apart_are_not_declared_and_keep_their_symmetries():
    s, x = fresh("S", Map((Index(ROWS),) * 2, REAL, (SYMMETRIC,), "Sym")), fresh("x", VECTOR)
    term = Lam((s,), Lam((x,), App(x, (number(0),))))
    assert program_text(term) == "(S::Sym) -> (x::RV) -> x(0)"
    assert reread(term).params[0].kind.symmetries == (SYMMETRIC,)


def test_slots_that_run_from_minus_m_are_declared_when_only_one_of_them_says_so():
    odd = Domain("w.1", symmetric=True)
    w = fresh("w", Map((Index(odd),), REAL, (Symmetry.reflection((1,), 1, "ineg"),), "SV"))
    v, b = fresh("v", Map((Index(odd),), REAL)), fresh("b", Index(odd))
    term = Lam((w, v), Sum((b,), App(v, (b,))))
    assert reread(term).params[1].kind.params[0].domain.symmetric
    assert alpha_equal(standard(reread(term)), standard(term))


def test_values_are_lines_of_a_block():
    x, a, b = fresh("x", REAL), fresh("a", REAL), fresh("b", REAL)
    term = Lam((x,), Let(((a, call("exp", x)), (b, mul(a, x))), mul(a, b)))
    assert program_text(term) == "(x::R) -> begin\n  a = exp(x)\n  b = a * x\n  a * b\nend"
    assert alpha_equal(reread(term), term)


def test_derivatives_of_unknown_maps_are_written_and_read():
    f, x = fresh("f", Map((REAL,), REAL, (), "RF")), fresh("x", REAL)
    term = Lam((f, x), add(App(Diff("grad", f), (x,)), App(Diff("pullback", f), (x, number(2)))))
    assert program_text(term) == "(f::RF, x::R) -> grad(f)(x) + pullback(f)(x, 2)"
    assert alpha_equal(reread(term), term)


def test_a_tuple_of_cotangents_is_taken_apart():
    term = infer(parse("(g::RO, x::R) -> begin (a, b) = pullback(g)(x, x, 2); a * b end"))
    assert program_text(term) == "(g::RO, x::R) -> begin\n  (a, b) = pullback(g)(x, x, 2)\n  a * b\nend"
    assert alpha_equal(reread(term), term)


def test_a_function_that_is_kept_is_printed_and_kept_again():
    text = "(x::RV) -> begin R = (y::R) -> exp(y); sum(i, R(x(i)) + grad(R)(x(i))) end"
    term = infer(parse(text), keep=("R",))
    assert alpha_equal(standard(reread(term, keep=("R",))), standard(term))


def test_an_integral_of_a_raw_pullback_is_readable():
    t, v = fresh("t", COMPLEX), fresh("v", COMPLEX)
    assert expression_text(Sum((t,), Delta(v, t, Mul((t, t))))) == "sum(t::C, delta(v, t, t * t))"


def test_long_programs_are_wrapped_and_still_parse():
    x = fresh("x", VECTOR)
    terms = [App(x, (number(n),)) for n in range(60)]
    program = Lam((x,), add(*(mul(number(n + 2), t, call("exp", t)) for n, t in enumerate(terms))))
    text = program_text(program)
    assert max(map(len, text.split("\n"))) <= 100 and text.count("\n") > 5
    assert alpha_equal(standard(reread(program)), standard(program))


@pytest.mark.slow
@given(programs(), st.integers(20, 80))
@settings(max_examples=60, deadline=None)
def test_text_of_any_width_says_the_same(program, width):
    text = program_text(program)
    narrow = wrapped(text, width)
    assert "".join(narrow.split()) == "".join(text.split())
    assert alpha_equal(infer(parse(narrow)), infer(parse(text)))


def test_a_sum_is_broken_between_its_terms_and_a_tuple_between_its_items():
    term = "x -> (2 * f(x, y) + g(x, y), 3 * sum(i, f(i, y) * g(x, i)))"
    assert wrapped(term, 30).split("\n") == [
        "x ->",
        "    (",
        "        2 * f(x, y) + g(x, y),",
        "        3 * sum(i,",
        "            f(i, y) * g(x, i))",
        "    )",
    ]


@pytest.mark.slow
def test_a_sum_of_five_thousand_terms_and_a_deep_term_are_printed():
    x = fresh("x", REAL)
    wide = add(*(power(x, number(n)) for n in range(2, 5000)))
    assert expression_text(wide).count("x") == 4998
    deep = x
    for _ in range(3000):
        deep = call("exp", add(deep, ONE))
    assert expression_text(deep).count("exp") == 3000


def test_a_sum_is_broken_at_its_signs_though_a_short_term_comes_first() -> None:
    text = "x -> sum(c, s(i, c) * s(j, c)) + d / h - sum(c, (x(i, c) - x(j, c))^2) / h^2"
    assert wrapped(text, 50).split("\n") == [
        "x ->",
        "    sum(c, s(i, c) * s(j, c)) + d / h -",
        "    sum(c, (x(i, c) - x(j, c))^2) / h^2",
    ]
