"""Names for what stands at several places: the force along a bond of a chain, and along the bond before it.

    where(1 <= i, sin(t(i) - t(i - 1)) * w(i)) - where(i < n - 1, sin(t(i + 1) - t(i)) * w(i))

becomes, with v = (i::N{n - 1}) -> sin(t(i + 1) - t(i)),

    where(1 <= i, v(i - 1) * w(i)) - where(i < n - 1, v(i) * w(i))

The value has as many entries as there are places: where it is read beyond them, t was. A value that has a name already
is read at the other places; of several parts the one is taken that saves most names.
Ends: each round leaves fewer names in the text, and there are few rounds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import permutations

from combdiff.canon.canonical import Canonical, canonical
from combdiff.records import dataclass
from combdiff.simplify.graph.reading_cost import words
from combdiff.simplify.images import split_off
from combdiff.simplify.known import with_entry
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    Add,
    App,
    Call,
    Const,
    Delta,
    Indicator,
    Lam,
    Loop,
    Mul,
    Pow,
    Term,
    Traverser,
    Var,
    add,
    body_of,
    children,
    fresh,
    mul,
    neg,
    number,
    numbers_read,
    params_of,
    power,
    split_coefficient,
    substitute,
    subterms,
)
from combdiff.terms.types import Domain, Index, Map, Number, is_periodic

Binding = tuple[Var, Term]

WORTH = 2
"""Names that a new value has to save."""

MOST_SLOTS = 3
"""Indices of a part whose orders are tried."""

MOST_ROUNDS = 8

MOST_VISITS = 20_000
"""Parts of a text that are counted; a longer one stays as it is."""


def with_values_at_shifts(
    bindings: Sequence[Binding],
    results: Sequence[Term],
    named: Callable[[Term], bool],
    own: Collection[str] = (),
    defined: Iterable[Term] = (),
) -> tuple[list[Binding], list[Term]]:
    """The values and results with names for parts that stand at several places, if they are to be `named`.

    `own` are the names of the values that the program defines, which stay; `defined` are all its definitions: one that
    has no value any more may get one.
    """
    found, items = [*bindings], [*results]
    if not any(map(_places_beside, [*(value for _, value in found), *items])):
        return found, items
    known = [part for value in defined if (part := _part(body_of(value), params_of(value))) is not None]
    for _ in range(MOST_ROUNDS):
        best = _best(found, items, named, own)
        if best is None:
            break
        found, items = best.written(found, items, own, known)
    return found, items


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a value with its indices; `least` are the least numbers that are added to them.

    `spread` are all the numbers that are added, less the least; `kinds` has the ranges of the places.
    """

    term: Term
    indices: tuple[Var, ...]
    kinds: tuple[Index, ...]
    least: tuple[int, ...]
    spread: tuple[tuple[int, ...], ...]

    def at(self, places: Sequence[Term]) -> Term:
        """The part with these places instead of its indices with the least numbers."""
        moved = {v: _plus(place, -n) for v, place, n in zip(self.indices, places, self.least, strict=True)}
        return substitute(self.term, moved)

    @property
    def key(self) -> Hashable:
        """What parts that are equal but for their places have in common."""
        names = frozenset(v for v in subterms(self.term, Var) if not isinstance(v.kind, Index))
        kinds = Counter(map(type, subterms(self.term)))
        return names, kinds[Call], kinds[Pow], tuple(sorted(self.spread))

    @property
    def arithmetic(self) -> tuple[int, int]:
        """How much is added to its indices; of two that have as much, the first adds rather than subtracts."""
        added = [n + least for own, least in zip(self.spread, self.least, strict=True) for n in own]
        return sum(map(abs, added)), -sum(added)


@dataclass(frozen=True, slots=True)
class Member:
    """A part that is `sign` times the first of its family; the indices are in the order that the first has them in.

    `name` is the value that it is, if it has one.
    """

    part: Part
    order: tuple[int, ...]
    sign: Const
    name: Var | None = None

    @property
    def least(self) -> tuple[int, ...]:
        """The numbers that are added to the indices."""
        return tuple(self.part.least[n] for n in self.order)

    def places(self, anchor: Sequence[int]) -> list[Term]:
        """Where a value is read that has the numbers in `anchor` added to its own indices."""
        numbers = zip(self.order, self.least, anchor, strict=True)
        return [_plus(self.part.indices[n], least - own) for n, least, own in numbers]


