"""Terms: the λ-calculus of tensors that every stage reads and writes.

Nodes are frozen and know their type, hash and free variables. Build them with the lower-case constructors
(`add`, `mul`, `total`, `delta`, `apply`, …), which keep sums and products flat, fold numbers, drop zeros and ones, and
apply λ-terms to their arguments, so that no pass has to. A bound variable is an identity (`Var.uid`); its name is only
for people. Nothing here knows of differentiation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count

from combdiff.language.types import COMPLEX, INTEGER, REAL, Index, Map, Product, Type, is_complex

_uids = count(1)
_set = object.__setattr__
_NO_VARIABLES: frozenset[Var] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """What all nodes share. `type` is the term's type, `free` its free variables."""

    type: Type = field(init=False, repr=False)
    free: frozenset[Var] = field(init=False, repr=False)
    _hash: int = field(init=False, repr=False)

    def _seal(self, type_: Type, parts: tuple[object, ...], free: frozenset[Var]) -> None:
        _set(self, "type", type_)
        _set(self, "free", free)
        _set(self, "_hash", hash((type(self).__name__, parts)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        # a stack, because comparing by recursion through tuples overflows C's on a term 10,000 deep
        pairs: list[tuple[object, object]] = [(self, other)]
        while pairs:
            a, b = pairs.pop()
            if a is b:
                continue
            if isinstance(a, tuple) and isinstance(b, tuple):
                if len(a) != len(b):
                    return False
                pairs.extend(zip(a, b, strict=True))
            elif isinstance(a, Var) or not isinstance(a, Term):
                if a != b:
                    return False
            elif type(a) is not type(b) or not isinstance(b, Term) or a._hash != b._hash:
                return False
            else:
                names: tuple[str, ...] = type(a).__match_args__
                pairs.extend([(getattr(a, name), getattr(b, name)) for name in names])
        return True


def _free(terms: Iterable[Term], bound: Iterable[Var] = ()) -> frozenset[Var]:
    result = _NO_VARIABLES.union(*(t.free for t in terms))
    return result.difference(bound) if result else result


@dataclass(frozen=True, slots=True, eq=False)
class Var(Term):
    """A variable; two variables are the same if their `uid` is."""

    name: str
    kind: Type
    uid: int

    def __post_init__(self) -> None:
        _set(self, "type", self.kind)
        _set(self, "_hash", self.uid)
        _set(self, "free", frozenset((self,)))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Var) and self.uid == other.uid)

    def __hash__(self) -> int:
        return self.uid


def fresh(name: str, kind: Type) -> Var:
    """A new variable, different from all others."""
    return Var(name, kind, next(_uids))


@dataclass(frozen=True, slots=True, eq=False)
class Const(Term):
    """An exact complex number with rational parts."""

    real: Fraction
    imag: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        self._seal(COMPLEX if self.imag else REAL, (self.real, self.imag), _NO_VARIABLES)

    @property
    def is_integer(self) -> bool:
        return not self.imag and self.real.denominator == 1


ZERO = Const(Fraction(0))
ONE = Const(Fraction(1))
MINUS_ONE = Const(Fraction(-1))
TWO = Const(Fraction(2))
IMAGINARY = Const(Fraction(0), Fraction(1))


@dataclass(frozen=True, slots=True, eq=False)
class Lam(Term):
    """(x, y) -> body."""

    params: tuple[Var, ...]
    body: Term

    def __post_init__(self) -> None:
        kind = Map(tuple(p.kind for p in self.params), self.body.type)
        self._seal(kind, (self.params, self.body), _free((self.body,), self.params))


@dataclass(frozen=True, slots=True, eq=False)
class App(Term):
    """f(x, y): an entry of a tensor, or a value of an unknown map."""

    function: Term
    args: tuple[Term, ...]

    def __post_init__(self) -> None:
        kind = self.function.type
        assert isinstance(kind, Map), "only maps are applied"
        self._seal(kind.result, (self.function, self.args), _free((self.function, *self.args)))


@dataclass(frozen=True, slots=True, eq=False)
class Tuple(Term):
    """(a, b)."""

    items: tuple[Term, ...]

    def __post_init__(self) -> None:
        self._seal(Product(tuple(t.type for t in self.items)), (self.items,), _free(self.items))


