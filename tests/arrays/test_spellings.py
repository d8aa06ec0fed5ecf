"""One plan cost for all spellings of a program: its factors and terms in any order, for value, gradient and Hessian
product.

Up to one in a hundred: of equal orders of a contraction the first is taken, and the statements around it may differ by
a sum over a matrix.
"""

from __future__ import annotations

import pytest

import combdiff as cd
from combdiff.calculus.modes import marked_program
from combdiff.derivation import Derivation
from combdiff.deriving.derive import derived
from combdiff.gate.gate import Gate
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.simplify.stages import Simplifier
from combdiff.terms.recursion import deep_recursion
from tests.programs import ROOT
from tests.terms.test_any_order import shuffled
from tests.thinned import thinned

PROGRAMS = {
    path.stem: path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "examples").glob("*.cd"))
    if path.stem not in ("least_action", "wannier_neighbours", "wannier_lattice", "conjugate_gradient")
} | {
    "softmax": "(T::RM) -> (z::RM) -> -sum((n, k), T(n, k) * log(exp(z(n, k)) / sum(l, exp(z(n, l)))))",
    "orbitals": """@space ERI begin type = (N, N, N, N) -> R
      symmetries = (((2, 1, 3, 4), :id), ((1, 2, 4, 3), :id), ((3, 4, 1, 2), :id)) end
    (h::Sym, V::ERI, D::Sym, G::ERI) -> (C::RM) -> sum((p, q, t, u), h(p, q) * C(p, t) * C(q, u) * D(t, u)) +
      1/2 * sum((p, q, r, s, t, u, v, w),
        V(p, q, r, s) * C(p, t) * C(q, u) * C(r, v) * C(s, w) * G(t, u, v, w))""",
}


def spelled(text: str, mode: str, seed: int) -> Derivation:
    """The derivation of a program whose factors and terms stand in another order; as it is for seed 0."""
    with deep_recursion():
        program = marked_program(infer(parse(text)), ())
        return derived(text, mode, shuffled(program, seed) if seed else program, Simplifier(Gate()), "<text>")


def cost(d: Derivation, value: bool) -> int:
    """The operations of the plan."""
    plan = d.plan(value=value)
    return sum(map(plan.flops, plan.steps))


@pytest.mark.slow
@pytest.mark.parametrize("name", thinned(PROGRAMS))
@pytest.mark.parametrize(("mode", "value"), [("grad", False), ("grad", True), ("hvp", False)])
def test_all_spellings_have_one_cost(name: str, mode: str, value: bool) -> None:
    costs = [cost(spelled(PROGRAMS[name], mode, seed), value) for seed in range(4)]
    assert max(costs) <= 1.01 * min(costs)


EXPONENTS = (
    "-sum(d, (x(i, d) - x(j, d))^2) / (2 * h^2)",
    "-(1/2) * sum(d, (x(i, d) - x(j, d))^2) / h^2",
    "-(2 * h^2)^-1 * sum(d, (x(j, d) - x(i, d))^2)",
    "-sum(d, ((x(i, d) - x(j, d)) / h)^2) / 2",
    "-sum(d, (x(i, d) - x(j, d))^2 / h^2) / 2",
)


@pytest.mark.sampled
@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize(("given", "varied"), [("x::RM", "h::R"), ("h::R", "x::RM")])
def test_a_value_and_its_gradient_share_a_function_however_its_argument_is_spelled(
    exponent: str, given: str, varied: str
) -> None:
    d = cd.grad(f"(a::RV, {given}) -> ({varied}) -> sum((i, j), a(i) * a(j) * exp({exponent}))")
    assert d.source(value=True).count("np.exp(") == 1


@pytest.mark.sampled
@pytest.mark.parametrize("residual", ["sum(j, A(i, j) * x(j)) - b(i)", "r(i)", "-(b(i) - sum(j, x(j) * A(i, j)))"])
def test_a_value_takes_the_root_that_its_gradient_takes(residual: str) -> None:
    definition = "r = i -> sum(j, A(i, j) * x(j)) - b(i); " if residual == "r(i)" else ""
    d = cd.grad(
        f"(A::RM, b::RV, d::R) -> (x::RV) -> begin {definition}sum(i, d^2 * (sqrt(1 + (({residual}) / d)^2) - 1)) end"
    )
    assert d.source(value=True).count("np.sqrt(") == 1
