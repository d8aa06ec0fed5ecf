"""Collects facts about the values of a result while like terms are merged: symmetries, reality, signs.

A result is a row of named values and what is computed from them; symmetries of a value, and whether it is real, are
used in all that follows it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import field, replace
from functools import partial

from combdiff.budget import Budget
from combdiff.calculus.definitions.floating import float_lets
from combdiff.canon.canonical import Groups, is_real, merge_like_terms
from combdiff.canon.closed import derived_symmetries
from combdiff.canon.inherited import inherited
from combdiff.canon.repeats import form
from combdiff.records import dataclass
from combdiff.simplify.branches import taken_for_real
from combdiff.simplify.choose import Binding
from combdiff.simplify.definitions import may_be_read, may_be_seen_through, read_again, seen_through
from combdiff.simplify.images import BareIndices
from combdiff.simplify.laws.centred import without_deviations
from combdiff.simplify.laws.linear import linear_laws
from combdiff.terms.branches import at_least_zero
from combdiff.terms.terms import (
    App,
    Conj,
    Lam,
    Let,
    Loop,
    Sum,
    Term,
    Traverser,
    Tuple,
    Var,
    apply,
    body_of,
    fresh,
    let,
    renamed,
    tuple_of,
)
from combdiff.terms.types import REAL, Index, Map, Symmetry, Type, is_complex


def merged(body: Term, unused: Collection[Var], budget: Budget | None = None) -> Term:
    """`body` with like terms merged, value by value; each value's symmetries are derived and used in what follows."""
    return Known(unused, budget or Budget()).all(body)


@dataclass(frozen=True, slots=True)
class _Settled:
    """A merged value (None where merging changed nothing) and its properties, in variables of its own."""

    variables: Sequence[Var]
    value: Term | None
    symmetries: tuple[Symmetry, ...]
    real: bool
    positive: bool


@dataclass(slots=True)
class Known:
    """What has been found out about the values of a result: symmetries, which are real, which products see through.

    Values of one form, of variables that are alike, are merged once.
    """

    unused: Collection[Var]
    budget: Budget = field(default_factory=Budget)
    derived: dict[Var, tuple[Symmetry, ...]] = field(default_factory=dict)
    real: dict[Var, Term] = field(default_factory=dict)
    positive: set[Term] = field(default_factory=set)
    transparent: dict[Var, Term] = field(default_factory=dict)
    exponentials: dict[Var, Term] = field(default_factory=dict)
    values: dict[Var, Term] = field(default_factory=dict)
    settled: dict[Hashable, _Settled] = field(default_factory=dict)
    seen: Callable[[Term, Term, Groups], None] | None = None
    vanished: Callable[[Sum], None] = lambda _: None
    """(a value, a sum of terms in it, its like terms together) ↦ nothing: who follows what is merged."""

    def all(self, body: Term) -> Term:
        """`body` with like terms merged, value by value."""
        bindings, results = parts_of(body)
        settled = [(var, value if is_opaque(value) else self.settle(var, value)) for var, value in bindings]
        return let(settled, tuple_of([self.merged(self._read_again(r)) for r in results]))

    def _read_again(self, value: Term) -> Term:
        return with_entry(value, read_again(body_of(value), self.exponentials))

    def merged(self, value: Term) -> Term:
        """`value` with like terms merged, without conj on what is real."""
        plain = Traverser(self._plain, Conj)(body_of(value)) if self.real else body_of(value)
        plain = seen_through(plain, self.transparent)
        plain = without_deviations(plain, self.values, self.vanished)
        bare = BareIndices(self.derived, self.unused)(plain)
        seen = partial(self.seen, value) if self.seen is not None else None
        merged = merge_like_terms(bare, self.derived, self.unused, self.budget, seen)
        return with_entry(value, linear_laws(merged))

    def settle(self, var: Var, value: Term) -> Term:
        """The merged value of `var`, whose properties are used in all that follows."""
        # before forms are compared: which exponentials have a name is no property of the variables of a form
        value = self._read_again(value)
        spelled, variables = form(value)
        alike = [
            (
                self.derived.get(v, ()),
                v in self.unused,
                v in self.real,
                self.real.get(v) in self.positive,
                self._seen(v),
            )
            for v in variables
        ]
        key = (var.kind, spelled, tuple(alike))
        known = self.settled.get(key)
        if known is None:
            known = self.settled[key] = self._examined(var.kind, value, variables)
            value = known.value or value
        elif known.value is not None:
            value = renamed(known.value, dict(zip(known.variables, variables, strict=True)))
        self.values[var] = value
        if may_be_seen_through(value):
            self.transparent[var] = value
        if may_be_read(value):
            self.exponentials[var] = value
        if known.symmetries:
            self.derived[var] = known.symmetries
        if known.real:
            twin = fresh(var.name, _real_kind(var.kind))
            self.real[var] = twin
            self.derived[var] = (*known.symmetries, replace(Symmetry.identity(_rank(var.kind)), conj=True))
            if known.positive:
                self.positive.add(twin)
            self.derived[twin] = known.symmetries
        return value

    def _examined(self, kind: Type, value: Term, variables: Sequence[Var]) -> _Settled:
        result = self.merged(value)
        symmetries: tuple[Symmetry, ...] = ()
        if isinstance(result, Lam):
            symmetries = derived_symmetries(result, self.derived, self.unused, self.budget)
            symmetries += inherited(result, self.derived, self.unused, symmetries, self.budget)
        real = is_complex(kind) and self.is_real(result)
        positive = real and not isinstance(kind, Map) and at_least_zero(self._as_real(result), self.positive)
        return _Settled(variables, None if result is value else result, symmetries, real, positive)

    def is_real(self, value: Term) -> bool:
        """Whether it is provably real, where values that are known to be real stand for real variables."""
        return is_real(self._as_real(value), self.derived, self.unused, self.budget)

    def _as_real(self, value: Term) -> Term:
        return taken_for_real(body_of(value), self.real, self.positive)

    def _seen(self, v: Var) -> Var | None:
        """What a value that is seen through is made of depends on its name."""
        return v if v in self.transparent else None

    def _plain(self, t: Term) -> Term:
        match t:
            case Conj(Var() as v) if v in self.real:
                return v
            case Conj(App(Var() as v, _) as entry) if v in self.real:
                return entry
            case _:
                return t


