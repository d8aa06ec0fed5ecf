"""Rewrites terms over lattices and lists of offsets as terms over axes of arrays: k is k1, k2, k3, and −b a position.

An index of a lattice is replaced by an index for each direction, and what is said of it by what is said of each: slots,
sums, both sides of a δ. An index of a list becomes its position b; its values X(b, 0), X(b, 1), … are entries of an
integer tensor, the list itself, and −b stands at the position opposite(b). Whatever works on arrays sees only these
terms; the oracle of tests, `evaluate.py`, works on points and knows nothing of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from combdiff.language.printing.anchors import domains_of
from combdiff.records import dataclass
from combdiff.terms.terms import (
    MINUS_ONE,
    Add,
    App,
    Const,
    Delta,
    Diff,
    Lam,
    Let,
    Mul,
    Sum,
    Term,
    Var,
    add,
    bound_by,
    children,
    compares_indices,
    delta,
    domains_compared,
    fresh,
    mul,
    number,
    rebuild,
    split_coefficient,
    subterms,
)
from combdiff.terms.types import INTEGER, Domain, Index, Map, Product, Type

# components of a variable have numbers of their own, the same whenever it is taken apart
_PER_VARIABLE = 16


@dataclass(frozen=True, slots=True)
class Components:
    """A term over axes, and the tensors of integers in it: the `offsets` of lists, and the `opposite` positions."""

    term: Term
    offsets: dict[Domain, Var] = field(default_factory=dict)
    opposite: dict[Domain, Var] = field(default_factory=dict)


def by_components(term: Term, split: Split | None = None) -> Components:
    """`term` over axes; itself, if it has neither lattices nor lists. Terms that share a `split` are taken apart alike.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> k = fresh("k", Index(Domain("BZ", declared=True, periodic=True, directions=2)))
    >>> x = fresh("x", Map((k.kind,), REAL))
    >>> [p.name for p in by_components(Lam((k,), App(x, (k,)))).term.params]
    ['k1', 'k2']
    """
    kinds = {v.kind for v in term.free}
    kinds.update(v.kind for u in subterms(term) for v in bound_by(u))
    if not any(d.listed or d.directions > 1 for kind in kinds for d in domains_of(kind)):
        return Components(term)
    split = split or Split()
    result = split.term(term)
    return Components(result, split.offsets, split.opposite)


def axis_kinds(kind: Type) -> Type:
    """The type of a tensor over axes; declared symmetries, which are laws of points, are left out where it changes."""
    match kind:
        case Map(params, result):
            flat = tuple([p for param in params for p in _flat(param)])
            inner = axis_kinds(result)
            return kind if (flat, inner) == (params, result) else Map(flat, inner)
        case Product(items):
            return Product(tuple(map(axis_kinds, items)))
        case _:
            return kind


def offsets_kind(domain: Domain) -> Map:
    """The type of a list of offsets: an integer for each position, and for each direction where there are several."""
    params = [Index(axis) for axis in domain.axes]
    if domain.directions > 1:
        params.append(Index(Domain(f"{domain.name}.directions", True, lower=0, upper=domain.directions - 1)))
    return Map(tuple(params), INTEGER)


def _flat(param: Type) -> list[Type]:
    if isinstance(param, Index) and param.domain is not None:
        return [Index(axis) for axis in param.domain.axes]
    return [axis_kinds(param)]


class Split:
    """Walks over terms; every node is taken apart once."""

    def __init__(self) -> None:
        self.offsets: dict[Domain, Var] = {}
        self.opposite: dict[Domain, Var] = {}
        self._known: dict[Term, Term] = {}

    def term(self, t: Term) -> Term:
        known = self._known.get(t)
        if known is None:
            known = self._known[t] = self._along(t, 0) if isinstance(t.type, Index) else self._taken_apart(t)
        return known

    def _taken_apart(self, t: Term) -> Term:
        match t:
            case Var():
                return self._variable(t)
            case Lam(params, body):
                return Lam(self._binders(params), self.term(body))
            case Sum(indices, body):
                return Sum(self._binders(indices), self.term(body))
            case Let(bindings, body):
                return Let(tuple([(self._variable(v), self.term(e)) for v, e in bindings]), self.term(body))
            case App(f, args):
                assert isinstance(f.type, Map), "only maps are applied"
                pairs = zip(args, f.type.params, strict=True)
                return App(self.term(f), tuple([u for a, kind in pairs for u in self._argument(a, kind)]))
            case Delta(left, right, body) if compares_indices(left, right):
                return self._delta(left, right, self.term(body))
            case Diff(kind, of):
                return Diff(kind, self.term(of))
            case _:
                return rebuild(t, [self.term(u) for u in children(t)])

    def _variable(self, v: Var) -> Var:
        return Var(v.name, axis_kinds(v.kind), v.uid)

    def _binders(self, variables: Sequence[Var]) -> tuple[Var, ...]:
        return tuple([u for v in variables for u in (_parts(v) if isinstance(v.kind, Index) else [self._variable(v)])])

    def _argument(self, t: Term, kind: Type) -> list[Term]:
        match kind:
            case Index(Domain(listed=True)):
                return [self._position(t)]
            case Index(Domain() as domain):
                return [self._along(t, n) for n in range(domain.directions)]
            case _:
                return [self.term(t)]

    # --- index expressions ------------------------------------------------------------------------------------------

    def _along(self, t: Term, n: int) -> Term:
        """Direction n of an index expression."""
        match t:
            case Var(kind=Index(Domain(listed=True) as domain)):
                entry = (*_parts(t), *([number(n)] if domain.directions > 1 else []))
                return App(self._offsets(domain), entry)
            case Var():
                return _parts(t)[n]
            case Add(terms):
                return add(*[self._along(u, n) for u in terms])
            case Mul():
                c, rest = split_coefficient(t)
                return mul(c, self._along(rest, n)) if rest != t else t
            case App():
                # an entry of an array of integers, an argmax: a single number, read at points
                return self._taken_apart(t)
            case _:
                return t

    def _position(self, t: Term) -> Term:
        """Where an index of a list, or its negative, lies."""
        c, var = split_coefficient(t)
        assert isinstance(var, Var) and isinstance(var.kind, Index) and var.kind.domain is not None, "±b"
        (position,) = _parts(var)
        if c != MINUS_ONE:
            return position
        return App(self._opposite(var.kind.domain), (position,))

    def _delta(self, left: Term, right: Term, body: Term) -> Term:
        """Points are equal if they are in every direction; offsets are, if their positions are."""
        domains = set(domains_compared(left, right))
        if len(domains) == 1 and all(d.listed for d in domains) and _is_signed(left) and _is_signed(right):
            return delta(self._position(left), self._position(right), body)
        for n in reversed(range(max((d.directions for d in domains), default=1))):
            body = delta(self._along(left, n), self._along(right, n), body)
        return body

    # --- tensors of integers ----------------------------------------------------------------------------------------

    def _offsets(self, domain: Domain) -> Var:
        if domain not in self.offsets:
            self.offsets[domain] = fresh(domain.name, offsets_kind(domain))
        return self.offsets[domain]

    def _opposite(self, domain: Domain) -> Var:
        if domain not in self.opposite:
            self._offsets(domain)
            position = Index(domain.axes[0])
            self.opposite[domain] = fresh("opposite", Map((position,), position))
        return self.opposite[domain]


def _parts(v: Var) -> tuple[Var, ...]:
    """The indices along axes that stand for an index: itself, one a direction, or the position in a list."""
    domain = v.kind.domain if isinstance(v.kind, Index) else None
    if domain is None or domain.axes == (domain,):
        return (v,)
    if domain.listed:
        return (Var(v.name, Index(domain.axes[0]), v.uid),)
    axes = enumerate(domain.axes, 1)
    return tuple([Var(f"{v.name}{n}", Index(axis), -(_PER_VARIABLE * v.uid + n)) for n, axis in axes])


def _is_signed(t: Term) -> bool:
    """Whether `t` is ±b."""
    c, rest = split_coefficient(t)
    return isinstance(rest, Var) and isinstance(c, Const) and abs(c.real) == 1
