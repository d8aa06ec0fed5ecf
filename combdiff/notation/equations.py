"""Values that solve an equation, as a paper writes them: y solves Σ_j A_ij y_j = b_i, rather than (v ↦ …)⁻¹(b)."""

from __future__ import annotations

from collections.abc import Collection

from combdiff.language.printing.letters import letter
from combdiff.notation.page import entrywise, names_in
from combdiff.terms.terms import (
    ONE,
    ZERO,
    App,
    Const,
    Diff,
    Lam,
    Let,
    Term,
    Traverser,
    Var,
    apply,
    body_of,
    children,
    let,
    mul,
    rebuild,
    split_coefficient,
    substitute,
)
from combdiff.terms.types import Map, Number


def equation(var: Var, value: Term) -> tuple[Term, Term] | None:
    """The two sides of the equation that `var` solves if its value is a root or of an inverse map.

    >>> from combdiff.terms.terms import call, fresh
    >>> from combdiff.terms.types import REAL
    >>> x, y = fresh("x", REAL), fresh("y", REAL)
    >>> left, right = equation(y, Diff("root", Lam((x,), call("exp", x))))
    >>> left == call("exp", y), right == ZERO
    (True, True)
    """
    match value:
        case Diff("root", Lam((x,), body)):
            left = substitute(body, {x: var})
            return left, Lam(left.params, ZERO) if isinstance(left, Lam) else ZERO
        case App(Diff("inverse", Lam((v,), body)), (given,)):
            left = entrywise(substitute(body, {v: var}))
            right = apply(given, *left.params) if isinstance(left, Lam) else given
            return left, Lam(left.params, right) if isinstance(left, Lam) else right
        case _ if (multiple := _multiple(value)) is not None:
            number, solution = multiple
            sides = equation(var, solution)
            assert sides is not None, "a solution has an equation"
            left, right = sides
            whole = mul(number, body_of(right))
            return left, Lam(right.params, whole) if isinstance(right, Lam) else whole
        case _:
            return None


def _multiple(value: Term) -> tuple[Const, Term] | None:
    """c and H⁻¹(k) of c H⁻¹(k), which solves H(y) = c k for a real c, as H is linear over the real numbers."""
    params, body = (value.params, value.body) if isinstance(value, Lam) else ((), value)
    number, core = split_coefficient(body)
    solution = _applied_away(Lam(params, core)) if params else core
    match solution:
        case App(Diff("inverse", Lam((_,), _)), (_,)) if not number.imag and number != ONE:
            return number, solution
        case _:
            return None


def with_equations(term: Term, taken: Collection[str] = ()) -> Term:
    """A result in which every solution of an equation is a value with a name.

    Only those that depend on no index are named; `taken` are names that are in use.
    """
    return _named(term, {*taken, *names_in(term)}, frozenset(term.free))


def _named(term: Term, used: set[str], known: frozenset[Var]) -> Term:
    if isinstance(term, Lam) and not _is_tensor(term):
        return Lam(term.params, _named(term.body, used, known | set(term.params)))
    bindings: list[tuple[Var, Term]] = []
    found: dict[Term, Var] = {}

    def visit(t: Term) -> Term:
        if not _is_solution(t) or not t.free <= known:
            return t
        if t not in found:
            found[t] = letter(t.type, used)
            used.add(found[t].name)
            bindings.append((found[t], t))
        return found[t]

    walk = Traverser(visit)
    for var, value in term.bindings if isinstance(term, Let) else ():
        plain = _applied_away(value)
        if (multiple := _multiple(value)) is not None:
            number, solution = multiple
            inside = rebuild(solution, [walk(c) for c in children(solution)])
            new = _times(number, inside)
        else:
            new = rebuild(plain, [walk(c) for c in children(plain)]) if _is_solution(plain) else walk(value)
        bindings.append((var, new))
        known |= {var}
    body = walk(term.body if isinstance(term, Let) else term)
    return let(bindings, body) if bindings else body


def _times(number: Const, solution: Term) -> Term:
    entries = entrywise(solution)
    return Lam(entries.params, mul(number, entries.body)) if isinstance(entries, Lam) else mul(number, solution)


def _is_tensor(term: Term) -> bool:
    return isinstance(term.type, Map) and term.type.is_tensor and not isinstance(getattr(term, "body", None), Let)


def _applied_away(value: Term) -> Term:
    """f for i ↦ f(i)."""
    match value:
        case Lam(params, App(function, args)) if params == args and function.free.isdisjoint(params):
            return function
        case _:
            return value


def _is_solution(t: Term) -> bool:
    kind = t.type
    if not (isinstance(kind, Number) or (isinstance(kind, Map) and kind.is_tensor)):
        return False
    match t:
        case Diff("root", Lam((_,), _)) | App(Diff("inverse", Lam((_,), _)), (_,)):
            return True
        case _:
            return False
