"""Sums and products of matrices as one shortens them by hand: common factors, inverses, powers of numbers."""

from __future__ import annotations

import re

import pytest

import combdiff as cd
from combdiff.notation.matrix.expr import Conjugate, Function, Leaf, MatrixExpr, Norm, Reciprocal, raised
from combdiff.notation.matrix.factors import gathered
from combdiff.terms.terms import fresh
from combdiff.terms.types import COMPLEX, REAL, Domain, Index, Map

LOEWDIN = """Z = Cᵀ S C
X = C sqrtm(Z)⁻¹
X_bar = 2 S X
Q = …
X_bar sqrtm(Z)⁻¹ + S C (Q + Qᵀ)"""
SHORT = {
    # factors that terms share
    "(A::RM) -> (x::RV) -> x' * A * x": "(A + Aᵀ) x",
    "(A::RM, b::RV) -> (x::RV) -> x' * A * x + b' * x": "(A + Aᵀ) x + b",
    "(A::RM, c::R) -> (x::RV) -> c * x' * A * x / 2": "1/2 c (A + Aᵀ) x",
    "(b::RV, c::RV) -> (X::RM) -> b' * X' * X * c": "X (c bᵀ + b cᵀ)",
    "(A::RM, B::RM) -> (x::RV) -> 2 * x' * A * x - x' * B * x": "(2 A + 2 Aᵀ - B - Bᵀ) x",
    # inverses beside what they undo; of a product, if its factors are square
    "(A::RM{n, n}, B::RM{n, n}) -> (X::RM{n, n}) -> det(A * X * B)": "det(A X B) X⁻ᵀ",
    "(A::RM, B::RM) -> (X::RM) -> det(A * X * B)": "det(A X B) Aᵀ (A X B)⁻ᵀ Bᵀ",
    "(A::CM{n, n}) -> (X::CM{n, n}) -> real(det(A * X))": "conj(det(A X)) X⁻†",
    "(X::RM) -> log(det(inv(X)))": "-X⁻ᵀ",
    "(X::RM) -> det(inv(X))": "-det(X⁻¹) X⁻ᵀ",
    # numbers and their powers
    "(X::CM) -> abs2(det(X))": "2 abs2(det(X)) X⁻†",
    "(X::RM) -> 1 / det(X)": "-det(X)^(-1) X⁻ᵀ",
    "(c::R, A::RM) -> (s::R) -> tr(s * c * A)": "c tr(A)",
    # powers of one base are one power; functions of what is symmetric have no transposes
    "(A::RM) -> (B::RM) -> norm(inv(B * B' + I))^2": "Z = B Bᵀ + 𝐈\n-4 (Z⁻¹)^3 B",
    "(X::SPD) -> tr(inv(X)^3)": "-3 (X⁻¹)^4",
    "(S::SPD{n}) -> (C::RM{n, m}) -> begin X = C * invsqrtm(C' * S * C); tr(X' * S * X) end": LOEWDIN,
    # norms, whose derivative at 0 is 0
    "(x::RV) -> norm(x)": "‖x‖⁺ x\nwhere c⁺ = 1/c, 0⁺ = 0",
    "(c::RV) -> (x::RV) -> norm(x - c)^3": "3 ‖x - c‖ (x - c)",
    "(A::RM, y::RV) -> (x::RV) -> norm(A * x - y)": "r = A x - y\n‖r‖⁺ Aᵀ r\nwhere c⁺ = 1/c, 0⁺ = 0",
    "(c::R) -> (X::CM) -> c * norm(X)": "c ‖X‖⁺ X\nwhere s⁺ = 1/s, 0⁺ = 0",
}


@pytest.mark.sampled
@pytest.mark.parametrize("text", SHORT)
def test_matrix_form_is_short(text: str) -> None:
    # the derivative of a root has no matrix form
    assert re.sub(r"Q = .*?\n(?! )", "Q = …\n", cd.grad(text).matrix_text(), flags=re.DOTALL) == SHORT[text]


WITH_SINGULAR = (
    "(A::Sym) -> (X::RM{n, m}) -> det(X' * A * X)",
    "(A::Her) -> (X::CM{n, m}) -> det(X' * A * X)",
    "(A::CM) -> (X::CM{n, m}) -> real(det(X' * A * X)^2)",
    "(A::CM) -> (X::CM{n, m}) -> abs2(det(X' * A * X))",
)


@pytest.mark.slow
@pytest.mark.parametrize("text", WITH_SINGULAR)
def test_a_determinant_times_an_inverse_is_an_adjugate(text: str) -> None:
    """X' A X is singular if X has more columns than rows, and sizes of the check are such, too."""
    d = cd.grad(text)
    assert all(d.check(seed=seed) for seed in range(3))


def test_a_reciprocal_is_set_as_such() -> None:
    latex = cd.grad("(x::RV) -> norm(x)").latex(form="matrix")
    assert r"x \mapsto \lVert x \rVert^{+} x" in latex
    assert "c^{+} = 1/c, 0^{+} = 0" in latex


Z = Leaf(fresh("z", COMPLEX))
LENGTH = Norm(Leaf(fresh("x", Map((Index(Domain("n")),), REAL))))


@pytest.mark.parametrize(
    ("numbers", "once"),
    [
        ((Reciprocal(LENGTH), LENGTH), (Reciprocal(LENGTH), LENGTH)),
        ((Reciprocal(LENGTH), raised(LENGTH, 2)), (LENGTH,)),
        ((Reciprocal(LENGTH), raised(LENGTH, -1)), (raised(LENGTH, -2),)),
        ((raised(Reciprocal(LENGTH), 2), raised(LENGTH, 2)), (raised(Reciprocal(LENGTH), 2), raised(LENGTH, 2))),
    ],
)
def test_a_reciprocal_stays_beside_what_it_makes_0(
    numbers: tuple[MatrixExpr, ...], once: tuple[MatrixExpr, ...]
) -> None:
    """c⁺ c is 0 where c is 0, and 1 elsewhere."""
    assert gathered(numbers) == once


@pytest.mark.parametrize("numbers", [(Z, Conjugate(Z), Z), (Conjugate(Z), Z, Z), (raised(Z, 2), Conjugate(Z))])
def test_a_number_and_its_conjugate_are_gathered_in_any_order(numbers: tuple[MatrixExpr, ...]) -> None:
    assert set(gathered(numbers)) == {Z, Function("abs2", Z)}
