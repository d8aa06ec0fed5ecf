"""The Python entry points and compiled callables: what they return, what they refuse, arrays of every kind."""

from __future__ import annotations

import math
from dataclasses import fields
from inspect import signature

import numpy as np
import pytest

import combdiff as cd
from combdiff import api
from combdiff.calculus.markers import MODES
from combdiff.command.cli import main
from combdiff.compiling import CompileOptions
from combdiff.errors import ArrayError, CombDiffError, LanguageError, UnsupportedError

QUADRATIC = "(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))"
REAL_QUADRATIC = "(A::Sym) -> (x::RV) -> sum((i, j), x(i) * A(i, j) * x(j))"
SQUARES = "(x::RV) -> sum(i, x(i)^2)"
WEIGHTED = """
@domain X begin symmetric = true end
@space Even begin type = (X,) -> R; symmetries = (((1,), :ineg),) end
(w::Even) -> (x::(X) -> R) -> sum(b::X, w(b) * x(b)^2)
"""
RING = "@domain P begin base = I; periodic = true end\n(x::(P) -> R) -> sum(i::P, x(i) * x(i + 1))"


@pytest.fixture(scope="module")
def gradient():
    return cd.grad(QUADRATIC).compile()


@pytest.fixture(scope="module")
def arrays():
    rng = np.random.default_rng(3)
    a = rng.standard_normal((3, 3)) + 1j * rng.standard_normal((3, 3))
    return a + a.conj().T, rng.standard_normal(3) + 1j * rng.standard_normal(3)


# --- entry points -----------------------------------------------------------------------------------------------------


def test_every_public_name_is_an_entry_point_or_an_error():
    assert set(cd.__all__) <= set(dir(cd))
    assert api.MODES.keys() == {*MODES, "vjp"} and cd.vjp is cd.pullback


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_is_an_entry_point_and_a_command(mode, capsys):
    assert mode in cd.__all__ and api.MODES[mode] is getattr(cd, mode)
    with pytest.raises(SystemExit) as left:
        main([mode, "--help"])
    assert left.value.code == 0 and f"combdiff {mode}" in capsys.readouterr().out


@pytest.mark.parametrize("derivative", [cd.grad, cd.pullback, cd.hvp])
@pytest.mark.parametrize(
    "text, message",
    [
        (None, "a program is a text"),
        (SQUARES.encode(), "a program is a text"),
        ("examples/hartree_fock.cd", "Path('examples/hartree_fock.cd')"),
        ("", "the text is empty"),
    ],
)
def test_what_is_no_program_is_refused(derivative, text, message):
    with pytest.raises(CombDiffError) as error:
        derivative(text)
    assert message in str(error.value) and "remedy: " in str(error.value)


@pytest.mark.parametrize(
    "options", [{"wrt": 3}, {"keep": [3]}, {"seconds": math.nan}, {"seconds": 0}, {"seconds": "1"}, {"nodes": 0}]
)
def test_options_of_the_wrong_kind_are_refused(options):
    with pytest.raises(CombDiffError) as error:
        cd.grad(SQUARES, **options)
    assert error.value.remedy


def test_one_name_is_as_good_as_a_list_of_one():
    text = "(a::R, b::R) -> a^2 * b"
    assert str(cd.grad(text, wrt="b")) == str(cd.grad(text, wrt=["b"])) == str(cd.grad(text, wrt={"b"}))


def test_a_spent_budget_is_told():
    d = cd.grad(QUADRATIC, seconds=1e-9)
    assert any(step.spent and "budget spent" in str(step) for step in d.steps)


def test_messages_call_the_program_by_its_name():
    with pytest.raises(LanguageError, match=r"^energy\.cd:1:"):
        cd.grad("(x::RV) -> sum(i, y(i))", name="energy.cd")


@pytest.mark.parametrize("method", ["source", "compile"])
def test_an_unknown_backend_is_refused(method):
    with pytest.raises(UnsupportedError, match="choose one of numpy, cupy, jax, torch, dask"):
        getattr(cd.grad(SQUARES), method)("abacus")


def test_an_unknown_form_is_refused():
    with pytest.raises(CombDiffError, match="index"):
        cd.grad(SQUARES).latex(form="poem")


NAMES = [
    ("lambda", "class", "in", "def"),
    ("np", "numpy", "T", "einsum"),
    ("k", "i", "d", "e"),
    ("A", "x", "k", "t1"),
    ("gradient", "value", "range", "len"),
    ("None", "True", "print", "__import__"),
    ("Φ", "ψ", "μ", "ν"),
    ("变量", "x̂", "i₁", "i₂"),
    ("C", "N", "R", "I"),
    ("ﬁ", "fi", "ſ", "s"),
]


