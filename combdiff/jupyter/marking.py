r"""Marks what is new in a formula: signs of LaTeX or of text that the formula before it does not have.

A formula is cut into pieces that stand alone, `C_{p,i}^{*}` or `\sum_{q}`, and compared piece by piece. Where most
of it is new, nothing is marked: the whole formula is then what to look at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from html import escape
from itertools import groupby

MOST = 0.5
"""The share of a formula that is marked at most."""

_NAMED = re.compile(r"\\(?:begin|end|left|right|mathbf|mathrm|operatorname|text)(?![a-zA-Z])")
_COMMAND = re.compile(r"\\(?:[a-zA-Z]+|.)", re.DOTALL)
_WORD = re.compile(r"[^\W_]+|\s+|.", re.DOTALL)
_STRUCTURE = re.compile(r"\s*(?:\\(?:begin|end|left|right|mathbf|quad|mapsto|in|\\|,)(?![a-zA-Z]).*|[&=+\-(),\s])?\s*")
_UNDERLINE = r"\bbox[border-bottom:2px solid #d97706]"


def marked_latex(formula: str, before: str) -> str:
    r"""`formula` with a line under what is new.

    >>> marked_latex(r"A_{i,j}\, x_{j} + y_{i}", r"A_{i,j}\, x_{j} + z_{i}")
    'A_{i,j}\\, x_{j} + \\bbox[border-bottom:2px solid #d97706]{y_{i}}'
    """
    return _marked(_pieces(formula), _pieces(before), lambda run: f"{_UNDERLINE}{{{run}}}", str)


def marked_text(text: str, before: str) -> str:
    """Text as HTML, with a mark on what is new.

    >>> marked_text("x(i) + y", "x(i) + z")
    'x(i) + <mark>y</mark>'
    """
    return _marked(_WORD.findall(text), _WORD.findall(before), lambda run: f"<mark>{escape(run)}</mark>", escape)


def _marked(
    pieces: Sequence[str], before: Sequence[str], mark: Callable[[str], str], plain: Callable[[str], str]
) -> str:
    new = [True] * len(pieces)
    for _, b, size in SequenceMatcher(None, _keys(before), _keys(pieces), autojunk=False).get_matching_blocks():
        new[b : b + size] = [False] * size
    told = [n for n, p in enumerate(pieces) if not _STRUCTURE.fullmatch(p)]
    if sum(new[n] for n in told) > MOST * len(told):
        return plain("".join(pieces))
    flags = [new[n] and not _STRUCTURE.fullmatch(p) for n, p in enumerate(pieces)]
    runs = groupby(zip(flags, pieces, strict=True), key=lambda pair: pair[0])
    parts = [(is_new, "".join(p for _, p in run)) for is_new, run in runs]
    return "".join(mark(run) if is_new else plain(run) for is_new, run in parts)


def _keys(pieces: Sequence[str]) -> list[str]:
    return [re.sub(r"\s+", " ", p) for p in pieces]


def _pieces(formula: str) -> list[str]:
    """LaTeX cut where a brace is not open: a sign or a command with its arguments, indices and exponents."""
    found: list[str] = []
    at = 0
    while at < len(formula):
        end = _end(formula, at)
        while end < len(formula) and formula[end] in "_^":
            end = _end(formula, end + 1)
        found.append(formula[at:end])
        at = end
    return found


def _end(formula: str, at: int) -> int:
    """Where the sign, the command or the group that begins at `at` ends, with the arguments of the command."""
    if formula[at] == "{":
        return _closing(formula, at)
    command = _COMMAND.match(formula, at)
    if command is None:
        space = re.compile(r"\s+").match(formula, at)
        return space.end() if space else at + 1
    end = command.end()
    if _NAMED.match(formula, at) and formula[at:end] in (r"\left", r"\right"):
        return _end(formula, end)
    while end < len(formula) and formula[end] == "{":
        end = _closing(formula, end)
    return end


def _closing(formula: str, at: int) -> int:
    depth = 0
    for n in range(at, len(formula)):
        depth += {"{": 1, "}": -1}.get(formula[n], 0) if formula[n - 1 : n] != "\\" else 0
        if depth == 0:
            return n + 1
    return len(formula)
