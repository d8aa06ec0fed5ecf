"""combdiff: write an objective, read its gradient, run its gradient.

>>> import combdiff as cd
>>> print(cd.grad("(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))"))
(A::Her) -> (x::CV) -> i -> 2 * sum(j, A(i, j) * x(j))
"""

from typing import TYPE_CHECKING

from combdiff.api import grad, hessian, hvp, jacobian, jvp, pullback, simplified, vjp
from combdiff.boundary import tracebacks
from combdiff.errors import (
    ArrayError,
    BudgetError,
    CheckError,
    CombDiffError,
    FileFormatError,
    LanguageError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from combdiff.derivation import Derivation
    from combdiff.meaning import quadrature
    from combdiff.meaning.registering import register

__version__ = "0.2.0"
__all__ = [
    "ArrayError",
    "BudgetError",
    "CheckError",
    "CombDiffError",
    "Derivation",
    "FileFormatError",
    "LanguageError",
    "UnsupportedError",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "pullback",
    "quadrature",
    "register",
    "simplified",
    "tracebacks",
    "vjp",
]


def __dir__() -> list[str]:
    return [*globals(), "Derivation", "quadrature", "register"]


def __getattr__(name: str) -> object:
    # a derivation needs NumPy and more, which `import combdiff` does not load
    if name == "Derivation":
        from combdiff.derivation import Derivation

        return Derivation
    if name == "quadrature":
        from combdiff.meaning import quadrature

        return quadrature
    if name == "register":
        from combdiff.meaning.registering import register

        return register
    raise AttributeError(f"module 'combdiff' has no attribute {name!r}")


def load_ipython_extension(shell: "InteractiveShell") -> None:
    """Register the magics for `%load_ext combdiff`: a cell under `%%combdiff` is a program; see `%combdiff?`."""
    from combdiff.jupyter.magics import register

    register(shell)
