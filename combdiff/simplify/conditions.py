"""Merges equal conditions of a product or a sum, and removes conditions that an outer one implies.

indicator(i, j, a) * indicator(i, j, b)    becomes   indicator(i, j, a * b)
indicator(i, j, exp(indicator(i, j, a)))   becomes   indicator(i, j, exp(a))
indicator(i, j, indicator(i + 1, j, a))    becomes   indicator(i + 1, j, a)
indicator(i, j, 1 / a) - indicator(i, j, 1 / b)   becomes   indicator(i, j, 1 / a - 1 / b)
y * where(y != 0, 1)                       becomes   y, as it is 0 where the condition does not hold
indicator(i, j, 3 / a)                     becomes   3 * indicator(i, j, 1 / a)
where(y != 0, 1 / (1 + where(y == 0, a)))  becomes   where(y != 0, 1)
where(y != 0, a) / y                       becomes   a / y, as neither is finite where y is 0
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import permutations
from typing import TypeGuard

from combdiff.records import dataclass
from combdiff.terms.alpha import alpha_equal
from combdiff.terms.branches import at_least_zero
from combdiff.terms.conditions.comparing import are_equal_around, comparison_of
from combdiff.terms.conditions.divided import Divisor
from combdiff.terms.conditions.entries import is_entry
from combdiff.terms.conditions.guards import (
    Condition,
    Finite,
    FiniteButForOverflow,
    Guard,
    condition_of,
    held,
    is_finite,
    reads_beyond,
    under,
    unguarded,
)
from combdiff.terms.conditions.ordering import (
    Form,
    are_contrary,
    are_exhaustive,
    excluded,
    form_of,
    holds_where_equal,
    implies,
    left_of,
)
from combdiff.terms.conditions.vanishing import vanishes
from combdiff.terms.terms import (
    ONE,
    ZERO,
    Add,
    App,
    Call,
    Const,
    Delta,
    Indicator,
    Mul,
    Pow,
    Sum,
    Term,
    Traverser,
    Var,
    add,
    delta,
    exchanged,
    factors_of,
    holds_entries,
    mul,
    power,
    split_coefficient,
    subterms,
    terms_of,
    total,
)
from combdiff.terms.types import Domain, Index, Number


def stated_once(
    t: Term,
    least: Mapping[Domain, int] | None = None,
    divided: Sequence[Divisor] = (),
    partial_values: Collection[Var] = (),
    overflowing: Collection[Var] = (),
) -> Term:
    """`t` with no condition under itself, and what stands under one condition together, a number in front.

    >>> from combdiff.terms.terms import ONE, fresh, indicator
    >>> from combdiff.terms.types import REAL
    >>> x, y = fresh("x", REAL), fresh("y", REAL)
    >>> stated_once(mul(indicator(ONE, x, x), indicator(ONE, x, y))) == indicator(ONE, x, mul(x, y))
    True

    Conditions that hold wherever ranges have their `least` sizes are left out, and what stands under one that never
    holds; those that say the same, i < n - 1 and i + 2 <= n, are spelled as the first of them. Powers of what the
    program has `divided` by in any case stand in front of conditions. Definitions in `partial_values` may be infinite,
    those that are `overflowing` only where an exponential overflows.

    Terms of a sum are put together where one may be infinite, or reads beyond a range: others are collected by factors.
    """
    t = Traverser(_of_fewest_indices, Delta)(Traverser(_with_one_side, Sum)(t))
    conditions = [condition_of(u) for u in subterms(t, Indicator)]
    if not conditions:
        return Traverser(partial(_divided_first, divided), Delta)(t) if divided else t
    spelled = _spelled(conditions)
    finite = _Known.of(partial_values, overflowing)

    def visit(u: Term) -> Term:
        return _stated(u, spelled, least or {}, finite)

    settled = Traverser(visit, Indicator, Delta)(t)
    return Traverser(partial(_divided_first, divided), Indicator, Delta)(settled) if divided else settled


def _stated(u: Term, spelled: Mapping[Form, Condition], least: Mapping[Domain, int], finite: _Known) -> Term:
    """A node whose parts are as they should be."""
    match u:
        case Mul(factors) if not isinstance(u.type, Index):
            return _product(u, factors, finite)
        case Add(terms) if not isinstance(u.type, Index):
            return _sum(u, terms)
        case Indicator(_, _, body):
            c = condition_of(u)
            if _is_zero_beyond(c, body, finite):
                return body
            front, body = _in_front(c, body, finite)
            return mul(*front, _settled(c, body, spelled, least))
        case Pow(Indicator() as base, Const(n, imag) as exponent) if n > 0 and not imag:
            return _under(condition_of(base), power(base.body, exponent))
        case Delta() if any((form := form_of(c)) is not None and form.always for c in _apart(u)):
            return ZERO
        case Delta(left, right, _) if reads_beyond(left) or reads_beyond(right):
            # what exists under a condition only is not compared where that does not hold
            guard, core = unguarded(u)
            return under(guard, core)
        case Delta(left, right, body):
            return delta(left, right, mul(*(_where_equal(f, left, right, least) for f in factors_of(body))))
        case _:
            return u


def _where_equal(t: Term, left: Term, right: Term, least: Mapping[Domain, int]) -> Term:
    """A value without a condition that δ implies, i < n - 1 of δ(i + 1, j), unless that keeps an entry in range.

    One of sizes alone says that there are entries, of which others may stand beside it; one of places that an array of
    integers tells keeps what is added up there in range.
    """
    if not isinstance(t, Indicator) or reads_beyond(t.body) or holds_entries(left) or holds_entries(right):
        return t
    c = condition_of(t)
    return t.body if c.free and holds_where_equal(c, left, right, least) else t


def _with_one_side(t: Term) -> Term:
    """Σ_ef [c(i) = c(e)] [c(e) = c(f)] … with c(i) on one side of all conditions: sums over e and f are apart."""
    if not isinstance(t, Sum):
        return t
    guard, core = held(t.body)
    equal = [c for c in guard if c.equal]
    if len(equal) < 2:
        return t
    classes: list[dict[Term, None]] = []
    for c in equal:
        met = [known for known in classes if c.left in known or c.right in known]
        joined = dict.fromkeys(side for known in (*met, {c.left: None, c.right: None}) for side in known)
        classes = [*(known for known in classes if known not in met), joined]
    if all(len(known) == 2 for known in classes):
        return t
    found = [c for c in guard if not c.equal]
    for known in classes:
        first = min(known, key=lambda side: not side.free.isdisjoint(t.indices))
        found += [Condition(first, side, equal=True) for side in known if side != first]
    return total(t.indices, under(found, core))


def _of_fewest_indices(t: Term) -> Term:
    """[c(i) = c(e)] g(i, c(e)) with c(i) for c(e), so that g depends on i alone: it leaves a sum over e."""
    if not isinstance(t, Delta) or not isinstance(t.left.type, Index):
        return t
    guard, core = held(t)
    equal = [c for c in guard if c.equal and isinstance(c.left, App) and isinstance(c.right, App)]
    factors = [_spelled_by(f, equal) for f in factors_of(core)] if equal else [core]
    return t if factors == [*factors_of(core)] else under(guard, mul(*factors))


def _spelled_by(t: Term, equal: Sequence[Condition]) -> Term:
    """A factor in which one of two equal sides stands for the other where it then depends on fewer indices."""
    for c in equal:
        for one, other in ((c.left, c.right), (c.right, c.left)):
            made = exchanged(t, {one: other})
            if len(made.free) < len(t.free):
                t = made
    return t


def _divided_first(divided: Sequence[Divisor], t: Term) -> Term:
    """A value under a condition, with powers of some divisors in front."""
    if not isinstance(t, Indicator | Delta) or not isinstance(t.left.type, Number | Index):
        return t
    factors = factors_of(t.body)
    first = [f for f in factors if _is_divisor(f) and any(d.is_of(f.base) for d in divided)]
    return mul(*first, under((condition_of(t),), mul(*(f for f in factors if f not in first)))) if first else t


def _is_divisor(t: Term) -> TypeGuard[Pow]:
    return isinstance(t, Pow) and isinstance(t.exponent, Const) and t.exponent.real < 0


def _settled(c: Condition, body: Term, spelled: Mapping[Form, Condition], least: Mapping[Domain, int]) -> Term:
    """What stands under a condition, which may always hold, or never."""
    body = _asked_in_front(body)
    form = form_of(c)
    if form is None:
        return _under(c, body)
    if form.never:
        return ZERO
    return body if form.holds(least) else _under(spelled.get(form, c), body)


def _in_front(c: Condition, t: Term, finite: _Known) -> tuple[list[Term], Term]:
    """The factors that need no condition around them, and what stays under it: all of them if none has to.

    What overflows does so everywhere if it does not depend on the indices that are compared. A condition of sizes alone
    may say that there are entries at all.
    """
    if not c.free:
        return [], t
    factors = factors_of(t)
    plain = [f for f in factors if not isinstance(f, Indicator) and not reads_beyond(f)]
    front = [f for f in plain if finite(f) or finite.wherever(c, f)]
    return (front, mul(*(f for f in factors if f not in front))) if len(front) < len(factors) else ([], t)


@dataclass(frozen=True, slots=True)
class _Known:
    """What is finite wherever the data are, and what is but for exponentials that overflow."""

    finite: Finite
    but_for_overflow: Finite

    @classmethod
    def of(cls, partial_values: Collection[Var], overflowing: Collection[Var]) -> _Known:
        return cls(Finite(partial_values), FiniteButForOverflow({*partial_values} - {*overflowing}))

    def __call__(self, t: Term) -> bool:
        return self.finite(t)

    def wherever(self, c: Condition, t: Term) -> bool:
        """Whether t is infinite only where an exponential overflows, which does not depend on the indices compared."""
        compares = all(isinstance(side.type, Index) or isinstance(side, Const) for side in (c.left, c.right))
        return compares and c.free.isdisjoint(t.free) and self.but_for_overflow(t)


def _asked_in_front(t: Term) -> Term:
    """λ where(d, e) as where(d, λ e), where λ cannot leave another condition c: both are asked once, c and d."""
    guards = [f for f in factors_of(t) if isinstance(f, Indicator)]
    others = [f for f in factors_of(t) if not isinstance(f, Indicator)]
    if len(guards) != 1 or not others or not all(isinstance(f, Const) or is_entry(f) for f in others):
        return t
    if not reads_beyond(guards[0].body):
        return t
    return under((condition_of(guards[0]),), mul(*others, guards[0].body))


def _apart(t: Delta) -> Sequence[Condition]:
    """That one of two indices is greater than the other: each of these conditions rules out that they are equal."""
    if not isinstance(t.left.type, Index) or are_equal_around(t.left, t.right):
        return ()
    return Condition(add(t.left, ONE), t.right), Condition(add(t.right, ONE), t.left)


def _spelled(conditions: Sequence[Condition]) -> dict[Form, Condition]:
    """How each condition among indices is spelled first."""
    found: dict[Form, Condition] = {}
    for c in conditions:
        # an index that cancels, i + j <= i + k, is in sight here and not where the other one stands
        if (form := form_of(c)) is not None and (plain := form.condition()).free <= c.free:
            found.setdefault(form, c if plain.free == c.free and not _is_clumsy(c) else plain)
    return found


def _is_clumsy(c: Condition) -> bool:
    """Whether numbers stand on both sides, as in i + 2 <= n - 1 and 1 <= i - 1; i < n - 1 is spelled i + 1 <= n - 1."""
    numbers = [sum(int(u.real) for u in terms_of(side) if isinstance(u, Const)) for side in (c.left, c.right)]
    return all(numbers) and (numbers[0] != 1 or c.left == ONE)


def _product(t: Mul, factors: tuple[Term, ...], finite: _Known) -> Term:
    """Two factors under one condition, as one; under it what cancels in what is guarded, or exists only there."""
    guards = [f for f in factors if isinstance(f, Indicator)]
    for guard in guards:
        if _is_where_finite(condition_of(guard), factors) or _is_of_no_use(guard, factors, finite):
            return _again(mul(*(f for f in factors if f is not guard), guard.body), finite)
        for f in factors:
            exists_there = f is not guard and reads_beyond(f) and not reads_beyond(f, (guard,))
            if exists_there or _meets_its_inverse(f, factors_of(guard.body)):
                rest = [g for g in factors if g is not guard and g is not f]
                return _again(mul(*rest, _under(condition_of(guard), mul(f, guard.body))), finite)
    for one, other in permutations(guards, 2):
        left = left_of(condition_of(one), condition_of(other))
        if left == condition_of(one):
            continue
        rest = [f for f in factors if f is not one and f is not other]
        inner = mul(one.body, other.body) if left is None else mul(left.over(one.body), other.body)
        return _again(mul(*rest, _under(condition_of(other), inner)), finite)
    return t


def _is_of_no_use(guard: Indicator, factors: Sequence[Term], finite: _Known) -> bool:
    """Whether a product of finite numbers is 0 anyway where the condition does not hold: y where(y != 0, 1)."""
    found = any(vanishes(f, condition_of(guard)) for f in factors if f is not guard)
    return found and finite(guard.body) and not reads_beyond(guard.body)


def _is_zero_beyond(c: Condition, body: Term, finite: _Known) -> bool:
    """Whether what stands under a condition is 0 where that does not hold: sin(x(i) - x(j)) under i != j."""
    found = any(vanishes(f, c) for f in factors_of(body))
    return found and finite(body) and not reads_beyond(body)


def _is_where_finite(c: Condition, factors: Sequence[Term]) -> bool:
    """Whether a product has no finite value where the condition does not hold: where(0 < |x|, e) / |x|."""
    told = comparison_of(c)
    if ZERO not in (told.left, told.right):
        return False
    number = told.right if told.left == ZERO else told.left
    excludes_zero = told.sign == "!=" or (told.sign == "<" and told.left == ZERO and at_least_zero(number))
    zeros = (number, *(number.args if isinstance(number, Call) and number.primitive == "abs" else ()))
    divided = [base for base, n in map(_base_and_exponent, factors) if n < 0]
    return excludes_zero and any(alpha_equal(base, zero) for base in divided for zero in zeros)


def _meets_its_inverse(factor: Term, others: Sequence[Term]) -> bool:
    """Whether one of the other factors is a power of the same base with the opposite sign."""
    base, exponent = _base_and_exponent(factor)
    found = [n for b, n in map(_base_and_exponent, others) if b == base]
    return not isinstance(factor, Const) and any(n * exponent < 0 for n in found)


def _base_and_exponent(t: Term) -> tuple[Term, Fraction]:
    match t:
        case Pow(base, Const(n, imag)) if not imag:
            return base, n
        case _:
            return t, Fraction(1)


def _again(t: Term, finite: _Known) -> Term:
    return _product(t, t.factors, finite) if isinstance(t, Mul) else t


def _sum(t: Add, terms: tuple[Term, ...]) -> Term:
    """Terms under one condition as one, if one has to stay there: it may be infinite, or reads beyond a range."""
    found: dict[Condition, list[tuple[Term, Term]]] = {}
    held: set[Condition] = set()
    alone: set[Condition] = set()
    infinite: set[Condition] = set()
    for term in terms:
        c, rest = split_coefficient(term)
        guards = [f for f in factors_of(rest) if isinstance(f, Indicator)]
        others = [f for f in factors_of(rest) if not isinstance(f, Indicator)]
        if len(guards) == 1 and all(map(is_entry, others)):
            (guard,) = guards
            found.setdefault(condition_of(guard), []).append((term, mul(c, *others, guard.body)))
            if reads_beyond(guard.body):
                held.add(condition_of(guard))
            elif not is_finite(guard.body):
                infinite.add(condition_of(guard))
            if not others:
                alone.add(condition_of(guard))
    held |= infinite & alone
    together = {c: parts for c, parts in found.items() if c in held and len(parts) > 1}
    if not together:
        return t
    gone = {term for parts in together.values() for term, _ in parts}
    bodies = (_under(c, add(*(body for _, body in parts))) for c, parts in together.items())
    return add(*(term for term in terms if term not in gone), *bodies)


def _under(condition: Condition, body: Term) -> Term:
    """What stands under a condition that it need not ask for, and without it where what it guards asks for more.

    What asks for the contrary is 0.
    """
    contrary = excluded(condition)

    def visit(u: Term) -> Term:
        if isinstance(u, Delta):
            return ZERO if any(implies(condition, c) for c in _apart(u)) else u
        if not isinstance(u, Indicator):
            return u
        asked = condition_of(u)
        if are_contrary(asked, condition) or (contrary and _is_implied(contrary, unguarded(u)[0])):
            return ZERO
        if len(contrary) == 1 and are_exhaustive(asked, contrary[0]):
            return u.body
        left = left_of(asked, condition)
        return u.body if left is None else u if left == asked else left.over(u.body)

    inner = Traverser(visit, Indicator, Delta)(body)
    if inner == ZERO:
        return ZERO
    factors = factors_of(inner)
    asked = [c for f in factors for c in unguarded(f)[0]]
    if any(are_contrary(c, other) for c in contrary for other in asked):
        return inner
    for n, f in enumerate(factors):
        if isinstance(f, Indicator) and implies(condition_of(f), condition):
            return under((condition_of(f),), mul(*factors[:n], f.body, *factors[n + 1 :]))
    return under((condition,), inner)


def _is_implied(conditions: Guard, by: Guard) -> bool:
    return all(any(implies(c, condition) for c in by) for condition in conditions)
