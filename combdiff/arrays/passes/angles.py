"""Sums with cosines and sines of sums of angles become sums with those of each angle, by the addition theorems.

    np.cos(t[:, None] - t) @ v          np.cos(t) * (np.cos(t) @ v) + np.sin(t) * (np.sin(t) @ v)
    (G * np.sin(t[:, None] - t)) @ v    np.sin(t) * (G @ (np.cos(t) * v)) - np.cos(t) * (G @ (np.sin(t) * v))

So n cosines are computed in the place of n², and a product with a matrix G takes G as it is. The result is that for
angles which differ from the given ones in their last digits. A plan is changed only where the new one takes less time.
Squares of sines, which are small where angles are close, stay as they are, and so do complex angles, of whose cosines
each may overflow.
"""

from __future__ import annotations

from dataclasses import field, replace

from combdiff.arrays import ops
from combdiff.arrays.costs import seconds
from combdiff.arrays.lower.arrays import Labels, Value
from combdiff.arrays.passes.distances import Expansion, Product, multiplied
from combdiff.arrays.plan import Plan, Recurrence, Scan, Step, ordered
from combdiff.records import dataclass
from combdiff.terms.terms import ONE, Var, fresh, times
from combdiff.terms.types import Index

BETTER = 0.9
"""A plan is changed where the new one takes less than this share of its time."""


def with_angles_apart(plan: Plan) -> Plan:
    """The plan with sums over cosines of single angles where they take less time, in the steps of loops, too.

    >>> import combdiff as cd
    >>> d = cd.grad("(K::RM{n, n}) -> (t::RV{n}) -> sum((i, j), K(i, j) * cos(t(i) - t(j)))")
    >>> [step.rank for step in d.plan(t=(100,)).steps if isinstance(step.op, ops.Call)]
    [1, 1]
    """
    if plan.loops:
        return plan
    passing = _Angles(plan.sizes)
    new: dict[Step, Step] = {}
    for step in ordered(plan.outputs):
        operands = tuple(new[o] for o in step.operands)
        made = step if operands == step.operands else replace(step, operands=operands)
        if isinstance(step.op, Scan):
            made = _of_steps(made, step.op)
        new[step] = passing.multiplied_out(made) or made
    if all(step is made for step, made in new.items()):
        return plan
    names = {new[step]: name for step, name in plan.names.items() if step in new}
    other = replace(plan, outputs=tuple(new[o] for o in plan.outputs), names=names)
    loops = any(isinstance(step.op, Scan) for step in new)
    return other if loops or seconds(other) < BETTER * seconds(plan) else plan


def _of_steps(made: Step, op: Scan) -> Step:
    """A loop with such sums in its steps."""
    body = op.body
    plan = with_angles_apart(body.plan)
    if plan is body.plan:
        return made
    return replace(made, op=replace(op, body=Recurrence(body.name, plan, body.states, body.sequences)))


@dataclass
class _Angles(Expansion):
    """Contractions as sums of contractions with cosines and sines of single angles."""

    found: dict[Step, bool] = field(default_factory=dict)

    def multiplied_out(self, step: Step) -> Step | None:
        """The contraction made of those with single angles, where one operand holds cosines of sums."""
        return super().multiplied_out(step) if self.has_one(step) else None

    def has_one(self, step: Step) -> bool:
        """Whether one operand holds cosines of sums: a product of two may be much smaller than 1."""
        return sum(map(self.holds_pairs, step.operands)) == 1

    def holds_pairs(self, step: Step) -> bool:
        """Whether an array is a sum or a product with a cosine of a sum of angles that depend on different indices."""
        if step not in self.found:
            self.found[step] = self._holds_pairs(step)
        return self.found[step]

    def _holds_pairs(self, step: Step) -> bool:
        match step.op:
            case ops.Conj() | ops.Permute() | ops.Add():
                return any(map(self.holds_pairs, step.operands))
            case ops.Mul():
                return self.has_one(step)
            case ops.Call("cos" | "sin") if not step.complex and step.rank > 1:
                labels = _fresh(step)
                angles = self.angles(step.operands[0], labels)
                return len(angles) > 1 and not any({*labels} <= _labels(product) for product in angles)
            case _:
                return False

    def angles(self, step: Step, labels: Labels) -> list[Product]:
        """What an angle is the sum of: products of sums are multiplied out."""
        match step.op:
            case ops.Permute(order):
                return self.angles(step.operands[0], tuple(labels[order.index(n)] for n in range(step.rank)))
            case ops.Mul(coefficient, places=places):
                rows = [tuple(labels[n] for n in at) for at in places]
                parts = [self.angles(o, row) for o, row in zip(step.operands, rows, strict=True)]
                return multiplied([(coefficient, ())], *parts)
            case ops.Add(coefficients, places=places):
                rows = [tuple(labels[n] for n in at) for at in places]
                parts = [self.angles(o, row) for o, row in zip(step.operands, rows, strict=True)]
                return [(times(c, own), v) for c, part in zip(coefficients, parts, strict=True) for own, v in part]
            case ops.Contraction() | ops.Sum():
                is_sum = any(len(self.angles(o, _fresh(o))) > 1 for o in step.operands)
                terms = self.terms(step, labels, self.angles) if is_sum else None
                return [(c, (value,)) for c, value in terms] if terms else [(ONE, (Value(step, labels),))]
            case _:
                return [(ONE, (Value(step, labels),))]


def _fresh(step: Step) -> Labels:
    return tuple(fresh("d", Index(domain)) for domain in step.domains)


def _labels(product: Product) -> set[Var]:
    return {label for value in product[1] for label in value.labels}
