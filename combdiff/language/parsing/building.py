"""Turns what the grammar recognises into the surface tree: one method a rule of `grammar/combdiff.lark`.

The parser calls these while it reads (nothing walks a tree afterwards), so the depth of the tree is known, and limited,
as it grows. Chains of one operator are flat.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING
from unicodedata import normalize

from combdiff.errors import LanguageError, Span
from combdiff.language.inference.settings import Arrow, Listing, Scalar, Setting, Sized, Value, domain, space
from combdiff.language.parsing.newlines import DEEPEST, span_of, too_deep
from combdiff.language.parsing.syntax import (
    Apply,
    Binders,
    Block,
    Caret,
    Comparison,
    Compose,
    Definition,
    Dotted,
    Each,
    Expr,
    Junction,
    Lambda,
    LeftDivision,
    Listed,
    MapType,
    Name,
    Negation,
    Numeral,
    Param,
    Parens,
    Plus,
    Prime,
    Size,
    Summation,
    SymmetryMap,
    Times,
    TypeExpr,
    TypeName,
)
from combdiff.records import dataclass
from combdiff.terms.numerals import MOST_DIGITS, read_number

if TYPE_CHECKING:
    from lark import Token

_PLAIN = frozenset(("PLUS", "MINUS", "STAR", "SLASH"))
_MOST_DIGITS = 9
"""Of what is added to a size."""

_SIGNS = {"DOT_MINUS": "-"}
_RELATIONS = {"≤": "<=", "≥": ">=", "≠": "!="}


@dataclass(frozen=True, slots=True)
class Piece:
    """A node under construction: where it stands (with its parentheses), and how deep the tree below it is."""

    node: object
    span: Span
    depth: int = 1


@dataclass(frozen=True, slots=True)
class Group:
    """What stands in parentheses, before it is known whether it is a parameter list, a tuple or a grouped value."""

    entries: tuple[Piece, ...]


def pieces(parts: Iterable[Piece | Token]) -> list[Piece]:
    """The nodes among `parts`, words and signs left out.

    >>> pieces([Piece("node", Span(1, 1))])
    [Piece(node='node', span=Span(line=1, column=1, width=1), depth=1)]
    """
    return [part for part in parts if isinstance(part, Piece)]


def around(parts: Sequence[Piece | Token]) -> Span:
    """From the start of the first part to the end of the last that begins on the same line."""
    spans = [part.span if isinstance(part, Piece) else span_of(part) for part in parts]
    first = spans[0]
    end = max(span.column + span.width for span in spans if span.line == first.line)
    return Span(first.line, first.column, end - first.column)


def made(node: object, parts: Sequence[Piece | Token], span: Span | None = None) -> Piece:
    """A piece one level above the deepest of its parts."""
    span = span or around(parts)
    depth = 1 + max((piece.depth for piece in pieces(parts)), default=0)
    if depth > DEEPEST:
        raise too_deep(span)
    return Piece(node, span, depth)


def text_of(token: Token) -> str:
    """A name as it is compared: composed and decomposed accents are the same letter."""
    return normalize("NFC", str(token))


def exact(token: Token, span: Span) -> Fraction:
    """`0.5` as one half; refuses numbers that would fill the memory."""
    found = read_number(str(token))
    if found is None:
        raise LanguageError(
            "this number is out of bounds",
            span=span,
            remedy=f"numbers have at most {MOST_DIGITS} digits and exponents from -{MOST_DIGITS - 1} "
            f"to {MOST_DIGITS - 1}",
        )
    return found


def plain(piece: Piece) -> Piece:
    """A group that turned out to be a value: `(a)` is a, `(a, b)` a tuple."""
    assert isinstance(piece.node, Group)
    entries = piece.node.entries
    if any(isinstance(entry.node, Param) for entry in entries):
        if all(isinstance(entry.node, Param | Name) for entry in entries):
            # they may be the indices of a reduction; else it is told that they bind nothing
            params = _params([_param(entry) for entry in entries], "list of indices")
            return Piece(Binders(params, piece.span), piece.span, piece.depth)
        raise binds_nothing(next(entry.span for entry in entries if isinstance(entry.node, Param)))
    if not entries:
        raise LanguageError("expected an expression between ( and )", span=piece.span, remedy="write one, or remove ()")
    if len(entries) == 1:
        return Piece(entries[0].node, piece.span, entries[0].depth)
    items = tuple(expression(entry) for entry in entries)
    return Piece(Parens(items, piece.span), piece.span, piece.depth)


def binds_nothing(span: Span) -> LanguageError:
    """What is said of a type where nothing is bound.

    >>> binds_nothing(Span(1, 1)).remedy
    'only parameters have types: (x::T) -> …'
    """
    return LanguageError(
        "the parentheses contain a type, but no '->' follows them",
        span=span,
        remedy="only parameters have types: (x::T) -> …",
    )


def expression(piece: Piece) -> Expr:
    """The expression that a piece holds.

    >>> expression(Piece(Name("x", Span(1, 1)), Span(1, 1))).text
    'x'
    """
    if isinstance(piece.node, Binders):
        raise binds_nothing(next(p.span for p in piece.node.params if p.kind is not None))
    assert isinstance(piece.node, Expr)
    return piece.node


def _type(piece: Piece) -> TypeExpr:
    assert isinstance(piece.node, TypeExpr)
    return piece.node


def _row(piece: Piece) -> tuple[Expr, ...]:
    assert isinstance(piece.node, tuple)
    return piece.node


def _exprs(parts: Iterable[Piece | Token]) -> tuple[Expr, ...]:
    return tuple(expression(piece) for piece in pieces(parts))


def _chain(parts: Sequence[Piece | Token], inverse: str) -> tuple[tuple[bool, Expr], ...]:
    """Pairs of (does the operator `inverse` stand before it, operand)."""
    rest: list[tuple[bool, Expr]] = []
    inverted = False
    for part in parts:
        if isinstance(part, Piece):
            rest.append((inverted, expression(part)))
        else:
            inverted = part.type == inverse
    return tuple(rest)


def _operations(parts: Sequence[Piece | Token], inverse: str, chain: type[Plus | Times]) -> Expr:
    """A chain of operators of one rank: flat, but for those with a dot and for left division, which take two each."""
    if all(isinstance(part, Piece) or part.type in _PLAIN for part in parts):
        return chain(_chain(parts, inverse), around(parts))
    done, *rest = parts
    assert isinstance(done, Piece)
    left = expression(done)
    for n in range(0, len(rest), 2):
        sign, right = rest[n], rest[n + 1]
        assert not isinstance(sign, Piece) and isinstance(right, Piece)
        span = around(parts[: n + 3])
        if sign.type in _PLAIN:
            left = chain(((False, left), (sign.type == inverse, expression(right))), span)
        elif sign.type == "BACKSLASH":
            left = LeftDivision(left, expression(right), span)
        else:
            left = Dotted(_SIGNS.get(sign.type, str(sign)[1:]), left, expression(right), span)
    return left


def _distinct(named: Iterable[tuple[str, Span]], what: str) -> None:
    seen: dict[str, Span] = {}
    for name, span in named:
        if name in seen:
            raise LanguageError(
                f"{name!r} is bound twice in one {what}",
                span=span,
                also=("it is bound first here", seen[name]),
                remedy="rename one of the two",
            )
        seen[name] = span


def _params(found: Sequence[Param], what: str) -> tuple[Param, ...]:
    _distinct(((param.name, param.span) for param in found), what)
    return tuple(found)


def _binder(parts: Sequence[Piece | Token]) -> tuple[Param, ...]:
    """What stands left of `->`: a name, a typed name, or a group of such."""
    match parts[0]:
        case Piece(Group(entries), span):
            if not entries:
                raise LanguageError("a map has at least one parameter", span=span, remedy="write (x::T) -> …")
            return _params([_param(entry) for entry in entries], "parameter list")
        case _:
            return (_index(parts),)


def _param(entry: Piece) -> Param:
    match entry.node:
        case Param():
            return entry.node
        case Name(text, span):
            return Param(text, None, span)
        case Binders(items, span):
            return Param(f"({', '.join(item.name for item in items)})", None, span, items)
        case Parens(items, span) if all(isinstance(item, Name) for item in items):
            names = [Param(item.text, None, item.span) for item in items if isinstance(item, Name)]
            return Param(f"({', '.join(name.name for name in names)})", None, span, _params(names, "tuple"))
        case _:
            raise LanguageError(
                "expected the name of a parameter before '->'",
                span=entry.span,
                remedy="write names, with types or without: (x::T, y) -> …",
            )


def _summed_over(piece: Piece) -> Sequence[Param]:
    """The indices of a sum: `i`, `(i, k::BZ)`."""
    match piece.node:
        case Binders(params):
            return params
        case Name(text, span):
            return [Param(text, None, span)]
        case Parens(items) if all(isinstance(item, Name) for item in items):
            return [Param(item.text, None, item.span) for item in items if isinstance(item, Name)]
        case _:
            raise LanguageError(
                "expected the indices that a sum runs over",
                span=piece.span,
                remedy="name them first: sum(i, x(i)), sum((i, j), A(i, j)); of all entries of a tensor: sum(A)",
            )


def _index(parts: Sequence[Piece | Token]) -> Param:
    """`k` or `k::BZ`."""
    kinds = [_type(piece) for piece in pieces(parts)]
    name = parts[0]
    assert not isinstance(name, Piece)
    return Param(text_of(name), kinds[0] if kinds else None, around(parts))


class Builder:
    """The grammar's rules as methods: each takes the parts that were read and returns the piece that they make."""

    def name(self, parts: list[Token]) -> Piece:
        span = span_of(parts[0])
        return Piece(Name(text_of(parts[0]), span), span)

    def number(self, parts: list[Token]) -> Piece:
        span = span_of(parts[0])
        return Piece(Numeral(exact(parts[0], span), span), span)

    def group(self, parts: list[Piece | Token]) -> Piece:
        return made(Group(tuple(pieces(parts))), parts)

    def entry(self, parts: list[Piece | Token]) -> Piece:
        if isinstance(parts[0], Piece):
            return parts[0]
        return made(_index(parts), parts)

    def plain(self, parts: list[Piece]) -> Piece:
        return plain(parts[0])

    def abstraction(self, parts: list[Piece | Token]) -> Piece:
        body = parts[-1]
        assert isinstance(body, Piece)
        return made(Lambda(_binder(parts[:-2]), expression(body), span := around(parts)), parts, span)

    def either(self, parts: list[Piece | Token]) -> Piece:
        return made(Junction(_exprs(parts), False, span := around(parts)), parts, span)

    def both(self, parts: list[Piece | Token]) -> Piece:
        return made(Junction(_exprs(parts), True, span := around(parts)), parts, span)

    def negated(self, parts: list[Piece | Token]) -> Piece:
        (of,) = _exprs(parts)
        return made(Negation(of, span := around(parts)), parts, span)

    def compared(self, parts: list[Piece | Token]) -> Piece:
        signs = [sign for sign in parts if not isinstance(sign, Piece)]
        relations = [_RELATIONS.get(bare, bare) for bare in (str(sign).removeprefix(".") for sign in signs)]
        dotted = signs[0].type == "DOT_RELATION"
        return made(Comparison(_exprs(parts), tuple(relations), span := around(parts), dotted), parts, span)

    def typed(self, parts: list[Piece | Token]) -> Piece:
        return made(Binders((_index(parts),), span := around(parts)), parts, span)

    def compose(self, parts: list[Piece | Token]) -> Piece:
        return made(Compose(_exprs(parts), span := around(parts)), parts, span)

    def plus(self, parts: list[Piece | Token]) -> Piece:
        found = _operations(parts, "MINUS", Plus)
        if isinstance(found, Plus):
            first = found.terms[0][1]
            if isinstance(first, Plus) and len(first.terms) == 1:
                found = Plus((*first.terms, *found.terms[1:]), found.span)
        return made(found, parts, around(parts))

    def times(self, parts: list[Piece | Token]) -> Piece:
        return made(_operations(parts, "SLASH", Times), parts, around(parts))

    def signed(self, parts: list[Piece | Token]) -> Piece:
        ((minus, operand),) = _chain(parts, "MINUS")
        span = around(parts)
        return made(Plus(((True, operand),), span) if minus else operand, parts, span)

    def caret(self, parts: list[Piece | Token]) -> Piece:
        base, exponent = _exprs(parts)
        span = around(parts)
        dotted = any(not isinstance(part, Piece) and part.type == "DOT_CARET" for part in parts)
        found = Dotted("^", base, exponent, span) if dotted else Caret(base, exponent, span)
        return made(found, parts, span)

    def each(self, parts: list[Piece | Token]) -> Piece:
        function, *args = _exprs(parts)
        _refuse_number(function, around(parts))
        return made(Each(function, tuple(args), span := around(parts)), parts, span)

    def prime(self, parts: list[Piece | Token]) -> Piece:
        (of,) = _exprs(parts)
        return made(Prime(of, span := around(parts)), parts, span)

    def call(self, parts: list[Piece | Token]) -> Piece:
        function, *given = pieces(parts)
        args = tuple(arg.node if isinstance(arg.node, Binders) else expression(arg) for arg in given)
        called = expression(function)
        _refuse_number(called, around(parts))
        return made(Apply(called, args, span := around(parts)), parts, span)

    def summation(self, parts: list[Piece | Token]) -> Piece:
        first, *rest = pieces(parts)
        span = around(parts)
        if not rest:
            return made(Summation((), expression(first), span), parts, span)
        if len(rest) > 2:
            raise LanguageError(
                "a sum has indices, perhaps a condition, and a term",
                span=rest[2].span,
                remedy="put several indices in parentheses: sum((p, q), A(p, q)); give an index that stands in no slot "
                "a type, sum(k::N{10}, 1 / 2^k), where it counts from 0",
            )
        *condition, body = map(expression, rest)
        params = _params(_summed_over(first), "list of indices")
        return made(Summation(params, body, span, *condition), parts, span)

    def row(self, parts: list[Piece | Token]) -> Piece:
        return made(_exprs(parts), parts)

    def array(self, parts: list[Piece | Token]) -> Piece:
        rows = tuple(_row(piece) for piece in pieces(parts))
        return made(Listed(rows, span := around(parts)), parts, span)

    def definition(self, parts: list[Piece | Token]) -> Piece:
        pattern, *typed, sign, value = parts
        assert isinstance(value, Piece) and not isinstance(sign, Piece)
        names = _defined(pattern)
        kind = _type(typed[-1]) if typed and isinstance(typed[-1], Piece) else None
        _distinct(((name.text, name.span) for name in names), "definition")
        definition = Definition(names, expression(value), sign.type == "BECOMES", span := around(parts), kind)
        return made(definition, parts, span)

    def block(self, parts: list[Piece | Token]) -> Piece:
        return in_order(pieces(parts), around(parts))

    def type_name(self, parts: list[Token]) -> Piece:
        kind = _type_name(parts)
        return Piece(kind, kind.span)

    def map_type(self, parts: list[Piece | Token]) -> Piece:
        *params, result = (_type(piece) for piece in pieces(parts))
        return made(MapType(tuple(params), result, span := around(parts)), parts, span)

    def scalar(self, parts: list[Token]) -> Piece:
        text = "".join(map(str, parts))
        if parts[0].type == "NAME":
            text = text_of(parts[0])
        return made(Scalar(text, span := around(parts)), parts, span)

    def sized(self, parts: list[Token]) -> Piece:
        kind = _type_name(parts)
        return Piece(Sized(kind, kind.span), kind.span)

    def listing(self, parts: list[Piece | Token]) -> Piece:
        return made(Listing(_values(parts), span := around(parts)), parts, span)

    def arrow(self, parts: list[Piece | Token]) -> Piece:
        *items, result = _values(parts)
        return made(Arrow(tuple(items), result, span := around(parts)), parts, span)

    def law(self, parts: list[Piece | Token]) -> Piece:
        tensor, _, law = parts
        assert not isinstance(tensor, Piece) and isinstance(law, Piece) and isinstance(law.node, Lambda)
        return made(SymmetryMap(text_of(tensor), law.node, span := around(parts)), parts, span)

    def setting(self, parts: list[Piece | Token]) -> Piece:
        name, _, _ = parts
        assert not isinstance(name, Piece)
        (value,) = _values(parts)
        return made(Setting(text_of(name), value, span := span_of(name)), parts, span)

    def space(self, parts: list[Piece | Token]) -> Piece:
        name, settings, span = _declared(parts)
        return made(space(name, settings, span), parts, span)

    def domain(self, parts: list[Piece | Token]) -> Piece:
        name, settings, span = _declared(parts)
        return made(domain(name, settings, span), parts, span)


