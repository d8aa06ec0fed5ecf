"""What is zero but at constants is written there: the values are those of evaluate.py, in every library."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.text import read, text
from combdiff.arrays.verify import PlanError, verify
from combdiff.meaning.evaluate import evaluate
from tests.emit.array_libraries import Numbers, library

__all__ = ["library"]

DETERMINANT = "(A::RM) -> A(0, 0) * A(1, 1) - A(0, 1) * A(1, 0)"
BESIDE = "(x::RV) -> exp(x(0)) * x(1) + sum(i, x(i)^2)"
ROWS = "(A::RM) -> sum(j, A(0, j) * A(1, j)) + sum(i, A(i, 2)^2)"
COMPLEX = "(x::CV) -> real(x(0) * exp(x(2)') + sum(i, x(i)' * x(i)))"
BARE = "(x::RV) -> x(0)^2 * x(1) + sum(i, x(i)^2) / 2"
PROGRAMS = [DETERMINANT, BESIDE, ROWS, COMPLEX, BARE]


def body(source: str) -> list[str]:
    return [line.strip() for line in source.split('"""')[2].strip().splitlines()]


def sample(program: str, size: int = 3) -> np.ndarray:
    rng = np.random.default_rng(size)
    shape = (size, size + 1) if "RM" in program else (size,)
    real = rng.normal(size=shape)
    return real + 1j * rng.normal(size=shape) if "CV" in program else real


def test_the_gradient_of_a_determinant_is_four_entries() -> None:
    assert body(cd.grad(DETERMINANT).source()) == [
        "n, m = A.shape",
        "t1 = np.zeros((n, m))",
        "t1[0, 0] = A[1, 1]",
        "t1[1, 1] = A[0, 0]",
        "t1[0, 1] = -A[1, 0]",
        "t1[1, 0] = -A[0, 1]",
        "return t1",
    ]


SUMMED = "(J::(N{n}) -> N{m}) -> (x::RV{m}) -> begin f = k -> exp(x(k)) ; sum(i, where(J(i) < 2, f(J(i)) * x(0))) end"


def test_what_is_zero_but_in_one_row_is_summed_before_it_is_written() -> None:
    d = cd.grad(SUMMED)
    assert "n" not in {domain.name for step in d.plan(value=True).steps if step.rank > 1 for domain in step.domains}
    J, x = np.array([0, 3, 1, 1]), np.array([0.3, 0.2, 0.1, 0.5, 0.7])
    kept = np.exp(x[J[J < 2]])
    value, gradient = d.compile(value=True)(J, x)
    np.testing.assert_allclose(value, x[0] * kept.sum())
    np.testing.assert_allclose(gradient, [x[0] * kept[0] + kept.sum(), x[0] * kept[1:].sum(), 0, 0, 0])


