"""What makes a matrix expression easier to read does not change what it means."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combdiff.meaning.samples import random_value
from combdiff.notation.matrix.expr import (
    Adjoint,
    Conjugate,
    Diag,
    Diagonal,
    Entrywise,
    Function,
    Identity,
    KhatriRao,
    Kronecker,
    Leaf,
    MatrixExpr,
    Number,
    Ones,
    Power,
    Product,
    Scale,
    Sum,
    Trace,
    Transpose,
    entrywise,
    product,
    summed,
)
from combdiff.notation.matrix.printer import algebra_latex, algebra_text
from combdiff.notation.matrix.reading import is_column, is_number, readable, transposed
from combdiff.terms.terms import Const, Term, fresh, number
from combdiff.terms.types import COMPLEX, HERMITIAN, REAL, SYMMETRIC, Domain, Index, Map
from tests.notation.matrix_meaning import meaning

N = Index(Domain("A.1"))
SIZES = {N.domain: 3}


def leaf(name: str, slots: int, kind, *symmetries) -> Leaf:
    return Leaf(fresh(name, Map((N,) * slots, kind, symmetries) if slots else kind))


x, y, z = leaf("x", 1, REAL), leaf("y", 1, REAL), leaf("z", 1, COMPLEX)
A, S, C = leaf("A", 2, REAL), leaf("S", 2, REAL, SYMMETRIC), leaf("C", 2, COMPLEX)
H, Z = leaf("H", 2, COMPLEX, HERMITIAN), leaf("Z", 2, COMPLEX, SYMMETRIC)
a = leaf("a", 0, COMPLEX)
_rng = np.random.default_rng(5)
VALUES: dict[Term, object] = {e.var: random_value(e.var.kind, SIZES, _rng) for e in (x, y, z, A, S, C, H, Z, a)}

coefficients = (Const(Fraction(2)), Const(Fraction(-1)), Const(Fraction(1, 2), Fraction(1)))


@st.composite
def matrices(draw: st.DrawFn, depth: int = 3) -> MatrixExpr:
    if not depth:
        return draw(st.sampled_from([A, S, C, H, Z, Identity(N.domain)]))
    m = draw(matrices(depth - 1))
    kind = draw(st.sampled_from(["ᵀ", "†", "*", "m m", "m† m", "sin", "scale", "diag", "x yᵀ", "+", "∘", "m n"]))
    match kind:
        case "ᵀ":
            return Transpose(m)
        case "†":
            return Adjoint(m)
        case "*":
            return Conjugate(m)
        case "m m":
            return product([m, m])
        case "m† m":
            return product([Adjoint(m), m])
        case "sin":
            return Function("sin", m)
        case "scale":
            return Scale(draw(st.sampled_from(coefficients)), (draw(numbers(depth - 1)),), m)
        case "diag":
            return Diag(draw(vectors(depth - 1)))
        case "x yᵀ":
            return product([draw(vectors(depth - 1)), Transpose(draw(vectors(depth - 1)))])
        case "+":
            return summed([m, draw(matrices(depth - 1))])
        case "∘":
            return entrywise([m, draw(matrices(depth - 1))])
        case _:
            return product([m, draw(matrices(depth - 1))])


@st.composite
def vectors(draw: st.DrawFn, depth: int = 3) -> MatrixExpr:
    if not depth:
        return draw(st.sampled_from([x, z, Ones(N.domain)]))
    v = draw(vectors(depth - 1))
    match draw(st.sampled_from(["diagonal", "*", "m v", "+", "^"])):
        case "diagonal":
            return Diagonal(draw(matrices(depth - 1)))
        case "*":
            return Conjugate(v)
        case "m v":
            return product([draw(matrices(depth - 1)), v])
        case "+":
            return summed([v, draw(vectors(depth - 1))])
        case _:
            return Power(v, Number(number(2)), entrywise=True)


@st.composite
def numbers(draw: st.DrawFn, depth: int = 3) -> MatrixExpr:
    if not depth:
        return a
    v = draw(vectors(depth - 1))
    match draw(st.sampled_from(["tr", "xᵀ y", "x† x", "sqrt"])):
        case "tr":
            return Trace(draw(matrices(depth - 1)))
        case "xᵀ y":
            return product([Transpose(v), draw(vectors(depth - 1))])
        case "x† x":
            return product([Adjoint(v), v])
        case _:
            return Function("sqrt", product([Adjoint(v), v]))


def assert_means_the_same(left: MatrixExpr, right: MatrixExpr) -> None:
    expected = meaning(left, VALUES, SIZES)
    found = meaning(right, VALUES, SIZES)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8 * (1 + np.abs(expected).max()))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(matrices() | vectors() | numbers())
def test_what_is_readable_means_the_same(expr: MatrixExpr) -> None:
    with np.errstate(all="ignore"):
        if np.isfinite(meaning(expr, VALUES, SIZES)).all() and np.abs(meaning(expr, VALUES, SIZES)).max() < 1e30:
            assert_means_the_same(expr, readable(expr))


@pytest.mark.parametrize("expr", [A, S, C, H, Z, Conjugate(C), Adjoint(C), Product((C, A)), Scale(number(2), (a,), C)])
def test_a_transpose_means_a_transpose(expr: MatrixExpr) -> None:
    assert_means_the_same(Transpose(expr), transposed(expr))


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(matrices() | vectors() | numbers())
def test_what_is_said_of_the_shape_is_so(expr: MatrixExpr) -> None:
    with np.errstate(all="ignore"):
        shape = meaning(expr, VALUES, SIZES).shape
    assert not is_column(expr) or shape == (3, 1)
    assert not is_number(expr) or shape == (1, 1)


READ = {
    "A^2": Product((A, A)),
    "(A C)^2": Product((A, C, A, C)),
    "A C A": Product((A, C, A)),
    "‖A x‖^2": Product((Transpose(x), Transpose(A), A, x)),
    "‖C z‖^2": Product((Adjoint(z), Adjoint(C), C, z)),
    "zᵀ z": Product((Transpose(z), z)),
    "‖H z‖^2": Product((Adjoint(z), H, H, z)),
    "‖C A‖^2": Trace(Product((Transpose(A), Adjoint(C), C, A))),
    "sin(C)": Transpose(Function("sin", Transpose(C))),
    "C†": Transpose(Conjugate(C)),
    "conj(C)": Transpose(Adjoint(C)),
    "A - C": Transpose(Sum((Transpose(A), Scale(number(-1), (), Transpose(C))))),
    "2 A C": Product((Scale(number(2), (), A), C)),
    "2 A ⊗ C": Kronecker(A, Scale(number(2), (), C)),
    "a A ⊙ C": KhatriRao(Scale(number(1), (a,), A), C),
    "diag(x)^(-2)": Diag(Power(x, Number(number(-2)), entrywise=True)),
    "x ⊘ z": Entrywise((x, Power(z, Number(number(-1)), entrywise=True))),
    "x ⊘ (z ∘ y^∘2)": Entrywise((x, Power(z, Number(number(-1)), True), Power(y, Number(number(-2)), True))),
    "(A ∘ C) A": Product((Entrywise((A, C)), A)),
    "2 A ∘ C - C": Sum((Scale(number(2), (), Entrywise((A, C))), Scale(number(-1), (), C))),
}


@pytest.mark.parametrize("text", READ)
def test_what_is_readable_reads_so(text: str) -> None:
    expr = readable(READ[text])
    assert algebra_text(expr) == text


def test_numbers_below_are_fractions_in_latex() -> None:
    u = Leaf(fresh("u", REAL))
    below = Power(u, Number(number(-2)), entrywise=False)
    assert algebra_latex(Scale(number(-3), (below,), Product((A, x)))) == r"-\frac{3}{u^{2}} A x"
    assert algebra_latex(Scale(number(Fraction(1, 2)), (below,), x)) == r"\frac{1}{2 u^{2}} x"
    assert algebra_latex(Scale(number(1), (below, Product((Transpose(x), x))), x)) == (
        r"\frac{x^{\mathsf{T}} x}{u^{2}} x"
    )
    assert algebra_latex(below) == r"\frac{1}{u^{2}}"
