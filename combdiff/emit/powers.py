"""Powers as text: `x**2`, and products of squares where a large array is raised to more than that."""

from __future__ import annotations

from collections.abc import Sequence

from combdiff.arrays import ops
from combdiff.arrays.numbers import HIGHEST_OF_INTEGERS, exponent_of, is_integer
from combdiff.arrays.passes.overwriting import LARGE
from combdiff.arrays.plan import Step
from combdiff.emit.texts import ATOM, POWER, PRODUCT, UNARY, Text, Writer


class Powers(Writer):
    """Writes whole powers."""

    def to_the(self, base: Text, n: int, step: Step) -> Text:
        """A power; of a large array, squares and products: what is not a square goes through logarithms elsewhere."""
        if n <= 2 or not self.multiplies(step) or (n & (n - 1) and not base.code.isidentifier()):
            return Text(f"{base.at(ATOM)}**{n}", POWER)
        if n % 2:
            return Text(f"{self.to_the(base, n - 1, step).at(PRODUCT)} * {base.at(UNARY)}", PRODUCT)
        return Text(f"({self.to_the(base, n // 2, step).code})**2", POWER)

    def multiplies(self, step: Step) -> bool:
        """Whether a power above a square is of so many numbers that it is written with products."""
        n = exponent_of(step.operands[1]) if isinstance(step.op, ops.Power) else None
        return n is not None and n.denominator == 1 and abs(n) > 2 and 8 * self.plan.entries(step) >= LARGE

    def inverse(self, operand: Step, at: Sequence[int], rank: int) -> Text | None:
        """x^n, if `operand` is x^(−n) and has no name of its own."""
        if not isinstance(operand.op, ops.Power) or self.refer(operand).level == ATOM:
            return None
        base, exponent = operand.operands
        n = exponent_of(exponent)
        if n is None or n.denominator != 1 or n >= 0:
            return None
        text = self.aligned(base, tuple(at[axis] for axis in operand.op.places[0]), rank)
        return self.whole_power(text, -n.numerator, operand)

    def whole_power(self, base: Text, n: int, step: Step) -> Text:
        """The base of a power, raised to n > 0."""
        if n > HIGHEST_OF_INTEGERS:
            base = self.floating(step.operands[0], base)
        return base if n == 1 else self.to_the(base, n, step)

    def floating(self, step: Step, text: Text) -> Text:
        """A step in floating point, if code would compute it with integers."""
        written = isinstance(step.op, ops.Constant)
        if not is_integer(step) or (written and not text.code.lstrip("-").isdigit()):
            return text
        return Text(f"{text.code}.0", text.level) if written else Text(f"1.0 * {text.at(UNARY)}", PRODUCT)
