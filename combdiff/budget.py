"""Limits of a derivation: seconds, and nodes of its largest e-graph. A spent limit is recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from time import perf_counter

from combdiff.records import dataclass

SPENT = "budget spent"

SECONDS = 60.0
"""The time that simplification may take, unless the user says otherwise."""

NODES = 100_000
"""The nodes that an e-graph may have, unless the user says otherwise."""


class OutOfTime(Exception):
    """The time of a budget is up."""


@dataclass(slots=True)
class Budget:
    """A deadline on the clock of `time.perf_counter`, a number of nodes, and whether they left something undone.

    `largest` is the largest number of nodes that was met; `observer` is called whenever the clock is looked at.

    >>> budget = Budget(nodes=100)
    >>> budget.over(), budget.spent, budget.exceeded(101), budget.spent
    (False, False, True, True)
    """

    deadline: float = inf
    nodes: float = inf
    spent: bool = False
    largest: int = 0
    observer: Callable[[], None] | None = None

    @classmethod
    def of(cls, seconds: float, nodes: float = inf) -> Budget:
        """A budget of `seconds` from now on."""
        return cls(perf_counter() + seconds, nodes)

    def over(self) -> bool:
        """Whether time is up; to be asked only where work is then left undone."""
        if self.observer is not None:
            self.observer()
        if perf_counter() > self.deadline:
            self.spent = True
            return True
        return False

    def exceeded(self, nodes: int) -> bool:
        """Whether `nodes` are too many; to be asked only where work is then left undone."""
        self.largest = max(self.largest, nodes)
        if nodes > self.nodes:
            self.spent = True
            return True
        return False

    @contextmanager
    def halved(self) -> Iterator[None]:
        """Within, there is half of the time that is left, so that what comes later has some too."""
        deadline = self.deadline
        self.deadline = (perf_counter() + deadline) / 2
        try:
            yield
        finally:
            self.deadline = deadline

    def check(self) -> None:
        """Raise OutOfTime if time is up."""
        if self.over():
            raise OutOfTime
