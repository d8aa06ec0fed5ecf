"""Turns the settings of `@space NAME begin … end` and `@domain NAME begin … end` into declarations.

The grammar reads any value for any setting; what each setting may be is said here, in words that name it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from combdiff.errors import LanguageError, Span
from combdiff.language.parsing.syntax import (
    DomainClause,
    MapType,
    Space,
    SymmetryClause,
    SymmetryMap,
    TypeExpr,
    TypeName,
)
from combdiff.records import dataclass

BUILTIN_TYPES = frozenset(("N", "I", "R", "C", "RV", "CV", "RM", "CM", "Sym", "Her", "SPD", "HPD", "RF", "CF", "RO"))
ACTIONS = ("id", "conj", "neg", "ineg", "inegc")
_LATER = frozenset(("sizes",))
_DOMAIN = ("base", "lower", "upper", "periodic", "symmetric", "list", "contractable")
_SWITCHES = ("periodic", "symmetric", "list", "contractable", "linear", "positive", "definite", "increasing")
_DIRECTIONS = 8
MOST_DERIVATIVES = 10
"""Derivatives of a function that `fixed = true` speaks of."""
_CLAUSES = (
    "write a tuple of clauses or maps, each with its comma: symmetries = (((2, 1), :conj),), "
    "or symmetries = (T -> (p, q) -> T(q, p)',)"
)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A word: a name, a number, or an action with its colon."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Sized:
    """`N{M}`."""

    kind: TypeName
    span: Span


@dataclass(frozen=True, slots=True)
class Listing:
    """`(a, b, …)`."""

    items: tuple[Value, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Arrow:
    """`(a, b) -> c`."""

    items: tuple[Value, ...]
    result: Value
    span: Span


Value = Scalar | Sized | Listing | Arrow | SymmetryMap


@dataclass(frozen=True, slots=True)
class Setting:
    """`name = value`; the span is the name's."""

    name: str
    value: Value
    span: Span


def space(name: str, settings: Sequence[Setting], span: Span) -> Space:
    """The space that the settings describe.

    >>> N, C = Scalar("N", Span(1, 8)), Scalar("C", Span(1, 13))
    >>> space("V", [Setting("type", Arrow((N,), C, Span(1, 7)), Span(1, 1))], Span(1, 1)).kind.result.text
    'C'
    """
    known = ("type", "symmetries", "linear", "positive", "definite", "fixed", "adjoint", "increasing")
    given = _by_name(settings, known, f"the space {name}")
    kind = to_type(given["type"].value) if "type" in given else None
    if not isinstance(kind, MapType):
        raise LanguageError(
            f"expected the space {name} to have a map type",
            span=kind.span if kind else span,
            remedy="write type = (N, N) -> C, with the index types before the arrow",
        )
    clauses = _clauses(given["symmetries"].value) if "symmetries" in given else ()
    linear = "linear" in given and _word(given["linear"]) == "true"
    if linear and (clauses or len(kind.params) != 1):
        raise LanguageError(
            f"the space {name} is linear, and has {'symmetries' if clauses else f'{len(kind.params)} arguments'}",
            span=given["linear"].span,
            remedy="a linear map has one argument, a tensor or a function, and no symmetries: type = (RV) -> RV",
        )
    positive = "positive" in given and _word(given["positive"]) == "true"
    if positive and (linear or not isinstance(kind.result, TypeName) or kind.result.text != "R"):
        raise LanguageError(
            f"the space {name} is positive, and its entries are no real numbers",
            span=given["positive"].span,
            remedy="only real tensors are positive: type = (N) -> R",
        )
    fixed = _fixed(given["fixed"], name, kind) if "fixed" in given else ()
    definite = "definite" in given and _word(given["definite"]) == "true"
    adjoint = _adjoint(given["adjoint"], name, linear) if "adjoint" in given else ""
    increasing = _increasing(given["increasing"], name, kind) if "increasing" in given else False
    return Space(name, kind, clauses, span, linear, positive, definite, fixed, adjoint, increasing)


