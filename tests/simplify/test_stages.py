"""The stages of a simplification: what each leaves behind, what it says, when it is checked."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.derivation import Derivation
from combdiff.errors import CheckError
from combdiff.simplify import stages
from combdiff.terms.terms import Delta, Sum, Term, mul, number, subterms

HARTREE_FOCK = """
@space T begin
  type = (N, N, N, N) -> C
  symmetries = (((2, 1, 4, 3), :conj), ((3, 4, 1, 2), :id))
end
(J::T) -> (C::CM) -> sum((i, j, p, q, r, s), C(p, i)' * C(q, i) * C(r, j)' * C(s, j) * J(p, q, r, s))
"""


def term_after(d: Derivation, name: str) -> Term:
    return next(step.term for step in d.steps if step.name == name)


def test_contraction_leaves_no_delta_and_no_sum_over_numbers() -> None:
    d = cd.grad(HARTREE_FOCK)
    raw, contracted = term_after(d, "raw pullback"), term_after(d, "contract")
    assert any(isinstance(t, Delta) for t in subterms(raw))
    assert not any(isinstance(t, Delta) for t in subterms(contracted))
    assert sum(isinstance(t, Sum) for t in subterms(contracted)) == 4


def test_merging_leaves_one_of_four_like_terms() -> None:
    merged = term_after(cd.grad(HARTREE_FOCK), "merge like terms")
    assert sum(isinstance(t, Sum) for t in subterms(merged)) == 1


def test_every_stage_says_which_laws_fired() -> None:
    contract = next(step for step in cd.grad(HARTREE_FOCK).steps if step.name == "contract")
    assert contract.families["meet"].matches > 0
    assert "meet" in str(contract) and "meet ×" in contract.heading


@pytest.mark.parametrize(
    ("text", "real"),
    [
        ("(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))", True),
        ("(A::CM) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))", False),
        ("(z::C) -> abs2(z)", True),
        ("(z::C) -> z^2", False),
        ("(A::Her) -> (x::CV) -> begin y = i -> sum(j, A(i, j) * x(j)); sum(i, y(i)' * y(i)) end", True),
    ],
)
def test_the_first_step_says_when_the_gradient_is_that_of_the_real_part(text: str, real: bool) -> None:
    note = cd.grad(text).steps[0].note
    assert (note == "") is real
    assert real or "real part" in note


def test_a_stage_that_changes_the_value_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "rename_indices", lambda t, *options: _doubled(t))
    with pytest.raises(CheckError, match="order and names changed the value"):
        cd.grad("(x::CV) -> sum(i, x(i)' * x(i))")


def _doubled(t: Term) -> Term:
    from combdiff.terms.terms import Lam

    return Lam(t.params, mul(number(2), t.body)) if isinstance(t, Lam) else mul(number(2), t)


def test_an_integral_is_left_unchecked_and_says_so() -> None:
    d = cd.grad("(h::RO) -> (f::RF) -> sum((s::R, t::R), f(s) * h(s, t) * f(2 * t))")
    assert any("not checked" in step.note for step in d.steps)


@pytest.mark.parametrize("text", ["(w::RF) -> (f::RF) -> sum(t::R, w(t) * f(t))", "(x::RV) -> sum(i, x(i)^2 * x(i))"])
def test_what_a_delta_fixes_on_the_real_line_is_checked(text: str) -> None:
    assert not any("not checked" in step.note for step in cd.grad(text).steps)


def test_logarithms_are_checked_on_positive_numbers() -> None:
    assert not any("not checked" in step.note for step in cd.grad("(x::R) -> log(x) * sqrt(x)").steps)


@pytest.mark.slow
def test_values_that_are_provably_real_lose_their_conj() -> None:
    d = cd.grad(
        "(R::Her) -> (C::CM) -> begin r = i -> sum((p, q), C(p, i)' * R(p, q) * C(q, i)); sum(i, r(i)' * r(i)) end"
    )
    assert "r(i)'" not in str(d)
    assert d.check()


def test_multiplied_out_powers_of_sums_are_sums_of_products() -> None:
    d = cd.grad("(z::C, w::C) -> (z + w)^3", expand=True)
    assert "(" not in str(d).split("->")[-1].replace("(", "", 1)
    assert d.check()


@pytest.mark.parametrize(
    "text",
    [
        "(h::Sym) -> (x::RV) -> begin F = (p, q) -> h(p, q) + x(p) * x(q); sum((p, q), F(p, q)^2) end",
        "(h::Her) -> (x::CV) -> begin F = (p, q) -> h(p, q) + x(p) * x(q)'; sum((p, q), x(p)' * F(p, q) * x(q)) end",
    ],
)
def test_an_entry_of_a_value_is_read_in_the_plainest_of_its_images(text: str) -> None:
    assert "F(p, q) * k(q)" in str(cd.hvp(text))


def test_an_index_of_a_sum_around_it_is_open_to_an_inner_sum() -> None:
    text = "(A::RV, F::Sym) -> (X::RM) -> sum(p, sum(q, X(p, q) * (X(q, p) + sum(r, A(r) * F(r, q))))^2)"
    assert "sum(q, X(p, q) * (X(q, p) + sum(r, A(r) * F(q, r))))" in str(cd.grad(text))


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "(a::R) -> ((b::C) -> abs2(b) + b)(im * tanh(a))",
        "(a::R) -> begin b = im * a + im * sin(a); real(b^2) + a + sin(a) end",
    ],
)
def test_what_is_real_is_not_written_as_a_multiple_of_a_complex_value(text: str) -> None:
    for d in (cd.grad(text), cd.hvp(text)):
        found = d.compile()(*([0.3] if d.mode == "grad" else [0.3, 1.0]))
        assert np.asarray(found).dtype == float and d.check()
