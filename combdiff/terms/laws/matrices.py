"""Functions of whole matrices, one row each: a matrix A goes in, a number or a matrix comes out.

    inv         𝒫(inv)(A, K) = −A⁻ᴴ K A⁻ᴴ
    det         𝒫(det)(A, k) = k adj(A)ᴴ, which is k (det A)' A⁻ᴴ, and right where A is singular, too
    logdet      𝒫(logdet)(A, k) = k A⁻ᴴ; `logabsdet` is its real part, which real matrices of either sign have
    adjugate    det(A) A⁻¹, computed without a division; `adjugate(A, K)` is its derivative at A along K

A row is written with matrices as on paper (`Matrix`); it meets indices only when an entry is asked for. The reduction
of a matrix function has the mark 1 where others say what takes part, and that of a derivative along K the entries of K.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from combdiff.errors import UnsupportedError
from combdiff.terms.nodes import ALONG, MATRICES, OF_MATRICES, ONE, App, Lam, Reduce, Term, Var, fresh
from combdiff.terms.terms import apply, call, conj, lam, mul, neg, reduction, total
from combdiff.terms.types import Map, Type, is_complex

Entry = Callable[[Term, Term], Term]


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """A matrix of terms: the kinds of its rows and columns, and what its entry at two indices is.

    >>> from combdiff.terms.types import COMPLEX, Domain, Index
    >>> n = Index(Domain("n"))
    >>> A, i, j = fresh("A", Map((n, n), COMPLEX)), fresh("i", n), fresh("j", n)
    >>> Matrix.of(A).adjoint.entry(i, j) == conj(apply(A, j, i))
    True
    """

    rows: Type
    columns: Type
    entry: Entry

    @staticmethod
    def of(t: Term) -> Matrix:
        """The matrix that a map of two indices is."""
        assert isinstance(t.type, Map) and len(t.type.params) == 2, "a matrix"
        return Matrix(*t.type.params, lambda i, j: apply(t, i, j))

    @property
    def term(self) -> Lam:
        """The map of two indices."""
        i, j = fresh("i", self.rows), fresh("j", self.columns)
        return Lam((i, j), self.entry(i, j))

    @property
    def adjoint(self) -> Matrix:
        """Aᴴ."""
        return Matrix(self.columns, self.rows, lambda i, j: conj(self.entry(j, i)))

    @property
    def trace(self) -> Term:
        """Σᵢ A(i, i)."""
        i = fresh("i", self.rows)
        return total((i,), self.entry(i, i))

    def __matmul__(self, other: Matrix) -> Matrix:
        def entry(i: Term, j: Term) -> Term:
            k = fresh("k", self.columns)
            return total((k,), mul(self.entry(i, k), other.entry(k, j)))

        return Matrix(self.rows, other.columns, entry)

    def __neg__(self) -> Matrix:
        return Matrix(self.rows, self.columns, lambda i, j: neg(self.entry(i, j)))

    def times(self, number: Term) -> Matrix:
        """Each entry times a number."""
        return Matrix(self.rows, self.columns, lambda i, j: mul(number, self.entry(i, j)))


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A function of a matrix at a matrix, where its derivative is taken."""

    whole: Reduce

    def of(self, kind: str, along: Matrix | None = None) -> Matrix:
        """Another function of the same matrix whose values are matrices."""
        i, j = self.whole.indices
        value = applied(kind, matrix_of(self.whole), None if along is None else along.term)
        return Matrix(j.kind, i.kind, lambda p, q: App(value, (p, q)))

    @property
    def inverse(self) -> Matrix:
        """A⁻¹."""
        return self.of("inv")

    @property
    def adjugate(self) -> Matrix:
        """The matrix of cofactors, transposed."""
        return self.of("adjugate")


