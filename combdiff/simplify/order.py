"""Orders a result for reading: numbers, scalars, then tensors as the program declares them.

    C(s, j) * J(p, q, r, s) * C(q, i) * C(r, j)'   becomes   J(p, q, r, s) * C(q, i) * C(r, j)' * C(s, j)

Among entries of one tensor, the one comes first whose indices were met first; the indices of a sum stand in the order
in which its body meets them. The e-graph's multisets and the constructors keep no order of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import field, replace
from typing import NamedTuple

from combdiff.canon.canonical import Symmetries, laws_of_matrix
from combdiff.canon.repeats import Repeats
from combdiff.records import dataclass
from combdiff.simplify.images import plainest
from combdiff.terms.nodes import TURNING
from combdiff.terms.terms import (
    IMAGINARY,
    MINUS_ONE,
    ONE,
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
    Mul,
    Pow,
    Reduce,
    Sum,
    Term,
    Tuple,
    Var,
    add,
    alpha_equal,
    apply,
    call,
    children,
    conj,
    content,
    delta,
    diff,
    factors_of,
    has_no_index,
    lam,
    mul,
    neg,
    numbers_read,
    power,
    rebuild,
    split_coefficient,
    substitute,
    subterms,
    terms_of,
    times,
    total,
)
from combdiff.terms.types import Index, Map, Type

Rank = Mapping[Var, tuple[int, int]]


CAPTURED, UNKNOWN, COTANGENT = range(3)
"""Classes of variables in the order in which they are read; values of lets stand among the unknowns."""

_LAST = (COTANGENT + 1, 0)


@dataclass(frozen=True, slots=True)
class ReadingOrder:
    """Puts results in reading order.

    `rank` gives the class and the number of parameters; the declared symmetries of variables in `unused` choose no
    image; with `collect`, what all terms of a sum have in common stands in front of it; `derived` are the symmetries
    that values have been found to have; `ask` is called often, and may raise to stop.
    """

    rank: Rank
    unused: Collection[Var] = ()
    collect: bool = False
    derived: Symmetries = field(default_factory=dict)
    ask: Callable[[], None] = lambda: None

    def __call__(self, t: Term, met: Sequence[Var] = ()) -> Term:
        """`t` with factors, terms and summed indices in order, and entries as their plainest images; `met` are the
        indices of the maps around it."""
        self.ask()
        match t:
            case Lam(params, body):
                return Lam(params, self(body, (*met, *params)))
            case Let(bindings, body):
                return self._let(bindings, body, met)
            case Tuple(items):
                return Tuple(tuple(self(item, met) for item in items))
            case Sum(indices, body):
                return self._sum(indices, body, met)
            case Mul(factors) if not isinstance(t.type, Index):
                inner = _numbers_of_deltas([self(f, met) for f in factors])
                return _product(self._primitive(inner), self.rank, met)
            case Delta(left, right, body) if isinstance(left.type, Index) and not isinstance(t.type, Index):
                # a + δ(i, j, -1) is a - δ(i, j, 1)
                size, rest = split_coefficient(self(body, met))
                sign = MINUS_ONE if size.real < 0 and not size.imag else ONE
                return mul(sign, delta(self(left, met), self(right, met), mul(sign, size, rest)))
            case Pow(base, Const() as n) if self.collect and n.is_integer and (n.real < 0 or _is_below_zero(base)):
                return self._power(base, n, met)
            case Add(terms) if not isinstance(t.type, Index):
                ordered = sorted((self(u, met) for u in terms), key=_is_negative)
                return self._sum_of(ordered, met) if self.collect else add(*ordered)
            case App(f, args) if any(isinstance(a, Lam) for a in args):
                return apply(self(f, met), *(_as_whole(self(a, met)) for a in args))
            case Diff(kind, Lam(params, body)):
                return diff(kind, lam(params, _named_whole(self(body, met))))
            case App(Var() as tensor, _) | Conj(App(Var() as tensor, _)) if tensor not in self.unused:
                return plainest(t, met, self.derived.get(tensor, ()))
            case App(Reduce(kind) as whole, _) | Conj(App(Reduce(kind) as whole, _)) if kind in TURNING:
                entry = _with_inner(t, lambda u: self(u, met))
                return plainest(entry, met, laws_of_matrix(whole, self.derived, self.unused))
            case _:
                below = children(t)
                return rebuild(t, [self(c, met) for c in below]) if below else t

    def _power(self, base: Term, n: Const, met: Sequence[Var]) -> Term:
        """A power with a number in front of what is divided by, and without the sign of a sum of negative terms."""
        if n.real < 0:
            size, rest = content(self(base, met))
            return mul(power(size, n), power(rest, n))
        return mul(power(MINUS_ONE, n), power(self(add(*map(neg, terms_of(base))), met), n))

    def _sum_of(self, terms: Sequence[Term], met: Sequence[Var]) -> Term:
        at_once = _parts_at_once(_conditions_at_once(terms))
        if len(at_once) < len(terms):
            at_once = [self(u, met) for u in at_once]
        return self._collected(_without_surplus(at_once), met)

    def _collected(self, terms: Sequence[Term], met: Sequence[Var]) -> Term:
        """a·x + a·y as a·(x + y), for factors a that are more than numbers."""
        common, cofactors = _common([factors_of(t) for t in terms])
        if not common:
            return add(*terms)
        size, rest = content(_added([mul(*fs) for fs in cofactors]))
        return _product([size, *common, rest], self.rank, met)

    def _primitive(self, factors: Sequence[Term]) -> list[Term]:
        """`factors` with the numbers that all terms of a sum have in front of the product."""
        if not self.collect:
            return list(factors)
        parts = [content(f) if isinstance(f, Add) else (ONE, f) for u in factors for f in factors_of(u)]
        return _with_short_numbers([*(c for c, _ in parts if c != ONE), *(f for _, f in parts)])

    def _let(self, bindings: tuple[tuple[Var, Term], ...], body: Term, met: Sequence[Var]) -> Term:
        rank = dict(self.rank)
        inside = replace(self, rank=rank)
        once = Repeats(lambda value: inside(value, met), lambda variables: inside._relative(variables, met))
        ordered = []
        for var, value in bindings:
            ordered.append((var, _named_whole(once(value))))
            rank[var] = UNKNOWN, len(rank)
        return Let(tuple(ordered), inside(body, met))

    def _relative(self, variables: Sequence[Var], met: Sequence[Var]) -> Hashable:
        """What the order of a term depends on besides its form: how its variables are ranked among each other."""
        ranks = [self.rank.get(v, _LAST) for v in variables]
        order = sorted(set(ranks))
        derived = [self.derived.get(v, ()) for v in variables]
        places = [
            (order.index(r), r[0], v in self.unused, d) for r, v, d in zip(ranks, variables, derived, strict=True)
        ]
        return tuple(places), tuple(variables) if met else ()

    def _sum(self, indices: Sequence[Var], body: Term, met: Sequence[Var]) -> Term:
        absent = [v for v in indices if isinstance(v.kind, Index) and v not in body.free]
        if absent and (len(indices) > 1 or body != ONE):
            # what an index does not occur in is counted: n x, not Σ_i x
            left = [v for v in indices if v not in absent]
            rest = self._sum(left, body, met) if left else self(body, met)
            return _product([*(total((v,), ONE) for v in absent), *factors_of(rest)], self.rank, met)
        met_at, body = _deltas_out(indices, body)
        if met_at:
            inside = self._sum(indices, body, met)
            for at in reversed(met_at):
                inside = delta(self(at.left, met), self(at.right, met), inside)
            return inside
        outer, inner = _independent(indices, body)
        if outer and isinstance(inner, Delta):
            # which may stand before the sum, too
            below = self._sum(indices, inner, met)
            return _product([*(self(f, met) for f in outer), *factors_of(below)], self.rank, met)
        parts = _separate(indices, inner)
        if len(parts) > 1:
            sums = [self._sum(own, mul(*factors), met) for own, factors in parts]
            return _product([*(self(f, met) for f in outer), *(f for s in sums for f in factors_of(s))], self.rank, met)
        inner = self._turned(indices, inner, (*met, *_bound_around(indices, body, met)))
        size, inner = content(inner) if self.collect else (ONE, inner)
        outer = [size, *outer] if size != ONE else outer
        # sums in it may have become products: -d/l + d/l (1 + d/l) is d²/l²
        found, inner = _independent(indices, inner)
        outer += found
        summed = total(sorted(indices, key=_first_meeting(inner)), inner)
        return _product([*(self(f, met) for f in outer), summed], self.rank, met) if outer else summed

    def _turned(self, indices: Sequence[Var], body: Term, met: Sequence[Var]) -> Term:
        """`body` in order, indices reversed where that takes minus signs away.

        Σ_b S(k - b) w(b) is Σ_b S(k + b) w(b) for an even w.
        """
        ordered = self(body, met)
        signs = _minus_signs(ordered)
        for i in indices:
            if signs and _is_reversible(i.kind) and i not in numbers_read(body):
                turned = self(substitute(body, {i: mul(MINUS_ONE, i)}), met)
                if _minus_signs(turned) < signs:
                    body, ordered, signs = substitute(body, {i: mul(MINUS_ONE, i)}), turned, _minus_signs(turned)
        return ordered


def _minus_signs(t: Term) -> int:
    """The indices that stand with a minus in `t`."""
    arguments = (a for u in subterms(t, App) for a in u.args if isinstance(a, Add | Mul))
    return sum(split_coefficient(part)[0].real < 0 for a in arguments for part in _monomials(a))


def _monomials(a: Term) -> tuple[Term, ...]:
    if not isinstance(a.type, Index):
        return ()
    return terms_of(a)


def _is_reversible(kind: Type) -> bool:
    """Whether an index runs over the same values as its negative."""
    domain = kind.domain if isinstance(kind, Index) else None
    return domain is not None and (domain.periodic or domain.symmetric)


def _as_whole(value: Term) -> Term:
    """`x` for `i -> x(i)`."""
    return lam(value.params, value.body) if isinstance(value, Lam) else value


def _named_whole(value: Term) -> Term:
    """`D(r)` for `t -> D(r)(t)`, but a tensor with another name keeps its slots."""
    match value:
        case Lam(_, App(App() | Diff(), _)):
            return _as_whole(value)
        case _:
            return value


def _independent(indices: Sequence[Var], body: Term) -> tuple[list[Term], Term]:
    """The factors of `body` that no index of the sum stands in, which are written before it, and the others."""
    factors = factors_of(body)
    outer = [f for f in factors if f.free.isdisjoint(indices)]
    if len(outer) == len(factors):
        return [], body
    return outer, mul(*(f for f in factors if not f.free.isdisjoint(indices)))


def _deltas_out(indices: Sequence[Var], body: Term) -> tuple[list[Delta], Term]:
    """The δ around `body` that no index of the sum stands in, and the rest: Σ_j δ(0, d, x_j) is δ(0, d, Σ_j x_j)."""
    found: list[Delta] = []
    kept: list[Delta] = []
    number, rest = split_coefficient(body)
    while isinstance(rest, Delta) and not isinstance(rest.left.type, Map):
        own = not (rest.left.free | rest.right.free).isdisjoint(indices)
        (kept if own else found).append(rest)
        size, rest = split_coefficient(rest.body)
        number = times(number, size)
    if not found:
        return [], body
    for at in reversed(kept):
        rest = delta(at.left, at.right, rest)
    return found, mul(number, rest)


def _with_inner(t: Term, change: Callable[[Term], Term]) -> Term:
    """An entry, or its conjugate, with what it is an entry of and its indices changed."""
    if isinstance(t, Conj):
        return conj(_with_inner(t.term, change))
    return rebuild(t, [change(c) for c in children(t)])


def _numbers_of_deltas(factors: Sequence[Term]) -> list[Term]:
    """Each number of a product once: 2 δ(i, j, -x/2) is -δ(i, j, x), and 2 y δ(i, j, -x/2) is -y δ(i, j, x)."""
    flat = [f for u in factors for f in factors_of(u)]
    numbers = [f for f in flat if isinstance(f, Const)]
    deltas = [f for f in flat if isinstance(f, Delta)]
    if not numbers or not deltas:
        return list(factors)
    number, rest = mul(*numbers), [f for f in flat if not isinstance(f, Const)]
    if len(rest) == 1:
        (at,) = deltas
        selected = mul(number, at.body)
        sign = MINUS_ONE if split_coefficient(selected)[0].real < 0 else ONE
        return [sign, delta(at.left, at.right, mul(sign, selected))]
    found = [number]
    for f in rest:
        size, body = split_coefficient(f.body) if isinstance(f, Delta) else (ONE, ONE)
        found += [size, delta(f.left, f.right, body)] if isinstance(f, Delta) else [f]
    return found


def _separate(indices: Sequence[Var], body: Term) -> list[tuple[list[Var], list[Term]]]:
    """The sums that a sum is the product of: Σ_ij x_i^2 y_j^2 is Σ_i x_i^2 Σ_j y_j^2."""
    parts: list[tuple[list[Var], list[Term]]] = [([i], []) for i in indices if isinstance(i.kind, Index)]
    if len(parts) < len(indices):
        return [([*indices], [body])]
    for f in factors_of(body):
        mine = [part for part in parts if any(i in f.free for i in part[0])]
        if not mine:
            return [([*indices], [body])]
        others = [part for part in parts if part not in mine]
        together = [i for own, _ in mine for i in own], [*(g for _, fs in mine for g in fs), f]
        parts = [*others, together]
    return parts


def _bound_around(indices: Sequence[Var], body: Term, met: Sequence[Var]) -> list[Var]:
    """The indices in a sum that a sum around it binds, in the order in which its body meets them."""
    around = [v for v in body.free if isinstance(v.kind, Index) and v not in met and v not in indices]
    return sorted(around, key=_first_meeting(body)) if len(around) > 1 else around


def _conditions_at_once(terms: Sequence[Term]) -> list[Term]:
    """δ(i, d, a) + δ(i, d, b) as δ(i, d, a + b), under sums as well; so for all conditions that are the same."""
    found: list[Term] = []
    under: dict[object, list[int]] = {}
    for term in terms:
        part = _conditional(term)
        if part is None:
            found.append(term)
            continue
        same = under.setdefault((type(part.condition), len(part.indices)), [])
        for n in same:
            together = _under_one(_conditional(found[n]), part)
            if together is not None:
                found[n] = together
                break
        else:
            same.append(len(found))
            found.append(term)
    return found


class _Conditional(NamedTuple):
    """number · Σ_indices of what stands under a condition."""

    number: Const
    indices: tuple[Var, ...]
    condition: Delta | Indicator


def _conditional(t: Term) -> _Conditional | None:
    c, core = split_coefficient(t)
    indices, body = (core.indices, core.body) if isinstance(core, Sum) else ((), core)
    if not isinstance(body, Delta | Indicator) or isinstance(body.left.type, Map):
        return None
    if isinstance(body, Delta) and any(isinstance(side, Const) for side in (body.left, body.right)):
        return None  # entries of a list, which are put together by their places
    return _Conditional(c, indices, body)


def _under_one(mine: _Conditional | None, theirs: _Conditional) -> Term | None:
    if mine is None or [i.kind for i in mine.indices] != [i.kind for i in theirs.indices]:
        return None
    kept = mine.condition
    added = substitute(theirs.condition, dict(zip(theirs.indices, mine.indices, strict=True)))
    if not isinstance(added, Delta | Indicator):
        return None
    sides = (added.left, added.right)
    if (kept.left, kept.right) != sides and (isinstance(kept, Indicator) or (kept.right, kept.left) != sides):
        return None
    number, values = content(add(mul(mine.number, kept.body), mul(theirs.number, added.body)))
    return mul(number, total(mine.indices, type(kept)(kept.left, kept.right, values)))


class _RealPart(NamedTuple):
    """number · outer · Σ_indices inner · Re(of), or Im(of), where the number is real."""

    number: Const
    outer: frozenset[Term]
    indices: tuple[Var, ...]
    inner: frozenset[Term]
    kind: str
    of: Term


def _parts_at_once(terms: Sequence[Term]) -> list[Term]:
    """Σ_k Re(x_k* y_k) + Σ_k Re(x_k* z_k) as Σ_k Re(x_k* y_k + x_k* z_k), if what is added has a factor in common."""
    found: list[Term] = []
    parts: dict[int, _RealPart] = {}
    for term in terms:
        part = _real_part(term)
        if part is None:
            found.append(term)
            continue
        for n, other in parts.items():
            together = _one_part(other, part)
            if together is not None:
                parts[n], found[n] = together, _written(together)
                break
        else:
            parts[len(found)] = part
            found.append(term)
    return found


def _real_part(t: Term) -> _RealPart | None:
    number, core = split_coefficient(t)
    outer, inner, indices = list[Term](), [*factors_of(core)], tuple[Var, ...]()
    sums = [f for f in inner if isinstance(f, Sum)]
    if len(sums) == 1:
        outer = [f for f in inner if f is not sums[0]]
        size, body = split_coefficient(sums[0].body)
        number, indices, inner = times(number, size), sums[0].indices, [*factors_of(body)]
    taken = [f for f in inner if isinstance(f, Call) and f.primitive in ("real", "imag")]
    if len(taken) != 1 or len({*inner}) < len(inner) or len({*outer}) < len(outer):
        return None
    if number.imag and number.real:
        return None
    if number.imag:
        number, outer = Const(number.imag), [*outer, IMAGINARY]  # i Re(z) is no real part
    inner.remove(taken[0])
    return _RealPart(number, frozenset(outer), indices, frozenset(inner), taken[0].primitive, taken[0].args[0])


def _one_part(one: _RealPart, other: _RealPart) -> _RealPart | None:
    if one.kind != other.kind or one.outer != other.outer or len(one.inner) != len(other.inner):
        return None
    if [i.kind for i in one.indices] != [i.kind for i in other.indices]:
        return None
    names = dict(zip(other.indices, one.indices, strict=True))
    if frozenset(substitute(f, names) for f in other.inner) != one.inner:
        return None
    added = substitute(other.of, names)
    pieces = [[f for u in terms_of(of) for f in factors_of(u)] for of in (one.of, added)]
    if {f for f in pieces[0] if not isinstance(f, Const)}.isdisjoint(pieces[1]):
        return None
    of = add(mul(one.number, one.of), mul(other.number, added))
    number, rest = content(of)
    return one._replace(number=ONE, of=of) if number.imag else one._replace(number=number, of=rest)


def _written(part: _RealPart) -> Term:
    body = mul(*part.inner, call(part.kind, part.of))
    return mul(part.number, *part.outer, total(part.indices, body))


def _without_surplus(terms: Sequence[Term]) -> list[Term]:
    """x + (k − 1) x as k x: a term that a number in a factor of another one takes up."""
    left = [*terms]
    for other in [t for t in terms if any(isinstance(f, Add) for f in factors_of(t))]:
        for one in left:
            c, core = split_coefficient(one)
            rest = _less(factors_of(other), [f for f in factors_of(core) if f != ONE]) if one is not other else None
            if rest is None or len(rest) > 1 or not isinstance(rest[0], Add):
                continue
            factor = _added([c, rest[0]])
            if len(terms_of(factor)) < len(rest[0].terms):
                left = [mul(factor, core) if t is other else t for t in left if t is not one]
                break
    return left


def _added(terms: Sequence[Term]) -> Term:
    """A sum that does not start with a minus, if it need not."""
    return add(*sorted(terms_of(add(*terms)), key=_is_negative))


def _less(factors: Sequence[Term], others: Sequence[Term]) -> list[Term] | None:
    """The factors without the others; None if one of these is not among them."""
    left = [*factors]
    for f in others:
        if f not in left:
            return None
        left.remove(f)
    return left


def _common(rows: Sequence[Sequence[Term]]) -> tuple[list[Term], list[list[Term]]]:
    """The factors that all products have, numbers aside, and what is left of each product.

    A factor that is repeated is common as often as it stands in every product: a / S + b / S^2 is (a + b / S) / S.
    """
    first, *others = [list(row) for row in rows]
    common: list[Term] = []
    left: list[Term] = []
    for f in first:
        shares = [] if isinstance(f, Const) else [n for row in others if (n := _place_of(f, row)) is not None]
        if len(shares) < len(others):
            left.append(f)
            continue
        least = _least_power([f, *(row[n] for row, n in zip(others, shares, strict=True))])
        common.append(least)
        left += _without(f, least)
        for row, n in zip(others, shares, strict=True):
            row[n : n + 1] = _without(row[n], least)
    return common, [left, *others]


def _place_of(f: Term, factors: Sequence[Term]) -> int | None:
    """Where `f`, or a division by another power of its base, stands among `factors`, up to names of bound indices."""
    base = _divisor(f)
    for n, g in enumerate(factors):
        one, other = (f, g) if base is None else (base, _divisor(g))
        if other is not None and (one == other or (one.free == other.free and alpha_equal(one, other))):
            return n
    return None


def _divisor(f: Term) -> Term | None:
    """What f divides by a whole power of, if that is a number without indices: S of 1/S and of 1/S^2."""
    match f:
        case Pow(base, Const() as n) if has_no_index(f) and n.is_integer and n.real < 0:
            return base
        case _:
            return None


def _least_power(factors: Sequence[Term]) -> Term:
    """The division that all of them hold: 1/S of 1/S and 1/S^2; of what is no division, what they are."""
    return max(factors, key=lambda f: f.exponent.real if isinstance(f, Pow) and isinstance(f.exponent, Const) else 0)


def _without(f: Term, common: Term) -> list[Term]:
    """What is left of `f` once its share `common` is taken out of it."""
    if _divisor(f) is None or not (isinstance(f, Pow) and isinstance(common, Pow)) or f.exponent == common.exponent:
        return []
    return [power(f.base, add(f.exponent, neg(common.exponent)))]


def _with_short_numbers(factors: Sequence[Term]) -> list[Term]:
    """`factors`, the number among them in the terms of a sum where it is shorter: 5/2 (a/5 - 2 b) is a/2 - 5 b."""
    front = mul(*(f for f in factors if isinstance(f, Const)))
    others = [f for f in factors if not isinstance(f, Const)]
    if isinstance(front, Const) and not front.imag and front not in (ONE, MINUS_ONE):
        for n, f in enumerate(others):
            if isinstance(f, Add) and not isinstance(f.type, Index):
                size, rest = content(add(*sorted([mul(front, u) for u in f.terms], key=_is_negative)))
                if _digits(size) + _digits(rest) < _digits(front) + _digits(f) - 1:
                    return [*([size] if size != ONE else []), *others[:n], rest, *others[n + 1 :]]
    return list(factors)


def _digits(t: Term) -> int:
    """How many digits the numbers in front of the terms of a sum are written with."""
    numbers = [split_coefficient(u)[0] for u in terms_of(t)]
    return sum(len(f"{abs(part)}") for c in numbers for part in (c.real, c.imag) if part and abs(part) != 1)


def _is_below_zero(t: Term) -> bool:
    """Whether it is a sum of terms with a minus."""
    return isinstance(t, Add) and all(map(_is_negative, t.terms))


def _is_negative(t: Term) -> bool:
    c, _ = split_coefficient(t)
    return c.real < 0 or (c.real == 0 and c.imag < 0)


def _first_meeting(body: Term) -> Callable[[Var], int]:
    places: dict[Var, int] = {}
    for u in subterms(body):
        if isinstance(u, Var):
            places.setdefault(u, len(places))
    return lambda v: places.get(v, len(places))


def _product(factors: Sequence[Term], rank: Rank, met: Sequence[Var]) -> Term:
    """Numbers, scalars, entries by their tensor's rank; then what is a sum or a function of several."""
    order = list(met)
    left = _as_met(factors)
    chosen: list[Term] = []
    indices = {f: (_indices(_base(f)), _indices(f)) for f in left}
    while left:
        best = min(left, key=lambda f: _place(f, rank, order, indices[f][0]))
        left.remove(best)
        chosen.append(best)
        order += indices[best][1]
    return mul(*chosen)


