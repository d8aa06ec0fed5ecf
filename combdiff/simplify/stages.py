"""Simplification of a derivative: contract, merge like terms, choose what keeps a name. Each stage is checked.

    a. contract    rules/*.egg: Σ and δ meet, conj moves to the leaves         simplify/contract.py
    b. merge       canonical names under symmetry, like terms gathered         simplify/canonical.py
    c. choose      which values keep a name, what indices are called           simplify/choose.py

After each stage the result is evaluated on random numbers against the one before it (`gate.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field, replace

from combdiff.calculus.floating import float_lets, unfold
from combdiff.calculus.implicit import is_implicit
from combdiff.errors import UnsupportedError
from combdiff.language.terms import (
    App,
    Conj,
    Lam,
    Let,
    Term,
    Traverser,
    Tuple,
    Var,
    apply,
    fresh,
    let,
    renamed,
    substitute,
    tuple_of,
)
from combdiff.language.types import REAL, Index, Map, Symmetry, Type, is_complex
from combdiff.simplify.account import Progress, Step
from combdiff.simplify.budget import NODES, SECONDS, SPENT, Budget
from combdiff.simplify.canonical import Symmetries, is_real, merge_like_terms
from combdiff.simplify.choose import Binding, index_names, place, rename_indices
from combdiff.simplify.closed import derived_symmetries
from combdiff.simplify.conditions import stated_once
from combdiff.simplify.contract import contract
from combdiff.simplify.culprit import accusation
from combdiff.simplify.definitions import may_be_seen_through, seen_through
from combdiff.simplify.egraph import Family
from combdiff.simplify.gate import Gate
from combdiff.simplify.linear import linear_laws, real_parts_by_term
from combdiff.simplify.order import CAPTURED, COTANGENT, UNKNOWN, ReadingOrder
from combdiff.simplify.repeats import form, once_a_form
from combdiff.simplify.sharing import nested
from combdiff.simplify.stationary import vanishing

_UNDONE = {
    "contract": "sums and δ may be left as differentiation made them",
    "merge like terms": "like terms may be left unmerged",
    "expand": "products and shared values are left as they were",
    "place cotangents": "values may keep their names, or stand where they are used as they were",
    "collect and name": "common factors may be left where they are",
    "order and names": "factors and indices are left as they came",
}

CANCELS = """The value is multiplied out, too: near zero it is a difference of large terms, and loses their digits.
Where a sum of squares is 1e-14 of its terms (a relative residual of 1e-7), rounding is 1 % of it."""

REAL_PART = "its value is not provably real: what follows is the gradient of its real part (Eq. 42)"


@dataclass(slots=True)
class Simplifier:
    """Simplifies derivatives and keeps an account of it in `steps`.

    `expand` multiplies products and shared values out (Eq. 57); `check` evaluates every stage on random numbers;
    `full_space` leaves the symmetries of the unknowns unused in the last derivative too, so that it holds outside of
    the symmetric subspace; `seconds` and `nodes` are the budget; `names`, `definitions` and `rank` are the user's index
    names, the names of the user's definitions, and the parameters in order; `progress` is told of a stage that runs.
    """

    expand: bool = False
    check: bool = True
    seconds: float = SECONDS
    nodes: float = NODES
    full_space: bool = False
    names: dict[Type, list[str]] = field(default_factory=dict)
    definitions: Collection[str] = ()
    rank: dict[Var, int] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    budget: Budget = field(init=False)
    derived: Symmetries = field(default_factory=dict)
    gate: Gate = field(default_factory=Gate)
    progress: Progress | None = None

    def __post_init__(self) -> None:
        self.budget = Budget.of(self.seconds, self.nodes)

    def announce(self, stage: str) -> None:
        """Tell who follows that a stage begins, and go on telling them while it asks for its budget."""
        follow = self.progress
        if follow is not None:
            start = time.perf_counter()
            self.budget.observer = lambda: follow(stage, time.perf_counter() - start)
            self.budget.observer()

    def __call__(self, f: Lam, unused: Collection[Var]) -> Lam:
        """`f` simplified, without using the declared symmetries of the variables in `unused`."""
        kept = {var for var, e in _parts(f.body)[0] if var.name in self.definitions or is_implicit(e)}
        rank = {v: (UNKNOWN if v in f.params else CAPTURED, n) for v, n in self.rank.items()}
        rank |= {p: (COTANGENT, n) for n, p in enumerate(f.params) if p not in rank}
        last = not unused
        unused = {*unused, *f.params} if self.full_space else unused
        order = ReadingOrder(rank, unused, collect=last)
        self.steps.append(Step("raw pullback", f))
        f = self._stage("contract", f, lambda body: self._contracted(body, expand=False))
        f = self._stage("merge like terms", f, self._merged(unused))
        f = self._without_vanishing(f)
        if self.expand:
            f = self._stage("expand", f, self._expanded, CANCELS)
            f = self._stage("merge like terms", f, self._merged(unused))
        elif any(var not in kept for var, _ in _parts(f.body)[0]):
            f = self._stage("place cotangents", f, lambda body: self._placed(body, kept))
            f = self._stage("merge like terms", f, self._merged(unused))
        if last and not self.expand:
            f = self._stage("collect and name", f, lambda body: self._nested(body, kept, unused))
        names = {**index_names(f), **self.names}
        return self._stage("order and names", f, lambda body: (self._ordered(body, order, names), {}))

    def multiplied_out(self, f: Lam) -> Lam:
        """A value with its products and shared values multiplied out, as `expand` does it to a derivative."""
        f = self._stage("expand", f, self._expanded, CANCELS)
        f = self._stage("expand", f, lambda body: (real_parts_by_term(body), {}))
        return self._stage("merge like terms", f, self._merged(()))

    def _stage(
        self, name: str, f: Lam, rewrite: Callable[[Term], tuple[Term, dict[str, Family]]], about: str = ""
    ) -> Lam:
        self.announce(name)
        start = time.perf_counter()
        self.budget.spent, self.budget.largest = False, 0
        body, families = rewrite(f.body)
        seconds = time.perf_counter() - start
        result = Lam(f.params, body)
        start = time.perf_counter()
        spent = self.budget.spent
        notes = [f"{SPENT}: {_UNDONE[name]}"] if spent else []
        notes += [about] if about and not spent else []
        self.announce(f"{name}, checked on numbers")
        note = "; ".join([*notes, *self._checked(name, f.body, body, families)])
        checking = time.perf_counter() - start
        self.steps.append(Step(name, result, families, seconds, note, checking, spent, self.budget.largest))
        return result

    def _without_vanishing(self, f: Lam) -> Lam:
        """Values that are zero by the equation that another one solves; that they are its multiples is checked."""
        bindings, results = _parts(f.body)
        found = {v.var: v for v in vanishing(bindings)}
        if not found:
            return f
        notes = [n for v in found.values() for n in self._checked("stationary point", v.value, v.multiple, {})]
        values = [found[var].zero if var in found else value for var, value in bindings]
        result = Lam(f.params, _joined([var for var, _ in bindings], [*values, *results]))
        names = ", ".join(var.name for var in found)
        self.steps.append(Step("stationary point", result, note="; ".join([f"{names}: zero at the root", *notes])))
        return result

    def _checked(self, name: str, before: Term, after: Term, families: dict[str, Family]) -> list[str]:
        """Evaluate both; a note where it could not be done, that says why."""
        if not self.check or before is after:
            return []
        fired = [family for family, laws in families.items() if laws.matches]
        try:
            if not self.gate.same(before, after, name, lambda: accusation(name, before, fired, self.gate.agree)):
                return ["not checked on numbers: no value is finite on what was drawn"]
        except UnsupportedError as problem:
            return [f"not checked on numbers: {problem.message}"]
        except OverflowError:
            return ["not checked on numbers: it holds a number beyond those of floating point"]
        return []

    def _merged(self, unused: Collection[Var]) -> Callable[[Term], tuple[Term, dict[str, Family]]]:
        def rewrite(body: Term) -> tuple[Term, dict[str, Family]]:
            known = _Known(unused, self.budget)
            result = known.all(body)
            self.derived = known.derived
            return result, {}

        return rewrite

    def _contracted(self, body: Term, expand: bool, settled: Collection[Term] = ()) -> tuple[Term, dict[str, Family]]:
        """`body` contracted value by value, but for the values in `settled`, which are as they should be."""
        bindings, results = _parts(body)
        values = [value for _, value in bindings] + results
        families: dict[str, Family] = {}

        def rewrite(entries: list[Term]) -> list[Term]:
            terms, account = contract(entries, expand=expand, budget=self.budget)
            families.update(account)
            return [*map(stated_once, terms)]

        open_ = [n for n, v in enumerate(values) if v not in settled and (n >= len(bindings) or not is_function(v))]
        for n, entry in zip(open_, once_a_form([_entry(values[n]) for n in open_], rewrite), strict=True):
            values[n] = _with_entry(values[n], entry)
        return _joined([var for var, _ in bindings], values), families

    def _nested(self, body: Term, kept: Collection[Var], unused: Collection[Var]) -> tuple[Term, dict[str, Family]]:
        bindings, results = _parts(body)
        kept = {*kept, *(var for var, value in bindings if is_function(value))}
        bindings, results, families = nested(bindings, results, kept, self.derived, unused, self.budget)
        return let(bindings, tuple_of(results)), families

    def _expanded(self, body: Term) -> tuple[Term, dict[str, Family]]:
        """`body` multiplied out, or as it was: part of it would be neither short nor without products."""
        with self.budget.halved():
            result, families = self._contracted(unfold(body), expand=True)
        return (body if self.budget.spent else result), families

    def _ordered(self, body: Term, order: ReadingOrder, names: dict[Type, list[str]]) -> Term:
        if self.budget.over():
            return body
        order = replace(order, derived=self.derived)
        ordered = order(body)
        together = stated_once(ordered)
        return rename_indices(ordered if together is ordered else order(together), names)

    def _placed(self, body: Term, kept: Collection[Var]) -> tuple[Term, dict[str, Family]]:
        if self.budget.over():
            return body, {}
        before, results = _parts(body)
        settled = {*(value for _, value in before), *results}
        bindings, results = place(before, results, kept)
        values = [value for _, value in bindings] + results
        return self._contracted(_joined([var for var, _ in bindings], values), expand=False, settled=settled)


def merged(body: Term, unused: Collection[Var], budget: Budget | None = None) -> Term:
    """`body` with like terms merged, value by value; each value's symmetries are derived and used in what follows."""
    return _Known(unused, budget or Budget()).all(body)


