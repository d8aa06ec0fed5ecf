"""What the tests of this folder compare with: values by broadcasting over all index values, and random terms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from random import Random

import numpy as np
from numpy.typing import NDArray

from combdiff.canon.canonical import NormalForm
from combdiff.terms.terms import (
    Add,
    App,
    Call,
    Conj,
    Const,
    Delta,
    Mul,
    Pow,
    Sum,
    Term,
    Var,
    add,
    call,
    children,
    conj,
    delta,
    fresh,
    mul,
    number,
    rebuild,
    split_coefficient,
    substitute,
    total,
)
from combdiff.terms.types import COMPLEX, HERMITIAN, REAL, SYMMETRIC, Domain, Index, Map, Symmetry
from combdiff.terms.types import Number as Scalar

Array = NDArray[np.complex128]

N = Domain("n", declared=True)
K = Domain("k", declared=True, periodic=True)
X = Domain("x", declared=True, symmetric=True)
SIZES = {N: 3, K: 7, X: 5}
ANTISYMMETRIC = Symmetry.permutation((2, 1), "neg")
BY_NEIGHBOUR = Symmetry((((1, 1),), ((0, 1),), ((2, 1), (3, 1)), ((3, -1),)), 1, True)


def index(name: str, domain: Domain) -> Var:
    return fresh(name, Index(domain))


def tensor(name: str, domains: tuple[Domain, ...], result: Scalar = COMPLEX, *symmetries: Symmetry) -> Var:
    return fresh(name, Map(tuple(map(Index, domains)), result, symmetries))


def at(f: Var, *args: Term) -> Term:
    return App(f, args)


def entries(f: Var, rng: np.random.Generator) -> Array:
    """Random values that obey the declared symmetries: sums over the images of every entry, again and again."""
    kind = f.kind
    assert isinstance(kind, Map)
    shape = tuple(SIZES[p.domain] for p in kind.params)
    value = rng.standard_normal(shape) + 1j * rng.standard_normal(shape) * kind.result.complex
    for _ in range(60):
        for s in kind.symmetries:
            mean = (value + _image(value, s, kind)) / 2
            value = mean if np.abs(mean - value).max(initial=0) > 1e-13 else value
    return value


def _image(value: Array, s: Symmetry, kind: Map) -> Array:
    grids = np.meshgrid(*(_range(p.domain) for p in kind.params), indexing="ij")
    rows = [sum(c * grids[t] for t, c in row) for row in s.rows]
    picked = value[tuple(_place(r, p.domain) for r, p in zip(rows, kind.params, strict=True))]
    return s.sign * (picked.conj() if s.conj else picked)


def _range(d: Domain) -> NDArray[np.int64]:
    n = SIZES[d]
    return np.arange(n) - (n // 2 if d.symmetric else 0)


def _place(values: NDArray[np.int64], d: Domain) -> NDArray[np.int64]:
    return (values % SIZES[d]) if d.periodic else values + (SIZES[d] // 2 if d.symmetric else 0)


def value(t: Term, arrays: Mapping[Var, Array], axes: Mapping[Var, int], rank: int) -> Array:
    """The value of `t` on the grid of all indices of `axes`, one axis each."""

    def go(u: Term) -> Array:
        return value(u, arrays, axes, rank)

    match t:
        case Const(a, b):
            return np.full((1,) * rank, complex(a, b))
        case Var():
            shape = [1] * rank
            shape[axes[t]] = -1
            return _range(t.kind.domain).reshape(shape).astype(complex)
        case App(f, args):
            places = [_place(_integer(go(a)), p.domain) for a, p in zip(args, f.kind.params, strict=True)]
            return arrays[f][tuple(np.broadcast_arrays(*places))]
        case Sum(indices, body):
            inner = go(body)
            for i in indices:
                repeated = SIZES[i.kind.domain] if inner.shape[axes[i]] == 1 else 1
                inner = inner.sum(axis=axes[i], keepdims=True) * repeated
            return inner
        case Delta(left, right, body):
            d = _integer(go(left) - go(right))
            return ((d % SIZES[K] if _wraps(left, right) else d) == 0) * go(body)
        case _:
            return _arithmetic(t, [go(u) for u in children(t)])


def _arithmetic(t: Term, parts: list[Array]) -> Array:
    match t:
        case Add():
            return sum(parts)
        case Mul():
            return math.prod(parts)
        case Conj():
            return parts[0].conj()
        case Pow(_, exponent):
            return parts[0] ** int(exponent.real)
        case Call(name, _):
            return _CALLS[name](parts[0]) + 0j
    raise AssertionError(t)


def _integer(numbers: Array) -> NDArray[np.int64]:
    return np.rint(numbers.real).astype(int)


def _wraps(left: Term, right: Term) -> bool:
    return any(v.kind.domain.periodic for v in left.free | right.free)


# arguments are damped, because exp and cos of large numbers overflow
_CALLS: dict[str, Callable[[Array], Array]] = {
    "exp": lambda z: np.exp(z / 50),
    "cos": lambda z: np.cos(z / 50),
    "sin": lambda z: np.sin(z / 50),
    "abs2": lambda z: abs(z) ** 2,
    "real": np.real,
}


class Pool:
    """Random terms over a few tensors and indices, and random equivalents of them."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.free = [index("a", N), index("c", N), index("f", K), index("g", X)]
        self.tensors = [
            tensor("A", (N, N), COMPLEX),
            tensor("H", (N, N), COMPLEX, HERMITIAN),
            tensor("S", (N, N), REAL, SYMMETRIC),
            tensor("D", (N, N), REAL, ANTISYMMETRIC),
            tensor("W", (N, N, N), COMPLEX, *(Symmetry.permutation(p, "neg") for p in ((2, 1, 3), (1, 3, 2)))),
            tensor("v", (N,), COMPLEX),
            tensor("u", (N, K), COMPLEX),
            tensor("M", (N, N, K, X), COMPLEX, BY_NEIGHBOUR),
            tensor("P", (K, K), COMPLEX, HERMITIAN),
            tensor("Q", (K, K), REAL, ANTISYMMETRIC),
            tensor("w", (X,), REAL, Symmetry.reflection((1,), 1, "ineg")),
            tensor("o", (X,), COMPLEX, Symmetry(((((0, -1),)),), -1, False)),
        ]

    def term(self, depth: int = 2) -> Term:
        """A random sum over three or four bound indices."""
        chosen = [index(f"i{n}", self.random.choice((N, N, K, X))) for n in range(self.random.randint(1, 4))]
        while sum(i.kind.domain is K for i in chosen) > 2:
            chosen.pop()
        body = self.product([*chosen, *self.free], depth)
        return total(chosen, body)

    def product(self, indices: list[Var], depth: int) -> Term:
        parts = [self.factor(indices, depth) for _ in range(self.random.randint(1, 3))]
        return mul(*parts)

    def factor(self, indices: list[Var], depth: int) -> Term:
        choice = self.random.random()
        if depth and choice < 0.12:
            return add(*(mul(number(self.random.choice((1, -1, 2))), self.product(indices, depth - 1)) for _ in "ab"))
        if depth and choice < 0.18:
            return call(self.random.choice(("exp", "cos", "sin", "abs2", "real")), self.product(indices, depth - 1))
        if depth and choice < 0.22:
            inner = index("s", self.random.choice((N, K, X)))
            return add(total((inner,), self.product([*indices, inner], depth - 1)), at(self.tensors[5], self.free[0]))
        if depth and choice < 0.25:
            return conj(self.product(indices, depth - 1))
        if choice < 0.28:
            pair = [i for i in indices if i.kind.domain is self.random.choice((K, X, N))]
            if len(pair) > 1:
                a, b = self.random.sample(pair, 2)
                return delta(a, b, self.entry(indices))
        if choice < 0.31:
            return self.random.choice(indices)
        return self.entry(indices)

    def entry(self, indices: list[Var]) -> Term:
        f = self.random.choice(self.tensors)
        args = [self.argument(p.domain, indices) for p in f.kind.params]
        e = at(f, *args)
        return conj(e) if self.random.random() < 0.3 else e

    def argument(self, domain: Domain, indices: list[Var]) -> Term:
        base: Term = self.random.choice([i for i in indices if i.kind.domain is domain])
        if domain is K and self.random.random() < 0.4:
            other = self.random.choice([i for i in indices if i.kind.domain in (K, X)])
            return add(base, mul(number(self.random.choice((1, -1))), other)) if other != base else base
        if domain is X and self.random.random() < 0.3:
            return mul(number(-1), base)
        return base


