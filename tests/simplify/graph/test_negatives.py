"""Sums that turn out to be the negatives of others while factors are taken out of a third one."""

from __future__ import annotations

import pytest

import combdiff as cd

RESIDUAL = "(z(i) - x(i) - y(i) / q(i))"
SQUARES = "(2 + s(i)^2)"
TERMS = (
    f"-2 * {RESIDUAL} / {SQUARES}^2 * w(i) * k(i)",
    f"2 * l(i) / {SQUARES}^2 * x(i) * w(i)",
    f"-2 * s(i)^2 / {SQUARES}^3 * l(i) * x(i) * w(i)",
    f"-2 * s(i)^2 / {SQUARES}^3 * l(i) * y(i) * w(i) / q(i)",
    f"2 * s(i)^2 / {SQUARES}^3 * z(i) * l(i) * w(i)",
    f"2 * s(i)^2 / {SQUARES}^3 * {RESIDUAL} * k(i) * w(i)",
)


@pytest.mark.slow
def test_a_factor_that_was_found_to_be_a_negative_keeps_its_sign() -> None:
    """The factors of a sum were read before one of them became -1 times another class; the gate saw the lost sign."""
    parameters = ", ".join(f"{name}::RV" for name in "kwlxyzqs")
    d = cd.simplified(f"({parameters}) -> i -> {' + '.join(TERMS)}")
    assert any(step.name == "collect and name" and step.changed for step in d.steps)
    assert bool(d.check())
