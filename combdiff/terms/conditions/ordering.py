"""Conditions among indices as affine forms: implication, and elimination of an index.

    i + 1 ≤ j and j + 1 ≤ k for some j   is   i + 2 ≤ k        (Fourier and Motzkin, exact for integers of a range)
    i + 1 ≤ j for some j                 is   i + 2 ≤ Σ_j 1

A form d stands for 0 ≤ d. Only indices take part that are integers of a range, without arithmetic modulo its size.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import islice, permutations, product
from math import gcd, lcm

from combdiff.records import dataclass
from combdiff.terms.conditions.guards import (
    Condition,
    Finite,
    Guard,
    both,
    condition_of,
    is_whole,
    negated,
    under,
    unguarded,
)
from combdiff.terms.terms import (
    ONE,
    ZERO,
    Add,
    App,
    Call,
    Conj,
    Const,
    Delta,
    Indicator,
    Mul,
    Sum,
    Term,
    Var,
    add,
    call,
    fresh,
    mul,
    neg,
    number,
    size,
    split_coefficient,
    substitute,
    terms_of,
    total,
)
from combdiff.terms.types import Domain, Index, Type, is_complex

_NONE = Fraction(0)

_PLACES = 64  # so many choices of indices are tried


@dataclass(frozen=True, slots=True)
class Form:
    """Σ coefficient · (index or size) + constant."""

    coefficients: Mapping[Term, Fraction]
    constant: Fraction

    def __hash__(self) -> int:
        return hash((frozenset(self.coefficients.items()), self.constant))

    def plus(self, other: Form) -> Form:
        """The sum."""
        total = dict(self.coefficients)
        for u, c in other.coefficients.items():
            total[u] = total[u] + c if u in total else c
        return Form({u: c for u, c in total.items() if c}, self.constant + other.constant)

    def negative(self) -> Form:
        """−d."""
        return Form({u: -c for u, c in self.coefficients.items()}, -self.constant)

    def of(self, u: Term) -> Fraction:
        """The coefficient of an index or a size."""
        return self.coefficients.get(u, _NONE)

    def condition(self, equal: bool = False) -> Condition:
        """0 ≤ d, or 0 = d, what is subtracted on the left."""
        parts = [*self.coefficients.items(), (ONE, self.constant)]
        left = add(*(mul(number(-c), u) for u, c in parts if c < 0))
        right = add(*(mul(number(c), u) for u, c in parts if c > 0))
        return Condition(left, right, equal, counts=any(isinstance(u, Sum) for u, _ in parts))

    @property
    def term(self) -> Term:
        """d."""
        return add(*(mul(number(c), u) for u, c in self.coefficients.items()), number(self.constant))

    @property
    def least(self) -> Form | None:
        """The least value of d over its indices, in terms of sizes; None if their ranges do not tell it."""
        least = Form({u: c for u, c in self.coefficients.items() if isinstance(u, Sum)}, self.constant)
        for v, c in self.coefficients.items():
            if isinstance(v, Var | App):
                bounds = range_of(v)
                if bounds is None:
                    return None
                first, last = bounds
                least = least.plus(_times(c, first if c > 0 else last))
        return least

    @property
    def always(self) -> bool:
        """Whether 0 ≤ d for all values of its indices, of which there is at least one."""
        return self.holds({})

    @property
    def never(self) -> bool:
        """Whether d < 0 for all values of its indices."""
        return self.negative().plus(Form({}, Fraction(-1))).always

    def holds(self, sizes: Mapping[Domain, int]) -> bool:
        """The same where ranges have at least these sizes."""
        least = self.least
        if least is None or min(least.coefficients.values(), default=0) < 0:
            return False
        counted = [(c, u.counted) for u, c in least.coefficients.items() if isinstance(u, Sum)]
        return least.constant + sum(c * (sizes.get(domain, 1) if domain else 1) for c, domain in counted) >= 0


def _times(c: Fraction, f: Form) -> Form:
    return Form({u: c * d for u, d in f.coefficients.items()}, c * f.constant)


def form_of(c: Condition) -> Form | None:
    """right − left, if the condition is one among indices that are integers of a range."""
    sides = [_affine(c.right), _affine(c.left)]
    return None if sides[0] is None or sides[1] is None else sides[0].plus(sides[1].negative())


def holds_where_equal(c: Condition, left: Term, right: Term, least: Mapping[Domain, int]) -> bool:
    """Whether a condition among indices holds wherever two others are equal, by the range of one of them.

    >>> from combdiff.terms.terms import fresh
    >>> n = Domain("n")
    >>> i, j = fresh("i", Index(n)), fresh("j", Index(n))
    >>> holds_where_equal(Condition(add(i, ONE), add(size(n), number(-1))), add(i, ONE), j, {})
    True
    """
    form, equal = form_of(c), form_of(Condition(left, right))
    if form is None or equal is None:
        return False
    shared = [u for u in equal.coefficients if form.of(u)]
    return any(form.plus(_times(-form.of(u) / equal.of(u), equal)).holds(least) for u in shared)


def never_exceeds(one: Term, other: Term) -> bool:
    """Whether one ≤ other for all values of the indices in them, by their ranges."""
    form = form_of(Condition(one, other))
    return form is not None and form.always


def _affine(t: Term) -> Form | None:
    found: dict[Term, Fraction] = {}
    constant = _NONE
    for u in terms_of(t):
        coefficient, rest = split_coefficient(u)
        if coefficient.imag:
            return None
        if rest == ONE:
            constant += coefficient.real
        else:
            domain = rest.counted if isinstance(rest, Sum) else None
            if domain is None and not (isinstance(rest, Var | App) and range_of(rest) is not None):
                return None
            part = rest if domain is None else size(domain.of or domain)
            found[part] = found.get(part, _NONE) + coefficient.real
            if domain is not None and domain.of is not None:
                constant -= coefficient.real * domain.less
    return Form(found, constant)


def range_of(v: Term) -> tuple[Form, Form] | None:
    """The first and the last value of an index; None for one whose values are no integers of a range from a number."""
    return _range_of(v.type)


@lru_cache(maxsize=1024)
def _range_of(kind: Type) -> tuple[Form, Form] | None:
    domain = kind.domain if isinstance(kind, Index) else None
    if domain is None or domain.periodic or domain.listed or domain.directions > 1:
        return None
    if domain.symmetric and domain.lower is None:
        return None
    if domain.of is not None:
        known, behind = domain.of.count, Fraction(domain.less + 1)
        last = Form({size(domain.of): Fraction(1)}, -behind) if known is None else Form({}, known - behind)
        return Form({}, Fraction(0)), last
    first = Form({}, Fraction(domain.lower or 0))
    if domain.upper is not None:
        return first, Form({}, Fraction(domain.upper))
    return first, first.plus(Form({size(domain): Fraction(1)}, Fraction(-1)))


@lru_cache(maxsize=8192)
def implies(one: Condition, other: Condition) -> bool:
    """Whether one condition is known to hold only where the other one does: 1 ≤ x only where 0 ≤ x.

    >>> i, j = fresh("i", Index(Domain("N"))), fresh("j", Index(Domain("N")))
    >>> below, apart = Condition(add(i, ONE), j), Condition(ONE, Call("abs", (add(i, neg(j)),)))
    >>> implies(below, apart), implies(apart, below)
    (True, False)
    """
    if one == other:
        return True
    match other.right:
        case Call("abs", (x,)) if not other.equal and not is_complex(x.type):
            # a ≤ x or a ≤ −x, and so a ≤ |x|
            if any(implies(one, Condition(other.left, side)) for side in (x, negated(x))):
                return True
            if one == Condition(other.left, Call("abs", (negated(x),))):
                return True
    if _is_looser(other, one) or _is_witness(one, other):
        return True
    a, b = form_of(one), form_of(other)
    if a is None or b is None or other.equal:
        return False
    return b.plus(a.negative()).always or (one.equal and b.plus(a).always)


def _is_witness(one: Condition, other: Condition) -> bool:
    """Whether a condition says of some indices what the other one says of at least one choice of them: 1 ≤ Σ_k [k < m].

    >>> n = Index(Domain("N"))
    >>> i, j, k, m = (fresh(name, n) for name in "ijkm")
    >>> some = Condition(ONE, total((k, m), Condition(k, m).over(ONE)))
    >>> implies(Condition(i, j), some), implies(Condition(i, ONE), some)
    (True, False)
    """
    match other.left, other.right:
        case Const() as least, Sum(indices, Indicator(_, _, Const() as core) as mark) if least == ONE == core:
            free = sorted((v for v in one.free if isinstance(v.kind, Index)), key=lambda v: v.uid)
            for chosen in permutations(free, len(indices)) if len(indices) <= MOST_WITNESSES else ():
                if [v.kind for v in chosen] == [v.kind for v in indices]:
                    said = substitute(mark, dict(zip(indices, chosen, strict=True)))
                    if isinstance(said, Indicator) and condition_of(said) == one:
                        return True
    return False


MOST_WITNESSES = 3
"""Indices of a count for which others are tried."""


def are_contrary(one: Condition, other: Condition) -> bool:
    """Whether two conditions of order cannot both hold, for their sum says so: a ≤ 0 and 1 ≤ a.

    >>> i = fresh("i", Index(Domain("N")))
    >>> are_contrary(Condition(i, ZERO), Condition(ONE, i)), are_contrary(Condition(i, ZERO), Condition(ZERO, i))
    (True, False)
    """
    slack = _sum_of_slacks(one, other)
    return slack is not None and slack < 0


def are_exhaustive(one: Condition, other: Condition) -> bool:
    """Whether one of two conditions of order holds in any case: a ≤ 1 and 0 ≤ a."""
    slack = _sum_of_slacks(one, other)
    return slack is not None and slack >= 0


def _sum_of_slacks(one: Condition, other: Condition) -> Fraction | None:
    """What is greater less what is smaller in both conditions together, if that is a number."""
    if one.equal or other.equal or one.free != other.free:
        return None
    found = add(one.right, other.right, *(neg(u) for side in (one.left, other.left) for u in terms_of(side)))
    return found.real if isinstance(found, Const) else None


def _is_looser(one: Condition, other: Condition) -> bool:
    """Whether one condition of order is another one with a number added to its greater side."""
    slack = _sum_of_slacks(one, Condition(other.right, other.left, other.equal))
    return slack is not None and slack >= 0


def is_kept(index: Term, domain: Domain, held: Collection[Condition]) -> bool:
    """Whether an index stays in a plain range where conditions hold.

    >>> i = fresh("i", Index(Domain("N")))
    >>> is_kept(add(i, number(-1)), i.kind.domain, [Condition(ONE, i)]), is_kept(add(i, ONE), i.kind.domain, [])
    (True, False)
    """
    slacks = _slacks(index, domain)
    return slacks is not None and all(_holds(f, held) for f in slacks)


def least_size(index: Term, domain: Domain, held: Collection[Condition]) -> int | None:
    """The number of values that a plain range has at least if an index stays in it; None if no number is enough.

    >>> i = fresh("i", Index(Domain("N")))
    >>> low, up = add(number(4), neg(i)), add(i, ONE)
    >>> least_size(low, i.kind.domain, [Condition(i, number(4))]), least_size(up, i.kind.domain, []) is None
    (5, True)
    """
    slacks = _slacks(index, domain)
    if slacks is None or not domain.plain:
        return None
    missing = [f.least for f in slacks if not _holds(f, held)]
    if not all(f is not None and f.coefficients == {size(domain): 1} for f in missing):
        return None
    return max((int(-f.constant) for f in missing if f is not None), default=0)


def _slacks(index: Term, domain: Domain) -> tuple[Form, Form] | None:
    """How far an index is from the first and from the last value of a range."""
    bounds = range_of(fresh("i", Index(domain)))
    place = _affine(index)
    if bounds is None or place is None:
        return None
    first, last = bounds
    return place.plus(first.negative()), last.plus(place.negative())


def _holds(f: Form, held: Collection[Condition]) -> bool:
    return f.always or any(implies(c, f.condition()) for c in held)


def nonzero(t: Term) -> Guard:
    """Where a number that is made of indices is not 0; no condition where it never is, or is not known to be whole.

    >>> i = fresh("i", Index(Domain("N")))
    >>> nonzero(add(i, ONE)), nonzero(i) == (Condition(ONE, i),)
    ((), True)
    >>> nonzero(add(i, number(-3))) == (Condition(ONE, call("abs", add(i, number(-3)))),)
    True
    """
    form = form_of(Condition(ZERO, t))
    if form is not None:
        shares = form.coefficients.values() or [Fraction(1)]
        unit = Fraction(gcd(*(c.numerator for c in shares)), lcm(*(c.denominator for c in shares)))
        form = _times(1 / unit, form)
        above, below = (f.plus(Form({}, Fraction(-1))) for f in (form, form.negative()))
        if form.constant.denominator > 1 or above.always or below.always:
            return ()
        if form.always or form.negative().always:
            return ((above if form.always else below).condition(),)
        t = form.term
    least = Finite().least(t)
    if least > 0 or not is_whole(t):
        return ()
    return (Condition(ONE, call("abs", t) if least < 0 else t),)


def left_of(one: Condition, other: Condition) -> Condition | None:
    """What `one` has still to ask where `other` holds; None if nothing.

    >>> i = fresh("i", Index(Domain("N")))
    >>> left_of(Condition(ONE, i), Condition(number(2), i)) is None
    True
    >>> far = Condition(ONE, call("abs", add(i, number(-3))))
    >>> left_of(far, Condition(number(3), i)) == Condition(number(4), i)
    True
    """
    if implies(other, one):
        return None
    match one:
        case Condition(Const() as bound, Call("abs", (u,)), False):
            for side in (u, mul(number(-1), u)):
                form = form_of(Condition(bound, side))
                if form is not None and implies(other, Condition(ZERO, side)):
                    return None if implies(other, form.condition()) else form.condition()
    return one


def without(conditions: Collection[Condition], v: Var) -> Guard | None:
    """What the conditions say of the other indices if v may be any value; None if that is no such condition.

    Those that always hold are left out.
    """
    concerned = [c for c in conditions if v in c.free]
    found = [(f, c.equal) for c in concerned for f in (form_of(c),) if f is not None]
    bounds = range_of(v)
    if len(found) < len(concerned) or bounds is None or any(abs(f.of(v)) != 1 for f, _ in found):
        return None
    if any(isinstance(u, App) and v in u.free for f, _ in found for u in f.coefficients):
        return None
    own, (first, last) = Form({v: Fraction(1)}, Fraction(0)), bounds
    found += [(own.plus(first.negative()), False), (last.plus(own.negative()), False)]
    kept = [c for c in conditions if c not in concerned]
    for f, equal in _eliminated(found, v):
        condition = f.condition(equal)
        trivial = f.always if not equal else not f.coefficients and not f.constant
        if not trivial and not any(implies(c, condition) for c in kept):
            kept.append(condition)
    return tuple(kept)


def _eliminated(forms: Sequence[tuple[Form, bool]], v: Var) -> list[tuple[Form, bool]]:
    """Forms without v, of some that are to be 0, or not negative; all of them hold it as v or as −v."""
    tie = next((f for f, equal in forms if equal), None)
    if tie is not None:
        return [(f.plus(_times(-f.of(v) * tie.of(v), tie)), equal) for f, equal in forms if f is not tie]
    above, below = ([f for f, _ in forms if f.of(v) == side] for side in (1, -1))
    return [(a.plus(b), False) for a in above for b in below]


def existing(conditions: Guard, foreign: Collection[Var], ties: Collection[Condition] = ()) -> Guard:
    """That the conditions hold for some values of the `foreign` variables, which the `ties` may be fixed by.

    They are counted where they have to be: 1 ≤ Σ_j indicator(r(i, j), 2, 1). Of other variables than indices, nothing
    is said.
    """
    for v in dict.fromkeys(v for c in conditions for v in sorted(c.free.intersection(foreign), key=_number)):
        tied = [tie for tie in ties if v in tie.free]
        less = without((*conditions, *tied), v) if len(tied) < 2 else None
        if less is not None:
            conditions, ties = less, [tie for tie in ties if tie not in tied]
    plain = [c for c in conditions if c.free.isdisjoint(foreign)]
    left = [c for c in conditions if c not in plain]
    for part in _parts([*left, *ties], foreign):
        others = dict.fromkeys(v for c in part for v in sorted(c.free.intersection(foreign), key=_number))
        if _hold_at_one_of_their_own(part, others):
            continue
        if any(c in left for c in part) and all(isinstance(v.kind, Index) for v in others):
            plain.append(Condition(ONE, total(tuple(others), under(part, ONE)), counts=True))
    return tuple(plain)


def _hold_at_one_of_their_own(conditions: Sequence[Condition], foreign: Collection[Var]) -> bool:
    """Whether a foreign index meets all conditions as another one in them: t(j) ≤ t(i) holds for some i, which is j."""
    known = dict.fromkeys(v for c in conditions for v in sorted(c.free.difference(foreign), key=_number))
    choices = [[w for w in known if isinstance(v.kind, Index) and w.kind == v.kind] for v in foreign]
    places = (dict(zip(foreign, place, strict=True)) for place in islice(product(*choices), _PLACES))
    return any(all(c.at(at).over(ONE) == ONE for c in conditions) for at in places)


def support(t: Term) -> Guard:
    """Conditions on what is free in t outside of which t is 0.

    >>> i, j = fresh("i", Index(Domain("N"))), fresh("j", Index(Domain("N")))
    >>> below = Condition(add(j, ONE), i).over(ONE)
    >>> support(below) == (Condition(add(j, ONE), i),), support(total((j,), below)) == (Condition(ONE, i),)
    (True, True)

    A sum is 0 where no value of its indices meets the conditions under it.
    """
    match t:
        case Indicator(_, _, body):
            return both((condition_of(t),), support(body))
        case Delta(left, _, body) if isinstance(left.type, Index):
            return both((condition_of(t),), support(body))
        case Delta(_, _, body) | Conj(body) | Call("real" | "imag", (body,)):
            return support(body)
        case Mul(factors):
            return tuple(dict.fromkeys(c for f in factors for c in support(f)))
        case Add(terms):
            guards = [*map(support, terms)]
            return tuple(c for c in guards[0] if all(c in guard for guard in guards))
        case Sum(indices, body):
            numbers = {v for v in indices if not isinstance(v.kind, Index)}
            guard = tuple(c for c in support(body) if numbers.isdisjoint(c.free))
            return existing(guard, [v for v in indices if v not in numbers])
        case _:
            return ()


def _parts(conditions: Iterable[Condition], foreign: Collection[Var]) -> list[list[Condition]]:
    """The conditions that speak of the same foreign variables, together."""
    parts: list[list[Condition]] = []
    for c in conditions:
        near = [part for part in parts if any(not d.free.isdisjoint(c.free.intersection(foreign)) for d in part)]
        parts = [*(part for part in parts if part not in near), [d for part in near for d in part] + [c]]
    return parts


def _number(v: Var) -> int:
    return v.uid


def united(guards: Iterable[Guard]) -> Guard:
    """Where at least one of several guards holds; 1 ≤ the number of those that do, if nothing simpler says it.

    >>> i = fresh("i", Index(Domain("N")))
    >>> low, high = Condition(i, ONE), Condition(number(5), i)
    >>> above, below = (Condition(c.over(ONE), ZERO) for c in (low, high))
    >>> united([(low,), (above, high), (above, below)])
    ()
    """
    found: list[Guard] = []
    for guard in guards:
        found = _with(guard, found)
    if len(found) < 2:
        return found[0] if found else ()
    common = tuple(c for c in found[0] if all(c in other for other in found))
    parts = [tuple(c for c in guard if c not in common) for guard in found]
    return (*common, Condition(ONE, add(*(under(part, ONE) for part in parts)), counts=True))


def _with(guard: Guard, others: list[Guard]) -> list[Guard]:
    """Guards of which none lies in another one, with one more: two that differ by a case and its opposite are one."""
    if any(_within(guard, other) for other in others):
        return others
    others = [other for other in others if not _within(other, guard)]
    for n, other in enumerate(others):
        common = tuple(c for c in guard if c in other)
        one, two = (tuple(c for c in g if c not in common) for g in (guard, other))
        if _are_all(one, two) or _are_all(two, one):
            return _with(common, [*others[:n], *others[n + 1 :]])
    return [*others, guard]


def _are_all(one: Guard, other: Guard) -> bool:
    """Whether one of two guards holds in any case: a condition, and that it does not hold."""
    match other:
        case (Condition() as condition,) if not condition.equal:
            return set(one) == set(excluded(condition)) or (len(one) == 1 and are_exhaustive(one[0], condition))
        case _:
            return False


def excluded(condition: Condition) -> Guard:
    """The conditions that do not all hold where this one holds, which is [[…] ≤ 0]; none if it is of another kind.

    >>> i, j = fresh("i", Index(Domain("N"))), fresh("j", Index(Domain("N")))
    >>> below = Condition(i, j)
    >>> excluded(Condition(below.over(ONE), ZERO)) == (below,), excluded(below)
    (True, ())
    """
    if condition.equal or condition.right != ZERO:
        return ()
    guard, core = unguarded(condition.left)
    return guard if core == ONE else ()


def _within(one: Guard, other: Guard) -> bool:
    return all(any(implies(c, d) for c in one) for d in other)
