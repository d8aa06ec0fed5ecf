"""A size with a name, `RV{n}`, keeps that name to itself: no parameter and no definition of a program is called so."""

from __future__ import annotations

from collections.abc import Callable

from combdiff.errors import LanguageError, Span
from combdiff.language.parsing.syntax import Definition, Lambda, Module, Param, Summation, TypeExpr, TypeName, nodes_of


def is_integer(p: Param) -> bool:
    """Whether a parameter is a size that is given at the call: `T::Int`."""
    return isinstance(p.kind, TypeName) and p.kind.text == "Int"


def check_names_of_sizes(module: Module, is_index: Callable[[TypeExpr | None], bool]) -> None:
    """Refuse a parameter or a definition that is called like a size; an index may be, as in `sum(e, w(e))` of `RV{e}`.

    >>> from combdiff.language.inference.infer import infer
    >>> from combdiff.language.parsing.parser import parse
    >>> infer(parse("(n::R) -> (x::RV{n}) -> sum(i, x(i) * n)"))
    Traceback (most recent call last):
    ...
    combdiff.errors.LanguageError: <text>:1:2: n is a parameter here and the name of a size elsewhere
      1 | (n::R) -> (x::RV{n}) -> sum(i, x(i) * n)
        |  ^^^^
    the size is named here (line 1):
      1 | (n::R) -> (x::RV{n}) -> sum(i, x(i) * n)
        |                  ^
    remedy: rename one of the two
    """
    sizes: dict[str, Span] = {}
    bound: list[tuple[str, Span, str]] = []
    for node in nodes_of((module.declarations, module.body)):
        match node:
            case TypeName(_, _, names):
                for size in names:
                    sizes.setdefault(size.text, size.span)
            case Lambda(params) | Summation(params):
                bound += [(p.name, p.span, "a parameter") for p in params if not is_index(p.kind) and not is_integer(p)]
            case Definition(names):
                bound += [(name.text, name.span, "a definition") for name in names]
    for name, span, what in bound:
        if name in sizes:
            raise LanguageError(
                f"{name} is {what} here and the name of a size elsewhere",
                span=span,
                also=("the size is named here", sizes[name]),
                remedy="rename one of the two",
            )
