"""What a row of the scalar functions says of conjugates, signs and the real line, against numbers."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.meaning.evaluate import evaluate
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.terms import Call, Term, Var, fresh
from combdiff.terms.types import COMPLEX, REAL, is_complex
from tests.emit.array_libraries import Numbers
from tests.function_points import applied, points_of

Z = fresh("z", COMPLEX)
POINTS = [0.3 + 0.4j, -0.7 + 0.2j, 0.6 - 1.1j, -0.2 - 0.5j]
BELOW_ZERO = [complex(-0.4), complex(-1.7)]
ABOVE_ZERO = [complex(0.4), complex(1.7)]
OF_COMPLEX = [name for name, row in SCALAR_FUNCTIONS.items() if not row.of_reals]


def value(name: str, z: complex) -> complex:
    return complex(evaluate(Call(name, (Z,)), {Z: z}))  # type: ignore[arg-type]  # a number


def at(t: Term, variables: tuple[Var, ...], *numbers: complex) -> complex:
    return complex(evaluate(t, dict(zip(variables, numbers, strict=True))))  # type: ignore[arg-type]  # a number


def always(name: str, points: list[complex], equal: str) -> bool:
    sides = {
        "conj": [(value(name, z.conjugate()), value(name, z).conjugate()) for z in points],
        "even": [(value(name, -z), value(name, z)) for z in points],
        "odd": [(value(name, -z), -value(name, z)) for z in points],
        "real": [(value(name, z), value(name, z).real) for z in points],
    }[equal]
    return all(np.isclose(a, b) for a, b in sides)


@pytest.mark.parametrize("name", OF_COMPLEX)
def test_a_row_says_what_is_so(name: str) -> None:
    row = SCALAR_FUNCTIONS[name]
    assert row.real_valued == always(name, POINTS, "real")
    assert row.parity == always(name, POINTS, "even") - always(name, POINTS, "odd")
    assert bool(row.cut) == (not always(name, BELOW_ZERO, "real"))
    assert (row.cut == "others") == (not always(name, ABOVE_ZERO, "real"))
    if row.commutes:
        assert always(name, [*POINTS, *BELOW_ZERO], "conj")
    else:
        # off their cuts log, sqrt and atan commute; on them they do not, and what is real by type needs no conj
        assert row.cut or row.real_valued or name in ("atan", "asinh")


@pytest.mark.parametrize("name", [name for name, row in SCALAR_FUNCTIONS.items() if row.arity == 1])
def test_a_row_says_which_sign_its_real_values_have_and_what_a_sign_of_the_argument_does(name: str) -> None:
    row = SCALAR_FUNCTIONS[name]
    t, variables = applied(name, REAL)
    if is_complex(t.type):
        return
    found = [at(t, variables, x).real for x in (*np.linspace(-4, 4, 33), 1e3, -1e3)]
    values = [x for x in found if np.isfinite(x)]
    assert (row.least < 0 or min(values) >= 0) and (row.least < 1 or min(values) > 0)
    if row.of_reals:
        opposite = [at(t, variables, -x).real for x in np.linspace(-4, 4, 33)]
        even = np.allclose(opposite, found[:33], equal_nan=True)
        odd = np.allclose(opposite, np.negative(found[:33]), equal_nan=True)
        assert row.parity == even - odd


@pytest.mark.parametrize(
    "name", [name for name, row in SCALAR_FUNCTIONS.items() if row.made_of is not None and name != "complex"]
)
@pytest.mark.parametrize("kind", [REAL, COMPLEX], ids=["real", "complex"])
def test_a_row_is_made_of_what_it_says(name: str, kind: type) -> None:
    made_of = SCALAR_FUNCTIONS[name].made_of
    assert made_of is not None
    points = points_of(name, complex_=kind == COMPLEX)
    if points:
        t, variables = applied(name, kind)  # type: ignore[arg-type]  # a number
        for numbers in points:
            expected = at(t, variables, *numbers)
            assert at(made_of(*variables), variables, *numbers) == pytest.approx(expected, rel=1e-12)


def test_the_arc_tangent_has_a_cut_on_the_imaginary_axis() -> None:
    above, below = value("atan", 2j), value("atan", complex(-0.0, 2))
    assert not np.isclose(above, below)


MATH = {
    "erf": "erf",
    "erfc": "erfc",
    "lgamma": "loggamma",
    "digamma": "digamma",
    "log1p": "log1p",
    "expm1": "expm1",
    "asin": "asin",
    "acos": "acos",
    "asinh": "asinh",
    "acosh": "acosh",
    "atanh": "atanh",
    "log10": "log10",
}


@pytest.mark.parametrize("name", MATH)
def test_a_function_has_the_value_that_mpmath_gives_it(name: str) -> None:
    mpmath = pytest.importorskip("mpmath")
    for complex_ in (False, True):
        for numbers in points_of(name, complex_):
            t, variables = applied(name, COMPLEX if complex_ else REAL)
            expected = complex(getattr(mpmath, MATH[name])(*numbers))
            # the logarithm of |Γ| of a real number
            expected = expected.real if name == "lgamma" else expected
            assert at(t, variables, *numbers) == pytest.approx(expected, rel=1e-13, abs=1e-15)


def test_the_angle_of_a_tiny_number_has_a_finite_derivative() -> None:
    import combdiff as cd

    z = 3e-200 + 1e-200j
    assert cd.grad("(z::C) -> angle(z)").compile()(z) == pytest.approx(1j / z.conjugate(), rel=1e-14)


@pytest.mark.parametrize(
    ("name", "numbers", "expected"),
    [
        ("relu", (0,), 0),
        ("round", (0.5,), 0),
        ("round", (1.5,), 2),
        ("round", (-2.5,), -2),
        ("floor", (-0.5,), -1),
        ("ceil", (-0.5,), 0),
        ("clip", (5, 2, 1), 1),
        ("max", (2, 3), 3),
        ("min", (2, 3), 2),
        ("angle", (-1,), np.pi),
        ("atan2", (0, -1), np.pi),
        ("softplus", (-1000,), 0),
        ("softplus", (1000,), 1000),
        ("sigmoid", (-40,), 4.248354255291589e-18),
    ],
)
def test_a_function_at_a_number(name: str, numbers: tuple[float, ...], expected: float) -> None:
    t, variables = applied(name, REAL)
    assert at(t, variables, *numbers) == pytest.approx(expected, rel=1e-15)


@pytest.mark.sampled
@pytest.mark.parametrize("backend", ["numpy", "jax", "torch"])
@pytest.mark.parametrize("e", ["-x(0)", "-3 * x(0)", "sum(i, -x(i))", "sum(i::N{n}, -x(0))", "x(0) * x(1)"])
def test_the_angle_of_zero_is_zero_whatever_its_sign(e: str, backend: str) -> None:
    """Arithmetic makes a zero with the sign −, whose angle would be π."""
    library = Numbers(backend)
    x = np.array([0.0, -1.0])
    x = np.zeros(2) if "sum(i, " in e else x
    f = cd.simplified(f"(x::RV{{n}}) -> angle({e})").compile(backend)
    assert library.back(f(library.to(x))) == 0
    assert evaluate(cd.simplified(f"(x::RV{{n}}) -> angle({e})").term, {})(x) == 0


def test_the_root_of_zero_is_nothing_to_divide_by() -> None:
    with pytest.raises(cd.CombDiffError, match="divides by zero"):
        cd.grad("(x::R, y::R) -> y / sqrt(x - x)")
