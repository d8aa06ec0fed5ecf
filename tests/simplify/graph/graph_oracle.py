"""What every node of a graph is worth: each is computed from the values of its children, and held against its class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from combdiff.budget import Budget
from combdiff.canon.moves import identity
from combdiff.canon.skeleton import UNIT
from combdiff.meaning.evaluate import evaluate
from combdiff.simplify.graph.choice import Choice
from combdiff.simplify.graph.extraction import Extraction
from combdiff.simplify.graph.graph import BOUND, Child, Con, Graph, Leaf, Lin, Node, Ref
from combdiff.simplify.graph.reading import Reader
from combdiff.simplify.graph.writing import Writer
from combdiff.terms.terms import Lam, Term, Var, fresh, substitute
from combdiff.terms.types import Map, Type, is_complex
from tests.simplify.simplify_oracle import X, entries

Array = NDArray[np.complex128]


def saturated(results: Sequence[Term], bindings: Sequence[tuple[Var, Term]] = ()) -> Choice:
    """The graph of some results, with all laws applied; `results` are maps of indices, or numbers."""
    whole = [*(value for _, value in bindings), *results]
    captured = set().union(*(t.free for t in whole)) - {var for var, _ in bindings}
    reader = Reader(Graph(), captured, {}, frozenset(), Budget())
    choice = Choice(reader, [*bindings], [*results], (), {}, Budget())
    choice.read()
    choice.saturate()
    return choice


def shortest(choice: Choice) -> Extraction:
    """The shortest forms of all classes."""
    plain = Extraction(choice.graph, choice.reader, choice.hidden())
    plain.run()
    return plain


class Values:
    """The values of the classes of a graph on random entries."""

    def __init__(self, choice: Choice, sizes: Mapping[object, int], seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.choice, self.graph, self.sizes = choice, choice.graph, sizes
        self.plain = shortest(choice)
        free = {v for s in choice.reader.spelled.values() for v in s.term.free}
        held = {v for s in choice.reader.spelled.values() for v in (*s.slots, *s.holes)}
        self.arrays = {v: self._drawn(v, rng) for v in free - held}
        self.known: dict[int, Array] = {}

    @staticmethod
    def _drawn(v: Var, rng: np.random.Generator) -> object:
        drawn = entries(v, rng) if isinstance(v.kind, Map) else rng.standard_normal() + 1j * rng.standard_normal()
        return drawn if is_complex(v.kind) else np.real(drawn)

    def written(self, ref: Ref, kinds: Sequence[Type]) -> Term:
        """A ref whose labels are the slots of these kinds, as a map."""
        slots = [fresh(f"d{n}", kind) for n, kind in enumerate(kinds, start=1)]
        entry = Writer(self.plain, self.choice.reader, {})(ref, dict(enumerate(slots, start=1)))
        return Lam(tuple(slots), entry) if slots else entry

    def entries(self, t: Term) -> Array:
        """The entries of a map of indices, or a number."""
        return np.asarray(evaluate(t, self.arrays, self.sizes), dtype=complex)

    def of(self, number: int) -> Array:
        """The entries of a class, by the form that is shortest."""
        number = self.graph.holder(number)
        if number not in self.known:
            kinds = self.graph.classes[number].kinds
            ref = Ref(UNIT, False, identity(len(kinds)), number)
            self.known[number] = self.entries(self.written(ref, kinds))
        return self.known[number]

    def node(self, node: Node) -> Array:
        """The entries of a node over its slots, from those of its children."""
        match node:
            case Con(children=children):
                operands = [operand for c in children for operand in (self._turned(c), self._axes(c))]
                rank = max([0, *(abs(s) for c in children for s in c.slots if abs(s) < BOUND)])
                return np.asarray(np.einsum(*operands, [*range(rank)]))
            case Lin(terms=terms):
                rank = max([0, *(abs(s) for c, _ in terms for s in c.slots)])
                total = 0
                for c, n in terms:
                    order = np.argsort([abs(s) for s in c.slots])
                    held = {abs(s) for s in c.slots}
                    value = self._turned(c).transpose(order)
                    shape = iter(value.shape)
                    axes = [next(shape) if slot in held else 1 for slot in range(1, rank + 1)]
                    total = total + complex(*map(float, n)) * value.reshape(axes)
                return np.asarray(total)
            case Leaf(key=key):
                spelling = self.choice.reader.spelled[key]
                holes = {v: self.written(r, _slots(v.kind)) for v, r in spelling.holes.items()}
                term = substitute(spelling.term, holes)
                return self.entries(Lam(spelling.slots, term) if spelling.slots else term)
            case _:
                raise AssertionError("a node is a leaf, a product or a sum")

    def frame(self, node: Node) -> Array:
        """What the graph says that a node is, over the slots of the node."""
        ref = self.graph.frame(node)
        value = self.of(ref.of)
        value = value.conj() if ref.conj else value
        value = self._reversed(value, ref.labels)
        order = np.argsort([abs(s) for s in ref.labels])
        return complex(*map(float, ref.number)) * value.transpose(order)

    def _turned(self, child: Child) -> Array:
        value = self._reversed(self.of(child.of), child.slots)
        return value.conj() if child.conj else value

    def _reversed(self, value: Array, slots: Sequence[int]) -> Array:
        for axis, slot in enumerate(slots):
            if slot < 0:
                # of the symmetric domain −k lies opposite k; of the periodic one 0 stays where it is
                flipped = np.flip(value, axis)
                value = flipped if value.shape[axis] == self.sizes[X] else np.roll(flipped, 1, axis)
        return value

    @staticmethod
    def _axes(child: Child) -> list[int]:
        return [abs(s) - 1 if abs(s) < BOUND else 26 + abs(s) - BOUND for s in child.slots]


def _slots(kind: Type) -> Sequence[Type]:
    return kind.params if isinstance(kind, Map) else ()


def disagreements(choice: Choice, sizes: Mapping[object, int], seed: int = 0) -> list[Node]:
    """The nodes whose entries are not those that the graph says they are."""
    values = Values(choice, sizes, seed)
    wrong = []
    for node in choice.graph.frames:
        if not any(choice.graph.classes[choice.graph.holder(c)].within for c in choice.graph.children(node)):
            a, b = values.node(node), values.frame(node)
            if not np.allclose(a, b, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(b).max(initial=0.0))):
                wrong.append(node)
    return wrong