@dataclass(frozen=True, slots=True, eq=False)
class Proj(Term):
    """Item number `item` (from 0) of a tuple."""

    item: int
    of: Term

    def __post_init__(self) -> None:
        assert isinstance(self.of.type, Product), "only tuples have items"
        self._seal(self.of.type.items[self.item], (self.item, self.of), self.of.free)


@dataclass(frozen=True, slots=True, eq=False)
class Let(Term):
    """Values computed once and shared; each binding may use the ones before it."""

    bindings: tuple[tuple[Var, Term], ...]
    body: Term

    def __post_init__(self) -> None:
        free = self.body.free
        for var, value in reversed(self.bindings):
            free = (free - {var}) | value.free
        self._seal(self.body.type, (self.bindings, self.body), free)


@dataclass(frozen=True, slots=True, eq=False)
class Add(Term):
    """A flat sum; among indices, an affine form with its terms in the order of their variables."""

    terms: tuple[Term, ...]

    def __post_init__(self) -> None:
        self._seal(_joined(self.terms), (self.terms,), _free(self.terms))


@dataclass(frozen=True, slots=True, eq=False)
class Mul(Term):
    """A flat product, a number (if any) first."""

    factors: tuple[Term, ...]

    def __post_init__(self) -> None:
        self._seal(_joined(self.factors, product=True), (self.factors,), _free(self.factors))


@dataclass(frozen=True, slots=True, eq=False)
class Pow(Term):
    """base ^ exponent. A real base to a real power stays real (NumPy's branch)."""

    base: Term
    exponent: Term

    def __post_init__(self) -> None:
        kind = COMPLEX if is_complex(self.base.type) or is_complex(self.exponent.type) else REAL
        self._seal(kind, (self.base, self.exponent), self.base.free | self.exponent.free)


@dataclass(frozen=True, slots=True, eq=False)
class Conj(Term):
    """The complex conjugate."""

    term: Term

    def __post_init__(self) -> None:
        self._seal(self.term.type, (self.term,), self.term.free)


@dataclass(frozen=True, slots=True, eq=False)
class Call(Term):
    """A scalar function of the language (`exp`, `abs2`, …), or the number `pi` (no argument)."""

    primitive: str
    args: tuple[Term, ...]

    def __post_init__(self) -> None:
        real = self.primitive in REAL_VALUED or not any(is_complex(a.type) for a in self.args)
        self._seal(REAL if real else COMPLEX, (self.primitive, self.args), _free(self.args))


REAL_VALUED = frozenset({"abs", "abs2", "real", "imag", "pi"})


@dataclass(frozen=True, slots=True, eq=False)
class Sum(Term):
    """Σ over `indices` (∫ where an index is a real number)."""

    indices: tuple[Var, ...]
    body: Term

    def __post_init__(self) -> None:
        self._seal(_number(self.body.type), (self.indices, self.body), _free((self.body,), self.indices))


@dataclass(frozen=True, slots=True, eq=False)
class Delta(Term):
    """`body` where left = right, else 0. Dirac's for real numbers, polymorphic in general (Eq. 27)."""

    left: Term
    right: Term
    body: Term

    def __post_init__(self) -> None:
        parts = (self.left, self.right, self.body)
        self._seal(_number(self.body.type), parts, _free(parts))


@dataclass(frozen=True, slots=True, eq=False)
class Indicator(Term):
    """`body` where left ≤ right, else 0."""

    left: Term
    right: Term
    body: Term

    def __post_init__(self) -> None:
        parts = (self.left, self.right, self.body)
        self._seal(_number(self.body.type), parts, _free(parts))


@dataclass(frozen=True, slots=True, eq=False)
class Diff(Term):
    """`grad(f)` or `pullback(f)`: a derivative that is asked for, or one of an unknown map (∇R of Eq. 48).

    The gradient maps f's parameters to what has their type; the pullback takes the cotangent of f's value as well.
    """

    kind: str
    of: Term

    def __post_init__(self) -> None:
        f = self.of.type
        assert isinstance(f, Map), "only maps have derivatives"
        params = f.params if self.kind == "grad" else (*f.params, f.result)
        result = f.params[0] if len(f.params) == 1 else Product(f.params)
        self._seal(Map(params, result), (self.kind, self.of), self.of.free)


