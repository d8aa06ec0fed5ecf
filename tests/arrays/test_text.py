"""Array programs as text: what each pass makes of one is recorded, and every plan is read back and verified."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields, replace

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.liveness import peak
from combdiff.arrays.lower.lower import guessed_sizes
from combdiff.arrays.packing.packed_plan import packed
from combdiff.arrays.passes.schedule import scheduled
from combdiff.arrays.plan import Plan
from combdiff.arrays.text import OPERATIONS, PlanTextError, read, text
from combdiff.arrays.verify import PlanError, verify
from combdiff.emit.emit import emit, spelling_of
from combdiff.errors import BudgetError, CombDiffError
from combdiff.terms.recursion import deep_recursion
from combdiff.terms.types import Domain
from tests.arrays.pass_texts import BY_HAND, CASES, SHOWN, shown
from tests.programs import WITH_FORMS
from tests.thinned import thinned

NUMPY = spelling_of("numpy")


@pytest.mark.sampled
@pytest.mark.parametrize("name", CASES)
def test_a_pass_makes_what_is_recorded(name: str) -> None:
    assert shown(name) == (SHOWN / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.sampled
@pytest.mark.parametrize("name", CASES)
def test_what_a_pass_makes_is_sound_and_reads_back(name: str) -> None:
    for plan in CASES[name].plans():
        is_sound_and_reads_back(plan)


def is_sound_and_reads_back(plan: Plan) -> None:
    verify(plan)
    written = text(plan)
    again = read(written)
    verify(again)
    assert text(again) == written
    assert emit(again, NUMPY) == emit(plan, NUMPY)


def test_every_recorded_text_is_there() -> None:
    assert {path.stem for path in SHOWN.glob("*.txt")} == {*CASES, *BY_HAND}


@pytest.mark.slow
@pytest.mark.parametrize("name", BY_HAND)
def test_what_is_to_come_is_sound_and_reads_back(name: str) -> None:
    written = (SHOWN / f"{name}.txt").read_text(encoding="utf-8")
    assert text(read(written)) == written
    is_sound_and_reads_back(read(written))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["grad", "hvp"])
@pytest.mark.parametrize("program", thinned(WITH_FORMS, 2))
def test_every_plan_is_sound_and_reads_back(program: str, mode: str) -> None:
    try:
        forms = getattr(cd, mode)(WITH_FORMS[program][0]).runnable.forms(mode == "grad")
        with deep_recursion():
            lowered = forms.plan(guessed_sizes(forms.formula), None)
    except CombDiffError as refused:
        pytest.skip(str(refused))
    names = [a.name for a in lowered.arguments if a.step is not None and a.step.rank > 1]
    small = packed(lowered, names)
    plans = [lowered, small, scheduled(lowered, NUMPY), scheduled(small, NUMPY)]
    with suppress(BudgetError):
        plans.append(scheduled(lowered, NUMPY, peak(lowered).bytes * 3 // 4))
    with deep_recursion():
        for plan in plans:
            is_sound_and_reads_back(plan)


def test_code_from_a_text_computes_what_the_plan_does() -> None:
    d = cd.grad("(A::RM) -> (x::RV) -> sum((i, j), A(i, j) * sin(x(i)) * x(j))")
    namespace: dict[str, object] = {}
    exec(emit(read(str(d.plan(A=(4, 4), x=(4,), ir=True))), NUMPY), namespace)
    A, x = np.random.default_rng(0).normal(size=(4, 4)), np.arange(4.0)
    assert np.allclose(namespace["gradient"](A, x), d.compile()(A, x))  # type: ignore[operator]


def test_a_plan_is_a_table_of_costs_or_its_text() -> None:
    d = cd.grad("(x::RV) -> (ir::RV) -> sum(i, x(i) * ir(i)^2)")
    assert "FLOPs" in str(d.plan(x=(3,)))
    assert str(d.plan(x=(3,), ir=(3,), ir_=True)).endswith("return t3")
    assert "<pre>" in d.plan(ir_=True)._repr_mimebundle_()["text/html"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("x: real[n] = tensor(y)", "line 2"),
        ("x = 3 +", "line 2 is no step"),
        ("t1: real[n] = add(y, places=((0,),), coefficients=(1,))", "'y'"),
        ("return y", "'y'"),
        ("while True: pass", "line 2 is no step"),
        ("size(n, 3)", "ends with what it returns"),
    ],
)
def test_what_is_no_plan_is_refused_with_its_line(line: str, said: str) -> None:
    with pytest.raises(PlanTextError, match=said):
        read(f"n = Domain(name='n')\n{line}\n")


def test_every_operation_has_a_name_of_its_own_and_is_described() -> None:
    assert len({kind.name for kind in OPERATIONS.values()}) == len(OPERATIONS) > 25
    assert all(kind.__doc__ for kind in OPERATIONS.values())


# --- the verifier ---------------------------------------------------------------------------------------------------

A_PLAN = CASES["lower_hartree_fock"].plans()[0]
N, M = Domain("n"), Domain("m")


def broken(kind: type[ops.Op], **facts: object) -> Plan:
    """The plan of Hartree–Fock with one operation that is told something else."""
    source = text(A_PLAN)
    plan = read(source)
    step = next(s for s in plan.steps if isinstance(s.op, kind))
    own = {name: value for name, value in facts.items() if name in {f.name for f in fields(step.op)}}
    rest = {name: value for name, value in facts.items() if name not in own}
    object.__setattr__(step, "op", replace(step.op, **own))
    for name, value in rest.items():
        object.__setattr__(step, name, value)
    return plan


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (broken(ops.Tensordot, left=(0,), right=(0,)), "label|ranks"),
        (broken(ops.Tensordot, left=(0,), right=(1,)), "ranges over"),
        (broken(ops.Tensordot, left=(0, 1)), "no labels"),
        (broken(ops.Mul, places=((1, 0),)), "ranges over"),
        (broken(ops.Mul, places=((0,),)), "ranks"),
        (broken(ops.Mul, complex=False), "complex where its factors are"),
        (broken(ops.Conj, complex=False), "complex where what it is made of is"),
        (broken(ops.Conj, domains=(M, N)), "ranges over"),
        (broken(ops.Input, argument="K"), "K is no argument"),
    ],
)
def test_the_verifier_sees_what_does_not_fit(plan: Plan, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        verify(plan)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("add(x, x, places=((0,), (0,)), coefficients=(1,))", "1 coefficients are for 2 terms"),
        ("permute(A, order=(0, 0))", "no order|ranks"),
        ("pick(A, fixed=((2, 0, n),))", "ranks|not there"),
        ("pick(A, fixed=((0, 0, m),))", "another domain"),
        ("sum(A, axes=(3,))", "ranks|not summed"),
        ("roll(x, axis=1, by=2)", "not there"),
        ("unknown(x, places=((0,),), function='f')", "f is no function"),
        ("slice(A, axis=0, block=m)", "no loop|ranks"),
        ("gather(A, i, slots=(None, (1,)), rank=1)", "more than 1 axes|ranks"),
    ],
)
def test_the_verifier_sees_operations_that_are_told_nonsense(line: str, said: str) -> None:
    plan = read(
        "n = Domain(name='n')\nm = Domain(name='m')\n"
        "A: real[n, n] = input(Number(complex=False))\nx: real[n] = input(Number(complex=False))\n"
        f"i: real[n] = range(domain=n)\nt1: real[n] = {line}\nreturn t1"
    )
    with pytest.raises(PlanError, match=said):
        verify(plan)


def test_the_verifier_sees_a_loop_whose_parts_are_not_its_steps() -> None:
    (_, plan) = CASES["loops"].plans()
    (loop, *_) = plan.loops
    members = tuple(replace(m, axis=None if m.axis == 0 else 0) for m in loop.members)
    with pytest.raises(PlanError, match="loop over"):
        verify(replace(plan, loops=(replace(loop, members=members),)))


def test_numbers_in_a_text_are_exact() -> None:
    plan = read(
        "x: complex = input(Number(complex=True))\n"
        "t1: complex = mul(x, places=((),), coefficient=(1/3) + (-2/7) * im)\nreturn t1"
    )
    (step,) = plan.outputs
    assert (
        isinstance(step.op, ops.Mul)
        and str(step.op.coefficient.real) == "1/3"
        and str(step.op.coefficient.imag) == "-2/7"
    )


@pytest.mark.slow
def test_equal_steps_are_one_after_all_passes() -> None:
    # numbers that are put early make two steps equal that were not
    d = cd.grad(
        "(m::RV, c::R, q::RV) -> (p::RM, A::RM) -> "
        "sum(i, sqrt(m(i)^2 + c^2 * sum(k, (p(i, k) - q(i) * A(i, k))^2))) + sum(i, q(i) / sqrt(1 - sum(k, A(i, k)^2)))"
    )
    plan = d.plan()
    keys = [(step.op, step.operands, step.domains) for step in plan.steps]
    assert len(set(keys)) == len(keys)
    is_sound_and_reads_back(plan)
