"""Conditions in words and in signs: `0 <= i < n and (x != y or x < z)`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from combdiff.terms.conditions.comparing import Either, Part, Relation
from combdiff.terms.terms import Term

WORDS = {"<": " < ", "<=": " <= ", "==": " == ", "!=": " != ", "and": " and ", "or": " or ", "not": "not "}
"""How the language writes relations and what joins them."""


def condition_text(parts: Sequence[Part], at: Callable[[Term], str], signs: Mapping[str, str] = WORDS) -> str:
    """The text of conditions that all hold; `at` writes a side, `signs` are those of relations and what joins them.

    >>> from combdiff.terms.terms import ONE, ZERO
    >>> condition_text([Relation(ZERO, "<=", ONE), Relation(ONE, "<", ZERO)], lambda t: str(t.real))
    '0 <= 1 < 0'
    """
    groups = list(_chains(parts))
    return signs["and"].join(_group(group, at, signs, len(groups) == 1) for group in groups)


def _chains(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """Comparisons of order that go on where the one before ends, together: 0 ≤ i and i < n is 0 ≤ i < n."""
    chain: list[Part] = []
    for part in parts:
        match chain[-1:], part:
            case [Relation(_, ("<" | "<="), end)], Relation(start, ("<" | "<="), _) if start == end:
                chain.append(part)
            case _:
                if chain:
                    yield chain
                chain = [part]
    if chain:
        yield chain


def _group(group: Sequence[Part], at: Callable[[Term], str], signs: Mapping[str, str], alone: bool) -> str:
    match group[0]:
        case Either(alternatives, negated):
            text = signs["or"].join(condition_text(parts, at, signs) for parts in alternatives)
            return f"{signs['not']}({text})" if negated else text if alone else f"({text})"
        case Relation(first):
            links = [part for part in group if isinstance(part, Relation)]
            return at(first) + "".join(signs[link.sign] + at(link.right) for link in links)
