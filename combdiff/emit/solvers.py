"""Writes steps that call solvers, and takes the solvers' text from `solvers/`: emitted source stands alone."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, count

from combdiff.arrays import ops
from combdiff.arrays.plan import Argument, Recurrence, Root, Scan, Step
from combdiff.emit.backends.spelling import Spelling
from combdiff.emit.names import words
from combdiff.emit.texts import Text, Writer
from combdiff.errors import Mention, UnsupportedError
from combdiff.language.printing.document import ATOM, MAP
from combdiff.resources import files, resource
from combdiff.terms.nodes import OBLONG
from combdiff.terms.types import Index

_FUNCTION = re.compile(r"^def (\w+)\(.*?(?=\n\n\n|\n\Z)", re.MULTILINE | re.DOTALL)
_CALL = re.compile(r"(?<![.\w])(\w+)\(")


@cache
def functions_in(file: str) -> dict[str, str]:
    """The texts of the functions in a file of `solvers/`, by their names.

    >>> print(functions_in("torch")["expm"])
    def expm(matrix):
        \"""The exponential of a matrix.\"""
        return torch.linalg.matrix_exp(matrix)
    """
    return {found[1]: found[0] for found in _FUNCTION.finditer(resource("solvers", f"{file}.py"))}


@cache
def solver_names() -> frozenset[str]:
    """The names of all solvers, which code uses for nothing else."""
    stems = (file.removesuffix(".py") for file in files("solvers") if file.endswith(".py"))
    return frozenset(name for stem in stems for name in functions_in(stem))


def solver_text(name: str, spelling: Spelling) -> str:
    """The text of a solver for an array library: its own, or that of another one in its words.

    >>> from combdiff.emit.backends.jax import SPELLING
    >>> print(solver_text("lu_logabsdet", SPELLING).splitlines()[-1].strip())
    return jnp.log(abs(jnp.diagonal(factors[0]))).sum()
    """
    file = next(file for file in spelling.solvers if name in functions_in(file))
    text = functions_in(file)[name]
    if file != spelling.name:
        for word, own in spelling.solver_words.items():
            text = text.replace(word, own)
    return text


def with_callees(names: Iterable[str], spelling: Spelling) -> list[str]:
    """Solvers with all that they call, each below what it calls.

    >>> from combdiff.emit.backends.numpy import SPELLING
    >>> with_callees(["lu_det", "lu_sign"], SPELLING)
    ['parity_of_swaps', 'lu_det', 'lu_sign']
    """
    found: dict[str, None] = {}

    def add(name: str) -> None:
        called = {*_CALL.findall(solver_text(name, spelling))} & solver_names() - {name}
        for callee in sorted(called - found.keys()):
            add(callee)
        found[name] = None

    for name in names:
        add(name)
    return list(found)


def solvers_of(step: Step, spelling: Spelling) -> list[str]:
    """The names of the solvers that the text of a step needs: what one calls comes first."""
    name = solver_of(step, spelling)
    own = (
        isinstance(step.op, ops.OfMatrices)
        and step.op.kind in OBLONG
        and not isinstance(step.operands[0].op, ops.Factors)
    )
    watching = _watching(spelling) if isinstance(step.op, Scan) else ()
    inverted = "inverted" if isinstance(step.op, Root) and step.op.equation.inverse else ""
    return with_callees(filter(None, ("svd" if own else "", name, inverted, *watching)), spelling)


def _watching(spelling: Spelling) -> tuple[str, ...]:
    """The functions that watch the states of loops, where that is asked for."""
    if not spelling.watches:
        return ()
    return ("watch_first", "watch_states") if spelling.loops else ("watched_scan",)


def solver_of(step: Step, spelling: Spelling) -> str:
    """The name of the solver that the text of a step calls, empty if none."""
    match step.op:
        case ops.Norm():
            return "euclidean_norm"
        case ops.Power() if is_every_power(step, step.op):
            return "powers"
        case ops.Scatter(adds=True):
            return "" if spelling.add_at else spelling.added_at
        case Root(equation):
            return _newton(*equation.plan.outputs)
        case Scan():
            return "" if spelling.loops else "scan"
        case ops.Factors(singular=True):
            return "svd"
        case ops.Factors(positive, eigen):
            return "cholesky" if positive else "" if eigen else "lu_factors"
        case ops.OfMatrices(kind, hermitian=True):
            return f"hermitian_{kind}"
        case ops.OfMatrices("svdvals"):
            return "" if isinstance(step.operands[0].op, ops.Factors) else "svd"
        case ops.OfMatrices(kind) if kind in ops.FACTORED and isinstance(step.operands[0].op, ops.Factors):
            return f"{'cholesky' if step.operands[0].op.positive else 'lu'}_{kind}"
        case ops.OfMatrices(kind):
            return "" if kind in _IN_LIBRARIES else kind
        case ops.Solve() if len(step.operands) > 2:
            return "solve_of_parts"
        case ops.Solve(triangular=True):
            return "triangular_solution"
        case ops.Solve() if isinstance(step.operands[0].op, ops.Factors):
            return "cholesky_solution" if step.operands[0].op.positive else "lu_solution"
        case _:
            return ""


def _newton(residual: Step, *slopes: Step) -> str:
    """Newton's method: for a Jacobian matrix, its two parts, or slopes of each entry by its own unknown."""
    if len(slopes) > 1:
        return "newton_of_parts"
    return "newton_of_entries" if residual.rank and slopes[0].rank == residual.rank else "newton"


