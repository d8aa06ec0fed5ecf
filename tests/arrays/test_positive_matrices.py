"""Matrices that are positive definite, declared or by what they are made of: one factor of Cholesky for all uses."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays import ops
from combdiff.derivation import Derivation
from combdiff.errors import ArrayError, LanguageError, UnsupportedError
from tests.emit.array_libraries import Numbers, library

__all__ = ["library"]

DECLARED = "(y::RV) -> (K::SPD) -> logdet(K) + y' * (K \\ y)"
COMPLEX = "(y::CV) -> (K::HPD) -> real(logdet(K)) + real(y' * (K \\ y)) + real(det(K))"
KERNEL = """(y::RV{n}, D::Sym{n}) -> (l::R, s::R) -> begin
  K::SPD = (i, j) -> l^2 * exp(-D(i, j)) + delta(i, j, s^2)
  logdet(K) + y' * (K \\ y)
end"""
GRAM = "(y::CV{n}, X::CM{n, d}) -> (s::R) -> real(logdet(s^2 * X * X' + I)) + real(y' * ((s^2 * X * X' + I) \\ y))"
WEIGHTED = "(S::SPD, b::RV{m}) -> (C::RM{n, m}) -> b' * ((C' * S * C) \\ b)"
NORMAL = "(X::RM, y::RV) -> (c::RV) -> norm((X' * X) \\ (X' * y) - c)^2 + tr(inv(X' * X))"
FACTOR = """(y::RV{n}) -> (K::SPD{n}) -> begin
  L = cholesky(K)
  y' * (K \\ y) + sum(log.(diag(L))) + det(L) + tr(inv(L))
end"""
LU = "(b::CV) -> (A::CM) -> abs2(det(A)) + real(b' * (A \\ b)) + real(logdet(A)) + logabsdet(A) + real(tr(A \\ A'))"
POSITIVE = {
    "declared": DECLARED,
    "complex": COMPLEX,
    "kernel": KERNEL,
    "gram": GRAM,
    "weighted": WEIGHTED,
    "normal": NORMAL,
    "factor": FACTOR,
}


def factorisations(d: Derivation, **options: object) -> list[str]:
    """What plans factorise or invert without a factor that is there."""
    found = []
    for s in d.plan(**options).steps:
        of_factors = bool(s.operands) and isinstance(s.operands[0].op, ops.Factors)
        if isinstance(s.op, ops.Factors):
            found.append("Cholesky" if s.op.positive else "LU")
        elif isinstance(s.op, ops.OfMatrices) and s.op.kind in {*ops.FACTORED, "cholesky"} and not of_factors:
            found.append(s.op.kind)
        elif isinstance(s.op, ops.Solve) and not (of_factors or s.op.triangular):
            found.append("solve")
    return found


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["declared", "complex", "kernel", "gram", "weighted", "normal"])
def test_value_and_gradient_take_one_factor_of_cholesky(name: str) -> None:
    d = cd.grad(POSITIVE[name])
    assert [f for f in factorisations(d, value=True) if f != "det"] == ["Cholesky"]
    assert "Cholesky" in str(d.plan(value=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", POSITIVE)
def test_derivatives_are_right(name: str) -> None:
    assert cd.grad(POSITIVE[name]).check()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["declared", "kernel", "gram"])
def test_second_derivatives_are_right_with_one_factor(name: str) -> None:
    d = cd.hvp(POSITIVE[name])
    assert factorisations(d) == ["Cholesky"]
    assert d.check()


@pytest.mark.slow
def test_the_factor_of_a_sum_is_not_that_of_a_term() -> None:
    d = cd.simplified("(K::HPD) -> real(logdet(inv(K))) + real(sum(log.(diag(cholesky(K + I)))))")
    K = np.array([[3.0, 1j], [-1j, 2.0]])
    L = np.linalg.cholesky(K + np.eye(2))
    assert np.isclose(d.compile()(K), -np.log(5.0) + np.log(np.diag(L).real).sum())
    d = cd.simplified("(K::SPD, b::RV) -> b' * (K \\ b) + sum(cholesky(3 * K / 2)) + sum(cholesky(K))")
    K, b = K.real, np.array([1.0, 2.0])
    chol = np.linalg.cholesky
    assert np.isclose(d.compile()(K, b), b @ np.linalg.solve(K, b) + (1 + 1.5**0.5) * chol(K).sum())


def test_uses_of_any_matrix_share_its_lu_factors() -> None:
    d = cd.simplified(LU)
    assert factorisations(d) == ["LU"]
    assert factorisations(cd.simplified("(A::RM) -> det(A) + logabsdet(A)")) == ["det", "logabsdet"]


@pytest.mark.sampled
@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 7])
def test_values_from_lu_factors_are_those_of_numpy(n: int) -> None:
    rng = np.random.default_rng(n)
    A = rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n))
    b = rng.standard_normal(n) + 0j
    sign, size = np.linalg.slogdet(A)
    x = np.linalg.solve(A, np.column_stack([b, A.conj().T]))
    expected = abs(np.linalg.det(A)) ** 2 + (b @ x[:, 0]).real + 2 * size + np.trace(x[:, 1:]).real
    assert np.isclose(cd.simplified(LU).compile()(b, A), expected) and abs(abs(sign) - 1) < 1e-12
    real = cd.simplified("(b::RV) -> (A::RM) -> det(A) + b' * (A \\ b) + logdet(A)").compile()
    for B in (A.real, A.real[::-1]):
        with np.errstate(invalid="ignore"):
            found = real(b.real, B)
            whole = np.linalg.det(B) + b.real @ np.linalg.solve(B, b.real) + np.log(np.linalg.det(B))
        assert np.allclose(found, whole, equal_nan=True)


@pytest.mark.sampled
@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 7])
def test_values_and_gradients_are_those_of_formulas(n: int) -> None:
    rng = np.random.default_rng(n)
    B = rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n))
    K = B @ B.conj().T + np.eye(n)
    y = rng.standard_normal(n) + 1j * rng.standard_normal(n)
    value, gradient = cd.grad(COMPLEX).compile(value=True)(y, K)
    v = np.linalg.solve(K, y)
    determinant = np.linalg.det(K).real
    assert np.isclose(value, np.log(determinant) + np.vdot(y, v).real + determinant)
    assert np.allclose(gradient, (1 + determinant) * np.linalg.inv(K) - np.outer(v, v.conj()))


@pytest.mark.slow
@pytest.mark.parametrize("text", [DECLARED, DECLARED.replace("SPD", "RM"), COMPLEX, COMPLEX.replace("HPD", "CM")])
def test_the_libraries_agree(text: str, library: Numbers) -> None:
    rng = np.random.default_rng(3)
    off = 1j * rng.standard_normal((5, 4)) if "CV" in text else np.zeros((5, 4))
    y, *B = rng.standard_normal((5, 4)) + off if "CV" in text else rng.standard_normal((5, 4))
    K = np.array(B) @ np.array(B).conj().T + np.eye(4)
    d = cd.grad(text)
    if library.name == "dask":
        with pytest.raises(UnsupportedError, match="does not support for dask"):
            d.source("dask")
        return
    found = d.compile(library.name, value=True)(library.to(y), library.to(K))
    for f, expected in zip(found, d.compile(value=True)(y, K), strict=True):
        np.testing.assert_allclose(library.back(f), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_a_matrix_that_is_not_positive_definite_is_named_with_its_step() -> None:
    f = cd.grad(DECLARED).compile(value=True)
    said = r"K is not positive definite, in the step t1 = cholesky\(K, 'K'\)"
    with pytest.raises(ArrayError, match=said):
        f(np.ones(2), np.array([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(ArrayError, match="K is not positive definite"):
        cd.grad(KERNEL).compile()(np.ones(2), np.eye(2) * 5, 1.0, 0.0)


@pytest.mark.sampled
@pytest.mark.parametrize("text", ["(b::RV) -> (A::RM) -> b' * (A \\ b)", LU.replace("::C", "::R"), DECLARED])
def test_a_singular_matrix_is_an_error_that_shows_its_step(text: str) -> None:
    with pytest.raises(ArrayError, match=r"(not positive definite|singular matrix).*, in the step .*[AK]"):
        cd.grad(text).compile(value=True)(np.ones(2), np.ones((2, 2)))


@pytest.mark.slow
def test_declarations_are_printed_and_read_back() -> None:
    for text in (DECLARED, COMPLEX, KERNEL):
        printed = str(cd.grad(text))
        assert "SPD" in printed or "HPD" in printed
        assert str(cd.simplified(printed)) == printed
    text = """@space P begin
  type = (N, N) -> R
  definite = true
  symmetries = (((2, 1), :id),)
