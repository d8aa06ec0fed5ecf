"""What JAX transforms: compiled functions of arrays some of which are traced and others are not."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd

jax = pytest.importorskip("jax")


def test_a_traced_array_may_stand_beside_one_that_is_not() -> None:
    jax.config.update("jax_enable_x64", True)
    f = cd.grad("(a::RV) -> (x::RV) -> sum(i, a(i) * x(i)^3)").compile("jax")
    a, x = (jax.numpy.asarray(np.arange(1.0, 4.0) + n) for n in range(2))
    assert np.allclose(jax.jit(lambda x: f(a, x))(x), 3 * a * x**2)
    assert np.allclose(jax.grad(lambda x: f(a, x).sum())(x), 6 * a * x)
    assert np.allclose(jax.jacfwd(lambda x: f(a, x))(x), np.diag(6 * a * x))
    assert np.allclose(jax.vmap(f, (None, 0))(a, jax.numpy.stack([x, a])), np.stack([3 * a * x**2, 3 * a**3]))
