"""Jacobians: the derivative along every direction at once, by whichever mode has fewer of them.

    J(r, s) = ∂f_r / ∂x_s

Forward, the tangent of x is d ↦ δ(d, s, 1); in reverse, the cotangent of f is d ↦ δ(d, r, 1). The slots of the result
stand first, then those of the variable. Of a complex variable there are two, ∂f/∂z and ∂f/∂z* (`wirtinger.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from combdiff.calculus.definitions.floating import Binding, float_lets
from combdiff.calculus.definitions.naming import name_arguments
from combdiff.calculus.forward import forward_pass
from combdiff.calculus.matrices.wirtinger import is_zero, scaled, split
from combdiff.calculus.reverse import (
    check_differentiable,
    cotangent_type,
    met_integrals,
    named_slots,
    reverse_pass,
)
from combdiff.errors import UnsupportedError
from combdiff.records import dataclass
from combdiff.terms.conditions.kinks import without_needless_conditions
from combdiff.terms.scalars import HALF
from combdiff.terms.terms import (
    ONE,
    TWO,
    Lam,
    Let,
    Term,
    Tuple,
    Var,
    apply,
    conj,
    delta,
    fresh,
    items_of,
    lam,
    let,
    refreshed,
    substitute,
    tuple_of,
)
from combdiff.terms.types import Map, Product, Type, is_complex, slot_types

Ask = Callable[[], None]
Pair = tuple[Term, Term | None]
"""∂f/∂z and ∂f/∂z*; of a real variable there is one."""


@dataclass(frozen=True, slots=True)
class Jacobian:
    """`taken` is x… -> the Jacobians, result by result, and in each unknown by unknown.

    At the places `second` of the tuple stand those by the conjugates of unknowns.
    """

    taken: Lam
    second: frozenset[int]

    def without_zeros(self, f: Lam) -> Lam:
        """`f`, which is `taken` in another form, without the Jacobians by conjugates if all of them are 0.

        So the number of items says which they are: all of them are there, or none.
        """
        bindings, core = (f.body.bindings, f.body.body) if isinstance(f.body, Let) else ((), f.body)
        if not self.second or not isinstance(core, Tuple) or not all(is_zero(core.items[n]) for n in self.second):
            return f
        kept = [e for n, e in enumerate(core.items) if n not in self.second]
        return Lam(f.params, let(bindings, tuple_of(kept)))


def jacobian_of(f: Lam, ask: Ask = lambda: None) -> Jacobian:
    """The Jacobians of the values of f by its parameters.

    >>> from combdiff.language.inference.infer import infer
    >>> from combdiff.language.parsing.parser import parse
    >>> from combdiff.language.printing.printer import expression_text
    >>> f = infer(parse("(z::C) -> z' * z"))
    >>> expression_text(jacobian_of(f).taken)
    "(z::C) -> (z', z)"

    Raises:
        UnsupportedError: an unknown or a value is a function of real numbers.
    """
    for x in f.params:
        check_differentiable(x)
        _check_array(x.kind, f"the unknown {x.name}")
    kinds = f.body.type.items if isinstance(f.body.type, Product) else (f.body.type,)
    for kind in kinds:
        _check_array(kind, "the value")
    ranks = [len(slot_types(kind)) for kind in kinds], [len(slot_types(x.kind)) for x in f.params]
    bindings, rows = _in_reverse(f, ask) if max(ranks[0]) < max(ranks[1]) else _forward(f, ask)
    items: list[Term] = []
    second: set[int] = set()
    pairs = [pair for row in rows for pair in row]
    holomorphic = all(other is None or is_zero(other) for _, other in pairs)
    for first, other in pairs:
        items.append(first)
        if other is not None and not holomorphic:
            second.add(len(items))
            items.append(other)
    taken = without_needless_conditions(let(bindings, tuple_of(items)))
    return Jacobian(Lam(f.params, taken), frozenset(second))


def _check_array(kind: Type, what: str) -> None:
    if isinstance(kind, Map) and not kind.is_array:
        raise UnsupportedError(
            f"{what} is a function of numbers, and a Jacobian has a row or a column for each entry of a tensor",
            remedy="use pullback, or jvp, which take one direction",
        )


def _unit(kind: Type, at: Sequence[Var]) -> Term:
    """d ↦ δ(d, at, 1); of a number, 1."""
    params = tuple(fresh(v.name, v.kind) for v in at)
    body: Term = ONE
    for d, place in reversed(list(zip(params, at, strict=True))):
        body = delta(d, place, body)
    return Lam(params, body) if params else body


def _forward(f: Lam, ask: Ask) -> tuple[list[Binding], list[list[Pair]]]:
    """Values and tangents, and for each result a row of Jacobians by the unknowns."""
    values: dict[Var, Term] = {}
    tangents: list[Binding] = []
    columns: list[list[Pair]] = []
    for x in f.params:
        at = _places(x, f)
        k = fresh("k", cotangent_type(x.kind)) if is_complex(x.kind) else None
        unit = _unit(x.kind, at)
        bindings, steps, pushed = forward_pass(f, {x: unit if k is None else k}, ask)
        values |= {var: e for var, e in bindings if var not in values}
        pairs: list[Pair] = [(e, None) for e in pushed]
        if k is not None:
            steps, found = split(steps, pushed, {k: unit})
            pairs = [*found]
        floated, pairs = _over(at, steps, pairs)
        tangents += floated
        columns.append([tuple(_behind(at, e, f, n) for e in pair) for n, pair in enumerate(pairs)])  # type: ignore[misc]  # of two
    return [*values.items(), *tangents], [list(row) for row in zip(*columns, strict=True)]


def _in_reverse(f: Lam, ask: Ask) -> tuple[list[Binding], list[list[Pair]]]:
    """Values and cotangents, and for each result a row of Jacobians by the unknowns."""
    bindings, core = name_arguments(f.params, *float_lets(met_integrals(f)), ask)
    own = {var for var, _ in bindings}
    values: dict[Var, Term] = {}
    cotangents: list[Binding] = []
    rows: list[list[Pair]] = []
    for value in items_of(core):
        at = _own_slots(value, value)
        k = fresh("k", cotangent_type(value.type)) if is_complex(value.type) else None
        unit = _unit(value.type, at)
        body = reverse_pass(f.params, bindings, [(value, unit if k is None else k)], ask=ask)
        steps, body = ([*body.bindings], body.body) if isinstance(body, Let) else ([], body)
        values |= {var: e for var, e in steps if var in own}
        steps = [(var, e) for var, e in steps if var not in own]
        pulled = body.items if isinstance(body, Tuple) and len(f.params) > 1 else (body,)
        pairs: list[Pair] = [(e, None) for e in pulled]
        if k is not None:
            steps, found = split(steps, pulled, {k: unit})
            pairs = [*found]
        floated, pairs = _over(at, steps, [_jacobians(p, x.kind) for p, x in zip(pairs, f.params, strict=True)])
        cotangents += floated
        rows.append([tuple(_before(at, e) for e in pair) for pair in pairs])  # type: ignore[misc]  # of two
    return [*((v, values[v]) for v, _ in bindings if v in values), *cotangents], rows


def _jacobians(parts: Pair, unknown: Type) -> Pair:
    """∂f/∂z and ∂f/∂z* from the parts of a cotangent, (∂f/∂z)* k + (∂f/∂z*) k* of a complex k, or both at k = 1."""
    first, second = parts
    if second is None:
        return (_conjugate(scaled(HALF, first)), scaled(HALF, first)) if is_complex(unknown) else (first, None)
    return (_conjugate(first), second) if is_complex(unknown) else (scaled(TWO, second), None)


def _conjugate(t: Term) -> Term:
    return Lam(t.params, conj(t.body)) if isinstance(t, Lam) else conj(t)


def _over(at: Sequence[Var], steps: Sequence[Binding], pairs: Sequence[Pair]) -> tuple[list[Binding], list[Pair]]:
    """The steps as values of their own, maps of the indices `at` where they depend on them; the pairs by these."""
    flat = [e for pair in pairs for e in pair if e is not None]
    if not at:
        return [*steps], [*pairs]
    inside = {v: fresh(v.name, v.kind) for v in at}
    bindings, core = float_lets(Lam(tuple(inside.values()), substitute(let(steps, Tuple(tuple(flat))), inside)))
    items = apply(core, *at)
    assert isinstance(items, Tuple), "a tuple of all of them"
    rest = iter(items.items)
    return bindings, [(next(rest), None if second is None else next(rest)) for _, second in pairs]


def _behind(at: Sequence[Var], t: Term | None, f: Lam, number: int) -> Term | None:
    """A tangent of a result of f with the slots of the variable behind its own."""
    own = _own_slots(t, _result(f.body, number))
    return t and _renewed((*own, *at), apply(t, *own) if own else t)


def _before(at: Sequence[Var], t: Term | None) -> Term | None:
    """A cotangent with the slots of the result before its own."""
    own = _own_slots(t, t)
    return t and _renewed((*at, *own), apply(t, *own) if own else t)


def _own_slots(t: Term | None, like: Term | None) -> tuple[Var, ...]:
    """An index for each slot of a tensor, with the names that a term `like` it has."""
    kinds = slot_types(t.type) if t is not None else ()
    named = next((u.params for u in (like, t) if isinstance(u, Lam)), ())
    names = [p.name for p in named] if len(named) == len(kinds) else [f"d{n + 1}" for n in range(len(kinds))]
    return tuple(fresh(name, kind) for name, kind in zip(names, kinds, strict=True))


def _result(body: Term, number: int) -> Term:
    """One of the results of a program, as it is written."""
    while isinstance(body, Let):
        body = body.body
    return body.items[number] if isinstance(body, Tuple) else body


def _renewed(params: Sequence[Var], entry: Term) -> Term:
    """A tensor with slots of its own."""
    if not params:
        return entry
    return refreshed(lam(tuple(params), entry))


def _places(x: Var, f: Lam) -> tuple[Var, ...]:
    """An index for each slot of an unknown, with the name that the program puts there first."""
    return named_slots(x, [f.body])
