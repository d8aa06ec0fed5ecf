"""Stable forms of sums of exponentials: logsumexp for log Σ exp(e), softmax for exp(e)/Σ exp(e).

The logarithm of a determinant in a product or a power goes by sign and logarithm, too: log(det(A)²) is 2 logabsdet(A).
That of Γ is log |Γ|, which has a value wherever the former has one.
As they are written they overflow where their values do not. All holds for real numbers only. A program is rewritten
before it is differentiated, so that its derivatives are stable, too. Definitions are written out where a law needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice, product

from combdiff.records import dataclass
from combdiff.terms.alpha import alpha_equal
from combdiff.terms.arithmetic import integer_power
from combdiff.terms.branches import above_zero, at_least_zero, is_scale
from combdiff.terms.conditions.comparing import body_of_reduction, different
from combdiff.terms.conditions.guards import Condition, Guard, held, partial_values, under, unguarded
from combdiff.terms.conditions.ordering import implies
from combdiff.terms.laws import exponentials
from combdiff.terms.laws.exponentials import exponent, softplus
from combdiff.terms.laws.normal import logarithm_of_tail, other_tail, over_tail, scaled_tail, without_log_2
from combdiff.terms.laws.opening import closed, opened
from combdiff.terms.laws.shares import asked_once
from combdiff.terms.laws.sums import flat, logarithm_of_sum, quotient, with_tanh, without_softplus
from combdiff.terms.nodes import body_of, params_of
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    TWO,
    ZERO,
    Add,
    App,
    Call,
    Const,
    Delta,
    Indicator,
    Let,
    Mul,
    Pow,
    Reduce,
    Sum,
    Term,
    Traverser,
    Var,
    add,
    apply,
    call,
    delta,
    factors_of,
    lam,
    mul,
    neg,
    number,
    power,
    reduction,
    refreshed,
    split_coefficient,
    sub,
    substitute,
    subterms,
    terms_of,
    total,
)
from combdiff.terms.types import Index, is_complex

_OVERFLOWING = frozenset({"exp", "sigmoid", "softplus", "tanh", "gamma", "erf", "erfc"})
_INCREASING = frozenset({"exp", "sigmoid", "softplus", "tanh", "sinh", "erf", "lognormcdf"})
_PLACES = 64  # so many choices of indices are tried


def with_softmax(program: Term) -> Term:
    """`program` with these laws used everywhere, across its definitions, too.

    >>> from combdiff.language.inference.infer import infer
    >>> from combdiff.language.parsing.parser import parse
    >>> from combdiff.language.printing.printer import expression_text
    >>> program = infer(parse("(x::RV) -> begin Z = sum(j, exp(x(j))); k -> log(exp(x(k)) / Z) end"))
    >>> print(expression_text(with_softmax(program)))
    (x::RV) -> k -> x(k) - logsumexp(x)
    """
    if not any(map(_may_overflow, subterms(program))):
        return program
    values: dict[Var, Term] = {}
    bindings = [b for t in subterms(program, Let) for b in t.bindings]
    while more := [(v, e) for v, e in bindings if v not in values and _is_of_exponentials(e, values)]:
        values.update(more)
    # a share has to be seen before the sum below it is a logarithm
    stable = _rewritten(_rewritten(program, values, _stable), values, _without_sums_below)
    bindings = [b for t in subterms(stable, Let) for b in t.bindings]
    (once,) = asked_once([stable], partial_values(bindings), bindings)
    return once


def _rewritten(program: Term, values: Mapping[Var, Term], law: Callable[[Term, Mapping[Var, Term]], Term]) -> Term:
    """`program` with a law used everywhere, where logarithms that are defined keep their names."""
    logarithms = {v: _in_place_of(v, value, values) for v, value in values.items() if _is_logarithm(body_of(value))}

    def visit(t: Term) -> Term:
        made = law(t, values)
        if made is not t and logarithms:
            read = _read(t, values)
            made = closed(made, {v: value for v, value in logarithms.items() if v in read})
        return _without_unread(made)

    return Traverser(visit)(program)


def _may_overflow(t: Term) -> bool:
    of_exponentials = isinstance(t, Call) and t.primitive in _OVERFLOWING
    return of_exponentials or (isinstance(t, Reduce) and t.kind in ("det", "softmax"))


def _stable(t: Term, values: Mapping[Var, Term]) -> Term:
    """A logarithm, a product or an exponential in a stable form, if it has one."""
    if is_complex(t.type):
        return _of_complex_determinant(t, values)
    match t:
        case Reduce("argmax" | "argmin"):
            guard, body = held(opened(t.body, values, _in_place))
            ordered = _in_the_same_order(body, t.indices)
            return t if ordered == body else reduction(t.kind, t.indices, t.mark, under(guard, ordered))
        case Call("log", (u,)):
            made = logarithm(opened(u, values, _in_place))
        case Call("log1p", (u,)):
            made = logarithm(add(ONE, opened(u, values, _in_place)))
        case Mul() | Pow(Add() | Call("sqrt") | Var() | App(Var()), _):
            of = _with_equal_factors_met(opened(t, values, _in_place))
            made = _quotient(of) if isinstance(of, Mul | Pow) else None
            made = made or _guarded_share(of)
        case Add():
            made = with_tanh(t) or other_tail(t) or without_softplus(t)
        case Call("exp", (Add() as u,)):
            made = _exponential(opened(u, values, _in_place))
        case Reduce("maximum" | "minimum") | App(Reduce("ties"), _):
            made = _of_increasing(t, values)
        case Indicator() | Delta():
            made = _guarded_share(opened(t, values, _in_place))
        case Reduce("logsumexp") if (found := _Exponentials.of_logarithm(t)) is not None:
            bare = found.without_shares_as_weights()
            made = None if bare is found else bare.logarithm()
        case _:
            return t
    return t if made is None else made


def _with_equal_factors_met(t: Term) -> Term:
    """A product in which equal factors have met.

    With S written out, S (v(i) / S) (v(j) / S) has three copies of S, which differ in their bound indices.
    """
    if not isinstance(t, Mul):
        return t
    met: list[Term] = []
    changed = False
    for base, n in map(integer_power, t.factors):
        known = next((integer_power(f)[0] for f in met if alpha_equal(integer_power(f)[0], base)), base)
        changed = changed or known != base
        met.append(power(known, number(n)))
    return mul(*met) if changed else t


def _in_the_same_order(t: Term, indices: Sequence[Var]) -> Term:
    """Numbers that are in the same order as those of t for all indices, without increasing functions that overflow."""
    match t:
        case Call(name, (u,)) if name in _INCREASING and not is_complex(u.type):
            return _in_the_same_order(u, indices)
        case App(Reduce("softmax") as whole, args) if whole.mark == ONE and whole.free.isdisjoint(indices):
            return _in_the_same_order(substitute(whole.body, dict(zip(whole.indices, args, strict=True))), indices)
        case Mul(factors):
            kept = [f for f in factors if not (f.free.isdisjoint(indices) and above_zero(f))]
            return _in_the_same_order(mul(*kept), indices) if len(kept) < len(factors) else t
        case _:
            return t


def _of_increasing(t: Reduce | App, values: Mapping[Var, Term]) -> Term | None:
    """The largest exp(u) as exp of the largest u, and where it is, as where the largest u is; None of other numbers."""
    whole = t.function if isinstance(t, App) else t
    assert isinstance(whole, Reduce), "what is matched"
    match opened(whole.body, values, _in_place):
        case Call("exp", (u,)) if whole.mark == ONE and not is_complex(u.type):
            pass
        case _:
            return None
    made = reduction(whole.kind, whole.indices, ONE, u)
    return apply(made, *t.args) if isinstance(t, App) else call("exp", made)


def _quotient(t: Mul | Pow) -> Term | None:
    shared = _shared(t) if isinstance(t, Mul) else None
    factors = factors_of(t)
    stable = quotient(t, _of_part) or over_tail(factors) or scaled_tail(factors)
    return shared or stable or _over_more_than_a_sum(factors)


def _of_complex_determinant(t: Term, values: Mapping[Var, Term]) -> Term:
    """log(det(A)), which has the branch of logdet(A); of products and powers it may have another one."""
    match t:
        case Call("log", (u,)):
            found = opened(u, values, _in_place)
            return Reduce("logdet", found.of) if isinstance(found, Reduce) and found.kind == "det" else t
        case _:
            return t


def _in_place(t: Term) -> Term:
    return _stable(t, {})


def _in_place_of(v: Var, value: Term, values: Mapping[Var, Term]) -> Term:
    """A definition as it stands where it is written out."""
    slots = params_of(value)
    return lam(slots, opened(App(v, slots) if slots else v, values, _in_place))


def _read(t: Term, values: Mapping[Var, Term]) -> set[Var]:
    """The definitions that a term reads, and those that they read: all of them have a meaning where the term stands."""
    found: set[Var] = set()
    left = [v for v in t.free if v in values]
    while left:
        v = left.pop()
        if v not in found:
            found.add(v)
            left += [w for w in values[v].free if w in values]
    return found


def _is_logarithm(t: Term) -> bool:
    return (isinstance(t, Call) and t.primitive in ("log", "softplus")) or (
        isinstance(t, Reduce) and t.kind == "logsumexp"
    )


def logarithm(t: Term, positive: bool = False) -> Term | None:
    """log(t) by log Σ exp and log det; None if neither stands in t, or if t is to be at least 0, and may be below.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL, Domain
    >>> i, t = fresh("i", Index(Domain("n"))), fresh("t", REAL)
    >>> logarithm(mul(t, Sum((i,), Call("exp", (i,))))) == add(Call("log", (t,)), reduction("logsumexp", [i], ONE, i))
    True
    """
    if is_complex(t.type):
        return None
    match t:
        case Sum():
            return _of_all_terms(t, positive)
        case App(Reduce("softmax", _) as whole, args):
            is_signed = not (whole.mark == ONE or at_least_zero(whole.mark))
            at = dict(zip(whole.indices, args, strict=True))
            return None if positive and is_signed else _of_share(whole, at)
        case Add():
            return _of_sum(add(*flat(t)), positive)
        case Call("exp", (u,)):
            return u
        case Call("sigmoid", _):
            return exponentials.logarithm(t)
        case Call("gamma" | "erfc" as name, (u,)):
            return logarithm_of_tail(u) if name == "erfc" else _of_gamma(u, positive)
        case Reduce("prod", _):
            return _of_all(t, positive)
        case Reduce("det", of):
            return None if positive else Reduce("logdet", of)
        case Call("abs" | "abs2" as name, (Reduce("det", of),)):
            return mul(ONE if name == "abs" else TWO, Reduce("logabsdet", of))
        case Call("sqrt", (u,)) | Pow(u, Const()):
            return _of_power(t, u, positive)
        case Mul(factors):
            return _of_product(factors, positive)
        case _:
            return None


def _of_all_terms(t: Sum, positive: bool) -> Term | None:
    """log Σ exp(u), perhaps with shares as weights."""
    found = _Exponentials.of(t) or (None if _is_product(t) else _Exponentials.of(t, _logarithm_of_share))
    if found is None or (positive and not found.is_at_least_zero):
        return None
    return found.without_shares_as_weights().logarithm()


def _of_gamma(u: Term, positive: bool) -> Term | None:
    return None if positive and not at_least_zero(u) else Call("lgamma", (u,))


def _of_part(t: Term) -> Term | None:
    """log(t) of a term of a sum, None if it may be −∞: log(1 + x² exp(y)) has a derivative at 0, log(x²) has none."""
    return logarithm(t, positive=True) if _is_above_zero(t) else None


def _is_above_zero(t: Term) -> bool:
    """Whether it is made of exponentials and of what is declared to be positive."""
    match t:
        case Call("exp" | "sigmoid" | "softplus" | "cosh" | "erfc", (u,)):
            return not is_complex(u.type)
        case Mul(parts) | Add(parts) if all(map(_is_above_zero, parts)):
            return True
        case Call("sqrt", (u,)) | Pow(u, Const()):
            return _is_above_zero(u)
        case Add() if exponentials.complement(t) is not None:
            return True
        case Sum(_, body):
            # of terms none of which takes part, the logarithm is −∞, and the derivative 0
            return _is_above_zero(held(body)[1])
        case Reduce("prod"):
            return _is_above_zero(unguarded(t.body)[1])
        case App(Reduce("softmax") as shares, _):
            return _is_above_zero(shares.mark)
        case _:
            return is_scale(t)


def _of_sum(t: Term, positive: bool) -> Term | None:
    """log(1 + exp(u)), log(1 − σ(u)), and their relatives."""
    if not isinstance(t, Add):
        return logarithm(t, positive)
    if (tail := other_tail(t)) is not None:
        return logarithm(tail, positive)
    found = exponentials.logarithm(t) or _of_all_other_shares(t) or _of_complements(t, positive)
    if found is None and ONE in t.terms and len(t.terms) == 2:
        inner = _of_part(sub(t, ONE))
        found = None if inner is None else softplus(inner)
    return logarithm_of_sum(t, _of_part, positive) if found is None else found


def _of_complements(t: Add, positive: bool) -> Term | None:
    """log(1 − g − (1 − g) p) is log(1 − g) + log(1 − p) for a g that is σ(u): the chance that neither comes true."""
    for term in t.terms if ONE in t.terms else ():
        match neg(term):
            case Call("sigmoid", (u,)) as g:
                complement = sub(ONE, g)
            case _:
                continue
        others = [v for v in t.terms if v not in (ONE, term)]
        if others and all(complement in factors_of(v) for v in others):
            left = [mul(*(f for f in factors_of(v) if f != complement)) for v in others]
            return _of_product((call("sigmoid", neg(u)), add(ONE, *left)), positive)
    return None


def _of_power(t: Term, base: Term, positive: bool) -> Term | None:
    """log(uⁿ) is n log |u| for an even n; what has a power with a fraction is not below 0."""
    match t:
        case Pow(_, Const() as n) if n.is_integer and not n.real % 2:
            return _times(n, logarithm(call("abs", base), positive=True))
        case Pow(_, Const() as n) if not n.imag:
            return _times(n, logarithm(base, positive and n.is_integer))
        case Call("sqrt", _):
            return _times(number(Fraction(1, 2)), logarithm(base))
        case _:
            return None


def _times(n: Const, logarithm_: Term | None) -> Term | None:
    return None if logarithm_ is None else mul(n, logarithm_)


def _of_product(factors: Sequence[Term], positive: bool) -> Term | None:
    """log(u Σ exp(e)) is log u + logsumexp(e) for a real u, which is not negative if weights may be."""
    logarithms = {f: logarithm(f, positive=True) for f in factors}
    unknown = [f for f, found in logarithms.items() if found is None and not at_least_zero(f)]
    if unknown and positive:
        return None
    if len(unknown) == 1:
        logarithms[unknown[0]] = logarithm(unknown[0])
    elif (joined := _of_signed(unknown) or _of_sizes(unknown)) is not None:
        logarithms = {f: found for f, found in logarithms.items() if f not in unknown} | {mul(*unknown): joined}
    if all(found is None for found in logarithms.values()):
        return None
    outside = mul(*(f for f, found in logarithms.items() if found is None))
    outside, parts = without_log_2(outside, [found for found in logarithms.values() if found is not None])
    return add(*parts) if outside == ONE else add(*parts, _plain(outside))


def _plain(t: Term) -> Term:
    """log(t) without these laws; log(1/n) is −log n, as in a quotient by a size."""
    is_inverse = isinstance(t, Pow) and isinstance(t.exponent, Const) and t.exponent.real < 0
    return neg(call("log", power(t, MINUS_ONE))) if is_inverse else call("log", t)


def _of_all(t: Reduce, positive: bool) -> Term | None:
    """log Π exp(u) v is Σ u + log Π v: a product of densities underflows, as its logarithm does not.

    What is known to be 0 at least is taken out, too, as its logarithm.
    """
    conditions, mark = unguarded(t.mark)
    guard, core = unguarded(t.body)
    logarithms = {
        f: _plain(f) if found is None and at_least_zero(f) else found
        for f in factors_of(core)
        for found in (logarithm(f, positive=True),)
    }
    unknown = [f for f, found in logarithms.items() if found is None]
    if not positive and (sizes := _of_sizes(unknown)) is not None:
        logarithms = {f: found for f, found in logarithms.items() if f not in unknown} | {mul(*unknown): sizes}
    known = [found for found in logarithms.values() if found is not None]
    if not known or mark != ONE or is_complex(core.type) or not all(c in conditions for c in guard):
        return None
    added = total(t.indices, under(conditions, add(*known)))
    rest = mul(*(f for f, found in logarithms.items() if found is None))
    left = reduction("prod", t.indices, t.mark, under(guard, rest))
    if positive and not at_least_zero(rest):
        return None
    return added if rest == ONE else add(added, _plain(left))


def _of_signed(factors: Sequence[Term]) -> Term | None:
    """log(u Σ w exp(e)), where the two factors may both be below 0: the one that is no exponential is a weight."""
    sums = [(f, found) for f in factors if (found := _Exponentials.of(f)) is not None]
    if len(sums) != 1:
        return None
    ((own, found),) = sums
    outside = mul(found.outside, *(f for f in factors if f != own))
    return None if is_complex(outside.type) else replace(found, outside=outside).logarithm()


def _of_sizes(factors: Sequence[Term]) -> Term | None:
    """log |u| + log |v| of factors u, v whose sizes have logarithms of their own, as log |Γ| is."""
    sizes = [_of_size(f) for f in factors]
    return add(*(u for u in sizes if u is not None)) if sizes and None not in sizes else None


def _of_size(t: Term) -> Term | None:
    match t:
        case Call("gamma", (u,)):
            return Call("lgamma", (u,))
        case Pow(base, Const() as n) if n.is_integer:
            return _times(n, _of_size(base))
        case Mul(factors):
            return _of_sizes(factors)
        case _:
            return None


def _is_inverse(t: Term) -> bool:
    return isinstance(t, Pow) and isinstance(t.exponent, Const) and t.exponent.real < 0


def _of_share(t: Reduce, at: Mapping[Var, Term]) -> Term:
    """log of a share: e(k) − log Σ w exp(e) + log w(k), whose last term is −∞ where e(k) does not take part.

    Weights that may be negative are divided by w(k) instead: a share is above 0 where the sum has the sign of w(k).
    """
    own, exponent_ = (substitute(u, at) for u in (t.mark, t.body))
    if t.mark == ONE or at_least_zero(t.mark):
        return add(exponent_, neg(_logsumexp(t)), ZERO if t.mark == ONE else call("log", own))
    return add(exponent_, neg(reduction("logsumexp", t.indices, mul(t.mark, power(own, MINUS_ONE)), t.body)))


def _of_all_other_shares(t: Add) -> Term | None:
    """log(1 − the share of k) is the logarithm of the sum over all but k, less the one over all."""
    share = neg(sub(t, ONE))
    match share:
        case App(Reduce("softmax", _) as whole, (k,)) if whole.mark == ONE:
            (i,) = whole.indices
            others = reduction("logsumexp", [i], different([i], [k])(ONE), whole.body)
            return add(others, neg(_logsumexp(whole)))
        case _:
            return None


def _logsumexp(t: Reduce) -> Term:
    return reduction("logsumexp", t.indices, t.mark, t.body)


@dataclass(frozen=True, slots=True)
class _Exponentials:
    """outside · Σ_indices weight · exp(exponent), over what the conditions hold for."""

    indices: tuple[Var, ...]
    conditions: tuple[Condition, ...]
    exponent: Term
    outside: Term
    weight: Term = ONE

    @property
    def is_signed(self) -> bool:
        """Whether the sum without what stands before it may be below 0."""
        return not at_least_zero(self.weight)

    @property
    def is_at_least_zero(self) -> bool:
        """Whether all of it is 0 at least."""
        return at_least_zero(self.weight) and (self.outside == ONE or at_least_zero(self.outside))

    @classmethod
    def of(cls, t: Term, logarithm_of: Callable[[Term], Term | None] | None = None) -> _Exponentials | None:
        """A sum of exponentials of real numbers, or of what has the logarithm; None for other terms."""
        if not isinstance(t, Sum) or not all(isinstance(i.kind, Index) for i in t.indices):
            return None
        conditions, core = held(t.body)
        exponents: list[Term] = []
        outside: list[Term] = []
        weights: list[Term] = []
        for f in factors_of(core):
            match f:
                case _ if (u := (logarithm_of or _exponent)(f)) is not None:
                    exponents.append(u)
                case _ if is_complex(f.type):
                    return None
                case _:
                    (outside if f.free.isdisjoint(t.indices) else weights).append(f)
        if not exponents:
            return None
        whole = _with_softplus(add(*exponents))
        return cls(t.indices, tuple(conditions), whole, mul(*outside), mul(*weights))

    @classmethod
    def of_logarithm(cls, t: Term) -> _Exponentials | None:
        """The sum whose logarithm is logsumexp(…) and more; None for other terms."""
        for u in terms_of(t):
            if isinstance(u, Reduce) and u.kind == "logsumexp":
                conditions, weight = held(u.mark)
                whole = add(body_of_reduction(u), sub(t, u))
                return cls(u.indices, tuple(conditions), whole, ONE, weight)
        return None

    def without_shares_as_weights(self) -> _Exponentials:
        """The sum with log σ(u), and the logarithm of a share, in the exponent: as weights they underflow beside it."""
        logarithms = {w: _of_part(w) for w in factors_of(self.weight)}
        shares = [u for u in logarithms.values() if u is not None]
        weights = [w for w, u in logarithms.items() if u is None]
        return replace(self, exponent=add(self.exponent, *shares), weight=mul(*weights)) if shares else self

    def reduced(self, kind: str) -> tuple[Term, Term]:
        """The reduction of what depends on the indices, and the rest of the exponent."""
        terms = terms_of(self.exponent)
        rest = [u for u in terms if u.free.isdisjoint(self.indices)]
        body = add(*(u for u in terms if u not in rest))
        made = reduction(kind, self.indices, under(self.conditions, self.weight), under(self.conditions, body))
        return made, add(*rest)

    def logarithm(self) -> Term:
        if self.is_signed and self.outside != ONE:
            inside = replace(self, outside=ONE, weight=mul(self.outside, self.weight))
            return inside.logarithm()
        made, rest = self.reduced("logsumexp")
        return add(made, rest) if self.outside == ONE else add(made, rest, call("log", self.outside))

    def scaled(self, by: Term) -> Term:
        """The sum times exp(by)."""
        own = _exponential_of(add(*flat(add(self.exponent, by))), self.conditions)
        return mul(self.outside, total(self.indices, under(self.conditions, mul(self.weight, own))))

    def share(self, t: Term) -> Term | None:
        """`t` divided by the sum, if it is a product with one of the exponentials; or a sum of such products."""
        if isinstance(t, Sum):
            inner = refreshed(t)
            assert isinstance(inner, Sum), "a sum with other names"
            share = self.share(inner.body)
            return None if share is None else total(inner.indices, share)
        conditions, core = held(t)
        exponentials_ = [f for f in factors_of(core) if exponent(f) is not None]
        for n, f in enumerate(factors_of(core)):
            others = [*factors_of(core)[:n], *factors_of(core)[n + 1 :]]
            if f in exponentials_ and (share := self.share_of((f,), others, conditions)) is not None:
                return share
            if (inside := self.share_within(f)) is not None:
                return under(conditions, mul(*others, inside))
        if len(exponentials_) < 2:
            return None
        return self.share_of(exponentials_, [f for f in factors_of(core) if f not in exponentials_], conditions)

    def share_within(self, f: Term) -> Term | None:
        """A factor that is a sum, or stands under a condition, divided by the sum of the exponentials."""
        match f:
            case Sum() | Indicator():
                return self.share(f)
            case Delta(left, right, body):
                share = self.share(body)
                return None if share is None else delta(left, right, share)
            case _:
                return None

    def share_of(self, own: Sequence[Term], others: Sequence[Term], conditions: Guard) -> Term | None:
        """A product of exponentials and other factors under conditions, divided by the sum, if they are one of it."""
        whole = exponent(mul(*own))
        place = None if whole is None else self.place(whole, conditions)
        left = None if place is None else self.unweighted(others, place)
        if place is None or left is None:
            return None
        entry = apply(self.reduced("softmax")[0], *place)
        return under(conditions, mul(*left, entry, power(self.outside, MINUS_ONE)))

    def unweighted(self, factors: Sequence[Term], place: Sequence[Term]) -> list[Term] | None:
        """The factors without the weight of the exponential at a place, which is to be among them."""
        left = list(factors)
        own = substitute(self.weight, dict(zip(self.indices, place, strict=True)))
        for w in factors_of(own) if self.weight != ONE else ():
            if w not in left:
                return None
            left.remove(w)
        return left

    def place(self, exponent: Term, conditions: Sequence[Condition]) -> tuple[Term, ...] | None:
        """Where an exponential is one of those that are added."""
        choices = [tuple(_candidates(i, self.exponent, exponent)) for i in self.indices]
        for place in islice(product(*choices), _PLACES):
            at = dict(zip(self.indices, place, strict=True))
            if alpha_equal(substitute(self.exponent, at), exponent):
                own = substitute(under(self.conditions, Call("exp", (exponent,))), at)
                is_held = all(any(implies(c, needed) for c in conditions) for needed in held(own)[0])
                return place if own != ZERO and is_held else None
        return None


def _exponent(t: Term) -> Term | None:
    """The u of exp(u), which is log(exp(a) + exp(b)) of a sum of a few exponentials.

    A difference of two is none: it may be below 0, or 0, where the sum that it is a term of has a logarithm.
    """
    if isinstance(t, Add) and not is_complex(t.type):
        return logarithm_of_sum(t, _of_part, positive=True)
    return exponent(t)


def _with_softplus(t: Term) -> Term:
    """−u − log(1 + exp(−u)) as −log(1 + exp(u))."""
    terms = terms_of(t)
    for u in terms:
        if isinstance(u, Reduce | Mul) and (own := neg(softplus(u))) in terms:
            return add(*(v for v in terms if v not in (u, own)), neg(softplus(neg(u))))
    return t


def _is_product(t: Sum) -> bool:
    """Whether it is a product of matrices: in an exponent, the shares would be a table over all indices."""
    factors = [f for f in factors_of(unguarded(t.body)[1]) if not f.free.isdisjoint(t.indices)]
    return not any(_indices(f) == _indices(mul(*factors)) for f in factors)


def _indices(t: Term) -> set[Var]:
    return {v for v in t.free if isinstance(v.kind, Index)}


def _logarithm_of_share(t: Term) -> Term | None:
    """log of a share, which may be 0 in floating point, and of σ beside it: log Σ_r of shares is the mixed logit's."""
    match t:
        case App(Reduce("softmax") as whole, args) if whole.mark == ONE:
            return _of_share(whole, dict(zip(whole.indices, args, strict=True)))
        case Call("sigmoid", (u,)) if any(v.kind == "logsumexp" for v in terms_of(u) if isinstance(v, Reduce)):
            return exponentials.logarithm(t)
        case _:
            return None


