"""Names ratios of numbers with which arrays are computed, as people do not write them out.

2 / s * A(i, j) * x(j) - 2 / s^2 * x(i) * sum((k, l), A(k, l) * x(k) * x(l))   is   2 / s * (A(i, j) * x(j) - t * x(i))
with t = sum((k, l), A(k, l) * x(k) * x(l)) / s, the Rayleigh quotient: of 1/s^2, one 1/s belongs to all terms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from combdiff.simplify.graph.graph import Con, Graph, Leaf, Lin
from combdiff.simplify.graph.reading import Reader
from combdiff.terms.terms import MINUS_ONE, Pow

Atoms = Counter[int]
"""The classes of numbers that a number is the product of."""


def ratios(reader: Reader, node: Lin) -> Iterator[int]:
    """The classes of numbers in the terms of a sum of arrays that divide a number, what all terms share left out."""
    graph = reader.graph
    parts = [_scalars(graph, graph.holder(child.of)) for child, _ in node.terms]
    whole = [max(found.values(), key=Counter.total, default=Counter[int]()) for found in parts]
    shared = whole[0]
    for atoms in whole[1:]:
        shared = shared & atoms
    shared = Counter({of: n for of, n in shared.items() if _is_inverse(reader, of)})
    for found, atoms in zip(parts, whole, strict=True):
        rest = atoms - shared
        if any(_is_inverse(reader, of) for of in rest) and not all(_is_inverse(reader, of) for of in rest):
            yield from (of for of, own in found.items() if own == rest)


def _scalars(graph: Graph, of: int) -> dict[int, Atoms]:
    """The numbers that are factors of a product with indices, each as what it is the product of."""
    found: dict[int, Atoms] = {}
    for node in graph.classes[of].nodes:
        children = [graph.holder(c.of) for c in node.children] if isinstance(node, Con) else []
        if len(children) == 2:
            for number, array in (children, children[::-1]):
                if not graph.classes[number].kinds and graph.classes[array].kinds:
                    found[number] = _atoms(graph, number)
    return found


def _atoms(graph: Graph, of: int) -> Atoms:
    for node in graph.classes[of].nodes:
        children = [graph.holder(c.of) for c in node.children] if isinstance(node, Con) else []
        if len(children) == 2 and not any(graph.classes[c].kinds for c in children):
            return sum((_atoms(graph, c) for c in children), Counter())
    return Counter([of])


def _is_inverse(reader: Reader, of: int) -> bool:
    """Whether it is written 1/s."""
    for node in reader.graph.classes[of].nodes:
        if isinstance(node, Leaf):
            match reader.spelled[node.key].term:
                case Pow(_, exponent) if exponent == MINUS_ONE:
                    return True
    return False
