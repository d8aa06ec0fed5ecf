"""Calls of functions of numbers: written out, or, where a value stands in several places, with a name for it.

    a = v -> (v + 40) / (1 - exp(-(v + 40) / 10));  b = v -> 4 * exp(-(v + 65) / 18);  a(V) / (a(V) + b(V))

A call is read as f(x) of a variable f (`calls.py`), and only when the whole program is known it becomes its value: here
`begin a = (V + 40) / …; a / (a + 4 * exp(…)) end`, as if the program had been written so. Definitions that use the one
before twice, h = x -> exp(-f(x)) + tanh(f(x)), cost no more than their number, where they would cost 2ⁿ written out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from combdiff.terms.terms import (
    App,
    Lam,
    Let,
    Reduce,
    Sum,
    Term,
    Var,
    bound_by,
    children,
    fresh,
    let,
    rebuild,
    substitute,
)

_SHORT = 7  # what has fewer nodes is as easy to read as its name: (v + 65) / 18 has 5, exp(-v) + v 6


def without_calls(program: Term, functions: Mapping[Var, Lam]) -> Term:
    """The program with the values of calls of `functions` in their places, or names for those that stand in several.

    >>> from combdiff.terms.terms import add, call, mul
    >>> from combdiff.terms.types import REAL, Map
    >>> functions, x = {}, fresh("x", REAL)
    >>> t = x
    >>> for n in range(40):
    ...     f, y = fresh(f"f{n}", Map((REAL,), REAL)), fresh("y", REAL)
    ...     functions[f] = Lam((y,), add(call("exp", mul(y, y)), call("tanh", y)))
    ...     t = App(f, (t,))
    >>> shared = without_calls(Lam((x,), t), functions)
    >>> len(shared.body.bindings), shared.body.bindings[0][0].name
    (39, 'f0')
    """
    return _Written(functions, program)(program) if functions else program


class _Calls:
    """A program whose calls stand for their values; `values` has these, what others are made of first."""

    def __init__(self, functions: Mapping[Var, Lam], program: Term) -> None:
        self.functions = functions
        self.values: dict[Term, Term] = {}
        self.parts: dict[Term, tuple[Term, ...]] = {}
        self.read(program)

    def read(self, t: Term) -> None:
        """Note a term, and all terms below it."""
        if t in self.parts:
            return
        if isinstance(t, App) and isinstance(t.function, Var) and t.function in self.functions:
            function = self.functions[t.function]
            value = substitute(function.body, dict(zip(function.params, t.args, strict=True)))
            self.parts[t] = (value,)
            self.read(value)
            self.values[t] = value
            return
        self.parts[t] = tuple(children(t))
        for u in self.parts[t]:
            self.read(u)

    def kept(self) -> dict[Term, Var]:
        """Names for the calls that stand in several places, and whose values are more than a few nodes long."""
        hosts = {v for t in self.parts if isinstance(t, Lam | Sum | Let) for v in bound_by(t)}
        # what a reduction is of has no place for definitions
        hosts.difference_update(v for t in self.parts if isinstance(t, Reduce) for v in t.indices)
        uses = Counter(u for below in self.parts.values() for u in below)
        lengths: dict[Term, int] = {}
        names: dict[Term, Var] = {}
        for t, value in self.values.items():
            lengths[t] = self.length(value, lengths)
            if uses[t] > 1 and lengths[t] >= _SHORT and t.free <= hosts | self.functions.keys():
                assert isinstance(t, App) and isinstance(t.function, Var), "a call"
                names[t] = fresh(t.function.name, t.type)
                lengths[t] = 1
        return names

    def length(self, t: Term, known: dict[Term, int]) -> int:
        """The nodes of a term as it is written."""
        if t not in known:
            known[t] = 1 + sum(self.length(u, known) for u in self.parts[t])
        return known[t]


class _Written:
    """Writes the values of calls, or their names, which are defined where the last variable that they hold is bound."""

    def __init__(self, functions: Mapping[Var, Lam], program: Term) -> None:
        self.calls = _Calls(functions, program)
        self.names = self.calls.kept()
        self.known: dict[Term, Term] = {}

    def __call__(self, t: Term) -> Term:
        """`t` with its calls written out; calls whose last variable it binds are defined there."""
        if t in self.names:
            return self.names[t]
        if t not in self.known:
            self.known[t] = self.with_definitions(self.calls.values.get(t, t))
        return self.known[t]

    def with_definitions(self, t: Term) -> Term:
        """`t` with its calls written out; a row of definitions takes those that need it among its own."""
        match t:
            case App() if t in self.calls.values:
                return self(t)
            case Let(bindings, body):
                rows = {v: [(v, self(e))] for v, e in bindings}
                order = [v for v, _ in bindings]
                for call in self.defined(t, order):
                    rows[max(call.free.intersection(order), key=order.index)].append(self.definition(call))
                return let([each for v in order for each in rows[v]], self(body))
            case Lam(params, body):
                return Lam(params, let(self.definitions(t, params), self(body)))
            case Sum(indices, body):
                return Sum(indices, let(self.definitions(t, indices), self(body)))
            case _:
                return rebuild(t, [self(u) for u in children(t)]) if children(t) else t

    def definitions(self, t: Term, own: Collection[Var]) -> list[tuple[Var, Term]]:
        return [self.definition(call) for call in self.defined(t, own)]

    def definition(self, call: Term) -> tuple[Var, Term]:
        return self.names[call], self.with_definitions(self.calls.values[call])

    def defined(self, t: Term, own: Collection[Var]) -> list[Term]:
        """The named calls in a term that hold variables it binds, inner ones first.

        Those that hold variables bound further inside are defined there, too, so that `let` leaves them out here.
        """
        if not self.names:
            return []
        reached: set[Term] = set()
        pending = [t]
        while pending:
            u = pending.pop()
            if u not in reached:
                reached.add(u)
                pending += self.calls.parts[u]
        return [u for u in self.names if u in reached and not u.free.isdisjoint(own)]
