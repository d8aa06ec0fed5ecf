"""Least action (section 1): a path's derivative is a linear map, whose pullback is its adjoint."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import combdiff as cd
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.language.printing.printer import program_text

from . import oracle

TEXT = oracle.example("least_action")
OVER_ARRAYS = """@space Der begin type = (RV) -> RV; linear = true end
(L::RO, D::Der) -> pullback((r::RV) -> sum(t, L(r(t), D(r)(t))))"""
ON_A_RING = """@domain P begin base = I; periodic = true end
@space Der begin type = ((P) -> R) -> ((P) -> R); linear = true end
(L::RO, D::Der) -> pullback((r::(P) -> R) -> sum(t, L(r(t), D(r)(t))))"""
gradient = cache(cd.grad)
SIZES = (1, 2, 5)


def formula(d):
    return str(d).split("end\n")[-1]


def central_differences(n):
    """d/dt on a ring of n points: antisymmetric, so that the adjoint is −d/dt."""
    shift = np.roll(np.eye(n), 1, axis=1)
    return (shift - shift.T) / 2


def test_the_gradient_of_the_action_is_the_euler_lagrange_expression():
    assert oracle.squeezed(formula(gradient(TEXT))) == oracle.squeezed(
        """(L::RO, D::Der) -> (r::RF) -> (t::R) ->
             grad(L, 1)(r(t), D(r)(t)) + adjoint(D)((t1::R) -> grad(L, 2)(r(t1), D(r)(t1)))(t)"""
    )


def test_the_gradient_of_the_action_in_latex():
    first, second = gradient(TEXT).latex().split(r"t \mapsto ", 1)[1].split(" + ")
    assert first == r"\nabla_{1} L(r(t), D(r)(t))"
    assert second.startswith(r"D^{\dagger}(t_{1} \mapsto \nabla_{2} L(r(t_{1}), ")


def test_an_index_that_stands_only_where_real_numbers_do_is_a_real_number():
    assert str(gradient(TEXT)) == str(gradient(TEXT.replace("sum(t,", "sum(t::R,")))


@pytest.mark.parametrize("text", [TEXT, OVER_ARRAYS, ON_A_RING])
def test_the_gradient_of_the_action_parses_back(text):
    written = str(gradient(text))
    assert program_text(infer(parse(written))) == written


def test_a_map_of_functions_has_no_array_code_and_says_so():
    with pytest.raises(cd.CombDiffError, match="a map of functions of real numbers") as refusal:
        gradient(TEXT).source()
    assert "periodic domain" in refusal.value.remedy


@pytest.mark.parametrize("text", [OVER_ARRAYS, ON_A_RING])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_action_of_a_pendulum_as_numbers(seed, size, text):
    rng = np.random.default_rng(seed)
    r, d = rng.normal(size=size), central_differences(size)
    run = gradient(text).compile()

    def grad_lagrangian(x, v):
        """Of L = v²/2 + cos x."""
        return -np.sin(x), v

    found = run(r, D=lambda x: d @ x, adjoint_D=lambda k: d.T @ k, grad_L=grad_lagrangian)
    oracle.close(found, -np.sin(r) - d @ d @ r)

    def action(moved):
        return float(np.sum((d @ moved) ** 2 / 2 + np.cos(moved)))

    direction = rng.normal(size=size)
    oracle.close(found @ direction, oracle.slope(lambda h: action(r + h * direction)), 1e-8)


def test_the_wrong_adjoint_would_be_seen():
    rng = np.random.default_rng(0)
    r, d = rng.normal(size=5), rng.normal(size=(5, 5))
    run = gradient(OVER_ARRAYS).compile()
    given = {"grad_L": lambda x, v: (x, v), "D": lambda x: d @ x}
    with pytest.raises(AssertionError):
        oracle.close(run(r, adjoint_D=lambda k: d @ k, **given), r + d.T @ d @ r)


def test_a_missing_adjoint_is_asked_for_by_what_it_is():
    with pytest.raises(cd.CombDiffError, match="is not given adjoint_D") as refusal:
        gradient(OVER_ARRAYS).compile()(np.ones(3), D=np.negative, grad_L=lambda x, v: (x, v))
    assert "Re⟨adjoint_D(k), x⟩ = Re⟨k, D(x)⟩" in refusal.value.remedy


@pytest.mark.slow
@pytest.mark.parametrize("derive", [cd.grad, cd.hvp])
@pytest.mark.parametrize("text", [OVER_ARRAYS, ON_A_RING])
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_action_passes_its_check(seed, text, derive):
    assert derive(text).check(seed)


@pytest.mark.parametrize("text", [OVER_ARRAYS, ON_A_RING])
def test_every_stage_over_a_ring_was_checked(text):
    assert [step.note for step in gradient(text).steps if "not checked" in step.note] == []
