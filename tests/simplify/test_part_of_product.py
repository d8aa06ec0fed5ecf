"""What the program normalises, and names, is read by its name where its factors stand in a longer product."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import combdiff as cd
from combdiff.explanation import explanation
from combdiff.simplify.graph.laws.part_of_product import NamedProduct, part_of_product
from combdiff.terms.terms import (
    App,
    Conj,
    Lam,
    Pow,
    Var,
    add,
    call,
    conj,
    factors_of,
    fresh,
    indicator,
    mul,
    number,
    power,
    substitute,
)
from combdiff.terms.types import COMPLEX, REAL, Index, Map

UNIT_ROWS = "U = (i, k) -> A(i, k) / sqrt(sum(l, A(i, l)^2))"

RESULTS = {
    # spins without a constraint: the part of the field along the spin itself is taken away
    f"(J::RM) -> (A::RM{{n, d}}) -> begin {UNIT_ROWS}; sum((i, j), J(i, j) * sum(k, U(i, k) * U(j, k))) end": (
        "begin v = i -> sqrt(sum(l, A(i, l)^2)) U = (i, k) -> A(i, k) / v(i) "
        "U_bar = (i, k) -> sum(j, U(j, k) * (J(i, j) + J(j, i))) "
        "(i, l) -> (U_bar(i, l) - U(i, l) * sum(k, U(i, k) * U_bar(i, k))) / v(i) end"
    ),
    # shares of a whole
    "(c::RV) -> (w::RV) -> begin p = i -> w(i) / sum(j, w(j)); sum(i, p(i)^3 * c(i)) end": (
        "begin s = sum(j, w(j)) p = i -> w(i) / s j -> 3 * (c(j) * p(j)^2 - sum(i, c(i) * p(i)^3)) / s end"
    ),
    # a layer's normalisation: less the mean, and less the part along the result
    "(T::RM{n, d}) -> (X::RM{n, d}) -> begin m = i -> mean(k, X(i, k)); "
    "s = i -> sqrt(mean(k, (X(i, k) - m(i))^2) + 1e-5); Z = (i, k) -> (X(i, k) - m(i)) / s(i); "
    "sum((i, k), T(i, k) * exp(Z(i, k))) end": (
        "begin m = i -> sum(k, X(i, k)) / d s = i -> sqrt(sum(k, (X(i, k) - m(i))^2) / d + 1e-5) "
        "Z = (i, k) -> (X(i, k) - m(i)) / s(i) Z_bar = (i, k) -> T(i, k) * exp(Z(i, k)) "
        "(i, k) -> 1 / s(i) * ( Z_bar(i, k) - Z(i, k) * sum(i1, Z(i, i1) * Z_bar(i, i1)) / d - "
        "sum(k1, Z_bar(i, k1)) / d ) end"
    ),
}


def body(d: cd.Derivation) -> str:
    text = " ".join(str(d.result).split())
    return text[text.index("begin") :]


@pytest.mark.parametrize("program", RESULTS)
def test_a_normalised_array_is_read_by_its_name(program):
    assert body(cd.grad(program)) == RESULTS[program]


@pytest.mark.parametrize("program", RESULTS)
def test_the_gradient_of_what_is_normalised_agrees_with_differences(program):
    assert cd.grad(program).check()


def test_the_account_names_the_law():
    told = explanation(cd.grad(next(iter(RESULTS))))
    assert "U is found in longer products by part_of_product, and is read 3 times" in told


def test_a_normalised_state_is_read_within_a_real_part():
    d = cd.grad(
        "(H::Her) -> (c::CV) -> begin q = i -> c(i) / norm(c); real(sum((i, j), conj(q(i)) * H(i, j) * q(j))) end"
    )
    assert "norm(c)^" not in str(d.result)
    assert d.check()


P, Q = fresh("i", Index()), fresh("j", Index())
U = fresh("U", Map((Index(),), COMPLEX))
ENTRIES = [
    lambda i: App(fresh_named("a", REAL), (i,)),
    lambda i: App(fresh_named("z", COMPLEX), (i,)),
    lambda i: call("sqrt", App(fresh_named("w", REAL), (i,))),
    lambda i: add(App(fresh_named("x", REAL), (i,)), fresh_named("m", None)),
]
EXPONENTS = st.sampled_from([-3, -2, -1, 1, 2, 3])
FACTORS = st.lists(st.tuples(st.sampled_from(range(len(ENTRIES))), EXPONENTS), min_size=1, max_size=4)

_KNOWN: dict[str, Var] = {}


def fresh_named(name, result):
    """One variable for each name."""
    kind = Map((Index(),), result) if result is not None else REAL
    return _KNOWN.setdefault(name, fresh(name, kind))


def product(factors, i, mirrored=False):
    """The factors at an index."""
    powers = [power(ENTRIES[n](i), number(e)) for n, e in factors]
    return [conj(p) for p in powers] if mirrored else powers


def written_out(t, value):
    """The value for its name, and its conjugate factor by factor."""
    match t:
        case Conj(App(f, (i,))) if f == U:
            return mul(*map(conj, factors_of(substitute(value.body, {P: i}))))
        case App(f, (i,)) if f == U:
            return substitute(value.body, {P: i})
        case Pow(base, n):
            return mul(*(power(f, n) for f in factors_of(written_out(base, value))))
        case _:
            return t


@given(FACTORS, FACTORS, st.booleans(), st.sampled_from([number(1), number(3), number(2j)]))
@example([(1, 1), (0, 1)], [(0, 1)], True, number(2j))
def test_a_product_with_names_is_the_product(own, other, mirrored, scale):
    value = Lam((P,), mul(scale, *product(own, P)))
    named_product = NamedProduct.of(U, value)
    factors = factors_of(mul(*product(own, Q, mirrored), *product(other, Q)))
    found = part_of_product(factors, [named_product] if named_product else [], {})
    if found is not None:
        coefficient, terms = found
        assert any(U in t.free for t in terms)
        whole = mul(number(coefficient), *(written_out(t, value) for t in terms))
        assert whole == mul(*factors)


def test_roots_that_have_a_name_are_the_same_numbers():
    # s = sqrt(w); U = a / s;  a / sqrt(w) / s^2 = U / s^2
    s = fresh("s", Map((Index(),), REAL))
    w, a = fresh_named("w", REAL), fresh_named("a", REAL)
    root = Lam((P,), call("sqrt", App(w, (P,))))
    u = NamedProduct.of(U, Lam((P,), mul(App(a, (P,)), power(App(s, (P,)), number(-1)))))
    factors = [App(a, (Q,)), power(call("sqrt", App(w, (Q,))), number(-1)), power(App(s, (Q,)), number(-2))]
    assert u is not None
    _, terms = part_of_product(factors, [u], {s: root})
    assert App(U, (Q,)) in terms and power(App(s, (Q,)), number(-2)) in terms
    # an exponent of the other sign, or a smaller one, holds no such factor
    assert part_of_product([App(a, (Q,)), App(s, (Q,))], [u], {s: root}) is None


def test_the_root_of_a_square_that_has_a_name_is_no_factor():
    # s = w², U = a / w: a / sqrt(s) is a / |w|
    s = fresh("s", Map((Index(),), REAL))
    w, a = fresh_named("w", REAL), fresh_named("a", REAL)
    square = Lam((P,), power(App(w, (P,)), number(2)))
    u = NamedProduct.of(U, Lam((P,), mul(App(a, (P,)), power(App(w, (P,)), number(-1)))))
    assert u is not None
    below = Pow(App(s, (Q,)), number(Fraction(-1, 2)))
    assert part_of_product([App(a, (Q,)), below], [u], {s: square}) is None
    assert part_of_product([App(a, (Q,)), power(App(s, (Q,)), number(-1))], [u], {s: square}) is None


def test_a_smaller_power_holds_no_larger_one():
    # c a is not c a² / a, which has no value at 0
    a, c = fresh_named("a", REAL), fresh_named("c", REAL)
    square = NamedProduct.of(U, Lam((P,), mul(App(c, (P,)), power(App(a, (P,)), number(2)))))
    assert square is not None
    assert part_of_product([App(c, (Q,)), App(a, (Q,))], [square], {}) is None
    assert part_of_product([App(c, (Q,)), power(App(a, (Q,)), number(3))], [square], {}) is not None


def test_a_value_of_the_program_is_written_with_an_inverse_that_has_a_name():
    """PageRank: the ranks are sums of the inverse that its derivatives read."""
    d = cd.grad(
        "(t::RV{n}) -> (P::RM{n, n}, d::R) -> begin x = (I - d * P) \\ ((i::N{n}) -> 1 / n); "
        "sum(i, t(i) * log(x(i))) end"
    )
    assert str(d.result).count("inv(") == 1
    assert "x = i -> sum(j, Q(i, j)) / n" in str(d.result)
    assert d.check()


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (
            "(t::RV{n}, b::RV{n}) -> (P::RM{n, n}) -> begin x = (I - P) \\ b; sum(i, t(i) * exp(x(i))) end",
            "Q = (i, j) -> inv((i1, j1) -> delta(i1, j1, 1) - P(i1, j1))(i, j) x = i -> sum(j, b(j) * Q(i, j)) "
            "(i, j) -> x(j) * sum(i1, t(i1) * Q(i1, i) * exp(x(i1))) end",
        ),
        (
            "(X::RM{n, d}, y::RV{n}) -> (w::RV{d}) -> begin p = i -> tanh(sum(j, X(i, j) * w(j))) + 1; "
            "sum(i, (y(i) - p(i))^2) end",
            "v = i -> tanh(sum(j, X(i, j) * w(j))) p = i -> v(i) + 1 "
            "j -> -2 * sum(i, X(i, j) * (1 - v(i)^2) * (y(i) - p(i))) end",
        ),
    ],
)
def test_a_function_that_a_definition_and_a_result_hold_has_a_name(program, expected):
    d = cd.grad(program)
    assert body(d) == f"begin {expected}"
    assert d.check()


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (
            "(x::RV) -> begin L = i -> 1 / (1 + x(i)^2); sum(i, L(i)^2 + log(L(i))) end",
            "i -> -2 * x(i) * L(i)^2 * (2 * L(i) + 1 / L(i))",
        ),
        (
            "(a::RV) -> (x::RV) -> begin w = i -> 1 / (a(i) + x(i)); sum(i, w(i) * a(i)) * sum(i, w(i)) end",
            "i -> -w(i)^2 * (a(i) * sum(i1, w(i1)) + sum(i1, a(i1) * w(i1)))",
        ),
        (
            "(y::RM{n, 2}) -> begin w = (i, j) -> 1 / (1 + sum(c, (y(i, c) - y(j, c))^2)); "
            "sum((i, j), w(i, j)^2) / sum((i, j), w(i, j)) end",
            "w(i, j)^2 * (y(i, c) - y(j, c)) * (2 * w(i, j) - sum((i1, j1), w(i1, j1)^2) / s))",
        ),
        (
            "(P::Sym{n}) -> (y::RM{n, 2}) -> begin w = (i, j) -> 1 / (1 + sum(c, (y(i, c) - y(j, c))^2)); "
            "sum((i, j), i != j, P(i, j) * log(w(i, j)) * w(i, j)) end",
            "P(i, j) * w(i, j)^2 * (y(i, c) - y(j, c)) * where(i != j, 1 + log(w(i, j)))",
        ),
        (
            "(P::Sym{n}) -> (y::RM{n, 2}) -> begin w = (i, j) -> 1 / (1 + sum(c, (y(i, c) - y(j, c))^2)); "
            "Z = sum((i, j), i != j, w(i, j)); -sum((i, j), i != j, P(i, j) * log(w(i, j) / Z)) end",
            "w(i, j)^2 * (y(i, c) - y(j, c))",
        ),
    ],
)
def test_the_derivative_of_an_inverse_is_read_by_its_name(program: str, expected: str) -> None:
    d = cd.grad(program)
    assert expected in str(d)
    assert str(d).count(" / (") <= 1  # the divisor is written once, in the definition
    assert d.check()


def test_a_name_is_not_found_where_it_stands() -> None:
    """u = 1/sqrt(s) is a product of one factor, and so is the power s^(-1/2) behind the name u."""
    s, i, n = fresh("s", REAL), fresh("i", Index()), fresh("n", Index())
    u, w = fresh("u", REAL), fresh("w", REAL)
    total = add(number(1), power(s, number(2)))
    values = {u: Pow(total, number(Fraction(-1, 2))), w: Pow(total, number(-1))}
    named = [NamedProduct(v, (), value, (Fraction(1), Fraction(0)), (value,)) for v, value in values.items()]
    assert part_of_product([u], named[:1], values) is None
    assert part_of_product([indicator(i, n, u), s], named[:1], values) is None
    _, terms = part_of_product([u, power(total, number(Fraction(-1, 2)))], named[:1], values)
    assert mul(*terms) == power(u, number(2))
    # of two names of one value, each is a power of the other: neither is looked for without end
    _, terms = part_of_product([indicator(i, n, power(u, number(2)))], named, values)
    assert terms == [indicator(i, n, w)]


@pytest.mark.parametrize("f", ["asinh(S)", "1 / sqrt(1 + S^2)"])
def test_a_slope_under_a_condition_has_its_name(f: str) -> None:
    d = cd.grad(f"(A::RM{{n, n}}) -> begin S = sum((i, j), where(i < n - 1, A(i + 1, i) * A(j, j))); {f} end")
    assert str(d.result).count("sqrt") <= 1
    assert d.check()
