"""Definitions, functions of one's own, unknown functions, derivatives inside, equations, integrals."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

from .conditions import WEIGHTS as CONDITIONS
from .expressions import WEIGHTS
from .functions import WEIGHTS as FUNCTIONS
from .kinds import COMPLEX, REAL, Function, Index, Items, Number, Range, Tensor, Type, over_complex
from .reductions import WEIGHTS as REDUCTIONS
from .reductions import Reductions
from .sight import LARGEST_LOOP, Sight, bare, is_complex
from .syntax import (
    Add,
    App,
    Block,
    Call,
    Constant,
    Definition,
    Derived,
    Div,
    Expr,
    Integral,
    Lam,
    Literal,
    Mul,
    Neg,
    Power,
    Ref,
    Sum,
    Tuple,
    Var,
    copied,
)
from .walks import free

SMALL = 5  # unknowns of an equation
CALLED = 30  # values of the indices around a call, which multiply those inside of the function


class Structures(Reductions):
    """Draws numbers of all constructs."""

    weights: ClassVar[dict[str, float]] = {
        **WEIGHTS,
        **FUNCTIONS,
        **CONDITIONS,
        **REDUCTIONS,
        "block": 0.7,
        "call": 0.4,
        "applied": 0.15,
        "nested": 0.15,
        "pulled": 0.12,
        "equation": 0.06,
        "inverted": 0.06,
        "integral": 0.12,
    }

    # --- definitions ------------------------------------------------------------------------------------------------

    def _block(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        if budget < 6:
            return None
        count = self.draw.one((1, 1, 1, 2, 2, 3))
        *parts, last = self.draw.split(budget - 1 - count, count + 1)
        definitions: list[Definition] = []
        inner, made = sight, []
        for b in parts:
            d = self.definition(inner, max(3, b))
            definitions.append(d)
            made.extend(d.names)
            inner = _seeing(inner, d.names)
        body = self.number(inner, max(3, last), needed)
        for v in made:
            uses = self.draw.one((0, 1, 1, 1, 2)) if v not in free(body) else self.draw.one((0, 0, 1))
            for _ in range(uses):
                body = self.draw.one((Add, Mul, Mul))((self.use_of(v, inner), body))
        # what text is never put in tells no range
        seen = free(body)
        return Block(tuple(replace(d, textual=d.textual and not seen.isdisjoint(d.names)) for d in definitions), body)

    def definition(self, sight: Sight, budget: int) -> Definition:
        """A number, a tensor, a function, or two numbers at once."""
        e: Expr | None
        roll = self.draw.rng.random()
        textual = self.draw.odds(0.27)
        if roll < 0.35:
            return Definition((self._named(e := self.number(sight, budget)),), e, textual)
        if roll < 0.7:
            e = self.tensor(sight, budget) if self.draw.odds(0.85) else self.map_of_reduction(sight, budget)
            if e is not None:
                return Definition((self._named(e),), e, textual)
        if roll < 0.85:
            f = self.closure(sight, budget)
            return Definition((self._named(f),), f)
        first, second = self.draw.split(budget, 2)
        items: list[Expr] = [self.number(sight, first), self.tensor(sight, second) or self.number(sight, second)]
        self.draw.rng.shuffle(items)
        return Definition(tuple(self._named(e) for e in items), Tuple(tuple(items)))

    def _named(self, e: Expr) -> Var:
        return Var(e.kind, "definition" if not isinstance(e.kind, Function) else "function")

    def tensor(self, sight: Sight, budget: int) -> Lam | None:
        """A map of one or two indices."""
        indices: list[Var] = []
        inner = sight
        for _ in range(self.draw.one((1, 1, 2))):
            i = self._new_index(inner)
            if i is not None:
                indices.append(i)
                inner = inner.within([i])
        return self.map_over(indices, inner, budget) if indices else None

    def map_over(self, indices: list[Var], inner: Sight, budget: int, c: bool | None = None) -> Lam | None:
        """A map of these indices, complex or not if that is asked for."""
        body = (
            self.number(inner, budget - 1, tuple(indices))
            if c is not False
            else self.real(inner, budget - 1, tuple(indices))
        )
        if c and not is_complex(body):
            body = Mul((Constant("im"), body))
        summed = self.summed(tuple(indices), body)
        return Lam(tuple(indices), body) if summed is not None else None

    def closure(self, sight: Sight, budget: int, derived: bool = False) -> Lam:
        """A function of numbers or tensors to a number, or to a tensor.

        It may be called inside of sums, and a derivative of it is taken in the direction of every entry at once.
        """
        params = tuple(self.parameter(sight) for _ in range(self.draw.one((1, 1, 2))))
        loop = max(sight.loop, CALLED)
        for p in params:
            loop *= p.kind.count if derived and isinstance(p.kind, Tensor) else 1
        inner = replace(sight.and_(*params), loop=loop)
        fewer = replace(inner, numbers=tuple(v for v in inner.numbers if v in params or self.draw.odds(0.5)))
        fewer = replace(fewer, tensors=tuple(v for v in inner.tensors if v in params or self.draw.odds(0.5)))
        if self.draw.odds(0.25):
            result = self.tensor(inner, budget)
            if result is not None:
                return Lam(params, result)
        return Lam(params, self.number(fewer, max(3, budget - 1)))

    def parameter(self, sight: Sight) -> Var:
        """A parameter for which there is an argument in sight."""
        if sight.tensors and self.draw.odds(0.55):
            kind = self.draw.one(sight.tensors).kind
            assert isinstance(kind, Tensor), "a tensor"
            return Var(Tensor(kind.slots, kind.complex))
        return Var(COMPLEX if any(over_complex(v.kind) for v in sight.numbers) and self.draw.odds(0.5) else REAL)

    def use_of(self, v: Var, sight: Sight) -> Expr:
        """A number in which a definition stands."""
        match v.kind:
            case Number():
                return Ref(v)
            case Tensor(slots):
                indices: list[Var] = []
                for r in slots:
                    known = [i for i in sight.over(r) if self.draw.odds(0.7)]
                    indices.append(self.draw.one(known) if known else Var(Index(r)))
                new = [i for i in indices if i not in sight.indices]
                entry: Expr = App(Ref(v), tuple(bare(i) for i in indices))
                if new and self.draw.odds(0.4):
                    entry = Power(entry, Literal(Fraction(2)))
                return Sum(tuple(new), entry) if new else entry
            case Function():
                return self.called(Ref(v), v.kind, sight, 6) or Literal(Fraction(1))
        raise AssertionError(f"no use of {v.kind}")

    # --- functions --------------------------------------------------------------------------------------------------

    def _call(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        """A function in sight at arguments, or its derivative."""
        ready = [f for f in sight.functions if self._may_be_called(f, sight)]
        if not ready:
            return None
        f = self.draw.one(ready)
        assert isinstance(f.kind, Function), "a function"
        head: Expr = Ref(f)
        kind = f.kind
        if kind.linear:
            if self.draw.odds(0.3):
                head = Derived("adjoint", head)
        elif isinstance(kind.result, Number) and self.draw.odds(0.2):
            return self.derivative_at(head, sight, budget)
        assert isinstance(head.kind, Function), "a function"
        return self.called(head, head.kind, sight, budget - 1)

    def _may_be_called(self, f: Var, sight: Sight) -> bool:
        """An unknown map of tensors is called once, not for each value of an index; nothing grows too large."""
        assert isinstance(f.kind, Function), "a function"
        if f.hint == "function":
            return sight.loop <= CALLED and all(
                not isinstance(k, Tensor) or k.count <= 2 * CALLED for k in f.kind.params
            )
        whole = any(isinstance(k, Tensor) for k in f.kind.params)
        return f.kind.linear or not (whole and sight.indices)

    def _linear(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        """A linear map in sight, or its adjoint, at an argument."""
        maps = [f for f in sight.functions if isinstance(f.kind, Function) and f.kind.linear]
        if not maps:
            return None
        head: Expr = Ref(self.draw.one(maps))
        if self.draw.odds(0.6):
            head = Derived("adjoint", head)
        assert isinstance(head.kind, Function), "a function"
        return self.called(head, head.kind, sight, budget - 1)

    def called(self, head: Expr, kind: Function, sight: Sight, budget: int) -> Expr | None:
        """head(arguments) as a number: an entry of it if it is a tensor."""
        parts = self.draw.split(max(1, budget), len(kind.params))
        args = [self.argument(k, sight, b) for k, b in zip(kind.params, parts, strict=True)]
        if any(a is None for a in args):
            return None
        given = tuple(a for a in args if a is not None)
        plain = len(given) == 1 and isinstance(kind.result, Number) and isinstance(kind.params[0], Number)
        result: Expr = App(head, given, piped=plain and isinstance(head, Ref) and self.draw.odds(0.15))
        return self.entry_of(result, sight)

    def argument(self, kind: Type, sight: Sight, budget: int) -> Expr | None:
        """An expression of a type."""
        match kind:
            case Number(complex=False):
                return self.real(sight, min(budget, 8))
            case Number():
                e = self.number(sight, min(budget, 8))
                return e if is_complex(e) else Mul((Constant("im"), e))
            case Tensor(slots, c):
                ready = [t for t in sight.tensors if t.kind == kind or _alike(t.kind, kind)]
                if ready and (budget < 4 or self.draw.odds(0.6)):
                    return Ref(self.draw.one(ready))
                indices = [Var(Index(r)) for r in slots]
                inner = sight.within(indices)
                if inner.loop > LARGEST_LOOP:
                    return Ref(self.draw.one(ready)) if ready else None
                return self.map_over(indices, inner, max(3, min(budget, 8)), c) or (
                    Ref(self.draw.one(ready)) if ready else None
                )
        return None

    def _applied(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        """A function where it is applied, or a function of a function."""
        f = self.closure(sight, budget - 4)
        assert isinstance(f.kind, Function), "a function"
        if self.draw.odds(0.3) and isinstance(f.kind.result, Number):
            return self._of_functions(f, sight, budget)
        return self.called(f, f.kind, sight, 4)

    def _of_functions(self, f: Lam, sight: Sight, budget: int) -> Expr | None:
        """A map that takes a map: (g::(R) -> R) -> g(…) + g(…), with f for g."""
        kind = f.kind
        assert isinstance(kind, Function), "a function"
        if not all(isinstance(k, Number) for k in kind.params):
            return None
        g = Var(kind, "function")
        one, two = self.called(Ref(g), kind, sight, 3), self.called(Ref(g), kind, sight, 3)
        if one is None or two is None:
            return None
        return App(Lam((g,), Add((one, two))), (f,))

    # --- derivatives inside -----------------------------------------------------------------------------------------

    def _nested(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        if budget < 6:
            return None
        f = self.closure(sight, budget - 4, derived=True)
        if not isinstance(f.body.kind, Number):
            return None
        return self.derivative_at(f, sight, 4)

    def derivative_at(self, head: Expr, sight: Sight, budget: int) -> Expr | None:
        """grad(f)(…), by one of the arguments if there are several; pullback(f)(…, k) where f is complex."""
        kind = head.kind
        assert isinstance(kind, Function), "a function"
        which = self.draw.rng.randrange(len(kind.params)) + 1 if len(kind.params) > 1 or self.draw.odds(0.1) else 0
        how = "pullback" if over_complex(kind.result) or self.draw.odds(0.15) else "grad"
        derived = Derived(how, head, which)
        assert isinstance(derived.kind, Function), "a function"
        if isinstance(derived.kind.result, Items):
            return None
        return self.called(derived, derived.kind, sight, budget)

    def _pulled(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        """The pullback of a map to a tensor."""
        if budget < 8:
            return None
        param = self.parameter(sight)
        directions = param.kind.count if isinstance(param.kind, Tensor) else 1
        body = self.tensor(replace(sight.and_(param), loop=sight.loop * directions), budget - 5)
        if body is None:
            return None
        derived = Derived("pullback", Lam((param,), body))
        assert isinstance(derived.kind, Function), "a function"
        return self.called(derived, derived.kind, sight, 4)

    # --- equations and integrals ------------------------------------------------------------------------------------

    def _equation(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        """root(x -> x³ + x + bounded): Newton's method finds it from anywhere."""
        if sight.indices or budget < 6:
            return None
        small = [r for r in sight.ranges() if r.count <= SMALL]
        three = Literal(Fraction(3))
        outer = sight.real()
        if self.draw.odds(0.5) or not small:
            x = Var(REAL, "number")
            rest = Call("sin", self.real(outer, budget - 6))
            return Derived("root", Lam((x,), Add((Power(Ref(x), three), Ref(x), Neg(rest)))))
        r = self.draw.one(small)
        v, i, j = Var(Tensor((r,))), Var(Index(r)), Var(Index(r))
        inner = outer.within([i])
        rest = Call("sin", self.real(inner, budget - 8, (i,)))
        mixed = Div(Sum((j,), App(Ref(v), (bare(j),))), Literal(Fraction(20)))
        own = App(Ref(v), (bare(i),))
        g = Lam((v,), Lam((i,), Add((Power(own, three), own, mixed, Neg(rest)))))
        return self.entry_of(Derived("root", g), sight)

    def _inverted(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        """inverse(v -> 6 v + M v)(b), the entries of M being at most one half."""
        if sight.indices or budget < 6:
            return None
        small = [r for r in sight.ranges() if r.count <= SMALL]
        if not small:
            return None
        r = self.draw.one(small)
        i, j = Var(Index(r)), Var(Index(r))
        e = self.leaf(sight.within([i, j]), (i, j))
        c = is_complex(e)
        v = Var(Tensor((r,), c))
        square: Expr = Call("abs2", e) if c else Power(e, Literal(Fraction(2)))
        weight = Div(e, Add((Literal(Fraction(1)), copied(square))))
        row = Sum((j,), Mul((weight, App(Ref(v), (bare(j),)))))
        h = Lam((v,), Lam((i,), Add((row, Mul((Literal(Fraction(6)), App(Ref(v), (bare(i),))))))))
        right = self.argument(v.kind, sight, budget - 8)
        return None if right is None else self.entry_of(App(Derived("inverse", h), (right,)), sight)

    def _integral(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        """∫ δ(c x, a, f(x)) dx."""
        x = Var(REAL, "number")
        at = self.real(sight, min(4, budget // 3))
        if not isinstance(at, Ref | App | Add | Mul | Call | Neg | Div):
            return None
        inner = sight.and_(x)
        body = self.number(inner, max(2, budget - 6), needed)
        if x not in free(body):
            body = Mul((body, self._smooth(x, sight)))
        slope = Fraction(self.draw.one((1, 1, 1, 2, -1, 3)))
        return Integral(x, slope, at, body)

    def _smooth(self, x: Var, sight: Sight) -> Expr:
        kinds = (Function((REAL,), REAL), Function((REAL,), COMPLEX))
        unknown = [f for f in sight.functions if f.kind in kinds]
        if unknown and self.draw.odds(0.6):
            return App(Ref(self.draw.one(unknown)), (Ref(x),))
        return self.draw.one((Power(Ref(x), Literal(Fraction(2))), Call("sin", Ref(x)), Call("tanh", Ref(x))))


def _alike(a: Type, b: Type) -> bool:
    return isinstance(a, Tensor) and isinstance(b, Tensor) and a.slots == b.slots and a.complex == b.complex


def _seeing(sight: Sight, names: tuple[Var, ...]) -> Sight:
    """With what was defined; new values are seen twice, so that they are used often."""
    values = tuple(v for v in names if not isinstance(v.kind, Function))
    functions = tuple(v for v in names if isinstance(v.kind, Function))
    inner = sight.and_(*values, *values)
    return replace(inner, functions=(*inner.functions, *functions))


__all__ = ["Range", "Structures"]
