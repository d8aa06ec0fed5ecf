"""combdiff: write an objective, read its gradient, run its gradient.

>>> import combdiff as cd
>>> print(cd.grad("(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))"))
(A::Her) -> (x::CV) -> i -> 2 * sum(j, A(i, j) * x(j))
"""

from combdiff.api import grad, hvp, pullback
from combdiff.errors import CombDiffError

__version__ = "0.1.0"
__all__ = ["CombDiffError", "grad", "hvp", "pullback"]
