"""The functions that emitted code brings along: as functions of NumPy, and as text for each library."""

from __future__ import annotations

import ast
import builtins
from importlib import import_module

import numpy as np
import pytest
import scipy.linalg

from combdiff.emit.backends import BACKENDS
from combdiff.emit.backends.spelling import Spelling
from combdiff.emit.solvers.library import functions_in, solver_text, with_callees
from combdiff.resources import files, resource
from solvers import numpy as solvers
from solvers import portable

FILES = [file.removesuffix(".py") for file in files("solvers") if file.endswith(".py")]
RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 4)) + 1j * RNG.normal(size=(4, 4))
K = RNG.normal(size=(4, 4)) + 1j * RNG.normal(size=(4, 4))
HERMITIAN = A + A.conj().T
POSITIVE = A @ A.conj().T


def spelling_of(backend: str) -> Spelling:
    spelling = import_module(f"combdiff.emit.backends.{backend}").SPELLING
    assert isinstance(spelling, Spelling)
    return spelling


def close(found: object, wanted: object) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-6, atol=1e-8)


def along(f, x, k, step=1e-6):
    """The derivative of a function of matrices along a matrix, by central differences."""
    return (f(x + step * k) - f(x - step * k)) / (2 * step)


def test_every_function_of_a_file_is_found() -> None:
    assert {"numpy", "portable", "jax", "torch", "cupy", "dask"} == {*FILES}
    for file in FILES:
        defined = [n for n in ast.parse(resource("solvers", f"{file}.py")).body if isinstance(n, ast.FunctionDef)]
        assert [*functions_in(file)] == [node.name for node in defined]
        assert all(ast.unparse(ast.parse(functions_in(file)[node.name])) == ast.unparse(node) for node in defined)


def missing(text: str, imports: str) -> set[str]:
    """The global names that a module reads and does not define."""
    tree = ast.parse(f"{imports}\n{text}")
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    arguments = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    bound = {node.id for node in names if not isinstance(node.ctx, ast.Load)} | arguments
    aliases = [a for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom) for a in n.names]
    caught = {n.name for n in ast.walk(tree) if isinstance(n, ast.ExceptHandler)}
    defined = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    known = bound | caught | defined | {a.asname or a.name for a in aliases} | {*dir(builtins)}
    return {node.id for node in names} - known


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_solver_stands_below_all_that_it_calls(backend: str) -> None:
    spelling = spelling_of(backend)
    names = dict.fromkeys(name for file in spelling.solvers for name in functions_in(file))
    for name in names:
        order = with_callees([name], spelling)
        assert order[-1] == name
        assert not missing("\n\n\n".join(solver_text(n, spelling) for n in order), spelling.imports)
        for n, other in enumerate(order[:-1]):
            rest = "\n\n\n".join(solver_text(o, spelling) for m, o in enumerate(order) if m != n)
            assert missing(rest, spelling.imports) == {other}


def test_newton_finds_the_root_of_a_system() -> None:
    close(solvers.newton(lambda x: (A.real @ x - K[0].real, A.real), np.zeros(4)), np.linalg.solve(A.real, K[0].real))
    roots = [[next(r.real for r in np.roots([1, 0, 1, -a]) if abs(r.imag) < 1e-12) for a in row] for row in A.real]
    close(solvers.newton_of_entries(lambda x: (x**3 + x - A.real, 3 * x**2 + 1), A.real), roots)
    with pytest.raises(ArithmeticError):
        solvers.newton(lambda x: (x**2 + 1, 2 * x), np.full((), 0.7))


def test_newton_solves_what_is_linear_over_the_reals_only() -> None:
    def apply(x):
        return A @ x + K @ x.conj()

    close(apply(solvers.solve_of_parts(A + K, 1j * (A - K), A[0])), A[0])
    # Newton's method is given pullbacks
    back_one, back_i = A.conj().T + K.T, 1j * (A.conj().T - K.T)
    close(apply(solvers.newton_of_parts(lambda x: (apply(x) - A[0], back_one, back_i), np.zeros(4, complex))), A[0])


