"""Guards: conditions under which a value must be finite, and the terms that may be moved out of them.

    indicator(i + 1, j, q(i) / r(i, j))   is   q(i) * indicator(i + 1, j, 1 / r(i, j))   and no more than that

A branch that is not taken never matters: `indicator(i, j, e)` and `delta(i, j, e)` are 0 where the condition does not
hold, whatever e is there. So only what is finite wherever the data are is taken out of a guard (`is_finite`, the one
notion that the calculus and code generation ask), and a function that is not gets `SAFE` for its argument there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from types import MappingProxyType

from combdiff.records import dataclass
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.terms import (
    IMAGINARY,
    MINUS_ONE,
    ONE,
    PLACES,
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
    Tuple,
    Var,
    add,
    call,
    can_fill_slot,
    children,
    conj,
    delta,
    index_atoms,
    indicator,
    is_integer_valued,
    mul,
    split_coefficient,
    substitute,
    subterms,
    terms_of,
    total,
)
from combdiff.terms.types import Domain, Index, Map, Type, is_complex

SAFE = ONE
"""Where every power is finite with its derivatives, and every function whose row says nothing else."""


@dataclass(frozen=True, slots=True)
class Condition:
    """left ≤ right, or left = right of two indices.

    One that `counts` is no condition of the program: it says how many values an index has, or for how many others hold.
    """

    left: Term
    right: Term
    equal: bool = False
    counts: bool = field(default=False, compare=False)

    def over(self, body: Term) -> Term:
        """`body` where the condition holds, else 0."""
        return delta(self.left, self.right, body) if self.equal else indicator(self.left, self.right, body)

    def at(self, values: Mapping[Var, Term]) -> Condition:
        """The condition with variables replaced."""
        return Condition(substitute(self.left, values), substitute(self.right, values), self.equal, self.counts)

    @property
    def free(self) -> frozenset[Var]:
        """The variables that are compared."""
        return self.left.free | self.right.free


Guard = tuple[Condition, ...]
"""Conditions that all have to hold."""


def condition_of(t: Indicator | Delta) -> Condition:
    """The condition of a guard."""
    return Condition(t.left, t.right, isinstance(t, Delta))


def both(one: Iterable[Condition], other: Iterable[Condition]) -> Guard:
    """The conditions of two guards, each once."""
    return tuple(dict.fromkeys((*one, *other)))


def is_finite(t: Term, partial: Collection[Var] = ()) -> bool:
    """Whether t, and what t is differentiated to, is finite wherever the data are.

    >>> from combdiff.terms.terms import MINUS_ONE, TWO, fresh, power
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> is_finite(call("sin", x)), is_finite(power(x, MINUS_ONE)), is_finite(power(add(ONE, power(x, TWO)), MINUS_ONE))
    (True, False, True)

    Products and sums count as finite: what they overflow from is out of reach. What stands under a condition of its own
    is not: that condition need not hold where another one does not. `partial` are the values that may be infinite.
    """
    return Finite(partial)(t)


class Finite:
    """`is_finite` for many terms that have parts in common.

    `bounds` are what `least` says of definitions; `in_range` says that conditions keep all entries in their ranges.
    """

    reads_under_conditions = True
    """Whether an entry that a condition around it keeps in range is there."""

    def __init__(
        self, partial: Collection[Var] = (), bounds: Mapping[Var, int] = MappingProxyType({}), in_range: bool = False
    ) -> None:
        self.partial = partial
        self.bounds = bounds
        self.in_range = in_range
        self._known: dict[Term, bool] = {}
        self._least: dict[Term, int] = {}

    def __call__(self, t: Term) -> bool:
        if t not in self._known:
            inner = self._kept(t)
            if self.reads_under_conditions and not self.in_range and isinstance(t, Indicator) and not reads_beyond(t):
                self._known[t] = self._within(t)
            else:
                self._known[t] = self(inner) if inner is not None else self.is_total(t) and all(map(self, _parts(t)))
        return self._known[t]

    @cached_property
    def _within(self) -> Finite:
        """The same for what stands under conditions that keep its entries in range."""
        return type(self)(self.partial, self.bounds, in_range=True)

    def is_total(self, t: Term) -> bool:
        """Whether the outermost operation of t is finite, with its derivatives, wherever its operands are."""
        match t:
            case Var():
                return t not in self.partial
            case App(Var(kind=Map() as kind) as f, args) if kind.is_array:
                return f not in self.partial and self._stay(args, kind.params) and all(map(self._placed, args))
            case App(Reduce(), ()):
                return self(t.function)
            case App(Reduce("softmax", Lam() as of) as shares, args) if _takes_part(shares.mark):
                inside = self._stay(args, [i.kind for i in of.params])
                return self(shares.body) and inside and all(map(self._placed, args))
            case App(Reduce("cross", Lam() as of) as product, (place,)):
                return self(product) and self._stay([place], [of.params[0].kind]) and self._placed(place)
            case Pow(base, exponent) if is_whole(exponent) and self.least(exponent) >= 0:
                return True
            case Pow(base, Const()):
                return self.least(base) > 0
            case Call("exp", (u,)):
                return self.least(negated(u)) >= 0
            case Call("sqrt" | "log", (u,)):
                return self.least(u) > 0
            case Call(name, (u, *_)):
                finite = SCALAR_FUNCTIONS[name].finite
                return finite == "numbers" or (finite == "reals" and not is_complex(u.type))
            case Reduce(kind):
                return kind in ("prod", "cross", *PLACES) or t.mark == ONE
            case Pow() | App() | Diff() | Loop():
                return False
            case _:
                return True

    def _kept(self, t: Term) -> Term | None:
        """The base of a power that has no exponent below 0 under the condition around it: x of [1 ≤ i] x^(i − 1)."""
        match t:
            case Indicator(left, right, Pow(base, n) | Conj(Pow(base, n))) if is_whole(n):
                return base if self.least(add(n, left, negated(right))) >= 0 else None
            case _:
                return None

    def _stay(self, indices: Sequence[Term], slots: Sequence[Type]) -> bool:
        return self.in_range or all(map(_stays, indices, slots))

    def _placed(self, index: Term) -> bool:
        """Whether numbers that decide an index, as those of an argmax, are finite."""
        return all(self(u) for u in index_atoms(index) if isinstance(u, App))

    def least(self, t: Term) -> int:
        """1 for a number that is surely positive, 0 for one that is surely not negative, else −1."""
        if t not in self._least:
            self._least[t] = -1 if is_complex(t.type) else self._bound(t)
        return self._least[t]

    def _bound(self, t: Term) -> int:
        match t:
            case Const(real):
                return 1 if real > 0 else 0 if real == 0 else -1
            case Var() | App() if isinstance(t.type, Index) and (d := t.type.domain) is not None:
                return 0 if d.directions == 1 and not (d.symmetric or d.listed) and (d.lower or 0) >= 0 else -1
            case App(Var(kind=Map(positive=True)), _):
                return 1
            case (Var() as v) | App(Var() as v, _) if v in self.bounds:
                return self.bounds[v]
            case Add(terms):
                bounds = [*map(self.least, terms)]
                return -1 if -1 in bounds else max(bounds)
            case Mul(factors):
                return min(map(self.least, factors))
            case Sum(_, Const() as body):
                return self.least(body)  # a size: of nothing, nothing has an entry
            case Sum(_, body) | Delta(_, _, body) | Indicator(_, _, body):
                return min(self.least(body), 0)
            case Pow(base, exponent):
                even = isinstance(exponent, Const) and exponent.is_integer and exponent.real % 2 == 0
                return max(self.least(base), 0 if even else -1)
            case Call("pi", ()):
                return 1
            case Call("sqrt", (u,)):
                return max(self.least(u), 0)
            case Call(name, _):
                return SCALAR_FUNCTIONS[name].least
            case _:
                return -1


def _takes_part(mark: Term) -> bool:
    """Whether a mark is 1 where conditions hold: a share in a sum of which no entry takes part is 0, as finite."""
    guard, weight = held(mark)
    return weight == ONE and not any(reads_beyond(side) for c in guard for side in (c.left, c.right))


def partial_values(
    bindings: Iterable[tuple[Var, Term]], known: Collection[Var] = (), finite: type[Finite] = Finite
) -> set[Var]:
    """The definitions that may be infinite, or have infinite derivatives, where the data are finite."""
    found = set(known)
    for var, value in bindings:
        if not finite(found)(value):
            found.add(var)
    return found


class FiniteButForOverflow(Finite):
    """Exponentials count as finite: what they overflow from is out of reach."""

    def is_total(self, t: Term) -> bool:
        """Whether the outermost operation of t is finite, with its derivatives, wherever its operands are."""
        match t:
            case Call(name, _) if name in _EXPONENTIALS:
                return True
            case _:
                return super().is_total(t)


_EXPONENTIALS = frozenset({"exp", "expm1", "sinh", "cosh", "softplus"})


class FiniteInCode(Finite):
    """What code computes without a condition: the exponential of a phase, too, which formulas keep under one.

    What is read under a condition is not computed without it.
    """

    reads_under_conditions = False

    def is_total(self, t: Term) -> bool:
        """Whether the outermost operation of t is finite, with its derivatives, wherever its operands are."""
        match t:
            case Call("exp", (u,)):
                return all(self._does_not_grow(v) for v in terms_of(u))
            case _:
                return super().is_total(t)

    def _does_not_grow(self, t: Term) -> bool:
        """Whether the exponential of a term is surely no larger than 1: that of a phase is 1."""
        is_phase = is_complex(t.type) and not is_complex(mul(IMAGINARY, t).type)
        return is_phase or self.least(negated(t)) >= 0


class FiniteValues(Finite):
    """Whether a value is finite, whatever its slope is: a root and a norm are at 0. Exponentials count as finite.

    So does what stands under a condition of its own: a value is read with it.
    """

    def __call__(self, t: Term) -> bool:
        return isinstance(t, Indicator) or super().__call__(t)

    def is_total(self, t: Term) -> bool:
        """Whether the outermost operation of t is finite wherever its operands are."""
        match t:
            case Call("exp" | "sqrt", _) | Reduce("norm"):
                return True
            case Pow(_, Const(n, imag)) if n > 0 and not imag:
                return True
            case _:
                return super().is_total(t)


def infinite_values(bindings: Iterable[tuple[Var, Term]], known: Collection[Var] = ()) -> set[Var]:
    """The definitions that may be infinite themselves where the data are finite."""
    found = set(known)
    for var, value in bindings:
        if not FiniteValues(found)(value):
            found.add(var)
    return found


def reads_beyond(t: Term, around: tuple[Indicator, ...] = ()) -> bool:
    """Whether an entry of a tensor is read that exists only under a condition, and none in t is on its index.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL, Domain
    >>> i, n = fresh("i", Index(Domain("N"))), fresh("n", REAL)
    >>> entry = App(fresh("x", Map((i.kind,), REAL)), (add(i, ONE),))
    >>> reads_beyond(entry), reads_beyond(Indicator(i, n, entry))
    (True, False)
    """
    match t:
        case App(Var(kind=Map() as kind), args) if kind.is_array:
            beyond = (u for index, slot in zip(args, kind.params, strict=True) for u in _beyond(index, slot))
            if any(not any(u.free <= (c.left.free | c.right.free) for c in around) for u in beyond):
                return True
            return any(reads_beyond(index, around) for index in args if not isinstance(index, Var | Const))
        case Indicator(left, right, body):
            return reads_beyond(left, around) or reads_beyond(right, around) or reads_beyond(body, (*around, t))
        case _:
            return any(reads_beyond(u, around) for u in children(t))


def exists_at(value: Term, slots: Mapping[Var, Term]) -> bool:
    """Whether a tensor with the entry `value` has one where its slots are these, if `value` is a number there.

    exp(u(i)) for the first n of n + 1 entries of u has no entry i + 1, though u has.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> n = Domain("n")
    >>> i, u = fresh("i", Index(n)), fresh("u", Map((Index(n.shortened(-1)),), REAL))
    >>> shorter = fresh("i", Index(n.shortened(1)))
    >>> [exists_at(App(u, (i,)), {i: at}) for at in (add(i, ONE), i, add(shorter, ONE))]
    [False, True, True]
    """
    entries = ((u.args, u.function.type) for u in subterms(value, App))
    filled = (at for args, f in entries if isinstance(f, Map) for at in zip(args, f.params, strict=True))
    whole = {index for index, slot in filled if index.type == slot}
    return all(v in whole or _is_one_of(index, v.kind) for v, index in slots.items())


def _is_one_of(index: Term, slot: Type) -> bool:
    """Whether an index is in the range of a slot: i + 1 is, for an i of one value less; one of another range is not."""
    shift = [u for u in terms_of(index) if isinstance(u, Const)]
    match [u for u in terms_of(index) if not isinstance(u, Const)]:
        case [Var(kind=Index(Domain() as own))] if isinstance(slot, Index) and slot.domain is not None:
            fewer = own.fewer(slot.domain)
            if fewer is not None and own.from_zero and slot.domain.from_zero:
                return 0 <= sum(int(c.real) for c in shift) <= fewer
            return _stays(index, slot) if shift or own == slot.domain else fewer is not None and fewer >= 0
        case _:
            return _stays(index, slot)


def _stays(index: Term, slot: Type) -> bool:
    """Whether an index is in the range of a slot without a condition that keeps it there."""
    return next(_beyond(index, slot), None) is None


def _beyond(index: Term, slot: Type) -> Iterator[Term]:
    """The index expressions, of this one and of what is read at it, that need a condition to stay in their range."""
    for atom in index_atoms(index):
        match atom:
            case App(Var(kind=Map() as kind), args) if kind.is_integers:
                for inner, own in zip(args, kind.params, strict=True):
                    yield from _beyond(inner, own)
    if not _is_within(index, slot):
        yield index


def _is_within(index: Term, slot: Type) -> bool:
    domain = slot.domain if isinstance(slot, Index) else None
    own = index.type.domain if isinstance(index, Var) and isinstance(index.type, Index) else None
    if own is not None and domain is not None and (own.fewer(domain) or 0) < 0:
        return False
    if isinstance(index, Var | Const) or domain is None or index.type == slot:
        return can_fill_slot(index)
    if domain.periodic or domain.symmetric or domain.listed or domain.directions > 1:
        return True
    if _counts_back(index, domain):
        return True
    return domain.lower is not None and domain.upper is not None and _fits(index, domain.lower, domain.upper)


def _counts_back(index: Term, domain: Domain) -> bool:
    """Whether an index is n - 1 - i, or n less a number, for the size n of its slot."""
    parts = [split_coefficient(u) for u in terms_of(index)]
    sizes = [c for c, u in parts if isinstance(u, Sum) and u.counted == domain]
    others = [(c, u) for c, u in parts if not isinstance(u, Sum)]
    indices = [(c, u) for c, u in others if u != ONE]
    last = sum(int(c.real) for c, u in others if u == ONE)
    if sizes != [ONE] or len(parts) != len(others) + 1:
        return False
    return last < 0 if not indices else last == -1 and [(c, u.type) for c, u in indices] == [(MINUS_ONE, Index(domain))]


def _fits(index: Term, lower: int, upper: int) -> bool:
    """Whether an affine form of indices with bounds has values between others only."""
    least = most = 0
    for u in terms_of(index):
        c, rest = split_coefficient(u)
        d = rest.type.domain if isinstance(rest, Var | App) and isinstance(rest.type, Index) else None
        if rest == ONE:
            ends = [int(c.real)] * 2
        elif d is not None and d.lower is not None and d.upper is not None:
            ends = sorted((int(c.real) * d.lower, int(c.real) * d.upper))
        else:
            return False
        least, most = least + ends[0], most + ends[1]
    return lower <= least and most <= upper


def _parts(t: Term) -> tuple[Term, ...]:
    """The numbers that t is made of; what is compared is not among them: what is no number is in no order."""
    match t:
        case Delta(left, right, body) if not isinstance(left.type, Index):
            # a sum over reals puts what is compared in the place of a point: Σ_t δ(1/x, t, k) t is k/x
            return (left, right, body)
        case Lam(_, body) | Sum(_, body) | Conj(body) | Proj(_, body) | Delta(_, _, body) | Indicator(_, _, body):
            return (body,)
        case Reduce("cross"):
            return (t.mark, t.body)
        case Reduce():
            return (t.body,)
        case Add(items) | Mul(items) | Tuple(items) | Call(_, items):
            return items
        case Pow(base, exponent):
            return (base, exponent)
        case Let(bindings, body):
            return (*(value for _, value in bindings), body)
        case _:
            return ()


def negated(t: Term) -> Term:
    """The negative, of each term of a sum."""
    if isinstance(t, Add):
        return add(*map(negated, t.terms))
    c, rest = split_coefficient(t)
    return mul(Const(-c.real, -c.imag), rest)


def is_whole(t: Term) -> bool:
    """Whether a number is an integer by what it is made of."""
    match t:
        case Add(parts) | Mul(parts) | Call("abs" | "abs2" | "sign" | "max" | "min", parts):
            return all(map(is_whole, parts))
        case Pow(base, Const() as n):
            return n.is_integer and n.real > 0 and is_whole(base)
        case Sum(_, body) | Delta(_, _, body) | Indicator(_, _, body):
            return is_whole(body)
        case _:
            return is_integer_valued(t)


_ZEROS = (ZERO, Call("sqrt", (ZERO,)))


def divides_by_zero(t: Term) -> bool:
    """Whether a power of 0 below 0, or of its root, stands in t where no condition keeps it away.

    >>> from combdiff.terms.terms import MINUS_ONE, ZERO, delta, fresh, power
    >>> from combdiff.terms.types import INTEGER
    >>> i, j, inverse = fresh("i", INTEGER), fresh("j", INTEGER), power(ZERO, MINUS_ONE)
    >>> divides_by_zero(inverse), divides_by_zero(delta(i, j, inverse))
    (True, False)
    """
    seen: set[Term] = set()
    waiting = [t]
    while waiting:
        match waiting.pop():
            case Pow(base, Const() as exponent) if exponent.real < 0 and base in _ZEROS:
                return True
            case Indicator(left, right) | Delta(left, right):
                waiting += [left, right]
            case other if other not in seen:
                seen.add(other)
                waiting += children(other)
    return False


# --- products -------------------------------------------------------------------------------------------------------


def unguarded(t: Term) -> tuple[Guard, Term]:
    """(guard, core): t is `core` where the guard holds, else 0, by what is linear around conditions of order.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> x, y = fresh("x", REAL), fresh("y", REAL)
    >>> guard, core = unguarded(mul(y, indicator(ONE, x, y)))
    >>> guard == (Condition(ONE, x),), core == mul(y, y)
    (True, True)
    """
    match t:
        case Indicator(left, right, body):
            guard, core = unguarded(body)
            return both((Condition(left, right),), guard), core
        case Mul(factors):
            parts = [unguarded(f) for f in factors]
            if not any(guard for guard, _ in parts):
                return (), t
            return tuple(dict.fromkeys(c for guard, _ in parts for c in guard)), mul(*(core for _, core in parts))
        case Delta(left, right, body):
            guard, core = unguarded(body)
            return guard, delta(left, right, core) if guard else t
        case Conj(body):
            guard, core = unguarded(body)
            return guard, conj(core) if guard else t
        case Call("real" | "imag" as name, (body,)):
            guard, core = unguarded(body)
            return guard, call(name, core) if guard else t
        case Sum(indices, body):
            return _unguarded_sum(t, indices, body)
        case Tuple(items):
            return _unguarded_tuple(t, items)
        case _:
            return (), t


def _unguarded_tuple(t: Term, items: Sequence[Term]) -> tuple[Guard, Term]:
    """What guards all items of a tuple but those that are 0 anyway."""
    parts = [((), item) if item == ZERO else unguarded(item) for item in items]
    guards = [guard for (guard, _), item in zip(parts, items, strict=True) if item != ZERO]
    common = tuple(c for c in guards[0] if all(c in guard for guard in guards)) if guards else ()
    if not common:
        return (), t
    return common, Tuple(tuple(under([c for c in guard if c not in common], core) for guard, core in parts))


def _unguarded_sum(t: Sum, indices: tuple[Var, ...], body: Term) -> tuple[Guard, Term]:
    """What the sum's own indices are compared with stays in it."""
    guard, core = unguarded(body)
    outer = tuple(c for c in guard if c.free.isdisjoint(indices))
    return outer, total(indices, under([c for c in guard if c not in outer], core)) if outer else t


