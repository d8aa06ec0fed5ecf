"""A functional in `where(1e-15 < rho(i), …)` is 0 below the threshold with all its derivatives, as libxc's is."""

from __future__ import annotations

import re

import numpy as np
import pytest

import combdiff as cd

pytest.importorskip("mpmath")

from benchmarks.libxc_names import LIBXC, THRESHOLDS
from tests.xc.comparing import QUICK, parameters, text_of
from tests.xc.in_mpmath import ENERGIES


def above(name: str) -> str:
    """The program of a functional without spin polarisation, 0 below its threshold."""
    text, count = re.subn(
        r"sum\(i, w\(i\) \* (f\(.*\))\)\n",
        rf"sum(i, w(i) * where({THRESHOLDS[name]} < rho(i), \1))\n",
        text_of(name, "unpolarised"),
    )
    assert count == 1
    return text


CASES = [pytest.param(n, marks=[] if n in QUICK - {"pw92"} else pytest.mark.long) for n in ENERGIES]


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", CASES)
def test_below_libxcs_threshold_energy_and_slopes_are_zero(name: str) -> None:
    libxc = pytest.importorskip("pyscf.dft.libxc")
    least = THRESHOLDS[name]
    rho = least * np.array([0.0, 1e-30, 0.5, 0.98, 1.02, 3.0, 1e3, 1e6, 1e9])
    slope = np.cbrt(rho) ** 4
    tau = rho / 8 * np.cbrt(rho) ** 2 + np.cbrt(rho) ** 5
    of_program = {"rho": rho, "sigma": slope**2, "tau": tau}
    rows = {"LDA": 1, "GGA": 4, "MGGA": 5}[LIBXC[name].split("_")[0]]
    points = np.array([rho, slope, 0 * rho, 0 * rho, tau])[:rows]
    theirs = libxc.eval_xc1(LIBXC[name], points, 0, deriv=1)
    unknowns = parameters(text_of(name, "unpolarised"))
    with np.errstate(under="ignore"):
        ours = cd.grad(above(name), wrt=["w", *unknowns]).compile()(np.ones(len(rho)), *map(of_program.get, unknowns))
    assert (ours[0][4:] != 0).all() and (theirs[0][4:] != 0).all()
    for found, expected in zip(ours, [theirs[0] * rho, *theirs[1:]], strict=True):
        assert (found[:4] == 0).all() and (expected[:4] == 0).all()
        assert np.isfinite(found).all()
        # close to its threshold libxc replaces the densities of a spin, σ and τ by thresholds of theirs
        np.testing.assert_allclose(found[6:], expected[6:], rtol=1e-9)


@pytest.mark.slow
def test_second_derivatives_below_a_threshold_are_zero() -> None:
    p = np.array([0.0, 1e-40, 1e-16, 1e-3]), np.array([0.0, 0.0, 1e-9, 1e-4])
    product = cd.hvp(above("pbe_x")).compile()
    found = product(np.ones(4), *p, np.ones(4), np.ones(4))
    plain = cd.hvp(text_of("pbe_x", "unpolarised")).compile()
    expected = plain(np.ones(1), *(x[3:] for x in p), np.ones(1), np.ones(1))
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours[:3] == 0).all()
        np.testing.assert_allclose(ours[3:], theirs, rtol=1e-14)
