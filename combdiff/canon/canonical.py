"""Canonical forms under symmetry: terms that differ by names, order or declared symmetries have one key.

`canonical` is the entry; `merge_like_terms`, `derived_symmetries` and `is_real` are what it is good for. Free variables
are held fixed: B(i, j) with open i, j is not zero because B is antisymmetric, Σ B(i, j) is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

from combdiff.budget import Budget, OutOfTime
from combdiff.canon.both_orders import orders_of
from combdiff.canon.labelling import Vanishes
from combdiff.canon.leastform import least_form
from combdiff.canon.like_terms.complements import has_sides, left_out_of, sides_of
from combdiff.canon.like_terms.contracted import alike_once_contracted
from combdiff.canon.like_terms.fractions import cancelled
from combdiff.canon.like_terms.nested import without_nested_fractions
from combdiff.canon.like_terms.opening import factors_written, has_signs_alone, multiplied_out
from combdiff.canon.like_terms.signs import with_one_sign
from combdiff.canon.reading import Reader, Unreadable
from combdiff.canon.skeleton import NOTHING, UNIT, Coefficient, opposite, times
from combdiff.records import dataclass
from combdiff.terms.laws.extrema import with_signs_met
from combdiff.terms.terms import (
    MINUS_ONE,
    ZERO,
    Add,
    App,
    Call,
    Conj,
    Const,
    Indicator,
    Lam,
    Let,
    Mul,
    Pow,
    Reduce,
    Sum,
    Term,
    Var,
    add,
    call,
    children,
    conj,
    holds,
    indicator,
    mul,
    neg,
    number,
    rebuild,
    split_coefficient,
    substitute,
)
from combdiff.terms.types import HERMITIAN, SYMMETRIC, Index, Symmetry, is_complex

Symmetries = Mapping[Var, tuple[Symmetry, ...]]
Groups = Sequence[Sequence[Term]]
Witness = Callable[[Term, Groups], None]
"""(a sum of terms, its like terms together) ↦ nothing; terms that are zero are in no group."""
_NONE: Symmetries = {}
# every permutation of the slots is tried up to this rank, exchanges of two beyond it
_FEW_SLOTS = 4
_DEEPEST = 400


@dataclass(frozen=True, slots=True)
class Canonical:
    """Terms of equal keys are equal up to their signs: a · a.sign = b · b.sign. A term that is zero has sign 0."""

    key: Hashable
    sign: int


_VANISHED = Canonical(None, 0)


def canonical(term: Term, symmetries: Symmetries = _NONE, unused: Collection[Var] = ()) -> Canonical:
    """The canonical form of a scalar, let-free term, a number in front left out.

    >>> from combdiff.terms.terms import App, Sum, fresh
    >>> from combdiff.terms.types import COMPLEX, HERMITIAN, Index, Map, Domain
    >>> n = Index(Domain("n"))
    >>> H, i, j = fresh("H", Map((n, n), COMPLEX, (HERMITIAN,))), fresh("i", n), fresh("j", n)
    >>> canonical(conj(App(H, (i, j)))) == canonical(App(H, (j, i)))
    True

    `symmetries` adds to what the types of tensors declare; the declared ones of variables in `unused` are not used.
    """
    _, bare = split_coefficient(term)
    form = normal_form(bare, symmetries, unused)
    if not form.sign:
        return _VANISHED
    scale = form.coefficient
    if scale == UNIT:
        return Canonical(form.key, form.sign)
    turned = (-scale[0], -scale[1])
    return Canonical((min(scale, turned), form.key), form.sign * (1 if scale < turned else -1))


@dataclass(frozen=True, slots=True)
class NormalForm:
    """term = coefficient · sign · (what the key stands for)."""

    coefficient: Coefficient
    key: Hashable
    sign: int


def normal_form(
    term: Term, symmetries: Symmetries = _NONE, unused: Collection[Var] = (), budget: Budget | None = None
) -> NormalForm:
    """Like `canonical`, with all numerical factors of the term gathered in `coefficient`.

    When the budget is spent, a term is its own canonical form: equal forms are still equal terms.
    """
    budget = budget or Budget()
    reader = reader_of(symmetries, unused, budget)
    if too_deep(term) or budget.over():
        return _opaque(term)
    try:
        coefficient, node = reader.read(term)
        if coefficient == NOTHING:
            return NormalForm(NOTHING, None, 0)
        key, scale = least_form(node, reader.bound, budget)
    except Vanishes:
        return NormalForm(NOTHING, None, 0)
    except (Unreadable, OutOfTime):
        return _opaque(term)
    if scale[0] < 0 and not scale[1]:
        return NormalForm(times(coefficient, opposite(scale)), key, -1)
    return NormalForm(times(coefficient, scale), key, 1)


def reader_of(symmetries: Symmetries, unused: Collection[Var], budget: Budget) -> Reader:
    """What reads terms, and tells which matrices are their transposes or adjoints."""
    own = frozenset(unused)
    return Reader(symmetries, own, ask=budget.check, laws=lambda whole: laws_of_matrix(whole, symmetries, own))


def laws_of_matrix(whole: Reduce, symmetries: Symmetries, unused: Collection[Var]) -> tuple[Symmetry, ...]:
    """The symmetries of the matrix that a function of matrices is of, and of an inverse with it.

    >>> from combdiff.terms.terms import ONE, App, fresh, reduction
    >>> from combdiff.terms.types import REAL, Domain, Index, Map
    >>> n = Index(Domain("n"))
    >>> S, i, j = fresh("S", Map((n, n), REAL, (SYMMETRIC,))), fresh("i", n), fresh("j", n)
    >>> whole = reduction("inv", (i, j), ONE, App(S, (i, j)))
    >>> laws_of_matrix(whole, {}, ()) == (SYMMETRIC,)
    True
    """
    return _laws_of_matrix(whole, tuple(symmetries.items()), frozenset(unused))


@lru_cache(maxsize=1024)
def _laws_of_matrix(
    whole: Reduce, symmetries: tuple[tuple[Var, tuple[Symmetry, ...]], ...], unused: frozenset[Var]
) -> tuple[Symmetry, ...]:
    i, j = whole.indices
    turned = substitute(whole.body, {i: j, j: i})
    images = {SYMMETRIC: turned, HERMITIAN: conj(turned)}
    own = normal_form(whole.body, dict(symmetries), unused)
    found = [law for law, image in images.items() if normal_form(image, dict(symmetries), unused) == own]
    # a real matrix that is symmetric is said to be so once
    return tuple(found if is_complex(whole.body.type) else found[:1])


def _opaque(term: Term) -> NormalForm:
    c, bare = split_coefficient(term)
    return NormalForm((c.real, c.imag), bare, 1 if term != ZERO else 0)


def too_deep(term: Term) -> bool:
    """Whether recursion over the term could overflow; such a term is its own canonical form."""
    level: list[Term] = [term]
    for _ in range(_DEEPEST):
        level = list(dict.fromkeys(c for t in level for c in children(t)))
        if not level:
            return False
    return True


# --- like terms -----------------------------------------------------------------------------------------------------


def merge_like_terms(
    term: Term,
    symmetries: Symmetries = _NONE,
    unused: Collection[Var] = (),
    budget: Budget | None = None,
    seen: Witness | None = None,
) -> Term:
    """`term` with equal addends merged in every sum of terms, and zeros dropped.

    >>> from combdiff.terms.terms import App, fresh
    >>> from combdiff.terms.types import COMPLEX, SYMMETRIC, Index, Map, Domain
    >>> n = Index(Domain("n"))
    >>> S, i, j = fresh("S", Map((n, n), COMPLEX, (SYMMETRIC,))), fresh("i", n), fresh("j", n)
    >>> merge_like_terms(add(App(S, (i, j)), App(S, (j, i)))) == mul(number(2), App(S, (i, j)))
    True

    A merged term is spelled as the most readable of its originals: least conj, least index arithmetic, first. `seen` is
    told of every sum in which terms were merged or dropped.
    """
    if too_deep(term):
        return term
    memo: dict[Term, Term] = {}

    def form(t: Term) -> NormalForm:
        return normal_form(t, symmetries, unused, budget)

    def inner(t: Term) -> Term:
        known = memo.get(t)
        if known is None:
            known = memo[t] = _merged_below(t, inner, form, seen)
        return known

    if isinstance(term, Lam | Let):
        return inner(term)
    merged = inner(term)
    if isinstance(merged, Add | Const | Var) or form(merged).sign:
        return merged
    if seen is not None:
        seen(merged, ())
    return ZERO


def _merged_below(
    t: Term, inner: Callable[[Term], Term], form: Callable[[Term], NormalForm], seen: Witness | None
) -> Term:
    if isinstance(t.type, Index):
        return t
    below = children(t)
    parts = [inner(c) for c in below]
    if any(a is not b for a, b in zip(parts, below, strict=True)):
        t = rebuild(t, parts)
    match t:
        case Mul((Const() as c, Add(terms))) if c == MINUS_ONE:
            # what stands around it may be a sum with like terms
            return add(*map(neg, terms))
        case Add():
            oriented = with_one_sign(t, lambda u: _signed(form(u)))
            return _gathered(oriented, form, seen) if isinstance(oriented, Add) else oriented
        case Mul() if (met := with_signs_met(t)) is not None:
            return mul(*met[0], met[1])
        case Sum() if holds(t.body, Add):
            return _merged_once_contracted(t, form, seen)
        case Mul() | Sum():
            return without_nested_fractions(t) if holds(t, Pow, Add) else t
        case Call("real" | "imag" as part, (Mul(factors),)) if any(isinstance(_unguarded(f), Add) for f in factors):
            return _of_what_counts(part, factors, form)
        case _:
            return t


def _merged_once_contracted(t: Sum, form: Callable[[Term], NormalForm], seen: Witness | None) -> Term:
    """A contraction with fewer terms in a sum that is a factor of it."""
    merged, groups = alike_once_contracted(t, lambda u: _signed(form(u)))
    if groups and seen is not None:
        seen(add(*(u for group in groups for u in group)), groups)
    return without_nested_fractions(merged) if holds(merged, Pow, Add) else merged


def _of_what_counts(part: str, factors: Sequence[Term], form: Callable[[Term], NormalForm]) -> Term:
    """imag(z' (a - z)) is imag(z' a), for z' z is real; so it is where a - z is under a condition."""
    left = list(factors)
    for n, f in enumerate(factors):
        if isinstance(whole := _unguarded(f), Add):
            rest = [*left[:n], *left[n + 1 :]]
            counting = add(*(u for u in whole.terms if form(call(part, mul(*rest, u))).sign))
            left[n] = indicator(f.left, f.right, counting) if isinstance(f, Indicator) else counting
    return call(part, mul(*left))