# --- types of sums and products -------------------------------------------------------------------------------------


def _number(kind: Type) -> Type:
    """The type of a sum of values of `kind`: an index in an arithmetic place is its integer value."""
    return REAL if isinstance(kind, Index) else kind


def _joined(terms: Sequence[Term], product: bool = False) -> Type:
    kinds = [t.type for t in terms]
    if any(is_complex(k) for k in kinds):
        return COMPLEX
    indices = sum(isinstance(k, Index) for k in kinds)
    if indices and (indices == 1 or not product):
        integral = all(isinstance(t.type, Index) or (isinstance(t, Const) and t.is_integer) for t in terms)
        return INTEGER if integral else REAL
    return REAL


# --- constructors ---------------------------------------------------------------------------------------------------


def number(value: int | Fraction | complex | tuple[Fraction, Fraction]) -> Const:
    """An exact number; a float or complex is taken at its exact binary value."""
    match value:
        case complex():
            return Const(Fraction(value.real), Fraction(value.imag))
        case (real, imag):
            return Const(real, imag)
        case _:
            return Const(Fraction(value))


def _times(a: Const, b: Const) -> Const:
    if not a.imag and not b.imag:
        return Const(a.real * b.real)
    return Const(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)


def _plus(a: Const, b: Const) -> Const:
    return Const(a.real + b.real, a.imag + b.imag)


def reciprocal(c: Const) -> Const:
    """1/c for c ≠ 0."""
    norm = c.real * c.real + c.imag * c.imag
    return Const(c.real / norm, -c.imag / norm)


def split_coefficient(t: Term) -> tuple[Const, Term]:
    """(c, u) with t = c·u, where u carries no number in front.

    >>> c, u = split_coefficient(mul(number(3), fresh("x", REAL)))
    >>> str(c.real)
    '3'
    """
    match t:
        case Const():
            return t, ONE
        case Mul((Const() as c, *rest)):
            return c, rest[0] if len(rest) == 1 else Mul(tuple(rest))
        case _:
            return ONE, t


def add(*terms: Term) -> Term:
    """The sum: flat, equal terms merged, zeros dropped; affine forms of indices are sorted."""
    merged: dict[Term, Const] = {}
    flat: list[Term] = []
    for t in terms:
        flat.extend(t.terms if isinstance(t, Add) else (t,))
    for t in flat:
        c, u = split_coefficient(t)
        merged[u] = _plus(merged[u], c) if u in merged else c
    kept = [mul(c, u) for u, c in merged.items() if c != ZERO]
    if not kept:
        return ZERO
    if len(kept) == 1:
        return kept[0]
    if all(isinstance(t.type, Index) or isinstance(t, Const) for t in kept):
        kept.sort(key=_affine_order)
    return Add(tuple(kept))


def _affine_order(t: Term) -> tuple[int, ...]:
    return (1,) if isinstance(t, Const) else (0, *sorted(v.uid for v in t.free))


def mul(*factors: Term) -> Term:
    """The product: flat, numbers folded in front, equal factors gathered into integer powers."""
    coefficient = ONE
    powers: dict[Term, int] = {}
    flat: list[Term] = []
    for f in factors:
        flat.extend(f.factors if isinstance(f, Mul) else (f,))
    for f in flat:
        if isinstance(f, Const):
            coefficient = _times(coefficient, f)
            continue
        base, n = _integer_power(f)
        powers[base] = powers.get(base, 0) + n
    if coefficient == ZERO:
        return ZERO
    kept = [b if n == 1 else Pow(b, number(n)) for b, n in powers.items() if n]
    if not kept:
        return coefficient
    if coefficient != ONE:
        if len(kept) == 1 and isinstance(kept[0].type, Index) and isinstance(kept[0], Add):
            return add(*(mul(coefficient, t) for t in kept[0].terms))
        kept.insert(0, coefficient)
    return kept[0] if len(kept) == 1 else Mul(tuple(kept))


