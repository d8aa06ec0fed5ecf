"""Extracts the form of a result that is cheapest to compute for given sizes, from the same graph as the formula.

    sum(k, G(k, c) * (P(k, i) * s(k) - P(k, i)' * z(k)))   for reading may be   G times two sums   for running

Work is counted once for a class, however often it is used: a class with several users gets a name, and costs nothing
where it is used. What a formula collects under one Σ is computed apart where that is less work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from math import prod
from threading import Lock

from combdiff.budget import Budget, OutOfTime
from combdiff.calculus.implicit import is_implicit
from combdiff.records import dataclass
from combdiff.simplify.choose import Binding
from combdiff.simplify.graph.choice import Choice
from combdiff.simplify.graph.extraction import NONE, Extraction, Form
from combdiff.simplify.graph.graph import BOUND, Con, Graph, Leaf, Lin, Node
from combdiff.simplify.graph.naming import Naming
from combdiff.simplify.graph.reading import Reader
from combdiff.simplify.known import is_opaque
from combdiff.terms.conditions.comparing import is_mark
from combdiff.terms.terms import Add, App, Call, Lam, Mul, Pow, Term, Var, let, subterms, tuple_of
from combdiff.terms.types import Domain, Index, Type

BLAS = 1 / 16
"""The time of a multiplication in a product of matrices, by that of one entry of an array that is read and written."""

BATCHED = 1 / 4
"""The same in a product of many small matrices."""

CALL = 16
"""The time of a function such as exp, by the same."""

TRIED = 24
"""Classes that are tried for a name at a time."""

CLEARLY = 0.97
"""The share of the time that is left where a name pays."""

ROUNDS = 4
"""How often classes get names: with names for some, others turn out to be used more than once."""


@dataclass(slots=True)
class Work(Extraction):
    """The forms of classes that take least time, for domains of these `sizes`."""

    sizes: Mapping[Domain, int] = field(default_factory=dict)

    def parentheses(self, of: int, node: Node) -> float:
        """Nothing: a sum is computed alike wherever it stands."""
        return 0.0

    def cost_of(self, form: Form) -> tuple[float, int, int]:
        """The time of a form with that of its children."""
        best, cost = self.best, form.own
        for of, _ in form.parts:
            cost += best.get(of, NONE).term
        return cost, 0, 0

    def _parts(self, node: Node) -> tuple[float, tuple[tuple[int, bool], ...]]:
        """The time of a node itself, and its children."""
        _, parts = Extraction._parts(self, node)
        return self.work(node), parts

    def work(self, node: Node) -> float:
        """The time of a node itself."""
        classes = self.graph.classes
        own = classes[self.graph.frame(node).of]
        size = self._size(own.kinds) * (1 if own.real else 2)
        match node:
            case Leaf(key=(("tensor" | "value" | "name" | "number"), _)):
                return 1e-3
            case Leaf(key=key):
                return size * _operations(self.read.spelled[key].term)
            case Lin(terms=terms):
                return size * len(terms)
            case Con(children=children):
                extents = {
                    abs(slot): self._size([kind])
                    for c in children
                    for slot, kind in zip(c.slots, classes[c.of].kinds, strict=True)
                }
                # a product of complex numbers is four of real ones
                whole = prod(1.0 if classes[c.of].real else 2.0 for c in children)
                for extent in extents.values():
                    whole *= extent
                if len(children) == 1 or not node.bound:
                    return whole
                both = {abs(s) for s in children[0].slots} & {abs(s) for s in children[1].slots}
                return whole * (BATCHED if any(s < BOUND for s in both) else BLAS) + size
            case _:
                raise AssertionError("a node is a leaf, a product or a sum")

    def _size(self, kinds: Sequence[Type]) -> float:
        size = 1.0
        for kind in kinds:
            domain = kind.domain if isinstance(kind, Index) else None
            for axis in domain.axes if domain is not None else ():
                size *= max(1, self.sizes.get(axis, 1) if axis.count is None else axis.count)
        return size


def _operations(t: Term) -> float:
    """The entries' worth of time that a leaf takes for each of its own."""
    calls = sum(isinstance(u, Call | Pow) or (isinstance(u, App) and not u.type) for u in subterms(t))
    return CALL * calls + sum(isinstance(u, Add | Mul) for u in subterms(t))


@dataclass(slots=True)
class Sharing(Naming):
    """Gives names to all classes that have more than one user."""

    letters: str = "t"

    def run(self) -> None:
        """Name classes until no other has two users, then those that several products could be made with, best first.

        What is best is not a matter of the order in which the program was written, as what helps first would be.
        """
        self._name_the_shared()
        while not self.budget.over():
            before = self._length(self.chosen)
            possible = [of for of in self._promising() if self.chosen.best[of].term <= before][:TRIED]
            least, best = min(((self._length_with(of), of) for of in possible), default=(before, -1))
            if least >= CLEARLY * before:
                return
            self.chosen.show(self._named(best))
            self._name_the_shared()

    def _name_the_shared(self) -> None:
        for _ in range(ROUNDS):
            found = [of for of, n in self._users().items() if n > 1 and self._is_work(of)]
            if not found:
                return
            self.chosen.show(*map(self._named, found))

    def _promising(self) -> list[int]:
        """Classes that more than one product can be made with, be it not in its quickest split: dear ones first."""
        _, nodes = self._written()
        parts = {part for of, node in nodes if isinstance(node, Con) for part in self._parts_of(of)}
        shared = [of for of in parts if len(self.graph.users[of]) > 1 and self._is_work(of)]
        return sorted(shared, key=lambda of: (-self.chosen.best[of].term, of))

    def _is_work(self, of: int) -> bool:
        best = self.chosen.best.get(of, NONE)
        if best.term <= 1 or self.graph.classes[of].within or best.term_node in self.leaves:
            return False
        # a condition is compared as quickly as an array that says where it holds
        return not (isinstance(best.term_node, Leaf) and is_mark(self.chosen.read.spelled[best.term_node.key].term))


@dataclass(slots=True)
class AllForms:
    """All forms of a result; the cheapest is taken for one set of sizes after another, in any number of threads."""

    params: Sequence[Var]
    choice: Choice
    lock: Lock = field(default_factory=Lock)

    @classmethod
    def of(
        cls, params: Sequence[Var], bindings: Sequence[Binding], outputs: Sequence[Term], budget: Budget
    ) -> AllForms | None:
        """Those of a result; None where the budget ends before they are found."""
        reader = Reader(Graph(late=budget.over), {*params}, {}, frozenset(), budget)
        kept = {var for var, value in bindings if is_opaque(value) or is_implicit(value)}
        choice = Choice(reader, [*bindings], [*outputs], kept, {}, budget)
        try:
            choice.read()
            choice.saturate()
        except OutOfTime:
            return None
        return cls(params, choice)

    def cheapest(self, sizes: Mapping[Domain, int], budget: Budget) -> Lam:
        """The form that is cheapest to compute for domains of these sizes."""
        choice = self.choice
        with self.lock:
            choice.budget = budget
            plain = Work(choice.graph, choice.reader, choice.hidden(), sizes=sizes)
            known = {*choice.graph.frames}
            try:
                found, results = choice.written(plain, Sharing, verbatim=False)
            finally:
                # names are for these sizes alone
                for leaf in [n for n in choice.graph.frames if isinstance(n, Leaf) and n not in known]:
                    choice.graph.drop(leaf)
        return Lam(tuple(self.params), let(found, tuple_of(results)))