@pytest.mark.sampled
@pytest.mark.parametrize("derivative", [cd.grad, cd.hvp])
@pytest.mark.parametrize("names", NAMES, ids=lambda names: "-".join(names))
def test_any_names_give_code_that_is_right(derivative, names, arrays):
    a, x = arrays
    matrix, vector, i, j = names
    vectors = [x] if derivative is cd.grad else [x, x + 1]
    body = f"{vector}({i})' * {matrix}({i}, {j}) * {vector}({j})"
    found = derivative(f"({matrix}::CM) -> ({vector}::CV) -> sum(({i}, {j}), {body})")
    assert np.allclose(found.compile()(a + 1j, *vectors), (a + 1j + (a + 1j).conj().T) @ vectors[-1])


@pytest.mark.parametrize("name", ["sum", "pi", "im", "grad", "delta", "begin"])
def test_a_word_of_the_language_is_no_name(name):
    with pytest.raises(LanguageError):
        cd.grad(f"({name}::RV) -> sum(i, {name}(i)^2)")


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["exp", "max", "round", "relu", "abs"])
def test_a_name_hides_a_function_of_numbers(name):
    d = cd.grad(f"({name}::RV) -> (x::RV) -> sum(i, {name}(i)^2 * sin(x(i))^2)")
    assert str(d).startswith(f"({name}::RV) -> ")
    a, x = np.arange(3.0), np.ones(3)
    assert np.allclose(d.compile()(a, x), a**2 * np.sin(2 * x)) and d.check()


def test_a_name_that_hides_a_function_that_the_result_calls_is_written_otherwise():
    d = cd.grad("(cosh::RV) -> (x::RV) -> sum(i, cosh(i) * sinh(x(i)))")
    assert str(d) == "(cosh₁::RV) -> (x::RV) -> i -> cosh₁(i) * cosh(x(i))"


# --- arrays that fit --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        np.asfortranarray,
        lambda a: np.repeat(np.repeat(a, 2, 0), 2, 1)[::2, ::2] if a.ndim == 2 else np.repeat(a, 2)[::2],
        lambda a: a.T.conj() if a.ndim == 2 else a[::-1][::-1],
        lambda a: a.tolist(),
        lambda a: a.astype(np.complex64),
        lambda a: a.view(np.matrix) if a.ndim == 2 else a,
    ],
    ids=["fortran", "strided", "transposed", "lists", "single", "matrix"],
)
def test_layout_and_kind_of_an_array_do_not_matter(gradient, arrays, change):
    a, x = map(change, arrays)
    found = gradient(a, x)
    assert type(found) is np.ndarray
    assert np.allclose(found, 2 * arrays[0] @ arrays[1], atol=1e-5)


def test_integers_are_numbers(gradient):
    assert np.allclose(gradient(np.eye(3, dtype=int), np.arange(3)), [0, 2, 4])


def test_arguments_are_given_by_place_or_by_name(gradient, arrays):
    a, x = arrays
    assert np.array_equal(gradient(a, x), gradient(x=x, A=a))


def test_arrays_given_are_left_as_they_are(gradient, arrays):
    before = [array.copy() for array in arrays]
    gradient(*arrays)
    assert all(map(np.array_equal, arrays, before))


@pytest.mark.parametrize("n", [0, 1, 2])
def test_small_arrays_are_arrays(gradient, n):
    assert np.array_equal(gradient(np.eye(n), np.ones(n)), 2 * np.ones(n))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7])
def test_a_ring_of_any_size_closes(n):
    x = np.random.default_rng(n).standard_normal(n)
    assert np.allclose(cd.grad(RING).compile()(x), np.roll(x, 1) + np.roll(x, -1))


def test_a_hermitian_derivative_is_the_same_from_one_array_or_the_next(gradient, arrays):
    a, x = arrays
    larger = np.eye(5) * 2.0
    assert np.allclose(gradient(larger, np.ones(5)), 4 * np.ones(5))
    assert np.allclose(gradient(a, x), 2 * a @ x)


def test_an_entry_is_an_index_like_any_other():
    assert np.array_equal(cd.grad("(x::RV) -> x(0)^2").compile()(np.array([3.0, 5.0])), [6, 0])


def test_scalars_are_scalars():
    f = cd.grad("(a::R, x::RV) -> a^2 * sum(i, x(i)^2)").compile()
    by_a, by_x = f(2.0, np.ones(3))
    assert (by_a, by_x.tolist()) == (12.0, [8, 8, 8])


