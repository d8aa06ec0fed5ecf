"""The nodes of terms: frozen, with their type, hash and free variables computed when they are made.

A bound variable is an identity (`Var.uid`); its name is only for people. `arithmetic.py` and `constructors.py` make
nodes in normal form, `traversal.py` walks them, `terms.py` is all of it together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import field
from fractions import Fraction
from functools import cache
from itertools import count

from combdiff.errors import UnsupportedError
from combdiff.records import dataclass
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.numerals import check_digits
from combdiff.terms.types import (
    COMPLEX,
    INTEGER,
    REAL,
    Domain,
    Index,
    Map,
    Number,
    Product,
    Type,
    is_complex,
    is_real,
    slot_types,
)

_uids = count(1)
_set = object.__setattr__
_NO_VARIABLES: frozenset[Var] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """What all nodes share. `type` is the term's type, `free` its free variables.

    `_alike` is another term that this one was found to be equal to: what is compared once is not compared again.
    `_kinds` is set on the first question which kinds of nodes the term holds (`traversal.py`).
    """

    type: Type = field(init=False, repr=False)
    free: frozenset[Var] = field(init=False, repr=False)
    _hash: int = field(init=False, repr=False)
    _alike: Term | None = field(init=False, repr=False)
    _kinds: int = field(init=False, repr=False)

    def _seal(self, type_: Type, parts: tuple[object, ...], free: frozenset[Var]) -> None:
        _set(self, "type", type_)
        _set(self, "free", free)
        _set(self, "_hash", hash((type(self).__name__, parts)))
        _set(self, "_alike", None)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other) or not isinstance(other, Term) or self._hash != other._hash:
            return False
        if _representative(self) is _representative(other):
            return True
        # a stack, because comparing by recursion through tuples overflows C's on a term 10,000 deep
        pairs: list[tuple[object, object]] = [(self, other)]
        seen: dict[tuple[int, int], tuple[Term, Term]] = {}
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
                a, b = _representative(a), _representative(b)
                # once a pair, though it may stand in many places
                if a is not b and (id(a), id(b)) not in seen:
                    seen[id(a), id(b)] = a, b
                    pairs.extend(_compared(a, b))
        for a, b in seen.values():
            _note_equal(a, b)
        return True


def _compared(a: Term, b: Term) -> list[tuple[object, object]]:
    """What is equal in equal terms of one kind."""
    if isinstance(a, Add | Mul):
        return [(_by_hash(a), _by_hash(b))]
    if isinstance(a, Sum) and isinstance(b, Sum) and a.range is not None and b.range is not None:
        return [(a.range, b.range)]
    names: tuple[str, ...] = type(a).__match_args__
    return [(getattr(a, name), getattr(b, name)) for name in names]


def _note_equal(a: Term, b: Term) -> None:
    """From now on the two have one representative."""
    first, second = sorted((_representative(a), _representative(b)), key=id)
    # always to the one of lower address: then no circle arises, in other threads neither
    if first is not second:
        _set(second, "_alike", first)


def _representative(t: Term) -> Term:
    """One of the terms that were found to be equal to `t`, the same for all of them."""
    last = t
    while last._alike is not None:
        last = last._alike
    while t is not last:
        following = t._alike
        assert following is not None, "only the last has none"
        _set(t, "_alike", last)
        t = following
    return last


def _in_any_order(terms: Sequence[Term]) -> int:
    """A number that the terms have in common whatever their order is."""
    return hash(tuple(sorted([t._hash for t in terms])))


def terms_of(t: Term) -> tuple[Term, ...]:
    """The terms of a sum; one that is no sum is its only term."""
    return t.terms if isinstance(t, Add) else (t,)


def factors_of(t: Term) -> tuple[Term, ...]:
    """The factors of a product; one that is no product is its only factor."""
    return t.factors if isinstance(t, Mul) else (t,)


def items_of(t: Term) -> tuple[Term, ...]:
    """The items of a tuple; any other term is its only item."""
    return t.items if isinstance(t, Tuple) else (t,)


def params_of(t: Term) -> tuple[Var, ...]:
    """The parameters of a λ-term, the indices of a tensor; any other term has none."""
    return t.params if isinstance(t, Lam) else ()


def slots_of(t: Term) -> tuple[Var, ...]:
    """The indices of a tensor that is written by its entries, new ones for any other tensor; a number has none."""
    return t.params if isinstance(t, Lam) else fresh_slots(t.type)


def body_of(t: Term) -> Term:
    """The body of a λ-term, the entry of a tensor; any other term is its own body."""
    return t.body if isinstance(t, Lam) else t


def is_integer_valued(t: Term) -> bool:
    """Whether `t` is an index expression or a whole number, so that every value of it is an integer."""
    return isinstance(t.type, Index) or (isinstance(t, Const) and t.is_integer)


def is_zero(t: Term) -> bool:
    """Whether `t` is the number 0 or a tensor of zeros."""
    return is_zero(t.body) if isinstance(t, Lam) else t == ZERO


def can_fill_slot(t: Term) -> bool:
    """Whether `t` may stand in a slot of a tensor: an index expression, or a number."""
    return isinstance(t.type, Index) or isinstance(t, Const)


def compares_indices(left: Term, right: Term) -> bool:
    """Whether a δ or an indicator of these two is one of indices, rather than of numbers or maps."""
    return isinstance(left.type, Index) or isinstance(right.type, Index)


def derivative_order(t: Term) -> int:
    """How often the map `t` is differentiated: 2 for `grad(grad(f))`."""
    return 1 + derivative_order(t.of) if isinstance(t, Diff) else 0


def _by_hash(t: Term) -> tuple[Term, ...]:
    """The terms of a sum or the factors of a product, so that equal ones meet."""
    parts = t.terms if isinstance(t, Add) else t.factors if isinstance(t, Mul) else ()
    return tuple(sorted(parts, key=_hash_of))


def _hash_of(t: Term) -> int:
    return t._hash


def _free(terms: Iterable[Term], bound: Collection[Var] = ()) -> frozenset[Var]:
    each = [t.free for t in terms]
    largest = max(each, key=len, default=_NO_VARIABLES)
    # a set that is there already is taken: most terms have the variables of one of their children
    result = largest if all(map(largest.issuperset, each)) else largest.union(*each)
    return result.difference(bound) if not result.isdisjoint(bound) else result


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


def fresh_slots(kind: Type) -> tuple[Var, ...]:
    """A new variable for each slot of a tensor of this type, `d1`, `d2`, …; none for a number.

    >>> [v.name for v in fresh_slots(Map((Index(None), Index(None)), REAL))], fresh_slots(REAL)
    (['d1', 'd2'], ())
    """
    return tuple(fresh(f"d{n}", param) for n, param in enumerate(slot_types(kind), 1))


def end_named(name: str) -> Var:
    """The number of this name that is the end of an interval: one variable, for types know only its name.

    >>> end_named("a") is end_named("a")
    True
    """
    return _ENDS[name] if name in _ENDS else _ENDS.setdefault(name, fresh(name, REAL))


def is_end(v: Var) -> bool:
    """Whether a variable is the end of an interval.

    >>> is_end(end_named("a")), is_end(fresh("a", REAL))
    (True, False)
    """
    return _ENDS.get(v.name) == v


_ENDS: dict[str, Var] = {}


@dataclass(frozen=True, slots=True, eq=False)
class Const(Term):
    """An exact complex number with rational parts."""

    real: Fraction
    imag: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        parts = (self.real.numerator, self.real.denominator, self.imag.numerator, self.imag.denominator)
        check_digits(*parts)
        self._seal(COMPLEX if self.imag else REAL, parts, _NO_VARIABLES)

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
        free = set(self.body.free)
        for var, value in reversed(self.bindings):
            free.discard(var)
            free |= value.free
        self._seal(self.body.type, (self.bindings, self.body), frozenset(free))


@dataclass(frozen=True, slots=True, eq=False)
class Add(Term):
    """A flat sum, equal to one in any other order; among indices, an affine form."""

    terms: tuple[Term, ...]

    def __post_init__(self) -> None:
        self._seal(_joined(self.terms), (_in_any_order(self.terms),), _free(self.terms))


@dataclass(frozen=True, slots=True, eq=False)
class Mul(Term):
    """A flat product, equal to one in any other order; a number (if any) stands first."""

    factors: tuple[Term, ...]

    def __post_init__(self) -> None:
        self._seal(_joined(self.factors, product=True), (_in_any_order(self.factors),), _free(self.factors))


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
        real = not self.args or _is_real(self.primitive, any(is_complex(a.type) for a in self.args))
        self._seal(REAL if real else COMPLEX, (self.primitive, self.args), _free(self.args))


@cache
def _is_real(primitive: str, over_complex: bool) -> bool:
    """Whether a function's values are real, for complex arguments or for real ones."""
    row = SCALAR_FUNCTIONS.get(primitive)
    if row is None:
        raise UnsupportedError(
            f"there is no function {primitive} here", remedy=f"call cd.register({primitive!r}, ...) first, as before"
        )
    return row.real_valued if over_complex else not row.complex_valued


