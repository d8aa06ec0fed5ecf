"""Random functionals, and their slopes along random variations by differences of their values.

    python -m tests.fuzz.functionals --programs 1000 --seed 1
    python -m tests.fuzz.functionals --minutes 10 --seed 1

The slope of a value along a variation is held against what the derivative says of it, under the integral and at the
ends, with the same rule. Tangents, Hessian products, the oracle and the printed text are compared with these.
"""

from __future__ import annotations

import argparse
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

import combdiff as cd
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.quadrature import standard
from combdiff.terms.terms import (
    ZERO,
    Delta,
    Diff,
    Lam,
    Let,
    Term,
    Traverser,
    Tuple,
    Var,
    add,
    along,
    let,
    mul,
    neg,
    number,
    substitute,
    subterms,
)
from combdiff.terms.types import Interval, Map, Product, Type
from tests.fuzz.functional_programs import (
    STENCIL,
    Kernel,
    Line,
    Node,
    Point,
    Program,
    Smooth,
    Unknown,
    Wave,
    drawn,
    walk,
)
from tests.fuzz.functional_shrinking import smallest

Array: TypeAlias = Any
STEP = 0.02
CLOSE = 1e-7
BUDGET = 4.0  # seconds of a derivation
FINE = (4, 7, 12, 24)
"""How fine rules and differences are, in quarters: the next one where the one before gives a complaint."""
SECOND = ((0, -205 / 72), (1, 8 / 5), (2, -1 / 5), (3, 8 / 315), (4, -1 / 560))
"""Weights of the second difference of the eighth order."""

REFUSALS = (
    "has a Dirac δ",
    "Dirac δ of real numbers",
    "an integral over real numbers",
    "variation is δ′",
    "jumps inside its domain",
    "does not see the jump",
)
"""What code, or integration by parts, refuses by the documents."""


class Missing(Exception):
    """Code asks for a derivative that no function of the tests has."""


