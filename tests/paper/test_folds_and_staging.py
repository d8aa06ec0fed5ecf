"""Smeding and others, *Dual-Numbers Reverse AD for Functional Array Languages*: folds, scans and staging as programs.

Their algorithm has no general fold (section 4.5), their library one with a closed function (section 8), and it takes
loops of known length apart before it differentiates (appendix B). Here a fold is a loop. Values and gradients are held
against loops of Python and their differences.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from tests.promises import differences

SIZES = [1, 2, 3, 5, 7]


@cache
def checked(text: str) -> Any:
    d = cd.grad(text)
    assert d.check()
    return d


def agrees(text: str, objective: Callable[..., Any], *given: Any) -> None:
    value, *slopes = checked(text).compile(value=True)(*given)
    np.testing.assert_allclose(value, objective(*given), rtol=1e-12)
    for slope, expected in zip(slopes, differences(objective, list(given)), strict=True):
        np.testing.assert_allclose(slope, expected, rtol=1e-6, atol=1e-7)


def folded(step: Callable[..., Any], start: Any, *rows: Any) -> Any:
    state = start
    for row in zip(*rows, strict=True):
        state = step(state, *row)
    return state


# --- folds ----------------------------------------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("size", SIZES)
def test_a_fold_with_a_closed_function(size: int) -> None:
    x = np.random.default_rng(size).normal(size=size)
    agrees(
        "(x::RV{n}) -> iterate((s, t) -> sin(s) * x(t) + 1, 1, n)",
        lambda x: folded(lambda s, a: np.sin(s) * a + 1, 1.0, x),
        x,
    )


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_a_fold_whose_function_reads_what_is_varied_outside(size: int) -> None:
    rng = np.random.default_rng(size)
    agrees(
        "(x::RV{n}, w::R, b::RV{n}) -> iterate((s, t) -> tanh(w * s + x(t)) + b(t)^2, w, n)",
        lambda x, w, b: folded(lambda s, a, c: np.tanh(w * s + a) + c**2, w, x, b),
        rng.normal(size=size),
        np.array(0.7),
        rng.normal(size=size),
    )


REDUCTIONS = {
    "sum": ("iterate((s, t) -> s + x(t)^2, 0, n)", "sum(t, x(t)^2)"),
    "product": ("iterate((s, t) -> s * x(t), 1, n)", "prod(t, x(t))"),
    "maximum": ("iterate((s, t) -> max(s, x(t)), -100, n)", "maximum(t, x(t))"),
}


@pytest.mark.sampled
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_reduction_is_a_fold(name: str, size: int) -> None:
    x = np.random.default_rng(size).normal(size=size)
    fold, reduction = (checked(f"(x::RV{{n}}) -> {text}").compile(value=True)(x) for text in REDUCTIONS[name])
    for found, expected in zip(fold, reduction, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_a_fold_of_matrices(size: int) -> None:
    rng = np.random.default_rng(size)
    agrees(
        """(A::(N{m}, N{n}, N{n}) -> R, x::RV{n}) -> begin
  y = iterate((y, t) -> i -> sum(j, A(t, i, j) * y(j)), x, m)
  sum(i, y(i)^2)
end""",
        lambda A, x: (folded(lambda y, B: B @ y, x, A) ** 2).sum(),
        rng.normal(size=(size, 3, 3)),
        rng.normal(size=3),
    )


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_a_fold_in_a_build_is_one_loop_over_all_rows(size: int) -> None:
    text = "(A::RM{m, n}) -> sum(i, iterate((s, t) -> sin(s) * A(i, t) + 1, 1, n)^2)"
    A = np.random.default_rng(size).normal(size=(4, size))
    agrees(text, lambda A: sum(folded(lambda s, a: np.sin(s) * a + 1, 1.0, row) ** 2 for row in A), A)
    assert checked(text).source(value=True).count("    for ") == 2  # forwards, and backwards


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_a_build_in_a_fold(size: int) -> None:
    rng = np.random.default_rng(size)
    agrees(
        """(A::RM{m, n}) -> begin
  v = iterate((v, t) -> j -> cos(v(j)) * A(t, j) + sum(k, A(t, k)), j -> 0, m)
  sum(j, v(j)^2)
