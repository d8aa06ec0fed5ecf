"""From what a plan computes to how: the loops that pay, or those that a limit of memory asks for."""

from __future__ import annotations

import math
import os
from collections.abc import Collection
from dataclasses import replace
from typing import Protocol

from combdiff.arrays import ops
from combdiff.arrays.liveness import peak
from combdiff.arrays.passes.convolutions import with_convolutions_transformed
from combdiff.arrays.passes.fourier import with_fourier_transforms
from combdiff.arrays.passes.gathers.counts import with_counts
from combdiff.arrays.passes.gathers.moving import moved
from combdiff.arrays.passes.gathers.sparse import with_sparse_products
from combdiff.arrays.passes.gathers.tables import with_tables
from combdiff.arrays.passes.gathers.windows import with_windows
from combdiff.arrays.passes.logistic import with_exponentials_shared
from combdiff.arrays.passes.loops.captured import with_contiguous_captures
from combdiff.arrays.passes.loops.checkpoints import with_checkpoints
from combdiff.arrays.passes.loops.filters import with_filters
from combdiff.arrays.passes.loops.memory import within
from combdiff.arrays.passes.loops.read_once import USUAL, Costs, with_loops
from combdiff.arrays.passes.loops.stored import with_values_stored
from combdiff.arrays.passes.loops.summed import with_sums_in_loops
from combdiff.arrays.passes.masks import with_masks_once
from combdiff.arrays.plan import Plan, Scan, Step
from combdiff.errors import BudgetError, UnsupportedError


class Library(Protocol):
    """What is asked of an array library: whether loops pay in it, and how an array to write into is made."""

    @property
    def name(self) -> str: ...

    @property
    def fuses(self) -> bool: ...

    @property
    def empty(self) -> str: ...

    @property
    def add_at(self) -> str: ...

    @property
    def sparse(self) -> str: ...

    @property
    def counts(self) -> str: ...

    @property
    def filters(self) -> bool: ...

    @property
    def windows(self) -> bool: ...

    @property
    def tables(self) -> bool: ...

    @property
    def watches(self) -> bool: ...

    @property
    def fill_diagonal(self) -> str: ...

    @property
    def fourier(self) -> str: ...

    @property
    def shares_exponentials(self) -> bool: ...


def scheduled(
    plan: Plan, library: Library, memory: int | None = None, apart: Collection[Step] = (), costs: Costs = USUAL
) -> Plan:
    """The plan with loops, where the library has them; those of steps `apart` are theirs alone.

    Raises BudgetError where no loops keep its arrays below `memory` bytes.
    """
    check_memory(library, memory)
    plan = plan if apart else _suited_within(plan, library, memory)
    plan = _checkpointed(plan, library) if plan.checkpoint else plan
    if library.empty and memory is None and not (apart or plan.loops):
        plan = with_contiguous_captures(with_sums_in_loops(with_values_stored(plan)))
        plan = with_filters(plan) if library.filters and not library.watches else plan
    fused = with_loops(plan, costs, apart) if library.fuses else plan
    if memory is None or peak(fused).bytes <= memory:
        return with_masks_once(fused) if library.fill_diagonal and not apart else fused
    again = replace(with_checkpoints(plan), memory=memory) if not plan.loops and not apart else plan
    for tight in (replace(fused, memory=memory), again):
        if tight.memory is not None and peak(tight).bytes <= memory:
            return tight
    return within(plan, memory, apart)


def _suited_within(plan: Plan, library: Library, memory: int | None) -> Plan:
    """The plan for a library, without windows where these do not fit a limit: loops cut tables, and not windows."""
    found = suited(plan, library)
    if memory is None or not any(isinstance(s.op, ops.Windows) for s in found.steps):
        return found
    return found if peak(replace(found, memory=memory)).bytes <= memory else suited(plan, library, windows=False)


def suited(plan: Plan, library: Library, windows: bool = True) -> Plan:
    """The plan with operations of which a library has quick ones: Fourier transforms; gathers where they cost least."""
    plan = with_convolutions_transformed(with_fourier_transforms(plan)) if library.fourier else plan
    plan = with_windows(plan) if library.windows and windows else plan
    plan = with_exponentials_shared(plan) if library.shares_exponentials else plan
    plan = with_tables(plan) if library.tables else plan
    plan = moved(plan) if library.add_at else plan
    plan = with_sparse_products(plan) if library.sparse else plan
    return with_counts(plan) if library.counts else plan


def _checkpointed(plan: Plan, library: Library) -> Plan:
    """The plan whose loops keep some of their states; there must be one."""
    if not library.empty:
        raise UnsupportedError(
            f"checkpoint= is for code with loops that write into arrays, and code for {library.name} has none",
            remedy='choose the backend "numpy", "cupy" or "torch", or leave checkpoint= out',
        )
    found = with_checkpoints(plan)
    if not found.loops:
        raise UnsupportedError(
            "checkpoint= is for code in which a loop runs backwards over stored states, one step of them at a time, "
            "and there is none",
            remedy="leave checkpoint= out; a sum over the states compares none with its neighbours",
        )
    return found


def check_states(plan: Plan) -> None:
    """A loop begins only if the machine can hold what it stores of its steps."""
    in_blocks = {s for loop in plan.loops for s in loop.steps}
    taken = max((plan.bytes(s) for s in plan.steps if isinstance(s.op, Scan) and s not in in_blocks), default=0)
    if taken > (whole := memory_of_machine()):
        raise BudgetError(
            f"the states of a loop take {taken} bytes, and this machine has {whole}",
            remedy="take fewer steps, or compile(checkpoint=True); the value alone, cd.simplified(…), stores no states",
        )


def memory_of_machine() -> float:
    """The bytes of main memory, infinity where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return math.inf


def check_memory(library: Library, memory: int | None) -> None:
    """A limit is for libraries in which loops are written."""
    if memory is not None and not library.empty:
        raise UnsupportedError(
            f"memory= limits code with loops that write into arrays, and code for {library.name} has none",
            remedy='choose the backend "numpy", "cupy" or "torch", or leave memory= out',
        )
