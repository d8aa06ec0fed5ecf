"""Water with PBE on PySCF's grid: energy, potential and kernel are those that combdiff derives."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import combdiff as cd

pytest.importorskip("pyscf")
from pyscf import dft, gto

FOLDER = Path(__file__).parents[2] / "examples" / "xc" / "unpolarised"


@cache
def compiled(mode: str) -> list[Any]:
    """Exchange and correlation, compiled."""
    texts = [(FOLDER / f"pbe_{part}.cd").read_text(encoding="utf-8") for part in "xc"]
    if mode == "hvp":
        return [cd.hvp(text).compile() for text in texts]
    return [cd.grad(text, wrt=["w", "rho", "sigma"]).compile() for text in texts]


def eval_xc_eff(xc: str, rho: Any, deriv: int = 1, *_: Any, **__: Any) -> tuple[Any, Any, None, None]:
    """The energy of a particle, and the derivatives of the energy per volume by ρ and ∇ρ."""
    n, slope = np.maximum(rho[0], 1e-15), rho[1:4]
    sigma = np.maximum((slope**2).sum(axis=0), 1e-40)
    parts = [run(np.ones_like(n), n, sigma) for run in compiled("grad")]
    f, v_rho, v_sigma = (sum(p) for p in zip(*parts, strict=True))
    return f / n, np.array([v_rho, *(2 * v_sigma * slope)]), None, None


@cache
def water() -> Any:
    return gto.M(atom="O 0 0 0; H 0 0.757 0.587; H 0 -0.757 0.587", basis="6-31g", verbose=0)


@cache
def converged(ours: bool) -> Any:
    """The calculation, with our functional or with PySCF's."""
    ks = dft.RKS(water(), xc="PBE")
    ks.conv_tol = 1e-12
    if ours:
        ks._numint.eval_xc_eff = eval_xc_eff
    ks.kernel()
    return ks


@pytest.mark.long
def test_the_energy_of_water_is_that_of_pyscf() -> None:
    assert converged(ours=True).converged
    assert converged(ours=True).e_tot == pytest.approx(converged(ours=False).e_tot, abs=1e-9)


@pytest.mark.long
def test_the_potential_moves_along_a_density_by_the_hessian_product() -> None:
    ks = converged(ours=False)
    phi = dft.numint.eval_ao(water(), ks.grids.coords, deriv=1)
    density = ks.make_rdm1()
    rng = np.random.default_rng(0)
    step = rng.normal(size=density.shape)
    step = step + step.T
    rho, change = (dft.numint.eval_rho(water(), phi, p, xctype="GGA") for p in (density, step))
    inside = rho[0] > 1e-8
    rho, change = rho[:, inside], change[:, inside]
    sigma = (rho[1:] ** 2).sum(0)
    tangents = change[0], 2 * (rho[1:] * change[1:]).sum(0)
    ones = np.ones(len(sigma))
    parts = [run(ones, rho[0], sigma, *tangents) for run in compiled("hvp")]
    ours = [sum(p) for p in zip(*parts, strict=True)]
    _, _, second, _ = dft.libxc.eval_xc("PBE,PBE", rho, 0, deriv=2)
    by_rho, mixed, by_sigma = second[:3]
    np.testing.assert_allclose(ours[0], by_rho * tangents[0] + mixed * tangents[1], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(ours[1], mixed * tangents[0] + by_sigma * tangents[1], rtol=1e-8, atol=1e-6)