end""",
        lambda A: (folded(lambda v, row: np.cos(v) * row + row.sum(), np.zeros(A.shape[1]), A) ** 2).sum(),
        rng.normal(size=(3, size)),
    )


# --- scans ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_a_scan_gives_every_prefix(size: int) -> None:
    rng = np.random.default_rng(size)

    def objective(x: Any, w: Any) -> Any:
        prefixes = [folded(lambda s, a: s * a, 1.0, x[:t]) for t in range(len(x) + 1)]
        return sum(a * b**2 for a, b in zip(w, prefixes[1:], strict=True)) + prefixes[-1]

    agrees(
        "(x::RV{n}, w::RV{n}) -> begin h = scan((s, t) -> s * x(t), 1, n); sum(t::N{n}, w(t) * h(t + 1)^2) + h(n) end",
        objective,
        rng.normal(size=size),
        rng.normal(size=size),
    )


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_a_scan_from_the_right_counts_from_the_end(size: int) -> None:
    rng = np.random.default_rng(size)

    def objective(x: Any, w: Any) -> Any:
        return sum(a * folded(lambda s, b: np.sin(s) + b, 0.0, x[t:][::-1]) for t, a in enumerate(w))

    agrees(
        """(x::RV{n}, w::RV{n}) -> begin
  h = scan((s, t) -> sin(s) + x(n - 1 - t), 0, n)
  sum(t::N{n}, w(t) * h(n - t))
end""",
        objective,
        rng.normal(size=size),
        rng.normal(size=size),
    )


def test_a_running_sum_is_a_scan() -> None:
    x = np.random.default_rng(0).normal(size=6)
    scan = cd.simplified("(x::RV{n}) -> begin h = scan((s, t) -> s + x(t), 0, n); (t::N{n}) -> h(t + 1) end")
    np.testing.assert_allclose(scan.compile()(x), np.cumsum(x), rtol=1e-14)


def test_the_gradient_of_a_fold_does_not_grow_with_its_length() -> None:
    d = checked("(x::RV{n}) -> iterate((s, t) -> sin(s) * x(t) + 1, 1, n)")
    plans = [d.plan(x=(n,)) for n in (10, 1000)]
    assert len(plans[0].steps) == len(plans[1].steps)
    assert max(map(plans[1].entries, plans[1].steps)) == 1000


# --- appendix B: static control flow --------------------------------------------------------------------------------


def layers(count: int) -> str:
    """A program that Python writes, a definition for each layer."""
    lines = [f"  h{n + 1} = i -> tanh(sum(j, W(i, j) * h{n}(j)) + b(i))" for n in range(count)]
    return "\n".join(
        ["(W::RM{n, n}, b::RV{n}) -> begin", "  h0 = i -> b(i)", *lines, f"  sum(i, h{count}(i)^2)", "end"]
    )


LOOPED = """(T::Int) -> (W::RM{n, n}, b::RV{n}) -> begin
  h = iterate((h, t) -> i -> tanh(sum(j, W(i, j) * h(j)) + b(i)), i -> b(i), T)
  sum(i, h(i)^2)
