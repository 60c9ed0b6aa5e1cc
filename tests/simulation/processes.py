"""Processes that take turns at every request to the store, in one thread.

Each runs the product's unchanged code in greenlets. A request hands control to the scheduler, which
decides who continues, and what happens to the request. So a schedule is determined by its choices
alone, and can be replayed.

Background work of the product (:mod:`compactor.process.background`) is a strand of its process:
which strand continues is a choice as well.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Self
from unittest.mock import patch

from greenlet import getcurrent, greenlet

from tests.simulation.faults import DIES, Fault
from tests.support.memory_store import Call, Crashed


class _Strand(greenlet):
    """The work of one thread of a process.

    Attributes:
        process: the process that it belongs to.
        call: the request that it wants to make; None for none.
        may_go_on: returns whether it may continue if it wants to make no request.
    """

    def __init__(
        self, process: Process, work: Callable[[Fault], None], scheduler: greenlet | None
    ) -> None:
        super().__init__(work, scheduler)
        self.process = process
        self.call: Call | None = None
        self.may_go_on: Callable[[], bool] = _at_once

    def goes_on(self) -> bool:
        """Return whether it can continue before the next request of its process."""
        if self.dead:
            return False
        return self.may_go_on() if self.call is None else self.process.dead


def _at_once() -> bool:
    return True


class Process:
    """Works on the store until it ends, fails or is killed.

    Args:
        name: its name in a trace.
        work: the function that it runs.
        choose: returns which of a number of strands makes its request next.

    Attributes:
        name: as given.
        waiting: the request that it wants to make; None before the first, and after the end.
        dead: it was killed and makes no more requests.
        ended: it has ended in any way.
        answer: what the function returned.
        error: what the function raised; :class:`Crashed` if it was killed.
    """

    def __init__(
        self, name: str, work: Callable[[], object], choose: Callable[[int], int] = lambda _: 0
    ) -> None:
        self.name = name
        self.waiting: Call | None = None
        self.dead = False
        self.ended = False
        self.answer: object = None
        self.error: BaseException | None = None
        self._work = work
        self._choose = choose
        self._scheduler = getcurrent()
        self._strands = [_Strand(self, self._run, self._scheduler)]
        self._next = self._strands[0]

    def ask(self, call: Call) -> Fault:
        """Wait for a turn; its S3 client calls this before each request."""
        strand = getcurrent()
        assert isinstance(strand, _Strand)
        assert strand.process is self, "a process may not ask from another one's turn"
        fault = Fault.NONE
        if not self.dead:
            strand.call = call
            fault = self._scheduler.switch()
            strand.call = None
        # Another strand may have been killed meanwhile, which kills the process.
        if self.dead:
            raise Crashed(f"already dead at {call}")
        self.dead = fault in DIES
        return fault

    def begin(self, work: Callable[[Fault], None]) -> _Strand:
        """Start work in a new strand; the fault that it is passed is ``Fault.NONE``."""
        strand = _Strand(self, work, self._scheduler)
        # First, so that the dullest choice is to do it as soon as it is submitted.
        self._strands.insert(0, strand)
        return strand

    def wait(self, done: Callable[[], bool]) -> None:
        """Let the calling strand wait until another one has done something."""
        strand = getcurrent()
        assert isinstance(strand, _Strand)
        while not done():
            strand.may_go_on = done
            self._scheduler.switch()
        strand.may_go_on = _at_once

    def turn(self, fault: Fault = Fault.NONE) -> None:
        """Make the waiting request, and continue until every strand wants to make the next one."""
        self._next.switch(fault)
        while ready := [one for one in self._strands if one.goes_on()]:
            ready[0].switch(Fault.NONE)
        self._strands = [one for one in self._strands if not one.dead]
        if self.ended:
            assert not self._strands, f"{self.name} has ended, and a thread of it goes on"
            self.waiting = None
            return
        asking = [one for one in self._strands if one.call is not None]
        assert asking, f"the threads of {self.name} wait for each other"
        self._next = asking[self._choose(len(asking)) if len(asking) > 1 else 0]
        self.waiting = self._next.call

    def _run(self, _: Fault) -> None:
        try:
            self.answer = self._work()
        except (Exception, Crashed) as error:
            self.error = error
        self.ended = True


class Inline:
    """A thread pool without threads: work is done as soon as it is submitted.

    The threads that write an output only overlap work; its order per output is the same without
    them, and the scheduler could not control a thread.
    """

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def submit(self, work: Callable[..., Any], /, *given: Any) -> Future[Any]:
        done: Future[Any] = Future()
        _carry_out(done, work, *given)
        return done

    def map(self, work: Callable[..., Any], /, *given: Iterable[Any]) -> Iterator[Any]:
        yield from map(work, *given)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def shutdown(self, *_: object, **__: object) -> None:
        pass


def _carry_out(done: Future[Any], work: Callable[..., Any], /, *given: Any) -> None:
    try:
        done.set_result(work(*given))
    except (Exception, Crashed) as error:
        done.set_exception(error)


class _Awaited(Future[Any]):
    """The future of a strand's work; the strand that asks for its result waits."""

    def __init__(self, process: Process) -> None:
        super().__init__()
        self._process = process

    def result(self, timeout: float | None = None) -> Any:
        self._process.wait(self.done)
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._process.wait(self.done)
        return super().exception(timeout)


class OneStrand(Inline):
    """A pool of one thread, which is a strand of the process that created it."""

    def __init__(self, threads: int, **_: object) -> None:
        super().__init__()
        assert threads == 1
        maker = getcurrent()
        self._process = maker.process if isinstance(maker, _Strand) else None
        self._tasks: deque[tuple[Future[Any], Callable[..., Any]]] = deque()
        self._strand: _Strand | None = None

    def submit(self, work: Callable[..., Any], /, *given: Any) -> Future[Any]:
        if self._process is None:
            return super().submit(work, *given)
        done = _Awaited(self._process)
        self._tasks.append((done, lambda: work(*given)))
        if self._strand is None or self._strand.dead:
            self._strand = self._process.begin(self._do_all)
        return done

    def _do_all(self, _: Fault) -> None:
        while self._tasks:
            _carry_out(*self._tasks.popleft())

    def shutdown(self, *_: object, **__: object) -> None:
        strand = self._strand
        if self._process is not None and strand is not None:
            self._process.wait(lambda: strand.dead)


@contextmanager
def without_threads() -> Iterator[None]:
    """Make the product work in one thread within the block."""
    with (
        patch("compactor.discovery.parallel.ThreadPoolExecutor", Inline),
        patch("compactor.outputs.output_writer.ThreadPoolExecutor", Inline),
        patch("compactor.process.background.ThreadPoolExecutor", OneStrand),
        patch("compactor.sinks.unnamed_outputs.ThreadPoolExecutor", Inline),
    ):
        yield
