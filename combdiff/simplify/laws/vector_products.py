"""Vector products of a sum that have a vector in common become one: h × a + 2 (b × h) = h × (a − 2 b).

So do those under Σ: Σ_i w(i) (f(i) × m) is (Σ_i w(i) f(i)) × m.
"""

from __future__ import annotations

from itertools import combinations, product

from combdiff.records import dataclass
from combdiff.terms.conditions.guards import Condition, condition_of, under
from combdiff.terms.terms import (
    MINUS_ONE,
    Add,
    App,
    Delta,
    Indicator,
    Lam,
    Mul,
    Reduce,
    Sum,
    Term,
    Traverser,
    Var,
    add,
    alpha_equal,
    apply,
    factors_of,
    fresh,
    mul,
    reduction,
    split_coefficient,
    substitute,
    total,
)


def with_common_vectors(t: Term) -> Term:
    """`t` with fewer vector products in its sums, and under them.

    >>> from combdiff.terms.types import REAL, Index, Map, range_of
    >>> three = Index(range_of(3))
    >>> h, a, b = (fresh(name, Map((three,), REAL)) for name in "hab")
    >>> i, p = fresh("i", three), fresh("p", three)
    >>> first, second, both = (
    ...     apply(reduction("cross", (i,), apply(h, i), v), p)
    ...     for v in (apply(a, i), apply(b, i), add(apply(a, i), apply(b, i)))
    ... )
    >>> alpha_equal(with_common_vectors(add(first, second)), both)
    True
    """

    def visit(u: Term) -> Term:
        return _joined(u) if isinstance(u, Add) else _of_one_sum(u) if isinstance(u, Sum) else u

    return Traverser(visit, Add, Sum)(t)


def with_signs_turned(t: Term) -> Term:
    """`t` with v × u for −(u × v), in every product that has one such factor and a minus in front.

    >>> from combdiff.terms.types import REAL, Index, Map, range_of
    >>> three = Index(range_of(3))
    >>> (u, v), i, p = (fresh(name, Map((three,), REAL)) for name in "uv"), fresh("i", three), fresh("p", three)
    >>> there, back = (apply(reduction("cross", (i,), apply(a, i), apply(b, i)), p) for a, b in ((u, v), (v, u)))
    >>> alpha_equal(with_signs_turned(mul(MINUS_ONE, there)), back)
    True
    """

    def visit(u: Term) -> Term:
        size, _ = split_coefficient(u)
        own = [f for f in factors_of(u) if _is_entry(f)]
        if size.imag or size.real > 0 or len(own) != 1:
            return u
        (entry,) = own
        assert isinstance(entry, App) and isinstance(entry.function, Reduce), "an entry of a vector product"
        whole = entry.function
        turned = apply(reduction("cross", whole.indices, whole.body, whole.mark), *entry.args)
        return mul(MINUS_ONE, *(f for f in factors_of(u) if f is not entry), turned)

    return Traverser(visit, Mul)(t)


def _is_entry(t: Term) -> bool:
    return isinstance(t, App) and isinstance(t.function, Reduce) and t.function.kind == "cross"


@dataclass(frozen=True, slots=True, eq=False)
class _Product:
    """A term of a sum: under conditions, `factors` times the entry of u × v at `place`, for two maps of an index."""

    term: Term
    conditions: tuple[Condition, ...]
    factors: tuple[Term, ...]
    vectors: tuple[Lam, Lam]
    place: Var


def _joined(t: Add) -> Term:
    """The sum with terms joined in pairs until no two have a vector in common."""
    left = list(t.terms)
    while pair := next(filter(None, (_one_of(a, b) for a, b in combinations(_products(left), 2))), None):
        old, made = pair
        left = [u for u in left if u not in old]
        left += made.terms if isinstance(made, Add) else [made]
    return add(*left)


def _products(terms: list[Term]) -> list[_Product]:
    return [found for u in terms if (found := _product(u)) is not None]


def _product(t: Term) -> _Product | None:
    """A term as a vector product; none if a factor or a condition depends on the place."""
    conditions = list[Condition]()
    factors = list[Term]()
    left = [t]
    while left:
        for f in factors_of(left.pop()):
            if isinstance(f, Delta | Indicator):
                conditions.append(condition_of(f))
                left.append(f.body)
            else:
                factors.append(f)
    own = [f for f in factors if isinstance(f, App) and _is_entry(f)]
    if len(own) != 1 or not isinstance(place := own[0].args[0], Var):
        return None
    others = tuple(f for f in factors if f is not own[0])
    if any(place in f.free for f in others) or any(place in c.free for c in conditions):
        return None
    whole = own[0].function
    assert isinstance(whole, Reduce), "a vector product"
    vectors = Lam(whole.indices, whole.mark), Lam(whole.indices, whole.body)
    return _Product(t, tuple(conditions), others, vectors, place)


def _one_of(a: _Product, b: _Product) -> tuple[tuple[Term, Term], Term] | None:
    """Two terms, and the one that is their sum, if they have a vector in common."""
    if a.place != b.place or {*a.conditions} != {*b.conditions}:
        return None
    for n, m in product(range(2), repeat=2):
        if a.vectors[n].free == b.vectors[m].free and alpha_equal(a.vectors[n], b.vectors[m]):
            common = [f for f in a.factors if f in b.factors]
            i = fresh(a.vectors[n].params[0].name, a.vectors[n].params[0].kind)
            parts = [_scaled(a, 1 - n, i, common), _scaled(b, 1 - m, i, common)]
            second = add(parts[0], parts[1] if n == m else mul(MINUS_ONE, parts[1]))
            vectors = [substitute(a.vectors[n].body, {a.vectors[n].params[0]: i}), second]
            whole = reduction("cross", (i,), *(vectors if n == 0 else vectors[::-1]))
            return (a.term, b.term), under(a.conditions, mul(*common, apply(whole, a.place)))
    return None


def _of_one_sum(t: Sum) -> Term:
    """Σ of vector products with one vector that stays the same: the product of a sum with it."""
    found = _product(t.body) if t.counted is None else None
    if found is None:
        return t
    for n in range(2):
        same, other = found.vectors[n], found.vectors[1 - n]
        own = tuple(v for v in t.indices if v not in same.free and v in other.free and v != found.place)
        if not own:
            continue
        held = [f for f in found.factors if not f.free.isdisjoint(own)]
        inside = [c for c in found.conditions if not c.free.isdisjoint(own)]
        i = fresh(other.params[0].name, other.params[0].kind)
        summed = total(own, under(inside, mul(*held, substitute(other.body, {other.params[0]: i}))))
        vectors = [substitute(same.body, {same.params[0]: i}), summed]
        whole = apply(reduction("cross", (i,), *(vectors if n == 0 else vectors[::-1])), found.place)
        around = [c for c in found.conditions if c not in inside]
        product = mul(*(f for f in found.factors if f not in held), whole)
        return total(tuple(v for v in t.indices if v not in own), under(around, product))
    return t


def _scaled(a: _Product, n: int, i: Var, common: list[Term]) -> Term:
    """An entry of a vector, times the factors that are not common."""
    vector = a.vectors[n]
    return mul(*(f for f in a.factors if f not in common), substitute(vector.body, {vector.params[0]: i}))
