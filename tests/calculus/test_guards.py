"""What is guarded stays guarded: what may come out of a guard, and where definitions count as guarded."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import combdiff as cd
from combdiff.calculus.definitions.floating import float_lets
from combdiff.calculus.demands import demanded, guarded_definitions
from combdiff.calculus.primitives import scalar
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.language.printing.printer import expression_text
from combdiff.meaning.evaluate import evaluate
from combdiff.terms.conditions.guards import Condition, Finite, guarded, is_finite, under, unguarded
from combdiff.terms.conditions.kinks import without_needless_conditions
from combdiff.terms.conditions.ordering import form_of, implies, united, without
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    TWO,
    ZERO,
    App,
    Lam,
    Let,
    Reduce,
    Term,
    Tuple,
    Var,
    add,
    call,
    conj,
    delta,
    fresh,
    indicator,
    mul,
    number,
    power,
    sub,
    subterms,
    total,
    tuple_of,
)
from combdiff.terms.types import COMPLEX, REAL, Domain, Index, Map, Number
from tests.function_points import orders_of

N = Index(Domain("x.1"))
x, y, z = fresh("x", REAL), fresh("y", REAL), fresh("z", COMPLEX)
i, j, k = (fresh(name, N) for name in "ijk")
v = fresh("v", Map((N,), REAL))
PAIRS = "sum((i, j), where(i < j, {}))"


# --- what is finite wherever the data are ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "t",
    [
        ONE,
        x,
        App(v, (i,)),
        mul(x, y, App(v, (i,))),
        power(sub(x, y), TWO),
        call("sin", x),
        call("cos", z),
        call("tanh", x),
        call("abs", x),
        conj(z),
        i,
        power(add(ONE, power(x, TWO)), MINUS_ONE),
        power(add(ONE, i), MINUS_ONE),
        call("sqrt", add(ONE, call("abs2", z))),
        call("log", add(TWO, call("abs", x))),
        call("exp", mul(number(-3), power(x, TWO))),
        power(TWO, MINUS_ONE),
        total((i,), App(v, (i,))),
    ],
    ids=expression_text,
)
def test_what_is_finite_wherever_the_data_are(t: Term) -> None:
    assert is_finite(t)


@pytest.mark.parametrize(
    "t",
    [
        power(x, MINUS_ONE),
        call("log", x),
        call("sqrt", x),
        call("exp", x),
        call("tan", x),
        call("tanh", z),
        call("abs", z),
        power(x, y),
        power(TWO, x),
        power(add(ONE, power(z, TWO)), MINUS_ONE),
        power(sub(i, j), MINUS_ONE),
        call("exp", power(x, TWO)),
        mul(x, call("sin", power(y, MINUS_ONE))),
        indicator(ONE, x, call("log", x)),
        App(fresh("f", Map((REAL,), REAL)), (x,)),
        power(add(ONE, total((i,), App(v, (i,)))), MINUS_ONE),
    ],
    ids=expression_text,
)
def test_what_may_be_infinite_or_have_an_infinite_slope(t: Term) -> None:
    assert not is_finite(t)


def test_entries_of_a_definition_are_as_finite_as_it_is() -> None:
    assert is_finite(App(v, (i,))) and not is_finite(App(v, (i,)), {v})


@pytest.mark.parametrize("name", list(SCALAR_FUNCTIONS))
@pytest.mark.parametrize("kind", [REAL, COMPLEX], ids=["real", "complex"])
def test_every_function_is_finite_with_its_slope_at_the_safe_argument(name: str, kind: Number) -> None:
    row = SCALAR_FUNCTIONS[name]
    if kind == COMPLEX and row.of_reals:
        return
    orders, count = orders_of(name), row.arity - row.orders
    safe = number(row.safe)
    with np.errstate(all="raise"):
        assert np.isfinite(evaluate(call(name, *orders, *[safe] * count), {}))
        assert np.isfinite(evaluate(scalar(name, *orders).pullback(tuple_of([safe] * count), ONE), {})).all()
    t = fresh("t", kind)
    applied = call(name, *orders, *[t] * count)
    points = [0.0, -3e4, -1.0, 0.5, 1e5] + ([] if kind == REAL else [-1j, 1.5707963j, 2 + 1e2j])
    if is_finite(applied):
        for value in points[name == "sign" :]:  # which has no slope at 0, where it jumps
            for u in (applied, scalar(name, *orders).pullback(tuple_of([t] * count), ONE)):
                assert np.isfinite(evaluate(u, {t: value})).all()


@pytest.mark.slow
@given(st.lists(st.sampled_from(["square", "abs", "i", "two", "sqrt", "cosh"]), min_size=1, max_size=4), st.data())
def test_a_sign_that_is_known_is_the_sign_of_the_value(parts: list[str], data: st.DataObject) -> None:
    made = {"square": power(x, TWO), "abs": call("abs", y), "i": i, "two": TWO, "cosh": call("cosh", y)}
    made["sqrt"] = call("sqrt", add(ONE, power(y, TWO)))
    combine = data.draw(st.sampled_from([add, mul]))
    t = combine(*(made[p] for p in parts))
    least = Finite().least(t)
    assert least >= 0
    for a, b, n in product((-2.0, 0.0, 3.0), (-1.0, 0.0), (0, 2)):
        value = evaluate(t, {x: a, y: b, i: n}, {N.domain: 3})
        assert value >= 0 and (value > 0 or least == 0)


# --- products with guards --------------------------------------------------------------------------------------------


def test_a_guard_is_found_through_what_is_linear() -> None:
    below = Condition(i, j)
    inner = indicator(i, j, x)
    assert unguarded(inner) == ((below,), x)
    assert unguarded(mul(y, inner)) == ((below,), mul(y, x))
    assert unguarded(conj(indicator(i, j, z))) == ((below,), conj(z))
    assert unguarded(call("real", indicator(i, j, z))) == ((below,), call("real", z))
    assert unguarded(delta(i, k, inner)) == ((below,), delta(i, k, x))
    assert unguarded(total((k,), mul(App(v, (k,)), inner)))[0] == (below,)
    assert unguarded(total((j,), inner)) == ((), total((j,), inner)), "the condition speaks of the sum's index"
    for t in (call("exp", inner), add(x, inner), power(inner, TWO)):
        assert unguarded(t) == ((), t)


def test_only_what_is_finite_comes_out_of_a_guard() -> None:
    below = (Condition(i, j),)
    inverse = power(x, MINUS_ONE)
    assert guarded(below, mul(TWO, y, inverse)) == mul(TWO, y, indicator(i, j, inverse))
    assert guarded(below, mul(y, inverse), {y}) == indicator(i, j, mul(y, inverse))
    assert guarded(below, Lam((k,), inverse)) == Lam((k,), indicator(i, j, inverse))
    assert under((*below, Condition(j, k)), x) == indicator(i, j, indicator(j, k, x))


# --- conditions among indices ----------------------------------------------------------------------------------------

BOUNDED = Index(Domain("K", declared=True, lower=0, upper=3))
SIZES = (1, 2, 3, 5)


@st.composite
def conditions(draw: st.DrawFn, kind: Index, names: tuple[Var, ...]) -> tuple[Condition, ...]:
    found = []
    for _ in range(draw(st.integers(1, 3))):
        one, other = draw(st.sampled_from([*names, None])), draw(st.sampled_from([*names, None]))
        shift = draw(st.integers(-2, 2))
        left, right = (number(0) if w is None else w for w in (one, other))
        found.append(Condition(add(left, number(shift)), right, equal=draw(st.integers(0, 4)) == 0))
    return tuple(found)


def holds(c: Condition, at: dict[Var, int], size: int) -> bool:
    return bool(evaluate(c.over(ONE), at, {N.domain: size}))


@given(st.sampled_from([N, BOUNDED]), st.data())
def test_what_is_left_of_conditions_without_an_index_holds_where_some_value_of_it_does(
    kind: Index, data: st.DataObject
) -> None:
    a, b, c = names = tuple(fresh(name, kind) for name in "abc")
    given_ = data.draw(conditions(kind, names))
    left = without(given_, b)
    if left is None:
        return
    for size in SIZES if kind == N else (4,):
        for p, q in product(range(size), repeat=2):
            wanted = any(all(holds(d, {a: p, b: r, c: q}, size) for d in given_) for r in range(size))
            assert all(holds(d, {a: p, c: q}, size) for d in left) == wanted


def test_a_chain_of_conditions_without_its_middle() -> None:
    assert without((Condition(add(i, ONE), j), Condition(add(j, ONE), k)), j) == (Condition(add(i, TWO), k),)
    assert without((Condition(i, j),), j) == (), "j = i will do"
    assert without((Condition(add(i, ONE), j),), i) == (Condition(ONE, j),)
    (before_last,) = without((Condition(add(i, ONE), j),), j) or ()
    assert expression_text(before_last.over(x)) == "where(i + 2 <= sum(i₁, 1), x)" and before_last.counts
    ring = fresh("p", Index(Domain("Z", declared=True, periodic=True)))
    assert without((Condition(ring, i),), ring) is None, "arithmetic that wraps is no order"


@pytest.mark.slow
@given(st.data())
def test_a_condition_that_is_implied_holds_where_the_other_one_does(data: st.DataObject) -> None:
    one, other, *_ = data.draw(conditions(N, (i, j)).filter(lambda found: len(found) > 1))
    if implies(one, other):
        for size in SIZES:
            for p, q in product(range(size), repeat=2):
                assert holds(other, {i: p, j: q}, size) or not holds(one, {i: p, j: q}, size)


def test_one_condition_implies_another() -> None:
    assert implies(Condition(add(i, TWO), k), Condition(add(i, ONE), k))
    assert not implies(Condition(add(i, ONE), k), Condition(add(i, TWO), k))
    assert not implies(Condition(i, k), Condition(k, i))
    ring = Index(Domain("Z", declared=True, periodic=True))
    p, q = fresh("p", ring), fresh("q", ring)
    assert form_of(Condition(p, q)) is None, "arithmetic that wraps is no order"


@pytest.mark.slow
@given(st.data())
def test_a_union_of_guards_holds_where_one_of_them_does(data: st.DataObject) -> None:
    guards = data.draw(st.lists(conditions(N, (i, j)), min_size=1, max_size=3))
    found = united(guards)
    for size in SIZES:
        for p, q in product(range(size), repeat=2):
            at = {i: p, j: q}
            wanted = any(all(holds(c, at, size) for c in guard) for guard in guards)
            assert all(holds(c, at, size) for c in found) == wanted


# --- where definitions matter ----------------------------------------------------------------------------------------

UNDER = {
    "a pair": (PAIRS.format("1 / r(i, j)"), "where(p < q, 1)"),
    "exchanged": (PAIRS.format("1 / r(j, i)"), "where(q < p, 1)"),
    "twice": (f"{PAIRS.format('r(i, j)')} + {PAIRS.format('r(i, j)^2')}", "where(p < q, 1)"),
    "in a function": (PAIRS.format("exp(where(0 <= j, r(i, j)))"), "where(p < q, 1)"),
    "a chain": (
        "sum((i, j, k), where(i < j < k, r(i, j) * r(j, k) * r(i, k)))",
        "where(p < q and q + 2 <= sum(i, 1) or p < q and 1 <= p or p + 2 <= q, 1)",
    ),
    "two orders": (
        f"{PAIRS.format('r(i, j)')} + {PAIRS.format('r(j, i)')}",
        "where(p < q or q < p, 1)",
    ),
    "a condition of its own": (PAIRS.format("where(r(i, j) <= 2, r(i, j))"), "where(p < q, 1)"),
    "also elsewhere": (f"{PAIRS.format('r(i, j)')} + r(0, 0)", "1"),
    "one index": ("sum((i, j), where(i < j, r(j, 0) * x(i, 0)))", "where(1 <= p, 1)"),
    "the other one": (
        "sum((i, j), where(i < j, r(i, 0) * x(j, 0)))",
        "where(p + 2 <= sum(i, 1), 1)",
    ),
    "a distance": (
        "sum((i, j), where(x(i, 0) < x(j, 0), r(i, 0)))",
        "where(1 <= sum(j, where(x(p, 0) < x(j, 0), 1)), 1)",
    ),
    # j may be i
    "a distance that may be 0": ("sum((i, j), where(x(i, 0) <= x(j, 0), r(i, 0)))", "1"),
    "a distance that may be 0, and another one": (
        "sum((i, j), where(x(i, 0) <= x(j, 0) and x(j, 0) <= x(i, 1), r(i, 0)))",
        "where(1 <= sum(j, where(x(p, 0) <= x(j, 0) <= x(p, 1), 1)), 1)",
    ),
    "one row": ("sum((i, j), where(x(i, 0) <= 2, r(i, 0) * x(j, 0)))", "where(x(p, 0) <= 2, 1)"),
}


@pytest.mark.parametrize("name", UNDER)
def test_a_definition_matters_where_its_uses_are_guarded(name: str) -> None:
    use, expected = UNDER[name]
    text = f"(x::RM) -> begin; r = (p, q) -> sqrt(sum(c, (x(p, c) - x(q, c))^2)); {use}; end"
    program = infer(parse(text))
    assert isinstance(program, Lam)
    bindings, core = float_lets(program.body)
    guards = demanded(bindings, [core])
    r = bindings[0][0]
    assert expression_text(under(guards.get(r, ()), ONE)) == expected


def test_a_comparison_needs_the_value_and_no_slope() -> None:
    text = "(x::RV) -> begin; r = i -> sqrt(x(i)); sum(i, where(r(i) <= 2 and 1 <= i, r(i))); end"
    program = infer(parse(text))
    assert isinstance(program, Lam)
    bindings, core = float_lets(program.body)
    assert demanded(bindings, [core]) == {}
    (guard,) = demanded(bindings, [core], slopes=True).values()
    assert len(guard) == 2


def test_the_cases_of_a_choice_are_all_there_are() -> None:
    """A definition that all cases of nested conditions use matters everywhere, and keeps its name."""
    cases = "where(a(i) <= 1, exp(a(i)), where(a(i) <= 2, a(i)^2, where(3 <= a(i), 1 / a(i), exp(-a(i)))))"
    text = f"(x::RV) -> begin; a = i -> log(x(i)); sum(i, {cases}); end"
    program = infer(parse(text))
    assert isinstance(program, Lam)
    bindings, core = float_lets(program.body)
    assert demanded(bindings, [core], slopes=True) == {}
    found = guarded_definitions(bindings, [core])
    assert found is not None and found.bindings == bindings and not found.guards
    two = text.replace(", exp(-a(i))", "")
    bindings, core = float_lets(infer(parse(two)).body)
    assert demanded(bindings, [core], slopes=True).keys() == {bindings[0][0]}, "one case is missing"


def test_a_short_definition_is_written_out_where_its_indices_do_not_say_what_guards_it() -> None:
    text = "(x::RV) -> begin; d = i -> log(x(i)); sum((i, j), where(i < j, d(i) * x(j))); end"
    program = infer(parse(text))
    assert isinstance(program, Lam)
    bindings, core = float_lets(program.body)
    found = guarded_definitions(bindings, [core])
    assert found is not None and not found.bindings
    assert expression_text(found.results[0]) == "sum((i, j), where(i < j, log(x(i)) * x(j)))"
    assert guarded_definitions([], [x]) is None, "where nothing is guarded there is nothing to do"


# --- cotangents ------------------------------------------------------------------------------------------------------

KEPT = {
    "a logarithm": ("(x::RV) -> sum(i, where(1 <= i, log(x(i))))", "i -> where(1 <= i, 1 / x(i))"),
    "what is finite comes out": (
        "(y::RV) -> (x::RV) -> sum(i, where(1 <= i, sin(y(i)) * log(x(i))))",
        "i -> sin(y(i)) * where(1 <= i, 1 / x(i))",
    ),
    "all of it": ("(y::RV) -> (x::RV) -> sum(i, where(1 <= i, y(i) * x(i)))", "i -> where(1 <= i, y(i))"),
    "the other factor": (
        "(y::RV) -> (x::RV) -> sum(i, where(1 <= i, x(i) / y(i)))",
        "i -> where(1 <= i, 1 / y(i))",
    ),
    "a guard in a function in a guard": (
        "(x::RV) -> sum(i, where(1 <= i, exp(where(1 <= i, log(x(i))))))",
        "i -> where(1 <= i, exp(log(x(i))) / x(i))",
    ),
    "a real comparison": (
        "(x::RV) -> sum(i, where(0 <= x(i), sqrt(x(i))))",
        "i -> 1/2 * where(0 <= x(i), 1 / sqrt(x(i)))",
    ),
    "an unknown function": (
        "(f::RF) -> (x::RV) -> sum(i, where(1 <= i, f(x(i))))",
        "i -> where(1 <= i, grad(f)(x(i)))",
    ),
    "two conditions": (
        "(y::RV) -> (x::RV) -> sum(i, where(1 <= i and x(i) <= y(i), 1 / x(i)))",
        "i -> -where(1 <= i and x(i) <= y(i), 1 / x(i)^2)",
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_a_slope_that_may_be_infinite_stays_under_its_guard(name: str) -> None:
    text, expected = KEPT[name]
    d = cd.grad(text)
    assert str(d).removeprefix(text[: text.rindex("->", 0, text.index("sum"))]) == f"-> {expected}"


def test_a_guard_around_some_items_of_a_tuple_is_in_front_of_it() -> None:
    condition = Condition(ONE, x)
    guard, core = unguarded(Tuple((ZERO, indicator(ONE, x, y))))
    assert guard == (condition,) and core == Tuple((ZERO, y))
    guard, core = unguarded(Tuple((indicator(ONE, x, indicator(y, x, y)), indicator(ONE, x, y))))
    assert guard == (condition,) and core == Tuple((indicator(y, x, y), y))
    assert unguarded(Tuple((x, indicator(ONE, x, y))))[0] == ()


VANISHING = (
    "(a::RV) -> (z::C) -> sum(i, angle(relu(a(i)) * z))",
    "(a::RV) -> (z::CV) -> begin r = i -> where(a(i) > 0, a(i)); sum(i, angle(r(i) * z(i))) end",
    "(z::C) -> angle(relu(real(z)) * z)",
    "(a::R) -> (x::RV) -> sum(i, atan2(relu(a) * x(i), relu(a)))",
)


@pytest.mark.slow
@pytest.mark.parametrize("text", VANISHING)
def test_a_direction_does_not_turn_where_a_factor_is_zero(text: str) -> None:
    """r / r is no 1 where r is 0 on an open set; angle(0) is 0 for all that stands beside it."""
    d = cd.grad(text)
    assert all(d.check(seed) for seed in range(4))


@pytest.mark.parametrize("a", [-2.0, 0.0, 3.0])
def test_the_slope_of_an_angle_is_zero_with_the_value(a: float) -> None:
    angle = cd.grad("(a::R) -> (z::C) -> angle(a * z)").compile()
    assert angle(a, 1 + 2j) == pytest.approx(1j / (1 - 2j) if a else 0)
    direction = cd.grad("(a::R) -> (x::R) -> atan2(a * x, a)").compile()
    assert direction(a, 2.0) == pytest.approx(1 / 5 if a else 0)


def test_an_angle_of_one_number_has_no_guard() -> None:
    assert str(cd.grad("(x::CV) -> sum(i, angle(2 * x(i)))")) == "(x::CV) -> i -> im / x(i)'"


# --- kinks ----------------------------------------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("value", "below", "above"),
    [
        ("sqrt(relu(x))", 0.0, 0.5),
        ("sqrt(max(x, 0))", 0.0, 0.5),
        ("sqrt(max(0, x))", 0.0, 0.5),
        ("max(x, 0)^(1/3)", 0.0, 1 / 3),
        ("log(1 + sqrt(relu(x)))", 0.0, 0.25),
        ("sqrt(-min(-x, 0))", 0.0, 0.5),
        ("sqrt(clip(x, 0, 4))", 0.0, 0.5),
        ("begin v = relu(x); w = sqrt(v); w + w end", 0.0, 1.0),
        ("sqrt(where(x != 5, max(x, 0)))", 0.0, 0.5),
        ("1 / max(x, 0)^0.5 - 1 / max(x, 0)^0.5 + sqrt(relu(x))", 0.0, 0.5),
    ],
)
def test_what_is_infinite_does_not_count_where_the_slope_of_a_kink_is_zero(
    value: str, below: float, above: float
) -> None:
    gradient, tangent = cd.grad(f"(x::R) -> {value}").compile(), cd.jvp(f"(x::R) -> {value}").compile()
    with np.errstate(all="ignore"):
        assert gradient(-1.0) == tangent(-1.0, 3.0) == below
        assert gradient(1.0) == pytest.approx(above, rel=1e-14)
        assert tangent(1.0, 3.0) == pytest.approx(3 * above, rel=1e-14)


@pytest.mark.parametrize(
    ("text", "gradient"),
    [
        ("(x::R) -> relu(x)^2 * exp(x)", "(x::R) -> exp(x) * (2 * relu(x) + relu(x)^2)"),
        ("(x::R, y::R) -> max(x, y)", "(x::R, y::R) -> (1/2 * (1 + sign(x - y)), 1/2 * (1 + sign(y - x)))"),
        ("(x::R) -> clip(x, 0, 1)", "(x::R) -> 1/2 * (sign(x) + sign(1 - x))"),
        ("(g::RF) -> (x::R) -> g(min(x, 3))", "(g::RF) -> (x::R) -> 1/2 * grad(g)(min(x, 3)) * (1 + sign(3 - x))"),
        ("(x::R) -> sqrt(relu(x))", "(x::R) -> 1/2 * where(0 < x, 1 / sqrt(relu(x)))"),
    ],
)
def test_a_slope_of_a_kink_stands_under_a_condition_only_beside_what_may_be_infinite(text: str, gradient: str) -> None:
    assert str(cd.grad(text)) == gradient


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_roots_of_clipped_numbers_agree_with_differences(size: int) -> None:
    rng = np.random.default_rng(size)
    x = np.concatenate([rng.uniform(0.1, 0.9, size), -rng.uniform(0.1, 0.9, size), 1 + rng.uniform(0.1, 0.9, size)])
    d = cd.grad("(x::RV) -> sum(i, sqrt(clip(x(i), 0, 1)))")
    with np.errstate(all="ignore"):
        found = d.compile()(x)
    h = 1e-6
    expected = (np.sqrt(np.clip(x + h, 0, 1)) - np.sqrt(np.clip(x - h, 0, 1))) / (2 * h)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-12)


def test_a_condition_stays_around_the_name_of_what_may_be_infinite() -> None:
    x, v = fresh("x", REAL), fresh("v", REAL)
    for value, is_needed in ((power(x, number(-1)), True), (power(x, number(2)), False)):
        t = Let(((v, value),), mul(add(ONE, call("sign", x)), indicator(ZERO, x, v)))
        assert (without_needless_conditions(t) == t) is is_needed


@pytest.mark.slow
def test_a_share_of_exponentials_is_finite_so_that_a_layer_behind_relu_takes_one_product() -> None:
    d = cd.grad("""(A::RM, X::RM, y::RM) -> (W::RM, V::RM) -> begin
  H = (i, c) -> relu(sum((j, k), A(i, j) * X(j, k) * W(k, c)))
  Z = (i, c) -> sum((j, k), A(i, j) * H(j, k) * V(k, c))
  -sum((i, c), y(i, c) * log(exp(Z(i, c)) / sum(d, exp(Z(i, d)))))