@dataclass(frozen=True, slots=True, eq=False)
class Sum(Term):
    """Σ over `indices` (∫ where an index is a real number)."""

    indices: tuple[Var, ...]
    body: Term

    def __post_init__(self) -> None:
        kind = INTEGER if self.counted is not None else number_type(self.body.type)
        parts = (self.indices, self.body) if self.range is None else (self.range,)
        self._seal(kind, parts, _free((self.body,), self.indices))

    @property
    def range(self) -> Domain | None:
        """The domain whose values are counted, Σ_i 1, whatever the index is called; None for other sums."""
        match self.indices, self.body:
            case (Var(kind=Index(Domain() as domain)),), Const() as one if one == ONE:
                return domain
            case _:
                return None

    @property
    def counted(self) -> Domain | None:
        """The domain of which this is the size, an integer; None for other sums, and for lists and lattices."""
        domain = self.range
        return None if domain is None or domain.directions > 1 or domain.listed else domain


@dataclass(frozen=True, slots=True, eq=False)
class Delta(Term):
    """`body` where left = right, else 0. Dirac's for real numbers, polymorphic in general (Eq. 27)."""

    left: Term
    right: Term
    body: Term

    def __post_init__(self) -> None:
        parts = (self.left, self.right, self.body)
        self._seal(number_type(self.body.type), parts, _free(parts))


