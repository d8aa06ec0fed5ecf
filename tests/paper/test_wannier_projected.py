"""Section 6.4: the projected gradient of the spread, which Wannier90 uses, beside the gradient of Eq. 58."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import combdiff as cd

from . import oracle
from .test_listing_5_wannier import by_hand, shapes, spread

DECLARATIONS = oracle.example("wannier").partition("(S::Mmn")[0]
SPREAD = """(S::Mmn, w::SV) -> (U::Gauge) -> begin
  spread = (U::Gauge) -> begin
    rho = (n::N, b::X) -> sum((k::BZ, p, q), U(p, n, k)' * S(p, q, k, k + b) * U(q, n, k + b))
    sum((n, b::X), w(b) * rho(n, b)' * rho(n, b))
  end
  G = grad(spread)(U)
"""
ANTIHERMITIAN = (
    f"{DECLARATIONS}{SPREAD}"
    "  (m, n, k::BZ) -> (sum(p, U(p, m, k)' * G(p, n, k)) - sum(p, G(p, m, k)' * U(p, n, k))) / 2\nend"
)
"""(U†G − G†U)/2 at each k: the gradient by X of the gauge U exp(X), for anti-Hermitian X."""
TANGENT = (
    f"{DECLARATIONS}{SPREAD}"
    "  (p, n, k::BZ) -> G(p, n, k)"
    " - sum((q, m), U(p, m, k) * (U(q, m, k)' * G(q, n, k) + G(q, m, k)' * U(q, n, k))) / 2\nend"
)
"""G − U (U†G + G†U)/2: the gradient on the manifold of orthonormal columns."""
simplified = cache(cd.simplified)


def unitary(rng, bands, functions, points):
    """A gauge: orthonormal columns at each k, in the last axis."""
    z = rng.standard_normal((points, bands, bands)) + 1j * rng.standard_normal((points, bands, bands))
    return np.moveaxis(np.linalg.qr(z)[0][:, :, :functions], 0, -1)


def exponential(x):
    """exp of an anti-Hermitian matrix at each k."""
    values, vectors = np.linalg.eigh(1j * np.moveaxis(x, -1, 0))
    found = (vectors * np.exp(-1j * values)[:, None, :]) @ vectors.conj().swapaxes(1, 2)
    return np.moveaxis(found, 0, -1)


def turned(u, x):
    """U exp(X) at each k."""
    return np.einsum("pmk,mnk->pnk", u, exponential(x))


def data(seed, *sizes):
    t = oracle.trial(simplified(ANTIHERMITIAN), seed, **shapes(*sizes))
    return t["S"], t["w"], unitary(t.rng, *sizes[:3])


@pytest.mark.parametrize("text", [ANTIHERMITIAN, TANGENT])
def test_the_projected_gradient_is_made_of_eq_58_once(text):
    written = str(simplified(text))
    assert "G = (p, n, k::BZ) -> 4 * sum((q, b::X), S(p, q, k, k + b) * w(b) * rho(n, b)' * U(q, n, k + b))" in written
    assert written.count("S(p, q") == 2 and "grad" not in written


@pytest.mark.sampled
@pytest.mark.parametrize("sizes", [(2, 2, 3, 3), (3, 2, 2, 5), (1, 1, 4, 3)])
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_projected_gradient_as_numbers(seed, sizes):
    s, w, u = data(seed, *sizes)
    g = by_hand(s, w, u)
    product = np.einsum("pmk,pnk->mnk", u.conj(), g)
    adjoint = product.conj().swapaxes(0, 1)
    oracle.close(simplified(ANTIHERMITIAN).compile()(s, w, u), (product - adjoint) / 2)
    oracle.close(simplified(TANGENT).compile()(s, w, u), g - np.einsum("pmk,mnk->pnk", u, product + adjoint) / 2)


@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_projected_gradient_is_the_derivative_along_gauges(seed):
    """d/dt Ω(U exp(t X)) = Re⟨P, X⟩ for every anti-Hermitian X."""
    s, w, u = data(seed, 2, 2, 3, 3)
    p = simplified(ANTIHERMITIAN).compile()(s, w, u)
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((2, 2, 3)) + 1j * rng.standard_normal((2, 2, 3))
    x = z - z.conj().swapaxes(0, 1)
    oracle.close(oracle.slope(lambda t: spread(s, w, turned(u, t * x))), oracle.inner(p, x), 1e-8)


@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_on_unitary_gauges_both_forms_are_one(seed):
    """G − U (U†G + G†U)/2 is U (U†G − G†U)/2, and U† times it is anti-Hermitian."""
    s, w, u = data(seed, 2, 2, 3, 3)
    p, tangent = (simplified(text).compile()(s, w, u) for text in (ANTIHERMITIAN, TANGENT))
    oracle.close(tangent, np.einsum("pmk,mnk->pnk", u, p))
    oracle.close(p, -p.conj().swapaxes(0, 1))


@pytest.mark.slow
def test_the_projected_gradient_vanishes_where_the_gradient_does_not():
    """At a largest Σ w |ρ|² among unitary gauges, found by steps along the projected gradient."""
    s, w, u = data(0, 2, 2, 3, 3)
    w = np.abs(w)
    of = simplified(ANTIHERMITIAN).compile()
    step = 0.1 / np.linalg.norm(by_hand(s, w, u))
    for _ in range(400):
        p = of(s, w, u)
        while spread(s, w, turned(u, step * p)) < spread(s, w, u):
            step /= 2
        u, step = turned(u, step * p), 1.5 * step
    g = by_hand(s, w, u)
    assert np.linalg.norm(of(s, w, u)) < 1e-5 * np.linalg.norm(g)
