"""The texts of solvers, which lie in `solvers/`: emitted source stands alone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from combdiff.emit.backends.spelling import Spelling
from combdiff.resources import files, resource

_FUNCTION = re.compile(r"^def (\w+)\(.*?(?=\n\n\n|\n\Z)", re.MULTILINE | re.DOTALL)


_CALL = re.compile(r"(?<![.\w])(\w+)\(")


@cache
def functions_in(file: str) -> dict[str, str]:
    """The texts of the functions in a file of `solvers/`, by their names.

    >>> print(functions_in("torch")["expm"])
    def expm(matrix):
        \"""The exponential of a matrix.\"""
        return torch.linalg.matrix_exp(matrix)
    """
    return {found[1]: found[0] for found in _FUNCTION.finditer(resource("solvers", f"{file}.py"))}


@cache
def solver_names() -> frozenset[str]:
    """The names of all solvers, which code uses for nothing else."""
    stems = (file.removesuffix(".py") for file in files("solvers") if file.endswith(".py"))
    return frozenset(name for stem in stems for name in functions_in(stem))


def solver_text(name: str, spelling: Spelling) -> str:
    """The text of a solver for an array library: its own, or that of another one in its words.

    >>> from combdiff.emit.backends.jax import SPELLING
    >>> print(solver_text("lu_logabsdet", SPELLING).splitlines()[-1].strip())
    return jnp.log(abs(jnp.diagonal(factors[0]))).sum()
    """
    file = next(file for file in spelling.solvers if name in functions_in(file))
    text = functions_in(file)[name]
    if file != spelling.name:
        for word, own in spelling.solver_words.items():
            text = text.replace(word, own)
    return text


def with_callees(names: Iterable[str], spelling: Spelling) -> list[str]:
    """Solvers with all that they call, each below what it calls.

    >>> from combdiff.emit.backends.numpy import SPELLING
    >>> with_callees(["lu_det", "lu_sign"], SPELLING)
    ['parity_of_swaps', 'lu_det', 'lu_sign']
    """
    found: dict[str, None] = {}

    def add(name: str) -> None:
        called = {*_CALL.findall(solver_text(name, spelling))} & solver_names() - {name}
        for callee in sorted(called - found.keys()):
            add(callee)
        found[name] = None

    for name in names:
        add(name)
    return list(found)
