"""The form of a tensor that reads best, taken from a frozen e-graph of `rules/nest.egg`.

A form is measured by the names it is written with (`cost.py`). Two things no reader wants are ruled out: a sum in
parentheses that has more indices than any entry in it, and one in front of which only some of the terms were taken,
unless it is a sum of plain entries. What all terms of a sum share stands in front of it; what some share, only of
entries.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Literal

from combdiff.simplify.forms.cost import PARENTHESES

if TYPE_CHECKING:
    from egglog.bindings import EGraph

Number = tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a product or a factor costs: its names, the most indices of an entry, whether it is an entry."""

    words: float
    rank: int
    entry: bool


@dataclass(frozen=True, slots=True)
class Form:
    """A tensor: `flat` (number), `with` (number; cofactor), `scaled` (by; tensor), `sum` (scaled ones)."""

    kind: Literal["flat", "with", "scaled", "sum"]
    number: int
    by: Number
    parts: tuple[Form, ...]
    cost: float
    rank: int

    @property
    def first(self) -> int:
        """The least number of a product in it."""
        return self.number if self.kind == "flat" else min(p.first for p in self.parts)

    @property
    def collected(self) -> Form | None:
        """The sum that its factors stand in front of."""
        form = self
        while form.kind in ("with", "scaled"):
            form = form.parts[0]
        return form if form.kind == "sum" and form is not self else None

    @property
    def is_collection(self) -> bool:
        """Whether something was taken out of a sum anywhere in it."""
        return self.collected is not None or any(p.is_collection for p in self.parts)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What the numbers of the e-graph stand for: products, factors, and how many slots the cofactor of a factor has."""

    products: Sequence[Reading]
    factors: Sequence[Reading]
    cofactor_slots: Sequence[int]

    def flat(self, n: int) -> Form:
        """The form of product n."""
        return Form("flat", n, _ONE, (), self.products[n].words, self.products[n].rank)

    def with_factor(self, n: int, cofactor: Form) -> Form:
        """Factor n in front of a cofactor."""
        inner = _bare(cofactor)
        cost = self.factors[n].words + cofactor.cost
        if inner.kind == "sum":
            cost += PARENTHESES if self.cofactor_slots[n] <= inner.rank else inf
        return Form("with", n, _ONE, (cofactor,), cost, max(self.factors[n].rank, cofactor.rank))

    def sum(self, parts: Sequence[Form]) -> Form:
        """A sum of scaled forms, in the order of the products in them."""
        parts = sorted(parts, key=lambda p: p.first)
        cost = sum(p.cost for p in parts)
        if len(parts) > 1 and not all(self._is_plain(p) for p in parts):
            cost = inf
        return Form("sum", 0, _ONE, tuple(parts), cost, max(p.rank for p in parts))

    def _is_plain(self, part: Form) -> bool:
        inner = part.collected
        return inner is None or all(self._is_entry(_bare(p)) for p in inner.parts)

    def _is_entry(self, form: Form) -> bool:
        return form.kind == "flat" and self.products[form.number].entry


_ONE: Number = (Fraction(1), Fraction(0))


def _bare(form: Form) -> Form:
    while form.kind == "scaled":
        form = form.parts[0]
    return form


def scaled(by: Number, form: Form) -> Form:
    """A form times a number."""
    if by == _ONE:
        return form
    return Form("scaled", 0, by, (form,), form.cost, form.rank)


def best_form(egraph: EGraph, root: str, vocabulary: Vocabulary) -> Form | None:
    """The best form of the tensor called `root`; ties go to the first one, in the order of the numbers."""
    nodes = _nodes(egraph, vocabulary)
    best: dict[Hashable, Form] = {}
    changed = True
    while changed:
        changed = False
        for name, below, make in nodes:
            if all(b in best for b in below):
                form = make([best[b] for b in below])
                if form.cost < inf and (name not in best or form.cost < best[name].cost - 1e-9):
                    best[name] = form
                    changed = True
    (called,) = egraph.freeze().functions[root].rows
    return best.get(called.output)


Make = Callable[[list[Form]], Form]


def _nodes(egraph: EGraph, vocabulary: Vocabulary) -> list[tuple[Hashable, list[Hashable], Make]]:
    """The nodes of the e-graph: their class, the classes below, and what makes a form of forms of these."""
    found: list[tuple[tuple[int, ...], Hashable, list[Hashable], Make]] = []
    for name, function in egraph.freeze().functions.items():
        for row in function.rows:
            below: list[Hashable] = []
            order: tuple[int, ...]
            make: Make
            match name:
                case "Flat":
                    n = egraph.value_to_i64(row.inputs[0])
                    order, make = (0, n), partial(_flat, vocabulary, n)
                case "With":
                    n = egraph.value_to_i64(row.inputs[0])
                    order, below, make = (1, n), [row.inputs[1]], partial(_with_factor, vocabulary, n)
                case "Scaled" | "Of":
                    a, b = map(egraph.value_to_bigrat, row.inputs[:2])
                    order, below, make = (2,), [row.inputs[2]], partial(_scaled, (a, b))
                case "Combination":
                    order, below, make = (3,), [*egraph.value_to_multiset(row.inputs[0])], vocabulary.sum
                case _:
                    continue
            found.append((order, row.output, below, make))
    found.sort(key=lambda node: node[0])
    return [(output, below, make) for _, output, below, make in found]


def _flat(vocabulary: Vocabulary, n: int, _: list[Form]) -> Form:
    return vocabulary.flat(n)


def _with_factor(vocabulary: Vocabulary, n: int, below: list[Form]) -> Form:
    return vocabulary.with_factor(n, below[0])


def _scaled(by: Number, below: list[Form]) -> Form:
    return scaled(by, below[0])
