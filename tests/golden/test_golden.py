"""Programs and what the command line prints for them: text, LaTeX, matrix form, NumPy code, messages."""

from __future__ import annotations

import pytest

from tests.golden.transcripts import PROGRAMS, WRONG, printed, sections


@pytest.mark.slow
@pytest.mark.parametrize("program", [*PROGRAMS, *WRONG], ids=lambda program: program.stem)
def test_the_command_line_prints_what_is_recorded(program):
    recorded = sections(program.with_suffix(".txt").read_text(encoding="utf-8"))
    assert recorded
    for command, output in recorded:
        assert printed(command, program.parent).rstrip() == output.rstrip(), command


@pytest.mark.parametrize("program", WRONG, ids=lambda program: program.stem)
def test_a_wrong_program_is_told_how_to_be_mended(program):
    ((_, output),) = sections(program.with_suffix(".txt").read_text(encoding="utf-8"))
    assert output.rstrip().endswith("[exit 2]")
    assert "remedy: " in output and "Traceback" not in output
