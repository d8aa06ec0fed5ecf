"""Holds where-clauses against what the reader of matrix forms takes signs for: (X ⊙ Y)_{ij,k} = X_{i,k} Y_{j,k}."""

from __future__ import annotations

import re
from itertools import product

import numpy as np

from tests.notation.latex_reader import Evaluator, Parser, Point_, Slot, Tensor, UnreadableError
from tests.notation.matrix_reader import Reader, given

SAID = re.compile(
    r"(acts?\s+entry\s+by\s+entry|is 1 where it holds and 0 elsewhere)\}?$"
    r"|^(\w+)(⁺ = 1/\2, 0⁺|\^\{\+\} = 1/\2, 0\^\{\+\}) = 0$"
)


ON_ROWS = re.compile(r"softmax\}?(\\ \\text\{|\s)acts on each row\}?$")


def says_rows(clauses: list[str]) -> bool:
    """Whether it is said that softmax acts on each row of a matrix."""
    return any(map(ON_ROWS.search, clauses))


def index_form(text: str) -> str:
    """The right side of a clause in plain text as LaTeX."""
    text = re.sub(
        r"sum\(\(?([a-z0-9, ]+?)\)?, (?=\S*\()(.*)\)$", lambda m: rf"\sum_{{{m[1].replace(' ', '')}}} {m[2]}", text
    )
    return re.sub(r"(\w+)\(([a-z0-9, ]+)\)", lambda m: f"{m[1]}_{{{m[2].replace(' ', '')}}}", text).replace(
        " * ", r"\, "
    )


def holds(clause: str, latex: bool) -> bool:
    """Whether both sides of a clause have the same entries, for random arrays."""
    if SAID.search(clause) or ON_ROWS.search(clause):
        return True
    left, right = clause.split(" = ", 1)
    left = left if latex else re.sub(r"\(([a-z0-9, ]+)\)$", lambda m: f"_{{{m[1].replace(' ', '')}}}", left)
    right = right if latex else index_form(right)
    head, groups = re.fullmatch(r"(.*)_\{([a-z0-9,]*)\}", left).groups()
    entries = re.findall(
        r"(\([^ ()]+\)|\{?[A-Za-z\\][^ ]*?\}?)_\{([a-z0-9,]+)\}(?=$|\\|\s)", re.sub(r"\\sum_\{[^}]*\} ", "", right)
    )
    letters = sorted({letter for _, indices in entries for letter in indices.split(",")}, key=len, reverse=True)
    sizes = {letter: 2 + n % 4 for n, letter in enumerate(sorted(letters))}
    rng = np.random.default_rng(0)
    tensors = {}
    for name, indices in entries:
        slots = tuple(Slot(tuple((n,) for n in range(sizes[i]))) for i in indices.split(","))
        bare = name[1:-1] if name[0] in "{(" else name
        tensors[bare] = Tensor(rng.standard_normal([len(s.points) for s in slots]), slots)
    matrices = {name: given(tensor.array) for name, tensor in tensors.items()}
    rows = [re.findall("|".join(letters), group) for group in groups.split(",")]
    free = [letter for group in rows for letter in group]
    if sorted("".join(free)) != sorted(groups.replace(",", "")):
        raise UnreadableError(f"indices of {left}")
    shape = [sizes[letter] for letter in free]
    node = Parser(right, frozenset([*tensors, *free])).whole()
    stated = np.zeros(shape)
    for at in product(*map(range, shape)):
        here = {i: Point_((n,), None) for i, n in zip(free, at, strict=True)}
        stated[at] = Evaluator().plain(node, {**tensors, **here})
    reader = Reader(matrices, latex)
    found = reader.formula(head)
    return found.array().size == stated.size and np.allclose(found.array().ravel(), stated.ravel())
