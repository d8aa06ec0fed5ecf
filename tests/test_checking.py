"""The numerical check of a derivation: what it compares, what it notices, what it refuses."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import combdiff as cd
from combdiff.checking import check, differences, printed
from combdiff.checking.rounding import distance
from combdiff.language.parsing.parser import parse
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.sizes import FEWEST, evaluation_steps, two_sizes
from combdiff.terms.terms import ONE, App, Lam, Let, Term, add, delta, fresh, mul, number, total

ROOT = Path(__file__).parent.parent
PROGRAMS = {
    "a real unknown inside complex values": "(y::RV, z::C) -> begin f = z*(1 - z); sum(i, f*y(i)^2) end",
    "an unknown function of two entries": "(g::RO) -> (x::RV) -> sum((i, j), g(x(i), x(j)))",
    "constant indices": "(x::RV) -> x(0) * x(2)^2",
    "a derivative inside of the objective": "(x::R) -> grad((y::R) -> grad((z::R) -> z^3*y)(y))",
    "parameters called self and out": "(out::RV, self::RV) -> sum(i, out(i) * self(i))",
    "a range that no array shows": "@domain BZ begin base = I; periodic = true end\n(x::R) -> sum(k::BZ, x^2)",
    "a constant index that the derivative has not": "(A::RM) -> (B::RM{n, n}) -> A(0, 2) + sum((i::N{n}, j::N{n}, "
    "k::N{n}, l::N{n}, m::N{n}), B(0, 0))",
    "a range that the text does not name": "(a::R) -> sum(i, root((x::RV) -> j -> x(j) + a)(i))",
    "constant indices of matrices": "(R::Sym, y::RV, M::Sym) -> M[2, 2] + R(1, 1) + y(0)",
    "large numbers": "(x::R) -> 10^12 * (x + 1)^2",
}


@pytest.mark.slow
@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_a_right_derivative_passes(text: str) -> None:
    assert cd.grad(text).check()
    assert cd.grad(text).check(seed=3)


@pytest.mark.slow
def test_a_steep_function_passes_on_whatever_is_drawn() -> None:
    d = cd.grad("(a::R) -> sin((3 + abs2(a))^(7/3))")
    assert all(d.check(seed) for seed in range(30))


@pytest.mark.slow
def test_loops_over_a_lattice_are_short() -> None:
    zone = "@domain G begin base = (I, I, I); periodic = true end\n"
    d = cd.grad(
        zone + "(u::(G) -> R, a::R) -> (w::(G) -> R) -> a * sum((m, m1::G, m2::G), exp(w(m) * u(m - m1) * w(m2)))"
    )
    assert max(evaluation_steps(d.term, sizes) for sizes in two_sizes(d.term)) > 5 * 10**5
    assert max(evaluation_steps(d.term, sizes) for sizes in two_sizes(d.term, few=1)) < 5 * 10**4
    assert d.check()


@pytest.mark.slow
@pytest.mark.parametrize("text", [PROGRAMS["a real unknown inside complex values"], PROGRAMS["constant indices"]])
def test_a_right_hessian_product_passes(text: str) -> None:
    assert cd.hvp(text).check()


def changed(d: object, factor: Term) -> object:
    """The derivation with every entry of its result multiplied by `factor`."""

    def scaled(t: Term) -> Term:
        return Lam(t.params, scaled(t.body)) if isinstance(t, Lam) else mul(factor, t)

    return dataclasses.replace(d, term=scaled(d.term))  # type: ignore[type-var,attr-defined]  # a Derivation


@pytest.mark.slow
@pytest.mark.parametrize("factor", [number(2), number(-1), number(1j)])
def test_a_wrong_factor_is_noticed(factor: Term) -> None:
    d = cd.grad("(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))")
    assert d.check()
    assert not changed(d, factor).check()  # type: ignore[attr-defined]


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_a_factor_that_is_one_at_a_single_size_is_noticed(size: int) -> None:
    d = cd.grad("(x::RV{n}) -> sum(i, x(i)^2)")
    i = fresh("i", d.objective.params[0].type.params[0])
    assert not changed(d, mul(number(Fraction(1, size)), total((i,), ONE))).check()  # type: ignore[attr-defined]


def test_an_imaginary_part_in_the_derivative_by_a_real_variable_is_noticed() -> None:
    d = cd.grad("(x::RV) -> sum(i, x(i)^2)")
    assert not changed(d, number(1 + 1j)).check()  # type: ignore[attr-defined]


def test_a_report_says_what_was_compared() -> None:
    report = str(cd.grad("(x::RV) -> sum(i, x(i)^2)").check())
    for what in ("finite differences", "emitted NumPy code", "printed text", "matrix form"):
        assert what in report


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new"), [("2 * ", ""), ("- b(i)", "+ b(i)"), ("A(i, j)'", "A(i, j)")])
def test_a_text_that_says_something_else_is_noticed(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    d = cd.grad("(A::CM, b::CV) -> (x::CV) -> sum(i, abs2(sum(j, A(i, j) * x(j)) - b(i)))")
    right = str(d)
    assert d.check() and old in right
    monkeypatch.setattr(type(d), "__str__", lambda self: right.replace(old, new))
    assert [f.what for f in d.check().findings if not f.passed] == ["printed text"]


@pytest.mark.slow
def test_a_matrix_form_that_says_something_else_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    d = cd.grad("(A::RM) -> (x::RV) -> sum((i, j), x(i) * A(i, j) * x(j))")
    assert d.check()
    twice = changed(d, number(2)).term  # type: ignore[attr-defined]
    wrong = zip(printed.forms_found(d.term), printed.forms_found(twice).values(), strict=True)
    monkeypatch.setattr(printed, "forms_found", lambda _, forms=dict(wrong): forms)
    assert [f.what for f in d.check().findings if not f.passed] == ["matrix form"]


def test_a_text_that_does_not_read_back_is_a_row_that_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    d = cd.grad("(x::RV) -> sum(i, x(i)^2)")
    monkeypatch.setattr(type(d), "__str__", lambda self: "(x::RV) -> i -> 2 * y(i)")
    report = d.check()
    assert not report
    assert "printed text, which does not read back (<printed>:1:" in str(report) and "unknown name y" in str(report)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "zero"),
    [
        ("a::R", "where(not a == a, a)"),  # known where the program is read
        ("A::Sym", "sum((i, j), A(i, j) - A(j, i))"),  # known where like terms are merged
    ],
)
def test_a_definition_that_is_found_to_be_a_number_is_written_out(given: str, zero: str) -> None:
    """A text with rho = 0 reads back as one without, and the kept function is gone from it."""
    d = cd.grad(f"({given}) -> (b::R) -> begin f = (c::R) -> c^2; rho = {zero}; rho * f(b) end", keep=("f",))
    assert str(d) == f"({given}) -> (b::R) -> 0"
    assert d.check()


@pytest.mark.slow
@pytest.mark.parametrize("keep", [(), ("R",)])
def test_a_function_that_is_kept_unknown_reads_back(keep: tuple[str, ...]) -> None:
    text = (ROOT / "examples" / "conjugate_gradient.cd").read_text(encoding="utf-8")
    report = cd.grad(text, keep=keep).check()
    assert report and "printed text:" in str(report)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(f::RF) -> (a::R) -> f(a)^2", None),
        ("(a::R) -> (f::RF) -> f(a)^2", "real line"),
        ("(D::(RV) -> RV) -> (x::RV) -> sum(i, D(x)(i)^2)", "no random value"),
    ],
)
def test_what_has_no_entries_is_refused_in_words(text: str, words: str | None) -> None:
    d = cd.grad(text)
    if words is None:
        assert d.check()
    else:
        with pytest.raises(cd.CombDiffError, match=words):
            d.check()


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(cd.CombDiffError, match="negative"):
        cd.grad("(x::R) -> x^2").check(seed=-1)


@pytest.mark.parametrize(("name", "shape"), [("q", (2,)), ("x", 3), ("x", (-1,)), ("x", (2, 2)), ("x", (1.5,))])
def test_a_plan_for_a_wrong_shape_is_refused(name: str, shape: object) -> None:
    with pytest.raises(cd.CombDiffError):
        cd.grad("(x::RV) -> sum(i, x(i)^2)").plan(**{name: shape})  # type: ignore[arg-type]  # wrong on purpose


def test_a_plan_counts_for_the_shapes_given() -> None:
    d = cd.grad("(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))")
    assert str(d.plan(x=(10,))) != str(d.plan(x=(1000,)))


def test_entries_beside_a_large_one_are_compared() -> None:
    """Differences along random directions are those of the largest slopes."""
    large = 10**9
    d = cd.grad(f"(x::RV) -> {large} * x(0) + sum(i, x(i)^2)")
    assert d.check() and d.check(seed=1)
    assert isinstance(d.term, Lam) and isinstance(d.term.body, Lam)
    (x,), (i,) = d.term.params, d.term.body.params
    doubled = add(delta(i, number(0), number(large)), mul(number(4), App(x, (i,))))
    report = dataclasses.replace(d, term=Lam((x,), Lam((i,), doubled))).check()
    assert not report.findings[0].passed and report.findings[1].passed


@pytest.mark.slow
def test_code_is_compared_entry_by_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large entry, and one that is infinite, hide no others."""
    d = cd.grad("(a::RV) -> (x::RV) -> sum(i, a(i) * x(i)) + 10^8 * x(0)")
    assert d.check()
    right = d.compile("numpy", check=False)
    for entry, by in ((1, 0.5), (0, 1e4), (0, np.nan), (1, np.inf)):

        class Wrong:
            arguments = right.arguments

            def __call__(self, *, place: int = entry, error: float = by, **given: object) -> object:
                found = np.array(right(**given))
                found[place] += error
                return found

        monkeypatch.setattr(type(d), "compile", lambda *_, made=Wrong, **__: made())
        differences, code, *_ = d.check().findings
        assert differences.passed and not code.passed
        monkeypatch.undo()


