"""Steps as rows, one for each value of an index: what is taken from an array, weighted, and added at other places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from combdiff.arrays import ops
from combdiff.arrays.plan import Step
from combdiff.terms.terms import ONE, Const, times
from combdiff.terms.types import Domain

NEW = 1 << 20
"""A label that no step has."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A step with a label for each of its axes."""

    step: Step
    labels: ops.Row

    def domain(self, label: int) -> Domain:
        """What the axis with a label ranges over."""
        return self.step.domains[self.labels.index(label)]


@dataclass(frozen=True, slots=True)
class Weighted:
    """coefficient · Π weights · core, where the weights are numbers or have one axis, each with its labels."""

    coefficient: Const
    weights: tuple[Labelled, ...]
    core: Labelled

    def along(self, label: int) -> bool:
        """Whether all weights are numbers, or one for each value of this index."""
        return all(w.labels in ((), (label,)) for w in self.weights)

    def before(self, values: Labelled, index: int) -> Weighted:
        """The weights with those of other values, whose weights they then stand before."""
        inner = weighted(values.step, values.labels)
        inner = inner if inner.along(index) else Weighted(ONE, (), values)
        return Weighted(times(self.coefficient, inner.coefficient), (*self.weights, *inner.weights), inner.core)

    def times(self, core: Labelled) -> Labelled:
        """coefficient · Π weights · another core, over its axes."""
        if self.coefficient == ONE and not self.weights:
            return core
        factors = (*self.weights, core)
        places = tuple(tuple(core.labels.index(label) for label in f.labels) for f in factors)
        complex = bool(self.coefficient.imag) or any(f.step.complex for f in factors)
        op = ops.Mul(self.coefficient, places=places)
        return Labelled(Step(op, tuple(f.step for f in factors), core.step.domains, complex), core.labels)


@dataclass(frozen=True, slots=True)
class Taken:
    """Weighted rows of an array, the row places[e] for each e: `rows` has `label` where the core has `index`."""

    weighted: Weighted
    rows: Labelled
    places: Step
    index: int
    label: int = NEW

    def over(self, product: Labelled) -> Labelled:
        """The weighted rows that are taken from what a product has made of the array, with `index` again."""
        at = tuple((0,) if label == self.label else None for label in product.labels)
        labels = tuple(self.index if label == self.label else label for label in product.labels)
        range_of = {self.label: self.places.domains[0]}
        domains = tuple(range_of.get(v, d) for v, d in zip(product.labels, product.step.domains, strict=True))
        step = Step(ops.Gather(at, 1), (product.step, self.places), domains, product.step.complex)
        return self.weighted.times(Labelled(step, labels))


def weighted(step: Step, labels: ops.Row) -> Weighted:
    """A step as a product of weights with what has all of its axes."""
    match step.op:
        case ops.Mul(coefficient, places=places):
            factors = [
                Labelled(o, tuple(labels[axis] for axis in at)) for o, at in zip(step.operands, places, strict=True)
            ]
            whole = [f for f in factors if f.step.rank == step.rank]
            rest = [f for f in factors if f.step.rank < step.rank]
            if step.rank > 1 and len(whole) == 1 and all(f.step.rank <= 1 for f in rest):
                return Weighted(coefficient, tuple(rest), whole[0])
    return Weighted(ONE, (), Labelled(step, labels))


def taken(step: Step, labels: ops.Row) -> Taken | None:
    """A step as rows that are taken at the places of one array of integers, if it is that."""
    found = weighted(step, labels)
    core = found.core
    match core.step.op:
        case ops.Gather(slots, 1) if len(core.step.operands) == 2 and core.step.operands[1].rank == 1:
            axis = next(n for n, slot in enumerate(slots) if slot is not None)
            index = core.labels[axis]
            if not found.along(index):
                return None
            array, places = core.step.operands
            rows = Labelled(array, tuple(NEW if n == axis else label for n, label in enumerate(core.labels)))
            return Taken(found, rows, places, index)
        case _:
            return None


def added(values: Weighted, index: int, places: Step, domain: Domain) -> Labelled:
    """The rows of `values`, one for each value of `index`, added up at places in an axis with the label `NEW`.

    Weights are multiplied in before, whatever the order of axes was, so that equal sums are equal steps.
    """
    summed = values.times(values.core)
    rest = tuple(label for label in summed.labels if label != index)
    at = tuple(0 if label == index else 1 + rest.index(label) for label in summed.labels)
    op = ops.Scatter(at, ((0,),), 1, True)
    domains = (domain, *(summed.domain(label) for label in rest))
    return Labelled(Step(op, (summed.step, places), domains, summed.step.complex), (NEW, *rest))


def product(a: Labelled, b: Labelled, out: Sequence[int]) -> Labelled:
    """Σ over the labels that are not in `out` of a product, with axes in that order."""
    over = [label for label in a.labels if label in b.labels]
    left, right = (tuple(f.labels.index(label) for label in over) for f in (a, b))
    labels = tuple(label for f in (a, b) for label in f.labels if label not in over)
    domains = {label: f.domain(label) for f in (a, b) for label in f.labels}
    complex = a.step.complex or b.step.complex
    step = Step(ops.Tensordot(left, right), (a.step, b.step), tuple(domains[v] for v in labels), complex)
    if labels != tuple(out):
        order = tuple(labels.index(label) for label in out)
        step = Step(ops.Permute(order), (step,), tuple(domains[v] for v in out), complex)
    return Labelled(step, tuple(out))
