"""Contender "ours": what `compile(value=True)` makes of a program, and with `pack=` where a tensor is symmetric."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import combdiff as cd
from benchmarks.contenders import Run, Spelling
from benchmarks.problems import PROBLEMS, Array, Problem
from combdiff.run.compiled import Compiled
from combdiff.run.executing import compile_source


def compiled(problem: Problem, expand: bool = False, backend: str = "numpy", pack: tuple[str, ...] = ()) -> Compiled:
    """The callable for value and derivative of a problem; with `expand`, both are multiplied out."""
    derivative = {"grad": cd.grad, "hvp": cd.hvp}[problem.mode]
    return derivative(problem.text, expand=expand).compile(backend, value=True, pack=pack)


def emitted(problem: Problem, backend: str) -> tuple[Callable[..., object], list[str]]:
    """The function for value and derivative that the source for another library defines, and its arguments."""
    f = compiled(problem, backend=backend)
    return compile_source(f.source, f._name), [a.name for a in f.arguments]


def _spelling(problem: Problem, expand: bool = False, pack: tuple[str, ...] = ()) -> Spelling:
    def make(**arrays: Array) -> Run:
        f = compiled(problem, expand, pack=pack)
        return lambda: f(**arrays)

    label = "expand=True" if expand else f"pack={pack}" if pack else "compile(value=True)"
    return Spelling(label, make, plain=not expand and not pack)


SPELLINGS = {
    problem.key: [_spelling(problem), *([_spelling(problem, pack=problem.pack)] if problem.pack else [])]
    for problem in PROBLEMS
}
# a loss that is less work when it is multiplied out
SPELLINGS["polyadic"].append(_spelling(next(p for p in PROBLEMS if p.key == "polyadic"), expand=True))


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
