"""The command line: exit status, streams, options, and that no input ends in a traceback."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import combdiff as cd
from combdiff.checking.report import Finding, Report
from combdiff.command.cli import main
from combdiff.command.options import parser
from combdiff.command.terminal import coloured, width
from combdiff.derivation import Derivation
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.language.printing.printer import program_text

ROOT = Path(__file__).parent.parent
HARTREE_FOCK = str(ROOT / "examples" / "hartree_fock.cd")
QUADRATIC = str(ROOT / "examples" / "quadratic.cd")
CUBES = "(x::RV) -> sum(i, x(i)^3)"
SQUARES = "(x::RV) -> sum(i, x(i)^2)"
MANY = 100_000
MODES = ("grad", "pullback", "vjp", "jvp", "hvp", "jacobian", "hessian", "simplified")
COMMANDS = (*MODES, "compile", "check", "explain", "plan")


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a command on a program's text; gives status, standard output, standard error."""

    def command(*arguments, text=SQUARES):
        content = text if isinstance(text, bytes) else text.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        try:
            status = main(arguments)
        except SystemExit as stop:
            status = stop.code
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return command


def shell(command, **more):
    program = f"{sys.executable} -m combdiff"
    done = subprocess.run(
        ["bash", "-c", command.replace("combdiff", program)],
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **more},
        timeout=60,
    )
    return done.stdout.decode("utf-8"), done.stderr.decode("utf-8")


def refused(outcome):
    """The message of a command that failed as it should."""
    status, out, err = outcome
    assert status == 2
    assert out == ""
    assert "Traceback" not in err
    return err


# --- what works -------------------------------------------------------------------------------------------------------


def test_a_program_from_standard_input_is_differentiated(run):
    assert run("grad", "-") == (0, "(x::RV) -> i -> 2 * x(i)\n", "")


@pytest.mark.parametrize(
    "text", [SQUARES.encode("utf-8-sig"), SQUARES.replace(" ", "\t").encode(), b"\r\n" + SQUARES.encode()]
)
def test_byte_order_marks_tabs_and_carriage_returns_are_read(run, text):
    assert run("grad", "-", text=text)[:2] == (0, "(x::RV) -> i -> 2 * x(i)\n")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_kind_of_line_end_separates(run, end):
    text = end.join(["(x::RV) -> begin", "  a = sum(i, x(i)^2)", "  3 * a", "end"])
    assert run("grad", "-", text=text)[0] == 0


def test_emitted_code_runs_alone(run):
    status, out, _ = run("grad", QUADRATIC, "--format", "python")
    names: dict[str, object] = {}
    exec(out, names)
    assert status == 0
    assert names["gradient"](np.array([[2]]), np.array([3])) == [12]


@pytest.mark.parametrize("value", [False, True])
def test_code_with_products_is_that_of_the_python_interface(run, value):
    options = ("--value", "--hvp") if value else ("--hvp",)
    status, out, _ = run("grad", "-", "--format", "python", *options, text=CUBES)
    names: dict[str, object] = {}
    exec(out, names)
    *found, hvp = names["value_gradient_and_hvp" if value else "gradient_and_hvp"](np.array([1.0, 2.0]))
    assert status == 0 and out == cd.grad(CUBES).source(value=value, hvp=True)
    assert np.array_equal(found[-1], [3, 12]) and np.array_equal(hvp(np.ones(2)), [6, 12])
    assert not value or found[0] == 9


@pytest.mark.slow
def test_the_expansion_that_was_asked_for_holds_for_products_too(run):
    out = run("grad", "-", "--format", "python", "--hvp", "--expand", text=CUBES)[1]
    assert out == cd.grad(CUBES, expand=True).source(hvp=True)


def test_a_budget_that_products_spent_is_told(run):
    _, _, alone = run("grad", "-", "--format", "python", "--seconds", "1e-9", text=CUBES)
    _, _, both = run("grad", "-", "--format", "python", "--seconds", "1e-9", "--hvp", text=CUBES)
    assert "--seconds 1e-09" in alone and both.startswith(alone) and both.count("\n") > alone.count("\n")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["grad", "pullback", "hvp"])
