"""`structured=True`: patterns and arrays of what is not zero."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import combdiff as cd
from benchmarks.jacobians import CAMERAS
from combdiff.errors import CombDiffError

SIZES = (1, 2, 3, 5, 7)
JACOBIANS = {
    # text of the map, the patterns, the number of entries that are stored for size n
    "identity": ("(A::RM{n, n}) -> (x::RV{n}) -> (i::N) -> 2 * x(i)", ["(i, i)"], lambda n: n),
    "entry by entry": ("(A::RM{n, n}) -> (x::RV{n}) -> (i::N) -> sin(x(i)) * A(i, i)", ["(i, i)"], lambda n: n),
    "dense": ("(A::RM{n, n}) -> (x::RV{n}) -> (i::N) -> sum(j, A(i, j) * x(j))", ["(i, j)"], lambda n: n * n),
    "both": (
        "(A::RM{n, n}) -> (x::RV{n}) -> (i::N) -> sum(j, A(i, j) * x(j)) * x(i)",
        ["(i, i)", "(i, j)"],
        lambda n: n * n + n,
    ),
    "rows of a matrix": (
        "(A::RM{n, n}) -> (x::RM{n, n}) -> (i::N, c::N) -> sum(d, x(i, d) * A(d, c))",
        ["(i, c, i, d)"],
        lambda n: n**3,
    ),
    "shifted": (
        """@domain Z begin periodic = true end
        (A::RM{n, n}) -> (x::(Z) -> R) -> (i::Z) -> x(i + 1)^2 - x(i - 1) * x(i)""",
        None,
        lambda n: 3 * n,
    ),
    "nothing": ("(A::RM{n, n}) -> (x::RV{n}) -> (i::N) -> A(i, i)", [], lambda n: 0),
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", JACOBIANS)
def test_blocks_add_up_to_the_whole_and_store_no_more_than_they_need(name: str) -> None:
    text, patterns, entries = JACOBIANS[name]
    d = cd.jacobian(text)
    whole, structured = d.compile(), d.compile(structured=True)
    rng = np.random.default_rng(1)
    rank = 2 if name == "rows of a matrix" else 1
    for n in SIZES:
        A, x = rng.standard_normal((n, n)), rng.standard_normal((n,) * rank)
        found, expected = structured(A, x), whole(A, x)
        assert found.shape == expected.shape and found.rows == rank
        assert np.allclose(found.dense(), expected)
        assert found.entries == entries(n)
        assert np.allclose(found.scipy().toarray(), expected.reshape(n**rank, -1))
        if patterns is not None:
            assert len(found.blocks) == len(patterns)


@pytest.mark.sampled
@pytest.mark.parametrize("setting", ["symmetric = true", "lower = -1; upper = 3", "lower = 2; upper = 6", "base = I"])
def test_entries_of_integers_are_values_of_any_range(setting: str) -> None:
    domain = f"@domain Z begin {setting} end\n"
    first = {"lower = -1; upper = 3": -1, "lower = 2; upper = 6": 2, "symmetric = true": -2}.get(setting, 0)
    rng = np.random.default_rng(2)
    for body, shape in (("(A::(N, Z) -> R) -> k -> A(k, J(k))^2", (7, 5)), ("(A::(Z) -> R) -> k -> A(J(k))^2", (5,))):
        d = cd.jacobian(f"{domain}(J::(N) -> Z) -> {body}")
        J, A = rng.integers(first, first + 5, 7), rng.standard_normal(shape)
        found, expected = d.compile(structured=True)(J, A), d.compile()(J, A)
        assert found.entries == 7 and np.array_equal(found.dense(), expected)
        assert np.array_equal(found.scipy().toarray(), expected.reshape(7, -1))
        assert f"indices {'around 0' if 'symmetric' in setting else f'from {first}'}" in d.source()


@pytest.mark.slow
def test_a_hessian_of_pairs_is_stored_in_blocks() -> None:
    text = """(x::RM) -> sum((i, j), indicator(i + 1, j, sqrt(1 + sum(c, (x(i, c) - x(j, c))^2))))"""
    d = cd.hessian(text)
    found, whole = d.compile(structured=True), d.compile()
    x = np.random.default_rng(2).standard_normal((5, 3))
    assert np.allclose(found(x).dense(), whole(x)) and found(x).rows == 2
    assert np.allclose(found(x).scipy().toarray(), whole(x).reshape(15, 15))


def test_pairs_values_and_several_unknowns_come_each_with_their_blocks() -> None:
    d = cd.jacobian("(x::CV, s::R) -> (i::N) -> abs2(x(i)) * s")
    x = np.array([1.0 + 1j, 2.0, -1j])
    value, by_x, by_conjugate, by_s = d.compile(value=True, structured=True)(x, 0.5)
    assert np.allclose(value, np.abs(x) ** 2 / 2)
    assert np.allclose(by_x.dense(), np.diag(x.conj()) / 2) and np.allclose(by_conjugate.dense(), np.diag(x) / 2)
    assert np.allclose(by_s.dense(), np.abs(x) ** 2) and by_x.entries == 3


def test_the_memory_is_that_of_the_blocks() -> None:
    import tracemalloc

    f = cd.jacobian("(x::RV) -> (i::N) -> tanh(x(i))^2").compile(structured=True)
    x = np.linspace(0, 1, 200_000)
    f(x)
    tracemalloc.start()
    found = f(x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.shape == (200_000, 200_000) and peak < 5 * x.nbytes


LOOKED_UP = {
    "an entry": ("(e::N{o}, r::N{k}) -> sin(x(J(e), r))", ["(e, r, J(e), r)"]),
    "two entries": ("(e::N{o}) -> sum(r, (x(J(e), r) - x(K(e), r))^2)", ["(e, J(e), r)", "(e, K(e), r)"]),
    "an entry at an entry": ("(e::N{o}) -> sum(r, x(J(L(e)), r)^3)", ["(e, J(L(e)), r)"]),
    "the same for all": ("(e::N{o}, r::N{k}) -> x(J(e), r) * x(0, 0)", None),
    "under a condition": ("(e::N{o}) -> where(J(e) < 2, sum(r, x(J(e), r)^2))", ["(e, J(e), r)"]),
    "one component": ("(e::N{o}, r::N{k}) -> where(r == 0, x(J(e), 1), x(J(e), 0)) * x(J(e), r)", None),
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", LOOKED_UP)
def test_slots_may_be_entries_of_integers(name: str) -> None:
    body, patterns = LOOKED_UP[name]
    head = "(J::(N{o}) -> N{n}, K::(N{o}) -> N{n}, L::(N{o}) -> N{o}) -> (x::RM{n, k}) -> "
    d = cd.jacobian(head + body)
    whole, structured = d.compile(), d.compile(structured=True)
    for o in SIZES:
        rng = np.random.default_rng(o)
        given = [*rng.integers(0, 3, (2, o)), rng.integers(0, o, o), rng.standard_normal((3, 2))]
        found, expected = structured(*given), whole(*given)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found.dense(), expected, rtol=1e-12)
        np.testing.assert_allclose(found.scipy().toarray(), expected.reshape(-1, 6), rtol=1e-12)
        assert patterns is None or [block.pattern for block in found.blocks] == patterns


@pytest.mark.slow
def test_the_jacobian_of_a_bundle_adjustment_takes_the_memory_of_its_blocks() -> None:
    import tracemalloc

    d = cd.jacobian(CAMERAS)
    f = d.compile(structured=True, memory="7 MB")
    rng = np.random.default_rng(1)
    levi = np.zeros((3, 3, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        levi[i, j, k], levi[i, k, j] = 1, -1

    def given(observations: int, cameras: int, points: int) -> list[np.ndarray]:
        seen = [rng.integers(0, n, observations) for n in (cameras, points)]
        places = [rng.normal(size=(n, 3)) for n in (cameras, cameras, points)]
        return [levi, rng.normal(size=(observations, 2)), *seen, *places[:2], places[2] + [0, 0, 5]]

    few = given(20, 3, 8)
    for blocks, whole in zip(f(*few), d.compile()(*few), strict=True):
        np.testing.assert_allclose(blocks.dense(), whole, rtol=1e-9, atol=1e-12)
    many = given(10_000, 100, 1_000)
    f(*many)
    tracemalloc.start()
    found = f(*many)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    sparse = [blocks.scipy() for blocks in found]
    stored = sum(m.data.nbytes + m.indices.nbytes + m.indptr.nbytes for m in sparse)
    assert [blocks.entries for blocks in found] == [60_000] * 3
    assert peak < 2.1 * stored


def test_what_is_structured_is_pickled_and_refuses_what_it_cannot_do() -> None:
    d = cd.jacobian("(x::RV) -> (i::N) -> x(i)^2")
    f = pickle.loads(pickle.dumps(d.compile(structured=True)))
    assert np.allclose(f(np.arange(3.0)).dense(), np.diag(2 * np.arange(3.0)))
    with pytest.raises(CombDiffError, match="whole arrays"):
        f(np.arange(3.0), out=np.zeros((3, 3)))
    with pytest.raises(CombDiffError, match="does not work with"):
        cd.grad("(x::RV) -> sum(i, x(i)^2)").compile(hvp=True, structured=True)
    with pytest.raises(CombDiffError, match="axes of rows"):
        f(np.arange(3.0)).scipy(rows=3)


PER_CAMERA = """(cam::(N{o}) -> N{v}, y::RM{o, a}) -> (r::RM{v, a}) -> begin
    beta = v -> exp(r(v, 0) * r(v, 1))
    d = o -> beta(cam(o)) * y(o, 0)
    x1 = o -> d(o) * r(cam(o), 0) + beta(cam(o))
    x2 = o -> d(o) * r(cam(o), 1)
    n = o -> sin(x1(o)) * x2(o)
    (o -> cos(n(o)) * n(o), o -> y(o, 0))
