"""From what a plan computes to how: the loops that pay, or those that a limit of memory asks for."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from combdiff.codegen.backends.spelling import Spelling
from combdiff.codegen.liveness import peak
from combdiff.codegen.loops import USUAL, Costs, with_loops
from combdiff.codegen.memory import within
from combdiff.codegen.plan import Plan, Step
from combdiff.errors import UnsupportedError


def scheduled(
    plan: Plan, spelling: Spelling, memory: int | None = None, apart: Collection[Step] = (), costs: Costs = USUAL
) -> Plan:
    """The plan with loops, where the library has them; those of steps `apart` are theirs alone.

    Raises BudgetError where no loops keep its arrays below `memory` bytes.
    """
    check_memory(spelling, memory)
    fused = with_loops(plan, costs, apart) if spelling.fuses else plan
    if memory is None or peak(fused).bytes <= memory:
        return fused
    tight = replace(fused, memory=memory)
    return tight if peak(tight).bytes <= memory else within(plan, memory, apart)


def check_memory(spelling: Spelling, memory: int | None) -> None:
    """A limit is for libraries in which loops are written."""
    if memory is not None and not spelling.empty:
        raise UnsupportedError(
            f"memory= limits code with loops that write into arrays, and code for {spelling.name} has none",
            remedy='choose the backend "numpy", "cupy" or "torch", or leave memory= out',
        )
