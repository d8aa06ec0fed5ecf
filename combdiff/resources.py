"""Turns the name of a grammar, a rule file, a solver or an example into its text, in a wheel and in a source tree.

`grammar/`, `rules/`, `solvers/` and `examples/` stand at the top of the repository; a wheel carries them in
`combdiff/_resources/`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from combdiff.errors import CombDiffError

_PACKAGE = Path(__file__).resolve().parent


def _folder(name: str) -> Path:
    """The wheel's copy first: beside an installed package, a folder of the same name could be anybody's."""
    for place in (_PACKAGE / "_resources" / name, _PACKAGE.parent / name):
        if place.is_dir():
            return place
    raise CombDiffError(f"the folder {name}/ of combdiff is missing", remedy="install combdiff again")


def files(folder: str) -> list[str]:
    """The files in such a folder and below it, by their paths with `/`."""
    top = _folder(folder)
    return [path.relative_to(top).as_posix() for path in top.rglob("*") if path.is_file()]


@cache
def resource(folder: str, file: str) -> str:
    """The text of a file.

    >>> "abstraction:" in resource("grammar", "combdiff.lark")
    True
    """
    path = _folder(folder) / file
    if not path.is_file():
        raise CombDiffError(f"the file {folder}/{file} of combdiff is missing", remedy="install combdiff again")
    return path.read_text(encoding="utf-8")
