"""Terms under contrary conditions are one choice, for all that prints sums; nothing else is."""

from __future__ import annotations

import random

import pytest

import combdiff as cd
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.language.printing.printer import expression_text, program_text
from combdiff.meaning.evaluate import evaluate
from combdiff.notation.latex import latex
from combdiff.terms.conditions.choices import Choice, with_choices
from combdiff.terms.conditions.comparing import compared
from combdiff.terms.terms import MINUS_ONE, ONE, add, fresh, indicator, mul, number, power, terms_of
from combdiff.terms.types import REAL, Domain, Index
from tests.notation.latex_reader import UnreadableError
from tests.notation.test_printed_forms import assert_reads_as
from tests.reading_back import assert_reads_back, reread, values_of

x, y, z = (fresh(name, REAL) for name in "xyz")
i, j = (fresh(name, Index(Domain("N"))) for name in "ij")


def text(*terms) -> str:
    return expression_text(add(*terms))


# --- what is a choice, and what is none -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("relation", "contrary"), [("<", ">="), ("<=", ">"), ("==", "!="), (">", "<="), (">=", "<"), ("!=", "==")]
)
@pytest.mark.parametrize("sides", [(x, y), (i, j), (i, number(2))])
def test_contrary_comparisons_are_a_choice(relation, contrary, sides) -> None:
    left, right = sides
    terms = [compared(left, relation, right, x), compared(left, contrary, right, y)]
    (found,) = with_choices(terms)
    assert isinstance(found, Choice) and [row.value for row in found.rows] == [x, y]


def test_conditions_of_whole_numbers_are_contrary_whatever_their_sides() -> None:
    assert text(indicator(ONE, i, x), indicator(i, number(0), y)) == "where(1 <= i, x, y)"


@pytest.mark.parametrize(
    "terms",
    [
        (compared(x, "<", y, x), compared(x, ">", y, y)),
        (compared(x, "<=", y, x), compared(x, ">=", y, y)),
        (compared(i, "<", j, x), compared(j, "<", i, y)),
        (compared(x, "<", y, x), compared(x, "<", y, y)),
        (compared(x, "<", y, compared(y, "<", z, x)), compared(x, ">=", y, y)),
        (compared(x, "<", y, x), mul(compared(x, ">=", y, ONE), power(z, MINUS_ONE))),
    ],
)
def test_other_terms_are_none(terms) -> None:
    """The last one may be infinite outside of its guard, and stays there."""
    assert not any(isinstance(t, Choice) for t in with_choices(terms))


def test_finite_factors_come_under_the_condition() -> None:
    assert text(mul(z, compared(x, "<", y, x)), mul(number(2), compared(x, ">=", y, ONE))) == "where(x < y, z * x, 2)"


def test_several_terms_under_one_condition_come_together() -> None:
    found = text(compared(x, "<", y, x), mul(z, compared(x, "<", y, z)), z, compared(x, ">=", y, ONE))
    assert found == "where(x < y, x + z^2, 1) + z"


def test_the_condition_is_the_one_that_is_not_a_negation() -> None:
    both = compared(i, "<", j, compared(x, "<", y, compared(i, "==", j, ONE)))
    terms = [indicator(both, number(0), x), compared(i, "<", j, compared(x, "<", y, compared(i, "==", j, y)))]
    (found,) = with_choices(terms)
    assert isinstance(found, Choice) and [row.value for row in found.rows] == [y, x]


@pytest.mark.parametrize(
    "condition", ["x(0) < 0 or (x(1) < 1 or x(2) < 2)", "x(0) < 0 or (x(1) < 1 or (x(2) < 2 and x(3) < 3 or x(4) < 4))"]
)
@pytest.mark.parametrize("negation", ["", "not "])
def test_brackets_in_a_condition_change_nothing(condition: str, negation: str) -> None:
    term = infer(parse(f"(x::RV) -> where({negation}({condition}), x(0), x(1))"))
    assert len(with_choices(terms_of(term.body))) == 1
    assert expression_text(term.body).count("where") == 1
    assert_reads_back(infer(parse(program_text(term))))
    before, after = values_of(term, infer(parse(program_text(term))))
    assert before == after


