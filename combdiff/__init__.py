"""combdiff: write an objective, read its gradient, run its gradient.

>>> import combdiff as cd
>>> print(cd.grad("(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))"))
(A::Her) -> (x::CV) -> i -> 2 * sum(j, A(i, j) * x(j))
"""

from typing import TYPE_CHECKING

from combdiff.api import grad, hvp, pullback
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
    "hvp",
    "pullback",
    "tracebacks",
]


def __dir__() -> list[str]:
    return [*globals(), "Derivation"]


def __getattr__(name: str) -> object:
    # deriving takes NumPy and more, which importing combdiff does not
    if name == "Derivation":
        from combdiff.derivation import Derivation

        return Derivation
    raise AttributeError(f"module 'combdiff' has no attribute {name!r}")


def load_ipython_extension(shell: "InteractiveShell") -> None:
    """What `%load_ext combdiff` does: cells can then be programs, `%%combdiff`; see `%combdiff?`."""
    from combdiff.jupyter.magics import register

    register(shell)
