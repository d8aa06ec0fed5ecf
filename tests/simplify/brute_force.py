"""Canonical forms with nothing clever: every renaming of the bound indices times every element of every group.

A case is a sum over a product of entries, some of them inside exp, cos, sin or a fifth power, with sums of their own.
It is held apart from terms, and shares no code with what it tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations, product
from random import Random
from typing import Any

from combdiff.terms.terms import App, Term, Var, call, conj, fresh, mul, neg, number, power, total
from combdiff.terms.types import COMPLEX, REAL, Domain, Index, Map, Symmetry

N = Domain("n", declared=True)
X = Domain("x", declared=True, symmetric=True)
K = Domain("k", declared=True, periodic=True)
Literal = tuple[str, int]
# functions of a number, and what f(−x) is of f(x): 0 where it is neither f(x) nor −f(x)
FUNCTIONS = {"exp": 0, "cos": 1, "sin": -1, "^5": -1}


@dataclass(frozen=True)
class Tensor:
    """Slots and the whole group: (sign, conj, [(slot, ±1) for every slot])."""

    var: Var
    domains: tuple[Domain, ...]
    group: tuple[tuple[int, bool, tuple[tuple[int, int], ...]], ...]


@dataclass(frozen=True)
class Entry:
    """T(i, −x)', or a function of a sum: its name is then `function` and `inner` is set."""

    tensor: Tensor | None = None
    conj: bool = False
    places: tuple[Literal, ...] = ()
    function: str = ""
    inner: Case | None = None


@dataclass(frozen=True)
class Case:
    """sign · Σ over `bound` of the product of the entries."""

    sign: int
    bound: tuple[tuple[str, Domain], ...]
    entries: tuple[Entry, ...]


# --- random cases ---


def random_tensor(rng: Random, name: str) -> Tensor:
    domains = rng.choice([(N,), (X,), (K,), (N, N), (N, N), (N, N), (X, X), (K, K), (N, X), (N, N, N), (N, N, N, N)])
    rank = len(domains)
    real = rng.random() < 0.4
    symmetries = _random_symmetries(rng, domains)
    kind = Map(tuple(map(Index, domains)), REAL if real else COMPLEX, tuple(symmetries))
    group = _closure(rank, symmetries, real)
    if real:
        # T = T' among the elements, so that conj makes no difference
        group = tuple((sign, c, rows) for sign, _, rows in group for c in (False, True))
    identity = tuple((s, 1) for s in range(rank))
    if any(sign < 0 and rows == identity and not c for sign, c, rows in group):
        # zero: a case of its own
        return random_tensor(rng, name)
    return Tensor(fresh(name, kind), domains, group)


def _random_symmetries(rng: Random, domains: tuple[Domain, ...]) -> list[Symmetry]:
    rank = len(domains)
    symmetries = []
    for _ in range(rng.randint(0, 2)):
        turning = [s + 1 for s in range(rank) if domains[s] is not N]
        if turning and rng.random() < 0.5:
            slots = tuple(rng.sample(turning, rng.randint(1, len(turning))))
            symmetries.append(Symmetry.reflection(slots, rank, rng.choice(["ineg", "inegc"])))
        elif len(set(domains)) == 1:
            order = tuple(rng.sample(range(1, rank + 1), rank))
            symmetries.append(Symmetry.permutation(order, rng.choice(["id", "conj", "neg"])))
    return symmetries


def _closure(rank: int, symmetries: list[Symmetry], real: bool) -> tuple[tuple[int, bool, Any], ...]:
    """T(a) = sign · conj? T(b) with b_s = turn · a_slot; each element acts on what the others say."""
    generators = [(s.sign, s.conj and not real, tuple(row[0] for row in s.rows)) for s in symmetries]
    found = {(1, False, tuple((s, 1) for s in range(rank)))}
    while True:
        more = {
            (sign * g, c != h, tuple((rows[slot][0], turn * rows[slot][1]) for slot, turn in images))
            for sign, c, rows in found
            for g, h, images in generators
        }
        if more <= found:
            break
        found |= more
    return tuple(sorted(found))


def random_case(rng: Random, tensors: list[Tensor], outer: tuple[tuple[str, Domain], ...] = (), depth: int = 1) -> Case:
    level = "ijklm" if depth else "pqrst"
    bound = tuple((letter, rng.choice((N, N, N, X, K))) for letter in level[: rng.randint(1, 4 if depth else 2)])
    known = [*bound, *outer, ("a", N), ("c", N), ("x", X), ("f", K)]
    if outer:
        known += outer
    entries = []
    for _ in range(rng.randint(1, 4 if depth else 2)):
        if depth and rng.random() < 0.2:
            inner = random_case(rng, tensors, bound, 0)
            entries.append(Entry(function=rng.choice(list(FUNCTIONS)), inner=inner))
            continue
        tensor = rng.choice(tensors)
        chosen = [[n for n, e in known[: len(bound) + len(outer)] if e is d] for d in tensor.domains]
        free = [[n for n, e in known if e is d] for d in tensor.domains]
        names = [
            rng.choice(own if own and rng.random() < 0.85 else every) for own, every in zip(chosen, free, strict=True)
        ]
        turns = [rng.choice((1, 1, -1)) if d is not N else 1 for d in tensor.domains]
        entries.append(Entry(tensor, rng.random() < 0.3, tuple(zip(names, turns, strict=True))))
    return Case(rng.choice((1, -1)), bound, tuple(entries))


