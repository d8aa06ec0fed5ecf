"""Refusals that the documentation announces: a program that meets one is counted, and is no failure."""

from __future__ import annotations

import re

from combdiff.errors import CombDiffError

DOCUMENTED = {
    # README: "code for a result that contains an ∫" is not yet supported
    r"the result contains an integral over real numbers": "integral left",
    r"the result contains a Dirac δ of real numbers": "δ left",
    # README: "code that would need an unspecified function of tensors at every value of an index"
    r"code cannot call an unspecified function with a different array for each value": "unknown map in a loop",
    # docs/code.md: "equations are not supported"
    r"solves equations, which combdiff does not support for dask": "equations in Dask",
    # docs/language.md: "Dask has no loops"
    r"computed in a loop, which combdiff does not support for dask": "loops in Dask",
    # docs/language.md: "combdiff refuses this if R depends on an unknown"
    r"in keep depends on an unknown of the derivative": "keep",
    # docs/language.md: "otherwise the language has no notation for its derivative"
    r"a map of numbers and of indices at once": "map of numbers and indices",
    # docs/language.md: "raises an error if it finds none"
    r"Newton's method finds no root": "no root",
    # docs/language.md: "If a system has no finite solution, code raises an error"
    r"has no unique solution, .* \(it is not finite\)": "no solution",
    # docs/language.md: "not for Dask"
    r"of a matrix, which combdiff does not support for dask": "functions of matrices in Dask",
    # docs/language.md: "A determinant is differentiated twice at most"
    r"the second derivative of adjugate is not known": "third derivative of a determinant",
    # docs/language.md: "if their jumps may move under an integral that no δ removes"
    r"jumps? at places that move with": "jump that moves",
    # docs/language.md: "combdiff refuses the derivative of an argmax itself"
    r"the value of this map is an index, which is never differentiated": "derivative of an argmax",
    # docs/language.md: "combdiff refuses a δ that depends on an unknown and has no integral"
    r"no integral removes this δ": "δ that moves",
    # docs/language.md: "a derivative that divides by zero for all arrays"
    r"divides by zero for all arrays": "division by zero",
    # docs/language.md: "code may not, because it does not fit into floating point"
    r"is beyond those of floating point": "huge number",
    # docs/code.md: within a limit of memory, or refused before
    r"bytes are needed|memory is limited": "memory",
}


def documented(error: CombDiffError) -> bool:
    """Whether a page of the documentation says that this is refused."""
    return any(re.search(pattern, error.message) for pattern in DOCUMENTED)
