"""A spent budget leaves work undone; it never makes a result wrong, and the result says so."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import combdiff as cd
from combdiff.budget import SPENT, Budget
from combdiff.canon.canonical import is_real, merge_like_terms, normal_form
from combdiff.command.cli import main
from combdiff.errors import BudgetError, UnsupportedError
from combdiff.gate.gate import gate_for
from combdiff.language.printing.printer import program_text
from combdiff.simplify.contraction.contract import contract
from combdiff.simplify.fallback import without_number_sums, written_size
from combdiff.terms.terms import (
    Add,
    App,
    Lam,
    Mul,
    Term,
    add,
    apply,
    call,
    conj,
    delta,
    fresh,
    mul,
    total,
)
from combdiff.terms.types import COMPLEX, HERMITIAN, Domain, Index, Map
from tests.strategies import programs

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
N = Index(Domain("n"))
H = fresh("H", Map((N, N), COMPLEX, (HERMITIAN,)))
X = fresh("x", Map((N,), COMPLEX))
HARTREE_FOCK = """@space S begin type = (N, N, N, N) -> C; symmetries = (((2, 1, 4, 3), :conj), ((3, 4, 1, 2), :id)) end
(J::S) -> (C::CM) -> sum((i, j, p, q, r, s), C(p, i)' * C(q, i) * C(r, j)' * C(s, j) * J(p, q, r, s))"""


def _expectation(conjugated: bool) -> Term:
    i, j = fresh("i", N), fresh("j", N)
    t = total((i, j), mul(conj(App(X, (i,))), App(H, (i, j)), App(X, (j,))))
    return conj(t) if conjugated else t


def test_without_a_budget_equal_terms_are_merged() -> None:
    assert not isinstance(merge_like_terms(add(_expectation(False), _expectation(True))), Add)


def test_a_spent_budget_leaves_terms_as_they_are_and_says_so() -> None:
    spent = Budget(perf_counter() - 1.0)
    both = add(_expectation(False), _expectation(True))
    assert merge_like_terms(both, budget=spent) == both
    assert spent.spent


def test_with_a_spent_budget_nothing_is_proved_real() -> None:
    assert is_real(_expectation(False))
    assert not is_real(_expectation(False), budget=Budget(perf_counter() - 1.0))


def test_a_term_without_search_is_its_own_form() -> None:
    t = _expectation(False)
    assert normal_form(t, budget=Budget(perf_counter() - 1.0)).key == t


def test_a_budget_that_is_not_asked_is_not_spent() -> None:
    assert not Budget(perf_counter() - 1.0).spent


def test_a_derivation_out_of_time_says_so_at_every_stage() -> None:
    steps = cd.grad(HARTREE_FOCK, seconds=1e-9).steps
    marked = [step for step in steps if step.spent]
    assert [step.name for step in marked] == ["contract", "merge like terms", "collect and name", "order and names"]
    assert all(SPENT in step.note for step in marked)


def test_a_derivation_in_time_is_not_marked() -> None:
    assert not any(step.spent or SPENT in step.note for step in cd.grad(HARTREE_FOCK).steps)


OVER_THE_REALS = ("least_action",)
"""Examples that no arrays hold."""


@pytest.mark.slow
@pytest.mark.parametrize("limits", [{"seconds": 1e-9}, {"nodes": 5}], ids=str)
@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.cd")), ids=lambda file: file.stem)
def test_contraction_without_a_budget_is_correct_compiles_and_is_marked(file: Path, limits: dict[str, float]) -> None:
    d = cd.grad(file.read_text(encoding="utf-8"), **limits)  # type: ignore[arg-type]  # seconds and nodes
    assert next(step.name for step in d.steps if step.spent) == "contract"
    assert "differentiation made them" in next(step for step in d.steps if step.name == "contract").note
    assert d.latex()
    if file.stem in OVER_THE_REALS:
        with pytest.raises(UnsupportedError, match="real line"):
            d.check()
    else:
        assert d.check()


@pytest.mark.slow
@given(programs(depth=2), st.one_of(st.just(1), st.integers(20, 400)))
@settings(max_examples=25)
def test_any_budget_of_nodes_gives_a_correct_result(program: Lam, nodes: int) -> None:
    text = program_text(program)
    for derive in (cd.grad, cd.hvp):
        some = derive(text, nodes=nodes)
        assert some.term.free == frozenset()
        if any(step.spent for step in some.steps):
            whole = _unmapped(derive(text).term, some.term)
            gate_for(*whole).same(*whole, "a spent budget")


def _unmapped(*terms: Term) -> list[Term]:
    """The bodies of maps that differ by the names of their parameters."""
    first, *others = terms
    if not isinstance(first, Lam) or all(isinstance(p.kind, Index) for p in first.params):
        return [*terms]
    return _unmapped(first.body, *(apply(t, *first.params) for t in others))


@pytest.mark.slow
def test_what_is_too_large_to_multiply_out_stays_as_it_was() -> None:
    factors = " * ".join(f"(a{n} + b{n} * x)" for n in range(12))
    unknowns = ", ".join(f"a{n}::R, b{n}::R" for n in range(12))
    text = f"({unknowns}) -> (x::R) -> {factors}"
    start = perf_counter()
    d = cd.grad(text, expand=True)
    assert perf_counter() - start < 20
    note = next(step for step in d.steps if step.name == "expand").note
    assert SPENT in note and "left as they were" in note
    assert str(d).count("(a5 + b5 * x)") > 20 and d.check()


@pytest.mark.slow
def test_the_clock_is_looked_at_while_a_product_is_multiplied_out() -> None:
    factors = " * ".join(f"(a{n} + b{n} * x)" for n in range(11))
    unknowns = ", ".join(f"a{n}::R, b{n}::R" for n in range(11))
    start = perf_counter()
    d = cd.grad(f"({unknowns}) -> (x::R) -> {factors}", expand=True, seconds=2, nodes=1e9)
    assert perf_counter() - start < 15
    assert "expand" in [step.name for step in d.steps if step.spent]


@pytest.mark.slow
def test_values_that_double_at_each_step_are_not_written_out() -> None:
    steps = "\n".join(f"h{n + 1} = f(h{n}) + g(h{n})" for n in range(60))
    d = cd.grad(f"(f::RF, g::RF) -> (x::R) -> begin\nh0 = x\n{steps}\nh60\nend", expand=True)
    assert next(step for step in d.steps if step.name == "expand").spent
    assert len(str(d)) < 20_000


def test_a_sum_over_numbers_that_no_law_solves_is_still_refused() -> None:
    t, i = fresh("t", COMPLEX), fresh("i", N)
    body = mul(t, total((i,), delta(App(X, (i,)), t, App(X, (i,)))))
    assert without_number_sums(total((t,), body)) == total((t,), body)
    with pytest.raises(BudgetError, match="allow more seconds or nodes"):
        contract([total((t,), body)], budget=Budget(nodes=1))


def test_a_sum_over_numbers_meets_its_delta_wherever_the_term_is_linear() -> None:
    x, y, t = fresh("x", COMPLEX), fresh("y", COMPLEX), fresh("t", COMPLEX)
    inner = delta(mul(x, y), t, y)
    body = add(mul(t, conj(mul(x, inner))), call("real", inner))
    assert without_number_sums(total((t,), body)) == add(mul(x, y, conj(mul(x, y))), call("real", y))


@pytest.mark.parametrize("factors", [(2, 2, 2), (3, 2), (4,), (1, 1, 5)])
def test_the_size_of_what_is_multiplied_out_is_known_beforehand(factors: tuple[int, ...]) -> None:
    sums = [add(*(fresh(f"a{n}", COMPLEX) for n in range(width))) for width in factors]
    t = mul(*sums)
    (found,), _ = contract([t], expand=True)
    products = found.terms if isinstance(found, Add) else (found,)
    expected = sum(1 + len(p.factors) if isinstance(p, Mul) else 1 for p in products)
    assert written_size(t, expand=True) == expected


@pytest.mark.parametrize("option", [("--seconds", "1e-09"), ("--nodes", "7")], ids=" ".join)
def test_the_command_line_says_on_standard_error_that_a_budget_was_spent(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, option: tuple[str, str]
) -> None:
    file = tmp_path / "hartree_fock.cd"
    file.write_text(HARTREE_FOCK, encoding="utf-8")
    assert main(["grad", str(file), *option]) == 0
    captured = capsys.readouterr()
    assert SPENT in captured.err and " ".join(option) in captured.err and "sum(" in captured.out
