"""Rows that are added up at places, as products with a sparse matrix: Σ_e w(e) X[a(e)] at b(e).

    t = np.zeros((n, m)); np.add.at(t, b, w[:, None] * X[a])        an entry at a time, and an array of all rows before
    t = sparse.coo_array((w, (b, a)), shape=(n, len(X))) @ X        a row at a time

Places of two arrays, b(e) and c(e), are those of one, b · n + c, in the rows of a matrix.
The matrix has an entry for each value of e. It is made at each call, which takes as long as adding few short rows.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from combdiff.arrays import ops
from combdiff.arrays.passes.gathers.rows import Labelled, Weighted, taken, weighted
from combdiff.arrays.plan import Plan, Step
from combdiff.terms.terms import ONE

_LARGE = 1 << 14  # entries that are added


def with_sparse_products(plan: Plan, large: int = _LARGE) -> Plan:
    """The plan with products for scatters of at least so many entries in rows.

    Rows that something else needs too are not taken again.
    """
    found = [step for step in plan.steps if _is_long(plan, step, large)]
    if not found or plan.loops:
        return plan
    uses = Counter([o for step in plan.steps for o in step.operands] + list(plan.outputs))
    new: dict[Step, Step] = {}
    for step in plan.steps:
        made = _product(step, uses) if step in found else step
        operands = tuple(new[o] for o in made.operands)
        new[step] = made if operands == made.operands else replace(made, operands=operands)
    names = {new[step]: name for step, name in plan.names.items() if step in new}
    return replace(plan, outputs=tuple(new[o] for o in plan.outputs), names=names)


def _is_long(plan: Plan, step: Step, large: int) -> bool:
    """Whether it adds many entries, in rows that lie one after the other."""
    if not isinstance(step.op, ops.Scatter) or not step.op.adds:
        return False
    values, places, own = step.operands[0], step.operands[1:], step.op
    # places of several arrays are those of one index: a row for each of its values
    in_order = all(at == tuple(range(own.rank)) for at in own.places) and (len(places) == 1 or own.rank == 1)
    rows = step.rank > len(places) and own.at == tuple(range(values.rank))
    return in_order and rows and plan.entries(values) >= large


def _product(step: Step, uses: Counter[Step]) -> Step:
    """A scatter as a product, with weights and places that the rows are taken from if nothing else needs these."""
    values, *to = step.operands
    if to[0].rank > 1:
        return _of_several_indices(step, values, to[0], uses)
    labels = tuple(range(values.rank))
    apart = weighted(values, labels)
    plain = apart.coefficient == ONE and len(apart.weights) <= 1 and apart.core.labels == labels
    if not plain or not all(w.labels == (0,) for w in apart.weights) or uses[values] > 1:
        apart = Weighted(ONE, (), Labelled(values, labels))
    rows, weights = apart.core.step, tuple(w.step for w in apart.weights)
    found = taken(rows, labels) if uses[rows] == 1 else None
    if found is None or found.indices != (0,) or found.weighted.core.step is not rows:
        return Step(ops.Sparse(False, bool(weights), len(to)), (rows, *to, *weights), step.domains, step.complex)
    operands = (found.rows.step, *to, found.places, *weights)
    return Step(ops.Sparse(True, bool(weights), len(to)), operands, step.domains, step.complex)


def _of_several_indices(step: Step, values: Step, to: Step, uses: Counter[Step]) -> Step:
    """The same where places have several axes: w(e, s) X(e) is added without an array of all e and s."""
    whole, own = tuple(range(to.rank)), (0, *range(to.rank, values.rank))
    match values.op:
        case ops.Mul(coefficient, places=places) if coefficient == ONE and uses[values] == 1:
            parts = dict(zip(places, values.operands, strict=True))
            if {*parts} == {whole, own} and len(places) == 2:
                return Step(ops.Sparse(False, True), (parts[own], to, parts[whole]), step.domains, step.complex)
    return Step(ops.Sparse(False, False), (values, to), step.domains, step.complex)
