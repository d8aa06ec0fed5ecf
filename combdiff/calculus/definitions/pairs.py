"""Definitions over pairs of indices that are read where arrays of integers say become definitions over what says it.

    r = (i, j) -> norm(c -> x(i, c) - x(j, c));  sum(b, k(b) * (r(p(b), q(b)) - r0(b))^2)

    becomes   r = b -> norm(c -> x(p(b), c) - x(q(b), c));  sum(b, k(b) * (r(b) - r0(b))^2)

The cotangent of a table of all pairs would be zero for nearly all of them, and 0 · ∞ for i = j, which nobody reads.
Only tables that compare two points become others, whose entries for i = j say nothing: distances, phases, potentials.
The rest stays, for it may have fewer entries than are read: how likely one letter follows another, for a long text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations

from combdiff.calculus.definitions.floating import Binding
from combdiff.records import dataclass
from combdiff.terms.conditions.guards import divides_by_zero
from combdiff.terms.terms import (
    App,
    Lam,
    Term,
    Traverser,
    Tuple,
    Var,
    alpha_equal,
    apply,
    children,
    fresh,
    inlined,
    let,
    substitute,
    subterms,
    wraps,
)
from combdiff.terms.traversal import is_tensor
from combdiff.terms.types import Index


def over_what_is_read(bindings: Sequence[Binding], core: Term) -> tuple[list[Binding], Term]:
    """The bindings and `core`, without tables that compare points of which only entries that arrays name are read.

    >>> from combdiff.terms.terms import sub
    >>> from combdiff.terms.types import REAL, Domain, Map
    >>> n, m = Index(Domain("n")), Index(Domain("m"))
    >>> p, q = (fresh(name, Map((m,), n)) for name in "pq")
    >>> x, r = fresh("x", Map((n,), REAL)), fresh("r", Map((n, n), REAL))
    >>> i, j, b = fresh("i", n), fresh("j", n), fresh("b", m)
    >>> difference = Lam((i, j), sub(App(x, (i,)), App(x, (j,))))
    >>> [(var, value)], core = over_what_is_read([(r, difference)], App(r, (App(p, (b,)), App(q, (b,)))))
    >>> var.name, [v.kind == m for v in value.params], core == App(var, (b,))
    ('r', [True], True)
    """
    found, rest = [*bindings], core
    if not any(_is_of_a_pair(u) for t in (*(e for _, e in bindings), core) for u in subterms(t, App)):
        return found, rest
    outside = let(bindings, core).free
    tables: dict[Term, Lam] = {v: e for v, e in bindings if isinstance(e, Lam) and is_tensor(e)}
    # what a later definition reads at all pairs it reads at some once it is one over these
    for n in range(len(found) - 1, -1, -1):
        var = found[n][0]
        if var not in tables:
            continue
        later = [*(e for _, e in found[n + 1 :]), rest]
        ways = _ways(var, tables[var], [t for t in later if var in t.free], {v for v, _ in found[:n]} | outside)
        if not ways or not _compares_points(tables[var], tables):
            continue
        *values, rest = _with_names(later, var, ways)
        names = [v for v, _ in found[n + 1 :]]
        found[n:] = [*((way.var, way.value) for way in ways), *zip(names, values, strict=True)]
    return found, rest


def _compares_points(table: Lam, tables: Mapping[Term, Lam]) -> bool:
    """Whether entries for two equal indices depend on nothing, or are infinite, whatever the data."""
    entry = table.body
    while not tables.keys().isdisjoint(entry.free):
        # a table that is used as a whole, by a function of matrices, stays
        entry, before = inlined(entry, tables), entry
        if entry == before:
            break
    pairs = [(p, q) for p, q in combinations(table.params, 2) if p.kind == q.kind]
    met = [substitute(entry, {q: p}) for p, q in pairs]
    return any(t.free <= {*table.params} or divides_by_zero(t) for t in met)


@dataclass(frozen=True, slots=True, eq=False)
class _Way:
    """How a definition is read: at `args`, which depend on `indices`; and the definition of what is read so."""

    indices: tuple[Var, ...]
    args: tuple[Term, ...]
    var: Var
    value: Term

    def is_of(self, args: Sequence[Term]) -> bool:
        """Whether it reads at the same entries, whatever their indices are called."""
        return alpha_equal(Lam(self.indices, Tuple(self.args)), Lam(_indices(args), Tuple(tuple(args))))


def _ways(var: Var, value: Lam, later: Sequence[Term], known: Collection[Var]) -> list[_Way]:
    """All ways in which a table is read; none if some entry is read otherwise, or the table as a whole."""
    if any(t == var or any(var in children(u) and not _reads(u, var) for u in subterms(t)) for t in later):
        return []
    found: list[_Way] = []
    for use in _uses(var, later):
        indices = _indices(use.args)
        if not all(map(_is_plain, use.args)) or not _is_of_a_pair(use) or not indices:
            return []
        if any(wraps(p, a, value.body) for p, a in zip(value.params, use.args, strict=True)):
            return []
        # arrays that are computed later are not there yet
        if not {v for a in use.args for v in a.free} <= {*indices, *known}:
            return []
        if not any(way.is_of(use.args) for way in found):
            own = {v: fresh(v.name, v.kind) for v in indices}
            made = Lam(tuple(own.values()), apply(value, *(substitute(a, own) for a in use.args)))
            found.append(_Way(indices, use.args, fresh(var.name, made.type), made))
    return found


def _uses(var: Var, later: Sequence[Term]) -> Iterator[App]:
    yield from dict.fromkeys(u for t in later for u in subterms(t, App) if _reads(u, var))


def _reads(t: Term, var: Var) -> bool:
    return isinstance(t, App) and t.function == var and var not in t.args


def _is_of_a_pair(t: App) -> bool:
    """Whether it is read at two entries of arrays."""
    return sum(isinstance(a, App) for a in t.args) > 1


def _is_plain(arg: Term) -> bool:
    """Whether it is an index, or an entry of an array at indices: that exists wherever these do."""
    entries = arg.args if isinstance(arg, App) and isinstance(arg.function, Var) else (arg,)
    return all(isinstance(v, Var) and isinstance(v.kind, Index) for v in entries)


def _indices(args: Sequence[Term]) -> tuple[Var, ...]:
    """The indices that arguments depend on, in their order."""
    mentioned = (u for a in args for u in (a.args if isinstance(a, App) else (a,)))
    return tuple(dict.fromkeys(v for v in mentioned if isinstance(v, Var)))


def _with_names(terms: Sequence[Term], var: Var, ways: Sequence[_Way]) -> list[Term]:
    """Terms in which the definitions of the ways are read."""

    def visit(t: Term) -> Term:
        if not isinstance(t, App) or not _reads(t, var):
            return t
        way = next(w for w in ways if w.is_of(t.args))
        return App(way.var, _indices(t.args))

    walk = Traverser(visit, App)
    return [walk(t) for t in terms]
