"""The evaluation that shares nothing with the package, against known numbers, differences and JAX."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz import oracle
from tests.fuzz import tangents as T
from tests.fuzz.case import Case
from tests.fuzz.kinds import COMPLEX, REAL, Index, Range, Tensor
from tests.fuzz.meaning import Held, Scope, evaluate
from tests.fuzz.programs import program
from tests.fuzz.running import tried
from tests.fuzz.sight import bare
from tests.fuzz.syntax import (
    Add,
    App,
    Block,
    Call,
    Definition,
    Delta,
    Derived,
    Div,
    Expr,
    Indicator,
    Integral,
    Lam,
    Literal,
    Mul,
    Neg,
    Power,
    Program,
    Ref,
    Sum,
    Var,
)

ROOT = Path(__file__).parents[2]
N = Range("n", "plain", (3,))
RING = Range("z", "ring", (5,))
STEPS = Range("s", "symmetric", (3,))


def number(value: object) -> Literal:
    return Literal(Fraction(str(value)))


def entry(v: Var, *indices: Expr) -> App:
    return App(Ref(v), indices)


def value_of(e: Expr, **values: tuple[Var, object]) -> object:
    """The value of an expression, for variables given as name=(variable, numbers)."""
    scope = Scope({})
    for v, x in values.values():
        slots = v.kind.slots if isinstance(v.kind, Tensor) else ()
        scope = scope.with_(
            (v,), (Held(np.asarray(x, np.clongdouble if np.iscomplexobj(x) else np.longdouble)[None], 0, slots),)
        )
    with np.errstate(all="ignore"):
        return np.ravel(evaluate(e, scope))[0]


X = Var(Tensor((N,)))
K, L, H, J = (Var(Index(r)) for r in (RING, RING, N, N))
NUMBERS = np.array([1.0, 2.0, 4.0])


# --- the interpreter ------------------------------------------------------------------------------------------------


def test_a_sum_over_nothing_counts_its_range() -> None:
    mean = Div(Sum((H,), entry(X, bare(H))), Sum((J,), number(1)))
    assert value_of(mean, x=(X, NUMBERS)) == pytest.approx(7 / 3)


def test_index_arithmetic_wraps_round_a_ring() -> None:
    u = Var(Tensor((RING,)))
    shifted = Sum((K,), Mul((bare(K), App(Ref(u), (type(bare(K))(((2, K),), 1),)))))
    numbers = np.arange(5.0) ** 2
    assert value_of(shifted, u=(u, numbers)) == sum(k * numbers[(2 * k + 1) % 5] for k in range(5))


def test_a_symmetric_range_counts_from_its_middle() -> None:
    b, w = Var(Index(STEPS)), Var(Tensor((STEPS,)))
    odd = Sum((b,), Mul((bare(b), entry(w, type(bare(b))(((-1, b),))))))
    assert value_of(odd, w=(w, [10.0, 20.0, 50.0])) == -50 + 10


def test_a_branch_that_is_not_taken_never_matters() -> None:
    distance = Add((entry(X, bare(H)), Neg(entry(X, bare(J)))))
    pairs = Sum((H, J), Indicator(type(bare(H))(((1, H),), 1), bare(J), Div(number(1), distance)))
    assert value_of(pairs, x=(X, NUMBERS)) == pytest.approx(-1 - 1 / 3 - 1 / 2)


def test_delta_meets_modulo_the_size() -> None:
    meets = Sum((K, L), Delta(type(bare(K))(((1, K),), 1), bare(L), bare(L)))
    assert value_of(meets) == 0 + 1 + 2 + 3 + 4


def test_arithmetic_in_a_ring_is_compared_as_the_number_of_a_point() -> None:
    above = Sum((K,), Indicator(number(1), type(bare(K))(((1, K),), 1), bare(K)))
    assert value_of(above) == 0 + 1 + 2 + 3


def test_branches_are_complex_where_the_type_is() -> None:
    z, a = Var(COMPLEX), Var(REAL)
    assert value_of(Call("sqrt", Ref(z)), z=(z, -4 + 0j)) == 2j
    assert np.isnan(value_of(Call("sqrt", Ref(a)), a=(a, -4.0)))


def test_an_integral_takes_the_value_at_its_delta() -> None:
    x, a = Var(REAL), Var(REAL)
    e = Integral(x, Fraction(-2), Ref(a), Power(Ref(x), number(2)))
    assert value_of(e, a=(a, 6.0)) == pytest.approx(9 / 2)


def test_a_derivative_inside_is_a_gradient_of_the_real_part() -> None:
    v, i = Var(Tensor((N,), True)), Var(Index(N))
    z = Var(Tensor((N,), True))
    f = Lam((v,), Sum((H,), Mul((entry(v, bare(H)), entry(v, bare(H))))))
    taken = Sum((i,), Mul((bare(i), entry_of(App(Derived("grad", f), (Ref(z),)), bare(i)))))
    numbers = np.array([1 + 2j, 3 - 1j, 2j])
    assert value_of(taken, z=(z, numbers)) == pytest.approx(2 * np.conj(numbers[1] + 2 * numbers[2]))


def entry_of(e: Expr, *indices: Expr) -> App:
    return App(e, indices)


def test_a_root_and_an_inverse_solve_their_equations() -> None:
    x, b = Var(REAL), Var(REAL)
    cubic = Derived("root", Lam((x,), Add((Power(Ref(x), number(3)), Ref(x), Neg(Ref(b))))))
    assert value_of(cubic, b=(b, 10.0)) == pytest.approx(2)
    v, i = Var(Tensor((N,))), Var(Index(N))
    twice = Lam((v,), Lam((i,), Mul((number(2), entry(v, bare(i))))))
    solved = entry_of(App(Derived("inverse", twice), (Ref(X),)), type(bare(H))((), 2))
    assert value_of(solved, x=(X, NUMBERS)) == pytest.approx(2)


def test_definitions_and_functions_see_where_they_are_written() -> None:
    r, f, a = Var(REAL, "definition"), None, Var(REAL)
    inner = Lam((a,), Mul((Ref(a), Ref(r))))
    f = Var(inner.kind, "function")
    e = Block((Definition((r,), number(3)), Definition((f,), inner)), App(Ref(f), (number(5),)))
    assert value_of(e) == 15


# --- tangents -------------------------------------------------------------------------------------------------------

FUNCTIONS = (
    "exp",
    "log",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "atan",
    "sqrt",
    "abs",
    "abs2",
    "sign",
    "real",
    "imag",
    "conj",
    "complex",
    "log1p",
    "log2",
    "log10",
    "expm1",
    "angle",
)
OF_COMPLEX = ("asin", "acos", "acosh", "atanh")
OF_REALS = ("asinh", "softplus", "sigmoid", "relu", "acosh")
IN_DOUBLE = ("erf", "erfc", "lgamma", "digamma")
ROUNDED = ("floor", "ceil", "round")
CASES = [
    *((n, c) for n in FUNCTIONS for c in (False, True)),
    *((n, False) for n in (*OF_REALS, *IN_DOUBLE, *ROUNDED)),
    *((n, True) for n in OF_COMPLEX),
]


@pytest.mark.parametrize(("name", "complex_"), CASES)
def test_tangents_are_differences(name: str, complex_: bool) -> None:
    if complex_ and name == "atan":
        z, d = np.clongdouble(0.3 + 0.2j), np.clongdouble(0.7 - 1j)
    else:
        z, d = (
            (np.clongdouble(1.3 - 0.4j), np.clongdouble(0.7 - 1j))
            if complex_
            else (np.longdouble(1.3), np.longdouble(0.7))
        )
    tag = T.fresh_tag()
    exact = T.tangent_of(T.call(name, T.Dual(tag, z, d), complex_), tag)
    h = np.longdouble(1e-6)
    difference = (T.call(name, z + h * d, complex_) - T.call(name, z - h * d, complex_)) / (2 * h)
    # SciPy's functions are of double precision
    tolerance = 1e-8 if name in IN_DOUBLE else 1e-9
    assert complex(exact) == pytest.approx(complex(difference), rel=tolerance, abs=1e-12)


def test_tangents_keep_to_the_conventions_at_zero() -> None:
    tag = T.fresh_tag()
    zero = T.Dual(tag, np.longdouble(0), np.longdouble(1))
    assert T.tangent_of(T.call("abs", zero, False), tag) == 0
    assert T.tangent_of(T.call("sign", zero, False), tag) == 0


def test_second_tangents_are_those_of_first_ones() -> None:
    outer, inner = T.fresh_tag(), T.fresh_tag()
    x = T.Dual(inner, T.Dual(outer, np.longdouble(2), np.longdouble(1)), np.longdouble(1))
    second = T.tangent_of(T.tangent_of(T.mul(x, T.mul(x, x)), inner), outer)
    assert second == 12


def test_the_oracle_is_the_gradient_of_least_squares() -> None:
    a, b, x = Var(Tensor((N, N), True)), Var(Tensor((N,), True)), Var(Tensor((N,), True))
    i, j = Var(Index(N)), Var(Index(N))
    residual = Add((Sum((j,), Mul((entry(a, bare(i), bare(j)), entry(x, bare(j))))), Neg(entry(b, bare(i)))))
    p = Program(((a, b), (x,)), Sum((i,), Call("abs2", residual)), seed=4)
    case = Case(p)
    matrix, right, point = (case.data[v] for v in (a, b, x))
    gradient_ = 2 * matrix.conj().T @ (matrix @ point - right)
    parts = np.stack([gradient_.real, gradient_.imag], axis=1).ravel()
    assert case.slopes[:6].astype(float) == pytest.approx(parts)
    rows = range(case.along.count)
    for step in oracle.differences(p, case.data, case.along, rows):
        assert step.astype(float) == pytest.approx(case.slopes.astype(float))


@pytest.mark.parametrize(("at", "smooth"), [(0.0, False), (0.5 + 0.2j, True), (0.3j, False)])
def test_a_branch_cut_is_no_place_for_a_derivative(at: complex, smooth: bool) -> None:
    """z acosh(z²) along ε is ± iπ/2 ε at 0, the sign being that of the side of the cut."""
    z = Var(COMPLEX)
    p = Program(((), (z,)), Mul((Ref(z), Call("acosh", Mul((Ref(z), Ref(z)))))), seed=1)
    assert oracle.is_linear(p, {z: np.clongdouble(at)}, (), np.random.default_rng(1)) is smooth


@pytest.mark.parametrize("number_", range(40))
def test_tangents_and_finite_differences_agree(number_: int) -> None:
    case = Case(program(77, number_))
    assert not case.finite or case.differ() or case.differences_are(case.slopes)


@pytest.mark.long
def test_the_oracle_agrees_with_jax() -> None:
    pytest.importorskip("jax")
    asked = 0
    for number_ in range(8):
        verdict = tried(program(78, number_), ["second_opinion"], "normal")
        asked += not any(s.startswith("second_opinion") for s in verdict.skipped)
        assert [f for f in verdict.failures if f[0] == "second_opinion"] == []
    assert asked
