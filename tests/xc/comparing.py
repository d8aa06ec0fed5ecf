"""Values and derivatives of the functionals of `examples/xc/`: with fifty digits, by libxc, and how they compare."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.libxc_names import LIBXC

pytest.importorskip("mpmath")
from mpmath import diff, mpf  # type: ignore[import-untyped]

from tests.xc.in_mpmath import ENERGIES, unpolarised

FOLDER = Path(__file__).parents[2] / "examples" / "xc"
SPINS = {
    "unpolarised": ("rho", "sigma", "tau"),
    "polarised": ("rho_up", "rho_down", "sigma_uu", "sigma_ud", "sigma_dd", "tau_up", "tau_down"),
}
QUICK = {"slater", "pw92", "pbe_x", "b88"}
"""Functionals whose gradients are derived in a few seconds."""

Numbers = NDArray[np.float64]


def variables(name: str, spin: str) -> tuple[str, ...]:
    """The variables that a functional of libxc has."""
    several = spin == "polarised"
    count = {"LDA": 1 + several, "GGA": 2 + 3 * several, "MGGA": 3 + 4 * several}[LIBXC[name].split("_")[0]]
    return SPINS[spin][:count]


def text_of(name: str, spin: str) -> str:
    return (FOLDER / spin / f"{name}.cd").read_text(encoding="utf-8")


def parameters(text: str) -> list[str]:
    """The unknowns of a program, in its order."""
    return re.findall(r"(\w+)::RV", text)[1:]


@cache
def drawn(count: int) -> dict[str, Numbers]:
    """Densities from 1e-8 to 1e3 of both spins, with gradients and τ that wave functions can have."""
    rng = np.random.default_rng(5)
    total, share = 10 ** rng.uniform(-8, 3, count), rng.uniform(0.02, 0.98, count)
    up, down = total * share, total * (1 - share)
    slopes = [rng.normal(size=(3, count)) * 3 * n ** (4 / 3) for n in (up, down)]
    uu, dd = ((g * g).sum(0) for g in slopes)
    ud = (slopes[0] * slopes[1]).sum(0)
    taus = [g / (8 * n) + rng.exponential(1, count) * 4 * n ** (5 / 3) for g, n in ((uu, up), (dd, down))]
    found = dict(zip(SPINS["polarised"], (up, down, uu, ud, dd, *taus), strict=True))
    # each of the points of a spin alone, twice over, so that both kinds of points are of one list
    return found | {"rho": up + down, "sigma": uu + 2 * ud + dd, "tau": taus[0] + taus[1], "slopes": np.array(slopes)}


def of_libxc(name: str, spin: str, order: int, count: int) -> dict[tuple[str, ...], Numbers]:
    """All derivatives up to an order, by the variables that they are by; the energy is that of a particle."""
    libxc = pytest.importorskip("pyscf.dft.libxc")
    p = drawn(count)
    parts = [np.array([p[f"rho_{s}"], *g, p[f"tau_{s}"]]) for s, g in zip(("up", "down"), p["slopes"], strict=True)]
    rows = {"LDA": 1, "GGA": 4, "MGGA": 5}[LIBXC[name].split("_")[0]]
    several = spin == "polarised"
    points = np.array([part[:rows] for part in parts]) if several else sum(parts)[:rows]
    found = libxc.eval_xc1(LIBXC[name], points, int(several), deriv=order)
    keys: Iterator[tuple[str, ...]] = (
        key for n in range(order + 1) for key in combinations_with_replacement(variables(name, spin), n)
    )
    return dict(zip(keys, found, strict=True))


def with_digits(name: str, spin: str, by: Sequence[str], count: int) -> list[Any]:
    """A derivative by the variables `by`, with fifty digits."""
    own = SPINS[spin]
    energy = ENERGIES[name] if spin == "polarised" else unpolarised(ENERGIES[name])
    p = drawn(count)
    orders = tuple(by.count(v) for v in own)
    return [diff(energy, tuple(mpf(float(p[v][k])) for v in own), orders) for k in range(count)]


def errors(found: Numbers, exact: Sequence[Any]) -> Numbers:
    """How far numbers are from those with fifty digits, in units of these."""
    return np.array([float(abs((mpf(float(a)) - b) / b)) for a, b in zip(found, exact, strict=True)])


def assert_as_good_as_libxc(ours: Numbers, theirs: Numbers, exact: Sequence[Any]) -> None:
    assert np.isfinite(ours).all()
    wrong = errors(ours, exact)
    assert (wrong <= np.maximum(1e-10, errors(theirs, exact))).all(), wrong.max()
