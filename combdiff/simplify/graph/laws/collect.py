"""Distributivity, read backwards: all factors that stand in one place of the terms of a sum are taken out in one step.

    A(i, k) * B(k, j) + A(i, k) * C(k, j) + X(i, k) * B(k, j)   becomes, with A and X in one place,
    A(i, k) * (B(k, j) + C(k, j)) + X(i, k) * B(k, j)           and with B and C in one place,
    (A(i, k) + X(i, k)) * B(k, j) + A(i, k) * C(k, j)

A place is the labels of the factor, and of what is left those that the factor does not have. One factor at a time would
make a class of each choice of terms: (A + B)(C + D)…, multiplied out, is read back in polynomial time by places.

Ends: each sum is looked at once, and what is left of its terms has a factor less than they had.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from combdiff.canon.moves import Labels, at
from combdiff.canon.skeleton import UNIT, Coefficient, times
from combdiff.simplify.graph.graph import BOUND, Child, Con, Graph, Leaf, Lin, Node, Ref, Zero, conjugate, reciprocal
from combdiff.terms.types import Type

PLACES = 48
"""Places of a sum that are tried, shared among its terms: of a sum of 24 terms the two that save most."""

ALTERNATIVES = 3
"""Factors at one place that are tried besides those that take most terms."""

Place = tuple[Labels, tuple[int, ...], tuple[Type, ...]]


class Factor(NamedTuple):
    """A class at a place, with its bound labels numbered."""

    of: int
    conj: bool
    labels: Labels


Found = dict[Factor, dict[int, dict[Ref, None]]]
"""The factors at a place, for each the terms that hold it, and what is left of them."""


def collect(graph: Graph, one: Ref, done: set[Node]) -> int:
    """Collect in each sum that is not in `done`, where `one` is the number 1; how many sums were collected."""
    collected = 0
    for node in [n for n in graph.frames if isinstance(n, Lin) and n not in done]:
        if graph.late():
            break
        done.add(node)
        if node in graph.frames:
            collected += _collected(graph, node, one)
    return collected


def _collected(graph: Graph, node: Lin, one: Ref) -> int:
    terms = [graph.find(Ref(number, c.conj, c.slots, c.of)) for c, number in node.terms]
    places: dict[Place, Found] = {}
    for n, term in enumerate(terms):
        for factor, rest in _splits(graph, term, one):
            key, left = _numbered(graph, factor, rest)
            kinds: dict[int, Type] = {}
            for ref in (left, key):
                kinds |= zip(map(abs, ref.labels), graph.classes[ref.of].kinds, strict=True)
            kinds = {label: kinds[label] for label in kinds if label in map(abs, key.labels) or label >= BOUND}
            place = (
                tuple(sorted(map(abs, key.labels))),
                tuple(sorted({abs(label) for label in left.labels}.difference(map(abs, key.labels)))),
                tuple(kinds[label] for label in sorted(kinds)),
            )
            places.setdefault(place, {}).setdefault(key, {}).setdefault(n, {})[left] = None
    count = 0
    for found in _most_saving(places, max(2, PLACES // len(terms))):
        count += _collect_at(graph, node, terms, found)
    return count


def _most_saving(places: dict[Place, Found], most: int) -> list[Found]:
    """The places at which a factor is shared, those first that save most terms."""

    def rank(entry: tuple[Place, Found]) -> tuple[int, int, Labels, tuple[int, ...]]:
        (own, left, _), found = entry
        return -sum(len(terms) - 1 for terms in found.values()), len(own), own, left

    shared = [entry for entry in places.items() if any(len(terms) > 1 for terms in entry[1].values())]
    return [found for _, found in sorted(shared, key=rank)[:most]]


def _collect_at(graph: Graph, node: Lin, terms: Sequence[Ref], found: Found) -> int:
    """Take out the factors of one place, each from the terms that no other one took; how often that was something.

    Those that most terms have come first, then, another time, sums that several terms have: a sum is long to write.
    Factors that lose all their terms to others are then given the choice before these: P Q (X + Y) is P (Q (X + Y)),
    too, and both (P Q) and P stand in one place.
    """
    ranked = sorted(found, key=lambda factor: (-len(found[factor]), factor))
    taken = _take_out(graph, node, terms, found, ranked)
    count = int(bool(taken))
    shared = [f for f in ranked if len(found[f]) > 1 and _holds_a_sum(graph, f.of)]
    if shared and shared != ranked[: len(shared)]:
        others = _take_out(graph, node, terms, found, [*shared, *(f for f in ranked if f not in shared)])
        count, taken = count + bool(others), taken | others
    waiting = [f for f in ranked if f not in taken and len(found[f]) > 1]
    for factor in waiting[:ALTERNATIVES]:
        count += bool(_take_out(graph, node, terms, found, [factor, *(f for f in ranked if f != factor)]))
    return count


def _holds_a_sum(graph: Graph, of: int) -> bool:
    """Whether a class is a sum, or a product of two with one, and not a name."""
    nodes = graph.classes[of].nodes
    if any(isinstance(node, Leaf) for node in nodes):
        return False
    factors = [c.of for node in nodes if isinstance(node, Con) for c in node.children]
    return any(
        isinstance(node, Lin)
        for held in (nodes, *(graph.classes[graph.holder(c)].nodes for c in factors))
        for node in held
    )


def _take_out(graph: Graph, node: Lin, terms: Sequence[Ref], found: Found, ranked: Sequence[Factor]) -> set[Factor]:
    """Take out factors in this order, each from the terms that are left; those that were."""
    free = set(range(len(terms)))
    new, taken = [], set()
    for factor in ranked:
        mine = {n: rests for n, rests in found[factor].items() if n in free}
        if len(mine) < 2:
            continue
        free -= mine.keys()
        taken.add(factor)
        rests = [graph.con([r], {abs(label) for label in r.labels}) for r in map(min, mine.values())]
        labels = sorted({abs(label) for r in rests for label in r.labels})
        with suppress(Zero):
            inner = graph.lin(rests, labels)
            is_open = {label for label in (*map(abs, factor.labels), *labels) if label < BOUND}
            into = graph.frame(node) if len(mine) == len(terms) else None
            new.append(graph.con([Ref(UNIT, *factor[1:], factor.of), inner], is_open, into))
    return taken if new and replaced(graph, node, [*(terms[n] for n in sorted(free)), *new]) else set()


def replaced(graph: Graph, node: Lin, terms: Sequence[Ref]) -> bool:
    """Note that the sum `node` is that of `terms`."""
    frame = graph.frame(node)
    try:
        whole = graph.lin(terms, sorted({abs(label) for t in terms for label in t.labels}), frame)
    except Zero:
        return False
    frame = graph.frame(node) if node in graph.frames else frame
    if graph.find(whole) != frame:
        graph.union(whole, frame)
    return True


def _splits(graph: Graph, term: Ref, one: Ref) -> Iterator[tuple[Ref, Ref]]:
    """A term of a sum as a factor and what is left, for each product of two that it is.

    Σ_i x(i) is x(i) and 1, and a Σ_i x(i) is x(i) and a. A class that was joined with another one since may be a
    multiple of it: that number belongs to what is left.
    """
    for number, summed in sums(graph, term):
        yield summed._replace(number=UNIT), one.times(times(number, summed.number))
    for number, children in products(graph, term):
        for factor, rest in (children, children[::-1]):
            yield factor._replace(number=UNIT), rest.times(times(number, factor.number))
            for scale, summed in sums(graph, factor, rest):
                whole = times(times(number, scale), summed.number)
                yield summed._replace(number=UNIT), rest.times(whole)


def sums(graph: Graph, ref: Ref, beside: Ref | None = None) -> Iterator[tuple[Coefficient, Ref]]:
    """`ref` as number · Σ of one factor, for each such sum in its class."""
    return ((number, summed) for number, (summed,) in _contractions(graph, ref, beside, 1))


def products(graph: Graph, ref: Ref, beside: Ref | None = None) -> Iterator[tuple[Coefficient, tuple[Ref, Ref]]]:
    """`ref` as number · product of two, over its labels and bound ones, for each such product in its class.

    The bound labels are none of `ref`, and none of what stands `beside` it.
    """
    return ((number, (first, second)) for number, (first, second) in _contractions(graph, ref, beside, 2))


def linear_combination(graph: Graph, ref: Ref, node: Lin) -> list[Ref]:
    """`ref` as the sum that `node`, a form of its class, says that it is."""
    number, turned, names = _at_node(graph, ref, node)
    terms = [(_at(graph, child, turned, names), n) for child, n in node.terms]
    return [term.times(times(number, conjugate(n) if turned else n)) for term, n in terms]


def _contractions(
    graph: Graph, ref: Ref, beside: Ref | None, factors: int
) -> Iterator[tuple[Coefficient, tuple[Ref, ...]]]:
    """`ref` as number · Σ of a product of so many factors."""
    around = (*ref.labels, *(beside.labels if beside is not None else ()))
    bound = max((abs(label) + 1 for label in around), default=BOUND)
    for node in list(graph.classes[ref.of].nodes):
        if isinstance(node, Con) and len(node.children) == factors:
            number, turned, names = _at_node(graph, ref, node)
            names |= {slot: slot - BOUND + max(bound, BOUND) for slot in node.bound}
            yield number, tuple(_at(graph, child, turned, names) for child in node.children)


def _at_node(graph: Graph, ref: Ref, node: Node) -> tuple[Coefficient, bool, dict[int, int]]:
    """`ref` as number · node at these labels of its slots, or its conjugate, for a node of its class."""
    frame = graph.frame(node)
    # node = f · K^c(labels of the frame): K at the labels of `ref` says what stands in the slots of the node
    turned = frame.conj != ref.conj
    share = reciprocal(frame.number)
    return times(ref.number, conjugate(share) if turned else share), turned, dict(_named(frame.labels, ref.labels))


def _named(slots: Labels, labels: Labels) -> Iterable[tuple[int, int]]:
    for slot, label in zip(slots, labels, strict=True):
        yield abs(slot), label if slot > 0 else -label


def _at(graph: Graph, child: Child, turned: bool, names: dict[int, int]) -> Ref:
    labels = tuple(names[abs(s)] * (1 if s > 0 else -1) for s in child.slots)
    return graph.find(Ref(UNIT, child.conj != turned, labels, child.of))


def _numbered(graph: Graph, factor: Ref, rest: Ref) -> tuple[Factor, Ref]:
    """The factor in its least spelling, its bound labels numbered as they come, and the rest with the same ones."""
    own = graph.classes[factor.of]
    fixed = {abs(r.labels[s - 1]) for r in (factor, rest) for s in graph.classes[r.of].fixed}
    best: tuple[Factor, Ref] | None = None
    for move in own.group.moves:
        conj = not own.real and factor.conj != move.conj
        names: dict[int, int] = {}
        labels = _renumbered(at(factor.labels, move.slots), names, fixed)
        key = Factor(factor.of, conj, labels)
        if best is not None and key > best[0]:
            continue
        left = _renumbered(rest.labels, names, fixed)
        number, child = graph.least(Ref(rest.number, rest.conj, left, rest.of))
        number = number if move.sign > 0 else (-number[0], -number[1])
        spelled = Ref(number, child.conj, child.slots, child.of)
        if best is None or (key, spelled[1:]) < (best[0], best[1][1:]):
            best = key, spelled
    assert best is not None, "a group has the identity"
    return best


def _renumbered(labels: Labels, names: dict[int, int], fixed: Collection[int]) -> Labels:
    """Bound labels as they come; one that is first met reversed is reversed, but for those that are `fixed`."""
    found = []
    for label in labels:
        size = abs(label)
        if size >= BOUND:
            number = BOUND + len(names)
            size = names.setdefault(size, number if label > 0 or size in fixed else -number)
        found.append(size if label > 0 else -size)
    return tuple(found)