@dataclass(frozen=True, slots=True)
class Shared:
    """Parts that are equal but for their places; `form` is that of the first one, at `slots`."""

    members: list[Member]
    slots: tuple[Var, ...]
    form: Canonical

    @classmethod
    def of(cls, first: Part, name: Var | None) -> Shared:
        """A family of one."""
        slots = tuple(fresh(v.name, kind) for v, kind in zip(first.indices, first.kinds, strict=True))
        return cls([Member(first, tuple(range(len(slots))), ONE, name)], slots, canonical(first.at(slots)))

    @property
    def name(self) -> Var | None:
        """The value that the first one is, if it has one."""
        return self.members[0].name

    def written(
        self, bindings: Sequence[Binding], results: Sequence[Term], own: Collection[str], known: Sequence[Part]
    ) -> tuple[list[Binding], list[Term]]:
        """The values and results with one name for the parts."""
        first, anchor = self.members[0].part, self._anchor(known)
        slots = tuple(fresh(v.name, kind) for v, kind in zip(first.indices, first.kinds, strict=True))
        value = Lam(slots, first.at([_plus(v, n) for v, n in zip(slots, anchor, strict=True)]))
        # which is numbered, and so gets a letter
        var = self.name or fresh("u1", Map(tuple(v.kind for v in slots), first.term.type))
        entries = {m.part.term: mul(m.sign, App(var, tuple(m.places(anchor)))) for m in self.members}
        # other names of it are not needed, but for those of the program
        others = {m.name for m in self.members[1:] if m.name is not None and m.name.name not in own}
        values = {v: Lam(params_of(old), entries[body_of(old)]) for v, old in bindings if v in others}
        replaced = Traverser(lambda t: _replaced(t, entries))

        def anew(old: Term) -> Term:
            return substitute(with_entry(old, replaced(body_of(old))), values)

        place = max((n for n, (v, _) in enumerate(bindings, start=1) if v in value.free), default=0)
        before, after = [b for b in bindings[:place] if b[0] != var], [b for b in bindings[place:] if b[0] != var]
        after = [(v, old if self._stays(v, old, own) else anew(old)) for v, old in after if v not in others]
        return [*before, (var, value), *after], [*map(anew, results)]

    def _stays(self, var: Var, value: Term, own: Collection[str]) -> bool:
        """Whether a value is one of the parts, with a name of the program, or a loop."""
        return isinstance(value, Loop) or (var.name in own and any(m.name == var for m in self.members))

    def _anchor(self, known: Sequence[Part]) -> tuple[int, ...]:
        """The numbers in the places of the value: as its name or a definition has them, else the fewest.

        A range begins at 0.
        """
        first = self.members[0]
        met = first if self.name is not None else next(filter(None, map(self.met, known)), None)
        chosen = met or min(self.members, key=lambda m: m.part.arithmetic)
        return tuple(n if is_periodic(kind) else 0 for n, kind in zip(chosen.least, first.part.kinds, strict=True))

    def met(self, part: Part) -> Member | None:
        """A part as a member of the family; None if it is of another one."""
        first = self.members[0].part
        if first.key != part.key or self.form.key is None:
            return None
        for order in permutations(range(len(self.slots))):
            alike = all(
                part.kinds[n] == v.kind and part.spread[n] == spread
                for n, v, spread in zip(order, self.slots, first.spread, strict=True)
            )
            if alike:
                other = canonical(part.at([self.slots[order.index(n)] for n in range(len(order))]))
                if other.key == self.form.key:
                    return Member(part, order, ONE if other.sign == self.form.sign else MINUS_ONE)
        return None

    def saved(self, counts: Mapping[Term, int], own: Collection[str]) -> float:
        """How many names the text has less with the name."""
        if len({m.least for m in self.members}) < 2:
            return 0.0
        first = self.members[0].part
        size, entry = words(first.term, {}), 1 + len(first.indices)
        definition = size + 2 * entry - 1
        others = sum(m.name is not None and m.name.name not in own for m in self.members[1:])
        uses = sum(counts[m.part.term] - (m.name is not None) for m in self.members)
        return uses * (size - entry) + others * definition - (definition + WORTH if self.name is None else 0)


def _replaced(t: Term, entries: Mapping[Term, Term]) -> Term:
    """A node with the entry of the value that it is, that it is a multiple of, or one over it."""
    if t in entries:
        return entries[t]
    size, rest = split_coefficient(t)
    if size != ONE and rest in entries:
        return mul(size, entries[rest])
    inverse = _inverse(t)
    return power(entries[inverse], MINUS_ONE) if inverse is not None and inverse in entries else t


def _inverse(t: Term) -> Term | None:
    """What a power divides by, sqrt(u) of 1/sqrt(u), which is rather named than that."""
    match t:
        case Pow(base, Const() as n) if n.real < 0 and not n.imag and (isinstance(base, Call) or not n.is_integer):
            return power(base, neg(n))
        case _:
            return None


# --- parts and families ---------------------------------------------------------------------------------------------


def is_function(t: Term) -> bool:
    """Whether a part is a function of a number, a root among them: no sum of products collects its arguments."""
    return (isinstance(t, Call) and bool(t.args)) or (
        isinstance(t, Pow) and not (isinstance(t.exponent, Const) and t.exponent.is_integer)
    )


def is_product(t: Term) -> bool:
    """Whether a part is a product or a sum, which collects what has common factors before it gets a name."""
    return isinstance(t, Mul | Add) or is_function(t)


