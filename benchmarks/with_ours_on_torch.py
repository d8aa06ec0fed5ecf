"""Contender "ours_on_torch": the function that `source("torch", value=True)` defines, without any checks."""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.contenders import Run, Spelling
from benchmarks.problems import PROBLEMS, Array, Problem
from benchmarks.with_ours import emitted

torch.set_num_threads(1)


def _spelling(problem: Problem) -> Spelling:
    def make(**arrays: Array) -> Run:
        function, names = emitted(problem, "torch")
        given = [torch.from_numpy(np.array(arrays[name])) for name in names]
        return lambda: function(*given)

    return Spelling('source("torch")', make)


SPELLINGS = {problem.key: (_spelling(problem),) for problem in PROBLEMS}
