"""Of the forms that are equal the quickest is run: it computes what the formula does, and what it saves is seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays.costs import seconds
from combdiff.arrays.lower.forms import Forms
from combdiff.arrays.lower.lower import lower
from combdiff.arrays.lower.signature import result_of
from combdiff.budget import OutOfTime
from combdiff.calculus.definitions.shared_parts import programs_to_run
from combdiff.calculus.modes import marked_program
from combdiff.deriving.runnable import agrees, renamed_as
from combdiff.errors import CheckError
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.run.compiled import Compiled
from combdiff.simplify.graph.running import AllForms
from combdiff.simplify.laws.distributed import distributed
from combdiff.terms.terms import Lam, Let, subterms

RINGS = """@domain Ring begin base = I; lower = -1; upper = 1 end
@domain Pair begin base = I; lower = -1; upper = 0 end
@space Map begin type = (((Pair) -> R)) -> (Pair) -> R; linear = true end
(s::RV, h::Map, v::(Pair) -> R) -> (x::(Ring) -> R) ->
  sum(j::Pair, h((i::Pair) -> sum(k::N, s(k) * sum(m::Ring, tanh(x(m) / (1 + abs2(sum(l::Ring, x(l) * x(l)) / 3)))) / 3)
    )(j) * v(j))"""
EWALD = """(q::RV, G::RM, A::RV) -> (x::RM) ->
  sum(k, A(k) * abs2(sum(i, q(i) * exp(im * sum(c, G(k, c) * x(i, c))))))"""


@pytest.mark.slow
def test_sums_over_other_indices_are_not_mixed_up() -> None:
    rng = np.random.default_rng(0)
    s, x, v, B, c = (rng.normal(size=n) for n in (4, 3, 2, (2, 2), 3))
    d = cd.grad(RINGS)
    f = d.compile(value=True, hvp=True)

    def at(y: object) -> object:
        return f(s, v, y, h=lambda u: B @ u, adjoint_h=lambda k: B.T @ k)

    t = 1e-6
    (_, ahead, _), (_, behind, _), (_, _, hvp) = at(x + t * c), at(x - t * c), at(x)
    np.testing.assert_allclose(hvp(c), (ahead - behind) / (2 * t), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(1, 1, 1), (2, 3, 5), (7, 5, 3)])
def test_the_quickest_form_computes_what_the_formula_does(sizes: tuple[int, int, int]) -> None:
    k, i, c = sizes
    rng = np.random.default_rng(1)
    q, G, A, x, v = (rng.normal(size=n) for n in (i, (k, c), k, (i, c), (i, c)))
    d = cd.hvp(EWALD)
    forms = d.runnable.forms(value=False)
    assert forms.flats
    plain = Forms(forms.formula)
    assert seconds(forms.plan()) <= seconds(plain.plan()) == seconds(lower(forms.formula))
    np.testing.assert_allclose(Compiled(forms)(q, G, A, x, v), Compiled(plain)(q, G, A, x, v), rtol=1e-10)


NAMED = "(A::RM) -> (x::RV) -> begin y = i -> sum(j, A(i, j) * x(j)); sum(i, y(i)^2) + sum((i, j), y(i) * y(j)) end"


@pytest.mark.slow
def test_equal_programs_are_derived_within_the_budget() -> None:
    """The formula is run where there is no time to derive another, or to compare it."""
    assert any(other.program != d.program for d in (cd.grad(NAMED),) for other in d.runnable.derivations)
    hurried = cd.grad(NAMED, seconds=1e-9)
    assert all(other is hurried for other in hurried.runnable.derivations)
    rng = np.random.default_rng(5)
    A, x = rng.normal(size=(3, 2)), rng.normal(size=2)
    np.testing.assert_allclose(hurried.compile()(A, x), cd.grad(NAMED).compile()(A, x), rtol=1e-12)


@pytest.mark.slow
def test_definitions_that_many_uses_share_are_not_written_out() -> None:
    """A program that would be much longer without its names is run with them; one that is short is written out."""

    def programs(count: int) -> list[bool]:
        steps = "".join(f"a{n + 1} = exp(-a{n}) * tanh(a{n}) + a{n}^2 / (1 + a{n}); " for n in range(count))
        text = f"(x::RV) -> sum(i, begin; a0 = x(i)^2; {steps} a{count}; end)"
        program = marked_program(infer(parse(text)))
        return [other == program for other in programs_to_run(program)]

    assert programs(1)[0] is False
    assert programs(5) == [True]


@pytest.mark.slow
def test_a_form_that_was_not_compared_in_time_is_not_run() -> None:
    def late(*_: object) -> bool:
        raise OutOfTime

    forms = cd.grad(EWALD).runnable.forms(value=False)
    plain = seconds(Forms(forms.formula).plan())
    assert seconds(forms.plan()) < plain == seconds(replace(forms, agree=late).plan())
    with pytest.raises(OutOfTime):
        agrees(forms.formula, forms.flats[0], seconds=0.0)


def test_a_form_with_another_value_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:

    right = AllForms.cheapest

    def wrong(*args: object) -> Lam:
        found = right(*args)
        # one term of two
        return Lam(found.params, Lam(found.body.params, found.body.body.terms[0]))

    monkeypatch.setattr(AllForms, "cheapest", wrong)
    with pytest.raises(CheckError, match="choosing what to run changed the value"):
        cd.grad("(A::RM) -> (x::RV) -> sum((i, j), x(i) * A(i, j) * x(j))").source()


def test_a_form_of_another_program_is_run_only_where_it_has_the_value_of_the_formula() -> None:
    head = "(A::RM{n, n}, x::RV{n}) -> i -> "
    formula = cd.simplified(head + "sum((j, k), A(i, j) * A(j, k) * x(k))").term
    twice, once = (cd.simplified(head + text).term for text in ("sum(j, 2 * A(i, j) * x(j))", "sum(j, A(i, j) * x(j))"))
    for quicker in (twice, once):
        flat = renamed_as(formula, quicker)
        trusted, held = Forms(formula, (flat,)), Forms(formula, (flat,), agree=agrees)
        assert str(trusted.plan()) == str(lower(flat)) != str(lower(formula))
        assert str(held.plan()) == str(lower(formula))


@pytest.mark.parametrize("number", ["complex(2)", "complex(1)"])
def test_forms_that_are_run_take_what_the_formula_takes(number: str) -> None:
    d = cd.pullback(f"(x::RV) -> begin c = {number}; i -> c * x(i) + c end")
    kinds = [[p.kind for p in again.term.params] for again in d.runnable.derivations]
    assert all(k == [p.kind for p in d.term.params] for k in kinds)


@pytest.mark.slow
@pytest.mark.parametrize("text", [EWALD, RINGS])
def test_what_was_run_for_other_sizes_does_not_matter(text: str) -> None:
    """The forms are found once, and chosen from for each set of sizes."""
    forms = cd.grad(text).runnable.forms(value=True)
    domains = sorted(forms.plan().sizes, key=lambda d: d.name)
    rows = [{d: n + k for k, d in enumerate(domains) if d.count is None} for n in (2, 300, 7)]
    alone = [str(Forms(forms.formula, forms.flats).plan(sizes)) for sizes in rows]
    assert [str(forms.plan(sizes)) for sizes in (*rows, *rows)] == [*alone, *alone]


@pytest.mark.slow
def test_a_value_whose_terms_cancel_may_be_shared() -> None:
    """Residuals of a mean add up to 0, which is seen where their sum is written."""
    text = (
        "(A::RM{n, m}) -> sum((i, j), "
        "A(i, j) * (sum(k, A(k, j) - sum(l, A(l, j)) / sum(l::N{n}, 1)) / sum(k::N{n}, 1)))"
    )
    value, gradient, product = cd.grad(text).compile(value=True, hvp=True)(np.random.default_rng(2).random((3, 2)))
    np.testing.assert_allclose(value, 0, atol=1e-12)
    np.testing.assert_allclose(gradient, 0, atol=1e-12)
    np.testing.assert_allclose(product(np.ones((3, 2))), 0, atol=1e-12)


@pytest.mark.sampled
@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("function", ["sqrt", "log"])
def test_what_is_real_by_its_symmetry_alone_keeps_its_complex_type(function: str, n: int) -> None:
    # the root of Σ Re(x) A is i √3 at −3, and nan if the sum were taken for a real number
    of = {"sqrt": np.sqrt, "log": np.log}[function]
    gradient = cd.grad(f"(A::Her{{n}}) -> (x::CV{{n}}) -> abs2({function}(sum(i, real(x(i)) * A(i, i))))").compile()
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, n)) + 1j * rng.normal(size=(n, n))
    A = (A + A.conj().T) / 2
    x, v = (rng.normal(size=n) + 1j * rng.normal(size=n) for _ in range(2))
    for at in (x, -x):
        ahead, behind = (abs(of(A.diagonal() @ (at + t * v).real)) ** 2 for t in (1e-6, -1e-6))
        slope = (ahead - behind) / 2e-6
        assert np.allclose((gradient(A, at).conj() @ v).real, slope, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("outside", ["{}", "log({})", "sqrt({})", "1 / {}"])
@pytest.mark.parametrize(
    "norm",
    [
        "sum((i, j, k, l), A(i, j) * B(j, k) * A(i, l)' * B(l, k)')",
        "sum((i, j, k, l), A(i, j) * B(j, k) * A(k, l)' * B(l, i)')",
        "sum((i, j, k, l), A(i, j) * B(j, k) * A(l, k)' * B(i, l)')",
    ],
)
def test_the_real_part_of_a_sum_that_is_real_anyway_is_taken_last(norm: str, outside: str) -> None:
    d = cd.grad(f"(B::CM) -> (A::CM) -> {outside.format(f'real({norm})')}")
    plan = d.plan(value=True, A=(60, 60), B=(60, 60))
    assert max(step.rank for step in plan.steps) == 2, "matrices, and no outer products of them"
    assert d.check()


@pytest.mark.sampled
@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
def test_an_index_given_to_a_function_of_numbers_wraps_round_first(n: int) -> None:
    # rho(i + 2) is f of (i + 2) mod n, and f(i + 2) is not
    d = cd.hvp(
        "@domain Z begin base = I; periodic = true end\n"
        "(f::RF) -> (x::(Z) -> R) -> begin; rho = (i::Z) -> f(i) * x(i); sin(sum(i::Z, rho(i + 2)))^3; end"
    )
    rng = np.random.default_rng(n)
    x, k = rng.normal(size=n), rng.normal(size=n)
    w = np.cos(np.arange(n))
    s = w @ x
    second = 3 * np.sin(s) * (2 * np.cos(s) ** 2 - np.sin(s) ** 2)
    assert np.allclose(d.compile()(x, k, f=np.cos), second * (w @ k) * w)


EXCHANGE = """@space B3 begin type = (N, N, N) -> R; symmetries = (((1, 3, 2), :id),) end
(B::B3) -> (C::RM) -> begin P = (p, q) -> sum(i, C(p, i) * C(q, i))
sum((Q, p, q, r, s), B(Q, p, q) * B(Q, r, s) * (2 * P(p, q) * P(r, s) - P(p, r) * P(q, s))) end"""
ROTORS = "(K::Sym) -> (t::RV) -> sum((i, j), K(i, j) * (cos(t(i)) * cos(t(j)) + sin(t(i)) * sin(t(j))))"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "shapes", "rank"),
    [(EXCHANGE, {"B": (300, 70, 70), "C": (70, 12)}, 3), (ROTORS, {"t": (1000,)}, 1)],
)
def test_a_sum_over_products_in_brackets_is_one_of_matrices(text: str, shapes: dict[str, object], rank: int) -> None:
    plan = cd.grad(text).plan(value=True, **shapes)
    assert max(step.rank for step in plan.steps if step.operands) == rank, "no outer product is made"


DIFFERENCES = "(w::RM) -> (x::RV, y::RV) -> sum((i, j), w(i, j) * ({}))"


@pytest.mark.parametrize(
    ("bracket", "apart"),
    [
        ("x(i) - x(j)", False),
        ("x(i) * y(j) - x(j) * y(i)", False),
        ("x(i) * y(j) + x(j) * y(i)", True),
        ("x(i) * y(j) + w(j, i)", False),
    ],
)
def test_what_may_cancel_is_not_summed_apart(bracket: str, apart: bool) -> None:
    """The first two are 0 where i and j meet; of the last one term has as many indices as the bracket."""
    term = result_of(cd.simplified(DIFFERENCES.format(bracket)).term).outputs[0]
    assert (distributed(term) != term) == apart


BOUND = {
    "a state": "(x::RV) -> (b::R) -> sum(i, iterate((c, i) -> b^i / (c * b^(2 * i)), b, 2) * x(i))",
    "one of two states": "(x::RV) -> (b::R) -> begin\n"
    "(c, f) = iterate(((c, y), i) -> (b^i / (c * b^(2 * i)), (j::N) -> 1), (b, j -> x(j)), 2)\n"
    "c * sum(i, f(i)^2) end",
    "the variable of an integral": "@domain Line begin base = R; lower = 0; upper = 1 end\n"
    "(a::R) -> (b::R) -> sum(x::Line, exp(b * x) / (x + 2) + a * exp(b * x) * sin(b / (x + 2)) / (x + 2))",
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", BOUND)
def test_products_of_what_is_bound_inside_have_no_name_outside(name: str) -> None:
    d = cd.grad(BOUND[name])
    assert not any(program.free for program in programs_to_run(d.program))
    assert d.check()


INVERSE = """(D::RM{n, n}, z::RV{n}) -> (a::R) -> begin
  A = (i, j) -> delta(i, j, 1) + exp(-a * D(i, j))
  z' * (A \\ z) + logabsdet(A)
