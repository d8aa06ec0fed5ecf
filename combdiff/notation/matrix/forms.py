"""Turns results into expressions of linear algebra (paper, Eq. 47–49).

A product of entries under Σ becomes facts for egglog: which factor stands between which indices. The laws that join
them into products, traces and diagonals are in `rules/matrix.egg`; `matrix_drafting` translates there and back. A term
with index arithmetic or with an index that is read as a number has no matrix form, nor have most with more than four
indices.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from combdiff.canon.closed import derived_symmetries
from combdiff.notation.extents import size_names
from combdiff.notation.latex_names import latex_name
from combdiff.notation.matrix.check import confirmed
from combdiff.notation.matrix.drafting import Drafting
from combdiff.notation.matrix.expr import Adjoint, Leaf, MatrixExpr, Number, OfMatrix, Power, Transpose
from combdiff.notation.matrix.network import NoMatrixFormError
from combdiff.notation.matrix.parts import parts, rebuilt
from combdiff.notation.matrix.reading import readable
from combdiff.terms.nodes import TURNING
from combdiff.terms.terms import Lam, Let, Loop, Sum, Term, Tuple, Var, subterms
from combdiff.terms.types import HERMITIAN, SYMMETRIC, Domain, Map, Symmetry
from combdiff.terms.types import Number as NumberType

S = TypeVar("S")
T = TypeVar("T")


def matrix_form(term: Term) -> MatrixExpr | None:
    """The matrix form of a number, vector or matrix; None if there is none.

    >>> from combdiff.notation.matrix.printer import algebra_text
    >>> from combdiff.terms.terms import App, fresh, total
    >>> from combdiff.terms.types import REAL, Domain, Index, Map
    >>> i, A = fresh("i", Index(Domain("I"))), fresh("A", Map((Index(Domain("I")), Index(Domain("I"))), REAL))
    >>> algebra_text(matrix_form(total((i,), App(A, (i, i)))))
    'tr(A)'
    """
    return matrix_forms((term,))[0]


def matrix_forms(terms: Sequence[Term], measured: Collection[Domain] = ()) -> list[MatrixExpr | None]:
    """The matrix form of each of `terms` (in one run of egglog, which is what takes the time).

    The sizes of `measured` domains have names, as have those that the program names.
    """
    drafting = Drafting(_names(terms), measured)
    drafts = [_attempt(drafting.tensor, term) for term in terms]
    found = drafting.solve()
    formed = [None if draft is None else _attempt(draft, found) for draft in drafts]
    return [None if expr is None else readable(expr) for expr in formed]


def is_unit(term: Term) -> bool:
    """Whether it is a number or a tensor, and so may have a matrix form.

    >>> from combdiff.terms.terms import ONE
    >>> is_unit(ONE)
    True
    """
    if isinstance(term, Let | Tuple):
        return False
    kind = term.type
    return isinstance(kind, NumberType) or (isinstance(kind, Map) and (kind.is_tensor or kind.is_integers))


def forms_within(*terms: Term) -> dict[Term, MatrixExpr]:
    """The matrix forms of the numbers and tensors that results consist of: their values, and those that they share.

    >>> from combdiff.terms.terms import ONE, fresh
    >>> forms_within(Lam((fresh("x", ONE.type),), ONE))
    {Const(real=Fraction(1, 1), imag=Fraction(0, 1)): Number(value=Const(real=Fraction(1, 1), imag=Fraction(0, 1)))}

    Each has the value of its term on random numbers.

    Raises:
        CheckError: a form that was found differs from its term.
    """
    known = _symmetric_values(terms)
    return {unit: readable(_without_turns(form, known)) for unit, form in confirmed(forms_found(*terms)).items()}


def _symmetric_values(terms: Iterable[Term]) -> dict[Var, tuple[Symmetry, ...]]:
    """The shared values that are provably their transposes or adjoints: forms are compared on numbers that are not."""
    found: dict[Var, tuple[Symmetry, ...]] = {}
    for term in terms:
        for t in subterms(term):
            for var, value in t.bindings if isinstance(t, Let) else ():
                if isinstance(value, Lam) and len(value.params) == 2 and is_unit(value):
                    found[var] = derived_symmetries(value, found)
    return {var: laws for var, laws in found.items() if laws}


def _without_turns(expr: MatrixExpr, known: Mapping[Var, Sequence[Symmetry]]) -> MatrixExpr:
    """Without transposes of symmetric values, adjoints of Hermitian ones, and those of their inverses."""
    if not known:
        return expr
    expr = rebuilt(expr, [_without_turns(part, known) for part in parts(expr)])
    match expr:
        case Transpose(of) if SYMMETRIC in _laws(of, known):
            return of
        case Adjoint(of) if HERMITIAN in _laws(of, known):
            return of
        case _:
            return expr


def _laws(expr: MatrixExpr, known: Mapping[Var, Sequence[Symmetry]]) -> Sequence[Symmetry]:
    """The laws of a value, which its powers and functions such as roots have, too."""
    match expr:
        case Leaf(var):
            return known.get(var, ())
        case Power(of, Number(), False):
            return _laws(of, known)
        case OfMatrix(name, of) if name in TURNING:
            return _laws(of, known)
        case _:
            return ()


def forms_found(*terms: Term) -> dict[Term, MatrixExpr]:
    """The same before they are compared with their terms; none beside loops, whose states a matrix would be made of."""
    if any(isinstance(u, Loop) for term in terms for u in subterms(term)):
        return {}
    units = list(dict.fromkeys(unit for term in terms for unit in _units(term)))
    forms = matrix_forms(units, size_names(*terms))
    return {unit: found for unit, found in zip(units, forms, strict=True) if found is not None}


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


def _attempt(make: Callable[[S], T], of: S) -> T | None:
    try:
        return make(of)
    except NoMatrixFormError:
        return None


def _names(terms: Iterable[Term]) -> set[str]:
    """How the variables in sight are written."""
    variables: set[Var] = set()
    sizes: set[str] = set()
    for term in terms:
        variables |= term.free
        for t in subterms(term):
            match t:
                case Lam(params, _):
                    variables.update(params)
                case Let(bindings, _):
                    variables.update(var for var, _ in bindings)
                case Sum() if t.counted is not None and t.counted.sized:
                    sizes.add(t.counted.name)
    return {latex_name(name) for name in {*sizes, *(var.name for var in variables)}}
