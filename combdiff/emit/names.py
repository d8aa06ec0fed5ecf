"""Names of Python for the names of the language: one table for each function of emitted source decides all of them.

In a table no two names are one for Python, which has keywords and reads letters in their compatible form (𝐟 is f), and
none hides what the text calls: modules, functions above it, builtins. What the user named comes first and keeps its
name where it can.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from combdiff.arrays.lower.argument_names import identifier
from combdiff.records import dataclass

if TYPE_CHECKING:
    from combdiff.arrays.packing.layout import Layout
    from combdiff.arrays.plan import Equation, Recurrence

_BUILTINS = frozenset(name for name, value in vars(builtins).items() if getattr(value, "__module__", "") == "builtins")
_RESERVED = _BUILTINS | {"_", "__debug__"}
"""Python's own functions and types, not what an interpreter adds to them; `_` stands for what is not needed."""

_WORD = re.compile(r"(?<!\w)[^\W\d](?:\w|[^\x00-\x7f])*")


def words(text: str) -> set[str]:
    """The names that a text mentions.

    >>> sorted(words("x̂ @ A[:, n] + 2j"))
    ['A', 'n', 'x̂']
    """
    return {*_WORD.findall(text)}


class Names:
    """The names of one scope.

    >>> names = Names({"np"})
    >>> names.of(["np", "len", "f", "𝐟", "f2"])
    {'np': 'np2', 'len': 'len2', 'f': 'f', '𝐟': 'f3', 'f2': 'f2'}
    >>> names.fresh("f")
    'f4'
    """

    def __init__(self, reserved: Collection[str] = ()) -> None:
        self.taken = {*_RESERVED, *reserved}

    def fresh(self, wish: str) -> str:
        """`wish` as an identifier that is not taken."""
        base = chosen = identifier(wish)
        number = 1
        while chosen in self.taken:
            number += 1
            chosen = f"{base}_{number}" if base[-1].isdigit() else f"{base}{number}"
        self.taken.add(chosen)
        return chosen

    def of(self, names: Iterable[str]) -> dict[str, str]:
        """An identifier for each name of the user; those that are free keep theirs, whatever stands before them."""
        names = list(names)
        kept = {name: self.fresh(name) for name in names if name == identifier(name) and name not in self.taken}
        found = kept | {name: self.fresh(name) for name in names if name not in kept}
        return {name: found[name] for name in names}


@dataclass(frozen=True, slots=True)
class Called:
    """What a function of emitted source calls its arguments, functions above it, and items of packed arguments."""

    arguments: Mapping[str, str]
    above: Mapping[Equation | Recurrence, str] = field(default_factory=dict)
    items: Mapping[tuple[Layout | None, str], str] = field(default_factory=dict)
