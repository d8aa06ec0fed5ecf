"""Small transposed operands are laid out, so that large results lie in the order of their axes."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.verify import verify
from tests.emit.array_libraries import Numbers, library

__all__ = ["library"]

PAIRS = "(w::RV) -> (X::RM) -> sum((i, j), w(i) * w(j) * exp(-sum(c, (X(i, c) - X(j, c))^2)))"


def test_differences_of_all_pairs_lie_in_the_order_of_their_axes() -> None:
    source = cd.grad(PAIRS).source()
    assert "X[:, :, None] - np.ascontiguousarray(X.T)" in source
    scope: dict[str, object] = {"np": np}
    X = np.random.default_rng(1).normal(size=(7, 3))
    exec("t = X[:, :, None] - np.ascontiguousarray(X.T)", scope | {"X": X}, scope)
    assert scope["t"].flags.c_contiguous  # type: ignore[attr-defined]


@pytest.mark.slow
def test_what_is_as_large_as_the_result_is_not_copied() -> None:
    for program in (
        "(A::RM, B::RM) -> sum((i, j), exp(A(i, j) * B(j, i)))",
        "(A::RM{n, n}) -> sum((i, j), exp(A(i, j) + A(j, i)))",
        "(x::RV, A::RM) -> sum((i, j), exp(x(i) * A(j, i)))",
        "(T::(N, N, N) -> R, A::RM) -> sum((i, j, k), exp(T(i, j, k) * A(k, j)))",
    ):
        assert not any(isinstance(s.op, ops.LaidOut) for s in cd.grad(program).plan().steps), program


@pytest.mark.sampled
@pytest.mark.parametrize("sizes", [(1, 1), (2, 5), (7, 3)])
def test_values_stay(sizes: tuple[int, int], library: Numbers, monkeypatch: pytest.MonkeyPatch) -> None:
    n, m = sizes
    rng = np.random.default_rng(n)
    w, X = rng.normal(size=n), rng.normal(size=(n, m))
    d = cd.grad(PAIRS)
    verify(d.plan(w=(n,), X=(n, m)))
    found = library.back(d.compile(library.name)(library.to(w), library.to(X)))
    monkeypatch.setattr("combdiff.arrays.lower.forms.with_contiguous_operands", lambda plan: plan)
    np.testing.assert_allclose(found, cd.grad(PAIRS).compile()(w, X), rtol=1e-10, atol=1e-14)
