"""What the documents show is what happens: sessions, programs with their results, links, and names of code.

A `julia` block is a program. A block named by one of the `MODES`, or `message`, right below it is what combdiff
answers, declarations left out. `python` blocks of a document share their names.
"""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

import combdiff as cd
from combdiff.terms.functions import SCALAR_FUNCTIONS
from tests.matrix_calculus_org import missing
from tests.matrix_cookbook import BOOK, Row, rows

ROOT = Path(__file__).parent.parent
DOCUMENTS = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[([^\]]+)\]\((?!https?://)([^)#]*)(#[^)]*)?\)")
DECLARATION = re.compile(r"^@\w+ \w+ begin(?:.* end\n|\n(?: .*\n)*end\n)", re.MULTILINE)
MODES: dict[str, Callable[..., cd.Derivation]] = {
    "gradient": cd.grad,
    "pullback": cd.pullback,
    "hvp": cd.hvp,
    "jvp": cd.jvp,
    "jacobian": cd.jacobian,
    "hessian": cd.hessian,
    "symmetric": partial(cd.grad, symmetric=True),
}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def programs() -> Iterator[tuple[Path, str, str, str]]:
    """Each program with what stands below it: (document, program, kind of answer or nothing, answer)."""
    for path in DOCUMENTS:
        blocks = FENCE.findall(text_of(path))
        for (language, program), (kind, answer) in zip(blocks, [*blocks, ("", "")][1:], strict=True):
            if language == "julia":
                shown = kind in MODES or kind == "message"
                yield path, program, kind if shown else "", answer if shown else ""


SHOWN = list(programs())


@pytest.mark.slow
@pytest.mark.whole
@pytest.mark.parametrize(
    ("path", "program", "kind", "answer"), SHOWN, ids=[f"{name_of(p)}-{n}" for n, (p, *_) in enumerate(SHOWN, 1)]
)
def test_a_program_has_the_answer_that_is_shown(path: Path, program: str, kind: str, answer: str) -> None:
    if kind == "message":
        with pytest.raises(cd.CombDiffError) as error:
            cd.grad(program)
        assert str(error.value) == answer.rstrip("\n")
        return
    derivation = MODES.get(kind, cd.grad)(program)
    if kind:
        assert DECLARATION.sub("", f"{derivation}\n") == answer
    try:
        assert derivation.check()
    except cd.CombDiffError as error:
        # no finite list of numbers is such a function, or a map of functions
        assert "real line" in str(error) or "map of functions" in str(error)


MATRIX_ROWS = rows()


def test_each_row_of_matrix_calculus_has_a_formula_to_compare_with() -> None:
    assert [row.name for row in MATRIX_ROWS] == list(dict.fromkeys(row.name for row in MATRIX_ROWS))
    assert {row.name for row in MATRIX_ROWS} == set(BOOK)


@pytest.mark.slow
@pytest.mark.whole
@pytest.mark.parametrize("row", MATRIX_ROWS, ids=lambda row: row.name)
def test_a_row_of_matrix_calculus_is_what_is_derived(row: Row) -> None:
    derivation = row.derivation
    assert row.form == row.ours
    assert derivation.check()
    code = derivation.compile()
    for n in (2, 3, 5):
        arrays = row.arrays(n)
        np.testing.assert_allclose(code(*arrays.values()), row.of_the_book(arrays), rtol=1e-9, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_the_python_of_a_document_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block that shows a session (`>>>`) must print what it shows; others must run."""
    monkeypatch.chdir(ROOT)
    namespace: dict[str, object] = {"__name__": path.stem}
    report: list[str] = []
    for number, (language, block) in enumerate(FENCE.findall(text_of(path)), 1):
        name = f"{name_of(path)}, block {number}"
        if language == "python" and ">>>" in block:
            session = doctest.DocTestParser().get_doctest(block, namespace, name, None, None)
            doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(session, out=report.append, clear_globs=False)
            namespace = session.globs
        elif language == "python":
            exec(compile(block, name, "exec"), namespace)
    assert report == []


@pytest.mark.parametrize("path", [ROOT / "README.md", ROOT / "docs" / "language.md"], ids=name_of)
@pytest.mark.parametrize("function", SCALAR_FUNCTIONS)
def test_every_function_of_numbers_is_listed(function: str, path: Path) -> None:
    (listed,) = re.findall(r"`(exp log [a-z0-9 ]*)`", text_of(path))
    assert function in listed.split()


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    lost = []
    for _, target, anchor in LINK.findall(text_of(path)):
        there = (path.parent / target).resolve() if target else path
        if not there.exists() or (anchor and anchor not in anchors(there)):
            lost.append(target + anchor)
    assert lost == []


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings, as they are made where Markdown is shown."""
    headings = re.findall(r"^#+ (.*)$", text_of(path), re.MULTILINE)
    return {"#" + re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_a_name_of_code_is_defined_where_its_link_leads(path: Path) -> None:
    unknown = []
    for label, target, _ in LINK.findall(text_of(path)):
        name = label.strip("`")
        of_code = label.startswith("`") and name.isidentifier() and target.endswith(".py")
        if of_code and name not in defined((path.parent / target).resolve()):
            unknown.append(f"{name} in {target}")
    assert unknown == []


@cache
def defined(path: Path) -> set[str]:
    """Functions, classes and constants of a module."""
    names = set()
    for node in ast.parse(text_of(path)).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets=targets):
                names |= {t.id for t in targets if isinstance(t, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return names


def test_documents_show_programs_answers_and_code() -> None:
    kinds = {kind for _, _, kind, _ in SHOWN}
    assert {"gradient", "pullback", "message"} <= kinds
    named = [label for path in DOCUMENTS for label, target, _ in LINK.findall(text_of(path)) if target.endswith(".py")]
    assert len(named) > 40


def test_the_picture_shows_what_is_printed() -> None:
    pytest.importorskip("matplotlib")
    from html import unescape
    from runpy import run_path

    picture = run_path(str(ROOT / "docs" / "picture.py"))
    shown = unescape((ROOT / "docs" / "hartree_fock.svg").read_text(encoding="utf-8"))
    assert " ; ".join(picture["equations"]()) in shown


def test_the_page_of_matrix_calculus_counts_its_rows() -> None:
    page = (ROOT / "docs" / "matrix_calculus.md").read_text(encoding="utf-8")
    longer, comparison = (page.partition(f"## {title}\n")[2] for title in ("Where our form is longer", "Comparison"))
    formulas = [row for row in rows() if "->" not in row.ours]
    excepted = re.findall(r"^\| (\d+) \|", longer.partition("\n## ")[0], re.MULTILINE)
    assert {*excepted} <= {row.name for row in formulas}
    assert f"of {len(formulas)} |" in comparison
    assert f"| combdiff | {len(formulas)}; {len(formulas) - len(excepted)} of them" in comparison
    assert f"| {sum(not missing(row) for row in formulas)} can be typed" in comparison
