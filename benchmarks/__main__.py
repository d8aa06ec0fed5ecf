"""Emitted code beside hand-tuned NumPy, JAX and PyTorch: `python -m benchmarks [ROW] [--quick]`.

Every contender has a process of its own, all on one processor and one thread, and their repetitions are interleaved.
All must agree to 10⁻¹⁰ before anything is timed. Times are medians, with the least in brackets.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.measure import Disagreement, Row, measured, one_thread, started, stopped
from benchmarks.problems import PROBLEMS
from benchmarks.table import machine, table


def arguments() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("row", nargs="?", default="", help="rows whose name or key holds this")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: a smoke test, whose times mean nothing")
    parser.add_argument("--rounds", type=int, default=12, help="interleaved repetitions (12)")
    parser.add_argument(
        "--seconds", type=float, default=0.05, help="of calls in a row, a repetition and spelling (0.05)"
    )
    parser.add_argument("--core", type=int, help="the processor that all contenders run on (the last one)")
    parser.add_argument("--output", type=Path, help="a file that the Markdown table is written to, too")
    return parser.parse_args()


def main() -> int:
    """Print the table, a row as it is measured to standard error; 1 if contenders disagree."""
    asked = arguments()
    problems = [p for p in PROBLEMS if asked.row in p.name or asked.row == p.key]
    if not problems:
        print(f"no row holds {asked.row!r}: choose from {', '.join(p.key for p in PROBLEMS)}", file=sys.stderr)
        return 2
    one_thread(asked.core)
    contenders = started()
    rows: list[Row] = []
    try:
        for problem in problems:
            if not problem.available:
                print(f"{problem.name}: left out, there is no examples/{problem.program}", file=sys.stderr)
                continue
            rows.append(measured(problem, contenders, asked.quick, 2 if asked.quick else asked.rounds, asked.seconds))
            print(rows[-1].account(), file=sys.stderr, flush=True)
    except Disagreement as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        stopped(contenders)
    text = "\n".join([machine(contenders), "", table(rows)])
    print(text)
    if asked.output:
        asked.output.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
