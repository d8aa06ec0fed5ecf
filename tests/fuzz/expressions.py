"""Numbers: sums, products, powers, functions, comparisons, drawn within a budget of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

from .kinds import Index, Number, Range
from .leaves import Leaves
from .naming import anchored
from .sight import LARGEST_LOOP, Draw, Sight, is_complex
from .syntax import Add, Call, Conj, Div, Expr, Literal, Mul, Neg, Power, Ref, Size, Sum, Var, copied
from .walks import free

WEIGHTS = {
    "leaf": 1.0,
    "add": 2.0,
    "mul": 2.2,
    "sum": 2.0,
    "div": 0.6,
    "neg": 0.3,
    "power": 1.0,
    "fraction": 0.35,
    "exponent": 0.2,
    "entire": 0.9,
    "singular": 0.5,
    "parts": 0.7,
    "kinks": 0.35,
    "delta": 0.3,
    "indicator": 0.3,
    "compared": 0.2,
    "mean": 0.35,
    "centred": 0.2,
    "guard": 0.15,
    "constant": 0.3,
    "imaginary": 0.15,
    "index": 0.12,
    "count": 0.05,
}
ENTIRE = ("sin", "cos", "tanh", "exp", "atan", "sinh", "cosh", "tan", "expm1")
OF_REALS = ("atan", "erf", "erfc", "asinh", "sigmoid", "softplus")
SINGULAR = ("log", "log", "log", "sqrt", "sqrt", "sqrt", "log1p", "log2", "log10")


class Expressions(Leaves):
    """Draws numbers."""

    weights: ClassVar[dict[str, float]] = WEIGHTS

    def __init__(self, draw: Draw) -> None:
        super().__init__(draw)

    def number(self, sight: Sight, budget: int, needed: tuple[Var, ...] = ()) -> Expr:
        """A number, complex if what is in sight is; `needed` are indices that ought to stand in it."""
        if budget <= 2:
            return self.leaf(sight, needed)
        for _ in range(4):
            choice = self.draw.weighted(self.weights)
            if found := getattr(self, f"_{choice}")(sight, budget, needed):
                result: Expr = found
                return result
        return self.leaf(sight, needed)

    def real(self, sight: Sight, budget: int, needed: tuple[Var, ...] = ()) -> Expr:
        """A real number."""
        plain = sight.real()
        if (plain.tensors or plain.numbers) and self.draw.odds(0.7):
            e = self.number(plain, budget, needed)
            return Call(self.draw.one(("real", "imag", "abs2")), e) if is_complex(e) else e
        e = self.number(sight, max(1, budget - 1), needed)
        return Call(self.draw.one(("real", "imag", "abs2", "abs")), e) if is_complex(e) else e

    def positive(self, sight: Sight, budget: int, needed: tuple[Var, ...] = ()) -> Expr:
        """A real number above 0."""
        ready = [t for t in sight.tensors if t.positive and self._fits(t, sight)]
        numbers = [v for v in sight.numbers if v.positive]
        if ready and self.draw.odds(0.75):
            return self.entry(self.draw.one(ready), sight, needed)
        if numbers and self.draw.odds(0.7):
            return Ref(self.draw.one(numbers))
        e = self.number(sight, max(1, budget - 3), needed)
        square: Expr = Call("abs2", e) if is_complex(e) or self.draw.odds(0.2) else Power(e, Literal(Fraction(2)))
        roll = self.draw.rng.random()
        if roll < 0.15:
            return Call("exp", self.bounded(e if not is_complex(e) else Call("real", e)))
        if roll < 0.3:
            return Add((Call("abs", e), Literal(Fraction(1, 2))))
        return Add((Literal(Fraction(self.draw.one((1, 1, 2, 3)))), square))

    def bounded(self, e: Expr) -> Expr:
        """A number that does not grow: an argument of what grows fast."""
        roll = self.draw.rng.random()
        if roll < 0.3:
            return (
                Call("sin" if not is_complex(e) else "tanh", e) if not is_complex(e) else Div(e, Literal(Fraction(4)))
            )
        if roll < 0.7:
            return Div(e, Literal(Fraction(self.draw.one((2, 4, 5)))))
        return Mul((Literal(Fraction(1, self.draw.one((2, 3, 4)))), e))

    # --- constructs: each draws one, or None if it cannot stand here ------------------------------------------------

    def _leaf(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        return self.leaf(sight, needed)

    def _add(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        parts = self.draw.split(budget - 1, self.draw.one((2, 2, 2, 3)))
        terms = [self.number(sight, b, needed if n == 0 or self.draw.odds(0.6) else ()) for n, b in enumerate(parts)]
        return Add(tuple(Neg(t) if n and self.draw.odds(0.4) else t for n, t in enumerate(terms)))

    def _mul(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        parts = self.draw.split(budget - 1, self.draw.one((2, 2, 2, 3)))
        return Mul(
            tuple(self.number(sight, b, needed if n == 0 or self.draw.odds(0.4) else ()) for n, b in enumerate(parts))
        )

    def _neg(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        return Neg(self.number(sight, budget - 1, needed))

    def _div(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        top, below = self.draw.split(budget - 1, 2)
        e = self.positive(sight, below) if self.draw.odds(0.7) else self.constant()
        if self.draw.odds(0.2):
            e = Power(e, Literal(Fraction(self.draw.one((2, 3)))))
        return Div(self.number(sight, top, needed), e)

    def _constant(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        return Mul((self.constant(), self.number(sight, budget - 2, needed)))

    def _imaginary(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        e = Mul((self.imaginary(), self.number(sight, budget - 2, needed)))
        return e if not free(e).isdisjoint({*sight.numbers, *sight.tensors}) else None

    def _index(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        if not sight.indices:
            return None
        return Mul((self.index_number(sight), self.number(sight, budget - 2, needed)))

    # sums

    def _new_index(self, sight: Sight) -> Var | None:
        ranges = [r for r in sight.ranges() if sight.loop * r.count <= LARGEST_LOOP]
        return Var(Index(self.draw.one(ranges))) if ranges else None

    def _sum(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        if sight.depth > 4:
            return None
        indices: list[Var] = []
        inner = sight
        for _ in range(self.draw.one((1, 1, 1, 2, 2, 3))):
            i = self._new_index(inner)
            if i is None:
                break
            indices.append(i)
            inner = inner.within([i])
        if not indices:
            return None
        wanted = (*indices, *needed)
        body = self.number(inner, budget - 1 - len(indices), wanted)
        missing = [i for i in indices if i not in free(body) and not self.draw.odds(0.05)]
        while missing:
            factor = self.leaf(inner, tuple(missing))
            mentioned = free(factor)
            still = [i for i in missing if i not in mentioned]
            if len(still) == len(missing):
                break
            body, missing = Mul((factor, body)), still
        return self.summed(tuple(indices), body)

    def summed(self, indices: tuple[Var, ...], body: Expr) -> Expr | None:
        """The sum, if it can be told how far its indices range."""
        return Sum(indices, body) if told(indices, (body,)) else None

    def counted(self, r: Range) -> Expr:
        """The size of a range by its name, or Σ 1."""
        i = Var(Index(r))
        return Size(i) if self.draw.odds(0.5) else Sum((i,), Literal(Fraction(1)))

    def _count(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        ranges = [r for r in sight.ranges() if r.declared or r.named]
        if not ranges:
            return None
        return Mul((self.counted(self.draw.one(ranges)), self.number(sight, budget - 3, needed)))

    def _mean(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        i = self._new_index(sight)
        if i is None:
            return None
        assert isinstance(i.kind, Index), "an index"
        r = i.kind.range
        if not (r.declared or r.named):
            return None
        total = self.summed((i,), self.number(sight.within([i]), budget - 4, (i, *needed)))
        return total and Div(total, self.counted(r))

    def _centred(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        """A sum or a mean of what entries are beside a mean or a total of all: moments, shares, weights."""
        ranges = [r for r in sight.ranges() if (r.declared or r.named) and sight.loop * r.count**2 <= LARGEST_LOOP]
        if not ranges:
            return None
        r = self.draw.one(ranges)
        i, j = Var(Index(r)), Var(Index(r))
        entry = self.leaf(sight.within([i]), (i,))
        if i not in free(entry):
            return None
        other = copied(entry, {i: j})
        beside = self._reduced(j, other, sight, r)
        e: Expr = Add((entry, Neg(beside)))
        if self.draw.odds(0.3):
            e = Div(entry, Add((Literal(Fraction(1)), Call("abs2", beside))))
        each = self._of_deviation(e)
        if self.draw.odds(0.3):
            each = Mul((each, self.leaf(sight.within([i]), (i,))))
        total: Expr = Sum((i,), each)
        return Div(total, self.counted(r)) if self.draw.odds(0.6) else total

    def _reduced(self, j: Var, e: Expr, sight: Sight, r: Range) -> Expr:
        """A mean, a weighted mean, a total."""
        roll = self.draw.rng.random()
        if roll < 0.5:
            return Div(Sum((j,), e), self.counted(r))
        if roll < 0.75:
            weight = self.leaf(sight.within([j]), (j,))
            return Div(Sum((j,), Mul((weight, e))), self.counted(r))
        return Sum((j,), e)

    def _of_deviation(self, e: Expr) -> Expr:
        """A function of a deviation."""
        match self.draw.rng.randrange(7):
            case 0:
                return Call("abs", e)
            case 1:
                return Call("sqrt", Add((Literal(Fraction(1)), Call("abs2", e))))
            case 2:
                return Call(self.draw.one(("sin", "tanh")), e) if not is_complex(e) else Call("real", e)
            case 3:
                return e
        return Power(e, Literal(Fraction(self.draw.one((2, 3, 3, 4, 4)))))

    # powers and functions

    def _power(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        n = self.draw.one((2, 2, 2, 3, 3, 4, -1, -2, 5, -3, 1, 0))
        if n < 0:
            return Power(self.positive(sight, budget - 2, needed), Literal(Fraction(n)))
        return Power(self.number(sight, budget - 2, needed), Literal(Fraction(n)))

    def _fraction(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        p = self.draw.one((1, 2, 3, 4, 5, 5, 7, 7, 8, 8, -1, -2, -3, -5, -8))
        q = self.draw.one((2, 2, 3, 4)) if p % 2 else 3
        # bare numbers are of any size, as those in 1 + x² are not
        plain = [
            *(v for v in sight.numbers if v.positive),
            *(t for t in sight.tensors if t.positive and self._fits(t, sight)),
        ]
        if plain and self.draw.odds(0.8):
            v = self.draw.one(plain)
            base = Ref(v) if isinstance(v.kind, Number) else self.entry(v, sight, needed)
        else:
            base = self.positive(sight, budget - 2, needed)
        result: Expr = Power(base, Literal(Fraction(p, q)))
        match self.draw.rng.randrange(8):
            case 0 | 1 | 5 | 6 | 7:
                return Div(self.number(sight, min(4, budget), needed), result)
            case 2:
                return Mul((Call("log", result), Power(copied(base), Literal(Fraction(p + q, q)))))
            case 3:
                return Mul((Power(copied(base), Literal(Fraction(self.draw.one((1, 2, -1, 3))))), result))
        return result

    def _exponent(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        below, above = self.draw.split(budget - 1, 2)
        base = self.positive(sight, below, needed)
        return Power(base, self.bounded(self.real(sight, min(above, 4))))

    def _entire(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        return self.entire(self.draw.one(ENTIRE + OF_REALS), sight, budget, needed)

    def entire(self, name: str, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr:
        """That function, which is finite for all numbers, of something where it is not huge."""
        e = self.number(sight, budget - 3, needed)
        if name in ("exp", "sinh", "cosh", "tan", "expm1") or (is_complex(e) and name != "exp"):
            e = self.bounded(e)
        if name in OF_REALS and is_complex(e):
            e = self.real(sight, budget - 3, needed)
        return Call(name, e, self.draw.odds(0.1))

    def _singular(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        return self.singular(self.draw.one(SINGULAR), sight, budget, needed)

    def singular(self, name: str, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr:
        """That logarithm or root, of something positive if it is real, or of any number."""
        e = self.positive(sight, budget - 1, needed) if self.draw.odds(0.8) else self.number(sight, budget - 1, needed)
        if not is_complex(e) and self.draw.odds(0.2):
            e = Call("complex", e)
        return Call(name, e, self.draw.odds(0.1))

    def _parts(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        e = self.number(sight, budget - 1, needed)
        if not is_complex(e) and self.draw.odds(0.7):
            return None
        if self.draw.odds(0.45):
            return Conj(e)
        return Call(self.draw.one(("real", "imag", "abs2", "abs2")), e, self.draw.odds(0.15))

    def _kinks(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        e = self.number(sight, budget - 1, needed)
        if is_complex(e) and self.draw.odds(0.7):
            e = Call(self.draw.one(("real", "imag")), e)
        name = self.draw.one(
            ("abs", "sign", "abs", "sign") if is_complex(e) else ("abs", "sign", "abs", "sign", "relu")
        )
        result: Expr = Call(name, e)
        roll = self.draw.rng.random()
        if roll < 0.15:
            return Power(result, Literal(Fraction(self.draw.one((2, 3)))))
        if roll < 0.4:
            return Mul((result, Power(copied(e), Literal(Fraction(self.draw.one((1, 2, 3)))))))
        return result


def told(indices: Sequence[Var], parts: Sequence[Expr]) -> bool:
    """Whether it can be told how far each of the indices ranges, by its type or by a slot in one of the parts."""
    for i in indices:
        assert isinstance(i.kind, Index), "an index"
        r = i.kind.range
        if not (r.declared or r.named or anchored(i, parts)):
            return False
    return True
