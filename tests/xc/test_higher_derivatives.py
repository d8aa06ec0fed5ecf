"""Second and third derivatives of the functionals of `examples/xc/`, against mpmath with fifty digits, and libxc."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest

import combdiff as cd

pytest.importorskip("mpmath")

from benchmarks.libxc_names import LIBXC
from tests.xc.comparing import (
    QUICK,
    SPINS,
    Numbers,
    assert_as_good_as_libxc,
    drawn,
    of_libxc,
    parameters,
    text_of,
    with_digits,
)
from tests.xc.in_mpmath import ENERGIES

GGA = [name for name in ENERGIES if not LIBXC[name].startswith("MGGA")]


@cache
def kernel(name: str, spin: str) -> cd.Derivation:
    """The Hessian product of a functional."""
    return cd.hvp(text_of(name, spin))


def units(unknowns: list[str], v: str, count: int) -> list[Numbers]:
    """Tangents of ones in one variable."""
    return [np.full(count, float(u == v)) for u in unknowns]


def assert_derivatives(
    name: str, spin: str, order: int, count: int, along: Callable[[list[str], tuple[str, ...]], Any]
) -> None:
    """`along(unknowns, by)` are the derivatives by the variables in `by` of the potentials, in the order of these."""
    unknowns = parameters(text_of(name, spin))
    libxc, exact = of_libxc(name, spin, order, count), dict[tuple[str, ...], list[Any]]()
    for by in combinations_with_replacement(unknowns, order - 1):
        found = along(unknowns, by)
        for u, ours in zip(unknowns, found if isinstance(found, tuple) else (found,), strict=True):
            key = tuple(sorted((*by, u), key=SPINS[spin].index))
            if key not in exact:
                exact[key] = with_digits(name, spin, key, count)
            if max(map(abs, exact[key])) < 1e-30:
                assert not ours.any(), "what differentiates to 0 is 0 exactly"
            else:
                assert_as_good_as_libxc(ours, libxc[key], exact[key])


SLOW = pytest.mark.slow
LONG = pytest.mark.long


def second() -> list[Any]:
    found = []
    for spin in SPINS:
        for name in ENERGIES:
            quick = name in QUICK if spin == "unpolarised" else name in ("slater", "pbe_x")
            count = (30 if name in GGA else 12) // (1 if spin == "unpolarised" else 3)
            found.append(pytest.param(name, spin, count, marks=SLOW if quick else LONG, id=f"{spin}-{name}"))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("name", "spin", "count"), second())
def test_hessian_products_are_as_good_as_second_derivatives_of_libxc(name: str, spin: str, count: int) -> None:
    """A Hessian product with a tangent of ones in one variable holds the second derivatives by it, entry by entry."""
    product, p = kernel(name, spin).compile(), drawn(count)

    def along(unknowns: list[str], by: tuple[str, ...]) -> Any:
        return product(np.ones(count), *(p[u] for u in unknowns), *units(unknowns, by[0], count))

    assert_derivatives(name, spin, 2, count, along)


def third() -> list[Any]:
    cases = [(name, spin) for spin in SPINS for name in GGA]
    slow = {("slater", "unpolarised"), ("vwn5", "unpolarised"), ("pbe_x", "unpolarised"), ("slater", "polarised")}
    return [
        pytest.param(n, s, 15 if s == "unpolarised" else 5, marks=SLOW if (n, s) in slow else LONG, id=f"{s}-{n}")
        for n, s in cases
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "spin", "count"), third())
def test_slopes_of_hessian_products_are_as_good_as_third_derivatives_of_libxc(name: str, spin: str, count: int) -> None:
    """A Hessian product is a program; its derivative along a second tangent holds the third derivatives."""
    p = drawn(count)
    d = kernel(name, spin)
    slope = cd.jvp(str(d), wrt=parameters(text_of(name, spin))).compile()

    def along(unknowns: list[str], by: tuple[str, ...]) -> Any:
        first, other = (units(unknowns, v, count) for v in by)
        return slope(np.ones(count), *first, *(p[u] for u in unknowns), *other)

    assert_derivatives(name, spin, 3, count, along)
