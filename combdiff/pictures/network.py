"""Reads the contraction networks of a result: for each term of a sum, its tensors, and the indices that join them.

What is drawn is decided here, and how, in `layout` and `drawing`. A factor that is no tensor, such as a sum in brackets,
becomes a node with a name, and the name a row of its own. An expression such as k + b is an index too, which a small
node joins with k and b.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from combdiff.codegen.latex_names import Scope
from combdiff.codegen.latex_terms import number_latex, term_latex
from combdiff.codegen.signature import result_of
from combdiff.language.terms import (
    ONE,
    Add,
    App,
    Conj,
    Const,
    Delta,
    Indicator,
    Lam,
    Mul,
    Pow,
    Sum,
    Term,
    Var,
    apply,
    fresh,
    mul,
    neg,
    split_coefficient,
)
from combdiff.language.types import Index, Map, Number

TENSOR, CONDITION, ARITHMETIC, VALUE = "tensor", "condition", "arithmetic", "value"
"""What a node is: a tensor; a δ or an indicator; the sum that an index such as k + b is; any other factor."""


@dataclass(frozen=True, slots=True)
class Node:
    """A factor, as LaTeX; `slots` are the numbers of the edges that it has, in the order of its indices."""

    label: str
    kind: str
    slots: tuple[int, ...]
    conj: bool = False


@dataclass(frozen=True, slots=True)
class Edge:
    """An index, as LaTeX. `open`: it is not summed over, so that a leg ends in nothing; also a fixed number is."""

    label: str
    open: bool = False


@dataclass(frozen=True, slots=True)
class Network:
    """One term: a sign, a factor (LaTeX, may be empty), nodes, and the edges that their slots number."""

    minus: bool
    factor: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    def ends(self, edge: int) -> list[int]:
        """The nodes that an edge reaches, once for each slot."""
        return [n for n, node in enumerate(self.nodes) for slot in node.slots if slot == edge]


@dataclass(frozen=True, slots=True)
class Row:
    """`head` = the sum of the terms; the head is LaTeX, such as P_{r,s}."""

    head: str
    terms: tuple[Network, ...]


def rows_of(term: Term, name: str) -> list[Row]:
    """The definitions and the results of a derivation, each as a sum of networks; results are called `name`.

    >>> from combdiff.language.types import REAL, Domain
    >>> i, j = (fresh(c, Index(Domain("A.1"))) for c in "ij")
    >>> A, x = fresh("A", Map((i.kind, j.kind), REAL)), fresh("x", Map((j.kind,), REAL))
    >>> (row,) = rows_of(Lam((A, x), Lam((i,), Sum((j,), Mul((App(A, (i, j)), App(x, (j,))))))), "g")
    >>> (network,) = row.terms
    >>> [node.label for node in network.nodes], network.edges
    (['A', 'x'], (Edge(label='i', open=True), Edge(label='j', open=False)))
    """
    parts = result_of(term)
    sketch = _Sketch(Scope().bind(parts.params))
    for var, value in parts.bindings:
        sketch.scope = sketch.scope.bind((var,))
        sketch.row(sketch.scope[var], value)
    for output in parts.outputs:
        sketch.row(name, output)
    return sketch.rows


@dataclass(slots=True)
class _Sketch:
    """The rows so far; a factor that is no tensor adds one below them."""

    scope: Scope
    rows: list[Row] = field(default_factory=list)
    named: dict[Term, str] = field(default_factory=dict)

    def row(self, name: str, value: Term) -> None:
        value = _spelled(value)
        params: list[Var] = []
        while isinstance(value, Lam):
            params += value.params
            value = value.body
        scope = self.scope.bind(params)
        slots = [scope[p] for p in params]
        place = len(self.rows)
        self.rows.append(Row("", ()))
        terms = value.terms if isinstance(value, Add) else (value,)
        networks = tuple(_Reading(self, scope).network(t) for t in terms)
        base = f"{{{name}}}" if "_" in name else name
        self.rows[place] = Row(f"{base}_{{{','.join(slots)}}}" if slots else name, networks)

    def name_of(self, factor: Term, scope: Scope) -> str:
        """A name for a factor that is a sum, which becomes a row."""
        known = self.named.get(factor)
        if known is None:
            var = fresh(f"g{len(self.named) + 1}", factor.type)
            self.scope = self.scope.bind((var,))
            known = self.named[factor] = self.scope[var]
            open_ = tuple(v for v in _indices(factor))
            outer = Scope(scope.spell, {**scope.names, var: known})
            inner = _Sketch(outer, self.rows, self.named)
            inner.row_over(known, open_, factor)
        return known

    def row_over(self, name: str, indices: Sequence[Var], value: Term) -> None:
        """A row whose indices keep the names that they have where it is used."""
        place = len(self.rows)
        slots = ",".join(self.scope[v] for v in indices)
        self.rows.append(Row("", ()))
        terms = value.terms if isinstance(value, Add) else (value,)
        networks = tuple(_Reading(self, self.scope).network(t) for t in terms)
        self.rows[place] = Row(f"{{{name}}}_{{{slots}}}" if slots else name, networks)


@dataclass(slots=True)
class _Reading:
    """One term being read: its nodes and edges so far."""

    sketch: _Sketch
    scope: Scope
    nodes: list[Node] = field(default_factory=list)
    edges: dict[Term, int] = field(default_factory=dict)
    labels: list[Edge] = field(default_factory=list)
    summed: set[Var] = field(default_factory=set)
    factors: list[str] = field(default_factory=list)

    def network(self, term: Term) -> Network:
        coefficient, rest = split_coefficient(term)
        self.product(rest)
        number = self.number(coefficient)
        for var in sorted(self.summed - set(self.edges), key=lambda v: v.uid):
            self.factors.insert(0, rf"\sum_{{{self.scope[var]}}}")
        minus = number.startswith("-")
        factor = r"\,".join([*([number.removeprefix("-")] if number.removeprefix("-") else []), *self.factors])
        return Network(minus, factor, tuple(self.nodes), tuple(self.labels))

    def number(self, coefficient: Const) -> str:
        minus = coefficient.real < 0 or (not coefficient.real and coefficient.imag < 0)
        size = neg(coefficient) if minus else coefficient
        return ("-" if minus else "") + number_latex(size, alone=False)

    def product(self, term: Term) -> None:
        match term:
            case Mul(factors):
                for factor in factors:
                    self.product(factor)
            case Sum(indices, body) if all(isinstance(v.kind, Index) for v in indices):
                self.scope = self.scope.bind(indices)
                self.summed.update(indices)
                self.product(body)
            case Delta(left, right, body) if not isinstance(left.type, Map):
                self.node(r"\delta", CONDITION, (left, right))
                self.product(body)
            case Indicator(left, right, body) if _is_index(left) and _is_index(right):
                self.node(r"\leq", CONDITION, (left, right))
                self.product(body)
            case Pow(base, Const(n, _) as exponent) if exponent.is_integer and 1 < n <= _MOST_COPIES:
                for _ in range(int(n)):
                    self.product(base)
            case Const() if term == ONE:
                pass
            case Conj(App(Var() as tensor, args)) if _is_tensor(tensor):
                self.node(self.scope[tensor], TENSOR, args, conj=True)
            case App(Var() as tensor, args) if _is_tensor(tensor):
                self.node(self.scope[tensor], TENSOR, args)
            case _:
                self.value(term)

    def value(self, factor: Term) -> None:
        """A factor that is no tensor: a name for a sum, what it is for another."""
        plain, conj = (factor.term, True) if isinstance(factor, Conj) else (factor, False)
        indices = tuple(_indices(plain))
        if isinstance(plain, Add | Sum):
            label = self.sketch.name_of(plain, self.scope)
        else:
            label = term_latex(plain, self.scope, 3)
        if indices:
            self.node(label, VALUE, indices, conj)
        else:
            self.factors.append(f"{label}^{{*}}" if conj else label)

    def node(self, label: str, kind: str, args: Sequence[Term], conj: bool = False) -> None:
        self.nodes.append(Node(label, kind, tuple(map(self.edge, args)), conj))

    def edge(self, index: Term) -> int:
        """The number of the edge of an index expression."""
        known = self.edges.get(index)
        if known is not None:
            return known
        number = self.edges[index] = len(self.labels)
        label = term_latex(index, self.scope)
        self.labels.append(Edge(label, open=not index.free or (isinstance(index, Var) and index not in self.summed)))
        if index.free and not isinstance(index, Var):
            parts = tuple(self.edge(v) for v in _indices(index))
            self.nodes.append(Node(_rule(index, self.scope), ARITHMETIC, (number, *parts)))
        return number


_MOST_COPIES = 4


def _rule(index: Term, scope: Scope) -> str:
    """What the node of an index expression is called: + for k + b, the expression for another."""
    plain = isinstance(index, Add) and all(isinstance(t, Var) for t in index.terms)
    return "+" if plain else term_latex(index, scope)


def _indices(t: Term) -> Iterator[Var]:
    """The free indices of a factor, in the order of their making."""
    yield from sorted((v for v in t.free if isinstance(v.kind, Index)), key=lambda v: v.uid)


def _is_index(t: Term) -> bool:
    return isinstance(t.type, Index)


def _is_tensor(v: Var) -> bool:
    return isinstance(v.kind, Map) and v.kind.is_tensor


def _spelled(value: Term) -> Term:
    """A tensor by its entries: `A` as (i, j) -> A(i, j)."""
    kind = value.type
    if isinstance(value, Lam) or not (isinstance(kind, Map) and kind.is_tensor):
        return value
    slots = tuple(fresh(c, p) for c, p in zip("ijklmnpqrs", kind.params, strict=False))
    return Lam(slots, apply(value, *slots))
