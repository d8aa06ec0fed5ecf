"""Writes terms in the vocabulary of `rules/terms.egg`. It contains no law.

Variables are numbers there, and every binder has its own, whatever it is called here; parameters of a function are
curried; an index, or what stands between the bars of a δ, is linear. `extraction.py` leads back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from fractions import Fraction
from operator import attrgetter
from typing import TYPE_CHECKING, TypeGuard

from combdiff.simplify.contraction.extraction import WHOLE, Reader
from combdiff.simplify.contraction.moduli import kept_for_their_sizes
from combdiff.terms.branches import leaves_the_real_numbers
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.terms import (
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
    Mul,
    Pow,
    Proj,
    Reduce,
    Sum,
    Term,
    Tuple,
    Var,
    add,
    children,
    fresh,
    mul,
    number,
    numbers_read,
    split_coefficient,
    substitute,
    subterms,
    terms_of,
)
from combdiff.terms.types import Domain, Index, Number, Product, entry_range, is_complex

if TYPE_CHECKING:
    from egglog.bindings import TermDag


HIGHEST = 4
"""The highest power of a sum that is multiplied out."""

LONGEST = 1500
"""Characters of a term that is written in one piece."""

SHORTEST = 30
"""Characters that are written again rather than referred to."""


class Translation:
    """Terms to the e-graph's vocabulary and back; variables are numbers there, every binder has its own.

    What is long is written in pieces, each a command that names it, and what occurs twice and binds nothing is written
    once. With `spell_powers`, (a + b)² is written (a + b)(a + b), and |a + b|² is the real part of (a + b)'(a + b), for
    the laws of `expand` to multiply out. `ask` is called for every term; it may raise to stop.
    """

    def __init__(self, spell_powers: bool = False, ask: Callable[[], None] = lambda: None) -> None:
        self.spell_powers = spell_powers
        self.ask = ask
        self.pieces: list[str] = []
        self.written: dict[Hashable, str] = {}
        self.binding: dict[Term, bool] = {}
        self.variables: list[Term] = []
        self.numbers: dict[Term, int] = {}
        self.summed: dict[int, str] = {}
        self.domains: dict[Domain | None, int] = {None: 0}
        self.functions: dict[str, None] = {}
        self.continued: set[int] = set()
        self.read: set[Domain] = set()
        self.kept: frozenset[Var] = frozenset()

    # --- writing ---

    def root(self, t: Term) -> str:
        """The name of a whole term; within it, indices that are read as numbers are never shifted."""
        self.read = _read_as_numbers(t)
        self.kept = kept_for_their_sizes(t)
        return self._piece(self.write(t))

    def write(self, t: Term, scope: dict[Var, int] | None = None) -> str:
        """A term, or the name of one that was written before."""
        scope = scope if scope is not None else {}
        if isinstance(t, Var | Const):
            return self._write(t, scope)
        key = self._key(t, scope)
        text = self.written.get(key) if key is not None else None
        if text is None:
            self.ask()
            text = self._write(t, scope)
            text = self._piece(text) if len(text) > LONGEST else text
            if key is not None:
                self.written[key] = text
        return text

    def _piece(self, text: str) -> str:
        """The name of what is written in a command of its own."""
        name = f"(piece {len(self.pieces)})"
        self.pieces.append(f"(set {name} {text})")
        return name

    def _key(self, t: Term, scope: dict[Var, int]) -> Hashable | None:
        """What the text of `t` depends on; None where it has binders, which are to be its own."""
        if self._binds(t):
            return None
        inside = sorted([(v.uid, scope[v]) for v in t.free if v in scope]) if scope else ()
        return t, tuple(inside)

    def _binds(self, t: Term) -> bool:
        found = self.binding.get(t)
        if found is None:
            found = self.binding[t] = isinstance(t, Lam | Sum) or any(map(self._binds, children(t)))
        return found

    def _several(self, terms: Sequence[Term], scope: dict[Var, int]) -> str:
        """The terms in a row; each in a piece of its own where they are long."""
        texts = [self.write(u, scope) for u in terms]
        if sum(map(len, texts)) > LONGEST:
            texts = [self._piece(text) if len(text) > SHORTEST else text for text in texts]
        return " ".join(texts)

    def _write(self, t: Term, scope: dict[Var, int]) -> str:
        if isinstance(t.type, Index) and isinstance(t, Add | Mul):
            return f"(Lin (multiset-of {self._monomials(t, 1, scope)}))"
        match t:
            case Var():
                return f"(Var {scope[t] if t in scope else self._free(t)})"
            case Call(_, ()):
                return f"(Var {self._free(t)})"
            case Const(real, imag):
                return f"(Num {rational(real)} {rational(imag)})"
            case Lam(params, body):
                inner = {**scope, **{p: self._binder(p) for p in params}}
                text = self.write(body, inner)
                for p in reversed(params):
                    text = f"(Fn {inner[p]} {text})"
                self.continued.update(inner[p] for p in params[1:])
                return text
            case Sum(indices, body):
                return self._sum(indices, body, scope)
            case App(Reduce(kind, Lam(params, body)), ()) if kind in PLACES:
                return self._place(kind, params, body, scope)
            case App(f, args):
                return f"(At {self.write(f, scope)} (vec-of {' '.join(self.write(a, scope) for a in args)}))"
            case Delta(left, right, body):
                # both sides as they stand: k + b = k is a condition modulo the size of k's domain
                sides = f"{self._monomials(left, 1, scope)} {self._monomials(right, -1, scope)}"
                return f"(Delta (multiset-of (Lin (multiset-of {sides}))) {self.write(body, scope)})"
            case _:
                return self._write_plain(t, scope)

    def _place(self, kind: str, params: tuple[Var, ...], body: Term, scope: dict[Var, int]) -> str:
        """argmax(j, S(i, j)) as an entry, at i, of an array of integers: laws know what an entry depends on."""
        around = sorted([v for v in body.free.difference(params) if isinstance(v.kind, Index)], key=attrgetter("uid"))
        own = {v: fresh(v.name, v.kind) for v in around}
        array = self.write(Lam((*own.values(), *params), substitute(body, own)), scope)
        return f'(At (Derivative "{kind}" {array}) (vec-of {" ".join(self.write(v, scope) for v in around)}))'

    def _write_plain(self, t: Term, scope: dict[Var, int]) -> str:
        match t:
            case Add(terms):
                return f"(Plus (multiset-of {self._several(terms, scope)}))"
            case Mul(factors):
                return f"(Times (multiset-of {self._several(factors, scope)}))"
            case Pow(Add() as base, Const() as n) if self.spell_powers and n.is_integer and 2 <= n.real <= HIGHEST:
                # written anew for each factor, so that each has binders of its own
                return f"(Times (multiset-of {self._several([base] * int(n.real), scope)}))"
            case Call("abs2", (Add() as base,)) if self.spell_powers and is_complex(base.type):
                square = f"(Times (multiset-of (Conj {self.write(base, scope)}) {self.write(base, scope)}))"
                return self._call("real", square)
            case Pow(base, exponent):
                return f"(Power {self._complex(base, t, scope)} {self.write(exponent, scope)})"
            case Conj(u):
                return f"(Conj {self.write(u, scope)})"
            case Call(name, (u,)):
                return self._call(name, self._complex(u, t, scope))
            case Call(name, args):
                return self._call(name, self.write(Tuple(args), scope))
            case Indicator(left, right, body):
                return f"(Ordered {self.write(left, scope)} {self.write(right, scope)} {self.write(body, scope)})"
            case Diff(kind, of) | Reduce(kind, of):
                return f'(Derivative "{kind}" {self.write(of, scope)})'
            case Tuple(items):
                text = self.write(items[-1], scope)
                if isinstance(items[-1].type, Product):
                    # the tuple would else go on with the items of its last one
                    text = f'(Call "{WHOLE}" {text})'
                for item in reversed(items[:-1]):
                    text = f"(Pair {self.write(item, scope)} {text})"
                return text
            case Proj(item, of):
                return f"(Item {item} {self.write(of, scope)})"
        raise AssertionError(f"a {type(t).__name__} does not enter the e-graph")

    def _complex(self, argument: Term, of: Term, scope: dict[Var, int]) -> str:
        """The argument of a function; one that has to stay complex, whatever laws find of it, says so."""
        text = self.write(argument, scope)
        settled = isinstance(argument, Var | App | Conj) or not is_complex(argument.type)
        return text if settled or not leaves_the_real_numbers(of) else self._call("complex", text)

    def _call(self, name: str, argument: str) -> str:
        """A function of a number; `facts` get what laws must know of it."""
        self.functions[name] = None
        return f'(Call "{name}" {argument})'

    def _sum(self, indices: tuple[Var, ...], body: Term, scope: dict[Var, int]) -> str:
        inner = {**scope, **{i: self._binder(i) for i in indices}}
        for i in indices:
            kind = "plain" if i in self.kept else _solvable_kind(i, body, self.read)
            if kind:
                self.summed[inner[i]] = kind
        ids = " ".join(str(inner[i]) for i in indices)
        return f"(Sum (set-of {ids}) {self.write(body, inner)})"

    def _monomials(self, t: Term, sign: int, scope: dict[Var, int]) -> str:
        """The monomials of sign · t."""
        monomials = []
        for u in terms_of(t):
            c, rest = split_coefficient(u)
            if c.imag:
                c, rest = ONE, u
            if c != ZERO:
                monomials.append(f"(Mono {rational(sign * c.real)} {self.write(rest, scope)})")
        return " ".join(monomials)

    def _free(self, t: Term) -> int:
        if t not in self.numbers:
            self.numbers[t] = len(self.variables)
            self.variables.append(t)
        return self.numbers[t]

    def _binder(self, v: Var) -> int:
        copy = fresh(v.name, v.kind)
        self.variables.append(copy)
        return len(self.variables) - 1

    def facts(self) -> list[str]:
        """What the e-graph is to hold: the terms, and what laws must know of variables; asked when all is written."""
        facts = []
        aperiodic = {0}
        for n, v in enumerate(self.variables):
            # of an array of integers, what its entries range over
            domain = v.kind.domain if isinstance(v, Var) and isinstance(v.kind, Index) else entry_range(v.type)
            number = self.domains.setdefault(domain, len(self.domains))
            facts.append(f'(variable {n} "{self.summed.get(n, "")}" {number})')
            if not _is_periodic(domain):
                aperiodic.add(number)
        facts += [f"(aperiodic {number})" for number in sorted(aperiodic)]
        facts += [f'(commutes "{name}")' for name in self.functions if SCALAR_FUNCTIONS[name].commutes]
        facts += ['(linear "real")'] if "real" in self.functions else []
        return [*facts, *self.pieces]

    def reader(self, dag: TermDag) -> Reader:
        """What turns egglog's extracted terms back into ours."""
        return Reader(dag, self.variables, self.continued)


