"""The magics of IPython: `%%combdiff` makes a cell of the language, `%combdiff FILE.cd` reads one from a file."""

from __future__ import annotations

import keyword
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

from combdiff import api
from combdiff.errors import CombDiffError
from combdiff.jupyter.display import derivation_bundle

if TYPE_CHECKING:
    from combdiff.derivation import Derivation


@magics_class
class CombdiffMagics(Magics):
    """What `%load_ext combdiff` brings."""

    @magic_arguments()
    @argument("file", nargs="?", help="a program to read, for %%combdiff in a line; a cell is a program itself")
    @argument("--name", default="d", help="the variable that the derivation is bound to; d unless said otherwise")
    @argument("--mode", choices=sorted(api.MODES), default="grad", help="which derivative")
    @argument("--form", choices=("index", "matrix"), default="index", help="how the formula is shown")
    @argument("--wrt", action="append", default=[], metavar="NAME", help="differentiate by a parameter")
    @argument("--keep", action="append", default=[], metavar="NAME", help="leave a definition unspecified")
    @argument("--expand", action="store_true", help="multiply products and shared values out")
    @argument("--check", action="store_true", help="compare with finite differences and with emitted code")
    @line_cell_magic
    def combdiff(self, line: str, cell: str | None = None) -> None:
        """Differentiate a program of the language, bind the derivation to a name, and show the result.

        For example, the gradient of x* A x for Hermitian A, as the variable d, in matrix form:

            %%combdiff --name d --form matrix
            (A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))

        shows A ↦ x ↦ 2 A x. Then d.compile() is its code as a function on arrays, d.explore() shows how it was found,
        and d.check() compares it with finite differences. `%combdiff FILE.cd` does the same with a file.
        """
        options = parse_argstring(self.combdiff, line)
        d = _derived(options, cell)
        display(derivation_bundle(d, options.form), raw=True)
        if options.check:
            display(d.check())
        assert self.shell is not None, "a magic is run in a shell"
        self.shell.user_ns[options.name] = d


def _derived(options: Namespace, cell: str | None) -> Derivation:
    if not options.name.isidentifier() or keyword.iskeyword(options.name):
        raise CombDiffError(f"{options.name!r} is not a name of a variable", remedy="give --name d")
    if cell is not None and options.file is not None:
        raise CombDiffError(
            f"the cell is already a program, and {options.file!r} is another one",
            remedy="leave it out, or write %combdiff with a single % to read a file",
        )
    if cell is None and options.file is None:
        raise CombDiffError(
            "there is no program", remedy="write it below %%combdiff, or give a file: %combdiff FILE.cd"
        )
    text, name = (cell, "cell") if cell is not None else (_read(options.file), options.file)
    return api.MODES[options.mode](text, wrt=options.wrt, keep=options.keep, expand=options.expand, name=name)


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise CombDiffError(f"cannot read {file}: {problem}", remedy="give the path of a .cd file") from None


def register(shell: InteractiveShell) -> None:
    """Make the magics known to a shell."""
    shell.register_magics(CombdiffMagics)
