"""Turns a product of entries under Σ into facts for `rules/matrix.egg`, and what egglog found into matrix expressions.

A factor stands between the indices that it touches and is one bit; which bits touch an index, and what is to be found,
is all that egglog needs to know (the first step of the paper's `blaserize`, section 6.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from itertools import count
from typing import TYPE_CHECKING

from combdiff.notation.matrix.expr import (
    Adjoint,
    Conjugate,
    Contraction,
    Diag,
    Diagonal,
    Identity,
    KhatriRao,
    Kronecker,
    Leaf,
    MatrixExpr,
    Ones,
    Product,
    Trace,
    Transpose,
    Value,
    entrywise,
    product,
)
from combdiff.notation.matrix.tensors import Arrangement
from combdiff.records import dataclass
from combdiff.terms.conditions.guards import is_finite
from combdiff.terms.network import Network, conditions_apart, network
from combdiff.terms.terms import (
    ONE,
    App,
    Call,
    Conj,
    Const,
    Delta,
    Indicator,
    Mul,
    Pow,
    Sum,
    Term,
    Var,
    conj,
)
from combdiff.terms.types import SYMMETRIC, Domain, Index, Map, same_range

if TYPE_CHECKING:
    from egglog.bindings import TermDag

MOST_FACTORS = 12
"""A product of more factors has no matrix form: the ways to join a star of vectors grow exponentially."""
MOST_AT_AN_INDEX = 6
LARGEST_POWER = 4


class NoMatrixFormError(Exception):
    """The term has no matrix form; `matrix_form` says None."""


@dataclass(slots=True)
class Facts:
    """What several networks share: numbers for their indices, and the domains that these range over.

    >>> book = Facts()
    >>> book.index(), book.index()
    (1, 2)
    """

    domains: list[Domain] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    roots: list[str] = field(default_factory=list)
    _indices: count[int] = field(default_factory=lambda: count(1))

    def index(self) -> int:
        """A new index."""
        return next(self._indices)

    def domain(self, index: Var) -> int:
        """The number of the domain of `index`."""
        domain = index.kind.domain if isinstance(index.kind, Index) else None
        if domain is None:
            raise NoMatrixFormError
        if domain not in self.domains:
            self.domains.append(domain)
        return self.domains.index(domain)

    def root(self, factors: int, row: int, column: int) -> int:
        """Ask for the matrix of the bit set `factors`; the number that it will be found under."""
        self.roots.append(f"(Span {factors} {row} {column})")
        return len(self.roots) - 1


@dataclass(slots=True)
class FactorGraph:
    """The factors of one product between its indices; `end` is where vectors end."""

    indices: Mapping[Var, int]
    end: int
    factors: list[tuple[str | list[Arrangement], tuple[Var, ...]]] = field(default_factory=list)

    def only_atom(self, legs: tuple[Var, ...]) -> int | None:
        """The one factor, if it is all that there is and stands as it should: nothing is left for egglog."""
        match self.factors:
            case [(str() as matrix, between)] if between == legs == tuple(self.indices) and matrix.startswith("(Atom "):
                return int(matrix.removeprefix("(Atom ").removesuffix(")"))
            case _:
                return None

    def state(self, legs: tuple[Var, ...], book: Facts) -> tuple[list[int], int | None]:
        """State the facts; the roots of the parts that are numbers, and of the part that has the free indices."""
        bits = [between for _, between in self.factors] + [(v,) for v in legs]
        around = {v: sum(1 << n for n, between in enumerate(bits) if v in between) for v in self.indices}
        busiest = max((mask.bit_count() for mask in around.values()), default=0)
        if len(self.factors) > MOST_FACTORS or busiest > MOST_AT_AN_INDEX or 0 in around.values():
            raise NoMatrixFormError
        outer = [book.index() for _ in legs]
        facts = [fact for n, factor in enumerate(self.factors) for fact in self._facts(1 << n, *factor)]
        for n, (v, leg) in enumerate(zip(legs, outer, strict=True), len(self.factors)):
            facts.append(f"(Factor {1 << n} {self.indices[v]} {leg} (Identity {book.domain(v)}))")
        facts += [f"(Around {self.indices[v]} {mask} {self.end} {book.domain(v)})" for v, mask in around.items()]
        parts = _connected(around.values())
        outward = sum(1 << n for n in range(len(self.factors), len(bits)))
        closed = [book.root(part, self.end, self.end) for part in parts if not part & outward]
        if not legs:
            book.facts += facts
            return closed, None
        whole = sum(part for part in parts if part & outward)
        row, column = (*outer, self.end)[:2]
        book.facts += [*facts, f"(Outer {whole} {row} {column} {self.end})"]
        return closed, book.root(whole, row, column)

    def _facts(self, bit: int, matrix: str | list[Arrangement], legs: tuple[Var, ...]) -> list[str]:
        if not isinstance(matrix, str):
            return [f"({a.relation} {bit} {' '.join(str(self.indices[v]) for v in a.legs)} {a.matrix})" for a in matrix]
        match [self.indices[v] for v in legs]:
            case [p]:
                return [f"(Factor {bit} {p} {self.end} {matrix})"]
            case [p, q] if p == q:
                return [f"(Loop {bit} {p} {self.end} {matrix})"]
            case [p, q]:
                return [f"(Factor {bit} {p} {q} {matrix})"]
            case _:
                raise NoMatrixFormError


def _connected(masks: Iterable[int]) -> list[int]:
    """Unions of the masks that overlap, in the order of their first bits."""
    parts: list[int] = []
    for mask in masks:
        touching = [part for part in parts if part & mask]
        parts = [part for part in parts if not part & mask]
        parts.append(mask | sum(touching))
    return sorted(parts, key=lambda part: part & -part)


def matrix_network(term: Term) -> Network:
    """`term` as a product under Σ, powers and |·|² of entries and conditions taken apart.

    >>> from combdiff.terms.terms import fresh, mul
    >>> from combdiff.terms.types import REAL
    >>> [f.name for f in matrix_network(mul(fresh("x", REAL), fresh("y", REAL))).factors]
    ['x', 'y']
    """
    return network(term, _parts, lambda _: True)


def _parts(t: Term) -> Sequence[Term]:
    match t:
        case Conj(Mul(factors)):
            return [conj(f) for f in factors]
        case Conj(Sum(bound, body)):
            return [Sum(bound, conj(body))]
        # what may be infinite stays under its condition: 0 times infinity is no number
        case Indicator(left, _, body) if isinstance(left.type, Index) or not is_finite(body):
            return (t,)
        case Conj(Delta(left, right, body)):
            return [Delta(left, right, ONE), conj(body)]
        case Pow(base, Const(n, _) as exponent) if exponent.is_integer and 1 < n <= LARGEST_POWER and _varies(base):
            return [base] * int(n)
        case Call("abs2", (z,)) if _varies(z):
            return [conj(z), z]
        case _:
            return conditions_apart(t)


def in_own_slots(entry: App) -> bool:
    """Whether indices range over the slots that they stand in, rather than over a part of them.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> x, i = fresh("x", Map((Index(Domain("x.1")),), REAL)), fresh("i", Index(Domain("B", lower=0, upper=1)))
    >>> in_own_slots(App(x, (i,)))
    False
    """
    assert isinstance(entry.function.type, Map), "only maps are applied"
    slots = zip(entry.args, entry.function.type.params, strict=True)
    return all(same_range(a.kind, kind) for a, kind in slots if isinstance(a, Var))


def _varies(term: Term) -> bool:
    return any(isinstance(v.kind, Index) for v in term.free)


@dataclass(frozen=True, slots=True)
class Found:
    """What egglog found, by the numbers of `Facts.root`; `atom` gives the factors."""

    roots: list[tuple[TermDag, int]]
    domains: list[Domain]
    atom: Callable[[int, Found], MatrixExpr]
    order: dict[MatrixExpr, int] = field(default_factory=dict)

    def __call__(self, root: int) -> MatrixExpr:
        """The matrix expression under a root; NoMatrixFormError if no law led there."""
        return self._read(*self.roots[root])

    def scalar(self, root: int) -> MatrixExpr:
        """The same where it is known to be a number: of xᵀ y = yᵀ x the one that begins as the program does."""
        match self(root):
            case Product((Transpose(left), right)) if not isinstance(left, Ones) and (
                isinstance(right, Ones) or self._rank(right) < self._rank(left)
            ):
                return Product((Transpose(right), left))
            case Product((Transpose(left), Leaf(var) as between, right)) if self._rank(right) < self._rank(left) and (
                isinstance(var.kind, Map) and SYMMETRIC in var.kind.symmetries
            ):
                return Product((Transpose(right), between, left))
            case expr:
                return expr

    def _read(self, dag: TermDag, term: int) -> MatrixExpr:
        from egglog.bindings import TermApp

        node = dag.get(term)
        assert isinstance(node, TermApp), "a matrix is an application"
        if node.name in _OF_A_NUMBER:
            return _OF_A_NUMBER[node.name](self, _number(dag, node.args[0]))
        if node.name == "Span":
            raise NoMatrixFormError
        return self._in_reading_order(_OF_MATRICES[node.name]([self._read(dag, arg) for arg in node.args]))

    def factor(self, number: int) -> MatrixExpr:
        """The factor that egglog knows by its number."""
        expr = self.atom(number, self)
        self.order.setdefault(expr, number)
        return expr

    def _in_reading_order(self, expr: MatrixExpr) -> MatrixExpr:
        """Of equals that cost the same, the one that begins as the program does: tr(A B) = tr(B A)."""
        match expr:
            case Trace(Product(items)):
                turns = [items[n:] + items[:n] for n in range(len(items))]
                return Trace(Product(min(turns, key=lambda turn: self._rank(turn[0]))))
            case _:
                return expr

    def _rank(self, item: MatrixExpr) -> tuple[bool, int, bool]:
        """Values such as ∇R(x) come first, then what was read first; a transpose comes before its matrix."""
        turned = isinstance(item, Transpose | Adjoint)
        bare = item.of if isinstance(item, Transpose | Adjoint | Conjugate) else item
        return not isinstance(bare, Value), self.order.get(bare, len(self.order)), not turned


Draft = Callable[[Found], MatrixExpr]
"""A matrix form that waits for the products that egglog finds."""


def _number(dag: TermDag, term: int) -> int:
    from egglog.bindings import Int, TermLit

    node = dag.get(term)
    assert isinstance(node, TermLit), "a literal"
    assert isinstance(node.value, Int), "a whole number"
    return node.value.value


_OF_A_NUMBER: Mapping[str, Callable[[Found, int], MatrixExpr]] = {
    "Atom": lambda found, n: found.factor(n),
    "Ones": lambda found, n: Ones(found.domains[n]),
    "Identity": lambda found, n: Identity(found.domains[n]),
}
_OF_MATRICES: Mapping[str, Callable[[list[MatrixExpr]], MatrixExpr]] = {
    "Product": product,
    "Entrywise": entrywise,
    "Transpose": lambda of: Transpose(of[0]),
    "Adjoint": lambda of: Adjoint(of[0]),
    "Conjugate": lambda of: Conjugate(of[0]),
    "Diag": lambda of: Diag(of[0]),
    "Diagonal": lambda of: Diagonal(of[0]),
    "Trace": lambda of: Trace(of[0]),
    "Applied": lambda of: Contraction(of[0], of[1], 1),
    "Contraction": lambda of: Contraction(of[0], of[1], 2),
    "Permuted": lambda of: of[0],
    "KhatriRao": lambda of: KhatriRao(of[0], of[1]),
    "Kronecker": lambda of: Kronecker(of[0], of[1]),
}
