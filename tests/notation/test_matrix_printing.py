"""Every matrix expression, printed as text or as LaTeX, is read as what it is: brackets stand where they are needed."""

from __future__ import annotations

import contextlib
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import combdiff as cd
from combdiff.meaning.samples import random_value
from combdiff.notation.latex_names import Scope
from combdiff.notation.matrix.expr import (
    Adjoint,
    AtMost,
    Conjugate,
    Contraction,
    Diag,
    Diagonal,
    Entrywise,
    Function,
    Identity,
    Item,
    KhatriRao,
    Kronecker,
    Leaf,
    MatrixExpr,
    Norm,
    Number,
    Ones,
    Pi,
    Power,
    Product,
    Scale,
    Sum,
    Tensor,
    Trace,
    Transpose,
    Unfolding,
    Value,
)
from combdiff.notation.matrix.printer import algebra_latex, algebra_text
from combdiff.terms.terms import Diff, Term, Var, fresh, number
from combdiff.terms.types import COMPLEX, REAL, Domain, Index, Map, Type
from combdiff.terms.types import Product as Pair
from tests.notation.matrix_meaning import meaning
from tests.notation.matrix_reader import Matrix, Reader, UnsizedError, each
from tests.notation.matrix_reader import given as in_cells

N = Index(Domain("A.1"))
SIZES = {N.domain: 3}


def variable(name: str, slots: int, kind: Type = COMPLEX) -> Var:
    return fresh(name, Map((N,) * slots, kind) if slots else kind)


a, z, C = variable("a", 0), variable("z", 1), variable("C", 2)
b, x1, A = variable("b", 0, REAL), variable("x1", 1, REAL), variable("A", 2, REAL)
T, V = variable("T1", 3), variable("V", 4)
f = fresh("f", Map((REAL,), REAL))
R = fresh("R", Map((Map((N,), REAL),), Pair((REAL, REAL))))
SLOPE = Diff("grad", f)
_rng = np.random.default_rng(4)
VALUES: dict[Term, object] = {v: random_value(v.kind, SIZES, _rng) for v in (a, b, x1, z, A, C, T, V)}
VALUES |= {f: lambda t: t * t + 1, SLOPE: lambda t: 2 * t - 0.5, R: lambda v: (float(v @ v), float(v.sum()))}
SCOPES = {True: Scope().bind(VALUES.keys() - {SLOPE}), False: Scope(str).bind(VALUES.keys() - {SLOPE})}

constants = st.sampled_from([number(c) for c in (2, -1, Fraction(1, 2), Fraction(-3, 2), 1j, -2j, 1 + 0.5j, -1 - 1j)])
ORDERS = {3: [(1, 2, 3), (2, 1, 3), (3, 1, 2)], 4: [(1, 2, 3, 4), (1, 3, 2, 4), (4, 1, 2, 3)]}


@st.composite
def tensors(draw: st.DrawFn, slots: int, depth: int) -> MatrixExpr:
    if not depth or draw(st.booleans()):
        return Tensor(T if slots == 3 else V, draw(st.sampled_from(ORDERS[slots])))
    of = tensors(slots, depth - 1)
    match draw(st.sampled_from("*+s")):
        case "*":
            return Conjugate(draw(of))
        case "+":
            return Sum((draw(of), draw(of)))
        case _:
            return Scale(draw(constants), (), draw(of))


@st.composite
def expressions(draw: st.DrawFn, rank: int, depth: int = 3) -> MatrixExpr:
    """A number, a vector or a matrix."""
    if not depth:
        return draw(st.sampled_from(LEAVES[rank]))

    def of(rank: int) -> MatrixExpr:
        return draw(expressions(rank, depth - 1))

    match draw(st.sampled_from([*"s+∘*f^x", *KINDS[rank]])):
        case "s":
            return Scale(draw(constants), tuple(of(0) for _ in range(draw(st.integers(0, 2)))), of(rank))
        case "+":
            return Sum((of(rank), of(rank)))
        case "∘":
            return Entrywise((of(rank), of(rank))) if rank else Scale(draw(constants), (of(0),), of(0))
        case "*":
            return Conjugate(of(rank))
        case "f":
            # |x|² of a vector is written x* ∘ x
            names = ["exp", "sin", "real", "abs", *(["abs2"] if not rank else [])]
            return Function(draw(st.sampled_from(names)), of(rank))
        case "^":
            if draw(st.booleans()):
                positive = Function("abs", of(rank))
                fraction = draw(st.sampled_from([Number(number(Fraction(-1, 2))), Leaf(b), of(0)]))
                return Power(positive, fraction, entrywise=rank > 0)
            return Power(of(rank), Number(number(draw(st.sampled_from([2, 3, -1, -3])))), entrywise=rank > 0)
        case "x":
            return AtMost(real(of(rank)), real(of(draw(st.sampled_from([0, rank])))))
        case kind:
            return SPECIAL[rank](kind, of, draw, depth)


