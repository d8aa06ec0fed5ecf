"""Walks over terms: rebuilding, memoised traversal, subterms, substitution and renaming."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from operator import is_
from typing import TypeVar, overload

from combdiff.terms.alpha import alpha_equal, alpha_hash
from combdiff.terms.arithmetic import add, mul, number, power, split_coefficient, sub
from combdiff.terms.branches import kept_complex
from combdiff.terms.constructors import bound, call, conj, delta, diff, indicator, lam, proj, reduced, total
from combdiff.terms.nodes import (
    _NO_VARIABLES,
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
    Let,
    Loop,
    Mul,
    Pow,
    Proj,
    Reduce,
    Sum,
    Term,
    Tuple,
    Var,
    _set,
    body_of,
    can_fill_slot,
    fresh,
)
from combdiff.terms.schema import SCHEMAS, bound_by, children, reshaped
from combdiff.terms.types import Domain, Index, Interval, Map, Number, interval_of, is_complex, slot_types

Kind = TypeVar("Kind", bound=Term)
Other = TypeVar("Other", bound=Term)


def apply(function: Term, *args: Term) -> Term:
    """f(args); a λ-term is applied by substitution into a renamed copy, a shared value keeps its bindings."""
    match function:
        case Lam(params, body):
            assert len(params) == len(args), "as many arguments as parameters"
            if params == args:
                return body
            values = dict(zip(params, args, strict=True))
            wrapped = {p: fresh(p.name, p.kind) for p, a in values.items() if wraps(p, a, body)}
            points = {**values, **wrapped}
            result = renamed(body, points) if _exchanges(points, body) else refreshed(body, points)
            for p, point in wrapped.items():
                result = at_point(point, values[p], result)
            return result
        case Let(bindings, body):
            return let(bindings, apply(body, *args))
        case Diff("pullback", Term(type=Map(linear=True)) as of):
            # the derivative of a linear map is itself, wherever it is taken
            return apply(diff("adjoint", of), args[-1])
        case Reduce("cross", Lam(params, Tuple((u, v)))) if isinstance(args[0], Const):
            # two products, of what is read at two places
            one, two = ({params[0]: number((args[0].real + n) % 3)} for n in (1, 2))
            return sub(mul(substitute(u, one), substitute(v, two)), mul(substitute(u, two), substitute(v, one)))
        case Reduce():
            return App(function, tuple(args))
        case _ if not args:
            # what stands for an argmax while indices meet
            return App(function, ())
        case _:
            return _without_number(App(function, tuple(args)))


def wraps(param: Var, argument: Term, body: Term) -> bool:
    """Whether it matters that an index of a periodic domain is one of 0, …, N − 1: `body` reads it as a number.

    f(−k) of f = i -> i * x(i) is (N − k) x(N − k), and not −k x(−k).
    """
    domain = param.kind.domain if isinstance(param.kind, Index) else None
    if domain is None or not domain.periodic or argument == ZERO:
        return False
    return not (isinstance(argument, Var) and argument.kind == param.kind) and param in numbers_read(body)


def has_no_index(t: Term) -> bool:
    """Whether no index is free in `t`: it is one number wherever it stands."""
    return not any(isinstance(v.kind, Index) for v in t.free)


def index_atoms(t: Term) -> tuple[Term, ...]:
    """The indices that an index expression or a comparison adds up: i and J(e) of `J(e) + 2*i`, and not e.

    >>> from combdiff.terms.types import Domain
    >>> e, j = Index(Domain("e")), Index(Domain("n"))
    >>> entry = App(fresh("J", Map((e,), j)), (fresh("e", e),))
    >>> index_atoms(add(entry, ONE)) == (entry,)
    True
    """
    found: dict[Term, None] = {}
    stack = [t]
    while stack:
        match stack.pop():
            case Add(parts) | Mul(parts):
                stack += reversed(parts)
            case Var() | App() as atom if isinstance(atom.type, Index):
                found[atom] = None
            case other:
                inside = sorted([v for v in other.free if isinstance(v.kind, Index)], key=_uid)
                found.update(dict.fromkeys(inside))
    return tuple(found)


def holds_entries(*sides: Term) -> bool:
    """Whether entries of arrays of integers are among the indices of index expressions.

    >>> holds_entries(fresh("i", Index(Domain("n"))), ONE)
    False
    """
    return any(isinstance(u, App) for side in sides for u in index_atoms(side))


def domains_compared(*sides: Term) -> list[Domain]:
    """The domains of the indices that index expressions are made of; a number such as x(i) is none of these.

    >>> domains_compared(fresh("i", Index(Domain("n"))), ONE) == [Domain("n")]
    True
    """
    kinds = [u.type for side in sides if isinstance(side.type, Index) for u in index_atoms(side)]
    return list(dict.fromkeys(k.domain for k in kinds if isinstance(k, Index) and k.domain is not None))


def numbers_read(t: Term) -> set[Var]:
    """The index variables of t that stand in an arithmetic place, or are compared, and so are read as numbers."""
    found: set[Var] = set()
    stack: list[Term] = [t]
    seen: set[Term] = set()
    while stack:
        u = stack.pop()
        if u in seen:
            continue
        seen.add(u)
        match u:
            case Var(_, Index(), _):
                found.add(u)
            case App(f, args):
                # an index in a slot is a place; given to a function of numbers, it is one
                stack.append(f)
                places_of = slot_types(f.type)
                for a, kind in zip(args, places_of, strict=True):
                    stack += _decided_by(a) if isinstance(kind, Index) else [a]
            case Delta(left, right, body):
                # indices, and constants among them, are compared by where they stand, all else by value
                places = can_fill_slot(left) and can_fill_slot(right)
                stack += [body, *_decided_by(left), *_decided_by(right)] if places else [left, right, body]
            case _:
                stack += children(u)
    return found


def _decided_by(index: Term) -> list[Term]:
    """What is reduced to an index in an index expression, as the numbers of an argmax are."""
    return [] if isinstance(index, Var | Const) else [u for u in subterms(index) if isinstance(u, Reduce)]


def at_point(point: Var, argument: Term, t: Term) -> Term:
    """`t` at the point that an argument is congruent to: Σ_point δ(point, argument, t)."""
    match t:
        case Lam(params, body):
            return Lam(params, at_point(point, argument, body))
        case Let(bindings, Lam(params, body)):
            return Lam(params, at_point(point, argument, let(bindings, body)))
        case Tuple(items):
            return Tuple(tuple(at_point(point, argument, item) for item in items))
        case _ if isinstance(t.type, Number):
            return total((point,), delta(point, argument, t))
        case _:
            return substitute(t, {point: argument})


def _without_number(t: App) -> Term:
    """A linear map of c·x is c times that of x for a real number c: x ↦ x' is linear too, and turns i x into -i x'."""
    of = t.function.function if isinstance(t.function, App) else t.function
    (x, *others) = t.function.args if isinstance(t.function, App) else t.args
    if others or not (isinstance(of.type, Map) and of.type.linear) or isinstance(t.type, Map):
        return t
    c, rest = split_coefficient(body_of(x))
    if c == ONE or c.imag:
        return t
    inner = App(of, (Lam(x.params, rest) if isinstance(x, Lam) else rest,))
    return mul(c, App(inner, t.args) if isinstance(t.function, App) else inner)


def rebuild(t: Term, parts: Sequence[Term]) -> Term:
    """`t` with other children, made by the constructor of its kind, which sees to normal form."""
    if isinstance(t, Delta):
        return _with_modulus(t, *parts)
    return _CONSTRUCTORS[type(t)](*SCHEMAS[type(t)].arguments(t, kept_complex(t, parts))) if parts else t


def _with_modulus(t: Delta, left: Term, right: Term, body: Term) -> Term:
    """δ(left, right, body) in the place of `t`. Modulo the size of a range, 0 = 2 is Σ_i δ(i, 0) δ(i, 2)."""
    if not (isinstance(left, Const) and isinstance(right, Const)) or left == right:
        return delta(left, right, body)
    around = next((d for d in domains_compared(t.left, t.right) if d.periodic), None)
    if around is None or body == ZERO:
        return delta(left, right, body)
    point = fresh("i", Index(around))
    return total((point,), delta(point, left, delta(point, right, body)))


class Traverser:
    """A memoised bottom-up walk: `visit` sees each node after its children; shared subterms are visited once.

    With `kinds`, of which each node is that `visit` changes, what holds none of these stays as it is.

    >>> from combdiff.terms.terms import ONE, TWO, Const
    >>> from combdiff.terms.types import REAL
    >>> double = Traverser(lambda t: mul(TWO, t) if isinstance(t, Const) else t)
    >>> double(add(fresh("x", REAL), ONE)).terms[1].real
    Fraction(2, 1)
    """

    def __init__(self, visit: Callable[[Term], Term], *kinds: type[Term]) -> None:
        self.visit = visit
        self.kinds = sum(map(_BITS.__getitem__, kinds)) if kinds else _ANY
        self.seen: dict[Term, Term] = {}

    def __call__(self, t: Term) -> Term:
        return self._walked(t) if self.kinds == _ANY or _kinds_in(t) & self.kinds else t

    def _walked(self, t: Term) -> Term:
        if self.kinds != _ANY and not t._kinds & self.kinds:
            return t
        known = self.seen.get(t)
        if known is None:
            below = SCHEMAS[type(t)].children(t)
            parts = [self._walked(c) for c in below]
            same = all(map(is_, parts, below))
            known = self.seen[t] = self.visit(t if same else rebuild(t, parts))
        return known


def reductions_met(terms: Sequence[Term]) -> list[Term]:
    """The terms with one object for reductions that are equal up to the names of what they bind, as they are compared.

    >>> i, j = (fresh(name, Index(None)) for name in "ij")
    >>> a, b = (Reduce("argmax", Lam((v,), Tuple((ONE, v)))) for v in (i, j))
    >>> a == b, len(set(reductions_met([a, b])))
    (False, 1)
    """
    known: dict[int, list[Term]] = {}

    def visit(t: Term) -> Term:
        if not isinstance(t, Reduce):
            return t
        alike = known.setdefault(alpha_hash(t), [])
        found = next((u for u in alike if alpha_equal(u, t)), None)
        if found is None:
            alike.append(t)
        return found or t

    return list(map(Traverser(visit), terms))


@overload
def subterms(t: Term) -> Iterable[Term]: ...
@overload
def subterms(t: Term, kind: type[Kind], /) -> Iterable[Kind]: ...
@overload
def subterms(t: Term, one: type[Kind], other: type[Other], /) -> Iterable[Kind | Other]: ...
def subterms(t: Term, *kinds: type[Term]) -> Iterable[Term]:
    """Every distinct subterm of `t`, or those of some kinds, parents first.

    >>> from combdiff.terms.nodes import TWO
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> [u.primitive for u in subterms(add(call("sin", call("exp", x)), power(x, TWO)), Call)]
    ['sin', 'exp']
    """
    return _subterms_of(t, kinds) if kinds else _all_subterms(t)


def _subterms_of(t: Term, kinds: tuple[type[Term], ...]) -> Iterator[Term]:
    """Only what holds one of the kinds is walked."""
    asked = sum(map(_BITS.__getitem__, kinds))
    if not _kinds_in(t) & asked:
        return
    seen: set[Term] = set()
    stack = [t]
    while stack:
        u = stack.pop()
        known = len(seen)
        seen.add(u)
        if len(seen) > known:
            if isinstance(u, kinds):
                yield u
            stack += [c for c in SCHEMAS[type(u)].children(u)[::-1] if c._kinds & asked]


def holds(t: Term, *kinds: type[Term]) -> bool:
    """Whether a node of one of the kinds is in `t`. What is asked of a term once is known afterwards.

    >>> from combdiff.terms.types import REAL
    >>> holds(call("sin", fresh("x", REAL)), Call), holds(call("sin", fresh("x", REAL)), Sum, Delta)
    (True, False)
    """
    found = _kinds_in(t)
    return any(found & _BITS[kind] for kind in kinds)


def held_whole(t: Term) -> set[Var]:
    """The variables of maps that stand in `t` otherwise than applied: as an argument, a value, a state of a loop.

    Whatever replaces entries of a map has replaced the map only if nothing holds it whole.

    >>> from combdiff.terms.types import REAL, Map
    >>> i, x, y = fresh("i", Index()), *(fresh(name, Map((Index(),), REAL)) for name in "xy")
    >>> [v.name for v in held_whole(Tuple((App(x, (i,)), y)))]
    ['y']
    """
    nodes = subterms(t)
    held = chain([t], *(u.args if isinstance(u, App) and isinstance(u.function, Var) else children(u) for u in nodes))
    return {u for u in held if isinstance(u, Var) and isinstance(u.kind, Map)}


class _Bits(dict[type[Term], int]):
    def __missing__(self, kind: type[Term]) -> int:
        # in any number of threads no two kinds have one bit, though a bit may be of none
        return self.setdefault(kind, 1 << next(_places))


_places = count()
_BITS = _Bits()
"""A bit for each node kind that was met."""

_ANY = -1
"""The bits of all kinds."""


def _kinds_in(t: Term) -> int:
    """The bits of the kinds of all nodes in `t`."""
    stack = [] if hasattr(t, "_kinds") else [t]
    while stack:
        u = stack[-1]
        below = SCHEMAS[type(u)].children(u)
        missing = [c for c in below if not hasattr(c, "_kinds")]
        if missing:
            stack += missing
            continue
        stack.pop()
        found = _BITS[type(u)]
        for c in below:
            found |= c._kinds
        _set(u, "_kinds", found)
    return t._kinds


def _all_subterms(t: Term) -> Iterator[Term]:
    # a walk of its own: it is the one that is taken most often, and asks nothing of a node
    seen: set[Term] = set()
    stack = [t]
    while stack:
        u = stack.pop()
        known = len(seen)
        seen.add(u)
        if len(seen) > known:
            yield u
            if type(u) is not Var:
                stack += SCHEMAS[type(u)].children(u)[::-1]


def substitute(t: Term, values: Mapping[Var, Term]) -> Term:
    """`t` with free variables replaced; binders that would capture are renamed. Linear in the distinct subterms."""
    values = {var: value for var, value in values.items() if var in t.free and var is not value}
    if not values:
        return t
    entering = _NO_VARIABLES.union(*(value.free for value in values.values()))
    memo: dict[Term, Term] = {}

    def go(u: Term) -> Term:
        if u.free.isdisjoint(values):
            return u
        known = memo.get(u)
        if known is None:
            known = memo[u] = step(u)
        return known

    def step(u: Term) -> Term:
        if isinstance(u, Var):
            return values[u]
        bound = bound_by(u)
        if not entering.isdisjoint(bound) or not values.keys().isdisjoint(bound):
            u = refreshed(u)
        return rebuild(u, [go(c) for c in children(u)])

    return go(t)


def exchanged(t: Term, values: Mapping[Term, Term]) -> Term:
    """`t` with terms replaced by others; what binds their variables must stand around t.

    >>> from combdiff.terms.types import REAL
    >>> i, j = (fresh(name, Index(None)) for name in "ij")
    >>> x = fresh("x", Map((Index(None),), REAL))
    >>> exchanged(add(App(x, (i,)), i), {App(x, (i,)): j}) == add(j, i)
    True
    """
    return Traverser(lambda u: values.get(u, u))(t)


def inlined(t: Term, values: Mapping[Term, Lam]) -> Term:
    """`t` with entries of the tensors in `values` replaced by what their definitions say of them.

    >>> from combdiff.terms.terms import neg
    >>> from combdiff.terms.types import REAL
    >>> i, j = (fresh(name, Index(None)) for name in "ij")
    >>> x, y = (fresh(name, Map((Index(None),), REAL)) for name in "xy")
    >>> inlined(App(y, (j,)), {y: Lam((i,), App(x, (neg(i),)))}) == App(x, (neg(j),))
    True
    """
    return Traverser(
        lambda u: apply(values[u.function], *u.args) if isinstance(u, App) and u.function in values else u, App
    )(t)


def let(bindings: Sequence[tuple[Var, Term]], body: Term) -> Term:
    """Bindings as `bound` makes them; a definition of a plain number is written out, as it is where a text is read.

    >>> from combdiff.terms.nodes import ZERO
    >>> from combdiff.terms.types import REAL
    >>> x, r = fresh("x", REAL), fresh("r", REAL)
    >>> let([(r, ZERO)], mul(r, x)) is ZERO
    True
    """
    found = bound(bindings, body)
    if not isinstance(found, Let):
        return found
    numbers = {v: e for v, e in found.bindings if isinstance(e, Const) and is_complex(e.type) == is_complex(v.kind)}
    if not numbers:
        return found
    kept = [(v, substitute(e, numbers)) for v, e in found.bindings if v not in numbers]
    # what was made of them may be a number now
    return let(kept, substitute(found.body, numbers))


_NOTHING: Mapping[Var, Term] = {}


def refreshed(t: Term, values: Mapping[Var, Term] = _NOTHING) -> Term:
    """A copy of `t` that shares no binder with it: bound variables are renamed, free ones replaced by `values`."""
    return _Renaming(values)(t, values) if values else renamed(t, values)


def renamed(t: Term, names: Mapping[Var, Term]) -> Term:
    """`t` with variables exchanged one for one: free ones by `names`, others of their kinds, bound ones by new ones."""
    exchanged: dict[Term, Term] = {v: names.get(v, v) for v in t.free}

    def go(u: Term) -> Term:
        known = exchanged.get(u)
        if known is None:
            known = exchanged[u] = step(u)
        return known

    def step(u: Term) -> Term:
        if isinstance(u, Var):
            return fresh(u.name, u.kind)
        below = children(u)
        if not below:
            return u
        bound = tuple([v for v in map(go, bound_by(u)) if isinstance(v, Var)])
        parts = [go(c) for c in below]
        # what depends on the numbers of variables is the order of an affine form
        affine = isinstance(u, Add) and isinstance(u.type, Index)
        return rebuild(u, parts) if affine else reshaped(u, parts, bound)

    return go(t)


def _exchanges(values: Mapping[Var, Term], t: Term) -> bool:
    """Whether `values` are variables that are different, of the kinds of those they replace, and new to `t`."""
    new = {w for v, w in values.items() if isinstance(w, Var) and w.kind == v.kind}
    return len(new) == len(values) and new.isdisjoint(t.free)


class _Renaming:
    """A subterm may stand inside a binder and outside of it, so what its names are now is part of the memo's key."""

    def __init__(self, values: Mapping[Var, Term]) -> None:
        self.values = values
        self.seen: dict[tuple[Term, tuple[tuple[int, Term], ...]], Term] = {}

    def __call__(self, t: Term, names: Mapping[Var, Term]) -> Term:
        if isinstance(t, Var):
            return names.get(t, t)
        key = (t, tuple(sorted([(v.uid, names[v]) for v in t.free if v in names], key=_by_number)))
        known = self.seen.get(key)
        if known is None:
            known = self.seen[key] = self.step(t, names)
        return known

    def step(self, t: Term, names: Mapping[Var, Term]) -> Term:
        bound = bound_by(t)
        below = children(t)
        if not bound:
            parts = [self(c, names) for c in below]
            return t if all(map(is_, parts, below)) else rebuild(t, parts)
        own = tuple([fresh(var.name, var.kind) for var in bound])
        if isinstance(t, Let):
            return self.let(t, own, names)
        body = self(below[0], {**names, **dict(zip(bound, own, strict=True))})
        # a body in which something was replaced may have lost its normal form
        changed = not t.free.isdisjoint(self.values)
        match t:
            case Lam():
                return lam(own, body) if changed else Lam(own, body)
            case Sum():
                return total(own, body) if changed else Sum(own, body)
        raise AssertionError(f"{type(t).__name__} binds nothing")

    def let(self, t: Let, own: tuple[Var, ...], names: Mapping[Var, Term]) -> Term:
        scope = dict(names)
        renamed = []
        for new, (var, value) in zip(own, t.bindings, strict=True):
            renamed.append((new, self(value, scope)))
            scope[var] = new
        return Let(tuple(renamed), self(t.body, scope))


