"""Stage c for a whole result: one graph holds all of its values, and the form that reads best is extracted.

4 Σ_q h(p,q) C(q,i) + Σ_qrsj (8 V(p,q,r,s) − 4 V(p,r,q,s)) C(q,i) C(r,j) C(s,j)   becomes
P(r,s) = Σ_j C(r,j) C(s,j);  4 Σ_q C(q,i) (h(p,q) + Σ_rs P(r,s) (2 V(p,q,r,s) − V(p,r,q,s)))
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from functools import partial
from time import perf_counter

from combdiff.budget import Budget, OutOfTime
from combdiff.canon.canonical import Symmetries
from combdiff.language.printing.names import names_in
from combdiff.records import dataclass
from combdiff.simplify.account import Family
from combdiff.simplify.choose import Binding, index_names, place
from combdiff.simplify.graph.extraction import Extraction
from combdiff.simplify.graph.graph import Graph, Leaf, Node, Ref, Zero
from combdiff.simplify.graph.laws.collect import collect
from combdiff.simplify.graph.laws.nested_sums import nested_sums
from combdiff.simplify.graph.laws.part_of_sum import part_of_sum
from combdiff.simplify.graph.laws.real_parts import real_parts
from combdiff.simplify.graph.laws.reassociate import reassociate
from combdiff.simplify.graph.naming import Naming, signed_and_named
from combdiff.simplify.graph.reading import Reader
from combdiff.simplify.graph.writing import Writer
from combdiff.simplify.graph.written_again import with_named_functions
from combdiff.terms.terms import (
    Lam,
    Loop,
    Reduce,
    Sum,
    Term,
    Var,
    body_of,
    children,
    fresh,
    holds,
    params_of,
    tuple_of,
)
from combdiff.terms.types import Index, Number, Type

ROUNDS = 8
"""Rounds of laws: each looks into what the one before it left behind."""

MANY = 24
"""Values that are looked for where they stand written out; with more of them, layers of a network, names are enough."""

CLASSES = 1_500
"""Classes beyond which no round is begun."""


def chosen(
    bindings: Sequence[Binding],
    results: Sequence[Term],
    kept: Collection[Var],
    symmetries: Symmetries,
    unused: Collection[Var],
    names: Mapping[Type, Sequence[str]],
    budget: Budget,
    more: float = 0.0,
) -> tuple[list[Binding], list[Term], dict[str, Family]]:
    """The values of a result, common factors in front and repeated parts named; those in `kept` stay as they are.

    `names` are those that the user gave to indices, by their type. There are `more` seconds to write what was found.

    Raises OutOfTime if that takes longer.
    """
    whole = [*(value for _, value in bindings), *results]
    captured = set().union(*(t.free for t in whole)) - {var for var, _ in bindings}
    reader = Reader(Graph(late=budget.over), captured, symmetries, frozenset(unused), budget, kept=kept)
    choice = Choice(reader, [*bindings], [*results], kept, names, budget)
    try:
        choice.read()
        choice.saturate()
    except OutOfTime:
        return [*bindings], [*results], choice.families
    # what is collected is to be written, too
    own = Budget(budget.deadline + more, observer=budget.observer)
    found = choice.written(Extraction(choice.graph, reader, choice.hidden(), budget=own))
    return *found, choice.families


@dataclass(slots=True)
class Choice:
    reader: Reader
    bindings: list[Binding]
    results: list[Term]
    kept: Collection[Var]
    names: Mapping[Type, Sequence[str]]
    budget: Budget
    roots: list[Ref | None] = field(default_factory=list)
    leaves: list[Leaf | None] = field(default_factory=list)
    families: dict[str, Family] = field(default_factory=dict)

    @property
    def graph(self) -> Graph:
        """The graph of all values."""
        return self.reader.graph

    def is_open(self, n: int) -> bool:
        """Whether value number `n` may be written anew."""
        return n >= len(self.bindings) or self.bindings[n][0] not in self.kept

    def read(self) -> None:
        """Read all values into the graph."""
        for n, value in enumerate([*(value for _, value in self.bindings), *self.results]):
            entry = body_of(value)
            indexed = isinstance(value, Lam) and all(isinstance(p.kind, Index) for p in value.params)
            indexed = indexed or not isinstance(value, Lam | Loop)
            root: Ref | None = None
            if indexed and isinstance(entry.type, Number) and self.is_open(n):
                try:
                    root = self.reader(entry)
                except Zero:
                    root = None
            self.roots.append(root)
            if n < len(self.bindings):
                var = self.bindings[n][0]
                self.leaves.append(self.reader.define(var, value) if indexed and len(self.bindings) <= MANY else None)
                self.reader.captured.add(var)
        if self.reader.recognised:
            self.families["part_of_product"] = Family(self.reader.recognised)

    def laws(self) -> list[partial[int]]:
        """The laws in the order of a round, each with the nodes that it has looked at: none so far."""
        named = [self.graph.frame(leaf).of for leaf in self.leaves if leaf is not None]
        return [
            partial(part_of_sum, self.graph, named, set()),
            partial(collect, self.graph, self.reader.one(), set()),
            partial(nested_sums, self.graph, set()),
            partial(real_parts, self.graph, self.reader, set()),
            partial(reassociate, self.graph, set()),
        ]

    def saturate(self) -> None:
        """Apply the laws until nothing is new."""
        laws = self.laws()
        self.graph.rebuild()
        for _ in range(ROUNDS):
            if self.budget.over() or self.graph.made > CLASSES:
                break
            if not sum([self._applied(law) for law in laws]):
                break

    def _applied(self, law: partial[int]) -> int:
        start = perf_counter()
        count = law()
        self.graph.rebuild()
        family = self.families.setdefault(law.func.__name__, Family())
        family.matches += count
        family.seconds += perf_counter() - start
        return count

    def written(
        self, plain: Extraction, naming: type[Naming] = Naming, verbatim: bool = True
    ) -> tuple[list[Binding], list[Term]]:
        """The values in the forms that `plain` chooses, new ones with names among them.

        What was read stays as it was, where that is no longer, if it is to be `verbatim`.
        """
        plain.run()
        everything = plain.copy()
        everything.show(*(leaf for leaf in self.leaves if leaf is not None))
        roots = [(r.of, self.leaves[n] if n < len(self.leaves) else None) for n, r in enumerate(self._now()) if r]
        if verbatim:
            self.reader.finish()
        named = naming(self.reader, everything, roots, self.budget)
        if verbatim:
            pairs = zip(self.leaves, self.roots, strict=False)
            named.kept = [
                (self.graph.frame(leaf).of, leaf) for leaf, root in pairs if leaf is not None and root is None
            ]
        named.run()
        values = [*(value for _, value in self.bindings), *self.results]
        names = {**index_names(tuple_of(values)), **self.names}
        first = {kind: own[0] for kind, own in names.items() if own}
        later = {var for var, _ in self.bindings}
        return Text(self, plain, named, first, later).all()

    def hidden(self) -> set[Node]:
        """The leaves of values, which are not written before the values are defined."""
        return {leaf for leaf in self.leaves if leaf is not None}

    def _now(self) -> list[Ref | None]:
        return [self.graph.find(r) if r is not None else None for r in self.roots]

    def taken(self) -> set[str]:
        """The names that stand in the result."""
        values = [*(value for _, value in self.bindings), *self.results]
        return names_in(*values) | {var.name for var, _ in self.bindings}


@dataclass(slots=True)
class Text:
    """The values, and the new ones, each written with what was defined before it.

    `met` are values that stand before what is written, and are not shown in the plain forms yet.
    """

    choice: Choice
    plain: Extraction
    naming: Naming
    names: Mapping[Type, str]
    later: set[Var]
    ordered: list[Binding] = field(default_factory=list)
    defined: set[Leaf] = field(default_factory=set)
    met: list[Leaf] = field(default_factory=list)

    def all(self) -> tuple[list[Binding], list[Term]]:
        choice = self.choice
        state = self.plain.copy()
        state.show(*self.naming.leaves)
        results = []
        met: list[Leaf] = []
        for n, value in enumerate([*(value for _, value in choice.bindings), *choice.results]):
            root = choice.roots[n]
            if root is not None:
                state.show(*met)
                met.clear()
                with suppress(OutOfTime):
                    value = self._value(value, root, state)
            if n >= len(choice.bindings):
                results.append(value)
                continue
            var = choice.bindings[n][0]
            self.ordered.append((var, value))
            self.later.discard(var)
            leaf = choice.leaves[n]
            if leaf is not None:
                self.met.append(leaf)
                met.append(leaf)
        # what only one other value mentions still is part of it
        new = [*self.naming.leaves.values()]
        self.ordered = with_named_functions(self.ordered, new, choice.kept)
        kept = {*choice.kept, *(v for v in new if self._stays(v, results))}
        bindings, results = place(self.ordered, results, kept)
        return signed_and_named(bindings, results, new, choice.taken(), self.naming.letters)

    def _stays(self, new: Var, results: Sequence[Term]) -> bool:
        """Whether a new value is read in several places, is a sum, such as a density matrix, or is one to run."""
        value = dict(self.ordered).get(new)
        if self.naming.letters or value is None or holds(value, Sum, Reduce):
            return True
        places = [*(value for _, value in self.ordered), *results]
        return sum(_occurrences(t, new) for t in places) > 1

    def _value(self, value: Term, root: Ref, state: Extraction) -> Term:
        params = params_of(value)
        writer = Writer(state, self.choice.reader, self.names, self.later)
        entry = writer(root, self._indices(root, params))
        self._define(writer, state)
        return Lam(params, entry) if params else entry

    def _indices(self, root: Ref, params: Sequence[Var]) -> dict[int, Term]:
        return {abs(label): self.choice.reader.indices[abs(label)] for label in self.choice.graph.find(root).labels}

    def _define(self, writer: Writer, state: Extraction) -> None:
        """Write the new values that were used, before what uses them."""
        for leaf in writer.used:
            if leaf not in self.naming.leaves or leaf in self.defined:
                continue
            own = self._without(leaf, state)
            spelling = self.choice.reader.spelled[leaf.key]
            slots = [fresh(self.names.get(v.kind, "i"), v.kind) for v in spelling.slots]
            inner = Writer(own, self.choice.reader, self.names, self.later)
            entry = inner(self.choice.graph.frame(leaf), dict(enumerate(slots, start=1)))
            self._define(inner, state)
            var = self.naming.leaves[leaf]
            self.ordered.append((var, Lam(tuple(slots), entry) if slots else entry))
            self.defined.add(leaf)  # not before: time may be up while it is written

    def _without(self, leaf: Leaf, state: Extraction) -> Extraction:
        """The forms in which a new value is written: with names of what is smaller than itself."""
        self.plain.show(*self.met)
        self.met.clear()
        of = self.choice.graph.frame(leaf).of
        size = self.plain.best[of].term
        own = self.plain.copy()
        smaller = [n for n in self.naming.leaves if self.plain.best[self.choice.graph.frame(n).of].term < size]
        own.show(*smaller, among=own.below(of))
        return own


def _occurrences(t: Term, var: Var) -> int:
    if t is var:
        return 1
    return sum(_occurrences(u, var) for u in children(t)) if var in t.free else 0
