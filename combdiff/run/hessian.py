"""A gradient and a Hessian-vector product as one function: (…, point) ↦ value, gradient, and k ↦ Hessian · k there.

The two results are joined to one plan, so that what both need is computed once; `closures.py` splits it into what a
direction reaches and what none does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from combdiff.arrays.lower.forms import Forms
from combdiff.arrays.lower.signature import Result, result_of
from combdiff.arrays.packing.packed_plan import packed
from combdiff.arrays.passes.overwriting import CAUTIOUS, Overwriting
from combdiff.arrays.passes.schedule import scheduled, suited
from combdiff.arrays.plan import Argument, Plan, Step
from combdiff.boundary import boundary
from combdiff.emit.closures import emit_with_products
from combdiff.emit.emit import spelling_of
from combdiff.errors import ArrayError, UnsupportedError
from combdiff.records import dataclass
from combdiff.run.compiled import DEFAULTS, CodeOptions, Compiled
from combdiff.run.executing import run
from combdiff.run.fitting import filled
from combdiff.terms.recursion import deep_recursion
from combdiff.terms.terms import Lam, Term, Tuple, Var, let
from combdiff.terms.types import Domain, Map, is_complex

if TYPE_CHECKING:
    from combdiff.run.libraries import Foreign


@dataclass(frozen=True, slots=True)
class Joint:
    """A result and the products at the same point: one map, whose last parameters are the `directions`.

    `first` counts the outputs that no direction reaches: the value if there is one, and the gradients.
    """

    forms: Forms
    directions: tuple[Var, ...]
    first: int

    def __reduce__(self) -> tuple[object, ...]:
        # the directions are parameters of the term, and are to be so again
        return _rejoined, (self.forms, len(self.directions), self.first)

    @property
    def term(self) -> Lam:
        """The formula."""
        assert isinstance(self.forms.formula, Lam), "a result is a map of its parameters"
        return self.forms.formula

    @property
    def unknowns(self) -> tuple[Var, ...]:
        """What the directions are of."""
        count = len(self.directions)
        return self.term.params[-2 * count : -count]


def joined(result: Forms, products: Forms) -> Joint:
    """The result of a gradient and that of its Hessian-vector product in one term, their definitions once.

    >>> from combdiff.terms.terms import TWO, fresh, mul, power
    >>> from combdiff.terms.types import REAL
    >>> x, k = fresh("x", REAL), fresh("k", REAL)
    >>> joint = joined(Forms(Lam((x,), mul(TWO, x))), Forms(Lam((x, k), mul(TWO, k))))
    >>> len(joint.term.params), joint.first, [v.name for v in joint.directions]
    (2, 1, ['k'])
    """
    count = max(len(result.flats), len(products.flats))
    pairs = [
        [f.flats[min(n, len(f.flats) - 1)] if f.flats else f.formula for f in (result, products)] for n in range(count)
    ]
    formula, flats = _joined(result.formula, products.formula), tuple(_joined(*pair) for pair in pairs)
    forms = replace(result, formula=formula, flats=flats)
    before, after = result_of(result.formula), result_of(products.formula)
    return Joint(forms, after.params[len(before.params) :], len(before.outputs))


def _joined(result: Term, products: Term) -> Lam:
    """Both in one term, whose parameters are those of the products."""
    a, b = result_of(result), result_of(products)
    if b.params[: len(a.params)] != a.params:
        raise UnsupportedError(
            "the Hessian-vector product takes other arguments than the gradient",
            remedy="compile cd.hvp of the program on its own",
        )
    return Lam(b.params, let(_merged(a, b), Tuple((*a.outputs, *b.outputs))))


def _rejoined(forms: Forms, directions: int, first: int) -> Joint:
    assert isinstance(forms.formula, Lam), "a result is a map of its parameters"
    return Joint(forms, forms.formula.params[-directions:], first)


def _merged(a: Result, b: Result) -> list[tuple[Var, Term]]:
    """The bindings of a, then those of b that a has not."""
    known = {var for var, _ in a.bindings}
    return [*a.bindings, *((var, e) for var, e in b.bindings if var not in known)]


def products_source(
    joint: Joint,
    backend: str,
    name: str,
    title: str,
    pack: tuple[str, ...] = (),
    memory: int | None = None,
    sizes: Mapping[Domain, int] | None = None,
) -> str:
    """Stand-alone source of a function that returns the outputs at a point, and `hvp`, the products there."""
    with deep_recursion():
        spelling = spelling_of(backend)
        plan = packed(joint.forms.plan(sizes, memory), pack, [v.name for v in joint.directions])
        plan, varying = _split(suited(plan, spelling), joint)
        plan = scheduled(plan, spelling, memory, varying)
        return emit_with_products(plan, plan.directions, joint.first, spelling, name, title)


def _split(plan: Plan, joint: Joint) -> tuple[Plan, set[Step]]:
    """The plan with its directions apart from the other arguments, and the steps that they reach."""
    names = {v.name for v in joint.directions}
    directions = tuple(a for a in plan.arguments if a.name in names)
    reached = {a.step for a in directions if a.step is not None}
    for step in plan.steps:
        if not reached.isdisjoint(step.operands):
            reached.add(step)
    arguments = tuple(a for a in plan.arguments if a.name not in names)
    return replace(plan, arguments=arguments, directions=directions), reached


class CompiledHessian(Compiled[tuple[Any, ...]]):
    """A function of arrays that returns its outputs at a point, and then the function `hvp` of a direction.

    >>> import combdiff as cd, numpy as np
    >>> f = cd.grad("(x::RV) -> sum(i, x(i)^3)").compile(hvp=True)
    >>> gradient, hvp = f(np.array([1.0, 2.0]))
    >>> gradient, hvp(np.array([1.0, 1.0]))
    (array([ 3., 12.]), array([ 6., 12.]))

    Arguments and errors as for `Compiled`; `hvp` takes a direction for each unknown, an array of the unknown's shape.
    `hvp` uses the arrays of the call, not copies: its results are wrong after you change these arrays. `out=` is for
    the outputs before `hvp`; `hvp` has its own `out=`.
    """

    def __init__(self, joint: Joint, options: CodeOptions = DEFAULTS) -> None:
        self._joint = joint
        self._unchecked = tuple(v.name for v in joint.directions)
        super().__init__(joint.forms, options)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._joint, self._options)

    def _called(self, args: tuple[object, ...], out: object, named: dict[str, object]) -> object:
        import numpy as np

        out, named = self._call.separated(out, named)
        if out is not None:
            self._refuse_out()
        results = super()._called(args, None, named)
        assert isinstance(results, tuple), "the outputs, and the products"
        *outputs, closure = results
        gradients = outputs[-len(self.directions) :]
        hvp = Products(self, closure, tuple(map(_own_shape, self._joint.unknowns, map(np.shape, gradients))))
        if out is not None:
            made = filled(out, outputs[0] if len(outputs) == 1 else tuple(outputs))
            outputs = list(made) if isinstance(made, tuple) else [made]
        return (*outputs, hvp)

    @property
    def directions(self) -> tuple[Argument, ...]:
        """What the products take."""
        return self._plan.directions

    def product(
        self, closure: Callable[..., object], shapes: Sequence[tuple[int, ...]], given: Sequence[object], out: object
    ) -> object:
        """What `closure` returns for directions that are checked against the shapes of the unknowns."""
        from combdiff.meaning.values import Extent, places

        if out is not None:
            self._refuse_out()
        names = ", ".join(d.name for d in self.directions)
        if len(given) != len(self.directions):
            raise ArrayError(
                f"hvp takes a direction for each unknown, {names}, and {len(given)} are given",
                remedy=f"give {len(self.directions)}, hvp({names})",
            )
        fitted = list(given)
        if self._library is not None or not all(map(_fits, self.directions, given, shapes)):
            extent = Extent()
            for unknown, shape in zip(self._joint.unknowns, shapes, strict=True):
                found = places(unknown.kind, unknown.name) if isinstance(unknown.kind, Map) else []
                for (axis, place), size in zip(found, shape, strict=True):
                    assert axis is not None, "slots of arrays have ranges"
                    extent.note(axis, size, place)
            fitted = [self._fitted(d, value, extent) for d, value in zip(self.directions, given, strict=True)]
        if self._library is not None:
            self._library.check_devices(
                [(d.name, cast("Foreign", v)) for d, v in zip(self.directions, fitted, strict=True)]
            )
        result = run(closure, fitted, self._algebra, self._library)
        return self._returned(result) if out is None else filled(out, result)

    def _scheduled(self, plan: Plan, memory: int | None) -> Plan:
        plan, varying = _split(suited(plan, self._spelling), self._joint)
        return scheduled(plan, self._spelling, memory, varying)

    def _text(self, plan: Plan, over: Overwriting = CAUTIOUS) -> str:
        with deep_recursion():
            return emit_with_products(
                plan, plan.directions, self._joint.first, self._spelling, self._name, self._options.title, over
            )


class Products:
    """The Hessian at one point: `hvp(k)`, or `hvp(k1, k2)` with a direction for each of several unknowns.

    The result has the shape of the direction; several results are a tuple. `out=` are arrays to fill. Raises
    `ArrayError` if a direction does not fit its unknown.
    """

    def __init__(
        self, function: CompiledHessian, closure: Callable[..., object], shapes: tuple[tuple[int, ...], ...]
    ) -> None:
        self._function = function
        self._closure = closure
        self._shapes = shapes

    @boundary
    def __call__(self, /, *directions: object, out: object = None) -> Any:
        return self._function.product(self._closure, self._shapes, directions, out)

    def __repr__(self) -> str:
        return f"<Hessian-vector product hvp({', '.join(d.name for d in self._function.directions)})>"


def _own_shape(unknown: Var, gradient: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of an unknown, from that of its gradient, whose first axes may be indices that lead the program."""
    from combdiff.meaning.values import places

    rank = len(places(unknown.kind, unknown.name)) if isinstance(unknown.kind, Map) else 0
    return gradient[len(gradient) - rank :]


def _fits(direction: Argument, value: object, shape: tuple[int, ...]) -> bool:
    """Whether a direction needs no conversion and no check."""
    import numpy as np

    kinds = "fc" if is_complex(direction.kind) else "f"
    return type(value) is np.ndarray and value.shape == shape and shape != () and value.dtype.kind in kinds