def _candidates(index: Var, within: Term, other: Term) -> Iterator[Term]:
    """The indices of another term that may stand for the one."""
    found = dict.fromkeys(v for v in other.free if isinstance(v.kind, Index))
    entries = (a for t in subterms(other, App) for a in t.args)
    for t in (*found, *(a for a in dict.fromkeys(entries) if a not in found)):
        if isinstance(t, Const) or (t.type == index.kind and isinstance(t, Var | App) and t.free <= other.free):
            yield t


def _shared(t: Term) -> Term | None:
    """A product with the inverse of a sum of exponentials beside one of them."""
    factors = [g for f in factors_of(t) for g in _without_number(f)]
    for n, f in enumerate(factors):
        match f:
            case Pow(Sum() as below, Const() as m) if m.is_integer and m.real < 0:
                found = _Exponentials.of(below)
            case _:
                continue
        if found is None or is_complex(t.type):
            continue
        above = [*factors[:n], *factors[n + 1 :]]
        # a weight is another factor
        for k, g in enumerate(above if found.weight == ONE else ()):
            for base, times in dict.fromkeys(((g, ONE), _repeated(g))):
                if (share := found.share(base)) is None:
                    continue
                shares = min(times.real, -m.real)
                left = (power(below, number(m.real + shares)), power(base, number(times.real - shares)))
                made = mul(*above[:k], *above[k + 1 :], *left, power(share, number(shares)))
                return _shared(made) or made
        if (share := found.share(mul(*above))) is not None:
            return mul(share, power(below, number(m.real + 1)))
    return None


