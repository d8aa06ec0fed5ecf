"""Makes a failing program small: one change after another that keeps the failure, until none does.

Changes are of the tree, not of the text: an expression by one below it or by a number, a term or a factor less, a
definition written out, a parameter without symmetry, real, of plain ranges; smaller sizes; the plainest spelling.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

from .kinds import Count, Function, Index, Integers, Items, Number, Range, Tensor, Type, longer, ranges_of
from .looping import is_settled
from .syntax import (
    OF_MATRICES,
    PLACES,
    TENSORS,
    Add,
    Affine,
    App,
    Block,
    Call,
    Compared,
    Conj,
    Definition,
    Delta,
    Div,
    Expr,
    Indicator,
    Integral,
    Joined,
    Lam,
    Literal,
    Looked,
    Loop,
    Mul,
    Neg,
    Not,
    Power,
    Program,
    Reduced,
    Ref,
    Several,
    Sum,
    Tuple,
    Var,
    Where,
    bound_by,
    children,
    copied,
    rebuilt,
    replaced,
    walk,
)
from .walks import free, mentioned, nodes, used

Fails = Callable[[Program], bool]


def shrunk(program: Program, fails: Fails, seconds: float = 60.0) -> Program:
    """The smallest program that is found within the time and still fails."""
    end = time.monotonic() + seconds
    improved = True
    while improved and time.monotonic() < end:
        improved = False
        for candidate in candidates(program):
            if time.monotonic() > end:
                break
            if weight(candidate) < weight(program) and well_formed(candidate) and fails(candidate):
                program, improved = candidate, True
                break
    return program


def weight(program: Program) -> tuple[int, int]:
    """What is to become small: expressions first, then what is declared."""
    declared = 0
    for p in [*program.params, *(v for e in walk(program.body) for v in bound_by(e))]:
        declared += 3 + _weight_of(p.kind) + p.positive
    sizes = sum(
        sum(r.sizes) + r.named + (5 if r.declared else 0) + 3 * r.directions + abs(r.lower) for r in _ranges(program)
    )
    style = sum(_style(e) for e in walk(program.body))
    return 4 * nodes(program), declared + sizes + style + len(program.groups) + program.marked


def _weight_of(kind: Type) -> int:
    match kind:
        case Number(complex=c):
            return c
        case Tensor(slots, c, space):
            return 2 * len(slots) + c + (4 + 3 * len(space.laws) if space else 0)
        case Function(params, result):
            return 6 + sum(map(_weight_of, (*params, result)))
        case _:
            return 0


def _style(e: Expr) -> int:
    match e:
        case Literal(value):
            return abs(value.numerator) + value.denominator
        case Affine(terms, constant):
            return sum(1 + abs(c - 1) for c, _ in terms) + abs(constant)
        case App(brackets=b, piped=p) if b or p:
            return 1
        case Call(piped=True):
            return 1
        case Compared(_, signs):
            return sum(sign not in ("<", "<=") for sign in signs)
        case Reduced(name):
            return name != "sum"
        case _:
            return 0


def well_formed(program: Program) -> bool:
    """Whether every variable is bound where it stands."""
    params = set(program.params)
    return _closed(program.body, params) and all(u in params for u in program.unknowns)


def _closed(e: Expr, known: set[Var]) -> bool:
    match e:
        case Ref(var) if var not in known:
            return False
        case Affine() if any(v not in known for v in mentioned(e)):
            return False
        case Affine(first=Expr() as first) if not (isinstance(first, Reduced) and first.name in PLACES):
            return False
        case Block(definitions, body):
            for d in definitions:
                if not _closed(d.value, known):
                    return False
                known = known | set(d.names)
            return _closed(body, known)
        case Loop(starts=starts):
            if not is_settled(e) or not all(_closed(s, known) for s in starts):
                return False
    inner = known | set(bound_by(e))
    return all(_closed(c, inner) for c in children(e))


def with_names(program: Program, of: Mapping[Var, str], sizes: Mapping[object, str]) -> Program:
    """The program with these names for good, whatever is left of it."""
    known: dict[Var, Var] = {}
    ranges: dict[Range, Range] = {}

    def range_(r: Range) -> Range:
        if r not in ranges:
            ranges[r] = replace(r, name=f"={sizes[r]}") if r in sizes else r
        return ranges[r]

    def var(v: Var) -> Var:
        if v not in known:
            known[v] = Var(_of_kind(v.kind, range_), f"={of[v]}" if v in of else v.hint, v.positive)
        return known[v]

    return _renamed(program, var)


# --- candidates -----------------------------------------------------------------------------------------------------


def candidates(program: Program) -> Iterator[Program]:
    """Smaller programs, the boldest changes first."""
    yield from _of_groups(program)
    for e in walk(program.body):
        for smaller in _of_expression(e):
            try:
                yield replace(program, body=_exchanged(program.body, e, smaller))
            except (AssertionError, AttributeError):
                continue
    yield from _of_parameters(program)
    yield from _of_ranges(program)


def _exchanged(whole: Expr, old: Expr, new: Expr) -> Expr:
    if whole is old:
        return new
    return rebuilt(whole, lambda e: _exchanged(e, old, new))


def _is_number(e: Expr) -> bool:
    return isinstance(e.kind, Number) and not isinstance(e, Definition)


def _of_expression(e: Expr) -> Iterator[Expr]:
    """What may stand in the place of an expression."""
    if _is_number(e) and not isinstance(e, Literal | Ref | Affine):
        below = [u for u in walk(e) if u is not e and _is_number(u) and not isinstance(u, Literal | Affine)]
        below.sort(key=lambda u: sum(1 for _ in walk(u)))
        yield from below[:6]
        yield from below[6:][::-1]
        yield Literal(Fraction(1))
    match e:
        case Add(terms) | Mul(terms):
            for n in range(len(terms)):
                rest = (*terms[:n], *terms[n + 1 :])
                yield rest[0] if len(rest) == 1 else type(e)(rest)
        case Sum(indices, body) if len(indices) > 1:
            for n in range(len(indices)):
                yield Sum((*indices[:n], *indices[n + 1 :]), body)
        case Block(definitions, body):
            for n, d in enumerate(definitions):
                rest = (*definitions[:n], *definitions[n + 1 :])
                yield Block(rest, body) if rest else body
                if len(d.names) == 1:
                    inlined = _inlined(Block(rest, body) if rest else body, d.names[0], d.value)
                    yield inlined
        case Affine(terms, constant):
            if constant:
                yield Affine(terms, 0)
            for n in range(len(terms)):
                yield Affine((*terms[:n], *terms[n + 1 :]), 0 if len(terms) == 1 else constant)
                if terms[n][0] != 1:
                    yield Affine((*terms[:n], (1, terms[n][1]), *terms[n + 1 :]), constant)
        case Literal(value) if value not in (1, 2):
            yield from (Literal(Fraction(1)), Literal(Fraction(2)), Literal(Fraction(value.numerator)))
        case App(function, args, brackets, piped) if brackets or piped:
            yield App(function, args)
        case Call(name, of, True):
            yield Call(name, of)
        case Tuple(items) if len(items) > 1:
            for n in range(len(items)):
                yield Tuple((*items[:n], *items[n + 1 :]))
            yield from items
        case _:
            yield from _of_loops(e)
            yield from _of_conditions(e)
            yield from _of_reductions(e)


def _of_loops(e: Expr) -> Iterator[Expr]:
    """Loops that do not stop, without definitions in their steps, of a number of steps of their own; first states."""
    if not isinstance(e, Loop):
        return
    if e.stop is not None:
        yield replace(e, stop=None)
    if e.name == "iterate" and len(e.starts) == 1:
        yield e.starts[0]
    if e.name == "iterate" and len(e.starts) > 1:
        yield Tuple(e.starts)
    step = e.step
    while isinstance(step, Block):
        yield replace(e, step=step.body)
        step = step.body
    assert isinstance(e.time.kind, Index), "time is an index"
    r = e.time.kind.range
    if (r.named or r.base is not None) and e.name == "iterate":
        time = Var(Index(Range(r.name, "plain", (max(0, r.count),))), e.time.hint)
        yield replaced(e, {e.time: time})  # only where nothing reads it


def _of_conditions(e: Expr) -> Iterator[Expr]:
    """Smaller conditions, and values under fewer of them."""
    match e:
        case Where(condition, body, otherwise) if otherwise is not None:
            yield Where(condition, body)
            yield Where(Not(condition), otherwise)
        case Joined(_, items):
            yield from items
        case Not(of):
            yield of
        case Compared(sides, signs) if len(signs) > 1:
            yield Compared(sides[:-1], signs[:-1])
            yield Compared(sides[1:], signs[1:])
        case Compared((left, right), (sign,)):
            for n, side in enumerate((left, right)):
                if not isinstance(side, Affine | Literal):
                    zero = Literal(Fraction(0))
                    yield Compared((zero, right) if n == 0 else (left, zero), (sign,))


def _of_reductions(e: Expr) -> Iterator[Expr]:
    """Reductions without a condition, over fewer indices, or as sums; functions of fewer numbers."""
    match e:
        case Reduced("cross"):
            pass
        case Reduced(name, indices, body, condition):
            if condition is not None:
                yield Sum(indices, body) if name == "sum" else Reduced(name, indices, body)
                if name != "sum" and name not in TENSORS and not e.weighted:
                    yield Reduced("sum", indices, body, condition)
            elif name not in TENSORS:
                yield Sum(indices, body)
            for n in range(len(indices) if len(indices) > 1 and name not in (*TENSORS, *OF_MATRICES) else 0):
                yield Reduced(name, (*indices[:n], *indices[n + 1 :]), body, condition)
        case Several("max" | "min" as name, args) if len(args) > 2:
            for n in range(len(args)):
                yield Several(name, (*args[:n], *args[n + 1 :]))
        case Several("clip", (x, low, high)):
            yield Several("max", (x, low))
            yield Several("min", (x, high))


def _inlined(e: Expr, var: Var, value: Expr) -> Expr:
    """`e` with a definition written out."""
    match e:
        case App(Ref(v), args) if v is var and isinstance(value, Lam):
            return _substituted(value, [_inlined(a, var, value) for a in args])
        case Ref(v) if v is var:
            return copied(value)
    return rebuilt(e, lambda u: _inlined(u, var, value))


def _substituted(f: Lam, args: list[Expr]) -> Expr:
    values = dict(zip(f.params, args, strict=True))

    def change(u: Expr) -> Expr:
        match u:
            case Ref(v) if v in values:
                return copied(values[v])
            case Affine(terms, constant, first):
                total: dict[Var, int] = {}
                for c, v in terms:
                    if isinstance(v, Looked):
                        v = Looked(v.kind, array=v.array, args=tuple(change(a) for a in v.args))
                    with_ = values.get(v, Affine(((1, v),)))
                    assert isinstance(with_, Affine), "an index"
                    constant += c * with_.constant
                    for k, w in with_.terms:
                        total[w] = total.get(w, 0) + c * k
                first = None if first is None else change(first)
                return Affine(tuple((c, v) for v, c in total.items() if c), constant, first)
        return rebuilt(u, change)

    return change(copied(f.body))


def _of_groups(program: Program) -> Iterator[Program]:
    needed = used(program.body)
    ranges = {r.base or r for e in walk(program.body) for v in bound_by(e) for r in ranges_of(v.kind)}
    needed |= {p for p in program.params if isinstance(p.kind, Count) and p.kind.range in ranges}
    for n, group in enumerate(program.groups):
        for p in group:
            last = n == len(program.groups) - 1
            if p in needed or (last and len(group) == 1):
                continue
            rest = tuple(q for q in group if q is not p)
            groups = (*program.groups[:n], *((rest,) if rest else ()), *program.groups[n + 1 :])
            yield replace(program, groups=groups)
    if len(program.groups) > 2:
        merged = tuple(p for g in program.groups[:-1] for p in g)
        yield replace(program, groups=(merged, program.groups[-1]))
    for p in program.unknowns if len(program.unknowns) > 1 else ():
        rest = tuple(q for q in program.unknowns if q is not p)
        yield replace(program, groups=(*program.groups[:-1], (p,), rest))
    if program.marked:
        yield replace(program, marked=False)


def _of_parameters(program: Program) -> Iterator[Program]:
    for p in program.params:
        kinds: list[Type] = []
        match p.kind:
            case Number(complex=True):
                kinds.append(Number())
            case Tensor(slots, c, space):
                if space is not None:
                    kinds.append(Tensor(slots, c))
                    for n in range(len(space.laws) if len(space.laws) > 1 else 0):
                        kinds.append(Tensor(slots, c, replace(space, laws=(*space.laws[:n], *space.laws[n + 1 :]))))
                if c:
                    kinds.append(Tensor(slots, False, space))
                for n in range(len(slots)):
                    if space is None:
                        yield from _without_slot(program, p, n)
        if p.positive and not (isinstance(p.kind, Tensor) and p.kind.space is not None):
            yield _with_var(program, p, Var(p.kind, p.hint))
        for kind in kinds:
            yield _with_var(program, p, Var(kind, p.hint, p.positive))


def _with_var(program: Program, old: Var, new: Var) -> Program:
    def change(e: Expr) -> Expr:
        match e:
            case Ref(v) if v is old:
                return Ref(new)
        return rebuilt(e, change)

    groups = tuple(tuple(new if p is old else p for p in g) for g in program.groups)
    return replace(program, groups=groups, body=change(program.body))


def _without_slot(program: Program, old: Var, n: int) -> Iterator[Program]:
    """The tensor with a slot less; a vector becomes a number."""
    assert isinstance(old.kind, Tensor), "a tensor"
    slots = (*old.kind.slots[:n], *old.kind.slots[n + 1 :])
    kind: Type = Tensor(slots, old.kind.complex) if slots else Number(old.kind.complex)
    new = Var(kind, old.hint, old.positive)
    lone = False

    def change(e: Expr) -> Expr:
        nonlocal lone
        match e:
            case App(Ref(v), args) if v is old:
                rest = (*args[:n], *args[n + 1 :])
                return App(Ref(new), tuple(map(change, rest))) if rest else Ref(new)
            case Ref(v) if v is old:
                lone = True
        return rebuilt(e, change)

    groups = tuple(tuple(new if p is old else p for p in g) for g in program.groups)
    body = change(program.body)
    if not lone:
        yield replace(program, groups=groups, body=body)


def _ranges(program: Program) -> list[Range]:
    found: dict[Range, None] = {}
    for v in [*program.params, *(v for e in walk(program.body) for v in bound_by(e))]:
        found.update(dict.fromkeys(r.base or r for r in ranges_of(v.kind)))
    return list(found)


def _of_ranges(program: Program) -> Iterator[Program]:
    for r in _ranges(program):
        if r.sort != "plain":
            yield _with_range(program, r, Range(r.name, "plain", (min(r.count, 3),), named=True))
        if r.sort != "list":
            for n, size in enumerate(r.sizes):
                for smaller in (s for s in (1, 2, 3) if s < size and (r.sort != "symmetric" or s % 2)):
                    yield _with_range(program, r, replace(r, sizes=(*r.sizes[:n], smaller, *r.sizes[n + 1 :])))
        if r.sort == "list" and len(r.offsets) > 1 and not r.reflected:
            yield _with_range(program, r, replace(r, offsets=r.offsets[:-1], sizes=(len(r.offsets) - 1,)))
        if r.directions > 1 and r.sort == "ring":
            yield _with_range(program, r, replace(r, sizes=r.sizes[:1]))
        if r.named:
            yield _with_range(program, r, replace(r, named=False))
        if not r.contractable:
            yield _with_range(program, r, replace(r, contractable=True))


def _with_range(program: Program, old: Range, new: Range) -> Program:
    known: dict[Var, Var] = {}

    def var(v: Var) -> Var:
        if v not in known:
            known[v] = Var(_of_kind(v.kind, changed), v.hint, v.positive)
        return known[v]

    def changed(r: Range) -> Range:
        if r is old:
            return new
        return longer(new, max(r.more, -new.count)) if r.base is old else r

    return _renamed(program, var)


def _of_kind(k: Type, change: Callable[[Range], Range]) -> Type:
    match k:
        case Index(r):
            return Index(change(r))
        case Count(r):
            return Count(change(r))
        case Tensor(slots, c, space):
            return Tensor(tuple(map(change, slots)), c, space)
        case Integers(slots, entry):
            return Integers(tuple(map(change, slots)), change(entry))
        case Function(params, result, linear, space):
            inner = tuple(_of_kind(p, change) for p in params)
            return Function(inner, _of_kind(result, change), linear, space)
        case Items(of):
            return Items(tuple(_of_kind(p, change) for p in of))
    return k


class _Renaming(dict[Var, Var]):
    """Every variable by a function of it."""

    def __init__(self, of: Callable[[Var], Var]) -> None:
        super().__init__()
        self.of = of

    def get(self, v: Var, default: Var | None = None) -> Var:  # type: ignore[override]
        return self.of(v)


def _renamed(program: Program, var: Callable[[Var], Var]) -> Program:
    names = _Renaming(var)

    def change(e: Expr) -> Expr:
        return replaced(rebuilt(e, change), names)

    groups = tuple(tuple(var(p) for p in g) for g in program.groups)
    return replace(program, groups=groups, body=change(program.body))


__all__ = [
    "Conj",
    "Delta",
    "Div",
    "Indicator",
    "Integral",
    "Neg",
    "Power",
    "candidates",
    "free",
    "shrunk",
    "weight",
    "well_formed",
]