@dataclass(frozen=True, slots=True, eq=False)
class MatrixFunction:
    """A row: its LaTeX (`{}` is what stands in brackets), operations in n³, and what cotangents and tangents become.

    Of a function whose values are numbers the pullback is that of 1, and the pushforward a trace: only `slope` is told,
    the matrix S with f(A + εK) = f(A) + ε tr(S K).
    """

    name: str
    latex: str
    work: float
    slope: Callable[[Place], Matrix] | None = None
    pullback: Callable[[Place, Matrix], Matrix] | None = None
    pushforward: Callable[[Place, Matrix], Matrix] | None = None

    @property
    def gives_matrix(self) -> bool:
        """Whether its values are matrices."""
        return self.name in MATRICES

    def pulled(self, whole: Reduce, k: Term) -> Matrix:
        """The cotangent of A."""
        at = self._place(whole)
        if self.slope is not None:
            return self.slope(at).adjoint.times(k)
        assert self.pullback is not None, "one of both is told"
        return self.pullback(at, Matrix.of(k))

    def pushed(self, whole: Reduce, tangent: Matrix) -> Term:
        """The tangent of the value."""
        at = self._place(whole)
        if self.slope is not None:
            moved = (self.slope(at) @ tangent).trace
            return moved if is_complex(whole.type) else call("real", moved)
        assert self.pushforward is not None, "one of both is told"
        return self.pushforward(at, tangent).term

    def _place(self, whole: Reduce) -> Place:
        if self.name in ALONG:
            raise UnsupportedError(
                f"the second derivative of {written_name(whole)} is not known",
                remedy="a determinant is differentiated twice at most; logdet(A) and inv(A) as often as needed",
            )
        return Place(whole)


MATRIX_FUNCTIONS: dict[str, MatrixFunction] = {
    row.name: row
    for row in (
        MatrixFunction(
            "inv",
            "",
            2,
            pullback=lambda at, K: -(at.inverse.adjoint @ K @ at.inverse.adjoint),
            pushforward=lambda at, K: -(at.inverse @ K @ at.inverse),
        ),
        MatrixFunction("det", r"\det{}", 2 / 3, slope=lambda at: at.adjugate),
        MatrixFunction("logdet", r"\log\det{}", 2 / 3, slope=lambda at: at.inverse),
        MatrixFunction("logabsdet", r"\log\lvert\det{}\rvert", 2 / 3, slope=lambda at: at.inverse),
        MatrixFunction(
            "adjugate",
            r"\operatorname{{adj}}{}",
            30,
            pullback=lambda at, K: at.of("adjugate", K.adjoint).adjoint,
            pushforward=lambda at, K: at.of("adjugate", K),
        ),
        MatrixFunction("adjugate_along", r"\operatorname{{adj}}{}", 60),
    )
}
"""The functions of whole matrices."""


def matrix_of(whole: Reduce) -> Lam:
    """The matrix that a function of matrices is of."""
    return Lam(whole.indices, whole.body)


def is_of_a_name(whole: Reduce) -> bool:
    """Whether it is a function of a matrix that has a name, `inv(A)`.

    >>> from combdiff.terms.types import REAL, Domain, Index
    >>> n = Index(Domain("n"))
    >>> A, i, j = fresh("A", Map((n, n), REAL)), fresh("i", n), fresh("j", n)
    >>> [is_of_a_name(reduction("inv", (i, j), ONE, a)) for a in (apply(A, i, j), apply(A, j, i))]
    [True, False]
    """
    match whole.body:
        case App(Var(), args):
            return whole.kind in OF_MATRICES - ALONG and args == whole.indices
        case _:
            return False


def direction_of(whole: Reduce) -> Lam | None:
    """The matrix along which a function of matrices is differentiated; None for its value."""
    return Lam(whole.indices, whole.mark) if whole.kind in ALONG else None


def arguments_of(whole: Reduce) -> tuple[Term, ...]:
    """What a program calls it with: the matrix, and that along which it is differentiated."""
    given = (matrix_of(whole), direction_of(whole))
    return tuple(lam(m.params, m.body) for m in given if m is not None)


def written_name(whole: Reduce) -> str:
    """What a program calls it: a derivative along a matrix has the name of the function."""
    return whole.kind.removesuffix("_along")


def applied(name: str, matrix: Lam, along: Lam | None = None) -> Term:
    """A function of matrices at a matrix; with `along`, its derivative there."""
    if along is None:
        return reduction(name, matrix.params, ONE, matrix.body)
    return reduction(f"{name}_along", matrix.params, apply(along, *matrix.params), matrix.body)
