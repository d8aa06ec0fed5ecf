"""What a program divides by, whatever conditions hold.

    sum(i, where(0 < p(i), log(p(i)))) / n          divides by n; by p(i) only under a condition

Where such a divisor is 0, the program has no finite value, and so its derivatives have none to keep: a condition in a
derivative need not guard a power of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import permutations

from combdiff.records import dataclass
from combdiff.terms.alpha import alpha_equal
from combdiff.terms.terms import (
    Add,
    App,
    Call,
    Conj,
    Const,
    Delta,
    Diff,
    Indicator,
    Lam,
    Let,
    Mul,
    Pow,
    Sum,
    Term,
    Var,
    factors_of,
    holds,
    substitute,
)
from combdiff.terms.types import Index, Type


@dataclass(frozen=True, slots=True)
class Divisor:
    """A number for each value of its indices, which run over their whole ranges; `defined` are definitions in it.

    A `positive` one has a root or a logarithm, and so must be above 0.
    """

    indices: Sequence[Var]
    number: Term
    defined: frozenset[Var] = frozenset()
    positive: bool = False

    def of_values(self, values: Mapping[tuple[str, Type], Var]) -> Divisor:
        """The divisor, of the `values` with the names and types of the definitions that it is made of."""
        renamed = {v: u for v in self.defined if (u := values.get((v.name, v.kind))) is not None}
        number = substitute(self.number, renamed)
        return Divisor(self.indices, number, positive=self.positive) if renamed else self

    def is_of(self, t: Term) -> bool:
        """Whether `t` is the number for some values of the indices.

        >>> from combdiff.terms.terms import fresh
        >>> from combdiff.terms.types import REAL, Domain, Map
        >>> n = Index(Domain("n"))
        >>> i, j, x = fresh("i", n), fresh("j", n), fresh("x", Map((n,), REAL))
        >>> Divisor((i,), App(x, (i,))).is_of(App(x, (j,))), Divisor((i,), App(x, (i,))).is_of(j)
        (True, False)
        """
        own = sorted(self.number.free.intersection(self.indices), key=lambda v: v.uid)
        free = sorted(t.free - self.number.free.difference(own), key=lambda v: v.uid)
        if type(t) is not type(self.number) or len(free) != len(own) or len(own) > MOST_INDICES:
            return False
        return any(
            [v.kind for v in order] == [v.kind for v in own]
            and alpha_equal(substitute(self.number, dict(zip(own, order, strict=True))), t)
            for order in permutations(free)
        )


MOST_INDICES = 3
"""Indices of a divisor whose orders are tried."""


def divisors(program: Term) -> list[Divisor]:
    """What a program divides by in a term of its value, or takes the logarithm of.

    >>> from combdiff.language.inference.infer import infer
    >>> from combdiff.language.parsing.parser import parse
    >>> program = infer(parse("(a::R, b::R) -> (x::RV{n}) -> sum(i, where(0 < x(i), 1 / x(i)) / (a + 1)) / n + log(b)"))
    >>> from combdiff.language.printing.printer import expression_text
    >>> [expression_text(d.number) for d in divisors(program)]
    ['a + 1', 'n', 'b']
    """
    found: dict[Term, Divisor] = {}
    walk = _Walk()
    for divisor in walk(program, ()):
        found.setdefault(divisor.number, divisor)
    return list(found.values())


@dataclass(slots=True)
class _Walk:
    """Goes where a value that is not finite makes that of the program not finite; `values` are definitions."""

    values: dict[Var, Term] = field(default_factory=dict)
    seen: set[Term] = field(default_factory=set)

    def __call__(self, t: Term, over: Sequence[Var]) -> Iterator[Divisor]:
        if t in self.seen:
            return
        self.seen.add(t)
        match t:
            case Let(bindings, body):
                self.values.update(bindings)
                yield from self(body, over)
            case Lam(params, body) if not any(isinstance(p.kind, Index) for p in params):
                yield from self(body, over)
            case Sum(indices, body):
                yield from self(body, (*over, *indices))
            case Pow(base, Const(real)) if real < 0:
                yield from self.divides(base, over, real.denominator > 1)
            case Call("log", (base,)):
                yield from self.divides(base, over, True)
            case Diff(_, of) if t.is_derivative:
                yield from self(of, over)
            case Pow(base, Const()) | Conj(base):
                yield from self(base, over)
            case Call("abs" | "abs2" | "sqrt" | "real", parts) | Add(parts) | Mul(parts):
                for part in parts:
                    yield from self(part, over)
            case Var() if t in self.values:
                yield from self(self.values[t], over)
            case App(Var() as f, args) if {*args} <= {*over} and len({*args}) == len(args):
                value = self.values.get(f)
                if isinstance(value, Lam) and [p.kind for p in value.params] == [a.type for a in args]:
                    yield from self(value.body, (*over, *value.params))

    def divides(self, base: Term, over: Sequence[Var], rooted: bool) -> Iterator[Divisor]:
        """Each factor of what is divided by, but a count under conditions: the derivative of a mean of nothing is 0."""
        positive = rooted and not isinstance(base, Mul)
        for factor in factors_of(base):
            if not holds(factor, Indicator, Delta):
                yield Divisor(over, factor, factor.free.intersection(self.values), positive)
