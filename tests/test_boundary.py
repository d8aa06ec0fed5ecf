"""What reaches a caller of the library: errors without its frames, and functions that say what they take."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import combdiff as cd

ROOT = Path(__file__).parents[1]
LIBRARY = str(ROOT / "combdiff")
ENERGY = "(A::Sym) -> (x::RV) -> sum((i, j), x(i) * A(i, j) * x(j))"


def frames(call: Callable[[], object]) -> list[str]:
    """The files of the frames that an error has passed, in order."""
    with pytest.raises(cd.CombDiffError) as caught:
        call()
    return [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]


WRONG: dict[str, Callable[[], object]] = {
    "a program": lambda: cd.grad("(x::R) -> y"),
    "a pullback": lambda: cd.pullback("(x::R"),
    "a product": lambda: cd.hvp("(x::R) -> y"),
    "a file": lambda: cd.grad(Path("nothing.cd")),
    "a form": lambda: cd.grad("(x::R) -> x^2").latex(form="nothing"),
    "a backend": lambda: cd.grad("(x::R) -> x^2").compile("nothing"),
    "source": lambda: cd.grad("(x::R) -> x^2").source("nothing"),
    "a plan": lambda: cd.grad(ENERGY).plan(A=(2, 3)),
    "an array": lambda: cd.grad(ENERGY).compile()(np.ones((2, 3)), np.ones(2)),
    "arrays": lambda: cd.grad(ENERGY).compile(hvp=True)(np.eye(2)),
    "a direction": lambda: cd.grad(ENERGY).compile(hvp=True)(np.eye(2), np.ones(2))[-1](np.ones(3)),
    "a problem": lambda: cd.grad(ENERGY).problem(A=np.eye(2)),
    "a point": lambda: cd.grad(ENERGY).problem(A=np.eye(2), x=np.ones(2)).fun(np.ones(3)),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_error_has_one_frame_of_the_library_at_most(name: str) -> None:
    found = frames(WRONG[name])
    assert sum(file.startswith(LIBRARY) for file in found) == 1
    assert found[-1].startswith(LIBRARY)


def test_full_tracebacks_have_all_frames() -> None:
    cd.tracebacks("full")
    try:
        assert sum(file.startswith(LIBRARY) for file in frames(WRONG["a program"])) > 3
    finally:
        cd.tracebacks("short")
    with pytest.raises(cd.CombDiffError, match="tracebacks are 'long'"):
        cd.tracebacks("long")  # type: ignore[arg-type]


def printed(code: str, **environment: str) -> str:
    """What an interpreter prints that runs this file."""
    own = {**os.environ, **environment}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=own, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    return done.stderr


@pytest.mark.slow
def test_the_interpreter_prints_the_message_below_the_callers_frames() -> None:
    code = "import combdiff as cd\ndef helper(t):\n    return cd.grad(t)\nhelper('(x::R) -> y')"
    lines = printed(code).splitlines()
    assert [line.strip() for line in lines if line.startswith("  File")] == [
        'File "<string>", line 4, in <module>',
        'File "<string>", line 3, in helper',
    ]
    assert lines[-4:] == [
        "combdiff.errors.LanguageError: <text>:1:11: unknown name y",
        "  1 | (x::R) -> y",
        "    |           ^",
        "remedy: make it a parameter, `(y::R) -> …`, or define it before",
    ]
    assert "infer.py" in printed(code, COMBDIFF_TRACEBACKS="full")


@pytest.mark.slow
def test_other_errors_and_other_hooks_stay_as_they_are() -> None:
    code = "import combdiff as cd\ntry: cd.grad('(x::R) -> y')\nexcept cd.CombDiffError: pass\n"
    assert printed(f"{code}1 / 0").splitlines()[-1] == "ZeroDivisionError: division by zero"
    own = "import sys; sys.excepthook = lambda *a: print('mine', file=sys.stderr)\n"
    assert printed(f"{own}{code}cd.grad('(x::R) -> y')") == "mine\n"


def test_ipython_prints_the_message_alone() -> None:
    pytest.importorskip("IPython")
    from IPython.testing.globalipapp import get_ipython, start_ipython
    from IPython.utils.capture import capture_output

    shell = start_ipython() or get_ipython()
    with capture_output() as output:
        shell.run_cell("import combdiff as cd\ncd.grad('(x::R) -> y')")
    assert output.stdout.splitlines() == [
        "combdiff.errors.LanguageError: <text>:1:11: unknown name y",
        "  1 | (x::R) -> y",
        "    |           ^",
        "remedy: make it a parameter, `(y::R) -> …`, or define it before",
    ]


# --- functions ------------------------------------------------------------------------------------------------------


def test_a_compiled_function_says_what_it_takes() -> None:
    f = cd.grad(ENERGY).compile(value=True)
    assert f.__name__ == "value_and_gradient"
    assert str(inspect.signature(f)) == "(A, x, *, out=None)"
    assert inspect.getdoc(f).splitlines()[-2:] == ["A: real array (n, n)", "x: real array (n,)"]
    own = cd.grad("(out::R, lambda::R) -> out * lambda").compile()
    assert str(inspect.signature(own)) == "(out, lambda_, *, out_=None)"


def test_every_public_function_has_a_docstring_and_a_signature() -> None:
    for name in cd.__all__:
        member = getattr(cd, name)
        assert inspect.getdoc(member), name
        assert inspect.ismodule(member) or inspect.signature(member) is not None
    assert len(cd.__all__) <= 20
    assert list(inspect.signature(cd.grad).parameters)[:2] == ["text", "wrt"]


@pytest.mark.slow
def test_values_show_themselves_briefly() -> None:
    d = cd.grad(ENERGY)
    assert repr(d) == "<gradient: (A::Sym) -> (x::RV) -> i -> 2 * sum(j, A(i, j) * x(j))>"
    assert d.result == str(d) and d.text == ENERGY
    assert repr(d.check()).startswith("<check: passed\nok  ")
    assert repr(d.plan()).startswith("<plan: step") and "GEMV" in repr(d.plan())
    long = cd.grad("(x::RV) -> " + " * ".join(f"sum(i, sin({n} * x(i)))" for n in range(1, 40)), seconds=2)
    assert len(repr(long).splitlines()) <= 8 and "more line" in repr(long)


def test_a_path_is_read(tmp_path: Path) -> None:
    file = tmp_path / "energy.cd"
    file.write_text(ENERGY, encoding="utf-8")
    assert cd.grad(file).result == cd.grad(ENERGY).result
    file.write_text("(x::R) -> y", encoding="utf-8")
    with pytest.raises(cd.LanguageError) as caught:
        cd.grad(file)
    assert str(caught.value).startswith(f"{file}:1:11: unknown name y")
    with pytest.raises(cd.CombDiffError, match="is a path, not a program"):
        cd.grad("energy.cd")
