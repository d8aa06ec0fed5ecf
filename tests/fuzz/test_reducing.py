"""Conditions, reductions and functions of several numbers in the interpreter, against plain loops and differences."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from tests.fuzz import tangents as T
from tests.fuzz.kinds import REAL, Index, Integers, Range, Tensor
from tests.fuzz.meaning import Held, Scope, evaluate
from tests.fuzz.sight import bare
from tests.fuzz.syntax import (
    Add,
    Affine,
    App,
    Call,
    Compared,
    Expr,
    Joined,
    Lam,
    Literal,
    Looked,
    Mul,
    Neg,
    Norm,
    Not,
    Power,
    Reduced,
    Ref,
    Several,
    Size,
    Sum,
    Var,
    Where,
)

SIZES = (1, 2, 3, 5, 7)
ONE, ZERO = Literal(Fraction(1)), Literal(Fraction(0))
N = Range("n", "plain", (5,))
L, J, K = (Var(Index(N)) for _ in range(3))
X = Var(Tensor((N,)))
NUMBERS = np.array([1.5, -0.5, 1.5, 0.0, -2.0])


def at(v: Var, *indices: Expr) -> App:
    return App(Ref(v), indices)


def literal(n: object) -> Literal:
    return Literal(Fraction(str(n)))


def held(v: Var, x: object, tangent: object = None) -> Held:
    slots = v.kind.slots if isinstance(v.kind, Tensor | Integers) else ()
    wide = np.asarray(x, np.longdouble)[None]
    value = wide if tangent is None else T.Dual(T.fresh_tag(), wide, np.asarray(tangent, np.longdouble)[None])
    return Held(value, 0, slots)


def value_of(e: Expr, *values: tuple[Var, object]) -> float:
    with np.errstate(all="ignore"):
        return float(np.ravel(evaluate(e, Scope({v: held(v, x) for v, x in values})))[0])


def slope_of(e: Expr, v: Var, x: object, tangent: object) -> float:
    point = held(v, x, tangent)
    with np.errstate(all="ignore"):
        return float(np.ravel(T.tangent_of(evaluate(e, Scope({v: point})), point.value.tag))[0])


# --- conditions -----------------------------------------------------------------------------------------------------

RELATIONS: dict[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


@pytest.mark.parametrize("sign", RELATIONS)
def test_each_comparison_of_indices_and_of_numbers(sign: str) -> None:
    relation = RELATIONS[sign]
    of_indices = Reduced("sum", (L, J), ONE, Compared((Affine(((1, L),), 1), bare(J)), (sign,)))
    assert value_of(of_indices) == sum(relation(i + 1, j) for i, j in product(range(5), repeat=2))
    of_numbers = Reduced("sum", (L, J), ONE, Compared((at(X, bare(L)), at(X, bare(J))), (sign,)))
    assert value_of(of_numbers, (X, NUMBERS)) == sum(relation(a, b) for a, b in product(NUMBERS, repeat=2))


def test_conditions_are_joined_as_in_logic() -> None:
    below, even = Compared((bare(L), bare(J)), ("<",)), Compared((Affine(((1, J),)), Affine((), 2)), ("!=",))
    loops = [(i < j, j != 2) for i, j in product(range(5), repeat=2)]
    for condition, expected in (
        (Joined("and", (below, even)), [a and b for a, b in loops]),
        (Joined("or", (below, even)), [a or b for a, b in loops]),
        (Not(Joined("and", (below, even))), [not (a and b) for a, b in loops]),
        (Not(Joined("or", (below, Not(even)))), [not (a or not b) for a, b in loops]),
        (Joined("or", (Not(below), Joined("and", (below, even)))), [not a or (a and b) for a, b in loops]),
    ):
        assert value_of(Reduced("sum", (L, J), ONE, condition)) == sum(expected)


def test_a_chain_holds_where_all_of_its_links_do() -> None:
    chain = Compared((Affine((), 1), Affine(((1, L), (1, J)), -1), Size(L)), ("<=", "<"))
    expected = sum(1 <= i + j - 1 < 5 for i, j in product(range(5), repeat=2))
    assert value_of(Reduced("sum", (L, J), ONE, chain)) == expected
    outside = sum(not 1 <= i + j - 1 < 5 for i, j in product(range(5), repeat=2))
    assert value_of(Reduced("sum", (L, J), ONE, Not(chain))) == outside


def test_whole_numbers_are_one_point_of_a_ring_modulo_its_size() -> None:
    i = Var(Index(Range("Z", "ring", (5,))))
    for right, offset in ((Size(i), 5), (Add((Size(i), Neg(Literal(Fraction(2))))), 3), (Affine((), 7), 7)):
        for sign in ("==", "!="):
            met = Reduced("sum", (i,), ONE, Compared((Affine(((2, i),), 1), right), (sign,)))
            assert value_of(met) == sum(RELATIONS[sign]((2 * k + 1 - offset) % 5, 0) for k in range(5))
        below = Reduced("sum", (i,), ONE, Compared((bare(i), right), ("<",)))
        assert value_of(below) == sum(k < offset for k in range(5))


@pytest.mark.parametrize("weights", [[1.0, 0.5, 2.0, 0.25, 3.0], [0, 0.5, 0, 0, 1.5], [0.0] * 5])
def test_weights_stand_in_front_of_exponentials(weights: list[float]) -> None:
    w = Var(Tensor((N,)))
    terms = [a * np.exp(b) for a, b in zip(weights, NUMBERS, strict=True)]
    given = (X, NUMBERS), (w, np.array(weights))
    total = Reduced("logsumexp", (L,), at(X, bare(L)), at(w, bare(L)))
    assert value_of(total, *given) == pytest.approx(np.log(sum(terms)) if sum(terms) else -np.inf)
    share = App(Reduced("softmax", (L,), at(X, bare(L)), at(w, bare(L))), (Affine((), 1),))
    assert value_of(share, *given) == pytest.approx(terms[1] / sum(terms) if sum(terms) else 0)


@pytest.mark.parametrize("name", ["logsumexp", "softmax"])
def test_an_exponent_that_is_no_number_makes_a_weighted_sum_none(name: str) -> None:
    found = Reduced(name, (L,), Call("log", at(X, bare(L))), ONE)
    value = value_of(found if name == "logsumexp" else App(found, (Affine((), 1),)), (X, np.array([1, -2.0, 3, 0, 5])))
    assert np.isnan(value)


def test_what_is_not_chosen_never_matters() -> None:
    x = at(X, bare(L))
    chosen = Sum((L,), Where(Compared((ZERO, x), ("<",)), Call("log", x), Mul((x, x))))
    expected = sum(np.log(v) if v > 0 else v * v for v in NUMBERS)
    assert value_of(chosen, (X, NUMBERS)) == pytest.approx(expected)
    slopes = [1 / v if v > 0 else 2 * v for v in NUMBERS]
    assert slope_of(chosen, X, NUMBERS, np.ones(5)) == pytest.approx(sum(slopes))


def test_a_comparison_is_guarded_by_those_before_it() -> None:
    x = at(X, bare(L))
    positive, small = Compared((ZERO, x), ("<",)), Compared((Call("log", x), ONE), ("<",))
    assert value_of(Reduced("sum", (L,), x, Joined("and", (positive, small))), (X, NUMBERS)) == 3
    assert np.isnan(value_of(Reduced("sum", (L,), x, Joined("and", (small, positive))), (X, NUMBERS)))


def test_an_entry_beyond_the_range_is_left_out_by_its_condition() -> None:
    e = Where(Compared((bare(L), Size(L)), ("<",)), at(X, Affine(((1, L),), 1)))
    beyond = Reduced("sum", (L,), at(X, Affine(((1, L),), -2)), Compared((Affine((), 2), bare(L)), ("<=",)))
    assert value_of(beyond, (X, NUMBERS)) == NUMBERS[:3].sum()
    kept = Where(Compared((Affine(((1, L),), 1), Size(L)), ("<",)), e.body)
    assert value_of(Sum((L,), kept), (X, NUMBERS)) == NUMBERS[1:].sum()


def test_entries_of_integers_are_compared_as_indices() -> None:
    edges = Range("e", "plain", (4,))
    array, e = Var(Integers((edges,), N)), Var(Index(edges))
    entry = bare(Looked(Index(N), array=array, args=(bare(e),)))
    found = Reduced("sum", (e, L), at(X, bare(L)), Compared((entry, bare(L)), ("==",)))
    integers = [3, 0, 0, 4]
    assert value_of(found, (X, NUMBERS), (array, integers)) == sum(NUMBERS[n] for n in integers)


# --- reductions -----------------------------------------------------------------------------------------------------


def _loops(name: str, values: list[float]) -> float:
    match name:
        case "sum":
            return float(sum(values))
        case "prod":
            return float(np.prod(values))
        case "mean":
            return float(np.mean(values)) if values else np.nan
        case "maximum":
            return max(values, default=-np.inf)
        case "minimum":
            return min(values, default=np.inf)
    return float(np.log(sum(np.exp(v) for v in values))) if values else -np.inf


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "maximum", "minimum", "logsumexp"])
def test_reductions_with_conditions_are_loops(name: str, size: int) -> None:
    r = Range("r", "plain", (size,))
    i, j, x = Var(Index(r)), Var(Index(r)), Var(Tensor((r, r)))
    numbers = np.random.default_rng(size).standard_normal((size, size))
    e = Reduced(name, (i, j), at(x, bare(i), bare(j)), Compared((bare(i), bare(j)), ("<",)))
    below = [float(numbers[a, b]) for a in range(size) for b in range(size) if a < b]
    assert value_of(e, (x, numbers)) == pytest.approx(_loops(name, below), nan_ok=True)
    along = np.random.default_rng(size + 1).standard_normal((size, size))
    if below:
        h = 1e-6
        ends = [value_of(e, (x, numbers + s * along)) for s in (h, -h)]
        assert slope_of(e, x, numbers, along) == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-7, abs=1e-8)
    elif name != "mean":
        assert slope_of(Several("max", (e, ZERO)), x, numbers, along) == 0


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("name", ["det", "logabsdet", "inv", "adjugate"])
def test_functions_of_matrices_are_those_of_numpy(name: str, size: int) -> None:
    n = Range("n", "plain", (size,))
    i, j = Var(Index(n)), Var(Index(n))
    A = Var(Tensor((n, n)))
    numbers, along = (np.random.default_rng(seed).normal(size=(size, size)) for seed in (size, size + 1))
    e: Expr = Reduced(name, (i, j), at(A, bare(i), bare(j)))
    if name in ("inv", "adjugate"):
        e = App(e, (Affine((), size - 1), Affine((), 0)))

    def wanted(x: np.ndarray) -> float:
        inverse, determinant = np.linalg.inv(x), np.linalg.det(x)
        whole = {"det": determinant, "logabsdet": np.log(abs(determinant))}
        return float(whole[name] if name in whole else ((determinant - 1) * (name != "inv") + 1) * inverse[-1, 0])

    assert value_of(e, (A, numbers)) == pytest.approx(wanted(numbers))
    slope = (wanted(numbers + 1e-6 * along) - wanted(numbers - 1e-6 * along)) / 2e-6
    assert slope_of(e, A, numbers, along) == pytest.approx(slope, rel=1e-6, abs=1e-8)


def test_vector_products_are_those_of_numpy() -> None:
    three = Range("n", "plain", (3,))
    i, x, y = Var(Index(three)), Var(Tensor((three,))), Var(Tensor((three,)))
    u, v, along = np.random.default_rng(4).normal(size=(3, 3))
    for place, wanted in enumerate(np.cross(u, v)):
        e = App(Reduced("cross", (i,), at(y, bare(i)), at(x, bare(i))), (Affine((), place),))
        assert value_of(e, (x, u), (y, v)) == pytest.approx(wanted)
        square = App(Reduced("cross", (i,), Power(at(x, bare(i)), Literal(Fraction(2))), at(x, bare(i))), e.args)
        slope = (np.cross(along, u**2) + np.cross(u, 2 * u * along)) @ np.eye(3)[place]
        assert slope_of(square, x, u, along) == pytest.approx(slope)


@pytest.mark.slow
def test_softmax_is_that_of_jax_and_leaves_out_what_its_condition_does() -> None:
    jax = pytest.importorskip("jax")
    x = at(X, bare(L))
    soft = Sum((K,), Mul((bare(K), App(Reduced("softmax", (L,), x), (bare(K),)))))
    assert value_of(soft, (X, NUMBERS)) == pytest.approx(float(np.arange(5) @ jax.nn.softmax(NUMBERS)), rel=1e-6)
    some = Reduced("softmax", (L,), x, Compared((Affine((), 1), bare(L)), ("<",)))
    found = [value_of(App(some, (Affine((), k),)), (X, NUMBERS)) for k in range(5)]
    weights = np.exp(NUMBERS) * (np.arange(5) > 1)
    assert found == pytest.approx(weights / weights.sum())
    slope = (weights / weights.sum())[4] * (1 - (weights / weights.sum())[4])
    assert slope_of(App(some, (Affine((), 4),)), X, NUMBERS, [0, 0, 0, 0, 1]) == pytest.approx(slope)


def test_running_sums_and_shares() -> None:
    x = at(X, bare(L))
    running = Reduced("cumsum", (L,), x, Compared((bare(L), Affine((), 1)), ("!=",)))
    found = [value_of(App(running, (Affine((), k),)), (X, NUMBERS)) for k in range(5)]
    assert found == pytest.approx(np.cumsum(NUMBERS * (np.arange(5) != 1)))
    shares = [value_of(App(Reduced("ties", (L,), x), (Affine((), k),)), (X, NUMBERS)) for k in range(5)]
    assert shares == [0.5, 0, 0.5, 0, 0]


def test_equal_numbers_share_the_derivative_of_an_extremum() -> None:
    along = np.array([1.0, 10.0, 100.0, 1000.0, 10000.0])
    largest = Reduced("maximum", (L,), at(X, bare(L)))
    assert slope_of(largest, X, NUMBERS, along) == 50.5
    three = Several("max", tuple(at(X, Affine((), k)) for k in (0, 1, 2)))
    assert slope_of(three, X, NUMBERS, along) == 50.5
    equal = Several("max", tuple(at(X, Affine((), k)) for k in (0, 2, 0)))
    assert slope_of(equal, X, NUMBERS, along) == (1 + 100) / 4 + 1 / 2
    clipped = Several("clip", (at(X, Affine((), 3)), ZERO, ONE))
    assert slope_of(clipped, X, NUMBERS, along) == 500


def test_a_product_has_its_derivative_where_factors_are_zero() -> None:
    e = Reduced("prod", (L,), at(X, bare(L)))
    assert slope_of(e, X, [2, 0, 3, 1, 5], [1, 1, 1, 1, 1]) == 30
    assert slope_of(e, X, [2, 0, 3, 0, 5], [1, 1, 1, 1, 1]) == 0


def test_norms_have_the_derivative_zero_at_zero() -> None:
    assert value_of(Norm(Ref(X)), (X, NUMBERS)) == pytest.approx(np.linalg.norm(NUMBERS))
    assert slope_of(Norm(Ref(X)), X, NUMBERS, [1, 0, 0, 0, 0]) == pytest.approx(1.5 / np.linalg.norm(NUMBERS))
    assert slope_of(Norm(Ref(X)), X, np.zeros(5), [1, 0, 0, 0, 0]) == 0
    rows = Norm(Lam((J,), Power(at(X, bare(J)), literal(2))))
    assert value_of(Sum((L,), rows), (X, NUMBERS)) == pytest.approx(5 * np.linalg.norm(NUMBERS**2))


def test_a_size_is_a_number() -> None:
    assert value_of(Mul((Size(L), literal(3)))) == 15


# --- functions ------------------------------------------------------------------------------------------------------

A = Var(REAL)


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("atan2", (0.5, -2.0), np.arctan2(0.5, -2.0)),
        ("max", (0.5, -2.0), 0.5),
        ("min", (0.5, -2.0), -2.0),
        ("clip", (0.5, -2.0, 0.25), 0.25),
        ("clip", (0.5, 2.0, -1.0), -1.0),
    ],
)
def test_functions_of_several_numbers(name: str, args: tuple[float, ...], expected: float) -> None:
    assert value_of(Several(name, tuple(map(literal, args)))) == pytest.approx(expected)
    for n in range(len(args)):
        e = Several(name, tuple(Ref(A) if m == n else literal(v) for m, v in enumerate(args)))
        ends = [value_of(e, (A, args[n] + h)) for h in (1e-6, -1e-6)]
        assert slope_of(e, A, args[n], 1) == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-9)


def test_what_is_cut_off_is_a_zero_without_a_sign() -> None:
    assert value_of(Several("atan2", (Call("relu", Ref(A)), Ref(A))), (A, -2.0)) == pytest.approx(np.pi)


@pytest.mark.parametrize("order", [0, 1, 3])
def test_polygamma_is_that_of_mpmath(order: int) -> None:
    mpmath = pytest.importorskip("mpmath")
    e = Several("polygamma", (literal(order), Ref(A)))
    assert value_of(e, (A, 1.7)) == pytest.approx(float(mpmath.polygamma(order, 1.7)))
    assert slope_of(e, A, 1.7, 1) == pytest.approx(float(mpmath.polygamma(order + 1, 1.7)))
