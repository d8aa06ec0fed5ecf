"""Functions of whole matrices, one row each: a matrix A goes in, a number or a matrix comes out.

    inv         𝒫(inv)(A, K) = −A⁻ᴴ K A⁻ᴴ
    det         𝒫(det)(A, k) = k adj(A)ᴴ, which is k (det A)' A⁻ᴴ, and right where A is singular, too
    logdet      𝒫(logdet)(A, k) = k A⁻ᴴ; `logabsdet` is its real part, which real matrices of either sign have
    adjugate    det(A) A⁻¹, computed without a division; `adjugate(A, K)` is its derivative at A along K
    sqrtm       the principal root S; `sqrtm(A, K)` is the X with S X + X S = K, and its derivatives are of this kind
    expm        Σ Aⁿ / n!; `expm(A, K, L)` is its second derivative at A along K and L, and so on
    cholesky    the lower L with L Lᴴ = A, which is Hermitian; `cholesky(A, K)`, its derivative along K, is
                L Φ(L⁻¹ K L⁻ᴴ), where Φ takes the lower triangle with half of its diagonal; its adjoint `cholback(A, K)`
                is L⁻ᴴ S L⁻¹ with the Hermitian part S of Φ(Lᴴ K) (Murray, arXiv:1602.07527)
    eigvals     the eigenvalues λ of a Hermitian A = V λ Vᴴ in ascending order: 𝒫(A, k) = V k Vᴴ
    svdvals     the singular values σ of A = U σ Vᴴ in descending order: 𝒫(A, k) = U k Vᴴ

`eigvals(A, K)` is the derivative of the eigenvalues at A along K. `spectral(A, K)` is V k Vᴴ for k(j) = K(i, j), whose
rows are alike; `spectral(A, K, S, L)` is its derivative along L, V (Γ ∘ Vᴴ L V) Vᴴ with the divided differences
Γᵢⱼ = (kᵢ − kⱼ) / (λᵢ − λⱼ) of Daleckii and Krein, where S has the slopes of k by λ, to which Γ tends where eigenvalues
meet.
`svdvals(A, K)`, `singular(A, K)` and `singular(A, K, S, L)` are the same for U and V.

The derivative f'(A) along K of a function that is a power series or a limit of such has the adjoint f'(Aᴴ), which is
the adjoint matrix of f'(A) along Kᴴ (Higham, Functions of Matrices, 2008, Chapter 3); so have higher ones.

A row is written with matrices as on paper (`Matrix`); it meets indices only when an entry is asked for. The reduction
of a matrix function has the mark 1 where others say what takes part, and that of a derivative along K the entries of K.
"""

from __future__ import annotations

from collections.abc import Callable

