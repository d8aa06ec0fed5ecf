"""Shares of a sum under a condition: attention to other places, or to earlier ones, as it is written by hand."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from tests.emit.array_libraries import Numbers
from tests.promises import assert_holds

Masks = dict[str, Callable[[Any, Any, Any, Any], Any]]

CONDITIONS: Masks = {
    "s <= t": lambda t, s, m, x: s <= t,
    "s < t": lambda t, s, m, x: s < t,
    "s >= t": lambda t, s, m, x: s >= t,
    "s != t": lambda t, s, m, x: s != t,
    "t - 2 <= s <= t": lambda t, s, m, x: (t - 2 <= s) & (s <= t),
    "abs(s - t) <= 1": lambda t, s, m, x: abs(s - t) <= 1,
    "s <= t or s == 0": lambda t, s, m, x: (s <= t) | (s == 0),
    "m(s) == 1": lambda t, s, m, x: (m[s] == 1) & (t == t),
    "m(s) == 1 and s <= t": lambda t, s, m, x: (m[s] == 1) & (s <= t),
    "m(s) == m(t)": lambda t, s, m, x: m[s] == m[t],
    "x(s) > 0": lambda t, s, m, x: (x[s] > 0) & (t == t),
    "x(s) < x(t)": lambda t, s, m, x: x[s] < x[t],
}
"""Which places s take part at t: none does at some t, or in some arrays."""

SPELLINGS = {
    "in front": "where({s}, exp({a})) / sum(u, {u}, exp({b}))",
    "around": "where({s}, exp({a}) / sum(u, {u}, exp({b})))",
    "function": "where({s}, softmax(u, {u}, {b})(s))",
    "logarithm": "where({s}, exp({a} - log(sum(u, {u}, exp({b})))))",
    "less the largest": "where({s}, exp({a} - maximum(u, {u}, {b}))) / sum(u, {u}, exp({b} - maximum(w, {w}, {c})))",
    "two exponentials": "where({s}, exp({a} - x(s)) * exp(x(s))) / sum(u, {u}, exp({b} - x(u)) * exp(x(u)))",
    "other way round": "where({s}, exp({a})) / sum(u, where({u}, exp({b})))",
}
SCORES = {"A": "{}(t, {})", "a": "{}({})"}
"""Of pairs, and of single places: the shares of these are cumulative sums where the condition is a running one."""

SMALL = [
    *((spelling, "s <= t", "a") for spelling in SPELLINGS),
    *(("in front", condition, "A") for condition in CONDITIONS),
    ("around", "s < t", "a"),
    ("around", "m(s) == m(t)", "a"),
]
LARGE = [(a, b, c) for a in SPELLINGS for b in CONDITIONS for c in SCORES if (a, b, c) not in SMALL]


def program(spelling: str, condition: str, scores: str) -> str:
    """An objective of attention with weights that are written by hand."""
    a, b, c = (SCORES[scores].format(scores, i) for i in "suw")
    s, u, w = (condition.replace("(s)", f"({i})").replace("s ", f"{i} ") for i in "suw")
    share = SPELLINGS[spelling].format(s=s, u=u.replace("abu ", "abs "), w=w, a=a, b=b, c=c)
    return f"""(V::RM{{n, k}}, m::(N{{n}}) -> N{{3}}, x::RV{{n}}) -> ({scores}::{"RM{n, n}" if scores == "A" else "RV{n}"}) ->
      begin
        P = (t::N{{n}}, s::N{{n}}) -> {share}
        O = (t, k) -> sum(s, P(t, s) * V(s, k))
        sum((t, k), sin(k + t) * O(t, k) + O(t, k)^2 / 2)
      end"""


def expected(A: Any, K: Any, V: Any, mask: Any) -> tuple[float, Any, Any]:
    """Value, gradient and Hessian product, by the derivative of a share, P (k − Σ P k)."""
    below = np.where(mask, A, -np.inf)
    most = below.max(axis=1, initial=-np.inf, keepdims=True)
    E = np.exp(below - np.where(np.isfinite(most), most, 0))
    P = E / np.where(mask.any(axis=1, keepdims=True), E.sum(axis=1, keepdims=True), 1)
    pushed = lambda k: P * (k - (P * k).sum(axis=1, keepdims=True))  # noqa: E731
    O, C = P @ V, np.sin(np.add.outer(np.arange(len(V)), np.arange(V.shape[1])))
    up, dP = (C + O) @ V.T, pushed(K)
    about = up - (P * up).sum(axis=1, keepdims=True)
    hvp = dP * about + pushed(dP @ V @ V.T) - P * (dP * up).sum(axis=1, keepdims=True)
    return float((C * O + O**2 / 2).sum()), pushed(up), hvp


def numbers(condition: str, scores: str, n: int, scale: float) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Arrays and a direction, and what comes of them."""
    rng = np.random.default_rng(n)
    V, x, m = rng.standard_normal((n, 2)), rng.standard_normal(n), rng.integers(0, 3, n)
    if n == 3:
        m, x = np.array([0, 2, 0]), -abs(x)  # nobody takes part
    A, K = (c * rng.standard_normal((n, n) if scores == "A" else n) for c in (scale, 1.0))
    mask = CONDITIONS[condition](*np.mgrid[:n, :n], m, x)
    value, *slopes = expected(*(np.broadcast_to(a, (n, n)) for a in (A, K)), V, mask)
    return (V, m, x, A, K), (value, *(g if scores == "A" else g.sum(axis=0) for g in slopes))


def agrees(spelling: str, condition: str, scores: str, backend: str = "numpy") -> None:
    """Value, gradient and Hessian product are right, and nothing overflows."""
    library = Numbers(backend)
    d = cd.grad(program(spelling, condition, scores))
    f = d.compile(backend, value=True, hvp=True)
    assert "softmax" in str(d) and "where" not in str(d).replace("where(s <= t or s == 0", "")
    for n in (1, 2, 3, 5, 7):
        for scale in (1.0, 1000.0):
            (*given, K), results = numbers(condition, scores, n, scale)
            with np.errstate(all="raise", under="ignore"), warnings.catch_warnings():
                warnings.simplefilter("error")
                value, gradient, hvp = f(*map(library.to, given))
                found = value, gradient, hvp(library.to(K))
            for one, other in zip(found, results, strict=True):
                np.testing.assert_allclose(library.back(one), other, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("case", SMALL, ids=", ".join)
def test_shares_under_a_condition_are_right_at_any_scores(case: tuple[str, str, str]) -> None:
    agrees(*case)


@pytest.mark.slow
@pytest.mark.parametrize("case", LARGE, ids=", ".join)
def test_shares_under_a_condition_are_right_in_every_spelling(case: tuple[str, str, str]) -> None:
    agrees(*case)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["jax", "torch"])
@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("condition", ["s <= t", "s < t", "m(s) == 1", "x(s) < x(t)"])
def test_all_libraries_have_these_shares(condition: str, scores: str, backend: str) -> None:
    agrees("in front", condition, scores, backend)
