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
from tests.thinned import thinned

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
    ("in front", "s <= t", "A"),
    ("around", "s < t", "a"),
    ("function", "m(s) == m(t)", "A"),
    ("logarithm", "x(s) < x(t)", "A"),
    ("less the largest", "s != t", "A"),
]
LARGE = thinned(((a, b, c) for a in SPELLINGS for b in CONDITIONS for c in SCORES if (a, b, c) not in SMALL), every=13)


def program(spelling: str, condition: str, scores: str) -> str:
    """An objective of attention with weights that are written by hand."""
    a, b, c = (SCORES[scores].format(scores, i) for i in "suw")
    s, u, w = (condition.replace("(s)", f"({i})").replace("s ", f"{i} ") for i in "suw")
    share = SPELLINGS[spelling].format(s=s, u=u.replace("abu ", "abs "), w=w, a=a, b=b, c=c)
    kind = "RM{n, n}" if scores == "A" else "RV{n}"
    return f"""(V::RM{{n, k}}, m::(N{{n}}) -> N{{3}}, x::RV{{n}}) -> ({scores}::{kind}) -> begin
        P = (t::N{{n}}, s::N{{n}}) -> {share}
        Y = (t, k) -> sum(s, P(t, s) * V(s, k))
        sum((t, k), sin(k + t) * Y(t, k) + Y(t, k)^2 / 2)
      end"""


def expected(A: Any, K: Any, V: Any, mask: Any) -> tuple[float, Any, Any]:
    """Value, gradient and Hessian product, by the derivative of a share, P (k − Σ P k)."""
    below = np.where(mask, A, -np.inf)
    most = below.max(axis=1, initial=-np.inf, keepdims=True)
    E = np.exp(below - np.where(np.isfinite(most), most, 0))
    P = E / np.where(mask.any(axis=1, keepdims=True), E.sum(axis=1, keepdims=True), 1)

    def pushed(k: Any) -> Any:
        return P * (k - (P * k).sum(axis=1, keepdims=True))

    Y, C = P @ V, np.sin(np.add.outer(np.arange(len(V)), np.arange(V.shape[1])))
    up, dP = (C + Y) @ V.T, pushed(K)
    about = up - (P * up).sum(axis=1, keepdims=True)
    hvp = dP * about + pushed(dP @ V @ V.T) - P * (dP * up).sum(axis=1, keepdims=True)
    return float((C * Y + Y**2 / 2).sum()), pushed(up), hvp


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
@pytest.mark.parametrize("case", LARGE, ids=lambda case: ", ".join(case))
def test_shares_under_a_condition_are_right_in_every_spelling(case: tuple[str, str, str]) -> None:
    agrees(*case)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["jax", "torch"])
@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("condition", thinned(["s <= t", "s < t", "m(s) == 1", "x(s) < x(t)"]))
def test_all_libraries_have_these_shares(condition: str, scores: str, backend: str) -> None:
    agrees("in front", condition, scores, backend)