def _increasing(setting: Setting, name: str, kind: MapType) -> bool:
    """Whether a function is strictly increasing, from the real numbers onto them."""
    kinds = [p.text if isinstance(p, TypeName) else "" for p in (*kind.params, kind.result)]
    if kinds != ["R", "R"]:
        raise LanguageError(
            f"the space {name} is increasing, and is not of functions from R to R",
            span=setting.span,
            remedy="only a function of one real number increases: type = (R) -> R",
        )
    return _word(setting) == "true"


def _adjoint(setting: Setting, name: str, linear: bool) -> str:
    """What the adjoint of a linear map is: itself, or its negative."""
    if not linear:
        raise LanguageError(
            f"the space {name} has an adjoint, and is not linear", span=setting.span, remedy="add linear = true"
        )
    match setting.value:
        case Scalar((":self" | ":neg") as text):
            return text[1:]
    raise LanguageError(
        "expected :self or :neg for the setting 'adjoint'",
        span=setting.value.span,
        remedy="write adjoint = :self where H† is H, adjoint = :neg where D† is −D",
    )


def _fixed(setting: Setting, name: str, kind: MapType) -> tuple[int, ...]:
    """Which derivatives of a function are given at the ends: `true` for all, `(0,)` for its values alone."""
    if any(isinstance(p, MapType) or p.text in BUILTIN_TYPES for p in kind.params):
        raise LanguageError(
            f"the space {name} is fixed at the ends, and its arguments are of no interval",
            span=setting.span,
            remedy="declare one: @domain Line begin base = R; lower = 0; upper = 1 end, and type = (Line) -> R",
        )
    match setting.value:
        case Scalar("true"):
            return tuple(range(MOST_DERIVATIVES))
        case Scalar("false"):
            return ()
        case Listing(items) if items and all(isinstance(i, Scalar) and re.fullmatch("[0-9]", i.text) for i in items):
            return tuple(sorted({int(i.text) for i in items if isinstance(i, Scalar)}))
    raise LanguageError(
        "expected true, or which derivatives are given at the ends, for the setting 'fixed'",
        span=setting.value.span,
        remedy="write fixed = true, or fixed = (0,) where the values are given and the slopes are free",
    )


def domain(name: str, settings: Sequence[Setting], span: Span) -> DomainClause:
    """The domain that the settings describe.

    >>> domain("BZ", [Setting("periodic", Scalar("true", Span(1, 12)), Span(1, 1))], Span(1, 1)).settings
    (('periodic', 'true'),)
    """
    given = _by_name(settings, _DOMAIN, f"the domain {name}")
    words = tuple((key, _word(setting)) for key, setting in given.items())
    return DomainClause(name, words, span, tuple((key, setting.value.span) for key, setting in given.items()))


def to_type(value: Value) -> TypeExpr:
    """The type that is written as `value`.

    >>> to_type(Scalar("N", Span(1, 1))).text
    'N'
    """
    match value:
        case Arrow(items, result, span) if items:
            return MapType(tuple(map(to_type, items)), to_type(result), span)
        case Scalar(text, span) if text[0] not in "0123456789.-:":  # a name; Python knows fewer, so it is not asked
            return TypeName(text, span)
        case Sized(kind):
            return kind
        case Listing((Arrow() as inner,)):
            return to_type(inner)
        case _:
            raise LanguageError("expected a type", span=value.span, remedy="write a name or (N, N) -> C")