def _unguarded(t: Term) -> Term:
    """What stands under a condition, and `t` if there is none."""
    return t.body if isinstance(t, Indicator) else t


def _gathered(t: Add, form: Callable[[Term], NormalForm], seen: Witness | None) -> Term:
    """A sum with its equal addends merged."""
    groups: dict[Hashable, list[tuple[Coefficient, Term]]] = {}
    for u in t.terms:
        found = form(u)
        if found.sign:
            key, coefficient = _signed(found)
            groups.setdefault(key, []).append((coefficient, u))
    if len(groups) < len(t.terms) and seen is not None:
        seen(t, [[u for _, u in group] for group in groups.values()])
    terms = {key: _merged(group) for key, group in groups.items()}
    shorter = _opened(terms.values(), form) or cancelled(terms, lambda u: _signed(form(u)))
    if shorter is not None:
        return _gathered(shorter, form, None) if isinstance(shorter, Add) else shorter
    if (whole := _with_what_is_left_out(terms, form)) is not None:
        return _gathered(whole, form, None) if isinstance(whole, Add) else whole
    paired = _both_sides(_both_orders(terms, form), form)
    return add(*paired.values()) if len(paired) < len(t.terms) else t


def _both_orders(terms: Mapping[Hashable, Term], form: Callable[[Term], NormalForm]) -> dict[Hashable, Term]:
    """Terms by their forms: two that are alike, one where i < j and one where j < i, are one where i != j."""
    left = dict(terms)
    for key, term in terms.items():
        for order in orders_of(term) if key in left else ():
            other, coefficient = _signed(form(order.mirrored))
            if other != key and other in left and _signed(form(left[other])) == (other, coefficient):
                del left[other]
                left[key] = order.both
                break
    return left


