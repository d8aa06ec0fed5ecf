"""The command line: a run of some minutes or programs, or one program again."""

from __future__ import annotations

import argparse
import re
import time

from .case import Case
from .programs import program
from .running import Verdict, run, smallest, tried
from .statistics import Statistics
from .syntax import Program


def main(argv: list[str] | None = None) -> int:
    """Exit status 0 if nothing failed."""
    parser = argparse.ArgumentParser("python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--programs", type=int, default=0, help="stop after so many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0, help="the first program's number")
    parser.add_argument("--program", metavar="SEED:NUMBER", help="run one program again")
    parser.add_argument("--shrink", type=float, default=30.0, metavar="SECONDS", help="time to make a failing program small")
    parser.add_argument("--known", metavar="PATTERN", default="", help="failures whose message has this are only counted")
    args = parser.parse_args(argv)
    if args.program:
        return one(args.program, args.shrink)
    return many(args)


def one(which: str, seconds: float) -> int:
    seed, number = map(int, which.split(":"))
    p, verdict = run(seed, number)
    print(Case(p).text)
    print(f"weather {verdict.weather}, modes {', '.join(verdict.modes)}")
    for name, kind, message in verdict.failures:
        print(f"FAILED {name} ({kind}): {message}")
    print(*verdict.skipped, *verdict.refused, sep="\n")
    if verdict.failures and seconds:
        shown(p, verdict, seconds)
    return bool(verdict.failures)


def shown(p: Program, verdict: Verdict, seconds: float) -> None:
    """The smallest program with the same failure."""
    small, plain = smallest(p, verdict, seconds)
    print(f"smallest, data {verdict.weather}:\n{Case(small, plain=plain).text}", flush=True)


def many(args: argparse.Namespace) -> int:
    end = time.monotonic() + 60 * args.minutes
    statistics = Statistics()
    number = args.start
    while time.monotonic() < end and not (args.programs and number - args.start >= args.programs):
        started = time.process_time()
        p, verdict = run(args.seed, number)
        took = time.process_time() - started
        statistics.note(p, verdict, took)
        if args.known:
            verdict.failures = [f for f in verdict.failures if not re.search(args.known, f"{f[1]}: {f[2]}")]
        for name, kind, message in verdict.failures:
            print(f"\n--- {args.seed}:{number} {name} ({kind}): {message}", flush=True)
        if verdict.failures:
            print(Case(p).text, flush=True)
            if args.shrink:
                shown(p, verdict, args.shrink)
        if took > 8:
            print(f"\n--- {args.seed}:{number} slow: {took:.1f} s\n{Case(p).text}", flush=True)
        number += 1
    print(statistics)
    return bool(statistics.failures)


__all__ = ["main", "program", "tried"]
