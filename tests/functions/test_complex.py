"""Complex functions under d/dx: dψ/dt is complex, and the derivative by ψ comes from integration by parts."""

import numpy as np
import pytest

import combdiff as cd
from combdiff.errors import LanguageError
from tests.reading_back import assert_reads_back

TIME = """@domain Time begin base = R; lower = 0; upper = 1 end
@space Psi begin type = (Time) -> C; fixed = true end
@space Free begin type = (Time) -> C end
"""
PROGRAMS = {
    "Schrödinger, in space": "(V::RF) -> (psi::Psi) -> sum(t::Time, abs2(grad(psi)(t)) / 2 + V(t) * abs2(psi(t)))",
    "Schrödinger, in time": "(E::R) -> (psi::Psi) -> "
    "sum(t::Time, real(im * psi(t)' * grad(psi)(t)) - E * abs2(psi(t)))",
    "free ends": "(psi::Free) -> sum(t::Time, abs2(grad(psi)(t))^2 + real(psi(t)^3))",
    "a second derivative": "(phi::Free) -> (psi::Free) -> sum(t::Time, abs2(grad(grad(psi))(t) * phi(t)))",
    "beside a real function": "(y::(Time) -> R, psi::Free) -> sum(t::Time, real(grad(psi)(t) * psi(t)) * grad(y)(t))",
    "a value at an end": "(psi::Free) -> sum(t::Time, abs2(grad(psi)(t))) + real(psi(1)^2)",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("mode", ["grad", "hvp", "jvp"])
def test_derivatives_agree_with_differences(name: str, mode: str) -> None:
    d = getattr(cd, mode)(TIME + PROGRAMS[name])
    assert d.check(), d.check()
    assert_reads_back(d.term, values=False)


def test_the_equations_of_schroedinger() -> None:
    found = {name: str(cd.grad(TIME + text)).splitlines()[-1] for name, text in PROGRAMS.items()}
    space, time = found["Schrödinger, in space"], found["Schrödinger, in time"]
    assert space == "(V::RF) -> (psi::Psi) -> (t::Time) -> 2 * V(t) * psi(t) - grad(grad(psi))(t)"
    assert time == "(E::R) -> (psi::Psi) -> (t::Time) -> 2 * im * grad(psi)(t) - 2 * E * psi(t)"
    d = cd.grad("(V::RF) -> (psi::CF) -> sum(x::R, abs2(grad(psi)(x)) / 2 + V(x) * abs2(psi(x)))")
    assert d.latex() == r"V \mapsto \psi \mapsto x \mapsto 2 V(x) \psi(x) - \psi''(x)"


def test_code_takes_complex_functions_with_their_derivatives() -> None:
    f = cd.grad(TIME + PROGRAMS["Schrödinger, in space"]).compile()
    rule = cd.quadrature.gauss(8)
    x = rule.on(cd.quadrature.Interval("Time", 0, 1))[0]
    wave = [lambda t, n=n: (2j) ** n * np.exp(2j * t) for n in range(3)]
    found = f(Time=rule, V=np.cos, psi=tuple(wave))
    assert np.allclose(found, 2 * np.cos(x) * np.exp(2j * x) + 4 * np.exp(2j * x), rtol=1e-14)


def test_a_known_complex_function_has_the_derivative_along_its_argument() -> None:
    text = "(a::R) -> begin g = (t::R) -> exp(im * t); abs2(grad(grad(g))(a) + a) end"
    d = cd.simplified(text)
    assert d.compile()(a=0.3) == pytest.approx(abs(-np.exp(0.3j) + 0.3) ** 2, rel=1e-14)
    assert d.check()
    # where it is the result, the gradient is that of the real part
    assert str(cd.grad("(a::R) -> exp(im * a)")) == str(cd.grad("(a::R) -> real(exp(im * a))"))


def test_a_tangent_of_an_unknown_complex_function_is_its_derivative() -> None:
    assert str(cd.jvp("(f::CF) -> (a::R) -> f(a)^2")) == "(f::CF) -> (a::R, k::R) -> 2 * k * f(a) * grad(f)(a)"


SPACES = """@space H begin type = (CV) -> CV; linear = true; adjoint = :self end
@space F begin type = (CF) -> CF; linear = true; adjoint = :self end
@space D begin type = (RF) -> RF; linear = true; adjoint = :neg end
@space A begin type = (RM) -> RM; linear = true; adjoint = :neg end
"""
OPERATORS = {
    "(H::F) -> (psi::CF) -> sum(x::R, real(psi(x)' * H(psi)(x)))": "(x::R) -> 2 * H(psi)(x)",
    "(H::H) -> (psi::CV) -> sum(i, real(psi(i)' * H(psi)(i)))": "i -> 2 * H(psi)(i)",
    "(H::H) -> (psi::CV, phi::CV) -> real(sum(i, adjoint(H)(phi)(i) * psi(i)'))": "(i -> H(phi)(i), i -> H(psi)(i))",
    "(A::A) -> (X::RM) -> sum((i, j), A(X)(i, j)^2 + X(i, j) * A(X)(i, j))": "(i, j) -> -2 * A(A(X))(i, j)",
    "(V::RF, m::R, D::D) -> (r::RF) -> sum(t::R, m * D(r)(t)^2 / 2 - V(r(t)))": "(t::R) -> "
    "-D((t1::R) -> m * D(r)(t1))(t) - grad(V)(r(t))",
}


@pytest.mark.parametrize("program", OPERATORS)
def test_the_adjoint_of_a_declared_operator(program: str) -> None:
    d = cd.grad(SPACES + program)
    assert str(d).endswith("-> " + OPERATORS[program])
    assert "adjoint(" not in str(d)
    assert_reads_back(d.term, values=False)


@pytest.mark.slow
@pytest.mark.parametrize("program", [p for p in OPERATORS if "::CF" not in p and "::RF" not in p])
def test_operators_agree_with_differences(program: str) -> None:
    assert cd.grad(SPACES + program).check()
    assert cd.hvp(SPACES + program).check()


def test_an_inverse_has_the_adjoint_of_its_map() -> None:
    d = cd.grad(SPACES + "(H::H) -> (b::CV) -> sum(i, abs2(inverse(H)(b)(i)))")
    assert "adjoint(" not in str(d)
    assert d.check()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("type = (CV) -> RV; linear = true; adjoint = :self", "another type than its argument"),
        ("type = (CV) -> CV; adjoint = :self", "is not linear"),
        ("type = (CV) -> CV; linear = true; adjoint = :conj", "expected :self or :neg"),
        ("type = (CV) -> CV; linear = true; adjoint = true", "expected :self or :neg"),
    ],
)
def test_a_wrong_adjoint_is_refused(settings: str, message: str) -> None:
    with pytest.raises(LanguageError, match=message):
        cd.grad(f"@space H begin {settings} end\n(H::H) -> (x::CV) -> real(sum(i, H(x)(i)))")
