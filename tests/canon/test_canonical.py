"""Canonical names: equal keys only for equal terms, equal terms found, zeros that are zeros."""

from __future__ import annotations

from collections import defaultdict
from random import Random

import numpy as np
import pytest

from combdiff.canon.canonical import canonical, is_real, merge_like_terms, normal_form
from combdiff.canon.closed import derived_symmetries
from combdiff.terms.terms import (
    ZERO,
    Add,
    Call,
    Diff,
    Lam,
    Pow,
    Sum,
    Term,
    Var,
    add,
    bound_by,
    call,
    conj,
    delta,
    fresh,
    mul,
    neg,
    number,
    power,
    sub,
    subterms,
    total,
)
from combdiff.terms.types import COMPLEX, REAL, Index, Map, Symmetry
from tests.simplify import simplify_oracle as oracle

N, K, X, at, index, tensor = oracle.N, oracle.K, oracle.X, oracle.at, oracle.index, oracle.tensor
permutation = Symmetry.permutation

a, b, c, d, i, j, p, q, r, s = (index(name, N) for name in "abcdijpqrs")
f, k, m = (index(name, K) for name in "fkm")
x, y = (index(name, X) for name in "xy")
A, B, C = (tensor(name, (N, N)) for name in "ABC")
v = tensor("v", (N,))
H = tensor("H", (N, N), COMPLEX, permutation((2, 1), "conj"))
S = tensor("S", (N, N), REAL, permutation((2, 1), "id"))
D = tensor("D", (N, N), REAL, permutation((2, 1), "neg"))
J = tensor("J", (N, N, N, N), COMPLEX, permutation((2, 1, 4, 3), "conj"), permutation((3, 4, 1, 2), "id"))
overlaps = tensor("S", (N, N, K, K), COMPLEX, permutation((2, 1, 4, 3), "conj"))
U = tensor("U", (N, N, K))
w = tensor("w", (X,), REAL, Symmetry.reflection((1,), 1, "ineg"))
G = tensor("G", (K,))
Q = tensor("Q", (K, K), REAL, permutation((2, 1), "neg"))
z = fresh("z", COMPLEX)


def equal(one: Term, other: Term) -> bool:
    return canonical(one) == canonical(other)


def overlap(n: Var, m: Term) -> Term:
    shifted = add(k, m)
    return total((k, p, q), mul(conj(at(U, p, n, k)), at(overlaps, p, q, k, shifted), at(U, q, n, shifted)))


# --- random terms ---


@pytest.fixture(scope="module")
def pool() -> oracle.Pool:
    return oracle.Pool(Random(11))


@pytest.fixture(scope="module")
def arrays(pool: oracle.Pool) -> dict[Var, oracle.Array]:
    return {t: oracle.entries(t, np.random.default_rng(5)) for t in pool.tensors}


def values(t: Term, pool: oracle.Pool, arrays: dict[Var, oracle.Array]) -> oracle.Array:
    """The values of a term for all values of its free indices."""
    inner = [var for u in subterms(t) for var in bound_by(u)]
    axes = {var: n for n, var in enumerate([*pool.free, *dict.fromkeys(inner)])}
    found = oracle.value(t, arrays, axes, len(axes))
    shape = tuple(oracle.SIZES[var.kind.domain] for var in pool.free)
    return np.broadcast_to(found, shape + (1,) * (len(axes) - len(shape))).reshape(shape)


def close(one: oracle.Array, other: oracle.Array) -> bool:
    return bool(np.allclose(one, other, rtol=1e-8, atol=1e-8 * max(1.0, np.abs(one).max())))


@pytest.mark.slow
def test_terms_of_one_key_are_equal_and_zeros_are_zero(pool: oracle.Pool, arrays: dict[Var, oracle.Array]) -> None:
    seen: dict[object, list[oracle.Array]] = defaultdict(list)
    merged = zeros = 0
    for _ in range(4000):
        t = pool.term()
        form = normal_form(t)
        if form.sign and form.key not in seen:
            seen[form.key] = [t, form]
            continue
        found = values(t, pool, arrays)
        if not form.sign:
            zeros += 1
            assert close(np.zeros_like(found), found)
            continue
        merged += 1
        first, known = seen[form.key]
        scale = complex(*form.coefficient) * form.sign / (complex(*known.coefficient) * known.sign)
        assert close(values(first, pool, arrays) * scale, found)
    assert merged > 100
    assert zeros > 300


