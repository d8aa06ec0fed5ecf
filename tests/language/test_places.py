"""What is refused when a program is derived, or only when code is made of it, is shown in the program."""

from __future__ import annotations

import pickle

import pytest

import combdiff as cd
from combdiff.errors import CombDiffError

DERIVED = {
    "an entry": ("(M::RM) -> (x::RV) -> sum((i, j), delta(M(i, j), 1, x(i)))", "delta(M(i, j), 1, x(i))"),
    "a function of one": ("(x::RV) -> sum(i, delta(sin(x(i)), 0, 1))", "delta(sin(x(i)), 0, 1)"),
    "a definition": ("(x::RV) -> begin; s = 2 * sum(i, x(i)); delta(s, 1, s^2); end", "delta(s, 1, s^2)"),
    "one of two": (
        "(M::RM) -> (x::RV) -> sum((i, j), delta(i, j, x(i)) + delta(1, M(i, j), x(j)))",
        "delta(1, M(i, j), x(j))",
    ),
}
COMPILED = {
    "a captured number": ("(a::R) -> (x::RV) -> sum(i, x(i)) + delta(a, 1, x(0))", "delta(a, 1, x(0))"),
    "an integral": ("(y::RF) -> (x::R) -> sum(t::R, y(t) * x^2)", "t::R"),
    "a name twice": ("(a::R) -> (a::R) -> a^2", "a::R) -> a^2"),
    "a map of functions": ("(F::(RF) -> R, f::RF) -> (x::R) -> x^2 * F(f)", "F::(RF) -> R"),
    "a call for each index": (
        "(f::(RV) -> R, A::RM) -> (x::RV) -> sum(i, f(j -> A(i, j) * x(j)))",
        "f(j -> A(i, j) * x(j))",
    ),
}


def lines(text: str) -> str:
    return text.replace("; ", "\n")


def shown(error: CombDiffError, text: str) -> bool:
    """Whether the place of the error is where `text` starts in the line that it shows."""
    assert error.source is not None and error.span is not None
    return error.source.text.split("\n")[error.span.line - 1][error.span.column - 1 :].startswith(text)


@pytest.mark.parametrize("case", DERIVED)
def test_a_delta_that_no_integral_can_meet_is_refused_where_it_stands(case: str) -> None:
    text, place = DERIVED[case]
    with pytest.raises(CombDiffError, match="where\\(a == b, e\\)") as refused:
        cd.grad(lines(text))
    assert shown(refused.value, place)


def test_what_the_refusal_advises_works() -> None:
    d = cd.grad("(M::RM) -> (x::RV) -> sum((i, j), indicator(M(i, j), 1, indicator(1, M(i, j), x(i)^2)))")
    assert list(d.compile()([[1.0, 2.0], [1.0, 1.0]], [3.0, 5.0])) == [6.0, 20.0]


@pytest.mark.parametrize(
    "text", ["(y::RF) -> sum(t::R, delta(2 * t, 1, y(t)))", "(a::R) -> (t::R) -> delta(t, a, 1) * t^2"]
)
def test_a_delta_of_a_variable_is_derived(text: str) -> None:
    assert "delta" in str(cd.pullback(text))


@pytest.mark.parametrize("case", COMPILED)
@pytest.mark.parametrize("again", [False, True])
def test_what_no_code_is_made_of_is_shown_in_the_program(case: str, again: bool) -> None:
    text, place = COMPILED[case]
    d = cd.grad(text, name="mine.cd")
    d = pickle.loads(pickle.dumps(d)) if again else d
    for make in (d.compile, d.source, d.plan):
        with pytest.raises(CombDiffError, match=r"mine\.cd:1:") as refused:
            make()
        assert shown(refused.value, place)


def test_an_error_about_what_is_not_in_the_text_has_no_place() -> None:
    d = cd.grad("(x::R) -> 10^400 * x^2")
    with pytest.raises(CombDiffError) as refused:
        d.compile()
    assert refused.value.span is None
