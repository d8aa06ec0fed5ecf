"""Derivations and compiled functions can be pickled, copied and sent to other processes."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

import combdiff as cd
from combdiff.terms.archive import Archive
from combdiff.terms.terms import (
    ZERO,
    Term,
    add,
    alpha_equal,
    call,
    fresh,
    mul,
    size,
    sub,
    subterms,
)
from combdiff.terms.types import REAL, Domain
from tests.strategies import programs

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.cd"))
CUBIC = "(A::CM) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j)^2) + sum(i, abs2(x(i))^2)"


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_pickled_derivation_is_the_same(path: Path) -> None:
    d = cd.grad(path.read_text(encoding="utf-8"))
    back = pickle.loads(pickle.dumps(d))
    assert alpha_equal(back.term, d.term) and alpha_equal(back.program, d.program)
    assert str(back) == str(d) and (back.text, back.mode) == (d.text, d.mode)
    assert list(map(str, back.steps)) == list(map(str, d.steps))


@pytest.mark.slow
@pytest.mark.parametrize("made", [copy.copy, copy.deepcopy], ids=["copy", "deepcopy"])
def test_a_copied_derivation_can_do_what_the_first_can(made: object) -> None:
    d = made(cd.grad(CUBIC))  # type: ignore[operator]
    assert d.check()
    assert str(d.gradient) == str(cd.grad(CUBIC).gradient)


@pytest.mark.slow
def test_a_derivation_is_read_in_another_process() -> None:
    d = cd.grad(CUBIC)
    code = "import pickle, sys; d = pickle.load(sys.stdin.buffer); print(d); sys.exit(not d.check())"
    # hashes of strings differ from one process to the next, and numbers of variables are taken
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(d), capture_output=True, cwd=ROOT, timeout=120
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().strip() == str(d)


def test_a_size_that_was_stored_meets_the_one_that_is_made_here() -> None:
    n, other = Domain("n"), Domain("m")
    (stored,) = pickle.loads(pickle.dumps(Archive.of([size(n)]))).terms()
    assert stored == size(n) and sub(stored, size(n)) == ZERO
    assert stored != size(other) and sub(stored, size(other)) != ZERO


def test_forms_keep_their_parameters_in_common() -> None:
    d = cd.grad("(f::RF) -> (x::RM) -> sum((i, j), f(x(i, j)) * sum(k, (x(i, k) - x(j, k))^2))")
    forms = d.runnable.forms(value=True)
    back = pickle.loads(pickle.dumps(forms))
    assert back.flats and all(flat.params == back.formula.params for flat in back.flats)
    assert str(back.plan({})) == str(forms.plan({}))


@pytest.mark.slow
def test_compiled_functions_pickle() -> None:
    rng = np.random.default_rng(0)
    A, x, k = (rng.normal(size=s) + 1j * rng.normal(size=s) for s in ((3, 3), 3, 3))
    d = cd.grad(CUBIC)
    f, g = d.compile(value=True), d.compile(value=True, hvp=True)
    f(A, x)
    value, gradient = pickle.loads(pickle.dumps(f))(A, x)
    same, also, hvp = copy.deepcopy(g)(A, x)
    assert np.allclose([value, same], f(A, x)[0]) and np.allclose([gradient, also], f(A, x)[1])
    assert np.allclose(hvp(k), g(A, x)[2](k))


@pytest.mark.slow
def test_compiled_functions_go_to_other_processes() -> None:
    f = cd.grad("(x::RV) -> sum(i, x(i)^3)").compile()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        (found,) = pool.map(f, [np.arange(3.0)])
    assert np.allclose(found, 3 * np.arange(3.0) ** 2)


def test_what_terms_share_is_shared_again() -> None:
    x = fresh("x", REAL)
    t: Term = x
    for _ in range(200):
        t = add(mul(t, t), x)
    (back,) = Archive.of([t]).terms()
    assert len(list(subterms(back))) == len(list(subterms(t)))


@pytest.mark.slow
def test_a_deep_term_is_written_and_read() -> None:
    t: Term = (x := fresh("x", REAL))
    for _ in range(20_000):
        t = call("exp", add(t, x))
    assert len(list(subterms(pickle.loads(pickle.dumps(t))))) == len(list(subterms(t)))


@pytest.mark.slow
@given(programs())
def test_any_program_is_read_as_it_was_written(program: Term) -> None:
    (back,) = Archive.of([program]).terms()
    assert alpha_equal(back, program)
    assert back.type == program.type
