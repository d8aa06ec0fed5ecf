"""Loops over an index: one pass over a large array, small temporaries, images under symmetries; evaluate.py agrees."""

from __future__ import annotations

import ast
import random
import re
import tracemalloc
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.cuts import cuts
from combdiff.arrays.layouts import images
from combdiff.arrays.lower.lower import lower
from combdiff.arrays.lower.signature import result_of
from combdiff.arrays.passes.distances import Distances
from combdiff.arrays.passes.loops.blocks import grown, with_loop
from combdiff.arrays.passes.loops.read_once import Costs, _seeds
from combdiff.arrays.passes.schedule import scheduled
from combdiff.arrays.plan import Plan
from combdiff.canon.moves import MoveGroup
from combdiff.emit.backends.numpy import SPELLING as NUMPY
from combdiff.emit.emit import emit
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.samples import random_value
from combdiff.meaning.values import Extent
from combdiff.run.compiled import Compiled
from combdiff.run.executing import compile_source
from combdiff.terms.terms import App, Lam, Term, Tuple, Var, add, call, conj, fresh, let, mul, total
from combdiff.terms.types import COMPLEX, REAL, Domain, Index, Map, Symmetry
from tests import random_terms as rt

Array = npt.NDArray[np.generic]

RHF = """@space V begin
  type = (N, N, N, N) -> R
  symmetries = (((2, 1, 3, 4), :id), ((1, 2, 4, 3), :id), ((3, 4, 1, 2), :id))
end
(V::V) -> (C::RM) -> begin
  P = (p, q) -> sum(i, C(p, i) * C(q, i))
  sum((p, q, r, s), (2 * V(p, q, r, s) - V(p, r, q, s)) * P(p, q) * P(r, s))
end"""
CP = """@space T begin type = (N, N, N) -> R end
(T::T) -> (X::RM, Y::RM, Z::RM) -> sum((i, j, k), (sum(e, X(i, e) * Y(j, e) * Z(k, e)) - T(i, j, k))^2)"""


EAGER = Costs(large=0, small=0, turn=0, thin=0, slab=0, cache=1 << 60, light=0)  # loops as for a hundred megabytes


def run(term: Term, *arrays: object, costs: Costs = EAGER) -> tuple[list[str], object]:
    """The body of the code for these sizes, and what it returns."""
    extent = Extent()
    for v, array in zip(result_of(term).params, arrays, strict=True):
        for slot, size in zip(v.kind.params if isinstance(v.kind, Map) else (), np.shape(array), strict=True):  # type: ignore[arg-type]
            assert isinstance(slot, Index) and slot.domain is not None
            extent.note(slot.domain, size, v.name)
    text = emit(scheduled(lower(term, extent.sizes), NUMPY, costs=costs), NUMPY)
    lines = [line.strip() for line in text.split('"""')[2].splitlines()]
    return lines, compile_source(text)(*arrays)


