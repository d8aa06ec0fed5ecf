"""An e-graph of closed tensors: its classes know their slots, their symmetry and their equal forms.

    sum(k, A(i, k) * B(k, j))   and   sum(l, B(l, q) * A(p, l))   are one class, asked for at (i, j) and at (p, q)

A tensor is asked for by a `Ref`: a number, a class, whether it is conjugated, and the labels that stand in its slots.
So transposes, views and signs are no nodes: (A B)ᵀ = Bᵀ Aᵀ and Σ_i A_ij B_ik = Aᵀ B need no law. Symmetry acts in one
place, where a node is interned: of all spellings under the groups of its children the least one is the node, and those
that tie are the symmetries of the node itself. (Slotted e-graphs: Schneider et al., PLDI 2025; egglog's classes cannot
rename slots, which is why this graph is none of egglog's.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field
from itertools import permutations
from typing import NamedTuple

from combdiff.canon.moves import Image, Labels, Move, MoveGroup, at, identity, inverse
from combdiff.canon.skeleton import MINUS, NOTHING, UNIT, Coefficient, plus, times
from combdiff.records import dataclass
from combdiff.terms.terms import Var
from combdiff.terms.types import Type

BOUND = 1 << 40
"""Labels of bound indices begin here: no variable has a number as large."""

WIDEST_SUM = 5
"""Slots of a sum that are tried in all orders where none of its terms has all of them."""

LARGEST = 200
"""Elements of the group of a class: with a part of a larger one the graph is right, and finds less."""


class Zero(Exception):
    """What was to be made is zero."""


class Ref(NamedTuple):
    """number · K(labels), or number · K(labels)' if `conj`, for the class number `of`."""

    number: Coefficient
    conj: bool
    labels: Labels
    of: int

    def times(self, number: Coefficient) -> Ref:
        """A multiple of it."""
        return self if number == UNIT else Ref(times(number, self.number), self.conj, self.labels, self.of)


class Child(NamedTuple):
    """K(slots) or its conjugate in a node: slots up to `BOUND` are those of the node, the others are summed over."""

    of: int
    conj: bool
    slots: Labels


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """What nodes share: they are equal if they say the same, and know their hash, as they stand in many tables."""

    hash: int = field(init=False, repr=False)

    def _seal(self, parts: Hashable) -> None:
        object.__setattr__(self, "hash", hash(parts))

    def __hash__(self) -> int:
        return self.hash


@dataclass(frozen=True, slots=True, eq=False)
class Leaf(Node):
    """What has no parts here that laws move: an entry, a function of something. `key` names its `WrittenLeaf`."""

    key: tuple[str, Hashable]

    def __post_init__(self) -> None:
        self._seal(self.key)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Leaf) and self.hash == other.hash and self.key == other.key)

    __hash__ = Node.__hash__


@dataclass(frozen=True, slots=True, eq=False)
class Con(Node):
    """Σ over the bound slots of the product of one child or two."""

    children: tuple[Child, ...]

    def __post_init__(self) -> None:
        self._seal(self.children)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Con) and self.hash == other.hash and self.children == other.children)

    __hash__ = Node.__hash__

    @property
    def bound(self) -> set[int]:
        """The slots that are summed over."""
        return {abs(s) for c in self.children for s in c.slots if abs(s) >= BOUND}

    @property
    def is_square(self) -> bool:
        """Whether it holds one child twice, or a child and its conjugate."""
        return len(self.children) == 2 and len({(c.of, c.slots) for c in self.children}) == 1


@dataclass(frozen=True, slots=True, eq=False)
class Lin(Node):
    """A linear combination; the first of its numbers is 1."""

    terms: tuple[tuple[Child, Coefficient], ...]

    def __post_init__(self) -> None:
        self._seal(self.terms)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Lin) and self.hash == other.hash and self.terms == other.terms)

    __hash__ = Node.__hash__


