"""Functions of real numbers: ∫ in the objective, ∫ in the gradient; as numbers with R read as a periodic domain."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import combdiff as cd

from . import oracle

FORM = """@space Kernel begin type = (R, R) -> C; symmetries = (((2, 1), :conj),) end
(H::Kernel) -> (psi::(R) -> C) -> sum((x::R, y::R), psi(x)' * H(x, y) * psi(y))"""
GENERAL = FORM.replace("; symmetries = (((2, 1), :conj),)", "")
CONVOLUTION = "(w::(R) -> R, g::(R) -> R) -> (f::(R) -> R) -> sum((t::R, s::R), w(t) * f(s) * g(t - s))"
NAMED = """(w::(R) -> R, g::(R) -> R) -> (f::(R) -> R) -> begin
    conv = (t::R) -> sum(s::R, f(s) * g(t - s))
    sum(t::R, w(t) * conv(t))
end"""
FOURIER = "(f::CF) -> (ω::R) -> sum(r::R, exp(-im * ω * r) * f(r))"
SIZES = (1, 2, 3, 7)
gradient = cache(cd.grad)


def periodic(text):
    """The same program with indices of a periodic domain for real numbers."""
    text = text.replace("(R, R) -> C", "(P, P) -> C").replace("(R) ->", "(P) ->").replace("::R,", "::P,")
    return "@domain P begin base = I; periodic = true end\n" + text.replace("::R)", "::P)")


def formula(d):
    return str(d).splitlines()[-1]


def shifted(g):
    """g(t − s) as a matrix of t and s, wrapping round."""
    n = len(g)
    return g[(np.arange(n)[:, None] - np.arange(n)[None, :]) % n]


def test_the_gradient_of_a_hermitian_form_of_functions_is_one_integral():
    assert formula(gradient(FORM)) == "(H::Kernel) -> (psi::CF) -> (x::R) -> 2 * sum(y::R, H(x, y) * psi(y))"


def test_the_gradient_of_a_hermitian_form_of_functions_in_latex():
    integral = r"2 \int H(x, y) \psi(y)\, \mathrm{d}y"
    assert gradient(FORM).latex() == r"H \mapsto \psi \mapsto x \mapsto " + integral


def test_the_gradient_of_a_general_form_of_functions_is_two_integrals():
    (body,) = oracle.outputs_over_reals(gradient(GENERAL))
    assert oracle.factors_in_front(body) == [1, 1]


def test_a_real_symmetric_kernel_gives_one_integral_too():
    text = FORM.replace("C;", "R;").replace(":conj", ":id").replace("-> C)", "-> R)").replace("psi(x)'", "psi(x)")
    assert formula(gradient(text)) == "(H::Kernel) -> (psi::RF) -> (x::R) -> 2 * sum(y::R, H(x, y) * psi(y))"


@pytest.mark.parametrize("text", [CONVOLUTION, NAMED])
def test_the_gradient_of_a_convolution_is_a_correlation(text):
    d = gradient(text)
    assert str(d) == "(w::RF, g::RF) -> (f::RF) -> (s::R) -> sum(t::R, w(t) * g(t - s))"
    assert not oracle.has_delta(d)


def test_the_gradient_of_a_convolution_in_latex():
    integral = r"\int w(t)\, g(t - s)\, \mathrm{d}t"
    assert gradient(CONVOLUTION).latex() == r"(w, g) \mapsto f \mapsto s \mapsto " + integral


def test_a_convolution_with_its_arguments_exchanged_has_the_same_gradient():
    d = gradient(CONVOLUTION.replace("f(s) * g(t - s)", "f(t - s) * g(s)"))
    assert str(d) == "(w::RF, g::RF) -> (f::RF) -> (d::R) -> sum(s::R, w(s + d) * g(s))"


def test_eq_2_the_pullback_of_the_fourier_transform_has_the_opposite_phase():
    d = cd.pullback(f"pullback({FOURIER})")
    assert str(d) == "(f::CF, k::CF) -> (r::R) -> sum(ω::R, k(ω) * exp(im * ω * r))"


def test_an_integral_that_has_no_finite_value_is_refused_in_words():
    with pytest.raises(cd.CombDiffError, match="real line"):
        gradient(CONVOLUTION).check()
    with pytest.raises(cd.CombDiffError):
        gradient(CONVOLUTION).compile()


@pytest.mark.parametrize("text", [FOURIER, "(a::R) -> (f::RF) -> f(f(a))"])
def test_a_cotangent_that_is_a_function_cannot_break_the_check(text):
    d = cd.pullback(f"pullback({text})" if text == FOURIER else text)
    try:
        d.check()
    except cd.CombDiffError as error:
        assert error.remedy


@pytest.mark.parametrize("text", [FORM, CONVOLUTION])
def test_over_a_periodic_domain_the_formula_is_the_same(text):
    found = oracle.squeezed(formula(gradient(periodic(text)))).split("->")[-1]
    assert found == oracle.squeezed(formula(gradient(text)).replace("::R", "::P")).split("->")[-1]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_hermitian_form_as_numbers(seed, size):
    t = oracle.trial(gradient(periodic(FORM)), seed, H=(size, size), psi=(size,))
    oracle.close(t.result(), 2 * t["H"] @ t["psi"])
    oracle.close(t.run(), 2 * t["H"] @ t["psi"])
    oracle.agrees_with_differences(t)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_general_form_as_numbers(seed, size):
    t = oracle.trial(gradient(periodic(GENERAL)), seed, H=(size, size), psi=(size,))
    oracle.close(t.run(), (t["H"] + t["H"].conj().T) @ t["psi"])
    oracle.agrees_with_differences(t)


@pytest.mark.parametrize("text", [CONVOLUTION, NAMED])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_convolution_as_numbers(seed, size, text):
    t = oracle.trial(gradient(periodic(text)), seed, w=(size,), g=(size,), f=(size,))
    expected = t["w"] @ shifted(t["g"])
    oracle.close(t.result(), expected)
    oracle.close(t.run(), expected)
    oracle.agrees_with_differences(t)


@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_convolution_by_jax(seed):
    jnp = pytest.importorskip("jax.numpy")
    t = oracle.trial(gradient(periodic(CONVOLUTION)), seed, w=(5,), g=(5,), f=(5,))
    turned = shifted(t["g"])
    oracle.close(t.run(), oracle.jax_gradient(lambda f: jnp.sum(t["w"] * (turned @ f)), t["f"]))
