"""A run of GETs on one connection, and what an answer to one of them says of its source."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from ssl import SSLWantReadError
from typing import TYPE_CHECKING

from compactor.errors import SourceChanged, UnreadableSource
from compactor.model import SourceObject
from compactor.ports import SourceBody
from compactor.stores.direct import GetWay
from compactor.stores.fast_get import judged_answer
from compactor.stores.plain_answers import OK, Answered, NotPlain, answer_in

if TYPE_CHECKING:
    from http.client import HTTPConnection

_RECEIVED_AT_ONCE = 64 * 1024

Bodies = list[SourceBody]


class Run:
    """Sources that are read one after the other, with one permit.

    Attributes:
        sources: to be read.
        bodies: of the first of them, so far.
        way: where they are asked for.
        future: gets the bodies of all.
        began: when it got its permit, by the limiter's clock.
        sent: how many GETs went out.
    """

    __slots__ = ("began", "bodies", "future", "sent", "sources", "way")

    def __init__(self, sources: Sequence[SourceObject], way: GetWay) -> None:
        self.sources = sources
        self.bodies: Bodies = []
        self.way = way
        self.future: Future[Bodies] = Future()
        self.began = 0.0
        self.sent = 0

    @property
    def next(self) -> SourceObject:
        """The source whose turn it is."""
        return self.sources[len(self.bodies)]

    def is_done(self) -> bool:
        """Whether all is read; what has no bytes is not asked for."""
        while len(self.bodies) < len(self.sources) and not self.next.size:
            self.bodies.append(SourceBody(self.next, content=b""))
        return len(self.bodies) == len(self.sources)

    def take(self, found: Answered) -> None:
        """The answer to the GET of the next source.

        Raises:
            NotPlain: it is the success of a store of another kind.
            ConnectionError: it is that of another object, or of other bytes.
            CompactorError: something is wrong that is no matter of this source; it is
                :class:`~compactor.stores.translate.Again` where another try may help.
        """
        self.bodies.append(_body_of(self.next, found))

    def join(self, rest: Future[Bodies]) -> None:
        """Be done with what was read in another way behind the bodies so far."""
        if rest.cancelled():
            self.future.cancel()
        elif (error := rest.exception()) is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(self.bodies + rest.result())


class Line:
    """A connection that does not wait.

    Attributes:
        run: what is read on it; None while it is free.
        due: until when the answer may come, by the monotonic clock.
    """

    __slots__ = ("_arrived", "connection", "due", "run")

    def __init__(self, connection: HTTPConnection) -> None:
        connection.sock.setblocking(False)
        self.connection = connection
        self.run: Run | None = None
        self.due = 0.0
        self._arrived = b""

    def ask(self, run: Run, due: float) -> bool:
        """Send a GET of the next source; whether all of it went out."""
        self.run, self.due = run, due
        try:
            request = run.way.request(run.next.key, run.next.etag)
            whole: bool = self.connection.sock.send(request) == len(request)
        except OSError:
            return False
        run.sent += whole
        return whole

    def hear(self) -> Answered | None:
        """The answer; None as long as more is to come.

        Raises:
            NotPlain: see :func:`compactor.stores.plain_answers.answer_in`.
            OSError: there is none, or none that is understood.
        """
        found = None
        try:
            # TLS may have more than the socket tells of.
            while found is None:
                piece = self.connection.sock.recv(_RECEIVED_AT_ONCE)
                if not piece:
                    raise ConnectionError("the other side ended it")
                if self.run is None:
                    # Kept, it would be the beginning of the next answer.
                    raise ConnectionError("an answer that nobody asked for")
                self._arrived += piece
                found = answer_in(self._arrived, self.run.next.size)
        except (BlockingIOError, SSLWantReadError):
            return None
        # A connection that waits for its next source holds nothing of the last.
        self._arrived = b""
        return found


def _body_of(source: SourceObject, found: Answered) -> SourceBody:
    if found.status == OK:
        if not found.etag:
            raise NotPlain
        if found.etag != source.etag.lower():
            raise ConnectionError("an answer with another ETag")
        return SourceBody(source, found.body, attributes=found.attributes)
    error = judged_answer(source, found.status, found.body.decode("utf-8", "replace"))
    if isinstance(error, SourceChanged | UnreadableSource):
        return SourceBody(source, error=error)
    raise error
