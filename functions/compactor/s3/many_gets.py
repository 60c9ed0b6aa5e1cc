"""Whole GETs of sources, hundreds concurrently, by the one thread of libcurl.

With a thread for each, most of a small GET's CPU time goes into waiting for the interpreter lock.
Here only the plain success is known, and what is refused for good; whatever else comes of a GET,
or nothing in time, leaves the source to the way that asks again (:mod:`compactor.s3.sources`).
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from compactor.attributes import from_headers
from compactor.errors import SourceChanged, TransientStoreError, UnreadableSource
from compactor.model import SourceObject
from compactor.ports import SourceBody
from compactor.s3.curl_handle import Handle, Keys, Received, Request
from compactor.s3.direct import OK, Direct
from compactor.s3.refused_reads import is_listed, judged_answer
from compactor.s3.retries import LEAST_SECONDS
from compactor.s3.routes import Route, takes
from compactor.s3.translate import Again
from compactor.sizes import GET_BYTES

if TYPE_CHECKING:
    from compactor.s3.base import S3Base

# For one GET, and longer for a larger one; more patience is the other way's.
_GET_SECONDS = 10.0
_BYTES_PER_SECOND = 128 * 1024
_PERMIT_SECONDS = 0.02
_REFUSED = 400
# Headers that say what S3 keeps beside an object's bytes.
_OF_OBJECT = (b"x-amz-meta-", b"x-amz-tagging-count", b"content-encoding")
_PLAIN_ETAG = re.compile(r"[0-9A-Za-z-]+")

Bodies = list[SourceBody]
#: Reads a run of sources in another way.
Otherwise = Callable[[Sequence[SourceObject]], "Future[Bodies]"]


class _Run:
    """Sources that are read one after the other, with one permit.

    Attributes:
        bodies: of the first of them, so far.
        future: gets the bodies of all.
        began: when it got its permit, by the limiter's clock.
        sent: how many GETs were sent.
        transfer: the one under way.
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
        """The source whose turn it is."""
        return self.sources[len(self.bodies)]

    @property
    def rest(self) -> Sequence[SourceObject]:
        """All that is not read."""
        return self.sources[len(self.bodies) :]

    def is_done(self) -> bool:
        """Whether all is read; what has no bytes is not asked for."""
        while len(self.bodies) < len(self.sources) and not self.next.size:
            self.bodies.append(SourceBody(self.next, content=b""))
        return len(self.bodies) == len(self.sources)

    def join(self, rest: Future[Bodies]) -> None:
        """Be done with what was read in another way after the bodies so far."""
        if rest.cancelled():
            self.future.cancel()
        elif (error := rest.exception()) is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(self.bodies + rest.result())


class ManyGets:
    """Reads runs of sources of one bucket; to be closed.

    Args:
        store: whose limits and counts these reads share.
        direct: knows where they go.
        otherwise: reads what is not read here.
    """

    def __init__(self, store: S3Base, direct: Direct, otherwise: Otherwise) -> None:
        self._store = store
        self._routes, self._transfers = direct.routes, direct.transfers
        self._otherwise = otherwise
        # Appended to by the caller; all else in the thread of the transfers.
        self._waiting: deque[_Run] = deque()
        # Of that thread alone.
        self._under_way: set[_Run] = set()
        self._closed: Exception | None = None
        self._looks_again = False

    def submit(self, sources: Sequence[SourceObject]) -> Future[Bodies]:
        """Begin to read a run as soon as there is a permit."""
        route = self._route_to(sources)
        if route is None:
            return self._otherwise(sources)
        run = _Run(sources, route)
        self._waiting.append(run)
        self._transfers.call(self._begin)
        return run.future

    def close(self) -> None:
        """Give up what is under way; returns when its permits are given back."""
        self._transfers.wait_for(self._close)

    def _route_to(self, sources: Sequence[SourceObject]) -> Route | None:
        """Where all of these are asked for; None where they are not read here."""
        bucket = sources[0].bucket
        usual = all(
            one.size <= GET_BYTES
            and one.bucket == bucket
            and takes(one.key)
            and _PLAIN_ETAG.fullmatch(one.etag)
            for one in sources
        )
        return self._routes.of(bucket) if usual else None

    # What follows runs in the thread of the transfers.

    def _begin(self) -> None:
        """Begin as many runs as may be."""
        while self._waiting:
            error = self._closed
            if self._store.retries.reads_over:
                error = TransientStoreError("the invocation ends, and not all sources are read")
            if error is not None:
                self._waiting.popleft().future.set_exception(error)
                continue
            began = self._store.limiter.begin()
            if began is None:
                # The end of one of ours begins another; that of another caller is not heard of.
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
        """Ask for the next source of a run, or end it."""
        if run.is_done():
            self._end(run)
            return
        try:
            keys = self._routes.keys()
        except Exception:
            # Whatever renews credentials raises what it likes. The other way asks for them, too.
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
        return Request(route.site, keys, "GET", url, headers, b"", seconds, 0, source.size)

    def _hear(self, run: _Run, answer: Received | Exception) -> None:
        run.transfer = None
        try:
            body = _body_of(run.next, answer)
        except Again as again:
            # The limiter hears of it, and the other way asks later.
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
        """Let the rest of a run be read in the other way."""
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
        # Of sources without bytes nothing was asked, so their time means nothing.
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
    """What an answer to the GET of a source says; None where the other way has to ask again.

    Raises:
        CompactorError: something is wrong that is no matter of this source; it is
            :class:`~compactor.s3.translate.Again` where S3 asks for another try.
    """
    if isinstance(answer, Exception):
        return None
    if answer.status == OK:
        if len(answer.body) != source.size or not is_listed(source, answer.etag):
            return None
        head = answer.head.lower()
        has_any = any(one in head for one in _OF_OBJECT)
        attributes = from_headers(answer.headers.items()) if has_any else None
        return SourceBody(source, answer.body, attributes=attributes)
    # A refusal without a word, or packed, says nothing here.
    if answer.status < _REFUSED or not answer.body or "content-encoding" in answer.headers:
        return None
    error = judged_answer(source, answer.status, answer.body.decode("utf-8", "replace"))
    if isinstance(error, SourceChanged | UnreadableSource):
        return SourceBody(source, error=error)
    raise error
