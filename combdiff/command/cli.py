"""The command line: `combdiff grad FILE.cd`, and pullback, hvp, check, explain, plan beside it.

Exit status 0; 1 when a check fails; 2, with the message on standard error, for bad input.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from combdiff import api
from combdiff.budget import NODES, SECONDS
from combdiff.emit.backends import BACKENDS
from combdiff.errors import CombDiffError
from combdiff.files import read_program
from combdiff.progress import ProgressLine, on_terminal
from combdiff.run.given import option_name

if TYPE_CHECKING:
    from combdiff.derivation import Derivation

_MODES = ("grad", "pullback", "hvp")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    for stream in (sys.stdout, sys.stderr):
        # formulas have Greek letters, whatever the locale says
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    options = _parser().parse_args(arguments)
    try:
        status = _COMMANDS[options.command](options)
        print(end="", flush=True)
    except CombDiffError as error:
        print(error, file=sys.stderr)
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


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"a seed is an integer from 0 on, not {text!r}")
    return int(text)


_ABOUT = {
    "grad": ("the gradient of a program", "grad hartree_fock.cd --format python --value"),
    "pullback": ("the pullback, with cotangents as last arguments", "pullback layer.cd --format latex"),
    "hvp": ("the Hessian-vector product, with the vector as last argument", "hvp hartree_fock.cd --form matrix"),
    "check": (
        "compare a derivative with finite differences and with its emitted code, on random data",
        "check hartree_fock.cd --mode hvp",
    ),
    "explain": (
        "every stage of the derivation: λ-term, B/C form, raw pullback, laws used, result",
        "explain quadratic.cd --mode hvp",
    ),
    "plan": ("the statements that compute a result, with their costs", "plan hartree_fock.cd"),
}


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, sizes = text.partition("=")
    if not name or not all(size.strip().isdecimal() for size in sizes.split(",")):
        raise argparse.ArgumentTypeError(f"a shape is NAME=60,60, not {text!r}")
    return name, tuple(map(int, sizes.split(",")))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="combdiff",
        description="Write an objective, read its gradient, run its gradient.",
        epilog="Example: combdiff grad examples/hartree_fock.cd. The options of a command: combdiff grad --help",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", title="commands")
    for name, (text, example) in _ABOUT.items():
        command = commands.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.", epilog=f"Example: combdiff {example}"
        )
        command.add_argument("file", metavar="FILE.cd", help="a program, or - for standard input")
        _add_derivation(command, chosen=name not in _MODES)
        if name in _MODES:
            _add_output(command, name)
        if name == "plan":
            _add_sizes(command.add_argument_group("sizes"))
        if name == "check":
            command.add_argument("--seed", type=_seed, default=0, help="which random data (0)")
    return parser


def _add_derivation(command: argparse.ArgumentParser, chosen: bool) -> None:
    """Options that say what is derived, and how."""
    group = command.add_argument_group("the derivation")
    if chosen:
        group.add_argument("--mode", choices=_MODES, default="grad", help="which derivative (grad)")
    group.add_argument("--expand", action="store_true", help="multiply products and shared values out")
    group.add_argument("--keep", action="append", default=[], metavar="NAME", help="leave a definition unknown")
    group.add_argument("--wrt", action="append", default=[], metavar="NAME", help="differentiate by a parameter")
    group.add_argument(
        "--seconds", type=float, default=SECONDS, help=f"what simplification may take ({SECONDS:g} seconds)"
    )
    group.add_argument("--nodes", type=float, default=NODES, help=f"how large its e-graphs may grow ({NODES:,} nodes)")


def _add_output(command: argparse.ArgumentParser, mode: str) -> None:
    """Options that say what is printed."""
    group = command.add_argument_group("what is printed")
    group.add_argument(
        "--format", choices=("text", "latex", "python"), default="text", help="a formula, or python for code (text)"
    )
    group.add_argument("--form", choices=("index", "matrix"), default="index", help="how formulas are written (index)")
    code = command.add_argument_group("code, with --format python")
    code.add_argument("--backend", choices=BACKENDS, help="the array library (numpy)")
    code.add_argument("--value", action="store_true", help="return the value before the derivative")
    _add_sizes(code)
    code.add_argument("--pack", action="append", default=[], metavar="NAME", help="read a packed copy of a tensor")
    if mode == "grad":
        code.add_argument("--hvp", action="store_true", help="return a function last: the Hessian there times a vector")


def _add_sizes(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--memory", metavar="SIZE", help='limit of what the arrays take at once, such as "2 GB"')
    group.add_argument(
        "--shape", action="append", default=[], type=_shape, metavar="NAME=60,60", help="the shape of an array"
    )


def _derived(options: argparse.Namespace, mode: str) -> Derivation:
    text, name = read_program(options.file)
    derivative = {"grad": api.grad, "pullback": api.pullback, "hvp": api.hvp}[mode]
    line = ProgressLine(on_terminal(sys.stderr)) if sys.stderr is not None and sys.stderr.isatty() else None
    with line or nullcontext():
        d = derivative(
            text,
            wrt=options.wrt,
            keep=options.keep,
            expand=options.expand,
            seconds=options.seconds,
            nodes=options.nodes,
            name=name,
            progress=line,
        )
    _tell_spent(d, options)
    return d


def _tell_spent(d: Derivation, options: argparse.Namespace) -> None:
    """What a spent budget left undone, on standard error."""
    name = "<stdin>" if options.file == "-" else options.file
    for step in d.steps:
        if step.spent:
            limits = f"--seconds {options.seconds:g}, --nodes {options.nodes:g}"
            print(f"{name}: {step.name}: {step.note} ({limits})", file=sys.stderr)


def _given(d: Derivation, options: argparse.Namespace, **chosen: object) -> dict[str, Any]:
    """Options for code, and shapes by the names of arrays, which may be those of options."""
    from combdiff.arrays.lower.argument_names import names_of_program

    names = names_of_program(d.term)
    for name, _ in options.shape:
        if name not in names:
            known = ", ".join(dict.fromkeys(names.values()))
            raise CombDiffError(f"there is no array called {name}", remedy=f"the arguments are {known}")
    return {option_name(option, names): value for option, value in chosen.items()} | dict(options.shape)


def _source(d: Derivation, options: argparse.Namespace, hvp: bool) -> str:
    given = _given(d, options, value=options.value, hvp=hvp, pack=options.pack, memory=options.memory)
    text = d.source(options.backend or "numpy", **given)
    if hvp:
        _tell_spent(d.products, options)
    return text


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
    d = _derived(options, options.command)
    if options.format == "python":
        print(_source(d, options, hvp), end="")
    elif options.format == "latex":
        print(d.latex(form=options.form))
    else:
        print(d.matrix_text() if options.form == "matrix" else d)
    return 0


def _check(options: argparse.Namespace) -> int:
    d = _derived(options, options.mode)
    report = d.check(options.seed)
    print(d)
    print()
    print(report)
    return 0 if report else 1


def _explain(options: argparse.Namespace) -> int:
    from combdiff.explanation import explanation

    d = _derived(options, options.mode)
    print(explanation(d))
    return 0


def _plan(options: argparse.Namespace) -> int:
    d = _derived(options, options.mode)
    print(d.plan(**_given(d, options, memory=options.memory)))
    return 0


_COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    **dict.fromkeys(_MODES, _derivative),
    "check": _check,
    "explain": _explain,
    "plan": _plan,
}


if __name__ == "__main__":
    sys.exit(main())
