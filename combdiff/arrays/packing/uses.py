"""Analyses the contractions of a tensor that is to be packed: what each needs, and which can share rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction

from combdiff.arrays import ops
from combdiff.arrays.derived import Derived
from combdiff.arrays.packing.layout import (
    Addend,
    Element,
    Layout,
    Order,
    candidates,
    elements,
    folded,
    inverse,
    least_image,
    merged,
    signed_group,
)
from combdiff.arrays.plan import Step
from combdiff.canon.moves import MoveGroup
from combdiff.records import dataclass
from combdiff.terms.terms import ONE, Const
from combdiff.terms.types import Domain


@dataclass(frozen=True, slots=True)
class Tensor:
    """An argument that is to be packed, and its symmetries."""

    step: Step
    group: MoveGroup

    @property
    def name(self) -> str:
        return self.step.op.argument if isinstance(self.step.op, ops.Input) else ""


@dataclass(frozen=True, slots=True)
class Factor:
    """What rows are multiplied with: the partner with its axes in `order`, conjugated or not."""

    order: Order
    conj: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """What stands in a block of the result: sign · conj? (rows · factor)."""

    factor: int
    sign: int
    conj: bool


@dataclass(eq=False)
class Use:
    """R(f, u) = Σ_s L(f, s) x(s, u), with L a sum of images of the tensor.

    `order` puts the axes of the partner x into the order s, u. `conjugated`: it is Σ L' x. `swapped`: the result is
    wanted as R(u, f). `parts` say for each permutation of f which rows the result follows from.
    """

    tensor: Tensor
    partner: Step
    addends: tuple[Addend, ...]
    free: tuple[Domain, ...]
    contracted: tuple[Domain, ...]
    order: Order
    conjugated: bool
    swapped: bool
    factors: list[Factor] = field(default_factory=list)
    parts: dict[Order, Part] = field(default_factory=dict)
    inner: dict[Order, int] = field(default_factory=dict)
    columns: dict[Order, int] = field(default_factory=dict)

    @property
    def key(self) -> tuple[object, ...]:
        """Uses of one key can share a layout."""
        return self.tensor.step, self.addends, len(self.free)

    @property
    def saving(self) -> Fraction:
        """By how much fewer numbers are kept."""
        return Fraction(len(self.parts) * max(len(self.columns), 1))

    @property
    def gain(self) -> Fraction:
        """By how much fewer numbers are read."""
        return self.saving / len(self.factors)


def use_of(step: Step, tensors: Mapping[Step, Tensor]) -> Use | None:
    """A step as a contraction of one of the tensors; None if it is none."""
    if not isinstance(step.op, ops.Tensordot):
        return None
    sides = [n for n, o in enumerate(step.operands) if o.unconjugated in tensors]
    if len(sides) != 1:
        return None
    (side,) = sides
    large, partner = step.operands[side], step.operands[1 - side]
    over, over_partner = step.op.axes[side], step.op.axes[1 - side]
    tensor = tensors[large.unconjugated]
    free_axes = [n for n in range(large.rank) if n not in over]
    rows = sorted(over_partner)
    order = (*rows, *(n for n in range(partner.rank) if n not in rows))
    places = [0] * large.rank
    for label, axis in enumerate(free_axes):
        places[axis] = label
    for axis, place in zip(over, over_partner, strict=True):
        places[axis] = len(free_axes) + rows.index(place)
    return Use(
        tensor,
        partner,
        (Addend(ONE, tuple(places)),),
        tuple(large.domains[n] for n in free_axes),
        tuple(partner.domains[n] for n in rows),
        order,
        isinstance(large.op, ops.Conj),
        side == 1,
    )


def joined(uses: Sequence[tuple[Const, Order, Use]]) -> Use:
    """Σ coefficient · use as one use, whose axes are those of the first; all are of one tensor with one partner.

    With each stands where its axes go in the sum.
    """
    _, axes, first = uses[0]
    terms = []
    for c, at, use in uses:
        # a free label is the one of the first use that stands at the same axis of the sum
        labels = [axes.index(at[label]) if at != axes else label for label in range(len(use.free))]
        (addend,) = use.addends
        terms.append(Addend(c, tuple(labels[p] if p < len(labels) else p for p in addend.places)))
    return replace(first, addends=merged(first.tensor.group, terms), factors=[], parts={}, inner={}, columns={})


def analysed(use: Use, derived: Derived) -> Use:
    """The use with its rows, columns and factors chosen."""
    analysis = _Analysis(use, derived)
    analysis.place()
    analysis.fold()
    analysis.choose_parts()
    return use


class _Analysis:
    def __init__(self, use: Use, derived: Derived) -> None:
        self.use = use
        self.derived = derived
        self.count = len(use.free)
        self.elements: set[Element] = set()

    def place(self) -> None:
        """Choose the labels: the image of one addend whose contracted slots stand last, these labels in their order."""
        use, count = self.use, self.count
        if len(use.addends) > 1:
            self._relabel()
        else:
            (addend,) = use.addends

            def key(image: Order) -> tuple[object, ...]:
                return tuple(-axis for axis, p in enumerate(image) if p >= count), image

            sign, places = least_image(use.tensor.group, addend.places, key)
            slots = [p - count for p in places if p >= count]
            self._reorder(slots)
            places = tuple(p if p < count else count + slots.index(p - count) for p in places)
            use.addends = (Addend(Const(addend.coefficient.real * sign, addend.coefficient.imag * sign), places),)
        found = [elements(use.tensor.group, a.places, count) for a in use.addends]
        self.elements = set.intersection(*found)
        real = not any(a.coefficient.imag for a in use.addends)
        if use.tensor.step.complex:
            self.elements = {e for e in self.elements if real or not e.conj}
        elif use.partner.complex and real:
            self.elements |= {Element(e.labels, e.sign, True) for e in self.elements}

    def _relabel(self) -> None:
        """Name the contracted labels of several addends so that a sum and its image have one layout."""
        use, count = self.use, self.count

        def named(order: Order) -> tuple[Addend, ...]:
            labels = (*range(count), *(count + order.index(n) for n in range(len(order))))
            found = (Addend(a.coefficient, tuple(labels[p] for p in a.places)) for a in use.addends)
            return merged(use.tensor.group, found)

        def key(order: Order) -> list[tuple[Order, Fraction, Fraction]]:
            return [(a.places, a.coefficient.real, a.coefficient.imag) for a in named(order)]

        order = min([tuple(range(len(use.contracted))), *candidates(use.contracted)], key=key)
        use.addends = named(order)
        self._reorder(order)

    def _reorder(self, slots: Sequence[int]) -> None:
        """Contract slot slots[n] of the partner as label n; nothing is transposed where the partner is symmetric."""
        use = self.use
        moved = (*(use.order[n] for n in slots), *use.order[len(slots) :])
        if self.derived.sign(use.partner, use.order, moved, False) != 1:
            use.order = moved
        use.contracted = tuple(use.contracted[n] for n in slots)

    def _moved(self, labels: Order) -> Order:
        """The order of the partner's axes behind a permutation of the contracted labels."""
        slots = [label - self.count for label in labels[self.count :]]
        return (*(self.use.order[n] for n in slots), *self.use.order[len(slots) :])

    def fold(self) -> None:
        """The permutations of contracted labels that leave the partner as it is, or all that is summed over."""
        use, count = self.use, self.count
        one = tuple(range(count))
        own = {
            tuple(label - count for label in e.labels[count:]): e.sign
            for e in self.elements
            if e.labels[:count] == one and not e.conj
        }
        found = {}
        for order in candidates(use.contracted):
            labels = (*one, *(count + n for n in order))
            sign = self.derived.sign(use.partner, use.order, self._moved(labels), False)
            if sign:
                found[order] = sign
        use.inner = signed_group(len(use.contracted), found) if found else {}
        own = own if len(own) > 1 else {}
        use.columns = use.inner if own.items() <= use.inner.items() or len(own) < len(use.inner) else own

    def choose_parts(self) -> None:
        """For each permutation of f the image that follows from the fewest products, and with the least conj."""
        use, count = self.use, self.count
        use.factors = [Factor(use.order)]
        use.parts = {tuple(range(count)): Part(0, 1, False)}
        by_rows: dict[Order, list[Element]] = {}
        for e in sorted(self.elements, key=lambda e: (e.conj, -e.sign, e.labels)):
            by_rows.setdefault(e.labels[:count], []).append(e)
        for rows, choices in sorted(by_rows.items()):
            # the table of f is transposed the other way round
            image = inverse(rows)
            if image in use.parts:
                continue
            known = [part for e in choices if (part := self._known(e)) is not None]
            if known:
                use.parts[image] = known[0]
            else:
                e = choices[0]
                use.factors.append(Factor(self._moved(e.labels), e.conj))
                use.parts[image] = Part(len(use.factors) - 1, e.sign, e.conj)
        if not self._is_folded_alike():
            use.columns = {}

    def _known(self, e: Element) -> Part | None:
        """The part of an element whose image of the partner is that of a factor chosen already, or its negative."""
        for n, factor in enumerate(self.use.factors):
            sign = self.derived.sign(self.use.partner, factor.order, self._moved(e.labels), factor.conj != e.conj)
            if sign:
                return Part(n, sign * e.sign, e.conj)
        return None

    def _is_folded_alike(self) -> bool:
        """Whether every factor is unchanged by the permutations of columns, as the first is."""
        use = self.use
        if use.columns is not use.inner:
            return True
        for factor in use.factors[1:]:
            rest = factor.order[len(use.contracted) :]
            for order, sign in use.columns.items():
                moved = (*(factor.order[n] for n in order), *rest)
                if self.derived.sign(use.partner, factor.order, moved, False) != sign:
                    return False
        return True


# --- what several uses share ----------------------------------------------------------------------------------------


def layout_of(uses: Sequence[Use], number: int) -> Layout:
    """One layout for uses of one key: the columns that suit all of them, rows kept apart if one use needs it."""
    first = uses[0]
    columns = {
        order: sign for order, sign in first.columns.items() if all(use.columns.get(order) == sign for use in uses)
    }
    for use in uses:
        use.columns = columns if len(columns) > 1 else {}
    columns = first.columns
    blocks: dict[tuple[Part, ...], list[Order]] = {}
    vanishing = []
    for image in first.parts:
        told = tuple(use.parts[image] for use in uses)
        blocks.setdefault(told, []).append(image)
        if all(part == Part(0, -1, False) for part in told):
            vanishing.append(image)
    addends = folded(first.tensor.group, first.addends, len(first.free), columns) if columns else first.addends
    return Layout(
        first.tensor.name,
        first.tensor.step.complex,
        addends,
        first.free,
        first.contracted,
        tuple(map(tuple, blocks.values())),
        tuple(vanishing),
        tuple(columns.items()),
        number,
    )
