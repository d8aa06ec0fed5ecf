"""Lowers integrals to finite sums by a quadrature rule, whose nodes and weights are arguments of the code.

    ∫₀¹ e(x) dx   is   Σ_k W_k e(X_k)

The rule of an interval `Line` is one array `Line` of two rows, the nodes and the weights. A result that is a function
on the interval is computed at the nodes; what belongs to the ends follows, all items in one tuple.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from combdiff.errors import UnsupportedError
from combdiff.terms.terms import (
    ONE,
    ZERO,
    App,
    Indicator,
    Lam,
    Let,
    Sum,
    Term,
    Traverser,
    Tuple,
    Var,
    bound_by,
    children,
    fresh,
    let,
    mul,
    substitute,
    subterms,
    total,
    tuple_of,
)
from combdiff.terms.types import REAL, Domain, Index, Interval, Map, interval_of

ROWS = Domain("rows of a rule", declared=True, lower=0, upper=1)


@lru_cache(maxsize=1024)
def rule(interval: Interval) -> Var:
    """The parameter for the quadrature rule of an interval.

    >>> rule(Interval("Line")).name
    'Line'
    """
    nodes = Index(Domain(f"{interval.name}.2", nodes=interval))
    return fresh(interval.name, Map((Index(ROWS), nodes), REAL))


def with_rules(t: Term) -> Term:
    """A result as finite sums; the rules are captured, parameters before those of the last group.

    >>> from combdiff.terms.terms import power
    >>> from combdiff.terms.types import Number
    >>> line = Number(complex=False, interval=Interval("Line"))
    >>> x, a = fresh("x", line), fresh("a", REAL)
    >>> print(with_rules(Lam((a,), total([x], power(x, a)))).params[0].name)
    Line
    """
    t = _with_points(t)
    intervals = list(dict.fromkeys(_intervals(t)))
    if not intervals:
        return t
    _check_names(t, intervals)
    return _below_arguments(t, tuple(map(rule, intervals)))


def _with_points(t: Term) -> Term:
    """A result with functions on intervals as maps of their points, z′ as x ↦ z′(x)."""
    match t:
        case Lam(params, body):
            return Lam(params, _with_points(body))
        case Let(bindings, body):
            return let(bindings, _with_points(body))
        case Tuple(items):
            return Tuple(tuple(map(_with_points, items)))
    kind = t.type
    if not isinstance(kind, Map) or not any(interval_of(p) is not None for p in kind.params):
        return t
    own = tuple(fresh("x", p) for p in kind.params)
    return Lam(own, App(t, own))


def _intervals(t: Term) -> Iterator[Interval]:
    """The intervals over which something runs: an integral, or a result."""
    for u in subterms(t):
        for v in bound_by(u):
            if (interval := interval_of(v.kind)) is not None:
                yield interval


def _is_point(v: Var) -> bool:
    return interval_of(v.kind) is not None


def _below_arguments(t: Term, rules: tuple[Var, ...]) -> Term:
    """The rules as parameters before the last ones, and the sums below."""
    if _takes_arguments(t) and isinstance(t, Lam) and _takes_arguments(t.body):
        return Lam(t.params, _below_arguments(t.body, rules))
    at_nodes = Traverser(_visit)(Traverser(_at_points)(t))
    return Lam(rules, _flat(Traverser(_with_arrays)(at_nodes)))


def _is_function(v: Var) -> bool:
    return isinstance(v.kind, Map) and any(interval_of(p) is not None for p in v.kind.params)


def _at_points(t: Term) -> Term:
    """Definitions of functions that are read elsewhere than at the variables of integrals and results written out."""
    if not isinstance(t, Let) or not any(_is_function(v) for v, _ in t.bindings):
        return t
    kept: list[tuple[Var, Term]] = []
    rest = [*t.bindings]
    body = t.body
    while rest:
        (v, value), *rest = rest
        if _is_function(v) and not all(_is_at_nodes(u, v) for e in (*(e for _, e in rest), body) for u in subterms(e)):
            rest = [(w, substitute(e, {v: value})) for w, e in rest]
            body = substitute(body, {v: value})
        else:
            kept.append((v, value))
    return let(kept, body)


def _is_at_nodes(t: Term, v: Var) -> bool:
    """Whether a term that holds a function has its values at variables only."""
    if not isinstance(t, App) or t.function is not v:
        return v not in children(t)
    assert isinstance(v.kind, Map), "a function"
    return all(isinstance(a, Var) or interval_of(p) is None for a, p in zip(t.args, v.kind.params, strict=True))


def _with_arrays(t: Term) -> Term:
    """Definitions of functions, which are arrays by now, read at the nodes."""
    if not isinstance(t, Let):
        return t
    arrays = {v: fresh(v.name, e.type) for v, e in t.bindings if _is_function(v)}
    if not arrays:
        return t

    def read(u: Term) -> Term:
        if not isinstance(u, App) or u.function not in arrays or not isinstance(u.function, Var):
            return u
        of = u.function.kind
        assert isinstance(of, Map), "a function"
        slots = zip(u.args, of.params, strict=True)
        return App(arrays[u.function], tuple(a if interval_of(p) is None else _node(a) for a, p in slots))

    at_nodes = Traverser(read)
    return let([(arrays.get(v, v), at_nodes(e)) for v, e in t.bindings], at_nodes(t.body))


def _node(place: Term) -> Term:
    """The index of a node, of the number that the node is."""
    assert isinstance(place, App), "the entry of a rule"
    return place.args[1]


def _flat(t: Term) -> Term:
    """A result whose items are tuples, as they are at ends, as one tuple of all of them."""
    match t:
        case Lam(params, body):
            return Lam(params, _flat(body))
        case Let(bindings, body):
            return let(bindings, _flat(body))
        case Tuple(items):
            return tuple_of([e for item in items for e in _leaves(item)])
        case _:
            return t


def _leaves(item: Term) -> tuple[Term, ...]:
    return tuple(e for inner in item.items for e in _leaves(inner)) if isinstance(item, Tuple) else (item,)


def _takes_arguments(t: Term) -> bool:
    """Whether it is a map of what a call is given: no array of entries, no function on an interval."""
    return isinstance(t, Lam) and not all(isinstance(p.kind, Index) or _is_point(p) for p in t.params)


def _visit(t: Term) -> Term:
    match t:
        case Sum(indices, body) if any(map(_is_point, indices)):
            _check_no_jump(indices, body)
            weights = []
            found: list[Var] = []
            for v in indices:
                k, body, weight = _at_nodes(v, body)
                found.append(k)
                weights.append(weight)
            return total(found, mul(*weights, body))
        case Lam(params, body) if any(map(_is_point, params)):
            slots: list[Var] = []
            for v in params:
                k, body, _ = _at_nodes(v, body)
                slots.append(k)
            return Lam(tuple(slots), body)
        case _:
            return t


def _check_no_jump(indices: Sequence[Var], body: Term) -> None:
    """A rule for smooth integrands is wrong, in silence, where one jumps."""
    for v in filter(_is_point, indices):
        if any(v in u.left.free | u.right.free for u in subterms(body, Indicator)):
            raise UnsupportedError(
                f"a condition on {v.name} stands under an integral over {v.name}: a rule does not see the jump",
                remedy="write an integral over a domain of its own for each side; without a jump, max, min, abs, relu",
            )


def _at_nodes(v: Var, body: Term) -> tuple[Var, Term, Term]:
    """The index of a node in the place of a point, the body there, and the weight."""
    interval = interval_of(v.kind)
    if interval is None:
        return v, body, ONE
    given = rule(interval)
    assert isinstance(given.kind, Map), "a rule is an array"
    k = fresh(v.name, given.kind.params[1])
    return k, substitute(body, {v: App(given, (ZERO, k))}), App(given, (ONE, k))


def _check_names(t: Term, intervals: list[Interval]) -> None:
    names = {p.name for u in subterms(t, Lam) for p in u.params}
    for interval in intervals:
        if interval.name in names:
            raise UnsupportedError(
                f"{interval.name} is a domain and a parameter, and its rule is an argument of the code",
                remedy="give one of the two another name",
            )
