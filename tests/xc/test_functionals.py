"""Energies and potentials of the functionals of `examples/xc/`, against mpmath with fifty digits, and against libxc."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd

pytest.importorskip("mpmath")

from tests.xc.comparing import (
    QUICK,
    SPINS,
    assert_as_good_as_libxc,
    drawn,
    of_libxc,
    parameters,
    text_of,
    with_digits,
)
from tests.xc.in_mpmath import ENERGIES


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
