"""Table 1 and the scalar functions at complex points with complex cotangents, and their compositions (Eq. 38–46)."""

from __future__ import annotations

from functools import cache, reduce

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import combdiff as cd
from combdiff.terms.types import REAL

from . import oracle

gradient, pullback = cache(cd.grad), cache(cd.pullback)

# points of all four quadrants, away from the branch cuts
POINTS = (0.7 + 0.4j, -0.6 + 0.9j, -0.8 - 0.3j, 0.5 - 1.1j)
COTANGENTS = (1.0, 1j, 0.3 - 1.7j)
A = 0.6 - 0.8j

# text: (the function, its pullback by hand)
HOLOMORPHIC = {
    "z^2": (lambda z: z**2, lambda z, k: np.conj(2 * z) * k),
    "z^3": (lambda z: z**3, lambda z, k: np.conj(3 * z**2) * k),
    "exp(z)": (np.exp, lambda z, k: np.conj(np.exp(z)) * k),
    "1/z": (lambda z: 1 / z, lambda z, k: np.conj(-1 / z**2) * k),
    "sqrt(z)": (np.sqrt, lambda z, k: np.conj(0.5 / np.sqrt(z)) * k),
    "log(z)": (np.log, lambda z, k: np.conj(1 / z) * k),
    "z^a": (lambda z: z**A, lambda z, k: np.conj(A * z ** (A - 1)) * k),
    "a^z": (lambda z: A**z, lambda z, k: np.conj(A**z * np.log(A)) * k),
    "z^z": (lambda z: z**z, lambda z, k: np.conj(z**z * (np.log(z) + 1)) * k),
    "atan(z)": (np.arctan, lambda z, k: np.conj(1 / (1 + z**2)) * k),
    "sin(z)": (np.sin, lambda z, k: np.conj(np.cos(z)) * k),
    "cos(z)": (np.cos, lambda z, k: np.conj(-np.sin(z)) * k),
    "tan(z)": (np.tan, lambda z, k: np.conj(1 / np.cos(z) ** 2) * k),
    "sinh(z)": (np.sinh, lambda z, k: np.conj(np.cosh(z)) * k),
    "cosh(z)": (np.cosh, lambda z, k: np.conj(np.sinh(z)) * k),
    "tanh(z)": (np.tanh, lambda z, k: np.conj(1 / np.cosh(z) ** 2) * k),
}
OTHER_COMPLEX = {
    "z'": (np.conj, lambda z, k: np.conj(k)),
    "conj(z)": (np.conj, lambda z, k: np.conj(k)),
    "z' * z": (lambda z: np.conj(z) * z, lambda z, k: 2 * z * np.real(k)),
    "exp(z')": (lambda z: np.exp(np.conj(z)), lambda z, k: np.exp(np.conj(z)) * np.conj(k)),
}
REAL_VALUED = {
    "real(z)": (np.real, lambda z, k: k + 0j),
    "imag(z)": (np.imag, lambda z, k: 1j * k),
    "abs(z)": (np.abs, lambda z, k: z / abs(z) * k),
    "abs2(z)": (lambda z: np.abs(z) ** 2, lambda z, k: 2 * z * k),
}
ROWS = {**HOLOMORPHIC, **OTHER_COMPLEX, **REAL_VALUED}
TEXTS = {
    "z' * z": "(z::C, k::C) -> z * (k' + k)",
    "z^2": "(z::C, k::C) -> 2 * z' * k",
    "exp(z)": "(z::C, k::C) -> k * exp(z')",
    "1/z": "(z::C, k::C) -> -k / z'^2",
    "z'": "(z::C, k::C) -> k'",
    "real(z)": "(z::C, k::R) -> k",
    "imag(z)": "(z::C, k::R) -> im * k",
    "abs2(z)": "(z::C, k::R) -> 2 * z * k",
    "sqrt(z)": "(z::C, k::C) -> 1/2 * k / sqrt(z)'",
    "log(z)": "(z::C, k::C) -> k / z'",
    "atan(z)": "(z::C, k::C) -> k / (1 + z'^2)",
}
GRADIENTS = {
    "z' * z": "2 * z",
    "abs2(z)": "2 * z",
    "z^2": "2 * z'",
    "exp(z)": "exp(z')",
    "1/z": "-1 / z'^2",
    "real(z)": "1",
    "imag(z)": "im",
    "log(z)": "1 / z'",
    "z'": "1",
}