end""")
    for source in (d.source(), d.source(value=True)):
        assert source.split('"""')[-1].count("A.T @") == 1 and "np.where(0 <" not in source
    assert d.check()


@pytest.mark.parametrize(
    ("share", "finite"),
    [
        ("softmax(i, x(i))(k)", True),
        ("softmax(i, x(i) + x(i)^2)(k)", True),
        ("softmax(i, log(x(i)))(k)", False),
        ("softmax(i, x(i), x(i))(k)", False),
        ("softmax(i, x(i))(k + 1)", False),
    ],
)
def test_where_a_share_is_finite(share: str, finite: bool) -> None:
    at = "where(k + 1 < n, {})" if "k + 1" in share else "{}"
    program = infer(parse(f"(x::RV{{n}}) -> sum(k::N{{n}}, {at.format(share)})"))
    (found,) = [u for u in subterms(program) if isinstance(u, App) and isinstance(u.function, Reduce)]
    assert is_finite(found) == finite


@pytest.mark.parametrize(
    "value",
    ["exp(r) * (v(j + 1) + v(j))", "v(j) * exp(v(j + 1))", "v(j + 1) * v(j) / v(j + 1)^2", "sqrt(v(j) * v(j + 1))"],
)
def test_what_keeps_an_entry_in_range_stands_before_the_comparison_that_reads_it(value: str) -> None:
    d = cd.grad(f"(a::RV{{n}}, r::R) -> (v::RV{{n}}) -> sum(j, where(j < n - 1, max(a(j), {value})))")
    assert "j < n - 1 and a(j) <=" in " ".join(str(d).split())
    assert d.check() and cd.simplified(str(d)).check()