end"""


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_layers_that_python_writes_are_the_loop_over_them(count: int) -> None:
    rng = np.random.default_rng(count)
    W, b = rng.normal(size=(3, 3)), rng.normal(size=3)
    staged = checked(layers(count)).compile(value=True)(W, b)
    looped = cd.grad(LOOPED).compile(value=True)(W, b, T=count)
    for found, expected in zip(looped, staged, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_program_is_put_together_from_parts_that_python_chooses() -> None:
    parts = {"linear": "u", "smooth": "tanh(u)", "sharp": "relu(u)"}
    x = np.array([-0.4, 0.7, 1.2])
    found = {
        name: cd.grad(f"(x::RV) -> begin f = (u::R) -> {part}; sum(i, f(x(i))^2) end").compile()(x)
        for name, part in parts.items()
    }
    np.testing.assert_allclose(found["linear"], 2 * x)
    np.testing.assert_allclose(found["smooth"], 2 * np.tanh(x) / np.cosh(x) ** 2)
    np.testing.assert_allclose(found["sharp"], 2 * np.maximum(x, 0))


# --- appendix B: dynamic control flow -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_a_conditional_in_a_step_takes_one_branch(size: int) -> None:
    x = np.random.default_rng(size).normal(size=size)
    agrees(
        "(x::RV{n}) -> iterate((s, t) -> where(0 < s, s * x(t) + x(t)^2, sqrt(1 - s) + x(t)), 1/2, n)",
        lambda x: folded(lambda s, a: s * a + a**2 if s > 0 else np.sqrt(1 - s) + a, 0.5, x),
        x,
    )


@pytest.mark.sampled
@pytest.mark.parametrize("bound", [0.1, 5.0, 40.0, 1e6])
def test_a_loop_whose_length_the_numbers_decide(bound: float) -> None:
    # which the paper's algorithm does not take
    def objective(x: Any, bound: Any) -> Any:
        s = x
        for _ in range(20):
            if s >= bound:
                break
            s = s * x + 1
        return s

    f = cd.grad("(T::Int, c::R) -> (x::R) -> iterate((s, t) -> s * x + 1, x, T, s -> s < c)").compile(value=True)
    value, slope = f(bound, 1.3, T=20)
    np.testing.assert_allclose(value, objective(1.3, bound), rtol=1e-13)
    (expected,) = differences(lambda x: objective(x, bound), [np.array(1.3)])
    np.testing.assert_allclose(slope, expected, rtol=1e-7)


# --- appendix B: sharing --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_a_definition_shares_is_computed_once() -> None:
    d = checked("(x::RV) -> begin y = i -> exp(sin(x(i))); sum(i, y(i)^3) * sum(i, cos(y(i)) * y(i)) end")
    assert d.source(value=True).count("np.exp(") == 1


@pytest.mark.slow
def test_what_a_step_shares_is_computed_once_a_step() -> None:
    text = """(x::RV{n}) -> iterate((s, t) -> begin
  y = exp(sin(s) * x(t))
  y / (1 + y^2) + cos(y)
end, 1, n)"""
    for size in SIZES:
        agrees(
            text,
            lambda x: folded(lambda s, a: (y := np.exp(np.sin(s) * a)) / (1 + y**2) + np.cos(y), 1.0, x),
            np.random.default_rng(size).normal(size=size),
        )
    assert checked(text).source(value=True).count("np.exp(") == 2  # in the loop, and for all steps behind it


@pytest.mark.long
def test_sharing_in_thirty_definitions_is_kept() -> None:
    # without it, the derivative would have 2^30 terms
    lines = [f"y{n + 1} = i -> sin(y{n}(i)) * y{n}(i)" for n in range(30)]
    text = "\n".join(["(x::RV) -> begin", "y0 = i -> x(i)", *lines, "sum(i, y30(i))", "end"])
    d = cd.grad(text)
    source = d.source(value=True)
    assert source.count("np.sin(") <= 30 and source.count("np.cos(") <= 30
    x = np.array([1.1, -2.0])
    value, slope = d.compile(value=True)(x)

    def objective(x: Any) -> Any:
        y = x
        for _ in range(30):
            y = np.sin(y) * y
        return y.sum()

    np.testing.assert_allclose(value, objective(x), rtol=1e-12)
    np.testing.assert_allclose(slope, differences(objective, [x])[0], rtol=1e-5, atol=1e-12)
