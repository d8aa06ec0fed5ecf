"""The gate evaluates once what is the same in several places."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from combdiff.gate import numeric
from combdiff.gate.gate import Gate, gate_for
from combdiff.gate.labelled import Labelled
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.terms.terms import Call, Lam, Let, Loop, Reduce, Term, call, fresh, subterms
from combdiff.terms.types import REAL


def _body(text: str) -> Term:
    program = infer(parse(text))
    assert isinstance(program, Lam), "a map"
    return program.body


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> Counter[Term]:
    """How often each term is evaluated."""
    counts: Counter[Term] = Counter()
    step = numeric.Evaluation._step

    def counted(self: numeric.Evaluation, t: Term) -> Labelled:
        counts[t] += 1
        return step(self, t)

    monkeypatch.setattr(numeric.Evaluation, "_step", counted)
    return counts


TWO_STATES = "(x::R) -> begin (a, b) = iterate(((a, b), t) -> (a * b, a + b), (x, 1), 5); a + 2 * b end"


def test_loops_that_keep_different_states_go_through_them_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loops: list[Loop] = []
    recurrence = numeric.recurrence_of

    def counted(t: Loop, *how: Any) -> Any:
        loops.append(t)
        return recurrence(t, *how)

    monkeypatch.setattr(numeric, "recurrence_of", counted)
    body = _body(TWO_STATES)
    assert len([*subterms(body, Loop)]) == 2
    gate_for(body)._sample(second=False).outputs(body)
    assert len(loops) == 1


def test_each_loop_has_its_own_state_all_the_same() -> None:
    body = _body(TWO_STATES)
    assert isinstance(body, Let), "definitions of loops"
    sample = gate_for(body)._sample(second=False)
    values = [sample.outputs(loop)[0] for _, loop in body.bindings]
    (whole,) = sample.outputs(body)
    a, b = values
    assert not np.array_equal(a, b) and abs(whole) <= numeric.HALF
    assert (a + 2 * b - whole) % 4_194_287 == 0


def test_what_a_step_does_not_change_is_evaluated_once(evaluated: Counter[Term]) -> None:
    body = _body("(x::R, y::R) -> iterate((s, t) -> s * sin(y) + cos(s), x, 5)")
    gate_for(body)._sample(second=False).outputs(body)
    often = {t.primitive: n for t, n in evaluated.items() if isinstance(t, Call)}
    assert often["sin"] == 1 and often["cos"] == 4


def test_what_has_no_value_in_the_field_is_found_out_once(evaluated: Counter[Term]) -> None:
    body = _body("(x::RV) -> sum(i, exp(x(i))) + maximum(j, x(j))")
    gate = Gate()
    assert gate.agree(body, body)
    refused = [t for t in evaluated if isinstance(t, Reduce)]
    # once in the field, and for each of two sizes in floating point
    assert [evaluated[t] for t in refused] == [3]


def test_values_are_kept_over_a_stage_in_which_nothing_is_compared(evaluated: Counter[Term]) -> None:
    sine = call("sin", fresh("x", REAL))
    sample = gate_for(sine)._sample(second=False)
    sample.outputs(sine)
    sample.turn()
    sample.turn()
    once = evaluated.copy()
    sample.outputs(sine)
    assert evaluated == once
