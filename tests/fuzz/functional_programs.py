"""Random functionals: trees that are written as text, and computed by NumPy with a quadrature rule.

Unknowns are functions on intervals, and numbers. Nothing of this is the package's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.polynomial import Polynomial

Array: TypeAlias = Any
STENCIL = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))
"""Weights of the symmetric first difference of the eighth order."""


# --- functions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Smooth:
    """p(x) exp(q(x)), which has all derivatives."""

    p: Polynomial
    q: Polynomial

    def __call__(self, x: Array) -> Array:
        return self.p(x) * np.exp(self.q(x))

    def deriv(self, n: int = 1) -> Smooth:
        return self if n == 0 else Smooth(self.p.deriv() + self.q.deriv() * self.p, self.q).deriv(n - 1)

    def moved(self, e: float, by: Smooth) -> Smooth:
        return Smooth(self.p + e * by.p, self.q)


@dataclass(frozen=True)
class Wave:
    """a sin(b x + c), a function that is given."""

    a: float
    b: float
    c: float

    def __call__(self, x: Array) -> Array:
        return self.a * np.sin(self.b * x + self.c)

    def deriv(self, n: int = 1) -> Wave:
        return Wave(self.a * self.b**n, self.b, self.c + n * np.pi / 2)


@dataclass(frozen=True)
class Kernel:
    """a sin(b x + c s + d), with the derivatives that code may call."""

    a: float
    b: float
    c: float
    d: float

    def __call__(self, x: Array, s: Array, n: int = 0, m: int = 0) -> Array:
        angle = self.b * x + self.c * s + self.d + (n + m) * np.pi / 2
        return self.a * self.b**n * self.c**m * np.sin(angle)

    def grad(self, x: Array, s: Array) -> Array:
        return self(x, s, 1, 0), self(x, s, 0, 1)

    def twice(self, x: Array, s: Array, c: tuple[Array, Array], k: tuple[Array, Array]) -> Array:
        """The pullback of that of the gradient, by x, s and c."""
        of = [
            sum(self(x, s, 2 - i - j + 1 - n, i + j + n) * c[i] * k[j] for i in (0, 1) for j in (0, 1)) for n in (0, 1)
        ]
        return *of, self.pulled(x, s, k)

    def pulled(self, x: Array, s: Array, k: tuple[Array, Array]) -> Array:
        mixed = self(x, s, 1, 1)
        return self(x, s, 2, 0) * k[0] + mixed * k[1], mixed * k[0] + self(x, s, 0, 2) * k[1]


# --- programs ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Node:
    """An expression: an operation, and its operands, which are expressions, names and numbers."""

    op: str
    args: tuple[Any, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        return tuple(a for a in self.args if isinstance(a, Node))


def walk(node: Node) -> Iterator[Node]:
    """A tree from its leaves on."""
    for child in node.children:
        yield from walk(child)
    yield node


@dataclass(frozen=True)
class Line:
    """An interval with its name; bounds are None where it has no end."""

    name: str
    lower: float | None
    upper: float | None

    @property
    def declared(self) -> str:
        ends = {"lower": self.lower, "upper": self.upper}
        bounds = "".join(f"; {end} = {value:g}" for end, value in ends.items() if value is not None)
        return f"@domain {self.name} begin base = R{bounds} end"

    @property
    def ends(self) -> list[float]:
        return [e for e in (self.lower, self.upper) if e is not None]

    @property
    def bounded(self) -> bool:
        return len(self.ends) == 2

    def rule(self, n: int, pieces: int) -> Array:
        """Nodes and weights that are exact enough for integration by parts."""
        if not self.ends:
            x = np.linspace(-9, 9, 6 * n + 1)
            return np.stack([x, np.full(len(x), x[1] - x[0])])
        pieces, n = (pieces, n) if self.bounded else (6, n // 2)
        lower = self.lower if self.lower is not None else self.ends[0] - 36
        upper = self.upper if self.upper is not None else self.ends[-1] + 36
        x, w = np.polynomial.legendre.leggauss(n)
        half = (upper - lower) / pieces / 2
        middles = lower + half * (1 + 2 * np.arange(pieces))
        return np.stack([(middles[:, None] + half * x).ravel(), np.tile(half * w, pieces)])

    @property
    def envelope(self) -> Polynomial:
        """q, for which exp(q(x)) falls off where there is no end."""
        if not self.ends:
            return Polynomial([0, 0, -0.5])
        return Polynomial([0] if self.bounded else [0, -1] if self.upper is None else [0, 1])

    @property
    def weight(self) -> str:
        """A factor that falls off where there is no end."""
        return "" if self.bounded else "exp(-t^2)" if not self.ends else "exp(-t)" if self.upper is None else "exp(t)"


@dataclass(frozen=True)
class Unknown:
    """A function to differentiate by, on an interval, whose derivatives of the `fixed` orders are kept at the ends.

    One of the `whole` line is defined beyond its interval, too.
    """

    name: str
    line: Line
    fixed: tuple[int, ...] | bool = ()
    whole: bool = False

    @property
    def kind(self) -> str:
        if self.whole:
            return "RF"
        return f"V{self.name}" if self.fixed else f"({self.line.name}) -> R"

    @property
    def declared(self) -> str:
        orders = "true" if self.fixed is True else f"({', '.join(map(str, self.fixed or ()))},)"
        space = f"@space {self.kind} begin type = ({self.line.name}) -> R; fixed = {orders} end\n"
        return space if self.fixed else ""

    def keeps(self, order: int) -> bool:
        return self.fixed is True or (isinstance(self.fixed, tuple) and order in self.fixed)

    def variation(self, rng: np.random.Generator) -> Smooth:
        """A smooth function that respects what is fixed at the ends."""
        basis = [Smooth(Polynomial.basis(n), self.line.envelope) for n in range(13 if self.fixed else 5)]
        kept = [n for n in range(5) if self.keeps(n)]
        conditions = np.array([[b.deriv(n)(e) for b in basis] for n in kept for e in self.line.ends])
        c = rng.standard_normal(len(basis)) * 0.5 ** np.arange(len(basis))
        if len(conditions):
            *_, free = np.linalg.svd(conditions / abs(conditions).max(1, keepdims=True))
            free = free[len(conditions) :]
            c = free.T @ (free @ c)
        v = Smooth(Polynomial(c), self.line.envelope)
        x = self.line.rule(20, 1)[0]
        return Smooth(v.p / max(abs(v.deriv(n)(x)).max() / 3**n for n in range(4)), v.q)


KINDS = {"f": "RF", "g": "RF", "k": "RO", "a": "R", "b": "R", "c": "RV"}


@dataclass(frozen=True)
class Program:
    """A functional: its value, its unknown functions, its unknown numbers; `given` are all other functions."""

    body: Node
    unknowns: tuple[Unknown, ...]
    numbers: tuple[str, ...]
    given: tuple[Unknown, ...]

    @property
    def lines(self) -> list[Line]:
        return list(dict.fromkeys(u.line for u in (*self.unknowns, *self.given)))

    @property
    def parameters(self) -> list[str]:
        """What is given, with its types."""
        names = {n.args[0] for n in walk(self.body) if n.op in ("function", "kernel", "number", "series")}
        kinds = KINDS | {u.name: u.kind for u in self.given}
        return [f"{n}::{kinds[n]}" for n in sorted(names) if n in kinds and n not in self.numbers]

    @property
    def text(self) -> str:
        unknown = [f"{u.name}::{u.kind}" for u in self.unknowns]
        unknown += [f"{n}::{KINDS[n]}" for n in self.numbers]
        head = "".join(f"{line.declared}\n" for line in self.lines)
        head += "".join("" if u.whole else u.declared for u in (*self.unknowns, *self.given))
        first = f"({', '.join(self.parameters)}) -> " if self.parameters else ""
        return f"{head}{first}({', '.join(unknown)}) -> {block(self.body)}"


def block(body: Node) -> str:
    """The value with its definitions before it."""
    known = dict.fromkeys(definition(n) for n in walk(body) if n.op in ("named", "defined"))
    lines = "".join(f"  {line}\n" for line in known)
    return f"begin\n{lines}  {text(body)}\nend" if lines else text(body)


def definition(node: Node) -> str:
    match node.op, node.args:
        case "named", (name, value):
            return f"{name} = {text(value)}"
        case _, (name, over, _, at, body, _):
            return f"{name} = ({at}::{over}) -> {text(body)}"
    raise AssertionError(node.op)


_LEVELS = {"add": 1, "subtract": 1, "multiply": 2, "divide": 2, "power": 2}


def at_level(node: Node, level: int) -> str:
    """The text of an operand, with parentheses where it binds less tightly."""
    return text(node) if _LEVELS.get(node.op, 3) >= level else f"({text(node)})"


def text(node: Node) -> str:
    match node.op, node.args:
        case (("number" | "variable"), (name,)):
            return str(name)
        case "constant", (value,):
            return str(value)
        case "add", (a, b):
            return f"{at_level(a, 1)} + {at_level(b, 2)}"
        case "subtract", (a, b):
            return f"{at_level(a, 1)} - {at_level(b, 2)}"
        case "multiply", (a, b):
            return f"{at_level(a, 2)} * {at_level(b, 3)}"
        case "divide", (a, b):
            return f"{at_level(a, 2)} / {at_level(b, 3)}"
        case "power", (a, n):
            return f"{at_level(a, 3)}^{n}"
        case "scalar", (name, a):
            return f"{name}({text(a)})"
        case "integral", (line, at, body):
            return f"sum({at}::{line.name}, {text(body)})"
        case "series", (name, a):
            return f"sum(n, {name}(n) * {at_level(a, 3)}^n)"
        case "kernel", (name, a, b):
            return f"{name}({text(a)}, {text(b)})"
        case _:
            return of_function(node)


def of_function(node: Node) -> str:
    match node.op, node.args:
        case "function", (name, order, a):
            return f"{'grad(' * order}{name}{')' * order}({text(a)})"
        case "local", (over, order, at, body, a):
            return f"{'grad(' * order}({at}::{over}) -> {text(body)}{')' * order}({text(a)})"
        case "named", (name, _):
            return str(name)
        case "defined", (name, _, order, _, _, a):
            return f"{'grad(' * order}{name}{')' * order}({text(a)})"
    raise AssertionError(node.op)


# --- values --------------------------------------------------------------------------------------------------------

_SCALARS: dict[str, Callable[[Array], Array]] = {
    "sin": np.sin, "cos": np.cos, "exp": np.exp, "tanh": np.tanh, "atan": np.arctan, "sqrt": np.sqrt, "log": np.log,
    "abs": np.abs, "cosh": np.cosh,
}  # fmt: skip


@dataclass(frozen=True)
class Point:
    """What names stand for: functions and numbers, the values of variables, and how many integrals are open."""

    names: Mapping[str, Any]
    rules: Mapping[Line, Array]
    step: float
    """of the differences that are derivatives of functions of the program"""
    depth: int = 0

    def with_(self, **names: Any) -> Point:
        return replace(self, names={**self.names, **names})

    def value(self, node: Node) -> Array:
        match node.op, node.args:
            case (("number" | "variable"), (name,)):
                return self.names[name]
            case "constant", (value,):
                return float(value)
            case (("add" | "subtract" | "multiply" | "divide"), (a, b)):
                return getattr(np, node.op)(self.value(a), self.value(b))
            case "power", (a, n):
                return self.value(a) ** n
            case "scalar", (name, a):
                return _SCALARS[name](self.value(a))
            case "integral", (line, at, body):
                return self.integral(line, at, body)
            case "series", (name, a):
                return Polynomial(self.names[name])(self.value(a))
            case "kernel", (name, a, b):
                return self.names[name](self.value(a), self.value(b))
            case "function", (name, order, a):
                return self.names[name].deriv(order)(self.value(a))
            case "named", (_, value):
                return self.value(value)
            case (("local" | "defined"), (*_, order, at, body, a)):
                return self.slope(at, body, order, self.value(a))
        raise AssertionError(node.op)

    def integral(self, line: Line, at: str, body: Node) -> Array:
        x, w = (u.reshape(-1, *([1] * self.depth)) for u in self.rules[line])
        found = np.asarray(replace(self.with_(**{at: x}), depth=self.depth + 1).value(body))
        return (found * w).sum(0) if found.ndim > self.depth else found * w.sum()

    def slope(self, at: str, body: Node, order: int, x: Array) -> Array:
        if order == 0:
            return self.with_(**{at: x}).value(body)
        h = self.step
        return sum(
            c * (self.slope(at, body, order - 1, x + n * h) - self.slope(at, body, order - 1, x - n * h)) / h
            for n, c in STENCIL
        )


# --- drawing -------------------------------------------------------------------------------------------------------

_BOUNDED = ((0, 1), (-1, 1), (0, 2), (0.5, 2), (-1, 0.5))
_INFINITE = ((None, None), (0, None), (1, None), (None, 0), (None, -0.5))
_ORDERS = (0, 0, 0, 1, 1, 1, 1, 2, 2, 3)


@dataclass
class Draws:
    """Draws functionals of given functions on intervals."""

    rng: np.random.Generator
    functions: tuple[Unknown, ...]
    most: int
    """the highest derivative"""
    made: list[Node] = field(default_factory=list)
    count: int = 0

    def one(self, *options: Any) -> Any:
        return options[self.rng.integers(len(options))]

    def fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def number(self, depth: int) -> Node:
        """A number: a functional."""
        if depth <= 0:
            return self.one(*[self.integral(2)] * 6, self.value_at_an_end(), Node("number", ("a",)))
        a = self.number(depth - 1)
        kind = self.one("alone", "add", "add", "multiply", "scalar", "power", "named", "again", "divide")
        match kind:
            case "alone":
                return self.integral(self.one(2, 3))
            case "add" | "multiply":
                return Node(kind if self.rng.integers(4) else "subtract", (a, self.number(depth - 1)))
            case "scalar":
                return self.bounded(a)
            case "power":
                return Node("power", (a, self.one(2, 3)))
            case "divide":
                return Node("divide", (self.number(depth - 1), above(a)))
            case "named":
                named = Node("named", (self.fresh("E"), a))
                self.made.append(named)
                return Node("add", (Node("power", (named, 2)), self.bounded(named)))
            case _:
                return self.one(*self.made) if self.made else a

    def value_at_an_end(self) -> Node:
        u = self.one(*self.functions)
        if not u.line.ends:
            return self.integral(2)
        end = constant(self.one(*u.line.ends))
        order = min(self.most, self.one(0, 0, 0, 1, 1, 2))
        return Node("function", (u.name, order, end))

    def integral(self, depth: int) -> Node:
        u = self.one(*self.functions)
        at = self.one("x", "t", "s1")
        return self.over(u.line, at, {at: u.line}, depth)

    def over(self, line: Line, at: str, scope: dict[str, Line], depth: int) -> Node:
        body = self.term(depth, scope)
        if not line.bounded:
            x = Node("variable", (at,))
            falling = {"exp(-t^2)": ("power", (x, 2)), "exp(-t)": ("add", (x, constant(0)))}.get(line.weight)
            inner = x if falling is None or falling[0] == "add" else Node(*falling)
            if line.weight != "exp(t)":
                inner = Node("subtract", (constant(0), inner))
            body = Node("multiply", (body, Node("scalar", ("exp", inner))))
        return Node("integral", (line, at, body))

    def bounded(self, a: Node) -> Node:
        """A smooth function of any number."""
        name = self.one("sin", "cos", "tanh", "atan", "exp", "sqrt", "log", "gauss", "over", "cosh")
        match name:
            case "exp" | "cosh":
                return Node("scalar", (name, Node("scalar", ("sin", a))))
            case "sqrt" | "log":
                return Node("scalar", (name, above(a)))
            case "gauss":
                return Node("scalar", ("exp", Node("subtract", (constant(0), Node("power", (a, 2))))))
            case "over":
                return Node("divide", (a, above(a)))
            case _:
                return Node("scalar", (name, a))

    def leaf(self, scope: dict[str, Line]) -> Node:
        at = self.one(*scope)
        x = Node("variable", (at,))
        own = [u for u in self.functions if u.line == scope[at]]
        kind = self.one("unknown", "unknown", "unknown", "unknown", "x", "a", "f", "constant", "series", "kernel")
        match kind:
            case "unknown" if own:
                u = self.one(*own)
                return Node("function", (u.name, min(self.most, self.one(*_ORDERS)), self.place(x, u.line)))
            case "f":
                return Node("function", (self.one("f", "g"), self.one(0, 0, 0, 1), x))
            case "a":
                return Node("number", (self.one("a", "b"),))
            case "constant":
                return constant(self.one(2, 3))
            case "series":
                return Node("series", ("c", x))
            case "kernel":
                return Node("kernel", ("k", x, Node("variable", (self.one(*scope),))))
            case _:
                return x

    def place(self, x: Node, line: Line) -> Node:
        """x, or another point of the interval."""
        if not line.bounded or self.rng.integers(12):
            return x
        lower, upper = line.ends
        kind = self.one("mirrored", "mirrored", "lower", "upper", "still")
        if kind == "mirrored":
            return Node("subtract", (constant(lower + upper), x))
        if kind == "still":
            return constant(self.one(lower, upper))
        end = lower if kind == "lower" else upper
        return Node("add", (Node("divide", (x, constant(2))), constant(end / 2)))

    def term(self, depth: int, scope: dict[str, Line]) -> Node:
        """A number at each point."""
        if depth <= 0:
            return self.leaf(scope)
        a = self.term(depth - 1, scope)
        kind = self.one(
            "multiply", "multiply", "multiply", "add", "subtract", "power", "scalar", "scalar", "length", "f", "divide",
            "integral", "local", "defined", "functional", "again",
        )  # fmt: skip
        match kind:
            case "multiply" | "add" | "subtract":
                return Node(kind, (a, self.term(depth - 1, scope)))
            case "power":
                return Node("power", (a, self.one(2, 2, 3)))
            case "scalar":
                return self.bounded(a)
            case "length":
                return Node("scalar", ("sqrt", above(a)))
            case "divide":
                return Node("divide", (a, above(self.term(depth - 1, scope))))
            case "f":
                return Node("function", (self.one("f", "g"), self.one(0, 0, 0, 1), a))
            case "functional":
                return Node("multiply", (a, self.number(0)))
            case "again" if self.made:
                return Node("multiply", (a, self.one(*(m for m in self.made))))
            case "integral" if len(scope) < 2:
                return self.inner(depth, scope)
            case "local" | "defined":
                return self.slope(kind, depth, scope)
            case _:
                return a

    def inner(self, depth: int, scope: dict[str, Line]) -> Node:
        """An integral over another variable: a kernel."""
        line = self.one(*self.functions).line
        at = next(n for n in ("s", "x2") if n not in scope)
        wider = {**scope, at: line}
        (outer,) = scope
        x, s = Node("variable", (outer,)), Node("variable", (at,))
        apart = Node("power", (Node("subtract", (x, s)), 2))
        kernel = self.one(
            Node("kernel", ("k", x, s)),
            Node("kernel", ("k", s, x)),
            Node("scalar", ("exp", Node("subtract", (constant(0), apart)))),
            Node("scalar", ("cos", Node("multiply", (x, s)))),
        )
        inside = self.over(line, at, {at: line} if self.rng.integers(2) else wider, depth - 2)
        line, at, body = inside.args
        return Node("integral", (line, at, Node("multiply", (kernel, body))))

    def slope(self, kind: str, depth: int, scope: dict[str, Line]) -> Node:
        """A function that is written out, or defined, at a point, or its derivative there."""
        over = self.one(*scope)
        at = {"x": "r", "t": "r", "s1": "r"}.get(over, "p")
        x = Node("variable", (over,))
        # the function may see nothing but its own variable if it stands in a definition
        own = {at: scope[over]} if kind == "defined" else {**scope, at: scope[over]}
        body = self.term(min(depth - 1, 2), own)
        if any(n.op in ("integral", "local", "defined", "named") for n in walk(body)):
            body = self.leaf(own)
        order = self.one(0, 1, 1, 1, 2)
        if kind == "local":
            return Node("local", (self.one("R", scope[over].name), max(order, 1), at, body, x))
        return Node("defined", (self.fresh("u"), self.one("R", scope[over].name), order, at, body, x))


def constant(value: float) -> Node:
    if value < 0:
        return Node("subtract", (constant(0), constant(-value)))
    return Node("constant", (f"{value:g}",))


def above(a: Node) -> Node:
    """1 + a², which is never 0."""
    return Node("add", (constant(1), Node("power", (a, 2))))


def drawn(seed: int) -> Program:
    """The program of a seed."""
    rng = np.random.default_rng(seed)

    def one(*options: Any) -> Any:
        return options[rng.integers(len(options))]

    first = Line("Line", *(one(*_INFINITE) if rng.integers(5) == 0 else one(*_BOUNDED)))
    second = Line("Time", *one(*_BOUNDED)) if rng.integers(5) == 0 else first
    spaces = ((), (), (), (), True, True, (0,), (0, 1), (1,))
    functions = [Unknown("y", first, one(*spaces))]
    if rng.integers(3) == 0:
        functions.append(Unknown("z", second, one(*spaces)))
    functions = [u if u.line.ends else replace(u, fixed=()) for u in functions]
    functions = [replace(u, fixed=(), whole=True) if rng.integers(12) == 0 else u for u in functions]
    of = Draws(rng, tuple(functions), int(one(1, 1, 2, 2, 3)))
    body = of.number(int(one(0, 0, 1, 1, 2)))
    used = {n.args[0] for n in walk(body)}
    functions = [u for u in functions if u.name in used]
    numbers = tuple(n for n in ("a", "c") if n in used and rng.integers(4) == 0)
    if not functions or rng.integers(12) == 0:
        numbers = tuple(n for n in ("a", "b", "c") if n in used)
        if numbers:
            return complete(Program(body, (), numbers, tuple(functions)), (first, second))
    if not functions:
        return drawn(seed + 1_000_003)
    return complete(Program(body, tuple(functions), numbers, ()), (first, second))


def complete(p: Program, lines: Sequence[Line]) -> Program:
    """With all intervals that occur, those too on which no function is."""
    missing = [line for line in dict.fromkeys(lines) if line not in p.lines and line.name in block(p.body)]
    return replace(p, given=(*p.given, *(Unknown(f"w{n}", line) for n, line in enumerate(missing))))