def _guarded_share(t: Term) -> Term | None:
    """[k ≠ i] exp(e(k))/Σ_{j ≠ i} exp(e(j)) as a share; an exponential under a condition meets what is beside it."""
    conditions, core = held(t)
    factors = factors_of(core) if conditions else ()
    for n, f in enumerate(factors):
        others = [*factors[:n], *factors[n + 1 :]]
        base, times = _repeated(f)
        made = _exponential(base.args[0], conditions) if isinstance(base, Call) and base.primitive == "exp" else None
        if made is not None:
            return under(conditions, mul(*others, power(made, times)))
        if exponent(base) is not None:
            made = _shared(mul(*others, power(under(conditions, base), times)))
            if made is not None:
                return under(conditions, made)
    apart = [u for f in factors_of(t) if isinstance(f, Indicator | Delta) for u in factors_of(held(f)[1])]
    if not any(exponent(u) is not None for u in apart):
        return None
    made = _quotient(core) if isinstance(core, Mul) else None
    met = not {*apart} <= {*factors_of(core)}
    return under(conditions, made or core) if made or met else None


def _over_more_than_a_sum(factors: Sequence[Term]) -> Term | None:
    """1/(1 + Σ exp(u)) as σ(−logsumexp(u)), and with exp(v) before it as a share, or as exp(v − log(1 + Σ exp(u)))."""
    for n, f in enumerate(factors):
        others = mul(*factors[:n], *factors[n + 1 :])
        if (inverted := _inverse_of_sum(f)) is not None:
            made = mul(others, inverted)
            return _over_more_than_a_sum(factors_of(made)) or made
        base, times = (f, ONE) if isinstance(f, Call) else _repeated(f)
        match base:
            case Call("sigmoid", (u,)) if (found := _Exponentials.of_logarithm(neg(u))) is not None:
                pass
            case _:
                continue
        if (share := found.share(others)) is not None:
            made = mul(share, call("sigmoid", neg(u)), power(base, number(times.real - 1)))
            return _over_more_than_a_sum(factors_of(made)) or made
        v, rest = exponentials.exponential(others)
        if v != ZERO:
            return mul(rest, call("exp", sub(v, mul(times, softplus(neg(u))))))
    return None


