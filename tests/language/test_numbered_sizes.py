"""Sizes that are numbers: `RM{n, 3}`, `N{3}`, loops of so many steps."""

import numpy as np
import pytest

import combdiff as cd

PROGRAMS = {
    "(r::RM{n, 3}) -> sum((i, c), r(i, c)^3)": "(r::RM{n, 3}) -> (i, c) -> 3 * r(i, c)^2",
    "(x::RV{3}) -> mean(c, x(c)^2)": "(x::RV{3}) -> c -> 2/3 * x(c)",
    "(x::RM{3, 4}) -> mean((c, d), x(c, d)^2)": "(x::RM{3, 4}) -> (c, d) -> 1/6 * x(c, d)",
    "(A::Sym{3}) -> (x::RV{3}) -> x' * A * x": "(A::Sym{3}) -> (x::RV{3}) -> i -> 2 * sum(j, A(i, j) * x(j))",
    "(x::RV{1}) -> x(0)^2": "(x::RV{1}) -> (d::N{1}) -> delta(0, d, 2 * x(0))",
    "(J::(N{e}) -> N{4}) -> (x::RV{4}) -> sum(e, x(J(e))^2)": (
        "(J::(N{e}) -> N{4}) -> (x::RV{4}) -> (d::N{4}) -> 2 * sum(e, delta(J(e), d, x(J(e))))"
    ),
    "(x::R) -> x^2 * sum(c::N{3}, 1)": "(x::R) -> 6 * x",
    "(x::RV{03}) -> sum(c, x(c))": "(x::RV{3}) -> (c::N{3}) -> 1",
}


@pytest.mark.parametrize("text", PROGRAMS)
def test_a_size_may_be_a_number(text: str) -> None:
    d = cd.grad(text)
    assert str(d) == PROGRAMS[text]
    assert d.check()


def test_a_result_reads_back() -> None:
    text = "(m::RV{n}) -> (r::RM{n, 3}) -> sum((i, j), where(i < j, m(i) * m(j) / sqrt(sum(c, (r(i, c) - r(j, c))^2))))"
    gradient = str(cd.grad(text))
    assert str(cd.simplified(gradient)) == gradient


def test_the_gradient_of_positions_is_that_of_loops() -> None:
    f = cd.grad("(r::RM{n, 3}) -> sum((i, j), where(i < j, 1 / sqrt(sum(c, (r(i, c) - r(j, c))^2))))").compile()
    for n in (1, 2, 5):
        r = np.random.default_rng(n).normal(size=(n, 3))
        wanted = np.zeros((n, 3))
        for i in range(n):
            for j in range(n):
                if i != j:
                    wanted[i] -= (r[i] - r[j]) / np.linalg.norm(r[i] - r[j]) ** 3
        assert np.allclose(f(r), wanted, rtol=1e-12)


def test_fewer_values_of_a_longer_slot() -> None:
    d = cd.grad("(x::RV{5}) -> sum(c::N{3}, x(c)^2)")
    assert np.array_equal(d.compile()(np.arange(5.0)), [0, 2, 4, 0, 0])


def test_steps_of_a_loop_are_counted_by_a_number() -> None:
    d = cd.grad("(A::RM{n, n}) -> (x::RV{n}) -> sum(i, iterate((v, t) -> i -> sum(j, A(i, j) * v(j)), x, 3)(i))")
    assert "@domain" not in str(d)
    text = str(cd.grad("(x::R) -> iterate((s, t) -> s * sin(x + t), 1, 20)"))
    assert "t::N{20}" in text
    assert str(cd.simplified(text)).count("N{20}") == text.count("N{20}")


def test_an_array_of_another_size_is_an_error() -> None:
    f = cd.grad("(b::RV{3}) -> sum(c, b(c)^2)").compile()
    with pytest.raises(cd.ArrayError, match="slot 1 of b has 4 values, but the program says 3"):
        f(np.ones(4))


def test_formulas_write_the_number() -> None:
    d = cd.grad("(x::RV{5}) -> sum((c::N{3}, k::N{4}), x(c)^2 * x(k))")
    assert "<3" in d.latex()
    assert "mathrm{3}" not in d.latex()
    assert cd.grad("(A::RM{3, 3}, x::RV{3}) -> x' * A * x").latex(form="matrix").endswith(r"(A + A^{\mathsf{T}}) x)")


WRONG = {
    "(x::RV{0}) -> sum(x)": "a size is a whole number, at least 1, not 0",
    "(x::RV{1.5}) -> sum(x)": "a size is a whole number, at least 1, not 1.5",
    "(x::RV{2n}) -> sum(x)": "a size is a name",
    "(x::RV{1234567890}) -> sum(x)": "a size has at most 9 digits",
    "(x::RV{n + 1234567890}) -> sum(x)": "a size has at most 9 digits",
    "(x::RV{n + 1.5}) -> sum(x)": "a size is n and a whole number more or less, not 1.5",
    "(x::RV{3}) -> x(3)": "3 may leave the range of slot 1 of x",
    "(r::RM{n, 3}, q::RM{m, k}) -> sum((i, c, j), r(i, c) * q(j, c))": "ranges over N{3}, but slot 2 of q over N{k}",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_size_is_told(text: str) -> None:
    with pytest.raises(cd.LanguageError) as found:
        cd.grad(text)
    assert WRONG[text] in str(found.value)
    assert "remedy" in str(found.value)
