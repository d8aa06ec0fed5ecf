"""Tables of entries at sums of indices: x(i + p, j + q) as an array over i, p, j and q, and 0 where that leaves x.

A gather takes the entries, with places modulo the size of x where they may leave it, and a `where` for each end that
they may leave it at puts zeros there. Only if these are all conditions that there are is the table one of windows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from combdiff.arrays import ops
from combdiff.arrays.plan import Step
from combdiff.records import dataclass
from combdiff.terms.terms import ZERO
from combdiff.terms.types import Domain

Symbol = int | Domain


@dataclass(frozen=True, slots=True)
class Form:
    """Σ coefficient · (place along an axis of the table, or size of a domain) + constant."""

    coefficients: Mapping[Symbol, int]
    constant: int = 0

    def plus(self, other: Form, times: int = 1) -> Form:
        """The sum with so many times another one."""
        total = dict(self.coefficients)
        for symbol, c in other.coefficients.items():
            total[symbol] = total.get(symbol, 0) + times * c
        return Form({s: c for s, c in total.items() if c}, self.constant + times * other.constant)

    def at(self, axes: Sequence[int]) -> Form:
        """The same of another table, whose axis axes[n] is axis n."""
        return replace(self, coefficients={axes[s] if isinstance(s, int) else s: c for s, c in self.steps_and_sizes})

    @property
    def steps_and_sizes(self) -> Iterable[tuple[Symbol, int]]:
        """The coefficients of axes and of sizes."""
        return self.coefficients.items()

    @property
    def steps(self) -> dict[int, int]:
        """The coefficients of axes."""
        return {s: c for s, c in self.coefficients.items() if isinstance(s, int)}

    @property
    def sizes(self) -> tuple[tuple[Domain, int], ...]:
        """The coefficients of sizes."""
        return tuple((s, c) for s, c in self.coefficients.items() if isinstance(s, Domain))

    def is_never_negative(self, domains: Sequence[Domain]) -> bool:
        """Whether it is 0 or more at all places of a table over these domains."""
        least = self
        for axis, c in self.steps.items():
            last = size_of(domains[axis]).plus(Form({}, -1))
            least = least.plus(Form({axis: 1}), -c).plus(last if c < 0 else Form({}), c)
        return least.constant >= 0 and all(c >= 0 for _, c in least.sizes)


@dataclass(frozen=True, slots=True)
class Table:
    """The entries of `of` at the forms of its slots, 0 beyond its ends, for all places of a table over `domains`.

    They may be `conjugated`.
    """

    of: Step
    slots: tuple[Form, ...]
    domains: tuple[Domain, ...]
    conjugated: bool


@dataclass(frozen=True, slots=True)
class _Read:
    """What is read of a chain of steps: where entries are taken, which slots wrap round, and the forms that are ≥ 0."""

    of: Step
    slots: tuple[Form, ...]
    wrapped: frozenset[int]
    conditions: tuple[Form, ...] = ()
    conjugated: bool = False

    def at(self, axes: Sequence[int]) -> _Read:
        """The same after axis n has become axis axes[n]."""
        slots, conditions = (tuple(form.at(axes) for form in forms) for forms in (self.slots, self.conditions))
        return replace(self, slots=slots, conditions=conditions)


def size_of(domain: Domain) -> Form:
    """How many values a domain has."""
    if domain.count is not None:
        return Form({}, domain.count)
    if domain.of is not None and domain.per == 1:
        return size_of(domain.of).plus(Form({}, -domain.less))
    return Form({domain: 1})


def table(step: Step) -> Table | None:
    """The table that a step is, if zeros stand in it just where places leave the array.

    >>> import combdiff as cd
    >>> text = "(k::RV{m}) -> (x::RV{n}) -> sum(i::N{n}, exp(sum(p, i + p < n, k(p) * x(i + p))))"
    >>> steps = cd.simplified(text).plan(backend="jax", k=(3,), x=(9,)).steps
    >>> [(step.op.name, sorted(t.slots[0].steps.items())) for step in steps if (t := table(step)) is not None]
    [('where', [(0, 1), (1, 1)])]
    """
    found = _read(step)
    if found is None or {axis for form in found.slots for axis in form.steps} != {*range(step.rank)}:
        return None
    allowed: list[Form] = []
    for slot, (form, domain) in enumerate(zip(found.slots, found.of.domains, strict=True)):
        for end in (form, size_of(domain).plus(Form({}, -1)).plus(form, -1)):
            allowed.append(end)
            if slot in found.wrapped and end not in found.conditions and not end.is_never_negative(step.domains):
                return None
    if not all(c in allowed for c in found.conditions):
        return None
    return Table(found.of, found.slots, step.domains, found.conjugated)


def _read(step: Step) -> _Read | None:
    match step.op:
        case ops.Permute(order) | ops.LaidOut(order) if (found := _read(step.operands[0])) is not None:
            return found.at([order.index(axis) for axis in range(step.rank)])
        case ops.Conj() if (found := _read(step.operands[0])) is not None:
            return replace(found, conjugated=not found.conjugated)
        case ops.Where(_, None, otherwise) if otherwise == ZERO and len(step.operands) == 3:
            return _where(step)
        case ops.Gather():
            return _gathered(step)
        case _:
            return None


def _where(step: Step) -> _Read | None:
    """What is read under one more condition."""
    assert isinstance(step.op, ops.Where), "a choice"
    *sides, body = step.operands
    rows, found = step.rows, _read(body)
    forms = [_number(side, row) for side, row in zip(sides, rows, strict=False)]
    relation = {"<": 1, "<=": 0, ">": 1, ">=": 0}.get(step.op.relation)
    if found is None or relation is None or body.rank < step.rank or None in forms:
        return None
    less, more = (f for f in (forms if "<" in step.op.relation else forms[::-1]) if f is not None)
    condition = more.plus(less, -1).plus(Form({}, -relation))
    found = found.at(rows[2])
    return replace(found, conditions=(*found.conditions, condition))


def _gathered(step: Step) -> _Read | None:
    """The entries that a gather takes, of the array below views of it."""
    assert isinstance(step.op, ops.Gather), "entries"
    of, *places = step.operands
    own, *rows, _ = step.rows
    of_slots = iter(zip(places, rows, strict=True))
    slots: list[Form] = []
    wrapped: set[int] = set()
    for slot, domain in enumerate(of.domains):
        if step.op.slots[slot] is None:
            slots.append(Form({own[slot]: 1}))
            continue
        place, row = next(of_slots)
        form = _number(place, row)
        if form is None or not _is_range(domain):
            return None
        slots.append(form)
        modulo = place.op.modulo if isinstance(place.op, ops.Position) else None
        if modulo not in (None, domain):
            return None
        wrapped |= {slot} if modulo is not None else set()
    while isinstance(of.op, ops.Permute | ops.LaidOut):
        order, (of,) = of.op.order, of.operands
        slots = [slots[order.index(axis)] for axis in range(of.rank)]
        wrapped = {order[slot] for slot in wrapped}
    return _Read(of, tuple(slots), frozenset(wrapped))


def _number(step: Step, row: Sequence[int]) -> Form | None:
    """An integer of indices and sizes, whose axis n is axis row[n] of a table."""
    match step.op:
        case ops.Constant(value) if value.is_integer:
            return Form({}, int(value.real))
        case ops.Size(domain):
            return size_of(domain)
        case ops.Range(domain) | ops.Place(domain) if _is_range(domain):
            return Form({row[0]: 1}, (domain.lower or 0) if isinstance(step.op, ops.Range) else 0)
        case ops.Position(coefficients, constant, _, None):
            total: Form | None = Form({}, constant)
            for c, operand, at in zip(coefficients, step.operands, step.op.places, strict=True):
                part = _number(operand, [row[axis] for axis in at])
                total = None if part is None or total is None else total.plus(part, c)
            return total
        case _:
            return None


def _is_range(domain: Domain) -> bool:
    """Whether its values are consecutive integers, without arithmetic modulo their number."""
    return not (domain.periodic or domain.symmetric or domain.listed) and domain.directions == 1 and domain.per == 1