def _without_sums_below(t: Term, values: Mapping[Var, Term]) -> Term:
    """A product or a power without sums of exponentials to a power below 0."""
    if not isinstance(t, Mul | Pow) or is_complex(t.type):
        return t
    of = _with_equal_factors_met(opened(t, values, _in_place))
    return _over_sums(factors_of(of)) or t


def _over_sums(factors: Sequence[Term]) -> Term | None:
    """exp(u)/Σ exp(v) as exp(u − logsumexp(v)), also with Σ exp(u) above: one of them over- or underflows alone.

    Of a sum above with weights that may be below 0, each term is divided by the sums below; and terms that are divided
    by sums of their own take up the exponentials before them.
    """
    conditions, factors = _conditions_of_exponentials([g for f in factors for g in _taken_apart(f)])
    found = {f: u for f in factors if not _is_divided(f) and (u := exponent(f) or _of_power_of_sum(f)) is not None}
    logarithms = {f: add(*flat(u)) for f, u in found.items()}
    if not any(_divides(f, u) for f, u in logarithms.items()) and not (logarithms and any(map(_is_divided, factors))):
        return None
    if len(factors) == 1 and at_least_zero(neg(_exponent_in(factors[0]))):
        # where all terms are 0, the inverse is out of range, too
        return None
    whole = add(*logarithms.values())
    others = [f for f in factors if f not in logarithms]
    for n, f in enumerate(others):
        base, times = _repeated(f)
        if (signed := _Exponentials.of(base)) is not None:
            left = [*others[:n], *others[n + 1 :]]
            scaled = signed.scaled(mul(power(times, MINUS_ONE), whole))
            return under(conditions, mul(*left, power(scaled, times)))
    return under(conditions, mul(*others, _exponential_of(whole, conditions)))


