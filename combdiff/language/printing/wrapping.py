"""Long lines are broken where the language allows a newline: after an arrow, an operator, a comma or a bracket.

The loosest sign goes first: a map is broken after its last arrow, a sum after + and −, a product after * and /, a tuple
between its items, a matrix between its rows, a call before its last argument.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

WIDTH = 100
_INDENT = 4
_OPENING, _CLOSING = ("(", "[", "begin"), (")", "]", "end")
_SIGN = re.compile(r"[()\[\]]|\b(?:begin|end)\b|(?:->|[-+*/=,;]) ")


def wrapped(text: str, width: int = WIDTH) -> str:
    """`text` with its long lines broken.

    >>> print(wrapped("x -> 2 * f(x, y) + g(x, y)", 18))
    x ->
        2 * f(x, y) +
        g(x, y)
    """
    return "\n".join(line if len(line) <= width else _Line(line, width).broken() for line in text.split("\n"))


class _Line:
    """One line, with the places of its signs and, for each bracket, the place of its partner."""

    def __init__(self, text: str, width: int) -> None:
        self.text = text
        self.width = width
        self.signs = [(m.start(), m.end(), m.group().rstrip()) for m in _SIGN.finditer(text)]
        self.partner: dict[int, int] = {}
        self.balanced = self._match()

    def _match(self) -> bool:
        open_: list[int] = []
        for n, (_, _, sign) in enumerate(self.signs):
            if sign in _OPENING:
                open_.append(n)
            elif sign in _CLOSING:
                if not open_:
                    return False
                self.partner[open_.pop()] = n
        return not open_

    def broken(self) -> str:
        lead = len(self.text) - len(self.text.lstrip())
        if not self.balanced:
            return self._greedy(lead, len(self.text), lead + _INDENT, lead)
        return " " * lead + self._fold(lead, len(self.text), 0, lead, lead)

    def _outer(self, first: int, end: int) -> Iterator[int]:
        """The signs from number `first` on that stand before `end` and in no bracket; brackets by their opening."""
        n = first
        while n < len(self.signs) and self.signs[n][0] < end:
            yield n
            n = self.partner.get(n, n) + 1

    def _fold(self, start: int, end: int, first: int, indent: int, column: int) -> str:
        """The text from `start` to `end`, from `column` on, its further lines indented; `first` is its first sign."""
        if column + end - start <= self.width:
            return self.text[start:end].rstrip()
        if indent > self.width // 2:
            return self._greedy(start, end, indent, column)
        outer = list(self._outer(first, end))
        # commas stand in no bracket where the rows of a matrix are taken apart
        for kinds in ((",",), ("->", "="), ("+", "-"), ("*", "/")):
            found = [n for n in outer if self.signs[n][2] in kinds]
            if found and "->" in kinds:
                return self._after_arrow(start, end, found, indent)
            if found:
                return self._filled(start, end, [first, *(n + 1 for n in found)], indent, column)
        return self._opened(start, end, outer, indent, column)

    def _after_arrow(self, start: int, end: int, arrows: list[int], indent: int) -> str:
        """Parameters on lines of their own, what they are mapped to below."""
        place = self.signs[arrows[-1]][1]
        head = self.text[start:place].rstrip()
        if indent + len(head) > self.width:
            head = self._greedy(start, place, indent + _INDENT, indent)
        inner = indent + _INDENT
        return head + "\n" + " " * inner + self._fold(place, end, arrows[-1] + 1, inner, inner)

    def _filled(self, start: int, end: int, firsts: list[int], indent: int, column: int) -> str:
        """The parts of a sum, product or list, as many to a line as fit; `firsts` numbers the first sign of each."""
        places = [start, *(self.signs[n - 1][1] for n in firsts[1:]), end]
        text, at, line, before = "", column, column, 0
        for n, (a, b) in enumerate(pairwise(places)):
            flat = self.text[a:b].rstrip()
            fits = at + len(flat) + (n > 0) <= self.width
            # a long part stays behind a short one that it is multiplied by, or that begins the line: 4 * sum(…)
            multiplied = n > 0 and self.signs[firsts[n] - 1][2] in ("*", "/")
            behind = n > 0 and (before if multiplied else at - line) < 2 * _INDENT
            opened = not fits and (behind or indent + len(flat) > self.width)
            if n and not fits and not behind:
                text, at, line = text + "\n" + " " * indent, indent, indent
            elif n:
                text, at = text + " ", at + 1
            piece = self._part(a, b, firsts, n, indent, at) if opened else flat
            text += piece
            # what follows a part of several lines begins a line
            at, before = (self.width, self.width) if "\n" in piece else (at + len(piece), len(piece))
        return text

    def _part(self, start: int, end: int, firsts: list[int], n: int, indent: int, column: int) -> str:
        """Part number n of a list, with the sign behind it."""
        if n + 1 == len(firsts):
            return self._fold(start, end, firsts[n], indent, column)
        behind, _, sign = self.signs[firsts[n + 1] - 1]
        space = " " * (sign not in ",;")
        return self._fold(start, behind, firsts[n], indent, column).rstrip() + space + sign

    def _opened(self, start: int, end: int, outer: list[int], indent: int, column: int) -> str:
        """An entry, a call or a tuple: broken inside its longest bracket."""
        brackets = [n for n in outer if n in self.partner and self.signs[n][2] != "begin"]
        if not brackets:
            return self.text[start:end].rstrip()
        n = max(brackets, key=lambda m: self.signs[self.partner[m]][0] - self.signs[m][0])
        head, tail = self.text[start : self.signs[n][1]], self.text[self.signs[self.partner[n]][0] : end].rstrip()
        stop = self.signs[self.partner[n]][0]
        inside = [*self._outer(n + 1, stop)]
        rows = [m for m in inside if self.signs[m][2] == ";"]
        commas = rows or [m for m in inside if self.signs[m][2] == ","]
        firsts, inner = [n + 1, *(m + 1 for m in commas)], indent + _INDENT
        places = [self.signs[n][1], *(self.signs[m][1] for m in commas), stop]
        newline = "\n" + " " * inner
        called = len(head.lstrip("-")) > 1
        if called and (not commas or column + places[-2] - start <= self.width):
            before = self.text[start : places[-2]].rstrip()
            return before + newline + self._fold(places[-2], stop, firsts[-1], inner, inner) + tail
        if called:
            return head + newline + self._filled(places[0], stop, firsts, inner, inner) + tail
        items = [self._part(a, b, firsts, m, inner, inner) for m, (a, b) in enumerate(pairwise(places))]
        return head + newline + newline.join(items) + "\n" + " " * indent + tail

    def _greedy(self, start: int, end: int, indent: int, column: int) -> str:
        """Broken after whatever sign comes last before the margin: for what is nested too deep to be laid out."""
        lines, begin, last = [], start, 0
        for at, after, sign in self.signs:
            if not start < after <= end or sign in _OPENING or sign in _CLOSING:
                continue
            if column + at + len(sign) - begin > self.width and last > begin:
                lines.append(self.text[begin:last].rstrip())
                begin, column = last, indent
            last = after
        return ("\n" + " " * indent).join([*lines, self.text[begin:end].rstrip()])
