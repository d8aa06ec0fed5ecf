"""Comparisons of indices and of numbers, and guards around what is singular."""

from __future__ import annotations

from fractions import Fraction

from .functions import Functions
from .kinds import Index
from .sight import LARGEST_LOOP, Sight, bare, is_complex
from .syntax import Add, Affine, App, Call, Delta, Div, Expr, Indicator, Literal, Mul, Neg, Power, Ref, Sum, Var, copied


class Comparisons(Functions):
    """Draws deltas, indicators, and sums over pairs with a guard."""

    def _pair(self, sight: Sight) -> tuple[Affine, Affine] | None:
        """Two index expressions that can be compared."""
        if not sight.indices:
            return None
        i = self.draw.one(sight.indices)
        assert isinstance(i.kind, Index), "an index"
        entry = self.looked(i.kind.range, sight) if self.draw.odds(0.5) else None
        if entry is not None:
            return bare(i), bare(entry)
        alike = [j for j in sight.over(i.kind.range) if j is not i]
        if not alike and self.draw.odds(0.3):
            alike = [
                j
                for j in sight.indices
                if isinstance(j.kind, Index) and j is not i and j.kind.range.sort == i.kind.range.sort == "plain"
            ]
        if alike and self.draw.odds(0.85):
            return bare(i), bare(self.draw.one(alike))
        if i.kind.range.sort == "list":
            return None
        return bare(i), self.number_in(i.kind.range)

    def _delta(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        pair = self._pair(sight)
        if pair is None:
            return None
        left, right = pair
        i = left.terms[0][1]
        assert isinstance(i.kind, Index), "an index"
        if i.kind.range.sort == "ring" and right.terms and self.draw.odds(0.4):
            left = self.in_ring(i.kind.range, i, sight)
        sides = [left, right]
        self.draw.rng.shuffle(sides)
        return Delta(sides[0], sides[1], self.number(sight, budget - 3, needed))

    def _indicator(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        pair = self._pair(sight)
        if pair is None:
            return None
        left, right = pair
        i = left.terms[0][1]
        assert isinstance(i.kind, Index), "an index"
        if i.kind.range.directions > 1 or i.kind.range.sort == "list":
            return None
        if i.kind.range.sort == "plain" and self.draw.odds(0.4):
            left = Affine(left.terms, self.draw.one((1, -1, 2)))
        sides = [left, right] if self.draw.odds(0.5) else [right, left]
        return Indicator(sides[0], sides[1], self.number(sight, budget - 3, needed))

    def _compared(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        a, b, c = self.draw.split(budget - 1, 3)
        left, right = self.real(sight, min(a, 5), needed), self.real(sight, min(b, 5))
        if self.draw.odds(0.4):
            right = Literal(Fraction(0))
        body = copied(left) if self.draw.odds(0.3) else self.number(sight, c, needed)
        sides = (left, right) if self.draw.odds(0.5) else (right, left)
        if isinstance(sides[0], Affine | Literal) and isinstance(sides[1], Affine | Literal):
            return None
        return Indicator(*sides, body)

    def _guard(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        """A sum over pairs of what is singular where both are one, with those left out."""
        ranges = [
            r for r in sight.ranges() if r.sort in ("plain", "bounded") and sight.loop * r.count**2 <= LARGEST_LOOP
        ]
        if not ranges:
            return None
        r = self.draw.one(ranges)
        i, j = Var(Index(r)), Var(Index(r))
        inner = sight.within([i, j])
        distance = self._distance(sight, i, j)
        if distance is None:
            return None
        singular = self._singular_of(distance)
        if self.draw.odds(0.4):
            singular = Mul((singular, self.number(inner, max(1, budget - 12))))
        guarded = Indicator(Affine(((1, i),), 1), bare(j), singular)
        return self.summed((i, j), guarded)

    def _distance(self, sight: Sight, i: Var, j: Var) -> Expr | None:
        """A real number above 0 that is 0 if i = j."""
        assert isinstance(i.kind, Index), "an index"
        r = i.kind.range
        suited = [t for t in sight.tensors if r in t.kind.slots and len(t.kind.slots) <= 2]  # type: ignore[union-attr]
        if not suited:
            return None
        t = self.draw.one(suited)
        rest = list(t.kind.slots)  # type: ignore[union-attr]
        at = rest.index(r)
        others = [Var(Index(s)) for n, s in enumerate(rest) if n != at]

        def entry(k: Var) -> Expr:
            args = [bare(o) for o in others]
            args.insert(at, bare(k))
            return App(Ref(t), tuple(args))

        e: Expr = Add((entry(i), Neg(entry(j))))
        square: Expr = Call("abs2", e) if is_complex(e) else Power(e, Literal(Fraction(2)))
        return Sum(tuple(others), square) if others else square

    def _singular_of(self, square: Expr) -> Expr:
        one = Literal(Fraction(1))
        match self.draw.rng.randrange(6):
            case 0:
                return Div(one, Call("sqrt", square))
            case 1:
                return Div(one, square)
            case 2:
                return Call("log", square)
            case 3:
                return Add((Power(square, Literal(Fraction(-3))), Neg(Power(copied(square), Literal(Fraction(-1))))))
            case 4:
                return Power(Add((Call("sqrt", square), Neg(one))), Literal(Fraction(2)))
            case _:
                return Power(square, Literal(Fraction(-3, 2)))
