"""Turns a matrix expression into the equal one that reads best: few transposes, powers, norms (`A A` is A²).

The laws that find a form at all are in `rules/matrix.egg`, where what stands between two indices is known; these are
about one expression, from the leaves up: exp(Aᵀ)ᵀ = exp(A), xᵀ x = ‖x‖², diag(w^∘-1) = diag(w)^-1.
"""

from __future__ import annotations

from combdiff.notation.matrix.expr import (
    Adjoint,
    Conjugate,
    Contraction,
    Diag,
    Diagonal,
    Entrywise,
    Function,
    Identity,
    KhatriRao,
    Kronecker,
    Leaf,
    MatrixExpr,
    Named,
    Norm,
    Number,
    OfMatrix,
    Ones,
    Pi,
    Power,
    Product,
    Reciprocal,
    Scale,
    Size,
    Sum,
    Tensor,
    Trace,
    Transpose,
    Vec,
    inverse,
    product,
    scaled,
)
from combdiff.notation.matrix.factors import cancelled, collected, gathered
from combdiff.notation.matrix.parts import is_real, nodes, parts, rebuilt
from combdiff.terms.nodes import MATRICES, TURNING
from combdiff.terms.terms import MINUS_ONE, ONE, TWO, Const, number
from combdiff.terms.types import HERMITIAN, SYMMETRIC, Map

LARGEST_POWER = 64
LONGEST_BLOCK = 2
"""A A A is A³ and A B A B is (A B)²; longer blocks that repeat stay written out."""


def readable(expr: MatrixExpr) -> MatrixExpr:
    """`expr` as a reader would write it.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL, Domain, Index
    >>> A = Leaf(fresh("A", Map((Index(Domain("A.1")), Index(Domain("A.2"))), REAL)))
    >>> readable(Transpose(Function("exp", Transpose(A)))) == Function("exp", A)
    True
    """
    expr = rebuilt(expr, [readable(part) for part in parts(expr)])
    match expr:
        case Transpose(of):
            return transposed(of)
        case Adjoint(Scale(coefficient, scalars, of)) if not coefficient.imag:
            return Scale(coefficient, tuple(s if is_real(s) else Conjugate(s) for s in scalars), Adjoint(of))
        case Function("sqrt", Power(Norm() as norm, Number(exponent), False)) if exponent == TWO:
            return norm
        case Function(name, Transpose(of)) if name != "softmax":
            return Transpose(Function(name, of))
        case Power():
            return _readable_power(expr)
        case Scale(coefficient, scalars, of):
            return _with_gathered(coefficient, scalars, of)
        case Sum(items) if not is_number(items[0]):
            return collected(items)
        case Diag(Power(of, Number(exponent) as above, True)) if exponent.is_integer and exponent.real < 0:
            return Power(Diag(of), above, entrywise=False)
        case Product() | Kronecker() | KhatriRao() | Contraction() | Trace() if _scales(expr):
            bare = rebuilt(expr, [part.of if isinstance(part, Scale) else part for part in parts(expr)])
            numbers = [number_ for scale in _scales(expr) for number_ in (Number(scale.coefficient), *scale.scalars)]
            return readable(scaled(ONE, numbers, readable(bare)))
        case Trace(Product(items)):
            half = next((h for n in range(len(items)) if (h := _half(items[n:] + items[:n]))), None)
            return expr if half is None else _squared_norm(half)
        case Product(items):
            return _readable_product(items)
        case _:
            return expr


def _scales(expr: MatrixExpr) -> list[Scale]:
    """The parts that have numbers in front."""
    return [part for part in parts(expr) if isinstance(part, Scale)]


def _readable_product(items: tuple[MatrixExpr, ...]) -> MatrixExpr:
    """A product without what cancels, as a squared norm, or with powers."""
    rest = cancelled(items)
    if rest != items:
        return readable(product(rest))
    half = _half(items)
    return _with_powers(items) if half is None or not is_column(half[-1]) else _squared_norm(half)


def _readable_power(expr: Power) -> MatrixExpr:
    """A power whose base is a transpose, a norm or an inverse, without that."""
    match expr:
        case Power(Transpose(of), Number(exponent), False) if exponent == MINUS_ONE:
            return Transpose(inverse(of))
        case Power(Transpose(of), exponent, True):
            return Transpose(Power(of, exponent, entrywise=True))
        case Power(Power(Norm() as norm, Number(inner), False), Number(outer), False) if outer.is_integer:
            return Power(norm, Number(number(inner.real * outer.real)), entrywise=False)
        case Power(Power(of, Number(inner), False), Number(outer), False) if inner == outer == MINUS_ONE:
            return of
        case _:
            return expr


def _with_gathered(coefficient: Const, scalars: tuple[MatrixExpr, ...], of: MatrixExpr) -> MatrixExpr:
    """The product with numbers, each base of them once."""
    numbers = (*scalars, of) if is_number(of) else scalars
    once = gathered(numbers)
    if once == numbers:
        return Scale(coefficient, scalars, of)
    return scaled(coefficient, once, None if is_number(of) else of)


def transposed(expr: MatrixExpr) -> MatrixExpr:
    """The transpose, outside or inside of `expr`, wherever fewer marks are needed.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL, Domain, Index
    >>> A = Leaf(fresh("A", Map((Index(Domain("A.1")), Index(Domain("A.2"))), REAL)))
    >>> transposed(Transpose(A)) == A
    True
    """
    if isinstance(expr, Scale):
        return Scale(expr.coefficient, expr.scalars, transposed(expr.of))
    outside = Transpose(expr)
    inside = _transposed_within(expr)
    return inside if inside is not None and _marks(inside) < _marks(outside) else outside


