"""Compiled results give the numbers that the meaning of the language gives, and refuse arrays that do not fit."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Mapping
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import combdiff as cd
from combdiff.arrays.lower.forms import Forms
from combdiff.arrays.lower.signature import result_of
from combdiff.arrays.plan import Plan
from combdiff.errors import ArrayError, UnsupportedError
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.samples import random_value
from combdiff.run.compiled import CodeOptions, Compiled
from combdiff.terms.terms import (
    ONE,
    TWO,
    ZERO,
    App,
    Diff,
    Lam,
    Term,
    Tuple,
    Var,
    add,
    call,
    conj,
    delta,
    fresh,
    indicator,
    let,
    mul,
    number,
    power,
    sub,
    total,
)
from combdiff.terms.types import COMPLEX, HERMITIAN, REAL, Domain, Index, Map
from tests import random_terms as rt
from tests.emit.array_libraries import Numbers, library

__all__ = ["library"]

Values = Mapping[Var, object]


def meaning(t: Term, values: Values, sizes: Mapping[Domain, int]) -> tuple[np.ndarray, ...]:
    """What the oracle says of the result's outputs."""
    inner = t
    while isinstance(inner, Lam) and not all(isinstance(p.kind, Index) for p in inner.params):
        inner = inner.body
    found = evaluate(inner, values, sizes)
    return tuple(map(np.asarray, found if isinstance(found, tuple) else (found,)))


def compare(t: Term, sizes: Mapping[Domain, int], seed: int = 0) -> None:
    """The compiled function against the oracle, as exactly as the term's conditioning allows."""
    rng = np.random.default_rng(seed)
    values = {v: random_value(v.kind, sizes, rng) for v in result_of(t).params}
    near = {v: np.asarray(x) * (1 + 1e-13 * rng.normal(size=np.shape(x))) for v, x in values.items()}
    with np.errstate(all="ignore"):
        wanted, moved = meaning(t, values, sizes), meaning(t, near, sizes)
        f = Compiled(t, CodeOptions(check=False))
        unseen = {a.name: sizes[a.kind.domain] for a in f.plan(sizes).arguments if isinstance(a.kind, Index)}
        found = f(*values.values(), **unseen)
    for w, m, f in zip(wanted, moved, found if isinstance(found, tuple) else (found,), strict=True):
        assert w.shape == np.shape(f)
        scale = max(1.0, float(np.abs(w).max(initial=0.0)))
        slack = 1e-9 * scale + 1e3 * float(np.abs(w - m).max(initial=0.0))
        assert np.abs(w - f).max(initial=0.0) <= slack


# --- random terms ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=300)
@given(
    st.integers(0, 10**9),
    st.sampled_from((1, 2, 3)),
    st.sampled_from((1, 2)),
    st.sampled_from((1, 2, 3, 5)),
    st.sampled_from((1, 3, 5)),
)
def test_the_code_of_a_random_term_computes_its_meaning(seed: int, n: int, m: int, bz: int, x: int) -> None:
    term = rt.Terms(random.Random(seed)).program()
    compare(term, {rt.N: n, rt.M: m, rt.BZ: bz, rt.X: x}, seed)


@pytest.mark.slow
@settings(max_examples=50)
@given(st.integers(0, 10**9))
def test_empty_arrays_are_arrays_too(seed: int) -> None:
    generator = rt.Terms(random.Random(seed))
    rows, columns = rt.index("r", rt.N), rt.index("s", rt.M)
    body = generator.term([rows, columns], 3)
    term = Lam(tuple(generator.tensors), Lam(tuple(generator.scalars), Lam((rows, columns), body)))
    sizes = {rt.N: 0, rt.M: 2, rt.BZ: 3, rt.X: 3}
    values = [random_value(v.kind, sizes, np.random.default_rng(0)) for v in result_of(term).params]
    try:
        found = Compiled(term)(*values)
    except ArrayError as error:
        # an entry of constant index does not exist in an empty array
        assert "out of range" in str(error)
    else:
        assert np.shape(found) == (0, 2)


# --- particular terms -----------------------------------------------------------------------------------------------

n, m = Domain("C.1"), Domain("C.2")
p, q, r, s = (rt.index(c, n) for c in "pqrs")
i, j = rt.index("i", m), rt.index("j", m)
J = rt.tensor("J", n, n, n, n, complex=True)
C = rt.tensor("C", n, m, complex=True)
A = rt.tensor("A", n, n, complex=True)
x = rt.tensor("x", n, complex=True)
y = rt.tensor("y", n)


