"""Reads a matrix expression back as a term: (A B)(i, j) = Σ_k A(i, k) B(k, j), and so on, one case a node.

These are the definitions of linear algebra and of the where-clauses, and nothing here knows how a form was found. Rows
and columns are tuples of indices: none for a number, one row for a vector, a pair for the matrix of a tensor of four
slots. What is summed over, added or multiplied entry by entry must range over the same values, not only agree in size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce

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
    Unfolding,
    Value,
    Vec,
    inverse,
)
from combdiff.notation.matrix.parts import is_real, parts, replaced
from combdiff.records import dataclass
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.laws.matrices import applied
from combdiff.terms.nodes import MATRICES
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    PI,
    ZERO,
    Const,
    Delta,
    Lam,
    Term,
    Var,
    add,
    apply,
    call,
    conj,
    delta,
    factors_of,
    fresh,
    indicator,
    mul,
    number,
    power,
    proj,
    reduction,
    total,
)
from combdiff.terms.types import Index, Map, Type, is_complex, same_ranges, slot_types

Legs = tuple[Var, ...]
Kinds = tuple[Type, ...]


_ROWS = {2: 1, 4: 2}
"""How many of a tensor's slots are rows; all of them, where it is not said here."""


class NoMeaningError(Exception):
    """Shapes do not fit, as in a sum of a vector and a matrix, or the inverse of a matrix is asked for."""


@dataclass(frozen=True, slots=True)
class Entries:
    """A matrix by its entries: `at` makes the entry between row and column indices."""

    rows: Kinds
    columns: Kinds
    at: Callable[[Legs, Legs], Term]

    @property
    def shape(self) -> tuple[Kinds, Kinds]:
        """The domains of the rows and of the columns."""
        return self.rows, self.columns

    @property
    def is_number(self) -> bool:
        """Whether there are no indices."""
        return self.shape == ((), ())

    def all(self, slots: Legs) -> Term:
        """The entry at row and column indices in one list."""
        return self.at(slots[: len(self.rows)], slots[len(self.rows) :])

    def alone(self) -> Term:
        """The entry of a number."""
        _require(self.is_number)
        return self.at((), ())


def meaning(expr: MatrixExpr, kind: Type) -> Term:
    """The number or tensor of type `kind` that `expr` stands for.

    >>> from combdiff.language.printing.printer import expression_text
    >>> from combdiff.terms.types import REAL, Domain
    >>> n, m = Index(Domain("A.1")), Index(Domain("A.2"))
    >>> A, x = Leaf(fresh("A", Map((n, m), REAL))), Leaf(fresh("x", Map((n,), REAL)))
    >>> print(expression_text(meaning(Product((Transpose(A), x)), Map((m,), REAL))))
    i -> sum(i₁, A(i₁, i) * x(i₁))

    A vector is a column, a tensor of four slots a matrix of pairs. 0 alone is the zero of every shape.

    Raises:
        NoMeaningError: shapes do not fit one another, or what is found has not the shape that `kind` says.
    """
    kinds = slot_types(kind)
    legs = _legs(kinds)
    if expr == Number(ZERO):
        return Lam(legs, ZERO) if legs else ZERO
    rows = _ROWS.get(len(kinds), len(kinds))
    found = entries(expr)
    _require(_alike(found.shape, (kinds[:rows], kinds[rows:])))
    entry = found.all(legs)
    return Lam(legs, entry) if legs else entry


def entries(expr: MatrixExpr) -> Entries:
    """`expr` by its entries.

    >>> entries(Pi()).alone() == PI
    True
    """
    match expr:
        case Leaf(term) | Named(_, term):
            return _of_term(term)
        case Number(value):
            return _number(value)
        case Pi():
            return _number(PI)
        case Size(domain):
            return _number(total((fresh("i", Index(domain)),), ONE))
        case Ones(domain):
            return Entries((Index(domain),), (), lambda rows, columns: ONE)
        case Identity(domain):
            return _diagonal_matrix(entries(Ones(domain)))
        case Sum(items):
            return _by_entry(add, [entries(item) for item in items])
        case Entrywise(items):
            return _by_entry(mul, [entries(item) for item in items])
        case Product(items):
            return reduce(_product, [entries(item) for item in items])
        case Scale(coefficient, scalars, of):
            scalars, of = _with_adjugate(scalars, of)
            numbers = [entries(scalar).alone() for scalar in scalars]
            return _each(lambda entry: mul(coefficient, *numbers, entry), entries(of))
        case Transpose(of) | Adjoint(of):
            plain = entries(of)
            turned = Entries(plain.columns, plain.rows, lambda rows, columns: plain.at(columns, rows))
            return _each(conj, turned) if isinstance(expr, Adjoint) else turned
        case Conjugate(of):
            return _each(conj, entries(of))
        case _:
            return _of_functions(expr)


