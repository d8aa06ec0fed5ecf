"""Whole programs: parameters in groups, a body of a few terms, and what is asked of them."""

from __future__ import annotations

from random import Random

from .declarations import Declarations
from .kinds import Count, Function, Index, Integers, Number, Range, Tensor
from .loops import Loops
from .sight import LARGEST_LOOP, Draw, Sight, bare, is_complex
from .syntax import Add, App, Block, Call, Definition, Expr, Mul, Program, Ref, Sum, Tuple, Var
from .walks import free

THEMES = (
    "complex real ring symmetric bounded lattice list symmetry names mean centred guard fraction fraction kinks "
    "compared delta indicator parts singular exponent pi imaginary arithmetic index count tensors functions block "
    "call applied nested pulled equation inverted integral linear results marked gather"
)
NEWER = (
    "max min clip atan2 polygamma asin acos acosh atanh angle lgamma digamma floor ceil round where indices reals and "
    "or protected shifted sized gathered gathered gathered guarded prod mean maximum minimum logsumexp softmax ties "
    "cumsum norm weighted weighted stable stable argmax argmax matrix matrix cross cross "
    "tan sinh cosh cos tanh atan asinh expm1 log1p log2 log10 erf erfc sigmoid softplus relu"
)
LOOPING = 0.18
FORCED = frozenset(
    "fraction exponent equation inverted linear nested pulled integral applied block mean centred guard kinks "  # noqa: SIM905
    "compared".split()
)


def program(seed: int, number: int) -> Program:
    """The program of that number in the run of that seed.

    >>> from .spelling import text_of
    >>> text_of(program(1, 2)) == text_of(program(1, 2))
    True
    """
    rng = Random(f"{seed}:{number}")
    themes = frozenset(rng.sample(THEMES.split(), rng.choice((1, 2, 3, 3, 4))))
    loops = Random(f"{seed}:{number}:loops").random() < LOOPING
    return _Programs(Draw(rng, themes), loops).program()


class _Programs:
    def __init__(self, draw: Draw, loops: bool = False) -> None:
        self.draw = draw
        self.looping = loops
        self.declarations = Declarations(draw)
        self.expressions = Loops(draw)
        self.newer = tuple(draw.rng.sample(NEWER.split(), draw.one((2, 3, 4, 4))))

    def program(self) -> Program:
        captured, unknowns = self.parameters()
        groups = self.grouped(captured, unknowns)
        numbers = tuple(v for v in (*captured, *unknowns) if isinstance(v.kind, Number))
        tensors = tuple(v for v in (*captured, *unknowns) if isinstance(v.kind, Tensor))
        functions = tuple(v for v in (*captured, *unknowns) if isinstance(v.kind, Function))
        integers = tuple(v for v in captured if isinstance(v.kind, Integers))
        counts = tuple(v for v in captured if isinstance(v.kind, Count))
        sight = Sight(numbers, tensors, functions, integers=integers, counts=counts)
        if "results" in self.draw.favoured:
            body, mode = self.results(sight, unknowns), "pullback"
        else:
            body, mode = self.body(sight, unknowns), "grad"
        marked = mode == "grad" and self.draw.odds(0.6 if "marked" in self.draw.favoured else 0.03)
        return Program(groups, body, mode, marked, seed=self.draw.rng.randrange(2**31))

    def results(self, sight: Sight, unknowns: list[Var]) -> Expr:
        """A tensor, or a tuple of numbers and tensors; a block in front of it now and then."""
        draw, make = self.draw, self.expressions
        block: list[Definition] = []
        if draw.odds(0.4):
            d = make.definition(sight, 8)
            if not isinstance(d.names[0].kind, Function):
                block.append(d)
                sight = sight.and_(*d.names)
        items: list[Expr] = []
        for _ in range(draw.one((1, 1, 2, 2, 3))):
            budget = draw.one((4, 8, 12))
            items.append(make.tensor(sight, budget) or make.number(sight, budget))
        items += (self.expressions.loops(sight) if self.looping else self.newer_terms(sight))[:1]
        missing = [u for u in unknowns if not any(u in free(e) for e in (*items, *(d.value for d in block)))]
        items += [self.use(u, sight) for u in missing]
        body = items[0] if len(items) == 1 else Tuple(tuple(items))
        return Block(tuple(block), body) if block else body

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
        if "functions" in draw.favoured or "integral" in draw.favoured or draw.odds(0.05):
            captured += [d.function() if draw.odds(0.8) else d.functional() for _ in range(draw.one((1, 1, 2)))]
        if "linear" in draw.favoured:
            linear = d.linear()
            captured += [linear] if linear else []
        for _ in range(draw.one((1, 1, 2)) if "gather" in draw.favoured or "gathered" in self.newer else 0):
            integers = d.integers()
            captured += [integers] if integers else []
        if self.looping and draw.odds(0.6):
            steps = draw.one((0, 1, 2, 3, 3, 4, 5))
            captured.append(Var(Count(Range("steps", "plain", (steps,), named=True))))
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
        budget = draw.one((3, 4, 5, 6, 8, 8, 10, 10, 12, 14, 18, 24, 30))
        parts = draw.split(budget, draw.one((1, 1, 2, 2, 3)))
        terms = self.expressions.loops(sight) if self.looping else self.forced(sight)
        for b in parts[: 1 if terms else None] if not self.looping or draw.odds(0.5) else ():
            terms.append(self.expressions.number(sight, b))
        terms = terms or [self.expressions.number(sight, 3)]
        body = terms[0] if len(terms) == 1 else Add(tuple(terms))
        for u in unknowns:
            if u not in free(body):
                body = Add((body, self.use(u, sight)))
        if is_complex(body) and draw.odds(0.5):
            body = Call(draw.one(("real", "abs2", "imag")), body)
        return body

    def forced(self, sight: Sight) -> list[Expr]:
        """Terms of the constructs in favour, so that rare ones are not rare."""
        found = []
        for name in sorted(self.draw.favoured & FORCED):
            for _ in range(3 if self.draw.odds(0.7) else 0):
                e: Expr | None = getattr(self.expressions, f"_{name}")(sight, self.draw.one((7, 9, 12, 15)), ())
                if e is not None:
                    found.append(e)
                    break
        return found + self.newer_terms(sight)

    def newer_terms(self, sight: Sight) -> list[Expr]:
        """Terms of the newer constructs that were drawn for this program."""
        found = []
        for name in self.newer:
            for _ in range(4):
                e = self.expressions.newer(name, sight, self.draw.one((4, 5, 6, 8)))
                if e is not None:
                    found.append(e)
                    break
        return found

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
