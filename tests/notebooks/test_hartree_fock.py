"""What notebooks/hartree_fock.ipynb claims, held against PySCF run beside it and against differences of energies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

# libraries of the kernel's client warn of changes to come; the notebook's own warnings are errors in the kernel
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.slow]

ATOMS = {
    "paths['H₂O']": "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692",
    "paths['N₂']": "N 0 0 0; N 0 0 1.098",
    "path": "N 0 0 0; N 0 0 1.6",
}
"""By what the notebook calls the iterates."""


@pytest.fixture(scope="module")
def notebook(executed: Callable[[str], Any]) -> Any:
    for library in ("pyscf", "scipy"):
        pytest.importorskip(library)
    return executed("hartree_fock")


def reference(atom: str) -> float:
    """The energy of PySCF's SCF, followed until its stability analysis is content."""
    from pyscf import gto, scf

    mf = scf.RHF(gto.M(atom=atom, basis="cc-pvdz", verbose=0))
    mf.conv_tol = 1e-12
    mf.kernel()
    for _ in range(5):
        orbitals, _, stable, _ = mf.stability(return_status=True)
        if stable:
            assert mf.converged
            return float(mf.e_tot)
        mf.kernel(mf.make_rdm1(orbitals, mf.mo_occ))
    raise AssertionError("PySCF found no stable solution")


@pytest.mark.long
def test_the_gradient_reads_4fc_and_4xfc_in_another_basis(notebook: Any) -> None:
    assert r"\mathbf{in}\ 4 F C \\" in notebook.value("d.latex(form='matrix')")
    assert r"\mathbf{in}\ 4 X F C \\" in notebook.value("on_manifold.latex(form='matrix')")


def test_the_checks_pass_and_the_code_is_printed(notebook: Any) -> None:
    assert "FAILED" not in notebook.printed() and "ok      finite differences" in notebook.printed()
    assert "def value_gradient_and_hvp(h, V, X, Y):" in notebook.printed()


@pytest.mark.slow
@pytest.mark.parametrize("iterates", ATOMS)
def test_the_energy_is_that_of_pyscf_made_stable(notebook: Any, iterates: str) -> None:
    assert abs(notebook.value(f"{iterates}[-1].energy") - reference(ATOMS[iterates])) < 1e-8


@pytest.mark.parametrize("iterates", ATOMS)
def test_the_last_point_is_a_minimum_over_orthonormal_orbitals(notebook: Any, iterates: str) -> None:
    assert notebook.value(f"{iterates}[-1].slope") < 1e-6
    assert notebook.value(f"{iterates}[-1].curvature") > -1e-6
    Y = np.array(notebook.value(f"{iterates}[-1].Y"))
    assert np.allclose(Y.T @ Y, np.eye(Y.shape[1]), atol=1e-12)


def test_saddle_points_are_met_and_left_for_lower_energies(notebook: Any) -> None:
    saddles = notebook.value("[(it.energy, it.curvature) for it in saddles]")
    assert saddles
    assert all(energy > notebook.value("path[-1].energy") + 1e-3 for energy, _ in saddles)
    assert all(curvature < -1e-2 for _, curvature in saddles)


def test_gradient_and_hessian_of_the_manifold_are_differences_of_energies_along_a_curve(notebook: Any) -> None:
    rng = np.random.default_rng(2)
    n, m = notebook.value("Y.shape")
    Z = np.linalg.qr(rng.normal(size=(n, m)))[0]
    K = rng.normal(size=(n, m))
    K = K - Z @ (Z.T @ K)
    t = 1e-3

    def energy(A: Any) -> float:
        return float(notebook.value(f"f(h, V, X, np.array({np.linalg.qr(A)[0].tolist()}))[0]"))

    here, ahead, behind = energy(Z), energy(Z + t * K), energy(Z - t * K)
    there = f"on_manifold.problem(h=h, V=V, X=X, Y=np.array({Z.tolist()}), manifold='stiefel')"
    direction = f"np.array({K.ravel().tolist()})"
    slope = notebook.value(f"(lambda p: p.jac(p.x0) @ {direction})({there})")
    curvature = notebook.value(f"(lambda p: p.hessp(p.x0, {direction}) @ {direction})({there})")
    assert (ahead - behind) / (2 * t) == pytest.approx(slope, rel=1e-3)
    assert (ahead - 2 * here + behind) / t**2 == pytest.approx(curvature, rel=1e-3)


@pytest.mark.slow
def test_it_is_stored_as_it_ran(notebook: Any) -> None:
    cells = [c for c in notebook.stored.cells if c.cell_type == "code"]
    assert [c.execution_count for c in cells] == list(range(1, len(cells) + 1))
    assert [o for c in cells for o in c.outputs if o.output_type == "error" or o.get("name") == "stderr"] == []
    formulas = [
        [o.data["text/latex"] for c in kind.cells for o in c.get("outputs", ()) if "text/latex" in o.get("data", ())]
        for kind in (notebook.stored, notebook.run)
    ]
    assert formulas[0] == formulas[1] != []
