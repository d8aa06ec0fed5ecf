"""Times of derivations: `python benchmarks/derive.py` prints a table, a row a problem, with the share of each stage.

Derivations are timed in one process after import: the first, and the median of ten later ones. The stages are those of
`timing.py`.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path

from timing import STAGES, shares_text, timed

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
PROBLEMS = (
    ("Listing 2, xᴴAx", "quadratic.cd", "grad", False),
    ("Listing 4, Hartree–Fock", "hartree_fock.cd", "grad", False),
    ("its Hessian-vector product", "hartree_fock.cd", "hvp", False),
    ("Listing 5, Wannier spread", "wannier.cd", "grad", False),
    ("the same, multiplied out", "wannier.cd", "grad", True),
    ("Listing 3, conjugate gradient", "conjugate_gradient.cd", "grad", False),
    ("restricted Hartree–Fock, written flat", "restricted_hartree_fock.cd", "grad", False),
    ("CP loss multiplied out, three gradients", "cp_loss.cd", "grad", False),
    ("Wannier spread by neighbours", "wannier_neighbours.cd", "grad", False),
    ("the same on a lattice of three directions", "wannier_lattice.cd", "grad", False),
    ("least action", "least_action.cd", "grad", False),
    ("an implicit layer", "implicit.cd", "grad", False),
)


def import_seconds() -> float:
    """Seconds that `import combdiff` takes in a new process, the interpreter's own start left out."""
    program = "import time; t = time.perf_counter(); import combdiff; print(time.perf_counter() - t)"
    return float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)


def main() -> None:
    """Print the table."""
    print(f"import combdiff: {import_seconds() * 1e3:.0f} ms\n")
    print(f"| problem | first, ms | later, ms | {' | '.join(f'{s}, %' for s in STAGES)} |")
    print("| --- " * (3 + len(STAGES)) + "|")
    for name, file, mode, expand in PROBLEMS:
        text = (EXAMPLES / file).read_text(encoding="utf-8")
        first = timed(text, mode, expand)
        later = [timed(text, mode, expand) for _ in range(10)]
        median = statistics.median(t.total for t in later)
        shares = {stage: statistics.median(t.shares[stage] / t.total for t in later) for stage in STAGES}
        print(f"| {name} | {first.total * 1e3:.0f} | {median * 1e3:.1f} | {shares_text(shares)} |")


if __name__ == "__main__":
    main()
