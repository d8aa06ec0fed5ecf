"""Table 1 and the scalar functions: every row against differences at complex points, and against SymPy."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import sympy

import combdiff as cd
from combdiff.calculus import primitives as row
from combdiff.calculus.primitives import Primitive
from combdiff.meaning.evaluate import evaluate
from combdiff.notation.symbolic import symbolic
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.terms import (
    Const,
    Delta,
    Indicator,
    Lam,
    Term,
    Var,
    delta,
    fresh,
    indicator,
    number,
    proj,
    tuple_of,
)
from combdiff.terms.types import COMPLEX, REAL, Map, Number, is_complex
from tests.function_points import applied, orders_of, points_of

PARTS = ("real", "imag", "conj")
KINKED = ("relu", "max", "min", "clip")
POINTS = (0.7 + 0.4j, -0.6 + 1.1j, 0.3 - 0.8j)
COTANGENTS = (1.0 + 0j, 0.4 - 1.3j, -0.9 + 0.2j)


def _number(value: complex) -> Const:
    return number(complex(value))


def differences(f: Callable[[complex], complex], z: complex, k: complex, kind: Number) -> complex:
    """Σ over the directions u of z: u·Re⟨k, df/du⟩, by central differences of fourth order (Eq. 44)."""
    h = 1e-3
    result = 0j
    for unit in (1, 1j) if kind.complex else (1,):
        slope = (8 * (f(z + h * unit) - f(z - h * unit)) - f(z + 2 * h * unit) + f(z - 2 * h * unit)) / (12 * h)
        result += unit * (np.conj(k) * slope).real
    return result


def _agrees(primitive: Primitive, z: complex, k: complex, kind: Number = COMPLEX, tolerance: float = 1e-8) -> None:
    v = fresh("v", kind)
    value = primitive.value(v)
    assert isinstance(value.type, Number)
    c = fresh("k", value.type)
    cotangent = k if is_complex(value.type) else k.real
    at = z if kind.complex else z.real

    def f(x: complex) -> complex:
        return complex(evaluate(value, {v: x if kind.complex else complex(x).real}))  # type: ignore[arg-type]

    found = evaluate(primitive.pullback(v, c), {v: at, c: cotangent})
    expected = differences(f, at, cotangent, kind)
    assert abs(complex(found) - expected) < tolerance * max(1, abs(expected)), primitive.name  # type: ignore[arg-type]


ROWS = [
    (name, kind)
    for name in SCALAR_FUNCTIONS
    for kind in (REAL, COMPLEX)
    if points_of(name, kind == COMPLEX) and (kind == COMPLEX or name not in PARTS)
]


@pytest.mark.parametrize(("name", "kind"), ROWS)
def test_the_row_of_a_scalar_function_agrees_with_differences(name: str, kind: Number) -> None:
    t, variables = applied(name, kind)
    primitive = row.scalar(name, *orders_of(name))
    for numbers in points_of(name, kind == COMPLEX):
        at = dict(zip(variables, numbers, strict=True))
        for k in COTANGENTS:
            c = fresh("k", t.type)
            cotangent = k if is_complex(t.type) else k.real
            pulled = primitive.pullback(tuple_of(variables), c)
            found = [
                evaluate(proj(n, pulled) if len(variables) > 1 else pulled, {**at, c: cotangent})
                for n in range(len(variables))
            ]
            for n, v in enumerate(variables):
                expected = differences(partial(_value, t, at, v), numbers[n], cotangent, kind)
                assert abs(complex(found[n]) - expected) < 1e-8 * max(1, abs(expected))


def _value(t: Term, at: dict[Var, complex], v: Var, x: complex) -> complex:
    """`t` with another number for `v`."""
    assert isinstance(v.kind, Number)
    return complex(evaluate(t, {**at, v: x if v.kind.complex else complex(x).real}))  # type: ignore[arg-type]


TABLE = {
    "conj": row.CONJUGATE,
    "mul": row.multiply(_number(1.5 - 0.5j)),
    "add": row.add_to(_number(1.5 - 0.5j)),
    **{f"pow {n}": row.raise_to(number(n)) for n in (2, 3, -1, -2)},
    "pow 1/2": row.raise_to(number(Fraction(1, 2))),
    "pow -3/2": row.raise_to(number(Fraction(-3, 2))),
    "pow complex": row.raise_to(_number(0.5 + 1j)),
    "exp_a": row.exponential(number(3)),
    "exp_a complex": row.exponential(_number(0.5 + 1j)),
}


@pytest.mark.parametrize("name", TABLE)
def test_a_row_of_table_1_agrees_with_differences(name: str) -> None:
    for z in POINTS:
        for k in COTANGENTS:
            _agrees(TABLE[name], z, k)


@pytest.mark.parametrize(
    "name", [n for n, r in SCALAR_FUNCTIONS.items() if r.derivative is not None and not r.steps and n not in KINKED]
)
def test_a_holomorphic_row_agrees_with_sympy(name: str) -> None:
    kind = REAL if SCALAR_FUNCTIONS[name].of_reals else COMPLEX
    t, variables = applied(name, kind)
    written = symbolic(Lam(variables, t))
    symbols = [written.arguments[v.name] for v in variables]
    for v, x, slope in zip(variables, symbols, SCALAR_FUNCTIONS[name].derivatives(*t.args), strict=True):
        expected = sympy.diff(written.expression, x)
        for numbers in points_of(name, kind == COMPLEX):
            found = evaluate(slope, dict(zip(variables, numbers, strict=True)))
            at = complex(expected.subs(dict(zip(symbols, numbers, strict=True))).evalf())
            assert abs(complex(found) - at) < 1e-10, v.name


TIES = {
    "(x::R, y::R) -> max(x, y)": ((2.0, 2.0), (0.5, 0.5)),
    "(x::R, y::R) -> min(x, y)": ((2.0, 2.0), (0.5, 0.5)),
    "(x::R) -> clip(x, 1, 2)": ((1.0,), (0.5,)),
    "(x::R) -> clip(x, 0, 1)": ((1.0,), (0.5,)),
    "(x::R, a::R, b::R) -> clip(x, a, b)": ((1.0, 1.0, 3.0), (0.5, 0.5, 0.0)),
    "(x::R) -> relu(x)": ((0.0,), (0.0,)),
    "(x::R) -> sign(x) + floor(x) + ceil(x) + round(x)": ((0.0,), (0.0,)),
}


@pytest.mark.parametrize("text", TIES)
def test_the_derivative_at_a_kink(text: str) -> None:
    point, expected = TIES[text]
    found = cd.grad(text).compile()(*point)
    assert np.array_equal(np.atleast_1d(found), expected)


def test_the_inclusion_of_the_reals_keeps_the_real_part_of_a_cotangent() -> None:
    v, k = fresh("v", REAL), fresh("k", COMPLEX)
    assert evaluate(row.INCLUSION.pullback(v, k), {v: 0.5, k: 2 - 3j}) == 2


def test_the_gradient_of_abs_at_zero_is_zero() -> None:
    v, k = fresh("v", COMPLEX), fresh("k", REAL)
    assert evaluate(row.scalar("abs").pullback(v, k), {v: 0j, k: 1.0}) == 0


def test_the_indicator_of_its_own_argument_is_relu() -> None:
    f = cd.grad("(x::R) -> indicator(0, x, x)^2").compile()
    assert [float(f(x=x)) for x in (-2.0, 3.0)] == [0.0, 6.0]


def test_conditions_are_their_own_adjoints() -> None:
    a, b, e = fresh("a", REAL), fresh("b", REAL), fresh("e", REAL)
    k = fresh("k", REAL)
    for node, step in ((delta(a, b, e), row.where_equal), (indicator(a, b, e), row.where_ordered)):
        assert isinstance(node, Delta | Indicator)
        pulled = step(node).pullback(e, k)  # type: ignore[operator]
        assert type(pulled) is type(node) and pulled.body == k


def test_a_contraction_hands_its_cotangent_to_every_entry() -> None:
    i = fresh("i", REAL)
    k = fresh("k", COMPLEX)
    f = fresh("f", Map((REAL,), COMPLEX))
    pulled = row.contract((i,)).pullback(f, k)
    assert isinstance(pulled, Lam) and isinstance(pulled.params[0], Var) and pulled.body == k


@pytest.mark.parametrize(
    "text",
    ["(x::R) -> x^x", "(x::R) -> 2^x", "(x::R) -> x^3", "(z::C) -> z^z", "(z::C) -> (1 + im)^z", "(z::C) -> z^im"],
)
def test_powers_with_a_varying_exponent_agree_with_differences(text: str) -> None:
    d = cd.pullback(text)
    assert isinstance(d.term, Lam)
    x, k = d.term.params
    body = d.objective.body
    assert isinstance(x.kind, Number)
    kind = x.kind

    def f(y: complex) -> complex:
        return complex(evaluate(body, {x: y if kind.complex else complex(y).real}))  # type: ignore[arg-type]

    for z in (0.7 + 0.4j, 1.3 - 0.2j):
        at = z if kind.complex else z.real
        c = 0.4 - 1.3j if is_complex(k.kind) else 0.4
        found = evaluate(d.term.body, {x: at, k: c})
        assert abs(complex(found) - differences(f, at, c, kind)) < 1e-8  # type: ignore[arg-type]
