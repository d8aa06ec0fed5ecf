"""Pieces of Python: expressions with the brackets that they need, exact numbers, axes aligned by indexing."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Protocol

from combdiff.arrays import ops
from combdiff.arrays.numbers import as_float, is_integer, is_plain, may_be_integer
from combdiff.arrays.plan import Plan, Step
from combdiff.emit.backends.spelling import Spelling
from combdiff.emit.names import Called
from combdiff.language.printing.document import ATOM, PRODUCT, SIGN, SUM, placed, sum_parts
from combdiff.records import dataclass
from combdiff.terms.terms import Const
from combdiff.terms.types import Domain


@dataclass(frozen=True, slots=True)
class Text:
    """An expression and how tightly its outermost operator binds; `terms` are its lines if it is too long."""

    code: str
    level: int
    terms: tuple[str, ...] = ()

    def at(self, level: int) -> str:
        """The text as an operand that must bind at least as tightly as `level`."""
        return placed((self.code, self.level), level)


_SLOT = re.compile(r"(?<=[(,] |.\()\{(\d)\}(?=[,)])|\{(\d)\}")


def filled(template: str, *operands: Text) -> Text:
    """A template of a library, its operands in brackets where they are not whole arguments of a call."""

    def code(slot: re.Match[str]) -> str:
        whole, part = slot.groups()
        return operands[int(whole)].code if whole else operands[int(part)].at(ATOM)

    return Text(_SLOT.sub(code, template), ATOM)


def literal(value: Fraction) -> Text:
    """An exact rational: `3`, `1 / 2`; a float where its digits would be unreadable."""
    if max(abs(value.numerator), value.denominator) >= 10**15:
        return Text(repr(as_float(value)), SIGN if value < 0 else ATOM)
    if value.denominator == 1:
        return Text(str(value), SIGN if value < 0 else ATOM)
    return Text(f"{value.numerator} / {value.denominator}", PRODUCT)


def number_text(c: Const) -> Text:
    """A number: `2`, `1j`, `(1 / 2 - 3j)`."""
    if not c.imag:
        return literal(c.real)
    size = literal(abs(c.imag))
    imaginary = f"{size.code}j" if size.level == ATOM else f"{abs(c.imag).numerator}j / {abs(c.imag).denominator}"
    if not c.real:
        return Text(f"-{imaginary}" if c.imag < 0 else imaginary, SIGN if c.imag < 0 else size.level)
    return Text(f"{literal(c.real).code} {'-' if c.imag < 0 else '+'} {imaginary}", SUM)


def signed(c: Fraction, text: Text) -> tuple[bool, str]:
    """Whether c·text is subtracted, and its size, as a part of `chained`."""
    size = abs(c)
    return c < 0, text.at(PRODUCT) if size == 1 else f"{size} * {text.at(SIGN)}"


def chained(parts: Sequence[tuple[bool, str]]) -> Text:
    """A sum of parts, each with whether it is subtracted."""
    terms = sum_parts(parts)
    alone = len(terms) == 1
    return Text(" ".join(terms), PRODUCT if alone else SUM, () if alone else tuple(terms))


class Extent(Protocol):
    """How many values a domain has, as text; `least` where there are fewer."""

    def __call__(self, domain: Domain, least: int = 0) -> str: ...


class Writer:
    """What all texts of steps need: the operands' texts, the sizes, axes put in their places."""

    def __init__(
        self,
        plan: Plan,
        spelling: Spelling,
        refer: Callable[[Step], Text],
        extent: Extent,
        called: Called,
    ) -> None:
        self.plan = plan
        self.spelling = spelling
        self.refer = refer
        self.extent = extent
        self.called = called
        self.items = called.items

    def atom(self, step: Step) -> str:
        return self.refer(step).at(ATOM)

    def aligned(self, step: Step, places: Sequence[int], rank: int) -> Text:
        """`step` with its axes put at `places` among the `rank` axes of the result."""
        return self.placed(self.refer(step), places, rank, _ends_in_entry(step))

    def placed(self, text: Text, places: Sequence[int], rank: int, ends_in_entry: bool = False) -> Text:
        """An array's text with its axes put at `places`; more axes may follow where it `ends_in_entry`, in X[:, 0]."""
        order = sorted(range(len(places)), key=lambda axis: places[axis])
        text = self.transposed(text, order)
        if not places:
            return text
        marks = [":" if axis in places else "None" for axis in range(min(places), rank)]
        if "None" not in marks:
            return text
        while len(marks) > 1 and marks[-1] == ":":
            marks.pop()
        together = "None" not in marks[: len(places)]
        if together and ends_in_entry and text.code.endswith("]"):
            return Text(f"{text.code[:-1]}, {', '.join(marks[len(places) :])}]", ATOM)
        return Text(f"{text.at(ATOM)}[{', '.join(marks)}]", ATOM)

    def operands(self, step: Step, places: Sequence[Sequence[int]]) -> list[Text]:
        return [self.aligned(o, at, step.rank) for o, at in zip(step.operands, places, strict=True)]

    def transposed(self, text: Text, order: Sequence[int]) -> Text:
        if list(order) == list(range(len(order))):
            return text
        if list(order) == list(range(len(order)))[::-1]:
            template = self.spelling.reverse if len(order) > 2 else "{0}.T"
            if template:
                return filled(template, text)
        return Text(self.spelling.transpose.format(text.at(ATOM), ", ".join(map(str, order))), ATOM)

    def backwards(self, text: Text, axis: int) -> Text:
        """An axis read backwards."""
        if self.spelling.flip:
            return Text(self.spelling.flip.format(text.code, axis), ATOM)
        return Text(f"{text.at(ATOM)}[{', '.join([':'] * axis + ['::-1'])}]", ATOM)

    def shape(self, domains: Sequence[Domain]) -> str:
        return f"({', '.join(map(self.alone, domains))}{',' if len(domains) == 1 else ''})"

    def alone(self, domain: Domain) -> str:
        """How many values a domain has, as an argument: `n + 1`, and not `(n + 1)`."""
        text = self.extent(domain)
        return text[1:-1] if text.startswith("(") else text

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
        return filled(self.spelling.copy, text) if repeated else self.floating(step, text) if is_integer(step) else text

    def state(self, step: Step, text: Text, complex_: bool) -> Text:
        """The first state of a loop: a fresh array, or a number of the library, whose rules for 1/0 hold then."""
        if step.rank or not is_plain(step):
            return self.result(step, text)
        template = self.spelling.number_complex if complex_ else self.spelling.number
        if template == "{0}":
            template = "np.complex128({0})" if complex_ else "np.float64({0})"
        return filled(template, self.floating(step, text))

    def floating(self, step: Step, text: Text) -> Text:
        """A step in floating point, if code may compute it with integers."""
        written = isinstance(step.op, ops.Constant)
        if not may_be_integer(step) or (written and not text.code.lstrip("-").isdigit()):
            return text
        return Text(f"{text.code}.0", text.level) if written else Text(f"1.0 * {text.at(SIGN)}", PRODUCT)


def _ends_in_entry(step: Step) -> bool:
    """Whether `step` is an array with a constant in the last slot."""
    return isinstance(step.op, ops.Pick) and step.op.fixed[-1][0] == step.operands[0].rank - 1