class Scramble:
    """Random equal terms: other names, other order, images under symmetries, shifted and reversed bound indices."""

    def __init__(self, random: Random, free: list[Var]) -> None:
        self.random = random
        self.free = free

    def __call__(self, t: Term, scope: tuple[Var, ...] = ()) -> Term:
        match t:
            case Sum(indices, body):
                names = {i: index(self.random.choice("xyz"), i.kind.domain) for i in indices}
                inner = substitute(body, names)
                for i in names.values():
                    inner = self.moved(i, inner, (*scope, *names.values()))
                new = list(names.values())
                self.random.shuffle(new)
                return Sum(tuple(new), self(inner, (*scope, *new)))
            case Mul(parts) | Add(parts) if not isinstance(t.type, Index):
                changed = [self(p, scope) for p in parts]
                self.random.shuffle(changed)
                return mul(*changed) if isinstance(t, Mul) else add(*changed)
            case App(f):
                e: Term = t
                for _ in range(3):
                    if f.kind.symmetries and self.random.random() < 0.6:
                        e = self.image(e, self.random.choice(f.kind.symmetries))
                return e
            case _:
                return rebuild(t, [self(c, scope) for c in children(t)]) if not isinstance(t.type, Index) else t

    def image(self, e: Term, s: Symmetry) -> Term:
        sign, e = split_coefficient(e)
        flipped = isinstance(e, Conj)
        entry = e.term if isinstance(e, Conj) else e
        args = [add(*(mul(number(c), entry.args[slot]) for slot, c in row)) for row in s.rows]
        made = App(entry.function, tuple(args))
        return mul(sign, number(s.sign), conj(made) if s.conj != flipped else made)

    def moved(self, i: Var, body: Term, scope: tuple[Var, ...]) -> Term:
        domain = i.kind.domain
        if domain is X and self.random.random() < 0.5:
            return substitute(body, {i: mul(number(-1), i)})
        if domain is K and _only_in_ring(i, body):
            by = [j for j in (*scope, *self.free) if j.kind.domain in (K, X) and j != i]
            shift = [mul(number(self.random.choice((1, -1))), self.random.choice(by))] if by else []
            turn = number(self.random.choice((1, -1)))
            return substitute(body, {i: add(mul(turn, i), *(shift if self.random.random() < 0.6 else []))})
        return body


def _only_in_ring(i: Var, t: Term) -> bool:
    """Whether `i` stands in slots of its own periodic domain alone."""
    if i not in t.free:
        return True
    if isinstance(t, App):
        return all(i not in a.free or p.domain is K for a, p in zip(t.args, t.function.kind.params, strict=True))
    if isinstance(t.type, Index):
        return False
    if isinstance(t, Delta):
        return _only_in_ring(i, t.body)
    return all(_only_in_ring(i, c) for c in children(t))


def total_of_product(pool: Pool) -> Term:
    """A random sum over a product of two to four entries."""
    chosen = [index(f"i{n}", pool.random.choice((N, N, K, X))) for n in range(pool.random.randint(2, 5))]
    while sum(i.kind.domain is K for i in chosen) > 2:
        chosen.pop()
    return total(chosen, mul(*(pool.entry([*chosen, *pool.free]) for _ in range(pool.random.randint(2, 4)))))


def signed(form: NormalForm) -> tuple[object, tuple[Fraction, Fraction]]:
    """What determines the value of a term."""
    a, b = form.coefficient
    return form.key, (a * form.sign, b * form.sign)
