"""Generated source as a callable that checks what it is given: number of arguments, axes, sizes, dtypes, symmetries."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from inspect import cleandoc
from math import inf
from operator import itemgetter
from threading import RLock
from typing import TYPE_CHECKING, Generic, Literal, TypeAlias, TypeVar, cast

from combdiff.arrays import ops
from combdiff.arrays.lower.argument_names import ArgumentNames, identifier
from combdiff.arrays.lower.forms import Forms
from combdiff.arrays.lower.signature import result_of
from combdiff.arrays.packing.packed_plan import packed
from combdiff.arrays.passes.overwriting import CAUTIOUS, Overwriting
from combdiff.arrays.passes.schedule import check_memory, check_states, scheduled
from combdiff.arrays.plan import Argument, Plan, Root
from combdiff.boundary import cut
from combdiff.emit.emit import emit, spelling_of
from combdiff.emit.modules import Module
from combdiff.errors import ArrayError, CombDiffError
from combdiff.language.vocabulary import counted
from combdiff.meaning.quadrature import placed
from combdiff.records import dataclass
from combdiff.run.calling import Call
from combdiff.run.executing import Algebra, compile_source, run
from combdiff.run.fitting import (
    are_alike,
    as_array,
    as_integers,
    as_number,
    as_size,
    check_entries,
    check_least_sizes,
    check_out,
    check_positive,
    contents_of,
    contents_of_lists,
    filled,
    forms_of,
    missing_entry,
)
from combdiff.run.functions import by_entry, with_derivatives
from combdiff.run.libraries import library_of, looked_at
from combdiff.run.packed_arrays import Pack, PackedArrays
from combdiff.terms.conditions.needed import least_sizes
from combdiff.terms.recursion import deep_recursion
from combdiff.terms.terms import Term
from combdiff.terms.types import Domain, Index, Interval, Map, Number, interval_of_rule

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from combdiff.arrays.packing.layout import Packing
    from combdiff.meaning.values import Extent
    from combdiff.run.libraries import Foreign

    Array: TypeAlias = npt.NDArray[np.generic]
    Sizes: TypeAlias = Mapping[Domain, int]

R = TypeVar("R", covariant=True)
Check: TypeAlias = Literal["sample", "full", "states", False]
FAR = 2.0
"""A plan serves other sizes, too, none of which is so many times larger or smaller than its own."""

_SAMPLE = 4096
_MOST_CALLS = 64


@dataclass(frozen=True, slots=True)
class Known:
    """The function for arrays of one form; `offsets` are its lists by their places, and `lists` what they hold."""

    function: Callable[..., object]
    offsets: Mapping[int, object]
    lists: tuple[bytes, ...]
    sizes: Sizes


@dataclass(frozen=True, slots=True)
class _Written:
    """A plan with its texts: for arrays of one layout and type, and for others."""

    plan: Plan
    texts: dict[bool, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CodeOptions:
    """How the code of a function is written, and what a call checks.

    Args:
        backend, name, title: the array library, the name of the function, and the head of its docstring.
        check: how many entries of an array are checked for its declared symmetries on first use: a `"sample"` of 4,096
            entries, all (`"full"`), or none (`False`). With `"states"` all are, and each step of a loop is watched:
            an error names the state that becomes nan or infinite first, and the step.
        pack: arguments that are packed on first use; all their entries are checked first.
        memory: a limit, in bytes, for the arrays of a call at any time, with results and without arguments.
    """

    backend: str = "numpy"
    name: str = "gradient"
    title: str = ""
    check: Check = "sample"
    pack: tuple[str, ...] = ()
    memory: int | None = None


DEFAULTS = CodeOptions()


class Compiled(Generic[R]):
    """A function of arrays: `f(J, C)` or `f(J=J, C=C)`; your functions by keyword, `f(x, g=np.tanh, grad_g=…)`.

    >>> import numpy as np
    >>> from combdiff.terms.terms import TWO, App, Lam, fresh, mul
    >>> from combdiff.terms.types import REAL, Index
    >>> n = Index(Domain("x.1"))
    >>> i, x = fresh("i", n), fresh("x", Map((n,), REAL))
    >>> Compiled(Lam((x,), Lam((i,), mul(TWO, App(x, (i,))))))(np.arange(3.0))
    array([0., 2., 4.])

    `term` is a derivation's result. A call returns new arrays (several as a tuple), or fills `out=` (`out_=`, if an
    argument is called out). `source` is the text for guessed sizes. The order of contractions is chosen for the shapes
    of the first call, and again for shapes far from them. Any number of threads may call the function. Raises
    `ArrayError` if an array does not fit, and `BudgetError`, before any work, if `memory` is too small.
    """

    _unchecked: tuple[str, ...] = ()

    def __init__(self, term: Term | Forms, options: CodeOptions = DEFAULTS) -> None:
        self._forms = term if isinstance(term, Forms) else Forms(term)
        self._term = self._forms.formula
        self._options = options
        self._spelling = replace(spelling_of(options.backend), watches=options.check == "states")
        self._library = library_of(options.backend)
        self._name = identifier(options.name)
        check_memory(self._spelling, options.memory)
        self._kinds = {v.name: v.kind for v in result_of(self._term).params}
        self._packed = PackedArrays(self._kinds, self._library)
        # what a call takes, and whether the library has all that it needs; the quickest form is sought at the call
        formula = self._forms.of_formula()
        self._taken = {a.name: a for a in formula.arguments}
        self._plan = self._planned(formula, None)
        self._first_text = self._text(self._plan)
        self._known: dict[str, tuple[Callable[..., object], list[tuple[Packing, Pack]]]] = {}
        self._by_sizes: dict[Hashable, Callable[..., object]] = {}
        self._plans: list[tuple[Sizes, _Written]] = []
        self._seen: dict[tuple[str, int, tuple[bytes, ...]], weakref.ref[object]] = {}
        self._calls: dict[Hashable, Known] = {}
        self._lock = RLock()
        with deep_recursion():
            own = least_sizes(self._term)
        self._least = {d: max(self._forms.least.get(d, 0), own.get(d, 0)) for d in {**self._forms.least, **own}}
        self._look_at_arguments()

    def _look_at_arguments(self) -> None:
        """What a call takes, and what it does with it."""
        found = [step.op for step in self._plan.steps if isinstance(step.op, Root | ops.Solve | ops.OfMatrices)]
        solves = any(not isinstance(op, ops.OfMatrices) or op.kind == "inv" for op in found)
        self._algebra: Algebra = "systems" if solves else "matrices" if found else ""
        self._names = [a.name for a in self._plan.arguments]
        self._integers = [n for n, a in enumerate(self._plan.arguments) if a.of_integers]
        self._positive = [n for n, a in enumerate(self._plan.arguments) if isinstance(a.kind, Map) and a.kind.positive]
        self._listed = [n for n, a in enumerate(self._plan.arguments) if a.offsets is not None]
        intervals = {n: interval_of_rule(a.kind) for n, a in enumerate(self._plan.arguments)}
        self._rules = {n: interval for n, interval in intervals.items() if interval is not None}
        kinds = [None if name in self._plan.packed else self._kinds.get(name) for name in self._names]
        self._symmetric = [
            n for n, kind in enumerate(kinds) if self._options.check and isinstance(kind, Map) and kind.symmetries
        ]
        names = ArgumentNames(self._term)
        # lists that the code does not need may still be needed to check a declared symmetry
        self._lists = {name: d for name, d in names.lists.items() if name not in self._names}
        others = {*_functions(self._term), *names.derivatives_in(self._term), *self._lists}
        self._call = Call(self._module(), self._plan.arguments, others)
        # what editors and help(…) ask a function for
        self.__name__ = self.__qualname__ = self._name
        self.__doc__ = _docstring(self._first_text, self._name)
        self.__signature__ = self._call.signature()

    def __repr__(self) -> str:
        return f"<compiled {self._name}({', '.join(a.name for a in self._plan.arguments)})>"

    def __reduce__(self) -> tuple[object, ...]:
        # what was learnt from arrays is of this process; the text is made anew from the formula
        return type(self), (self._forms, self._options)

    def __call__(self, /, *args: object, out: object = None, **named: object) -> R:
        __tracebackhide__ = True  # for pytest
        try:
            result: R = self._called(args, out, named)  # type: ignore[assignment]  # as the code returns it
        except CombDiffError as error:
            raise cut(error) from None
        return result

    def _called(self, args: tuple[object, ...], out: object, named: dict[str, object]) -> object:
        out, named = self._call.separated(out, named)
        if self._rules:
            args, named = self._with_rules(args, named)
        ready = self._ready(args, named)
        if ready is not None:
            function, arrays, sizes = ready
            if out is not None:
                self._check_out(out, sizes, arrays)
            result = run(function, arrays, self._algebra)
            return result if out is None else filled(out, result)
        return self._at_first(args, out, named)

    def _at_first(self, args: tuple[object, ...], out: object, named: dict[str, object]) -> object:
        """What a call does whose arrays are converted and checked."""
        from combdiff.meaning.points import offsets_of
        from combdiff.meaning.values import Extent

        given = self._call.bound(args, with_derivatives(named, self._names))
        if self._library is not None:
            given = self._with_lists(given)
        extent = Extent()
        for name, domain in self._lists.items():
            if name in given:
                extent.note(domain, offsets_of(domain, given[name], name), name)
        fitted = [self._fitted(a, given[a.name], extent) for a in self._plan.arguments]
        if self._library is not None:
            fitted = self._checked(fitted, out)
        for argument, value in zip(self._plan.arguments, fitted, strict=True):
            self._check_symmetry(argument, value, extent.sizes)
            if argument.of_integers:
                check_entries(argument, value, extent.sizes, self._library)
        for n in self._positive:
            check_positive(self._plan.arguments[n], fitted[n], self._library)
        if out is not None:
            self._check_out(out, extent.sizes, fitted)
        function = self._function(extent.sizes, are_alike(self._plan.arguments, fitted))
        if self._library is None:
            self._remember(function, [given[name] for name in self._names], fitted, extent.sizes)
        result = run(function, fitted, self._algebra, self._library)
        return self._returned(result) if out is None else filled(out, result)

    @cached_property
    def _numbers(self) -> frozenset[int]:
        """The places of the arguments that are numbers."""
        return frozenset(n for n, a in enumerate(self._plan.arguments) if isinstance(a.kind, Number))

    def _returned(self, result: object) -> object:
        """Results as arrays of the library; what is left to be called stays as it is."""
        if self._library is None or callable(result):
            return result
        if isinstance(result, tuple):
            return tuple(map(self._returned, result))
        return self._library.result(result)

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """What a call takes, in order."""
        return tuple(self._plan.arguments)

    def plan(self, sizes: Mapping[Domain, int]) -> Plan:
        """The plan for these sizes; prints as a table of costs."""
        return self._lowered(sizes)

    def repack(self) -> None:
        """Drop the packed copies. Call this after you change a packed array in place."""
        self._packed.forget()

    # --- what was called before -------------------------------------------------------------------------------------

    def _ready(
        self, args: tuple[object, ...], named: Mapping[str, object]
    ) -> tuple[Callable[..., object], list[object], Sizes] | None:
        """The function and its arguments, if arrays of these shapes and dtypes need no conversion and no check."""
        names = self._names[len(args) :]
        if len(args) > self._call.by_position or len(named) != len(names):
            return None
        try:
            values = [*args, *(named[name] for name in names)]
        except KeyError:
            return None
        known = self._calls.get(self._key(values))
        if known is None:
            return None
        for place in self._symmetric:
            seen = self._seen.get((self._names[place], id(values[place]), known.lists))
            if seen is None or seen() is not values[place]:
                return None
        for place, rows in known.offsets.items():
            values[place] = rows
        for place in self._integers:
            check_entries(self._plan.arguments[place], values[place], known.sizes, None)
        for place in self._positive:
            check_positive(self._plan.arguments[place], values[place], None)
        for place in self._numbers:
            values[place] = as_number(values[place])
        return known.function, values, known.sizes

    def _key(self, values: Sequence[object]) -> Hashable:
        """What two calls have in common that need the same function: forms of arrays, and what lists hold."""
        listed = contents_of([values[place] for place in self._listed]) if self._listed else ()
        return forms_of(values, self._numbers), listed

    def _remember(
        self, function: Callable[..., object], given: Sequence[object], fitted: Sequence[object], sizes: Sizes
    ) -> None:
        # lists that only checks need are looked at whenever they are given, or are not
        if self._lists or None in forms_of(given, self._numbers):
            return
        converted = {*self._listed, *self._numbers}
        if all(a is b or n in converted for n, (a, b) in enumerate(zip(given, fitted, strict=True))):
            if len(self._calls) >= _MOST_CALLS:
                self._calls.clear()
            offsets = {place: fitted[place] for place in self._listed}
            self._calls[self._key(given)] = Known(function, offsets, contents_of_lists(sizes), sizes)

    # --- arguments --------------------------------------------------------------------------------------------------

    def _fitted(self, argument: Argument, value: object, extent: Extent) -> object:
        """An argument as the code wants it: floating-point arrays, NumPy's numbers, callables."""
        from combdiff.meaning.points import offsets_of
        from combdiff.meaning.values import AXES, places

        if argument.optional and value is None:
            return None
        if argument.callable:
            if not callable(value):
                raise ArrayError(f"{argument.name} must be a function", remedy="give a Python callable")
            return by_entry(argument, value, self._library)
        if isinstance(argument.kind, Index):
            return as_size(argument, value, extent)
        if argument.offsets is not None:
            offsets = offsets_of(argument.offsets, value, argument.name)
            extent.note(argument.offsets, offsets, argument.name)
            return offsets.rows if argument.offsets.directions > 1 else offsets.rows[:, 0]
        if argument.of_integers:
            array = as_integers(argument, value) if self._library is None else self._library.integers(argument, value)
        else:
            array = as_array(argument, value) if self._library is None else self._library.argument(argument, value)
        kind = self._kinds.get(argument.name, argument.kind)
        slots = places(kind, argument.name) if isinstance(kind, Map) else []
        if len(array.shape) != len(slots):
            indices = len(kind.params) if isinstance(kind, Map) else 0
            spread = "" if indices == len(slots) else f" on {len(slots)} axes"
            raise ArrayError(
                f"{argument.name} has {counted(indices, 'index')}{spread}, "
                f"but the array has {counted(len(array.shape), 'axis')}",
                remedy=AXES if spread else "give an array with an axis for each index" if indices else "give a number",
            )
        for (axis, place), size in zip(slots, array.shape, strict=True):
            assert axis is not None, "slots of arrays have ranges"
            extent.note(axis, size, place)
        return array if slots or self._library is not None else array[()]  # type: ignore[index]  # NumPy's

    def _with_rules(
        self, args: tuple[object, ...], named: Mapping[str, object]
    ) -> tuple[tuple[object, ...], dict[str, object]]:
        """The arguments with quadrature rules as arrays of nodes and weights, which lie in their intervals."""
        by_name = {self._names[place]: interval for place, interval in self._rules.items()}
        numbers = dict(zip(self._names, args, strict=False)) | {self._call.spelled(k): v for k, v in named.items()}

        def given(interval: Interval | None, value: object) -> object:
            return value if interval is None else placed(value, interval, numbers)

        found = tuple(given(self._rules.get(place), value) for place, value in enumerate(args))
        return found, {k: given(by_name.get(self._call.spelled(k)), value) for k, value in named.items()}

    def _with_lists(self, given: dict[str, object]) -> dict[str, object]:
        """Lists of offsets, which are small and looked at, as NumPy's arrays."""
        assert self._library is not None, "there is one"
        lists = {a.name for a in self._plan.arguments if a.offsets is not None} | self._lists.keys()
        return {name: self._library.listed(name, v) if name in lists else v for name, v in given.items()}

    def _check_out(self, out: object, sizes: Sizes, arrays: Sequence[object]) -> None:
        """Refuse arrays that the results do not fit; what functions of the user return is not known beforehand."""
        outputs = self._plan.outputs
        if all(part in sizes or part.count is not None for s in outputs for d in s.domains for part in d.measured):
            # real arrays may stand for complex ones, and results are real then
            found = any(getattr(getattr(a, "dtype", None), "kind", "") == "c" for a in arrays)
            shapes = [tuple(d.extent(sizes) for d in step.domains) for step in outputs]
            check_out(out, shapes, [step.complex and found for step in outputs], self._plan.tupled)

    def _refuse_out(self) -> None:
        """Only arrays of NumPy are written to."""
        if self._library is not None:
            raise ArrayError(
                f"out= works with NumPy only, and the code is for {self._library.title}", remedy="leave it out"
            )

    def _checked(self, fitted: list[object], out: object) -> list[object]:
        """What is asked of arrays of another library than NumPy; lists of offsets go where the arrays are."""
        assert self._library is not None, "there is one"
        if out is not None:
            self._refuse_out()
        pairs = zip(self._plan.arguments, fitted, strict=True)
        arrays = [(a.name, cast("Foreign", v)) for a, v in pairs if a.step is not None and not a.offsets]
        self._library.check_devices(arrays)
        near = arrays[0][1] if arrays else None
        return [
            self._library.offsets(cast("Array", v), near) if a.offsets is not None else v
            for a, v in zip(self._plan.arguments, fitted, strict=True)
        ]

    def _check_symmetry(self, argument: Argument, value: object, sizes: Sizes) -> None:
        """Refuse data that break a declared symmetry; an array that was seen before is not looked at again."""
        import numpy as np

        kind = self._kinds.get(argument.name)
        skipped = not self._options.check or argument.callable or argument.name in self._plan.packed
        if skipped or not isinstance(kind, Map) or not kind.symmetries:
            return
        # a symmetry of neighbours is one for the neighbours that are listed
        key = argument.name, id(value), contents_of_lists(sizes)
        known = self._seen.get(key)
        if known is not None and known() is value:
            return
        from combdiff.meaning.breaches import breaks_symmetry

        sample = _SAMPLE if self._options.check == "sample" else None
        entries = looked_at(self._library, value, sample)
        if entries is None:
            return
        breach = breaks_symmetry(entries, kind, sizes, sample, np.random.default_rng(0))
        if breach is not None:
            remedy = "correct the array or the declaration; check=False takes arrays as they are"
            raise ArrayError(breach.message(argument.name), remedy=remedy)
        # a new table: another thread may be reading the old one
        kept = {key: ref for key, ref in self._seen.items() if ref() is not None}
        self._seen = {**kept, key: weakref.ref(value)}

    # --- code -------------------------------------------------------------------------------------------------------

    def _module(self) -> Module:
        return Module(self._spelling, self._name)

    @cached_property
    def source(self) -> str:
        """The text of the function for guessed sizes."""
        return self._text(self._lowered(None))

    def _lowered(self, sizes: Mapping[Domain, int] | None) -> Plan:
        with deep_recursion():
            # a limit is for the sizes of a call, not for those that are guessed
            memory = self._options.memory
            plan = self._called_alike(self._forms.plan(sizes, memory)) or self._forms.of_formula()
            return self._planned(plan, None if sizes is None else memory)

    def _called_alike(self, plan: Plan) -> Plan | None:
        """The plan with the arguments that a call takes; None if it asks for a size that no call gives.

        Which sizes code needs, beside those that arrays show, depends on how it computes sums over groups: one by one
        for few numbers in many groups, or all groups at once.
        """
        own = {a.name: a for a in plan.arguments}
        if not own.keys() <= self._taken.keys():
            return None
        arguments = tuple({**self._taken, **own}.values())
        return plan if own.keys() == self._taken.keys() else replace(plan, arguments=arguments)

    def _planned(self, plan: Plan, memory: int | None) -> Plan:
        with deep_recursion():
            return self._scheduled(packed(plan, self._options.pack, self._unchecked), memory)

    def _scheduled(self, plan: Plan, memory: int | None) -> Plan:
        return scheduled(plan, self._spelling, memory)

    def _text(self, plan: Plan, over: Overwriting = CAUTIOUS) -> str:
        with deep_recursion():
            return emit(plan, self._spelling, self._name, self._options.title, over)

    def _function(self, sizes: Mapping[Domain, int], alike: bool) -> Callable[..., object]:
        """The function for these sizes, arrays `alike` or not; what has one order of contractions shares one."""
        key = tuple(sizes.items()), contents_of_lists(sizes), alike
        with self._lock:
            if key not in self._by_sizes:
                near = self._with_entries(self._near(sizes), sizes)
                check_least_sizes(self._least, sizes)
                check_states(replace(near.plan, sizes={**near.plan.sizes, **sizes}))
                if alike not in near.texts:
                    near.texts[alike] = self._text(near.plan, Overwriting(alike))
                self._by_sizes[key] = self._executed(near.texts[alike], near.plan, sizes)
            return self._by_sizes[key]

    def _with_entries(self, near: _Written, sizes: Sizes) -> _Written:
        """A plan that reads no entry that the arrays lack: conditions on their sizes may say that it is not read.

        Raises ArrayError if it is.
        """
        missing = missing_entry(near.plan, sizes)
        if missing is None:
            return near
        decided = self._called_alike(self._forms.decided(sizes).of_formula())
        if decided is None:
            raise missing
        plan = self._planned(decided, self._options.memory)
        if (missing := missing_entry(plan, sizes)) is not None:
            raise missing
        return _Written(plan)

    def _near(self, sizes: Sizes) -> _Written:
        """A plan for these sizes, or for sizes near to them: it is right for all, and as good as quickest for these."""
        near = [(ratio, written) for own, written in self._plans if (ratio := _ratio(own, sizes)) < FAR]
        if near and self._options.memory is None:
            return min(near, key=itemgetter(0))[1]
        self._plans.append((sizes, _Written(self._lowered(sizes))))
        return self._plans[-1][1]

    def _executed(self, text: str, plan: Plan, sizes: Sizes) -> Callable[..., object]:
        if text not in self._known:
            packers = self._module().packers(plan)
            packs = [(packing, compile_source(text, packers[packing.name])) for packing in plan.packings]
            self._known[text] = compile_source(text, self._name), packs
        function, packs = self._known[text]
        return self._packed.bound(function, self._names, packs, sizes) if packs else function


def _ratio(a: Sizes, b: Sizes) -> float:
    """The largest ratio of sizes of a domain, infinite where one of them is 0, or lists have other entries."""
    if a.keys() != b.keys() or contents_of_lists(a) != contents_of_lists(b):
        return inf
    pairs = [sorted((n, b[domain])) for domain, n in a.items()]
    return max((large / small if small else inf for small, large in pairs if small != large), default=1.0)


def _docstring(source: str, name: str) -> str:
    """What the function of a text says of itself."""
    _, _, body = source.partition(f"def {name}(")
    return cleandoc(body.split('"""')[1])


def _functions(term: Term) -> set[str]:
    """The functions that a program takes, though its result may not call them."""
    return {v.name for v in result_of(term).params if isinstance(v.kind, Map) and not v.kind.is_array}
