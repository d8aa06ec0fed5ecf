"""Questions that lowering asks about terms: which δ are factors of a product, which subterms are shared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from math import prod

from combdiff.arrays.lower.arrays import domain_of
from combdiff.arrays.lower.indexing import Affine, affine, as_term, solve, solved_for
from combdiff.errors import UnsupportedError
from combdiff.records import dataclass
from combdiff.simplify.contraction.ranges import in_range
from combdiff.terms.conditions.guards import Condition as Guarded
from combdiff.terms.conditions.guards import Finite, condition_of, reads_beyond, under, unguarded
from combdiff.terms.conditions.ordering import Form, form_of, implies, range_of
from combdiff.terms.terms import (
    ONE,
    Add,
    App,
    Call,
    Conj,
    Const,
    Delta,
    Diff,
    Indicator,
    Let,
    Mul,
    Proj,
    Sum,
    Term,
    Var,
    add,
    bound_by,
    call,
    children,
    conj,
    delta,
    domains_compared,
    factors_of,
    fresh,
    holds,
    mul,
    numbers_read,
    split_coefficient,
    substitute,
    subterms,
    total,
)
from combdiff.terms.types import Domain, Index, Map

Condition = tuple[Term, Term]


def conditions_of(t: Term) -> tuple[list[Condition], Term]:
    """The δ of a product, and the product without them: δ(l, r, a)·b = δ(l, r, a·b)."""
    match t:
        case Delta(left, right, body):
            found, rest = conditions_of(body)
            return [(left, right), *found], rest
        case Mul(factors):
            parts = [conditions_of(f) for f in factors]
            found = [c for conditions, _ in parts for c in conditions]
            return (found, mul(*(rest for _, rest in parts))) if found else ([], t)
        case Conj(u):
            found, rest = conditions_of(u)
            return (found, conj(rest)) if found else ([], t)
        case Indicator(left, right, body):
            # arrays of integers are read beyond their ends in code, if nothing is made of what is there
            found, rest = conditions_of(body)
            beyond = any(reads_beyond(side) for condition in found for side in condition)
            return (found, Indicator(left, right, rest)) if beyond else ([], t)
        case _:
            return [], t


def distributed(summed: Sequence[Var], body: Term) -> Term | None:
    """Σ (a + b) = Σ a + Σ b, Σ a' = (Σ a)' and Σ Re ab = Re Σ ab; None for other bodies."""
    if not summed:
        return None
    coefficient, inner = split_coefficient(body)
    match inner:
        case Add(terms):
            return mul(coefficient, add(*(_total(summed, u) for u in terms)))
        case Conj((Add() | Sum()) as u):
            return mul(coefficient, conj(total(summed, u)))
        case Call("real" | "imag" as part, ((Mul() | Indicator() | Sum()) as u,)):
            return mul(coefficient, call(part, total(summed, u)))
        case _:
            return None


def _total(summed: Sequence[Var], t: Term) -> Term:
    coefficient, inner = split_coefficient(t)
    return mul(coefficient, total(summed, inner))


def with_windows_apart(summed: Sequence[Var], body: Term, finite: Callable[[Term], bool]) -> Term | None:
    """Σ where(0 ≤ i − p < n, k(p) r(i − p)) as Σ k(p) where(0 ≤ i − p < n, r(i − p)): a product with windows of r.

    The conditions must say that r is read where it has entries, and nothing else, and what else is under them be
    `finite`. None for other products.
    """
    conditions, inside, outside = _under_conditions(body)
    conditions = [c for c in conditions if (form := form_of(c)) is None or not form.always]
    read = next((f for f in inside if not finite(f)), None)
    others = [f for f in inside if f is not read]
    if read is None or not all(map(finite, others)):
        return None
    allowed, others = _within_ends(read), [*others, *outside]
    moves = [v for v in summed if v in read.free and any(v in f.free for f in others)]
    if not moves or any((form := form_of(c)) is None or form not in allowed for c in conditions):
        return None
    return mul(*others, under(conditions, read))


def _under_conditions(t: Term) -> tuple[list[Guarded], list[Term], list[Term]]:
    """The conditions in a product, the factors that are under one, and those that are under none."""
    match t:
        case Mul(factors):
            parts = [_under_conditions(f) for f in factors]
            conditions = [c for own, _, _ in parts for c in own]
            return conditions, [f for _, own, _ in parts for f in own], [f for _, _, own in parts for f in own]
        case Indicator(_, _, body):
            conditions, inside, outside = _under_conditions(body)
            return [condition_of(t), *conditions], [*inside, *outside], []
        case _:
            return [], [], [t]


def _within_ends(read: Term) -> list[Form]:
    """What is 0 or more where an entry is read at sums of indices that are in the ranges of its slots.

    Nothing if an index stands in several slots, or none is a sum.
    """
    match read:
        case Conj(of):
            return _within_ends(of)
        case App(Var(kind=Map() as kind), args) if kind.is_array and len(read.free) - 1 == sum(
            len(a.free) for a in args
        ):
            found: list[Form | None] = []
            for index, slot in zip(args, kind.params, strict=True):
                bounds = range_of(fresh("i", slot))
                if not isinstance(index, Var) and bounds is not None:
                    found += [form_of(Guarded(bounds[0].term, index)), form_of(Guarded(index, bounds[1].term))]
            return [form for form in found if form is not None]
        case _:
            return []


def compared_in(t: Term, conditions: Sequence[Condition]) -> set[Var]:
    """The variables that stand in the sides of δ: in the given conditions, and anywhere in t."""
    sides = [side for condition in conditions for side in condition]
    sides += [side for u in subterms(t, Delta) for side in (u.left, u.right)]
    return {v for side in sides for v in side.free}


def loses_period(v: Var, form: Affine) -> bool:
    """Whether a δ that holds v would no longer be modulo v's size with `form` in v's place."""
    domain = domain_of(v)
    return domain.periodic and domain not in form.domains


_LONGEST = 400


def closed_form(t: Term) -> Hashable:
    """A key that two terms share if they are equal up to the names of their indices, free ones too.

    A term too long to be compared so is only equal to itself.
    """
    numbers: dict[Var, int] = {}
    budget = _LONGEST

    def key(u: Term) -> Hashable:
        nonlocal budget
        budget -= 1
        if budget < 0:
            return ()
        match u:
            case Var(_, Index(domain), _):
                return numbers.setdefault(u, len(numbers)), domain
            case Var() | Const():
                return u
            case Sum():
                return "Sum", tuple(map(key, u.indices)), key(u.body)
            case Call(name, _) | Diff(name, _) | Proj(name, _):
                return type(u).__name__, name, tuple(map(key, children(u)))
            case _:
                return type(u).__name__, tuple(map(key, bound_by(u))), tuple(map(key, children(u)))

    found = key(t)
    return found if budget >= 0 else t


def repeated_sums(t: Term) -> set[Hashable]:
    """The closed forms of sums that stand in more than one place."""
    places = [c for u in subterms(t) for c in children(u) if isinstance(c, Sum)]
    keys = {c: closed_form(c) for c in set(places)}
    return {key for key, count in Counter(keys[c] for c in places).items() if count > 1}


def inlined(t: Let) -> Term:
    """A let inside an expression, its values put in their places (equal arrays are found again when steps are made)."""
    body: Term = t.body
    for var, value in reversed(t.bindings):
        body = substitute(body, {var: value})
    return body


def mentions_delta(t: Term) -> bool:
    """Whether a δ stands anywhere in t."""
    return holds(t, Delta)


def common(condition: Condition) -> tuple[tuple[Var, Var], Domain] | None:
    """Two indices that a condition says are equal, of ranges that may have different sizes, and what these share.

    δ(i, j) over n and m values is solved for both: i = j = k for the min(n, m) values of k.
    """
    left, right = condition
    if not (isinstance(left, Var) and isinstance(right, Var)):
        return None
    domains = domain_of(left), domain_of(right)
    if domains[0] == domains[1] or not all(map(_is_plain, domains)):
        return None
    if (left_over := domains[0].fewer(domains[1])) is not None:
        return (left, right), domains[left_over < 0]
    parts = tuple(dict.fromkeys(part for d in domains for part in d.common or (d,)))
    return (left, right), Domain(" ".join(part.name for part in parts), common=parts)


def _is_plain(domain: Domain) -> bool:
    """Whether a domain has the values 0, 1, …, as far as an array goes."""
    return domain.axes == (domain,) and not (domain.periodic or domain.symmetric or domain.lower)


def solution(
    condition: Condition, summed: Sequence[Var], rest: Term, compared: set[Var], wanted: Sequence[Var]
) -> tuple[Var, Term] | None:
    """What a condition says of an index: of a summed one first, else of the last one of the result.

    A diagonal is then written row by row.
    """
    try:
        l_form, r_form = map(affine, condition)
    except UnsupportedError:
        return None
    variables = dict.fromkeys((*l_form.variables, *r_form.variables))
    order = {v: n for n, v in enumerate(wanted)}
    for v in sorted(variables, key=lambda v: (v not in summed, -order.get(v, -1))):
        found = solve(l_form, r_form, [v])
        if found is None:
            continue
        form = found[1]
        if form.bare is None and domain_of(v).periodic and v in numbers_read(rest):
            continue
        if v in compared and loses_period(v, form):
            continue
        return v, as_term(form)
    return None


_FEW = 2
"""Entries are added at their places rather than read for each place, if there are so many times as many places."""


def solution_at_entries(
    condition: Condition, summed: Sequence[Var], sizes: Mapping[Domain, int]
) -> tuple[Var, Term, list[Guarded]] | None:
    """What a condition with entries of an array of integers says of an index, and where it is in range.

    δ(J(e) + 1, d, …) says that d is J(e) + 1, where that is a value of d. An index with few values is solved for last.
    """
    try:
        forms = [affine(side) for side in condition]
    except UnsupportedError:
        return None
    atoms = dict.fromkeys(atom for form in forms for atom, _ in form.coefficients)
    if not any(isinstance(atom, App) for atom in atoms) or any(d.periodic for form in forms for d in form.domains):
        return None
    count = {v: domain_of(v).extent(sizes) for v in atoms if isinstance(v, Var)}
    for v in sorted(count, key=lambda v: (_FEW * count[v] < max(count.values()), v not in summed)):
        solved = form_of(Guarded(*condition))
        if not _is_plain(domain_of(v)) or solved is None or abs(solved.of(v)) != 1:
            continue
        place = as_term(solved_for(v, *forms))
        if v not in place.free:
            return v, place, in_range(v, place)
    return None


_MOST_PLACES = 4
"""An index is solved for if no other one has more than so many times its values: else the sums would be larger."""


def solution_within(
    condition: Condition, summed: Sequence[Var], sizes: Mapping[Domain, int]
) -> tuple[Var, Term, list[Guarded]] | None:
    """What a condition says of an index where ranges have nothing to do with each other, and where that is in range.

    Σ_{i, p} δ(i + p, d, k(p) r(i)) is Σ_p k(p) r(d − p) where d − p is a value of i. An index with a number of values
    like the others is solved for, so that what is summed over others is no larger; else one that is not summed over.
    """
    try:
        left, right = map(affine, condition)
    except UnsupportedError:
        return None
    atoms = dict.fromkeys(atom for form in (left, right) for atom, _ in form.coefficients)
    form = form_of(Guarded(*condition))
    variables = [v for v in atoms if isinstance(v, Var) and form is not None and abs(form.of(v)) == 1]
    if len(atoms) < 3 or not all(isinstance(v, Var) and _is_plain(domain_of(v)) for v in atoms):
        return None
    count = {v: domain_of(v).extent(sizes) for v in atoms if isinstance(v, Var)}
    variables.sort(key=lambda v: (v not in summed, -count[v]))
    for v in variables:
        if v not in summed or max(count.values()) <= _MOST_PLACES * count[v]:
            place = as_term(solved_for(v, left, right))
            return v, place, in_range(v, place)
    return None


def unsaid(conditions: Sequence[Guarded], t: Term) -> list[Guarded]:
    """The conditions that do not follow from those that t stands under."""
    held, _ = unguarded(t)
    return [c for c in conditions if not any(implies(h, c) for h in held)]


@dataclass(frozen=True, slots=True)
class Meeting:
    """Σ over `summed` of δ(at, where, of) · rest, where `of` and `at` say nothing of what `where` holds.

    There is an entry in `at` for each in `where`; `others` are the conditions that the rest is under.
    """

    summed: tuple[Var, ...]
    at: tuple[Term, ...]
    where: tuple[Term, ...]
    of: Term
    rest: Term
    others: tuple[Condition, ...]

    @property
    def around(self) -> tuple[Var, ...]:
        """The further indices that `of` and `at` depend on."""
        free = {v for t in (*self.at, self.of) for v in t.free if isinstance(v.kind, Index)}
        return tuple(sorted(free.difference(self.summed), key=lambda v: v.uid))

    def is_small(self, sizes: Mapping[Domain, int]) -> bool:
        """Whether an array over the values of `at` exists, and has no more entries than one over where they meet."""
        places = {v for where in self.where for v in where.free}
        if not places.isdisjoint(self.around) or (self.around and isinstance(self.of, Delta)):
            return False  # conditions with other indices are for other arrays
        pairs = {*self.summed, *(v for v in places if isinstance(v.kind, Index))}
        return self.entries(sizes) <= prod(sizes[domain_of(v)] for v in pairs)

    def entries(self, sizes: Mapping[Domain, int]) -> int:
        """How many entries an array over the values of `at` has."""
        domains = [at.type.domain for at in self.at if isinstance(at.type, Index) and at.type.domain is not None]
        assert len(domains) == len(self.at), "entries of arrays of integers"
        return prod(sizes[d] for d in domains) * prod(sizes[domain_of(v)] for v in self.around)


def terms_apart(masks: Sequence[Condition], summed: Sequence[Var], product: Term) -> list[Term] | None:
    """Σ δ(J(e), J(f)) (v(e) x(f) + …) as the terms of a sum, each a product of what one side of a condition holds."""
    sides = [side for c in masks for side in c if isinstance(side, App)]
    owns = [own for side in sides if (own := {v for v in summed if v in side.free})]
    for f in factors_of(product) if len(owns) > 1 else ():
        if isinstance(f, Add) and sum(not f.free.isdisjoint(own) for own in owns) > 1:
            rest = mul(*(g for g in factors_of(product) if g is not f))
            parts = [mul(rest, u) for u in f.terms]
            if all(sum(not g.free.isdisjoint(own) for own in owns) < 2 for u in parts for g in factors_of(u)):
                return parts
    return None


def conditions_beside(product: Term) -> Term:
    """What stands under conditions as a product with them, if it is finite anywhere."""
    guard, core = unguarded(product)
    return mul(core, *(c.over(ONE) for c in guard)) if guard and Finite()(core) else product


def meeting(
    condition: Condition,
    summed: Sequence[Var],
    product: Term,
    others: Sequence[Condition],
    sizes: Mapping[Domain, int],
) -> Meeting | None:
    """A sum over what only one side of a condition holds, J(e) of δ(J(e), J(f), w(e) x(f)), apart from the rest.

    Other conditions of this kind, δ(K(e), K(f)), are part of it: the array is over pairs of values then. Of two sides
    it is that which takes the smaller array.
    """
    met: list[Meeting] = []
    for at, where in (condition, condition[::-1]):
        own = tuple(v for v in summed if v in at.free)
        if not own or not _meets(at, where, own):
            continue
        of = [f for f in factors_of(product) if not f.free.isdisjoint(own)]
        inside = [c for c in others if any(not side.free.isdisjoint(own) for side in c)]
        also = {c: pair for c in inside for pair in (c, c[::-1]) if pair[1].free and _meets(*pair, own)}
        found = mul(*of)
        for c in inside:
            found = found if c in also else delta(*c, found)
        rest = mul(*(f for f in factors_of(product) if f not in of))
        # conditions come from the inside out
        ats, wheres = zip(*reversed([(at, where), *also.values()]), strict=True)
        met.append(Meeting(own, ats, wheres, found, rest, tuple(c for c in others if c not in inside)))
    return min((m for m in met if m.is_small(sizes)), key=lambda m: m.entries(sizes), default=None)


def _meets(at: Term, where: Term, own: Collection[Var]) -> bool:
    """Whether one side of a condition is an entry at indices of one's `own`, which the other says nothing of."""
    if not isinstance(at, App) or at.free.isdisjoint(own) or not where.free.isdisjoint(own):
        return False
    # one of another type need not be in range
    return where.type == at.type or any(d.periodic for d in domains_compared(at))
