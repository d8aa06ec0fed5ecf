"""Sizes `n + 1` and `n - 1`: arrays that are longer or shorter than others, and numbers of steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.errors import ArrayError, LanguageError

Plain = Callable[..., float]


def _ends(x: Any, y: Any) -> float:
    return float(sum(x[i] * (y[i + 1] - y[i]) ** 2 for i in range(len(x))))


def _steps(x: Any, y: Any) -> float:
    s = 1.0
    for t in range(len(x) + 1):
        s = np.sin(s) + y[t]
    return float(s)


def _states(x: Any, y: Any) -> float:
    states = [1.0]
    for t in range(len(x)):
        states.append(states[-1] * x[t])
    return float(sum((h - y[t]) ** 2 for t, h in enumerate(states)))


def _longer(x: Any, y: Any) -> float:
    states = [1.0]
    for t in range(len(y)):
        states.append(np.sin(states[-1]) * y[t])
    return float(sum(h * h for h in states) + sum(states[t] * y[t] for t in range(len(y))))


PROGRAMS: dict[str, tuple[str, Plain]] = {
    "differences": ("sum(i::N{n}, x(i) * (y(i + 1) - y(i))^2)", _ends),
    "all entries": ("sum(i, exp(y(i)))", lambda x, y: np.exp(y).sum()),
    "a mean": ("mean(i, y(i)^2)", lambda x, y: (y**2).mean()),
    "the last entry": ("n * y(n)", lambda x, y: len(x) * y[-1]),
    "backwards": ("sum(i, y(i) * y(n - i))", lambda x, y: y @ y[::-1]),
    "zeros before": ("sum(i, y(i) * where(1 <= i, x(i - 1)))", lambda x, y: y[1:] @ x),
    "zeros behind": ("sum(i, y(i)^2 * where(i < n, x(i)))", lambda x, y: y[:-1] ** 2 @ x),
    "a largest": ("maximum(i::N{n + 1}, where(i < n, x(i)) + y(i))", lambda x, y: (y + np.append(x, 0)).max()),
    "steps": ("iterate((s, t) -> sin(s) + y(t), 1, n + 1)", _steps),
    "states": ("begin h = scan((s, t) -> s * x(t), 1, n); sum(t, (h(t) - y(t))^2) end", _states),
    "states of more steps": (
        "begin h = scan((s, t) -> sin(s) * y(t), 1, n + 1); sum(t, h(t)^2) + sum(t::N{n + 1}, h(t) * y(t)) end",
        _longer,
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_longer_array_is_what_its_entries_say(name: str, size: int) -> None:
    text, plain = PROGRAMS[name]
    rng = np.random.default_rng(size)
    x, y = rng.normal(size=size), rng.normal(size=size + 1)
    program = f"(x::RV{{n}}, y::RV{{n + 1}}) -> {text}"
    value, slopes_x, slopes_y = cd.grad(program).compile(value=True)(x, y)
    assert value == pytest.approx(plain(x, y), rel=1e-12)
    for slopes, array in ((slopes_x, x), (slopes_y, y)):
        assert slopes.shape == array.shape
        for place in range(len(array)):
            step = np.zeros(len(array))
            step[place] = 1e-6
            ends = [plain(x + s * step, y) if array is x else plain(x, y + s * step) for s in (1, -1)]
            assert slopes[place] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6, abs=1e-8)


@pytest.mark.sampled
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_with_longer_arrays_read_back(name: str) -> None:
    d = cd.grad(f"(x::RV{{n}}, y::RV{{n + 1}}) -> {PROGRAMS[name][0]}")
    assert "y::RV{n + 1}" in str(d)
    x, y = np.array([0.4, -1.2, 0.7]), np.array([0.3, 2.0, -0.5, 1.1])
    again = cd.simplified(str(d)).compile()(x, y)
    for one, other in zip(d.compile()(x, y), again, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_second_derivatives_and_jax_agree(name: str) -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    program = f"(x::RV{{n}}, y::RV{{n + 1}}) -> {PROGRAMS[name][0]}"
    assert cd.hvp(program).check()
    d = cd.grad(program)
    x, y = np.array([0.4, -1.2, 0.7]), np.array([0.3, 2.0, -0.5, 1.1])
    for one, other in zip(d.compile()(x, y), d.compile("jax")(x, y), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def test_code_takes_slices_and_no_masks() -> None:
    """An adjoint of y(i + 1) is written where it belongs; a mask would have n (n + 1) entries."""
    source = cd.grad("(x::RV{n}) -> (y::RV{n + 1}) -> sum(i::N{n}, x(i) * (y(i + 1) - y(i))^2)").compile().source
    assert "y[1:] - y[:-1]" in source
    assert "np.where" not in source
    assert "arange" not in source
    loop = cd.grad("(x::RV{n}) -> iterate((s, t) -> s * x(t + 1), 1, n - 1)").compile().source
    assert "np.where" not in loop
    assert "arange" not in loop


def test_a_size_is_read_off_a_longer_array() -> None:
    f = cd.grad("(y::RV{n + 1}) -> n * sum(i::N{n}, y(i) * y(i + 1))").compile(value=True)
    y = np.array([1.0, 2.0, 4.0])
    value, slopes = f(y)
    assert value == 2 * (2 + 8)
    np.testing.assert_array_equal(slopes, [4.0, 10.0, 4.0])


def test_matrices_and_symmetric_ones() -> None:
    rng = np.random.default_rng(1)
    A, x, z = rng.normal(size=(3, 4)), rng.normal(size=3), rng.normal(size=4)
    of_x, of_z = cd.grad("(A::RM{n, n + 1}) -> (x::RV{n}, z::RV{n + 1}) -> x' * A * z").compile()(A, x, z)
    np.testing.assert_allclose(of_x, A @ z)
    np.testing.assert_allclose(of_z, A.T @ x)
    S = rng.normal(size=(4, 4))
    S += S.T
    d = cd.grad("(S::Sym{n + 1}, x::RV{n}) -> (z::RV{n + 1}) -> z' * S * z + sum(i::N{n}, x(i) * z(i))")
    np.testing.assert_allclose(d.compile()(S, x, z), 2 * S @ z + np.append(x, 0))
    assert d.check()


def test_a_shorter_array() -> None:
    d = cd.grad("(y::RV{n - 1}, x::RV{n}) -> sum(i, y(i) * x(i) * x(i + 1))")
    assert str(d).startswith("(y::RV{n - 1}, x::RV{n}) ->")
    x, y = np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0])
    of_y, of_x = d.compile()(y, x)
    np.testing.assert_array_equal(of_y, [2.0, 6.0])
    np.testing.assert_array_equal(of_x, [20.0, 10 + 60, 40.0])


def test_a_number_of_steps_that_is_given() -> None:
    f = cd.simplified("(T::Int) -> (a::R) -> iterate((s, t) -> s + a * t, 0, T + 2)").compile()
    assert f(a=1.0, T=3) == 0 + 1 + 2 + 3 + 4


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((3, 3), r"slot 1 of y \(n \+ 1 = 3\) has 2, but slot 1 of x has 3"),
        ((3, 5), r"slot 1 of y \(n \+ 1 = 5\) has 4, but slot 1 of x has 3"),
        ((0, 0), r"slot 1 of y has 0 values, and n \+ 1 is at least 1"),
    ],
)
def test_arrays_of_other_sizes_are_refused(sizes: tuple[int, int], message: str) -> None:
    f = cd.grad("(x::RV{n}, y::RV{n + 1}) -> sum(i, x(i) * y(i + 1))").compile()
    with pytest.raises(ArrayError, match=message):
        f(np.ones(sizes[0]), np.ones(sizes[1]))


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("(x::RV{n + 1}) -> sum(i::N{n}, x(i + 2))", r"i \+ 2 may leave.*\n(.*\n)*.*takes i to i \+ 1 for i::N{n}"),
        ("(x::RV{n}, y::RV{n + 1}) -> sum(i, x(i) * y(i))", r"index i is used in slots of the sizes n and n \+ 1"),
        ("(x::RV{n}, y::RV{n + 1}) -> sum(i, y(i) * x(i))", r"i may leave the range of slot 1 of x"),
        ("(x::RV{n}, y::RV{n + 1}) -> dot(x, y)", r"slot 1 of y ranges over N{n \+ 1}, but slot 1 of x over N{n}"),
        ("(x::RV{n + 1.5}) -> sum(i, x(i))", r"a size is n and a whole number more or less, not 1.5"),
        ("(x::RV{n + m}) -> sum(i, x(i))", r"a size is a name, a name and a number more or less, or a number"),
        ("(x::RV{n + 1}) -> x(n + 1)", r"n \+ 1 may leave the range of slot 1 of x"),
        ("(x::RV{n + 1}, n::R) -> x(0) * n", r"n is a parameter here and the name of a size elsewhere"),
        ("(x::RV) -> sum(i::N{m + 1}, i < 2, 1.0)", r"no parameter has a slot of the size m"),
    ],
)
def test_wrong_sizes_are_refused_in_words(program: str, message: str) -> None:
    with pytest.raises(LanguageError, match=message):
        cd.grad(program)


def test_a_condition_keeps_an_index_of_another_size_in_range() -> None:
    d = cd.grad("(x::RV{m}, y::RV{n + 1}) -> sum(i::N{m}, x(i) * where(i < n + 1, y(i)))")
    of_x, of_y = d.compile()(np.array([1.0, 2.0, 3.0]), np.array([5.0, 7.0]))
    np.testing.assert_array_equal(of_x, [5.0, 7.0, 0.0])
    np.testing.assert_array_equal(of_y, [1.0, 2.0])
    assert d.check()


@pytest.mark.slow
def test_a_state_that_is_read_at_a_step_of_a_shorter_loop_tells_its_own_size() -> None:
    inner = "l -> iterate((a, m) -> sin(a + A[m]), x(l), n - 1)"
    text = f"(x::RV{{n}}) -> sum(i, iterate((A, j) -> {inner}, (k::N{{n}}) -> 1, 2)(i))"
    for d in (cd.simplified(text), cd.grad(text)):
        assert "(k::N{n}) -> 1" in str(d)
        again = cd.simplified(str(d))
        for n in (1, 2, 3, 5):
            x = np.linspace(0.1, 1.3, n)
            np.testing.assert_allclose(again.compile()(x), d.compile()(x), rtol=1e-12)
