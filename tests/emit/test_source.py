"""Generated source stands alone, calls BLAS for matrix products, shares what is common, and reads as if by hand."""

from __future__ import annotations

import ast
import subprocess
import sys
from itertools import permutations

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.lower.lower import lower
from combdiff.emit.emit import source
from combdiff.errors import UnsupportedError
from combdiff.run.executing import compile_source
from combdiff.terms.terms import (
    TWO,
    App,
    Diff,
    Lam,
    Term,
    Tuple,
    Var,
    add,
    call,
    conj,
    delta,
    fresh,
    let,
    mul,
    number,
    power,
    sub,
    total,
)
from combdiff.terms.types import REAL, Domain, Map
from tests import random_terms as rt

n, m = Domain("C.1"), Domain("C.2")
p, q, r, s = (rt.index(c, n) for c in "pqrs")
i, j = rt.index("i", m), rt.index("j", m)
J = rt.tensor("J", n, n, n, n, complex=True)
C = rt.tensor("C", n, m, complex=True)
A, B = (rt.tensor(c, n, n, complex=True) for c in "AB")
x = rt.tensor("x", n, complex=True)
y = rt.tensor("y", n)
T = rt.tensor("T", n, n, n)


def code(t: Term) -> list[str]:
    """The lines of the body, docstring and sizes left out."""
    text = source(t)
    ast.parse(text)
    lines = [line.strip() for line in text.split('"""')[2].splitlines()]
    return [line for line in lines if line and ".shape" not in line and "len(" not in line]


def matrix(f: Var, a: Var, b: Var) -> Term:
    return App(f, (a, b))


def hartree_fock() -> Term:
    factors = (App(J, (p, q, r, s)), App(C, (q, i)), conj(App(C, (r, j))), App(C, (s, j)))
    return Lam((J,), Lam((C,), Lam((p, i), total((q, r, s, j), mul(number(4), *factors)))))


def wannier(keep_rho: bool = True) -> Term:
    bands, states, bz, shells = Domain("U.1"), Domain("U.2"), rt.BZ, rt.X
    U = rt.tensor("U", bands, states, bz, complex=True)
    S = rt.tensor("S", bands, bands, bz, bz, complex=True)
    w = rt.tensor("w", shells)
    rho = rt.tensor("rho", states, shells, complex=True)
    a, c, v, b, k = (rt.index(*pair) for pair in zip("pqnbk", (bands, bands, states, shells, bz), strict=True))
    factors = (conj(App(U, (a, v, k))), App(S, (a, c, k, add(k, b))), App(U, (c, v, add(k, b))))
    value = Lam((v, b), total((k, a, c), mul(*factors)))
    outer = mul(App(w, (b,)), conj(App(rho, (v, b))), App(S, (a, c, k, add(k, b))), App(U, (c, v, add(k, b))))
    body = Lam((a, v, k), mul(number(4), total((c, b), outer)))
    return Lam((S, w), Lam((U,), let([(rho, value)], body)))


def test_hartree_fock_is_three_matrix_products() -> None:
    assert code(hartree_fock()) == [
        "CC = C.conj() @ C.T",
        "JCC = (J.reshape(n * n, n * n) @ CC.ravel()).reshape(n, n)",
        "return 4 * JCC @ C",
    ]


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (Lam((p,), mul(TWO, total((q,), mul(matrix(A, p, q), App(x, (q,)))))), "2 * (A @ x)"),
        (Lam((p,), total((q,), mul(matrix(A, q, p), App(x, (q,))))), "x @ A"),
        (Lam((p, q), total((r,), mul(matrix(A, p, r), matrix(B, r, q)))), "A @ B"),
        (Lam((p, q), total((r,), mul(matrix(A, r, q), matrix(B, p, r)))), "B @ A"),
        (Lam((p, q), total((r,), mul(matrix(A, r, p), matrix(B, q, r)))), "A.T @ B.T"),
        (Lam((p, q), mul(TWO, conj(matrix(B, q, p)))), "2 * B.conj().T"),
        (total((p, q), mul(conj(App(x, (p,))), matrix(A, p, q), App(x, (q,)))), "np.vdot(x, A @ x)"),
        (total((p,), matrix(A, p, p)), "A.trace()"),
        (total((p,), mul(conj(App(x, (p,))), App(x, (p,)))), "np.vdot(x, x)"),
        (total((p,), call("abs2", App(x, (p,)))), "np.vdot(x, x).real"),
        (Lam((p, q), mul(App(x, (p,)), conj(App(x, (q,))))), "x[:, None] * x.conj()"),
        (Lam((p,), mul(App(y, (p,)), power(call("exp", App(y, (p,))), number(-2)))), "y / np.exp(y)**2"),
        (Lam((p,), sub(App(y, (p,)), mul(number(3), power(App(y, (p,)), TWO)))), "y - 3 * y**2"),
        (Lam((p, q), matrix(A, p, q)), "A.copy()"),
    ],
)
def test_a_term_is_spelled_as_by_hand(body: Term, wanted: str) -> None:
    assert code(Lam((A, B), Lam((x, y), body)))[-1] == f"return {wanted}"


