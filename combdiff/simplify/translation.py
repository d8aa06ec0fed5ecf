"""Terms in the vocabulary of `rules/terms.egg`, and back. No law is here.

Variables are numbers there, and every binder has its own, whatever it is called here; an application is curried; an
index, or what stands between the bars of a δ, is linear.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, TypeGuard

from combdiff.errors import CheckError
from combdiff.language.scalars import SCALAR_FUNCTIONS
from combdiff.language.terms import (
    ONE,
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
    Sum,
    Term,
    Tuple,
    Var,
    add,
    apply,
    call,
    children,
    conj,
    delta,
    fresh,
    indicator,
    lam,
    mul,
    number,
    power,
    proj,
    split_coefficient,
    subterms,
    total,
)
from combdiff.language.types import Domain, Index, Map, Number, is_complex

if TYPE_CHECKING:
    from egglog.bindings import TermDag


HIGHEST = 4
"""The highest power of a sum that is multiplied out."""


class Translation:
    """Terms to the e-graph's vocabulary and back; variables are numbers there, every binder has its own.

    With `spell_powers`, (a + b)² is written (a + b)(a + b), and |a + b|² is the real part of (a + b)'(a + b), for the
    laws of `expand` to multiply out.
    """

    def __init__(self, spell_powers: bool = False) -> None:
        self.spell_powers = spell_powers
        self.variables: list[Term] = []
        self.numbers: dict[Term, int] = {}
        self.summed: dict[int, str] = {}
        self.domains: dict[Domain, int] = {}
        self.continued: set[int] = set()
        self.read: set[Domain] = set()

    # --- writing ---

    def root(self, t: Term) -> str:
        """A whole term; within it, indices that are read as numbers are never shifted."""
        self.read = set(_read_as_numbers(t))
        return self.write(t)

    def write(self, t: Term, scope: dict[Var, int] | None = None) -> str:
        scope = scope if scope is not None else {}
        if isinstance(t.type, Index) and isinstance(t, Add | Mul):
            return f"(Lin (multiset-of {self._monomials(t, 1, scope)}))"
        match t:
            case Var():
                return f"(Var {scope[t] if t in scope else self._free(t)})"
            case Call(_, ()):
                return f"(Var {self._free(t)})"
            case Const(real, imag):
                return f"(Num {_rational(real)} {_rational(imag)})"
            case Lam(params, body):
                inner = {**scope, **{p: self._binder(p) for p in params}}
                text = self.write(body, inner)
                for p in reversed(params):
                    text = f"(Fn {inner[p]} {text})"
                self.continued.update(inner[p] for p in params[1:])
                return text
            case Sum(indices, body):
                return self._sum(t, indices, body, scope)
            case App(f, args):
                text = self.write(f, scope)
                for a in args:
                    text = f"(At {text} {self.write(a, scope)})"
                return text
            case Delta(left, right, body):
                # both sides as they stand: k + b = k is a condition modulo the size of k's domain
                sides = f"{self._monomials(left, 1, scope)} {self._monomials(right, -1, scope)}"
                return f"(Delta (multiset-of (Lin (multiset-of {sides}))) {self.write(body, scope)})"
            case _:
                return self._write_plain(t, scope)

    def _write_plain(self, t: Term, scope: dict[Var, int]) -> str:
        match t:
            case Add(terms):
                return f"(Plus (multiset-of {' '.join(self.write(u, scope) for u in terms)}))"
            case Mul(factors):
                return f"(Times (multiset-of {' '.join(self.write(u, scope) for u in factors)}))"
            case Pow(Add() as base, Const() as n) if self.spell_powers and n.is_integer and 2 <= n.real <= HIGHEST:
                # written anew for each factor, so that each has binders of its own
                copies = " ".join(self.write(base, scope) for _ in range(int(n.real)))
                return f"(Times (multiset-of {copies}))"
            case Call("abs2", (Add() as base,)) if self.spell_powers and is_complex(base.type):
                return f'(Call "real" (Times (multiset-of (Conj {self.write(base, scope)}) {self.write(base, scope)})))'
            case Pow(base, exponent):
                return f"(Power {self.write(base, scope)} {self.write(exponent, scope)})"
            case Conj(u):
                return f"(Conj {self.write(u, scope)})"
            case Call(name, (u,)):
                return f'(Call "{name}" {self.write(u, scope)})'
            case Indicator(left, right, body):
                return f"(Ordered {self.write(left, scope)} {self.write(right, scope)} {self.write(body, scope)})"
            case Diff(kind, of):
                return f'(Derivative "{kind}" {self.write(of, scope)})'
            case Tuple(items):
                text = self.write(items[-1], scope)
                for item in reversed(items[:-1]):
                    text = f"(Pair {self.write(item, scope)} {text})"
                return text
            case Proj(item, of):
                return f"(Item {item} {self.write(of, scope)})"
        raise AssertionError(f"a {type(t).__name__} does not enter the e-graph")

    def _sum(self, t: Term, indices: tuple[Var, ...], body: Term, scope: dict[Var, int]) -> str:
        inner = {**scope, **{i: self._binder(i) for i in indices}}
        for i in indices:
            kind = _solvable_kind(i, body, self.read)
            if kind:
                self.summed[inner[i]] = kind
        ids = " ".join(str(inner[i]) for i in indices)
        return f"(Sum (set-of {ids}) {self.write(body, inner)})"

    def _monomials(self, t: Term, sign: int, scope: dict[Var, int]) -> str:
        """The monomials of sign · t."""
        monomials = []
        for u in t.terms if isinstance(t, Add) else (t,):
            c, rest = split_coefficient(u)
            if c.imag:
                c, rest = ONE, u
            if c != ZERO:
                monomials.append(f"(Mono {_rational(sign * c.real)} {self.write(rest, scope)})")
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
        """What the laws must know of the variables; ask after everything is written."""
        facts = [f'(kind {n} "{kind}")' for n, kind in self.summed.items()]
        for n, v in enumerate(self.variables):
            if isinstance(v, Var) and isinstance(v.kind, Index) and v.kind.domain is not None:
                facts.append(f"(domain {n} {self.domains.setdefault(v.kind.domain, len(self.domains))})")
            if not (isinstance(v, Var) and isinstance(v.kind, Index) and _is_periodic(v.kind.domain)):
                facts.append(f"(aperiodic {n})")
        facts += [f'(commutes "{name}")' for name, row in SCALAR_FUNCTIONS.items() if row.commutes]
        return [*facts, '(linear "real")']

    def reader(self, dag: TermDag) -> Reader:
        """What turns egglog's extracted terms back into ours."""
        return Reader(dag, self.variables, self.continued)


