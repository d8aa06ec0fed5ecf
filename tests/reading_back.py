"""Results are programs: what is printed is read again, and says the same of the same numbers."""

from __future__ import annotations

import numpy as np

from combdiff.checking.points import add_derivatives, random_values
from combdiff.errors import UnsupportedError
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.language.printing.anchors import domains_of
from combdiff.language.printing.names import with_own_binders
from combdiff.language.printing.printer import program_text
from combdiff.language.printing.type_names import TypeNames
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.sizes import default_sizes
from combdiff.terms.conditions.choices import Choice, with_choices
from combdiff.terms.conditions.comparing import Relation, compared
from combdiff.terms.listings import entries_listed, last_slots_listed, rows_of
from combdiff.terms.terms import (
    Add,
    Const,
    Delta,
    Diff,
    Indicator,
    Lam,
    Mul,
    Pow,
    Term,
    Traverser,
    Tuple,
    Var,
    add,
    alpha_equal,
    bound_by,
    children,
    fresh,
    indicator,
    mul,
    number,
    rebuild,
    subterms,
)
from combdiff.terms.types import REAL, Index, Number
from tests.strategies import standard


def reread(term: Term) -> Term:
    return infer(parse(program_text(term)))


def assert_reads_back(term: Term, values: bool = True, seed: int = 0) -> None:
    """The text of `term` is a program of the same shape, and of the same value wherever it has one on numbers."""
    again = reread(term)
    assert program_text(again) == program_text(term)
    shapes = [_divided_last(_guarded(_in_rows(standard(_listed(t), joined=True)))) for t in (again, term)]
    assert alpha_equal(*shapes)
    if not values:
        return
    try:
        before, after = values_of(term, again, seed)
    except UnsupportedError:
        return  # a function of the real line, an integral
    for x, y in zip(before, after, strict=True):
        assert np.allclose(x, y, equal_nan=True)


def _divided_last(t: Term) -> Term:
    """`t` with what a product is divided by behind what stands above it: 1 / c * a is written a / c."""

    def visit(u: Term) -> Term:
        if not isinstance(u, Mul) or isinstance(u.type, Index):
            return u
        below = [f for f in u.factors if isinstance(f, Pow) and isinstance(f.exponent, Const) and f.exponent.real < 0]
        return mul(*(f for f in u.factors if f not in below), *below)

    return Traverser(visit, Mul)(t)


def _listed(t: Term) -> Term:
    """`t` with the entries of each list in order."""

    def visit(u: Term) -> Term:
        match u:
            case Lam(indices, Tuple((mark, *others))) if all(isinstance(e.type, Number) for e in others):
                inside = [visit(Lam(indices, e)) for e in others]
                return Lam(indices, Tuple((mark, *(e.body for e in inside if isinstance(e, Lam)))))
            case Lam(indices) if (rows := rows_of(u)) is not None:
                return Lam(indices, entries_listed(indices, rows))
            case Lam(indices, body) if slots := last_slots_listed(u):
                last = visit(Lam(indices[-slots:], body))
                assert isinstance(last, Lam), "a list"
                return Lam(indices, last.body)
            case _:
                return u

    return Traverser(visit, Lam)(t)


_ROW = fresh("row", REAL)


def _in_rows(t: Term) -> Term:
    """`t` with the values of a choice under the numbers of their rows, whose conditions do not repeat earlier ones."""
    if not isinstance(t, Add) or isinstance(t.type, Index):
        return rebuild(t, [_in_rows(u) for u in children(t)]) if children(t) else t
    found: list[Term] = []
    for u in with_choices(t.terms):
        if not isinstance(u, Choice):
            found.append(_in_rows(u))
            continue
        rows = add(*(indicator(number(n), _ROW, _in_rows(row.value)) for n, row in enumerate(u.rows)))
        for part in reversed(u.around):
            assert isinstance(part, Relation), "a comparison"
            rows = compared(part.left, part.sign, part.right, rows)
        found.append(rows)
    return add(*found)


def _guarded(term: Term) -> Term:
    """`term` with the factors of a guard under it, each term of a sum under its own: where(c, a, b) holds factors."""

    def visit(t: Term) -> Term:
        match t:
            case Mul(factors) if guard := next((f for f in factors if isinstance(f, Indicator | Delta)), None):
                rest = list(factors)
                rest.remove(guard)
                return visit(type(guard)(guard.left, guard.right, visit(mul(*rest, guard.body))))
            case Indicator(left, right, Add(terms)) | Delta(left, right, Add(terms)) if not isinstance(t.type, Index):
                return add(*(visit(type(t)(left, right, u)) for u in terms))
            case _:
                return t

    return Traverser(visit)(term)


def values_of(term: Term, again: Term, seed: int = 0) -> tuple[list[object], list[object]]:
    """The values of a result and of what was read, on the same arrays; ranges that no array shows go by their names."""
    sizes = default_sizes(term, seed=seed)
    given = random_values(term, sizes, np.random.default_rng(seed))
    params = {v.uid: w for v, w in zip(_leading(term, len(given)), _leading(again, len(given)), strict=True)}
    taken = {params[v.uid]: value for v, value in given.items() if isinstance(v, Var)}
    add_derivatives(given, term, sizes)
    for u in subterms(term):
        if isinstance(u, Diff) and u in given:
            taken[_renamed(u, params)] = given[u]
    spelling = TypeNames(with_own_binders(term))
    named = {name: d for d, name in (*spelling.domains.items(), *spelling.sizes.items())}
    ranges = {d for u in subterms(again) for v in bound_by(u) for d in domains_of(v.kind)}
    found = {d for d in ranges if (d.declared or d.sized) and d.name in named}
    pairs = [pair for d in found for pair in zip(named[d.name].axes, d.axes, strict=True)]
    seen = {theirs: sizes[ours] for ours, theirs in pairs if ours in sizes}
    count = len(_leading(term, len(params)))
    with np.errstate(all="ignore"):
        values = evaluate(_below(term, count), given, sizes), evaluate(_below(again, count), taken, seen)
    first, second = ([*x] if isinstance(x, tuple) else [x] for x in values)
    return first, second


def _renamed(t: Term, params: dict[int, Var]) -> Term:
    return Diff(t.kind, _renamed(t.of, params)) if isinstance(t, Diff) else params.get(t.uid, t)


def _leading(t: Term, count: int) -> list[Var]:
    found: list[Var] = []
    while len(found) < count:
        found += t.params
        t = t.body
    return found


def _below(t: Term, count: int) -> Term:
    while count:
        count -= len(t.params)
        t = t.body
    return t
