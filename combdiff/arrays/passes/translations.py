"""What differs by a shift of a periodic index is computed once: f(x(i + 1)) is f(x(i)), shifted.

The gradient of Σ f(x(i + 1) − x(i)) over a ring holds f′ at i and at i − 1: one of them is the other, rolled. Steps are
told apart up to shifts, outer ones first; the one for which least is rolled is kept, where rolling it takes less time
than what the other one alone needs. Numbers in front of products stand in the sums that these are terms of: 4 k x is
k x, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from math import prod

from combdiff.arrays import ops
from combdiff.arrays.plan import Step, interned, ordered
from combdiff.arrays.shifted import Forms
from combdiff.records import dataclass
from combdiff.terms.arithmetic import reciprocal
from combdiff.terms.terms import Const, times
from combdiff.terms.types import Domain

_CALL, _ROLL = 1.0, 6.0
"""Microseconds that NumPy takes to be called for an operation, and to roll an array without entries."""

_ENTRY: Mapping[type[ops.Op], float] = {ops.Call: 8e-3, ops.Power: 4e-3, ops.Roll: 1e-3}
"""Microseconds for an entry, where it is not that of a sum or a product."""

_PLAIN = 5e-4


def translated(
    outputs: Sequence[Step], names: Mapping[Step, str], sizes: Mapping[Domain, int]
) -> tuple[tuple[Step, ...], dict[Step, str]]:
    """The outputs and the names of steps after what differs by shifts is computed once.

    >>> from combdiff.arrays.plan import Builder
    >>> n, make = Domain("n", periodic=True), Builder().step
    >>> x = make(ops.Input("x"), (), (n,), False)
    >>> e, f = (make(ops.Call("exp", places=((0,),)), (o,), (n,)) for o in (x, make(ops.Roll(0, 1), (x,), (n,))))
    >>> (one, other), _ = translated((e, f), {}, {n: 10_000})
    >>> other.op, other.operands == (one,)
    (Roll(axis=0, by=1), True)
    """
    steps = ordered(outputs)
    if not any(isinstance(step.op, ops.Roll) for step in steps):
        return tuple(outputs), dict(names)
    outputs, names = _with_numbers_in_sums(steps, outputs, names)
    steps = ordered(outputs)
    found = _Translations(steps, outputs, sizes)
    found.choose()
    new = {step: found.made(step) for step in steps if found.uses[step]}
    return tuple(new[o] for o in outputs), {new.get(step, step): name for step, name in names.items()}


def _with_numbers_in_sums(
    steps: Sequence[Step], outputs: Sequence[Step], names: Mapping[Step, str]
) -> tuple[tuple[Step, ...], dict[Step, str]]:
    """The outputs and the names of steps with 4 · (2 k x) for 8 k x in sums, if there is a 2 k x up to shifts, too."""
    found = _of_common_numbers(steps)
    if not found:
        return tuple(outputs), dict(names)
    new: dict[Step, Step] = {}
    for step in steps:
        made = replace(step, operands=tuple(new[o] for o in step.operands))
        if isinstance(step.op, ops.Add):
            pairs = [*zip(step.operands, step.op.coefficients, strict=True)]
            numbers = tuple(times(c, found[o]) if o in found else c for o, c in pairs)
            operands = tuple(_divided(new[o], found[o]) if o in found else new[o] for o in step.operands)
            made = replace(step, op=replace(step.op, coefficients=numbers), operands=operands)
        new[step] = step if made.operands == step.operands and made.op == step.op else made
    return interned([new[o] for o in outputs], {new.get(s, s): name for s, name in names.items()})


def _of_common_numbers(steps: Sequence[Step]) -> dict[Step, Const]:
    """Products in sums that are others up to shifts and a number, each with this number."""
    products = {s: s.op.coefficient for s in steps if isinstance(s.op, ops.Mul) and len(s.operands) > 1}
    bare = {s: _divided(s, c) for s, c in products.items()}
    forms = Forms([*steps, *bare.values()], ops.Roll)
    alike: dict[int, list[Step]] = {}
    for step, other in bare.items():
        alike.setdefault(forms[other][0], []).append(step)
    found: dict[Step, Const] = {}
    for group in alike.values():
        ((most, _),) = Counter(products[s] for s in group).most_common(1)
        found |= {s: times(products[s], reciprocal(most)) for s in group if products[s] != most}
    in_sums = {o for s in steps if isinstance(s.op, ops.Add) for o in s.operands}
    return {s: c for s, c in found.items() if s in in_sums}


def _divided(product: Step, number: Const) -> Step:
    """A product of other arrays with a smaller number in front."""
    assert isinstance(product.op, ops.Mul), "a product"
    coefficient = times(product.op.coefficient, reciprocal(number))
    return replace(product, op=replace(product.op, coefficient=coefficient))


@dataclass
class _Translations:
    """Steps by what they are up to shifts, and those that are to be another one, rolled."""

    steps: Sequence[Step]
    outputs: Sequence[Step]
    sizes: Mapping[Domain, int]
    rolled: dict[Step, Step] = field(default_factory=dict)
    _made: dict[Step, Step] = field(default_factory=dict)
    _rolls: dict[tuple[Step, int, int], Step] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.uses = Counter([o for s in self.steps for o in s.operands] + list(self.outputs))
        self.forms = Forms(self.steps, ops.Roll)

    # --- what is kept -----------------------------------------------------------------------------------------------

    def choose(self) -> None:
        """Find the steps that are to be another one, rolled: large ones first, for what is in them goes with them."""
        for step, others in self.forms.alike():
            kept = [s for s in others if self.uses[s] and s not in self.rolled]
            first = min(kept, key=self._rolled_for, default=step)
            if first is step or not self.uses[step]:
                continue
            gone = [*self._only_for(step)]
            shifts = sum(1 for _ in self._shifts(first, step))
            if sum(map(self._time, gone)) > shifts * self._time(step, ops.Roll):
                self.rolled[step] = first
                self.uses[first] += 1
                for other in gone:
                    for operand in other.operands:
                        self.uses[operand] -= 1

    def _rolled_for(self, step: Step) -> int:
        """How many arrays are rolled for a step alone: of k(i) x(i) and k(i − 1) x(i − 1) the first stays."""
        return sum(isinstance(s.op, ops.Roll) for s in self._only_for(step))

    def _only_for(self, step: Step) -> Iterator[Step]:
        """A step with all that nothing else needs."""
        left = Counter(self.uses)
        waiting = [step]
        while waiting:
            gone = waiting.pop()
            yield gone
            for operand in gone.operands:
                left[operand] -= 1
                if not left[operand]:
                    waiting.append(operand)

    def _shifts(self, first: Step, step: Step) -> Iterator[tuple[int, int]]:
        """The axes along which `step` is `first` rolled, each with how far."""
        for axis, (a, b) in enumerate(zip(self.forms[first][1], self.forms[step][1], strict=True)):
            if a != b:
                yield axis, b - a

    def _time(self, step: Step, kind: type[ops.Op] | None = None) -> float:
        kind = kind or type(step.op)
        if not issubclass(kind, (*ops.ENTRYWISE, ops.Roll, ops.Conj)):
            return 0.0
        entries = prod(self.sizes.get(d, 1) for d in step.domains)
        passes = max(1, len(step.operands) - 1) if issubclass(kind, ops.Add | ops.Mul) else 1
        return (_ROLL if kind is ops.Roll else _CALL * passes) + entries * passes * _ENTRY.get(kind, _PLAIN)

    # --- what is made -----------------------------------------------------------------------------------------------

    def made(self, step: Step) -> Step:
        """The step to take for `step`, which is needed; what it is made of comes before it."""
        if step not in self._made:
            first = self.rolled.get(step)
            if first is not None:
                result = self.made(first)
                for axis, by in self._shifts(first, step):
                    result = self._roll(result, axis, by)
            else:
                operands = tuple(self.made(o) for o in step.operands)
                result = step if operands == step.operands else replace(step, operands=operands)
            self._made[step] = result
        return self._made[step]

    def _roll(self, step: Step, axis: int, by: int) -> Step:
        key = step, axis, by
        if key not in self._rolls:
            self._rolls[key] = Step(ops.Roll(axis, by), (step,), step.domains, step.complex)
        return self._rolls[key]
