"""Terms of one form are worked on once, and each result is in its own variables."""

from __future__ import annotations

from combdiff.canon.repeats import form, once_a_form
from combdiff.terms.terms import (
    ONE,
    App,
    Term,
    Var,
    alpha_equal,
    bound_by,
    conj,
    fresh,
    mul,
    reduction,
    subterms,
    total,
)
from combdiff.terms.types import COMPLEX, REAL, Domain, Index, Map

N = Index(Domain("n"))
CV = Map((N,), COMPLEX)


def _norm(x: Var, y: Var, name: str = "i") -> Term:
    i = fresh(name, N)
    return total((i,), mul(conj(App(x, (i,))), App(y, (i,))))


def test_terms_that_differ_by_free_variables_have_one_form() -> None:
    x, y = fresh("x", CV), fresh("y", CV)
    assert form(_norm(x, y))[0] == form(_norm(y, x))[0]


def test_a_variable_that_stands_twice_is_no_pair_of_variables() -> None:
    x, y = fresh("x", CV), fresh("y", CV)
    assert form(_norm(x, x))[0] != form(_norm(x, y))[0]


def test_names_of_bound_indices_and_kinds_of_variables_are_part_of_a_form() -> None:
    x = fresh("x", CV)
    assert form(_norm(x, x))[0] != form(_norm(x, x, "j"))[0]
    assert form(fresh("a", REAL))[0] != form(fresh("a", COMPLEX))[0]


def test_variables_that_change_places_are_not_mixed_up() -> None:
    x, y = fresh("x", CV), fresh("y", CV)
    terms = [_norm(x, y), _norm(y, x)]
    assert all(map(alpha_equal, once_a_form(terms, list), terms))


def test_a_repeated_form_is_rewritten_once_and_shares_no_binder() -> None:
    x, y = fresh("x", CV), fresh("y", CV)
    calls: list[int] = []

    def rewrite(terms: list[Term]) -> list[Term]:
        calls.append(len(terms))
        return terms

    results = once_a_form([_norm(x, x), _norm(y, y)], rewrite)
    binders = [{v for u in subterms(t) for v in bound_by(u)} for t in results]
    assert calls == [1]
    assert binders[0].isdisjoint(binders[1])


def test_reductions_of_the_same_numbers_have_forms_of_their_own() -> None:
    x, i = fresh("x", Map((N,), REAL)), fresh("i", N)
    forms = {form(reduction(kind, [i], ONE, App(x, (i,))))[0] for kind in ("prod", "maximum", "minimum", "norm")}
    assert len(forms) == 4
