"""The numerical check of a derivation: finite differences of what was differentiated, emitted code, printed results.

For random unknowns z, directions dz and cotangents k the pullback must satisfy Re⟨𝒫(f)(z, k), dz⟩ = Re⟨k, f'(z) dz⟩
(Eq. 44), where f is evaluated by `meaning/evaluate.py`, so that no rule of the calculus takes part in the right side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import field
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from combdiff.arrays.lower.argument_names import ArgumentNames
from combdiff.arrays.lower.signature import result_of
from combdiff.budget import Budget
from combdiff.calculus.functions.intervals import intervals_in
from combdiff.calculus.modes import without_derivatives
from combdiff.checking.forward import direction_of, moved, off_matrices, off_tangent
from combdiff.checking.functions import (
    Smooth,
    Surface,
    Wave,
    evaluated,
    is_on_interval,
    paired,
    placed,
    random_function,
    random_variation,
    random_wave,
    with_slopes,
)
from combdiff.checking.printed import SMALLEST, Printed
from combdiff.errors import UnsupportedError
from combdiff.language.vocabulary import DERIVATIVES, LINEAR
from combdiff.meaning.comparing import difference
from combdiff.meaning.differences import TOLERANCE, Numbers, difference_quotient, is_lost, items_of, off_slope
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.linear_maps import LinearMap
from combdiff.meaning.points import listed
from combdiff.meaning.quadrature import finer, standard_rule, to_ends
from combdiff.meaning.samples import (
    definite,
    distances,
    random_ends,
    random_value,
    takes_roots,
    takes_spectra,
    told_apart,
)
from combdiff.meaning.sizes import FEWEST, Sizes, evaluation_steps, two_sizes
from combdiff.meaning.values import Value, entry_by_entry
from combdiff.records import dataclass
from combdiff.terms.terms import (
    Diff,
    Lam,
    Let,
    Sum,
    Term,
    Tuple,
    Var,
    along,
    derivative_order,
    diff,
    holds,
    is_curve,
    is_end,
    let,
    subterms,
    tuple_of,
)
from combdiff.terms.traversal import interval_of_sum, jumps_along
from combdiff.terms.types import (
    Index,
    Map,
    Number,
    Product,
    Type,
    entry_range,
    interval_of_rule,
    is_complex,
    is_discrete,
)

if TYPE_CHECKING:
    from combdiff.arrays.plan import Argument
    from combdiff.derivation import Derivation
    from combdiff.run.compiled import Compiled

_SPARED = 8  # times: where slopes are balanced, the rounding of a large value is larger than what it changes by


@dataclass(frozen=True, slots=True)
class Finding:
    """One comparison: what was compared and the relative difference."""

    what: str
    difference: float

    @property
    def passed(self) -> bool:
        return self.difference <= TOLERANCE


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of a check; false if one of them failed. `notes` say what could not be compared."""

    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return all(f.passed for f in self.findings)

    def __repr__(self) -> str:
        return f"<check: {'passed' if self else 'FAILED'}\n{self}>"

    def __str__(self) -> str:
        lines = (
            f"{'ok    ' if f.passed else 'FAILED'}  {f.what}: relative difference {f.difference:.1e}"
            for f in self.findings
        )
        return "\n".join([*lines, *(f"        {note}" for note in self.notes)])

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        from combdiff.jupyter.display import report_bundle

        return report_bundle(self)


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
    body = _innermost(d.slopes.term, d.objective) if second else without_derivatives(d.objective.body)
    _refuse_jumps(body)
    code, notes = _emitted(d)
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


_ROUNDS = 3  # of draws, each with other offsets in lists, as long as nothing could be compared
_STEPS = 100_000  # of all evaluations at one set of sizes, each some microseconds long
_DIRECTIONS = 2  # at each set of sizes
_POINTS = 5  # along a direction at which the objective is evaluated


