"""Random programs with whole matrices have the values and slopes that fifty digits give."""

from __future__ import annotations

import pytest

from tests.fuzz.whole import complaints

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

FOUND = {
    1048: "the factor of K + I is not that of K",
    1263: "the adjoint of a factor is no factor in matrix form",
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(8), *FOUND])
def test_random_programs_have_the_values_and_slopes_of_many_digits(seed: int) -> None:
    text, found = complaints(seed)
    assert not found, text


@pytest.mark.slow
def test_a_wrong_slope_is_a_complaint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.whole.STEP", "0.3")
    assert any(complaints(seed)[1] for seed in (1, 2, 3, 8))