def _refuse_number(called: Expr, span: Span) -> None:
    if isinstance(called, Numeral):
        raise LanguageError(
            "a number cannot be applied",
            span=span,
            remedy="write a product with *, 2 * (x + y), and a power of a function as sin(x)^2",
        )


def _type_name(parts: Sequence[Token]) -> TypeName:
    """`CM`, `CM{M, K + 1}` or `RM{n, 3}`."""
    starts = [n for n, word in enumerate(parts) if word.type in ("LBRACE", "COMMA")]
    sizes = tuple(_size(parts[a + 1 : b]) for a, b in pairwise([*starts, len(parts) - 1]))
    return TypeName(text_of(parts[0]), around(parts), sizes)


def _size(words: Sequence[Token]) -> Size:
    """`M`, `M + 1`, `M - 1`, or `3`."""
    *name, number = words
    if number.type != "NUMBER":
        return Size(text_of(number), span_of(number))
    if len(number) > _MOST_DIGITS:
        raise LanguageError(
            f"a size has at most {_MOST_DIGITS} digits",
            span=span_of(number),
            remedy="write a name for it, x::RV{n}: the array determines its value",
        )
    least = 0 if name else 1
    if not number.isdecimal() or int(number) < least:
        wanted = f"{text_of(name[0])} and a whole number more or less" if name else "a whole number, at least 1"
        raise LanguageError(
            f"a size is {wanted}, not {number}", span=around(words), remedy="write n, n + 1, n - 1, or 3"
        )
    if not name:
        return Size(str(int(number)), span_of(number))
    more = -int(number) if name[1].type == "MINUS" else int(number)
    return Size(text_of(name[0]), around(words), more)