def test_factors_solve_and_invert() -> None:
    lu, cholesky = solvers.lu_factors(A), solvers.cholesky(POSITIVE, "P")
    close(solvers.lu_solution(lu, K), np.linalg.solve(A, K))
    close(solvers.lu_solution(lu, K, adjoint=True), np.linalg.solve(A.conj().T, K))
    close(solvers.lu_inv(lu), np.linalg.inv(A))
    sign, logarithm = np.linalg.slogdet(A)
    close([solvers.lu_det(lu), solvers.lu_sign(lu), solvers.lu_logabsdet(lu)], [np.linalg.det(A), sign, logarithm])
    close(np.exp(solvers.lu_logdet(lu)), np.linalg.det(A))
    close(np.exp(solvers.logdet(A)), np.linalg.det(A))
    for module in (solvers, portable):
        close(module.cholesky_solution(cholesky, K), np.linalg.solve(POSITIVE, K))
    close(solvers.cholesky_inv(cholesky), np.linalg.inv(POSITIVE))
    close(solvers.cholesky_det(cholesky), np.linalg.det(POSITIVE))
    close(solvers.cholesky_logdet(cholesky), np.linalg.slogdet(POSITIVE)[1])
    with pytest.raises(np.linalg.LinAlgError, match="P is not positive definite"):
        solvers.cholesky(-POSITIVE, "P")


def test_derivatives_of_functions_of_matrices_agree_with_differences() -> None:
    def adjugate(x):
        return np.linalg.det(x) * np.linalg.inv(x)

    close(solvers.adjugate(A), adjugate(A))
    close(solvers.adjugate_along(A, K), along(adjugate, A, K))
    close(solvers.expm_along(A, K), scipy.linalg.expm_frechet(A, K)[1])
    for module in (solvers, portable):
        close(module.sqrtm(POSITIVE), scipy.linalg.sqrtm(POSITIVE))
    root = solvers.sqrtm(POSITIVE)
    found = solvers.sqrtm_along(POSITIVE, K)
    close(root @ found + found @ root, K)
    eigen = np.linalg.eigh(POSITIVE)
    close(solvers.hermitian_sqrtm(eigen), root)
    close(solvers.hermitian_sqrtm_along(eigen, K), found)


def test_derivatives_of_values_and_factors_agree_with_differences() -> None:
    direction = K + K.conj().T
    close(solvers.eigvals_along(np.linalg.eigh(HERMITIAN), direction), along(np.linalg.eigvalsh, HERMITIAN, direction))
    close(solvers.svdvals_along(solvers.svd(A), K), along(lambda x: np.linalg.svd(x)[1], A, K))
    factor = solvers.cholesky(POSITIVE, "P")
    moved = solvers.cholesky_along(factor, direction)
    close(moved, along(np.linalg.cholesky, POSITIVE, direction))
    # the adjoint of the derivative, by the inner product
    back = solvers.cholback(factor, A)
    close(np.vdot(np.tril(A), moved).real, np.vdot(back, direction).real)


def test_norms_neither_overflow_nor_vanish() -> None:
    for module in (solvers, portable):
        for scale in (1e-200, 1.0, 1e200):
            close(module.euclidean_norm(scale * A.real) / scale, np.linalg.norm(A.real, axis=-1))


@pytest.mark.parametrize("module", [solvers, portable])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_powers_are_those_of_numpy(module, count) -> None:
    close(module.powers(A.real, count), A.real ** np.arange(count)[:, None, None])


def test_a_loop_stores_what_each_step_returns() -> None:
    x = np.arange(1.0, 5)
    (total, products) = solvers.scan(lambda s, x: (s + x, s * x), [0.0], [x], [((4,), float)], 4)
    assert total == 10 and products.tolist() == [0, 2, 9, 24]
    with pytest.raises(FloatingPointError, match="the state s becomes nan in step 3"):
        solvers.watch_states(("s",), (np.array(np.nan),), (np.array(1.0),), "3")
