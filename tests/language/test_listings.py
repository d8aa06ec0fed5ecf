"""Vectors and matrices that list their entries: what they mean, how results are printed, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.errors import LanguageError
from combdiff.terms.listings import rows_of
from combdiff.terms.terms import ONE, ZERO, Add, App, Lam, add, delta, fresh, mul
from combdiff.terms.types import REAL, Index, Map, range_of
from tests.reading_back import assert_reads_back

ROTATION = "(a::R) -> (x::RV) -> norm([cos(a), -sin(a); sin(a), cos(a)] * x - [1, 2])^2"
CROSS = """(x::RV{3}, y::RV{3}) -> begin
  c = [x(1) * y(2) - x(2) * y(1), x(2) * y(0) - x(0) * y(2), x(0) * y(1) - x(1) * y(0)]
  c' * c
end"""
QUATERNION = """(q::RV{4}, v::RV{3}, w::RV{3}) -> begin
  R = [1 - 2 * (q(2)^2 + q(3)^2), 2 * (q(1) * q(2) - q(3) * q(0)), 2 * (q(1) * q(3) + q(2) * q(0));
       2 * (q(1) * q(2) + q(3) * q(0)), 1 - 2 * (q(1)^2 + q(3)^2), 2 * (q(2) * q(3) - q(1) * q(0));
       2 * (q(1) * q(3) - q(2) * q(0)), 2 * (q(2) * q(3) + q(1) * q(0)), 1 - 2 * (q(1)^2 + q(2)^2)]
  norm(R * v - w)^2
end"""
JONES = """(z::C) -> (p::R) -> begin
  J = [exp(im * p), 0; 0, exp(-im * p)]
  e = J * [1, z]
  abs2(e(0) + e(1))
end"""
PROGRAMS = {
    "rotation": ROTATION,
    "cross": CROSS,
    "quaternion": QUATERNION,
    "jones": JONES,
    "nested": "(a::R, b::R) -> begin; R = [[cos(a), -sin(a)], [sin(a), cos(a)]]; tr(R * [1, 0; b, 1] * R'); end",
    "determinant": "(x::R) -> det([x, 1; 1, x])",
    "index": "(x::RV{3}) -> sum([x(0), 2 * x(1); x(2), 1] .^ 2)",
    "column": "(x::R) -> [x; x^2; 3](1) * sum([x, 1])",
    "kinematics": """(q::RV{2}) -> begin
  A = [cos(q(0)), -sin(q(0)), 0; sin(q(0)), cos(q(0)), 0; 0, 0, 1]
  B = [cos(q(1)), -sin(q(1)), 1; sin(q(1)), cos(q(1)), 0; 0, 0, 1]
  p = A * B * [1, 0, 1]
  (p(0) - 1)^2 + p(1)^2
end""",
}


NORMALS = """(T::(N{f}, N{3}) -> N{v}) -> (x::RM{v, 3}) -> begin
  e = (f, c) -> x(T(f, 1), c) - x(T(f, 0), c)
  g = (f, c) -> x(T(f, 2), c) - x(T(f, 0), c)
  n = f -> [e(f, 1) * g(f, 2) - e(f, 2) * g(f, 1), e(f, 2) * g(f, 0) - e(f, 0) * g(f, 2),
            e(f, 0) * g(f, 1) - e(f, 1) * g(f, 0)]
  sum(f, norm(n(f))) / 2
end"""
VECTORS = {  # definitions that map indices to vectors or matrices
    "entries": "(x::RV{m}) -> begin; n = f -> [x(f), x(f)^2]; sum(f, exp(n(f, 0)) * n(f)(1)); end",
    "products": "(A::RM{2, 2}) -> (x::RV{m}) -> begin; n = f -> A * [x(f), x(f)^2]; sum(f, n(f)' * A * n(f)); end",
    "pairs": """(x::RM{m, 3}) -> begin
  d = (a, b) -> (c::N{3}) -> x(a, c) - x(b, c)
  sum((a, b), a != b, 1 / norm(d(a, b)) + dot(d(a, b), d(b, a)))
end""",
    "matrices": """(x::RV{m}) -> begin
  R = a -> [cos(x(a)), -sin(x(a)); sin(x(a)), 2]
  sum(a, tr(R(a) * R(a))) + sum(a, a >= 1, R(a - 1)(0, 1) * R(a, 1, 1))
end""",
    "within": """(x::RV{m}) -> begin
  n = f -> begin; y = sin(x(f)); [y, y^2]; end
  sum(f, norm(n(f))^3)
