"""`python -m benchmarks --quick`: all contenders agree on tiny arrays, and one that is wrong is noticed. No times."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ALTERED = """
import numpy as np
from benchmarks.contenders import Outcome
from benchmarks.measure import Disagreement, agree
right = [np.float64(2), np.array([1 + 1j, 3])]
agree("row", "right", Outcome("label", True, right), right)
unknown = [right[0], np.array([np.nan, 3])]
for wrong in ([np.float64(2 + 1e-9), right[1]], [right[0], right[1].conj()], right[:1], unknown):
    try:
        agree("row", "wrong", Outcome("label", True, wrong), right)
    except Disagreement:
        print("noticed")
"""


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
def test_emitted_code_and_its_peers_agree_on_every_row() -> None:
    """Contenders that disagree by more than 10⁻¹⁰ end the run with 1."""
    done = python("-m", "benchmarks", "--quick")
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if re.match(r"\| .*\d \(", line)]
    left_out = [line for line in done.stderr.splitlines() if "left out" in line]
    assert len(rows) + len(left_out) == 8
    assert len(rows) >= 7
    assert len(re.findall(r"^  numpy ", done.stderr, re.MULTILINE)) >= len(rows)


@pytest.mark.slow
def test_a_contender_that_disagrees_is_noticed() -> None:
    done = python("-c", ALTERED)
    assert done.stdout.split() == ["noticed"] * 4, done.stderr


@pytest.mark.slow
def test_a_row_that_does_not_exist_is_an_error() -> None:
    done = python("-m", "benchmarks", "no such row", "--quick")
    assert done.returncode == 2
    assert "choose from quadratic" in done.stderr
