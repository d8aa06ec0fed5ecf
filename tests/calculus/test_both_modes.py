"""All programs at hand in forward mode and as Jacobians, each held against differences of the oracle."""

from __future__ import annotations

import pytest

import combdiff as cd
from combdiff.errors import UnsupportedError
from tests.programs import PROGRAMS
from tests.thinned import thinned

EXAMPLES = [name for name in PROGRAMS if name.startswith("examples")]
OF_FUNCTIONS = ("least_action", "convolution")
"""What is varied there are functions of numbers, which no list of entries holds."""


def _agrees(mode: str, name: str) -> None:
    text, _ = PROGRAMS[name]
    try:
        assert getattr(cd, mode)(text).check()
    except UnsupportedError as refusal:
        if not name.endswith(OF_FUNCTIONS) and not name.startswith("docs"):
            raise
        assert any(what in str(refusal) for what in ("numbers", "real line", "map of maps"))


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_tangents_of_the_examples_agree_with_differences(name: str) -> None:
    _agrees("jvp", name)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("mode", ["jvp", "jacobian", "simplified"])
@pytest.mark.parametrize("name", thinned(PROGRAMS, 2))
def test_every_program_agrees_with_differences_in_every_mode(name: str, mode: str) -> None:
    _agrees(mode, name)
