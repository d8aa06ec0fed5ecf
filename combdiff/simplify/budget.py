"""The time that a derivation may take; what was spent is remembered, so that a result can say what was left undone."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from time import perf_counter

SPENT = "budget spent: like terms may be left unmerged"


class OutOfTime(Exception):
    """The search for canonical names was broken off."""


@dataclass(slots=True)
class Budget:
    """A deadline on the clock of `time.perf_counter`, and whether something was left undone because of it.

    >>> budget = Budget()
    >>> budget.over(), budget.spent
    (False, False)
    """

    deadline: float = inf
    spent: bool = False

    def over(self) -> bool:
        """Whether time is up; to be asked only where work is then left undone."""
        if perf_counter() > self.deadline:
            self.spent = True
            return True
        return False

    def check(self) -> None:
        """Raise OutOfTime if time is up."""
        if self.over():
            raise OutOfTime

    @property
    def left(self) -> float:
        """Seconds that are left, negative ones if time is up."""
        return self.deadline - perf_counter()
