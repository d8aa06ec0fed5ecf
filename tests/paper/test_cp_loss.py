"""The least-squares loss of a CP decomposition, Σ (T − Σ_n X Y Z)²."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import combdiff as cd

from . import oracle

TEXT = """(T::(N, N, N) -> R) -> (X::RM, Y::RM, Z::RM) ->
    sum((i, j, k), (T(i, j, k) - sum(n, X(i, n) * Y(j, n) * Z(k, n)))^2)"""
NAMED = """(T::(N, N, N) -> R) -> (X::RM, Y::RM, Z::RM) -> begin
    e = (i, j, k) -> T(i, j, k) - sum(n, X(i, n) * Y(j, n) * Z(k, n))
    sum((i, j, k), e(i, j, k)^2)
end"""
# the three sides of T, and the rank
SIZES = ((2, 3, 4, 2), (1, 1, 1, 1), (3, 2, 1, 5), (2, 2, 2, 0), (0, 2, 3, 2))
gradient = cache(cd.grad)


def shapes(a, b, c, rank):
    return {"T": (a, b, c), "X": (a, rank), "Y": (b, rank), "Z": (c, rank)}


def by_hand(t):
    x, y, z = t["X"], t["Y"], t["Z"]
    e = t["T"] - np.einsum("in,jn,kn->ijk", x, y, z)
    return tuple(
        -2 * np.einsum(rule, e, *others)
        for rule, others in (("ijk,jn,kn->in", (y, z)), ("ijk,in,kn->jn", (x, z)), ("ijk,in,jn->kn", (x, y)))
    )


def test_the_three_gradients_share_the_residual_which_is_not_multiplied_out():
    assert oracle.squeezed(gradient(TEXT)) == oracle.squeezed("""
        (T::(N, N, N) -> R) -> (X::RM, Y::RM, Z::RM) -> begin
          R = (i, j, k) -> T(i, j, k) - sum(n, X(i, n) * Y(j, n) * Z(k, n))
          (
            (i, n) -> -2 * sum((j, k), R(i, j, k) * Y(j, n) * Z(k, n)),
            (j, n) -> -2 * sum((i, k), R(i, j, k) * X(i, n) * Z(k, n)),
            (k, n) -> -2 * sum((i, j), X(i, n) * R(i, j, k) * Y(j, n))
          )
        end
    """)


def test_a_residual_that_is_used_once_stays_where_it_is_used():
    assert oracle.squeezed(gradient(TEXT, wrt="X")) == oracle.squeezed("""
        (T::(N, N, N) -> R, Y::RM, Z::RM) -> (X::RM) -> (i, n) ->
          -2 * sum((j, k), Y(j, n) * Z(k, n) * (T(i, j, k) - sum(n1, Y(j, n1) * Z(k, n1) * X(i, n1))))
    """)


def test_each_gradient_is_one_term():
    assert [oracle.factors_in_front(e) for e in oracle.outputs(gradient(TEXT))] == [[-2], [-2], [-2]]


def test_a_residual_that_the_user_named_is_computed_once():
    d = gradient(NAMED)
    _, shared, _ = oracle.opened(d)
    assert list(shared) == ["e"]
    assert [oracle.factors_in_front(e) for e in oracle.outputs(d)] == [[-2], [-2], [-2]]
    assert str(d).count("T(i, j, k)") == 1


@pytest.mark.sampled
@pytest.mark.parametrize("text", [TEXT, NAMED])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_gradients_as_numbers(seed, sizes, text):
    t = oracle.trial(gradient(text), seed, **shapes(*sizes))
    oracle.close(t.result(), by_hand(t))
    oracle.close(t.run(), by_hand(t))


@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_gradients_by_differences(seed):
    oracle.agrees_with_differences(oracle.trial(gradient(TEXT), seed, **shapes(2, 3, 2, 2)))


@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_multiplied_out_it_is_the_same(seed):
    t = oracle.trial(gradient(TEXT, expand=True), seed, **shapes(2, 3, 4, 2))
    oracle.close(t.run(), by_hand(t))


@pytest.mark.slow
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_gradients_by_jax(seed):
    jnp = pytest.importorskip("jax.numpy")
    t = oracle.trial(gradient(TEXT), seed, **shapes(2, 3, 4, 2))

    def loss(x, y, z):
        return jnp.sum((t["T"] - jnp.einsum("in,jn,kn->ijk", x, y, z)) ** 2)

    oracle.close(t.run(), oracle.jax_gradient(loss, t["X"], t["Y"], t["Z"]))
