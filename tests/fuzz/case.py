"""One program with numbers: what is asked of combdiff, what the oracle says, and how the two are compared."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any

import numpy as np

import combdiff as cd
from combdiff.derivation import Derivation
from combdiff.errors import CombDiffError

from . import oracle
from .data import EXTREMES, SUPPLIED, arrays_of, draw, shape_of
from .kinds import Function, Range, Tensor, Type, over_complex
from .meaning import CUTS, JUMPS, NOISE
from .oracle import Directions
from .spelling import Writer
from .supplied import supplied
from .syntax import Affine, Call, Compared, Expr, Indicator, Power, Program, Several, Var, walk

SECONDS = 2.0
PRODUCTS = 1.0
TOLERANCE = 1e-6
ROUNDING = 1e-13
LARGEST, LARGEST_OF_SMALL, SMALLEST, STEEPEST = 1e60, 1e200, 1e-250, 1e290
LARGEST_TO_SQUARE, MOST_CANCELLED = 1e145, 1e12
LONG = 50_000


class Failure(Exception):
    """combdiff was wrong: `kind` says how (wrong, not finite, refused, …), and the message what was found."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class Skipped(Exception):
    """Nothing can be said here: the program has no finite derivative, or it is badly conditioned."""


class Refused(Exception):
    """combdiff refused, as the documentation says it does."""


