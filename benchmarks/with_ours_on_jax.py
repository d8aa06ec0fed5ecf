"""Contender "ours_on_jax": `jit` of the function that `source("jax", value=True)` defines, without any checks."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.contenders import Run, Spelling
from benchmarks.problems import PROBLEMS, Array, Problem
from benchmarks.with_ours import emitted

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")


def _spelling(problem: Problem) -> Spelling:
    def make(**arrays: Array) -> Run:
        function, names = emitted(problem, "jax")
        compiled = jax.jit(function)
        given = [jnp.asarray(np.ascontiguousarray(arrays[name])) for name in names]
        return lambda: jax.block_until_ready(compiled(*given))

    return Spelling('source("jax")', make)


SPELLINGS = {problem.key: (_spelling(problem),) for problem in PROBLEMS}
