"""A tensor that a loop begins with, or that is given on, is held whole: what replaces its entries leaves it alone."""

from __future__ import annotations

import pytest

import combdiff as cd
from combdiff.canon.canonical import normal_form
from combdiff.simplify.contraction.diagonals import without_diagonals
from combdiff.simplify.mirrored import in_both_orders
from combdiff.terms.conditions.comparing import compared
from combdiff.terms.terms import App, Lam, Loop, Term, Tuple, Var, add, delta, fresh, held_whole, mul
from combdiff.terms.types import REAL, Domain, Index, Map

PLACE = Index(Domain("n"))
MATRIX = Map((PLACE, PLACE), REAL)

LOOPS = [
    # the cotangent of the last state, δ(i, d), is where the loop of cotangents begins
    "(X::RV) -> begin y = i -> iterate((z, j) -> (k::N) -> X(i), (l::N) -> im, 1)(i); sum(j, y(j)) end",
    "(X::RV) -> begin y = i -> iterate((z, j) -> k -> sin(z(k)) * X(i), l -> X(l) * im, 2)(i); sum(j, y(j)) end",
    "(X::RV) -> begin y = i -> iterate((z, j) -> (k::N) -> z(k) * X(i), X, 3)(i); sum(j, y(j)^2) end",
]


@pytest.mark.sampled
@pytest.mark.parametrize("program", LOOPS)
def test_jacobians_whose_cotangents_begin_on_a_diagonal(program: str) -> None:
    assert cd.jacobian(program).check()


def _loop(start: Var) -> Term:
    state, step = fresh("z", MATRIX), fresh("t", Index(Domain("3")))
    return Loop("states", 0, False, Lam((state, step), Tuple((state,))), Tuple((start,)))


def test_only_what_is_applied_is_not_held_whole() -> None:
    i, a, b, c = fresh("i", PLACE), *(fresh(name, MATRIX) for name in "abc")
    assert held_whole(Tuple((mul(App(a, (i, i)), App(b, (i, i))), _loop(c)))) & {a, b, c} == {c}
    assert held_whole(a) == {a}
    assert held_whole(Tuple((App(a, (i, i)), a))) == {a}


@pytest.mark.parametrize("whole", [False, True])
def test_a_diagonal_tensor_stays_where_a_loop_begins_with_it(whole: bool) -> None:
    i, j, x, z = fresh("i", PLACE), fresh("j", PLACE), fresh("x", Map((PLACE,), REAL)), fresh("z", MATRIX)
    value = Lam((i, j), delta(i, j, App(x, (i,))))
    entry = Lam((i, j), mul(App(z, (i, j)), App(x, (j,))))
    found = without_diagonals([(z, value)], [entry, _loop(z)] if whole else [entry])
    assert (found is None) is whole


@pytest.mark.parametrize("whole", [False, True])
def test_a_value_of_one_order_stays_where_a_loop_begins_with_it(whole: bool) -> None:
    i, j, x, z = fresh("i", PLACE), fresh("j", PLACE), fresh("x", Map((PLACE,), REAL)), fresh("z", MATRIX)
    value = Lam((i, j), compared(i, "<", j, mul(App(x, (i,)), App(x, (j,)))))
    entry = Lam((i, j), add(App(z, (i, j)), App(z, (j, i))))
    results = [entry, _loop(z)] if whole else [entry]
    bindings, after = in_both_orders([(z, value)], results, (), lambda t: normal_form(t))
    assert ([var for var, _ in bindings] == [z]) is whole
    assert (after == results) is whole
