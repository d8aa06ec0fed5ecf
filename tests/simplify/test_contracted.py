"""Contractions that are squares, and terms of a sum that are equal once they are contracted."""

import pytest

import combdiff as cd


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (
            "(B::RM{m, n}, f::RV{n}) -> (a::R) -> a * sum((k, i, j), B(k, i) * f(i) * B(k, j) * f(j))",
            "sum(k, sum(i, B(k, i) * f(i))^2)",
        ),
        (
            "(B::CM{m, n}, f::CV{n}) -> (a::R) -> a * sum((k, i, j), real(B(k, i) * f(i) * B(k, j)' * f(j)'))",
            "sum(k, abs2(sum(i, B(k, i) * f(i))))",
        ),
        (
            "(S::Sym{n}, f::RV{n}) -> (a::R) -> a * sum((i, j, k), f(i) * f(k) * inv(S)(i, j) * inv(S)(j, k))",
            "sum(i, sum(j, f(j) * inv(S)(i, j))^2)",
        ),
        (
            "(B::RM{m, n}, f::RV{n}, K::Sym{n}) -> (a::RV{m}) -> "
            "sum((k, i, j, l, p), a(k) * B(k, i) * f(j) * K(i, j) * B(k, l) * K(p, l) * f(p))",
            "sum((i, j), B(k, i) * f(j) * K(i, j))^2",
        ),
    ],
)
def test_the_square_of_a_contraction_has_one_sum(program: str, expected: str) -> None:
    d = cd.grad(program)
    assert str(d).endswith(expected)
    assert d.check()


def test_the_compliance_of_a_truss_has_a_square() -> None:
    """The stiffness is symmetric as it is made, not by a declaration."""
    d = cd.grad("(B::RM{m, n}, f::RV{n}) -> (a::RV{m}) -> f' * ((B' * Diagonal(a) * B) \\ f)")
    assert d.matrix_text() == "-(B (Bᵀ diag(a) B)⁻¹ f)^∘2"
    assert d.source().count("solve(") == 1
    assert d.check()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("k -> sum((i, j), D(k, i) * D(k, j) * (f(i) * x(j) + f(j) * x(i)))", "2 * sum("),
        ("sum((i, j), exp(-(x(i) - x(j))^2) * (f(i) * x(j)^2 + f(j) * x(i)^2))", "f(i) * x(j)^2"),
        # a difference that is small stays one
        ("sum((i, j), (x(i) - x(j)) * exp(-(x(i) - x(j))^2) * (f(i) - f(j)))", "(x(i) - x(j)) * exp"),
        ("sum((i, j), D(i, j) * (f(i) * x(j) + f(j) * x(i)))", "(f(i) * x(j) + f(j) * x(i))"),
        ("sum((i, j), exp(-(x(i) - x(j))^2) * (f(i) * x(j) + 3 * f(j) * x(i)))", "4 * sum("),
    ],
)
def test_terms_that_are_equal_once_contracted_are_one(body: str, expected: str) -> None:
    d = cd.simplified(f"(f::RV{{n}}, D::RM{{n, n}}, x::RV{{n}}) -> {body}")
    assert expected in str(d)
    assert d.check()


def test_the_derivative_of_a_form_that_is_read_twice_has_no_term_twice() -> None:
    d = cd.grad(
        "(B::RM{m, n}, f::RV{n}, D::RM{m, n}) -> (a::RV{m}) -> begin K = D' * Diagonal(a) * D; "
        "sum(a .* (B * (K * f)).^2) end"
    )
    assert d.matrix_text().endswith("v = B K f\nv^∘2 + 2 (D Bᵀ (a ∘ v)) ∘ (D f)")
    assert d.check()


def test_an_explanation_names_terms_that_are_equal_once_contracted() -> None:
    d = cd.simplified("(S::Sym, a::RV, b::RV) -> sum((i, j), exp(S(i, j)) * (a(i) * b(j) + a(j) * b(i)))")
    one, other = "sum((i, j), a(i) * b(j) * exp(S(i, j)))", "sum((i, j), a(j) * b(i) * exp(S(i, j)))"
    assert any(f"{other} equals {one} by S(i, j) = S(j, i)" in str(step) for step in d.steps)
