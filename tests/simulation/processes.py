"""Processes that take turns at every request to the store, in one thread.

Each runs unchanged code of the product in a greenlet. A request hands control to the scheduler,
which decides who goes on, and what becomes of the request. So a schedule is decided by its
choices alone, and can be played again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Self
from unittest.mock import patch

from greenlet import getcurrent, greenlet

from tests.simulation.faults import Fault
from tests.support.memory_store import Call, Crashed


class Process:
    """Something that works on the store until it ends, fails or is killed.

    Attributes:
        name: how a trace calls it.
        waiting: the request it wants to make; None before the first, and after the end.
        ended: nothing more comes of it.
        answer: what it returned.
        error: what it raised; :class:`Crashed` when it was killed.
    """

    def __init__(self, name: str, work: Callable[[], object]) -> None:
        self.name = name
        self.waiting: Call | None = None
        self.ended = False
        self.answer: object = None
        self.error: BaseException | None = None
        self._work = work
        self._greenlet = greenlet(self._run)

    def ask(self, call: Call) -> Fault:
        """Called by its client of S3 before each request: wait for a turn."""
        assert getcurrent() is self._greenlet, "a process may not ask from another one's turn"
        scheduler = self._greenlet.parent
        assert scheduler is not None
        self.waiting = call
        fault: Fault = scheduler.switch()
        self.waiting = None
        return fault

    def turn(self, fault: Fault = Fault.NONE) -> None:
        """Let it make its request, and go on until it wants the next one."""
        self._greenlet.switch(fault)

    def _run(self, _: Fault) -> None:
        try:
            self.answer = self._work()
        except (Exception, Crashed) as error:
            self.error = error
        self.ended = True


class Inline:
    """A thread pool without threads: work is done as soon as it is handed over.

    The product's threads only overlap its work; what they do in which order for one output is
    the same without them, and a thread would take its turns behind the scheduler's back.
    """

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def submit(self, work: Callable[..., Any], /, *given: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(work(*given))
        except (Exception, Crashed) as error:
            done.set_exception(error)
        return done

    def map(self, work: Callable[..., Any], /, *given: Iterable[Any]) -> Iterator[Any]:
        yield from map(work, *given)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def shutdown(self, *_: object, **__: object) -> None:
        pass


@contextmanager
def without_threads() -> Iterator[None]:
    """For the length of the block the product's writers and publishers use no threads."""
    with (
        patch("compactor.outputs.parts.ThreadPoolExecutor", Inline),
        patch("compactor.outputs.pending.ThreadPoolExecutor", Inline),
        patch("compactor.beside.ThreadPoolExecutor", Inline),
        patch("compactor.tables.leftover.ThreadPoolExecutor", Inline),
    ):
        yield
