"""Maps that are linear over the reals, P z + Q z*: the Wirtinger parts of a tangent or a cotangent.

    Re(a z)   is   P = a / 2,   Q = a* / 2

A pushforward is ℱ(f)(z, k) = (∂f/∂z) k + (∂f/∂z*) k*, so that with an entry of k that is one, the parts are entries of
the two Jacobians.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from combdiff.calculus.primitives import zero_of_type
from combdiff.calculus.pushforward import sum_of
from combdiff.records import dataclass
from combdiff.terms.laws.inclusion import over_complex
from combdiff.terms.scalars import HALF
from combdiff.terms.terms import (
    IMAGINARY,
    ZERO,
    Add,
    App,
    Call,
    Conj,
    Delta,
    Indicator,
    Lam,
    Loop,
    Mul,
    Proj,
    Sum,
    Term,
    Tuple,
    Var,
    add,
    apply,
    call,
    conj,
    delta,
    fresh,
    indicator,
    lam,
    mul,
    neg,
    proj,
    slots_of,
    substitute,
    total,
)
from combdiff.terms.types import Map, Number, Product, Type, is_complex

Binding = tuple[Var, Term]
Pair = tuple[Term, Term]


@dataclass(slots=True)
class WirtingerParts:
    """The parts (P, Q) of the variables that are known to be linear in z."""

    known: dict[Var, Pair]
    seen: dict[Term, Pair] = field(default_factory=dict)

    def through(self, bindings: Sequence[Binding]) -> list[Binding]:
        """Each value that is linear in z becomes two, `v_z` and `v_w` of its conjugate; all others stay."""
        found: list[Binding] = []
        for var, value in bindings:
            if self.known.keys().isdisjoint(value.free):
                found.append((var, value))
                continue
            if isinstance(value, Loop):
                (one, _), (turned, _) = loops = self._loops(var, value)
                found += loops
                parts = _combined(one, turned, value.type)
            else:
                parts = self.of(value)
            pair: list[Term] = []
            for part, name in zip(parts, ("z", "w"), strict=True):
                if is_zero(part):
                    pair.append(part)
                    continue
                own = fresh(f"{var.name}_{name}", part.type)
                found.append((own, part))
                pair.append(own)
            self.known[var] = pair[0], pair[1]
        return found

    def of(self, t: Term) -> Pair:
        """(P, Q) of t.

        >>> from combdiff.terms.types import COMPLEX
        >>> z = fresh("z", COMPLEX)
        >>> from combdiff.terms.terms import ONE, ZERO
        >>> WirtingerParts({z: (ONE, ZERO)}).of(mul(IMAGINARY, Conj(z))) == (ZERO, IMAGINARY)
        True
        """
        if self.known.keys().isdisjoint(t.free):
            zero = zero_of_type(t.type)
            return zero, zero
        if t not in self.seen:
            self.seen[t] = self._of(t)
        return self.seen[t]

    def _of(self, t: Term) -> Pair:
        match t:
            case Var():
                return self.known[t]
            case Add(terms):
                pairs = [self.of(u) for u in terms]
                return add(*(p for p, _ in pairs)), add(*(q for _, q in pairs))
            case Mul(factors) if sum(not self.known.keys().isdisjoint(f.free) for f in factors) == 1:
                n = next(n for n, f in enumerate(factors) if not self.known.keys().isdisjoint(f.free))
                p, q = self.of(factors[n])
                rest = (*factors[:n], *factors[n + 1 :])
                return mul(*rest, p), mul(*rest, q)
            case Conj(u):
                return self._conjugate(u)
            case Call("complex", (u,)):
                return self.of(u)
            case Call("real", (u,)):
                (p, q), (r, s) = self.of(u), self._conjugate(u)
                return mul(HALF, add(p, r)), mul(HALF, add(q, s))
            case Call("imag", (u,)):
                (p, q), (r, s) = self.of(u), self._conjugate(u)
                half = mul(neg(HALF), IMAGINARY)
                return mul(half, add(p, neg(r))), mul(half, add(q, neg(s)))
            case _:
                return self._of_structure(t)

    def _conjugate(self, u: Term) -> Pair:
        p, q = self.of(u)
        return conj(q), conj(p)

    def _of_structure(self, t: Term) -> Pair:
        """What is linear in its entries."""
        match t:
            case Sum(indices, body):
                p, q = self.of(body)
                return total(indices, p), total(indices, q)
            case Delta(left, right, body):
                p, q = self.of(body)
                return delta(left, right, p), delta(left, right, q)
            case Indicator(left, right, body):
                p, q = self.of(body)
                return indicator(left, right, p), indicator(left, right, q)
            case Lam(params, body):
                p, q = self.of(body)
                return lam(params, p), lam(params, q)
            case Tuple(items):
                pairs = [self.of(u) for u in items]
                return Tuple(tuple(p for p, _ in pairs)), Tuple(tuple(q for _, q in pairs))
            case App(Var() as f, args) if f in self.known:
                p, q = self.known[f]
                return apply(p, *args), apply(q, *args)
            case Proj(item, of):
                p, q = self.of(of)
                return proj(item, p), proj(item, q)
            case _:
                return self._polarised(t)

    def _polarised(self, t: Term) -> Pair:
        """From the values at 1 and at i."""
        one, turned = (substitute(t, values) for values in self._values())
        return _combined(one, turned, t.type)

    def _loops(self, var: Var, loop: Loop) -> list[Binding]:
        """A loop at 1 and at i, which are definitions: no term holds a loop inside."""
        values = [{v: _real(e) if is_real(v.kind) else e for v, e in at.items()} for at in self._values()]
        return [(fresh(var.name, loop.type), substitute(loop, at)) for at in values]

    def _values(self) -> tuple[dict[Var, Term], dict[Var, Term]]:
        """What the known variables are at 1 and at i."""
        one = {v: sum_of(pair, v.kind) for v, pair in self.known.items()}
        return one, {v: _turned(pair, v.kind) for v, pair in self.known.items()}


def _combined(one: Term, turned: Term, kind: Type) -> Pair:
    """The parts from the values at 1 and at i: t(1) = P + Q, t(i) = i (P − Q)."""
    over_i = mul(neg(HALF), IMAGINARY)
    p = sum_of([scaled(HALF, one), scaled(over_i, turned)], over_complex(kind))
    q = sum_of([scaled(HALF, one), scaled(neg(over_i), turned)], over_complex(kind))
    return p, q


def is_real(kind: Type) -> bool:
    """Whether a variable is a real number, or a tensor of such."""
    return isinstance(kind, Number | Map) and not is_complex(kind)


def _real(t: Term) -> Term:
    """The real parts of all entries."""
    match t.type:
        case Map():
            slots = slots_of(t)
            return lam(slots, _real(apply(t, *slots)))
        case _:
            return call("real", t)


def _turned(pair: Pair, kind: Type) -> Term:
    return sum_of([scaled(IMAGINARY, pair[0]), scaled(neg(IMAGINARY), pair[1])], kind)


def is_zero(t: Term) -> bool:
    """Whether all entries of a number or a tensor are 0, as it is written.

    >>> from combdiff.terms.types import COMPLEX, Map
    >>> is_zero(zero_of_type(Map((COMPLEX,), COMPLEX)))
    True
    """
    return is_zero(t.body) if isinstance(t, Lam) else t == ZERO


def scaled(by: Term, t: Term) -> Term:
    """by·t, entry by entry.

    >>> from combdiff.terms.terms import ONE, TWO
    >>> scaled(TWO, Tuple((ONE, TWO))) == Tuple((TWO, mul(TWO, TWO)))
    True
    """
    match t.type:
        case Number():
            return mul(by, t)
        case Map():
            slots = slots_of(t)
            return lam(slots, scaled(by, apply(t, *slots)))
        case Product(items):
            return Tuple(tuple(scaled(by, proj(n, t)) for n in range(len(items))))
        case _:
            raise AssertionError("an index is not scaled")


def split(
    bindings: Sequence[Binding], results: Sequence[Term], at: Mapping[Var, Term]
) -> tuple[list[Binding], list[Pair]]:
    """The bindings and the parts of each result, where every variable of `at` is z times that value.

    >>> from combdiff.terms.types import COMPLEX
    >>> z = fresh("z", COMPLEX)
    >>> from combdiff.terms.terms import ONE, ZERO, call
    >>> bindings, (pair,) = split([], [call("real", z)], {z: ONE})
    >>> pair == (HALF, HALF)
    True
    """
    parts = WirtingerParts({v: (value, zero_of_type(v.kind)) for v, value in at.items()})
    return parts.through(bindings), [parts.of(t) for t in results]
