"""What docs/matrix_calculus.md shows, row by row: the book's formula in NumPy, SymPy's attempt, our matrix form.

`python -m tests.matrix_cookbook` writes our column of the page anew, and prints which rows SymPy has a form for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import combdiff as cd

PAGE = Path(__file__).parent.parent / "docs" / "matrix_calculus.md"
ROW = re.compile(
    r"^\| (?P<name>\S+(?: [a-z]+)?) \| `(?P<program>[^|]*)` \| (?P<book>[^|]*) \| (?P<ours>`.*`) \|$", re.MULTILINE
)
PARAMETER = re.compile(r"(\w+)::(\w+)(?:\{([^}]*)\})?")
RANKS = {"R": 0, "C": 0, "RV": 1, "CV": 1, "RM": 2, "CM": 2, "Sym": 2, "Her": 2, "SPD": 2}
KINDS: dict[str, Callable[[str], cd.Derivation]] = {"": cd.grad, "hessian": cd.hessian, "jacobian": cd.jacobian}

BOOK: dict[str, str] = {
    "m1": "(A + A.T) @ x / 2",
    "m2 jacobian": "A @ np.diag(np.exp(x))",
    "m3": "y * v",
    "m4": "b * a ** (b - 1)",
    "m5": "A.T @ np.sign(A @ x - y)",
    "m6": "2 * A.T @ (A @ x - y)",
    "m7": "-X.T @ (y * np.exp(-y * (X @ w)) / (np.exp(-y * (X @ w)) + 1))",
    "m8": "B @ X @ C @ A + B.T @ X @ A.T @ C.T",
    "m9": "-inv(X).T",
    "49": "det(X) * inv(X).T",
    "51": "det(A @ X @ B) * inv(X).T",
    "52": "2 * det(X.T @ A @ X) * inv(X).T",
    "53": "2 * det(X.T @ A @ X) * A @ X @ inv(X.T @ A @ X)",
    "54": "det(X.T @ A @ X) * (A @ X @ inv(X.T @ A @ X) + A.T @ X @ inv(X.T @ A.T @ X))",
    "55": "2 * np.linalg.pinv(X).T",
    "57": "inv(X).T",
    "58": "3 * det(X @ X @ X) * inv(X).T",
    "61": "-inv(X).T @ np.outer(a, b) @ inv(X).T",
    "62": "-det(inv(X)) * inv(X).T",
    "64": "-(inv(X + A) @ inv(X + A)).T",
    "69": "a",
    "70": "np.outer(a, b)",
    "71": "np.outer(b, a)",
    "72": "np.outer(a, a)",
    "76": "2 * X.sum() * np.ones_like(X)",
    "77": "X @ (np.outer(b, c) + np.outer(c, b))",
    "78": "B.T @ C @ (D @ x + d) + D.T @ C.T @ (B @ x + b)",
    "81": "(B + B.T) @ x",
    "82": "D.T @ X @ np.outer(b, c) + D @ X @ np.outer(c, b)",
    "83": "(D + D.T) @ np.outer(X @ b + c, b)",
    "84": "-2 * A.T @ W @ (x - A @ s)",
    "86": "-2 * W @ (x - s)",
    "88": "-2 * np.outer(W @ (x - A @ s), s)",
    "89": "-2 * b * (a - x.conj() @ b).conj()",
    "91": "sum(mp(X, r).T @ np.outer(a, b) @ mp(X, 2 - r).T for r in range(3))",
    "92": "sum((mp(X, 1 - r) @ np.outer(a, b) @ mp(X, 2).T @ mp(X, r)).T"
    " + mp(X, r).T @ mp(X, 2) @ np.outer(a, b) @ mp(X, 1 - r).T for r in range(2))",
    "95": "2 * A.T @ A @ x / (x @ B.T @ B @ x) - 2 * (x @ A.T @ A @ x) * B.T @ B @ x / (x @ B.T @ B @ x) ** 2",
    "97": "(A + A.T) @ x + b",
    "98 hessian": "A + A.T",
    "99": "np.eye(len(X))",
    "100": "A.T",
    "101": "A.T @ B.T",
    "102": "B @ A",
    "103": "A",
    "106": "2 * X.T",
    "107": "(X @ B + B @ X).T",
    "108": "B @ X + B.T @ X",
    "111": "X @ B.T + X @ B",
    "114": "A.T @ X.T @ B.T + B.T @ X.T @ A.T",
    "115": "2 * X",
    "116": "C.T @ X @ B @ B.T + C @ X @ B @ B.T",
    "117": "B @ X @ C + B.T @ X @ C.T",
    "118": "A.T @ C.T @ X @ B.T + C @ A @ X @ B",
    "119": "2 * A.T @ (A @ X @ B + C) @ B.T",
    "120": "2 * np.trace(X) * np.eye(len(X))",
    "121": "4 * mp(X, 3).T",
    "122": "sum((mp(X, r) @ A @ mp(X, 2 - r)).T for r in range(3))",
    "123": "C @ X @ X.T @ C @ X @ B @ B.T + C.T @ X @ B @ B.T @ X.T @ C.T @ X"
    " + C @ X @ B @ B.T @ X.T @ C @ X + C.T @ X @ X.T @ C.T @ X @ B @ B.T",
    "124": "-inv(X).T @ A.T @ B.T @ inv(X).T",
    "125": "-(C @ X @ inv(X.T @ C @ X)) @ (A + A.T) @ inv(X.T @ C @ X)",
    "126": "-2 * C @ X @ inv(X.T @ C @ X) @ X.T @ B @ X @ inv(X.T @ C @ X) + 2 * B @ X @ inv(X.T @ C @ X)",
    "127": "-2 * C @ X @ inv(A + X.T @ C @ X) @ X.T @ B @ X @ inv(A + X.T @ C @ X) + 2 * B @ X @ inv(A + X.T @ C @ X)",
    "129": "(x - a) / norm(x - a)",
    "130 jacobian": "np.eye(len(x)) / norm(x - a) - np.outer(x - a, x - a) / norm(x - a) ** 3",
    "131": "2 * x",
    "132": "2 * X",
    "240": "A",
    "242": "A.T",
    "248": "2 * X",
    "250": "2 * det(X.conj().T @ A @ X).real * A @ X @ inv(X.conj().T @ A @ X)",
    "252": "2 * A.conj().T @ A @ x / (x.conj() @ B.conj().T @ B @ x)"
    " - 2 * (x.conj() @ A.conj().T @ A @ x) * B.conj().T @ B @ x / (x.conj() @ B.conj().T @ B @ x) ** 2",
    "65": "np.eye(len(X))",
    "66": "det(X) * inv(X).T",
    "67": "np.outer(np.linalg.eigh(X)[1][:, 0], np.linalg.eigh(X)[1][:, 0])",
    "s1": "inv(X)",
    "s2": "np.linalg.svd(X, full_matrices=False)[0] @ np.linalg.svd(X, full_matrices=False)[2]",
    "s3": "np.outer(np.linalg.svd(X)[0][:, 0], np.linalg.svd(X)[2][0])",
    "s4": "inv(X) / 2",
    "s5": "inv(X)",
}
"""The formula of each row of the page, as printed there, in NumPy; `mp` is a power of a matrix."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the page."""

    name: str
    program: str
    book: str
    ours: str

    @property
    def derivation(self) -> cd.Derivation:
        """What combdiff makes of the program: the gradient, unless the row's name says another mode."""
        return KINDS[self.name.partition(" ")[2]](self.program)

    @property
    def form(self) -> str:
        """Our matrix form as the page has it, `<br>` for a line's end."""
        return "<br>".join(f"`{line}`" for line in self.derivation.matrix_text().splitlines())

    def arrays(self, n: int) -> dict[str, np.ndarray]:
        """Random data for the program's parameters; a size `m` is one less than n."""
        rng = np.random.default_rng(n)
        found = {}
        for name, kind, sizes in PARAMETER.findall(self.program):
            letters = [s.strip() for s in sizes.split(",")] if sizes else ["n"]
            letters = letters * RANKS[kind] if len(letters) == 1 else letters
            shape = [max(1, n - 1) if letter == "m" else n for letter in letters]
            x = rng.normal(size=shape)
            if kind[0] == "C" or kind == "Her":
                x = x + 1j * rng.normal(size=shape)
            if kind in ("Sym", "Her"):
                x = x + x.conj().T
            if kind == "SPD":
                x = x @ x.T
            found[name] = np.abs(x) + 1 if not shape else x + 3 * np.eye(*shape) if len(shape) == 2 else x
        return found

    def of_the_book(self, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
        """The book's formula at these arrays."""
        from numpy.linalg import det, inv, matrix_power, norm

        return np.asarray(
            eval(BOOK[self.name], {"np": np, "det": det, "inv": inv, "norm": norm, "mp": matrix_power, **arrays})
        )


def rows() -> list[Row]:
    """The rows of the page's tables."""
    return [Row(**match.groupdict()) for match in ROW.finditer(PAGE.read_text(encoding="utf-8"))]


def recorded(text: str) -> str:
    """The page with our column written anew."""

    def renewed(match: re.Match[str]) -> str:
        row = Row(**match.groupdict())
        return match[0].replace(f"| {row.ours} |", f"| {row.form} |")

    return ROW.sub(renewed, text)


if __name__ == "__main__":
    PAGE.write_text(recorded(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
