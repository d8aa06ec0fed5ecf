"""A condition on an index that cuts a range becomes slices: no mask, right for every size, as cheap as by hand."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.plan import Builder, Step
from combdiff.arrays.ranges.intervals import Interval, chosen
from combdiff.arrays.ranges.shifts import _Box
from combdiff.arrays.verify import PlanError, verify
from combdiff.meaning.evaluate import evaluate
from combdiff.terms.terms import ZERO
from combdiff.terms.types import Domain
from tests.emit.array_libraries import Numbers

CHAIN = "(x::RV{n}) -> sum(i, i < n - 1, (x(i + 1) - x(i))^2)"
BEAM = "(x::RV{n}) -> sum(i, where(1 <= i and i < n - 1, (x(i + 1) - 2 * x(i) + x(i - 1))^2))"
ROTORS = "(x::RV{n}) -> sum(i, i + 1 < n, cos(x(i + 1) - x(i)))"
GRID = (
    "(x::RM{n, m}) -> sum((i, j), i + 1 < n, (x(i + 1, j) - x(i, j))^2)"
    " + sum((i, j), j + 1 < m, (x(i, j + 1) - x(i, j))^2)"
)
WAVES = "(x::CV{n}) -> sum(i, i + 1 < n, abs2(x(i + 1) - x(i)))"
SIZES = (1, 2, 3, 5, 7)
PROGRAMS = {
    "chain": CHAIN,
    "beam": BEAM,
    "rotors": ROTORS,
    "grid": GRID,
    "waves": WAVES,
    "by a condition of where": "(x::RV{n}) -> sum(i, where(i + 1 < n, (x(i + 1) - x(i))^2))",
    "Rosenbrock": "(x::RV{n}) -> sum(i, i + 1 < n, 100 * (x(i + 1) - x(i)^2)^2 + (1 - x(i))^2)",
    "quartic": "(x::RV{n}) -> sum(i, i + 1 < n, (x(i + 1) - x(i))^2 / 2 + (x(i + 1) - x(i))^4 / 4)",
    "shifts": "(x::RV{n}) -> sum(i, where(1 <= i and i + 1 < n, exp(x(i) - x(i - 1)) * exp(x(i + 1) - x(i))))",
    "total variation": "(x::RM{n, m}) -> sum((i, j), i + 1 < n and j + 1 < m,"
    " sqrt((x(i + 1, j) - x(i, j))^2 + (x(i, j + 1) - x(i, j))^2 + 1))",
    "Laplace": "(x::RM{n, m}) -> sum((i, j), 1 <= i and i + 1 < n and 1 <= j and j + 1 < m,"
    " (x(i + 1, j) + x(i - 1, j) + x(i, j + 1) + x(i, j - 1) - 4 * x(i, j))^2)",
    "safe": "(x::RV{n}) -> sum(i, where(1 <= i, sqrt((x(i) - x(i - 1))^2 + 0.01)))",
    "beside a whole sum": "(x::RV{n}) -> sum(i, 1 <= i, x(i) * sin(x(i - 1))) + sum(i, x(i)^2)",
    "far": "(x::RV{n}) -> sum(i, where(3 <= i, x(i) * x(i - 3)))",
}


def plan_of(text: str, mode: Callable[[str], Any] = cd.grad) -> Counter[type[ops.Op]]:
    plan = mode(text).plan()
    verify(plan)
    return Counter(type(step.op) for step in plan.steps)


def drawn(text: str, n: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    shape = (n, 3) if "::RM" in text else (n,)
    x = rng.standard_normal(shape)
    return x + 1j * rng.standard_normal(shape) if "::C" in text else x


def meant(d: Any, *x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    f = evaluate(d.term, {})
    assert callable(f)
    return np.asarray(f(*x))


@pytest.mark.sampled
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("mode", [cd.grad, cd.hvp])
def test_no_mask_and_no_shift_is_left(name: str, mode: Callable[[str], Any]) -> None:
    kinds = plan_of(PROGRAMS[name], mode)
    assert not kinds[ops.Where] and not kinds[ops.Roll] and not kinds[ops.Range]


@pytest.mark.sampled
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_right_for_every_size(name: str) -> None:
    text = PROGRAMS[name]
    d, rng = cd.grad(text), np.random.default_rng(3)
    f = d.compile()
    for n in SIZES:
        x = drawn(text, n, rng)
        np.testing.assert_allclose(f(x), meant(d, x), rtol=1e-9, atol=1e-11)


@pytest.mark.sampled
@pytest.mark.parametrize(
    "text",
    [
        *(CHAIN, BEAM, GRID, WAVES, PROGRAMS["shifts"], PROGRAMS["beside a whole sum"]),
        pytest.param(PROGRAMS["Laplace"], marks=pytest.mark.slow),
    ],
)
def test_hessian_products_are_right_for_every_size(text: str) -> None:
    d, rng = cd.hvp(text), np.random.default_rng(4)
    f = d.compile()
    for n in SIZES:
        x, k = drawn(text, n, rng), drawn(text, n, rng)
        np.testing.assert_allclose(f(x, k), meant(d, x, k), rtol=1e-9, atol=1e-11)


def test_no_part_is_written_over() -> None:
    """The source takes arrays of any precision: the whole sum need not hold the parts."""
    compile(cd.hvp(PROGRAMS["beside a whole sum"]).source(), "source", "exec")


def test_a_chain_reads_as_if_written_by_hand() -> None:
    code = cd.grad(CHAIN).source(value=True).split('"""')[-1].split()
    assert " ".join(code) == (
        "n = len(x) t1 = x[1:] - x[:-1] t2 = np.zeros(n) t2[1:] = t1 t2[:-1] -= t1 return t1 @ t1, 2 * t2"
    )


