"""The rows of docs/matrix_calculus.md as matrix expressions of SymPy: where SymPy finds the derivative as one.

`python -m tests.matrix_sympy` prints what it makes of each row. A row counts if the result is a matrix expression
without a derivative, a sum over indices or an array in it, and has the numbers of the book's formula.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import sympy as sp

from tests.matrix_cookbook import PARAMETER, Row, rows

SYMPY: dict[str, tuple[str, str]] = {
    "m1": ("x.T * A * x / 2", "x"),
    "m2 jacobian": ("A * x.applyfunc(exp)", "x"),
    "m3": ("HadamardProduct(y, v).T * x", "x"),
    "m4": ("a ** b", "a"),
    "m5": ("One.T * (A * x - y).applyfunc(Abs)", "x"),
    "m6": ("(A * x - y).T * (A * x - y)", "x"),
    "m7": ("One.T * (HadamardProduct(-y, X * w).applyfunc(softplus))", "w"),
    "m8": ("Trace(A * X.T * B * X * C)", "X"),
    "m9": ("log(Determinant(X.I))", "X"),
    "49": ("Determinant(X)", "X"),
    "51": ("Determinant(A * X * B)", "X"),
    "52": ("Determinant(X.T * A * X)", "X"),
    "53": ("Determinant(X.T * A * X)", "X"),
    "54": ("Determinant(X.T * A * X)", "X"),
    "55": ("log(Determinant(X.T * X))", "X"),
    "57": ("log(Abs(Determinant(X)))", "X"),
    "58": ("Determinant(X**3)", "X"),
    "61": ("a.T * X.I * b", "X"),
    "62": ("Determinant(X.I)", "X"),
    "64": ("Trace((X + A).I)", "X"),
    "69": ("x.T * a", "x"),
    "70": ("a.T * X * b", "X"),
    "71": ("a.T * X.T * b", "X"),
    "72": ("a.T * X * a", "X"),
    "76": ("(One.T * X * One)**2", "X"),
    "77": ("b.T * X.T * X * c", "X"),
    "78": ("(B * x + b).T * C * (D * x + d)", "x"),
    "81": ("x.T * B * x", "x"),
    "82": ("b.T * X.T * D * X * c", "X"),
    "83": ("(X * b + c).T * D * (X * b + c)", "X"),
    "84": ("(x - A * s).T * W * (x - A * s)", "s"),
    "86": ("(x - s).T * W * (x - s)", "s"),
    "88": ("(x - A * s).T * W * (x - A * s)", "A"),
    "91": ("a.T * X**3 * b", "X"),
    "92": ("a.T * (X**2).T * X**2 * b", "X"),
    "95": ("((A * x).T * (A * x)) * ((B * x).T * (B * x))**(-1)", "x"),
    "97": ("x.T * A * x + b.T * x", "x"),
    "98 hessian": ("(x.T * A * x + b.T * x).diff(x)", "x"),
    "99": ("Trace(X)", "X"),
    "100": ("Trace(X * A)", "X"),
    "101": ("Trace(A * X * B)", "X"),
    "102": ("Trace(A * X.T * B)", "X"),
    "103": ("Trace(X.T * A)", "X"),
    "106": ("Trace(X**2)", "X"),
    "107": ("Trace(X**2 * B)", "X"),
    "108": ("Trace(X.T * B * X)", "X"),
    "111": ("Trace(X * B * X.T)", "X"),
    "114": ("Trace(A * X * B * X)", "X"),
    "115": ("Trace(X.T * X)", "X"),
    "116": ("Trace(B.T * X.T * C * X * B)", "X"),
    "117": ("Trace(X.T * B * X * C)", "X"),
    "118": ("Trace(A * X * B * X.T * C)", "X"),
    "119": ("Trace((A * X * B + C) * (A * X * B + C).T)", "X"),
    "120": ("Trace(X) * Trace(X)", "X"),
    "121": ("Trace(X**4)", "X"),
    "122": ("Trace(A * X**3)", "X"),
    "123": ("Trace(B.T * X.T * C * X * X.T * C * X * B)", "X"),
    "124": ("Trace(A * X.I * B)", "X"),
    "125": ("Trace((X.T * C * X).I * A)", "X"),
    "126": ("Trace((X.T * C * X).I * X.T * B * X)", "X"),
    "127": ("Trace((A + X.T * C * X).I * X.T * B * X)", "X"),
    "129": ("sqrt(Trace((x - a).T * (x - a)))", "x"),
    "130 jacobian": ("(x - a) / sqrt(Trace((x - a).T * (x - a)))", "x"),
    "131": ("x.T * x", "x"),
    "132": ("Trace(X * X.T)", "X"),
    "s5": ("log(Determinant(X))", "X"),
}
"""Each row of real arrays in SymPy's words, and what it is differentiated by."""