def _taken_apart(f: Term) -> Sequence[Term]:
    """The factors of a whole power of a product, each with its power."""
    match f:
        case Pow(Mul(factors), Const() as n) if n.is_integer:
            return [power(g, n) for g in factors]
        case _:
            return (f,)


def _is_divided(f: Term) -> bool:
    """Whether it is a sum of exponentials of which each is divided by a sum."""
    return _has_logarithm_below(_exponent_in(f)) and not isinstance(f, Pow)


def _conditions_of_exponentials(factors: Sequence[Term]) -> tuple[Guard, list[Term]]:
    """The conditions that exponentials stand under, and all factors: what is beside an exponential is 0 with it."""
    conditions: Guard = ()
    found: list[Term] = []
    for f in factors:
        own, core = held(f)
        if own and any(exponent(g) is not None for g in factors_of(core)):
            conditions = (*conditions, *own)
            found += factors_of(core)
        else:
            found.append(f)
    return conditions, found


def _divides(f: Term, logarithm_: Term) -> bool:
    """Whether it is a sum to a power below 0, or the exponential of what is less the logarithm of a sum."""
    if exponent(f) is None:
        return isinstance(f, Pow) and isinstance(f.exponent, Const) and f.exponent.real < 0
    return _has_logarithm_below(logarithm_)


