"""Orders of several contractions at once: a part that some share is made once, also where none asks for it alone.

The gradients of Σ T(i, j, k) A(i, r) B(j, r) C(k, r) share Σ_k T C: with it two of them cost one product with T
together, though each costs the same in other orders. Contractions are looked at in the order in which they are made;
parts that are worth making are added one at a time while the whole becomes cheaper.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from combdiff.codegen.orders import Cost, Factors, Ways, in_order, leaves
from combdiff.codegen.reuse import Key, Made

_WORTHWHILE = 50  # a gain of less than this share of the whole is not sought

Shared = Mapping[int, frozenset[int]]


@dataclass
class _Contraction:
    """One of them: which of its parts others have too, and the orders that were found."""

    factors: Factors
    keys: Mapping[int, Key]

    def ways(self, known: Collection[Key], whole: int = 0) -> Ways:
        """The cheapest order to make all, or the set `whole`, if other sets with a known key are there."""
        groups = frozenset(group for group, key in self.keys.items() if key in known and group != whole)
        return self.factors.cheapest(groups, whole)

    def made(self, ways: Ways, group: int) -> set[Key]:
        """The keys of what is made on the way to a set."""
        return {self.keys[left | right] for left, right in in_order(ways, group) if left | right in self.keys}


def shared_parts(networks: Sequence[Factors], made: Made, total: Cost) -> Shared:
    """For contractions, by their numbers: the sets of factors to make for several of them; empty if none pays.

    `total` is what they cost as they were made, one after the other.
    """
    alone = [f.cheapest()[f.all].cost if f.exact else Cost() for f in networks]
    gain = total.products // _WORTHWHILE
    if total.products - max((cost.products for cost in alone), default=0) <= gain:
        return {}  # one of them alone costs nearly as much
    contractions = _with_keys(networks, made, gain)
    chosen: frozenset[Key] = frozenset()
    total, uses = _evaluated(contractions, chosen)
    candidates = {key for c in contractions for key in c.keys.values()}
    while candidates:
        trials = {key: _evaluated(contractions, chosen | {key}) for key in candidates}
        best = min(trials, key=lambda key: (trials[key][0], key))
        if total.products - trials[best][0].products <= gain:
            break
        chosen |= {best}
        total, uses = trials[best]
        candidates -= {best}
    return uses


def _with_keys(networks: Sequence[Factors], made: Made, gain: int) -> list[_Contraction]:
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
    total = Cost()
    uses: dict[int, frozenset[int]] = {}
    for number, c in enumerate(contractions):
        if not c.factors.exact:
            continue
        ways = c.ways({*done, *chosen})
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
    return total, uses