from combdiff.errors import UnsupportedError
from combdiff.records import dataclass
from combdiff.terms.laws.slopes import UNKNOWN, slope_by_spectrum
from combdiff.terms.nodes import (
    ALONG,
    MATRICES,
    OF_MATRICES,
    ONE,
    SPECTRAL,
    Add,
    App,
    Lam,
    Reduce,
    Term,
    Tuple,
    Var,
    fresh,
)
from combdiff.terms.scalars import HALF
from combdiff.terms.terms import (
    TWO,
    add,
    apply,
    call,
    conj,
    delta,
    lam,
    mul,
    neg,
    number,
    reduced,
    reduction,
    substitute,
    subterms,
    total,
)
from combdiff.terms.types import Index, Map, Type, is_complex

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

    @property
    def hermitian(self) -> Matrix:
        """(A + Aᴴ)/2."""
        return (self + self.adjoint).times(HALF)


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A function of a matrix at a matrix, where its derivative is taken."""

    whole: Reduce

    def of(self, kind: str, *along: Matrix) -> Matrix:
        """Another function of the same matrix whose values are matrices."""
        value = applied(kind, matrix_of(self.whole), *(k.term for k in along))
        assert isinstance(value.type, Map), "a matrix"
        rows, columns = value.type.params
        return Matrix(rows, columns, lambda p, q: apply(value, p, q))

    def adjoint_of(self, kind: str, k: Matrix) -> Matrix:
        """What the adjoint of the derivative of a function makes of K: the derivative at Aᴴ along K."""
        return self.of(kind, k.adjoint).adjoint

    @property
    def directions(self) -> list[Matrix]:
        """What a function is differentiated along."""
        return [Matrix.of(k) for k in directions_of(self.whole)]

    @property
    def inverse(self) -> Matrix:
        """A⁻¹."""
        return self.of("inv")

    @property
    def factor(self) -> Matrix:
        """The lower L with L Lᴴ = A."""
        return self.of("cholesky")

    @property
    def factor_inverse(self) -> Matrix:
        """L⁻¹."""
        return Matrix.of(applied("inv", self.factor.term))

    @property
    def adjugate(self) -> Matrix:
        """The matrix of cofactors, transposed."""
        return self.of("adjugate")


@dataclass(frozen=True, slots=True, eq=False)
class MatrixFunction:
    """A row: its LaTeX (`{}` is what stands in brackets), operations in n³, and what cotangents and tangents become.

    Of a function whose values are numbers the pullback is that of 1, and the pushforward a trace: only `slope` is told,
    the matrix S with f(A + εK) = f(A) + ε tr(S K). A derivative along matrices is linear in each of them; what is told
    of it is about A. `spectrum` is for functions of eigenvalues, whose rules are about vectors.
    """

    name: str
    latex: str
    work: float
    slope: Callable[[Place], Matrix] | None = None
    pullback: Callable[[Place, Matrix], Matrix] | None = None
    pushforward: Callable[[Place, Matrix], Matrix] | None = None
    spectrum: Spectrum | None = None

    @property
    def base(self) -> str:
        """The function of which it is the derivative along matrices; its own name, if it is none."""
        return self.name.removesuffix("_along")

    def pulled(self, whole: Reduce, k: Term) -> tuple[list[Matrix], Matrix]:
        """The cotangents of the matrices along which it is taken, and of A."""
        at = Place(whole)
        if self.spectrum is not None:
            return self.spectrum.pulled(at, k)
        if self.slope is not None:
            return [], self.slope(at).adjoint.times(k)
        if self.pullback is None:
            raise self._unknown()
        cotangent = Matrix.of(k)
        along = [
            at.of(self.name, cotangent.adjoint, *others).adjoint if others else self._turned(at, cotangent)
            for others in _all_but_one(at.directions)
        ]
        return along, self.pullback(at, cotangent)

    def _turned(self, at: Place, k: Matrix) -> Matrix:
        """The adjoint of what is linear in a single matrix."""
        return at.of(_ADJOINTS[self.name], k) if self.name in _ADJOINTS else at.adjoint_of(self.base, k)

    def pushed(self, whole: Reduce, along: list[Matrix], tangent: Matrix) -> Term:
        """The tangent of the value, by those of the matrices along which it is taken and of A."""
        at = Place(whole)
        if self.spectrum is not None:
            return self.spectrum.pushed(at, along, tangent)
        if self.slope is not None:
            moved = (self.slope(at) @ tangent).trace
            return moved if is_complex(whole.type) else call("real", moved)
        if self.pushforward is None:
            raise self._unknown()
        found = self.pushforward(at, tangent)
        for k, others in zip(along, _all_but_one(at.directions), strict=False):
            found = found + at.of(self.name, k, *others)
        return found.term

    def _unknown(self) -> UnsupportedError:
        return UnsupportedError(
            f"the second derivative of {self.base} is not known",
            remedy="a determinant, eigenvalues and singular values are differentiated twice at most; inv(A), "
            "logdet(A), sqrtm(A), expm(A) and cholesky(A) have all derivatives",
        )


_ADJOINTS = {"cholesky_along": "cholback", "cholback": "cholesky"}
"""Derivatives along a matrix whose adjoints are other functions."""


def _all_but_one(items: list[Matrix]) -> list[list[Matrix]]:
    """The others, for each."""
    return [[*items[:n], *items[n + 1 :]] for n in range(len(items))]


@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """Rules of the eigenvalues of a Hermitian matrix, or of the singular values of any: `vectors` puts them together.

    A derivative of a matrix that `vectors` makes needs that of its numbers by the values, the slopes.
    """

    values: str
    vectors: str
    of_values: bool

    def pulled(self, at: Place, k: Term) -> tuple[list[Matrix], Matrix]:
        """V k Vᴴ for the values; for V k Vᴴ, the derivative of the values along the cotangent, and its own."""
        if self.of_values:
            rows, columns = (i.kind for i in at.whole.indices)
            return [], at.of(self.vectors, Matrix(rows, columns, lambda _, j: apply(k, j)))
        cotangent = Matrix.of(k)
        moved = applied(f"{self.values}_along", matrix_of(at.whole), cotangent.term)
        return [_of_first_row(cotangent, moved)], self.along(at, cotangent)

    def pushed(self, at: Place, along: list[Matrix], tangent: Matrix) -> Term:
        """The derivative of the values; of V k Vᴴ by k and by A."""
        if self.of_values:
            return applied(f"{self.values}_along", matrix_of(at.whole), tangent.term)
        return (at.of(self.vectors, *along) + self.along(at, tangent)).term

    def along(self, at: Place, k: Matrix) -> Matrix:
        """The derivative of V k Vᴴ by the matrix, with the numbers as they are."""
        (numbers,) = at.directions
        return at.of(f"{self.vectors}_along", numbers, Matrix.of(slope_by_spectrum(at.whole, self.values)), k)


def _of_first_row(like: Matrix, numbers: Term) -> Matrix:
    """What numbers are the cotangent of, if they are read from the diagonal, or from the first row of an oblong."""

    def entry(i: Term, j: Term) -> Term:
        return delta(i, j if like.rows == like.columns else _first(like.rows), apply(numbers, j))

    return Matrix(like.rows, like.columns, entry)


def _first(kind: Type) -> Term:
    """The first value of an index."""
    assert isinstance(kind, Index), "rows are counted"
    return number((kind.domain.lower or 0) if kind.domain is not None else 0)


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
        MatrixFunction(
            "expm_along",
            r"\operatorname{{expm}}{}",
            60,
            pullback=lambda at, K: at.of("expm_along", K.adjoint, *at.directions).adjoint,
            pushforward=lambda at, K: at.of("expm_along", K, *at.directions),
        ),
        MatrixFunction(
            "cholesky",
            r"\operatorname{{chol}}{}",
            1 / 3,
            pullback=lambda at, K: at.of("cholback", K),
            pushforward=lambda at, K: at.of("cholesky", K),
        ),
        MatrixFunction(
            "cholesky_along",
            r"\operatorname{{chol}}{}",
            3,
            pullback=lambda at, K: _factor_moved_back(at, K, at.directions[0]),
            pushforward=lambda at, K: _factor_moved(at, K),
        ),
        MatrixFunction(
            "cholback",
            r"\operatorname{{cholback}}{}",
            3,
            pullback=lambda at, Y: _factor_moved_back(at, at.directions[0], Y),
            pushforward=lambda at, Y: _factor_moved_back(at, at.directions[0], Y),
        ),
        MatrixFunction("eigvals", r"\lambda{}", 9, spectrum=Spectrum("eigvals", "spectral", of_values=True)),
        MatrixFunction("eigvals_along", r"\lambda{}", 4),
        MatrixFunction(
            "spectral", r"\operatorname{{spectral}}{}", 2, spectrum=Spectrum("eigvals", "spectral", of_values=False)
        ),
        MatrixFunction("spectral_along", r"\operatorname{{spectral}}{}", 8),
        MatrixFunction("svdvals", r"\sigma{}", 22, spectrum=Spectrum("svdvals", "singular", of_values=True)),
        MatrixFunction("svdvals_along", r"\sigma{}", 4),
        MatrixFunction(
            "singular", r"\operatorname{{singular}}{}", 2, spectrum=Spectrum("svdvals", "singular", of_values=False)
        ),
        MatrixFunction("singular_along", r"\operatorname{{singular}}{}", 12),
    )
}
"""The functions of whole matrices."""


def _anticommuted(at: Place, y: Matrix, adjoint: bool = False) -> Matrix:
    """The derivative of the root along Y X + X Y, where X is its derivative along K; all adjoint for a pullback.

    S X + X S = K, so that dS X + S dX + dX S + X dS = 0, where dS is Y.
    """
    (direction,) = at.directions
    x = at.of("sqrtm", direction)
    if adjoint:
        return at.adjoint_of("sqrtm", y @ x.adjoint + x.adjoint @ y)
    return at.of("sqrtm", y @ x + x @ y)


def _factor_moved(at: Place, k: Matrix) -> Matrix:
    """The derivative along K of the derivative F of the factor L along Y, from that of Y = L Fᴴ + F Lᴴ."""
    (y,) = at.directions
    moved, factor_inverse = at.of("cholesky", k), at.factor_inverse
    # it is the Hermitian part that counts
    beside = moved @ (factor_inverse @ y.hermitian).times(TWO)
    return moved @ (factor_inverse @ at.of("cholesky", y)) + -at.of("cholesky", beside)


def _factor_moved_back(at: Place, k: Matrix, y: Matrix) -> Matrix:
    """The gradient by A of the product of K with the derivative F of the factor along Y.

    With the adjoint G of that derivative at K, it is the adjoint at (K Fᴴ − 2 G Y) L⁻ᴴ.
    """
    inner = k @ at.of("cholesky", y).adjoint + -(at.of("cholback", k) @ (y + y.adjoint))
    return at.of("cholback", inner @ at.factor_inverse.adjoint)


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


def directions_of(whole: Reduce) -> tuple[Lam, ...]:
    """The matrices along which a function of matrices is differentiated; none for its value."""
    return tuple(Lam(whole.indices, k) for k in whole.marks) if whole.kind in ALONG else ()


def numbers_of(whole: Reduce) -> list[Lam]:
    """The numbers, and their slopes, of what is made of eigenvectors or singular vectors, for each value."""
    i, j = whole.indices
    first = j if i.kind == j.kind else _first(i.kind)
    count = {"spectral": 1, "singular": 1, "spectral_along": 2, "singular_along": 2}.get(whole.kind, 0)
    return [Lam((j,), substitute(k, {i: first})) for k in whole.marks[:count]]


def slopes_of_numbers(whole: Reduce) -> Lam | None:
    """The slopes of the numbers of `spectral(A, K)` by the eigenvalues, where these are added or subtracted there.

    Elsewhere numbers of equal eigenvalues are equal up to their own rounding.
    """
    values = {"spectral": "eigvals", "singular": "svdvals"}.get(whole.kind)
    sums = [*subterms(whole.marks[0], Add)] if values else []
    if values is None or not any(u.kind == values for s in sums for u in subterms(s, Reduce)):
        return None
    i, j = whole.indices
    slopes = slope_by_spectrum(whole, values).body
    first = j if i.kind == j.kind else _first(i.kind)
    return None if slopes == UNKNOWN else Lam((j,), substitute(slopes, {i: first}))


def matrices_of(whole: Reduce) -> list[Lam]:
    """The matrix, and those along which it is differentiated, but for what only says numbers."""
    return [matrix_of(whole), *directions_of(whole)[len(numbers_of(whole)) :]]


def arguments_of(whole: Reduce) -> tuple[Term, ...]:
    """What a program calls it with: the matrix, and those along which it is differentiated."""
    return tuple(map(_named, (matrix_of(whole), *directions_of(whole))))


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


MOST_ARGUMENTS = {"adjugate": 2, "sqrtm": 2, "expm": 4, "eigvals": 2, "svdvals": 2, "cholesky": 2}
"""What can be called with more than a matrix, and with how many."""


def kind_of(name: str, arguments: int) -> str | None:
    """The function that a name means with so many arguments; None if it takes others.

    >>> kind_of("expm", 3), kind_of("spectral", 2), kind_of("spectral", 3)
    ('expm_along', 'spectral', None)
    """
    if name == "cholback":
        return name if arguments == 2 else None
    if name in SPECTRAL:
        return {2: name, 4: f"{name}_along"}.get(arguments)
    if not 1 <= arguments <= MOST_ARGUMENTS.get(name, 1):
        return None
    return name if arguments == 1 else f"{name}_along"


def applied(name: str, matrix: Lam, *along: Lam) -> Term:
    """A function of matrices at a matrix; with `along`, its derivative there; `name` may say so or not."""
    kind = kind_of(name.removesuffix("_along"), 1 + len(along))
    if kind is None:
        raise UnsupportedError(
            f"a derivative of {name.removesuffix('_along')} of this order is not known",
            remedy="take fewer derivatives; those of expm(A) are known up to the third",
        )
    if not along:
        return reduction(kind, matrix.params, ONE, matrix.body)
    first, *others = (apply(k, *matrix.params) for k in along)
    return reduced(kind, Lam(matrix.params, Tuple((first, matrix.body, *others))))
