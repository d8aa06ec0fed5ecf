"""Stage c keeps the value of a result, puts common factors in front, names parts, and is bounded."""

from __future__ import annotations

import time
from itertools import product
from random import Random

import numpy as np
import pytest

from combdiff.budget import Budget
from combdiff.canon.canonical import merge_like_terms
from combdiff.meaning.evaluate import evaluate
from combdiff.simplify.graph.choice import CLASSES, chosen
from combdiff.terms.terms import (
    Add,
    Lam,
    Let,
    Mul,
    Sum,
    Term,
    Var,
    add,
    alpha_equal,
    conj,
    fresh,
    let,
    mul,
    number,
    refreshed,
    substitute,
    subterms,
    total,
)
from combdiff.terms.types import COMPLEX, HERMITIAN, REAL, Index
from tests.simplify.simplify_oracle import ANTISYMMETRIC, K, N, Pool, Scramble, X, at, entries, index, tensor

SMALL = {N: 3, K: 7, X: 5}
START, J = index("i", N), index("j", N)


def stage_c(results: list[Term], bindings=(), kept=(), seconds=60.0) -> tuple[list[tuple[Var, Term]], list[Term]]:
    bindings, results, _ = chosen(bindings, results, kept, {}, (), {}, Budget(time.perf_counter() + seconds))
    return bindings, results


def expanded(t: Term) -> Term:
    """`t` with products of sums multiplied out."""
    match t:
        case Add(terms) if not isinstance(t.type, Index):
            return add(*map(expanded, terms))
        case Sum(indices, body):
            inner = expanded(body)
            terms = inner.terms if isinstance(inner, Add) else (inner,)
            return add(*(refreshed(total(indices, u)) for u in terms))
        case Mul(factors):
            sums = [expanded(f) for f in factors]
            parts = [s.terms if isinstance(s, Add) and not isinstance(s.type, Index) else (s,) for s in sums]
            return add(*(refreshed(mul(*choice)) for choice in product(*parts)))
        case _:
            return t


def same_value(before: Term, after: Term, rng: np.random.Generator) -> None:
    assert after.free <= before.free
    arrays = {v: entries(v, rng) for v in before.free}
    arrays = {v: a if v.kind.result == COMPLEX else a.real for v, a in arrays.items()}
    a, b = (np.asarray(evaluate(t, arrays, SMALL)) for t in (before, after))
    assert np.allclose(a, b, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(a).max(initial=0.0)))


def chain(matrices, start: Var = START, end: Var = J) -> Term:
    inner = [index(f"k{n}", N) for n in range(len(matrices) - 1)]
    path = [start, *inner, end]
    return total(inner, mul(*(at(m, path[n], path[n + 1]) for n, m in enumerate(matrices))))


@pytest.mark.parametrize("seed", range(24))
def test_random_sums_multiplied_out_and_scrambled_keep_their_value(seed):
    random = Random(seed)
    tensors = [
        tensor("A", (N, N)),
        tensor("H", (N, N), COMPLEX, HERMITIAN),
        tensor("D", (N, N), REAL, ANTISYMMETRIC),
        tensor("v", (N,)),
    ]

    def entry(indices):
        f = random.choice(tensors)
        e = at(f, *(random.choice(indices) for _ in f.kind.params))
        return conj(e) if random.random() < 0.3 else e

    def factored(indices, depth):
        if not depth or random.random() < 0.4:
            return entry(indices)
        terms = [mul(number(random.choice((1, -1, 2))), factored(indices, depth - 1)) for _ in "ab"]
        return mul(entry(indices), add(*terms))

    inner = index("s", N)
    t = total((inner,), mul(factored([START, inner], 2), factored([inner, START], 1)))
    t = merge_like_terms(Scramble(random, [START])(expanded(t)), {}, ())
    named, (result,) = stage_c([Lam((START,), t)])
    same_value(Lam((START,), t), let(named, result), np.random.default_rng(seed))


@pytest.mark.sampled
@pytest.mark.parametrize("seed", (0, 2, 3, 4, 5, 6, 7, 10))
def test_random_terms_over_lattices_keep_their_value(seed):
    pool = Pool(Random(seed))
    free = tuple(pool.free)
    t = merge_like_terms(expanded(add(pool.term(1), pool.term(1))), {}, ())
    if t.free - set(free) and sum(1 for _ in subterms(t)) < 150:
        f = Lam(tuple(v for v in free if v in t.free), t) if any(v in t.free for v in free) else t
        named, (result,) = stage_c([f])
        same_value(f, let(named, result), np.random.default_rng(seed))


