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


def forwards(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    tangent: Callable[..., npt.NDArray[np.float64]] = cd.jvp(ENERGY).compile()
    blocks = cd.jacobian(ENERGY, wrt="x").compile(structured=True)
    value, hessian = cd.hessian(ENERGY).compile(value=True)(np.eye(len(x)), x)
    projected = (
        cd.grad(ENERGY, symmetric=True, wrt=("A",)).result + cd.simplified(ENERGY).result + cd.vjp(ENERGY).result
    )
    whole: npt.NDArray[np.float64] = blocks(np.eye(len(x)), x).dense()
    bent: npt.NDArray[np.float64] = hessian @ x * len(projected)
    return tangent(np.eye(len(x)), x, x) + whole * float(value) + bent
