"""Pieces of a product that share no index, and what stands alone in a function, are named apart."""

from __future__ import annotations

from combdiff.budget import Budget
from combdiff.canon.canonical import canonical
from combdiff.canon.leastform import Naming
from combdiff.canon.reading import Reader
from combdiff.terms.terms import Sum, Term, Var, add, call, conj, mul, number, power, total
from combdiff.terms.types import COMPLEX, HERMITIAN, REAL, SYMMETRIC
from tests.simplify import simplify_oracle as oracle

N, K, at, index, tensor = oracle.N, oracle.K, oracle.at, oracle.index, oracle.tensor

a, b, i, j, p, q = (index(name, N) for name in "abijpq")
k = index("k", K)
A, v = tensor("A", (N, N)), tensor("v", (N,))
H = tensor("H", (N, N), COMPLEX, HERMITIAN)
S = tensor("S", (N, N), REAL, SYMMETRIC)
D = tensor("D", (N, N), REAL, oracle.ANTISYMMETRIC)


def equal(one: Term, other: Term) -> bool:
    return canonical(one) == canonical(other)


def test_equal_traces_are_named_apart() -> None:
    inner = [index(f"i{n}", N) for n in range(32)]
    pairs = list(zip(inner[::2], inner[1::2], strict=True))
    whole = total(inner, mul(*(at(A, i, j) for i, j in pairs), *(at(A, j, i) for i, j in pairs)))
    reader = Reader()
    _, node = reader.read(whole)
    pieces, _ = Naming.of(node, reader.bound, Budget()).pieces(node)
    assert len(pieces) == 16
    assert len({piece.key for piece in pieces}) == 1


def test_pieces_are_exchanged_and_their_signs_multiply() -> None:
    def piece(m: Var, n: Var, turned: bool) -> Term:
        return mul(at(D, *((n, m) if turned else (m, n))), at(A, a, m), at(A, b, n))

    one = total((i, j, p, q), mul(piece(i, j, False), piece(p, q, True)))
    other = total((q, p, i, j), mul(piece(q, p, False), piece(i, j, False)))
    assert canonical(one).key == canonical(other).key
    assert canonical(one).sign == -canonical(other).sign != 0


def test_one_piece_that_vanishes_makes_the_product_zero() -> None:
    assert canonical(total((i, j, p), mul(at(v, p), at(D, i, j), at(S, j, i)))).sign == 0


def test_like_terms_in_the_argument_of_a_function_are_one() -> None:
    once, twice = at(H, a, a), add(at(H, a, a), conj(at(H, a, a)))
    assert equal(call("exp", twice), call("exp", mul(number(2), once)))


def test_an_idle_index_of_an_inner_sum_keeps_its_domain() -> None:
    def energy(idle: Var) -> Term:
        return total((i,), mul(at(v, i), call("exp", Sum((idle,), at(v, i)))))

    assert equal(energy(j), energy(p))
    assert not equal(energy(j), energy(k))


def test_an_odd_power_of_zero_is_zero_and_a_negative_one_is_not() -> None:
    nothing = total((i, j), mul(at(D, i, j), at(S, i, j)))
    assert canonical(power(nothing, number(5))).sign == 0
    assert canonical(power(nothing, number(-5))).sign != 0
