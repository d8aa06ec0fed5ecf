"""Stage c: what terms of a sum have in common stands in front of it (`rules/nest.egg`; design, section 6 c).

    Σ_q h(p,q) C(q,i) + Σ_qrs V(p,q,r,s) P(r,s) C(q,i)   becomes   Σ_q C(q,i) (h(p,q) + Σ_rs V(p,q,r,s) P(r,s))

Python enumerates the closed factors that terms share, egglog collects by them, and the form that reads best is taken
from the e-graph (`forms.py`). No name and no binder enters the e-graph: the slots of its tensors are positions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from combdiff.budget import Budget
from combdiff.canon.canonical import Symmetries, normal_form
from combdiff.canon.closed import plain_form
from combdiff.canon.skeleton import NOTHING
from combdiff.simplify.contraction.egraph import Family, session
from combdiff.simplify.contraction.translation import rational
from combdiff.simplify.forms.cost import rank, words
from combdiff.simplify.forms.forms import Form, Reading, Vocabulary, best_form
from combdiff.simplify.forms.intermediates import Intermediates
from combdiff.simplify.products import Look, connected_parts, look
from combdiff.terms.network import Network, addends, network
from combdiff.terms.terms import (
    ONE,
    App,
    Conj,
    Const,
    Lam,
    Sum,
    Term,
    Var,
    add,
    fresh,
    mul,
    number,
    reciprocal,
    substitute,
    total,
)
from combdiff.terms.types import Index, Type

if TYPE_CHECKING:
    from egglog.bindings import EGraph

WIDEST = 8
"""Factors of a product whose parts are all looked at; of a longer one only single factors and pairs are."""

LARGEST = 200
"""Products, and cofactors of products, of one sum that are looked at: a product of n factors has some 2ⁿ."""

ROUNDS = 8
"""Collections within collections: one round looks into the cofactors of the one before."""

NODES = 2_000
"""Rows of the e-graph beyond which no round is begun: a round can make it ten times as large."""

PARTS = 400
"""Parts of products that are held against one another for one sum, each at about a third of a millisecond."""


def _place(v: Var) -> int:
    """The place of a slot, −1 for other variables: no name of a program begins like this."""
    return int(v.name[1:]) if v.name.startswith("#") else -1


@dataclass(frozen=True, slots=True)
class Factor:
    """A closed factor: `term` over indices that it shares with its cofactor, and open slots of the product.

    `shared` are these indices with the signs at which the slots of the cofactor hold them; its other slots are `outer`.
    """

    term: Term
    shared: tuple[tuple[Var, int], ...]
    outer: tuple[Var, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """product = ratio · Σ_shared factor · cofactor; product, factor and cofactor are numbers of a `Shelf`."""

    product: int
    ratio: Const
    factor: int
    cofactor: int


@dataclass(slots=True)
class Shelf:
    """The closed products and factors of a sum; those that are multiples of one another have one number."""

    symmetries: Symmetries
    unused: frozenset[Var]
    budget: Budget
    products: list[Network] = field(default_factory=list)
    factors: list[Factor] = field(default_factory=list)
    product_numbers: dict[Hashable, tuple[int, Const]] = field(default_factory=dict)
    factor_numbers: dict[Hashable, tuple[int, Const]] = field(default_factory=dict)
    related: set[frozenset[int]] = field(default_factory=set)
    open_slots: dict[tuple[int, Type], Var] = field(default_factory=dict)
    left: int = PARTS

    def slot(self, place: int, kind: Type) -> Var:
        """The variable that stands for an open slot: the same one for the same place and kind."""
        return self.open_slots.setdefault((place, kind), fresh(f"#{place}", kind))

    def product(self, p: Network, slots: Mapping[Var, Term]) -> tuple[int, Const] | None:
        """The number of the product with `slots` for its open indices, and its ratio to it; None if it is zero."""
        closed = Network(ONE, p.indices, tuple(substitute(f, slots) for f in p.factors))
        form = normal_form(closed.bare(), self.symmetries, self.unused, self.budget)
        if not form.sign:
            return None
        scale = _product(p.coefficient, number(form.coefficient), number(form.sign))
        open_ = frozenset(v for v in closed.bare().free if _place(v) >= 0)
        key = (form.key, open_)
        if key not in self.product_numbers:
            self.product_numbers[key] = len(self.products), _product(scale, reciprocal(p.coefficient))
            self.products.append(closed)
        known, own = self.product_numbers[key]
        return known, _product(scale, reciprocal(own))

    def splits(self, products: Collection[int]) -> list[Split]:
        """Splits of `products` whose factor two of them have, and in turn those of their cofactors."""
        if frozenset(products) in self.related or len(products) < 2 or self.is_full():
            return []
        self.related.add(frozenset(products))
        by_factor: dict[int, list[Split]] = defaultdict(list)
        for group in self._alike(products):
            if len(group) > self.left or self.is_full():
                break
            self.left -= len(group)
            for name, part in group:
                found = self._split(name, part)
                if found is not None:
                    by_factor[found.factor].append(found)
        shared = [splits for splits in by_factor.values() if len({s.product for s in splits}) > 1]
        inner = [s for splits in shared for s in self.splits({s.cofactor for s in splits})]
        return [*(s for splits in shared for s in splits), *inner]

    def is_full(self) -> bool:
        """Whether there is neither room nor time for more."""
        return len(self.products) >= LARGEST or self.budget.over()

    def vocabulary(self) -> Vocabulary:
        """What the numbers stand for, as the cost of reading needs it."""
        products = [Reading(words(p.bare()), _rank(p.factors), _is_entry(p)) for p in self.products]
        factors = [Reading(words(f.term) + len(f.shared), rank(f.term), False) for f in self.factors]
        return Vocabulary(products, factors, [len(f.shared) + len(f.outer) for f in self.factors])

    def _alike(self, products: Iterable[int]) -> list[list[tuple[int, tuple[int, ...]]]]:
        """The parts of products that look like a part of another one, short ones first."""
        looks: dict[tuple[Look, ...], list[tuple[int, tuple[int, ...]]]] = defaultdict(list)
        for name in products:
            factors = self.products[name].factors
            links = frozenset(v for f in factors for v in f.free if isinstance(v.kind, Index))
            bound = frozenset(self.products[name].indices)
            most = len(factors) - 1 if len(factors) <= WIDEST else 2
            seen = [look(f, bound) for f in factors]
            for part in connected_parts(factors, links, most):
                looks[tuple(sorted(seen[n] for n in part))].append((name, part))
        shared = (group for group in looks.values() if len({name for name, _ in group}) > 1)
        return sorted(shared, key=lambda group: len(group[0][1]))

    def _split(self, name: int, part: tuple[int, ...]) -> Split | None:
        p = self.products[name]
        inside = [p.factors[n] for n in part]
        outside = tuple(f for n, f in enumerate(p.factors) if n not in part)
        within = frozenset().union(*(f.free for f in inside))
        without = frozenset().union(*(f.free for f in outside))
        shared = [i for i in p.indices if i in within and i in without]
        private = [i for i in p.indices if i in within and i not in without]
        rest = tuple(i for i in p.indices if i not in within)
        front = total(private, mul(*inside))
        closed = plain_form(Lam(tuple(shared), front), self.symmetries, self.unused, self.budget)
        if closed.coefficient == NOTHING:
            return None
        held = tuple((shared[row[0][0]], row[0][1]) for row in closed.view.rows)
        outer = tuple(sorted((v for v in without if _place(v) >= 0), key=_place))
        slots = {v: mul(number(sign), self.slot(n, v.kind)) for n, (v, sign) in enumerate(held)}
        slots |= {v: self.slot(len(held) + n, v.kind) for n, v in enumerate(outer)}
        cofactor = self.product(Network(ONE, rest, outside), slots)
        if cofactor is None:
            return None
        scale = _product(number(closed.coefficient), number(closed.view.sign))
        key = (closed.key, closed.view.conj, outer)
        if key not in self.factor_numbers:
            self.factor_numbers[key] = len(self.factors), scale
            self.factors.append(Factor(front, held, outer))
        known, own = self.factor_numbers[key]
        return Split(name, _product(scale, reciprocal(own), cofactor[1]), known, cofactor[0])


def _rank(factors: Sequence[Term]) -> int:
    return max((rank(f) for f in factors), default=0)


def _is_entry(p: Network) -> bool:
    """Whether it is an entry of a tensor, or its conjugate, that is not summed."""
    match p.factors:
        case (App() | Var() | Conj(),) if not p.indices:
            return True
        case _:
            return False


def _sum(a: Const | None, b: Const) -> Const:
    result = b if a is None else add(a, b)
    assert isinstance(result, Const), "a sum of numbers"
    return result


def _product(*numbers: Const) -> Const:
    result = mul(*numbers)
    assert isinstance(result, Const), "a product of numbers"
    return result


# --- the e-graph ----------------------------------------------------------------------------------------------------


def collected(t: Term, named: Intermediates) -> tuple[Term, dict[str, Family]]:
    """The sum of terms `t` with common factors in front where that reads better.

    A contraction that stands in front of a sum becomes a value of `named`. Returns the term, and how often the laws
    fired; `t` itself where nothing was found.
    """
    shelf = Shelf(named.symmetries, frozenset(named.unused), named.budget)
    opens = named.open_indices(t)
    slots = {v: shelf.slot(n, v.kind) for n, v in enumerate(opens)}
    sizes: dict[int, Const] = {}
    for u in addends(t):
        found = shelf.product(network(u), slots)
        if found is not None:
            n, ratio = found
            sizes[n] = _sum(sizes.get(n), ratio)
    splits = shelf.splits(list(sizes))
    if not splits:
        return t, {}
    entries = (f"(entry {n})" for n, p in enumerate(shelf.products) if _is_entry(p))
    facts = [*map(_fact, dict.fromkeys(splits)), *entries, f"(let $sum {_combination(sizes)})"]

    def read(egraph: EGraph) -> Form | None:
        return best_form(egraph, "$sum", shelf.vocabulary())

    with session(("nest",)) as laws:
        form, families = laws.explore(facts, _SCHEDULE, ROUNDS, read, named.budget, NODES)
    if form is None or not form.is_collection:
        return t, families
    return _Builder(shelf, named).term(form, opens), families


_SCHEDULE = "look* collect"


def _fact(s: Split) -> str:
    inner = f"(With {s.factor} (Flat {s.cofactor}))"
    return f"(union (Flat {s.product}) {inner if s.ratio == ONE else f'(Scaled {_rationals(s.ratio)} {inner})'})"


def _combination(sizes: dict[int, Const]) -> str:
    return f"(Combination (multiset-of {' '.join(f'(Of {_rationals(c)} (Flat {n}))' for n, c in sizes.items())}))"


def _rationals(c: Const) -> str:
    return f"{rational(c.real)} {rational(c.imag)}"


@dataclass(frozen=True, slots=True)
class _Builder:
    """Forms as terms over the variables that stand for the slots."""

    shelf: Shelf
    named: Intermediates

    def term(self, form: Form, slots: Sequence[Var], alone: bool = True) -> Term:
        """The term of a form, as a flat product or a sum of such; `alone`: its front has no rival for a name."""
        match form.kind:
            case "flat":
                return _placed(self.shelf.products[form.number].bare(), slots)
            case "scaled":
                return mul(number(form.by), self.term(form.parts[0], slots, alone))
            case "sum":
                only = sum(p.collected is not None for p in form.parts) < 2
                return add(*(self.term(p, slots, only) for p in form.parts))
            case _:
                return self._with_factor(form, slots, alone)

    def _with_factor(self, form: Form, slots: Sequence[Var], alone: bool) -> Term:
        factor = self.shelf.factors[form.number]
        names = [fresh(v.name, v.kind) for v, _ in factor.shared]
        values = {v: mul(number(sign), w) for (v, sign), w in zip(factor.shared, names, strict=True)}
        front = substitute(_placed(factor.term, slots), values)
        is_contraction = isinstance(front, Sum)
        # of several contractions in a row, none is worth a name more than another
        if is_contraction and alone and not self._contracts(form.parts[0]) and form.collected is not None:
            front = self.named.name(front) if len(self.named.open_indices(front)) <= _MATRIX else front
        outer = [slots[_place(v)] for v in factor.outer]
        cofactor = self.term(form.parts[0], [*names, *outer], alone and not is_contraction)
        return network(total(names, mul(front, cofactor))).term()

    def _contracts(self, form: Form) -> bool:
        """Whether a contraction is among the factors in front of the sum that `form` is."""
        while form.kind in ("with", "scaled"):
            if form.kind == "with" and isinstance(self.shelf.factors[form.number].term, Sum):
                return True
            form = form.parts[0]
        return False


_MATRIX = 2
"""The indices of a contraction that gets a name where it stands in front of a sum."""


def _placed(t: Term, slots: Sequence[Var]) -> Term:
    return substitute(t, {v: slots[_place(v)] for v in t.free if _place(v) >= 0})
