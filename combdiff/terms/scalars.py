"""The scalar functions of the language: one row each, read by every stage that must know them.

A new function is one row here. The holomorphic ones carry their complex derivative f'; their pullback is then
(z, k) ↦ conj(f'(z))·k by Eq. 44 (`calculus/primitives.py`). The others carry the pullback itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from combdiff.terms.terms import (
    IMAGINARY,
    MINUS_ONE,
    ONE,
    TWO,
    ZERO,
    Call,
    Pow,
    Term,
    add,
    call,
    conj,
    mul,
    neg,
    number,
    power,
)
from combdiff.terms.types import is_complex

HALF = number(Fraction(1, 2))


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """A row: `derivative` (holomorphic) or `pullback` (not), and how the world spells the function.

    A pullback that is a sum has the cotangent k in each term, for it is taken term by term.
    `commutes`: f(z') = f(z)' for all z, branch cuts included. `real_valued`: the value is real for complex z too;
    `complex_valued`: it is complex for real z too.
    `cut`: as a complex function it is not real at real numbers below zero.
    `finite`: it is finite with all its derivatives wherever its argument is, on the "reals" or on all "numbers".
    `parity`: 1 where f(−z) = f(z), −1 where f(−z) = −f(z), else 0.
    `sympy`: what SymPy calls it, if not by our name; `written_out`: an equal term, where SymPy does not know it.
    """

    name: str
    numpy: str
    latex: str
    derivative: Callable[[Term], Term] | None = None
    pullback: Callable[[Term, Term], Term] | None = None
    commutes: bool = False
    cut: bool = False
    real_valued: bool = False
    complex_valued: bool = False
    finite: Literal["", "reals", "numbers"] = ""
    parity: int = 0
    sympy: str = ""
    written_out: Callable[[Term], Term] | None = None


def _abs_pullback(z: Term, k: Term) -> Term:
    """k ↦ (z/|z|) k, and 0 at 0."""
    return mul(call("sign", z), k)


def _phase_pullback(z: Term, k: Term) -> Term:
    """sign(z) = z/|z| turns only: k ↦ (k − sign(z)² k')/(2|z|); the sign of a real number is constant, at 0 too."""
    if not is_complex(z.type):
        return ZERO
    scale = mul(HALF, power(call("abs", z), MINUS_ONE))
    return add(mul(scale, k), neg(mul(scale, power(call("sign", z), TWO), conj(k))))


_ROWS = (
    ScalarFunction("exp", "exp", r"\exp", lambda z: call("exp", z), commutes=True),
    ScalarFunction("log", "log", r"\log", lambda z: power(z, MINUS_ONE), cut=True),
    ScalarFunction("sin", "sin", r"\sin", lambda z: call("cos", z), commutes=True, finite="numbers", parity=-1),
    ScalarFunction("cos", "cos", r"\cos", lambda z: neg(call("sin", z)), commutes=True, finite="numbers", parity=1),
    ScalarFunction("tan", "tan", r"\tan", lambda z: add(ONE, power(call("tan", z), TWO)), commutes=True, parity=-1),
    ScalarFunction("sinh", "sinh", r"\sinh", lambda z: call("cosh", z), commutes=True, parity=-1),
    ScalarFunction("cosh", "cosh", r"\cosh", lambda z: call("sinh", z), commutes=True, parity=1),
    ScalarFunction(
        "tanh",
        "tanh",
        r"\tanh",
        lambda z: add(ONE, neg(power(call("tanh", z), TWO))),
        commutes=True,
        finite="reals",
        parity=-1,
    ),
    ScalarFunction(
        "atan", "arctan", r"\arctan", lambda z: power(add(ONE, power(z, TWO)), MINUS_ONE), finite="reals", parity=-1
    ),
    ScalarFunction("sqrt", "sqrt", r"\sqrt", lambda z: mul(HALF, power(call("sqrt", z), MINUS_ONE)), cut=True),
    ScalarFunction(
        "conj",
        "conj",
        r"\overline",
        pullback=lambda z, k: conj(k),
        commutes=True,
        finite="numbers",
        parity=-1,
        sympy="conjugate",
    ),
    ScalarFunction(
        "real",
        "real",
        r"\operatorname{Re}",
        pullback=lambda z, k: k,
        commutes=True,
        real_valued=True,
        finite="numbers",
        parity=-1,
        sympy="re",
    ),
    ScalarFunction(
        "imag",
        "imag",
        r"\operatorname{Im}",
        pullback=lambda z, k: mul(IMAGINARY, k),
        real_valued=True,
        finite="numbers",
        parity=-1,
        sympy="im",
    ),
    ScalarFunction(
        "abs2",
        "",
        r"\left|\cdot\right|^2",
        pullback=lambda z, k: mul(TWO, z, k),
        real_valued=True,
        finite="numbers",
        parity=1,
        written_out=lambda z: Pow(Call("abs", (z,)), TWO),
    ),
    ScalarFunction(
        "abs",
        "abs",
        r"\left|\cdot\right|",
        pullback=_abs_pullback,
        real_valued=True,
        finite="reals",
        parity=1,
        sympy="Abs",
    ),
    ScalarFunction(
        "sign", "sign", r"\operatorname{sign}", pullback=_phase_pullback, commutes=True, finite="reals", parity=-1
    ),
    ScalarFunction(
        "complex",
        "",
        r"\operatorname{complex}",
        pullback=lambda z, k: k if is_complex(z.type) else call("real", k),
        commutes=True,
        complex_valued=True,
        finite="numbers",
        parity=-1,
        written_out=lambda z: z,
    ),
)

SCALAR_FUNCTIONS = {row.name: row for row in _ROWS}
