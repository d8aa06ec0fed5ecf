"""Value, gradient and Hessian-vector products of one call: the numbers, what is computed once, what is refused."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import numpy as np
import pytest

import combdiff as cd
from combdiff.errors import ArrayError, CombDiffError, UnsupportedError
from combdiff.run.executing import compile_source

HARTREE_FOCK = """
@space T begin
  type = (N, N, N, N) -> C
  symmetries = (((2, 1, 4, 3), :conj), ((3, 4, 1, 2), :id))
end
(J::T) -> (C::CM) -> sum((i, j, p, q, r, s), C(p, i)' * C(q, i) * C(r, j)' * C(s, j) * J(p, q, r, s))
"""
TWO_UNKNOWNS = "(W::RM) -> (z::CV, θ::RV) -> sum(i, abs2(z(i)) * sin(sum(j, W(i, j) * θ(j)))) + sum(i, θ(i)^4)"
SHARED = "(A::CM) -> (x::CV) -> begin rho = i -> sum(j, A(i, j) * x(j)); sum(i, abs2(rho(i))^2) end"
LATTICE = """
@domain BZ begin base = (I, I); periodic = true end
@domain X begin base = (I, I); list = true end
@space Hop begin type = (N, X) -> C end
@space Field begin type = (N, BZ) -> C end
(H::Hop) -> (U::Field) -> sum((k::BZ, p, b::X), abs2(U(p, k) - H(p, b) * U(p, k + b))^2)
"""
NUMBER = "(a::R) -> (t::R) -> exp(a * t) + t^3"
CASES = {
    "Hartree-Fock": (HARTREE_FOCK, {"J": "T", "C": (3, 2)}, ["C"]),
    "two unknowns": (TWO_UNKNOWNS, {"W": (3, 2), "z": (3,), "θ": (2,)}, ["z", "θ"]),
    "shared": (SHARED, {"A": (4, 3), "x": (3,)}, ["x"]),
    "one entry": (SHARED, {"A": (1, 1), "x": (1,)}, ["x"]),
    "no entry": (SHARED, {"A": (2, 0), "x": (0,)}, ["x"]),
    "number": (NUMBER, {"a": (), "t": ()}, ["t"]),
}
COMPLEX = {"C", "z", "A", "x", "J"}


def entries(name: str, shape: Sequence[int], rng: np.random.Generator) -> np.ndarray:
    real = rng.normal(size=shape)
    return real + 1j * rng.normal(size=shape) if name in COMPLEX else np.asarray(real)


def coulomb(n: int, rng: np.random.Generator) -> np.ndarray:
    J = entries("J", (n, n, n, n), rng)
    J = J + J.transpose(1, 0, 3, 2).conj()
    return J + J.transpose(2, 3, 0, 1)


def arrays(case: str, rng: np.random.Generator) -> dict[str, np.ndarray]:
    shapes = CASES[case][1]
    return {n: coulomb(3, rng) if isinstance(s, str) else entries(n, s, rng) for n, s in shapes.items()}


def several(found: object) -> tuple[np.ndarray, ...]:
    return found if isinstance(found, tuple) else (np.asarray(found),)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_value_gradient_and_products_against_differences(case: str) -> None:
    """The value and gradient are those of `value=True`; products are differences of the gradient."""
    text, _, unknowns = CASES[case]
    rng = np.random.default_rng(1)
    d, at = cd.grad(text), arrays(case, rng)
    value, *gradients, hvp = d.compile(value=True, hvp=True)(**at)
    expected = d.compile(value=True)(**at)
    for a, b in zip((value, *gradients), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    alone, step = d.compile(), 1e-5
    for _ in range(2):
        ks = {n: entries(n, at[n].shape, rng) for n in unknowns}
        up, down = ({**at, **{n: at[n] + s * step * k for n, k in ks.items()}} for s in (1, -1))
        difference = [(a - b) / (2 * step) for a, b in zip(several(alone(**up)), several(alone(**down)), strict=True)]
        for a, b in zip(several(hvp(*ks.values())), difference, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6 * (1 + np.abs(b).max(initial=0)))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_products_are_those_of_the_hessian_product_alone(case: str) -> None:
    text, _, unknowns = CASES[case]
    rng = np.random.default_rng(2)
    at = arrays(case, rng)
    ks = [entries(n, at[n].shape, rng) for n in unknowns]
    hvp = cd.grad(text).compile(hvp=True)(**at)[-1]
    for a, b in zip(several(hvp(*ks)), several(cd.hvp(text).compile()(*at.values(), *ks)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_hessian_is_symmetric_over_the_real_numbers(case: str) -> None:
    text, _, unknowns = CASES[case]
    rng = np.random.default_rng(3)
    at = arrays(case, rng)
    hvp = cd.grad(text).compile(hvp=True)(**at)[-1]
    ks, ls = ([entries(n, at[n].shape, rng) for n in unknowns] for _ in "kl")
    pairs = [
        sum(np.vdot(a, b).real for a, b in zip(left, several(hvp(*right)), strict=True))
        for left, right in ((ks, ls), (ls, ks))
    ]
    np.testing.assert_allclose(pairs[0], pairs[1], rtol=1e-10, atol=1e-10)


def is_work(node: ast.AST) -> bool:
    """Whether an expression computes more than a view: a product of matrices, a function, a conjugate."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr == "conj" or (isinstance(node.func.value, ast.Name) and node.func.value.id == "np")
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult | ast.Pow)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_source_stands_alone_and_the_closure_holds_only_what_the_direction_reaches(case: str) -> None:
    text, _, unknowns = CASES[case]
    rng = np.random.default_rng(4)
    source, at = cd.grad(text).source(value=True, hvp=True), arrays(case, rng)
    assert "combdiff" not in source
    results = compile_source(source, "value_gradient_and_hvp")(*(a if a.ndim else a[()] for a in at.values()))
    assert isinstance(results, tuple) and len(results) == 2 + len(unknowns)
    (closure,) = (f for f in ast.walk(ast.parse(source)) if isinstance(f, ast.FunctionDef) and f.name == "hvp")
    reached = {a.arg for a in closure.args.args}
    for line in closure.body[1:]:
        names = {n.id for n in ast.walk(line) if isinstance(n, ast.Name)}
        assert names & reached, ast.unparse(line)
        for node in filter(is_work, ast.walk(line)):
            assert {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} & reached, ast.unparse(node)
        reached |= {t.id for t in getattr(line, "targets", ()) if isinstance(t, ast.Name)}


