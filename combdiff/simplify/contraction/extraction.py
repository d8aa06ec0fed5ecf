"""Rebuilds terms from what egglog extracts, with the smart constructors. It contains no law.

`translation.py` wrote them in the vocabulary of `rules/terms.egg`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from combdiff.errors import CheckError
from combdiff.terms.nodes import PLACES, REDUCTIONS
from combdiff.terms.terms import (
    Diff,
    Lam,
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
    indicator,
    items_of,
    lam,
    mul,
    number,
    power,
    proj,
    reduced,
    substitute,
    total,
)

if TYPE_CHECKING:
    from egglog.bindings import TermDag

WHOLE = "tuple"
"""The name of what holds a tuple that is the last item of a tuple."""


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
            case "At", [f, xs] if self._is_place(f):
                return self._place(self._application(f)[1], self._elements(xs))
            case "At", [f, xs]:
                return apply(self(f), *map(self, self._elements(xs)))
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

    def _is_place(self, f: int) -> bool:
        name, args = self._application(f)
        return name == "Derivative" and self._literal(args[0]) in PLACES

    def _place(self, whole: Sequence[int], at: Sequence[int]) -> Term:
        """What was written as an entry of an array of integers: argmax(j, S(i, j)) of (i, j) -> S(i, j), at i."""
        kind, of = str(self._literal(whole[0])), self(whole[1])
        assert isinstance(of, Lam), "a map of indices"
        *own, index = of.params
        values = dict(zip(own, map(self, at), strict=True))
        return substitute(apply(reduced(kind, Lam((index,), of.body))), values)

    def _build_plain(self, name: str, args: list[int]) -> Term:
        match name, args:
            case "Power", [a, b]:
                return power(self(a), self(b))
            case "Conj", [a]:
                return conj(self(a))
            case "Call", [f, a]:
                inner = self(a)
                if self._literal(f) == WHOLE:
                    return inner
                return call(str(self._literal(f)), *items_of(inner))
            case "Ordered", [a, b, e]:
                return indicator(self(a), self(b), self(e))
            case "Derivative", [k, f]:
                kind = str(self._literal(k))
                return reduced(kind, self(f)) if kind in REDUCTIONS else Diff(kind, self(f))
            case "Pair", [a, b]:
                rest = self(b)
                goes_on = isinstance(rest, Tuple) and self._application(b)[0] == "Pair"
                return Tuple((self(a), *(children(rest) if goes_on else (rest,))))
            case "Item", [n, a]:
                return proj(int(self._literal(n)), self(a))
        raise CheckError(f"a law left {name} standing, which is no term")

    def _monomials(self, ms: int) -> list[tuple[Fraction, Term]]:
        pairs = [self._application(m)[1] for m in self._elements(ms)]
        return [(self._rational(q), self(x)) for q, x in pairs]

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
        """Each condition d = 0 as an equation, what is subtracted on the right; with a size, indices on the left."""
        for d in conditions:
            name, args = self._application(d)
            monomials = self._monomials(args[0]) if name == "Lin" else [(Fraction(1), self(d))]
            if any(isinstance(x, Sum) for _, x in monomials):
                # i + j = n - 1 for 0 = n - 1 - i - j
                sign = 1 if any(q > 0 and x.free for q, x in monomials) else -1
                monomials = [(sign * q, x) for q, x in monomials]
                left = add(*(mul(number(q), x) for q, x in monomials if q > 0 and x.free))
                right = add(*(mul(number(-q), x) for q, x in monomials if q < 0 or not x.free))
            else:
                left = add(*(mul(number(q), x) for q, x in monomials if q > 0))
                right = add(*(mul(number(-q), x) for q, x in monomials if q < 0))
            moduli = [x for q, x in monomials if q == 0]
            body = delta(add(left, *moduli), add(right, *moduli), body)
        return body
