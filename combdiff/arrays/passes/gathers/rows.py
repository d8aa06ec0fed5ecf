"""Steps as rows, one for each value of some indices: what is taken from an array, weighted, and added at places."""

from __future__ import annotations

from collections.abc import Sequence

from combdiff.arrays import ops
from combdiff.arrays.plan import Step
from combdiff.records import dataclass
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
    """coefficient · Π weights · core, where the weights have fewer axes, each with its labels."""

    coefficient: Const
    weights: tuple[Labelled, ...]
    core: Labelled

    def along(self, indices: ops.Row) -> bool:
        """Whether all weights are numbers for values of these indices, or of some of them."""
        return all(set(w.labels) <= {*indices} for w in self.weights)

    def before(self, values: Labelled, indices: ops.Row) -> Weighted:
        """The weights with those of other values, whose weights they then stand before."""
        inner = weighted(values.step, values.labels)
        inner = inner if inner.along(indices) else Weighted(ONE, (), values)
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
    """Weighted rows of an array, the row places[e] for each e: `rows` has `label` where the core has `indices`."""

    weighted: Weighted
    rows: Labelled
    places: Step
    indices: ops.Row
    label: int = NEW

    def over(self, product: Labelled) -> Labelled:
        """The weighted rows that are taken from what a product has made of the array, with `indices` again."""
        rank, n = len(self.indices), product.labels.index(self.label)
        at = tuple(tuple(range(rank)) if label == self.label else None for label in product.labels)
        labels = (*product.labels[:n], *self.indices, *product.labels[n + 1 :])
        domains = (*product.step.domains[:n], *self.places.domains, *product.step.domains[n + 1 :])
        step = Step(ops.Gather(at, rank), (product.step, self.places), domains, product.step.complex)
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
            if step.rank > 1 and len(whole) == 1:
                return Weighted(coefficient, tuple(rest), whole[0])
    return Weighted(ONE, (), Labelled(step, labels))


def taken(step: Step, labels: ops.Row) -> Taken | None:
    """A step as rows that are taken at the places of one array of integers, if it is that."""
    found = weighted(step, labels)
    core = found.core
    match core.step.op:
        case ops.Gather(slots, rank) as op if len(core.step.operands) == 2:
            array, places = core.step.operands
            (axis,) = op.gathered
            indices = core.labels[axis : axis + rank]
            if slots[axis] != tuple(range(rank)) or not found.along(indices):
                return None
            rows = Labelled(array, (*core.labels[:axis], NEW, *core.labels[axis + rank :]))
            return Taken(found, rows, places, indices)
        case _:
            return None


def added(values: Weighted, indices: ops.Row, places: Step, domain: Domain) -> Labelled:
    """The rows of `values`, one for each value of `indices`, added up at places in an axis with the label `NEW`.

    Weights are multiplied in before, whatever the order of axes was, so that equal sums are equal steps.
    """
    summed = values.times(values.core)
    rest = tuple(label for label in summed.labels if label not in indices)
    at = tuple((*indices, *rest).index(label) for label in summed.labels)
    op = ops.Scatter(at, (tuple(range(len(indices))),), len(indices), True)
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