end"""


def test_a_matrix_that_is_written_out_in_two_functions_is_run_under_its_name() -> None:
    (program,) = programs_to_run(marked_program(infer(parse(INVERSE))))
    assert [var.name for t in subterms(program, Let) for var, _ in t.bindings] == ["A"]


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_sum_over_a_value_that_is_read_once_comes_apart(n: int) -> None:
    """One product of matrices makes the Hessian product: the cotangent of A, which takes another, is never made."""
    d = cd.hvp(INVERSE)
    assert str(d.plan()).count("GEMM") == 1
    D, z = np.random.default_rng(n).normal(size=(n, n)), np.arange(1.0, n + 1)
    gradient, a, t = cd.grad(INVERSE).compile(), 0.4, 1e-5
    slope = (gradient(D, z, a + t) - gradient(D, z, a - t)) / (2 * t)
    np.testing.assert_allclose(d.compile()(D, z, a, 1.0), slope, rtol=1e-5)


PRUNING = """(p::RV{4}, L1::RM{s, 4}, L2::RM{s, 4}, L3::RM{s, 4}) -> (Q::RM{4, 4}, t::RV{4}) -> begin
  P1 = expm(Q * t(0)); P2 = expm(Q * t(1)); P3 = expm(Q * t(2)); P4 = expm(Q * t(3))
  a = (u, k) -> sum(b, P1(k, b) * L1(u, b)) * sum(b, P2(k, b) * L2(u, b))
  sum(u, log(sum(k, p(k) * sum(b, P4(k, b) * a(u, b)) * sum(b, P3(k, b) * L3(u, b)))))
end"""


@pytest.mark.slow
def test_a_program_whose_derivative_is_much_longer_written_out_is_run_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    d = cd.hvp(PRUNING)
    assert programs_to_run(d.program) != (d.program,)
    monkeypatch.setattr("combdiff.deriving.runnable.LONGER", 0.5)
    assert d.runnable.derivations == (d,)
