"""Lowers products, maxima and minima over indices, functions of matrices, and the weights of tied extrema.

norm(k -> x(j, k))         one step, which takes care of squares that overflow
prod(j, j != i, x(j))      the product of all entries before i times that of all behind it: no division by zero
maximum(j, j <= i, x(j))   a running maximum
maximum(j, c, x(j))        the maximum of x(j) − [not c] ∞
ties(j, x(j))(k)           [max x ≤ x(k)] over how many there are
logsumexp(j, x(j))         M + log Σ exp(x − M), with M the maximum: nothing overflows
softmax(j, x(j))(k)        exp(x(k) − M) over their sum
det(A), inv(A)(i, j)       one step for all matrices, stacked along what else they depend on
cross(x, y)(c)             one step for all vectors
argmax(j, c, x(j))         where x = max x and c first holds, so that what takes no part is not found among many −∞
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from operator import is_
from typing import Protocol

from combdiff.arrays import ops
from combdiff.arrays.lower.arrays import Arrays, Value, domain_of
from combdiff.arrays.lower.cumulative import Cumulative, cumulative_logarithm
from combdiff.arrays.lower.indexing import Affine, affine, entry, grouped, position, scatter, shifted
from combdiff.arrays.lower.inner.running import Tied, running_extremum
from combdiff.arrays.lower.respelling.groups import GROUPED, Groups
from combdiff.arrays.numbers import is_whole
from combdiff.arrays.plan import Step, ordered
from combdiff.calculus.definitions.floating import Binding
from combdiff.canon.canonical import laws_of_matrix
from combdiff.canon.closed import derived_symmetries
from combdiff.canon.definite import has_factor
from combdiff.terms.conditions.comparing import Relation, body_of_reduction, comparison_of, is_weighted
from combdiff.terms.conditions.guards import Condition, Finite, Guard, both, held, under, unguarded
from combdiff.terms.laws.matrices import Matrix, matrices_of, numbers_of, slopes_of_numbers
from combdiff.terms.nodes import ALONG, ARRAYS, MATRICES, OF_MATRICES, SYMMETRISING, VECTORS
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    ZERO,
    App,
    Const,
    Lam,
    Reduce,
    Term,
    Var,
    add,
    fresh,
    inlined,
    number,
    reduction,
)
from combdiff.terms.types import HERMITIAN, SYMMETRIC, Index, Map, Symmetry, is_complex

_UPWARDS = frozenset({"maximum", "argmax", "ties", "logsumexp", "softmax"})
"""The reductions in which −∞ takes no part; in others ∞ does not."""


class Lowering(Protocol):
    """What makes arrays of terms."""

    arrays: Arrays
    defined: Sequence[Binding]
    finite: Finite
    guards: Guard

    def scalar(self, t: Term, wanted: Sequence[Var] = ()) -> Value:
        """A number that depends on indices."""
        ...

    def where(
        self, c: Condition, body: Value, otherwise: Const, wanted: Sequence[Var] = (), other: Value | None = None
    ) -> Value:
        """`body` where a condition holds, else a number, or `other`."""
        ...

    def cumulated_logarithm(self, c: Cumulative) -> Value:
        """The logarithm of a cumulative sum of exponentials."""
        ...

    def cumulated_extremum(self, c: Cumulative, kind: str, value: Value) -> Value:
        """The largest, or the least, of numbers up to an index."""
        ...

    def cumulated_ties(self, c: Tied, numbers: Value, wanted: Sequence[Var]) -> Value:
        """A sum over shares in maxima up to an index."""
        ...

    def under(self, guards: Guard) -> AbstractContextManager[None]:
        """What is lowered meanwhile stands under these guards."""
        ...


def reduced(low: Lowering, t: Reduce, wanted: Sequence[Var]) -> Value:
    """`prod`, `maximum`, `logsumexp` … as an array over the indices that it depends on."""
    if t.kind in OF_MATRICES:
        return of_matrices(low, t)
    if t.kind == "norm":
        return _norm(low, t)
    if t.kind in GROUPED and (groups := Groups.of(t)) is not None and groups.is_for_all:
        if t.kind != "logsumexp":
            return _of_groups(low, groups)
    else:
        groups = None
    if (up := running_extremum(t)) is not None and (found := _up_to(low, t, up)) is not None:
        return found
    if t.kind == "logsumexp":
        running = cumulative_logarithm(t)
        if running is not None:
            return low.cumulated_logarithm(running)
        largest, _, added = _exponentials(low, t) if groups is None else _by_groups(low, groups, groups.bare)
        logarithm = low.arrays.elementwise(ops.Call("log"), [added], complex=False)
        return low.arrays.total([(ONE, largest), (ONE, logarithm)])
    if t.kind == "prod":
        left_out = _left_out(t)
        if left_out is not None:
            return _of_all_others(low, *left_out)
        value = _factors(low, t.body, t.mark, wanted)
    else:
        value = _barred(low, t)
    value = _over(low, value, t.indices)
    value = value if t.kind == "prod" else _floating(low, value)
    axes = tuple(value.labels.index(i) for i in t.indices)
    rest = tuple(v for v in value.labels if v not in t.indices)
    step = low.arrays.builder.step(ops.Reduced(t.kind, axes), (value.step,), map(domain_of, rest), value.step.complex)
    return Value(step, rest)


def _up_to(low: Lowering, t: Reduce, up: Cumulative) -> Value | None:
    """An extremum up to an index, of the numbers that take part."""
    assert up.exponent is not None, "the numbers"
    alone = reduction(t.kind, t.indices, up.summand, up.exponent)
    if not isinstance(alone, Reduce) or alone.indices != t.indices:
        return None
    with low.under(both(low.guards, (up.condition,))):
        numbers = _floating(low, _over(low, _barred(low, alone), t.indices))
    return low.cumulated_extremum(up, t.kind, numbers)


def over_ties(low: Lowering, c: Tied, wanted: Sequence[Var]) -> Value:
    """A sum over shares in maxima up to an index."""
    assert c.up.exponent is not None, "the numbers"
    with low.under(both(low.guards, (c.up.condition,))):
        numbers = _floating(low, _over(low, low.scalar(c.up.exponent), (c.up.along,)))
    return low.cumulated_ties(c, numbers, wanted)


def _of_groups(low: Lowering, t: Groups) -> Value:
    """The largest, or the least, of the entries in each group: of none of them −∞, or ∞."""
    value = _floating(low, _over(low, _barred(low, t.alone), t.indices))
    return grouped(low.arrays, t.kind, value, _places(t, t.bare), t.indices)


def _places(t: Groups, groups: Sequence[Var]) -> list[tuple[Var, Affine]]:
    """For each index of a group, what it is at the entries."""
    return [(g, affine(e)) for e, g in zip(t.entries, groups, strict=True)]


def _norm(low: Lowering, t: Reduce) -> Value:
    """Steps of their own: squares overflow, or vanish, where their root does not."""
    value = low.scalar(t.body)
    labels = (*(v for v in value.labels if v not in t.indices), *t.indices)
    step = _as_array(low, low.arrays.arranged(value, labels))
    for _ in t.indices:
        labels = labels[:-1]
        step = low.arrays.builder.step(ops.Norm(), (step,), map(domain_of, labels), complex=False)
    return Value(step, labels)


def _factors(low: Lowering, body: Term, mark: Term, wanted: Sequence[Var] = ()) -> Value:
    """The numbers that take part, and 1 for the others; x + 1 − 1 would cost a small x its digits."""
    held, rest = unguarded(mark)
    if rest != ONE:
        sides = [low.arrays.number(ZERO), low.scalar(mark), low.scalar(body)]
        return low.arrays.elementwise(ops.Where("<", None, ONE), sides, wanted, is_complex(body.type))
    guard, core = unguarded(body)
    value = low.scalar(core if Finite()(core) and all(c in held for c in guard) else body, wanted)
    for condition in reversed(held):
        value = low.where(condition, value, ONE, wanted)
    return value


def _barred(low: Lowering, t: Reduce) -> Value:
    """The numbers, and what can be neither largest nor least where they do not take part."""
    if t.mark == ONE:
        return low.scalar(t.body)
    guard, weight = held(t.mark)
    if weight == ONE:
        return _chosen(low, t, guard)
    value = low.scalar(t.body)
    sign = MINUS_ONE if t.kind in _UPWARDS else ONE
    infinite, zero = low.arrays.named("inf"), low.arrays.number(ZERO)
    if is_weighted(t):
        # no condition guards what has the weight 0
        bar = low.arrays.product(MINUS_ONE, [infinite])
        kind = ops.Where("==", None, None)
        return low.arrays.elementwise(kind, [low.scalar(t.mark), zero, bar, value], complex=False)
    without = ops.Where("<=", None, ZERO)
    bar = low.arrays.elementwise(without, [low.scalar(t.mark), zero, infinite], complex=False)
    return low.arrays.total([(ONE, value), (sign, bar)])


def _chosen(low: Lowering, t: Reduce, guard: Guard) -> Value:
    """The numbers where all conditions hold, and what can be neither largest nor least where one does not."""
    bare = body_of_reduction(t)
    value = low.scalar(bare if low.finite(bare) else t.body)
    bar = low.arrays.product(MINUS_ONE if t.kind in _UPWARDS else ONE, [low.arrays.named("inf")])
    for condition in reversed(guard):
        value = low.where(condition, value, ZERO, other=bar)
    return value


def _floating(low: Lowering, value: Value) -> Value:
    """What is compared with ±∞, which no integer is."""
    if not is_whole(value.step):
        return value
    return Value(low.arrays.builder.step(ops.AsFloat(), (value.step,), value.step.domains), value.labels)


def _over(low: Lowering, value: Value, indices: Sequence[Var]) -> Value:
    """The value with an axis for each of the indices."""
    missing = tuple(i for i in indices if i not in value.labels)
    if not missing:
        return value
    labels = (*value.labels, *missing)
    return Value(low.arrays.arranged(value, labels), labels)


def of_matrices(low: Lowering, t: Reduce) -> Value:
    """A function of matrices, with the axes of its matrix last if its value is one."""
    maps = [*matrices_of(t), *numbers_of(t)]
    if t.kind in SYMMETRISING:
        # libraries read one triangle
        maps[0] = Lam(t.indices, Matrix.of(maps[0]).hermitian.entry(*t.indices))
    parts = [low.scalar(m.body) for m in maps]
    outer = tuple(dict.fromkeys(v for part in parts for v in part.labels if v not in t.indices))
    own = t.indices if t.kind in MATRICES else t.indices[1:] if t.kind in VECTORS else ()
    arrays = tuple(
        _as_array(low, low.arrays.arranged(part, (*outer, *m.params))) for m, part in zip(maps, parts, strict=True)
    )
    over_complex = is_complex(t.type)
    law = HERMITIAN if is_complex(t.body.type) else SYMMETRIC
    hermitian = t.kind in ("sqrtm", "sqrtm_along") and law in laws_of_matrix(t, _laws_of_definitions(low, t), ())
    factors = ops.factors_for(t.kind, hermitian)
    if factors is not None and not outer:
        matrix, *along = arrays
        arrays = (low.arrays.builder.step(factors, (matrix,), matrix.domains), *along)
    about = _called(t)
    if t.kind in ("cholesky_along", "cholback"):
        matrix, *along = arrays
        arrays = (low.arrays.builder.step(ops.OfMatrices("cholesky", about=about), (matrix,), matrix.domains), *along)
    together = t.kind in ("spectral", "singular") and _moves(arrays[-1])
    if together:
        arrays = (*arrays[:-1], _joined(low, arrays[-1]))
    elif (slopes := slopes_of_numbers(_with_numbers_written_out(low, t))) is not None:
        # what rounding makes of numbers that cancel is known by their slopes
        value = low.scalar(slopes.body)
        arrays = (*arrays, _as_array(low, low.arrays.arranged(value, (*outer, *slopes.params))))
    positive = not outer and t.kind in ops.FACTORED and has_factor(t, dict(low.defined))
    named = about if positive or t.kind == "cholesky" else ""
    op = ops.OfMatrices(t.kind, hermitian, named, together, positive)
    step = low.arrays.builder.step(op, arrays, map(domain_of, (*outer, *own)), over_complex)
    return Value(step, (*outer, *own))


def of_vectors(low: Lowering, t: Reduce) -> Value:
    """A vector product, for each index that one of the vectors depends on."""
    parts = [low.scalar(t.mark), low.scalar(t.body)]
    labels = (*dict.fromkeys(v for part in parts for v in part.labels if v not in t.indices), *t.indices)
    arrays = tuple(_as_array(low, low.arrays.arranged(part, labels)) for part in parts)
    return Value(low.arrays.builder.step(ops.Cross(), arrays, map(domain_of, labels), is_complex(t.type)), labels)


def _laws_of_definitions(low: Lowering, t: Reduce) -> dict[Var, tuple[Symmetry, ...]]:
    """The symmetries of the definitions that a matrix is made of."""
    values = {v: e for v, e in low.defined if isinstance(e, Lam)}
    needed, left = set[Var](), [v for v in t.body.free if v in values]
    while left:
        v = left.pop()
        if v not in needed:
            needed.add(v)
            left += [u for u in values[v].free if u in values]
    found: dict[Var, tuple[Symmetry, ...]] = {}
    for v in values:
        if v in needed:
            found[v] = derived_symmetries(values[v], found)
    return found


def _with_numbers_written_out(low: Lowering, t: Reduce) -> Reduce:
    """What is made of eigenvectors, with definitions written out in its numbers, and not in its matrix."""
    values: dict[Term, Lam] = {v: e for v, e in low.defined if isinstance(e, Lam) and v not in t.body.free}
    if t.kind not in ("spectral", "singular") or t.free.isdisjoint(values):
        return t

    written = inlined(t, values)
    assert isinstance(written, Reduce), "a function of the same matrix"
    return written if written.free.isdisjoint(values) else _with_numbers_written_out(low, written)


def _called(t: Reduce) -> str:
    """What the matrix is called in a message: by its name, or by those of what it is made of."""
    match t.body:
        case App(Var(name=name), args) if args == t.indices:
            return name
        case body:
            names = sorted({v.name for v in body.free if isinstance(v.type, Map)})
            return f"a matrix that is made of {', '.join(names) or 'numbers'}"


def _moves(step: Step) -> bool:
    """Whether numbers are derivatives of functions of eigenvalues: the derivative of eigenvectors is added to them."""
    return any(isinstance(s.op, ops.OfMatrices) and s.op.kind in VECTORS & ALONG for s in ordered((step,)))


def _joined(low: Lowering, numbers: Step) -> Step:
    """The same numbers, whose derivatives of eigenvalues are parts of a sum: none of them is to be known alone."""
    new: dict[Step, Step] = {}
    for step in ordered((numbers,)):
        op, operands = step.op, tuple(new[o] for o in step.operands)
        if isinstance(op, ops.OfMatrices) and op.kind in VECTORS & ALONG:
            op = replace(op, together=True)
        same = op is step.op and all(map(is_, operands, step.operands))
        new[step] = step if same else low.arrays.builder.step(op, operands, step.domains, step.complex)
    return new[numbers]


def _as_array(low: Lowering, step: Step) -> Step:
    """What linear algebra takes: numbers with a fraction, whatever the entries are made of."""
    if not is_whole(step):
        return step
    return low.arrays.builder.step(ops.AsFloat(), (step,), step.domains)


def place_of(low: Lowering, t: Reduce) -> Value:
    """The value of the index at which the largest, or the least, number is first reached."""
    kind, value = t.kind, _over(low, _barred(low, t), t.indices)
    (axis,) = (value.labels.index(i) for i in t.indices)
    if t.mark != ONE:
        best = _best(low, "maximum" if kind == "argmax" else "minimum", _floating(low, value), t.indices)
        part = low.scalar(t.mark)
        value = low.arrays.elementwise(ops.Where("==", None, ZERO), [value, best, part], value.labels, complex=False)
        kind = "argmax"
    rest = tuple(v for v in value.labels if v not in t.indices)
    step = low.arrays.builder.step(ops.Reduced(kind, (axis,)), (value.step,), map(domain_of, rest))
    (index,) = t.indices
    points = low.arrays.integers(index)
    if domain_of(index).first(2) == 0:
        return Value(step, rest)
    at = ops.Gather((tuple(range(len(rest))),), len(rest))
    return Value(low.arrays.builder.step(at, (points.step, step), map(domain_of, rest)), rest)


def _best(low: Lowering, kind: str, value: Value, indices: Sequence[Var]) -> Value:
    """The largest, or the least, of numbers along their indices."""
    axes = tuple(value.labels.index(i) for i in indices)
    rest = tuple(v for v in value.labels if v not in indices)
    return Value(low.arrays.builder.step(ops.Reduced(kind, axes), (value.step,), map(domain_of, rest)), rest)


# --- shares of the largest ------------------------------------------------------------------------------------------


def entry_of_ties(low: Lowering, t: Reduce, args: Sequence[Term]) -> Value:
    """The share in a maximum of the value at some place, or an entry of an inverse."""
    if t.kind in ARRAYS or t.kind == "cross":
        whole = of_vectors(low, t) if t.kind == "cross" else of_matrices(low, t)
        at = dict(zip(t.indices[1:] if t.kind in VECTORS else t.indices, args, strict=True))
        return entry(low.arrays, whole.step, [affine(at.get(v, v)) for v in whole.labels])
    if t.kind == "softmax":
        groups = Groups.of(t)
        if groups is not None and groups.is_own(args):
            return _share_of_group(low, groups, args)
        _, top, count = _exponentials(low, t)
    else:
        value, most = _largest(low, t)
        # of nothing the largest is −∞, which is what bars the rest: only what takes part has a share
        part = low.scalar(t.mark)
        top = low.arrays.elementwise(ops.Where("==", None, ZERO), [value, most, part], value.labels, complex=False)
        count = low.arrays.reduce(top, t.indices)
        count = count if t.mark == ONE else _at_least(low, count, ONE)
    power = low.arrays.elementwise(ops.Power(), [count, low.arrays.number(MINUS_ONE)], complex=False)
    share = low.arrays.product(ONE, [top, power], top.labels)
    at = dict(zip(t.indices, args, strict=True))
    return entry(low.arrays, share.step, [affine(at.get(v, v)) for v in share.labels])


def _largest(low: Lowering, t: Reduce) -> tuple[Value, Value]:
    """What takes part, the rest barred, and the largest of it."""
    value = _floating(low, _over(low, _barred(low, t), t.indices))
    return value, _best(low, "maximum", value, t.indices)


def _exponentials(low: Lowering, t: Reduce) -> tuple[Value, Value, Value]:
    """M = max e, exp(e − M), and its sum; if M is infinite, exp(e), so that the sum of nothing but exp(−∞) is log 1."""
    value, most = _largest(low, t)
    apart = low.arrays.total([(ONE, value), (MINUS_ONE, _finite(low, most))])
    powers = low.arrays.elementwise(ops.Call("exp"), [apart], value.labels, complex=False)
    if is_weighted(t):
        weighed = low.arrays.product(ONE, [low.scalar(t.mark), powers], powers.labels)
        return most, weighed, _nonzero(low, low.arrays.reduce(weighed, t.indices), most)
    # the largest number adds 1
    return most, powers, _at_least(low, low.arrays.reduce(powers, t.indices), ONE)


def _by_groups(low: Lowering, t: Groups, groups: Sequence[Var]) -> tuple[Value, Value, Value]:
    """The same by groups: M and the sums for each of these, the exponentials for each of the entries."""
    places = _places(t, groups)
    value = _floating(low, _over(low, _barred(low, t.alone), t.indices))
    most = grouped(low.arrays, "maximum", value, places, t.indices)
    level = _at_entries(low, _finite(low, most), t, groups)
    apart = low.arrays.total([(ONE, value), (MINUS_ONE, level)])
    powers = low.arrays.elementwise(ops.Call("exp"), [apart], value.labels, complex=False)
    weighted = is_weighted(t.alone)
    if weighted:
        powers = low.arrays.product(ONE, [low.scalar(t.alone.mark), powers], powers.labels)
    told = {v for _, form in places for v in form.variables}
    rest = low.arrays.reduce(powers, [i for i in t.indices if i not in told])
    added = scatter(low.arrays, rest, places, [v for v in rest.labels if v not in t.indices])
    return most, powers, _nonzero(low, added, most) if weighted else _at_least(low, added, ONE)


def _share_of_group(low: Lowering, t: Groups, args: Sequence[Term]) -> Value:
    """The share of each entry in its own group, at a place."""
    groups = [fresh("g", e.type) for e in t.entries]
    _, top, added = _by_groups(low, t, groups)
    power = low.arrays.elementwise(ops.Power(), [added, low.arrays.number(MINUS_ONE)], complex=False)
    share = low.arrays.product(ONE, [top, _at_entries(low, power, t, groups)], top.labels)
    at = dict(zip(t.indices, args, strict=True))
    return entry(low.arrays, share.step, [affine(at.get(v, v)) for v in share.labels])


def _at_entries(low: Lowering, value: Value, t: Groups, groups: Sequence[Var]) -> Value:
    """What is known of each group, for each of the entries."""
    at: dict[Var, Term] = dict(zip(groups, t.entries, strict=True))
    return entry(low.arrays, value.step, [affine(at.get(v, v)) for v in value.labels])


def _finite(low: Lowering, most: Value) -> Value:
    """The largest number, and 0 where it is infinite."""
    magnitude = low.arrays.elementwise(ops.Call("abs"), [most], complex=False)
    sides = [magnitude, low.arrays.named("inf"), most]
    return low.arrays.elementwise(ops.Where("<", None, ZERO), sides, complex=False)


def _nonzero(low: Lowering, added: Value, most: Value) -> Value:
    """The sum of weighted exponentials; 1 where M is −∞: each share is 0 there, and not 0/0."""
    lowest, one = low.arrays.product(MINUS_ONE, [low.arrays.named("inf")]), low.arrays.number(ONE)
    nothing = low.arrays.elementwise(ops.Where("==", None, ZERO), [most, lowest, one], complex=False)
    return low.arrays.total([(ONE, added), (ONE, nothing)])


def _at_least(low: Lowering, value: Value, bound: Const) -> Value:
    return low.arrays.elementwise(ops.Call("max"), [value, low.arrays.number(bound)], complex=False)


# --- products of all but one ----------------------------------------------------------------------------------------


def _left_out(t: Reduce) -> tuple[Var, Var, Term, Term] | None:
    """(j, i, e, mark) if t is the product of e over all j but i, where e does not depend on i."""
    if len(t.indices) != 1:
        return None
    (j,) = t.indices
    held, rest = unguarded(t.mark)
    for condition in held if rest == ONE else ():
        i = _other(j, condition)
        if i is None:
            continue
        mark = under([c for c in held if c != condition], ONE)
        guard, core = unguarded(t.body)
        body = under([c for c in guard if c != condition], core)
        if i not in body.free and i not in mark.free:
            return j, i, body, mark
    return None


def _other(j: Var, c: Condition) -> Var | None:
    """The index that j is not to be."""
    match comparison_of(c):
        case Relation(Var() as a, "!=", Var() as b) if j in (a, b) and a != b:
            i = b if a == j else a
            plain = isinstance(i.kind, Index) and i.kind == j.kind and len(domain_of(i).axes) == 1
            return i if plain and not (domain_of(i).symmetric or domain_of(i).listed) else None
        case _:
            return None


def _of_all_others(low: Lowering, j: Var, i: Var, body: Term, mark: Term) -> Value:
    """For each i the product over all j but i, of what stands before it and of what stands behind it."""
    value = _over(low, _factors(low, body, mark), (j,))
    axis = value.labels.index(j)
    first = domain_of(i).lower or 0
    here = position(low.arrays, affine(i), None)
    beyond = low.arrays.total([(ONE, low.arrays.size(domain_of(i))), (ONE, low.arrays.number(number(first)))])
    next_ = position(low.arrays, affine(add(i, number(2))), None)
    sides = ((1, low.arrays.number(number(first + 1)), here), (-1, next_, beyond))
    parts = []
    for by, left, right in sides:
        op = ops.CumulativeProduct(axis, reverse=by < 0)
        running = Value(low.arrays.builder.step(op, (value.step,), value.step.domains), value.labels)
        moved = shifted(low.arrays, running, j, i, -by)
        kind = ops.Where("<=", None, Const(ONE.real))
        parts.append(low.arrays.elementwise(kind, [left, right, moved], moved.labels, moved.step.complex))
    return low.arrays.product(ONE, parts)
