"""Contender "ours": what `compile(value=True)` makes of the program's text."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import combdiff as cd
from benchmarks.contenders import Run, Spelling
from benchmarks.problems import PROBLEMS, Array, Problem
from combdiff.codegen.compiled import Compiled


def compiled(problem: Problem) -> Compiled:
    """The callable for value and derivative of a problem."""
    derivative = {"grad": cd.grad, "hvp": cd.hvp}[problem.mode]
    return derivative(problem.text).compile(value=True)


def _spelling(problem: Problem) -> Spelling:
    def make(**arrays: Array) -> Run:
        f = compiled(problem)
        return lambda: f(**arrays)

    return Spelling("compile(value=True)", make)


SPELLINGS = {problem.key: (_spelling(problem),) for problem in PROBLEMS}


def overhead(problem: Problem) -> float:
    """Seconds of a call on tiny arrays beyond those of the emitted function, which is called with the same arrays."""
    f, arrays = compiled(problem), problem.arrays(quick=True)
    f(**arrays)
    (emitted,) = f._by_sizes.values()
    given = [arrays[a.name] for a in f.arguments]

    def seconds(call: Callable[[], object], calls: int = 20) -> float:
        start = time.perf_counter()
        for _ in range(calls):
            call()
        return (time.perf_counter() - start) / calls

    rounds = [(seconds(lambda: f(*given)), seconds(lambda: emitted(*given))) for _ in range(50)]
    return statistics.median(whole - bare for whole, bare in rounds)