class Reader:
    """Extracted terms, rebuilt with the smart constructors; shared parts are built once."""

    def __init__(self, dag: TermDag, variables: Sequence[Term], continued: set[int]) -> None:
        self.dag = dag
        self.continued = continued
        self.variables = variables
        self.seen: dict[int, Term] = {}

    def __call__(self, node: int) -> Term:
        if node not in self.seen:
            name, args = self._application(node)
            self.seen[node] = self._build(name, args)
        return self.seen[node]

    def _application(self, node: int) -> tuple[str, list[int]]:
        from egglog.bindings import TermApp

        app = self.dag.get(node)
        assert isinstance(app, TermApp), "an application"
        return app.name, app.args

    def _literal(self, node: int) -> int | str:
        from egglog.bindings import Int, String, TermLit

        found = self.dag.get(node)
        assert isinstance(found, TermLit) and isinstance(found.value, Int | String), "a number or a string"
        return found.value.value

    def _rational(self, node: int) -> Fraction:
        _, parts = self._application(node)
        numerator, denominator = (int(self._literal(self._application(p)[1][0])) for p in parts)
        return Fraction(numerator, denominator)

    def _elements(self, node: int) -> list[int]:
        return self._application(node)[1]

    def _variable(self, node: int) -> Var:
        found = self.variables[int(self._literal(node))]
        assert isinstance(found, Var), "a bound variable"
        return found

    def _build(self, name: str, args: list[int]) -> Term:
        match name, args:
            case "Var", [n]:
                return self.variables[int(self._literal(n))]
            case "Num", [a, b]:
                return number((self._rational(a), self._rational(b)))
            case "Lin", [ms]:
                return add(*(mul(number(q), x) for q, x in self._monomials(ms)))
            case "Plus", [es]:
                return add(*map(self, self._elements(es)))
            case "Times", [es]:
                return mul(*map(self, self._elements(es)))
            case "At", _:
                return self._applied(args)
            case "Fn", [v, e]:
                return self._function(v, e)
            case "Sum", [vs, e]:
                ids = sorted(int(self._literal(v)) for v in self._elements(vs))
                indices = [v for v in (self.variables[n] for n in ids) if isinstance(v, Var)]
                return total(indices, self(e))
            case "Delta", [ds, e]:
                return self._delta(self._elements(ds), self(e))
            case _:
                return self._build_plain(name, args)

    def _build_plain(self, name: str, args: list[int]) -> Term:
        match name, args:
            case "Power", [a, b]:
                return power(self(a), self(b))
            case "Conj", [a]:
                return conj(self(a))
            case "Call", [f, a]:
                return call(str(self._literal(f)), self(a))
            case "Ordered", [a, b, e]:
                return indicator(self(a), self(b), self(e))
            case "Derivative", [k, f]:
                return Diff(str(self._literal(k)), self(f))
            case "Pair", [a, b]:
                rest = self(b)
                return Tuple((self(a), *(rest.items if isinstance(rest, Tuple) else (rest,))))
            case "Item", [n, a]:
                return proj(int(self._literal(n)), self(a))
        raise CheckError(f"a law left {name} standing, which is no term")

    def _monomials(self, ms: int) -> list[tuple[Fraction, Term]]:
        pairs = [self._application(m)[1] for m in self._elements(ms)]
        return [(self._rational(q), self(x)) for q, x in pairs]

    def _applied(self, args: list[int]) -> Term:
        """Curried applications, gathered to as many arguments as the map has."""
        spine = [args[1]]
        head = args[0]
        while self._application(head)[0] == "At":
            head, argument = self._application(head)[1]
            spine.insert(0, argument)
        result = self(head)
        while spine:
            assert isinstance(result.type, Map), "only maps are applied"
            arity = len(result.type.params)
            result = apply(result, *map(self, spine[:arity]))
            spine = spine[arity:]
        return result

    def _function(self, v: int, e: int) -> Term:
        """Curried parameters of one λ-term, gathered again where the writer took them apart."""
        params = [self._variable(v)]
        name, args = self._application(e)
        while name == "Fn" and self._literal(args[0]) in self.continued:
            params.append(self._variable(args[0]))
            e = args[1]
            name, args = self._application(e)
        return lam(params, self(e))

    def _delta(self, conditions: Sequence[int], body: Term) -> Term:
        """Each condition d = 0 as an equation, what is subtracted on the right."""
        for d in conditions:
            name, args = self._application(d)
            monomials = self._monomials(args[0]) if name == "Lin" else [(Fraction(1), self(d))]
            left = add(*(mul(number(q), x) for q, x in monomials if q > 0))
            right = add(*(mul(number(-q), x) for q, x in monomials if q < 0))
            moduli = [x for q, x in monomials if q == 0]
            body = delta(add(left, *moduli), add(right, *moduli), body)
        return body


