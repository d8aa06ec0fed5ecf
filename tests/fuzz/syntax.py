"""Programs as the generator makes them: types, expressions and parameters, with variables that are identities.

A variable has no name that counts: `naming.py` chooses names when a program is written out, so that no expression can
capture a variable by accident, and `signature.py` compares programs up to renaming.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any

from .kinds import COMPLEX, REAL, Function, Index, Integers, Items, Number, Tensor, Truth, Type, longer, over_complex
from .kinds import Range as Range

# --- expressions ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Var:
    """A variable: a parameter, an index, a definition; with the sort of name that it likes, `=x` for x itself.

    The data of a `positive` one are above 0.
    """

    kind: Type
    hint: str = ""
    positive: bool = False


@dataclass(frozen=True, eq=False)
class Looked(Var):
    """J(e, …), an entry of an array of integers, which stands where an index may stand."""

    array: Var | None = None
    args: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False)
class Expr:
    """An expression; `kind` is its type, found once."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", self._kind())

    kind: Type = field(init=False, repr=False)

    def _kind(self) -> Type:
        raise NotImplementedError


def node(cls: type) -> Any:
    return dataclass(frozen=True, eq=False)(cls)


@node
class Literal(Expr):
    value: Fraction

    def _kind(self) -> Type:
        return REAL


@node
class Constant(Expr):
    """`pi` or `im`."""

    name: str

    def _kind(self) -> Type:
        return COMPLEX if self.name == "im" else REAL


@node
class Ref(Expr):
    """A variable that is a number, a tensor, a function or a tuple."""

    var: Var

    def _kind(self) -> Type:
        return self.var.kind


@node
class Affine(Expr):
    """An index expression Σ cₙ iₙ + constant + first: in a slot, in a comparison, or as a number.

    `first` is the index at which an extremum is reached first, a `Reduced` of PLACES.
    """

    terms: tuple[tuple[int, Var], ...]
    constant: int = 0
    first: Expr | None = None

    def _kind(self) -> Type:
        return REAL

    @property
    def bare(self) -> Var | None:
        """The index that stands alone."""
        if len(self.terms) != 1 or self.terms[0][0] != 1 or self.constant or self.first is not None:
            return None
        return None if isinstance(self.terms[0][1], Looked) else self.terms[0][1]


@node
class Add(Expr):
    terms: tuple[Expr, ...]

    def _kind(self) -> Type:
        return _joined(self.terms)


@node
class Mul(Expr):
    factors: tuple[Expr, ...]

    def _kind(self) -> Type:
        return _joined(self.factors)


@node
class Neg(Expr):
    of: Expr

    def _kind(self) -> Type:
        return self.of.kind


@node
class Div(Expr):
    top: Expr
    below: Expr

    def _kind(self) -> Type:
        return _joined((self.top, self.below))


def is_zero(e: Expr) -> bool:
    """Whether an exponent is written 0."""
    return isinstance(e, Literal) and not e.value


@node
class Power(Expr):
    base: Expr
    exponent: Expr

    def _kind(self) -> Type:
        # z^0 is the real number 1
        return Number(False) if is_zero(self.exponent) else _joined((self.base, self.exponent))


@node
class Conj(Expr):
    of: Expr

    def _kind(self) -> Type:
        return self.of.kind


REAL_VALUED = frozenset({"real", "imag", "abs", "abs2", "angle"})


@node
class Call(Expr):
    """A function of the language; `piped` if it is written behind its argument, `x ▷ f`."""

    name: str
    of: Expr
    piped: bool = False

    def _kind(self) -> Type:
        return REAL if self.name in REAL_VALUED else Number(self.name == "complex" or over_complex(self.of.kind))


@node
class Sum(Expr):
    indices: tuple[Var, ...]
    body: Expr

    def _kind(self) -> Type:
        return self.body.kind


@node
class Delta(Expr):
    left: Affine
    right: Affine
    body: Expr

    def _kind(self) -> Type:
        return self.body.kind


@node
class Indicator(Expr):
    """`body` where left ≤ right: two indices, or two real numbers."""

    left: Expr
    right: Expr
    body: Expr

    def _kind(self) -> Type:
        return self.body.kind


@node
class Compared(Expr):
    """`a < b`, or a chain `a <= b < c`: one sign less than sides."""

    sides: tuple[Expr, ...]
    signs: tuple[str, ...]

    def _kind(self) -> Type:
        return Truth()


@node
class Joined(Expr):
    """Conditions joined by `and` or by `or`."""

    word: str
    items: tuple[Expr, ...]

    def _kind(self) -> Type:
        return Truth()


@node
class Not(Expr):
    of: Expr

    def _kind(self) -> Type:
        return Truth()


@node
class Where(Expr):
    """`where(c, a, b)`; without b it is 0 where c is false."""

    condition: Expr
    body: Expr
    otherwise: Expr | None = None

    def _kind(self) -> Type:
        return _joined((self.body, *((self.otherwise,) if self.otherwise is not None else ())))


