"""Associativity once more, over the sums that were collected: F (B L) = (F B) L, where L is a sum.

    C(r, j) * (C(s, j) * (2 * V(p, q, r, s) - V(p, r, q, s)))   becomes   P(r, s) * (2 * V(p, q, r, s) - V(p, r, q, s))

The splits of a product are made when it is read, before its sums are collected; without this law what stands in front
of a collected sum is never one factor. Ends: each product is looked at once, and a result with more open slots than the
sum has, and one more, is none.
"""

from __future__ import annotations

from combdiff.canon.skeleton import UNIT, Coefficient
from combdiff.simplify.graph.graph import Con, Graph, Lin, Node, Ref, Zero
from combdiff.simplify.graph.laws.collect import products


def reassociate(graph: Graph, done: set[Node]) -> int:
    """Join the factors in front of collected sums; how many products were rewritten."""
    sums = {graph.frame(n).of for n in graph.frames if isinstance(n, Lin)}
    count = 0
    for node in [n for n in graph.frames if isinstance(n, Con) and len(n.children) == 2 and n not in done]:
        if graph.late():
            break
        if node not in graph.frames:
            continue
        for number, factor, beside, inner in _nested(graph, node, sums):
            done.add(node)
            count += _joined(graph, node, number, factor, beside, inner)
    return count


def _nested(graph: Graph, node: Con, sums: set[int]) -> list[tuple[Coefficient, Ref, Ref, Ref]]:
    """F, B and L, with a number, for each way in which `node` is F (B L)."""
    found = []
    for n in (0, 1):
        child, other = node.children[n], node.children[1 - n]
        product = graph.find(Ref(UNIT, child.conj, child.slots, child.of))
        if product.of in sums:
            continue
        factor = graph.find(Ref(UNIT, other.conj, other.slots, other.of))
        for number, parts in products(graph, product, factor):
            for beside, inner in (parts, parts[::-1]):
                if graph.find(inner).of in sums:
                    found.append((number, factor, beside, inner))
    return found


def _joined(graph: Graph, node: Con, number: Coefficient, factor: Ref, beside: Ref, inner: Ref) -> bool:
    held = {abs(label) for label in factor.labels} & {abs(label) for label in beside.labels}
    if not held or node not in graph.frames:
        return False
    frame = graph.frame(node)
    is_open = {abs(label) for label in frame.labels}
    within = {abs(label) for label in inner.labels}
    front = {abs(label) for r in (factor, beside) for label in r.labels}
    opens = {label for label in front if label in is_open or label in within}
    if len(opens) > len(within) + 1:
        return False
    before = len(graph.frames)
    try:
        joined = graph.con([factor.times(number), beside], opens)
        whole = graph.con([joined, inner], is_open, frame)
    except Zero:
        return False
    if graph.find(whole) != graph.find(frame):
        return graph.union(whole, frame)
    return len(graph.frames) > before