def _as_met(factors: Sequence[Term]) -> list[Term]:
    """`factors` with equal sums, or divisions by one, under one name of the index, so that 1/n · 1/n is 1/n^2.

    Softmaxes, maxima and their like are such sums too.
    """
    found: list[Term] = []
    sums: list[Term] = []
    for f in factors:
        base = f.base if isinstance(f, Pow) else f
        if isinstance(base.function if isinstance(base, App) else base, Sum | Reduce):
            same = next((s for s in sums if s.free == base.free and alpha_equal(s, base)), base)
            sums.append(same)
            f = power(same, f.exponent) if isinstance(f, Pow) else same
        found.append(f)
    return found


def _place(f: Term, rank: Rank, met: Sequence[Var], indices: Sequence[Var]) -> tuple[int, ...]:
    """Where a factor stands among others: its kind, its tensor, and when its indices were first met."""
    base = _base(f)
    meetings = [met.index(v) if v in met else len(met) for v in indices]
    conjugated = int(isinstance(f, Conj))
    match base:
        case Const():
            return (0,)
        case Sum(_, Const()) if base is f:
            return (1, -1)
        case Var():
            return (1, *rank.get(base, _LAST), conjugated)
        case App(Var() as tensor, _):
            order, number = rank.get(tensor, _LAST)
            place = (number, *meetings) if order == CAPTURED else (*meetings, number)
            return (2, order, *place, conjugated)
        case App() | Diff():
            return (3, *meetings)
        case _:
            return (5,) if isinstance(f, Pow) and _is_negative(f.exponent) else (4,)


def _base(f: Term) -> Term:
    """What a factor is a power, or the conjugate, of."""
    while isinstance(f, Conj | Pow):
        f = f.term if isinstance(f, Conj) else f.base
    return f


def _indices(base: Term) -> list[Var]:
    """The index variables of `base` in reading order."""
    return [u for u in subterms(base) if isinstance(u, Var) and isinstance(u.kind, Index)]