def symmetric_integrals(n: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """V_pqrs with the eightfold symmetry of real two-electron integrals."""
    v = rng.normal(size=(n, n, n, n))
    v = v + v.transpose(1, 0, 2, 3)
    v = v + v.transpose(0, 1, 3, 2)
    return np.asarray(v + v.transpose(2, 3, 0, 1))


@pytest.mark.slow
def test_coulomb_and_exchange_are_one_loop() -> None:
    rng = np.random.default_rng(1)
    V, C = symmetric_integrals(5, rng), rng.normal(size=(5, 2))
    lines, result = run(cd.grad(RHF).runnable.forms(value=True).formula, V, C)
    assert lines.count("for p in range(n):") == 1
    assert not any("tensordot" in line or "einsum" in line for line in lines)
    P = C @ C.T
    F = 2 * np.einsum("pqrs,rs->pq", V, P) - np.einsum("prqs,rs->pq", V, P)
    value, gradient = result  # type: ignore[misc]
    np.testing.assert_allclose(value, np.vdot(F, P))
    np.testing.assert_allclose(gradient, 4 * F @ C)


@pytest.mark.slow
def test_a_plan_shows_its_loops() -> None:
    plan = cd.grad(RHF).plan(V=(40,) * 4, C=(40, 3))
    assert "loop over 40 values, one at a time: #2, #3, #4" in str(plan)
    assert "loop" not in str(cd.grad(RHF).plan(V=(6,) * 4, C=(6, 3)))
    assert "loop" not in str(cd.grad(RHF).plan("jax", V=(40,) * 4, C=(40, 3)))
    (loop,) = plan.loops
    places = [plan.steps.index(s) for s in loop.steps]
    assert places == list(range(places[0], places[0] + len(places)))


@pytest.mark.slow
def test_no_copy_of_a_large_array() -> None:
    """Two electron integrals of 20 MB: what is made on the way is far less."""
    n = 40
    V = np.ones((n, n, n, n))
    for given_v in (V, np.asfortranarray(V), V.transpose(2, 1, 0, 3)):
        f = cd.grad(RHF).compile(value=True, check=False)
        f(given_v, np.ones((n, 4)))
        tracemalloc.start()
        f(given_v, np.ones((n, 4)))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < V.nbytes / 8


@pytest.mark.sampled
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (0, 2, 3, 2), (4, 3, 5, 2), (3, 0, 2, 2), (2, 3, 4, 0)])
@pytest.mark.parametrize("layout", ["C", "F", "view"])
def test_a_residual_is_contracted_as_it_lies(sizes: tuple[int, int, int, int], layout: str) -> None:
    rng = np.random.default_rng(2)
    *extents, rank = sizes
    T = rng.normal(size=extents)
    T = np.asfortranarray(T) if layout == "F" else np.repeat(T, 2, axis=1)[:, ::2] if layout == "view" else T
    X, Y, Z = (rng.normal(size=(n, rank)) for n in extents)
    lines, result = run(cd.grad(CP).runnable.forms(value=True).formula, T, X, Y, Z)
    assert not any("transpose" in line for line in lines)
    D = np.einsum("ie,je,ke->ijk", X, Y, Z) - T
    wanted = [
        np.sum(D**2),
        2 * np.einsum("ijk,je,ke->ie", D, Y, Z),
        2 * np.einsum("ijk,ie,ke->je", D, X, Z),
        2 * np.einsum("ijk,ie,je->ke", D, X, Y),
    ]
    assert isinstance(result, tuple)
    for one, other in zip(result, wanted, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


# --- images under declared symmetries -----------------------------------------------------------------------------

N = Domain("A.1")
GENERATORS = [
    ((2, 1, 3, 4), "neg"),
    ((2, 1, 4, 3), "conj"),
    ((3, 4, 1, 2), "id"),
    ((4, 3, 2, 1), "conj"),
    ((1, 3, 2, 4), "id"),
    ((2, 3, 4, 1), "id"),
]


@st.composite
def contractions(draw: st.DrawFn) -> tuple[Term, tuple[Var, ...], tuple[Term, ...]]:
    """Contractions of one tensor of four slots with declared symmetries, as separate results of one function."""
    declared = draw(st.lists(st.sampled_from(GENERATORS), min_size=0, max_size=2, unique=True))
    symmetries = tuple(Symmetry.permutation(*s) for s in declared)
    A = fresh("A", Map((Index(N),) * 4, draw(st.sampled_from([REAL, COMPLEX])), symmetries))
    B = rt.tensor("B", N, N, complex=draw(st.booleans()))
    c = rt.tensor("c", N, complex=draw(st.booleans()))
    results: list[Term] = []
    for _ in range(draw(st.integers(1, 3))):
        labels = p, q, r, s = tuple(rt.index(x, N) for x in "pqrs")
        entry: Term = App(A, tuple(labels[a] for a in draw(st.permutations(range(4)))))
        entry = conj(entry) if draw(st.booleans()) else entry
        match draw(st.integers(0, 2)):
            case 0:
                results.append(Lam((p, q), total((r, s), mul(entry, App(B, (r, s))))))
            case 1:
                results.append(Lam((p, q, r), total((s,), mul(entry, App(c, (s,))))))
            case _:
                t = rt.index("t", N)
                results.append(Lam((p, t, q, r), total((s,), mul(entry, App(B, (t, s))))))
    body = Tuple(tuple(results)) if len(results) > 1 else results[0]
    return Lam((A,), Lam((B,), Lam((c,), body))), (A, B, c), tuple(results)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(contractions(), st.sampled_from((0, 1, 2, 3)), st.booleans(), st.integers(0, 10**6))
def test_images_and_slabs_agree_with_the_oracle(
    drawn: tuple[Term, tuple[Var, ...], tuple[Term, ...]], size: int, looped: bool, seed: int
) -> None:
    term, variables, results = drawn
    rng = np.random.default_rng(seed)
    values = {v: random_value(v.kind, {N: size}, rng) for v in variables}
    _, found = run(term, *values.values(), costs=EAGER if looped else Costs())
    for one, result in zip(found if isinstance(found, tuple) else (found,), results, strict=True):
        np.testing.assert_allclose(one, np.asarray(evaluate(result, values, {N: size})), atol=1e-10)


def test_images_of_a_conjugate_symmetry() -> None:
    """J_pqrs = J_qpsr' = J_rspq: four images, each as often conjugated as not."""
    symmetries = (Symmetry.permutation((2, 1, 4, 3), "conj"), Symmetry.permutation((3, 4, 1, 2), "id"))
    labels = tuple(rt.index(x, N) for x in "pqrs")
    group = MoveGroup.exchanging(Map((Index(N),) * 4, COMPLEX, symmetries))
    names = {("".join(v.name for v in image.labels), image.conj) for image in images(labels, group)}
    assert names == {("pqrs", False), ("qpsr", True), ("rspq", False), ("srqp", True)}


def test_a_symmetry_saves_the_transposed_copy() -> None:
    """Summed slots 2 and 4 of T(a, b, c, d) = T(a, b, d, c) are neighbours in an image; without it, they are not."""

    def body(symmetries: tuple[Symmetry, ...]) -> str:
        A = fresh("A", Map((Index(N),) * 4, REAL, symmetries))
        B = rt.tensor("B", N, N)
        p, q, r, s = (rt.index(x, N) for x in "pqrs")
        contracted = Lam((p, q), total((r, s), mul(App(A, (p, r, q, s)), App(B, (r, s)))))
        return Compiled(Lam((A,), Lam((B,), contracted))).source.splitlines()[-1].strip()

    assert body((Symmetry.permutation((1, 2, 4, 3), "id"),)) == "return B.ravel() @ A.reshape(n, n * n, n)"
    assert "tensordot" in body(())


def test_what_needs_a_whole_result_comes_after_the_loop() -> None:
    """u = A (A (A x)): the second product adds up over s as y(s) is made, the third needs all of it."""
    A, x = rt.tensor("A", N, N, N), rt.tensor("x", N, N)
    p, q, r, s, t = (rt.index(c, N) for c in "pqrst")
    y = total((q, r), mul(App(A, (s, q, r)), App(x, (q, r))))
    z = total((s,), mul(App(A, (p, t, s)), y))
    Z = fresh("Z", rt.tensor("Z", N, N).kind)
    u = Lam((r,), total((p, t), mul(App(A, (r, p, t)), App(Z, (p, t)))))
    term = Lam((A,), Lam((x,), let([(Z, Lam((p, t), z))], Tuple((u, Lam((p, t), z))))))
    arrays = {A: np.random.default_rng(0).normal(size=(3, 3, 3)), x: np.random.default_rng(1).normal(size=(3, 3))}
    _, found = run(term, *arrays.values())
    plan = scheduled(lower(term, {N: 3}), NUMPY, costs=EAGER)
    assert plan.loops
    for loop in plan.loops:
        assert sum(o.op == ops.Input("A") for step in loop.steps for o in step.operands) <= 2
    a, b = arrays.values()
    second = np.einsum("pts,sqr,qr->pt", a, a, b)
    np.testing.assert_allclose(found[1], second, atol=1e-12)  # type: ignore[index]
    np.testing.assert_allclose(found[0], np.einsum("rpt,pt->r", a, second), atol=1e-12)  # type: ignore[index]


@pytest.mark.parametrize("seeds", [0, 1, 2])
def test_loops_start_at_the_largest_temporaries(seeds: int) -> None:
    x, y = rt.tensor("x", N), rt.tensor("y", N)
    i, j, k = (rt.index(c, N) for c in "ijk")
    pairs = call("sin", add(App(x, (i,)), App(y, (j,))))
    term = Lam((x, y), Lam((i, j, k), call("exp", add(pairs, App(x, (k,))))))
    plan = lower(term, {N: 5})
    found = {step for start in _seeds(plan, replace(EAGER, seeds=seeds)) for step in start}
    assert sorted(step.rank for step in found) == [3, 3][:seeds]


@pytest.mark.parametrize("action", ["id", "neg", "conj"])
@pytest.mark.parametrize("conjugated", [False, True])
def test_an_image_keeps_its_sign_and_conjugation(action: str, conjugated: bool) -> None:
    """Slots 1 and 3 are summed; T(a, b, c, d) = ±T(b, a, c, d), or its conjugate, puts them side by side."""
    A = fresh("A", Map((Index(N),) * 4, COMPLEX, (Symmetry.permutation((2, 1, 3, 4), action),)))
    B = rt.tensor("B", N, N, complex=True)
    p, q, r, s = (rt.index(x, N) for x in "pqrs")
    entry: Term = App(A, (r, p, s, q))
    result = Lam((p, q), total((r, s), mul(conj(entry) if conjugated else entry, App(B, (r, s)))))
    values = {v: random_value(v.kind, {N: 3}, np.random.default_rng(4)) for v in (A, B)}
    f = Compiled(Lam((A,), Lam((B,), result)))
    assert "reshape(n, n * n, n)" in f.source
    np.testing.assert_allclose(f(*values.values()), np.asarray(evaluate(result, values)), atol=1e-12)


@pytest.mark.slow
def test_what_is_contracted_with_one_array_is_added_first() -> None:
    """The Hessian product of Hartree–Fock needs J twice: for the density, and for its change."""
    J = "@space J begin type = (N, N, N, N) -> C; symmetries = (((2, 1, 4, 3), :conj), ((3, 4, 1, 2), :id)) end\n"
    energy = "C(p, i)' * C(q, i) * C(r, j)' * C(s, j) * J(p, q, r, s)"
    d = cd.hvp(f"{J}(J::J) -> (C::CM) -> sum((i, j, p, q, r, s), {energy})")
    plan = d.plan(J=(4,) * 4, C=(4, 2))
    assert sum(any(o.op == ops.Input("J") for o in step.operands) for step in plan.steps) == 2
    assert d.check()


# --- loops wherever there may be one --------------------------------------------------------------------------------


def one_loop(plan: Plan, rng: random.Random) -> Plan:
    """The plan with a loop over some index of some step, of some width."""
    seeds = [(step, cut) for step in plan.steps for cut in cuts(step)]
    if not seeds:
        return plan
    step, cut = rng.choice(seeds)
    group = grown(plan, {step: cut}, rng.choice((0, 1 << 60)), rng.choice((0, 1 << 60)))
    return plan if group is None else with_loop(plan, group, rng.choice((1, 1, 2, 3)))


@pytest.mark.slow
@example(980, 1, 1, 1)  # a block of places that are counted round a range
@example(51734, 1, 0, 1)  # a conjugate that only an inner product reads, which is cut
@settings(max_examples=250, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from((1, 2, 3)), st.sampled_from((0, 1, 2)), st.sampled_from((1, 2, 3, 5)))
def test_a_loop_over_any_index_computes_the_same(seed: int, n: int, m: int, bz: int) -> None:
    rng = random.Random(seed)
    generator = rt.Terms(rng)
    output = generator.output()
    term = Lam(tuple(generator.tensors), Lam(tuple(generator.scalars), output))
    sizes = {rt.N: n, rt.M: m, rt.BZ: bz, rt.X: 3}
    values = {v: random_value(v.kind, sizes, np.random.default_rng(seed)) for v in result_of(term).params}
    plan = lower(term, sizes)
    if any(isinstance(s.op, ops.Pick) and 0 in (sizes[d] for _, _, d in s.op.fixed) for s in plan.steps):
        return
    plan = one_loop(one_loop(plan, rng), rng)
    text = emit(plan, NUMPY)
    unseen = [sizes[a.kind.domain] for a in plan.arguments if isinstance(a.kind, Index)]  # type: ignore[index]
    given_values = [values[v] for v in result_of(term).params if v.name in {a.name for a in plan.arguments}]
    with np.errstate(all="ignore"):
        wanted = np.asarray(evaluate(output, values, sizes))
        found = compile_source(text)(*given_values, *unseen)
    assert np.shape(found) == wanted.shape, text
    np.testing.assert_allclose(
        found, wanted, rtol=1e-7, atol=1e-9 * max(1.0, float(np.abs(wanted).max(initial=0))), err_msg=text
    )


NEAREST = """(X::RM{n, d}, Y::RM{k, d}) -> begin
  nearest = i -> argmin(j, sum(c, (X(i, c) - Y(j, c))^2))
  (j, c) -> sum(i, where(nearest(i) == j, X(i, c))) / sum(i, where(nearest(i) == j, 1))
end"""


@pytest.mark.parametrize("distances", ["differences", "expanded"])
def test_a_loop_that_keeps_the_places_of_least_entries_keeps_integers(distances: Distances) -> None:
    rng = np.random.default_rng(2)
    X, Y = rng.normal(size=(2000, 3)), rng.normal(size=(30, 3))
    f = cd.simplified(NEAREST).compile(memory="300 kB", distances=distances)
    nearest = np.square(X[:, None] - Y).sum(-1).argmin(1)
    np.testing.assert_allclose(f(X, Y), [X[nearest == j].mean(0) for j in range(30)], rtol=1e-12)
    text = next(iter(f._known))
    assert re.search(r"(\w+) = np\.empty\(\(n,\), dtype=int\)\n.*for .*\1\[block\] = [^\n]*argmin", text, re.DOTALL)


CONJUGATED = """@domain Z begin base = (I, I, I); periodic = true end
(A::(Z, Z) -> C) -> sum((i, j), A(i, j) * (A(-i, j) * A(j, i)))"""


@pytest.mark.slow
def test_what_a_loop_reads_is_there_and_nothing_else_is_made() -> None:
    """A loop that needs A(−i, j)* slice by slice takes slices of A(−i, j), or of what another loop keeps."""
    d = cd.grad(CONJUGATED)
    f = d.compile()
    function = ast.parse(f.source).body[-1]
    stored = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    read = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    assert stored <= read
    rng = np.random.default_rng(1)
    for sizes in ((2, 1, 3), (1, 1, 1), (3, 2, 2)):
        count = int(np.prod(sizes))
        a = rng.standard_normal((count, count)) + 1j * rng.standard_normal((count, count))
        places = np.arange(count).reshape(sizes)
        negative = places[np.ix_(*(-np.arange(n) % n for n in sizes))].ravel()
        expected = a[negative] * a.T + a[negative] * a[:, negative].T + a.T * a[negative].T
        np.testing.assert_allclose(f(a.reshape(*sizes, *sizes)), expected.conj().reshape(*sizes, *sizes), rtol=1e-12)


@pytest.mark.slow
def test_what_loops_of_a_closure_read_stands_before_it() -> None:
    text = """@domain Z begin base = (I, I, I); periodic = true end
(y::(Z) -> R) -> (A::(Z, Z) -> C) -> sum((i, j), abs2(A(i, j) * (y(-i) * 5 * A(2 * j - i, j + 2 * i))))"""
    both = cd.grad(text).compile(value=True, hvp=True)
    apart = cd.hvp(text).compile()
    rng = np.random.default_rng(2)
    for sizes in ((2, 1, 2), (1, 1, 1), (3, 1, 2)):
        a, k = (rng.standard_normal((*sizes, *sizes)) + 1j * rng.standard_normal((*sizes, *sizes)) for _ in range(2))
        y = rng.standard_normal(sizes)
        _, _, hvp = both(y, a)
        np.testing.assert_allclose(hvp(k), apart(y, a, k), rtol=1e-10)


@pytest.mark.slow
def test_a_loop_leaves_the_products_of_a_batch_products_of_matrices() -> None:
    """Along an index that is not the batch's, each would become products of a matrix with a vector."""
    d = cd.grad("""(x::RM{n, d}) -> (Q::(N{k}, N{d}, N{d}) -> R, mu::RM{k, d}) -> begin
        u = (p, c, i) -> sum(j, Q(c, i, j) * (x(p, j) - mu(c, j)))
        sum((p, c, i), u(p, c, i)^2)
    end""")
    plan = str(d.plan(x=(1000, 64), Q=(100, 64, 64), mu=(100, 64)))
    assert "loop over 100 values, one at a time" in plan and "loop over 64 values" not in plan


@pytest.mark.parametrize(
    "program",
    [
        "(y::RV{T}) -> (b::R) -> begin s = scan((s, t) -> begin a = b * s; s * (1 - a) + a * y(t) end, 1, T); "
        "sum(t::N{T}, s(t)^2) end",
        "(y::RV{T}) -> (b::R) -> begin (s, e) = iterate(((s, e), t) -> begin a = b * s * e; (s - a, e + a * y(t)) end, "
        "(1, 1), T); e^2 end",
        # the gradient needs no l, so that it uses r once
        "(y::RV{T}) -> (a::R) -> begin (m, l) = iterate(((m, l), t) -> begin p = a * sin(m); r = y(t) - p; "
        "(p + r / 3, l + r^2) end, (1, 0), T); l end",
    ],
)
def test_value_and_gradient_share_a_loop_whose_step_has_definitions(program: str) -> None:
    d = cd.grad(program)
    code = d.source(value=True).split('"""')[2]
    # one sine is of all states at once
    assert code.count("for ") == 2 and code.count("np.sin(") == 2 * program.count("sin("), code
    assert d.check()
