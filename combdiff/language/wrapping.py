"""Long lines are broken where the language allows a newline: after an operator, an arrow or a comma."""

from __future__ import annotations

import re
from collections.abc import Iterator

_WIDTH = 100
_BREAK = re.compile(r"[()\[\]]|(?:->|[-+*=,;]) ")


def wrapped(text: str, width: int = _WIDTH) -> str:
    """`text` with its long lines broken at the least nested places.

    >>> print(wrapped("a = f(x, y) + g(x, y)", 16))
    a = f(x, y) +
        g(x, y)
    """
    return "\n".join(piece for line in text.split("\n") for piece in _pieces(line, width))


def _pieces(line: str, width: int) -> Iterator[str]:
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    while len(line) > width:
        place = _place(line, len(indent), width)
        if not place:
            break
        yield line[:place].rstrip()
        line = indent + line[place:]
    yield line


def _place(line: str, start: int, width: int) -> int:
    """Where to break: the last of the least nested places that leave a line of a fair length, 0 if there is none."""
    depth, places = 0, []
    for found in _BREAK.finditer(line):
        match found.group():
            case "(" | "[":
                depth += 1
            case ")" | "]":
                depth -= 1
            case sign if found.end() <= width and found.end() > start and not sign.startswith((";", "=")):
                places.append((depth, -found.end()))
    fair = [p for p in places if -p[1] > width // 3] or places
    return -min(fair)[1] if fair else 0
