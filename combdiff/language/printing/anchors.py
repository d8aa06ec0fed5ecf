"""Finds anonymous ranges that the text of a program alone does not determine, which the printer has to declare.

`infer` joins the ranges of an index and of the slots in which it stands bare, of slots that a symmetry exchanges, and
of a map's slots with those of its argument. A result may have lost what joined two slots of its program, or may sum
over an index that stands in no slot at all. Here the joins that reading the text would make are made again. Where an
index then ranges over no slot of an argument, its range has to be declared. Slots that come out apart do no harm, as
each tells the range of the indices in it; but both have to learn that theirs runs from −M, if it does.
"""

from __future__ import annotations

from combdiff.terms.nodes import MATRICES, OBLONG, OF_MATRICES, SHARES, VECTORS
from combdiff.terms.terms import (
    App,
    Diff,
    Lam,
    Let,
    Loop,
    Proj,
    Reduce,
    Sum,
    Term,
    Tuple,
    Var,
    bound_by,
    subterms,
)
from combdiff.terms.types import Domain, Index, Map, Product, Type

Node = int | None | tuple["Node", ...]
"""Mirrors a type: a number for an index, None for a number, a tuple for a map (its result last) or a tuple."""


def unanchored(term: Term) -> dict[Domain, set[Var]]:
    """The domains of `term` whose extent its text would not tell, each with the indices that have to name it.

    >>> from combdiff.terms.terms import ONE, fresh
    >>> from combdiff.terms.types import REAL
    >>> n = Domain("x.1")
    >>> i, x = fresh("i", Index(n)), fresh("x", Map((Index(n),), REAL))
    >>> unanchored(Lam((x,), Sum((i,), App(x, (i,))))), unanchored(Lam((x,), Sum((i,), ONE))) == {n: {i}}
    ({}, True)
    """
    joins = _Joins()
    states = {v for u in subterms(term, Loop) for v in u.states}
    for u in subterms(term):
        match u:
            case Lam(variables, _) | Sum(variables, _):
                for var in variables:
                    if var not in states:
                        joins.anchor(var)
            case Let(bindings, _):
                for var, value in bindings:
                    joins.same(joins.of(var), joins.of(value))
                    if isinstance(value, Loop):
                        joins.states(var, value)
            case App(function, args):
                nodes = joins.of(function)
                assert isinstance(nodes, tuple), "only maps are applied"
                for node, arg in zip(nodes[:-1], args, strict=True):
                    joins.same(node, joins.of(arg))
            case Loop():
                joins.loop(u)
            case Reduce(kind, _) if kind in OF_MATRICES - OBLONG:
                joins.same(*map(joins.of, u.indices))
            case Reduce("cross", _):
                joins.tell(u.indices[0])
    found = joins.unanchored()
    for index in _times(term) | _of_two_sizes(term) | _of_places(term):
        assert isinstance(index.kind, Index) and index.kind.domain is not None, "an index ranges over a domain"
        found.setdefault(index.kind.domain, set()).add(index)
    return found


def _of_places(term: Term) -> set[Var]:
    """The indices of places, as in argmax(i, 0), that stand in no slot.

    The slot in which the whole place stands tells the range there alone; elsewhere the same place may be compared.
    """
    found: set[Var] = set()
    for u in subterms(term, Reduce):
        if u.kind in ("argmax", "argmin"):
            slots = {a for t in subterms(u.body, App) for a in t.args}
            found.update(v for v in u.indices if v not in slots)
    return found


def _of_two_sizes(term: Term) -> set[Var]:
    """The indices that stand alone in a slot of so many values more, or fewer, than they have.

    The number of a step cannot say how far it runs: where the slot is one of a state, the first state does, because
    the step is read before anything else tells.
    """
    bound = {v for u in subterms(term) for v in bound_by(u)}
    times = {u.time for u in subterms(term, Loop)}
    slots = _slots_of_states(term)
    found = set()
    for u in subterms(term):
        kind = u.function.type if isinstance(u, App) else None
        if not isinstance(u, App) or not isinstance(kind, Map):
            continue
        for n, (arg, slot) in enumerate(zip(u.args, kind.params, strict=True)):
            own = (domains_of(arg.kind) if isinstance(arg, Var) and arg in bound else []) + domains_of(slot)
            if len(own) == 2 and isinstance(arg, Var) and (own[0].of or own[0]).sized and own[0].fewer(own[1]):
                found |= {first[n] for first in slots.get(u.function, ())} if arg in times else {arg}
    return found


def _slots_of_states(term: Term) -> dict[Term, list[tuple[Var, ...]]]:
    """The indices of the first states of loops that are written as maps of indices.

    A loop of several states stands once for each that is read, with one step and indices of its own in the first ones.
    """
    found: dict[Term, list[tuple[Var, ...]]] = {}
    for u in subterms(term, Loop):
        assert isinstance(u.start, Tuple), "the first states"
        for v, first in zip(u.states, u.start.items, strict=True):
            if isinstance(first, Lam):
                found.setdefault(v, []).append(first.params)
    return found


def _times(term: Term) -> set[Var]:
    """The indices that stand alone in the slot of the states of a loop, which has one value more than they."""
    lets = [*subterms(term, Let)]
    scans = {v for t in lets for v, e in t.bindings if isinstance(e, Loop) and e.kind == "states"}
    if not scans:
        return set()
    entries = (u for u in subterms(term, App) if u.function in scans)
    fewer = (u for u in entries if isinstance(u.function.type, Map) and u.args[0].type != u.function.type.params[0])
    return {u.args[0] for u in fewer if isinstance(u.args[0], Var)} - {u.time for u in subterms(term, Loop)}


