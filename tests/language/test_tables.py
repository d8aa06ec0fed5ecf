"""The stored tables of the parser are those of the grammar; `python -m tests.language.test_tables` writes them anew."""

from __future__ import annotations

import json
from pathlib import Path

import lark
import pytest

from combdiff.language.parsing import tables

FILE = Path(__file__).parents[2] / "grammar" / "combdiff.json"
STALE = "write them anew: python -m tests.language.test_tables"

of_this_lark = pytest.mark.skipif(
    json.loads(FILE.read_text(encoding="utf-8"))["of"][0] != lark.__version__,
    reason="the stored tables are of another version of lark, and are computed here",
)


@pytest.mark.slow
@of_this_lark
def test_the_stored_tables_are_those_that_lark_computes_from_the_grammar() -> None:
    assert FILE.read_text(encoding="utf-8") == tables.tables(), STALE


@of_this_lark
def test_a_parser_starts_from_the_stored_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    def computed(*_: object) -> None:
        raise AssertionError(f"the tables are computed; {STALE}")

    monkeypatch.setattr(tables, "_computed", computed)
    assert tables.parser().parse("x").data == "module"


@pytest.mark.slow
@pytest.mark.parametrize("missing", [None, "", '{"of": []}'])
def test_without_tables_that_fit_lark_computes_them(monkeypatch: pytest.MonkeyPatch, missing: str | None) -> None:
    stored, resource = tables.parser(), tables.resource

    def without(folder: str, file: str) -> str:
        if file == "combdiff.json" and missing is None:
            raise tables.CombDiffError("missing")
        return missing if file == "combdiff.json" else resource(folder, file)

    monkeypatch.setattr(tables, "resource", without)
    text = "@space T begin\n type = (N, N) -> C\nend\n(x::T) -> sum((i, j), i < j, x(i, j)' ^ 2)"
    assert tables.parser().parse(text) == stored.parse(text)


if __name__ == "__main__":
    FILE.write_text(tables.tables(), encoding="utf-8")
