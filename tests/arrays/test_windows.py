"""Products with windows of arrays: correlations and convolutions of any number of directions, and their gradients."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.liveness import peak
from combdiff.arrays.passes.gathers import windows
from combdiff.arrays.passes.gathers.affine import table
from combdiff.arrays.plan import Builder, Plan, Scan
from combdiff.arrays.text import read, text
from combdiff.arrays.verify import verify
from combdiff.emit.backends.numpy import SPELLING
from combdiff.emit.solvers.library import solver_text, with_callees
from combdiff.terms.terms import ZERO
from combdiff.terms.types import Domain

Array = np.ndarray
SIZES = (1, 2, 3, 5, 7)
FORMS = [(1, 1, 0), (1, -1, 0), (1, 1, -1), (1, -1, 2), (2, 1, 0), (1, 2, -3), (2, -3, 1), (-1, 1, 3), (-1, -1, 4)]
"""Numbers a, b and c: x is read at a i + b p + c."""


@pytest.fixture
def at_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows for tables of any size."""
    made = windows.with_windows
    monkeypatch.setattr("combdiff.arrays.passes.schedule.with_windows", lambda plan: made(plan, 0))


def kinds(plan: Plan) -> Counter[type]:
    return Counter(type(step.op) for step in plan.steps)


def place(form: Sequence[int], i: str, p: str) -> str:
    a, b, c = form
    return f"{a} * {i} + {b} * {p} + {c}".replace("+ -", "- ").replace("1 * ", "")


def inside(index: str, size: str) -> str:
    return f"0 <= {index} and {index} < {size}"


def blurred(form: Sequence[int], kind: str) -> str:
    """|Σ k(p, q) x(a i + b p + c, …) − y(i, j)|², where x has zeros beyond its ends."""
    u, v = place(form, "i", "p"), place(form, "j", "q")
    summed = f"sum((p, q), {inside(u, 'u')} and {inside(v, 'v')}, k(p, q) * x({u}, {v}))"
    return f"(y::{kind}M{{a, b}}) -> (k::{kind}M{{m, n}}, x::{kind}M{{u, v}}) -> sum((i, j), abs2({summed} - y(i, j)))"


def drawn(rng: np.random.Generator, kind: str, *shape: int) -> Array:
    return rng.normal(size=shape) + (1j * rng.normal(size=shape) if kind == "C" else 0)


def correlated(form: Sequence[int], kind: str) -> str:
    """The same of one direction."""
    u = place(form, "i", "p")
    summed = f"sum(p, {inside(u, 'u')}, k(p) * x({u}))"
    return f"(y::{kind}V{{a}}) -> (k::{kind}V{{m}}, x::{kind}V{{u}}) -> sum(i, abs2({summed} - y(i)))"


def by_loops(y: Array, k: Array, x: Array, form: Sequence[int]) -> tuple[Any, ...]:
    """The value and both gradients of `blurred` or `correlated`, an entry at a time."""
    a, b, c = form
    r = -y.astype(complex)
    read = []
    for index in np.ndindex(*y.shape, *k.shape):
        one, kernel = index[: y.ndim], index[y.ndim :]
        at = tuple(a * i + b * p + c for i, p in zip(one, kernel, strict=True))
        if all(0 <= place < n for place, n in zip(at, x.shape, strict=True)):
            r[one] += k[kernel] * x[at]
            read.append((one, kernel, at))
    of_k, of_x = np.zeros(k.shape, complex), np.zeros(x.shape, complex)
    for one, kernel, at in read:
        of_k[kernel] += 2 * r[one] * np.conj(x[at])
        of_x[at] += 2 * r[one] * np.conj(k[kernel])
    return (abs(r) ** 2).sum(), of_k, of_x