PLACES = ("argmax", "argmin")
"""Reductions whose value is an index."""
MATRICES = ("inv", "adjugate")
OF_MATRICES = (*MATRICES, "det", "logdet", "logabsdet")
"""Functions of the matrix of the numbers, which has two indices."""
TENSORS = ("softmax", "ties", "cumsum", "cross", *MATRICES)
"""Reductions whose value is a map of their indices."""
OF_COMPLEX = ("sum", "prod", "mean", "cumsum", "cross", "det", *MATRICES)
"""Reductions that take complex numbers, too."""


@node
class Reduced(Expr):
    """`maximum((i, j), c, e)` and its like, and a sum with a condition: a number, or a map of the indices.

    A number in place of the condition is a weight; of `cross` it is the first vector, and the body the second one.
    """

    name: str
    indices: tuple[Var, ...]
    body: Expr
    condition: Expr | None = None

    @property
    def weighted(self) -> bool:
        return self.condition is not None and isinstance(self.condition.kind, Number)

    def _kind(self) -> Type:
        c = self.name in OF_COMPLEX and over_complex(self.body.kind)
        if self.name == "cross" and self.condition is not None:
            c = c or over_complex(self.condition.kind)
        if self.name in TENSORS:
            return Tensor(tuple(i.kind.range for i in self.indices if isinstance(i.kind, Index)), c)
        return Number(c)


@node
class Norm(Expr):
    """`norm(x)` of a tensor, or of a map of indices."""

    of: Expr

    def _kind(self) -> Type:
        return REAL


@node
class Several(Expr):
    """A function of several numbers: `max(a, b)`, `clip(x, a, b)`, `polygamma(1, x)`."""

    name: str
    args: tuple[Expr, ...]

    def _kind(self) -> Type:
        return REAL


@node
class Size(Expr):
    """The size of an index's range as a number: n of `N{n}`, `size(Z)` of a domain."""

    of: Var

    def _kind(self) -> Type:
        return REAL


@node
class Integral(Expr):
    """∫ δ(slope · var, at, body) d var, which is body(at/slope)/|slope|."""

    var: Var
    slope: Fraction
    at: Expr
    body: Expr

    def _kind(self) -> Type:
        return self.body.kind


@node
class Lam(Expr):
    """A map: a tensor if all parameters are indices, else a function."""

    params: tuple[Var, ...]
    body: Expr

    def _kind(self) -> Type:
        kinds = tuple(p.kind for p in self.params)
        if all(isinstance(k, Index) for k in kinds):
            return Tensor(tuple(k.range for k in kinds), over_complex(self.body.kind))  # type: ignore[union-attr]
        return Function(kinds, self.body.kind)


@node
class App(Expr):
    """A tensor at indices, or a function at arguments; `brackets`: written A[i, j]; `piped`: x ▷ f."""

    function: Expr
    args: tuple[Expr, ...]
    brackets: bool = False
    piped: bool = False

    def _kind(self) -> Type:
        kind = self.function.kind
        if isinstance(kind, Tensor):
            return Number(kind.complex)
        assert isinstance(kind, Function), "only maps are applied"
        return kind.result


@node
class Tuple(Expr):
    items: tuple[Expr, ...]

    def _kind(self) -> Type:
        return Items(tuple(item.kind for item in self.items))


@node
class Derived(Expr):
    """`grad(f)`, `pullback(f)`, `adjoint(D)`, `inverse(H)`, `root(g)`; `which` of several derivatives, from 1."""

    how: str
    of: Expr
    which: int = 0

    def _kind(self) -> Type:
        f = self.of.kind
        assert isinstance(f, Function), "only functions are derived"
        match self.how:
            case "root":
                return f.params[0]
            case "adjoint":
                return Function((f.result,), f.params[0], f.linear)
            case "inverse":
                return Function((f.result,), f.params[0])
        params = f.params + ((f.result,) if self.how == "pullback" else ())
        of = f.params[self.which - 1] if self.which else f.params[0] if len(f.params) == 1 else Items(f.params)
        return Function(params, of)


@node
class Definition(Expr):
    """`a = e`, `(a, b) = e`, or `a := e` where `textual`."""

    names: tuple[Var, ...]
    value: Expr
    textual: bool = False

    def _kind(self) -> Type:
        return self.value.kind


@node
class Block(Expr):
    """`begin a = e; …; body end`."""

    definitions: tuple[Definition, ...]
    body: Expr

    def _kind(self) -> Type:
        return self.body.kind


