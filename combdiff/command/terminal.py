"""What a terminal can show: colours, its width; and one line for a wrong option."""

from __future__ import annotations

import argparse
import os
import re
import shutil
from collections.abc import Sequence
from difflib import get_close_matches
from typing import IO, Any, NoReturn

from combdiff.errors import CombDiffError

_RED, _GREEN, _BOLD, _PLAIN = "\033[31m", "\033[32m", "\033[1m", "\033[0m"
_NARROWEST, _PAPER = 40, 100
_CARET = re.compile(r"^(\s*\| \s*)(\^+)$", re.MULTILINE)
_WORDS = (
    (re.compile(r"^(remedy:)", re.MULTILINE), _GREEN),
    (re.compile(r"^(ok)\b", re.MULTILINE), _GREEN),
    (re.compile(r"^(FAILED)\b", re.MULTILINE), _RED),
)


def is_terminal(stream: IO[str] | None) -> bool:
    """Whether a person reads what is written there."""
    return stream is not None and stream.isatty()


def coloured(text: str, stream: IO[str] | None) -> str:
    """A message or a report with colours, where the stream is a terminal and NO_COLOR is not set.

    >>> coloured("remedy: none", None)
    'remedy: none'
    """
    if not is_terminal(stream) or os.environ.get("NO_COLOR"):
        return text
    text = _CARET.sub(rf"\1{_BOLD}{_RED}\2{_PLAIN}", text)
    for word, colour in _WORDS:
        text = word.sub(rf"{colour}\1{_PLAIN}", text)
    return text


def width(stream: IO[str] | None) -> int:
    """The columns of a terminal; of paper, where there is none."""
    return max(shutil.get_terminal_size((_PAPER, 24)).columns, _NARROWEST) if is_terminal(stream) else _PAPER


class Parser(argparse.ArgumentParser):
    """A parser of options whose complaints are one line and a remedy."""

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            # the command knows which options are its own
            commands = next(a for a in self._actions if isinstance(a, argparse._SubParsersAction))
            commands.choices[options.command].error(f"unrecognized arguments: {' '.join(unknown)}")
        return options

    def error(self, message: str) -> NoReturn:
        unknown = re.search(r"unrecognized arguments: (-[^\s=]+)|invalid choice: '(.*?)' \(choose from (.*)\)", message)
        similar: list[str] = []
        if unknown:
            options = [option for action in self._actions for option in action.option_strings]
            known = re.findall(r"[\w-]+", unknown[3]) if unknown[3] else options
            similar = get_close_matches(unknown[1] or unknown[2], known, n=1)
        remedy = f"did you mean {similar[0]}?" if similar else f"{self.prog} --help lists the options"
        raise CombDiffError(f"{self.prog}: {message}", remedy=remedy)