def program(text):
    takes_a = text in ("z^a", "a^z")
    return f"(a::C) -> (z::C) -> {text}" if takes_a else f"(z::C) -> {text}"


def arguments(text, *values):
    return (A, *values) if text in ("z^a", "a^z") else values


def differences(f, z, k):
    """𝒱⁻¹(𝒥(𝒲 f)(𝒱 z)ᵀ 𝒱 k), the right side of Eq. 44, from differences of f along both axes."""

    def part(unit):
        return oracle.slope(lambda h: np.real(np.conj(k) * f(z + h * unit)), 1e-3)

    return part(1) + 1j * part(1j)


@pytest.mark.parametrize("text", TEXTS)
def test_the_pullback_of_a_row_of_the_table_as_text(text):
    assert str(pullback(program(text))) == TEXTS[text]


@pytest.mark.parametrize("text", GRADIENTS)
def test_the_gradient_of_a_row_of_the_table_as_text(text):
    assert str(gradient(program(text))) == f"(z::C) -> {GRADIENTS[text]}"


@pytest.mark.parametrize("text", ROWS)
def test_eq_44_holds_for_a_row_of_the_table_at_complex_points_and_cotangents(text):
    f, by_hand = ROWS[text]
    code = pullback(program(text)).compile()
    for z in POINTS:
        for k in COTANGENTS[:1] if text in REAL_VALUED else COTANGENTS:
            found = code(*arguments(text, z, k))
            oracle.close(found, by_hand(z, k), 1e-12)
            oracle.close(found, differences(f, z, k), 1e-8)


@pytest.mark.parametrize("text", ROWS)
def test_eq_43_the_gradient_of_a_row_is_that_of_its_real_part(text):
    f, _ = ROWS[text]
    code = gradient(program(text)).compile()
    for z in POINTS:
        oracle.close(code(*arguments(text, z)), differences(f, z, 1.0), 1e-8)


@pytest.mark.parametrize("text", ROWS)
def test_the_meaning_of_a_row_is_what_its_code_computes(text):
    for seed in oracle.SEEDS:
        t = oracle.trial(pullback(program(text)), seed)
        oracle.close(t.result(), t.run())


@pytest.mark.parametrize("text", HOLOMORPHIC)
def test_a_holomorphic_row_is_the_conjugate_derivative_of_sympy(text):
    sympy = pytest.importorskip("sympy")
    z, a = sympy.symbols("z a")
    slope = sympy.diff(sympy.sympify(text.replace("^", "**"), locals={"z": z, "a": a}), z)
    code = pullback(program(text)).compile()
    for at in POINTS:
        expected = complex(slope.subs({z: sympy.sympify(at), a: sympy.sympify(A)}).evalf())
        oracle.close(code(*arguments(text, at, 0.3 - 1.7j)), np.conj(expected) * (0.3 - 1.7j), 1e-12)


CHAIN = {
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "sinh": np.sinh,
    "tanh": np.tanh,
    "atan": np.arctan,
    "sqrt": np.sqrt,
    "conj": np.conj,
    "abs": np.abs,
    "abs2": lambda z: np.abs(z) ** 2,
    "real": np.real,
    "imag": np.imag,
}


def in_general_position(names, z):
    """Whether no function of the chain is near a branch cut, a pole or a huge value at z."""
    for name in names:
        on_cut = name in ("log", "sqrt") and np.real(z) < 0.1 and abs(np.imag(z)) < 0.1
        pole = name == "atan" and abs(1 + z * z) < 0.3
        if on_cut or pole or abs(z) < 0.05 or abs(z) > 3 or (np.isreal(z) and name in ("log", "sqrt") and z.real <= 0):
            return False
        if name == "atan" and abs(np.real(z)) < 0.1 and abs(np.imag(z)) > 0.9:
            return False
        z = CHAIN[name](z)
    return bool(np.isfinite(z)) and abs(z) < 10


