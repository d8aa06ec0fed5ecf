"""Plans: what a lowered term computes, as steps over whole arrays, with what each step costs.

A step is an operation (`ops.py`) on earlier steps. Equal steps are one step (`Builder` interns them), so an array that
several terms need is computed once. A plan knows nothing of the language that it will be written in.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from math import isqrt, prod
from typing import TYPE_CHECKING, ClassVar

from combdiff.arrays import ops
from combdiff.records import dataclass
from combdiff.shown import Shown, brief
from combdiff.terms.laws.matrices import MATRIX_FUNCTIONS
from combdiff.terms.types import Domain, Index, Map, Type

if TYPE_CHECKING:
    from combdiff.arrays.packing.layout import Packing


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One array: `op` applied to `operands`, with an axis for each of `domains`; `complex` if its entries may be."""

    op: ops.Op
    operands: tuple[Step, ...]
    domains: tuple[Domain, ...]
    complex: bool

    @property
    def rank(self) -> int:
        return len(self.domains)

    @property
    def unconjugated(self) -> Step:
        """The array whose conjugate the step is; any other step itself."""
        return self.operands[0] if isinstance(self.op, ops.Conj) else self

    @property
    def rows(self) -> ops.Rows:
        """The index that each axis of its operands carries, and each of its own."""
        return self.op.rows([o.rank for o in self.operands], self.rank)


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """What a turn of a loop computes of a step: `part`, which lies along `axis` of the step, or adds up to it (None).

    `slices` are the axes along which the operands are cut, None for those that are used whole. One that is not `kept`
    is needed in the loop only: no more than a part of it ever exists.
    """

    step: Step
    axis: int | None
    slices: tuple[int | None, ...]
    part: Step
    kept: bool


@dataclass(frozen=True, eq=False)
class Loop:
    """Steps that are computed together, for `width` values of an index at a time.

    With a width of 1 the parts have no axis for the index; else they have one that ranges over `block`, the values of a
    turn. `inner` are loops among the parts. One in `reverse` begins with the last block.
    """

    domain: Domain
    width: int
    block: Domain
    members: tuple[Member, ...]
    inner: tuple[Loop, ...] = ()
    reverse: bool = False

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of which a turn computes parts, in order."""
        return tuple(m.step for m in self.members)

    @property
    def kept(self) -> tuple[Member, ...]:
        """The members that are needed as a whole when the loop is done."""
        return tuple(m for m in self.members if m.kept)

    @cached_property
    def body(self) -> tuple[Step, ...]:
        """What a turn computes, in order: slices, and what depends on them."""
        inside: dict[Step, None] = {}
        for step in ordered((m.part for m in self.kept), self.inner):
            if is_slice(step, self.block) or not inside.keys().isdisjoint(step.operands):
                inside[step] = None
        return tuple(inside)

    @cached_property
    def reads(self) -> tuple[Step, ...]:
        """What a turn needs from outside, whole or a slice of it: not always what its members are made of."""
        needed = (*(o for step in self.single for o in step.operands), *(o for p in self.inner for o in p.reads))
        return tuple(dict.fromkeys(o for o in needed if o not in self.body))

    @property
    def single(self) -> tuple[Step, ...]:
        """The steps of the body that are in no inner loop."""
        within = {step for p in self.inner for step in p.steps}
        return tuple(step for step in self.body if step not in within)


class Builder:
    """Makes steps; the same operation on the same operands is the same step.

    >>> from combdiff.terms.types import Domain
    >>> builder, n = Builder(), Domain("n")
    >>> builder.step(ops.Range(n), (), (n,)) is builder.step(ops.Range(n), (), (n,))
    True
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, Step] = {}

    def step(
        self,
        op: ops.Op,
        operands: tuple[Step, ...],
        domains: Iterable[Domain],
        complex: bool | None = None,
    ) -> Step:
        """The step of this operation; complex if an operand is, unless said otherwise."""
        complex = any(o.complex for o in operands) if complex is None else complex
        domains = tuple(domains)
        key = (op, operands, domains, complex)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = Step(op, operands, domains, complex)
        return known

    def first(self, step: Step) -> Step:
        """`step`, or the one that is equal to it and was made before."""
        return self._known.setdefault((step.op, step.operands, step.domains, step.complex), step)

    def known(self, op: ops.Op, operands: tuple[Step, ...], domains: tuple[Domain, ...]) -> Step | None:
        """The step of this operation if there is one already."""
        return self._known.get((op, operands, domains, any(o.complex for o in operands)))


