"""Lets float to the top: a definition inside a sum or a tensor becomes a tensor of the indices that it depends on.

    sum(i, begin a = f(i); a * a end)   becomes   begin a = i -> f(i); sum(i, a(i) * a(i)) end

so that a body is a flat list of values followed by an expression without lets, which is what the reverse pass of
`modes` works on. A let under a map of anything but indices is multiplied out instead.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from combdiff.calculus.loops.recurrences import by_entries, widened_loop
from combdiff.terms.terms import (
    App,
    Conj,
    Diff,
    Lam,
    Let,
    Loop,
    Sum,
    Term,
    Traverser,
    Tuple,
    Var,
    alpha_equal,
    body_of,
    children,
    fresh,
    holds,
    lam,
    let,
    params_of,
    rebuild,
    refreshed,
    substitute,
)
from combdiff.terms.types import Index, Map, Number, Product, is_function

Binding = tuple[Var, Term]


def float_lets(body: Term) -> tuple[list[Binding], Term]:
    """The bindings of `body`, outermost first, and what is left of it. Equal values have one binding.

    >>> from combdiff.terms.types import REAL
    >>> x, a = fresh("x", REAL), fresh("a", REAL)
    >>> bindings, core = float_lets(Let(((a, x),), a))
    >>> len(bindings), core.name
    (1, 'a')
    """
    if not holds(body, Let):
        return [], body
    return _once(*_float(refreshed(body)))


def _once(bindings: Sequence[Binding], core: Term) -> tuple[list[Binding], Term]:
    """One binding for all values that are equal, as those of a function that is applied to one argument twice are."""
    first: dict[Hashable, list[Binding]] = {}
    same: dict[Var, Term] = {}
    kept: list[Binding] = []
    for var, value in bindings:
        value = substitute(value, same)
        alike = first.setdefault((var.kind, value.free), [])
        known = next((v for v, e in alike if alpha_equal(e, value)), None)
        if known is None or is_function(var.kind):
            alike.append((var, value))
            kept.append((var, value))
        else:
            same[var] = known
    return kept, substitute(core, same)


def _float(t: Term) -> tuple[list[Binding], Term]:
    match t:
        case Let(bindings, body):
            found: list[Binding] = []
            apart: dict[Var, Term] = {}
            for var, value in bindings:
                value = substitute(value, apart)
                inner, core = _float(value) if not (isinstance(value, Lam) and is_function(value.type)) else ([], value)
                own, known = _taken_apart(var, core)
                found += [*inner, *own]
                if known is not var:
                    apart[var] = known
            inner, core = _float(substitute(body, apart))
            return found + inner, core
        case Sum(indices, body):
            found, core = _float(body)
            return over(indices, found, Sum(indices, core))
        case Lam(params, body) if not is_function(t.type):
            found, core = _float(body)
            # i ↦ s(i) is not s where s itself is made for each i
            found, core = over(params, found, Lam(params, core))
            return found, lam(core.params, core.body) if isinstance(core, Lam) else core
        case Lam() | Diff():
            return [], unfold(t)
        case Loop():
            return _float_loop(t)
        case _:
            found, parts = [], []
            for child in children(t):
                inner, core = _float(child)
                found += inner
                parts.append(core)
            return found, rebuild(t, parts)


def _taken_apart(var: Var, value: Term) -> tuple[list[Binding], Term]:
    """The definitions of a value, and what stands for it: of a tuple those of its items."""
    if not isinstance(value.type, Product):
        return [(var, value)], var
    if not isinstance(value, Tuple):
        return [], value
    parts = [_taken_apart(fresh(f"{var.name}{n}", e.type), e) for n, e in enumerate(value.items, start=1)]
    return [binding for own, _ in parts for binding in own], Tuple(tuple(e for _, e in parts))


def _float_loop(t: Loop) -> tuple[list[Binding], Term]:
    """The definitions of a step stay at its top."""
    assert isinstance(t.step, Lam), "a step is a map"
    inner, core = _float(t.step.body)
    found, start = _float(t.start)
    return found, Loop(t.kind, t.item, t.backward, Lam(t.step.params, let(inner, core)), start)


def over(indices: Sequence[Var], bindings: list[Binding], core: Term) -> tuple[list[Binding], Term]:
    """Bindings that depend on `indices` become maps of them; `core` binds the indices itself."""
    if not all(isinstance(i.kind, Index) for i in indices):
        return [], _substituted(bindings, core)
    lifted: list[Binding] = []
    for position, (var, value) in enumerate(bindings):
        needed = tuple(i for i in indices if i in value.free)
        if not needed:
            lifted.append((var, value))
            continue
        wider, replacement = _widened(var, value, needed)
        lifted.append(wider)
        later = bindings[position + 1 :]
        bindings[position + 1 :] = [(v, substitute(e, {var: replacement})) for v, e in later]
        core = _replaced(core, var, replacement)
    return lifted, core


def _widened(var: Var, value: Term, needed: tuple[Var, ...]) -> tuple[Binding, Term]:
    """The binding as a map of `needed` as well, and what now stands for the old variable.

    A tensor that is not written entry by entry, as H⁻¹(k), gets slots: a value has all of its indices in one map.
    """
    if isinstance(value, Loop):
        return widened_loop(var, value, needed)
    value = by_entries(value)
    own = params_of(value)
    body = body_of(value)
    renamed = {i: fresh(i.name, i.kind) for i in (*needed, *own)}
    wide = Lam(tuple(renamed.values()), substitute(body, renamed))
    new = fresh(var.name, wide.type)
    outer = tuple(fresh(i.name, i.kind) for i in own)
    call = App(new, (*needed, *outer))
    return (new, wide), Lam(outer, call) if own else call


def _replaced(core: Term, var: Var, value: Term) -> Term:
    """`core` with `var` replaced under the very binders that `value` refers to, so without renaming them."""
    match core:
        case Sum(indices, body):
            return Sum(indices, substitute(body, {var: value}))
        case Lam(params, body):
            return Lam(params, substitute(body, {var: value}))
        case _:
            return substitute(core, {var: value})


def _substituted(bindings: list[Binding], core: Term) -> Term:
    for var, value in reversed(bindings):
        core = _replaced(core, var, value)
    return core


def unfold(t: Term) -> Term:
    """`t` with every let multiplied out."""

    def visit(u: Term) -> Term:
        if not isinstance(u, Let):
            return u
        body = u.body
        for var, value in reversed(u.bindings):
            body = substitute(body, {var: value})
        return body

    return Traverser(visit, Let)(t)


def without_aliases(t: Term) -> Term:
    """`t` without definitions that only say otherwise how a tensor is read: transposed or conjugated.

    >>> from combdiff.terms.types import COMPLEX, Domain, Map
    >>> n = Index(Domain("n"))
    >>> A, B, i, j = fresh("A", Map((n, n), COMPLEX)), fresh("B", Map((n, n), COMPLEX)), fresh("i", n), fresh("j", n)
    >>> adjoint = Lam((i, j), Conj(App(A, (j, i))))
    >>> without_aliases(Let(((B, adjoint),), App(B, (i, j)))) == Conj(App(A, (j, i)))
    True

    Like terms would not be seen to be alike, and symmetries of A would be none of B.
    """

    def visit(u: Term) -> Term:
        if not isinstance(u, Let) or not any(_is_alias(value) for _, value in u.bindings):
            return u
        known: dict[Var, Term] = {}
        kept: list[Binding] = []
        for var, value in u.bindings:
            value = substitute(value, known)
            if _is_alias(value):
                known[var] = value
            else:
                kept.append((var, value))
        return let(kept, substitute(u.body, known))

    return Traverser(visit, Let)(t)


def _is_alias(value: Term) -> bool:
    """Whether it is a tensor with its slots in some order, or a number, conjugated perhaps."""
    params, entry = (value.params, value.body) if isinstance(value, Lam) else ((), value)
    entry = entry.term if isinstance(entry, Conj) else entry
    match entry:
        case Var(_, Number()):
            return not params
        case App(Var(_, Map() as kind), args) if kind.is_tensor and len(args) == len(params) == len({*params, *args}):
            return [a.type for a in args] == [*kind.params]
        case Var(_, Map() as kind):
            return kind.is_tensor and not params
        case _:
            return False