@dataclass
class Case:
    """A program, its text, and numbers of one weather."""

    program: Program
    weather: str = "normal"
    seed: int = 0
    plain: bool = False
    options: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def writer(self) -> Writer:
        return Writer(self.program, self.plain)

    @cached_property
    def text(self) -> str:
        return self.writer.text()

    @cached_property
    def rng(self) -> Random:
        return Random(f"{self.program.seed}:{self.seed}")

    @cached_property
    def data(self) -> dict[Var, Any]:
        return draw(self.program, self.weather, self.seed)

    @cached_property
    def arrays(self) -> dict[str, Any]:
        """The data by the names of the parameters, as combdiff takes them."""
        return {self.writer.names.of[v]: x for v, x in arrays_of(self.data).items()}

    # --- combdiff ---------------------------------------------------------------------------------------------------

    @cached_property
    def derivation(self) -> Derivation:
        return self.derive(self.program.mode)

    def derive(self, mode: str, **options: Any) -> Derivation:
        seconds = PRODUCTS if mode == "hvp" else SECONDS
        found: Derivation = getattr(cd, mode)(self.text, seconds=seconds, **options)
        if any(step.spent for step in found.steps) and len(str(found)) > LONG:
            raise Skipped("what the budget leaves is long, and so is the time for its code")
        return found

    def run(
        self,
        f: Any,
        change: Callable[[str, Any], Any] = lambda name, x: x,
        extra: Mapping[str, Any] | None = None,
        names: Mapping[str, str] | None = None,
    ) -> Any:
        """What a compiled function returns for the data; `change` makes other arrays of them.

        `names` are the program's own ones of arguments that have others.
        """
        given = {a: self.argument(a, extra or {}, change, names) for a in f.arguments if not a.optional}
        args = [value for a, value in given.items() if not a.is_size]
        # a list that the code does not read may be needed to check a declared symmetry
        by_title = {t: r for r, t in self.titles.items()}
        named = {n: np.array(by_title[d.name].offsets) for n, d in getattr(f, "_lists", {}).items()}
        named |= {a.name: value for a, value in given.items() if a.is_size}
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return f(*args, **named)

    def argument(
        self,
        a: Any,
        extra: Mapping[str, Any],
        change: Callable[[str, Any], Any],
        names: Mapping[str, str] | None = None,
    ) -> Any:
        """The value of one argument of a compiled function; `extra` are cotangents and directions, as they are."""
        name = (names or {}).get(a.name, a.name)
        if a.offsets is not None:
            (r,) = [r for r, title in self.titles.items() if title == a.offsets.name]
            return np.array(r.offsets)
        if a.name in extra:
            return extra[a.name]
        if name in self.arrays and not isinstance(self.arrays[name], SUPPLIED):
            return change(name, self.arrays[name])
        if type(a.kind).__name__ == "Index":
            return self.size_of(a.kind.domain.name, a.kind.domain.declared)
        return supplied(name, self.arrays)

    @property
    def titles(self) -> dict[Range, str]:
        return {r: t for r, t in self.writer.titles.items() if isinstance(r, Range)}

    def size_of(self, name: str, declared: bool = True) -> int:
        """The size that a domain of that name has: `Z`, `BZ.2`, `n`, or `x.1`, slot 1 of x."""
        self.text  # noqa: B018  # sizes get their names when the text is written
        sizes = {name: r for r, name in self.writer.names.sizes.items() if isinstance(r, Range)}
        titles = {title: r for r, title in self.titles.items()}
        head, *path = name.partition("#")[0].split(".")
        if name in titles and (declared or name not in sizes):
            return titles[name].sizes[0]
        if name in sizes:
            return sizes[name].count
        if head in titles:
            return titles[head].sizes[int(path[0]) - 1]
        named = (v.kind for v, known in self.writer.names.of.items() if known == head)
        found = [_slot(kind, [int(n) for n in path]) for kind in named]
        counts = {r.count for r in found if r is not None}
        if len(counts) > 1:
            raise Skipped(f"{head} is two variables of different sizes")
        if not counts:
            raise Skipped(f"the size of {name} has that name in the result alone")
        return counts.pop()

    # --- the oracle -------------------------------------------------------------------------------------------------

    @cached_property
    def generator(self) -> np.random.Generator:
        return np.random.default_rng([self.seed, self.program.seed, 1])

    @cached_property
    def along(self) -> Directions:
        return oracle.directions(self.program, self.data, self.generator)

    @cached_property
    def cotangents(self) -> list[Any]:
        """Cotangents for the results, where the derivative is a pullback."""
        if self.program.mode != "pullback":
            return []
        rng = np.random.default_rng([self.seed, self.program.seed, 2])
        found = []
        for kind in oracle.result_kinds(self.program):
            shape = oracle.sizes_of(kind)
            k = rng.standard_normal(shape)
            found.append(k + 1j * rng.standard_normal(shape) if over_complex(kind) else k)
        return found

    @cached_property
    def second(self) -> dict[Var, Any]:
        """A direction of the unknowns for products with the Hessian."""
        rng = np.random.default_rng([self.seed, self.program.seed, 3])
        found = {}
        for u in self.program.unknowns:
            shape = oracle.sizes_of(u.kind)
            scale = np.abs(self.data[u]).max(initial=0.0) or 1.0
            k = rng.standard_normal(shape)
            found[u] = scale * (k + 1j * rng.standard_normal(shape) if over_complex(u.kind) else k)
        return found

    @cached_property
    def values(self) -> list[Any]:
        return oracle.value(self.program, self.data)

    @cached_property
    def slopes(self) -> Any:
        return oracle.slopes(self.program, self.data, self.along, self.cotangents)

    @cached_property
    def curvatures(self) -> Any:
        """The slopes of products with the Hessian."""
        return oracle.slopes(self.program, self.data, self.along, self.cotangents, self.second)

    @property
    def finite(self) -> bool:
        return bool(all(np.isfinite(v).all() for v in self.values) and np.isfinite(self.slopes).all())

    def sensitivity(self, second: bool) -> Any:
        """How far rounding may move each slope: what small changes of the data do, and double precision."""
        direction = self.second if second else None
        exact = self.curvatures if second else self.slopes
        double = oracle.slopes(self.program, self.data, self.along, self.cotangents, direction, np.float64)
        moved = np.zeros(self.along.count, np.longdouble)
        rng = np.random.default_rng(5)
        for _ in range(2):
            data = {v: _nudged(x, rng) for v, x in self.data.items()}
            near = oracle.slopes(self.program, data, self.along, self.cotangents, direction)
            moved = np.maximum(moved, np.abs(near - exact))
        rounded = 0.0
        if self.weather in EXTREMES or any(map(_jumps, walk(self.program.body))):
            # b - g + g is b, and in extended precision 0 where g is 1e20 b; sign(a - a) is 0, or the sign of rounding
            noisy = oracle.slopes(self.program, self.data, self.along, self.cotangents, direction, noise=rng)
            rounded = _rounding(noisy, exact)
        return np.abs(double - exact) * 1e3 + moved * 1e-5 + rounded

    def differ(self) -> bool:
        """Whether finite differences of two steps, or of two sides, disagree: a kink, a jump, or a branch is near."""
        rows = range(len(self.along.entries), self.along.count)
        one, two = oracle.differences(self.program, self.data, self.along, rows, self.cotangents)
        scale = np.maximum(np.abs(one), np.abs(two)) + 1e-12
        if not bool((np.abs(one - two) <= 1e-6 * scale).all()):
            return True
        # at a corner, as of x floor(x) at 0, central differences of all steps are the mean of two derivatives
        sides = [
            oracle.differences(self.program, self.data, self.along, rows, self.cotangents, side)[0]
            for side in (oracle.FORWARD, oracle.BACKWARD)
        ]
        return not bool((np.abs(sides[0] - sides[1]) <= 1e-3 * (np.abs(sides).max(axis=0) + 1e-12)).all())

    def differences_are(self, slopes: Any) -> bool:
        """Whether slopes are what finite differences say, along the random directions."""
        rows = list(range(len(self.along.entries), self.along.count))
        one, _ = oracle.differences(self.program, self.data, self.along, rows, self.cotangents)
        exact = slopes[rows]
        return bool((np.abs(one - exact) <= 1e-6 * (np.abs(exact) + np.abs(exact).max() + 1e-12)).all())

    def slopes_bend_as(self, found: Any, h: float = 1e-4) -> bool:
        """Whether slopes on both sides of the data differ as `found` says."""
        two = []
        for step in (h, -h):
            data = {v: x + step * self.second[v] if v in self.second else x for v, x in self.data.items()}
            two.append(oracle.slopes(self.program, data, self.along, self.cotangents))
        bend = (two[0] - two[1]) / (2 * h)
        return bool((np.abs(bend - found) <= 1e-5 * (np.abs(bend) + np.abs(bend).max(initial=0) + 1e-12)).all())

    # --- comparing --------------------------------------------------------------------------------------------------

    def compare(self, found: Any, what: str, second: bool = False, tolerance: float = TOLERANCE) -> None:
        """Hold a gradient, one array for each unknown, against the oracle."""
        arrays = self.shaped(found, self.program.unknowns, what)
        expected = self.curvatures if second else self.slopes
        if not np.isfinite(expected).all():
            raise Skipped("the oracle is not finite")
        slopes = np.zeros(self.along.count, np.longdouble)
        for u, g in zip(self.program.unknowns, arrays, strict=True):
            if not np.isfinite(g).all():
                self._not_finite(what, g, second)
            wide = g.reshape((1, *oracle.sizes_of(u.kind))).astype(np.clongdouble)
            slopes = slopes + (wide.conj() * self.along.arrays[u]).real.reshape(self.along.count, -1).sum(axis=1)
        self.compare_slopes(slopes, what, second, tolerance)

    def compare_slopes(self, slopes: Any, what: str, second: bool = False, tolerance: float = TOLERANCE) -> None:
        """Hold the slopes along all directions against the oracle."""
        expected = self.curvatures if second else self.slopes
        off = np.abs(slopes - expected)
        scale = np.abs(expected).max(initial=0)
        floor = self._unseen() if self.weather in EXTREMES else 1e-3 * tolerance * scale + 1e-12
        if bool((off <= tolerance * np.abs(expected) + floor).all()):
            return
        allowed = self.sensitivity(second)
        if not np.isfinite(allowed).all():
            raise Skipped("badly conditioned: double precision is not finite")
        bad = off > tolerance * np.abs(expected) + floor + np.maximum(
            allowed, allowed.max() * 1e-3 if self.weather not in EXTREMES else 0
        )
        if not bad.any():
            return
        self._wrong(what, slopes, expected, int(np.argmax(np.where(bad, off, -1))), second)

    def _unseen(self) -> Any:
        """For each direction the slope that rounding of the value hides: 1e-10 |φ| over the size of the step."""
        value = max(float(np.abs(x).max(initial=0)) for x in self.values)
        sizes = np.full(self.along.count, np.inf)
        for u in self.program.unknowns:
            steps = np.abs(self.along.arrays[u]).reshape(self.along.count, -1)
            with np.errstate(all="ignore"):
                ratio = np.where(steps > 0, np.abs(np.ravel(self.data[u]))[None] / steps, np.inf)
            sizes = np.minimum(sizes, ratio.min(axis=1, initial=np.inf))
        with np.errstate(all="ignore"):
            hidden = np.where(sizes > 0, 1e-10 * value / sizes, np.inf)
        return np.maximum(SMALLEST, hidden)

    def _wrong(self, what: str, found: Any, expected: Any, row: int, second: bool) -> None:
        self._refuse_steep(second)
        if not second:
            if self.differ():
                raise Skipped("finite differences of two steps disagree")
            if not self.differences_are(self.slopes):
                if self.weather in EXTREMES:
                    raise Skipped("finite differences do not reach")
                if self.differences_are(found):
                    raise Skipped("tangents miss a derivative, as that of x sign(x)^2 at 0")
                if not oracle.is_linear(self.program, self.data, self.cotangents, np.random.default_rng(8)):
                    raise Skipped("no derivative, as of z acosh(z^2) at 0, on a branch cut")
                raise Failure("oracle", f"{what}: tangents and finite differences disagree")
        elif self.weather not in EXTREMES and self.slopes_bend_as(found):
            raise Skipped("tangents miss a second derivative, as that of |x|^2 at 0")
        raise Failure(
            "wrong", f"{what}: {self.where(row)} is {float(found[row]):.10g}, right is {float(expected[row]):.10g}"
        )

    def _refuse_overflow(self, second: bool = False) -> None:
        """Nothing is asked of double precision where squares of what is computed may overflow.

        Small data are no excuse up to larger numbers: quotients and powers of them are to be formed with care.
        """
        largest, cancelled = oracle.largest(self.program, self.data)
        if largest > self._limit() or (second and largest > LARGEST_TO_SQUARE):
            raise Skipped("double precision overflows")
        if cancelled > MOST_CANCELLED and self.weather in EXTREMES:
            raise Skipped("a sum is rounding alone")

    def _limit(self) -> float:
        arrays = (x for x in self.arrays.values() if not isinstance(x, SUPPLIED))
        return LARGEST if max((float(np.abs(x).max(initial=0)) for x in arrays), default=0) > 1e20 else LARGEST_OF_SMALL

    def _refuse_steep(self, second: bool) -> None:
        """Nor is anything asked where a derivative on the way leaves double precision."""
        self._refuse_overflow(second)
        steep = [0.0]
        # a small direction hides how large the second derivative is that it is multiplied by
        ways = (self.second, {u: np.ones_like(x) for u, x in self.second.items()}) if second else (None,)
        for direction in ways:
            oracle.slopes(self.program, self.data, self.along, self.cotangents, direction, steep=steep)
        if steep[0] > STEEPEST:
            raise Skipped("a derivative overflows in double precision")

    def _not_finite(self, what: str, g: Any, second: bool) -> None:
        self._refuse_steep(second)
        allowed = self.sensitivity(second)
        expected = self.curvatures if second else self.slopes
        large = max(float(np.abs(x).max(initial=0)) for x in self.values)
        if large > self._limit() or not bool((allowed <= 1e-3 * np.abs(expected) + 1e-9 * large).all()):
            raise Skipped("double precision overflows")
        raise Failure("not finite", f"{what}: {g.ravel()[~np.isfinite(g.ravel())][0]} where the oracle is finite")

    def where(self, row: int) -> str:
        if row >= len(self.along.entries):
            return "a product with a direction"
        n, at, imaginary = self.along.entries[row]
        u = self.program.unknowns[n]
        place = np.unravel_index(at, oracle.sizes_of(u.kind)) if oracle.sizes_of(u.kind) else ()
        part = "the imaginary part of " if imaginary else ""
        return f"{part}entry {tuple(map(int, place))} by {self.writer.names.of[u]}"

    def shaped(self, found: Any, kinds: Sequence[Var], what: str) -> list[Any]:
        """The items of a result as arrays of the interpreter's shape."""
        items = list(found) if isinstance(found, tuple) else [found]
        if len(items) != len(kinds):
            raise Failure("shape", f"{what}: {len(items)} results for {len(kinds)} unknowns")
        arrays = []
        for u, g in zip(kinds, items, strict=True):
            array = np.asarray(g)
            wanted = shape_of(u.kind) if isinstance(u.kind, Tensor) else ()
            if array.shape != wanted:
                raise Failure("shape", f"{what}: the shape {array.shape} for {wanted}")
            if array.dtype.kind not in "fiuc" or (array.dtype.kind == "c" and not over_complex(u.kind)):
                raise Failure("shape", f"{what}: the dtype {array.dtype} for {u.kind}")
            arrays.append(array.reshape(oracle.sizes_of(u.kind)))
        return arrays

    def compare_values(self, found: Sequence[Any], what: str) -> None:
        """Hold the values of the program against the oracle."""
        for n, (v, kind) in enumerate(zip(found, oracle.result_kinds(self.program), strict=True)):
            expected = self.values[n]
            array = np.asarray(v).reshape(expected.shape)
            scale = np.abs(expected).max(initial=0)
            if not scale <= self._limit():
                raise Skipped("double precision overflows")
            if bool((np.abs(array - expected) <= TOLERANCE * scale).all()):
                continue
            self._refuse_overflow()
            double = oracle.value(self.program, self.data, np.float64)[n]
            nudged = {x: _nudged(y, np.random.default_rng(6)) for x, y in self.data.items()}
            near = oracle.value(self.program, nudged)[n]
            allowed = (np.abs(double - expected) * 1e3 + np.abs(near - expected) * 1e-5).max()
            # what is exactly zero in the oracle's order of operations need not be so in another one
            noisy = oracle.value(self.program, self.data, noise=np.random.default_rng(7))[n]
            allowed += _rounding(noisy, expected).max()
            if not np.isfinite(allowed):
                raise Skipped("badly conditioned: double precision is not finite")
            if not bool((np.abs(array - expected) <= TOLERANCE * scale + allowed).all()):
                raise Failure("wrong", f"{what}: the value {array.ravel()[0]} for {expected.ravel()[0]} ({kind})")