def interned(outputs: Sequence[Step], names: Mapping[Step, str]) -> tuple[tuple[Step, ...], dict[Step, str]]:
    """The outputs and the names of steps with equal steps as one, which passes may have made of different ones.

    >>> n = Domain("n")
    >>> x = Builder().step(ops.Input("x"), (), (n,))
    >>> one, other = (Step(ops.Conj(), (x,), (n,), False) for _ in range(2))
    >>> (a, b), _ = interned((one, other), {})
    >>> one is other, a is b
    (False, True)
    """
    builder = Builder()
    new: dict[Step, Step] = {}
    for step in ordered(outputs):
        operands = tuple(new[o] for o in step.operands)
        made = step if operands == step.operands else replace(step, operands=operands)
        new[step] = builder.first(made)
    kept: dict[Step, str] = {}
    for step, name in names.items():
        kept.setdefault(new.get(step, step), name)
    return tuple(new[o] for o in outputs), kept


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter of the generated function: an array or a number (with its `step`), or a function of the user.

    Of kind `Index(domain)` it is how many values the domain has, asked for where no array shows it. `optional` is where
    Newton's method starts, or a function that solves the equation in its place; `offsets` the domain whose list of
    offsets the argument is. `made` says how a function comes from another one of the user, ("grad", "f"), or what it
    is the inverse of, ("solution", "x^3 + x").
    """

    name: str
    kind: Type
    callable: bool = False
    step: Step | None = None
    optional: bool = False
    offsets: Domain | None = None
    made: tuple[str, str] | None = None

    @property
    def of_integers(self) -> bool:
        """Whether it is an array of integers of the program, whose entries are indices."""
        return isinstance(self.kind, Map) and self.kind.is_integers and self.offsets is None

    @property
    def is_size(self) -> bool:
        """Whether it is how many values a domain has."""
        return isinstance(self.kind, Index) and not self.callable


_CALL_FLOPS = 10
_SIZELESS = (
    ops.Number,
    ops.Unknown,
    ops.Add,
    ops.Mul,
    ops.Power,
    ops.Call,
    ops.Conj,
    ops.Sum,
    ops.Fourier,
    ops.Item,
    ops.Input,
)


@dataclass(frozen=True, slots=True)
class Plan(Shown):
    """The steps of a function in order, its arguments and outputs; `str(plan)` is a table of costs.

    `names` are the names that the user gave to intermediates (and to the indices behind index arrays); `loops` are over
    steps that are not computed for all values of an index at once. `packings` are the arguments that are taken packed.
    `memory` is a limit in bytes that the order and the loops were chosen for; where there is one, arrays are released
    when they are no longer needed. With `checkpoint` loops are to keep some of their states only. `directions` are
    arguments of a function that the code returns. One that is shown `as_text` prints as what `text.py` writes.
    """

    arguments: tuple[Argument, ...]
    outputs: tuple[Step, ...]
    tupled: bool
    sizes: Mapping[Domain, int]
    names: Mapping[Step, str] = field(default_factory=dict)
    loops: tuple[Loop, ...] = ()
    packings: tuple[Packing, ...] = ()
    memory: int | None = None
    checkpoint: bool = False
    directions: tuple[Argument, ...] = ()
    as_text: bool = False
    _steps: list[tuple[Step, ...]] = field(default_factory=list, init=False, compare=False, repr=False)

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps that the outputs need, operands first."""
        if not self._steps:
            self._steps.append(ordered(self.outputs, self.loops))
        return self._steps[0]

    @property
    def packed(self) -> frozenset[str]:
        """The names of the arguments that are taken packed."""
        return frozenset(packing.name for packing in self.packings)

    def entries(self, step: Step) -> int:
        """How many numbers the array of `step` holds."""
        return prod(self.sizes.get(d, d.count or 1) for d in step.domains)

    def bytes(self, step: Step) -> int:
        """The memory that `step` takes for its result (a view takes none)."""
        if isinstance(step.op, ops.SHOWING):
            return 0
        return self.size(step)

    def size(self, step: Step) -> int:
        """The bytes of what a step is, whether it takes memory of its own or not."""
        if isinstance(step.op, Scan):
            return sum(prod(self.sizes.get(d, d.count or 1) for d in at) * (16 if c else 8) for at, c in step.op.items)
        return self._held(step) * (16 if step.complex else 8)

    def _held(self, step: Step) -> int:
        """The entries that an array holds: of windows that overlap each once."""
        if not isinstance(step.op, ops.Windows) or step.op.shared is None or not self.entries(step):
            return self.entries(step)
        pair = (step.op.shared, step.op.shared + 1)
        counts = [self.sizes.get(step.domains[axis], step.domains[axis].count or 1) for axis in pair]
        rows = 1 + sum(abs(step.op.by[axis]) * (n - 1) for axis, n in zip(pair, counts, strict=True))
        return self.entries(step) // prod(counts) * rows

    def flops(self, step: Step) -> int:
        """Floating-point operations on real numbers; a complex product counts as a few."""
        parts = 2 if step.complex else 1
        match step.op:
            case ops.Contraction():
                a, b = step.operands
                weight = (2 if a.complex else 1) * (2 if b.complex else 1)
                return 2 * weight * self.entries(step) * self._contracted(step)
            case ops.Packed(layout):
                (x,) = step.operands
                weight = (2 if layout.complex else 1) * (2 if x.complex else 1)
                return 2 * weight * self.entries(step) * prod(self.sizes.get(d, 1) for d in layout.column_axes)
            case ops.Add() | ops.Mul() | ops.Power() | ops.Where():
                return max(len(step.operands) - 1, 1) * self.entries(step) * parts
            case ops.Solve() | ops.Factors() | ops.OfMatrices():
                return self._factorised(step)
            case ops.Call() | ops.Unknown():
                return _CALL_FLOPS * self.entries(step)
            case ops.Correlated(by, apart):
                return 2 * self.entries(step) * self.entries(step.operands[1]) * abs(by * apart) * parts
            case ops.Sparse(targets=targets):
                rest = prod(self.sizes.get(d, 1) for d in step.domains[targets:])
                return 2 * self.entries(step.operands[1]) * rest * parts
            case ops.Put():
                return sum(map(self.entries, step.operands[step.op.base :])) * parts
            case Scan(body, domain):
                return self.sizes.get(domain, domain.count or 1) * sum(map(body.plan.flops, body.plan.steps))
            case ops.Cross():
                return 3 * self.entries(step) * (1, 4)[step.complex]
            case ops.Fourier(axis) | ops.HalfFourier(axis) | ops.FromHalfFourier(axis) as op:
                # a butterfly takes ten operations for two numbers, of real ones half of these
                whole = max(step, *step.operands, key=self.entries)
                n = self.sizes.get(whole.domains[axis], whole.domains[axis].count or 1)
                return 5 * self.entries(whole) * max(n - 1, 1).bit_length() // (1 + (not isinstance(op, ops.Fourier)))
            case ops.Recursive():
                return 2 * self.entries(step) * parts
            case ops.Sum() | ops.Cumulative() | ops.Reduced() | ops.Norm() | ops.Placing() | ops.Counted():
                return self.entries(step.operands[0]) * parts
            case _:
                return 0

    def _factorised(self, step: Step) -> int:
        """The operations of a factorisation, of a solution, or of a function of matrices."""
        matrix = step.operands[0]
        n = self.sizes.get(matrix.domains[-1], matrix.domains[-1].count or 1)
        weight = 4 if step.complex else 1
        match step.op:
            case ops.Solve(_, triangular):
                n = isqrt(self.entries(matrix))
                first = 0 if triangular or isinstance(matrix.op, ops.Factors) else 2 * n**3 // 3
                return (first + (2 - triangular) * n * self.entries(step)) * weight
            case ops.Factors(singular=True):
                return 20 * self.entries(step) * n * weight
            case ops.Factors(eigen=True):
                return 9 * self.entries(step) * isqrt(self.entries(step)) * weight
            case ops.Factors(positive):
                return (2 - positive) * self.entries(step) * isqrt(self.entries(step)) * weight // 3
            case ops.OfMatrices(kind):
                if kind in ("eigvals", "svdvals") and isinstance(matrix.op, ops.Factors):
                    return 0
                if kind in ops.FACTORED and isinstance(matrix.op, ops.Factors):
                    work = (4 / 3, 2 / 3)[matrix.op.positive] if kind == "inv" else 1 / max(n, 1)
                else:
                    work = 4 * len(step.operands) if isinstance(matrix.op, ops.Factors) else MATRIX_FUNCTIONS[kind].work
                return round(work * weight * n * self.entries(matrix))
        raise AssertionError(f"{step.op.name} factorises nothing")

    def _contracted(self, step: Step) -> int:
        a, b = step.operands
        joint = self.entries(a) * self.entries(b)
        batch = prod(self.sizes.get(a.domains[axis], 1) for axis in batch_axes(step))
        return round((joint / max(batch, 1) / max(self.entries(step), 1)) ** 0.5) if joint else 0

    def kind(self, step: Step) -> str:
        """What the step is called in the table: which product of BLAS, or which operation on arrays."""
        match step.op:
            case ops.Tensordot(left, right):
                a, b = step.operands
                return ("DOT", "GEMV", "GEMM")[(a.rank > len(left)) + (b.rank > len(right))]
            case ops.Packed(layout):
                free = len(step.operands[0].domains) > len(layout.contracted)
                return f"{('GEMV', 'GEMM')[free]}, {layout.name} packed"
            case ops.Reduced(kind) | ops.OfMatrices(kind):
                return kind
            case ops.Factors(positive, eigen):
                names = ((step.op.singular, "singular vectors"), (eigen, "eigenvectors"), (positive, "Cholesky"))
                return next((name for holds, name in names if holds), "LU")
            case op:
                return next((name for name, kinds in _CALLED.items() if isinstance(op, kinds)), op.name)

    def rows(self) -> list[tuple[str, ...]]:
        """The table of costs: its titles, then a row for each step that is no view."""
        shown, parts = self._shown(), self._parts()
        labels = {s: self.names.get(s, f"#{n}") for n, s in enumerate(shown, 1)}
        rows: list[tuple[str, ...]] = [("step", "kind", "operands", "shape", "FLOPs", "bytes")]
        for s in shown:
            operands = ", ".join(_label(o, labels) for o in s.operands)
            shape = "×".join(str(self.sizes.get(d, d.count or "?")) for d in s.domains) or "1"
            size = _figure(self.bytes(parts.get(s, s)))
            rows.append((labels[s], self.kind(s), operands, shape, _figure(self.flops(s)), size))
        return rows

    def __repr__(self) -> str:
        return f"<plan: {brief(str(self))}>"

    def __str__(self) -> str:
        if self.as_text:
            from combdiff.arrays.text import text

            return text(self).rstrip()
        rows = self.rows()
        widths = [max(len(row[column]) for row in rows) for column in range(6)]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([*lines, self.totals()])

    def _shown(self) -> list[Step]:
        return [s for s in self.steps if not isinstance(s.op, ops.SHOWING)]

    def _parts(self) -> dict[Step, Step]:
        """What is held of the steps that never exist whole."""
        return {m.step: m.part for loop in self.loops for m in loop.members if not m.kept}

    def _looped(self, loops: Iterable[Loop], labels: Mapping[Step, str], inside: str = "") -> Iterator[str]:
        """A line for each loop: what is computed in it, and how many values of its index at a time."""
        for loop in loops:
            extent = self.sizes.get(loop.domain, 1)
            width = "one" if loop.width == 1 else str(loop.width)
            members = ", ".join(labels[s] for s in loop.steps if s in labels)
            yield f"{inside}loop over {extent} values, {width} at a time: {members}"
            outer = {m.part: labels[m.step] for m in loop.members if m.step in labels}
            yield from self._looped(loop.inner, outer, f"{inside}  in it, ")

    def totals(self) -> str:
        """The lines below the table: loops, FLOPs, the share of BLAS, the largest array, what is held at once."""
        from combdiff.arrays.liveness import peak

        shown, parts = self._shown(), self._parts()
        labels = {s: self.names.get(s, f"#{n}") for n, s in enumerate(shown, 1)}
        flops = sum(map(self.flops, shown))
        largest = max((self.bytes(parts.get(s, s)) for s in shown), default=0)
        products = sum(self.flops(s) for s in shown if "GE" in self.kind(s) or self.kind(s) == "DOT")
        share = f", {100 * products // flops} % of them in BLAS" if flops else ""
        held = f"largest intermediate {_figure(largest)} bytes, about {_figure(peak(self).bytes)} at once"
        return "\n".join([*self._looped(self.loops, labels), f"total {_figure(flops)} FLOPs{share}; {held}"])