end"""
"""beta is of all rows of r, and looked up."""


@pytest.mark.slow
def test_what_is_looked_up_in_a_function_of_all_rows_is_stored_by_rows() -> None:
    """Its cotangent is a sum that lies on a diagonal, once it is contracted."""
    d = cd.jacobian(PER_CAMERA)
    f = d.compile(structured=True)
    rng = np.random.default_rng(3)
    for o, v, a in ((1, 1, 2), (3, 2, 2), (7, 5, 3)):
        given = rng.integers(0, v, o), rng.normal(size=(o, a)), rng.normal(size=(v, a))
        found, nothing = f(*given)
        whole, zeros = d.compile()(*given)
        assert [block.pattern for block in found.blocks] == ["(o, cam(o), d1)"]
        assert np.allclose(found.dense(), whole)
        assert not nothing.blocks and np.array_equal(nothing.dense(), zeros)
        assert nothing.shape == zeros.shape and nothing.scipy().nnz == 0


def test_blocks_of_several_results_share_their_positions() -> None:
    text = "(J::(N{o}) -> N{v}) -> (x::RV{v}) -> (o -> sin(x(J(o))), o -> x(J(o))^2)"
    source = str(cd.jacobian(text).compile(structured=True).source)
    assert source.count("J.astype(float)") == 1
