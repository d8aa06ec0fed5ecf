"""The numerical check of a derivation: finite differences of what was differentiated, emitted code, printed results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import field
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from combdiff.arrays.lower.signature import result_of
from combdiff.budget import Budget
from combdiff.calculus.functions.intervals import intervals_in
from combdiff.calculus.markers import parameters_of
from combdiff.calculus.modes import without_derivatives
from combdiff.checking.code import emitted, off_code
from combdiff.checking.differences import DIRECTIONS, SPARED, by_unknown, innermost, off_differences
from combdiff.checking.forward import direction_of
from combdiff.checking.functions import evaluated, is_on_interval, paired, placed
from combdiff.checking.points import DRAWS, has_unknowns, sample
from combdiff.checking.printed import Printed
from combdiff.checking.report import Finding, Report
from combdiff.checking.rounding import SLOPELESS, decides_a_jump, overflows, rounding_of
from combdiff.errors import UnsupportedError
from combdiff.meaning.differences import TOLERANCE, items_of
from combdiff.meaning.quadrature import finer, to_ends
from combdiff.meaning.sizes import FEWEST, Sizes, evaluation_steps, two_sizes
from combdiff.meaning.values import Value
from combdiff.records import dataclass
from combdiff.terms.terms import Lam, Sum, Term, Tuple, let, subterms, tuple_of
from combdiff.terms.traversal import interval_of_sum, jumps_along
from combdiff.terms.types import Index, Map, Number, Product, entry_range

if TYPE_CHECKING:
    from combdiff.derivation import Derivation
    from combdiff.run.compiled import Compiled


_DIFFERENCES = "finite differences"
_GIVEN = "the program as it was given"
_CODE = "emitted NumPy code"
_ROUNDS = 3  # of draws, each with other offsets in lists, as long as nothing could be compared
_STEPS = 100_000  # of all evaluations at one set of sizes, each some microseconds long
_POINTS = 5  # along a direction at which the objective is evaluated
_FINER = (2, 4)  # times as many nodes, where a rule may not see how an integrand changes
_UNSURE = 20  # times as much as integrals depend on their rules
_ALIKE = 2  # times the least: discrepancies by different rules that are no farther apart
_LEFT_OUT = 1e-4
_NEAR = 1e-3  # what a rule may be off where an integrand is steep, and a wrong derivative seldom is


def check(d: Derivation, seed: int = 0) -> Report:
    """Compare `d` with finite differences, its emitted NumPy code and what it prints; see `Derivation.check`.

    >>> import combdiff as cd
    >>> [finding.what for finding in check(cd.grad("(x::RV) -> sum(i, x(i)^2)")).findings]
    ['finite differences', 'emitted NumPy code', 'printed text', 'matrix form']

    Raises:
        UnsupportedError: nothing can be compared: no value is finite, or something is a function of the real line.
    """
    if not isinstance(seed, int) or seed < 0:
        raise UnsupportedError(f"a seed must be a non-negative integer, not {seed!r}", remedy="give 0 or more")
    _refuse_functions(d)
    kinds = [p.kind for p in d.objective.params if is_on_interval(p.kind)]
    many = any(isinstance(kind, Map) and len(kind.params) > 2 for kind in kinds)
    # a polynomial of the samples is integrated exactly by eight nodes, and in space there are hundreds of them
    with finer(Fraction(1, 3) if many else 1):
        return _checked(d, np.random.default_rng(seed), seed)


def _checked(d: Derivation, rng: np.random.Generator, seed: int) -> Report:
    second = d.mode in ("hvp", "hessian")
    body = innermost(d.slopes.term, d.objective) if second else without_derivatives(d.objective.body)
    _refuse_jumps(body)
    code, notes = emitted(d)
    budget = Budget.of(d.seconds)
    compared = _Compared(d, body, code, Printed(d), budget)
    found: list[dict[str, float]] = []
    for n in range(_ROUNDS):
        for sizes in _sizes(d.term, body, seed + n):
            if found and budget.over():
                notes = ("compared at one set of sizes only: there was no time for the other", *notes)
            else:
                found += filter(None, [compared.at(sizes, rng)])
        if found:
            return _reported(d, code, found, compared.notes(notes))
    raise UnsupportedError(
        "the program has no finite value on random numbers, or rounding decides it: there is nothing to compare",
        remedy="check it with arguments of functions such as log that stay in their range",
    )


def _reported(
    d: Derivation, code: Compiled[Any] | None, found: Sequence[dict[str, float]], notes: tuple[str, ...]
) -> Report:
    """The largest differences that were `found`, and notes on what could not be compared."""
    compared_things = dict.fromkeys(what for differences in found for what in differences)
    findings = [Finding(what, max(differences.get(what, 0.0) for differences in found)) for what in compared_things]
    told = any(note.startswith(_DIFFERENCES) for note in notes)
    if _DIFFERENCES not in compared_things and d.mode != "simplified" and not told:
        notes = (f"{_DIFFERENCES}: not compared, the program is too steep at random numbers", *notes)
    if code is not None and _CODE not in compared_things:
        notes = (f"{_CODE}: not compared, rounding decides the derivative at random numbers", *notes)
    return Report(tuple(findings), notes)


def _sizes(t: Term, body: Term, seed: int) -> tuple[Sizes, Sizes]:
    """Two sets of sizes, small ones where loops would else be long."""
    both = Tuple((t, body))  # a constant index may stand in one of them alone
    for few in range(FEWEST + 1):
        found = two_sizes(both, seed=seed, few=few)
        steps = max(evaluation_steps(t, s) + DIRECTIONS * _POINTS * evaluation_steps(body, s) for s in found)
        if steps <= _STEPS:
            break
    return found


@dataclass(frozen=True, slots=True)
class _Compared:
    """What is compared: the derivation `d`, the `body` that was differentiated, the code, and what is printed."""

    d: Derivation
    body: Term
    code: Compiled[Any] | None
    printed: Printed
    budget: Budget
    unseen: list[str] = field(default_factory=list)
    """Why nothing was compared where integrals depend on the rule."""

    def notes(self, others: tuple[str, ...]) -> tuple[str, ...]:
        """What could not be compared, in words."""
        return (*(f"{_DIFFERENCES}: not compared, {why}" for why in dict.fromkeys(self.unseen)), *others)

    def at(self, sizes: Sizes, rng: np.random.Generator) -> dict[str, float]:
        """The relative differences at one set of sizes, by what was compared; none if no value is finite."""
        with np.errstate(all="ignore"):
            drawn = self._drawn(sizes, rng)
            return {} if drawn is None else self._differences(*drawn, sizes)

    def _drawn(self, sizes: Sizes, rng: np.random.Generator) -> tuple[dict[Term, Value], Value, float | None] | None:
        """Numbers, the result on them, and how far it is off the differences, where these have slopes."""
        drawn = None
        looked_up = any(entry_range(v.kind) is not None for v in parameters_of(self.d.term))
        steps = DIRECTIONS * _POINTS * evaluation_steps(self.body, sizes)
        for draw in range(DRAWS):
            values = sample(self.d, self.body, sizes, rng, apart=draw > 0)
            if values is None and looked_up:
                continue  # a row of an array of integers names one point twice, and the volume between its points is 0
            if values is None:
                break
            result = evaluated(innermost(self.d.term, self.d.objective), values, sizes)
            off = off_differences(self.d, self.body, result, values, sizes, rng)
            if off is not None and off > TOLERANCE and intervals_in(self.d.program):
                finest = self._off_with_finer_rules(off, values, sizes, rng)
                off = None if finest is None else min(off, finest)
            if off == float("inf") and any(entry_range(v.type) is not None for v in values):
                continue  # an edge drew one node twice, where its length has no slope, or a group nobody
            if off == float("inf") and overflows(self.body, values, sizes):
                off = None
            drawn = values, result, off
            if off is not None or (draw + 1) * steps > _STEPS:
                break
        return drawn

    def _off_with_finer_rules(
        self, off: float, values: dict[Term, Value], sizes: Sizes, rng: np.random.Generator
    ) -> float | None:
        """How far the result is off the differences where integrals are computed with more nodes, and at ends.

        None where integrals still depend on the rule: what is infinite, or jumps inside of an interval, has no numbers.
        """
        found = [off]
        for rule in (*(finer(times) for times in _FINER), to_ends()):
            if self.budget.over():
                break
            with rule:
                result = evaluated(innermost(self.d.term, self.d.objective), values, sizes)
                nearer = off_differences(self.d, self.body, result, values, sizes, rng)
            found.append(float("inf") if nearer is None else nearer)
            if found[-1] <= TOLERANCE:
                return found[-1]
        least = min(found[1:], default=float("inf"))
        if least == float("inf") and off < _NEAR:
            self.unseen.append("there was no time for a finer rule")
            return None
        # what stays as it is with every rule is no matter of rules
        if max(found) < _ALIKE * min(found) or least > _UNSURE * self._unintegrated(values, sizes):
            return least
        self.unseen.append("an integrand is infinite or jumps where no rule sees it")
        return None

    def _unintegrated(self, values: dict[Term, Value], sizes: Sizes) -> float:
        """By how much integrals depend on the number of nodes, for the better of two kinds of rules.

        That with nodes close to the ends leaves out what is closer still.
        """
        found: list[float] = []
        for rule, least in ((nullcontext, 0.0), (to_ends, _LEFT_OUT)):
            numbers: list[npt.NDArray[Any]] = []
            for times in (1, *_FINER):
                with rule(), finer(times):
                    result = evaluated(innermost(self.d.term, self.d.objective), values, sizes)
                    both = (*self._paired(result, values, sizes), *self._paired(None, values, sizes))
                    numbers.append(np.array(both))
            changes = [np.abs(a - b) / np.maximum(1.0, np.abs(b)) for a, b in pairwise(numbers)]
            found.append(least + float(np.max(changes, initial=0.0)))
        return min(found)

    def _paired(self, result: Value | None, values: dict[Term, Value], sizes: Sizes) -> Iterator[float]:
        """The numbers of a result, or of the objective; a derivative is paired with a direction, always the same."""
        d, rng = self.d, np.random.default_rng(0)
        found = evaluated(self.body, values, sizes) if result is None else result
        if d.mode not in ("grad", "pullback", "hvp") or (result is None and d.mode != "hvp"):
            yield from (float(x) for each in items_of(found) for part in (each.real, each.imag) for x in np.ravel(part))
            return
        for x, g in zip(d.objective.params, by_unknown(found, d.objective), strict=True):
            kind = placed(x.kind, values)
            yield paired(kind, g, direction_of(kind, sizes, rng))

    def _differences(
        self, values: dict[Term, Value], result: Value, off: float | None, sizes: Sizes
    ) -> dict[str, float]:
        """All relative differences but those that rounding decides."""
        d = self.d
        found = {} if off is None else {_GIVEN if d.mode == "simplified" else _DIFFERENCES: off}
        result = _for_all_indices(d.term, result, values, sizes)
        if self.code is not None:
            found[_CODE] = off_code(d.term, self.code, result, values, sizes)
        found |= self.printed.differences(values, result, sizes)
        failed = {what for what, off in found.items() if off > TOLERANCE}
        unsure = SPARED * rounding_of(innermost(d.term, d.objective), values, sizes) if failed else 0.0
        failed -= {what for what in failed if found[what] <= unsure}
        if _DIFFERENCES in failed and rounding_of(self.body, values, sizes) > SLOPELESS:
            failed.remove(_DIFFERENCES)
        if failed and decides_a_jump(innermost(d.term, d.objective), values, sizes):
            failed.clear()
        return {what: off for what, off in found.items() if off <= TOLERANCE or what in failed}


def _for_all_indices(t: Term, result: Value, values: dict[Term, Value], sizes: Sizes) -> Value:
    """The result as code returns it: where the program leads with indices, for all of their values."""
    while isinstance(t, Lam) and has_unknowns(t):
        if any(isinstance(p.kind, Index) for p in t.params):
            parts = result_of(t)
            return evaluated(let(parts.bindings, tuple_of(parts.outputs)), values, sizes)
        t = t.body
    return result


def _refuse_functions(d: Derivation) -> None:
    """A function of real numbers has no finite list of entries to compare, but one on an interval has a rule."""
    f = d.objective
    values = f.body.type.items if isinstance(f.body.type, Product) else (f.body.type,)
    by_rule = d.mode in ("grad", "jvp", "hvp") and all(isinstance(kind, Number) for kind in values)
    for kind in (*(x.kind for x in f.params), *values):
        if isinstance(kind, Map) and not kind.is_array and not (by_rule and is_on_interval(kind)):
            raise UnsupportedError(
                "a derivative by a function of the real line, or of one, cannot be checked on numbers"
                if any(isinstance(p, Number) for p in kind.params)
                else "a derivative by a map of functions or of tensors cannot be checked on numbers",
                remedy="check a functional of functions on intervals, or with a periodic domain, and with known maps",
            )


def _refuse_jumps(body: Term) -> None:
    """What is integrated by a rule has no difference quotients where it jumps."""
    for t in subterms(body):
        if isinstance(t, Sum) and any(jumps_along(v, t.body) for v in t.indices if interval_of_sum(v, t.body)):
            raise UnsupportedError(
                "an integrand jumps, and the check integrates by a rule that does not see where",
                remedy="check the program with a smooth function in the place of the one that jumps",
            )
