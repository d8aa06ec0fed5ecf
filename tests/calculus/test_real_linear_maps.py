"""Maps that are linear over the real numbers and not over the complex ones, such as x ↦ x' and x ↦ Re x."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import combdiff as cd

SPACE = "@space L begin type = ((N) -> C) -> ((N) -> C); linear = true end\n"
MAPS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "conjugate": np.conj,
    "real part": lambda v: v.real + 0j,
    "times i": lambda v: 1j * v,
}
OBJECTIVES: dict[str, Callable[[Callable[[np.ndarray], np.ndarray], np.ndarray], complex]] = {
    "sum(i, abs2(D(k -> im * h(k))(i)))": lambda D, h: (abs(D(1j * h)) ** 2).sum(),
    "real(sum(i, D(k -> im * h(k))(i) * D(h)(i)))": lambda D, h: (D(1j * h) * D(h)).sum().real,
    "imag(sum(i, (2 * D(h)(i) + im * D(k -> h(k)^2)(i)) * h(i)))": lambda D, h: (
        ((2 * D(h) + 1j * D(h**2)) * h).sum().imag
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_no_complex_number_passes_through_a_declared_map(objective: str, name: str) -> None:
    D, f = MAPS[name], OBJECTIVES[objective]
    adjoint = {"times i": lambda v: -1j * v}.get(name, D)
    d = cd.grad(f"{SPACE}(D::L) -> (h::CV) -> {objective}")
    assert d.check()
    rng = np.random.default_rng(len(objective))
    h, v = (rng.normal(size=4) + 1j * rng.normal(size=4) for _ in range(2))
    value, gradient = d.compile(value=True)(D=D, adjoint_D=adjoint, h=h)
    assert np.isclose(value, f(D, h))
    slope = (f(D, h + 1e-6 * v) - f(D, h - 1e-6 * v)) / 2e-6
    assert np.isclose((gradient.conj() @ v).real, slope.real, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "(B::CM) -> (h::CV) -> imag(sum(i, inverse((v::CV) -> i -> sum(j, B(i, j) * v(j)'))(h)(i)))",
        "(B::CM) -> (h::CV) -> imag(sum(i, inverse((v::CV) -> i -> v(i) + sum(j, B(i, j) * v(j)'))(h)(i)))",
        "(B::CM) -> (h::CV) ->"
        " real(sum(i, inverse((v::CV) -> i -> v(i) + sum(j, B(i, j) * v(j)'))(k -> im * h(k))(i)))",
    ],
)
def test_no_complex_number_passes_through_an_inverse_that_conjugates(text: str) -> None:
    assert cd.grad(text).check()