end""",
}


HEAVY = ("quaternion", "kinematics", "cross", "nested", "jones")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in HEAVY else name for name in PROGRAMS]
)
def test_derivatives_are_right_and_read_back(name: str) -> None:
    d = cd.grad(PROGRAMS[name])
    assert d.check()
    assert_reads_back(d.term)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long) if name == "kinematics" else name for name in PROGRAMS]
)
def test_second_derivatives_are_right_and_read_back(name: str) -> None:
    d = cd.hvp(PROGRAMS[name])
    assert d.check()
    assert_reads_back(d.term)


def test_rows_are_rows() -> None:
    for text in ("[1, 2, 3; 4, 5, 6]", "[[1, 2, 3], [4, 5, 6]]", "[1, 2, 3;\n 4, 5, 6;]"):
        assert np.array_equal(cd.simplified(f"(x::R) -> {text}").compile()(0.0), [[1, 2, 3], [4, 5, 6]])
    for text in ("[7, 8, 9]", "[7; 8; 9]"):
        assert np.array_equal(cd.simplified(f"(x::R) -> {text}").compile()(0.0), [7, 8, 9])
    assert np.array_equal(cd.simplified("(x::R) -> [[1, x]]").compile()(5.0), [[1, 5]])


def test_entries_may_be_indices_and_complex() -> None:
    f = cd.simplified("(x::RV{n}) -> (k::N{n}) -> [k, im * x(k)](1)").compile()
    assert np.allclose(f([1.0, 2.0]), [1j, 2j])


def test_results_are_lists() -> None:
    assert cd.grad(CROSS).result.splitlines()[2:8] == [
        "  (",
        "      [",
        "          2 * y(1) * c(2) - 2 * y(2) * c(1),",
        "          2 * y(2) * c(0) - 2 * y(0) * c(2),",
        "          2 * y(0) * c(1) - 2 * y(1) * c(0)",
        "      ],",
    ]
    assert cd.grad(PROGRAMS["index"]).result == "(x::RV{3}) -> [2 * x(0), 8 * x(1), 2 * x(2)]"


def test_a_vector_of_unknown_size_is_no_list() -> None:
    assert cd.grad("(x::RV) -> x(0) * x(1)").result.count("delta") == 2


@pytest.mark.slow
def test_formulas_have_matrices() -> None:
    latex = cd.grad(PROGRAMS["nested"]).latex(style="paper")
    assert r"R = \begin{pmatrix} \cos(a) & -\sin(a) \\ \sin(a) & \cos(a) \end{pmatrix}" in latex
    wide = cd.grad(QUATERNION).latex(style="paper")
    assert r"\frac{\partial E}{\partial q_{d}} &= \delta_{d0}" in wide  # as a column it would leave the page


def test_code_writes_entries_once() -> None:
    source = cd.grad(ROTATION).source()
    assert source.count("np.cos") == source.count("np.sin") == 1 and "tensordot" not in source


@pytest.mark.parametrize(
    "program, column, message",
    [
        ("(x::RV) -> [x, x](0)", 13, "an entry of a vector is a number, found a real tensor with 1 index"),
        ("(x::R) -> sum([1, x; 2])", 22, "row 2 of a matrix has 1 number, and row 1 has 2"),
        ("(x::R) -> sum([[1, x], 2])", 15, "some rows of a matrix are lists, and others are not"),
        ("(x::R) -> []", 12, "expected an expression, found ']'"),
        ("(x::RV{3}) -> sum([1, 2] .* x)", 29, "2"),
    ],
)
def test_messages_say_what_is_wrong(program: str, column: int, message: str) -> None:
    with pytest.raises(LanguageError) as caught:
        cd.grad(program)
    assert message in caught.value.message
    assert caught.value.span is not None and caught.value.span.column == column
    assert caught.value.remedy


def test_only_sums_of_entries_are_lists() -> None:
    i, j = (fresh(name, Index(range_of(2))) for name in "ij")
    x, f = fresh("x", REAL), fresh("f", Map((i.kind,), REAL))
    first, second = delta(i, ZERO, x), delta(i, ONE, mul(x, x))
    assert rows_of(Lam((i,), add(first, second))) == [[x, mul(x, x)]]
    assert rows_of(Lam((i,), add(first, second, App(f, (i,))))) is None
    assert rows_of(Lam((i,), Add((first, second, delta(i, ONE, x))))) is None
    assert rows_of(Lam((i,), add(first, delta(i, ONE, App(f, (i,)))))) is None
    assert rows_of(Lam((i, j), add(first, second))) is None
    assert rows_of(Lam((i,), x)) is None


def test_an_entry_that_a_list_does_not_have_there_leaves_no_trace() -> None:
    d = cd.grad("(x::RV{2}, y::R) -> begin; R = [x(0), y; -y, x(1)]; v = R * [1, 2]; v(0)^3 + v(1); end")
    assert "delta(0, 1" not in d.result and "delta(1, 0" not in d.result
    assert d.check()


@pytest.mark.parametrize("name", VECTORS)
def test_a_map_of_indices_to_vectors_is_a_tensor(name: str) -> None:
    d = cd.grad(VECTORS[name])
    assert d.check()
    assert_reads_back(d.term)
    assert_reads_back(cd.simplified(VECTORS[name]).term)


def test_vectors_keep_their_name_and_are_printed_as_lists() -> None:
    text = str(cd.grad(NORMALS))
    assert "  n = f ->\n      [\n          e(f, 1) * g(f, 2) - e(f, 2) * g(f, 1),\n" in text
    assert "  n_bar = (f, i::N{3}) ->\n" in text
    assert "  e_bar = f ->\n      [\n" in text
    assert len(text) < 1_100
    assert len(str(cd.hvp(NORMALS))) < 2_600
    rotations = "(x::RV{m}) -> begin; R = a -> [cos(x(a)), 0; 1, x(a)^2]; sum(a, det(R(a))^2); end"
    assert "  R = a -> [cos(x(a)), 0; 1, x(a)^2]\n" in str(cd.grad(rotations))


def test_the_indices_of_a_map_to_vectors_are_counted() -> None:
    with pytest.raises(LanguageError, match="n takes 1 index, and 3 are given"):
        cd.grad("(x::RV{m}) -> begin; n = f -> [x(f), x(f)^2]; sum(f, n(f, 0, 1)); end")
