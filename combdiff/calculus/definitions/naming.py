"""Names the arguments of nonlinear functions, so that forward values are computed once (section 5.2).

    h = i -> g(sum(j, W(i, j) * x(j)))   becomes   u1 = i -> sum(j, W(i, j) * x(j));  h = i -> g(u1(i))

The derivative of g at its argument mentions the argument again; under a name both share it, and its cotangent as well.
Only arguments that hold a sum or a value of an unknown map, or are long, are named, and only those that the unknowns
reach.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import field
from itertools import count

from combdiff.calculus.definitions.cutting import cut
from combdiff.calculus.definitions.floating import Binding
from combdiff.calculus.definitions.pairs import over_what_is_read
from combdiff.calculus.implicit import gathered, is_implicit
from combdiff.language.printing.names import names_in
from combdiff.records import dataclass
from combdiff.terms.conditions.guards import Finite, Guard, condition_of, held, reads_beyond, under
from combdiff.terms.conditions.ordering import form_of
from combdiff.terms.nodes import OF_MATRICES, VECTORS
from combdiff.terms.terms import (
    App,
    Call,
    Const,
    Delta,
    Diff,
    Indicator,
    Lam,
    Loop,
    Pow,
    Reduce,
    Sum,
    Term,
    Traverser,
    Tuple,
    Var,
    alpha_equal,
    alpha_hash,
    apply,
    bound_by,
    children,
    fresh,
    neg,
    rebuild,
    reduced,
    reduction,
    split_coefficient,
    substitute,
    subterms,
)
from combdiff.terms.types import Index, Map, Number, slot_types

LINEAR = frozenset({"real", "imag", "conj"})


def name_arguments(
    unknowns: Sequence[Var], bindings: Sequence[Binding], core: Term, ask: Callable[[], None] = lambda: None
) -> tuple[list[Binding], Term]:
    """The bindings with those of arguments before their first use, and `core` in their terms.

    `ask` is called often, and may raise to stop.
    """
    bindings, core = over_what_is_read(bindings, core)
    taken = names_in(*(e for _, e in bindings), core)
    return _named_by(Names(set(unknowns), _fresh_names(taken), ask=ask), bindings, core)


def name_equations(bindings: Sequence[Binding], core: Term) -> tuple[list[Binding], Term]:
    """The bindings and `core` with a value of its own for every root, and for every image under an inverse."""
    everything = (*(e for _, e in bindings), core)
    taken = names_in(*everything)
    free = {v for e in everything for v in e.free}
    return _named_by(Names(free, _fresh_names(taken), only_equations=True), bindings, core)


def _named_by(names: Names, bindings: Sequence[Binding], core: Term) -> tuple[list[Binding], Term]:
    for var, value in bindings:
        before = len(names.found)
        named = value if is_implicit(value) else names.go(value, ())
        named = named if names.only_equations or is_implicit(value) else cut(named, (), names)
        if len(names.found) > before and names.is_last(named):
            names.take_back(var)
        else:
            names.add(var, named)
        if not named.free.isdisjoint(names.reached):
            names.reached.add(var)
    core = names.go(core, ())
    return names.found, core if names.only_equations else cut(core, (), names)


def _fresh_names(taken: Collection[str]) -> Iterator[str]:
    return (name for n in count(1) if (name := f"u{n}") not in taken)


@dataclass(slots=True)
class Names:
    """The values found so far, and the variables that the unknowns reach; `ask` is called often, may raise to stop.

    `guard` are the conditions around what is walked through: an entry such as x(i - 1) may exist under them only.
    `done` are the terms walked through, with what of the scope they use and their guard: a definition that is used
    twice, by one that is used twice, is one term.
    """

    reached: set[Var]
    names: Iterator[str]
    found: list[Binding] = field(default_factory=list)
    only_equations: bool = False
    ask: Callable[[], None] = lambda: None
    guard: Guard = ()
    alike: dict[int, list[Binding]] = field(default_factory=lambda: defaultdict(list))
    done: dict[tuple[Term, tuple[Var, ...], Guard], Term] = field(default_factory=dict)

    def add(self, var: Var, value: Term) -> None:
        """`value` is called `var` from now on."""
        self.found.append((var, value))
        self.alike[alpha_hash(value)].append((var, value))

    def is_last(self, value: Term) -> bool:
        """Whether a definition is the value that was named last and nothing else: E = j -> root(…)(j) is u1."""
        of = value.body if isinstance(value, Lam) and isinstance(value.body, App) else None
        if of is None or not self.found or not isinstance(value, Lam) or of.args != value.params:
            return False
        last, equation = self.found[-1]
        return of.function is last and last.type == value.type and is_implicit(equation)

    def take_back(self, var: Var) -> None:
        """Give the name of a definition to the value that was named last."""
        last, value = self.found.pop()
        self.alike[alpha_hash(value)].remove((last, value))
        self.done = {key: t for key, t in self.done.items() if last not in t.free}
        self.reached.discard(last)
        self.add(var, value)
        self.reached.add(var)

    def go(self, t: Term, scope: tuple[Var, ...]) -> Term:
        """`t` with its arguments named; `scope` are the variables bound around it."""
        if t.free.isdisjoint(self.reached):
            return t
        key = t, tuple(v for v in scope if v in t.free), self.guard
        if key not in self.done:
            self.done[key] = self._gone(t, scope)
        return self.done[key]

    def _gone(self, t: Term, scope: tuple[Var, ...]) -> Term:
        if isinstance(t, Lam) and not all(isinstance(p.kind, Index) for p in t.params):
            return t
        if is_implicit(t):
            return self.always_named(t, scope)
        inner = (*scope, *bound_by(t))
        below = children(t)
        parts = self.guarded(t, inner) if isinstance(t, Indicator | Delta) else [self.go(c, inner) for c in below]
        if isinstance(t, Reduce) and not self.only_equations:
            return self.reduced(t, inner)
        for n in () if self.only_equations else nonlinear_places(t):
            parts[n] = self.named(parts[n], inner)
        if all(a is b for a, b in zip(parts, below, strict=True)):
            return t
        match t:
            case Lam(params, _):
                return Lam(params, parts[0])
            case Sum(indices, _):
                return Sum(indices, parts[0])
            case Tuple():
                return Tuple(tuple(parts))
            case _:
                return rebuild(t, parts)

    def guarded(self, t: Indicator | Delta, scope: tuple[Var, ...]) -> list[Term]:
        """The sides of a condition, and what it guards, with their arguments named."""
        sides = [self.go(side, scope) for side in (t.left, t.right)]
        around, self.guard = self.guard, (*self.guard, condition_of(t))
        body = self.go(t.body, scope)
        self.guard = around
        return [*sides, body]

    def reduced(self, t: Reduce, scope: tuple[Var, ...]) -> Term:
        """A reduction of numbers that have a name, if they are worth one."""
        inner = (*scope, *t.indices)
        if t.kind == "cross":
            # the derivative by each of the vectors has the other one
            vectors = (self.named(self.go(entry, inner), inner) for entry in (t.mark, t.body))
            return reduced(t.kind, Lam(t.indices, Tuple(tuple(vectors))))
        # the name is that of the numbers, and not of what is left of them where they take part
        guard, numbers = held(t.body)
        guard, numbers = (guard, numbers) if guard and self.is_finite(numbers) else ((), t.body)
        of_matrix = t.kind in OF_MATRICES
        body = under(guard, self.named(self.go(numbers, inner), inner, of_matrix))
        if of_matrix:
            first, *others = (self.written_out(self.go(k, inner)) for k in t.marks)
            return reduced(t.kind, Lam(t.indices, Tuple((first, body, *others))))
        return reduction(t.kind, t.indices, t.mark, body)

    def is_finite(self, t: Term) -> bool:
        """Whether `t` is finite wherever the data are, with the values that have names."""
        infinite: set[Var] = set()
        for var, value in self.found:
            if not Finite(infinite)(value):
                infinite.add(var)
        return Finite(infinite)(t)

    def written_out(self, t: Term) -> Term:
        """What a matrix function is taken along, without names for functions of eigenvalues: slopes are needed."""
        hidden: dict[Term, Lam] = {
            v: e for v, e in self.found if isinstance(e, Lam) and any(map(_is_of_eigenvalues, subterms(e)))
        }
        if hidden.keys().isdisjoint(t.free):
            return t

        def visit(u: Term) -> Term:
            return apply(hidden[u.function], *u.args) if isinstance(u, App) and u.function in hidden else u

        return self.written_out(Traverser(visit)(t))

    def named(self, u: Term, scope: Sequence[Var], of_matrix: bool = False) -> Term:
        """`u`, or an entry of a value of its own if it is worth a name; u and -u have one name.

        A matrix is an array wherever a function takes it: it is worth a name if its entries take a function each.
        """
        if u.free.isdisjoint(self.reached):
            return u
        if not is_worth_a_name(u) and not (of_matrix and any(_is_function(v) for v in subterms(u, Call))):
            return u
        c, _ = split_coefficient(u)
        return neg(self.always_named(neg(u), scope)) if c.real < 0 and not c.imag else self.always_named(u, scope)

    def always_named(self, u: Term, scope: Sequence[Var]) -> Term:
        """An entry of a value of its own, made of `u`."""
        u = u if self.only_equations or is_implicit(u) else cut(u, tuple(scope), self)
        u = under(self._needed(u), u) if reads_beyond(u) else u
        # nested functions of one matrix may bind the same indices
        around = list(dict.fromkeys(v for v in scope if v in u.free))
        if not all(isinstance(v.kind, Index) for v in around):
            return u
        inside = {v: fresh(v.name, v.kind) for v in around}
        value = Lam(tuple(inside.values()), substitute(u, inside)) if around else u
        own: tuple[Var, ...] = ()
        if around and is_implicit(u):
            value = gathered(u, tuple(around))
            slots = slot_types(u.type)
            own = tuple(fresh(f"d{n + 1}", kind) for n, kind in enumerate(slots))
        near = self.alike.get(alpha_hash(value), ())
        var = next((v for v, e in near if v.kind == value.type and alpha_equal(e, value)), None)
        if var is None:
            var = fresh(next(self.names), value.type)
            self.add(var, value)
            self.reached.add(var)
        entry = App(var, (*around, *own)) if around else var
        return Lam(own, entry) if own else entry

    def _needed(self, u: Term) -> Guard:
        """The conditions around `u` on its indices, outside of which it may have no value."""
        return tuple(c for c in self.guard if form_of(c) is not None and not c.free.isdisjoint(u.free))


def nonlinear_places(t: Term) -> Sequence[int]:
    """Which children of `t` a derivative of `t` mentions again.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> nonlinear_places(Call("exp", (fresh("x", REAL),))), nonlinear_places(Call("real", (fresh("x", REAL),)))
    ((0,), ())
    """
    match t:
        case Call(name, (u,)) if name not in LINEAR and isinstance(u.type, Number):
            return (0,)
        case Pow(_, Const()):
            return (0,)
        case App(f, args) if _is_unknown(f):
            return tuple(n for n, a in enumerate(args, 1) if isinstance(a.type, Number))
        case _:
            return ()


def _is_unknown(f: Term) -> bool:
    return isinstance(f.type, Map) and not f.type.is_array


def _is_function(t: Call) -> bool:
    return bool(t.args) and t.primitive not in LINEAR


def _is_of_eigenvalues(t: Term) -> bool:
    return isinstance(t, Reduce) and t.kind in VECTORS


LONGEST = 30
"""Nodes of an argument that is written twice rather than named."""


def is_worth_a_name(u: Term) -> bool:
    """Whether a value takes longer to compute, or to read, than a name for it."""
    nodes = list(subterms(u))
    return len(nodes) > LONGEST or any(map(_is_heavy, nodes))


def _is_heavy(t: Term) -> bool:
    match t:
        case Sum(counted=None) | Diff() | Loop():
            return True
        case App(f, _):
            return _is_unknown(f)
        case _:
            return False
