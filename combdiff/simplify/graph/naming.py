"""Chooses the classes that get a name: those written twice, and factors in front of a collected sum.

A name is worth it where the whole text gets shorter by more than two names with it, its definition counted once. A
function of a contraction has one wherever it is written twice, as nobody computes it twice; a contraction in front of a
collected sum has one in any case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import field
from itertools import count

from combdiff.budget import Budget
from combdiff.calculus.definitions.naming import LINEAR
from combdiff.canon.skeleton import UNIT
from combdiff.records import dataclass
from combdiff.simplify.choose import Binding, is_cheap
from combdiff.simplify.graph.extraction import NONE, Extraction
from combdiff.simplify.graph.graph import BOUND, Con, Graph, Leaf, Lin, Node, Ref, reciprocal
from combdiff.simplify.graph.ratios import ratios
from combdiff.simplify.graph.reading import Reader, WrittenLeaf
from combdiff.simplify.graph.writing import Writer
from combdiff.terms.arithmetic import content
from combdiff.terms.conditions.guards import reads_beyond
from combdiff.terms.laws.matrices import is_of_a_name
from combdiff.terms.network import addends
from combdiff.terms.nodes import SHARES
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    ZERO,
    Add,
    App,
    Call,
    Lam,
    Mul,
    Reduce,
    Sum,
    Term,
    Var,
    add,
    body_of,
    children,
    fresh,
    lam,
    mul,
    params_of,
    split_coefficient,
    substitute,
)
from combdiff.terms.types import COMPLEX, REAL, Map

SHORTEST = 6
"""Names that a class is written with before it can be worth one of its own."""

SHADE = 0.1
"""What ties are broken by is less than this, and decides about no name."""

WORTH = 2
"""Names that a new value has to save."""

WORTH_TWICE = 10
"""The same for one that is written twice and holds no contraction: a short part is rather read again."""

MATRIX = 2
"""The most slots of a contraction that gets a name where it stands in front of a sum."""

MOST_VISITS = 100_000
"""Visits to classes in one count of readings, which meets a shared class as often as it is written."""

TRIED = 16
"""Classes that are tried for a name in vain, before no more are."""


@dataclass(slots=True)
class Naming:
    """Gives names to classes that `roots` are written with; `leaves` has what was named: the nodes, and the variables;
    `letters` are what they are called by, if not by their rank. Values that are `kept` as the program writes them hold
    functions, too, and are written with the names of these.

    `chosen` is the extraction in which all names may be written; `plain` one without them.
    """

    reader: Reader
    chosen: Extraction
    roots: Sequence[tuple[int, Node | None]]
    budget: Budget
    leaves: dict[Leaf, Var] = field(default_factory=dict)
    parts: dict[int, set[int]] = field(default_factory=dict)
    in_vain: set[int] = field(default_factory=set)
    named: set[int] = field(default_factory=set)
    alone: dict[int, bool] = field(default_factory=dict)
    guarded: bool | None = None
    letters: str = ""
    kept: Sequence[tuple[int, Node | None]] = ()

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self.reader.graph

    def run(self) -> None:
        """Name what is worth it: functions that several forms hold, then one class at a time, the best first."""
        while not self.budget.over():
            functions = [of for of in self._computed_twice() if self._is_unnamed_function(of)]
            if not functions:
                break
            self.chosen.show(*map(self._named, functions))
        while not self.budget.over():
            of = self._in_front_of_a_sum()
            of = self._ratio() if of is None else of
            of = self._worth_most() if of is None else of
            if of is None:
                return
            self.chosen.show(self._named(of))

    def _named(self, of: int) -> Leaf:
        """A leaf with a new name for a class, hidden at first: for what is written without a number in front."""
        own = self.graph.classes[of]
        frame = self._written_plainly(of)
        kinds = {abs(s): kind for s, kind in zip(frame.labels, own.kinds, strict=True)}
        slots = tuple(fresh(f"d{n}", kinds[n]) for n in range(1, len(kinds) + 1))
        result = REAL if own.typed else COMPLEX
        var = fresh(f"#{len(self.leaves)}", Map(tuple(v.kind for v in slots), result) if slots else result)
        leaf = Leaf(("name", var))
        self.named.add(of)
        self.reader.spelled[leaf.key] = WrittenLeaf(slots, App(var, slots) if slots else var, {})
        self.chosen.hidden.add(leaf)
        self.graph.put(leaf, frame)
        self.leaves[leaf] = var
        return leaf

    def _written_plainly(self, of: int) -> Ref:
        """What a class is written as, without the number in front of it, by the class."""
        node = self.chosen.best[of].term_node
        if isinstance(node, Leaf):
            return self.graph.frame(node)
        slots = {n: fresh(f"d{n}", kind) for n, kind in enumerate(self.graph.classes[of].kinds, start=1)}
        whole = Ref(UNIT, False, tuple(slots), of)
        size, _ = content(Writer(self.chosen, self.reader, {})(whole, slots))
        if size == ZERO:
            return whole  # its terms cancel, which is seen where they are written
        return whole.times(reciprocal((size.real, size.imag)))

    # --- what is written

    def _written(self) -> tuple[Counter[int], Counter[tuple[int, Node]]]:
        """How often each class, and each node of a product with its sums, is written in all of the text."""
        nodes: Counter[tuple[int, Node]] = Counter()
        counts: Counter[int] = Counter()
        for root, own in self.roots:
            self._walk(root, own, counts, nodes)
        for leaf in self.leaves:
            self._walk(self.graph.frame(leaf).of, leaf, counts, nodes)
        return counts, nodes

    def _computed_twice(self) -> list[int]:
        """The classes that several nodes mention; those of `kept` values count for functions of contractions."""
        users, held = self._users(), self._users(self.kept)
        return [of for of, n in held.items() if users[of] > 1 or (n > 1 and self._is_of_a_contraction(of))]

    def _is_of_a_contraction(self, of: int) -> bool:
        """Whether it is made of a contraction, whatever that is called, or of a reduction."""
        todo, seen = [of], set[int]()
        while todo:
            c = todo.pop()
            if c in seen:
                continue
            seen.add(c)
            for node in self.graph.classes[c].nodes:
                if isinstance(node, Con) and node.bound:
                    return True
                if isinstance(node, Leaf) and _is_entry_of_a_reduction(self.reader.spelled[node.key].term):
                    return True
                todo += [below for below, _ in self._below(node)]
        return False

    def _users(self, kept: Sequence[tuple[int, Node | None]] = ()) -> Counter[int]:
        """How many of the nodes that are computed, those of `kept` values among them, mention a class."""
        users: Counter[int] = Counter()
        seen: set[int] = set()
        todo = []
        for root, own in [*self.roots, *kept, *((self.graph.frame(leaf).of, leaf) for leaf in self.leaves)]:
            node = self._definition(root, own)
            if node is not None:
                todo.append(node)
        while todo:
            node = todo.pop()
            for of, _ in self._below(node):
                users[of] += 1
                inner = self.chosen.best.get(of, NONE).term_node
                if of not in seen and inner is not None:
                    seen.add(of)
                    todo.append(inner)
        return users

    def _walk(self, root: int, own: Node | None, counts: Counter[int], nodes: Counter[tuple[int, Node]]) -> None:
        first = self._definition(root, own)
        todo = [*self._below(first)] if first is not None else []
        if first is not None:
            nodes[root, first] += 1
        steps = 0
        while todo and steps < MOST_VISITS:
            of, as_factor = todo.pop()
            steps += 1
            counts[of] += 1
            best = self.chosen.best.get(of, NONE)
            node = best.factor_node if as_factor else best.term_node
            if node is not None:
                nodes[of, node] += 1
                todo += self._below(node)

    def _definition(self, of: int, own: Node | None, chosen: Extraction | None = None) -> Node | None:
        """The node that the class is defined with, where the leaf `own` is its name."""
        chosen = chosen or self.chosen
        best = chosen.best.get(of, NONE)
        if own is None or best.term_node != own:
            return best.term_node
        nodes = [n for n in self.graph.classes[of].nodes if n not in chosen.hidden and n != own]
        return min(nodes, key=chosen.cost, default=None)

    def _below(self, node: Node) -> Iterator[tuple[int, bool]]:
        match node:
            case Con(children=parts):
                once = self.chosen.is_written_as_square(node)
                yield from ((self.graph.holder(c.of), True) for c in (parts[:1] if once else parts))
            case Lin(terms=terms):
                yield from ((self.graph.holder(c.of), n != UNIT) for c, n in terms)
            case Leaf(key=key):
                yield from ((self.graph.holder(r.of), False) for r in self.reader.spelled[key].holes.values())

    # --- what is worth a name

    def _is_unnamed_function(self, of: int) -> bool:
        """Whether it is a function of a contraction or of a value, with indices, which nobody computes twice."""
        own = self.graph.classes[of]
        candidate = bool(own.kinds) and self._is_function(of) and self._is_function_of_work(of)
        return candidate and self._stands_alone(of)

    def _is_nameable(self, of: int) -> bool:
        own = self.graph.classes[of]
        best = self.chosen.best.get(of, NONE)
        named = isinstance(best.term_node, Leaf)
        return ((not own.within and not named) or self._is_function(of)) and self._stands_alone(of)

    def _stands_alone(self, of: int) -> bool:
        """Whether what it is written with has a value for all of its indices, without a condition around it."""
        if of not in self.alone:
            slots = {n: fresh(f"d{n}", kind) for n, kind in enumerate(self.graph.classes[of].kinds, start=1)}
            written = Writer(self.chosen, self.reader, {})
            self.alone[of] = not (
                self._is_guarded() and reads_beyond(written(Ref(UNIT, False, tuple(slots), of), slots))
            )
        return self.alone[of]

    def _is_guarded(self) -> bool:
        """Whether anything is read beyond a range, under a condition; names that come later are not."""
        if self.guarded is None:
            self.guarded = any(reads_beyond(s.term) for s in self.reader.spelled.values())
        return self.guarded

    def _is_function(self, of: int) -> bool:
        """Whether it is written exp(u(n, k)) or the like, for a u that is no plain product."""
        own = self.graph.classes[of]
        node = self.chosen.best.get(of, NONE).term_node
        # a name with all of its indices may be no shorter than what it stands for, which is written all the same
        if own.within or not isinstance(node, Leaf) or of in self.named:
            return False
        term = self.reader.spelled[node.key].term
        return (isinstance(term, Call) and bool(term.args)) or _is_entry_of_a_reduction(term)

    def _in_front_of_a_sum(self) -> int | None:
        """A contraction that is the only one in front of a collected sum, with which it shares all its indices."""
        _, nodes = self._written()
        for (_, node), _ in nodes.items():
            if isinstance(node, Con):
                parts = self._flat(node)
                sums = [of for of, n in parts if isinstance(n, Lin)]
                products = [of for of, n in parts if isinstance(n, Con) and n.bound]
                if len(sums) == 1 and len(products) == 1 and self._is_summed(node, products[0]):
                    own = self.graph.classes[products[0]]
                    if not own.within and len(own.kinds) <= MATRIX and self._stands_alone(products[0]):
                        return products[0]
        return None

    def _ratio(self) -> int | None:
        """A ratio of contractions that stands in a term of an array."""
        _, nodes = self._written()
        for of, node in nodes:
            if isinstance(node, Lin) and self.graph.classes[of].kinds:
                for found in ratios(self.reader, node):
                    own = self.graph.classes[found]
                    named = isinstance(self.chosen.best[found].term_node, Leaf)
                    if own.within or named or self.chosen.best[found].term < SHORTEST - SHADE:
                        continue
                    if self._stands_alone(found):
                        return found
        return None

    def _is_summed(self, node: Con, of: int) -> bool:
        """Whether the product sums over all indices of a factor: a density, and no part of a chain of matrices."""
        return any(self.graph.holder(c.of) == of and all(abs(s) >= BOUND for s in c.slots) for c in node.children)

    def _flat(self, node: Con) -> list[tuple[int, Node | None]]:
        """The factors of a product; a product within it is one factor if no sum stands in it."""
        found: list[tuple[int, Node | None]] = []
        for child in node.children:
            of = self.graph.holder(child.of)
            best = self.chosen.best.get(of, NONE)
            inner = best.factor_node
            if isinstance(inner, Con) and best.within:
                found += self._flat(inner)
            else:
                found.append((of, inner))
        return found

    def _worth_most(self) -> int | None:
        """The class whose name makes the text shortest, if one is worth it.

        Of equal splits of a product one is written, and what two products have in common need not stand in it: such a
        class is tried.
        """
        counts, nodes = self._written()
        possible = self._possible(nodes) | counts
        rated = [
            (-saved, of)
            for of, n in possible.items()
            if n > 1 and self._is_nameable(of) and (saved := self._saved(of, n)) > 0
        ]
        for _, of in sorted(rated):
            if counts[of] >= possible[of]:
                return of
            if of not in self.in_vain and len(self.in_vain) < TRIED:
                if self._shortens(of):
                    return of
                self.in_vain.add(of)
        return None

    def _possible(self, nodes: Counter[tuple[int, Node]]) -> Counter[int]:
        """How many of the products that are written have a class among their parts, in one of their splits."""
        found: Counter[int] = Counter()
        for (of, node), n in nodes.items():
            if isinstance(node, Con):
                for part in self._parts_of(of):
                    found[part] += n
        # a product within a product was counted with it, and alone
        for (_, node), n in nodes.items():
            for child, _ in self._below(node) if isinstance(node, Con) else ():
                if isinstance(self.chosen.best.get(child, NONE).factor_node, Con):
                    for part in self._parts_of(child):
                        found[part] -= n
        return +found

    def _parts_of(self, of: int) -> set[int]:
        """The products that a class is split into, in all its splits."""
        if of not in self.parts:
            found: set[int] = set()
            todo = [of]
            while todo:
                for node in self.graph.classes[todo.pop()].nodes:
                    for child in node.children if isinstance(node, Con) else ():
                        part = self.graph.holder(child.of)
                        if part not in found and any(isinstance(n, Con) for n in self.graph.classes[part].nodes):
                            found.add(part)
                            todo.append(part)
            self.parts[of] = found
        return self.parts[of]

    def _shortens(self, of: int) -> bool:
        """Whether all of the text is shorter with a name for a class, what defines it counted."""
        entry = 1 + len(self.graph.classes[of].kinds)
        return self._length_with(of) + 2 * entry - 1 + WORTH < self._length(self.chosen)

    def _length_with(self, of: int) -> float:
        """The names in all of the text if a class had a name, in the forms that are best then."""
        leaf = self._named(of)
        after = self.chosen.copy()
        after.show(leaf)
        length = self._length(after)
        del self.leaves[leaf]
        self.graph.drop(leaf)
        return length

    def _length(self, chosen: Extraction) -> float:
        """The names in all of the text, but for those that definitions begin with."""
        length = 0.0
        for root, own in [*self.roots, *((self.graph.frame(leaf).of, leaf) for leaf in self.leaves)]:
            node = self._definition(root, own, chosen)
            length += chosen.cost(node) if node is not None else 0.0
        return length

    def _saved(self, of: int, uses: int) -> float:
        own = self.graph.classes[of]
        size = self.chosen.best[of].term
        entry = 1 + len(own.kinds)
        if self._is_function(of):
            return size if self._is_function_of_work(of) and entry > 1 else self._by_length(of, uses, size, entry)
        return self._by_length(of, uses, size, entry)

    def _by_length(self, of: int, uses: int, size: float, entry: int) -> float:
        if size < SHORTEST - SHADE and not self._is_function(of):
            return 0.0
        saved = uses * (size - entry) - (size + 2 * entry - 1)
        return saved - (WORTH if uses > 2 or self._contracts(of) else WORTH_TWICE)

    def _contracts(self, of: int) -> bool:
        """Whether a contraction stands in what it is written with."""
        todo, seen = [of], set()
        while todo:
            c = todo.pop()
            if c in seen:
                continue
            seen.add(c)
            node = self.chosen.best.get(c, NONE).factor_node
            if isinstance(node, Con) and node.bound:
                return True
            if node is not None:
                todo += [below for below, _ in self._below(node)]
        return False

    def _is_function_of_work(self, of: int) -> bool:
        node = self.chosen.best[of].term_node
        assert isinstance(node, Leaf), "a function is a leaf"
        spelling = self.reader.spelled[node.key]
        term = spelling.term
        if _is_entry_of_a_reduction(term):
            return True
        if not isinstance(term, Call) or term.primitive in LINEAR | _CHEAP:
            return False
        for r in spelling.holes.values():
            best = self.chosen.best.get(self.graph.holder(r.of), NONE).term_node
            if isinstance(best, Lin | Con) or (isinstance(best, Leaf) and best.key[0] in ("value", "name")):
                return True
        return not all(map(is_cheap, term.args))


def _is_entry_of_a_reduction(t: Term) -> bool:
    """Whether it is an entry of a softmax, which nobody computes twice; softmax(x)(i) and A⁻¹ are names themselves."""
    if not isinstance(t, App) or not isinstance(t.function, Reduce) or not t.args:
        return False
    return not is_of_a_name(t.function) and not _is_share_of_a_vector(t.function)


def _is_share_of_a_vector(whole: Reduce) -> bool:
    """Whether it is a softmax of an array that has a name, over all its indices."""
    match whole.body:
        case App(Var(), args):
            return whole.kind in SHARES and args == whole.indices and whole.mark == ONE
        case _:
            return False


_CHEAP = frozenset({"abs", "abs2", "sign", "floor", "ceil", "round"})
"""Functions whose value costs no more than the product around it."""

LETTERS = {0: "tsac", 1: "vwuyz"}
MATRICES = "PQSWYZ"
"""What a new value is called by its rank: the first letter that is free, then the first one with a number."""


def signed_and_named(
    bindings: Sequence[Binding], results: Sequence[Term], new: Collection[Var], taken: set[str], letters: str = ""
) -> tuple[list[Binding], list[Term]]:
    """The values and results with names that are free for the values in `new`, in their order.

    A difference that is written with a minus wherever it is used is turned round.
    """
    values: dict[Var, Term] = {}
    renamed: dict[Var, Term] = {}
    following = [*(value for _, value in bindings), *results]
    for n, (var, value) in enumerate(bindings):
        value = substitute(value, renamed) if renamed else value
        if var not in new:
            values[var] = value
            continue
        turned = _is_turned(var, value, following[n + 1 :])
        params = params_of(value)
        name = fresh(_free_name(letters or LETTERS.get(len(params), MATRICES), taken), var.kind)
        entry = body_of(value)
        if turned:
            entry = add(*(mul(MINUS_ONE, u) for u in addends(entry)))
        values[name] = Lam(params, entry) if params else entry
        slots = tuple(fresh(p.name, p.kind) for p in params)
        written = App(name, slots) if slots else name
        signed = mul(MINUS_ONE, written) if turned else written
        renamed[var] = lam(slots, signed) if slots else signed
    return [*values.items()], [substitute(t, renamed) if renamed else t for t in results]


def _free_name(letters: str, taken: set[str]) -> str:
    numbered = (f"{letters[0]}{n}" for n in count(1))
    chosen = next(name for names in (letters, numbered) for name in names if name not in taken)
    taken.add(chosen)
    return chosen


def _is_turned(var: Var, value: Term, users: Sequence[Term]) -> bool:
    """Whether `value` is a difference, and every product that it stands in has a minus in front."""
    entry = body_of(value)
    if {split_coefficient(u)[0].real < 0 for u in addends(entry)} != {True, False}:
        return False
    signs = [negative for user in users for negative in _signs(user, var)]
    return bool(signs) and all(signs)


def _signs(t: Term, var: Var, negative: bool = False) -> Iterator[bool]:
    """For each place in which `var` stands in `t`: whether the product there has a minus in front."""
    match t:
        case _ if var not in t.free:
            return
        case Var() | App(Var(), _) if var in (t, t.function if isinstance(t, App) else t):
            yield negative
        case Mul(factors):
            minus = split_coefficient(t)[0].real < 0
            for f in factors:
                yield from _signs(f, var, negative != minus)
        case Sum() | Add() | Lam():
            for u in children(t):
                yield from _signs(u, var, negative)
        case _:
            for u in children(t):
                yield from _signs(u, var)
