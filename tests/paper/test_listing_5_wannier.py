"""Listing 5: the spread of Wannier functions (Eq. 55–56), its gradient with ρ kept (Eq. 58) and without (Eq. 57)."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

import combdiff as cd
from combdiff.terms.terms import Lam, Sum, subterms
from combdiff.terms.types import REAL

from . import oracle

REAL_WEIGHTS = oracle.example("wannier")
COMPLEX_WEIGHTS = REAL_WEIGHTS.replace("type = (I,) -> R", "type = (I,) -> C")
ANY_WEIGHTS = REAL_WEIGHTS.replace("type = (I,) -> R\n  symmetries = (((1,), :ineg),)", "type = (X) -> R")
ANY_OVERLAPS = REAL_WEIGHTS.replace("  symmetries = (((2, 1, 4, 3), :conj),)\n", "")
gradient, pullback, hessian = cache(cd.grad), cache(cd.pullback), cache(cd.hvp)
# orbitals, Wannier functions, points of the zone, steps: steps longer than the zone wrap round more than once
SIZES = ((2, 1, 7, 3), (1, 2, 3, 3), (2, 2, 2, 5), (2, 3, 1, 3), (1, 1, 1, 1), (1, 2, 2, 3), (2, 0, 3, 1), (0, 2, 2, 3))
SMALL = ((1, 2, 3, 3), (2, 1, 2, 5), (2, 2, 1, 3), (1, 1, 7, 3))

KEPT = """
    @domain BZ begin base = I; periodic = true end
    @domain X begin symmetric = true; contractable = false end
    @space Mmn begin
      type = (N, N, BZ, BZ) -> C
      symmetries = (((2, 1, 4, 3), :conj),)
    end
    @space SV begin
      type = (X) -> R
      symmetries = (((1,), :ineg),)
    end
    @space Gauge begin
      type = (N, N, BZ) -> C
    end
    (S::Mmn, w::SV) -> (U::Gauge) -> begin
      rho = (n, b::X) -> sum((p, q, k::BZ), S(p, q, k, k + b) * U(p, n, k)' * U(q, n, k + b))
      (p, n, k::BZ) -> 4 * sum((q, b::X), S(p, q, k, k + b) * w(b) * rho(n, b)' * U(q, n, k + b))
    end
"""


def shapes(orbitals, functions, points, steps):
    return {"S": (orbitals, orbitals, points, points), "w": (steps,), "U": (orbitals, functions, points)}


def neighbours(points, steps):
    """The array places of k + b, a row for each b from −M to M."""
    return (np.arange(points)[None, :] + np.arange(-(steps // 2), steps // 2 + 1)[:, None]) % points


def overlaps(s, u, steps):
    """S(p, q, k, k + b) and U(q, n, k + b), with b first."""
    points = u.shape[2]
    places = neighbours(points, steps)
    return np.array([s[:, :, np.arange(points), row] for row in places]), np.array([u[:, :, row] for row in places])


def density(s, u, steps):
    """ρ(n, b) of Eq. 56."""
    near, ahead = overlaps(s, u, steps)
    return np.einsum("pnk,bpqk,bqnk->nb", u.conj(), near, ahead)


def spread(s, w, u):
    return np.sum(w * np.abs(density(s, u, len(w))) ** 2)


def by_hand(s, w, u):
    """2 Σ_{b,q} (w(b) + w(b)') ρ(n, b)' U(q, n, k + b) S(p, q, k, k + b): Eq. 58 where w is real."""
    near, ahead = overlaps(s, u, len(w))
    return 2 * np.einsum("b,nb,bqnk,bpqk->pnk", w + w.conj(), density(s, u, len(w)).conj(), ahead, near)


@pytest.mark.slow
def test_eq_58_with_the_density_kept_is_one_term_with_factor_four():
    assert oracle.squeezed(gradient(REAL_WEIGHTS)) == oracle.squeezed(KEPT)


def test_eq_58_in_latex():
    tex = gradient(REAL_WEIGHTS).latex()
    assert r"4 \sum_{q,b} S_{p,q,k,k+b}\, w_{b}\, \rho_{n,b}^{*} U_{q,n,k+b}" in tex
    assert r"\mathbf{let}\ \rho_{n,b} = \sum_{p,q,k}" in tex


@pytest.mark.parametrize("expand", [False, True])
def test_eq_57_and_58_are_one_term_with_each_weight_once_and_no_delta(expand):
    d = gradient(REAL_WEIGHTS, expand=expand)
    (body,) = oracle.outputs(d)
    assert oracle.factors_in_front(body) == [4]
    assert str(d).count("w(b)") == 1
    assert oracle.slot_names(d) == [("p", "n", "k")]
    assert not oracle.has_delta(d)


def test_eq_57_with_the_density_multiplied_out_is_one_sum_of_one_product():
    d = gradient(REAL_WEIGHTS, expand=True)
    (body,) = oracle.outputs(d)
    assert not oracle.opened(d)[1]
    assert oracle.sums_in(body) == 1
    (whole,) = [t for t in subterms(body) if isinstance(t, Sum)]
    assert len(whole.indices) == 5
    # which images under the symmetry of S are written is a matter of taste
    formula = str(d).split("(p, n, k::BZ) ->")[1]
    assert [formula.count(f"{name}(") for name in ("S", "w", "U", "rho")] == [2, 1, 3, 0]
    assert "+ S(" not in formula


@pytest.mark.slow
def test_complex_weights_leave_two_times_the_weight_and_its_conjugate():
    d = gradient(COMPLEX_WEIGHTS)
    (body,) = oracle.outputs(d)
    assert oracle.factors_in_front(body) == [2]
    result = oracle.squeezed(d).split("(p,n,k::BZ)->")[1]
    assert re.search(r"\((w\(b\)\+w\(b\)'|w\(b\)'\+w\(b\))\)", result)
    assert result.count("rho(") == result.count("S(") == result.count("U(") == 1


def test_complex_weights_multiplied_out_leave_no_delta_and_no_density():
    d = gradient(COMPLEX_WEIGHTS, expand=True)
    (body,) = oracle.outputs(d)
    assert set(oracle.factors_in_front(body)) == {2}
    assert "rho" not in str(d)
    assert not oracle.has_delta(d)


@pytest.mark.parametrize("text", [ANY_WEIGHTS, ANY_OVERLAPS])
def test_without_one_of_the_two_symmetries_there_is_no_single_term_with_factor_four(text):
    (body,) = oracle.outputs(gradient(text))
    assert set(oracle.factors_in_front(body)) == {2}


@pytest.mark.slow
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_eq_58_as_numbers(seed, sizes):
    t = oracle.trial(gradient(REAL_WEIGHTS), seed, **shapes(*sizes))
    expected = by_hand(t["S"], t["w"], t["U"])
    oracle.close(t.result(), expected)
    oracle.close(t.run(), expected)
    oracle.agrees_with_differences(t)


@pytest.mark.parametrize("sizes", SMALL)
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_eq_57_as_numbers(seed, sizes):
    t = oracle.trial(gradient(REAL_WEIGHTS, expand=True), seed, **shapes(*sizes))
    expected = by_hand(t["S"], t["w"], t["U"])
    oracle.close(t.result(), expected)
    oracle.close(t.run(), expected)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_complex_weights_as_numbers(seed, sizes):
    t = oracle.trial(gradient(COMPLEX_WEIGHTS), seed, **shapes(*sizes))
    expected = by_hand(t["S"], t["w"], t["U"])
    oracle.close(t.result(), expected)
    oracle.close(t.run(), expected)
    oracle.agrees_with_differences(t)


@pytest.mark.slow
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_complex_weights_multiplied_out_as_numbers(seed):
    t = oracle.trial(gradient(COMPLEX_WEIGHTS, expand=True), seed, **shapes(2, 1, 3, 3))
    oracle.close(t.run(), by_hand(t["S"], t["w"], t["U"]))


@pytest.mark.slow
@pytest.mark.parametrize("text", [ANY_WEIGHTS, ANY_OVERLAPS])
@pytest.mark.parametrize("sizes", SMALL)
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_without_one_of_the_two_symmetries_as_numbers(seed, sizes, text):
    t = oracle.trial(gradient(text), seed, **shapes(*sizes))
    oracle.close(t.run(), t.result())
    oracle.agrees_with_differences(t)


@pytest.mark.slow
@pytest.mark.parametrize("text", [REAL_WEIGHTS, COMPLEX_WEIGHTS])
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_pullback_with_a_complex_cotangent(seed, text):
    t = oracle.trial(pullback(text), seed, **shapes(2, 2, 3, 3))
    oracle.close(t.run(), t.result())
    oracle.agrees_with_differences(t)


@pytest.mark.slow
@pytest.mark.parametrize("expand", [False, True])
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_hessian_vector_product_of_the_spread(seed, expand):
    t = oracle.trial(hessian(REAL_WEIGHTS, expand=expand), seed, **shapes(1, 2, 3, 3))
    oracle.close(t.run(), t.result())
    oracle.agrees_with_second_differences(t)


@pytest.mark.slow
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_eq_55_the_spread_comes_with_its_gradient(seed):
    t = oracle.trial(gradient(REAL_WEIGHTS), seed, **shapes(2, 2, 3, 3))
    value, found = t.run(value=True)
    oracle.close(value, spread(t["S"], t["w"], t["U"]))
    oracle.close(t.objective(), spread(t["S"], t["w"], t["U"]))
    oracle.close(found, by_hand(t["S"], t["w"], t["U"]))


def test_eq_56_the_density_that_is_kept_is_the_one_that_the_user_wrote():
    d = gradient(REAL_WEIGHTS)
    _, shared, _ = oracle.opened(d)
    assert list(shared) == ["rho"]
    assert isinstance(shared["rho"], Lam) and shared["rho"].body.type != REAL


@pytest.mark.slow
@pytest.mark.parametrize("text", [REAL_WEIGHTS, COMPLEX_WEIGHTS])
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_gradient_is_the_conjugate_of_what_jax_returns(seed, text):
    jnp = pytest.importorskip("jax.numpy")
    t = oracle.trial(gradient(text), seed, **shapes(2, 2, 3, 5))
    places = neighbours(3, 5)

    def f(u):
        rho = jnp.stack(
            [jnp.einsum("pnk,pqk,qnk->n", u.conj(), t["S"][:, :, np.arange(3), row], u[:, :, row]) for row in places], 1
        )
        return jnp.sum(t["w"] * (rho.conj() * rho)).real

    oracle.close(t.run(), oracle.jax_gradient(f, t["U"]))
