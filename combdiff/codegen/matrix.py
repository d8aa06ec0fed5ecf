"""Turns terms whose contractions are all of two indices into expressions of linear algebra (paper, Eq. 47–49).

A product of entries under Σ becomes facts for egglog: which factor stands between which two indices. The laws that
join them into products, traces and diagonals are in `rules/matrix.egg`; here is the translation there and back. A term
with a tensor of three indices, with index arithmetic or with an index that is read as a number has no matrix form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from combdiff.codegen.matrix_expr import (
    Conjugate,
    Function,
    Item,
    Leaf,
    MatrixExpr,
    Pi,
    Power,
    Value,
    scaled,
    summed,
)
from combdiff.codegen.matrix_network import Book, Found, Network, NoMatrixFormError, flattened
from combdiff.language.terms import (
    ONE,
    Add,
    App,
    Call,
    Conj,
    Const,
    Delta,
    Diff,
    Lam,
    Let,
    Pow,
    Proj,
    Term,
    Tuple,
    Var,
    apply,
    fresh,
    mul,
)
from combdiff.language.types import HERMITIAN, SYMMETRIC, Index, Map, Number, is_complex
from combdiff.simplify.egraph import session

if TYPE_CHECKING:
    from egglog.bindings import TermDag


T = TypeVar("T")
Draft = Callable[[Found], MatrixExpr]
"""A matrix form that waits for the products that egglog finds."""


def matrix_form(term: Term) -> MatrixExpr | None:
    """The matrix form of a number, vector or matrix; None if there is none.

    >>> from combdiff.codegen.matrix_text import algebra_text
    >>> from combdiff.language.terms import total
    >>> from combdiff.language.types import REAL, Domain
    >>> i, A = fresh("i", Index(Domain("I"))), fresh("A", Map((Index(Domain("I")), Index(Domain("I"))), REAL))
    >>> algebra_text(matrix_form(total((i,), App(A, (i, i)))))
    'tr(A)'
    """
    return matrix_forms((term,))[0]


def matrix_forms(terms: Sequence[Term]) -> list[MatrixExpr | None]:
    """The matrix form of each of `terms` (in one run of egglog, which is what takes the time)."""
    drafting = _Drafting()
    drafts = [_attempt(drafting.tensor, term) for term in terms]
    found = drafting.solve()
    return [None if draft is None else _attempt(draft, found) for draft in drafts]


def is_unit(term: Term) -> bool:
    """Whether it is a number or a tensor, and so may have a matrix form.

    >>> is_unit(ONE)
    True
    """
    if isinstance(term, Let | Tuple):
        return False
    return isinstance(term.type, Number) or (isinstance(term.type, Map) and term.type.is_tensor)


def forms_within(term: Term) -> dict[Term, MatrixExpr]:
    """The matrix forms of the numbers and tensors that a result consists of: its values, and those that it shares.

    >>> forms_within(Lam((fresh("x", ONE.type),), ONE))
    {Const(real=Fraction(1, 1), imag=Fraction(0, 1)): Number(value=Const(real=Fraction(1, 1), imag=Fraction(0, 1)))}
    """
    units = list(dict.fromkeys(_units(term)))
    return {unit: found for unit, found in zip(units, matrix_forms(units), strict=True) if found is not None}


def _units(term: Term) -> Iterator[Term]:
    match term:
        case Let(bindings, body):
            for _, value in bindings:
                yield from _units(value)
            yield from _units(body)
        case Tuple(items):
            for item in items:
                yield from _units(item)
        case Lam(_, body) if isinstance(body, Let) or not is_unit(term):
            yield from _units(body)
        case _ if is_unit(term):
            yield term


S = TypeVar("S")


def _attempt(make: Callable[[S], T], of: S) -> T | None:
    try:
        return make(of)
    except NoMatrixFormError:
        return None


@dataclass(slots=True)
class _Drafting:
    """Facts for egglog, gathered from terms; `atoms` are the factors that egglog need not look into."""

    book: Book = field(default_factory=Book)
    atoms: list[Draft] = field(default_factory=list)
    numbered: dict[Term, int] = field(default_factory=dict)

    def tensor(self, term: Term) -> Draft:
        """A number, a vector or a matrix."""
        if isinstance(term, Lam) and all(isinstance(p.kind, Index) and p.kind.domain for p in term.params):
            return self.expression(term.body, term.params)
        kind = term.type
        if not isinstance(kind, Map):
            return self.expression(term, ())
        if isinstance(term, Lam) or not kind.is_tensor:
            raise NoMatrixFormError
        legs = tuple(fresh("i", p) for p in kind.params)
        return self.expression(apply(term, *legs), legs)

    def expression(self, term: Term, legs: tuple[Var, ...]) -> Draft:
        """A number under the free indices `legs`, as a matrix with these rows and columns."""
        if len(legs) > 2:
            raise NoMatrixFormError
        if isinstance(term, Add):
            drafts = [self.expression(t, legs) for t in term.terms]
            return lambda found: summed(draft(found) for draft in drafts)
        coefficient, scalars, network = self._network(term, legs)
        alone = network.only_atom(legs)
        if alone is not None:
            return lambda found: scaled(coefficient, [s(found) for s in scalars], found.factor(alone))
        closed, open_ = network.state(legs, self.book)
        return lambda found: scaled(
            coefficient,
            [*(scalar(found) for scalar in scalars), *map(found.scalar, closed)],
            None if open_ is None else found(open_),
        )

    def _network(self, term: Term, legs: tuple[Var, ...]) -> tuple[Const, list[Draft], Network]:
        summed_over, factors = flattened(term)
        coefficient = ONE
        scalars: list[Draft] = []
        network = Network({v: self.book.index() for v in (*legs, *summed_over)}, self.book.index())
        for factor in factors:
            if isinstance(factor, Const):
                product_ = mul(coefficient, factor)
                assert isinstance(product_, Const), "numbers multiply to a number"
                coefficient = product_
                continue
            free = [v for v in network.indices if v in factor.free]
            if len(free) < sum(isinstance(v.kind, Index) for v in factor.free):
                raise NoMatrixFormError
            if free:
                network.factors.append(self._factor(factor, tuple(free)))
            else:
                scalars.append(self._scalar(factor))
        return coefficient, scalars, network

    def _factor(self, factor: Term, free: tuple[Var, ...]) -> tuple[str, tuple[Var, ...]]:
        """A factor as egglog sees it, and the indices that it stands between."""
        match factor:
            case Delta(Var() as i, Var() as j, _) if i.kind == j.kind:
                return f"(Identity {self.book.domain(i)})", (i, j)
            case Conj(inner):
                matrix, legs = self._factor(inner, free)
                return f"(Conjugate {matrix})", legs
            case App(head, args) if isinstance(head.type, Map) and head.type.is_tensor:
                legs = tuple(a for a in args if isinstance(a, Var))
                if len(legs) < len(args) or len(legs) > 2:
                    raise NoMatrixFormError
                return self._atom(head, lambda: self._value(head)), legs
            case _:
                return self._atom(factor, lambda: self._entrywise(factor, free)), free

    def _atom(self, term: Term, draft: Callable[[], Draft]) -> str:
        number = self.numbered.get(term)
        if number is None:
            made = draft()
            number = self.numbered[term] = len(self.atoms)
            self.atoms.append(made)
            symmetries = term.type.symmetries if isinstance(term.type, Map) and isinstance(term, Var) else ()
            for law, holds in (
                ("Real", not is_complex(term.type)),
                ("Symmetric", SYMMETRIC in symmetries),
                ("Hermitian", HERMITIAN in symmetries),
            ):
                if holds:
                    self.book.facts.append(f"({law} (Atom {number}))")
        return f"(Atom {number})"

    def _entrywise(self, factor: Term, free: tuple[Var, ...]) -> Draft:
        """A factor that is a function of entries: exp(x(i)), x(i) + y(i), …"""
        match factor:
            case Add():
                return self.expression(factor, free)
            case Call(name, (arg,)):
                inner = self.expression(arg, free)
                return lambda found: Function(name, inner(found))
            case Pow(base, exponent) if exponent.free.isdisjoint(free):
                below, above = self.expression(base, free), self.expression(exponent, ())
                return lambda found: Power(below(found), above(found), entrywise=True)
            case App(function, args) if _is_unknown(function) and not any(isinstance(a.type, Map) for a in args):
                inners = [self.expression(a, () if a.free.isdisjoint(free) else free) for a in args]
                return lambda found: Value(function, tuple(d(found) for d in inners), entrywise=True)
            case _:
                raise NoMatrixFormError

    def _scalar(self, factor: Term) -> Draft:
        """A factor without free indices."""
        match factor:
            case Conj(inner):
                conjugated = self._scalar(inner)
                return lambda found: Conjugate(conjugated(found))
            case Call("pi", ()):
                return lambda found: Pi()
            case Call(name, (arg,)):
                inner_ = self.expression(arg, ())
                return lambda found: Function(name, inner_(found))
            case Pow(base, exponent):
                below, above = self.expression(base, ()), self.expression(exponent, ())
                return lambda found: Power(below(found), above(found), entrywise=False)
            case Add():
                return self.expression(factor, ())
            case _:
                return self._value(factor)

    def _value(self, term: Term) -> Draft:
        """A variable, a value of an unknown map or of its derivative, or an item of a tuple of such."""
        if any(isinstance(v.kind, Index) for v in term.free):
            raise NoMatrixFormError
        match term:
            case Var():
                return lambda found: Leaf(term)
            case Proj(item, of):
                items = self._value(of)
                return lambda found: Item(item, items(found))
            case App(function, args) if _is_unknown(function):
                drafts = [self.tensor(a) for a in args]
                return lambda found: Value(function, tuple(d(found) for d in drafts))
            case _:
                raise NoMatrixFormError

    def solve(self) -> Found:
        """Let egglog find the products."""
        book = self.book
        roots: list[tuple[TermDag, int]] = []
        if book.roots:
            roots = session(("matrix",)).run("\n".join(book.facts), book.roots, "(saturate (run matrix))").roots
        return Found(roots, book.domains, lambda number, found: self.atoms[number](found))


def _is_unknown(function: Term) -> bool:
    match function:
        case Var():
            return isinstance(function.kind, Map) and not function.kind.is_tensor
        case Diff(_, of):
            return _is_unknown(of) or isinstance(of, Var)
        case _:
            return False