def _sizes(t: Term, body: Term, seed: int) -> tuple[Sizes, Sizes]:
    """Two sets of sizes, small ones where loops would else be long."""
    both = Tuple((t, body))  # a constant index may stand in one of them alone
    for few in range(FEWEST + 1):
        found = two_sizes(both, seed=seed, few=few)
        steps = max(evaluation_steps(t, s) + _DIRECTIONS * _POINTS * evaluation_steps(body, s) for s in found)
        if steps <= _STEPS:
            break
    return found


def _emitted(d: Derivation) -> tuple[Compiled[Any] | None, tuple[str, ...]]:
    """The emitted code, or a note that says why there is none."""
    try:
        return d.compile("numpy", check=False), ()
    except UnsupportedError as refusal:
        if not _unrunnable(d.term):
            raise
        return None, (f"emitted NumPy code: not compared, {refusal.message}",)


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
        steps = _DIRECTIONS * _POINTS * evaluation_steps(self.body, sizes)
        for draw in range(_DRAWS):
            values = _sample(self.d, self.body, sizes, rng, apart=draw > 0)
            if values is None:
                break
            result = evaluated(_innermost(self.d.term, self.d.objective), values, sizes)
            off = _against_differences(self.d, self.body, result, values, sizes, rng)
            if off is not None and off > TOLERANCE and intervals_in(self.d.program):
                finest = self._off_with_finer_rules(off, values, sizes, rng)
                off = None if finest is None else min(off, finest)
            if off == float("inf") and any(entry_range(v.type) is not None for v in values):
                continue  # an edge drew one node twice, where its length has no slope, or a group nobody
            if off == float("inf") and _overflows(self.body, values, sizes):
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
                result = evaluated(_innermost(self.d.term, self.d.objective), values, sizes)
                nearer = _against_differences(self.d, self.body, result, values, sizes, rng)
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
                    result = evaluated(_innermost(self.d.term, self.d.objective), values, sizes)
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
        for x, g in zip(d.objective.params, _each(found, d.objective), strict=True):
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
            found[_CODE] = _against_code(d.term, self.code, result, values, sizes)
        found |= self.printed.differences(values, result, sizes)
        failed = {what for what, off in found.items() if off > TOLERANCE}
        unsure = _SPARED * _rounding(_innermost(d.term, d.objective), values, sizes) if failed else 0.0
        failed -= {what for what in failed if found[what] <= unsure}
        if _DIFFERENCES in failed and _rounding(self.body, values, sizes) > _JUMPS:
            failed.remove(_DIFFERENCES)
        if failed and _jumps(_innermost(d.term, d.objective), values, sizes):
            failed.clear()
        return {what: off for what, off in found.items() if off <= TOLERANCE or what in failed}


def _for_all_indices(t: Term, result: Value, values: dict[Term, Value], sizes: Sizes) -> Value:
    """The result as code returns it: where the program leads with indices, for all of their values."""
    while isinstance(t, Lam) and _has_unknowns(t):
        if any(isinstance(p.kind, Index) for p in t.params):
            parts = result_of(t)
            return evaluated(let(parts.bindings, tuple_of(parts.outputs)), values, sizes)
        t = t.body
    return result


def _rounding(t: Term, values: dict[Term, Value], sizes: Sizes) -> float:
    """How much the value of a term changes where its numbers are a little off.

    It may be as much as it can be: where a sum that is always 0 is compared with 0, or a logarithm lies on its cut.
    """
    return _change(t, values, sizes, _NUDGE, _NUDGES)


def _jumps(t: Term, values: dict[Term, Value], sizes: Sizes) -> bool:
    """Whether rounding decides on which side of a jump the value of a term lies, such as the cut of a root.

    A jump is as large however little the numbers are off; what is only steep changes the less, the less they are.
    """
    near = _change(t, values, sizes, _NUDGE, _SIDES, SMALLEST)
    return near > TOLERANCE and _change(t, values, sizes, _FAR * _NUDGE, _SIDES, SMALLEST) < _FAR / 10 * near


