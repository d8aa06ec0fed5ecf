"""The rows of docs/matrix_calculus.md that can be typed at matrixcalculus.org, by what its documentation lists.

`python -m tests.matrix_calculus_org` prints them. The site was not asked: a row counts if its program is made of real
numbers, vectors and matrices and of listed operations, so that it can be an input. Powers of matrices are products.
"""

from __future__ import annotations

import re

from tests.matrix_cookbook import PARAMETER, Row, rows

LISTED = frozenset(["sin", "cos", "exp", "log", "abs", "sign", "sum", "norm", "tr", "det", "logdet", "inv"])
"""The functions of https://www.matrixcalculus.org/documentation; `norm1` and `norm2` are `sum(abs.(x))` and `norm`."""


def missing(row: Row) -> str:
    """What the documentation does not list; empty if all of the row is there."""
    names = {name for name, _, _ in PARAMETER.findall(row.program)}
    over_complex = [kind for _, kind, _ in PARAMETER.findall(row.program) if kind in ("C", "CV", "CM", "Her")]
    body = row.program.rpartition("->")[2]
    words = {*re.findall(r"[a-z]\w*", body)} - names - LISTED
    return ", ".join([*(["complex numbers"] if over_complex else []), *sorted(words)])


if __name__ == "__main__":
    found = {row.name: missing(row) for row in rows()}
    for name, lacking in found.items():
        print(f"{name:14}{lacking or 'yes'}")
    print(sum(not lacking for lacking in found.values()), "of", len(found))
