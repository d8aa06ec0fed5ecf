"""What a user's own code looks like to a type checker: `tests/test_typing.py` runs mypy and pyright over this file."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

import combdiff as cd

ENERGY = "(A::Sym) -> (x::RV) -> sum((i, j), x(i) * A(i, j) * x(j))"


def both(A: npt.NDArray[np.float64], x: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
    f = cd.grad(ENERGY).compile(value=True)
    value, gradient = f(A, x)
    return float(value), gradient


def curvature(A: npt.NDArray[np.float64], x: npt.NDArray[np.float64]) -> float:
    d: cd.Derivation = cd.grad(ENERGY, seconds=5)
    gradient, hvp = d.compile(hvp=True)(A, x)
    value, gradient, hvp = d.compile("numpy", value=True, hvp=True, check=False)(A, x)
    return float(np.dot(gradient, hvp(gradient)) / value)


def alone(path: Path, x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    compiled: Callable[..., npt.NDArray[np.float64]] = cd.grad(path).compile()
    return compiled(x)


def told(text: str) -> str:
    try:
        d = cd.pullback(text)
    except cd.LanguageError as error:
        return error.remedy
    report = d.check()
    return d.result if report else d.latex(form="matrix")


def minimised(A: npt.NDArray[np.float64]) -> float:
    problem = cd.grad(ENERGY).problem(A=A, x=np.ones(len(A)))
    return problem.fun(problem.x0)
