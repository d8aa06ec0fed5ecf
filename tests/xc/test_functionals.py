"""The functionals of `examples/xc/`: values and derivatives against mpmath with fifty digits, and against libxc."""

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

import combdiff as cd
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


def mark(name: str, spin: str) -> list[pytest.MarkDecorator]:
    if name in QUICK:
        return [pytest.mark.slow] if spin == "polarised" else []
    return [pytest.mark.slow if name in ("vwn5", "lyp", "tpss_x") and spin == "unpolarised" else pytest.mark.long]


CASES = [pytest.param(n, s, marks=mark(n, s), id=f"{s}-{n}") for s in SPINS for n in ENERGIES]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "spin"), CASES)
def test_energies_and_potentials_are_as_good_as_those_of_libxc(name: str, spin: str) -> None:
    count = 200 if name in QUICK else 60
    text, p = text_of(name, spin), drawn(count)
    unknowns = parameters(text)
    d = cd.grad(text, wrt=["w", *unknowns])
    ours = d.compile()(np.ones(count), *(p[v] for v in unknowns))
    libxc = of_libxc(name, spin, 1, count)
    total = p["rho"]
    assert_as_good_as_libxc(ours[0], libxc[()] * total, with_digits(name, spin, (), count))
    for v, found in zip(unknowns, ours[1:], strict=True):
        assert_as_good_as_libxc(found, libxc[v,], with_digits(name, spin, (v,), count))


SECOND = [(n, "unpolarised") for n in ("slater", "vwn5", "pw92", "pbe_x", "b88")]
SECOND += [(n, "polarised") for n in ("slater", "pbe_x")]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "spin"), SECOND)
def test_hessian_products_are_as_good_as_second_derivatives_of_libxc(name: str, spin: str) -> None:
    """A Hessian product with a tangent of ones in one variable holds the second derivatives by it, entry by entry."""
    count = 30
    text, p = text_of(name, spin), drawn(count)
    unknowns = parameters(text)
    product = cd.hvp(text).compile()
    libxc = of_libxc(name, spin, 2, count)
    for v in unknowns:
        tangents = [np.full(count, float(u == v)) for u in unknowns]
        ours = product(np.ones(count), *(p[u] for u in unknowns), *tangents)
        ours = ours if isinstance(ours, tuple) else (ours,)
        for u, found in zip(unknowns, ours, strict=True):
            first, second = sorted((u, v), key=SPINS[spin].index)
            exact = with_digits(name, spin, (first, second), count)
            if any(exact):
                assert_as_good_as_libxc(found, libxc[first, second], exact)
            else:
                assert not found.any()
