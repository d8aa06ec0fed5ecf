"""Gathers and scatters stand where they cost least, and rows that are added are a product with a sparse matrix."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.passes.gathers import moving
from combdiff.arrays.passes.gathers.sparse import with_sparse_products
from combdiff.arrays.plan import Plan, Step
from combdiff.arrays.text import read, text
from combdiff.arrays.verify import verify
from combdiff.emit.emit import emit, spelling_of
from combdiff.meaning.evaluate import evaluate
from tests.arrays.pass_texts import GRAPH

LAYERS = """(a::(N{e}) -> N{n}, b::(N{e}) -> N{n}, w::CV{e}, X::CM{n, m}, Y::CM{n, o}) ->
  (W::CM{m, p}, V::CM{p, o}) -> begin
  h = (v, k) -> sin(sum(e, delta(b(e), v, 2 * w(e) * sum(d, X(a(e), d) * W(d, k)))))
  y = (v, k) -> sum(e, delta(b(e), v, w(e) * sum(d, h(a(e), d) * V(d, k))))
  sum((v, k), abs2(y(v, k) - Y(v, k)))
end"""
CUBES = """(b::(N{e}) -> N{n}, V::(N{e}, N{m}, N{o}) -> R) -> (T::(N{n}, N{m}, N{o}) -> R) -> begin
  s = (v, d, k) -> sum(e, delta(b(e), v, V(e, d, k) * T(b(e), d, k)))
  sum((v, d, k), s(v, d, k)^3)
end"""
SEVERAL = """(b::(N{e}, N{p}) -> N{n}, W::RM{e, p}, X::(N{e}, N{p}, N{m}) -> R) -> (Y::RM{e, m}, Z::RM{n, m}) -> begin
  s = (v, d) -> sum((e, k), delta(b(e, k), v, W(e, k) * Y(e, d))) + sum((e, k), delta(b(e, k), v, X(e, k, d))) + Z(v, d)
  sum((v, d), s(v, d)^3)
end"""
PAIRS = """(a::(N{e}) -> N{n}, b::(N{e}) -> N{o}, w::CV{e}, V::CM{e, p}) -> (T::(N{n}, N{o}, N{p}) -> C) ->
  sum((e, k), abs2(w(e) * T(a(e), b(e), k) - V(e, k)))"""
SMALL = {"e": 30, "n": 7, "m": 5, "o": 4, "p": 3}
WIDE = {"e": 20_000, "n": 500, "m": 40, "o": 10, "p": 20}


def given(program: str, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Arrays for a program, whose complex ones have imaginary parts."""
    rng = np.random.default_rng(3)
    found = {}
    axes = {"a": "e", "b": "e", "w": "e", "X": "nm", "Y": "no", "W": "mo", "V": "po"}
    axes |= {"b": "ep", "W": "ep", "X": "epm", "Y": "em", "Z": "nm"} if program is SEVERAL else {}
    axes |= {"V": "ep", "T": "nop"} if program is PAIRS else {}
    axes |= (
        {"W": "mp"}
        if program is LAYERS
        else {}
        if program is PAIRS
        else {"V": "emo", "T": "nmo"}
        if program is CUBES
        else {}
    )
    for name, of in axes.items():
        if f"{name}::" not in program:
            continue
        shape = tuple(sizes[axis] for axis in of)
        if name in "ab":
            found[name] = rng.integers(0, sizes["o" if program is PAIRS and name == "b" else "n"], shape)
        else:
            found[name] = rng.normal(size=shape) / 4
            complex_too = f"{name}::C" in program or (program is PAIRS and name == "T")
            found[name] = found[name] + 1j * rng.normal(size=shape) / 4 if complex_too else found[name]
    return found


def plan_of(program: str, sizes: dict[str, int], backend: str) -> Plan:
    shapes = {name: array.shape for name, array in given(program, sizes).items()}
    return cd.grad(program).plan(backend=backend, value=True, **shapes)


