"""E-graphs in threads of their own: egglog binds an e-graph to the thread that made it, and cannot be interrupted.

A caller hands work to the thread of an e-graph and waits: any thread may do so, one after the other, and the wait
ends with the answer, at a deadline, or by an interruption. Then the thread is left alone, ends when egglog comes back,
and takes its e-graph with it.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from math import inf
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from combdiff.budget import OutOfTime
from combdiff.errors import UnsupportedError
from combdiff.simplify.contraction.engine import load_engine

if TYPE_CHECKING:
    from egglog.bindings import EGraph

    Work = Callable[[EGraph], object]
    Inbox = SimpleQueue[tuple[Work, bool] | None]
    Outbox = SimpleQueue[tuple[object, BaseException | None]]

Result = TypeVar("Result")

STACK = 64 * 2**20
"""Bytes of stack: egglog walks terms by recursion."""

_LONGEST = threading.TIMEOUT_MAX

LAST = 5.0
"""Seconds that the end of a process waits for work that nobody waited for."""


class EGraphThread:
    """A thread with an e-graph that it alone touches; called with what is to be done there.

    >>> thread = EGraphThread()
    >>> thread(lambda egraph: len(egraph.commands() or ""))
    0

    A call raises what the work raises, and OutOfTime at its deadline, on the clock of `time.perf_counter`. After
    OutOfTime or an interruption the thread is `lost`: it is still busy and answers no more. It ends with this object.
    Work in several parts reads from `left` that no caller waits for it any more.
    """

    def __init__(self) -> None:
        _Process.enter()
        self.lost = False
        self.left = False
        self._inbox: Inbox = SimpleQueue()
        self._outbox: Outbox = SimpleQueue()
        queues = self._inbox, self._outbox
        before = threading.stack_size(STACK)
        try:
            # as a daemon: a process may end while egglog is busy
            threading.Thread(target=_serve, args=queues, name="e-graph of combdiff", daemon=True).start()
        finally:
            threading.stack_size(before)
        weakref.finalize(self, self._inbox.put, None).atexit = False

    def __call__(self, work: Callable[[EGraph], Result], deadline: float = inf) -> Result:
        _Process.enter()
        if self.lost:
            raise OutOfTime
        self.lost = True
        self._inbox.put((work, True))
        try:
            result, problem = self._outbox.get(timeout=max(0.0, min(deadline - perf_counter(), _LONGEST)))
        except Empty:
            self.left = True
            raise OutOfTime from None
        except BaseException:
            self.left = True
            raise
        self.lost = False
        if problem is not None:
            raise problem
        return result  # type: ignore[return-value]  # of this work: one is asked for at a time

    def later(self, work: Callable[[EGraph], object]) -> None:
        """Run work for which no caller waits; the next call raises its error."""
        _with_work_left.add(self)
        self._inbox.put((work, False))


_with_work_left: weakref.WeakSet[EGraphThread] = weakref.WeakSet()


@atexit.register
def _finish() -> None:
    """Wait for work that was left for later: egglog must not come back to an interpreter that has ended."""
    if _Process.is_fork:
        return
    for thread in list(_with_work_left):
        with suppress(Exception):
            thread(lambda _: None, perf_counter() + LAST)


def _serve(inbox: Inbox, outbox: Outbox) -> None:
    egraph: EGraph | None = None
    broken: BaseException | None = None
    while (asked := inbox.get()) is not None:
        work, awaited = asked
        result: object = None
        problem = broken
        try:
            if problem is None:
                egraph = egraph or _new()
                result = work(egraph)
        except BaseException as raised:
            # its frames refer to the e-graph, which must not outlive this thread
            problem = raised.with_traceback(None)
        if awaited:
            outbox.put((result, problem))
        else:
            broken = problem
        # what the work refers to is its caller's
        del work, asked, result, problem


def _new() -> EGraph:
    load_engine()
    from egglog.bindings import EGraph

    return EGraph()


class _Process:
    """What is known of this process: whether egglog has run in it, or in the one that it was forked from."""

    has_run = False
    is_fork = False

    @classmethod
    def enter(cls) -> None:
        """Refuse to begin where egglog would wait for threads that a fork has not copied."""
        if cls.is_fork:
            raise UnsupportedError(
                "this process was forked from one in which a derivative was taken, without the threads of egglog",
                remedy='start processes anew: multiprocessing.get_context("spawn"); derivations can be pickled',
            )
        cls.has_run = True

    @classmethod
    def forked(cls) -> None:
        """Called in the child."""
        cls.is_fork = cls.is_fork or cls.has_run


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Process.forked)
