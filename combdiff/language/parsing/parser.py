"""Parses the text of a program to its surface tree; the syntax is that of Listings 1–5 of the paper.

The syntax is `grammar/combdiff.lark`; `newlines.py` decides where newlines separate, `building.py` makes the nodes,
`settings.py` reads declarations. Here lark is set up, and its complaints are put into words.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import TYPE_CHECKING

from combdiff.errors import LanguageError, Source, Span
from combdiff.language.inference.settings import BUILTIN_TYPES
from combdiff.language.parsing import tables
from combdiff.language.parsing.building import Builder, Piece, expression, in_order
from combdiff.language.parsing.newlines import span_of
from combdiff.language.parsing.remedies import STRAY, Stop, remedy
from combdiff.language.parsing.session import taken_out
from combdiff.language.parsing.syntax import DomainClause, Module, Space

if TYPE_CHECKING:
    from lark import Lark, Token, UnexpectedCharacters, UnexpectedToken


def parse(text: str, name: str = "<text>", *, limit: int = 1_000_000) -> Module:
    """The program that `text` writes; `name` is what messages call it, `limit` the most characters that are read.

    >>> parse("(x::RV) -> sum(i, x(i)^2)").body.params[0].name
    'x'
    >>> print(parse("1 + $"))
    Traceback (most recent call last):
    ...
    combdiff.errors.LanguageError: <text>:1:5: '$' is not a character of the language
      1 | 1 + $
        |     ^
    remedy: remove it
    """
    if len(text) > limit:
        raise LanguageError(
            f"{name}: the text has {len(text)} characters, more than the {limit} that are read",
            remedy="split it, or raise the limit: parse(text, limit=…)",
        )
    source = Source(text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"), name)
    try:
        _refuse_control_characters(source.text)
        program, remarks = taken_out(source.text)
        return _module(_read(program), source, remarks)
    except LanguageError as error:
        error.located(source)
        raise


@cache
def _lark() -> Lark:
    return tables.parser(_Rules())


class _Rules(Builder):
    """The rules of a whole text, over those of expressions."""

    def module(self, parts: list[Piece | Token]) -> list[Piece]:
        return [part for part in parts if isinstance(part, Piece)]


def _read(text: str) -> list[Piece]:
    from lark import UnexpectedCharacters, UnexpectedToken

    try:
        items: list[Piece] = _lark().parse(text)  # type: ignore[assignment]  # `module` above makes the list
    except UnexpectedCharacters as stray:
        raise _stray(stray, text) from None
    except UnexpectedToken as stop:
        raise _unexpected(stop, text) from None
    return items


def _module(items: list[Piece], source: Source, remarks: tuple[str, ...]) -> Module:
    """Declarations, then definitions, then the one expression."""
    declarations: list[Space | DomainClause] = []
    statements: list[Piece] = []
    for item in items:
        if isinstance(item.node, Space | DomainClause):
            declarations.append(item.node)
        else:
            statements.append(item)
    _refuse_names(declarations)
    if not statements:
        raise LanguageError(
            "the text has only declarations: expected an expression after them",
            span=items[-1].span,
            remedy="write one, for example (x::RV) -> sum(i, x(i)^2)",
        )
    return Module(tuple(declarations), expression(in_order(statements, statements[0].span)), source, remarks)


def _refuse_names(declarations: Collection[Space | DomainClause]) -> None:
    seen: dict[str, Span] = {}
    for declared in declarations:
        if declared.name in BUILTIN_TYPES:
            raise LanguageError(
                f"{declared.name!r} is a type of the language and cannot be declared",
                span=declared.span,
                remedy="choose another name",
            )
        if declared.name in seen:
            raise LanguageError(
                f"{declared.name!r} is declared twice",
                span=declared.span,
                also=("it is declared first here", seen[declared.name]),
                remedy="remove one of the two, or rename it",
            )
        seen[declared.name] = declared.span


# --- words for what cannot be read ----------------------------------------------------------------------------------


def _stray(stray: UnexpectedCharacters, text: str) -> LanguageError:
    at = len(text) if stray.pos_in_stream is None else stray.pos_in_stream
    char = text[at : at + 1]
    return LanguageError(
        f"{char!r} is not a character of the language" if char != ":" else "a lone ':' means nothing",
        span=Span(stray.line, stray.column),
        remedy=remedy(Stop(STRAY, char, text[:at], text[at:])),
    )


def _refuse_control_characters(text: str) -> None:
    """NUL and its kin: found here, because they would not be seen in a message."""
    if text.isprintable():
        return
    for row, line in enumerate(text.split("\n"), start=1):
        for column, char in enumerate(line if not line.isprintable() else "", start=1):
            if (char < " " and char != "\t") or "\x7f" <= char < "\xa0" or "\ud800" <= char < "\ue000":
                raise LanguageError(
                    f"the text contains the control character U+{ord(char):04X}",
                    span=Span(row, column),
                    remedy="remove it; programs are plain text in UTF-8",
                )


_WORDS = {
    "NUMBER": "a number",
    "COMMA": "','",
    "RPAR": "a closing )",
    "RSQB": "a closing ]",
    "RBRACE": "a closing }",
    "END": "end",
    "EQUALS": "'='",
    "LPAR": "(",
    "TYPED": "a type (::)",
    "BEGIN": "begin",
    "SEP": "a new line",
    "$END": "the end of the text",
}
_AFTER_A_VALUE = frozenset(("LPAR", "EQUALS", "TYPED"))
_SHALLOW = 2_000


def _unexpected(stop: UnexpectedToken, text: str) -> LanguageError:
    """A word where the grammar has none: what it is, what could stand there, what is probably meant."""
    token, wanted = stop.token, _wanted(stop)
    span = span_of(token)
    if token.type == "$END":
        span = Span(token.end_line or 1, token.end_column or 1)
    if token.type == "SEP":
        span = Span(span.line, span.column)
    at = len(text) if token.start_pos is None else token.start_pos
    before = text[:at]
    # a comparison in parentheses may be meant, though the grammar first wants more
    closing = {"RPAR"} if before.count("(") > before.count(")") else set()
    meant = remedy(Stop(token.type, str(token), before, text[at:], wanted | closing))
    return LanguageError(f"expected {_phrase(wanted)}, found {_found(token)}", span=span, remedy=meant)


def _wanted(stop: UnexpectedToken) -> frozenset[str]:
    """The words that could stand here; for an enormous text, those that its last rule allows."""
    parser = stop.interactive_parser
    if parser is None or len(parser.parser_state.state_stack) > _SHALLOW:
        return frozenset(stop.expected)
    return frozenset(parser.accepts())  # type: ignore[no-untyped-call]  # lark leaves it untyped


def _phrase(wanted: frozenset[str]) -> str:
    if "ACTION" in wanted:
        return "a value"
    if "BEGIN" in wanted and "NAME" in wanted:
        return "an expression"
    if "NAME" in wanted:
        return "a name or a list of names in parentheses" if "LPAR" in wanted else "a name"
    options = ["an operator"] if "PLUS" in wanted else ["'->'"] if "ARROW" in wanted else []
    unlikely = _AFTER_A_VALUE if "PLUS" in wanted else frozenset[str]()
    options += [words for kind, words in _WORDS.items() if kind in wanted - unlikely]
    if not options:
        return "something else"
    return ", ".join(options[:-1]) + (" or " if options[1:] else "") + options[-1]


def _found(token: Token) -> str:
    match token.type:
        case "NAME":
            return f"the name {str(token)!r}"
        case "NUMBER":
            return f"the number {str(token)[:20]}"
        case "$END":
            return "the end of the text"
        case "SEP" if token == "\n":
            return "the end of the line"
        case "BEGIN" | "LET" | "END" | "SUM" | "AND" | "OR" | "NOT":
            return f"{str(token)!r}, a keyword of the language"
        case _:
            return repr(str(token))
