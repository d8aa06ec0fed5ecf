"""SymPy's objects for all programs at hand: computed by SymPy, entry by entry, they are what the term means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
import sympy

import combdiff as cd
from combdiff.derivation import Derivation
from combdiff.language.printing.anchors import domains_of
from combdiff.notation.symbolic import Equation, SymbolicResult
from combdiff.terms.nodes import OF_MATRICES, PLACES
from combdiff.terms.terms import Delta, Diff, Loop, Reduce, Term, Var, bound_by, subterms
from combdiff.terms.types import Domain, Map
from tests.notation.page_reader import Values, expected, values_for
from tests.notation.test_printed_forms import has_numbers, names_interval, small
from tests.notation.test_symbolic import computed, symbols_for
from tests.programs import PRODUCTS, PROGRAMS, derived, product


def chosen(*args: sympy.Expr) -> sympy.Expr:
    """A function in the place of an unknown one."""
    return sympy.sin(sum((n + 1) * sympy.sympify(x) for n, x in enumerate(args)))


def numbers_of(key: Term) -> object:
    """The chosen function, or its derivative, on numbers."""
    of, order = key, 0
    while isinstance(of, Diff):
        of, order = of.of, order + 1
    assert isinstance(of, Var) and isinstance(of.kind, Map)
    symbols = sympy.symbols(f"a:{len(of.kind.params)}", real=True)
    value: object = chosen(*symbols)
    if order == 1 and len(symbols) > 1:
        value = tuple(chosen(*symbols).diff(symbol) for symbol in symbols)
    elif order:
        value = chosen(*symbols).diff(symbols[0], order)
    return sympy.lambdify(symbols, value, "math")


def values_with_chosen(term: Term, sizes: Mapping[Domain, int]) -> tuple[Values, list[np.ndarray]]:
    values, found = values_for(term, sizes)
    unknown = {key: numbers_of(key) for key in values if callable(values[key])}
    values |= unknown
    return values, expected(term, values, sizes) if unknown else found


def known(s: SymbolicResult, values: Values) -> dict[sympy.Basic, object]:
    """Which of the arguments are functions; they are replaced by the chosen one."""
    return {s.arguments[key.name]: chosen for key in values if isinstance(key, Var) and callable(values[key])}


def put_in(equation: Equation, functions: Mapping[sympy.Basic, object]) -> Equation:
    expression = equation.expression
    for function, value in functions.items():
        expression = expression.replace(function, value).doit(sum=False)
    return Equation(equation.entry, equation.limits, expression)


def beyond(term: Term) -> bool:
    """Whether something is left for which SymPy may have no object: a linear map, a root, an entry by its offset, the
    largest of many numbers, a function of a matrix, a loop.
    """
    variables = [v for t in subterms(term) for v in (*bound_by(t), *((t,) if isinstance(t, Var) else ()))]
    linear = any(isinstance(v.kind, Map) and v.kind.linear for v in variables)
    listed = any(domain.listed for v in variables for domain in domains_of(v.kind))
    none = {"maximum", "minimum", "ties"} | PLACES | OF_MATRICES
    largest = any(isinstance(t, Reduce) and t.kind in none for t in subterms(term))
    loop = any(isinstance(t, Loop) for t in subterms(term))
    if any(isinstance(t, Delta) and isinstance(t.left.type, Map) for t in subterms(term)):
        return True
    if any(names_interval(v.kind) for v in variables):  # parts at ends are tuples
        return True
    return (
        linear or listed or largest or loop or any(isinstance(t, Diff) and not t.is_derivative for t in subterms(term))
    )


def agrees(d: Derivation, s: SymbolicResult) -> None:
    sizes = small(d.term)
    values, wanted = values_with_chosen(d.term, sizes)
    functions = known(s, values)
    numbers = {key: value for key, value in values.items() if isinstance(key, Var) and not callable(value)}
    given = symbols_for(s, numbers, sizes)
    for definition in s.definitions:
        entry = definition.entry
        # NumPy computes what a condition excludes, too, and then does not choose it
        with np.errstate(divide="ignore", invalid="ignore"):
            given[entry.base if isinstance(entry, sympy.Indexed) else entry] = computed(
                put_in(definition, functions), given
            )
    for equation, value in zip(s.results, wanted, strict=True):
        with np.errstate(divide="ignore", invalid="ignore"):
            found = computed(put_in(equation, functions), given)
        np.testing.assert_allclose(found, value, rtol=1e-8, atol=1e-10 * max(1.0, np.abs(value).max(initial=0)))


def assert_agrees_or_is_refused(d: Derivation) -> None:
    try:
        s = d.sympy()
    except cd.CombDiffError as refusal:
        assert beyond(d.term) and "SymPy has no expression for this" in str(refusal) and refusal.remedy
        return
    if has_numbers(d.term):
        agrees(d, s)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_derivative_has_the_value_in_sympy_that_it_has(name: str) -> None:
    assert_agrees_or_is_refused(derived(name))


OF_SEVERAL = [name for name, (text, _) in PROGRAMS.items() if "RO" in text]
"""Second derivatives of a function of several numbers: SymPy's `Derivative` is by one of them."""


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("name", [name for name in PRODUCTS if name not in OF_SEVERAL])
def test_a_hessian_product_has_the_value_in_sympy_that_it_has(name: str) -> None:
    assert_agrees_or_is_refused(product(name))


def test_a_lost_factor_is_noticed() -> None:
    d = derived("matrix: ridge")
    s = d.sympy()
    agrees(d, s)
    (equation,) = s.results
    wrong = replace(equation, expression=equation.expression / 2)
    with pytest.raises(AssertionError):
        agrees(d, replace(s, results=(wrong,)))