@dataclass
class Numbers:
    """Functions and numbers at which a program is evaluated, and a variation of each unknown."""

    program: Program
    names: dict[str, Any]
    variations: dict[str, Any]

    @classmethod
    def of(cls, program: Program, rng: np.random.Generator) -> Numbers:
        names: dict[str, Any] = {
            "f": Wave(*rng.uniform(0.4, 1.2, 3)),
            "g": Wave(*rng.uniform(0.4, 1.2, 3)),
            "k": (kernel := Kernel(*rng.uniform(0.4, 1.2, 4))),
            "the kernel": kernel,
            "a": float(rng.uniform(0.3, 1.2)),
            "b": float(rng.uniform(-1, 1)),
            "c": rng.standard_normal(3) * [0.8, 0.5, 0.2],
        }
        functions = (*program.unknowns, *program.given)
        names |= {u.name: Unknown(u.name, u.line).variation(rng) for u in functions}
        variations: dict[str, Any] = {u.name: u.variation(rng) for u in program.unknowns}
        variations |= {n: rng.standard_normal(3) if n == "c" else float(rng.standard_normal()) for n in program.numbers}
        return cls(program, names, variations)

    def moved(self, e: float, by: Mapping[str, Any]) -> dict[str, Any]:
        return self.names | {n: _moved(self.names[n], e, v) for n, v in by.items()}

    def rules(self, fine: int) -> dict[Line, Array]:
        broken = any(n.op == "divide" and n.args[1] == Node("constant", ("2",)) for n in walk(self.program.body))
        n, pieces = (16, 4) if broken else (40, 1)
        fine = fine if nested(self.program.body) < 2 else min(fine, 12)
        return {line: line.rule(n * fine // 4, pieces) for line in self.program.lines}

    def value(self, names: Mapping[str, Any], fine: int) -> float:
        return float(Point(names, self.rules(fine), 0.12 / fine).value(self.program.body))

    def slope(self, by: Mapping[str, Any], fine: int) -> float:
        """d/dε of the value along a variation."""
        h = STEP * (4 / fine) ** 2
        return sum(
            c * (self.value(self.moved(n * h, by), fine) - self.value(self.moved(-n * h, by), fine)) / h
            for n, c in STENCIL
        )

    def bend(self, by: Mapping[str, Any], fine: int) -> float:
        """d²/dε² of the value along a variation."""
        h = STEP * (4 / fine) ** 2
        total = SECOND[0][1] * self.value(self.names, fine)
        for n, c in SECOND[1:]:
            total += c * (self.value(self.moved(n * h, by), fine) + self.value(self.moved(-n * h, by), fine))
        return total / h**2


def _moved(x: Any, e: float, by: Any) -> Any:
    return x.moved(e, by) if isinstance(x, Smooth) else x + e * by


def _summed(v: Any, w: Any, sign: int) -> Any:
    return v.moved(sign, w) if isinstance(v, Smooth) else v + sign * w


# --- code ----------------------------------------------------------------------------------------------------------


def supplied(wanted: Sequence[str], names: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of code: functions with as many derivatives as it calls."""
    found = {}
    kernel = names["the kernel"]
    of_kernel = {"grad_k": kernel.grad, "pullback_grad_k": kernel.pulled, "pullback_pullback_grad_k": kernel.twice}
    for name in wanted:
        base = name.replace("grad_", "")
        order = name.count("grad_")
        if name in of_kernel and names["k"] is kernel:
            found[name] = of_kernel[name]
        elif base not in names or (names[base] is kernel and order):
            raise Missing(name)
        else:
            found[name] = names[base].deriv(order) if order else names[base]
    return found


def called(f: Callable[..., Any], names: Mapping[str, Any], rules: Mapping[Line, Array]) -> tuple[Array, ...]:
    """All results of code."""
    known = {**names, **{line.name: rule for line, rule in rules.items()}}
    found = f(**supplied([a.name for a in f.arguments], known))  # type: ignore[attr-defined]  # a compiled function
    return found if isinstance(found, tuple) else (found,)


def parameters(d: cd.Derivation, group: int) -> list[str]:
    """The names of a group of parameters, in order."""
    t = d.term
    while isinstance(t, Let) or group:
        group -= isinstance(t, Lam)
        t = t.body  # type: ignore[attr-defined]  # a map, or definitions before one
    assert isinstance(t, Lam)
    return [p.name for p in t.params]


@dataclass(frozen=True)
class Part:
    """What a result holds of an unknown: how many results, and at each end the orders of the variation."""

    name: str
    unknown: Unknown | None
    ends: tuple[tuple[int, ...], ...]

    @property
    def count(self) -> int:
        return 1 + sum(map(len, self.ends))

    def along(self, found: Sequence[Array], v: Any, rules: Mapping[Line, Array]) -> tuple[float, float]:
        """What the results say of a variation, and the size of what is added up."""
        if self.unknown is None:
            terms = [found[0] * v]
        else:
            x, w = rules[self.unknown.line]
            terms = [w * found[0] * v(x)]
            rest = iter(found[1:])
            for end, orders in zip(self.unknown.line.ends, self.ends, strict=False):
                terms += [next(rest) * v.deriv(n)(end) for n in orders]
        return float(sum(np.sum(t) for t in terms)), float(sum(np.sum(np.abs(t)) for t in terms))


def parts_of(program: Program, kind: Type) -> list[Part]:
    """How the result of a derivative is made, by its type."""
    names = [u.name for u in program.unknowns] + list(program.numbers)
    items = kind.items if len(names) > 1 and isinstance(kind, Product) else (kind,)
    assert len(items) == len(names), "an item for each unknown"
    unknowns = {u.name: u for u in program.unknowns}
    return [_part(name, unknowns.get(name), item) for name, item in zip(names, items, strict=True)]


def _part(name: str, u: Unknown | None, kind: Type) -> Part:
    if u is None or not isinstance(kind, Product):
        return Part(name, u, ())
    free = [n for n in range(20) if not u.keeps(n)]
    ends = kind.items[1:]
    assert len(ends) == len(u.line.ends), "a factor for each end"
    return Part(name, u, tuple(tuple(free[: len(e.items) if isinstance(e, Product) else 1]) for e in ends))


def result_type(d: cd.Derivation, groups: int) -> Type:
    kind = d.term.type
    for _ in range(groups):
        assert isinstance(kind, Map)
        kind = kind.result
    return kind


# --- comparisons ---------------------------------------------------------------------------------------------------


@dataclass
class Examined:
    """A program, numbers for it, and what is wrong with it."""

    program: Program
    rng: np.random.Generator
    thorough: int
    """which of the slow comparisons are made: 0 to 11, or −1 for all"""

    def __post_init__(self) -> None:
        self.numbers = Numbers.of(self.program, self.rng)
        self.refused: list[str] = []
        self.functions: dict[int, tuple[cd.Derivation, Callable[..., Any]]] = {}

    def turn(self, of: int, n: int) -> bool:
        return self.thorough < 0 or self.thorough % of == n

    def complaints(self) -> Iterator[str]:
        text = self.program.text
        value = self.numbers.value(self.numbers.names, 4)
        if not abs(value) < 1e5:
            return
        if self.turn(3, 0):
            yield from self.value(text, value)
        if self.turn(2, 1):
            yield from self.forward(text)
        if self.turn(3, 1):
            yield from self.second(text)
        yield from self.gradient(text)

    def value(self, text: str, value: float) -> Iterator[str]:
        d = cd.simplified(text, seconds=BUDGET)
        if (found := self.code(d, 4)) is not None and not _close(float(found[0]), value, abs(value)):
            yield f"value: {found[0]} is {value}"

    def compiled(self, d: cd.Derivation) -> Callable[..., Any]:
        """Its code; the derivation is kept, so that no other has its number."""
        if id(d) not in self.functions:
            self.functions[id(d)] = d, d.compile(check=False)
        return self.functions[id(d)][1]

    def code(self, d: cd.Derivation, fine: int, **more: Any) -> tuple[Array, ...] | None:
        """The results of code, if it does not refuse."""
        try:
            return called(self.compiled(d), {**self.numbers.names, **more}, self.numbers.rules(fine))
        except Missing as name:
            self.refused.append(f"no derivative: {name}")
        except (cd.UnsupportedError, cd.BudgetError) as refusal:
            self.refused.append(f"code: {refusal.message}")
        return None

    def each(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for name, v in self.numbers.variations.items():
            yield name, {name: v}

    def forward(self, text: str) -> Iterator[str]:
        d = cd.jvp(text, seconds=BUDGET)
        count = len(self.numbers.variations)
        names = self.last(d)
        tangents = dict(zip(names[count:], self.numbers.variations.values(), strict=True))
        for fine in FINE:
            found = self.code(d, fine, **tangents)
            wanted = self.numbers.slope(self.numbers.variations, fine)
            if found is None or _close(float(found[0]), wanted, 1):
                return
        yield f"jvp: {found[0]} is {wanted}"

    def last(self, d: cd.Derivation) -> list[str]:
        """The names of the last group of parameters."""
        return parameters(d, self.leading)

    @cached_property
    def leading(self) -> int:
        """How many groups of parameters come before the unknowns."""
        return int(bool(self.program.parameters))

    def gradient(self, text: str) -> Iterator[str]:
        d = cd.grad(text, seconds=BUDGET)
        d.latex()
        if self.turn(4, 3):
            yield from self.printed(d)
        parts = parts_of(self.program, result_type(d, 1 + self.leading))
        found = None if any(u.whole for u in self.program.unknowns) else self.code(d, 4)
        if found is not None:
            yield from self.slopes("gradient", parts, lambda fine: self.code(d, fine), self.numbers.slope)
        if self.turn(4, 1):
            yield from self.integrated(d, parts)
        if found is None:
            yield from self.peaked(d, parts)
        if found is not None and self.turn(4, 2):
            yield from self.evaluated(d)
        if not any(u.whole for u in self.program.unknowns) and self.turn(2, 1) and nested(self.program.body) < 2:
            report = d.check()
            if not report:
                yield f"check: {report}"

    def slopes(
        self,
        what: str,
        parts: Sequence[Part],
        code: Callable[[int], tuple[Array, ...] | None],
        exact: Callable[[Mapping[str, Any], int], float],
    ) -> Iterator[str]:
        """What results say of each variation, held against differences; where they differ, with a finer rule, too."""
        at = 0
        for part in parts:
            v, got = self.numbers.variations[part.name], np.inf
            for fine in FINE:
                found, before = code(fine), got
                assert found is not None
                got, size = part.along(found[at : at + part.count], v, self.numbers.rules(fine))
                wanted = exact({part.name: v}, fine)
                if _close(got, wanted, size):
                    break
            else:
                if abs(got - before) < 0.05 * abs(got - wanted):
                    yield f"{what} by {part.name}: {got} is {wanted}"
                else:
                    self.refused.append("the rule is not exact")
            at += part.count

    def second(self, text: str) -> Iterator[str]:
        """The Hessian product along one variation, on another: by the second differences along their sum."""
        d = cd.hvp(text, seconds=BUDGET)
        count = len(self.numbers.variations)
        other = {u.name: u.variation(self.rng) for u in self.program.unknowns}
        other |= {n: self.numbers.variations[n] * 0.7 for n in self.program.numbers}
        tangents = dict(zip(self.last(d)[count:], other.values(), strict=True))
        parts = parts_of(self.program, result_type(d, 1 + self.leading))

        def mixed(v: Mapping[str, Any], fine: int) -> float:
            both = [{n: _summed(k, v[n], sign) if n in v else k for n, k in other.items()} for sign in (1, -1)]
            return (self.numbers.bend(both[0], fine) - self.numbers.bend(both[1], fine)) / 4

        whole = any(u.whole for u in self.program.unknowns)
        if not whole and self.code(d, 4, **tangents) is not None:
            yield from self.slopes("Hessian", parts, lambda fine: self.code(d, fine, **tangents), mixed)

    def printed(self, d: cd.Derivation) -> Iterator[str]:
        """The printed text has the same code."""
        back = cd.simplified(str(d), seconds=BUDGET)
        ours, theirs = self.code(d, 4), self.code(back, 4)
        if (ours is None) != (theirs is None):
            yield f"code: {ours} of the result, {theirs} of its text"
        for a, b in zip(ours or (), theirs or (), strict=True):
            if not np.allclose(a, b, rtol=1e-9, atol=1e-9):
                yield f"code of the text: {b} is {a}"

    def integrated(self, d: cd.Derivation, parts: Sequence[Part]) -> Iterator[str]:
        """The printed result, integrated against variations by the language, where code refuses it or not."""
        text = integral_of(self.program, d, parts, self.last(d))
        try:
            f = cd.simplified(text, seconds=BUDGET)
        except cd.CombDiffError as refusal:
            yield f"integral of the result: {refusal}\n{text}"
            return
        more = {f"v{n}": self.numbers.variations[part.name] for n, part in enumerate(parts)}
        for fine in FINE:
            found = self.code(f, fine, **more)
            if found is None:
                return
            wanted = self.numbers.slope(self.numbers.variations, fine)
            if _close(float(found[0]), wanted, 1):
                return
        yield f"integral of the result: {found[0]} is {wanted}\n{text}"

    def peaked(self, d: cd.Derivation, parts: Sequence[Part]) -> Iterator[str]:
        """A result that holds a δ or an integral that code does not compute: by the oracle, δ by δ."""
        try:
            t, values = self.inside(d)
        except Missing:
            return
        sizes = {u.kind.params[0].domain: 3 for u in values if isinstance(u, Var) and u.name == "c"}
        bindings, body = (t.bindings, t.body) if isinstance(t, Let) else ((), t)
        items = list(leaves(body))
        at = 0
        for part in parts:
            own, at = items[at : at + part.count], at + part.count
            rules = self.numbers.rules(4)
            found = [evaluate(let(bindings, e), values, sizes) for e in own[part.unknown is not None :]]
            beside = 0.0
            if part.unknown is not None and isinstance(own[0], Lam):
                x, v = own[0].params[0], self.numbers.variations[part.name]
                smooth, peaks = peaks_of(x, written_out(own[0].body))
                bulk = evaluate(let(bindings, Lam((x,), smooth)), values, sizes)
                found.insert(0, np.array([float(bulk(float(p))) for p in rules[part.unknown.line][0]]))
                for place, height in peaks:
                    there = evaluate(let(bindings, Lam((x,), height)), values, sizes)
                    beside += float(there(place)) * float(v(place))
            got, size = part.along(found, self.numbers.variations[part.name], rules)
            wanted = self.numbers.slope({part.name: self.numbers.variations[part.name]}, 7)
            if not abs(got + beside - wanted) <= 100 * CLOSE * (abs(wanted) + min(size, 1e3)):
                yield f"oracle, with peaks, by {part.name}: {got + beside} is {wanted}\n{d}"

    def inside(self, d: cd.Derivation) -> tuple[Term, dict[Term, Any]]:
        """A result below its parameters, and their values."""
        depth = max(nested(n) for n in walk(self.program.body))
        t: Term = d.term
        values: dict[Term, Any] = {}
        for _ in range(1 + self.leading):
            if not isinstance(t, Lam) or depth > 1:
                raise Missing
            values |= {p: self.numbers.names[p.name] for p in t.params}
            t = t.body
        return t, values | derivatives(t, values)

    def evaluated(self, d: cd.Derivation) -> Iterator[str]:
        """Code against the oracle, which has a rule of its own."""
        try:
            t, values = self.inside(d)
        except Missing:
            return
        rules = {line: standard(Interval(line.name, line.lower, line.upper)) for line in self.program.lines}
        try:
            found = called(self.compiled(d), self.numbers.names, rules)
        except Missing:
            return
        oracle = list(
            flat(
                evaluate(
                    t, values, {u.kind.params[0].domain: 3 for u in values if isinstance(u, Var) and u.name == "c"}
                )
            )
        )
        for ours, theirs in zip(found, oracle, strict=True):
            line = next(iter(rules.values()), np.zeros((2, 12)))[0]
            for at in (3, 11):
                a = np.ravel(ours)[at] if callable(theirs) and np.ndim(ours) else ours
                b = theirs(line[at]) if callable(theirs) else theirs
                if not np.allclose(a, b, rtol=1e-8, atol=1e-8):
                    yield f"oracle: code has {a}, the oracle {b}"


def leaves(t: Term) -> Iterator[Term]:
    """The items of a result, one after the other."""
    if isinstance(t, Tuple):
        for item in t.items:
            yield from leaves(item)
    else:
        yield t


def written_out(t: Term) -> Term:
    """A value without names for its parts."""
    if not isinstance(t, Let):
        return t
    body = t.body
    for var, value in reversed(t.bindings):
        body = substitute(body, {var: value})
    return written_out(body)


def peaks_of(x: Var, body: Term) -> tuple[Term, list[tuple[float, Term]]]:
    """A function of x without its δs at numbers, in each of which it is linear; their places and heights."""
    peaks: list[tuple[float, Term]] = []
    while (at := next(filter(lambda u: _is_peak(x, u), subterms(body)), None)) is not None:
        assert isinstance(at, Delta), "a peak"
        ends = [float(evaluate(add(at.left, neg(at.right)), {x: p})) for p in (0.0, 1.0)]  # type: ignore[arg-type]
        slope = ends[1] - ends[0]
        with_, without = (_put(body, at, e) for e in (mul(number(Fraction(1 / abs(slope))), at.body), ZERO))
        peaks.append((-ends[0] / slope, add(with_, neg(without))))
        body = without
    return body, peaks


def _is_peak(x: Var, t: Term) -> bool:
    return isinstance(t, Delta) and t.left.free | t.right.free == {x}


def _put(t: Term, old: Term, new: Term) -> Term:
    return Traverser(lambda u: new if u == old else u)(t)


def nested(node: Node) -> int:
    """How many integrals stand in each other."""
    return (node.op == "integral") + max((nested(c) for c in node.children), default=0)


def flat(value: Any) -> Iterator[Any]:
    """The items of a tuple, and of those in it."""
    if isinstance(value, tuple):
        for item in value:
            yield from flat(item)
    else:
        yield value


def derivatives(t: Term, values: Mapping[Term, Any]) -> dict[Term, Any]:
    """The derivatives of functions that are in a term."""
    found: dict[Term, Any] = {}
    for u in subterms(t):
        if isinstance(u, Diff):
            of, order = along(u)
            if not isinstance(of, Var) or not hasattr(values.get(of), "deriv"):
                raise Missing(str(u))
            found[u] = values[of].deriv(order)
    return found


def integral_of(program: Program, d: cd.Derivation, parts: Sequence[Part], names: Sequence[str]) -> str:
    """A program that integrates the printed result against variations v0, v1, …"""
    declared = ", ".join(re.escape(each) + r"(\{\w+\})?" for each in _declared(program, names))
    group = re.search(rf"\({declared}\) ->\s", str(d))
    assert group is not None, "the unknowns"
    head, body = str(d)[: group.start()], str(d)[group.end() :]
    lines = ["r = " + body]
    parts_text = [f"r{n}" for n in range(len(parts))]
    lines += [f"({', '.join(parts_text)}) = r"] if len(parts) > 1 else ["r0 = r"]
    total = []
    for n, part in enumerate(parts):
        total += list(_against(n, part, lines))
    variations = [f"v{n}::{_kind(program, part)}" for n, part in enumerate(parts)]
    unknown = ", ".join([group.group().rpartition(")")[0][1:], *variations])
    inside = "\n".join([*lines, " + ".join(total)])
    return f"{head}({unknown}) -> begin\n{inside}\nend"


def _kind(program: Program, part: Part) -> str:
    if part.unknown is not None:
        return "RF" if part.unknown.whole else f"({part.unknown.line.name}) -> R"
    return "RV" if part.name == "c" else "R"


def _declared(program: Program, names: Sequence[str]) -> list[str]:
    kinds = [u.kind for u in program.unknowns] + ["RV" if n == "c" else "R" for n in program.numbers]
    return [f"{n}::{k}" for n, k in zip(names, kinds, strict=True)]


def _against(n: int, part: Part, lines: list[str]) -> Iterator[str]:
    if part.unknown is None:
        yield f"sum(n, r{n}(n) * v{n}(n))" if part.name == "c" else f"r{n} * v{n}"
        return
    bulk = f"r{n}"
    if part.ends:
        names = [f"e{n}{m}" for m in range(len(part.ends))]
        lines.append(f"(b{n}, {', '.join(names)}) = r{n}")
        bulk = f"b{n}"
        for end, name, orders in zip(part.unknown.line.ends, names, part.ends, strict=True):
            heights = [f"{name}{m}" for m in orders] if len(orders) > 1 else [name]
            if len(orders) > 1:
                lines.append(f"({', '.join(heights)}) = {name}")
            yield from (f"{h} * {'grad(' * m}v{n}{')' * m}({end:g})" for h, m in zip(heights, orders, strict=True))
    over = "R" if part.unknown.whole else part.unknown.line.name
    yield f"sum(h::{over}, {bulk}(h) * v{n}(h))"


def _close(a: float, b: float, size: float) -> bool:
    return bool(abs(a - b) <= CLOSE * (abs(b) + min(abs(size), 1e3)) + 1e-8)


def complaints(seed: int, everything: bool = False) -> tuple[str, list[str], list[str]]:
    """The program of a seed, what is wrong with it, and what was refused."""
    program = drawn(seed)
    return examined(program, seed, everything)


def examined(program: Program, seed: int, everything: bool = False) -> tuple[str, list[str], list[str]]:
    rng = np.random.default_rng(seed)
    of = Examined(program, rng, -1 if everything else seed % 12)
    found: list[str] = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            found += of.complaints()
        except (cd.UnsupportedError, cd.BudgetError) as refusal:
            of.refused.append(refusal.message)
        except cd.CombDiffError as refusal:
            found.append(f"{type(refusal).__name__}: {refusal}")
        except Exception as problem:  # whatever goes wrong is a finding
            found.append(f"{type(problem).__name__}: {problem}")
    return program.text, found, of.refused


def shrunk(seed: int) -> Program:
    """The smallest program with a complaint of the first one's kind."""

    def kinds(program: Program) -> set[str]:
        return {each.partition(":")[0] for each in examined(program, seed)[1]}

    wanted = next(each.partition(":")[0] for each in complaints(seed)[1])
    return smallest(drawn(seed), lambda program: wanted in kinds(program))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--shrink", action="store_true", help="show the smallest program that has the complaint")
    options = parser.parse_args()
    start, wrong, done = time.perf_counter(), 0, 0
    refusals: Counter[str] = Counter()
    for seed in range(options.seed, options.seed + options.programs):
        began = time.perf_counter()
        if began - start > 60 * options.minutes:
            break
        done += 1
        text, found, refused = complaints(seed)
        for each in dict.fromkeys(refused):
            if each not in refusals:
                print(f"seed {seed} is refused: {each}\n    {text}", flush=True)
            refusals[each] += 1
        if (took := time.perf_counter() - began) > 30:
            print(f"seed {seed} took {took:.0f} s: {text}", flush=True)
        if found:
            wrong += 1
            print(f"seed {seed}: {text}\n    " + "\n    ".join(each[:500] for each in found), flush=True)
            if options.shrink:
                print(f"  as in\n{shrunk(seed).text}", flush=True)
    for each, count in refusals.most_common():
        print(f"{count:6} {each}")
    print(f"{done} programs, {wrong} with complaints, {time.perf_counter() - start:.0f} s")
    return wrong > 0


if __name__ == "__main__":
    raise SystemExit(main())
