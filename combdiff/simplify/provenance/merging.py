"""Explains `merge like terms`: which terms were equal, and by which symmetries.

The stage is done again, and tells of every sum in which it merged or dropped terms. What it makes has to be what the
derivation holds, or nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from combdiff.budget import Budget
from combdiff.canon.canonical import Groups, canonical
from combdiff.records import dataclass
from combdiff.simplify.known import Known
from combdiff.simplify.provenance.shown import LONGEST, Shown, listed, numbers, place_of, shown_values
from combdiff.simplify.provenance.symmetry import Laws, Use, Witness, sums_in, variables_of
from combdiff.terms.network import addends
from combdiff.terms.terms import MINUS_ONE, ONE, ZERO, Const, Lam, Sum, Term, alpha_equal, body_of, subterms

SECONDS = 5.0
"""For the stage done again, and for the search for symmetries."""

COUNTED = 40
"""Like terms that are told one by one."""


@dataclass(frozen=True, slots=True)
class Gathering:
    """A sum of terms in which some were merged: where it stands, and which of its terms were one; None: not counted."""

    shown: Shown
    total: Term
    groups: Groups

    @property
    def dropped(self) -> list[Term]:
        """The terms that were zero."""
        held = {id(u) for group in self.groups for u in group}
        return [u for u in addends(self.total) if id(u) not in held]


@dataclass(frozen=True, slots=True)
class Merge:
    """A term of a sum is a multiple of another one, or of none and zero, as the laws of the `witness` say."""

    where: Gathering
    term: Term
    other: Term | None
    witness: Witness


@dataclass(frozen=True, slots=True)
class Merging:
    """A stage that merged like terms: what it did, and the laws that it had."""

    before: Lam
    after: Lam
    laws: Laws
    gatherings: tuple[Gathering, ...]
    deviations: tuple[Sum, ...]
    budget: Budget

    @classmethod
    def again(cls, before: Lam, after: Lam, unused: Sequence[str]) -> Merging | None:
        """The stage done again; None where it does not make of `before` what is `after`."""
        found: list[tuple[Term, Term, Groups]] = []
        deviations: list[Sum] = []
        budget = Budget.of(SECONDS)
        known = Known(
            {v for v in variables_of(before) if v.name in unused},
            budget,
            seen=lambda value, total, groups: found.append((value, total, groups)),
            vanished=deviations.append,
        )
        body = known.all(before.body)
        if budget.spent or not alpha_equal(body, after.body):
            return None
        values = [*shown_values(before).values()]
        placed = []
        for value, total, groups in found:
            entry = body_of(value)
            shown = next((v for v in values if entry is v.entry or value is v.value), None)
            if shown is not None:
                placed.append(Gathering(shown, total, groups))
        return cls(before, after, Laws(known.derived, unused), tuple(placed), tuple(deviations), budget)

    def merges(self) -> Iterator[Merge]:
        """Each term that was merged with the first of its like, or dropped, where the laws that say so are found."""
        for where in self.gatherings:
            for first, *others in where.groups:
                for t in others[:COUNTED]:
                    found = None if self.budget.over() else self.laws.witness(t, first)
                    if found is not None:
                        yield Merge(where, t, first, found)
            for t in where.dropped[:COUNTED]:
                found = None if self.budget.over() else self.laws.own_negative(t)
                if found is not None:
                    yield Merge(where, t, None, found)

    def words(self) -> list[str]:
        """The same for a reader, a line for terms that are equal to the same one for the same reason."""
        lines = self._vanished()
        for (where, other, uses, ratio), alike in groupby(self.merges(), key=_kind):
            terms = [m.term for m in alike]
            called = self._called(where, terms)
            name = self._called(where, [other]) if other is not None else ""
            if called is None or name is None:
                continue
            by = ", with other summed indices" if sums_in(terms[0]) else ""
            if uses:
                by = f" by {listed(self.laws.spelled(uses, [self.before, self.after]))}"
            relation = _relation(ratio, len(terms) > 1)
            lines.append(f"{place_of(where.shown)}{called}{relation}{f' {name}' if name else ''}{by}")
        return lines

    def _vanished(self) -> list[str]:
        """The sums of deviations from a mean that are written in the step."""
        lines: dict[str, None] = {}
        for shown in shown_values(self.before).values():
            for zero in self.deviations:
                around = next((t for t in shown.terms if any(u == zero for u in subterms(t))), None)
                text = shown.text(zero, around) if around is not None else ""
                if text and len(text) <= LONGEST:
                    lines[f"{place_of(shown)}{text} is zero, as a sum of deviations from a mean"] = None
        return [*lines]

    def _called(self, where: Gathering, terms: Sequence[Term]) -> str | None:
        """Terms by their numbers, or where they stand inside of another one, as they are written; None: neither."""
        counted, own = addends(where.total), where.shown.terms
        if len(counted) == len(own) and all(self._same(a, b) for a, b in zip(counted, own, strict=True)):
            return numbers([n for n, u in enumerate(counted) if any(u is t for t in terms)])
        around = next(
            (t for t in own if any(u == where.total or _is_contracted(u, counted) for u in subterms(t))), None
        )
        if around is None or len(terms) > 1:
            return None
        text = where.shown.text(terms[0], around)
        return text if len(text) <= LONGEST else None

    def _same(self, a: Term, b: Term) -> bool:
        if a == b:
            return True
        forms = [canonical(t, self.laws.derived) for t in (a, b)]
        return forms[0] == forms[1]


def _is_contracted(u: Term, terms: Sequence[Term]) -> bool:
    """Whether `u` is the contraction of a sum, and `terms` those of the terms of this."""
    return isinstance(u, Sum) and all(isinstance(t, Sum) and t.indices == u.indices for t in terms)


def _kind(m: Merge) -> tuple[Gathering, Term | None, tuple[Use, ...], Term]:
    return m.where, m.other, m.witness.uses, m.witness.ratio


def _relation(ratio: Term, several: bool) -> str:
    if ratio == ONE:
        return " equal" if several else " equals"
    are = " are" if several else " is"
    if ratio == ZERO:
        return f"{are} zero"
    if ratio == MINUS_ONE:
        return f"{are} minus"
    if not isinstance(ratio, Const) or ratio.imag:
        return f"{are} a multiple of"
    return f"{are} {ratio.real} times"