def real(of: MatrixExpr) -> MatrixExpr:
    return Function("real", of)


def special_number(kind: str, of, draw: st.DrawFn, depth: int) -> MatrixExpr:
    match kind:
        case "tr":
            return Trace(of(2))
        case "n":
            return Norm(of(draw(st.sampled_from([1, 2]))))
        case "xy":
            return Product((draw(st.sampled_from([Transpose, Adjoint]))(of(1)), of(1)))
        case "xAy":
            return Product((Transpose(of(1)), of(2), of(1)))
        case "R":
            return Item(draw(st.integers(0, 1)), Value(R, (real(of(1)),)))
        case _:
            return Value(draw(st.sampled_from([f, SLOPE])), (real(of(0)),))


def special_vector(kind: str, of, draw: st.DrawFn, depth: int) -> MatrixExpr:
    match kind:
        case "Ax":
            return Product((of(2), of(1)))
        case "d":
            return Diagonal(of(2))
        case "T:A":
            return Contraction(draw(tensors(3, depth - 1)), of(2), 2)
        case _:
            return Value(draw(st.sampled_from([f, SLOPE])), (real(of(1)),), entrywise=True)


def special_matrix(kind: str, of, draw: st.DrawFn, depth: int) -> MatrixExpr:
    match kind:
        case "AB":
            return Product((of(2), of(2)))
        case "xy":
            return Product((of(1), draw(st.sampled_from([Transpose, Adjoint]))(of(1))))
        case "t":
            return draw(st.sampled_from([Transpose, Adjoint]))(of(2))
        case "D":
            return Diag(of(1))
        case "P":
            return Power(of(2), Number(number(draw(st.integers(2, 3)))), entrywise=False)
        case "V:A":
            return Contraction(draw(tensors(4, depth - 1)), of(2), 2)
        case "T.x":
            return Contraction(draw(tensors(3, depth - 1)), of(1), 1)
        case "⊙":
            return Product((Unfolding(T, draw(st.integers(1, 3))), KhatriRao(of(2), of(2))))
        case _:
            return Product((Unfolding(T, 1), Kronecker(of(2), of(2)), Transpose(Unfolding(T, 2))))


LEAVES = [
    [Leaf(a), Leaf(b), Pi(), Number(number(3))],
    [Leaf(x1), Leaf(z), Ones(N.domain)],
    [Leaf(A), Leaf(C), Identity(N.domain)],
]
KINDS = [
    ["tr", "n", "xy", "xAy", "R", "f()"],
    ["Ax", "d", "T:A", "f()"],
    ["AB", "xy", "t", "D", "P", "V:A", "T.x", "⊙", "⊗"],
]
SPECIAL = [special_number, special_vector, special_matrix]


def names(latex: bool) -> dict[str, object]:
    scope = SCOPES[latex]
    found: dict[str, object] = {scope[v]: in_cells(VALUES[v]) for v in (a, b, x1, z, A, C, T, V)}
    found[scope[f]] = entry_by_entry(f)
    found[f"gradient {scope[f]}"] = entry_by_entry(SLOPE)
    found[scope[R]] = lambda v: tuple(Matrix((), (), lambda n=n: VALUES[R](v.array()[:, 0].real)[n]) for n in range(2))
    return found


def entry_by_entry(function: Term):
    return lambda of: each(lambda array: VALUES[function](array.real), of)


@pytest.mark.slow
@pytest.mark.parametrize("latex", [False, True], ids=["text", "latex"])
@settings(max_examples=100, deadline=None)
@given(expr=st.integers(0, 2).flatmap(expressions))
def test_an_expression_is_read_as_what_it_is(latex: bool, expr: MatrixExpr) -> None:
    with np.errstate(all="ignore"):
        try:
            expected = meaning(expr, VALUES, SIZES)
        except np.linalg.LinAlgError:
            return
        if not np.isfinite(expected).all() or np.abs(expected).max() > 1e12:
            return
        text = (algebra_latex if latex else algebra_text)(expr, SCOPES[latex])
        shape = tuple(3 for n in expected.shape if n > 1)
        with contextlib.suppress(UnsizedError):  # nothing in tr(𝐈) says how large it is
            found = Reader(names(latex), latex).read(text, shape)
            scale = max(1.0, np.abs(expected).max())
            tolerance = {"rtol": 1e-6, "atol": 1e-7 * scale, "err_msg": text}
            np.testing.assert_allclose(found.reshape(expected.shape), expected, **tolerance)


def test_a_function_of_several_numbers_has_the_braces_of_its_name() -> None:
    d = cd.simplified("(y::RV) -> (x::RV) -> sum(i, atan2(y(i), x(i)))")
    assert d.latex("matrix").endswith(r"\operatorname{atan2}(y, x)") and d.matrix_text().endswith("atan2(y, x)")