@node
class Loop(Expr):
    """`iterate((s, t) -> step, start, T)`, or `scan`; several states are tuples. `stop` is the condition to go on.

    There are as many steps as `time` has values.
    """

    name: str
    states: tuple[Var, ...]
    time: Var
    starts: tuple[Expr, ...]
    step: Expr
    stop: Expr | None = None

    def _kind(self) -> Type:
        kinds = tuple(s.kind if self.name == "iterate" else self._all_states(s.kind) for s in self.states)
        return kinds[0] if len(kinds) == 1 else Items(kinds)

    def _all_states(self, kind: Type) -> Tensor:
        assert isinstance(self.time.kind, Index), "time is an index"
        own = kind.slots if isinstance(kind, Tensor) else ()
        return Tensor((longer(self.time.kind.range, 1), *own), over_complex(kind))


def _joined(parts: tuple[Expr, ...]) -> Number:
    return Number(any(over_complex(p.kind) for p in parts))


# --- programs -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Program:
    """`groups` of parameters, the last of which is varied, and what the program computes.

    `mode` is what is asked for, grad, pullback or hvp; `marker`: where the text itself says `grad(…)` or `pullback(…)`.
    """

    groups: tuple[tuple[Var, ...], ...]
    body: Expr
    mode: str = "grad"
    marked: bool = False
    seed: int = 0

    @property
    def unknowns(self) -> tuple[Var, ...]:
        return self.groups[-1]

    @property
    def params(self) -> tuple[Var, ...]:
        return tuple(p for group in self.groups for p in group)


# --- walks ----------------------------------------------------------------------------------------------------------


def children(e: Expr) -> Iterator[Expr]:
    """The expressions directly below `e`."""
    for f in _FIELDS[type(e)]:
        value = getattr(e, f)
        if isinstance(value, Expr):
            yield value
        elif isinstance(value, tuple):
            yield from (v for v in value if isinstance(v, Expr))


def walk(e: Expr) -> Iterator[Expr]:
    """`e` and everything below it."""
    yield e
    for below in children(e):
        yield from walk(below)


def rebuilt(e: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """`e` with `change` applied to each expression directly below it."""
    new: dict[str, object] = {}
    changed = False
    for f in _FIELDS[type(e)]:
        value = getattr(e, f)
        if isinstance(value, Expr):
            new[f] = change(value)
            changed = changed or new[f] is not value
        elif isinstance(value, tuple) and any(isinstance(v, Expr) for v in value):
            new[f] = tuple(change(v) if isinstance(v, Expr) else v for v in value)
            changed = changed or any(a is not b for a, b in zip(new[f], value, strict=True))  # type: ignore[call-overload]
        else:
            new[f] = value
    return type(e)(**new) if changed else e


def bound_by(e: Expr) -> tuple[Var, ...]:
    """The variables that `e` itself binds."""
    match e:
        case Sum(indices) | Reduced(_, indices):
            return indices
        case Lam(params):
            return params
        case Integral(var):
            return (var,)
        case Block(definitions):
            return tuple(v for d in definitions for v in d.names)
        case Loop(_, states, time):
            return (*states, time)
        case _:
            return ()


def copied(e: Expr, known: dict[Var, Var] | None = None) -> Expr:
    """`e` with new variables for those that it binds: an expression that stands twice binds each time anew."""
    names = {} if known is None else known

    def change(u: Expr) -> Expr:
        for v in bound_by(u):
            names.setdefault(v, Var(v.kind, v.hint, v.positive))
        return replaced(rebuilt(u, change), names)

    return change(e)


def replaced(e: Expr, names: Mapping[Var, Var]) -> Expr:
    """`e` itself, not what is below it, with other variables."""
    match e:
        case Ref(var):
            return Ref(names.get(var, var))
        case Affine(terms, constant, first):
            return Affine(tuple((c, _other(v, names)) for c, v in terms), constant, first)
        case Sum(indices, body):
            return Sum(tuple(names.get(v, v) for v in indices), body)
        case Reduced(name, indices, body, condition):
            return Reduced(name, tuple(names.get(v, v) for v in indices), body, condition)
        case Size(of):
            return Size(names.get(of, of))
        case Lam(params, body):
            return Lam(tuple(names.get(v, v) for v in params), body)
        case Integral(var, slope, at, body):
            return Integral(names.get(var, var), slope, at, body)
        case Definition(variables, value, textual):
            return Definition(tuple(names.get(v, v) for v in variables), value, textual)
        case Loop(name, states, time, starts, step, stop):
            return Loop(name, tuple(names.get(v, v) for v in states), names.get(time, time), starts, step, stop)
        case _:
            return e


def _other(v: Var, names: Mapping[Var, Var]) -> Var:
    """An index with other variables in it."""
    if not isinstance(v, Looked) or v.array is None:
        return names.get(v, v)
    array = names.get(v.array, v.array)
    assert isinstance(array.kind, Integers), "an array of integers"
    return Looked(Index(array.kind.entry), array=array, args=tuple(replaced(a, names) for a in v.args))


_FIELDS: dict[type, tuple[str, ...]] = {
    cls: tuple(f.name for f in fields(cls) if f.init) for cls in Expr.__subclasses__()
}
