"""Indices in slots: bare ones join ranges at once, arithmetic is judged when all ranges are known."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from combdiff.errors import LanguageError, Span
from combdiff.language.inference.domains import Ranges
from combdiff.language.inference.resolution import resolved
from combdiff.language.vocabulary import LOOPS, counted, in_words
from combdiff.terms.conditions.guards import Condition, is_whole
from combdiff.terms.conditions.ordering import is_kept, least_size, never_exceeds
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    App,
    Const,
    Mul,
    Reduce,
    Sum,
    Term,
    Var,
    add,
    domains_compared,
    index_atoms,
    reductions_met,
    split_coefficient,
    terms_of,
)
from combdiff.terms.types import INTEGER, Domain, Index, Map, Number

_LARGEST = 2**31

_MORE = (
    "a slot of the size {0} takes i to i + {2} for i::N{{{1}}}; else add a condition that keeps the index in range, as "
    "in where(0 <= i + 1 < {0}, x(i + 1))"
)

Fact = tuple[Term, str, Term]
"""That two numbers are in a relation."""

_InSlot = tuple[Term, Domain, Span, tuple[Fact, ...]]
_Met = tuple[Domain, Domain, Span]
Asked = tuple[list[_InSlot], list[_Met]]
"""What is asked of indices once all ranges are known."""


_IN_RANGE = (
    "give the slot a domain with `periodic = true`, or give it and the indices bounds that fit (`lower`, `upper`), or "
    "use an index alone, or add a condition that keeps it in range, as in where(0 <= i + 1 < n, x(i + 1))"
)
_FROM_END = "no index counts from the end: the last entry of x::RV{n} is x(n - 1)"
_STATES = "a loop of n steps has the states 0, …, n: write h(t) or h(t + 1) for t::N{n}, or h(n)"


class Slots:
    """What stands in the slots of a program's tensors."""

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges
        # each time that it stands there: a function that is called twice has indices of its own, and other facts
        self._arithmetic: list[_InSlot] = []
        self._met: list[_Met] = []

    @contextmanager
    def apart(self) -> Iterator[Asked]:
        """What is asked of indices in here; `ask` asks it, if what is read here turns out to be read."""
        before = self._arithmetic, self._met
        own: Asked = [], []
        self._arithmetic, self._met = own
        try:
            yield own
        finally:
            self._arithmetic, self._met = before

    def ask(self, asked: Asked) -> None:
        """Ask what `apart` has put apart."""
        self._arithmetic += asked[0]
        self._met += asked[1]

    def meet(self, one: Term, other: Term, span: Span) -> None:
        """Two indices are compared for equality: an index that stands in no slot has the range of J(e)."""
        for index, entry in ((one, other), (other, one)):
            match index, _entry_range(entry):
                case Var(kind=Index(Domain() as own)), Domain() as range_of_entry:
                    self._met.append((own, range_of_entry, span))

    def place(self, index: Term, slot: Domain, span: Span, facts: tuple[Fact, ...] = ()) -> None:
        """`index` stands in `slot`, at `span` of the text, where `facts` hold."""
        match index:
            case Var(type=Index(Domain() as own)) | App(type=Index(Domain() as own)):
                self._widen(own, slot, span)
                self._check_typed(own, slot, span)
                if self._keeps_range(own, slot) or (facts and self.is_of_another_size(index, slot)):
                    self._arithmetic.append((index, slot, span, facts))
                else:
                    self.ranges.unite(own, slot, span)
            case _ if isinstance(index.type, Index) or (isinstance(index, Const) and index.is_integer):
                self._arithmetic.append((index, slot, span, facts))
            case _:
                raise _no_index(index, self.ranges.place(slot), span)

    def _check_typed(self, own: Domain, slot: Domain, span: Span) -> None:
        """An index of slots of the sizes n and n + 1 says which of the two it ranges over."""
        index, whole = self.ranges.domain_of(own), self.ranges.domain_of(slot)
        if index is None or whole is None or self.ranges.is_typed(own) or self._is_of_states(slot):
            return
        if index.sized and (index.fewer(whole) or 0) > 0:
            name = self.ranges.label(own).removeprefix("index ")
            raise LanguageError(
                f"{self.ranges.label(own)} is used in slots of the sizes {index.name} and {whole.name}",
                span=span,
                also=self.ranges.place(slot),
                remedy=f"write its type, {name}::N{{{index.name}}}, or {name}::N{{{whole.name}}} and a condition that "
                "keeps it in range",
            )

    def _widen(self, own: Domain, slot: Domain, span: Span) -> None:
        """A slot in which an index of n - 1 values is the first to stand has n values, for sizes have names."""
        index = self.ranges.domain_of(own)
        if index is None or index.of is None or index.less < 0 or not self.ranges.is_free_slot(slot):
            return
        whole = self.ranges.new(self.ranges.label(own), span, domain=index.of)
        self.ranges.unite(whole, slot, span)

    def _keeps_range(self, own: Domain, slot: Domain) -> bool:
        """Whether a bare index is not of its slot's range: an offset in a periodic one, k + b at k = 0; part of it."""
        index, whole = self.ranges.domain_of(own), self.ranges.domain_of(slot)
        if index is None or whole is None or index == whole:
            return False
        if whole.periodic:
            return index.symmetric or index.listed
        if (whole.of or whole) == (index.of or index):
            return True
        return index.count is not None and whole.count is not None

    def is_of_another_size(self, index: Term, slot: Domain) -> bool:
        """Whether an index or entry of N{m}, or N{n + 1}, is in a slot of N{n}, where only a condition keeps it."""
        domains = self._sized(index, slot)
        fewer = domains[0].fewer(domains[1]) if domains else 0
        return fewer is None or fewer < 0

    def has_no_size_like(self, index: Term, slot: Domain) -> bool:
        """Whether an index or entry of N{m} is in a slot of N{n}, two sizes that have nothing to do with each other."""
        domains = self._sized(index, slot)
        return domains is not None and domains[0].fewer(domains[1]) is None

    def _sized(self, index: Term, slot: Domain) -> tuple[Domain, Domain] | None:
        """The ranges of an index and of a slot, if both have a size that has a name."""
        match index:
            case Var(kind=Index(Domain() as own)) | App(type=Index(Domain() as own)):
                found, wanted = self.ranges.domain_of(own), self.ranges.domain_of(slot)
                if found is None or wanted is None or not ((found.of or found).sized and (wanted.of or wanted).sized):
                    return None
                return found, wanted
            case _:
                return None

    def check(self) -> None:
        """Index arithmetic stays in range; a slot in which nothing stands bare takes the domain of its arithmetic."""
        for index, slot, span, _ in self._arithmetic:
            self._adopt(index, slot, span)
        for own, of, span in self._met:
            if self.ranges.is_without_range(own):
                self.ranges.unite(own, of, span)
        for index, slot, _, _ in self._arithmetic:
            for domain in domains_compared(index):
                self.ranges.note_arithmetic(domain, slot)
        self.ranges.check_reflected()
        for index, slot, span, facts in self._arithmetic:
            _refuse_huge(index, span)
            self._check_directions(index, slot, span)
            if facts and self._has_unknown(index):
                continue  # which is what is wrong with it
            if not self._fits(index, slot) and not self._is_kept(index, slot, facts):
                raise self._leaves(index, slot, span)

    def _check_directions(self, index: Term, slot: Domain, span: Span) -> None:
        """What is added is of as many directions as the slot; no number is added to a point of a lattice."""
        wanted = self._directions(slot)
        for part in index_atoms(index):
            assert isinstance(part.type, Index), "slots take indices"
            domain = part.type.domain
            if domain is None or self.ranges.is_unknown(domain):
                continue  # which is what is wrong with it
            found = self._directions(domain)
            if found != wanted:
                directions = counted(found, "direction")
                raise LanguageError(
                    f"{affine_text(part)} has {directions}, but {self.ranges.label(slot)} has {wanted}",
                    span=span,
                    also=self.ranges.place(domain),
                    remedy="add indices of domains with one `base`, such as `base = (I, I, I)` for all",
                )
        constant = constant_of(index)
        if wanted > 1 and constant:
            raise LanguageError(
                f"the number {constant} is not a point of a lattice of {wanted} directions",
                span=span,
                also=self.ranges.place(slot),
                remedy="add an index of a domain with the same `base`; only 0, the origin, is a number there",
            )

    def _directions(self, node: Domain) -> int:
        domain = self.ranges.domain_of(node)
        return 1 if domain is None else domain.directions

    def _leaves(self, index: Term, slot: Domain, span: Span) -> LanguageError:
        domain = self.ranges.domain_of(slot)
        if domain is not None and domain.listed:
            return LanguageError(
                f"{affine_text(index)} may not be in the list of {self.ranges.label(slot)}",
                span=span,
                also=self.ranges.place(slot),
                remedy="use an index alone, or its negative if the domain has `symmetric = true`",
            )
        text = affine_text(add(*(u if index_atoms(u) else resolved(u, self.ranges) for u in terms_of(index))))
        if self._from_end(index, slot) is not None:
            return LanguageError(
                f"{text} is beyond the range of {self.ranges.label(slot)}",
                span=span,
                also=self.ranges.place(slot),
                remedy="count from 0: the last index of a slot of the size n is n - 1",
            )
        reach = self._reach(index)
        within = ""
        if domain is not None and domain.count is not None and reach is not None:
            first = domain.lower or 0
            within = f" ({reach[0]} to {reach[1]}, and the slot runs from {first} to {first + domain.count - 1})"
        return LanguageError(
            f"{text} may leave the range of {self.ranges.label(slot)}{within}",
            span=span,
            also=self.ranges.place(slot),
            remedy=_FROM_END if isinstance(index, Const) and index.real < 0 else self._remedy(index, slot),
        )

    def _remedy(self, index: Term, slot: Domain) -> str:
        """What to write for an index that may leave a slot."""
        domain = self.ranges.domain_of(slot)
        sized = self._sized(index, slot)
        if sized is not None and isinstance(index, Var) and (sized[1].fewer(sized[0]) or 0) > 0:
            return (
                f"write its type, {index.name}::N{{{sized[1].name}}}: an index has the size of the first slot in which "
                "it stands"
            )
        if domain is None or domain.of is None or domain.less >= 0:
            return _IN_RANGE
        if self._is_of_states(slot):
            return _STATES
        return _MORE.format(domain.name, domain.of.name, -domain.less)

    def _is_of_states(self, slot: Domain) -> bool:
        """Whether it is the slot of all states of a loop, one more than it has steps."""
        return any(self.ranges.label(slot) == f"slot 1 of {loop}" for loop in LOOPS)

    def _reach(self, index: Term) -> tuple[int, int] | None:
        """The least and the largest value, component by component; None where an index has no bounds."""
        low = high = constant_of(index)
        for t in terms_of(index):
            coefficient, rest = split_coefficient(t)
            if isinstance(rest, Sum) and rest.counted is not None:
                size = self.ranges.resolve(rest.counted).count
                if size is None:
                    return None
                low, high = low + int(coefficient.real) * size, high + int(coefficient.real) * size
                continue
            if not (isinstance(rest.type, Index) and rest.type.domain is not None):
                continue
            domain = self.ranges.domain_of(rest.type.domain)
            if domain is None or domain.lower is None or domain.upper is None:
                return None
            ends = sorted(int(coefficient.real) * end for end in (domain.lower, domain.upper))
            low, high = low + ends[0], high + ends[1]
        return low, high

    def _adopt(self, index: Term, slot: Domain, span: Span) -> None:
        reversed_ = self._reversed(index, slot)
        if reversed_ is not None and self.ranges.is_open(reversed_):
            self.ranges.unite(reversed_, slot, span)
        negated = _negated(index)
        known = negated and (self.ranges.domain_of(negated) or self.ranges.domain_of(slot))
        if negated is not None and known and known.symmetric:
            if self.ranges.is_open(negated) or self.ranges.is_open(slot):
                self.ranges.unite(negated, slot, span)
        elif self.ranges.is_open(slot):
            periodic = [d for d in domains_compared(index) if (known := self.ranges.domain_of(d)) and known.periodic]
            if periodic and all(self.ranges.same(periodic[0], d) for d in periodic):
                self.ranges.unite(periodic[0], slot, span)

    def _reversed(self, index: Term, slot: Domain) -> Domain | None:
        """The range of i in n - 1 - i, for the size n of the slot."""
        parts = [split_coefficient(t) for t in terms_of(index)]
        sizes = [u.counted for c, u in parts if isinstance(u, Sum) and c == ONE]
        indices = [u for c, u in parts if isinstance(u, Var) and c == MINUS_ONE]
        if len(parts) != 3 or len(sizes) != 1 or len(indices) != 1 or constant_of(index) != -1:
            return None
        (counted,), (i,) = sizes, indices
        known = counted is not None and self.ranges.same(counted, slot)
        return i.kind.domain if known and isinstance(i.kind, Index) else None

    def _has_unknown(self, index: Term) -> bool:
        return any(map(self.ranges.is_unknown, domains_compared(index)))

    def _is_kept(self, index: Term, slot: Domain, facts: tuple[Fact, ...]) -> bool:
        """Whether conditions keep index arithmetic in range."""
        if self._has_unknown(index):
            return False
        domain = self.ranges.resolve(slot)
        # of the states of a loop those before its steps
        domain = domain.shortened(1) if self._is_of_states(slot) else domain
        sides = [resolved(t, self.ranges) for t in (index, *(side for a, _, b in facts for side in (a, b)))]
        place, *sides = reductions_met(sides)
        signs = [sign for _, sign, _ in facts]
        held = [c for a, sign, b in zip(sides[::2], signs, sides[1::2], strict=True) for c in _conditions(a, sign, b)]
        return least_size(place, domain, held) is not None or is_kept(place, domain, held)

    def _from_end(self, index: Term, slot: Domain) -> int | None:
        """How far an index is from the end of its slot, -2 for n - 2; arrays tell whether there are so many."""
        if index.type != INTEGER or index_atoms(index):
            return None
        place = resolved(index, self.ranges)
        sizes = [t.counted for t in terms_of(place) if isinstance(t, Sum)]
        domain = self.ranges.resolve(slot)
        return constant_of(place) if sizes == [domain] and domain.plain else None

    def _fits(self, index: Term, slot: Domain) -> bool:
        domain = self.ranges.domain_of(slot)
        if domain is not None and domain.periodic:
            return True
        symmetric = domain is not None and domain.symmetric
        if self._is_shorter(index) and is_kept(resolved(index, self.ranges), self.ranges.resolve(slot), ()):
            return True
        reach = self._reach(index) if domain is not None and domain.count is not None else None
        if domain is not None and domain.count is not None and reach is not None:
            first = domain.lower or 0
            if first <= reach[0] and reach[1] < first + domain.count:
                return True
        elif domain is not None and domain.of is not None and self._is_within(index, domain.of, -domain.less):
            return True
        elif isinstance(index, Const) and not (domain is not None and domain.listed):
            return symmetric or index.real >= 0
        elif (place := self._from_end(index, slot)) is not None:
            return place < 0
        negated = _negated(index)
        return symmetric and negated is not None and self.ranges.same(negated, slot)

    def _is_shorter(self, index: Term) -> bool:
        """Whether it is made of indices of a range that is so many values shorter than a named one."""
        ranges = [self.ranges.domain_of(d) for d in domains_compared(index)]
        return any(d is not None and d.of is not None for d in ranges)

    def _is_within(self, index: Term, part: Domain, more: int) -> bool:
        """Whether an index stays in a range of so many `more` values than `part` has: i + c, n + c or n + c - i."""
        place = resolved(index, self.ranges)
        constant, size = constant_of(place), part.count
        atoms = [split_coefficient(t) for t in terms_of(place) if not isinstance(t, Const)]
        if size is not None:
            # a size that is known is a number
            constant -= size * any(c == MINUS_ONE for c, _ in atoms)
        match sorted(atoms, key=lambda atom: isinstance(atom[1], Sum)):
            case [(c, Var(kind=Index(domain)))] if domain == part and c == ONE:
                return 0 <= constant <= more
            case [(c, Sum() as whole)] if whole.counted == part and c == ONE:
                return constant < more
            case [(c, Var(kind=Index(domain))), (one, Sum() as whole)] if domain == part and whole.counted == part:
                return c == MINUS_ONE and one == ONE and -1 <= constant < more
            case [(c, Var(kind=Index(domain)))] if domain == part and c == MINUS_ONE and size is not None:
                return -1 <= constant < more
            case [] if size is not None:
                return 0 <= constant < size + more
            case _:
                return False