def _change(t: Term, values: dict[Term, Value], sizes: Sizes, nudge: float, draws: int, floor: float = 1.0) -> float:
    """How much the value of a term changes at most where its numbers are off by about `nudge`, relatively."""
    drawn = [values]
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        drawn.append({v: _nudged(x, rng, nudge) for v, x in values.items()})
    exact, *nudged = ([np.asarray(x) for x in items_of(evaluated(t, sample, sizes))] for sample in drawn)
    pairs = [pair for moved in nudged for pair in zip(moved, exact, strict=True)]
    return max((_distance(a, b, floor) for a, b in pairs), default=0.0)


def _nudged(value: Value, rng: np.random.Generator, nudge: float) -> Value:
    """Numbers that are off by a little; functions stay as they are."""
    if isinstance(value, float | complex):
        return value * (1 + nudge * float(rng.standard_normal()))
    if isinstance(value, np.ndarray) and value.dtype.kind in "fc":
        return np.asarray(value * (1 + nudge * rng.standard_normal(value.shape)))
    return value


def _overflows(body: Term, values: dict[Term, Value], sizes: Sizes) -> bool:
    """Whether a number on the way to the value is too large, as in atan(sinh(1000)): its derivative may be, too."""
    try:
        with np.errstate(over="raise"):
            evaluated(body, values, sizes)
    except (FloatingPointError, OverflowError):
        return True
    return False


_FINER = (2, 4)  # times as many nodes, where a rule may not see how an integrand changes
_UNSURE = 20  # times as much as integrals depend on their rules
_ALIKE = 2  # times the least: discrepancies by different rules that are no farther apart
_LEFT_OUT = 1e-4
_NEAR = 1e-3  # what a rule may be off where an integrand is steep, and a wrong derivative seldom is
_DIFFERENCES = "finite differences"
_GIVEN = "the program as it was given"
_CODE = "emitted NumPy code"
_DRAWS = 6
_NUDGES = 4
_NUDGE = 1e-15  # a little more than rounding
_SIDES = 16  # draws, of which on a cut all are on one side in one case of many thousand
_FAR = 1000  # times as far
_JUMPS = 1e-9  # what changes so much by rounding has no slope
_AWAY = 0.5  # from zero: much farther than a difference steps


def _sample(
    d: Derivation, body: Term, sizes: Sizes, rng: np.random.Generator, *, apart: bool = False
) -> dict[Term, Value] | None:
    """Random values where `body`, which was differentiated, is finite: a real log or root wants positive ones.

    If they are `apart`, arrays of integers have no entries in common.
    The last draws lie between 0 and 1, as probabilities and fractions do.
    """
    for draw in range(_DRAWS):
        ends = random_ends(intervals_in(d.program), rng)
        values = _values(d.term, sizes, rng, ends)
        directions = [k for k in _cotangents(d.term, d.objective) if is_on_interval(k.kind)]
        values |= {k: random_variation(placed(k.kind, values), rng) for k in directions}
        if apart:
            values = told_apart(values, sizes, rng)
        if draw >= _DRAWS // 3:
            ends = random_ends(intervals_in(d.program), rng, positive=True)
            at_most = np.inf if draw < 2 * _DRAWS // 3 else 1.0
            values = {v: _positive(v.type, value, at_most) for v, value in values.items()}
            values |= {v: ends[v.name] for v in values if isinstance(v, Var) and is_end(v)}
        if takes_roots(body) or (draw % 2 and takes_spectra(body)):
            form = distances if draw % 4 > 1 else definite
            values = {v: form(v.type, value) for v, value in values.items()}  # type: ignore[misc]
        for t in (d.term, d.objective, body):
            _add_derivatives(values, t, sizes)
        within = {v: value.within() if isinstance(value, Smooth | Surface) else value for v, value in values.items()}
        if all(np.isfinite(x).all() for x in items_of(evaluated(body, within, sizes))):
            return values
    return None


def _positive(kind: Type, value: Value, at_most: float) -> Value:
    """Positive numbers instead of real ones; an array with declared symmetries keeps what it has."""
    if isinstance(value, Smooth | Surface) and not is_complex(kind):
        return value.positive()
    if is_complex(kind) or is_discrete(kind) or (isinstance(kind, Map) and kind.symmetries):
        return value
    if not isinstance(value, np.ndarray | int | float):
        return value
    size = np.abs(np.asarray(value, float)) + _AWAY
    found = size if np.isinf(at_most) else at_most * size / (size + _AWAY)
    return found if found.ndim else float(found)


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


