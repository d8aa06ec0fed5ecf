"""What is said of wrong programs, and that the remedies work."""

from __future__ import annotations

import pytest

import combdiff as cd
from tests.language.wrong_programs import Entry, entries, message_of


@pytest.mark.parametrize("entry", entries(), ids=lambda e: e.name)
def test_the_message(entry: Entry) -> None:
    assert message_of(entry.wrong) == entry.message


@pytest.mark.slow
@pytest.mark.parametrize("entry", entries(), ids=lambda e: e.name)
def test_who_follows_the_remedy_has_a_program_that_works(entry: Entry) -> None:
    assert cd.grad(entry.mended).check()


def test_forty_programs() -> None:
    assert len(entries()) >= 40
