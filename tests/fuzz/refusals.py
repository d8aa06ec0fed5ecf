"""Refusals that the documentation announces: a program that meets one is counted, and is no failure."""

from __future__ import annotations

import re

from combdiff.errors import CombDiffError

DOCUMENTED = {
    # docs/language.md: "Compiling a program with an ∫ left is an error for now"
    r"an integral over real numbers is left": "integral left",
    r"a Dirac δ of real numbers is left": "δ left",
    # README: an unknown map of tensors that would be needed at every value of an index is refused
    r"a function of the user is applied to a different array for each value": "unknown map in a loop",
    # docs/code.md: "no equations are solved"
    r"solves equations, which is not done in dask": "equations in Dask",
    # docs/language.md: "unless R depends on what is differentiated, which is refused"
    r"that is kept unknown depends on the variable": "keep",
    # docs/language.md: "a map of numbers and of indices at once, whose derivative cannot be written"
    r"a map of numbers and of indices at once": "map of numbers and indices",
    # docs/language.md: "and says so if there is none"
    r"Newton's method finds no root": "no root",
    # docs/language.md: "it says so where the system has no solution that is finite"
    r"has no unique solution \(it is not finite\)": "no solution",
    # docs/language.md: "moves with what is differentiated and meets no integral is refused"
    r"this δ does not meet its integral": "δ that moves",
    # docs/language.md: "a derivative that divides by zero whatever the arrays hold"
    r"divides by zero, whatever the arrays hold": "division by zero",
    # docs/language.md: "that floating point cannot hold is derived with, and refused where code is made"
    r"is beyond those of floating point": "huge number",
    # docs/code.md: within a limit of memory, or refused before
    r"bytes are needed|memory is limited": "memory",
}


def documented(error: CombDiffError) -> bool:
    """Whether a page of the documentation says that this is refused."""
    return any(re.search(pattern, error.message) for pattern in DOCUMENTED)