def test_entries_are_added_to_the_array_that_holds_the_others() -> None:
    assert body(cd.grad(BESIDE).source()) == [
        "t1 = 2 * x",
        "t = np.exp(x[0])",
        "t1[0] += t * x[1]",
        "t1[1] += t",
        "return t1",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("mode", [cd.grad, cd.hvp])
def test_values_are_those_of_the_formula(program: str, mode: object, library: Numbers) -> None:
    d = mode(program)  # type: ignore[operator]
    x = sample(program)
    given = [x] if mode is cd.grad else [x, 2 * x**2 + 1]
    plan = d.plan(**{program[1]: x.shape})
    verify(plan)
    assert text(read(text(plan))) == text(plan)
    expected = evaluate(d.term, {})(*given)  # type: ignore[operator]  # a function of all of them
    for found in (d.compile()(*given), library.back(d.compile(library.name)(*map(library.to, given)))):
        np.testing.assert_allclose(found, np.asarray(expected), atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("rest", ["", " + sum(i, x(i)^3)"])
def test_what_is_beyond_the_end_is_left_out(size: int, rest: str, library: Numbers) -> None:
    d = cd.grad(f"(x::RV) -> x(0)^2 + 5 * x(2) {'- x(0) * x(1)' if size > 1 else ''} {rest}")
    assert any(isinstance(s.op, ops.Put) for s in d.plan().steps)
    x = np.random.default_rng(size).normal(size=size)
    expected = np.asarray(evaluate(d.term, {})(x))  # type: ignore[operator]
    for found in (d.compile()(x), library.back(d.compile(library.name)(library.to(x)))):
        np.testing.assert_allclose(found, expected, atol=1e-12)


TERMS = [
    "delta(i, {c}, {a})",
    "delta({c}, j, {a})",
    "delta(i, {c}, delta(j, {d}, {a}))",
    "A(i, j)",
    "delta(i, {c}, x(j))",
]
VALUES = ["1", "x(0)", "-3 * x(0)^2", "exp(x(0))"]


@st.composite
def sums(draw: st.DrawFn) -> str:
    """A matrix as a sum of terms that are zero but at constants, and perhaps of others."""
    numbers = st.integers(0, 3)
    terms = [
        draw(st.sampled_from(TERMS)).format(c=draw(numbers), d=draw(numbers), a=draw(st.sampled_from(VALUES)))
        for _ in range(draw(st.integers(1, 5)))
    ]
    scale = draw(st.sampled_from(["", "x(0) * ", "-2 * "]))
    return f"{scale}({' + '.join(terms)})"


@pytest.mark.slow
@given(sums(), st.integers(1, 5), st.integers(1, 4))
@settings(max_examples=20, deadline=None)
def test_any_sum_of_entries_is_what_it_means(matrix: str, n: int, m: int) -> None:
    objective = f"sum((i::N{{n}}, j::N{{m}}), B(i, j) * A(i, j) * ({matrix}))"
    d = cd.grad(f"(B::RM{{n, m}}, x::RV{{m}}) -> (A::RM{{n, m}}) -> {objective}")
    rng = np.random.default_rng(n * m)
    B, x, A = rng.normal(size=(n, m)), rng.normal(size=m), rng.normal(size=(n, m))
    right = evaluate(d.term, {})(B, x)(A)  # type: ignore[operator]
    np.testing.assert_allclose(d.compile()(B, x, A), np.asarray(right), atol=1e-10)


TURNED = [
    "exp(delta(k, 0, x(j, i)) - delta(k, 1, y(i, j)))",
    "exp(2 * delta(k, 2, y(i, j) * x(j, i)) - delta(k, 1, y(i, j)))",
    "softmax(l::N{3}, delta(l, 0, x(j, i)) - 3 * delta(l, 1, y(i, j)))(k)",
]


@pytest.mark.parametrize("objective", TURNED)
@pytest.mark.parametrize("n", [2, 3])
def test_a_number_times_a_transpose_is_written_in_its_order(objective: str, n: int, library: Numbers) -> None:
    d = cd.simplified(f"(x::RM{{3, n}}, y::RM{{n, 3}}) -> (k::N{{3}}, j::N{{3}}, i::N{{n}}) -> {objective}")
    x, y = (np.random.default_rng(n).normal(size=shape) for shape in ((3, n), (n, 3)))
    given = dict(zip(d.term.params, (x, y), strict=True))
    expected = evaluate(d.term.body, given)
    found = d.compile(library.name)(library.to(x), library.to(y))
    np.testing.assert_allclose(library.back(found), expected, atol=1e-12)


def test_a_part_with_the_axes_of_another_one_is_refused() -> None:
    tensor = "(x::RM{n, m}) -> (k::N{3}, i, j) -> exp(delta(k, 1, x(i, j)) + delta(k, 0, x(i, j)^2))"
    plan = cd.simplified(tensor).plan()
    wrong = text(plan).replace("places=((1, 2), (1, 2))", "places=((1, 2), (2, 1))")
    assert wrong != text(plan)
    with pytest.raises(PlanError, match="other axes than the part"):
        verify(read(wrong))


def test_a_part_that_has_a_fixed_axis_is_refused() -> None:
    plan = cd.grad(DETERMINANT).plan(A=(3, 3))
    wrong = text(plan).replace("places=((), (), (), ())", "places=((), (), ())")
    with pytest.raises(PlanError, match="its labels"):
        verify(read(wrong))


@pytest.mark.slow
def test_a_loop_over_what_is_not_constant_writes_into_each_part() -> None:
    program = "(W::RM) -> pullback((X::RM) -> sum(i, exp(X(i, 0) * W(i, 1)) * sin(X(i, 1) + X(i, 2) * W(i, 0))))"
    d = cd.grad(program)
    W, X = np.random.default_rng(3).normal(size=(2, 7, 3))
    scope: dict[str, object] = {}
    source = d.source(memory=200_000, W=(4000, 3), X=(4000, 3))
    assert "for " in source and "np.where" not in source
    exec(source, scope)
    np.testing.assert_allclose(scope["gradient"](W, X), d.compile()(W, X), rtol=1e-12)  # type: ignore[operator]