def is_every_power(step: Step, op: ops.Power) -> bool:
    """Whether the exponent takes the values 0, 1, 2, … along an axis of its own: x(i)^j."""
    base, exponent = step.operands
    (of_base, of_exponent) = op.places
    if not isinstance(exponent.op, ops.Numbers) or not base.rank or base.rank + 1 != step.rank:
        return False
    (domain,) = exponent.domains
    return of_exponent[0] not in of_base and domain.first(2) == 0


def powers(w: Writer, step: Step, op: ops.Power) -> Text:
    """All powers by products; logarithms and exponentials, of each, take ten times as long."""
    base, exponent = step.operands
    made = Text(f"powers({w.refer(base).code}, {w.alone(exponent.domains[0])})", ATOM)
    return w.placed(made, (*op.places[1], *op.places[0]), step.rank)


def norm(w: Writer, step: Step, op: ops.Norm) -> Text:
    return Text(f"{solver_of(step, w.spelling)}({w.refer(step.operands[0]).code})", ATOM)


def _refuse_equations(w: Writer) -> None:
    if not w.spelling.solve:
        raise UnsupportedError(
            f"the result solves equations, which combdiff does not support for {w.spelling.name}",
            about=Mention("root", called=True),
            remedy='choose another backend, such as "numpy"',
        )


def solution(w: Writer, step: Step, op: ops.Solve) -> Text:
    _refuse_equations(w)
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


_IN_LIBRARIES = {"det": "det({})", "inv": "inv({})", "logabsdet": "slogdet({})[1]", "eigvals": "eigvalsh({})"}
"""Functions of matrices that array libraries have."""


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
    template = f"{name}({{}})" if name else w.spelling.linear_algebra + _IN_LIBRARIES[op.kind]
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
    _refuse_equations(w)
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


def root(w: Writer, step: Step, op: Root) -> Text:
    _refuse_equations(w)
    solved = op.equation
    captured = dict(zip(solved.captured, (w.refer(o).code for o in step.operands), strict=False))
    others = [a for a in solved.plan.arguments if a.name != solved.unknown and not a.optional]
    given = [_given(w, a, captured) for a in others]
    equation = w.called.above[solved]
    x = _unused(("x", "y", "z", "u", "v", "w"), words(" ".join([equation, *given])))
    # the unknown is the first argument of the residual
    call = f"{equation}({', '.join([x, *given])})"
    zeros = w.spelling.zeros_complex if step.complex else w.spelling.zeros
    number = w.spelling.number_complex.format("0j") if step.complex else w.spelling.number.format("0.0")
    zero = zeros.format(w.shape(step.domains)) if step.rank else number
    start = w.called.arguments[solved.start]
    found = f"{solver_of(step, w.spelling)}(lambda {x}: {call}, {zero} if {start} is None else {start})"
    if not solved.inverse:
        return Text(found, ATOM)
    inverse, y = w.called.arguments[solved.inverse], w.refer(step.operands[-1]).code
    undone = f'inverted(lambda {x}: {call}, {inverse}, {y}, "{inverse}")'
    lines = (found, f"if {inverse} is None", f"else {undone}")
    return Text(" ".join(lines), MAP, lines)


def _unused(names: Sequence[str], mentioned: Collection[str]) -> str:
    """The first of some names that is not mentioned, or the first name with a number."""
    return next(name for name in chain(names, (f"{names[0]}{n}" for n in count(2))) if name not in mentioned)


def scan(w: Writer, step: Step, op: Scan) -> Text:
    """A loop: a step that is given what is the same for all, the first states, sequences, and shapes for the rest."""
    if not w.spelling.scan:
        raise UnsupportedError(
            f"the result is computed in a loop, which combdiff does not support for {w.spelling.name}",
            remedy='choose another backend, such as "numpy"',
        )
    body, moving = op.body, op.body.states + op.body.sequences
    texts = [w.refer(o).code for o in step.operands]
    names = [a.name for a in body.plan.arguments if a.step is not None]
    for n, (state, operand) in enumerate(zip(body.arrays[: body.states], step.operands, strict=False)):
        texts[n] = w.state(operand, w.refer(operand), state.complex).code
    captured = dict(zip(names[moving:], texts[moving:], strict=True))
    given = [_given(w, a, captured) for a in body.plan.arguments if a.name not in names[:moving]]
    call = w.called.above[body]
    if given:
        own = _unused(("now", "moving"), words(" ".join(given)))
        call = f"lambda *{own}: {call}(*{own}, {', '.join(given)})"
    stored = [
        f"({w.shape(at)}, {w.spelling.complex_type if c else w.spelling.float_type})"
        for at, c in op.items[body.states :]
    ]
    parts = (texts[: body.states], texts[body.states : moving], stored)
    lists = ", ".join(f"[{', '.join(part)}]" for part in parts)
    watched = f"watched_scan({names_of(body)}, " if w.spelling.watches else "scan("
    return Text(f"{watched}{call}, {lists}, {w.alone(op.domain)}{', reverse=True' if op.reverse else ''})", ATOM)


def names_of(body: Recurrence) -> str:
    """What the program calls the states of a loop, as a tuple of texts."""
    return str(tuple(a.name for a in body.plan.arguments if a.step is not None)[: body.states])


def _given(w: Writer, argument: Argument, captured: Mapping[str, str]) -> str:
    """What an equation is given for one of its arguments."""
    if argument.name in captured:
        return captured[argument.name]
    if isinstance(argument.kind, Index) and argument.kind.domain is not None:
        return w.extent(argument.kind.domain)
    return w.called.arguments[argument.name]
