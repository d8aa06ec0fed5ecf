"""Simplifying twice is simplifying once: a result that is simplified again is no longer, and most are the same text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import combdiff as cd
from combdiff.calculus.markers import parameters_of
from combdiff.derivation import Derivation
from combdiff.errors import CombDiffError
from combdiff.language.printing.printer import expression_text
from combdiff.simplify.choose import index_names
from combdiff.simplify.stages import Simplifier
from combdiff.terms.terms import Lam, Let, subterms
from tests.programs import WITH_FORMS
from tests.thinned import thinned

EXAMPLES = {
    path.stem: path.read_text(encoding="utf-8") for path in (Path(__file__).parents[2] / "examples").glob("*.cd")
}
PROGRAMS = {**{name: text for name, (text, _) in WITH_FORMS.items()}, **EXAMPLES}

OTHER_IMAGES = {
    # V(p, r, q, s) and V(p, s, q, r) are one number, and equally long; the order of what comes in decides
    ("restricted Hartree-Fock with J and K", "hvp"),
    ("restricted Hartree-Fock", "hvp"),
    ("restricted_hartree_fock", "grad"),
    ("restricted_hartree_fock", "hvp"),
}


def result_of(d: Derivation) -> Lam:
    """What was differentiated by, and the derivative, without the arguments around it."""
    t = d.term
    while isinstance(t, Lam) and isinstance(t.body, Lam) and not set(t.params) & set(d.objective.params):
        t = t.body
    assert isinstance(t, Lam), "a derivative is a function"
    return t


def simplified_again(d: Derivation, f: Lam) -> Lam:
    again = Simplifier()
    again.names = index_names(d.program)
    again.definitions = {var.name for t in subterms(d.program) if isinstance(t, Let) for var, _ in t.bindings}
    again.rank = {p: n for n, p in enumerate(parameters_of(d.program))}
    return again(f, ())


def length(text: str) -> int:
    return len(re.findall(r"\w+", text))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["grad", "hvp"])
@pytest.mark.parametrize("name", thinned(PROGRAMS, 2))
def test_what_is_simplified_again_is_no_longer(name: str, mode: str) -> None:
    try:
        d = getattr(cd, "pullback" if "cotangents" in name and mode == "grad" else mode)(PROGRAMS[name])
    except CombDiffError as refused:
        pytest.skip(str(refused))
    once = result_of(d)
    text, again = expression_text(once), expression_text(simplified_again(d, once))
    assert length(again) <= length(text)
    if (name, mode) not in OTHER_IMAGES and length(again) == length(text):
        assert again == text