@pytest.mark.slow
def test_the_products_keep_to_what_the_gradient_was_derived_with() -> None:
    """`expand`, and the budget: what is found on the way to code is that of cd.hvp with the same options."""
    assert str(cd.grad(SHARED, expand=True).products) == str(cd.hvp(SHARED, expand=True)) != str(cd.hvp(SHARED))
    rng = np.random.default_rng(7)
    at, k = arrays("shared", rng), entries("x", (3,), rng)
    wanted = cd.hvp(SHARED).compile()(at["A"], at["x"], k)
    for options in ({"expand": True}, {"seconds": 1e-9}, {"nodes": 1}):
        d = cd.grad(SHARED, **options)
        np.testing.assert_allclose(d.compile(hvp=True)(**at)[-1](k), wanted, rtol=1e-10)
        assert "seconds" not in options or all(any(s.spent for s in e.steps) for e in (d.products, d.gradient))
        assert "nodes" not in options or any(s.spent for s in d.products.steps)


@pytest.mark.slow
def test_what_no_direction_reaches_is_computed_once() -> None:
    """J · P is contracted at the point, and the products contract J once, with what holds k only."""
    source = cd.grad(HARTREE_FOCK).source(hvp=True)
    point, closure = source.split("def hvp(k):")
    assert point.count("J.reshape") == 1 and closure.count("J.reshape") == 1
    assert " C.conj()" in point and " C.conj()" not in closure


