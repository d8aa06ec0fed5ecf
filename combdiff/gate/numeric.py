"""The value of a term on arrays, one axis for every open index; sums are eliminated one index after the other.

Quick enough to check every simplification. `meaning/evaluate.py`, which is slow and obviously right, shares nothing
with it. The numbers are floating-point numbers or residues, as `arithmetic.py` says.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Protocol

from combdiff.errors import UnsupportedError
from combdiff.gate.arithmetic import Arithmetic
from combdiff.gate.exact import is_counted, is_whole
from combdiff.gate.labelled import (
    LARGEST,
    Labelled,
    TooLargeError,
    added,
    all_axes,
    eliminated,
    guarded,
    multiplied,
)
from combdiff.gate.looping import Recurrence, recurrence_of
from combdiff.gate.matrices import matrix_values
from combdiff.gate.residues import HALF
from combdiff.gate.solving import made_of
from combdiff.terms.laws.matrices import matrices_of, numbers_of
from combdiff.terms.nodes import ARRAYS, MATRICES, OF_MATRICES, PLACES, SHARES, VECTORS
from combdiff.terms.terms import (
    ONE,
    ZERO,
    Add,
    App,
    Call,
    Conj,
    Const,
    Delta,
    Diff,
    Indicator,
    Lam,
    Let,
    Loop,
    Mul,
    Pow,
    Proj,
    Reduce,
    Sum,
    Term,
    Traverser,
    Tuple,
    Var,
    add,
    conj,
    delta,
    domains_compared,
    ends_of,
    fresh,
    indicator,
    mul,
    neg,
    number,
    substitute,
    subterms,
    total,
)
from combdiff.terms.traversal import interval_of_sum, is_tensor
from combdiff.terms.types import REAL, Domain, Index, Interval, Map, Number, Type

if TYPE_CHECKING:
    from combdiff.gate.labelled import Array


Recurring = tuple[Term, Term, bool]
"""The step of a loop, its start and whether it runs backward."""


class Draws(Protocol):
    """Where the values of free variables come from, and what kind of number they are."""

    sizes: dict[Domain, int]
    numbers: Arithmetic
    recurrences: dict[Recurring, Recurrence]

    @property
    def without_numbers(self) -> dict[Term, Term]:
        """Sums over all numbers, and what they are without the one that a δ fixes."""
        ...

    @property
    def ask(self) -> Callable[[], None]:
        """Called often; it may raise to stop."""
        ...

    def value(self, v: Term) -> object:
        """The value of a free variable or of an unknown derivative."""
        ...

    def rounded(self, t: Term, value: Labelled) -> Labelled:
        """The value of a term, or that with an error of rounding."""
        ...

    def refuse_exact(self, why: str = "") -> None:
        """What follows are floating-point numbers: of a linear map, or of a root."""
        ...


def extent_of(v: Var, sizes: Mapping[Domain, int]) -> int:
    """How many values an index takes."""
    if not isinstance(v.kind, Index) or v.kind.domain is None:
        raise UnsupportedError("a sum over all numbers has no value on arrays")
    n = v.kind.domain.extent(sizes)
    if n > LARGEST:
        raise TooLargeError(f"a check on numbers would need an array of {n} entries")
    return n


def range_of(v: Var, sizes: Mapping[Domain, int]) -> Array:
    """The values that an index takes."""
    import numpy as np

    n = extent_of(v, sizes)
    assert isinstance(v.kind, Index) and v.kind.domain is not None, "an index"
    return np.arange(n) + v.kind.domain.first(n)


class Evaluation:
    """One evaluation: values of lets, and of the numbers that a δ fixes. Indices in `outer` have a drawn value.

    One that is `above` another has values for fewer variables: what depends on no more of them is computed there, once.
    """

    def __init__(self, sample: Draws, outer: Collection[Var], above: Evaluation | None = None) -> None:
        self.sample = sample
        self.outer = outer
        self.numbers = sample.numbers
        self.above = above
        self.own: set[Var] = set()
        self.local: dict[Var, object] = dict(above.local) if above is not None else {}
        self.memo: dict[Term, Labelled] = {}
        self.recurrences: dict[Recurring, Recurrence] = {}

    def give(self, values: Mapping[Var, object]) -> None:
        """Values for more variables."""
        self.local.update(values)
        self.own.update(values)

    def bind(self, var: Var, value: Term) -> None:
        kept_unknown = isinstance(value, Lam) and not is_tensor(value)
        if not kept_unknown:
            self.give({var: self.full(value)})

    def full(self, t: Term) -> Array:
        """A scalar, or a tensor over all of its indices."""
        import numpy as np

        if isinstance(t, Lam):
            entries = self(t.body).reduced()
            shape = [extent_of(p, self.sample.sizes) for p in t.params]
            return np.broadcast_to(entries.over([p.uid for p in t.params]), shape)
        if isinstance(t.type, Map):
            known = self._known(t)
            if callable(known):
                raise UnsupportedError("a map of functions has no values on arrays")
            return np.asarray(known)
        return self(t).reduced().over(())

    def _is_open(self, v: Var) -> bool:
        return isinstance(v.kind, Index) and v not in self.local and v not in self.outer

    def _given(self, array: Array) -> Labelled:
        return Labelled(array, (), HALF * self.numbers.unit)

    def _known(self, t: Term) -> object:
        """The value of a variable, an unknown derivative, or what an unknown map returns."""
        match t:
            case Var():
                return self.local[t] if t in self.local else self.sample.value(t)
            case Diff() if t.is_derivative:
                if not _is_of_a_name(t):
                    raise UnsupportedError("a derivative of a map that another map returns has no random value")
                return self.sample.value(t)
            case Diff():
                self.sample.refuse_exact()
                return made_of(t, self._known, self._with, self.sample.sizes)
            case Loop():
                return self._recurrence(t).kept(t, self.sample.sizes)
            case App(f, args):
                function = self._known(f)
                assert callable(function), "an unknown map"
                return function(
                    *(tuple(map(self.full, a.items)) if isinstance(a, Tuple) else self.full(a) for a in args)
                )
            case Proj(item, of):
                values = self._known(of)
                assert isinstance(values, tuple), "a tuple"
                return values[item]
        raise UnsupportedError(f"a {type(t).__name__} cannot be checked on numbers")

    def _with(self, local: Mapping[Var, object], t: Term) -> Array:
        """The value of `t`, with values for more variables."""
        return self._below(local).full(t)

    def _below(self, local: Mapping[Var, object]) -> Evaluation:
        inner = Evaluation(self.sample, self.outer, self)
        inner.give(local)
        return inner

    def _recurrence(self, t: Loop) -> Recurrence:
        """What a loop goes through, computed once for all that keep a state of it."""
        known = self.sample.recurrences if t.free.isdisjoint(self.local) else self.recurrences
        key = t.step, t.start, t.backward
        found = known.get(key)
        if found is None:
            found = known[key] = recurrence_of(t, self.sample.sizes, self._within)
        return found

    def _within(self, local: Mapping[Var, object], t: Term) -> list[Array]:
        """The items of a tuple below definitions, with values for more variables."""
        inner = self._below(local)
        while isinstance(t, Let):
            for var, value in t.bindings:
                inner.bind(var, value)
            t = t.body
        assert isinstance(t, Tuple), "the states of a loop are a tuple"
        return [inner.full(item) for item in t.items]

    def __call__(self, t: Term) -> Labelled:
        known = self.memo.get(t)
        if known is None:
            if self.above is not None and t.free.isdisjoint(self.own):
                known = self.above(t)
            else:
                self.sample.ask()
                known = self.sample.rounded(t, self._step(t))
            self.memo[t] = known
        return known

    def _step(self, t: Term) -> Labelled:
        import numpy as np

        match t:
            case App(f, args):
                return self._entry(f, args)
            case Var() if self._is_open(t):
                values = range_of(t, self.sample.sizes)
                return Labelled(values.astype(float), (t.uid,), self.numbers.unit * max(1, len(values)))
            case Mul(factors):
                return multiplied([self(u) for u in factors])
            case Add(terms):
                return added([self(u) for u in terms])
            case Const():
                return self.numbers.number(t)
            case Pow(base, Const() as n) if is_whole(n):
                return self.numbers.integer_power(self(base), int(n.real))
            case Pow(base, exponent):
                return self.numbers.power(self(base), self(exponent))
            case Conj(u):
                inner = self(u)
                return Labelled(np.conj(inner.array), inner.axes, inner.reach)
            case Call(_, ()):
                return self.numbers.pi()
            case Call("abs", (u,)) if is_counted(u):
                inner = self(u)
                return Labelled(np.abs(inner.array), inner.axes, inner.reach)
            case Call(name, args):
                equal = self.numbers.written_out(t)
                return self(equal) if equal is not None else self.numbers.call(name, [*map(self, args)])
            case Sum(indices, body):
                over_numbers = any(not isinstance(v.kind, Index) for v in indices)
                return self(self._fixed(t)) if over_numbers else self._sum(indices, body)
            case _:
                return self._restricted(t)

    def _restricted(self, t: Term) -> Labelled:
        import numpy as np

        match t:
            case Delta(left, right, body):
                return multiplied(guarded([self(body)], self._equal(left, right)))
            case Indicator(left, right, body):
                integers = is_counted(left) and is_counted(right)
                return multiplied(guarded([self(body)], self.numbers.at_most(self(left), self(right), integers)))
            case Reduce():
                return self._reduced(t)
            case Proj() | Diff():
                return self._one_by_one(t)
            case _:
                return self._given(np.asarray(self._known(t)))

    def _reduced(self, t: Reduce) -> Labelled:
        """A product, a maximum, a minimum; of `ties` the array over what is bound, too."""
        import numpy as np

        if t.kind == "cross":
            return self._cross(t)
        self.sample.refuse_exact("a product or a maximum has no value in the field")
        if t.kind in OF_MATRICES:
            return self._of_matrices(t)
        parts = [self(t.mark), self(t.body)]
        own = tuple(v.uid for v in t.indices)
        axes = (*(a for a in all_axes(parts) if a not in own), *own)
        shape = [len(range_of(v, self.sample.sizes)) for v in t.indices]
        marks, values = np.broadcast_arrays(*(p.over(axes) for p in parts), np.zeros(shape))[:2]
        flat = (*marks.shape[: marks.ndim - len(own)], -1)
        weights = marks.reshape(flat).real
        marks, values = weights == 1, values.reshape(flat)
        if t.kind in SHARES:
            marks = weights != 0
            top = _largest(marks, values.real) if t.kind == "ties" else _exponentials(weights, values.real)
            share = top / np.where(marks.any(axis=-1, keepdims=True), top.sum(axis=-1, keepdims=True), 1)
            return self._given_over(share.reshape(marks.shape[:-1] + tuple(shape)), axes)
        if t.kind in PLACES:
            first = _largest(marks, values.real if t.kind == "argmax" else -values.real).argmax(axis=-1)
            found = range_of(t.indices[0], self.sample.sizes)[first].astype(float)
        else:
            found = _reduced_to_numbers(t.kind, weights, values)
        return self._given_over(found, axes[: len(axes) - len(own)])

    def _cross(self, t: Reduce) -> Labelled:
        """Σ_jk ε_ijk u_j v_k, over i, with residues too."""
        import numpy as np

        (index,) = t.indices
        first, second = fresh(index.name, index.kind), fresh(index.name, index.kind)
        parts = [self(substitute(entry, {index: v})) for entry, v in ((t.mark, first), (t.body, second))]
        places = np.arange(3)
        i, j, k = np.meshgrid(places, places, places, indexing="ij")
        signs = Labelled((i - j) * (j - k) * (k - i) / 2, (index.uid, first.uid, second.uid), self.numbers.unit)
        found = eliminated([signs, *parts], {first.uid: 3, second.uid: 3}, self.numbers.unit).reduced()
        axes = (*(a for a in found.axes if a != index.uid), index.uid)
        return Labelled(found.over(axes), axes, found.reach)

    def _of_matrices(self, t: Reduce) -> Labelled:
        """A function of matrices, with the axes of its value last."""
        import numpy as np

        maps = [*matrices_of(t), *numbers_of(t)]
        parts = [self(f.body) for f in maps]
        bound = {v.uid for f in maps for v in f.params}
        outer = tuple(a for a in all_axes(parts) if a not in bound)
        arrays = []
        for f, part in zip(maps, parts, strict=True):
            shape = [len(range_of(v, self.sample.sizes)) for v in f.params]
            entries = part.over((*outer, *(v.uid for v in f.params)))
            arrays.append(np.broadcast_to(entries, (*entries.shape[: len(outer)], *shape)))
        around = np.broadcast_shapes(*(a.shape[: len(outer)] for a in arrays))
        arrays = [np.broadcast_to(a, (*around, *a.shape[len(outer) :])) for a in arrays]
        count = len(matrices_of(t))
        found = matrix_values(t.kind, *arrays[:count], numbers=arrays[count:])
        own = tuple(v.uid for v in t.indices)
        slots = own if t.kind in MATRICES else own[1:] if t.kind in ARRAYS else ()
        return self._given_over(found, (*outer, *slots))

    def _given_over(self, array: Array, axes: tuple[int, ...]) -> Labelled:
        return Labelled(array, axes, HALF * self.numbers.unit)

    def _equal(self, left: Term, right: Term) -> Labelled:
        if isinstance(left.type, Map):
            raise UnsupportedError("a δ of whole tensors or functions cannot be checked on numbers")
        a, b = self(left), self(right)
        axes = all_axes((a, b))
        if prod(max(a.over(axes).shape[n], b.over(axes).shape[n]) for n in range(len(axes))) > LARGEST:
            raise TooLargeError("a check on numbers would compare too many pairs of indices")
        difference = self.numbers.settled(a.over(axes) - b.over(axes))
        periods = [d for d in domains_compared(left, right) if d.periodic]
        array = difference % periods[0].extent(self.sample.sizes) if periods else difference
        return Labelled((array == 0).astype(float), axes, self.numbers.unit)

    def _entry(self, f: Term, args: tuple[Term, ...]) -> Labelled:

        # the entries of a list of offsets, or of an array of integers, are integers
        if not (isinstance(f.type, Map) and (f.type.is_tensor or isinstance(f.type.result, Index))):
            return self._unknown_entry(f, args)
        if isinstance(f, Reduce) and not args:
            return self(f)
        if isinstance(f, Reduce):
            return self._entry_of_ties(f, args)
        if isinstance(f, App | Proj) and any(self._is_open(v) for v in f.free):
            return self._one_by_one(App(f, args))
        tensor = self.full(f).astype(float) if f.type.is_integers else self.full(f)
        kinds = f.type.params
        if self._are_slots(args, kinds):
            return Labelled(tensor, tuple(v.uid for v in args if isinstance(v, Var)), HALF * self.numbers.unit)
        places = [self(a) for a in args]
        axes = all_axes(places)
        indices = self._slots(args, places, axes, kinds)
        return Labelled(tensor[indices], axes, HALF * self.numbers.unit)

    def _slots(
        self, args: Sequence[Term], places: Sequence[Labelled], axes: Sequence[int], kinds: Sequence[Type]
    ) -> tuple[Array, ...]:
        """Where the arguments of an entry lie along its slots, over `axes`."""
        return tuple(
            _slot(p.over(axes).astype(int), kind, self.sample.sizes, constant=not a.free)
            for a, p, kind in zip(args, places, kinds, strict=True)
        )

    def _entry_of_ties(self, f: Reduce, args: tuple[Term, ...]) -> Labelled:
        """The share of an entry in a maximum, an entry of an inverse: an array over what is bound, at other indices."""
        import numpy as np

        array = self(f)
        indices = f.indices[1:] if f.kind in VECTORS else f.indices
        own = [v.uid for v in indices]
        places = [self(a) for a in args]
        outer = [a for a in array.axes if a not in own]
        axes = all_axes([Labelled(array.array, tuple(outer)), *places])
        kinds = [v.kind for v in indices]
        at = self._slots(args, places, axes, kinds)
        around = [
            np.arange(n).reshape([-1 if b == a else 1 for b in axes])
            for a, n in zip(outer, array.array.shape, strict=False)
        ]
        return self._given_over(array.over((*outer, *own))[(*around, *at)], axes)

    def _are_slots(self, args: tuple[Term, ...], kinds: tuple[Type, ...]) -> bool:
        """Whether the arguments are different open indices, each over the whole range of its slot."""
        return len(set(args)) == len(args) and all(
            isinstance(a, Var) and a.kind == kind and self._is_open(a) for a, kind in zip(args, kinds, strict=True)
        )

    def _unknown_entry(self, f: Term, args: tuple[Term, ...]) -> Labelled:
        """An unknown map of numbers acts entry by entry, one of tensors is called once for every open index."""
        import numpy as np

        alone = isinstance(f, Var) or (isinstance(f, Diff) and f.is_derivative)
        if alone and all(isinstance(a.type, Number | Index) for a in args):
            places = [self(a).reduced() for a in args]
            axes = all_axes(places)
            function = self._known(f)
            assert callable(function), "an unknown map"
            entries = np.broadcast_arrays(*(p.over(axes) for p in places))
            values = np.asarray([function(*map(np.asarray, x)) for x in zip(*map(np.ravel, entries), strict=True)])
            return Labelled(values.reshape(entries[0].shape), axes, HALF * self.numbers.unit)
        return self._one_by_one(App(f, args))

    def _one_by_one(self, t: Term) -> Labelled:
        """A value that is not computed on whole arrays, at every value of its open indices."""
        import numpy as np

        open_ = tuple(sorted((v for v in t.free if self._is_open(v)), key=lambda v: v.uid))
        ranges = [range_of(v, self.sample.sizes) for v in open_]
        result = np.zeros([len(r) for r in ranges], complex)
        for place in np.ndindex(result.shape):
            inner = self._below({v: int(r[n]) for v, r, n in zip(open_, ranges, place, strict=True)})
            result[place] = inner.entry_of(t)
        return Labelled(result, tuple(v.uid for v in open_), HALF * self.numbers.unit)

    def entry_of(self, t: Term) -> complex:
        """A number that an unknown map returns, perhaps as an entry of a tensor."""
        import numpy as np

        match t:
            case App(f, args) if isinstance(f.type, Map) and f.type.is_tensor:
                places = self._slots(args, [self(a) for a in args], (), f.type.params)
                return complex(np.asarray(self._known(f))[places])
            case _:
                return complex(np.asarray(self._known(t)))

    def _sum(self, indices: tuple[Var, ...], body: Term) -> Labelled:
        sizes = {v.uid: extent_of(v, self.sample.sizes) for v in indices}
        return eliminated(self._factors(body), sizes, self.numbers.unit)

    def _factors(self, t: Term) -> list[Labelled]:
        """What `t` is a product of, seen through conj and δ, so that sums can be eliminated one by one."""
        import numpy as np

        match t:
            case Mul(factors):
                return [f for u in factors for f in self._factors(u)]
            case Conj(u):
                return [Labelled(np.conj(f.array), f.axes, f.reach) for f in self._factors(u)]
            case Delta(left, right, body):
                return guarded(self._factors(body), self._equal(left, right))
            case Sum((v, *_), _) if not isinstance(v.kind, Index):
                return self._factors(self._fixed(t))
            case _:
                return [self(t)]

    def _fixed(self, t: Sum) -> Term:
        """A sum without one number that a δ fixes; the same for all draws."""
        known = self.sample.without_numbers.get(t)
        if known is None:
            v = next(v for v in t.indices if not isinstance(v.kind, Index))
            parts = [total(t.indices, u) for u in _apart(v, t.body)]
            known = add(*map(_without_number, parts)) if len(parts) > 1 else _without_number(t)
            self.sample.without_numbers[t] = known
        return known


def _without_number(t: Term) -> Term:
    """One term of an integral without its first number."""
    if not isinstance(t, Sum) or all(isinstance(v.kind, Index) for v in t.indices):
        return t
    v = next(v for v in t.indices if not isinstance(v.kind, Index))
    others = [w for w in t.indices if w is not v]
    interval = interval_of_sum(v, t.body)
    return _fixed_by_delta(v, others, t.body) if interval is None else _by_rule(v, interval, others, t.body)


def _apart(v: Var, t: Term) -> list[Term]:
    """The terms that `t` is the sum of, each of which has a δ of v as a factor or none."""
    if not any(v in u.left.free | u.right.free for u in subterms(t, Delta)):
        return [t]
    match t:
        case Add(terms):
            return [found for u in terms for found in _apart(v, u)]
        case Mul(factors):
            return [mul(*choice) for choice in product(*(_apart(v, u) for u in factors))]
        case Delta(left, right, body):
            return [delta(left, right, u) for u in _apart(v, body)]
        case Indicator(left, right, body):
            return [indicator(left, right, u) for u in _apart(v, body)]
        case Sum(indices, body):
            return [total(indices, u) for u in _apart(v, body)]
        case Conj(of):
            return [conj(u) for u in _apart(v, of)]
        case _:
            return [t]


def _reduced_to_numbers(kind: str, weights: Array, values: Array) -> Array:
    """A product, a maximum, a norm along the last axis, of what has the weight 1."""
    import numpy as np

    marks = weights == 1
    match kind:
        case "prod":
            return np.asarray(np.where(marks, values, 1).prod(axis=-1))
        case "minimum":
            return np.asarray(np.where(marks, values.real, np.inf).min(axis=-1, initial=np.inf))
        case "maximum":
            return np.asarray(np.where(marks, values.real, -np.inf).max(axis=-1, initial=-np.inf))
        case "norm":
            return np.asarray(np.hypot.reduce(np.where(marks, np.abs(values), 0), axis=-1))
        case _:
            shifted = np.where(weights != 0, values.real, -np.inf)
            most = shifted.max(axis=-1, initial=-np.inf, keepdims=True)
            most = np.where(np.isfinite(most), most, 0)
            return np.asarray(np.log((weights * np.exp(shifted - most)).sum(axis=-1)) + most[..., 0])


def _largest(marks: Array, numbers: Array) -> Array:
    """Which of the numbers that take part are largest along the last axis."""
    import numpy as np

    masked = np.where(marks, numbers, -np.inf)
    found: Array = marks & (masked == masked.max(axis=-1, initial=-np.inf, keepdims=True))
    return found


def _exponentials(weights: Array, numbers: Array) -> Array:
    """w exp(x), the largest of which is w along the last axis."""
    import numpy as np

    masked = np.where(weights != 0, numbers, -np.inf)
    most = masked.max(axis=-1, initial=-np.inf, keepdims=True)
    return np.asarray(weights * np.exp(masked - np.where(np.isfinite(most), most, 0)))


def _fixed_by_delta(v: Var, others: Sequence[Var], body: Term) -> Term:
    """Σ over all numbers v: a δ(a, v, e) in the body says what v is (the polymorphic δ of Eq. 27)."""
    for inside in (False, True):
        of = _with_inner_fixed(body) if inside else body
        for d in subterms(of):
            if isinstance(d, Delta) and v in (d.left, d.right):
                a = d.left if d.right == v else d.right
                # what is bound below is not known here
                if v not in a.free and a.free <= of.free:
                    return total(others, substitute(_without(of, d), {v: a}))
    raise UnsupportedError("a sum over all numbers that no δ fixes cannot be checked on numbers")


def _with_inner_fixed(t: Term) -> Term:
    """`t` without those sums over all numbers in it that a δ fixes."""

    def visit(u: Term) -> Term:
        match u:
            case Sum((v, *others), body) if not isinstance(v.kind, Index):
                try:
                    return _fixed_by_delta(v, others, body)
                except UnsupportedError:
                    return u
            case _:
                return u

    return Traverser(visit)(t)


_NODES = 3
"""Of a random rule."""


def _by_rule(v: Var, interval: Interval, others: Sequence[Var], body: Term) -> Term:
    """An integral as the sum of a random rule: what is true of all rules is true of the integral."""
    given = _random_rule(interval)
    assert isinstance(given.kind, Map), "a rule is an array"
    k = fresh(v.name, given.kind.params[1])
    at = App(given, (ZERO, k))
    weight: Term = App(given, (ONE, k))
    lower, upper = ends_of(v.kind)
    if lower is not None and upper is not None:
        # all weights together are the length: the last one is what is missing
        weights = total([n := fresh("n", k.kind)], App(given, (ONE, n)))
        weight = add(weight, delta(k, number(_NODES - 1), add(upper, neg(lower), neg(weights))))
    return total([k, *others], mul(weight, substitute(body, {v: at})))


@lru_cache(maxsize=256)
def _random_rule(interval: Interval) -> Var:
    """A parameter for the nodes and the weights of a rule; a sample draws them."""
    rows, nodes = (
        Index(Domain(f"{what} of {interval.name}", declared=True, lower=0, upper=last))
        for what, last in (("rows", 1), ("nodes", _NODES - 1))
    )
    return fresh(interval.name, Map((rows, nodes), REAL))


def _is_of_a_name(t: Term) -> bool:
    """Whether a derivative is one of an unknown map, and not of what that map returns for some arguments."""
    while isinstance(t, Diff):
        t = t.of
    return isinstance(t, Var)


def _slot(at: Array, kind: Type, sizes: Mapping[Domain, int], constant: bool) -> Array:
    """Where an index lies along the axis of a slot; one that is no `constant` varies, with the steps of a loop, say."""
    assert isinstance(kind, Index) and kind.domain is not None, "a tensor's slot has a domain"
    import numpy as np

    n = kind.domain.extent(sizes)
    place = at - kind.domain.first(n)
    if kind.domain.periodic:
        return place % n
    # a residue of a large constant may be negative
    if n and not (constant and place.ndim == 0):
        # a condition keeps it in range wherever it counts
        kept: Array = np.clip(place, 0, n - 1)
        return kept
    if n and ((place < 0) | (place >= n)).any():
        raise TooLargeError("a constant index lies beyond the small arrays of a check")
    return place


def _without(body: Term, condition: Delta) -> Term:
    return Traverser(lambda t: condition.body if t == condition else t)(body)
