"""The mutants fit the code, each has a name of its own, and a deliberate fault is noticed."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.mutants.__main__ import _first_failure, all_mutants, copies, known_survivors, tried
from tests.mutants.laws import faults, forms
from tests.mutants.mutant import ROOT, Mutant, StaleError, inside, source


@cache
def every_mutant() -> list[Mutant]:
    """Made when a test asks for them, not when tests are collected."""
    return list(all_mutants())


@pytest.mark.slow
def test_every_mutant_has_a_name_of_its_own() -> None:
    assert [name for name, count in Counter(m.name for m in every_mutant()).items() if count > 1] == []


@pytest.mark.slow
def test_every_mutant_differs_from_the_code() -> None:
    assert [m.name for m in every_mutant() if m.text == source(m.file)] == []


def test_the_tests_that_are_to_notice_exist() -> None:
    assert [t for m in every_mutant() for t in m.tests if not (ROOT / t).exists()] == []


def test_every_survivor_with_a_reason_is_a_mutant() -> None:
    assert sorted(set(known_survivors()) - {m.name for m in every_mutant()}) == []


def test_what_is_replaced_must_be_there_once() -> None:
    with pytest.raises(StaleError, match="not once"):
        inside("combdiff/calculus/pullback.py", "c_rule", "nothing of the kind", "")


def test_a_law_loses_its_minus_sign_and_its_condition() -> None:
    text = '(rule ((= x (F a)) (commutes a)) ((union x (G (bigint -1) a))) :name "odd")'
    (law,) = forms(text)
    wrong = dict(faults(law, text))
    assert "(bigint 1)" in wrong["wrong"]
    assert "commutes" not in wrong["without (commutes a)"]


def test_conditions_are_all_premises_but_those_that_the_law_cannot_be_written_without() -> None:
    text = (
        "(rule ((= s (Sum vs d)) (= i (part vs d)) (Around q f) (= f (& f 3)) (= n (width q)) (kind n k) (waits d v))"
        " ((set (solution d q) n)))"
    )
    (law,) = forms(text)
    without = [fault.removeprefix("without ") for fault, _ in faults(law, text) if fault.startswith("without ")]
    assert without == ["(= f (& f 3))", "(= n (width q))", "(kind n k)", "(waits d v)"]


@pytest.mark.slow
def test_tests_are_run_in_the_order_in_which_they_are_named(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / f"test_{name}.py").write_text("def test_it():\n    assert False\n", encoding="utf-8")
    assert "test_second.py::test_it" in _first_failure(tmp_path, ("test_second.py", "."))


@pytest.mark.slow
def test_a_fault_is_noticed() -> None:
    file = "combdiff/errors.py"
    broken = Mutant("errors cannot be imported", file, "raise SystemExit\n", ("tests/calculus/test_naming.py",))
    sound = Mutant("nothing is broken", file, source(file), ("tests/calculus/test_naming.py",))
    with copies(1) as free:
        assert tried(broken, free).noticed
        assert not tried(sound, free).noticed