def test_the_mode_says_which_derivative_is_planned_explained_and_checked(run, mode):
    expected = run(mode, QUADRATIC)[1]
    assert run("explain", QUADRATIC, "--mode", mode)[1].endswith(f"the result\n{expected}")
    assert run("check", QUADRATIC, "--mode", mode)[1].startswith(expected)
    assert run("plan", QUADRATIC, "--mode", mode)[1] == f"{getattr(cd, mode)(Path(QUADRATIC).read_text()).plan()}\n"


@pytest.mark.slow
def test_the_seed_of_a_check_chooses_its_data(run):
    reports = {run("check", HARTREE_FOCK, "--seed", seed)[1] for seed in ("0", "1")}
    assert len(reports) == 2


def test_the_readme_shows_the_code_that_its_first_command_prints(run):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"```text\n{run('grad', HARTREE_FOCK, '--format', 'python')[1]}```" in readme


@pytest.mark.slow
def test_check_prints_derivation_and_report(run):
    status, out, err = run("check", HARTREE_FOCK)
    assert (status, err) == (0, "")
    assert "4 * sum(" in out
    assert "ok      finite differences" in out and "ok      emitted NumPy code" in out


def test_check_fails_with_status_1(run, monkeypatch):
    monkeypatch.setattr(Derivation, "check", lambda self, seed=0: Report((Finding("finite differences", 0.5),)))
    status, out, err = run("check", HARTREE_FOCK)
    assert (status, err) == (1, "")
    assert "4 * sum(" in out
    assert "FAILED  finite differences: relative difference 5.0e-01" in out


def test_explain_shows_every_stage_in_order(run):
    status, out, _ = run("explain", HARTREE_FOCK)
    stages = ["the program", "\nthe combinators", "\nraw pullback", "\ncontract", "like terms", "\nthe result\n"]
    places = [out.index(stage) for stage in stages]
    assert status == 0
    assert places == sorted(places)
    assert "conj" in out and "delta(" in out


def test_plan_prints_costs(run):
    status, out, _ = run("plan", QUADRATIC)
    assert status == 0
    assert "FLOPs" in out


@pytest.mark.slow
def test_names_are_given_to_keep_and_wrt(run):
    text = "(A::RM) -> (x::RV) -> begin f = (y::R) -> y^3; sum((i, j), A(i, j) * f(x(i))) end"
    assert "grad(f)" in run("grad", "-", "--keep", "f", text=text)[1]
    assert run("grad", "-", "--wrt", "A", text=text)[1].rstrip().endswith("x(i)^3")


@pytest.mark.slow
def test_a_reader_that_leaves_early_is_no_error():
    out, err = shell(f"combdiff explain {HARTREE_FOCK} | head -0; echo ${{PIPESTATUS[0]}}")
    assert (out, err) == ("0\n", "")


@pytest.mark.slow
def test_a_full_disk_is_told():
    out, err = shell(f"combdiff grad {QUADRATIC} > /dev/full; echo $?")
    assert out == "2\n"
    assert err.startswith("cannot write the result") and "Traceback" not in err


@pytest.mark.slow
def test_greek_letters_are_printed_whatever_the_locale():
    out, _ = shell('echo "(ψ::RV) -> sum(μ, ψ(μ)^2)" | combdiff grad -', PYTHONIOENCODING="ascii", LC_ALL="C")
    assert out == "(ψ::RV) -> μ -> 2 * ψ(μ)\n"


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, message",
    [
        (b"", "the text is empty"),
        (b"(x::RV) -> \xff", "<stdin> is not UTF-8 text (byte 12)"),
        (SQUARES.encode("utf-16"), "is not UTF-8 text"),
        (b"(x::RV) -> \0", "control character U+0000"),
        (b"x" * 1_000_001, "larger than the limit of 1000000 bytes"),
        (b"\xce\xb1" * 600_000, "larger than the limit of 1000000 bytes"),
    ],
)
def test_what_is_no_program_text_is_refused(run, text, message):
    err = refused(run("grad", "-", text=text))
    assert message in err
    assert "remedy: " in err


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "(" * MANY,
        "(x::R) -> " + "(" * MANY + "x" + ")" * MANY,
        "(x::RV) -> " + "x[" * MANY + "0" + "]" * MANY,
        "(x::R) -> " + "begin " * 60_000 + "x" + " end" * 60_000,
        "(x::R) -> " + "exp(" * MANY + "x" + ")" * MANY,
        "(x::R) -> " + "-" * MANY + "x",
        "(x::C) -> x" + "'" * MANY,
        "(x::R) -> x" + "^x" * 20_000,
        "(x::R) -> " + "i -> " * 20_000 + "x",
        "(x::R) -> x" + "(x)" * 20_000,
        "(x::" + "(N) -> " * 20_000 + "R) -> x",
        "(x::RV) -> " + "sum(i, " * MANY + "x(i)" + ")" * MANY,
        "@space T begin type = " + "(" * MANY + " end\nx",
    ],
    ids=lambda text: text[10:26],
)
def test_nesting_of_any_depth_is_refused(run, text):
    assert "nested more than 200 levels deep" in refused(run("grad", "-", text=text))


