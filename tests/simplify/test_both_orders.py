"""A sum over pairs i < j has the derivative of the sum over i != j, in one term."""

import numpy as np
import pytest

import combdiff as cd

PAIRS = {
    "(x::RV) -> sum((i, j), where(i < j, exp(x(i) * x(j))))": "i -> sum(j, x(j) * where(i != j, exp(x(i) * x(j))))",
    "(x::RV) -> sum((i, j), where(i < j, 1 / (x(i) - x(j))^2))": "i -> -2 * sum(j, where(i != j, 1 / (x(i) - x(j))^3))",
    "(x::RV) -> sum((i, j), where(j > i, abs(x(i) - x(j))))": "i -> sum(j, sign(x(i) - x(j)))",
    "(x::RM{n, 3}) -> sum((i, j), where(i < j, 1 / sqrt(sum(c, (x(i, c) - x(j, c))^2))))": (
        "(i, c) ->\n    -sum(j, (x(i, c) - x(j, c)) * where(i != j, 1 / sqrt(sum(c1, (x(i, c1) - x(j, c1))^2))^3))"
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize("text", PAIRS)
def test_both_orders_of_a_pair_are_one_term(text: str) -> None:
    d = cd.grad(text)
    assert str(d) == f"{text.partition(' -> ')[0]} -> {PAIRS[text]}"
    assert d.check()


APART = {
    # another number under each order
    "(x::RV{n}) -> (i::N{n}) -> sum(j, where(i < j, x(j))) + 2 * sum(j, where(j < i, x(j)))": 2,
    # another value under each order
    "(x::RV{n}) -> (i::N{n}) -> sum(j, where(i < j, x(j))) + sum(j, where(j < i, x(j)^2))": 2,
    # the matrix is not symmetric
    "(J::RM{n, n}, x::RV{n}) -> i -> sum(j, where(i < j, J(i, j) * x(j))) + sum(j, where(j < i, J(j, i) * x(j)))": 2,
    # one order twice, which is one condition
    "(x::RV{n}) -> (i::N{n}) -> sum(j, where(i < j, x(j))) + sum(j, where(i < j, x(j)^2))": 1,
    "(x::RV{n}) -> (i::N{n}) -> sum(j, where(i < j, x(j))) + sum(j, where(j < i, x(j)))": 1,
}


@pytest.mark.parametrize("text", APART)
def test_only_what_is_equal_is_put_together(text: str) -> None:
    d = cd.simplified(text)
    assert str(d).count("where(") == APART[text]
    assert d.check()


LENNARD_JONES = """({} -> (r::RM{{n, 3}}) -> begin
    d = (i, j) -> sqrt(sum(c, (r(i, c) - r(j, c))^2))
    sum((i, j), where(i < j, 4 * eps(i, j) * ((s(i, j) / d(i, j))^12 - (s(i, j) / d(i, j))^6)))
end"""


@pytest.mark.slow
def test_a_cotangent_of_one_order_is_widened_if_it_is_symmetric() -> None:
    d = cd.grad(LENNARD_JONES.format("eps::Sym{n}, s::Sym{n})"))
    assert "where(i != j" in str(d)
    assert "i < j" not in str(d)
    assert d.check()


@pytest.mark.sampled
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_a_cotangent_of_one_order_stays_one_if_it_is_not_symmetric(n: int) -> None:
    d = cd.grad(LENNARD_JONES.format("eps::RM{n, n}, s::RM{n, n})"))
    assert "!=" not in str(d)
    rng = np.random.default_rng(n)
    eps, s, r = rng.uniform(1, 2, (n, n)), rng.uniform(1, 2, (n, n)), rng.normal(size=(n, 3)) * 3
    wanted = np.zeros((n, 3))
    for i in range(n):
        for j in range(i + 1, n):
            apart = r[i] - r[j]
            squared = apart @ apart
            u = (s[i, j] ** 2 / squared) ** 3
            wanted[i] -= 24 * eps[i, j] * (2 * u**2 - u) * apart / squared
            wanted[j] += 24 * eps[i, j] * (2 * u**2 - u) * apart / squared
    assert np.allclose(d.compile()(eps, s, r), wanted, rtol=1e-10, atol=1e-12)