@dataclass(frozen=True, slots=True, eq=False)
class Equation:
    """g(x) = 0: a plan of x and of what g captures, for the residual and the Jacobian matrix (or its two parts).

    Of a matrix that is diagonal there is the diagonal only. An equation h(x) = y, where h is the same for all calls,
    has the name of an argument for the `inverse` of h.
    """

    name: str
    plan: Plan
    unknown: str
    start: str
    captured: tuple[str, ...]
    inverse: str = ""


@dataclass(frozen=True, slots=True)
class Root(ops.Op):
    """What Newton's method finds for an equation, of which the operands are what is captured.

    The last operand of an equation with an inverse is what the inverse is taken of.
    """

    name: ClassVar[str] = "root"
    equation: Equation


@dataclass(frozen=True, slots=True, eq=False)
class Recurrence:
    """One step of a loop: a plan of `states` and of entries of `sequences`, and of what is the same for all steps.

    These are the first arguments that are arrays, in this order. The first results are the next states, the others are
    stored.
    """

    name: str
    plan: Plan
    states: int
    sequences: int

    @property
    def arrays(self) -> tuple[Step, ...]:
        """The arguments that are arrays."""
        return tuple(a.step for a in self.plan.arguments if a.step is not None)


@dataclass(frozen=True, slots=True)
class Scan(ops.Op):
    """The last states of a loop over `domain`, and what each of its steps stores, along a first axis.

    Its operands are the first states, the sequences, whose first axis is of `domain`, and what all steps are given; it
    is a tuple, of which `item` takes one. A loop in `reverse` starts at the last value. The state with the number
    `halts` stays 0 once it is 0, and all others stay as they are with it: code may leave the loop then. One of `every`
    so many steps stores what the first step of each block stores, and no more.
    """

    name: ClassVar[str] = "scan"
    body: Recurrence
    domain: Domain
    reverse: bool = False
    halts: int | None = None
    every: int = 1

    @property
    def items(self) -> tuple[tuple[tuple[Domain, ...], bool], ...]:
        """The axes of each item, and whether it is complex."""
        outputs = self.body.plan.outputs
        stored = range(self.body.states, len(outputs))
        along = self.domain if self.every == 1 else self.domain.blocks(self.every)
        return tuple((((along,) if n in stored else ()) + o.domains, o.complex) for n, o in enumerate(outputs))


