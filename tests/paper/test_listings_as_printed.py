"""Listings 1 to 5 as the paper prints them, macros and pipes included: the program is read, the rest is told of."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import combdiff as cd
from combdiff.command.cli import main
from combdiff.errors import LanguageError
from combdiff.jupyter.display import derivation_bundle, step_html
from combdiff.language.parsing.parser import parse
from combdiff.language.parsing.session import taken_out

from . import oracle

LISTING_1 = """f, _ = @pct _ ctx (J::T) -> pullback((C::CM) -> sum((i, j, p, q, r, s),
  C(p, i)’ * C(q, i) * C(r, j)’ * C(s, j) * J(p, q, r, s))); f
"""
LISTING_2 = """f, _ = @pct (A::Her) -> pullback((x::CV) ->
  sum((i, j), x(i)’*A(i,j)*x(j)))

df = redux(vdiff(f), settings=symmetry_settings) |> blaserize
"""
LISTING_3 = """f, _ = @pct (A::Sym, r::RV, p::RV, b::RV, x::RV) -> begin
  R = (x::RV) ->
    sum((i, j), 0.5 * x(i) * A(i, j) * x(j)) - sum(i, x(i) * b(i))
  pullback((alpha::R, beta::R) ->
    R((i::N) -> x(i) + alpha * (r(i) + beta * p(i))))
end;
blaserize(f)

df = vdiff(f) |> blaserize

df = redux(vdiff(eval_all(f)); settings=symmetry_settings) |> blaserize
"""
CONTEXT_4 = """_, ctx = @pct begin
  @space T begin
    type = (N, N, N, N) -> C
    symmetries = (((2, 1, 4, 3), :conj), ((3, 4, 1, 2), :id))
  end
end;
"""
LISTING_4 = (
    CONTEXT_4
    + LISTING_1
    + """
df = redux(vdiff(f); settings=symmetry_settings)

df |> get_body |> decompose |> pp |> simplify |> first
"""
)
LISTING_5 = """_, ctx = @pct begin
  @domain BZ begin
    base = I
    periodic = true
  end

  @domain X begin
    symmetric = true
    contractable = false
  end

  @space Mmn begin
    type = (N, N, BZ, BZ) -> C
    symmetries = (((2, 1, 4, 3), :conj),)
  end

  @space SV begin
    type = (I,) -> C
    symmetries = (((1,), :ineg),)
  end

  @space Gauge begin
    type = (N, N, BZ) -> C
  end
end;
f, _ = @pct _ ctx (S::Mmn, w::SV) -> pullback((U::Gauge) ->
  begin
    rho = (n::N, b::X) -> sum((k::BZ, p, q), U(p, n, k)’ *
      S(p, q, k, k + b) * U(q, n, k + b))
    sum((n, b::X), w(b) * rho(n, b)’ * rho(n, b))
  end); f

