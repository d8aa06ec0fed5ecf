"""The forms of a derivation that code may use: its formula, and equal terms that may be quicker.

The formula is what a reader sees. What runs may be the derivative before common factors were collected, or that of an
equivalent program, whose definitions are written out or are others; `Forms` chooses by the sizes of arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from time import perf_counter
from typing import TYPE_CHECKING

from combdiff.arrays.lower.forms import Forms
from combdiff.arrays.lower.integrals import with_rules
from combdiff.budget import SECONDS, Budget
from combdiff.calculus.definitions.shared_parts import programs_to_run
from combdiff.calculus.functions.points import Points
from combdiff.calculus.markers import SIMPLIFIED
from combdiff.calculus.modes import without_derivatives
from combdiff.deriving.derive import derived_again, simplifier_like, tell
from combdiff.deriving.valued import with_value
from combdiff.errors import CombDiffError, UnsupportedError
from combdiff.gate.gate import Gate
from combdiff.run.hessian import Joint, joined
from combdiff.simplify.account import COLLECT
from combdiff.terms.conditions.needed import least_sizes
from combdiff.terms.recursion import deep_recursion
from combdiff.terms.terms import Lam, Term, Traverser, substitute, subterms
from combdiff.terms.types import Domain, Type

if TYPE_CHECKING:
    from combdiff.arrays.passes.distances import Distances
    from combdiff.derivation import Derivation


LONGER = 4
"""A program whose derivative is so many times as long as that of the user's is not tried: it may take a minute to
simplify, and what is written so often is not computed faster."""


class Runnable:
    """What code may compute of a derivation; `Derivation.runnable` keeps it, with all that was found once.

    >>> import combdiff as cd
    >>> from combdiff.language.printing.printer import expression_text
    >>> expression_text(cd.grad("(x::R) -> exp(x)").runnable.forms(value=True).formula)
    '(x::R) -> (exp(x), exp(x))'
    """

    def __init__(self, derivation: Derivation) -> None:
        self.derivation = derivation

    def forms(self, value: bool = False, distances: Distances = "differences", checkpoint: bool = False) -> Forms:
        """The derivative in all forms, with the objective's `value` first."""
        forms = self._with_value if value else self._without_value
        return replace(forms, distances=distances, checkpoint=checkpoint)

    def joint(self, value: bool = False, distances: Distances = "differences") -> Joint:
        """The derivative, and the Hessian-vector product of the same program."""
        mode = self.derivation.mode
        if mode != "grad":
            raise UnsupportedError(
                f"hvp=True needs a derivation of cd.grad, and this is a derivation of cd.{mode}",
                remedy="use cd.grad(text).compile(hvp=True), or cd.hvp(text) for the product alone",
            )
        with deep_recursion():
            return joined(self.forms(value, distances), self.derivation.products.runnable.forms())

    @cached_property
    def _without_value(self) -> Forms:
        return self._forms(self.derivation.term, [form for form, _ in self._uncollected])

    @cached_property
    def _with_value(self) -> Forms:
        d = self.derivation
        if d.mode == SIMPLIFIED:
            raise UnsupportedError("the result of cd.simplified is already the value", remedy="leave value out")
        flats = self._uncollected
        with deep_recursion():
            budget = Budget.of(d.seconds)
            formula = with_value(d.term, self.value, budget)
            return self._forms(formula, [with_value(form, origin.value, budget) for form, origin in flats])

    @property
    def _uncollected(self) -> list[tuple[Term, Runnable]]:
        """What code may use beside the formula, each with its origin."""
        found = [d.runnable for d in self.derivations]
        return [(r.uncollected, r) for r in found if r.uncollected is not None]

    def _forms(self, formula: Term, flats: Sequence[Term]) -> Forms:
        """A formula and equal forms; what is compared to choose one has the budget of a derivation."""
        formula = with_rules(formula)
        alike = tuple(renamed_as(formula, with_rules(flat)) for flat in flats)
        seconds = self.derivation.seconds
        same, agree = partial(_check_same, seconds=seconds), partial(agrees, seconds=seconds)
        return Forms(formula, alike, same, agree, least=self._least)

    @cached_property
    def _least(self) -> dict[Domain, int]:
        """The sizes that ranges have at least, because the program reads entries there."""
        with deep_recursion():
            return least_sizes(self.derivation.program)

    @cached_property
    def value(self) -> Term:
        """The objective in the form that its derivatives have."""
        d = self.derivation
        simplifier = simplifier_like(d, expand=False)
        f = without_derivatives(d.objective, simplifier, simplifier.ask)
        if not isinstance(f, Lam):
            return f
        points = Points.of(f)
        simplifier = simplifier_like(d, d.expand)
        tell(simplifier, d.program)
        return simplifier.value(f) if points is None else points.back(simplifier.value(points.map))

    @cached_property
    def derivations(self) -> tuple[Derivation, ...]:
        """The derivations that code may use: of equivalent programs that do not depend on how this one is written."""
        d = self.derivation
        if d.expand or d.mode not in ("grad", "pullback", "hvp"):
            return (d,)
        found = []
        end = perf_counter() + d.seconds
        longest = LONGER * max(_nodes(step.term) for step in d.steps if step.term is not None)
        with deep_recursion():
            for program in programs_to_run(d.program):
                if program == d.program:
                    found.append(d)
                    continue
                left = end - perf_counter()
                if left <= 0:
                    break
                with suppress(CombDiffError):  # the formula can be run, and that is enough
                    simplifier = simplifier_like(d, expand=False, seconds=left, collect=False, longest=longest)
                    again = derived_again(d, d.mode, program, simplifier)
                    # complex(2) written out is 2, and then the value may be real, and its cotangent
                    kinds = zip(_kinds(again.term), _kinds(d.term), strict=False)
                    found += [again] if all(a == b for a, b in kinds) else []
        return tuple(found) or (d,)

    @cached_property
    def uncollected(self) -> Term | None:
        """The derivative before common factors were collected and parts were named; None if it is multiplied out."""
        d = self.derivation
        collected = [n for n, step in enumerate(d.steps) if step.name == COLLECT]
        # of the programs that are only run nothing is collected: the last stage puts terms in order
        at = collected[-1] if collected else len(d.steps) - 1
        if d.expand or not isinstance(d.steps[at].term, Lam):
            return None
        before, last = d.steps[at - 1].term, d.steps[-1].term
        return Traverser(lambda t: before if t == last else t)(d.term)