def test_a_vector_is_contracted_before_an_outer_product_is_formed() -> None:
    body = Lam((p,), total((q, r), mul(number(3), App(T, (p, q, r)), App(y, (q,)), App(y, (r,)))))
    assert code(Lam((T,), Lam((y,), body))) == [
        "Ty = (T.reshape(n * n, n) @ y).reshape(n, n)",
        "return 3 * (Ty @ y)",
    ]


def test_the_conjugate_of_a_large_array_is_not_formed() -> None:
    body = Lam((p,), total((q, r), mul(conj(App(J, (p, q, r, r))), App(x, (q,)))))
    text = source(Lam((J,), Lam((x,), body)))
    assert "r].conj()" not in text
    assert "x.conj()" in text


def test_wannier_gathers_once_and_multiplies_in_batches() -> None:
    lines = code(wannier())
    assert sum("S.transpose(2, 3, 0, 1)[k, kb]" in line for line in lines) == 1
    assert sum("% n_BZ" in line for line in lines) == 1
    assert any(line.startswith("rho = ") for line in lines)
    assert sum(" @ " in line for line in lines) == 1
    kinds = [lower(wannier()).kind(step) for step in lower(wannier()).steps]
    assert kinds.count("batched GEMM") == 1


def test_what_two_outputs_share_is_computed_once() -> None:
    def fock(a: Var, b: Var) -> Term:
        return total((p, q), mul(App(J, (a, b, p, q)), matrix(A, p, q)))

    energy = total((r, s), mul(fock(r, s), matrix(A, r, s)))
    both = Lam((J,), Lam((A,), Tuple((energy, Lam((r, s), mul(TWO, fock(r, s)))))))
    assert source(both).count("J.reshape") == 1


def test_equal_terms_with_other_index_names_are_one_array() -> None:
    def density(a: Var, b: Var, c: Var) -> Term:
        return total((c,), mul(matrix(C, a, c), conj(matrix(C, b, c))))

    left = Lam((p, q), call("exp", density(p, q, i)))
    right = Lam((r, s), call("sin", density(r, s, j)))
    assert source(Lam((C,), Tuple((left, right)))).count("@") == 1


def test_a_large_array_is_not_moved_in_memory_to_be_contracted() -> None:
    for free, contracted in (((p, q), (r, s)), ((r, s), (p, q))):
        body = Lam(free, total(contracted, mul(App(J, (p, q, r, s)), matrix(A, *contracted))))
        text = source(Lam((J,), Lam((A,), body)))
        assert "J.reshape(n * n, n * n)" in text
        assert "tensordot" not in text


@pytest.mark.slow
def test_a_symmetric_matrix_is_not_transposed() -> None:
    text = "(X::Sym, F::Sym, H::Her) -> (k::CM) -> (q, i) -> sum((p, r, s), X(p, q) * F(p, r) * H(r, s) * k(s, i))"
    d = cd.pullback(text)
    assert not any(f"{name}.T" in d.source() for name in "XFH")
    # what is cheapest for few columns
    assert "return H @ (F @ (X @ v))" in d.source(X=(50, 50), k=(50, 3))
    assert d.check()


@pytest.mark.slow
def test_a_factor_is_made_in_the_order_in_which_it_is_contracted() -> None:
    inside = "sum((r, s), F(p, s) * X(r, s) * k(r, i)) + sum(r, C(r, i) * (D(p, r) + D(r, p)))"
    d = cd.pullback(
        f"(X::Sym, F::Sym, D::RM, C::RM) -> (k::RM) -> begin "
        f"y = (q, i) -> sum(p, X(q, p) * ({inside})); sum((q, i), y(q, i)^3) end"
    )
    assert "X @ (FX @ k + (D + D.T) @ C)" in d.source() and "FX = F @ X\n" in d.source()
    assert "X @ (F @ (X @ k) + (D + D.T) @ C)" in d.source(X=(50, 50), k=(50, 3))
    assert d.check()


@pytest.mark.slow
def test_a_product_inside_a_chain_is_not_transposed() -> None:
    value = "F = (p, r) -> sum((q, i), X(p, q) * C(r, i) * k(q, i)); sum((p, r), F(p, r)^3 * V(p, r))"
    code = cd.pullback(f"(X::Sym, C::RM, V::RM) -> (k::RM) -> begin {value} end").source(value=True)
    assert "F = X @ (k @ C.T)" in code


def test_a_shared_sum_is_not_expanded_into_a_larger_contraction() -> None:
    norm = total((q,), mul(matrix(A, p, q), App(x, (q,))))
    term = Lam((A,), Lam((x,), total((p,), mul(conj(norm), norm))))
    assert code(term) == ["Ax = A @ x", "return np.vdot(Ax, Ax)"]
    assert code(Lam((A,), Lam((x,), total((p,), power(norm, TWO))))) == ["Ax = A @ x", "return Ax @ Ax"]


