"""The commands and their options."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from combdiff import __version__
from combdiff.api import MODES
from combdiff.budget import NODES, SECONDS
from combdiff.command.terminal import Parser
from combdiff.emit.backends import BACKENDS

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[Parser]

_ABOUT = {
    "grad": ("the gradient of a program", "grad hartree_fock.cd --format python --value"),
    "pullback": ("the pullback, with cotangents as last arguments", "pullback layer.cd --format latex"),
    "hvp": ("the Hessian-vector product, with the vector as last argument", "hvp hartree_fock.cd --form matrix"),
    "vjp": ("another name for pullback", "vjp layer.cd"),
    "jvp": ("the Jacobian-vector product, with tangents as last arguments", "jvp layer.cd --format latex"),
    "jacobian": ("the Jacobian: axes of the result first, then axes of the unknown", "jacobian layer.cd"),
    "hessian": ("the matrix of second derivatives by real unknowns", "hessian -e '(x::RV) -> sum(i, x(i)^4)'"),
    "simplified": ("the program itself, simplified", "simplified energy.cd --format latex"),
    "compile": ("one module of code for several programs", "compile energy.cd penalty.cd -o gradients.py --value"),
    "check": (
        "compare a derivative with finite differences and with its emitted code, on random data",
        "check hartree_fock.cd --mode hvp",
    ),
    "explain": (
        "every stage of the derivation in words: λ-term, B/C form, raw pullback, laws used, result",
        "explain quadratic.cd --mode hvp",
    ),
    "plan": ("the array operations that compute a result, with their costs", "plan hartree_fock.cd"),
}


def parser() -> Parser:
    """The parser of the command line."""
    top = Parser(
        prog="combdiff",
        description="Write an objective, read its gradient, run its gradient.",
        epilog="Example: combdiff new hartree-fock; combdiff grad hartree_fock.cd. The options of a command: "
        "combdiff grad --help",
    )
    top.add_argument("--version", action="version", version=f"combdiff {__version__}", help="print the version")
    commands = top.add_subparsers(
        dest="command", required=True, metavar="COMMAND", title="commands", parser_class=Parser
    )
    for name in _ABOUT:
        command = _command(commands, name)
        _add_programs(command)
        _add_derivation(command, chosen=name not in MODES, symmetric=name == "grad" or name not in MODES)
        if name in MODES:
            _add_formula(command)
        if name in (*MODES, "compile"):
            _add_code(command, name)
        if name == "plan":
            _add_sizes(command.add_argument_group("sizes"))
        if name == "explain":
            command.add_argument("--times", action="store_true", help="show the time of each stage and its laws")
        if name == "check":
            command.add_argument("--seed", type=_seed, default=0, help="the seed of the random data (0)")
        _add_file(command)
    _add_others(commands)
    return top


def _command(commands: Commands, name: str) -> Parser:
    text, example = _ABOUT[name]
    about = f"{text[0].upper()}{text[1:]}."
    return commands.add_parser(name, help=text, description=about, epilog=f"Example: combdiff {example}")


def _add_others(commands: Commands) -> None:
    """Commands that take no program."""
    text = "an example to start from, as a file"
    new = commands.add_parser("new", help=text, epilog="Example: combdiff new hartree-fock")
    new.add_argument(
        "name", metavar="EXAMPLE", nargs="?", default="", help="its name; without it, the names of all examples"
    )
    _add_file(new)
    text = "a script that lets a shell complete commands and options"
    shell = commands.add_parser("completion", help=text, epilog="Example: combdiff completion bash")
    shell.add_argument("shell", choices=("bash", "zsh", "tcsh"), help="the shell")


def _add_programs(command: Parser) -> None:
    command.add_argument("files", metavar="FILE.cd", nargs="*", help="programs, or - for standard input")
    command.add_argument(
        "-e", dest="programs", action="append", default=[], metavar="PROGRAM", help="a program, on the command line"
    )


def _add_file(command: Parser) -> None:
    command.add_argument("-o", dest="output", metavar="FILE", default="", help="write to a file, not to the terminal")


def _add_derivation(command: Parser, chosen: bool, symmetric: bool) -> None:
    """Options that say what is derived, and how."""
    group = command.add_argument_group("the derivation")
    if chosen:
        group.add_argument("--mode", choices=MODES, default="grad", help="which derivative (grad)")
    group.add_argument("--expand", action="store_true", help="multiply products and shared values out")
    if symmetric:
        group.add_argument("--symmetric", action="store_true", help="project on the declared symmetry")
    group.add_argument(
        "--keep", action="append", default=[], metavar="NAME", help="treat a definition as an unspecified function"
    )
    group.add_argument("--wrt", action="append", default=[], metavar="NAME", help="differentiate by a parameter")
    group.add_argument(
        "--seconds", type=float, default=SECONDS, help=f"time limit of simplification ({SECONDS:g} seconds)"
    )
    group.add_argument("--nodes", type=float, default=NODES, help=f"size limit of its e-graphs ({NODES:,} nodes)")
    group.add_argument("--no-cache", action="store_true", help="do not use stored derivations")


def _add_formula(command: Parser) -> None:
    """Options that say what is printed."""
    group = command.add_argument_group("the output")
    group.add_argument(
        "--format",
        choices=("text", "unicode", "latex", "mathml", "python"),
        default="text",
        help="a formula, or python for code (text)",
    )
    group.add_argument("--form", choices=("index", "matrix"), default="index", help="the form of formulas (index)")
    group.add_argument(
        "--style", choices=("map", "paper"), default="map", help="a map, or equations with left-hand sides, in LaTeX"
    )


def _add_code(command: Parser, name: str) -> None:
    code = command.add_argument_group("code, with --format python" if name in MODES else "code")
    code.add_argument("--backend", choices=BACKENDS, help="the array library (numpy)")
    code.add_argument("--value", action="store_true", help="return the value before the derivative")
    _add_sizes(code)
    code.add_argument("--pack", action="append", default=[], metavar="NAME", help="read a packed copy of a tensor")
    if name in ("grad", "compile"):
        code.add_argument(
            "--hvp", action="store_true", help="also return a function: the Hessian at the point times a vector"
        )


def _add_sizes(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--memory", metavar="SIZE", help='limit for the memory of all arrays, such as "2 GB"')
    group.add_argument(
        "--shape", action="append", default=[], type=_shape, metavar="NAME=60,60", help="the shape of an array"
    )


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"a seed is a non-negative integer, not {text!r}")
    return int(text)


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, sizes = text.partition("=")
    if not name or not all(size.strip().isdecimal() for size in sizes.split(",")):
        raise argparse.ArgumentTypeError(f"a shape is NAME=60,60, not {text!r}")
    return name, tuple(map(int, sizes.split(",")))
