"""Whole GETs of small objects, hundreds at once, by one thread.

With a thread for each, most of a GET's CPU time goes into waiting: for the interpreter lock, twice
and among hundreds, and for the threads of the library that asks. Here one thread sends and receives
for all of them. It knows the plain success, and what is refused for good; whatever else comes of a
GET, or nothing in time, leaves the source to the way that asks again
(:mod:`compactor.stores.sources`).
"""

from __future__ import annotations

import math
import re
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from compactor.errors import CompactorError, TransientStoreError
from compactor.model import SourceObject
from compactor.stores.direct import Direct, GetWay
from compactor.stores.get_runs import Bodies, Line, Run
from compactor.stores.plain_answers import NotPlain
from compactor.stores.translate import Again

if TYPE_CHECKING:
    from http.client import HTTPConnection

    from compactor.stores.base import S3Base

# Of larger ones most of the CPU time is that of their bytes, which several threads share.
MOST_BYTES = 256 * 1024
# For one GET, and for a connection; more patience is the other way's.
_GET_SECONDS = 10.0
_LOOK_SECONDS = 0.5
_PERMIT_SECONDS = 0.02
_CONNECTING = 32
_PLAIN_ETAG = re.compile(r"[0-9A-Za-z-]+")

#: Reads a run of sources in another way.
Otherwise = Callable[[Sequence[SourceObject]], "Future[Bodies]"]


