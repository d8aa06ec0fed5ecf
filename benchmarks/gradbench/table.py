"""The table of `benchmarks/README.md`.

python -m benchmarks.gradbench.table FOLDER [eval …] [--rounds N] [--torch PATH] [--options OPTIONS]

FOLDER is a copy of GradBench with its program `run`, which judges every answer; PATH is where PyTorch is installed, if
it is not beside combdiff. In each round the tools answer an eval one after another, on one thread: ours on NumPy, ours
on JAX, the hand-written C++, and GradBench's own tools for JAX and PyTorch, if they have it. A time is the median of
the rounds, each of which has the median of the calls of a message, in milliseconds, from converted arrays to the
finished result. Deriving is in a column of its own; so is what comes before the calls that count, for NumPy and for
JAX: arrays are converted, and code is compiled and called once.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.gradbench.evals import EVALS
from benchmarks.measure import one_thread

TOOL = f"{sys.executable} -m benchmarks.gradbench"
OURS = {"NumPy": f"{TOOL} --library numpy", "ours on JAX": f"{TOOL} --library jax"}
TOOLS = OURS | {"C++": "manual", "JAX": "jax", "PyTorch": "pytorch"}
HAVE = {
    "C++": EVALS.keys() - {"saddle", "particle"},
    "JAX": {"hello", "lse", "llsq", "ode", "kmeans", "gmm"},
    "PyTorch": {"hello", "lse", "kmeans", "gmm", "ba", "ht", "lstm"},
}
TITLES = ["eval", "function", "sizes", "derive, s", "compile on NumPy, s", "on JAX, s", *TOOLS]
RATIOS = ["ours / C++", "ours / JAX, PyTorch"]
Message = tuple[str, str]


@dataclass
class Row:
    """What all rounds say of a message: times by tool, verdicts that are not valid, and seconds before the calls."""

    times: dict[str, list[float]] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)
    before: dict[str, list[float]] = field(default_factory=dict)

    def time(self, tool: str) -> float | None:
        return median(self.times[tool]) if tool in self.times and tool not in self.wrong else None

    def cell(self, tool: str) -> str:
        """A time, or why there is none."""
        ms = self.time(tool)
        return self.wrong.get(tool, "–") if ms is None else f"{ms:.3g}"

    def seconds(self, what: str) -> str:
        return f"{median(self.before[what]):.2g}" if what in self.before else "–"

    def ratio(self, *others: str) -> str:
        """The quicker of ours to the quicker of others."""
        ours, theirs = ([t for tool in some if (t := self.time(tool))] for some in (OURS, others))
        return f"{min(ours) / min(theirs):.2f}" if ours and theirs else "–"


def asked(folder: Path, tool: str, name: str, torch: str, options: list[str]) -> tuple[list[Any], list[Any]]:
    """The verdicts of `run` on an eval's messages, and what our tool records of them."""
    with tempfile.NamedTemporaryFile("r") as verdicts, tempfile.NamedTemporaryFile("r") as record:
        command = TOOLS[tool] + f" --record {record.name}" * (tool in OURS)
        call = [sys.executable, str(folder / "run"), "--tool", command, "--json", verdicts.name, name]
        paths = [torch] * (tool == "PyTorch") + [os.environ.get("PYTHONPATH", "")]
        env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
        subprocess.run([*call, *options], stdout=subprocess.DEVNULL, env=env, check=False)
        return json.loads(verdicts.read() or "[]"), [json.loads(line) for line in record]


def note(rows: dict[Message, Row], tool: str, verdicts: list[Any], record: list[Any]) -> None:
    """Add what a round says. Records come in the order of the messages."""
    records = iter(record)
    for _, function, about, ms, verdict in verdicts:
        row = rows.setdefault((function, about), Row())
        if verdict == "valid" and ms is not None:
            row.times.setdefault(tool, []).append(ms)
        else:
            row.wrong[tool] = verdict
        for what, seconds in next(records, {}).items():
            row.before.setdefault("derive" if what == "derive" else tool, []).append(seconds)


def wait_for_results(folder: Path) -> None:
    """Let the copy of GradBench wait for its tool for JAX, which else is timed until it has asked for its results."""
    wrap = folder / "python/gradbench/gradbench/wrap.py"
    text = wrap.read_text()
    if _WAITS in text:
        return
    assert "output = function(input)\n" in text, "GradBench's wrapper has changed"
    wrap.write_text(text.replace("output = function(input)\n", "output = ready(function(input))\n") + _WAITS)


_WAITS = """

def ready(output):
    import sys

    return sys.modules["jax"].block_until_ready(output) if "jax" in sys.modules else output
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gradbench.table")
    parser.add_argument("folder", type=Path)
    parser.add_argument("evals", nargs="*")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--torch", default="", help="a folder with PyTorch")
    parser.add_argument("--options", default="", help="an eval's own options, as in '-d 64 -k 100'")
    given = parser.parse_args()
    one_thread()  # the tools that are started have it, too
    wait_for_results(given.folder)
    options = ["--", *given.options.split()] if given.options else []
    print(f"| {' | '.join([*TITLES, *RATIOS])} |\n|{' --- |' * (len(TITLES) + len(RATIOS))}")
    for name in given.evals or EVALS:
        rows: dict[Message, Row] = {}
        for tool in [t for t in TOOLS if name in HAVE.get(t, EVALS)] * given.rounds:
            note(rows, tool, *asked(given.folder, tool, name, given.torch, options))
        for (function, about), row in rows.items():
            before = [row.seconds(what) for what in ("derive", *OURS)]
            ratios = [row.ratio("C++"), row.ratio("JAX", "PyTorch")]
            cells = [name, function, about, *before, *map(row.cell, TOOLS), *ratios]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