def held(t: Term) -> tuple[Guard, Term]:
    """`unguarded`, with conditions on entries of arrays of integers, c(j) == g, among the guard.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> j, g, x = fresh("j", Index(Domain("n"))), fresh("g", Index(Domain("m"))), fresh("x", REAL)
    >>> c = App(fresh("c", Map((j.kind,), g.kind)), (j,))
    >>> held(delta(c, g, x)) == ((Condition(c, g, equal=True),), x)
    True
    """
    guard, core = unguarded(t)
    match core:
        case Delta(left, right, body) if any(map(_is_entry, (left, right))):
            inside, rest = held(body)
            return both(guard, (condition_of(core), *inside)), rest
        case Mul(factors):
            parts = [held(f) for f in factors]
            return both(guard, (c for inside, _ in parts for c in inside)), mul(*(rest for _, rest in parts))
        case _:
            return guard, core


def _is_entry(t: Term) -> bool:
    return isinstance(t, App) and isinstance(t.function, Var) and isinstance(t.type, Index)


def under(guard: Iterable[Condition], t: Term) -> Term:
    """t where all conditions hold, else 0: a number, or each number of a map or a tuple."""
    match t:
        case Lam(params, body):
            return Lam(params, under(guard, body))
        case Tuple(items):
            return Tuple(tuple(under(guard, item) for item in items))
        case _:
            c, rest = split_coefficient(t)
            for condition in reversed(tuple(guard)):
                rest = _placed(condition, rest)
            return mul(c, rest)