FORMS = {
    "(A::RM) -> (t, s) -> where(s <= t, exp(A(t, s)) / sum(u, u <= t, exp(A(t, u))))": (
        "(t, s) -> softmax(u, u <= t, A(t, u))(s)"
    ),
    "(A::RM) -> (t, s) -> where(s != t, exp(A(t, s))) / sum(u, t != u, exp(A(t, u)))": (
        "(t, s) -> softmax(u, t != u, A(t, u))(s)"
    ),
    "(A::RM, V::RM) -> (t, k) -> sum(s, s <= t, exp(A(t, s)) * V(s, k)) / sum(u, u <= t, exp(A(t, u)))": (
        "(t, k) -> sum(s, V(s, k) * softmax(u, u <= t, A(t, u))(s))"
    ),
    "(A::RM, V::RM) -> (t, k) -> sum(s, exp(A(t, s)) * where(s <= t, V(s, k))) / sum(u, u <= t, exp(A(t, u)))": (
        "(t, k) -> sum(s, V(s, k) * softmax(u, u <= t, A(t, u))(s))"
    ),
    "(w::RV, A::RM) -> (t, s) -> w(s) * where(s <= t, exp(A(t, s)) / sum(u, u <= t, w(u) * exp(A(t, u))))": (
        "(t, s) -> softmax(u, where(u <= t, w(u)), A(t, u))(s)"
    ),
    "(A::RM) -> (t, s) -> where(s <= t, exp(A(t, s))^2) / sum(u, u <= t, exp(A(t, u)))^2": (
        "(t, s) -> softmax(u, u <= t, A(t, u))(s)^2"
    ),
    "(A::RM) -> (t, s) -> where(s < t, exp(A(t, s))) / sum(u, u <= t, exp(A(t, u)))": (
        "(t, s) -> where(s < t, softmax(u, u <= t, A(t, u))(s))"  # fewer than those of the sum
    ),
    "(m::(N) -> N{2}, a::RV) -> s -> where(m(s) == 1, exp(a(s))) / sum(u, m(u) == 1, exp(a(u)))": (
        "s -> softmax(u, m(u) == 1, a(u))(s)"
    ),
    "(x::RV, y::RV) -> k -> exp(x(k)) * exp(y(k)) / sum(i, exp(x(i)) * exp(y(i)))": "k -> softmax(i, x(i) + y(i))(k)",
    "(A::RM) -> (t, s) -> where(s <= t, exp(A(t, s))) / (exp(A(t, t)) + exp(A(t, s)))": (
        "(t, s) -> where(s <= t, sigmoid(A(t, s) - A(t, t)))"
    ),
    # shares are 0 where the condition does not hold, and these are not
    "(A::RM) -> (t, s) -> exp(A(t, s)) / sum(u, u <= t, exp(A(t, u)))": (
        "(t, s) -> exp(A(t, s) - logsumexp(u, u <= t, A(t, u)))"
    ),
    "(A::RM) -> (t, s) -> where(s <= t, exp(A(t, s))) / sum(u, u >= t, exp(A(t, u)))": (
        "(t, s) -> where(s <= t, exp(A(t, s) - logsumexp(u, t <= u, A(t, u))))"
    ),
    # what does not stand under the condition of the sum adds exp(0)
    "(A::RM{n, n}) -> t -> exp(A(t, t) - logsumexp(u, where(u <= t, A(t, u))))": (
        "t -> softmax(u, where(u <= t, A(t, u)))(t)"
    ),
    "(p::RV, x::RV) -> logsumexp(j, softmax(p)(j), where(1 <= j, x(j)))": (
        "logsumexp(j, where(1 <= j, x(j)) + p(j)) - logsumexp(p)"
    ),
    # of all that take part, shares are 1 together, if t is one of them
    "(A::RM{n, n}) -> t -> sum(s, where(s <= t, exp(A(t, s))) / sum(u, u <= t, exp(A(t, u))))": "(t::N{n}) -> 1",
    "(A::RM{n, n}) -> t -> sum(s, softmax(u, u < t, A(t, u))(s))": "t -> sum(s, softmax(u, u < t, A(t, u))(s))",
}


@pytest.mark.parametrize("text", FORMS)
def test_the_condition_of_a_sum_stands_in_the_share_once(text: str) -> None:
    d = cd.simplified(text)
    assert " ".join(str(d).split()).endswith(f"-> {FORMS[text]}")
    assert_holds(d)


GRADIENT = """(t, u) -> P(t, u) * (P_bar(t, u) - sum(s, P(t, s) * P_bar(t, s)))"""


@pytest.mark.parametrize("share", ["in front", "around", "function"])
def test_the_gradient_of_masked_attention_is_that_of_attention(share: str) -> None:
    P = SPELLINGS[share].format(s="s <= t", u="u <= t", w="w <= t", a="A(t, s)", b="A(t, u)", c="A(t, w)")
    d = cd.grad(f"(V::RM) -> (A::RM) -> begin P = (t, s) -> {P}; sum((t, k), sum(s, P(t, s) * V(s, k))^2) end")
    assert "P = (t, s) -> softmax(u, u <= t, A(t, u))(s)" in str(d)
    assert GRADIENT in str(d)
    assert_holds(d)


