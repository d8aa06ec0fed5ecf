"""Stage a: Σ and δ meet, conj moves to the leaves (`rules/contract.egg` and its neighbours, run by egglog).

A raw pullback, a sum of terms such as Σ_{i,t} t' δ(v, t, δ(i, d, k)), becomes a sum of plain contractions. Here is only
the schedule; every law is in `rules/`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from combdiff.budget import Budget, OutOfTime
from combdiff.errors import BudgetError, UnsupportedError
from combdiff.simplify.account import Family
from combdiff.simplify.contraction.cancelling import without_inverses
from combdiff.simplify.contraction.egraph import FAMILIES, Run, session
from combdiff.simplify.contraction.fourier import FOURIER, without_phases
from combdiff.simplify.contraction.function_spaces import without_function_sums
from combdiff.simplify.contraction.places import with_flat_places
from combdiff.simplify.contraction.translation import Translation
from combdiff.simplify.fallback import without_number_sums, written_size
from combdiff.terms.network import addends
from combdiff.terms.terms import Delta, Sum, Term, add, alpha_equal, children, subterms
from combdiff.terms.types import COMPLEX, is_real

SETTLING = ("substitute", "index", "conjugate", "algebra", "contract", "index", "solve", "index")
"""Rulesets that are saturated, one after the other, before a δ meets its Σ."""

DEEPEST = 4_000
"""Levels of a term that enters an e-graph: egglog walks it by recursion."""

_INSIDE = " ".join([*(f"{name}*" for name in SETTLING), "meet*"])
_OUTWARD = "outward"
_EXPAND = "expand"

_LARGEST = 150
"""Nodes of the terms that share an e-graph."""


def contract(
    terms: Sequence[Term],
    *,
    expand: bool = False,
    budget: Budget | None = None,
    ask: Callable[[], None] = lambda: None,
) -> tuple[list[Term], dict[str, Family]]:
    """`terms` with every δ contracted that can be, and conj at the leaves; with `expand`, products multiplied out.

    Integrals over a line meet in phases, too, as those of a Fourier transform and its inverse (`fourier.py`).

    Returns the terms, and how often each family of laws fired. Where the budget ends first, a term stays as it is, but
    for sums over numbers; `ask` is called in between then, and may raise.

    Raises:
        UnsupportedError: if a sum over all numbers is left (a δ that no law solves).
        BudgetError: if one is left where the budget was spent, or a term is nested too deep.
    """
    budget = budget or Budget()
    results, account = _contracted([*map(with_flat_places, terms)], expand, budget, ask)
    while not budget.spent:
        fixed = [*map(without_function_sums, results)]
        met = [*map(without_phases, fixed)]
        if met != fixed:
            _account(account, {FOURIER: Family(1)})
        met = [*map(with_flat_places, met)]
        if met == results and not any(_waits_on_a_line(t) for t in results):
            break
        # a variable that stood in the δ of another one as well is free to be solved for once that one is gone
        again, more = _contracted(met, expand, budget, ask)
        _account(account, more)
        if all(alpha_equal(a, b) for a, b in zip(again, results, strict=True)):
            break
        results = again
    for t in results:
        _refuse_leftovers(t, budget)
    return results if budget.spent else [*map(without_inverses, results)], account


def _waits_on_a_line(t: Term) -> bool:
    """Whether a sum over real numbers still has a δ to meet."""
    return any(
        isinstance(u, Sum)
        and any(is_real(v.kind) for v in u.indices)
        and any(not d.free.isdisjoint(u.indices) for d in subterms(u.body, Delta))
        for u in subterms(t)
    )


def _account(into: dict[str, Family], families: dict[str, Family]) -> None:
    for name, family in families.items():
        total = into.setdefault(name, Family())
        total.matches += family.matches
        total.seconds += family.seconds


def _contracted(
    terms: Sequence[Term], expand: bool, budget: Budget, ask: Callable[[], None]
) -> tuple[list[Term], dict[str, Family]]:
    later = (_OUTWARD, _EXPAND) if expand else (_OUTWARD,)
    summands = [addends(u) for u in terms]
    contracted: list[Term] = []
    account: dict[str, Family] = {}
    # what becomes of a product is known before the work is done: no e-graph is begun that would be too large
    fits = not expand or sum(written_size(t, expand) for t in terms) <= budget.nodes
    for batch in _batches([t for group in summands for t in group]):
        found = None
        if fits and not budget.over():
            found = _by_laws(batch, expand, later, budget, account)
        budget.spent |= found is None
        for t in batch if found is None else ():
            ask()
            contracted.append(without_number_sums(t))
        contracted += found or ()
    left = iter(contracted)
    return [add(*(next(left) for _ in group)) for group in summands], account


def _by_laws(
    batch: Sequence[Term], expand: bool, later: Sequence[str], budget: Budget, account: dict[str, Family]
) -> list[Term] | None:
    """What the laws make of some terms in one e-graph; None where the budget ends first."""
    # terms that share an e-graph have fewer nodes than that in all
    if len(batch) == 1 and _levels(batch[0]) > DEEPEST:
        raise BudgetError(
            f"a term is nested more than {DEEPEST} levels deep", remedy="name parts of it: a = …, b = f(a), …"
        )
    run = Run()
    book = Translation(expand, budget.check)
    try:
        roots = [book.root(t) for t in batch]
        with session(FAMILIES) as laws:
            run = laws.run(book.facts(), roots, _INSIDE, *later, budget=budget)
        _account(account, run.families)
        return [book.reader(dag)(root) for dag, root in run.roots] if run.finished else None
    except OutOfTime:
        return None


def _levels(t: Term) -> int:
    """How deep a term is nested."""
    known: dict[Term, int] = {}

    def levels(u: Term) -> int:
        if u not in known:
            known[u] = 1 + max(map(levels, children(u)), default=0)
        return known[u]

    return levels(t)


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


def _refuse_leftovers(t: Term, budget: Budget) -> None:
    """A sum over all complex numbers comes only from the B rule, and must have met its δ."""
    left = {v for u in subterms(t, Sum) for v in u.indices}
    if not any(v.kind == COMPLEX for v in left):
        return
    if budget.spent:
        raise BudgetError("simplification takes more than its budget allows", remedy="allow more seconds or nodes")
    raise UnsupportedError(
        "a sum over all numbers is left in the derivative, which means that a δ could not be solved",
        remedy="write the program without arithmetic of real or complex numbers in the places of indices",
    )
