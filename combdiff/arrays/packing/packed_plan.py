"""Rewrites a plan for packed arguments: contractions of a tensor become products with the rows that are kept of it.

What is no contraction, and where symmetries save nothing, a copy of the whole tensor is read that lies as it is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import permutations

from combdiff.arrays import ops
from combdiff.arrays.derived import Derived
from combdiff.arrays.layouts import placement
from combdiff.arrays.packing.layout import Layout, Order, Packing, inverse
from combdiff.arrays.packing.uses import Part, Tensor, Use, analysed, joined, layout_of, use_of
from combdiff.arrays.plan import Argument, Builder, Plan, Step
from combdiff.canon.moves import MoveGroup
from combdiff.terms.terms import ONE, Const
from combdiff.terms.types import Domain, Map

_MOST_AXES = 6


def packed(plan: Plan, names: Collection[str], unchecked: Collection[str] = ()) -> Plan:
    """The plan with the arguments of these `names` taken packed; `unchecked` arguments may not be symmetric.

    >>> import combdiff as cd
    >>> plan = cd.grad("(A::Sym) -> (x::RV) -> sum((i, j), A(i, j) * x(i) * x(j))").plan(x=(9,))
    >>> [packing.whole for packing in packed(plan, ["A"]).packings]
    [(0, 1)]
    """
    tensors = {
        a.step: Tensor(a.step, _group(a.step, a))
        for a in plan.arguments
        if a.name in names and a.step is not None and a.step in set(plan.steps)
    }
    if not tensors:
        return plan
    declared = {
        a.step: a.kind.symmetries
        for a in plan.arguments
        if a.step is not None and isinstance(a.kind, Map) and a.name not in unchecked and _has_axis_for_slot(a)
    }
    return _Packed(plan, tensors, Derived(declared)).plan()


def _has_axis_for_slot(a: Argument) -> bool:
    return a.step is not None and isinstance(a.kind, Map) and a.step.rank == len(a.kind.params) and not a.offsets


def _group(step: Step, a: Argument) -> MoveGroup:
    if isinstance(a.kind, Map) and _has_axis_for_slot(a):
        return MoveGroup.exchanging(a.kind)
    return MoveGroup.generated(step.rank, ())


class _Packed:
    def __init__(self, plan: Plan, tensors: dict[Step, Tensor], derived: Derived) -> None:
        self.old = plan
        self.tensors = tensors
        self.derived = derived
        self.uses = {s: analysed(use, derived) for s in plan.steps if (use := use_of(s, tensors)) is not None}
        self.sums: dict[Step, dict[Step, tuple[Use, Order]]] = {}
        self._join()
        self.layouts: dict[Step, list[Layout]] = {tensor: [] for tensor in tensors}
        self.homes: dict[int, Layout] = {}
        self.whole: dict[Step, Order | None] = {}
        self.builder = Builder()
        self.new: dict[Step, Step] = {}

    def plan(self) -> Plan:
        for tensor in self.tensors:
            self._choose(tensor)
        for step in self.old.steps:
            self._rewrite(step)
        outputs = tuple(self.new[o] for o in self.old.outputs)
        sizes = dict(self.old.sizes)
        for layouts in self.layouts.values():
            for layout in layouts:
                sizes |= layout.sizes(self.old.sizes)
        packings = tuple(
            Packing(tensor.name, step.domains, step.complex, tuple(self.layouts[step]), self.whole[step])
            for step, tensor in self.tensors.items()
        )
        return replace(
            self.old,
            arguments=tuple(replace(a, step=self._input(a.step)) if a.step else a for a in self.old.arguments),
            outputs=outputs,
            sizes=sizes,
            names={self.new[s]: name for s, name in self.old.names.items() if s in self.new},
            packings=packings,
        )

    # --- what is packed how -----------------------------------------------------------------------------------------

    def _join(self) -> None:
        """Contractions of one tensor with one partner that are only ever added, 2J − K: one use, if that keeps less."""
        sums = [(step, step.op) for step in self.old.steps if isinstance(step.op, ops.Add)]
        groups = [group for step, op in sums for group in self._addends(step, op)]
        members = {s for _, group in groups for _, s, _ in group}
        while True:
            counts = Counter(s for _, group in groups for _, s, _ in group)
            left = {s for s in members if sum(1 for _ in self._consumers(s)) == counts[s]}
            groups = [(total, [m for m in group if m[1] in left]) for total, group in groups]
            groups = [(total, group) for total, group in groups if len(group) > 1]
            if {s for _, group in groups for _, s, _ in group} == members:
                break
            members = {s for _, group in groups for _, s, _ in group}
        joint = [(total, group, self._joined(group)) for total, group in groups]
        together = {use.key: 1 / use.saving for _, _, use in joint}
        apart = {self.uses[s].key: 1 / self.uses[s].saving for s in members}
        if sum(together.values()) <= sum(apart.values()):
            for total, group, use in joint:
                self.sums.setdefault(total, {}).update({s: (use, group[0][2]) for _, s, _ in group})
            for s in members:
                del self.uses[s]

    def _joined(self, group: Sequence[tuple[Const, Step, Order]]) -> Use:
        uses = [(c, at, use_of(s, self.tensors)) for c, s, at in group]
        return analysed(joined([(c, at, use) for c, at, use in uses if use is not None]), self.derived)

    def _addends(self, total: Step, op: ops.Add) -> list[tuple[Step, list[tuple[Const, Step, Order]]]]:
        """Terms of a sum that may be one contraction, with their coefficients and where their axes go."""
        groups: dict[object, list[tuple[Const, Step, Order]]] = {}
        for c, operand, at in zip(op.coefficients, total.operands, op.places, strict=True):
            use = self.uses.get(operand)
            if use is not None:
                place = at
                if operand.rank == len(use.free):
                    # a result that is symmetric stands in any order, so that K.T is added as K
                    orders = [image for image, part in use.parts.items() if part == Part(0, 1, False)]
                    at = min(tuple(at[n] for n in image) for image in orders)
                    place = tuple(sorted(at))
                over = frozenset(use.order[: len(use.contracted)])
                kind = (use.tensor.step, use.partner, over, use.conjugated, use.swapped, place)
                scale = Const(c.real, -c.imag) if use.conjugated else c
                groups.setdefault(kind, []).append((scale, operand, at))
        return [(total, group) for group in groups.values() if len(group) > 1]

    def _consumers(self, step: Step) -> Iterator[Step | None]:
        yield from (s for s in self.old.steps for o in s.operands if o is step)
        yield from (None for o in self.old.outputs if o is step)

    def _all_uses(self, tensor: Step) -> list[Use]:
        found = [*self.uses.values(), *(use for members in self.sums.values() for use, _ in members.values())]
        return [use for use in dict.fromkeys(found) if use.tensor.step is tensor]

    def _choose(self, tensor: Step) -> None:
        """Layouts for the uses that gain by one; a copy of the whole for all the others."""
        shown = {d for a in self.old.arguments if a.step and a.step is not tensor for d in a.step.domains}
        uses = self._all_uses(tensor)
        worth = [u for u in uses if u.saving > 1 and {*u.contracted, *self._unseen(u)} <= shown | self._seen(u)]
        needs_whole = len(worth) < len(uses) or self._is_read_otherwise(tensor)
        if needs_whole:
            worth = [u for u in worth if u.gain > 1]
        groups: dict[object, list[Use]] = {}
        for use in worth:
            groups.setdefault(use.key, []).append(use)
        for number, members in enumerate(groups.values(), 1):
            layout = layout_of(members, number)
            self.layouts[tensor].append(layout)
            self.homes |= {id(use): layout for use in members}
        self.whole[tensor] = self._axes_in_order(tensor, uses) if needs_whole else None

    def _seen(self, use: Use) -> set[Domain]:
        """The sizes that the packed copy shows."""
        return set(use.free) if len(use.parts) > 1 else set()

    def _unseen(self, use: Use) -> set[Domain]:
        return set(use.free) if len(use.parts) == 1 else set()

    def _is_read_otherwise(self, tensor: Step) -> bool:
        """Whether something is no contraction of the tensor: all of its entries are then needed as they are."""
        views = {s for s in self.old.steps if isinstance(s.op, ops.Conj) and s.operands[0] is tensor}
        members = {m for found in self.sums.values() for m in found}
        contractions = {*self.uses, *members, *views}
        read = {o for s in self.old.steps if s not in contractions for o in s.operands} | {*self.old.outputs}
        return not read.isdisjoint({tensor, *views})

    def _axes_in_order(self, tensor: Step, uses: Sequence[Use]) -> Order:
        """The order of axes in which contractions read the copy best; as they are, if anything else reads it."""
        one = tuple(range(tensor.rank))
        rest = [u for u in uses if id(u) not in self.homes and len(u.addends) == 1]
        if tensor.rank > _MOST_AXES or self._is_read_otherwise(tensor):
            return one

        def merit(order: Order) -> int:
            score = 0
            for use in rest:
                axes = [n for n, old in enumerate(order) if use.addends[0].places[old] >= len(use.free)]
                score += placement(axes, tensor.rank, len(axes) == use.partner.rank)
            return score

        return min(permutations(one), key=merit)

    # --- steps ------------------------------------------------------------------------------------------------------

    def _rewrite(self, step: Step) -> None:
        if step in self.tensors:
            order = self.whole[step]
            if order is not None:
                self.new[step] = self._permuted(self._input(step), inverse(order))
        elif step in self.uses:
            use = self.uses[step]
            layout = self.homes.get(id(use))
            self.new[step] = self._product(use, layout) if layout else self._of_whole(step)
        elif step in self.sums and isinstance(step.op, ops.Add):
            self._rewrite_sum(step, step.op)
        elif all(o in self.new for o in step.operands):
            operands = tuple(self.new[o] for o in step.operands)
            self.new[step] = self.builder.step(step.op, operands, step.domains, step.complex)

    def _input(self, step: Step) -> Step:
        domains = step.domains
        order = self.whole.get(step)
        if order is not None:
            domains = tuple(domains[n] for n in order)
        return self.builder.step(step.op, (), domains, step.complex)

    def _rewrite_sum(self, step: Step, op: ops.Add) -> None:
        """A sum in which several contractions are one."""
        done: set[int] = set()
        parts: list[tuple[Const, Step, Order]] = []
        for c, operand, at in zip(op.coefficients, step.operands, op.places, strict=True):
            use, place = self.sums[step].get(operand, (None, at))
            layout = self.homes.get(id(use))
            if use is None:
                parts.append((c, self.new[operand], at))
            elif layout is None:
                self.new[operand] = self._of_whole(operand)
                parts.append((c, self.new[operand], at))
            elif id(use) not in done:
                done.add(id(use))
                parts.append((ONE, self._product(use, layout), place))
        if len(parts) == 1 and parts[0][0] == ONE:
            self.new[step] = self._permuted(parts[0][1], inverse(parts[0][2]))
            return
        rest = ops.Add(tuple(c for c, _, _ in parts), places=tuple(at for _, _, at in parts))
        operands = tuple(o for _, o, _ in parts)
        self.new[step] = self.builder.step(rest, operands, step.domains, step.complex)

    def _of_whole(self, step: Step) -> Step:
        """A contraction of the copy of a tensor, whose axes are in another order."""
        assert isinstance(step.op, ops.Tensordot), "what has a use is a contraction"
        side = next(n for n, o in enumerate(step.operands) if o.unconjugated in self.tensors)
        tensor = step.operands[side].unconjugated
        order = self.whole[tensor]
        assert order is not None, "there is a copy of all of it"
        large = self._input(tensor)
        large = self._conj(large) if isinstance(step.operands[side].op, ops.Conj) else large
        over, others = step.op.axes[side], step.op.axes[1 - side]
        axes = [over, others]
        pairs = sorted(zip((order.index(n) for n in over), others, strict=True))
        axes[side], axes[1 - side] = tuple(a for a, _ in pairs), tuple(b for _, b in pairs)
        operands = tuple(large if n == side else self.new[o] for n, o in enumerate(step.operands))
        rows = [[d for axis, d in enumerate(o.domains) if axis not in axes[n]] for n, o in enumerate(operands)]
        made = self.builder.step(ops.Tensordot(*axes), operands, [d for row in rows for d in row])
        # the free axes of the copy, as they stood before
        free = [n for n in order if n not in over]
        first = len(rows[0]) if side else 0
        moved = [first + free.index(n) for n in sorted(free)]
        before = len(rows[1 - side])
        return self._permuted(made, (*range(before), *moved) if side else (*moved, *range(len(free), made.rank)))

    def _product(self, use: Use, layout: Layout) -> Step:
        """The rows times each factor, and the result restored from the products."""
        x = self.new[use.partner]
        x = self._conj(x) if use.conjugated else x
        products = []
        for factor in use.factors:
            y = self._permuted(x, factor.order)
            y = self._averaged(use, self._conj(y) if factor.conj else y, factor.order)
            free = y.domains[len(use.contracted) :]
            complex = layout.complex or y.complex
            products.append(self.builder.step(ops.Packed(layout), (y,), (*layout.row_axes, *free), complex))
        made = products[0]
        if layout.selects_rows:
            told = [use.parts[block[0]] for block in layout.blocks]
            op = ops.Unpacked(layout, tuple((part.sign, part.conj) for part in told))
            operands = tuple(products[part.factor] for part in told)
            made = self.builder.step(op, operands, (*layout.free, *made.domains[1:]))
        made = self._conj(made) if use.conjugated else made
        count = len(layout.free)
        return self._permuted(made, (*range(count, made.rank), *range(count))) if use.swapped else made

    def _averaged(self, use: Use, y: Step, order: Order) -> Step:
        """The mean over the permutations of columns, where these are not symmetries of the factor anyway."""
        columns = use.columns
        rest = order[len(use.contracted) :]
        moved = {p: (*(order[n] for n in p), *rest) for p in columns}
        if all(self.derived.sign(use.partner, order, moved[p], False) == sign for p, sign in columns.items()):
            return y
        free = tuple(range(len(use.contracted), y.rank))
        views = tuple(self._permuted(y, (*p, *free)) for p in columns)
        signs = tuple(Const(ONE.real * sign) for sign in columns.values())
        axes = tuple(range(y.rank))
        total = self.builder.step(ops.Add(signs, places=(axes,) * len(views)), views, y.domains, y.complex)
        share = ops.Mul(Const(ONE.real / len(columns)), places=(axes,))
        return self.builder.step(share, (total,), y.domains, y.complex)

    def _permuted(self, step: Step, order: Sequence[int]) -> Step:
        """A view whose axis n is the axis order[n] of `step`."""
        order = tuple(order)
        if isinstance(step.op, ops.Permute):
            order = tuple(step.op.order[n] for n in order)
            step = step.operands[0]
        if order == tuple(range(step.rank)):
            return step
        return self.builder.step(ops.Permute(order), (step,), (step.domains[n] for n in order))

    def _conj(self, step: Step) -> Step:
        if isinstance(step.op, ops.Conj):
            return step.operands[0]
        return self.builder.step(ops.Conj(), (step,), step.domains) if step.complex else step
