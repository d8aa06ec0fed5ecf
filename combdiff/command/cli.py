"""The command line: `combdiff grad FILE.cd`, and the commands pullback, hvp, compile, check, explain, plan, new, ….

Exit status 0; 1 when a check fails; 2, with the message on standard error, for bad input.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from combdiff.api import MODES
from combdiff.command.options import parser
from combdiff.command.terminal import coloured, is_terminal, width
from combdiff.errors import CombDiffError
from combdiff.files import read_program
from combdiff.language.parsing.session import taken_out
from combdiff.progress import ProgressLine, on_terminal
from combdiff.records import dataclass
from combdiff.run.given import option_name

if TYPE_CHECKING:
    from combdiff.derivation import Derivation


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    for stream in (sys.stdout, sys.stderr):
        # formulas have Greek letters, whatever the locale says
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        options = parser().parse_args(arguments)
        status = _COMMANDS[options.command](options)
        print(end="", flush=True)
    except CombDiffError as error:
        print(coloured(str(error), sys.stderr), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except OSError as problem:
        # what is left in the buffer would only raise again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(problem, BrokenPipeError):
            return 0
        print(f"cannot write the result: {problem.strerror}", file=sys.stderr)
        return 2
    return status


# --- programs -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Program:
    """A text, what it is called in messages, and the file it is from, if it is from one."""

    text: str
    name: str
    file: str = ""

    @property
    def stem(self) -> str:
        """What functions made of it are called after."""
        return "".join(c if c.isalnum() else "_" for c in Path(self.file).stem)


def _programs(options: argparse.Namespace) -> list[Program]:
    """The programs that are given, in files and on the command line."""
    found = []
    for file in options.files:
        text, name = read_program(file)
        found.append(Program(text, name, "" if file == "-" else file))
    found += [Program(text, "<command line>") for text in options.programs]
    if not found:
        raise CombDiffError("no program is given", remedy="give FILE.cd, - for standard input, or -e 'PROGRAM'")
    return found


def _derived(program: Program, options: argparse.Namespace, mode: str) -> Derivation:
    given: dict[str, Any] = {name: getattr(options, name) for name in ("wrt", "keep", "expand", "seconds", "nodes")} | {
        "name": program.name
    }
    if getattr(options, "symmetric", False):
        if mode != "grad":
            raise CombDiffError("--symmetric is about gradients", remedy="leave it out")
        given["symmetric"] = True

    def derive() -> Derivation:
        line = ProgressLine(on_terminal(sys.stderr)) if is_terminal(sys.stderr) else None
        with line or nullcontext():
            return MODES[mode](program.text, **given, progress=line)

    if options.no_cache:
        d = derive()
    else:
        from combdiff.command.cache import remembered

        d = remembered((mode, program.text, sorted(given.items())), derive)
    for remark in taken_out(program.text)[1]:
        print(f"{program.name}: {remark}", file=sys.stderr)
    _tell_spent(d, program, options)
    return d


def _tell_spent(d: Derivation, program: Program, options: argparse.Namespace) -> None:
    """What a spent budget left undone, on standard error."""
    for step in d.steps:
        if step.spent:
            limits = f"--seconds {options.seconds:g}, --nodes {options.nodes:g}"
            print(f"{program.name}: {step.name}: {step.note} ({limits})", file=sys.stderr)


# --- results --------------------------------------------------------------------------------------------------------


def _write(options: argparse.Namespace, text: str) -> None:
    """The result to where it is asked for."""
    if options.output in ("", "-"):
        print(text if options.output else coloured(text, sys.stdout))
        return
    try:
        Path(options.output).write_text(f"{text.rstrip()}\n", encoding="utf-8")
    except OSError as problem:
        raise CombDiffError(
            f"cannot write {options.output}: {problem.strerror}", remedy="give the path of a file"
        ) from None


def _each(options: argparse.Namespace, shown: Callable[[Program], str]) -> str:
    """What is shown of each program, under its name where there are several."""
    programs = _programs(options)
    if len(programs) == 1:
        return shown(programs[0])
    return "\n\n".join(f"{program.name}\n\n{shown(program)}" for program in programs)


def _columns(options: argparse.Namespace) -> int:
    return width(None if options.output else sys.stdout)


def _given(d: Derivation, options: argparse.Namespace, **chosen: object) -> dict[str, Any]:
    """Options for code, and shapes by the names of arrays, which may be those of options."""
    from combdiff.arrays.lower.argument_names import names_of_program

    names = names_of_program(d.term)
    for name, _ in options.shape:
        if name not in names:
            known = ", ".join(dict.fromkeys(names.values()))
            raise CombDiffError(f"there is no array called {name}", remedy=f"the arguments are {known}")
    return {option_name(option, names): value for option, value in chosen.items()} | dict(options.shape)


def _derivative(options: argparse.Namespace) -> int:
    hvp = options.command == "grad" and options.hvp
    for name, asked in (
        ("--backend", options.backend),
        ("--value", options.value),
        ("--hvp", hvp),
        ("--pack", options.pack),
        ("--memory", options.memory),
        ("--shape", options.shape),
    ):
        if asked and options.format != "python":
            raise CombDiffError(f"{name} is about code", remedy="add --format python")
    if options.form == "matrix" and options.format == "python":
        raise CombDiffError("code has no matrix form", remedy="leave --form out, or ask for --format text or latex")
    if options.style == "paper" and options.format not in ("latex", "mathml"):
        raise CombDiffError("the style of a paper is for LaTeX", remedy="add --format latex")
    if options.format == "python":
        _write(options, _code(options, options.command, hvp).rstrip())
    else:
        _write(options, _each(options, lambda program: _formula(program, options)))
    return 0


def _formula(program: Program, options: argparse.Namespace) -> str:
    d = _derived(program, options, options.command)
    if options.format == "unicode":
        return d.unicode_text()
    if options.format == "mathml":
        return d.mathml(form=options.form, style=options.style)
    if options.format == "latex":
        return d.latex(form=options.form, style=options.style)
    if options.form == "matrix":
        return d.matrix_text()
    from combdiff.language.printing.printer import program_text

    return program_text(d.term, _columns(options))


def _compile(options: argparse.Namespace) -> int:
    hvp = options.hvp and options.mode == "grad"
    if options.hvp and not hvp:
        raise CombDiffError("--hvp needs a gradient", remedy="leave --mode out")
    _write(options, _code(options, options.mode, hvp).rstrip())
    return 0


def _code(options: argparse.Namespace, mode: str, hvp: bool) -> str:
    """One module for all programs."""
    from combdiff.command.joining import joined_source

    programs, modules = _programs(options), []
    for n, program in enumerate(programs):
        d = _derived(program, options, mode)
        named = len(programs) > 1 or options.command == "compile"
        name = d.function_name(options.value, hvp)
        if named:
            name = f"{program.stem or f'program{n + 1}'}_{name}"
        chosen = {"value": options.value, "hvp": hvp, "pack": options.pack, "memory": options.memory, "name": name}
        modules.append(d.source(options.backend or "numpy", **_given(d, options, **chosen)))
        if hvp:
            _tell_spent(d.products, program, options)
    return joined_source(modules) if len(modules) > 1 else modules[0]


def _check(options: argparse.Namespace) -> int:
    reports = []

    def shown(program: Program) -> str:
        d = _derived(program, options, options.mode)
        reports.append(d.check(options.seed))
        return f"{d}\n\n{reports[-1]}"

    _write(options, _each(options, shown))
    return 0 if all(reports) else 1


def _explain(options: argparse.Namespace) -> int:
    from combdiff.explanation import explanation

    def shown(program: Program) -> str:
        return explanation(_derived(program, options, options.mode), options.times)

    _write(options, _each(options, shown))
    return 0


def _plan(options: argparse.Namespace) -> int:
    def shown(program: Program) -> str:
        d = _derived(program, options, options.mode)
        return str(d.plan(**_given(d, options, memory=options.memory)))

    _write(options, _each(options, shown))
    return 0


def _new(options: argparse.Namespace) -> int:
    from combdiff.command.examples import example, file_of, names

    if not options.name:
        _write(options, "\n".join(names()))
        return 0
    text, output = example(options.name), Path(options.output or file_of(options.name))
    if options.output == "-":
        print(text.rstrip())
        return 0
    if output.exists():
        raise CombDiffError(f"{output} exists already", remedy="give another file: -o FILE.cd")
    options.output = str(output)
    _write(options, text)
    print(f"{output} is written; its gradient: combdiff grad {output}")
    return 0


def _completion(options: argparse.Namespace) -> int:
    from combdiff.optional import optional

    shtab = optional("shtab", "completion", "a script for completion")
    print(shtab.complete(parser(), options.shell))
    return 0


_COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    **dict.fromkeys(MODES, _derivative),
    "compile": _compile,
    "check": _check,
    "explain": _explain,
    "plan": _plan,
    "new": _new,
    "completion": _completion,
}