def _integer_power(f: Term) -> tuple[Term, int]:
    match f:
        case Pow(base, Const() as n) if n.is_integer:
            return base, int(n.real)
        case _:
            return f, 1


def neg(t: Term) -> Term:
    """−t."""
    return mul(MINUS_ONE, t)


def sub(a: Term, b: Term) -> Term:
    """a − b."""
    return add(a, neg(b))


def power(base: Term, exponent: Term) -> Term:
    """base ^ exponent; integer powers of numbers and of integer powers are folded."""
    match base, exponent:
        case _, Const() as n if n == ZERO:
            return ONE
        case _, Const() as n if n == ONE:
            return base
        case Const() as c, Const() as n if n.is_integer and abs(n.real) <= 64 and (c != ZERO or n.real > 0):
            step = c if n.real > 0 else reciprocal(c)
            result = ONE
            for _ in range(abs(int(n.real))):
                result = _times(result, step)
            return result
        case Pow(inner, Const() as m), Const() as n if n.is_integer and m.is_integer:
            return power(inner, _times(m, n))
        case _:
            return Pow(base, exponent)


def conj(t: Term) -> Term:
    """t'; real terms are their own conjugates."""
    match t:
        case Const(real, imag):
            return Const(real, -imag) if imag else t
        case Conj(inner):
            return inner
        case _:
            return Conj(t) if is_complex(t.type) else t


def call(primitive: str, *args: Term) -> Term:
    """A scalar function of the language, by name."""
    match primitive, args:
        case "conj", (u,):
            return conj(u)
        case "real", (u,) if not is_complex(u.type):
            return u
        case "imag", (u,) if not is_complex(u.type):
            return ZERO
        case (("real" | "imag"), (Const(real, imag),)):
            return Const(real if primitive == "real" else imag)
        case "exp", (Const() as c,) if c == ZERO:
            return ONE
        case _:
            return Call(primitive, args)


PI = Call("pi", ())


def total(indices: Sequence[Var], body: Term) -> Term:
    """Σ over `indices`; nested sums become one, a number in front of the body comes in front of the sum."""
    if not indices:
        return body
    if body == ZERO:
        return ZERO
    c, rest = split_coefficient(body)
    if c != ONE and rest != ONE:
        return mul(c, total(indices, rest))
    if isinstance(body, Sum):
        return Sum((*indices, *body.indices), body.body)
    return Sum(tuple(indices), body)


def delta(left: Term, right: Term, body: Term) -> Term:
    """`body` where left = right. For indices δ(i, i, e) = e; for real numbers it stays (Dirac)."""
    if body == ZERO:
        return ZERO
    if left == right and (isinstance(left.type, Index) or isinstance(left, Const)):
        return body
    return Delta(left, right, body)


def indicator(left: Term, right: Term, body: Term) -> Term:
    """`body` where left ≤ right."""
    if body == ZERO:
        return ZERO
    if left == right:
        return body
    if isinstance(left, Const) and isinstance(right, Const):
        return body if left.real <= right.real else ZERO
    return Indicator(left, right, body)


def lam(params: Sequence[Var], body: Term) -> Term:
    """(params) -> body; `i -> f(i)` is f itself."""
    match body:
        case App(Var(type=Map(kinds)) | Diff(type=Map(kinds)) | App(type=Map(kinds)) as f, args) if (
            args == tuple(params) and f.free.isdisjoint(params) and kinds == tuple(p.kind for p in params)
        ):
            # `(t::R) -> f(t)` of a complex f is not f: the types differ
            return f
        case _:
            return Lam(tuple(params), body)


def apply(function: Term, *args: Term) -> Term:
    """f(args); a λ-term is applied by substitution into a renamed copy, a shared value keeps its bindings."""
    match function:
        case Lam(params, body):
            assert len(params) == len(args), "as many arguments as parameters"
            if params == args:
                return body
            return substitute(refreshed(body), dict(zip(params, args, strict=True)))
        case Let(bindings, body):
            return let(bindings, apply(body, *args))
        case _:
            return App(function, tuple(args))


def tuple_of(items: Sequence[Term]) -> Term:
    """One item stays bare, several are a tuple."""
    return items[0] if len(items) == 1 else Tuple(tuple(items))