def _by_name(settings: Iterable[Setting], known: tuple[str, ...], where: str) -> Mapping[str, Setting]:
    given: dict[str, Setting] = {}
    for setting in settings:
        if setting.name in given:
            raise LanguageError(
                f"{setting.name!r} is set twice in {where}",
                span=setting.span,
                also=("it is set first here", given[setting.name].span),
                remedy="remove one of the two",
            )
        if setting.name not in known:
            later = setting.name in _LATER
            raise LanguageError(
                f"the setting {setting.name!r} is not supported yet" if later else f"unknown setting {setting.name!r}",
                span=setting.span,
                remedy=f"the settings of {where} are {', '.join(known)}",
            )
        given[setting.name] = setting
    return given


def _word(setting: Setting) -> str:
    """The value of a setting that is a word: `I` or `(I, I)` for `base`, an integer for a bound, else true or false."""
    match setting.name, setting.value:
        case "base", Scalar(text) if text.isidentifier() and text not in ("true", "false"):
            return text
        case "base", Listing(items) if items and all(isinstance(i, Scalar) and i.text == "I" for i in items):
            if len(items) > _DIRECTIONS:
                raise LanguageError(
                    f"a lattice of {len(items)} directions",
                    span=setting.value.span,
                    remedy=f"write at most {_DIRECTIONS} directions: an array has an axis for each",
                )
            return ", ".join("I" for _ in items)
        case (("lower" | "upper"), Scalar(text)) if re.fullmatch(r"[-−]?(\.?[0-9][0-9.eE+-]*|inf)", text):
            return text.replace("−", "-")
        case (("lower" | "upper"), Scalar(text)) if text.isidentifier() and text not in ("true", "false"):
            return text
        case switch, Scalar(("true" | "false") as text) if switch in _SWITCHES:
            return text
    if setting.name == "base" and isinstance(setting.value, Listing) and _is_of_lines(setting.value.items):
        count = len(setting.value.items)
        raise LanguageError(
            f"a domain of {count} real variables is not supported yet",
            span=setting.value.span,
            remedy="write base = R, and a variable for each direction: "
            f"f::({', '.join(['D'] * count)}) -> R and sum(({', '.join(f'{v}::D' for v in 'xyzuvw'[:count])}), …)",
        )
    wanted, example = {
        "base": ("I, or (I, I, I) for a lattice of several directions, or R for an interval,", "I"),
        "lower": ("a number", "0"),
        "upper": ("a number", "4"),
    }.get(setting.name, ("true or false", "true"))
    raise LanguageError(
        f"expected {wanted} for the setting {setting.name!r}",
        span=setting.value.span,
        remedy=f"write {setting.name} = {example}",
    )


def _is_of_lines(items: Sequence[Value]) -> bool:
    """Whether it is (R, R), (R, R, R) …, real numbers in several directions."""
    return 1 < len(items) <= len("xyzuvw") and all(isinstance(i, Scalar) and i.text == "R" for i in items)


def _clauses(value: Value) -> tuple[SymmetryClause | SymmetryMap, ...]:
    match value:
        case Listing(items):
            return tuple(map(_clause, items))
        case _:
            raise LanguageError("expected a tuple of symmetry clauses", span=value.span, remedy=_CLAUSES)


def _clause(value: Value) -> SymmetryClause | SymmetryMap:
    match value:
        case SymmetryMap():
            return value
        case Listing((Listing(slots), Scalar(action)), span) if slots and action.startswith(":"):
            if action[1:] not in ACTIONS:
                raise LanguageError(
                    f"unknown symmetry action {action}",
                    span=value.items[1].span,
                    remedy="the actions are " + ", ".join(f":{known}" for known in ACTIONS),
                )
            return SymmetryClause(tuple(map(_slot, slots)), action[1:], span)
        case _:
            raise LanguageError(
                "expected a symmetry clause, slots with an action, or a map", span=value.span, remedy=_CLAUSES
            )


def _slot(value: Value) -> int:
    match value:
        case Scalar(text) if text.isdecimal() and len(text) < 4 and int(text) > 0:
            return int(text)
        case _:
            raise LanguageError("expected the number of a slot", span=value.span, remedy="slots are counted 1, 2, 3, …")
