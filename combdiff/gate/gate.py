"""The gate: every simplification is evaluated before and after on random numbers, and a difference is an error.

Each term sees two sets of sizes, and a draw for each: what is wrong may agree at one size (`meaning/sizes.py`).
Tensors are drawn from their declared symmetric subspaces; an unknown map becomes a fixed random one. The numbers are
residues modulo a prime, on which polynomials are exact (`exact.py`), so that no tolerance hides a wrong coefficient.
Only where terms differ there and one holds an opaque function do floating-point numbers decide: sqrt(x)² is x. What
is compared is each value that a stage has changed (`pieces.py`), or the whole result where that does not settle it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING

from combdiff.arrays.lower.components import Components, Split, by_components
from combdiff.budget import Budget, OutOfTime
from combdiff.canon.repeats import form
from combdiff.errors import CheckError, UnsupportedError
from combdiff.gate.arithmetic import Arithmetic, Floating
from combdiff.gate.exact import Exact, InexactError, has_sides, has_sides_of_entries, is_transparent
from combdiff.gate.labelled import Labelled, TooLargeError
from combdiff.gate.looping import Recurrence
from combdiff.gate.numeric import Evaluation, Recurring
from combdiff.gate.unknown import RandomMap
from combdiff.meaning.comparing import difference
from combdiff.meaning.points import listed, positions_of, values_of
from combdiff.meaning.samples import definite, random_ends, random_value, takes_roots
from combdiff.meaning.sizes import Sizes, two_sizes
from combdiff.records import dataclass
from combdiff.simplify.check import Pair, ResultParts, negative, parts_of, pieces
from combdiff.terms.conditions.divided import Divisor
from combdiff.terms.terms import Call, Const, Lam, Let, Mul, Pow, Term, Tuple, Var, end_named, fresh, let, substitute
from combdiff.terms.types import Domain, Index, Interval, Map, Number, Type, is_complex, is_discrete

if TYPE_CHECKING:
    import numpy as np

    from combdiff.gate.labelled import Array

TOLERANCE = 1e-8
"""Of floating-point numbers, relative to each entry, or to the scale of its row."""

LOST = 1e-11
"""What is lost of the digits of the largest entry, and then found in all others."""

_NUDGE = 1e-14
_NUDGES = 3
_SPARED = 10
"""How far numbers are moved to learn what rounding does, how often, and how much more rounding may do."""

_SMALL = _NUDGE / TOLERANCE
"""Smaller values count as this: they may be the rounding of terms of the size of what is drawn, as in |a| + a."""

MANNERS = ((False, 1.0), (True, 1.0), (False, 1 / 16))
"""Numbers are drawn of any sign, then positive ones, for roots and logarithms, then small ones, for exponentials."""

DRAWS = 6
"""Floating-point numbers are drawn so often where a term holds a condition of numbers, which hides half of them."""


@dataclass(slots=True)
class Prepared:
    """Terms as samples evaluate them: by the components of their lattice indices, and taken apart.

    `without_numbers`: sums over numbers as they are where their δ has met them. `inexact`: terms that hold what has no
    value in the field, whatever is drawn.
    """

    split: Split = field(default_factory=Split)
    without_numbers: dict[Term, Term] = field(default_factory=dict)
    known: dict[Term, tuple[Components, ResultParts]] = field(default_factory=dict)
    inexact: set[Term] = field(default_factory=set)
    roots: bool = False

    def __call__(self, t: Term) -> tuple[Components, ResultParts]:
        found = self.known.get(t)
        if found is None:
            components = by_components(t, self.split)
            found = self.known[t] = components, parts_of(components.term)
            self.roots |= takes_roots(components.term)
        return found


@dataclass
class Sample:
    """Random numbers of one kind for the free variables of terms, and the values that terms have on them."""

    sizes: dict[Domain, int]
    numbers: Arithmetic
    seed: int = 0
    positive: bool = False
    scale: float = 1.0
    rng: np.random.Generator | None = None
    values: dict[Term, object] = field(default_factory=dict)
    ask: Callable[[], None] = lambda: None
    known: dict[Term, list[Array]] = field(default_factory=dict)
    before: dict[Term, list[Array]] = field(default_factory=dict)
    kinds: dict[Term, Map] = field(default_factory=dict)
    prepared: Prepared = field(default_factory=Prepared)
    places: dict[tuple[int, Type], Var] = field(default_factory=dict)
    off: np.random.Generator | None = None
    recurrences: dict[Recurring, Recurrence] = field(default_factory=dict)
    shared: dict[frozenset[Var], Evaluation] = field(default_factory=dict)
    intervals: Sequence[Interval] = ()

    def value(self, v: Term) -> object:
        """The random value of a free variable, drawn when first asked for."""
        import numpy as np

        if v not in self.values:
            self.rng = self.rng or np.random.default_rng(self.seed)
            rng, draw = self.rng, self.numbers.draw
            kind = self.kinds.get(v, v.type)
            if v in self.ends:
                return self.ends[v]
            if isinstance(kind, Map) and kind.linear:
                self.refuse_exact()
                self.values[v] = random_value(kind, self.sizes, rng)
                return self.values[v]
            known = isinstance(kind, Number | Index) or (isinstance(kind, Map) and kind.is_array)
            self.values[v] = (
                random_value(kind, self.sizes, rng, draw) if known else RandomMap(v.type, self.sizes, rng, self.numbers)
            )
            plain = not is_complex(kind) and not is_discrete(kind) and not getattr(kind, "symmetries", ())
            declared = isinstance(kind, Map) and kind.positive and not isinstance(self.numbers, Exact)
            if known and (declared or (self.positive and plain)):
                self.values[v] = np.abs(self.values[v])  # type: ignore[call-overload]  # a real number or array
            if self.prepared.roots and not isinstance(self.numbers, Exact):
                self.values[v] = definite(kind, self.values[v])
            if known and self.scale != 1 and not is_discrete(kind):
                self.values[v] = self.scale * np.asarray(self.values[v])
        return self.values[v]

    @cached_property
    def ends(self) -> dict[Term, object]:
        """The ends of intervals that have names: the lower ones are below the upper ones."""
        import numpy as np

        if isinstance(self.numbers, Exact):
            return {}  # which of its numbers is larger is not known in the field
        found = random_ends(self.intervals, np.random.default_rng(self.seed))
        return {end_named(name): value for name, value in found.items()}

    @property
    def without_numbers(self) -> dict[Term, Term]:
        """Sums over numbers as they are where their δ has met them."""
        return self.prepared.without_numbers

    def nudged(self, seed: int) -> Sample:
        """The same numbers, off by a little more than rounding, as are products, powers and values of functions."""
        import numpy as np

        rng = np.random.default_rng(seed)

        def moved(value: object) -> object:
            array = np.asarray(value)
            if array.dtype.kind not in "fc":
                return value
            off = array * (1 + _NUDGE * rng.standard_normal(array.shape))
            return off if array.ndim else off.item()

        values = {v: value if isinstance(v.type, Index) else moved(value) for v, value in self.values.items()}
        sample = Sample(self.sizes, self.numbers, self.seed, self.positive, self.scale, self.rng, values, self.ask)
        sample.kinds, sample.prepared, sample.places, sample.off = self.kinds, self.prepared, self.places, rng
        sample.intervals = self.intervals
        return sample

    def rounded(self, t: Term, value: Labelled) -> Labelled:
        """The value of `t`, with an error of rounding where the numbers are nudged; what indices count stays exact."""
        import numpy as np

        if self.off is None or not isinstance(t, Mul | Pow | Call):
            return value
        array = value.array
        if all(isinstance(v.type, Index) for v in t.free) and (array == np.round(array)).all():
            return value
        moved = array * (1 + _NUDGE * self.off.standard_normal(array.shape))
        if _is_never_zero(t):
            # u⁻³ of a u that is large is a number, though a smaller one than there is
            moved += np.where(array == 0, np.finfo(float).tiny * self.off.random(array.shape), 0)
        return Labelled(moved, value.axes, value.reach)

    def refuse_exact(self, why: str = "a linear map or a root has no value in the field") -> None:
        """Floating-point numbers decide where a term has no value in the field."""
        if isinstance(self.numbers, Exact):
            raise InexactError(why)

    def outputs(self, t: Term) -> list[Array]:
        """Each tensor of a result as a full array, indexed by its own parameters. What two stages share is kept."""
        import numpy as np

        found = self.known.get(t) or self.before.get(t)
        if found is None:
            # declared symmetries are laws of points: tensors are drawn by the types that they have before
            self.kinds.update((v, v.kind) for v in t.free.union(parts_of(t).params) if isinstance(v.kind, Map))
            split, parts = self.prepared(t)
            evaluation = self._below_what_is_shared(split.term.free.union(parts.params))
            evaluation.give(self._lists(split))
            evaluation.give(self._arguments(parts.params))
            found = self._evaluated(t, parts, evaluation)
            if any(np.isnan(item).any() for item in found):
                self.refuse_exact("a number is divided by zero")
        self.known[t] = found
        return found

    def _below_what_is_shared(self, outer: Collection[Var]) -> Evaluation:
        """An evaluation below one for what depends on no value that has a name: two stages hold much the same of it."""
        drawn = frozenset(v for v in outer if isinstance(v.kind, Index))
        above = self.shared.get(drawn)
        if above is None:
            above = self.shared[drawn] = Evaluation(self, drawn)
        return Evaluation(self, outer, above)

    def _evaluated(self, t: Term, parts: ResultParts, evaluation: Evaluation) -> list[Array]:
        """The items of a result; that it has none in the field is remembered for the next sample."""
        if t in self.prepared.inexact:
            self.refuse_exact()
        try:
            for var, value in parts.values.items():
                evaluation.bind(var, value)
            return [evaluation.full(item) for item in parts.items]
        except InexactError:
            self.prepared.inexact.add(t)
            raise

    def _arguments(self, params: Sequence[Var]) -> dict[Var, object]:
        """Numbers for the arguments of a result that is a map, the same whatever it calls them."""
        places = [self.places.setdefault((n, p.kind), p) for n, p in enumerate(params)]
        return {p: self.value(place) for p, place in zip(params, places, strict=True)}

    def _lists(self, split: Components) -> dict[Var, Array]:
        """The offsets of lists, and where the negative of each lies."""
        found: dict[Var, Array] = {}
        for domain, offsets in split.offsets.items():
            rows = listed(domain, self.sizes).rows.astype(float)
            found[offsets] = rows if domain.directions > 1 else rows[:, 0]
        for domain, opposite in split.opposite.items():
            found[opposite] = positions_of(domain, self.sizes, -values_of(domain, self.sizes)).astype(float)
        return found

    def turn(self) -> None:
        """A new stage begins: only the values of the last one are of use in which anything was evaluated."""
        if self.known:
            self.before, self.known = self.known, {}
        self.shared.clear()


@dataclass(frozen=True, slots=True)
class Comparison:
    """What became of a comparison: how the terms differ (empty if they agree), and whether a value was finite.

    `noise`: what they differ by is rounding and nothing else.
    """

    difference: str = ""
    finite: bool = True
    noise: bool = field(default=False, compare=False)


AGREE = Comparison()
LOST_VALUE = "a finite value was lost"


@dataclass(slots=True)
class Gate:
    """Compares terms on random numbers, with two sets of small sizes for all domains.

    `few`: terms need large arrays, so that few sizes are dealt from now on.
    """

    sizes: tuple[Sizes, Sizes] = field(default_factory=lambda: ({}, {}))
    seed: int = 0
    few: bool = False
    prepared: Prepared = field(default_factory=Prepared)
    samples: dict[tuple[type[Arithmetic], bool, tuple[bool, float], int], Sample] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    intervals: Sequence[Interval] = ()
    divided: Sequence[Divisor] = ()
    """What the program divides by in any case, or takes a root or the logarithm of."""

    def deal(self, program: Term) -> None:
        """Sizes for all domains of a program at once: those of each set are in an order of their own."""
        self._make_room(program, program)

    def same(self, before: Term, after: Term, stage: str, accused: Callable[[], str] = lambda: "") -> bool:
        """Raise CheckError, naming `stage` and what is `accused`, if the two terms differ on random numbers.

        Returns whether there was something to compare: in floating point no value need be finite, as for the logarithm
        of what is drawn.

        Raises:
            UnsupportedError: a term cannot be evaluated on arrays, or only on too large ones.
        """
        import numpy as np

        for sample in self.samples.values():
            sample.turn()
        self.prepared.known.clear()
        self.prepared.without_numbers.clear()
        with np.errstate(all="ignore"):
            try:
                result = self._result(before, after)
            except TooLargeError:
                if self.few:
                    raise
                self.few, self.sizes = True, ({}, {})
                self.samples.clear()
                result = self._result(before, after)
        if result.difference:
            raise CheckError(
                f"{stage} changed the value of the derivative ({result.difference}); "
                f"{_who(accused)}this is a bug of combdiff",
                remedy="report the program",
            )
        return result.finite

    def agree(self, before: Term, after: Term) -> bool:
        """Whether two terms have the same value on random numbers."""
        import numpy as np

        with np.errstate(all="ignore"):
            return not self.compared(before, after).difference

    def _result(self, before: Term, after: Term) -> Comparison:
        result = self._each_compared(before, after)
        if result.difference or not result.finite:
            result = self._whole(before, after, result.difference)
        return result

    def _each_compared(self, before: Term, after: Term) -> Comparison:
        """The first value or item that does not agree whatever the values are that it is made of.

        Pairs of one form, such as the layers of a network, are compared once. Where the definitions of other values are
        needed, only exact numbers count: in floating point a large term of one definition may hide a small one.
        """
        known: dict[Hashable, Comparison] = {}
        negated: set[Var] = set()

        def result(pair: Pair, compare: Callable[[Term, Term], Comparison]) -> Comparison:
            shape = form(Tuple(pair))[0], compare
            if shape not in known:
                known[shape] = compare(*pair)
            return known[shape]

        try:
            for piece in pieces(before, after, negated):
                x, y = next(piece.ways)
                found = result((x, y), self.compared)
                if found.difference and piece.negative and result((x, negative(y)), self.compared) == AGREE:
                    negated.add(piece.negative)
                elif found != AGREE and all(result(deeper, self._exactly) != AGREE for deeper in piece.ways):
                    return Comparison(found.difference, finite=False)
        except (UnsupportedError, OverflowError):
            return Comparison(finite=False)
        return AGREE

    def _whole(self, before: Term, after: Term, doubt: str) -> Comparison:
        """The results compared as they are. In `doubt`, for one value differs, they must agree to the last digits."""
        points: dict[tuple[int, ...], Var] = {}
        before, after = (_at_points(t, points) for t in (before, after))
        try:
            result = self.compared(before, after, doubtful=bool(doubt))
        except (UnsupportedError, OverflowError):
            if doubt:
                return Comparison(doubt)
            raise
        decided = result.finite or result.difference or result.noise
        return result if decided else Comparison(doubt, finite=False)

    def compared(self, before: Term, after: Term, doubtful: bool = False) -> Comparison:
        """Both evaluated at two sets of sizes, each with a draw of its own; in floats where exact numbers say nothing.

        Args:
            doubtful: whether numbers are drawn more than once, and small ones may not differ by the tolerance itself.
        """
        self._make_room(before, after)
        finite = noise = False
        for second in (False, True):
            result = self._exact(before, after, second)
            for manner in MANNERS:
                if result is None or not (result.finite or result.difference):
                    result = self._floating(before, after, second, doubtful, manner)
            assert result is not None, "floating-point numbers always decide"
            if result.difference:
                return result
            finite |= result.finite
            noise |= result.noise
        return Comparison(finite=finite, noise=noise)

    def _exactly(self, before: Term, after: Term) -> Comparison:
        """The comparison on exact numbers alone."""
        self._make_room(before, after)
        found = (self._exact(before, after, second) for second in (False, True))
        return next((Comparison(finite=False) for result in found if result != AGREE), AGREE)

    def _exact(self, before: Term, after: Term, second: bool) -> Comparison | None:
        """The comparison on exact numbers; None where it does not decide."""
        try:
            differing = sum(_differing(a, b) for a, b in self._both(self._sample(second), before, after))
        except InexactError:
            return None
        if not differing:
            return AGREE
        decides = is_transparent(before) and is_transparent(after)
        return Comparison(f"{differing} entries differ in exact arithmetic") if decides else None

    def _floating(
        self, before: Term, after: Term, second: bool, doubtful: bool, manner: tuple[bool, float]
    ) -> Comparison:
        import numpy as np

        finite = noise = False
        for draw in range(DRAWS if doubtful else _draws((before, after))):
            sample = self._sample(second, Floating(), manner, draw)
            results = list(self._both(sample, before, after))
            difference = next((d for a, b in results if (d := _distance(a, b, _SMALL if doubtful else 1.0))), "")
            if difference == LOST_VALUE and self._has_no_value(sample, before):
                continue
            if difference and _is_rounding(sample, (before, after), results):
                noise = True
                continue
            finite |= not results or any(b.size == 0 or np.isfinite(b).any() for _, b in results)
            if difference:
                return Comparison(difference)
        return Comparison(finite=finite, noise=noise)

    def _has_no_value(self, sample: Sample, within: Term) -> bool:
        """Whether the program has no finite value at a sample, so that nothing is promised of its derivatives there."""
        import numpy as np

        bindings = parts_of(within).values.items()
        for d in self.divided:
            number = Lam(tuple(d.indices), d.number) if d.indices else d.number
            self._make_room(within, number)  # terms that the unknowns are not in have sizes of their own
            with suppress(UnsupportedError, OverflowError, KeyError):
                for array in sample.outputs(let([*bindings], number)):
                    below = d.positive and np.isrealobj(array) and (array < 0).any()
                    if below or (array == 0).any() or not np.isfinite(array).all():
                        return True
        return False

    def _both(self, sample: Sample, before: Term, after: Term) -> Iterator[tuple[Array, Array]]:
        return zip(sample.outputs(before), sample.outputs(after), strict=True)

    def _make_room(self, before: Term, after: Term) -> None:
        """Sizes for the domains in two terms; what was drawn for others is forgotten where a size has changed."""
        found = two_sizes(Tuple((before, after)), self.sizes, self.seed, self.few)
        for sizes, new in zip(self.sizes, found, strict=True):
            if any(sizes.get(d, n) != n for d, n in new.items()):
                self.samples.clear()
            sizes.update(new)

    def _sample(
        self, second: bool, numbers: Arithmetic | None = None, manner: tuple[bool, float] = MANNERS[0], draw: int = 0
    ) -> Sample:
        numbers = numbers or Exact()
        key = (type(numbers), second, manner, draw)
        sample = self.samples.get(key)
        if sample is None:
            seed = self.seed + draw + DRAWS * second
            sizes = self.sizes[second]
            sample = Sample(sizes, numbers, seed, *manner, prepared=self.prepared, ask=self.budget.check)
            sample.intervals = self.intervals
            self.samples[key] = sample
        return sample


def _at_points(t: Term, points: dict[tuple[int, ...], Var], place: tuple[int, ...] = ()) -> Term:
    """A result whose items that are functions of numbers are taken at `points`, which have no axis in an array."""
    match t:
        case Let(bindings, body):
            return Let(bindings, _at_points(body, points, place))
        case Tuple(items):
            return Tuple(tuple(_at_points(e, points, (*place, n)) for n, e in enumerate(items)))
        case Lam(params, body) if all(isinstance(p.kind, Number) for p in params):
            own = {p: points.setdefault((*place, n), fresh(p.name, p.kind)) for n, p in enumerate(params)}
            return substitute(body, dict(own))
        case _:
            return t


def gate_for(*terms: Term, seed: int = 0) -> Gate:
    """A gate with small sizes for every domain of `terms`."""
    return Gate(two_sizes(Tuple(terms), seed=seed), seed)


def _draws(terms: Sequence[Term]) -> int:
    """How often numbers are drawn for terms: each entry of a tensor is a draw by itself."""
    if not any(map(has_sides, terms)):
        return 1
    return DRAWS // 2 if all(map(has_sides_of_entries, terms)) else DRAWS


def _who(accused: Callable[[], str]) -> str:
    """What is accused, if there is time to find it."""
    try:
        return accused()
    except OutOfTime:
        return ""


def _is_rounding(sample: Sample, terms: tuple[Term, Term], results: Sequence[tuple[Array, Array]]) -> bool:
    """Whether two terms differ by no more than one of them does where its numbers are a little off.

    So it is for the sine of 10¹², say, of which rounding leaves four digits.
    """
    import numpy as np

    nudged = [sample.nudged(seed) for seed in range(_NUDGES)]
    moved = [[s.outputs(t) for s in nudged] for t in terms]
    for n, pair in enumerate(results):
        a, b = pair
        if a.shape != b.shape:
            return False
        first, second = (
            np.max([np.abs(outputs[n] - exact) for outputs in runs], axis=0)
            for runs, exact in zip(moved, pair, strict=True)
        )
        # no number at all, as of a singular matrix, is as unsure as can be; what was changed may become such only where
        # there was rounding and nothing else, as in the sign of what is always zero
        unsure = np.maximum(np.nan_to_num(first, nan=np.inf), np.nan_to_num(second, nan=0.0, posinf=0.0))
        noise = ~np.isfinite(b) & ((first > np.abs(a) / _SPARED) | _regained(a, [outputs[n] for outputs in moved[1]]))
        held = np.isfinite(a) & ~noise
        if not (np.abs(a - b)[held] <= _SPARED * unsure[held]).all():
            return False
    return True


def _is_never_zero(t: Term) -> bool:
    """Whether a number is 0 only because it is too small for a floating-point number."""
    match t:
        case Pow(_, Const(n)):
            return n < 0
        case Call(name):
            return name == "exp"
        case _:
            return False


def _regained(value: Array, runs: Sequence[Array]) -> Array:
    """Where a value that is lost is there again with numbers a little off, as that of the root of a singular matrix."""
    import numpy as np

    scale = TOLERANCE * np.max(np.abs(value), initial=0, where=np.isfinite(value))
    return np.asarray(np.any([np.isfinite(run) & (np.abs(run - value) <= scale) for run in runs], axis=0))


def _differing(a: Array, b: Array) -> int:
    """How many entries differ."""
    return int((a != b).sum()) if a.shape == b.shape else max(a.size, b.size, 1)


def _distance(a: Array, b: Array, floor: float) -> str:
    """How two arrays differ in floating point, entry by entry; empty if they do not, where both are finite.

    Numbers below `floor` may be all rounding, and differ by the tolerance itself.
    """
    import numpy as np

    if a.shape != b.shape:
        return f"the shape {a.shape} became {b.shape}"
    if (np.isfinite(a) & ~np.isfinite(b)).any():
        return LOST_VALUE
    worst = difference(a, b, floor, share=LOST / TOLERANCE)
    return f"relative difference {worst:.1e}" if worst > TOLERANCE else ""
