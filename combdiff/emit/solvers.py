"""The solvers that emitted source brings along, as text: it stands alone, so that each is written into it once."""

from __future__ import annotations

from collections.abc import Mapping

from combdiff.arrays import ops
from combdiff.arrays.plan import Argument, Root, Scan, Step
from combdiff.emit.backends.spelling import Spelling
from combdiff.emit.names import words
from combdiff.emit.texts import Text, Writer
from combdiff.errors import Mention, UnsupportedError
from combdiff.language.printing.document import ATOM
from combdiff.terms.types import Index

NEWTON = '''def newton(equation, x, steps=60):
    """The x at which the residual is 0; equation(x) is the residual and its Jacobian matrix."""
    n = np.size(x)
    for _ in range(steps):
        residual, slopes = equation(x)
        step = np.linalg.solve(np.reshape(slopes, (n, n)), np.ravel(residual)).reshape(np.shape(x))
        share = 1.0
        while share > 1e-6 and np.linalg.norm(equation(x - share * step)[0]) > np.linalg.norm(residual):
            share /= 2
        x = x - share * step
        if np.linalg.norm(step) <= 1e-12 * max(1.0, np.linalg.norm(x)):
            return x
    raise ArithmeticError("Newton's method finds no root from its start")'''

NEWTON_OF_PARTS = '''def newton_of_parts(equation, x, steps=60):
    """The complex x at which the residual is 0; equation(x) is it, and its pullback of units and of i times units."""
    n = np.size(x)
    for _ in range(steps):
        residual, of_one, of_i = equation(x)
        columns = [np.reshape(part, (n, n)) for part in (of_one, of_i)]
        slopes = np.block([[part.real for part in columns], [part.imag for part in columns]]).T
        step = np.linalg.solve(slopes, np.concatenate([np.ravel(residual).real, np.ravel(residual).imag]))
        step = (step[:n] + 1j * step[n:]).reshape(np.shape(x))
        share = 1.0
        while share > 1e-6 and np.linalg.norm(equation(x - share * step)[0]) > np.linalg.norm(residual):
            share /= 2
        x = x - share * step
        if np.linalg.norm(step) <= 1e-12 * max(1.0, np.linalg.norm(x)):
            return x
    raise ArithmeticError("Newton's method finds no root from its start")'''

SOLVE_OF_PARTS = '''def solve_of_parts(of_one, of_i, k):
    """The y with H(y) = k, for an H linear over the reals with these values on units and on i times units."""
    n = np.size(k)
    columns = [np.reshape(part, (n, n)) for part in (of_one, of_i)]
    matrix = np.block([[part.real for part in columns], [part.imag for part in columns]])
    y = np.linalg.solve(matrix, np.concatenate([np.ravel(k).real, np.ravel(k).imag]))
    return (y[:n] + 1j * y[n:]).reshape(np.shape(k))'''

LU_FACTORS = '''def lu_factors(matrix):
    """The LU factors of a matrix, which several systems are solved with."""
    from scipy.linalg.lapack import get_lapack_funcs

    if not len(matrix):
        # which LAPACK refuses
        return matrix, np.arange(0)
    (factorised,) = get_lapack_funcs(["getrf"], [matrix])
    lu, pivots, zero = factorised(matrix)
    if zero > 0:
        raise np.linalg.LinAlgError("Singular matrix")
    return lu, pivots'''

LU_SOLUTION = '''def lu_solution(factors, k, adjoint=False):
    """The solution of a system, or of the one of the adjoint matrix."""
    from scipy.linalg import lu_solve

    return lu_solve(factors, k, 2 * adjoint, check_finite=False)'''

CHOLESKY_SOLUTION = '''def cholesky_solution(factor, k):
    """The solution of a system with a positive matrix."""
    from scipy.linalg import solve_triangular

    y = solve_triangular(factor, k, 0, lower=True, check_finite=False)
    return solve_triangular(factor, y, 2, lower=True, check_finite=False)'''

LOGDET = '''def logdet(matrix):
    """The logarithm of the determinant; of a real one below 0 it is nan."""
    sign, logarithm = np.linalg.slogdet(matrix)
    return np.log(sign) + logarithm'''