def _has_logarithm_below(t: Term) -> bool:
    """Whether the logarithm of a sum is subtracted in it."""
    parts = map(split_coefficient, terms_of(t))
    return any(isinstance(u, Reduce) and u.kind == "logsumexp" and c.real < 0 for c, u in parts)


def _exponential_of(t: Term, conditions: Guard = ()) -> Term:
    """exp(t), as a share if it is one."""
    return _exponential(t, conditions) or call("exp", t)


def _of_power_of_sum(f: Term) -> Term | None:
    """log of a power of Σ exp(u), or of Π exp(u), which is above 0."""
    if isinstance(f, Reduce) and f.kind == "prod":
        return _of_part(f)
    depends_on_data = any(not isinstance(v.kind, Index) for v in _exponent_in(f).free)
    return _of_part(f) if depends_on_data else None


def _exponent_in(f: Term) -> Term:
    """The u of a power or a root of Σ exp(u), and 0 of other terms."""
    while isinstance(f, Pow) or (isinstance(f, Call) and f.primitive == "sqrt"):
        f = f.base if isinstance(f, Pow) else f.args[0]
    found = _Exponentials.of(f)
    return ZERO if found is None else found.exponent


def _inverse_of_sum(f: Term) -> Term | None:
    """(1 + Σ exp(u))^n for n < 0 as a power of σ, and (exp(v) + Σ exp(u))^n as an exponential."""
    match f:
        case Pow(Add(parts) as below, Const() as n) if n.is_integer and n.real < 0:
            pass
        case _:
            return None
    if is_complex(below.type) or not any(isinstance(g, Sum) for u in parts for g in factors_of(u)):
        return None
    if ONE in parts and (of_sum := _of_part(sub(below, ONE))) is not None:
        return power(call("sigmoid", neg(of_sum)), neg(n))
    whole = logarithm(below, positive=True)
    return None if whole is None else call("exp", mul(n, whole))


