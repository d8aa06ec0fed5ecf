"""Numbers before large contractions are put on what is small, and no result changes."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combdiff.arrays.lower.lower import lower
from combdiff.arrays.lower.signature import result_of
from combdiff.arrays.passes.scaling import scaled_early
from combdiff.arrays.plan import Plan
from combdiff.emit.backends.numpy import SPELLING
from combdiff.emit.emit import emit
from combdiff.meaning.samples import random_value
from combdiff.run.executing import compile_source
from combdiff.terms.terms import App, Lam, Term, Tuple, mul, number, total
from combdiff.terms.types import Domain, Index
from tests import random_terms as rt

n, m = Domain("C.1"), Domain("C.2")
p, q = (rt.index(c, n) for c in "pq")
i, j = (rt.index(c, m) for c in "ij")
A, B, C = (rt.tensor("A", n, m), rt.tensor("B", m, n), rt.tensor("C", n, n))
SIZES = {n: 400, m: 10}


def body(t: Term) -> list[str]:
    """The statements for large n and small m."""
    text = emit(lower(t, SIZES), SPELLING).split('"""')[2]
    return [line.strip() for line in text.splitlines() if line.strip() and "n = " not in line]


def times(c: int, *factors: Term) -> Term:
    return mul(number(c), *factors)


def test_a_number_goes_on_the_smaller_factor() -> None:
    product = total((i,), times(3, App(A, (p, i)), App(B, (i, q))))
    assert body(Lam((A, B), Lam((p, q), product))) == ["return 3 * A @ B"]


def test_a_transpose_stays_beside_its_matrix() -> None:
    product = total((i,), times(-3, App(B, (i, p)), App(B, (i, q))))
    assert body(Lam((B,), Lam((p, q), product))) == ["return -3 * B.T @ B"]


def test_a_number_goes_through_a_product_to_its_small_factor() -> None:
    x = rt.tensor("x", m)
    product = total((i,), times(3, App(A, (p, i)), App(x, (i,)), App(B, (i, q))))
    assert body(Lam((A, x, B), Lam((p, q), product))) == ["return A @ (3 * x[:, None] * B)"]


def test_numbers_gather_on_the_small_factor() -> None:
    product = total((i, j), times(3, App(A, (p, i)), App(B, (i, q))))
    assert body(Lam((A, B), Lam((p, q), product))) == ["m = A.shape[1]", "return 3 * m * A @ B"]


def test_a_number_stays_outside_of_what_is_needed_without_it() -> None:
    product = total((i,), mul(App(A, (p, i)), App(B, (i, q))))
    twice = Tuple((Lam((p, q), product), Lam((p, q), times(3, product))))
    assert body(Lam((A, B), twice)) == ["AB = A @ B", "return AB, 3 * AB"]


def test_a_large_factor_is_not_scaled() -> None:
    product = total((q,), times(3, App(C, (p, q)), App(A, (q, i))))
    assert body(Lam((C, A), Lam((p, i), product))) == ["return 3 * (C @ A)"]


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from((1, 2, 3)), st.sampled_from((1, 3, 5)))
def test_the_place_of_numbers_changes_no_result(seed: int, n: int, bz: int) -> None:
    t = rt.Terms(random.Random(seed)).program()
    sizes = {rt.N: n, rt.M: 2, rt.BZ: bz, rt.X: 3}
    plan = lower(t, sizes)
    rng = np.random.default_rng(seed)
    values = [random_value(v.kind, sizes, rng) for v in result_of(t).params]
    values += [sizes[a.kind.domain] for a in plan.arguments if isinstance(a.kind, Index) and a.kind.domain]
    outputs, names = scaled_early(plan.outputs, plan.names, sizes, large=0)
    with np.errstate(all="ignore"):
        before, after = (ran(p, values) for p in (plan, replace(plan, outputs=outputs, names=names, loops=())))
    for x, y in zip(before, after, strict=True):
        np.testing.assert_allclose(y, x, rtol=1e-8, atol=1e-8 * float(np.abs(x).max(initial=1.0)))


def ran(plan: Plan, values: list[object]) -> tuple[np.ndarray, ...]:
    found = compile_source(emit(plan, SPELLING))(*values)
    return tuple(map(np.asarray, found if isinstance(found, tuple) else (found,)))
