"""The Wannier spread over neighbours in zones of one and of three directions; the steps b::X are a list."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import combdiff as cd

from . import oracle

LATTICE = oracle.example("wannier_lattice")
LINE = LATTICE.replace("base = (I, I, I)", "base = I")
PLANE = LATTICE.replace("base = (I, I, I)", "base = (I, I)")
STEPS = oracle.example("wannier_neighbours")
WITHOUT = LATTICE.replace("  symmetries = (M -> (p, q, k, b) -> M(q, p, k + b, -b)',)\n", "")
gradient, hessian = cache(cd.grad), cache(cd.hvp)

SQUARE = [[1, 0, 0], [0, -1, 0], [-1, 0, 0], [0, 1, 0]]
SKEWED = [[0, 0, 0], [1, -1, 2], [-1, 1, -2]]
CASES = (
    # orbitals, Wannier functions, points along each direction, steps
    (2, 1, (3, 2, 1), SQUARE),
    (1, 2, (2, 2, 3), SKEWED),
    (2, 2, (1, 1, 1), [[0, 0, 0]]),
    (3, 2, (2, 3, 2), [[1, 0, 0], [-1, 0, 0]]),
)


def spread_by_hand(m, w, u, x):
    """(Σ w |ρ|², its gradient), a loop over steps: rolled gauges in the place of U(q, n, k + b)."""
    value, gradient = 0.0, np.zeros_like(u)
    for b, step in enumerate(np.asarray(x)):
        moved = np.roll(u, tuple(-step), axis=tuple(range(2, u.ndim)))
        rho = np.einsum("pn...,pq...,qn...->n...", u.conj(), m[..., b], moved).reshape(u.shape[1], -1).sum(axis=1)
        value += w[b] * np.sum(np.abs(rho) ** 2)
        gradient += 4 * w[b] * np.einsum("pq...,qn...,n->pn...", m[..., b], moved, rho.conj())
    return value, gradient


@pytest.mark.slow
@pytest.mark.parametrize("text", [LATTICE, PLANE, LINE])
@pytest.mark.parametrize("expand", [False, True])
def test_the_gradient_is_one_term_with_factor_four(text, expand):
    (body,) = oracle.outputs(d := gradient(text, expand=expand))
    assert oracle.factors_in_front(body) == [4]
    assert str(d).count("w(b)") == 1
    assert not oracle.has_delta(d)


def test_the_gradient_as_an_expert_writes_it():
    text = oracle.squeezed(gradient(LATTICE))
    assert text.endswith("(p,n,k::BZ)->4*sum((q,b::X),M(p,q,k,b)*w(b)*rho(n,b)'*U(q,n,k+b))end")


def test_an_index_of_three_directions_is_one_index_in_latex():
    text = gradient(LATTICE).latex()
    assert r"4 \sum_{q,b} M_{p,q,k,b}\, w_{b}\, \rho_{n,b}^{*} U_{q,n,k+b}" in text


@pytest.mark.parametrize("text", [LATTICE, LINE])
def test_the_result_declares_its_domains_and_parses_back(text):
    from combdiff.language.inference.infer import infer
    from combdiff.language.parsing.parser import parse
    from combdiff.language.printing.printer import program_text

    d = gradient(text)
    base = "(I, I, I)" if text is LATTICE else "I"
    assert f"@domain BZ begin base = {base}; periodic = true end" in str(d)
    assert f"@domain X begin base = {base}; list = true; symmetric = true; contractable = false end" in str(d)
    assert program_text(infer(parse(str(d)))) == str(d)


def test_without_the_law_there_are_two_terms():
    (body,) = oracle.outputs(gradient(WITHOUT))
    assert set(oracle.factors_in_front(body)) == {2}


@pytest.mark.slow
@pytest.mark.parametrize("orbitals, functions, zone, steps", CASES)
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_value_and_gradient_in_three_directions_as_an_expert_computes_them(seed, orbitals, functions, zone, steps):
    shapes = {"M": (orbitals, orbitals, *zone, len(steps)), "U": (orbitals, functions, *zone)}
    t = oracle.trial(gradient(LATTICE), seed, lists={"X": steps}, **shapes)
    value, expected = spread_by_hand(t["M"], t["w"], t["U"], steps)
    oracle.close(t.run(), expected)
    f = gradient(LATTICE).compile("numpy", value=True, check="full")
    oracle.close(f(M=t["M"], w=t["w"], U=t["U"], X=steps), (value, expected))
    oracle.close(t.result(), expected)


@pytest.mark.parametrize("orbitals, functions, zone, steps", CASES[:2])
def test_the_gradient_in_three_directions_agrees_with_differences(orbitals, functions, zone, steps):
    shapes = {"M": (orbitals, orbitals, *zone, len(steps)), "U": (orbitals, functions, *zone)}
    oracle.agrees_with_differences(oracle.trial(gradient(LATTICE), 0, lists={"X": steps}, **shapes))


@pytest.mark.slow
@pytest.mark.parametrize("steps", [[1, -1], [[2], [0], [-2]], [0, 3, -3, -1, 1]])
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_gradient_in_one_direction_as_numbers(seed, steps):
    t = oracle.trial(gradient(LINE), seed, lists={"X": steps}, M=(2, 2, 7, len(steps)), U=(2, 3, 7))
    _, expected = spread_by_hand(t["M"], t["w"], t["U"], np.reshape(steps, (-1, 1)))
    oracle.close(t.run(), expected)
    oracle.close(t.result(), expected)
    oracle.agrees_with_differences(t)


@pytest.mark.slow
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_a_list_of_all_steps_is_a_symmetric_domain(seed):
    shapes = {"M": (2, 2, 5, 3), "U": (2, 1, 5)}
    t = oracle.trial(gradient(STEPS), seed, w=(3,), **shapes)
    near = gradient(LINE).compile("numpy", check="full")(M=t["M"], w=t["w"], U=t["U"], X=[-1, 0, 1])
    oracle.close(near, t.run())


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.sampled_from([(2, 3), (3, 2), (1, 5), (3, 4)]), st.integers(0, 50), st.lists(st.integers(1, 5), max_size=2))
def test_a_lattice_of_coprime_sizes_is_a_ring(zone, seed, ahead):
    """k ↦ (k mod m, k mod n) takes the ring of m n points to the lattice m × n, sums of indices to sums of points."""
    points = zone[0] * zone[1]
    steps = [s for a in dict.fromkeys(ahead) for s in (a, -a)]
    t = oracle.trial(gradient(LINE), seed, lists={"X": steps}, M=(2, 2, points, len(steps)), U=(2, 1, points))
    k = np.arange(points)
    m, u = np.zeros((2, 2, *zone, len(steps)), complex), np.zeros((2, 1, *zone), complex)
    m[:, :, k % zone[0], k % zone[1]] = t["M"]
    u[:, :, k % zone[0], k % zone[1]] = t["U"]
    x = np.array([(s, s) for s in steps], int).reshape(-1, 2)
    found = gradient(PLANE).compile("numpy", check="full")(M=m, w=t["w"], U=u, X=x)
    oracle.close(found[:, :, k % zone[0], k % zone[1]], t.run())


@pytest.mark.slow
def test_the_order_of_the_steps_is_no_matter():
    t = oracle.trial(gradient(LATTICE), 0, lists={"X": SQUARE}, M=(2, 2, 3, 2, 2, 4), U=(2, 1, 3, 2, 2))
    order = [2, 0, 3, 1]
    f = gradient(LATTICE).compile("numpy", check="full")
    moved = f(M=t["M"][..., order], w=t["w"][order], U=t["U"], X=np.array(SQUARE)[order])
    oracle.close(moved, t.run())


def test_overlaps_without_the_law_are_refused():
    t = oracle.trial(gradient(LATTICE), 0, lists={"X": SQUARE}, M=(2, 2, 3, 2, 2, 4), U=(2, 1, 3, 2, 2))
    f = gradient(LATTICE).compile("numpy", check="full")
    with pytest.raises(cd.CombDiffError, match="does not have its declared symmetry M ->"):
        f(M=t["M"] + 1j, w=t["w"], U=t["U"], X=SQUARE)


@pytest.mark.slow
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_hessian_vector_product_in_three_directions(seed):
    t = oracle.trial(hessian(LATTICE), seed, lists={"X": SQUARE}, M=(1, 1, 3, 2, 1, 4), U=(1, 2, 3, 2, 1))
    oracle.close(t.run(), t.result())
    oracle.agrees_with_second_differences(t)


@pytest.mark.slow
def test_the_check_of_the_program_passes():
    assert gradient(LATTICE).check(seed=2)