def test_what_is_infinite_in_formula_and_code_agrees() -> None:
    one = np.array([np.inf, -np.inf, np.nan, 1.0], complex)
    assert distance(one, one.copy()) == 0
    for entry, other in ((0, -np.inf), (0, 1.0), (2, 1.0), (3, 2.0), (3, np.nan)):
        moved = one.copy()
        moved[entry] = other
        assert distance(moved, one) > 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "(x::RV) -> sin(sum((i, j), where(i < j, 1 / (x(i) - x(j))^2)))",
        "(x::RV) -> sum((i, j), where(i < j, 1 / (x(i) - x(j))^12))",
        "(x::R) -> exp(20 * sin(30 * x))",
    ],
)
def test_a_steep_program_is_compared_where_differences_settle(text: str) -> None:
    d = cd.grad(text)
    assert all(d.check(seed) for seed in range(6))
    wrong = dataclasses.replace(d, term=_scaled(d.term))
    assert not any(wrong.check(seed).findings[0].passed for seed in range(3))


def _scaled(t: Term) -> Term:
    """A derivative that is a little too large."""
    match t:
        case Lam(params, body):
            return Lam(params, _scaled(body))
        case Let(bindings, body):
            return Let(bindings, _scaled(body))
        case _:
            return mul(number(Fraction(1001, 1000)), t)


