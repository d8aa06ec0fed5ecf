"""What notebooks/functionals.ipynb claims: descents find the cycloid and the catenary, potentials are slopes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

# the client of the kernel warns of its own changes to come; in the kernel, the warnings of the notebook are errors
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.slow]


@pytest.fixture(scope="module")
def functionals(executed: Callable[[str], Any]) -> Any:
    pytest.importorskip("scipy")
    return executed("functionals")


def test_the_descent_ends_at_the_cycloid(functionals: Any) -> None:
    r, c, first, last = functionals.value("[float(e) for e in (r, c, first, last)]")
    angle = np.linspace(first, last, 50)
    x, y = r * (angle - np.sin(angle)) - c, r * (1 - np.cos(angle))
    np.testing.assert_allclose([x[0], y[0], x[-1], y[-1]], [0, 0.1, 1, 0.6], atol=1e-10)
    found = functionals.value(f"curves[-1](np.array({x.tolist()}))")
    np.testing.assert_allclose(found, y, atol=5e-6)


def test_no_step_of_the_descent_takes_longer(functionals: Any) -> None:
    times = np.array(functionals.value("[float(t) for t in times]"))
    assert (np.diff(times) < 1e-12).all()
    assert abs(times[-1] - functionals.value("float(shortest)")) < 1e-9


def test_the_soap_film_is_a_catenary_and_stable(functionals: Any) -> None:
    a = functionals.value("float(a)")
    assert a * np.cosh(0.5 / a) == pytest.approx(1)
    x = np.linspace(0, 1, 30)
    found = functionals.value("films[-1](np.linspace(0, 1, 30))")
    np.testing.assert_allclose(found, a * np.cosh((x - 0.5) / a), atol=1e-12)
    e = 1e-3
    f = "cd.simplified(LINE + '(y::(Line) -> R) -> 2 * pi * sum(x::Line, y(x) * sqrt(1 + grad(y)(x)^2))').compile()"
    low, mid, high = (functionals.value(f"float({f}(Line=RULE, y=films[-1] + {k * e} * bump))") for k in (-1, 0, 1))
    assert functionals.value("float(curvature)") == pytest.approx((low - 2 * mid + high) / e**2, rel=1e-4)


def test_the_equations_print_as_in_a_textbook(functionals: Any) -> None:
    assert functionals.value("action.latex()").endswith(r"-V'(r(t)) - m\, r''(t)")
    assert r"u^{(4)}(x) - q(x), (u'''(0), -u''(0))" in functionals.value("plate.latex()")


def test_the_potential_is_the_slope_of_the_energy(functionals: Any) -> None:
    assert functionals.value("float(along)") == pytest.approx(functionals.value("float(change)"), rel=1e-7)


def test_the_energy_of_water_is_that_of_pyscf(functionals: Any) -> None:
    pytest.importorskip("pyscf")
    assert functionals.value("bool(mine.converged and theirs.converged)")
    assert functionals.value("float(mine.e_tot)") == pytest.approx(functionals.value("float(theirs.e_tot)"), abs=1e-9)
    assert functionals.value("float(exchange_correlation)") < -1e-3
    assert functionals.value("float(element)") == pytest.approx(functionals.value("float(expected)"), abs=1e-7)
