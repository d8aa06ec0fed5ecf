"""Laws that tell when two programs, or two sets of arrays, must have one answer.

A program is written otherwise (its variables renamed, its terms reordered, a definition written out, a value conjugated
twice, a sum split), and its gradient held against the oracle's for the program as it was. Arrays are permuted along a
range, or padded with zeros where the program cannot tell, and the gradient must follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np

from .case import Case, Failure, Skipped
from .data import Matrix, Wave
from .functions import GAMMAS
from .kinds import Function, Integers, ranges_of
from .modes import extra_arguments
from .syntax import (
    Add,
    Affine,
    App,
    Block,
    Call,
    Conj,
    Constant,
    Definition,
    Delta,
    Derived,
    Div,
    Expr,
    Indicator,
    Lam,
    Literal,
    Mul,
    Norm,
    Number,
    Power,
    Program,
    Range,
    Reduced,
    Ref,
    Several,
    Sum,
    Tensor,
    Var,
    bound_by,
    copied,
    rebuilt,
    replaced,
    walk,
)
from .walks import free

Respelling = Callable[[Expr, Random], Expr]


def _as_written(case: Case, program: Program, what: str) -> None:
    """The gradient of `program`, another way to write that of `case`, on the same numbers."""
    other = Case(program, case.weather, case.seed, case.plain)
    other.__dict__.update(data=case.data, cotangents=case.cotangents)
    f = other.derivation.compile()
    case.compare(other.run(f, extra=extra_arguments(other, f)), what)


def _respelled(case: Case, change: Respelling, what: str) -> None:
    body = change(case.program.body, case.rng)
    if body is case.program.body:
        raise Skipped(f"nothing can be {what}")
    _as_written(case, replace(case.program, body=body), f"gradient of the program {what}")


def renamed(case: Case) -> None:
    """Other names, other spelling, and new variables for all that is bound."""
    program = replace(case.program, body=copied(case.program.body), seed=case.program.seed + 1)
    _as_written(case, program, "gradient of the program renamed")


def reordered(case: Case) -> None:
    """Terms, factors and summed indices in another order."""
    _respelled(case, _shuffled, "reordered")


def _shuffled(e: Expr, rng: Random) -> Expr:
    e = rebuilt(e, lambda u: _shuffled(u, rng))
    match e:
        case Add(terms):
            return Add(tuple(rng.sample(terms, len(terms))))
        case Mul(factors):
            return Mul(tuple(rng.sample(factors, len(factors))))
        case Sum(indices, body) if len(indices) > 1:
            return Sum(tuple(rng.sample(indices, len(indices))), body)
        case _:
            return e


def inlined(case: Case) -> None:
    """One definition of a number or of a tensor written out wherever it stands."""
    _respelled(case, _one_inlined, "with a definition written out")


def _one_inlined(e: Expr, rng: Random) -> Expr:
    found = [d for u in walk(e) if isinstance(u, Block) for d in u.definitions if _can_be_written_out(d, e)]
    if not found:
        return e
    chosen = rng.choice(found)
    (name,) = chosen.names

    def change(u: Expr) -> Expr:
        match u:
            case Ref(var) if var is name:
                return copied(chosen.value)
            case App(Ref(var), args) if var is name:
                value = chosen.value
                assert isinstance(value, Lam), "a tensor is written as a map"
                known = {p: a.bare for p, a in zip(value.params, args, strict=True)}  # type: ignore[union-attr]
                return _renamed(copied(value.body), known)  # type: ignore[arg-type]
            case Block(definitions, body) if chosen in definitions:
                rest = tuple(change(d) for d in definitions if d is not chosen)
                return Block(rest, change(body)) if rest else change(body)  # type: ignore[arg-type]
        return rebuilt(u, change)

    return change(e)


def _can_be_written_out(d: Definition, whole: Expr) -> bool:
    """Whether it is a number, or a map of indices that is applied to bare indices only, and stands somewhere.

    A definition that is not used may still tell how far an index ranges.
    """
    if len(d.names) != 1 or d.textual:
        return False
    (name,) = d.names
    mentions = sum(1 for u in walk(whole) if isinstance(u, Ref) and u.var is name)
    if isinstance(name.kind, Number) or not mentions:
        return bool(mentions)
    if not (isinstance(name.kind, Tensor) and isinstance(d.value, Lam)):
        return False
    applied = [u for u in walk(whole) if isinstance(u, App) and isinstance(u.function, Ref) and u.function.var is name]
    bare = all(isinstance(a, Affine) and a.bare is not None for u in applied for a in u.args)
    return bare and len(applied) == mentions


def _renamed(e: Expr, names: Mapping[Var, Var]) -> Expr:
    return replaced(rebuilt(e, lambda u: _renamed(u, names)), names)


def conjugated(case: Case) -> None:
    """Some values conjugated twice."""
    _respelled(case, _conjugated_twice, "with values conjugated twice")


def _conjugated_twice(e: Expr, rng: Random) -> Expr:
    places = [u for u in walk(e) if _is_value(u)]
    chosen = set(map(id, rng.sample(places, min(2, len(places)))))

    def change(u: Expr) -> Expr:
        new = rebuilt(u, change)
        return Conj(Conj(new)) if id(u) in chosen else new

    return change(e) if chosen else e


def split(case: Case) -> None:
    """A value as a third of it and two thirds of it; a sum of terms as a sum of sums."""
    _respelled(case, _split, "with a value split")


def _split(e: Expr, rng: Random) -> Expr:
    places = [u for u in walk(e) if _is_value(u)]
    if not places:
        return e
    chosen = rng.choice(places)

    def change(u: Expr) -> Expr:
        if u is not chosen:
            return rebuilt(u, change)
        # an index that stands in one term alone has a range that is told there
        if isinstance(u, Sum) and isinstance(u.body, Add) and all({*u.indices} <= free(t) for t in u.body.terms):
            first, *others = u.body.terms
            rest: Expr = Add(tuple(others)) if len(others) > 1 else others[0]
            return Add((Sum(u.indices, first), copied(Sum(u.indices, rest))))
        third, two = Literal(Fraction(1, 3)), Literal(Fraction(2, 3))
        return Add((Mul((third, u)), Mul((two, copied(u)))))

    return change(e)


def _is_value(e: Expr) -> bool:
    """Whether it is a number that is no literal and no index."""
    if isinstance(e, Reduced) and e.name in ("argmax", "argmin"):
        return False
    return isinstance(e.kind, Number) and not isinstance(e, Affine | Literal | Constant | Definition)


# --- arrays -----------------------------------------------------------------------------------------------------------


def permuted(case: Case) -> None:
    """The arrays permuted along a range whose values nothing in the program tells apart."""
    r = _chosen(case, _alike(case.program))
    order = case.rng.sample(range(r.count), r.count)
    moved = {v: _along(v, x, r, lambda y, axis: np.take(y, order, axis)) for v, x in case.data.items()}
    _follows(case, moved, r, lambda y, axis: np.take(y, order, axis), "permuted arrays")


def padded(case: Case) -> None:
    """The given arrays with zeros at their ends, along a range over which each sum has one of their entries."""
    above_0 = {r for v in case.program.params if _is_declared_positive(v) for r in ranges_of(v.kind)}
    suited = [r for r in _alike(case.program) if not r.named and _vanishes_beyond(case.program, r)]
    suited = [r for r in suited if r not in above_0]
    r = _chosen(case, suited)
    rng = np.random.default_rng(case.program.seed)
    moved = {}
    for v, x in case.data.items():
        unknown = v in case.program.unknowns and not (isinstance(v.kind, Tensor) and v.kind.space)
        moved[v] = _along(v, x, r, lambda y, axis, unknown=unknown: _longer(y, axis, unknown, rng))  # type: ignore[misc]
    _follows(case, moved, r, None, "arrays padded with zeros")


def _is_declared_positive(v: Var) -> bool:
    return isinstance(v.kind, Tensor) and v.kind.space is not None and v.kind.space.positive


def _longer(x: Any, axis: int, unknown: bool, rng: np.random.Generator) -> Any:
    shape = list(x.shape)
    shape[axis] = 1
    end = rng.standard_normal(shape) if unknown else np.zeros(shape)
    return np.concatenate([x, end.astype(x.dtype)], axis)


def _along(v: Var, x: Any, r: Range, change: Callable[[Any, int], Any]) -> Any:
    """`x` with `change` applied to each axis of the range."""
    if isinstance(v.kind, Tensor):
        for axis, slot in enumerate(v.kind.slots):
            if slot is r:
                x = change(x, axis)
    return x


def _follows(
    case: Case, moved: Mapping[Var, Any], r: Range, change: Callable[[Any, int], Any] | None, what: str
) -> None:
    """Whether the gradient at the moved arrays is the moved gradient; without `change`, the first part of it."""
    f = case.derivation.compile()
    before = case.shaped(case.run(f, extra=extra_arguments(case, f)), case.program.unknowns, what)
    arrays = {case.writer.names.of[v]: _by_axes(v, x) for v, x in moved.items()}
    with np.errstate(all="ignore"):
        found = case.run(f, arrays.get)
    items = found if isinstance(found, tuple) else (found,)
    allowed = case.sensitivity(False)
    if not np.isfinite(allowed).all() or not all(np.isfinite(b).all() for b in before):
        raise Skipped("badly conditioned")
    for u, b, a in zip(case.program.unknowns, before, items, strict=True):
        wanted = _along(u, b, r, change) if change else b
        got = np.asarray(a).reshape(np.shape(moved[u]))
        if change is None:
            got = _along(u, got, r, lambda y, axis: np.take(y, range(y.shape[axis] - 1), axis))
        scale = float(np.abs(wanted).max(initial=0)) + float(np.max(allowed))
        if got.shape != wanted.shape or not bool((np.abs(got - wanted) <= 1e-6 * scale + 1e-12).all()):
            raise Failure("wrong", f"{what} along {r.name}: the gradient does not follow")


def _by_axes(v: Var, x: Any) -> Any:
    """`x` as combdiff takes it: an axis for each direction of a lattice."""
    if not isinstance(v.kind, Tensor):
        return x
    lattices = [s.sizes if s.sort != "list" and s.directions > 1 else () for s in v.kind.slots]
    return x.reshape([n for count, sizes in zip(x.shape, lattices, strict=True) for n in sizes or (count,)])


def _chosen(case: Case, ranges: list[Range]) -> Range:
    if case.program.mode != "grad" or not ranges or any(isinstance(x, Wave | Matrix) for x in case.data.values()):
        raise Skipped("no range of that kind")
    return case.rng.choice(ranges)


def _alike(program: Program) -> list[Range]:
    """The plain ranges of which no value is told from another: no order, no number, no symmetry but of permutations."""
    ranges = {s for v in program.params if isinstance(v.kind, Tensor) for s in v.kind.slots if s.sort == "plain"}
    told: set[Range] = {r for v in program.params if isinstance(v.kind, Integers) for r in ranges_of(v.kind)}
    parents: list[Expr] = [program.body]
    while parents:
        e = parents.pop()
        told |= set(_told(e))
        parents += _below(e)
    if any(isinstance(a, Affine) and a.bare is None for u in walk(program.body) if isinstance(u, App) for a in u.args):
        return []
    if any(isinstance(v.kind, Function) and any(isinstance(p, Tensor) for p in v.kind.params) for v in program.params):
        return []  # a function of a tensor tells its entries by their places
    return sorted(ranges - told, key=lambda r: r.name)


def _below(e: Expr) -> list[Expr]:
    """What is looked at below `e`: indices in slots and in a δ say nothing of their values."""
    match e:
        case App(function, args):
            return [function, *(a for a in args if not isinstance(a, Affine))]
        case Delta(left, right, body) if left.bare is not None and right.bare is not None:
            return [body]
        case Sum(_, body) | Lam(_, body):
            return [body]
    found: list[Expr] = []
    rebuilt(e, lambda u: (found.append(u), u)[1])
    return found


def _told(e: Expr) -> list[Range]:
    """The ranges of indices that stand as numbers in `e`, or are compared."""
    match e:
        case Affine(terms):
            return [v.kind.range for _, v in terms]  # type: ignore[union-attr]
        case Delta(Affine() as left, Affine() as right) if left.bare is not None and right.bare is not None:
            ranges = [r for side in (left, right) for r in _slots(side.bare)]  # type: ignore[arg-type]
            return ranges if ranges[0] is not ranges[-1] else []
        case App(function, args) if isinstance(function.kind, Tensor):
            # the counter of a loop is a number
            pairs = zip(args, function.kind.slots, strict=False)
            return [s for a, s in pairs if isinstance(a, Affine) and a.bare is not None and s not in _slots(a.bare)]
        case (
            Derived() | Indicator() | Reduced("cumsum" | "cross" | "det" | "logdet" | "logabsdet" | "inv" | "adjugate")
        ):
            return [s for u in walk(e) for v in bound_by(u) for s in _slots(v)]
        case _:
            return []


def _slots(v: Var) -> list[Range]:
    kind = v.kind
    return list(kind.slots) if isinstance(kind, Tensor) else [kind.range] if hasattr(kind, "range") else []


def _vanishes_beyond(program: Program, r: Range) -> bool:
    """Whether each sum over the range is of products with an entry of a given tensor at its index."""
    given = {v for v in program.params if v not in program.unknowns}

    def kept(e: Expr) -> bool:
        own = [i for i in bound_by(e) if getattr(i.kind, "range", None) is r]
        if own and not isinstance(e, Sum):
            return False
        if isinstance(e, Norm) and isinstance(e.of.kind, Tensor) and r in e.of.kind.slots:
            return False
        if isinstance(e, Sum):
            factors = e.body.factors if isinstance(e.body, Mul) else (e.body,)
            entries = [
                f for f in factors if isinstance(f, App) and isinstance(f.function, Ref) and f.function.var in given
            ]
            at = {a.bare for f in entries for a in f.args if isinstance(a, Affine)}
            if not set(own) <= at:
                return False
        found: list[bool] = []
        rebuilt(e, lambda u: (found.append(kept(u)), u)[1])
        return all(found)

    return kept(program.body) and not any(_is_singular(u) for u in walk(program.body))


def _is_singular(e: Expr) -> bool:
    """Whether it may be infinite at a zero."""
    return isinstance(e, Div | Power | Derived | Several) or (
        isinstance(e, Call) and e.name in ("log", "sqrt", "log1p", "log2", "log10", "atanh", *GAMMAS)
    )


LAWS: dict[str, tuple[Callable[[Case], None], float]] = {
    "renamed": (renamed, 0.7),
    "reordered": (reordered, 1),
    "inlined": (inlined, 1),
    "conjugated": (conjugated, 0.7),
    "split": (split, 1),
    "permuted": (permuted, 0.7),
    "padded": (padded, 0.7),
}
