"""Reads terms into classes of the graph: sums and products are nodes, entries and all else leaves.

2 * sum(k, A(i, k) * exp(B(k, j)))   is   2 · Con(A, L) at (i, j), where the leaf L is written exp(#7(k, j))
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from itertools import count
from types import MappingProxyType

from combdiff.budget import Budget
from combdiff.canon.closed import ClosedForm, closed_form
from combdiff.canon.moves import at, moved, symmetry_of
from combdiff.canon.skeleton import MINUS, NOTHING, UNIT, Coefficient, times
from combdiff.canon.slotgroup import SlotGroup
from combdiff.records import dataclass
from combdiff.simplify.choose import is_cheap
from combdiff.simplify.graph.graph import LARGEST, Graph, Leaf, Ref, Zero
from combdiff.simplify.graph.laws.part_of_product import NamedProduct, is_root, part_of_product
from combdiff.simplify.graph.laws.phases import phases
from combdiff.simplify.graph.laws.split import split
from combdiff.simplify.graph.reading_cost import INVERSE, KNOWN, times_written, words
from combdiff.terms.network import addends, is_of_one_term, network
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    Add,
    App,
    Call,
    Conj,
    Const,
    Delta,
    Diff,
    Lam,
    Mul,
    Pow,
    Proj,
    Reduce,
    Sum,
    Term,
    Tuple,
    Var,
    children,
    conj,
    factors_of,
    fresh,
    holds_entries,
    mul,
    number,
    numbers_read,
    power,
    rebuild,
    split_coefficient,
    substitute,
    subterms,
)
from combdiff.terms.types import COMPLEX, REAL, Index, Map, Number, Symmetry, Type, is_complex, is_periodic, slot_types


@dataclass(frozen=True, slots=True)
class WrittenLeaf:
    """How a leaf is written: `term` over the variables of its slots, in which `holes` stand for classes.

    A hole is written with the slots of its class, in the order of the ref, and with what is bound around the class.
    `fixed` are the slots whose index is read as a number, and wraps round.
    """

    slots: tuple[Var, ...]
    term: Term
    holes: Mapping[Var, Ref]
    fixed: frozenset[Var] = frozenset()


@dataclass(frozen=True, slots=True)
class Original:
    """What a class was read from, `term` over the variables of its slots; what that is by the class, and its length."""

    slots: tuple[Var, ...]
    term: Term
    frame: Ref
    length: float


@dataclass(frozen=True, slots=True)
class AsRead:
    """How a sum was read: number · its class, and the places of its terms by their classes."""

    number: Coefficient
    order: Mapping[int, int]


@dataclass(slots=True)
class Reader:
    """Reads terms into `graph`; `captured` are the variables that are known everywhere, which are no slots.

    `symmetries` adds to what the types of tensors declare, and the declared ones of variables in `unused` are not used.
    `spelled` says how leaves are written; `values` what named values are: their classes, at their parameters;
    `discounts` what their entries cost less; those that are `kept` are the definitions of the program; `phases`
    those that are products of phases, `products` those that are products, `roots` those that are powers or roots;
    `recognised` counts the products that hold one of these products.
    """

    graph: Graph
    captured: set[Var]
    symmetries: Mapping[Var, tuple[Symmetry, ...]]
    unused: frozenset[Var]
    budget: Budget
    spelled: dict[tuple[str, Hashable], WrittenLeaf] = field(default_factory=dict)
    leaves: dict[tuple[str, Hashable], Ref] = field(default_factory=dict)
    values: dict[Var, Ref] = field(default_factory=dict)
    discounts: dict[Term, float] = field(default_factory=dict)
    kept: Collection[Var] = ()
    indices: dict[int, Var] = field(default_factory=dict)
    read: dict[Term, Ref | None] = field(default_factory=dict)
    standing: dict[tuple[int, bool], Var] = field(default_factory=dict)
    labels: dict[Term, tuple[Var, ...]] = field(default_factory=dict)
    originals: dict[int, list[Original]] = field(default_factory=dict)
    sums: dict[int, AsRead] = field(default_factory=dict)
    parameters: dict[tuple[Type, int], Var] = field(default_factory=dict)
    phases: dict[Var, Lam] = field(default_factory=dict)
    products: list[NamedProduct] = field(default_factory=list)
    roots: dict[Var, Term] = field(default_factory=dict)
    recognised: int = 0
    _sums: list[tuple[Add, Ref]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.graph.respell = self.respelled

    def __call__(self, t: Term) -> Ref:
        """`t`, a number, at its open indices.

        Raises:
            Zero: if it is zero.
            OutOfTime: if the budget ends first.
        """
        if t not in self.read:
            self.budget.check()
            try:
                self.read[t] = self._sum(t) if isinstance(t, Add) else self._product(t)
            except Zero:
                self.read[t] = None
        found = self.read[t]
        if found is None:
            raise Zero
        return self.graph.find(found)

    def one(self) -> Ref:
        """The number 1."""
        if ONE_KEY not in self.leaves:
            of = self.graph.new((), (), typed=True)
            self.leaves[ONE_KEY] = self._spell(ONE_KEY, WrittenLeaf((), ONE, {}), Ref(UNIT, False, (), of))
        return self.graph.find(self.leaves[ONE_KEY])

    def finish(self) -> None:
        """Note by the classes that there are now what each sum and product was read from, the shortest first."""
        self.sums = {}
        for sum_, first in self._sums:
            now = self.graph.find(first)
            terms = [self.read.get(u) for u in addends(sum_)]
            if now.of not in self.sums and not now.number[1]:
                order = {self.graph.holder(r.of): n for n, r in reversed([*enumerate(terms)]) if r is not None}
                self.sums[now.of] = AsRead(now.number, order)
        found = self.originals
        lengths: dict[Term, float] = {}
        for t, ref in self.read.items():
            if ref is None or not isinstance(t, Add | Mul | Sum):
                continue
            now = self.graph.find(ref)
            slots = self.open_indices(t)
            places = {v.uid: n for n, v in enumerate(slots, start=1)}
            if {abs(label) for label in now.labels} == places.keys():
                labels = tuple(places[abs(label)] * (1 if label > 0 else -1) for label in now.labels)
                own = Ref(now.number, now.conj, labels, now.of)
                found.setdefault(now.of, []).append(Original(slots, t, own, words(t, lengths, self.discounts)))
        for known in found.values():
            known.sort(key=lambda o: o.length)

    def open_indices(self, t: Term) -> tuple[Var, ...]:
        """The indices of `t` that are bound around it, in the order in which it mentions them."""
        if t not in self.labels:
            mentioned = dict.fromkeys(u for u in subterms(t) if isinstance(u, Var) and isinstance(u.kind, Index))
            self.labels[t] = tuple(v for v in mentioned if v in t.free and v not in self.captured)
        return self.labels[t]

    def label(self, v: Var) -> int:
        """The label of an index."""
        self.indices[v.uid] = v
        return v.uid

    # --- sums and products

    def _sum(self, t: Add) -> Ref:
        refs = []
        for u in addends(t):
            try:
                refs.append(self(u))
            except Zero:
                continue
        found = self.graph.lin(refs, sorted({abs(label) for r in refs for label in r.labels}))
        self._sums.append((t, found))
        return found

    def _product(self, t: Term) -> Ref:
        p = network(t, drawn=_is_drawn)
        if not p.indices and len(p.factors) <= 1 and p.coefficient == ONE:
            return self._factor(p.factors[0] if p.factors else ONE)
        scale = (p.coefficient.real, p.coefficient.imag)
        if scale == NOTHING:
            raise Zero
        idle = [i for i in p.indices if not any(i in f.free for f in p.factors)]
        factors = [g for f in p.factors for g in _repeated(f)]
        counted = [self._leaf(Sum((i,), ONE), ()) for i in idle]
        is_open = {self.label(v) for v in self.open_indices(t)}
        whole = split(self.graph, [*map(self._factor, factors), *counted], is_open, self.one())
        apart = [part for f in factors for part in phases(self._written_out(f), self.captured)]
        if len(apart) > len(factors):
            self.graph.union(whole, split(self.graph, [*map(self._factor, apart), *counted], is_open, self.one()))
        shorter = part_of_product(p.factors, self.products, self.roots)
        if shorter is not None:
            self.recognised += 1
            refs = [*map(self._factor, [g for f in shorter[1] or [ONE] for g in _repeated(f)]), *counted]
            refs[0] = refs[0].times(shorter[0])
            self.graph.union(whole, split(self.graph, refs, is_open, self.one()))
        return self.graph.find(whole).times(scale)

    def _written_out(self, t: Term) -> Term:
        """An entry of a named phase as the phase itself; any other factor as it is."""
        match t:
            case Conj(App(Var() as f, args)) if f in self.phases:
                return conj(substitute(self.phases[f].body, dict(zip(self.phases[f].params, args, strict=True))))
            case App(Var() as f, args) if f in self.phases:
                return substitute(self.phases[f].body, dict(zip(self.phases[f].params, args, strict=True)))
            case _:
                return t

    def _factor(self, t: Term) -> Ref:
        match t:
            case Const():
                return self.one().times((t.real, t.imag))
            case Conj(u):
                found = self(u)
                turned = Ref((found.number[0], -found.number[1]), not found.conj, found.labels, found.of)
                return self.graph.find(turned)
            case Add() if isinstance(t.type, Number):
                return self(t)
            case Var() if t in self.values:
                return self.graph.find(self.values[t])
            case App(Var() as f, args):
                return self._entry(t, f, args)
            case _:
                return self._leaf_of(t)

    def _entry(self, t: App, f: Var, args: Sequence[Term]) -> Ref:
        """An entry of a tensor at indices that each stand in one slot, perhaps reversed; any other is a leaf."""
        assert isinstance(f.kind, Map), "what is applied is a map"
        labels = [self._slot(a, kind) for a, kind in zip(args, f.kind.params, strict=True)]
        if None in labels or len({abs(label) for label in labels if label}) < len(labels):
            return self._diagonal(t, f, args) if None not in labels else self._leaf_of(t)
        slots = tuple(label for label in labels if label is not None)
        if f in self.values:
            own = self.graph.find(self.values[f])
            return Ref(own.number, own.conj, _through(own.labels, slots), own.of)
        found = self._tensor(f)
        if found is None:
            return self._leaf_of(t)
        return Ref(found.number, found.conj, _through(found.labels, slots), found.of)

    def _diagonal(self, t: App, f: Var, args: Sequence[Term]) -> Ref:
        """A(i, i): the entry of a tensor at indices of its own, of which some are one."""
        own = [fresh(a.name, a.kind) if isinstance(a, Var) else None for a in args]
        if None in own:
            return self._leaf_of(t)
        plain = self._factor(App(f, tuple(v for v in own if v is not None)))
        names = {self.label(v): self.label(a) for v, a in zip(own, args, strict=True) if v and isinstance(a, Var)}
        labels = tuple(names[abs(label)] * (1 if label > 0 else -1) for label in plain.labels)
        return self.graph.con([Ref(plain.number, plain.conj, labels, plain.of)], {*names.values()})

    def _slot(self, arg: Term, kind: Type) -> int | None:
        """The label of an argument that is an open index, or a reversed one, of the kind that the slot has.

        One of another kind, such as an offset of a list that is read on a lattice, is summed over other values.
        """
        match arg:
            case Var() if arg.kind == kind and isinstance(kind, Index) and arg not in self.captured:
                return self.label(arg)
            case Mul((Const() as c, Var() as v)) if c == MINUS_ONE and v.kind == kind and v not in self.captured:
                return -self.label(v) if _is_reversible(kind) else None
            case _:
                return None

    def _tensor(self, f: Var) -> Ref | None:
        """The class of a tensor over its slots 1…n; None if its symmetries do arithmetic with indices."""
        key = ("tensor", f)
        if key not in self.leaves:
            kind = f.kind
            if not isinstance(kind, Map) or not kind.is_tensor:
                return None
            group = SlotGroup.of(kind, self.symmetries.get(f, ()), declared=f not in self.unused)
            moves = group.moves(LARGEST)
            if moves is None or group.zero:
                return None
            slots = tuple(fresh(f"d{n}", k) for n, k in enumerate(kind.params, start=1))
            within = frozenset() if f in self.captured else frozenset((f,))
            of = self.graph.new(kind.params, moves.said, not is_complex(kind.result), within)
            self.leaves[key] = self._spell(
                key, WrittenLeaf(slots, App(f, slots), {}), Ref(UNIT, False, _upto(slots), of)
            )
        return self.graph.find(self.leaves[key])

    # --- leaves

    def _leaf_of(self, t: Term) -> Ref:
        """A leaf whose parts that are numbers are classes of the graph, those in its maps as well."""
        holes: dict[Var, Ref] = {}
        parts = [self._part(c, holes) for c in children(t)]
        scale = UNIT
        if isinstance(t, Delta) and holds_entries(t.left, t.right):
            # linear in its body, whose number stands in front
            for hole in parts[-1].free & holes.keys():
                scale, holes[hole] = holes[hole].number, holes[hole]._replace(number=UNIT)
        return self._leaf(rebuild(t, parts) if holes else t, self.open_indices(t), holes, fixed_in(t)).times(scale)

    def _part(self, t: Term, holes: dict[Var, Ref]) -> Term:
        """`t` with what stands for its parts that are numbers, each noted in `holes`."""
        match t:
            case Var() | Const():
                return t
            case Lam(params, body) if not all(isinstance(p.kind, Index) for p in params):
                own = self._standard(t)
                part = self._part(substitute(body, dict(zip(params, own, strict=True))), holes)
                return Lam(params, substitute(part, dict(zip(own, params, strict=True))))
            case Lam() | Diff() | App() | Tuple() | Proj() | Reduce("cross") if not isinstance(t.type, Number | Index):
                return rebuild(t, [self._part(c, holes) for c in children(t)])
            case _:
                return self._hole(t, holes) if isinstance(t.type, Number) else t

    def _standard(self, t: Lam) -> tuple[Var, ...]:
        """The parameters of a map under the names that they have in all such maps, so that equal ones are seen."""
        own: list[Var] = []
        for p in t.params:
            named = (self.parameters.setdefault((p.kind, n), fresh(p.name, p.kind)) for n in count())
            own.append(next(v for v in named if v not in own and v not in t.free))
        return tuple(own)

    def _hole(self, t: Term, holes: dict[Var, Ref]) -> Term:
        try:
            ref = self(t)
        except Zero:
            return t
        own = self.graph.classes[ref.of]
        within = sorted(own.within, key=_number)
        kinds = (*own.kinds, *(v.kind for v in within))
        var = fresh("#", Map(kinds, t.type) if kinds else t.type)
        holes[var] = Ref(ref.number, ref.conj, _upto(own.kinds), ref.of)
        args = (*map(self.index_term, ref.labels), *within)
        return App(var, args) if args else var

    def _mentions(self, holes: Mapping[Var, Ref]) -> tuple[dict[Var, Term], dict[Var, int]]:
        """What holes are by variables that stand for classes, and the classes of these."""
        written: dict[Var, Term] = {}
        classes: dict[Var, int] = {}
        for hole, ref in holes.items():
            kinds = slot_types(hole.kind)
            slots = tuple(fresh(f"d{n}", k) for n, k in enumerate(kinds, start=1))
            now = self.graph.find(ref)
            args = [mul(MINUS_ONE, slots[-s - 1]) if s < 0 else slots[s - 1] for s in now.labels]
            args += slots[len(args) :]
            var = self._stands_for(now.of, [a.type for a in args], is_complex(hole.type))
            classes[var] = now.of
            plain = App(var, tuple(args)) if args else var
            entry = mul(number(now.number), conj(plain) if now.conj else plain)
            written[hole] = Lam(slots, entry) if slots else entry
        return written, classes

    def _stands_for(self, of: int, kinds: Sequence[Type], complex_: bool) -> Var:
        if (of, complex_) not in self.standing:
            result = COMPLEX if complex_ else REAL
            own = (*self.graph.classes[of].kinds, *kinds[len(self.graph.classes[of].kinds) :])
            self.standing[of, complex_] = fresh(f"#{of}", Map(own, result) if own else result)
        return self.standing[of, complex_]

    def index_term(self, label: int) -> Term:
        """The index that a label says."""
        v = self.indices[abs(label)]
        return v if label > 0 else mul(MINUS_ONE, v)

    def _leaf(
        self,
        t: Term,
        opens: Sequence[Var],
        holes: Mapping[Var, Ref] = MappingProxyType({}),
        fixed: frozenset[Var] = frozenset(),
    ) -> Ref:
        form = self._form(t, opens, holes)
        if form.coefficient == NOTHING:
            raise Zero
        scale: Coefficient = form.coefficient if form.view.sign > 0 else times(MINUS, form.coefficient)
        labels = tuple(self.label(opens[row[0][0]]) * row[0][1] for row in form.view.rows)
        key = ("form", form.key)
        if key not in self.leaves:
            moves = [m for m in map(moved, form.group) if m is not None]
            kinds = [opens[row[0][0]].kind for row in form.view.rows]
            within = frozenset(v for v in t.free if v not in self.captured and v not in opens and v not in holes)
            turns = [opens[row[0][0]] for row in form.view.rows]
            held = frozenset(n for n, v in enumerate(turns, start=1) if v in fixed)
            of = self.graph.new(kinds, moves, not is_complex(t.type), within, held)
            slots = tuple(opens)
            place = {self.label(v): n for n, v in enumerate(opens, start=1)}
            own = tuple(place[abs(label)] * (1 if label > 0 else -1) for label in labels)
            self.leaves[key] = Ref(UNIT, False, _upto(slots), of)
            self._spell(key, WrittenLeaf(slots, t, dict(holes), fixed), Ref(scale, form.view.conj, own, of))
        return self.graph.find(Ref(scale, form.view.conj, labels, self.leaves[key].of))

    def _form(self, t: Term, opens: Sequence[Var], holes: Mapping[Var, Ref]) -> ClosedForm:
        written, classes = self._mentions(holes)
        symmetries = dict(self.symmetries)
        for var, of in classes.items():
            own = self.graph.classes[of]
            if (len(var.kind.params) if isinstance(var.kind, Map) else 0) == len(own.kinds):
                symmetries[var] = tuple(map(symmetry_of, own.group.said))
                if own.real and is_complex(var.type):
                    symmetries[var] += (replace(Symmetry.identity(len(own.kinds)), conj=True),)
        entry = substitute(t, written) if written else t
        return closed_form(Lam(tuple(opens), entry), symmetries, self.unused, self.budget)

    def _spell(self, key: tuple[str, Hashable], spelling: WrittenLeaf, frame: Ref) -> Ref:
        self.spelled[key] = spelling
        node = Leaf(key)
        self.graph.put(node, frame)
        for ref in spelling.holes.values():
            self.graph.users[self.graph.holder(ref.of)][node] = None
        return frame

    def _known(self, f: Term) -> float:
        """What an entry of a value costs less than its names.

        It is most for one over what the program has no name for, which is to get none beside it, and least for one over
        what it has a name for.
        """
        if not _is_divisor(f):
            return KNOWN
        base = f.base if isinstance(f, Pow) else f
        named = (base.function if isinstance(base, App) else base) in self.kept
        return KNOWN - INVERSE if named else KNOWN + INVERSE

    def define(self, var: Var, value: Term) -> Leaf | None:
        """`value` is called `var` from now on; the node that says so, or None where it is not worth looking for."""
        params, entry = (value.params, value.body) if isinstance(value, Lam) else ((), value)
        if isinstance(value, Lam) and len(phases(entry, self.captured)) > 1:
            self.phases[var] = value
        ref = None
        worth = not is_cheap(entry) or any(map(_is_divisor, factors_of(entry)))
        if isinstance(entry.type, Number) and worth and all(p in entry.free for p in params):
            with suppress(Zero):
                ref = self(entry)
        self.captured.add(var)
        places = {p.uid: n for n, p in enumerate(params, start=1)}
        if ref is None or {abs(label) for label in ref.labels} != places.keys():
            return None
        if self.graph.classes[ref.of].typed and is_complex(entry.type):
            # tanh(a) would be -im * b for b = im * tanh(a), and its type would no longer say that it is real
            return None
        labels = tuple(places[abs(label)] * (1 if label > 0 else -1) for label in ref.labels)
        self.values[var] = Ref(ref.number, ref.conj, labels, ref.of)
        self.discounts[var] = self._known(split_coefficient(entry)[1])
        product = NamedProduct.of(var, value)
        if product is not None:
            self.products.append(product)
        if is_root(value):
            self.roots[var] = value
        slots = tuple(fresh(p.name, p.kind) for p in params)
        key = ("value", var)
        self._spell(key, WrittenLeaf(slots, App(var, slots) if slots else var, {}), self.values[var])
        return Leaf(key)

    def real_part(self, ref: Ref) -> Ref:
        """Re of `ref`, whose labels are slots."""
        kinds = self.graph.classes[ref.of].kinds
        slots = {
            abs(label): fresh(f"d{n}", kind) for n, (label, kind) in enumerate(zip(ref.labels, kinds, strict=True))
        }
        hole = fresh("#", Map(tuple(kinds), COMPLEX) if kinds else COMPLEX)
        args = [v if label > 0 else mul(MINUS_ONE, v) for label in ref.labels for v in [slots[abs(label)]]]
        entry = App(hole, tuple(args)) if args else hole
        holes = {hole: Ref(ref.number, ref.conj, _upto(kinds), ref.of)}
        fixed = frozenset(slots[abs(ref.labels[n - 1])] for n in self.graph.classes[ref.of].fixed)
        made = self._leaf(Call("real", (entry,)), [*slots.values()], holes, fixed)
        names = {v.uid: label for label, v in slots.items()}
        return Ref(made.number, made.conj, tuple(names[abs(n)] * (1 if n > 0 else -1) for n in made.labels), made.of)

    def within_real_part(self, leaf: Leaf) -> Ref | None:
        """What a leaf is the real part of, over the slots of the leaf; None if it is none."""
        spelling = self.spelled[leaf.key]
        match spelling.term:
            case Call("real", (App(Var() as hole, args),)) if hole in spelling.holes and all(
                isinstance(a, Var) and a in spelling.slots for a in args
            ):
                ref = spelling.holes[hole]
                labels = tuple(spelling.slots.index(a) + 1 for a in args if isinstance(a, Var))
                own = Ref(ref.number, ref.conj, at(labels, ref.labels), ref.of)
                return None if self.graph.classes[self.graph.holder(ref.of)].within else self.graph.find(own)
            case _:
                return None

    def respelled(self, leaf: Leaf) -> Ref | None:
        """A leaf in which a class went up in another one, by the class that it now is; None if it stays."""
        spelling = self.spelled[leaf.key]
        if all(self.graph.holder(r.of) == r.of for r in spelling.holes.values()):
            return None
        made = self._leaf(spelling.term, spelling.slots, spelling.holes, spelling.fixed)
        places = {v.uid: n for n, v in enumerate(spelling.slots, start=1)}
        labels = tuple(places[abs(label)] * (1 if label > 0 else -1) for label in made.labels)
        return Ref(made.number, made.conj, labels, made.of)


def fixed_in(t: Term) -> frozenset[Var]:
    """The indices of `t` that are read as numbers, over periodic domains."""
    return frozenset(v for v in numbers_read(t) if v in t.free and is_periodic(v.kind))


def _is_reversible(kind: Type) -> bool:
    """Whether an index runs over the same values as its negative."""
    return isinstance(kind, Index) and kind.domain is not None and (kind.domain.periodic or kind.domain.symmetric)


def _repeated(f: Term) -> Sequence[Term]:
    """1/s^2 of a number s as 1/s · 1/s, for 1/s to be shared with products that hold it once."""
    times = times_written(f)
    return (power(f.base, MINUS_ONE),) * times if times > 1 and isinstance(f, Pow) else (f,)


def _is_divisor(f: Term) -> bool:
    return isinstance(f, Pow) and isinstance(f.exponent, Const) and f.exponent.real < 0


def _is_drawn(t: Sum) -> bool:
    """Whether a sum is part of a product: not an integral, and not a sum of terms."""
    return is_of_one_term(t) and all(isinstance(i.kind, Index) for i in t.indices)


ONE_KEY = ("number", 1)


def _number(v: Var) -> int:
    return v.uid


def _upto(slots: Sequence[object]) -> tuple[int, ...]:
    return tuple(range(1, len(slots) + 1))


def _through(labels: Sequence[int], slots: Sequence[int]) -> tuple[int, ...]:
    """`labels`, numbers of slots from 1, by what stands in the slots."""
    return tuple(slots[s - 1] if s > 0 else -slots[-s - 1] for s in labels)
