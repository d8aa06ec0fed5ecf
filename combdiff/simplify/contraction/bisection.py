"""Finds the law family that is wrong, by bisection, after the gate has found that a contraction changed a value.

The contraction is done again, a family at a time, and the term is compared with the first one after each. What laws
leave half done for one another (a substitution that has not reached the leaves) has a meaning too, so that a family is
named before another one builds on its mistake. Nothing of this runs unless there is a mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from fractions import Fraction

from combdiff.calculus.definitions.floating import unfold
from combdiff.errors import CombDiffError
from combdiff.resources import resource
from combdiff.simplify.check import parts_of
from combdiff.simplify.contraction.contract import SETTLING
from combdiff.simplify.contraction.egraph import FAMILIES, Session
from combdiff.simplify.contraction.extraction import Reader
from combdiff.simplify.contraction.fourier import FOURIER
from combdiff.simplify.contraction.translation import Translation
from combdiff.terms.network import addends
from combdiff.terms.terms import Term, Var, body_of, mul, power, substitute, total

LAWS = ("collect", "part_of_product", "part_of_sum", "real_parts", "reassociate")
"""The laws of the graph of forms, each in a file of its name."""

_CONTRACTING = ("contract", "expand", "place cotangents")
_OTHER_WORK = {
    "merge like terms": "canonical names under symmetry (canonical.py) or the constructors' arithmetic",
    "place cotangents": "placing (choose.py)",
    "solve": "the solution of an affine equation (implicit.py, affine.py)",
    "unread states": "the choice of the states that are read (read_states.py)",
    "join loops": "the comparison of states (joining.py)",
    "collect and name": "the graph of forms (simplify/graph/) or closed forms (closed.py)",
    "order and names": "reading order (order.py), plainest images (images.py) or names (choose.py)",
}
"""What stages do that is no law of `rules/`."""


def accusation(stage: str, before: Term, fired: Collection[str], agree: Callable[[Term, Term], bool]) -> str:
    """What must be wrong in a stage that changed the value of `before`, for the error's message; ends in a semicolon.

    Args:
        fired: the families of laws that fired in it.
    """
    expand = stage == "expand"
    guilty = guilty_family(unfold(before) if expand else before, expand, agree) if stage in _CONTRACTING else ""
    if guilty:
        return f"a law of {_located(guilty)} is wrong; "
    suspects = [f"a law of {', '.join(map(_located, sorted(fired)))}"] if fired else []
    suspects += [_OTHER_WORK[stage]] if stage in _OTHER_WORK else []
    return f"what is wrong is {' or '.join(suspects)}; " if suspects else ""


def _located(family: str) -> str:
    """The family and the file it stands in; what `solve` finds does not count before `meet` uses it."""
    if family == "meet":
        return "meet (rules/contract.egg) or solve (rules/index.egg)"
    if family == FOURIER:
        return f"{family} (simplify/contraction/{family}.py)"
    if family in LAWS:
        return f"{family} (simplify/graph/laws/{family}.py)"
    file = next(file for file in FAMILIES if f"(ruleset {family})" in resource("rules", f"{file}.egg"))
    return f"{family} (rules/{file}.egg)"


def guilty_family(body: Term, expand: bool, agree: Callable[[Term, Term], bool]) -> str:
    """The first family whose laws change the value of a part of `body`; empty if none does when run alone.

    Args:
        agree: whether two terms have the same value.
    """
    parts = parts_of(body)
    for value in (*parts.values.values(), *parts.items):
        entry = body_of(value)
        summands = addends(entry)
        for t in summands:
            family = _guilty(t, expand, agree)
            if family:
                return family
    return ""


def _guilty(t: Term, expand: bool, agree: Callable[[Term, Term], bool]) -> str:
    book = Translation(spell_powers=expand)
    root = book.root(t)
    later = ("meet", "outward", "expand") if expand else ("meet", "outward")
    steps = Session(FAMILIES, watched=True).steps(book.facts(), root, SETTLING, later)
    try:
        for family, dag, node in steps:
            if not agree(t, _HalfDone(dag, book.variables, book.continued)(node)):
                return family
    except CombDiffError:
        # what is half done may have no value on arrays
        return ""
    finally:
        steps.close()
    return ""


class _HalfDone(Reader):
    """Reads what laws leave for other laws as what it means."""

    def _build_plain(self, name: str, args: list[int]) -> Term:
        match name, args:
            case "Subst", [m, e]:
                return substitute(self(e), self._values(m))
            case "Met", [vs, _, ds, m, e]:
                body = substitute(self._delta(self._elements(ds), self(e)), self._values(m))
                return total([self._variable(v) for v in self._elements(vs)], body)
            case "Over", [vs, e]:
                return total([self._variable(v) for v in self._elements(vs)], self(e))
            case "Where", [ds, e]:
                return self._delta(self._elements(ds), self(e))
            case "With", [es, x]:
                return mul(*map(self, self._elements(es)), self(x))
            case "Raise", [n, b]:
                return power(self(b), self(n))
            case _:
                return super()._build_plain(name, args)

    def _values(self, m: int) -> dict[Var, Term]:
        """What is put in the place of variables, all at once."""
        values: dict[Var, Term] = {}
        name, args = self._application(m)
        while name == "map-insert":
            values[self._variable(args[1])] = self(args[2])
            name, args = self._application(args[0])
        return values

    def _monomials(self, ms: int) -> list[tuple[Fraction, Term]]:
        return [self._monomial(m) for m in self._elements(ms)]

    def _monomial(self, m: int) -> tuple[Fraction, Term]:
        name, args = self._application(m)
        match name, args:
            case "Scale", [p, inner]:
                q, x = self._monomial(inner)
                return self._rational(p) * q, x
            case "SubstMono", [m, inner]:
                q, x = self._monomial(inner)
                return q, substitute(x, self._values(m))
            case _:
                return self._rational(args[0]), self(args[1])