def _best(
    bindings: Sequence[Binding], results: Sequence[Term], is_named: Callable[[Term], bool], own: Collection[str]
) -> Shared | None:
    """The parts whose name saves most, if one is worth it."""
    values = [value for _, value in bindings]
    counts = _occurrences([body_of(t) for t in [*values, *results] if not isinstance(t, Loop)])
    first = sorted(bindings, key=lambda binding: (binding[0].name not in own, _places_beside(binding[1])))
    named = {body_of(value): (var, params_of(value)) for var, value in first if params_of(value)}
    outside = set().union(*(t.free for t in [*values, *results]), (var for var, _ in bindings))
    alike: dict[Hashable, list[tuple[Part, Var | None]]] = {}
    for t in dict.fromkeys([*(t for t in named if t in counts), *counts]):
        if not isinstance(t.type, Number) or not is_named(t) or t.free.isdisjoint(outside):
            continue
        indices = {v for v in t.free if isinstance(v.kind, Index)}
        var, slots = named.get(t, (None, tuple(sorted(indices, key=lambda v: v.uid))))
        if {*slots} != indices or not t.free <= indices | outside:
            continue
        part = _part(t, slots)
        if part is not None and (var is None or part.kinds == tuple(v.kind for v in slots)):
            alike.setdefault(part.key, []).append((part, var))
    shared = [family for parts in alike.values() if len(parts) > 1 for family in _families(parts)]
    best = max(shared, key=lambda f: f.saved(counts, own), default=None)
    return best if best is not None and best.saved(counts, own) > 0 else None


def _families(parts: Sequence[tuple[Part, Var | None]]) -> list[Shared]:
    """Parts, some of which have names, with those together that are equal but for their places."""
    found: list[Shared] = []
    for part, name in parts:
        for family in found:
            if (member := family.met(part)) is not None:
                family.members.append(replace(member, name=name))
                break
        else:
            found.append(Shared.of(part, name))
    return found


def _part(t: Term, indices: Sequence[Var]) -> Part | None:
    """A term as a part with these indices, if these stand in slots only, with numbers added to them."""
    if len(indices) > MOST_SLOTS:
        return None
    kinds, least, spread = [], [], []
    for v in indices:
        slots = _slots_of(v, t)
        if not slots:
            return None
        first = min(n for _, n in slots)
        kind = _range_of([(domain, n - first) for domain, n in slots])
        if kind is None:
            return None
        kinds.append(kind)
        least.append(first)
        spread.append(tuple(sorted({n - first for _, n in slots})))
    return Part(t, tuple(indices), tuple(kinds), tuple(least), tuple(spread))


def _slots_of(v: Var, t: Term) -> set[tuple[Domain, int]]:
    """The ranges of the slots in which an index stands, with the number added to it; none if it stands elsewhere."""
    found: set[tuple[Domain, int]] = set()
    if v in numbers_read(t):
        return set()
    for u in subterms(t):
        if isinstance(u, App) and isinstance(u.function.type, Map):
            for place, kind in zip(u.args, u.function.type.params, strict=True):
                if v in place.free:
                    added = _added(v, place)
                    if added is None or not isinstance(kind, Index) or kind.domain is None:
                        return set()
                    found.add((kind.domain, added))
        elif isinstance(u, Delta | Indicator) and any(v in side.free for side in (u.left, u.right)):
            return set()
    return found


def _added(v: Var, place: Term) -> int | None:
    """The number c of i + c."""
    if place == v:
        return 0
    size, rest = split_off(v, place) if isinstance(place, Add) else (ONE, None)
    return int(rest.real) if size == ONE and isinstance(rest, Const) and rest.is_integer else None


def _range_of(slots: Sequence[tuple[Domain, int]]) -> Index | None:
    """The values from 0 on that an index has if these numbers are added to it in slots of these ranges."""
    first = slots[0][0]
    if all(domain == first for domain, _ in slots) and (first.periodic or all(n == 0 for _, n in slots)):
        return Index(first)
    fewer = [first.fewer(domain.shortened(n)) if domain.from_zero else None for domain, n in slots]
    known = [n for n in fewer if n is not None]
    return Index(first.shortened(-min(known))) if len(known) == len(slots) else None


def _places_beside(t: Term) -> int:
    """The places i + 1 or the like at which arrays are read."""
    return sum(isinstance(place, Add) and isinstance(place.type, Index) for u in subterms(t, App) for place in u.args)


def _plus(place: Term, n: int) -> Term:
    return add(place, number(n)) if n else place


def _occurrences(texts: Sequence[Term]) -> Counter[Term]:
    """How often each part is written; of a text that is too long, none."""
    counts: Counter[Term] = Counter()
    todo = [*texts]
    while todo:
        t = todo.pop()
        if isinstance(t, Mul):
            _, t = split_coefficient(t)
        t = _inverse(t) or t
        counts[t] += 1
        if counts.total() > MOST_VISITS:
            return Counter()
        todo += children(t)
    return counts
