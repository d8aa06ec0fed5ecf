"""Closed forms: one key for a tensor whatever its slots are called, its view of it, and all of its symmetries."""

from __future__ import annotations

from itertools import permutations, product
from random import Random

import numpy as np
import pytest

from combdiff.budget import Budget
from combdiff.canon.closed import ClosedForm, closed_form, derived_symmetries
from combdiff.canon.slotgroup import SlotGroup
from combdiff.terms.terms import (
    Lam,
    Term,
    Var,
    add,
    bound_by,
    call,
    conj,
    mul,
    neg,
    number,
    sub,
    substitute,
    subterms,
    total,
)
from combdiff.terms.types import REAL, Symmetry, is_complex
from tests.simplify import simplify_oracle as oracle

N, K, X, at, index, tensor = oracle.N, oracle.K, oracle.X, oracle.at, oracle.index, oracle.tensor
permutation = Symmetry.permutation

a, b, c, d, i, j, p = (index(name, N) for name in "abcdijp")
f, k = (index(name, K) for name in "fk")
x = index("x", X)
A, B, C = (tensor(name, (N, N)) for name in "ABC")
S = tensor("S", (N, N), REAL, permutation((2, 1), "id"))
D = tensor("D", (N, N), REAL, permutation((2, 1), "neg"))
V = tensor("V", (N,) * 4, REAL, *(permutation(s, "id") for s in ((2, 1, 3, 4), (3, 4, 1, 2))))
v, u = tensor("v", (N,)), tensor("u", (K,))


def group(form: ClosedForm) -> SlotGroup:
    return SlotGroup.generated(len(form.view.rows), form.group, real=False)


def outer(rows: Term, columns: Term) -> Term:
    return mul(at(A, rows, p), conj(at(B, columns, p)))


# --- keys and views ---


def test_a_transposed_conjugate_is_a_view_of_one_tensor() -> None:
    one = closed_form(Lam((a, b), total((p,), outer(a, b))))
    other = closed_form(Lam((a, b), total((p,), conj(outer(b, a)))))
    assert one.key == other.key
    assert {one.view, other.view} == {permutation((1, 2), "id"), permutation((2, 1), "conj")}


def test_a_number_in_front_and_a_sign_are_left_out_of_the_key() -> None:
    one = closed_form(Lam((a, b), at(D, a, b)))
    other = closed_form(Lam((a, b), mul(number(3), at(D, b, a))))
    assert one.key == other.key
    assert one.group == (permutation((2, 1), "neg"),)
    assert other.coefficient[0] * other.view.sign == 3 * one.view.sign * (1 if one.view.rows != other.view.rows else -1)


def test_slots_of_different_domains_are_different_tensors() -> None:
    assert closed_form(Lam((a,), at(v, a))).key != closed_form(Lam((a, b), at(v, a))).key
    assert closed_form(Lam((a, f), at(v, a))).key != closed_form(Lam((a, x), at(v, a))).key
    assert closed_form(Lam((a, f), at(v, a))).key == closed_form(Lam((f, b), at(v, b))).key


def test_an_open_periodic_slot_may_be_reversed_but_not_shifted() -> None:
    w = tensor("w", (K,))
    one = closed_form(Lam((f,), total((k,), mul(at(u, k), at(w, add(k, f))))))
    assert one.key == closed_form(Lam((f,), total((k,), mul(at(u, add(k, f)), at(w, k))))).key
    assert one.key != closed_form(Lam((f,), total((k,), mul(at(u, k), at(w, add(k, f, f)))))).key


def test_a_term_without_search_is_its_own_closed_form() -> None:
    value = Lam((a, b), at(A, a, b))
    assert closed_form(value, budget=Budget(0.0)).key == value
    assert derived_symmetries(value, budget=Budget(0.0)) == ()


# --- symmetries ---


