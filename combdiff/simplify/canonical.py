"""Canonical names under symmetry: equal keys for terms that differ by names, order, symmetries (design, section 6 b).

`canonical` is the entry; `merge_like_terms`, `derived_symmetries` and `is_real` are what it is good for. Free variables
are held fixed: B(i, j) with open i, j is not zero because B is antisymmetric, Σ B(i, j) is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

from combdiff.language.terms import (
    ZERO,
    Add,
    App,
    Conj,
    Const,
    Lam,
    Let,
    Term,
    Var,
    add,
    children,
    conj,
    mul,
    number,
    rebuild,
    split_coefficient,
    substitute,
)
from combdiff.language.types import Domain, Index, Symmetry, Type, is_complex
from combdiff.simplify.budget import Budget, OutOfTime
from combdiff.simplify.labelling import Labelling, Vanishes
from combdiff.simplify.reading import Reader, Unreadable
from combdiff.simplify.shifts import rigid, settled
from combdiff.simplify.skeleton import NOTHING, UNIT, Coefficient, Node, totals
from combdiff.simplify.slotgroup import Rows, SlotGroup

Symmetries = Mapping[Var, tuple[Symmetry, ...]]
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

    >>> from combdiff.language.terms import App, Sum, fresh
    >>> from combdiff.language.types import COMPLEX, HERMITIAN, Index, Map, Domain
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
    reader = Reader(symmetries, frozenset(unused))
    if _too_deep(term) or budget.over():
        return _opaque(term)
    try:
        coefficient, node = reader.read(term)
    except Unreadable:
        return _opaque(term)
    if coefficient == NOTHING:
        return NormalForm(NOTHING, None, 0)
    try:
        key, sign = _named(node, reader.bound, budget)
    except Vanishes:
        return NormalForm(NOTHING, None, 0)
    except OutOfTime:
        return _opaque(term)
    return NormalForm(coefficient, key, sign)


def _opaque(term: Term) -> NormalForm:
    c, bare = split_coefficient(term)
    return NormalForm((c.real, c.imag), bare, 1 if term != ZERO else 0)


def _too_deep(term: Term) -> bool:
    """Whether recursion over the term could overflow; such a term is its own canonical form."""
    level: list[Term] = [term]
    for _ in range(_DEEPEST):
        level = list(dict.fromkeys(c for t in level for c in children(t)))
        if not level:
            return False
    return True


def _named(root: Node, bound: list[Type], budget: Budget) -> tuple[Hashable, int]:
    """The least key over all shifts and names.

    Raises:
        Vanishes: if the term is its own negative.
        OutOfTime: if the budget ends first.
    """
    domains = [kind.domain if isinstance(kind, Index) else None for kind in bound]
    spelled = [_spelled(kind) for kind in bound]
    # indices of parts that turned out to be zero are read, but stand nowhere
    order = sorted({spelled[n] for total_ in totals(root) for n in total_.indices})
    kinds = [order.index(s) if s in order else -1 for s in spelled]
    periodic = frozenset(n for n, d in enumerate(domains) if d is not None and d.periodic)
    movable = periodic - rigid(root, domains) if periodic else periodic
    reversible = [n in movable or (d is not None and d.symmetric) for n, d in enumerate(domains)]
    searches = [Labelling(tree, kinds, reversible, budget) for tree in settled(root, movable)]
    forms = [search.run() for search in _foremost(searches)]
    key, sign = min(forms)
    if any(k == key and s != sign for k, s in forms):
        raise Vanishes
    return (tuple(order), key), sign


def _foremost(searches: list[Labelling]) -> list[Labelling]:
    """The shifts of least trace: one of them is chosen whatever the names, and the others need no search."""
    if len(searches) == 1:
        return searches
    traces = [search.trace() for search in searches]
    least = min(traces)
    return [search for search, trace in zip(searches, traces, strict=True) if trace == least]


def _spelled(kind: Type) -> tuple[str, bool, bool, bool, bool]:
    d = kind.domain if isinstance(kind, Index) else None
    if d is None:
        return repr(kind), False, False, False, False
    return d.name, d.declared, d.periodic, d.symmetric, d.contractable


# --- like terms -----------------------------------------------------------------------------------------------------


def merge_like_terms(
    term: Term, symmetries: Symmetries = _NONE, unused: Collection[Var] = (), budget: Budget | None = None
) -> Term:
    """`term` with equal addends merged in every sum of terms, and zeros dropped.

    >>> from combdiff.language.terms import App, fresh
    >>> from combdiff.language.types import COMPLEX, SYMMETRIC, Index, Map, Domain
    >>> n = Index(Domain("n"))
    >>> S, i, j = fresh("S", Map((n, n), COMPLEX, (SYMMETRIC,))), fresh("i", n), fresh("j", n)
    >>> merge_like_terms(add(App(S, (i, j)), App(S, (j, i)))) == mul(number(2), App(S, (i, j)))
    True

    A merged term is spelled as the most readable of its originals: least conj, least index arithmetic, first.
    """
    if _too_deep(term):
        return term
    memo: dict[Term, Term] = {}

    def form(t: Term) -> NormalForm:
        return normal_form(t, symmetries, unused, budget)

    def inner(t: Term) -> Term:
        known = memo.get(t)
        if known is None:
            known = memo[t] = _merged_below(t, inner, form)
        return known

    if isinstance(term, Lam | Let):
        return inner(term)
    merged = inner(term)
    if isinstance(merged, Add | Const | Var):
        return merged
    return merged if form(merged).sign else ZERO


def _merged_below(t: Term, inner: Callable[[Term], Term], form: Callable[[Term], NormalForm]) -> Term:
    if isinstance(t.type, Index):
        return t
    below = children(t)
    parts = [inner(c) for c in below]
    if any(a is not b for a, b in zip(parts, below, strict=True)):
        t = rebuild(t, parts)
    if not isinstance(t, Add):
        return t
    groups: dict[Hashable, list[tuple[Coefficient, Term]]] = {}
    for u in t.terms:
        found = form(u)
        if found.sign:
            key, coefficient = _signed(found)
            groups.setdefault(key, []).append((coefficient, u))
    if len(groups) == len(t.terms):
        return t
    return add(*map(_merged, groups.values()))


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

    >>> from combdiff.language.terms import fresh
    >>> from combdiff.language.types import COMPLEX
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


def derived_symmetries(
    value: Lam, symmetries: Symmetries = _NONE, unused: Collection[Var] = (), budget: Budget | None = None
) -> tuple[Symmetry, ...]:
    """Generators of the symmetries that a tensor provably has: slots exchanged or reversed, conj, signs.

    >>> from combdiff.language.terms import App, fresh
    >>> from combdiff.language.types import COMPLEX, Index, Map, Domain
    >>> n = Index(Domain("n"))
    >>> x, i, j = fresh("x", Map((n,), COMPLEX)), fresh("i", n), fresh("j", n)
    >>> outer = Lam((i, j), mul(conj(App(x, (i,))), App(x, (j,))))
    >>> [str(s) for s in derived_symmetries(outer)]
    ['((2, 1), :conj)']
    """
    params, body = value.params, value.body
    rank = len(params)
    whole = normal_form(body, symmetries, unused, budget)
    if not whole.sign:
        return ()
    complex_ = is_complex(body.type)
    found: tuple[Symmetry, ...] = ()
    identity = Symmetry(tuple(((slot, 1),) for slot in range(rank)))
    domains = [p.kind.domain if isinstance(p.kind, Index) else None for p in params]
    turned: list[tuple[bool, Term]] = [(False, body), (True, conj(body))] if complex_ else [(False, body)]
    for rows in (identity.rows, *_arrangements(domains)):
        for flag, base in turned:
            if any(_known(rank, found, rows, flag, sign, complex_) for sign in (1, -1)):
                break
            images = {p: _slot_value(params, row) for p, row in zip(params, rows, strict=True)}
            form = normal_form(substitute(base, images), symmetries, unused, budget)
            sign = _relation(whole, form)
            if sign and not (rows == identity.rows and not flag):
                found += (Symmetry(rows, sign, flag),)
                complex_ = complex_ and not (rows == identity.rows and sign > 0)
                break
        if not complex_:
            turned = turned[:1]
    return found


def _relation(one: NormalForm, other: NormalForm) -> int:
    """±1 if the terms are equal up to this sign, else 0."""
    key, (a, b) = _signed(one)
    key2, (c, d) = _signed(other)
    if key != key2:
        return 0
    return 1 if (a, b) == (c, d) else -1 if (a, b) == (-c, -d) else 0


def _known(rank: int, found: tuple[Symmetry, ...], rows: Rows, flag: bool, sign: int, complex_: bool) -> bool:
    if not found:
        return False
    group = SlotGroup.generated(rank, found, real=not complex_)
    return group.equivalent(Symmetry(rows, sign, flag))


def _arrangements(domains: list[Domain | None]) -> Iterator[Rows]:
    """Exchanges of slots of one domain, reversals, and for few slots all permutations, the simple ones first."""
    rank = len(domains)
    slots = range(rank)
    for a in slots:
        for b in range(a + 1, rank):
            if domains[a] == domains[b]:
                order = [b if s == a else a if s == b else s for s in slots]
                yield tuple(((s, 1),) for s in order)
    for a in slots:
        d = domains[a]
        if d is not None and (d.symmetric or d.periodic):
            yield tuple(((s, -1 if s == a else 1),) for s in slots)
    if rank <= _FEW_SLOTS:
        for order_ in permutations(slots):
            if sum(s != t for s, t in enumerate(order_)) > 2 and all(
                domains[s] == domains[t] for s, t in enumerate(order_)
            ):
                yield tuple(((s, 1),) for s in order_)
        return
    for a in range(0, rank - 3):
        order = [*slots[:a], a + 2, a + 3, a, a + 1, *slots[a + 4 :]]
        if all(domains[s] == domains[t] for s, t in enumerate(order)):
            yield tuple(((s, 1),) for s in order)


def _slot_value(params: tuple[Var, ...], row: tuple[tuple[int, int], ...]) -> Term:
    return add(*(mul(number(c), params[s]) for s, c in row))
