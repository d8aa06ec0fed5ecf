"""What a row of the scalar functions says of conjugates, signs and the real line, against numbers."""

from __future__ import annotations

import numpy as np
import pytest

from combdiff.meaning.evaluate import evaluate
from combdiff.terms.scalars import SCALAR_FUNCTIONS
from combdiff.terms.terms import Call, fresh
from combdiff.terms.types import COMPLEX

Z = fresh("z", COMPLEX)
POINTS = [0.3 + 0.4j, -0.7 + 0.2j, 0.6 - 1.1j, -0.2 - 0.5j]
BELOW_ZERO = [complex(-0.4), complex(-1.7)]


def value(name: str, z: complex) -> complex:
    return complex(evaluate(Call(name, (Z,)), {Z: z}))  # type: ignore[arg-type]  # a number


def always(name: str, points: list[complex], equal: str) -> bool:
    sides = {
        "conj": [(value(name, z.conjugate()), value(name, z).conjugate()) for z in points],
        "even": [(value(name, -z), value(name, z)) for z in points],
        "odd": [(value(name, -z), -value(name, z)) for z in points],
        "real": [(value(name, z), value(name, z).real) for z in points],
    }[equal]
    return all(np.isclose(a, b) for a, b in sides)


@pytest.mark.parametrize("name", SCALAR_FUNCTIONS)
def test_a_row_says_what_is_so(name: str) -> None:
    row = SCALAR_FUNCTIONS[name]
    assert row.real_valued == always(name, POINTS, "real")
    assert row.parity == always(name, POINTS, "even") - always(name, POINTS, "odd")
    assert row.cut == (not always(name, BELOW_ZERO, "real"))
    if row.commutes:
        assert always(name, [*POINTS, *BELOW_ZERO], "conj")
    else:
        # off their cuts log, sqrt and atan commute; on them they do not, and what is real by type needs no conj
        assert row.cut or row.real_valued or name == "atan"


def test_the_arc_tangent_has_a_cut_on_the_imaginary_axis() -> None:
    above, below = value("atan", 2j), value("atan", complex(-0.0, 2))
    assert not np.isclose(above, below)
