"""Sizes in indices: `x(n - 1)` is the last entry, `x(n - 1 - i)` reads backwards, `y(i - n)` begins behind n places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.errors import ArrayError
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.meaning.evaluate import evaluate
from combdiff.terms.terms import Lam
from tests.promises import assert_holds, assert_libraries_agree, differences
from tests.reading_back import assert_reads_back

Value = Callable[..., Any]

PROGRAMS: dict[str, tuple[str, Value, int]] = {
    "the last entry": ("(x::RV{n}) -> x(n - 1)^3 * x(0)", lambda x: x[-1] ** 3 * x[0], 1),
    "the end of a beam": (
        "(u::RV{n}) -> (u(n - 1) - 2 * u(n - 2) + u(n - 3))^2 + u(0)^2 + sum(i, i + 1 < n, (u(i + 1) - u(i))^2)",
        lambda u: (u[-1] - 2 * u[-2] + u[-3]) ** 2 + u[0] ** 2 + sum((u[1:] - u[:-1]) ** 2),
        3,
    ),
    "backwards": ("(x::RV{n}) -> sum(i, x(i)^2 * x(n - 1 - i))", lambda x: sum(x**2 * x[::-1]), 1),
    "backwards, complex": (
        "(x::CV{n}) -> sum(i, abs2(x(i) - im * x(n - 1 - i)))",
        lambda x: sum(abs(x - 1j * x[::-1]) ** 2),
        1,
    ),
    "one short": (
        "(x::RV{n}) -> sum(i, i < n - 1, x(i)^2 * x(n - 2 - i))",
        lambda x: sum(x[:-1] ** 2 * x[:-1][::-1]),
        1,
    ),
    "both ways": (
        "(A::RM{n, m}) -> sum((i, j), A(i, j)^2 * A(n - 1 - i, m - 1 - j))",
        lambda A: np.sum(A**2 * A[::-1, ::-1]),
        1,
    ),
    "across": ("(A::RM{n, n}) -> sum(i, A(i, n - 1 - i))^2", lambda A: np.trace(A[:, ::-1]) ** 2, 1),
    "the last row and column": (
        "(A::RM{n, n}) -> sum(i, A(i, n - 1)^2 * A(n - 1, i))",
        lambda A: np.sum(A[:, -1] ** 2 * A[-1]),
        1,
    ),
    "corners": ("(A::RM{n, m}) -> A(n - 1, m - 1) * A(0, m - 1)", lambda A: A[-1, -1] * A[0, -1], 1),
    "behind others": (
        "(x::RV{n}, w::RV{k}) -> sum(i, w(i) * where(n <= i < 2 * n, x(i - n)^2))",
        lambda x, w: sum(w[i] * x[i - len(x)] ** 2 for i in range(len(w)) if len(x) <= i < 2 * len(x)),
        1,
    ),
    "the size of another": (
        "(x::RV{n}, y::RV{m}) -> where(m <= n, x(m - 1)^2 * y(0))",
        lambda x, y: x[len(y) - 1] ** 2 * y[0] if len(y) <= len(x) else 0.0,
        1,
    ),
    "a convolution": (
        "(x::RV{n}) -> sum(i, i <= 4, x(i) * x(4 - i)^2)",
        lambda x: sum(x[:5] * x[:5][::-1] ** 2),
        5,
    ),
    "of two lengths": (
        "(x::RV{n}, w::RV{k}) -> sum(i, i <= 2, w(i) * x(2 - i)^2)",
        lambda x, w: sum(w[i] * x[2 - i] ** 2 for i in range(3)),
        3,
    ),
    "Horner's order": (
        "(c::RV{n}) -> sum(i, c(n - 1 - i)^2 * (1 / 2)^i)",
        lambda c: sum(c[len(c) - 1 - i] ** 2 / 2**i for i in range(len(c))),
        1,
    ),
    "upwind": (
        "(u::RV{n}) -> sum(i, where(i == 0, u(0) - u(n - 1), u(i) - u(i - 1))^3)",
        lambda u: sum((u - np.roll(u, 1)) ** 3),
        1,
    ),
    "the last value of a domain": (
        "@domain K begin base = I; lower = 0; upper = 2 end\n(x::(K) -> R, w::RV{n}) -> x(size(K) - 1)^2 * w(0)",
        lambda x, w: x[2] ** 2 * w[0],
        1,
    ),
    "a ring": (
        "@domain Z begin base = I; periodic = true end\n"
        "(x::(Z) -> R) -> sum(i, x(i)^2 * x(size(Z) - 1 - i)) + x(size(Z) - 1)",
        lambda x: sum(x**2 * x[::-1]) + x[-1],
        1,
    ),
    "a polynomial's coefficients": (
        "(c::RV{n}) -> sum(i, (n - 1 - i) * c(i)^2)",
        lambda c: sum((len(c) - 1 - i) * c[i] ** 2 for i in range(len(c))),
        1,
    ),
}
"""Programs, what they mean, and the least size that they have a value for."""


def arguments(name: str, size: int) -> list[Any]:
    program = PROGRAMS[name][0]
    rng = np.random.default_rng(size)
    square = (size, size) if "{n, n}" in program else (size, size + 2)
    shapes = {
        "x": (3,) if "(K)" in program else (size,),
        "A": square,
        "w": (3 * size + 1,),
        "y": (6 - size if size < 5 else 3,),
    }
    return [
        rng.normal(size=shapes.get(p, (size,))) + (1j * rng.normal(size=size) if "CV" in program else 0)
        for p in (v.name for v in infer(parse(program)).params)
    ]


@pytest.mark.sampled
@pytest.mark.parametrize("size", [1, 5, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 3, 7))])
@pytest.mark.parametrize("name", PROGRAMS)
def test_value_and_gradient_are_those_of_slices(name: str, size: int) -> None:
    program, meant, least = PROGRAMS[name]
    given = arguments(name, size)
    f = cd.grad(program).compile(value=True)
    if size < least:
        with pytest.raises(ArrayError, match=r"out of range|reads entry"):
            f(*given)
        return
    value, *gradients = f(*given)
    np.testing.assert_allclose(value, meant(*given), rtol=1e-12, atol=1e-14)
    for found, expected in zip(gradients, differences(meant, given), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)
    term = infer(parse(program))
    assert isinstance(term, Lam)
    np.testing.assert_allclose(
        evaluate(term.body, dict(zip(term.params, given, strict=True))), meant(*given), rtol=1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_checked_and_read_back(name: str) -> None:
    for mode in (cd.grad, cd.hvp):
        d = mode(PROGRAMS[name][0])
        assert_holds(d, alike="m <= n" not in d.text)


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("backwards", "2 * x(i) * x(n - 1 - i) + x(n - 1 - i)^2"),
        ("a convolution", "where(i <= 4, x(4 - i)^2 + 2 * x(i) * x(4 - i))"),
        ("Horner's order", "2 * (1/2)^(n - 1 - i) * c(i)"),
        ("one short", "where(i < n - 1, 2 * x(i) * x(n - 2 - i) + x(n - 2 - i)^2)"),
        ("behind others", "2 * where(i + n < k, x(i) * w(i + n))"),
        ("the last row and column", "delta(i, n - 1, "),
    ],
)
def test_no_sum_is_left_over_what_one_index_is(name: str, result: str) -> None:
    assert result in str(cd.grad(PROGRAMS[name][0]))


@pytest.mark.slow
def test_code_is_made_of_views() -> None:
    assert "x[::-1]" in cd.grad(PROGRAMS["backwards"][0]).source()
    source = cd.grad(PROGRAMS["the end of a beam"][0]).source()
    assert all(f"u[{place}]" in source for place in (-1, -2, -3))
    assert "[-2] += " in source and "[-3] += " in source
    assert "A[:, ::-1].trace()" in cd.grad(PROGRAMS["across"][0]).source()


@pytest.mark.sampled
@pytest.mark.parametrize("backend", ["jax", "torch", "dask"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_libraries_agree(name: str, backend: str) -> None:
    for size in (5, 6):
        assert_libraries_agree(cd.grad(PROGRAMS[name][0]), backend, arguments(name, size))


@pytest.mark.slow
def test_an_entry_that_is_not_there_is_refused_with_its_place() -> None:
    f = cd.grad("(x::RV{n}) -> x(n - 3)^2").compile()
    with pytest.raises(ArrayError, match=r"the index 2 - 3 is out of range in slot 1 of x, which has 2 values"):
        f(np.ones(2))
    # the gradient of what is linear is 0 where there is no such entry
    np.testing.assert_array_equal(cd.grad("(x::RV{n}) -> x(n - 3)").compile()(np.ones(2)), [0, 0])
    np.testing.assert_array_equal(cd.grad("(x::RV{n}) -> x(2)").compile()(np.ones(2)), [0, 0])
    for program in ("(c::RV) -> (x::RV{n}) -> ", "(x::RV{n}, c::RV{n}) -> "):
        with pytest.raises(ArrayError, match="the program reads entry 2 of a slot of the size n, which has 2 values"):
            cd.grad(program + "sum(i, i <= 2, c(i) * x(2 - i))").compile()(np.ones(2), np.ones(2))


def test_first_and_last_entry_may_be_one() -> None:
    f = cd.grad("(x::RV{n}) -> 2 * x(n - 1) + 3 * x(0) + 5 * x(n - 2)").compile()
    np.testing.assert_array_equal(f(np.ones(2)), [8, 2])
    np.testing.assert_array_equal(f(np.ones(3)), [3, 5, 2])


def test_other_notations_know_the_size() -> None:
    d = cd.grad("(x::RV{n}) -> sum(i, x(i) * x(n - 1 - i))")
    assert "2 x_{n-1-i}" in d.latex()
    assert "2*x[-i + n - 1]" in str(d.sympy())


@pytest.mark.slow
def test_a_part_that_exists_under_a_condition_only_is_named_under_it() -> None:
    d = cd.grad("(A::RM{m, n}, w::RV{n}) -> sum(i, w(i) * where(1 <= i, 1 / sum(k, A(k, i - 1)^2)^2))")
    assert "v = (i::N{n}) -> sum(k, where(1 <= i, A(k, i - 1)^2))" in str(d)
    assert d.check()
    assert_reads_back(d.term)
