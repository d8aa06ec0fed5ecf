"""Rewrites terms of one form once, such as the layers of a program, up to the names of their free variables."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import field

from combdiff.records import dataclass
from combdiff.terms.schema import bound_by, children, label
from combdiff.terms.terms import Term, Var, renamed

Rewrite = Callable[[list[Term]], list[Term]]


def once_a_form(terms: Sequence[Term], rewrite: Rewrite) -> list[Term]:
    """`rewrite(terms)` for a rewrite that acts on each term alone, whatever its free variables are called.

    >>> from combdiff.terms.terms import conj, mul
    >>> from combdiff.terms.types import COMPLEX
    >>> from combdiff.terms.terms import fresh
    >>> x, y = fresh("x", COMPLEX), fresh("y", COMPLEX)
    >>> seen = []
    >>> squares = once_a_form([x, y], lambda ts: seen.extend(ts) or [mul(t, conj(t)) for t in ts])
    >>> len(seen), squares[1] == mul(y, conj(y))
    (1, True)
    """
    forms = [form(t) for t in terms]
    first: dict[Hashable, int] = {}
    for n, (key, _) in enumerate(forms):
        first.setdefault(key, n)
    done = dict(zip(first.values(), rewrite([terms[n] for n in first.values()]), strict=True))
    unchanged = {n for n, result in done.items() if form(result) == forms[n]}
    results = []
    for n, (key, variables) in enumerate(forms):
        origin = first[key]
        result = done[origin]
        if origin in unchanged:
            result = terms[n]
        elif origin != n:
            result = renamed(result, dict(zip(forms[origin][1], variables, strict=True)))
        results.append(result)
    return results


@dataclass(frozen=True, slots=True)
class Repeats:
    """A rewrite for terms that come one after the other; `alike` says what it asks of their variables besides kinds.

    >>> from combdiff.terms.terms import conj, fresh, mul
    >>> from combdiff.terms.types import COMPLEX
    >>> x, y = fresh("x", COMPLEX), fresh("y", COMPLEX)
    >>> seen = []
    >>> square = Repeats(lambda t: seen.append(t) or mul(t, conj(t)))
    >>> square(x) == mul(x, conj(x)), square(y) == mul(y, conj(y)), len(seen)
    (True, True, 1)
    """

    rewrite: Callable[[Term], Term]
    alike: Callable[[Sequence[Var]], Hashable] = lambda _: ()
    known: dict[Hashable, tuple[Sequence[Var], Term | None]] = field(default_factory=dict)

    def __call__(self, t: Term) -> Term:
        spelled, variables = form(t)
        key = spelled, self.alike(variables)
        if key not in self.known:
            result = self.rewrite(t)
            changed = form(result) != (spelled, variables)
            self.known[key] = variables, result if changed else None
            return result
        own, found = self.known[key]
        return t if found is None else renamed(found, dict(zip(own, variables, strict=True)))


def form(t: Term) -> tuple[Hashable, list[Var]]:
    """What `t` is but for its free variables, and these in the order in which they are met.

    Shared subterms are written once, so that it is linear in what `t` holds.
    """
    numbers: dict[Var, int] = {}
    seen: dict[Term, int] = {}
    free: list[Var] = []
    spelled: list[Hashable] = []
    stack = [t]
    while stack:
        u = stack.pop()
        if isinstance(u, Var):
            if u not in numbers:
                numbers[u] = len(numbers)
                free.append(u)
                spelled.append(u.kind)
            spelled.append(numbers[u])
        elif u in seen:
            spelled.append(("again", seen[u]))
        else:
            seen[u] = len(seen)
            below = children(u)
            bound = bound_by(u)
            for v in bound:
                numbers.setdefault(v, len(numbers))
            spelled.append((type(u), label(u), len(below), tuple((v.name, v.kind) for v in bound)))
            stack += reversed(below)
    return tuple(spelled), free