def of_sympy(row: Row) -> object:
    """SymPy's derivative."""
    text, by = SYMPY[row.name]
    n, m = sp.symbols("n m", positive=True, integer=True)
    names: dict[str, object] = {**vars(sp), "One": sp.OneMatrix(n, 1)}
    names["softplus"] = sp.Lambda(sp.Symbol("t"), sp.log(1 + sp.exp(sp.Symbol("t"))))
    for name, kind, sizes in PARAMETER.findall(row.program):
        letters = [{"n": n, "m": m}[s.strip()] for s in sizes.split(",")] if sizes else [n]
        shape = (letters[0], 1 if kind[1:] == "V" else letters[-1])
        names[name] = sp.Symbol(name, real=True) if kind == "R" else sp.MatrixSymbol(name, *shape)
    return eval(text, names).diff(names[by])


def is_a_form(found: object) -> bool:
    """Whether it is a matrix expression, or a number, without anything that is no operation of matrices."""
    strange = ("Derivative", "Array", "Tensor", "ElementwiseApply", "Sum", "Permute")
    return isinstance(found, sp.Basic) and not any(
        type(t).__name__.startswith(strange) and not isinstance(t, sp.MatrixExpr) for t in sp.preorder_traversal(found)
    )


def numbers(found: sp.Basic, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """The value at these arrays."""
    n = max(max(a.shape, default=1) for a in arrays.values())
    at = {sp.Symbol(s, positive=True, integer=True): k for s, k in (("n", n), ("m", max(1, n - 1)))}
    found = found.subs(at)
    for symbol in found.free_symbols | found.atoms(sp.MatrixSymbol):
        value = arrays[str(symbol)]
        matrix = sp.ImmutableMatrix(value.reshape(len(value), -1)) if value.ndim else sp.Float(float(value))
        found = found.subs(symbol, matrix)
    done = found.doit() if hasattr(found, "doit") else found
    return np.array(done.tolist() if hasattr(done, "tolist") else done, dtype=float)


def gives_the_form(row: Row) -> str:
    """`yes`, or why not."""
    if row.name not in SYMPY:
        return "complex"
    try:
        found = of_sympy(row)
        if not is_a_form(found):
            return f"no form: {found}"
        arrays = row.arrays(2)
        value, wanted = numbers(found, arrays), row.of_the_book(arrays)
        # a Jacobian of SymPy has the axes of the variable first
        same = any(
            np.allclose(v.ravel(), wanted.ravel()) for v in (value, value.T if "jacobian" in row.name else value)
        )
        return "yes" if same else f"other numbers: {found}"
    except Exception as error:  # what SymPy cannot do it tells by errors of many kinds, and each is its answer
        return f"{type(error).__name__}: {str(error)[:80]}"


if __name__ == "__main__":
    found = {row.name: gives_the_form(row) for row in rows()}
    for name, answer in found.items():
        print(f"{name:14}{answer}")
    print(sp.__version__, sum(answer == "yes" for answer in found.values()), "of", len(found))