def test_no_slope_is_compared_with_differences_that_do_not_settle() -> None:
    report = cd.grad("(x::R) -> sin(10^12 * x)").check()
    assert report and "too steep" in report.notes[0]
    assert "finite differences" not in {finding.what for finding in report.findings}


@pytest.mark.slow
def test_what_overflows_on_the_way_is_drawn_anew_or_not_compared() -> None:
    for text in ("(x::R) -> atan(sinh(10 * x^9))", "(x::RV) -> sum(i, atan(x(i)^1000))"):
        assert all(cd.grad(text).check(seed) for seed in range(8)), text
    report = cd.grad("(x::R) -> atan(sinh(1000 + x))").check()
    assert report and "too steep" in report.notes[0]


@pytest.mark.slow
def test_no_slope_is_compared_on_a_branch_cut() -> None:
    """The trace of a Hermitian matrix is real and may be negative, where the root jumps: it has no derivative there."""
    d = cd.grad("(A::Her) -> sqrt(sum(i, A(i, i)))")
    assert all(d.check(seed) for seed in range(8))
    wrong = dataclasses.replace(d, term=_scaled(d.term))
    assert not any(wrong.check(seed) for seed in range(8))


@pytest.mark.slow
def test_values_that_are_shared_are_those_of_the_program_in_matrix_form() -> None:
    """The logarithm of v = exp(x) is real; of random numbers in the place of v it is not."""
    d = cd.grad("(x::CV) -> (A::RM) -> sum((i, j), A(i, j) * (log(exp(real(x(j)))) * exp(real(x(j)))^2))")
    assert all(d.check(seed) for seed in range(4))


