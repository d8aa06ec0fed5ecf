"""The meaning of each construct, against NumPy; samples lie in the declared symmetric subspaces."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import combdiff as cd
from combdiff.errors import ArrayError, UnsupportedError
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.meaning.breaches import breaks_symmetry
from combdiff.meaning.evaluate import evaluate, sizes_of
from combdiff.meaning.samples import random_arguments, random_value
from combdiff.meaning.sizes import default_sizes
from combdiff.terms.terms import (
    ONE,
    TWO,
    App,
    Conj,
    Delta,
    Diff,
    Indicator,
    Lam,
    Let,
    Pow,
    Sum,
    Tuple,
    add,
    call,
    fresh,
    mul,
    neg,
    number,
)
from combdiff.terms.types import COMPLEX, HERMITIAN, REAL, Domain, Index, Map, Symmetry

RNG = np.random.default_rng
ROWS, COLUMNS = Domain("C.1"), Domain("C.2")
ZONE, STEPS = Domain("BZ", declared=True, periodic=True), Domain("X", declared=True, symmetric=True)
VECTOR = Map((Index(ROWS),), REAL)


def value_of(text, *arrays):
    """The value of a program at arguments."""
    return evaluate(infer(parse(text)), {})(*arrays)


def test_the_hartree_fock_energy_is_its_einsum():
    rng = RNG(1)
    c = rng.standard_normal((3, 2)) + 1j * rng.standard_normal((3, 2))
    j = rng.standard_normal((3, 3, 3, 3)) + 1j * rng.standard_normal((3, 3, 3, 3))
    text = """(J::(N, N, N, N) -> C, C::CM) ->
        sum((i, j, p, q, r, s), C(p, i)' * C(q, i) * C(r, j)' * C(s, j) * J(p, q, r, s))"""
    expected = np.einsum("pi,qi,rj,sj,pqrs", c.conj(), c, c.conj(), c, j)
    assert np.isclose(value_of(text, j, c), expected)


def test_a_map_of_indices_is_an_array_and_any_other_map_a_callable():
    f = infer(parse("(A::RM) -> (x::RV) -> i -> sum(j, A(i, j) * x(j))"))
    a, x = RNG(2).standard_normal((2, 3)), RNG(3).standard_normal(3)
    result = evaluate(f, {})(a)(x)
    assert result.dtype == np.float64 and np.allclose(result, a @ x)


def test_a_periodic_index_wraps_round():
    text = """@domain K begin base = I; periodic = true end
        (x::(K) -> C) -> (k::K, b::K) -> x(k - 2 * b + 1)"""
    x = RNG(4).standard_normal(5) + 0j
    expected = [[x[(k - 2 * b + 1) % 5] for b in range(5)] for k in range(5)]
    assert np.array_equal(value_of(text, x), expected)


def test_a_symmetric_domain_runs_from_minus_m_to_m():
    text = "@domain X begin symmetric = true end (w::(X) -> R) -> (b::X) -> b * w(-b)"
    assert value_of(text.replace("end (", "end\n("), np.array([1.0, 2.0, 4.0])).tolist() == [-4.0, 0.0, 1.0]


def test_a_delta_between_periodic_indices_is_modulo_the_size():
    k, q = fresh("k", Index(ZONE)), fresh("q", Index(ZONE))
    term = Lam((k, q), Delta(add(k, number(3)), q, ONE))
    expected = [[float((k + 3) % 4 == q) for q in range(4)] for k in range(4)]
    assert evaluate(term, {}, {ZONE: 4}).tolist() == expected


def test_delta_and_indicator_do_not_evaluate_what_they_exclude():
    i = fresh("i", Index(ROWS))
    x = fresh("x", VECTOR)
    term = Lam((i,), Indicator(add(i, ONE), ONE, App(x, (add(i, TWO),))))
    assert evaluate(term, {x: np.array([1.0, 2.0, 3.0])}).tolist() == [3.0, 0.0, 0.0]


@pytest.mark.parametrize("a, c", [(2, 1), (-3, Fraction(1, 2))])
def test_an_integral_over_a_delta_is_a_substitution_with_diracs_factor(a, c):
    t, y = fresh("t", REAL), fresh("y", REAL)
    term = Sum((t,), Delta(add(mul(number(a), t), number(c)), y, mul(t, t)))
    assert np.isclose(evaluate(term, {y: 5.0}), ((5 - float(c)) / a) ** 2 / abs(a))


def test_an_integral_passes_sums_products_and_conjugates():
    t, v = fresh("t", COMPLEX), fresh("v", COMPLEX)
    body = add(mul(t, Conj(Delta(v, t, mul(t, t)))), call("real", Delta(t, v, t)))
    z = 1.5 - 0.5j
    assert np.isclose(evaluate(Sum((t,), body), {v: z}), z * np.conj(z * z) + z.real)


def test_an_integral_that_no_delta_fixes_is_refused():
    t = fresh("t", REAL)
    with pytest.raises(UnsupportedError, match="no finite value"):
        evaluate(Sum((t,), call("exp", t)), {})


def test_a_nested_integral_over_two_numbers_is_solved_for_both():
    s, t, y = fresh("s", REAL), fresh("t", REAL), fresh("y", REAL)
    term = Sum((s,), mul(s, Sum((t,), Delta(t, s, Delta(y, mul(TWO, t), t)))))
    assert np.isclose(evaluate(term, {y: 3.0}), 1.5 * 1.5 / 2)


@pytest.mark.parametrize("name", ["sqrt", "log"])
def test_a_real_branch_of_a_negative_number_is_not_a_number(name):
    x, z = fresh("x", REAL), fresh("z", COMPLEX)
    assert np.isnan(evaluate(call(name, x), {x: -2.0}))
    assert np.isclose(evaluate(call(name, z), {z: -2.0}), getattr(np, name)(-2 + 0j))
    assert np.isnan(evaluate(Pow(x, number(Fraction(1, 2))), {x: -2.0}))


FUNCTIONS = ["exp", "log", "sin", "cos", "tan", "tanh", "sinh", "cosh", "sqrt", "abs", "real", "imag", "conj"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_scalar_function_is_numpys(name):
    z = fresh("z", COMPLEX)
    assert np.isclose(evaluate(call(name, z), {z: 0.3 - 1.2j}), getattr(np, name)(0.3 - 1.2j))


def test_the_functions_that_numpy_names_otherwise():
    z, point = fresh("z", COMPLEX), 0.3 - 1.2j
    assert np.isclose(evaluate(call("abs2", z), {z: point}), abs(point) ** 2)
    assert np.isclose(evaluate(call("atan", z), {z: point}), np.arctan(point))
    assert np.isclose(evaluate(call("sign", z), {z: point}), point / abs(point))
    assert evaluate(call("sign", z), {z: 0j}) == 0


@pytest.mark.parametrize("order", [(-1.0, 4.0), (4.0, -1.0)])
def test_an_extremum_beside_what_is_no_number_is_none(order):
    for name in ("maximum", "minimum"):
        assert np.isnan(evaluate(infer(parse(f"(x::RV) -> {name}(i, sqrt(x(i)))")), {})(np.array(order)))
    assert np.isnan(evaluate(infer(parse("(x::RV) -> k -> ties(i, sqrt(x(i)))(k)")), {})(np.array(order))).all()


def test_a_division_by_zero_is_infinite_and_no_error():
    x = fresh("x", REAL)
    assert evaluate(Pow(x, number(-1)), {x: 0.0}) == np.inf


def test_unknown_maps_and_their_derivatives_come_from_the_caller():
    g = fresh("g", Map((REAL,), REAL))
    x = fresh("x", REAL)
    term = Tuple((App(g, (x,)), App(Diff("grad", g), (x,)), App(Diff("pullback", g), (x, TWO))))
    given_ = {g: np.sin, Diff("grad", g): np.cos, Diff("pullback", g): lambda x, k: k * np.cos(x), x: 0.5}
    assert np.allclose(evaluate(term, given_), (np.sin(0.5), np.cos(0.5), 2 * np.cos(0.5)))


def test_a_missing_derivative_is_named():
    g, x = fresh("g", Map((REAL,), REAL)), fresh("x", REAL)
    with pytest.raises(UnsupportedError, match=r"grad\(g\) has no value"):
        evaluate(App(Diff("grad", g), (x,)), {g: np.sin, x: 1.0})


def test_a_shared_value_is_computed_once():
    calls = []
    g, x, a = fresh("g", Map((REAL,), REAL)), fresh("x", REAL), fresh("a", REAL)
    term = Let(((a, App(g, (x,))),), mul(a, add(a, ONE)))
    assert evaluate(term, {g: lambda v: calls.append(v) or 3.0, x: 1.0}) == 12.0
    assert len(calls) == 1


def test_sizes_that_disagree_name_both_places():
    with pytest.raises(ArrayError, match=r"slot 1 of x has 4, but slot 2 of A has 3"):
        value_of("(A::RM, x::RV) -> sum((i, j), A(i, j) * x(j))", np.zeros((2, 3)), np.zeros(4))


def test_a_symmetric_domain_of_even_size_is_refused():
    w = fresh("w", Map((Index(STEPS),), REAL))
    with pytest.raises(ArrayError, match="slot 1 of w"):
        sizes_of({w: np.zeros(4)})


@pytest.mark.parametrize("array", [np.zeros((2, 2)), np.zeros(2) + 0j, np.array(["a", "b"]), 3.0])
def test_an_array_of_the_wrong_rank_or_dtype_is_refused(array):
    x = fresh("x", VECTOR)
    with pytest.raises(ArrayError):
        evaluate(x, {x: array})


def test_a_constant_index_out_of_range_is_refused():
    with pytest.raises(ArrayError, match="index 3 is outside slot 1 of x"):
        value_of("(x::RV) -> x(3)", np.zeros(3))


def test_an_unknown_size_is_refused():
    i = fresh("i", Index(ROWS))
    with pytest.raises(ArrayError, match="size of"):
        evaluate(Sum((i,), ONE), {})


def test_a_domain_of_no_values_sums_to_zero():
    assert value_of("(x::RV) -> sum(i, x(i))", np.zeros(0)) == 0
    assert value_of("(x::RV) -> i -> x(i)", np.zeros(0)).shape == (0,)


def test_an_index_read_as_a_number_is_its_value():
    assert value_of("(x::RV) -> sum(i, (i + 1) * x(i))", np.array([1.0, 10.0])) == 21.0


def test_exact_numbers_stay_exact():
    x = fresh("x", REAL)
    assert evaluate(add(x, number(2)), {x: 3}) == 5 and isinstance(evaluate(number(2), {}), int)


# --- samples --------------------------------------------------------------------------------------------------------

SIZES = {ROWS: 4, COLUMNS: 3, ZONE: 7, STEPS: 5}
_permutation = Symmetry.permutation


def four(*symmetries):
    return Map((Index(ROWS),) * 4, COMPLEX, symmetries)


SPACES = {
    "hermitian": Map((Index(ROWS),) * 2, COMPLEX, (HERMITIAN,)),
    "antisymmetric": Map((Index(ROWS),) * 3, REAL, (_permutation((2, 1, 3), "neg"), _permutation((1, 3, 2), "neg"))),
    "integrals": four(_permutation((2, 1, 4, 3), "conj"), _permutation((3, 4, 1, 2), "id")),
    "pairs": four(_permutation((2, 1, 3, 4), "id"), _permutation((1, 2, 4, 3), "id"), _permutation((3, 4, 1, 2), "id")),
    "real": Map((Index(ROWS),), COMPLEX, (Symmetry((((0, 1),),), 1, True),)),
    "imaginary": Map((Index(ROWS),), COMPLEX, (Symmetry((((0, 1),),), -1, True),)),
    "reflected": Map((Index(STEPS), Index(ZONE)), COMPLEX, (Symmetry.reflection((1, 2), 2, "inegc"),)),
    "neighbours": Map(
        (Index(ROWS), Index(ROWS), Index(ZONE), Index(STEPS)),
        COMPLEX,
        (Symmetry((((1, 1),), ((0, 1),), ((2, 1), (3, 1)), ((3, -1),)), 1, True),),
    ),
}


def image(kind, law, point):
    """The index tuple b that a law relates to a, entry by entry."""
    values = [p - SIZES[k.domain] // 2 * k.domain.symmetric for p, k in zip(point, kind.params, strict=True)]
    found = []
    for row, slot in zip(law.rows, kind.params, strict=True):
        value = sum(c * values[s] for s, c in row)
        size = SIZES[slot.domain]
        found.append(value % size if slot.domain.periodic else value + size // 2 * slot.domain.symmetric)
    return tuple(found)


@pytest.mark.parametrize("name", SPACES)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=5, deadline=None)
def test_samples_have_the_declared_symmetries_exactly(name, seed):
    kind = SPACES[name]
    array = random_value(kind, SIZES, RNG(seed))
    for law in kind.symmetries:
        for point in np.ndindex(array.shape):
            related = array[image(kind, law, point)]
            assert array[point] == law.sign * (np.conj(related) if law.conj else related)
    assert breaks_symmetry(array, kind, SIZES, None) is None and breaks_symmetry(array, kind, SIZES, 50) is None


@pytest.mark.sampled
@pytest.mark.parametrize("name, free", [("hermitian", 16), ("integrals", 136), ("pairs", 110), ("antisymmetric", 4)])
def test_samples_are_not_more_symmetric_than_declared(name, free):
    kind = SPACES[name]
    rows = [random_value(kind, SIZES, RNG(seed)).ravel() for seed in range(free + 5)]
    assert np.linalg.matrix_rank(np.array([np.concatenate([r.real, r.imag]) for r in rows])) == free


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("sample", [None, 200])
def test_data_that_break_a_symmetry_are_found(name, sample):
    kind = SPACES[name]
    array = random_value(Map(kind.params, kind.result), SIZES, RNG(5))
    breach = breaks_symmetry(array, kind, SIZES, sample, RNG(6))
    assert breach is not None and breach.law in kind.symmetries
    assert breach.found == array[breach.place]


def test_rounding_does_not_break_a_symmetry():
    kind = SPACES["hermitian"]
    array = random_value(kind, SIZES, RNG(7))
    array[0, 1] += 1e-13
    assert breaks_symmetry(array, kind, SIZES, None) is None
    array[0, 1] += 1e-3
    breach = breaks_symmetry(array, kind, SIZES, None)
    assert breach is not None and breach.law == HERMITIAN and breach.place in ((0, 1), (1, 0))


def test_arguments_are_drawn_for_the_leading_maps():
    term = infer(parse("(A::Her) -> pullback((x::CV) -> i -> sum(j, A(i, j) * x(j)))"))
    found = random_arguments(term, default_sizes(term), RNG(8))
    assert {v.name: np.shape(a) for v, a in found.items()} == {"A": (3, 3), "x": (3,)}


def test_default_sizes_tell_domains_apart():
    i, j, k, b = (fresh("i", Index(d)) for d in (ROWS, COLUMNS, ZONE, STEPS))
    assert default_sizes(Lam((i, j, k, b), neg(i))) == {ROWS: 3, COLUMNS: 4, ZONE: 7, STEPS: 5}


@pytest.mark.sampled
@pytest.mark.parametrize(
    "value",
    [
        "begin f = (i::Z) -> i * x(i)^2; sum(d, y(d)^2 * f(-d)) end",
        "begin f = (i::Z, z::R) -> z * i * x(i)^2; sum(d, y(d)^2 * f(-d, 1)) end",
        "begin f = (i::Z, g::(Z) -> R) -> i * g(i); sum(d, y(d)^2 * f(-d, k -> x(k)^2)) end",
        "sum(d, y(d)^2 * ((i::Z) -> i * x(i)^2)(-d))",
        "sum(d, y(d)^2 * sum(i, delta(i, -d, i * x(i)^2)))",
    ],
)
def test_an_index_of_a_periodic_domain_is_read_as_one_of_its_values(value: str) -> None:
    """f(−d) of f = i -> i x(i) is that entry of f: i is (−d) mod N, however f is written."""
    text = f"@domain Z begin base = I; periodic = true end\n(y::(Z) -> R) -> (x::(Z) -> R) -> {value}"
    d = cd.grad(text)
    assert d.check()
    x, y = np.arange(1.0, 6.0), np.array([1.0, 2.0, -1.0, 3.0, 0.5])
    i = np.arange(5)
    found, gradient = d.compile(value=True)(y, x)
    np.testing.assert_allclose(found, (i * x**2 * y[-i] ** 2).sum())
    np.testing.assert_allclose(gradient, 2 * i * x * y[-i] ** 2)


@pytest.mark.slow
def test_a_cotangent_that_reads_its_index_keeps_its_name_where_the_index_wraps_round() -> None:
    text = """@domain Z begin base = I; periodic = true end
    (f::(C) -> C) -> (x::(Z) -> R) -> sum(i::Z, i * pullback(f)(im, x(-i))^(-3/2))"""
    d = cd.grad(text)
    assert d.check() and "delta" not in str(d)
