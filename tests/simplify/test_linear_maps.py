"""Laws of linear maps: numbers and sums pass through them, an adjoint of an adjoint is the map, inverses of numbers."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import combdiff as cd
from combdiff.errors import CheckError
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.linear_maps import LinearMap, Space, newton, probed, random_linear
from combdiff.simplify import known, stages
from combdiff.simplify.laws.linear import gathered, linear_laws, written_out
from combdiff.simplify.laws.stationary import vanishing
from combdiff.terms.terms import (
    MINUS_ONE,
    TWO,
    ZERO,
    App,
    Diff,
    Lam,
    Term,
    add,
    apply,
    conj,
    diff,
    fresh,
    mul,
    number,
    power,
)
from combdiff.terms.types import COMPLEX, REAL, Domain, Index, Map

N = Index(Domain("x.1"))
VECTOR = Map((N,), REAL)
VECTORS = "@space D begin type = (RV) -> RV; linear = true end\n"
gradient = cache(cd.grad)


def spaces():
    return st.builds(Space, st.sampled_from([(), (1,), (3,), (2, 2), (0,)]), st.booleans())


def element(space, rng):
    array = rng.normal(size=space.shape) + 1j * rng.normal(size=space.shape)
    return space.held(array)


def real_inner(a, b):
    return float(np.real(np.sum(np.conj(a) * np.asarray(b))))


# --- random linear maps ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(spaces(), spaces(), st.integers(0, 5))
def test_a_random_linear_map_has_its_exact_adjoint(source, target, seed):
    rng = np.random.default_rng(seed)
    linear = random_linear(source, target, rng)
    x, k = element(source, rng), element(target, rng)
    assert real_inner(k, linear(x)) == pytest.approx(real_inner(linear.adjoint(k), x), abs=1e-10)


@given(spaces(), st.integers(0, 5))
def test_probing_finds_a_map_and_its_inverse(space, seed):
    rng = np.random.default_rng(seed)
    linear = random_linear(space, space, rng)
    x = element(space, rng)
    found = probed(linear, space, space)
    assert np.allclose(found.inverse(linear(x)), x)


def test_a_random_map_of_complex_spaces_is_linear_over_the_complex_numbers():
    plane = Space((3,), over_complex=True)
    linear = random_linear(plane, plane, np.random.default_rng(1))
    x = np.array([1.0, 2 - 1j, 3j])
    assert np.allclose(linear(1j * x), 1j * linear(x))


def test_a_singular_map_has_no_inverse_and_says_so_by_nan():
    plane = Space((2,), over_complex=False)
    assert np.isnan(LinearMap(plane, plane, np.ones((2, 2))).inverse(np.ones(2))).all()


@pytest.mark.parametrize("over_complex", [False, True])
def test_newton_finds_a_root_of_a_system(over_complex):
    space = Space((2,), over_complex)
    root = newton(lambda x: np.array([x[0] ** 2 + x[1] - 3, x[0] - x[1] + 1]), space, 1.0)
    assert np.allclose(root, [1, 2])


def test_newton_says_by_nan_that_there_is_no_root():
    assert np.isnan(newton(lambda x: x * x + 1, Space((), over_complex=False)))


# --- laws -----------------------------------------------------------------------------------------------------------


def test_an_adjoint_of_an_adjoint_is_the_map():
    D = fresh("D", Map((VECTOR,), VECTOR, linear=True))
    assert diff("adjoint", diff("adjoint", D)) is D
    assert diff("inverse", diff("inverse", D)) is D


def test_a_number_passes_through_a_linear_map():
    D, x, i = fresh("D", Map((VECTOR,), VECTOR, linear=True)), fresh("x", VECTOR), fresh("i", N)
    doubled = Lam((i,), mul(TWO, App(x, (i,))))
    assert apply(apply(D, doubled), i) == mul(TWO, App(App(D, (Lam((i,), App(x, (i,))),)), (i,)))


def test_a_complex_number_stays_before_a_map_of_real_values():
    D, x = fresh("D", Map((COMPLEX,), REAL, linear=True)), fresh("x", COMPLEX)
    assert apply(D, mul(number(2j), x)) == App(D, (mul(number(2j), x),))
    assert apply(D, ZERO) == ZERO


def test_an_unknown_map_that_is_not_linear_keeps_its_argument():
    g, x = fresh("g", Map((REAL,), REAL)), fresh("x", REAL)
    assert apply(g, mul(TWO, x)) == App(g, (mul(TWO, x),))


def test_terms_under_one_linear_map_are_gathered():
    d = gradient(VECTORS + "(D::D) -> (x::RV) -> sum(i, exp(D(x)(i)) + sin(D(x)(i)))")
    assert str(d).count("adjoint(D)(") == 1


def test_terms_at_other_slots_are_not_gathered():
    D, x, i, j = fresh("D", Map((VECTOR,), VECTOR, linear=True)), fresh("x", VECTOR), fresh("i", N), fresh("j", N)
    whole = add(App(App(D, (x,)), (i,)), App(App(D, (x,)), (j,)))
    assert gathered(whole) == whole


@pytest.mark.parametrize("coefficients", [(2.0, 0.0), (1.5 - 2j, 0.0), (3.0, 1j), (1 + 1j, 2 - 0.5j)])
def test_the_inverse_of_a_map_of_complex_numbers_is_a_quotient(coefficients):
    a, b = map(number, map(complex, coefficients))
    v, k = fresh("v", COMPLEX), fresh("k", COMPLEX)
    inverse = App(Diff("inverse", Lam((v,), add(mul(a, v), mul(b, conj(v))))), (k,))
    found = written_out(inverse)
    assert not any(isinstance(t, Diff) for t in (found,))
    at = {k: 0.7 - 1.1j}
    assert evaluate(found, at) == pytest.approx(evaluate(inverse, at))


def test_the_inverse_of_a_diagonal_map_is_a_quotient_by_entries():
    v, x, k, i, j = fresh("v", VECTOR), fresh("x", VECTOR), fresh("k", VECTOR), fresh("i", N), fresh("j", N)
    diagonal = Lam((v,), Lam((i,), mul(App(x, (i,)), App(v, (i,)))))
    entry = App(App(Diff("inverse", diagonal), (k,)), (j,))
    assert linear_laws(entry) == mul(App(k, (j,)), power(App(x, (j,)), MINUS_ONE))


def test_a_map_that_mixes_entries_is_no_quotient():
    v, A, k, i, j = fresh("v", VECTOR), fresh("A", Map((N, N), REAL)), fresh("k", VECTOR), fresh("i", N), fresh("j", N)
    from combdiff.terms.terms import total

    mixing = Lam((v,), Lam((i,), total((j,), mul(App(A, (i, j)), App(v, (j,))))))
    entry: Term = App(App(Diff("inverse", mixing), (k,)), (i,))
    assert linear_laws(entry) == entry


# --- stationary points ----------------------------------------------------------------------------------------------


def test_what_an_equation_makes_zero_is_found_whatever_its_factor():
    x, y, z = (fresh(name, REAL) for name in "xyz")
    root = Diff("root", Lam((x,), add(power(x, number(3)), x, TWO)))
    (found,) = vanishing([(y, root), (z, mul(number(-5), add(power(y, number(3)), y, TWO)))])
    assert found.var is z and evaluate(found.value, {y: 0.3}) == pytest.approx(evaluate(found.multiple, {y: 0.3}))


def test_what_an_equation_does_not_make_zero_stays():
    x, y, z = (fresh(name, REAL) for name in "xyz")
    root = Diff("root", Lam((x,), add(power(x, number(3)), x, TWO)))
    assert list(vanishing([(y, root), (z, add(power(y, number(3)), y))])) == []


@pytest.mark.slow
def test_the_gradient_of_a_minimum_has_nothing_to_solve():
    d = cd.grad("""(p::RV) -> begin
      f = (x::RV, p::RV) -> sum(i, x(i)^4 + exp(p(i) * x(i)))
      x = root((x::RV) -> grad((x::RV) -> f(x, p))(x))
      f(x, p)
    end""")
    assert "inverse" not in str(d) and "i -> x(i) * exp(p(i) * x(i))" in str(d)
    assert any(step.name == "stationary point" and step.note == "x_bar: zero at the root" for step in d.steps)
    assert d.check()


# --- the check of every stage sees wrong laws -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        VECTORS + "(D::D) -> (x::RV) -> sum(i, exp(D(x)(i)))",
        "(a::R) -> root((x::R) -> x^3 + x - a)",
        "(A::RM, b::RV) -> sum(i, inverse((x::RV) -> i -> sum(j, A(i, j) * x(j)))(b)(i))",
    ],
)
def test_a_wrong_law_is_seen(monkeypatch, text):
    def wrong(t):
        return mul(TWO, t) if not isinstance(t, Lam) else t

    monkeypatch.setattr(known, "linear_laws", wrong)
    with pytest.raises(CheckError):
        cd.grad(text)


@pytest.mark.slow
def test_the_adjoint_for_the_map_itself_is_seen(monkeypatch):
    from combdiff.simplify.contraction import contract as contraction
    from combdiff.terms.terms import Traverser

    original = contraction.contract

    def wrong(entries, **options):
        found, account = original(entries, **options)
        swapped = Traverser(lambda t: t.of if isinstance(t, Diff) and t.kind == "adjoint" else t)
        return [swapped(t) for t in found], account

    monkeypatch.setattr(stages, "contract", wrong)
    with pytest.raises(CheckError):
        cd.grad(VECTORS + "(D::D) -> (x::RV) -> sum(i, exp(D(x)(i)) * x(i))")
