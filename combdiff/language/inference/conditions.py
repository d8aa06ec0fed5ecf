"""Conditions: `where(0 <= i < n and x(i) != y, a, b)` becomes guards of its branches.

    where(i < j, a, b)   is   indicator(i + 1, j, a) + indicator(j, i, b)

Whether an index is one, and whether its domain is periodic, is known only when the whole program was read. Until then a
comparison is an `indicator` whose left side is marked by its relation; `settled` replaces it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from combdiff.errors import LanguageError
from combdiff.language.inference.scope import Ready, Scope, Textual
from combdiff.language.parsing.syntax import Comparison, Expr, Junction, Name, Negation
from combdiff.records import dataclass
from combdiff.terms.conditions.comparing import NEGATED, compared, some
from combdiff.terms.terms import ONE, ZERO, Indicator, Term, Traverser, Var, add, fresh, indicator, neg
from combdiff.terms.types import INTEGER, Map, is_complex

if TYPE_CHECKING:
    from combdiff.language.inference.infer import Elaborator

Fact = tuple[Term, str, Term]
"""That two numbers are in a relation."""


@dataclass(frozen=True, slots=True)
class Guarding:
    """What puts a number under a condition, and what surely holds there."""

    put: Callable[[Term], Term]
    facts: tuple[Fact, ...] = ()

    def __call__(self, body: Term) -> Term:
        return self.put(body)


Relations = Mapping[str, Var]
"""What marks the left side of a comparison until it is settled."""


def relations() -> Relations:
    """A mark for each relation.

    >>> sorted(relations())
    ['!=', '<', '<=', '==']
    """
    return {relation: fresh(relation, INTEGER) for relation in ("<", "<=", "==", "!=")}


def conditional(
    el: Elaborator, condition: Expr | Ready, scope: Scope, negated: bool = False, among_indices: bool = False
) -> Guarding:
    """What guards by a condition, or by its contrary; `among_indices` if it stands where an index might."""
    match condition:
        case Comparison(operands, signs, dotted=dotted):
            sides = [_side(el, operand, scope, dotted) for operand in operands]
            for one, sign, other in zip(sides, signs, sides[1:], strict=False):
                if sign == "==":
                    el.slots.meet(one, other, condition.span)
            links = zip(sides, signs, sides[1:], strict=False)
            found = [_compared(el, a, NEGATED[sign] if negated else sign, b) for a, sign, b in links]
            return _some(found) if negated else _all(found)
        case Junction(items, every):
            if every == negated:
                return _some([conditional(el, item, scope, negated) for item in items])
            guards: list[Guarding] = []
            for item in items:
                # what is compared under other conditions is guarded by them
                with el.holding([fact for guard in guards for fact in guard.facts]):
                    guards.append(conditional(el, item, scope, negated))
            return _all(guards)
        case Negation(of):
            return conditional(el, of, scope, not negated)
        case Name(text) if isinstance(entry := scope.find(text), Textual):
            el.spend(1, condition.span)
            return conditional(el, entry.value, scope.child({text: entry.before}), negated)
    raise LanguageError(
        "a condition is expected here",
        span=condition.span,
        remedy="write several indices in parentheses: sum((i, j), A(i, j))"
        if among_indices and isinstance(condition, Name)
        else "write a comparison, such as i < j, joined by `and`, `or`, `not`",
    )


def where(el: Elaborator, condition: Expr | Ready, branches: tuple[Expr | Ready, ...], scope: Scope) -> Term:
    """`where(c, a, b)`; b is 0 if it is left out."""
    parts = []
    for branch, negated in zip(branches, (False, True), strict=False):
        guard = conditional(el, condition, scope, negated)
        parts.append(guard(el.guarded(branch, scope, guard.facts, _entry_by_entry)))
    return add(*parts)


def _entry_by_entry(slots: int) -> str:
    """What to write where tensors of so many slots are compared or chosen from."""
    at = ", ".join("ijklmnop"[:slots])
    return f"write where.(x .< y, a, b) to choose entry by entry, where(x({at}) < y({at}), a, b) for one entry"


def settled(term: Term, marks: Relations) -> Term:
    """The term with its comparisons as guards, all types being known."""
    relation = {mark: sign for sign, mark in marks.items()}

    def visit(t: Term) -> Term:
        match t:
            case Indicator(left, right, body):
                mark = next((v for v in left.free if v in relation), None)
                if mark is not None:
                    return compared(add(left, neg(mark)), relation[mark], right, body)
        return t

    return term if term.free.isdisjoint(relation) else Traverser(visit)(term)


def _side(el: Elaborator, side: Expr, scope: Scope, dotted: bool) -> Term:
    if dotted and isinstance(el.expr(side, scope).type, Map):
        raise LanguageError(
            "a condition on every entry is used where a single condition is expected",
            span=side.span,
            remedy=_entry_by_entry(1),
        )
    term = el.number(side, scope, _entry_by_entry)
    if is_complex(term.type):
        raise LanguageError(
            "a complex value cannot be compared", span=side.span, remedy="compare real(…) or abs(…) of it"
        )
    return term


def _compared(el: Elaborator, left: Term, sign: str, right: Term) -> Guarding:
    """What guards by one comparison, which is settled later."""
    if sign in (">", ">="):
        left, sign, right = right, {">": "<", ">=": "<="}[sign], left
    return Guarding(partial(indicator, add(left, el.relations[sign]), right), ((left, sign, right),))


def _all(guards: Sequence[Guarding]) -> Guarding:
    def under(body: Term) -> Term:
        for guard in reversed(guards):
            body = guard(body)
        return body

    return Guarding(under, tuple(fact for guard in guards for fact in guard.facts))


def _some(guards: Sequence[Guarding]) -> Guarding:
    if len(guards) == 1:
        return guards[0]
    return Guarding(lambda body: some([guard(ONE) for guard in guards], body) if body != ZERO else ZERO)
