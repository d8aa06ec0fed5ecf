"""What stands at several places of a range or a ring has one name."""

from functools import cache

import numpy as np
import pytest

import combdiff as cd
from tests.thinned import thinned

grad = cache(cd.grad)
hvp = cache(cd.hvp)

RING = "@domain Z begin base = I; periodic = true end\n"
FORMS = {
    "links of a lattice": (
        RING
        + "(t::(Z, Z) -> R, s::(Z, Z) -> R) -> sum((i::Z, j::Z), cos(t(i, j) + s(i + 1, j) - t(i, j + 1) - s(i, j)))",
        (
            "Q = (i::Z, j::Z) -> sin(t(i, j) + s(i + 1, j) - t(i, j + 1) - s(i, j))",
            "((i::Z, j::Z) -> Q(i, j - 1) - Q(i, j), (i::Z, j::Z) -> Q(i, j) - Q(i - 1, j))",
        ),
    ),
    "length of a closed curve": (
        RING + "(x::(Z) -> R, y::(Z) -> R) -> sum(i::Z, sqrt((x(i + 1) - x(i))^2 + (y(i + 1) - y(i))^2))",
        ("w = (i::Z) -> (x(i + 1) - x(i)) / v(i)", "((i::Z) -> w(i - 1) - w(i), (i::Z) -> z(i - 1) - z(i))"),
    ),
    "a definition that the derivative has lost": (
        RING + "(x::(Z) -> R, y::(Z) -> R) -> begin r = i -> sqrt((x(i) - x(i - 1))^2 + (y(i) - y(i - 1))^2)\n"
        "sum(i::Z, r(i)) end",
        ("r = (i::Z) -> sqrt((x(i) - x(i - 1))^2 + (y(i) - y(i - 1))^2)", "/ r(i + 1)"),
    ),
    "an open chain": (
        "(t::RV{n}) -> sum(i, i < n - 1, sqrt(1 + (t(i) - t(i + 1))^2))",
        (
            "v = (i::N{n - 1}) -> (t(i) - t(i + 1)) / sqrt(1 + (t(i) - t(i + 1))^2)",
            "(i::N{n}) -> where(i < n - 1, v(i)) - where(1 <= i, v(i - 1))",
        ),
    ),
    "one value more than links": (
        "(t::RV{n + 1}) -> sum(i::N{n}, sqrt(1 + (t(i) - t(i + 1))^2))",
        ("v = (i::N{n}) ->", "(i::N{n + 1}) -> where(i < n, v(i)) - where(1 <= i, v(i - 1))"),
    ),
    "total variation": (
        "(u::RM{n + 1, m + 1}, e::R) -> sum((i::N{n}, j::N{m}), "
        "sqrt(e + (u(i + 1, j) - u(i, j))^2 + (u(i, j + 1) - u(i, j))^2))",
        ("Z = (i::N{n}, j::N{m}) -> sqrt(", "/ Z(i - 1, j))", "/ Z(i, j - 1))", "1 / Z(i, j))"),
    ),
    "an adjoint of a diffusion": (
        RING + "(k::(Z, Z) -> R) -> (u::(Z, Z) -> R) -> sum((i::Z, j::Z), iterate((v, s) -> (i::Z, j::Z) -> v(i, j) + "
        "k(i, j) * (v(i + 1, j) + v(i - 1, j) + v(i, j + 1) + v(i, j - 1) - 4 * v(i, j)), u, 4)(i, j)^2)",
        ("Q = (i::Z, j::Z) -> k(i, j) * v_bar(i, j)", "Q(i - 1, j) + Q(i + 1, j) + Q(i, j - 1) + Q(i, j + 1) - 4 * Q("),
    ),
    # factors are collected, and a difference that is short has no name
    "a sum of squares": (
        RING + "(u::(Z) -> R) -> sum(i::Z, (u(i + 1) - u(i))^2)",
        ("(i::Z) -> 4 * u(i) - 2 * u(i - 1) - 2 * u(i + 1)",),
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_parts_at_several_places_have_one_name(name: str) -> None:
    program, expected = FORMS[name]
    d = grad(program)
    text = " ".join(str(d).split()).replace("( ", "(").replace(" )", ")")
    assert all(part in text for part in expected), text
    assert d.check()


@pytest.mark.slow
@pytest.mark.parametrize("name", thinned(FORMS, 2))
def test_a_hessian_product_with_such_names_is_right(name: str) -> None:
    assert hvp(FORMS[name][0]).check()


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
def test_a_range_that_is_shorter_may_be_empty(n: int) -> None:
    f = grad(FORMS["an open chain"][0]).compile()
    t = np.random.default_rng(n).normal(size=n)
    d = t[:-1] - t[1:]
    slope = d / np.sqrt(1 + d**2)
    np.testing.assert_allclose(f(t), np.pad(slope, (0, 1)) - np.pad(slope, (1, 0)), atol=1e-14)


def test_definitions_of_the_program_keep_their_names() -> None:
    """Two that differ by a step stay, however one of them is read."""
    d = cd.grad(
        RING + "(x::(Z) -> R) -> begin a = i -> exp(x(i + 1) - x(i)); b = i -> exp(x(i) - x(i - 1))\n"
        "sum(i::Z, a(i)^2 + a(i) * b(i) + sin(b(i)) * exp(x(i + 2) - x(i + 1))^3) end"
    )
    assert str(d).count("exp(") == 2
    assert "a = (i::Z) -> exp(x(i + 1) - x(i))" in str(d) and "b = (i::Z) -> exp(x(i) - x(i - 1))" in str(d)
    assert d.check()


def test_a_value_that_is_another_one_a_step_on_is_left_out() -> None:
    d = cd.grad(
        RING + "(s::R) -> (a::(Z) -> R) -> sum(i::Z, a(i) * a(i + 1) * sqrt(s - a(i)^2) * sqrt(s - a(i + 1)^2))"
    )
    assert str(d).count("sqrt(") == 1
    assert d.check()


@pytest.mark.parametrize("sizes", [(1, 1), (1, 3), (2, 2), (3, 1), (3, 5), (7, 5)])
def test_an_array_that_is_shorter_along_two_axes_is_read_in_slices(sizes: tuple[int, int]) -> None:
    d = cd.simplified(
        "(Q::RM{n - 1, m - 1}, k::RM{n, m}) -> (i::N{n}, j::N{m}) -> "
        "where(1 <= i and j < m - 1, k(i, j) / Q(i - 1, j)^3) + where(i < n - 1 and 1 <= j, k(i, j) * Q(i, j - 1))"
    )
    source = d.source()
    assert "arange" not in source and "np.where" not in source
    rng = np.random.default_rng(7)
    k, Q = rng.uniform(1, 2, sizes), rng.uniform(1, 2, (sizes[0] - 1, sizes[1] - 1))
    expected = np.zeros(sizes)
    expected[1:, :-1] += k[1:, :-1] / Q**3
    expected[:-1, 1:] += k[:-1, 1:] * Q
    np.testing.assert_allclose(d.compile()(Q, k), expected)


def test_a_value_that_its_range_keeps_where_it_is_read_has_no_condition() -> None:
    source = hvp(FORMS["total variation"][0]).source()
    assert "np.where" not in source and "arange" not in source
