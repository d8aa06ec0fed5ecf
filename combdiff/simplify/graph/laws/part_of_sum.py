"""Replaces the terms of a named sum within a longer sum by its name.

    h(p, q) * c + 2 * J(p, q) * c - K(p, q) * c + x(p, q)   is   F(p, q) * c + x(p, q)   after F = h + 2 * J - K

Ends: each sum is looked at once for each named one, and becomes shorter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from combdiff.canon.moves import Labels, at
from combdiff.canon.skeleton import Coefficient, times
from combdiff.simplify.graph.graph import Child, Graph, Lin, Node, Ref, Zero, conjugate, reciprocal


def part_of_sum(graph: Graph, named: Sequence[int], done: set[tuple[Node, Node]]) -> int:
    """Look for the sums among the classes `named` in all others; how many were found."""
    count = 0
    for of in dict.fromkeys(map(graph.holder, named)):
        if graph.late():
            break
        for part in [n for n in graph.classes[of].nodes if isinstance(n, Lin)]:
            rarest = min(part.terms, key=lambda term: len(graph.users[term[0].of]))[0].of
            for node in [n for n in graph.users[rarest] if isinstance(n, Lin) and len(n.terms) > len(part.terms)]:
                if (part, node) not in done and part in graph.frames and node in graph.frames:
                    done.add((part, node))
                    count += _found(graph, part, node)
    return count


def _found(graph: Graph, part: Lin, node: Lin) -> bool:
    held = dict(node.terms)
    rarest, _ = min(part.terms, key=lambda term: (-len(term[0].slots), sum(c.of == term[0].of for c in held)))
    for child in held:
        if child.of == rarest.of:
            for names, mirror in _namings(graph, rarest, child):
                ratio = _ratio(graph, part, names, mirror, held)
                if ratio is not None:
                    return _put(graph, part, node, ratio, names, mirror)
    return False


def _namings(graph: Graph, own: Child, there: Child) -> Iterator[tuple[dict[int, int], bool]]:
    """How the slots of the one can be named so that it is the other, up to its sign, and whether conjugated."""
    for move in graph.classes[own.of].group.moves:
        names: dict[int, int] = {}
        for slot, label in zip(at(own.slots, move.slots), there.slots, strict=True):
            if names.setdefault(abs(slot), label if slot > 0 else -label) != (label if slot > 0 else -label):
                break
        else:
            yield names, not graph.classes[own.of].real and (own.conj != move.conj) != there.conj


def _ratio(
    graph: Graph, part: Lin, names: dict[int, int], mirror: bool, held: dict[Child, Coefficient]
) -> Coefficient | None:
    """c, if c times each term of `part` stands in the sum `held`."""
    ratios: set[Coefficient] = set()
    for child, number in part.terms:
        if any(abs(s) not in names for s in child.slots):
            return None
        labels: Labels = tuple(names[abs(s)] * (1 if s > 0 else -1) for s in child.slots)
        scale = conjugate(number) if mirror else number
        own, spelled = graph.least(graph.find(Ref(scale, child.conj != mirror, labels, child.of)))
        if spelled not in held:
            return None
        ratios.add(times(reciprocal(own), held[spelled]))
    return ratios.pop() if len(ratios) == 1 else None


def _put(graph: Graph, part: Lin, node: Lin, ratio: Coefficient, names: dict[int, int], mirror: bool) -> bool:
    """Note that `node` is ratio · part, or its conjugate, and the terms that are left."""
    own = graph.frame(part)
    labels = tuple(names[abs(s)] * (1 if s > 0 else -1) for s in own.labels)
    front = Ref(conjugate(own.number) if mirror else own.number, own.conj != mirror, labels, own.of)
    refs = [Ref(number, c.conj, c.slots, c.of) for c, number in node.terms]
    frame = graph.frame(node)
    # the terms of the part, taken away with what they are held at, leave the rest
    taken = [
        Ref(
            times((-ratio[0], -ratio[1]), conjugate(number) if mirror else number),
            c.conj != mirror,
            tuple(names[abs(s)] * (1 if s > 0 else -1) for s in c.slots),
            c.of,
        )
        for c, number in part.terms
    ]
    before = len(graph.frames)
    try:
        slots = range(1, len(frame.labels) + 1)
        rest = graph.lin([*refs, *taken], slots)
        whole = graph.lin([front.times(ratio), rest], slots, frame)
    except Zero:
        return False
    if graph.find(whole) != graph.find(frame):
        return graph.union(whole, frame)
    return len(graph.frames) > before