def hartree_fock() -> Term:
    factors = (App(J, (p, q, r, s)), App(C, (q, i)), conj(App(C, (r, j))), App(C, (s, j)))
    return Lam((J,), Lam((C,), Lam((p, i), total((q, r, s, j), mul(number(4), *factors)))))


@pytest.mark.parametrize("sizes", [(4, 3), (3, 5), (1, 1), (5, 1), (3, 0)])
def test_the_hartree_fock_gradient_agrees_with_einsum(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    rows, columns = sizes
    ints = rng.normal(size=(rows,) * 4) + 1j * rng.normal(size=(rows,) * 4)
    orbitals = rng.normal(size=(rows, columns)) + 1j * rng.normal(size=(rows, columns))
    wanted = 4 * np.einsum("pqrs,qi,rj,sj->pi", ints, orbitals, orbitals.conj(), orbitals)
    np.testing.assert_allclose(Compiled(hartree_fock())(ints, orbitals), wanted, atol=1e-10)


def test_a_gather_wraps_round_and_a_symmetric_axis_starts_at_minus_m() -> None:
    k, b = rt.index("k", rt.BZ), rt.index("b", rt.X)
    u, w = rt.tensor("u", rt.BZ), rt.tensor("w", rt.X)
    term = Lam((u, w), Lam((k,), total((b,), mul(App(w, (b,)), App(u, (add(k, b),))))))
    field, weights = np.array([1.0, 10.0, 100.0, 1000.0]), np.array([2.0, 3.0, 5.0])
    wanted = [sum(weights[d + 1] * field[(k + d) % 4] for d in (-1, 0, 1)) for k in range(4)]
    np.testing.assert_allclose(Compiled(term)(field, weights), wanted)


def test_a_scatter_adds_what_falls_on_one_place() -> None:
    k, f = rt.index("k", rt.BZ), rt.index("f", rt.BZ)
    u = rt.tensor("u", rt.BZ)
    term = Lam((u,), Lam((f,), total((k,), delta(mul(TWO, k), f, App(u, (k,))))))
    np.testing.assert_allclose(Compiled(term)(np.array([1.0, 2.0, 3.0, 4.0])), [4.0, 0.0, 6.0, 0.0])
    np.testing.assert_allclose(Compiled(term)(np.array([1.0, 2.0, 3.0])), [1.0, 3.0, 2.0])


def test_equality_is_modulo_the_size_also_where_the_periodic_index_cancels() -> None:
    k, b = rt.index("k", rt.BZ), rt.index("b", rt.X)
    u, w = rt.tensor("u", rt.BZ), rt.tensor("w", rt.X)
    term = Lam((u, w), total((k, b), delta(k, add(k, b), mul(App(u, (k,)), App(w, (b,))))))
    assert Compiled(term)(np.array([2.0]), np.array([3.0, 5.0, 7.0])) == 30.0
    assert Compiled(term)(np.array([2.0, 0.0]), np.array([3.0, 5.0, 7.0])) == 10.0
    twice = Lam((u,), total((k,), delta(k, ZERO, delta(k, ONE, App(u, (k,))))))
    assert Compiled(twice)(np.array([2.0])) == 2.0
    assert Compiled(twice)(np.array([2.0, 3.0])) == 0.0


def test_an_indicator_hides_infinities() -> None:
    body = indicator(ONE, App(y, (p,)), call("log", sub(App(y, (p,)), ONE)))
    weights = rt.tensor("v", n)
    for t in (Lam((p,), body), total((p,), mul(App(weights, (p,)), body))):
        found = Compiled(Lam((y, weights), t))(np.array([0.5, 3.0, -1.0]), np.ones(3))
        assert np.isfinite(found).all()
        np.testing.assert_allclose(np.sum(found), np.log(2.0))


def test_the_sign_of_zero_is_zero() -> None:
    z = np.array([0, 3 - 4j, -2])
    np.testing.assert_allclose(Compiled(Lam((x,), Lam((p,), call("sign", App(x, (p,))))))(z), [0, 0.6 - 0.8j, -1])
    assert Compiled(Lam((y,), Lam((p,), call("sign", App(y, (p,))))))(np.zeros(2)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("name", ["sqrt", "log"])
def test_a_complex_root_of_a_real_array_is_complex(name: str) -> None:
    term = Lam((x,), Lam((p,), call(name, App(x, (p,)))))
    found = Compiled(term)(np.array([-4.0, 9.0]))
    np.testing.assert_allclose(found, getattr(np, name)(np.array([-4.0 + 0j, 9.0])))


@pytest.mark.filterwarnings("ignore:invalid value")
def test_a_real_root_stays_real() -> None:
    c = fresh("c", REAL)
    for t in (call("sqrt", c), power(c, number((number(1).real / 2, number(0).real)))):
        assert np.isnan(Compiled(Lam((c,), t))(-1.0))


def test_real_typed_results_are_real_arrays() -> None:
    norm = total((p,), mul(conj(App(x, (p,))), App(x, (p,))))
    abs2 = total((p, q), call("abs2", App(A, (p, q))))
    parts = Lam((p,), call("imag", App(x, (p,))))
    found = Compiled(Lam((A, x), Tuple((call("real", norm), abs2, parts))))(np.full((2, 2), 1 + 2j), np.array([1j, 2]))
    assert [np.asarray(f).dtype.kind for f in found] == ["f", "f", "f"]
    assert found[:2] == (5.0, 20.0)
    assert found[2].tolist() == [1.0, 0.0]


def test_strided_views_are_as_good_as_copies() -> None:
    rng = np.random.default_rng(3)
    ints, orbitals = rng.normal(size=(4, 3, 3, 6)), rng.normal(size=(2, 3)).T
    view = ints[:3, :, :, ::2]
    f = Compiled(hartree_fock())
    np.testing.assert_allclose(f(view, orbitals), f(view.copy(), orbitals.copy()))


def test_results_never_share_memory_with_arguments_or_each_other() -> None:
    flipped = Lam((q, p), App(A, (p, q)))
    f = Compiled(Lam((A,), Tuple((flipped, flipped, Lam((p, q), App(A, (p, q)))))))
    given_ = np.arange(4.0).reshape(2, 2)
    first, second, third = f(given_)
    assert not any(np.shares_memory(a, b) for a, b in [(first, given_), (third, given_), (first, second)])
    first[0, 0] = 7.0
    assert given_[0, 0] == 0.0


# --- functions of the user ------------------------------------------------------------------------------------------


def test_an_unknown_scalar_function_works_on_whole_arrays() -> None:
    g = fresh("g", Map((REAL,), REAL))
    at = App(y, (p,))
    body = Lam((p,), add(App(g, (at,)), App(Diff("pullback", g), (at, mul(TWO, at))), App(Diff("grad", g), (at,))))
    f = Compiled(Lam((g, y), body))
    values = np.array([0.1, 0.2, 0.3])

    def slope(u: np.ndarray) -> np.ndarray:
        return 1 - np.tanh(u) ** 2

    found = f(values, g=np.tanh, grad_g=slope, pullback_g=lambda u, k: slope(u) * k)
    np.testing.assert_allclose(found, np.tanh(values) + slope(values) * (2 * values + 1))


def test_the_gradient_of_an_unknown_functional_is_called_on_the_array() -> None:
    functional = fresh("R", Map((y.kind,), REAL))
    gradient = App(Diff("grad", functional), (y,))
    f = Compiled(Lam((functional,), Lam((y,), Lam((p,), mul(TWO, App(gradient, (p,)))))))
    assert f(np.arange(3.0), grad_R=lambda v: v**2).tolist() == [0.0, 2.0, 8.0]
    # the functional itself is not called, and may be given all the same
    assert f(np.arange(3.0), grad_R=lambda v: v**2, R=np.sum).tolist() == [0.0, 2.0, 8.0]


def test_a_kept_definition_is_called_and_its_derivative_given() -> None:
    functional = fresh("R", Map((y.kind,), REAL))
    v = rt.tensor("v", n)
    definition = Lam((v,), total((p,), power(App(v, (p,)), TWO)))
    body = Lam((p,), mul(App(functional, (y,)), App(App(Diff("grad", functional), (y,)), (p,))))
    f = Compiled(Lam((y,), let([(functional, definition)], body)))
    assert f(np.array([1.0, 2.0]), grad_R=lambda v: 2 * v).tolist() == [10.0, 20.0]


# --- what is refused ------------------------------------------------------------------------------------------------

her = fresh("H", Map((Index(n), Index(n)), COMPLEX, (HERMITIAN,)))
expectation = Lam((her,), Lam((x,), Lam((p,), total((q,), mul(TWO, App(her, (p, q)), App(x, (q,)))))))


def refusal(f: Compiled, *args: object, **named: object) -> str:
    with pytest.raises(ArrayError) as caught:
        f(*args, **named)
    return str(caught.value)


def test_a_plan_serves_sizes_near_its_own_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, planned = np.random.default_rng(4), list[tuple[int, ...]]()
    plan = Forms.plan

    def counting(self: Forms, sizes: Mapping[Domain, int] | None = None, memory: int | None = None) -> Plan:
        planned.append(tuple((sizes or {}).values()))
        return plan(self, sizes, memory)

    monkeypatch.setattr(Forms, "plan", counting)
    f = cd.grad("(A::RM) -> (x::RV) -> sum(i, sum(j, A(i, j) * x(j))^2)").compile()
    for shape in ((1, 1), (2, 1), (3, 1), (3, 2), (5, 0), (6, 0), (12, 3), (20, 3), (21, 2), (40, 9), (39, 9)):
        A, x = rng.standard_normal(shape), rng.standard_normal(shape[1])
        np.testing.assert_allclose(f(A, x), 2 * A.T @ (A @ x), atol=1e-12)
    assert planned == [(1, 1), (2, 1), (3, 2), (5, 0), (12, 3), (40, 9)]


def test_sizes_that_disagree_name_both_places() -> None:
    message = refusal(Compiled(expectation), np.eye(3), np.zeros(2))
    assert "slot 1 of x" in message
    assert "of H" in message


def test_arrays_that_do_not_fit_are_refused() -> None:
    f = Compiled(expectation)
    assert "1 axis" in refusal(f, np.zeros(3), np.zeros(3))
    assert "takes 2 arguments" in refusal(f, np.eye(2), np.zeros(2), 1)
    assert "not given x" in refusal(f, np.eye(2))
    assert "no argument called z" in refusal(f, np.eye(2), z=1)
    assert "twice" in refusal(f, np.eye(2), np.zeros(2), H=np.eye(2))
    assert "numbers" in refusal(f, np.eye(2), np.array(["a", "b"]))
    assert "not an array" in refusal(f, [[1, 2], [3]], np.zeros(2))
    assert "declared real" in refusal(Compiled(Lam((y,), total((p,), App(y, (p,))))), np.zeros(2, complex))


def test_remedies_for_numbers_of_other_kinds_work() -> None:
    f = cd.grad("(a::R, w::RV) -> (x::R) -> sum(i, w(i) * exp(a * x))").compile()
    expected = f(0.5, [1.0, 2.0], 2.0)
    assert "float(a)" in refusal(f, Fraction(1, 2), [1.0, 2.0], 2.0)
    assert f(float(Fraction(1, 2)), [1.0, 2.0], 2.0) == expected
    assert "floating point" in refusal(f, 10**400, [1.0, 2.0], 2.0)
    assert "give a number" in refusal(f, np.array([0.5]), [1.0, 2.0], 2.0)
    entries = [Fraction(1), Fraction(2)]
    assert "np.array(w, dtype=float)" in refusal(f, 0.5, entries, 2.0)
    assert f(0.5, np.array(entries, dtype=float), 2.0) == expected


def test_a_symmetric_axis_of_even_length_is_refused() -> None:
    w = rt.tensor("w", rt.X)
    b = rt.index("b", rt.X)
    assert "symmetric" in refusal(Compiled(Lam((w,), total((b,), App(w, (b,))))), np.zeros(4))


def test_data_without_their_declared_symmetry_are_refused() -> None:
    broken = np.array([[1.0, 2.0], [3.0, 4.0]])
    for check in ("sample", "full"):
        assert "((2, 1), :conj)" in refusal(Compiled(expectation, CodeOptions(check=check)), broken, np.zeros(2))
    found = Compiled(expectation, CodeOptions(check=False))(broken, np.array([1.0, 0.0]))
    assert found.tolist() == [2.0, 6.0]


def test_an_array_is_checked_once() -> None:
    f = Compiled(expectation)
    matrix = np.eye(2)
    f(matrix, np.zeros(2))
    matrix[0, 1] = 5.0
    f(matrix, np.zeros(2))
    assert "symmetry" in refusal(f, matrix.copy(), np.zeros(2))


def test_a_constant_index_out_of_range_is_refused() -> None:
    f = Compiled(Lam((y,), App(y, (number(2),))))
    assert f(np.arange(3.0)) == 2.0
    assert "out of range" in refusal(f, np.arange(2.0))


def test_an_integral_is_refused_before_code_is_made() -> None:
    t, f = fresh("t", REAL), fresh("f", Map((REAL,), REAL))
    with pytest.raises(UnsupportedError, match="integral"):
        Compiled(Lam((f,), total((t,), App(f, (t,)))))


def test_a_size_that_no_array_shows_is_an_argument() -> None:
    k = rt.index("k", rt.BZ)
    f = Compiled(Lam((y,), total((k, p), App(y, (p,)))))
    assert f(np.array([1.0, 2.0]), n_BZ=5) == 15.0
    assert "not given n_BZ" in refusal(f, np.zeros(2))
    assert "size of a domain" in refusal(f, np.zeros(2), n_BZ=-1)


# --- how it is called -----------------------------------------------------------------------------------------------


def test_arguments_may_be_named_and_integers_are_promoted() -> None:
    f = Compiled(expectation)
    eye = np.eye(2, dtype=int)
    np.testing.assert_allclose(f(x=np.array([1, 2]), H=eye), [2.0, 4.0])


def test_out_is_filled_and_returned() -> None:
    f = Compiled(expectation)
    out = np.empty(2, complex)
    assert f(np.eye(2), np.array([1.0, 1j]), out=out) is out
    assert out.tolist() == [2.0, 2j]
    assert "shape" in refusal(f, np.eye(2), np.ones(2), out=np.empty(3))
    assert "dtype" in refusal(f, np.eye(2), np.ones(2, complex), out=np.empty(2))


@pytest.mark.parametrize(
    ("out", "said"),
    [
        (np.empty(3, complex), r"out has the shape \(3,\), but the result has \(2,\)"),
        (np.empty((2, 1), complex), r"out has the shape \(2, 1\)"),
        (np.empty(2), "out holds float64, but the result is complex128"),
        (np.empty(2, int), "out holds int64"),
        ([0, 0], "out is a list, but must be a NumPy array"),
        (np.broadcast_to(0j, (2,)), "out cannot be written to"),
    ],
)
def test_what_cannot_be_filled_is_refused_before_any_work(out: object, said: str) -> None:
    calls = []

    def g(x: np.ndarray) -> np.ndarray:
        calls.append(x)
        return x

    d = cd.grad("(g::RF, z::CV) -> sum(i, g(abs2(z(i))))", wrt="z")
    z = np.ones(2, complex)
    f = d.compile()
    for _ in range(2):  # for the first call, and for what is known from then on
        before = len(calls)
        with pytest.raises(ArrayError, match=said) as caught:
            f(z, g=g, grad_g=g, out=out)
        assert caught.value.remedy and len(calls) == before
        assert f(z, g=g, grad_g=g, out=np.empty(2, complex)).shape == (2,)


def test_real_arrays_for_complex_ones_fill_real_arrays() -> None:
    out = np.empty(2)
    f = cd.grad("(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))").compile()
    assert f(np.eye(2), np.ones(2), out=out) is out
    np.testing.assert_array_equal(out, [2, 2])


@pytest.mark.parametrize(("value", "said"), [(None, "x is a NoneType"), (len, "x is a builtin"), ("abc", "numbers")])
def test_what_is_no_array_is_told(value: object, said: str) -> None:
    with pytest.raises(ArrayError, match=said) as caught:
        cd.grad("(x::RV) -> sum(i, x(i)^2)").compile()(value)
    assert "give a NumPy array of numbers" in caught.value.remedy


def test_a_tensor_that_wants_a_gradient_is_no_array_of_numpy() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(ArrayError, match="x is not an array"):
        cd.grad("(x::RV) -> sum(i, x(i)^2)").compile()(torch.ones(2, requires_grad=True))


def test_greek_and_reserved_names_are_arguments() -> None:
    c, keyword = fresh("ψ", REAL), fresh("lambda", REAL)
    f = Compiled(Lam((c, keyword), mul(c, keyword)))
    assert f(2.0, 3.0) == 6.0
    assert f(**{"ψ": 2.0, "lambda": 4.0}) == 8.0


def test_one_function_serves_all_sizes() -> None:
    f = Compiled(hartree_fock())
    for rows, columns in ((3, 2), (2, 4), (3, 2)):
        assert f(np.zeros((rows,) * 4), np.zeros((rows, columns))).shape == (rows, columns)


def test_a_number_that_is_zero_has_the_shape_of_the_result() -> None:
    found = Compiled(Lam((C,), Lam((p, i), ZERO)))(np.ones((3, 2)))
    assert found.shape == (3, 2)
    assert not found.any()


@pytest.mark.parametrize("number", [2, 0.5, np.float64(0.5), np.float32(0.5), np.array(0.5), np.array(2), True])
def test_a_number_is_taken_alike_by_every_call(number: object, monkeypatch: pytest.MonkeyPatch) -> None:
    f = cd.grad("(a::R) -> (x::RV) -> a * sum(i, x(i)^2)").compile()
    x = np.array([1.0, -2.0, 3.0])
    first = f(number, x)
    if type(number) is not bool:
        # what fits an argument to the code is only asked where something new is given
        monkeypatch.setattr(type(f), "_fitted", None)
    again = f(number, x)
    assert first.dtype == again.dtype and np.array_equal(first, again)
    np.testing.assert_allclose(again, 2 * float(np.asarray(number)) * x)


def test_a_number_that_does_not_fit_is_refused_after_one_that_does() -> None:
    f = cd.grad("(a::R) -> (x::RV) -> a * sum(i, x(i)^2)").compile()
    x = np.ones(2)
    f(1, x)
    for wrong in (1j, "1", 10**400, np.ones(2), np.complex128(1), None):
        with pytest.raises(ArrayError):
            f(wrong, x)
    np.testing.assert_allclose(f(3, x), [6, 6])


def test_a_complex_number_is_taken_after_a_real_one() -> None:
    f = cd.grad("(a::C) -> (x::CV) -> real(a * sum(i, x(i)^2))").compile()
    x = np.array([1.0, 2.0j])
    for a in (2, 0.5, 1 + 2j, np.complex128(3j), 2):
        np.testing.assert_allclose(f(a, x), np.conj(2 * a * x))


def test_the_mean_of_nothing_is_refused_in_words_and_has_no_gradient() -> None:
    d = cd.grad("(y::RV{n}) -> (x::RV{n}) -> sum(i, (x(i) - y(i))^2) / sum(i::N{n}, 1)")
    nothing = np.empty(0)
    with pytest.raises(ArrayError, match="divides by the size of a domain") as problem:
        d.compile(value=True)(nothing, nothing)
    assert "arrays that are not empty" in str(problem.value)
    assert d.compile()(nothing, nothing).shape == (0,)


@pytest.mark.slow
@pytest.mark.parametrize("error", [ZeroDivisionError, OverflowError])
@pytest.mark.parametrize(
    "program",
    [
        "(f::RF) -> (x::RV) -> sum(i, f(x(i)))",
        "(f::RF) -> (x::RV) -> sum(i, f(x(i)) * root((y::R) -> y + y^3 - x(i)))",
    ],
)
def test_what_a_function_of_the_user_raises_is_theirs(program: str, error: type[Exception]) -> None:
    def f(x: object) -> object:
        raise error("mine")

    with pytest.raises(error, match="mine"):
        cd.grad(program).compile(value=True)(np.ones(2), f=f, grad_f=np.cos)


# --- functions that a call is given -----------------------------------------------------------------------------------


def test_a_function_that_is_constant_is_constant_everywhere() -> None:
    f = cd.grad("(g::RF) -> (x::RV) -> sum(i, g(x(i)))").compile(value=True)
    for constant in (2.0, 2, np.float64(2), np.array([2.0])):
        value, gradient = f(np.zeros(3), g=lambda x, c=constant: c, grad_g=lambda x, c=constant: c)
        assert value == 6
        np.testing.assert_array_equal(gradient, [2.0, 2.0, 2.0])


@pytest.mark.parametrize("constant", [2.0, 2, np.float64(2)])
def test_a_constant_function_is_constant_in_every_library(constant: float, library: Numbers) -> None:
    f = cd.grad("(g::RF) -> (x::RV) -> sum(i, g(x(i))^2)").compile(library.name, value=True)
    value, gradient = f(library.to(np.arange(3.0)), g=lambda x: constant, grad_g=lambda x: constant)
    assert library.back(value) == 12
    np.testing.assert_array_equal(library.back(gradient), [8.0, 8.0, 8.0])


def test_a_function_of_another_shape_is_refused_in_every_library(library: Numbers) -> None:
    f = cd.grad("(g::RF) -> (x::RV) -> sum(i, g(x(i))^2)").compile(library.name, value=True)
    with pytest.raises(ArrayError, match=r"g returns an array of the shape \(2,\) for arguments of the shape \(3,\)"):
        f(library.to(np.arange(3.0)), g=lambda x: library.to(np.ones(2)), grad_g=np.cos)


def test_a_function_of_two_numbers_may_depend_on_one() -> None:
    f = cd.grad("(L::RO) -> (x::RV, y::RV) -> sum((i, j), x(i) * L(x(i), y(j)))").compile(value=True)
    x, y = np.array([1.0, 2.0]), np.arange(3.0)
    value, by_x, by_y = f(x, y, L=lambda a, b: a, grad_L=lambda a, b: (1.0, 0))
    np.testing.assert_allclose(value, 3 * (x**2).sum())
    np.testing.assert_allclose(by_x, 6 * x)
    np.testing.assert_array_equal(by_y, np.zeros(3))


@pytest.mark.parametrize(
    ("g", "said"),
    {
        "another shape": (lambda x: np.zeros(5), r"g returns an array of the shape \(5,\) for arguments of the shape"),
        "nothing": (lambda x: None, "g returns a NoneType, not numbers"),
        "a ragged list": (lambda x: [[1.0], [1.0, 2.0]], "g returns a list, not numbers"),
        "complex numbers": (lambda x: 1j * x, "g is declared real, and returns complex numbers"),
    }.values(),
)
def test_what_is_no_number_for_each_number_is_refused(g: Callable[..., object], said: str) -> None:
    f = cd.grad("(g::RF) -> (x::RV) -> sum(i, g(x(i)))").compile(value=True)
    with pytest.raises(ArrayError, match=said) as caught:
        f(np.zeros(3), g=g, grad_g=np.cos)
    assert caught.value.remedy


def test_code_that_does_not_need_a_size_is_given_it_too() -> None:
    # of few numbers in many groups, the sums are quicker one by one
    of_groups = cd.grad("(m::(N{j}) -> N{M}, s::RV{j}) -> (x::RV{j}) -> sum(j, s(j) * sum(l, m(l) == m(j), x(l))^2)")
    f = of_groups.compile()
    for n, groups in ((1, 2), (3, 400), (50, 3), (2, 100)):
        rng = np.random.default_rng(n)
        m, s, x = rng.integers(0, groups, n), rng.normal(size=n), rng.normal(size=n)
        same = m[:, None] == m
        assert np.allclose(f(m, s, x, M=groups), 2 * same @ (s * (same @ x)))
    assert of_groups.check()


def test_a_size_is_given_by_name_only() -> None:
    # T stands first in the program and last in the code: by position, 2 and 3 would be exchanged in silence
    f = cd.grad("(T::Int) -> (a::R) -> iterate((x, t) -> x * a, 1, T)").compile(value=True)
    assert f(a=2, T=3) == (8, 12)
    assert f(2, T=3) == (8, 12)
    assert list(inspect.signature(f).parameters.values())[1].kind is inspect.Parameter.KEYWORD_ONLY
    for _ in range(2):  # also of a call whose function is known
        with pytest.raises(cd.ArrayError, match="takes 1 argument by position, and 2 are given") as found:
            f(2, 3)
        assert "T=" in str(found.value)


def test_a_hessian_product_is_planned_for_the_sizes_of_the_call() -> None:
    d = cd.grad("(A::RM) -> (x::RV) -> sum((i, j), A(i, j) * sin(x(i)) * x(j))")
    f = d.compile(value=True, hvp=True)
    A, x, k = np.ones((30, 30)), np.linspace(0, 1, 30), np.arange(30.0)
    with patch.object(Forms, "of_formula", side_effect=AssertionError("the plan of no sizes")):
        *_, hvp = f(A, x)
        found = hvp(k)
    h = 1e-6
    slopes = [d.compile()(A, x + s * h * k) for s in (1, -1)]
    np.testing.assert_allclose(found, (slopes[0] - slopes[1]) / (2 * h), rtol=1e-6, atol=1e-6)
