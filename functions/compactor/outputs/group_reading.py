"""Reading the sources of one group: for how long, what may not be read, what is beside the bytes.

A worker that S3 throttles may read too slowly for a whole group. The output is then closed with the
sources that were read: otherwise the next call would read them again, no faster, and for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from compactor.attributes import Attributes
from compactor.errors import CompactorError, NothingReadable, UnreadableSource
from compactor.log.manifest import ManifestRow
from compactor.model import DENIED_REASONS, QuarantineReason, SourceObject
from compactor.ports import Clock, Deadline, ObjectStore

# Kept of a call for storing, checking, committing and publishing what was read.
CLOSING_SECONDS = 60.0
# What took so long to read is kept, whatever ends the reading.
KEPT_SECONDS = 300.0


class ReadingTime:
    """The time for reading one group, from now on.

    Args:
        deadline: the end of the call.
        clock: measures how long was read.
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


# So many sources at the start of a group, and then so many spread over the rest of it.
DENIED_IN_A_ROW = 20


class Denials:
    """Counts the sources of a group that this role may not read, until it has read one.

    Args:
        sources: of the group, in the order in which they are read.
        store: where they are.
    """

    def __init__(self, sources: Sequence[SourceObject], store: ObjectStore) -> None:
        self._sources = sources
        self._store = store
        self._denied = 0
        self._looking = True

    def read(self) -> None:
        """One was read: what is denied, is denied source by source."""
        self._looking = False

    def count(self, error: UnreadableSource) -> None:
        """One was not.

        Raises:
            NothingReadable: nor was any before it, nor may those be read that were tried
                after it.
        """
        if error.reason not in DENIED_REASONS:
            # Its bytes came, or would come from here: it lies in an archive tier.
            self._looking = False
        self._denied += 1
        if self._looking and self._denied == DENIED_IN_A_ROW:
            self._looking = False
            self._look_after(error)

    def _look_after(self, error: UnreadableSource) -> None:
        rest = [source for source in self._sources[DENIED_IN_A_ROW:] if source.size]
        step = -(-len(rest) // DENIED_IN_A_ROW) or 1
        for source in rest[::step]:
            try:
                self._store.read_range(source, 0, 1)
            except UnreadableSource as later:
                if later.reason in DENIED_REASONS:
                    continue
                return
            except CompactorError:
                # It changed: its next read will show it.
                return
            return
        first = self._sources[0]
        raise NothingReadable(f"s3://{first.bucket}/{first.key}", error.reason, error.detail)


class KeptAttributes:
    """Attributes of the sources of one output; equal ones are kept once.

    Args:
        most_bytes: of memory that they may take, about.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._sets: dict[Attributes, Attributes] = {}
        self._of: dict[bytes, Attributes] = {}

    def has_room(self, attributes: Attributes) -> bool:
        """True when those of one more source may be kept."""
        return attributes in self._sets or self._bytes + attributes.cost <= self._most_bytes

    def take(self, source: SourceObject, attributes: Attributes) -> None:
        """Keep those of a source."""
        known = self._sets.get(attributes)
        if known is None:
            self._bytes += attributes.cost
            known = self._sets[attributes] = attributes
        self._of[source.identity] = known

    def added_to(self, rows: Sequence[ManifestRow], store: ObjectStore) -> Iterable[ManifestRow]:
        """The rows with what is kept of their sources."""
        if not rows:
            return rows
        if not store.sees_tags(rows[0].source):
            found = ((row, self._of.get(row.source.identity)) for row in rows)
            return [row._replace(attributes=without_tags(one)) for row, one in found]
        if not self._of:
            return rows
        return [row._replace(attributes=self._of.get(row.source.identity)) for row in rows]


def without_tags(attributes: Attributes | None) -> Attributes:
    """The same of an object whose tags this role may not see."""
    return replace(attributes or Attributes(), tags=None)


def require_not_encrypted(attributes: Attributes | None) -> None:
    """Do nothing for an object whose bytes mean what they say.

    Raises:
        UnreadableSource: it was encrypted before it came to S3, or says how such a one is
            decrypted: it could not be decrypted from an output.
    """
    if attributes is not None and attributes.is_client_encrypted:
        detail = "its user metadata says that it was encrypted before it came to S3"
        raise UnreadableSource(QuarantineReason.CLIENT_ENCRYPTED, detail)