def _transposed_within(expr: MatrixExpr) -> MatrixExpr | None:
    match expr:
        case Transpose(of):
            return of
        case Adjoint(of):
            return Conjugate(of)
        case Conjugate(of):
            return Adjoint(of)
        case OfMatrix(name, of) if name in MATRICES:
            return OfMatrix(name, transposed(of)) if name in TURNING else None
        case Identity() | Number() | Size() | Diag() | Norm() | OfMatrix() | Trace():
            return expr
        case Leaf(var) if isinstance(var.kind, Map) and SYMMETRIC in var.kind.symmetries:
            return expr
        case Product(items):
            return Product(tuple(transposed(item) for item in reversed(items)))
        case Sum() | Entrywise():
            return rebuilt(expr, [transposed(part) for part in parts(expr)])
        case Scale(coefficient, scalars, of):
            return Scale(coefficient, scalars, transposed(of))
        case Function(name, of) if name != "softmax":
            return Function(name, transposed(of))
        case Power(base, exponent, entry):
            return Power(transposed(base), exponent, entry)
        case _:
            return None


def _marks(expr: MatrixExpr) -> int:
    return isinstance(expr, Transpose | Adjoint | Conjugate) + sum(_marks(part) for part in parts(expr))


def is_column(expr: MatrixExpr) -> bool:
    """Whether `expr` is known to be a vector.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> is_column(Leaf(fresh("x", REAL)))
    False
    """
    match expr:
        case Leaf(var):
            return isinstance(var.kind, Map) and var.kind.is_tensor and len(var.kind.params) == 1
        case Function(_, of) | Scale(_, _, of) | Conjugate(of):
            return is_column(of)
        case Power(base, _, True):
            return is_column(base)
        case Sum(items) | Entrywise(items):
            return is_column(items[0])
        case Product(items):
            return is_column(items[-1]) and not is_number(expr)
        case Ones() | Diagonal() | Vec():
            return True
        case Named(_, value):
            return isinstance(value.type, Map) and len(value.type.params) == 1
        case Contraction(tensor, _, slots):
            (rank, *_) = (len(node.order) for node in nodes(tensor) if isinstance(node, Tensor))
            return rank - slots == 1
        case _:
            return False


def is_number(expr: MatrixExpr) -> bool:
    """Whether `expr` is known to be a number.

    >>> is_number(Number(TWO))
    True
    """
    match expr:
        case OfMatrix(name, _) if name in MATRICES:
            return False
        case Number() | Pi() | Size() | Norm() | OfMatrix() | Trace() | Reciprocal():
            return True
        case Leaf(var) | Named(var):
            return not isinstance(var.kind, Map)
        case Power(base, _, False):
            return is_number(base)
        case Function(name, of):
            return name == "logsumexp" or is_number(of)
        case Sum(items):
            return is_number(items[0])
        case Scale(_, _, of):
            return is_number(of)
        case Product(items):
            match items[0]:
                case Transpose(of) | Adjoint(of):
                    return is_column(of) and is_column(items[-1])
                case _:
                    return False
        case _:
            return False


def _adjoint(expr: MatrixExpr) -> MatrixExpr:
    if is_real(expr):
        return transposed(expr)
    match expr:
        case Leaf(var) if isinstance(var.kind, Map) and HERMITIAN in var.kind.symmetries:
            return expr
        case Adjoint(of):
            return of
        case Transpose(of):
            return Conjugate(of)
        case Conjugate(of):
            return Transpose(of)
        case _:
            return Adjoint(expr)


def _half(items: tuple[MatrixExpr, ...]) -> tuple[MatrixExpr, ...] | None:
    """B where the product is B† B."""
    middle, odd = divmod(len(items), 2)
    if odd or any(_adjoint(a) != b for a, b in zip(items[:middle], reversed(items[middle:]), strict=True)):
        return None
    return items[middle:]


def _squared_norm(items: tuple[MatrixExpr, ...]) -> MatrixExpr:
    return Power(Norm(_with_powers(items)), Number(TWO), entrywise=False)


def _with_powers(items: tuple[MatrixExpr, ...]) -> MatrixExpr:
    """The product with equal neighbours gathered, those of powers, too: P² P is P³."""
    items = tuple(base for item in items for base in _bases(item))
    gathered: list[MatrixExpr] = []
    at = 0
    while at < len(items):
        runs = [(_repeats(items, at, length) * length, length) for length in range(1, LONGEST_BLOCK + 1)]
        covered, length = max(runs, key=lambda run: (run[0] if run[0] > run[1] else 0, -run[1]))
        block = items[at] if length == 1 else Product(items[at : at + length])
        times = covered // length
        gathered.append(block if times == 1 else Power(block, Number(number(times)), entrywise=False))
        at += covered
    return gathered[0] if len(gathered) == 1 else Product(tuple(gathered))


def _bases(item: MatrixExpr) -> tuple[MatrixExpr, ...]:
    """The factors of a whole power, others as they are."""
    match item:
        case Power(base, Number(n), False) if n.is_integer and 1 < n.real <= LARGEST_POWER:
            return (base,) * int(n.real)
        case _:
            return (item,)


def _repeats(items: tuple[MatrixExpr, ...], at: int, length: int) -> int:
    times = 1
    while items[at + times * length :][:length] == items[at:][:length]:
        times += 1
    return times
