"""From what a plan computes to how: the loops that pay, or those that a limit of memory asks for."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Protocol

from combdiff.arrays.liveness import peak
from combdiff.arrays.passes.memory import within
from combdiff.arrays.passes.read_once import USUAL, Costs, with_loops
from combdiff.arrays.plan import Plan, Step
from combdiff.errors import UnsupportedError


class Library(Protocol):
    """What is asked of an array library: whether loops pay in it, and how an array to write into is made."""

    @property
    def name(self) -> str: ...

    @property
    def fuses(self) -> bool: ...

    @property
    def empty(self) -> str: ...


def scheduled(
    plan: Plan, library: Library, memory: int | None = None, apart: Collection[Step] = (), costs: Costs = USUAL
) -> Plan:
    """The plan with loops, where the library has them; those of steps `apart` are theirs alone.

    Raises BudgetError where no loops keep its arrays below `memory` bytes.
    """
    check_memory(library, memory)
    fused = with_loops(plan, costs, apart) if library.fuses else plan
    if memory is None or peak(fused).bytes <= memory:
        return fused
    tight = replace(fused, memory=memory)
    return tight if peak(tight).bytes <= memory else within(plan, memory, apart)


def check_memory(library: Library, memory: int | None) -> None:
    """A limit is for libraries in which loops are written."""
    if memory is not None and not library.empty:
        raise UnsupportedError(
            f"memory= limits code with loops that write into arrays, and code for {library.name} has none",
            remedy='choose the backend "numpy", "cupy" or "torch", or leave memory= out',
        )
