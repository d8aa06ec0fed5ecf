"""Functions of whole matrices, one row each: a matrix A goes in, a number or a matrix comes out.

    inv         𝒫(inv)(A, K) = −A⁻ᴴ K A⁻ᴴ
    det         𝒫(det)(A, k) = k adj(A)ᴴ, which is k (det A)' A⁻ᴴ, and right where A is singular, too
    logdet      𝒫(logdet)(A, k) = k A⁻ᴴ; `logabsdet` is its real part, which real matrices of either sign have
    adjugate    det(A) A⁻¹, computed without a division; `adjugate(A, K)` is its derivative at A along K
    sqrtm       the principal root S; `sqrtm(A, K)` is the X with S X + X S = K, and its derivatives are of this kind
    expm        Σ Aⁿ / n!; `expm(A, K)` is its derivative at A along K

The derivative f'(A) along K of a function that is a power series or a limit of such has the adjoint f'(Aᴴ), which is
the adjoint matrix of f'(A) along Kᴴ (Higham, Functions of Matrices, 2008, Chapter 3).

A row is written with matrices as on paper (`Matrix`); it meets indices only when an entry is asked for. The reduction
of a matrix function has the mark 1 where others say what takes part, and that of a derivative along K the entries of K.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from combdiff.errors import UnsupportedError
from combdiff.terms.nodes import ALONG, MATRICES, OF_MATRICES, ONE, App, Lam, Reduce, Term, Var, fresh
from combdiff.terms.terms import add, apply, call, conj, lam, mul, neg, reduction, total
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

    def __add__(self, other: Matrix) -> Matrix:
        return Matrix(self.rows, self.columns, lambda i, j: add(self.entry(i, j), other.entry(i, j)))

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

    def adjoint_of(self, kind: str, k: Matrix) -> Matrix:
        """What the adjoint of the derivative of a function makes of K: the derivative at Aᴴ along K."""
        return self.of(kind, k.adjoint).adjoint

    @property
    def direction(self) -> Matrix:
        """What a function is differentiated along."""
        along = direction_of(self.whole)
        assert along is not None, "a derivative along a matrix"
        return Matrix.of(along)

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
    the matrix S with f(A + εK) = f(A) + ε tr(S K). A derivative along K is linear in K; what is told of it is about A.
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

    @property
    def base(self) -> str:
        """The function of which it is the derivative along a matrix; its own name, if it is none."""
        return self.name.removesuffix("_along")

    def pulled(self, whole: Reduce, k: Term) -> tuple[Matrix | None, Matrix]:
        """The cotangents of K, if there is one, and of A."""
        at = Place(whole)
        if self.slope is not None:
            return None, self.slope(at).adjoint.times(k)
        if self.pullback is None:
            raise self._unknown()
        along = at.adjoint_of(self.base, Matrix.of(k)) if self.name in ALONG else None
        return along, self.pullback(at, Matrix.of(k))

    def pushed(self, whole: Reduce, along: Matrix, tangent: Matrix) -> Term:
        """The tangent of the value, by those of K and of A."""
        at = Place(whole)
        if self.slope is not None:
            moved = (self.slope(at) @ tangent).trace
            return moved if is_complex(whole.type) else call("real", moved)
        if self.pushforward is None:
            raise self._unknown()
        own = self.pushforward(at, tangent)
        return (own + at.of(self.base, along) if self.name in ALONG else own).term

    def _unknown(self) -> UnsupportedError:
        return UnsupportedError(
            f"the second derivative of {self.base} is not known",
            remedy="a determinant is differentiated twice at most, expm(A) once; inv(A), logdet(A) and sqrtm(A) have "
            "all derivatives",
        )


MATRIX_FUNCTIONS: dict[str, MatrixFunction] = {
    row.name: row
    for row in (
        MatrixFunction(
            "inv",
            "{}^{{-1}}",
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
            pullback=lambda at, K: at.adjoint_of("adjugate", K),
            pushforward=lambda at, K: at.of("adjugate", K),
        ),
        MatrixFunction("adjugate_along", r"\operatorname{{adj}}{}", 60),
        MatrixFunction(
            "sqrtm",
            "{}^{{1/2}}",
            25,
            pullback=lambda at, K: at.adjoint_of("sqrtm", K),
            pushforward=lambda at, K: at.of("sqrtm", K),
        ),
        MatrixFunction(
            "sqrtm_along",
            r"\operatorname{{sqrtm}}{}",
            60,
            pullback=lambda at, K: -_anticommuted(at, at.adjoint_of("sqrtm", K), adjoint=True),
            pushforward=lambda at, K: -_anticommuted(at, at.of("sqrtm", K)),
        ),
        MatrixFunction(
            "expm",
            r"\operatorname{{expm}}{}",
            20,
            pullback=lambda at, K: at.adjoint_of("expm", K),
            pushforward=lambda at, K: at.of("expm", K),
        ),
        MatrixFunction("expm_along", r"\operatorname{{expm}}{}", 60),
    )
}
"""The functions of whole matrices."""


def _anticommuted(at: Place, y: Matrix, adjoint: bool = False) -> Matrix:
    """The derivative of the root along Y X + X Y, where X is its derivative along K; all adjoint for a pullback.

    S X + X S = K, so that dS X + S dX + dX S + X dS = 0, where dS is Y.
    """
    x = at.of("sqrtm", at.direction)
    if adjoint:
        return at.adjoint_of("sqrtm", y @ x.adjoint + x.adjoint @ y)
    return at.of("sqrtm", y @ x + x @ y)


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
    return tuple(_named(m) for m in (matrix_of(whole), direction_of(whole)) if m is not None)


def _named(matrix: Lam) -> Term:
    """A matrix without its indices, where it has a name: sqrtm(A), and not (i, j) -> sqrtm(A)(i, j)."""
    match matrix.body:
        case App(Reduce(kind) as of, args) if kind in MATRICES and args == matrix.params:
            return of if of.free.isdisjoint(matrix.params) else matrix
        case _:
            return lam(matrix.params, matrix.body)


def written_name(whole: Reduce) -> str:
    """What a program calls it: a derivative along a matrix has the name of the function."""
    return whole.kind.removesuffix("_along")


def applied(name: str, matrix: Lam, along: Lam | None = None) -> Term:
    """A function of matrices at a matrix; with `along`, its derivative there."""
    if along is None:
        return reduction(name, matrix.params, ONE, matrix.body)
    return reduction(f"{name}_along", matrix.params, apply(along, *matrix.params), matrix.body)
