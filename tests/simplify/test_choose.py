"""What keeps a name, how entries are written, and in which order a result is read."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.simplify.choose import index_names, is_cheap, place, rename_indices, uses
from combdiff.simplify.images import plainest
from combdiff.simplify.order import ReadingOrder
from combdiff.terms.terms import App, Conj, Lam, Mul, Sum, Term, add, call, fresh, mul, number, total
from combdiff.terms.types import COMPLEX, HERMITIAN, REAL, Domain, Index, Map, Symmetry

N = Index(Domain("n"))
i, j, k = (fresh(name, N) for name in "ijk")
H = fresh("H", Map((N, N), COMPLEX, (HERMITIAN,)))
A = fresh("A", Map((N, N), REAL, (Symmetry.permutation((2, 1), "neg"),)))
x, y = (fresh(name, Map((N,), COMPLEX)) for name in "xy")


def entry(f: Term, *args: Term) -> Term:
    return App(f, args)


def test_a_conjugate_entry_of_a_hermitian_matrix_is_written_without_conj() -> None:
    assert plainest(Conj(entry(H, j, i)), (i,)) == entry(H, i, j)


def test_an_entry_that_is_plain_already_stays() -> None:
    assert plainest(entry(H, i, j), (i,)) == entry(H, i, j)
    assert plainest(Conj(entry(x, i)), ()) == Conj(entry(x, i))


def test_an_odd_exchange_of_an_antisymmetric_tensor_changes_the_sign() -> None:
    assert plainest(entry(A, j, i), (i,)) == mul(number(-1), entry(A, i, j))


def test_an_image_never_brings_index_arithmetic_in() -> None:
    ring = Index(Domain("BZ", declared=True, periodic=True))
    step = Index(Domain("X", declared=True, symmetric=True))
    shifted = Symmetry((((0, 1), (1, 1)), ((1, -1),)), 1, True)
    M, p, b = fresh("M", Map((ring, step), COMPLEX, (shifted,))), fresh("p", ring), fresh("b", step)
    assert plainest(Conj(entry(M, p, b)), (p,)) == Conj(entry(M, p, b))


def test_factors_stand_in_the_order_of_their_declaration() -> None:
    rank = {H: (0, 0), x: (1, 1)}
    term = mul(entry(x, j), entry(H, i, j))
    ordered = ReadingOrder(rank)(Lam((i,), total((j,), term)))
    assert isinstance(ordered, Lam) and isinstance(ordered.body, Sum) and isinstance(ordered.body.body, Mul)
    assert ordered.body.body.factors == (entry(H, i, j), entry(x, j))


def test_a_factor_leaves_a_sum_that_it_does_not_depend_on() -> None:
    ordered = ReadingOrder({x: (1, 0), y: (1, 1)})(Lam((i,), total((j,), mul(entry(y, j), entry(x, i)))))
    assert isinstance(ordered, Lam)
    assert ordered.body == mul(entry(x, i), total((j,), entry(y, j)))


def test_what_is_subtracted_stands_after_what_is_added() -> None:
    ordered = ReadingOrder({})(add(mul(number(-2), entry(x, i)), entry(y, i)))
    assert ordered == add(entry(y, i), mul(number(-2), entry(x, i)))


def test_a_bound_index_gets_a_name_that_nothing_around_it_has() -> None:
    inner = fresh("i", N)
    renamed = rename_indices(Lam((i,), mul(entry(x, i), total((inner,), entry(y, inner)))), {N: ["i", "k"]})
    assert isinstance(renamed, Lam) and isinstance(renamed.body, Mul)
    summed = renamed.body.factors[1]
    assert isinstance(summed, Sum) and [v.name for v in summed.indices] == ["k"]


def test_names_of_indices_are_listed_in_reading_order() -> None:
    assert index_names(Lam((k,), total((i, j), mul(entry(x, i), entry(y, j))))) == {N: ["k", "i", "j"]}


def test_uses_counts_every_place() -> None:
    assert uses(x, [mul(entry(x, i), entry(x, j)), entry(y, i)]) == 2


@pytest.mark.parametrize(
    ("value", "cheap"),
    [
        (Lam((i,), mul(number(2), entry(x, i), entry(y, i))), True),
        (Lam((i,), add(entry(x, i), entry(y, i))), False),
        (Lam((i,), call("exp", entry(x, i))), False),
        (total((i,), entry(x, i)), False),
    ],
)
def test_only_products_of_entries_are_cheap(value: Term, cheap: bool) -> None:
    assert is_cheap(value) is cheap


def test_a_value_that_is_used_once_is_put_in_its_place() -> None:
    v = fresh("v_bar", Map((N,), COMPLEX))
    bindings = [(v, Lam((i,), add(entry(x, i), entry(y, i))))]
    left, results = place(bindings, [Lam((j,), entry(v, j))], ())
    assert left == []
    assert isinstance(results[0], Lam) and results[0].body == add(entry(x, j), entry(y, j))


def test_a_value_that_is_used_twice_keeps_its_name() -> None:
    v = fresh("v_bar", Map((N,), COMPLEX))
    bindings = [(v, Lam((i,), add(entry(x, i), entry(y, i))))]
    left, _ = place(bindings, [Lam((j, k), mul(entry(v, j), entry(v, k)))], ())
    assert [var for var, _ in left] == [v]


def test_a_value_that_a_factor_of_zero_drops_is_used_no_more() -> None:
    zero, v, w = fresh("z_bar", REAL), fresh("v_bar", Map((N,), REAL)), fresh("w_bar", Map((N,), REAL))
    square = Lam((i,), mul(entry(x, i), add(entry(x, i), entry(y, i))))
    bindings = [(zero, number(0)), (v, square), (w, Lam((i,), mul(zero, call("exp", entry(v, i)))))]
    left, results = place(bindings, [Lam((j,), call("exp", add(entry(w, j), entry(v, j))))], ())
    assert left == []
    assert isinstance(results[0], Lam) and results[0].body == call(
        "exp", mul(entry(x, j), add(entry(x, j), entry(y, j)))
    )


def test_the_users_own_definitions_are_kept() -> None:
    d = cd.grad("(x::RV) -> begin s = sum(i, x(i)^2); s * s end")
    assert "s = sum(i, x(i)^2)" in str(d)


def test_expand_multiplies_the_users_definitions_out() -> None:
    d = cd.grad("(x::RV) -> begin s = sum(i, x(i)^2); s * s end", expand=True)
    assert "s =" not in str(d)
    assert d.check()


@pytest.mark.slow
def test_a_long_chain_of_values_stays_a_chain() -> None:
    lines = "\n".join(f"h{n + 1} = exp(h{n}) * h{n} + h{n}" for n in range(60))
    d = cd.grad(f"(x::R) -> begin\nh0 = x\n{lines}\nh60\nend")
    longest = max(len(line) for line in str(d).splitlines())
    assert longest <= 100
    assert len(str(d)) < 8_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [
        "(A::RM) -> (S::Sym) -> sum((i, j, k), S(i, j) * A(j, k) * S(k, i))",
        "(S::Sym) -> begin P = (i, j) -> sum(k, S(i, k) * S(k, j)); sum((i, j), P(i, j) * P(j, i)) end",
        "(A::CM) -> (H::Her) -> sum((i, j, k), H(i, j)' * A(j, k) * H(k, i))",
    ],
)
def test_derivatives_by_a_symmetric_tensor_are_those_of_the_full_space(program: str) -> None:
    assert cd.grad(program).check()
    assert cd.hvp(program).check()


def test_a_sum_that_is_put_under_one_over_the_same_index_keeps_its_own() -> None:
    """d (Σ_i a)² / da = 2 n² a, where the value Σ_i a and its pullback bind one index."""
    d = cd.grad("(x::RV{n}) -> (a::R) -> sum(i::N{n}, a)^2")
    assert [float(d.compile()(np.ones(n), 1.5)) for n in (1, 2, 3, 5)] == [2 * n * n * 1.5 for n in (1, 2, 3, 5)]


def test_a_sum_that_is_taken_at_sums_of_indices_keeps_its_name() -> None:
    """In its place it would be computed for each pair of them: n m² products instead of n m."""
    d = cd.grad(
        "(h::RV{m}, y::RV{n}) -> (x::RV{n}) -> sum(i::N{n}, (sum(j, where(0 <= i - j, h(j) * x(i - j))) - y(i))^2)"
    )
    assert "r(i + j)" in d.result
    assert max(step.rank for step in d.plan().steps) == 2
    assert d.check()


def test_an_index_has_no_name_of_a_definition() -> None:
    """An index of a vector product, and one of a value of the result, beside the user's centre of mass c."""
    d = cd.grad(
        "(m::RV{n}, h::RV{3}) -> (r::RM{n, 3}, v::RM{n, 3}, w::RV{3}) -> begin c = e -> sum(i, m(i) * r(i, e)); "
        "L = e -> sum(i, m(i) * cross(f -> r(i, f) - c(f), f -> v(i, f))(e)); q = e -> cross(w, L)(e); "
        "sum(e, (L(e) - h(e))^2) + sum(e, q(e)^2) end"
    )
    assert "₁" not in str(d.result) and "L_bar = e -> " in str(d.result)
    assert d.check()