end
(K::P) -> logdet(K)"""
    assert "definite = true" in str(cd.grad(text))
    assert factorisations(cd.grad(text), value=True) == ["Cholesky"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("(D::RM) -> (s::R) -> begin\n K::SPD = s * D\n logdet(K)\nend", "symmetric or Hermitian by what it is made"),
        ("(D::Sym) -> (s::R) -> begin\n K::Sym = s * D\n logdet(K)\nend", "the type of a definition is that of"),
        ("(D::Sym) -> begin\n K::SPD = D\n logdet(K)\nend", "K is another name of a matrix, and cannot be declared"),
        ("(D::Her) -> (s::R) -> begin\n K::SPD = s * D\n real(logdet(K))\nend", "real"),
        ("(D::RV) -> begin\n K::SPD = 2 * D\n sum(K)\nend", "ind"),
        ("@space P begin type = (N, N) -> R; definite = true end\n(K::P) -> logdet(K)", "not declared to be symmetric"),
    ],
)
def test_what_cannot_be_definite_is_refused(text: str, said: str) -> None:
    with pytest.raises(LanguageError, match=said):
        cd.grad(text)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("matrix", "definite"),
    [
        ("B * B' + I", True),
        ("B' * B + K", True),
        ("B * K * B' + s^2 * I", True),
        ("B * (B' * K * B) * B' + K", True),
        ("B * (B' * K * B) * B", False),
        ("inv(K + I) + I", True),
        ("B * B'", True),
        ("B * B' - I", False),
        ("B + B'", False),
        ("s * K", False),
        ("B * B", False),
        ("K * K", True),
        ("K - B * B'", False),
    ],
)
def test_a_matrix_is_positive_by_what_it_is_made_of(matrix: str, definite: bool) -> None:
    d = cd.simplified(f"(B::RM{{n, n}}, K::SPD{{n}}, s::R, b::RV{{n}}) -> b' * (({matrix}) \\ b)")
    assert ("Cholesky" in factorisations(d)) == definite
    rng = np.random.default_rng(0)
    B, b = rng.standard_normal((3, 3)), rng.standard_normal(3)
    K = B.T @ B + np.eye(3)
    M = eval(matrix.replace("'", ".T").replace("*", "@").replace("s^2 @ I", "4 * I").replace("s @ K", "2 * K"),
             {"B": B, "K": K, "I": np.eye(3), "inv": np.linalg.inv})  # fmt: skip
    assert np.isclose(d.compile()(B, K, 2.0, b), b @ np.linalg.solve(M, b))
