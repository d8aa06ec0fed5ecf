"""Writes functions of whole matrices, their factors, and solutions of linear equations."""

from __future__ import annotations

from combdiff.arrays import ops
from combdiff.arrays.plan import Step
from combdiff.emit.solvers.chosen import IN_LIBRARIES, solver_of
from combdiff.emit.texts import Text, Writer
from combdiff.errors import Mention, UnsupportedError
from combdiff.language.printing.document import ATOM


def norm(w: Writer, step: Step, op: ops.Norm) -> Text:
    return Text(f"{solver_of(step, w.spelling)}({w.refer(step.operands[0]).code})", ATOM)


def solution(w: Writer, step: Step, op: ops.Solve) -> Text:
    refuse_equations(w)
    *matrices, k = (w.refer(o) for o in step.operands)
    if len(matrices) > 1:
        return Text(f"solve_of_parts({', '.join(t.code for t in (*matrices, k))})", ATOM)
    solver = solver_of(step, w.spelling)
    # a matrix that has one factor is its own adjoint
    other = ", adjoint=True" if op.adjoint and solver in ("lu_solution", "triangular_solution") else ""
    template = f"{solver}({{0}}, {{1}}{other})" if solver else w.spelling.solve
    matrix = matrices[0] if solver else _as_matrix(w, step.operands[0])
    own = step.operands[0].rank // 2
    if own == 1 and step.rank <= 2:
        return Text(template.format(matrix.code, k.code), ATOM)
    rows, several = (" * ".join(map(w.extent, part)) for part in (step.domains[:own], step.domains[own:]))
    joined = f"reshape({rows}, {several})" if several else "ravel()"
    flat = template.format(matrix.code, f"{k.at(ATOM)}.{joined}")
    return Text(f"{flat}.reshape({', '.join(map(w.alone, step.domains))})", ATOM)


def _refuse_matrices(w: Writer, name: str) -> None:
    if not w.spelling.solve:
        raise UnsupportedError(
            f"the result has the function {name} of a matrix, which combdiff does not support for {w.spelling.name}",
            about=Mention(name, called=True),
            remedy='choose another backend, such as "numpy"',
        )


def of_matrices(w: Writer, step: Step, op: ops.OfMatrices) -> Text:
    """`np.linalg.inv(A)`, or a function that the text brings along."""
    _refuse_matrices(w, op.kind)
    name = solver_of(step, w.spelling)
    first, *along = (w.refer(o) for o in step.operands)
    needed = ops.factors_for(op.kind, op.hermitian)
    if op.kind in ("eigvals", "svdvals"):
        return _values(w, step, first)
    template = f"{name}({{}})" if name else w.spelling.linear_algebra + IN_LIBRARIES[op.kind]
    code = first.code
    if needed is not None and not isinstance(step.operands[0].op, ops.Factors):
        code = f"svd({code})" if needed.singular else f"{w.spelling.linear_algebra}eigh({code})"
    about = [repr(op.about)] if op.kind == "cholesky" else ["single=False"] if op.together else []
    return Text(template.format(", ".join([code, *(t.code for t in along), *about])), ATOM)


def _values(w: Writer, step: Step, matrix: Text) -> Text:
    """Eigenvalues or singular values, perhaps with their vectors known."""
    known = isinstance(step.operands[0].op, ops.Factors)
    if isinstance(step.op, ops.OfMatrices) and step.op.kind == "svdvals":
        return Text(f"{matrix.at(ATOM)}[1]" if known else f"svd({matrix.code})[1]", ATOM)
    return Text(f"{matrix.at(ATOM)}[0]" if known else f"{w.spelling.linear_algebra}eigvalsh({matrix.code})", ATOM)


def factors(w: Writer, step: Step, op: ops.Factors) -> Text:
    if op.singular:
        _refuse_matrices(w, "svdvals")
        return Text(f"svd({w.refer(step.operands[0]).code})", ATOM)
    if op.eigen:
        _refuse_matrices(w, "sqrtm")
        return Text(f"{w.spelling.linear_algebra}eigh({w.refer(step.operands[0]).code})", ATOM)
    refuse_equations(w)
    about = f", {op.about!r}" if op.positive else ""
    return Text(f"{solver_of(step, w.spelling)}({_as_matrix(w, step.operands[0]).code}{about})", ATOM)


def lower(w: Writer, step: Step, op: ops.Lower) -> Text:
    """The only array among Cholesky's factors."""
    return w.refer(step.operands[0])


def _as_matrix(w: Writer, step: Step) -> Text:
    """A matrix whose rows and columns have several axes as one that has two."""
    half = step.rank // 2
    if half == 1:
        return w.refer(step)
    rows, columns = (" * ".join(map(w.extent, part)) for part in (step.domains[:half], step.domains[half:]))
    return Text(f"{w.atom(step)}.reshape({rows}, {columns})", ATOM)


def refuse_equations(w: Writer) -> None:
    if not w.spelling.solve:
        raise UnsupportedError(
            f"the result solves equations, which combdiff does not support for {w.spelling.name}",
            about=Mention("root", called=True),
            remedy='choose another backend, such as "numpy"',
        )