@dataclass(frozen=True, slots=True, eq=False)
class Indicator(Term):
    """`body` where left ≤ right, else 0."""

    left: Term
    right: Term
    body: Term

    def __post_init__(self) -> None:
        parts = (self.left, self.right, self.body)
        self._seal(number_type(self.body.type), parts, _free(parts))


SHARES = frozenset({"ties", "softmax"})
"""Reductions whose value is a map of the indices that are bound."""
PLACES = frozenset({"argmax", "argmin"})
"""Reductions whose value is an index: a map of no indices to it, applied as an array of integers is."""
SPECTRAL = frozenset({"spectral", "spectral_along", "singular", "singular_along"})
"""Matrices with the eigenvectors, or the singular vectors, of a matrix and other numbers, and their derivatives."""
ALONG = SPECTRAL | {
    *("adjugate_along", "sqrtm_along", "expm_along", "eigvals_along", "svdvals_along", "cholesky_along", "cholback")
}
"""Derivatives of functions of a matrix along others, of which the first stands where others have the mark."""
VECTORS = frozenset({"eigvals", "svdvals", "eigvals_along", "svdvals_along"})
"""Functions of a matrix whose values are vectors."""
MATRICES = (frozenset({"inv", "adjugate", "sqrtm", "expm", "cholesky"}) | ALONG) - VECTORS
"""Functions of a matrix whose value is one, too."""
ARRAYS = MATRICES | VECTORS
"""Functions of a matrix whose value has slots."""
OF_MATRICES = ARRAYS | {"det", "logdet", "logabsdet"}
"""Functions of a matrix."""
SYMMETRISING = frozenset(
    {"cholesky", "cholesky_along", "cholback", "eigvals", "eigvals_along", "spectral", "spectral_along"}
)
"""Functions of a Hermitian matrix, which are those of its Hermitian part."""
TURNING = MATRICES - ALONG - {"cholesky"}
"""Functions of a matrix alone that are transposed where it is."""
OBLONG = frozenset({"svdvals", "svdvals_along", "singular", "singular_along"})
"""Functions of a matrix that need not be square."""
REDUCTIONS = frozenset({"prod", "maximum", "minimum", "logsumexp", "norm", "cross"}) | SHARES | PLACES | OF_MATRICES
"""What numbers are reduced to, but for their sum."""