@pytest.mark.slow
@pytest.mark.parametrize("sign, result", [("+", "20001"), ("*", "20001 * x^20000")])
def test_a_chain_of_any_length_is_no_nesting(run, sign, result):
    assert run("grad", "-", text="(x::R) -> x" + f"{sign}x" * 20_000)[1] == f"(x::R) -> {result}\n"


def test_a_stray_sign_in_a_very_long_line_is_in_sight(run):
    err = refused(run("grad", "-", text="(x::R) -> x +" + " " * MANY + "$"))
    assert "<stdin>:1:100014: '$'" in err
    assert max(map(len, err.splitlines())) < 120


@pytest.mark.slow
def test_a_thousand_definitions_are_read():
    lines = [f"  a{n} = exp({f'a{n - 1}' if n else 'x'})" for n in range(1000)]
    program = infer(parse("\n".join(["(x::R) -> begin", *lines, "  a999", "end"])))
    assert len(program.body.bindings) == 1000


@pytest.mark.parametrize(
    "file, reason",
    [
        ("missing.cd", "No such file or directory"),
        (str(ROOT), "Is a directory"),
        ("a" * 5000, "File name too long"),
        ("nul\0.cd", "this is not the path of a file"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(run, file, reason):
    err = refused(run("grad", file))
    assert file in err and reason in err


@pytest.mark.slow
def test_a_file_name_that_is_no_text_is_still_told():
    out, err = shell("combdiff grad $'\\xff\\xfe'; echo $?")
    assert out == "2\n"
    assert err.startswith("cannot read ") and "No such file" in err


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((), "required: COMMAND"),
        (("grad",), "FILE.cd"),
        (("integrate", "-"), "invalid choice"),
        (("grad", "-", "--format", "pdf"), "invalid choice"),
        (("grad", "-", "--backend", "abacus"), "invalid choice"),
        (("grad", "-", "--seconds", "soon"), "invalid float"),
        (("grad", "-", "--seconds", "nan"), "above 0"),
        (("grad", "-", "--seconds", "-1"), "above 0"),
        (("grad", "-", "--nodes", "many"), "invalid float"),
        (("grad", "-", "--nodes", "0"), "above 0"),
        (("grad", "-", "--keep", "R"), "no definition R"),
        (("grad", "-", "--wrt", "y"), "the parameters are x"),
        (("grad", "-", "--value"), "--value is about code"),
        (("grad", "-", "--hvp"), "--hvp is about code"),
        (("grad", "-", "--hvp", "--format", "latex"), "--format python"),
        (("grad", "-", "--backend", "jax"), "--backend is about code"),
        (("hvp", "-", "--hvp"), "unrecognized arguments: --hvp"),
        (("check", "-", "--value"), "unrecognized arguments: --value"),
        (("plan", "-", "--mode", "primal"), "invalid choice"),
        (("grad", "-", "--format", "python", "--form", "matrix"), "no matrix form"),
        (("check", "-", "--seed", "-1"), "non-negative integer"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_options_that_make_no_sense_are_refused(run, arguments, message):
    assert message in refused(run(*arguments))


def test_an_integer_is_not_differentiated(run):
    err = refused(run("grad", "-", "--wrt", "n", text="(n::N, x::RV) -> x(n)^2"))
    assert "nothing can be differentiated with respect to an integer" in err


def test_help_lists_the_commands(run):
    status, out, _ = run("--help")
    assert status == 0
    assert all(word in out for word in COMMANDS)


@pytest.mark.sampled
@pytest.mark.parametrize("command", COMMANDS)
def test_help_tells_what_every_option_is_for_with_an_example_that_runs(run, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, _ = run(command, "--help")
    commands = next(a.choices for a in parser()._actions if a.dest == "command")
    assert status == 0 and all(action.help for action in commands[command]._actions)
    example = shlex.split(out.split("Example: combdiff ")[1])
    assert run(*[str(ROOT / "examples" / "quadratic.cd") if a.endswith(".cd") else a for a in example])[0] == 0


# --- several programs, files, the terminal ----------------------------------------------------------------------------


def test_the_version_is_printed(run):
    assert run("--version") == (0, f"combdiff {cd.__version__}\n", "")


def test_a_program_on_the_command_line(run):
    assert run("grad", "-e", SQUARES) == (0, f"{cd.grad(SQUARES)}\n", "")
    assert "<command line>:1:11" in refused(run("grad", "-e", "(x::R) -> y"))
    assert "no program is given" in refused(run("grad"))


@pytest.mark.slow
def test_several_programs_are_told_apart(run):
    status, out, _ = run("grad", QUADRATIC, "-e", SQUARES)
    assert status == 0
    assert out.split("\n\n") == [QUADRATIC, str(cd.grad(Path(QUADRATIC))), "<command line>", f"{cd.grad(SQUARES)}\n"]
    status, out, _ = run("check", "-e", SQUARES, "-e", CUBES)
    assert status == 0 and out.count("finite differences") == 2


def test_a_result_is_written_to_a_file(run, tmp_path):
    file = tmp_path / "result.tex"
    assert run("grad", "-e", SQUARES, "--format", "latex", "-o", str(file)) == (0, "", "")
    assert file.read_text(encoding="utf-8") == f"{cd.grad(SQUARES).latex()}\n"
    assert "cannot write" in refused(run("grad", "-e", SQUARES, "-o", str(tmp_path / "none" / "x")))


@pytest.mark.slow
def test_one_module_for_several_programs(run, tmp_path):
    file, other = tmp_path / "gradients.py", tmp_path / "cubes-of-x.cd"
    other.write_text(CUBES, encoding="utf-8")
    status, out, _ = run("compile", QUADRATIC, str(other), "-e", SQUARES, "-o", str(file), "--value", "--hvp")
    assert (status, out) == (0, "")
    scope = {}
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), scope)
    x = np.array([1.0, 2.0])
    value, gradient, hvp = scope["cubes_of_x_value_gradient_and_hvp"](x)
    assert value == 9 and gradient.tolist() == [3, 12] and hvp(x).tolist() == [6, 24]
    assert scope["program3_value_gradient_and_hvp"](x)[0] == 5
    assert "quadratic_value_gradient_and_hvp" in scope
    assert file.read_text(encoding="utf-8").count("import numpy as np") == 1


@pytest.mark.parametrize("backend", ("numpy", *(pytest.param(b, marks=pytest.mark.slow) for b in ("cupy", "jax"))))
def test_functions_of_one_name_are_told_apart_in_a_module(run, backend):
    fused = "(x::RV, b::RV) -> sum(i, {}(x(i)^2 * tanh(b(i)) + sin(x(i)) * cos(x(i))))"
    solved = "(a::R) -> (b::R) -> root((y::R) -> y^{} + a * y - b)"
    programs = [fused.format("exp"), fused.format("cos"), solved.format(3), solved.format(5)]
    arguments = [text for program in programs for text in ("-e", program)]
    status, out, _ = run("compile", *arguments, "--backend", backend)
    assert status == 0
    compile(out, "<module>", "exec")
    defined = [line.split("(")[0].split(" = ")[0] for line in out.splitlines() if line[:1].isalpha()]
    assert len(defined) == len(set(defined))
    if backend == "numpy":
        scope = {}
        exec(out, scope)
        assert np.isclose(scope["program3_gradient"](1.0, 2.0), 1 / 4) and np.isclose(
            scope["program4_gradient"](1.0, 2.0), 1 / 6
        )


@pytest.mark.slow
def test_an_example_is_written_and_derived(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, _ = run("new", "hartree-fock")
    assert status == 0 and "combdiff grad hartree_fock.cd" in out
    assert Path("hartree_fock.cd").read_text(encoding="utf-8") == Path(HARTREE_FOCK).read_text(encoding="utf-8")
    assert run("grad", "hartree_fock.cd")[0] == 0
    assert "exists already" in refused(run("new", "hartree-fock"))
    assert "did you mean hartree-fock?" in refused(run("new", "hartree-fok"))
    status, out, _ = run("new")
    files = [f.relative_to(ROOT / "examples").with_suffix("") for f in (ROOT / "examples").rglob("*.cd")]
    assert status == 0 and set(out.split()) == {f.as_posix().replace("_", "-") for f in files}
    for name in out.split():
        assert run("new", name, "-o", "-")[1].strip()


@pytest.mark.slow
def test_an_example_of_a_folder_is_written_to_a_file_beside(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, _ = run("new", "xc/unpolarised/pbe-x")
    assert status == 0 and "combdiff grad pbe_x.cd" in out
    assert run("grad", "pbe_x.cd")[0] == 0


@pytest.mark.parametrize(
    "arguments, meant",
    [
        (("grad", "-", "--vlaue"), "--value"),
        (("grda", "-"), "grad"),
        (("grad", "-", "--format", "pyton"), "python"),
        (("plan", "-", "--shap", "x=3", "--memry", "1"), "--memory"),
    ],
)
def test_a_wrong_option_is_told_in_two_lines(run, arguments, meant):
    first, second = refused(run(*arguments)).splitlines()
    assert first.startswith("combdiff") and second == f"remedy: did you mean {meant}?"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_are_for_terminals(run, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\033" not in refused(run("grad", "-e", "(x::R) -> y"))
    text = "\n".join(["<text>:1:11: unknown", "  1 | (x::R) -> y", "    |           ^", "remedy: none"])
    assert coloured(text, Terminal()).count("\033[0m") == 2
    monkeypatch.setenv("NO_COLOR", "1")
    assert coloured(text, Terminal()) == text == coloured(text, io.StringIO())


def test_a_result_is_as_wide_as_the_terminal(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert (width(None), width(Terminal()), width(io.StringIO())) == (100, 60, 100)
    long = "(x::RV, y::RV) -> sum(i, sin(x(i) * y(i)) * exp(x(i)) * tanh(y(i)) * x(i)^3)"
    d = cd.grad(long)
    assert max(map(len, program_text(d.term, 60).splitlines())) <= 60 < max(map(len, str(d).splitlines()))


@pytest.mark.parametrize("shell", ("bash", "zsh", "tcsh"))
def test_a_shell_completes_commands(run, shell):
    pytest.importorskip("shtab")
    status, out, _ = run("completion", shell)
    assert status == 0 and "--backend" in out and "pullback" in out


def test_what_was_derived_before_is_not_derived_again(run, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = run("grad", "-e", CUBES)
    (file,) = (tmp_path / "combdiff").iterdir()
    monkeypatch.setattr("combdiff.api.grad", None)
    assert run("grad", "-e", CUBES) == first
    monkeypatch.undo()
    file.write_bytes(b"nothing")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert run("grad", "-e", CUBES) == first
    assert run("grad", "-e", CUBES, "--expand")[0] == 0 and len(list((tmp_path / "combdiff").iterdir())) == 2
    assert run("grad", "-e", SQUARES, "--no-cache")[0] == 0 and len(list((tmp_path / "combdiff").iterdir())) == 2
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    assert run("grad", "-e", CUBES) == first


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_prints_a_formula_and_code_that_run(run, mode):
    status, formula, errors = run(mode, "-", "--no-cache", text=CUBES)
    assert (
        (status, errors) == (0, "")
        and formula.startswith("(x::RV")
        and getattr(cd, mode)(CUBES).result == formula.rstrip()
    )
    status, code, errors = run(mode, "-", "--no-cache", "--format", "python", text=CUBES)
    assert (status, errors) == (0, "") and compile(code, "<code>", "exec")
    for command in ("check", "explain", "plan"):
        assert run(command, "-", "--no-cache", "--mode", mode, text=CUBES)[0] == 0


def test_symmetric_is_about_gradients_and_wrt_about_derivatives(run):
    program = "(A::RM) -> (x::Sym) -> sum((i, j), A(i, j) * x(i, j))"
    assert (
        run("grad", "-", "--no-cache", "--symmetric", text=program)[1]
        .rstrip()
        .endswith("1/2 * A(i, j) + 1/2 * A(j, i)")
    )
    status, _, errors = run("check", "-", "--no-cache", "--symmetric", "--mode", "jvp", text=program)
    assert status == 2 and "about gradients" in errors
    status, _, errors = run("simplified", "-", "--no-cache", "--wrt", "x", text=program)
    assert status == 2 and "takes no derivative" in errors