def _without_number(f: Term) -> tuple[Term, ...]:
    """1/(2 Σ …) as 1/2 and 1/Σ …"""
    match f:
        case Pow(Mul((Const() as c, Sum() as below)), Const() as m) if m.is_integer:
            return power(c, m), power(below, m)
        case _:
            return (f,)


def _repeated(t: Term) -> tuple[Term, Const]:
    """(u, n) with t = u^n for a count n."""
    match t:
        case Pow(base, Const() as n) if n.is_integer and n.real > 0:
            return base, n
        case _:
            return t, ONE


def _exponential(t: Term, conditions: Guard = ()) -> Term | None:
    """exp(e − logsumexp(e)) is a softmax, under the conditions of the sum if it has some."""
    for u in terms_of(t):
        c, whole = split_coefficient(u)
        if c == MINUS_ONE and isinstance(whole, Reduce) and whole.kind == "logsumexp":
            marks, weight = held(whole.mark)
            all_ = _Exponentials(whole.indices, marks, body_of_reduction(whole), ONE)
            place = all_.place(add(t, whole), conditions) if weight == ONE else None
            if place is not None:
                return apply(all_.reduced("softmax")[0], *place)
    return None


# --- definitions ----------------------------------------------------------------------------------------------------


def _is_of_exponentials(value: Term, values: Mapping[Var, Term]) -> bool:
    """Whether a definition is an exponential, or a sum or a product with one."""
    match body_of(value):
        case Call(f, _) if f in _OVERFLOWING:
            return True
        case Reduce("logsumexp" | "softmax" | "det", _) | App(Reduce("softmax"), _):
            return True
        case Call("log" | "abs" | "abs2" | "sqrt", (u,)):
            return _is_of_exponentials(u, values)
        case Mul(parts) | Add(parts):
            return any(_is_of_exponentials(u, values) for u in parts)
        case Sum(_, body) | Indicator(_, _, body) | Delta(_, _, body) | Pow(body, Const()):
            return _is_of_exponentials(body, values)
        case (Var() as v) | App(Var() as v, _):
            return v in values
        case _:
            return False


def _without_unread(t: Term) -> Term:
    """A block without the definitions that are not read any more."""
    if not isinstance(t, Let):
        return t
    kept: list[tuple[Var, Term]] = []
    needed = set(t.body.free)
    for var, value in reversed(t.bindings):
        if var in needed:
            kept.insert(0, (var, value))
            needed |= value.free
    return Let(tuple(kept), t.body) if kept else t.body
