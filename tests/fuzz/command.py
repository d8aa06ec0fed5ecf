"""The command line: a run of some minutes or programs, or one program again."""

from __future__ import annotations

import argparse
import time

from .case import Case
from .programs import program
from .running import run, tried
from .statistics import Statistics


def main(argv: list[str] | None = None) -> int:
    """Exit status 0 if nothing failed."""
    parser = argparse.ArgumentParser("python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--programs", type=int, default=0, help="stop after so many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0, help="the first program's number")
    parser.add_argument("--program", metavar="SEED:NUMBER", help="run one program again")
    parser.add_argument("--no-shrink", action="store_true")
    args = parser.parse_args(argv)
    if args.program:
        return one(args.program)
    return many(args)


def one(which: str) -> int:
    seed, number = map(int, which.split(":"))
    p, verdict = run(seed, number)
    print(Case(p).text)
    print(f"weather {verdict.weather}, modes {', '.join(verdict.modes)}")
    for name, kind, message in verdict.failures:
        print(f"FAILED {name} ({kind}): {message}")
    print(*verdict.skipped, *verdict.refused, sep="\n")
    return bool(verdict.failures)


def many(args: argparse.Namespace) -> int:
    end = time.monotonic() + 60 * args.minutes
    statistics = Statistics()
    number = args.start
    while time.monotonic() < end and not (args.programs and number - args.start >= args.programs):
        started = time.monotonic()
        p, verdict = run(args.seed, number)
        took = time.monotonic() - started
        statistics.note(p, verdict, took)
        for name, kind, message in verdict.failures:
            print(f"\n--- {args.seed}:{number} {name} ({kind}): {message}", flush=True)
            print(Case(p).text, flush=True)
        if took > 8:
            print(f"\n--- {args.seed}:{number} slow: {took:.1f} s\n{Case(p).text}", flush=True)
        number += 1
    print(statistics)
    return bool(statistics.failures)


__all__ = ["main", "program", "tried"]
