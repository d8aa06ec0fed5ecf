"""`symmetric=True`: the orthogonal projection of a gradient on the declared symmetry of its unknown."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.errors import CombDiffError

SIZES = (1, 2, 3, 5, 7)
SKEW = """@space K begin
  type = (N, N) -> C
  symmetries = (K -> (p, q) -> -K(q, p)',)
end
"""
PROJECTIONS = {
    "Sym": ("", "R", lambda g: (g + g.T) / 2),
    "Her": ("", "C", lambda g: (g + g.conj().T) / 2),
    "K": (SKEW, "C", lambda g: (g - g.conj().T) / 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("space", PROJECTIONS)
def test_it_is_the_group_average_of_the_gradient(space: str) -> None:
    declared, numbers, project = PROJECTIONS[space]
    text = f"{declared}(A::{numbers}M) -> (x::{space}) -> sum((i, j, k), real(A(i, j) * x(j, k) * x(k, i)))"
    plain, projected = cd.grad(text), cd.grad(text, symmetric=True)
    assert str(plain) != str(projected) and projected.check()
    rng = np.random.default_rng(2)
    for n in SIZES:
        A, x = (rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if numbers == "C" else 0) for _ in "ab")
        x = project(x)
        found = projected.compile()(A, x)
        assert np.allclose(found, project(plain.compile()(A, x))) and np.allclose(found, project(found))


def test_a_tensor_of_four_slots_is_averaged_over_its_whole_group() -> None:
    text = """@space T begin
      type = (N, N, N, N) -> C
      symmetries = (((2, 1, 4, 3), :conj), ((3, 4, 1, 2), :id))
    end
    (A::(N, N, N, N) -> C) -> (J::T) -> sum((p, q, r, s), real(A(p, q, r, s) * J(p, q, r, s)))"""
    g = cd.grad(text, symmetric=True).compile()
    rng = np.random.default_rng(3)
    A = rng.standard_normal((3, 3, 3, 3)) + 1j * rng.standard_normal((3, 3, 3, 3))
    full = A.conj()
    swapped = full.transpose(1, 0, 3, 2).conj()
    both = [full, swapped, full.transpose(2, 3, 0, 1), swapped.transpose(2, 3, 0, 1)]
    assert np.allclose(g(A, np.zeros_like(A)), sum(both) / 4)


def test_indices_that_change_sign_are_averaged_too() -> None:
    text = """@domain X begin symmetric = true end
    @space E begin type = (X,) -> R; symmetries = (((1,), :ineg),) end
    (a::(X) -> R) -> (w::E) -> sum(b::X, a(b) * w(b))"""
    g = cd.grad(text, symmetric=True).compile()
    a = np.array([1.0, 2.0, 3.0, 7.0, 11.0])
    assert np.allclose(g(a, np.zeros(5)), (a + a[::-1]) / 2)


@pytest.mark.slow
def test_products_with_the_hessian_are_projected_with_the_gradient() -> None:
    text = "(A::RM) -> (x::Sym) -> sum((i, j, k, l), A(i, j) * x(j, k) * x(k, l) * x(l, i))"
    rng = np.random.default_rng(4)
    A, x, k = rng.standard_normal((3, 4, 4))
    x, k = x + x.T, k + k.T
    gradient, hvp = cd.grad(text, symmetric=True).compile(hvp=True)(A, x)
    plain, full = cd.grad(text).compile(hvp=True)(A, x)
    assert np.allclose(gradient, (plain + plain.T) / 2) and np.allclose(hvp(k), (full(k) + full(k).T) / 2)


def test_without_a_declared_symmetry_nothing_changes() -> None:
    text = "(x::RV) -> sum(i, x(i)^2)"
    assert str(cd.grad(text, symmetric=True)) == str(cd.grad(text))


def test_a_group_that_is_too_large_is_refused() -> None:
    slots = ", ".join(["N"] * 8)
    generators = "((2, 1, 3, 4, 5, 6, 7, 8), :id), ((2, 3, 4, 5, 6, 7, 8, 1), :id)"
    text = f"""@space V begin type = ({slots}) -> R; symmetries = ({generators}) end
    (x::V) -> sum((a, b, c, d, e, f, g, h), x(a, b, c, d, e, f, g, h)^2)"""
    with pytest.raises(CombDiffError, match="averaged over so many"):
        cd.grad(text, symmetric=True)
