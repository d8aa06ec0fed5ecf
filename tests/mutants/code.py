"""Mutants of code: signs and conjugates of the two rules, canonical names, packing, loops, scatter, emitted conj.

Each is a replacement inside one definition, named by what it breaks (`faults.txt`):

    C rule: Σ over b lost
        in combdiff/calculus/pullback.py c_rule
        - (*over, *params)
        + over
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.mutants.mutant import Mutant, StaleError, inside

FAULTS = Path(__file__).with_name("faults.txt")


def mutants() -> Iterator[Mutant]:
    """All mutants of the table.

    Raises:
        StaleError: the code has changed, and the message says which entries no longer fit it.
    """
    tests: tuple[str, ...] = ()
    stale = []
    for entry in FAULTS.read_text(encoding="utf-8").split("\n\n"):
        head, *body = [line for line in entry.splitlines() if not line.startswith("#")] or [""]
        if head.startswith("tests "):
            tests = tuple(head.split()[1:])
        elif head:
            place, old, new = (line.strip() for line in body)
            _, file, scope = place.split()
            try:
                yield Mutant(head, file, inside(file, scope, old[2:], new[2:]), tests)
            except StaleError as problem:
                stale.append(f"{head}: {problem}")
    if stale:
        raise StaleError("\n".join(stale))
