"""Times of derivations: `python benchmarks/derive.py` prints a table, a row a problem, with the share of each stage.

Derivations are timed in one process after import: the first, and the median of ten later ones. The stages are those of
the design: reading (parse and infer), calculus (B/C form and pullback rules), contract (e-graph), merge (canonical
names), choose (placing and naming), and the numerical check of every stage.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
PROBLEMS = (
    ("Listing 2, xᴴAx", "quadratic.cd", "grad", False),
    ("Listing 4, Hartree–Fock", "hartree_fock.cd", "grad", False),
    ("its Hessian-vector product", "hartree_fock.cd", "hvp", False),
    ("Listing 5, Wannier spread", "wannier.cd", "grad", False),
    ("the same, multiplied out", "wannier.cd", "grad", True),
    ("Listing 3, conjugate gradient", "conjugate_gradient.cd", "grad", False),
)
STAGES = ("reading", "calculus", "contract", "merge", "choose", "check")
_STAGE_OF = {
    "contract": "contract",
    "expand": "contract",
    "merge like terms": "merge",
    "place cotangents": "choose",
    "order and names": "choose",
}


def import_seconds() -> float:
    """Seconds that `import combdiff` takes in a new process, the interpreter's own start left out."""
    program = "import time; t = time.perf_counter(); import combdiff; print(time.perf_counter() - t)"
    return float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)


def timed(text: str, mode: str, expand: bool) -> tuple[float, dict[str, float]]:
    """Seconds of one derivation, and of its stages."""
    from combdiff.derivation import derive
    from combdiff.language.infer import infer
    from combdiff.language.parser import parse

    start = time.perf_counter()
    infer(parse(text))
    reading = time.perf_counter() - start
    start = time.perf_counter()
    d = derive(text, mode, expand=expand)
    total = time.perf_counter() - start
    shares = dict.fromkeys(STAGES, 0.0)
    shares["reading"] = reading
    for step in d.steps:
        shares["check"] += step.checking
        if step.name in _STAGE_OF:
            shares[_STAGE_OF[step.name]] += step.seconds
    shares["calculus"] = max(0.0, total - sum(shares.values()))
    return total, shares


def main() -> None:
    """Print the table."""
    print(f"import combdiff: {import_seconds() * 1e3:.0f} ms\n")
    print(f"| problem | first, ms | later, ms | {' | '.join(f'{s}, %' for s in STAGES)} |")
    print("| --- " * (3 + len(STAGES)) + "|")
    for name, file, mode, expand in PROBLEMS:
        text = (EXAMPLES / file).read_text(encoding="utf-8")
        first, _ = timed(text, mode, expand)
        later = [timed(text, mode, expand) for _ in range(10)]
        median = statistics.median(total for total, _ in later)
        shares = [statistics.median(s[stage] / total for total, s in later) for stage in STAGES]
        print(f"| {name} | {first * 1e3:.0f} | {median * 1e3:.1f} | {' | '.join(f'{s:.0%}'[:-1] for s in shares)} |")


if __name__ == "__main__":
    main()
