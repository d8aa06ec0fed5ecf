"""Arrays whose axes carry index variables: the algebra in which terms are lowered to the steps of a plan.

A `Value` is a step and the index that each of its axes ranges over. Operations align their operands by index, so that
the order of axes is decided here and nowhere else: an order that is asked for (`wanted`) is a wish, and a transposed
view is taken at the end where a result must have it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from itertools import groupby, permutations, product
from math import factorial, prod
from operator import itemgetter

from combdiff.arrays import ops
from combdiff.arrays.layouts import facing, images
from combdiff.arrays.plan import Builder, Step
from combdiff.canon.moves import Image, MoveGroup
from combdiff.records import dataclass
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.terms import MINUS_ONE, ONE, Const, Reduce, Var, number, times
from combdiff.terms.types import Domain, Index

Labels = tuple[Var, ...]


_MOST_ORDERS = 24  # of equal operands, which differ by their indices only


@dataclass(frozen=True, slots=True)
class Value:
    """An array and the index variable of each axis, all different."""

    step: Step
    labels: Labels


def domain_of(var: Var) -> Domain:
    """The domain that an index variable ranges over."""
    assert isinstance(var.kind, Index) and var.kind.domain is not None, "inferred indices have a domain"
    return var.kind.domain


def base(step: Step) -> Step:
    """`Step.unconjugated`, as the passes call it."""
    return step.unconjugated


def alignment(labels: Labels, out: Labels) -> tuple[int, ...]:
    """Where each axis of an operand goes among the axes of the result."""
    return tuple(out.index(label) for label in labels)


def joint(labels: Iterable[Labels], wanted: Sequence[Var] = ()) -> Labels:
    """All labels, in the wanted order first, the others in the order of the operands with the most axes."""
    rows = sorted(labels, key=len, reverse=True)
    present = {label for row in rows for label in row}
    order = dict.fromkeys(label for label in wanted if label in present)
    for row in rows:
        order.update(dict.fromkeys(row))
    return tuple(order)


class Arrays:
    """The operations on values; every result is a step of one builder. `names`: what people would call a step.

    `integer_tensors` are those whose entries may stand in slots: lists of offsets, and where their negatives lie.
    `symmetries` are those of arguments that exchange slots. `placed` computes an argmax that stands in a slot.
    """

    def __init__(self) -> None:
        self.builder = Builder()
        self.names: dict[Step, str] = {}
        self.integer_tensors: dict[Var, Step] = {}
        self.symmetries: dict[Step, MoveGroup] = {}
        self.placed: Callable[[Reduce], Value] | None = None
        self._laid: dict[Step, tuple[int, ...]] = {}
        self._numbers: dict[Step, int] = {}
        self._entrywise: dict[Hashable, tuple[Step, tuple[int, ...]]] = {}

    # --- single steps -------------------------------------------------------------------------------------------

    def number(self, value: Const) -> Value:
        return Value(self.builder.step(ops.Constant(value), (), (), bool(value.imag)), ())

    def named(self, name: str) -> Value:
        """A number that has a name: `pi`."""
        return Value(self.builder.step(ops.Named(name), (), ()), ())

    def size(self, domain: Domain) -> Value:
        """How many values `domain` has, as a number."""
        if domain.count is not None:
            return self.number(number(domain.count))
        return Value(self.builder.step(ops.Size(domain), (), ()), ())

    def integers(self, var: Var, op: type[ops.Counting] = ops.Range) -> Value:
        """The values of an index (`Range`; `Numbers`: as floats), or where they lie in arrays (`Place`)."""
        domain = domain_of(var)
        if op is ops.Place and not (domain.symmetric or domain.lower):
            op = ops.Range
        step = self.builder.step(op(domain), (), (domain,))
        if op is not ops.Numbers:
            self.names.setdefault(step, var.name)
        return Value(step, (var,))

    def conj(self, a: Value) -> Value:
        step = a.step
        if not step.complex:
            return a
        match step.op:
            case ops.Conj():
                return Value(step.operands[0], a.labels)
            case ops.Constant(value):
                return self.number(Const(value.real, -value.imag))
            case ops.Mul(number) as product if not any(o.complex for o in step.operands):
                # the number in front of real arrays takes it, and no array is read for it
                turned = ops.Mul(Const(number.real, -number.imag))
                places = zip(step.operands, product.places, strict=True)
                factors = [Value(o, tuple(a.labels[n] for n in place)) for o, place in places]
                return self.elementwise(turned, factors, a.labels, complex=True)
            case _:
                return Value(self.builder.step(ops.Conj(), (step,), step.domains), a.labels)

    def elementwise(
        self, op: ops.Aligned, values: Sequence[Value], wanted: Sequence[Var] = (), complex: bool | None = None
    ) -> Value:
        """`op` on these operands, with their alignment among its parameters.

        What is equal is made once, whatever its indices are called, and sums and products in whatever order.
        """
        key, numbered = self._in_any_order(op, values, complex)
        if key in self._entrywise:
            step, places = self._entrywise[key]
            return Value(step, tuple(numbered[place] for place in places))
        one_number = isinstance(op, ops.Call) and len(values) == 1 and values[0].step.complex
        if isinstance(op, ops.Call) and one_number and SCALAR_FUNCTIONS[op.function].commutes:
            # exp(z') is exp(z)', where that is there already
            mirrored = [self.conj(values[0])]
            if self._in_any_order(op, mirrored, complex)[0] in self._entrywise:
                return self.conj(self.elementwise(op, mirrored, wanted, complex))
        out = joint((v.labels for v in values), wanted)
        aligned = op.placed(tuple(alignment(v.labels, out) for v in values))
        operands = tuple(v.step for v in values)
        value = Value(self.builder.step(aligned, operands, map(domain_of, out), complex), out)
        self._entrywise[key] = value.step, tuple(numbered.index(label) for label in out)
        return value

    def _in_any_order(self, op: ops.Aligned, values: Sequence[Value], complex: bool | None) -> tuple[Hashable, Labels]:
        """What equal values have in common, and the indices in the order in which it counts them."""
        coefficients = op.coefficients if isinstance(op, ops.Add) else [ONE] * len(values)
        number = {v.step: self._numbers.setdefault(v.step, len(self._numbers)) for v in values}
        rows = [(number[v.step], c.real, c.imag, n) for n, (v, c) in enumerate(zip(values, coefficients, strict=True))]
        ties = [[n] for n in range(len(rows))]
        if isinstance(op, ops.Add | ops.Mul):
            rows.sort()
            ties = [[row[-1] for row in tie] for _, tie in groupby(rows, key=itemgetter(0, 1, 2))]
        orders = product(*map(permutations, ties)) if prod(map(factorial, map(len, ties))) <= _MOST_ORDERS else [ties]
        least: tuple[tuple[tuple[int, ...], ...], Labels] | None = None
        for order in orders:
            counted: dict[Var, int] = {}
            pattern = tuple(
                tuple([counted.setdefault(x, len(counted)) for x in values[n].labels]) for tie in order for n in tie
            )
            if least is None or pattern < least[0]:
                least = pattern, tuple(counted)
        assert least is not None, "there is an order at least"
        front = ops.Add if isinstance(op, ops.Add) else op
        return (front, complex, tuple(row[:-1] for row in rows), least[0]), least[1]

    def product(self, coefficient: Const, values: Sequence[Value], wanted: Sequence[Var] = ()) -> Value:
        """coefficient · a · b · …, entry by entry."""
        if not values:
            return self.number(coefficient)
        if len(values) == 1 and coefficient == ONE:
            return values[0]
        complex = bool(coefficient.imag) or any(v.step.complex for v in values)
        return self.elementwise(ops.Mul(coefficient), values, wanted, complex)

    def total(self, terms: Sequence[tuple[Const, Value]], wanted: Sequence[Var] = ()) -> Value:
        """Σ coefficient · value, entry by entry."""
        # a chain of + and − reads best when it starts with a +
        terms = self._collected(self._complemented(terms))
        if len(terms) == 1 and terms[0][0] == ONE:
            return terms[0][1]
        terms = sorted(terms, key=lambda pair: pair[0] == MINUS_ONE) if terms[0][0] == MINUS_ONE else terms
        coefficients = tuple(c for c, _ in terms)
        complex = any(c.imag or v.step.complex for c, v in terms)
        return self.elementwise(ops.Add(coefficients), [v for _, v in terms], wanted, complex)

    def _complemented(self, terms: Sequence[tuple[Const, Value]]) -> Sequence[tuple[Const, Value]]:
        """1 − σ(t) as σ(−t), which keeps its digits where σ(t) is nearly 1."""
        for n, (c, value) in enumerate(terms):
            op, minus = value.step.op, times(MINUS_ONE, c)
            one = next((m for m, (d, v) in enumerate(terms) if d == minus and v.step.op == ops.Constant(ONE)), None)
            if one is None or not isinstance(op, ops.Call) or op.function != "sigmoid":
                continue
            inner = Value(value.step.operands[0], tuple(value.labels[axis] for axis in op.places[0]))
            opposite = self.total([(MINUS_ONE, inner)], value.labels)
            made = self.elementwise(ops.Call("sigmoid"), [opposite], value.labels, complex=False)
            return [(minus, made), *(pair for m, pair in enumerate(terms) if m not in (n, one))]
        return terms

    def _collected(self, terms: Sequence[tuple[Const, Value]]) -> list[tuple[Const, Value]]:
        """c·(A x) + c·(A y) as c·(A (x + y)): the sum is made before it is contracted, which reads A once."""
        done: list[tuple[Const, Value]] = []
        for c, value in terms:
            for n, (other, sum_so_far) in enumerate(done):
                if c == other and value.labels == sum_so_far.labels:
                    joined = self._joined(sum_so_far.step, value.step)
                    if joined is not None:
                        done[n] = (c, Value(joined, value.labels))
                        break
            else:
                done.append((c, value))
        return done

    def _joined(self, a: Step, b: Step) -> Step | None:
        """a + b as one contraction, if both contract one array that is no smaller than what it is contracted with."""
        if a is b or not isinstance(a.op, ops.Tensordot) or (a.op, a.domains) != (b.op, b.domains):
            return None
        for side in (0, 1):
            one, x, y = a.operands[side], a.operands[1 - side], b.operands[1 - side]
            if b.operands[side] is one and x is not y and one.rank >= max(x.rank, 2) and x.domains == y.domains:
                inside = self._joined(x, y) or self._plus(x, y)
                operands = (one, inside) if side == 0 else (inside, one)
                return self.builder.step(a.op, operands, a.domains)
        return None

    def _plus(self, a: Step, b: Step) -> Step:
        axes = tuple(range(a.rank))
        return self.builder.step(ops.Add((ONE, ONE), places=(axes, axes)), (a, b), a.domains, a.complex or b.complex)

    def reduce(self, a: Value, over: Collection[Var]) -> Value:
        """Σ over some axes."""
        axes = tuple(n for n, label in enumerate(a.labels) if label in over)
        if not axes:
            return a
        rest = tuple(label for label in a.labels if label not in over)
        if isinstance(a.step.op, ops.Conj):
            return self.conj(self.reduce(self.conj(a), over))
        return Value(self.builder.step(ops.Sum(axes), (a.step,), map(domain_of, rest)), rest)

    def arranged(self, a: Value, labels: Labels) -> Step:
        """The array with exactly these axes: transposed, and repeated along indices that it does not depend on."""
        step, have = a.step, a.labels
        present = tuple(label for label in labels if label in have)
        if present != have:
            order = tuple(have.index(label) for label in present)
            step = self.builder.step(ops.Permute(order), (step,), map(domain_of, present))
        if present != labels:
            step = self.builder.step(ops.Broadcast(alignment(present, labels)), (step,), map(domain_of, labels))
        return step

    def permuted(self, array: Step, order: tuple[int, ...]) -> Step:
        """A view with the axes in another order."""
        return self.builder.step(ops.Permute(order), (array,), [array.domains[axis] for axis in order])

    def laid_out(self, array: Step, order: tuple[int, ...]) -> Step:
        """The same as an array that lies in memory so, which what is made later is made of, too."""
        self._laid.setdefault(array, order)
        return self.builder.step(ops.LaidOut(order), (array,), [array.domains[axis] for axis in order])

    def _as_laid(self, v: Value) -> Value:
        """`v` made of the array that was laid out, if one was."""
        order = self._laid.get(v.step.unconjugated)
        if order is None:
            return v
        laid = Value(self.laid_out(v.step.unconjugated, order), tuple(v.labels[axis] for axis in order))
        return laid if v.step is v.step.unconjugated else self.conj(laid)

    # --- contraction --------------------------------------------------------------------------------------------

    def contract(self, a: Value, b: Value, kept: Collection[Var], wanted: Sequence[Var] = ()) -> Value:
        """Σ over the indices of a·b that are not kept: a matrix product wherever it is one.

        Free indices of either side and contracted ones: a product for BLAS; with indices that stay in step on both
        sides, a batched one; where such a one would be of matrices with vectors, or of vectors, einsum is as fast.
        """
        both = [x for x in a.labels if x in b.labels]
        over = [x for x in both if x not in kept]
        batch = [x for x in both if x in kept]
        if not over:
            return self.product(ONE, (a, b), wanted or _common_last(a.labels, b.labels))
        if not batch:
            return self._well_placed(a, b, over, wanted)
        if len(both) in (len(a.labels), len(b.labels)):
            return self._einsum(a, b, kept, wanted)
        return self._batched(a, b, batch, over, wanted)

    def _well_placed(self, a: Value, b: Value, over: list[Var], wanted: Sequence[Var]) -> Value:
        """A matrix product that reads the larger array in the image, under its symmetries, that lies best for it."""
        large, small = (a, b) if self._leads(a) >= self._leads(b) else (b, a)
        conjugated = isinstance(large.step.op, ops.Conj)
        array = large.step.unconjugated
        if array not in self.symmetries:
            return self._matrix_product(a, b, over, wanted)
        image = facing(large.labels, self.symmetries[array], over, small.labels, conjugated)
        if image.conj:
            # T = T'(image): Σ T x = (Σ T(image) x')', which conjugates the small arrays; T' x is Σ T(image) x
            placed = Value(array, image.labels)
            value = self._matrix_product(placed, small if conjugated else self.conj(small), over, wanted)
            value = value if conjugated else self.conj(value)
        else:
            placed = Value(large.step, image.labels)
            value = self._matrix_product(*((placed, b) if large is a else (a, placed)), over, wanted)
        return value if image.sign > 0 else self.product(MINUS_ONE, [value])

    def _leads(self, v: Value) -> tuple[int, bool]:
        """The larger array chooses its image; of two of one rank, one that has others."""
        return len(v.labels), v.step.unconjugated in self.symmetries

    def _matrix_product(self, a: Value, b: Value, over: list[Var], wanted: Sequence[Var]) -> Value:
        free_a = [x for x in a.labels if x not in over]
        free_b = [x for x in b.labels if x not in over]
        out, swapped = (*free_a, *free_b), (*free_b, *free_a)
        straight = ops.Tensordot(*self._pairing(self._turned(a, over, 1), self._turned(b, over, 0), over))
        crossed = ops.Tensordot(*self._pairing(self._turned(b, over, 1), self._turned(a, over, 0), over))
        domains = tuple(map(domain_of, swapped))
        if not free_a and not free_b:
            second = isinstance(b.step.op, ops.Conj | ops.Contraction)
            prefers = second and not isinstance(a.step.op, ops.Conj)
        elif not free_a or not free_b:
            # the smaller stands on the side where the larger is contracted, which then need not be moved in memory
            larger = b if not free_a else a
            prefers = (larger is a) == (set(larger.labels[: len(over)]) == set(over))
        elif self.builder.known(straight, (a.step, b.step), tuple(map(domain_of, out))):
            prefers = False
        elif self.builder.known(crossed, (b.step, a.step), domains):
            prefers = True
        else:
            prefers = _agrees(swapped, wanted) and not _agrees(out, wanted)
        if prefers:
            return Value(self.builder.step(crossed, (b.step, a.step), domains), swapped)
        return Value(self.builder.step(straight, (a.step, b.step), map(domain_of, out)), out)

    def _turned(self, v: Value, over: list[Var], axis: int) -> Value:
        """A symmetric matrix with its contracted index on this axis: A X, and not A Xᵀ."""
        if len(v.labels) == 2 and len(over) == 1 and v.labels[axis] not in over:
            exchanged = v.labels[::-1]
            if Image(False, exchanged) in images(v.labels, self.symmetries.get(v.step)):
                return Value(v.step, exchanged)
        return v

    def _pairing(self, a: Value, b: Value, over: list[Var]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The contracted axes of both, in the order of the operand with more axes, whose memory should not move."""
        leader = a if len(a.labels) >= len(b.labels) else b
        pairs = [x for x in leader.labels if x in over]
        return alignment(tuple(pairs), a.labels), alignment(tuple(pairs), b.labels)

    def _batched(self, a: Value, b: Value, batch: list[Var], over: list[Var], wanted: Sequence[Var]) -> Value:
        lead = _leading(batch, a, b, wanted)
        free_a = tuple(x for x in a.labels if x not in batch and x not in over)
        free_b = tuple(x for x in b.labels if x not in batch and x not in over)
        if _agrees((*lead, *free_b, *free_a), wanted) and not _agrees((*lead, *free_a, *free_b), wanted):
            a, b, free_a, free_b = b, a, free_b, free_a
        op = ops.Batched(
            (alignment(lead, a.labels), alignment(lead, b.labels)),
            (alignment(tuple(over), a.labels), alignment(tuple(over), b.labels)),
        )
        out = (*lead, *free_a, *free_b)
        return Value(self.builder.step(op, (a.step, b.step), map(domain_of, out)), out)

    def _einsum(self, a: Value, b: Value, kept: Collection[Var], wanted: Sequence[Var]) -> Value:
        a, b = (v if len(v.labels) > len(other.labels) else self._as_laid(v) for v, other in ((a, b), (b, a)))
        rows = (a.labels, b.labels)
        rows_kept = [tuple(x for x in row if x in kept) for row in sorted(rows, key=len, reverse=True)]
        # a large result is written in the order in which the largest operand is read
        large = len(joint(rows_kept)) + 1 >= max(map(len, rows))
        out = joint(rows_kept, () if large else wanted)
        names = {label: n for n, label in enumerate(dict.fromkeys(x for row in rows for x in row))}
        op = ops.Einsum(*(tuple(names[x] for x in labels) for labels in (a.labels, b.labels, out)))
        return Value(self.builder.step(op, (a.step, b.step), map(domain_of, out)), out)


def _common_last(a: Labels, b: Labels) -> Labels:
    """The indices of an outer product: those that both have go last, as they, or all the others, are summed later."""
    both = tuple(x for x in a if x in b)
    return (*(x for x in (*a, *b) if x not in both), *both)


def _leading(batch: Sequence[Var], a: Value, b: Value, wanted: Sequence[Var]) -> Labels:
    """The order of the axes that stay in step: as in an operand that was made for it, else as wanted."""
    made = next((v for v in (b, a) if isinstance(v.step.op, ops.Gather | ops.Contraction)), None)
    order = wanted if made is None else made.labels
    return tuple(sorted(batch, key=lambda x: order.index(x) if x in order else len(order)))


def _agrees(labels: Sequence[Var], wanted: Sequence[Var]) -> bool:
    """Whether the labels stand in the wanted order."""
    places = [wanted.index(x) for x in labels if x in wanted]
    return places == sorted(places)
