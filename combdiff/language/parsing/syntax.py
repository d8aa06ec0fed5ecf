"""The surface syntax tree: what the parser read, each node with its place in the text. `infer` turns it into a term."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import TypeGuard

from combdiff.errors import Source, Span
from combdiff.records import dataclass


@dataclass(frozen=True, slots=True)
class Name:
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Numeral:
    """`4`, `0.5`, `1e-3`: exact."""

    value: Fraction
    span: Span


@dataclass(frozen=True, slots=True)
class Param:
    """`x::RV`; `kind` is None where the type is left to inference. A tuple `(a, b)` has `items` for a name."""

    name: str
    kind: TypeExpr | None
    span: Span
    items: tuple[Param, ...] = ()


@dataclass(frozen=True, slots=True)
class Lambda:
    """`(x::RV, y) -> body`."""

    params: tuple[Param, ...]
    body: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Apply:
    """`f(a, b)`, and `C[p, i]`, which means the same."""

    function: Expr
    args: tuple[Expr, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Listed:
    """`[a, b, c]`, a vector, and `[a, b; c, d]`, a matrix by its rows."""

    rows: tuple[tuple[Expr, ...], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Summation:
    """`sum((i, k::BZ), body)`, and `sum((i, j), i < j, body)`, whose condition says what takes part.

    Without indices, `sum(A)`, it is of all entries of a tensor.
    """

    params: tuple[Param, ...]
    body: Expr
    span: Span
    condition: Expr | None = None


@dataclass(frozen=True, slots=True)
class Binders:
    """`k::BZ`, or `(i, k::BZ)` among arguments: the indices of `maximum((i, k::BZ), e)`."""

    params: tuple[Param, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Comparison:
    """A chain `0 <= i < n`: what is compared, and the relations between neighbours; with dots it is of every entry."""

    operands: tuple[Expr, ...]
    relations: tuple[str, ...]
    span: Span
    dotted: bool = False


@dataclass(frozen=True, slots=True)
class Junction:
    """`a and b`, or with `every` false `a or b`."""

    items: tuple[Expr, ...]
    every: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Negation:
    """`not a`."""

    of: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Prime:
    """`a'`, the complex conjugate."""

    of: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Plus:
    """A chain of + and −: pairs of (is it subtracted, term)."""

    terms: tuple[tuple[bool, Expr], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Times:
    """A chain of * and /: pairs of (is it divided by, factor)."""

    factors: tuple[tuple[bool, Expr], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Caret:
    """`base ^ exponent`."""

    base: Expr
    exponent: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class LeftDivision:
    """`A \\ b`, the x with A x = b."""

    matrix: Expr
    of: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Dotted:
    """`a .* b`, entry by entry; `sign` is the operator without its dot."""

    sign: str
    left: Expr
    right: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Each:
    """`f.(a, b)`, a function of each entry."""

    function: Expr
    args: tuple[Expr, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Parens:
    """`(a, b)`: a tuple of two or more."""

    items: tuple[Expr, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Compose:
    """A chain `f ▷ g ▷ h`: first f, then g, then h."""

    maps: tuple[Expr, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Definition:
    """`a = e`, `K::SPD = e`, `(a, b) = e`, several names, or with `textual`, `a := e`, which is replaced on reading."""

    names: tuple[Name, ...]
    value: Expr
    textual: bool
    span: Span
    kind: TypeExpr | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """`begin a = e; … body end` or `let … end`."""

    definitions: tuple[Definition, ...]
    body: Expr
    span: Span


Arithmetic = Plus | Times | Caret | Prime | LeftDivision | Dotted | Each
Formula = Comparison | Junction | Negation
Expr = Name | Numeral | Lambda | Apply | Listed | Summation | Arithmetic | Formula | Parens | Binders | Compose | Block


@dataclass(frozen=True, slots=True)
class Size:
    """A size with a name, or so many `more` values: `M`, `M + 1`, `M - 2`; or a number, `3`."""

    text: str
    span: Span
    more: int = 0

    @property
    def is_number(self) -> bool:
        """Whether the program says how many values there are."""
        return self.text.isdecimal()


@dataclass(frozen=True, slots=True)
class TypeName:
    """`CM`, `N`, or a declared space or domain; `sizes` are those in `RM{M, K}`."""

    text: str
    span: Span
    sizes: tuple[Size, ...] = ()


@dataclass(frozen=True, slots=True)
class MapType:
    """`(N, N) -> C`."""

    params: tuple[TypeExpr, ...]
    result: TypeExpr
    span: Span


TypeExpr = TypeName | MapType


@dataclass(frozen=True, slots=True)
class SymmetryClause:
    """`((2, 1, 4, 3), :conj)`."""

    slots: tuple[int, ...]
    action: str
    span: Span


@dataclass(frozen=True, slots=True)
class SymmetryMap:
    """`M -> (p, q, k, b) -> M(q, p, k + b, -b)'`: what is right of the first arrow, and what `M` is called there."""

    tensor: str
    law: Lambda
    span: Span


@dataclass(frozen=True, slots=True)
class Space:
    """`@space T begin type = …; symmetries = … end`, with `linear = true` for a map.

    A tensor may have `positive = true`, and a matrix `definite = true`. `fixed` are the derivatives of a function that
    are given at the ends of its interval, its values being the 0th. A function from R onto R may have
    `increasing = true`. The `adjoint` of a linear map may be the map itself, "self", or its negative, "neg".
    """

    name: str
    kind: MapType
    symmetries: tuple[SymmetryClause | SymmetryMap, ...]
    span: Span
    linear: bool = False
    positive: bool = False
    definite: bool = False
    fixed: tuple[int, ...] = ()
    adjoint: str = ""
    increasing: bool = False


@dataclass(frozen=True, slots=True)
class DomainClause:
    """`@domain BZ begin base = I; periodic = true end`; `places` are those of the settings' values."""

    name: str
    settings: tuple[tuple[str, str], ...]
    span: Span
    places: tuple[tuple[str, Span], ...] = ()


@dataclass(frozen=True, slots=True)
class Module:
    """A whole text: its declarations in order, textual definitions expanded or in blocks, and one expression.

    `remarks` tell what of the text is no part of the program.
    """

    declarations: tuple[Space | DomainClause, ...]
    body: Expr
    source: Source
    remarks: tuple[str, ...] = ()


def has_no_types(e: object) -> TypeGuard[Lambda]:
    """Whether an expression is a map whose parameters have no types.

    >>> from combdiff.language.parsing.parser import parse
    >>> has_no_types(parse("(i, j) -> i").body), has_no_types(parse("(x::RV, i) -> x(i)").body)
    (True, False)
    """
    return isinstance(e, Lambda) and bool(e.params) and all(p.kind is None for p in e.params)


def nodes_of(tree: object) -> Iterator[object]:
    """Every node of a syntax tree, in the order of the text.

    >>> from combdiff.language.parsing.parser import parse
    >>> [node.text for node in nodes_of(parse("(x::RV) -> x(0)").body) if isinstance(node, Name)]
    ['x']
    """
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, tuple):
            stack.extend(reversed(node))
        else:
            stack += [getattr(node, name) for name in _FIELDS_BACKWARDS[type(node)]]


class _Fields(dict[type, tuple[str, ...]]):
    def __missing__(self, kind: type) -> tuple[str, ...]:
        names = tuple(f.name for f in reversed(fields(kind))) if is_dataclass(kind) else ()
        found = self[kind] = names
        return found


_FIELDS_BACKWARDS = _Fields()
