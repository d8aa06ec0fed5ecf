"""Sizes with names, `RM{M, K}`: slots of one size have one range; what disagrees is told with both places."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

import combdiff as cd
from combdiff.errors import ArrayError, LanguageError
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.language.printing.anchors import domains_of
from combdiff.language.printing.printer import program_text
from combdiff.terms.terms import Lam, Term, alpha_equal
from combdiff.terms.types import HERMITIAN, SYMMETRIC, Domain, Map
from tests.promises import assert_libraries_agree

M, K = Domain("M", sized=True), Domain("K", sized=True)


def read(text: str) -> Term:
    return infer(parse(text))


def params(term: Term) -> dict[str, list[Domain]]:
    found: dict[str, list[Domain]] = {}
    while isinstance(term, Lam):
        found |= {p.name: domains_of(p.kind) for p in term.params if isinstance(p.kind, Map)}
        term = term.body
    return found


def failure(text: str) -> LanguageError:
    with pytest.raises(LanguageError) as caught:
        read(text)
    assert caught.value.remedy and "^" in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("kind", "domains", "symmetries"),
    [
        ("RV{M}", [M], ()),
        ("CV{M}", [M], ()),
        ("RM{M, K}", [M, K], ()),
        ("CM{M, M}", [M, M], ()),
        ("Sym{M}", [M, M], (SYMMETRIC,)),
        ("Her{M}", [M, M], (HERMITIAN,)),
        ("(N{M}, N, N{K}) -> R", [M, Domain("x.2"), K], ()),
    ],
)
def test_a_size_names_the_range_of_its_slots(kind, domains, symmetries):
    term = read(f"(x::{kind}) -> 1")
    assert params(term) == {"x": domains}
    assert term.params[0].kind.symmetries == symmetries


def test_slots_of_one_size_have_one_range_though_no_index_joins_them():
    assert params(read("(x::RV{M}, A::RM{K, M}) -> sum(i, x(i))")) == {"x": [M], "A": [K, M]}


def test_a_slot_without_a_size_takes_that_of_its_index():
    assert params(read("(x::RV{M}, y::RV) -> sum(i, x(i) * y(i))")) == {"x": [M], "y": [M]}
    assert params(read("(y::RV, x::RV{M}) -> sum(i, y(i) * x(i))")) == {"x": [M], "y": [M]}


def test_a_space_names_sizes_in_its_type():
    text = "@space T begin type = (N{M}, N{K}) -> R end\n(A::T, x::RV{M}) -> sum((i, j), A(i, j) * x(i))"
    assert params(read(text)) == {"A": [M, K], "x": [M]}
    assert program_text(read(text)).startswith("@space T begin\n  type = (N{M}, N{K}) -> R\nend\n")


def test_a_symmetry_joins_a_slot_with_one_of_a_named_size():
    space = "@space T begin type = (N{M}, N) -> R; symmetries = (((2, 1), :id),) end\n"
    assert params(read(space + "(A::T) -> 1")) == {"A": [M, M]}


def test_a_size_and_a_domain_of_one_name_are_two_ranges():
    text = "@domain M begin base = I end\n(x::RV{M}) -> sum((i, j::M), x(i))"
    assert "@domain M" in program_text(read(text)) and "RV{M}" in program_text(read(text))
    assert alpha_equal(read(program_text(read(text))), read(text))


PROGRAMS = [
    "(x::RV{M}) -> M",
    "(A::RM{M, K}, x::RV{K}) -> (y::RV{M}) -> sum((i, j), y(i) * A(i, j) * x(j))",
    "(A::Her{M}, x::CV{M}) -> sum((i, j), x(i)' * A(i, j) * x(j))",
    "(f::(R, N{M}) -> R, x::R, y::RV{M}) -> sum(i, f(x, i) * y(i))",
    "(A::(N{M}, N) -> R) -> sum((i, j), A(i, j))",
    "(x::RV{M}, A::(N{M}, N) -> R) -> sum((i, j), A(i, j)) + x(0)",
    "(A::RM{i, K}) -> (x::RV{i}) -> sum((i, j), A(i, j) * x(i))",
]


@pytest.mark.parametrize("text", PROGRAMS)
def test_sizes_are_printed_and_read_back(text):
    term = read(text)
    again = read(program_text(term))
    assert params(again) == params(term)
    assert alpha_equal(again, term)
    assert program_text(again) == program_text(term)


@pytest.mark.parametrize("text", PROGRAMS[:5])
def test_a_program_with_sizes_is_printed_as_it_was_written(text):
    # a matrix with sizes has a name of its own only where both are named
    assert program_text(read(text)) == text


def test_a_lost_range_takes_a_name_that_no_size_has():
    d = cd.grad("(x::RV{n}) -> (y::RV) -> sum((i, j), y(i) * x(j)^0)")
    assert str(d) == "(x::RV{n}) -> (y::RV{m}) -> (i::N{m}) -> n"


def test_the_number_of_entries_is_in_the_gradient_and_in_its_code():
    d = cd.grad("(x::RV{M}) -> sum((i, j::N{M}), x(i)^2)")
    np.testing.assert_allclose(d.compile("numpy")(np.array([1.0, 2.0, 3.0])), [6.0, 12.0, 18.0])
    assert str(d) == "(x::RV{M}) -> i -> 2 * M * x(i)"
    assert d.check()


def test_code_calls_its_sizes_by_their_names():
    source = cd.grad("(A::RM{rows, K}) -> (x::RV{K}) -> sum((i, j), A(i, j) * x(j))").source("numpy")
    assert "A: real array (rows, K)" in source and "x: real array (K,)" in source


def test_arrays_that_disagree_are_told_with_both_places():
    f = cd.grad("(A::RM{M, K}) -> (x::RV{K}) -> sum(i, x(i)^2) + A(0, 0)").compile("numpy")
    with pytest.raises(ArrayError, match=r"slot 1 of x has 2, but slot 2 of A has 3, .* K"):
        f(np.ones((4, 3)), np.ones(2))


def test_two_sizes_of_one_index_are_told_with_both_places():
    error = failure("(A::RM{M, K},\n x::RV{M}) -> sum((i, j),\n x(i) * A(j, i))")
    assert "index i ranges over N{M}, but slot 2 of A over N{K}" in error.message
    assert error.span is not None and error.span.line == 3
    assert error.also is not None and error.also[0] == "slot 1 of x is N{M} here"
    assert (error.also[1].line, error.also[1].column) == (2, 8)


def test_an_index_of_a_named_size_in_a_slot_of_another_is_told_with_both_places():
    error = failure("(x::RV{M}, y::RV{K}) -> sum(i::N{M}, y(i))")
    assert "ranges over N{M}, but slot 1 of y over N{K}" in error.message
    assert error.also is not None and error.also[0] == "index i is N{M} here"


WRONG = {
    "one size for two": ("(x::RM{M}) -> 1", "1 size for RM, which has 2", 5),
    "two sizes for one": ("(x::RV{M, K}) -> 1", "2 sizes for RV, which has 1", 5),
    "two sizes of Her": ("(x::Her{M, K}) -> 1", "2 sizes for Her, which has 1", 5),
    "a number": ("(x::R{M}) -> 1", "R takes no sizes", 5),
    "an index type": ("(x::RV{M}) -> sum(i::I{M}, x(i))", "I takes no sizes", 22),
    "a function": ("(f::RF{M}) -> 1", "RF takes no sizes", 5),
    "a domain": ("@domain Z begin periodic = true end\n(x::(Z{M}) -> R) -> 1", "Z takes no sizes", 6),
    "a space": ("@space T begin type = (N,) -> R end\n(x::T{M}) -> 1", "T takes no sizes", 5),
    "a size that no slot has": ("(x::RV{M}) -> sum(i::N{K}, 1)", "no parameter has a slot of the size K", 24),
    "a size in an unused space": (
        "@space T begin type = (N{M},) -> R end\n(x::R) -> sum(i::N{M}, x)",
        "no parameter has a slot of the size M",
        20,
    ),
    "a declared domain": (
        "@domain Z begin periodic = true end\n(x::RV{M}, y::(Z) -> R) -> sum(i, x(i) * y(i))",
        "ranges over N{M}, but slot 1 of y over the domain Z",
        44,
    ),
    "a change of sign": (
        "@space T begin type = (N{M},) -> R; symmetries = (((1,), :ineg),) end\n(x::T) -> 1",
        "changes sign",
        51,
    ),
    "arithmetic": ("(x::RV{M}) -> sum(i, x(i + 1))", "may leave the range", 24),
    "no name": ("(x::RV{0}) -> 1", "a size is a whole number, at least 1, not 0", 8),
    "nothing": ("(x::RV{}) -> 1", "expected a n", 8),
    "not closed": ("(x::RV{M -> 1", "expected", 7),
    "closed by )": ("(x::RV{M) -> 1", "expected a closing } before this ')'", 9),
    "not opened": ("(x::RV M}) -> 1", "closes nothing|expected", 9),
    "of a value": ("(x::RV{M}) -> x{M}", "found '{'", 16),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_size_is_refused_at_its_place(name):
    text, said, column = WRONG[name]
    error = failure(text)
    assert any(word in error.message for word in said.split("|")), error
    assert error.span is not None and error.span.column == column, error


def test_a_domain_cannot_have_a_size_as_its_base():
    assert "expected I, or (I, I, I)" in failure("@domain Z begin base = N{M} end\n1").message


# --- an index of another size, which a condition keeps in range -------------------------------------------------------

KEPT: dict[str, Callable[..., float]] = {
    "sum(i::N{m}, where(i < n, x(i)^2))": lambda y, x: (x[: len(y)] ** 2).sum(),
    "sum(i, where(i < n, y(i) * x(i)^2))": lambda y, x: sum(b * a**2 for b, a in zip(y, x, strict=False)),
    "sum(i::N{m}, i < n, log(x(i)) * y(i)) + sum(i, n <= i, y(i)^2)": lambda y, x: (
        sum(b * np.log(a) for b, a in zip(y, x, strict=False)) + (y[len(x) :] ** 2).sum()
    ),
    "maximum(i::N{m}, i < n, y(i) * x(i))^2": lambda y, x: max(b * a for b, a in zip(y, x, strict=False)) ** 2,
    "sum(i::N{m}, i + 1 < n, y(i) * x(i) * x(i + 1)^2)": lambda y, x: sum(
        b * a * c**2 for b, a, c in zip(y, x, x[1:], strict=False)
    ),
    "sum((i::N{m}, j::N{m}), i < n and j < n, y(i) * x(i) * sin(x(j)))": lambda y, x: (
        sum(b * a for b, a in zip(y, x, strict=False)) * np.sin(x[: len(y)]).sum()
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("objective", KEPT)
def test_a_condition_keeps_an_index_of_another_size_in_range(objective: str) -> None:
    d = cd.grad(f"(y::RV{{m}}) -> (x::RV{{n}}) -> {objective}")
    assert d.check()
    assert program_text(read(str(d))) == program_text(d.term)
    f = d.compile(value=True)
    for m, n in product((1, 2, 3, 5, 7), repeat=2):
        y, x = (np.random.default_rng(m * n).uniform(0.5, 2, size) for size in (m, n))
        value, gradient = f(y, x)
        own, step = KEPT[objective], 1e-6 * np.eye(n)
        np.testing.assert_allclose(value, own(y, x), rtol=1e-12)
        slopes = [(own(y, x + h) - own(y, x - h)) / 2e-6 for h in step]
        np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["jax", "torch", "dask"])
@pytest.mark.parametrize("objective", KEPT)
def test_the_libraries_keep_an_index_of_another_size_in_range(objective: str, backend: str) -> None:
    d = cd.grad(f"(y::RV{{m}}) -> (x::RV{{n}}) -> {objective}")
    for m, n in ((3, 5), (5, 3)):
        given = [np.random.default_rng(1).uniform(0.5, 2, size) for size in (m, n)]
        assert_libraries_agree(d, backend, given)


@pytest.mark.parametrize("condition", ["i <= n", "0 <= i", "i < m"])
def test_a_condition_that_does_not_keep_an_index_in_range(condition: str) -> None:
    with pytest.raises(cd.LanguageError, match="i may leave the range of slot 1 of x"):
        cd.grad(f"(y::RV{{m}}) -> (x::RV{{n}}) -> sum(i::N{{m}}, {condition}, y(i) * x(i))")


# --- an entry of an array of integers, which a condition keeps in the range of another size ---------------------------

ENTRIES: dict[str, Callable[..., float]] = {
    "sum(i, where(J(i) < n, x(J(i))^2, 3))": lambda J, x: sum(x[j] ** 2 if j < len(x) else 3 for j in J),
    "sum(i, J(i) < n, J(i) * exp(x(J(i))) * x(0))": lambda J, x: sum(j * np.exp(x[j]) * x[0] for j in J if j < len(x)),
    "begin f = k -> sin(x(k)) ; sum(i, where(J(i) < n, f(J(i)), 1) - where(1 <= J(i) < n + 1, f(J(i) - 1))) end": (
        lambda J, x: sum((np.sin(x[j]) if j < len(x) else 1) - (np.sin(x[j - 1]) if 1 <= j <= len(x) else 0) for j in J)
    ),
    "where(argmax(i, J(i)) < n, x(argmax(i, J(i)))^2)": lambda J, x: x[J.argmax()] ** 2 if J.argmax() < len(x) else 0,
}


@pytest.mark.slow
@pytest.mark.parametrize("objective", ENTRIES)
def test_a_condition_keeps_an_entry_of_another_size_in_range(objective: str) -> None:
    d = cd.grad(f"(J::(N{{p}}) -> N{{m}}) -> (x::RV{{n}}) -> {objective}")
    assert d.check()
    assert program_text(read(str(d))) == program_text(d.term)
    f = d.compile(value=True)
    for p, n in product((1, 2, 5), repeat=2):
        rng = np.random.default_rng(p * n)
        J, x = rng.integers(0, 5, p), rng.uniform(0.5, 2, n)
        value, gradient = f(J, x)
        own, step = ENTRIES[objective], 1e-6 * np.eye(n)
        np.testing.assert_allclose(value, own(J, x), rtol=1e-12)
        slopes = [(own(J, x + h) - own(J, x - h)) / 2e-6 for h in step]
        np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("condition", ["J(i) <= n", "0 <= J(i)", "i < n"])
def test_a_condition_that_does_not_keep_an_entry_in_range(condition: str) -> None:
    with pytest.raises(cd.LanguageError, match=r"J\(i\) may leave the range of slot 1 of x"):
        cd.grad(f"(J::(N{{p}}) -> N{{m}}) -> (x::RV{{n}}) -> sum(i, {condition}, x(J(i)))")


# --- an index that is called as a size -------------------------------------------------------------------------------

HIDING = {
    "of a product without indices": (
        "(X::RM{T, d}) -> (W::RM{d, k}) -> begin Q = X * W ; sum((t, c), t <= c, Q(t, c)^2 / sqrt(k)) end"
    ),
    "of the program": "(x::RV{k}) -> begin s = sum(a, x(a)^2) / k ; sum(k, exp(s * x(k))) end",
    "beside a loop": (
        "(x::RV{T}) -> begin h = (v::R) -> iterate((s, t) -> sin(s) * x(t), v, T) ; sum(T, h(x(T)) * x(T)) end"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("program", HIDING)
def test_no_index_of_a_result_hides_a_size_that_is_a_number_there(program: str) -> None:
    d = cd.grad(HIDING[program])
    assert d.check()
    assert not re.search(r"sum\(\w+(::N\{\w+\})?, 1\)", f"{d} {d.matrix_text()}")
