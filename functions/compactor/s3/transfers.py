"""Sends requests by libcurl: one thread, one connection pool, hundreds of concurrent transfers.

The thread starts with the first request and ends soon after the last; connections stay open.
"""

from __future__ import annotations

import heapq
import math
import os
import select
import socket
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

from compactor.s3.curl_handle import Done, Handle, Request, failure, pycurl

_EVENTS = {1: select.POLLIN, 2: select.POLLOUT, 3: select.POLLIN | select.POLLOUT}
_HAS_EPOLL = hasattr(select, "epoll")
# Unit of timeouts: epoll takes seconds, poll milliseconds.
_UNIT = 1 if _HAS_EPOLL else 1_000
_FAILED = select.POLLERR | select.POLLHUP


class Sockets:
    """Waits for libcurl's sockets. Used by one thread, except :meth:`ring`."""

    def __init__(self) -> None:
        self._poll: Any = select.epoll() if _HAS_EPOLL else select.poll()
        self._bell, self._heard = socket.socketpair()
        self._bell.setblocking(False)
        self._heard.setblocking(False)
        self._poll.register(self._heard.fileno(), select.POLLIN)
        self._watched: set[int] = set()
        for one in (self._bell, self._heard):
            weakref.finalize(self, one.close)

    def on_socket(self, what: int, number: int, *_: object) -> None:
        """Watch a socket for the events in ``what``, or stop watching it; a callback of libcurl."""
        if what == pycurl.POLL_REMOVE:
            if number in self._watched:
                self._watched.discard(number)
                # A closed socket is no longer watched.
                with suppress(OSError, KeyError):
                    self._poll.unregister(number)
        elif number in self._watched:
            self._poll.modify(number, _EVENTS[what])
        else:
            self._watched.add(number)
            self._poll.register(number, _EVENTS[what])

    def wait(self, seconds: float) -> list[tuple[int, int]]:
        """Wait for sockets or the bell.

        Args:
            seconds: maximum wait.

        Returns:
            The sockets that are ready, each with its events as libcurl's flags.
        """
        found, bell = [], self._heard.fileno()
        most = None if seconds == math.inf else max(0.0, seconds) * _UNIT
        for number, events in self._poll.poll(most):
            if number == bell:
                self._heard.recv(4096)
                continue
            what = pycurl.CSELECT_IN if events & select.POLLIN else 0
            what |= pycurl.CSELECT_OUT if events & select.POLLOUT else 0
            found.append((number, what | (pycurl.CSELECT_ERR if events & _FAILED else 0)))
        return found

    def ring(self) -> None:
        """End the wait. May be called from any thread."""
        # If the buffer is full, the waiting thread is already notified.
        with suppress(BlockingIOError):
            self._bell.send(b"\0")


# How long the thread waits for another request before it ends.
_LINGER_SECONDS = 0.05
# S3 closes idle connections by then; a Lambda function frozen meanwhile does not notice.
_IDLE_SECONDS = 30.0
_MOST_IDLE = 512
# Connections inherited by fork. They are kept: closing them here would end them in the parent.
_left_alone: list[Any] = []


