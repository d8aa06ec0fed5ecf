"""In a formula no variable is written as another, as a constant, as a function, or as an entry of a tensor."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import combdiff as cd
from combdiff.notation.latex import latex
from combdiff.notation.latex_names import Scope
from combdiff.notation.signs import latex_signs, text_signs
from combdiff.notation.symbolic import symbolic
from combdiff.terms.terms import Lam, Term, bound_by, children
from tests.adversarial_names import NAMES, called, names_of
from tests.strategies import programs


@pytest.mark.parametrize(
    ("program", "latex"),
    [
        ("(x1::R) -> (x::RV) -> x1 * x(1)^2 + x(0)", r"x_{1,1} \mapsto x \mapsto"),
        ("(x_i::R) -> (x::RV) -> sum(i, x(i)^2 * x_i)", r"x_{i_{1}} \mapsto x \mapsto i \mapsto 2 x_{i_{1}}\, x_{i}"),
        ("(x_1::R, x1::R) -> (y::R) -> x_1 * x1 * y^2", r"(x_{1}, x_{1,1}) \mapsto y \mapsto 2 x_{1}\, x_{1,1}\, y"),
        ("(π::R) -> (x::R) -> π * pi * x^2", r"\pi_{1} \mapsto x \mapsto 2 \pi_{1}\, x\, \pi"),
        ("(π::R) -> (x::R) -> π * x^2", r"\pi \mapsto x \mapsto 2 \pi\, x"),
        ("(µ::R, μ::R) -> (x::R) -> µ * μ * x", r"(\mu, \mu_{1}) \mapsto x \mapsto \mu\, \mu_{1}"),
        ("(ϕ::R, phi::R) -> (x::R) -> ϕ * phi * x", r"(\phi, \phi_{1}) \mapsto x \mapsto \phi\, \phi_{1}"),
        ("(rho_bar::R, ρ̄::R) -> (x::R) -> rho_bar * ρ̄ * x", r"(\bar{\rho}, \bar{\rho}_{1}) \mapsto"),
        ("(Re::R) -> (z::C) -> Re * real(z)^2", r"2 \mathrm{Re}_{1} \operatorname{Re}"),
        ("(Re::R) -> (z::C) -> Re * imag(z)^2", r"2 \mathrm{i}\, \mathrm{Re} \operatorname{Im}"),
    ],
)
def test_latex_writes_two_things_in_two_ways(program: str, latex: str) -> None:
    assert latex in cd.grad(program).latex()


def test_a_matrix_called_delta_is_not_kroneckers() -> None:
    d = cd.grad("(δ::RM) -> (X::RM) -> sum((i, j), X(i, j) * δ(i, j)) + X(0, 1)^2")
    assert r"(\delta_{1})_{i,j}" in d.latex() and r"\delta_{1,j}" in d.latex()
    alone = cd.grad("(δ::RM) -> (x::RV, y::RV) -> sum((i, j), x(i) * δ(i, j) * y(j))")
    assert r"\delta_{i,j}" in alone.latex() and r"\delta_{1}" not in alone.latex()


def test_plain_text_tells_a_transposed_matrix_from_a_name() -> None:
    d = cd.grad("(Aᵀ::RM, A::RM) -> (x::RV) -> sum((i, j), x(i) * (Aᵀ(i, j) * x(j)^2 + A(i, j) * x(j)))")
    assert d.matrix_text() == "Aᵀ1 x^∘2 + (A + Aᵀ + 2 diag(x) Aᵀ1ᵀ) x"
    assert cd.grad("(π::R) -> (x::R) -> π * pi * x^2").matrix_text() == "2 π1 x π"


def test_plain_text_tells_a_name_from_a_function_of_that_name() -> None:
    d = cd.grad("(softmax::RF, y::RV) -> (x::RV) -> logsumexp(i, x(i)) * sum(i, softmax(y(i)))")
    assert d.matrix_text() == "(𝟏ᵀ softmax1(y)) softmax(x)"


def test_a_clause_below_a_formula_has_the_names_of_the_formula() -> None:
    d = cd.grad("(tr::R) -> (X::RM) -> tr * sum(i, X(i, i))^2 + tr * X(0, 1)^2")
    formula, clause = d.matrix_text().splitlines()
    assert set(formula.split(" + ")) == {"2 tr1 tr(X) 𝐈", "M"}
    assert clause.startswith("where M = (") and "2 * tr1 * X(0, 1)" in clause


def test_sympys_own_constants_are_other_symbols() -> None:
    d = cd.grad("(I::R, E::R, re::RF) -> (z::C) -> real(im * I * E * z^2) * exp(1) * re(real(z))")
    s = d.sympy()
    assert {str(symbol) for symbol in s.arguments.values()} == {"I1", "E1", "re1", "z"}
    assert list(s.arguments) == ["I", "E", "re", "z"]
    plain = cd.grad("(I::R, E::R) -> (x::R) -> I * E * x^2").sympy()
    assert {str(symbol) for symbol in plain.arguments.values()} == {"I", "E", "x"}


def test_the_directions_of_a_lattice_are_other_symbols() -> None:
    text = "@domain K begin base = (I, I); periodic = true end\n@domain Q begin base = I; periodic = true end\n"
    d = cd.grad(text + "(u::(K, Q) -> R) -> sum((k::K, k_1::Q), u(k, k_1)^2)")
    (result,) = d.sympy().results
    assert len({str(symbol) for symbol in result.indices}) == 3


# --- any program, any names -------------------------------------------------------------------------------------------


def scopes(term: Lam, scope: Scope) -> list[Scope]:
    """The scope of a term, and those within it, as a formula opens them."""
    found = [scope]
    stack: list[tuple[Term, Scope]] = [(term, scope)]
    while stack:
        t, here = stack.pop()
        bound = bound_by(t)
        inner = here.bind(bound) if bound else here
        found += [inner] * bool(bound)
        stack += [(u, inner) for u in children(t)]
    return found


@pytest.mark.slow
@given(program=programs(), data=st.data(), plain=st.booleans())
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_two_variables_in_sight_are_written_alike(program: Lam, data: st.DataObject, plain: bool) -> None:
    names = st.sampled_from((*NAMES, "π", "δ", "Re", "x_i", "x_1", "A_1", "tr"))
    new = {name: data.draw(names) for name in names_of(program)}
    term = called(program, lambda stem: new.get(stem, stem))
    signs = text_signs(term) if plain else latex_signs(term, "matrix")
    for scope in scopes(term, Scope(str, signs=signs) if plain else Scope(signs=signs)):
        written = list(scope.names.values())
        assert len(set(written)) == len(written) and signs.isdisjoint(written)
    text = re.sub(r"\\[{}]", "", latex(term))
    assert text.count("{") == text.count("}")


@pytest.mark.slow
@given(program=programs(depth=2), data=st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_two_arguments_are_one_symbol(program: Lam, data: st.DataObject) -> None:
    pytest.importorskip("sympy")
    names = st.sampled_from(("I", "E", "n", "m", "oo", "x", "i", "gradient"))
    new = {name: data.draw(names) for name in names_of(program)} | {"BZ": "BZ", "X": "X"}
    s = symbolic(called(program, lambda stem: new.get(stem, stem)))
    names = [str(symbol) for symbol in s.arguments.values()]
    sizes = {str(x) for shape in s.shapes.values() for extent in shape for x in extent.free_symbols}
    assert len(set(names)) == len(names) and sizes.isdisjoint(names)
