"""A functional in `where(1e-15 < rho(i), …)` is 0 below the threshold with all its derivatives, as libxc's is."""

from __future__ import annotations

import re

import numpy as np
import pytest

import combdiff as cd

pytest.importorskip("mpmath")

from benchmarks.libxc_names import LIBXC, THRESHOLDS
from tests.xc.comparing import QUICK, SPINS, parameters, text_of, variables
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


def above_polarised(name: str) -> tuple[str, float]:
    """The program of both spins as libxc guards it, each spin of an exchange functional by itself; the threshold."""
    text = text_of(name, "polarised")
    if name in EXCHANGE:
        least = THRESHOLDS[name] / 2
        guarded, count = re.subn(r"spin\((\w)((?:, [^()]*)?)\)", rf"where({least} < \1, spin(\1\2))", text)
        assert count == 2
        return guarded, least
    least = THRESHOLDS[name]
    guard = rf"sum(i, w(i) * where({least} < rho_up(i) + rho_down(i), \1))\n"
    guarded, count = re.subn(r"sum\(i, w\(i\) \* (f\((?s:.*)\))\)\n", guard, text)
    assert count == 1
    return guarded, least


EXCHANGE = {"slater", "b88", "pbe_x", "tpss_x", "r2scan_x"}
QUICK_POLARISED = {"slater", "pw92", "pbe_x", "b88"}


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in QUICK_POLARISED else pytest.mark.long) for n in ENERGIES]
)
def test_thresholds_of_both_spins_are_libxcs(name: str) -> None:
    libxc = pytest.importorskip("pyscf.dft.libxc")
    text, least = above_polarised(name)
    scale = np.array([0.0, 1e-30, 0.5, 0.98, 3.0, 1e4, 1e6, 1e9, 1e9])
    up, down = least * 0.6 * scale, least * 0.4 * scale
    if name in EXCHANGE:
        down[-1] = 0.0  # no electron of this spin
    slopes = np.cbrt(up) ** 4, 0.5 * np.cbrt(down) ** 4
    taus = [n / 8 * np.cbrt(n) ** 2 + np.cbrt(n) ** 5 for n in (up, down)]
    rows = {"LDA": 1, "GGA": 4, "MGGA": 5}[LIBXC[name].split("_")[0]]
    spins = zip((up, down), slopes, taus, strict=True)
    points = np.array([np.array([n, s, 0 * n, 0 * n, t])[:rows] for n, s, t in spins])
    found = libxc.eval_xc1(LIBXC[name], points, 1, deriv=1)
    theirs = dict(zip(("w", *variables(name, "polarised")), [found[0] * (up + down), *found[1:]], strict=True))
    sigmas = slopes[0] ** 2, slopes[0] * slopes[1], slopes[1] ** 2
    given = dict(zip(SPINS["polarised"], (up, down, *sigmas, *taus), strict=True))
    unknowns = parameters(text)
    with np.errstate(under="ignore"):
        ours = cd.grad(text, wrt=["w", *unknowns]).compile()(np.ones(len(up)), *map(given.get, unknowns))
    for key, result in zip(("w", *unknowns), ours, strict=True):
        assert (result[:4] == 0).all() and (theirs[key][:4] == 0).all()
        assert np.isfinite(result).all()
        np.testing.assert_allclose(result[5:-1], theirs[key][5:-1], rtol=1e-9)
        if not key.endswith(("down", "ud", "dd")):
            # libxc replaces the density of a spin without electrons by its threshold
            np.testing.assert_allclose(result[-1], theirs[key][-1], rtol=1e-7)


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
