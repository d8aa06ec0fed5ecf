"""Turns a result into SymPy's objects: entries `Indexed`, Σ `Sum` from 0 to n − 1, δ `KroneckerDelta`, ∫ `Integral`.

Arrays are those of the code that we emit: they have an axis for each index, and for each direction of one of a lattice;
entry 0 comes first, so that the entry of an index b from −M to M is `w[M + b]`, and one of a periodic domain is taken
modulo its size. A list of offsets is itself an array, whose row is the offset at a position.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from combdiff.arrays.lower.signature import result_of
from combdiff.calculus.definitions.floating import unfold
from combdiff.errors import UnsupportedError
from combdiff.notation.symbolic_terms import Limit, SymbolScope, refuse
from combdiff.records import dataclass
from combdiff.terms.terms import Lam, Term, Tuple, Var, apply, fresh, let, tuple_of
from combdiff.terms.types import Index, Map

if TYPE_CHECKING:
    from sympy import Basic, Expr, Symbol


@dataclass(frozen=True, slots=True)
class Equation:
    """`entry = expression`, for the values of the indices that `limits` give: (index, first, last).

    The entry is one of an array, as `P[i, j]`; or a number `c`, or `f(t)`.
    """

    entry: Expr
    limits: tuple[Limit, ...]
    expression: Expr

    @property
    def indices(self) -> tuple[Symbol, ...]:
        """What the expression is an expression of, beside the arguments; real numbers where it is a function."""
        return tuple(index for index, _, _ in self.limits)

    def __str__(self) -> str:
        return f"{self.entry} = {self.expression}"


@dataclass(frozen=True, slots=True)
class SymbolicResult:
    """A result in SymPy: its `arguments` by name, the shared values as `definitions`, and the `results`.

    An argument that would print as a constant of SymPy, such as `E` next to `exp(1)`, is a symbol of another name.
    `shapes` are those of the arrays among the arguments, in symbols for the sizes.
    Where there is one result, `indices` and `expression` are its own.
    """

    arguments: Mapping[str, Basic]
    shapes: Mapping[str, tuple[Expr, ...]]
    definitions: tuple[Equation, ...]
    results: tuple[Equation, ...]

    @property
    def indices(self) -> tuple[Symbol, ...]:
        """The indices of the only result."""
        return self._only().indices

    @property
    def expression(self) -> Expr:
        """The entry of the only result, or its value if it is a number."""
        return self._only().expression

    def _only(self) -> Equation:
        if len(self.results) != 1:
            raise UnsupportedError(
                f"there are {len(self.results)} results, each with indices and an expression of its own",
                remedy="take one of them: results[0].expression",
            )
        return self.results[0]

    def __str__(self) -> str:
        return "\n".join(map(str, (*self.definitions, *self.results)))


def symbolic(term: Term, name: str = "gradient", inline: bool = False) -> SymbolicResult:
    """A result as SymPy's objects; `inline` puts shared values where they are used.

    >>> from combdiff.terms.terms import App, mul, number
    >>> from combdiff.terms.types import REAL, Domain
    >>> i = fresh("i", Index(Domain("x.1")))
    >>> x = fresh("x", Map((i.kind,), REAL))
    >>> print(symbolic(Lam((x,), Lam((i,), mul(number(2), App(x, (i,)))))))
    gradient[i] = 2*x[i]

    Raises UnsupportedError for what SymPy has no object for: linear maps, roots, functions of arrays.
    """
    parts = result_of(term)
    bindings, outputs = parts.bindings, parts.outputs
    if inline:
        whole = unfold(let(bindings, tuple_of(outputs)))
        bindings, outputs = (), whole.items if isinstance(whole, Tuple) and parts.tupled else (whole,)
    scope = SymbolScope.of(term, parts.params)
    arguments = {name: scope.symbols[p] for name, p in scope.by_name(parts.params).items()}
    arguments |= {str(base): base for base in scope.offsets.values()}
    shapes = scope.shapes(parts.params)
    definitions = []
    for var, value in bindings:
        scope = scope.bound((var,))
        definitions.append(_equation(scope, var, value))
        scope = scope.declared((var,))
    named = [(fresh(name, output.type), output) for output in outputs]
    results = tuple(_equation(scope.bound((var,)), var, output) for var, output in named)
    return SymbolicResult(arguments, shapes, tuple(definitions), results)


def _equation(scope: SymbolScope, var: Var, value: Term) -> Equation:
    """A tensor or a function by its entry, or a number; `var` is what it is called."""
    params: list[Var] = []
    while isinstance(value, Lam):
        params += value.params
        value = value.body
    if isinstance(value.type, Map) and all(isinstance(p, Index) for p in value.type.params):
        slots = [fresh(c, kind) for c, kind in zip("ijklmnpqrs", value.type.params, strict=False)]
        params += slots
        value = apply(value, *slots)
    inner, limits = scope.within(params)
    entry = inner.declared((var,))
    try:
        right = inner.number(value)
    except TypeError as problem:
        # SymPy works out log(0), and does not compare what it makes of it
        if "comparison" not in str(problem):
            raise
        refuse(f"a comparison with an infinite number ({problem})")
    return Equation(entry.applied(var, params) if params else entry.number(var), tuple(limits), right)