df = redux(vdiff(eval_all(f)); settings=symmetry_settings)
"""
gradient = cache(cd.grad)


def remarks(d):
    return d.steps[0].note.splitlines()


@pytest.mark.slow
def test_listing_1_has_its_integrals_from_a_context():
    """Its type T is declared in Listing 4; with this context the gradient is Eq. 53."""
    with pytest.raises(LanguageError, match="T") as refusal:
        gradient(LISTING_1)
    assert refusal.value.span.line == 1 and refusal.value.span.column == LISTING_1.index("T)") + 1
    assert str(gradient(CONTEXT_4 + LISTING_1)) == str(gradient(oracle.example("hartree_fock")))


def test_listing_2_is_eq_47():
    d = gradient(LISTING_2)
    assert d.matrix_text() == "2 A x"
    assert remarks(d) == [
        "line 1: f, _ = @pct is left out",
        "line 4: df = redux(vdiff(f), settings=symmetry_settings) |> blaserize is left out: "
        "redux is part of every derivation, vdiff is cd.grad, blaserize is d.matrix_text()",
    ]


@pytest.mark.slow
def test_listing_3_is_eq_48_with_the_function_kept_and_eq_49_without():
    theory, solved = gradient(LISTING_3, keep="R"), gradient(LISTING_3)
    assert theory.matrix_text().splitlines() == [
        "R = x1 ↦ 1/2 x1ᵀ A x1 - x1ᵀ b",
        "(∇R(x + alpha (r + beta p))ᵀ (r + beta p), alpha ∇R(x + alpha (r + beta p))ᵀ p)",
    ]
    assert solved.matrix_text().splitlines() == [
        "v = A (x + alpha (r + beta p)) - b",
        "((r + beta p)ᵀ v, alpha pᵀ v)",
    ]
    assert [line.split(":")[0] for line in remarks(solved)] == ["line 1", "line 7", "line 9", "line 11"]


@pytest.mark.slow
def test_listing_4_is_eq_53_and_eq_54():
    d, product = gradient(LISTING_4), cd.hvp(LISTING_4)
    assert oracle.squeezed(d).endswith("4*sum((q,r,s,j),J(p,q,r,s)*C(q,i)*C(r,j)'*C(s,j))")
    # three terms with factor 4, of which two have a factor in common
    (body,) = oracle.outputs(product)
    assert oracle.factors_in_front(body) == [4, 4]
    assert str(product) == str(cd.hvp(oracle.example("hartree_fock")))
    assert "pp of a gradient is cd.hvp" in remarks(d)[-1]


@pytest.mark.slow
@pytest.mark.parametrize("expand", [False, True])
def test_listing_5_is_eq_57_and_eq_58_where_its_weights_are_real(expand):
    """The listing declares complex weights; the gradient of the real part then has (w + w')/2 for the paper's w."""
    d = gradient(LISTING_5, expand=expand)
    of_real = gradient(LISTING_5.replace("type = (I,) -> C", "type = (I,) -> R"), expand=expand)
    (body,) = oracle.outputs(of_real)
    assert oracle.factors_in_front(body) == [4]
    assert ("rho" in str(d)) is not expand
    t = oracle.trial(of_real, 0, S=(2, 2, 3, 3), w=(3,), U=(2, 2, 3))
    oracle.close(d.compile()(t["S"], t["w"], t["U"]), t.run())


@pytest.mark.slow
def test_listing_5_is_the_program_of_the_examples():
    text = oracle.example("wannier").replace("type = (I,) -> R", "type = (I,) -> C")
    assert str(gradient(LISTING_5)) == str(gradient(text))


@pytest.mark.parametrize("text", [LISTING_1, LISTING_2, LISTING_3, LISTING_4, LISTING_5])
def test_what_is_left_out_is_what_the_remarks_tell(text):
    program, told = taken_out(text)
    assert len(program) == len(text)
    left_out = "".join(a for a, b in zip(text, program, strict=True) if a != b)
    # a context is the inside of a block
    left_out = left_out.replace("begin", "").replace("end", "")
    whats = [remark.split(": ", 1)[1].split(" is left out")[0] for remark in told]
    assert oracle.squeezed(left_out) == oracle.squeezed("".join(whats))
    lines = [int(remark.split(":")[0].removeprefix("line ")) for remark in told]
    assert all(what in text.splitlines()[line - 1] for line, what in zip(lines, whats, strict=True))


def test_a_program_without_the_macro_has_no_remarks():
    assert parse("(x::RV) -> sum(i, x(i)^2)").remarks == ()
    with pytest.raises(LanguageError, match="not used"):
        parse("(x::RV) -> sum(i, x(i)^2)\nvdiff(f)")


def test_a_message_shows_the_listing_as_it_is_written():
    text = LISTING_2.replace("A(i,j)", "B(i,j)")
    with pytest.raises(LanguageError) as refusal:
        gradient(text)
    assert str(refusal.value).splitlines()[1] == f"  2 | {text.splitlines()[1]}"


def test_a_second_program_is_refused_at_its_place():
    with pytest.raises(LanguageError, match="a second program") as refusal:
        parse(LISTING_2 + LISTING_2)
    assert refusal.value.span.line == 5


def test_a_line_that_does_something_else_is_no_wrapper():
    with pytest.raises(LanguageError, match="mine is not known") as refusal:
        parse(LISTING_2 + "y = redux(mine(f))")
    assert refusal.value.span.line == 5


@pytest.mark.parametrize(
    "text",
    [
        "@pct (x::RV) -> sum(i, x(i)^2)",
        "using CombDiff\n# ; @pct\nf, _ = @pct (x::RV) ->\n  sum(i, x(i)^2)\nf",
        "f, _ = @pct f ctx begin\n  n = 2 # end\n  (x::RV) -> sum(i, x(i)^n)\nend; df = f |> vdiff |>\n redux",
        "f, _ = @pct begin (x::RV) -> sum(i, x(i)^2) end",
    ],
)
def test_other_ways_to_write_the_wrappers(text):
    assert str(gradient(text)) == "(x::RV) -> i -> 2 * x(i)"


def test_a_notebook_shows_each_remark_in_a_line_of_its_own():
    d = gradient(LISTING_2)
    bundle = derivation_bundle(d)
    assert bundle["text/plain"].splitlines()[1:] == remarks(d)
    assert bundle["text/latex"].count(r"\text{line ") == 2
    assert bundle["text/html"].count(">line ") == 2 and step_html(d.steps[0]).count(">line ") == 2


def test_the_command_line_tells_what_it_left_out(tmp_path, capsys):
    file = tmp_path / "listing.jl"
    file.write_text(LISTING_2, encoding="utf-8")
    assert main(["grad", str(file), "--form", "matrix"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "2 A x\n"
    assert shown.err.splitlines() == [f"{file}: {remark}" for remark in remarks(gradient(LISTING_2))]


@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_listing_4_as_numbers(seed):
    t = oracle.trial(gradient(LISTING_4), seed, J=(3,) * 4, C=(3, 2))
    oracle.close(t.run(), 4 * np.einsum("pqrs,qi,rj,sj->pi", t["J"], t["C"], t["C"].conj(), t["C"]))
