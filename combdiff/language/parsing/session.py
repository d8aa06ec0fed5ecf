"""Takes the program out of a session with the paper's own system, as Listings 1 to 5 show them.

There a program stands behind the macro `@pct`, its declarations in another one, and what is to be done with it in the
lines below. The macros and these lines become spaces, so that a message still shows the place in the text as it is
written; a remark tells of each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from combdiff.errors import LanguageError, Span
from combdiff.language.habits import SESSION
from combdiff.records import dataclass

_MACRO = "@pct"
_SIGNS = re.compile(r"#[^\n]*|@?[^\W\d]\w*|[()\[\]{}\n;]|[^\s]")
_OPENS, _CLOSES = frozenset(("(", "[", "{", "begin", "let")), frozenset((")", "]", "}", "end"))
_GOES_ON = tuple("+-−*/\\^=,>▷|<")
"""A line that ends with one of these is not complete."""
_ASSIGNED = r"(?P<names>[^\W\d]\w*(?:\s*,\s*[^\W\d]\w*)*)\s*=(?!=)\s*"
_HEAD = re.compile(rf"(?:{_ASSIGNED})?{_MACRO}(?!\w)\s*(?:(?!begin\b|let\b|sum\b)\w+[ \t]+\w+[ \t]+(?=[\w(]))?")
_CALLS = re.compile(rf"(?:{_ASSIGNED})?(?P<calls>[\w\s(),;=|>▷]+)")
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class _Statement:
    """A statement of a session: where it is in the text, the first and the last of its signs, and its line."""

    start: int
    end: int
    line: int

    def of(self, text: str) -> str:
        return text[self.start : self.end]


def taken_out(text: str) -> tuple[str, tuple[str, ...]]:
    """The program of a session, in its place in the text, and what is to be said of the rest of it.

    >>> program, (remark, _) = taken_out("f, _ = @pct (x::RV) -> sum(i, x(i)^2)\\nvdiff(f)")
    >>> program.strip()
    '(x::RV) -> sum(i, x(i)^2)'
    >>> remark
    'line 1: f, _ = @pct is left out'

    A text without the macro is returned as it is. Raises LanguageError for a second program, and for a line below the
    program that is not of such a session.
    """
    if _MACRO not in text:
        return text, ()
    left_out: list[tuple[int, int]] = []
    remarks: list[str] = []
    names: set[str] = set()
    program: _Statement | None = None
    for statement in _statements(text):
        own = statement.of(text)
        if head := _HEAD.match(own):
            names |= _names(head)
            body = _Statement(statement.start + head.end(), statement.end, statement.line)
            left_out.append((statement.start, body.start))
            ends = _ends_of_block(text, body)
            left_out += ends
            if not (ends and _declares(text[ends[0][1] : ends[1][0]])):
                _refuse_second(text, program, statement)
                program = statement
            remarks.append(_remark(statement.line, head[0], ()))
        elif calls := _calls(own, names):
            names |= _names(calls)
            left_out.append((statement.start, statement.end))
            remarks.append(_remark(statement.line, own, _WORD.findall(calls["calls"])))
        elif program is not None:
            raise _unknown(own, names, _span(text, statement))
    return _blanked(text, left_out), tuple(remarks)


def _blanked(text: str, places: Sequence[tuple[int, int]]) -> str:
    """`text` with spaces there, so that all else stays in its place; the places are in order."""
    parts, done = [], 0
    for start, end in places:
        parts += [text[done:start], re.sub(r"[^\n]", " ", text[start:end])]
        done = end
    return "".join([*parts, text[done:]])


def _remark(line: int, text: str, words: Iterable[str]) -> str:
    """That a part of the session is left out, and what does the same here."""
    here = [SESSION[word] for word in dict.fromkeys(words) if SESSION.get(word)]
    return f"line {line}: {' '.join(text.split())} is left out" + (f": {', '.join(here)}" if here else "")


def _statements(text: str) -> Iterator[_Statement]:
    """What newlines and semicolons separate outside of brackets and blocks, comments left out."""
    depth, start, end, line, begun = 0, -1, 0, 1, 1
    for sign in _SIGNS.finditer(text):
        word = sign[0]
        if word in ("\n", ";"):
            going_on = depth > 0 or (word == "\n" and text.endswith(_GOES_ON, 0, end))
            if start >= 0 and not going_on:
                yield _Statement(start, end, begun)
                start = -1
            line += word == "\n"
        elif not word.startswith("#"):
            depth += (word in _OPENS) - (word in _CLOSES)
            start, begun = (sign.start(), line) if start < 0 else (start, begun)
            end = sign.end()
    if start >= 0:
        yield _Statement(start, end, begun)


def _ends_of_block(text: str, body: _Statement) -> list[tuple[int, int]]:
    """Where `begin` and `end` are, if a statement is one block."""
    signs = [sign for sign in _SIGNS.finditer(text, body.start, body.end) if not sign[0].startswith("#")]
    depth = 0
    for n, sign in enumerate(signs):
        depth += (sign[0] in _OPENS) - (sign[0] in _CLOSES)
        if depth == 0:
            whole = n == len(signs) - 1 and signs[0][0] == "begin" and sign[0] == "end"
            return [signs[0].span(), sign.span()] if whole else []
    return []


def _declares(text: str) -> bool:
    """Whether there are declarations, and nothing else."""
    return all(re.match(r"@(space|domain)\b", statement.of(text)) for statement in _statements(text))


def _calls(text: str, names: set[str]) -> re.Match[str] | None:
    """A statement that only does something with what the session has made."""
    found = _CALLS.fullmatch(text)
    return found if found and names.union(SESSION).issuperset(_WORD.findall(found["calls"])) else None


def _names(found: re.Match[str] | None) -> set[str]:
    return set(_WORD.findall(found["names"] or "")) if found else set()


def _refuse_second(text: str, first: _Statement | None, second: _Statement) -> None:
    if first is not None:
        raise LanguageError(
            "a second program: expected one",
            span=_span(text, second),
            also=("the first one is here", _span(text, first)),
            remedy="give one program at a time",
        )


def _unknown(text: str, names: set[str], span: Span) -> LanguageError:
    """What is said of a line below the program that does something else with it."""
    own = _names(_CALLS.match(text))
    word = next((w for w in _WORD.findall(text) if w not in names.union(own, SESSION)), "")
    return LanguageError(
        f"after the program of a session, {word or 'this line'} is not known",
        span=span,
        remedy="remove the line: the function that you call, such as cd.grad or cd.hvp, says what is derived",
    )


def _span(text: str, statement: _Statement) -> Span:
    """The first line of a statement."""
    column = statement.start - (text.rfind("\n", 0, statement.start) + 1) + 1
    return Span(statement.line, column, len(statement.of(text).split("\n")[0]))