@dataclass(slots=True)
class Class:
    """Equal tensors: the kinds of their slots, whether they are real, their symmetries, and their forms.

    `typed` says that they are real by their type, and not only by their symmetry, as z z' is. `within` are variables
    that are bound around it and are no slots: nothing outside can mention it. `fixed` are the slots whose index is read
    as a number, over a periodic domain: there −k stands for n − k, and is not written.
    """

    kinds: tuple[Type, ...]
    real: bool
    group: MoveGroup
    nodes: dict[Node, None] = field(default_factory=dict)
    within: frozenset[Var] = frozenset()
    typed: bool = False
    fixed: frozenset[int] = frozenset()

    def images(self, labels: Labels, conj: bool) -> list[Image[int]]:
        """What K(labels), or its conjugate, is also written as."""
        return self.group.images(labels, conj and not self.real)


def conjugate(number: Coefficient) -> Coefficient:
    """a − ib for a + ib."""
    return (number[0], -number[1]) if number[1] else number


def reciprocal(number: Coefficient) -> Coefficient:
    """1 / (a + ib)."""
    a, b = number
    if number in (UNIT, MINUS):
        return UNIT if a > 0 else MINUS
    if not b:
        return (1 / a, b)
    norm = a * a + b * b
    return (a / norm, -b / norm)


def _first_use(
    children: Sequence[tuple[bool, Labels]], is_open: Collection[int], fixed: Collection[int]
) -> tuple[list[Child], Labels]:
    """The pattern of labels in which each is named when it is first met, and the open labels in that order.

    A label that is first met reversed is reversed, but for those that are `fixed`.
    """
    names: dict[int, int] = {}
    opens: list[int] = []
    pattern = []
    for conj, labels in children:
        row = []
        for label in labels:
            size = abs(label)
            if size not in names:
                turned = label < 0 and size not in fixed
                if size in is_open:
                    opens.append(-size if turned else size)
                    names[size] = -len(opens) if turned else len(opens)
                else:
                    bound = BOUND + len(names) - len(opens)
                    names[size] = -bound if turned else bound
            row.append(names[size] if label > 0 else -names[size])
        pattern.append(Child(0, conj, tuple(row)))
    return pattern, tuple(opens)


