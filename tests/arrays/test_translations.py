"""What differs by shifts of periodic indices is computed once, and right for every size of the ring."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import combdiff as cd
from combdiff.arrays import ops
from combdiff.meaning.evaluate import evaluate

RING = "@domain Z begin base = I; periodic = true end\n"
TORUS = RING + "@domain Y begin base = I; periodic = true end\n"
TOTAL_VARIATION = (
    TORUS + "(e::R) -> (x::(Z, Y) -> R) -> "
    "sum((i::Z, j::Y), sqrt((x(i + 1, j) - x(i, j))^2 + (x(i, j + 1) - x(i, j))^2 + e))"
)


def operations(text: str, *shape: int) -> Counter[type[ops.Op]]:
    return Counter(type(step.op) for step in cd.grad(text).plan(x=shape).steps)


@pytest.mark.slow
def test_total_variation_takes_one_root_for_three_neighbours() -> None:
    assert operations(TOTAL_VARIATION, 400, 400)[ops.Power] <= 4, "two squares, the root and its reciprocal"


def test_a_force_on_a_ring_is_computed_once_for_both_neighbours() -> None:
    text = RING + "(x::(Z) -> R) -> sum(i::Z, cos(x(i + 1) - x(i)))"
    assert operations(text, 10_000)[ops.Call] == 1


def test_what_is_shifted_along_one_axis_only_is_another_thing_along_two() -> None:
    text = TORUS + "(x::(Z, Y) -> R) -> sum((i::Z, j::Y), exp(x(i, j)) * sin(x(i + 1, j)) * sin(x(i, j + 1)))"
    f = cd.grad(text).compile(value=True)
    x = np.random.default_rng(3).standard_normal((300, 200))
    right = (np.exp(x) * np.sin(np.roll(x, -1, 0)) * np.sin(np.roll(x, -1, 1))).sum()
    assert np.isclose(f(x)[0], right)


def test_small_arrays_are_computed_twice_rather_than_rolled() -> None:
    text = RING + "(x::(Z) -> R) -> sum(i::Z, (x(i + 1) - x(i))^2)"
    assert operations(text, 3)[ops.Roll] == 2


SHIFTS = st.integers(-2, 2)
ENTRIES = st.builds(lambda d, e: f"x(i + {d}, j + {e})", SHIFTS, SHIFTS).map(lambda t: t.replace("+ -", "- "))
FACTORS = st.one_of(
    ENTRIES,
    st.builds(lambda a, b, f: f"{f}({a} - {b})", ENTRIES, ENTRIES, st.sampled_from(["sin", "exp", "tanh"])),
    st.builds(lambda a, n: f"({a})^{n}", ENTRIES, st.integers(2, 3)),
    st.builds(lambda d: f"w(i + {d})".replace("+ -", "- "), SHIFTS),
)
TERMS = st.lists(FACTORS, min_size=1, max_size=3).map(" * ".join)
BODIES = st.lists(TERMS, min_size=1, max_size=3).map(" + ".join)


@pytest.mark.long
@given(BODIES, st.sampled_from([(1, 1), (1, 3), (2, 5), (3, 2), (5, 7)]), st.booleans())
@settings(max_examples=60)
def test_the_code_of_any_stencil_computes_its_meaning(body: str, sizes: tuple[int, int], large: bool) -> None:
    """`large`: the plan is made for a large torus, so that all that can be rolled is."""
    text = TORUS + f"(w::(Z) -> R) -> (x::(Z, Y) -> R) -> sum((i::Z, j::Y), {body})"
    d = cd.grad(text)
    n, m = sizes
    rng = np.random.default_rng(7)
    w, x = (rng.standard_normal(shape) for shape in ((n,), (n, m)))
    if large:
        scope: dict[str, object] = {}
        exec(d.source(w=(1000,), x=(1000, 1000)), scope)
        found = scope["gradient"](w, x)  # type: ignore[operator]  # what the code defines
    else:
        found = d.compile()(w, x)
    given = evaluate(d.term, {})
    assert callable(given)
    right = given(w)(x)
    np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_a_difference_and_a_sum_of_neighbours_are_two_things() -> None:
    text = RING + "(x::(Z) -> R) -> sum(i::Z, exp(x(i + 1) - x(i)) * exp(2 * x(i + 1) + x(i)))"
    x = np.random.default_rng(4).standard_normal(20_000) / 3
    value, _ = cd.grad(text).compile(value=True)(x)
    assert np.isclose(value, np.exp(3 * np.roll(x, -1)).sum())
    text = RING + "(x::(Z) -> R) -> sum(i::Z, sin(x(i + 1) - x(i)) * sin(x(i) + 2 * x(i - 1)))"
    value, _ = cd.grad(text).compile(value=True)(x)
    assert np.isclose(value, (np.sin(np.roll(x, -1) - x) * np.sin(x + 2 * np.roll(x, 1))).sum())


HEAT = (
    TORUS + "(u::(Z, Y) -> R, k::(Z, Y) -> R) -> (x::(Z, Y) -> R) -> sum((i::Z, j::Y), u(i, j) * (x(i, j) + "
    "k(i, j) * (x(i + 1, j) + x(i - 1, j) + x(i, j + 1) + x(i, j - 1) - 4 * x(i, j)))^2)"
)


@pytest.mark.slow
def test_what_is_not_shifted_itself_is_rolled() -> None:
    """The adjoint of a stencil takes one product with k, which is rolled in four directions, and four times it."""
    shape = 400, 400
    plan = cd.grad(HEAT).plan(u=shape, k=shape, x=shape)
    rolls = [s for s in plan.steps if isinstance(s.op, ops.Roll)]
    assert len(rolls) == 8 and len({s.operands[0] for s in rolls}) == 2, "x, and a product with k"
    (last,) = plan.outputs
    assert sum(not isinstance(o.op, ops.Roll) for o in last.operands) == 2 or isinstance(last.op, ops.Mul)
