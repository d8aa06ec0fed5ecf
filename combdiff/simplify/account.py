"""The record of a derivation: its steps, and the observers of a running stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TypeAlias

from combdiff.records import dataclass
from combdiff.shown import Shown
from combdiff.terms.terms import Term

Progress: TypeAlias = Callable[[str, float], None]
"""(the stage that runs, the seconds that it has taken so far) ↦ nothing; called often, and it may raise to stop."""


CANCELS = """The value is multiplied out, too: near zero it is a difference of large terms, and loses their digits.
Where a sum of squares is 1e-14 of its terms (a relative residual of 1e-7), rounding is 1 % of it."""


COLLECT = "collect and name"
"""The stage before which a derivative is a sum of products."""

UNREAD = "unread states"
"""The stage that leaves states out of loops that nothing reads."""

JOIN = "join loops"
"""The stage that makes one loop of those with a common state."""

SOLVE = "solve"
"""The stage that solves affine equations."""


@dataclass(slots=True)
class Family:
    """How often the laws of one family fired, and the seconds they took."""

    matches: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Step(Shown):
    """One stage of a derivation: what it was, the term after it, the laws that fired, and how long it took.

    `seconds` is the time of the stage itself, `checking` that of its numerical check; `spent` says that the budget
    ended before it was done; `nodes` are those of its largest e-graph. `before` is the term that the stage began with,
    if it made the one from the other, and `unused` names the variables whose symmetries it was not to use. `explain`
    finds the words for what the stage did.
    """

    name: str
    term: Term
    families: dict[str, Family] = field(default_factory=dict)
    seconds: float = 0.0
    note: str = ""
    checking: float = 0.0
    spent: bool = False
    nodes: int = 0
    before: Term | None = field(default=None, compare=False)
    unused: tuple[str, ...] = ()
    explain: Callable[[Step], list[str]] | None = field(default=None, compare=False)

    @property
    def heading(self) -> str:
        """The name, the time, and the laws that fired, with how often and for how long.

        >>> from combdiff.terms.terms import ONE
        >>> Step("contract", ONE, {"meet": Family(2, 0.001)}, seconds=0.004).heading
        'contract (4.0 ms; laws: meet ×2 in 1.0 ms)'
        """
        fired = [(name, f) for name, f in sorted(self.families.items()) if f.matches]
        laws = ", ".join(f"{name} ×{f.matches} in {f.seconds * 1e3:.1f} ms" for name, f in fired)
        return f"{self.name} ({self.seconds * 1e3:.1f} ms{'; laws: ' + laws if laws else ''})"

    @property
    def words(self) -> list[str]:
        """What the stage did, a sentence each: the symmetries that made terms equal, the δ that were summed, new names.

        Found when asked for, from the terms before and after; where it is not known what was done, nothing is said.
        """
        return [] if self.explain is None else self.explain(self)

    @property
    def changed(self) -> bool:
        """Whether a reader sees another formula after the stage than before it, or a note."""
        from combdiff.language.printing.printer import expression_text

        if self.before is None or self.note:
            return True
        return expression_text(self.before) != expression_text(self.term)

    def text(self, title: str = "") -> str:
        """The step under a title: its name if there is none."""
        from combdiff.language.printing.printer import expression_text

        words = [f"  {line}" for line in self.words]
        return "\n".join([title or self.name, *filter(None, [self.note]), *words, expression_text(self.term)])

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<{self.heading}>"


class Steps(tuple[Step, ...], Shown):
    """The steps of a derivation in order; prints all of them.

    >>> from combdiff.terms.terms import ONE
    >>> print(Steps([Step("program", ONE), Step("contract", ONE)]))
    program
    1
    <BLANKLINE>
    contract
    1
    """

    __slots__ = ()

    def __str__(self) -> str:
        return "\n\n".join(map(str, self))
