"""Vector products of a sum that have a vector in common become one, and those that have none, or stand apart, stay."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.meaning.evaluate import evaluate
from combdiff.simplify.laws.vector_products import with_common_vectors
from combdiff.terms.terms import Lam, Reduce, subterms

HEAD = "(h::RV{3}, a::RV{3}, b::RV{3}, s::RV{3}) -> "


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ("i -> cross(h, a)(i) + cross(h, b)(i)", 2, 1),
        ("i -> cross(h, a)(i) + 2 * cross(b, h)(i)", 2, 1),
        ("i -> cross(a, h)(i) + s(0) * cross(b, h)(i)", 2, 1),
        ("i -> s(0) * cross(a, h)(i) - s(0) * cross(h, b)(i) + cross(s, h)(i)", 3, 1),
        ("(j::N{3}, i) -> where(j < 1, cross(h, a)(i)) + where(j < 1, cross(b, h)(i))", 2, 1),
        ("i -> cross(h, j -> a(j) + b(j))(i) + cross(k -> a(k) + b(k), s)(i)", 2, 1),
        ("i -> cross(h, a)(i) + cross(s, b)(i)", 2, 2),
        ("i -> cross(h, a)(i) + s(i) * cross(h, b)(i)", 2, 2),
        ("i -> cross(h, a)(i) + cross(h, b)(2 - i)", 2, 2),
        ("(j::N{3}, i) -> where(j < 1, cross(h, a)(i)) + where(1 < j, cross(h, b)(i))", 2, 2),
        ("i -> where(i < 1, cross(h, a)(i)) + where(i < 1, cross(h, b)(i))", 2, 2),
        ("i -> cross(h, a)(i) * cross(h, b)(i) + cross(h, s)(i)", 3, 3),
    ],
)
def test_products_with_a_common_vector_are_one(text: str, before: int, after: int) -> None:
    program = infer(parse(HEAD + text))
    assert isinstance(program, Lam)
    joined = with_common_vectors(program.body)
    assert [len({*subterms(t, Reduce)}) for t in (program.body, joined)] == [before, after]
    rng = np.random.default_rng(2)
    values = {p: rng.normal(size=3) for p in program.params}
    np.testing.assert_allclose(evaluate(joined, values, {}), evaluate(program.body, values, {}), rtol=1e-13)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        # the force on the pivot is the total one times the torque
        (
            "(f::RM{n, 3}, r::RM{n, 3}) -> (p::RV{3}) -> "
            "norm(c -> sum(i, cross(k -> r(i, k) - p(k), k -> f(i, k))(c)))^2",
            "k -> 2 * cross(c -> sum(i, cross(k1 -> r(i, k1) - p(k1), k1 -> f(i, k1))(c)), c -> sum(i, f(i, c)))(k)",
        ),
        # weights and conditions of the index go into the sum
        (
            "(w::RV{n}, f::RM{n, 3}, u::RV{3}) -> (p::RV{3}) -> "
            "sum(i, w(i) > 0, w(i) * dot(u, cross(k -> f(i, k), p)))",
            "cross(u, i -> sum(i1, where(0 < w(i1), w(i1) * f(i1, i))))",
        ),
    ],
)
def test_a_sum_of_products_with_one_vector_is_one_product(program: str, expected: str) -> None:
    d = cd.grad(program)
    assert " ".join(str(d.result).split()).endswith(expected)
    assert d.check()


def test_a_minus_turns_a_product_round_but_in_definitions_of_the_program() -> None:
    d = cd.grad(
        "(a::RV{3}, h::RV{3}) -> (m::RV{3}) -> begin f = i -> -cross(m, h)(i); sum(i, f(i)^2) + a(0) * f(1) end"
    )
    assert "f = i -> -cross(m, h)(i)" in str(d.result)
    assert "-cross" not in str(d.result).replace("f = i -> -cross", "")
    assert d.check()