def test_equal_pieces_may_be_exchanged() -> None:
    form = closed_form(Lam((a, b, c, d), mul(at(A, a, b), at(A, c, d))))
    assert form.group == (permutation((3, 4, 1, 2), "id"),)


def test_slots_on_which_nothing_depends_may_be_exchanged_and_reversed() -> None:
    y = index("y", X)
    found = group(closed_form(Lam((a, x, y), at(v, a))))
    assert len(found.representatives) * (2 if found.blocks else 1) == 8


def test_an_antisymmetric_intermediate_is_not_zero() -> None:
    form = closed_form(Lam((a, b), sub(mul(at(v, a), at(S, b, b)), mul(at(v, b), at(S, a, a)))))
    assert form.coefficient != (0, 0)
    assert form.group == (permutation((2, 1), "neg"),)


def test_a_tensor_that_is_its_own_negative_is_zero() -> None:
    value = Lam((a, b), total((i, j), mul(at(D, i, j), at(S, i, j), at(A, a, b))))
    assert closed_form(value).coefficient == (0, 0)
    assert derived_symmetries(value) == ()


def test_an_imaginary_coefficient_turns_the_sign_of_conjugates() -> None:
    density = total((p,), mul(at(C, a, p), conj(at(C, b, p))))
    imaginary = Lam((a, b), mul(number((0, 1)), density))
    assert derived_symmetries(imaginary) == (Symmetry(permutation((2, 1), "id").rows, -1, True),)
    assert closed_form(imaginary).group == (permutation((2, 1), "conj"),)
    assert derived_symmetries(Lam((a, b), mul(number((1, 1)), density))) == ()


def test_the_symmetries_of_slots_beyond_four_are_all_found() -> None:
    slots = [index(f"s{n}", N) for n in range(6)]
    ring = Lam(tuple(slots), mul(*(at(S, slots[n], slots[(n + 1) % 6]) for n in range(6))))
    assert len(group(closed_form(ring)).representatives) == 12


# --- random tensors ---


def values(value: Lam, arrays: dict[Var, oracle.Array]) -> oracle.Array:
    inner = [var for t in subterms(value.body) for var in bound_by(t)]
    axes = {var: n for n, var in enumerate([*value.params, *dict.fromkeys(inner)])}
    found = oracle.value(value.body, arrays, axes, len(axes))
    shape = tuple(oracle.SIZES[var.kind.domain] for var in value.params)
    return np.broadcast_to(found, shape + (1,) * (len(axes) - len(shape))).reshape(shape)


def seen_by(symmetry: Symmetry, array: oracle.Array, domains: list[oracle.Domain]) -> oracle.Array:
    """sign · conj? array[b] at every a, with b = what the symmetry says of a."""
    grids = np.meshgrid(*(oracle._range(e) for e in domains), indexing="ij")
    places = [sum(turn * grids[slot] for slot, turn in row) for row in symmetry.rows]
    ranges = [domains[row[0][0]] for row in symmetry.rows]
    picked = array[tuple(oracle._place(place, e) for place, e in zip(places, ranges, strict=True))]
    return symmetry.sign * (picked.conj() if symmetry.conj else picked)


def close(one: oracle.Array, other: oracle.Array) -> bool:
    return bool(np.allclose(one, other, rtol=1e-7, atol=1e-8 * max(1.0, np.abs(one).max(initial=0))))


def kernel(value: Lam, form: ClosedForm, arrays: dict[Var, oracle.Array]) -> oracle.Array:
    """The array of what the key stands for."""
    view = form.view
    back: list[tuple[tuple[int, int], ...]] = [()] * len(view.rows)
    for slot, ((origin, turn),) in enumerate(view.rows):
        back[origin] = ((slot, turn),)
    whole = values(value, arrays) / complex(*form.coefficient)
    domains = [value.params[row[0][0]].kind.domain for row in view.rows]
    return seen_by(Symmetry(tuple(back), view.sign, view.conj), whole, domains)


