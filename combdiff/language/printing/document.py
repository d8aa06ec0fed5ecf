"""Formulas as pieces of text: how tightly they hold together, brackets where they need them, sums with their signs.

The program's text, LaTeX, matrix form and generated code differ in how they write an operation, and share this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

MAP, SUM, ENTRYWISE, PRODUCT, SIGN, POSTFIX, ATOM = range(7)
"""How tightly a piece holds together, from loose to tight; a power is a postfix."""

Piece = tuple[str, int]


def placed(piece: Piece, least: int, brackets: Callable[[str], str] = "({})".format) -> str:
    """The text of a piece in a place that holds together as `least` says.

    >>> placed(("a + b", SUM), PRODUCT), placed(("a b", PRODUCT), PRODUCT)
    ('(a + b)', 'a b')
    """
    text, binds = piece
    return text if binds >= least else brackets(text)


def sum_parts(terms: Iterable[tuple[bool, str]]) -> list[str]:
    """Terms with their signs, each with whether it is subtracted: the first bare or with its minus.

    >>> sum_parts([(True, "a"), (False, "b"), (True, "c")])
    ['-a', '+ b', '- c']
    """
    (minus, first), *rest = terms
    return [f"-{first}" if minus else first, *(f"{'-' if minus else '+'} {text}" for minus, text in rest)]


def sum_text(terms: Iterable[tuple[bool, str]]) -> str:
    """a − b + c.

    >>> sum_text([(True, "a"), (False, "b"), (True, "c")])
    '-a + b - c'
    """
    return " ".join(sum_parts(terms))
