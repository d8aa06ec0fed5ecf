"""Equations in which each entry of the unknown stands alone: Newton's method divides, and solves no system."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from tests.emit.array_libraries import Numbers, library

__all__ = ["library"]

KEPLER = """(M::RV) -> (e::RV) -> begin
  E = i -> root((x::R) -> x - e(i) * sin(x) - M(i))
  sum(i, cos(E(i)))
end"""
OF_A_MATRIX = """(A::RM, B::RM) -> begin
  X = root((X::RM) -> (i, j) -> X(i, j)^3 + X(i, j) * exp(B(j, i)) - A(i, j))
  sum((i, j), X(i, j)^2 * B(i, j))
end"""
COMPLEX = "(a::CV) -> sum(i, abs2(root((z::CV) -> i -> z(i)^3 / 8 + 2 * z(i) - a(i))(i)))"
COUPLED = {
    "a neighbour": "(a::RV) -> sum(i, root((x::RV) -> i -> x(i)^3 + 3 * x(i) + sum(j, x(j)) - a(i))(i))",
    "the transposed entry": """(A::RM) -> begin
  X = root((X::RM) -> (i, j) -> X(i, j)^3 + 3 * X(i, j) + X(j, i) - A(i, j))
  sum((i, j), X(i, j))
end""",
    "a conjugate": "(a::CV) -> sum(i, abs2(root((z::CV) -> i -> 3 * z(i) + z(i)' * z(i)^2 + z(i)' - a(i))(i)))",
}


@pytest.mark.slow
def test_kepler_takes_no_system(library: Numbers) -> None:
    d = cd.grad(KEPLER)
    for numbers in (Numbers("numpy"), library):
        if numbers.name == "dask":
            continue
        f = d.compile(numbers.name, value=True)
        assert "solve" not in f.source and "newton_of_entries" in f.source
        for n in (1, 2, 5, 300):
            M, e = np.linspace(0.1, 3, n), np.linspace(0.9, 0.1, n)
            value, gradient = (np.asarray(numbers.back(v)) for v in f(numbers.to(M), numbers.to(e)))
            E = M.copy()
            for _ in range(200):
                E -= (E - e * np.sin(E) - M) / (1 - e * np.cos(E))
            np.testing.assert_allclose(value, np.cos(E).sum(), rtol=1e-12)
            np.testing.assert_allclose(gradient, -(np.sin(E) ** 2) / (1 - e * np.cos(E)), rtol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("text", [KEPLER, OF_A_MATRIX, COMPLEX])
def test_the_equation_of_an_entry_agrees_with_differences(text: str) -> None:
    d = cd.grad(text)
    assert "newton_of_entries" in d.source(value=True) and "linalg.solve" not in d.source(value=True)
    assert d.check() and cd.hvp(text).check()


@pytest.mark.slow
@pytest.mark.parametrize("name", COUPLED)
def test_entries_that_meet_in_an_equation_take_a_system(name: str) -> None:
    d = cd.grad(COUPLED[name])
    assert "newton_of_entries" not in d.source(value=True) and d.check()


@pytest.mark.parametrize("start", [None, 2.0])
def test_an_entry_without_a_root_is_told(start: float | None) -> None:
    f = cd.grad("(a::RV) -> sum(i, root((x::RV) -> i -> x(i)^2 + x(i) / 9 + a(i))(i))").compile()
    at = {} if start is None else {"start_x": np.array([start, start])}
    with np.errstate(all="ignore"), pytest.raises(cd.CombDiffError, match="root"):
        f(np.array([-1.0, 4.0]), **at)
    near = f(np.array([-1.0, -4.0]), start_x=np.array([1.0, 1.0]))
    np.testing.assert_allclose(near, -1 / np.sqrt(1 / 81 + 4 * np.array([1.0, 4.0])), rtol=1e-12)