@dataclass(frozen=True, slots=True)
class _Settled:
    """A merged value (None where merging changed nothing) and its properties, in variables of its own."""

    variables: Sequence[Var]
    value: Term | None
    symmetries: tuple[Symmetry, ...]
    real: bool


@dataclass(slots=True)
class _Known:
    """What has been found out about the values of a result: symmetries, which are real, which products see through.

    Values of one form, of variables that are alike, are merged once.
    """

    unused: Collection[Var]
    budget: Budget = field(default_factory=Budget)
    derived: dict[Var, tuple[Symmetry, ...]] = field(default_factory=dict)
    real: dict[Var, Term] = field(default_factory=dict)
    transparent: dict[Var, Term] = field(default_factory=dict)
    settled: dict[Hashable, _Settled] = field(default_factory=dict)

    def all(self, body: Term) -> Term:
        """`body` with like terms merged, value by value."""
        bindings, results = _parts(body)
        settled = [(var, value if is_function(value) else self.settle(var, value)) for var, value in bindings]
        return let(settled, tuple_of([self.merged(r) for r in results]))

    def merged(self, value: Term) -> Term:
        """`value` with like terms merged, without conj on what is real."""
        plain = Traverser(self._plain)(_entry(value)) if self.real else _entry(value)
        plain = seen_through(plain, self.transparent)
        merged = merge_like_terms(plain, self.derived, self.unused, self.budget)
        return _with_entry(value, linear_laws(merged))

    def settle(self, var: Var, value: Term) -> Term:
        """The merged value of `var`, whose properties are used in all that follows."""
        spelled, variables = form(value)
        alike = [(self.derived.get(v, ()), v in self.unused, v in self.real, self._seen(v)) for v in variables]
        key = (var.kind, spelled, tuple(alike))
        known = self.settled.get(key)
        if known is None:
            known = self.settled[key] = self._examined(var.kind, value, variables)
            value = known.value or value
        elif known.value is not None:
            value = renamed(known.value, dict(zip(known.variables, variables, strict=True)))
        if may_be_seen_through(value):
            self.transparent[var] = value
        if known.symmetries:
            self.derived[var] = known.symmetries
        if known.real:
            twin = fresh(var.name, _real_kind(var.kind))
            self.real[var] = twin
            self.derived[twin] = known.symmetries
        return value

    def _examined(self, kind: Type, value: Term, variables: Sequence[Var]) -> _Settled:
        result = self.merged(value)
        symmetries: tuple[Symmetry, ...] = ()
        if isinstance(result, Lam):
            symmetries = derived_symmetries(result, self.derived, self.unused, self.budget)
        real = is_complex(kind) and self.is_real(result)
        return _Settled(variables, None if result is value else result, symmetries, real)

    def is_real(self, value: Term) -> bool:
        """Whether it is provably real, where values that are known to be real stand for real variables."""
        return is_real(substitute(_entry(value), self.real), self.derived, self.unused, self.budget)

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


