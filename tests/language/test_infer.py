"""Types, ranges of indices, definitions and messages of `infer`: the paper's listings, and bad input of every kind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import combdiff as cd
from combdiff.errors import BudgetError, CombDiffError, LanguageError
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.meaning.evaluate import evaluate
from combdiff.terms.terms import (
    App,
    Const,
    Diff,
    Lam,
    Let,
    Mul,
    Sum,
    Term,
    Tuple,
    Var,
    alpha_equal,
    number,
    substitute,
    subterms,
)
from combdiff.terms.types import COMPLEX, HERMITIAN, REAL, SYMMETRIC, Domain, Index, Map

EXAMPLES = Path(__file__).parents[2] / "examples"
DOMAINS = """
@domain BZ begin base = I; periodic = true end
@domain X begin symmetric = true; contractable = false end
@domain Y begin base = I end
@space PV begin type = (BZ,) -> C end
@space SV begin type = (I,) -> R; symmetries = (((1,), :ineg),) end
@space XV begin type = (X,) -> R end
@space YV begin type = (Y,) -> R end
"""
LISTING_5 = """
@domain BZ begin base = I; periodic = true end
@domain X begin symmetric = true; contractable = false end
@space Mmn begin type = (N, N, BZ, BZ) -> C; symmetries = (((2, 1, 4, 3), :conj),) end
@space SV begin type = (I,) -> R; symmetries = (((1,), :ineg),) end
@space Gauge begin type = (N, N, BZ) -> C end
(S::Mmn, w::SV) -> pullback((U::Gauge) -> begin
  rho = (n::N, b::X) -> sum((k::BZ, p, q), U(p, n, k)' * S(p, q, k, k + b) * U(q, n, k + b))
  sum((n, b::X), w(b) * rho(n, b)' * rho(n, b))
end)
"""
LISTING_3 = """
(A::Sym, r::RV, p::RV, b::RV, x::RV) -> begin
  R = (x::RV) -> sum((i, j), 0.5 * x(i) * A(i, j) * x(j)) - sum(i, x(i) * b(i))
  pullback((alpha::R, beta::R) -> R((i::N) -> x(i) + alpha * (r(i) + beta * p(i))))
end
"""


def read(text: str, keep: tuple[str, ...] = ()) -> Term:
    return infer(parse(text), keep=keep)


def params(term: Term) -> dict[str, Var]:
    """All parameters of all maps of a term, by name."""
    return {p.name: p for u in subterms(term) if isinstance(u, Lam) for p in u.params}


def domains(var: Var) -> tuple[Domain | None, ...]:
    assert isinstance(var.kind, Map)
    return tuple(p.domain if isinstance(p, Index) else None for p in var.kind.params)


def message(text: str, keep: tuple[str, ...] = ()) -> CombDiffError:
    with pytest.raises(CombDiffError) as caught:
        read(text, keep)
    assert caught.value.source is not None
    return caught.value


# --- the paper's listings -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.cd")), ids=lambda path: path.stem)
def test_every_listing_has_a_type(path: Path) -> None:
    assert isinstance(read(path.read_text()).type, Map)


def test_the_four_slots_of_the_repulsion_tensor_and_the_rows_of_the_orbitals_have_one_range() -> None:
    space = "@space T begin type = (N, N, N, N) -> C; symmetries = (((2, 1, 4, 3), :conj), ((3, 4, 1, 2), :id)) end"
    text = f"""{space}
    (J::T) -> pullback((C::CM) -> sum((i, j, p, q, r, s),
        C(p, i)' * C(q, i) * C(r, j)' * C(s, j) * J(p, q, r, s)))"""
    found = params(read(text))
    rows, columns = domains(found["C"])
    assert set(domains(found["J"])) == {rows} == {Domain("J.1")}
    assert columns == Domain("C.2")
    kind = found["J"].kind
    assert isinstance(kind, Map) and kind.space == "T" and len(kind.symmetries) == 2


def test_the_wannier_spread_keeps_rho_and_gives_the_weights_the_domain_of_the_neighbours() -> None:
    found = params(term := read(LISTING_5))
    neighbours, zone = Domain("X", True, symmetric=True, contractable=False), Domain("BZ", True, periodic=True)
    assert domains(found["w"]) == (neighbours,)
    assert domains(found["S"]) == (Domain("S.1"), Domain("S.1"), zone, zone)
    assert domains(found["U"]) == (Domain("S.1"), Domain("U.2"), zone)
    ((rho, value),) = next(u for u in subterms(term) if isinstance(u, Let)).bindings
    assert rho.name == "rho" and domains(rho) == (Domain("U.2"), neighbours) and value.type == rho.kind


def test_the_conjugate_gradient_objective_is_inlined_unless_it_is_kept() -> None:
    inlined, kept = read(LISTING_3), read(LISTING_3, keep=("R",))
    assert not any(isinstance(u, Let) for u in subterms(inlined))
    (let,) = (u for u in subterms(kept) if isinstance(u, Let))
    ((unknown, value),) = let.bindings
    assert unknown.name == "R" and isinstance(value, Lam) and isinstance(let.body, Diff)
    calls = [u for u in subterms(let.body) if isinstance(u, App) and u.function == unknown]
    assert len(calls) == 1 and len(calls[0].args) == 1
    assert {d for name in "Arpbx" for d in domains(params(inlined)[name])} == {Domain("A.1")}


def test_inlining_a_function_equals_writing_its_body() -> None:
    by_hand = """(A::Sym, r::RV, p::RV, b::RV, x::RV) -> pullback((alpha::R, beta::R) ->
      sum((i, j), 0.5 * (x(i) + alpha * (r(i) + beta * p(i))) * A(i, j) * (x(j) + alpha * (r(j) + beta * p(j))))
      - sum(i, (x(i) + alpha * (r(i) + beta * p(i))) * b(i)))"""
    ours, theirs = read(LISTING_3), read(by_hand)
    assert isinstance(ours, Lam) and isinstance(theirs, Lam)
    assert [p.kind for p in ours.params] == [p.kind for p in theirs.params]
    assert alpha_equal(substitute(ours.body, dict(zip(ours.params, theirs.params, strict=True))), theirs.body)


# --- types ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "rank", "result", "symmetries"),
    [
        ("RV", 1, REAL, ()),
        ("CV", 1, COMPLEX, ()),
        ("RM", 2, REAL, ()),
        ("CM", 2, COMPLEX, ()),
        ("Sym", 2, REAL, (SYMMETRIC,)),
        ("Her", 2, COMPLEX, (HERMITIAN,)),
    ],
)
def test_a_builtin_tensor_type_has_its_rank_values_and_symmetry(
    name: str, rank: int, result: object, symmetries: tuple[object, ...]
) -> None:
    kind = params(read(f"(x::{name}) -> 1"))["x"].kind
    assert isinstance(kind, Map) and kind.space == name and kind.is_tensor
    assert (len(kind.params), kind.result, kind.symmetries) == (rank, result, symmetries)


@pytest.mark.parametrize(
    ("name", "kind"), [("RF", ((REAL,), REAL)), ("CF", ((REAL,), COMPLEX)), ("RO", ((REAL, REAL), REAL))]
)
def test_a_builtin_function_type_maps_numbers(name: str, kind: tuple[object, object]) -> None:
    found = params(read(f"(f::{name}) -> 1"))["f"].kind
    assert isinstance(found, Map) and (found.params, found.result) == kind


def test_two_slots_of_a_plain_matrix_have_two_ranges_and_those_of_a_symmetric_one_have_one() -> None:
    found = params(read("(A::RM, B::Sym) -> 1"))
    assert len(set(domains(found["A"]))) == 2 and len(set(domains(found["B"]))) == 1


def test_an_index_joins_the_slots_in_which_it_stands_bare() -> None:
    found = params(read("(A::RM, x::RV, y::RV) -> sum((i, j), A(i, j) * x(i) * y(j))"))
    assert domains(found["A"]) == (*domains(found["x"]), *domains(found["y"])) == (Domain("A.1"), Domain("A.2"))


def test_parameters_of_one_name_have_ranges_of_different_names() -> None:
    outer = read("(x::RV) -> (x::RV) -> sum(i, x(i))")
    assert isinstance(outer, Lam) and isinstance(outer.body, Lam)
    assert domains(outer.params[0]) != domains(outer.body.params[0])


def test_an_inline_map_type_with_a_map_as_value_is_curried() -> None:
    term = read("(f::(R) -> (R) -> C, x::R) -> f(x)(2)")
    assert isinstance(term, Lam) and term.body.type == COMPLEX


def test_an_index_is_its_integer_value_in_an_arithmetic_place_and_in_a_real_argument() -> None:
    assert read("(x::RV, f::RF) -> sum(i, i^2 * x(i) * f(i))").body.type == REAL  # type: ignore[attr-defined]


def test_a_sum_over_a_real_number_stays_an_integral() -> None:
    term = read("(f::RF) -> sum((x::R), f(x))")
    assert isinstance(term, Lam) and isinstance(term.body, Sum) and term.body.indices[0].kind == REAL


def test_a_real_value_is_accepted_where_a_complex_one_is_declared() -> None:
    assert read("(f::CF, x::R) -> f(x)").body.type == COMPLEX  # type: ignore[attr-defined]


def test_an_unannotated_parameter_takes_the_type_that_its_place_asks_for() -> None:
    term = read("begin apply = (f::RF, x::R) -> f(x); (y::R) -> apply(t -> t^2 + 1, y) end")
    assert alpha_equal(term, read("(y::R) -> y^2 + 1"))


def test_a_scalar_function_is_a_map_where_one_is_asked_for() -> None:
    term = read("begin apply = (f::CF, x::R) -> f(x); (y::R) -> apply(exp, y) end")
    assert alpha_equal(term, read("(y::R) -> exp(y)"))


def test_a_tensor_may_be_given_as_a_map_of_indices_to_an_unknown_function() -> None:
    term = read("(f::(RV) -> R, x::RV) -> f(i -> 2 * x(i))")
    found = params(term)
    kind = found["f"].kind
    assert isinstance(kind, Map) and isinstance(vector := kind.params[0], Map)
    assert vector.params == (Index(Domain("f.1.1")),)
    assert domains(found["x"]) == (Domain("f.1.1"),)


# --- index arithmetic -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        "(v::PV) -> sum((k::BZ, b::X), v(k + b) * v(k - 2*b + 3)')",
        "(v::PV) -> sum((k::BZ), v(-k) * v(2*k))",
        "(v::PV) -> sum((b::X), v(b))",
        "(u::XV) -> sum((b::X), u(-b) * u(b))",
        "(u::XV) -> sum(b, u(-b))",
        "(w::SV) -> sum((b::X), w(-b))",
        "(x::RV) -> x(0) + x(2)",
        "(u::XV) -> u(-1)",
        "(v::PV) -> sum(k, v(k) * v(k - k))",
        "(v::PV) -> v(-1)",
    ],
)
def test_index_arithmetic_that_stays_in_range_is_accepted(body: str) -> None:
    assert isinstance(read(DOMAINS + body), Lam)


def test_a_negated_index_gives_an_open_slot_its_domain() -> None:
    assert domains(params(read(DOMAINS + "(w::SV) -> sum((b::X), w(-b))"))["w"])[0].name == "X"  # type: ignore[union-attr]


def test_an_open_slot_that_is_reflected_but_never_used_is_symmetric() -> None:
    (domain,) = domains(params(read(DOMAINS + "(w::SV) -> 1"))["w"])
    assert domain is not None and domain.symmetric


def test_a_symmetric_index_under_a_sum_needs_no_slot() -> None:
    assert isinstance(read(DOMAINS + "(x::R) -> sum((b::X), x * b)"), Lam)


@pytest.mark.parametrize(
    ("body", "fragment"),
    [
        ("(x::RV) -> sum(i, x(i) * x(i + 1))", "i + 1 may leave the range of slot 1 of x"),
        ("(x::RV) -> sum(i, x(i) * x(-i))", "may leave the range"),
        ("(x::RV) -> x(-1)", "-1 may leave the range"),
        ("(u::XV) -> sum((b::X), u(2*b))", "may leave the range"),
        ("(v::PV) -> sum((k::BZ, b::X), v(k*b))", "affine"),
        ("(v::PV) -> sum((k::BZ), v(k^2))", "affine"),
        ("(v::PV) -> sum((k::BZ), v(k/2))", "affine"),
        ("(v::PV, x::RV) -> sum((i), x(i) * v(x(i)))", "an index is expected here, found a real number"),
        ("(x::RV) -> x(0.5)", "integer"),
        ("(x::RV, y::XV) -> sum((b::X), x(b))", "index b ranges over the domain X, but slot 1 of x over an unnamed"),
        ("(y::YV) -> sum((b::X), y(b))", "index b ranges over the domain X, but slot 1 of y over the domain Y"),
        ("(v::PV) -> sum((n::N), v(n))", "unnamed range"),
        ("(x::RV) -> sum((i, n), x(i))", "cannot find the range of index n"),
        ("(w::SV, x::RV) -> sum(i, w(i) * x(i))", "changes sign under a symmetry"),
        ("(w::SV) -> sum((y::Y), w(y))", "changes sign under a symmetry"),
    ],
)
def test_an_index_that_does_not_fit_its_slot_is_pointed_at(body: str, fragment: str) -> None:
    error = message(DOMAINS + body)
    assert fragment in str(error) and error.span is not None and error.remedy


def test_a_clash_of_domains_points_at_both_places() -> None:
    text = DOMAINS + "(y::YV) -> sum((b::X), y(b))"
    error = message(text)
    line = text.count("\n") + 1
    assert error.span is not None and (error.span.line, error.span.column) == (line, len("(y::YV) -> sum((b::X), y(b"))
    assert error.also is not None and text.split("\n")[error.also[1].line - 1].startswith("@space YV")


# --- definitions ----------------------------------------------------------------------------------------------------


def test_a_value_is_bound_once_and_shared() -> None:
    term = read("(x::RV) -> begin s = sum(i, x(i)); s * s + s end")
    assert isinstance(term, Lam) and isinstance(term.body, Let) and len(term.body.bindings) == 1


def test_a_definition_may_be_shadowed_and_functions_see_what_was_before_them() -> None:
    term = read("begin a = 1; f = (x::R) -> a + x; a = 10; (y::R) -> f(y) + a end")
    assert alpha_equal(term, read("(y::R) -> 1 + y + 10"))


def test_a_function_serves_tensors_of_different_sizes() -> None:
    text = """(A::RM, x::RV, y::RV) -> begin
      dot = (u::RV, v::RV) -> sum(i, u(i) * v(i))
      dot(x, x) * dot(y, y) * dot(x, i -> sum(j, A(i, j) * y(j)))
    end"""
    found = params(read(text))
    assert domains(found["x"]) != domains(found["y"])
    assert domains(found["A"]) == (*domains(found["x"]), *domains(found["y"]))


def test_a_function_may_take_a_function() -> None:
    text = """(x::RV) -> begin
      double = (t::R) -> 2 * t
      all = (f::RF, v::RV) -> sum(i, f(v(i)))
      all(double, x)
    end"""
    assert alpha_equal(read(text), read("(x::RV) -> sum(i, 2 * x(i))"))


def test_an_argument_that_sums_is_shared_if_used_twice_and_inserted_if_used_once() -> None:
    twice = read("(x::RV) -> begin f = (a::R) -> a * exp(a); f(sum(i, x(i))) end")
    once = read("(x::RV) -> begin f = (a::R) -> exp(a); f(sum(i, x(i))) end")
    cheap = read("(x::R) -> begin f = (a::R) -> a * exp(a); f(2 * x) end")
    assert isinstance(twice.body, Let) and len(twice.body.bindings) == 1  # type: ignore[attr-defined]
    assert not any(isinstance(u, Let) for t in (once, cheap) for u in subterms(t))


def test_a_textual_definition_is_read_where_it_is_used() -> None:
    assert alpha_equal(read("begin a := x^2; (x::R) -> a + 1 end"), read("(x::R) -> x^2 + 1"))
    assert alpha_equal(read("begin a = 1; a := a + 1; (x::R) -> a * x end"), read("(x::R) -> 2 * x"))


def test_a_tuple_is_taken_apart() -> None:
    ours = read("(x::R) -> begin (a, b) = (x, 2); a^b end")
    assert alpha_equal(ours, read("(x::R) -> x^2"))
    term = read("(x::R, y::R) -> begin t = (exp(x), y); (a, b) = t; a * b end")
    assert isinstance(term, Lam) and isinstance(term.body, Let)
    assert not any(isinstance(u, Tuple) for u in subterms(term))


def test_the_items_of_a_gradient_can_be_named() -> None:
    term = read("(u::R) -> begin (a, b) = grad((x::R, y::R) -> x*y)(u, u); a + b end")
    assert isinstance(term, Lam) and term.body.type == REAL


def test_a_chain_composes_maps_and_applies_values() -> None:
    assert alpha_equal(read("((x::R) -> x + 1) ▷ (y -> y^2) ▷ exp"), read("(x::R) -> exp((x + 1)^2)"))
    assert alpha_equal(read("(x::R) -> (x, 2) ▷ ((a::R, b::R) -> a^b)"), read("(x::R) -> x^2"))
    norm = "begin norm = (v::RV) -> sum(i, v(i)^2); (x::RV) -> x ▷ norm end"
    assert alpha_equal(read(norm), read("(x::RV) -> sum(i, x(i)^2)"))
    assert isinstance(read("((x::R) -> x^2) ▷ grad"), Diff)


@pytest.mark.slow
def test_two_thousand_definitions_are_read() -> None:
    lines = "\n".join(f"a{n} = a{n - 1} + x(i)" for n in range(1, 2001))
    term = read(f"(x::RV) -> sum(i, begin\n a0 = exp(x(i))\n{lines}\n a2000 end)")
    assert sum(len(u.bindings) for u in subterms(term) if isinstance(u, Let)) == 2001


@pytest.mark.slow
def test_a_chain_of_two_thousand_functions_is_inlined() -> None:
    lines = "\n".join(f"f{n} = (x::R) -> f{n - 1}(x) + x" for n in range(1, 2001))
    term = read(f"begin\n f0 = (x::R) -> x\n{lines}\n f2000 end")
    assert isinstance(term, Lam) and isinstance(term.body, Mul) and term.body.factors[0] == number(2001)


@pytest.mark.slow
def test_a_sum_of_five_thousand_terms_is_read() -> None:
    text = " + ".join(f"x(i)^{n}" for n in range(2, 5002))
    (total,) = (u for u in subterms(read(f"(x::RV) -> sum(i, {text})")) if isinstance(u, Sum))
    assert len(total.body.terms) == 5000  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_term_of_depth_two_thousand_is_no_crash() -> None:
    lines = "\n".join(f"f{n} = (x::R) -> exp(f{n - 1}(x))" for n in range(1, 2001))
    term = read(f"begin\n f0 = (x::R) -> x\n{lines}\n (y::R) -> f2000(y) + f2000(y) end")
    assert isinstance(term, Lam) and isinstance(term.body, Mul) and term.body.factors[0] == number(2)


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    [
        "begin\n f0 = (x::R) -> exp(x)\n"
        + "\n".join(f"f{n} = (x::R) -> f{n - 1}(f{n - 1}(x))" for n in range(1, 40))
        + "\n f39 end",
        "begin\n a0 := 1\n" + "\n".join(f"a{n} := a{n - 1} * a{n - 1}" for n in range(1, 40)) + "\n a39 end",
        "begin\n f0 = (x::R) -> x\n"
        + "\n".join(f"f{n} = (x::R) -> exp(f{n - 1}(x))" for n in range(1, 9000))
        + "\n f8999 end",
        "begin\n f0 = (x::RV) -> i -> sum(j, x(j) * x(i))\n"
        + "\n".join(f"f{n} = f{n - 1} ▷ f{n - 1}" for n in range(1, 40))
        + "\n f39 end",
    ],
    ids=["functions", "text", "depth", "compositions"],
)
def test_definitions_that_multiply_without_end_spend_a_budget(text: str) -> None:
    with pytest.raises(BudgetError):
        read(text)


@pytest.mark.parametrize("text", ["min(pi, pi * x)", "max(pi, 3 - pi * x)"])
def test_a_constant_that_the_other_arguments_hold_is_no_index(text: str) -> None:
    assert read(f"(x::R) -> {text}").type == Map((REAL,), REAL)


def test_a_size_that_the_other_arguments_hold_is_no_index() -> None:
    assert isinstance(read("(x::RV{n}) -> min(n, n * x(0))"), Lam)


# --- bad input ------------------------------------------------------------------------------------------------------

BAD = {
    "unknown name": ("(x::R) -> y", "unknown name y"),
    "near name": ("(alpha::R) -> alpa", "did you mean alpha?"),
    "recursion": ("begin f = (x::R) -> f(x); f end", "unknown name f"),
    "use before definition": ("begin a = b; b = 1; a end", "lines that follow"),
    "unknown type": ("(x::Foo) -> x", "unknown type Foo"),
    "near type": ("(x::Herr) -> 1", "did you mean Her?"),
    "too many indices": ("(x::RV) -> sum((i, j), x(i, j))", "x takes 1 index, and 2 are given"),
    "too few indices": ("(A::RM) -> sum(i, A(i))", "A takes 2 indices, and 1 is given"),
    "arguments of a function": ("begin f = (x::R, y::R) -> x; (z::R) -> f(z) end", "f takes 2 arguments"),
    "arguments of a word": ("(x::R) -> exp(x, x)", "exp takes 1 argument"),
    "delta of two": ("(x::RV) -> sum((i, j), delta(i, j) * x(i) * x(j))", "delta takes 3 arguments"),
    "number applied": ("(x::R) -> x(2)", "x is a real number and cannot be applied"),
    "complex for real": ("(f::RF, z::C) -> f(z)", "this one is complex"),
    "complex tensor for real": ("(f::(RV) -> R, z::CV) -> f(z)", "this one is complex"),
    "complex argument of a function": ("begin f = (x::R) -> x; (z::C) -> f(z) end", "this one is complex"),
    "real function for complex": ("(g::((C) -> C) -> R, f::RF) -> g(f)", "this one is complex"),
    "complex comparison": ("(z::C) -> indicator(0, z, 1)", "cannot be compared"),
    "row alone": ("(x::CV) -> x'", "a row has a meaning only within a product"),
    "adjoint of three slots": ("(T::(N, N, N) -> C) -> T'", "3 indices has no adjoint"),
    "tensor for a number": ("(x::RV) -> sin(x)", "x is a real tensor with 1 index, not a number"),
    "number added to a tensor": ("(x::RV) -> x + 1", "a number is added to a tensor"),
    "vector added to a matrix": ("(x::RV, A::RM) -> x + A", "tensor with 2 indices are added"),
    "row added to a vector": ("(x::RV) -> x + x'", "a row is added to something that is not a row"),
    "product of vectors": ("(x::RV) -> x * x", "no product of two vectors"),
    "product of rows": ("(x::RV) -> x' * x'", "no product of two rows"),
    "matrix times row": ("(x::RV, A::RM) -> A * x'", "and a row"),
    "vector times matrix": ("(x::RV, A::RM) -> x * A", "a vector and a matrix"),
    "tensor in a product": ("(T::(N, N, N) -> R, x::RV) -> T * x", "takes part in a product of matrices"),
    "divided by a matrix": ("(A::RM, B::RM) -> A / B", "divided by something that is not a number"),
    "negative power": ("(A::RM) -> A^(-1)", "whole number from 1"),
    "power of a vector": ("(x::RV) -> x^2", "only numbers and matrices have powers"),
    "unit matrix alone": ("(x::R) -> 2 * I", "nothing tells the size of the unit matrix"),
    "unit matrix and vector": ("(x::RV) -> x + I", "I is added to a real tensor with 1 index"),
    "unit matrix by entries": ("(A::RM) -> A .* I", "I takes part entry by entry"),
    "system of a vector": ("(x::RV, b::RV) -> x \\ b", "a system has a matrix"),
    "trace of a vector": ("(x::RV) -> tr(x)", "tr takes a matrix"),
    "product over unequal sizes": ("(A::RM{n, m}, B::RM{k, n}) -> A * B", "ranges over N{k}"),
    "entries of unequal sizes": ("(x::RV{n}, y::RV{m}) -> x .* y", "ranges over N{m}"),
    "sum of a number": ("(x::R) -> sum(x)", "adds the entries of a tensor"),
    "function in arithmetic": ("(f::RF) -> 2 * f", "f is a map of 1 argument, not a number"),
    "tuple in arithmetic": ("(x::R) -> 2 * (x, x)", "a tuple of 2"),
    "tensor for number": ("(f::RF, x::RV) -> f(x)", "not a number"),
    "number for tensor": ("(f::(RV) -> R, x::R) -> f(x)", "is expected here, found a real number"),
    "matrix for vector": ("(f::(RV) -> R, A::RM) -> f(A)", "tensor with 1 index is expected here"),
    "grad of a vector map": ("grad((x::RV) -> i -> x(i))", "use pullback"),
    "grad of a tuple": ("grad((x::R) -> (x, x))", "use pullback"),
    "grad of a number": ("(x::R) -> grad(x)", "grad takes a map"),
    "integer variable": ("grad((n::N) -> 2)", "which is an integer"),
    "integer among variables": ("pullback((x::RV, n::N) -> x(n))", "argument 2, which is an integer"),
    "reserved parameter": ("(grad::R) -> grad", "grad is a keyword of the language"),
    "reserved definition": ("begin pi = 3; pi end", "pi is a keyword of the language"),
    "reserved index": ("(x::RV) -> sum(im, x(im))", "im is a keyword of the language"),
    "bare word": ("(x::R) -> exp", "has no arguments here"),
    "sum over complex": ("sum((z::C), z)", "a sum runs over"),
    "sum over tensors": ("sum((x::RV), 1)", "a sum runs over"),
    "division by zero": ("(x::R) -> x / 0", "division by zero"),
    "power of zero": ("0 ^ (-1)", "division by zero"),
    "names and items": ("(x::R) -> begin (a, b, c) = (x, x); a end", "3 names"),
    "names of a number": ("(x::R) -> begin (a, b) = x; a end", "2 names are bound to a real number"),
    "no permutation": (
        "@space T begin type = (N, N) -> R; symmetries = (((1, 3), :id),) end\n(A::T) -> 1",
        "(1, 3) is not a permutation of the slots 1…2",
    ),
    "short permutation": (
        "@space T begin type = (N, N, N) -> R; symmetries = (((2, 1), :id),) end\n(A::T) -> 1",
        "not a permutation",
    ),
    "slot that is none": (
        "@space T begin type = (I,) -> R; symmetries = (((2,), :ineg),) end\n(A::T) -> 1",
        "does not name slots",
    ),
    "slots of two domains": (
        DOMAINS + "@space T begin type = (X, Y) -> R; symmetries = (((2, 1), :id),) end\n(A::T) -> 1",
        "ranges over the domain",
    ),
    "N that changes sign": (
        "@space T begin type = (N,) -> R; symmetries = (((1,), :ineg),) end\n(A::T) -> 1",
        "changes sign under a symmetry",
    ),
    "zero by two symmetries": (
        "@space T begin type = (N, N) -> R; symmetries = (((2, 1), :id), ((2, 1), :neg)) end\n(A::T) -> 1",
        "always zero",
    ),
    "zero by a long relation": (
        "@space T begin type = (N, N, N, N, N, N, N, N) -> C\n"
        "symmetries = (((2, 1, 3, 4, 5, 6, 7, 8), :neg), ((2, 3, 4, 5, 6, 7, 8, 1), :id)) end\n(A::T) -> 1",
        "always zero",
    ),
    "periodic and symmetric": (
        "@domain D begin periodic = true; symmetric = true end\n(x::R) -> x",
        "both periodic and symmetric",
    ),
    "index as value": ("(f::(R) -> N) -> 1", "not indices"),
    "error in a function never called": ("begin f = (x::R) -> y; (x::R) -> x end", "unknown name y"),
    "indices of a local map": ("(x::RV) -> begin y = i -> x(i); sum((i, j), y(i, j)) end", "y takes 1 index"),
}


@pytest.mark.parametrize(("text", "fragment"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_told_with_its_place_and_a_remedy(text: str, fragment: str) -> None:
    error = message(text)
    assert isinstance(error, LanguageError) and fragment in str(error)
    assert error.span is not None and error.span.line > 0 and error.remedy


@pytest.mark.parametrize(
    "symmetries", ["((2, 1), :id), ((2, 1), :conj)", "((2, 1), :neg)", "((2, 1), :neg), ((2, 1), :conj)"]
)
def test_symmetries_that_leave_something_are_accepted(symmetries: str) -> None:
    text = f"@space T begin type = (N, N) -> C; symmetries = ({symmetries},) end\n(A::T) -> sum((i, j), A(i, j))"
    assert isinstance(read(text), Lam)


def test_keeping_a_definition_that_does_not_exist_is_an_error() -> None:
    assert "there is no definition Q to keep" in str(message(LISTING_3, keep=("Q",)))


@pytest.mark.slow
@given(st.integers(-3, 3), st.integers(-3, 3), st.integers(-3, 3))
def test_any_affine_form_fits_a_periodic_slot_and_only_bare_ones_a_plain_slot(k: int, b: int, c: int) -> None:
    form = f"{k} * k + {b} * b + {c}"
    read(DOMAINS + f"(v::PV) -> sum((k::BZ, b::X), v({form}))")
    text = f"(x::RV, y::RV) -> sum((k, b), x(k) * x(b) * y({form}))"
    bare = (k, b, c) in {(1, 0, 0), (0, 1, 0)} or (k == b == 0 and c >= 0)
    if bare:
        assert isinstance(read(text), Lam)
    else:
        with pytest.raises(LanguageError, match="may leave the range"):
            read(text)


def test_constants_are_exact() -> None:
    assert isinstance(term := read("0.1 + 0.2"), Const) and str(term.real) == "3/10"


def test_a_wrong_number_of_indices_points_at_the_declaration_too() -> None:
    error = message("(A::RM) ->\n  sum(i, A(i))")
    assert error.span is not None and error.span.line == 2
    assert error.also is not None and (error.also[0], error.also[1].line) == ("A is declared here", 1)


def test_functions_of_real_numbers_may_have_symmetries() -> None:
    text = "@space H begin type = (R, R) -> C; symmetries = (((2, 1), :conj),) end\n"
    found = params(read(text + "(h::H) -> (f::CF) -> sum((x::R, y::R), f(x)' * h(x, y) * f(y))"))["h"].kind
    assert isinstance(found, Map) and found.symmetries == (HERMITIAN,) and found.params == (REAL, REAL)


def test_a_kept_function_may_return_a_tensor() -> None:
    term = read("(x::RV) -> begin g = (u::RV) -> i -> u(i)^2; sum(i, g(x)(i)) end", keep=("g",))
    (call,) = (u for u in subterms(term) if isinstance(u, App) and isinstance(u.function, App))
    assert isinstance(call.function.type, Map) and call.function.type.params[0] == call.args[0].type


def test_a_definition_inside_a_function_is_read_for_each_call() -> None:
    text = """(x::R, y::R) -> begin
      f = (t::R) -> begin s = exp(t); s * s end
      f(x) + f(y)
    end"""
    assert sum(isinstance(u, Let) for u in subterms(read(text))) == 2


def test_the_parameter_of_an_inlined_function_does_not_tell_how_far_an_index_ranges() -> None:
    error = message("(y::R) -> begin f = (x::RV) -> sum(j, x(j)); f((i::N) -> y) end")
    assert "cannot find the range of index" in str(error)


# --- meaning, against NumPy -----------------------------------------------------------------------------------------


def meaning(text: str, *arrays: np.ndarray, keep: tuple[str, ...] = ()) -> object:
    term = read(text, keep)
    assert isinstance(term, Lam)
    return evaluate(term.body, dict(zip(term.params, arrays, strict=True)))


OBJECTIVE = """(A::RM, x::RV, y::RV) -> begin
  dot = (u::RV, v::RV) -> sum(i, u(i) * v(i))
  apply = (M::RM, v::RV) -> i -> sum(j, M(i, j) * v(j))
  z = apply(A, y)
  shift := z(0)
  (dot(x, z) ▷ (s -> s^2 + shift)) + dot(apply(A, y), apply(A, y)) * dot(y, y)
end"""


@pytest.mark.parametrize("keep", [(), ("dot",), ("apply",), ("dot", "apply")])
@pytest.mark.parametrize("seed", [0, 1])
def test_functions_mean_the_same_inlined_and_kept(keep: tuple[str, ...], seed: int) -> None:
    # a kept function is one unknown map, whose arguments have one size
    rows, columns = (4, 4) if keep else (3, 5)
    rng = np.random.default_rng(seed)
    a, x, y = rng.normal(size=(rows, columns)), rng.normal(size=rows), rng.normal(size=columns)
    z = a @ y
    expected = (x @ z) ** 2 + z[0] + (z @ z) * (y @ y)
    assert meaning(OBJECTIVE, a, x, y, keep=keep) == pytest.approx(expected)


def test_the_wannier_spread_means_what_the_paper_writes() -> None:
    bands, points, reach = 2, 5, 1
    rng = np.random.default_rng(3)
    s = rng.normal(size=(bands, bands, points, points)) + 1j * rng.normal(size=(bands, bands, points, points))
    u = rng.normal(size=(bands, 3, points)) + 1j * rng.normal(size=(bands, 3, points))
    w = np.array([0.5, 2.0, 0.5])
    spread = 0.0
    for n in range(3):
        for b in range(-reach, reach + 1):
            rho = sum(
                u[:, n, k].conj() @ s[:, :, k, (k + b) % points] @ u[:, n, (k + b) % points] for k in range(points)
            )
            spread += w[b + reach] * abs(complex(rho)) ** 2
    value = meaning(LISTING_5.replace("pullback((U::Gauge) -> begin", "(U::Gauge) -> (begin"), s, w)
    assert callable(value) and value(u) == pytest.approx(spread)


def test_the_letter_pi_is_the_number_unless_the_program_names_it() -> None:
    assert str(cd.grad("(x::R) -> sin(π * x)")) == "(x::R) -> pi * cos(x * pi)"
    assert str(cd.grad("(π::RV) -> sum(i, π(i)^2)")) == "(π::RV) -> i -> 2 * π(i)"
    assert str(cd.grad("(x::RV{π}) -> π * x(0)")) == str(cd.grad("(x::RV{n}) -> n * x(0)")).replace("n", "π")
