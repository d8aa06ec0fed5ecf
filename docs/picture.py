"""Draws `hartree_fock.svg`, the picture at the top of the README: `python docs/picture.py`."""

from __future__ import annotations

from pathlib import Path

import matplotlib

import combdiff as cd

matplotlib.use("svg")

DOCS = Path(__file__).parent
PICTURE = DOCS / "hartree_fock.svg"


def equations() -> list[str]:
    """The objective and its gradient, as LaTeX that matplotlib sets."""
    page = cd.grad(DOCS.parent / "examples" / "hartree_fock.cd").latex(style="paper")
    return [line.removesuffix(r" \\").replace("&", "").replace(r"\frac", r"\dfrac") for line in page.splitlines()[1:-1]]


def drawn() -> str:
    """The picture as SVG, the equations in its description."""
    from matplotlib import pyplot as plt

    with plt.rc_context({"mathtext.fontset": "cm", "svg.hashsalt": "combdiff"}):
        figure = plt.figure(figsize=(4.4, 1.7), facecolor="white")
        for n, (label, line) in enumerate(zip(("you write", "you read"), equations(), strict=True)):
            height = 0.74 - 0.5 * n
            figure.text(0.02, height, label, fontsize=11, color="#0072B2", va="center", family="sans-serif")
            figure.text(0.24, height, f"${line}$", fontsize=15, color="black", va="center")
        figure.savefig(PICTURE, metadata={"Date": None, "Description": " ; ".join(equations())})
        plt.close(figure)
    return PICTURE.read_text(encoding="utf-8")


if __name__ == "__main__":
    drawn()
