"""Break the project in one place at a time and say which faults no test notices.

    python -m tests.mutants                      all of them, in about an hour and a half on two cores
    python -m tests.mutants --only "B rule"      those whose names hold a text
    python -m tests.mutants --list               their names

A mutant is noticed if a test fails, or takes over ten times as long as it should. One that none of its tests notices is
a survivor: it is listed in `survivors.txt` with the reason why it may, or the exit status is 1.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

from tests.mutants import code, laws, rows
from tests.mutants.mutant import ROOT, Mutant

SURVIVORS = Path(__file__).with_name("survivors.txt")
LEFT_OUT = (".git", ".venv", "__pycache__", ".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache", "notebooks")
LONGEST = 600.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant: the test that noticed it, or none."""

    mutant: Mutant
    noticed: str
    seconds: float

    def __str__(self) -> str:
        said = "noticed" if self.noticed else "SURVIVED"
        return f"{said:8}  {self.seconds:4.0f} s  {self.mutant.name}  {self.noticed}"


def all_mutants() -> Iterator[Mutant]:
    """Every mutant: of laws, of rows, of code."""
    yield from laws.mutants()
    yield from rows.mutants()
    yield from code.mutants()


def known_survivors() -> dict[str, str]:
    """The names of mutants that may survive, and why: a line `name  --  reason` each."""
    lines = SURVIVORS.read_text(encoding="utf-8").splitlines()
    entries = [line.split("  --  ") for line in lines if line.strip() and not line.startswith("#")]
    return {name.strip(): reason.strip() for name, reason in entries}


@contextmanager
def copies(count: int) -> Iterator[Queue[Path]]:
    """Copies of the project to be broken, so that the project itself never is."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        free: Queue[Path] = Queue()
        for n in range(count):
            place = Path(folder) / str(n)
            shutil.copytree(ROOT, place, ignore=shutil.ignore_patterns(*LEFT_OUT))
            free.put(place)
        yield free


def tried(mutant: Mutant, free: Queue[Path]) -> Verdict:
    """Run the tests that should notice the mutant."""
    place = free.get()
    file = place / mutant.file
    before = file.read_text(encoding="utf-8")
    start = time.perf_counter()
    try:
        file.write_text(mutant.text, encoding="utf-8")
        noticed = _first_failure(place, mutant.tests)
    finally:
        file.write_text(before, encoding="utf-8")
        free.put(place)
    return Verdict(mutant, noticed, time.perf_counter() - start)


def _first_failure(place: Path, tests: Sequence[str]) -> str:
    """The test that fails first; empty if all pass. Of a file and its folder, one pytest would run the folder alone."""
    end = time.perf_counter() + LONGEST
    return next(filter(None, (_failure(place, test, end - time.perf_counter()) for test in tests)), "")


def _failure(place: Path, tests: str, seconds: float) -> str:
    """The first test in a file or folder that fails; empty if all pass."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-m",
        "",
        "-x",
        "-q",
        "--no-header",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        tests,
    ]
    environment = {**os.environ, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=place, env=environment, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return "(too slow)"
    if done.returncode == 0:
        return ""
    told = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return told[0].split(" - ")[0] if told else f"(exit status {done.returncode})"


def main() -> int:
    """Run the mutants that were asked for; 1 if one survives that is not known to."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="those whose names hold this text")
    parser.add_argument("--list", action="store_true", help="print names and end")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    options = parser.parse_args()
    chosen = [m for m in all_mutants() if options.only in m.name]
    if options.list:
        print(*(m.name for m in chosen), sep="\n")
        return 0
    known = known_survivors()
    survivors = []
    with copies(options.jobs) as free, ThreadPoolExecutor(options.jobs) as pool:
        for verdict in pool.map(lambda m: tried(m, free), chosen):
            print(verdict, flush=True)
            if not verdict.noticed:
                survivors.append(verdict.mutant.name)
    new = [name for name in survivors if name not in known]
    print(f"{len(chosen)} mutants, {len(survivors)} survived, {len(new)} of them without a reason in survivors.txt")
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