def test_bounds_of_a_domain_are_slices_too() -> None:
    domains = "@domain Z begin base = I; lower = 0; upper = 8 end\n@domain Y begin base = I; lower = 0; upper = 7 end\n"
    d = cd.grad(domains + "(x::(Z) -> R) -> sum(i::Y, (x(i + 1) - x(i))^2)")
    assert Counter(type(step.op) for step in d.plan().steps)[ops.Put] == 1, "both parts are written into one array"
    x = np.random.default_rng(5).standard_normal(9)
    np.testing.assert_allclose(d.compile()(x), meant(d, x))
    domain = "@domain Z begin base = I; lower = 1; upper = 9 end\n"
    d = cd.grad(domain + "(x::(Z) -> R) -> sum(i::Z, where(i < 9, x(i + 1) * x(i)))")
    assert not Counter(type(step.op) for step in d.plan().steps)[ops.Where]
    np.testing.assert_allclose(d.compile()(x), meant(d, x))


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_what_no_condition_allows_is_not_computed() -> None:
    """1/x over i < n − 2 and over 2 ≤ i, for which n = 3 leaves out the one in the middle."""
    text = "(x::RV{n}) -> sum(i, i + 2 < n, 1 / x(i)) + sum(i, 2 <= i, 1 / x(i)) + sum(i, where(1 <= i, log(x(i))))"
    f = cd.grad(text).compile(value=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, gradient = f(np.array([0.0, 1.0, 2.0, 4.0, 5.0])[1:])
    assert np.isfinite(value) and np.all(np.isfinite(gradient))
    f = cd.grad("(x::RV{n}) -> sum(i, i + 2 < n, 1 / x(i)) + sum(i, 2 <= i, 1 / x(i))").compile(value=True)
    value, gradient = f(np.array([2.0, 0.0, 4.0]))
    assert value == 0.75 and list(gradient) == [-0.25, 0, -0.0625]


@pytest.mark.slow
def test_on_a_ring_a_shift_that_leaves_the_range_is_no_slice() -> None:
    ring = "@domain Z begin base = I; periodic = true end\n"
    d = cd.grad(ring + "(x::(Z) -> R) -> sum(i::Z, where(1 <= i, exp(x(i + 1)) * x(i)))")
    for n in SIZES:
        x = np.random.default_rng(n).standard_normal(n)
        np.testing.assert_allclose(d.compile()(x), meant(d, x), rtol=1e-9, atol=1e-11)


def test_nan_in_data_that_a_condition_leaves_out_comes_to_nothing() -> None:
    f = cd.grad("(w::RV{n}) -> (x::RV{n}) -> sum(i, i + 1 < n, w(i) * (x(i + 1) - x(i))^2)").compile(value=True)
    x = np.random.default_rng(6).standard_normal(5)
    w = np.array([1.0, 2, 3, 4, np.nan])
    value, gradient = f(w, x)
    assert np.isfinite(value) and np.all(np.isfinite(gradient))


@pytest.mark.slow
def test_what_differs_by_a_shift_is_computed_once() -> None:
    assert plan_of(PROGRAMS["shifts"])[ops.Call] == 1
    d = cd.grad("(x::RV{n}) -> sum(i, where(1 <= i and i + 1 < n, exp(x(i)^2 - x(i - 1)) + exp(x(i + 1)^2 - x(i))))")
    assert Counter(type(step.op) for step in d.plan(value=True).steps)[ops.Call] == 1


@pytest.mark.parametrize("n", [3, 5])
def test_what_differs_by_a_shift_on_a_range_whose_size_is_a_number(n: int) -> None:
    head, last = f"(x::RV{{{n}}}) -> ", f"l < {n - 1}"
    d = cd.grad(f"{head}sum(l, l > 0, exp(x(l) - x(l - 1))) * sum(l, {last}, exp(x(l + 1) - x(l)))")
    assert d.compile().source.count("np.exp(") == 1
    assert d.check()


def test_what_is_needed_everywhere_is_a_whole_array_once() -> None:
    d = cd.grad("(x::RV{n}) -> sum(i, exp(x(i))) + sum(i, i + 1 < n, exp(x(i)) * x(i + 1))")
    plan = d.plan()
    (exponential,) = (step for step in plan.steps if isinstance(step.op, ops.Call))
    assert exponential.domains[0].of is None
    x = np.random.default_rng(7).standard_normal(4)
    np.testing.assert_allclose(d.compile()(x), meant(d, x))


def test_a_large_argument_of_a_contraction_is_not_cut() -> None:
    d = cd.grad("(A::RM{n, m}) -> (x::RV{m}) -> sum(i, sum(j, 1 <= j, A(i, j) * x(j))^2)")
    assert "A @ t1" in d.source(), "x is made as long as a row of A, and A is taken as it lies"


@pytest.mark.parametrize("backend", ["jax", "torch", "dask"])
@pytest.mark.parametrize("text", [CHAIN, BEAM, PROGRAMS["Laplace"]])
@pytest.mark.slow
def test_empty_slices_are_right_in_every_library(backend: str, text: str) -> None:
    # PyTorch may not be installed
    numbers, rng = Numbers(backend), np.random.default_rng(8)
    d = cd.grad(text)
    f = d.compile(backend)
    for n in (1, 2, 5):
        x = drawn(text, n, rng)
        np.testing.assert_allclose(numbers.back(f(numbers.to(x))), meant(d, x), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    "backend", ["numpy", *(pytest.param(b, marks=pytest.mark.slow) for b in ("jax", "torch", "dask"))]
)
@pytest.mark.parametrize("m", [0, 1, 2, 5])
def test_an_array_without_entries_is_read_where_no_condition_holds(backend: str, m: int) -> None:
    """All places that the conditions keep in range are out of it, and none is read."""
    numbers = Numbers(backend)
    x, y = np.arange(2.0 * m).reshape(m, 2) / 7, np.arange(1.0, 4)
    moved = np.pad(x, ((0, 5), (0, 0)))
    f = cd.grad("(x::RV{m}, y::RV{n}) -> sum(i::N{n}, where(i + 1 < m, sin(x(i + 1)) * y(i)))").compile(backend)
    found = [numbers.back(a) for a in f(numbers.to(x[:, 0]), numbers.to(y))]
    np.testing.assert_allclose(found[1], np.sin(moved[1:4, 0]), atol=1e-15)
    slopes = np.zeros(m)
    slopes[1:4] = (y * np.cos(moved[1:4, 0]))[: max(m - 1, 0)]
    np.testing.assert_allclose(found[0], slopes, atol=1e-15)
    f = cd.grad("(x::RM{m, p}) -> (y::RV{n}) -> sum((i::N{n}, j), where(i + j < m, x(i + j, j)^2 * y(i)))").compile(
        backend
    )
    expected = moved[:3, 0] ** 2 + moved[1:4, 1] ** 2
    np.testing.assert_allclose(numbers.back(f(numbers.to(x), numbers.to(y))), expected, atol=1e-15)


def test_a_loop_without_turns_has_no_states_to_read() -> None:
    """The values before each turn are read at an index that has one value more than there are turns."""
    text = """(A::Sym{n}) -> begin
  (x, f, g) = iterate(
      ((x, y, a), i) ->
          (j -> x(0) * A(j, j) / (1 + abs2(x(j) * A(j, j))) + im * A(i, j),
           j -> tanh(real(y(j) + x(j))) + im * A(j, j),
           a * A(i, i) / (1 + abs2(a * A(i, i)))),
      ((j::N{n}) -> 1, (j::N{n}) -> 0, 1), n - 1)
  sum(i, f(i)) * g
end"""
    assert cd.pullback(text).compile()(np.ones((1, 1)), 1 + 1j).tolist() == [[0.0]]


# --- what conditions say --------------------------------------------------------------------------------------------


def choice(relation: str, constant: int, *, mirrored: bool = False, domain: Domain | None = None) -> Step:
    """i `relation` constant, or n + constant, of an index of the domain."""
    make, n = Builder().step, domain or Domain("n")
    i, x, size = make(ops.Range(n), (), (n,)), make(ops.Input("x"), (), (n,), False), make(ops.Size(n), (), ())
    side = make(ops.Position((1,) if mirrored else (), constant, None, None), (size,) if mirrored else (), ())
    return make(ops.Where(relation, None, ZERO, places=((0,), (), (0,))), (i, side, x), (n,))


@pytest.mark.parametrize(
    ("step", "interval"),
    [
        (choice(">=", 2), Interval(before=2)),
        (choice(">", 2), Interval(before=3)),
        (choice("<", -1, mirrored=True), Interval(behind=1)),
        (choice("<=", -1, mirrored=True), Interval()),
        (choice("<=", -3, mirrored=True), Interval(behind=2)),
        (choice("<", 7, domain=Domain("Z", lower=1, upper=9)), Interval(behind=3)),
        (choice(">=", 3, domain=Domain("Z", lower=1, upper=9)), Interval(before=2)),
    ],
)
def test_a_condition_leaves_an_interval(step: Step, interval: Interval) -> None:
    assert chosen(step) == (0, interval)


@pytest.mark.parametrize(
    "step",
    [
        choice("<", 3),
        choice(">=", -2, mirrored=True),
        choice("==", 0),
        choice("<", 0, domain=Domain("Z", symmetric=True)),
    ],
)
def test_other_conditions_leave_no_interval(step: Step) -> None:
    assert chosen(step) is None


def test_boxes_that_leave_something_out_do_not_fill_the_box_around_them() -> None:
    assert _Box.fill([_Box((0,), (-1,)), _Box((1,), (0,))])
    assert not _Box.fill([_Box((0,), (-2,)), _Box((2,), (0,))]), "with n = 3, place 1 is in neither"
    assert not _Box.fill([_Box((0, 1), (-1, 0)), _Box((1, 0), (0, -1))]), "place (0, 0) is in neither"


def test_a_part_that_is_no_part_of_its_sum_is_noticed() -> None:
    plan = cd.grad(CHAIN).plan()
    (put,) = (step for step in plan.steps if isinstance(step.op, ops.Put))
    op = ops.Put(((), ()), ((0,), (0,)), False, (((0, 2),), ((0, 0),)))
    wrong = Step(op, put.operands, put.domains, False)
    with pytest.raises(PlanError, match="part"):
        verify(type(plan)(plan.arguments, (wrong,), False, plan.sizes))


# --- programs of chance ---------------------------------------------------------------------------------------------

SHIFTS = st.integers(-2, 2)
FACTORS = st.one_of(
    st.builds(lambda d: f"x(i + {d})".replace("+ -", "- "), SHIFTS),
    st.builds(lambda d: f"w(i + {d})".replace("+ -", "- "), SHIFTS),
    st.builds(
        lambda a, b, f: f"{f}(x(i + {a}) - x(i + {b}))".replace("+ -", "- "),
        SHIFTS,
        SHIFTS,
        st.sampled_from(["sin", "exp", "tanh"]),
    ),
    st.builds(lambda a, n: f"(x(i + {a}) - 1)^{n}".replace("+ -", "- "), SHIFTS, st.integers(2, 3)),
)
TERMS = st.lists(FACTORS, min_size=1, max_size=3).map(" * ".join)
ENDS = st.sampled_from(["2 <= i and i + 2 < n", "i >= 3 and i < n - 2", "2 <= i and i <= n - 4"])
SUMS = st.builds(lambda c, ts: f"sum(i, {c}, w(i) * ({' + '.join(ts)}))", ENDS, st.lists(TERMS, min_size=1, max_size=2))
OTHERS = st.sampled_from(["sum(i, x(i)^2)", "sum(i, 1 <= i, x(i)^2)", "x(0) * w(0)", "sum((i, j), i < j, x(i) * x(j))"])


@pytest.mark.long
@given(st.lists(SUMS, min_size=1, max_size=2), OTHERS, st.booleans())
@settings(max_examples=40)
def test_the_code_of_any_open_chain_computes_its_meaning(sums: list[str], other: str, large: bool) -> None:
    d = cd.grad(f"(w::RV{{n}}) -> (x::RV{{n}}) -> {' + '.join([*sums, other])}".replace("i + 0", "i"))
    rng = np.random.default_rng(9)
    verify(d.plan(w=(1000,), x=(1000,)) if large else d.plan())
    scope: dict[str, Any] = {}
    exec(d.source(w=(1000,), x=(1000,)) if large else d.source(), scope)
    right = evaluate(d.term, {})
    assert callable(right)
    for n in SIZES:
        w, x = rng.standard_normal((2, n))
        np.testing.assert_allclose(scope["gradient"](w, x), right(w)(x), rtol=1e-9, atol=1e-11)