@pytest.mark.slow
@pytest.mark.usefixtures("at_all_sizes")
@pytest.mark.parametrize("kind", ["R", "C"])
@pytest.mark.parametrize("form", FORMS)
def test_windows_of_images_are_those_of_loops(form: tuple[int, ...], kind: str) -> None:
    d = cd.grad(blurred(form, kind))
    rng = np.random.default_rng(abs(hash(form)) % 100)
    f = d.compile(value=True)
    for _ in range(4):
        a, b, m, n, u, v = map(int, rng.choice(SIZES, 6))
        y, k, x = drawn(rng, kind, a, b), drawn(rng, kind, m, n), drawn(rng, kind, u, v)
        for found, wanted in zip(f(y=y, k=k, x=x), by_loops(y, k, x, form), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_products_with_windows_take_no_tables(form: tuple[int, ...]) -> None:
    plan = cd.grad(blurred(form, "C")).plan(y=(20, 21), k=(3, 2), x=(22, 23), value=True)
    verify(plan)
    assert text(read(text(plan))) == text(plan)
    steps = kinds(plan)
    # entries apart are added at their places
    assert steps[ops.Windows] == (2 if abs(form[0]) == 1 else 1)
    assert not steps[ops.Gather] and steps[ops.Scatter] == (abs(form[0]) > 1)
    assert steps[ops.Where] == 0 or abs(form[0]) > 1


# --- channels, directions ---------------------------------------------------------------------------------------------

LAYER = """(y::(N{b}, N{o}, N{n}, N{m}) -> R) ->
  (K::(N{o}, N{c}, N{3}, N{3}) -> R, x::(N{b}, N{c}, N{n+2}, N{m+2}) -> R) ->
  sum((b, o, i, j), (sum((c, p, q), K(o, c, p, q) * x(b, c, i + p, j + q)) - y(b, o, i, j))^2)"""
BY_CHANNEL = """(y::(N{b}, N{c}, N{n}, N{m}) -> R) ->
  (K::(N{c}, N{3}, N{2}) -> R, x::(N{b}, N{c}, N{n+2}, N{m+1}) -> R) ->
  sum((b, c, i, j), (sum((p, q), K(c, p, q) * x(b, c, i + p, j + q)) - y(b, c, i, j))^2)"""
SERIES = """(y::RM{n, o}) -> (K::(N{o}, N{c}, N{3}) -> R, x::RM{n+4, c}) ->
  sum((i, o), (sum((c, p), K(o, c, p) * x(i + 2 * p, c)) - y(i, o))^2)"""
STENCIL = """(y::(N{n}, N{m}, N{l}) -> R) -> (K::(N{3}, N{2}, N{3}) -> R, x::(N{n+2}, N{m+1}, N{l+2}) -> R) ->
  sum((i, j, k), (sum((p, q, r), K(p, q, r) * x(i + p, j + q, k + r)) - y(i, j, k))^2)"""
VALID: dict[str, tuple[str, str, int, dict[str, tuple[int, ...]]]] = {
    "layer": (LAYER, "bcijpq,ocpq->boij", 2, {"y": (2, 4, 9, 8), "K": (4, 3, 3, 3), "x": (2, 3, 11, 10)}),
    "by channel": (BY_CHANNEL, "bcijpq,cpq->bcij", 2, {"y": (2, 3, 9, 8), "K": (3, 3, 2), "x": (2, 3, 11, 9)}),
    "stencil": (STENCIL, "ijkpqr,pqr->ijk", 3, {"y": (6, 7, 8), "K": (3, 2, 3), "x": (8, 8, 10)}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", VALID)
def test_a_layer_is_that_of_sliding_windows(name: str) -> None:
    program, labels, directions, shapes = VALID[name]
    rng = np.random.default_rng(1)
    y, K, x = (rng.normal(size=shape) for shape in shapes.values())
    d = cd.grad(program)
    value, of_K, of_x = d.compile(value=True)(y, K, x)
    axes = tuple(range(x.ndim - directions, x.ndim))
    tables = np.lib.stride_tricks.sliding_window_view(x, K.shape[-directions:], axes)
    r = np.einsum(labels, tables, K) - y
    left, right, out = (*labels.split("->")[0].split(","), labels.split("->")[1])
    np.testing.assert_allclose(value, (r**2).sum(), rtol=1e-12)
    np.testing.assert_allclose(of_K, 2 * np.einsum(f"{left},{out}->{right}", tables, r), rtol=1e-11, atol=1e-11)
    step = rng.normal(size=x.shape)
    tables = np.lib.stride_tricks.sliding_window_view(step, K.shape[-directions:], axes)
    np.testing.assert_allclose(np.vdot(of_x, step), 2 * np.vdot(r, np.einsum(labels, tables, K)), rtol=1e-11)
    plan = d.plan(value=True, **shapes)
    verify(plan)
    assert kinds(plan)[ops.Windows] >= 2 and not kinds(plan)[ops.Gather] and not kinds(plan)[ops.Where]


@pytest.mark.slow
def test_a_series_with_channels_is_that_of_loops() -> None:
    rng = np.random.default_rng(2)
    y, K, x = rng.normal(size=(50, 3)), rng.normal(size=(3, 2, 3)), rng.normal(size=(54, 2))
    value, of_K, of_x = cd.grad(SERIES).compile(value=True)(y, K, x)
    r = sum(x[2 * p : 2 * p + 50] @ K[:, :, p].T for p in range(3)) - y
    np.testing.assert_allclose(value, (r**2).sum(), rtol=1e-12)
    wanted = np.zeros_like(x)
    for p in range(3):
        np.testing.assert_allclose(of_K[:, :, p], 2 * r.T @ x[2 * p : 2 * p + 50], rtol=1e-11, atol=1e-11)
        wanted[2 * p : 2 * p + 50] += 2 * r @ K[:, :, p]
    np.testing.assert_allclose(of_x, wanted, rtol=1e-11, atol=1e-11)


@pytest.mark.slow
@pytest.mark.usefixtures("at_all_sizes")
@pytest.mark.parametrize("kind", ["R", "C"])
@pytest.mark.parametrize("form", FORMS)
def test_correlations_of_vectors_are_those_of_loops(form: tuple[int, ...], kind: str) -> None:
    d = cd.grad(correlated(form, kind))
    rng = np.random.default_rng(3)
    f = d.compile(value=True)
    for a, m, u in [(7, 5, 7), (1, 2, 4), (3, 1, 7), (7, 2, 1)]:
        y, k, x = (drawn(rng, kind, n) for n in (a, m, u))
        for found, wanted in zip(f(y=y, k=k, x=x), by_loops(y, k, x, form), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)
    a, b, _ = form
    # entries apart are added at their places, and taken by tables if the places are apart, too
    wanted = 0 if min(abs(a), abs(b)) > 1 else 3 - (abs(a) > 1)
    assert kinds(d.plan(y=(7,), k=(3,), x=(7,)))[ops.Correlated] == wanted


@pytest.mark.slow
def test_steps_of_loops_have_windows() -> None:
    step = "sum((p::N{3}, q::N{3}), 0 <= i+p-1 and i+p-1 < n and 0 <= j+q-1 and j+q-1 < m, k(p, q) * u(i+p-1, j+q-1))"
    d = cd.grad(
        f"(k::RM{{3, 3}}) -> (x::RM{{n, m}}) -> begin\n w = iterate((u, t) -> (i::N{{n}}, j::N{{m}}) -> tanh({step}),"
        " x, 4)\n sum((i, j), w(i, j)^3)\nend"
    )
    rng = np.random.default_rng(9)
    k, x = rng.normal(size=(3, 3)), rng.normal(size=(30, 31))
    plan = d.plan(x=x.shape)
    bodies = [kinds(s.op.body.plan) for s in plan.steps if isinstance(s.op, Scan)]
    assert any(body[ops.Windows] for body in bodies) and not any(body[ops.Gather] for body in bodies)

    def value(u: Array) -> float:
        for _ in range(4):
            padded = np.pad(u, 1)
            u = np.tanh(sum(k[p, q] * padded[p : p + 30, q : q + 31] for p, q in np.ndindex(3, 3)))
        return float((u**3).sum())

    found, slope = d.compile(value=True)(k=k, x=x)
    along, h = rng.normal(size=x.shape), 1e-6
    np.testing.assert_allclose(found, value(x), rtol=1e-11)
    wanted = (value(x + h * along) - value(x - h * along)) / (2 * h)
    np.testing.assert_allclose(np.vdot(slope, along), wanted, rtol=1e-6)


# --- what is no window ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("at_all_sizes")
@pytest.mark.parametrize("less", ["1 <= i + p and i + p < u", "i + p < u - 1", "i + p < u and p <= i", "i + 2 * p < u"])
def test_other_conditions_than_that_an_entry_exists_stay(less: str) -> None:
    """An entry that exists is left out: the table is none of windows with zeros beyond the ends."""
    d = cd.grad(f"(y::RV{{a}}) -> (k::RV{{m}}, x::RV{{u}}) -> sum(i, (sum(p, {less}, k(p) * x(i + p)) - y(i))^2)")
    rng = np.random.default_rng(4)
    y, k, x = rng.normal(size=9), rng.normal(size=4), rng.normal(size=10)
    r, u = -y, len(x)
    for i, p in np.ndindex(9, 4):
        if eval(less, {"i": i, "p": p, "u": u}):
            r[i] += k[p] * x[i + p]
    np.testing.assert_allclose(d.compile(value=True)(y=y, k=k, x=x)[0], r @ r, rtol=1e-12)


@pytest.mark.parametrize(("less", "found"), [([0], True), ([], False), ([-1], False), ([1], False), ([0, 1], False)])
def test_a_table_is_one_of_windows_if_zeros_stand_where_there_are_no_entries(less: list[int], found: bool) -> None:
    """[i + p < n − less] x(i + p): for 1 an entry is left out, for −1 one is read that is not there."""
    make, n, m = Builder().step, Domain("n"), Domain("m")
    x, i, p = make(ops.Input("x"), (), (n,)), make(ops.Range(n), (), (n,)), make(ops.Range(m), (), (m,))
    at = ops.Position((1, 1), 0, n, None, places=((0,), (1,)))
    entries = make(ops.Gather(((0, 1),), 2), (x, make(at, (i, p), (n, m))), (n, m))
    chosen = ops.Where("<", None, ZERO, places=((0, 1), (), (0, 1)))
    for by in less:
        index = make(replace(at, constant=by, modulo=None), (i, p), (n, m))
        entries = make(chosen, (index, make(ops.Size(n), (), ()), entries), (n, m))
    assert (table(entries) is not None) == found


@pytest.mark.slow
@pytest.mark.usefixtures("at_all_sizes")
def test_a_factor_that_is_infinite_beyond_the_ends_stays_under_the_condition() -> None:
    """1 / (i − p + 1) is infinite where i − p is −1, and x has no entry there."""
    d = cd.grad("(k::RV{m}) -> (x::RV{n}) -> sum(i::N{n}, sum(p, p <= i, k(p) * x(i - p) / (i - p + 1))^2)")
    rng = np.random.default_rng(8)
    k, x = rng.normal(size=3), rng.normal(size=9)
    read = x / np.arange(1, 10)
    y = np.convolve(read, k)[:9]
    value, slope = d.compile(value=True)(k=k, x=x)
    np.testing.assert_allclose(value, y @ y, rtol=1e-12)
    np.testing.assert_allclose(slope, 2 * np.correlate(np.r_[y, 0, 0], k) / np.arange(1, 10), rtol=1e-12)


@pytest.mark.slow
def test_small_tables_and_those_that_something_else_needs_stay_as_they_are() -> None:
    d = cd.grad(correlated((1, 1, 0), "R"))
    assert kinds(d.plan(y=(20,), k=(3,), x=(22,)))[ops.Gather] == 2
    both = "sum(p, i + p < n, k(p) * x(i + p))^2 + sum(p, i + p < n, k(p) * exp(x(i + p)))"
    plan = cd.simplified(f"(k::RV{{m}}, x::RV{{n}}) -> sum(i::N{{n}}, {both})").plan(k=(9,), x=(500,))
    assert kinds(plan)[ops.Gather] == 1 and not kinds(plan)[ops.Correlated]


# --- memory, other sizes, other libraries -----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_limit_of_memory_is_kept_with_windows_or_with_loops() -> None:
    form = (1, 1, 0)
    d = cd.grad(blurred(form, "R"))
    rng = np.random.default_rng(5)
    y, k, x = rng.normal(size=(60, 60)), rng.normal(size=(5, 5)), rng.normal(size=(64, 64))
    shapes = {"y": y.shape, "k": k.shape, "x": x.shape}
    free = d.plan(value=True, **shapes)
    assert kinds(free)[ops.Windows] == 2
    # each holds the rows of 5 windows along one axis, and not 25 of both
    tables = [free.size(s) for s in free.steps if isinstance(s.op, ops.Windows)]
    assert max(tables) <= 8 * 5 * 68 * 64
    wanted = by_loops(y, k, x, form)
    for limit in (peak(free).bytes + 100_000, peak(free).bytes - 100_000):
        found = d.compile(value=True, memory=limit)(y=y, k=k, x=x)
        for mine, theirs in zip(found, wanted, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-10)
        assert peak(d.plan(value=True, memory=limit, **shapes)).bytes <= limit


@pytest.mark.slow
@pytest.mark.parametrize("program", [blurred((1, -1, 0), "C"), blurred((-1, 1, 3), "C")])
def test_code_for_large_images_runs_for_small_ones_and_for_none(program: str) -> None:
    scope: dict[str, Callable[..., tuple[Array, ...]]] = {}
    form = (1, -1, 0) if "i - p" in program else (-1, 1, 3)
    source = cd.grad(program).source(value=True, y=(90, 80), k=(5, 4), x=(90, 91))
    assert "overlapping_windows" in source
    exec(source, scope)
    rng = np.random.default_rng(6)
    for a, b, m, n, u, v in [*itertools.product((1, 2), repeat=6), (0, 3, 2, 2, 3, 3), (3, 3, 0, 2, 3, 3)]:
        y, k, x = drawn(rng, "C", a, b), drawn(rng, "C", m, n), drawn(rng, "C", u, v)
        for mine, theirs in zip(scope["value_and_gradient"](y, k, x), by_loops(y, k, x, form), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["jax", "dask", "torch"])
@pytest.mark.parametrize("form", [(1, 1, -1), (1, -1, 0)])
def test_other_libraries_compute_the_same(form: tuple[int, ...], backend: str) -> None:
    pytest.importorskip(backend)
    if backend == "jax":
        pytest.importorskip("jax").config.update("jax_enable_x64", True)
    d = cd.grad(blurred(form, "R"))
    rng = np.random.default_rng(7)
    y, k, x = rng.normal(size=(20, 21)), rng.normal(size=(3, 2)), rng.normal(size=(22, 20))
    plan = d.plan(backend=backend, y=y.shape, k=k.shape, x=x.shape)
    assert not kinds(plan)[ops.Windows]
    found = d.compile(backend=backend, value=True)(y=y, k=k, x=x)
    for mine, theirs in zip(found, by_loops(y, k, x, form), strict=True):
        np.testing.assert_allclose(np.asarray(mine), theirs, rtol=1e-9, atol=1e-9)


# --- the functions that code brings along -----------------------------------------------------------------------------


def brought(name: str) -> Callable[..., Array]:
    scope: dict[str, Any] = {"np": np}
    exec("\n\n\n".join(solver_text(n, SPELLING) for n in with_callees([name], SPELLING)), scope)
    return scope[name]


numbers = st.integers(-3, 3)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_windows_are_entries_at_sums_of_indices(data: st.DataObject) -> None:
    x = np.arange(1.0, 1 + 4 * 5).reshape(4, 5)[:, :: data.draw(st.sampled_from([1, 2, -1]))]
    shape = tuple(data.draw(st.lists(st.integers(0, 4), min_size=4, max_size=4)))
    by = tuple(data.draw(st.lists(numbers, min_size=4, max_size=4)))
    start = tuple(data.draw(st.lists(st.integers(-4, 8), min_size=2, max_size=2)))
    along, wanted = (1, 0, 0, 1), np.zeros(shape)
    for index in np.ndindex(*shape):
        at = [*start]
        for n, axis in enumerate(along):
            at[axis] += by[n] * index[n]
        if all(0 <= place < n for place, n in zip(at, x.shape, strict=True)):
            wanted[index] = x[tuple(at)]
    np.testing.assert_array_equal(brought("windows")(x, shape, along, by, start), wanted)
    np.testing.assert_array_equal(brought("overlapping_windows")(x, shape, along, by, start, 1), wanted)


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 5),
    st.integers(0, 5),
    st.integers(0, 6),
    numbers.filter(bool),
    numbers.filter(bool),
    st.booleans(),
    st.integers(-4, 8),
)
def test_a_correlation_is_a_sum_over_entries(
    n: int, m: int, u: int, by: int, step: int, complex: bool, start: int
) -> None:
    step = step if abs(by) == 1 else step // abs(step)
    x, y = np.arange(1.0, u + 1), np.arange(1.0, m + 1) * (1 + 2j * complex)
    wanted = np.zeros(n, np.result_type(x, y))
    for p, q in np.ndindex(n, m):
        if 0 <= start + by * p + step * q < u:
            wanted[p] += x[start + by * p + step * q] * y[q]
    np.testing.assert_allclose(brought("correlated")(x, y, n, by, step, start), wanted, rtol=1e-13)
