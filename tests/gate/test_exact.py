"""Exact arithmetic: terms in the field against the oracle on Gaussian integers, and opaque functions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from combdiff.errors import CheckError
from combdiff.gate.exact import (
    FIELD_FUNCTIONS,
    Exact,
    InexactError,
    has_sides,
    has_sides_of_entries,
    is_transparent,
    is_whole,
)
from combdiff.gate.gate import Gate, Sample, gate_for
from combdiff.gate.labelled import Labelled, added, eliminated, multiplied
from combdiff.gate.residues import EXACT, HALF, PRIME, centred, residue
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.samples import random_value
from combdiff.meaning.sizes import default_sizes
from combdiff.meaning.values import Array, Value
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.terms import (
    ONE,
    PI,
    ZERO,
    App,
    Call,
    Const,
    Indicator,
    Lam,
    Let,
    Pow,
    Term,
    Traverser,
    Var,
    add,
    call,
    conj,
    fresh,
    indicator,
    is_integer_valued,
    mul,
    neg,
    number,
    power,
    sub,
    subterms,
)
from combdiff.terms.types import COMPLEX, REAL, Domain, Index, Map, Number
from tests.strategies import programs

z, w = fresh("z", COMPLEX), fresh("w", COMPLEX)
x, y = fresh("x", REAL), fresh("y", REAL)


def polynomial(t: Term) -> Term:
    """`t` without what is no polynomial: functions are dropped, powers and conditions of numbers too."""
    match t:
        case Call(name, (inner,)) if name not in ("abs2", "real", "imag"):
            return inner
        case Pow(base, exponent) if not is_whole(exponent) or exponent.real < 0:  # type: ignore[attr-defined]
            return base
        case Indicator(left, right, body) if not (is_integer_valued(left) and is_integer_valued(right)):
            return body
        case _:
            return t


def small_integers(shape: tuple[int, ...], over_complex: bool, rng: np.random.Generator) -> Array:
    real = rng.integers(-1, 3, shape).astype(float)
    return np.asarray(real + 1j * rng.integers(-1, 2, shape) if over_complex else real)


def is_dyadic(value: Fraction) -> bool:
    """Whether floating point holds a fraction of two."""
    return value.denominator & (value.denominator - 1) == 0


def residues(value: Value) -> Array:
    """What the oracle computed, modulo the prime; the numbers are exact, for their denominators are powers of two."""
    flat = np.ravel(np.asarray(value, complex))
    parts = [complex(residue(Fraction(c.real)), residue(Fraction(c.imag))) for c in flat.tolist()]
    return np.asarray(parts).reshape(np.shape(value))  # type: ignore[arg-type]  # a number or an array


@pytest.mark.slow
@settings(max_examples=300)
@given(programs(depth=2))
def test_polynomials_are_worth_in_the_field_what_they_are_on_gaussian_integers(program: Lam) -> None:
    rng = np.random.default_rng(0)
    body: Term = program
    values: dict[Var, Value] = {}
    sizes = default_sizes(program)
    while isinstance(body, Lam):
        values |= {p: random_value(p.kind, sizes, rng, small_integers) for p in body.params}
        body = body.body
    body = Traverser(polynomial)(body)
    assume(all(is_dyadic(u.real) and is_dyadic(u.imag) for u in subterms(body) if isinstance(u, Const)))
    expected = evaluate(body, values, sizes)
    assume(np.all(np.abs(np.asarray(expected)) < 2.0**40))
    sample = Sample(dict(sizes), Exact())
    sample.values.update(values)
    assert is_transparent(body)
    assert (sample.outputs(body)[0] == residues(expected)).all()


def value_of(t: Term, **values: complex) -> complex:
    sample = Sample(default_sizes(t), Exact())
    sample.values.update({v: values[v.name] for v in t.free if v.name in values})
    return complex(sample.outputs(t)[0])


def test_rational_and_gaussian_numbers_reciprocals_and_negative_powers_are_exact() -> None:
    third, gaussian = number(Fraction(1, 3)), number((Fraction(2), Fraction(5, 7)))
    assert value_of(mul(number(3), third, x), x=5) == 5
    assert value_of(mul(power(z, number(-3)), power(z, number(3))), z=4 - 9j) == 1
    assert value_of(mul(gaussian, power(add(gaussian, z), number(-1))), z=0) == 1
    assert value_of(call("abs2", z), z=3 - 4j) == 25
    assert value_of(mul(number(2), call("imag", mul(z, z))), z=3 - 4j) == -48


def test_residues_are_reduced_before_a_product_or_a_sum_leaves_the_exact_integers() -> None:
    large, ones = Labelled(np.full(1000, HALF), (1,), HALF), Labelled(np.ones(1000), (1,), 1.0)
    total = eliminated([large, large, ones, large], {1: 1000}, unit=1.0)
    assert centred(total.array) == residue(Fraction(1000 * int(HALF) ** 3))
    sums = added([large] * 10)
    assert sums.reach == 10 * HALF
    assert (multiplied([sums, sums]).reduced().array == residue(Fraction(100 * int(HALF) ** 2))).all()
    assert 2 * HALF**2 < EXACT < 2**53
    assert PRIME % 4 == 3
    assert pow(-1, (PRIME - 1) // 2, PRIME) == PRIME - 1, "−1 is no square"


def test_division_by_zero_is_no_exact_value_and_left_to_floating_point() -> None:
    zero = sub(call("real", z), call("real", conj(z)))
    inverse = power(zero, number(-1))
    with pytest.raises(InexactError):
        value_of(inverse, z=1 + 1j)
    assert not Gate().same(inverse, mul(number(2), inverse), "stage"), "nothing to compare"


def exactly_equal(a: Term, b: Term) -> bool:
    sample = gate_for(a, b)._sample(second=False)
    return bool((sample.outputs(a)[0] == sample.outputs(b)[0]).all())


@pytest.mark.parametrize("name", [name for name in SCALAR_FUNCTIONS if name not in (*FIELD_FUNCTIONS, "conj")])
def test_an_opaque_function_has_the_properties_of_its_row_and_no_others(name: str) -> None:
    row = SCALAR_FUNCTIONS[name]
    if row.of_reals:
        f = Call(name, (x, *[y] * (row.arity - 1)))
        assert not is_transparent(f)
        assert exactly_equal(Call(name, (neg(x), *[neg(y)] * (row.arity - 1))), neg(f)) == (row.parity == -1)
        # hypot has the properties of the root of x² + y², which it is made of
        assert exactly_equal(f, Call(name, (y, *[x] * (row.arity - 1)))) == (name == "hypot")
        return
    f = call(name, z)
    assert not is_transparent(f)
    assert exactly_equal(Call(name, (conj(z),)), conj(f)) == (row.commutes or (row.real_valued and name != "angle"))
    for argument in (x, z):
        of, parity = call(name, argument), row.parity_of(complex_=argument is z)
        assert exactly_equal(Call(name, (neg(argument),)), of) == (parity == 1)
        assert exactly_equal(Call(name, (neg(argument),)), neg(of)) == (parity == -1)
    assert exactly_equal(conj(f), f) == row.real_valued
    on_the_real_line = Call(name, (mul(z, conj(z)),))
    assert exactly_equal(conj(on_the_real_line), on_the_real_line) != bool(row.cut)
    assert not exactly_equal(call(name, add(z, w)), add(f, call(name, w)))
    assert not exactly_equal(call(name, mul(z, w)), mul(f, call(name, w)))


def test_opaque_powers_and_conditions_depend_on_what_they_are_made_of() -> None:
    half = number(Fraction(1, 2))
    assert exactly_equal(power(add(x, y), half), power(add(y, x), half))
    assert not exactly_equal(power(mul(x, y), half), mul(power(x, half), power(y, half)))
    assert not exactly_equal(power(x, y), power(y, x))
    assert not exactly_equal(conj(power(z, half)), power(conj(z), half))
    assert not exactly_equal(mul(PI, x), x)
    assert not is_transparent(indicator(x, y, x))
    assert value_of(indicator(x, y, ONE), x=3, y=4) not in (0, 1), "a condition of numbers hides nothing"
    assert exactly_equal(indicator(x, y, z), mul(z, indicator(x, y, ONE)))
    assert not exactly_equal(indicator(x, y, z), indicator(y, x, z))


def test_a_let_is_compared_value_by_value_and_as_a_whole_where_that_does_not_decide() -> None:
    a, b = fresh("a", COMPLEX), fresh("b", COMPLEX)
    before = Let(((a, mul(z, conj(z))), (b, conj(a))), mul(a, b))
    # conj(a) is a, but only because a is real
    assert Gate().same(before, Let(((a, mul(z, conj(z))), (b, a)), mul(a, b)), "stage")


def changed(draw: st.DrawFn, t: Term) -> Term:
    """`t` with one of its subterms replaced by what may be something else."""
    numbers = [u for u in subterms(t) if isinstance(u.type, Number) and not isinstance(u, Let)]
    chosen = draw(st.sampled_from(numbers))
    wrong = draw(st.sampled_from((conj(chosen), neg(chosen), add(chosen, mul(chosen, conj(chosen))), ONE, ZERO)))
    return Traverser(lambda u: wrong if u == chosen else u)(t)


@pytest.mark.slow
@settings(max_examples=200)
@given(st.data())
def test_a_change_is_seen_where_the_oracle_sees_one_and_nowhere_else(data: st.DataObject) -> None:
    body: Term = data.draw(programs(depth=2))
    sizes = default_sizes(body)
    params: list[Var] = []
    while isinstance(body, Lam):
        params += body.params
        body = body.body
    # a condition of numbers may hide the change from one or the other
    body = Traverser(lambda t: t.body if isinstance(t, Indicator) and not is_integer_valued(t.right) else t)(body)
    wrong = changed(data.draw, body)
    different = False
    with np.errstate(all="ignore"):
        for seed in range(3):
            rng = np.random.default_rng(seed)
            values = {p: random_value(p.kind, sizes, rng) for p in params}
            before, after = (complex(evaluate(t, values, sizes)) for t in (body, wrong))  # type: ignore[arg-type]
            assume(np.isfinite(before) and np.isfinite(after))
            difference = abs(before - after) / max(1.0, abs(before))
            assume(difference < 1e-12 or difference > 1e-5)
            different |= difference > 1e-5
    if different:
        with pytest.raises(CheckError):
            gate_for(body, wrong).same(body, wrong, "stage")
    else:
        assert gate_for(body, wrong).same(body, wrong, "stage")


def test_a_condition_of_indices_is_no_condition_of_numbers() -> None:
    """i ≠ j is 1 ≤ |i − j|, and what asks if it fails counts, too: exact numbers decide, and one draw is enough."""
    i, j = (fresh(name, Index(Domain("n"))) for name in "ij")
    x = fresh("x", REAL)
    apart = indicator(ONE, call("abs", add(i, neg(j))), ONE)
    for t in (indicator(apart, ZERO, x), indicator(ONE, call("abs", add(i, neg(j))), mul(x, x))):
        assert is_transparent(t)
        assert not has_sides(t)
    assert has_sides(indicator(indicator(x, ONE, ONE), ZERO, x))
    twice = Lam((i, j), indicator(ONE, call("abs", add(i, neg(j))), mul(number(2), x)))
    once = Lam((i, j), indicator(ONE, call("abs", add(i, neg(j))), x))
    with pytest.raises(CheckError, match="exact arithmetic"):
        Gate().same(once, twice, "stage")


def test_entries_have_sides_of_their_own_and_a_number_has_one() -> None:
    v, i = fresh("v", Map((Index(Domain("n")),), REAL)), fresh("i", Index(Domain("n")))
    x, entry = fresh("x", REAL), App(v, (i,))
    assert has_sides_of_entries(indicator(entry, ONE, x))
    assert not has_sides_of_entries(mul(indicator(entry, ONE, x), indicator(x, ONE, entry)))


def test_what_two_terms_of_a_stage_hold_both_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []
    call_ = Exact.call
    monkeypatch.setattr(Exact, "call", lambda self, name, a: taken.append(name) or call_(self, name, a))
    x, y = fresh("x", REAL), fresh("y", REAL)
    Gate().compared(add(mul(y, call("erf", x)), ONE), add(ONE, mul(call("erf", x), call("sin", y))))
    assert taken.count("erf") == 1