_CALLED: Mapping[str, tuple[type[ops.Op], ...]] = {
    "batched GEMM": (ops.Batched,),
    "sparse product": (ops.Sparse,),
    "correlation": (ops.Correlated,),
    "reduce": (ops.Sum,),
    "cumulative sum": (ops.CumulativeSum,),
    "cumulative product": (ops.CumulativeProduct,),
    "cumulative extremum": (ops.CumulativeExtremum, ops.CumulativeTies),
    "cumulative exponentials": (ops.CumulativeLogSumExp, ops.CumulativeExponentials),
    "FFT": (ops.Fourier, ops.HalfFourier, ops.FromHalfFourier),
    "elementwise": (ops.Add, ops.Mul, ops.Power, ops.Where, ops.Conj, ops.Call),
    "user's function": (ops.Unknown,),
    "Newton's method": (Root,),
    "loop": (Scan,),
    "layout copy": (ops.LaidOut, ops.Stack),
    "index array": (ops.Counting, ops.Position, ops.Opposite, ops.Occurring),
}
"""What operations are called in the table of costs; others have the names of their texts."""


def plans_within(steps: Iterable[Step]) -> list[Plan]:
    """The plans that the functions have that steps call: of equations, and of the steps of loops."""
    equations = [s.op.equation.plan for s in steps if isinstance(s.op, Root)]
    return equations + [s.op.body.plan for s in steps if isinstance(s.op, Scan)]


