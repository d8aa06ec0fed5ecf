"""Reads formulas in index form as a person does, and evaluates them by loops: what our LaTeX says, not what was meant.

It shares nothing with the printers and the evaluators of the package. Names are those that parameters and definitions
bring into scope. An index of a sum ranges over the slots that it stands in, or over what is said below the Σ; the range
of one in front of a definition may come with the `hints`. A bracket after a space is a factor; without a space it holds
arguments.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import scipy.linalg

Point = tuple[int, ...]
Node = tuple  # (kind, parts …)


class UnreadableError(Exception):
    """The text is no formula that a person could evaluate: it says nothing, or two things."""


@dataclass(frozen=True)
class Slot:
    """The values of an index in the order of an array; with `period`, modulo so many in each direction."""

    points: tuple[Point, ...]
    period: Point | None = None

    def place(self, point: Point) -> int:
        """Where the entry of an index lies."""
        if len(point) < len(self.points[0]):
            point = point * len(self.points[0])
        for n, known in enumerate(self.points):
            if same(point, known, self.period):
                return n
        raise UnreadableError(f"{point} is no index of this slot")


def same(a: Point, b: Point, period: Point | None) -> bool:
    """Whether two indices are one."""
    if period is None:
        return a == b
    return all((x - y) % n == 0 for x, y, n in zip(a, b, period, strict=True))


@dataclass(frozen=True)
class Tensor:
    """An array with an axis for each of its slots."""

    array: np.ndarray
    slots: tuple[Slot, ...]


@dataclass(frozen=True)
class Point_:
    """The value of an index, and the slot that it runs over."""

    at: Point
    slot: Slot | None


Env = Mapping[str, object]
FUNCTIONS: dict[str, Callable[[object], object]] = {
    r"\exp": np.exp,
    r"\log": np.log,
    r"\sin": np.sin,
    r"\cos": np.cos,
    r"\tan": np.tan,
    r"\sinh": np.sinh,
    r"\cosh": np.cosh,
    r"\tanh": np.tanh,
    r"\arctan": np.arctan,
    r"\sigma": lambda z: 1 / (1 + np.exp(-z)),
    r"\operatorname{Re}": np.real,
    r"\operatorname{Im}": np.imag,
    r"\operatorname{sign}": lambda z: z / abs(z) if z else 0.0,
}
JOINTS = (r"\land", r"\lor", r"\lnot")
RELATIONS = ("<", r"\le ", "=", r"\ne ")
ROW = r"\\"
CLOSERS = ("+", "-", ",", "}", r"\right", r"\rvert", "]", r"\mapsto", ")", r"\mathrm{d}", ";", "/", *RELATIONS, *JOINTS)
CLOSERS = (*CLOSERS, "&", ROW, r"\end")
REDUCTIONS = {r"\sum_": "sum", r"\prod_": "prod", r"\max_": "max", r"\min_": "min"}
SHARES = {r"\operatorname{softmax}_": "softmax", r"\operatorname{ties}_": "ties"}


def name_end(text: str, at: int) -> int:
    """Where a name that starts at `at` ends, its subscript included."""
    if match := re.compile(r"\\[a-zA-Z]+").match(text, at):
        end = match.end()
        if text[end : end + 1] == "{":
            end = group_end(text, end)
    elif text[at].isalpha():
        end = at + 1
    else:
        raise UnreadableError(f"no name: {text[at:]}")
    if text.startswith("_{", end):
        end = group_end(text, end + 1)
    return end


def group_end(text: str, at: int) -> int:
    """Behind the brace that closes the one at `at`."""
    depth = 0
    for n in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[n], 0)
        if not depth:
            return n + 1
    raise UnreadableError(f"a brace is not closed: {text[at:]}")


def split(text: str) -> list[str]:
    """What stands between the commas that stand in no brackets."""
    depth, items = 0, [""]
    for sign in text:
        depth += {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}.get(sign, 0)
        if sign == "," and not depth and not items[-1].endswith("\\"):
            items.append("")
        else:
            items[-1] += sign
    return [item.strip() for item in items]


def binder(text: str, at: int) -> tuple[list[str], int] | None:
    r"""The names of `x \mapsto` or `(a, b) \mapsto` at `at`, and where it ends."""
    inner, closed = (at + 1, ")") if text[at : at + 1] == "(" else (at, "")
    names = []
    try:
        while True:
            end = name_end(text, inner)
            names.append(text[inner:end])
            if not text.startswith(", ", end):
                break
            inner = end + 2
    except (UnreadableError, IndexError):
        return None
    tail = closed + r" \mapsto"
    return (names, end + len(tail)) if text.startswith(tail, end) and (closed or len(names) == 1) else None


CONDITION = re.compile(r" < |\\le |\\ne |=|\\l(?:and|or|not)")
"""What tells a condition below a sign from an index with its range, `i<n`."""


def new_names(text: str, known: Collection[str]) -> Iterator[str]:
    """The names in a condition that are not known: i_{1} beside an i that is, but no entry A_{i,j} of an A."""
    at = 0
    while at < len(text):
        if sign := next((sign for sign in (*RELATIONS, *JOINTS) if text.startswith(sign, at)), ""):
            at += len(sign)
        elif text[at].isalpha() or re.match(r"\\[a-zA-Z]", text[at:]):
            end = name_end(text, at)
            stem = text[at:end].split("_{")[0]
            if text[at:end] not in known and (stem not in known or re.search(r"_\{[\d,]+\}$", text[at:end])):
                yield text[at:end]
            elif text[at:end] not in known:
                end = at + len(stem)
            at = end
        else:
            at += 1


@dataclass
class Parser:
    """A formula at a position, with the names in scope."""

    text: str
    names: frozenset[str]
    at: int = 0
    implied: bool = False
    """Whether the last sign had no list of its indices below it."""

    def __post_init__(self) -> None:
        # a space that TeX takes back says nothing
        self.text = self.text.replace(r"\!", "")

    def opened(self) -> str:
        """Eat a bracket that opens; the one that closes it."""
        return r"\right)" if self.eat(r"\left(") else ")" if self.eat("(") else ""

    def skip(self) -> None:
        while match := re.compile(r"(\s|\\,|\\times |\\ (?=\S)|\\quad|\\qquad)+").match(self.text, self.at):
            self.at = match.end()

    def sees(self, sign: str) -> bool:
        return self.text.startswith(sign, self.at)

    def eat(self, sign: str) -> bool:
        found = self.sees(sign)
        self.at += len(sign) * found
        return found

    def expect(self, sign: str) -> None:
        self.skip()
        if not self.eat(sign):
            raise UnreadableError(f"expected {sign} at: {self.text[self.at :]}")

    def whole(self) -> Node:
        """All of the text."""
        found = self.formula()
        self.skip()
        if self.at < len(self.text):
            raise UnreadableError(f"left over: {self.text[self.at :]}")
        return found

    def formula(self) -> Node:
        r"""A map, x \mapsto …, or a sum."""
        self.skip()
        bound = binder(self.text, self.at)
        if bound is None:
            return self.sum()
        names, outer = bound[0], self.names
        self.names, self.at = self.names | set(names), bound[1]
        body = self.formula()
        self.names = outer
        return "map", names, body

    def sum(self) -> Node:
        self.skip()
        terms = [("neg", self.product()) if self.eat("-") else self.product()]
        while True:
            self.skip()
            if self.eat("+"):
                terms.append(self.product())
            elif self.eat("-"):
                terms.append(("neg", self.product()))
            else:
                return terms[0] if len(terms) == 1 else ("add", terms)

    def product(self) -> Node:
        factors, crosses = [], False
        while True:
            start = self.at
            self.skip()
            crosses = crosses or (len(factors) == 1 and r"\times" in self.text[start : self.at])
            if self.at == len(self.text) or any(map(self.sees, CLOSERS)):
                break
            if self.sees(r"\log \sum_"):
                self.eat(r"\log ")
                factors.append(("call", r"\log", self.reduced(r"\sum_")))
                break
            if sign := next(filter(self.sees, REDUCTIONS), ""):
                factors.append(self.reduced(sign))
                break
            factors.append(self.factor())
        if not factors:
            raise UnreadableError(f"nothing stands at: {self.text[self.at :]}")
        if crosses and len(factors) == 2:
            return "cross", *factors
        found = factors[0] if len(factors) == 1 else ("mul", factors)
        return ("divided", found, self.product()) if self.eat("/") else found

    def reduced(self, sign: str) -> Node:
        """What follows Σ, Π or max, up to the next + or −, is under it."""
        self.eat(sign)
        outer = self.names
        names, condition, ranges = self.below()
        body = self.product()
        self.names = outer
        return "reduce", REDUCTIONS[sign], names, condition, body, ranges

    def share(self, sign: str) -> Node:
        r"""\operatorname{softmax}_{j}(x_{j}): a map of j."""
        outer = self.names
        names, condition, ranges = self.below()
        if self.implied and len(names) > 1:
            raise UnreadableError(f"the order of the indices {names}")
        (body,) = self.listed(self.opened())
        self.names = outer
        return "share", SHARES[sign], names, condition, body, ranges

    def below(self) -> tuple[list[str], Node | None, dict[str, str]]:
        r"""What stands below a sign: `i,j`, `i<n`, `b \in B`, a condition; then indices are what it names newly."""
        end = group_end(self.text, self.at)
        items = split(self.text[self.at + 1 : end - 1])
        told = [item.removeprefix("\\ ") for item in items if CONDITION.search(item)]
        said = [re.split(r"<| \\in ", item) for item in items if not CONDITION.search(item)]
        if len(told) > 1:
            raise UnreadableError(f"two conditions: {told}")
        new = dict.fromkeys(new_names("".join(told), {*self.names, *(name for name, *_ in said)}))
        names = [name for name, *_ in said] or list(new)
        self.implied = not said
        if not names or (said and new):
            raise UnreadableError(f"unknown names in {told}")
        self.names, self.at = self.names | set(names), end
        condition = Parser(told[0], self.names).all_of_condition() if told else None
        return names, condition, {name: over for name, *ranges in said for over in ranges}

    def factor(self) -> Node:
        found = self.atom()
        while True:
            if self.sees("_{("):
                end = group_end(self.text, self.at + 1)
                found = "item", found, int(self.text[self.at + 3 : end - 2])
                self.at = end
            elif self.eat("_{"):
                found = "entry", found, self.listed("}")
            elif self.eat(r"^{*}"):
                found = "conj", found
            elif self.eat(r"^{\dagger}"):
                found = "adjoint", found
            elif self.eat("^{"):
                found = "pow", found, self.sum()
                self.expect("}")
            elif end := self.opened():
                found = "apply", found, self.listed(end)
            else:
                return found

    def listed(self, end: str) -> list[Node]:
        items = [self.formula()]
        while self.eat(","):
            items.append(self.formula())
        self.expect(end)
        return items

    def atom(self) -> Node:
        if match := re.compile(r"(\d+(\.\d+)?)( \\cdot 10\^\{(-?\d+)\})?").match(self.text, self.at):
            self.at = match.end()
            if match[3]:
                return "number", float(f"{match[1]}e{match[4]}")
            # large integers would make arrays of objects
            return "number", float(match[1]) if match[2] or len(match[1]) > 9 else int(match[1])
        name = max((name for name in self.names if self.sees(name)), key=len, default="")
        for sign in FUNCTIONS:
            if any(self.sees(sign + bracket) for bracket in (r"\left(", "(")) and len(sign) > len(name):
                self.at += len(sign)
                return ("call", sign, *self.listed(self.opened()))
        for sign, read in SIGNS:
            if self.sees(sign) and sign.removesuffix("_{") == name:
                raise UnreadableError(f"{name} is a name and a sign")
            if len(sign) > len(name) and self.eat(sign):
                return read(self)
        return self.named()

    def named(self) -> Node:
        """A name in scope: the longest, so that x_{1} is the variable of that name and no entry of x."""
        if self.eat("{"):
            found = self.named()
            self.expect("}")
            return found
        names = [name for name in self.names if self.sees(name)]
        if not names:
            raise UnreadableError(f"unknown name at: {self.text[self.at :]}")
        name = max(names, key=len)
        self.at += len(name)
        found: Node = ("name", name)
        primes = re.match(r"'+|\^\{\((\d+)\)\}", self.text[self.at :])
        if primes:
            self.at += len(primes[0])
            for _ in range(int(primes[1]) if primes[1] else len(primes[0])):
                found = ("gradient", found)
        return found

    def bracketed(self, end: str) -> Node:
        items = self.listed(end)
        return items[0] if len(items) == 1 else ("tuple", items)

    def size(self, end: str) -> Node:
        """|e|, or |Z| of a range Z, whose name is that of no variable."""
        of, found = self.text[self.at :].split(end, 1)[0].strip(), re.match(r"\w|\\mathrm\{\w+\}", self.text[self.at :])
        if found and found[0] == of and of not in self.names:
            self.at += len(of)
            self.expect(end)
            return "count", of
        (inner,) = self.listed(end)
        return "abs", inner

    def norm(self, end: str) -> Node:
        (inner,) = self.listed(end)
        return "norm", inner

    def braced(self) -> Node:
        (inner,) = self.listed("}")
        return inner

    def fraction(self) -> Node:
        above = self.braced()
        self.expect("{")
        return "divided", above, self.braced()

    def iverson(self) -> Node:
        """[condition], behind the bracket that opens."""
        found = self.condition()
        self.expect("]")
        return "condition", found

    def cases(self) -> Node:
        """Values with their conditions, row by row; the last one holds where no other does."""
        rows: list[tuple[Node, Node | None]] = []
        while not rows or rows[-1][1] is not None:
            value = self.sum()
            self.expect("&")
            self.skip()
            if self.eat(r"\text{otherwise}"):
                rows.append((value, None))
            else:
                self.expect(r"\text{if}")
                rows.append((value, self.condition()))
                self.expect(ROW)
        self.expect(r"\end{cases}")
        return "cases", rows

    def matrix(self) -> Node:
        """Entries, row by row; a column is a vector."""
        rows = [[self.sum()]]
        while not self.eat(r"\end{pmatrix}"):
            if self.eat("&"):
                rows[-1].append(self.sum())
            else:
                self.expect(ROW)
                rows.append([self.sum()])
        return "matrix", rows

    def all_of_condition(self) -> Node:
        found = self.condition()
        self.skip()
        if self.at < len(self.text):
            raise UnreadableError(f"left over: {self.text[self.at :]}")
        return found

    def condition(self) -> Node:
        """∨ holds less tightly than ∧, and both less than ¬ and the relations."""
        return self.joined(r"\lor", "any", lambda: self.joined(r"\land", "all", self.single))

    def joined(self, sign: str, kind: str, part: Callable[[], Node]) -> Node:
        found = [part()]
        self.skip()
        while self.eat(sign):
            found.append(part())
            self.skip()
        return found[0] if len(found) == 1 else (kind, found)

    def single(self) -> Node:
        """¬ (…), a condition in brackets, or a chain a < b ≤ c."""
        self.skip()
        if self.eat(r"\lnot"):
            return "not", self.single()
        start = self.at
        if end := self.opened():
            try:
                found = self.condition()
                self.expect(end)
                return found
            except UnreadableError:
                self.at = start  # a bracket of numbers
        sides, signs = [self.sum()], []
        self.skip()
        while sign := next(filter(self.sees, RELATIONS), ""):
            self.eat(sign)
            signs.append(sign.strip())
            sides.append(self.sum())
            self.skip()
        if not signs:
            raise UnreadableError(f"no condition at: {self.text[start:]}")
        return "chain", sides, signs

    def derivative(self) -> Node:
        item = None
        if self.eat("_{"):
            item = int(self.text[self.at : self.text.index("}", self.at)])
            self.at = self.text.index("}", self.at) + 1
        self.skip()
        of = self.derivative() if self.eat(r"\nabla") else self.named()
        return ("gradient", of) if item is None else ("partial", of, item)

    def pulled(self) -> Node:
        item = None
        if self.eat("_{"):
            item = int(self.text[self.at : self.text.index("}", self.at)])
            self.at = self.text.index("}", self.at) + 1
        (of,) = self.listed(self.opened())
        return ("pullback", of) if item is None else ("partial pullback", of, item)


SIGNS: list[tuple[str, Callable[[Parser], Node]]] = [
    (r"\det", lambda p: ("determinant", *p.listed(p.opened()))),
    (r"\operatorname{adj}", lambda p: ("adjugate", p.listed(p.opened()))),
    (r"\operatorname{expm}", lambda p: ("of a matrix", scipy.linalg.expm, p.listed(p.opened()))),
    (r"\operatorname{sqrtm}", lambda p: ("of a matrix", scipy.linalg.sqrtm, p.listed(p.opened()))),
    (r"\frac{", Parser.fraction),
    (r"\sqrt{", lambda p: ("call", r"\sqrt", p.braced())),
    (r"\left(", lambda p: p.bracketed(r"\right)")),
    ("(", lambda p: p.bracketed(")")),
    (r"\left|", lambda p: p.size(r"\right|")),
    (r"\lvert ", lambda p: p.size(r"\rvert")),
    (r"\mathrm{i}", lambda p: ("number", 1j)),
    (r"\pi", lambda p: ("number", np.pi)),
    ("[", Parser.iverson),
    (r"\begin{cases}", Parser.cases),
    (r"\begin{pmatrix}", Parser.matrix),
    (r"\left\lVert", lambda p: p.norm(r"\right\rVert")),
    *((sign, lambda p, sign=sign: p.share(sign)) for sign in SHARES),
    (r"\delta_{", lambda p: ("equal", *p.listed("}"))),
    (r"\operatorname{root}", lambda p: ("root", *p.listed(p.opened()))),
    (r"\nabla", Parser.derivative),
    (r"\mathcal{P}", Parser.pulled),
]


GATHERED: dict[str, Callable[[list[complex]], complex]] = {
    "sum": sum,
    "prod": lambda numbers: np.prod(numbers) if numbers else 1,
    "max": max,
    "min": min,
}


# --- values -----------------------------------------------------------------------------------------------------------


@dataclass
class Evaluator:
    """The values of formulas; `hints` are the ranges of indices of definitions, `domains` those that have a name."""

    hints: Mapping[str, Slot] = field(default_factory=dict)
    domains: Mapping[str, Slot] = field(default_factory=dict)

    def value(self, node: Node, env: Env) -> object:
        match node:
            case ("map", names, body):
                return self.mapped(names, body, env)
            case ("tuple", items):
                return tuple(self.value(item, env) for item in items)
            case ("name", name):
                return env[name]
            case ("adjoint", of):
                return self.value(of, env).adjoint
            case ("cross", left, right):
                sides = self.value(left, env), self.value(right, env)
                if not all(isinstance(side, Tensor) for side in sides):
                    return self.number(("mul", [left, right]), env)  # where a line is broken, it multiplies numbers
                return Tensor(np.cross(*(side.array for side in sides)), sides[0].slots)
            case ("adjugate", of):
                return adjugate(*(self.value(one, env) for one in of))
            case ("of a matrix", function, of):
                return of_blocks(function, *(self.value(one, env) for one in of))
            case ("pow", of, ("divided", ("number", 1), ("number", 2))) if isinstance(
                whole := self.value(of, env), Tensor
            ):
                return Tensor(scipy.linalg.sqrtm(whole.array), whole.slots[::-1])
            case ("pow", of, ("neg", ("number", 1))) if isinstance(whole := self.value(of, env), Tensor):
                return Tensor(np.linalg.inv(whole.array), whole.slots[::-1])
            case ("pow", ("map", _, _) as of, _):
                return self.inverse(of, env)
            case ("gradient" | "pullback" as kind, of):
                return env[f"{kind} {self.spelled(of)}"]
            case ("partial" | "partial pullback" as kind, of, item):
                whole = env[f"{'gradient' if kind == 'partial' else 'pullback'} {self.spelled(of)}"]
                return lambda *args: whole(*args)[item - 1]
            case ("item", of, item):
                return self.value(of, env)[item - 1]
            case ("apply", function, args):
                return self.value(function, env)(*(self.value(arg, env) for arg in args))
            case ("share", *_):
                return self.shares(node, env)
            case ("root", ("map", [x], equation)):
                return self.root(x, equation, env)
            case _:
                return self.number(node, env)

    def spelled(self, node: Node) -> str:
        match node:
            case ("name", name):
                return name
            case (kind, of):
                return f"{kind} {self.spelled(of)}"
            case _:
                raise UnreadableError(f"a derivative of {node}")

    def number(self, node: Node, env: Env) -> complex:
        match node:
            case ("number", value):
                return value
            case ("add", terms):
                return sum(self.plain(term, env) for term in terms)
            case ("neg", of):
                return -self.plain(of, env)
            case ("mul" | "divided", *_) if self.excluded(node, env):
                return 0
            case ("mul", factors):
                result = 1
                for factor in factors:
                    result = result * self.plain(factor, env)
                return result
            case ("divided", above, below):
                top, bottom = self.plain(above, env), self.plain(below, env)
                return np.divide(top, bottom)
            case ("pow", base, exponent):
                b, e = self.plain(base, env), self.plain(exponent, env)
                return np.power(b + 0.0, e)
            case ("cases", rows):
                value = next(value for value, told in rows if told is None or self.holds(told, env))
                return self.plain(value, env)
            case ("matrix", rows):
                found = np.array([[self.plain(entry, env) for entry in row] for row in rows])
                return found[:, 0] if found.shape[1] == 1 else found
            case ("conj", of):
                return np.conj(self.plain(of, env))
            case ("count", of) | ("abs", ("name", of)) if of in self.domains and of not in env:
                return len(self.domains[of].points)
            case ("abs", of):
                return abs(self.plain(of, env))
            case ("call", sign, of):
                return (FUNCTIONS.get(sign) or np.sqrt)(self.plain(of, env))
            case _:
                return self.of_indices(node, env)

    def of_indices(self, node: Node, env: Env) -> complex:
        match node:
            case ("reduce", kind, *_):
                _, within = self.taking_part(node, env)
                return GATHERED[kind](list(within.values()))
            case ("norm", of):
                return np.sqrt(np.sum(np.abs(self.value(of, env).array) ** 2))
            case ("determinant", of):
                return np.linalg.det(self.value(of, env).array)
            case ("condition", condition):
                return int(self.holds(condition, env))
            case ("entry", of, subscripts):
                tensor = self.value(of, env)
                if not isinstance(tensor, Tensor) or len(tensor.slots) != len(subscripts):
                    raise UnreadableError(f"subscripts do not fit {of}")
                at = (self.index(s, env).at for s in subscripts)
                return tensor.array[tuple(slot.place(a) for slot, a in zip(tensor.slots, at, strict=True))]
            case ("equal", left, right):
                return int(self.meet(left, right, env))
            case _:
                raise UnreadableError(f"no number: {node}")

    def meet(self, left: Node, right: Node, env: Env) -> bool:
        """Whether two indices are one."""
        a, b = self.index(left, env), self.index(right, env)
        slot = a.slot or b.slot
        width = max(len(a.at), len(b.at))
        wide = (p.at * (width // len(p.at)) for p in (a, b))
        return same(*wide, slot.period if slot else None)

    def holds(self, condition: Node, env: Env) -> bool:
        match condition:
            case ("all", parts):
                return all(self.holds(part, env) for part in parts)
            case ("any", parts):
                return any(self.holds(part, env) for part in parts)
            case ("not", part):
                return not self.holds(part, env)
            case ("chain", sides, signs):
                pairs = zip(signs, sides, sides[1:], strict=False)
                return all(self.compares(sign, left, right, env) for sign, left, right in pairs)
        raise UnreadableError(f"no condition: {condition}")

    def compares(self, sign: str, left: Node, right: Node, env: Env) -> bool:
        if sign in ("=", r"\ne"):
            try:
                equal = self.meet(left, right, env)
            except UnreadableError:
                equal = self.plain(left, env) == self.plain(right, env)
            return equal == (sign == "=")
        a, b = np.real(self.plain(left, env)), np.real(self.plain(right, env))
        return bool(a < b if sign == "<" else a <= b)

    def taking_part(self, node: Node, env: Env) -> tuple[list[Slot], dict[tuple[int, ...], complex]]:
        """The ranges of the indices of Σ, Π, max, softmax, and the numbers at the places where the condition holds."""
        _, _, names, condition, body, ranges = node
        said = {name: self.domains[over] for name, over in ranges.items()}
        slots = [said.get(name) or self.range_of(name, (body, condition), env) for name in names]
        return slots, {
            place: self.plain(body, inner)
            for place, inner in self.points(names, slots, env)
            if condition is None or self.holds(condition, inner)
        }

    def shares(self, node: Node, env: Env) -> Tensor:
        """softmax, or one over the number of the largest at each of them; 0 where the condition does not hold."""
        slots, within = self.taking_part(node, env)
        array = np.zeros([len(slot.points) for slot in slots])
        largest = max(within.values(), default=0)
        for place, number in within.items():
            array[place] = np.exp(number - largest) if node[1] == "softmax" else number == largest
        return Tensor(array / (array.sum() or 1), tuple(slots))

    def excluded(self, node: Node, env: Env) -> bool:
        """Whether a condition among the factors does not hold: then the others do not matter."""
        match node:
            case ("condition", condition):
                return not self.holds(condition, env)
            case ("mul", factors):
                return any(self.excluded(factor, env) for factor in factors)
            case ("divided", above, _):
                return self.excluded(above, env)
            case _:
                return False

    def plain(self, node: Node, env: Env) -> complex:
        """A number; an index in its place is its value."""
        found = self.value(node, env)
        if isinstance(found, Point_):
            return found.at[0]
        if not np.isscalar(found) and np.ndim(found):
            raise UnreadableError(f"no number: {node}")
        return found.item() if isinstance(found, np.ndarray) else found

    def index(self, node: Node, env: Env) -> Point_:
        """The value of an index expression."""
        match node:
            case ("number", value):
                return Point_((value,), None)
            case ("neg", of):
                inner = self.index(of, env)
                return Point_(tuple(-x for x in inner.at), inner.slot)
            case ("add", terms):
                parts = [self.index(term, env) for term in terms]
                width = max(len(p.at) for p in parts)
                at = tuple(sum(p.at[n] if len(p.at) == width else p.at[0] for p in parts) for n in range(width))
                slots = [p.slot for p in parts if p.slot]
                return Point_(at, next((s for s in slots if s.period), slots[0] if slots else None))
            case ("mul", [("number", factor), of]):
                inner = self.index(of, env)
                return Point_(tuple(factor * x for x in inner.at), inner.slot)
            case ("count", _) | ("abs", _):
                return Point_((int(self.value(node, env)),), None)
            case ("entry", *_) if (found := np.asarray(self.value(node, env))).ndim == 0 and found.dtype.kind == "i":
                return Point_((int(found),), None)
            case _:
                found = self.value(node, env)
                if isinstance(found, Point_):
                    return found
                if node[0] == "name" and np.ndim(found) == 0 and float(np.real(found)).is_integer():
                    # a size
                    return Point_((int(np.real(found)),), None)
                raise UnreadableError(f"no index: {node}")

    def points(self, names: Sequence[str], slots: Sequence[Slot], env: Env) -> Iterator[tuple[tuple[int, ...], Env]]:
        """The places in an array and the scopes for all values of some indices."""
        for place in product(*(range(len(slot.points)) for slot in slots)):
            yield place, {**env, **{n: Point_(s.points[p], s) for n, s, p in zip(names, slots, place, strict=True)}}

    def range_of(self, name: str, body: Node, env: Env, hints: Mapping[str, Slot] | None = None) -> Slot:
        """The range of an index: that of the slots where it stands alone, or of a periodic one where it does not."""
        alone, within = set(), set()
        for tensor, subscripts in self.entries(body, env):
            for slot, subscript in zip(tensor.slots, subscripts, strict=False):
                if subscript == ("name", name):
                    alone.add(slot)
                elif slot.period and mentions(subscript, name):
                    within.add(slot)
        hint = (hints or {}).get(re.sub(r"_\{\d+\}$", "", name))
        known = alone or ({hint} if hint else within)
        if len(known) != 1:
            raise UnreadableError(f"{len(known)} ranges of {name}")
        return known.pop()

    def entries(self, node: object, env: Env) -> list[tuple[Tensor, list[Node]]]:
        """The entries in a formula of tensors that are known outside of it."""
        if isinstance(node, list):
            return [found for part in node for found in self.entries(part, env)]
        if not isinstance(node, tuple):
            return []
        found = [entry for part in node for entry in self.entries(part, env)]
        match node:
            case ("entry", ("name", tensor), subscripts) if isinstance(env.get(tensor), Tensor):
                found.append((env[tensor], subscripts))
            case ("entry", ("pow" | "adjugate" | "of a matrix" | "cross", *_) as whole, subscripts):
                with contextlib.suppress(KeyError, UnreadableError):  # it may hold indices of sums within
                    found.append((self.value(whole, env), subscripts))
        return found

    def mapped(self, names: Sequence[str], body: Node, env: Env, slots: Sequence[Slot] | None = None) -> object:
        """A map of indices as an array, any other as a function."""
        try:
            ranges = slots or [self.range_of(name, body, env, self.hints) for name in names]
        except UnreadableError:
            return lambda *args: self.value(body, {**env, **dict(zip(names, args, strict=True))})
        entries = [(place, self.plain(body, inner)) for place, inner in self.points(names, ranges, env)]
        array = np.zeros([len(r.points) for r in ranges], complex)
        for place, entry in entries:
            array[place] = entry
        return Tensor(array if np.iscomplexobj([e for _, e in entries]) else array.real, tuple(ranges))

    def inverse(self, of: Node, env: Env) -> Callable[[Tensor], Tensor]:
        """A linear map of vectors, solved with the matrix of its values at unit vectors."""

        def solved(given: Tensor) -> Tensor:
            function = self.function(of, env)
            size = given.array.size
            units = [Tensor(row.reshape(given.array.shape), given.slots) for row in np.eye(size)]
            columns = [function(unit).array.ravel() for unit in units]
            found = np.linalg.solve(np.array(columns).T, given.array.ravel())
            return Tensor(found.reshape(given.array.shape), given.slots)

        return solved

    def function(self, of: Node, env: Env) -> Callable[..., object]:
        _, names, body = of
        return lambda *args: self.value(body, {**env, **dict(zip(names, args, strict=True))})

    def root(self, x: str, equation: Node, env: Env) -> object:
        """Newton's method from zero, with differences for the Jacobian; of one number, or of a tensor."""
        if equation[0] != "map":
            return self.root_of_number(x, equation, env)
        _, indices, body = equation
        slots = tuple(self.range_of(name, body, env) for name in indices)
        at = np.zeros([len(slot.points) for slot in slots])

        def residual(point: np.ndarray) -> np.ndarray:
            here = {**env, x: Tensor(point.reshape(at.shape), slots)}
            return self.mapped(indices, body, here, slots).array.ravel()

        for _ in range(30):
            found, step = residual(at), 1e-6
            ways = [(at.ravel() + step * e, at.ravel() - step * e) for e in np.eye(at.size)]
            jacobian = [(residual(ahead) - residual(behind)) / (2 * step) for ahead, behind in ways]
            at = at - np.linalg.solve(np.array(jacobian).T, found).reshape(at.shape)
        return Tensor(at, slots)

    def root_of_number(self, x: str, equation: Node, env: Env) -> float:
        at, step = 0.0, 1e-6
        for _ in range(50):
            found, ahead, behind = (self.number(equation, {**env, x: at + h}) for h in (0.0, step, -step))
            at -= found * 2 * step / (ahead - behind)
        return at


def adjugate(of: Tensor, along: Tensor | None = None) -> Tensor:
    """det(A) A⁻¹ of a regular matrix, or its derivative along another."""
    det, inverse = np.linalg.det(of.array), np.linalg.inv(of.array)
    if along is None:
        return Tensor(det * inverse, of.slots[::-1])
    moved = inverse @ along.array
    return Tensor(det * (np.trace(moved) * inverse - moved @ inverse), of.slots[::-1])


def of_blocks(function: Callable[[np.ndarray], np.ndarray], of: Tensor, along: Tensor | None = None) -> Tensor:
    """A function of a matrix, or its derivative along another, which is a block of that of a matrix of blocks."""
    if along is None:
        return Tensor(function(of.array), of.slots[::-1])
    n = len(of.array)
    blocks = np.block([[of.array, along.array], [np.zeros((n, n)), of.array]])
    return Tensor(function(blocks)[:n, n:], of.slots[::-1])


def mentions(node: object, name: str) -> bool:
    """Whether a formula speaks of `name`."""
    if isinstance(node, list | tuple):
        return node == ("name", name) or any(mentions(part, name) for part in node)
    return False
