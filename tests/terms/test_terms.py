"""Laws of the constructors and of substitution: they keep the meaning and a normal shape."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.samples import random_arguments, random_value
from combdiff.meaning.sizes import default_sizes
from combdiff.terms import nodes
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    TWO,
    ZERO,
    Add,
    App,
    Call,
    Conj,
    Delta,
    Lam,
    Let,
    Mul,
    Pow,
    Sum,
    Term,
    Traverser,
    Var,
    add,
    alpha_equal,
    apply,
    bound_by,
    call,
    conj,
    fresh,
    holds,
    lam,
    let,
    mul,
    neg,
    number,
    power,
    refreshed,
    split_coefficient,
    sub,
    substitute,
    subterms,
    total,
)
from combdiff.terms.types import COMPLEX, REAL, Domain, Index, Map
from tests.strategies import PLAIN, Surroundings, constants, programs, scalars

ROWS = PLAIN
VECTOR = Map((Index(ROWS),), REAL)
X, Y, Z = fresh("x", REAL), fresh("y", REAL), fresh("z", COMPLEX)
KINDS = {"x": REAL, "z": COMPLEX, "v": VECTOR, "A": Map((Index(ROWS), Index(ROWS)), COMPLEX)}


@st.composite
def open_terms(draw):
    """A scalar term, its free variables and values for them."""
    variables = [fresh(name, kind) for name, kind in KINDS.items()]
    term = draw(scalars(Surroundings(variables), 3))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    return term, variables, {v: random_value(v.kind, {ROWS: 2}, rng) for v in variables}, rng


def result(program, arguments, sizes):
    """The value of a program (captured…) -> (unknown…) -> scalar."""
    value = evaluate(program, {}, sizes)
    while isinstance(program, Lam):
        value = value(*(arguments[p] for p in program.params))
        program = program.body
    return value


def close(a, b):
    return np.allclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True)


SIZES = {ROWS: 2}


@pytest.mark.slow
@given(open_terms(), st.data())
@settings(max_examples=60, deadline=None)
def test_substituting_a_term_is_evaluating_with_its_value(drawn, chosen):
    term, variables, values, _ = drawn
    replaced = variables[0]
    value = mul(chosen.draw(constants()), call("real", chosen.draw(scalars(Surroundings(variables), 2))))
    value = call("real", value)
    inner = evaluate(value, values, SIZES)
    with np.errstate(all="ignore"):
        direct = evaluate(term, {**values, replaced: float(inner)}, SIZES)
        assert close(evaluate(substitute(term, {replaced: value}), values, SIZES), direct)


@pytest.mark.slow
@given(open_terms())
@settings(max_examples=60, deadline=None)
def test_substituting_a_tensor_is_evaluating_with_its_array(drawn):
    term, variables, values, _ = drawn
    i, vector, x = fresh("i", Index(ROWS)), variables[2], variables[0]
    tensor = Lam((i,), add(mul(x, App(vector, (i,))), i))
    array = evaluate(tensor, values, SIZES)
    direct = evaluate(term, {**values, vector: array}, SIZES)
    assert close(evaluate(substitute(term, {vector: tensor}), values, SIZES), direct)


@pytest.mark.slow
@given(programs())
@settings(max_examples=60, deadline=None)
def test_a_refreshed_program_is_equal_up_to_names_and_shares_no_binder(program):
    copy = refreshed(program)
    ours = {v for t in subterms(program) for v in bound_by(t)}
    theirs = {v for t in subterms(copy) for v in bound_by(t)}
    assert alpha_equal(program, copy) and ours.isdisjoint(theirs)


@pytest.mark.slow
@given(programs(), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_a_refreshed_program_has_the_same_values(program, seed):
    sizes = default_sizes(program) | {d: 3 for d in default_sizes(program) if d.periodic}
    arguments = random_arguments(program, sizes, np.random.default_rng(seed))
    copy = refreshed(program)
    renamed = {new: arguments[old] for old, new in zip(leading(program), leading(copy), strict=True)}
    assert close(result(program, arguments, sizes), result(copy, renamed, sizes))


def leading(program):
    params = []
    while isinstance(program, Lam):
        params += program.params
        program = program.body
    return params


@pytest.mark.slow
@given(programs())
@settings(max_examples=60, deadline=None)
def test_a_walk_that_changes_nothing_gives_an_equal_term(program):
    assert Traverser(lambda t: t)(program) == program


@pytest.mark.slow
@given(programs())
@settings(max_examples=60, deadline=None)
def test_programs_are_closed(program):
    assert not program.free


def test_substitution_does_not_capture():
    i, j = fresh("i", Index(ROWS)), fresh("j", Index(ROWS))
    v, x = fresh("v", VECTOR), fresh("x", REAL)
    term = Sum((i,), mul(App(v, (i,)), x))
    inner = substitute(term, {x: App(v, (i,))})
    array = np.array([1.0, 10.0])
    assert evaluate(Lam((i,), inner), {v: array}).tolist() == [11.0, 110.0]
    assert j not in inner.free and i in inner.free


def test_a_map_applied_twice_binds_each_time_anew():
    i, v = fresh("i", Index(ROWS)), fresh("v", VECTOR)
    twice = Lam((v,), Sum((i,), App(v, (i,))))
    w = fresh("w", VECTOR)
    a, b = apply(twice, w), apply(twice, w)
    assert isinstance(a, Sum) and isinstance(b, Sum) and a.indices != b.indices and alpha_equal(a, b)


@pytest.mark.slow
@given(open_terms(), open_terms())
@settings(max_examples=40, deadline=None)
def test_sums_and_products_mean_what_they_say(one, other):
    (a, _, values, _), (b, _, more, _) = one, other
    known = {**values, **more}
    left, right = evaluate(a, known, SIZES), evaluate(b, known, SIZES)
    assert close(evaluate(add(a, b), known, SIZES), left + right)
    assert close(evaluate(sub(a, b), known, SIZES), left - right)
    assert close(evaluate(mul(a, b), known, SIZES), left * right)
    assert close(evaluate(power(a, number(3)), known, SIZES), left**3)
    assert close(evaluate(conj(a), known, SIZES), np.conj(left))


@pytest.mark.slow
@given(open_terms())
@settings(max_examples=40, deadline=None)
def test_a_coefficient_split_off_multiplies_back(drawn):
    term, *_ = drawn
    coefficient, rest = split_coefficient(term)
    assert mul(coefficient, rest) == term and not (isinstance(rest, Mul) and rest.factors[0] == coefficient != ONE)


@pytest.mark.parametrize(
    "built, expected",
    [
        (add(X, Y, X), Add((Mul((number(2), X)), Y))),
        (add(X, neg(X)), ZERO),
        (add(ONE, X, MINUS_ONE), X),
        (mul(X, ZERO, Y), ZERO),
        (mul(X, Y, X), Mul((Pow(X, number(2)), Y))),
        (mul(X, power(X, MINUS_ONE)), ONE),
        (mul(number(2), mul(number(3), X)), Mul((number(6), X))),
        (power(power(X, number(2)), number(3)), Pow(X, number(6))),
        (power(number(2), number(-2)), number(1 / 4)),
        (conj(conj(Z)), Z),
        (conj(X), X),
        (call("imag", X), ZERO),
        (total((), X), X),
    ],
)
def test_constructors_give_the_normal_shape(built, expected):
    assert built == expected


def test_a_map_that_only_passes_its_arguments_on_is_the_inner_map():
    i, v = fresh("i", Index(ROWS)), fresh("v", VECTOR)
    assert lam((i,), App(v, (i,))) is v


def test_unused_bindings_are_dropped_and_used_ones_stay_in_order():
    a, b, c = (fresh(n, REAL) for n in "abc")
    term = let([(a, call("exp", X)), (b, call("sin", X)), (c, mul(a, Y))], c)
    assert isinstance(term, Let) and [var for var, _ in term.bindings] == [a, c]


@pytest.mark.slow
def test_terms_of_great_depth_are_hashed_and_compared():
    def tower():
        t = X
        for _ in range(50_000):
            t = call("exp", t)
        return t

    assert hash(tower()) == hash(tower()) and tower() != X


def test_variables_are_told_apart_by_identity():
    assert fresh("x", REAL) != fresh("x", REAL) and Var("x", REAL, X.uid) == X


def test_a_sum_over_an_index_that_is_bound_again_is_one_over_two() -> None:
    """Σ_i Σ_i e is n Σ_i e; of one index both would be a single sum."""
    n = Domain("n")
    i, a = fresh("i", Index(n)), fresh("a", REAL)
    found = total((i,), total((i,), a))
    assert isinstance(found, Sum) and len(set(found.indices)) == 2
    assert evaluate(found, {a: 2.0}, {n: 3}) == 18


def test_equal_terms_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A term that is built twice shares nothing; that its parts are equal is known after the first comparison."""
    x = fresh("x", REAL)

    def tower(height: int) -> Term:
        return x if not height else Call("sin", (add(tower(height - 1), ONE),))

    compared, parts = [], nodes._compared
    monkeypatch.setattr(nodes, "_compared", lambda a, b: compared.append(a) or parts(a, b))
    a, b, c = tower(20), tower(20), tower(20)
    assert a == b and b == c
    before = len(compared)
    assert before == 2 * 40
    assert a == c and a.args == c.args and len({a, b, c}) == 1
    assert len(compared) == before


def test_terms_that_are_equal_to_a_third_are_equal_in_any_order_of_comparison() -> None:
    x = fresh("x", REAL)
    terms = [Call("sin", (add(x, number(n % 2)),)) for n in range(12)]
    for m, n in permutations(range(12), 2):
        assert (terms[m] == terms[n]) == (m % 2 == n % 2)


@pytest.mark.slow
@given(programs())
@settings(max_examples=60, deadline=None)
def test_subterms_of_some_kinds_are_those_among_all_in_the_same_order(program):
    for kinds in ((Sum,), (Mul, Add), (Conj, Delta, App), (Var,), (Let,)):
        among = [u for u in subterms(program) if isinstance(u, kinds)]
        assert [id(u) for u in subterms(program, *kinds)] == [id(u) for u in among]
        assert holds(program, *kinds) == bool(among)


@pytest.mark.slow
@given(programs())
@settings(max_examples=60, deadline=None)
def test_a_walk_that_is_told_what_it_changes_changes_the_same(program):
    def doubled(t):
        return Sum(t.indices, mul(TWO, t.body)) if isinstance(t, Sum) else t

    assert Traverser(doubled, Sum)(program) == Traverser(doubled)(program)
