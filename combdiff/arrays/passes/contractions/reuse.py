"""Contractions that are made already: Σ over the same factors, whatever its indices are called.

Two contractions are one up to the names of their indices, the order of their factors, complex conjugation of all of
them, and the declared symmetries of arguments: V(b, p, n, k) = Σ_q M(p, q, k, b) U(q, n, k + b), made for a value, is
found in the gradient.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby, permutations, product
from math import prod
from operator import attrgetter, itemgetter

from combdiff.arrays import ops
from combdiff.arrays.layouts import images
from combdiff.arrays.lower.arrays import Arrays, Labels, Value, base
from combdiff.arrays.passes.contractions.orders import Factors
from combdiff.arrays.plan import Step
from combdiff.records import dataclass
from combdiff.terms.terms import MINUS_ONE, Var

_MOST = 512  # spellings of one contraction that are compared

Key = tuple[tuple[tuple[int, bool, tuple[int, ...]], ...], tuple[int, ...]]


Outline = tuple[tuple[int, tuple[tuple[bool, int], ...]], ...]
"""Of each factor its number, and of each of its indices whether it is free and how often it occurs, in any order."""


@dataclass(frozen=True, slots=True)
class Form:
    """A contraction as sign · K(`labels`) or its conjugate, where `key` says what K is."""

    key: Key
    labels: Labels
    sign: int = 1
    conj: bool = False


@dataclass(frozen=True, slots=True)
class _Reading:
    """A factor as sign · step(`labels`) or its conjugate; `number` stands for the step."""

    number: int
    complex: bool
    labels: Labels
    sign: int
    conj: bool


class KnownContractions:
    """The contractions of one lowering so far."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self._numbers: dict[Step, int] = {}
        self._by_outline: dict[Outline, list[tuple[Factors, int, Value]]] = {}
        self._members: set[tuple[int, ...]] = set()
        self._forms: dict[tuple[Factors, int], Form] = {}

    def add(self, factors: Factors, group: int, value: Value) -> None:
        """Note that `value` is the contraction of a set of factors."""
        if set(value.labels) == factors.free(group):
            self._by_outline.setdefault(self._outline(factors, group), []).append((factors, group, value))
            self._members.add(self.step_numbers(factors.members(group)))

    def among(self, factors: Factors) -> dict[int, Value]:
        """The sets of two and more factors whose contraction is made already."""
        found = {}
        for group in self._with_known_factors(factors):
            alike = self._by_outline.get(self._outline(factors, group), ())
            values = (self._recalled(factors, group, *other) for other in alike)
            value = next((v for v in values if v is not None), None)
            if value is not None:
                found[group] = value
        return found

    def _with_known_factors(self, factors: Factors) -> Iterator[int]:
        """The sets of two and more factors of which some contraction is made: most sets are of others."""
        numbers = [self._number(base(v.step)) for v in factors.values]
        there = {*numbers}
        counts = {len(members) for members in self._members if there.issuperset(members)}
        for group in range(1, factors.all + 1 if counts else 0):
            if group & (group - 1) and group.bit_count() in counts:
                members = tuple(sorted([number for n, number in enumerate(numbers) if group >> n & 1]))
                if members in self._members:
                    yield group

    def _recalled(self, factors: Factors, group: int, others: Factors, other: int, value: Value) -> Value | None:
        """A contraction as the other one, if they are one."""
        form, known = self.form(factors, group), self.form(others, other)
        if form.key != known.key:
            return None
        called = dict(zip(known.labels, form.labels, strict=True))
        value = Value(value.step, tuple(called[x] for x in value.labels))
        value = self.arrays.conj(value) if known.conj != form.conj else value
        return value if known.sign == form.sign else self.arrays.product(MINUS_ONE, [value])

    # --- one form for all spellings ---------------------------------------------------------------------------------

    def form(self, factors: Factors, group: int) -> Form:
        """The same key for all contractions that are one."""
        if (factors, group) not in self._forms:
            self._forms[factors, group] = self._least_form(factors, group)
        return self._forms[factors, group]

    def _least_form(self, factors: Factors, group: int) -> Form:
        free = factors.free(group)
        readings = [self._readings(v) for v in factors.members(group)]
        if prod(map(len, readings)) > _MOST:
            readings = [row[:1] for row in readings]
        spelt = ((*_spelt(row, free), row) for row in _spellings(readings))
        key, turned, row = min(spelt, key=itemgetter(0))
        labels = tuple(x for x in dict.fromkeys(x for r in row for x in r.labels) if x in free)
        return Form(key, labels, prod(r.sign for r in row), turned)

    def _readings(self, v: Value) -> list[_Reading]:
        step = base(v.step)
        number = self._number(step)
        return [
            _Reading(number, step.complex, i.labels, i.sign, step.complex and i.conj != isinstance(v.step.op, ops.Conj))
            for i in images(v.labels, self.arrays.symmetries.get(step))
        ]

    def _number(self, step: Step) -> int:
        return self._numbers.setdefault(step, len(self._numbers))

    def _outline(self, factors: Factors, group: int) -> Outline:
        """What contractions that are one have in common, found without looking at their spellings."""
        members, free = factors.members(group), factors.free(group)
        often = Counter(x for v in members for x in v.labels)
        rows = ((v, tuple(sorted((x in free, often[x]) for x in v.labels))) for v in members)
        return tuple(sorted((self._number(base(v.step)), row) for v, row in rows))

    def step_numbers(self, values: Collection[Value]) -> tuple[int, ...]:
        """What contractions that are one have in common at least: their factors, conjugated or not."""
        return tuple(sorted([self._number(base(v.step)) for v in values]))


def _spellings(readings: Sequence[Sequence[_Reading]]) -> Iterator[tuple[_Reading, ...]]:
    """The factors in the order of their steps, equal ones in every order."""
    count = 0
    for choice in product(*readings):
        ordered = sorted(choice, key=attrgetter("number"))
        if len({r.number for r in ordered}) == len(ordered):
            yield tuple(ordered)
            continue
        ties = [list(permutations(tie)) for _, tie in groupby(ordered, key=attrgetter("number"))]
        for parts in product(*ties):
            yield tuple(r for part in parts for r in part)
            count += 1
            if count == _MOST:
                return


def _spelt(row: Sequence[_Reading], free: Collection[Var]) -> tuple[Key, bool]:
    """The key by one spelling: its indices numbered as they come; the first complex factor is not conjugated."""
    numbers: dict[Var, int] = {}
    turned: bool | None = None
    rows = []
    for r in row:
        if turned is None and r.complex:
            turned = r.conj
        places = tuple([numbers.setdefault(x, len(numbers)) for x in r.labels])
        rows.append((r.number, r.conj != bool(turned) if r.complex else False, places))
    return (tuple(rows), tuple([n for x, n in numbers.items() if x in free])), bool(turned)
