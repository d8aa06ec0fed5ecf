"""Programs with random slips of the keyboard: each is derived or refused in words, and what is derived is right."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import combdiff as cd
from combdiff.errors import CheckError
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.terms import call, fresh
from combdiff.terms.types import COMPLEX, is_complex

ROOT = Path(__file__).parent.parent
PROGRAMS = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples").glob("*.cd"))]
SLIPS = [
    "(",
    ")",
    "'",
    "*",
    "+",
    "-",
    "/",
    "^",
    "sum(",
    "i",
    "k",
    "b",
    "conj(",
    "exp(",
    "im",
    "2",
    ",",
    "->",
    "::",
    "\n",
]


def slipped(text: str, rng: random.Random) -> str:
    for _ in range(rng.randint(1, 2)):
        at = rng.randrange(len(text))
        match rng.randrange(3):
            case 0:
                text = text[:at] + text[at + rng.randint(1, 4) :]
            case 1:
                text = text[:at] + rng.choice(SLIPS) + text[at:]
            case _:
                text = text[:at] + rng.choice(text) + text[at + 1 :]
    return text


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_a_slip_is_refused_in_words_or_gives_a_right_derivative(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        text = slipped(rng.choice(PROGRAMS), rng)
        try:
            d = cd.grad(text, seconds=5)
            report = d.check()
        except CheckError:
            raise
        except cd.CombDiffError as error:
            assert str(error)
        else:
            assert report, text


@pytest.mark.parametrize("row", SCALAR_FUNCTIONS.values(), ids=SCALAR_FUNCTIONS)
def test_the_table_says_which_functions_are_real_valued(row) -> None:
    z = fresh("z", COMPLEX)
    assert is_complex(call(row.name, z).type) is not row.real_valued
