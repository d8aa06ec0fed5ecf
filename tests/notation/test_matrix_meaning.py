"""Matrix forms are held against their terms before they are printed: what a form is taken for, and what is noticed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings

import combdiff as cd
from combdiff.errors import CheckError
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.samples import random_value
from combdiff.notation.matrix import forms as matrix
from combdiff.notation.matrix.check import confirmed
from combdiff.notation.matrix.expr import (
    Adjoint,
    AtMost,
    Conjugate,
    Contraction,
    Diag,
    Diagonal,
    Entrywise,
    Function,
    Identity,
    Item,
    KhatriRao,
    Kronecker,
    Leaf,
    MatrixExpr,
    Named,
    Norm,
    Number,
    OfMatrix,
    Ones,
    Pi,
    Power,
    Product,
    Reciprocal,
    Scale,
    Size,
    Sum,
    Tensor,
    Trace,
    Transpose,
    Unfolding,
    Value,
    Vec,
)
from combdiff.notation.matrix.forms import forms_found
from combdiff.notation.matrix.meaning import NoMeaningError, meaning
from combdiff.notation.matrix.parts import nodes
from combdiff.simplify.contraction import egraph
from combdiff.terms.terms import MINUS_ONE, ONE, ZERO, App, Lam, Term, fresh, mul, number
from combdiff.terms.types import COMPLEX, REAL, Domain, Index, Map, Type
from combdiff.terms.types import Product as Pair
from tests.notation import test_matrix_reading as reading
from tests.notation.matrix_meaning import meaning as in_numpy
from tests.notation.test_matrix_reading import matrices, numbers, vectors
from tests.programs import PROGRAMS, WITH_FORMS, derived

LEAST_SQUARES = WITH_FORMS["least squares"][0]
N, M, K = (Index(Domain(name)) for name in ("A.1", "A.2", "B.1"))
SIZES = {N.domain: 2, M.domain: 3, K.domain: 4}


def leaf(name: str, *slots: Index, kind: Type = COMPLEX) -> Leaf:
    return Leaf(fresh(name, Map(slots, kind) if slots else kind))


a, x, y = leaf("a"), leaf("x", N), leaf("y", M)
A, B, C, S = leaf("A", N, M), leaf("B", N, M), leaf("C", M, K), leaf("S", N, N)
T, V = fresh("T", Map((N, M, K), COMPLEX)), fresh("V", Map((N, M, K, N), COMPLEX))
r, s = leaf("r", N, kind=REAL), leaf("s", N, kind=REAL)
f = fresh("f", Map((REAL, REAL), REAL))
L = fresh("L", Map((Map((N,), REAL), REAL), Pair((Map((N,), REAL), REAL))))
_rng = np.random.default_rng(2)
VALUES: dict[Term, object] = {
    v: random_value(v.kind, SIZES, _rng) for v in (T, V, *(e.var for e in (a, x, y, A, B, C, S, r, s)))
} | {f: lambda p, q: p * p - 2 * q, L: lambda v, p: (v * p + 1, p * float(v @ v))}
index = fresh("i", N)
WHOLE = Diag(Function("exp", r))

CASES: dict[str, tuple[MatrixExpr, tuple[Index, ...]]] = {
    "a": (a, ()),
    "A": (A, (N, M)),
    "number": (Number(number(2 - 1j)), ()),
    "pi": (Pi(), ()),
    "size": (Size(N.domain), ()),
    "ones": (Ones(N.domain), (N,)),
    "identity": (Identity(N.domain), (N, N)),
    "sum": (Sum((A, B)), (N, M)),
    "scale": (Scale(number(3j), (a, Norm(x)), A), (N, M)),
    "product": (Product((A, C)), (N, K)),
    "inner product": (Product((Transpose(x), x)), ()),
    "outer product": (Product((x, Transpose(y))), (N, M)),
    "entrywise": (Entrywise((A, B)), (N, M)),
    "transpose": (Transpose(A), (M, N)),
    "adjoint": (Adjoint(A), (M, N)),
    "conjugate": (Conjugate(A), (N, M)),
    "diag": (Diag(x), (N, N)),
    "diagonal": (Diagonal(S), (N,)),
    "trace": (Trace(S), ()),
    "norm of a vector": (Norm(x), ()),
    "norm of a matrix": (Power(Norm(A), Number(number(2)), entrywise=False), ()),
    "a function": (Function("exp", A), (N, M)),
    "at most": (AtMost(r, s), (N,)),
    "at most a number": (AtMost(Number(ZERO), r), (N,)),
    "power by entry": (Power(A, Number(number(3)), entrywise=True), (N, M)),
    "power of a number": (Power(a, Number(number(-2)), entrywise=False), ()),
    "power of a matrix": (Power(S, Number(number(3)), entrywise=False), (N, N)),
    "inverse of a diagonal matrix": (Power(WHOLE, Number(MINUS_ONE), entrywise=False), (N, N)),
    "inverse": (Power(S, Number(MINUS_ONE), entrywise=False), (N, N)),
    "inverse of a power": (Power(S, Number(number(-2)), entrywise=False), (N, N)),
    "determinant": (OfMatrix("det", S), ()),
    "adjugate": (OfMatrix("adjugate", S), (N, N)),
    "a determinant times an inverse": (Scale(ONE, (OfMatrix("det", S),), Power(S, Number(MINUS_ONE), False)), (N, N)),
    "reciprocal": (Reciprocal(Norm(x)), ()),
    "reciprocal of 0": (Reciprocal(Number(ZERO)), ()),
    "logarithm of a determinant": (OfMatrix("logdet", S), ()),
    "tensor": (Tensor(T, (3, 1, 2)), (M, K, N)),
    "pairs of slots": (Tensor(V, (1, 3, 2, 4)), (N, K, M, N)),
    "contraction with a vector": (Contraction(Tensor(T, (1, 3, 2)), y, 1), (N, K)),
    "contraction with a matrix": (Contraction(Tensor(V, (3, 2, 1, 4)), S, 2), (K, M)),
    "unfolding": (Product((Unfolding(T, 2), Transpose(Unfolding(T, 2)))), (M, M)),
    "Khatri-Rao": (Product((Unfolding(T, 1), KhatriRao(Transpose(A), Transpose(Product((A, C)))))), (N, N)),
    "Kronecker": (Kronecker(A, C), (N, M, M, K)),
    "vec": (Product((Vec(A), Transpose(Vec(C)))), (N, M, M, K)),
    "a name": (Named(fresh("v", Map((N,), COMPLEX)), Lam((index,), mul(index, App(x.var, (index,))))), (N,)),
    "values of numbers": (Value(f, (r, Number(number(2))), entrywise=True), (N,)),
    "an item of a value": (Item(1, Value(L, (r, Number(number(3))))), ()),
}


def kind_of(slots: tuple[Index, ...]) -> Type:
    return Map(slots, COMPLEX) if slots else COMPLEX


@pytest.mark.parametrize("name", CASES)
def test_a_node_means_what_numpy_makes_of_it(name: str) -> None:
    expr, slots = CASES[name]
    found = np.asarray(evaluate(meaning(expr, kind_of(slots)), VALUES, SIZES))
    assert found.shape == tuple(SIZES[slot.domain] for slot in slots)
    np.testing.assert_allclose(in_numpy(expr, VALUES, SIZES).reshape(found.shape), found, rtol=1e-12)


def test_every_node_is_tried() -> None:
    assert {type(expr) for case, _ in CASES.values() for expr in nodes(case)} == set(get_args(MatrixExpr))


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(matrices() | vectors() | numbers())
def test_an_expression_means_what_numpy_makes_of_it(expr: MatrixExpr) -> None:
    with np.errstate(all="ignore"):
        expected = in_numpy(expr, reading.VALUES, reading.SIZES)
        slots = tuple(reading.N for n in expected.shape if n > 1)
        if np.isfinite(expected).all() and np.abs(expected).max() < 1e30:
            found = np.asarray(evaluate(meaning(expr, kind_of(slots)), reading.VALUES, reading.SIZES))
            scale = 1e-8 * (1 + np.abs(expected).max())
            np.testing.assert_allclose(found, expected.reshape(found.shape), rtol=1e-8, atol=scale)


MISFITS = {
    "a sum of unequal shapes": (Sum((A, x)), (N, M)),
    "a product of unequal ranges": (Product((A, B)), (N, M)),
    "a row in the place of a vector": (Transpose(x), (N,)),
    "a matrix in the place of its transpose": (A, (M, N)),
    "a trace that is not square": (Trace(A), ()),
    "a diagonal that is not square": (Diagonal(A), (N,)),
    "a diagonal matrix of a row": (Diag(Transpose(x)), (N, N)),
    "a vector among numbers": (Scale(MINUS_ONE, (x,), A), (N, M)),
    "an inverse of what is not square": (Power(A, Number(MINUS_ONE), entrywise=False), (M, N)),
    "a determinant of what is not square": (OfMatrix("det", A), ()),
    "a power that is not square": (Power(A, Number(number(2)), entrywise=False), (N, M)),
    "a contraction with the wrong slots": (Contraction(Tensor(V, (1, 2, 3, 4)), A, 2), (N, M)),
    "a contraction with a row": (Contraction(Tensor(T, (1, 3, 2)), Transpose(y), 1), (N, K)),
    "a comparison of unequal shapes": (AtMost(r, Function("real", y)), (N,)),
}


@pytest.mark.parametrize("name", MISFITS)
def test_shapes_that_do_not_fit_have_no_meaning(name: str) -> None:
    expr, slots = MISFITS[name]
    with pytest.raises(NoMeaningError):
        meaning(expr, kind_of(slots))


def test_ranges_of_equal_size_are_not_exchanged() -> None:
    square = fresh("Q", Map((N, M), REAL))
    with pytest.raises(NoMeaningError):
        meaning(Transpose(Leaf(square)), square.kind)


# --- what is noticed --------------------------------------------------------------------------------------------------


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """Break a law of `rules/matrix.egg`: a text in it is replaced by another."""

    def broken(old: str, new: str) -> None:
        right = egraph.resource

        def resource(folder: str, name: str) -> str:
            text = right(folder, name)
            if name == "matrix.egg":
                assert old in text
                return text.replace(old, new)
            return text

        monkeypatch.setattr(egraph, "resource", resource)
        egraph._idle.clear()

    yield broken
    monkeypatch.undo()
    egraph._idle.clear()


@pytest.mark.slow
def test_a_wrong_law_does_not_print(broken) -> None:
    d = cd.grad(LEAST_SQUARES)
    assert d.matrix_text() == "2 Aᵀ (A x - b)"
    broken("(union (Span m q p) (Transpose a))", "(union (Span m q p) a)")
    for printing in (d.matrix_text, lambda: d.latex(form="matrix")):
        with pytest.raises(CheckError, match=r"matrix form 2 A \(A x - b\) is not the result") as error:
            printing()
        assert "index form" in error.value.remedy
    assert d.latex() == cd.grad(LEAST_SQUARES).latex()


@pytest.mark.slow
def test_a_wrong_law_is_a_row_of_the_check(broken) -> None:
    d = cd.grad(LEAST_SQUARES)
    assert [f.passed for f in d.check().findings if f.what == "matrix form"] == [True]
    broken("(union (Span m q p) (Transpose a))", "(union (Span m q p) a)")
    report = d.check()
    assert not report and "FAILED  matrix form" in str(report)


@pytest.mark.parametrize("scale", ["1", "10^-9", "10^12"])
def test_a_wrong_coefficient_is_noticed_at_every_scale(scale: str) -> None:
    d = cd.grad(f"(A::RM, b::RV) -> (x::RV) -> {scale} * sum(i, (sum(j, A(i, j) * x(j)) - b(i))^2)")
    ((unit, form),) = forms_found(d.term).items()
    assert confirmed({unit: form}) == {unit: form}
    with pytest.raises(CheckError):
        confirmed({unit: Scale(number(2), (), form)})


def test_a_form_in_a_function_that_is_kept_is_held_against_it(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "(A::RM) -> (x::RV) -> begin R = (v::RV) -> sum((i, j), v(i) * A(i, j) * v(j)); R(x)^2 end"
    d = cd.grad(text, keep=("R",))
    found = matrix.forms_found(d.term)
    (inner,) = (unit for unit in found if isinstance(unit.type, type(REAL)) and d.objective.params[0] not in unit.free)
    monkeypatch.setattr(matrix, "forms_found", lambda term: {**found, inner: Scale(number(2), (), found[inner])})
    with pytest.raises(CheckError):
        d.latex(form="matrix")


def test_what_cannot_be_compared_is_printed_in_index_form() -> None:
    text = "(A::RM) -> (x::RV) -> sum((i, j), x(i) * A(i, j) * x(j)) + x({})^2"
    assert "where v = " in cd.grad(text.format(1)).matrix_text()
    d = cd.grad(text.format(10**8))  # no array of a check is so long
    assert forms_found(d.term) and not confirmed(forms_found(d.term))
    assert d.matrix_text().startswith("i -> sum(j, A(i, j) * x(j))")


@pytest.mark.parametrize("function", ["lgamma", "sigmoid", "floor"])
def test_a_function_of_reals_reads_a_product_of_conjugates(function: str) -> None:
    """x̄ ∘ x is |x|² with values that are complex numbers, and A A† has such a diagonal."""
    for square in ("abs2(x(i))", "sum(j, abs2(A(i, j)))"):
        d = cd.simplified(f"(A::CM, x::CV) -> i -> {function}({square})")
        assert forms_found(d.term)
        assert d.check()


@pytest.mark.long
def test_bounds_do_not_make_a_form_too_large_to_be_compared() -> None:
    text = "@domain K begin base = I; lower = -3; upper = 10^8 end\n(x::(K) -> R) -> sum(i::K, x(i)^2)"
    assert cd.grad(text.replace("10^8", str(10**8))).matrix_text() == "2 x"


@pytest.mark.slow
@pytest.mark.parametrize("value", ["(z - x(i)) / (x(j) - x(i))", "z * x(j) / (x(j) - x(i))"])
def test_a_diagonal_matrix_reads_no_infinite_entry_of_another_row(value: str) -> None:
    """diag(v) (𝟏 xᵀ - x 𝟏ᵀ)^∘(-1) has infinite entries on its diagonal, and only there."""
    d = cd.grad(f"(z::R) -> (x::RV) -> begin P = (i, j) -> {value} ; sum((i, j), i != j, P(i, j)^2) end")
    assert "diag(" in d.matrix_text().splitlines()[0]
    assert d.check()


# --- all programs -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_form_of_a_program_is_confirmed(name: str) -> None:
    found = forms_found(derived(name).term)
    assert confirmed(found) == found


@pytest.mark.parametrize(
    "text",
    [
        "(B::RM) -> (A::RM) -> sum((i, j), A(i, j) * B(i, j))",
        "(A::RM, B::RM) -> (K::(N, N, N, N) -> R) -> sum((i, j, k, l), A(i, j) * B(k, l) * K(i, k, j, l))",
    ],
)
def test_zero_is_the_zero_of_every_shape(text: str) -> None:
    assert cd.hvp(text).matrix_text() == "0"


BOUNDED = """@domain Z begin base = I; lower = -1; upper = {} end
@domain B begin base = I; lower = -1; upper = 1 end
(x::(Z) -> R, A::(B, Z) -> R) -> (u::(B) -> R) -> sum(i::B, u(i)^2 * x(i)) + sum((i::B, j::B), u(i) * A(i, j) * u(j))"""


def test_an_index_may_range_over_a_slot_of_another_domain_with_the_same_bounds() -> None:
    d = cd.grad(BOUNDED.format(1))
    assert d.matrix_text() == "2 x ∘ u + (A + Aᵀ) u"
    assert d.check()


def test_an_index_that_ranges_over_a_part_of_a_slot_makes_no_matrix_form() -> None:
    d = cd.grad(BOUNDED.format(3))
    assert d.matrix_text().startswith("(i::B) -> 2 * x(i) * u(i) + sum(j::B, A(i, j) * u(j))")
    assert d.check()


@pytest.mark.slow
def test_what_may_be_infinite_stays_under_its_condition() -> None:
    """[1 ≤ x] ∘ 1 ⊘ sqrt(x) is 0 times no number where x is negative: there is no matrix form."""
    text = """@space T begin type = (RV) -> RV; linear = true end
(f::T) -> (x::RV) -> sum(i, f(j -> sqrt(indicator(1, x(j), x(j))))(i))"""
    d = cd.grad(text)
    assert "⊘" not in d.matrix_text() and all(d.check(seed) for seed in range(3))


@pytest.mark.sampled
@pytest.mark.parametrize(
    "repeated",
    [
        "log(sum(i::N{n}, exp(1)))",
        "norm((i::N{n}) -> a)",
        "norm((i, j::N{n}) -> x(i))",
        "logsumexp((i, j::N{n}), x(i))",
    ],
)
def test_a_reduction_counts_a_number_as_often_as_it_stands_there(repeated: str) -> None:
    d = cd.grad(f"(x::RV{{n}}) -> (a::R) -> abs2(a + {repeated})")
    assert all(d.check(seed) for seed in range(2))
