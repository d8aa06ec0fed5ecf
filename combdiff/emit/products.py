"""Sums and products of arrays as text: `@` wherever it will do, tensordot and reshaped views, einsum for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from combdiff.arrays import ops
from combdiff.arrays.plan import Step
from combdiff.arrays.uses import is_inner_product
from combdiff.emit.powers import Powers
from combdiff.emit.texts import ATOM, PRODUCT, UNARY, Text, filled


class Products(Powers):
    """Writes contractions."""

    def _sum(self, step: Step, op: ops.Sum) -> Text:
        operand, axes = step.operands[0], op.axes
        if isinstance(operand.op, ops.Diagonal) and not self.refer(operand).code.isidentifier():
            return filled(self.spelling.trace, self.refer(operand.operands[0]))
        array = self.atom(step.operands[0])
        if not step.rank:
            return Text(f"{array}.sum()", ATOM)
        return Text(f"{array}.sum(axis={axes[0] if len(axes) == 1 else axes})", ATOM)

    def _tensordot(self, step: Step, op: ops.Tensordot) -> Text:
        a, b = step.operands
        over_a, over_b = op.axes
        if is_inner_product(step):
            conjugated, spelling = isinstance(a.op, ops.Conj), self.spelling
            left = self.refer(a.operands[0] if conjugated else a)
            several = (spelling.inner if conjugated else spelling.real_inner or spelling.inner) if b.rank > 1 else ""
            return filled(several or spelling.vdot, left, self.refer(b))
        if a.rank <= 2 and b.rank <= 2 and len(over_a) == 1:
            return self._matmul(a, b, over_a[0], over_b[0])
        if not self.spelling.joins_axes:
            return self._axes(a, b, op)
        if len(over_a) == a.rank == b.rank:
            return Text(f"{self._flat(a, over_a)} @ {self._flat(b, over_b)}", PRODUCT)
        for (large, axes), (small, over) in permutations(zip(step.operands, op.axes, strict=True)):
            first = axes[0]
            if len(over) != small.rank or tuple(axes) != tuple(range(first, first + len(axes))):
                continue
            if first + len(axes) == large.rank or not first:
                return self._flattened(step, large, small, over, trailing=first > 0)
            return self._in_the_middle(step, large, axes, self._vector(small, over))
        return self._axes(a, b, op)

    def _axes(self, a: Step, b: Step, op: ops.Tensordot) -> Text:
        over_a, over_b = op.axes
        count = len(over_a)
        neighbours = tuple(over_a) == tuple(range(a.rank - count, a.rank)) and tuple(over_b) == tuple(range(count))
        axes = str(count) if neighbours else f"({list(over_a)}, {list(over_b)})"
        return Text(self.spelling.tensordot.format(self.refer(a).code, self.refer(b).code, axes), ATOM)

    def _matmul(self, a: Step, b: Step, over_a: int, over_b: int) -> Text:
        left, right = self.refer(a), self.refer(b)
        first, second = (left, over_a, a.rank), (right, over_b, b.rank)
        if a.rank == 1 and b.rank == 2 and over_b == 1:
            first, second = second, first  # x @ B.T is B @ x
        elif a.rank == 2 and b.rank == 1 and over_a == 0:
            first, second = second, first  # A.T @ x is x @ A
        (left, over_a, rank_a), (right, over_b, rank_b) = first, second
        if rank_a == 2 and over_a == 0:
            left = Text(f"{left.at(ATOM)}.T", ATOM)
        if rank_b == 2 and over_b == 1:
            right = Text(f"{right.at(ATOM)}.T", ATOM)
        return Text(f"{left.at(PRODUCT)} @ {right.at(UNARY)}", PRODUCT)

    def _flat(self, step: Step, order: Sequence[int]) -> str:
        return f"{self.transposed(self.refer(step), order).at(ATOM)}.ravel()"

    def _flattened(self, step: Step, a: Step, b: Step, over: Sequence[int], trailing: bool) -> Text:
        """An array that is contracted with all of another: one matrix-vector product on reshaped views."""
        vector = self._vector(b, over)
        joined = " * ".join(self.extent(b.domains[axis]) for axis in over)
        free = " * ".join(map(self.extent, step.domains))
        matrix = f"{self.atom(a)}.reshape({f'{free}, {joined}' if trailing else f'{joined}, {free}'})"
        product = f"{matrix} @ {vector}" if trailing else f"{vector} @ {matrix}"
        if step.rank == 1:
            return Text(product, PRODUCT)
        return Text(f"({product}).reshape({', '.join(map(self.extent, step.domains))})", ATOM)

    def _in_the_middle(self, step: Step, a: Step, over: Sequence[int], vector: str) -> Text:
        """An array contracted over neighbouring axes inside it: a stack of matrix-vector products on a view."""
        groups = (a.domains[: over[0]], a.domains[over[0] : over[-1] + 1], a.domains[over[-1] + 1 :])
        shape = ", ".join(" * ".join(map(self.extent, group)) for group in groups)
        product = f"{vector} @ {self.atom(a)}.reshape({shape})"
        if step.rank == 2:
            return Text(product, PRODUCT)
        return Text(f"({product}).reshape({', '.join(map(self.extent, step.domains))})", ATOM)

    def _vector(self, step: Step, order: Sequence[int]) -> str:
        return self.atom(step) if step.rank == 1 else self._flat(step, order)

    def _batched(self, step: Step, op: ops.Batched) -> Text:
        """A product for each value of the indices that stay in step: these axes first, the rest as matrices."""
        a, b = step.operands
        if not self.spelling.joins_axes:
            return self._by_labels(step)
        (batch_a, batch_b), (over_a, over_b) = op.batch, op.axes
        free_a = [n for n in range(a.rank) if n not in batch_a and n not in over_a]
        free_b = [n for n in range(b.rank) if n not in batch_b and n not in over_b]
        lead = [self.extent(a.domains[n]) for n in batch_a]
        left = self._stacked(a, batch_a, free_a, over_a, lead)
        right = self._stacked(b, batch_b, over_b, free_b, lead)
        product = f"{left} @ {right}"
        if len(free_a) > 1 or len(free_b) > 1:
            return Text(f"({product}).reshape({', '.join(map(self.extent, step.domains))})", ATOM)
        return Text(product, PRODUCT, (left, f"@ {right}"))

    def _stacked(
        self, step: Step, batch: Sequence[int], rows: Sequence[int], columns: Sequence[int], lead: list[str]
    ) -> str:
        text = self.transposed(self.refer(step), (*batch, *rows, *columns))
        if len(rows) == len(columns) == 1:
            return text.at(UNARY)
        groups = [" * ".join(self.extent(step.domains[n]) for n in group) for group in (rows, columns)]
        return f"{text.at(ATOM)}.reshape({', '.join([*lead, *groups])})"

    def _einsum(self, step: Step, op: ops.Einsum) -> Text:
        return self._by_labels(step)

    def _by_labels(self, step: Step) -> Text:
        rows = ["".join("ijklmnopqrstuvwxyz"[label] for label in row) for row in step.rows]
        pattern = f"{rows[0]},{rows[1]}->{rows[2]}"
        a, b = (self.refer(o).code for o in step.operands)
        return Text(self.spelling.einsum.format(pattern, a, b), ATOM)
