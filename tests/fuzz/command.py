"""The command line: a run of some minutes or programs, or one program again."""

from __future__ import annotations

import argparse
import re
import secrets
import time
import warnings

from .case import Case
from .programs import program
from .running import Verdict, run, smallest
from .statistics import Statistics
from .syntax import Program
from .workers import limit_memory, tried_programs

SLOW = 8.0


def main(argv: list[str] | None = None) -> int:
    """Exit status 0 if nothing failed."""
    parser = argparse.ArgumentParser(
        "python -m tests.fuzz", description="Random programs against an oracle of their own."
    )
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--programs", type=int, default=0, help="stop after so many")
    parser.add_argument("--seed", type=int, help="without it, a fresh one, which is printed")
    parser.add_argument("--start", type=int, default=0, help="the first program's number")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once; 0: none but this one")
    parser.add_argument("--program", metavar="SEED:NUMBER", help="run one program again")
    parser.add_argument(
        "--shrink", type=float, default=30.0, metavar="SECONDS", help="time to make a failing program small"
    )
    parser.add_argument(
        "--known", metavar="PATTERN", default="", help="failures whose message has this are only counted"
    )
    parser.add_argument(
        "--lenient", action="store_true", help="exit with 0 also where programs are refused that should not be"
    )
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    limit_memory()
    if args.program:
        return one(args.program, args.shrink)
    return many(args)


def one(which: str, seconds: float) -> int:
    """One program again, with all that is to be said of it."""
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
    """Programs until the time is over; each failure when it is found, statistics at the end."""
    seed = secrets.randbelow(10**6) if args.seed is None else args.seed
    print(f"seed {seed}", flush=True)
    end = time.monotonic() + 60 * args.minutes
    statistics = Statistics()
    for number, verdict, took in tried_programs(seed, args.start, args.jobs, end, args.programs):
        p = program(seed, number)
        statistics.note(p, verdict, took)
        unknown = [f for f in verdict.failures if not (args.known and re.search(args.known, f"{f[1]}: {f[2]}"))]
        if unknown:
            told(p, seed, number, verdict, unknown)
            if args.shrink:
                verdict.failures = unknown
                shown(p, verdict, args.shrink)
        if took > SLOW:
            print(f"\n--- {seed}:{number} slow: {took:.1f} s\n{Case(p).text}", flush=True)
    print(statistics)
    return bool(statistics.wrong if args.lenient else statistics.failures)


def told(p: Program, seed: int, number: int, verdict: Verdict, failures: list[tuple[str, str, str]]) -> None:
    """What failed, with the program and the command that runs it again."""
    print(f"\n--- {seed}:{number} failed (data {verdict.weather}); python -m tests.fuzz --program {seed}:{number}")
    for name, kind, message in failures:
        print(f"{name} ({kind}): {message}")
    print(Case(p).text, flush=True)
