"""With `expand=True` the value is multiplied out, too: it is the same number, and no array of the residual is made."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.lower.signature import result_of
from combdiff.meaning.points import Offsets, listed
from combdiff.meaning.samples import random_value
from combdiff.meaning.sizes import default_sizes
from combdiff.terms.types import Index

EXAMPLES = Path(__file__).parents[2] / "examples"
REAL = """@space T begin type = (N, N, N) -> R end
(T::T) -> (A::RM, B::RM, C::RM) ->
  sum((i, j, k), (T(i, j, k) - sum(r, A(i, r) * B(j, r) * C(k, r)))^2)"""
COMPLEX = """@space T begin type = (N, N, N) -> C end
(T::T) -> (A::CM, B::CM, C::CM) ->
  sum((i, j, k), abs2(T(i, j, k) - sum(r, A(i, r) * B(j, r) * C(k, r))))"""
NAMED = """(T::(N, N, N) -> R) -> (A::RM, B::RM, C::RM) -> begin
  e = (i, j, k) -> T(i, j, k) - sum(r, A(i, r) * B(j, r) * C(k, r))
  sum((i, j, k), e(i, j, k)^2)
end"""
SIDE, RANK = 40, 3


def factors(complex: bool, sides: tuple[int, int, int], rank: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = [sides, *((n, rank) for n in sides)]
    drawn = [rng.normal(size=shape) + (1j * rng.normal(size=shape) if complex else 0) for shape in shapes]
    return [np.asarray(a) for a in drawn]


@pytest.mark.slow
@pytest.mark.parametrize("text", [REAL, COMPLEX, NAMED])
@pytest.mark.parametrize("sides", [(2, 3, 4), (1, 1, 1), (0, 2, 3), (5, 1, 2)])
@pytest.mark.parametrize("rank", [0, 1, 3])
def test_the_value_is_that_of_the_residual(text: str, sides: tuple[int, int, int], rank: int) -> None:
    T, A, B, C = arrays = factors(text is COMPLEX, sides, rank)
    wanted = (abs(T - np.einsum("ir,jr,kr->ijk", A, B, C)) ** 2).sum()
    value, *gradients = cast(tuple[np.ndarray, ...], cd.grad(text, expand=True).compile(value=True)(*arrays))
    assert np.asarray(value).dtype == np.float64
    np.testing.assert_allclose(value, wanted, atol=1e-10)
    for found, kept in zip(gradients, cast(tuple[np.ndarray, ...], cd.grad(text).compile()(*arrays)), strict=True):
        np.testing.assert_allclose(found, kept, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("text", [REAL, COMPLEX, NAMED])
def test_no_array_of_the_size_of_the_residual_is_made(text: str) -> None:
    f = cd.grad(text, expand=True).compile(value=True)
    f(*factors(text is COMPLEX, (SIDE,) * 3, RANK))
    ((sizes, _, _),) = f._by_sizes
    plan = f.plan(dict(sizes))
    made = [plan.entries(s) for s in plan.steps if s.operands and not isinstance(s.op, ops.Permute | ops.Conj)]
    assert max(made) <= SIDE * SIDE * RANK


@pytest.mark.slow
def test_code_and_steps_say_what_it_costs() -> None:
    d = cd.grad(REAL, expand=True)
    assert "difference of large terms" in d.source(value=True)
    assert any("difference of large terms" in step.note for step in d.steps)
    assert "difference of large terms" not in d.source()
    assert "difference of large terms" not in cd.grad(REAL).source(value=True)


@pytest.mark.slow
def test_digits_are_lost_near_convergence_as_the_code_says() -> None:
    _, A, B, C = factors(False, (9, 9, 9), 2)
    product = np.einsum("ir,jr,kr->ijk", A, B, C)
    noise = np.random.default_rng(3).normal(size=product.shape)
    T = product + noise * 1e-7 * np.linalg.norm(product) / np.linalg.norm(noise)
    wanted = ((T - product) ** 2).sum()
    kept, expanded = (
        cast(tuple[float, ...], cd.grad(REAL, expand=expand).compile(value=True)(T, A, B, C))[0]
        for expand in (False, True)
    )
    assert abs(kept - wanted) < 1e-8 * wanted
    assert abs(expanded - wanted) < 1e-13 * (product**2).sum()


@pytest.mark.slow
@pytest.mark.parametrize("name", [p.stem for p in EXAMPLES.glob("*.cd") if p.stem not in ("least_action", "implicit")])
def test_the_values_of_the_examples_are_the_same(name: str) -> None:
    text = (EXAMPLES / f"{name}.cd").read_text(encoding="utf-8")
    kept, expanded = (cd.grad(text, expand=expand) for expand in (False, True))
    functions = {"R": np.tanh, "grad_R": lambda x: 1 / np.cosh(x) ** 2}
    sizes = default_sizes(kept.term, seed=1)
    rng = np.random.default_rng(1)
    drawn = {v.name: random_value(v.kind, sizes, rng) for v in result_of(kept.term).params if v.name not in functions}
    values = []
    for d in (kept, expanded):
        f = d.compile(value=True)
        given: dict[str, object] = dict(drawn)
        for a in f.arguments:
            if a.offsets is not None:
                rows = listed(a.offsets, sizes).rows
                given[a.name] = rows if a.offsets.directions > 1 else rows[:, 0]
            elif isinstance(a.kind, Index):
                size = sizes[a.kind.domain]  # type: ignore[index]  # of a domain
                assert not isinstance(size, Offsets)
                given[a.name] = size
            elif a.name in functions:
                given[a.name] = functions[a.name]
        found = f(**{a.name: given[a.name] for a in f.arguments})
        values.append(np.asarray(cast(tuple[object, ...], found)[0]))
    np.testing.assert_allclose(values[1], values[0], rtol=1e-9, atol=1e-9)
