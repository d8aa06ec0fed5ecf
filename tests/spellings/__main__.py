"""`python -m tests.spellings --runs 1000 --seed 1`: respellings of programs in turn, and those that cost otherwise."""

from __future__ import annotations

import sys
from argparse import ArgumentParser

from combdiff.arrays.passes.contractions import sharing
from tests.spellings.costs import PROGRAMS, differences


def main() -> int:
    """1 if a respelling costs more or less than its program."""
    parser = ArgumentParser("tests.spellings", description="the costs of respellings")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=20_000)
    parser.add_argument("names", nargs="*", help="the programs; all of them if none is named")
    given = parser.parse_args()
    sharing._LEAST = 0  # sizes that nobody tells are small
    names = given.names or [*PROGRAMS]
    found = []
    for run in range(given.runs):
        for difference in differences(names[run % len(names)], given.seed + run // len(names)):
            found.append(difference)
            print(difference, flush=True)
    print(f"{given.runs} respellings, {len(found)} costs that differ")
    return bool(found)


sys.exit(main())
