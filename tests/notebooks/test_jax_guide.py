"""What notebooks/jax_guide.ipynb claims: the numbers are those of JAX, and those that the guide prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

# the client of the kernel warns of its own changes to come; in the kernel, the warnings of the notebook are errors
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.slow]


@pytest.fixture(scope="module")
def guide(executed: Callable[[str], Any]) -> Any:
    pytest.importorskip("scipy")
    return executed("jax_guide")


def test_every_number_is_that_of_jax_to_twelve_digits(guide: Any) -> None:
    differences = guide.value("list(compared.values())")
    assert len(differences) == 28 == guide.value("len(STORED)")
    assert max(differences) < 1e-12


def test_the_stored_numbers_are_those_that_jax_computes(guide: Any) -> None:
    pytest.importorskip("jax")
    checks = {
        "jvp": "jax.jvp(f, (W,), (v,))[1]",
        "vjp": "jax.vjp(f, W)[1](u)[0]",
        "the whole Hessian": "jnp.tensordot(jax.hessian(g)(X), V, 2)",
        "matrix–Jacobian product": "jax.vmap(jax.vjp(f, W)[1])(U)[0]",
        "jacfwd": "jax.jacfwd(f)(W)",
        "Cholesky": "jax.grad(of_factor, holomorphic=True)(jnp.array(A))",
    }
    for name, computed in checks.items():
        stored, found = guide.value(f"list(STORED[{name!r}])"), guide.value(f"digest(np.asarray({computed}))")
        np.testing.assert_allclose(found, stored, rtol=1e-12)


def test_the_complex_numbers_are_those_that_the_guide_prints(guide: Any) -> None:
    assert guide.value("complex(modulus.compile()(z))") == 6 + 8j
    assert np.isclose(guide.value("complex(sine.compile()(z))"), -27.034946 - 3.8511534j, rtol=1e-7)
    assert guide.value("[complex(each) for each in conjugate.compile()(z)]") == [0, 1]
    printed = [
        [-0.7534182, -3.0509028 - 10.940544j, 5.9896846 + 3.542303j],
        [-3.0509028 + 10.940544j, -8.904491, -5.1351523 - 6.559373j],
        [5.9896846 - 3.542303j, -5.1351523 + 6.559373j, 0.01320427],
    ]
    np.testing.assert_allclose(guide.value("cholesky.compile()(A).conj()"), printed, atol=1e-5)


def test_the_four_products_with_a_hessian_are_one_formula(guide: Any) -> None:
    assert guide.value("len(ways)") == 4 and guide.value("len(bodies)") == 1


def test_the_gradient_of_a_factor_is_a_difference(guide: Any) -> None:
    A = np.array(guide.value("A"))
    G = np.array(guide.value("cholesky.compile()(A)"))
    rng = np.random.default_rng(5)
    K = rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3))
    K, h = K + K.conj().T, 1e-5

    def value(X: Any) -> float:
        L = np.linalg.cholesky(X)
        return float(((L - np.sin(L)) ** 2).sum().real)

    assert (value(A + h * K) - value(A - h * K)) / (2 * h) == pytest.approx(np.vdot(G, K).real, rel=1e-7)


@pytest.mark.parametrize("name", ["forward", "reverse", "rows", "columns", "jacobian", "branches", "pair", "scaled"])
def test_the_formulas_agree_with_finite_differences(guide: Any, name: str) -> None:
    assert guide.value(f"bool({name}.check())")


def test_the_rules_of_ones_own_are_finite_where_the_code_is_not(guide: Any) -> None:
    assert guide.value("float(softplus.compile()(100.0))") == 1.0
    # 2 log(x) / (1 - x) times Spence's function
    found = guide.value("float(squares.compile()(np.array([0.5]))[0])")
    assert np.isclose(found, 4 * np.log(0.5) * 0.5822405264650125, rtol=1e-12)


def test_the_stored_formulas_are_those_of_this_run(guide: Any) -> None:
    def formulas(notebook: Any) -> list[str]:
        outputs = (o for cell in notebook.cells for o in cell.get("outputs", ()))
        return ["".join(o["data"]["text/latex"]) for o in outputs if "text/latex" in o.get("data", {})]

    assert len(formulas(guide.run)) > 15
    assert formulas(guide.stored) == formulas(guide.run)
