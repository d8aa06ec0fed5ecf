"""The Wannier spread over overlaps stored by neighbour, M(p, q, k, b) = S(p, q, k, k + b), beside Eq. 55-58."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import combdiff as cd

from . import oracle

NEIGHBOURS = oracle.example("wannier_neighbours")
SQUARE = oracle.example("wannier")
WITHOUT = NEIGHBOURS.replace("  symmetries = (M -> (p, q, k, b) -> M(q, p, k + b, -b)',)\n", "")
gradient, hessian = cache(cd.grad), cache(cd.hvp)
# orbitals, Wannier functions, points of the zone, steps
SIZES = ((2, 1, 7, 3), (1, 2, 3, 3), (2, 2, 2, 5), (2, 3, 1, 3), (1, 1, 1, 1), (3, 2, 2, 3))


def drawn(d, seed, orbitals, functions, points, steps):
    """Overlaps with the law, drawn from a Hermitian S: each is M(p, q, k, b) = S(p, q, k, k + b)."""
    t = oracle.trial(d, seed, M=(orbitals, orbitals, points, steps), w=(steps,), U=(orbitals, functions, points))
    rng = np.random.default_rng(seed)
    s = rng.standard_normal((orbitals, orbitals, points, points, 2)) @ (1, 1j)
    s = s + s.conj().transpose(1, 0, 3, 2)
    k, b = np.ogrid[0:points, -(steps // 2) : steps // 2 + 1]
    return t, s, s[:, :, k, (k + b) % points]


@pytest.mark.parametrize("expand", [False, True])
def test_the_gradient_is_one_term_with_factor_four(expand):
    (body,) = oracle.outputs(d := gradient(NEIGHBOURS, expand=expand))
    assert oracle.factors_in_front(body) == [4]
    assert str(d).count("w(b)") == 1
    assert not oracle.has_delta(d)


def test_the_gradient_as_an_expert_writes_it():
    text = oracle.squeezed(gradient(NEIGHBOURS))
    assert text.endswith("(p,n,k::BZ)->4*sum((q,b::X),M(p,q,k,b)*w(b)*rho(n,b)'*U(q,n,k+b))end")


def test_the_result_declares_the_law_and_parses_back():
    d = gradient(NEIGHBOURS)
    assert "symmetries = (M -> (p, q, k, b) -> M(q, p, k + b, -b)',)" in str(d)
    from combdiff.language.inference.infer import infer
    from combdiff.language.parsing.parser import parse
    from combdiff.language.printing.printer import program_text

    assert program_text(infer(parse(str(d)))) == str(d)


def test_without_the_law_there_are_two_terms():
    (body,) = oracle.outputs(gradient(WITHOUT))
    assert set(oracle.factors_in_front(body)) == {2}


@pytest.mark.slow
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("expand", [False, True])
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_gradient_as_numbers(seed, expand, sizes):
    d = gradient(NEIGHBOURS, expand=expand)
    t = oracle.trial(d, seed, M=(sizes[0], sizes[0], *sizes[2:]), w=sizes[3:], U=sizes[:3])
    oracle.close(t.run(), t.result())
    oracle.agrees_with_differences(t)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", SIZES)
def test_it_is_the_gradient_over_overlaps_of_all_pairs(sizes):
    t, s, m = drawn(gradient(NEIGHBOURS), 0, *sizes)
    w, u = t["w"], t["U"]
    near = cd.grad(NEIGHBOURS).compile("numpy", check="full")(M=m, w=w, U=u)
    oracle.close(near, gradient(SQUARE).compile("numpy", check="full")(S=s, w=w, U=u))


def test_arrays_without_the_law_are_refused():
    t, _, m = drawn(gradient(NEIGHBOURS), 0, 2, 1, 3, 3)
    with pytest.raises(cd.CombDiffError, match="does not have its declared symmetry M ->"):
        gradient(NEIGHBOURS).compile("numpy", check="full")(M=m + 1j, w=t["w"], U=t["U"])


@pytest.mark.slow
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_hessian_vector_product_as_numbers(seed):
    t = oracle.trial(hessian(NEIGHBOURS), seed, M=(1, 1, 3, 3), w=(3,), U=(1, 2, 3))
    oracle.close(t.run(), t.result())
    oracle.agrees_with_second_differences(t)


SKEW = """@space Skew begin type = (N, N) -> C; symmetries = (K -> (p, q) -> -K(q, p)',) end
(K::Skew) -> (x::CV) -> """


def test_the_quadratic_form_of_a_skew_hermitian_matrix_is_imaginary_and_its_gradient_zero():
    assert "-> 0" in str(cd.grad(SKEW + "sum((i, j), x(i)' * K(i, j) * x(j))"))


def test_i_times_a_skew_hermitian_matrix_has_one_term_with_factor_two():
    d = cd.grad(SKEW + "im * sum((i, j), x(i)' * K(i, j) * x(j))")
    t = oracle.trial(d, 0, K=(3, 3))
    oracle.close(t.run(), 2j * t["K"] @ t["x"])
    assert oracle.squeezed(d).endswith("i->2*im*sum(j,K(i,j)*x(j))")