def test_one_gradient_and_products_without_the_value() -> None:
    gradient, hvp = cd.grad("(x::RV) -> sum(i, x(i)^3)").compile(hvp=True)(np.array([1.0, 2.0]))
    np.testing.assert_array_equal(gradient, [3, 12])
    np.testing.assert_array_equal(hvp([1, 1]), [6, 12])


def test_a_result_that_is_changed_does_not_change_the_products() -> None:
    """The gradient of sum exp(x) is also what the products multiply by."""
    gradient, hvp = cd.grad("(x::RV) -> sum(i, exp(x(i)))").compile(hvp=True)(np.zeros(2))
    gradient[:] = 7
    product = hvp(np.ones(2))
    product[:] = 5
    np.testing.assert_array_equal(hvp(np.ones(2)), [1, 1])


@pytest.mark.parametrize(
    ("text", "expected"),
    [("(a::RV) -> (x::RV) -> sum(i, a(i) * x(i))", 0), ("(x::RV) -> sum(i, x(i)^2) / 2", 1)],
    ids=["linear", "the identity"],
)
def test_a_hessian_without_the_point(text: str, expected: float) -> None:
    d = cd.grad(text)
    given = [np.ones(3)] * text.count("RV")
    hvp = d.compile(hvp=True)(*given)[-1]
    k = np.array([2.0, 0.0, 1.0])
    found = hvp(k)
    np.testing.assert_array_equal(found, expected * k)
    found[:] = 9
    np.testing.assert_array_equal(hvp(k), expected * np.array([2.0, 0.0, 1.0]))


def test_out_is_filled() -> None:
    f = cd.grad("(x::RV) -> sum(i, x(i)^3)").compile(hvp=True)
    gradient, product = np.empty(2), np.empty(2)
    found, hvp = f(np.array([1.0, 2.0]), out=gradient)
    assert found is gradient and hvp(np.ones(2), out=product) is product
    np.testing.assert_array_equal((gradient, product), ([3, 12], [6, 12]))
    with pytest.raises(ArrayError, match=r"but the result has \(2,\)"):
        hvp(np.ones(2), out=np.empty(3))
    with pytest.raises(ArrayError, match="out holds int64"):
        f(np.ones(2), out=np.empty(2, dtype=np.int64))


def test_unknown_functions_need_their_second_derivatives() -> None:
    d = cd.grad("(g::RF) -> (x::RV) -> sum(i, g(x(i)))")
    f, x = d.compile(hvp=True), np.array([0.5, 1.0])
    gradient, hvp = f(x=x, g=np.sin, grad_g=np.cos, grad_grad_g=lambda x: -np.sin(x))
    np.testing.assert_allclose(gradient, np.cos(x))
    np.testing.assert_allclose(hvp(np.array([1.0, 2.0])), -np.sin(x) * [1, 2])
    with pytest.raises(ArrayError, match="is not given grad_grad_g") as caught:
        f(x=x, g=np.sin, grad_g=np.cos)
    assert "the derivative of grad_g" in caught.value.remedy


def test_arrays_that_were_checked_are_not_checked_again_and_others_are() -> None:
    """The same function for other entries, shapes and dtypes; a wrong array after a right one is still an error."""
    f = cd.grad("(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))").compile()
    rng = np.random.default_rng(7)
    for n in (2, 3, 2):
        A = entries("A", (n, n), rng)
        A = A + A.conj().T
        for x in (entries("x", (n,), rng), rng.normal(size=n), np.ones(n, dtype=int), [1.0] * n):
            for _ in range(2):
                np.testing.assert_allclose(f(A, x), 2 * A @ x)
                np.testing.assert_allclose(f(x=x, A=A), 2 * A @ x)
    with pytest.raises(ArrayError, match="declared symmetry"):
        f(np.array([[0, 1], [2, 0]], dtype=complex), np.ones(2, dtype=complex))
    with pytest.raises(ArrayError, match="sizes disagree"):
        f(np.eye(2, dtype=complex), np.ones(3, dtype=complex))
    with pytest.raises(ArrayError, match="no argument called y"):
        f(np.eye(2, dtype=complex), y=np.ones(2, dtype=complex))