def _nodes(t: Term) -> int:
    return sum(1 for _ in subterms(t))


def _kinds(t: Term) -> list[Type]:
    """The types of all parameters, then of the indices of a result."""
    return [p.kind for p in t.params] + _kinds(t.body) if isinstance(t, Lam) else []


def renamed_as(formula: Term, t: Term) -> Term:
    """`t` with the parameters of `formula`: the cotangents of another program may have other names.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> x, y = fresh("x", REAL), fresh("y", REAL)
    >>> renamed_as(Lam((x,), x), Lam((y,), y)) == Lam((x,), x)
    True
    """
    match formula, t:
        case Lam(params, body), Lam(own, inner) if len(params) == len(own):
            return Lam(params, renamed_as(body, substitute(inner, dict(zip(own, params, strict=True)))))
        case _:
            return t


def agrees(formula: Term, form: Term, seconds: float = SECONDS) -> bool:
    """Whether a form to run has the value of the formula, where both have one on random numbers.

    Raises OutOfTime if that is not known in time.
    """
    with suppress(UnsupportedError, OverflowError):
        return Gate(budget=Budget.of(seconds)).agree(formula, form)
    return True


def _check_same(before: Term, after: Term, seconds: float = SECONDS) -> None:
    """Raise CheckError if the form that was chosen to run has another value than the formula, or OutOfTime."""
    with suppress(UnsupportedError, OverflowError):
        Gate(budget=Budget.of(seconds)).same(before, after, "choosing what to run")
