"""The generator, its data, its shrinker, its judgement and its command line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.case import Case, Failure
from tests.fuzz.constructs import constructs
from tests.fuzz.data import Wave, draw, group
from tests.fuzz.kinds import Index, Range, Tensor
from tests.fuzz.modes import sizes_named_like_values
from tests.fuzz.programs import program
from tests.fuzz.proof import FAULTS, PATCHES
from tests.fuzz.running import Verdict, alike, smallest, tried
from tests.fuzz.shrinking import candidates, shrunk, weight, well_formed
from tests.fuzz.sight import bare
from tests.fuzz.signature import signature
from tests.fuzz.statistics import Statistics
from tests.fuzz.supplied import supplied
from tests.fuzz.syntax import (
    Add,
    App,
    Call,
    Compared,
    Div,
    Expr,
    Joined,
    Literal,
    Mul,
    Not,
    Power,
    Program,
    Reduced,
    Ref,
    Several,
    Sum,
    Var,
    Where,
    walk,
)
from tests.fuzz.walks import nodes

ROOT = Path(__file__).parents[2]
N = Range("n", "plain", (3,))


def number(value: object) -> Literal:
    return Literal(Fraction(str(value)))


def entry(v: Var, *indices: Expr) -> App:
    return App(Ref(v), indices)


# --- data -----------------------------------------------------------------------------------------------------------


def test_data_have_their_symmetries_exactly() -> None:
    found = 0
    for number_ in range(60):
        p = program(79, number_)
        for v, x in draw(p, "normal", 0).items():
            if isinstance(v.kind, Tensor) and v.kind.space is not None and v.kind.space.laws:
                found += 1
                flat = x.reshape(-1)
                for at, sign, conj in group(v.kind.slots, v.kind.space.laws):
                    assert (flat == sign * (flat[at].conj() if conj else flat[at])).all()
    assert found > 20


def test_supplied_derivatives_are_those_of_the_function() -> None:
    wave = Wave((0.7, -0.3), 0.2, 1.5, False)
    x, y = np.array([0.1, 0.4]), np.array([1.0, -2.0])
    inner = 0.7 * x - 0.3 * y + 0.2
    by_x, by_y = supplied("grad_L", {"L": wave})(x, y)
    assert by_x == pytest.approx(1.5 * 0.7 * np.cos(inner))
    assert by_y == pytest.approx(-1.5 * 0.3 * np.cos(inner))
    again, _ = supplied("pullback_grad_L", {"L": wave})(x, y, (np.ones(2), np.zeros(2)))
    assert again == pytest.approx(-1.5 * 0.49 * np.sin(inner))


# --- programs -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_program_is_the_same_in_every_process() -> None:
    code = "from tests.fuzz.case import Case; from tests.fuzz.programs import program; print(Case(program(9, 7)).text)"
    texts = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        texts.add(
            subprocess.run(
                [sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
            ).stdout
        )
    assert len(texts) == 1 and "->" in texts.pop()


@pytest.mark.slow
def test_programs_differ_and_half_are_large() -> None:
    programs = [program(5, n) for n in range(200)]
    assert len({signature(p) for p in programs}) == 200
    assert sum(nodes(p) >= 20 for p in programs) >= 100
    assert all(well_formed(p) for p in programs)


def test_renaming_does_not_change_a_signature() -> None:
    p = program(5, 3)
    assert Case(p).text != Case(p, plain=True).text
    from dataclasses import replace

    assert signature(p) == signature(replace(p, seed=p.seed + 1))


RARE = (
    "root inside",
    "inverse inside",
    "grad inside",
    "pullback inside",
    "integral",
    "lattice",
    "list",
    ":inegc",
    "abbreviation",
    "cross",
)


@pytest.mark.slow
def test_rare_constructs_are_drawn() -> None:
    counts = [constructs(program(6, n)) for n in range(800)]
    assert {name: sum(name in c for c in counts) for name in RARE if sum(name in c for c in counts) < 4} == {}


NEWER = (
    *(f"{sign} of {what}" for sign in ("<", "<=", ">", ">=", "==", "!=") for what in ("indices", "reals")),
    *("where", "where with two values", "and", "or", "not", "guarded sum", "size as number", "size in a condition"),
    *("index arithmetic in a condition", "index arithmetic under a condition", "entry of integers in a condition"),
    *("prod", "mean", "maximum", "minimum", "logsumexp", "softmax", "ties", "cumsum", "norm", "argmax", "argmin"),
    *("max", "min", "clip", "atan2", "polygamma", "asin", "acos", "acosh", "atanh", "angle", "lgamma", "digamma"),
    *("floor", "ceil", "round", "tan", "sinh", "cosh", "cos", "tanh", "atan", "asinh", "expm1", "log1p", "log2"),
    *("log10", "erf", "erfc", "sigmoid", "softplus", "relu", "positive", "J(K(e))", "entry of integers"),
)


@pytest.mark.slow
def test_conditions_reductions_and_functions_are_drawn_in_one_program_of_twenty() -> None:
    counts = Counter(name for n in range(1200) for name in constructs(program(7, n)))
    # 60, less what chance makes of it in so few programs
    assert {name: counts[name] for name in NEWER if counts[name] < 48} == {}


@pytest.mark.parametrize("kept", [Joined, Not, Several, Reduced])
def test_conditions_and_reductions_are_made_smaller(kept: type) -> None:
    i, j, x = Var(Index(N)), Var(Index(N)), Var(Tensor((N,)))
    less, positive = Compared((bare(i), bare(j)), ("<",)), Compared((entry(x, bare(i)), number(0)), (">",))
    three = Several("max", (entry(x, bare(i)), entry(x, bare(j)), number(7)))
    largest = Reduced("maximum", (i, j), three, Joined("and", (less, Not(positive))))
    k = Var(Index(N))
    first = Compared((bare(k), number(2)), ("<",))
    p = Program(((x,),), Sum((k,), Where(Joined("or", (first, first)), largest, entry(x, bare(k)))), seed=1)
    small = shrunk(p, lambda q: any(isinstance(e, kept) for e in walk(q.body)), seconds=10)
    assert nodes(small) <= 9
    assert well_formed(small)


def test_sizes_that_are_named_like_values_are_seen() -> None:
    assert sizes_named_like_values("(n::R) -> (x::RV{n}) -> (i::N{n}) -> n") == ["n"]
    assert sizes_named_like_values("(a::R) -> (x::RV{n}) -> (i::N{n}) -> a") == []


# --- the shrinker ---------------------------------------------------------------------------------------------------


def test_a_program_is_shrunk_to_what_fails() -> None:
    programs = (q for q in (program(8, n) for n in range(400)) if q.mode == "grad" and nodes(q) > 25)
    p = next(q for q in programs if any(_is_log(e) for e in walk(q.body)))
    small = shrunk(p, lambda q: any(_is_log(e) for e in walk(q.body)), seconds=20)
    assert nodes(small) == 2
    assert _is_log(small.body)


def _is_log(e: Expr) -> bool:
    return isinstance(e, Call) and e.name == "log"


@pytest.mark.slow
@pytest.mark.parametrize("number_", range(10))
def test_candidates_that_are_well_formed_can_be_written(number_: int) -> None:
    p = program(10, number_)
    for candidate in candidates(p):
        if well_formed(candidate) and weight(candidate) < weight(p):
            assert "->" in Case(candidate, plain=True).text


def test_failures_are_alike_up_to_names_and_numbers() -> None:
    a = ("derive", "refused", "<text>:1:7: the index 3 is out of range in slot 1 of x")
    b = ("derive", "refused", "<text>:2:9: the index 5 is out of range in slot 2 of x")
    assert alike(a, b)
    assert not alike(a, ("derive", "refused", "<text>:1:7: unknown name y"))


# --- judging --------------------------------------------------------------------------------------------------------


def _squares() -> Program:
    i = Var(Index(N))
    x = Var(Tensor((N,)))
    return Program(((x,),), Sum((i,), Power(entry(x, bare(i)), number(2))), seed=1)


def test_a_wrong_gradient_is_told() -> None:
    case = Case(_squares())
    right = 2 * case.data[case.program.unknowns[0]]
    case.compare(right, "gradient")
    with pytest.raises(Failure, match="right is"):
        case.compare(right * (1 + 1e-5), "gradient")
    with pytest.raises(Failure, match="where the oracle is finite"):
        case.compare(right * np.nan, "gradient")
    with pytest.raises(Failure, match="shape"):
        case.compare(right[:2], "gradient")


def test_a_corner_is_seen_from_its_two_sides() -> None:
    """Central differences of Σ x floor(x) at 0 are −1/2 an entry, whatever the step."""
    i, x = Var(Index(N)), Var(Tensor((N,)))
    case = Case(Program(((x,),), Sum((i,), Mul((entry(x, bare(i)), Call("floor", entry(x, bare(i)))))), seed=1))
    assert not case.differ()
    case = Case(case.program)
    case.data[x] = np.zeros(3)
    assert case.differ()


@pytest.mark.slow
def test_a_fault_of_the_package_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    from combdiff.run.compiled import Compiled

    honest = Compiled.__call__

    def wrong(self: Compiled, /, *args: object, **named: object) -> object:
        found = honest(self, *args, **named)
        return np.asarray(found) * 1.01 if "exp" in self.source.split('"""')[2] else found

    i, x = Var(Index(N)), Var(Tensor((N,)))
    body = Add(
        (Sum((i,), Call("exp", Div(entry(x, bare(i)), number(4)))), Power(entry(x, type(bare(i))((), 1)), number(3)))
    )
    p = Program(((x,),), body, seed=1)
    assert tried(p, [], "normal").failures == []
    monkeypatch.setattr(Compiled, "__call__", wrong)
    verdict = tried(p, [], "normal")
    assert [f[:2] for f in verdict.failures] == [("gradient", "wrong")]
    small, plain = smallest(p, verdict, 20)
    assert plain and nodes(small) < nodes(p) and "exp" in Case(small, plain=True).text


# --- a short run ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_line_runs_a_program_again() -> None:
    command = [sys.executable, "-W", "ignore", "-m", "tests.fuzz", "--program", "1:3", "--shrink", "0"]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert Case(program(1, 3)).text in done.stdout
    assert "modes" in done.stdout


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_fault_that_is_taken_back_has_a_patch_that_fits(fault: int) -> None:
    patch = PATCHES / FAULTS[fault].patch
    assert not subprocess.run(["git", "apply", "--check", patch], cwd=ROOT, check=False).returncode
    text = patch.read_text(encoding="utf-8")
    changed = [line.removeprefix("--- a/") for line in text.splitlines() if line.startswith("--- a/")]
    assert changed
    assert all(name.startswith(("combdiff/", "rules/")) for name in changed)


@pytest.mark.parametrize(("kind", "wrong"), [("refused", 0), ("check error", 0), ("traceback", 1), ("value", 1)])
def test_a_refusal_is_a_failure_but_not_wrong(kind: str, wrong: int) -> None:
    statistics = Statistics()
    statistics.note(program(1, 3), Verdict(failures=[("derive", kind, "said")]), 1.0)
    assert statistics.wrong == wrong
    assert sum(statistics.failures.values()) == 1
