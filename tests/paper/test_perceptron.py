"""A two-layer perceptron with an unknown activation: forward values once, then cotangents once."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import combdiff as cd

from . import oracle

NAMED = """(g::RF, x::RV, t::RV) -> (W1::RM, W2::RM) -> begin
    a = i -> sum(j, W1(i, j) * x(j))
    h = i -> g(a(i))
    z = i -> sum(j, W2(i, j) * h(j))
    y = i -> g(z(i))
    sum(i, (y(i) - t(i))^2)
end"""
LAYERS = """(g::RF, x::RV, t::RV) -> (W1::RM, W2::RM) -> begin
    h = i -> g(sum(j, W1(i, j) * x(j)))
    y = i -> g(sum(j, W2(i, j) * h(j)))
    sum(i, (y(i) - t(i))^2)
end"""
COMPOSED = """(g::RF, x::RV, t::RV) -> (W1::RM, W2::RM) ->
    sum(i, (g(sum(j, W2(i, j) * g(sum(m, W1(j, m) * x(m))))) - t(i))^2)"""
BIASED = """(g::RF, x::RV, t::RV) -> (W::RM, b::RV, V::RM, c::RV) -> begin
    a = (i::N) -> sum(j, W(i, j) * x(j)) + b(i)
    h = (i::N) -> g(a(i))
    z = (i::N) -> sum(j, V(i, j) * h(j)) + c(i)
    sum(i, (g(z(i)) - t(i))^2)
end"""
OUTPUT = """(g::RF, x::RV) -> (W1::RM, W2::RM) -> begin
    h = i -> g(sum(j, W1(i, j) * x(j)))
    i -> g(sum(j, W2(i, j) * h(j)))
end"""
# widths of the input, the hidden layer and the output
SIZES = ((3, 4, 2), (1, 1, 1), (2, 1, 3), (0, 2, 2))
gradient, pullback = cache(cd.grad), cache(cd.pullback)


def steepness(x):
    return 1 - np.tanh(x) ** 2


ACTIVATION = {"g": np.tanh, "grad_g": steepness}


def by_hand(x, t, first, second):
    """Backpropagation as a textbook has it."""
    a = first @ x
    h = np.tanh(a)
    z = second @ h
    z_bar = 2 * (np.tanh(z) - t) * steepness(z)
    a_bar = steepness(a) * (second.T @ z_bar)
    return np.outer(a_bar, x), np.outer(z_bar, h)


def shapes(width, hidden, out):
    return {"x": (width,), "t": (out,), "W1": (hidden, width), "W2": (out, hidden)}


def test_forward_values_come_once_and_then_cotangents_once():
    assert gradient(NAMED).matrix_text().splitlines() == [
        "a = W1 x",
        "h = g(a)",
        "z = W2 h",
        "y = g(z)",
        "z_bar = 2 ∇g(z) ∘ (y - t)",
        "((∇g(a) ∘ (W2ᵀ z_bar)) xᵀ, z_bar hᵀ)",
    ]


def test_the_result_is_written_with_lets():
    assert oracle.squeezed(gradient(NAMED)) == oracle.squeezed("""
        (g::RF, x::RV, t::RV) -> (W1::RM, W2::RM) -> begin
          a = i -> sum(j, x(j) * W1(i, j))
          h = i -> g(a(i))
          z = i -> sum(j, W2(i, j) * h(j))
          y = i -> g(z(i))
          z_bar = i -> 2 * grad(g)(z(i)) * (y(i) - t(i))
          (
            (i, j) -> x(j) * grad(g)(a(i)) * sum(i1, W2(i1, i) * z_bar(i1)),
            (i, j) -> z_bar(i) * h(j)
          )
        end
    """)


def test_biases_share_the_cotangents_of_their_layers():
    assert gradient(BIASED).matrix_text().splitlines() == [
        "a = W x + b",
        "h = g(a)",
        "z = V h + c",
        "z_bar = 2 ∇g(z) ∘ (g(z) - t)",
        "a_bar = ∇g(a) ∘ (Vᵀ z_bar)",
        "(a_bar xᵀ, a_bar, z_bar hᵀ, z_bar)",
    ]


@pytest.mark.parametrize("text", [LAYERS, OUTPUT])
def test_an_argument_of_the_activation_that_has_no_name_is_still_computed_once(text):
    d = gradient(text) if text == LAYERS else pullback(text)
    # one slope for each of the two layers, and each layer's product with its weights once
    written = d.matrix_text()
    assert written.count("∇g") == 2
    assert written.count("W1 x") == 1
    assert written.count("W2 h") == 1


@pytest.mark.slow
@pytest.mark.parametrize("text", [NAMED, LAYERS, COMPOSED])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_gradients_as_numbers(seed, sizes, text):
    t = oracle.trial(gradient(text), seed, ACTIVATION, **shapes(*sizes))
    expected = by_hand(t["x"], t["t"], t["W1"], t["W2"])
    oracle.close(t.result(), expected)
    oracle.close(t.run(), expected)
    oracle.agrees_with_differences(t)


@pytest.mark.slow
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_gradients_with_biases_as_numbers(seed):
    t = oracle.trial(gradient(BIASED), seed, ACTIVATION, x=(3,), W=(2, 3), V=(4, 2))
    oracle.close(t.run(), t.result())
    oracle.agrees_with_differences(t)


@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_pullback_of_the_output_as_numbers(seed):
    t = oracle.trial(pullback(OUTPUT), seed, ACTIVATION, x=(3,), W1=(2, 3), W2=(4, 2))
    oracle.close(t.run(), t.result())
    oracle.agrees_with_differences(t)


@pytest.mark.slow
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_gradients_by_jax(seed):
    jnp = pytest.importorskip("jax.numpy")
    t = oracle.trial(gradient(NAMED), seed, ACTIVATION, **shapes(3, 2, 4))

    def loss(first, second):
        return jnp.sum((jnp.tanh(second @ jnp.tanh(first @ t["x"])) - t["t"]) ** 2)

    oracle.close(t.run(), oracle.jax_gradient(loss, t["W1"], t["W2"]))