def proj(item: int, of: Term) -> Term:
    """Item `item` (from 0) of `of`."""
    match of:
        case Tuple(items):
            return items[item]
        case Let(bindings, body):
            return let(bindings, proj(item, body))
        case _:
            return Proj(item, of)


def let(bindings: Sequence[tuple[Var, Term]], body: Term) -> Term:
    """Bindings that nothing uses are dropped; nested lets become one."""
    if isinstance(body, Let):
        bindings = (*bindings, *body.bindings)
        body = body.body
    used = set(body.free)
    kept: list[tuple[Var, Term]] = []
    for var, value in reversed(bindings):
        if var in used:
            kept.append((var, value))
            used |= value.free
    return Let(tuple(reversed(kept)), body) if kept else body


# --- traversal ------------------------------------------------------------------------------------------------------


def children(t: Term) -> tuple[Term, ...]:
    """The terms directly below `t`, bound variables not counted."""
    match t:
        case Var() | Const():
            return ()
        case Lam(_, body) | Sum(_, body):
            return (body,)
        case App(f, args):
            return (f, *args)
        case Tuple(items) | Add(items) | Mul(items) | Call(_, items):
            return items
        case Proj(_, of) | Diff(_, of) | Conj(of):
            return (of,)
        case Let(bindings, body):
            return (*(value for _, value in bindings), body)
        case Pow(base, exponent):
            return (base, exponent)
        case Delta(left, right, body) | Indicator(left, right, body):
            return (left, right, body)
    raise AssertionError(f"unknown node {type(t).__name__}")


def rebuild(t: Term, parts: Sequence[Term]) -> Term:
    """`t` with other children, made by the smart constructors."""
    match t:
        case Var() | Const():
            return t
        case Lam(params, _):
            return lam(params, parts[0])
        case Sum(indices, _):
            return total(indices, parts[0])
        case App():
            return apply(parts[0], *parts[1:])
        case Tuple():
            return Tuple(tuple(parts))
        case Add():
            return add(*parts)
        case Mul():
            return mul(*parts)
        case Call(primitive, _):
            return call(primitive, *parts)
        case Proj(item, _):
            return proj(item, parts[0])
        case Diff(kind, _):
            return Diff(kind, parts[0])
        case Conj():
            return conj(parts[0])
        case Let(bindings, _):
            return let([(var, value) for (var, _), value in zip(bindings, parts, strict=False)], parts[-1])
        case Pow():
            return power(parts[0], parts[1])
        case Delta():
            return delta(parts[0], parts[1], parts[2])
        case Indicator():
            return indicator(parts[0], parts[1], parts[2])
    raise AssertionError(f"unknown node {type(t).__name__}")


class Traverser:
    """A memoised bottom-up walk: `visit` sees each node after its children; shared subterms are visited once.

    >>> double = Traverser(lambda t: mul(TWO, t) if isinstance(t, Const) else t)
    >>> double(add(fresh("x", REAL), ONE)).terms[1].real
    Fraction(2, 1)
    """

    def __init__(self, visit: Callable[[Term], Term], prune: Callable[[Term], bool] = lambda _: False) -> None:
        self.visit = visit
        self.prune = prune
        self.seen: dict[Term, Term] = {}

    def __call__(self, t: Term) -> Term:
        if self.prune(t):
            return t
        known = self.seen.get(t)
        if known is None:
            below = children(t)
            parts = [self(c) for c in below]
            same = all(a is b for a, b in zip(parts, below, strict=True))
            known = self.seen[t] = self.visit(t if same else rebuild(t, parts))
        return known


def bound_by(t: Term) -> tuple[Var, ...]:
    """The variables that the node `t` itself binds."""
    match t:
        case Lam(params, _):
            return params
        case Sum(indices, _):
            return indices
        case Let(bindings, _):
            return tuple(var for var, _ in bindings)
        case _:
            return ()


def subterms(t: Term) -> Iterable[Term]:
    """Every distinct subterm of `t`, parents first."""
    seen: set[Term] = set()
    stack = [t]
    while stack:
        u = stack.pop()
        if u not in seen:
            seen.add(u)
            yield u
            stack.extend(reversed(children(u)))