@pytest.mark.slow
@settings(max_examples=80)
@given(
    names=st.lists(st.sampled_from(sorted(CHAIN)), min_size=2, max_size=3),
    z=st.sampled_from(POINTS),
    k=st.sampled_from(COTANGENTS),
)
def test_eq_44_holds_for_compositions(names, z, k):
    assume(in_general_position(names, z))
    d = pullback("(z::C) -> " + reduce(lambda inner, name: f"{name}({inner})", names, "z"))
    k = k if d.objective.body.type != REAL else float(np.real(k))

    def f(at):
        return reduce(lambda value, name: CHAIN[name](value), names, at)

    oracle.close(d.compile()(z, k), differences(f, z, k), 1e-6)


@pytest.mark.slow
@settings(max_examples=40)
@given(
    left=st.sampled_from(sorted(CHAIN)),
    right=st.sampled_from(sorted(CHAIN)),
    joined=st.sampled_from(["+", "-", "*", "/"]),
    z=st.sampled_from(POINTS),
)
def test_eq_43_holds_for_sums_products_and_quotients(left, right, joined, z):
    assume(abs(CHAIN[right](z)) > 0.1)
    d = gradient(f"(z::C) -> {left}(z) {joined} {right}(z)")

    def f(at):
        u, v = CHAIN[left](at), CHAIN[right](at)
        return {"+": u + v, "-": u - v, "*": u * v}.get(joined, u / v)

    oracle.close(d.compile()(z), differences(f, z, 1.0), 1e-7)


@pytest.mark.parametrize("name", sorted(CHAIN))
@pytest.mark.parametrize("size", [0, 1, 3])
def test_a_scalar_function_of_every_entry_of_a_vector(name, size):
    t = oracle.trial(gradient(f"(x::CV) -> sum(i, {name}(x(i)))"), 1, x=(size,))
    oracle.close(t.result(), np.array([differences(CHAIN[name], z, 1.0) for z in t["x"]], complex), 1e-6)
    oracle.close(t.run(), t.result())


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["exp", "sin", "tanh", "abs2", "real", "imag", "abs"])
def test_the_gradient_is_the_conjugate_of_what_jax_returns(name):
    jnp = pytest.importorskip("jax.numpy")
    functions = {"abs2": lambda z: jnp.real(z * jnp.conj(z))}
    f = functions.get(name, getattr(jnp, name, None))
    d = gradient(f"(z::C) -> real({name}(z))")
    for z in POINTS[:2]:
        oracle.close(d.compile()(z), oracle.jax_gradient(lambda at: jnp.real(f(at)), z), 1e-9)


# --- a complex intermediate of a real variable ----------------------------------------------------------------------

PHASE = "(c::C) -> grad((t::R) -> abs2(exp(im*t) + c))"


def test_the_gradient_by_a_real_variable_behind_complex_numbers_is_real():
    d = gradient(PHASE)
    (body,) = oracle.outputs(d)
    assert body.type == REAL
    assert str(d).startswith("(c::C) -> (t::R) -> ")
    assert np.isrealobj(d.compile()(0.3 - 0.2j, 0.7))


def test_the_gradient_by_a_real_variable_in_latex():
    assert r"\operatorname{Im}" in gradient(PHASE).latex()
    assert r"\operatorname{Im}" in gradient(PHASE).latex(form="matrix")


@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_gradient_by_a_real_variable_equals_differences(seed):
    t = oracle.trial(gradient(PHASE), seed)
    c, at = t["c"], t["t"]
    oracle.close(t.result(), 2 * np.real(np.conj(np.exp(1j * at) + c) * 1j * np.exp(1j * at)))
    oracle.close(t.run(), t.result())
    oracle.close(t.run(), oracle.slope(lambda h: np.abs(np.exp(1j * (at + h)) + c) ** 2), 1e-9)
    oracle.agrees_with_differences(t)


@pytest.mark.sampled
@pytest.mark.parametrize("text", ["(z::C) -> abs2(z)^2", "(z::C) -> (z' * z)^2", "(z::C) -> abs2(exp(z) + z')"])
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_second_derivatives_of_real_functions_of_a_complex_number(seed, text):
    t = oracle.trial(cd.hvp(text), seed)
    oracle.close(t.run(), t.result())
    oracle.agrees_with_second_differences(t, 1e-6)