def _of_functions(expr: MatrixExpr) -> Entries:
    match expr:
        case Function("softmax" | "logsumexp" as name, of):
            return _of_exponentials(name, entries(of))
        case OfMatrix(name, of) if name in MATRICES:
            square = entries(of)
            whole = applied(name, _square(square))
            return Entries(square.columns, square.rows, lambda rows, columns: apply(whole, *rows, *columns))
        case OfMatrix(name, of):
            return _number(applied(name, _square(entries(of))))
        case Function(name, of):
            return _each(partial(_called, name), entries(of))
        case Power(Norm(of), Number(exponent), False) if exponent.is_integer and exponent.real % 2 == 0:
            return _number(power(_squares(entries(of)), number(exponent.real / 2)))
        case Norm(of):
            return _number(call("sqrt", _squares(entries(of))))
        case Power(base, exponent, by_entry):
            return _power(expr, entries(base), entries(exponent).alone(), by_entry)
        case Reciprocal(of):
            return _each(_reciprocal, entries(of))
        case AtMost(left, right):
            return _by_entry(lambda a, b: indicator(a, b, ONE), _spread([entries(left), entries(right)]))
        case Value(function, args, True):
            return _by_entry(partial(_applied, function), _spread([entries(arg) for arg in args]))
        case Value() | Item():
            return _of_term(_value(expr))
        case _:
            return _of_diagonals(expr)


def _of_diagonals(expr: MatrixExpr) -> Entries:
    match expr:
        case Diag(of):
            return _diagonal_matrix(entries(of))
        case Diagonal(of):
            square = entries(of)
            _require(same_ranges(square.rows, square.columns))
            return Entries(square.rows, (), lambda rows, columns: square.at(rows, rows))
        case Trace(of):
            square = entries(of)
            _require(same_ranges(square.rows, square.columns))
            legs = _legs(square.rows)
            return _number(total(legs, square.at(legs, legs)))
        case _:
            return _of_tensors(expr)


def _of_tensors(expr: MatrixExpr) -> Entries:
    match expr:
        case Tensor(var, order):
            kinds = tuple(_kinds(var)[order.index(slot)] for slot in range(1, len(order) + 1))
            split = 2 if len(order) == 4 else len(order)
            return Entries(
                kinds[:split],
                kinds[split:],
                lambda rows, columns: _entry(var, [(*rows, *columns)[n - 1] for n in order]),
            )
        case Unfolding(var, mode):
            own, others = _kinds(var)[mode - 1], _kinds(var)[: mode - 1] + _kinds(var)[mode:]
            return Entries(
                (own,), others, lambda rows, columns: _entry(var, (*columns[: mode - 1], *rows, *columns[mode - 1 :]))
            )
        case Contraction(tensor, of, slots):
            return _contracted(entries(tensor), entries(of), slots)
        case KhatriRao(left, right):
            a, b = entries(left), entries(right)
            _require(same_ranges(a.columns, b.columns))
            cut = len(a.rows)
            return Entries(
                a.rows + b.rows,
                a.columns,
                lambda rows, columns: mul(a.at(rows[:cut], columns), b.at(rows[cut:], columns)),
            )
        case Kronecker(left, right):
            return _kronecker(entries(left), entries(right))
        case Vec(of):
            whole = entries(of)
            return Entries(whole.rows + whole.columns, (), lambda rows, columns: whole.all(rows))
        case _:
            raise AssertionError(f"unknown node {type(expr).__name__}")


# --- what several nodes are made of ---------------------------------------------------------------------------------


def _require(fits: bool) -> None:
    if not fits:
        raise NoMeaningError


