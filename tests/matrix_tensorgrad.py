"""The rows of docs/matrix_calculus.md as tensor networks of tensorgrad, and whether their derivatives have the numbers.

    pip install --target FOLDER tensorgrad
    PYTHONPATH=$PWD:FOLDER python -m tests.matrix_tensorgrad

It is not among the packages that tests need. The texts are those for SymPy (`matrix_sympy.py`). A result of tensorgrad
is a network, printed with indices or drawn, and no formula of matrices: a row counts if no derivative is left in it and
its numbers are those of the book. They are computed here, by NumPy.
"""

from __future__ import annotations

import importlib.metadata
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tests.matrix_cookbook import PARAMETER, Row, rows
from tests.matrix_sympy import SYMPY

_NAMES = (f"e{n}" for n in itertools.count())


@dataclass(frozen=True)
class Matrix:
    """A tensor of tensorgrad with an edge for its rows and one for its columns; None for a side of size 1."""

    of: Any
    row: str | None = None
    column: str | None = None

    def apart(self) -> Matrix:
        """The same with edges of its own."""
        new = {e: next(_NAMES) for e in (self.row, self.column) if e}
        return Matrix(self.of.rename(**new), *(new.get(e or "") for e in (self.row, self.column)))

    def __mul__(self, other: Any) -> Matrix:
        if not isinstance(other, Matrix):
            return Matrix(self.of * other, self.row, self.column)
        a, b = self.apart(), other.apart()
        if a.column and b.row:
            return Matrix(a.of @ b.of.rename(**{b.row: a.column}), a.row, b.column)
        return Matrix(a.of @ b.of, a.row or b.row, b.column or a.column)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Matrix:
        return self * (other**-1 if isinstance(other, Matrix) else Fraction(1, other))

    def __neg__(self) -> Matrix:
        return self * -1

    def __add__(self, other: Matrix) -> Matrix:
        return Matrix(self.of + other.like(self), self.row, self.column)

    def __sub__(self, other: Matrix) -> Matrix:
        return self + -other

    def like(self, other: Matrix) -> Any:
        """Its tensor with the edges of another."""
        a = self.apart()
        pairs = {(a.row, other.row), (a.column, other.column)}
        return a.of.rename(**{mine: theirs for mine, theirs in pairs if mine and theirs})

    def __pow__(self, n: Any) -> Matrix:
        import tensorgrad.functions as F

        if self.row is None and self.column is None:
            return Matrix(F.pow(self.of, n if isinstance(n, int) else Fraction(n)))
        return self if n == 1 else self * self ** (n - 1)

    @property
    def T(self) -> Matrix:
        return Matrix(self.of, self.column, self.row)

    @property
    def I(self) -> Matrix:  # noqa: E743  # as SymPy has it
        """The inverse, whose edges stand for what they cancel."""
        import tensorgrad.functions as F

        return Matrix(F.inverse(self.of, {self.row, self.column}), self.column, self.row)

    def applyfunc(self, function: Any) -> Matrix:
        return Matrix(function(self.of), self.row, self.column)


def vocabulary() -> dict[str, Any]:
    """What the texts call."""
    import tensorgrad.functions as F

    def of_numbers(function: Any) -> Any:
        return lambda x: Matrix(function(x.of)) if isinstance(x, Matrix) else function(x)

    return {
        "Trace": lambda a: Matrix(F.trace(a.of)) if a.row else a,
        "Determinant": lambda a: Matrix(F.det(a.of)),
        "HadamardProduct": lambda a, b: Matrix(a.of * b.like(a), a.row, a.column),
        "log": of_numbers(F.log),
        "exp": F.exp,
        "Abs": of_numbers(F.abs),
        "sqrt": of_numbers(F.sqrt),
        "softplus": lambda x: F.log(1 + F.exp(x)),
    }


def of_tensorgrad(row: Row) -> tuple[Any, dict[str, Any], tuple[str, ...]]:
    """The derivative, the variables, and the edges of its axes, those of the variable last."""
    import sympy
    import tensorgrad

    text, by = SYMPY[row.name]
    n, m = sympy.symbols("n m")
    variables: dict[str, Any] = {}
    names = vocabulary() | {"One": Matrix(tensorgrad.Ones(row=n), "row")}
    for name, kind, sizes in PARAMETER.findall(row.program):
        letters = [{"n": n, "m": m}[s.strip()] for s in sizes.split(",")] if sizes else [n]
        edges = {"R": (), "RV": ("row",)}.get(kind, ("row", "column"))
        shape = dict(zip(edges, (letters[0], letters[-1]), strict=False))
        variables[name] = tensorgrad.Variable(name, **shape)
        names[name] = Matrix(variables[name], *edges)
    if "hessian" in row.name:
        text = text.removesuffix(".diff(x)")
    value = eval(text, names)
    x = variables[by]
    new = {e: f"by_{e}" for e in x.edges}
    found = tensorgrad.Derivative(value.of, x, new)
    if "hessian" in row.name:
        again = {e: f"again_{e}" for e in x.edges}
        return tensorgrad.Derivative(found, x, again).full_simplify(), variables, (*new.values(), *again.values())
    own = [e for e in (value.row, value.column) if e]
    return found.full_simplify(), variables, (*own, *new.values())