ADJUGATE = '''def adjugate(matrix):
    """det(A) inv(A), from singular values: what is singular has one, too."""
    u, values, vh = np.linalg.svd(matrix)
    same = np.eye(matrix.shape[-1]) > 0
    others = np.where(same, 1.0, values[..., None, :]).prod(-1)
    phase = np.linalg.det(u) * np.linalg.det(vh)
    return phase[..., None, None] * ((vh.conj().swapaxes(-1, -2) * others[..., None, :]) @ u.conj().swapaxes(-1, -2))'''

ADJUGATE_ALONG = '''def adjugate_along(matrix, direction):
    """The derivative of the adjugate at a matrix along another one."""
    u, values, vh = np.linalg.svd(matrix)
    left, right = u.conj().swapaxes(-1, -2), vh.conj().swapaxes(-1, -2)
    moved = left @ direction @ right
    unit = np.eye(matrix.shape[-1])
    # the products of all singular values but two
    rest = (1 - unit) * np.where((unit[:, None] + unit) > 0, 1.0, values[..., None, None, :]).prod(-1)
    traces = (rest * (moved * unit).sum(-1)[..., None, :]).sum(-1)
    phase = np.linalg.det(u) * np.linalg.det(vh)
    return phase[..., None, None] * (right @ (traces[..., None] * unit - rest * moved) @ left)'''

SQRTM = '''def sqrtm(matrix):
    """The principal root of a matrix; nan where a real one has none that is real."""
    from scipy.linalg import sqrtm

    if not matrix.size:
        return matrix
    root = np.reshape([sqrtm(each) for each in matrix.reshape(-1, *matrix.shape[-2:])], matrix.shape)
    if np.iscomplexobj(matrix) or not np.iscomplexobj(root):
        return root
    rounding = 1e-6 * np.abs(root).max((-2, -1), keepdims=True)
    return np.where(np.abs(root.imag).max((-2, -1), keepdims=True) <= rounding, root.real, np.nan)'''

# where there is no SciPy: the iteration of Denman and Beavers (Higham, Functions of Matrices, 2008, Section 6.5)
_ITERATED_SQRTM = '''def sqrtm(matrix):
    """The principal root of a matrix; nan where a real one has none that is real."""
    n = matrix.shape[-1]
    unit = np.eye(n, dtype=matrix.dtype)
    root = rest = matrix
    for step in range(24):
        inverse = np.linalg.inv(rest)
        scale = np.exp(-np.linalg.slogdet(rest)[1] / max(n, 1))[..., None, None] if step < 8 else 1.0
        root = root @ (unit * scale**0.5 + inverse / scale**0.5) / 2
        rest = (unit + (rest * scale + inverse / scale) / 2) / 2
    off = abs(root @ root - matrix).sum((-2, -1))[..., None, None]
    return np.where(off <= 1e-6 * abs(matrix).sum((-2, -1))[..., None, None], root, np.nan)'''

SQRTM_ALONG = '''def sqrtm_along(matrix, direction):
    """The X with S X + X S = K, for the root S of a matrix and a direction K."""
    from scipy.linalg import solve_sylvester

    if not matrix.size:
        return matrix
    shape = np.broadcast_shapes(matrix.shape, direction.shape)
    stacks = (np.broadcast_to(each, shape).reshape(-1, *shape[-2:]) for each in (sqrtm(matrix), direction))
    return np.reshape([solve_sylvester(root, root, each) for root, each in zip(*stacks)], shape)'''

_EIGEN = """    values, vectors = eigen
    # an eigenvalue that is all rounding may lie below 0
    noise = 1e-15 * abs(values).sum(-1)[..., None]
    roots = np.sqrt(np.where(abs(values) <= noise, 0 * values, values).astype(vectors.dtype))
    adjoint = vectors.conj().swapaxes(-1, -2)
"""

HERMITIAN_SQRTM = (
    '''def hermitian_sqrtm(eigen):
    """The principal root of a Hermitian matrix with these eigenvectors; nan where a real one has none that is real."""
'''
    + _EIGEN
    + """    return (vectors * roots[..., None, :]) @ adjoint"""
)

HERMITIAN_SQRTM_ALONG = (
    '''def hermitian_sqrtm_along(eigen, direction):
    """The X with S X + X S = K, for the root S of a Hermitian matrix and a direction K."""
'''
    + _EIGEN
    + """    inner = (adjoint @ direction @ vectors) / (roots[..., None] + roots[..., None, :])
    return vectors @ inner @ adjoint"""
)

