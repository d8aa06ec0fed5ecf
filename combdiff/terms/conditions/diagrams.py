"""Decision diagrams of cases: unknowns are asked in one order, and equal answers share one node.

A case gives each unknown one of its values. Seven comparisons tell more than a thousand cases apart, and the diagram
of those in which all seven hold has seven nodes.

Source: R. E. Bryant, Graph-Based Algorithms for Boolean Function Manipulation, IEEE Trans. Comput. C-35, 677 (1986),
with as many branches to a node as its unknown has values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TypeAlias

from combdiff.records import dataclass

_NONE, _ALL = 0, 1

_Node: TypeAlias = tuple[int, tuple[int, ...]]
"""The place of the unknown that is asked, and the number of the node that follows for each of its values."""


class TooManyNodes(Exception):
    """A set of cases is not of a form that a small diagram has."""


@dataclass(eq=False)
class Diagrams:
    """All sets of cases of some unknowns, each of which has so many values as `values` tells.

    >>> diagrams = Diagrams((3, 2))
    >>> one, other = diagrams.where(0, (False, True, True)), diagrams.where(1, (True, False))
    >>> bool(one & other), bool(one & ~one), (one | other) == ~(~one & ~other)
    (True, False, True)
    >>> (one & other).first, (one & ~other).first
    ((1, 0), (1, 1))
    """

    values: Sequence[int]
    limit: int = 20_000
    _nodes: list[_Node] = field(init=False)
    _numbers: dict[_Node, int] = field(default_factory=dict)
    _met: dict[tuple[int, int], int] = field(default_factory=dict)
    _opposites: dict[int, int] = field(default_factory=lambda: {_NONE: _ALL, _ALL: _NONE})

    def __post_init__(self) -> None:
        # no unknown is asked after the last one
        self._nodes = [(len(self.values), ())] * 2

    @property
    def none(self) -> Cases:
        """No case."""
        return Cases(self, _NONE)

    @property
    def all(self) -> Cases:
        """Every case."""
        return Cases(self, _ALL)

    def where(self, unknown: int, good: Sequence[bool]) -> Cases:
        """The cases in which an unknown, given by its place, has one of the values that are `good`."""
        return Cases(self, self._node(unknown, tuple(_ALL if value else _NONE for value in good)))

    def _node(self, unknown: int, following: tuple[int, ...]) -> int:
        if len({*following}) == 1:
            return following[0]
        node = unknown, following
        number = self._numbers.get(node)
        if number is None:
            number = self._numbers[node] = len(self._nodes)
            self._nodes.append(node)
            if number > self.limit:
                raise TooManyNodes
        return number

    def met(self, one: int, other: int) -> int:
        """The node of the cases of both nodes."""
        if one > other:
            one, other = other, one
        if one in (_NONE, other):
            return one
        if one == _ALL:
            return other
        found = self._met.get((one, other))
        if found is None:
            at = min(self._nodes[one][0], self._nodes[other][0])
            pairs = zip(self._following(one, at), self._following(other, at), strict=True)
            found = self._met[one, other] = self._node(at, tuple(self.met(a, b) for a, b in pairs))
        return found

    def opposite(self, number: int) -> int:
        """The node of all other cases."""
        found = self._opposites.get(number)
        if found is None:
            unknown, following = self._nodes[number]
            found = self._node(unknown, tuple(self.opposite(n) for n in following))
            self._opposites |= {number: found, found: number}
        return found

    def first(self, number: int) -> tuple[int, ...]:
        """The values of all unknowns, by their places, in the first case of a node."""
        found = [0] * len(self.values)
        while number != _ALL:
            unknown, following = self._nodes[number]
            found[unknown], number = next((value, n) for value, n in enumerate(following) if n != _NONE)
        return tuple(found)

    def _following(self, number: int, unknown: int) -> tuple[int, ...]:
        asked, following = self._nodes[number]
        return following if asked == unknown else (number,) * self.values[unknown]


@dataclass(frozen=True, slots=True)
class Cases:
    """A set of cases; two are equal where they hold the same cases of the same diagrams."""

    diagrams: Diagrams
    number: int

    def __and__(self, other: Cases) -> Cases:
        return Cases(self.diagrams, self.diagrams.met(self.number, other.number))

    def __or__(self, other: Cases) -> Cases:
        return ~(~self & ~other)

    def __invert__(self) -> Cases:
        return Cases(self.diagrams, self.diagrams.opposite(self.number))

    def __bool__(self) -> bool:
        return self.number != _NONE

    @property
    def first(self) -> tuple[int, ...]:
        """The values of all unknowns, by their places, in the first of the cases, of which there is one."""
        return self.diagrams.first(self.number)
