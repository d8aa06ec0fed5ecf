"""What compares a stage's result with what it was made of; whoever simplifies hands one in, as `gate` is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from combdiff.budget import Budget
from combdiff.terms.terms import Term
from combdiff.terms.types import Interval


class Check(Protocol):
    """Compares terms within a budget of its own."""

    budget: Budget
    intervals: Sequence[Interval]

    def same(self, before: Term, after: Term, stage: str, accused: Callable[[], str]) -> bool:
        """Raise CheckError, naming `stage` and what is `accused`, if the values differ; whether there was something
        to compare.
        """

    def agree(self, before: Term, after: Term) -> bool:
        """Whether two terms have the same value."""
