"""Resolves the ranges of indices: slots and index variables that must have one range are joined.

Every slot and every index variable gets a provisional `Domain` of its own. An index that stands bare in a slot joins
its range with the slot's, a symmetry joins the slots that it permutes. At the end each class has a declared domain, or
is named after its first slot.
"""

from __future__ import annotations

from combdiff.errors import LanguageError, Span
from combdiff.records import dataclass
from combdiff.terms.types import Domain

Place = tuple[str, Span]

VALUES = "an entry of "
"""How the label of the range of an array of integers begins."""


@dataclass(slots=True)
class _Facts:
    """What is known of a class of ranges: its first slot, its domain, who says that it is N or changes sign."""

    slot: str
    domain: Domain | None
    anonymous: Place | None
    fixed: Place | None
    reflected: Place | None
    real: bool = False
    near: Domain | None = None  # a slot in which it stands with other indices or numbers


class Ranges:
    """A union-find of provisional domains.

    >>> ranges, here = Ranges(), Span(1, 1)
    >>> slot, index = ranges.new("slot 1 of x", here, slot="x.1", anonymous=True), ranges.new("index i", here)
    >>> ranges.unite(index, slot, here)
    >>> ranges.resolve(index).name
    'x.1'
    """

    def __init__(self) -> None:
        self._parent: dict[Domain, Domain] = {}
        self._facts: dict[Domain, _Facts] = {}
        self._places: dict[Domain, Place] = {}
        self._resolved: dict[Domain, Domain] = {}
        self._names: set[str] = set()
        self._typed: set[Domain] = set()

    def new(
        self, label: str, span: Span, *, slot: str = "", anonymous: bool = False, domain: Domain | None = None
    ) -> Domain:
        """A range of its own: of a slot (`slot` names it), `anonymous` if written N, or known to be `domain`."""
        node = Domain(f"?{len(self._parent)}")
        place = (label, span)
        self._parent[node] = node
        self._places[node] = place
        if domain is not None:
            self._typed.add(node)
        self._facts[node] = _Facts(slot, domain, place if anonymous else None, place if domain else None, None)
        return node

    def _find(self, node: Domain) -> Domain:
        parent = self._parent
        while parent[node] is not node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    def domain_of(self, node: Domain) -> Domain | None:
        """The declared domain of `node`, None if it has none (yet)."""
        return self._facts[self._find(node)].domain

    def is_typed(self, node: Domain) -> bool:
        """Whether its own type says how far it ranges, `i::N{n}`, and not only the slots that it stands in."""
        return node in self._typed

    def is_open(self, node: Domain) -> bool:
        """Whether `node` may still take any domain: the program writes neither N nor a domain's name for it."""
        facts = self._facts[self._find(node)]
        return facts.domain is None and facts.anonymous is None

    def is_free_slot(self, node: Domain) -> bool:
        """Whether it is a slot of a tensor of which no domain is known."""
        facts = self._facts[self._find(node)]
        return facts.domain is None and bool(facts.slot)

    def is_unknown(self, node: Domain) -> bool:
        """Whether nothing at all says how far `node` ranges."""
        return self.is_open(node) and not self._facts[self._find(node)].slot

    def is_without_range(self, node: Domain) -> bool:
        """Whether nothing says how far `node` ranges but that it is an index from 0, as in `i::N`."""
        facts = self._facts[self._find(node)]
        return facts.domain is None and not facts.slot

    def note_arithmetic(self, node: Domain, slot: Domain) -> None:
        """An index of this range stands in `slot`, but not bare."""
        self._facts[self._find(node)].near = slot

    def note_real(self, node: Domain) -> None:
        """An index of this range stands where a function takes a real number."""
        self._facts[self._find(node)].real = True

    def is_real(self, node: Domain) -> bool:
        """Whether it is no index after all, but a real number: it stands where such are taken, and in no slot."""
        facts = self._facts[self._find(node)]
        return facts.real and not facts.slot and facts.domain is None and facts.anonymous is None

    def same(self, a: Domain, b: Domain) -> bool:
        """Whether `a` and `b` are known to be one range."""
        if self._find(a) is self._find(b):
            return True
        domain = self.domain_of(a)
        return domain is not None and domain == self.domain_of(b)

    def label(self, node: Domain) -> str:
        """What `node` is the range of, in words."""
        return self._places[node][0]

    def place(self, node: Domain) -> Place:
        """Where `node` comes from: the label and place of a message's second excerpt."""
        label, span = self._places[node]
        return (f"{label} is declared here", span)

    def unite(self, index: Domain, slot: Domain, span: Span) -> None:
        """`index` and `slot` are one range; `span` is the place that says so."""
        a, b = self._find(index), self._find(slot)
        if a is b:
            return
        ours, theirs = self._facts[a], self._facts[b]
        if ours.domain and theirs.domain and ours.domain != theirs.domain:
            if _is_sized(ours.domain) and _is_sized(theirs.domain):
                raise self._sizes_clash(index, slot, span)
            raise self._clash(index, slot, span)
        if _excludes(ours, theirs) or _excludes(theirs, ours):
            raise self._clash(index, slot, span)
        self._join(a, b)

    def _join(self, a: Domain, b: Domain) -> None:
        # the older range stays the root, so that a class is named after its first slot
        old, new = (a, b) if int(a.name[1:]) < int(b.name[1:]) else (b, a)
        kept, gone = self._facts[old], self._facts.pop(new)
        self._parent[new] = old
        kept.slot = kept.slot or gone.slot
        kept.domain = kept.domain or gone.domain
        kept.fixed = kept.fixed or gone.fixed
        kept.anonymous = kept.anonymous or gone.anonymous
        kept.reflected = kept.reflected or gone.reflected
        kept.real = kept.real or gone.real

    def _clash(self, index: Domain, slot: Domain, span: Span) -> LanguageError:
        facts = self._facts[self._find(slot)]
        why = facts.fixed or facts.anonymous
        return LanguageError(
            f"{self.label(index)} ranges over {self._range(index)}, but {self.label(slot)} over {self._range(slot)}",
            span=span,
            also=(f"{why[0]} is declared here", why[1]) if why else self.place(slot),
            remedy="use an index of the slot's own domain, or declare both with one domain",
        )

    def _sizes_clash(self, index: Domain, slot: Domain, span: Span) -> LanguageError:
        ours, theirs = self._range(index), self._range(slot)
        label, place = self._facts[self._find(index)].fixed or self._places[index]
        return LanguageError(
            f"{self.label(index)} ranges over {ours}, but {self.label(slot)} over {theirs}",
            span=span,
            also=(f"{label} is {ours} here", place),
            remedy="use two indices, or give both slots one size",
        )

    def _range(self, node: Domain) -> str:
        domain = self.domain_of(node)
        if domain is None:
            return "an unnamed range (N)"
        return f"N{{{domain.name}}}" if _is_sized(domain) else f"the domain {domain.name}"

    def reflect(self, node: Domain, clause: Span) -> None:
        """A symmetry (`:ineg`) changes the sign of the index in the slot `node`."""
        facts = self._facts[self._find(node)]
        facts.reflected = facts.reflected or (self.label(node), clause)

    def check_reflected(self) -> None:
        """Every range whose index changes sign under a symmetry holds −b with b."""
        for facts in self._facts.values():
            domain = facts.domain
            plain = facts.anonymous is not None if domain is None else not (domain.symmetric or domain.periodic)
            if facts.reflected and plain:
                label, clause = facts.reflected
                listed = domain is not None and domain.listed
                why = "are a list that need not hold −b with b" if listed else "run from 0"
                raise LanguageError(
                    f"{label} changes sign under a symmetry, but the indices in it {why}",
                    span=clause,
                    also=_declared(facts.fixed or facts.anonymous),
                    remedy="give the index a domain with `symmetric = true`" + (" or `periodic = true`" * (not listed)),
                )

    def resolve(self, node: Domain) -> Domain:
        """The domain that `node` stands for in the end."""
        root = self._find(node)
        known = self._resolved.get(root)
        if known is None:
            known = self._resolved[root] = self._final(node, self._facts[root])
        return known

    def _final(self, node: Domain, facts: _Facts) -> Domain:
        if facts.domain is not None:
            return facts.domain
        label, _ = self._places[node]
        if not facts.slot and not (label.startswith(VALUES) and facts.near is None):
            raise self._unknown(node, facts)
        # entries of an array of integers that stand in no slot are numbers, whose range nothing needs
        first = facts.slot or f"{label.removeprefix(VALUES)}.0"
        name, n = first, 2
        while name in self._names:
            name, n = f"{first}#{n}", n + 1
        self._names.add(name)
        return Domain(name, symmetric=facts.reflected is not None)

    def _unknown(self, node: Domain, facts: _Facts) -> LanguageError:
        label, span = self._places[node]
        if label.startswith(VALUES):
            name = label.removeprefix(VALUES)
            return LanguageError(
                f"cannot find the range of {label}: it has no size, and no tensor has it alone in a slot",
                span=span,
                remedy=f"name the size of its range, {name}::(N) -> N{{n}}, as in x::RV{{n}} for x({name}(i))",
            )
        near = facts.near and self.domain_of(facts.near)
        name = label.removeprefix("index ")
        remedy = (
            f"write `{name}::R` for a real number, `{name}::N{{n}}` for an index of slots of the size n; "
            f"give an index with bounds a domain, `@domain K begin base = I; lower = 0; upper = 4 end` and `{name}::K`"
        )
        if near and near.declared and not near.listed:
            remedy = f"declare the type of {label}: `{name}::{near.name}`"
        return LanguageError(
            f"cannot find the range of {label}: no tensor has it alone in a slot", span=span, remedy=remedy
        )


def _is_sized(domain: Domain) -> bool:
    """Whether the text names its size: n, or n + 1."""
    return (domain.of or domain).sized


def _excludes(ours: _Facts, theirs: _Facts) -> bool:
    """Whether a declared domain meets a range that is written N; one of a size, N{n}, does not exclude it."""
    return ours.domain is not None and ours.domain.declared and theirs.anonymous is not None


def _declared(place: Place | None) -> Place | None:
    return place and (f"{place[0]} is declared here", place[1])
