"""A phase over several indices is a product of phases over fewer, and sums over it are taken one after the other."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.plan import Plan
from combdiff.simplify.graph.laws.phases import phases
from combdiff.terms.terms import IMAGINARY, add, call, conj, fresh, mul, number
from combdiff.terms.types import COMPLEX, REAL, Index

P, Q, R = (fresh(name, Index()) for name in "ijk")


def largest(plan: Plan) -> int:
    """How many indices the largest array that is computed has."""
    return max(step.rank for step in plan.steps if not isinstance(step.op, ops.Input))


@pytest.mark.parametrize(
    "argument, parts",
    [
        (mul(IMAGINARY, add(mul(P, R), mul(Q, R))), 2),
        (mul(number(2j), add(mul(P, R), P, R)), 1),
        (add(mul(IMAGINARY, P), mul(number(-3j), Q), mul(IMAGINARY, fresh("a", REAL))), 2),
        (mul(IMAGINARY, add(P, Q), add(Q, R)), 3),
        (mul(IMAGINARY, P), 1),
        (add(P, Q), 1),
        (mul(number(1 + 1j), add(P, Q)), 1),
        (mul(IMAGINARY, add(mul(fresh("z", COMPLEX), P), Q)), 1),
    ],
)
def test_imaginary_terms_with_indices_of_their_own_are_parts(argument, parts):
    assert len(phases(call("exp", argument), ())) == parts
    assert len(phases(conj(call("exp", argument)), ())) == parts


def test_what_is_known_everywhere_is_no_index():
    assert len(phases(call("exp", mul(IMAGINARY, add(P, Q))), {P})) == 1


PLANE = "sum((a::N{n}, b::N{m}), v(a, b) * abs2(sum((j, k), f(j, k) * %s)))"
PLANES = {
    "written out": PLANE % "exp(im * (j * a / 7 + k * b / 5))",
    "named": "begin; P = (a::N{n}, j::N{n}, b::N{m}, k::N{m}) -> exp(im * (j * a / 7 + k * b / 5)); "
    + PLANE % "P(a, j, b, k)"
    + "; end",
}


@pytest.mark.parametrize("name", PLANES)
def test_the_phase_of_a_plane_is_taken_apart(name):
    """Also where the program gives it a name; the gradient is 2 P* (v (P f))."""
    d = cd.grad(f"(v::RM{{n, m}}) -> (f::CM{{n, m}}) -> {PLANES[name]}")
    assert largest(d.plan()) == 2
    # names of a phase with four indices are no shorter than the phase, and are not looked for again and again
    assert not any(step.spent for step in d.steps)
    rng = np.random.default_rng(1)
    v, f = rng.normal(size=(5, 3)), rng.normal(size=(5, 3)) + 1j * rng.normal(size=(5, 3))
    a, b = np.arange(5), np.arange(3)
    one, other = np.exp(1j * np.outer(a, a) / 7), np.exp(1j * np.outer(b, b) / 5)
    wanted = 2 * one.conj() @ (v * (one @ f @ other)) @ other.conj()
    assert np.allclose(d.compile()(v=v, f=f), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [
        "(q::RV{n}, w::RV{m}) -> (x::RV{n}) -> sum((k, i, j), w(k) * q(i) * q(j) * real(exp(im * k * (x(i) - x(j)))))",
        "(w::CM{n, m}) -> (x::RV{n}, y::RV{m}) -> sum(k::N{9}, abs2(sum((i, j),"
        " w(i, j) * exp(im * (k * x(i) - k * y(j))))))",
    ],
)
def test_no_array_has_all_indices_of_a_phase(program):
    d = cd.grad(program)
    assert largest(d.plan()) == 2
    assert d.check()


@pytest.mark.slow
def test_exponentials_of_real_numbers_stay_whole():
    """exp(800) · exp(−800) is ∞ · 0."""
    d = cd.grad("(a::RV{n}, b::RV{m}) -> (x::RM{n, m}) -> sum((i, j), x(i, j)^2 * exp(a(i) - b(j)))")
    f = d.compile()
    assert prod(f(a=[800.0], b=[800.0], x=[[1.0]]).shape) == 1
    assert f(a=[800.0], b=[800.0], x=[[1.0]])[0, 0] == 2
