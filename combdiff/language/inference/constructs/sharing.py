"""Definitions that use the one before twice: their values get a name, and are written once.

    f = x -> exp(-x) + tanh(x);  g = x -> exp(-f(x)) + tanh(f(x));  …;  p(z)

has 2ⁿ calls for n such definitions, of n numbers. A call is read once (`calls.py`), and a program that would be half as
long again with all of them written out has `f = exp(-z) + tanh(z); g = exp(-f) + tanh(f)` instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from combdiff.terms.terms import Lam, Let, Reduce, Sum, Term, Var, bound_by, children, fresh, let, rebuild, subterms
from combdiff.terms.types import Number


def with_shared_numbers(program: Term, called: Mapping[Term, str]) -> Term:
    """The program with names for the values of calls that stand in several places, if it is half as long again without.

    `called` are the names of functions by the values of their calls.

    >>> from combdiff.terms.terms import add, call, mul
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> t, names = x, {}
    >>> for n in range(40):
    ...     t = add(call("exp", mul(t, t)), call("tanh", t))
    ...     names[t] = f"f{n}"
    >>> shared = with_shared_numbers(Lam((x,), t), names)
    >>> len(shared.body.bindings), shared.body.bindings[0][0].name
    (39, 'f0')
    """
    parts = list(subterms(program))
    uses = Counter(u for t in parts for u in children(t))
    hosts = {v for t in parts if isinstance(t, Lam | Sum | Let) for v in bound_by(t)}
    # what a reduction is of has no place for definitions
    hosts.difference_update(v for t in parts if isinstance(t, Reduce) for v in t.indices)
    names = {
        t: fresh(called[t], t.type)
        for t in parts
        if t in called and uses[t] > 1 and isinstance(t.type, Number) and bool(t.free) and t.free <= hosts
    }
    if not names or 2 * _length(program, ()) <= 3 * sum(_length(t, names) for t in (program, *names)):
        return program
    return _Shared(names)(program)


def _length(t: Term, named: Collection[Term]) -> int:
    """The nodes of a term as it would be written, where those below that are `named` are one each."""
    return _lengths(t, named)[t]


def _lengths(t: Term, named: Collection[Term] = ()) -> dict[Term, int]:
    found: dict[Term, int] = {}

    def measured(u: Term) -> int:
        if u not in found:
            found[u] = 1 + sum(1 if c in named else measured(c) for c in children(u))
        return found[u]

    measured(t)
    return found


class _Shared:
    """Puts names in the places of numbers, and their definitions where the last variable that they hold is bound."""

    def __init__(self, names: Mapping[Term, Var]) -> None:
        self.names = names
        self.known: dict[Term, Term] = {}

    def __call__(self, t: Term) -> Term:
        """`t` with names inside, those of numbers whose last variable it binds defined there."""
        if t not in self.known:
            self.known[t] = self.with_definitions(t)
        return self.known[t]

    def with_definitions(self, t: Term) -> Term:
        """`t` with names inside; a row of definitions takes those that need it among its own."""
        match t:
            case Let(bindings, body):
                rows = {v: [(v, self.named(e))] for v, e in bindings}
                order = [v for v, _ in bindings]
                for v, u in self.defined(t, order):
                    rows[max(u.free.intersection(order), key=order.index)].append((v, self(u)))
                return let([each for v in order for each in rows[v]], self.named(body))
            case Lam(params, body):
                return Lam(params, let([(v, self(u)) for v, u in self.defined(body, params)], self.named(body)))
            case Sum(indices, body):
                return Sum(indices, let([(v, self(u)) for v, u in self.defined(body, indices)], self.named(body)))
            case _:
                return rebuild(t, [self.named(u) for u in children(t)])

    def named(self, t: Term) -> Term:
        """The name of a number that has one."""
        return self.names[t] if t in self.names else self(t)

    def defined(self, t: Term, own: Collection[Var]) -> list[tuple[Var, Term]]:
        """The numbers in a term that hold variables bound around it and none that is bound below, inner ones first."""
        below = {v for u in subterms(t) for v in bound_by(u)}.difference(own)
        found = [u for u in subterms(t) if u in self.names and not u.free.isdisjoint(own) and u.free.isdisjoint(below)]
        lengths = _lengths(t)
        return [(self.names[u], u) for u in sorted(found, key=lengths.__getitem__)]
