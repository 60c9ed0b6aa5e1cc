"""Records in the state about the readers' table: that it exists, and when it was switched.

The catalog says what it shows, but not since when. So every switch has a random id, which the
partition's catalog entry carries, and the first process that sees the id there writes a record of
it. The age of that record, by the store's clock, is the minimum time for which readers have seen
nothing else.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from compactor.decoding import decoder
from compactor.documents import find_document, leave_first
from compactor.errors import InvalidInput
from compactor.model import Partition
from compactor.ports import ObjectStore
from compactor.settings.layout import StateLayout
from compactor.settings.settings import Settings
from compactor.settings.uris import S3Uri

RECORD_VERSION = 1
# Settings that must not change while a table reads the destination, with the marker's fields.
_ASKED = {
    "reader_table": "table",
    "reader_mode": "mode",
    "s3_source_uri": "source",
    "date_format": "date_format",
    "depth": "depth",
}


class ReadersMarker(msgspec.Struct, frozen=True, kw_only=True):
    """Marks a destination that a table reads, so that clean-up and repair query its catalog.

    Attributes:
        table: value of ``reader_table``.
        mode: value of ``reader_mode``.
        source: value of ``s3_source_uri``.
        date_format, depth: settings that divide the source into partitions.
        grace_seconds: how long a query that was planned before a switch may take.
    """

    version: int = RECORD_VERSION
    table: str
    mode: str
    source: str
    date_format: str | None
    depth: int
    grace_seconds: int

    @classmethod
    def of(cls, settings: Settings) -> ReadersMarker:
        """Return the marker for these settings."""
        return cls(
            table=settings.reader_table or "",
            mode=settings.reader_mode,
            source=settings.s3_source_uri,
            date_format=settings.date_format,
            depth=settings.depth,
            grace_seconds=settings.limits.reader_grace_seconds,
        )

    def divided(self, settings: Settings) -> Settings:
        """Complete the settings of a command that was not given the table or the partitioning."""
        return replace(
            settings,
            reader_table=self.table,
            reader_mode=self.mode,
            s3_source_uri=self.source,
            date_format=self.date_format,
            depth=self.depth,
            reader_partitions=(),
        )


class SwitchRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Records that the catalog was seen to show a location for a partition.

    Attributes:
        location: of the partition in the catalog.
        at: UNIX seconds, by the clock of the writer.
    """

    version: int = RECORD_VERSION
    path: str
    switch: str
    location: str
    at: float


_decode_marker = decoder(ReadersMarker)
_decode_switch = decoder(SwitchRecord)


def read_marker(state: S3Uri, store: ObjectStore) -> ReadersMarker | None:
    """Return the marker; None if no table reads the destination.

    Raises:
        IntegrityError: it is damaged, or of a later version.
    """
    place = StateLayout(state).readers_marker
    # Usually there is no marker; HEAD reports that without an error.
    if store.head(*place) is None:
        return None
    return find_document(store, place, _decode_marker, RECORD_VERSION)


def claim_marker(settings: Settings, store: ObjectStore) -> None:
    """Write the marker, before the catalog shows anything.

    Raises:
        InvalidInput: another table reads the destination, or the same one with sources that are
            divided differently.
    """
    bucket, key = settings.layout.readers_marker
    wanted = ReadersMarker.of(settings)
    found = read_marker(settings.state, store)
    if found is None and not leave_first(store, (bucket, key), wanted, RECORD_VERSION):
        found = read_marker(settings.state, store)
    if found is None:
        return
    for field, name in _ASKED.items():
        ours, theirs = getattr(wanted, name), getattr(found, name)
        if ours != theirs:
            accepted = f"{theirs!r}, by which this destination is read: s3://{bucket}/{key}"
            raise InvalidInput(field, ours, accepted)


def leave_switch(
    state: S3Uri, partition: Partition, record: SwitchRecord, store: ObjectStore
) -> None:
    """Record that the catalog was seen to show a location; the first record is kept."""
    place = StateLayout(state).switch(partition, record.switch)
    leave_first(store, place, record, RECORD_VERSION)


def read_switch(
    state: S3Uri, partition: Partition, switch: str, store: ObjectStore
) -> SwitchRecord | None:
    """Return the record of a switch, or None.

    Raises:
        IntegrityError: it is damaged, or of a later version.
    """
    place = StateLayout(state).switch(partition, switch)
    return find_document(store, place, _decode_switch, RECORD_VERSION)
