"""combdiff: write an objective, read its gradient, run its gradient.

>>> import combdiff as cd
>>> print(cd.grad("(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))"))
(A::Her) -> (x::CV) -> i -> 2 * sum(j, A(i, j) * x(j))
"""

from typing import TYPE_CHECKING

from combdiff.api import grad, hvp, pullback
from combdiff.errors import CombDiffError

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__version__ = "0.1.0"
__all__ = ["CombDiffError", "grad", "hvp", "pullback"]


def load_ipython_extension(shell: "InteractiveShell") -> None:
    """What `%load_ext combdiff` does: cells can then be programs, `%%combdiff`; see `%combdiff?`."""
    from combdiff.jupyter.magics import register

    register(shell)
