"""A loop of several states is run once by the oracle, however many of its states are asked for."""

from __future__ import annotations

import numpy as np
import pytest

from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.meaning.evaluate import evaluate
from combdiff.terms.terms import Lam

TEXT = """(f::RF, x::RV{{n}}) -> begin
  (a, b, c) = {kind}(((a, b, c), t) -> (f(a) + x(t), b + a, c * 2), (1, 2, 3), n)
  {value}
end"""


@pytest.mark.parametrize(
    ("kind", "value"),
    [("iterate", "a + b + c"), ("scan", "a(2) + sum(t, b(t)) + c(n)"), ("scan", "a(n) * b(n) + c(0)")],
)
def test_the_oracle_takes_each_step_once(kind: str, value: str) -> None:
    program = infer(parse(TEXT.format(kind=kind, value=value)))
    assert isinstance(program, Lam)
    calls: list[float] = []

    def f(x: float) -> float:
        calls.append(x)
        return x / 2

    x = np.array([1.0, -2.0, 0.5])
    found = evaluate(program.body, dict(zip(program.params, (f, x), strict=True)))
    a, b, c = [1.0], [2.0], [3.0]
    for entry in x:
        a, b, c = [*a, a[-1] / 2 + entry], [*b, b[-1] + a[-1]], [*c, c[-1] * 2]
    wanted = {
        "a + b + c": a[3] + b[3] + c[3],
        "a(2) + sum(t, b(t)) + c(n)": a[2] + sum(b) + c[3],
        "a(n) * b(n) + c(0)": a[3] * b[3] + c[0],
    }
    assert len(calls) == len(x)
    assert found == wanted[value]