@dataclass(slots=True)
class Graph:
    """Classes, and the nodes in them, each interned once.

    `frames` says of a node what it is: node(1…rank) = the ref. `moved` says of a class that went up in another one what
    it is there. `users` are the nodes that mention a class; `stale` the classes whose users are to be interned again.
    Laws leave nodes as they are once it is `late`.
    """

    classes: dict[int, Class] = field(default_factory=dict)
    frames: dict[Node, Ref] = field(default_factory=dict)
    moved: dict[int, Ref] = field(default_factory=dict)
    users: dict[int, dict[Node, None]] = field(default_factory=dict)
    stale: set[int] = field(default_factory=set)
    known: dict[Hashable, Ref | None] = field(default_factory=dict)
    respell: Callable[[Leaf], Ref | None] = lambda _: None
    late: Callable[[], bool] = lambda: False
    made: int = 0

    # --- classes

    def new(
        self,
        kinds: Sequence[Type],
        moves: Iterable[Move],
        typed: bool,
        within: frozenset[Var] = frozenset(),
        fixed: frozenset[int] = frozenset(),
    ) -> int:
        """A new class without nodes."""
        group = MoveGroup.generated(len(kinds), moves, real=typed, most=LARGEST)
        number = self.made
        self.made += 1
        self.classes[number] = Class(tuple(kinds), group.real, group, {}, within, typed, fixed)
        self.users[number] = {}
        return number

    def find(self, ref: Ref) -> Ref:
        """The same by the class that holds it now."""
        number, conj, labels, of = ref
        while of in self.moved:
            own = self.moved[of]
            number = times(number, conjugate(own.number) if conj else own.number)
            labels, conj, of = at(labels, own.labels), conj != own.conj, own.of
        return Ref(number, conj and not self.classes[of].real, labels, of)

    def holder(self, of: int) -> int:
        """The class that class number `of` is now."""
        while of in self.moved:
            of = self.moved[of].of
        return of

    def frame(self, node: Node) -> Ref:
        """node(1…rank), by the class that holds it now."""
        return self.find(self.frames[node])

    def put(self, node: Node, frame: Ref) -> None:
        """Note `node` as a form of the class of `frame`."""
        self.frames[node] = frame
        self.classes[frame.of].nodes[node] = None
        for child in self.children(node):
            self.users[child][node] = None

    def drop(self, leaf: Leaf) -> None:
        """Forget a leaf, which no node mentions."""
        frame = self.frames.pop(leaf)
        self.classes[self.find(frame).of].nodes.pop(leaf)

    def children(self, node: Node) -> list[int]:
        """The classes in a node of sums and products."""
        match node:
            case Con(children=children):
                return [c.of for c in children]
            case Lin(terms=terms):
                return [c.of for c, _ in terms]
            case _:
                return []

    # --- products

    def con(self, refs: Sequence[Ref], is_open: Collection[int], into: Ref | None = None) -> Ref:
        """Σ over all labels but those in `is_open` of the product of `refs`, one or two; `into` is what it equals.

        Raises:
            Zero: if it is zero by the symmetries of its factors.
        """
        refs = [self.find(r) for r in refs]
        number = refs[0].number
        for r in refs[1:]:
            number = times(number, r.number)
        if len(refs) == 1:
            sizes = [abs(label) for label in refs[0].labels]
            if len(set(sizes)) == len(sizes) and all(s in is_open for s in sizes):
                return refs[0]
        names: dict[int, int] = {}
        rows = []
        for r in refs:
            row = [names.setdefault(abs(label), len(names) + 1) * (1 if label > 0 else -1) for label in r.labels]
            rows.append((r.of, r.conj, tuple(row)))
        wanted = [*names]
        opens = frozenset(n for label, n in names.items() if label in is_open)
        key = (tuple(rows), opens)
        if key not in self.known:
            if into is not None:
                into = self.find(into)
                own = tuple(names[abs(label)] * (1 if label > 0 else -1) for label in into.labels)
                into = Ref(times(reciprocal(number), into.number), into.conj, own, into.of)
            self.known[key] = self._con(rows, opens, into)
        found = self.known[key]
        if found is None:
            raise Zero
        labels = tuple(wanted[abs(s) - 1] * (1 if s > 0 else -1) for s in found.labels)
        return self.find(Ref(times(number, found.number), found.conj, labels, found.of))

    def _con(self, rows: list[tuple[int, bool, Labels]], opens: frozenset[int], into: Ref | None) -> Ref | None:
        real = all(self.classes[of].real for of, _, _ in rows)
        orders = [rows, rows[::-1]] if len(rows) == 2 and rows[0][0] == rows[1][0] else [sorted(rows)]
        best: tuple[Child, ...] | None = None
        ways: list[tuple[Labels, int, bool]] = []
        for mirror in (False,) if real else (False, True):
            for order in orders:
                for pattern, labels, sign in self._patterns(order, mirror, opens):
                    if best is None or pattern < best:
                        best, ways = pattern, []
                    if pattern == best:
                        ways.append((labels, sign, mirror))
        assert best is not None, "a product has a spelling"
        node = Con(tuple(Child(of, c.conj, c.slots) for (of, _, _), c in zip(orders[0], best, strict=True)))
        return self._interned(node, [(labels, UNIT if s > 0 else MINUS, m) for labels, s, m in ways], real, into)

    def _patterns(
        self, order: Sequence[tuple[int, bool, Labels]], mirror: bool, opens: frozenset[int]
    ) -> Iterator[tuple[tuple[Child, ...], Labels, int]]:
        """The patterns of a product of which the first child is spelled least: nothing after it can make up for it."""
        fixed = {abs(labels[s - 1]) for of, _, labels in order for s in self.classes[of].fixed}
        of, conj, labels = order[0]
        firsts = self.classes[of].images(labels, conj != mirror)
        spelled = [(_first_use([(c, row)], opens, fixed)[0], c, row, sign) for c, row, sign in firsts]
        least = min(pattern for pattern, _, _, _ in spelled)
        for pattern, c, row, sign in spelled:
            if pattern != least:
                continue
            if len(order) == 1:
                found, own = _first_use([(c, row)], opens, fixed)
                yield tuple(found), own, sign
                continue
            of, conj, labels = order[1]
            for d, other, turn in self.classes[of].images(labels, conj != mirror):
                found, own = _first_use([(c, row), (d, other)], opens, fixed)
                yield tuple(found), own, sign * turn

    def _interned(
        self, node: Con | Lin, ways: list[tuple[Labels, Coefficient, bool]], real: bool, into: Ref | None
    ) -> Ref | None:
        """What was asked for, number · node(labels) or its conjugate in each of `ways`, by a class; None if zero."""
        labels, number, mirror = ways[0]
        back = {abs(label): (n if label > 0 else -n) for n, label in enumerate(labels, start=1)}
        moves: dict[Move, None] = {}
        for other, scale, turned in ways:
            slots = tuple(back[abs(label)] * (1 if label > 0 else -1) for label in other)
            ratio = times(scale, reciprocal(number))
            if ratio in (UNIT, MINUS):
                moves[Move(slots, 1 if ratio == UNIT else -1, turned != mirror)] = None
        if Move(identity(len(labels)), -1, False) in moves:
            return None
        if node not in self.frames:
            self._place(node, (labels, number, mirror), [*moves], real, into)
        own = self.frame(node)
        value = times(number, conjugate(own.number) if mirror else own.number)
        return self.find(Ref(value, own.conj != mirror, at(labels, own.labels), own.of))

    def _place(
        self,
        node: Con | Lin,
        asked: tuple[Labels, Coefficient, bool],
        moves: list[Move],
        real: bool,
        into: Ref | None,
    ) -> None:
        """Put a new node into a class of its own, or into that of `into`, which is what was asked for."""
        labels, number, mirror = asked
        if into is None or sorted(map(abs, into.labels)) != sorted(map(abs, labels)):
            kinds = self._kinds(node, len(labels))
            within = frozenset().union(*(self.classes[c].within for c in self.children(node)))
            typed = real and all(self.classes[c].typed for c in self.children(node))
            of = self.new(kinds, [*moves, Move(identity(len(labels)), 1, real)], typed, within, self._fixed(node))
            self.put(node, Ref(UNIT, False, identity(len(labels)), of))
            return
        # number · node^mirror(labels) = into: node = (into / number)^mirror in the slots of the node
        place = {abs(label): (n if label > 0 else -n) for n, label in enumerate(labels, start=1)}
        slots = tuple(place[abs(label)] * (1 if label > 0 else -1) for label in into.labels)
        scale = times(reciprocal(number), into.number)
        self.put(node, Ref(conjugate(scale) if mirror else scale, into.conj != mirror, slots, into.of))
        self.more_symmetric(into.of, _carried(moves, slots, scale))

    def _fixed(self, node: Con | Lin) -> frozenset[int]:
        """The slots of a node that are fixed in a child."""
        children = node.children if isinstance(node, Con) else [c for c, _ in node.terms]
        held = {abs(c.slots[s - 1]) for c in children for s in self.classes[c.of].fixed}
        return frozenset(slot for slot in held if slot < BOUND)

    def _kinds(self, node: Con | Lin, rank: int) -> list[Type]:
        kinds: dict[int, Type] = {}
        for child in node.children if isinstance(node, Con) else (c for c, _ in node.terms):
            kinds |= zip(map(abs, child.slots), self.classes[child.of].kinds, strict=True)
        return [kinds[slot] for slot in range(1, rank + 1)]

    # --- sums

    def lin(self, refs: Sequence[Ref], is_open: Sequence[int], into: Ref | None = None) -> Ref:
        """The sum of `refs`, over labels of `is_open`, each of which stands in one of them; `into` is what it equals.

        Raises:
            Zero: if it is zero.
        """
        places = {label: n for n, label in enumerate(is_open, start=1)}
        gathered: dict[Child, Coefficient] = {}
        for ref in refs:
            number, child = self.least(self._placed(self.find(ref), places))
            gathered[child] = plus(gathered.get(child, NOTHING), number)
        gathered = {child: number for child, number in gathered.items() if number != NOTHING}
        if not gathered:
            raise Zero
        if len(gathered) == 1:
            ((child, number),) = gathered.items()
            return Ref(number, child.conj, at(tuple(is_open), child.slots), child.of)
        key = ("lin", tuple(sorted(gathered.items())), len(is_open))
        if key not in self.known:
            self.known[key] = self._lin(gathered, len(is_open), self._placed(self.find(into), places) if into else None)
        found = self.known[key]
        if found is None:
            raise Zero
        return self.find(Ref(found.number, found.conj, at(tuple(is_open), found.labels), found.of))

    def _placed(self, ref: Ref, places: dict[int, int]) -> Ref:
        labels = tuple(places[abs(label)] * (1 if label > 0 else -1) for label in ref.labels)
        return Ref(ref.number, ref.conj, labels, ref.of)

    def least(self, ref: Ref) -> tuple[Coefficient, Child]:
        """The least of the spellings of `ref` under the group of its class, with its number."""
        conj, labels, sign = self.classes[ref.of].group.least_image(ref.labels, ref.conj)
        return ref.number if sign > 0 else times(MINUS, ref.number), Child(ref.of, conj, labels)

    def _lin(self, gathered: dict[Child, Coefficient], rank: int, into: Ref | None) -> Ref | None:
        used = sorted({abs(s) for child in gathered for s in child.slots})
        real = all(self.classes[c.of].real for c in gathered) and not any(n[1] for n in gathered.values())
        best: tuple[tuple[Child, Coefficient], ...] | None = None
        ways: list[tuple[Labels, Coefficient, bool]] = []
        for order in self._orders(gathered, used):
            places = {abs(label): (n if label > 0 else -n) for n, label in enumerate(order, start=1)}
            for mirror in (False,) if real else (False, True):
                terms = []
                for child, number in gathered.items():
                    labels = tuple(places[abs(s)] * (1 if s > 0 else -1) for s in child.slots)
                    turned = Ref(conjugate(number) if mirror else number, child.conj != mirror, labels, child.of)
                    scale, spelled = self.least(self.find(turned))
                    terms.append((spelled, scale))
                terms.sort()
                front = terms[0][1]
                share = reciprocal(front)
                pattern = tuple((child, times(share, scale)) for child, scale in terms)
                if best is None or pattern < best:
                    best, ways = pattern, []
                if pattern == best:
                    ways.append((order, conjugate(front) if mirror else front, mirror))
        assert best is not None, "a sum has a spelling"
        if into is not None and len(used) < rank:
            into = None
        return self._interned(Lin(best), ways, real, into)

    def _orders(self, gathered: dict[Child, Coefficient], used: list[int]) -> Collection[Labels]:
        """The orders in which the slots of a sum are tried: as the terms of the rarest class may name them."""
        full = [c for c in gathered if len(c.slots) == len(used)]
        if not full:
            return [*permutations(used)] if len(used) <= WIDEST_SUM else [tuple(used)]
        often = Counter(c.of for c in full)
        rarest = min(often, key=lambda of: (often[of], of))
        fixed = {abs(c.slots[s - 1]) for c in gathered for s in self.classes[c.of].fixed}
        orders = (at(c.slots, m.slots) for c in full if c.of == rarest for m in self.classes[rarest].group.moves)
        return dict.fromkeys(tuple(abs(s) if abs(s) in fixed else s for s in order) for order in orders)

    # --- equal classes

    def union(self, a: Ref, b: Ref) -> bool:
        """Note that `a` equals `b`, over the same labels, and is of one type with it; whether that is new."""
        a, b = self.find(a), self.find(b)
        sizes = [sorted(map(abs, r.labels)) for r in (a, b)]
        if sizes[0] != sizes[1] or len(set(sizes[0])) != len(sizes[0]):
            return False
        if a.of == b.of:
            return self._union_with_itself(a, b)
        if self.classes[a.of].typed != self.classes[b.of].typed:
            # the root of -1 is none where its type says that it is real, and i where it does not
            return False
        if len(self.users[a.of]) > len(self.users[b.of]):
            a, b = b, a
        # a.number · A(a.labels) = b.number · B(b.labels), conjugated each: A = (b / a.number)^conj in the slots of A
        place = {abs(label): (n if label > 0 else -n) for n, label in enumerate(a.labels, start=1)}
        slots = tuple(place[abs(label)] * (1 if label > 0 else -1) for label in b.labels)
        scale = times(reciprocal(a.number), b.number)
        old, new = self.classes[a.of], self.classes[b.of]
        self.moved[a.of] = Ref(conjugate(scale) if a.conj else scale, a.conj != b.conj, slots, b.of)
        new.nodes |= old.nodes
        new.within &= old.within
        new.fixed |= {n for n, s in enumerate(slots, start=1) if abs(s) in old.fixed}
        self.users[b.of] |= self.users[a.of]
        self.stale |= {a.of, b.of}
        if old.real and not new.real and _is_real(self.moved[a.of].number):
            self.more_symmetric(b.of, [Move(identity(len(slots)), 1, True)])
        self.more_symmetric(b.of, _carried(old.group.generators, slots, scale))
        return True

    def _union_with_itself(self, a: Ref, b: Ref) -> bool:
        ratio = times(reciprocal(a.number), b.number)
        if ratio not in (UNIT, MINUS) or (a.number[1] and a.conj):
            return False
        place = {abs(label): (n if label > 0 else -n) for n, label in enumerate(a.labels, start=1)}
        slots = tuple(place[abs(label)] * (1 if label > 0 else -1) for label in b.labels)
        return self.more_symmetric(a.of, [Move(slots, 1 if ratio == UNIT else -1, a.conj != b.conj)])

    def more_symmetric(self, of: int, moves: Sequence[Move]) -> bool:
        """Note moves that leave a class alone; whether one of them is new."""
        own = self.classes[of]
        group = MoveGroup.generated(len(own.kinds), [*own.group.generators, *moves], real=own.real, most=LARGEST)
        if group == own.group:
            return False
        own.real, own.group = group.real, group
        self.stale.add(of)
        return True

    def rebuild(self) -> None:
        """Intern again what mentions a class that changed, until nothing does: equal nodes meet."""
        while self.stale:
            stale, self.stale = self.stale, set()
            self.known.clear()
            waiting = dict.fromkeys(node for of in sorted(stale) for node in self.users[of])
            for node in waiting:
                if node in self.frames:
                    self._again(node)

    def _again(self, node: Node) -> None:
        old = self.frames.pop(node)
        self.classes[self.find(old).of].nodes.pop(node, None)
        for of in {*self.children(node)}:
            self.users[of].pop(node, None)
        stays = False
        with suppress(Zero):
            made = self._remade(node, old)
            stays = made is None
            if made is not None:
                self.union(made, old)
        # what could not be joined stays what its class is written with
        now = self.find(old)
        if node not in self.frames and (stays or all(_is_name(n) for n in self.classes[now.of].nodes)):
            self.put(node, now)

    def _remade(self, node: Node, old: Ref) -> Ref | None:
        match node:
            case Con(children=children):
                refs = [Ref(UNIT, c.conj, c.slots, c.of) for c in children]
                return self.con(refs, {abs(s) for c in children for s in c.slots if abs(s) < BOUND}, old)
            case Lin(terms=terms):
                refs = [Ref(n, c.conj, c.slots, c.of) for c, n in terms]
                return self.lin(refs, sorted({abs(s) for c, _ in terms for s in c.slots}), old)
            case Leaf():
                return self.respell(node)
            case _:
                raise AssertionError("a node is a leaf, a product or a sum")


def _is_name(node: Node) -> bool:
    """Whether a node only says what a class is called."""
    return isinstance(node, Leaf) and node.key[0] == "value"


def _is_real(number: Coefficient) -> bool:
    return not number[1]


def _carried(moves: Sequence[Move], slots: Labels, scale: Coefficient) -> list[Move]:
    """Moves of A as moves of B, where A(l) = scale · B(l ∘ slots), or its conjugate."""
    back = inverse(slots)
    turn = times(conjugate(scale), reciprocal(scale))
    found = []
    for m in moves:
        if not m.conj or turn in (UNIT, MINUS):
            sign = -m.sign if m.conj and turn == MINUS else m.sign
            found.append(Move(at(at(back, m.slots), slots), sign, m.conj))
    return found