def _rational(q: Fraction) -> str:
    return f"(bigrat {_integer(q.numerator)} {_integer(q.denominator)})"


def _integer(n: int) -> str:
    return f"(bigint {n})" if abs(n) < 2**62 else f'(from-string "{n}")'


def _read_as_numbers(t: Term) -> Iterator[Domain]:
    """The periodic domains whose indices stand in arithmetic places: modulo n, −k is a slot but not a number."""
    for u in subterms(t):
        read = _arithmetic_places(u)
        yield from (
            v.kind.domain for c in read for v in c.free if isinstance(v.kind, Index) and _is_periodic(v.kind.domain)
        )


def _arithmetic_places(u: Term) -> list[Term]:
    """The index expressions directly below `u` that it takes for numbers."""
    match u:
        case Add() | Mul() if isinstance(u.type, Index):
            return []
        case App(f, args) if isinstance(f.type, Map):
            below = [a for a, kind in zip(args, f.type.params, strict=True) if not isinstance(kind, Index)]
        case Delta(_, _, body):
            below = [body]
        case _:
            below = [*children(u)]
    return [c for c in below if isinstance(c.type, Index)]


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
            if any(isinstance(u, Delta) and not _stands_bare(v, u) for u in subterms(body)):
                return ""
            return "dense" if kind.complex else "real"
        case _:
            return ""


def _stands_bare(v: Var, d: Delta) -> bool:
    sides = add(d.left, mul(number(-1), d.right))
    parts = [split_coefficient(u) for u in (sides.terms if isinstance(sides, Add) else (sides,))]
    return all((u == v and not c.imag) or v not in u.free for c, u in parts)
