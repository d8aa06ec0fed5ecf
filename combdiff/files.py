"""Programs in files: their text, and their name in messages."""

from __future__ import annotations

import os
import sys

from combdiff.errors import CombDiffError

LARGEST = 1_000_000


def read_program(file: str | os.PathLike[str]) -> tuple[str, str]:
    """A program's text and its name in messages; "-" is standard input. It stops reading at the limit."""
    name = "<stdin>" if file == "-" else os.fspath(file)
    try:
        if file == "-":
            content = sys.stdin.buffer.read(LARGEST + 1) if sys.stdin else b""
        else:
            with open(file, "rb") as stream:
                content = stream.read(LARGEST + 1)
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or "this is not the path of a file"
        raise CombDiffError(f"cannot read {name}: {reason}", remedy="give the path of a .cd file") from None
    if len(content) > LARGEST:
        raise CombDiffError(f"{name} is larger than the limit of {LARGEST} bytes", remedy="split the program")
    try:
        return content.decode("utf-8-sig"), name
    except UnicodeDecodeError as problem:
        raise CombDiffError(
            f"{name} is not UTF-8 text (byte {problem.start + 1})", remedy="save the program as UTF-8"
        ) from None