def _conditions(left: Term, sign: str, right: Term) -> list[Condition]:
    if not (is_whole(left) and is_whole(right)):
        return []
    match sign:
        case "<":
            return [Condition(add(left, ONE), right)]
        case "==":
            return [Condition(left, right), Condition(right, left)]
        case "<=":
            return [Condition(left, right)]
        case "!=":
            # what is at least 0, and not 0, is at least 1
            orders = [(one, other) for one, other in ((left, right), (right, left)) if never_exceeds(one, other)]
            return [Condition(add(one, ONE), other) for one, other in orders]
        case _:
            return []


def _entry_range(index: Term) -> Domain | None:
    """The range of J(e), an entry of an array of integers."""
    return index.type.domain if isinstance(index, App) and isinstance(index.type, Index) else None


def _negated(index: Term) -> Domain | None:
    """The range of b in −b."""
    match index:
        case Mul((Const() as sign, Var() | App() as index)) if sign == MINUS_ONE and isinstance(index.type, Index):
            return index.type.domain
        case _:
            return None


def constant_of(index: Term) -> int:
    """The number in an affine form.

    >>> from combdiff.terms.terms import add, fresh, number
    >>> from combdiff.terms.types import INTEGER
    >>> constant_of(add(fresh("k", INTEGER), number(-2)))
    -2
    """
    terms = terms_of(index)
    return sum(int(t.real) for t in terms if isinstance(t, Const))


