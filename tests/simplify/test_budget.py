"""A spent budget leaves like terms unmerged; it never makes a result wrong, and the result says so."""

from __future__ import annotations

from time import perf_counter

import pytest

import combdiff as cd
from combdiff.calculus.modes import differentiate, marked_program
from combdiff.language.infer import infer
from combdiff.language.parser import parse
from combdiff.language.terms import Add, App, Sum, Term, add, conj, fresh, mul, subterms, total
from combdiff.language.types import COMPLEX, HERMITIAN, Domain, Index, Map
from combdiff.simplify.budget import SPENT, Budget
from combdiff.simplify.canonical import is_real, merge_like_terms, normal_form
from combdiff.simplify.gate import gate_for
from combdiff.simplify.stages import Simplifier

N = Index(Domain("n"))
H = fresh("H", Map((N, N), COMPLEX, (HERMITIAN,)))
X = fresh("x", Map((N,), COMPLEX))
HARTREE_FOCK = """@space S begin type = (N, N, N, N) -> C; symmetries = (((2, 1, 4, 3), :conj), ((3, 4, 1, 2), :id)) end
(J::S) -> (C::CM) -> sum((i, j, p, q, r, s), C(p, i)' * C(q, i) * C(r, j)' * C(s, j) * J(p, q, r, s))"""


class _LateBudget(Budget):
    """Over for everything that comes after contraction."""

    @property
    def left(self) -> float:
        return 60.0


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


def test_a_derivation_out_of_time_is_correct_and_marked() -> None:
    program = marked_program(infer(parse(HARTREE_FOCK)))
    simplifier = Simplifier()
    simplifier.budget = _LateBudget(perf_counter() - 1.0)
    result = differentiate(program, "grad", simplifier)
    marked = [step for step in simplifier.steps if step.spent]
    assert marked and all(SPENT in step.note for step in marked)
    in_time = Simplifier()
    whole = differentiate(program, "grad", in_time)
    bodies = [_body(t) for t in (result, whole)]
    gate_for(*bodies).same(*bodies, "merge like terms")
    assert _sums(simplifier) > _sums(in_time)


def _sums(simplifier: Simplifier) -> int:
    """How many sums are left when like terms have been merged."""
    step = next(step for step in simplifier.steps if step.name == "merge like terms")
    return sum(isinstance(u, Sum) for u in subterms(step.term))


def _body(t: Term) -> Term:
    return t.body.body  # type: ignore[attr-defined]  # (J) -> (C) -> the tensor


def test_a_derivation_in_time_is_not_marked() -> None:
    assert not any(step.spent or SPENT in step.note for step in cd.grad(HARTREE_FOCK).steps)


def test_contraction_out_of_time_is_an_error() -> None:
    with pytest.raises(cd.CombDiffError, match="budget"):
        cd.grad(HARTREE_FOCK, seconds=1e-9)


def test_the_command_line_says_on_standard_error_that_a_budget_was_spent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: object
) -> None:
    from pathlib import Path

    from combdiff.cli import main
    from combdiff.simplify import stages

    file = Path(str(tmp_path)) / "hartree_fock.cd"
    file.write_text(HARTREE_FOCK, encoding="utf-8")
    monkeypatch.setattr(stages, "Budget", lambda *_: _LateBudget(perf_counter() - 1.0))
    assert main(["grad", str(file)]) == 0
    captured = capsys.readouterr()
    assert SPENT in captured.err and "sum(" in captured.out