@pytest.mark.parametrize(
    "value",
    [
        "max(y, p)^(-1/2)",
        "1 / sqrt(max(log(y), p))",
        "log(min(relu(y), p))",
        "sum(i, x(i) / sqrt(max(x(i)^2 - y, p)))",
        "begin v = max(y - mean(i, x(i)), p); sum(i, x(i)) / sqrt(v) end",
    ],
)
def test_where_the_program_has_no_value_nothing_is_lost(value: str) -> None:
    d = cd.grad(f"(p::R, x::RV) -> (y::R) -> {value}")
    assert d.check()


def test_where_a_definition_is_read_at_a_shifted_index_is_an_inequality() -> None:
    d = cd.grad(
        "(e::R) -> (u::RM{n, m}) -> begin g = (i, j) -> where(i < n - 1, u(i + 1, j) - u(i, j)); "
        "h = (i, j) -> where(j < m - 1, u(i, j + 1) - u(i, j)); sum((i, j), sqrt(g(i, j)^2 + h(i, j)^2 + e^2)) end"
    )
    # a matrix of all pairs of rows would count them
    assert " @ " not in d.source(value=True), d.source(value=True)
    assert d.check()


def test_a_factor_that_a_slope_brings_stays_under_the_condition() -> None:
    """The slope of log Γ is infinite at 0, and stands beside another one that is guarded."""
    program = "(a::C) -> real(cosh(where(0 < imag(a), lgamma(imag(a)), a)) * a)"
    gradient, product = cd.grad(program).compile(), cd.hvp(program).compile()
    k = 1 + 0.5j
    for a in (0.5 + 2j, 0.3 - 1j):
        slope = (gradient(a + 1e-6 * k) - gradient(a - 1e-6 * k)) / 2e-6
        np.testing.assert_allclose(product(a, k), slope, rtol=1e-7)
    assert np.isfinite(product(0j, k)) and np.isfinite(product(0.5 + 0j, k))