GUARDED = {
    "a factor": "where(s != t, exp(x(s)) / sum(u, u != t, exp(x(u))) / D(s, t, 0))",
    "a sum": "where(s != t, exp(x(s)) / sum(u, u != t, exp(x(u))) / sum(k, D(s, t, k)))",
    "a definition": "where(s != t, exp(x(s)) / sum(u, u != t, exp(x(u))) * r(s, t))",
    "beside a share": "softmax(u, u != t, x(u))(s) * where(s != t, r(s, t))",
    "around a share": "where(s != t, softmax(u, u != t, x(u))(s) * r(s, t))",
}
"""Weights that are infinite where the condition does not hold."""


@pytest.mark.parametrize("kind", GUARDED)
def test_what_is_infinite_where_the_condition_does_not_hold_stays_guarded(kind: str) -> None:
    d = cd.grad(f"""(D::(N, N, N) -> R) -> (x::RV) -> begin
      r = (s, t) -> 1 / D(s, t, 0)
      sum((s, t), {GUARDED[kind]})
    end""")
    x, D = np.array([0.3, 900.0, -1.0]), np.ones((3, 3, 1)) - np.eye(3)[:, :, None]
    with np.errstate(all="raise", under="ignore"):
        value, gradient = d.compile(value=True)(D, x)
    np.testing.assert_allclose(value, 3.0)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-12)


def test_what_exists_under_the_condition_only_stays_guarded() -> None:
    d = cd.grad("(y::RV{n}) -> (x::RV{n}) -> sum(j, where(1 <= j, softmax(u, 1 <= u, x(u))(j) * y(j - 1)))")
    x, y = np.array([5.0, 0.0, 0.0]), np.array([1.0, 3.0, 7.0])
    value, gradient = d.compile(value=True)(y, x)
    np.testing.assert_allclose(value, 2.0)
    np.testing.assert_allclose(gradient, [0, -0.5, 0.5])


def test_a_condition_that_is_not_the_sum_s_stays() -> None:
    d = cd.grad("(x::RV) -> sum(i, where(0 < x(i), exp(x(i)) / sum(j, exp(x(j)))))")
    x = np.array([800.0, -1.0, 799.0])
    with np.errstate(all="raise", under="ignore"):
        value, gradient = d.compile(value=True)(x)
    np.testing.assert_allclose(value, 1.0)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-12)


@pytest.mark.parametrize("what", [np.nan, np.inf, -np.inf])
def test_scores_that_take_no_part_may_be_anything(what: float) -> None:
    d = cd.grad(program("in front", "s <= t", "A"))
    (V, m, x, A, _), (value, gradient, _) = numbers("s <= t", "A", 5, 1.0)
    found = d.compile(value=True)(V, m, x, np.where(np.tri(5), A, what))
    np.testing.assert_allclose(found[0], value)
    np.testing.assert_allclose(found[1], gradient, atol=1e-15)


@pytest.mark.parametrize("spelling", ["in front", "around", "function"])
def test_running_averages_and_their_hessian_products_make_no_table(spelling: str) -> None:
    share = SPELLINGS[spelling].format(s="s <= t", u="u <= t", a="a(s)", b="a(u)", w="", c="")
    text = f"(v::RV{{n}}, g::RV{{n}}) -> (a::RV{{n}}) -> sum(t, (g(t) - sum(s, {share} * v(s)))^2)"
    for d in (cd.grad(text), cd.hvp(text)):
        plan = d.plan(**{a.name: (40,) for a in d.compile().arguments})
        assert max(step.rank for step in plan.steps) == 1


@pytest.mark.parametrize("condition", ["delta(l, 1, {})", "where(l == 1, {})"])
def test_a_share_of_one_place_is_one_share(condition):
    """A sum over a δ with an index is one entry: of an array, and of the shares that it weighs."""
    body = condition.format("y(l) * exp(b(l))")
    d = cd.grad(f"(y::RV{{n}}) -> (b::RV{{n}}) -> sum(l, {body}) / sum(j, exp(b(j)))")
    b, y = np.array([1000.0, 999.0, 998.5]), np.array([1.0, 2.0, 3.0])
    share = np.exp(b - 1000) / np.exp(b - 1000).sum()
    expected = 2 * share[1] * (np.eye(3)[1] - share)
    np.testing.assert_allclose(d.compile()(y, b), expected, rtol=1e-12)
