"""Programs spelt otherwise: what a person might as well have written, change by change on the surface tree.

    sum((i, j), x(i) * A(i, j) * x(j))   is   sum(n, sum(m, x(m) * A(m, n)) * x(n))   for a symmetric A

Each change takes a tree and a source of chance, and returns a tree of the same meaning; bound names differ from all
others throughout, so that nothing is captured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from random import Random
from typing import Any

from combdiff.language.parsing.syntax import (
    Apply,
    Block,
    Caret,
    Definition,
    DomainClause,
    Expr,
    Lambda,
    Module,
    Name,
    Param,
    Plus,
    Prime,
    Space,
    Summation,
    SymmetryClause,
    SymmetryMap,
    Times,
    TypeName,
    nodes_of,
)
from combdiff.terms.functions import SCALAR_FUNCTIONS
from tests.spellings.trees import (
    HERE,
    Names,
    bottom_up,
    mentioned,
    name,
    parameters,
    put,
    rebuilt,
    renamed,
    substituted,
)

CHANGES = ("inlined", "named", "transposed", "images", "sums", "shifted", "commuted")
"""What may be done to a program, in this order."""


@dataclass
class Respelling:
    """One program, spelt otherwise by chance."""

    module: Module
    rng: Random

    def __post_init__(self) -> None:
        self.params = parameters(self.module.body)
        self.fixed = frozenset(p.name for p in self.params)
        self.numbers = count(1)
        self.spaces = {d.name: d for d in self.module.declarations if isinstance(d, Space)}
        self.domains = {d.name: d for d in self.module.declarations if isinstance(d, DomainClause)}
        self.given = self._given(self.module.body)

    def _given(self, e: Expr) -> dict[str, str]:
        """The spaces of the tensors that are not varied, whose symmetry may be used."""
        groups = []
        while True:
            match e:
                case Lambda(params, body):
                    groups.append(params)
                    e = body
                case Apply(Name("pullback" | "grad"), (Lambda() as f, *_)):
                    e = f
                case Block(_, body):
                    e = body
                case _:
                    return {p.name: p.kind.text for g in groups[:-1] for p in g if isinstance(p.kind, TypeName)}

    def copied(self, e: Any) -> Any:
        """`e` with new names for all that it binds."""
        return Names(self.fixed, self.numbers)(e, {})

    def odds(self, chance: float) -> bool:
        return self.rng.random() < chance

    def __call__(self, changes: Sequence[str]) -> Expr:
        body = self.copied(self.module.body)
        for change in changes:
            body = getattr(self, change)(body)
        return renamed(body, self.fixed, self.rng)

    def values(self, e: Any, change: Callable[[Expr], Expr]) -> Any:
        """`change` at each value, the innermost first; not at what stands in a slot, but for maps that stand there."""
        match e:
            case Apply(Name(f), args) if f not in SCALAR_FUNCTIONS and f not in ("abs2", "pullback", "grad"):
                return change(
                    replace(e, args=tuple(self.values(a, change) if isinstance(a, Lambda) else a for a in args))
                )
            case _:
                return change(rebuilt(e, lambda u: self.values(u, change)))

    # --- order

    def commuted(self, e: Expr) -> Expr:
        """Factors and terms in another order, some of them together: a - b * c as -(c * b - a)."""
        return bottom_up(e, self._commuted)

    def _commuted(self, e: Expr) -> Expr:
        match e:
            case Times(factors):
                order = self.rng.sample(factors, len(factors))
                first = next(n for n, (below, _) in enumerate(order) if not below)
                order.insert(0, order.pop(first))
                if len(order) > 2 and self.odds(0.3):
                    cut = self.rng.randrange(1, len(order) - 1)
                    tail = [f for f in order[cut:] if not f[0]]
                    if len(tail) > 1:
                        rest = [f for f in order[cut:] if f[0]]
                        order = [*order[:cut], *rest, (False, Times(tuple(tail), HERE))]
                return Times(tuple(order), HERE)
            case Plus(terms):
                chosen = self.rng.sample(terms, len(terms))
                if len(chosen) > 1 and self.odds(0.3):
                    cut = self.rng.randrange(0, len(chosen) - 1)
                    tail = tuple((not minus, t) for minus, t in chosen[cut:])
                    together = (True, Plus(tail, HERE))
                    return Plus((*chosen[:cut], together), HERE)
                return Plus(tuple(chosen), HERE)
            case _:
                return e

    # --- sums

    def sums(self, e: Expr) -> Expr:
        """Sums joined, nested and reordered; what is summed over an inner sum drawn into it, or out of it."""
        return self.values(e, self._summed)

    def _summed(self, e: Expr) -> Expr:
        if not isinstance(e, Summation):
            return e
        e = self._joined(e) if self.odds(0.5) else e
        e = replace(e, params=tuple(self.rng.sample(e.params, len(e.params))))
        return self._nested(e) if self.odds(0.5) else e

    def _joined(self, e: Summation) -> Summation:
        match e.body:
            case Summation(params, body):
                return Summation((*e.params, *params), body, HERE)
            case Times(factors):
                inner = [n for n, (below, f) in enumerate(factors) if not below and isinstance(f, Summation)]
                if not inner:
                    return e
                n = self.rng.choice(inner)
                found = factors[n][1]
                assert isinstance(found, Summation)
                whole = Times((*factors[:n], (False, found.body), *factors[n + 1 :]), HERE)
                return Summation((*e.params, *found.params), whole, HERE)
            case _:
                return e

    def _nested(self, e: Summation) -> Expr:
        params = list(e.params)
        cut = self.rng.randrange(len(params))
        outer, inner = tuple(params[:cut]), tuple(params[cut:])
        own = {p.name for p in inner}
        match e.body:
            case Times(factors):
                within = [f for f in factors if own & mentioned(f[1])]
                beside = [f for f in factors if not own & mentioned(f[1])]
                if not beside or not any(not below for below, _ in within):
                    body: Expr = Summation(inner, e.body, HERE)
                else:
                    within.sort(key=lambda f: f[0])
                    part = within[0][1] if len(within) == 1 else Times(tuple(within), HERE)
                    beside = [(False, Summation(inner, part, HERE)), *beside]
                    body = Times(tuple(beside), HERE)
            case Plus(terms) if all(own <= mentioned(t) for _, t in terms) and self.odds(0.5):
                parts = [(minus, Summation(inner, t, HERE)) for minus, t in terms]
                body = Plus(tuple((minus, self.copied(t)) for minus, t in parts), HERE)
            case _:
                body = Summation(inner, e.body, HERE)
        return Summation(outer, body, HERE) if outer else body

    # --- definitions

    def inlined(self, e: Expr) -> Expr:
        """Some definitions written out wherever they stand."""
        match e:
            case Block(definitions, body):
                kept: list[Definition] = []
                rest: list[Any] = [*definitions, body]
                while len(rest) > 1:
                    d, *rest = rest
                    if len(d.names) > 1 or self.odds(0.4):
                        kept.append(d)
                        continue
                    rest = [self._with(u, d.names[0].text, d.value) for u in rest]
                return self._block(kept, self.inlined(rest[0]))
            case Lambda() | Apply(Name("pullback" | "grad")):
                return rebuilt(e, self.inlined)
            case _:
                return e

    def _block(self, definitions: Sequence[Definition], body: Expr) -> Expr:
        return Block(tuple(definitions), body, HERE) if definitions else body

    def _with(self, e: Any, var: str, value: Expr) -> Any:
        match e:
            case Name(text) if text == var:
                return self.copied(value)
            case Apply(Name(text), args) if text == var and isinstance(value, Lambda):
                own = self.copied(value)
                inner = [self._with(a, var, value) for a in args]
                if all(p.kind is None or (isinstance(p.kind, TypeName) and self._is_range(p.kind)) for p in own.params):
                    return substituted(own.body, dict(zip([p.name for p in own.params], inner, strict=True)))
                return Apply(own, tuple(inner), HERE)
            case _:
                return rebuilt(e, lambda u: self._with(u, var, value))

    def _is_range(self, kind: TypeName) -> bool:
        return kind.text in ("N", "I") or kind.text in self.domains

    def named(self, e: Expr) -> Expr:
        """A part of the objective, or of a definition, as a definition."""
        match e:
            case Lambda(params, body) if any(p.name in self.fixed for p in params):
                return Lambda(params, self.named(body), HERE)
            case Apply(Name("pullback" | "grad"), (f, *others)):
                return replace(e, args=(self.named(f), *others))
            case Block(definitions, body) if parameters(body):
                return Block(definitions, self.named(body), HERE)
        definitions, body = (e.definitions, e.body) if isinstance(e, Block) else ((), e)
        parts: list[Expr | Definition] = [*definitions, body]
        n = self.rng.randrange(len(parts))
        places: list[tuple[Expr, tuple[Param, ...]]] = []
        whole = parts[n]
        self._places(whole.value if isinstance(whole, Definition) else whole, (), places)
        if not places:
            return e
        chosen, around = self.rng.choice(places)
        own = mentioned(chosen)
        params = [p for p in around if p.name in own]
        self.rng.shuffle(params)
        new = name(f"v_{next(self.numbers)}")
        value = self.copied(Lambda(tuple(params), chosen, HERE) if params else chosen)
        use: Expr = Apply(new, tuple(name(p.name) for p in params), HERE) if params else new
        parts[n] = put(whole, chosen, use)
        parts.insert(n, Definition((new,), value, False, HERE))
        *before, last = parts
        return Block(tuple(before), last, HERE)  # type: ignore[arg-type]

    def _places(self, e: Any, around: tuple[Param, ...], found: list[tuple[Expr, tuple[Param, ...]]]) -> None:
        """The values in `e` that may have a name, each with the indices that are bound around it."""
        match e:
            case Lambda(params, body) | Summation(params, body):
                if isinstance(e, Summation):
                    found.append((e, around))
                self._places(body, (*around, *params), found)
            case Plus() | Times() | Caret() | Prime():
                if _ranges_told(e, {p.name for p in around}, self.scalar):
                    found.append((e, around))
                for part in _parts(e):
                    self._places(part, around, found)
            case Apply(Name(f), args) if self.scalar(f):
                found.append((e, around))
                self._places(args[0], around, found)
            case _:
                return

    def scalar(self, f: str) -> bool:
        return (f in SCALAR_FUNCTIONS or f == "abs2") and f not in self.fixed

    # --- tensors

    def images(self, e: Expr) -> Expr:
        """Given tensors read by the images that are declared for them."""
        return bottom_up(e, lambda u: self._image(u) if self.odds(0.6) else u)

    def _image(self, e: Expr) -> Expr:
        match e:
            case Apply(Name(tensor), args) if tensor in self.given:
                kind = self.given[tensor]
                if kind in ("Sym", "Her"):
                    swapped = Apply(name(tensor), args[::-1], HERE)
                    return Prime(swapped, HERE) if kind == "Her" else swapped
                laws = self.spaces[kind].symmetries if kind in self.spaces else ()
                return self._by(self.rng.choice(laws), tensor, args) if laws else e
            case _:
                return e

    def _by(self, law: SymmetryClause | SymmetryMap, tensor: str, args: Sequence[Expr]) -> Expr:
        if isinstance(law, SymmetryMap):
            own = law.law
            known: dict[str, Expr] = dict(zip([p.name for p in own.params], args, strict=True))
            return substituted(own.body, {**known, law.tensor: name(tensor)})
        if law.action in ("ineg", "inegc"):
            turned = tuple(_minus(a) if n + 1 in law.slots else a for n, a in enumerate(args))
            image: Expr = Apply(name(tensor), turned, HERE)
        else:
            image = Apply(name(tensor), tuple(args[s - 1] for s in law.slots), HERE)
        if law.action in ("conj", "inegc"):
            return Prime(image, HERE)
        return _minus(image) if law.action == "neg" else image

    def transposed(self, e: Expr) -> Expr:
        """A tensor of two slots read through its transpose, which is defined for it."""
        used = [u for u in nodes_of(e) if isinstance(u, Apply) and isinstance(u.function, Name) and len(u.args) == 2]
        tensors = sorted({u.function.text for u in used if isinstance(u.function, Name)} & self.fixed)
        plain = [
            t
            for t in tensors
            if all(isinstance(p.kind, TypeName) and p.kind.text in _MATRICES for p in self.params if p.name == t)
        ]
        if not plain:
            return e
        tensor = self.rng.choice(plain)
        i, j = (f"{c}_{next(self.numbers)}" for c in "ij")
        value = Lambda(
            (Param(j, None, HERE), Param(i, None, HERE)), Apply(name(tensor), (name(i), name(j)), HERE), HERE
        )
        new = name(f"{tensor}t_{next(self.numbers)}")

        def read(u: Expr) -> Expr:
            match u:
                case Apply(Name(text), args) if text == tensor:
                    return Apply(new, args[::-1], HERE)
                case _:
                    return u

        def inside(u: Expr) -> Expr:
            match u:
                case Lambda(params, body) if any(p.name == tensor for p in params):
                    return Lambda(
                        params, Block((Definition((new,), value, False, HERE),), bottom_up(body, read), HERE), HERE
                    )
                case _:
                    return rebuilt(u, inside)

        return inside(e)

    # --- summation variables

    def shifted(self, e: Expr) -> Expr:
        """An index that is summed over a periodic domain moved by a step."""
        return self._shifted(e, ())

    def _shifted(self, e: Any, around: tuple[Param, ...]) -> Any:
        if not isinstance(e, Lambda | Summation):
            return rebuilt(e, lambda u: self._shifted(u, around))
        inside = (*around, *e.params)
        body = self._shifted(e.body, inside)
        if isinstance(e, Summation):
            for p in e.params:
                if isinstance(p.kind, TypeName) and self._setting(p.kind.text, "periodic"):
                    steps = [
                        q for q in inside if q is not p and isinstance(q.kind, TypeName) and q.kind.text in self.domains
                    ]
                    if steps and self.odds(0.7):
                        minus = self.odds(0.5)
                        step = self.rng.choice(steps)
                        moved = Plus(((False, name(p.name)), (minus, name(step.name))), HERE)
                        body = substituted(body, {p.name: moved})
        return type(e)(e.params, body, HERE)

    def _setting(self, domain: str, key: str) -> bool:
        return domain in self.domains and (key, "true") in self.domains[domain].settings


_MATRICES = {"RM", "CM", "Sym", "Her"}


def _minus(e: Expr) -> Expr:
    return Plus(((True, e),), HERE)


def _parts(e: Expr) -> list[Expr]:
    match e:
        case Plus(terms):
            return [t for _, t in terms]
        case Times(factors):
            return [f for _, f in factors]
        case Caret(base, _):
            return [base]
        case Prime(of):
            return [of]
        case _:
            return []


def _ranges_told(e: Expr, indices: set[str], scalar: Callable[[str], bool]) -> bool:
    """Whether each index in `e` stands alone in some slot, which tells its range."""
    slots = {
        a.text
        for u in nodes_of(e)
        if isinstance(u, Apply) and not (isinstance(u.function, Name) and scalar(u.function.text))
        for a in u.args
        if isinstance(a, Name)
    }
    return mentioned(e) & indices <= slots
