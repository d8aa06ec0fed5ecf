"""Results are compared value by value: what differs anywhere is seen, and equal results pass however they are made."""

from __future__ import annotations

import pytest

import combdiff as cd
from combdiff.errors import CheckError
from combdiff.gate.gate import AGREE, Gate
from combdiff.simplify.check import parts_of, pieces
from combdiff.terms.terms import (
    ONE,
    App,
    Lam,
    Let,
    Loop,
    Reduce,
    Term,
    Tuple,
    Var,
    add,
    call,
    conj,
    fresh,
    mul,
    neg,
    number,
    total,
)
from combdiff.terms.types import COMPLEX, REAL, Domain, Index, Map

N = Index(Domain("x.1"))
VECTOR = Map((N,), COMPLEX)
x, z = fresh("x", REAL), fresh("z", COMPLEX)


def layers(n: int, wrong: int | None = None, flipped: bool = False) -> Let:
    """h = sin(h) + z h, n times, written in one way or the other; one layer may be wrong."""
    values: list[tuple[Var, Term]] = []
    last: Term = z
    for k in range(n):
        one, other = call("sin", last), mul(z, last, number(2) if k == wrong else number(1))
        name = Var(f"h{k}", COMPLEX, 10**9 + k)
        three = number(3)
        values.append((name, add(mul(three, other), mul(three, one)) if flipped else mul(three, add(one, other))))
        last = name
    return Let(tuple(values), last)


@pytest.mark.slow
def test_a_wrong_layer_among_many_is_seen() -> None:
    Gate().same(layers(50), layers(50, flipped=True), "stage")
    for wrong in (0, 31, 49):
        with pytest.raises(CheckError):
            Gate().same(layers(50), layers(50, wrong, flipped=True), "stage")


def test_values_of_one_form_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    compared = Gate.compared
    monkeypatch.setattr(Gate, "compared", lambda gate, a, b: seen.append(a) or compared(gate, a, b))
    Gate().same(layers(50), layers(50, flipped=True), "stage")
    assert len(seen) == 2, "the first layer has z twice"


def test_a_name_without_its_value_is_seen() -> None:
    a, b = fresh("a", COMPLEX), fresh("b", COMPLEX)
    before = Let(((a, mul(z, z)), (b, mul(a, z))), mul(a, b))
    for after in (
        Let(((b, mul(a, z)),), mul(a, b)),
        Let(((b, mul(a, z)), (a, mul(z, z))), mul(a, b)),
        Let(((a, mul(z, z)),), mul(a, b)),
    ):
        with pytest.raises(CheckError):
            Gate().same(before, after, "stage")


def test_values_may_come_and_go_and_change_places() -> None:
    a, b, c = (fresh(name, COMPLEX) for name in "abc")
    before = Let(((a, mul(z, z)), (b, call("exp", a)), (c, call("cos", z))), Tuple((mul(b, c), add(b, c))))
    d = fresh("d", COMPLEX)
    after = Let(
        ((c, call("cos", z)), (d, mul(call("exp", mul(z, z)), number(1)))),
        Tuple((mul(d, c), add(call("exp", mul(z, z)), c))),
    )
    assert Gate().same(before, after, "stage")
    with pytest.raises(CheckError):
        Gate().same(before, Let(after.bindings, Tuple((mul(d, c), add(d, d)))), "stage")


def test_a_property_of_a_value_is_found_below_its_definition_and_not_assumed_of_others() -> None:
    """Of two values of one form, one is real and the other is not."""
    a, b, c, d = (fresh(name, COMPLEX) for name in "abcd")

    def of(real: Term, other: Term, second: Term) -> Let:
        return Let(((a, real), (b, other), (c, conj(a)), (d, second)), mul(c, add(d, number(1))))

    real, other = mul(z, conj(z)), mul(z, z)
    before = of(real, other, conj(b))
    after = Let(((a, real), (b, other), (c, a), (d, conj(b))), mul(c, add(d, number(1))))
    assert Gate().same(before, after, "stage")
    wrong = Let(((a, real), (b, other), (c, a), (d, b)), mul(c, add(d, number(1))))
    with pytest.raises(CheckError):
        Gate().same(before, wrong, "stage")


def test_a_tensor_is_compared_entry_by_entry_and_not_as_its_sum() -> None:
    i, j = fresh("i", N), fresh("j", N)
    u, v, a = fresh("u", VECTOR), fresh("v", VECTOR), fresh("a", VECTOR)
    before = Let(((a, Lam((i,), mul(App(u, (i,)), App(v, (i,))))),), total((j,), App(a, (j,))))
    swapped = Let(((a, Lam((i,), mul(App(v, (i,)), App(u, (i,))))),), total((j,), App(a, (j,))))
    assert Gate().same(before, swapped, "stage")
    average = mul(App(u, (i,)), total((j,), App(v, (j,))))
    with pytest.raises(CheckError):
        Gate().same(before, Let(((a, Lam((i,), average)),), before.body), "stage")


def test_results_that_cannot_be_taken_apart_are_compared_as_they_are() -> None:
    y = fresh("y", COMPLEX)
    before, after = Lam((y,), mul(y, z)), Lam((y,), mul(z, y, number(2)))
    assert [list(piece.ways) for piece in pieces(before, after)] == [[(before, after)]]
    assert parts_of(before).params == (y,)
    with pytest.raises(CheckError):
        Gate().same(before, after, "stage")


