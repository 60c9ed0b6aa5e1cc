"""What is kept of the readers' table below the state: that there is one, and when it was switched.

The catalog says what it shows, but not since when. So every switch has a random id, which the
partition's entry in the catalog carries, and the first process that sees it there leaves a record
of that id. The record's own age, by the store's clock, is how long readers see nothing else at
least.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from compactor import layout
from compactor.decoding import decoder
from compactor.documents import find_document, leave_first
from compactor.errors import InvalidInput
from compactor.model import Partition
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor.settings.uris import S3Uri

RECORD_VERSION = 1
# Fields that must stay as they are while a table reads the destination, and their names here.
_ASKED = {
    "reader_table": "table",
    "reader_mode": "mode",
    "s3_source_uri": "source",
    "date_format": "date_format",
    "depth": "depth",
}


class ReadersMarker(msgspec.Struct, frozen=True, kw_only=True):
    """The destination is read by a table: clean-up and repair ask its catalog.

    Attributes:
        table: as ``reader_table`` has it.
        mode: as ``reader_mode`` has it.
        source: as ``s3_source_uri`` has it.
        date_format, depth: as the settings have them, by which paths become partitions.
        grace_seconds: how long a query may go on that was planned before a switch.
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
        """What settings say."""
        return cls(
            table=settings.reader_table or "",
            mode=settings.reader_mode,
            source=settings.s3_source_uri,
            date_format=settings.date_format,
            depth=settings.depth,
            grace_seconds=settings.limits.reader_grace_seconds,
        )

    def divided(self, settings: Settings) -> Settings:
        """Settings of a command that was not given the table, or how sources are divided."""
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
    """The catalog was seen to show a partition so.

    Attributes:
        location: of the partition in the catalog.
        at: UNIX seconds, by the clock of who wrote it.
    """

    version: int = RECORD_VERSION
    path: str
    switch: str
    location: str
    at: float


_decode_marker = decoder(ReadersMarker)
_decode_switch = decoder(SwitchRecord)


def read_marker(state: S3Uri, store: ObjectStore) -> ReadersMarker | None:
    """The marker; None where no table reads the destination.

    Raises:
        IntegrityError: it is damaged, or of a later version.
    """
    place = layout.readers_marker_key(state)
    # As good as always there is none, which HEAD answers without an error.
    if store.head(*place) is None:
        return None
    return find_document(store, place, _decode_marker, RECORD_VERSION)


def claim_marker(settings: Settings, store: ObjectStore) -> None:
    """Say that the settings' table reads the destination, before its catalog says anything.

    Raises:
        InvalidInput: another table does, or this one shows sources that are divided otherwise.
    """
    bucket, key = layout.readers_marker_key(settings.state)
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
    """Say that the catalog was seen to show a partition so; the first record stands."""
    place = layout.switch_key(state, partition, record.switch)
    leave_first(store, place, record, RECORD_VERSION)


def read_switch(
    state: S3Uri, partition: Partition, switch: str, store: ObjectStore
) -> SwitchRecord | None:
    """The record of a switch; None where there is none.

    Raises:
        IntegrityError: it is damaged, or of a later version.
    """
    place = layout.switch_key(state, partition, switch)
    return find_document(store, place, _decode_switch, RECORD_VERSION)
