"""Reductions that start from ±∞, of numbers that libraries compute as integers: conditions with whole numbers."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd

_COUNT = "where(j <= 1, 3)"
VALUES = {
    f"abs({_COUNT})": [3, 3, 0],
    f"sign({_COUNT})": [1, 1, 0],
    f"relu({_COUNT})": [3, 3, 0],
    f"floor({_COUNT})": [3, 3, 0],
    f"min({_COUNT}, 2)": [2, 2, 0],
    f"max({_COUNT}, 2)": [3, 3, 2],
    f"clip({_COUNT}, 1, 2)": [2, 2, 1],
    f"({_COUNT})^2": [9, 9, 0],
    "prod(i::N{n}, where(i <= j, 2, 1))": [2, 4, 8],
    "-abs(j - 1)": [-1, 0, -1],
}


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("library", ["numpy", "jax", "torch"])
def test_extrema_and_shares_of_integers(value: str, library: str) -> None:
    if library != "numpy":
        pytest.importorskip(library)
    if library == "jax":
        pytest.importorskip("jax").config.update("jax_enable_x64", True)
    numbers = np.array(VALUES[value], dtype=float)
    reductions = (f"{kind}(j::N{{n}}, {value})" for kind in ("maximum", "minimum", "logsumexp"))
    program = f"(x::RV{{n}}) -> {' + '.join(f'x({n}) * {of}' for n, of in enumerate(reductions))}"
    found = np.asarray(cd.grad(program).compile(library)(np.ones(3)))
    expected = [numbers.max(), numbers.min(), np.logaddexp.reduce(numbers)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
