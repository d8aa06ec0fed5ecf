"""Whole programs: parameters in groups, a body of a few terms, and what is asked of them."""

from __future__ import annotations

from random import Random

from .declarations import Declarations
from .expressions import WEIGHTS, Expressions
from .sight import LARGEST_LOOP, Draw, Sight, bare, is_complex
from .syntax import Add, App, Call, Expr, Function, Index, Mul, Number, Program, Ref, Sum, Tensor, Var, free

THEMES = (
    "complex real ring symmetric bounded lattice list symmetry names mean guard fraction kinks compared delta indicator "
    "parts singular exponent pi imaginary arithmetic index count tensors function"
).split()


def program(seed: int, number: int) -> Program:
    """The program of that number in the run of that seed.

    >>> from tests.fuzz.spelling import text_of
    >>> text_of(program(1, 2)) == text_of(program(1, 2))
    True
    """
    rng = Random(f"{seed}:{number}")
    themes = frozenset(rng.sample(THEMES, rng.choice((1, 2, 3, 3, 4))))
    return _Programs(Draw(rng, themes)).program()


class _Programs:
    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.declarations = Declarations(draw)
        self.expressions = Expressions(draw)

    def program(self) -> Program:
        captured, unknowns = self.parameters()
        groups = self.grouped(captured, unknowns)
        numbers = tuple(v for v in (*captured, *unknowns) if isinstance(v.kind, Number))
        tensors = tuple(v for v in (*captured, *unknowns) if isinstance(v.kind, Tensor))
        functions = tuple(v for v in (*captured, *unknowns) if isinstance(v.kind, Function))
        sight = Sight(numbers, tensors, functions)
        body = self.body(sight, unknowns)
        return Program(groups, body, seed=self.draw.rng.randrange(2**31))

    def parameters(self) -> tuple[list[Var], list[Var]]:
        d, draw = self.declarations, self.draw
        d.draw_ranges()
        most = 4 if "tensors" in draw.favoured else 2
        captured = [d.tensor(most) if draw.odds(0.8) else d.number() for _ in range(draw.one((0, 1, 1, 2, 2, 3)))]
        if "symmetry" in draw.favoured:
            captured.append(d.symmetric())
        for r in d.ranges:
            if not any(isinstance(v.kind, Tensor) and r in v.kind.slots for v in captured):
                captured.append(Var(Tensor((r,), draw.odds(d.complexity)), positive=False))
        unknowns = [d.tensor(most) if draw.odds(0.75) else d.number() for _ in range(draw.one((1, 1, 1, 2, 2, 3)))]
        draw.rng.shuffle(captured)
        return captured, unknowns

    def grouped(self, captured: list[Var], unknowns: list[Var]) -> tuple[tuple[Var, ...], ...]:
        groups: list[tuple[Var, ...]] = []
        rest = list(captured)
        while rest:
            n = len(rest) if self.draw.odds(0.7) else 1
            groups.append(tuple(rest[:n]))
            rest = rest[n:]
        return (*groups, tuple(unknowns))

    def body(self, sight: Sight, unknowns: list[Var]) -> Expr:
        draw = self.draw
        budget = draw.one((4, 6, 8, 10, 10, 12, 14, 16, 20, 26, 34))
        parts = draw.split(budget, draw.one((1, 1, 2, 2, 3)))
        terms = []
        for b in parts:
            terms.append(self.expressions.number(sight, b))
        body = terms[0] if len(terms) == 1 else Add(tuple(terms))
        for u in unknowns:
            if u not in free(body):
                body = Add((body, self.use(u, sight)))
        if is_complex(body) and draw.odds(0.5):
            body = Call(draw.one(("real", "abs2", "imag")), body)
        return body

    def use(self, u: Var, sight: Sight) -> Expr:
        """A term in which an unknown stands."""
        if not isinstance(u.kind, Tensor):
            return Mul((Ref(u), self.expressions.number(sight, 3)))
        indices = tuple(Var(Index(r)) for r in u.kind.slots)
        inner = sight.within(indices)
        entry: Expr = App(Ref(u), tuple(bare(i) for i in indices))
        if inner.loop <= LARGEST_LOOP:
            entry = Mul((entry, self.expressions.number(inner, 3)))
        if is_complex(entry) and self.draw.odds(0.4):
            entry = Call("abs2", entry)
        return Sum(indices, entry)


__all__ = ["THEMES", "WEIGHTS", "program"]
