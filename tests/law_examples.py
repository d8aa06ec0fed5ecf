"""Tries one law of `rules/` on its own, on ground terms: the vocabulary of the tables of examples, and the trial.

A trial loads the sorts, constructors and tables that the law's family knows, and of the laws only the one on trial,
those whose work it is said to need, and those of `terms`, which say what sums, products and indices hold. So no other
law can do its work, and no other law's work hides what it does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest

from combdiff.simplify.contraction.egraph import FAMILIES
from combdiff.simplify.contraction.egraph_thread import EGraphThread
from tests.mutants.laws import Form, called, forms

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 4
"""Enough for terms to be found, a law, and those that finish its work; a wrong law might find no end."""


@dataclass(frozen=True, slots=True)
class Law:
    """Examples of a law: with what is `given` it fires, and `then` these facts hold; it does nothing in `unless`.

    What holds `never` is true as well, but a law that makes one of two equal terms does not make the other.

    `given` are commands of egglog, facts or terms; so are the values of `unless`, where the keys say what is amiss.
    `using` names the laws that finish what the law began.
    """

    name: str
    given: tuple[str, ...]
    then: tuple[str, ...]
    unless: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    using: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


def rewriting(
    name: str,
    left: str,
    right: str,
    *facts: str,
    unless: Mapping[str, tuple[str, ...]] | None = None,
    using: tuple[str, ...] = (),
) -> Law:
    """The example of a law that makes a term `right` of the term `left`, given some facts."""
    return Law(name, (*facts, f"(let $left {left})"), (equal("$left", right),), unless or {}, using)


# --- the trial ------------------------------------------------------------------------------------------------------


def examples(laws: Mapping[str, Sequence[Law]]) -> pytest.MarkDecorator:
    """A test of each law of the families: its arguments are `family` and `law`."""
    cases = [pytest.param(family, law, id=law.name) for family, among in laws.items() for law in among]
    return pytest.mark.parametrize(("family", "law"), cases)


def exceptions(laws: Mapping[str, Sequence[Law]]) -> pytest.MarkDecorator:
    """A test of each case in which a law must do nothing: its arguments are `family`, `law` and `reason`."""
    cases = [
        pytest.param(family, law, reason, id=f"{law.name}: {reason}")
        for family, among in laws.items()
        for law in among
        for reason in law.unless
    ]
    return pytest.mark.parametrize(("family", "law", "reason"), cases)


def fires(family: str, law: Law) -> None:
    """Check that the law fires on what is given, and makes of it what is said."""
    checks = [f"(check {fact})" for fact in law.then] + [f"(fail (check {fact}))" for fact in law.never]
    assert _matches(family, law, law.given, checks) > 0


def does_nothing(family: str, law: Law, reason: str) -> None:
    """Check that the law does not fire where it must not."""
    assert _matches(family, law, law.unless[reason], []) == 0


def laws_of(family: str) -> dict[str, str]:
    """The laws of a family by name."""
    text = _text(family)
    return {called(form, text): text[form.start : form.end] for form in forms(text) if _is_law(form)}


@cache
def _text(family: str) -> str:
    return (ROOT / "rules" / f"{family}.egg").read_text(encoding="utf-8")


def _is_law(form: Form) -> bool:
    return form.head in ("rewrite", "rule")


@cache
def _vocabulary(family: str) -> tuple[str, dict[str, str]]:
    """The declarations that the laws of a family need, and by name the laws that a trial may need."""
    declarations: list[str] = []
    laws: dict[str, str] = {}
    for member in FAMILIES if family in FAMILIES else (family,):
        text = _text(member)
        declarations += (text[form.start : form.end] for form in forms(text) if not _is_law(form))
        laws |= laws_of(member)
    return "\n".join(declarations), laws


def _matches(family: str, law: Law, given: Sequence[str], checks: Sequence[str]) -> int:
    """How often the law fires; raises an error of egglog if one of the checks fails."""
    from egglog.bindings import EGraph, RunScheduleOutput

    declarations, laws = _vocabulary(family)
    needed = {law.name, *law.using}
    if family in FAMILIES and family != "terms":
        needed |= laws_of("terms").keys()
    # as in a run of the laws: `members` comes to its end before others start
    found = re.findall(r"\(ruleset (\S+)\)", declarations)
    runs = " ".join("(saturate (run members))" if name == "members" else f"(run {name})" for name in found)
    schedule = f"(run-schedule (repeat {ROUNDS} {runs}))"
    text = "\n".join([declarations, *(laws[name] for name in sorted(needed)), *given, schedule, *checks])

    def run(egraph: EGraph) -> int:
        outputs = (output for command in egraph.parse_program(text) for output in egraph.run_program(command))
        (report,) = (output.report for output in outputs if isinstance(output, RunScheduleOutput))
        return int(report.num_matches_per_rule.get(law.name, 0))

    return EGraphThread()(run)


# --- the vocabulary -------------------------------------------------------------------------------------------------

Part = str | int
Constructor = Callable[..., str]


def constructor(head: str) -> Constructor:
    """What writes a form with this head.

    >>> constructor("Conj")("(Var 1)")
    '(Conj (Var 1))'
    """

    def form(*parts: Part) -> str:
        return f"({' '.join([head, *map(str, parts)])})"

    return form


def constructors(*heads: str) -> tuple[Constructor, ...]:
    """What writes forms with these heads."""
    return tuple(map(constructor, heads))


def rational(q: float | Fraction) -> str:
    """A rational number.

    >>> rational(0.5)
    '(bigrat (bigint 1) (bigint 2))'
    """
    q = Fraction(q)
    return f"(bigrat (bigint {q.numerator}) (bigint {q.denominator}))"


def name(text: str) -> str:
    """The name of a function or of a kind of indices."""
    return f'"{text}"'


equal, union, put = constructors("=", "union", "set")
multiset, indices = constructors("multiset-of", "set-of")
