"""δ of indices whose ranges may differ in size: what is computed is the diagonal, of min(n, m) entries."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays.text import read, text
from combdiff.arrays.verify import verify
from combdiff.meaning.evaluate import evaluate
from tests.emit.array_libraries import Numbers, library

__all__ = ["library"]

PROGRAMS = {
    "trace": "(x::RV{n}) -> (A::RM{n, m}) -> sum((i, j), delta(i, j, A(i, j)^2 * x(i)))",
    "definition": """(q::RV{n}) -> (A::RM{n, m}) -> begin
  Q = (i, j) -> delta(i, j, exp(q(i))) - delta(i, j, A(i, j))
  sum((i, j), Q(i, j)^2)
end""",
    "shift": "(x::RV{n}) -> (A::RM{n, m}) -> sum((i, j), (A(i, j) - delta(i, j, 1)) * x(i) * A(i, j)^2)",
    "guarded": "(x::RV{n}) -> (A::RM{n, m}) -> sum((i, j), delta(i, j, x(i) * log(A(i, j)^2)))",
    "counts": "(x::RV{n}) -> (A::RM{n, m}) -> sum((i, j), delta(i, j, x(i)) * sum(k, A(k, j)^3))",
}


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(1, 1), (1, 3), (5, 2), (3, 3)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_those_of_the_formula(name: str, sizes: tuple[int, int], library: Numbers) -> None:
    n, m = sizes
    d = cd.grad(PROGRAMS[name])
    rng = np.random.default_rng(n + m)
    vector, A = rng.normal(size=n), rng.normal(size=(n, m))
    first = "q" if name == "definition" else "x"
    plan = d.plan(value=True, **{first: (n,), "A": (n, m)})
    verify(plan)
    assert text(read(text(plan))) == text(plan)
    expected = np.asarray(evaluate(d.term, {})(vector)(A))  # type: ignore[operator]
    found = d.compile(library.name)(library.to(vector), library.to(A))
    np.testing.assert_allclose(library.back(found), expected, atol=1e-12)
    np.testing.assert_allclose(d.compile(value=True)(vector, A)[1], expected, atol=1e-12)


def test_a_chain_of_three_ranges_has_the_least_of_them() -> None:
    program = "(w::(N{n}, N{m}) -> R) -> (T::(N{n}, N{m}, N{l}) -> R) -> {}"
    objective = "sum((i, j, k), delta(i, j, delta(j, k, w(i, j) * T(i, j, k)^2)))"
    d = cd.grad(program.replace("{}", objective))
    rng = np.random.default_rng(0)
    w, T = rng.normal(size=(4, 3)), rng.normal(size=(4, 3, 2))
    wanted = np.zeros_like(T)
    for i in range(2):
        wanted[i, i, i] = 2 * w[i, i] * T[i, i, i]
    np.testing.assert_allclose(d.compile()(w, T), wanted)
    assert "np.where" not in d.source() and "min(" in d.source()


def test_only_the_diagonal_is_read() -> None:
    source = cd.grad(PROGRAMS["trace"]).source(value=True)
    assert "np.where" not in source and "A[i, i]" in source and "np.arange(min(n, m))" in source
