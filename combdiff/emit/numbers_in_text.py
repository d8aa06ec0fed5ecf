"""Python's numbers where arrays and results of floating point stand: `np.float64(n**3)`, `np.full((n,), 2.0)`."""

from __future__ import annotations

from combdiff.arrays import ops
from combdiff.arrays.numbers import is_integer, is_plain
from combdiff.arrays.plan import Step
from combdiff.emit.texts import ATOM, Text, Writer, filled


class NumbersInText(Writer):
    """Writes what the library makes of numbers."""

    def as_array(self, step: Step, text: Text) -> Text:
        """`text` where an array must stand: numbers of Python are made one."""
        template = self.spelling.number_complex if step.complex else self.spelling.number
        if self.spelling.whole and step.operands and is_integer(step):
            template = self.spelling.whole
        return filled(template, text) if is_plain(step) and template != "{0}" else text

    def result(self, step: Step, text: Text) -> Text:
        """What is returned for a step: a fresh array in floating point."""
        repeated = isinstance(step.op, ops.Broadcast)
        operand = step.operands[0] if repeated else step
        if not is_plain(operand):
            return filled(self.spelling.copy, text) if repeated else text
        if repeated and self.spelling.full:
            number = self.floating(operand, self.refer(operand)).code
            return Text(self.spelling.full.format(self.shape(step.domains), number), ATOM)
        return filled(self.spelling.copy, text) if repeated else self.floating(step, text)

    def floating(self, step: Step, text: Text) -> Text:
        """A number of Python in floating point, for an integer would make an array of integers."""
        written = isinstance(step.op, ops.Constant)
        if not is_integer(step) or (written and not text.code.lstrip("-").isdigit()):
            return text
        return Text(f"{text.code}.0", text.level) if written else Text(f"float({text.code})", ATOM)
