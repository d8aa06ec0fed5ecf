"""Extracts the form of each class that reads best.

A form is measured by the names it is written with. Parentheses cost 3.5 names, and more where what stands in them has
more than two indices: a sum of matrices in front of a matrix reads well, a puzzle of rank four does not.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import field, replace
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import NamedTuple, Self

from combdiff.budget import Budget
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

OFTEN = 256
"""Classes that get better between two looks at the clock."""


class Best(NamedTuple):
    """The least cost of a class, and the node that has it: alone, and as a factor, where a sum needs parentheses.

    Of the factor: the sums in parentheses within it if it `is_product`, whether it is itself such a sum, and the slots
    of its longest entry.
    """

    term: float = inf
    factor: float = inf
    term_node: Node | None = None
    factor_node: Node | None = None
    within: int = 0
    rank: int = 0
    is_product: bool = False
    is_sum: bool = False


NONE = Best()


class Form(NamedTuple):
    """A node of a class as all extractions of a graph see it: what it costs itself, its children, and its rank.

    A child is `plain` if it needs no parentheses. `squared` is the class that the node is the square of, if it is one.
    """

    node: Node
    of: int
    own: float
    parts: tuple[tuple[int, bool], ...]
    rank: int
    squared: int | None


@dataclass(slots=True)
class Extraction:
    """The best forms of all classes, if the leaves in `hidden` are not written.

    `forms` are those of the nodes, `users` the forms that hold a class: no class is joined with another any more.
    """

    graph: Graph
    read: Reader
    hidden: set[Node] = field(default_factory=set)
    best: dict[int, Best] = field(default_factory=dict)
    forms: dict[Node, Form] = field(default_factory=dict)
    users: dict[int, list[Form]] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)

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
                new = {part for part, _ in self.form(node).parts} - found
                found |= new
                waiting += new
        return found

    def relax(self, nodes: Iterable[Node], among: Container[int] | None = None) -> None:
        """Take `nodes` where they are better than what is known, and what gets better with them, the cheapest first."""
        best = self.best
        waiting: list[tuple[float, int]] = []
        for form in map(self.form, nodes):
            if self._improve(form):
                heappush(waiting, (best[form.of].term, form.of))
        for looked in count():
            if not waiting:
                break
            if looked % OFTEN == 0:
                self.budget.check()
            cost, of = heappop(waiting)
            if cost > best[of].term:
                continue  # it has got better since, and stands in front with that
            for form in self._users(of):
                above = form.of
                # what holds this class is no cheaper than it
                if best.get(above, NONE).factor <= cost or not (among is None or above in among):
                    continue
                if self._improve(form):
                    heappush(waiting, (best[above].term, above))

    def _users(self, of: int) -> list[Form]:
        if of not in self.users:
            self.users[of] = [self.form(node) for node in self.graph.users[of] if node in self.graph.frames]
        return self.users[of]

    def _improve(self, form: Form) -> bool:
        of, node = form.of, form.node
        old = self.best.get(of, NONE)
        term, within, rank = self.cost_of(form)
        # most forms are no better, and are asked about often; a factor costs no less than a term
        if term >= old.factor - TIE / 10 and term >= old.term - TIE / 10:
            return False
        factor = term + self.parentheses(of, node)
        as_term, as_factor = term < old.term - TIE / 10, factor < old.factor - TIE / 10
        if not (as_term or as_factor) or node in self.hidden:
            return False
        if as_factor:
            own = (node if as_term else old.term_node), node, within, rank, isinstance(node, Con), isinstance(node, Lin)
            self.best[of] = Best(term if as_term else old.term, factor, *own)
        else:
            self.best[of] = old._replace(term=term, term_node=node)
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

    def cost(self, node: Node) -> float:
        """The names of a node with those of its children."""
        return self.cost_of(self.form(node))[0]

    def cost_of(self, form: Form) -> tuple[float, int, int]:
        """The names of a form with those of its children, the sums in parentheses in it, and its longest entry."""
        best, cost, rank = self.best, form.own, form.rank
        if not isinstance(form.node, Con):
            for of, plain in form.parts:
                b = best.get(of, NONE)
                cost += b.term if plain else b.factor
                rank = max(rank, b.rank)
            return cost, 0, rank
        inner = sums = 0
        for of, _ in form.parts[: 1 if self._is_written_as_square(form) else None]:
            b = best.get(of, NONE)
            cost += b.factor
            rank = max(rank, b.rank)
            inner += b.within if b.is_product else 0
            sums += b.is_sum
        return cost + TIE * inner, inner + sums, rank

    def is_written_as_square(self, node: Con) -> bool:
        """Whether a product is a contraction squared, whose sum is written once."""
        return self._is_written_as_square(self.form(node))

    def _is_written_as_square(self, form: Form) -> bool:
        if form.squared is None:
            return False
        below = self.best.get(form.squared, NONE).factor_node
        return isinstance(below, Con) and bool(below.bound)

    def form(self, node: Node) -> Form:
        """A node with what it costs itself."""
        found = self.forms.get(node)
        if found is None:
            of = self.graph.frame(node).of
            rank = len(self.graph.classes[of].kinds) if isinstance(node, Leaf) else 0
            own, parts = self._parts(node)
            squared = parts[0][0] if isinstance(node, Con) and node.is_square else None
            found = self.forms[node] = Form(node, of, own, parts, rank, squared)
        return found

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
        return own_words(t) - self.read.discounts.get(t, 0.0) + sum(self._counted(c, holes) for c in children(t))