def _values(parts: Iterable[Piece | Token]) -> tuple[Value, ...]:
    return tuple(piece.node for piece in pieces(parts) if isinstance(piece.node, Value))


def _declared(parts: Sequence[Piece | Token]) -> tuple[str, list[Setting], Span]:
    """Name, settings and the name's place of a declaration."""
    name = parts[1]
    assert not isinstance(name, Piece)
    settings = [piece.node for piece in pieces(parts) if isinstance(piece.node, Setting)]
    return text_of(name), settings, span_of(name)


def _defined(pattern: Piece | Token) -> tuple[Name, ...]:
    """The names left of `=`."""
    if not isinstance(pattern, Piece):
        return (Name(text_of(pattern), span_of(pattern)),)
    assert isinstance(pattern.node, Group)
    names = tuple(entry.node for entry in pattern.node.entries if isinstance(entry.node, Name))
    if len(names) < max(1, len(pattern.node.entries)):
        raise LanguageError("expected names before '='", span=pattern.span, remedy="write a = … or (a, b) = …")
    return names


def in_order(statements: Sequence[Piece], span: Span) -> Piece:
    """Definitions and, last, the expression that they serve: a block, or that expression where nothing is defined."""
    *before, last = statements
    for statement in before:
        if not isinstance(statement.node, Definition):
            raise LanguageError(
                "this value is not used: expected a definition, as only the last line is an expression",
                span=statement.span,
                remedy="give it a name (a = …), remove it, or put a sign at the line's end if the next line goes on",
            )
    if isinstance(last.node, Definition):
        raise LanguageError(
            "expected an expression after the last definition",
            span=last.span,
            remedy=f"end with the value, for example {last.node.names[0].text}",
        )
    if not before:
        return last
    definitions = tuple(s.node for s in before if isinstance(s.node, Definition))
    return made(Block(definitions, expression(last), span), statements, span)
