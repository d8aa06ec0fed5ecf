"""The values of a step as its text shows them: their terms counted from 1, and what each variable is called there."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from combdiff.language.printing.printer import Printer, opened
from combdiff.records import dataclass
from combdiff.simplify.known import is_opaque
from combdiff.terms.network import addends
from combdiff.terms.terms import Lam, Let, Loop, Sum, Term, Var, children, items_of

LONGEST = 60
"""Signs of a formula that stands within a sentence."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A value of a result: what it is `called`, empty for the only result, and its entry without its slots."""

    called: str
    value: Term
    printer: Printer

    @property
    def slots(self) -> tuple[Var, ...]:
        """The slots of the value; a function that takes more than indices is one value without slots."""
        return _slots(self.value)

    @property
    def entry(self) -> Term:
        """What stands in the slots of the value."""
        return self.value.body if isinstance(self.value, Lam) and self.slots else self.value

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms of the entry, which a reader counts from 1."""
        return addends(self.entry)

    def text(self, part: Term, within: Term | None = None, beside: Term | None = None) -> str:
        """`part` as it is written where it stands, `within` a term of the value, or where what is `beside` it does."""
        inner = self.printer
        path = _binders(self.entry if within is None else within, part if beside is None else beside)
        for bound in path or ():
            inner = inner.binding(bound)
        return inner.at(part)


def shown_values(f: Term) -> dict[Var | int, Shown]:
    """The values of a step by their names, and its results by their number.

    >>> from combdiff.language.inference.infer import infer
    >>> from combdiff.language.parsing.parser import parse
    >>> (result,) = shown_values(infer(parse("(x::RV) -> i -> x(i) + 2 * x(i)^2"))).values()
    >>> [result.text(t) for t in result.terms]
    ['x(i)', '2 * x(i)^2']
    """
    printer = opened(f)
    found: dict[Var | int, Shown] = {}
    if isinstance(f, Lam):
        printer, f = printer.binding(f.params), f.body
    while isinstance(f, Let):
        for var, value in f.bindings:
            inner = printer.binding([var])
            if isinstance(value, Loop):
                printer = inner
                continue
            found[var] = _shown(inner.names[var], value, printer)
            printer = inner
        f = f.body
    results = items_of(f)
    for n, result in enumerate(results):
        found[n] = _shown(f"result {n + 1}" if len(results) > 1 else "", result, printer)
    return found


def _shown(called: str, value: Term, printer: Printer) -> Shown:
    return Shown(called, value, printer.binding(_slots(value)))


def _slots(value: Term) -> tuple[Var, ...]:
    return value.params if isinstance(value, Lam) and not is_opaque(value) else ()


def _binders(t: Term, part: Term) -> list[Sequence[Var]] | None:
    """The variables bound around `part` where it first stands in `t`, outermost first; None where it does not."""
    seen: set[Term] = set()

    def go(u: Term) -> list[Sequence[Var]] | None:
        if u is part or u == part:
            return []
        if u in seen:
            return None
        seen.add(u)
        bound = [u.indices] if isinstance(u, Sum) else [u.params] if isinstance(u, Lam) else []
        for c in children(u):
            inner = go(c)
            if inner is not None:
                return [*bound, *inner]
        return None

    return go(t)


def listed(words: Sequence[object]) -> str:
    """`1, 2 and 3`."""
    texts = [str(w) for w in words]
    return " and ".join([", ".join(texts[:-1]), texts[-1]]) if len(texts) > 1 else "".join(texts)


def numbers(counted: Collection[int]) -> str:
    """`term 2`, `terms 1 and 3`, `terms 1 to 4`, of numbers from 0 on.

    >>> numbers([0, 1, 2, 3]), numbers([4, 0]), numbers([1])
    ('terms 1 to 4', 'terms 1 and 5', 'term 2')
    """
    own = sorted(n + 1 for n in counted)
    if len(own) > 3 and own == [*range(own[0], own[-1] + 1)]:
        return f"terms {own[0]} to {own[-1]}"
    return f"term{'s' * (len(own) > 1)} {listed(own)}"


def place_of(shown: Shown) -> str:
    """What stands before a sentence on a value: nothing where there is only one."""
    return f"{shown.called}: " if shown.called else ""
