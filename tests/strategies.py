"""Random well-typed programs for properties that hold for all terms.

`programs()` yields what `infer` would: closed maps of captured tensors, then of the variables to differentiate, then a
scalar body, perhaps after shared values. Terms are small and their values moderate, so that they can be evaluated by
loops and compared in floating point: powers are 2 and 3, quotients and roots stand over 2 + |e|², functions are applied
to a quarter of an entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from hypothesis import strategies as st

from combdiff.language.printing.anchors import domains_of
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    TWO,
    App,
    Lam,
    Term,
    Var,
    add,
    bound_by,
    call,
    conj,
    delta,
    fresh,
    indicator,
    let,
    mul,
    neg,
    number,
    power,
    sub,
    subterms,
    total,
)
from combdiff.terms.types import (
    COMPLEX,
    HERMITIAN,
    REAL,
    SYMMETRIC,
    Domain,
    Index,
    Map,
    Product,
    Symmetry,
    Type,
)

PLAIN = Domain("A.1")
OTHER = Domain("B.2")
ZONE = Domain("BZ", declared=True, periodic=True)
STEPS = Domain("X", declared=True, symmetric=True, contractable=False)

_N, _M, _K, _B = Index(PLAIN), Index(OTHER), Index(ZONE), Index(STEPS)
_REFLECTED = Symmetry.reflection((1,), 1, "ineg")
_PAIRS = Symmetry.permutation((2, 1, 4, 3), "conj")
CAPTURED: tuple[tuple[str, Type], ...] = (
    ("A", Map((_N, _N), COMPLEX, (HERMITIAN,), "Her")),
    ("A", Map((_N, _N), COMPLEX, (), "CM")),
    ("D", Map((_N, _N), REAL, (SYMMETRIC,), "Sym")),
    ("B", Map((_N, _M), REAL, (), "RM")),
    ("S", Map((_N, _N, _K, _K), COMPLEX, (_PAIRS,), "Mmn")),
    ("w", Map((_B,), REAL, (_REFLECTED,), "SV")),
    ("E", Map((_K,), REAL)),
    ("c", COMPLEX),
    ("s", REAL),
)
UNKNOWNS: tuple[tuple[str, Type], ...] = (
    ("x", Map((_N,), COMPLEX, (), "CV")),
    ("y", Map((_N,), REAL, (), "RV")),
    ("z", COMPLEX),
    ("t", REAL),
    ("C", Map((_N, _M), COMPLEX, (), "CM")),
    ("U", Map((_N, _K), COMPLEX)),
    ("V", Map((_B,), COMPLEX)),
)
_NAMES = {PLAIN: "ij", OTHER: "mn", ZONE: "kq", STEPS: "ab"}


@dataclass
class Surroundings:
    """Variables in sight while a body is drawn."""

    variables: list[Var]
    indices: list[Var] = field(default_factory=list)

    def within(self, indices: Sequence[Var]) -> Surroundings:
        return Surroundings(self.variables, [*self.indices, *indices])

    def over(self, domain: Domain) -> list[Var]:
        return [i for i in self.indices if isinstance(i.kind, Index) and i.kind.domain == domain]


@st.composite
def programs(draw: st.DrawFn, depth: int = 3, lets: bool = True) -> Lam:
    """A closed program (captured…) -> (unknown…) -> body with a scalar body.

    Args:
        depth: how deep operations nest.
        lets: whether the body may begin with shared values.
    """
    captured = [fresh(*pair) for pair in draw(st.lists(st.sampled_from(CAPTURED), max_size=3, unique_by=_first))]
    unknowns = [fresh(*p) for p in draw(st.lists(st.sampled_from(UNKNOWNS), min_size=1, max_size=2, unique_by=_first))]
    around = Surroundings([*captured, *unknowns])
    bindings: list[tuple[Var, Term]] = []
    for name in draw(st.lists(st.sampled_from(("rho", "f")), max_size=2 if lets else 0, unique=True)):
        value = draw(values(around))
        shared = fresh(name, value.type)
        bindings.append((shared, value))
        around.variables.append(shared)
    body = draw(scalars(around, depth))
    inner = Lam(tuple(unknowns), let(bindings, add(body, entry_sum(unknowns[0]))))
    return Lam(tuple(captured), inner) if captured else inner


def _first(pair: tuple[str, Type]) -> str:
    return pair[0]


def entry_sum(var: Var) -> Term:
    """The sum of the entries of `var`, so that it is used."""
    indices = tuple(fresh(_NAMES[d][n % 2], Index(d)) for n, d in enumerate(domains_of(var.kind)))
    return total(indices, App(var, indices) if indices else var)


@st.composite
def values(draw: st.DrawFn, around: Surroundings) -> Term:
    """What a definition may bind: a number, or a map of one or two indices."""
    domains = draw(st.lists(st.sampled_from((PLAIN, ZONE, STEPS)), max_size=2, unique=True))
    indices = tuple(fresh(_NAMES[d][0], Index(d)) for d in domains)
    body = mul(draw(entries(around.within(indices))), draw(scalars(around.within(indices), 1)))
    if not body.free:
        body = call("exp", add(body, ONE)) if not indices else add(body, indices[0])
    if isinstance(body, Var) or isinstance(body.type, Index):
        body = call("sin", body)
    return Lam(indices, body) if indices else body


@st.composite
def scalars(draw: st.DrawFn, around: Surroundings, depth: int) -> Term:
    """A number made of the variables in sight."""
    if depth == 0:
        return draw(st.one_of(entries(around), constants()))
    make = draw(st.sampled_from((_sums, _binary, _binary, _unary, _conditions)))
    return draw(make(around, depth))


@st.composite
def _sums(draw: st.DrawFn, around: Surroundings, depth: int) -> Term:
    if len(around.indices) >= 3:
        return draw(_binary(around, depth))
    domain = draw(st.sampled_from(_domains(around)))
    index = fresh(draw(st.sampled_from(_NAMES[domain])), Index(domain))
    inner = around.within([index])
    return total((index,), mul(draw(entries(inner)), draw(scalars(inner, depth - 1))))


@st.composite
def _binary(draw: st.DrawFn, around: Surroundings, depth: int) -> Term:
    left, right = draw(scalars(around, depth - 1)), draw(scalars(around, depth - 1))
    return draw(st.sampled_from((add(left, right), sub(left, right), mul(left, right), mul(left, conj(right)))))


@st.composite
def _unary(draw: st.DrawFn, around: Surroundings, depth: int) -> Term:
    e = draw(scalars(around, depth - 1))
    small = mul(number(Fraction(1, 4)), draw(entries(around)))
    above = add(TWO, call("abs2", e))
    return draw(
        st.sampled_from(
            (
                conj(e),
                neg(e),
                power(e, TWO),
                power(e, number(3)),
                power(above, MINUS_ONE),
                power(above, number(Fraction(1, 2))),
                call("sqrt", above),
                call("log", above),
                call("real", e),
                call("imag", e),
                call("abs2", e),
                *(call(name, small) for name in ("exp", "sin", "cos", "tanh", "sinh", "cosh", "atan")),
            )
        )
    )


@st.composite
def _conditions(draw: st.DrawFn, around: Surroundings, depth: int) -> Term:
    e = draw(scalars(around, depth - 1))
    domain = draw(st.sampled_from(_domains(around)))
    indices = around.over(domain)
    if not indices:
        real = call("real", draw(entries(around)))
        return indicator(number(0), real, e)
    left = draw(st.sampled_from(indices))
    right = draw(st.sampled_from([*indices, number(1)]))
    return draw(st.sampled_from((delta(left, right, e), indicator(left, right, e))))


@st.composite
def entries(draw: st.DrawFn, around: Surroundings) -> Term:
    """An entry of a tensor with indices in sight, a number in sight, or an index as a number."""
    choices = [v for v in around.variables if all(around.over(d) for d in domains_of(v.kind))]
    if not choices:
        return draw(st.sampled_from(around.indices)) if around.indices else draw(constants())
    var = draw(st.sampled_from(choices))
    if not isinstance(var.kind, Map):
        return var
    return App(var, tuple(draw(_slot(around, d)) for d in domains_of(var.kind)))


@st.composite
def _slot(draw: st.DrawFn, around: Surroundings, domain: Domain) -> Term:
    index = draw(st.sampled_from(around.over(domain)))
    if domain.symmetric:
        return draw(st.sampled_from((index, neg(index))))
    if not domain.periodic:
        return index
    other = draw(st.sampled_from([*around.over(ZONE), *around.over(STEPS), ONE]))
    return draw(st.sampled_from((index, add(index, other), sub(index, mul(TWO, other)), neg(index))))


def constants() -> st.SearchStrategy[Term]:
    """Exact numbers: integers, fractions, complex ones."""
    parts = st.sampled_from([Fraction(n, d) for n in range(-2, 4) for d in (1, 2)])
    return st.one_of(parts.map(number), st.tuples(parts, parts).map(number))


def _domains(around: Surroundings) -> list[Domain]:
    found = {d: None for v in around.variables for d in domains_of(v.kind)}
    return list(found) or [ZONE]


# --- comparing programs ---------------------------------------------------------------------------------------------


def standard(term: Term, joined: bool = False) -> Term:
    """`term` with domains named by their order and spaces without names: what a program says, not what it calls it.

    With `joined` all ranges that run from 0 without an end are one.
    """
    names: dict[Domain, Domain] = {}
    for u in subterms(term):
        for var in bound_by(u):
            for d in domains_of(var.kind):
                name = "N" if joined and not (d.periodic or d.symmetric) else f"d{len(set(names.values()))}"
                names.setdefault(d, Domain(name, False, d.periodic, d.symmetric, d.contractable))
    known: dict[int, Var] = {}

    def kind(k: Type) -> Type:
        match k:
            case Index(Domain() as d):
                return Index(names.get(d, d))
            case Map(params, result, symmetries):
                return Map(tuple(map(kind, params)), kind(result), symmetries)
            case Product(items):
                return Product(tuple(map(kind, items)))
            case _:
                return k

    def part(x: object) -> object:
        if isinstance(x, Var):
            return known.setdefault(x.uid, Var(x.name, kind(x.kind), x.uid))
        if isinstance(x, Term):
            return type(x)(*(part(getattr(x, name)) for name in x.__match_args__))
        return tuple(map(part, x)) if isinstance(x, tuple) else x

    result = part(term)
    assert isinstance(result, Term)
    return result
