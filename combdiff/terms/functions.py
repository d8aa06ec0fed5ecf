"""The table of the functions of numbers, and what a row of it is. The rows themselves are in `scalars.py`.

Nodes look functions up in the table, and rows are made of nodes: the table stands below both, and `scalars.py` fills it
when the package is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from combdiff.records import dataclass

if TYPE_CHECKING:
    from combdiff.terms.nodes import Term

    Derivative: TypeAlias = Term | tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """A row: `derivative` (holomorphic) or `pullback` (not), and how the world spells the function.

    A function of several numbers has `arity` of them, and the derivative by each in a tuple; the first `orders` of them
    are integers that are written out, and nothing is differentiated by them.
    A pullback that is a sum has the cotangent k in each term, for it is taken term by term. The `pushforward` beside a
    pullback is (z, k) ↦ f'(z) k, linear over the reals; without one it is made of the pullback.
    `numpy` is NumPy's name, or else `scipy` that in scipy.special; `after` are numbers that follow the arguments there.
    `commutes`: f(z') = f(z)' for all z, branch cuts included. `real_valued`: the value is real for complex z too;
    `complex_valued`: it is complex for real z too; `of_reals`: only real numbers have a value.
    `cut`: as a complex function it is not real at some real numbers: at those "below zero" only, or at "others".
    `finite`: it is finite with all its derivatives wherever its argument is, on the "reals" or on all "numbers".
    `least`: 0 where its real values are never negative, 1 where they are positive, else −1.
    `parity`: 1 where f(−z) = f(z), −1 where f(−z) = −f(z), else 0. `steps`: it jumps, and is constant in between.
    `folds`: f(a, b, c) is f(f(a, b), c).
    `safe`: a number where it is finite with its derivatives, for what stands under a condition that does not hold.
    `live` are marks, 1 where the derivative by each argument may not be 0, of a function with kinks.
    `made_of`: an equal term of other functions: what the gate computes, and SymPy where it does not know the name
    `sympy`, which is ours if it is left out. `codes` are the templates of a function of the user's own, by library.
    """

    name: str
    numpy: str
    latex: str
    derivative: Callable[..., Derivative] | None = None
    pullback: Callable[[Term, Term], Term] | None = None
    pushforward: Callable[[Term, Term], Term] | None = None
    commutes: bool = False
    cut: Literal["", "below zero", "others"] = ""
    real_valued: bool = False
    complex_valued: bool = False
    of_reals: bool = False
    finite: Literal["", "reals", "numbers"] = ""
    least: Literal[-1, 0, 1] = -1
    parity: int = 0
    steps: bool = False
    folds: bool = False
    arity: int = 1
    orders: int = 0
    scipy: str = ""
    after: tuple[int, ...] = ()
    safe: int | Fraction = 1
    sympy: str = ""
    live: Callable[..., tuple[Term, ...]] | None = None
    made_of: Callable[..., Term] | None = None
    codes: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_cut(self) -> bool:
        """Whether it jumps somewhere in the plane, below 0 or beyond 1 or −1 on the real axis."""
        return bool(self.cut) or self.is_angle

    @property
    def is_angle(self) -> bool:
        """Whether it is the angle of a point of the plane, 0 or π on the real axis."""
        return self.name in ("angle", "atan2")

    def parity_of(self, *, complex_: bool) -> int:
        """Its parity, 0 where a cut breaks it: asin has its value from above at 2 and −2, and above 2 is below −2."""
        return 0 if complex_ and self.has_cut else self.parity

    def derivatives(self, *args: Term) -> tuple[Term, ...]:
        """The derivative by each argument but the orders."""
        assert self.derivative is not None, "a holomorphic function"
        found = self.derivative(*args)
        return found if isinstance(found, tuple) else (found,)

    def template(self, module: str) -> str:
        """A call in a module that has it under NumPy's or SciPy's name, `{0}`, `{1}` … for the arguments.

        >>> SCALAR_FUNCTIONS["softplus"].template("np")
        'np.logaddexp({0}, 0)'
        """
        given = ", ".join([*(f"{{{n}}}" for n in range(self.arity)), *map(str, self.after)])
        return f"{module}.{self.numpy or self.scipy}({given})"

    def at(self, *numbers: Any) -> Any:  # numbers or arrays of NumPy's
        """The value at numbers, or entry by entry at arrays, in floating point.

        >>> print(SCALAR_FUNCTIONS["max"].at(2.0, 3.0))
        3.0
        """
        if self.codes:
            text = self.codes["numpy"].format("x")
            names = {"np": import_module("numpy"), "x": numbers[0]}
            if "special" in text:
                names["special"] = import_module("scipy.special")
            return eval(text, names)  # the user's own text
        module = import_module("numpy" if self.numpy else "scipy.special")
        return getattr(module, self.numpy or self.scipy)(*numbers, *self.after)


SCALAR_FUNCTIONS: dict[str, ScalarFunction] = {}
"""The functions by their names; `cd.register` adds to them."""