EXPM = '''def expm(matrix):
    """The exponential of a matrix."""
    from scipy.linalg import expm

    return expm(matrix)'''

_ALONG = """    n = matrix.shape[-1]
    # it is linear in the direction, which is made small: a large one costs digits
    size = abs(direction).sum((-2, -1))[..., None, None]
    size = size + (size == 0)
    upper = np.concatenate([matrix, direction / size], -1)
    lower = np.concatenate([np.zeros_like(matrix), matrix], -1)
    return size * {}(np.concatenate([upper, lower], -2))[..., :n, n:]"""

EXPM_ALONG = '''def expm_along(matrix, direction):
    """The derivative of the exponential at a matrix along another one: a block of the exponential of four blocks."""
''' + _ALONG.format("expm")

WITHOUT_SCIPY = {
    SQRTM: _ITERATED_SQRTM,
    SQRTM_ALONG: SQRTM_ALONG.partition("    from")[0] + _ALONG.format("sqrtm"),
}
"""Other texts of solvers, for libraries that have nothing like SciPy's functions."""

SCAN = '''def scan(step, states, sequences, stored, length, reverse=False):
    """The states after all steps of a loop, and what each step stores, of these shapes and types."""
    count = len(states)
    stored = [np.empty(shape, dtype=kind) for shape, kind in stored]
    for t in reversed(range(length)) if reverse else range(length):
        found = step(*states, *(x[t] for x in sequences))
        states = found[:count]
        for whole, part in zip(stored, found[count:]):
            whole[t] = part
    return (*states, *stored)'''

ADDED_AT = '''def added_at(shape, places, values):
    """Zeros, to which values are added at places, index arrays of NumPy: a task for all of them."""
    from dask import delayed

    def added(values):
        whole = np.zeros(shape, values.dtype)
        np.add.at(whole, places, values)
        return whole

    return da.from_delayed(delayed(added)(values), shape, values.dtype)'''

SOLVERS = {
    "added_at": ADDED_AT,
    "newton": NEWTON,
    "newton_of_parts": NEWTON_OF_PARTS,
    "solve_of_parts": SOLVE_OF_PARTS,
    "lu_factors": LU_FACTORS,
    "lu_solution": LU_SOLUTION,
    "cholesky_solution": CHOLESKY_SOLUTION,
    "logdet": LOGDET,
    "adjugate": ADJUGATE,
    "adjugate_along": ADJUGATE_ALONG,
    "sqrtm": SQRTM,
    "sqrtm_along": SQRTM_ALONG,
    "hermitian_sqrtm": HERMITIAN_SQRTM,
    "hermitian_sqrtm_along": HERMITIAN_SQRTM_ALONG,
    "expm": EXPM,
    "expm_along": EXPM_ALONG,
    "scan": SCAN,
}


def solvers_of(step: Step, spelling: Spelling) -> list[str]:
    """The names of the solvers that the text of a step needs: what one calls comes first."""
    name = solver_of(step, spelling)
    inner = name.removesuffix("_along") if name in ("sqrtm_along", "expm_along") else ""
    return [n for n in (inner, name) if n]


def solver_text(name: str, spelling: Spelling) -> str:
    """The solver in the words of an array library."""
    text = SOLVERS[name]
    if not spelling.scipy:
        text = WITHOUT_SCIPY.get(text, text)
    for word, own in spelling.solver_words.items():
        text = text.replace(word, own)
    return text


