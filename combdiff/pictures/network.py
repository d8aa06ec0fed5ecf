"""Reads the contraction networks of a result: for each term of a sum, its tensors, and the indices that join them.

What is drawn is decided here, and how, in `layout` and `drawing`. A factor that is no tensor, such as a sum in
brackets, becomes a node with a name, and the name a row of its own. An expression such as k + b is an index too, which
a small node joins with k and b.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from combdiff.arrays.lower.signature import result_of
from combdiff.language.printing.document import POSTFIX, PRODUCT
from combdiff.notation.latex_names import Scope
from combdiff.notation.latex_terms import is_subtracted, number_latex, term_latex
from combdiff.notation.signs import latex_signs
from combdiff.notation.widths import columns
from combdiff.records import dataclass
from combdiff.terms.network import conditions_apart, network
from combdiff.terms.schema import reshaped
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    Add,
    App,
    Conj,
    Const,
    Delta,
    Indicator,
    Lam,
    Let,
    Mul,
    Pow,
    Sum,
    Term,
    Var,
    apply,
    children,
    fresh,
    number,
    terms_of,
    times,
)
from combdiff.terms.types import Index, Map, Number

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
    """`head` = the sum of the terms, or the formula where there are none; LaTeX, such as P(r, s)."""

    head: str
    terms: tuple[Network, ...]
    formula: str = ""


def rows_of(term: Term, names: Sequence[str]) -> list[Row]:
    """The definitions and the results of a derivation, each as a sum of networks; `names` are those of the results.

    >>> from combdiff.terms.types import REAL, Domain
    >>> i, j = (fresh(c, Index(Domain("A.1"))) for c in "ij")
    >>> A, x = fresh("A", Map((i.kind, j.kind), REAL)), fresh("x", Map((j.kind,), REAL))
    >>> (row,) = rows_of(Lam((A, x), Lam((i,), Sum((j,), Mul((App(A, (i, j)), App(x, (j,))))))), ["g"])
    >>> (network,) = row.terms
    >>> [node.label for node in network.nodes], network.edges
    (['A', 'x'], (Edge(label='i', open=True), Edge(label='j', open=False)))
    """
    parts = result_of(term)
    sketch = _Sketch()
    scope = Scope(signs=latex_signs(term)).bind(parts.params)
    for var, value in parts.bindings:
        scope = scope.bind((var,))
        sketch.tensor(scope[var], value, scope)
    for name, output in zip(names, parts.outputs, strict=True):
        sketch.tensor(name, output, scope)
    return sketch.rows


def result_names(term: Term, unknowns: Sequence[Var], sign: str) -> list[str]:
    """What results are called: by the `sign` of a mode, such as ∇ of each unknown; numbered if they do not match these.

    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> result_names(Lam((x,), x), (x,), "∇{}")
    ['∇x']
    """
    parts = result_of(term)
    scope = Scope(signs=latex_signs(term)).bind(parts.params)
    names = [sign.format(scope[p]) for p in unknowns]
    return names if len(names) == len(parts.outputs) else [sign.format(n + 1) for n in range(len(parts.outputs))]


@dataclass(slots=True)
class _Sketch:
    """The rows so far; a factor that is no tensor adds one, below the row that it stands in."""

    rows: list[Row] = field(default_factory=list)
    named: dict[Term, Var] = field(default_factory=dict)

    def tensor(self, name: str, value: Term, scope: Scope) -> None:
        """A row for a tensor or a number."""
        value = _spelled(value)
        params: list[Var] = []
        while isinstance(value, Lam):
            params += value.params
            value = value.body
        self.row(name, params, value, scope.bind(params))

    def row(self, name: str, indices: Sequence[Var], value: Term, scope: Scope) -> None:
        place = len(self.rows)
        self.rows.append(Row("", ()))
        head = _entry(name, indices, scope)
        if isinstance(value.type, Number) and not isinstance(value, Let):
            terms = terms_of(value)
            self.rows[place] = Row(head, tuple(_Reading(self, scope).network(t) for t in terms))
        else:
            self.rows[place] = Row(head, (), term_latex(value, scope))

    def name_of(self, factor: Term, scope: Scope) -> tuple[Var, Scope]:
        """A variable for a factor that gets a row of its own, and the scope in which it has a name."""
        var, known = self.named.get(factor), factor in self.named
        if var is None:
            var = self.named[factor] = fresh(f"u{len(self.named) + 1}", factor.type)
        scope = scope.bind((var,))
        if not known:
            self.explain(scope[var], factor, scope)
        return var, scope

    def explain(self, name: str, factor: Term, scope: Scope) -> None:
        """The row of a factor: a sum as networks, anything else as a formula."""
        indices = _indices(factor)
        if isinstance(factor, Add | Sum | Mul):
            self.row(name, indices, factor, scope)
        else:
            self.rows.append(Row(_entry(name, indices, scope), (), term_latex(factor, scope)))


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
        found = network(term, _parts, _is_over_indices)
        self.scope = self.scope.bind(found.indices)
        self.summed.update(found.indices)
        for factor in found.factors:
            self.factor(factor)
        for var in sorted(self.summed - set(self.edges), key=lambda v: v.uid):
            self.factors.insert(0, rf"\sum_{{{self.scope[var]}}}")
        minus = is_subtracted(found.coefficient)
        size = times(MINUS_ONE, found.coefficient) if minus else found.coefficient
        front = filter(None, [number_latex(size, alone=False), *self.factors])
        return Network(minus, r"\,".join(front), tuple(self.nodes), tuple(self.labels))

    def factor(self, factor: Term) -> None:
        match factor:
            case Delta(left, right, body) if body == ONE and not isinstance(left.type, Map):
                self.node(r"\delta", CONDITION, (left, right))
            case Indicator(left, right, body) if body == ONE and _is_index(left) and _is_index(right):
                self.node(r"\leq", CONDITION, (left, right))
            case Conj(App(Var() as tensor, args)) if _is_tensor(tensor):
                self.node(self.scope[tensor], TENSOR, args, conj=True)
            case App(Var() as tensor, args) if _is_tensor(tensor):
                self.node(self.scope[tensor], TENSOR, args)
            case _:
                self.value(factor)

    def value(self, factor: Term) -> None:
        """A factor that is no tensor: a name for what is long, what it is for another."""
        plain, conj = (factor.term, True) if isinstance(factor, Conj) else (factor, False)
        indices, scope = _indices(plain), self.scope
        if not isinstance(plain, Add | Sum):
            # functions of something long are shown as functions of a name
            parts = []
            for part in children(plain):
                if isinstance(part, Add | Sum | Mul) and isinstance(part.type, Number):
                    part, scope = self.sketch.name_of(part, scope)
                parts.append(part)
            shown = reshaped(plain, parts)
        if isinstance(plain, Add | Sum) or columns(term_latex(shown, scope, POSTFIX)) > _WIDEST:
            shown, scope = self.sketch.name_of(plain, scope)
        label = term_latex(shown, scope, POSTFIX)
        if indices:
            self.node(label, VALUE, indices, conj)
        else:
            factor_label = term_latex(shown, scope, POSTFIX if conj else PRODUCT)
            self.factors.append(f"{factor_label}^{{*}}" if conj else factor_label)

    def node(self, label: str, kind: str, args: Sequence[Term], conj: bool = False) -> None:
        self.nodes.append(Node(label, kind, tuple(map(self.edge, args)), conj))

    def edge(self, index: Term) -> int:
        """The number of the edge of an index expression."""
        known = self.edges.get(index)
        if known is not None:
            return known
        place = self.edges[index] = len(self.labels)
        label = term_latex(index, self.scope)
        self.labels.append(Edge(label, open=not index.free or (isinstance(index, Var) and index not in self.summed)))
        if index.free and not isinstance(index, Var):
            parts = tuple(self.edge(v) for v in _indices(index))
            self.nodes.append(Node(_rule(index, self.scope), ARITHMETIC, (place, *parts)))
        return place


_COPIES = (number(2), number(3), number(4))
"""Exponents for which a factor is drawn so often."""

_WIDEST = 12


def _entry(name: str, indices: Sequence[Var], scope: Scope) -> str:
    r"""P(r, s): names have subscripts already, such as u_1 and \nabla_C."""
    return f"{name}({', '.join(scope[v] for v in indices)})" if indices else name


def _rule(index: Term, scope: Scope) -> str:
    """What the node of an index expression is called: + for k + b, the expression for another."""
    plain = isinstance(index, Add) and all(isinstance(t, Var) for t in index.terms)
    return "+" if plain else term_latex(index, scope)


def _indices(t: Term) -> list[Var]:
    """The free indices of a factor, in the order of their making."""
    return sorted((v for v in t.free if isinstance(v.kind, Index)), key=lambda v: v.uid)


def _is_index(t: Term) -> bool:
    return isinstance(t.type, Index)


def _parts(t: Term) -> Sequence[Term]:
    """The factors of a product; of conditions those between indices, and copies of what is drawn as often."""
    match t:
        case Indicator(left, right, _) if not (_is_index(left) and _is_index(right)):
            return (t,)
        case Pow(base, Const(n, _) as exponent) if exponent in _COPIES and _is_network(base):
            return [base] * int(n)
        case _:
            return conditions_apart(t)


def _is_over_indices(t: Sum) -> bool:
    return all(isinstance(v.kind, Index) for v in t.indices)


def _is_network(t: Term) -> bool:
    """Whether powers of it are drawn as copies: an entry of a tensor, its conjugate, or a sum of such."""
    match t:
        case App(Var() as tensor, _) | Conj(App(Var() as tensor, _)):
            return _is_tensor(tensor)
        case Sum():
            return True
        case _:
            return False


def _is_tensor(v: Var) -> bool:
    return isinstance(v.kind, Map) and v.kind.is_tensor


def _spelled(value: Term) -> Term:
    """A tensor by its entries: `A` as (i, j) -> A(i, j)."""
    kind = value.type
    if isinstance(value, Lam) or not (isinstance(kind, Map) and kind.is_tensor):
        return value
    slots = tuple(fresh(c, p) for c, p in zip("ijklmnpqrs", kind.params, strict=False))
    return Lam(slots, apply(value, *slots))
