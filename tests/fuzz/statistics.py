"""What a run has tried: programs up to renaming, their sizes, constructs, skips, refusals, failures."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from .constructs import constructs
from .running import Verdict
from .signature import signature
from .syntax import Program
from .walks import nodes

LARGE = 20
REFUSALS = frozenset({"refused", "check error", "timeout"})
"""Kinds of failures where a user has an error in words, or none in time, and no wrong number."""


@dataclass
class Statistics:
    """Counts that grow from program to program."""

    tried: int = 0
    large: int = 0
    seen: set[int] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    wrong: int = 0
    modes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def note(self, program: Program, verdict: Verdict, seconds: float) -> None:
        """One more program."""
        self.tried += 1
        self.seconds += seconds
        mark = signature(program)
        if mark not in self.seen:
            self.seen.add(mark)
            self.large += nodes(program) >= LARGE
            self.counts.update(constructs(program))
        self.skipped.update(verdict.skipped)
        self.refused.update(verdict.refused)
        self.modes.update(verdict.modes)
        self.failures.update(f"{name} ({kind})" for name, kind, _ in verdict.failures)
        self.wrong += any(kind not in REFUSALS for _, kind, _ in verdict.failures)

    def __str__(self) -> str:
        distinct = len(self.seen)
        lines = [
            f"{self.tried} programs, {distinct} distinct up to renaming, {self.large} of them of {LARGE} nodes or "
            f"more, {self.tried / max(self.seconds, 1e-9):.1f} a second of the processor",
            "constructs: " + _listed(self.counts),
            "modes: " + _listed(self.modes),
            "skipped: " + _listed(self.skipped),
            "refused, as documented: " + _listed(self.refused),
            "failures: " + _listed(self.failures),
        ]
        return "\n".join(lines)


def _listed(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counter.items(), key=lambda p: -p[1])) or "none"
