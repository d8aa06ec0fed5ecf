"""Any number of threads may derive, compile and compute at once: each gets what it would get alone."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pytest

import combdiff as cd
from combdiff.budget import Budget
from combdiff.errors import UnsupportedError
from combdiff.simplify.contraction import egraph
from combdiff.simplify.contraction.egraph import Session, session
from combdiff.simplify.contraction.egraph_thread import EGraphThread
from combdiff.terms.recursion import deep_recursion, rare_collections

if TYPE_CHECKING:
    from egglog.bindings import EGraph

ROOT = Path(__file__).parent.parent
EXAMPLES = [file.read_text(encoding="utf-8") for file in sorted((ROOT / "examples").glob("*.cd"))]
THREADS = 6
QUARTIC = "(A::Sym) -> (x::RV) -> sum((i, j), x(i)^2 * A(i, j) * x(j)^2)"

Result = TypeVar("Result")


@pytest.fixture(autouse=True)
def _threads_that_take_turns_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def _at_once(work: Callable[[int], Result], count: int = THREADS) -> list[Result]:
    """What `work` returns for 0, 1, … in as many threads, which begin together."""
    start = threading.Barrier(count)

    def begun(n: int) -> Result:
        start.wait(timeout=60)
        return work(n)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(begun, range(count)))


def _texts(program: str) -> list[str]:
    d = cd.grad(program)
    try:
        source = d.source()
    except UnsupportedError as problem:
        source = str(problem)
    return [str(d), d.latex(), d.latex(form="matrix"), source]


@pytest.mark.slow
def test_derivations_in_threads_are_those_of_one_thread() -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(_texts, EXAMPLES))
    assert found == list(map(_texts, EXAMPLES))
    assert sys.getrecursionlimit() < 200_000 and gc.get_threshold()[0] < 50_000


def _process(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)


@pytest.mark.slow
def test_the_first_derivations_of_a_process_may_be_taken_at_once() -> None:
    done = _process(
        "import sys, threading, combdiff as cd\n"
        "sys.setswitchinterval(1e-6)\n"
        "start, found = threading.Barrier(6), []\n"
        "def work():\n"
        "    start.wait()\n"
        f"    found.append(cd.grad({QUARTIC!r}).source())\n"
        "threads = [threading.Thread(target=work) for _ in range(6)]\n"
        "[t.start() for t in threads], [t.join() for t in threads]\n"
        "print(len(found), len(set(found)))\n"
    )
    assert (done.stdout, done.stderr) == ("6 1\n", "")


@pytest.mark.slow
def test_threads_that_have_derived_leave_no_message_at_the_end() -> None:
    done = _process(
        "import threading, time, combdiff as cd\n"
        "ready = threading.Event()\n"
        "def work():\n"
        "    cd.grad('(x::RV) -> sum(i, x(i)^2)')\n"
        "    ready.set()\n"
        "    time.sleep(60)\n"
        "threading.Thread(target=work, daemon=True).start()\n"
        "ready.wait()\n"
        "short = threading.Thread(target=cd.grad, args=('(x::RV) -> sum(i, x(i)^3)',))\n"
        "short.start(), short.join()\n"
        "print('end')\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_process_that_was_forked_after_a_derivation_is_told_what_to_do() -> None:
    code = (
        "import os, combdiff as cd\n"
        "program = '(x::RV) -> sum(i, x(i)^2)'\n"
        "{before}\n"
        "if os.fork() == 0:\n"
        "    try:\n"
        "        print(cd.grad(program), flush=True)\n"
        "    except cd.CombDiffError as error:\n"
        "        print(error, flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "print(cd.grad(program))\n"
    )
    right = "(x::RV) -> i -> 2 * x(i)\n"
    assert _process(code.format(before="pass")).stdout == right * 2
    told, _, last = _process(code.format(before="cd.grad(program)")).stdout.partition("\nremedy: ")
    assert "forked" in told and "spawn" in last and last.endswith(right)


# --- limits of the process ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first_out", [0, 1])
def test_limits_are_put_back_by_the_last_thread_that_needs_them(first_out: int) -> None:
    before = sys.getrecursionlimit(), gc.get_threshold()
    inside = [deep_recursion(), deep_recursion()]
    rare = [rare_collections(), rare_collections()]
    for each in (*inside, *rare):
        each.__enter__()
    for each in (inside[first_out], rare[first_out]):
        each.__exit__(None, None, None)
    assert sys.getrecursionlimit() == 200_000 and gc.get_threshold()[0] == 50_000
    for each in (inside[1 - first_out], rare[1 - first_out]):
        each.__exit__(None, None, None)
    assert (sys.getrecursionlimit(), gc.get_threshold()) == before


def test_a_limit_that_somebody_else_sets_meanwhile_is_kept() -> None:
    before = sys.getrecursionlimit()
    try:
        with deep_recursion():
            sys.setrecursionlimit(12_345)
        assert sys.getrecursionlimit() == 12_345
    finally:
        sys.setrecursionlimit(before)


# --- e-graphs -------------------------------------------------------------------------------------------------------


def test_an_e_graph_may_be_used_by_one_thread_after_the_other() -> None:
    with session(("terms",)) as laws:
        pass

    def names(_: int) -> bool:
        with session(("terms",)) as found:
            found.run(["(let $x (Var 1))"], ["$x"])
            return found is laws

    threads = [threading.Thread(target=lambda: used.append(names(0))) for _ in range(3)]
    used: list[bool] = []
    for thread in threads:
        thread.start()
        thread.join()
    assert used == [True] * 3


def test_the_thread_of_an_e_graph_ends_with_it() -> None:
    before = set(threading.enumerate())
    thread = EGraphThread()
    thread(lambda egraph: None)
    (own,) = set(threading.enumerate()) - before
    del thread
    own.join(timeout=60)
    assert not own.is_alive()


def test_what_is_left_for_later_is_done_before_the_next_word() -> None:
    thread = EGraphThread()
    done: list[str] = []
    thread.later(lambda egraph: done.append("later"))
    assert thread(lambda egraph: [*done, "now"]) == ["later", "now"]


def test_what_goes_wrong_later_is_told_by_the_next_word() -> None:
    thread = EGraphThread()
    thread.later(lambda egraph: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        thread(lambda egraph: None)


@pytest.mark.slow
def test_a_process_ends_well_while_an_e_graph_is_taken_back() -> None:
    program = "import combdiff as cd; cd.grad('(x::RV) -> sum(i, x(i)^2)')"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_laws_are_read_while_others_work_and_no_budget_pays_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    go, families, read = threading.Event(), ("terms", "index"), egraph._with_laws

    def late(family: str, text: str, at: EGraph) -> None:
        assert go.wait(60)
        read(family, text, at)

    monkeypatch.setattr(egraph, "_with_laws", late)
    monkeypatch.setattr(egraph, "_idle", {})
    egraph.prepare(families)  # comes back although nothing is read yet
    threading.Timer(0.5, go.set).start()
    with session(families) as found:
        assert found.run(["(let $x (Var 1))"], ["$x"], "index*", budget=Budget.of(0.2)).finished


def test_a_run_is_one_word_between_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    words = []
    call = EGraphThread.__call__

    def counted(thread: EGraphThread, work: Callable[..., object], deadline: float = float("inf")) -> object:
        words.append(work)
        return call(thread, work, deadline)

    with session(("terms", "index")) as found:
        monkeypatch.setattr(EGraphThread, "__call__", counted)
        assert found.run(["(let $x (Var 1))"], ["$x"], "index*").finished
    assert len(words) == 1


def test_a_run_ends_when_nobody_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[str] = []

    def endless(self: Session, family: str, families: object, budget: object = None) -> bool:
        turns.append(family)
        return True

    class Interrupted:
        def get(self, timeout: float) -> None:
            while not turns:
                pass
            raise KeyboardInterrupt

    monkeypatch.setattr(Session, "_ran", endless)
    busy = Session(("terms",))
    answers = busy._egraph._outbox
    busy._egraph._outbox = Interrupted()  # type: ignore[assignment]  # the caller's end only
    with pytest.raises(KeyboardInterrupt):
        busy.run(["(let $x (Var 1))"], ["$x"], "terms*")
    answers.get(timeout=60)
    assert busy.lost


# --- compiled functions ---------------------------------------------------------------------------------------------


def _symmetric(n: int) -> np.ndarray:
    a = np.random.default_rng(n).standard_normal((n, n))
    return a + a.T


def _gradient(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    return 4 * x * (a @ x**2)


def _product(a: np.ndarray, x: np.ndarray, k: np.ndarray) -> np.ndarray:
    return 4 * k * (a @ x**2) + 8 * x * (a @ (x * k))


@pytest.mark.slow
def test_a_compiled_function_may_be_called_by_threads_at_once() -> None:
    f = cd.grad(QUARTIC).compile(value=True)

    def work(n: int) -> bool:
        rng = np.random.default_rng(n)
        right = True
        for size in (2, 3, 4, 5, 6) * 4:
            a, x = _symmetric(size + n), rng.standard_normal(size + n)
            value, gradient = f(a, x)  # type: ignore[misc]  # a pair
            right &= np.allclose(value, x**2 @ a @ x**2) and np.allclose(gradient, _gradient(a, x))
        return right

    assert all(_at_once(work))


@pytest.mark.slow
def test_products_with_the_hessian_may_be_computed_by_threads_at_once() -> None:
    for _ in range(5):
        f = cd.grad(QUARTIC).compile(hvp=True)

        def work(n: int, f: Callable[..., object] = f) -> bool:
            rng = np.random.default_rng(n)
            a, x, k = _symmetric(n + 2), rng.standard_normal(n + 2), rng.standard_normal(n + 2)
            gradient, hvp = f(a, x)  # type: ignore[misc]  # a pair
            return np.allclose(gradient, _gradient(a, x)) and np.allclose(hvp(k), _product(a, x, k))

        assert all(_at_once(work))


def test_packed_arrays_may_be_given_by_threads_at_once() -> None:
    f = cd.grad(QUARTIC).compile(pack="A")

    def work(n: int) -> bool:
        rng = np.random.default_rng(n)
        right = True
        for _ in range(20):
            a, x = _symmetric(4), rng.standard_normal(4)
            right &= np.allclose(f(a, x), _gradient(a, x))
        return right

    assert all(_at_once(work))


def test_what_a_problem_returns_is_of_the_point_that_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    a, known, other = _symmetric(3), np.ones(3), np.arange(3.0)
    p = cd.grad(QUARTIC).problem(A=a, x=known)
    compare = np.array_equal

    def compared(x: np.ndarray, y: np.ndarray) -> bool:
        monkeypatch.setattr(np, "array_equal", compare)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(p.fun, other).result(timeout=60)
        return compare(x, y)

    monkeypatch.setattr(np, "array_equal", compared)
    assert np.isclose(p.fun(known), a.sum())


@pytest.mark.slow
def test_a_problem_may_be_asked_by_threads_at_once() -> None:
    a = _symmetric(3)
    p = cd.grad(QUARTIC).problem(A=a, x=np.ones(3))

    def work(n: int) -> bool:
        rng = np.random.default_rng(n)
        right = True
        for _ in range(50):
            x, k = rng.standard_normal(3), rng.standard_normal(3)
            right &= np.isclose(p.fun(x), x**2 @ a @ x**2)
            right &= np.allclose(p.jac(x), _gradient(a, x))
            right &= np.allclose(p.hessp(x, k), _product(a, x, k))
        return right

    assert all(_at_once(work))
