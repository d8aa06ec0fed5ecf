"""Names for the variables of a program, chosen when it is written out: ordinary ones, and names that are traps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random

from .kinds import Count, Function, Index, Integers, Number, Tensor
from .syntax import (
    Affine,
    App,
    Block,
    Call,
    Definition,
    Expr,
    Lam,
    Looked,
    Loop,
    Norm,
    Program,
    Reduced,
    Several,
    Size,
    Var,
    bound_by,
    children,
    walk,
)
from .walks import used

_WORDS = (
    "begin let end sum im pi exp log sin cos tan sinh cosh tanh atan sqrt abs abs2 sign real imag conj complex "
    "log1p log2 log10 expm1 asinh softplus sigmoid relu erf erfc "
    "grad pullback adjoint inverse root iterate scan delta indicator where and or not true false"
)
WORDS = frozenset(_WORDS.split())
_PLAIN: Mapping[str, str] = {
    "index": "i j k l m n p q r s t i1 j1 a b c",
    "number": "a b c t s n m w z e r h y0 x0 u",
    "vector": "x y z u v w a b g h",
    "tensor": "A B M X Y Z K W V T J S C",
    "function": "f g h F G R L D H",
    "definition": "rho f g h y r s t d m P Q v w u1 x1 q z",
    "size": "n m N1 M K p q d n1 size len",
}
_GREEK = "α β γ ρ σ τ φ ψ Σ Ω λ μ ν θ ω Δ ℓ ħ ξ"
_TRAPS = (
    "len np jnp lambda None value out check memory gradient hvp def class is in np_ numpy for if return range print "
    "max min norm prod mean floor maximum softmax clip angle "
    "float int x1 u1 v P n m k1 k2 d1 i1 grad_f f_bar x_bar value_and_gradient True self import "
    "einsum where zeros ones E I N R C T 𝐟 ẋ x̂ x₁ ﬁ Ψ e π_ dot shape size sample full pack"
)


class Names:
    """The names of one program's variables and sizes.

    Variables may share a name where neither can be mistaken for the other: in different places, and, where `shadowing`
    is allowed, an inner one may hide an outer one that is not needed below.
    """

    def __init__(self, program: Program, rng: Random, plain: bool = False, titles: Iterable[str] = ()) -> None:
        self.titles = frozenset(titles)
        self.words = frozenset(w for e in walk(program.body) for w in _words_of(e))
        self.rng = rng
        self.plain = plain
        self.traps = 0.0 if plain else rng.choice((0.0, 0.0, 0.1, 0.4))
        self.of: dict[Var, str] = {}
        self.sizes: dict[object, str] = {}
        textual = any(isinstance(e, Definition) and e.textual for e in walk(program.body))
        self.shadowing = not plain and not textual and rng.random() < 0.3
        self._used: dict[Expr, set[Var]] = {}
        self.counts = [p for p in program.params if isinstance(p.kind, Count)]
        for p in program.params:
            self._choose(p, set(self.of.values()))
        self._below(program.body, set(self.of.values()))

    def size(self, of: object) -> str:
        """The name of a size, unlike every other name of the program."""
        if of not in self.sizes:
            taken = {*self.of.values(), *self.sizes.values(), *self.titles}
            fixed = getattr(of, "name", "")
            self.sizes[of] = self._drawn(fixed if fixed.startswith("=") else "size", taken)
        return self.sizes[of]

    def _below(self, e: Expr, taken: set[str]) -> None:
        if isinstance(e, Block):
            for d in e.definitions:
                self._below(d.value, taken)
                taken = self._bind(d.names, e, taken)
            self._below(e.body, taken)
            return
        inner = self._bind(bound_by(e), e, taken)
        for below in children(e):
            self._below(below, inner)

    def _bind(self, variables: Iterable[Var], e: Expr, taken: set[str]) -> set[str]:
        variables = tuple(variables)
        if not variables:
            return taken
        avoid = taken
        if self.shadowing:
            avoid = {self.of[v] for v in self._mentioned(e) if v in self.of}
        own: set[str] = set()
        # what is hidden is no number of steps any more
        avoid = avoid | {self.of[p] for p in self.counts}
        for v in variables:
            own.add(self._choose(v, avoid | own))
        return taken | own

    def _mentioned(self, e: Expr) -> set[Var]:
        if e not in self._used:
            self._used[e] = used(e)
        return self._used[e]

    def _choose(self, v: Var, taken: set[str]) -> str:
        self.of[v] = self._drawn(_sort(v), taken)
        if isinstance(v.kind, Count):
            self.sizes[v.kind.range] = self.of[v]
        return self.of[v]

    def _drawn(self, sort: str, taken: set[str]) -> str:
        if sort.startswith("="):
            return sort[1:]
        taken = taken | WORDS | self.words
        if not self.plain and self.rng.random() < self.traps:
            pool = [n for n in _TRAPS.split() if n not in taken]
            if pool:
                return self.rng.choice(pool)
        if not self.plain and self.rng.random() < 0.1:
            pool = [n for n in _GREEK.split() if n not in taken]
            if pool:
                return self.rng.choice(pool)
        pool = [n for n in _PLAIN[sort].split() if n not in taken]
        if pool:
            return pool[0] if self.plain else self.rng.choice(pool[: 8 if sort == "number" else 5])
        n = 2
        while f"{_PLAIN[sort].split()[0]}{n}" in taken:
            n += 1
        return f"{_PLAIN[sort].split()[0]}{n}"


def _words_of(e: Expr) -> tuple[str, ...]:
    """The functions of the language in `e` itself, which a name of the program would hide."""
    match e:
        case Call(name) | Several(name) | Reduced(name) | Loop(name):
            return (name,)
        case Norm():
            return ("norm",)
        case Size():
            return ("size",)
    return ()


def _sort(v: Var) -> str:
    if v.hint:
        return v.hint
    match v.kind:
        case Index():
            return "index"
        case Number():
            return "number"
        case Tensor(slots) | Integers(slots):
            return "vector" if len(slots) == 1 else "tensor"
        case Function():
            return "function"
        case Count():
            return "size"
        case _:
            return "definition"


def anchored(index: Var, body: Iterable[Expr]) -> bool:
    """Whether `index` stands bare in a slot of its own range, which tells how far it goes, and in no other."""
    assert isinstance(index.kind, Index), "an index"
    found = set()
    for e in body:
        for u in walk(e):
            if isinstance(u, App) and isinstance(u.function.kind, Tensor):
                for a, slot in zip(u.args, u.function.kind.slots, strict=True):
                    if isinstance(a, Affine) and a.bare is index:
                        found.add(slot)
            for _, v in u.terms if isinstance(u, Affine) else ():
                if isinstance(v, Looked) and v.array is not None and isinstance(v.array.kind, Integers):
                    found |= {s for a, s in zip(v.args, v.array.kind.slots, strict=True) if a.bare is index}
    return found == {index.kind.range}


__all__ = ["WORDS", "Lam", "Names", "anchored"]