def test_fractions_are_drawn_where_nothing_else_is_finite() -> None:
    assert cd.grad("(χ::R) -> (φ::RV) -> sum(i, φ(i) * log(φ(i)) + (1 - φ(i)) * log(1 - φ(i)) + χ * φ(i)^2)").check()


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        # a volume beside the volumes of molecules, as in an equation of state
        "(x::RV, b::RV, T::R, v::R) -> begin c = 40 * sum(i, x(i) * b(i)); T * log(v - c) + log(v - 2 * c) end",
        # shares of a market beside that of what nobody buys
        "(X::RM{j, k}, s::RV{j}) -> (b::RV{k}) -> sum(j, (log(s(j)) - log(1 - sum(s)) - sum(k, X(j, k) * b(k)))^2)",
    ],
)
def test_parameters_are_drawn_at_scales_of_their_own(text: str) -> None:
    assert cd.grad(text).check()


def test_a_map_that_has_no_inverse_at_some_sizes_is_checked_at_others() -> None:
    d = cd.grad("""(S::Sym, H::Sym) -> pullback((C::RM) -> begin
      M = (i, j) -> sum((p, q), C(p, i) * S(p, q) * C(q, j))
      Y = inverse((Z::RM) -> (i, p) -> sum(j, M(i, j) * Z(j, p)))((i, p) -> C(p, i))
      sum((i, p, q), Y(i, p) * H(p, q) * C(q, i))
    end)""")
    assert all(d.check(seed) for seed in range(3))


@pytest.mark.slow
def test_the_loops_of_a_check_are_short_whatever_a_result_sums_over() -> None:
    zones = "@domain Y begin base = I; periodic = true end\n@domain Z begin base = I; periodic = true end\n"
    summand = "u(j, n) * y(k, m) * y(k + j, n + m)"
    d = cd.grad(f"{zones}(u::(Y, Z) -> R) -> (y::(Y, Z) -> R) -> sum((j, k, m, n), {summand})^3")
    assert max(evaluation_steps(d.term, sizes) for sizes in two_sizes(d.term, few=1)) > 2 * 10**5
    assert max(evaluation_steps(d.term, sizes) for sizes in two_sizes(d.term, few=FEWEST)) < 10**4
    assert d.check()


