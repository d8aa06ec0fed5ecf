"""Restricted Hartree–Fock: written flat it is collected to the Fock matrix; J and K of the user are recognised."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd

from . import oracle

SPACE = """@space V begin
  type = (N, N, N, N) -> R
  symmetries = (((2, 1, 3, 4), :id), ((1, 2, 4, 3), :id), ((3, 4, 1, 2), :id))
end
(h::Sym, V::V) -> (C::RM) -> """
FLAT = (
    SPACE
    + """2 * sum((p, q, i), h(p, q) * C(p, i) * C(q, i)) +
  2 * sum((p, q, r, s, i, j), V(p, q, r, s) * C(p, i) * C(q, i) * C(r, j) * C(s, j)) -
  sum((p, q, r, s, i, j), V(p, r, q, s) * C(p, i) * C(q, i) * C(r, j) * C(s, j))"""
)
NAMED = (
    SPACE
    + """begin
  P = (p, q) -> sum(i, C(p, i) * C(q, i))
  J = (p, q) -> sum((r, s), V(p, q, r, s) * P(r, s))
  K = (p, q) -> sum((r, s), V(p, r, q, s) * P(r, s))
  sum((p, q), P(p, q) * (2 * h(p, q) + 2 * J(p, q) - K(p, q)))
end"""
)


def test_written_flat_the_fock_matrix_is_found():
    found = oracle.squeezed(cd.grad(FLAT))
    assert oracle.squeezed("P = (p, q) -> sum(i, C(p, i) * C(q, i))") in found
    fock = "4 * sum(q, C(q, i) * (h(p, q) + sum((r, s), P(r, s) * (2 * V(p, q, r, s) - V(p, r, q, s)))))"
    assert oracle.squeezed(fock) in found


def test_coulomb_and_exchange_of_the_user_are_recognised():
    assert oracle.squeezed("4 * sum(q, C(q, i) * (h(p, q) + 2 * J(p, q) - K(p, q)))") in oracle.squeezed(cd.grad(NAMED))


@pytest.mark.sampled
@pytest.mark.parametrize("text", [FLAT, NAMED])
def test_the_gradient_as_numbers(text):
    t = oracle.trial(cd.grad(text), 0, C=(4, 2))
    density = t["C"] @ t["C"].T
    fock = t["h"] + 2 * np.einsum("pqrs,rs->pq", t["V"], density) - np.einsum("prqs,rs->pq", t["V"], density)
    oracle.close(t.run(), 4 * fock @ t["C"])
