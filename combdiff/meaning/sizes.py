"""Small sizes for the domains of a term, on which it is checked: two sets, so that no mistake hides behind one size.

At size 2 all odd central moments vanish, equal sizes hide a wrong index, and an odd periodic size does not know 2b = 0.
So the sizes of a set are at least 3 and all different, and the second set gives every domain another one, in the other
order: X' X has an inverse only if X has more rows than columns. A periodic domain has a prime from 7 on, which tells b
from −b and 2b from −3b, and then an even size in which steps wrap round.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from itertools import count
from math import prod

import numpy as np

from combdiff.language.printing.anchors import domains_of
from combdiff.meaning.points import random_offsets
from combdiff.records import dataclass
from combdiff.terms.conditions.needed import least_sizes
from combdiff.terms.terms import App, Const, Diff, Lam, Let, Term, Var, bound_by, children, subterms
from combdiff.terms.types import INTEGER, Domain, Index, Map, Type

Sizes = dict[Domain, int]
Known = tuple[Mapping[Domain, int], Mapping[Domain, int]]

ENTRIES = 2**13
"""The most entries of a tensor that sizes are chosen freely for."""

FARTHEST = 16
"""A range is not made longer than this for a constant index that lies in it."""

FEWEST = 3
"""The last of the ways to deal few sizes."""

_NEWTON = 24
"""So many values of an equation are computed for each of its unknowns: four for a slope, in some six iterations."""

_UNKNOWN: Known = ({}, {})


def default_sizes(term: Term, known: Mapping[Domain, int] | None = None, seed: int = 0) -> Sizes:
    """A small size for every axis that the types in `term` name: the first set of `two_sizes`.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> a, k = Domain("A.1"), Domain("BZ", declared=True, periodic=True)
    >>> list(default_sizes(fresh("A", Map((Index(a), Index(k)), REAL))).values())
    [3, 7]
    """
    return two_sizes(term, (known or {}, {}), seed)[0]


def two_sizes(term: Term, known: Known = _UNKNOWN, seed: int = 0, few: int = 0) -> tuple[Sizes, Sizes]:
    """Two sets of small sizes for every axis that the types in `term` name.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> a, k = Domain("A.1"), Domain("BZ", declared=True, periodic=True)
    >>> first, second = two_sizes(fresh("A", Map((Index(a), Index(k)), REAL)))
    >>> list(first.values()), list(second.values())
    ([3, 7], [4, 2])

    In a lattice the first direction does that, and the others are smaller. Lists of offsets are drawn by `seed`.

    Args:
        known: sizes that were given before; they are kept, but for a constant index that lies beyond.
        few: for arrays or loops that would else be large. From 1 on 2 and 3 are dealt in turn, and a lattice is a line,
            and then small. With 2 periodic domains have 5 and 2 values, with 3 = FEWEST they have 3 and 2.
    """
    kinds, least = _named(term)
    for domain in (d for kind in kinds for d in domains_of(kind)):
        if domain.of is not None:
            # so that there is more than one value of the shorter range
            least[domain.of] = max(least.get(domain.of, 0), domain.less + 2)
    first = _Dealer(known[0], least, few)
    second = _Dealer(known[1], least, few, first)
    domains = list(dict.fromkeys(d for kind in kinds for d in domains_of(kind)))
    for domain in domains:
        first.deal(domain, seed)
    turned = [d for d in domains if d.periodic] + [d for d in reversed(domains) if not d.periodic]
    for domain in domains if few else turned:
        second.deal(domain, seed)
    if not few and any(dealer.entries(kind) > ENTRIES for kind in kinds for dealer in (first, second)):
        return two_sizes(term, _UNKNOWN, seed, few=1)
    return first.sizes, {axis: second.sizes[axis] for axis in first.sizes}


def evaluation_steps(term: Term, sizes: Mapping[Domain, int]) -> int:
    """How many nodes are visited where `term` is evaluated with a loop for each of its indices.

    >>> from combdiff.terms.terms import Sum, fresh
    >>> i, n = fresh("i", Index(Domain("n"))), Domain("n")
    >>> evaluation_steps(Sum((i,), i), {n: 3})
    4
    """
    known: dict[Term, int] = {}

    def steps(t: Term) -> int:
        if t not in known:
            bound = () if isinstance(t, Let) else bound_by(t)
            turns = prod(sizes[axis] for v in bound if isinstance(v.kind, Index) for axis in _axes(v.kind))
            known[t] = 1 + turns * sum(map(steps, children(t)))
            if isinstance(t, Diff) and isinstance(t.of, Lam):
                # a linear map is asked for its columns, an equation for its slopes
                known[t] *= prod(sizes[axis] for v in t.of.params[:1] for d in domains_of(v.kind) for axis in d.axes)
                known[t] *= _NEWTON if t.kind == "root" else 1
        return known[t]

    return steps(term)


def _axes(kind: Index) -> tuple[Domain, ...]:
    return () if kind.domain is None else kind.domain.axes


def _named(term: Term) -> tuple[Iterable[Type], dict[Domain, int]]:
    """The types of the variables in a term, and the least sizes that hold its constant indices, and 4 - i for i ≤ 4."""
    kinds: dict[Type, None] = {}
    least: dict[Domain, int] = {}
    arithmetic = False
    for u in subterms(term):
        for var in (u,) if isinstance(u, Var) else bound_by(u):
            kinds[var.kind] = None
        if isinstance(u, App) and isinstance(u.function.type, Map):
            for kind, argument in zip(u.function.type.params, u.args, strict=True):
                arithmetic = arithmetic or argument.type == INTEGER
                if isinstance(argument, Const) and isinstance(kind, Index) and kind.domain is not None:
                    symmetric = kind.domain.symmetric
                    needed = int(2 * abs(argument.real) + 1 if symmetric else argument.real + 1)
                    if needed <= FARTHEST:
                        least[kind.domain] = max(needed, least.get(kind.domain, 0))
    for domain, needed in least_sizes(term).items() if arithmetic else ():
        if needed <= FARTHEST:
            least[domain] = max(needed, least.get(domain, 0))
    return kinds, least


@dataclass(slots=True)
class _Dealer:
    """Deals one set of sizes: none that is taken in it, nor the one that a domain has in the `other` set.

    Beside another set, ranges get sizes that grow; `largest` is the last one.
    """

    known: Mapping[Domain, int]
    least: Mapping[Domain, int]
    few: int
    other: _Dealer | None = None
    sizes: Sizes = field(default_factory=dict)
    taken: set[int] = field(init=False)
    largest: int = 0

    def __post_init__(self) -> None:
        self.taken = set(self.known.values())

    def deal(self, domain: Domain, seed: int) -> None:
        """Sizes for the axes of a domain that has none yet; a range that is longer than another follows that one."""
        if domain.of is not None:
            self.deal(domain.of, seed)
            self.sizes[domain] = domain.extent(self.sizes)
            return
        for direction, axis in enumerate(domain.axes):
            if axis not in self.sizes:
                self.sizes[axis] = self._list(domain, seed) if domain.listed else self._size(axis, direction)
                self.taken.add(self.sizes[axis])

    def _list(self, domain: Domain, seed: int) -> int:
        (axis,) = domain.axes
        if axis in self.known:
            return self.known[axis]
        rng = np.random.default_rng([seed, *domain.name.encode(), *(() if self.other is None else (1,))])
        found = random_offsets(domain, rng)
        while self.other is not None and found == self.other.sizes[axis]:
            found = random_offsets(domain, rng)
        return found

    def _size(self, axis: Domain, direction: int) -> int:
        if axis.count is not None:
            return axis.count
        least = 0 if axis.periodic else self.least.get(axis, 0)
        if self.known.get(axis, -1) >= least:
            return self.known[axis]
        if self.few and axis.periodic and (direction or self.few > 1):
            return self._of_few(direction)
        if self.few and not axis.periodic:
            turn = (len(self.sizes) + (self.other is not None)) % 2
            return max(least, 3 + 2 * turn if axis.symmetric else 2 + turn)
        others = self.other.sizes[axis] if self.other else 0
        least = least if axis.periodic else max(least, self.largest)
        candidates = self._candidates(axis, direction)
        found = next(n for n in candidates if n >= least and n not in self.taken and n != others)
        if self.other is not None and not axis.periodic:
            self.largest = found
        return found

    def _of_few(self, direction: int) -> int:
        """The size of a periodic axis where few values are wanted: first of all a lattice becomes a line."""
        if direction:
            return 1 if self.other is None or self.few == FEWEST else 2 + direction % 2
        return 2 if self.other is not None else 3 if self.few == FEWEST else 5

    def _candidates(self, axis: Domain, direction: int) -> Iterator[int]:
        """The sizes of the kind that a domain wants, small ones first."""
        if axis.periodic and direction:
            return count(2)
        if axis.periodic:
            return (n for n in count(7) if _is_prime(n)) if self.other is None else count(2, 2)
        return count(3, 2) if axis.symmetric else count(3)

    def entries(self, kind: Type) -> int:
        """How many entries an array of type `kind` has; 1 for what is none."""
        domains = domains_of(kind) if isinstance(kind, Map) and kind.is_tensor else ()
        return prod(self.sizes[axis] for d in domains for axis in d.axes)


def _is_prime(n: int) -> bool:
    return all(n % m for m in range(2, n))