# --- arrays that do not -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda a, x: (a, x[:2]), "slot 1 of x has 2, but slot 1 of A has 3"),
        (lambda a, x: (a[:, :2], x), "slot 2 of A has 2, but slot 1 of A has 3"),
        (lambda a, x: (a, a), "x has 1 index, but the array has 2 axes"),
        (lambda a, x: (a, 1.0), "x has 1 index"),
        (lambda a, x: (a + 1j * np.eye(3), x), "A does not have its declared symmetry ((2, 1), :conj)"),
        (lambda a, x: (None, x), "A is a NoneType, not an array"),
        (lambda a, x: ([[1, 2], [3]], x), "A is not an array"),
        (lambda a, x: (np.full((3, 3), "a"), x), "A must contain numbers"),
        (lambda a, x: (a,), "is not given x"),
        (lambda a, x: (), "is not given A, x"),
        (lambda a, x: (a, x, x), "takes 2 arguments, and 3 are given"),
    ],
)
def test_arrays_that_do_not_fit_are_named(gradient, arrays, change, message):
    with pytest.raises(ArrayError) as error:
        gradient(*change(*arrays))
    assert message in str(error.value)


@pytest.mark.parametrize("named, message", [({"y": 1}, "no argument called y"), ({"x": 1}, "x is given twice")])
def test_names_that_do_not_fit_are_named(gradient, arrays, named, message):
    with pytest.raises(ArrayError, match=message):
        gradient(*arrays, **named)


def test_a_complex_array_is_no_real_one(arrays):
    with pytest.raises(ArrayError, match="x is declared real, but the array is complex"):
        cd.grad(REAL_QUADRATIC).compile()(np.eye(3), arrays[1])


@pytest.mark.parametrize(
    "w, x, message",
    [
        (np.ones(4), np.ones(4), "cannot have 4 values"),
        (np.zeros(0), np.zeros(0), "cannot have 0 values"),
        (np.array([1.0, 2, 3]), np.ones(3), "does not have its declared symmetry ((1,), :ineg)"),
        (np.array([1.0, 2, 1]), np.ones(5), "slot 1 of x has 5, but slot 1 of w has 3"),
    ],
)
def test_arrays_of_a_symmetric_domain_are_odd_and_even_functions_are_even(w, x, message):
    with pytest.raises(ArrayError) as error:
        cd.grad(WEIGHTED).compile()(w, x)
    assert message in str(error.value)


def test_a_symmetric_domain_is_laid_out_from_minus_m():
    assert np.array_equal(cd.grad(WEIGHTED).compile()([1, 2, 1], [1, 2, 3]), [2, 8, 6])


def test_data_are_taken_as_they_are_where_no_check_is_asked_for():
    f = cd.grad(REAL_QUADRATIC).compile(check=False)
    assert np.array_equal(f(np.array([[0.0, 1], [0, 0]]), np.array([0.0, 1])), [2, 0])


def test_hartree_fock_refuses_integrals_and_orbitals_of_different_bases():
    text = "(J::(N, N, N, N) -> C) -> (C::CM) -> sum((i, p, q), C(p, i)' * C(q, i) * J(p, q, p, q))"
    with pytest.raises(ArrayError, match=r"sizes disagree: slot . of \w has 4, but slot . of \w has 3"):
        cd.grad(text).compile()(np.zeros((3, 3, 3, 3)), np.zeros((4, 2)))


def test_a_value_that_is_known_to_be_real_is_a_real_number():
    hermitian = cd.grad("(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))").compile(value=True)
    A, x = np.array([[2.0, 1j], [-1j, 3.0]]), np.array([1.0, 2 - 1j])
    value, _ = hermitian(A, x)
    assert np.isrealobj(value) and np.isclose(value, (x.conj() @ A @ x).real)
    general = cd.grad("(A::CM) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))").compile(value=True)
    assert np.isclose(general(1j * A, x)[0], 1j * (x.conj() @ A @ x))


@pytest.mark.parametrize("method", [cd.Derivation.plan, cd.Derivation.source, cd.Derivation.compile])
def test_options_have_one_default(method):
    """Signatures repeat the defaults of the record, so that editors show them."""
    defaults = {f.name: f.default for f in fields(CompileOptions)}
    taken = {p.name: p.default for p in signature(method).parameters.values() if p.name in defaults}
    assert "value" in taken and taken == {name: defaults[name] for name in taken}
    assert method is not cd.Derivation.compile or taken == defaults


def test_an_array_stands_for_its_shape_where_code_is_asked_for() -> None:
    d = cd.grad("(A::RM, B::RM) -> (x::RV) -> sum((i, j, k), A(i, j) * B(j, k) * x(k))")
    A, B = np.ones((2, 500)), np.ones((500, 3))
    assert d.source(A=A, B=B) == d.source(A=A.shape, B=B.shape)
    assert str(d.plan(A=A, B=B)) == str(d.plan(A=A.shape, B=B.shape))