@pytest.mark.slow
def test_no_stage_of_a_chain_is_compared_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Normalised vectors: their norms are real, and nothing but their definitions says so."""
    alone = []
    each = Gate._each_compared
    monkeypatch.setattr(Gate, "_each_compared", lambda gate, a, b: alone.append(each(gate, a, b)) or alone[-1])
    lines = ["h0 = i -> x(i)"]
    for k in range(8):
        lines += [f"s{k} = sum(i, h{k}(i)' * h{k}(i))", f"h{k + 1} = i -> sum(j, A(i, j) * h{k}(j)) * s{k}"]
    cd.grad("\n".join(["(A::CM) -> (x::CV) -> begin", *lines, "sum(i, h8(i)' * h8(i))", "end"]))
    assert len(alone) >= 4
    assert all(found == AGREE for found in alone)


@pytest.fixture
def wholes(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The comparisons of whole results that are made from now on."""
    found: list[object] = []
    whole = Gate._whole
    monkeypatch.setattr(Gate, "_whole", lambda gate, *args: found.append(args) or whole(gate, *args))
    return found


def test_what_reads_the_states_of_a_loop_is_compared_on_any_states(wholes: list[object]) -> None:
    """w holds s(k)^2, whatever the steps of s are: these have a maximum, which has no exact value."""
    a, k, v, t = fresh("a", REAL), fresh("k", N), fresh("v", REAL), fresh("t", N)
    s, u, w, x1 = (fresh(name, Map((N,), REAL)) for name in ("s", "u", "w", "x"))
    largest = Reduce("maximum", Lam((k,), Tuple((ONE, App(x1, (k,))))))
    loop = Loop("states", 0, False, Lam((v, t), Tuple((mul(v, largest),))), Tuple((a,)))

    def of(value: Term) -> Let:
        return Let(((s, loop), (u, Lam((k,), App(s, (k,)))), (w, Lam((k,), value))), total((t,), App(w, (t,))))

    before = of(mul(App(u, (k,)), App(s, (k,))))
    assert Gate().same(before, of(mul(App(u, (k,)), App(u, (k,)))), "stage")
    assert not wholes
    with pytest.raises(CheckError):
        Gate().same(before, of(mul(App(u, (k,)), a)), "stage")


@pytest.mark.slow
@pytest.mark.parametrize("power", ["s(k + 1, f)^2", "s(k + 1, f)^2 * s(k + 1, f)"])
def test_a_condition_keeps_in_range_what_a_step_reads(power: str) -> None:
    """The step numbered l reads entry m - 2 - l, but for the last one, at which this is -1."""
    d = cd.pullback(f"""(m::Int) -> (d::R, z::RV) -> begin
      (r, s) = scan(((a, v), l) -> (a + im * d, f -> v(f) * z(f)), (d, z), m, (a, v) -> norm(v) < abs(a))
      sum(k::N{{m}}, r(k + 1)^2) + sum((k::N{{m}}, f), {power}) + sum((j, f), s(j, f))
    end""")
    assert not [step.note for step in d.steps if "not checked" in step.note]


def test_a_value_may_get_another_sign_and_what_is_made_of_it_the_opposite_one() -> None:
    """The whole is nan whatever is drawn, the logarithm of −1 − |x|: only the values by themselves can be compared."""
    a, b, i = fresh("a", VECTOR), fresh("b", REAL), fresh("i", N)
    u, v = fresh("u", VECTOR), fresh("v", VECTOR)
    entry, nothing = App(a, (i,)), call("log", b)
    below_zero = add(neg(call("abs", x)), neg(number(1)))
    term = mul(App(u, (i,)), App(v, (i,)))

    def of(sign: Term, item: Term) -> Let:
        return Let(((b, below_zero), (a, Lam((i,), mul(sign, term)))), total((i,), mul(item, nothing)))

    before = of(number(1), entry)
    Gate().same(before, of(number(-1), neg(entry)), "stage")
    for wrong in (of(number(-1), entry), of(number(1), neg(entry)), of(number(-2), neg(entry))):
        with pytest.raises(CheckError):
            Gate().same(before, wrong, "stage")


def test_a_sign_that_an_earlier_value_did_not_know_of_is_no_excuse() -> None:
    a, b = fresh("a", COMPLEX), fresh("b", COMPLEX)
    before = Let(((b, mul(z, z)), (a, mul(z, z))), mul(a, b))
    after = Let(((a, mul(number(-1), z, z)), (b, a)), mul(a, b))
    with pytest.raises(CheckError):
        Gate().same(before, Let(after.bindings, neg(after.body)), "stage")


@pytest.mark.slow
def test_distances_of_a_hyperbolic_space_between_the_ends_of_edges() -> None:
    """The derivative of acosh is nan at the distance of a point to itself, so that no whole result is finite."""
    text = """(a::(N{m}) -> N{n}, b::(N{m}, N{k}) -> N{n}) -> (u::RM{n, d}) -> begin
      apart = (i::N{n}, j::N{n}) -> sum(c, (u(i, c) - u(j, c))^2)
      dist = (i::N{n}, j::N{n}) -> acosh(apart(i, j) / ((1 - sum(c, u(i, c)^2)) * (1 - sum(c, u(j, c)^2))))
      sum(e, log(sum(l, exp(-dist(a(e), b(e, l))))))
    end"""
    assert "sqrt" in str(cd.grad(text))