def test_what_all_terms_share_stands_in_front():
    a, b, c = (tensor(name, (N, N), REAL) for name in "ABC")
    k = index("k", N)
    _, (result,) = stage_c([Lam((START, J), add(chain([a, c]), chain([b, c])))])
    assert alpha_equal(result.body, total((k,), mul(at(c, k, J), add(at(a, START, k), at(b, START, k)))))


def test_a_matrix_and_its_adjoint_before_a_vector_stay_two_terms():
    a, x = tensor("A", (N, N)), tensor("x", (N,))
    k = index("k", N)
    t = add(total((k,), mul(at(a, START, k), at(x, k))), total((k,), mul(conj(at(a, k, START)), at(x, k))))
    named, (result,) = stage_c([Lam((START,), t)])
    assert named == []
    assert alpha_equal(result.body, t)


def test_a_part_that_is_zero_gets_no_name_and_ends():
    d, h = tensor("D", (N, N), REAL, ANTISYMMETRIC), tensor("H", (N, N), COMPLEX, HERMITIAN)
    k = index("k", N)
    zero = total((k,), mul(at(d, k, k), at(h, k, k), at(h, k, k), at(h, k, k)))
    terms = [
        Lam((START,), mul(refreshed(zero), at(h, START, START))),
        Lam((START,), mul(refreshed(zero), at(h, START, START), at(h, START, START))),
    ]
    named, results = stage_c(terms, seconds=5.0)
    assert named == []
    assert len(results) == 2


def test_new_names_are_none_of_the_program():
    p, q = tensor("P", (N, N), REAL), tensor("Q", (N, N), REAL)
    x, y, k, m = tensor("X", (N, N, N), REAL), tensor("Y", (N, N, N), REAL), index("k", N), index("m", N)
    density = total((m,), mul(at(p, J, m), at(q, k, m)))
    t = add(*(refreshed(total((J, k), mul(density, at(f, START, J, k)))) for f in (x, y)))
    named, _ = stage_c([Lam((START,), t)])
    assert [v.name for v, _ in named] == ["S"]


def test_several_contractions_in_front_of_one_sum_have_no_name():
    a = [tensor(f"A{n}", (N, N), REAL) for n in range(10)]
    t = add(chain([*a, tensor("X", (N, N), REAL)]), chain([*a, tensor("Y", (N, N), REAL)]))
    named, (result,) = stage_c([Lam((START, J), t)])
    assert named == []
    assert isinstance(result.body, Sum)


def _binomials(n):
    pairs = [(tensor(f"A{m}", (N, N), REAL), tensor(f"B{m}", (N, N), REAL)) for m in range(n)]
    return add(*(chain(choice) for choice in product(*pairs)))


def _forty():
    random = Random(0)
    matrices = [tensor(c, (N, N), REAL) for c in "ABC"]
    return add(*(mul(number(n + 1), chain([random.choice(matrices) for _ in "xyz"])) for n in range(40)))


def _twelve_equal():
    a, x, y = (tensor(c, (N, N), REAL) for c in "AXY")
    return add(chain([a] * 12 + [x]), chain([a] * 12 + [y]))


@pytest.mark.sampled
@pytest.mark.parametrize("make", [_forty, _twelve_equal, lambda: _binomials(4), lambda: _binomials(5)])
def test_large_sums_end_and_keep_their_terms_apart(make):
    t = merge_like_terms(make(), {}, ())
    start = time.process_time()
    named, (result,) = stage_c([Lam((START, J), t)])
    # about half a second; without limits on parts and nodes these take minutes
    assert time.process_time() - start < 10.0
    rng = np.random.default_rng(0)
    arrays = {v: rng.standard_normal((1, 1)) for v in t.free if v not in (START, J)}
    values = [evaluate(f, arrays, {N: 1}) for f in (Lam((START, J), t), let(named, result))]
    assert np.allclose(*values)
    assert CLASSES < 10_000


def test_layers_of_one_form_are_collected_alike():
    x, y = fresh("x", REAL), fresh("y", REAL)
    a, b, c, d = (tensor(name, (N,), REAL) for name in "abcd")

    def layer(s):
        return Lam(
            (START,),
            add(
                mul(s, at(a, START), at(b, START)),
                mul(s, at(a, START), at(c, START)),
                mul(s, at(a, START), at(d, START)),
            ),
        )

    _, (first, second) = stage_c([layer(x), layer(y)])
    assert substitute(first, {x: y}) == second
    assert not isinstance(first.body, Add)
    assert not any(isinstance(t, Let) for t in subterms(first))
