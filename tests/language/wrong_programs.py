"""Wrong programs, what is said of them, and what a reader makes of them who follows the remedy.

`python -m tests.language.wrong_programs` records the messages anew.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import combdiff as cd

FILE = Path(__file__).with_suffix(".txt")


@dataclass(frozen=True)
class Entry:
    name: str
    wrong: str
    message: str
    mended: str

    def __str__(self) -> str:
        return f"# {self.name}\n{self.wrong}\n--\n{self.message}\n--\n{self.mended}\n"


def entries() -> list[Entry]:
    blocks = re.split(r"^# ", FILE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    found = []
    for block in blocks:
        head, message, mended = (part.strip("\n") for part in re.split(r"^--\n", block, flags=re.MULTILINE))
        name, _, wrong = head.partition("\n")
        found.append(Entry(name, wrong, message, mended))
    return found


def message_of(program: str) -> str:
    """What is said of a wrong program."""
    try:
        d = cd.grad(program)
    except cd.CombDiffError as error:
        return str(error)
    raise AssertionError(f"{program} is derived: {d}")


if __name__ == "__main__":
    recorded = [Entry(e.name, e.wrong, message_of(e.wrong), e.mended) for e in entries()]
    FILE.write_text("\n".join(map(str, recorded)), encoding="utf-8")
