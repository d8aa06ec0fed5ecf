"""One program from its number to a verdict, within a limit of time."""

from __future__ import annotations

import re
import signal
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from types import FrameType

from combdiff.errors import BudgetError, CheckError, CombDiffError

from .case import PRODUCTS, Case, Failure, Refused, Skipped
from .data import WEATHERS
from .metamorphic import LAWS
from .modes import MODES, gradient
from .programs import program
from .refusals import documented
from .syntax import Expr, Literal, Power, Program, walk

LIMIT = 20.0
WAYS = MODES | LAWS


class TimeLimit(BaseException):
    """The alarm: no `except Exception` holds it up."""


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raise `TimeLimit` when so many seconds of the processor are spent."""

    def ring(signum: int, frame: FrameType | None) -> None:
        raise TimeLimit

    # of the processor, so that a busy machine ends no program
    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@dataclass
class Verdict:
    """What became of one program: failures with the mode in which they were seen, skips, refusals."""

    failures: list[tuple[str, str, str]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    modes: list[str] = field(default_factory=list)
    weather: str = "normal"


def run(seed: int, number: int) -> tuple[Program, Verdict]:
    """The program of that number, tried."""
    p = program(seed, number)
    rng = Random(f"{seed}:{number}:modes")
    names = list(WAYS)
    chosen: list[str] = []
    while len(chosen) < 3:
        (name,) = rng.choices(names, [WAYS[n][1] for n in names])
        if name not in chosen:
            chosen.append(name)
    steep = any((isinstance(e, Power) and not isinstance(e.exponent, Literal)) or _is_steep(e) for e in walk(p.body))
    weather = rng.choices(WEATHERS, (5, 2, 2, 3, 8) if steep else (5, 2, 2, 0.5, 0.3))[0]
    return p, tried(p, chosen, weather)


def _is_steep(e: Expr) -> bool:
    """Whether magnitudes matter: a power that is no square, and its like."""
    return (
        isinstance(e, Power)
        and isinstance(e.exponent, Literal)
        and (e.exponent.value.denominator > 1 or e.exponent.value < 0)
    )


def tried(p: Program, modes: Sequence[str], weather: str, limit: float = LIMIT, plain: bool = False) -> Verdict:
    """A program in some modes, on numbers of one weather."""
    verdict = Verdict(modes=list(modes), weather=weather)
    try:
        with alarm(limit):
            _try_all(p, modes, weather, verdict, plain)
    except TimeLimit:
        verdict.failures.append(("time", "timeout", f"not done after {limit} seconds"))
    return verdict


def smallest(p: Program, verdict: Verdict, seconds: float = 60.0) -> tuple[Program, bool]:
    """The program made small for its first failure, and whether its plainest spelling fails, too."""
    from .shrinking import shrunk, with_names

    first = verdict.failures[0]
    modes = [first[0]] if first[0] in WAYS else []

    def fails(candidate: Program, plain: bool) -> bool:
        try:
            found = tried(candidate, modes, verdict.weather, 8.0 if first[1] == "timeout" else LIMIT, plain)
        except (AssertionError, AttributeError, KeyError, IndexError, ValueError):
            return False
        return any(alike(first, failure) for failure in found.failures)

    plain = fails(p, True)
    if not plain:
        writer = Case(p).writer
        writer.text()
        named = with_names(p, writer.names.of, writer.names.sizes)
        if fails(named, True):
            p, plain = named, True
    return shrunk(p, lambda candidate: fails(candidate, plain), seconds), plain


def alike(a: tuple[str, str, str], b: tuple[str, str, str]) -> bool:
    """Whether two failures are one: in one mode, of one kind, and with one message but for names and numbers."""
    if a[:2] != b[:2]:
        return False
    if a[1] in ("traceback", "check error", "refused", "reads not back"):
        return _outline(a[2]) == _outline(b[2])
    return True


def _outline(message: str) -> str:
    lines = message.splitlines() or [""]
    head = re.sub(r"^<text>:\d+:\d+: ", "", lines[0])
    head = re.sub(r"[\d.e+-]+", "#", head)
    return " ".join(word for word in head.split()[:12] if len(word) > 3)[:60]


def _try_all(p: Program, modes: Sequence[str], weather: str, verdict: Verdict, plain: bool) -> None:
    case: Case | None = None
    for attempt, w in enumerate((weather, "normal", "normal")):
        case = Case(p, w, attempt, plain)
        if not _attempt("oracle", lambda case=case: case.finite, verdict):  # type: ignore[misc]
            return
        if case.finite:
            break
        verdict.skipped.append(f"no finite value ({w})")
    else:
        return
    if not _attempt("derive", lambda: case.derivation, verdict):
        return
    if not _attempt("print", lambda: str(case.derivation), verdict):
        return
    verdict.weather = case.weather
    _attempt("gradient", lambda: gradient(case), verdict)
    for name in modes:
        mode = WAYS[name][0]
        _attempt(name, lambda mode=mode: mode(case), verdict)  # type: ignore[misc]


def _attempt(name: str, act: object, verdict: Verdict) -> bool:
    """Run one step, and note how it ends; whether it succeeded."""
    start = time.process_time()
    try:
        act()  # type: ignore[operator]
    except Skipped as skip:
        verdict.skipped.append(f"{name}: {skip}")
    except Refused as refusal:
        verdict.refused.append(str(refusal))
    except Failure as failure:
        verdict.failures.append((name, failure.kind, failure.message))
    except CheckError as error:
        verdict.failures.append((name, "check error", error.message))
    except CombDiffError as error:
        if isinstance(error, BudgetError) and "of time" in error.message and time.process_time() - start < PRODUCTS:
            # the budget is one of the clock on the wall, and others may have had the processor
            verdict.skipped.append(f"{name}: the processor was busy with something else")
        elif documented(error):
            verdict.refused.append(_template(error.message))
        else:
            verdict.failures.append((name, "refused", str(error)))
    except (Exception, RecursionError) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{last.filename.rsplit('/', 1)[-1]}:{last.name}"
        verdict.failures.append((name, "traceback", f"{type(error).__name__} in {place}: {error}"))
    except BaseException as error:
        if isinstance(error, TimeLimit | KeyboardInterrupt | SystemExit):
            raise
        verdict.failures.append((name, "traceback", f"{type(error).__name__}: {error}"))
    else:
        return True
    return False


def _template(message: str) -> str:
    return message.split(":")[0][:80]
