"""What JAX transforms: compiled functions of arrays some of which are traced and others are not."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd

jax = pytest.importorskip("jax")


@pytest.mark.slow
def test_a_traced_array_may_stand_beside_one_that_is_not() -> None:
    jax.config.update("jax_enable_x64", True)
    f = cd.grad("(a::RV) -> (x::RV) -> sum(i, a(i) * x(i)^3)").compile("jax")
    a, x = (jax.numpy.asarray(np.arange(1.0, 4.0) + n) for n in range(2))
    assert np.allclose(jax.jit(lambda x: f(a, x))(x), 3 * a * x**2)
    assert np.allclose(jax.grad(lambda x: f(a, x).sum())(x), 6 * a * x)
    assert np.allclose(jax.jacfwd(lambda x: f(a, x))(x), np.diag(6 * a * x))
    assert np.allclose(jax.vmap(f, (None, 0))(a, jax.numpy.stack([x, a])), np.stack([3 * a * x**2, 3 * a**3]))


ROWS = "(J::(N{o}) -> N{n}, a::RV{o}) -> (x::RM{n, k}) -> (e::N{o}, r::N{k}) -> a(e) * sin(x(J(e), r)) + x(0, r)^2"


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("traced", [("J", "a", "x"), ("x",), ("J",)])
def test_a_sparse_tensor_is_a_result_of_a_traced_function(size: int, traced: tuple[str, ...]) -> None:
    jax.config.update("jax_enable_x64", True)
    d = cd.jacobian(ROWS)
    rng = np.random.default_rng(size)
    given = {"J": rng.integers(0, 3, size), "a": rng.normal(size=size), "x": rng.normal(size=(3, 2))}
    f, arrays = d.compile("jax", structured=True), {n: jax.numpy.asarray(given[n]) for n in given}
    fixed = {n: a for n, a in arrays.items() if n not in traced}
    found = jax.jit(lambda **known: f(**known, **fixed))(**{n: arrays[n] for n in traced})
    assert [block.pattern for block in found.blocks] == [block.pattern for block in f(**arrays).blocks]
    assert found.shape == (size, 2, 3, 2) and found.rows == 2
    np.testing.assert_allclose(found.dense(), d.compile()(**given), rtol=1e-12)
    np.testing.assert_allclose(found.scipy().toarray(), d.compile()(**given).reshape(2 * size, 6), rtol=1e-12)


def test_the_sizes_of_a_sparse_tensor_of_zeros_are_known_in_a_trace() -> None:
    d = cd.jacobian("(A::RM{n, m}) -> (x::RV{k}) -> (i::N) -> A(i, 0)")
    found = jax.jit(d.compile("jax", structured=True))(np.ones((3, 2)), np.ones(5))
    assert found.shape == (3, 5) and not found.blocks


def test_axes_that_a_transformation_adds_to_blocks_are_refused() -> None:
    f = cd.jacobian("(a::RV) -> (x::RV) -> (i::N) -> a(i) * x(i)^2").compile("jax", structured=True)
    a, x = np.ones(3), np.arange(6.0).reshape(2, 3)
    with pytest.raises(cd.CombDiffError, match="adds axes"):
        jax.vmap(f, (None, 0))(a, x)
    diagonals = jax.vmap(lambda x: f(a, x).blocks[0].array)(x)
    np.testing.assert_allclose(diagonals, 2 * x)