def _real_kind(kind: Type) -> Type:
    return Map(kind.params, REAL) if isinstance(kind, Map) else REAL


def provably_real(f: Lam, budget: Budget | None = None) -> bool:
    """Whether the value of f is real whatever its arguments, by the declared symmetries, found within the budget."""
    if not is_complex(f.body.type):
        return True
    bindings, core = float_lets(f.body)
    known = _Known((), budget or Budget())
    for var, value in bindings:
        if not is_function(value):
            known.settle(var, value)
    return known.is_real(core)


def _parts(body: Term) -> tuple[list[Binding], list[Term]]:
    """The values of a result and its items."""
    bindings: list[Binding] = []
    while isinstance(body, Let):
        bindings += body.bindings
        body = body.body
    items = list(body.items) if isinstance(body, Tuple) else [body]
    values = [(var, value if is_function(value) else _spelled(value)) for var, value in bindings]
    return values, list(map(_spelled, items))


def _spelled(value: Term) -> Term:
    """A tensor as a map of its indices: `A` as (i, j) -> A(i, j)."""
    if isinstance(value, Lam) or not isinstance(value.type, Map):
        return value
    slots = tuple(fresh(f"d{n + 1}", kind) for n, kind in enumerate(value.type.params))
    return Lam(slots, apply(value, *slots))


def _joined(names: Sequence[Var], values: Sequence[Term]) -> Term:
    bindings = list(zip(names, values, strict=False))
    return let(bindings, tuple_of(values[len(names) :]))


def is_function(value: Term) -> bool:
    """Whether it is a map of anything but indices: a definition that was kept unknown."""
    return isinstance(value.type, Map) and not all(isinstance(p, Index) for p in value.type.params)


def _entry(value: Term) -> Term:
    return value.body if isinstance(value, Lam) else value


def _with_entry(value: Term, entry: Term) -> Term:
    if not isinstance(value, Lam):
        return entry
    return value if entry is value.body else Lam(value.params, entry)
