"""Decides whether two conditions change at one place: for all values of their indices, for some, or for none.

x ≤ a(i) and x ≤ a(j) do so where i = j, x ≤ a and 2 x ≤ 2 a always, x ≤ a and x ≤ b never: the numbers that a program
is given are taken to be different where nothing says that they are equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Sequence

from combdiff.calculus.affine import Zero, affine, expanded, inverse, times
from combdiff.records import dataclass
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    ZERO,
    Add,
    App,
    Call,
    Const,
    Diff,
    Mul,
    Proj,
    Term,
    Var,
    add,
    bound_by,
    children,
    mul,
    neg,
    split_coefficient,
    subterms,
    terms_of,
)
from combdiff.terms.types import Index, Map

Equations = tuple[tuple[Term, Term], ...]
"""Pairs of index expressions that are to be equal."""


@dataclass(frozen=True, slots=True)
class Meeting:
    """Where the `equations` hold, one number is `ratio` times the other on the line where both are zero.

    They are None if these are not all the cases: a(i) + a(j) is a(p) + a(q) for i = p, j = q, and for i = q, j = p.
    """

    ratio: Term
    equations: Equations | None = ()


def meeting(w: Term, zero: Zero | None, other: Term) -> Meeting | None:
    """How `other` is zero where w is, which is at `zero` if that is known; None if it is not.

    >>> from combdiff.calculus.affine import zero_of
    >>> from combdiff.terms.terms import fresh, number, sub
    >>> from combdiff.terms.types import REAL
    >>> x, a = fresh("x", REAL), fresh("a", REAL)
    >>> w = sub(x, a)
    >>> meeting(w, zero_of(w, [x]), mul(number(-3), w)).ratio.real
    Fraction(-3, 1)
    """
    if zero is None:
        return _multiple(w, other)
    parts = affine(other, zero.variable) if zero.variable in other.free else None
    if parts is None or parts[0] == ZERO:
        return None
    slope, offset = parts
    ratio = mul(slope, inverse(zero.slope))
    _, own = _parts(w, zero)
    if expanded(add(mul(zero.slope, offset), neg(mul(slope, own)))) == ZERO:
        return Meeting(ratio)
    difference = expanded(add(times(neg(inverse(slope)), offset), times(MINUS_ONE, zero.at)))
    return Meeting(ratio) if difference == ZERO else _where_zero(difference, ratio)


def _parts(w: Term, zero: Zero) -> tuple[Term, Term]:
    found = affine(w, zero.variable)
    assert found is not None, "the place of a zero was found"
    return found


def tells_apart(equations: Equations, indices: Collection[Var]) -> bool:
    """Whether equations between index expressions hold for one value of each of `indices` at most.

    2 i = k is true of two indices of a periodic domain.
    """
    return all(any(_is_solved(t, i, indices) for sides in equations for t in sides) for i in indices)


def _is_solved(t: Term, i: Var, indices: Collection[Var]) -> bool:
    terms = [split_coefficient(u) for u in terms_of(t)]
    own = [(c, u) for c, u in terms if not u.free.isdisjoint(indices)]
    return own in ([(ONE, i)], [(MINUS_ONE, i)])


def _multiple(w: Term, other: Term) -> Meeting | None:
    """`other` as a number times w."""
    c, _ = split_coefficient(terms_of(w)[0])
    for u in terms_of(other):
        ratio = mul(split_coefficient(u)[0], inverse(c))
        if add(other, times(neg(ratio), w)) == ZERO:
            return Meeting(ratio)
    return None


def _where_zero(difference: Term, ratio: Term) -> Meeting | None:
    """For which indices the difference of two places is zero, whatever the numbers are."""
    terms = [split_coefficient(u) for u in terms_of(difference)]
    integers = any(isinstance(u.type, Index) for _, u in terms)
    if integers and all(isinstance(u.type, Index) or u == ONE for _, u in terms):
        return Meeting(ratio, _of_integers(terms))
    opposite = [
        (u, v)
        for n, (c, u) in enumerate(terms)
        for d, v in terms[n + 1 :]
        if add(c, d) == ZERO and _holds_indices(u) and _outline(u) == _outline(v)
    ]
    if not opposite and not integers:
        return None
    if len(terms) == 2 and opposite:
        return Meeting(ratio, _equations(*opposite[0]))
    return Meeting(ratio, None)


def _of_integers(terms: Sequence[tuple[Const, Term]]) -> Equations | None:
    if not all(c.is_integer for c, _ in terms):
        return None
    left = add(*(mul(c, u) for c, u in terms if c.real > 0))
    right = add(*(mul(neg(c), u) for c, u in terms if c.real < 0))
    return ((left, right),)


def _holds_indices(t: Term) -> bool:
    return any(isinstance(u.type, Index) or _slots(u) for u in subterms(t))


def _slots(t: Term) -> tuple[int, ...]:
    """Which children of an entry are indices, numbers such as the 0 of a(0) among them."""
    if not (isinstance(t, App) and isinstance(t.function.type, Map)):
        return ()
    return tuple(n for n, kind in enumerate(t.function.type.params, 1) if isinstance(kind, Index))


def _outline(t: Term) -> Hashable:
    """What is left of a term without its index expressions."""
    if isinstance(t.type, Index):
        return "index"
    slots = _slots(t)
    below = ["index" if n in slots else _outline(c) for n, c in enumerate(children(t))]
    if isinstance(t, Add | Mul):
        below.sort(key=repr)
    return type(t).__name__, _label(t), *below


def _label(t: Term) -> Hashable:
    match t:
        case Var():
            return t.uid
        case Const(real, imag):
            return real, imag
        case Call(name, _) | Diff(name, _):
            return name
        case Proj(item, _):
            return item
        case _:
            return None


def _equations(u: Term, v: Term) -> Equations | None:
    """Which indices are equal where u and v are, of one outline; None if equal indices are not the only reason."""
    heads = [t.function for t in subterms(u, App)]
    symmetric = any(isinstance(f.type, Map) and f.type.symmetries for f in heads)
    bound = any(bound_by(t) for t in subterms(u))
    if symmetric or bound or max(Counter(heads).values(), default=0) > 1:
        return None
    pairs = list(_pairs(u, v))
    return None if None in pairs else tuple(p for p in pairs if p is not None and p[0] != p[1])


def _pairs(u: Term, v: Term) -> Iterator[tuple[Term, Term] | None]:
    """The index expressions of u beside those of v; None where the two are not alike."""
    if isinstance(u.type, Index) and isinstance(v.type, Index):
        yield u, v
        return
    ours, theirs = children(u), children(v)
    if type(u) is not type(v) or _label(u) != _label(v) or len(ours) != len(theirs):
        yield None
        return
    slots = _slots(u)
    for n, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if n in slots:
            yield a, b
        else:
            yield from _pairs(a, b)
