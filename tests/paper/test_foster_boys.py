"""The Foster–Boys spread, Σ_i (C†R₂C)_ii − Σ_i r_i' r_i with r_i = (C†RC)_ii, R₂ and R Hermitian."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import combdiff as cd

from . import oracle

TEXT = """(R2::Her, R::Her) -> (C::CM) -> begin
    r = i -> sum((p, q), C(p, i)' * R(p, q) * C(q, i))
    sum((i, p, q), C(p, i)' * R2(p, q) * C(q, i)) - sum(i, r(i)' * r(i))
end"""
SIZES = ((3, 2), (2, 3), (1, 1), (0, 2), (2, 0))
gradient = cache(cd.grad)


def shapes(basis, orbitals):
    return {"R2": (basis, basis), "R": (basis, basis), "C": (basis, orbitals)}


def by_hand(t):
    """2 R₂ C − 4 R C diag(r)."""
    r = np.diag(t["C"].conj().T @ t["R"] @ t["C"])
    return 2 * t["R2"] @ t["C"] - 4 * (t["R"] @ t["C"]) * r


def test_the_gradient_has_two_terms_and_keeps_r():
    d = gradient(TEXT)
    (body,) = oracle.outputs(d)
    assert oracle.factors_in_front(body) == [2, -4]
    assert list(oracle.opened(d)[1]) == ["r"]
    assert oracle.slot_names(d) == [("p", "i")]
    assert not oracle.has_delta(d)


def test_the_gradient_in_matrix_form_uses_that_r_is_real():
    definition, result = gradient(TEXT).matrix_text().splitlines()
    assert definition == "r = diagonal(C† R C)"
    assert result == "2 R2 C - 4 R C diag(r)"


def test_with_r_squared_it_is_the_same_gradient():
    assert gradient(TEXT.replace("r(i)' * r(i)", "r(i)^2")).matrix_text().endswith("\n2 R2 C - 4 R C diag(r)")


def test_multiplied_out_it_is_one_formula():
    assert gradient(TEXT, expand=True).matrix_text() == "2 R2 C - 4 R C diag(diagonal(C† R C))"


@pytest.mark.parametrize("expand", [False, True])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_gradient_as_numbers(seed, sizes, expand):
    t = oracle.trial(gradient(TEXT, expand=expand), seed, **shapes(*sizes))
    oracle.close(t.result(), by_hand(t))
    oracle.close(t.run(), by_hand(t))
    oracle.agrees_with_differences(t)


@pytest.mark.slow
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_gradient_by_jax(seed):
    jnp = pytest.importorskip("jax.numpy")
    t = oracle.trial(gradient(TEXT), seed, **shapes(3, 2))

    def spread(c):
        r = jnp.einsum("pi,pq,qi->i", c.conj(), t["R"], c)
        return (jnp.einsum("pi,pq,qi->", c.conj(), t["R2"], c) - jnp.sum(r.conj() * r)).real

    oracle.close(t.run(), oracle.jax_gradient(spread, t["C"]))
