"""Shaikhha et al., *Efficient Differentiable Programming in a Functional Array-Processing Language*.

The derivatives of Table 2 and of the micro benchmarks with their structure, the identities of linear algebra that the
paper's laws prove, and the multiplicative update of a non-negative factorisation.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import combdiff as cd

TABLE_2 = {
    # by a number
    "number by number": ("(x::R) -> x^3", "(x::R) -> 3 * x^2"),
    "vector by number": ("(v::RV) -> (s::R) -> (i::N) -> s^2 * v(i)", "(v::RV) -> (s::R) -> i -> 2 * s * v(i)"),
    "matrix by number": (
        "(A::RM) -> (s::R) -> (i::N, j::N) -> s * A(i, j)",
        "(A::RM) -> (s::R) -> (i, j) -> A(i, j)",
    ),
    # by a vector
    "dot product": ("(v::RV) -> (w::RV) -> sum(i, v(i) * w(i))", "(v::RV) -> (w::RV) -> i -> v(i)"),
    "sum of vectors": (
        "(v::RV) -> (w::RV) -> (i::N) -> v(i) + w(i)",
        "(v::RV{n}) -> (w::RV{n}) -> (i::N{n}, i1::N{n}) -> delta(i, i1, 1)",
    ),
    "scaled vector": (
        "(s::R) -> (v::RV) -> (i::N) -> s * v(i)",
        "(s::R) -> (v::RV{n}) -> (i::N{n}, i1::N{n}) -> delta(i, i1, s)",
    ),
    "matrix times vector": (
        "(A::RM) -> (v::RV) -> (i::N) -> sum(j, A(i, j) * v(j))",
        "(A::RM) -> (v::RV) -> (i, j) -> A(i, j)",
    ),
    "maximum": ("(v::RV) -> maximum(i, v(i))", "(v::RV) -> i -> ties(j, v(j))(i)"),
    "larger of two": (
        "(w::RV) -> (v::RV) -> (i::N) -> max(v(i), w(i))",
        "(w::RV{n}) -> (v::RV{n}) -> (i::N{n}, i1::N{n}) -> delta(i, i1, 1/2 * (1 + sign(v(i) - w(i))))",
    ),
    # by a matrix
    "trace": ("(M::RM{n, n}) -> sum(i, M(i, i))", "(M::RM{n, n}) -> (i::N{n}, j::N{n}) -> delta(i, j, 1)"),
    "bilinear form": (
        "(u::RV, v::RV) -> (M::RM) -> sum((i, j), u(i) * M(i, j) * v(j))",
        "(u::RV, v::RV) -> (M::RM) -> (i, j) -> u(i) * v(j)",
    ),
}


def _same(found: str, expected: str) -> bool:
    """Whether two programs are one up to the names of indices and sizes, which are numbered as they come."""

    def numbered(text: str) -> str:
        names: dict[str, str] = {}
        return re.sub(r"\b[a-z]\w*\b", lambda m: names.setdefault(m[0], f"n{len(names)}"), str(cd.simplified(text)))

    return numbered(found) == numbered(expected)


@pytest.mark.sampled
@pytest.mark.parametrize("name", TABLE_2)
def test_jacobians_come_out_with_their_structure(name: str) -> None:
    program, expected = TABLE_2[name]
    d = cd.jacobian(program)
    assert _same(str(d), expected), str(d)
    assert d.check()


def test_a_transpose_of_a_transpose_is_the_matrix() -> None:
    d = cd.simplified("(M::RM) -> begin T = (i, j) -> M(j, i); (i::N, j::N) -> T(j, i) end")
    assert _same(str(d), "(M::RM) -> (i::N, j::N) -> M(i, j)")


def test_a_vector_times_the_identity_is_the_vector() -> None:
    d = cd.simplified("(v::RV{n}) -> (j::N{n}) -> sum(i, v(i) * delta(i, j, 1))")
    assert _same(str(d), "(v::RV{n}) -> (j::N{n}) -> v(j)")


def test_the_gradient_of_a_factorisation_gives_the_multiplicative_update() -> None:
    """U ← U ∘ (A V) / (U Vᵀ V), whose two parts are those of ∇ with opposite signs (NNMF)."""
    d = cd.grad("(A::RM, V::RM) -> (U::RM) -> sum((i, j), (A(i, j) - sum(k, U(i, k) * V(j, k)))^2)", expand=True)
    rng = np.random.default_rng(5)
    gradient = d.compile()
    for n, m, r in ((1, 1, 1), (2, 3, 1), (5, 3, 2), (7, 5, 3)):
        A, U, V = rng.random((n, m)), rng.random((n, r)), rng.random((m, r))
        up, down = 2 * A @ V, 2 * U @ V.T @ V
        assert np.allclose(gradient(A, V, U), down - up)
        # a step of length U / (2 U Vᵀ V) along -∇ is the update
        assert np.allclose(U - U / down * gradient(A, V, U), U * up / down)
        before, after = (np.sum((A - X @ V.T) ** 2) for X in (U, U * up / down))
        assert after <= before + 1e-12


def test_both_modes_give_the_jacobian_of_a_factorisation() -> None:
    text = "(V::RM) -> (U::RM) -> (i::N, j::N) -> sum(k, U(i, k) * V(j, k))"
    d = cd.jacobian(text)
    rng = np.random.default_rng(6)
    U, V, k = rng.random((3, 2)), rng.random((4, 2)), rng.random((3, 2))
    J = d.compile()(V, U)
    assert J.shape == (3, 4, 3, 2)
    assert np.allclose(np.tensordot(J, k, 2), cd.jvp(text).compile()(V, U, k))
    w = rng.random((3, 4))
    assert np.allclose(np.tensordot(w, J, 2), cd.vjp(text).compile()(V, U, w))
