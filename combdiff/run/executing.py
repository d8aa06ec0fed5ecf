"""Executes emitted text as a function, and turns what its solvers report into errors."""

from __future__ import annotations

from collections.abc import Callable
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, Literal

from combdiff.arrays.lower.argument_names import identifier
from combdiff.errors import ArrayError

if TYPE_CHECKING:
    from combdiff.run.libraries import Library


Algebra = Literal["", "matrices", "systems"]
"""What code does with matrices: nothing, determinants and the like, or solutions and inverses."""

_FILE = "<combdiff "
"""What the names of files of emitted code begin with."""


_SOURCE = "__source__"
"""What emitted code calls its own text, for messages that show a step."""

_OF_NOTHING = ("attempt to get argmax of", "attempt to get argmin of", "argmax()", "argmin()")
"""How the libraries' messages begin where an argmax runs over nothing."""


_OF_STATES = "look at what the step divides by and at how its numbers grow; the number t of a step counts from 0"


def compile_source(text: str, name: str = "gradient") -> Callable[..., object]:
    """The function that generated source text defines, without any checks.

    >>> compile_source("def gradient(x):\\n    return 2 * x\\n")(3)
    6
    """
    namespace: dict[str, Any] = {_SOURCE: text}
    exec(compile(text, f"{_FILE}{name}>", "exec"), namespace)
    function: Callable[..., object] = namespace[identifier(name)]
    return function


def run(
    function: Callable[..., object], arrays: list[object], algebra: Algebra = "", library: Library | None = None
) -> object:
    """What `function` returns; it factorises matrices, solves systems of equations, or only computes."""
    try:
        return solved(function, arrays, algebra, library) if algebra else function(*arrays)
    except FloatingPointError as problem:
        found = _of_states(problem)
        raise found from None if found is problem else problem
    except (ZeroDivisionError, OverflowError) as problem:  # of Python's numbers; arrays become infinite
        if not _is_of_the_code(problem):
            raise
        if isinstance(problem, ZeroDivisionError):
            raise ArrayError(
                "the program divides by the size of a domain (or by a power of it), and the size is 0",
                remedy="give arrays that are not empty",
            ) from problem
        raise ArrayError(
            f"a number is too large for the code to compute with ({problem})",
            remedy="scale the program, or the numbers and sizes that it is given",
        ) from problem
    except (RuntimeError, IndexError, ValueError) as problem:
        if str(problem).startswith(_OF_NOTHING):
            raise ArrayError(
                "argmax and argmin of no numbers have no value", remedy="give arrays that hold something"
            ) from problem
        if _is_of_the_code(problem) and isinstance(problem, IndexError) and str(problem).endswith("with size 0"):
            raise ArrayError(
                "an array that holds nothing is read at an index that a condition keeps in range",
                remedy="give arrays that hold something",
            ) from problem
        if _is_of_the_code(problem) and str(problem).startswith("svdvals"):
            raise ArrayError(
                str(problem), remedy="write svdvals(A') for the same values, one for each row"
            ) from problem
        if not (_is_of_the_code(problem) and str(problem).startswith(("amax()", "amin()"))):
            raise
        raise ArrayError(
            "PyTorch has no maximum or minimum of no numbers", remedy="give arrays that hold something, or use NumPy"
        ) from problem


def _of_states(problem: FloatingPointError) -> Exception:
    """The error for what the code finds in the states of loops; NumPy's own, for which its user asks, as it is."""
    if _is_of_the_code(problem) and str(problem).startswith("the state "):
        return ArrayError(str(problem), remedy=_OF_STATES)
    return problem


def _is_of_the_code(problem: BaseException) -> bool:
    """Whether emitted code raised it, and no function of the user that it calls."""
    *_, last = walk_tb(problem.__traceback__)
    return last[0].f_code.co_filename.startswith(_FILE)


def _in_step(problem: BaseException) -> str:
    """`, in the step x = np.linalg.solve(A, b)`: the line of emitted code that raised it, if one did."""
    for frame, line in walk_tb(problem.__traceback__):
        text = frame.f_globals.get(_SOURCE)
        if frame.f_code.co_filename.startswith(_FILE) and isinstance(text, str):
            step = text.splitlines()[line - 1].strip()
            return f", in the step {step.removeprefix('return ')}"
    return ""


_OF_ROOTS = "give a starting point near a root by the arguments start_…"
_OF_INVERSES = "correct the inverse, or leave it out: Newton's method then solves the equation"


def solved(
    function: Callable[..., object], fitted: list[object], algebra: Algebra, library: Library | None = None
) -> object:
    """What `function` returns, where equations may have no solution that is found."""
    import numpy as np

    singular: tuple[type[Exception], ...] = (
        (np.linalg.LinAlgError,) if library is None else (np.linalg.LinAlgError, *library.singular)
    )
    try:
        result = function(*fitted)
        # a determinant's logarithm may be −∞, but no solution
        if library is not None and algebra == "systems" and not library.is_finite(result):
            raise np.linalg.LinAlgError("it is not finite")
        return result
    except singular as problem:
        if str(problem).endswith("is not positive definite"):
            raise ArrayError(
                f"{problem}{_in_step(problem)}",
                remedy="give a matrix that is; to one that is only semidefinite add a multiple of the identity",
            ) from problem
        raise ArrayError(
            "a linear system has no unique solution, an inverse is that of a singular matrix, "
            f"or a number is not finite ({problem}){_in_step(problem)}",
            remedy="give finite arrays for which the equation has one solution, or start Newton's method elsewhere "
            "(start_…)",
        ) from problem
    except (ZeroDivisionError, OverflowError, FloatingPointError):
        raise
    except ArithmeticError as problem:
        remedy = _OF_INVERSES if str(problem).endswith("no solution") else _OF_ROOTS
        raise ArrayError(str(problem), remedy=remedy) from problem
