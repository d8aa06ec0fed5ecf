"""What the command line is to print for the programs in this folder, and how it is recorded anew.

Beside each `NAME.cd` stands `NAME.txt`: commands, each with the output that followed, and with `[exit 2]` if the
status was not 0. `python -m tests.golden.transcripts` writes what the commands print now; read the differences.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from combdiff.command.cli import main

HERE = Path(__file__).parent
PROGRAMS = sorted(HERE.glob("*.cd"))
WRONG = sorted((HERE / "wrong").glob("*.cd"))
FORMS = ("", " --format latex", " --form matrix", " --form matrix --format latex", " --format python")
PACKED = "grad {} --format python --value --pack J"
MORE = {
    "conjugate_gradient": ("grad {} --keep R", "grad {} --keep R --form matrix"),
    "cotangents": tuple(f"pullback {{}}{form}" for form in FORMS),
    "hartree_fock": ("explain {}", "hvp {}", "hvp {} --format latex", "grad {} --format python --value", PACKED),
    "quadratic": ("hvp {}", "hvp {} --form matrix", "grad {} --wrt A"),
    "wannier": ("explain {}", "grad {} --expand", "hvp {}"),
}
OWN = ("cotangents",)


def commands(program: Path) -> Iterator[str]:
    """The commands that a new transcript of a program has."""
    if program in WRONG:
        yield f"grad {program.name}"
    elif program.stem not in OWN:
        yield from (f"grad {program.name}{form}" for form in FORMS)
    yield from (command.format(program.name) for command in MORE.get(program.stem, ()))


def sections(text: str) -> list[tuple[str, str]]:
    """The commands of a transcript, with what each printed."""
    parts = text.split("$ combdiff ")[1:]
    return [(part.split("\n", 1)[0], part.split("\n", 1)[1]) for part in parts]


def printed(command: str, folder: Path) -> str:
    """What a command prints, on either stream, and its exit status unless that is 0."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(shlex.split(command))
    assert not (out.getvalue() and err.getvalue()), "a wrong program prints its message and nothing else"
    return out.getvalue() + err.getvalue() + (f"[exit {status}]\n" if status else "")


def record() -> None:
    """Write all transcripts anew."""
    for program in (*PROGRAMS, *WRONG):
        found = [f"$ combdiff {command}\n{printed(command, program.parent)}" for command in commands(program)]
        program.with_suffix(".txt").write_text("\n".join(found), encoding="utf-8")


if __name__ == "__main__":
    os.chdir(HERE)
    record()