def test_shared_values_keep_their_names() -> None:
    z = rt.tensor("hidden", n, complex=True)
    value = Lam((p,), total((q,), mul(matrix(A, p, q), App(x, (q,)))))
    body = Lam((p,), mul(App(z, (p,)), call("exp", App(z, (p,)))))
    assert code(Lam((A,), Lam((x,), let([(z, value)], body)))) == ["hidden = A @ x", "return hidden * np.exp(hidden)"]


def test_a_perceptron_calls_the_activation_once_a_layer() -> None:
    g = fresh("g", Map((REAL,), REAL))
    W, z, h = rt.tensor("W", n, n), rt.tensor("z", n), rt.tensor("h", n)
    lets = [
        (z, Lam((p,), total((q,), mul(App(W, (p, q)), App(y, (q,)))))),
        (h, Lam((p,), App(g, (App(z, (p,)),)))),
    ]
    k = App(Diff("pullback", g), (App(z, (p,)), App(h, (p,))))
    assert code(Lam((g, y), Lam((W,), let(lets, Lam((p, q), mul(k, App(y, (q,)))))))) == [
        "z = W @ y",
        "h = g(z)",
        "return pullback_g(z, h)[:, None] * y",
    ]


def test_a_delta_that_is_left_is_a_diagonal_assignment() -> None:
    text = source(Lam((y,), Lam((p, q), delta(p, q, call("exp", App(y, (p,)))))))
    assert "[p, p] = np.exp(y)" in text
    assert "eye" not in text
    values = np.array([0.0, 1.0, 2.0])
    np.testing.assert_allclose(compile_source(text)(values), np.diag(np.exp(values)))


def test_the_docstring_carries_the_formula_and_the_shapes() -> None:
    title = 'J ↦ "4 Σ" \\ """x"""'
    text = source(hartree_fock(), title=title, name="fock")
    function = ast.parse(text).body[1]
    assert isinstance(function, ast.FunctionDef)
    assert function.name == "fock"
    doc = ast.get_docstring(function) or ""
    assert doc.startswith(title)
    assert "C: complex array (n, m)" in doc


def test_the_order_of_contractions_follows_the_sizes() -> None:
    a, b, c = (rt.tensor(name, rows, columns) for name, rows, columns in (("a", n, m), ("b", m, n), ("c", n, m)))
    term = Lam((a, b, c), Lam((p, i), total((j, q), mul(App(a, (p, j)), App(b, (j, q)), App(c, (q, i))))))
    assert "a @ b @ c" in source(term, {n: 2, m: 50})
    assert "a @ (b @ c)" in source(term, {n: 50, m: 2})


def test_source_needs_numpy_and_nothing_else() -> None:
    text = source(wannier()) + (
        "\nimport sys\nr = np.random.default_rng(0)\n"
        "f = gradient(r.normal(size=(3, 3, 4, 4)), r.normal(size=3), r.normal(size=(3, 2, 4)))\n"
        "assert f.shape == (3, 2, 4)\nassert 'combdiff' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-I", "-c", text], check=True, timeout=60)


def test_the_cost_table_says_what_is_blas_and_what_it_costs() -> None:
    plan = lower(hartree_fock(), {n: 60, m: 10})
    table = str(plan)
    assert [plan.kind(step) for step in plan.steps if isinstance(step.op, ops.Tensordot)] == ["GEMM", "GEMV", "GEMM"]
    gemv = next(step for step in plan.steps if plan.kind(step) == "GEMV")
    assert plan.flops(gemv) == 8 * 60**4
    assert "GEMV" in table
    assert "60×60" in table
    assert f"largest intermediate {16 * 60 * 60:.3g} bytes" in table


def test_a_backend_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(UnsupportedError, match="fortran"):
        source(hartree_fock(), backend="fortran")


@pytest.mark.slow
def test_a_matrix_is_exchanged_only_by_a_symmetry_that_says_so() -> None:
    space = "@space E begin type = (N, N) -> R; symmetries = (((1, 2), :id),) end\n"
    d = cd.grad(f"{space}(A::E) -> (X::RM) -> sum((i, j, k), A(i, j) * X(i, k) * exp(X(j, k)))")
    assert d.check() and "A.T" in d.source()


@pytest.mark.sampled
@pytest.mark.parametrize("order", ["".join(order) for order in permutations("ijk")])
@pytest.mark.parametrize("slot", range(3))
def test_the_axes_of_a_part_of_an_array_are_aligned(slot: int, order: str) -> None:
    """B(i, k, 0) · x(j), B(i, 0, k) · x(j) …, its axes in any order."""
    slots = ["i", "k"]
    slots.insert(slot, "1")
    text = f"""(B::(N, N, N) -> R, x::RV) -> (w::(N, N, N) -> R) ->
        sum((i, j, k), w({", ".join(order)}) * B({", ".join(slots)}) * x(j))"""
    rng = np.random.default_rng(0)
    B, x = rng.standard_normal((3, 3, 3)), rng.standard_normal(3)
    found = cd.grad(text).compile()(B, x, np.zeros((3, 3, 3)))
    np.testing.assert_allclose(found, np.einsum(f"ik,j->{order}", B.take(1, slot), x))
