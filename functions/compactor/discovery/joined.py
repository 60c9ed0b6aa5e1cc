"""Writes the work lists of a discovery from the pieces of its invocations."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from contextlib import suppress

from compactor.discovery.discovery_pieces import Partitions, Pieces
from compactor.discovery.location_checks import NamedLevels, refuse_named_levels
from compactor.discovery.work_items import (
    ITEMS_NAME,
    OVERSIZED_NAME,
    Joined,
    Largest,
    WorkItem,
    blaming,
    to_line,
)
from compactor.errors import AlreadyExists, ObjectMissing
from compactor.layout import run_key
from compactor.log.resting import NONE_AT_REST
from compactor.model import SHOWN_EXAMPLES, Skipped, StoredPart
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings

# S3 requires parts of at least 5 MiB and allows 10,000: lists can have up to 80 GB.
_PART_BYTES = 8 << 20


def join(settings: Settings, run_id: str, pieces: Pieces, partitions: Partitions) -> Joined:
    """Write both lists, with one piece at a time in memory.

    Raises:
        InvalidInput: no source can be compacted without losing a column.
        IntegrityError: a piece is missing.
    """
    lost, objects, unpartitioned, resting = NamedLevels(), 0, Skipped(0, 0), NONE_AT_REST
    items = _List(pieces.store, *run_key(settings, run_id, ITEMS_NAME))
    oversized = _List(pieces.store, *run_key(settings, run_id, OVERSIZED_NAME))
    with blaming("s3_state_uri", settings):
        for piece in pieces.all(partitions):
            items.add(piece.items)
            oversized.add(piece.oversized)
            lost = lost.plus(piece.lost)
            objects += piece.objects
            unpartitioned = unpartitioned.plus(piece.unpartitioned, SHOWN_EXAMPLES)
            resting = resting.plus(piece.resting)
        refuse_named_levels(settings, [lost], objects)
        items.close()
        oversized.close()
    return Joined(items.count, oversized.count, unpartitioned, resting, items.largest)


class _List:
    """Writes a JSON array of work items, as a multipart upload if it is long."""

    def __init__(self, store: ObjectStore, bucket: str, key: str) -> None:
        self._store = store
        self._place = bucket, key
        self._held = bytearray(b"[")
        self._upload_id = ""
        self._parts: list[StoredPart] = []
        self._crc32 = 0
        self.count = 0
        self.largest = Largest()

    def add(self, items: Sequence[WorkItem]) -> None:
        self.largest.add(items)
        for item in items:
            if self.count:
                self._held += b",\n"
            self._held += to_line(item)
            self.count += 1
            if len(self._held) >= _PART_BYTES:
                self._store_part()

    def close(self) -> None:
        self._held += b"]\n"
        if not self._upload_id:
            body = bytes(self._held)
            self._store.put(*self._place, body, content_type="application/json")
            return
        self._store_part()
        try:
            self._store.complete_upload(
                *self._place, self._upload_id, self._parts, crc32=self._crc32
            )
        except AlreadyExists:
            # An earlier call wrote it from the same pieces, but ended before it returned.
            with suppress(ObjectMissing):
                self._store.abort_upload(*self._place, self._upload_id)

    def _store_part(self) -> None:
        if not self._upload_id:
            self._upload_id = self._store.create_upload(
                *self._place, content_type="application/json"
            )
        body = bytes(self._held)
        self._held.clear()
        self._crc32 = zlib.crc32(body, self._crc32)
        number = len(self._parts) + 1
        self._parts.append(self._store.upload_part(*self._place, self._upload_id, number, body))
