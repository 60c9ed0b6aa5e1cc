"""Reading the sources of one group: the time for it, and sources that cannot be read.

A worker that S3 throttles may read too slowly for a whole group. The output is then closed with the
sources that were read. Otherwise every call would read them again, no faster, without progress.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from compactor.attributes import Attributes
from compactor.errors import (
    CompactorError,
    NothingReadable,
    TransientStoreError,
    UnreadableSource,
)
from compactor.model import DENIED_REASONS, QuarantineReason, SourceObject
from compactor.ports import Clock, Deadline, ObjectStore, SourceBody

_T = TypeVar("_T")

# Reserved at the end of a call for storing, checking, committing and publishing what was read.
CLOSING_SECONDS = 60.0
# After reading for this long, what was read is kept, whatever ends the reading.
KEPT_SECONDS = 300.0


class ReadingTime:
    """The time for reading one group, starting now.

    Args:
        deadline: the end of the call.
        clock: measures how long the reading takes.
        reserve_seconds: reserved at the end of the call, in addition to ``CLOSING_SECONDS``.
    """

    def __init__(self, deadline: Deadline, clock: Clock, reserve_seconds: float) -> None:
        self._deadline = deadline
        self._clock = clock
        self._began = clock.now()
        self._end_seconds = reserve_seconds + CLOSING_SECONDS
        # If little time is left, still use two thirds of it for reading.
        self._closing_seconds = min(self._end_seconds, deadline.remaining_seconds() / 3)

    def over(self) -> bool:
        """Return True if no further source should be read."""
        return self._deadline.remaining_seconds() <= self._closing_seconds

    def long(self) -> bool:
        """Return True if the reading took so long that what was read must be kept."""
        return self._clock.now() - self._began >= KEPT_SECONDS

    def worth_keeping(self) -> bool:
        """Return True if the output should be closed as it is when reading fails."""
        return self.long() or self._deadline.remaining_seconds() <= self._end_seconds


def in_time(
    bodies: Iterator[tuple[SourceBody, _T]],
    sources: Sequence[SourceObject],
    time: ReadingTime | None,
    later: list[SourceObject],
) -> Iterator[tuple[SourceBody, _T]]:
    """Yield bodies while time is left, and until at least one source with bytes was read.

    Args:
        bodies: of the sources, in their order.
        sources: of the group.
        time: for reading; None for no limit.
        later: receives the sources that are left to the next plan.

    Raises:
        TransientStoreError: the store did not answer, and what was read is not worth keeping.
    """
    count, begun = 0, False
    while True:
        try:
            body = next(bodies, None)
        except TransientStoreError:
            if time is None or not begun or not time.worth_keeping():
                raise
            break
        if body is None:
            return
        yield body
        count += 1
        begun = begun or body[0].source.size > 0
        if time is not None and begun and time.over():
            break
    later += sources[count:]


# How many sources are tried at the start of a group, and at most how many in the rest of it.
DENIED_IN_A_ROW = 20


class Denials:
    """Counts the sources of a group that this role may not read, until it has read one.

    Args:
        sources: the group's sources, in the order in which they are read.
        store: the store of the sources.
    """

    def __init__(self, sources: Sequence[SourceObject], store: ObjectStore) -> None:
        self._sources = sources
        self._store = store
        self._denied = 0
        self._looking = True

    def read(self) -> None:
        """Record that a source was read, so that the role can read the group in general."""
        self._looking = False

    def count(self, error: UnreadableSource) -> None:
        """Count a source that could not be read.

        Raises:
            NothingReadable: ``DENIED_IN_A_ROW`` sources were denied from the start, and so were all
                that were tried after them.
        """
        if error.reason not in DENIED_REASONS:
            # The role may read it: its bytes arrived, or it is in an archive tier.
            self._looking = False
        self._denied += 1
        if self._looking and self._denied == DENIED_IN_A_ROW:
            self._looking = False
            self._look_after(error)

    def _look_after(self, error: UnreadableSource) -> None:
        unread = [source for source in self._sources[DENIED_IN_A_ROW:] if source.size]
        step = -(-len(unread) // DENIED_IN_A_ROW) or 1
        for source in unread[::step]:
            try:
                self._store.read_range(source, 0, 1)
            except UnreadableSource as later:
                if later.reason in DENIED_REASONS:
                    continue
                return
            except CompactorError:
                # For example, it changed, which its next read will report.
                return
            return
        first = self._sources[0]
        raise NothingReadable(f"s3://{first.bucket}/{first.key}", error.reason, error.detail)


def require_not_encrypted(attributes: Attributes | None) -> None:
    """Require that an object is not client-side encrypted.

    Raises:
        UnreadableSource: it was encrypted before it was uploaded, or holds the instructions for
            decrypting such an object. It could not be decrypted from an output.
    """
    if attributes is not None and attributes.is_client_encrypted:
        detail = "its user metadata says that it was encrypted before it came to S3"
        raise UnreadableSource(QuarantineReason.CLIENT_ENCRYPTED, detail)