@dataclass(frozen=True, slots=True, eq=False)
class Reduce(Term):
    """`prod(i, c, e)`, `maximum(i, c, e)`, `logsumexp(i, c, e)` …; `ties(i, c, e)`, a map of the index that is bound.

    `of` maps the indices to (mark, e): what takes part has the mark 1, all else 0. `ties` is one over the number of the
    largest values at each of them, and 0 elsewhere: the derivative of the maximum by its values. `softmax` is that of
    `logsumexp`, `norm` is √Σ|e|². `argmax` and `argmin` are the first index at which the extremum is reached; of
    nothing, the first of the range. Functions of matrices, `det`, `inv` …, are of the matrix of all e (`matrices.py`);
    derivatives along several matrices map the indices to (first, e, second, …). `cross` maps the one index of two
    vectors of three entries to (u, v): neither is a mark.
    """

    kind: str
    of: Term

    def __post_init__(self) -> None:
        assert isinstance(self.of, Lam) and isinstance(self.of.body, Tuple), "a map of indices to a mark and a number"
        number = number_type(self.of.body.items[1].type)
        kinds = tuple(p.kind for p in self.of.params)
        if self.kind in MATRICES:
            complex_ = any(is_complex(item.type) for item in self.of.body.items)
            turned = kinds if self.kind in OBLONG else kinds[::-1]
            kind: Type = Map(turned, COMPLEX if complex_ else REAL)
        elif self.kind in VECTORS:
            kind = Map(kinds[1:], REAL)
        elif self.kind in SHARES:
            kind = Map(kinds, REAL)
        elif self.kind == "cross":
            kind = Map(kinds, COMPLEX if any(is_complex(item.type) for item in self.of.body.items) else REAL)
        elif self.kind in PLACES:
            kind = Map((), kinds[0])
        else:
            kind = REAL if self.kind in ("norm", "logabsdet") else number
        self._seal(kind, (self.kind, self.of), self.of.free)

    @property
    def indices(self) -> tuple[Var, ...]:
        """What it runs over."""
        assert isinstance(self.of, Lam), "a map of indices"
        return self.of.params

    @property
    def mark(self) -> Term:
        """1 for what takes part, else 0."""
        assert isinstance(self.of, Lam) and isinstance(self.of.body, Tuple), "a map of indices to a mark and a number"
        return self.of.body.items[0]

    @property
    def body(self) -> Term:
        """The numbers."""
        assert isinstance(self.of, Lam) and isinstance(self.of.body, Tuple), "a map of indices to a mark and a number"
        return self.of.body.items[1]

    @property
    def marks(self) -> tuple[Term, ...]:
        """The mark, and the further matrices along which a function of a matrix is differentiated."""
        assert isinstance(self.of, Lam) and isinstance(self.of.body, Tuple), "a map of indices to a mark and a number"
        first, _, *others = self.of.body.items
        return (first, *others)


