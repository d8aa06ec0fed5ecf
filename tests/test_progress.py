"""Long derivations say what they do, and can be interrupted; afterwards everything works as before."""

from __future__ import annotations

import io
import subprocess
import sys
import time
from pathlib import Path

import pytest

import combdiff as cd
from combdiff.command import cli
from combdiff.progress import ProgressLine, following, in_notebook, on_terminal
from combdiff.simplify.contraction.egraph import session

ROOT = Path(__file__).parent.parent
QUADRATIC = "(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))"
LONG = "(T::RM) -> (x::RV) -> sum((i, j, k, l), (T(i, j) + x(i) * x(j) + T(k, l))^4 * (x(k) + T(l, k) * x(l))^4)"


class Stopped(Exception):
    """Raised by a follower."""


def test_every_stage_is_announced() -> None:
    told: list[tuple[str, float]] = []
    d = cd.grad(QUADRATIC, progress=lambda stage, seconds: told.append((stage, seconds)))
    stages = list(dict.fromkeys(stage for stage, _ in told))
    assert stages[0] == "differentiate"
    assert [s for s in stages if "checked" not in s][1:] == list(
        dict.fromkeys(step.name for step in d.steps if step.name not in ("program", "raw pullback"))
    )
    assert all(0 <= seconds < 60 for _, seconds in told)


@pytest.mark.sampled
@pytest.mark.parametrize("at", range(0, 60, 7))
def test_a_derivation_that_is_stopped_anywhere_leaves_nothing_behind(at: int) -> None:
    calls = iter(range(10_000))

    def stop(stage: str, seconds: float) -> None:
        if next(calls) == at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cd.grad(LONG, expand=True, progress=stop)
    assert str(cd.grad(QUADRATIC)) == "(A::Her) -> (x::CV) -> i -> 2 * sum(j, A(i, j) * x(j))"


def test_an_interrupted_e_graph_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    families = ("terms", "index")
    with session(families) as before:
        pass
    with session(families) as again:
        assert again is before

    def interrupted(text: str, name: str | None, egraph: object) -> list[object]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt), session(families) as used:
        patch.setattr("combdiff.simplify.contraction.egraph._outputs", interrupted)
        assert used is before
        used.run("", ())
    assert before.lost
    with session(families) as later:
        assert later is not before


IGNORING = ("sh", "-c", 'trap \'\' INT; exec "$0" "$@"')
"""Runs a command as one that a script starts with &."""


@pytest.mark.slow
@pytest.mark.parametrize("start", [(), IGNORING], ids=["as usual", "where signals are ignored"])
def test_a_signal_stops_a_long_derivation(start: tuple[str, ...]) -> None:
    code = (
        "import os, signal, threading, combdiff as cd\n"
        # where interrupts are ignored, Python ignores them, too
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        # NumPy, interrupted while it is imported, says something else
        f"cd.grad({QUADRATIC!r})\n"
        "threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "try:\n"
        f"    cd.grad({LONG!r}, expand=True)\n"
        "except KeyboardInterrupt:\n"
        f"    print('stopped', cd.grad({QUADRATIC!r}))\n"
    )
    command = [*start, sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("stopped (A::Her)"), done.stderr


def test_a_line_is_shown_late_and_goes_away() -> None:
    written: list[str] = []
    with ProgressLine(written.append, patience=3600) as line:
        line("contract", 1.0)
    assert written == []
    with pytest.raises(Stopped), ProgressLine(written.append, patience=0) as line:
        line("contract", 1.6)
        line("contract", 1.7)
        raise Stopped
    assert written == ["combdiff: contract, 2 s", ""]


def test_a_terminal_line_is_overwritten() -> None:
    stream = io.StringIO()
    write = on_terminal(stream)
    write("combdiff: contract, 2 s")
    write("")
    assert stream.getvalue() == "\r\x1b[Kcombdiff: contract, 2 s\r\x1b[K"


class Terminal(io.StringIO):
    """A stream that a person reads."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "shown"), [(Terminal, True), (io.StringIO, False)])
def test_the_command_line_shows_progress_on_terminals_only(
    stream: type[io.StringIO], shown: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("combdiff.progress.PATIENCE", 0.0)
    monkeypatch.setattr(ProgressLine.__init__, "__defaults__", (0.0,))
    errors = stream()
    monkeypatch.setattr(sys, "stderr", errors)
    assert cli.main(["grad", "--no-cache", str(ROOT / "examples" / "quadratic.cd")]) == 0
    assert ("combdiff: " in errors.getvalue()) is shown
    assert errors.getvalue().endswith("\r\x1b[K") is shown


def test_nobody_follows_outside_of_notebooks() -> None:
    assert not in_notebook()
    with following(None) as nobody:
        assert nobody is None


def test_a_kernel_shows_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("IPython")
    shown: list[str] = []

    class Handle:
        def update(self, bundle: dict[str, str], raw: bool) -> None:
            shown.append(bundle["text/plain"])

    def display(bundle: dict[str, str], raw: bool, display_id: bool) -> Handle:
        shown.append(bundle["text/plain"])
        return Handle()

    import IPython.display

    monkeypatch.setattr(IPython.display, "display", display)
    monkeypatch.setattr("combdiff.progress.in_notebook", lambda: True)
    monkeypatch.setattr(ProgressLine.__init__, "__defaults__", (0.0,))
    start = time.perf_counter()
    cd.grad(QUADRATIC)
    assert shown[0] == "combdiff: differentiate, 0 s" and shown[-1] == "", start


def test_what_cannot_be_called_follows_no_derivation() -> None:
    with pytest.raises(cd.CombDiffError, match="cannot be called"):
        cd.grad("(x::R) -> x^2", progress=3)  # type: ignore[arg-type]  # on purpose