def _alike(a: tuple[Kinds, Kinds], b: tuple[Kinds, Kinds]) -> bool:
    """Whether two shapes are one."""
    return all(map(same_ranges, a, b))


def _kinds(term: Term) -> Kinds:
    return slot_types(term.type)


def _legs(kinds: Sequence[Type]) -> Legs:
    return tuple(fresh("i", kind) for kind in kinds)


def _entry(term: Term, slots: Sequence[Var]) -> Term:
    return apply(term, *slots) if slots else term


def _with_adjugate(scalars: tuple[MatrixExpr, ...], of: MatrixExpr) -> tuple[tuple[MatrixExpr, ...], MatrixExpr]:
    """The numbers and the matrix with adj(Z) for det(Z) Z⁻¹, which a singular Z has, too."""
    for n, scalar in enumerate(scalars):
        for z, mirrored, left in _determinants(scalar):
            found = [flipped for node, flipped in _with_conjugates(of) if node == inverse(z)]
            if len(found) == 1 and (found[0] == mirrored or is_real(z)):
                return (*scalars[:n], *left, *scalars[n + 1 :]), replaced(of, inverse(z), OfMatrix("adjugate", z))
    return scalars, of


def _determinants(scalar: MatrixExpr) -> Iterator[tuple[MatrixExpr, bool, tuple[MatrixExpr, ...]]]:
    """Each determinant that a number holds: of which matrix, whether conjugated, and the other factors."""
    match scalar:
        case OfMatrix("det", z):
            yield z, False, ()
        case Conjugate(OfMatrix("det", z)):
            yield z, True, ()
        case Function("abs2", OfMatrix("det", z) as det):
            yield z, False, (Conjugate(det),)
            yield z, True, (det,)
        case Power(base, Number(exponent), False) if exponent.is_integer and exponent.real > 1:
            others = Power(base, Number(number(exponent.real - 1)), entrywise=False)
            yield from ((z, mirrored, (*left, others)) for z, mirrored, left in _determinants(base))
        case _:
            pass


def _with_conjugates(expr: MatrixExpr, flipped: bool = False) -> Iterator[tuple[MatrixExpr, bool]]:
    """All nodes, each with whether it is conjugated there."""
    yield expr, flipped
    for part in parts(expr):
        yield from _with_conjugates(part, flipped != isinstance(expr, Adjoint | Conjugate))


def _reciprocal(c: Term) -> Term:
    return indicator(indicator(c, ZERO, ONE), ZERO, power(c, MINUS_ONE))


def _number(value: Term) -> Entries:
    return Entries((), (), lambda rows, columns: value)


def _of_term(term: Term) -> Entries:
    """A number, a vector or a matrix as it is."""
    kinds = _kinds(term)
    return Entries(kinds[:1], kinds[1:], lambda rows, columns: _entry(term, (*rows, *columns)))


def _of_exponentials(name: str, of: Entries) -> Entries:
    """softmax of a column, or of each row; logsumexp of all entries."""
    rows, columns = _legs(of.rows), _legs(of.columns)
    if name == "logsumexp":
        return _number(reduction(name, (*rows, *columns), ONE, of.at(rows, columns)))
    if not of.columns:
        whole = reduction(name, rows, ONE, of.at(rows, ()))
        return Entries(of.rows, (), lambda at, _: apply(whole, *at))
    return Entries(
        of.rows, of.columns, lambda at, place: apply(reduction(name, columns, ONE, of.at(at, columns)), *place)
    )


def _each(function: Callable[[Term], Term], of: Entries) -> Entries:
    return Entries(*of.shape, lambda rows, columns: function(of.at(rows, columns)))


def _called(name: str, entry: Term) -> Term:
    """A function of the language."""
    return call(name, _real(entry) if SCALAR_FUNCTIONS[name].of_reals else entry)


def _applied(function: Term, *given: Term) -> Term:
    """A function of numbers."""
    assert isinstance(function.type, Map), "functions are applied"
    pairs = zip(given, function.type.params, strict=True)
    return apply(function, *(x if is_complex(k) else _real(x) for x, k in pairs))


def _real(x: Term) -> Term:
    """What a function takes as real is real, though it is written with complex values: x̄ ∘ x."""
    return call("real", x) if is_complex(x.type) else x


