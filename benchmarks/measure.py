"""Rows of the table from problems: agreement of all contenders first, then interleaved times, temporaries, overhead."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

import numpy as np

from benchmarks.contenders import CONTENDERS, Outcome, serve
from benchmarks.problems import Array, Problem

TOLERANCE = 1e-10
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_LIBRARIES = {"jax": "jax", "ours_on_jax": "jax", "torch": "torch", "ours_on_torch": "torch"}
_MOST_CALLS = 20


class Disagreement(Exception):
    """Two contenders do not compute the same."""


@dataclass(frozen=True)
class Times:
    """Seconds of one spelling, a list for each round."""

    contender: str
    label: str
    plain: bool
    rounds: list[list[float]]

    @property
    def median(self) -> float:
        """The median of all calls."""
        return statistics.median(s for found in self.rounds for s in found)

    @property
    def least(self) -> float:
        """The quickest call."""
        return min(s for found in self.rounds for s in found)


@dataclass(frozen=True)
class Row:
    """What was measured of a problem; `temporaries` in bytes, ours and hand-tuned; `overhead` in seconds."""

    name: str
    times: list[Times]
    temporaries: tuple[int, int]
    overhead: float

    def best(self, contender: str, plain: bool = True) -> Times | None:
        """The quickest spelling of a contender, among those that are plain or those that are not."""
        found = [t for t in self.times if t.contender == contender and t.plain == plain]
        return min(found, key=lambda t: t.median, default=None)

    def written(self, contender: str) -> Times | None:
        """The contender's spelling as the formula is written."""
        return next((t for t in self.times if t.contender == contender), None)

    def account(self) -> str:
        """All spellings with their times, a line each."""
        lines = [f"  {t.contender:13} {t.label:45} {t.median * 1e3:9.3f} ({t.least * 1e3:.3f})" for t in self.times]
        return "\n".join([self.name, *lines])


class Contender:
    """A process that runs one contender's spellings; methods of its stand are called through a pipe."""

    def __init__(self, name: str) -> None:
        context = multiprocessing.get_context("spawn")
        self.name = name
        self._connection: Connection
        self._connection, theirs = context.Pipe()
        self.process: SpawnProcess = context.Process(target=serve, args=(theirs, name), daemon=True)
        self.process.start()
        theirs.close()

    def ask(self, method: str, *arguments: object) -> object:
        """The answer of the process; RuntimeError with its traceback if it failed."""
        self._connection.send((method, arguments))
        done, answer = self._connection.recv()
        if not done:
            raise RuntimeError(f"{self.name}, {method}:\n{answer}")
        return answer

    def stop(self) -> None:
        """Let the process end."""
        self._connection.close()
        self.process.join(10)


def one_thread(core: int | None = None) -> None:
    """One thread and, where the system allows it, one processor, for this process and those that it starts."""
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    os.environ["JAX_PLATFORMS"] = "cpu"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0)) if core is None else core})


def started() -> dict[str, Contender]:
    """A process for each contender whose library is installed."""
    there = [c for c in CONTENDERS if c not in _LIBRARIES or importlib.util.find_spec(_LIBRARIES[c])]
    return {name: Contender(name) for name in there}


def stopped(contenders: Mapping[str, Contender]) -> None:
    """End the processes."""
    for contender in contenders.values():
        contender.stop()


def measured(problem: Problem, contenders: Mapping[str, Contender], quick: bool, rounds: int, seconds: float) -> Row:
    """Check that all contenders agree on the problem, then time them in turn."""
    found: list[tuple[Contender, int, Times]] = []
    expected: list[Array] | None = None
    for contender in contenders.values():
        outcomes = contender.ask("prepare", problem.key, quick)
        assert isinstance(outcomes, list)
        for which, outcome in enumerate(outcomes):
            expected = expected or outcome.outputs
            agree(problem.name, contender.name, outcome, expected)
            found.append((contender, which, Times(contender.name, outcome.label, outcome.plain, [])))
    for _ in range(rounds):
        for contender, which, times in found:
            answer = contender.ask("times", which, seconds, _MOST_CALLS)
            assert isinstance(answer, list)
            times.rounds.append(answer)
    row = Row(problem.name, [times for *_, times in found], (0, 0), 0.0)
    return Row(
        row.name, row.times, _temporaries(row, contenders), _number(contenders["ours"].ask("overhead", problem.key))
    )


def agree(row: str, contender: str, outcome: Outcome, expected: list[Array]) -> None:
    """Raise Disagreement if a result differs by more than 10⁻¹⁰ of its largest entry."""
    if len(outcome.outputs) != len(expected):
        raise Disagreement(f"{row}: {contender}, {outcome.label}, has {len(outcome.outputs)} results")
    for number, (ours, theirs) in enumerate(zip(expected, outcome.outputs, strict=True), 1):
        difference = np.abs(ours - theirs).max() / np.abs(ours).max() if ours.shape == theirs.shape else np.inf
        if not difference <= TOLERANCE:
            raise Disagreement(f"{row}: result {number} of {contender}, {outcome.label}, differs by {difference:.1e}")


def _temporaries(row: Row, contenders: Mapping[str, Contender]) -> tuple[int, int]:
    """Bytes at the peak of a call: ours, and the quickest of the hand-tuned."""
    best = row.best("numpy")
    labels = [t.label for t in row.times if t.contender == "numpy"]
    assert best is not None
    ours = _number(contenders["ours"].ask("temporaries", 0))
    return int(ours), int(_number(contenders["numpy"].ask("temporaries", labels.index(best.label))))


def _number(answer: object) -> float:
    assert isinstance(answer, int | float)
    return float(answer)
