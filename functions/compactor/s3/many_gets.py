"""Reads whole sources by hundreds of concurrent GETs, in libcurl's single thread.

With a thread per GET, most of the CPU time of a small GET is spent on the interpreter lock. Only
plain successes and permanent refusals are handled here. After any other answer, or none in time,
the source is left to the threaded reader, which retries (:mod:`compactor.s3.sources`).
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, NamedTuple

from compactor.attributes import Attributes, from_headers, of_type
from compactor.errors import SourceChanged, TransientStoreError, UnreadableSource
from compactor.model import SourceObject
from compactor.ports import SourceBody
from compactor.s3.curl_handle import Handle, Keys, Received, Request
from compactor.s3.refused_reads import is_listed, judged_answer
from compactor.s3.retries import LEAST_SECONDS
from compactor.s3.routes import Route, Routes, takes
from compactor.s3.transfers import Transfers
from compactor.s3.translate import Again
from compactor.sizes import GET_BYTES

if TYPE_CHECKING:
    from compactor.s3.base import S3Base

# Timeout of one GET, plus the time for its size. The threaded reader waits longer.
_GET_SECONDS = 10.0
_BYTES_PER_SECOND = 128 * 1024
_PERMIT_SECONDS = 0.02
_OK, _REFUSED = 200, 400
# Headers with more attributes of an object than its type.
_OF_OBJECT = (b"x-amz-meta-", b"content-encoding")
_TYPE = re.compile(rb"\r\ncontent-type:[ \t]*([^\r\n]*)", re.IGNORECASE)
_PLAIN_ETAG = re.compile(r"[0-9A-Za-z-]+")

Bodies = list[SourceBody]
#: Starts to read a run of sources by the threaded reader.
Otherwise = Callable[[Sequence[SourceObject]], "Future[Bodies]"]


class Curl(NamedTuple):
    """The libcurl client of a store.

    Attributes:
        routes: where requests are sent.
        transfers: sends them.
    """

    routes: Routes
    transfers: Transfers


class _Run:
    """Sources that are read sequentially, with one permit.

    Attributes:
        bodies: the bodies read so far.
        future: set to the bodies of all sources.
        began: when the permit was taken, by the limiter's clock.
        sent: number of GETs sent.
        transfer: the transfer in flight.
    """

    __slots__ = ("began", "bodies", "future", "route", "sent", "sources", "transfer")

    def __init__(self, sources: Sequence[SourceObject], route: Route) -> None:
        self.sources = sources
        self.route = route
        self.bodies: Bodies = []
        self.future: Future[Bodies] = Future()
        self.began = 0.0
        self.sent = 0
        self.transfer: Handle | None = None

    @property
    def next(self) -> SourceObject:
        """The next source to read."""
        return self.sources[len(self.bodies)]

    @property
    def rest(self) -> Sequence[SourceObject]:
        """The sources not read yet."""
        return self.sources[len(self.bodies) :]

    def is_done(self) -> bool:
        """Return whether all sources are read. Empty ones are not requested."""
        while len(self.bodies) < len(self.sources) and not self.next.size:
            self.bodies.append(SourceBody(self.next, content=b""))
        return len(self.bodies) == len(self.sources)

    def join(self, rest: Future[Bodies]) -> None:
        """Complete the run with the bodies of ``rest``, read by the threaded reader."""
        if rest.cancelled():
            self.future.cancel()
        elif (error := rest.exception()) is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(self.bodies + rest.result())


class ManyGets:
    """Reads runs of sources; must be closed.

    Args:
        store: the store whose limits and counts are used.
        curl: sends the requests.
        otherwise: starts the threaded reader, for what is not read here.
    """

    def __init__(self, store: S3Base, curl: Curl, otherwise: Otherwise) -> None:
        self._store = store
        self._routes, self._transfers = curl
        self._otherwise = otherwise
        # The caller appends; the thread of the transfers does all else.
        self._waiting: deque[_Run] = deque()
        # Used by that thread alone.
        self._under_way: set[_Run] = set()
        self._closed: Exception | None = None
        self._looks_again = False

    def submit(self, sources: Sequence[SourceObject]) -> Future[Bodies]:
        """Queue a run to be read as soon as there is a permit; return the future bodies."""
        route = self._route_to(sources)
        if route is None:
            return self._otherwise(sources)
        run = _Run(sources, route)
        self._waiting.append(run)
        self._transfers.call(self._begin)
        return run.future

    def close(self) -> None:
        """Abandon the runs in flight; returns once their permits are returned."""
        self._transfers.wait_for(self._close)

    def _route_to(self, sources: Sequence[SourceObject]) -> Route | None:
        """Return the route of a run; None if it must be read by the threaded reader."""
        bucket = sources[0].bucket
        usual = all(
            one.size <= GET_BYTES
            and one.bucket == bucket
            and takes(one.key)
            and _PLAIN_ETAG.fullmatch(one.etag)
            for one in sources
        )
        return self._routes.of(bucket) if usual else None

    # All methods below run in the thread of the transfers.

    def _begin(self) -> None:
        """Start as many waiting runs as there are permits."""
        while self._waiting:
            error = self._closed
            if self._store.retries.reads_over:
                error = TransientStoreError("the invocation ends, and not all sources are read")
            if error is not None:
                self._waiting.popleft().future.set_exception(error)
                continue
            began = self._store.limiter.begin()
            if began is None:
                # The end of one of our runs starts the next. Permits that others return are not
                # announced, so look again later.
                if not self._under_way and not self._looks_again:
                    self._looks_again = True
                    self._transfers.later(_PERMIT_SECONDS, self._look_again)
                return
            run = self._waiting.popleft()
            run.began = began
            self._under_way.add(run)
            self._ask(run)

    def _look_again(self) -> None:
        self._looks_again = False
        self._begin()

    def _ask(self, run: _Run) -> None:
        """Request the next source of a run, or end the run."""
        if run.is_done():
            self._end(run)
            return
        try:
            keys = self._routes.keys()
        except Exception:
            # A credential provider may raise anything. The threaded reader will report it.
            self._leave(run)
            return
        run.sent += 1
        request = self._request(run, keys)
        run.transfer = self._transfers.start(request, lambda answer: self._hear(run, answer))

    def _request(self, run: _Run, keys: Keys) -> Request:
        source = run.next
        headers = [f'If-Match: "{source.etag}"'.encode()]
        if keys.token:
            headers.append(f"x-amz-security-token: {keys.token}".encode())
        seconds, retries = _GET_SECONDS + source.size // _BYTES_PER_SECOND, self._store.retries
        if retries.reads_end_at < math.inf:
            left = int(retries.reads_end_at - retries.patience.clock())
            seconds = min(seconds, max(LEAST_SECONDS, left))
        route, url = run.route, run.route.url(source.key)
        return Request(route.site, keys, url, headers, seconds, source.size)

    def _hear(self, run: _Run, answer: Received | Exception) -> None:
        run.transfer = None
        try:
            body = _body_of(run.next, answer)
        except Again as again:
            # Notifies the limiter; the threaded reader retries after the wait.
            wait = self._store.retries.wait_after(again, 1)
            self._transfers.later(wait, lambda: self._leave(run))
        except Exception as error:
            self._fail(run, error)
        else:
            if body is None:
                self._leave(run)
                return
            run.bodies.append(body)
            self._ask(run)
            if run not in self._under_way:
                self._begin()

    def _leave(self, run: _Run) -> None:
        """Leave the rest of a run to the threaded reader."""
        if run not in self._under_way:
            return
        try:
            rest = self._otherwise(run.rest)
        except RuntimeError as error:
            self._fail(run, error)
            return
        self._count(run, good=False)
        rest.add_done_callback(run.join)
        self._begin()

    def _fail(self, run: _Run, error: Exception) -> None:
        self._count(run, good=False)
        run.future.set_exception(error)
        self._begin()

    def _end(self, run: _Run) -> None:
        # A run of empty sources made no request, so its duration means nothing.
        self._count(run, good=run.sent > 0)
        run.future.set_result(run.bodies)

    def _count(self, run: _Run, *, good: bool) -> None:
        self._under_way.discard(run)
        self._store.limiter.end(run.began, max(1, run.sent), good=good)
        if run.sent:
            self._store.requests.add("GET", run.sent)
        read = sum(len(body.content or b"") for body in run.bodies)
        if read:
            self._store.requests.add("bytes_read", read)

    def _close(self) -> None:
        error = self._closed = RuntimeError("the reader was closed")
        for run in list(self._under_way):
            if run.transfer is not None:
                self._transfers.cancel(run.transfer)
            self._count(run, good=False)
            run.future.set_exception(error)
        self._begin()


def _body_of(source: SourceObject, answer: Received | Exception) -> SourceBody | None:
    """Return the body in an answer to GET; None if the threaded reader must ask again.

    Raises:
        CompactorError: a problem that does not concern this source alone;
            :class:`~compactor.s3.translate.Again` if another try may help.
    """
    if isinstance(answer, Exception):
        return None
    if answer.status == _OK:
        if len(answer.body) != source.size or not is_listed(source, answer.etag):
            return None
        return SourceBody(source, answer.body, attributes=_attributes_of(answer))
    # Refusals with an empty or compressed body are not interpreted here.
    if answer.status < _REFUSED or not answer.body or "content-encoding" in answer.headers:
        return None
    error = judged_answer(source, answer.status, answer.body.decode("utf-8", "replace"))
    if isinstance(error, SourceChanged | UnreadableSource):
        return SourceBody(source, error=error)
    raise error


def _attributes_of(answer: Received) -> Attributes | None:
    # Most objects have a type and nothing else, and few types occur.
    head = answer.head.lower()
    types = _TYPE.findall(answer.head)
    if len(types) > 1 or any(one in head for one in _OF_OBJECT):
        return from_headers(answer.headers.items())
    return of_type(types[0].decode("latin-1").strip()) if types else None