@pytest.mark.slow
def test_no_slope_is_compared_where_the_function_is_nowhere_finite_nearby() -> None:
    """a^x of a negative a is real at the integers only; an entry on the diagonal of A is one, 0."""
    d = cd.grad(
        "@space T begin type = (N, N) -> R; symmetries = (((2, 1), :neg),) end\n(a::R, A::T) -> sum(i, a^A(i, i))"
    )
    assert all(d.check(seed) for seed in range(6))


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        # a sum that is always 0, compared with 0
        "(x::RV{n}) -> (a::R) -> where(0 <= sum(i, x(i) - sum(j, x(j)) / sum(j::N{n}, 1)), a)",
        # a logarithm on its cut, where the Hermitian form is negative
        "(A::Her{n}) -> (x::CV{n}) -> real(exp(im * log(sum((i, j), x(i)' * x(j) * A(i, j)))))",
    ],
)
def test_what_rounding_decides_is_not_held_against_a_derivation(text: str) -> None:
    d = cd.grad(text)
    for seed in range(6):
        assert d.check(seed), "one value or the other is right"


@pytest.mark.slow
def test_what_rounding_does_not_decide_is() -> None:
    d = cd.grad("(x::RV{n}) -> (a::R) -> where(0 <= 1 + sum(i, x(i) - sum(j, x(j)) / sum(j::N{n}, 1)), a^2)")
    assert d.check()
    assert not dataclasses.replace(d, term=_scaled(d.term)).check()


@pytest.mark.slow
def test_what_has_no_slope_anywhere_is_drawn_anew_as_long_as_loops_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """relu(Im tr Y) has a kink at every Hermitian Y, and no draw finds a slope."""
    text = "(Y::Her) -> relu(imag(sum(i, Y(i, i)))) + sum((i, j), abs2(Y(i, j)))"

    def evaluations(most: int) -> int:
        evaluated = []
        monkeypatch.setattr(differences, "evaluated", lambda *args: evaluated.append(args) or evaluate(*args))
        monkeypatch.setattr(check, "_STEPS", most)
        found = cd.grad(text).check()
        assert found and any("too steep" in note for note in found.notes)
        return len(evaluated)

    assert 4 * evaluations(1) < evaluations(100_000)


def test_what_is_printed_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    monkeypatch.setattr(printed, "parse", lambda *args: read.append(args) or parse(*args))
    assert cd.hvp("(x::RV) -> sum(i, x(i)^3)").check()
    assert len(read) == 1


@pytest.mark.slow
def test_slopes_of_a_gradient_are_of_a_form_that_nobody_reads() -> None:
    d = cd.hvp("(A::RM, x::RV) -> sum((i, j), A(i, j) * x(i) * x(j)^2)")
    assert "collect and name" in {step.name for step in d.gradient.steps} - {step.name for step in d.slopes.steps}
    assert d.check()


def test_a_check_without_time_says_what_it_leaves_out() -> None:
    found = cd.grad("(x::RV) -> sum(i, sin(x(i))^2)", seconds=1e-9).check()
    assert found and any("one set of sizes" in note for note in found.notes)


@pytest.mark.long
def test_a_form_is_not_said_to_be_wrong_where_rounding_chooses_a_side_of_a_cut() -> None:
    """The sum of a Hermitian matrix is real up to rounding, and beyond 1 it lies on the cut of asin."""
    d = cd.grad("(x::CV, M::Her) -> real(asin(-sum((j, k), M(j, k))) / 2 + sum(k::N, x(k)))")
    assert all(d.check(seed=seed) for seed in range(16))


def test_volumes_of_tetrahedra_are_checked_on_four_points_that_differ() -> None:
    """Where a row of E names one point twice, the determinant is 0, and its logarithm is not finite."""
    d = cd.grad("""(E::(N{m}, N{4}) -> N{v}) -> (x::RM{v, 3}) -> begin
  F = e -> (i::N{3}, k::N{3}) -> x(E(e, k + 1), i) - x(E(e, 0), i)
  sum(e, log(det(F(e))^2))
end""")
    for seed in range(3):
        assert d.check(seed=seed)