def batch_axes(step: Step) -> tuple[int, ...]:
    """The axes of the first operand that a contraction keeps in step with the second."""
    if not isinstance(step.op, ops.Contraction):
        return ()
    left, right, out = step.rows
    return tuple(axis for axis, label in enumerate(left) if label in right and label in out)


class WaitingError(Exception):
    """Loops wait for one another, so that a plan has no order."""


def ordered(outputs: Iterable[Step], loops: Iterable[Loop] = ()) -> tuple[Step, ...]:
    """All steps that `outputs` need, operands first, each once; the members of a loop stand together.

    Raises WaitingError where loops wait for one another.
    """
    home = {member: loop for loop in loops for member in loop.steps}
    seen: dict[Step, None] = {}
    begun: set[Step | Loop] = set()
    stack = [(step, False) for step in reversed(tuple(outputs))]
    while stack:
        step, ready = stack.pop()
        loop = home.get(step)
        if ready:
            seen.update(dict.fromkeys((step,) if loop is None else loop.steps))
        elif step not in seen:
            if (loop or step) in begun:
                raise WaitingError
            begun.add(loop or step)
            stack.append((step, True))
            needed = dict.fromkeys(step.operands if loop is None else loop.reads)
            stack.extend((operand, False) for operand in reversed(needed))
    return tuple(seen)


