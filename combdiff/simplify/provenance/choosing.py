"""Explains the choice of a form: names that are new or gone, recognised values, factors taken out of terms.

Names are compared before and after. Factors are found by multiplying out both: where each product of the one has the
canonical name of one product of the other, the terms that a sum in brackets came from are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from combdiff.budget import Budget
from combdiff.canon.canonical import normal_form
from combdiff.records import dataclass
from combdiff.simplify.account import Family
from combdiff.simplify.contraction.bisection import LAWS
from combdiff.simplify.known import Known
from combdiff.simplify.provenance.shown import LONGEST, Shown, listed, numbers, place_of, shown_values
from combdiff.simplify.provenance.symmetry import Laws, variables_of
from combdiff.terms.terms import (
    ONE,
    Add,
    App,
    Const,
    Lam,
    Let,
    Mul,
    Sum,
    Term,
    Var,
    alpha_equal,
    children,
    holds,
    mul,
    refreshed,
    substitute,
    subterms,
    total,
)
from combdiff.terms.types import Index

SECONDS = 5.0
"""For what is found again of the values."""

PRODUCTS = 120
"""Products that a value is multiplied out to."""


def choice_words(before: Lam, after: Lam, unused: Sequence[str], families: Mapping[str, Family]) -> list[str]:
    """What is said of the names and the factors of a result, and the laws of the graph of forms that were used."""
    budget = Budget.of(SECONDS)
    laws = known_laws(before, unused, budget)
    old, new = shown_values(before), shown_values(after)
    lines = [*_gone(old, new), *_named(old, new), *_recognised(old, new, families)]
    written = {var: v.value for var, v in new.items() if isinstance(var, Var) and var not in old}
    for key, shown in new.items():
        if key in old and not budget.over():
            lines += _factors(old[key], shown, written, laws)
    fired = sorted(name for name, family in families.items() if name in LAWS and family.matches)
    return [*lines, *([f"laws that fired, of simplify/graph/laws/: {', '.join(fired)}"] if fired and lines else [])]


def order_words(before: Lam, after: Lam, unused: Sequence[str]) -> list[str]:
    """What numbered values are called, and by which symmetries entries are read in another order of slots."""
    letters = dict(_renamed(before, after))
    old, new = shown_values(before), shown_values(after)
    # the states of loops are no values of their own
    called = [f"{old[v].called} is called {new[w].called}" for v, w in letters.items() if v in old and w in new]
    before = _with_names(before, letters)
    return [*called, *_symmetries_of_order(before, after, unused)]


def _renamed(before: Lam, after: Lam) -> Iterator[tuple[Var, Var]]:
    """The values whose names are new; none where values went, so that no place tells which is which."""
    if isinstance(before.body, Let) and isinstance(after.body, Let):
        olds, news = ([var for var, _ in body.bindings] for body in (before.body, after.body))
        if [v.type for v in olds] == [v.type for v in news]:
            yield from ((old, new) for old, new in zip(olds, news, strict=True) if old.name != new.name)


def _with_names(f: Lam, names: Mapping[Var, Var]) -> Lam:
    if not names or not isinstance(f.body, Let):
        return f
    bindings = tuple((names.get(var, var), substitute(value, names)) for var, value in f.body.bindings)
    return Lam(f.params, Let(bindings, substitute(f.body.body, names)))


def _symmetries_of_order(before: Lam, after: Lam, unused: Sequence[str]) -> list[str]:
    """By which symmetries entries are read in another order of slots than before, where anything but order changed."""
    budget = Budget.of(SECONDS)
    laws = known_laws(before, unused, budget)
    old, new = shown_values(before), shown_values(after)
    found: list[str] = []
    for key, shown in new.items():
        if key not in old:
            return []
        slots = dict(zip(old[key].slots, shown.slots, strict=False))
        witness = None if budget.over() else laws.witness(substitute(old[key].entry, slots), shown.entry)
        if witness is None:
            return []
        found += [f"{place_of(shown)}{law}" for law in laws.spelled(witness.uses, [before, after])]
    if not found:
        return ["terms, factors and indices are put in order, without any symmetry"]
    return [f"entries are read by {law}" for law in dict.fromkeys(found)]


def known_laws(before: Lam, unused: Sequence[str], budget: Budget) -> Laws:
    """The symmetries that a stage has for the values that it begins with."""
    known = Known({v for v in variables_of(before) if v.name in unused}, budget)
    known.all(before.body)
    return Laws(known.derived, unused)


Values = Mapping["Var | int", Shown]


def _gone(old: Values, new: Values) -> Iterator[str]:
    gone = [v.called for key, v in old.items() if key not in new]
    if gone:
        verb, were = ("stand", "they were") if len(gone) > 1 else ("stands", "it was")
        yield f"{listed(gone)} {verb} written out where {were} used"


def _named(old: Values, new: Values) -> Iterator[str]:
    for key, shown in new.items():
        if isinstance(key, Var) and key not in old:
            reads = _reads(key, new)
            slots = ", ".join(shown.printer.names[p] for p in shown.slots)
            head = f"{shown.called}({slots})" if slots else shown.called
            text = shown.text(shown.entry)
            what = f"{head} = {text}" if len(text) <= LONGEST and "\n" not in text else head
            yield f"{what} gets a name{f', and is read {_times(reads)}' if reads > 1 else ''}"


PARTS: Mapping[type[Term], str] = {Add: "part_of_sum", Mul: "part_of_product"}
"""The laws that find a named value in a longer one of its kind."""


def _recognised(old: Values, new: Values, families: Mapping[str, Family]) -> Iterator[str]:
    """Values that are read more often: those that a law of parts found, if nothing that reads them was written out."""
    laws = [law for law in PARTS.values() if families.get(law, Family()).matches]
    gone = [v.entry for key, v in old.items() if key not in new]
    for key, shown in old.items():
        if isinstance(key, Var) and key in new:
            earlier, now = _reads(key, old), _reads(key, new)
            if now > earlier:
                law = PARTS.get(type(shown.entry))
                whole = "sums" if isinstance(shown.entry, Add) else "products"
                by_law = law in laws and not any(key in entry.free for entry in gone)
                found = f" is found in longer {whole} by {law}, and" if by_law else ""
                yield f"{shown.called}{found} is read {_times(now)}, {_times(earlier)} before"


def _times(n: int) -> str:
    return {1: "once", 2: "twice"}.get(n, f"{n} times")


def _reads(var: Var, values: Values) -> int:
    """The places where a value is read."""
    return sum(_places(var, v.entry, {}) for v in values.values())


def _places(var: Var, t: Term, known: dict[Term, int]) -> int:
    if var not in t.free:
        return 0
    if isinstance(t, Var):
        return 1
    if t not in known:
        known[t] = sum(_places(var, c, known) for c in children(t))
    return known[t]


# --- factors --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Piece:
    """A product that a value is multiplied out to, and the sums in brackets that it went through."""

    term: Term
    through: tuple[int, ...] = ()


@dataclass(slots=True)
class Products:
    """A value multiplied out; `brackets` are the sums that have something in front, with what that is."""

    brackets: list[tuple[Term, Term]] = field(default_factory=list)

    def of(self, t: Term) -> list[Piece]:
        """The products of `t`.

        Raises:
            OverflowError: if they are too many.
        """
        match t:
            case Add(terms) if not isinstance(t.type, Index):
                return [p for u in terms for p in self.of(u)]
            case Sum(indices, body):
                return [Piece(total(indices, p.term), p.through) for p in self.of(body)]
            case Mul(factors):
                found = [Piece(ONE)]
                for n, f in enumerate(factors):
                    inner = self.of(f)
                    if len(inner) > 1:
                        inner = self._through(f, mul(*factors[:n], *factors[n + 1 :]), inner)
                    found = [_product(a, b) for a in found for b in inner]
                    if len(found) > PRODUCTS:
                        raise OverflowError
                return found
            case _:
                return [Piece(t)]

    def _through(self, bracket: Term, front: Term, inner: Sequence[Piece]) -> list[Piece]:
        if isinstance(front, Const):
            return [*inner]
        self.brackets.append((bracket, front))
        n = len(self.brackets) - 1
        return [Piece(p.term, (n, *p.through)) for p in inner]


def _product(a: Piece, b: Piece) -> Piece:
    # sums over one variable are of two variables once they are multiplied
    other = refreshed(b.term) if holds(b.term, Sum) else b.term
    return Piece(mul(a.term, other), a.through + b.through)


def _factors(old: Shown, new: Shown, written: Mapping[Var, Term], laws: Laws) -> Iterator[str]:
    """Which terms of a value have a factor in common that stands in front of them now."""
    if alpha_equal(old.entry, new.entry):
        return
    multiplied = Products()
    try:
        pieces = multiplied.of(new.entry)
        origin = _origins(old, laws)
    except OverflowError:
        return
    found: list[set[int]] = [set() for _ in multiplied.brackets]
    for p in pieces:
        number = origin.pop(_name(_opened(p.term, written), laws), None)
        if number is None:
            return
        for place in p.through:
            found[place].add(number)
    if origin:
        return
    before = {u for t in old.terms for u in subterms(t)}
    for (bracket, front), joined in zip(multiplied.brackets, found, strict=True):
        text = new.text(front, beside=bracket)
        if len(joined) > 1 and bracket not in before and len(text) <= LONGEST:
            yield f"{place_of(new)}{text} is taken out of {numbers(joined)}"


def _origins(old: Shown, laws: Laws) -> dict[object, int]:
    """The names of the products of a value, each with the number of its term; two of one name are not told apart."""
    found: dict[object, int] = {}
    for n, t in enumerate(old.terms):
        for p in Products().of(t):
            name = _name(p.term, laws)
            if name in found:
                raise OverflowError
            found[name] = n
    return found


def _name(t: Term, laws: Laws) -> object:
    unused = {u for u in subterms(t) if isinstance(u, Var) and u.name in laws.unused}
    form = normal_form(t, laws.derived, unused)
    return form.coefficient, form.key, form.sign


def _opened(t: Term, written: Mapping[Var, Term]) -> Term:
    """`t` with the new values written out, which may hold one another."""
    while not t.free.isdisjoint(written):
        t = substitute(t, {v: written[v] for v in t.free & written.keys()})
        if any(isinstance(u.function, Lam) for u in subterms(t, App)):
            break
    return t