class _Joins:
    """A union-find of slots and indices."""

    def __init__(self) -> None:
        self.parent: list[int] = []
        self.domain: list[Domain] = []
        self.anchored: list[bool] = []
        self.ranging: list[bool] = []
        self.variables: dict[Var, Node] = {}
        self.slots: dict[int, Node] = {}

    def anchor(self, var: Var) -> None:
        """`var` is bound: an index, which needs a range, or a parameter whose slots tell how far indices range."""
        node = self.of(var)
        if not isinstance(var.kind, Index):
            self._mark(node)
        elif isinstance(node, int):
            self.ranging[self.find(node)] = True

    def tell(self, var: Var) -> None:
        """What it stands for tells the range of an index, as a vector product has three entries."""
        self._mark(self.of(var))

    def loop(self, t: Loop) -> None:
        """A loop tells the range of the number of its steps; its states are of the type of the first ones."""
        assert isinstance(t.step, Lam) and isinstance(t.start, Tuple), "a step, and the first states"
        self._mark(self.of(t.time))
        following = self.of(t.step.body)
        assert isinstance(following, tuple), "a step makes a tuple"
        for state, first, later in zip(t.states, t.start.items, following, strict=True):
            self.same(self.of(state), self.of(first))
            self.same(self.of(state), later)

    def states(self, var: Var, loop: Loop) -> None:
        """The slot of all states has a range of its own, of one value more than there are steps."""
        node = self.of(var)
        if loop.kind == "states" and isinstance(node, tuple):
            self._mark(node[0])

    def _mark(self, node: Node) -> None:
        match node:
            case int():
                self.anchored[self.find(node)] = True
            case tuple():
                for inner in node:
                    self._mark(inner)

    def of(self, t: Term) -> Node:
        """The nodes of the type of `t`."""
        match t:
            case Var():
                if t not in self.variables:
                    self.variables[t] = self._new(t.kind)
                return self.variables[t]
            case Lam(params, body):
                return (*(self.of(p) for p in params), self.of(body))
            case App(function, _):
                nodes = self.of(function)
                return nodes[-1] if isinstance(nodes, tuple) else None
            case Let(_, body):
                return self.of(body)
            case Tuple(items):
                return tuple(self.of(item) for item in items)
            case Proj(item, of):
                nodes = self.of(of)
                return nodes[item] if isinstance(nodes, tuple) else None
            case Loop(kind):
                state = self.of(t.states[t.item])
                own = state if isinstance(state, tuple) else (state,)
                return (self.of(t.time), *own) if kind == "states" else state
            case Reduce(kind, _) if kind in VECTORS:
                return (self.of(t.indices[1]), None)
            case Reduce(kind, _) if kind in SHARES | MATRICES | {"cross"}:
                # a matrix function's matrix is square
                return (*(self.of(i) for i in t.indices), None)
            case Reduce("argmax" | "argmin", _):
                return (self.of(t.indices[0]),)
            case Diff(kind, of):
                return _derivative(kind, self.of(of))
            case _:
                return None

    def _new(self, kind: Type) -> Node:
        match kind:
            case Index(Domain() as domain):
                self.parent.append(len(self.parent))
                self.domain.append(domain)
                self.anchored.append(False)
                self.ranging.append(False)
                return len(self.parent) - 1
            case Map(params, result):
                nodes = (*(self._new(p) for p in params), self._new(result))
                for law in kind.symmetries:
                    for slot, row in enumerate(law.rows):
                        if len(row) == 1:
                            self.same(nodes[slot], nodes[row[0][0]])
                return nodes
            case Product(items):
                return tuple(self._new(item) for item in items)
            case _:
                return None

    def find(self, node: int) -> int:
        while self.parent[node] != node:
            self.parent[node] = node = self.parent[self.parent[node]]
        return node

    def same(self, a: Node, b: Node) -> None:
        """What reading the text would join: an offset in a periodic slot keeps its own range."""
        match a, b:
            case int(), int() if self.domain[a] == self.domain[b]:
                a, b = self.find(a), self.find(b)
                self.parent[b] = a
                self.anchored[a] = self.anchored[a] or self.anchored[b]
                self.ranging[a] = self.ranging[a] or self.ranging[b]
            case tuple(), tuple():
                for x, y in zip(a, b, strict=False):
                    self.same(x, y)

    def unanchored(self) -> dict[Domain, set[Var]]:
        classes: dict[Domain, set[int]] = {}
        for node, domain in enumerate(self.domain):
            if not domain.declared:
                classes.setdefault(domain, set()).add(self.find(node))
        lost = {r for roots in classes.values() for r in roots if self.ranging[r] and not self.anchored[r]}
        indices = [(var, self.find(node)) for var, node in self.variables.items() if isinstance(node, int)]
        return {
            d: {var for var, root in indices if root in roots & lost}
            for d, roots in classes.items()
            if roots & lost or (d.symmetric and len(roots) > 1)
        }


def _derivative(kind: str, nodes: Node) -> Node:
    assert isinstance(nodes, tuple), "only maps have derivatives"
    params = nodes[:-1]
    result = params[0] if len(params) == 1 else params
    match kind:
        case "root":
            return result
        case "adjoint" | "inverse":
            return (nodes[-1], result)
        case "grad":
            return (*params, result)
        case "jvp":
            return (*params, *params, nodes[-1])
        case _:
            return (*nodes, result)


def domains_of(kind: Type) -> list[Domain]:
    """The domains that a type names, in the order of its slots.

    >>> domains_of(Map((Index(Domain("x.1")),), Index())) == [Domain("x.1")]
    True
    """
    match kind:
        case Index(Domain() as domain):
            return [domain]
        case Map(params, result):
            return [d for p in (*params, result) for d in domains_of(p)]
        case Product(items):
            return [d for item in items for d in domains_of(item)]
        case _:
            return []
