"""Indices in slots: bare ones join ranges at once, arithmetic is judged when all ranges are known (design, §3)."""

from __future__ import annotations

from combdiff.errors import LanguageError, Span
from combdiff.language.domains import Ranges
from combdiff.language.terms import MINUS_ONE, Add, Const, Mul, Term, Var, split_coefficient
from combdiff.language.types import Domain, Index
from combdiff.language.vocabulary import in_words

_LARGEST = 2**31


class Slots:
    """What stands in the slots of a program's tensors."""

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges
        self._arithmetic: list[tuple[Term, Domain, Span]] = []

    def place(self, index: Term, slot: Domain, span: Span) -> None:
        """`index` stands in `slot`, at `span` of the text."""
        match index:
            case Var(kind=Index(Domain() as own)):
                if not self._offset(own, slot):
                    self.ranges.unite(own, slot, span)
            case _ if isinstance(index.type, Index) or (isinstance(index, Const) and index.is_integer):
                self._arithmetic.append((index, slot, span))
            case _:
                raise _no_index(index, self.ranges.place(slot), span)

    def _offset(self, own: Domain, slot: Domain) -> bool:
        """Whether an offset, an index of a symmetric domain, stands in a periodic slot: k + b at k = 0."""
        domain, periodic = self.ranges.domain_of(own), self.ranges.domain_of(slot)
        return domain is not None and domain.symmetric and periodic is not None and periodic.periodic

    def check(self) -> None:
        """Index arithmetic stays in range; a slot in which nothing stands bare takes the domain of its arithmetic."""
        for index, slot, span in self._arithmetic:
            self._adopt(index, slot, span)
        self.ranges.check_reflected()
        for index, slot, span in self._arithmetic:
            _refuse_huge(index, span)
            if not self._fits(index, slot):
                raise LanguageError(
                    f"{affine_text(index)} may leave the range of {self.ranges.label(slot)}",
                    span=span,
                    also=self.ranges.place(slot),
                    remedy="give the slot a domain with `periodic = true`, or let a bare index stand here",
                )

    def _adopt(self, index: Term, slot: Domain, span: Span) -> None:
        negated = _negated(index)
        if negated is not None:
            ours, theirs = self.ranges.domain_of(negated), self.ranges.domain_of(slot)
            known = ours or theirs
            if known and known.symmetric and (self.ranges.is_open(negated) or self.ranges.is_open(slot)):
                self.ranges.unite(negated, slot, span)
        elif self.ranges.is_open(slot):
            inside = [v.kind.domain for v in index.free if isinstance(v.kind, Index) and v.kind.domain]
            periodic = [d for d in inside if (known := self.ranges.domain_of(d)) and known.periodic]
            if periodic and all(self.ranges.same(periodic[0], d) for d in periodic):
                self.ranges.unite(periodic[0], slot, span)

    def _fits(self, index: Term, slot: Domain) -> bool:
        domain = self.ranges.domain_of(slot)
        if domain is not None and domain.periodic:
            return True
        symmetric = domain is not None and domain.symmetric
        if isinstance(index, Const):
            return symmetric or index.real >= 0
        negated = _negated(index)
        return symmetric and negated is not None and self.ranges.same(negated, slot)


def _negated(index: Term) -> Domain | None:
    """The range of b in −b."""
    match index:
        case Mul((Const() as sign, Var(kind=Index(Domain() as own)))) if sign == MINUS_ONE:
            return own
        case _:
            return None


def _refuse_huge(index: Term, span: Span) -> None:
    """Numbers in an index stay where products of them with sizes of arrays are exact."""
    for t in index.terms if isinstance(index, Add) else (index,):
        if abs(split_coefficient(t)[0].real) >= _LARGEST:
            raise LanguageError(
                f"a number in this index is beyond the size of any array ({_LARGEST} or more)",
                span=span,
                remedy="use smaller numbers",
            )


def _no_index(term: Term, slot: tuple[str, Span], span: Span) -> LanguageError:
    if term.free and all(isinstance(v.kind, Index) for v in term.free):
        message = "index arithmetic must be affine with integer coefficients, such as k + 2*b - 1"
        remedy = "write a sum of indices with integer coefficients"
    elif isinstance(term, Const):
        message, remedy = "an index is an integer, and this number is none", "write an integer or an index"
    else:
        message = f"an index is expected here, found {in_words(term.type)}"
        remedy = "only indices and their integer combinations stand in a slot"
    return LanguageError(message, span=span, also=slot, remedy=remedy)


def affine_text(index: Term) -> str:
    """An affine form as it may have been written.

    >>> from combdiff.language.terms import add, fresh, mul, number
    >>> from combdiff.language.types import INTEGER
    >>> k, b = fresh("k", INTEGER), fresh("b", INTEGER)
    >>> affine_text(add(k, mul(number(-2), b)))
    'k - 2*b'
    """
    text = ""
    for t in index.terms if isinstance(index, Add) else (index,):
        c, rest = split_coefficient(t)
        size = abs(c.real)
        named = rest.name if isinstance(rest, Var) else ""
        piece = f"{size}*{named}" if named and size != 1 else named or str(size)
        sign = "-" if c.real < 0 else "+"
        text += f" {sign} {piece}" if text else (piece if c.real >= 0 else f"-{piece}")
    return text
