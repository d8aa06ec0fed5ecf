"""What a check found: a report of comparisons."""

from __future__ import annotations

from combdiff.meaning.differences import TOLERANCE
from combdiff.records import dataclass
from combdiff.shown import Shown


@dataclass(frozen=True, slots=True)
class Finding:
    """One comparison: what was compared and the relative difference."""

    what: str
    difference: float

    @property
    def passed(self) -> bool:
        return self.difference <= TOLERANCE


@dataclass(frozen=True, slots=True)
class Report(Shown):
    """The findings of a check; false if one of them failed. `notes` say what could not be compared.

    >>> print(Report((Finding("finite differences", 1e-9), Finding("emitted NumPy code", 0.5))))
    ok      finite differences: relative difference 1.0e-09
    FAILED  emitted NumPy code: relative difference 5.0e-01
    """

    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return all(f.passed for f in self.findings)

    def __repr__(self) -> str:
        return f"<check: {'passed' if self else 'FAILED'}\n{self}>"

    def __str__(self) -> str:
        lines = (
            f"{'ok    ' if f.passed else 'FAILED'}  {f.what}: relative difference {f.difference:.1e}"
            for f in self.findings
        )
        return "\n".join([*lines, *(f"        {note}" for note in self.notes)])
