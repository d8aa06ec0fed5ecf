"""LaTeX: the paper's equations in its manner, brackets by precedence, names, layout."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import combdiff as cd
from combdiff.errors import CombDiffError
from combdiff.notation.latex import latex
from combdiff.notation.latex_names import Scope, latex_name
from combdiff.terms.terms import (
    IMAGINARY,
    MINUS_ONE,
    ONE,
    PI,
    TWO,
    ZERO,
    App,
    Diff,
    Lam,
    Let,
    Mul,
    Proj,
    Term,
    Tuple,
    Var,
    add,
    call,
    conj,
    delta,
    fresh,
    indicator,
    mul,
    neg,
    number,
    power,
    sub,
    total,
)
from combdiff.terms.types import COMPLEX, REAL, SYMMETRIC, Domain, Index, Map

ROWS, COLUMNS = Index(Domain("C.1")), Index(Domain("C.2"))
BZ = Index(Domain("BZ", declared=True, periodic=True))
X = Index(Domain("X", declared=True, symmetric=True, contractable=False))
FUNCTION = Map((REAL,), REAL)


def at(tensor: Term, *indices: Term) -> Term:
    return App(tensor, indices)


J = fresh("J", Map((ROWS,) * 4, COMPLEX))
C = fresh("C", Map((ROWS, COLUMNS), COMPLEX))
p, q, r, s = (fresh(name, ROWS) for name in "pqrs")
i, j = (fresh(name, COLUMNS) for name in "ij")
x, y = (fresh(name, Map((ROWS,), REAL)) for name in "xy")
A = fresh("A", Map((ROWS, ROWS), REAL, (SYMMETRIC,)))
z, c = fresh("z", COMPLEX), fresh("c", COMPLEX)
t, d = fresh("t", REAL), fresh("d", REAL)
f, g = fresh("f", FUNCTION), fresh("g", FUNCTION)

FOCK = mul(number(4), at(J, p, q, r, s), at(C, q, i), conj(at(C, r, j)), at(C, s, j))
HARTREE_FOCK = Lam((J,), Lam((C,), Lam((p, i), total((j, q, r, s), FOCK))))


def test_hartree_fock_gradient_reads_as_equation_53() -> None:
    expected = r"J \mapsto C \mapsto (p, i) \mapsto 4 \sum_{j,q,r,s} J_{p,q,r,s}\, C_{q,i}\, C_{r,j}^{*} C_{s,j}"
    assert latex(HARTREE_FOCK) == expected


def test_a_double_contraction_is_explained_below_the_formula() -> None:
    assert latex(HARTREE_FOCK, form="matrix").split("\n") == [
        r"\begin{aligned}",
        r"& J \mapsto C \mapsto 4 (J : C^{*} C^{\mathsf{T}}) C \\",
        r"& \text{where}\ (J : X)_{i,j} = \sum_{k,l} J_{i,j,k,l}\, X_{k,l}",
        r"\end{aligned}",
    ]


def test_a_sum_in_brackets_is_broken_in_matrix_form() -> None:
    n = Index(Domain("A.1"))
    k, m, o = (fresh(name, n) for name in "kmo")
    matrices = [fresh(name, Map((n, n), REAL)) for name in ("Alpha", "first", "second", "third", "fourth")]
    inner = add(*(App(matrix, (k, m)) for matrix in matrices[1:]))
    product = Lam((k, o), total((m,), mul(inner, App(matrices[0], (m, o)))))
    assert latex(product, form="matrix", width=20).split("\n") == [
        r"\begin{aligned}",
        r"& (\mathrm{first} + \mathrm{second} \\",
        r"& \quad + \mathrm{third} + \mathrm{fourth}) A",
        r"\end{aligned}",
    ]


def wannier() -> Term:
    S = fresh("S", Map((ROWS, ROWS, BZ, BZ), COMPLEX))
    w, U = fresh("w", Map((X,), REAL)), fresh("U", Map((ROWS, COLUMNS, BZ), COMPLEX))
    rho = fresh("rho", Map((COLUMNS, X), COMPLEX))
    n, m = fresh("n", COLUMNS), fresh("n", COLUMNS)
    k, kk, b, bb = fresh("k", BZ), fresh("k", BZ), fresh("b", X), fresh("b", X)
    overlap = mul(conj(at(U, p, n, k)), at(S, p, q, k, add(k, b)), at(U, q, n, add(k, b)))
    gradient = mul(number(4), at(w, bb), conj(at(rho, m, bb)), at(U, q, m, add(kk, bb)), at(S, p, q, kk, add(kk, bb)))
    body = Lam((p, m, kk), total((bb, q), gradient))
    return Lam((S, w), Lam((U,), Let(((rho, Lam((n, b), total((k, p, q), overlap))),), body)))


def test_wannier_gradient_reads_as_equation_58() -> None:
    assert latex(wannier()).split("\n") == [
        r"\begin{aligned}",
        r"& (S, w) \mapsto U \mapsto \\",
        r"& \mathbf{let}\ \rho_{n,b} = \sum_{k,p,q} U_{p,n,k}^{*} S_{p,q,k,k+b}\, U_{q,n,k+b} \\",
        r"& \mathbf{in}\ (p, n, k) \mapsto 4 \sum_{b,q} w_{b}\, \rho_{n,b}^{*} U_{q,n,k+b}\, S_{p,q,k,k+b}",
        r"\end{aligned}",
    ]


def conjugate_gradient() -> Term:
    alpha, beta = fresh("alpha", REAL), fresh("beta", REAL)
    residual, direction, b, v = (fresh(name, Map((ROWS,), REAL)) for name in ("r", "p", "b", "x"))
    R = fresh("R", Map((Map((ROWS,), REAL),), REAL))
    quadratic = total((p, q), mul(number(Fraction(1, 2)), at(v, p), at(A, p, q), at(v, q)))
    objective = Lam((v,), sub(quadratic, total((p,), mul(at(v, p), at(b, p)))))
    ahead = add(at(residual, q), mul(beta, at(direction, q)))
    slope = App(Diff("grad", R), (Lam((q,), add(at(x, q), mul(alpha, ahead))),))
    first = total((p,), mul(at(slope, p), add(at(residual, p), mul(beta, at(direction, p)))))
    second = total((p,), mul(alpha, at(slope, p), at(direction, p)))
    body = Let(((R, objective),), Tuple((first, second)))
    return Lam((A, residual, direction, b, x), Lam((alpha, beta), body))


def test_conjugate_gradient_reads_as_equation_48() -> None:
    assert latex(conjugate_gradient(), form="matrix").split("\n") == [
        r"\begin{aligned}",
        r"& (A, r, p, b, x) \mapsto (\alpha, \beta) \mapsto \\",
        r"& \mathbf{let}\ R = x \mapsto \frac{1}{2} x^{\mathsf{T}} A x - x^{\mathsf{T}} b \\",
        r"& \mathbf{in}\ (\nabla R(x + \alpha (r + \beta p))^{\mathsf{T}} (r + \beta p), "
        r"\alpha \nabla R(x + \alpha (r + \beta p))^{\mathsf{T}} p)",
        r"\end{aligned}",
    ]


def test_a_value_without_matrix_form_stays_in_index_form_beside_one_that_has_it() -> None:
    pair = Lam((x, J), Tuple((Lam((p,), mul(TWO, at(x, p))), Lam((p, q), at(J, p, q, p, q)))))
    assert latex(pair, form="matrix") == r"(x, J) \mapsto (2 x, (p, q) \mapsto J_{p,q,p,q})"


FORMULAS: list[tuple[Term, str]] = [
    (power(add(z, c), MINUS_ONE), r"\frac{1}{z + c}"),
    (mul(number(Fraction(1, 2)), z, power(call("abs", z), MINUS_ONE)), r"\frac{z}{2 \lvert z \rvert}"),
    (mul(number(Fraction(3, 2)), z), r"\frac{3}{2} z"),
    (neg(mul(t, power(d, number(-2)), power(add(t, d), MINUS_ONE))), r"-\frac{t}{d^{2} (t + d)}"),
    (call("abs2", z), r"\lvert z \rvert^{2}"),
    (power(call("abs2", z), TWO), r"\lvert z \rvert^{4}"),
    (conj(z), "z^{*}"),
    (power(conj(z), TWO), r"(z^{*})^{2}"),
    (conj(add(z, c)), r"(z + c)^{*}"),
    (power(z, number(Fraction(1, 2))), "z^{1/2}"),
    (power(z, add(c, ONE)), "z^{c + 1}"),
    (power(add(z, c), TWO), r"(z + c)^{2}"),
    (power(number(-1), t), r"(-1)^{t}"),
    (mul(add(z, c), sub(z, c)), r"(z + c) (z - c)"),
    (sub(z, add(c, ONE)), "z - (c + 1)"),
    (call("sqrt", z), r"\sqrt{z}"),
    (call("exp", mul(IMAGINARY, t)), r"\exp(\mathrm{i}\, t)"),
    (power(call("sin", t), TWO), r"(\sin(t))^{2}"),
    (mul(PI, t), r"\pi\, t"),
    (mul(number(-2), IMAGINARY, t), r"-2 \mathrm{i}\, t"),
    (add(ONE, mul(number(-1), t)), "1 - t"),
    (ZERO, "0"),
    (MINUS_ONE, "-1"),
    (number(Fraction(-1, 2)), r"-\frac{1}{2}"),
    (neg(total((p,), mul(TWO, at(x, p)))), r"-2 \sum_{p} x_{p}"),
    (total((p,), add(at(x, p), ONE)), r"\sum_{p} (x_{p} + 1)"),
    (add(total((p,), at(x, p)), ONE), r"\sum_{p} x_{p} + 1"),
    (mul(total((p,), at(x, p)), total((q,), at(y, q)), t), r"t \left(\sum_{p} x_{p}\right) \sum_{q} y_{q}"),
    (power(total((p,), at(x, p)), TWO), r"\left(\sum_{p} x_{p}\right)^{2}"),
    (Lam((p,), delta(p, add(q, ONE), at(x, p))), r"p \mapsto \delta_{p,q+1}\, x_{p}"),
    (delta(t, d, App(f, (t,))), r"\delta(t - d)\, f(t)"),
    (indicator(p, q, at(x, p)), r"[p \le q]\, x_{p}"),
    (
        total((t,), mul(TWO, App(f, (t,)), App(g, (sub(t, d),)))),
        r"2 \int f(t)\, g(t - d)\, \mathrm{d}t",
    ),
    (App(Diff("grad", f), (t,)), r"f'(t)"),
    (App(Diff("pullback", g), (t, d)), r"\mathcal{P}(g)(t, d)"),
    (App(Diff("grad", Diff("grad", f)), (t,)), r"f''(t)"),
    (Proj(1, fresh("u", Tuple((t, d)).type)), r"{u}_{(2)}"),
]


@pytest.mark.parametrize(("term", "expected"), FORMULAS, ids=[text for _, text in FORMULAS])
def test_formulas_have_the_brackets_that_they_need_and_no_more(term: Term, expected: str) -> None:
    assert latex(term) == expected


def test_a_sum_in_a_difference_is_bracketed_even_where_it_was_not_flattened() -> None:
    assert latex(Mul((MINUS_ONE, add(z, c)))) == r"-(z + c)"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ρ", r"\rho"),
        ("rho", r"\rho"),
        ("Omega", r"\Omega"),
        ("Ω", r"\Omega"),
        ("x1", "x_{1}"),
        ("x₁₂", "x_{12}"),
        ("w_b", "w_{b}"),
        ("e_tot", r"e_{\mathrm{tot}}"),
        ("Fock", r"\mathrm{Fock}"),
        ("alpha2", r"\alpha_{2}"),
        ("ρ̂", r"\hat{\rho}"),
        ("λ_max", r"\lambda_{\mathrm{max}}"),
        ("A", "A"),
        ("_a", r"\mathrm{\_a}"),
    ],
)
def test_names_become_letters_with_subscripts(name: str, expected: str) -> None:
    assert latex_name(name) == expected


def test_a_name_with_a_subscript_takes_its_indices_outside() -> None:
    assert latex(at(fresh("x1", x.kind), p)) == "(x_{1})_{p}"


def test_two_variables_of_one_name_in_sight_are_told_apart() -> None:
    inner, outer = fresh("p", ROWS), fresh("p", ROWS)
    assert latex(Lam((outer,), total((inner,), at(A, outer, inner)))) == r"p \mapsto \sum_{p_{1}} A_{p,p_{1}}"


def test_siblings_use_the_same_name() -> None:
    one, two = fresh("p", ROWS), fresh("p", ROWS)
    assert latex(add(total((one,), at(x, one)), total((two,), at(y, two)))) == r"\sum_{p} x_{p} + \sum_{p} y_{p}"


@given(st.lists(st.sampled_from(["rho", "ρ", "x", "x1", "x_1", "x11", "Fock"]), min_size=1, max_size=8))
def test_no_two_variables_in_a_scope_are_written_alike(names: list[str]) -> None:
    variables = [fresh(name, REAL) for name in names]
    scope = Scope().bind(variables)
    assert len({scope[v] for v in variables}) == len(variables)


def long_sum(terms: int) -> Term:
    one: list[Term] = [mul(at(x, p), at(fresh(f"y{n}", x.kind), p)) for n in range(terms)]
    return Lam((x,), Lam((p,), add(*one)))


def test_a_long_sum_is_broken_before_a_sign() -> None:
    lines = latex(long_sum(30), width=60).split("\n")
    assert lines[0] == r"\begin{aligned}" and lines[-1] == r"\end{aligned}"
    assert len(lines) > 4
    assert all(re.match(r"& \\quad [+-] ", line) for line in lines[2:-1])
    assert all(line.endswith(r"\\") for line in lines[1:-2])
    assert "\n" not in latex(long_sum(3), width=60)


@pytest.mark.parametrize("form", ["index", "matrix"])
@pytest.mark.parametrize("width", [10, 40, 100])
def test_every_line_is_balanced(form: str, width: int) -> None:
    hessian = Lam(
        (J,), Lam((C,), Lam((p, i), mul(number(4), add(*(total((j, q, r, s), mul(FOCK, v)) for v in (z, c))))))
    )
    for term in (HARTREE_FOCK, wannier(), conjugate_gradient(), long_sum(20), hessian):
        for line in latex(term, form=form, width=width).split("\n"):
            assert line.count("{") == line.count("}")
            assert line.count(r"\left") == line.count(r"\right")


def test_a_wide_tuple_has_an_item_a_line() -> None:
    lines = latex(conjugate_gradient(), form="matrix", width=40).split("\n")
    assert [line.count(r"\nabla") for line in lines] == [0, 0, 0, 0, 1, 1, 0]
    assert lines[4].startswith(r"& \quad \bigl(") and lines[5].endswith(r"\bigr)")


def test_an_unknown_form_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(CombDiffError, match="matrix"):
        latex(HARTREE_FOCK, form="words")


def test_a_free_variable_is_printed_by_its_name() -> None:
    assert latex(Var("θ", REAL, 10**9)) == r"\theta"


SIZED, INNER = Index(Domain("M", sized=True)), Index(Domain("B", declared=True))
RING = Index(Domain("Z", declared=True, periodic=True))
m, b, ring_index = fresh("m", SIZED), fresh("b", INNER), fresh("k", RING)
weights, ring = fresh("w", Map((SIZED,), REAL)), fresh("c", Map((RING,), REAL))
RANGES: list[tuple[Term, str]] = [
    (total((m,), ONE), "M"),
    (total((m, p), at(x, p)), r"\sum_{m<M,p} x_{p}"),
    (total((m,), at(weights, m)), r"\sum_{m} w_{m}"),
    (total((m,), at(weights, add(m, number(-1)))), r"\sum_{m<M} w_{m-1}"),
    (total((ring_index,), at(ring, add(ring_index, ONE))), r"\sum_{k} c_{k+1}"),
    (total((b,), at(x, add(b, ONE))), r"\sum_{b \in B} x_{b+1}"),
    (total((b,), at(x, b)), r"\sum_{b \in B} x_{b}"),
    (total((b,), mul(at(x, add(b, ONE)), at(fresh("w", Map((INNER,), REAL)), b))), r"\sum_{b} x_{b+1}\, w_{b}"),
]


@pytest.mark.parametrize(("term", "expected"), RANGES, ids=[text for _, text in RANGES])
def test_a_sum_says_its_range_where_no_slot_shows_it(term: Term, expected: str) -> None:
    assert latex(term) == expected


@pytest.mark.slow
def test_a_size_without_a_name_gets_one() -> None:
    mean = cd.grad("(n::R) -> (x::RM) -> mean((i, j), x(i, j)^2) * n").latex()
    assert r"\frac{2 n\, x_{i,j}}{m\, l}" in mean and r"\text{where}\ x \in \mathbb{R}^{m \times l}" in mean
    assert r"\text{where}" not in cd.grad("(x::RV{n}) -> mean(i, x(i)^2)").latex()


def test_a_map_of_several_indices_lists_them_in_their_order() -> None:
    d = cd.grad("(x::RM, y::RM) -> logsumexp((k, l), l <= k, x(k, l) * y(l, k))")
    assert r"\operatorname{softmax}_{k_{1},l_{1},\ l_{1} \le k_{1}}" in d.latex()
