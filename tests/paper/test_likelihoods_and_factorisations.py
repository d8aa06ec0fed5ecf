"""Losses as they are written in statistics and in learning: what is shared is named once and used in every gradient."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import combdiff as cd

from . import oracle

TENSOR = "@space T3 begin type = (N, N, N) -> R end\n"
TEXTS = {
    "tucker": TENSOR
    + """(T::T3) -> (G::T3, A::RM, B::RM, C::RM) ->
  sum((i, j, k), (sum((a, b, c), G(a, b, c) * A(i, a) * B(j, b) * C(k, c)) - T(i, j, k))^2)""",
    "expanded CP": TENSOR
    + """(T::T3) -> (X::RM, Y::RM, Z::RM) -> sum((i, j, k), T(i, j, k)^2) -
  2 * sum((i, j, k, e), T(i, j, k) * X(i, e) * Y(j, e) * Z(k, e)) +
  sum((i, j, k, e, f), X(i, e) * Y(j, e) * Z(k, e) * X(i, f) * Y(j, f) * Z(k, f))""",
    "logistic": "(X::RM, y::RV) -> (w::RV) -> sum(n, log(1 + exp(-y(n) * sum(d, X(n, d) * w(d)))))",
    "softmax": """(X::RM, Y::RM) -> (W::RM) -> begin
  z = (n, c) -> sum(d, X(n, d) * W(d, c))
  sum((n, c), Y(n, c) * (z(n, c) - log(sum(b, exp(z(n, b))))))
end""",
    "mixture": """(X::RM) -> (m::RM, w::RV) ->
  sum(n, log(sum(k, exp(w(k)) * exp(-sum(d, (X(n, d) - m(k, d))^2) / 2))))""",
    "attention": """(Q::RM, K::RM, Y::RM) -> (V::RM) -> sum((n, d),
  (sum(m, exp(sum(e, Q(n, e) * K(m, e))) * V(m, d)) / sum(m, exp(sum(e, Q(n, e) * K(m, e)))) - Y(n, d))^2)""",
    "second order": """@domain O begin base = I end
@domain V begin base = I end
@space G begin type = (O, V, O, V) -> R; symmetries = (((3, 4, 1, 2), :id),) end
(g::G) -> (t::G) -> sum((i, a, j, b), t(i, a, j, b) * (2 * g(i, a, j, b) - g(i, b, j, a)))""",
}
RESULTS = {
    "tucker": """R = (i, j, k) -> sum((a, b, c), A(i, a) * B(j, b) * C(k, c) * G(a, b, c)) - T(i, j, k)""",
    "expanded CP": """P = (i, j, k) -> sum(e, X(i, e) * Y(j, e) * Z(k, e)) - T(i, j, k)
  (
      (i, e) -> 2 * sum((j, k), P(i, j, k) * Y(j, e) * Z(k, e)),
      (j, e) -> 2 * sum((i, k), P(i, j, k) * X(i, e) * Z(k, e)),
      (k, e) -> 2 * sum((i, j), X(i, e) * P(i, j, k) * Y(j, e))
  )""",
    "logistic": "d -> -sum(n, X(n, d) * y(n) * sigmoid(-y(n) * sum(d1, X(n, d1) * w(d1))))",
    "softmax": "(d, c) -> sum(n, X(n, d) * (Y(n, c) - softmax(b, z(n, b))(c) * sum(b, Y(n, b))))",
    "mixture": """Z = (n, k) -> softmax(k1, w(k1) - 1/2 * sum(d, (X(n, d) - m(k1, d))^2))(k)
  ((k, d) -> sum(n, Z(n, k) * (X(n, d) - m(k, d))), k -> sum(n, Z(n, k)))""",
    "attention": "P = (n, m) -> softmax(m1, sum(e, Q(n, e) * K(m1, e)))(m)",
    "second order": "(i::O, a::V, j::O, b::V) -> 2 * g(i, a, j, b) - g(i, b, j, a)",
}
EXPONENTIALS = {"logistic": 0, "softmax": 0, "attention": 0}
gradient = cache(cd.grad)


@pytest.mark.sampled
@pytest.mark.parametrize("name", TEXTS)
def test_what_is_shared_is_named_once(name: str) -> None:
    assert oracle.squeezed(RESULTS[name]) in oracle.squeezed(gradient(TEXTS[name]))


@pytest.mark.parametrize("name", EXPONENTIALS)
def test_an_exponential_is_written_once(name: str) -> None:
    assert str(gradient(TEXTS[name])).count("exp(") == EXPONENTIALS[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
def test_the_gradients_agree_with_finite_differences_and_with_the_code(name: str) -> None:
    assert gradient(TEXTS[name]).check()


@pytest.mark.parametrize("name", ["tucker", "expanded CP"])
def test_the_residual_stands_in_every_gradient(name: str) -> None:
    bindings = str(gradient(TEXTS[name])).split("begin")[-1]
    residual = RESULTS[name].split()[0]
    assert bindings.count(f"{residual}(i, j, k)") == len(gradient(TEXTS[name]).term.body.params)


def test_the_softmax_gradient_as_numbers() -> None:
    t = oracle.trial(gradient(TEXTS["softmax"]), 3, X=(5, 4), Y=(5, 3), W=(4, 3))
    p = np.exp(t["X"] @ t["W"])
    p /= p.sum(axis=1, keepdims=True)
    oracle.close(t.run(), t["X"].T @ (t["Y"] - p * t["Y"].sum(axis=1, keepdims=True)))


def test_the_expanded_loss_as_numbers() -> None:
    t = oracle.trial(gradient(TEXTS["expanded CP"]), 1, T=(3, 4, 5), X=(3, 2), Y=(4, 2), Z=(5, 2))
    residual = np.einsum("ie,je,ke->ijk", t["X"], t["Y"], t["Z"]) - t["T"]
    wanted = (
        2 * np.einsum("ijk,je,ke->ie", residual, t["Y"], t["Z"]),
        2 * np.einsum("ijk,ie,ke->je", residual, t["X"], t["Z"]),
        2 * np.einsum("ijk,ie,je->ke", residual, t["X"], t["Y"]),
    )
    for found, expected in zip(t.run(), wanted, strict=True):
        oracle.close(found, expected)
