"""The e-graph of forms: every node of every class has the value that the graph says, whatever laws were applied."""

from __future__ import annotations

from random import Random

import pytest

from combdiff.canon.canonical import merge_like_terms
from combdiff.simplify.graph.graph import Leaf
from combdiff.terms.terms import Lam, add, call, conj, mul, number, subterms, total
from combdiff.terms.types import COMPLEX, HERMITIAN, REAL, SYMMETRIC
from tests.simplify.graph.graph_oracle import disagreements, saturated
from tests.simplify.simplify_oracle import ANTISYMMETRIC, SIZES, K, N, Pool, Scramble, X, at, index, tensor
from tests.simplify.test_nest import expanded

P, Q = index("i", N), index("j", N)
TENSORS = [
    tensor("A", (N, N)),
    tensor("H", (N, N), COMPLEX, HERMITIAN),
    tensor("D", (N, N), REAL, ANTISYMMETRIC),
    tensor("S", (N, N), REAL, SYMMETRIC),
    tensor("v", (N,)),
]


def random_sum(random: Random):
    """A sum of products of sums, multiplied out and spelled at random."""

    def entry(indices):
        f = random.choice(TENSORS)
        e = at(f, *(random.choice(indices) for _ in f.kind.params))
        return conj(e) if random.random() < 0.3 else e

    def factored(indices, depth):
        if not depth or random.random() < 0.4:
            return entry(indices)
        terms = [mul(number(random.choice((1, -1, 2, 1j))), factored(indices, depth - 1)) for _ in "ab"]
        return mul(entry(indices), add(*terms))

    inner = index("s", N)
    t = total((inner,), mul(factored([P, inner], 2), factored([inner, P], 1)))
    return merge_like_terms(Scramble(random, [P])(expanded(t)), {}, ())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_every_node_of_a_sum_of_products_is_worth_its_class(seed):
    choice = saturated([Lam((P,), random_sum(Random(seed)))])
    assert disagreements(choice, SIZES, seed) == []


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12))
def test_every_node_of_terms_over_lattices_is_worth_its_class(seed):
    pool = Pool(Random(seed))
    t = merge_like_terms(expanded(add(pool.term(1), pool.term(1))), {}, ())
    if t.free - set(pool.free) and sum(1 for _ in subterms(t)) < 150:
        free = tuple(v for v in pool.free if v in t.free)
        choice = saturated([Lam(free, t) if free else t])
        assert disagreements(choice, SIZES, seed) == []


def test_functions_of_sums_are_leaves_with_classes_in_them():
    a, x = tensor("A", (N, N)), tensor("x", (N,))
    k = index("k", N)
    inner = add(total((k,), mul(at(a, P, k), at(x, k))), at(x, P))
    choice = saturated([Lam((P,), mul(call("exp", inner), conj(call("exp", mul(number(2), inner))), at(x, P)))])
    assert disagreements(choice, SIZES) == []


def test_a_product_that_its_symmetries_make_zero_is_none():
    d, s = tensor("D", (N, N), REAL, ANTISYMMETRIC), tensor("S", (N, N), REAL, SYMMETRIC)
    choice = saturated([total((P, Q), mul(at(d, P, Q), at(s, P, Q)))])
    assert choice.roots == [None]


def test_a_transposed_product_is_the_same_class():
    a, b = tensor("A", (N, N)), tensor("B", (N, N))
    k, m = index("k", N), index("m", N)
    one = Lam((P, Q), total((k,), mul(at(a, P, k), at(b, k, Q))))
    other = Lam((P, Q), total((m,), mul(at(b, m, P), at(a, Q, m))))
    first, second = saturated([one, other]).roots
    assert first is not None
    assert second is not None
    assert first.of == second.of


def test_a_product_of_a_matrix_with_its_adjoint_is_hermitian():
    a, k = tensor("A", (N, N)), index("k", N)
    choice = saturated([Lam((P, Q), total((k,), mul(at(a, P, k), conj(at(a, Q, k)))))])
    group = choice.graph.classes[choice.graph.find(choice.roots[0]).of].group
    assert any(m.slots == (2, 1) and m.conj and m.sign == 1 for m in group.moves)


@pytest.mark.parametrize("domain", [K, X])
def test_reversed_indices_are_labels(domain):
    f, g = tensor("f", (domain,)), tensor("g", (domain,))
    k = index("k", domain)
    one = total((k,), mul(at(f, k), at(g, mul(number(-1), k))))
    other = total((k,), mul(at(f, mul(number(-1), k)), at(g, k)))
    choice = saturated([one, other, add(one, at(f, index("z", domain)))][:2])
    first, second = choice.roots
    assert first == second
    assert disagreements(choice, SIZES) == []


@pytest.mark.parametrize("seed", range(6))
def test_spellings_make_one_graph(seed):
    random = Random(seed)
    a, b, c = (tensor(name, (N, N), REAL) for name in "ABC")
    k = index("k", N)
    terms = [total((k,), mul(at(f, P, k), at(g, k, Q))) for f, g in ((a, b), (a, c), (b, c), (c, b))]
    sizes = set()
    for _ in range(6):
        random.shuffle(terms)
        choice = saturated([Lam((P, Q), Scramble(random, [P, Q])(add(*terms)))])
        sizes.add((len(choice.graph.frames), len([c for c in choice.graph.classes if c not in choice.graph.moved])))
    assert len(sizes) == 1