class ManyGets:
    """Reads runs of small sources of one bucket; to be closed.

    Args:
        store: whose limits and counts these reads share.
        direct: knows where they go.
        takes: whether a key is asked for exactly as it is.
        otherwise: reads what is not read here.
    """

    def __init__(
        self, store: S3Base, direct: Direct, takes: Callable[[str], bool], otherwise: Otherwise
    ) -> None:
        self._store = store
        self._direct = direct
        self._takes = takes
        self._otherwise = otherwise
        self._way: GetWay | None = None
        self._waiting: deque[Run] = deque()
        self._under_way: set[Run] = set()
        self._connected: deque[tuple[Run, HTTPConnection | None]] = deque()
        # Those that wait before they are asked again in the other way, and until when.
        self._resting: list[tuple[float, Run]] = []
        self._lines: set[Line] = set()
        self._free: list[Line] = []
        self._look_at = 0.0
        self._closed = False
        self._bell, self._heard = socket.socketpair()
        self._bell.setblocking(False)
        self._heard.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._connecting = ThreadPoolExecutor(_CONNECTING, thread_name_prefix="read-connect")
        self._thread: threading.Thread | None = None

    def submit(self, sources: Sequence[SourceObject]) -> Future[Bodies]:
        """Begin to read a run as soon as there is a permit."""
        way = self._way_to(sources)
        if way is None:
            return self._otherwise(sources)
        run = Run(sources, way)
        self._waiting.append(run)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="read-many")
            self._thread.start()
        self._ring()
        if self._closed:
            self._fail_waiting(RuntimeError("the thread that reads has ended"))
        return run.future

    def close(self) -> None:
        """End the thread; what is under way is given up."""
        self._closed = True
        self._ring()
        if self._thread is not None:
            self._thread.join()
        self._connecting.shutdown(cancel_futures=True)
        for line in self._lines:
            if line.run is None and self._way is not None:
                self._direct.connections.give_back(self._way.origin, line.connection)
            else:
                line.connection.close()
        for _, connection in self._connected:
            if connection is not None:
                connection.close()
        self._selector.close()
        self._bell.close()
        self._heard.close()

    def _way_to(self, sources: Sequence[SourceObject]) -> GetWay | None:
        """Where all of these are asked for; None where they are not read here."""
        if not all(
            one.size <= MOST_BYTES and self._takes(one.key) and _PLAIN_ETAG.fullmatch(one.etag)
            for one in sources
        ):
            return None
        if self._way is None:
            self._way = self._direct.way_of_gets(sources[0].bucket)
        way = self._way
        usual = way is not None and not way.is_unusual and way.bucket == sources[0].bucket
        return way if usual else None

    def _ring(self) -> None:
        # A bell that is full was not heard yet.
        with suppress(BlockingIOError):
            self._bell.send(b"\0")

    def _work(self) -> None:
        why: BaseException = RuntimeError(
            "no more is read: the reader was closed, or its process ends"
        )
        try:
            self._selector.register(self._heard, selectors.EVENT_READ)
            # Whoever forgets to close it does not keep the process from its end.
            while not self._closed and threading.main_thread().is_alive():
                self._turn()
        except BaseException as error:
            why = error
        self._closed = True
        while self._under_way:
            run = next(iter(self._under_way))
            # Its permit is the store's, which goes on without this reader.
            self._count(run, good=False)
            run.future.set_exception(why)
        self._fail_waiting(why)

    def _turn(self) -> None:
        self._begin()
        for key, _ in self._selector.select(self._patience()):
            if key.data is None:
                self._heard.recv(4096)
            else:
                self._hear(key.data)
        self._look_at_times()

    def _begin(self) -> None:
        """Go on with the runs that have a connection now, and begin as many as may be."""
        while self._connected:
            self._take_connection(*self._connected.popleft())
        while self._waiting:
            if self._store.retries.reads_over:
                over = TransientStoreError("the invocation ends, and not all sources are read")
                self._waiting.popleft().future.set_exception(over)
                continue
            began = self._store.limiter.begin() if self._may_begin() else None
            if began is None:
                return
            run = self._waiting.popleft()
            run.began = began
            self._under_way.add(run)
            self._connect(run)

    def _may_begin(self) -> bool:
        """What answers look like is asked by one run alone."""
        return not self._under_way or self._waiting[0].way.is_known

    def _connect(self, run: Run) -> None:
        if run.is_done():
            self._end(run)
        elif run.way.is_unusual:
            self._leave(run)
        elif self._free:
            self._ask(self._free.pop(), run)
        else:
            self._connecting.submit(self._open, run)

    def _open(self, run: Run) -> None:
        """In a thread of its own, which may wait."""
        connection = None
        # Why there is none, whatever it is, the other way will find out.
        with suppress(Exception):
            connection = self._direct.connections.take(run.way.origin, _GET_SECONDS)
        self._connected.append((run, connection))
        self._ring()

    def _take_connection(self, run: Run, connection: HTTPConnection | None) -> None:
        if connection is None:
            # What never came to an answer is not tried by all of them.
            run.way.is_unusual |= not run.way.is_known
            self._leave(run)
            return
        line = Line(connection)
        self._lines.add(line)
        self._selector.register(connection.sock, selectors.EVENT_READ, line)
        self._ask(line, run)

    def _ask(self, line: Line, run: Run) -> None:
        if not line.ask(run, time.monotonic() + _GET_SECONDS):
            self._drop(line)
            self._leave(run)

    def _hear(self, line: Line) -> None:
        if line not in self._lines:
            # Dropped since it was heard.
            return
        run = line.run
        try:
            found = line.hear()
            if found is None or run is None:
                return
            run.take(found)
        except (OSError, NotPlain, CompactorError) as error:
            self._give_up(line, error)
            return
        run.way.is_known = True
        self._go_on(line, run, stays=found.stays)

    def _go_on(self, line: Line, run: Run, *, stays: bool) -> None:
        if not stays:
            self._drop(line)
            self._connect(run)
        elif run.is_done():
            line.run = None
            self._free.append(line)
            self._end(run)
            self._begin()
        else:
            self._ask(line, run)

    def _give_up(self, line: Line, error: Exception) -> None:
        """End a connection, and leave its run to the other way or to what is wrong for good."""
        run = line.run
        self._drop(line)
        if run is None:
            return
        run.way.is_known = True
        # Where successes are of another kind, all of them are.
        run.way.is_unusual |= isinstance(error, NotPlain)
        if isinstance(error, Again):
            wait = self._store.retries.wait_after(error, 1)
            self._resting.append((time.monotonic() + wait, run))
        elif isinstance(error, CompactorError):
            self._count(run, good=False)
            run.future.set_exception(error)
        else:
            self._leave(run)

    def _patience(self) -> float:
        """How long nothing need be done where nothing is heard."""
        rested = min((until for until, _ in self._resting), default=math.inf)
        # Permits that others give back are not heard of.
        look = _LOOK_SECONDS if self._under_way or not self._waiting else _PERMIT_SECONDS
        return max(0.0, min(look, rested - time.monotonic()))

    def _look_at_times(self) -> None:
        """Leave those that have rested, and those of which nothing came."""
        now = time.monotonic()
        if self._resting:
            rested = [run for until, run in self._resting if until <= now]
            self._resting = [one for one in self._resting if one[0] > now]
            for run in rested:
                self._leave(run)
        if now < self._look_at:
            return
        self._look_at = now + _LOOK_SECONDS
        for line in [one for one in self._lines if one.run is not None and one.due < now]:
            self._give_up(line, TimeoutError())

    def _drop(self, line: Line) -> None:
        self._selector.unregister(line.connection.sock)
        self._lines.discard(line)
        if line in self._free:
            self._free.remove(line)
        line.connection.close()

    def _leave(self, run: Run) -> None:
        """Let the rest of a run be read in the other way."""
        rest = self._otherwise(run.sources[len(run.bodies) :])
        self._count(run, good=False)
        rest.add_done_callback(run.join)

    def _end(self, run: Run) -> None:
        # Of sources without bytes nothing was asked, so their time tells nothing.
        self._count(run, good=run.sent > 0)
        run.future.set_result(run.bodies)

    def _count(self, run: Run, *, good: bool) -> None:
        self._under_way.discard(run)
        self._store.limiter.end(run.began, max(1, run.sent), good=good)
        if run.sent:
            self._store.requests.add("GET", run.sent)
        read = sum(len(body.content or b"") for body in run.bodies)
        if read:
            self._store.requests.add("bytes_read", read)

    def _fail_waiting(self, error: BaseException) -> None:
        """Hand an error to all whose run has not begun; two threads may do so at once."""
        with suppress(IndexError):
            while True:
                self._waiting.popleft().future.set_exception(error)
