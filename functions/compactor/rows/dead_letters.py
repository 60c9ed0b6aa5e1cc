"""Keeps records that cannot become rows, whole and with a reason, where no query engine reads."""

from __future__ import annotations

import hashlib
import json
import zlib

from compactor.destination import Destination
from compactor.errors import InvalidInput
from compactor.log.entries import DeadLetters
from compactor.model import ObjectGroup, Partition
from compactor.ports import ObjectStore
from compactor.rows.records import Kind
from compactor.settings.settings import Settings
from compactor.sizes import MIB

# They are held in memory and stored by one PUT. More than this means a wrong schema rather than a
# few odd records.
MAX_BYTES = 64 * MIB


class DeadLetterRecords:
    """The dead-letter records of one output, one JSON object a line.

    Each line has all that is needed to load the record by hand: ``source`` (URI), ``position`` in
    the source, ``record``, ``kind`` and ``header``; and ``reason``. Bytes that are not UTF-8 appear
    in ``record`` as the lone surrogates U+DC80 to U+DCFF, as by Python's surrogateescape.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lines: list[bytes] = []
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, source: str, position: int, record: bytes, kind: Kind, reason: str) -> None:
        """Add a record.

        Args:
            source: URI of its source.
            position: in the source, from 0.
            record: its bytes.
            kind: of the record.
            reason: why it is no row.

        Raises:
            InvalidInput: there are so many of them that the schema must be wrong.
        """
        document = {
            "source": source,
            "position": position,
            "record": record.decode("utf-8", "surrogateescape"),
            "kind": kind.kind,
            "header": kind.header,
            "reason": reason,
        }
        line = json.dumps(document).encode() + b"\n"
        self._lines.append(line)
        self._bytes += len(line)
        if self._bytes > MAX_BYTES:
            raise self._too_many(f"{len(self._lines):,} records and more")

    def require_fewer_than(self, records: int) -> None:
        """Refuse a schema that no record of a group fits.

        Raises:
            InvalidInput: all of this number of records are dead-letter records.
        """
        if self._lines and len(self._lines) == records:
            raise self._too_many(f"all {records:,} records")

    def store(
        self, group: ObjectGroup, store: ObjectStore, destination: Destination
    ) -> DeadLetters | None:
        """Store the records; return None if there are none."""
        if not self._lines:
            return None
        body = b"".join(self._lines)
        # Named by content: two runs that find the same records write the same object.
        digest = hashlib.blake2b(body, digest_size=8).hexdigest()
        partition = partition_of(destination, self._settings)
        name = f"{group.id}-{digest}.json"
        bucket, key = self._settings.layout.dead_letters(partition.path, name)
        store.put(bucket, key, body, content_type="application/x-ndjson")
        return DeadLetters(bucket, key, len(body), zlib.crc32(body), len(self._lines))

    def _too_many(self, how_many: str) -> InvalidInput:
        first = json.loads(self._lines[0])
        accepted = (
            f"a schema for the records of {first['source']}: {how_many} of one group fit no row,"
            f" the first because {first['reason']}"
        )
        return InvalidInput("parquet_schema", self._settings.parquet_schema, accepted)


def partition_of(destination: Destination, settings: Settings) -> Partition:
    """Return the partition that the outputs of a destination belong to."""
    path = destination.prefix.removeprefix(settings.destination.prefix)
    root = settings.source.root
    return Partition(root.bucket, root.prefix + path, path)
