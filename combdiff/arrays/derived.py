"""Finds symmetries that arrays of a plan inherit from how they are computed: C' Cᵀ is Hermitian, x xᵀ is symmetric.

A step is read back as a term over its axes, and two views of it are equal if their canonical forms are
(`canon/canonical.py`). What has no term, such as a gather, stands for itself: nothing is concluded of its entries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from combdiff.arrays import ops
from combdiff.arrays.plan import Step
from combdiff.budget import Budget
from combdiff.canon.canonical import NormalForm, normal_form
from combdiff.terms.terms import App, Term, Var, add, call, conj, fresh, mul, power, total
from combdiff.terms.types import COMPLEX, REAL, Domain, Index, Map, Symmetry

_DEEPEST = 6
_SECONDS = 5.0


class Derived:
    """Which views of the steps of a plan are equal; `declared` are the symmetries of inputs.

    >>> from combdiff.arrays.plan import Builder
    >>> make, n = Builder().step, Domain("n")
    >>> x = make(ops.Input("x"), (), (n,), True)
    >>> P = make(ops.Einsum((0,), (1,), (0, 1)), (make(ops.Conj(), (x,), (n,)), x), (n, n))
    >>> derived = Derived({})
    >>> derived.sign(P, (0, 1), (1, 0), True), derived.sign(P, (0, 1), (1, 0), False)
    (1, 0)
    """

    def __init__(self, declared: Mapping[Step, tuple[Symmetry, ...]]) -> None:
        self.declared = declared
        self._leaves: dict[Step, Var] = {}
        self._labels: dict[tuple[int, Domain], Var] = {}
        self._forms: dict[tuple[Step, tuple[int, ...], bool], NormalForm] = {}

    def sign(self, step: Step, order: Sequence[int], other: Sequence[int], conjugated: bool) -> int:
        """1 or −1 if the step with its axes in `order` is ± itself in the `other`, conjugated there or not; else 0.

        0 says that nothing is known, or that the array is zero.
        """
        one, two = self._form(step, tuple(order), False), self._form(step, tuple(other), conjugated)
        if not one.sign or one.key != two.key:
            return 0
        ratio = one.sign * two.sign
        if one.coefficient == two.coefficient:
            return ratio
        return -ratio if one.coefficient == (-two.coefficient[0], -two.coefficient[1]) else 0

    def _form(self, step: Step, order: tuple[int, ...], conjugated: bool) -> NormalForm:
        """The canonical form of an entry of a transposed view, whose axis n holds label number n."""
        key = step, order, conjugated
        if key not in self._forms:
            found = {axis: self._label(n, step.domains[axis]) for n, axis in enumerate(order)}
            entry = self._entry(step, [found[axis] for axis in range(step.rank)], 0)
            self._forms[key] = normal_form(conj(entry) if conjugated else entry, budget=Budget.of(_SECONDS))
        return self._forms[key]

    def _label(self, number: int, domain: Domain) -> Var:
        return self._labels.setdefault((number, domain), fresh(f"i{number}", Index(domain)))

    def _entry(self, step: Step, labels: Sequence[Var], depth: int) -> Term:
        """The entry at `labels` as a term; beyond some depth, where shared steps would be written out often, a leaf."""

        def operand(n: int, at: Sequence[Var]) -> Term:
            return self._entry(step.operands[n], at, depth + 1)

        def aligned(places: ops.Rows) -> list[Term]:
            return [operand(n, [labels[p] for p in at]) for n, at in enumerate(places)]

        match step.op if depth < _DEEPEST else None:
            case ops.Constant(value):
                return value
            case ops.Named(name):
                return call(name)
            case ops.Conj():
                return conj(operand(0, labels))
            case ops.Permute(order) | ops.LaidOut(order):
                return operand(0, [labels[order.index(axis)] for axis in range(step.rank)])
            case ops.Add(coefficients) as op:
                return add(*(mul(c, t) for c, t in zip(coefficients, aligned(op.places), strict=True)))
            case ops.Mul(coefficient) as op:
                return mul(coefficient, *aligned(op.places))
            case ops.Power() as op if isinstance(step.operands[1].op, ops.Constant):
                return power(*aligned(op.places))
            case ops.Call(function) as op:
                return call(function, *aligned(op.places))
            case ops.Sum(axes):
                rows = iter(labels)
                domains = enumerate(step.operands[0].domains)
                at = [fresh("s", Index(d)) if n in axes else next(rows) for n, d in domains]
                return total([at[n] for n in axes], operand(0, at))
            case ops.Contraction():
                return self._product(step, labels, operand)
        return self._leaf(step, labels)

    def _product(self, step: Step, labels: Sequence[Var], operand: Callable[[int, Sequence[Var]], Term]) -> Term:
        *rows, out = step.rows
        names: dict[int, Var] = dict(zip(out, labels, strict=True))
        summed = []
        for row, of in zip(rows, step.operands, strict=True):
            for label, domain in zip(row, of.domains, strict=True):
                if label not in names:
                    names[label] = fresh("s", Index(domain))
                    summed.append(names[label])
        return total(summed, mul(*(operand(n, [names[x] for x in row]) for n, row in enumerate(rows))))

    def _leaf(self, step: Step, labels: Sequence[Var]) -> Term:
        if step not in self._leaves:
            number = COMPLEX if step.complex else REAL
            symmetries = self.declared.get(step, ())
            kind = Map(tuple(map(Index, step.domains)), number, symmetries) if step.rank else number
            self._leaves[step] = fresh("t", kind)
        leaf = self._leaves[step]
        return App(leaf, tuple(labels)) if step.rank else leaf