def test_the_equation_of_a_root_is_guarded_when_it_is_linearised() -> None:
    """Charges that polarise one another: 1 / r(i, i) is infinite, and no pair (i, i) takes part."""
    program = (
        "(E::RV{n}) -> (x::RV{n}) -> begin r = (i, j) -> (x(i) - x(j))^2; "
        "p = root((p::RV{n}) -> i -> p(i) - E(i) + sum(j, j != i, p(j) / r(i, j))); sum(i, p(i) * E(i)) end"
    )
    d = cd.grad(program)
    assert d.check()
    E, x = np.array([0.3, -1.0, 0.7]), np.array([0.0, 2.0, -3.0])
    step = 1e-6 * np.eye(3)
    value = cd.simplified(program).compile()
    slopes = [(value(E, x + h) - value(E, x - h)) / 2e-6 for h in step]
    np.testing.assert_allclose(d.compile()(E, x), slopes, rtol=1e-7)
    assert cd.hvp(program).check()


@pytest.mark.parametrize(
    "outer", ["sqrt(r(i))", "r(i)^p", "(1 + r(i)^p)^(-1/2)", "r(i) * log(r(i) + where(r(i) == 0, 1))"]
)
def test_a_cotangent_that_is_infinite_stays_under_the_condition(outer: str) -> None:
    """An atom without neighbours has the density 0: no pair takes part in its force, whatever the slope there is."""
    d = cd.grad(f"(p::R) -> (x::RV{{n}}) -> begin r = i -> sum(j, j != i, exp(-x(i) * x(j))); sum(i, {outer}) end")
    gradient = d.compile()
    with np.errstate(all="ignore"):
        assert gradient(0.5, np.ones(1)) == 0
    assert np.isfinite(gradient(0.5, np.array([0.2, 0.4, -0.3]))).all()
    assert d.check()