MOST_OPENED = 24
"""Addends that sums with factors in front are multiplied out to, to see whether any of them cancel."""


def _opened(terms: Collection[Term], form: Callable[[Term], NormalForm]) -> Term | None:
    """The terms, sums in them multiplied out, if that is shorter: (1 + t) / 2 - (1 - t) / 2 is t.

    If more than numbers stand in front of the sums, and these are not made of signs, there must not be more terms than
    before: a product of small differences, (a - b) (a + b), is not to become a difference of large terms.
    """
    parts = [multiplied_out(u, MOST_OPENED) for u in terms]
    count = sum(map(len, parts))
    if count == len(terms) or not 1 < count <= MOST_OPENED:
        return None
    groups: dict[Hashable, list[tuple[Coefficient, Term]]] = {}
    for u in (v for part in parts for v in part):
        found = form(u)
        if found.sign:
            key, coefficient = _signed(found)
            groups.setdefault(key, []).append((coefficient, u))
    merged = {key: u for key, group in groups.items() if (u := _merged(group)) != ZERO}
    left = _both_sides(merged, form).values()
    opened = [u for u, own in zip(terms, parts, strict=True) if len(own) > 1]
    if len(left) < count and all(isinstance(split_coefficient(u)[1], Add) for u in opened):
        return add(*left)
    most = count if all(map(has_signs_alone, opened)) else len(terms)
    shorter = len(left) <= most and sum(map(factors_written, left)) < sum(map(factors_written, terms))
    return add(*left) if shorter else None


