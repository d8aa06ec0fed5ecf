"""Exponentials are read from definitions, and products see through them.

With m = exp(u), exp(u) / m² is 1 / m: the derivative of exp(u) is exp(u) again, and terms are alike only if both are
called m. With r = x^(8/3), a x^(5/3) / r² is a x^(-11/3); with r = |u|, r sign(u) is u.

The quotient rule squares r, which overflows where the derivative does not, and next to sign(u) the value at u = 0 of a
second derivative is lost. Whatever else is made of r keeps its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from combdiff.simplify.contraction.ranges import in_range
from combdiff.terms.conditions.guards import Condition, condition_of, exists_at
from combdiff.terms.conditions.ordering import form_of, implies, range_of
from combdiff.terms.laws.powers import power_of
from combdiff.terms.terms import (
    ONE,
    ZERO,
    Add,
    App,
    Call,
    Const,
    Indicator,
    Lam,
    Mul,
    Pow,
    Term,
    Traverser,
    Var,
    add,
    alpha_equal,
    apply,
    body_of,
    bound_by,
    children,
    factors_of,
    indicator,
    mul,
    power,
    substitute,
    subterms,
)

Definitions = Mapping[Var, Term]


def may_be_read(value: Term) -> bool:
    """Whether a value may occur again in a derivative as it is: an exponential.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> may_be_read(Call("exp", (x,))), may_be_read(mul(x, x))
    (True, False)
    """
    entry = body_of(value)
    return isinstance(entry, Call) and entry.primitive == "exp"


def read_again(t: Term, definitions: Definitions) -> Term:
    """`t` with each value of `definitions` that is written out in it read from its name.

    >>> from combdiff.terms.terms import MINUS_ONE, fresh
    >>> from combdiff.terms.types import REAL
    >>> x, m = fresh("x", REAL), fresh("m", REAL)
    >>> e = Call("exp", (x,))
    >>> read_again(mul(e, power(m, MINUS_ONE)), {m: e}) == ONE
    True
    """
    if not definitions:
        return t

    def visit(u: Term) -> Term:
        if isinstance(u, Indicator):
            guard = condition_of(u)
            body = Traverser(lambda v: _read(v, definitions, guard) if isinstance(v, Call) else v, Call)(u.body)
            return u if body is u.body else indicator(u.left, u.right, body)
        return _read(u, definitions) if isinstance(u, Call) else u

    return Traverser(visit, Call, Indicator)(t)


def _read(t: Call, definitions: Definitions, guard: Condition | None = None) -> Term:
    for var, value in definitions.items():
        slots: dict[Var, Term] = {}
        params, entry = (value.params, value.body) if isinstance(value, Lam) else ((), value)
        matched = _matched(entry, t, params, slots) and len(slots) == len(params)
        if matched and _exists(entry, slots, guard) and alpha_equal(substitute(entry, slots), t):
            return apply(var, *(slots[p] for p in params)) if params else var
    return t


def _exists(entry: Term, slots: Mapping[Var, Term], guard: Condition | None) -> bool:
    """Whether a definition has an entry at these indices, perhaps because a guard says so."""
    if exists_at(entry, slots):
        return True
    affine = all(range_of(v) is not None and form_of(Condition(ZERO, at)) is not None for v, at in slots.items())
    return guard is not None and affine and all(implies(guard, c) for v, at in slots.items() for c in in_range(v, at))


def _matched(pattern: Term, t: Term, params: Sequence[Var], slots: dict[Var, Term]) -> bool:
    """Whether `t` may be `pattern` at some values of `params`, which are noted in `slots`."""
    if isinstance(pattern, Var) and pattern in params:
        return slots.setdefault(pattern, t) == t
    if pattern.free.isdisjoint(params):
        return True
    own, others = children(pattern), children(t)
    if type(pattern) is not type(t) or len(own) != len(others) or bound_by(pattern):
        return False
    return all(_matched(a, b, params, slots) for a, b in zip(own, others, strict=True))


def may_be_seen_through(value: Term) -> bool:
    """Whether a product may have to see through a value: |u|, or a product with a power that is no integer.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> may_be_seen_through(Call("abs", (x,))), may_be_seen_through(mul(x, x))
    (True, False)
    """
    entry = body_of(value)
    return any(_made_of(f) is not None for f in factors_of(entry))


def seen_through(t: Term, definitions: Definitions) -> Term:
    """`t` where values of `definitions` that stand beside what they are made of are written out.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> x, r = fresh("x", REAL), fresh("r", REAL)
    >>> seen_through(mul(Call("sign", (x,)), r), {r: Call("abs", (x,))}) is x
    True
    """
    if t.free.isdisjoint(definitions) and not any(u.primitive == "sign" for u in subterms(t, Call)):
        return t
    return Traverser(lambda u: _product(u, definitions) if isinstance(u, Mul) else u, Mul)(t)


def _product(t: Mul, definitions: Definitions) -> Term:
    for n, f in enumerate(t.factors):
        others = [*t.factors[:n], *t.factors[n + 1 :]]
        found = _sum_beside(f, others, definitions) if isinstance(f, Add) else _value_beside(f, others, definitions)
        if found is not None:
            return _product(found, definitions) if isinstance(found, Mul) else found
    return t


def _sum_beside(f: Add, others: Sequence[Term], definitions: Definitions) -> Term | None:
    """(2 |u| + 1) sign(u) as 2 u + sign(u); (1 / r² + 3) x^(5/3) as x^(-11/3) + 3 x^(5/3), with r = x^(8/3)."""
    for n, g in enumerate(others):
        if any(_meets(h, g, definitions) for u in f.terms for h in factors_of(u)):
            products = [mul(u, g) for u in f.terms]
            seen = [_product(u, definitions) if isinstance(u, Mul) else u for u in products]
            return mul(*others[:n], *others[n + 1 :], add(*seen))
    return None


def _meets(h: Term, g: Term, definitions: Definitions) -> bool:
    """Whether |u| or a value meets the sign of u, or what the value is made of."""
    base, *_ = power_of(h)
    if isinstance(base, Call) and base.primitive == "abs":
        return bool(_partners(base, [g])) and alpha_equal(_partners(base, [g])[0], base.args[0])
    return _value_beside(h, [g], definitions) is not None


def _value_beside(f: Term, others: Sequence[Term], definitions: Definitions) -> Term | None:
    base, times = (f.base, f.exponent) if isinstance(f, Pow) else (f, ONE)
    value = _written_out(base, definitions)
    if value is None or not (isinstance(times, Const) and times.is_integer):
        return None
    entry = _beside(value, others, repeated=abs(times.real) > 1)
    return None if entry is None else mul(*others, *(power(g, times) for g in entry))


def _written_out(base: Term, definitions: Definitions) -> Term | None:
    match base:
        case Var() if base in definitions:
            return definitions[base]
        case App(Var() as v, args) if v in definitions:
            return apply(definitions[v], *args)
        case _:
            return None


def _beside(value: Term, others: Sequence[Term], repeated: bool) -> list[Term] | None:
    """The factors of a value, spelled as in `others`, if it has to be seen through beside these."""
    met = False
    factors = []
    for f in factors_of(value):
        root = _made_of(f)
        spelled = next((u for u in _partners(f, others) if root is not None and alpha_equal(u, root)), None)
        if spelled is not None:
            met = met or repeated or isinstance(f, Call)
            f = Call("abs", (spelled,)) if isinstance(f, Call) else power(spelled, power_of(f)[1])
        factors.append(f)
    return factors if met else None


def _made_of(f: Term) -> Term | None:
    """The u of |u|, or of a power of u that is no integer."""
    match f:
        case Call("abs", (u,)):
            return u
        case Pow(u, exponent) if not (isinstance(exponent, Const) and exponent.is_integer):
            return u
        case _:
            return None


def _partners(f: Term, others: Sequence[Term]) -> list[Term]:
    """What stands in `others` as `f` may be made of it: under a sign beside |u|, under a power beside a power."""
    bases = [power_of(g)[0] for g in others]
    if isinstance(f, Call):
        return [g.args[0] for g in bases if isinstance(g, Call) and g.primitive == "sign"]
    return bases