def _unrunnable(t: Term) -> bool:
    """Whether `t` may have no array code: it holds an unknown map, which code cannot call in a loop over indices."""
    return holds(t, Diff)


def _values(
    t: Term, sizes: Sizes, rng: np.random.Generator, ends: Mapping[str, float] | None = None
) -> dict[Term, Value]:
    """Random values for all parameters; for an unknown map of tensors a smooth function of their entries."""
    values: dict[Term, Value] = {}
    while isinstance(t, Lam):
        for p in t.params:
            if ends and p.name in ends and is_end(p):
                values[p] = ends[p.name]
                continue
            if is_on_interval(p.kind):
                values[p] = random_function(p.kind, rng)
                continue
            if is_curve(p.kind) and isinstance(p.kind, Map) and not p.kind.linear:
                values[p] = random_wave(p.kind, rng)
                continue
            try:
                values[p] = random_value(p.kind, sizes, rng)
            except UnsupportedError:
                values[p] = _smooth_map(p.kind, rng)
        t = t.body
        if not _has_unknowns(t):
            break
    return values


def _has_unknowns(t: Term) -> bool:
    """Whether `t` is a further map of arguments, rather than a result indexed by its slots, or a function of points."""
    is_result = isinstance(t.type, Map) and (t.type.is_array or is_on_interval(t.type))
    return isinstance(t, Lam) and not is_result


def _smooth_map(kind: Type, rng: np.random.Generator) -> Callable[..., Value]:
    """A smooth real function of the entries of tensors, in the place of an unknown one."""
    assert isinstance(kind, Map), "only maps are unknown"
    if isinstance(kind.result, Map | Product) or any(isinstance(p, Map) and not p.is_array for p in kind.params):
        raise UnsupportedError(
            "an unknown map of functions, or of tensors to tensors, has no random value to be checked with",
            remedy="define the map in the program, or compare with numbers of your own",
        )
    weights = rng.normal(size=256)

    def function(*args: Value) -> Value:
        entries = [np.ravel(x.real) for a in args for x in items_of(a)]
        total = 0.3 + sum(float(np.resize(weights[n:], x.size) @ x) for n, x in enumerate(entries))
        return float(np.sin(total) + 0.1 * total * total)

    return function


def _innermost(t: Term, f: Lam) -> Term:
    """The body of the derivative, below the parameters that it shares with f and below its cotangents."""
    while isinstance(t, Lam):
        if t.params[: len(f.params)] == f.params:
            return t.body
        t = t.body
    raise UnsupportedError(
        "this result is not a map of the unknowns, so it cannot be checked on numbers",
        remedy="write the derivative outermost below the leading maps",
    )


def _add_derivatives(values: dict[Term, Value], t: Term, sizes: Sizes) -> None:
    """Differences in the place of the derivatives of maps that are unknown, or defined in `t` and kept unknown."""
    bindings = [binding for u in subterms(t, Let) for binding in u.bindings]
    kept = [var for var, e in bindings if isinstance(e, Lam) and isinstance(e.type, Map) and not e.type.is_tensor]
    derivatives = sorted((u for u in subterms(t, Diff)), key=derivative_order)
    for source in (None, *kept):
        if source is not None:
            values[source] = evaluate(let(bindings, source), values, sizes)
        for u in derivatives:
            given = values.get(u.of)
            if u in values or not callable(given):
                continue
            if u.kind == "root":
                values[u] = evaluate(u, values, sizes)
            if isinstance(given, LinearMap) and u.kind in LINEAR:
                values[u] = given.adjoint if u.kind == "adjoint" else given.inverse
            elif isinstance(given, Smooth | Wave) and u.kind == "grad":
                values[u] = given.derivative()
            elif u.kind in DERIVATIVES:
                values[u] = _along(given) if along(u)[1] and is_complex(u.type) else difference_quotient(given, u.kind)


