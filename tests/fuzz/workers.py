"""Processes that try programs, and the one that watches them: it ends a process that no alarm can end."""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from .running import Verdict, run

MEMORY = 6 * 2**30
PATIENCE = 240.0  # seconds by the clock for one program, whose own alarm counts the processor's


@dataclass
class _Worker:
    process: BaseProcess
    pipe: Connection
    number: int
    since: float


def limit_memory() -> None:
    """A program that takes too much memory gets a MemoryError, and not the machine."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def tried_programs(seed: int, start: int, jobs: int, end: float, most: int = 0) -> Iterator[tuple[int, Verdict, float]]:
    """Numbers of programs with their verdicts and the seconds that they took, until the time `end` or after `most`.

    Without `jobs` the programs are tried in this process, which a crash of one then ends.
    """
    if not jobs:
        number = start
        while time.monotonic() < end and not (most and number - start >= most):
            began = time.process_time()
            _, verdict = run(seed, number)
            yield number, verdict, time.process_time() - began
            number += 1
        return
    yield from _by_workers(seed, start, jobs, end, most)


def _by_workers(seed: int, start: int, jobs: int, end: float, most: int) -> Iterator[tuple[int, Verdict, float]]:
    context = multiprocessing.get_context("spawn")
    following = start
    workers: list[_Worker] = []

    def more() -> bool:
        return time.monotonic() < end and not (most and following - start >= most)

    for _ in range(jobs):
        if more():
            workers.append(_started(context, seed, following))
            following += 1
    while workers:
        ready = wait([w.pipe for w in workers], timeout=1.0)
        for w in list(workers):
            if w.pipe in ready:
                found = _received(w)
                yield w.number, *found
                if more() and w.process.is_alive():
                    w.number, w.since = following, time.monotonic()
                    w.pipe.send(following)
                else:
                    _ended(w)
                    workers.remove(w)
                    if more():
                        workers.append(_started(context, seed, following))
                    else:
                        continue
                following += 1
            elif time.monotonic() - w.since > PATIENCE:
                _ended(w)
                workers.remove(w)
                yield (
                    w.number,
                    Verdict(failures=[("time", "hang", f"not done after {PATIENCE} s, nor ended by an alarm")]),
                    PATIENCE,
                )
                if more():
                    workers.append(_started(context, seed, following))
                    following += 1


def _received(w: _Worker) -> tuple[Verdict, float]:
    try:
        found: tuple[Verdict, float] = w.pipe.recv()
    except (EOFError, OSError):
        return Verdict(failures=[("time", "died", "the process ended: out of memory, or a crash")]), 0.0
    return found


def _started(context: Any, seed: int, number: int) -> _Worker:
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(seed, there), daemon=True)
    process.start()
    there.close()
    here.send(number)
    return _Worker(process, here, number, time.monotonic())


def _ended(w: _Worker) -> None:
    w.pipe.close()
    w.process.kill()
    w.process.join()


def _serve(seed: int, pipe: Connection) -> None:
    """In the process: try the programs whose numbers come, as long as some come."""
    import warnings

    warnings.simplefilter("ignore")
    limit_memory()
    with suppress(EOFError, OSError):  # nobody asks or listens any more
        while True:
            number = pipe.recv()
            began = time.process_time()
            _, verdict = run(seed, number)
            pipe.send((verdict, time.process_time() - began))
