"""Canonical names agree with the least spelling over all renamings and all group elements."""

from __future__ import annotations

from random import Random

import pytest

from combdiff.canon.canonical import normal_form
from combdiff.language.printing.printer import expression_text
from combdiff.terms.terms import Term, fresh
from combdiff.terms.types import Index
from tests.simplify import brute_force as brute

FREE = {n: fresh(n, Index(d)) for n, d in (("a", brute.N), ("c", brute.N), ("x", brute.X), ("f", brute.K))}


def disagreements(seed: int, pools: int, cases: int) -> tuple[dict[str, int], list[str]]:
    """Counts of what was compared, and what went wrong: merged, missed, signs, zeros."""
    rng = Random(seed)
    counts = dict.fromkeys(("cases", "zeros", "pairs", "equal"), 0)
    wrong = []
    for _ in range(pools):
        tensors = [brute.random_tensor(rng, name) for name in "ABC"[: rng.randint(1, 3)]]
        seen: dict[object, tuple[object, int]] = {}
        terms: dict[object, Term] = {}
        for _ in range(cases):
            first = brute.random_case(rng, tensors)
            for case in (first, brute.relabelled(rng, first)):
                term = brute.term(case, FREE)
                found = normal_form(term)
                spelled, signs = brute.form(case)
                counts["cases"] += 1
                if (len(signs) > 1) != (not found.sign):
                    wrong.append(f"zero or not: {expression_text(term)}")
                if len(signs) > 1 or not found.sign:
                    counts["zeros"] += 1
                    continue
                sign = min(signs) * found.sign * (1 if found.coefficient[0] > 0 else -1)
                if spelled in seen:
                    counts["equal"] += 1
                    if seen[spelled] != (found.key, sign):
                        wrong.append(f"missed: {expression_text(term)}")
                    continue
                if found.key in terms:
                    wrong.append(f"merged: {expression_text(term)} and {expression_text(terms[found.key])}")
                counts["pairs"] += len(terms)
                seen[spelled] = (found.key, sign)
                terms[found.key] = term
    return counts, wrong


@pytest.mark.slow
def test_canonical_names_agree_with_brute_force() -> None:
    counts, wrong = disagreements(0, pools=32, cases=10)
    assert wrong == []
    assert counts["equal"] > 200
    assert counts["zeros"] > 20
