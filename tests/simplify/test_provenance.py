"""What is told of a derivation is true: terms are equal under the symmetries named, δ are summed where it is said."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import combdiff as cd
from combdiff.budget import Budget
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.samples import random_arguments
from combdiff.meaning.sizes import two_sizes
from combdiff.simplify.account import Step
from combdiff.simplify.provenance.choosing import choice_words
from combdiff.simplify.provenance.contracting import meetings
from combdiff.simplify.provenance.merging import Merge, Merging
from combdiff.simplify.provenance.shown import shown_values
from combdiff.simplify.provenance.symmetry import Use
from combdiff.terms.terms import ZERO, Lam, Let, Sum, Term, Var, fresh, let, mul, substitute, subterms
from combdiff.terms.types import REAL, Domain, Index, Map, Symmetry, Type

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.cd"))
ANTISYMMETRIC = """@space W begin
  type = (N, N, N) -> R
  symmetries = (((2, 1, 3), :neg), ((1, 3, 2), :neg))
end
(w::W, A::RM) -> grad((x::RV) -> sum((i, j, k), w(i, j, k) * x(i) * A(j, k)))
"""
PROGRAMS = {path.stem: path.read_text(encoding="utf-8") for path in EXAMPLES} | {
    "antisymmetric": ANTISYMMETRIC,
    "two tensors": "(A::Her, B::Sym) -> (x::CV) -> sum((i, j, k), x(i)' * A(i, j) * A(j, k) * B(k, k) * x(k)) + "
    "sum((i, j, k), x(i)' * A(k, i)' * A(j, k) * B(i, i) * x(j))",
    "cancelling": "(B::RM) -> (x::RV) -> sum((i, j), x(i) * x(j) * B(i, j)) - sum((i, j), x(j) * x(i) * B(j, i))",
}


def derived(name: str, mode: str) -> cd.grad:
    return getattr(cd, mode)(PROGRAMS[name])


def merges(steps: Sequence[Step]) -> Iterator[tuple[Step, Merging, Merge]]:
    for step in steps:
        if step.name == "merge like terms" and isinstance(step.before, Lam) and isinstance(step.term, Lam):
            found = Merging.again(step.before, step.term, step.unused)
            assert found is not None, "the stage done again is what was done"
            for m in found.merges():
                yield step, found, m


def closed(step: Step, term: Term) -> Term:
    """`term` below the values that it may hold."""
    assert isinstance(step.before, Lam)
    bindings, body = [], step.before.body
    while isinstance(body, Let):
        bindings += body.bindings
        body = body.body
    return let(bindings, term)


def values_of(terms: list[Term], uses: tuple[Use, ...], seed: int) -> list[list[np.ndarray]]:
    """The terms on random data: arrays have the symmetries of `uses`, and none that is declared besides."""
    free = sorted(set().union(*(t.free for t in terms)), key=lambda v: v.uid)
    named = {use.tensor: [s for u in uses if u.tensor == use.tensor for s in u.chain] for use in uses}
    known = {v: v for v in free}
    if {*named} <= {*free}:
        known = {v: fresh(v.name, with_symmetries(v, tuple(dict.fromkeys(named.get(v, ()))))) for v in free}
    open_ = [substitute(t, known) for t in terms]
    whole = Lam(tuple(known.values()), mul(*open_) if len(open_) > 1 else open_[0])
    found: list[list[np.ndarray]] = []
    for sizes in two_sizes(whole, seed=seed, few=2):
        rng = np.random.default_rng(seed)
        given = random_arguments(Lam(whole.params, ZERO), sizes, rng)
        found.append([np.asarray(evaluate(t, given, sizes)) for t in open_])
    return found


def with_symmetries(v: Var, symmetries: tuple[Symmetry, ...]) -> Type:
    return replace(v.kind, symmetries=symmetries) if isinstance(v.kind, Map) and v.kind.is_tensor else v.kind


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("mode", ["grad", "hvp"])
def test_terms_that_are_told_to_be_equal_are_so_under_the_symmetries_named(name: str, mode: str) -> None:
    for step, _, m in merges(derived(name, mode).steps):
        other = m.other if m.other is not None else m.term
        ratio = complex(m.witness.ratio.real, m.witness.ratio.imag)  # type: ignore[attr-defined]
        for a, b in values_of([closed(step, m.term), closed(step, other)], m.witness.uses, 3):
            np.testing.assert_allclose(a, ratio * b, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_no_symmetry_is_named_that_is_not_needed() -> None:
    for name in ("hartree_fock", "quadratic", "restricted_hartree_fock"):
        for step, _, m in merges(derived(name, "grad").steps):
            assert m.other is not None and m.witness.uses
            for a, b in values_of([closed(step, m.term), closed(step, m.other)], (), 3):
                assert not np.allclose(a, b)


def test_hartree_fock_is_told() -> None:
    steps = {step.name: step for step in derived("hartree_fock", "grad").steps}
    assert steps["merge like terms"].words == [
        "term 2 equals term 1 by J(p, q, r, s) = J(q, p, s, r)'",
        "term 3 equals term 1 by J(p, q, r, s) = J(r, s, p, q)",
        "term 4 equals term 1 by J(p, q, r, s) = J(q, p, s, r)' = J(s, r, q, p)'",
    ]
    assert steps["contract"].words[1] == (
        "in term 2, δ(q, p) is summed over q, δ(i₁, i) over i₁ and δ(C(p₁, i₁)', t) over t"
    )
    assert not steps["collect and name"].changed and steps["merge like terms"].changed


def test_a_term_that_is_its_own_negative_is_zero() -> None:
    words = [
        line for step in cd.grad(ANTISYMMETRIC.replace("A(j, k)", "A(j, 0) * A(k, 0)")).steps for line in step.words
    ]
    assert "term 1 is zero by w(i, j, k) = -w(i, k, j)" in words


@pytest.mark.slow
def test_names_and_factors_are_told() -> None:
    words = [line for step in derived("restricted_hartree_fock", "grad").steps for line in step.words]
    assert "C(p₁, i) is taken out of terms 1, 2 and 3" in words
    assert any(line.startswith("P(p, p₁) = sum(i, C(p, i) * C(p₁, i)) gets a name") for line in words)


def test_what_is_not_known_is_not_told() -> None:
    step = next(s for s in derived("hartree_fock", "grad").steps if s.name == "merge like terms")
    # another result than what merging makes of the term before, a symmetry that was not to be used, a spent budget
    assert isinstance(step.term, Lam) and step.before is not None
    twice = Lam(step.term.params, Lam(step.term.body.params, mul(step.term.body.body, step.term.body.body)))  # type: ignore[attr-defined]
    assert replace(step, term=twice).words == []
    assert replace(step, unused=("J",)).words == []
    assert replace(step, spent=True).words == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hartree_fock", "quadratic", "restricted_hartree_fock", "wannier", "cp_loss"])
def test_the_sums_of_delta_that_are_told_are_gone_and_the_value_is_the_same(name: str) -> None:
    told = 0
    for step in derived(name, "grad").steps:
        if step.name != "contract" or step.before is None:
            continue
        after = shown_values(step.term)
        for key, shown in shown_values(step.before).items():
            for m in meetings(shown, after[key].entry, Budget()):
                before, later = (
                    sum(len(u.indices) for u in subterms(t) if isinstance(u, Sum)) for t in (m.term, m.contracted)
                )
                assert len(m.met) in (0, before - later)
                assert all(
                    var in d.left.free | d.right.free and len({v for _, v in m.met}) == len(m.met) for d, var in m.met
                )
                for one, other in values_of([closed(step, m.term), closed(step, m.contracted)], (), 5):
                    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
                told += len(m.met)
    assert told > 1


def test_symmetries_are_applied_one_after_the_other() -> None:
    # exchanging slots 1 and 2, then 2 and 3, is no exchange of its own: the order tells
    one, two = Symmetry.permutation((2, 1, 3), "id"), Symmetry.permutation((1, 3, 2), "id")
    n = Index(Domain("n"))
    use = Use(fresh("w", Map((n, n, n), REAL, (one, two))), (one, two))
    assert [s.image("ijk", lambda pairs: "") for s in use.images] == [("j", "i", "k"), ("j", "k", "i")]


@pytest.mark.slow
def test_a_pickled_derivation_tells_the_same() -> None:
    d = derived("wannier", "grad")
    again = pickle.loads(pickle.dumps(d))
    assert [step.words for step in again.steps] == [step.words for step in d.steps]
    assert [step.changed for step in again.steps] == [step.changed for step in d.steps]


def test_a_sum_of_deviations_that_vanishes_is_told() -> None:
    steps = cd.grad("(x::RV{n}) -> begin; m = sum(i, x(i)) / n; sum(i, (x(i) - m)^2); end").steps
    (merge,) = [step for step in steps if "deviations" in str(step)]
    assert "m_bar: sum(i, x(i) - m) is zero, as a sum of deviations from a mean" in str(merge)


def test_a_function_of_arrays_that_gets_a_name_is_told_with_its_parameters() -> None:
    before = infer(parse("(x::RV) -> 2 * sum(i, x(i) * x(i))"))
    after = infer(parse("(x::RV) -> begin f = (u::RV) -> sum(i, u(i) * x(i)); 2 * f(x) end"), keep=["f"])
    assert isinstance(before, Lam) and isinstance(after, Lam)
    assert choice_words(before, after, (), {}) == ["f = (u::RV) -> sum(i, u(i) * x(i)) gets a name"]
