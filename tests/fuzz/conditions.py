"""Conditions, the two values that they choose from, and index arithmetic that they keep in range."""

from __future__ import annotations

from fractions import Fraction

from .comparisons import Comparisons
from .expressions import told
from .kinds import Index, Range, Tensor
from .sight import LARGEST_LOOP, Sight, bare
from .syntax import (
    Add,
    Affine,
    App,
    Call,
    Compared,
    Div,
    Expr,
    Joined,
    Literal,
    Mul,
    Neg,
    Not,
    Power,
    Reduced,
    Ref,
    Size,
    Var,
    Where,
    copied,
)
from .truth import CONTRARY

WEIGHTS = {"where": 0.35, "protected": 0.1, "shifted": 0.25, "sized": 0.15}
SIGNS = ("<", "<=", ">", ">=", "==", "!=")
TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
REAL_SIGNS = ("<", "<=", ">", ">", ">=", ">=", "==", "==", "!=")


class Conditions(Comparisons):
    """Draws conditions and what stands under them."""

    # --- conditions -------------------------------------------------------------------------------------------------

    def condition(self, sight: Sight, budget: int, over: tuple[Var, ...] = ()) -> Expr:
        """A condition; `over` are indices that ought to stand in it."""
        roll = self.draw.rng.random()
        if roll < 0.2:
            return self.joined(self.draw.one(("and", "or")), sight, budget, over)
        if roll < 0.3:
            return Not(self.condition(sight, budget - 1, over))
        return self.relation(sight, budget, over)

    def joined(self, word: str, sight: Sight, budget: int, over: tuple[Var, ...] = ()) -> Expr:
        """Two conditions, or three, joined by that word."""
        first, *parts = self.draw.split(budget, self.draw.one((2, 2, 3)))
        return Joined(word, (self.condition(sight, first, over), *(self.condition(sight, b) for b in parts)))

    def relation(self, sight: Sight, budget: int, over: tuple[Var, ...] = (), sort: str = "") -> Expr:
        """A comparison, of the sort `indices` or `reals` if that is asked for."""
        if sort != "reals" and sight.indices and (sort or self.draw.odds(0.65)):
            found = self._of_indices(sight, over)
            if found is not None:
                return found
        return self._of_reals(sight, budget)

    def _of_reals(self, sight: Sight, budget: int) -> Expr:
        a, b = self.draw.split(max(2, min(budget, 8)), 2)
        left, right = self.real(sight, a), self.real(sight, b)
        if self.draw.odds(0.4):
            right = Literal(Fraction(self.draw.one((0, 0, 0, 1))))
        if self.draw.odds(0.1):
            third: Expr = Literal(Fraction(self.draw.one((1, 2))))
            return Compared((right, left, third), (self.draw.one(("<", "<=")), self.draw.one(("<", "<="))))
        sign = self.draw.one(REAL_SIGNS)
        return Compared((left, right), (sign,)) if self.draw.odds(0.7) else Compared((right, left), (TURNED[sign],))

    def _of_indices(self, sight: Sight, over: tuple[Var, ...]) -> Expr | None:
        i = self.draw.one(over if over and self.draw.odds(0.8) else sight.indices)
        assert isinstance(i.kind, Index), "an index"
        r = i.kind.range
        right = self._other_side(i, r, sight)
        if right is None:
            return None
        sign = self.draw.one(SIGNS)
        if r.directions > 1 or r.sort == "list":
            return Compared((bare(i), right), (self.draw.one(("==", "!=")),))
        left = bare(i)
        if self.draw.odds(0.3):
            left = Affine(((self.draw.one((1, 1, 1, 2)), i),), self.draw.one((1, -1, 2)))
        if self.draw.odds(0.12) and sign in ("<", "<="):
            return Compared((self.number_in(r), left, right), (self.draw.one(("<", "<=")), sign))
        return Compared((left, right), (sign,)) if self.draw.odds(0.7) else Compared((right, left), (TURNED[sign],))

    def _other_side(self, i: Var, r: Range, sight: Sight) -> Expr | None:
        """What an index is compared with: an entry of integers, another index, the size, a number."""
        entry = self.looked(r, sight) if self.draw.odds(0.5) else None
        if entry is not None:
            return bare(entry)
        alike = [j for j in sight.over(r) if j is not i]
        if r.sort == "list":
            return bare(self.draw.one(alike)) if alike else None
        if r.directions == 1 and (r.named or r.declared) and self.draw.odds(0.25):
            return self.size_less(i, self.draw.one((0, 1, 1, 2)))
        if not alike and r.directions == 1:
            alike = [j for j in sight.indices if j is not i and isinstance(j.kind, Index) and is_counted(j.kind.range)]
        if alike and self.draw.odds(0.75):
            return bare(self.draw.one(alike))
        if r.sort == "ring" and r.directions == 1:
            return Affine((), self.draw.rng.randrange(-1, r.sizes[0] + 2))
        return self.number_in(r)

    def size_less(self, i: Var, by: int) -> Expr:
        """The size of an index's range, less a number: `n - 1`."""
        size = Size(Var(i.kind))
        return Add((size, Neg(Literal(Fraction(by))))) if by else size

    # --- values under conditions ------------------------------------------------------------------------------------

    def _where(self, sight: Sight, budget: int, needed: tuple[Var, ...], sort: str = "") -> Expr | None:
        a, b, c = self.draw.split(budget - 1, 3)
        if sort in ("and", "or"):
            condition = self.joined(sort, sight, a)
        else:
            condition = self.relation(sight, a, sort=sort) if sort else self.condition(sight, a)
        body = self.number(sight, b, needed)
        return Where(condition, body, self.number(sight, c, needed) if self.draw.odds(0.5) else None)

    def _protected(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        """What is singular at 0, or not real below it, where it is not."""
        e = self.real(sight, budget - 5, needed)
        one, zero = Literal(Fraction(1)), Literal(Fraction(0))
        singular: Expr = Call(self.draw.one(("log", "sqrt", "lgamma")), copied(e))
        sign = "<"
        if self.draw.odds(0.5):
            singular, sign = Div(self.draw.one((one, Call("sin", copied(e)))), copied(e)), "!="
        elif self.draw.odds(0.3):
            singular = Power(copied(e), Literal(Fraction(self.draw.one((-3, -1, 1, 3)), 2)))
        condition: Expr = Compared((zero, e), (sign,))
        if self.draw.odds(0.25):
            return Where(Compared((copied(e), zero), (CONTRARY[TURNED[sign]],)), self.leaf(sight, needed), singular)
        if self.draw.odds(0.2):
            condition = Joined("and", (condition, Compared((copied(singular), one), ("<",))))
        return Where(condition, singular, self.leaf(sight, needed) if self.draw.odds(0.4) else None)

    def _sized(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        """A size as a number."""
        ranges = [r for r in sight.ranges() if r.named or r.declared]
        if not ranges:
            return None
        size: Expr = Size(Var(Index(self.draw.one(ranges))))
        e = self.number(sight, budget - 3, needed)
        match self.draw.rng.randrange(5):
            case 0:
                return Mul((size, e))
            case 1:
                return Div(e, Power(size, Literal(Fraction(self.draw.one((2, 3)), self.draw.one((1, 2))))))
            case 2:
                return Mul((Add((size, Neg(Literal(Fraction(1))))), e))
        return Div(e, size)

    # --- index arithmetic that a condition keeps in range -----------------------------------------------------------

    def _shifted(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        """An entry at i + c, or at i + j + c, under a condition that keeps this in range; under a sum if need be."""
        tensors = [t for t in sight.tensors if any(is_counted(r) for r in slots_of(t))]
        if not tensors:
            return None
        t = self.draw.one(tensors)
        at = self.draw.one([n for n, r in enumerate(slots_of(t)) if is_counted(r)])
        new = tuple(Var(Index(r)) for n, r in enumerate(slots_of(t)) if n == at or not sight.over(r))
        here = sight.over(slots_of(t)[at])
        if here and self.draw.odds(0.4):
            new = tuple(v for v in new if v.kind != here[0].kind)
        inner = sight.within(new)
        if inner.loop > LARGEST_LOOP:
            return None
        found = self.kept_entry(t, at, inner)
        if found is None:
            return None
        e, condition = found
        if budget > 5:
            e = Mul((e, self.number(inner, min(budget - 5, 6), needed)))
        return self.under(new, e, condition, inner)

    def kept_entry(self, t: Var, at: int, sight: Sight, entry: Var | None = None) -> tuple[Expr, Expr] | None:
        """An entry whose slot `at` holds index arithmetic, and the condition that keeps it in range.

        The arithmetic is with an index in sight, or with an `entry` of an array of integers.
        """
        r = slots_of(t)[at]
        indices = sight.over(r)
        i = entry or (indices[-1] if self.draw.odds(0.5) else self.draw.one(indices))
        others = [j for j in indices if j is not i]
        c = self.draw.one((1, 1, -1, -1, 2, -2))
        index = Affine(((1, i),), c)
        if others and self.draw.odds(0.4):
            j = self.draw.one(others)
            index = Affine(((1, i), (self.draw.one((1, -1)), j)), self.draw.one((0, 1, -1)))
            condition = self._between(index, r, i)
        elif others and (c < 0 or r.named or r.declared) and self.draw.odds(0.3):
            j = self.draw.one(others)
            condition = Compared((index, bare(j)) if c > 0 else (bare(j), index), ("<=",))
        else:
            condition = self._on_one_side(i, r, c)
        if condition is None:
            return None
        args = [self.slot(s, sight, []) for s in slots_of(t)]
        shifted: Expr = App(Ref(t), (*args[:at], index, *args[at + 1 :]))
        if not (r.named or r.declared):
            # which size the slot has is told by an index alone
            shifted = Mul((shifted, App(Ref(t), (*args[:at], bare(i), *args[at + 1 :]))))
        return shifted, condition

    def _between(self, index: Affine, r: Range, i: Var) -> Expr | None:
        """lower <= index < the end."""
        if not (r.named or r.sort == "bounded"):
            return None
        low = Affine((), r.lower)
        if r.sort == "bounded":
            return Compared((low, index, Affine((), r.lower + r.count - 1)), ("<=", "<="))
        end = self.size_less(i, 0)
        if self.draw.odds(0.4):
            return Joined("and", (Compared((low, index), ("<=",)), Compared((copied(index), end), ("<",))))
        return Compared((low, index, end), ("<=", "<"))

    def _on_one_side(self, i: Var, r: Range, c: int) -> Expr | None:
        """A condition on i by which i + c stays in range."""
        strict = self.draw.odds(0.5)
        if c < 0:
            low = Affine((), r.lower - c - (1 if strict else 0))
            sides, sign = (low, bare(i)), "<" if strict else "<="
        elif r.sort == "bounded":
            high = Affine((), r.lower + r.count - 1 - c + (1 if strict else 0))
            sides, sign = (bare(i), high), "<" if strict else "<="
        elif not r.named:
            return None
        elif self.draw.odds(0.3):
            sides, sign = (Affine(((1, i),), c), self.size_less(i, 0 if strict else 1)), "<" if strict else "<="
        else:
            sides, sign = (bare(i), self.size_less(i, c if strict else c + 1)), "<" if strict else "<="
        return Compared(sides, (sign,)) if self.draw.odds(0.7) else Compared(sides[::-1], (TURNED[sign],))

    def under(self, new: tuple[Var, ...], e: Expr, condition: Expr, inner: Sight) -> Expr | None:
        """`e` under the condition, in one of the ways to write it."""
        if new and self.draw.odds(0.5):
            guarded: Expr = Reduced(self.draw.one(("sum", "sum", "mean", "prod")), new, e, condition)
            return guarded if told(new, (e, condition)) else None
        other = self.leaf(inner, new) if self.draw.odds(0.5) else None
        where: Expr = Where(condition, e, other)
        if other is not None and self.draw.odds(0.4):
            where = Where(Not(condition), other, e)
        return self.summed(new, where) if new else where


def slots_of(t: Var) -> tuple[Range, ...]:
    assert isinstance(t.kind, Tensor), "a tensor"
    return t.kind.slots


def is_counted(r: Range) -> bool:
    """Whether its values are numbers one after another that do not wrap around."""
    return r.sort in ("plain", "bounded")
