"""Sums over periodic indices are named up to unimodular changes of the indices, and up to no others."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from combdiff.budget import Budget
from combdiff.canon.canonical import canonical, normal_form
from combdiff.canon.hermite import basis
from combdiff.canon.leastform import Naming
from combdiff.canon.reading import Reader
from combdiff.canon.shifts import settled
from combdiff.terms.terms import Sum, Term, Var, add, call, conj, mul, number, substitute, total
from combdiff.terms.types import COMPLEX, HERMITIAN, REAL, Symmetry
from tests.simplify import simplify_oracle as oracle

K, X, at, index, tensor = oracle.K, oracle.X, oracle.at, oracle.index, oracle.tensor

f, g, k, q = (index(name, K) for name in "fgkq")
x = index("x", X)
A, B, C = (tensor(name, (K,)) for name in "ABC")
P = tensor("P", (K, K))
Q = tensor("Q", (K, K), REAL, Symmetry.permutation((2, 1), "neg"))
H = tensor("H", (K, K), COMPLEX, HERMITIAN)
M = tensor("M", (K, X), COMPLEX, Symmetry((((0, 1), (1, 1)), ((1, -1),)), 1, True))
TENSORS = (A, B, P, Q, H, M)


def times(n: int, i: Term) -> Term:
    return mul(number(n), i)


def equal(one: Term, other: Term) -> bool:
    return canonical(one) == canonical(other)


# --- the matrices ---


@given(st.lists(st.lists(st.integers(-4, 4), min_size=3, max_size=3), min_size=1, max_size=3))
def test_a_basis_is_a_unimodular_change_that_makes_the_rows_triangular(rows: list[list[int]]) -> None:
    found = basis(rows)
    if found is None:
        assert np.linalg.matrix_rank(np.array(rows)) < len(rows)
        return
    assert round(abs(np.linalg.det(np.array(found.change)))) == 1
    image = np.array(rows) @ np.array(found.change)
    others = [column for column in range(3) if column not in found.pivots]
    for n, (pivot, size) in enumerate(zip(found.pivots, found.sizes, strict=True)):
        assert image[n, pivot] == size > 0
        assert not image[n, [*found.pivots[n + 1 :], *others]].any()
        assert all(0 <= image[n, before] < size for before in found.pivots[:n])


# --- terms ---


def test_sums_and_differences_of_two_indices_are_named_together() -> None:
    one = total((k, q), mul(at(A, add(k, times(-1, q))), at(B, add(k, q))))
    assert equal(one, total((k, q), mul(at(A, k), at(B, add(k, times(2, q))))))
    assert equal(one, total((k, q), mul(at(A, add(k, q)), at(B, add(times(3, k), q)))))
    assert not equal(one, total((k, q), mul(at(A, k), at(B, q))))


def test_a_double_index_does_not_run_through_all_values() -> None:
    assert not equal(total((k,), at(A, times(2, k))), total((k,), at(A, k)))
    assert equal(total((k,), at(A, add(times(2, k), times(2, f)))), total((k,), at(A, times(-2, k))))
    assert not equal(total((k,), at(A, add(times(2, k), f))), total((k,), at(A, times(2, k))))
    assert equal(total((k,), at(A, add(times(2, k), f))), total((k,), at(A, add(times(2, k), times(-1, f)))))


def test_a_primitive_combination_is_as_good_as_an_index() -> None:
    one = total((k, q), at(A, add(times(2, k), times(3, q))))
    assert equal(one, total((k, q), at(A, k)))
    assert not equal(total((k, q), at(A, add(times(2, k), times(4, q)))), one)


def test_a_sum_that_comes_apart_after_a_shift_is_a_product_of_sums() -> None:
    one = total((k, q), mul(at(A, k), at(B, add(k, q))))
    assert equal(one, mul(total((k,), at(A, k)), total((q,), at(B, q))))


def test_a_ring_of_differences_has_one_choice_of_bare_slots() -> None:
    ring = [index(f"k{n}", K) for n in range(10)]
    body = mul(*(at(P, ring[n], add(ring[n], ring[(n + 1) % 10])) for n in range(10)))
    reader = Reader()
    _, node = reader.read(total(ring, body))
    assert len(settled(node, frozenset(range(10)))) == 1


def test_independent_loops_are_shifted_apart() -> None:
    def loop(k: Var, shift: Term) -> Term:
        return mul(at(H, add(k, shift), add(k, f, shift)), at(P, add(k, f, shift), add(k, shift)))

    loops = [index(f"k{n}", K) for n in range(6)]
    reader = Reader()
    _, node = reader.read(total(loops, mul(*(loop(k, g) for k in loops))))
    pieces, idle = Naming.of(node, reader.bound, Budget()).pieces(node)
    assert len(pieces) == 6
    assert not idle
    assert len({piece.key for piece in pieces}) == 1
    assert equal(total(loops, mul(*(loop(k, g) for k in loops))), total(loops, mul(*(loop(k, x) for k in loops))))


def test_an_inner_sum_takes_up_the_shift_of_an_outer_index() -> None:
    def energy(shift: Term) -> Term:
        inner = total((q,), mul(at(P, q, add(k, shift)), at(B, add(q, k, shift))))
        return total((k,), mul(at(A, add(k, shift)), call("exp", inner)))

    assert equal(energy(number(0)), energy(add(times(2, f), x)))


# --- random terms ---


def random_sum(rng: Random) -> tuple[Term, list[Var]]:
    bound = [index(f"k{n}", K) for n in range(rng.randint(1, 3))]

    def affine() -> Term:
        picked = [times(rng.choice((1, -1, 1, -1, 2, -2, 3)), i) for i in (*bound, f) if rng.random() < 0.5]
        return add(*picked, *([times(rng.choice((1, -1)), x)] if rng.random() < 0.1 else [])) if picked else bound[0]

    entries = []
    for _ in range(rng.randint(1, 3)):
        tensor_ = rng.choice(TENSORS)
        entry = at(tensor_, *(affine() if p.domain is K else x for p in tensor_.kind.params))
        entries.append(conj(entry) if rng.random() < 0.3 else entry)
    return Sum(tuple(bound), mul(*entries)), bound


def mixed(t: Term, bound: list[Var], rng: Random) -> Term:
    """An equal sum, by a random unimodular change."""
    body = t.body
    for _ in range(4):
        i = rng.choice(bound)
        others = [times(rng.choice((1, -1, 2, -3)), j) for j in (*bound, f, x) if j != i and rng.random() < 0.4]
        body = substitute(body, {i: add(times(rng.choice((1, -1)), i), *others)})
    return Sum(tuple(rng.sample(bound, len(bound))), body)


@pytest.mark.slow
def test_a_unimodular_change_keeps_key_and_sign() -> None:
    rng = Random(8)
    scramble = oracle.Scramble(rng, [f, x])
    for _ in range(500):
        t, bound = random_sum(rng)
        one, other = normal_form(t), normal_form(scramble(mixed(t, bound, rng)))
        assert one.sign == other.sign == 0 or oracle.signed(one) == oracle.signed(other)


@pytest.mark.slow
def test_sums_of_one_key_have_one_value() -> None:
    rng = Random(9)
    arrays = {t: oracle.entries(t, np.random.default_rng(n)) for n, t in enumerate(TENSORS)}
    seen: dict[object, oracle.Array] = {}
    merged = zeros = 0
    for _ in range(1500):
        t, bound = random_sum(rng)
        axes = {i: n for n, i in enumerate((f, x, *bound))}
        sizes = (oracle.SIZES[K], oracle.SIZES[X])
        found = oracle.value(t, arrays, axes, len(axes))
        found = np.broadcast_to(found, sizes + (1,) * len(bound)).reshape(sizes)
        form = normal_form(t)
        if not form.sign:
            assert np.abs(found).max() < 1e-9
            zeros += 1
            continue
        found = found / (complex(*form.coefficient) * form.sign)
        merged += form.key in seen
        assert np.allclose(
            seen.setdefault(form.key, found), found, rtol=1e-8, atol=1e-8 * max(1.0, np.abs(found).max())
        )
    assert merged > 100
    assert zeros > 20