def substitute(t: Term, values: Mapping[Var, Term]) -> Term:
    """`t` with free variables replaced; binders that would capture are renamed. Linear in the distinct subterms."""
    values = {var: value for var, value in values.items() if var in t.free and var is not value}
    if not values:
        return t
    entering = _NO_VARIABLES.union(*(value.free for value in values.values()))
    memo: dict[Term, Term] = {}

    def go(u: Term) -> Term:
        if u.free.isdisjoint(values):
            return u
        known = memo.get(u)
        if known is None:
            known = memo[u] = step(u)
        return known

    def step(u: Term) -> Term:
        if isinstance(u, Var):
            return values[u]
        bound = bound_by(u)
        if not entering.isdisjoint(bound) or not values.keys().isdisjoint(bound):
            u = refreshed(u)
        return rebuild(u, [go(c) for c in children(u)])

    return go(t)


def refreshed(t: Term) -> Term:
    """`t` with every bound variable renamed, so that a copy shares no binder with its original."""
    memo: dict[tuple[Term, tuple[tuple[int, int], ...]], Term] = {}

    def step(u: Term, names: Mapping[Var, Var]) -> Term:
        bound = bound_by(u)
        if not bound:
            below = children(u)
            parts = [go(c, names) for c in below]
            return u if all(a is b for a, b in zip(parts, below, strict=True)) else rebuild(u, parts)
        inner = {**names, **{var: fresh(var.name, var.kind) for var in bound}}
        own = tuple(inner[var] for var in bound)
        match u:
            case Lam(_, body):
                return Lam(own, go(body, inner))
            case Sum(_, body):
                return Sum(own, go(body, inner))
            case Let(bindings, body):
                return _refreshed_let(bindings, body, own, names)
        raise AssertionError(f"{type(u).__name__} binds nothing")

    def _refreshed_let(
        bindings: tuple[tuple[Var, Term], ...], body: Term, own: tuple[Var, ...], names: Mapping[Var, Var]
    ) -> Term:
        scope = dict(names)
        renamed = []
        for new, (var, value) in zip(own, bindings, strict=True):
            renamed.append((new, go(value, scope)))
            scope[var] = new
        return Let(tuple(renamed), go(body, scope))

    def go(u: Term, names: Mapping[Var, Var]) -> Term:
        if isinstance(u, Var):
            return names.get(u, u)
        # a subterm may stand inside a binder and outside of it, so what its names are now is part of the key
        key = (u, tuple(sorted((v.uid, names[v].uid) for v in u.free if v in names)))
        known = memo.get(key)
        if known is None:
            known = memo[key] = step(u, names)
        return known

    return go(t, {})


def alpha_equal(a: Term, b: Term) -> bool:
    """Whether two terms differ by the names of bound variables at most.

    >>> i, j = fresh("i", INTEGER), fresh("j", INTEGER)
    >>> alpha_equal(Lam((i,), i), Lam((j,), j))
    True
    """

    def same(u: Term, v: Term, names: Mapping[Var, Var]) -> bool:
        if isinstance(u, Var):
            return names.get(u, u) == v
        if type(u) is not type(v) or _label(u) != _label(v):
            return False
        left, right = children(u), children(v)
        ours, theirs = bound_by(u), bound_by(v)
        if len(left) != len(right) or [x.kind for x in ours] != [x.kind for x in theirs]:
            return False
        inner = {**names, **dict(zip(ours, theirs, strict=True))}
        if isinstance(u, Add) and isinstance(u.type, Index):
            return _same_multiset(left, right, inner)
        return all(same(x, y, inner) for x, y in zip(left, right, strict=True))

    def _same_multiset(left: Sequence[Term], right: Sequence[Term], names: Mapping[Var, Var]) -> bool:
        rest = list(right)
        for x in left:
            match_ = next((y for y in rest if same(x, y, names)), None)
            if match_ is None:
                return False
            rest.remove(match_)
        return True

    return same(a, b, {})


def _label(t: Term) -> object:
    """What tells a node from others of its kind, children and bound names aside."""
    match t:
        case Const(real, imag):
            return (real, imag)
        case Call(primitive, _) | Diff(primitive, _):
            return primitive
        case Proj(item, _):
            return item
        case _:
            return None