@pytest.mark.slow
def test_a_scrambled_product_keeps_its_key_and_sign(pool: oracle.Pool) -> None:
    scramble = oracle.Scramble(Random(3), pool.free)
    for _ in range(2000):
        t = oracle.total_of_product(pool)
        one, other = normal_form(t), normal_form(scramble(t))
        assert one.sign == other.sign == 0 or oracle.signed(one) == oracle.signed(other)


@pytest.mark.slow
def test_a_scrambled_tree_keeps_its_value_where_it_keeps_its_key(
    pool: oracle.Pool, arrays: dict[Var, oracle.Array]
) -> None:
    scramble = oracle.Scramble(Random(4), pool.free)
    different = 0
    for _ in range(800):
        t = pool.term()
        u = scramble(t)
        assert close(values(t, pool, arrays), values(u, pool, arrays))
        one, other = normal_form(t), normal_form(u)
        different += oracle.signed(one) != oracle.signed(other) and bool(one.sign or other.sign)
    # sums inside sums that vanish for a reason of their own are left to `merge_like_terms`
    assert different <= 2


# --- the paper's examples ---


def hartree_fock_terms() -> list[Term]:
    return [
        total((j, q, r, s), mul(at(J, a, q, r, s), at(C, q, b), conj(at(C, r, j)), at(C, s, j))),
        total((j, p, r, s), mul(at(C, p, b), at(C, r, j), conj(at(C, s, j)), conj(at(J, p, a, r, s)))),
        total((i, p, q, s), mul(conj(at(C, p, i)), at(C, q, i), at(C, s, b), at(J, p, q, a, s))),
        total((i, p, q, r), mul(at(C, p, i), conj(at(C, q, i)), at(C, r, b), conj(at(J, p, q, r, a)))),
    ]


def test_the_hartree_fock_gradient_is_one_term() -> None:
    terms = hartree_fock_terms()
    assert merge_like_terms(add(*terms)) == mul(number(4), terms[0])


def test_without_the_declared_symmetries_of_an_unused_variable_four_terms_stay() -> None:
    merged = merge_like_terms(add(*hartree_fock_terms()), unused=(J,))
    assert isinstance(merged, Add)
    assert len(merged.terms) == 4


def test_symmetries_may_be_given_for_a_variable_without_declared_ones() -> None:
    plain = tensor("T", (N, N))
    difference = sub(at(plain, a, b), at(plain, b, a))
    assert merge_like_terms(difference) != ZERO
    assert merge_like_terms(difference, {plain: (permutation((2, 1), "id"),)}) == ZERO


def test_the_wannier_gradient_is_one_term() -> None:
    e, g = d, f
    up, down, on = add(g, x), sub(g, x), add(k, x)
    rho = mul(conj(at(U, r, b, k)), at(overlaps, r, s, k, on), at(U, s, b, on))
    adjoint = mul(at(U, r, b, k), conj(at(overlaps, r, s, k, on)), conj(at(U, s, b, on)))
    forward = mul(at(overlaps, e, q, g, up), at(U, q, b, up))
    backward = mul(at(U, q, b, down), conj(at(overlaps, q, e, down, g)))
    terms = [total((x, k, r, s, q), mul(at(w, x), *pair)) for pair in ((adjoint, forward), (rho, backward))]
    merged = merge_like_terms(add(*terms))
    assert not isinstance(merged, Add)
    assert canonical(merged) == canonical(terms[0])


def test_an_overlap_has_the_symmetry_of_reversal_with_conj() -> None:
    assert derived_symmetries(Lam((a, x), overlap(a, x))) == (Symmetry((((0, 1),), ((1, -1),)), 1, True),)


# --- traps ---


def test_a_sum_of_products_is_not_named_product_by_product() -> None:
    crossed = total((a, b), power(add(at(A, a, b), at(B, b, a)), number(-1)))
    parallel = total((a, b), power(add(at(A, a, b), at(B, a, b)), number(-1)))
    turned = total((a, b), power(add(at(A, b, a), at(B, a, b)), number(-1)))
    assert not equal(crossed, parallel)
    assert equal(crossed, turned)


def test_an_antisymmetric_entry_with_open_slots_is_not_zero() -> None:
    assert canonical(at(D, a, b)).sign != 0
    assert canonical(total((a, b), at(D, a, b))).sign == 0
    assert canonical(at(D, a, a)).sign == 0


