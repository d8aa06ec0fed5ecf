"""Random programs with whole matrices have the values and slopes that fifty digits give."""

from __future__ import annotations

import pytest

from tests.fuzz.whole import Exact, complaints

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

FOUND = {
    1048: "the factor of K + I is not that of K",
    1263: "the adjoint of a factor is no factor in matrix form",
    2711564: "exponentials of what roots make regular overflow",
    2711863: "a direction that is no number",
    2711997: "functions of functions of a matrix bind one index twice",
}

HEAVY = (2711997,)
"""Programs that take half a minute."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(s, marks=pytest.mark.long) if s in HEAVY else s for s in FOUND)]
)
def test_random_programs_have_the_values_and_slopes_of_many_digits(seed: int) -> None:
    text, found = complaints(seed)
    assert not found, text


@pytest.mark.slow
def test_a_wrong_slope_is_a_complaint(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Exact.slope
    monkeypatch.setattr(Exact, "slope", lambda *args: (f := right(*args)) and (f[0] * (1 + 1e-6), f[1]))
    found = [complaint for seed in (1, 3) for complaint in complaints(seed)[1]]
    assert any("slope by" in c for c in found) and any("Hessian" in c for c in found)
