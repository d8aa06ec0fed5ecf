"""Terms under contrary conditions are one choice, for all that prints sums; nothing else is."""

from __future__ import annotations

import pytest

import combdiff as cd
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.language.printing.printer import expression_text, program_text
from combdiff.terms.conditions.choices import Choice, with_choices
from combdiff.terms.conditions.comparing import compared
from combdiff.terms.terms import MINUS_ONE, ONE, add, fresh, indicator, mul, number, power, terms_of
from combdiff.terms.types import REAL, Domain, Index
from tests.notation.latex_reader import UnreadableError
from tests.notation.test_printed_forms import assert_reads_as
from tests.reading_back import assert_reads_back, values_of

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
    assert isinstance(found, Choice) and (found.taken, found.other) == (x, y)


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
    assert isinstance(found, Choice) and (found.taken, found.other) == (y, x)


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
    assert r"[0 \le x_{i} < 1]" in cd.grad(NESTED).latex()
