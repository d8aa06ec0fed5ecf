"""Writes out a sum within a sum whose terms merge with those around it.

    x(i) - y(i) + 3 * (x(i) - y(i) + z(i)) - 3 * z(i)   is   4 * (x(i) - y(i))
    v(i) - y(i) - r(i)   is   -2 * r(i)   after r = y - v

Ends: each sum is looked at once with each sum in it, and becomes shorter.
"""

from __future__ import annotations

from combdiff.canon.skeleton import NOTHING, Coefficient, plus
from combdiff.simplify.graph.graph import Child, Graph, Lin, Node, Ref
from combdiff.simplify.graph.laws.collect import linear_combination, replaced


def nested_sums(graph: Graph, done: set[tuple[Node, Node]]) -> int:
    """Look into each sum for sums that are terms of it; how many were written out."""
    count = 0
    for node in [n for n in graph.frames if isinstance(n, Lin)]:
        if graph.late():
            break
        for number, child in [(number, child) for child, number in node.terms]:
            for part in [n for n in graph.classes[graph.holder(child.of)].nodes if isinstance(n, Lin)]:
                if (node, part) not in done and node in graph.frames and part in graph.frames:
                    done.add((node, part))
                    count += _written_out(graph, node, part, Ref(number, child.conj, child.slots, child.of))
    return count


def _written_out(graph: Graph, node: Lin, part: Lin, held: Ref) -> bool:
    """Put the terms of `part` in the place of `held`, if they merge with others; whether they did."""
    others = [Ref(number, c.conj, c.slots, c.of) for c, number in node.terms]
    others = [ref for ref in others if ref[1:] != held[1:]]
    terms = [*others, *linear_combination(graph, graph.find(held), part)]
    return 0 < len(_gathered(graph, terms)) < len(node.terms) and replaced(graph, node, terms)


def _gathered(graph: Graph, refs: list[Ref]) -> dict[Child, Coefficient]:
    """The terms of a sum, equal ones as one."""
    found: dict[Child, Coefficient] = {}
    for ref in refs:
        number, child = graph.least(graph.find(ref))
        found[child] = plus(found.get(child, NOTHING), number)
    return {child: number for child, number in found.items() if number != NOTHING}