@dataclass(frozen=True, slots=True, eq=False)
class Diff(Term):
    """What a map f is turned into: `grad(f)`, `pullback(f)`, `jvp(f)`, `adjoint(f)`, `inverse(f)`, `root(f)`.

    A derivative is asked for, or that of an unknown map (∇R of Eq. 48). That of an unknown function of one real number
    is the derivative along it, dψ/dt, be ψ complex or not. `jvp` and `jacobian` are asked for only, and
    of known maps. The gradient maps f's parameters to what has their type; the pullback takes the cotangent of f's
    value as well, the pushforward `jvp` a tangent of each parameter. The adjoint and the inverse of a linear f map its
    values to what has the type of its parameter, and are linear themselves. The root is a value x with f(x) = 0.
    """

    kind: str
    of: Term

    def __post_init__(self) -> None:
        f = self.of.type
        assert isinstance(f, Map), "only maps have derivatives"
        # the gradient of a known complex map is that of its real part
        curve = self.kind == "grad" and is_curve(f) and not isinstance(self.of, Lam | Let)
        kind = Map(f.params, f.result) if curve else _transformed(self.kind, f)
        self._seal(kind, (self.kind, self.of), self.of.free)

    @property
    def is_derivative(self) -> bool:
        """Whether it is a gradient, a pullback, a pushforward or a Jacobian."""
        return self.kind in ("grad", "pullback", "jvp", "jacobian")


def is_curve(kind: Type) -> bool:
    """Whether it is a function of one real number with numbers for values.

    >>> is_curve(Map((REAL,), COMPLEX)), is_curve(Map((COMPLEX,), COMPLEX))
    (True, False)
    """
    of_one = isinstance(kind, Map) and len(kind.params) == 1 and isinstance(kind.result, Number)
    return of_one and isinstance(kind, Map) and is_real(kind.params[0])


def _transformed(kind: str, f: Map) -> Type:
    """The type of what `kind` makes of a map of type `f`."""
    params = tuple(REAL if is_real(p) else p for p in f.params)  # a slope is no point of the interval
    argument = params[0] if len(params) == 1 else Product(params)
    match kind:
        case "root":
            return argument
        case "adjoint" | "inverse":
            return Map((f.result,), argument, linear=True)
        case "grad":
            return Map(f.params, argument)
        case "jvp":
            return Map((*f.params, *f.params), f.result)
        case "jacobian":
            # known to be a map of the point; what it returns depends on what turns out to be 0
            return Map(f.params, f.result)
        case _:
            return Map((*f.params, f.result), argument)


@dataclass(frozen=True, slots=True, eq=False)
class Loop(Term):
    """A state of the recurrence s(t + 1) = step(s(t), t), s(0) = start, for as many steps as t has values.

    `step` maps the states and t to the tuple of the next states, `start` is the tuple of the first. The value is the
    state number `item` (from 0): the `last`, or with `kind` "states" the map from t to the state before step t. A loop
    `backward` begins with the last t. In a program a loop is the value of a definition, or of one inside of a step.
    """

    kind: str
    item: int
    backward: bool
    step: Term
    start: Term

    def __post_init__(self) -> None:
        assert isinstance(self.step, Lam) and isinstance(self.start, Tuple), "a step, and a tuple of states"
        state = self.states[self.item].kind
        kind = state if self.kind == "last" else along(self.time.kind, state)
        parts = (self.kind, self.item, self.backward, self.step, self.start)
        self._seal(kind, parts, self.step.free | self.start.free)

    @property
    def states(self) -> tuple[Var, ...]:
        """What a step calls the states."""
        assert isinstance(self.step, Lam), "a map"
        return self.step.params[:-1]

    @property
    def time(self) -> Var:
        """What a step calls its number."""
        assert isinstance(self.step, Lam), "a map"
        return self.step.params[-1]


def along(time: Type, kind: Type) -> Map:
    """The type of a map from `time` to numbers, or to the entries of tensors, the slot of the time first."""
    return Map((time, *kind.params), kind.result) if isinstance(kind, Map) else Map((time,), kind)


# --- types of sums and products -------------------------------------------------------------------------------------


def number_type(kind: Type) -> Type:
    """The type of a sum of values of `kind`: an index in an arithmetic place is its integer value."""
    return REAL if isinstance(kind, Index) else kind


def _joined(terms: Sequence[Term], product: bool = False) -> Type:
    indices = 0
    for t in terms:
        if isinstance(t.type, Index):
            indices += 1
        elif is_complex(t.type):
            return COMPLEX
    if indices and (indices == 1 or not product):
        integral = all(isinstance(t.type, Index) or (isinstance(t, Const) and t.is_integer) for t in terms)
        return INTEGER if integral else REAL
    return REAL
