"""Explains `contract`: which δ met its Σ in each term, and which laws of `rules/` were used.

egglog tells how often each law fired, not where. So each term is contracted for itself once more, and the δ of the
indices that are gone are summed here, one after the other, by the one law

    Σ_v δ(v, w) e(v) = e(w)

If that leaves the term that egglog made, it is what happened; if it does not, no δ of the term is named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from combdiff.budget import Budget
from combdiff.canon.canonical import normal_form
from combdiff.records import dataclass
from combdiff.resources import resource
from combdiff.simplify.account import Family
from combdiff.simplify.contraction.contract import contract
from combdiff.simplify.contraction.egraph import FAMILIES
from combdiff.simplify.contraction.fourier import FOURIER
from combdiff.simplify.images import split_off
from combdiff.simplify.provenance.shown import LONGEST, Shown, listed, numbers, place_of, shown_values
from combdiff.simplify.provenance.symmetry import tensors
from combdiff.terms.laws.inclusion import written_where_needed
from combdiff.terms.network import addends
from combdiff.terms.terms import (
    ZERO,
    Add,
    App,
    Conj,
    Delta,
    Lam,
    Mul,
    Sum,
    Term,
    Var,
    add,
    children,
    holds,
    mul,
    rebuild,
    sub,
    substitute,
    subterms,
    total,
)
from combdiff.terms.types import Index, Type

SECONDS = 5.0
"""For the terms contracted once more."""

COUNTED = 60
"""Terms of a value that are told one by one."""


@dataclass(frozen=True, slots=True)
class Meeting:
    """A term, what became of it, and the δ that met their sums: (the δ as it is written, the index that it ended)."""

    term: Term
    contracted: Term
    met: tuple[tuple[Delta, Var], ...]


def meetings(shown: Shown, after: Term, budget: Budget) -> list[Meeting]:
    """What became of each term of a value; nothing where the terms do not make up what it became."""
    terms = shown.terms
    if len(terms) > COUNTED or budget.over():
        return []
    results, _ = contract([written_where_needed(t) for t in terms], budget=budget)
    if budget.spent or _forms(add(*results)) != _forms(after):
        return []
    return [Meeting(t, c, tuple(_met(t, c))) for t, c in zip(terms, results, strict=True)]


def _forms(t: Term) -> Counter[object]:
    found = (normal_form(u, {}, tensors(u)) for u in addends(t) if u != ZERO)
    return Counter((form.coefficient, form.key, form.sign) for form in found)


def _met(t: Term, contracted: Term) -> list[tuple[Delta, Var]]:
    """The δ of `t` that met their sums; nothing where summing them does not leave `contracted`."""
    # what is left is summed by variables of its own: the kinds of indices say how many are gone
    gone = _summed(t) - _summed(contracted)
    found: list[tuple[Delta, Var]] = []
    left = t
    while True:
        step = _next(left, gone)
        if step is None:
            break
        left, condition, var = step
        gone[var.kind] -= 1
        own = [d for d in subterms(t, Delta) if var in d.left.free | d.right.free]
        found.append((own[0] if len(own) == 1 else condition, var))
    return found if _forms(left) == _forms(contracted) else []


def _summed(t: Term) -> Counter[Type]:
    return Counter(v.kind for u in subterms(t, Sum) for v in u.indices)


def _next(t: Term, gone: Counter[Type]) -> tuple[Term, Delta, Var] | None:
    """`t` with one δ summed over an index of a kind in `gone`, with the δ and the index."""
    for u in subterms(t):
        if not isinstance(u, Sum):
            continue
        for d in _conditions(u.body):
            for var, other in _solutions(d, [v for v in u.indices if gone[v.kind] > 0]):
                rest = total(tuple(v for v in u.indices if v != var), substitute(_put(u.body, d, d.body), {var: other}))
                put = _put(t, u, rest)
                if put is not t and other.free <= u.free | {*u.indices}:
                    return put, d, var
    return None


def _solutions(d: Delta, variables: Collection[Var]) -> Iterator[tuple[Var, Term]]:
    """The variables that a δ can be solved for, each with what it is then equal to."""
    for side, other in ((d.left, d.right), (d.right, d.left)):
        for v in sorted(side.free.intersection(variables) - other.free, key=lambda v: v.uid):
            if side == v:
                yield v, other
            elif isinstance(side, Add) and isinstance(side.type, Index):
                c, rest = split_off(v, side)
                if rest is not None and v not in rest.free:
                    yield v, mul(c, sub(other, rest))


def _conditions(t: Term) -> Iterator[Delta]:
    """The δ that stand in a term as factors, however deep."""
    match t:
        case Delta(_, _, body):
            yield t
            yield from _conditions(body)
        case Mul(factors):
            for f in factors:
                yield from _conditions(f)
        case Conj(of):
            yield from _conditions(of)
        case Sum(_, body):
            yield from _conditions(body)


def _put(t: Term, part: Term, other: Term) -> Term:
    """`t` with `other` in the place of `part`, under factors, conditions, sums and conj."""
    if t is part:
        return other
    if not isinstance(t, Delta | Mul | Conj | Sum):
        return t
    below = children(t)
    sides = 2 if isinstance(t, Delta) else 0
    parts = [*below[:sides], *(_put(c, part, other) for c in below[sides:])]
    if all(a is b for a, b in zip(parts, below, strict=True)):
        return t
    return total(t.indices, *parts) if isinstance(t, Sum) else rebuild(t, parts)


# --- in words -------------------------------------------------------------------------------------------------------


def contraction_words(before: Lam, after: Lam, families: Mapping[str, Family]) -> list[str]:
    """Which δ met their sums in which terms, and the laws that were used."""
    lines: list[str] = []
    results, budget = shown_values(after), Budget.of(SECONDS)
    for key, shown in shown_values(before).items():
        if key in results and holds(shown.entry, Delta):
            lines += _told(shown, meetings(shown, results[key].entry, budget))
    if any(not isinstance(u.term, App | Var) for u in subterms(before, Conj)) and not any(
        not isinstance(u.term, App | Var) for u in subterms(after, Conj)
    ):
        lines.append("conjugates go to the factors")
    if FOURIER in families:
        lines.append("sums meet in a phase: ∫ exp(i s r w) dr is 2π/|s| δ(w), and Σ_k exp(2πi k n / N) is N δ(n, 0)")
    return [*lines, *law_files(families)]


def _told(shown: Shown, found: Sequence[Meeting]) -> Iterator[str]:
    alike: dict[str, list[int]] = {}
    for n, m in enumerate(found):
        alike.setdefault(_sentence(shown, m), []).append(n)
    for sentence, counted in alike.items():
        if sentence:
            yield f"{place_of(shown)}in {numbers(counted)}, {sentence}"


def _sentence(shown: Shown, m: Meeting) -> str:
    texts: list[str] = []
    for d, var in m.met:
        sides = [shown.text(side, m.term) for side in (d.left, d.right)]
        text = f"δ({', '.join(sides)})"
        texts.append(
            f"{text if len(text) <= LONGEST else 'a δ'}{'' if texts else ' is summed'} over {shown.text(var, m.term)}"
        )
    return listed(texts)


def law_files(families: Mapping[str, Family]) -> list[str]:
    """The laws that fired, by the file that they stand in."""
    fired = {name for name, family in families.items() if family.matches}
    found = []
    for file in sorted(FAMILIES):
        text = resource("rules", f"{file}.egg")
        own = sorted(name for name in fired if f"(ruleset {name})" in text)
        if own:
            found.append(file if own == [file] else f"{file} ({', '.join(own)})")
    return [f"laws used, of rules/*.egg: {', '.join(found)}"] if found else []