def test_exchanging_an_open_antisymmetric_pair_gives_the_opposite_sign() -> None:
    assert canonical(at(D, a, b)).key == canonical(at(D, b, a)).key
    assert canonical(at(D, a, b)).sign == -canonical(at(D, b, a)).sign


def test_a_zero_across_two_shifts_is_found() -> None:
    assert canonical(total((k,), at(Q, k, sub(f, k)))).sign == 0


def test_an_index_that_drops_out_leaves_its_domain() -> None:
    shifted = total((k, m), at(G, sub(k, m)))
    assert equal(shifted, total((k, m), at(G, k)))
    assert not equal(shifted, total((k,), at(G, k)))
    assert not equal(total((i, a), at(v, a)), total((k, a), at(v, a)))


def test_an_open_periodic_index_is_not_shifted() -> None:
    assert not equal(at(G, f), at(G, add(f, f)))
    assert not equal(total((k,), mul(at(G, f), at(G, k))), total((k,), mul(at(G, add(f, k)), at(G, k))))


def test_an_outer_index_is_not_shifted_by_an_inner_one() -> None:
    inner = call("exp", total((m,), mul(at(G, add(k, m)), at(G, m))))
    other = call("exp", total((m,), mul(at(G, k), at(G, m))))
    assert not equal(total((k,), mul(inner, at(G, k))), total((k,), mul(other, at(G, k))))


def test_a_periodic_index_that_is_read_as_a_number_is_not_shifted() -> None:
    assert not equal(total((k,), mul(k, at(G, k))), total((k,), mul(k, at(G, add(k, f)))))
    assert equal(total((k,), mul(k, at(G, k))), total((m,), mul(m, at(G, m))))


def test_a_sum_of_an_odd_number_over_a_symmetric_domain_is_zero() -> None:
    assert canonical(total((x,), mul(x, at(w, x)))).sign == 0
    assert canonical(total((x,), mul(x, x, at(w, x)))).sign != 0


def test_seven_equal_vectors_on_a_symmetric_tensor_are_named_at_once() -> None:
    cycle = permutation((*range(2, 9), 1), "id")
    T = tensor("T", (N,) * 8, COMPLEX, permutation((2, 1, *range(3, 9)), "id"), cycle)
    inner = [index(f"i{n}", N) for n in range(7)]
    one = total(inner, mul(at(T, a, *inner), *(at(v, n) for n in inner)))
    other = total(inner, mul(at(T, *inner[::-1], a), *(at(v, n) for n in inner)))
    assert equal(one, other)


# --- trees ---


def test_conj_goes_to_the_factors() -> None:
    product = total((i,), mul(at(A, a, i), conj(at(H, i, b))))
    assert equal(conj(product), total((j,), mul(conj(at(A, a, j)), conj(at(H, b, j)))))
    assert equal(conj(call("exp", z)), call("exp", conj(z)))
    assert not equal(conj(call("log", z)), call("log", conj(z)))


def test_a_reversal_inside_a_sum_of_terms_is_seen_through_an_inner_sum() -> None:
    def energy(sign: int) -> Term:
        inner = total((y,), mul(number(sign), x, at(w, y)))
        return total((x,), add(inner, at(v, a)))

    assert equal(energy(1), energy(-1))


def test_sums_are_named_jointly_inside_functions() -> None:
    def energy(m: Var, n: Var) -> Term:
        return total((m,), mul(at(v, m), call("exp", total((n,), mul(at(S, m, n), at(v, n))))))

    assert equal(energy(i, j), energy(p, q))
    other = total((i,), mul(at(v, i), call("exp", total((j,), mul(at(A, j, i), at(v, j))))))
    assert not equal(other, total((i,), mul(at(v, i), call("exp", total((j,), mul(at(A, i, j), at(v, j)))))))


def test_the_sign_in_an_argument_counts_unless_the_function_is_even() -> None:
    one, other = (total((i,), mul(at(v, i), call("exp", e))) for e in (at(D, a, i), at(D, i, a)))
    assert not equal(one, other)
    one, other = (total((i,), mul(at(v, i), call("cos", e))) for e in (at(D, a, i), at(D, i, a)))
    assert equal(one, other)
    assert equal(call("exp", neg(at(D, a, b))), call("exp", at(D, b, a)))