# --- as it is printed -------------------------------------------------------------------------------------------------

PROGRAMS = {
    "(x::RV, t::R) -> sum(i, where(x(i) < t, x(i)^2, 2 * x(i)))": "where(x(i) < t, 2 * x(i), 2)",
    "(x::RV) -> sum(i, where(abs(x(i)) <= 1, x(i)^2 / 2, abs(x(i)) - 1/2))": "where(abs(x(i)) <= 1, x(i), sign(x(i)))",
    "(t::R, a::RV) -> (x::RV) -> sum(i, where(x(i) < 0 or t < x(i) and a(i) < 2, x(i)^2, a(i) * sin(x(i))))": (
        "where(x(i) < 0 or t < x(i) and a(i) < 2, 2 * x(i), a(i) * cos(x(i)))"
    ),
    "(x::RV, y::RV) -> sum(i, y(i) + where(0 < x(i) < y(i), x(i)^2, exp(x(i))) + y(i)^2)": (
        "where(0 < x(i) < y(i), 2 * x(i), exp(x(i)))"
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_gradient_has_its_branches_together(program: str) -> None:
    d = cd.grad(program)
    assert PROGRAMS[program] in str(d)
    assert_reads_back(d.term)
    assert_reads_as(d.term, d.latex(), "index")
    assert bool(d.check())


NESTED = "(x::RV) -> sum(i, where(x(i) < 0, x(i)^2, where(x(i) < 1, x(i)^3, x(i)^4)))"
MATRIX = "(A::RM, x::RV) -> (i, j) -> where(i == j, A(i, j) * x(j), x(i)^2)"


@pytest.mark.parametrize("program", [NESTED, MATRIX])
def test_a_program_has_its_branches_together(program: str) -> None:
    d = cd.simplified(program)
    assert str(d) == program
    assert_reads_back(d.term)
    assert_reads_as(d.term, d.latex(), "index")


def test_cases_are_in_lines_behind_a_brace() -> None:
    d = cd.simplified(NESTED)
    assert d.latex() == (
        r"x \mapsto \sum_{i} \begin{cases} x_{i}^{2} & \text{if}\ x_{i} < 0 \\ x_{i}^{3} & \text{if}\ x_{i} < 1 \\ "
        r"x_{i}^{4} & \text{otherwise} \end{cases}"
    )
    assert d.unicode_text().endswith("Σ_i {x(i)² if x(i) < 0, x(i)³ if x(i) < 1, x(i)⁴ otherwise}")
    assert str(d.sympy().expression.args[0]) == ("Piecewise((x[i]**2, x[i] < 0), (x[i]**3, x[i] < 1), (x[i]**4, True))")


def test_what_follows_cases_is_no_part_of_the_last() -> None:
    text = cd.simplified("(x::R) -> 2 + where(x < 1, x, 1) + x^2").latex()
    assert r"2 + \left(\begin{cases}" in text and r"\end{cases}\right) + x^{2}" in text


@pytest.mark.parametrize(
    ("old", "new"), [("2 x_{i}", "x_{i}"), (r"\text{otherwise}", r"\text{if}\ 0 < x_{i}"), ("x_{i} < t", "t < x_{i}")]
)
def test_cases_that_are_wrong_are_noticed(old: str, new: str) -> None:
    d = cd.grad("(t::R) -> (x::RV) -> sum(i, where(x(i) < t, x(i)^2, 3 * x(i)))")
    assert d.latex().count(old) == 1
    with pytest.raises((AssertionError, UnreadableError)):
        assert_reads_as(d.term, d.latex().replace(old, new), "index")


def test_conditions_that_hold_together_stand_in_one_bracket() -> None:
    program = "(x::RV) -> sum(i, where(0 <= x(i) < 1, x(i)^2))"
    assert r"[0 \le x_{i} < 1]" in cd.grad(program).latex()


# --- three cases and more ---------------------------------------------------------------------------------------------

CUBIC = "where(x(i) < 0, x(i)^2, where(x(i) < 1, x(i)^3, 3 * x(i) - 2))"
HUBER = "where(x(i) - 2 < -1, -x(i), where(x(i) - 2 > 1, x(i), (x(i) - 2)^2 / 2))"
KERNEL = "where(x(i) < 1, x(i)^3 - 3 * x(i), where(x(i) < 2, (2 - x(i))^3, 0))"
STEP = "where(x(i) < 0, 0, where(x(i) < 1, 3 * x(i)^2 - 2 * x(i)^3, 1))"
SPLINE = "where(0 <= x(i) < 1, x(i)^2) + where(1 <= x(i) < 2, 3 * x(i) - x(i)^2) + where(2 <= x(i) < 3, (3 - x(i))^2)"
PLACES = "where(i < 2, x(i)^2, 0) + where(2 <= i and i < 5, x(i)^3, 0) + where(5 <= i, exp(x(i)), 0)"
PLACES_APART = "where(i < j, x(i) * A(i, j), where(i == j, A(i, j)^2, sin(x(j))))"
THREE = {
    CUBIC: ("where(x(i) < 0, 2 * x(i), where(x(i) < 1, 3 * x(i)^2, 3))", 3),
    HUBER: ("where(x(i) - 2 < -1, -1, where(x(i) - 2 <= 1, x(i) - 2, 1))", 3),
    KERNEL: ("where(x(i) < 1, 3 * x(i)^2 - 3, where(x(i) < 2, -3 * (2 - x(i))^2))", 3),
    STEP: ("6 * where(0 <= x(i) < 1, 1) * (x(i) - x(i)^2)", 0),
    SPLINE: ("where(0 <= x(i) < 3, where(x(i) < 1, 2 * x(i), where(x(i) < 2, 3 - 2 * x(i), -2 * (3 - x(i)))))", 4),
    PLACES: ("where(i < 2, 2 * x(i), where(i < 5, 3 * x(i)^2, exp(x(i))))", 3),
}


def rows_of(latex: str) -> int:
    return latex.count(r"\text{if}") + latex.count(r"\text{otherwise}")


@pytest.mark.sampled
@pytest.mark.parametrize("body", THREE)
def test_a_gradient_of_several_cases_is_one_expression(body: str) -> None:
    d = cd.grad(f"(x::RV) -> sum(i, {body})")
    expected, rows = THREE[body]
    assert " ".join(str(d).split()).endswith(expected)
    assert rows_of(d.latex()) == rows and d.latex().count(r"\begin{cases}") == min(rows, 1)
    assert_reads_back(d.term)
    assert_reads_as(d.term, d.latex(), "index")
    assert bool(d.check())


@pytest.mark.sampled
@pytest.mark.parametrize("body", [*THREE, PLACES_APART])
def test_a_program_of_several_cases_has_one_brace(body: str) -> None:
    d = cd.simplified(f"(A::RM, x::RV) -> {'(i, j) -> ' if body == PLACES_APART else 'i -> '}{body}")
    assert d.latex().count(r"\begin{cases}") == 1 and rows_of(d.latex()) == (4 if body == SPLINE else 3)
    assert_reads_back(d.term)
    assert_reads_as(d.term, d.latex(), "index")


def test_conditions_on_different_numbers_are_nested_as_they_are_shortest() -> None:
    body = "where(x < 0, where(y < 0, a, b), where(y < 1, c, d))"
    d = cd.simplified(f"(x::R, y::R, a::R, b::R, c::R, d::R) -> {body}")
    assert str(d).count("<") == 3
    assert rows_of(d.latex()) == 4 and d.latex().count(r"\begin{cases}") == 1
    assert_reads_as(d.term, d.latex(), "index")


def test_a_number_in_front_of_inner_cases_goes_to_each() -> None:
    term = infer(parse("(x::R) -> where(x < 0, 1, 3 * where(x < 1, 5, x))"))
    assert rows_of(latex(term)) == 3
    assert_reads_as(term, latex(term), "index")
    assert [evaluate(reread(term), {})(t) for t in (-1, 0.5, 2)] == [1, 15, 6]


def test_entries_that_are_added_are_no_cases() -> None:
    assert str(cd.grad("(x::RV) -> x(0)^2 + x(1)^3 + sin(x(2))")).count("delta") == 3


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(30))
def test_random_conditions_read_back_as_they_are(seed: int) -> None:
    """Sums of terms under conditions of two numbers, read back at points on, below and above all bounds."""
    draw = random.Random(seed)

    def condition(depth: int) -> str:
        if depth and draw.random() < 0.4:
            parts = f"{condition(depth - 1)} {draw.choice(['and', 'or'])} {condition(depth - 1)}"
            return draw.choice(["not ({})", "({})"]).format(parts)
        side = draw.choice(["x", "y", "2 * x", "1 - y", "x - y"])
        return f"{side} {draw.choice(['<', '<=', '>', '>=', '==', '!='])} {draw.randint(-1, 1)}"

    def value(depth: int) -> str:
        if depth and draw.random() < 0.7:
            return f"where({condition(1)}, {value(depth - 1)}, {value(depth - 1)})"
        return f"{draw.randint(0, 9)} * x"

    terms = [value(2), *(f"where({condition(1)}, {draw.randint(1, 9)})" for _ in range(draw.randint(0, 3)))]
    term = infer(parse(f"(x::R, y::R) -> {' + '.join(terms)}"))
    back = infer(parse(program_text(term)))
    for a in (-1.5, -1, -0.5, 0, 0.25, 0.5, 1, 2):
        for b in (-1, 0, 0.75, 1, 2):
            assert evaluate(term, {})(a, b) == evaluate(back, {})(a, b)
    assert_reads_as(term, latex(term), "index")


# --- conditions without number ----------------------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("join", ["and", "or"])
@pytest.mark.parametrize("conditions", [6, 7, 12, 40])
def test_a_choice_has_any_number_of_conditions(conditions: int, join: str) -> None:
    names = [f"a{n}" for n in range(conditions)]
    asked = f" {join} ".join(f"{name} < {n}" for n, name in enumerate(names))
    term = infer(parse(f"({', '.join(f'{name}::R' for name in names)}) -> where({asked}, a0^2, 7 * a1)"))
    assert "".join(expression_text(term.body).split()) == f"where({asked}, a0^2, 7 * a1)".replace(" ", "")
    assert_reads_back(term)
    # below all bounds up to one, and beyond the others; and the other way round
    inside = [n - 0.5 for n in range(conditions)]
    beyond = [n + 1.0 for n in range(conditions)]
    f = evaluate(reread(term), {})
    for n in {0, 1, conditions // 2, conditions - 1, conditions}:
        for values in ([*inside[:n], *beyond[n:]], [*beyond[:n], *inside[n:]]):
            holds = (all if join == "and" else any)(v < m for m, v in enumerate(values))
            assert f(*values) == (values[0] ** 2 if holds else 7 * values[1])


@pytest.mark.slow
def test_choices_within_choices_have_any_number_of_conditions() -> None:
    body = "x(0)"
    for n in range(1, 12):
        body = f"where(x({n}) < {n}, x({n})^2, {body})"
    d = cd.grad(f"(x::RV{{n}}) -> {body}")
    assert d.unicode_text().count("otherwise") == 1 and bool(d.check())
    assert_reads_back(d.term)


@pytest.mark.slow
def test_conditions_that_are_too_many_ways_to_read_are_printed_as_they_are() -> None:
    """Any of twenty holds, or any two of twenty pairs that are far apart in the order in which they are asked."""
    names = [f"{letter}{n}" for letter in "ab" for n in range(20)]
    any_of = " or ".join(f"{name} < 0" for name in names)
    pairs = " or ".join(f"a{n} < 0 and b{n} < 0" for n in range(20))
    term = infer(parse(f"({', '.join(f'{n}::R' for n in names)}) -> where(({any_of}) and ({pairs}), a0, b0)"))
    assert_reads_back(term)
    f = evaluate(reread(term), {})
    for held in ([], ["a3"], ["a3", "b4"], ["a3", "b3"]):
        values = [-1.0 if name in held else 1.0 for name in names]
        values[20] = 2.0
        expected = values[0] if held == ["a3", "b3"] else 2.0
        assert f(*values) == expected