class Transfers:
    """Sends requests and calls back with their answers; thread safe.

    All callbacks run in one thread, so they must not block.
    """

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._calls: deque[Callable[[], object]] = deque()
        self._timers: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = count()
        self._live: dict[Any, Handle] = {}
        self._idle: list[Handle] = []
        self._sockets = Sockets()
        self._multi: Any = None
        self._used_at = 0.0

    def call(self, act: Callable[[], object]) -> None:
        """Run ``act`` in the thread of the transfers; it must not raise."""
        if self._process != os.getpid():
            _left_alone.append((self._multi, self._live, self._idle, self._sockets))
            self._reset()
        with self._lock:
            self._calls.append(act)
            if self._thread is not None:
                self._sockets.ring()
                return
            thread = self._thread = threading.Thread(target=self._work, name="transfers")
            try:
                thread.start()
            except RuntimeError:
                self._thread = None
                self._calls.remove(act)
                raise

    def wait_for(self, act: Callable[[], object]) -> None:
        """Run ``act`` in the thread of the transfers, and return when it has run."""
        with self._lock:
            # Without a thread nothing is in flight, and ``act`` can run here. At the end of the
            # process no thread can be started.
            is_idle = self._thread is None and not self._calls
        if is_idle or threading.current_thread() is self._thread:
            act()
            return
        ran = threading.Event()

        def run() -> None:
            try:
                act()
            finally:
                ran.set()

        self.call(run)
        ran.wait()

    # All methods below run in the thread of the transfers.

    def start(self, request: Request, done: Done) -> Handle | None:
        """Start a transfer; return its handle, for :meth:`cancel`.

        ``done`` is called later; or immediately with an error, and None is returned.
        """
        try:
            handle = self._idle.pop() if self._idle else Handle()
            handle.set(request, done)
            self._multi.add_handle(handle.curl)
        except Exception as error:
            done(error)
            return None
        self._live[handle.curl] = handle
        return handle

    def cancel(self, handle: Handle) -> None:
        """Abort a transfer without calling back."""
        if self._live.pop(handle.curl, None) is not None:
            self._multi.remove_handle(handle.curl)
            handle.clear()

    def later(self, seconds: float, act: Callable[[], object]) -> None:
        """Run ``act`` after ``seconds``."""
        heapq.heappush(self._timers, (time.monotonic() + seconds, next(self._numbers), act))

    def _work(self) -> None:
        while True:
            try:
                if not self._turn():
                    return
            except Exception as error:
                self._fail(error)
                if self._ends():
                    return

    def _turn(self) -> bool:
        """Do what is due; return False if nothing came for a while and the thread is to end."""
        if not self._live:
            self._renew()
        while self._calls:
            self._calls.popleft()()
        while self._timers and self._timers[0][0] <= time.monotonic():
            heapq.heappop(self._timers)[2]()
        is_idle = not self._live and not self._timers
        heard = self._sockets.wait(_LINGER_SECONDS if is_idle else self._patience())
        for number, events in heard:
            self._multi.socket_action(number, events)
        # Polled, because a timer callback would take the interpreter lock several times a transfer.
        if self._multi.timeout() == 0:
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        self._finish()
        return not (is_idle and self._ends())

    def _patience(self) -> float:
        """Return the seconds until libcurl or a timer is due."""
        milliseconds = self._multi.timeout()
        seconds = milliseconds / 1000 if milliseconds >= 0 else math.inf
        return min(seconds, self._timers[0][0] - time.monotonic()) if self._timers else seconds

    def _ends(self) -> bool:
        with self._lock:
            if self._calls:
                return False
            self._thread = None
            return True

    def _renew(self) -> None:
        """Drop connections that were idle for too long.

        Measured by the wall clock, which advances while the process is frozen.
        """
        if self._multi is not None and 0 <= time.time() - self._used_at < _IDLE_SECONDS:
            return
        if self._multi is not None:
            self._multi.close()
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, _MOST_IDLE)
        self._multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_NOTHING)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._sockets.on_socket)
        self._used_at = time.time()

    def _finish(self) -> None:
        """Call back for the transfers that have ended."""
        if not self._live:
            return
        queued = 1
        while queued:
            queued, good, bad = self._multi.info_read()
            for curl in good:
                self._end(curl, None)
            for curl, code, text in bad:
                self._end(curl, failure(code, text))
        if not self._live:
            self._used_at = time.time()

    def _end(self, curl: Any, error: Exception | None) -> None:
        handle = self._live.pop(curl)
        self._multi.remove_handle(curl)
        done, answer = handle.done, error or handle.received()
        handle.clear()
        if len(self._idle) < _MOST_IDLE:
            self._idle.append(handle)
        done(answer)

    def _fail(self, error: Exception) -> None:
        """Fail all transfers in flight with an unexpected error."""
        self._multi, live, self._live = None, self._live, {}
        self._sockets = Sockets()
        for handle in live.values():
            with suppress(Exception):
                handle.done(error)
