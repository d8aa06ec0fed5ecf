"""notebooks/hartree_fock.ipynb reaches the energies of PySCF's own SCF, and leaves the saddle points on the way."""

from __future__ import annotations

import pytest

from .kernel import executed

ALONG_A_CURVE = """
def energy_of(Z):
    return f(h, V, X, np.linalg.qr(Z)[0])[0]


n, m = Y.shape
Z = np.linalg.qr(np.random.default_rng(2).normal(size=(n, m)))[0]
K = np.random.default_rng(3).normal(size=(n, m))
K = K - Z @ (Z.T @ K)
E, g, hess = at(lambda Y: f(h, V, X, Y), Z)
t = 1e-3
ahead, behind = energy_of(Z + t * K), energy_of(Z - t * K)
slope, curvature = (ahead - behind) / (2 * t), (ahead - 2 * E + behind) / t**2
"""

CLAIMS = {
    "slope": "[slope, np.vdot(g, K)]",
    "curvature": "[curvature, np.vdot(K, hess(K))]",
    "formula": "cd.grad(energy).latex(form='matrix')",
    "basis_formula": "d.latex(form='matrix')",
    "energies": "{name: path[-1].energy for name, path in paths.items()}",
    "stretched": "path[-1].energy",
    "saddles": "[(it.energy, it.curvature) for it in saddles]",
    "curvatures": "[p[-1].curvature for p in (*paths.values(), path)]",
    "orthonormal": "float(abs(Y.T @ Y - np.eye(Y.shape[1])).max())",
}


def reference(atom: str) -> float:
    """The energy of PySCF's SCF, followed to where its stability analysis is content."""
    from pyscf import gto, scf

    mf = scf.RHF(gto.M(atom=atom, basis="cc-pvdz", verbose=0))
    mf.conv_tol = 1e-12
    mf.kernel()
    for _ in range(5):
        orbitals, _, stable, _ = mf.stability(return_status=True)
        if stable:
            break
        mf.kernel(mf.make_rdm1(orbitals, mf.mo_occ))
    assert stable
    assert mf.converged
    return float(mf.e_tot)


def test_the_notebook_reaches_the_energies_of_pyscf() -> None:
    for library in ("pyscf", "scipy", "matplotlib"):
        pytest.importorskip(library)
    found = executed("hartree_fock", ALONG_A_CURVE, **CLAIMS)
    assert "4 F C" in found["formula"]
    assert "4 X F C" in found["basis_formula"]
    water, nitrogen = found["energies"].values()
    assert abs(water - reference("O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692")) < 1e-8
    assert abs(nitrogen - reference("N 0 0 0; N 0 0 1.098")) < 1e-8
    assert abs(found["stretched"] - reference("N 0 0 0; N 0 0 1.6")) < 1e-8
    assert found["saddles"]
    assert all(energy > found["stretched"] + 1e-3 and curvature < -1e-2 for energy, curvature in found["saddles"])
    assert min(found["curvatures"]) > -1e-6
    assert found["orthonormal"] < 1e-12
    for what in ("slope", "curvature"):
        measured, said = found[what]
        assert measured == pytest.approx(said, rel=1e-3)