def _placed(condition: Condition, t: Term) -> Term:
    """`t` where a condition holds, which stays under those that keep the entries that it compares in range."""
    if not isinstance(t, Indicator) or not any(map(reads_beyond, (condition.left, condition.right))):
        return condition.over(t)
    if any(map(reads_beyond, (t.left, t.right))):
        return condition.over(t)
    return indicator(t.left, t.right, _placed(condition, t.body))


def inside(condition: Condition, t: Term) -> Term:
    """`t` where the condition holds, else 0, the condition under those around `t`, which guard what it compares."""
    match t:
        case Indicator(left, right, body):
            return indicator(left, right, inside(condition, body))
        case Mul(factors) if any(isinstance(f, Indicator) for f in factors):
            n = next(n for n, f in enumerate(factors) if isinstance(f, Indicator))
            return mul(*factors[:n], inside(condition, factors[n]), *factors[n + 1 :])
        case _:
            return under((condition,), t)


def guarded(guard: Iterable[Condition], t: Term, partial: Collection[Var] = ()) -> Term:
    """The same, what is finite in front: a·b/r is a·b·indicator(…, 1/r)."""
    match t:
        case Lam(params, body):
            return Lam(params, guarded(guard, body, partial))
        case Tuple(items):
            return Tuple(tuple(guarded(guard, item, partial) for item in items))
        case Add(terms) if not isinstance(t.type, Index):
            return add(*(guarded(guard, u, partial) for u in terms))
        case Mul(factors) if not isinstance(t.type, Index):
            inside = [f for f in factors if not is_finite(f, partial)]
            return mul(*(f for f in factors if f not in inside), under(guard, mul(*inside)))
        case _:
            return under(guard, t)