@pytest.mark.slow
def test_equations_are_solved_once() -> None:
    """y^3 + y = a: y' = 1/(3y² + 1), y'' = −6 y y'^3; Newton's method runs outside of the closure."""
    d = cd.grad("(a::R) -> begin y = root((x::R) -> x^3 + x - a); y end")
    gradient, hvp = d.compile(hvp=True)(10.0)
    np.testing.assert_allclose((gradient, hvp(2.0)), (1 / 13, -2 * 6 * 2 / 13**3))
    assert "newton(" not in d.source(hvp=True).split("def hvp")[1]


@pytest.mark.slow
def test_a_lattice_of_two_directions() -> None:
    rng = np.random.default_rng(6)
    d, steps = cd.grad(LATTICE), np.array([[1, 0], [-1, 2]])
    H, U, k = (entries("C", shape, rng) for shape in ((2, 2), (2, 3, 4), (2, 3, 4)))
    gradient, hvp = d.compile(hvp=True)(H, U, X=steps)
    alone = d.compile()
    difference = (alone(H, U + 1e-5 * k, X=steps) - alone(H, U - 1e-5 * k, X=steps)) / 2e-5
    np.testing.assert_allclose(gradient, alone(H, U, X=steps))
    np.testing.assert_allclose(hvp(k), difference, rtol=1e-6, atol=1e-6)
    with pytest.raises(ArrayError, match="sizes disagree: direction 2 of slot 2 of v has 3"):
        hvp(k[:, :, :3])
    p = d.problem(H=H, U=U, X=steps)
    np.testing.assert_allclose(p.hessp(p.x0, p.pack(k)), p.pack(difference), rtol=1e-5, atol=1e-5)


def test_a_name_that_is_taken() -> None:
    """An array called hvp, and a direction that would be called as the argument is."""
    value, gradient, products = cd.grad("(hvp::RV) -> (k::RV) -> sum(i, hvp(i) * k(i)^2)").compile(
        value=True, hvp=True
    )(np.array([1.0, 2.0]), np.array([3.0, 1.0]))
    assert value == 11
    np.testing.assert_array_equal(gradient, [6, 4])
    np.testing.assert_array_equal(products(np.ones(2)), [2, 4])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("directions", "message"),
    [
        ((np.ones(3),), "takes a direction for each unknown"),
        ((np.ones(2), np.ones(2)), "sizes disagree"),
        ((np.ones((3, 1)), np.ones(2)), "has 1 index, but the array has 2 axes"),
        ((np.ones(3), 1j * np.ones(2)), "is declared real, but the array is complex"),
        ((np.array(["a", "b", "c"]), np.ones(2)), "must contain numbers"),
    ],
)
def test_a_wrong_direction_is_an_error(directions: tuple[np.ndarray, ...], message: str) -> None:
    hvp = cd.grad(TWO_UNKNOWNS).compile(hvp=True)(np.ones((3, 2)), np.ones(3), np.ones(2))[-1]
    with pytest.raises(ArrayError, match=message) as caught:
        hvp(*directions)
    assert caught.value.remedy


@pytest.mark.parametrize("make", [cd.pullback, cd.hvp])
def test_products_stand_next_to_a_gradient_only(make: object) -> None:
    assert callable(make)
    d = make("(x::RV) -> sum(i, x(i)^3)")
    for use in (d.source, d.compile):
        with pytest.raises(UnsupportedError, match="needs a derivation of cd") as caught:
            use(hvp=True)
        assert "cd.grad" in caught.value.remedy


def test_a_map_that_is_no_number_has_no_products() -> None:
    with pytest.raises(CombDiffError, match="pullback"):
        cd.grad("(A::RM) -> (x::RV) -> i -> sum(j, A(i, j) * x(j))").compile(hvp=True)
