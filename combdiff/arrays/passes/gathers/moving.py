"""Gathers and scatters change places with products of matrices, where that takes less time.

    X[a] @ W                        (X @ W)[a]                   a product of the rows there are, not of those taken
    scatter(V @ W, b)               scatter(V, b) @ W            the rows that were added up, once for all products
    Σ_e X[a(e), d] Z(e, k)          Xᵀ scatter(Z, a)             the transpose of a gather is a scatter

A layer of a graph network is all three: its edges are many, its nodes and its weights are few. What a law is worth
depends on the others, so that each is tried beside those that were taken, from several beginnings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from combdiff.arrays import ops
from combdiff.arrays.passes.gathers.rows import NEW, Labelled, added, product, taken, weighted
from combdiff.arrays.plan import Plan, Step, interned, ordered
from combdiff.records import dataclass
from combdiff.terms.terms import ONE

Law: TypeAlias = Callable[[Step], Step | None]
Made: TypeAlias = tuple[tuple[Step, ...], dict[Step, str]]

_MULTIPLICATION = 1 / 16  # in a product of matrices, in the time in which an entry is read and written
_ADDED = 2.0  # an entry that is added at its place, in the same
_READ = 0.25  # an entry of an operand or of a result of a product, in the same
_CLEARLY = 0.9  # what is moved leaves less than this share of the time
_MOST = 40_000  # sites times steps: beyond, trying takes longer than a call is likely to spare


def moved(plan: Plan) -> Plan:
    """The plan with gathers and scatters where they cost least; the same plan where they stay."""
    sites = [step for step in plan.steps if _is_site(step)]
    gathers = any(_is_by_rows(step) or _is_by_entries(step) for step in plan.steps)
    if not gathers or not sites or plan.loops or len(sites) * len(plan.steps) > _MOST:
        return plan
    found = _Search(plan, tuple(sites)).least()
    return plan if found is None else replace(plan, outputs=found[0], names=found[1])


@dataclass(frozen=True, slots=True)
class _Search:
    """Which law is applied at each site: none at first, and any that leaves less to do."""

    plan: Plan
    sites: tuple[Step, ...]

    def least(self) -> Made | None:
        """The cheapest outputs found from each of the beginnings, if they are clearly cheaper than those there are."""
        best, least = None, _CLEARLY * self._seconds_of(self.plan.outputs)
        for law in (None, rows_before, rows_after):
            made, cost = self._descended({site: law for site in self.sites if law is not None})
            if cost < least:
                best, least = made, cost
        return best

    def _descended(self, chosen: Mapping[Step, Law]) -> tuple[Made, float]:
        """The outputs with laws changed at one site after the other, as long as that leaves less to do."""
        made = self._made(chosen)
        cost = self._seconds_of(made[0])
        for site in self.sites:
            for law in (None, *LAWS):
                other = {s: c for s, c in chosen.items() if s is not site} | ({site: law} if law else {})
                tried = self._made(other) if law is not chosen.get(site) else made
                if (seconds := self._seconds_of(tried[0])) < cost:
                    chosen, made, cost = other, tried, seconds
        return made, cost

    def _made(self, chosen: Mapping[Step, Law]) -> Made:
        """The outputs where each chosen law has been applied to what those before have made of its step."""
        new: dict[Step, Step] = {}
        for step in self.plan.steps:
            operands = tuple(new[o] for o in step.operands)
            same = step if operands == step.operands else replace(step, operands=operands)
            law = chosen.get(step)
            new[step] = (law(same) if law is not None else None) or same
        return interned([new[o] for o in self.plan.outputs], {new[s]: name for s, name in self._names(new)})

    def _names(self, new: Mapping[Step, Step]) -> Iterable[tuple[Step, str]]:
        return ((step, name) for step, name in self.plan.names.items() if step in new)

    def _seconds_of(self, outputs: Sequence[Step]) -> float:
        return sum(map(self._seconds, ordered(outputs)))

    def _seconds(self, step: Step) -> float:
        """About how long a step takes, in the time in which an entry is read and written."""
        written = self._numbers(step)
        match step.op:
            case ops.Contraction():
                return self.plan.flops(step) / 2 * _MULTIPLICATION + _READ * sum(
                    map(self._numbers, (step, *step.operands))
                )
            case ops.Scatter():
                return _ADDED * self._numbers(step.operands[0]) + _READ * written
            case op if isinstance(op, ops.SHOWING):
                return 0.0
            case _:
                return written

    def _numbers(self, step: Step) -> int:
        return self.plan.entries(step) * (2 if step.complex else 1)


def _is_by_rows(step: Step) -> bool:
    """Whether rows are taken, or added, at the places of one array of integers."""
    match step.op:
        case ops.Scatter(_, places, rank, adds):
            return adds and places == (tuple(range(rank)),) and step.rank > 1
        case ops.Gather(slots, rank):
            return slots.count(None) == len(slots) - 1 and tuple(range(rank)) in slots and len(slots) > 1
        case _:
            return False


def _is_by_entries(step: Step) -> bool:
    """Whether entries at the places of several arrays of integers are added up."""
    return isinstance(step.op, ops.Sum) and _of_entries(step) is not None


def _is_site(step: Step) -> bool:
    """Whether a law may apply to a step, perhaps once others have changed what it is made of."""
    return isinstance(step.op, ops.Tensordot | ops.Sum) or (isinstance(step.op, ops.Scatter) and _is_by_rows(step))


# --- laws -------------------------------------------------------------------------------------------------------------


def rows_after(step: Step) -> Step | None:
    """X[a] @ W as (X @ W)[a], and Σ_e X[a(e), d] Z(e, k) as Xᵀ scatter(Z, a), for the first factor that is so.

    Of a sum of rows, Σ_e X[a(e), d], or of entries, Σ_e X[a(e), b(e)], Z is 1.
    """
    return (
        _of_rows(step) or _of_entries(step)
        if isinstance(step.op, ops.Sum)
        else _of_factor(step, 0) or _of_factor(step, 1)
    )


def rows_of_second_after(step: Step) -> Step | None:
    """The same for the second factor."""
    return _of_factor(step, 1)


def rows_before(step: Step) -> Step | None:
    """scatter(V @ W, b) as scatter(V, b) @ W, and Σ_e Z(e, k) X[b(e), d] as scatter(Z, b)ᵀ X."""
    return _of_sum(step) or _of_factor(step, 1, summed=True) or _of_factor(step, 0, summed=True)


LAWS = (rows_after, rows_of_second_after, rows_before)
"""What is tried at each site; the names are those of the laws."""


def _of_factor(step: Step, side: int, summed: bool = False) -> Step | None:
    """A product with rows that are taken, as one with the array that they are taken from."""
    if not isinstance(step.op, ops.Tensordot):
        return None
    *rows, out = step.rows
    own = taken(step.operands[side], rows[side])
    other = Labelled(step.operands[1 - side], rows[1 - side])
    if own is None or (stay := {*own.indices}.intersection(out)) not in (set(), {*own.indices}) or (summed and stay):
        return None
    if stay:
        to = tuple(NEW if label == own.indices[0] else label for label in out if label not in own.indices[1:])
        return _in_order(own.over(_product_from(side, own.rows, other, to)), out)
    values = own.weighted.before(other, own.indices)
    return _product_from(side, own.rows, added(values, own.indices, own.places, own.rows.domain(NEW)), out).step


def _of_rows(step: Step) -> Step | None:
    """A sum of rows that are taken, as a product with how often each is."""
    (row, out) = step.rows
    own = taken(step.operands[0], row)
    if own is None or {*own.indices} != {*row}.difference(out):
        return None
    values = replace(own.weighted, core=Labelled(_ones(own.places), own.indices))
    return product(added(values, own.indices, own.places, own.rows.domain(NEW)), own.rows, out).step


def _ones(places: Step) -> Step:
    """1 for each of some places."""
    return Step(ops.Broadcast(()), (Step(ops.Constant(ONE), (), (), False),), places.domains, False)


def _of_entries(step: Step) -> Step | None:
    """A sum of what is read at the places of several arrays of integers, as a product with how often each place is."""
    match step.op, step.operands[0].op:
        case ops.Sum(axes), ops.Gather(slots, rank) as op if rank and len(op.gathered) > 1:
            first = op.gathered[0] if op.neighbours else 0
            array, *places = step.operands[0].operands
            every = tuple(range(rank))
            if {s for s in slots if s is not None} != {every} or {*axes} != {*range(first, first + rank)}:
                return None
        case _:
            return None
    scatter = ops.Scatter(every, (every,) * len(places), rank, True)
    counts = Step(scatter, (_ones(places[0]), *places), tuple(array.domains[n] for n in op.gathered), False)
    return Step(ops.Tensordot(tuple(range(len(places))), op.gathered), (counts, array), step.domains, array.complex)


def _of_sum(step: Step) -> Step | None:
    """Products that are added up at places, as a product with what is added up before."""
    if not isinstance(step.op, ops.Scatter) or not _is_by_rows(step):
        return None
    values = weighted(step.operands[0], step.op.at)
    inner = values.core.step
    taken_over = tuple(range(step.op.rank))
    if not isinstance(inner.op, ops.Tensordot) or not values.along(taken_over):
        return None
    left, right, out = inner.rows
    label_of = dict(zip(values.core.labels, out, strict=True))
    indices = tuple(label_of[n] for n in taken_over)
    side = next((n for n, row in enumerate((left, right)) if {*indices} <= {*row}), None)
    if side is None:
        return None
    own, other = (Labelled(inner.operands[n], (left, right)[n]) for n in (side, 1 - side))
    weights = tuple(Labelled(w.step, tuple(label_of[n] for n in w.labels)) for w in values.weights)
    summed = replace(values, weights=weights).before(own, indices)
    sums = added(summed, indices, step.operands[1], step.domains[0])
    to = (NEW, *(label_of[n] for n in range(step.op.rank, len(out))))
    return _product_from(side, sums, other, to).step


def _in_order(found: Labelled, out: Sequence[int]) -> Step:
    """A step with its axes in an order."""
    order = tuple(found.labels.index(label) for label in out)
    if order == tuple(range(len(order))):
        return found.step
    domains = tuple(found.step.domains[n] for n in order)
    return Step(ops.Permute(order), (found.step,), domains, found.step.complex)


def _product_from(side: int, own: Labelled, other: Labelled, out: Sequence[int]) -> Labelled:
    """The product of two factors, of which one's own was on this side."""
    return product(own, other, out) if side == 0 else product(other, own, out)