def run(plan: Plan, arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
    scope: dict[str, object] = {}
    exec(emit(plan, spelling_of("numpy"), "f"), scope)
    f = scope["f"]
    assert callable(f)
    return [np.asarray(found) for found in f(*(arrays[a.name] for a in plan.arguments))]


def agree(one: Plan, other: Plan, arrays: dict[str, np.ndarray]) -> bool:
    pairs = zip(run(one, arrays), run(other, arrays), strict=True)
    return all(np.allclose(a, b, rtol=1e-10, atol=1e-10 * np.abs(b).max()) for a, b in pairs)


def with_numbers(plan: Plan) -> Plan:
    """The plan with other numbers before its products of weights with rows."""
    written = text(plan)
    before = "places=((0,), (0, 1)), coefficient=1)"
    assert before in written
    return read(written.replace(before, before.replace("=1", "=3")))


@pytest.mark.slow
@pytest.mark.parametrize("program", [GRAPH, LAYERS])
@pytest.mark.parametrize("law", moving.LAWS, ids=lambda law: law.__name__)
def test_each_law_keeps_the_value_wherever_it_applies(program: str, law: moving.Law) -> None:
    plan = with_numbers(plan_of(program, SMALL, "dask"))
    arrays = given(program, SMALL)
    applied = 0
    for step in plan.steps:
        made = law(step)
        if made is None:
            continue
        applied += 1
        new: dict[Step, Step] = {}
        for other in plan.steps:
            operands = tuple(new[o] for o in other.operands)
            new[other] = made if other is step else replace(other, operands=operands)
        changed = replace(plan, outputs=tuple(new[o] for o in plan.outputs), names={})
        verify(changed)
        assert agree(changed, plan, arrays)
    assert applied


@pytest.mark.slow
@pytest.mark.parametrize("program", [GRAPH, LAYERS, CUBES, SEVERAL, PAIRS])
def test_rows_that_are_added_are_a_sparse_product(program: str) -> None:
    plan = plan_of(program, SMALL, "dask")
    plan = with_numbers(plan) if program in (GRAPH, LAYERS) else plan
    sparse = with_sparse_products(plan, 1)
    verify(sparse)
    assert not any(isinstance(s.op, ops.Scatter) for s in sparse.steps)
    assert with_sparse_products(sparse, 1) == sparse
    assert agree(sparse, plan, given(program, SMALL))


@pytest.mark.slow
def test_a_layer_of_a_graph_network_multiplies_its_nodes_and_not_its_edges() -> None:
    plan = plan_of(GRAPH, WIDE, "numpy")
    edges = plan.arguments[0].step
    assert edges is not None
    assert Counter(type(s.op) for s in plan.steps)[ops.Sparse] == 2
    assert not any(edges.domains[0] in s.domains and s.rank > 1 for s in plan.steps)
    verify(plan)


@pytest.mark.slow
def test_weighted_rows_for_several_places_are_not_made_for_each_of_them() -> None:
    """Σ_ek w(e, k) Y(e, d) at b(e, k) takes Y(e, d), and no array of all e, k and d but the one that is given."""
    plan = plan_of(SEVERAL, WIDE, "numpy")
    sums = [s for s in plan.steps if isinstance(s.op, ops.Sparse)]
    assert sorted(s.operands[0].rank for s in sums) == [2, 3]
    assert all(s.op.weighted == (s.operands[0].rank == 2) for s in sums if isinstance(s.op, ops.Sparse))


def test_rows_at_the_places_of_two_arrays_are_a_sparse_product() -> None:
    source = cd.grad(PAIRS).source(**{name: array.shape for name, array in given(PAIRS, WIDE).items()})
    assert "(a * o + b, np.arange(e))" in source and "np.add.at" not in source, source


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
def test_rows_at_the_places_of_two_arrays_have_the_value_of_the_program(n: int) -> None:
    sizes = {"e": 3 * n, "n": n, "m": 2, "o": n + 1, "p": 3}
    arrays = given(PAIRS, sizes)
    d = cd.grad(PAIRS)
    made = with_sparse_products(plan_of(PAIRS, sizes, "dask"), 1)
    assert any(isinstance(s.op, ops.Sparse) for s in made.steps)
    *given_arrays, T = (arrays[a.name] for a in made.arguments)
    expected = evaluate(d.term, {})(*given_arrays)(T)  # type: ignore[operator]  # a function of all of them
    np.testing.assert_allclose(run(made, arrays)[1], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_rows_are_added_once_for_value_and_gradient_where_they_are_short() -> None:
    plan = plan_of(GRAPH, WIDE | {"m": 6, "o": 30}, "numpy")
    assert Counter(type(s.op) for s in plan.steps)[ops.Sparse] == 1


@pytest.mark.slow
def test_few_rows_of_a_large_table_are_taken_before_the_product() -> None:
    plan = plan_of(GRAPH, WIDE | {"e": 50, "n": 4000}, "numpy")
    products = [s for s in plan.steps if isinstance(s.op, ops.Tensordot)]
    assert any(isinstance(s.operands[0].op, ops.Gather) for s in products)


@pytest.mark.slow
@pytest.mark.parametrize("program", [GRAPH, LAYERS])
def test_code_for_many_edges_has_the_value_of_the_plan_as_lowered(program: str) -> None:
    arrays = given(program, WIDE)
    found = cd.grad(program).compile(value=True)(**arrays)
    plan = plan_of(program, WIDE, "dask")
    for one, other in zip(found, run(plan, arrays), strict=True):
        assert np.allclose(one, other, rtol=1e-9, atol=1e-9 * np.abs(other).max())


@pytest.mark.slow
def test_a_place_that_is_out_of_range_is_an_error() -> None:
    arrays = given(GRAPH, WIDE)
    arrays["b"][5] = WIDE["n"]
    with pytest.raises(cd.ArrayError):
        cd.grad(GRAPH).compile()(**arrays)
    scope: dict[str, object] = {}
    exec(emit(plan_of(GRAPH, WIDE, "numpy"), spelling_of("numpy"), "f"), scope)
    f = scope["f"]
    assert callable(f)
    with pytest.raises(ValueError):
        f(*(arrays[name] for name in ("a", "b", "w", "X", "Y", "W")))


@pytest.mark.slow
def test_products_with_the_hessian_are_sparse_too() -> None:
    arrays = given(GRAPH, WIDE)
    k = np.random.default_rng(1).normal(size=arrays["W"].shape)
    *_, hvp = cd.grad(GRAPH).compile(hvp=True)(**arrays)
    step = 1e-6
    gradient = cd.grad(GRAPH).compile()
    above, below = (gradient(**(arrays | {"W": arrays["W"] + s * step * k})) for s in (1, -1))
    assert np.allclose(hvp(k), (above - below) / (2 * step), rtol=1e-5, atol=1e-4)


@pytest.mark.slow
def test_definitions_of_value_and_gradient_are_computed_once() -> None:
    program = """(g::(N{n}) -> N{k}, u::RV{k}) -> (x::RV{n}) -> begin
      c = v -> sum(i, delta(g(i), v, 1))
      m = v -> sum(i, delta(g(i), v, x(i))) / c(v)
      s = v -> sum(i, delta(g(i), v, (x(i) - m(v))^2)) / c(v)
      sum(v, u(v) * log(s(v) + 1))
    end"""
    d = cd.grad(program)
    plan = d.plan(g=(2000,), u=(50,), x=(2000,), value=True)
    assert sum(isinstance(s.op, ops.Scatter | ops.Counted) for s in plan.steps) == 4
    assert d.check()


@pytest.mark.slow
def test_rows_at_tables_of_places_are_added_before_the_product() -> None:
    program = "(o::(N{q}, N{k}) -> N{n}, y::RM{q, k}, X::RM{n, p}) -> (w::RV{p}) -> sum((a, b), "
    program += "(sum(j, X(o(a, b), j) * w(j)) - y(a, b))^2) + sum((a, b, j), X(o(a, b), j) * w(j))"
    rng = np.random.default_rng(0)
    given = rng.integers(0, 20, (400, 5)), rng.normal(size=(400, 5)), rng.normal(size=(20, 30)), rng.normal(size=30)
    d = cd.grad(program)
    shapes = {name: array.shape for name, array in zip("oyXw", given, strict=True)}
    plan = d.plan(**shapes, value=True)
    verify(plan)
    assert not any(s.rank > 2 for s in plan.steps)
    o, y, X, w = given
    value, gradient = d.compile(value=True)(*given)
    R = X[o] @ w - y
    assert np.isclose(value, (R**2).sum() + (X[o] @ w).sum(), rtol=1e-12)
    assert np.allclose(gradient, np.einsum("qk,qkp->p", 2 * R + 1, X[o]), rtol=1e-10)


SHORTER = {
    "on a diagonal": "(A::RM{n, n}) -> real(scan((a, i) -> a + im * A(i, i)^2, 1, n - 1)(0)) + "
    "abs2(iterate((a, i) -> a + im * A(i, i)^2, 1, n - 1))",
    "under a norm": "(x::CV{n}) -> (y::RV{n}) -> "
    "real(sum(i::N{n}, iterate((z, j) -> (k::N{n}) -> y(j) * z(k), x, n - 1, z -> norm(z) <= i)(0)))",
    "under a maximum": "(x::RV{n}) -> (y::RV{n}) -> begin\n"
    "z = scan((z, j) -> (k::N{n}) -> sin(z(k)) + y(j), x, n - 1)\nsum(j, j + 1 < n, y(j) * maximum(k, z(j, k))^2) end",
    "transformed": "(x::CV{n}) -> (y::RV{n}) -> begin\nz = scan((z, j) -> (k::N{n}) -> y(j) * z(k), x, n - 1)\n"
    "sum((j, k), j + 1 < n, abs2(fft(k -> z(j, k))(k))) end",
}
"""Loops of n - 1 steps, whose states are read by an index of n values."""


@pytest.mark.parametrize("name", SHORTER)
def test_states_of_a_shorter_loop_are_read_where_there_are_some(name: str) -> None:
    d = cd.grad(SHORTER[name])
    f, value = d.compile(), cd.simplified(SHORTER[name]).compile()
    rng = np.random.default_rng(3)
    for n in (1, 2, 3, 7):
        *given, x = (rng.uniform(0.4, 0.6, [n] * (2 if "A::RM" in SHORTER[name] else 1)) for _ in f.arguments)
        slope = rng.uniform(-1, 1, x.shape)
        step = 1e-6 * slope
        difference = (value(*given, x + step) - value(*given, x - step)).real / 2e-6
        np.testing.assert_allclose((f(*given, x) * slope).sum(), difference, rtol=1e-6, atol=1e-8)


def test_a_vector_is_cut_before_it_is_written_on_a_diagonal() -> None:
    source = cd.grad(SHORTER["on a diagonal"]).compile().source
    assert source.count("np.zeros((n, n))") == 1 and "% max(" not in source, source
