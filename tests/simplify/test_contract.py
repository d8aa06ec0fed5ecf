"""Stage a: each family of laws on a small term, and where a δ may be solved for an index."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

import combdiff as cd
from combdiff.errors import UnsupportedError
from combdiff.gate.gate import gate_for
from combdiff.meaning.evaluate import evaluate
from combdiff.simplify.contraction.contract import contract
from combdiff.terms.terms import (
    App,
    Conj,
    Delta,
    Lam,
    Mul,
    Sum,
    Term,
    Var,
    add,
    call,
    conj,
    delta,
    fresh,
    indicator,
    mul,
    neg,
    number,
    power,
    subterms,
    total,
)
from combdiff.terms.types import COMPLEX, REAL, Domain, Index, Map
from tests.strategies import programs

N = Domain("n", declared=True)
M = Domain("m", declared=True)
ZONE = Domain("BZ", declared=True, periodic=True)
EVEN = Domain("Y", declared=True, symmetric=True)
STEPS = Domain("X", declared=True, symmetric=True, contractable=False)


def index(name: str, domain: Domain) -> Var:
    return fresh(name, Index(domain))


def vector(name: str, domain: Domain) -> Var:
    return fresh(name, Map((Index(domain),), COMPLEX))


def contracted(t: Term, expand: bool = False) -> Term:
    """`t` after stage a, which must not have changed its value."""
    (result,), _ = contract([t], expand=expand)
    gate_for(t).same(t, result, "contract")
    return result


def _factors(t: Term) -> set[Term]:
    assert isinstance(t, Mul)
    return set(t.factors)


def _has_delta(t: Term) -> bool:
    return any(isinstance(u, Delta) for u in subterms(t))


@pytest.mark.parametrize("domain", [N, ZONE, EVEN, STEPS], ids=lambda d: d.name)
def test_a_sum_over_a_delta_is_a_substitution(domain: Domain) -> None:
    x, i, j = vector("x", domain), index("i", domain), index("j", domain)
    assert contracted(total([i], delta(i, j, App(x, (i,))))) == App(x, (j,))


def test_a_delta_of_indices_of_two_domains_is_left_standing() -> None:
    x, i, j = vector("x", N), index("i", N), index("j", M)
    assert _has_delta(contracted(total([i], delta(i, j, App(x, (i,)))))) is True


def test_a_periodic_index_takes_every_solution() -> None:
    x, k, q, b = vector("x", ZONE), index("k", ZONE), index("q", ZONE), index("b", STEPS)
    found = contracted(total([k], delta(add(k, b), q, App(x, (k,)))))
    assert found == App(x, (add(q, neg(b)),))


def test_a_delta_is_never_solved_for_an_index_that_is_not_contractable() -> None:
    w, k, f, b = vector("w", STEPS), index("k", ZONE), index("f", ZONE), index("b", STEPS)
    left = contracted(total([b], delta(add(k, b), f, App(w, (b,)))))
    assert isinstance(left, Sum) and _has_delta(left)


def test_a_coefficient_other_than_one_is_not_solved_for() -> None:
    x, k, f = vector("x", ZONE), index("k", ZONE), index("f", ZONE)
    left = contracted(total([k], delta(mul(number(2), k), f, App(x, (k,)))))
    assert isinstance(left, Sum) and _has_delta(left)


def test_a_symmetric_index_is_solved_with_its_sign_only_within_its_range() -> None:
    x, b, c, d = vector("x", EVEN), index("b", EVEN), index("c", EVEN), index("d", EVEN)
    assert contracted(total([b], delta(neg(b), c, App(x, (b,))))) == App(x, (neg(c),))
    assert _has_delta(contracted(total([b], delta(add(b, c), d, App(x, (b,))))))


def test_a_constant_may_lie_outside_a_plain_range() -> None:
    x, i, k, z = vector("x", N), index("i", N), index("k", ZONE), vector("z", ZONE)
    assert _has_delta(contracted(total([i], delta(i, number(1), App(x, (i,))))))
    assert contracted(total([k], delta(k, number(1), App(z, (k,))))) == App(z, (number(1),))


def test_a_periodic_index_that_is_read_as_a_number_is_renamed_but_never_shifted() -> None:
    k, q = index("k", ZONE), index("q", ZONE)
    assert contracted(total([k], delta(k, q, mul(number(2), k)))) == mul(number(2), q)
    assert _has_delta(contracted(total([k], delta(neg(k), q, mul(number(2), k)))))


def test_a_delta_of_a_real_variable_leaves_one_over_the_slope() -> None:
    f, x, c, y = fresh("f", Map((REAL,), REAL)), fresh("x", REAL), fresh("c", REAL), fresh("y", REAL)
    (found,) = contract([total([x], delta(add(mul(number(-3), x), c), y, App(f, (x,))))])[0]
    third = number(Fraction(1, 3))
    at = {f: lambda u: u**3, c: 0.7, y: -0.4}
    assert not _has_delta(found)
    assert np.isclose(evaluate(found, at), ((0.4 + 0.7) / 3) ** 3 / 3)  # type: ignore[arg-type]
    assert mul(third, number(3)) == number(1)


def test_a_delta_finds_its_sum_through_products_conj_and_functions_that_are_linear() -> None:
    x, i, j, t = vector("x", N), index("i", N), index("j", N), fresh("t", COMPLEX)
    inner = conj(mul(t, delta(i, j, App(x, (i,)))))
    assert contracted(total([i], mul(t, call("real", inner)))) == mul(t, call("real", mul(Conj(t), Conj(App(x, (j,))))))


def test_a_product_with_a_sum_of_terms_is_split_only_where_a_delta_waits() -> None:
    x, i, j, t = vector("x", N), index("i", N), index("j", N), fresh("t", COMPLEX)
    waiting = total([i], mul(t, add(delta(i, j, App(x, (i,))), App(x, (i,)))))
    assert not _has_delta(contracted(waiting))
    plain = total([i], mul(t, add(power(App(x, (i,)), number(2)), App(x, (i,)))))
    assert isinstance(contracted(plain), Sum)


def test_conj_moves_to_the_leaves_but_not_into_a_branch_cut() -> None:
    z, w = fresh("z", COMPLEX), fresh("w", COMPLEX)
    assert _factors(contracted(conj(mul(z, conj(w))))) == {Conj(z), w}
    assert contracted(conj(call("exp", z))) == call("exp", Conj(z))
    assert contracted(conj(power(z, number(3)))) == power(Conj(z), number(3))
    for cut in (call("sqrt", z), call("log", z), power(z, number(Fraction(1, 2)))):
        assert contracted(Conj(cut)) == Conj(cut)


def test_conj_of_conj_of_conj_is_conj() -> None:
    z, w = fresh("z", COMPLEX), fresh("w", COMPLEX)
    assert contracted(Conj(Conj(Conj(z)))) == Conj(z)
    assert _factors(contracted(Conj(Conj(Conj(mul(z, Conj(w))))))) == {Conj(z), w}


def test_expand_multiplies_out_and_nothing_else_does() -> None:
    a, b, c = (fresh(n, COMPLEX) for n in "abc")
    product = mul(a, add(b, c))
    assert contracted(product) == product
    assert contracted(product, expand=True) == add(mul(a, b), mul(a, c))


def test_an_indicator_lets_sums_and_deltas_pass() -> None:
    x, i, j, m = vector("x", N), index("i", N), index("j", N), index("m", N)
    found = contracted(total([i], indicator(j, m, delta(i, j, App(x, (i,))))))
    assert found == indicator(j, m, App(x, (j,)))


def test_a_sum_that_meets_inside_a_product_loses_no_node() -> None:
    z, t = fresh("z", COMPLEX), fresh("t", COMPLEX)
    assert contracted(mul(number(-1), total([t], delta(mul(number(2), z), t, number(1))))) == number(-1)


def test_nested_sums_that_meet_at_once_lose_no_node() -> None:
    x, i, j, t = vector("x", N), index("i", N), index("j", N), fresh("t", COMPLEX)
    inner = total([t], mul(Conj(t), delta(Conj(App(x, (i,))), t, number(1))))
    assert contracted(total([i], delta(i, j, inner))) == App(x, (j,))


def test_an_integral_over_all_complex_numbers_that_no_delta_ends_is_refused() -> None:
    t = fresh("t", COMPLEX)
    with pytest.raises(UnsupportedError, match="a sum over all numbers"):
        contract([total([t], mul(t, call("exp", t)))])


@pytest.mark.slow
@given(programs(depth=2, lets=False))
@settings(max_examples=40)
def test_contraction_keeps_the_value_of_any_body(program: Lam) -> None:
    f = program.body if isinstance(program.body, Lam) else program
    assert isinstance(f, Lam)
    for expand in (False, True):
        contracted(f.body, expand)


@pytest.mark.slow
@given(programs(depth=2))
@settings(max_examples=25)
def test_every_derivative_of_any_program_passes_the_gate(program: Lam) -> None:
    from combdiff.language.printing.printer import program_text

    text = program_text(program)
    for derive in (cd.grad, cd.hvp):
        assert derive(text).term.free == frozenset()


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_a_condition_on_steps_holds_modulo_the_size_of_the_ring(n: int) -> None:
    d = cd.grad("""
        @domain P begin base = I; periodic = true end
        @domain X begin symmetric = true end
        (v::(X) -> R, z::(P) -> R) -> (w::(X) -> R) -> sum((d::P, f::P), z(d) *
            sum(b::X, delta(d + b, f, w(b))) * sum(c::X, delta(d + c, f, v(c))))
    """)
    rng = np.random.default_rng(n)
    v, z, w = rng.normal(size=3), rng.normal(size=n), rng.normal(size=3)
    expected = [sum(z.sum() * v[c] for c in range(3) if (b - c) % n == 0) for b in range(3)]
    assert np.allclose(d.compile()(v, z, w), expected)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["a", "2 * a - 1", "a + g", "a^2", "g * a"])
@pytest.mark.parametrize("condition", ["3 * t, c", "c, 3 * t", "t - c, 0", "3 * t + 1, c", "-t, 2 * c"])
@pytest.mark.parametrize("body", ["abs({0})", "sin(real({0})) * {0}"])
def test_a_place_that_is_solved_for_twice_has_a_form(place: str, condition: str, body: str) -> None:
    """t = c/3 where c = 3 t: an index, and what it was made of, are written in terms of each other on the way."""
    inner = f"sum(t::R, delta({condition}, b * t))"
    d = cd.grad(f"(a::R, g::R) -> (b::C) -> abs2(sum(c::R, delta(c, {place}, {body.format(inner)})))")
    assert "sum(" not in str(d) and "delta(" not in str(d)
    assert d.check()


@pytest.mark.sampled
@pytest.mark.parametrize(
    "slots", ["j - i, j - i", "j - i, i - j", "2 * j - i, j - i", "j - i, i - j + 1", "i + j, j - i"]
)
def test_an_index_is_flat_before_a_condition_is_solved_for_it(slots: str) -> None:
    zone = "@domain Z begin base = I; periodic = true end\n"
    assert cd.grad(f"{zone}(A::(Z, Z) -> R) -> sum((i::Z, j::Z), A({slots}))").check()


@pytest.mark.slow
def test_what_laws_leave_for_one_another_is_not_read_out() -> None:
    zone = "@domain Z begin base = I; periodic = true end\n"
    shifted = "A(k - i + 1, i) / (1 + abs2(sum(l::Z, A(l - i + 1, i))))"
    d = cd.hvp(f"{zone}(A::(Z, Z) -> R) -> sum((i, j::Z), sum(k, tanh({shifted}) * A(k, j - k)))")
    assert d.check()


@pytest.mark.slow
@pytest.mark.parametrize("number", ["C", "R"])
def test_an_index_in_a_number_that_a_dirac_delta_compares_is_read_as_a_number(number: str) -> None:
    """Where i is 1 − j on a ring, i as a number is that of the ring, and not 1 − j."""
    text = (
        f"@domain Z begin base = I; periodic = true end\n(x::(Z) -> {number}) -> sum(i, abs2(x(i) * (x(-i + 1) - i)))"
    )
    assert cd.grad(text).check()
    assert cd.hvp(text).check()


@pytest.mark.parametrize(
    "result", ["((a, (a, 2)), 1)", "(((1, 2), (a, a)), a)", "((a, (a, 2), (3, (a, 5))), (a, (a, 7)))", "(1, (2, a))"]
)
def test_a_tuple_within_a_tuple_stays_one_wherever_it_stands(result: str) -> None:
    assert str(cd.simplified(f"(a::R) -> {result}")) == f"(a::R) -> {result}"


@pytest.mark.parametrize("place", ["0", "1/4", "a"])
@pytest.mark.parametrize("line", ["R", "All"])
def test_an_integral_meets_a_delta_at_any_place_beside_other_terms(place: str, line: str) -> None:
    of = f"@domain All begin base = R end\n(f::RF, y::RF, a::R) -> sum(x::{line}, f(x) * (x + delta(x, {place}, y(x))))"
    last = str(cd.simplified(of)).splitlines()[-1]
    assert last == f"(f::RF, y::RF, a::R) -> sum(x::{line}, x * f(x)) + f({place}) * y({place})"


@pytest.mark.sampled
@pytest.mark.parametrize("sides", ["2 - x, a", "2, x + a", "x + a, 2", "a + x, 2", "2 - a, x", "0, a - 2 + x"])
def test_a_number_is_solved_for_on_whichever_side_it_is(sides: str) -> None:
    d = cd.simplified(f"(f::RF, a::R) -> sum((x::R, t::R), delta({sides}, delta(f(x), t, t)))")
    assert d.compile()(f=np.sin, a=0.3) == pytest.approx(np.sin(1.7))


def test_a_sum_over_a_periodic_index_meets_a_delta_at_zero() -> None:
    ring = "@domain Ring begin base = I; periodic = true end\n"
    assert str(cd.simplified(ring + "(u::(Ring) -> C) -> sum(k::Ring, delta(k, 0, u(k)))")).endswith("-> u(0)")