def has_order(plan: Plan) -> bool:
    """Whether no loop waits for itself, as for a conjugate that is made in it and was read through in a loop before."""
    try:
        return bool(plan.steps)
    except WaitingError:
        return False


def is_slice(step: Step, block: Domain) -> bool:
    """Whether a step is a part of an array for one turn of the loop over blocks like this, or a state at its start."""
    return isinstance(step.op, ops.Slice | ops.Checkpoint | ops.Carried) and step.op.block is block


def _is_sizeless(step: Step) -> bool:
    """Whether the text of a step mentions no size, so that what a function of the user returns may have any."""
    if isinstance(step.op, ops.Tensordot):
        return all(o.rank <= 2 for o in step.operands) and step.rank <= 2
    return isinstance(step.op, _SIZELESS)


def unseen_sizes(steps: Iterable[Step], arguments: Iterable[Argument]) -> list[Domain]:
    """The domains that steps range over and no array has, so that their sizes are arguments."""
    shown = {part for a in arguments if a.step is not None for d in a.step.domains for part in d.measured}
    needed: dict[Domain, None] = {}
    steps = list(steps)
    told = {d for step in steps if isinstance(step.op, ops.Unknown) for d in step.domains}
    told -= {d for step in steps if not _is_sizeless(step) for o in (step, *step.operands) for d in o.domains}
    shown |= told
    for step in steps:
        own = (step.op.domain,) if isinstance(step.op, ops.Size | ops.Counting | Scan) else ()
        for d in (part for whole in (*step.domains, *own) for part in whole.measured):
            if d not in shown and d.count is None:
                needed.setdefault(d)
    return list(needed)


def _label(step: Step, labels: Mapping[Step, str]) -> str:
    if step in labels:
        return labels[step]
    if isinstance(step.op, ops.Input):
        return step.op.argument
    if isinstance(step.op, ops.Number):
        return "number"
    return _label(step.operands[0], labels)


def _figure(count: int) -> str:
    """A count that people read: 7 to 9999 as it is, more with a power of ten."""
    return str(count) if count < 10_000 else f"{count:.3g}"