def random_tensor(pool: oracle.Pool, rng: Random) -> Lam:
    slots = rng.sample([a, b, c, f, x], rng.randint(1, 3))
    bound = [index(f"i{n}", rng.choice((N, N, K, X))) for n in range(rng.randint(0, 3))]
    domains = {e.kind.domain for e in (*slots, *bound)}
    tensors = pool.tensors
    pool.tensors = [t for t in tensors if all(e.domain in domains for e in t.kind.params)]
    if rng.random() < 0.5:
        pool.tensors = rng.sample(pool.tensors, min(2, len(pool.tensors)))
    entries = [pool.entry([*slots, *bound]) for _ in range(rng.randint(1, 3) if pool.tensors else 0)]
    pool.tensors = tensors
    body = mul(*entries)
    if rng.random() < 0.2:
        body = mul(body, call("exp", body))
    return Lam(tuple(slots), total(bound, body))


def scrambled(value: Lam, scramble: oracle.Scramble, rng: Random) -> Lam:
    body = scramble(value.body)
    turned = {s: neg(s) for s in value.params if s.kind.domain is X and rng.random() < 0.5}
    body = mul(number(rng.choice((1, -2))), substitute(body, turned))
    slots = list(value.params)
    rng.shuffle(slots)
    return Lam(tuple(slots), conj(body) if rng.random() < 0.5 else body)


@pytest.mark.slow
def test_scrambled_tensors_share_a_key_that_stands_for_one_array() -> None:
    rng = Random(21)
    pool = oracle.Pool(rng)
    scramble = oracle.Scramble(rng, [])
    arrays = {t: oracle.entries(t, np.random.default_rng(n)) for n, t in enumerate(pool.tensors)}
    seen: dict[object, oracle.Array] = {}
    for _ in range(400):
        value = random_tensor(pool, rng)
        other = scrambled(value, scramble, rng)
        one, two = closed_form(value), closed_form(other)
        assert one.key == two.key
        if one.coefficient == (0, 0):
            assert close(values(value, arrays), np.zeros(1))
            continue
        array = seen.setdefault(one.key, kernel(value, one, arrays))
        assert close(array, kernel(value, one, arrays))
        assert close(array, kernel(other, two, arrays))
        domains = [value.params[row[0][0]].kind.domain for row in one.view.rows]
        assert all(close(array, seen_by(s, array, domains)) for s in one.group)
    assert len(seen) > 100


def test_all_symmetries_of_a_product_are_found() -> None:
    rng = Random(22)
    pool = oracle.Pool(rng)
    # of three index values, what is antisymmetric in three slots is symmetric by chance
    pool.tensors = [t for t in pool.tensors if t.name != "W"]
    arrays = {t: oracle.entries(t, np.random.default_rng(n)) for n, t in enumerate(pool.tensors)}
    checked = 0
    for _ in range(120):
        value = random_tensor(pool, rng)
        array = values(value, arrays)
        if close(array, np.zeros(1)):
            continue
        found = SlotGroup.generated(len(value.params), derived_symmetries(value), real=False)
        domains = [s.kind.domain for s in value.params]
        for s in candidates(domains, is_complex(value.body.type)):
            assert found.equivalent(s) == close(array, seen_by(s, array, domains))
            checked += 1
    assert checked > 500


def candidates(domains: list[oracle.Domain], complex_: bool) -> list[Symmetry]:
    slots = range(len(domains))
    orders = [o for o in permutations(slots) if all(domains[s] is domains[t] for s, t in enumerate(o))]
    turns = list(product(*((1,) if e is N else (1, -1) for e in domains)))
    return [
        Symmetry(tuple(((t, turn),) for t, turn in zip(order, signs, strict=True)), sign, flag)
        for order in orders
        for signs in turns
        for sign in (1, -1)
        for flag in ((False, True) if complex_ else (False,))
    ]
