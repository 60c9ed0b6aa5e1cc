"""One request, asked again until there is an answer or its time is up.

All requests of a store come through here, whichever library sends them: botocore and libcurl
try once. So there is one deadline, one way of waiting, and one place that hears S3 ask for less.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from compactor.ports import Deadline
from compactor.s3.limiter import Limiter
from compactor.s3.translate import MOST_CUT_SHORT, Again, place

Answer = TypeVar("Answer")

FIRST_WAIT_SECONDS = 0.1
LONGEST_WAIT_SECONDS = 10.0
# Ends the tries even where the clock stands still.
MOST_TRIES = 100
# A server that says nothing for so long is given up, and asked again. Copying 5 GiB takes a while.
SILENCE_SECONDS = 60.0
# A try that is begun at all is given this long.
LEAST_SECONDS = 2.0
# Kept of an invocation, at most, for doing something with the sources that were read.
READ_RESERVE_SECONDS = 40.0
# Kept of an invocation for aborting an upload and leaving a receipt.
RESERVE_SECONDS = 5.0
# For waits that nothing will cut short.
NEVER = threading.Event()


def _pause(stopped: threading.Event, seconds: float) -> bool:
    return stopped.wait(seconds)


def _jitter(longest: float) -> float:
    """Full jitter: workers that were refused together do not come back together."""
    return random.uniform(0, longest)  # noqa: S311 - jitter keeps no secret


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a request is asked again.

    Attributes:
        deadline_seconds: for one request, with all its tries and the waits between them; for a
            page of a listing, and for a piece of a body that is streamed.
        clock: seconds, monotonic.
        pause: waits so many seconds; true, perhaps sooner, when the event is set.
        jitter: longest wait -> wait, in seconds.
    """

    deadline_seconds: float = 120.0
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[threading.Event, float], bool] = _pause
    jitter: Callable[[float], float] = _jitter


PATIENCE = Patience()


@dataclass(frozen=True, slots=True)
class Retries:
    """Asks again after answers that are worth it; thread safe.

    Attributes:
        limiter: hears of every answer that asks to slow down.
        ends_at: by the clock of ``patience``; nothing is waited for beyond it.
        reads_end_at: the same for reads of sources.
    """

    limiter: Limiter
    patience: Patience = PATIENCE
    ends_at: float = math.inf
    reads_end_at: float = math.inf

    def within(self, deadline: Deadline) -> Retries:
        """The same for one invocation; what it has left for its own end is not waited for."""
        seconds = deadline.remaining_seconds() - RESERVE_SECONDS
        ends_at = self.patience.clock() + seconds
        reads_end_at = ends_at - min(READ_RESERVE_SECONDS, max(0.0, seconds / 4))
        return replace(self, ends_at=ends_at, reads_end_at=reads_end_at)

    @property
    def reads_over(self) -> bool:
        """True when the invocation has no time left to wait for a source."""
        return self.reads_end_at < math.inf and self.patience.clock() >= self.reads_end_at

    def ask(
        self,
        operation: str,
        bucket: str,
        key: str,
        request: Callable[[float], Answer],
        stopped: threading.Event = NEVER,
        *,
        reads: bool = False,
    ) -> Answer:
        """The answer to a request.

        Args:
            operation: what is asked for, as errors name it.
            bucket: likewise.
            key: likewise; or the prefix of a listing.
            request: asks once; is given how many seconds are left for it, and raises
                :class:`Again` where another try may help.
            stopped: set when the answer is not wanted any more.
            reads: it is a source that is asked for.

        Raises:
            TransientStoreError: there was none in time.
            InvalidInput: the answers were cut short, again and again.
            CompactorError: whatever else ``request`` raises.
        """
        patience = self.patience
        started = now = patience.clock()
        ends_at = self.reads_end_at if reads else self.ends_at
        give_up = min(started + patience.deadline_seconds, ends_at)
        cut_short = 0
        for tries in range(1, MOST_TRIES + 1):
            try:
                return request(give_up - now)
            except Again as again:
                wait = self.wait_after(again, tries)
                now = patience.clock()
                cut_short = cut_short + 1 if again.cut_short else 0
                is_last = tries == MOST_TRIES or cut_short == MOST_CUT_SHORT
                if is_last or now + wait >= give_up or patience.pause(stopped, wait):
                    # One that could not be asked often enough is unknown.
                    fault = again if cut_short in {0, MOST_CUT_SHORT} else Again(again)
                    where = place(operation, bucket, key)
                    raise fault.as_error(where, tries, now - started) from again
            now = patience.clock()
        raise AssertionError("the last try ends in an answer or an error")

    def pause(self, longest: float) -> bool:
        """Wait up to so many seconds; false, immediately, where the invocation ends first."""
        wait = self.patience.jitter(longest)
        if self.patience.clock() + wait >= self.ends_at:
            return False
        self.patience.pause(NEVER, wait)
        return True

    def wait_after(self, again: Again, tries: int) -> float:
        """How many seconds to wait after so many tries; the limiter hears of the last answer."""
        if again.slow_down:
            self.limiter.slow_down()
        longest = min(FIRST_WAIT_SECONDS * 2 ** (tries - 1), LONGEST_WAIT_SECONDS)
        # A request with a Retry-After does not come sooner, nor do all come together.
        return again.after_seconds + self.patience.jitter(longest)


_this_try = threading.local()


@contextmanager
def sent_within(seconds: float) -> Iterator[None]:
    """How long this thread's botocore client may hear nothing, at most, after a request."""
    _this_try.seconds = seconds
    try:
        yield
    finally:
        _this_try.seconds = SILENCE_SECONDS


def seconds_left() -> float:
    """How long a request of this thread may take now, as :func:`sent_within` says."""
    seconds: float = getattr(_this_try, "seconds", SILENCE_SECONDS)
    return seconds


def silence_seconds() -> float:
    """How long this thread may hear nothing now."""
    return min(seconds_left(), SILENCE_SECONDS)


def limit_silence(client: Any) -> None:
    """Make the client keep to :func:`sent_within`."""
    client.meta.events.register("before-send.s3", _limit, unique_id="compactor-silence")


def _limit(request: Any, **_: Any) -> None:
    seconds = silence_seconds()
    # Older versions of botocore have no time-outs for single requests; their client's own, then.
    context = getattr(request, "context", None)
    if seconds < SILENCE_SECONDS and context is not None:
        context["read_timeout"] = seconds
