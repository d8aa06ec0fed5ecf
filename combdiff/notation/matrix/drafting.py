"""Turns terms into matrix forms that wait for egglog: facts for `rules/matrix.egg`, and what to make of its findings.

A number, vector or matrix is a sum of products; each product is a network of factors between indices. A factor that is
a function of entries is drafted on its own. A term of a sum that has no matrix form gets a name, if others have one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import field
from itertools import chain, count
from typing import TYPE_CHECKING

from combdiff.canon.canonical import laws_of_matrix
from combdiff.canon.repeats import form
from combdiff.notation.latex_names import latex_name
from combdiff.notation.matrix.expr import (
    AtMost,
    Conjugate,
    Function,
    Item,
    Leaf,
    MatrixExpr,
    Named,
    Norm,
    OfMatrix,
    Pi,
    Power,
    Reciprocal,
    Size,
    Transpose,
    Value,
    inverse,
    raised,
    scaled,
    summed,
)
from combdiff.notation.matrix.network import (
    Draft,
    FactorGraph,
    Facts,
    Found,
    NoMatrixFormError,
    in_own_slots,
    matrix_network,
)
from combdiff.notation.matrix.slots import of_more_slots, tensor_terms, unfolded
from combdiff.notation.matrix.tensors import RELATIONS, Arrangement, arrangements, sum_arrangements
from combdiff.records import dataclass
from combdiff.simplify.contraction.egraph import session
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.nodes import ALONG, MATRICES, OF_MATRICES, TURNING
from combdiff.terms.terms import (
    ONE,
    ZERO,
    Add,
    App,
    Call,
    Conj,
    Const,
    Delta,
    Diff,
    Indicator,
    Lam,
    Pow,
    Proj,
    Reduce,
    Term,
    Var,
    add,
    alpha_equal,
    apply,
    fresh,
    substitute,
)
from combdiff.terms.types import HERMITIAN, SYMMETRIC, Domain, Index, Map, Number, is_complex

if TYPE_CHECKING:
    from egglog.bindings import TermDag


@dataclass(slots=True)
class Drafting:
    """Facts for egglog, gathered from terms; `atoms` are the factors that egglog need not look into.

    `taken` are the names that are in use, as LaTeX writes them; the sizes of `measured` domains have names.
    """

    taken: set[str] = field(default_factory=set)
    measured: Collection[Domain] = ()
    book: Facts = field(default_factory=Facts)
    atoms: list[Draft] = field(default_factory=list)
    named: dict[Hashable, Named] = field(default_factory=dict)
    numbered: dict[tuple[Term, tuple[Var, ...]] | MatrixExpr, int] = field(default_factory=dict)

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
        if isinstance(term, Add):
            return self._sum(term, legs)
        if term == ZERO:
            return lambda found: scaled(ZERO, [], None)
        if len(legs) > 2:
            return of_more_slots(term, legs, self.expression)
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

    def _sum(self, sum_: Add, legs: tuple[Var, ...]) -> Draft:
        """Term by term; those that have no form are gathered under a name."""
        drafts: list[tuple[Term, Draft | None]] = []
        for term in sum_.terms:
            try:
                drafts.append((term, self.expression(term, legs)))
            except NoMatrixFormError:
                drafts.append((term, None))
        names: dict[tuple[Term, ...], Named] = {}

        def put_together(found: Found) -> MatrixExpr:
            forms: list[MatrixExpr | None] = []
            for _, draft in drafts:
                try:
                    forms.append(None if draft is None else draft(found))
                except NoMatrixFormError:
                    forms.append(None)
            without = tuple(term for (term, _), form in zip(drafts, forms, strict=True) if form is None)
            if len(without) == len(forms):
                raise NoMatrixFormError
            if without and without not in names:
                names[without] = self._named(add(*without), legs)
            # the name stands where the first of those terms stood
            shown = [names[without] if form is None else form for form in forms]
            return summed(form for n, form in enumerate(shown) if forms[n] is not None or None not in forms[:n])

        return put_together

    def _named(self, term: Term, legs: tuple[Var, ...]) -> Named:
        value = Lam(legs, term) if legs else term
        key, variables = form(value)
        known = self.named.get((key, tuple(variables)))
        if known is not None:
            return known
        if any(isinstance(v.kind, Index) for v in value.free) or len(legs) > 2:
            raise NoMatrixFormError
        letters = ("stcgh", "vwyzgh", "MNKLGH")[len(legs)]
        names = chain(letters, (f"{letters[0]}{k}" for k in count(1)))
        name = next(name for name in names if latex_name(name) not in self.taken)
        self.taken.add(latex_name(name))
        found = self.named[key, tuple(variables)] = Named(fresh(name, value.type), value)
        return found

    def _network(self, term: Term, legs: tuple[Var, ...]) -> tuple[Const, list[Draft], FactorGraph]:
        product_ = matrix_network(term)
        counted = [v for v in product_.indices if not any(v in f.free for f in product_.factors)]
        scalars = [self._size(v) for v in counted]
        indices = [v for v in (*legs, *product_.indices) if v not in counted]
        graph = FactorGraph({v: self.book.index() for v in indices}, self.book.index())
        for factor in product_.factors:
            free = [v for v in graph.indices if v in factor.free]
            if len(free) < sum(isinstance(v.kind, Index) for v in factor.free):
                raise NoMatrixFormError
            if free:
                graph.factors.append(self._factor(factor, tuple(free)))
            else:
                scalars.append(self._scalar(factor))
        return product_.coefficient, scalars, graph

    def _size(self, index: Var) -> Draft:
        """Σ 1 over an index, if its size has a name."""
        domain = index.kind.domain if isinstance(index.kind, Index) else None
        if domain is None or not (domain.sized or domain in self.measured):
            raise NoMatrixFormError
        size = Size(domain)
        return lambda found: size

    def _factor(self, factor: Term, free: tuple[Var, ...]) -> tuple[str | list[Arrangement], tuple[Var, ...]]:
        """A factor as egglog sees it, and the indices that it stands between."""
        match factor:
            case App(Var(), args) | Conj(App(Var(), args)) if len(free) > 2 or len(args) > 2:
                return self._tensor_entry(factor, args)
            case Add() if len(free) in RELATIONS:
                return self._sum_of_tensors(factor, free), free
            case _:
                return self._matrix_entry(factor, free)

    def _tensor_entry(self, factor: Term, args: tuple[Term, ...]) -> tuple[list[Arrangement], tuple[Var, ...]]:
        entry = factor.term if isinstance(factor, Conj) else factor
        assert isinstance(entry, App), "an entry"
        head, legs = entry.function, tuple(a for a in args if isinstance(a, Var))
        if not (isinstance(head, Var) and isinstance(head.kind, Map) and head.kind.is_tensor and in_own_slots(entry)):
            raise NoMatrixFormError
        if len(legs) != len(args) or len(legs) not in RELATIONS:
            raise NoMatrixFormError
        return list(arrangements(head, legs, isinstance(factor, Conj), self._named_atom)), legs

    def _sum_of_tensors(self, factor: Add, free: tuple[Var, ...]) -> list[Arrangement]:
        terms = tensor_terms(factor, free)
        found = [] if terms is None else list(sum_arrangements(terms, free, self._named_atom))
        try:
            drafts = unfolded(factor, free, self.expression) if len(free) == 3 else []
        except NoMatrixFormError:
            drafts = []
        found += [Arrangement("Unfolded", legs, self._new_atom(draft)) for legs, draft in drafts]
        if not found:
            raise NoMatrixFormError
        return found

    def _new_atom(self, draft: Draft) -> str:
        self.atoms.append(draft)
        return f"(Atom {len(self.atoms) - 1})"

    def _named_atom(self, expr: MatrixExpr) -> str:
        number = self.numbered.get(expr)
        if number is None:
            number = self.numbered[expr] = len(self.atoms)
            self.atoms.append(lambda found: expr)
        return f"(Atom {number})"

    def _matrix_entry(self, factor: Term, free: tuple[Var, ...]) -> tuple[str, tuple[Var, ...]]:
        match factor:
            case Delta(Var() as i, Var() as j, _) if i.kind == j.kind:
                return f"(Identity {self.book.domain(i)})", (i, j)
            case Conj(inner):
                matrix, legs = self._matrix_entry(inner, free)
                return f"(Conjugate {matrix})", legs
            case App(Reduce(kind, _) as whole, (Var() as p, Var() as q)) if kind in MATRICES:
                return self._atom(whole, lambda: self._of_matrix(whole)), (p, q)
            case App(head, args) if isinstance(head.type, Map) and head.type.is_tensor and not isinstance(head, Reduce):
                legs = tuple(a for a in args if isinstance(a, Var))
                if len(legs) < len(args) or len(legs) > 2 or not in_own_slots(factor):
                    raise NoMatrixFormError
                return self._atom(head, lambda: self._value(head)), legs
            case _:
                return self._atom(factor, lambda: self._entrywise(factor, free), free), free

    def _atom(self, term: Term, draft: Callable[[], Draft], legs: tuple[Var, ...] = ()) -> str:
        number = self.numbered.get((term, legs))
        if number is None:
            made = draft()
            number = self.numbered[term, legs] = len(self.atoms)
            self.atoms.append(made)
            symmetries = term.type.symmetries if isinstance(term.type, Map) and isinstance(term, Var) else ()
            if isinstance(term, Reduce) and term.kind in TURNING:
                symmetries = laws_of_matrix(term, {}, ())
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
            case Call(name, args) if args:
                function = _of_several(name, args)
                given = [self.expression(a, () if a.free.isdisjoint(free) else free) for a in args]
                return lambda found: Value(function, tuple(d(found) for d in given), entrywise=True)
            case Indicator(left, right, body) if body == ONE and isinstance(left.type, Number):
                sides = [self.expression(side, () if side.free.isdisjoint(free) else free) for side in (left, right)]
                return lambda found: AtMost(sides[0](found), sides[1](found))
            case Pow(base, exponent) if exponent.free.isdisjoint(free):
                below, above = self.expression(base, free), self.expression(exponent, ())
                return lambda found: Power(below(found), above(found), entrywise=True)
            case App(Reduce("softmax", _) as whole, (Var() as k,)) if (
                whole.mark == ONE and k in free and k not in whole.free
            ):
                rows = tuple(v for v in free if v != k)
                along = self.expression(substitute(whole.body, {whole.indices[0]: k}), (*rows, k))
                if free[-1] == k:
                    return lambda found: Function("softmax", along(found))
                return lambda found: Transpose(Function("softmax", along(found)))
            case App(function, args) if _is_unknown(function) and not any(isinstance(a.type, Map) for a in args):
                inners = [self.expression(a, () if a.free.isdisjoint(free) else free) for a in args]
                return lambda found: Value(function, tuple(d(found) for d in inners), entrywise=True)
            case _:
                raise NoMatrixFormError

    def _of_matrix(self, whole: Reduce) -> Draft:
        """A function of a matrix: an inverse, an adjugate as that times the determinant, a determinant."""
        if whole.kind in ALONG:
            raise NoMatrixFormError
        of = self.expression(whole.body, whole.indices)
        match whole.kind:
            case "inv":
                return lambda found: inverse(of(found))
            case "adjugate":
                return lambda found: scaled(ONE, [OfMatrix("det", of(found))], inverse(of(found)))
            case name:
                return lambda found: OfMatrix(name, of(found))

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
            case Call(name, args):
                of_several, parts = _of_several(name, args), [self.expression(a, ()) for a in args]
                return lambda found: Value(of_several, tuple(d(found) for d in parts))
            case Pow(base, exponent):
                below, above = self.expression(base, ()), self.expression(exponent, ())
                return lambda found: Power(below(found), above(found), entrywise=False)
            case Add():
                return self.expression(factor, ())
            case Indicator(_, _, Pow(Reduce("norm") as norm, Const() as n)) if _is_guarded(factor, norm) and n.real < 0:
                length = self.expression(norm, ())
                return lambda found: raised(Reciprocal(length(found)), int(-n.real))
            case Reduce(kind, _) if kind in OF_MATRICES:
                return self._of_matrix(factor)
            case Reduce("norm" | "logsumexp" as kind, _) if factor.mark == ONE and len(factor.indices) <= 2:
                of = self.expression(factor.body, factor.indices)
                return lambda found: Norm(of(found)) if kind == "norm" else Function(kind, of(found))
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
            with session(("matrix",)) as laws:
                roots = laws.run(book.facts, book.roots, "matrix*").roots
        return Found(roots, book.domains, lambda number, found: self.atoms[number](found))


def _is_guarded(t: Indicator, norm: Reduce) -> bool:
    """Whether `t` is its body where 0 < norm, and else 0."""
    match t:
        case Indicator(Indicator(Reduce("norm") as compared, right, held), at_most, _):
            return right == at_most == ZERO and held == ONE and alpha_equal(compared, norm)
        case _:
            return False


def _is_unknown(function: Term) -> bool:
    match function:
        case Var():
            return isinstance(function.kind, Map) and not function.kind.is_array
        case Diff(_, of):
            return _is_unknown(of) or isinstance(of, Var)
        case _:
            return False


def _of_several(name: str, args: Sequence[Term]) -> Term:
    """A function of several numbers as a map, for what it is applied to entry by entry."""
    if SCALAR_FUNCTIONS[name].orders:
        raise NoMatrixFormError
    params = tuple(fresh(f"v{n}", a.type) for n, a in enumerate(args))
    return Lam(params, Call(name, params))
