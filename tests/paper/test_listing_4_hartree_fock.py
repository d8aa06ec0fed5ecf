"""Listings 1 and 4: the Hartree–Fock energy (Eq. 52), its gradient (Eq. 53) and Hessian-vector product (Eq. 54)."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

import combdiff as cd
from combdiff.language.printing.printer import expression_text

from . import oracle

SYMMETRIC = oracle.example("hartree_fock")
GENERAL = oracle.example("hartree_fock_general")
# N_basis and N_e; wide, tall, single, and no basis function at all
SIZES = ((1, 1), (2, 3), (3, 2), (0, 2), (2, 0))
gradient, pullback, hessian = cache(cd.grad), cache(cd.pullback), cache(cd.hvp)


def shapes(basis, electrons):
    return {"J": (basis,) * 4, "C": (basis, electrons)}


def energy(j, c):
    return np.einsum("pi,qi,rj,sj,pqrs->", c.conj(), c, c.conj(), c, j)


def general_gradient(j, c):
    """∂E/∂Re C + i ∂E/∂Im C of the real part of E, for any J."""
    bra = np.einsum("pqrs,qi,rj,sj->pi", j, c, c.conj(), c) + np.einsum("rspq,qi,rj,sj->pi", j, c, c.conj(), c)
    ket = np.einsum("pqrs,pi,rj,sj->qi", j, c.conj(), c.conj(), c)
    ket = ket + np.einsum("rspq,pi,rj,sj->qi", j, c.conj(), c.conj(), c)
    return bra + ket.conj()


def product(j, c, k):
    """Eq. 54 as it follows from G = 4 J[C, C*] C by the product rule."""
    fock = np.einsum("pqrs,rj,sj->pq", j, c.conj(), c)
    change = np.einsum("pqrs,rj,sj->pq", j, k.conj(), c) + np.einsum("pqrs,rj,sj->pq", j, c.conj(), k)
    return 4 * (fock @ k + change @ c)


def test_eq_53_the_gradient_is_one_term_with_factor_four():
    assert oracle.squeezed(gradient(SYMMETRIC)) == oracle.squeezed("""
        @space T begin
          type = (N, N, N, N) -> C
          symmetries = (((2, 1, 4, 3), :conj), ((3, 4, 1, 2), :id))
        end
        (J::T) -> (C::CM) -> (p, i) -> 4 * sum((q, r, s, j), J(p, q, r, s) * C(q, i) * C(r, j)' * C(s, j))
    """)


def test_eq_53_in_latex():
    formula = r"J \mapsto C \mapsto (p, i) \mapsto 4 \sum_{q,r,s,j} J_{p,q,r,s}\, C_{q,i}\, C_{r,j}^{*} C_{s,j}"
    assert gradient(SYMMETRIC).latex() == formula


def test_without_declared_symmetries_four_entries_of_the_integrals_stand_in_the_product():
    (body,) = oracle.outputs(gradient(GENERAL))
    assert oracle.factors_in_front(body) == [1]
    entries = re.findall(r"\(([^()]*(?:J\([^()]*\)[^()]*){4})\)", str(gradient(GENERAL)))
    assert len(entries) == 1
    assert oracle.slot_names(gradient(GENERAL)) == [("p", "i")]


def test_one_of_the_two_symmetries_leaves_two_entries():
    for kept in ("((2, 1, 4, 3), :conj)", "((3, 4, 1, 2), :id)"):
        text = SYMMETRIC.replace("((2, 1, 4, 3), :conj), ((3, 4, 1, 2), :id)", kept + ",")
        (body,) = oracle.outputs(gradient(text))
        assert oracle.factors_in_front(body) == [2]
        assert str(gradient(text)).count(" J(") + str(gradient(text)).count("(J(") == 2


def test_eq_54_the_hessian_vector_product_has_three_terms_with_factor_four():
    # the last two have J(p, q, r, s) C(q, i) in common, and are written as one
    (body,) = oracle.outputs(hessian(SYMMETRIC))
    assert oracle.factors_in_front(body) == [4, 4]
    assert [oracle.squeezed(expression_text(term)).count("k(") for term in oracle.terms_of(body)] == [1, 2]
    assert not oracle.has_delta(hessian(SYMMETRIC))


def test_eq_54_keeps_the_names_of_the_slots_of_the_gradient():
    assert oracle.slot_names(hessian(SYMMETRIC)) == [("p", "i")]


@pytest.mark.sampled
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_eq_53_as_numbers(seed, sizes):
    t = oracle.trial(gradient(SYMMETRIC), seed, **shapes(*sizes))
    expected = 4 * np.einsum("pqrs,qi,rj,sj->pi", t["J"], t["C"], t["C"].conj(), t["C"])
    oracle.close(t.result(), expected)
    oracle.close(t.run(), expected)
    oracle.agrees_with_differences(t)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_gradient_without_symmetries_as_numbers(seed, sizes):
    t = oracle.trial(gradient(GENERAL), seed, **shapes(*sizes))
    oracle.close(t.result(), general_gradient(t["J"], t["C"]))
    oracle.close(t.run(), general_gradient(t["J"], t["C"]))
    oracle.agrees_with_differences(t)


@pytest.mark.slow
@pytest.mark.parametrize("text", [SYMMETRIC, GENERAL])
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_pullback_with_a_complex_cotangent(seed, text):
    t = oracle.trial(pullback(text), seed, **shapes(3, 2))
    oracle.close(t.run(), t.result())
    oracle.agrees_with_differences(t)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_eq_54_as_numbers(seed, sizes):
    t = oracle.trial(hessian(SYMMETRIC), seed, **shapes(*sizes))
    expected = product(t["J"], t["C"], t["k"])
    oracle.close(t.result(), expected)
    oracle.close(t.run(), expected)
    oracle.agrees_with_second_differences(t)


@pytest.mark.slow
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_hessian_vector_product_without_symmetries_as_numbers(seed):
    t = oracle.trial(hessian(GENERAL), seed, **shapes(2, 3))
    h = 1e-3
    expected = oracle.slope(lambda s: general_gradient(t["J"], t["C"] + s * t["k"]), h)
    oracle.close(t.run(), expected)
    oracle.agrees_with_second_differences(t)


@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_eq_52_the_energy_comes_with_its_gradient(seed):
    t = oracle.trial(gradient(SYMMETRIC), seed, **shapes(3, 2))
    value, _ = t.run(value=True)
    oracle.close(value, energy(t["J"], t["C"]))
    oracle.close(t.objective(), energy(t["J"], t["C"]))


@pytest.mark.slow
@pytest.mark.parametrize("text", [SYMMETRIC, GENERAL])
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_gradient_is_the_conjugate_of_what_jax_returns(seed, text):
    jnp = pytest.importorskip("jax.numpy")
    t = oracle.trial(gradient(text), seed, **shapes(3, 2))

    def f(c):
        return jnp.einsum("pi,qi,rj,sj,pqrs->", c.conj(), c, c.conj(), c, t["J"]).real

    oracle.close(t.run(), oracle.jax_gradient(f, t["C"]))
