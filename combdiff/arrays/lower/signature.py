"""The signature of a result: its arguments in written order, shared values, outputs, and functions of the user."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from combdiff.calculus.definitions.floating import float_lets
from combdiff.calculus.jumps.conditions import named_in
from combdiff.errors import Mention, UnsupportedError
from combdiff.records import dataclass
from combdiff.terms.terms import (
    Delta,
    Lam,
    Let,
    Sum,
    Term,
    Tuple,
    Var,
    apply,
    bound_by,
    can_fill_slot,
    fresh,
    items_of,
    let,
    proj,
    substitute,
    subterms,
)
from combdiff.terms.types import Domain, Index, Map, Number, Product, Type, is_complex


@dataclass(frozen=True, slots=True)
class Result:
    """A result term taken apart: `params` -> `bindings`; `outputs`."""

    params: tuple[Var, ...]
    bindings: tuple[tuple[Var, Term], ...]
    outputs: tuple[Term, ...]
    tupled: bool


def result_of(term: Term) -> Result:
    """The parameters that are no index are arguments; a map of indices only is an output array.

    Indices among the leading parameters, (A::RM) -> (i::N) -> (x::RV) -> …, are the first axes of all outputs.
    """
    params: list[Var] = []
    along: list[Var] = []
    bindings: list[tuple[Var, Term]] = []
    while True:
        match term:
            case Lam(here, body) if _takes_arguments(term):
                params += (p for p in here if not isinstance(p.kind, Index))
                along += (p for p in here if isinstance(p.kind, Index))
                term = body
            case Let(here_bound, body):
                bindings += here_bound
                term = body
            case _:
                tupled = isinstance(term, Tuple)
                outputs = items_of(term)
                if along:
                    bindings, outputs = _along(along, bindings, outputs)
                return Result(tuple(params), tuple(bindings), outputs, tupled)


def _along(
    indices: Sequence[Var], bindings: Sequence[tuple[Var, Term]], outputs: Sequence[Term]
) -> tuple[list[tuple[Var, Term]], tuple[Term, ...]]:
    """Values and outputs for all values of some indices at once, where these are the first slots."""
    own = tuple(fresh(i.name, i.kind) for i in indices)
    body = substitute(let(bindings, Tuple(tuple(outputs))), dict(zip(indices, own, strict=True)))
    found, items = float_lets(Lam(own, body))
    assert isinstance(items, Lam) and isinstance(items.body, Tuple), "a tuple of the outputs"
    return found, tuple(_with_axes(items.params, e) for e in items.body.items)


def _with_axes(first: tuple[Var, ...], output: Term) -> Term:
    """i ↦ (j ↦ e) as one array over i and j."""
    own = tuple(fresh(i.name, i.kind) for i in first)
    output = substitute(output, dict(zip(first, own, strict=True)))
    slots: tuple[Var, ...] = ()
    while isinstance(output, Lam):
        slots, output = (*slots, *output.params), output.body
    if isinstance(output.type, Map) and output.type.is_array:
        slots = tuple(fresh(f"d{n + 1}", kind) for n, kind in enumerate(output.type.params))
        output = apply(output, *slots)
    return Lam((*own, *slots), output)


def _takes_arguments(t: Term) -> bool:
    """Whether a map has a parameter that is no index, or is followed by one that has."""
    while isinstance(t, Lam | Let):
        if isinstance(t, Lam) and not all(isinstance(p.kind, Index) for p in t.params):
            return True
        t = t.body
    return False


def check_supported(term: Term) -> None:
    """Refuse what no array program computes, before anything is emitted."""
    for u in subterms(term):
        match u:
            case Sum(indices, _) if any(isinstance(v.kind, Map) for v in indices):
                raise UnsupportedError(
                    "the result contains a sum over a space of functions or tensors, which has no numerical value",
                    about=Mention(next(v.name for v in indices if isinstance(v.kind, Map))),
                    remedy="use the formula",
                )
            case Delta(left, right, _) if isinstance(left.type, Map):
                raise UnsupportedError(
                    "the result contains the δ of whole tensors or functions, which has no numerical value",
                    about=Mention("delta", called=True, beside=named_in(left.free | right.free)),
                    remedy="use the formula, or vary numbers on which the function depends",
                )
            case Sum(indices, _) if any(not isinstance(v.kind, Index) for v in indices):
                raise UnsupportedError(
                    "the result contains an integral over real numbers, but code can compute finite sums only",
                    about=Mention(next(v.name for v in indices if not isinstance(v.kind, Index))),
                    remedy="give the variable a domain (@domain) to sum over, or use the formula",
                )
            case Delta(left, right, _) if not (can_fill_slot(left) and can_fill_slot(right)):
                raise UnsupportedError(
                    "the result contains a Dirac δ of real numbers, which has no numerical value",
                    about=Mention("delta", called=True, beside=named_in(left.free | right.free)),
                    remedy="integrate over its variable, or use the formula",
                )
    result = result_of(term)
    for var in result.params:
        _check_parameter(var)
    _check_names(result.params)
    for e in result.outputs:
        _check_output(e)


def _check_parameter(var: Var) -> None:
    match var.kind:
        case Map(params, result) if any(isinstance(k, Map) and not k.is_array for k in (*params, result)):
            raise UnsupportedError(
                f"the parameter {var.name} is a map of functions of real numbers, and code is made for arrays",
                about=Mention(var.name),
                remedy="write the program over a periodic domain (@domain) in the place of R",
            )
        case Product():
            raise UnsupportedError(
                f"the parameter {var.name} is a tuple",
                about=Mention(var.name),
                remedy="write its items as separate parameters",
            )


def _check_output(e: Term) -> None:
    if isinstance(e, Lam) and not all(isinstance(p.kind, Index) for p in e.params):
        raise UnsupportedError(
            "the result is a tuple, and one of its items is a function of real numbers, which no array holds",
            about=Mention(e.params[0].name),
            remedy="let the function be one on an interval (@domain), or give its unknown alone with wrt=…",
        )


def _check_names(params: Sequence[Var]) -> None:
    """Arguments are passed by name, so two of one name are an error."""
    twice = [name for name, n in Counter(v.name for v in params).items() if n > 1]
    if twice:
        raise UnsupportedError(
            f"two arguments are called {twice[0]}",
            about=Mention(twice[0]),
            remedy="rename one of them: arguments can be passed by name",
        )


def slots(kind: Type) -> tuple[Domain, ...]:
    """The domains of a tensor's slots; none for a number."""
    match kind:
        case Map(params, Number() | Index()):
            domains = [p.domain for p in params if isinstance(p, Index)]
            if None in domains or len(domains) != len(params):
                raise UnsupportedError(
                    "a function that returns a function cannot be called on arrays",
                    remedy="give the function all of its arguments at once",
                )
            return tuple(d for d in domains if d is not None)
        case _:
            return ()


