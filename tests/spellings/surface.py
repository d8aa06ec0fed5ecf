"""The surface tree as text again, with the parentheses that it needs and no others."""

from __future__ import annotations

from collections.abc import Sequence

from combdiff.language.parsing.syntax import (
    Apply,
    Block,
    Caret,
    Compose,
    Expr,
    Lambda,
    MapType,
    Module,
    Name,
    Numeral,
    Param,
    Parens,
    Plus,
    Prime,
    Summation,
    Times,
    TypeExpr,
)

ARROW, PIPE, SUM, PRODUCT, UNARY, CARET, POSTFIX, ATOM = range(8)


def text_of(module: Module, body: Expr) -> str:
    """The text of a program: its declarations as they stand, then `body`."""
    lines = module.source.text.split("\n")
    start = module.body.span
    head = [*lines[: start.line - 1], lines[start.line - 1][: start.column - 1]]
    return "\n".join(head) + written(body)


def written(e: Expr, level: int = ARROW) -> str:
    """The text of an expression, in parentheses where it binds less tightly than `level`."""
    text, own = _bare(e)
    return f"({text})" if own < level else text


def _bare(e: Expr) -> tuple[str, int]:
    match e:
        case Name(text):
            return text, ATOM
        case Numeral(value):
            return (str(value), ATOM) if value.denominator == 1 else (f"{value.numerator}/{value.denominator}", PRODUCT)
        case Plus(terms):
            return _chain([("-" if minus else "+", written(t, PRODUCT)) for minus, t in terms], "+"), SUM
        case Times(factors):
            return _chain([("/" if below else "*", written(f, CARET)) for below, f in factors], "*"), PRODUCT
        case Caret(base, exponent):
            return f"{written(base, POSTFIX)}^{written(exponent, ATOM)}", CARET
        case Prime(of):
            return f"{written(of, POSTFIX)}'", POSTFIX
        case Apply(function, args):
            return f"{written(function, POSTFIX)}({', '.join(map(written, args))})", POSTFIX
        case Parens(items):
            return f"({', '.join(map(written, items))})", ATOM
        case Summation(params, body):
            return f"sum({_listed(params)}, {written(body)})", ATOM
        case Lambda(params, body):
            return f"{_group(params)} -> {written(body)}", ARROW
        case Compose(maps):
            return " ▷ ".join(written(m, SUM) for m in maps), PIPE
        case Block(definitions, body):
            lines = [f"{_names(d.names)} {':=' if d.textual else '='} {written(d.value)}" for d in definitions]
            return "begin\n  " + "\n  ".join([*lines, written(body)]) + "\nend", ATOM


def _chain(parts: Sequence[tuple[str, str]], first: str) -> str:
    (sign, text), *rest = parts
    return (text if sign == first else sign + text) + "".join(f" {sign} {text}" for sign, text in rest)


def _names(names: Sequence[Name]) -> str:
    return names[0].text if len(names) == 1 else f"({', '.join(n.text for n in names)})"


def _group(params: Sequence[Param]) -> str:
    return f"({', '.join(map(_param, params))})"


def _listed(params: Sequence[Param]) -> str:
    return _param(params[0]) if len(params) == 1 else _group(params)


def _param(p: Param) -> str:
    return p.name if p.kind is None else f"{p.name}::{_type(p.kind)}"


def _type(kind: TypeExpr) -> str:
    match kind:
        case MapType(params, result):
            return f"({', '.join(map(_type, params))}) -> {_type(result)}"
        case _:
            return kind.text + (f"{{{', '.join(n.text for n in kind.sizes)}}}" if kind.sizes else "")
