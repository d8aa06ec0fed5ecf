"""A real part is taken last: Σ r Re(z w) = Re(Σ r z w) for real r, and the product is one of matrices.

    sum((k, j), G(k, c) * real(P(k, i) * P(k, j)' * q(j)))   is   real(sum((k, j), G(k, c) * P(k, i) * P(k, j)' * q(j)))

Ends: each product is looked at once, and what becomes of it is no product with a real part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from combdiff.canon.skeleton import UNIT
from combdiff.simplify.graph.graph import BOUND, Child, Con, Graph, Leaf, Node, Ref, Zero, reciprocal
from combdiff.simplify.graph.laws.collect import products
from combdiff.simplify.graph.laws.split import split

MOST = 9
"""Factors of a product whose real part is taken last."""


class RealParts(Protocol):
    """What makes and knows leaves that are real parts."""

    def one(self) -> Ref:
        """The number 1."""

    def real_part(self, ref: Ref) -> Ref:
        """Re of `ref`."""

    def within_real_part(self, leaf: Leaf) -> Ref | None:
        """What a leaf is the real part of, over the slots of the leaf; None if it is none."""


def real_parts(graph: Graph, leaves: RealParts, done: set[Node]) -> int:
    """Take real parts last; how many products were rewritten."""
    count = 0
    for node in [n for n in graph.frames if isinstance(n, Con) and n not in done]:
        if graph.late():
            break
        if node not in graph.frames or not node.bound:
            continue
        for n, child in enumerate(node.children):
            others = [c for m, c in enumerate(node.children) if m != n]
            if all(graph.classes[graph.holder(c.of)].real for c in others):
                for inside in _insides(graph, leaves, child):
                    done.add(node)
                    count += _taken_last(graph, leaves, node, inside, others)
    return count


def _insides(graph: Graph, leaves: RealParts, child: Child) -> Iterator[Ref]:
    """What a child is the real part of, over the slots of its node."""
    of = graph.holder(child.of)
    ref = graph.find(Ref(UNIT, False, child.slots, child.of))
    for leaf in [n for n in graph.classes[of].nodes if isinstance(n, Leaf)]:
        inside = leaves.within_real_part(leaf)
        frame = graph.frame(leaf)
        if inside is None or frame.number[1]:
            continue
        names = {abs(slot): label if slot > 0 else -label for slot, label in zip(frame.labels, ref.labels, strict=True)}
        if all(abs(label) in names for label in inside.labels):
            labels = tuple(names[abs(label)] * (1 if label > 0 else -1) for label in inside.labels)
            found = Ref(inside.number, inside.conj, labels, inside.of)
            yield found.times(reciprocal(frame.number)).times(ref.number)


def _taken_last(graph: Graph, leaves: RealParts, node: Con, inside: Ref, others: list[Child]) -> bool:
    factors = [Ref(UNIT, c.conj, c.slots, c.of) for c in others]
    beside = Ref(UNIT, False, tuple(label for f in factors for label in f.labels), inside.of)
    parts = [*_factors(graph, inside, beside), *factors]
    frame = graph.frame(node)
    if len(parts) > MOST:
        return False
    try:
        whole = split(graph, parts, {s for c in node.children for s in map(abs, c.slots) if s < BOUND}, leaves.one())
        real = leaves.real_part(whole)
    except Zero:  # of im |z|², for one
        return False
    return graph.find(real) != frame and graph.union(real, frame)


def _factors(graph: Graph, ref: Ref, beside: Ref) -> list[Ref]:
    """`ref` as factors that are no products, with bound labels of their own."""
    ref = graph.find(ref)
    for number, (first, second) in products(graph, ref, beside):
        around = Ref(UNIT, False, (*beside.labels, *ref.labels, *first.labels, *second.labels), ref.of)
        left = _factors(graph, first, around)
        held = tuple(label for f in left for label in f.labels)
        right = _factors(graph, second, Ref(UNIT, False, (*around.labels, *held), ref.of))
        return [left[0].times(number), *left[1:], *right]
    return [ref]
