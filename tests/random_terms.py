"""Random result terms for the tests of generated code: every node that lowering meets, over domains of every sort."""

from __future__ import annotations

import random
from dataclasses import dataclass
from fractions import Fraction

from combdiff.terms.terms import (
    PI,
    App,
    Lam,
    Term,
    Tuple,
    Var,
    add,
    call,
    conj,
    delta,
    fresh,
    indicator,
    let,
    mul,
    number,
    power,
    total,
)
from combdiff.terms.types import COMPLEX, REAL, Domain, Index, Map, is_complex

N, M = Domain("A.1"), Domain("B.2")
BZ = Domain("BZ", declared=True, periodic=True)
X = Domain("X", declared=True, symmetric=True)
DOMAINS = (N, M, BZ, X)


def tensor(name: str, *domains: Domain, complex: bool = False) -> Var:
    return fresh(name, Map(tuple(Index(d) for d in domains), COMPLEX if complex else REAL))


def index(name: str, domain: Domain) -> Var:
    return fresh(name, Index(domain))


@dataclass
class Terms:
    """Draws closed terms `A -> … -> (i, j) -> body`."""

    rng: random.Random

    def __post_init__(self) -> None:
        self.tensors = [
            tensor("A", N, N, complex=True),
            tensor("B", N, M),
            tensor("x", N, complex=True),
            tensor("y", M),
            tensor("K", BZ, BZ, complex=True),
            tensor("S", N, BZ, M, BZ, complex=True),
            tensor("u", BZ),
            tensor("w", X, complex=True),
            tensor("V", X, BZ),
        ]
        self.scalars = [fresh("a", REAL), fresh("c", COMPLEX)]
        self.shared: list[Var] = []

    def program(self) -> Term:
        bindings = []
        for n in range(self.rng.choice((0, 0, 1, 2))):
            value = self.output()
            name = fresh(f"z{n}", value.type)
            bindings.append((name, value))
            self.shared.append(name)
        outputs = [self.output() for _ in range(self.rng.choice((1, 1, 2)))]
        body = Tuple(tuple(outputs)) if len(outputs) > 1 else outputs[0]
        return Lam(tuple(self.tensors), Lam(tuple(self.scalars), let(bindings, body)))

    def output(self) -> Term:
        params = [index(f"o{n}", self.rng.choice(DOMAINS)) for n in range(self.rng.randrange(3))]
        body = self.term(params, self.rng.choice((2, 3, 4, 5)))
        return Lam(tuple(params), body) if params else body

    def term(self, scope: list[Var], depth: int) -> Term:
        if depth == 0:
            return self.leaf(scope)
        draw = self.rng.choice(
            ("sum", "sum", "sum", "product", "product", "add", "conj", "power", "call", "delta", "indicator", "leaf")
        )
        below = depth - 1
        match draw:
            case "sum":
                inner = [index("ijkl"[n], self.rng.choice(DOMAINS)) for n in range(self.rng.choice((1, 2, 3)))]
                return total(inner, self.term([*scope, *inner], below))
            case "product":
                return mul(*(self.term(scope, below) for _ in range(self.rng.choice((2, 3)))))
            case "add":
                return add(*(mul(self.number(), self.term(scope, below)) for _ in range(2)))
            case "conj":
                return conj(self.term(scope, below))
            case "power":
                return power(self.term(scope, below), number(self.rng.choice((2, 3))))
            case "call":
                name = self.rng.choice(("sin", "tanh", "abs2", "real", "imag", "abs", "conj", "sqrt", "exp", "inverse"))
                return self.called(name, self.term(scope, below))
            case "delta":
                left, right = self.pair(scope)
                return delta(left, right, self.term(scope, below))
            case "indicator":
                left, right = self.pair(scope)
                return indicator(left, right, self.term(scope, below))
            case _:
                return self.leaf(scope)

    def called(self, name: str, t: Term) -> Term:
        """Functions are kept where they are well conditioned: roots and reciprocals of numbers away from 0."""
        bounded = call("sin", call("abs", t))
        match name:
            case "sqrt":
                return power(add(number(2), bounded), number(Fraction(1, 2)))
            case "inverse":
                return power(add(number(2), bounded), number(-1))
            case "exp":
                return call("exp", bounded)
            case "sin" | "tanh":
                return call(name, call("real", t) if is_complex(t.type) else t)
            case _:
                return call(name, t)

    def number(self) -> Term:
        choices = (number(1), number(-1), number(2), number(Fraction(-3, 2)), number((Fraction(1), Fraction(-2))))
        return self.rng.choice(choices)

    def pair(self, scope: list[Var]) -> tuple[Term, Term]:
        domain = self.rng.choice(DOMAINS)
        return self.position(domain, scope), self.position(domain, scope)

    def leaf(self, scope: list[Var]) -> Term:
        draw = self.rng.randrange(12)
        if draw == 0:
            return self.rng.choice(self.scalars)
        if draw == 1 and scope:
            return self.rng.choice(scope)
        known = [v for v in self.shared if not isinstance(v.kind, Map)]
        if draw == 2 and known:
            return self.rng.choice(known)
        if draw == 3:
            return PI
        tensors = [*self.tensors, *(v for v in self.shared if isinstance(v.kind, Map))]
        domains = {v.kind.domain for v in scope if isinstance(v.kind, Index)}
        fitting = [f for f in tensors if isinstance(f.kind, Map) and all(p.domain in domains for p in f.kind.params)]  # type: ignore[union-attr]
        f = self.rng.choice(fitting if fitting and self.rng.random() < 0.85 else tensors)
        assert isinstance(f.kind, Map)
        return App(f, tuple(self.position(p.domain, scope) for p in f.kind.params))  # type: ignore[union-attr]

    def position(self, domain: Domain, scope: list[Var]) -> Term:
        """An index expression for a slot of `domain` that stays in range."""
        fitting = [v for v in scope if isinstance(v.kind, Index) and v.kind.domain == domain]
        free = [v for v in scope if isinstance(v.kind, Index) and v.kind.domain in (BZ, X)]
        if domain == BZ and free and self.rng.random() < 0.5:
            parts = [mul(number(self.rng.choice((1, 1, -1, 2))), v) for v in self.rng.sample(free, min(2, len(free)))]
            return add(*parts, number(self.rng.choice((0, 0, 1, -2))))
        if not fitting or self.rng.random() < 0.05:
            return number(0)
        chosen = self.rng.choice(fitting)
        return mul(number(-1), chosen) if domain == X and self.rng.random() < 0.4 else chosen
