"""Associativity: a product of several factors is one class, whichever of them are multiplied first.

    sum((q, r), A(p, q) * B(q, r) * C(r, s))   is   A (B C)   and   (A B) C

Ends: each set of factors that hang together is made once, in each of its splits in two. Of a long product, whose sets
are too many, sums that share no index that is summed over are made each by itself; of what is still too long, only the
splits into one factor and the rest. Outer products of what does not hang together are left out: nobody writes them, and
they crowd out of the beam of the next law what somebody would.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from combdiff.simplify.graph.graph import Graph, Ref

LONGEST = 7
"""Factors of a product that is split in all ways: one of seven that all hang together has 966 splits."""

LONGEST_AT_ONE_PLACE = 4
"""The same for factors that all depend on the same indices, whose order matters to nothing but what is shared."""


def split(graph: Graph, refs: Sequence[Ref], is_open: Collection[int], one: Ref) -> Ref:
    """Σ over the labels that are not in `is_open` of the product of `refs`, with all its splits; `one` is for none.

    Raises:
        Zero: if it is zero.
    """
    factors, unit = [], one
    for ref in map(graph.find, refs):
        if ref.of == one.of:
            one = one.times(ref.number)
        else:
            factors.append(ref)
    if not factors:
        return one
    factors.sort(key=lambda r: (r.of, r.conj))
    factors[0] = factors[0].times(one.number)
    if len(factors) > LONGEST:
        factors = _scalars_together(graph, _sums_apart(graph, factors, frozenset(is_open), unit))
    longest = LONGEST_AT_ONE_PLACE if _at_one_place(factors) else LONGEST
    return (_every_way if len(factors) <= longest else _one_by_one)(graph, factors, frozenset(is_open))


def _at_one_place(factors: Sequence[Ref]) -> bool:
    """Whether all factors that have labels have the same: no order of such a product costs less than another."""
    return len({held for held in _labels(factors) if held}) <= 1


def _sums_apart(graph: Graph, factors: list[Ref], is_open: frozenset[int], one: Ref) -> list[Ref]:
    """The factors, with those of one sum as one: Σ_jk A(i, j) x(j) B(l, k) y(k) is a product of two sums."""
    summed = [labels - is_open for labels in _labels(factors)]
    parts = _components(_near(summed), (1 << len(factors)) - 1)
    if len(parts) == 1:
        return factors
    groups = [[factors[n] for n in _members(part)] for part in parts]
    return [group[0] if len(group) == 1 else split(graph, group, is_open, one) for group in groups]


def _scalars_together(graph: Graph, factors: Sequence[Ref]) -> list[Ref]:
    """The factors without labels as one."""
    scalars = [f for f in factors if not f.labels]
    others = [f for f in factors if f.labels]
    while len(scalars) > 1:
        scalars = [graph.con(scalars[:2], ()), *scalars[2:]]
    return [*scalars, *others]


def _labels(refs: Sequence[Ref]) -> list[frozenset[int]]:
    return [frozenset(map(abs, r.labels)) for r in refs]


def _every_way(graph: Graph, refs: Sequence[Ref], is_open: frozenset[int]) -> Ref:
    held = _labels(refs)
    everything = (1 << len(refs)) - 1
    within = [frozenset[int]().union(*(held[n] for n in _members(s))) for s in range(everything + 1)]
    near = _near(held)
    labelled = sum(1 << n for n, labels in enumerate(held) if labels)
    components = _components(near, labelled)
    made: dict[int, Ref] = {}
    for part in sorted(range(1, everything + 1), key=int.bit_count):
        if not (_hangs_together(near, part & labelled) or all(c & part in (0, c) for c in components)):
            continue
        opens = within[part] & (is_open | within[everything ^ part])
        if part & (part - 1) == 0:
            made[part] = graph.con([refs[part.bit_length() - 1]], opens)
            continue
        lowest = part & -part
        half = (part - 1) & part
        found: Ref | None = None
        while half:
            if half & lowest and half in made and part ^ half in made:
                ref = graph.con([made[half], made[part ^ half]], opens, found)
                if found is None:
                    found = ref
                elif graph.find(found) != graph.find(ref):
                    graph.union(found, ref)
            half = (half - 1) & part
        if found is not None:
            made[part] = graph.find(found)
    return graph.find(made[everything])


def _one_by_one(graph: Graph, refs: Sequence[Ref], is_open: frozenset[int]) -> Ref:
    """Σ of a long product, as each factor times the rest."""
    held = _labels(refs)
    whole = _in_a_row(graph, refs, is_open)
    for n, factor in enumerate(refs):
        others = [r for m, r in enumerate(refs) if m != n]
        outside = frozenset[int]().union(*(h for m, h in enumerate(held) if m != n))
        rest = _in_a_row(graph, others, is_open | held[n])
        alone = graph.con([factor], held[n] & (is_open | outside))
        ref = graph.con([alone, rest], is_open, whole)
        if graph.find(ref) != graph.find(whole):
            graph.union(whole, ref)
    return graph.find(whole)


def _in_a_row(graph: Graph, refs: Sequence[Ref], is_open: frozenset[int]) -> Ref:
    """Σ of a product, one factor after the other; a factor that shares indices with what was made comes first."""
    held = dict(enumerate(_labels(refs)))
    left = dict(enumerate(refs))
    made = left.pop(0)
    mine = held.pop(0)
    while left:
        n = max(left, key=lambda m: (len(held[m] & mine), -m))
        outside = is_open.union(*(h for m, h in held.items() if m != n))
        made = graph.con([made, left.pop(n)], outside)
        mine = frozenset(map(abs, made.labels))
        del held[n]
    return graph.con([made], is_open)


def _near(held: Sequence[frozenset[int]]) -> list[int]:
    """Of each factor those that share a label with it."""
    return [sum(1 << m for m in range(len(held)) if m != n and held[n] & held[m]) for n in range(len(held))]


def _members(part: int) -> list[int]:
    return [n for n in range(part.bit_length()) if part >> n & 1]


def _reached(near: Sequence[int], part: int) -> int:
    seen = front = part & -part
    while front:
        n = front.bit_length() - 1
        front &= ~(1 << n)
        new = near[n] & part & ~seen
        seen |= new
        front |= new
    return seen


def _hangs_together(near: Sequence[int], part: int) -> bool:
    """Whether the factors of a part are linked by their labels; numbers hang together with everything."""
    return part == 0 or _reached(near, part) == part


def _components(near: Sequence[int], part: int) -> list[int]:
    found = []
    while part:
        found.append(_reached(near, part))
        part &= ~found[-1]
    return found
