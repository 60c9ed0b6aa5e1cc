"""How long sources are read for one output; then it is closed with what is in it.

A worker that S3 throttles may read too slowly for a whole group. What it read is kept all the
same: otherwise the next call would read it again, no faster, and for ever.
"""

from __future__ import annotations

from compactor.ports import Clock, Deadline

# Kept of a call for storing, checking, committing and publishing what was read.
CLOSING_SECONDS = 60.0
# What took so long to read is kept, whatever ends the reading.
KEPT_SECONDS = 300.0


class ReadingTime:
    """The time for reading one group, from now on.

    Args:
        deadline: the end of the call.
        clock: tells how long was read.
        reserve_seconds: kept of the call beside the time for closing the output.
    """

    def __init__(self, deadline: Deadline, clock: Clock, reserve_seconds: float) -> None:
        self._deadline = deadline
        self._clock = clock
        self._began = clock.now()
        self._end_seconds = reserve_seconds + CLOSING_SECONDS
        # Of a short time most is for reading, too.
        self._closing_seconds = min(self._end_seconds, deadline.remaining_seconds() / 3)

    def over(self) -> bool:
        """True when no further source should be read."""
        return self._deadline.remaining_seconds() <= self._closing_seconds

    def long(self) -> bool:
        """True when so much time went by that what was read must not be lost."""
        return self._clock.now() - self._began >= KEPT_SECONDS

    def worth_keeping(self) -> bool:
        """True when an output is closed with what is in it, where nothing more can be read."""
        return self.long() or self._deadline.remaining_seconds() <= self._end_seconds
