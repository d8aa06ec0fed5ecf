"""The types that editors see: a file of a user's passes mypy and pyright, and a wrong one does not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONSUMER = Path(__file__).with_name("consumer.py")
ROOT = CONSUMER.parents[1]
WRONG = (
    "cd.grad(3)",
    "cd.grad(ENERGY).compile(values=True)",
    "cd.grad(ENERGY).nothing",
    "cd.grad(ENERGY).compile(value=True)(1) + 1",
)


def checked(checker: list[str], file: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MYPYPATH": str(ROOT)}
    command = [sys.executable, "-m", *checker, str(file)]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("checker", (["mypy", "--strict"], ["basedpyright", "--level", "error"]), ids=lambda c: c[0])
def test_a_users_file(checker: list[str], tmp_path: Path) -> None:
    pytest.importorskip(checker[0])
    done = checked(checker, CONSUMER)
    assert done.returncode == 0, done.stdout + done.stderr
    for line in WRONG:
        wrong = tmp_path / "wrong.py"
        wrong.write_text(f"{CONSUMER.read_text(encoding='utf-8')}\n\n{line}\n", encoding="utf-8")
        assert checked(checker, wrong).returncode, f"{checker[0]} lets pass: {line}"
