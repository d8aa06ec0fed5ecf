"""The value of a term on arrays, one axis for every open index; sums are eliminated one index after the other.

Quick enough to check every simplification. `language/evaluate.py`, which is slow and obviously right, shares nothing
with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Protocol

from combdiff.errors import UnsupportedError
from combdiff.language.scalars import SCALAR_FUNCTIONS
from combdiff.language.terms import (
    Add,
    App,
    Call,
    Conj,
    Const,
    Delta,
    Diff,
    Indicator,
    Lam,
    Mul,
    Pow,
    Proj,
    Sum,
    Term,
    Traverser,
    Tuple,
    Var,
    substitute,
    subterms,
    total,
)
from combdiff.language.types import Domain, Index, Map, Number, Type

if TYPE_CHECKING:
    from typing import Any

    import numpy.typing as npt

    Array = npt.NDArray[Any]
    Operation = Callable[[list[Array]], Array]


LARGEST = 2**23
"""Entries of the largest intermediate array of a check."""


# with fewer axes, the small arrays of a check are never too large together
_FEW = 4


class TooLargeError(UnsupportedError):
    """A term whose value needs larger arrays than a check may use."""


class Draws(Protocol):
    """Where the values of free variables come from."""

    sizes: dict[Domain, int]

    def value(self, v: Term) -> object:
        """The value of a free variable or of an unknown derivative."""
        ...


@dataclass(frozen=True, slots=True)
class Labelled:
    """An array whose axes are index variables."""

    array: Array
    axes: tuple[Var, ...] = ()

    def over(self, axes: Sequence[Var]) -> Array:
        """The array with its axes in the order of `axes`, of length 1 where it does not depend on one."""
        import numpy as np

        order = [self.axes.index(a) for a in axes if a in self.axes]
        moved = np.transpose(self.array, order)
        return moved.reshape([moved.shape[order.index(self.axes.index(a))] if a in self.axes else 1 for a in axes])


def range_of(v: Var, sizes: Mapping[Domain, int]) -> Array:
    """The values that an index takes."""
    import numpy as np

    if not isinstance(v.kind, Index) or v.kind.domain is None:
        raise UnsupportedError("a sum over all numbers has no value on arrays")
    n = sizes[v.kind.domain]
    return np.arange(n) - (n // 2 if v.kind.domain.symmetric else 0)


def is_tensor(t: Term) -> bool:
    """Whether `t` is a λ-term of indices only."""
    # its entries may be integers: (k::BZ) -> 1 - k
    return (
        isinstance(t, Lam)
        and all(isinstance(p.kind, Index) for p in t.params)
        and isinstance(t.body.type, Number | Index)
    )


class Evaluation:
    """One evaluation: values of lets, and of the numbers that a δ fixes."""

    def __init__(self, gate: Draws, bound: Collection[Var]) -> None:
        self.gate = gate
        self.bound = bound
        self.local: dict[Var, object] = {}
        self.memo: dict[Term, Labelled] = {}

    def bind(self, var: Var, value: Term) -> None:
        kept_unknown = isinstance(value, Lam) and not is_tensor(value)
        if not kept_unknown:
            self.local[var] = self.full(value)

    def full(self, t: Term) -> Array:
        """A scalar, or a tensor over all of its indices."""
        if isinstance(t, Lam):
            entries = self(t.body)
            import numpy as np

            shape = [len(range_of(p, self.gate.sizes)) for p in t.params]
            return np.broadcast_to(entries.over(t.params), shape)
        if isinstance(t.type, Map):
            return self._tensor(t)
        return self(t).over(())

    def _tensor(self, t: Term) -> Array:
        import numpy as np

        if isinstance(t, Lam):
            return self.full(t)
        value = self._known(t)
        return np.asarray(value)

    def _known(self, t: Term) -> object:
        """The value of a variable, an unknown derivative, or what an unknown map returns."""
        match t:
            case Var():
                return self.local[t] if t in self.local else self.gate.value(t)
            case Diff():
                return self.gate.value(t)
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

    def __call__(self, t: Term) -> Labelled:
        known = self.memo.get(t)
        if known is None:
            known = self.memo[t] = self._step(t)
        return known

    def _step(self, t: Term) -> Labelled:
        import numpy as np

        match t:
            case Const(real, imag):
                return Labelled(np.asarray(complex(real, imag) if imag else float(real)))
            case Var(_, Index()) if t in self.bound:
                return Labelled(range_of(t, self.gate.sizes), (t,))
            case Add(terms):
                return _combine([self(u) for u in terms], _sum_up)
            case Mul(factors):
                return _combine([self(u) for u in factors], _multiply_up)
            case Pow(base, exponent):
                return _combine([self(base), self(exponent)], _raise_up)
            case Conj(u):
                inner = self(u)
                return Labelled(np.conj(inner.array), inner.axes)
            case Call(name, args):
                return self._call(name, args)
            case Sum(indices, body):
                return self._sum(indices, body)
            case App(f, args):
                return self._entry(f, args)
            case _:
                return self._restricted(t)

    def _restricted(self, t: Term) -> Labelled:
        import numpy as np

        match t:
            case Delta(left, right, body):
                return _combine([self(body), self._equal(left, right)], _multiply_up)
            case Indicator(left, right, body):
                mask = _combine([self(left), self(right)], lambda a: a[0] <= a[1])
                return _combine([self(body), mask], _multiply_up)
            case Proj():
                return self._one_by_one(t)
            case _:
                return Labelled(np.asarray(self._known(t)))

    def _call(self, name: str, args: tuple[Term, ...]) -> Labelled:
        import numpy as np

        if not args:
            return Labelled(np.asarray(np.pi))
        inner = self(args[0])
        if name == "abs2":
            return Labelled(np.abs(inner.array) ** 2, inner.axes)
        return Labelled(getattr(np, SCALAR_FUNCTIONS[name].numpy)(inner.array), inner.axes)

    def _equal(self, left: Term, right: Term) -> Labelled:
        difference = _combine([self(left), self(right)], lambda a: a[0] - a[1])
        periods = [d for v in left.free | right.free if (d := _periodic(v)) is not None]
        array = difference.array % self.gate.sizes[periods[0]] if periods else difference.array
        return Labelled(array == 0, difference.axes)

    def _entry(self, f: Term, args: tuple[Term, ...]) -> Labelled:
        import numpy as np

        if not (isinstance(f.type, Map) and f.type.is_tensor):
            return self._unknown_entry(f, args)
        if isinstance(f, App | Proj) and any(v in self.bound for v in f.free):
            return self._one_by_one(App(f, args))
        tensor = self._tensor(f)
        places = [self(a) for a in args]
        axes = _axes(places)
        indices = []
        for place, kind in zip(places, f.type.params, strict=True):
            indices.append(_slot(place.over(axes).astype(int), kind, self.gate.sizes))
        return Labelled(tensor[tuple(np.broadcast_arrays(*indices))] if axes else tensor[tuple(indices)], axes)

    def _unknown_entry(self, f: Term, args: tuple[Term, ...]) -> Labelled:
        """An unknown map of numbers acts entry by entry, one of tensors is called once for every open index."""
        import numpy as np

        if isinstance(f, Var | Diff) and all(isinstance(a.type, Number | Index) for a in args):
            places = [self(a) for a in args]
            function = self._known(f)
            assert callable(function), "an unknown map"
            return _combine(places, lambda arrays: np.vectorize(lambda *x: function(*map(np.asarray, x)))(*arrays))
        return self._one_by_one(App(f, args))

    def _one_by_one(self, t: Term) -> Labelled:
        """A value that is not computed on whole arrays, at every value of its open indices."""
        import numpy as np

        open_ = tuple(sorted((v for v in t.free if v in self.bound and isinstance(v.kind, Index)), key=lambda v: v.uid))
        ranges = [range_of(v, self.gate.sizes) for v in open_]
        result = np.zeros([len(r) for r in ranges], complex)
        for place in np.ndindex(result.shape):
            inner = Evaluation(self.gate, [v for v in self.bound if v not in open_])
            inner.local = {**self.local, **{v: int(r[n]) for v, r, n in zip(open_, ranges, place, strict=True)}}
            result[place] = inner.entry_of(t)
        return Labelled(result, open_)

    def entry_of(self, t: Term) -> complex:
        """A number that an unknown map returns, perhaps as an entry of a tensor."""
        import numpy as np

        match t:
            case App(f, args) if isinstance(f.type, Map) and f.type.is_tensor:
                slots = zip(args, f.type.params, strict=True)
                places = tuple(_slot(np.asarray(self(a).array, int), p, self.gate.sizes) for a, p in slots)
                return complex(np.asarray(self._known(f))[places])
            case _:
                return complex(np.asarray(self._known(t)))

    def _sum(self, indices: tuple[Var, ...], body: Term) -> Labelled:
        fixed = [v for v in indices if not isinstance(v.kind, Index)]
        if fixed:
            return self(_fixed_by_delta(fixed[0], tuple(v for v in indices if v is not fixed[0]), body))
        sizes = {v: len(range_of(v, self.gate.sizes)) for v in indices}
        return eliminate_indices(self._factors(body), indices, sizes)

    def _factors(self, t: Term) -> list[Labelled]:
        """What `t` is a product of, seen through conj and δ, so that sums can be eliminated one by one."""
        import numpy as np

        match t:
            case Mul(factors):
                return [f for u in factors for f in self._factors(u)]
            case Conj(u):
                return [Labelled(np.conj(f.array), f.axes) for f in self._factors(u)]
            case Delta(left, right, body):
                return [self._equal(left, right), *self._factors(body)]
            case Sum((v, *others), body) if not isinstance(v.kind, Index):
                return self._factors(_fixed_by_delta(v, others, body))
            case _:
                return [self(t)]


def _fixed_by_delta(v: Var, others: Sequence[Var], body: Term) -> Term:
    """Σ over all numbers v: a δ(a, v, e) in the body says what v is (the polymorphic δ of Eq. 27)."""
    for d in subterms(body):
        if isinstance(d, Delta) and v in (d.left, d.right):
            a = d.left if d.right == v else d.right
            if v not in a.free:
                return total(others, substitute(_without(body, d), {v: a}))
    raise UnsupportedError("a sum over all numbers that no δ fixes cannot be checked on numbers")


def _slot(at: Array, kind: Type, sizes: Mapping[Domain, int]) -> Array:
    """Where an index lies along the axis of a slot."""
    assert isinstance(kind, Index) and kind.domain is not None, "a tensor's slot has a domain"
    n = sizes[kind.domain]
    place = at + (n // 2 if kind.domain.symmetric else 0)
    if kind.domain.periodic:
        return place % n
    if n and (place >= n).any():
        raise TooLargeError("a constant index lies beyond the small arrays of a check")
    return place


def _without(body: Term, condition: Delta) -> Term:
    return Traverser(lambda t: condition.body if t == condition else t)(body)


def _periodic(v: Var) -> Domain | None:
    domain = v.kind.domain if isinstance(v.kind, Index) else None
    return domain if domain is not None and domain.periodic else None


def _axes(parts: Sequence[Labelled]) -> tuple[Var, ...]:
    return tuple(dict.fromkeys(a for p in parts for a in p.axes))


def _combine(parts: Sequence[Labelled], operation: Operation) -> Labelled:
    extents = {a: n for p in parts for a, n in zip(p.axes, p.array.shape, strict=True)}
    axes = tuple(extents)
    if len(axes) > _FEW and prod(extents.values()) > LARGEST:
        raise TooLargeError(f"a check on numbers would need an array of {prod(extents.values())} entries")
    return Labelled(operation([p.over(axes) for p in parts]), axes)


def _sum_up(arrays: list[Array]) -> Array:
    result = arrays[0]
    for a in arrays[1:]:
        result = result + a
    return result


def _multiply_up(arrays: list[Array]) -> Array:
    result = arrays[0]
    for a in arrays[1:]:
        result = result * a
    return result


def _raise_up(arrays: list[Array]) -> Array:
    base, exponent = arrays
    whole = exponent.dtype.kind == "f" and exponent.ndim == 0 and float(exponent) == round(float(exponent))
    return base**exponent if not whole else base ** int(exponent) if exponent >= 0 else 1 / base ** int(-exponent)


def eliminate_indices(factors: Sequence[Labelled], indices: Sequence[Var], sizes: Mapping[Var, int]) -> Labelled:
    """Σ over `indices` of the product, one index at a time, the one that leaves the smallest array first."""
    work = list(factors)
    left = list(indices)
    while left:
        v = min(left, key=lambda i: _cost(work, i))
        left.remove(v)
        touched = [f for f in work if v in f.axes]
        work = [f for f in work if v not in f.axes]
        if not touched:
            work.append(_scalar(sizes[v]))
            continue
        work.append(_summed(touched, v))
    return _combine(work, _multiply_up)


def _cost(work: Sequence[Labelled], v: Var) -> int:
    extents = {a: n for f in work if v in f.axes for a, n in zip(f.axes, f.array.shape, strict=True)}
    result = 1
    for n in extents.values():
        result *= n
    return result


def _scalar(n: int) -> Labelled:
    import numpy as np

    return Labelled(np.asarray(float(n)))


def _summed(touched: Sequence[Labelled], v: Var) -> Labelled:
    entries = _cost(touched, v)
    if entries > LARGEST:
        raise TooLargeError(f"a check on numbers would need an array of {entries} entries")
    product = _combine(touched, _multiply_up)
    at = product.axes.index(v)
    return Labelled(product.array.sum(axis=at), product.axes[:at] + product.axes[at + 1 :])
