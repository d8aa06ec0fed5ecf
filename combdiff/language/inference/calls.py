"""Calls: functions of the language, functions of the program (inlined), tensors and unknown maps, and `f ▷ g`.

A function of the program is read anew with its parameters standing for the arguments. An argument that costs something
to compute and is used more than once becomes a binding.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from combdiff.errors import LanguageError, Span
from combdiff.language.habits import remedy_of_every_entry
from combdiff.language.inference import conditions, library, operators, tensors
from combdiff.language.inference.constructs import loops, reductions
from combdiff.language.inference.fit import index_slots
from combdiff.language.inference.scope import Closure, Entry, Function, Ready, Scope, Textual
from combdiff.language.parsing.syntax import (
    Comparison,
    Compose,
    Expr,
    Junction,
    Lambda,
    Name,
    Negation,
    Param,
    Size,
    TypeName,
    has_no_types,
    nodes_of,
)
from combdiff.language.vocabulary import (
    COMPARISONS,
    CONSTANTS,
    DERIVATIVES,
    FUNCTIONS,
    LOOPS,
    MADE,
    OF_MAPS,
    OF_SQUARE_MATRICES,
    REDUCTIONS,
    counted,
    in_words,
)
from combdiff.records import dataclass
from combdiff.terms import terms
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.laws.inclusion import included, over_complex, widened
from combdiff.terms.terms import App, Call, Const, Delta, Diff, Indicator, Lam, Let, Sum, Term, Tuple, Var
from combdiff.terms.types import Domain, Index, Map, Number, Product, Type, is_complex, is_value, maps_in_turn

if TYPE_CHECKING:
    from combdiff.language.inference.infer import Elaborator


@dataclass(frozen=True, slots=True)
class Builtin:
    """A function of the language, by name."""

    name: str


Callee = Builtin | Closure | Term
Argument = Expr | Ready


def callee(el: Elaborator, e: Expr, scope: Scope, args: Sequence[Argument] = ()) -> Callee:
    """What is called when `e` is applied, to `args` if it is known to what."""
    match e:
        case Name(text) if text in FUNCTIONS and scope.find(text) is None:
            return Builtin(text)
        case Name("I") if args is not None and len(args) == 2 and scope.find("I") is None:
            return Builtin("I")
        case Name(text):
            entry = scope.find(text)
            if isinstance(entry, Closure):
                return entry
            if isinstance(entry, Textual):
                el.spend(1, e.span)
                return callee(el, entry.value, scope.child({text: entry.before}), args)
            if entry is None:
                raise el.unknown(e, scope, args)
            return el.expr(e, scope)
        case Lambda():
            return Closure(e, scope)
        case _:
            return el.expr(e, scope)


def call(el: Elaborator, function: Callee, args: Sequence[Argument], scope: Scope, span: Span, written: Expr) -> Term:
    """`function(args)`; `written` is the function as the program wrote it, for messages."""
    name = written.text if isinstance(written, Name) else "this"
    match function:
        case Builtin(builtin) if builtin in MADE:
            return _made_of_others(el, builtin, args, scope, span)
        case Builtin(builtin):
            return _builtin(el, builtin, args, scope, span)
        case Closure():
            _count(name, len(function.body.params), "argument", args, span, function.body.span)
            if has_no_types(function.body):
                given = [_read(el, arg, scope) for arg in args]
                points = all(map(_is_point, given))
                if points and function.problem:
                    raise function.problem
                # among indices a number is one, too, and is read as it is written
                args = [a if points and isinstance(r.term, Const) else r for a, r in zip(args, given, strict=True)]
            return _inlined(el, function, args, scope)
        case Term():
            untyped = el.untyped.get(function)
            if untyped is not None and len(args) == len(untyped.body.params):
                args = given = [_read(el, arg, scope) for arg in args]
                if not all(map(_is_point, given)) or _is_of_numbers(el, function, given):
                    with suppress(LanguageError), el.attempt():  # else the error tells that it is a tensor
                        return _inlined(el, untyped, given, scope)
            return _applied(el, function, args, scope, span, name)


def _read(el: Elaborator, arg: Argument, scope: Scope) -> Ready:
    return Ready(el.expr(arg, scope), arg.span)


def _is_of_numbers(el: Elaborator, f: Term, given: Sequence[Ready]) -> bool:
    """Whether a definition of which no slot has a range is called with numbers: f(0) of f = t -> t^2."""
    slots = [p.domain for p in f.type.params if isinstance(p, Index)] if isinstance(f.type, Map) else []
    unknown = all(d is not None and el.ranges.is_unknown(d) for d in slots)
    return unknown and all(isinstance(arg.term, Const) for arg in given)


def _is_point(arg: Ready) -> bool:
    """Whether an argument stands in a slot of a tensor."""
    return isinstance(arg.term.type, Index) or (isinstance(arg.term, Const) and arg.term.is_integer)


def _applied(el: Elaborator, f: Term, args: Sequence[Argument], scope: Scope, span: Span, name: str) -> Term:
    kind = f.type
    if not isinstance(kind, Map):
        hides = scope.meanings(name) > 1 or name in FUNCTIONS
        remedy = f"rename it: it hides another {name}" if hides else "write * for a product"
        if not hides and isinstance(kind, Product):
            items = ", ".join("abcdefgh"[n : n + 1] or f"a{n}" for n in range(len(kind.items)))
            remedy = f"give its items names: ({items}) = {'t' if name == 'this' else name}"
        if not hides and isinstance(kind, Index):
            remedy = f"give it a type where it is a parameter, {name}::RV, or {remedy}"
        raise LanguageError(f"{name} is {in_words(kind)} and cannot be applied", span=span, remedy=remedy)
    in_turn = maps_in_turn(kind)
    if len(args) == sum(len(one.params) for one in in_turn) > len(kind.params):
        row = _applied(el, f, args[: len(kind.params)], scope, span, name)
        return _applied(el, row, args[len(kind.params) :], scope, span, name)
    declared = el.places.get(f) if isinstance(f, Var) else None
    hidden = name if name in FUNCTIONS and declared else None
    _count(name, len(kind.params), "index" if kind.is_array or in_turn else "argument", args, span, declared, hidden)
    points = el.points.get(f, len(kind.params))
    f = operators.along_its_argument(f)
    values = [el.checked(arg, param, scope) for arg, param in zip(args[:points], kind.params[:points], strict=True)]
    for arg, param in zip(args[points:], kind.params[points:], strict=True):
        # the cotangent of a value that is real, be it because all else cancels, may be that of a complex one
        values.append(included(el.checked(arg, over_complex(param), scope), param))
    if isinstance(f, Lam | Let):
        el.spend(sum(1 for _ in terms.subterms(f)), span)
    return _where_equal(el, f, kind, values, span) if kind.is_tensor else terms.apply(f, *values)


def _where_equal(el: Elaborator, f: Term, kind: Map, values: Sequence[Term], span: Span) -> Term:
    """An entry; an index of another size, which a condition keeps in range, is where one of the slot's equals it.

    If the two sizes have a number between them, the index stands in the slot as i + 1 does.
    """
    met: list[tuple[Var, Term]] = []
    places = list(values)
    for n, (value, param) in enumerate(zip(values, kind.params, strict=True)):
        assert isinstance(param, Index) and param.domain is not None, "slots have ranges"
        # an entry of an array of integers stays, as arithmetic does: the code checks it against the slot
        if isinstance(value, Var) and el.slots.has_no_size_like(value, param.domain):
            places[n] = own = terms.fresh(value.name, param)
            el.places[own] = span
            met.append((own, value))
    entry = _entry(el, f, kind, places)
    for own, value in reversed(met):
        entry = terms.delta(value, own, entry)
    return terms.total([own for own, _ in met], entry)


def _entry(el: Elaborator, f: Term, kind: Map, places: Sequence[Term]) -> Term:
    """An entry of a tensor; what was made of tensors, as cumsum makes a sum, may read its indices as numbers."""
    if not isinstance(f, Lam | Let):
        return terms.apply(f, *places)
    points = [p if isinstance(p, Var) else terms.fresh("i", slot) for p, slot in zip(places, kind.params, strict=True)]
    entry = terms.apply(f, *points)
    for point, place in zip(points, places, strict=True):
        entry = entry if point is place else _at(el, point, place, entry)
    return entry


def _count(
    name: str,
    expected: int,
    noun: str,
    args: Sequence[Argument],
    span: Span,
    declared: Span | None,
    hidden: str | None = None,
) -> None:
    """Refuse another number of arguments; `hidden` is the function of the language that it takes the name of."""
    if len(args) != expected:
        raise LanguageError(
            f"{name} takes {counted(expected, noun)}, and {len(args)} {'is' if len(args) == 1 else 'are'} given",
            span=span,
            also=(f"{name} is declared here", declared) if declared else None,
            remedy=f"give {counted(expected, noun)}"
            + (
                f"; j -> {name}(i, j) is a row"
                * (noun == "index" and expected == 2 and len(args) == 1 and name != "this")
            )
            + (f", or rename it: it hides the function {hidden}" * bool(hidden)),
        )


# --- functions of the language --------------------------------------------------------------------------------------


def _builtin(el: Elaborator, name: str, args: Sequence[Argument], scope: Scope, span: Span) -> Term:
    if name == "I":
        name, args = "delta", [*args, Ready(terms.ONE, span)]
    made = _of_more_than_numbers(el, name, args, scope, span)
    if made is not None:
        return made
    _refuse_conditions(name, args)
    _refuse_missing(el, name, args, scope, span)
    row = SCALAR_FUNCTIONS.get(name)
    if row is not None and row.folds and len(args) > row.arity:
        args = [Ready(_builtin(el, name, args[:-1], scope, span), span), args[-1]]
    _count(name, _arity(Builtin(name)), "argument", args, span, None)
    if name in OF_MAPS:
        return operators.of_map(el, name, args[0], scope)
    if name == "delta" and isinstance((left := el.expr(args[0], scope)).type, Map):
        # that of the B rule, where a map is applied to a map
        right = el.checked(args[1], over_complex(left.type), scope)
        return terms.delta(left, right, el.number(args[2], scope))
    compared = name in COMPARISONS and len(args) > 2
    applied = partial(remedy_of_every_entry, name, args)
    values = [el.number(arg, scope, applied) for arg in (args[:2] if compared else args)]
    if compared:
        facts = ((values[0], "<=" if name == "indicator" else "==", values[1]),)
        values.append(el.guarded(args[2], scope, facts))
        el.slots.meet(values[0], values[1], span)
    match name:
        case "delta":
            return terms.delta(*values)
        case "indicator":
            for arg, value in zip(args[:2], values[:2], strict=True):
                if is_complex(value.type):
                    raise LanguageError(
                        "a complex value cannot be compared", span=arg.span, remedy="compare real(…) or abs(…) of it"
                    )
            return terms.indicator(terms.add(values[0], el.relations["<="]), *values[1:])
        case _:
            _check_numbers(name, args, values)
            return terms.call(name, *values)


def _of_more_than_numbers(el: Elaborator, name: str, args: Sequence[Argument], scope: Scope, span: Span) -> Term | None:
    """What takes maps, names of domains, indices or conditions; None for functions of numbers."""
    if name in DERIVATIVES and len(args) == 2:
        return operators.of_map(el, name, args[0], scope, args[1])
    if name == "size":
        return _size(el, args, span)
    if name in LOOPS:
        return loops.loop(el, name, args, scope, span)
    if name in REDUCTIONS:
        return reductions.reduction(el, name, args, scope, span)
    if name == "where" and len(args) in (2, 3):
        return conditions.where(el, args[0], tuple(args[1:]), scope)
    if name == "norm" and len(args) == 1:
        return reductions.of_tensor(el, "norm", args[0], scope)
    if name in tensors.RANKS:
        return tensors.named(el, name, args, scope, span)
    if name in OF_SQUARE_MATRICES:
        return reductions.of_matrix(el, name, args, scope, span)
    return None


def _check_numbers(name: str, args: Sequence[Argument], values: Sequence[Term]) -> None:
    """Refuse a complex number where a function takes real ones, and an order that is not written out."""
    row = SCALAR_FUNCTIONS[name]
    for n, (arg, value) in enumerate(zip(args, values, strict=True)):
        if row.of_reals and is_complex(value.type):
            raise LanguageError(
                f"{name} takes real numbers, and this one is complex",
                span=arg.span,
                remedy="give real(…), imag(…) or abs(…) of it",
            )
        if n < row.orders and not (isinstance(value, Const) and value.is_integer and value.real >= 0):
            raise LanguageError(
                f"the order of {name} must be an integer literal, 0 or more",
                span=arg.span,
                remedy=f"write {name}(1, …), {name}(2, …)",
            )


def _size(el: Elaborator, args: Sequence[Argument], span: Span) -> Term:
    match args:
        case [Name(text, place)] if text in el.kinds.domains:
            return el.count(TypeName(text, place))
        case [Name(text, place)] if el.kinds.names_size(text):
            return el.count(TypeName("N", place, (Size(text, place),)))
        case _:
            raise LanguageError(
                "size takes the name of a domain", span=span, remedy="name the size, x::RV{n}, and write n for it"
            )


def _refuse_conditions(name: str, args: Sequence[Argument]) -> None:
    found = next((a for a in args if isinstance(a, Comparison | Junction | Negation)), None)
    if found is not None and name in COMPARISONS and name != "where":
        raise LanguageError(f"{name} takes two numbers to compare", span=found.span, remedy="write where(c, e)")


_OF_ONE = {
    "norm": "norm(x) for Euclid's norm and that of Frobenius, sum(abs.(x)) for the 1-norm, maximum(abs.(x)) for the "
    "largest entry, sum(abs.(x) .^ p)^(1/p) for the p-norm, svdvals(A)(0) for the spectral norm",
    "log": "log(x) / log(b) for the logarithm of x to the base b, or log2(x), log10(x)",
}
"""What to write instead of a second argument."""


def _refuse_missing(el: Elaborator, name: str, args: Sequence[Argument], scope: Scope, span: Span) -> None:
    """Refuse `where` without branches, `max` of a vector, and `max(i, …)` over an index."""
    if name == "where":
        raise LanguageError(
            f"where takes a condition and one or two values, and {len(args)} {'is' if len(args) == 1 else 'are'} given",
            span=span,
            remedy="write where(c, a, b) for a where c holds, and b elsewhere, or where(c, a) with 0 elsewhere",
        )
    if name in _OF_ONE and len(args) > 1:
        raise LanguageError(
            f"{name} takes 1 argument, and {len(args)} are given", span=span, remedy=f"write {_OF_ONE[name]}"
        )
    if name in ("max", "min") and (index := _as_if_bound(el, args, scope)):
        raise LanguageError(
            f"{name} is of numbers and binds no index {index}", span=span, remedy=f"write {name}imum({index}, …)"
        )
    if name in ("max", "min") and len(args) == 1:
        raise LanguageError(
            f"{name} takes 2 arguments or more, and 1 is given",
            span=span,
            remedy=f"write {name}(a, b) of numbers, and {name}imum(i, x(i)) of the entries of a tensor",
        )


def _as_if_bound(el: Elaborator, args: Sequence[Argument], scope: Scope) -> str:
    """A first argument that nothing defines and that the others hold, as the index of a sum; else nothing."""
    if len(args) < 2 or not isinstance(args[0], Name) or scope.find(args[0].text) is not None:
        return ""
    if args[0].text in CONSTANTS or el.kinds.names_size(args[0].text):
        return ""
    names = {n.text for arg in args[1:] if not isinstance(arg, Ready) for n in nodes_of(arg) if isinstance(n, Name)}
    return args[0].text if args[0].text in names else ""


def _made_of_others(el: Elaborator, name: str, args: Sequence[Argument], scope: Scope, span: Span) -> Term:
    """A function that is made of others: its map, whose parameters without types take tensors."""
    function = library.made(name, span)
    _count(name, len(function.params), "argument", args, span, None)
    given = [_for_library(el, name, param, arg, scope) for param, arg in zip(function.params, args, strict=True)]
    function = library.with_numbers(function, [isinstance(a, Ready) and is_complex(a.term.type) for a in given])
    try:
        return _inlined(el, Closure(function, Scope(), name), given, scope)
    except LanguageError as problem:
        if problem.span is not span:
            raise
        message = f"{name} is {MADE[name]}, where {problem.message}"
        raise LanguageError(message, span=span, also=problem.also, remedy=problem.remedy) from None


def _for_library(el: Elaborator, name: str, param: Param, arg: Argument, scope: Scope) -> Argument:
    if library.takes_any_number(param):
        return Ready(el.number(arg, scope, partial(remedy_of_every_entry, name, (arg,))), arg.span)
    return Ready(tensors.whole(el, name, arg, scope), arg.span) if param.kind is None else arg


# --- functions of the program ---------------------------------------------------------------------------------------


def _inlined(el: Elaborator, f: Closure, args: Sequence[Argument], scope: Scope) -> Term:
    """The body of `f` with its parameters standing for the arguments; of numbers, a call that is written out later."""
    f.read = True
    kinds, values = _given(el, f, args, scope)
    if not el.is_unguarded or not all(isinstance(value.type, Number) for value in values):
        return _made(el, f, kinds, values)
    if values not in f.calls:
        function = _function(el, f, kinds, values)
        f.calls[values] = None if function is None else _called(el, function, [v for v in values if v.free])
    called = f.calls[values]
    return _made(el, f, kinds, values) if called is None else called


def _function(el: Elaborator, f: Closure, kinds: Sequence[Type], values: Sequence[Term]) -> Term | None:
    """A variable for `f` of numbers of these types and of these constants, None if it binds something.

    It takes what the body reads outside of it, too; a body that reads nothing is a number itself.
    """
    key = tuple([widened(value, kind).type if value.free else value for value, kind in zip(values, kinds, strict=True)])
    if key not in f.made:
        named = zip(f.body.params, key, strict=True)
        given = [each if isinstance(each, Term) else terms.fresh(p.name, each) for p, each in named]
        params = [each for each in given if isinstance(each, Var)]
        body = _made(el, f, kinds, given)
        outer = sorted(body.free.difference(params), key=lambda v: v.uid)
        free_of_binders = not any(map(terms.bound_by, terms.subterms(body)))
        f.made[key] = None
        if not (params or outer) and free_of_binders:
            f.made[key] = body
        elif isinstance(body.type, Number) and not any(isinstance(v.kind, Index) for v in outer) and free_of_binders:
            f.made[key] = var = terms.fresh(f.name, Map(tuple(v.kind for v in (*params, *outer)), body.type))
            uses = tuple([_uses(el, body, param) for param in params])
            el.functions[var] = Function(Lam((*params, *outer), body), uses, _costs(el, body))
    return f.made[key]


def _called(el: Elaborator, function: Term, values: Sequence[Term]) -> Term:
    """A call of a function at numbers; those that cost something, and are read more than once, are shared."""
    if not isinstance(function, Var):
        return function
    meant = el.functions[function]
    args: list[Term] = []
    bindings: list[tuple[Var, Term]] = []
    for param, value, uses in zip(meant.term.params, values, meant.uses, strict=False):
        while isinstance(value, Let):
            bindings.extend(value.bindings)
            value = value.body
        if uses > 1 and _function_of(el, value) is None and _costs(el, value):
            bindings.append((terms.fresh(param.name, value.type), value))
            value = bindings[-1][0]
        args.append(value)
    return terms.let(bindings, App(function, (*args, *meant.term.params[len(args) :])))


def _given(el: Elaborator, f: Closure, args: Sequence[Argument], scope: Scope) -> tuple[list[Type], tuple[Term, ...]]:
    """The arguments of a call, and the types that the parameters ask of them."""
    kinds: list[Type] = []
    values: list[Term] = []
    for param, arg in zip(f.body.params, args, strict=True):
        el.check_single(param)
        el.check_free(param.name, param.span)
        kinds.append(_asked(el, param, arg))
        values.append(el.checked(arg, kinds[-1], scope))
    return kinds, tuple(values)


def _made(el: Elaborator, f: Closure, kinds: Sequence[Type], values: Sequence[Term]) -> Term:
    """The body of `f` with its parameters standing for the arguments; those that cost something are shared."""
    entries: dict[str, Entry | None] = {}
    bindings: list[tuple[Var, Term]] = []
    costly: list[tuple[Var, Term]] = []
    points: list[tuple[Var, Term]] = []
    for param, kind, value in zip(f.body.params, kinds, values, strict=True):
        while isinstance(value, Let):
            bindings.extend(value.bindings)
            value = value.body
        value = widened(value, kind)
        if is_value(value.type) and _costs(el, value):
            var = terms.fresh(param.name, value.type)
            costly.append((var, value))
            value = var
        elif isinstance(kind, Index) and not isinstance(value, Var):
            points.append((terms.fresh(param.name, kind), value))
            value = points[-1][0]
        entries[param.name] = value
    body = el.inlined(f.body.body, f.scope.child(entries))
    for var, value in points:
        body = _at(el, var, value, body)
    for var, value in costly:
        if _uses(el, body, var) > 1:
            bindings.append((var, value))
        else:
            body = terms.substitute(body, {var: value})
    return terms.let(bindings, body)


def _at(el: Elaborator, point: Var, value: Term, body: Term) -> Term:
    """`body` at an index, which counts modulo the size of a periodic domain; by now it is known how far it ranges."""
    domain = _range_of(el, point)
    if domain is not None and domain.periodic:
        if value != terms.ZERO and point in terms.numbers_read(body):
            return terms.at_point(point, value, body)
        # a number says no more modulo what it is compared
        if not value.free and _is_compared_alone(el, point, domain, body):
            return terms.at_point(point, value, body)
    return terms.substitute(body, {point: value})


def _range_of(el: Elaborator, index: Var) -> Domain | None:
    return el.ranges.domain_of(index.kind.domain) if isinstance(index.kind, Index) and index.kind.domain else None


def _is_compared_alone(el: Elaborator, point: Var, domain: Domain, body: Term) -> bool:
    """Whether a condition that something is equal to `point`, or is not, has no other index of its range."""
    around = {el.relations["=="], el.relations["!="]}
    conditions_on = (
        read
        for u in terms.subterms(body, Delta, Indicator)
        if point in (read := u.left.free | u.right.free) and (isinstance(u, Delta) or not around.isdisjoint(read))
    )
    return not all(any(_range_of(el, v) == domain for v in read - {point}) for read in conditions_on)


def _asked(el: Elaborator, param: Param, arg: Argument) -> Type:
    """The type that a parameter asks of its argument; one without a type takes a term that is no index as it is."""
    if param.kind is None and isinstance(arg, Ready) and not isinstance(arg.term.type, Index):
        return arg.term.type
    if el.kinds.is_index(param.kind):
        return el.kinds.index(param.kind, f"index {param.name}", param.span)
    assert param.kind is not None, "an unannotated parameter is an index"
    return el.kinds.read(param.kind, param.name, param.span, anchored=False)


def _costs(el: Elaborator, t: Term) -> bool:
    """Whether computing `t` twice is worse than keeping it: it sums, calls a function, or asks an unknown map."""
    return any(
        isinstance(u, Sum | Diff)
        or (isinstance(u, Call) and u.args)
        or (isinstance(u, App) and not _is_entry(u) and (not (made := _function_of(el, u)) or made.costs))
        for u in terms.subterms(t)
    )


def _function_of(el: Elaborator, t: Term) -> Function | None:
    """The function of the program of which this is a call that is written out later."""
    return el.functions.get(t.function) if isinstance(t, App) and isinstance(t.function, Var) else None


def _is_entry(t: App) -> bool:
    return isinstance(t.function.type, Map) and t.function.type.is_array


def _uses(el: Elaborator, body: Term, var: Var) -> int:
    """How often `var` stands in `body`, shared subterms counted once."""
    if body is var:
        return 1
    found = 0
    for u in terms.subterms(body):
        if var in u.free:
            made = _function_of(el, u)
            weights = (0, *made.uses) if made else itertools.repeat(1)
            found += sum(weight for below, weight in zip(terms.children(u), weights, strict=False) if below is var)
    return found


# --- f ▷ g ----------------------------------------------------------------------------------------------------------


def compose(el: Elaborator, e: Compose, scope: Scope) -> Term:
    """f ▷ g: g(f) if g takes what f is; else, for a map f, the composition x ↦ g(f(x))."""
    current = el.expr(e.maps[0], scope)
    for written in e.maps[1:]:
        g = callee(el, written, scope)
        if isinstance(current.type, Map) and not _takes_whole(el, g, current.type):
            names = _names(current, current.type)
            params = tuple([terms.fresh(name, kind) for name, kind in zip(names, current.type.params, strict=True)])
            value = terms.apply(current, *params)
            current = Lam(params, _fed(el, g, value, scope, e.maps[0].span, written))
        else:
            current = _fed(el, g, current, scope, e.maps[0].span, written)
        el.spend(sum(1 for _ in terms.subterms(current)), e.span)
    return current


def _names(f: Term, kind: Map) -> list[str]:
    """Names for the parameters of a composition that starts with `f`."""
    if isinstance(f, Lam):
        return [p.name for p in f.params]
    return ["ijklmn"[n % 6] if isinstance(param, Index) else "x" for n, param in enumerate(kind.params)]


def _fed(el: Elaborator, g: Callee, value: Term, scope: Scope, span: Span, written: Expr) -> Term:
    """g(value); the items of a tuple are separate arguments if g takes several."""
    kind = value.type
    if not isinstance(kind, Product) or _arity(g) == 1:
        return call(el, g, [Ready(value, span)], scope, written.span, written)
    bindings: list[tuple[Var, Term]] = []
    while isinstance(value, Let):
        bindings.extend(value.bindings)
        value = value.body
    if not isinstance(value, Tuple | Var):
        shared = terms.fresh("t", kind)
        bindings.append((shared, value))
        value = shared
    items = [Ready(terms.proj(item, value), span) for item in range(len(kind.items))]
    return terms.let(bindings, call(el, g, items, scope, written.span, written))


def _arity(g: Callee) -> int:
    match g:
        case Closure(body):
            return len(body.params)
        case Builtin(name) if name in MADE:
            return len(library.made(name, Span(0, 0)).params)
        case Builtin(name):
            return 3 if name in COMPARISONS else SCALAR_FUNCTIONS[name].arity if name in SCALAR_FUNCTIONS else 1
        case Term(type=Map(params)):
            return len(params)
        case _:
            return 1


def _takes_whole(el: Elaborator, g: Callee, kind: Map) -> bool:
    """Whether the first parameter of `g` is a map like `kind`."""
    match g:
        case Builtin(name):
            return name in OF_MAPS
        case Closure(body) if not el.kinds.is_index(body.params[0].kind):
            asked = _asked(el, body.params[0], Ready(terms.ZERO, body.span))
        case Term(type=Map((asked, *_))):
            pass
        case _:
            return False
    return isinstance(asked, Map) and index_slots(asked) == index_slots(kind)
