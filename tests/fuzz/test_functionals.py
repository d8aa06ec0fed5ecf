"""Random functionals have the slopes that differences of their values have."""

from __future__ import annotations

import numpy as np
import pytest

from combdiff.calculus.functions import by_parts
from tests.fuzz.functional_programs import Line, Node, Program, Unknown, constant
from tests.fuzz.functional_shrinking import smallest
from tests.fuzz.functionals import complaints, examined


@pytest.mark.slow
@pytest.mark.parametrize("seed", [6, 7, 25])
def test_random_functionals_have_the_slopes_of_differences(seed: int) -> None:
    text, found, _ = complaints(seed)
    assert not found, text


def functional() -> Program:
    """y′(x)² + x y(x) over an interval, and y at its upper end."""
    line = Line("Line", -1, 0.5)
    x = Node("variable", ("x",))
    y, slope = (Node("function", ("y", order, x)) for order in (0, 1))
    body = Node("integral", (line, "x", Node("add", (Node("power", (slope, 2)), Node("multiply", (x, y))))))
    end = Node("function", ("y", 0, constant(0.5)))
    return Program(Node("add", (body, end)), (Unknown("y", line),), (), ())


@pytest.mark.slow
def test_everything_is_compared() -> None:
    text, found, refused = examined(functional(), 1, everything=True)
    assert text.endswith("(y::(Line) -> R) -> sum(x::Line, grad(y)(x)^2 + x * y(x)) + y(0.5)")
    assert not found and not refused


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["_signed", "_natural", "_height"])
def test_a_wrong_integration_by_parts_is_a_complaint(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = getattr(by_parts, fault)
    monkeypatch.setattr(by_parts, fault, lambda *args: by_parts.add(right(*args), right(*args)))
    found = examined(functional(), 1)[1]
    assert any("gradient by y" in each for each in found)


def test_variations_keep_what_is_fixed() -> None:
    for fixed in (True, (0,), (1,), (0, 1)):
        u = Unknown("y", Line("Line", 0, 2), fixed)
        v = u.variation(np.random.default_rng(1))
        kept = [abs(v.deriv(n)(end)) < 1e-8 for n in range(3) for end in (0, 2)]
        assert kept == [u.keeps(n) for n in range(3) for _ in (0, 2)]


def test_a_program_shrinks_to_what_is_wrong_with_it() -> None:
    found = smallest(functional(), lambda program: "grad(y)" in program.text)
    assert found.text.endswith("(y::(Line) -> R) -> sum(x::Line, grad(y)(x))")
