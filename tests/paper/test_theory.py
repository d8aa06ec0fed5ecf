"""docs/theory.md has a row with a test for each numbered equation, each listing and the table of the paper.

That the functions and tests of a row exist is checked for all documents, in tests/test_documents.py.
"""

from __future__ import annotations

import re
from pathlib import Path

THEORY = (Path(__file__).parents[2] / "docs" / "theory.md").read_text(encoding="utf-8")
EQUATIONS, LISTINGS = range(1, 59), range(1, 6)
NAMED = re.compile(r"^\|(?P<what>[^|]*)\|.*\|$", re.MULTILINE)
TEST = re.compile(r"\[`(test_\w+)`\]\(\.\./(tests/[\w/]+\.py)\)")


def numbers(text):
    """`15–19` and `47, Listing 2` as the equations that they name."""
    found = set()
    for part in text.split(","):
        if match := re.fullmatch(r"\s*(\d+)(?:[–-](\d+))?\s*", part):
            found |= set(range(int(match[1]), int(match[2] or match[1]) + 1))
    return found


def rows(text=THEORY):
    """What each row of a table is about, and the tests that it names."""
    return [(m["what"].strip(), [name for name, _ in TEST.findall(m[0])]) for m in NAMED.finditer(text)]


def uncovered(text=THEORY):
    """The equations, listings and tables of the paper that no row with a test is about."""
    tested = [what for what, tests in rows(text) if tests]
    equations = set().union(*map(numbers, tested))
    others = {*(f"Listing {n}" for n in LISTINGS), "Table 1"}
    named = {part.strip() for what in tested for part in what.split(",")}
    return sorted(set(EQUATIONS) - equations), sorted(others - named)


def test_each_equation_and_listing_has_a_row_with_a_test():
    assert uncovered() == ([], [])


def test_no_row_is_about_an_equation_that_the_paper_does_not_have():
    assert set().union(*(numbers(what) for what, _ in rows())) <= set(EQUATIONS)


def test_a_test_that_names_its_equation_is_in_a_row_of_this_equation():
    """`test_eq_30_…` stands in a row that is about Eq. 30."""
    misplaced = []
    for what, tests in rows():
        for name in tests:
            match = re.match(r"test_eq_(\d+)(?:_and_(\d+))?_", name)
            own = {int(n) for n in match.groups() if n} if match else set()
            if own and numbers(what) and own.isdisjoint(numbers(what)):
                misplaced.append((name, what))
    assert misplaced == []


def test_a_row_without_a_test_is_found():
    lines = THEORY.splitlines()
    without = "\n".join(
        line for line in lines if not line.startswith("| 23 |") and not line.startswith("| Listing 1 |")
    )
    assert uncovered(without) == ([23], ["Listing 1"])
    assert uncovered(TEST.sub("none", THEORY))[0] == list(EQUATIONS)