def _along(f: Callable[..., Value]) -> Callable[..., Value]:
    """The derivative of a complex function along its real argument."""
    slopes = difference_quotient(f, "pullback")

    def function(x: Value) -> Value:
        real, imaginary = slopes(x, 1.0), slopes(x, 1j)
        assert isinstance(real, float) and isinstance(imaginary, float), "the argument is a real number"
        return complex(real, imaginary)

    return function


def _against_differences(
    d: Derivation,
    body: Term,
    result: Value,
    values: dict[Term, Value],
    sizes: Sizes,
    rng: np.random.Generator,
) -> float | None:
    """The largest relative difference over a few random directions; None if the differences of none of them settle."""
    f = d.objective
    cotangents = _cotangents(d.term, f)
    if d.mode == "simplified":
        expected = evaluated(body, values, sizes)
        return max((_distance(a, b) for a, b in zip(items_of(result), items_of(expected), strict=True)), default=0.0)
    if d.mode == "jvp":
        tangents = [values[k] for k in cotangents]
        return off_tangent(f, body, tangents, items_of(result), values, sizes, rng)
    if d.mode in ("jacobian", "hessian"):
        return off_matrices(f, body, items_of(result), values, sizes, rng)
    return _off_cotangents(d, body, result, values, sizes, rng)


def _off_cotangents(
    d: Derivation, body: Term, result: Value, values: dict[Term, Value], sizes: Sizes, rng: np.random.Generator
) -> float | None:
    """How far cotangents are off, Re⟨𝒫(f)(z, k), dz⟩ beside the slope of Re⟨k, f⟩ along dz.

    In the last direction, entries by which the slope is large move less, so that they do not hide the others.
    """
    f, cotangents = d.objective, _cotangents(d.term, d.objective)
    given = tuple(values[c] for c in cotangents)
    k: Value = 1.0 if not given else given[0] if len(given) == 1 else given
    of_functions = any(is_on_interval(x.kind) for x in f.params)

    def value(at: dict[Term, Value]) -> Value:
        found = evaluated(body, at, sizes)
        if not (of_functions and cotangents):
            return found
        # of a gradient, along the direction that its Hessian product was taken along
        parts = zip(f.params, _each(found, f), cotangents, strict=True)
        return sum(paired(placed(x.kind, at), g, values[k]) for x, g, k in parts)

    if of_functions:
        k = 1.0
    cotangent_of = _each(result, f)
    if any(_is_beyond(x.kind, g) for x, g in zip(f.params, cotangent_of, strict=True)):
        return float("inf")
    offs: list[float] = []
    for last in (*(False,) * _DIRECTIONS, *(() if d.symmetric else (True,))):
        directions = _directions(d, cotangent_of, values, sizes, rng, balanced=last)
        if not any(map(_moves, directions)):
            continue

        def along(h: float, directions: Sequence[Value] = directions) -> Value:
            there: dict[Term, Value] = {x: moved(values[x], dx, h) for x, dx in zip(f.params, directions, strict=True)}
            return value({**values, **with_slopes(there, values)})

        triples = zip(f.params, cotangent_of, directions, strict=True)
        found = sum(paired(placed(x.kind, values), g, dx) for x, g, dx in triples)
        off = off_slope(found, k, along, _SPARED if last else 1)
        offs += [] if off is None else [off]
    return max(offs, default=None)


def _directions(
    d: Derivation,
    slopes: Sequence[Value],
    values: dict[Term, Value],
    sizes: Sizes,
    rng: np.random.Generator,
    *,
    balanced: bool,
) -> list[Value]:
    """A direction for each unknown; a projected gradient is compared along what keeps the symmetry."""
    unknowns = d.objective.params
    within = [d.symmetric and not is_on_interval(x.kind) for x in unknowns]
    found = [
        (random_value if keeps else direction_of)(placed(x.kind, values), sizes, rng)
        for x, keeps in zip(unknowns, within, strict=True)
    ]
    if not balanced:
        return found
    return [_balanced(dx, g, values[x]) for dx, g, x in zip(found, slopes, unknowns, strict=True)]