def rational(q: Fraction) -> str:
    """An exact number of any size.

    >>> rational(Fraction(1, 2)), rational(Fraction(2**62))
    ('(bigrat (bigint 1) (bigint 2))', '(bigrat (from-string "4611686018427387904") (bigint 1))')
    >>> rational(Fraction(1)), rational(Fraction(-1))
    ('(one)', '(minus-one)')
    """
    if q.denominator == 1 and abs(q.numerator) == 1:
        return "(one)" if q > 0 else "(minus-one)"
    return f"(bigrat {_integer(q.numerator)} {_integer(q.denominator)})"


def _integer(n: int) -> str:
    return f"(bigint {n})" if abs(n) < 2**62 else f'(from-string "{n}")'


def _read_as_numbers(t: Term) -> set[Domain]:
    """The periodic domains whose indices stand in arithmetic places: modulo n, −k is a slot but not a number."""
    return {v.kind.domain for v in numbers_read(t) if isinstance(v.kind, Index) and _is_periodic(v.kind.domain)}


def _is_periodic(domain: Domain | None) -> TypeGuard[Domain]:
    return domain is not None and domain.periodic


def _solvable_kind(v: Var, body: Term, read: Collection[Domain]) -> str:
    """How a δ may be solved for the summed variable `v`; empty where it may not."""
    match v.kind:
        case Index(Domain() as domain):
            if not domain.contractable or domain in read:
                # δ(b, c, e) for two indices of this domain is c in the place of b; δ(k + b, c, e) is left standing
                return "plain"
            return "periodic" if domain.periodic else "symmetric" if domain.symmetric else "plain"
        case Number() as kind:
            # a solution must not hold the variable itself: δ(t, f(t), e) is left standing
            if any(not _stands_bare(v, u) for u in subterms(body, Delta)):
                return ""
            return "dense" if kind.complex else "real"
        case _:
            return ""


def _stands_bare(v: Var, d: Delta) -> bool:
    sides = add(d.left, *(mul(number(-1), u) for u in terms_of(d.right)))
    parts = [split_coefficient(u) for u in terms_of(sides)]
    return all((u == v and not c.imag) or v not in u.free for c, u in parts)
