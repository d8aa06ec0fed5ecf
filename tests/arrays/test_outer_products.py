"""Sums of outer products are products of matrices: of the same value, wherever the terms come from."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.passes.outer_products import stacked
from combdiff.arrays.verify import verify

RECURRENT = """(x::{M}, h0::{V}) -> (W::{M}) -> begin
  h1 = i -> {f}(sum(j, W(i, j) * h0(j)) + x(1, i))
  h2 = i -> {f}(sum(j, W(i, j) * h1(j)) + x(2, i))
  h3 = i -> {f}(sum(j, W(i, j) * h2(j)) + x(3, i))
  h4 = i -> {f}(sum(j, W(i, j) * h3(j)) + x(4, i))
  real(sum(i, h4(i)^2))
end"""
REAL = RECURRENT.format(M="RM", V="RV", f="tanh")
ROUNDS = """(x::RM, h0::RV) -> (W::RM) -> begin
  y = i -> x(0, i) / sum(j, (W(i, j)^2 + 1) * h0(j)^2)
  z = j -> h0(j) / sum(i, (W(i, j)^2 + 1) * y(i)^2)
  sum((i, j), x(1, i) * W(i, j) * z(j)) - 3 * sum((i, j), y(i) * W(i, j) * z(j)) +
    sum((i, j), x(2, i) * W(i, j) * h0(j)) / 7
end"""
COMPLEX = RECURRENT.format(M="CM", V="CV", f="sin")


def arrays(text: str, n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    found = [rng.normal(size=shape) / n**0.5 for shape in ((5, n), (n,), (n, n))]
    return [a + 1j * rng.normal(size=a.shape) / n**0.5 for a in found] if "CM" in text else found


def by_terms(text: str, monkeypatch: pytest.MonkeyPatch) -> cd.derivation.Derivation:
    """A derivation whose plans hold the sums term by term."""
    monkeypatch.setattr("combdiff.arrays.lower.lower.stacked", lambda outputs, names, sizes: (tuple(outputs), names))
    return cd.grad(text)


@pytest.mark.long
@pytest.mark.parametrize("text", [REAL, COMPLEX, ROUNDS])
@pytest.mark.parametrize("n", [pytest.param(3, marks=pytest.mark.slow), 130])
def test_the_gradient_of_weights_is_that_of_the_terms(text: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    d = cd.grad(text)
    given = arrays(text, n)
    verify(d.plan(x=(5, n), h0=(n,), W=(n, n)))
    found = d.compile(value=True)(*given)
    for one, other in zip(found, by_terms(text, monkeypatch).compile(value=True)(*given), strict=True):
        assert np.allclose(one, other, rtol=1e-10)


@pytest.mark.slow
def test_the_gradient_of_weights_is_one_product_of_matrices() -> None:
    d = cd.grad(REAL)
    plan = d.plan(x=(5, 200), h0=(200,), W=(200, 200))
    (stack, _) = [s for s in plan.steps if isinstance(s.op, ops.Stack)]
    assert len(stack.operands) == 4 and stack.domains[0].count == 4
    assert not any(isinstance(s.op, ops.Add) and s.rank == 2 for s in plan.steps)
    assert not any(isinstance(s.op, ops.Stack) for s in d.plan(x=(5, 20), h0=(20,), W=(20, 20)).steps)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["torch", "jax", "dask"])
def test_other_libraries_stack_too(backend: str) -> None:
    pytest.importorskip({"dask": "dask.array"}.get(backend, backend))
    # with a real vector among complex ones, which a library may not mix
    text = COMPLEX.replace("h0::CV", "h0::RV")
    given = [a.real if a.ndim == 1 else a for a in arrays(text, 130)]
    d = cd.grad(text)
    if backend == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
    if backend == "torch":
        import torch

        found = d.compile(backend)(*map(torch.asarray, given))
    else:
        found = d.compile(backend)(*given)
    assert np.allclose(np.asarray(found), d.compile()(*given), rtol=1e-10)


@pytest.mark.slow
def test_a_term_that_is_needed_elsewhere_or_has_a_name_is_left_alone() -> None:
    plan = cd.grad(REAL).plan(x=(5, 20), h0=(20,), W=(20, 20))
    (total,) = [s for s in plan.steps if isinstance(s.op, ops.Add) and s.rank == 2]
    (made,), _ = stacked([total], {}, plan.sizes, large=0)
    assert isinstance(made.op, ops.Tensordot)
    named = {o: f"t{n}" for n, o in enumerate(total.operands[:2])}
    (left,), names = stacked([total], named, plan.sizes, large=0)
    assert left is total and names == named
    left, _ = stacked([total, *total.operands[:2]], {}, plan.sizes, large=0)[0], None
    assert left[0] is total