def _slot(kind: Type, path: Sequence[int]) -> Range | None:
    """The range at a place in a type, if there is one: slot 2 of x is x.2, slot 1 of what D returns D.0.1."""
    match kind:
        case Tensor(slots) if path[0] <= len(slots):
            return slots[path[0] - 1]
        case Function(params, result) if path[0] <= len(params):
            return _slot(params[path[0] - 1] if path[0] else result, path[1:])
    return None


def _jumps(e: Expr) -> bool:
    """Whether a number decides where something changes at once."""
    if isinstance(e, Indicator):
        return not (isinstance(e.left, Affine) and isinstance(e.right, Affine))
    if isinstance(e, Compared):
        return not all(isinstance(side, Affine) for side in e.sides)
    if isinstance(e, Power):
        return over_complex(e.base.kind)
    if isinstance(e, Several):
        return e.name == "atan2"
    return isinstance(e, Call) and (e.name in JUMPS or (e.name in CUTS and over_complex(e.of.kind)))


def _rounding(noisy: Any, exact: Any) -> Any:
    """What rounding may change, by what noise does; anything where that is much, as beside a jump."""
    off = np.nan_to_num(np.abs(noisy - exact), nan=np.inf)
    return np.where(off > 1e-6 * np.abs(exact).max(initial=0), np.inf, off * (ROUNDING / NOISE))


def _nudged(x: Any, rng: np.random.Generator) -> Any:
    if isinstance(x, SUPPLIED):
        return x
    x = np.asarray(x)
    return x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble) * (
        1 + 1e-9 * rng.standard_normal(x.shape)
    )


__all__ = ["Case", "CombDiffError", "Failure", "Refused", "Skipped"]
