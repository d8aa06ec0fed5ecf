"""Eq. 6–7 and 11–13: tr(AB + BA) of complex matrices, and the matrix product itself."""

from __future__ import annotations

from functools import cache

import pytest

import combdiff as cd

from . import oracle

TRACE = "(A::CM, B::CM) -> sum((i, j), A(i, j) * B(j, i)) + sum((i, j), B(i, j) * A(j, i))"
PRODUCT = "(A::CM, B::CM) -> (i::N, j::N) -> sum(n, A(i, n) * B(n, j))"
SIZES = ((2, 3), (3, 2), (1, 1), (0, 2), (4, 4))
gradient, pullback = cache(cd.grad), cache(cd.pullback)


def test_eq_7_the_gradients_of_the_trace_of_a_product():
    d = gradient(TRACE)
    assert d.matrix_text() == "(2 B†, 2 A†)"
    assert d.latex(form="matrix") == r"(A, B) \mapsto (2 B^{\dagger}, 2 A^{\dagger})"
    assert str(d) == "(A::CM, B::CM) -> ((i, j) -> 2 * B(j, i)', (j, i) -> 2 * A(i, j)')"


def test_eq_7_by_one_factor_alone():
    assert gradient("(B::CM) -> (A::CM) -> " + TRACE.split(" -> ")[1]).matrix_text() == "2 B†"
    assert gradient(TRACE, wrt="B").matrix_text() == "2 A†"


def test_eq_13_the_pullback_of_a_product():
    assert pullback(PRODUCT).matrix_text() == "(k B†, A† k)"


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_eq_7_as_numbers(seed, sizes):
    t = oracle.trial(gradient(TRACE), seed, A=sizes, B=sizes[::-1])
    expected = (2 * t["B"].conj().T, 2 * t["A"].conj().T)
    oracle.close(t.result(), expected)
    oracle.close(t.run(), expected)
    oracle.agrees_with_differences(t)


@pytest.mark.parametrize("sizes", [(2, 3, 4), (1, 1, 1), (3, 0, 2), (1, 5, 1)])
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_eq_13_as_numbers(seed, sizes):
    a, b, c = sizes
    t = oracle.trial(pullback(PRODUCT), seed, A=(a, b), B=(b, c))
    expected = (t["k"] @ t["B"].conj().T, t["A"].conj().T @ t["k"])
    oracle.close(t.result(), expected)
    oracle.close(t.run(), expected)
    oracle.agrees_with_differences(t)


@pytest.mark.slow
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_eq_7_by_jax(seed):
    jnp = pytest.importorskip("jax.numpy")
    t = oracle.trial(gradient(TRACE), seed, A=(2, 3), B=(3, 2))
    oracle.close(t.run(), oracle.jax_gradient(lambda a, b: (jnp.trace(a @ b) + jnp.trace(b @ a)).real, t["A"], t["B"]))