def _both_sides(terms: dict[Hashable, Term], form: Callable[[Term], NormalForm]) -> dict[Hashable, Term]:
    """Terms by their forms: two that are alike, one where a condition holds and one where it does not, are one.

    So are two with the shares of one whole, σ(t) and σ(-t).
    """
    guarded = [key for key, term in terms.items() if has_sides(term)]
    left = dict(terms)
    for key in guarded if len(guarded) > 1 else ():
        for side in sides_of(left[key]) if key in left else ():
            other, coefficient = _signed(form(side.other))
            if other != key and other in left and _signed(form(left[other])) == (other, coefficient):
                del left[other]
                left[key] = side.both
                break
    return left


def _with_what_is_left_out(terms: Mapping[Hashable, Term], form: Callable[[Term], NormalForm]) -> Term | None:
    """A sum over i != f and c times its summand at i = f as a sum over all i; None if there are no such two.

    What was left out stands in the sum anyway, so that nothing is infinite now, or large, that was not before.
    """
    guarded = [key for key, term in terms.items() if len(terms) > 1 and holds(term, Indicator)]
    for key in guarded:
        for side in left_out_of(terms[key]):
            other, (a, b) = _signed(form(side.other))
            if other == key or other not in terms:
                continue
            c, d = _signed(form(terms[other]))[1]
            if 4 * (c * c + d * d) >= a * a + b * b:
                return add(*(t for k, t in terms.items() if k != key), side.both, neg(side.other))
    return None


def _merged(group: list[tuple[Coefficient, Term]]) -> Term:
    """One term for a group of multiples of one form."""
    if len(group) == 1:
        return group[0][1]
    a = sum((c[0] for c, _ in group), Fraction(0))
    b = sum((c[1] for c, _ in group), Fraction(0))
    (x, y), spelling = min(group, key=lambda entry: _effort(entry[1]))
    norm = x * x + y * y
    ratio = number(((a * x + b * y) / norm, (b * x - a * y) / norm))
    return mul(ratio, spelling)


def _effort(term: Term) -> tuple[int, int]:
    """How hard a term is to read: conj counted first, then index arithmetic."""
    conjugates = arithmetic = 0
    todo = [term]
    while todo:
        t = todo.pop()
        conjugates += isinstance(t, Conj)
        if isinstance(t, App):
            arithmetic += sum(not isinstance(a, Var) for a in t.args if isinstance(a.type, Index))
        todo += children(t)
    return conjugates, arithmetic


# --- derived symmetries ---------------------------------------------------------------------------------------------


def is_real(
    term: Term, symmetries: Symmetries = _NONE, unused: Collection[Var] = (), budget: Budget | None = None
) -> bool:
    """Whether a scalar term is provably real.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import COMPLEX
    >>> z = fresh("z", COMPLEX)
    >>> is_real(mul(conj(z), z)), is_real(z)
    (True, False)
    """
    if not is_complex(term.type):
        return True
    one = normal_form(term, symmetries, unused, budget)
    other = normal_form(conj(term), symmetries, unused, budget)
    if not one.sign:
        return True
    return _signed(one) == _signed(other)


def _signed(form: NormalForm) -> tuple[Hashable, Coefficient]:
    a, b = form.coefficient
    return form.key, (a * form.sign, b * form.sign)