def _moves(direction: Value) -> bool:
    return isinstance(direction, Smooth | Surface) or any(x.any() for x in items_of(direction))


def _each(found: Value, f: Lam) -> tuple[Value, ...]:
    """The derivatives by all unknowns; that by a function is a tuple where it has parts at ends."""
    return found if isinstance(found, tuple) and len(f.params) > 1 else (found,)


def _is_beyond(kind: Type, cotangent: Value) -> bool:
    """Whether the derivative by a real variable has an imaginary part, which no difference would show."""
    return not is_complex(kind) and any(np.abs(x.imag).max(initial=0.0) > TOLERANCE for x in items_of(cotangent))


def _cotangents(t: Term, f: Lam) -> tuple[Var, ...]:
    while isinstance(t, Lam):
        if t.params[: len(f.params)] == f.params:
            return t.params[len(f.params) :]
        t = t.body
    return ()


def _balanced(direction: Value, slope: Value, at: Value) -> Value:
    """The direction with steps along which a value changes by no more than about one, none where these are lost."""
    if isinstance(direction, Smooth | Surface):
        return direction
    assert not isinstance(direction, tuple) and not callable(direction), "a number or an array"
    balanced = np.asarray(direction) / np.maximum(1.0, np.abs(items_of(slope)[0]))
    return np.where(is_lost(items_of(balanced)[0], items_of(at)[0]), 0.0, balanced)


def _against_code(t: Term, code: Compiled[Any], result: Value, values: dict[Term, Value], sizes: Sizes) -> float:
    """The emitted function on the same arrays."""
    names = ArgumentNames(t)
    params = result_of(t).params
    values = _with_slopes_of_equations(code, params, values, sizes)
    given = {v: value for v, value in values.items() if v in params or isinstance(v, Diff)}
    named = {names.of(v): _elementwise(v, value) for v, value in given.items()}
    found = code(**{a.name: _given(a, named, sizes) for a in code.arguments if not a.optional})
    return max((_distance(a, b) for a, b in zip(items_of(found), items_of(result), strict=True)), default=0.0)


def _with_slopes_of_equations(
    code: Compiled[Any], params: Sequence[Var], values: dict[Term, Value], sizes: Sizes
) -> dict[Term, Value]:
    """The values, with derivatives that the code solves equations by, and that the result does not hold."""
    found = dict(values)
    heads: dict[str, Term] = {v.name: v for v in params}
    made = [a for a in code.arguments if a.made and a.made[0] in DERIVATIVES]
    for a in sorted(made, key=lambda a: len(a.name)):
        kind, of = a.made or ("", "")
        if of in heads:
            heads[a.name] = diff(kind, heads[of])
            _add_derivatives(found, heads[a.name], sizes)
    return found


def _distance(a: Numbers, b: Numbers, floor: float = 1.0) -> float:
    """How far two arrays differ, relative to each entry if it is large; what is not finite must be so in both."""
    alike = np.array_equal(np.isnan(a), np.isnan(b)) and np.array_equal(a[np.isinf(b)], b[np.isinf(b)])
    return difference(a, b, floor=floor) if alike and np.array_equal(np.isinf(a), np.isinf(b)) else float("inf")


def _given(a: Argument, named: dict[str, object], sizes: Sizes) -> object:
    """The value of an argument, a list of offsets, or the size that emitted code asks for where no array shows it."""
    if a.offsets is not None:
        return listed(a.offsets, sizes).rows
    if a.name not in named and isinstance(a.kind, Index) and a.kind.domain is not None:
        return sizes[a.kind.domain]
    interval = interval_of_rule(a.kind)
    return named[a.name] if interval is None else standard_rule(interval)


def _elementwise(v: Term, value: Value) -> object:
    """A map of numbers is called with whole arrays by emitted code, one of tuples of numbers with tuples of arrays."""
    kind = v.type
    if not callable(value) or not isinstance(kind, Map) or any(isinstance(p, Map) for p in (*kind.params, kind.result)):
        return value
    return entry_by_entry(value)