def test_sums_that_stand_beside_each_other_keep_their_indices_apart():
    # Σ_k s(k) has an index of its own, which stands in one factor alone
    a, s, z, w = tensor("A", (N, N), REAL), tensor("s", (X,), REAL), tensor("z", (N,), REAL), tensor("w", (N,), REAL)
    k, m, n = index("k", X), index("m", N), index("n", N)
    alone = total((k,), mul(at(s, k), at(s, k)))
    terms = [total((m, n), mul(alone, at(a, P, m), at(a, m, n), at(f, n))) for f in (z, w)]
    choice = saturated([Lam((P,), add(*terms, total((m,), mul(alone, at(a, P, m), at(z, m)))))])
    assert disagreements(choice, SIZES) == []


@pytest.mark.parametrize("kind", [REAL, COMPLEX])
def test_a_real_part_is_taken_last_beside_what_is_real(kind):
    g, z, w = tensor("G", (N, N), kind), tensor("Z", (N, N)), tensor("w", (N,))
    k, m = index("k", N), index("m", N)
    t = total((k, m), mul(at(g, k, P), call("real", mul(at(z, k, Q), at(w, m), conj(at(z, k, m))))))
    choice = saturated([Lam((P, Q), t)])
    assert disagreements(choice, SIZES) == []
    assert choice.families["real_parts"].matches


def test_a_real_part_that_is_zero_when_taken_last_is_left_as_it_is():
    # Σ_km g(k) g(m) Re(i z(k) z(m)*) is the real part of i |Σ_k g(k) z(k)|²
    g, z = tensor("g", (N,), REAL), tensor("z", (N,))
    k, m = index("k", N), index("m", N)
    t = total((k, m), mul(at(g, k), at(g, m), call("real", mul(number(1j), at(z, k), conj(at(z, m))))))
    choice = saturated([Lam((), add(t, total((k,), mul(at(g, k), at(g, k)))))])
    assert disagreements(choice, SIZES) == []


def named_sum(*factors):
    """A value F = A + 2i B − S with a name, and a sum that holds the terms of F', each times one of the `factors`."""
    a, b, s, v = (tensor(name, (N, N) if name != "v" else (N,)) for name in "ABSv")
    f = tensor("F", (N, N))
    numbers = (number(1), number(2j), number(-1))
    entries = [at(t, P, Q) for t in (a, b, s)]
    own = add(*(mul(c, e) for c, e in zip(numbers, entries, strict=True)))
    terms = [mul(c, conj(mul(n, e))) for c, n, e in zip(factors, numbers, entries, strict=True)]
    others = [mul(number(5), at(a, P, Q)), mul(number(7), at(b, P, Q)), mul(at(v, P), at(v, Q))]
    return saturated([Lam((P, Q), add(*terms, *others))], [(f, Lam((P, Q), own))])


def wrong(choice):
    """The nodes that are not worth their classes, but for names, whose values are drawn."""
    return [n for n in disagreements(choice, SIZES) if not isinstance(n, Leaf)]


def test_a_conjugated_multiple_of_a_named_sum_is_found_in_a_longer_one():
    choice = named_sum(*3 * [number(3j)])
    assert wrong(choice) == []
    assert choice.families["part_of_sum"].matches == 1


def test_terms_that_are_no_one_multiple_of_a_named_sum_are_not_taken_for_it():
    choice = named_sum(number(3), number(3), number(6))
    assert wrong(choice) == []
    assert not choice.families["part_of_sum"].matches


def sum_around(*others):
    """A value F = Z + A + 2i B − S with a name, and conj(3i F) + Z + v v beside multiples of A', B' and S'.

    A term Z that is not conjugated keeps F conjugated in the node.
    """
    a, b, s, v = (tensor(name, (N, N) if name != "v" else (N,)) for name in "ABSv")
    z, f = (tensor(name, (N, N), COMPLEX) for name in "ZF")
    entries = [at(t, P, Q) for t in (a, b, s)]
    own = add(at(z, P, Q), *(mul(c, e) for c, e in zip((number(1), number(2j), number(-1)), entries, strict=True)))
    beside = [mul(number(c), conj(e)) for c, e in zip(others, entries, strict=True) if c]
    whole = add(conj(mul(number(3j), at(f, P, Q))), *beside, at(z, P, Q), mul(at(v, P), at(v, Q)))
    return saturated([Lam((P, Q), whole)], [(f, Lam((P, Q), own))])


FOUND = [((3j, 6, 0), True), ((3j, 6, -3j), True), ((0, 1, 0), False), ((3j, 0, 0), False)]


@pytest.mark.parametrize(("others", "found"), FOUND)
def test_a_sum_in_a_sum_is_written_out_where_terms_cancel(others, found):
    choice = sum_around(*others)
    assert wrong(choice) == []
    assert bool(choice.families["nested_sums"].matches) is found


@pytest.mark.parametrize("count", [5, 6, 7])
def test_a_product_at_one_place_has_few_classes(count):
    """No order of factors of the same indices costs less: they are split one at a time, not in all ways."""
    vectors = [tensor(f"x{n}", (N,)) for n in range(count)]
    choice = saturated([Lam((P,), mul(*(at(x, P) for x in vectors)))])
    assert len(choice.graph.classes) <= count**2  # all ways make 2^count
    assert disagreements(choice, SIZES) == []


def test_a_chain_of_matrices_is_split_in_all_ways():
    chain = [tensor(f"A{n}", (N, N)) for n in range(5)]
    inner = [index(f"k{n}", N) for n in range(4)]
    factors = [at(a, i, j) for a, i, j in zip(chain, (P, *inner), (*inner, Q), strict=True)]
    choice = saturated([Lam((P, Q), total(inner, mul(*factors)))])
    assert len(choice.graph.classes) > 3 * len(chain)
