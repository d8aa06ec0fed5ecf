"""Leaves: entries of tensors, numbers, literals, indices read as numbers."""

from __future__ import annotations

from fractions import Fraction

from .kinds import Index, Integers, Number, Range, Tensor
from .sight import Draw, Sight, bare
from .syntax import Affine, App, Call, Constant, Expr, Literal, Looked, Neg, Ref, Var

_LITERALS = (1, 2, 3, 4, 5, 1, 2, 3, 7, 10)
_FRACTIONS = ((1, 2), (1, 2), (1, 3), (3, 2), (1, 4), (2, 3), (5, 2), (1, 10), (3, 4), (7, 5), (1, 1000))


class Leaves:
    """Draws what has no expressions below it."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw

    def leaf(self, sight: Sight, needed: tuple[Var, ...] = ()) -> Expr:
        """An entry, if one can be written; `needed` are indices that ought to stand in it."""
        fitting = [t for t in sight.tensors if self._fits(t, sight)]
        if needed:
            ranges = {i.kind.range for i in needed if isinstance(i.kind, Index)}
            better = [t for t in fitting if isinstance(t.kind, Tensor) and ranges & set(t.kind.slots)]
            fitting = better or fitting
        roll = self.draw.rng.random()
        if fitting and (roll < 0.75 or needed):
            return self.entry(self.draw.one(fitting), sight, needed)
        if sight.numbers and roll < 0.92:
            return Ref(self.draw.one(sight.numbers))
        if sight.indices and roll < 0.95:
            return self.index_number(sight)
        return self.constant()

    def constant(self) -> Expr:
        roll = self.draw.rng.random()
        if roll < (0.5 if "pi" in self.draw.favoured else 0.06):
            return Constant("pi")
        if roll < 0.6:
            return Literal(Fraction(self.draw.one(_LITERALS)))
        return Literal(Fraction(*self.draw.one(_FRACTIONS)))

    def imaginary(self) -> Expr:
        return Constant("im")

    def index_number(self, sight: Sight) -> Expr:
        """An index, or a sum of indices, as a number."""
        if sight.integers and self.draw.odds(0.3):
            array = self.draw.one(sight.integers)
            entry = self.looked(array.kind.entry, sight) if isinstance(array.kind, Integers) else None
            if entry is not None:
                return bare(entry)
        plain = [i for i in sight.indices if isinstance(i.kind, Index) and i.kind.range.directions == 1]
        plain = [i for i in plain if isinstance(i.kind, Index) and i.kind.range.sort != "list"]
        if not plain:
            return self.constant()
        i = self.draw.one(plain)
        roll = self.draw.rng.random()
        if roll < 0.7:
            return bare(i)
        return Affine(((1, i),), self.draw.one((1, 2, -1)))

    # --- entries ----------------------------------------------------------------------------------------------------

    def _fits(self, t: Var, sight: Sight) -> bool:
        """Whether every slot of a tensor has an index in sight, or takes a number now and then."""
        assert isinstance(t.kind, Tensor), "a tensor"
        missing = [r for r in t.kind.slots if not self.candidates(r, sight)]
        if not missing:
            return True
        return all(r.sort != "list" for r in missing) and self.draw.odds(0.04)  # no number is an offset of a list

    def candidates(self, slot: Range, sight: Sight) -> list[Var]:
        """Indices that may stand bare in a slot."""
        found = sight.over(slot)
        for i in sight.indices:
            assert isinstance(i.kind, Index), "an index"
            r = i.kind.range
            if r is not slot and r.directions == slot.directions and _lies_in(r, slot):
                found.append(i)
        return found

    def entry(self, t: Var, sight: Sight, needed: tuple[Var, ...] = ()) -> Expr:
        assert isinstance(t.kind, Tensor), "a tensor"
        wanted = list(needed)
        args = []
        for slot in t.kind.slots:
            arg = self.slot(slot, sight, wanted)
            wanted = [i for i in wanted if all(v is not i for _, v in arg.terms)]
            args.append(arg)
        return App(Ref(t), tuple(args), brackets=self.draw.odds(0.15))

    def looked(self, entry: Range, sight: Sight, nested: bool = True) -> Looked | None:
        """J(e), of an array of integers whose entries are of this range; J(K(e)) now and then."""
        fitting = [
            j
            for j in sight.integers
            if isinstance(j.kind, Integers) and j.kind.entry is entry and all(sight.over(r) for r in j.kind.slots)
        ]
        if not fitting:
            return None
        array = self.draw.one(fitting)
        assert isinstance(array.kind, Integers), "an array of integers"
        inner = [self.looked(r, sight, False) if nested and self.draw.odds(0.5) else None for r in array.kind.slots]
        args = tuple(
            bare(self.draw.one(sight.over(r)) if v is None else v) for v, r in zip(inner, array.kind.slots, strict=True)
        )
        return Looked(Index(entry), array=array, args=args)

    def placed(self, slot: Range, sight: Sight) -> Affine | None:
        """An argmax, or an argmin, over a range."""
        return None

    def slot(self, slot: Range, sight: Sight, wanted: list[Var]) -> Affine:
        """An index expression for a slot."""
        if self.draw.odds(0.4 if "argmax" in self.draw.favoured else 0.01) and (first := self.placed(slot, sight)):
            return first
        entry = self.looked(slot, sight) if self.draw.odds(0.6 if "gather" in self.draw.favoured else 0.3) else None
        if entry is not None:
            shifted = slot.sort == "ring" and self.draw.odds(0.4)
            reflected = slot.signed and self.draw.odds(0.2)
            return Affine(((-1 if reflected else 1, entry),), self.draw.one((1, -1, 2)) if shifted else 0)
        found = self.candidates(slot, sight)
        if not found or (slot.sort != "list" and self.draw.odds(0.02)):
            return self.number_in(slot)
        needed = [i for i in wanted if i in found]
        i = needed[0] if needed and self.draw.odds(0.9) else self.draw.one(found)
        assert isinstance(i.kind, Index), "an index"
        arithmetic = 0.6 if "arithmetic" in self.draw.favoured else 0.25
        if slot.sort == "ring" and self.draw.odds(arithmetic):
            return self.in_ring(slot, i, sight)
        if slot.signed and i.kind.range is slot and self.draw.odds(arithmetic):
            return Affine(((-1, i),))
        if (spare := _spare(i.kind.range, slot)) and self.draw.odds(0.4):
            return Affine(((1, i),), self.draw.rng.randrange(spare + 1))
        if slot.sort == "bounded" and self.draw.odds(arithmetic):
            return self.within_bounds(slot, sight) or bare(i)
        return bare(i)

    def number_in(self, slot: Range) -> Affine:
        """A number that is an index of the slot."""
        if slot.directions > 1:
            return Affine((), 0)
        n = slot.sizes[0]
        first = -(n // 2) if slot.sort == "symmetric" else slot.lower
        return Affine((), first + self.draw.rng.randrange(max(1, min(n, 3))))

    def in_ring(self, slot: Range, i: Var, sight: Sight) -> Affine:
        """Integer combinations of what may stand in a periodic slot."""
        others = [j for j in self.candidates(slot, sight) if j is not i]
        c = self.draw.one((1, 1, 1, 1, -1, 2, 3))
        terms = [(c, i)]
        if others and self.draw.odds(0.7):
            terms.append((self.draw.one((1, 1, -1, -1, 2)), self.draw.one(others)))
        constant = self.draw.one((0, 0, 1, -1, 2)) if slot.directions == 1 else 0
        return Affine(tuple(terms), constant)

    def within_bounds(self, slot: Range, sight: Sight) -> Affine | None:
        """Sums of bounded indices that stay in a bounded slot."""
        low, high = slot.lower, slot.lower + slot.sizes[0] - 1
        bounded = [j for j in sight.indices if isinstance(j.kind, Index) and j.kind.range.sort == "bounded"]
        for _ in range(6):
            if not bounded:
                return None
            picked = self.draw.rng.sample(bounded, min(len(bounded), self.draw.one((1, 2))))
            terms = tuple((self.draw.one((1, 1, -1, 2)), j) for j in picked)
            least, most = _reach(terms)
            if most - least > high - low:
                continue
            shift = self.draw.rng.randrange(low - least, high - most + 1)
            return Affine(terms, shift)
        return None


def _lies_in(r: Range, slot: Range) -> bool:
    """Whether the values of r lie in a slot of another range, as bare indices that keep their own range."""
    if slot.sort == "ring":
        return r.sort in ("symmetric", "list")
    if slot.sort == "bounded" and r.sort == "bounded":
        return slot.lower <= r.lower and r.lower + r.sizes[0] <= slot.lower + slot.sizes[0]
    return _spare(r, slot) > 0


def _spare(r: Range, slot: Range) -> int:
    """How many values a slot has more than a range with the same base; 0 if these are two things."""
    alike = r.sort == slot.sort == "plain" and (r.base or r) is (slot.base or slot)
    return max(0, slot.more - r.more) if alike else 0


def _reach(terms: tuple[tuple[int, Var], ...]) -> tuple[int, int]:
    low = high = 0
    for c, j in terms:
        assert isinstance(j.kind, Index), "an index"
        ends = sorted(c * x for x in (j.kind.range.lower, j.kind.range.lower + j.kind.range.sizes[0] - 1))
        low, high = low + ends[0], high + ends[1]
    return low, high


def negated(e: Expr) -> Expr:
    return Neg(e)


__all__ = ["Call", "Leaves", "Number", "negated"]
