"""Proves that the generator finds faults: takes a mend back in a copy of the sources, and runs until it is found.

    python -m tests.fuzz.proof 1 5 --minutes 10 --seed 1

A fault is a patch in `taken_back/` that makes mended code wrong again, as small as can be. It is found by a program
that fails in the copy and passes in the sources as they are. The patches are applied by `git apply`.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATCHES = Path(__file__).with_name("taken_back")
COPIED = ("combdiff", "rules", "grammar", "tests")


@dataclass(frozen=True)
class Fault:
    """What a patch takes back; `way` is the mode that is asked for if one alone can see it, else all are."""

    title: str
    patch: str
    way: str = ""


FAULTS = {
    1: Fault("a common factor is taken out as often as some term has it", "common_factor.patch"),
    2: Fault("checks at size 2 alone, and the fault of the common factor", "common_factor_at_size_two.patch", "check"),
    3: Fault("the derivative by a compared real number is dropped", "compared_reals.patch"),
    4: Fault("a function parameter that is renamed is called by its old name", "renamed_functions.patch"),
    5: Fault("a size that is printed has the name of a value", "size_names.patch"),
    6: Fault("the check of symmetries compares with the largest entry, or with nan", "symmetry_scale.patch"),
    7: Fault("a law of matrix form drops a factor", "matrix_law.patch"),
    8: Fault("a factor is taken out of its guard", "guards.patch"),
    9: Fault("the derivative of sign is (1 - sign²)/(2|x|)", "sign_of_reals.patch"),
    10: Fault("a power of a power under a fraction is not merged", "powers.patch"),
    11: Fault("the adjoint of a loop forgets what reads its states on the way", "loop_cotangents.patch"),
}


@dataclass
class Found:
    """The program that showed a fault, after how long, and what it printed."""

    program: str
    seconds: float
    symptom: str


def main(argv: list[str] | None = None) -> int:
    """Exit status 0 if every fault that was asked for is found."""
    parser = argparse.ArgumentParser("python -m tests.fuzz.proof", description="Take a mend back, and look for it.")
    parser.add_argument("faults", type=int, nargs="*", help="numbers; all whose patches are there, if none is given")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args(argv)
    missed = []
    for number in args.faults or [n for n, f in FAULTS.items() if (PATCHES / f.patch).exists()]:
        fault = FAULTS[number]
        print(f"fault {number}: {fault.title}", flush=True)
        found = proved(fault, args.minutes, args.seed, args.jobs)
        if found is None:
            missed.append(number)
            print(f"NOT found in {args.minutes} minutes", flush=True)
        else:
            print(f"found after {found.seconds:.0f} s by {found.program}\n{found.symptom}\n", flush=True)
    return bool(missed)


def proved(fault: Fault, minutes: float, seed: int, jobs: int) -> Found | None:
    """The first program that fails with the fault and passes without."""
    with tempfile.TemporaryDirectory() as folder:
        broken = Path(folder)
        spoil(broken, fault)
        command = [
            *_python("tests.fuzz"),
            "--minutes",
            str(minutes),
            "--seed",
            str(seed),
            "--jobs",
            str(jobs),
            "--shrink",
            "0",
        ]
        began = time.monotonic()
        process = subprocess.Popen(command, cwd=broken, env=_environment(broken), stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None, "a pipe"
            for line in process.stdout:
                match = re.match(r"--- (\d+:\d+) failed", line)
                if match and passes(match[1], ROOT):
                    again = once(match[1], broken)
                    return Found(match[1], time.monotonic() - began, again.stdout)
        finally:
            process.kill()
            process.wait()
    return None


def spoil(folder: Path, fault: Fault) -> None:
    """Copy the sources to a folder and take the mend back there."""
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    patch = PATCHES / fault.patch
    done = subprocess.run(["git", "apply", "-p1", str(patch)], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{patch.name} does not apply any more, and is to be written anew:\n{done.stderr}")


def passes(program: str, root: Path) -> bool:
    return once(program, root).returncode == 0


def once(program: str, root: Path) -> subprocess.CompletedProcess[str]:
    """One program in one copy of the sources."""
    command = [*_python("tests.fuzz"), "--program", program, "--shrink", "0"]
    return subprocess.run(command, cwd=root, env=_environment(root), capture_output=True, text=True, check=False)


def _python(module: str) -> list[str]:
    return [sys.executable, "-W", "ignore", "-m", module]


def _environment(root: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(root)}


if __name__ == "__main__":
    sys.exit(main())