def _rank(kind: Type) -> int:
    return len(kind.params) if isinstance(kind, Map) else 0


def _real_kind(kind: Type) -> Type:
    return Map(kind.params, REAL) if isinstance(kind, Map) else REAL


def provably_real(f: Lam, budget: Budget | None = None) -> bool:
    """Whether the value of f is real whatever its arguments, by the declared symmetries, found within the budget."""
    if not is_complex(f.body.type):
        return True
    bindings, core = float_lets(f.body)
    known = Known((), budget or Budget())
    for var, value in bindings:
        if not is_opaque(value):
            known.settle(var, value)
    return known.is_real(core)


def parts_of(body: Term) -> tuple[list[Binding], list[Term]]:
    """The values of a result and its items."""
    bindings: list[Binding] = []
    while isinstance(body, Let):
        bindings += body.bindings
        body = body.body
    items = list(body.items) if isinstance(body, Tuple) else [body]
    values = [(var, value if is_opaque(value) else _spelled(value)) for var, value in bindings]
    return values, list(map(_spelled, items))


def _spelled(value: Term) -> Term:
    """A tensor as a map of its indices: `A` as (i, j) -> A(i, j)."""
    if isinstance(value, Lam) or not isinstance(value.type, Map):
        return value
    slots = tuple(fresh(f"d{n + 1}", kind) for n, kind in enumerate(value.type.params))
    return Lam(slots, apply(value, *slots))


def joined(names: Sequence[Var], values: Sequence[Term]) -> Term:
    """The result whose named values, and then items, are `values`."""
    bindings = list(zip(names, values, strict=False))
    return let(bindings, tuple_of(values[len(names) :]))


def is_opaque(value: Term) -> bool:
    """Whether it is no array of terms: a map of anything but indices, which was kept unknown, or a loop."""
    return isinstance(value, Loop) or (
        isinstance(value.type, Map) and not all(isinstance(p, Index) for p in value.type.params)
    )


def with_entry(value: Term, entry: Term) -> Term:
    """`value` with `entry` in its slots."""
    if not isinstance(value, Lam):
        return entry
    return value if entry is value.body else Lam(value.params, entry)
