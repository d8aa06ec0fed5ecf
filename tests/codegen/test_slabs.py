"""Large arrays are read once and as they lie: slabs, images under symmetries, no copies; numbers by evaluate.py."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import combdiff as cd
from combdiff.codegen import slabs
from combdiff.codegen.compiled import Compiled
from combdiff.codegen.layouts import images
from combdiff.codegen.lower import lower
from combdiff.language.evaluate import evaluate
from combdiff.language.samples import random_value
from combdiff.language.terms import App, Lam, Term, Tuple, Var, conj, fresh, mul, total
from combdiff.language.types import COMPLEX, REAL, Domain, Index, Map, Symmetry

from . import random_terms as rt

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


@pytest.fixture
def small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops as for arrays of a hundred megabytes, for arrays that a test can hold."""
    for name in ("LARGE", "THIN", "LIGHT"):
        monkeypatch.setattr(slabs, name, 0)


def symmetric_integrals(n: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """V_pqrs with the eightfold symmetry of real two-electron integrals."""
    v = rng.normal(size=(n, n, n, n))
    v = v + v.transpose(1, 0, 2, 3)
    v = v + v.transpose(0, 1, 3, 2)
    return np.asarray(v + v.transpose(2, 3, 0, 1))


def run(compiled: Callable[..., object], *arrays: Array) -> tuple[list[str], object]:
    """The body of the code for these sizes, and what it returns."""
    result = compiled(*arrays)
    text = list(compiled._known)[-1]  # type: ignore[attr-defined]
    return [line.strip() for line in text.split('"""')[2].splitlines()], result


def test_coulomb_and_exchange_are_one_loop(small_is_large: None) -> None:
    rng = np.random.default_rng(1)
    V, C = symmetric_integrals(5, rng), rng.normal(size=(5, 2))
    lines, result = run(cd.grad(RHF).compile(value=True), V, C)
    assert lines.count("for p in range(n):") == 1
    assert not any("tensordot" in line or "einsum" in line for line in lines)
    P = C @ C.T
    F = 2 * np.einsum("pqrs,rs->pq", V, P) - np.einsum("prqs,rs->pq", V, P)
    value, gradient = result  # type: ignore[misc]
    np.testing.assert_allclose(value, np.vdot(F, P))
    np.testing.assert_allclose(gradient, 4 * F @ C)


def test_a_plan_shows_what_runs_in_slabs() -> None:
    plan = cd.grad(RHF).plan(V=(40,) * 4, C=(40, 3))
    assert str(plan).count("GEMV in slabs") == 2
    assert "slabs" not in str(cd.grad(RHF).plan(V=(6,) * 4, C=(6, 3)))
    (loop,) = plan.loops
    places = [plan.steps.index(m) for m in loop.members]
    assert places == list(range(places[0], places[0] + 2))


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


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (0, 2, 3, 2), (4, 3, 5, 2), (3, 0, 2, 2), (2, 3, 4, 0)])
@pytest.mark.parametrize("layout", ["C", "F", "view"])
def test_cp_in_slabs(small_is_large: None, sizes: tuple[int, int, int, int], layout: str) -> None:
    rng = np.random.default_rng(2)
    *extents, rank = sizes
    T = rng.normal(size=extents)
    T = np.asfortranarray(T) if layout == "F" else np.repeat(T, 2, axis=1)[:, ::2] if layout == "view" else T
    X, Y, Z = (rng.normal(size=(n, rank)) for n in extents)
    lines, result = run(cd.grad(CP).compile(value=True), T, X, Y, Z)
    assert any(line.startswith("for ") for line in lines) or 0 in sizes
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


@settings(max_examples=150, deadline=None)
@given(contractions(), st.sampled_from((0, 1, 2, 3)), st.booleans(), st.integers(0, 10**6))
def test_images_and_slabs_agree_with_the_oracle(
    drawn: tuple[Term, tuple[Var, ...], tuple[Term, ...]], size: int, looped: bool, seed: int
) -> None:
    term, variables, results = drawn
    rng = np.random.default_rng(seed)
    values = {v: random_value(v.kind, {N: size}, rng) for v in variables}
    least = 0 if looped else slabs.LARGE
    with patch.multiple(slabs, LARGE=least, THIN=least, LIGHT=0 if looped else slabs.LIGHT):
        found = Compiled(term)(*values.values())
    for one, result in zip(found if isinstance(found, tuple) else (found,), results, strict=True):
        np.testing.assert_allclose(one, np.asarray(evaluate(result, values, {N: size})), atol=1e-10)


def test_images_of_a_conjugate_symmetry() -> None:
    """J_pqrs = J_qpsr' = J_rspq: four images, each as often conjugated as not."""
    symmetries = (Symmetry.permutation((2, 1, 4, 3), "conj"), Symmetry.permutation((3, 4, 1, 2), "id"))
    labels = tuple(rt.index(x, N) for x in "pqrs")
    names = {("".join(v.name for v in image.labels), image.conj) for image in images(labels, symmetries)}
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


def test_members_that_need_each_other_are_not_in_one_loop(small_is_large: None) -> None:
    """A (A (A x)): each product needs the one before, so there is no loop that holds two of them."""
    A, x = rt.tensor("A", N, N, N), rt.tensor("x", N, N)
    p, q, r, s, t = (rt.index(c, N) for c in "pqrst")
    y = total((q, r), mul(App(A, (s, q, r)), App(x, (q, r))))
    z = Lam((p, t), total((s,), mul(App(A, (p, t, s)), y)))
    term = Lam((A,), Lam((x,), Tuple((Lam((s,), y), z))))
    values = {A: np.random.default_rng(0).normal(size=(3, 3, 3)), x: np.random.default_rng(1).normal(size=(3, 3))}
    found = Compiled(term)(*values.values())
    assert all(len(loop.members) == 1 for loop in lower(term, {N: 3}).loops)
    for one, result in zip(found, (Lam((s,), y), z), strict=True):  # type: ignore[call-overload]
        np.testing.assert_allclose(one, np.asarray(evaluate(result, values)))


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


def test_what_is_contracted_with_one_array_is_added_first() -> None:
    """The Hessian product of Hartree–Fock needs J twice: for the density, and for its change."""
    J = "@space J begin type = (N, N, N, N) -> C; symmetries = (((2, 1, 4, 3), :conj), ((3, 4, 1, 2), :id)) end\n"
    energy = "C(p, i)' * C(q, i) * C(r, j)' * C(s, j) * J(p, q, r, s)"
    d = cd.hvp(f"{J}(J::J) -> (C::CM) -> sum((i, j, p, q, r, s), {energy})")
    plan = d.plan(J=(4,) * 4, C=(4, 2))
    assert sum(any(o.spec == "J" for o in step.operands) for step in plan.steps) == 2
    assert d.check()
