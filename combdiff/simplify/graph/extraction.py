"""Extracts the form of each class that reads best.

A form is measured by the names it is written with. Parentheses cost 3.5 names, and more where what stands in them has
more than two indices: a sum of matrices in front of a matrix reads well, a puzzle of rank four does not.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import field, replace
from heapq import heappop, heappush
from math import inf
from typing import Self

from combdiff.canon.skeleton import MINUS, UNIT
from combdiff.records import dataclass
from combdiff.simplify.graph.graph import Con, Graph, Leaf, Lin, Node
from combdiff.simplify.graph.reading import Reader
from combdiff.simplify.graph.reading_cost import KNOWN, PARENTHESES, own_words
from combdiff.terms.terms import App, Term, Var, children

SLOTS = (0.4, 1.4)
"""What the third slot of a sum in parentheses costs, and each beyond it, unless it is a sum of entries."""

BEYOND = 4.0
"""What each slot costs that such a sum has more than any entry in it: it would have to be made to be read."""

TIE = 1e-5
"""Of equal forms of a product the one is taken in which collected sums stand outside."""


@dataclass(frozen=True, slots=True)
class Best:
    """The least cost of a class, and the node that has it: alone, and as a factor, where a sum needs parentheses."""

    term: float = inf
    factor: float = inf
    term_node: Node | None = None
    factor_node: Node | None = None
    within: int = 0
    rank: int = 0


NONE = Best()


@dataclass(slots=True)
class Extraction:
    """The best forms of all classes, if the leaves in `hidden` are not written."""

    graph: Graph
    read: Reader
    hidden: set[Node] = field(default_factory=set)
    best: dict[int, Best] = field(default_factory=dict)
    own: dict[Node, tuple[float, tuple[tuple[int, bool], ...]]] = field(default_factory=dict)

    def run(self) -> None:
        """Find the best forms."""
        self.relax(self.graph.frames)

    def copy(self) -> Self:
        """One that can go its own way."""
        return replace(self, hidden=set(self.hidden), best=dict(self.best))

    def show(self, *leaves: Node, among: Container[int] | None = None) -> None:
        """Let leaves that were hidden be written; the best forms are looked for in the classes `among` alone."""
        self.hidden.difference_update(leaves)
        self.relax([n for n in leaves if among is None or self.graph.frame(n).of in among], among)

    def below(self, of: int) -> set[int]:
        """A class with all that its forms are made of."""
        found = {of}
        waiting = [of]
        while waiting:
            for node in self.graph.classes[waiting.pop()].nodes:
                new = {part for part, _ in self._own(node)[1]} - found
                found |= new
                waiting += new
        return found

    def relax(self, nodes: Iterable[Node], among: Container[int] | None = None) -> None:
        """Take `nodes` where they are better than what is known, and what gets better with them, the cheapest first."""
        frames, users = self.graph.frames, self.graph.users
        waiting: list[tuple[float, int]] = []
        for node in nodes:
            of = self.graph.frame(node).of
            if node not in self.hidden and self._improve(of, node):
                heappush(waiting, (self.best[of].term, of))
        while waiting:
            cost, of = heappop(waiting)
            if cost > self.best[of].term:
                continue  # it has got better since, and stands in front with that
            for user in users[of]:
                if user in frames and user not in self.hidden:
                    above = self.graph.holder(frames[user].of)
                    if (among is None or above in among) and self._improve(above, user):
                        heappush(waiting, (self.best[above].term, above))

    def _improve(self, of: int, node: Node) -> bool:
        term, within, rank = self.cost(node)
        if term == inf:
            return False
        factor = term + self.parentheses(of, node)
        old = self.best.get(of, NONE)
        better = (term < old.term - TIE / 10, factor < old.factor - TIE / 10)
        if not any(better):
            return False
        self.best[of] = Best(
            term if better[0] else old.term,
            factor if better[1] else old.factor,
            node if better[0] else old.term_node,
            node if better[1] else old.factor_node,
            within if better[1] else old.within,
            rank if better[1] else old.rank,
        )
        return True

    def parentheses(self, of: int, node: Node) -> float:
        """What a class costs more where it is a factor."""
        if not isinstance(node, Lin):
            return 0.0
        if all(self._is_entry(c.of) for c, _ in node.terms):
            return PARENTHESES
        slots = len(self.graph.classes[of].kinds)
        rank = max(2, *(self.best.get(self.graph.holder(c.of), NONE).rank for c, _ in node.terms))
        return PARENTHESES + SLOTS[0] * (slots > 2) + SLOTS[1] * max(0, slots - 3) + BEYOND * max(0, slots - rank)

    def cost(self, node: Node) -> tuple[float, int, int]:
        """The names of a node with those of its children, the sums in parentheses in it, and its longest entry."""
        own, parts = self._own(node)
        best = self.best
        if isinstance(node, Con):
            found = [best.get(of, NONE) for of, _ in parts]
            inner = sum([b.within for b in found if isinstance(b.factor_node, Con)])
            sums = sum([isinstance(b.factor_node, Lin) for b in found])
            return own + sum([b.factor for b in found]) + TIE * inner, inner + sums, max([b.rank for b in found])
        rank = len(self.graph.classes[self.graph.frame(node).of].kinds) if isinstance(node, Leaf) else 0
        for of, plain in parts:
            b = best.get(of, NONE)
            own += b.term if plain else b.factor
            rank = max(rank, b.rank)
        return own, 0, rank

    def _own(self, node: Node) -> tuple[float, tuple[tuple[int, bool], ...]]:
        """What a node costs itself, and its children, each perhaps without parentheses."""
        if node not in self.own:
            self.own[node] = self._parts(node)
        return self.own[node]

    def _parts(self, node: Node) -> tuple[float, tuple[tuple[int, bool], ...]]:
        """The names that a node is written with itself, and its children, each perhaps without parentheses."""
        holder = self.graph.holder
        match node:
            case Leaf(key=key):
                counts = dict.fromkeys(self.read.spelled[key].holes, 0)
                own = self._counted(self.read.spelled[key].term, counts) - KNOWN * (key[0] == "name")
                holes = self.read.spelled[key].holes
                return own, tuple((holder(holes[v].of), True) for v, n in counts.items() for _ in range(n))
            case Con(children=parts):
                return float(len(node.bound)), tuple((holder(c.of), False) for c in parts)
            case Lin(terms=terms):
                return 0.0, tuple((holder(c.of), n in (UNIT, MINUS)) for c, n in terms)
            case _:
                raise AssertionError("a node is a leaf, a product or a sum")

    def _is_entry(self, of: int) -> bool:
        return isinstance(self.best.get(self.graph.holder(of), NONE).term_node, Leaf)

    def _counted(self, t: Term, holes: dict[Var, int]) -> float:
        """The names of a leaf without those of its holes, each of which is counted in `holes`."""
        v = t.function if isinstance(t, App) else t
        if isinstance(v, Var) and v in holes:
            holes[v] += 1
            return 0.0
        return own_words(t) - KNOWN * (t in self.read.values) + sum(self._counted(c, holes) for c in children(t))
