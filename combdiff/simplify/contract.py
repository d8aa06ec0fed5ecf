"""Stage a: Σ and δ meet, conj moves to the leaves (`rules/contract.egg` and its neighbours, run by egglog).

A raw pullback, a sum of terms such as Σ_{i,t} t' δ(v, t, δ(i, d, k)), becomes a sum of plain contractions. Here is only
the schedule; every law is in `rules/`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter

from combdiff.errors import UnsupportedError
from combdiff.language.terms import Add, Delta, Sum, Term, add, alpha_equal, subterms
from combdiff.language.types import COMPLEX, REAL, Index
from combdiff.simplify.egraph import Family, session
from combdiff.simplify.translation import Translation

FAMILIES = ("terms", "substitute", "index", "algebra", "contract", "conjugate")

SETTLING = ("substitute", "index", "conjugate", "algebra", "contract", "index", "solve")
"""Rulesets that are saturated, one after the other, before a δ meets its Σ."""

_INSIDE = f"(seq {' '.join(f'(saturate (run {name}))' for name in SETTLING)} (run meet))"
_OUTWARD = "(run outward)"
_EXPAND = "(run expand)"

_LARGEST = 150
"""Nodes of the terms that share an e-graph."""


def contract(
    terms: Sequence[Term], *, expand: bool = False, seconds: float = 60.0
) -> tuple[list[Term], dict[str, Family]]:
    """`terms` with every δ contracted that can be, and conj at the leaves; with `expand`, products multiplied out.

    Returns the terms, and how often each family of laws fired.

    Raises:
        UnsupportedError: if a sum over all numbers is left (a δ that no law solves).
        BudgetError: if it takes longer than `seconds`.
    """
    deadline = perf_counter() + seconds
    results, account = _contracted(terms, expand, deadline)
    while any(_waits_on_a_line(t) for t in results):
        # a variable that stood in the δ of another one as well is free to be solved for once that one is gone
        again, more = _contracted(results, expand, deadline)
        _account(account, more)
        if all(alpha_equal(a, b) for a, b in zip(again, results, strict=True)):
            break
        results = again
    return results, account


def _waits_on_a_line(t: Term) -> bool:
    """Whether a sum over real numbers still has a δ to meet."""
    return any(
        isinstance(u, Sum)
        and any(v.kind == REAL for v in u.indices)
        and any(isinstance(d, Delta) and not d.free.isdisjoint(u.indices) for d in subterms(u.body))
        for u in subterms(t)
    )


def _account(into: dict[str, Family], families: dict[str, Family]) -> None:
    for name, family in families.items():
        total = into.setdefault(name, Family())
        total.matches += family.matches
        total.seconds += family.seconds


def _contracted(terms: Sequence[Term], expand: bool, deadline: float) -> tuple[list[Term], dict[str, Family]]:
    later = (_OUTWARD, _EXPAND) if expand else (_OUTWARD,)
    summands = [u.terms if isinstance(u, Add) and not isinstance(u.type, Index) else (u,) for u in terms]
    contracted: list[Term] = []
    account: dict[str, Family] = {}
    for batch in _batches([t for group in summands for t in group]):
        book = Translation(spell_powers=expand)
        roots = [f"$root{n}" for n in range(len(batch))]
        texts = [f"(let {root} {book.root(t)})" for root, t in zip(roots, batch, strict=True)]
        facts = "\n".join([*book.facts(), *texts])
        run = session(FAMILIES).run(facts, roots, _INSIDE, deadline - perf_counter(), later)
        contracted += [book.reader(dag)(root) for dag, root in run.roots]
        _account(account, run.families)
    for t in contracted:
        _refuse_leftovers(t)
    left = iter(contracted)
    return [add(*(next(left) for _ in group)) for group in summands], account


def _batches(terms: Sequence[Term]) -> Iterator[list[Term]]:
    """`terms` in e-graphs of moderate size: its joins cost more than linearly, starting one costs a millisecond."""
    batch: list[Term] = []
    nodes = 0
    for t in terms:
        size = sum(1 for _ in subterms(t))
        if batch and nodes + size > _LARGEST:
            yield batch
            batch, nodes = [], 0
        batch.append(t)
        nodes += size
    if batch:
        yield batch


def _refuse_leftovers(t: Term) -> None:
    """A sum over all complex numbers comes only from the B rule, and must have met its δ."""
    left = {v for u in subterms(t) if isinstance(u, Sum) for v in u.indices}
    if any(v.kind == COMPLEX for v in left):
        raise UnsupportedError(
            "a sum over all numbers is left in the derivative, which means that a δ could not be solved",
            remedy="write the program without arithmetic of real or complex numbers in the places of indices",
        )
