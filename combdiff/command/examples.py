"""The examples that come with combdiff, by their names."""

from __future__ import annotations

from difflib import get_close_matches

from combdiff.errors import CombDiffError
from combdiff.resources import files, resource


def names() -> list[str]:
    """What `combdiff new` can write."""
    return sorted(file.removesuffix(".cd").replace("_", "-") for file in files("examples") if file.endswith(".cd"))


def file_of(name: str) -> str:
    """The file that `combdiff new` writes, in the present folder.

    >>> file_of("xc/polarised/pbe-c")
    'pbe_c.cd'
    """
    return f"{name.removesuffix('.cd').replace('-', '_').rsplit('/', 1)[-1]}.cd"


def example(name: str) -> str:
    """The text of an example.

    >>> "(h::Sym" in example("hartree-fock") or "::" in example("hartree-fock")
    True
    """
    known = names()
    plain = name.removesuffix(".cd").replace("_", "-")
    if plain not in known:
        similar = get_close_matches(plain, known, n=1)
        meant = f"did you mean {similar[0]}? " if similar else ""
        raise CombDiffError(f"there is no example {name}", remedy=f"{meant}they are {', '.join(known)}")
    return resource("examples", f"{plain.replace('-', '_')}.cd")
