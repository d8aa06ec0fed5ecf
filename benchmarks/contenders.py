"""What the contenders share: a spelling of a problem, and the process that runs one contender's spellings.

A contender is a module with `SPELLINGS`, the spellings of each problem by its key. Every contender runs in a process of
its own, which answers requests one at a time, so that the repetitions of all contenders can be interleaved.
"""

from __future__ import annotations

import gc
import importlib
import time
import traceback
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Protocol, TypeAlias

import numpy as np

from benchmarks.problems import PROBLEMS, Array, Arrays

Outputs: TypeAlias = Sequence[object]
Run: TypeAlias = Callable[[], Outputs]


class Make(Protocol):
    """Makes a call that works on the arrays given, by argument name; buffers that it keeps are made here."""

    def __call__(self, **arrays: Array) -> Run: ...


@dataclass(frozen=True)
class Outcome:
    """What a spelling computed."""

    label: str
    plain: bool
    outputs: list[Array]


@dataclass(frozen=True)
class Spelling:
    """One way to write a problem. `plain` is false for options: packed or cached input, a value multiplied out."""

    label: str
    make: Make
    plain: bool = True


Spellings: TypeAlias = Mapping[str, Sequence[Spelling]]
CONTENDERS = ("ours", "numpy", "jax", "ours_on_jax", "torch", "ours_on_torch")


class Stand:
    """A contender with the problem that it is at: what the parent process asks for, by name of the method."""

    def __init__(self, contender: str) -> None:
        self._module = importlib.import_module(f"benchmarks.with_{contender}")
        self._arrays: Arrays = {}
        self._spellings: Sequence[Spelling] = ()
        self._runs: list[Run] = []

    def prepare(self, key: str, quick: bool) -> list[Outcome]:
        """Set the problem up; what each spelling computes. The first spelling is the problem as written."""
        self._runs = []
        self._arrays = next(p for p in PROBLEMS if p.key == key).arrays(quick)
        self._spellings = self._module.SPELLINGS[key]
        self._runs = [s.make(**self._arrays) for s in self._spellings]
        computed = [run() for run in self._runs]
        return [
            Outcome(s.label, s.plain, [np.asarray(o) for o in outputs])
            for s, outputs in zip(self._spellings, computed, strict=True)
        ]

    def times(self, which: int, seconds: float, most: int) -> list[float]:
        """Seconds of calls in a row, one not counted before them: as many as fit, at least two."""
        run = self._runs[which]
        run()
        found: list[float] = []
        gc.disable()
        until = time.perf_counter() + seconds
        while len(found) < 2 or (time.perf_counter() < until and len(found) < most):
            start = time.perf_counter()
            run()
            found.append(time.perf_counter() - start)
        gc.enable()
        return found

    def temporaries(self, which: int) -> int:
        """Bytes that a call needs at its peak, results among them, and that are kept between calls in arrays."""
        arrays_only = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
        tracemalloc.start()
        run = self._spellings[which].make(**self._arrays)
        run()
        gc.collect()
        kept = sum(t.size for t in tracemalloc.take_snapshot().filter_traces([arrays_only]).traces)
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        run()
        peak = tracemalloc.get_traced_memory()[1] - before
        tracemalloc.stop()
        return kept + peak

    def overhead(self, key: str) -> float:
        """Seconds that a call of combdiff's callable takes beyond the emitted function itself, on tiny arrays."""
        return float(self._module.overhead(next(p for p in PROBLEMS if p.key == key)))


def serve(connection: Connection, contender: str) -> None:
    """Answer requests (method, arguments) until the connection closes; a failure is sent back as its text."""
    try:
        stand: Stand | None = None
        while True:
            method, arguments = connection.recv()
            try:
                stand = stand or Stand(contender)
                connection.send((True, getattr(stand, method)(*arguments)))
            except Exception:  # of whatever library: it belongs to the process that asked
                connection.send((False, traceback.format_exc()))
    except (EOFError, KeyboardInterrupt):
        return
