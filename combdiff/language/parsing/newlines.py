"""Turns the stream of words of a text into one in which a SEP stands where a statement ends (as in Julia).

A newline separates at the top and inside `begin … end`; it does not inside parentheses or brackets, nor after a sign
that asks for more. Brackets and `begin … end` are matched here, so that a message about an
unclosed one points to its opening.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from combdiff.errors import LanguageError, Span
from combdiff.language.habits import STATEMENTS

if TYPE_CHECKING:
    from lark import Token

DEEPEST = 200

_BRACKETS = frozenset(("LPAR", "DOT_LPAR", "LSQB", "LBRACE"))
_CLOSERS = {"LPAR": "RPAR", "DOT_LPAR": "RPAR", "LSQB": "RSQB", "LBRACE": "RBRACE", "BEGIN": "END", "LET": "END"}
_OPENERS = {"RPAR": "(", "RSQB": "[", "RBRACE": "{", "END": "begin"}
_MISSING = {"RPAR": "a closing )", "RSQB": "a closing ]", "RBRACE": "a closing }", "END": "an end"}
_ASKS_FOR_MORE = frozenset(
    (
        "SEP",
        "BEGIN",
        "LET",
        "COMMA",
        "EQUALS",
        "BECOMES",
        "TYPED",
        "ARROW",
        "PIPE",
        "PLUS",
        "MINUS",
        "STAR",
        "SLASH",
        "CARET",
        "BACKSLASH",
        "DOT_PLUS",
        "DOT_MINUS",
        "DOT_STAR",
        "DOT_SLASH",
        "DOT_CARET",
        "DOT_RELATION",
        "RELATION",
        "AND",
        "OR",
        "NOT",
    )
)


def span_of(token: Token) -> Span:
    """Where a word stands.

    >>> from lark import Token
    >>> span_of(Token("NAME", "rho", line=2, column=5))
    Span(line=2, column=5, width=3)
    """
    return Span(token.line or 1, token.column or 1, max(1, len(token)))


class Newlines:
    """What lark calls between the words of a text and the parser; it keeps nothing from one text to the next.

    >>> from combdiff.language.parsing.parser import parse
    >>> len(parse("begin a = 1 +\\n 2\\n a end").body.definitions)
    1
    """

    always_accept = ("NEWLINE", "SEMICOLON")

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        words: list[Token] = []
        open_: list[Token] = []
        for token in stream:
            bracketed = bool(open_) and open_[-1].type in _BRACKETS
            match token.type:
                case "NEWLINE" if bracketed:
                    continue
                case "NEWLINE" | "SEMICOLON" if not bracketed:
                    if not words or words[-1].type in _ASKS_FOR_MORE:
                        continue
                    token = token.update(type="SEP")
                case "LPAR" | "DOT_LPAR" | "LSQB" | "LBRACE" | "BEGIN" | "LET":
                    open_.append(token)
                    _refuse_depth(open_)
                case "RPAR" | "RSQB" | "RBRACE" | "END":
                    _close(open_, token, words)
            if words and words[-1].type == "SEP" and token.type == "END":
                words.pop()
            words.append(token)
        if open_:
            _refuse_open(open_[-1], words)
        if words and words[-1].type == "SEP":
            words.pop()
        if not words:
            raise LanguageError(
                "the text is empty: expected an expression",
                span=Span(1, 1),
                remedy="write one, for example (x::RV) -> sum(i, x(i)^2)",
            )
        return iter(words)


def _refuse_depth(open_: list[Token]) -> None:
    if len(open_) > DEEPEST:
        raise too_deep(span_of(open_[-1]))


def too_deep(span: Span) -> LanguageError:
    """What is said of nesting beyond `DEEPEST` levels.

    >>> print(too_deep(Span(1, 1)).message)
    nested more than 200 levels deep
    """
    return LanguageError(
        f"nested more than {DEEPEST} levels deep",
        span=span,
        remedy="name inner parts: begin a = …; b = …; expression end",
    )


def _refuse_statement(words: list[Token]) -> None:
    """Say of an `end` that closes nothing what it was to end: if … end, for … end."""
    statement = next((w for w in words if w.type == "NAME" and w in STATEMENTS), None)
    if statement is not None:
        raise LanguageError(
            f"the language has no {str(statement)!r}", span=span_of(statement), remedy=STATEMENTS[str(statement)]
        )


def _close(open_: list[Token], token: Token, words: list[Token]) -> None:
    """Take the opening that `token` closes from `open_`; `words` are what was read before."""
    if token.type == "END" and (not open_ or _CLOSERS[open_[-1].type] != "END"):
        _refuse_statement(words)
    if not open_:
        raise LanguageError(
            f"{str(token)!r} closes nothing: there is no {_OPENERS[token.type]} before it",
            span=span_of(token),
            remedy=f"remove it, or write the missing {_OPENERS[token.type]}",
        )
    opening = open_.pop()
    closer = _CLOSERS[opening.type]
    if token.type != closer:
        wanted = _MISSING[closer]
        alone = token.type == "END" and opening.type in ("LPAR", "LSQB") and words and words[-1] is opening
        last = "the last entry of x::RV{n} is x(n - 1)"
        raise LanguageError(
            f"expected {wanted} before this {str(token)!r}",
            span=span_of(token),
            also=(f"{str(opening)!r} was opened here", span_of(opening)),
            remedy=last if alone else f"close the last open bracket, or remove the {str(token)!r}",
        )


def _refuse_open(opening: Token, words: list[Token]) -> None:
    wanted = _MISSING[_CLOSERS[opening.type]]
    into = next((w for w in words if w.type == "NAME" and w == "in"), None) if opening.type == "LET" else None
    if into is not None:
        raise LanguageError(
            "the language has no 'in' after definitions",
            span=span_of(into),
            remedy="write a ; or a new line in its place, and an end behind the value: let a = x^2; a + 1 end",
        )
    raise LanguageError(
        f"the text ends, and this {str(opening)!r} is still open: expected {wanted}",
        span=span_of(opening),
        remedy=f"write {wanted} where it ends",
    )
