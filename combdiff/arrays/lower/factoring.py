"""Factorises a matrix once for all systems, the inverse and the determinant that are computed from it.

    x = A⁻¹ b, y = A⁻ᴴ x           F = the factors of A, x and y from F
    s = log det K, x = K⁻¹ y       L = Cholesky's factor of a positive K, s and x from L

A matrix, its transpose, its conjugate and its adjoint have the same factors. One that is triangular needs none. A
positive matrix is factorised by Cholesky though there is one use of it, which takes half the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from operator import is_

from combdiff.arrays import ops
from combdiff.arrays.plan import Builder, Step, interned, ordered
from combdiff.records import dataclass
from combdiff.terms.laws.powers import HALF
from combdiff.terms.nodes import ONE
from combdiff.terms.types import Domain


@dataclass(slots=True)
class _Uses:
    """What is made of one matrix: steps that factors give, and whether it is known to be positive."""

    steps: list[Step] = field(default_factory=list)
    positive: bool = False
    about: str = ""

    def add(self, step: Step) -> None:
        assert isinstance(step.op, ops.Solve | ops.OfMatrices), "what factors give"
        self.steps.append(step)
        self.positive |= step.op.positive
        self.about = self.about or step.op.about

    @property
    def factors(self) -> ops.Factors | None:
        """What the matrix is factorised into, if at all: a determinant alone may be that of a singular matrix."""
        if self.positive:
            return ops.Factors(positive=True, about=self.about)
        inverts = any(not isinstance(s.op, ops.OfMatrices) or s.op.kind == "inv" for s in self.steps)
        return ops.Factors(about=self.about) if len(self.steps) > 1 and inverts else None


def declared(outputs: Sequence[Step], names: Mapping[Step, str]) -> tuple[tuple[Step, ...], dict[Step, str]]:
    """The outputs and the names of steps; a matrix that one function knows to be positive, all of them do.

    >>> n, make = Domain("n"), Builder().step
    >>> K = make(ops.Input("K"), (), (n, n))
    >>> one, other = (make(ops.OfMatrices("inv", positive=known), (K,), (n, n)) for known in (True, False))
    >>> (a, b), _ = declared((one, other), {})
    >>> a is b
    True
    """
    if sum(map(_is_use, ordered(outputs))) < 2:
        return tuple(outputs), dict(names)
    # the same matrix may have been made twice
    outputs, names = interned(outputs, names)
    steps = ordered(outputs)
    functions = {s: _seen_through(s.operands[0])[0] for s in steps if _is_function(s)}
    known = {m: s.op for s, m in functions.items() if isinstance(s.op, ops.OfMatrices) and s.op.positive}
    builder = Builder()
    new: dict[Step, Step] = {}
    for step in steps:
        operands = tuple(new[o] for o in step.operands)
        op, own = step.op, known.get(functions.get(step, step))
        if isinstance(op, ops.OfMatrices) and own is not None:
            op = replace(op, positive=True, about=own.about)
        # arguments are known by their steps
        same = op is step.op and all(map(is_, operands, step.operands))
        new[step] = step if same else builder.step(op, operands, step.domains, step.complex)
    return tuple(new[o] for o in outputs), {new[step]: name for step, name in names.items() if step in new}


def _is_function(step: Step) -> bool:
    return isinstance(step.op, ops.OfMatrices) and step.op.kind in ops.FACTORED and step.operands[0].rank == 2


def factored(
    outputs: Sequence[Step], names: Mapping[Step, str], sizes: Mapping[Domain, int]
) -> tuple[tuple[Step, ...], dict[Step, str]]:
    """The outputs and the names of steps, with what is made of one matrix made of its factors.

    >>> n, make = Domain("n"), Builder().step
    >>> A, b = make(ops.Input("A"), (), (n, n)), make(ops.Input("b"), (), (n,))
    >>> x = make(ops.Solve(), (A, b), (n,))
    >>> y = make(ops.Solve(), (make(ops.Permute((1, 0)), (A,), (n, n)), x), (n,))
    >>> (y,), _ = factored((y,), {}, {})
    >>> y.op.adjoint, y.operands[0].op == ops.Factors()
    (True, True)
    """
    steps = ordered(outputs)
    found = {step: _seen_through(step.operands[0]) for step in steps if _is_use(step)}
    uses: dict[Step, _Uses] = {}
    for step, (matrix, _, _) in found.items():
        uses.setdefault(matrix, _Uses()).add(step)
    shared = {s: image for s, image in found.items() if uses[image[0]].factors or _is_triangular_system(s, image[0])}
    own = {s: m for s in steps if (m := _factorised(s, uses)) is not None}
    if not shared:
        return tuple(outputs), dict(names)
    new: dict[Step, Step] = {}
    made = _Making(Builder(), uses, new)
    for step in steps:
        operands = tuple(new[o] for o in step.operands)
        if step in shared:
            new[step] = made.of(step, operands, *shared[step])
        elif step in own:
            new[step] = made.factor(step, own[step])
        else:
            # arguments are known by their steps
            same = all(map(is_, operands, step.operands))
            new[step] = step if same else made.builder.step(step.op, operands, step.domains, step.complex)
    return tuple(new[o] for o in outputs), {new.get(step, step): name for step, name in names.items()}


def _is_use(step: Step) -> bool:
    """A system with one matrix, or a function of one, whose factors are of the numbers that the result is of."""
    match step.op:
        case ops.Solve(adjoint=False):
            return len(step.operands) == 2 and step.operands[0].complex == step.complex
        case ops.OfMatrices():
            return _is_function(step)
        case _:
            return False


def _is_triangular_system(step: Step, matrix: Step) -> bool:
    return isinstance(step.op, ops.Solve) and _is_triangular(matrix)


def _is_triangular(matrix: Step) -> bool:
    """Whether it is the lower factor of another matrix, which has its own systems."""
    return isinstance(matrix.op, ops.Lower) or (isinstance(matrix.op, ops.OfMatrices) and matrix.op.kind == "cholesky")


def _factorised(step: Step, uses: Mapping[Step, _Uses]) -> Step | None:
    """The positive matrix whose factor a step is, of its Hermitian part, where other uses factorise it."""
    if not _is_triangular(step):
        return None
    (part,) = step.operands
    matrix, _, _ = _seen_through(part)
    match part.op:
        case ops.Mul(c) if c == HALF and [type(o.op) for o in part.operands] == [ops.Add]:
            (total,) = part.operands
            terms = [_seen_through(o)[0] for o in total.operands]
            # no other sum of two views of a square matrix is Hermitian
            if isinstance(total.op, ops.Add) and total.op.coefficients == (ONE, ONE) and terms[0] is terms[1]:
                matrix = terms[0]
    found = uses.get(matrix)
    return matrix if found is not None and found.positive else None


def _seen_through(matrix: Step) -> tuple[Step, bool, bool]:
    """What a matrix is the transpose or the conjugate of, and whether it is that."""
    half = matrix.rank // 2
    turn = (*range(half, matrix.rank), *range(half))
    transposed = conjugated = False
    while True:
        match matrix.op:
            case ops.Permute(order) if order == turn:
                transposed = not transposed
            case ops.Conj():
                conjugated = not conjugated
            case _:
                return matrix, transposed, conjugated
        (matrix,) = matrix.operands


@dataclass(frozen=True, slots=True)
class _Making:
    """Makes steps of factors; `new` has what steps have become so far."""

    builder: Builder
    uses: Mapping[Step, _Uses]
    new: Mapping[Step, Step]

    def of(self, step: Step, operands: Sequence[Step], matrix: Step, transposed: bool, conjugated: bool) -> Step:
        """What was made of a matrix, or of a view of it, made of its factors."""
        if isinstance(step.op, ops.Solve):
            return self._solution(step, matrix, operands[1], transposed, conjugated)
        factors = self._factors(matrix)
        op = ops.OfMatrices(step.op.kind) if isinstance(step.op, ops.OfMatrices) else step.op
        found = self.builder.step(op, (factors,), step.domains, step.complex)
        if transposed and step.rank:
            found = self.builder.step(ops.Permute((1, 0)), (found,), step.domains)
        return self.builder.step(ops.Conj(), (found,), step.domains) if conjugated and step.complex else found

    def factor(self, step: Step, matrix: Step) -> Step:
        """Cholesky's factor itself."""
        return self.builder.step(ops.Lower(), (self._factors(matrix),), step.domains, step.complex)

    def _factors(self, matrix: Step) -> Step:
        op = self.uses[matrix].factors
        assert op is not None, "a matrix that is factorised"
        return self.builder.step(op, (self.new[matrix],), matrix.domains, matrix.complex)

    def _solution(self, step: Step, matrix: Step, k: Step, transposed: bool, conjugated: bool) -> Step:
        """Aᵀ y = k is Aᴴ y' = k', and A' y = k is A y' = k'."""
        triangular = _is_triangular(matrix)
        factors = self.new[matrix] if triangular else self._factors(matrix)
        turned = step.complex and transposed != conjugated
        if turned and k.complex:
            k = self.builder.step(ops.Conj(), (k,), k.domains)
        found = self.builder.step(ops.Solve(transposed, triangular), (factors, k), step.domains, step.complex)
        return self.builder.step(ops.Conj(), (found,), step.domains) if turned else found
