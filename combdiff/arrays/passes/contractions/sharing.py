"""Orders of several contractions at once: a part that some share is made once, also where none asks for it alone.

The gradients of Σ T(i, j, k) A(i, r) B(j, r) C(k, r) share Σ_k T C: with it two of them cost one product with T
together, though each costs the same in other orders. Contractions are looked at in the order in which they are made;
parts that are worth making are added one at a time while the whole becomes cheaper.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence, Set

from combdiff.arrays.passes.contractions.orders import Cost, Factors, Pairings, in_order, leaves
from combdiff.arrays.passes.contractions.reuse import Key, KnownContractions
from combdiff.records import dataclass

_WORTHWHILE = 50  # a gain of less than this share of the whole is not sought
_LEAST = 10_000  # multiplications that are over sooner than it takes to call for one array operation or two
_WORK = 1_000_000  # steps that the search may take, a second or two; what is most promising is looked at first

Shared = Mapping[int, frozenset[int]]


@dataclass
class _Contraction:
    """One of them: which of its parts others have too, and the orders that were found."""

    factors: Factors
    keys: Mapping[int, Key]

    def __post_init__(self) -> None:
        self.groups: dict[Key, list[int]] = defaultdict(list)
        for group, key in self.keys.items():
            self.groups[key].append(group)

    def ways(self, known: Set[Key], whole: int = 0) -> Pairings:
        """The cheapest order to make all, or the set `whole`, if other sets with a known key are there."""
        there = self.groups.keys() & known
        groups = frozenset(group for key in there for group in self.groups[key] if group != whole)
        return self.factors.cheapest(groups, whole)

    def made(self, ways: Pairings, group: int) -> set[Key]:
        """The keys of what is made on the way to a set."""
        return {self.keys[left | right] for left, right in in_order(ways, group) if left | right in self.keys}


def shared_parts(networks: Sequence[Factors], made: KnownContractions, total: Cost) -> Shared:
    """For contractions, by their numbers: the sets of factors to make for several of them; empty if none pays.

    `total` is what they cost as they were made, one after the other.
    """
    if total.products < _LEAST:
        return {}
    alone = [f.cheapest()[f.all].cost if f.exact else Cost() for f in networks]
    gain = total.products // _WORTHWHILE
    if total.products - max((cost.products for cost in alone), default=0) <= gain:
        return {}  # one of them alone costs nearly as much
    contractions = _with_keys(networks, made, gain)
    work = _Work(contractions)
    chosen: frozenset[Key] = frozenset()
    total, uses = _evaluated(contractions, chosen)
    candidates = _by_promise(contractions)
    while candidates:
        trials = {key: _evaluated(contractions, chosen | {key}) for key in candidates if not work.done()}
        if not trials:
            break
        best = min(trials, key=lambda key: (trials[key][0], key))
        if total.products - trials[best][0].products <= gain:
            break
        chosen |= {best}
        total, uses = trials[best]
        candidates.remove(best)
    return uses


@dataclass
class _Work:
    """What the search has taken so far: counted, not timed, so that the same program always becomes the same code."""

    contractions: Sequence[_Contraction]
    evaluations: int = 0

    def done(self) -> bool:
        """Whether there is to be no other evaluation; asked before each."""
        self.evaluations += 1
        once = sum(1 + len(c.groups) for c in self.contractions)
        return self.evaluations * once + sum(c.factors.looked for c in self.contractions) > _WORK


def _by_promise(contractions: Sequence[_Contraction]) -> list[Key]:
    """The keys of all parts, those first that would save most if each contraction were spared making its own."""
    saved: Counter[Key] = Counter()
    for c in contractions:
        ways = c.factors.cheapest() if c.groups else {}
        for key, groups in c.groups.items():
            saved[key] += ways[groups[0]].cost.products
    return sorted(saved, key=lambda key: (-saved[key], key))


def _with_keys(networks: Sequence[Factors], made: KnownContractions, gain: int) -> list[_Contraction]:
    """The contractions, with keys for the parts that some may share and that cost more than is to be gained."""
    rows = []
    for f in networks:
        ways = f.cheapest() if f.exact else {}
        rows.append({g: made.step_numbers(f.members(g)) for g, way in ways.items() if way.cost.products > gain})
    count = Counter(steps for row in rows for steps in set(row.values()))
    return [
        _Contraction(f, {g: made.form(f, g).key for g, steps in row.items() if count[steps] > 1})
        for f, row in zip(networks, rows, strict=True)
    ]


def _evaluated(contractions: Sequence[_Contraction], chosen: Collection[Key]) -> tuple[Cost, Shared]:
    """What all cost together if the chosen parts are made where they are first of use, and where they are of use."""
    done: set[Key] = set()
    known = set(chosen)
    total = Cost()
    uses: dict[int, frozenset[int]] = {}
    for number, c in enumerate(contractions):
        if not c.factors.exact:
            continue
        ways = c.ways(known)
        used = [g for g in leaves(ways, c.factors.all) if g in c.keys and c.keys[g] in chosen]
        for group in used:
            if c.keys[group] not in done:
                inside = c.ways(done, group)
                total += inside[group].cost
                done |= c.made(inside, group)
        if used:
            uses[number] = frozenset(used)
        total += ways[c.factors.all].cost
        done |= c.made(ways, c.factors.all)
        known |= done
    return total, uses
