"""The gate sees a law that is wrong: each family of `rules/` is broken on purpose, one at a time."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import combdiff as cd
from combdiff.errors import CheckError
from combdiff.language.evaluate import evaluate
from combdiff.language.terms import add, call, conj, delta, fresh, mul, number, total
from combdiff.language.types import COMPLEX, REAL
from combdiff.simplify import egraph
from combdiff.simplify.contract import contract
from combdiff.simplify.gate import gate_for

ZONE = "@domain BZ begin base = I; periodic = true end\n"
HERMITIAN = "(A::CM) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))"
OVERLAP = ZONE + "(S::(BZ, BZ) -> C) -> (u::(BZ) -> C) -> sum((k::BZ, q::BZ), u(k + 2 * q)' * S(k, q) * u(q))"

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
        "(c::C) -> (z::C) -> z^2 * c * exp(z)",
    ),
    "a delta solved with the wrong sign": (
        "index",
        """(kind v "periodic") (= (abs q) (bigrat (bigint 1) (bigint 1))))
      ((set (solution d v) (Lin (unstable-multiset-map (unstable-fn "Scale" (/ (bigrat (bigint -1) (bigint 1)) q))""",
        """(kind v "periodic") (= (abs q) (bigrat (bigint 1) (bigint 1))))
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
        "(Conj (Subst v a x))",
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
        "(union s (Over (set-remove vs v) (Subst v a (Where (multiset-remove ds d) e))))",
        "(union s (Over (set-remove vs v) (Subst v a e)))",
        "(C::CM) -> sum((i, j), C(i, j)^2)",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_law_is_seen(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    family, right, wrong, program = WRONG[what]
    cd.grad(program)

    def resource(folder: str, name: str) -> str:
        text = original(folder, name)
        if name == f"{family}.egg":
            assert right in text, "the law that is broken here exists"
            text = text.replace(right, wrong)
        return text

    original = egraph.resource
    monkeypatch.setattr(egraph, "resource", resource)
    egraph.session.cache_clear()
    try:
        with pytest.raises(CheckError, match="contract changed the value"):
            cd.grad(program)
    finally:
        egraph.session.cache_clear()


def test_the_measure_of_a_delta_over_the_reals_is_what_evaluation_says() -> None:
    x, y = fresh("x", REAL), fresh("y", REAL)
    before = total([x], delta(mul(number(-4), x), y, mul(x, x)))
    (after,), _ = contract([before])
    assert np.isclose(evaluate(after, {y: 3.0}), evaluate(before, {y: 3.0}))  # type: ignore[arg-type]
    assert np.isclose(evaluate(after, {y: 3.0}), (3 / 4) ** 2 / 4)  # type: ignore[arg-type]


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