def numbers(t: Any, arrays: Mapping[str, np.ndarray], sizes: Mapping[Any, int]) -> tuple[np.ndarray, tuple[str, ...]]:
    """A network's value, and the edges of its axes."""
    import tensorgrad.tensor as T

    def of(u: Any) -> tuple[np.ndarray, tuple[str, ...]]:
        return numbers(u, arrays, sizes)

    edges = tuple(t.edges)
    match t:
        case T.Variable():
            return np.asarray(arrays[t.name], float), edges
        case T.Delta():
            found = np.zeros([sizes[t.size]] * len(edges))
            for n in range(sizes[t.size]):
                found[(n,) * len(edges)] = 1
            return (found, edges) if edges else (np.array(float(sizes[t.size])), ())
        case T.Zero():
            return np.zeros([sizes[s] for s in t.shape.values()]), edges
        case T.Rename():
            value, own = of(t.tensor)
            return value, tuple(t.mapping.get(e, e) for e in own)
        case T.Product():
            return _contracted([of(f) for f in t.factors], edges), edges
        case T.Sum():
            terms = [(float(w), *of(u)) for w, u in zip(t.weights, t.terms, strict=True)]
            return sum((w * np.transpose(v, [own.index(e) for e in edges]) for w, v, own in terms), 0.0), edges
        case T.Function():
            (inner,) = t.inputs
            value, own = of(inner)
            return _of_function(t.signature, value, own)
        case _:
            raise NotImplementedError(f"{type(t).__name__} is left")


def _contracted(factors: list[tuple[np.ndarray, tuple[str, ...]]], edges: tuple[str, ...]) -> np.ndarray:
    letters: dict[str, int] = {}
    args: list[Any] = []
    for value, own in factors:
        args += [value, [letters.setdefault(e, len(letters)) for e in own]]
    return np.einsum(*args, [letters[e] for e in edges]) if args else np.array(1.0)


def _of_function(signature: Any, value: np.ndarray, own: tuple[str, ...]) -> tuple[np.ndarray, tuple[str, ...]]:
    name = type(signature).__name__
    match name:
        case "_ScaleFunction":
            found, edges = _of_function(signature.inner, value, own)
            return float(signature.alpha) * found, edges
        case "_MatrixInverseFunction":
            # the edges of one name cancel: axes of the inverse are exchanged
            return np.linalg.inv(value).T, own
        case "_DeterminantFunction":
            return np.array(np.linalg.det(value)), ()
        case "_PowerFunction":
            return value ** float(signature.k), own
        case "_LogFunction":
            return np.log(value), own
        case "_SimpleFunction" if signature.name in ("exp", "sign", "abs"):
            return getattr(np, signature.name)(value), own
        case _:
            raise NotImplementedError(f"{name} {signature.name}")


def gives_the_numbers(row: Row) -> str:
    """`yes`, or why not."""
    if row.name not in SYMPY:
        return "complex numbers, or functions that tensorgrad does not have"
    try:
        found, variables, edges = of_tensorgrad(row)
        arrays = row.arrays(3)
        sizes = {s: k for v in variables.values() for s, k in _sizes(v, arrays[v.name])}
        value, own = numbers(found, arrays, sizes)
        value = np.transpose(value, [own.index(e) for e in edges])
        wanted = row.of_the_book(arrays)
        return "yes" if value.shape == wanted.shape and np.allclose(value, wanted) else f"other numbers: {found}"
    except Exception as error:  # what it cannot do it tells by errors of many kinds, and each is its answer
        return f"{type(error).__name__}: {str(error)[:80]}"


def _sizes(variable: Any, array: np.ndarray) -> Iterator[tuple[Any, int]]:
    return zip(variable.shape.values(), np.shape(array), strict=True)


if __name__ == "__main__":
    answers = {row.name: gives_the_numbers(row) for row in rows()}
    for name, answer in answers.items():
        print(f"{name:14}{answer}")
    yes = sum(answer == "yes" for answer in answers.values())
    print("tensorgrad", importlib.metadata.version("tensorgrad"), yes, "of", len(answers))