def _by_entry(function: Callable[..., Term], items: Sequence[Entries]) -> Entries:
    _require(all(_alike(item.shape, items[0].shape) for item in items))
    return Entries(*items[0].shape, lambda rows, columns: function(*(item.at(rows, columns) for item in items)))


def _spread(items: Sequence[Entries]) -> list[Entries]:
    """Numbers among `items` as matrices of the shape of the others, the number at each entry."""
    shape = next((item.shape for item in items if not item.is_number), ((), ()))
    return [Entries(*shape, _everywhere(item.alone())) if item.is_number else item for item in items]


def _everywhere(value: Term) -> Callable[[Legs, Legs], Term]:
    return lambda rows, columns: value


def _product(a: Entries, b: Entries) -> Entries:
    _require(same_ranges(a.columns, b.rows))

    def at(rows: Legs, columns: Legs) -> Term:
        between = _legs(a.columns)
        return total(between, _at_once([a.at(rows, between), b.at(between, columns)]))

    return Entries(a.rows, b.columns, at)


def _at_once(factors: Sequence[Term]) -> Term:
    """A product under the δ of its factors: diag(v) reads no entry of another row, which may be ∞."""
    factors = [part for f in factors for part in factors_of(f)]
    found = next((f for f in factors if isinstance(f, Delta)), None)
    if found is None:
        return mul(*factors)
    return delta(found.left, found.right, _at_once([found.body if f is found else f for f in factors]))


def _squares(of: Entries) -> Term:
    legs = _legs((*of.rows, *of.columns))
    return total(legs, call("abs2", of.all(legs)))


def _diagonal_matrix(of: Entries) -> Entries:
    _require(len(of.rows) == 1 and not of.columns)
    return Entries(of.rows, of.rows, lambda rows, columns: delta(rows[0], columns[0], of.at(rows, ())))


def _power(expr: Power, base: Entries, exponent: Term, by_entry: bool) -> Entries:
    if by_entry or base.is_number:
        return _each(lambda entry: power(entry, exponent), base)
    if isinstance(expr.base, Diag):
        # a power of a diagonal matrix, its inverse among them, has the powers on the diagonal
        return _diagonal_matrix(_each(lambda entry: power(entry, exponent), entries(expr.base.of)))
    _require(isinstance(exponent, Const) and exponent.is_integer and exponent.real != 0)
    assert isinstance(exponent, Const), "required above"
    if exponent.real < 0:
        inverted = applied("inv", _square(base))
        base = Entries(base.columns, base.rows, lambda rows, columns: apply(inverted, *rows, *columns))
        exponent = number(-exponent.real)
    return reduce(_product, [base] * int(exponent.real))


def _square(of: Entries) -> Lam:
    """A square matrix as a map of two indices."""
    _require(same_ranges(of.rows, of.columns) and len(of.rows) == 1)
    rows, columns = _legs(of.rows), _legs(of.columns)
    return Lam((*rows, *columns), of.at(rows, columns))


def _value(expr: MatrixExpr) -> Term:
    """A value of an unknown map as a whole."""
    match expr:
        case Item(item, of):
            return proj(item, _value(of))
        case Value(function, args):
            return apply(function, *(meaning(arg, kind) for arg, kind in zip(args, _kinds(function), strict=True)))
        case _:
            raise AssertionError(f"{type(expr).__name__} is no value of a map")


def _contracted(tensor: Entries, of: Entries, slots: int) -> Entries:
    kinds = (*tensor.rows, *tensor.columns)
    free, bound = kinds[:-slots], kinds[-slots:]
    _require(same_ranges((*of.rows, *of.columns), bound) and len(of.rows) == 1)

    def at(rows: Legs, columns: Legs) -> Term:
        between = _legs(bound)
        return total(between, mul(tensor.all((*rows, *columns, *between)), of.all(between)))

    return Entries(free[:1], free[1:], at)


def _kronecker(a: Entries, b: Entries) -> Entries:
    cut, across = len(a.rows), len(a.columns)
    return Entries(
        a.rows + b.rows,
        a.columns + b.columns,
        lambda rows, columns: mul(a.at(rows[:cut], columns[:across]), b.at(rows[cut:], columns[across:])),
    )