def solver_of(step: Step, spelling: Spelling) -> str:
    """The name of the solver that the text of a step calls, empty if none."""
    match step.op:
        case ops.Scatter(adds=True):
            return "" if spelling.add_at else spelling.added_at
        case Root(equation):
            return "newton" if len(equation.plan.outputs) == 2 else "newton_of_parts"
        case Scan():
            return "scan"
        case ops.Factors(positive):
            return "" if positive else "lu_factors"
        case ops.OfMatrices(kind, hermitian=True):
            return f"hermitian_{kind}"
        case ops.OfMatrices(kind):
            return "" if kind in _IN_LIBRARIES else kind
        case ops.Solve() if len(step.operands) > 2:
            return "solve_of_parts"
        case ops.Solve() if isinstance(step.operands[0].op, ops.Factors):
            return "cholesky_solution" if step.operands[0].op.positive else "lu_solution"
        case _:
            return ""


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
    other = ", adjoint=True" if op.adjoint and solver == "lu_solution" else ""
    template = f"{solver}({{0}}, {{1}}{other})" if solver else w.spelling.solve
    matrix = matrices[0] if solver else _as_matrix(w, step.operands[0])
    own = step.operands[0].rank // 2
    if own == 1 and step.rank <= 2:
        return Text(template.format(matrix.code, k.code), ATOM)
    rows, several = (" * ".join(map(w.extent, part)) for part in (step.domains[:own], step.domains[own:]))
    joined = f"reshape({rows}, {several})" if several else "ravel()"
    flat = template.format(matrix.code, f"{k.at(ATOM)}.{joined}")
    return Text(f"{flat}.reshape({', '.join(w.extent(d) for d in step.domains)})", ATOM)


_IN_LIBRARIES = {"det": "det({})", "inv": "inv({})", "logabsdet": "slogdet({})[1]"}
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
    template = f"{name}({{}})" if name else w.spelling.linear_algebra + _IN_LIBRARIES[op.kind]
    first, *along = (w.refer(o).code for o in step.operands)
    if op.hermitian and not isinstance(step.operands[0].op, ops.Factors):
        first = f"{w.spelling.linear_algebra}eigh({first})"
    return Text(template.format(", ".join([first, *along])), ATOM)


def factors(w: Writer, step: Step, op: ops.Factors) -> Text:
    if op.eigen:
        _refuse_matrices(w, "sqrtm")
        return Text(f"{w.spelling.linear_algebra}eigh({w.refer(step.operands[0]).code})", ATOM)
    _refuse_equations(w)
    template = w.spelling.cholesky if op.positive else f"{solver_of(step, w.spelling)}({{0}})"
    return Text(template.format(_as_matrix(w, step.operands[0]).code), ATOM)


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
    captured = dict(zip(solved.captured, (w.refer(o).code for o in step.operands), strict=True))
    others = [a for a in solved.plan.arguments if a.name != solved.unknown and not a.optional]
    given = [_given(w, a, captured) for a in others]
    equation = w.called.above[solved]
    mentioned = words(" ".join([equation, *given]))
    x = next(n for n in ("x", "y", "z", "u", "v", "w", *(f"x{m}" for m in range(2, 1 << 20))) if n not in mentioned)
    # the unknown is the first argument of the residual
    call = f"{equation}({', '.join([x, *given])})"
    zeros = w.spelling.zeros_complex if step.complex else w.spelling.zeros
    number = w.spelling.number_complex.format("0j") if step.complex else w.spelling.number.format("0.0")
    zero = zeros.format(w.shape(step.domains)) if step.rank else number
    start = w.called.arguments[solved.start]
    return Text(f"{solver_of(step, w.spelling)}(lambda {x}: {call}, {zero} if {start} is None else {start})", ATOM)


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
    captured = dict(zip(names[moving:], texts[moving:], strict=True))
    given = [_given(w, a, captured) for a in body.plan.arguments if a.name not in names[:moving]]
    call = w.called.above[body]
    if given:
        own = next(
            n for n in ("now", "moving", *(f"now{m}" for m in range(2, 1 << 20))) if n not in words(" ".join(given))
        )
        call = f"lambda *{own}: {call}(*{own}, {', '.join(given)})"
    stored = [
        f"({w.shape(at)}, {w.spelling.complex_type if c else w.spelling.float_type})"
        for at, c in op.items[body.states :]
    ]
    parts = (texts[: body.states], texts[body.states : moving], stored)
    lists = ", ".join(f"[{', '.join(part)}]" for part in parts)
    return Text(f"scan({call}, {lists}, {w.extent(op.domain)}{', reverse=True' if op.reverse else ''})", ATOM)


def _given(w: Writer, argument: Argument, captured: Mapping[str, str]) -> str:
    """What an equation is given for one of its arguments."""
    if argument.name in captured:
        return captured[argument.name]
    if isinstance(argument.kind, Index) and argument.kind.domain is not None:
        return w.extent(argument.kind.domain)
    return w.called.arguments[argument.name]