def leaves_of(t: Term) -> list[Term]:
    """The numbers and tensors of a tuple, and of the tuples in it; any other term by itself.

    >>> from combdiff.terms.terms import ONE, ZERO
    >>> leaves_of(Tuple((ONE, Tuple((ZERO, ONE))))) == [ONE, ZERO, ONE]
    True
    """
    if not isinstance(t.type, Product):
        return [t]
    return [item for n in range(len(t.type.items)) for item in leaves_of(proj(n, t))]


def described(kind: Type, dimensions: Sequence[str]) -> str:
    """An argument in words, for the docstring of generated code."""
    number = "complex" if is_complex(kind) else "real"
    match kind:
        case Number():
            return f"{number} number"
        case Map(_, Number() | Index() as result) if dimensions:
            comma = "," if len(dimensions) == 1 else ""
            shape = f"array ({', '.join(dimensions)}{comma})"
            if isinstance(result, Number):
                return f"{number} {shape}"
            return f"integer {shape}, " + _of_entries(result.domain)
        case Map():
            return "function"
        case _:
            return "value"


def _of_entries(domain: Domain | None) -> str:
    """What the entries of an array of integers are."""
    if domain is None:
        return "one row an offset"
    return "indices around 0" if domain.symmetric and domain.lower is None else f"indices from {domain.lower or 0}"


_GUESS, _GUESS_SYMMETRIC = 12, 5


def guessed_sizes(term: Term) -> dict[Domain, int]:
    """A size for every domain of `term`, for decisions that are made before arrays are seen."""
    domains: dict[Domain, int] = {}
    for u in subterms(term):
        kinds = [v.kind for v in bound_by(u)] + ([u.kind] if isinstance(u, Var) else [])
        while kinds:
            match kinds.pop():
                case Index(Domain() as d):
                    guess = _GUESS_SYMMETRIC if d.symmetric else _GUESS
                    for axis in d.axes if d.of is None else (d.of, d):
                        domains[axis] = axis.extent({axis: guess, d.of or axis: guess})
                case Map(params, result):
                    kinds += [*params, result]
                case Product(items):
                    kinds += items
    return domains


def looped(labels: Iterable[Var], params: Sequence[Var], function: str = "") -> UnsupportedError:
    """The error of a function on arrays that would have to be called in a loop over indices."""
    names = ", ".join(v.name for v in labels if v not in params)
    return UnsupportedError(
        f"code cannot call an unspecified function with a different array for each value of {names}",
        about=Mention(function, called=True) if function else None,
        remedy="let the function take the whole array, or define it in the program",
    )