def _uid(v: Var) -> int:
    return v.uid


def _by_number(entry: tuple[int, Term]) -> int:
    return entry[0]


_CONSTRUCTORS: dict[type[Term], Callable[..., Term]] = {
    Lam: lam,
    App: apply,
    Tuple: lambda *items: Tuple(items),
    Proj: proj,
    Let: let,
    Add: add,
    Mul: mul,
    Pow: power,
    Conj: conj,
    Call: call,
    Sum: total,
    Delta: delta,
    Indicator: indicator,
    Diff: diff,
    Reduce: reduced,
    Loop: Loop,
}
"""What makes a node of each kind, of its fields, each child of a row an argument of its own."""


def is_tensor(t: Term) -> bool:
    """Whether `t` is a λ-term of indices only."""
    # its entries may be integers: (k::BZ) -> 1 - k
    return (
        isinstance(t, Lam)
        and all(isinstance(p.kind, Index) for p in t.params)
        and isinstance(t.body.type, Number | Index)
    )


def interval_of_sum(v: Var, body: Term) -> Interval | None:
    """The interval over which an integral runs, of which no δ fixes the variable; None for all others."""
    interval = interval_of(v.kind)
    return None if interval is None or any(peaks_along(v, body)) else interval


def peaks_along(v: Var, body: Term) -> Iterator[Delta]:
    """Each δ in `body` that may say what the number v is.

    One of a value of a function at v does not if it says what another number is, over which `body` integrates.

    >>> from combdiff.terms.types import REAL
    >>> x, t = fresh("x", REAL), fresh("t", REAL)
    >>> [len(list(peaks_along(x, total([t], delta(e, t, t))))) for e in (x, call("sin", x))]
    [1, 0]
    """
    inner = {w for u in subterms(body) if isinstance(u, Sum) for w in u.indices if isinstance(w.kind, Number)}
    for u in subterms(body):
        sides = (u.left, u.right) if isinstance(u, Delta) else ()
        if any(v in e.free for e in sides) and (
            inner.isdisjoint(sides) or any(_outside_of_functions(v, e) for e in sides)
        ):
            assert isinstance(u, Delta), "sides"
            yield u


def _outside_of_functions(v: Var, t: Term) -> bool:
    """Whether `t` holds v not only in arguments of functions and in powers."""
    return t == v or (not isinstance(t, App | Call | Pow) and any(_outside_of_functions(v, c) for c in children(t)))


def jumps_along(v: Var, body: Term) -> bool:
    """Whether a condition on `v`, or the sign of something or a whole number that depends on it, stands in `body`."""
    return any(
        (isinstance(u, Indicator) and v in u.left.free | u.right.free)
        or (isinstance(u, Call) and u.primitive in ("sign", "floor", "ceil", "round") and v in u.free)
        for u in subterms(body)
    )
