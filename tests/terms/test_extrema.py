"""max and min of two numbers: their sum, their product, the signs beside them, and ½ each where they are equal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import combdiff as cd
from combdiff.meaning.evaluate import evaluate
from combdiff.terms.terms import Call, Pow, Term, add, call, fresh, mul, number, sub
from combdiff.terms.types import REAL
from tests.reading_back import assert_reads_back

x, y, u = (fresh(name, REAL) for name in "xyu")
ZERO, ONE, TWO = map(number, range(3))
HINGE, SIGN = Call("max", (ZERO, u)), Call("sign", (u,))

GRADIENTS = {
    "(x::RV) -> sum(i, max(0, x(i)))": "i -> 1/2 * (1 + sign(x(i)))",
    "(x::RV) -> sum(i, max(0, -x(i)))": "i -> -1/2 * (1 - sign(x(i)))",
    "(x::RV) -> sum(i, max(0, 1 - x(i)))": "i -> -1/2 * (1 + sign(1 - x(i)))",
    "(x::RV) -> sum(i, min(x(i), 1))": "i -> 1/2 * (1 + sign(1 - x(i)))",
    "(x::RV) -> sum(i, max(0, 1 - x(i))^2)": "i -> -2 * max(0, 1 - x(i))",
    "(x::RV) -> sum(i, min(x(i), 0)^3)": "i -> 3 * min(x(i), 0)^2",
    "(W::RM, b::RV) -> (x::RV) -> sum(i, max(0, sum(j, W(i, j) * x(j)) + b(i))^2)": (
        "j -> 2 * sum(i, W(i, j) * max(0, sum(j1, W(i, j1) * x(j1)) + b(i)))"
    ),
    "(x::R, y::R) -> max(x, y)": "(1/2 * (1 + sign(x - y)), 1/2 * (1 + sign(y - x)))",
    "(x::R, y::R) -> max(x, y) + min(y, x)": "(1, 1)",
    "(x::R, y::R) -> max(x, y) * min(y, x)": "(y, x)",
    "(x::RV) -> sum((i, j), abs(-x(i) - x(j)))": "i -> 2 * sum(j, sign(x(j) + x(i)))",
}


@pytest.mark.slow
@pytest.mark.parametrize("program", GRADIENTS)
def test_a_gradient_reads_as_it_is_written_by_hand(program: str) -> None:
    d = cd.grad(program)
    assert " ".join(str(d).split()).endswith(GRADIENTS[program])
    assert_reads_back(d.term)
    assert bool(d.check())


def test_equal_numbers_share_a_derivative() -> None:
    gradient = cd.grad("(x::RV) -> sum(i, max(0, x(i)) + min(2 - x(i), 1) + max(x(i), 3 - x(i))^2)").compile()
    assert gradient(np.array([0.0, 1.0, 1.5])).tolist() == [0.5 - 0 - 6, 1 - 0.5 - 4, 1 - 1 + 0]


def test_a_sign_beside_a_number_that_is_zero_elsewhere_is_known() -> None:
    assert mul(add(ONE, SIGN), HINGE) == mul(TWO, HINGE)
    assert mul(sub(ONE, SIGN), HINGE) == ZERO
    assert mul(SIGN, Pow(HINGE, TWO)) == Pow(HINGE, TWO)
    lower = Call("min", (u, ZERO))
    assert mul(add(x, mul(number(3), SIGN)), lower) == mul(add(number(-3), x), lower)
    # no product is changed in which nothing is 0, is another sign, or is divided by
    for factors in ((Call("max", (ONE, u)), SIGN), (HINGE, Call("sign", (x,))), (Pow(HINGE, number(-1)), SIGN)):
        assert mul(*factors) == mul(*reversed(factors)) and SIGN.primitive in str(mul(*factors))


NUMBERS = st.sampled_from([-2.0, -0.5, 0.0, 0.5, 2.0])


@given(a=NUMBERS, b=NUMBERS, c=st.integers(-3, 3), d=st.integers(-3, 3), n=st.integers(1, 3))
def test_the_laws_hold_at_all_numbers(a: float, b: float, c: int, d: int, n: int) -> None:
    largest, smallest = Call("max", (x, y)), Call("min", (y, x))
    terms = [
        (add(mul(number(c), largest), mul(number(d), smallest), x), c * max(a, b) + d * min(a, b) + a),
        (mul(Pow(largest, number(n)), smallest), max(a, b) ** n * min(a, b)),
        (mul(add(number(c), mul(number(d), SIGN), y), HINGE), (c + d * np.sign(a) + b) * max(0, a)),
        (call("sign", add(mul(number(-2), x), mul(number(-1), y))), np.sign(-2 * a - b)),
        (call("abs", mul(number(-3), x)), abs(-3 * a)),
    ]
    for term, expected in terms:
        assert _value(term, {x: a, y: b, u: a}) == pytest.approx(expected)


def _value(t: Term, at: dict[Term, float]) -> float:
    return float(np.real(evaluate(t, at)))  # type: ignore[arg-type]


def test_a_product_and_a_sum_of_both_are_those_of_the_numbers() -> None:
    largest, smallest = Call("max", (x, y)), Call("min", (y, x))
    assert add(largest, smallest) == add(x, y) and mul(largest, smallest) == mul(x, y)
    assert mul(Pow(largest, TWO), smallest) == mul(largest, x, y)
    assert add(mul(TWO, largest), smallest) == add(mul(TWO, largest), smallest) != add(x, y)
