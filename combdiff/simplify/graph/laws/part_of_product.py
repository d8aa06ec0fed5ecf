"""Replaces the factors of a named product within a longer product by its name.

    A(i, l) / r(i)^3 * sum(k, A(i, k) * W(i, k))   is   U(i, l) / r(i) * sum(k, U(i, k) * W(i, k))

after U = (i, k) -> A(i, k) / r(i). The derivative of what is normalised is (W - U (U, W)) / r.
Ends: each name is looked for once in a product when that is read, as often as its factors are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from typing import TypeGuard

from combdiff.canon.skeleton import UNIT, Coefficient, times
from combdiff.records import dataclass
from combdiff.simplify.graph.graph import conjugate, reciprocal
from combdiff.terms.conditions.guards import exists_at, held, under
from combdiff.terms.network import Network, is_never_drawn, network
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    App,
    Call,
    Conj,
    Const,
    Indicator,
    Lam,
    Pow,
    Term,
    Var,
    alpha_equal,
    call,
    conj,
    factors_of,
    mul,
    number,
    power,
    substitute,
    subterms,
)
from combdiff.terms.types import Index, is_complex

ALONE = Network(ONE, (), ())
"""No product."""

MOST = 12
"""Factors of a product in which names are looked for."""


@dataclass(frozen=True, slots=True)
class NamedProduct:
    """`var` at `slots` is `body`, which is `scale` times the product of `factors`."""

    var: Var
    slots: tuple[Var, ...]
    body: Term
    scale: Coefficient
    factors: tuple[Term, ...]

    @classmethod
    def of(cls, var: Var, value: Term) -> NamedProduct | None:
        """A value that is a product of entries, functions or sums; None for any other."""
        slots, body = (value.params, value.body) if isinstance(value, Lam) else ((), value)
        if not all(isinstance(v.kind, Index) for v in slots):
            return None
        p = network(body, drawn=is_never_drawn)
        scale = p.coefficient.real, p.coefficient.imag
        return cls(var, slots, body, scale, p.factors) if len(p.factors) > 1 or _is_reciprocal(p) else None

    def at(self, args: Mapping[Var, Term], mirrored: bool) -> tuple[Term, tuple[Term, ...]]:
        """Its entry, and its factors, where the slots are `args`; `mirrored` for both conjugated."""
        entry = App(self.var, tuple(args[v] for v in self.slots)) if self.slots else self.var
        factors = [substitute(f, args) if args else f for f in self.factors]
        return (conj(entry), tuple(map(conj, factors))) if mirrored else (entry, tuple(factors))


@dataclass(slots=True)
class Names:
    """The names that were found in a product, those in its real part and those around it."""

    around: list[Term] = field(default_factory=list)
    within: list[Term] = field(default_factory=list)


@dataclass(slots=True)
class Factors:
    """A product as powers; `roots` are named values that are powers or roots, `left` the exponents of `bases`."""

    roots: Mapping[Var, Lam | Term]
    bases: list[Term]
    left: list[Fraction]

    @classmethod
    def of(cls, factors: Sequence[Term], roots: Mapping[Var, Term]) -> Factors:
        powers = [_power(f) for f in factors]
        return cls(roots, [b for b, _ in powers], [n for _, n in powers])

    def without(self, factors: Sequence[Term], name: Term) -> Factors | None:
        """What is left without `factors`, if all of them are there with exponents that are as large, of that sign.

        `name` stands for their product: where it stands already, there is nothing to find.
        """
        left = [*self.left]
        known = [self._origin(b) for b in self.bases]
        for base, n in map(_power, factors):
            own, m = self._origin(base)
            for place, (there, scale) in enumerate(known):
                taken = n * m / scale
                same = (there == own or alpha_equal(there, own)) and _is_power(m, n) and _is_power(scale, taken)
                if same and self.bases[place] != name and left[place] and 0 < taken / left[place] <= 1:
                    left[place] -= taken
                    break
            else:
                return None
        return Factors(self.roots, self.bases, left)

    def terms(self) -> list[Term]:
        """What is left of each factor."""
        return [power(b, Const(n)) for b, n in zip(self.bases, self.left, strict=True)]

    def _origin(self, base: Term) -> tuple[Term, Fraction]:
        """The number of which `base` is a power by the definitions, and the exponent."""
        name, args = (base.function, base.args) if isinstance(base, App) else (base, ())
        value = self.roots.get(name) if isinstance(name, Var) else None
        if value is None:
            return base, Fraction(1)
        entry = substitute(value.body, dict(zip(value.params, args, strict=True))) if isinstance(value, Lam) else value
        inner, n = _power(entry)
        origin, m = self._origin(inner)
        return origin, n * m


def part_of_product(
    factors: Sequence[Term], products: Sequence[NamedProduct], roots: Mapping[Var, Term]
) -> tuple[Coefficient, list[Term]] | None:
    """`factors` with the names of `products` in them, and the number in front; None if there are none.

    Those of a product whose real part is a factor are looked through, too: Re(c' q) / r is Re(u' q) after u = c / r.
    """
    guarded = [_within_guard(f, products, roots) for f in factors]
    changed = any(new is not f for new, f in zip(guarded, factors, strict=True))
    return _side_by_side(guarded, products, roots) or ((UNIT, guarded) if changed else None)


def _side_by_side(
    factors: Sequence[Term], products: Sequence[NamedProduct], roots: Mapping[Var, Term]
) -> tuple[Coefficient, list[Term]] | None:
    """The same for what stands under no condition, but for the real part."""
    real = next((f for f in factors if isinstance(f, Call) and f.primitive == "real"), None)
    outer = [f for f in factors if f != real]
    inner = network(real.args[0], drawn=is_never_drawn) if real is not None else ALONE
    everything = [*outer, *inner.factors]
    if len(everything) > MOST or len(outer) < len(factors) - 1:
        return None
    scale, left, names = UNIT, Factors.of(everything, roots), Names()
    for product in reversed(products):
        for entry, there in _found(product, everything):
            while (rest := left.without(there, entry)) is not None:
                within = left.left[len(outer) :] != rest.left[len(outer) :]
                taken = (f for f, n, m in zip(outer, left.left, rest.left, strict=False) if n != m)
                if within and (product.scale[1] or any(is_complex(f.type) for f in taken)):
                    break
                left = rest
                (names.within if within else names.around).append(entry)
                own = conjugate(product.scale) if isinstance(entry, Conj) else product.scale
                scale = times(scale, reciprocal(own))
    if not names.within and not names.around:
        return None
    terms = left.terms()
    around, inside = terms[: len(outer)], terms[len(outer) :]
    parts = [call("real", mul(inner.coefficient, *names.within, *inside))] if real is not None else []
    return scale, [*_met([*names.around, *around]), *parts]


def _within_guard(f: Term, products: Sequence[NamedProduct], roots: Mapping[Var, Term]) -> Term:
    """A factor under conditions with the names of products in what stands there."""
    if not isinstance(f, Indicator):
        return f
    conditions, body = held(f)
    inner = network(body, drawn=is_never_drawn)
    found = part_of_product(inner.factors, products, roots) if not inner.indices else None
    if found is None or found[0][1]:
        return f
    return under(conditions, mul(inner.coefficient, number(found[0][0]), *found[1]))


def _met(factors: Sequence[Term]) -> list[Term]:
    """The factors, where a name that was found twice is squared, and one beside its inverse is gone."""
    met = [f for f in factors_of(mul(*factors)) if f != ONE]
    return met if not any(isinstance(f, Const) for f in met) else [f for f in factors if f != ONE]


def _found(product: NamedProduct, factors: Sequence[Term]) -> Iterator[tuple[Term, tuple[Term, ...]]]:
    """The places at which a product may stand among `factors`, as it is and conjugated."""
    mirrored = [False, True] if any(is_complex(f.type) for f in product.factors) else [False]
    for args in dict.fromkeys(places(product.body, product.slots, *factors)):
        for m in mirrored:
            yield product.at(dict(zip(product.slots, args, strict=True)), m)


def places(value: Term, slots: Sequence[Var], *terms: Term) -> Iterator[tuple[Term, ...]]:
    """What the `slots` of a value may be where it stands in `terms`: entries in it that have them all tell.

    The value has an entry there.
    """
    told: dict[App, None] = {}
    for t in subterms(value):
        if _is_entry_at(t, slots) and not {*t.args} <= {a for known in told for a in known.args}:
            told[t] = None
    if {a for known in told for a in known.args} == {*slots}:
        there = [t for term in terms for t in subterms(term) if isinstance(t, App)]
        found = ({v: args[v] for v in slots} for args in _matches([*told], there, {}))
        yield from (tuple(args.values()) for args in found if exists_at(value, args))


def _matches(entries: Sequence[App], there: Sequence[App], known: Mapping[Term, Term]) -> Iterator[Mapping[Term, Term]]:
    """The arguments for which all `entries` are among those that are `there`."""
    if not entries:
        yield known
        return
    for t in there:
        if t.function == entries[0].function:
            args = {**known}
            if all(args.setdefault(slot, a) == a for slot, a in zip(entries[0].args, t.args, strict=True)):
                yield from _matches(entries[1:], there, args)


def _power(t: Term) -> tuple[Term, Fraction]:
    """A factor as a base and a real exponent."""
    match t:
        case Pow(base, Const(n, m)) if not m:
            return base, n
        case _:
            return t, Fraction(1)


def _is_power(m: Fraction, n: Fraction) -> bool:
    """Whether (w^m)^n is w^(m n) for every number w: the root of w² is |w|."""
    return n.denominator == 1 or abs(m) < 1 or m == 1


def is_root(value: Term) -> bool:
    """Whether a named value is a power or a root of another number."""
    body = value.body if isinstance(value, Lam) else value
    return isinstance(body, Pow | Call)


def _is_reciprocal(p: Network) -> bool:
    """Whether a product is one over a sum: the slope of w = 1/(1 + u) is −w², not −1/(1 + u)²."""
    return not p.indices and any(isinstance(f, Pow) and f.exponent == MINUS_ONE for f in p.factors)


def _is_entry_at(t: Term, slots: Sequence[Var]) -> TypeGuard[App]:
    return isinstance(t, App) and isinstance(t.function, Var) and bool(t.args) and {*t.args} <= {*slots}
