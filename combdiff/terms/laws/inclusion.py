"""The inclusion ι: R → C of real values among complex ones, and its effect on cotangents.

It is written, as `complex(x)`, only where something depends on it (`branches.py`).

In the real inner product Re⟨k, v⟩ its pullback is k ↦ Re k (paper, Eq. 44). A tensor, a map or a tuple of real numbers
is included entry by entry, value by value, item by item.
"""

from __future__ import annotations

from collections.abc import Sequence

from combdiff.terms.terms import App, Call, Const, Diff, Lam, Term, Traverser, Tuple, apply, call, fresh, proj
from combdiff.terms.types import COMPLEX, Index, Map, Number, Product, Type, is_complex


def included(k: Term, value: Type) -> Term:
    """The cotangent `k` of a value of this type: its real part where the value is real and `k` is not.

    >>> from combdiff.terms.types import COMPLEX, REAL
    >>> k = fresh("k", COMPLEX)
    >>> included(k, REAL) == call("real", k), included(k, COMPLEX) == k
    (True, True)
    """
    if not needs_inclusion(value, k.type):
        return k
    match value, k.type:
        case Map(_, result), Map(params, _):
            slots = tuple(fresh(f"d{n + 1}", p) for n, p in enumerate(params))
            return Lam(slots, included(apply(k, *slots), result))
        case Product(items), _:
            return Tuple(tuple(included(proj(n, k), item) for n, item in enumerate(items)))
        case _:
            return call("real", k)


def needs_inclusion(inner: Type, outer: Type) -> bool:
    """Whether a real number `inner`, or a real entry of it, stands where a complex one of `outer` is made of it."""
    match inner, outer:
        case ((Number() | Index()), Number()):
            return is_complex(outer) and not is_complex(inner)
        case Map(_, ours), Map(_, theirs):
            return needs_inclusion(ours, theirs)
        case Product(ours), Product(theirs):
            return any(map(needs_inclusion, ours, theirs))
        case _:
            return False


def written_where_needed(t: Term) -> Term:
    """`t` without ι, but under functions with a branch cut; a function that is real then has real cotangents.

    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> written_where_needed(call("exp", call("complex", x))) == call("exp", x)
    True
    >>> written_where_needed(call("log", call("complex", x))) == call("log", call("complex", x))
    True
    """

    def bare(u: Term) -> Term:
        match u:
            case Call("complex", (v,)):
                return v
            case App(Diff("pullback", of) as f, (*at, k)) if isinstance(of.type, Map):
                return App(f, (*at, included(k, of.type.result)))
            case _:
                return u

    return Traverser(bare, Call, Diff)(t)


def widened(t: Term, kind: Type) -> Term:
    """`t` as a value of type `kind`, which may be complex where `t` is real."""
    match kind, t.type:
        case Map(_, result), Map(params, ours) if needs_inclusion(ours, result):
            slots = tuple(fresh(f"d{n + 1}", p) for n, p in enumerate(params))
            return Lam(slots, widened(apply(t, *slots), result))
        case Number(), _ if is_complex(kind):
            return call("complex", t)
        case _:
            return t


def as_complex_as(operands: Sequence[Term], result: Term) -> Term:
    """What arithmetic makes of its operands: complex if one of them is, though it may be a real number, as (im x)² is.

    Numbers are exact: im^2 is the real number −1, and z − z − 1 is a complex one.
    """
    if not any(is_complex(u.type) and not isinstance(u, Const) for u in operands):
        return result
    return call("complex", result)


def over_complex(kind: Type) -> Type:
    """The type of what a value of this type, which may be that of an index, may be included in.

    >>> from combdiff.terms.types import REAL
    >>> over_complex(REAL).complex
    True
    """
    match kind:
        case Number() | Index():
            return COMPLEX
        case Map(params, result):
            return Map(params, over_complex(result))
        case Product(items):
            return Product(tuple(map(over_complex, items)))
        case _:
            return kind
