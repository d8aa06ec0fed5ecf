"""Functions of several numbers, steps, inverses of trigonometric functions, and logarithms of factorials."""

from __future__ import annotations

from fractions import Fraction

from .expressions import ENTIRE, OF_REALS, SINGULAR, Expressions
from .sight import Sight, is_complex
from .syntax import Add, Call, Div, Expr, Literal, Mul, Power, Several, Var, copied

WEIGHTS = {"extreme": 0.25, "clip": 0.1, "atan2": 0.1, "polygamma": 0.04, "arc": 0.15, "gamma": 0.08, "step": 0.1}
ARCS = ("asin", "acos", "acosh", "atanh", "angle")
STEPS = ("floor", "ceil", "round")
GAMMAS = ("lgamma", "digamma")
SINGLE = frozenset({*ARCS, *STEPS, *GAMMAS, *ENTIRE, *OF_REALS, *SINGULAR, "relu"})


class Functions(Expressions):
    """Draws functions that take real numbers, or that few programs use."""

    def of_name(self, name: str, sight: Sight, budget: int, needed: tuple[Var, ...] = ()) -> Expr | None:
        """The function of that name, of something."""
        if name in ARCS:
            return Call(name, self._within_the_domain(name, sight, budget - 1, needed))
        if name in STEPS:
            return Call(name, Mul((Literal(Fraction(self.draw.one((2, 3, 5)))), self.real(sight, budget - 3, needed))))
        if name in GAMMAS:
            e = self.positive(sight, budget - 1, needed)
            return Call(name, e if self.draw.odds(0.9) else self.real(sight, budget - 1, needed))
        if name in ENTIRE or name in OF_REALS:
            return self.entire(name, sight, budget, needed)
        if name in SINGULAR:
            return self.singular(name, sight, budget, needed)
        if name == "relu":
            return Call(name, self.real(sight, budget - 1, needed))
        if name in ("max", "min"):
            return self._extreme(sight, budget, needed, name)
        return {"clip": self._clip, "atan2": self._atan2, "polygamma": self._polygamma}[name](sight, budget, needed)

    def _within_the_domain(self, name: str, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr:
        e = self.number(sight, budget, needed)
        if is_complex(e) or name == "angle":
            return e
        if name == "acosh":
            return Add((Literal(Fraction(3, 2)), Call("abs2", e)))
        if self.draw.odds(0.5):
            return Div(e, Add((Literal(Fraction(1)), Power(copied(e), Literal(Fraction(2))))))
        return Div(Call("sin", e), Literal(Fraction(self.draw.one((2, 3)))))

    def _extreme(self, sight: Sight, budget: int, needed: tuple[Var, ...], name: str = "") -> Expr | None:
        """The largest of two or three numbers, some of them equal now and then."""
        parts = self.draw.split(budget - 1, self.draw.one((2, 2, 3)))
        args = [self.real(sight, b, needed if n == 0 or self.draw.odds(0.5) else ()) for n, b in enumerate(parts)]
        if self.draw.odds(0.3):
            args[-1] = Literal(Fraction(self.draw.one((0, 0, 1, 1, 2))))
        elif self.draw.odds(0.1):
            args[-1] = copied(args[0])
        self.draw.rng.shuffle(args)
        return Several(name or self.draw.one(("max", "min")), tuple(args))

    def _clip(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        x = self.real(sight, budget - 3, needed)
        ends: list[Expr] = [Literal(Fraction(n)) for n in self.draw.one(((-1, 1), (0, 1), (0, 2), (-2, 1)))]
        for n in range(2):
            if self.draw.odds(0.3):
                ends[n] = self.real(sight, min(4, budget - 2))
        return Several("clip", (x, *ends))

    def _atan2(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        a, b = self.draw.split(budget - 1, 2)
        return Several("atan2", (self.real(sight, a, needed), self.real(sight, b)))

    def _polygamma(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        order = Literal(Fraction(self.draw.one((0, 1, 1, 2, 3))))
        return Several("polygamma", (order, self.positive(sight, budget - 2, needed)))

    def _arc(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        return self.of_name(self.draw.one(ARCS), sight, budget, needed)

    def _gamma(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        return self.of_name(self.draw.one(GAMMAS), sight, budget, needed)

    def _step(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        e = self.of_name(self.draw.one(STEPS), sight, budget, needed)
        # a step alone has no derivative
        return e and Mul((e, self.leaf(sight, needed)))