def _name_of(index: Term) -> str:
    """An index, or an entry of an array of integers, as it may have been written."""
    match index:
        case Var(name):
            return name
        case App(Var(name), args):
            return f"{name}({', '.join(map(affine_text, args))})"
        case App(Reduce(kind) as whole, ()):
            return f"{kind}({whole.indices[0].name}, …)"
        case Sum() if index.counted is not None:
            domain = index.counted
            return domain.name if domain.sized else f"size({domain.name})"
        case _:
            return ""


def _refuse_huge(index: Term, span: Span) -> None:
    """Numbers in an index stay where products of them with sizes of arrays are exact."""
    for t in terms_of(index):
        if abs(split_coefficient(t)[0].real) >= _LARGEST:
            raise LanguageError(
                f"a number in this index is beyond the size of any array ({_LARGEST} or more)",
                span=span,
                remedy="use smaller numbers",
            )


def _no_index(term: Term, slot: tuple[str, Span], span: Span) -> LanguageError:
    if isinstance(term, App) and isinstance(term.function, Var) and isinstance(term.type, Number):
        name = term.function.name
        message = f"an index is expected here, found {in_words(term.type)}, an entry of {name}"
        remedy = f"declare {name} an array of integers, {name}::({', '.join('N' * len(term.args))}) -> N"
    elif isinstance(term.type, Number) and term.free and all(isinstance(u.type, Index) for u in index_atoms(term)):
        message = "index arithmetic must be affine with integer coefficients, such as k + 2*b - 1"
        remedy = "write a sum of indices with integer coefficients"
    elif isinstance(term, Const):
        message, remedy = "an index is an integer, and this number is none", "write an integer or an index"
    elif isinstance(term, Var) and isinstance(term.kind, Map) and term.kind.is_integers:
        message = f"{term.name} is an array of integers, and one index is expected here"
        remedy = f"write an entry of it: {term.name}({', '.join('ijklmnop'[: len(term.kind.params)])})"
    else:
        message = f"an index is expected here, found {in_words(term.type)}"
        remedy = "only indices and their integer combinations stand in a slot"
    return LanguageError(message, span=span, also=slot, remedy=remedy)


def affine_text(index: Term) -> str:
    """An affine form as it may have been written.

    >>> from combdiff.terms.terms import add, fresh, mul, number
    >>> from combdiff.terms.types import INTEGER
    >>> k, b = fresh("k", INTEGER), fresh("b", INTEGER)
    >>> affine_text(add(k, mul(number(-2), b)))
    'k - 2*b'
    """
    text = ""
    for t in terms_of(index):
        c, rest = split_coefficient(t)
        size = abs(c.real)
        named = _name_of(rest)
        piece = f"{size}*{named}" if named and size != 1 else named or str(size)
        sign = "-" if c.real < 0 else "+"
        text += f" {sign} {piece}" if text else (piece if c.real >= 0 else f"-{piece}")
    return text