def relabelled(rng: Random, case: Case, names: dict[str, Literal] | None = None) -> Case:
    """An equal case: other names, other order, images of the entries."""
    names = dict(names or {})
    for d in (N, X, K):
        letters = [n for n, e in case.bound if e is d]
        for old, new in zip(letters, rng.sample(letters, len(letters)), strict=True):
            names[old] = new, rng.choice((1, -1)) if d is not N else 1
    sign = case.sign
    entries = []
    for e in case.entries:
        if e.inner is not None:
            entries.append(Entry(function=e.function, inner=relabelled(rng, e.inner, names)))
            continue
        assert e.tensor is not None
        factor, turned, rows = rng.choice(e.tensor.group)
        places = [_renamed(e.places[slot], names, turn) for slot, turn in rows]
        sign *= factor
        entries.append(Entry(e.tensor, e.conj != turned, tuple(places)))
    rng.shuffle(entries)
    bound = list(case.bound)
    rng.shuffle(bound)
    return Case(sign, tuple(bound), tuple(entries))


def _renamed(place: Literal, names: dict[str, Literal], turn: int = 1) -> Literal:
    new, t = names.get(place[0], (place[0], 1))
    return new, t * turn * place[1]


# --- as a term ---


def term(case: Case, scope: dict[str, Var]) -> Term:
    inner = {**scope, **{n: fresh(n, Index(d)) for n, d in case.bound}}
    factors = [_factor(e, inner) for e in case.entries]
    return mul(number(case.sign), total(tuple(inner[n] for n, _ in case.bound), mul(*factors)))


def _factor(e: Entry, scope: dict[str, Var]) -> Term:
    if e.inner is not None:
        argument = term(e.inner, scope)
        return power(argument, number(5)) if e.function == "^5" else call(e.function, argument)
    assert e.tensor is not None
    entry = App(e.tensor.var, tuple(scope[n] if t > 0 else neg(scope[n]) for n, t in e.places))
    return conj(entry) if e.conj else entry


# --- the form ---


def form(case: Case) -> tuple[Any, frozenset[int]]:
    """The least spelling of all, and the signs with which it is reached: both if the case is zero."""
    least: Any = None
    signs: set[int] = set()
    for names in _namings(case, {}):
        spelled, found = _spelled(case, names)
        if least is None or spelled < least:
            least, signs = spelled, set()
        if spelled == least:
            signs |= found
    return least, frozenset(signs)


def _namings(case: Case, names: dict[str, Literal]) -> Iterator[dict[str, Literal]]:
    """All ways to rename and reverse the bound indices, those of inner sums too."""
    letters = [[n for n, e in case.bound if e is d] for d in (N, X, K)]
    turning = [n for n, d in case.bound if d is not N]
    inner = [e.inner for e in case.entries if e.inner is not None]
    for orders in product(*(permutations(range(len(group))) for group in letters)):
        for turns in product((1, -1), repeat=len(turning)):
            turn = dict(zip(turning, turns, strict=True))
            new = {
                n: (f"{'nxk'[which]}{len(names)}.{place}", turn.get(n, 1))
                for which, (group, order) in enumerate(zip(letters, orders, strict=True))
                for n, place in zip(group, order, strict=True)
            }
            yield from _all_namings(inner, {**names, **new})


def _all_namings(cases: list[Case], names: dict[str, Literal]) -> Iterator[dict[str, Literal]]:
    if not cases:
        yield names
        return
    for some in _namings(cases[0], names):
        for others in _all_namings(cases[1:], names):
            yield {**others, **{(id(cases[0]), n): some[n] for n, _ in cases[0].bound}}  # type: ignore[dict-item]


def _spelled(case: Case, names: dict[str, Literal]) -> tuple[Any, set[int]]:
    own = {**names, **{n: names[id(case), n] for n, _ in case.bound if (id(case), n) in names}}  # type: ignore[index]
    signs = {case.sign}
    keys = []
    for e in case.entries:
        if e.inner is not None:
            key, found = _spelled(e.inner, own)
            parity = FUNCTIONS[e.function]
            if len(found) == 2:
                keys.append((1, e.function, (0, ())))
                signs = {1, -1} if parity < 0 else signs
                continue
            sign = found.pop()
            keys.append((1, e.function, (1, key) if parity else (sign, key)))
            signs = {s * sign for s in signs} if parity < 0 else signs
            continue
        assert e.tensor is not None
        images = [
            ((e.conj != turned, tuple(_renamed(e.places[slot], own, turn) for slot, turn in rows)), sign)
            for sign, turned, rows in e.tensor.group
        ]
        least = min(image for image, _ in images)
        signs = {s * sign for s in signs for image, sign in images if image == least}
        keys.append((0, str(e.tensor.var.uid), least))
    idle = tuple(sorted(d.name for n, d in case.bound if not _occurs(n, case)))
    return (idle, tuple(sorted(keys))), signs


def _occurs(name: str, case: Case) -> bool:
    return any(
        _occurs(name, e.inner) if e.inner is not None else any(n == name for n, _ in e.places) for e in case.entries
    )
