"""Retries a request until it succeeds or its time is up.

All requests of a store pass through here: botocore and libcurl only try once. So there is one
deadline, one backoff, and one place where the limiter is notified that S3 asks to slow down.
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
# Ends the retries even if the clock (of a test) stands still.
MOST_TRIES = 100
# A request without a byte of answer for this long is abandoned and retried. Copying 5 GiB in S3
# takes a while.
SILENCE_SECONDS = 60.0
# The shortest timeout of a try.
LEAST_SECONDS = 2.0
# The most that is kept at an invocation's end for processing the sources that were read.
READ_RESERVE_SECONDS = 40.0
# Kept at an invocation's end for aborting an upload and writing a receipt.
RESERVE_SECONDS = 5.0
# An event that is never set, for waits that must not be interrupted.
NEVER = threading.Event()


def _pause(stopped: threading.Event, seconds: float) -> bool:
    return stopped.wait(seconds)


def _jitter(longest: float) -> float:
    """Return a wait with full jitter: workers that were refused together retry at random times."""
    return random.uniform(0, longest)  # noqa: S311 - jitter keeps no secret


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a request is retried.

    Attributes:
        deadline_seconds: limit for one request with all its tries and waits, for one page of a
            listing, or for one piece of a streamed body.
        clock: monotonic clock, in seconds.
        pause: waits the given number of seconds. Returns True, early if possible, when the event
            is set.
        jitter: returns a wait for the longest allowed wait, both in seconds.
    """

    deadline_seconds: float = 120.0
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[threading.Event, float], bool] = _pause
    jitter: Callable[[float], float] = _jitter


PATIENCE = Patience()


@dataclass(frozen=True, slots=True)
class Retries:
    """Repeats requests that may succeed on another try; thread safe.

    Attributes:
        limiter: notified of every answer that asks to slow down.
        patience: deadline, clock and backoff.
        ends_at: time by the clock of ``patience`` beyond which nothing is waited for.
        reads_end_at: the same for reads of sources.
    """

    limiter: Limiter
    patience: Patience = PATIENCE
    ends_at: float = math.inf
    reads_end_at: float = math.inf

    def within(self, deadline: Deadline) -> Retries:
        """Return retries that end early enough for the invocation to finish by its deadline."""
        seconds = deadline.remaining_seconds() - RESERVE_SECONDS
        ends_at = self.patience.clock() + seconds
        reads_end_at = ends_at - min(READ_RESERVE_SECONDS, max(0.0, seconds / 4))
        return replace(self, ends_at=ends_at, reads_end_at=reads_end_at)

    @property
    def reads_over(self) -> bool:
        """True if the invocation has no time left to read sources."""
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
        """Make a request, repeating it while that may help, and return its result.

        Args:
            operation: the operation's name in error messages.
            bucket: named in error messages.
            key: named in error messages; the prefix if the request is a listing.
            request: makes the request once, within the seconds given. Raises :class:`Again` if
                another try may help.
            stopped: set when the result is no longer wanted.
            reads: the request reads a source.

        Raises:
            TransientStoreError: no try succeeded in time.
            InvalidInput: too many answers in a row were truncated.
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
                    # Too few truncated answers in a row to blame the store: the error is transient.
                    fault = again if cut_short in {0, MOST_CUT_SHORT} else Again(again)
                    where = place(operation, bucket, key)
                    raise fault.as_error(where, tries, now - started) from again
            now = patience.clock()
        raise AssertionError("the last try ends in an answer or an error")

    def pause(self, longest: float) -> bool:
        """Wait up to ``longest`` seconds; return False without waiting if time runs out first."""
        wait = self.patience.jitter(longest)
        if self.patience.clock() + wait >= self.ends_at:
            return False
        self.patience.pause(NEVER, wait)
        return True

    def wait_after(self, again: Again, tries: int) -> float:
        """Return the seconds to wait after try ``tries``. Notifies the limiter of a slow-down."""
        if again.slow_down:
            self.limiter.slow_down()
        longest = min(FIRST_WAIT_SECONDS * 2 ** (tries - 1), LONGEST_WAIT_SECONDS)
        # Jitter is added to Retry-After: a retry is never earlier, and not all come together.
        return again.after_seconds + self.patience.jitter(longest)


_this_try = threading.local()


@contextmanager
def sent_within(seconds: float) -> Iterator[None]:
    """Limit the seconds that a request of this thread may take or wait for bytes."""
    _this_try.seconds = seconds
    try:
        yield
    finally:
        _this_try.seconds = SILENCE_SECONDS


def limit_silence(client: Any) -> None:
    """Apply the limit of :func:`sent_within` to the requests of a botocore client."""
    client.meta.events.register("before-send.s3", _limit, unique_id="compactor-silence")


def _limit(request: Any, **_: Any) -> None:
    seconds = getattr(_this_try, "seconds", SILENCE_SECONDS)
    # Older botocore has no timeout for a single request; the client's own applies there.
    context = getattr(request, "context", None)
    if seconds < SILENCE_SECONDS and context is not None:
        context["read_timeout"] = seconds
