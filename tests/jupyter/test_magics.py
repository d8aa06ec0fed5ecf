"""Cells of the language, in a shell of IPython."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("IPython")

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import combdiff as cd

QUADRATIC = "(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))"


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    InteractiveShell.clear_instance()
    made = InteractiveShell.instance(history_load_length=0)
    made.history_manager.enabled = False
    made.run_line_magic("load_ext", "combdiff")
    yield made
    made.history_manager.end_session()
    InteractiveShell.clear_instance()


@pytest.mark.slow
def test_a_cell_becomes_a_derivation_and_shows_itself(shell: InteractiveShell) -> None:
    with capture_output() as captured:
        shell.run_cell(f"%%combdiff --name q --form matrix --check\n{QUADRATIC}\n").raise_error()
    formula, report = captured.outputs
    assert str(shell.user_ns["q"]) == str(cd.grad(QUADRATIC))
    assert formula.data["text/latex"] == r"$\displaystyle A \mapsto x \mapsto 2 A x$"
    assert "passed" in report.data["text/html"]


@pytest.mark.slow
def test_options_mean_what_they_mean_in_python(shell: InteractiveShell) -> None:
    text = "(a::R) -> (x::RV) -> begin f = (y::R) -> y^3; sum(i, a * f(x(i))) end"
    with capture_output():
        shell.run_cell(f"%%combdiff --mode hvp\n{text}").raise_error()
        assert str(shell.user_ns["d"]) == str(cd.hvp(text))
        shell.run_cell(f"%%combdiff --keep f --wrt a\n{text}").raise_error()
        assert str(shell.user_ns["d"]) == str(cd.grad(text, keep="f", wrt="a"))


def test_a_line_reads_a_file(shell: InteractiveShell, tmp_path: Path) -> None:
    file = tmp_path / "q.cd"
    file.write_text(QUADRATIC, encoding="utf-8")
    with capture_output():
        shell.run_line_magic("combdiff", f"{file} --name q")
    assert str(shell.user_ns["q"]) == str(cd.grad(QUADRATIC))


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("%%combdiff\n(x::RV) -> sum(i, y(i)^2)", ("cell:1:19: ", "    | " + " " * 18 + "^", "remedy: ")),
        ("%%combdiff --name 1d\n(x::R) -> x", ("'1d' is not a name", "remedy: ")),
        ("%%combdiff other.cd\n(x::R) -> x", ("the cell is already a program", "remedy: ")),
        ("%combdiff", ("there is no program", "remedy: ")),
        ("%combdiff nowhere.cd", ("cannot read nowhere.cd", "remedy: ")),
    ],
)
def test_an_error_is_its_message_alone(shell: InteractiveShell, cell: str, message: tuple[str, ...]) -> None:
    with capture_output() as captured:
        result = shell.run_cell(cell)
    assert isinstance(result.error_in_exec, cd.CombDiffError)
    said = captured.stdout + captured.stderr
    assert "Traceback" not in said and "File" not in said
    assert all(part in said for part in message)
    assert "d" not in shell.user_ns


def test_help_has_an_example_that_runs(shell: InteractiveShell) -> None:
    help_text = shell.find_line_magic("combdiff").__doc__
    lines = help_text.splitlines()
    start = next(n for n, line in enumerate(lines) if line.strip().startswith("%%combdiff --name d"))
    cell = "\n".join(line.strip() for line in lines[start : start + 2])
    with capture_output() as captured:
        shell.run_cell(cell).raise_error()
    assert "2 A x" in captured.outputs[0].data["text/latex"]
    assert "--form" in help_text and "--check" in help_text
