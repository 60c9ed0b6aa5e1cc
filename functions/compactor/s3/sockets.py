"""The sockets that libcurl waits for, and a bell that ends the wait."""

from __future__ import annotations

import math
import select
import socket
import weakref
from contextlib import suppress
from typing import Any

from compactor.s3.curl_handle import pycurl

_EVENTS = {1: select.POLLIN, 2: select.POLLOUT, 3: select.POLLIN | select.POLLOUT}
_HAS_EPOLL = hasattr(select, "epoll")
# Of time-outs: poll takes milliseconds.
_UNIT = 1 if _HAS_EPOLL else 1_000
_FAILED = select.POLLERR | select.POLLHUP


class Sockets:
    """Waits for libcurl; used by one thread, but for :meth:`ring`."""

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
        """Hear from libcurl that it waits for a socket, or no longer; ``what`` says for what."""
        if what == pycurl.POLL_REMOVE:
            if number in self._watched:
                self._watched.discard(number)
                # One that is closed already is not watched any more.
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
            seconds: at most.

        Returns:
            The sockets that are ready, and what for, in libcurl's numbers.
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
        """End the wait; from any thread."""
        # A bell that is full was not heard yet.
        with suppress(BlockingIOError):
            self._bell.send(b"\0")