def test_an_even_function_of_numbers_is_one_whatever_sign_its_argument_has() -> None:
    g, h = fresh("g", REAL), fresh("h", REAL)
    one, other = sub(g, h), Add((h, neg(g)))
    assert equal(Call("cos", (one,)), Call("cos", (other,)))
    assert merge_like_terms(add(Call("sin", (one,)), Call("sin", (other,)))) == ZERO
    assert not equal(Call("sin", (one,)), Call("sin", (other,)))


def test_an_integer_power_of_a_sum_is_a_product_of_sums() -> None:
    square = Pow(total((i,), at(v, i)), number(2))
    assert equal(square, total((i, j), mul(at(v, i), at(v, j))))


def test_a_number_inside_a_sum_is_not_lost() -> None:
    doubled = Sum((i,), mul(number(2), at(v, i)))
    assert canonical(doubled).key != canonical(total((i,), at(v, i))).key
    assert merge_like_terms(sub(doubled, mul(number(2), total((j,), at(v, j))))) == ZERO


def test_real_parts_of_conjugates_are_equal_and_imaginary_parts_opposite() -> None:
    assert equal(call("real", z), call("real", conj(z)))
    assert merge_like_terms(add(call("imag", z), call("imag", conj(z)))) == ZERO


def test_unknown_functions_are_compared_by_their_arguments() -> None:
    F = fresh("F", Map((Map((Index(N),), COMPLEX),), COMPLEX))
    slot, other = index("m", N), index("n", N)
    rows = [oracle.App(F, (Lam((m,), total((t,), mul(at(A, m, t), at(v, t)))),)) for m, t in ((slot, i), (other, j))]
    assert equal(*rows)
    assert not equal(rows[0], oracle.App(F, (Lam((slot,), total((i,), mul(at(A, i, slot), at(v, i)))),)))


def test_gradients_of_unknown_functions_are_factors() -> None:
    R = fresh("R", Map((REAL,), REAL))
    t = fresh("t", REAL)
    one = total((i,), mul(oracle.App(Diff("grad", R), (t,)), at(v, i)))
    assert equal(one, total((j,), mul(at(v, j), oracle.App(Diff("grad", R), (t,)))))
    assert not equal(one, total((j,), mul(at(v, j), oracle.App(R, (t,)))))


def test_delta_is_symmetric_in_its_indices() -> None:
    assert equal(delta(a, b, at(v, a)), delta(b, a, at(v, a)))
    assert not equal(delta(a, b, at(v, a)), delta(a, c, at(v, a)))


# --- what it is good for ---


def test_like_terms_inside_a_product_are_merged() -> None:
    inner = add(at(S, a, i), at(S, i, a))
    merged = merge_like_terms(total((i,), mul(inner, call("exp", inner))))
    twice = mul(number(2), at(S, a, i))
    assert canonical(merged) == canonical(total((i,), mul(twice, call("exp", twice))))
    assert all(not isinstance(u, Add) for u in subterms(merged))


def test_the_representative_has_the_least_conj() -> None:
    merged = merge_like_terms(add(conj(at(H, a, b)), at(H, b, a)))
    assert merged == mul(number(2), at(H, b, a))


def test_complex_coefficients_are_merged_exactly() -> None:
    e, turned = at(H, a, b), conj(at(H, b, a))
    unit = number((oracle.Fraction(1, 3), oracle.Fraction(2)))
    merged = merge_like_terms(add(mul(unit, e), turned))
    assert merged == mul(number((oracle.Fraction(4, 3), oracle.Fraction(2))), e)


def test_an_expectation_value_of_a_hermitian_matrix_is_real() -> None:
    assert is_real(total((i, j), mul(conj(at(v, i)), at(H, i, j), at(v, j))))
    assert not is_real(total((i, j), mul(conj(at(v, i)), at(A, i, j), at(v, j))))


def test_a_density_matrix_is_hermitian() -> None:
    density = Lam((a, b), total((i,), mul(conj(at(C, a, i)), at(C, b, i))))
    assert derived_symmetries(density) == (permutation((2, 1), "conj"),)


def test_a_determinant_of_two_vectors_is_antisymmetric() -> None:
    u = tensor("u", (N,))
    value = Lam((a, b), sub(mul(at(u, a), at(v, b)), mul(at(u, b), at(v, a))))
    assert derived_symmetries(value) == (permutation((2, 1), "neg"),)


def test_a_mean_field_is_real_if_a_real_tensor_makes_it() -> None:
    value = Lam((a,), total((i,), mul(at(H, i, i), at(S, a, i))))
    assert Symmetry((((0, 1),),), 1, True) in derived_symmetries(value)
