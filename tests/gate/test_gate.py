"""The gate sees a law that is wrong: each family of `rules/` is broken on purpose, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection
from fractions import Fraction

import numpy as np
import pytest

import combdiff as cd
from combdiff.errors import CheckError
from combdiff.gate import gate
from combdiff.gate.gate import gate_for
from combdiff.meaning.evaluate import evaluate
from combdiff.simplify import choose, known, order, stages
from combdiff.simplify.choose import Binding
from combdiff.simplify.contraction import egraph
from combdiff.simplify.contraction.contract import contract
from combdiff.simplify.contraction.egraph import FAMILIES
from combdiff.simplify.graph.graph import Ref
from combdiff.simplify.graph.laws import collect
from combdiff.terms.terms import (
    ONE,
    ZERO,
    App,
    Conj,
    Lam,
    Term,
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
    total,
)
from combdiff.terms.types import COMPLEX, REAL, SYMMETRIC, Domain, Index, Interval, Map, Number, Symmetry

ZONE = "@domain BZ begin base = I; periodic = true end\n"
HERMITIAN = "(A::CM) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))"
OVERLAP = ZONE + "(S::(BZ, BZ) -> C) -> (u::(BZ) -> C) -> sum((k::BZ, q::BZ), u(k + 2 * q)' * S(k, q) * u(q))"
COMMON = "(A::RM, B::RM) -> (x::RM) -> sum((i, j, k), (A(i, k) + 3 * B(i, k)) * x(i, j) * x(k, j))"

WRONG = {
    "conj of a sum that conjugates nothing": (
        "conjugate",
        '(Plus (unstable-multiset-map (unstable-fn "Conj") es)) :subsume',
        "(Plus es) :subsume",
        "(c::C) -> (z::C) -> (c + exp(z))^3",
    ),
    "a product that conjugates nothing": (
        "conjugate",
        '(Times (unstable-multiset-map (unstable-fn "Conj") es)) :subsume',
        "(Times es) :subsume",
        "(c::C) -> (z::C) -> exp(c * z)",
    ),
    "a delta solved with the wrong sign": (
        "index",
        """(= (abs q) (bigrat (bigint 1) (bigint 1)))
       (= 0 (multiset-length (unstable-multiset-filter (unstable-fn "inside" v) ms))))
      ((set (solution d v) (Lin (unstable-multiset-map (unstable-fn "Scale" (/ (bigrat (bigint -1) (bigint 1)) q))""",
        """(= (abs q) (bigrat (bigint 1) (bigint 1)))
       (= 0 (multiset-length (unstable-multiset-filter (unstable-fn "inside" v) ms))))
      ((set (solution d v) (Lin (unstable-multiset-map (unstable-fn "Scale" (/ (bigrat (bigint 1) (bigint 1)) q))""",
        OVERLAP,
    ),
    "monomials merged to their difference": (
        "index",
        "(Mono (+ p q) x)",
        "(Mono (- p q) x)",
        ZONE + "(u::(BZ) -> C, v::(BZ) -> C) -> sum((k::BZ, q::BZ), u(k + q)' * v(k - q) * u(k + 2 * q))",
    ),
    "a substitution that leaves conj alone": (
        "substitute",
        "(Conj (Subst m x))",
        "(Conj x)",
        HERMITIAN,
    ),
    "a power taken apart to first powers": (
        "algebra",
        "(rewrite (Raise n b) (Power b n)",
        "(rewrite (Raise n b) b",
        "(c::C) -> (z::C) -> (c * exp(z))^3",
    ),
    "a meeting that keeps the variable's other conditions out": (
        "contract",
        "(Met (set-remove vs v) (set-of w) (multiset-remove ds d) (map-insert (map-empty) v (Var w)) e)",
        "(Met (set-remove vs v) (set-of w) (multiset-of) (map-insert (map-empty) v (Var w)) e)",
        "(C::CM) -> sum((i, j), C(i, j)^2)",
    ),
    "a delta that leaves a product with its other factors": (
        "contract",
        "(union p (Delta ds (Times (multiset-insert (multiset-remove es d) e))))",
        "(union p (Delta ds e))",
        HERMITIAN,
    ),
    "a sum that leaves a product with its other factors": (
        "contract",
        "(union p (Sum vs (Times (multiset-insert (multiset-remove es s) e))))",
        "(union p (Sum vs e))",
        "(A::CM) -> (x::CV) -> sum(i, sum(j, A(i, j) * x(j)) * sum(j, A(i, j) * x(j))')",
    ),
    "a sum of terms that is split without its sum": (
        "algebra",
        '(union s (Plus (unstable-multiset-map (unstable-fn "Sum" vs) es))) (subsume (Sum vs (Plus es))))',
        "(union s (Plus es)) (subsume (Sum vs (Plus es))))",
        "(A::CM, b::CV) -> (x::CV) -> sum(i, (sum(j, A(i, j) * x(j)) + b(i)) * (sum(j, A(i, j) * x(j)) + b(i))')",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_law_is_seen_and_its_family_named(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    family, right, wrong, program = WRONG[what]
    cd.grad(program, expand=True)

    def resource(folder: str, name: str) -> str:
        text = original(folder, name)
        if name == f"{family}.egg":
            assert right in text, "the law that is broken here exists"
            text = text.replace(right, wrong)
        return text

    original = egraph.resource
    monkeypatch.setattr(egraph, "resource", resource)
    egraph._idle.clear()
    try:
        with pytest.raises(CheckError, match=r"(contract|expand) changed the value") as caught:
            cd.grad(program, expand=True)
    finally:
        egraph._idle.clear()
    assert f"(rules/{family}.egg)" in str(caught.value)


def test_every_family_of_laws_is_broken_above() -> None:
    without_laws = {"terms"}
    assert {family for family, *_ in WRONG.values()} == {*FAMILIES} - without_laws


def test_a_wrong_law_of_the_graph_is_seen_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    # the numbers that terms have in front are lost where a factor is taken out of them
    monkeypatch.setattr(collect, "times", lambda a, _: a)
    monkeypatch.setattr(Ref, "times", lambda ref, _: ref)
    with pytest.raises(CheckError, match=r"collect and name changed the value .*simplify/graph/laws/collect\.py"):
        cd.grad(COMMON)


def test_a_result_with_an_index_that_nothing_binds_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def unbound(bindings: list[Binding], results: list[Term], *_: object) -> object:
        return bindings, [r.body if isinstance(r, Lam) else r for r in results], {}

    monkeypatch.setattr(stages, "chosen", unbound)
    with pytest.raises(CheckError, match=r"collect and name changed the value .* without what binds it"):
        cd.grad(COMMON)


def wrongly_symmetric(value: Lam, *_: object) -> tuple[Symmetry, ...]:
    return (SYMMETRIC,) if len(value.params) == 2 else ()


def without_conj(t: Term, *_: object) -> Term:
    return t.term if isinstance(t, Conj) else t


def with_the_last_value_doubled(
    bindings: list[tuple[Var, Term]], results: list[Term], kept: Collection[Var], ask: Callable[[], None]
) -> tuple[list[tuple[Var, Term]], list[Term]]:
    *others, (var, value) = bindings
    return choose.place([*others, (var, add(value, value))], results, kept, ask)


VALUES = "(A::RM) -> (x::RV) -> begin M = (i, j) -> exp(A(i, j))\n sum((i, j), x(i) * M(i, j) * x(j)) end"
ENERGY = "(A::CM, s::C) -> (x::CV) -> begin e = sum((i, j), x(i)' * A(i, j) * x(j))\n e * e' * abs2(e + s) end"

BROKEN_STAGES: dict[str, tuple[object, str, object, str, str, str]] = {
    "a symmetry that a value does not have": (
        known,
        "derived_symmetries",
        wrongly_symmetric,
        VALUES,
        "merge like terms",
        "canonical names",
    ),
    "a value that is doubled when it is placed": (
        stages,
        "place",
        with_the_last_value_doubled,
        ENERGY,
        "place cotangents",
        "placing",
    ),
    "an entry whose conj is lost": (order, "plainest", without_conj, HERMITIAN, "order and names", "plainest images"),
}


@pytest.mark.sampled
@pytest.mark.parametrize("what", BROKEN_STAGES)
def test_a_stage_that_is_wrong_is_seen_and_named(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name, wrong, program, stage, suspect = BROKEN_STAGES[what]
    cd.grad(program)
    monkeypatch.setattr(module, name, wrong)
    with pytest.raises(CheckError, match=f"{stage} changed the value of the derivative .*{suspect}"):
        cd.grad(program)


def test_the_measure_of_a_delta_over_the_reals_is_what_evaluation_says() -> None:
    x, y = fresh("x", REAL), fresh("y", REAL)
    before = total([x], delta(mul(number(-4), x), y, mul(x, x)))
    (after,), _ = contract([before])
    assert np.isclose(evaluate(after, {y: 3.0}), evaluate(before, {y: 3.0}))  # type: ignore[arg-type]
    assert np.isclose(evaluate(after, {y: 3.0}), (3 / 4) ** 2 / 4)  # type: ignore[arg-type]


def test_a_delta_in_one_term_of_an_integrand_fixes_that_term_alone() -> None:
    x, f = (
        fresh("x", Number(complex=False, interval=Interval("Line", Fraction(0), Fraction(1)))),
        fresh("f", Map((REAL,), REAL)),
    )
    fixed = App(f, (number(Fraction(1, 4)),))
    before = total([x], mul(App(f, (x,)), add(App(f, (x,)), delta(x, number(Fraction(1, 4)), App(f, (x,))))))
    after = add(total([x], mul(App(f, (x,)), App(f, (x,)))), mul(fixed, fixed))
    gate_for(before).same(before, after, "contract")
    with pytest.raises(CheckError, match="contract changed the value"):
        gate_for(before).same(before, mul(fixed, add(fixed, fixed)), "contract")


def test_the_gate_names_the_stage_and_lets_equal_terms_pass() -> None:
    z = fresh("z", COMPLEX)
    square = mul(z, z)
    gate_for(square).same(square, mul(z, z), "merge")
    with pytest.raises(CheckError, match="merge changed the value"):
        gate_for(square).same(square, mul(z, conj(z)), "merge")


def test_the_smallest_difference_of_polynomials_is_seen() -> None:
    z = fresh("z", COMPLEX)
    near = add(z, mul(number(Fraction(1, 10**12)), z))
    with pytest.raises(CheckError, match="1 entries differ in exact arithmetic"):
        gate_for(z).same(z, near, "stage")


def test_other_functions_are_compared_in_floating_point_where_exact_numbers_differ() -> None:
    z = fresh("z", COMPLEX)
    root = call("sqrt", z)
    gate_for(z).same(mul(root, root), z, "stage")
    gate_for(z).same(z, add(z, mul(number(Fraction(1, 10**12)), root)), "stage")
    with pytest.raises(CheckError, match="relative difference"):
        gate_for(z).same(z, add(z, mul(number(Fraction(1, 10**6)), root)), "stage")


def test_a_gradient_whose_entries_are_integers_is_checked_like_any_other() -> None:
    d = cd.grad(ZONE + "(u::(BZ) -> C) -> sum(k::BZ, (1 - k) * u(k))")
    assert d.check()


def test_what_holds_for_odd_sizes_alone_is_seen() -> None:
    zone = Index(Domain("BZ", declared=True, periodic=True))
    b, u = fresh("b", zone), fresh("u", Map((zone,), REAL))
    twice = Lam((b,), delta(mul(number(2), b), number(0), App(u, (b,))))
    with pytest.raises(CheckError, match="1 entries differ"):
        gate_for(twice).same(twice, Lam((b,), delta(b, number(0), App(u, (b,)))), "stage")


@pytest.mark.parametrize("size", [2, 3, 4, 5, 7])
def test_what_holds_for_one_size_alone_is_seen(size: int) -> None:
    for kind in (Domain("x.1"), Domain("BZ", declared=True, periodic=True), Domain("X", declared=True, symmetric=True)):
        i = fresh("i", Index(kind))
        with pytest.raises(CheckError, match="1 entries differ"):
            gate_for(i).same(total((i,), ONE), number(size), "stage")


def test_what_is_wrong_beside_nothing_is_a_difference_and_no_division_by_zero() -> None:
    x = fresh("x", REAL)
    with pytest.raises(CheckError, match="changed the value"):
        gate_for(x).same(ZERO, call("abs", x), "stage")


def test_terms_that_need_large_arrays_are_compared_at_smaller_sizes() -> None:
    ranges = [Index(Domain(f"x{n}.1")) for n in range(10)]
    vectors = [fresh(f"x{n}", Map((kind,), REAL)) for n, kind in enumerate(ranges)]
    indices = tuple(fresh("i", kind) for kind in ranges)
    entries = [App(x, (i,)) for x, i in zip(vectors, indices, strict=True)]
    joint = call("exp", add(*entries))
    gate = gate_for(*vectors)
    assert gate.same(Lam(indices, joint), Lam(indices, mul(joint, number(1))), "stage")
    assert gate.same(total(indices, joint), total(indices[::-1], call("exp", add(*entries[::-1]))), "stage")
    assert gate.few
    with pytest.raises(CheckError):
        gate.same(total(indices, joint), total(indices[1:], joint.args[0]), "stage")


def test_a_functional_of_an_unknown_function_is_not_checked_and_says_so() -> None:
    d = cd.grad("(g::((R) -> R) -> R) -> (x::RF) -> g(x)")
    assert str(d) == "(g::(RF) -> R) -> (x::RF) -> (d::R) -> grad(g)(x)(d)"
    assert any("a map of functions has no values" in step.note for step in d.steps)


def test_a_function_of_real_numbers_may_call_its_argument_otherwise() -> None:
    """Both call it a, and one of them has to be renamed, by which it must not take another value."""
    d = cd.grad("(a::R) -> (f::RF) -> f(a)^2 + sum(x::R, where(x <= 1, f(x)^2))")
    assert str(d) == "(a::R) -> (f::RF) -> (a1::R) -> 2 * where(a1 <= 1, f(a1)) + delta(a, a1, 2 * f(a))"


def test_what_is_no_longer_zero_is_a_difference() -> None:
    with pytest.raises(CheckError, match="relative difference"):
        gate_for().same(number(0), call("exp", fresh("x", COMPLEX)), "a stage")


@pytest.mark.parametrize(
    "text",
    ["(L::(N) -> RF) -> (a::RV) -> sum(i, L(i)(a(i)))", "(L::(N) -> (R) -> C) -> (a::RV) -> sum(i, L(i)(a(i))^2)"],
)
def test_what_a_map_of_indices_returns_is_not_checked_where_it_is_a_function(text: str) -> None:
    assert any("not checked on numbers" in step.note for step in cd.hvp(text).steps)


@pytest.mark.parametrize("large", [1, 10**6, 10**9])
def test_a_large_entry_hides_no_other(large: int) -> None:
    """Floating-point numbers are compared entry by entry: exact ones do not know that a root of x² is |x|."""
    place = Index(Domain("x.1"))
    i, x = fresh("i", place), fresh("x", Map((place,), REAL))
    entry = App(x, (i,))
    beside = delta(i, number(0), number(large))
    size = add(beside, call("abs", entry))
    root = call("sqrt", mul(entry, entry))
    gate_for(size).same(Lam((i,), size), Lam((i,), add(beside, root)), "stage")
    with pytest.raises(CheckError, match="relative difference"):
        gate_for(size).same(Lam((i,), size), Lam((i,), add(beside, mul(number(2), root))), "stage")


def test_what_is_not_finite_hides_no_other_entry() -> None:
    found = difference_of([np.inf, 1.0, np.nan], [np.inf, 1.0, 5.0])
    assert found == "" and difference_of([np.inf, 1.0], [-np.inf, 2.0]) != ""
    assert difference_of([1.0, np.inf], [np.nan, np.inf]) == "a finite value was lost"


def difference_of(before: list[float], after: list[float]) -> str:
    return gate._distance(np.array(before), np.array(after), floor=1.0)


def under_pairs(e: Callable[[Term], Term]) -> Term:
    """i ↦ Σ_j of e(x_i − x_j) where i + 1 ≤ j."""
    n = Index(Domain("x.1"))
    i, j, x = fresh("i", n), fresh("j", n), fresh("x", Map((n,), REAL))
    gap = sub(App(x, (i,)), App(x, (j,)))
    return Lam((i,), total((j,), indicator(add(i, number(1)), j, e(gap))))


def test_what_a_guard_excludes_hides_no_difference() -> None:
    for e in (lambda gap: power(gap, number(-2)), lambda gap: call("log", power(gap, number(2)))):
        before = under_pairs(e)
        assert isinstance(before, Lam)
        assert gate_for(before).same(before, Lam(before.params, mul(number(1), before.body)), "stage")
        with pytest.raises(CheckError):
            gate_for(before).same(before, Lam(before.params, mul(number(Fraction(7, 6)), before.body)), "stage")


def test_a_delta_that_is_summed_excludes_what_is_infinite_too() -> None:
    n = Index(Domain("x.1"))
    i, j, k = (fresh(name, n) for name in "ijk")
    x, y = fresh("x", Map((n,), REAL)), fresh("y", Map((n,), REAL))
    inverse = power(sub(App(x, (i,)), mul(App(x, (j,)), App(y, (k,)))), number(-1))
    singular = power(sub(i, j), number(-1))
    off = total((i, j, k), delta(k, add(j, number(1)), delta(i, k, mul(singular, inverse, App(y, (k,))))))
    assert gate_for(off).same(off, mul(number(1), off), "stage")
    with pytest.raises(CheckError):
        gate_for(off).same(off, mul(number(2), off), "stage")


# --- rounding ---------------------------------------------------------------------------------------------------------


def test_rounding_is_no_difference() -> None:
    """The sine of a large number has few digits that mean anything."""
    a = fresh("a", REAL)
    before = call("sin", power(mul(number(2), power(a, number(-1)), power(a, number(Fraction(-3, 2)))), number(12)))
    after = call("sin", mul(number(4096), power(a, number(-30))))
    assert gate_for(before).agree(before, after)
    for wrong in (mul(number(2), after), add(after, number(Fraction(1, 100))), call("cos", mul(number(4096), a))):
        assert not gate_for(before).agree(before, wrong)
    assert cd.grad("(a::R) -> sin((2 * (1 / a / a^(3/2)))^4)").check()


def test_rounding_hides_no_difference_beside_it() -> None:
    a, b = fresh("a", REAL), fresh("b", REAL)
    steep = call("sin", mul(number(10**12), a))
    before = add(steep, b)
    assert not gate_for(before).agree(before, add(steep, mul(number(2), b)))


@pytest.mark.parametrize(("size", "decides"), [(300, False), (30, True)])
def test_a_power_that_is_too_small_for_a_number_is_rounded(size: int, decides: bool) -> None:
    """exp(-900) is 0 in floating point: what is multiplied by it is lost, and says nothing."""
    a = fresh("a", REAL)
    large = add(number(size), call("sin", a))
    quarter = mul(call("cosh", mul(number(2), large)), call("cosh", large))
    for small in (power(call("exp", large), number(-3)), call("exp", mul(number(-3), large))):
        before = mul(small, quarter)
        assert gate_for(before).agree(before, number(Fraction(1, 4)))
        assert gate_for(before).agree(before, number(Fraction(1, 3))) is not decides


def test_rounding_of_large_numbers_that_no_argument_moves() -> None:
    """Terms of 10⁹ cancel that are made of indices alone, so that other arguments leave the same rounding."""
    text = """
        @space T begin type = (CV{n}) -> CV{n}; linear = true end
        (f::T) -> (A::CM{n, n}) -> begin
          y = i -> (A(i, i) + A(i, i)) - (A(i, i) - i + A(i, i))
          sum(i, adjoint(f)(j -> A(0, 0))(i)) + (sum(i, y(i)) * (sum(i, y(i)^2) * ((5/2) * (7/5))))^4
        end
    """
    d = cd.grad(text)
    assert "delta" in str(d) and "^" not in str(d), "the cancelling terms are gone"


@pytest.mark.slow
def test_rounding_beside_an_exact_zero_is_no_difference() -> None:
    """|a| + a is 0 for half of all a, and multiplied out it is rounding, whatever a is."""
    text = "(a::R) -> begin rho = abs(a); rho * (a + rho) end^2"
    for _ in range(3):
        cd.hvp(text), cd.grad(text).compile(value=True, hvp=True)


@pytest.mark.slow
def test_rounding_of_a_singular_matrix_is_no_difference() -> None:
    """B' D B is singular at the sizes at which B has fewer rows than columns: its inverse is rounding there."""
    text = "(B::RM{m, n}, f::RV{n}, w::RV{m}) -> (A::RV{m}) -> begin K = B' * Diagonal(A ./ w) * B ; f' * (K \\ f) end"
    assert cd.hvp(text).check()


def test_what_only_terms_without_the_unknowns_divide_by_has_a_size() -> None:
    """The root may have no value at random numbers, so that all divisors are looked at, x(0) among them."""
    text = "(x::RV) -> (A::RM) -> 1 / x(0) + sum((i, j), A(i, j) * sum((k, l), k < l, sqrt(sum(m, A(k, m) + A(l, m)))))"
    assert not any(step.spent for step in cd.grad(text).steps)


RESTRICTED_LIKELIHOOD = """(X::RM{n, p}, Z::RM{n, q}, y::RV{n}) -> (a::R, b::R) -> begin
  V = exp(a) * Z * Z' + exp(b) * I
  W = inv(V)
  P = W - W * X * inv(X' * W * X) * X' * W
  logdet(V) + logdet(X' * W * X) + y' * P * y
end"""


@pytest.mark.slow
def test_a_matrix_that_needs_more_rows_than_columns_is_drawn_with_them() -> None:
    """X' W X has an inverse at one of the two sets of sizes; where it had none at both, the program was refused."""
    d = cd.grad(RESTRICTED_LIKELIHOOD)
    assert d.check()
    rng = np.random.default_rng(2)
    data = rng.normal(size=(5, 2)), rng.normal(size=(5, 3)), rng.normal(size=5)
    f, at, t = d.compile(value=True), np.array([0.3, -0.2]), 1e-6
    slopes = [(f(*data, *(at + e))[0] - f(*data, *(at - e))[0]) / (2 * t) for e in t * np.eye(2)]
    np.testing.assert_allclose(f(*data, *at)[1:], slopes, rtol=1e-7)


def test_a_value_that_is_a_number_is_compared_as_that_number() -> None:
    """The sign of an empty sum has no slope; that the sum is real has been used."""
    for program in (
        "(A::Her) -> (x::RV) -> sign(sum((i, j), where(j <= 0, (A(i, j) + argmin(k, x(k))) * where(j - 1 == i, 1))))",
        "(A::Her) -> (x::RV) -> real(sign(sum((i, j), where(i >= j, conj(A(i, j) * x(i)) * where(j - 1 == i, x(j))))))",
    ):
        assert str(cd.jvp(program)).endswith("-> 0")


def test_a_zero_has_no_sign_where_an_angle_jumps() -> None:
    assert cd.grad("(a::R) -> atan2(where(a == 0 and 1 < a, a), a) * a").check()
    # A(-1, 1) is 0 at the size 2, and has no sign, whichever of its images is read
    d = cd.grad(
        "@domain Z begin base = I; periodic = true end\n"
        "@space T begin type = (Z, Z) -> R; symmetries = (((2, 1), :neg),) end\n"
        "(A::T) -> sum((i, j), A(0, j) * atan2(i - 1, A(-i, i)))"
    )
    assert "atan2(i - 1, -A(i, -i))" in str(d)


def test_the_angle_of_what_is_computed_is_that_of_a_positive_zero() -> None:
    for text in ("(x::RV, y::RV) -> sum(i, atan2(-x(i), y(i)))", "(x::RV, y::RV) -> sum(i, atan2(x(i) * y(i), y(i)))"):
        f = cd.simplified(text)
        assert f.compile()(np.zeros(2), -np.ones(2)) == pytest.approx(2 * np.pi)
        assert evaluate(f.term, {})(np.zeros(2), -np.ones(2)) == pytest.approx(2 * np.pi)
