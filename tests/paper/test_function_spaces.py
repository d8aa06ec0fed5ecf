"""Maps of functions and of tensors as unknowns: Eq. 23, 27 and 28–30 over a space of functions."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import combdiff as cd
from combdiff.errors import CombDiffError, LanguageError, UnsupportedError
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.language.printing.printer import program_text
from combdiff.meaning.evaluate import evaluate
from combdiff.terms.terms import Delta, Diff, Lam, Let, Sum, subterms
from combdiff.terms.types import Map

from . import oracle

ROOT = "(g::(RV) -> RV) -> root(g)"
PAIRED = "(c::RV) -> (g::(RV) -> RV) -> sum(i, c(i) * root(g)(i))"
NESTED = "(h::RF) -> (g::(RF) -> RF) -> g(g(h))"
PROGRAMS = {
    "root of vectors": ROOT,
    "root, paired": PAIRED,
    "root of matrices": "(g::(CM) -> CM) -> root(g)",
    "evaluation at a vector": "(y::RV) -> (g::(RV) -> R) -> g(y)",
    "evaluation of a vector": "(x::R) -> (g::(R) -> RV) -> g(x)",
    "evaluation at a function": "(h::RF) -> (g::(RF) -> R) -> g(h)^2",
    "nested": NESTED,
    "wider": "(f::RF) -> (g::(CF) -> CF) -> g(f)",
    "two unknowns": "(a::RV) -> (g::(RV) -> R, x::RV) -> g(x) * sum(i, a(i) * x(i))",
    "of all functions": "pullback((x::RV) -> (g::(RV) -> R) -> g(x))",
    "of all vectors": "pullback((A::RM) -> (y::RV) -> i -> sum(j, A(i, j) * y(j)))",
    "moved": "(A::RM) -> pullback((F::(RV) -> R) -> (x::RV) -> F(i -> sum(j, A(i, j) * x(j))))",
    "composed": "pullback((F::(RF) -> RF) -> (f::RF) -> F(F(f)))",
}
pullback = cache(cd.pullback)


# --- Eq. 28–30 on vectors -------------------------------------------------------------------------------------------


def test_eq_30_for_a_root_of_vectors():
    """𝒫(ρ)(g, k) = d ↦ δ(ρ(g), d, −H⁻¹(k)), H(v) = 𝒫(g)(ρ(g), v); d and ρ(g) are vectors."""
    assert oracle.squeezed(pullback(ROOT)) == oracle.squeezed(
        """(g::(RV) -> RV, k::RV) -> (d::RV) -> begin
          w = root(g)
          d1 -> delta(w, d, -inverse((v::RV) -> pullback(g)(w, v))(k)(d1))
        end"""
    )


def test_eq_29_the_multiplier_solves_the_adjoint_equation():
    raw = next(step for step in pullback(ROOT).steps if step.name == "raw pullback")
    assert oracle.squeezed("λ = d1 -> -inverse((v::RV) -> d -> pullback(g)(u1, v)(d))(u1_bar)(d1)") in oracle.squeezed(
        raw
    )
    assert "delta(u1, d, λ(d1))" in str(raw)


def test_eq_30_in_the_style_of_a_paper():
    tex = pullback(ROOT).latex(style="paper")
    assert r"\delta(w, d, -y_{e})" in tex
    assert r"y\ \text{solves}\ \mathcal{P}(g)(w, y)_{i} = k_{i}" in tex


def family(a, p):
    """x ↦ A x + x³ − p x² − 1, its pullback at x, and its derivative by p."""
    return (
        lambda x: a @ x + x**3 - p * x**2 - 1,
        lambda x, k: a.T @ k + (3 * x**2 - 2 * p * x) * k,
        lambda x: np.diag(-(x**2)),
    )


def root_of(a, p):
    g, back, _ = family(a, p)
    x = np.zeros(len(p))
    for _ in range(50):
        x = x - np.linalg.solve(np.array([back(x, e) for e in np.eye(len(p))]), g(x))
    return x


@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_eq_30_paired_with_the_change_of_the_map_is_the_change_of_the_root(seed):
    """∂⟨k, ρ(g_p)⟩/∂p = Σ_d ⟨∂g_p/∂p at d, 𝒫(ρ)(g_p, k)(d)⟩, whose δ says that d is the root."""
    rng = np.random.default_rng(seed)
    a, p, k = rng.normal(size=(3, 3)) / 3 + 2 * np.eye(3), rng.normal(size=3) / 3, rng.normal(size=3)
    g, back, by_p = family(a, p)
    x = root_of(a, p)
    d = pullback(ROOT)
    (condition,) = [t for t in subterms(d.term) if isinstance(t, Delta)]
    (derivative,) = [t for t in subterms(d.term) if isinstance(t, Diff) and t.kind == "pullback"]
    let = next(t for t in subterms(d.term) if isinstance(t, Let))
    assert isinstance(let.body, Lam) and isinstance(d.term, Lam)
    unknown, cotangent = d.term.params
    values = {unknown: g, derivative: back, cotangent: k, condition.left: x}
    multiplier = evaluate(Lam(let.body.params, condition.body), values)
    expected = [oracle.slope(lambda h, e=e: k @ root_of(a, p + h * e)) for e in np.eye(3)]
    oracle.close(multiplier @ by_p(x), np.array(expected), 1e-8)


# --- Σ over a space of functions (Eq. 23) and its δ (Eq. 27) ----------------------------------------------------------

BODIES = ["F(f)", "F(f)^2", "sin(F(f)) * a", "a * F(f) + F(f)^3", "exp(F(f)) * F(f)"]


@pytest.mark.parametrize("space", ["RF", "RV", "CM", "(RV) -> R", "(R, R) -> C"])
@pytest.mark.parametrize("body", BODIES)
def test_eq_23_sums_over_functions_as_over_an_index(space, body):
    """A map of functions is an array whose index is a function: its pullback is that of an array."""
    indexed = pullback(f"(a::R) -> pullback((F::(N) -> R) -> (f::N) -> {body})")
    of_functions = pullback(f"(a::R) -> pullback((F::({space}) -> R) -> (f::{space}) -> {body})")
    assert not oracle.has_delta(of_functions) and oracle.sums_in(of_functions.term) == 0
    expected = str(indexed).split("-> f -> ")[1]
    assert str(of_functions).split(f"-> (f::{space}) ->")[1].split() == expected.split()


def test_eq_23_a_sum_over_functions_that_nothing_fixes_stays():
    d = pullback("pullback((x::R) -> (f::RF) -> f(x))")
    assert str(d) == "(x::R, k::(RF) -> R) -> sum(f::RF, k(f) * grad(f)(x))"
    assert r"\int k(f)" in d.latex() and r"\mathrm{d}f" in d.latex()


def test_eq_27_two_uses_of_a_map_of_functions():
    assert oracle.squeezed(pullback(NESTED)) == oracle.squeezed(
        "(h::RF) -> (g::(RF) -> RF, k::RF) -> (h1::RF) -> (d1::R) -> "
        "delta(h, h1, pullback(g)(g(h), k)(d1)) + delta(g(h), h1, k(d1))"
    )


def test_a_sum_over_vectors_meets_the_delta_of_a_second_derivative():
    d = cd.hvp("(y::RV) -> (g::(RV) -> R) -> g(y)^2")
    assert str(d) == "(y::RV) -> (g::(RV) -> R, k::(RV) -> R) -> (y1::RV) -> delta(y, y1, 2 * k(y))"


def test_of_a_sum_of_terms_those_with_a_delta_lose_it():
    d = pullback("(h::RF) -> pullback((F::(RF) -> R) -> (f::RF) -> F(f) * F(h))")
    (left,) = [t for t in subterms(d.term) if isinstance(t, Sum)]
    assert "F(h) * k(f) +" in str(d) and isinstance(left.indices[0].kind, Map)


# --- forward mode: no δ is left, so that there are numbers ------------------------------------------------------------


def test_eq_10_the_pushforward_by_a_map_of_functions():
    d = cd.jvp("(h::RF) -> pullback((F::(RF) -> R) -> (f::RF) -> F(f) * F(h))")
    assert str(d) == "(h::RF) -> (F::(RF) -> R, k::(RF) -> R) -> (f::RF) -> F(h) * k(f) + F(f) * k(h)"


@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_pushforward_by_a_map_of_vectors_is_its_derivative_along_another_map(seed):
    d = cd.jvp("(a::RV) -> (g::(RV) -> R, x::RV) -> g(x)^2 * sum(i, a(i) * x(i))")
    a, x, k = np.random.default_rng(seed).normal(size=(3, 4))

    def g(v):
        return np.sum(np.sin(v))

    def along(v):
        return np.exp(v[0]) + v @ v

    found = d.compile()(a=a, x=x, k2=k, g=g, k1=along, grad_g=np.cos)
    moved = oracle.slope(lambda h: (g(x + h * k) + h * along(x + h * k)) ** 2 * (a @ (x + h * k)))
    oracle.close(found, moved, 1e-8)


# --- results as programs, formulas and refusals -----------------------------------------------------------------------


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_result_is_a_program_that_reads_back(name):
    written = str(pullback(PROGRAMS[name]))
    assert program_text(infer(parse(written))) == written


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_form_of_a_result_is_a_formula(name):
    d = pullback(PROGRAMS[name])
    for formula in (d.latex(), d.latex(style="paper"), d.unicode_text(), d.matrix_text()):
        assert formula
    assert d.unicode_text().count("δ(") == d.latex().count(r"\delta")


@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers_are_refused_in_words(name):
    d = pullback(PROGRAMS[name])
    for ask in (d.compile, d.check):
        with pytest.raises(CombDiffError) as refusal:
            ask()
        assert refusal.value.remedy


def test_the_meaning_of_a_delta_of_functions_is_no_number():
    d = pullback("(y::RV) -> (g::(RV) -> R) -> g(y)")
    variables = [v for t in subterms(d.term) if isinstance(t, Lam) for v in t.params]
    values = {v: {"g": np.sum, "k": 1.0}.get(v.name, np.ones(2)) for v in variables}
    with pytest.raises(UnsupportedError, match="no numerical value"):
        evaluate(next(t for t in subterms(d.term) if isinstance(t, Delta)), values)


@pytest.mark.parametrize(("mode", "said"), [(cd.jvp, "pushforward of g"), (cd.jacobian, "map of maps")])
def test_other_modes_refuse_a_root_by_its_map_of_vectors(mode, said):
    with pytest.raises(UnsupportedError, match=said) as refusal:
        mode(ROOT)
    assert "pullback" in refusal.value.remedy


def test_a_sum_over_vectors_of_no_map_is_refused():
    with pytest.raises(LanguageError, match="a sum runs over"):
        infer(parse("(A::RM) -> (x::RV) -> sum(y::RV, sum(i, x(i) * y(i)))"))


def test_a_delta_of_two_sorts_of_maps_is_refused():
    with pytest.raises(LanguageError, match="is expected here"):
        infer(parse("(x::RV, A::RM) -> delta(x, A, 1)"))
