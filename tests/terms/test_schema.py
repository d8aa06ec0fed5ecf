"""A node kind is declared by its class: what walks, rebuilds and archives terms knows no kind by name."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

import combdiff as cd
from combdiff.records import dataclass
from combdiff.terms import nodes
from combdiff.terms.archive import Archive
from combdiff.terms.nodes import ONE, Let, Term, Var, fresh
from combdiff.terms.schema import SCHEMAS, bound_by, children, label, reshaped
from combdiff.terms.terms import Lam, alpha_equal, rebuild, subterms
from combdiff.terms.types import INTEGER, REAL
from tests.programs import PROGRAMS, derived
from tests.strategies import programs

KINDS = [
    kind for kind in vars(nodes).values() if isinstance(kind, type) and issubclass(kind, Term) and kind is not Term
]


def parts(t: Term) -> list[Term]:
    return [u for u in subterms(t) if children(u)]


@pytest.mark.slow
@given(programs())
@settings(max_examples=100, deadline=None)
def test_a_node_is_its_kind_with_its_label_children_and_bound_variables(program: Lam) -> None:
    for t in parts(program):
        assert reshaped(t, children(t)) == t
        same = reshaped(t, children(t), bound_by(t))
        assert same == t
        assert (same.type, same.free, label(same)) == (t.type, t.free, label(t))


@pytest.mark.slow
@given(programs())
@settings(max_examples=100, deadline=None)
def test_the_constructors_leave_what_is_in_normal_form(program: Lam) -> None:
    for t in parts(program):
        assert rebuild(t, children(t)) == t


@pytest.mark.slow
def test_every_kind_has_been_met() -> None:
    """By the programs of the tests, so that the claims above are made of each."""
    met = {type(t) for name in PROGRAMS for t in subterms(derived(name).term)}
    met |= {type(t) for name in PROGRAMS for t in subterms(derived(name).program)}
    met |= {type(t) for t in subterms(cd.pullback("(x::RV) -> (sum(i, x(i)), x)").program)}
    met |= {type(t) for t in subterms(cd.grad("(x::RV) -> prod(i, x(i))").program)}
    met |= {type(t) for t in subterms(cd.grad("(f::RO) -> (x::R, y::R) -> f(x, y)").term)}
    assert [kind.__name__ for kind in KINDS if kind not in met] == []


@dataclass(frozen=True, slots=True, eq=False)
class Gathered(Term):
    """A kind of node that the package does not know: a value, and what its indices are looked up in."""

    mode: str
    indices: tuple[Var, ...]
    value: Term
    tables: tuple[Term, ...]

    def __post_init__(self) -> None:
        below = (self.value, *self.tables)
        free = frozenset().union(*(t.free for t in below)) - {*self.indices}
        self._seal(REAL, (self.mode, self.indices, *below), frozenset(free))


def test_a_kind_that_nobody_knows_is_walked_compared_and_kept() -> None:
    i, x, y = fresh("i", INTEGER), fresh("x", REAL), fresh("y", REAL)
    t = Gathered("take", (i,), i, (x, y))
    assert (children(t), bound_by(t), label(t)) == ((i, x, y), (i,), ("take",))
    assert set(subterms(Lam((x, y), t))) >= {t, i, x, y}
    j = fresh("j", INTEGER)
    other = reshaped(t, (j, x, y), (j,))
    assert alpha_equal(t, other)
    assert not alpha_equal(t, Gathered("drop", (i,), i, (x, y)))
    (again,) = Archive.of([Lam((x, y), t)]).terms()
    assert alpha_equal(again, Lam((x, y), t))


def test_a_schema_names_the_roles_of_fields() -> None:
    assert SCHEMAS[Let].roles == {"bindings": "bindings", "body": "child"}
    x = fresh("x", REAL)
    assert children(ONE) == children(x) == ()
    assert reshaped(x, ()) is x
